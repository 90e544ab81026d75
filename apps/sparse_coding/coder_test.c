/* Codes: compared with FISTA, at their limits, and with bad dictionaries. */
#include "apps/sparse_coding/coder.h"

#include "apps/sparse_coding/dictionary.h"
#include "apps/sparse_coding/reference_test.h"
#include "apps/sparse_coding/scene_test.h"

/* A dictionary and a row that are drawn at random. */
struct problem {
  struct sparse_dictionary dictionary;
  struct sparse_coder coder;
  double *x, *products, *code, *reference, square;
};

static void measure_products(struct problem *is) {
  size_t features = is->dictionary.features;
  is->square = 0;
  for (size_t d = 0; d < features; d++) is->square += is->x[d] * is->x[d];
  for (size_t j = 0; j < is->dictionary.atoms; j++) {
    is->products[j] = 0;
    for (size_t d = 0; d < features; d++) is->products[j] += sparse_atom(&is->dictionary, j)[d] * is->x[d];
  }
}

static struct problem make_problem(size_t atoms, size_t features, double scale, uint64_t seed) {
  struct problem is;
  struct apps_random random = apps_random_of(seed, 40, atoms, features);
  assert_int_equal(sparse_dictionary_init(&is.dictionary, atoms, features), PAWL_OK);
  assert_true(sparse_coder_init(&is.coder, atoms));
  is.x = apps_alloc_zero(features, sizeof *is.x);
  is.products = apps_alloc_zero(atoms, sizeof *is.products);
  is.code = apps_alloc_zero(atoms, sizeof *is.code);
  is.reference = apps_alloc_zero(atoms, sizeof *is.reference);
  for (size_t j = 0; j < atoms; j++) {
    double square = 0, *atom = sparse_atom(&is.dictionary, j);
    for (size_t d = 0; d < features; d++) atom[d] = normal_of(&random) + 0.5; /* all point somewhat the same way */
    for (size_t d = 0; d < features; d++) square += atom[d] * atom[d];
    for (size_t d = 0; d < features; d++) atom[d] /= sqrt(square);
  }
  for (size_t d = 0; d < features; d++) is.x[d] = scale * normal_of(&random);
  sparse_dictionary_refresh(&is.dictionary);
  measure_products(&is);
  is.coder.gram = is.dictionary.gram;
  is.coder.tolerance = 1e-9;
  return is;
}

static void free_problem(struct problem *is) {
  sparse_dictionary_fini(&is->dictionary);
  sparse_coder_fini(&is->coder);
  apps_free(is->x);
  apps_free(is->products);
  apps_free(is->code);
  apps_free(is->reference);
}

/* Objective and gap are what a plain computation says, and the code is as good as that of FISTA. */
static void check(struct problem *is, double lambda, bool must_solve) {
  size_t atoms = is->dictionary.atoms, features = is->dictionary.features;
  is->coder.lambda = lambda;
  struct sparse_found found = sparse_coder_run(&is->coder, is->products, is->square, is->code);
  double objective = plain_objective(atoms, features, is->dictionary.at, is->x, lambda, is->code, NULL);
  double reference = plain_code(atoms, features, is->dictionary.at, is->x, lambda, 1e-7, is->reference);
  assert_true(fabs(found.objective - objective) <= 1e-9 * is->square);
  if (must_solve) assert_true(found.is_solved && found.gap <= 1e-9 * objective + 1e-13 * is->square);
  assert_true(objective - found.gap <= reference + 1e-12 * is->square); /* the bound holds */
  assert_true(objective <= reference * (1 + 1e-6) + 1e-9 * is->square);
}

static void test_codes_are_those_of_fista(void **state) {
  (void)state;
  const size_t shapes[][2] = {{1, 1}, {1, 5}, {5, 1}, {8, 20}, {30, 10}, {60, 60}};
  const double shares[] = {0.9, 0.5, 0.1, 0.02};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      struct problem is = make_problem(shapes[i][0], shapes[i][1], seed == 2 ? 1e6 : 1, seed);
      for (size_t n = 0; n < sizeof shares / sizeof *shares; n++) {
        double most = 0;
        for (size_t j = 0; j < is.dictionary.atoms; j++) most = fmax(most, fabs(is.products[j]));
        check(&is, shares[n] * most, true);
      }
      free_problem(&is);
    }
}

static void test_codes_with_many_nonzeros_are_found_too(void **state) {
  (void)state;
  struct problem is = make_problem(420, 450, 1, 5);
  is.coder.tolerance = 1e-2;
  is.coder.lambda = 0.02;
  struct sparse_found found = sparse_coder_run(&is.coder, is.products, is.square, is.code);
  double gap = plain_gap(420, 450, is.dictionary.at, is.x, 0.02, is.code);
  print_message("%zu non-zeros, gap %g of %g\n", found.nonzeros, found.gap, found.objective);
  assert_true(found.nonzeros > 256 && found.is_solved);
  assert_true(found.gap <= gap * (1 + 1e-6) + 1e-9 * is.square); /* the better of two dual points, at least */
  free_problem(&is);
}

static void test_a_large_lambda_gives_a_code_of_zeros(void **state) {
  (void)state;
  struct problem is = make_problem(10, 10, 1, 7);
  is.coder.lambda = 1e6;
  struct sparse_found found = sparse_coder_run(&is.coder, is.products, is.square, is.code);
  assert_true(found.is_solved && found.nonzeros == 0 && found.objective == is.square / 2);
  for (size_t j = 0; j < 10; j++) assert_true(is.code[j] == 0);
  free_problem(&is);
}

static void test_a_row_of_zeros_has_a_code_of_zeros(void **state) {
  (void)state;
  struct problem is = make_problem(10, 10, 0, 8);
  check(&is, 0.1, true);
  assert_true(is.code[3] == 0);
  free_problem(&is);
}

/* Two atoms that are equal, opposite ones, and one that is 0: the best code is not unique, its objective is. */
static void test_atoms_that_are_equal_or_zero_are_no_trouble(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct problem is = make_problem(8, 5, 1, seed);
    for (size_t d = 0; d < 5; d++) {
      sparse_atom(&is.dictionary, 1)[d] = sparse_atom(&is.dictionary, 0)[d];
      sparse_atom(&is.dictionary, 2)[d] = -sparse_atom(&is.dictionary, 0)[d];
      sparse_atom(&is.dictionary, 3)[d] = 0;
    }
    sparse_dictionary_refresh(&is.dictionary);
    measure_products(&is);
    is.coder.tolerance = 1e-6;
    check(&is, 0.05, false);
    assert_true(is.code[3] == 0);
    free_problem(&is);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_codes_are_those_of_fista),
      cmocka_unit_test(test_codes_with_many_nonzeros_are_found_too),
      cmocka_unit_test(test_a_large_lambda_gives_a_code_of_zeros),
      cmocka_unit_test(test_a_row_of_zeros_has_a_code_of_zeros),
      cmocka_unit_test(test_atoms_that_are_equal_or_zero_are_no_trouble),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
