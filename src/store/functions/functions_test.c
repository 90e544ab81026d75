#include "store/functions/functions.h"

#include <locale.h>
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED 5

static struct pwi_function_problem problem;
static struct pwi_rule rule;

/* --- numbers and names ---------------------------------------------------------------------------------- */

/* Part of the wire format: new entries are only appended. */
static void test_numbers_never_change(void **state) {
  (void)state;
  static const char *const names[] = {"add",
                                      "assign",
                                      "min",
                                      "max",
                                      "sgd",
                                      "momentum",
                                      "adagrad",
                                      "adam",
                                      "ftrl",
                                      "block_proximal",
                                      "prox_l1",
                                      "prox_l2",
                                      "prox_elastic",
                                      "prox_box",
                                      "prox_ball",
                                      "prox_nonnegative",
                                      "sketch_countmin",
                                      "sketch_countsketch",
                                      "sketch_top",
                                      "block_newton"};
  assert_int_equal(sizeof names / sizeof *names, PWI_FUNCTION_COUNT);
  for (uint32_t i = 0; i < PWI_FUNCTION_COUNT; i++) {
    const struct pawl_server_function *function = pwi_function_numbered(i);
    uint32_t number = 99;
    assert_string_equal(function->name, names[i]);
    assert_ptr_equal(pwi_function_named(NULL, names[i]), function);
    assert_true(pwi_function_number(function, &number));
    assert_int_equal(number, i);
  }
  assert_null(pwi_function_numbered(PWI_FUNCTION_COUNT));
  assert_null(pwi_function_numbered(UINT32_MAX));
  assert_null(pwi_function_named(NULL, "Add"));
}

/* Built-in functions satisfy the rules for functions of users: each can be added under another name. */
static void test_built_in_functions_keep_the_rules_for_functions(void **state) {
  (void)state;
  struct pwi_function_set set = {0};
  char names[PWI_FUNCTION_COUNT][8];
  for (uint32_t i = 0; i < PWI_FUNCTION_COUNT; i++) {
    struct pawl_server_function copy = *pwi_function_numbered(i);
    uint32_t number;
    names[i][0] = 'x', names[i][1] = (char)('a' + i), names[i][2] = '\0';
    copy.name = names[i];
    assert_non_null(copy.about);
    assert_int_equal(pwi_function_set_add(&set, &copy, &problem), PAWL_OK);
    const struct pawl_server_function *added = pwi_function_named(&set, names[i]);
    assert_non_null(added);
    assert_false(pwi_function_number(added, &number));
  }
  pwi_function_set_fini(&set);
}

/* --- functions of users --------------------------------------------------------------------------------- */

static void apply_nothing(const struct pawl_function_call *call) { (void)call; }

static const struct pawl_function_parameter two[] = {{"rate", "how far", 1, 0, 2}, {"cap", NULL, 3, 3, 3}};

static const struct pawl_server_function good = {
    .size = sizeof good,
    .name = "mine",
    .types = PAWL_FUNCTION_REALS,
    .pushed = {1, 0},
    .stored = {1, 0},
    .parameters = two,
    .parameter_count = 2,
    .apply = apply_nothing,
};

static void refuses(const struct pawl_server_function *function, pawl_status status, const char *words) {
  struct pwi_function_set set = {0};
  memset(&problem, 0, sizeof problem);
  assert_int_equal(pwi_function_set_add(&set, function, &problem), status);
  assert_int_equal(set.count, 0);
  if (!strstr(problem.text, words)) fail_msg("'%s' does not say '%s'", problem.text, words);
  pwi_function_set_fini(&set);
}

static void test_a_function_that_is_not_whole_is_refused_with_the_reason(void **state) {
  (void)state;
  static const char *const names[] = {NULL,  "",   "Mine", "1st",      "a b",
                                      "a=b", "_a", "a-b",  "\xc3\xa4", "a23456789012345678901234567890ab"};
  struct pawl_server_function bad = good;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bad.name = names[i];
    refuses(&bad, PAWL_INVALID, "an invalid name");
  }
  bad = good, bad.apply = NULL, refuses(&bad, PAWL_INVALID, "'mine' has no 'apply'");
  bad = good, bad.flags = 1u << 20, refuses(&bad, PAWL_UNSUPPORTED, "flags");
  bad = good, bad.types = 0, refuses(&bad, PAWL_INVALID, "type");
  bad = good, bad.types = 1u << 6, refuses(&bad, PAWL_INVALID, "type");
  bad = good, bad.pushed.times = 0, refuses(&bad, PAWL_INVALID, "pushed");
  bad = good, bad.stored.times = 0, refuses(&bad, PAWL_INVALID, "stored");
  bad = good, bad.parameter_count = 17, refuses(&bad, PAWL_INVALID, "more than 16");
  bad = good, bad.parameters = NULL, refuses(&bad, PAWL_INVALID, "parameters");
  bad = good, bad.size = 3, refuses(&bad, PAWL_INVALID, "3 bytes");
  bad = good, bad.size = 1u << 20, refuses(&bad, PAWL_INVALID, "which no version of pawl uses");
  bad = good, bad.name = "adam", refuses(&bad, PAWL_EXISTS, "'adam' exists already");
}

static void test_parameters_that_cannot_be_meant_are_refused(void **state) {
  (void)state;
  static const struct pawl_function_parameter wrong[][2] = {
      {{"a", "", 1, 0, 2}, {"a", "", 1, 0, 2}},   {{"a", "", 1, 0, 2}, {NULL, "", 1, 0, 2}},
      {{"A", "", 1, 0, 2}, {"b", "", 1, 0, 2}},   {{"a", "", 3, 0, 2}, {"b", "", 1, 0, 2}},
      {{"a", "", NAN, 0, 2}, {"b", "", 1, 0, 2}}, {{"a", "", 1, 0, INFINITY}, {"b", "", 1, 0, 2}},
      {{"a", "", 1, NAN, 2}, {"b", "", 1, 0, 2}}, {{"a", "", 1, 2, 0}, {"b", "", 1, 0, 2}}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pawl_server_function bad = good;
    bad.parameters = wrong[i];
    refuses(&bad, PAWL_INVALID, "'mine'");
  }
}

static void test_newer_functions_work_if_they_use_nothing_new(void **state) {
  (void)state;
  struct {
    struct pawl_server_function is;
    char more[24];
  } newer = {.is = good};
  struct pwi_function_set set = {0};
  newer.is.size = sizeof newer;
  newer.more[20] = 1;
  refuses(&newer.is, PAWL_UNSUPPORTED, "newer");
  newer.more[20] = 0;
  assert_int_equal(pwi_function_set_add(&set, &newer.is, &problem), PAWL_OK);
  assert_int_equal(pwi_function_named(&set, "mine")->size, sizeof good);
  assert_int_equal(pwi_function_set_add(&set, &good, &problem), PAWL_EXISTS);
  pwi_function_set_fini(&set);
}

static void test_a_set_that_runs_out_of_memory_stays_as_it_was(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_function_set set = {0};
    char names[20][4];
    size_t added = 0;
    pwi_memory_fail_after(n);
    for (size_t i = 0; i < 20; i++) {
      struct pawl_server_function function = good;
      names[i][0] = 'f', names[i][1] = (char)('a' + i), names[i][2] = '\0';
      function.name = names[i];
      pawl_status status = pwi_function_set_add(&set, &function, &problem);
      added += status == PAWL_OK;
      assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
      assert_int_equal(pwi_function_named(&set, names[i]) != NULL, status == PAWL_OK);
    }
    failed = pwi_memory_fail_cancel();
    assert_int_equal(added, failed ? 19 : 20);
    assert_int_equal(set.count, added);
    pwi_function_set_fini(&set);
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

/* --- shapes --------------------------------------------------------------------------------------------- */

static void test_shapes_follow_the_width(void **state) {
  (void)state;
  struct pwi_rule_shape shape;
  pwi_rule_init(&rule, pwi_function_numbered(PWI_FUNCTION_ADAM));
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F32, 10, &shape), PAWL_OK);
  assert_true(shape.pushed == 10 && shape.stored == 10 && shape.state == 22);
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_I32, 10, &shape), PAWL_UNSUPPORTED);
  assert_int_equal(pwi_rule_shape(&rule, (enum pwi_scalar)0, 10, &shape), PAWL_UNSUPPORTED);
  assert_int_equal(pwi_rule_shape(&rule, (enum pwi_scalar)77, 10, &shape), PAWL_UNSUPPORTED);
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F32, 0, &shape), PAWL_TOO_LARGE);
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F32, UINT32_MAX, &shape), PAWL_TOO_LARGE);
  pwi_rule_init(&rule, pwi_function_numbered(PWI_FUNCTION_BLOCK_PROXIMAL));
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F64, 3, &shape), PAWL_OK);
  assert_true(shape.pushed == 6 && shape.stored == 3 && shape.state == 0);
  pwi_rule_init(&rule, pwi_function_numbered(PWI_FUNCTION_BLOCK_NEWTON));
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F32, 3, &shape), PAWL_OK);
  assert_true(shape.pushed == 6 && shape.stored == 6 && shape.state == 0);
  struct pawl_server_function huge = good;
  huge.state = (struct pawl_function_shape){UINT32_MAX, UINT32_MAX};
  pwi_rule_init(&rule, &huge);
  assert_int_equal(pwi_rule_shape(&rule, PWI_SCALAR_F32, UINT32_MAX, &shape), PAWL_TOO_LARGE);
}

/* --- text ----------------------------------------------------------------------------------------------- */

static void reads(const char *text, const char *printed) {
  char again[PWI_RULE_TEXT_MAX];
  struct pwi_rule other;
  if (pwi_rule_parse(NULL, text, &rule, &problem) != PAWL_OK) fail_msg("'%s': %s", text, problem.text);
  pwi_rule_print(&rule, again);
  assert_string_equal(again, printed);
  assert_int_equal(pwi_rule_parse(NULL, again, &other, &problem), PAWL_OK);
  assert_ptr_equal(other.function, rule.function);
  assert_memory_equal(other.parameters, rule.parameters, sizeof rule.parameters);
}

static void test_rules_are_read_and_written(void **state) {
  (void)state;
  reads("add", "add");
  reads("adagrad rate=0.1 eps=1e-8", "adagrad rate=0.1 eps=1e-08 decay=0");
  reads(" \tprox_box  high=+2.5e0\tlow=-.5 ", "prox_box rate=1 low=-0.5 high=2.5");
  reads("sgd rate=0.30000000000000004", "sgd rate=0.30000000000000004");
  reads("adam", "adam rate=0.001 beta1=0.9 beta2=0.999 eps=1e-08 decay=0");
}

static void fails(const char *text, pawl_status status, const char *words) {
  struct pwi_rule untouched;
  memset(&untouched, 0x5a, sizeof untouched);
  rule = untouched;
  assert_int_equal(pwi_rule_parse(NULL, text, &rule, &problem), status);
  assert_memory_equal(&rule, &untouched, sizeof rule);
  if (!strstr(problem.text, words)) fail_msg("'%s' does not say '%s'", problem.text, words);
}

static void test_a_wrong_text_is_refused_with_the_mistake_and_the_alternatives(void **state) {
  (void)state;
  char longer[2000];
  fails("", PAWL_INVALID, "expected the name of a function");
  fails(" \t ", PAWL_INVALID, "expected the name of a function");
  fails("adagrid", PAWL_NOT_FOUND, "unknown function 'adagrid'; known are add, assign, min");
  fails("adagrid", PAWL_NOT_FOUND, "prox_nonnegative");
  fails("rate=1", PAWL_NOT_FOUND, "'rate=1'");
  fails("adagrad 0.1", PAWL_INVALID, "'0.1' is not of the form name=number");
  fails("adagrad =0.1", PAWL_INVALID, "it has rate, eps, decay");
  fails("adagrad rates=0.1", PAWL_INVALID, "'adagrad' has no parameter 'rates'; it has rate, eps, decay");
  fails("adagrad rat=0.1", PAWL_INVALID, "no parameter 'rat'");
  fails("add rate=1", PAWL_INVALID, "'add' has no parameters");
  fails("sgd rate=1 rate=1", PAWL_INVALID, "'rate' is given twice");
  fails("sgd rate=-1", PAWL_INVALID, "must be from 0 to 1e+30, but is -1");
  fails("sgd rate=1e999", PAWL_INVALID, "must be from 0 to 1e+30, but is inf");
  fails("adam beta1=1", PAWL_INVALID, "'beta1' of 'adam'");
  fails("adagrad eps=0", PAWL_INVALID, "'eps' of 'adagrad'");
  fails("prox_box low=2", PAWL_INVALID, "'prox_box': low is greater than high");
  static const char *const numbers[] = {"sgd rate=",    "sgd rate=nan", "sgd rate=inf", "sgd rate=0x1p3",
                                        "sgd rate=1,5", "sgd rate=1e",  "sgd rate=--1", "sgd rate=1=2",
                                        "sgd rate=.",   "sgd rate=1\n", "sgd rate=one", "sgd rate=1.2.3"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    fails(numbers[i], PAWL_INVALID, "'rate' is not a number");
  memset(longer, 'x', sizeof longer);
  longer[1999] = '\0';
  fails(longer, PAWL_INVALID, "longer than 1023");
  longer[1023] = '\0';
  fails(longer, PAWL_NOT_FOUND, "xxx...'");
  fails("\x1b[2J\xff", PAWL_NOT_FOUND, "'?[2J?'");
}

/* In a locale that writes a comma, where there is one. */
static void test_the_locale_does_not_matter(void **state) {
  (void)state;
  char before[64];
  strncpy(before, setlocale(LC_ALL, NULL), sizeof before - 1);
  before[sizeof before - 1] = '\0';
  if (!setlocale(LC_ALL, "de_DE.UTF-8")) setlocale(LC_ALL, "");
  reads("sgd rate=0.25", "sgd rate=0.25");
  fails("sgd rate=0,25", PAWL_INVALID, "not a number");
  setlocale(LC_ALL, before);
}

static void test_any_parameters_come_back_to_the_last_bit(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 2000; round++) {
    char text[PWI_RULE_TEXT_MAX];
    struct pwi_rule other;
    pwi_rule_init(&rule, pwi_function_numbered((uint32_t)pwi_random_below(&random, PWI_FUNCTION_COUNT)));
    for (uint32_t i = 0; i < rule.function->parameter_count; i++) {
      double to = ldexp(pwi_random_unit(&random), (int)pwi_random_below(&random, 200) - 100);
      const struct pawl_function_parameter *is = &rule.function->parameters[i];
      rule.parameters[i] = fmin(fmax(to, is->least), is->most);
    }
    if (pwi_rule_check(&rule, &problem) != PAWL_OK) continue;
    pwi_rule_print(&rule, text);
    assert_int_equal(pwi_rule_parse(NULL, text, &other, &problem), PAWL_OK);
    assert_memory_equal(other.parameters, rule.parameters, sizeof rule.parameters);
  }
}

/* The longest names, all parameters, numbers of the most digits. */
static void test_the_longest_rule_fits(void **state) {
  (void)state;
  struct pawl_function_parameter many[PAWL_FUNCTION_PARAMETERS_MAX];
  char names[PAWL_FUNCTION_PARAMETERS_MAX][PAWL_FUNCTION_NAME_MAX + 1], name[PAWL_FUNCTION_NAME_MAX + 1], text[2048];
  struct pawl_server_function wide = good;
  struct pwi_function_set set = {0};
  struct pwi_rule other;
  memset(name, 'n', sizeof name);
  name[PAWL_FUNCTION_NAME_MAX] = '\0';
  for (size_t i = 0; i < PAWL_FUNCTION_PARAMETERS_MAX; i++) {
    memcpy(names[i], name, sizeof name);
    names[i][5] = (char)('a' + i);
    many[i] = (struct pawl_function_parameter){names[i], "", -1.2345678901234567e-300, -1, 1};
  }
  wide.name = name;
  wide.parameters = many;
  wide.parameter_count = PAWL_FUNCTION_PARAMETERS_MAX;
  assert_int_equal(pwi_function_set_add(&set, &wide, &problem), PAWL_OK);
  pwi_rule_init(&rule, pwi_function_named(&set, name));
  memset(text, 0x5a, sizeof text);
  pwi_rule_print(&rule, text);
  assert_int_equal(text[PWI_RULE_TEXT_MAX], 0x5a);
  assert_int_equal(pwi_rule_parse(&set, text, &other, &problem), PAWL_OK);
  assert_memory_equal(other.parameters, rule.parameters, sizeof rule.parameters);
  pwi_function_set_fini(&set);
}

int main(void) {
  print_message("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers_never_change),
      cmocka_unit_test(test_built_in_functions_keep_the_rules_for_functions),
      cmocka_unit_test(test_a_function_that_is_not_whole_is_refused_with_the_reason),
      cmocka_unit_test(test_parameters_that_cannot_be_meant_are_refused),
      cmocka_unit_test(test_newer_functions_work_if_they_use_nothing_new),
      cmocka_unit_test(test_a_set_that_runs_out_of_memory_stays_as_it_was),
      cmocka_unit_test(test_shapes_follow_the_width),
      cmocka_unit_test(test_rules_are_read_and_written),
      cmocka_unit_test(test_a_wrong_text_is_refused_with_the_mistake_and_the_alternatives),
      cmocka_unit_test(test_the_locale_does_not_matter),
      cmocka_unit_test(test_any_parameters_come_back_to_the_last_bit),
      cmocka_unit_test(test_the_longest_rule_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
