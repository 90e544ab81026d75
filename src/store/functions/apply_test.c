/* Rules on tables: against the same function applied row by row to a copy, and refused pushes. */
#include "store/functions/apply.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/dense.h"

#define SEED 77
#define SPAN 12000
#define KEYS_MOST 9001
#define VALUES_MOST 40000 /* in one push */

static const uint32_t widths[] = {1, 2, 3, 7, 8, 16, 65};
#define WIDTHS (sizeof widths / sizeof *widths)

static uint64_t keys[KEYS_MOST];
static _Alignas(8) char pushed[VALUES_MOST * 8 + 8], before[VALUES_MOST * 8], model[VALUES_MOST * 8];
static _Alignas(8) char model_state[VALUES_MOST * 8], out[VALUES_MOST * 8];

static struct pwi_rule rule_of(const char *text) {
  struct pwi_rule rule;
  struct pwi_function_problem problem;
  if (pwi_rule_parse(NULL, text, &rule, &problem) != PAWL_OK) fail_msg("%s", problem.text);
  return rule;
}

static struct pwi_table *table_for(const struct pwi_applying *applying, bool sparse) {
  struct pwi_table_options options = {
      applying->type, applying->shape.stored, applying->shape.state, {5, 5 + SPAN}, sparse};
  struct pwi_table *table = NULL;
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  return table;
}

/* `count` ascending keys of the span; every key once in a while, so that runs and single slots both occur. */
static void draw_keys(struct pwi_random *random, size_t count, bool close) {
  uint64_t key = 5;
  for (size_t i = 0; i < count; i++) {
    uint64_t spare = 5 + SPAN - key - (count - i);
    key += close ? (i % 100 == 99 && spare > 0) : pwi_random_below(random, spare / (count - i) + 1);
    keys[i] = key++;
  }
}

static void draw_values(struct pwi_random *random, enum pwi_scalar type, char *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    double wide = pwi_random_unit(random) * 2; /* not below zero: a curvature may not be */
    float narrow = (float)wide;
    uint64_t whole = pwi_random_below(random, 1000);
    size_t size = pwi_scalar_size(type);
    const void *value = type == PWI_SCALAR_F32   ? (const void *)&narrow
                        : type == PWI_SCALAR_F64 ? &wide
                                                 : (void *)&whole;
    memcpy(to + i * size, value, size);
  }
}

/* One row after the other, in memory of its own. */
static void apply_to_model(const struct pwi_applying *applying, size_t rows, const char *from) {
  static _Alignas(8) char row[65 * 2 * 8 + 64];
  for (size_t i = 0; i < rows; i++) {
    memcpy(row, from + i * applying->pushed_bytes, applying->pushed_bytes);
    struct pawl_function_call call = {.size = sizeof call,
                                      .type = (enum pawl_type)applying->type,
                                      .width = applying->width,
                                      .pushed_width = applying->shape.pushed,
                                      .stored_width = applying->shape.stored,
                                      .state_width = applying->shape.state,
                                      .count = 1,
                                      .pushed = row,
                                      .stored = model + i * applying->stored_bytes,
                                      .state = model_state + i * applying->state_bytes,
                                      .parameters = applying->rule.parameters};
    applying->rule.function->apply(&call);
  }
}

static void compare_list(struct pwi_applying *applying, struct pwi_table *table, const struct pwi_slots *slots,
                         size_t count) {
  pwi_table_gather(table, slots, 0, count, before);
  assert_memory_equal(before, model, count * applying->stored_bytes);
  pwi_table_gather_state(table, slots, 0, count, before);
  if (applying->state_bytes > 0) assert_memory_equal(before, model_state, count * applying->state_bytes);
}

/* Several pushes to the same keys, in pieces and whole, aligned and not, with and without results. */
static void check_list(const char *text, enum pwi_scalar type, uint32_t width, bool sparse, bool close, size_t count) {
  struct pwi_applying applying;
  struct pwi_random random;
  struct pwi_rule rule = rule_of(text);
  struct pwi_slots slots = {0};
  pwi_random_init(&random, SEED, width * 2 + sparse);
  assert_int_equal(pwi_applying_init(&applying, &rule, type, width), PAWL_OK);
  struct pwi_table *table = table_for(&applying, sparse);
  draw_keys(&random, count, close);
  assert_int_equal(pwi_table_resolve(table, keys, count, true, &slots), PAWL_OK);
  memset(model, 0, sizeof model);
  memset(model_state, 0, sizeof model_state);
  for (size_t round = 0; round < 4; round++) {
    char *from = pushed + round; /* aligned once */
    bool wanted = round % 2;
    draw_values(&random, type, from, count * applying.shape.pushed);
    apply_to_model(&applying, count, from);
    size_t cut = round < 2 ? 0 : count / 3;
    struct pwi_rows_named first = {&slots, 0, 0, cut}, second = {&slots, cut, 0, count - cut};
    assert_int_equal(pwi_applying_check(&applying, table, first, from), PAWL_OK);
    assert_int_equal(pwi_applying_check(&applying, table, second, from + cut * applying.pushed_bytes), PAWL_OK);
    pwi_applying_apply(&applying, table, first, from, wanted ? out : NULL);
    pwi_applying_apply(&applying, table, second, from + cut * applying.pushed_bytes,
                       wanted ? out + cut * applying.stored_bytes : NULL);
    compare_list(&applying, table, &slots, count);
    if (wanted) assert_memory_equal(out, model, count * applying.stored_bytes);
  }
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
  pwi_applying_fini(&applying);
}

static size_t count_for(const struct pwi_rule *rule, uint32_t width, size_t wish) {
  const struct pawl_server_function *is = rule->function;
  size_t most = is->state.times > is->pushed.times ? is->state.times : is->pushed.times;
  size_t fits = VALUES_MOST / (most * width + is->state.more);
  return wish < fits ? wish : fits;
}

static void test_lists_are_changed_like_single_rows(void **state) {
  (void)state;
  static const size_t counts[] = {1, 2, 17, 300, KEYS_MOST};
  for (uint32_t number = 0; number < PWI_FUNCTION_COUNT; number++) {
    if (!pwi_function_takes_reals(number)) continue;
    const char *text = pwi_function_numbered(number)->name;
    struct pwi_rule rule = rule_of(text);
    for (size_t w = 0; w < WIDTHS; w++)
      for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        enum pwi_scalar type = (w + c) % 2 ? PWI_SCALAR_F32 : PWI_SCALAR_F64;
        check_list(text, type, widths[w], c % 2, w % 2, count_for(&rule, widths[w], counts[c]));
        check_list(text, type, widths[w], !(c % 2), !(w % 2), count_for(&rule, widths[w], counts[c]));
      }
  }
  for (int type = PWI_SCALAR_I32; type <= PWI_SCALAR_U64; type++)
    check_list("max", (enum pwi_scalar)type, 3, true, false, 90);
}

static void check_range(const char *text, enum pwi_scalar type, uint32_t width, uint64_t first, size_t count) {
  struct pwi_applying applying;
  struct pwi_random random;
  struct pwi_rule rule = rule_of(text);
  pwi_random_init(&random, SEED, width);
  assert_int_equal(pwi_applying_init(&applying, &rule, type, width), PAWL_OK);
  struct pwi_table *table = table_for(&applying, false);
  struct pwi_rows_named named = {.first = first, .count = count};
  memset(model, 0, sizeof model);
  memset(model_state, 0, sizeof model_state);
  for (size_t round = 0; round < 4; round++) {
    char *from = pushed + round;
    draw_values(&random, type, from, count * applying.shape.pushed);
    apply_to_model(&applying, count, from);
    assert_int_equal(pwi_applying_push(&applying, table, named, from, round % 2 ? out : NULL), PAWL_OK);
    assert_int_equal(pwi_table_range_read(table, first, 0, count * applying.shape.stored, before), PAWL_OK);
    assert_memory_equal(before, model, count * applying.stored_bytes);
    if (round % 2) assert_memory_equal(out, model, count * applying.stored_bytes);
    struct pwi_rows rows;
    struct pawl_range range = {first, first + count};
    assert_true(pwi_table_scan(table, range, &rows) && rows.count == count);
    if (applying.state_bytes > 0) assert_memory_equal(rows.state, model_state, count * applying.state_bytes);
  }
  pwi_table_destroy(table);
  pwi_applying_fini(&applying);
}

static void test_ranges_are_changed_like_single_rows(void **state) {
  (void)state;
  for (uint32_t number = 0; number < PWI_FUNCTION_COUNT; number++) {
    if (!pwi_function_takes_reals(number)) continue;
    const char *text = pwi_function_numbered(number)->name;
    struct pwi_rule rule = rule_of(text);
    for (size_t w = 0; w < WIDTHS; w++) {
      check_range(text, PWI_SCALAR_F32, widths[w], 5, count_for(&rule, widths[w], KEYS_MOST));
      check_range(text, PWI_SCALAR_F64, widths[w], 1003, count_for(&rule, widths[w], 777));
    }
  }
}

/* --- refusals ------------------------------------------------------------------------------------------- */

/* One bad value, in the last block of many: not one row before it may have changed. */
static void refuses_whole(const char *text, const struct pwi_rows_named *where, struct pwi_table *table,
                          struct pwi_applying *applying, double bad, size_t at) {
  struct pwi_random random;
  float narrow = (float)bad;
  size_t size = pwi_scalar_size(applying->type), values = where->count * applying->shape.stored;
  pwi_random_init(&random, SEED, at);
  draw_values(&random, applying->type, pushed, where->count * applying->shape.pushed);
  memcpy(pushed + at * size, applying->type == PWI_SCALAR_F32 ? (void *)&narrow : (void *)&bad, size);
  assert_int_equal(pwi_table_range_read(table, 5, 0, values, before), PAWL_OK);
  if (pwi_applying_push(applying, table, *where, pushed, NULL) != PAWL_REFUSED) fail_msg("%s took %g", text, bad);
  assert_int_equal(pwi_table_range_read(table, 5, 0, values, out), PAWL_OK);
  assert_memory_equal(out, before, values * size);
}

static void check_refusals(const char *text, enum pwi_scalar type, double bad, size_t step) {
  struct pwi_applying applying;
  struct pwi_rule rule = rule_of(text);
  struct pwi_slots slots = {0};
  size_t count = 8000;
  assert_int_equal(pwi_applying_init(&applying, &rule, type, 2), PAWL_OK);
  struct pwi_table *table = table_for(&applying, false);
  for (size_t i = 0; i < count; i++) keys[i] = 5 + i;
  struct pwi_rows_named range = {.first = 5, .count = count}, list = {&slots, 0, 0, count};
  size_t last = count * applying.shape.pushed - 1;
  refuses_whole(text, &range, table, &applying, bad, last); /* also before any key is there */
  assert_int_equal(pwi_table_count(table), 0);
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  draw_values(&random, type, pushed, last + 1);
  assert_int_equal(pwi_applying_push(&applying, table, range, pushed, NULL), PAWL_OK);
  assert_int_equal(pwi_table_resolve(table, keys, count, true, &slots), PAWL_OK);
  for (size_t at = step - 1; at <= last; at += 3998 * step) {
    refuses_whole(text, &range, table, &applying, bad, at);
    refuses_whole(text, &list, table, &applying, bad, at);
  }
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
  pwi_applying_fini(&applying);
}

static void test_nan_and_infinity_are_refused_and_change_nothing(void **state) {
  (void)state;
  for (uint32_t number = PWI_FUNCTION_SGD; number < PWI_FUNCTION_COUNT; number++) {
    if (!pwi_function_takes_reals(number)) continue;
    const char *text = pwi_function_numbered(number)->name;
    check_refusals(text, PWI_SCALAR_F32, NAN, 1);
    check_refusals(text, PWI_SCALAR_F64, -INFINITY, 1);
  }
}

static void test_a_negative_curvature_is_refused_and_changes_nothing(void **state) {
  (void)state;
  check_refusals("block_proximal", PWI_SCALAR_F32, -0.5, 2);
  check_refusals("block_proximal", PWI_SCALAR_F64, -1e-300, 2);
  check_refusals("block_newton", PWI_SCALAR_F32, -0.5, 2);
  check_refusals("block_newton", PWI_SCALAR_F64, -1e-300, 2);
}

static void test_values_that_do_not_match_the_table_are_refused(void **state) {
  (void)state;
  struct pwi_applying applying, sparse;
  struct pwi_rule rule = rule_of("adagrad");
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_U64, 1), PAWL_UNSUPPORTED);
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_F32, UINT32_MAX), PAWL_TOO_LARGE);
  rule.parameters[0] = NAN;
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_F32, 1), PAWL_INVALID);
  rule = rule_of("adagrad");
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_F32, 1), PAWL_OK);
  assert_int_equal(pwi_applying_init(&sparse, &rule, PWI_SCALAR_F32, 1), PAWL_OK);
  struct pwi_table *table = table_for(&applying, false), *other = table_for(&sparse, true);
  struct pwi_rows_named past = {.first = 5 + SPAN - 2, .count = 3}, early = {.first = 4, .count = 1};
  struct pwi_rows_named wraps = {.first = UINT64_MAX - 1, .count = 3}, none = {.first = 5 + SPAN, .count = 0};
  memset(pushed, 0, 64);
  assert_int_equal(pwi_applying_push(&applying, table, past, pushed, NULL), PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_applying_push(&applying, table, early, pushed, NULL), PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_applying_push(&applying, table, wraps, pushed, NULL), PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_applying_push(&applying, table, none, pushed, NULL), PAWL_OK);
  past.first = 5;
  assert_int_equal(pwi_applying_push(&sparse, other, past, pushed, NULL), PAWL_UNSUPPORTED);
  table->limit = 0;
  assert_int_equal(pwi_applying_push(&applying, table, past, pushed, NULL), PAWL_TOO_LARGE);
  assert_int_equal(pwi_table_count(table), 0);
  pwi_table_destroy(table);
  pwi_table_destroy(other);
  pwi_applying_fini(&applying);
  pwi_applying_fini(&sparse);
}

/* --- functions of users --------------------------------------------------------------------------------- */

/* A test function: pushes have one number per key, rows have width + 1 values, and the state counts pushes.
 * It refuses pushes depending on the stored values. */
static pawl_status check_tally(const struct pawl_function_call *call) {
  int64_t *stored = call->stored, *state = call->state;
  const int64_t *numbers = call->pushed;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < call->count; i++) {
    if (numbers[i] == 999) status = (pawl_status)7; /* no status that there is */
    if (numbers[i] == 998) status = PAWL_OVERFLOW;
    if (state[i] >= 2 && stored[i * call->stored_width] > 0) status = PAWL_TOO_LARGE;
    if (state[i] == 77 || stored[i * call->stored_width] == 77) status = PAWL_CORRUPT;
  }
  for (size_t i = 0; i < call->count; i++) state[i] = stored[i * call->stored_width] = 77;
  return status;
}

static void apply_tally(const struct pawl_function_call *call) {
  int64_t *stored = call->stored, *state = call->state;
  const int64_t *numbers = call->pushed;
  assert_true((uintptr_t)numbers % 8 == 0 && (uintptr_t)stored % 8 == 0 && (uintptr_t)state % 8 == 0);
  for (size_t i = 0; i < call->count; i++) {
    for (size_t j = 0; j < call->stored_width; j++) stored[i * call->stored_width + j] += numbers[i] * (int64_t)(j + 1);
    state[i]++;
  }
}

static const struct pawl_server_function tally = {
    .size = sizeof tally,
    .name = "tally",
    .types = PAWL_FUNCTION_TYPE(PAWL_I64),
    .pushed = {0, 1},
    .stored = {1, 1},
    .state = {0, 1},
    .check = check_tally,
    .apply = apply_tally,
};

static void check_tallies(struct pwi_applying *applying, bool sparse) {
  struct pwi_table *table = table_for(applying, sparse);
  struct pwi_slots slots = {0};
  const size_t count = 2500;
  struct pwi_rows_named named = {.first = 100, .count = count};
  int64_t *numbers = (int64_t *)(void *)before, stored[3];
  for (size_t i = 0; i < count; i++) keys[i] = 100 + i, numbers[i] = 1;
  numbers[count - 1] = 0;
  if (sparse) {
    named.slots = &slots;
    assert_int_equal(pwi_table_resolve(table, keys, count, false, &slots), PAWL_OK);
    assert_int_equal(pwi_applying_check(applying, table, named, numbers), PAWL_OK);
    assert_int_equal(pwi_table_resolve(table, keys, count, true, &slots), PAWL_OK);
  }
  memcpy(pushed + 3, numbers, count * sizeof *numbers);
  assert_int_equal(pwi_applying_push(applying, table, named, numbers, NULL), PAWL_OK);
  assert_int_equal(pwi_applying_push(applying, table, named, pushed + 3, NULL), PAWL_OK);
  assert_int_equal(pwi_applying_push(applying, table, named, numbers, NULL), PAWL_TOO_LARGE);
  named.first += count - 1, named.from += count - 1, named.count = 1;
  numbers[0] = 999;
  assert_int_equal(pwi_applying_push(applying, table, named, numbers, NULL), PAWL_REFUSED);
  numbers[0] = 998;
  assert_int_equal(pwi_applying_push(applying, table, named, numbers, NULL), PAWL_OVERFLOW);
  numbers[0] = 5; /* its sum is still zero, so it is taken */
  assert_int_equal(pwi_applying_push(applying, table, named, numbers, NULL), PAWL_OK);
  assert_int_equal(pwi_table_range_read(table, 100 + count - 1, 0, 3, stored), PAWL_OK);
  assert_true(stored[0] == 5 && stored[1] == 10 && stored[2] == 15);
  assert_int_equal(pwi_table_range_read(table, 100, 0, 3, stored), PAWL_OK);
  assert_true(stored[0] == 2 && stored[1] == 4 && stored[2] == 6);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
}

static void test_a_function_may_refuse_because_of_stored_values(void **state) {
  (void)state;
  struct pwi_rule rule;
  struct pwi_applying applying;
  pwi_rule_init(&rule, &tally);
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_I64, 2), PAWL_OK);
  assert_true(applying.shape.pushed == 1 && applying.shape.stored == 3 && applying.shape.state == 1);
  check_tallies(&applying, false);
  check_tallies(&applying, true);
  pwi_applying_fini(&applying);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_out_of_memory_leaves_nothing_behind(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_applying applying = {.width = 9};
    struct pwi_rule rule = rule_of("adam");
    pwi_memory_fail_after(n);
    pawl_status status = pwi_applying_init(&applying, &rule, PWI_SCALAR_F32, 3);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (failed)
      assert_true(applying.width == 9 && applying.pushed == NULL);
    else
      pwi_applying_fini(&applying);
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

static void test_applying_allocates_nothing(void **state) {
  (void)state;
  struct pwi_applying applying;
  struct pwi_rule rule = rule_of("ftrl l1=0.1");
  struct pwi_slots slots = {0};
  struct pwi_rows_named named = {&slots, 0, 0, 5000};
  assert_int_equal(pwi_applying_init(&applying, &rule, PWI_SCALAR_F32, 2), PAWL_OK);
  struct pwi_table *table = table_for(&applying, true);
  for (size_t i = 0; i < 5000; i++) keys[i] = 5 + 2 * i;
  memset(pushed, 0, sizeof pushed);
  assert_int_equal(pwi_table_resolve(table, keys, 5000, true, &slots), PAWL_OK);
  uint64_t allocations = pwi_memory_counts().allocations;
  for (int i = 0; i < 3; i++) assert_int_equal(pwi_applying_push(&applying, table, named, pushed + i, out), PAWL_OK);
  assert_int_equal(pwi_memory_counts().allocations, allocations);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
  pwi_applying_fini(&applying);
}

int main(void) {
  print_message("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_are_changed_like_single_rows),
      cmocka_unit_test(test_ranges_are_changed_like_single_rows),
      cmocka_unit_test(test_nan_and_infinity_are_refused_and_change_nothing),
      cmocka_unit_test(test_a_negative_curvature_is_refused_and_changes_nothing),
      cmocka_unit_test(test_values_that_do_not_match_the_table_are_refused),
      cmocka_unit_test(test_a_function_may_refuse_because_of_stored_values),
      cmocka_unit_test(test_out_of_memory_leaves_nothing_behind),
      cmocka_unit_test(test_applying_allocates_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
