/* Bytes that count against the quota of a space, and that no longer do. */
#include "shard/shard_testing.h"

static uint64_t bytes_held(const struct fixture *f) {
  struct pwi_report report;
  pwi_shard_report(f->shard, &report);
  return report.bytes;
}

/* There is room for the rows of one vector only, and vector 2 has it. */
static void start_full(struct fixture *f) {
  start(f, UINT64_MAX, 0);
  open_vector(f->shard, entry_of(3, PAWL_I64, 1, SIZE, true));
  uint64_t empty = bytes_held(f);
  struct pwi_request push = push_of(2, 0, 5, &f->values);
  assert_served(f->shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  uint64_t rows = bytes_held(f) - empty;
  assert_true(rows >= sizeof f->ones);
  assert_int_equal(pwi_shard_set_quota(f->shard, "test", bytes_held(f) + rows / 4), PAWL_OK);
  push = push_of(3, 0, 6, &f->values);
  assert_served(f->shard, &push, NULL, PWI_CODE_REFUSED, PAWL_QUOTA_MEMORY);
}

static void test_a_deleted_vector_leaves_its_bytes_to_others(void **state) {
  struct fixture f;
  (void)state;
  start_full(&f);
  pwi_shard_close(f.shard, (struct pwi_vector_id){2});
  struct pwi_request push = push_of(3, 6, 7, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* Its next incarnation begins empty. */
static void test_a_vector_that_is_loaded_leaves_the_bytes_of_its_earlier_rows(void **state) {
  struct fixture f;
  (void)state;
  start_full(&f);
  struct pwi_entry loaded = entry_of(2, PAWL_I64, 1, SIZE, true);
  loaded.incarnation = 1;
  assert_int_equal(pwi_shard_renew(f.shard, &loaded), PAWL_OK);
  struct pwi_request push = push_of(3, 6, 7, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

/* Its own bytes count once. */
static void test_a_vector_may_grow_until_its_space_is_full(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX, 0);
  struct pwi_request all = push_of(2, 0, 6, &f.values), half = push_of(2, 0, 5, &f.values);
  assert_served(f.shard, &all, NULL, PWI_CODE_OK, PAWL_OK);
  uint64_t full = bytes_held(&f);
  stop(&f);
  start(&f, UINT64_MAX, 0);
  uint64_t empty = bytes_held(&f);
  f.values.iov_len /= 2;
  half.terms.range = pawl_range_of(0, SIZE / 2);
  half.terms.rows = SIZE / 2;
  assert_served(f.shard, &half, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pwi_shard_set_quota(f.shard, "test", full + (bytes_held(&f) - empty) / 2), PAWL_OK);
  f.values.iov_len *= 2;
  all.terms.prior = 5;
  assert_served(f.shard, &all, NULL, PWI_CODE_OK, PAWL_OK);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_deleted_vector_leaves_its_bytes_to_others),
      cmocka_unit_test(test_a_vector_that_is_loaded_leaves_the_bytes_of_its_earlier_rows),
      cmocka_unit_test(test_a_vector_may_grow_until_its_space_is_full),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
