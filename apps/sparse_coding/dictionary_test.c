/* The dictionary: sums of pairs, steps, and the bound on what a better dictionary could win. */
#include "apps/sparse_coding/dictionary.h"

#include "apps/sparse_coding/scene_test.h"

#define ATOMS 37 /* more than a group */
#define FEATURES 11
#define ROWS 60

static double x[ROWS * FEATURES], a[ROWS * ATOMS], scratch[SPARSE_GROUP * FEATURES];
static struct sparse_dictionary dictionary;
static struct sparse_sums sums;

static int make_all(void **state) {
  (void)state;
  struct apps_random random = apps_random_of(1, 41, 0, 0);
  if (sparse_dictionary_init(&dictionary, ATOMS, FEATURES) || sparse_sums_init(&sums, ATOMS, FEATURES)) return -1;
  for (size_t i = 0; i < ROWS * FEATURES; i++) x[i] = normal_of(&random);
  for (size_t i = 0; i < ROWS * ATOMS; i++) a[i] = apps_random_below(&random, 5) ? 0 : normal_of(&random);
  for (size_t i = 0; i < ROWS; i++) a[i * ATOMS + 5] = 0; /* an atom that no row uses */
  for (size_t j = 0; j < ATOMS; j++) sparse_atom(&dictionary, j)[j % FEATURES] = 1;
  const struct sparse_target target = sparse_sums_target(&sums);
  const struct sparse_pairs first = {ROWS / 2, FEATURES, ATOMS, x, a},
                            second = {ROWS / 2, FEATURES, ATOMS, x + ROWS / 2 * FEATURES, a + ROWS / 2 * ATOMS};
  return target.apply(target.context, &first, 0.3) || target.apply(target.context, &second, 0.5);
}

static int free_all(void **state) {
  (void)state;
  sparse_dictionary_fini(&dictionary);
  sparse_sums_fini(&sums);
  return 0;
}

/* 1/2 sum of w |x - B a|^2, with the weights that `keep` gave the rows. */
static double error_of(const double *b) {
  double sum = 0;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t d = 0; d < FEATURES; d++) {
      double rest = x[i * FEATURES + d];
      for (size_t j = 0; j < ATOMS; j++) rest -= a[i * ATOMS + j] * b[j * FEATURES + d];
      sum += (i < ROWS / 2 ? 0.5 : 1) * rest * rest / 2;
    }
  return sum;
}

static void test_pairs_are_added_up(void **state) {
  (void)state;
  for (size_t j = 0; j < ATOMS; j++) {
    double c = 0, s = 0;
    for (size_t i = 0; i < ROWS; i++) {
      double weight = i < ROWS / 2 ? 0.5 : 1; /* the first half was kept by half */
      c += weight * a[i * ATOMS + j] * x[i * FEATURES + 3];
      s += weight * a[i * ATOMS + j] * a[i * ATOMS + 7];
    }
    assert_true(fabs(c - sums.c[j * FEATURES + 3]) < 1e-12 && fabs(s - sums.a[j * ATOMS + 7]) < 1e-12);
  }
}

/* Steps never raise the error; they go to the optimum, and the gap is never below the distance to it. */
static void test_steps_go_down_to_the_optimum_and_the_gap_holds(void **state) {
  (void)state;
  double errors[400], gaps[400];
  for (size_t n = 0; n < 400; n++) {
    errors[n] = error_of(dictionary.at);
    gaps[n] = sparse_dictionary_gap(&dictionary, &sums, scratch);
    sparse_dictionary_step(&dictionary, &sums, scratch);
  }
  double best = error_of(dictionary.at);
  for (size_t n = 0; n < 400; n++) {
    assert_true(errors[n] - best <= gaps[n] + 1e-9);
    if (n > 0) assert_true(errors[n] <= errors[n - 1] + 1e-12);
  }
  assert_true(gaps[399] < 1e-3 * best && gaps[0] > 1);
  assert_true(sparse_atom(&dictionary, 5)[5] == 1); /* unused: it stays */
  for (size_t j = 0; j < ATOMS; j++) {
    double square = 0;
    for (size_t d = 0; d < FEATURES; d++) square += sparse_atom(&dictionary, j)[d] * sparse_atom(&dictionary, j)[d];
    assert_true(square <= 1 + 1e-12);
  }
}

static void test_a_replaced_atom_has_its_own_products(void **state) {
  (void)state;
  double atom[FEATURES] = {0.6, 0, 0.8}, gram[ATOMS * ATOMS];
  sparse_dictionary_refresh(&dictionary);
  sparse_dictionary_replace(&dictionary, 9, atom);
  memcpy(gram, dictionary.gram, sizeof gram);
  sparse_dictionary_refresh(&dictionary);
  for (size_t i = 0; i < ATOMS * ATOMS; i++) assert_true(fabs(gram[i] - dictionary.gram[i]) < 1e-14);
  sparse_sums_drop(&sums, 9);
  for (size_t j = 0; j < ATOMS; j++) assert_true(sums.a[9 * ATOMS + j] == 0 && sums.a[j * ATOMS + 9] == 0);
  for (size_t d = 0; d < FEATURES; d++) assert_true(sums.c[9 * FEATURES + d] == 0);
}

static void test_dictionaries_that_cannot_be_numbered_are_refused(void **state) {
  (void)state;
  struct sparse_dictionary large;
  assert_int_equal(sparse_dictionary_init(&large, 2, (size_t)INT32_MAX + 1), PAWL_TOO_LARGE);
  sparse_dictionary_fini(&large);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs_are_added_up),
      cmocka_unit_test(test_steps_go_down_to_the_optimum_and_the_gap_holds),
      cmocka_unit_test(test_a_replaced_atom_has_its_own_products),
      cmocka_unit_test(test_dictionaries_that_cannot_be_numbered_are_refused),
  };
  return cmocka_run_group_tests(tests, make_all, free_all);
}
