
#include <math.h>

#include "base/testing.h"
#include "wire/filters.h"

/* A test filter: drops rows whose key is a multiple of `step`, and counts its runs. */
struct sieve {
  uint64_t step;
  int runs;
};

static int inits, finis;

static pawl_status sieve_init(void *state, const struct pawl_filter_setup *setup) {
  struct sieve *sieve = state;
  assert_int_equal(sieve->runs, 0);
  if (setup->parameters[0] == 13) return PAWL_INVALID;
  sieve->step = (uint64_t)setup->parameters[0];
  inits++;
  return PAWL_OK;
}

static void sieve_fini(void *state) {
  (void)state;
  finis++;
}

static void sieve_apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  struct sieve *sieve = state;
  size_t kept = 0;
  sieve->runs++;
  for (size_t i = 0; i < rows->count; i++)
    if (pass->flush || rows->keys[i] % sieve->step) pawl_rows_move(rows, i, kept++);
  rows->count = kept;
}

static const struct pawl_filter_parameter sieve_parameters[] = {
    {.name = "step", .least = 1, .most = 100, .initial = NAN, .whole = true}};

static const struct pawl_filter_type sieve = {
    .name = "sieve",
    .directions = PAWL_ON_PUSH,
    .parameters = sieve_parameters,
    .parameter_count = 1,
    .state_size = sizeof(struct sieve),
    .init = sieve_init,
    .fini = sieve_fini,
    .apply = sieve_apply,
};

static void test_a_filter_of_ones_own_works_like_any_other(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2, 3, 4, 5, 6};
  const float values[] = {1, 2, 3, 4, 5, 6};
  struct pawl_filters *filters;
  struct pawl_rows rows = {0};
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  assert_int_equal(pawl_filters_create("sieve(step=2)", NULL, &filters), PAWL_UNSUPPORTED);
  assert_int_equal(pawl_filter_register(&sieve), PAWL_OK);
  assert_int_equal(pawl_filter_register(&sieve), PAWL_EXISTS);
  assert_ptr_equal(pwi_filter_find("sieve"), &sieve);
  assert_int_equal(pawl_filters_create("sieve(step=2) | sieve(step=3) | zeros", NULL, &filters), PAWL_OK);
  assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 6, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 2);
  assert_int_equal(rows.keys[1], 5);
  assert_float_equal(((float *)rows.values)[1], 5, 0);
  pawl_filters_destroy(filters);
  assert_int_equal(inits, 2);
  assert_int_equal(finis, 2);
  struct pawl_filters_options options;
  pawl_filters_options_init(&options);
  options.problem = problem;
  options.problem_size = sizeof problem;
  assert_int_equal(pawl_filters_create("sieve(step=2) | sieve(step=13)", &options, &filters), PAWL_INVALID);
  assert_string_equal(problem, "filter 2, sieve: invalid argument");
  assert_int_equal(inits, finis); /* `fini` is called for the earlier filter, not for the one that failed */
  pawl_rows_fini(&rows);
}

static void assert_bad(struct pawl_filter_type type) { assert_int_equal(pawl_filter_register(&type), PAWL_INVALID); }

static void test_a_kind_that_breaks_a_rule_is_not_registered(void **state) {
  (void)state;
  static const char *const names[] = {
      "", "Upper", "9lives", "two words", "none", "a|b", "a_name_that_is_longer_than_any_name_may_be"};
  static const struct pawl_filter_parameter bad[][2] = {
      {{.name = "on"}},
      {{.name = "a=b", .most = 1}},
      {{.name = NULL}},
      {{.name = "a", .words = "x||y"}},
      {{.name = "a", .words = ""}},
      {{.name = "a", .words = "x|y", .initial = 2}},
      {{.name = "a", .least = 1, .most = 2, .initial = 3}},
      {{.name = "a", .most = 2, .initial = 0.5, .whole = true}},
  };
  static const struct pawl_filter_parameter twice[] = {{.name = "a", .most = 1}, {.name = "a", .most = 1}};
  struct pawl_filter_type type = sieve;
  assert_int_equal(pawl_filter_register(NULL), PAWL_INVALID);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    type.name = names[i];
    assert_bad(type);
  }
  type.name = "other";
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    type.parameters = bad[i];
    assert_bad(type);
  }
  type.parameters = twice;
  type.parameter_count = 2;
  assert_bad(type);
  type.parameter_count = PAWL_FILTER_PARAMETERS_MAX + 1;
  assert_bad(type);
  type.parameter_count = 0;
  type.apply = NULL;
  assert_bad(type);
  type.apply = sieve_apply;
  type.flags = PAWL_FILTER_LOSSLESS;
  assert_bad(type);
  type.flags = 0;
  type.directions = 4;
  assert_bad(type);
  type.directions = 0;
  assert_bad(type);
  type.directions = PAWL_ON_BOTH;
  type.name = "half";
  assert_int_equal(pawl_filter_register(&type), PAWL_EXISTS);
}

static void test_there_is_an_end_to_registering(void **state) {
  (void)state;
  static struct pawl_filter_type types[40];
  static char names[40][8];
  size_t known = 0, registered = 0;
  while (pwi_filter_at(known)) known++;
  for (size_t i = 0; i < 40; i++) {
    snprintf(names[i], sizeof names[i], "f%zu", i);
    types[i] = sieve;
    types[i].name = names[i];
    pawl_status status = pawl_filter_register(&types[i]);
    assert_true(status == PAWL_OK || status == PAWL_TOO_LARGE);
    registered += status == PAWL_OK;
    assert_true((pwi_filter_find(names[i]) != NULL) == (status == PAWL_OK));
  }
  assert_int_equal(registered, 31); /* and the sieve */
  assert_non_null(pwi_filter_at(known + registered - 1));
  assert_null(pwi_filter_at(known + registered));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_filter_of_ones_own_works_like_any_other),
      cmocka_unit_test(test_a_kind_that_breaks_a_rule_is_not_registered),
      cmocka_unit_test(test_there_is_an_end_to_registering),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
