/* Pushes with an operand: the same as pushes of the rows that they describe, for every type and layout, however values
 * are cut; and bounds. */
#include <math.h>

#include "shard/testing.h"
#include "store/functions/functions.h"

#define SEED 20
#define SIZE 50
#define WIDTH 7
#define MOST 9 /* rows of an operand */

struct factors {
  double wide[SIZE * MOST], operand[MOST * WIDTH];
  float narrow[SIZE * MOST], narrow_operand[MOST * WIDTH];
  int64_t whole[SIZE * MOST], whole_operand[MOST * WIDTH];
  int32_t small[SIZE * MOST], small_operand[MOST * WIDTH];
};

/* Small whole numbers, so that sums are exact; a third of them 0. */
static void draw(struct pwi_random *random, struct factors *is) {
  for (size_t i = 0; i < SIZE * MOST; i++) {
    is->whole[i] = pwi_random_chance(random, 0.33) ? 0 : (int64_t)pwi_random_below(random, 20) - 10;
    is->narrow[i] = (float)(is->wide[i] = (double)(is->small[i] = (int32_t)is->whole[i]));
  }
  for (size_t i = 0; i < MOST * WIDTH; i++) {
    is->whole_operand[i] = (int64_t)pwi_random_below(random, 20) - 10;
    is->narrow_operand[i] = (float)(is->operand[i] = (double)(is->small_operand[i] = (int32_t)is->whole_operand[i]));
  }
}

static const void *values_of(const struct factors *is, enum pawl_type type, bool of_operand) {
  switch (type) {
  case PAWL_F32:
    return of_operand ? is->narrow_operand : is->narrow;
  case PAWL_F64:
    return of_operand ? is->operand : is->wide;
  case PAWL_I32:
    return of_operand ? is->small_operand : is->small;
  default:
    return of_operand ? is->whole_operand : is->whole;
  }
}

static struct pwi_request push_of(const struct factors *is, enum pawl_type type, size_t operand_rows, size_t rows) {
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 1, SIZE);
  request.terms.range = pawl_range_of(0, rows);
  request.terms.rows = rows;
  request.task = 1;
  request.value_type = request.operand_type = (uint8_t)type;
  request.operand = values_of(is, type, true);
  request.operand_count = operand_rows * WIDTH;
  return request;
}

static double value_at(const void *rows, enum pawl_type type, size_t i) {
  return type == PAWL_F32   ? (double)((const float *)rows)[i]
         : type == PAWL_F64 ? ((const double *)rows)[i]
         : type == PAWL_I32 ? (double)((const int32_t *)rows)[i]
                            : (double)((const int64_t *)rows)[i];
}

/* The values in three parts that end anywhere, at an odd address. */
static void cut(struct pwi_random *random, const void *values, size_t bytes, char *copy, struct iovec parts[3]) {
  size_t first = (size_t)pwi_random_below(random, bytes + 1),
         second = (size_t)pwi_random_below(random, bytes - first + 1);
  memcpy(copy + 1, values, bytes);
  parts[0] = (struct iovec){copy + 1, first};
  parts[1] = (struct iovec){copy + 1 + first, second};
  parts[2] = (struct iovec){copy + 1 + first + second, bytes - first - second};
}

static void check_push(struct pwi_random *random, enum pawl_type type, bool is_sparse, bool by_keys) {
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  static struct factors factors;
  static char copy[SIZE * MOST * 8 + 1];
  size_t rows = 1 + (size_t)pwi_random_below(random, SIZE), pairs = 1 + (size_t)pwi_random_below(random, MOST);
  uint64_t keys[SIZE];
  struct iovec parts[3];
  double got[SIZE * WIDTH];
  draw(random, &factors);
  open_vector(shard, entry_of(1, type, WIDTH, SIZE, is_sparse));
  struct pwi_request request = push_of(&factors, type, pairs, rows);
  cut(random, values_of(&factors, type, false), rows * pairs * pawl_type_size(type), copy, parts);
  request.values = parts;
  request.value_parts = 3;
  for (size_t i = 0; i < SIZE; i++) keys[i] = i;
  if (by_keys) {
    request.terms.keys = PWI_KEYS_LIST;
    request.terms.range = request.terms.claim;
    request.keys = keys;
  }
  assert_int_equal(pwi_shard_inspect(shard, &request), PAWL_OK);
  assert_int_equal(pwi_shard_expand(shard, &request), PAWL_OK);
  assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  assert_served(shard, &pull, got, PWI_CODE_OK, PAWL_OK);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < WIDTH; j++) {
      double wanted = 0;
      for (size_t k = 0; k < pairs; k++) wanted += factors.wide[i * pairs + k] * factors.operand[k * WIDTH + j];
      if (value_at(got, type, i * WIDTH + j) != wanted) fail_msg("type %d row %zu value %zu", (int)type, i, j);
    }
  for (size_t i = rows * WIDTH; i < SIZE * WIDTH; i++) assert_true(value_at(got, type, i) == 0);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_rows_are_sums_of_products(void **state) {
  static const enum pawl_type types[] = {PAWL_F32, PAWL_F64, PAWL_I32, PAWL_I64, PAWL_U64};
  struct pwi_random random;
  (void)state;
  print_message("seed %d\n", SEED);
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 200; round++) check_push(&random, types[round % 5], round / 5 % 2, round / 10 % 2);
}

/* Optimisers take a step with the rows. */
static void test_a_server_function_gets_the_rows(void **state) {
  (void)state;
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  struct pwi_entry entry = entry_of(1, PAWL_F64, 2, 3, false);
  const double u[] = {1, 2, 0, 3, -1, 0}, v[] = {1, 2, 3, 4}, wanted[] = {-3.5, -5, -4.5, -6, 0.5, 1};
  double got[6];
  snprintf(entry.is.rule, sizeof entry.is.rule, "sgd rate=0.5");
  entry.is.function = PAWL_RULE;
  entry.is.pushed_width = entry.is.stored_width = 2;
  open_vector(shard, entry);
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 1, 3);
  request.task = 1;
  request.values = &(struct iovec){(void *)(uintptr_t)u, sizeof u};
  request.value_parts = 1;
  request.value_type = request.operand_type = PAWL_F64;
  request.operand = v;
  request.operand_count = 4;
  assert_int_equal(pwi_shard_inspect(shard, &request), PAWL_OK);
  assert_int_equal(pwi_shard_expand(shard, &request), PAWL_OK);
  assert_served(shard, &request, NULL, PWI_CODE_OK, PAWL_OK);
  assert_served(
      shard,
      &(struct pwi_request){
          .terms = {.kind = PWI_REQUEST_PULL, .vector = {1}, .number = 1, .rows = 3, .claim = {0, 3}, .range = {0, 3}}},
      got, PWI_CODE_OK, PAWL_OK);
  for (size_t i = 0; i < 6; i++) assert_true(got[i] == wanted[i]);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void refuse(struct pwi_request request, struct pwi_entry entry, pawl_status wanted) {
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  open_vector(shard, entry);
  assert_string_equal(pawl_status_name(pwi_shard_inspect(shard, &request)), pawl_status_name(wanted));
  assert_int_equal(pwi_shard_expand(shard, &request), PAWL_OK); /* it does nothing */
  assert_non_null(request.operand);
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

static void test_operands_that_do_not_fit_are_refused(void **state) {
  (void)state;
  static struct factors factors;
  struct pwi_entry entry = entry_of(1, PAWL_F64, WIDTH, SIZE, false);
  struct pwi_request good = push_of(&factors, PAWL_F64, 3, SIZE), bad;
  struct iovec values = {factors.wide, (size_t)SIZE * 3 * 8};
  good.values = &values;
  good.value_parts = 1;
  bad = good;
  bad.operand_count = 3 * WIDTH - 1;
  refuse(bad, entry, PAWL_MISMATCH);
  bad.operand_count = 2 * WIDTH; /* fewer rows than the values have */
  refuse(bad, entry, PAWL_MISMATCH);
  bad.operand_count = 0;
  refuse(bad, entry, PAWL_MISMATCH);
  bad = good;
  bad.operand_type = PAWL_F32;
  refuse(bad, entry, PAWL_MISMATCH);
  bad = good;
  bad.terms.kind = PWI_REQUEST_RESTORE;
  refuse(bad, entry, PAWL_INVALID);
}

/* Rows that a few bytes describe, and products that would take hours. The values are never read. */
static void test_small_messages_make_no_large_work(void **state) {
  (void)state;
  const uint64_t size = UINT64_C(1) << 20;
  const uint32_t width = 1 << 10;
  static char nothing[8];
  struct pwi_request request = request_of(PWI_REQUEST_PUSH, 1, size);
  struct iovec values = {nothing, (size_t)size * 4};
  request.values = &values;
  request.value_parts = 1;
  request.value_type = request.operand_type = PAWL_F32;
  request.operand = nothing;
  request.operand_count = width;
  refuse(request, entry_of(1, PAWL_F32, width, size, false), PAWL_TOO_LARGE);
  request.terms.rows = request.terms.range.end = 1 << 13;
  request.operand_count = (size_t)width << 11; /* 2^13 rows of 2^11 values, beside 2^21 */
  values.iov_len = (size_t)4 << 24;
  refuse(request, entry_of(1, PAWL_F32, width, size, false), PAWL_TOO_LARGE);
  request.terms.rows = UINT64_MAX / 8;
  refuse(request, entry_of(1, PAWL_F32, width, size, false), PAWL_INVALID);
}

static void test_without_memory_nothing_changes(void **state) {
  (void)state;
  struct pwi_membership membership = membership_of(1);
  struct pwi_shard *shard = shard_of_all(&membership);
  static struct factors factors;
  open_vector(shard, entry_of(1, PAWL_F64, WIDTH, SIZE, false));
  struct iovec values = {factors.wide, (size_t)SIZE * 3 * 8};
  for (uint64_t fails = 0;; fails++) {
    struct pwi_request request = push_of(&factors, PAWL_F64, 3, SIZE);
    request.values = &values;
    request.value_parts = 1;
    pwi_memory_fail_after(fails);
    pawl_status status = pwi_shard_expand(shard, &request);
    if (!pwi_memory_fail_cancel()) break;
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_true(request.values == &values && request.operand);
  }
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_are_sums_of_products),
      cmocka_unit_test(test_a_server_function_gets_the_rows),
      cmocka_unit_test(test_operands_that_do_not_fit_are_refused),
      cmocka_unit_test(test_small_messages_make_no_large_work),
      cmocka_unit_test(test_without_memory_nothing_changes),
  };
  return cmocka_run_group_tests_name("shard.expand", tests, NULL, NULL);
}
