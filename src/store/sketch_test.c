#include "store/sketch.h"

#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED 11
#define WIDTH 4098 /* 4 lines of 1024 cells */

static uint64_t stored[WIDTH], other[WIDTH], pushed[2 * WIDTH];
static const double by_four[] = {4, 1, 0}, by_two[] = {2, 1, 0};

static struct pawl_function_call call_of(uint32_t width, const double *parameters, bool is_signed, size_t count) {
  return (struct pawl_function_call){.size = sizeof(struct pawl_function_call),
                                     .type = is_signed ? PAWL_I64 : PAWL_U64,
                                     .width = width,
                                     .pushed_width = width,
                                     .stored_width = width,
                                     .count = count,
                                     .pushed = pushed,
                                     .stored = stored,
                                     .parameters = parameters};
}

static pawl_status push(uint32_t width, const double *parameters, bool is_signed) {
  const struct pawl_server_function *function = is_signed ? &pwi_sketch_countsketch : &pwi_sketch_countmin;
  struct pawl_function_call call = call_of(width, parameters, is_signed, 1);
  pawl_status status = function->check(&call);
  if (status == PAWL_OK) function->apply(&call);
  return status;
}

static int clear(void **state) {
  (void)state;
  memset(stored, 0, sizeof stored);
  memset(other, 0, sizeof other);
  memset(pushed, 0xa5, sizeof pushed); /* the bytes between items are ignored */
  return 0;
}

/* --- shapes --------------------------------------------------------------------------------------------- */

static void test_a_shape_is_found_again_from_its_width(void **state) {
  (void)state;
  for (uint32_t depth = 1; depth <= PWI_SKETCH_DEPTH_MAX; depth++)
    for (uint32_t columns = 2; columns <= PWI_SKETCH_COLUMNS_MAX; columns *= 2) {
      struct pwi_sketch_bank bank, found;
      if (!pwi_sketch_bank_init(&bank, depth, columns, true)) continue;
      assert_true(pwi_sketch_bank_of(&found, pwi_sketch_bank_width(&bank), depth, true));
      assert_int_equal(found.columns, columns);
    }
}

static void test_shapes_that_cannot_be_are_refused(void **state) {
  (void)state;
  struct pwi_sketch_bank bank;
  assert_false(pwi_sketch_bank_init(&bank, 0, 1024, false));
  assert_false(pwi_sketch_bank_init(&bank, 9, 1024, false));
  assert_false(pwi_sketch_bank_init(&bank, 4, 1000, false));
  assert_false(pwi_sketch_bank_init(&bank, 4, 1, false));
  assert_false(pwi_sketch_bank_init(&bank, 8, 512, true)); /* 80 bits */
  assert_false(pwi_sketch_bank_of(&bank, 4099, 4, false));
  assert_false(pwi_sketch_bank_of(&bank, 2, 1, false));
  assert_false(pwi_sketch_bank_of(&bank, 4098, 3.5, false));
  assert_false(pwi_sketch_bank_of(&bank, 4098, NAN, false));
}

/* --- batches -------------------------------------------------------------------------------------------- */

/* Narrow items alone fill a row to 48 bits each and a head. */
static void test_a_full_batch_takes_less_than_fifty_bits_for_an_item(void **state) {
  (void)state;
  struct pwi_sketch_batch batch;
  uint32_t count = 0, narrow, wide;
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  assert_true(pwi_sketch_batch_is_empty(&batch, WIDTH));
  for (; pwi_sketch_batch_has_room(&batch); count++) pwi_sketch_batch_narrow(&batch, count, 1);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_true(pwi_sketch_batch_read(pushed, WIDTH, &narrow, &wide));
  assert_int_equal(narrow, count);
  assert_int_equal(wide, 0);
  assert_true(WIDTH * 64.0 / count < 48.2);
  assert_int_equal(pushed[WIDTH], UINT64_C(0xa5a5a5a5a5a5a5a5)); /* nothing past the row */
}

static void test_every_weight_arrives(void **state) {
  (void)state;
  static const uint64_t weights[] = {1, 2, 255, 256, 257, 1000000, UINT64_C(1) << 62};
  struct pwi_sketch_bank bank;
  struct pwi_sketch_batch batch;
  uint64_t total = 0;
  pwi_sketch_bank_init(&bank, 4, 1024, false);
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  for (uint64_t i = 0; i < 7; i++) {
    uint64_t hash = pwi_mix64(i);
    if (weights[i] <= PWI_SKETCH_NARROW_MOST)
      pwi_sketch_batch_narrow(&batch, hash, weights[i]);
    else
      pwi_sketch_batch_wide(&batch, hash, weights[i], false);
    total += weights[i];
  }
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
  assert_int_equal(stored[1], total);
  for (uint64_t i = 0; i < 7; i++) assert_int_equal(pwi_sketch_least(&bank, stored, pwi_mix64(i)), weights[i]);
}

static void test_a_malformed_batch_is_refused(void **state) {
  (void)state;
  struct pwi_sketch_batch batch;
  static const uint64_t heads[] = {0,
                                   UINT64_MAX,
                                   UINT64_C(0xb1) << 56 | 0xffffff,
                                   UINT64_C(0xb1) << 56 | UINT64_C(0xffffff) << 24,
                                   UINT64_C(0xb101) << 48,
                                   UINT64_C(0xb1) << 56 | 5462};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    pushed[0] = heads[i];
    assert_int_equal(push(WIDTH, by_four, false), PAWL_REFUSED);
  }
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_int_equal(push(4097, by_four, false), PAWL_REFUSED); /* a width that no bank has */
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_wide(&batch, 1, 0, false);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_REFUSED); /* no weight */
  assert_memory_equal(stored, other, sizeof stored);
}

static void test_a_weight_below_zero_is_for_count_sketches_only(void **state) {
  (void)state;
  struct pwi_sketch_bank bank;
  struct pwi_sketch_batch batch;
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_wide(&batch, 77, 5, true);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_REFUSED);
  assert_int_equal(push(WIDTH, by_four, true), PAWL_OK);
  pwi_sketch_bank_init(&bank, 4, 1024, true);
  assert_int_equal(pwi_sketch_median(&bank, stored, 77), -5);
  assert_int_equal(stored[1], 5);
}

/* Random words are refused or applied, and never read or written outside their row. */
static void test_any_words_are_safe(void **state) {
  (void)state;
  struct pwi_random random;
  uint64_t *row = pwi_alloc_zero(WIDTH, 8), *bank = pwi_alloc_zero(WIDTH, 8);
  int applied = 0;
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 400; round++) {
    for (size_t i = 0; i < WIDTH; i++) row[i] = pwi_random_u64(&random);
    if (round % 2) row[0] = UINT64_C(0xb1) << 56 | (row[0] & 0x1fff) | (row[0] >> 20 & 1) << 24;
    struct pawl_function_call call = call_of(WIDTH, by_four, round % 4 == 3, 1);
    call.pushed = row;
    call.stored = bank;
    const struct pawl_server_function *function = round % 4 == 3 ? &pwi_sketch_countsketch : &pwi_sketch_countmin;
    if (function->check(&call) != PAWL_OK) continue;
    function->apply(&call);
    applied++;
  }
  assert_true(applied > 0); /* such as those without wide items */
  pwi_free(row);
  pwi_free(bank);
}

/* --- overflow ------------------------------------------------------------------------------------------- */

static void push_weight(uint64_t weight, bool is_narrow) {
  struct pwi_sketch_batch batch;
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  if (is_narrow)
    pwi_sketch_batch_narrow(&batch, 9, weight);
  else
    pwi_sketch_batch_wide(&batch, 9, weight, false);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
}

static void test_weights_that_overflow_are_refused_and_nothing_is_applied(void **state) {
  (void)state;
  push_weight(UINT64_MAX - 10, false);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
  memcpy(other, stored, sizeof stored);
  push_weight(11, true);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OVERFLOW);
  push_weight(UINT64_MAX, false);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OVERFLOW);
  assert_memory_equal(stored, other, sizeof stored);
  push_weight(10, true); /* to the last one */
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
  assert_int_equal(stored[1], UINT64_MAX);
}

static void test_two_wide_weights_that_overflow_together_are_refused(void **state) {
  (void)state;
  struct pwi_sketch_batch batch;
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_wide(&batch, 1, UINT64_C(1) << 63, false);
  pwi_sketch_batch_wide(&batch, 2, UINT64_C(1) << 63, false);
  pwi_sketch_batch_end(&batch, WIDTH, 0);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OVERFLOW);
}

static void test_signed_totals_stay_below_half(void **state) {
  (void)state;
  push_weight((uint64_t)INT64_MAX - 1, false);
  assert_int_equal(push(WIDTH, by_four, true), PAWL_OK);
  push_weight(2, true);
  assert_int_equal(push(WIDTH, by_four, true), PAWL_OVERFLOW);
}

/* --- windows -------------------------------------------------------------------------------------------- */

static void push_in(uint64_t window, uint64_t hash, uint64_t weight) {
  struct pwi_sketch_batch batch;
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_narrow(&batch, hash, weight);
  pwi_sketch_batch_end(&batch, WIDTH, window);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
}

static void test_a_later_window_empties_the_bank_and_an_earlier_one_is_let_go(void **state) {
  (void)state;
  struct pwi_sketch_bank bank;
  pwi_sketch_bank_init(&bank, 4, 1024, false);
  push_in(7, 1, 3);
  push_in(17, 2, 4);
  assert_int_equal(pwi_sketch_least(&bank, stored, 1), 0);
  assert_int_equal(pwi_sketch_least(&bank, stored, 2), 4);
  push_in(7, 1, 9);
  assert_int_equal(stored[0], 17);
  assert_int_equal(stored[1], 4);
  assert_int_equal(pwi_sketch_least(&bank, stored, 1), 0);
}

static void test_a_full_bank_does_not_refuse_the_next_window(void **state) {
  (void)state;
  struct pwi_sketch_batch batch;
  push_weight(UINT64_MAX, false);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
  pwi_sketch_batch_begin(&batch, pushed, WIDTH);
  pwi_sketch_batch_wide(&batch, 9, UINT64_MAX, false);
  pwi_sketch_batch_end(&batch, WIDTH, 1);
  assert_int_equal(push(WIDTH, by_four, false), PAWL_OK);
}

/* --- against exact counts ------------------------------------------------------------------------------- */

#define THINGS 5000

/* Thing i has been seen counts[i] times: many once, few often. */
static void count_things(uint64_t counts[THINGS]) {
  for (uint64_t i = 0; i < THINGS; i++) counts[i] = 1 + 2 * THINGS / (i + 1);
}

static uint64_t hash_of(uint64_t thing) { return pwi_mix64(thing * 7919 + SEED); }

/* All things, through batches, from thing `first` on in steps. */
static void push_things(const uint64_t counts[THINGS], uint32_t width, const double *parameters, bool is_signed,
                        uint64_t first, uint64_t step) {
  struct pwi_sketch_batch batch;
  pwi_sketch_batch_begin(&batch, pushed, width);
  for (uint64_t i = first; i < THINGS; i += step) {
    if (!pwi_sketch_batch_has_room(&batch)) {
      pwi_sketch_batch_end(&batch, width, 0);
      assert_int_equal(push(width, parameters, is_signed), PAWL_OK);
      pwi_sketch_batch_begin(&batch, pushed, width);
    }
    if (counts[i] <= PWI_SKETCH_NARROW_MOST)
      pwi_sketch_batch_narrow(&batch, hash_of(i), counts[i]);
    else
      pwi_sketch_batch_wide(&batch, hash_of(i), counts[i], false);
  }
  pwi_sketch_batch_end(&batch, width, 0);
  assert_int_equal(push(width, parameters, is_signed), PAWL_OK);
}

/* For shapes of all three loops: never below the truth, and above it by more than the bound in fewer cases
 * than exp(-depth) allows. */
static void test_countmin_keeps_its_bound(void **state) {
  (void)state;
  static const struct { uint32_t depth, columns; } shapes[] = {{4, 1024}, {4, 512}, {2, 2048}, {4, 256}, {1, 4096}};
  static uint64_t counts[THINGS];
  count_things(counts);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    struct pwi_sketch_bank bank;
    double parameters[] = {shapes[s].depth, 1, 0};
    clear(NULL);
    assert_true(pwi_sketch_bank_init(&bank, shapes[s].depth, shapes[s].columns, false));
    push_things(counts, pwi_sketch_bank_width(&bank), parameters, false, 0, 1);
    double bound = pwi_sketch_error(&bank, stored);
    int beyond = 0;
    for (uint64_t i = 0; i < THINGS; i++) {
      uint64_t estimate = pwi_sketch_least(&bank, stored, hash_of(i));
      assert_true(estimate >= counts[i]);
      beyond += (double)(estimate - counts[i]) > bound;
    }
    assert_true(beyond <= THINGS * exp(-(double)shapes[s].depth));
  }
}

static void test_countsketch_is_right_on_average_and_within_its_error(void **state) {
  (void)state;
  static uint64_t counts[THINGS];
  struct pwi_sketch_bank bank;
  double parameters[] = {5, 1, 0}, sum = 0;
  int beyond = 0;
  count_things(counts);
  assert_true(pwi_sketch_bank_init(&bank, 5, 512, true));
  push_things(counts, pwi_sketch_bank_width(&bank), parameters, true, 0, 1);
  double error = pwi_sketch_error(&bank, stored);
  for (uint64_t i = 0; i < THINGS; i++) {
    double off = (double)pwi_sketch_median(&bank, stored, hash_of(i)) - (double)counts[i];
    sum += off;
    beyond += fabs(off) > 3 * error;
  }
  assert_true(fabs(sum / THINGS) < error);
  assert_true(beyond < THINGS / 100);
}

static void test_several_writers_give_the_same_result_as_one(void **state) {
  (void)state;
  static uint64_t counts[THINGS];
  count_things(counts);
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    clear(NULL);
    push_things(counts, WIDTH, by_four, is_signed, 0, 1);
    memcpy(other, stored, sizeof stored);
    memset(stored, 0, sizeof stored);
    for (uint64_t writer = 3; writer-- > 0;) push_things(counts, WIDTH, by_four, is_signed, writer, 3);
    assert_memory_equal(stored, other, sizeof stored);
  }
}

static void test_adding_in_place_is_the_same_as_a_batch(void **state) {
  (void)state;
  static uint64_t counts[THINGS];
  struct pwi_sketch_bank bank;
  count_things(counts);
  pwi_sketch_bank_of(&bank, WIDTH, by_two[0], false);
  push_things(counts, WIDTH, by_two, false, 0, 1);
  for (uint64_t i = 0; i < THINGS; i++) pwi_sketch_add(&bank, other, hash_of(i), counts[i], false);
  assert_memory_equal(stored, other, sizeof stored);
}

static void test_numbers_go_where_their_hash_says(void **state) {
  (void)state;
  static uint64_t rows[3 * WIDTH], wanted[3 * WIDTH], numbers[1000];
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    struct pwi_sketch_bank bank;
    pwi_sketch_bank_init(&bank, 4, 1024, is_signed);
    memset(rows, 0, sizeof rows);
    memset(wanted, 0, sizeof wanted);
    for (uint64_t i = 0; i < 1000; i++) {
      uint64_t hash = pwi_mix64(numbers[i] = i * i);
      pwi_sketch_add(&bank, wanted + (size_t)pwi_sketch_bank_number(hash, 3) * WIDTH, hash, 1, false);
    }
    pwi_sketch_add_numbers(&bank, rows, 3, numbers, 1000);
    assert_memory_equal(rows, wanted, sizeof rows);
  }
}

static void test_windows_add_up(void **state) {
  (void)state;
  struct pwi_sketch_bank bank;
  pwi_sketch_bank_init(&bank, 4, 1024, false);
  pwi_sketch_add(&bank, stored, 5, 10, false);
  pwi_sketch_add(&bank, other, 5, 7, false);
  stored[0] = 3, other[0] = 2;
  pwi_sketch_sum(&bank, stored, other);
  assert_int_equal(pwi_sketch_least(&bank, stored, 5), 17);
  assert_int_equal(stored[0], 3);
  other[1] = UINT64_MAX;
  pwi_sketch_sum(&bank, stored, other);
  assert_int_equal(stored[1], UINT64_MAX);
}

/* Windows keep within their types, and their sum does not: it must not come out lower than any of them. */
static void test_sums_of_windows_do_not_wrap(void **state) {
  (void)state;
  struct pwi_sketch_bank bank;
  pwi_sketch_bank_init(&bank, 4, 1024, false);
  pwi_sketch_add(&bank, stored, 5, UINT64_MAX - 3, false);
  pwi_sketch_add(&bank, other, 5, 10, false);
  pwi_sketch_sum(&bank, stored, other);
  assert_true(pwi_sketch_least(&bank, stored, 5) == UINT64_MAX);
  memset(stored, 0, sizeof stored);
  memset(other, 0, sizeof other);
  pwi_sketch_bank_init(&bank, 3, 1024, true);
  pwi_sketch_add(&bank, stored, pwi_mix64(1), INT64_MAX, false);
  pwi_sketch_add(&bank, stored, pwi_mix64(2), INT64_MAX, true);
  memcpy(other, stored, sizeof other);
  pwi_sketch_sum(&bank, stored, other);
  assert_true(pwi_sketch_median(&bank, stored, pwi_mix64(1)) == INT64_MAX);
  assert_true(pwi_sketch_median(&bank, stored, pwi_mix64(2)) == -INT64_MAX);
}

static void test_banks_are_chosen_evenly(void **state) {
  (void)state;
  uint32_t counts[48] = {0};
  for (uint64_t i = 0; i < 48000; i++) counts[pwi_sketch_bank_number(pwi_mix64(i), 48)]++;
  for (int i = 0; i < 48; i++) assert_true(counts[i] > 850 && counts[i] < 1150);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_shape_is_found_again_from_its_width),
      cmocka_unit_test(test_shapes_that_cannot_be_are_refused),
      cmocka_unit_test_setup(test_a_full_batch_takes_less_than_fifty_bits_for_an_item, clear),
      cmocka_unit_test_setup(test_every_weight_arrives, clear),
      cmocka_unit_test_setup(test_a_malformed_batch_is_refused, clear),
      cmocka_unit_test_setup(test_a_weight_below_zero_is_for_count_sketches_only, clear),
      cmocka_unit_test_setup(test_any_words_are_safe, clear),
      cmocka_unit_test_setup(test_weights_that_overflow_are_refused_and_nothing_is_applied, clear),
      cmocka_unit_test_setup(test_two_wide_weights_that_overflow_together_are_refused, clear),
      cmocka_unit_test_setup(test_signed_totals_stay_below_half, clear),
      cmocka_unit_test_setup(test_a_later_window_empties_the_bank_and_an_earlier_one_is_let_go, clear),
      cmocka_unit_test_setup(test_a_full_bank_does_not_refuse_the_next_window, clear),
      cmocka_unit_test_setup(test_countmin_keeps_its_bound, clear),
      cmocka_unit_test_setup(test_countsketch_is_right_on_average_and_within_its_error, clear),
      cmocka_unit_test_setup(test_several_writers_give_the_same_result_as_one, clear),
      cmocka_unit_test_setup(test_adding_in_place_is_the_same_as_a_batch, clear),
      cmocka_unit_test(test_numbers_go_where_their_hash_says),
      cmocka_unit_test_setup(test_windows_add_up, clear),
      cmocka_unit_test_setup(test_sums_of_windows_do_not_wrap, clear),
      cmocka_unit_test(test_banks_are_chosen_evenly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
