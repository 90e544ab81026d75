/* Row functions: the formulas of the built-in ones, calls as text, and functions of users that break the rules. */
#include "store/functions/rows.h"

#include <math.h>

#include "base/memory.h"
#include "base/testing.h"

#define COUNT 5

struct call {
  double rows[COUNT], others[COUNT], results[PAWL_ROW_RESULTS_MAX];
};

/* Runs the function on COUNT rows of width 1. */
static void run(const char *text, const uint64_t *keys, bool has_other, enum pawl_type type, struct call *call) {
  struct pwi_row_rule rule;
  struct pwi_function_problem problem;
  float rows[COUNT], others[COUNT];
  assert_int_equal(pwi_row_rule_parse(NULL, text, &rule, &problem), PAWL_OK);
  for (uint32_t i = 0; i < rule.function->result_count; i++)
    call->results[i] = pwi_row_neutral(rule.function->results[i].combine);
  for (size_t i = 0; i < COUNT; i++) rows[i] = (float)call->rows[i], others[i] = (float)call->others[i];
  bool is_float = type == PAWL_F32;
  struct pawl_row_call rows_of = {.size = sizeof rows_of,
                                  .type = type,
                                  .width = 1,
                                  .count = COUNT,
                                  .keys = keys,
                                  .rows = is_float ? (void *)rows : call->rows,
                                  .parameters = rule.parameters,
                                  .results = call->results};
  if (has_other) rows_of.others = is_float ? (void *)others : call->others;
  rule.function->run(&rows_of);
  for (size_t i = 0; i < COUNT && is_float; i++) call->rows[i] = (double)rows[i];
}

static void test_proximal_is_a_step_and_then_the_operator(void **state) {
  (void)state;
  for (int type = PAWL_F32; type <= PAWL_F64; type++) {
    struct call call = {{4, -4, 1, 0, 2}, {2, 2, 2, 2, -2}, {0}};
    run("proximal rate=0.5 l1=1 l2=2", NULL, true, (enum pawl_type)type, &call);
    /* x = w - rate g = 3, -5, 0, -1, 3; then shrink by 0.5 and divide by 2 */
    const double wanted[COUNT] = {1.25, -2.25, 0, -0.25, 1.25};
    for (size_t i = 0; i < COUNT; i++) assert_true(call.rows[i] == wanted[i]);
    assert_true(call.results[0] == 4 && call.results[1] == 5);
    assert_true(call.results[2] == 2.75 * 2.75 + 1.75 * 1.75 + 1 + 0.0625 + 0.5625);
    assert_true(call.results[3] == 2 * 1.25 * 1.25 + 2.25 * 2.25 + 0.0625);
    struct call alone = {{4, -4, 1, 0, 2}, {0}, {0}};
    run("proximal l1=1", NULL, false, (enum pawl_type)type, &alone);
    assert_true(alone.rows[0] == 3 && alone.rows[2] == 0 && alone.results[0] == 3);
  }
}

/* Whoever moves a step from a rule to a row function gets the same weights. */
static void test_proximal_is_the_step_of_prox_elastic(void **state) {
  (void)state;
  struct call call = {{4, -4, 1e-3, 0, 2.7}, {2.1, 1.9, -3e-3, 0.4, -1e9}, {0}};
  double stored[COUNT];
  struct pwi_rule rule;
  struct pwi_function_problem problem;
  memcpy(stored, call.rows, sizeof stored);
  assert_int_equal(pwi_rule_parse(NULL, "prox_elastic rate=0.3 l1=0.7 l2=0.1", &rule, &problem), PAWL_OK);
  struct pawl_function_call pushes = {.size = sizeof pushes,
                                      .type = PAWL_F64,
                                      .width = 1,
                                      .pushed_width = 1,
                                      .stored_width = 1,
                                      .count = COUNT,
                                      .pushed = call.others,
                                      .stored = stored,
                                      .parameters = rule.parameters};
  rule.function->apply(&pushes);
  run("proximal rate=0.3 l1=0.7 l2=0.1", NULL, true, PAWL_F64, &call);
  for (size_t i = 0; i < COUNT; i++) assert_true(fabs(call.rows[i] - stored[i]) <= 1e-14 * fabs(stored[i]));
}

static void test_clip_counts_and_tells_the_extremes_before(void **state) {
  struct call call = {{4, -4, 1, 0, 2}, {0}, {0}};
  (void)state;
  run("clip low=-1 high=1.5", NULL, false, PAWL_F64, &call);
  assert_true(call.rows[0] == 1.5 && call.rows[1] == -1 && call.rows[2] == 1);
  assert_true(call.results[0] == 3 && call.results[1] == -4 && call.results[2] == 4);
}

/* The same key and seed give the same value, wherever the row lies. */
static void test_noise_depends_on_seed_and_key_only(void **state) {
  const uint64_t keys[COUNT] = {0, 1, 2, 3, 9};
  struct call first = {{0}, {0}, {0}}, second = {{0}, {0}, {0}}, other = {{0}, {0}, {0}};
  (void)state;
  run("noise seed=7", NULL, false, PAWL_F64, &first);
  run("noise seed=7", keys, false, PAWL_F64, &second);
  run("noise seed=8", NULL, false, PAWL_F64, &other);
  for (size_t i = 0; i + 1 < COUNT; i++) {
    assert_true(first.rows[i] == second.rows[i] && first.rows[i] != other.rows[i]);
    assert_true(isfinite(first.rows[i]) && fabs(first.rows[i]) < 9);
  }
  assert_true(first.rows[COUNT - 1] != second.rows[COUNT - 1]);
  double squares = 0;
  for (size_t i = 0; i < COUNT; i++) squares += first.rows[i] * first.rows[i];
  assert_true(first.results[0] == squares);
}

static void test_results_are_combined_as_declared(void **state) {
  double sum = pwi_row_neutral(PAWL_ROW_SUM), least = pwi_row_neutral(PAWL_ROW_LEAST);
  double most = pwi_row_neutral(PAWL_ROW_MOST);
  (void)state;
  for (int i = 3; i >= -3; i -= 2) {
    pwi_row_combine(PAWL_ROW_SUM, &sum, i);
    pwi_row_combine(PAWL_ROW_LEAST, &least, i);
    pwi_row_combine(PAWL_ROW_MOST, &most, i);
  }
  assert_true(sum == 0 && least == -3 && most == 3);
  pwi_row_combine(PAWL_ROW_MOST, &most, NAN);
  pwi_row_combine(PAWL_ROW_MOST, &most, 5);
  assert_true(isnan(most));
}

static void refuse(const char *text, pawl_status status, const char *why) {
  struct pwi_row_rule rule;
  struct pwi_function_problem problem = {{0}};
  assert_string_equal(pawl_status_name(pwi_row_rule_parse(NULL, text, &rule, &problem)), pawl_status_name(status));
  if (!strstr(problem.text, why)) fail_msg("'%s' does not explain '%s'", problem.text, why);
}

static void test_mistakes_in_a_call_are_explained(void **state) {
  (void)state;
  refuse("", PAWL_NOT_FOUND, "no row function");
  refuse("add", PAWL_NOT_FOUND, "'add'");
  refuse("a_name_of_far_more_characters_than_a_function_may_have rate=1", PAWL_NOT_FOUND, "a_name_of");
  refuse("proximal rates=1", PAWL_INVALID, "no parameter 'rates'");
  refuse("proximal rate=-1", PAWL_INVALID, "must be from 0");
  refuse("proximal rate=1 rate=1", PAWL_INVALID, "twice");
  refuse("proximal rate", PAWL_INVALID, "name=number");
  refuse("clip low=2 high=1", PAWL_INVALID, "low is greater than high");
}

/* --- functions of users --------------------------------------------------------------------------------- */

static void do_nothing(const struct pawl_row_call *call) { (void)call; }

static const struct pawl_row_result two[] = {{"a", "", PAWL_ROW_SUM}, {"b", "", (enum pawl_row_combine)3}};
static const struct pawl_row_function good = {.size = sizeof good,
                                              .name = "mine",
                                              .types = PAWL_FUNCTION_REALS,
                                              .result_count = 1,
                                              .results = two,
                                              .run = do_nothing};

static void refuse_function(struct pawl_row_function function, pawl_status status, const char *why) {
  struct pwi_function_set set = {0};
  struct pwi_function_problem problem = {{0}};
  assert_int_equal(pwi_row_function_add(&set, &function, &problem), status);
  if (!strstr(problem.text, why)) fail_msg("'%s' does not explain '%s'", problem.text, why);
  assert_int_equal(set.row_count, 0);
  pwi_function_set_fini(&set);
}

static void test_functions_that_break_the_rules_are_not_added(void **state) {
  struct pawl_row_function bad = good;
  (void)state;
  refuse_function((bad = good, bad.size = 8, bad), PAWL_INVALID, "8 bytes");
  refuse_function((bad = good, bad.name = "No", bad), PAWL_INVALID, "name");
  refuse_function((bad = good, bad.name = "clip", bad), PAWL_EXISTS, "exists already");
  refuse_function((bad = good, bad.types = 0, bad), PAWL_INVALID, "type");
  refuse_function((bad = good, bad.run = NULL, bad), PAWL_INVALID, "run");
  refuse_function((bad = good, bad.flags = 64, bad), PAWL_UNSUPPORTED, "flags");
  refuse_function((bad = good, bad.result_count = 9, bad), PAWL_INVALID, "results");
  refuse_function((bad = good, bad.result_count = 2, bad), PAWL_INVALID, "result 2");
  refuse_function((bad = good, bad.parameter_count = 1, bad), PAWL_INVALID, "parameters");
}

static void test_adding_survives_a_lack_of_memory(void **state) {
  struct pwi_function_set set = {0};
  struct pwi_function_problem problem;
  struct pwi_row_rule rule;
  (void)state;
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_row_function_add(&set, &good, &problem);
    if (!pwi_memory_fail_cancel()) break;
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_int_equal(set.row_count, 0);
  }
  assert_int_equal(set.row_count, 1);
  assert_int_equal(pwi_row_rule_parse(&set, " mine ", &rule, &problem), PAWL_OK);
  assert_false(pwi_row_function_is_ours(rule.function));
  assert_true(pwi_row_function_is_ours(pwi_row_function_named(&set, "noise")));
  assert_int_equal(pwi_row_function_add(&set, &good, &problem), PAWL_EXISTS);
  pwi_function_set_fini(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_proximal_is_a_step_and_then_the_operator),
      cmocka_unit_test(test_proximal_is_the_step_of_prox_elastic),
      cmocka_unit_test(test_clip_counts_and_tells_the_extremes_before),
      cmocka_unit_test(test_noise_depends_on_seed_and_key_only),
      cmocka_unit_test(test_results_are_combined_as_declared),
      cmocka_unit_test(test_mistakes_in_a_call_are_explained),
      cmocka_unit_test(test_functions_that_break_the_rules_are_not_added),
      cmocka_unit_test(test_adding_survives_a_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
