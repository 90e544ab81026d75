/* The map of residuals against a plain array over a small span of keys. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "wire/residuals.h"

#define SEED 7
#define SPAN 4000
#define WIDTH 3

struct batch {
  uint64_t keys[SPAN];
  int64_t values[SPAN * WIDTH];
  struct pawl_rows rows;
};

/* Each key with probability `part`, times `stride`. */
static void draw_batch(struct batch *batch, struct pwi_random *random, double part, uint64_t stride) {
  size_t count = 0;
  for (uint64_t key = 0; key < SPAN; key++) {
    if (!pwi_random_chance(random, part)) continue;
    batch->keys[count] = key * stride;
    for (size_t j = 0; j < WIDTH; j++)
      batch->values[count * WIDTH + j] = (int64_t)pwi_random_below(random, 2001) - 1000;
    count++;
  }
  batch->rows = (struct pawl_rows){.type = PAWL_I64,
                                   .width = WIDTH,
                                   .count = count,
                                   .keys = batch->keys,
                                   .values = batch->values,
                                   .room = SPAN,
                                   .bytes = WIDTH * sizeof(int64_t)};
}

static void add_all(int64_t sums[SPAN][WIDTH], const struct batch *batch, uint64_t stride) {
  for (size_t i = 0; i < batch->rows.count; i++)
    for (size_t j = 0; j < WIDTH; j++) sums[batch->keys[i] / stride][j] += batch->values[i * WIDTH + j];
}

static bool is_even(void *context, const void *row) {
  (void)context;
  int64_t first;
  memcpy(&first, row, sizeof first);
  return first % 2 == 0;
}

static bool never(void *context, const void *row) {
  (void)context;
  (void)row;
  return false;
}

static void assert_rising(const struct pawl_rows *rows) {
  for (size_t i = 1; i < rows->count; i++) assert_true(rows->keys[i - 1] < rows->keys[i]);
}

static void check_against_model(uint64_t stride, size_t limit) {
  static int64_t in[SPAN][WIDTH], out[SPAN][WIDTH];
  static struct batch batch;
  struct pwi_random random;
  struct pwi_residuals residuals;
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  pwi_random_init(&random, SEED, stride);
  pwi_residuals_init(&residuals, PAWL_I64, WIDTH, limit);
  for (int round = 0; round < 60; round++) {
    bool flush = round % 20 == 19;
    draw_batch(&batch, &random, pwi_random_unit(&random), stride);
    add_all(in, &batch, stride);
    assert_int_equal(pwi_residuals_reserve(&residuals, batch.rows.count, flush), PAWL_OK);
    if (flush)
      pwi_residuals_flush(&residuals, &batch.rows);
    else
      pwi_residuals_pass(&residuals, &batch.rows, is_even, NULL);
    assert_rising(&batch.rows);
    add_all(out, &batch, stride);
    assert_true(residuals.count <= limit);
    if (flush) assert_memory_equal(in, out, sizeof in);
  }
  assert_int_equal(residuals.count, 0);
  assert_int_equal(pwi_residuals_memory(&residuals), 0);
  pwi_residuals_fini(&residuals);
}

static void test_nothing_is_lost_or_doubled(void **state) {
  (void)state;
  print_message("seed %d\n", SEED);
  check_against_model(1, SPAN);
}

static void test_keys_far_apart_are_kept_as_well(void **state) {
  (void)state;
  check_against_model(8, SPAN);
  check_against_model(UINT64_C(1) << 40, SPAN);
  check_against_model(UINT64_MAX / SPAN, SPAN);
}

static void test_a_full_map_sends_instead(void **state) {
  (void)state;
  check_against_model(1, 1);
  check_against_model(1, 100);
}

static void test_a_limit_bounds_the_memory(void **state) {
  (void)state;
  static struct batch batch;
  struct pwi_random random;
  struct pwi_residuals residuals;
  pwi_random_init(&random, SEED, 1);
  pwi_residuals_init(&residuals, PAWL_I64, WIDTH, 64);
  for (int round = 0; round < 10; round++) {
    draw_batch(&batch, &random, 1, 1);
    assert_int_equal(pwi_residuals_reserve(&residuals, batch.rows.count, false), PAWL_OK);
    pwi_residuals_pass(&residuals, &batch.rows, never, NULL);
    assert_int_equal(residuals.count, 64);
    assert_int_equal(batch.rows.count, SPAN - 64);
  }
  assert_true(pwi_residuals_memory(&residuals) <= 128 * (8 + WIDTH * 8) * 3 / 2);
  pwi_residuals_fini(&residuals);
}

static void test_a_row_of_zeros_is_neither_sent_nor_held(void **state) {
  (void)state;
  static struct batch batch;
  struct pwi_random random;
  struct pwi_residuals residuals;
  pwi_random_init(&random, SEED, 2);
  pwi_residuals_init(&residuals, PAWL_I64, WIDTH, SPAN);
  draw_batch(&batch, &random, 1, 1);
  assert_int_equal(pwi_residuals_reserve(&residuals, batch.rows.count, false), PAWL_OK);
  pwi_residuals_pass(&residuals, &batch.rows, never, NULL);
  size_t held = residuals.count;
  draw_batch(&batch, &random, 1, 1);
  memset(batch.values, 0, sizeof batch.values);
  pwi_residuals_pass(&residuals, &batch.rows, never, NULL);
  assert_int_equal(batch.rows.count, 0);
  assert_int_equal(residuals.count, held);
  pwi_residuals_fini(&residuals);
}

static void test_rests_that_cancel_out_are_not_held(void **state) {
  (void)state;
  static struct batch batch;
  struct pwi_random random;
  struct pwi_residuals residuals;
  pwi_residuals_init(&residuals, PAWL_I64, WIDTH, SPAN);
  for (int sign = 1; sign >= -1; sign -= 2) {
    pwi_random_init(&random, SEED, 4);
    draw_batch(&batch, &random, 0.5, 1);
    for (size_t i = 0; i < batch.rows.count * WIDTH; i++) batch.values[i] *= sign;
    assert_int_equal(pwi_residuals_reserve(&residuals, batch.rows.count, false), PAWL_OK);
    pwi_residuals_pass(&residuals, &batch.rows, never, NULL);
    assert_int_equal(batch.rows.count, 0);
    assert_true((residuals.count > 0) == (sign > 0));
  }
  pwi_residuals_fini(&residuals);
}

static void test_without_memory_the_rests_stay(void **state) {
  (void)state;
  static int64_t in[SPAN][WIDTH], out[SPAN][WIDTH];
  static struct batch batch;
  struct pwi_random random;
  struct pwi_residuals residuals;
  int failed = 0;
  pwi_random_init(&random, SEED, 3);
  pwi_residuals_init(&residuals, PAWL_I64, WIDTH, SPAN);
  for (int round = 0; round < 12; round++) {
    bool flush = round == 11;
    draw_batch(&batch, &random, 0.02 * (1 << round / 2), 1);
    add_all(in, &batch, 1);
    for (uint64_t n = 0;; n++) {
      pwi_memory_fail_after(n);
      pawl_status status = pwi_residuals_reserve(&residuals, batch.rows.count, flush);
      if (!pwi_memory_fail_cancel()) break;
      assert_int_equal(status, PAWL_NO_MEMORY);
      failed++;
    }
    if (flush)
      pwi_residuals_flush(&residuals, &batch.rows);
    else
      pwi_residuals_pass(&residuals, &batch.rows, is_even, NULL);
    add_all(out, &batch, 1);
  }
  assert_true(failed >= 4);
  assert_memory_equal(in, out, sizeof in);
  pwi_residuals_fini(&residuals);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_is_lost_or_doubled),
      cmocka_unit_test(test_keys_far_apart_are_kept_as_well),
      cmocka_unit_test(test_a_full_map_sends_instead),
      cmocka_unit_test(test_a_limit_bounds_the_memory),
      cmocka_unit_test(test_a_row_of_zeros_is_neither_sent_nor_held),
      cmocka_unit_test(test_rests_that_cancel_out_are_not_held),
      cmocka_unit_test(test_without_memory_the_rests_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
