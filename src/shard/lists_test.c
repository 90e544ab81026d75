/* Lists of keys that a shard keeps, for requests that name them by their signature. */
#include "shard/shard_testing.h"

static void test_a_kept_list_is_known_by_its_signature(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7, 42};
  f.values.iov_len = 3 * sizeof(int64_t);
  for (uint64_t vector = 1; vector <= 2; vector++) {
    struct pwi_request push = push_of(vector, 0, 5, &f.values);
    by_list(&push, keys, 3);
    push.terms.keys = PWI_KEYS_SIGNED;
    assert_served(f.shard, &push, NULL, PWI_CODE_WANTED, PAWL_OK);
    push.terms.keys = PWI_KEYS_LIST;
    push.terms.keep = true;
    assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
    push.terms.keep = false;
    push.terms.keys = PWI_KEYS_SIGNED;
    push.keys = NULL;
    push.terms.prior = 5;
    push.task = 6;
    assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
    assert_int_equal(pull_one(f.shard, vector, 42), 2);
    assert_int_equal(pull_one(f.shard, vector, 41), 0);
    push.terms.rows = 2;
    push.terms.prior = 6;
    push.task = 7;
    assert_served(f.shard, &push, NULL, PWI_CODE_WANTED, PAWL_OK);
  }
  stop(&f);
}

static void test_a_signature_that_is_not_the_lists_is_not_believed(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7, 42}, others[] = {4, 7, 42};
  int64_t out[3];
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  by_list(&pull, keys, 3);
  pull.terms.keep = true;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  pull.keys = others;
  assert_served(f.shard, &pull, out, PWI_CODE_FAILED, PAWL_INVALID);
  stop(&f);
}

static void test_a_kept_list_follows_rows_that_move_in_the_table(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {50, 60};
  int64_t tens[] = {10, 20}, out[2];
  struct iovec values = {tens, sizeof tens};
  struct pwi_request push = push_of(2, 0, 1, &values), pull = request_of(PWI_REQUEST_PULL, 2, SIZE);
  by_list(&push, keys, 2);
  push.terms.keep = true;
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_request all = push_of(2, 1, 2, &f.values); /* new keys before and between */
  assert_served(f.shard, &all, NULL, PWI_CODE_OK, PAWL_OK);
  by_list(&pull, keys, 2);
  pull.terms.keys = PWI_KEYS_SIGNED;
  pull.keys = NULL;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(out[0], 11);
  assert_int_equal(out[1], 21);
  stop(&f);
}

static void test_a_list_kept_by_a_pull_makes_its_keys_when_it_is_pushed(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {50, 60};
  int64_t out[2] = {7, 7};
  f.values.iov_len = sizeof out;
  struct pwi_request push = push_of(2, 0, 1, &f.values), pull = request_of(PWI_REQUEST_PULL, 2, SIZE);
  by_list(&pull, keys, 2);
  by_list(&push, keys, 2);
  pull.terms.keep = true;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(out[0], 0);
  struct pwi_vector_figures figures;
  assert_int_equal(pwi_shard_figures(f.shard, pull.terms.vector, &figures), PAWL_OK);
  assert_int_equal(figures.rows, 0); /* to be read costs nothing */
  push.terms.keys = PWI_KEYS_SIGNED;
  push.keys = NULL;
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pull_one(f.shard, 2, 60), 1);
  assert_int_equal(pwi_shard_figures(f.shard, pull.terms.vector, &figures), PAWL_OK);
  assert_true(figures.rows == 2 && figures.pushes == 1 && figures.pulls == 2);
  stop(&f);
}

static void test_the_list_not_used_for_longest_goes_first(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 4000);
  uint64_t keys[20][SIZE / 2];
  int64_t out[SIZE];
  struct pwi_request pulls[20];
  struct pwi_report report;
  for (size_t i = 0; i < 20; i++) {
    for (size_t k = 0; k < SIZE / 2; k++) keys[i][k] = k < i ? k : k + 1;
    pulls[i] = request_of(PWI_REQUEST_PULL, 1, SIZE);
    by_list(&pulls[i], keys[i], SIZE / 2);
    pulls[i].terms.keep = true;
    assert_served(f.shard, &pulls[i], out, PWI_CODE_OK, PAWL_OK);
    assert_served(f.shard, &pulls[0], out, PWI_CODE_OK, PAWL_OK); /* this one stays in use */
  }
  pwi_shard_report(f.shard, &report);
  assert_true(report.cached_lists >= 2 && report.cached_lists < 20 && report.cached_bytes <= 4000);
  pulls[0].terms.keys = pulls[1].terms.keys = pulls[19].terms.keys = PWI_KEYS_SIGNED;
  assert_served(f.shard, &pulls[0], out, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &pulls[19], out, PWI_CODE_OK, PAWL_OK);
  assert_served(f.shard, &pulls[1], out, PWI_CODE_WANTED, PAWL_OK);
  stop(&f);
}

static struct pwi_request kept(uint64_t vector, const uint64_t *keys, size_t count) {
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, vector, SIZE);
  by_list(&pull, keys, count);
  pull.terms.keep = true;
  return pull;
}

static void assert_known(struct pwi_shard *shard, struct pwi_request pull, bool is_known) {
  int64_t out[SIZE];
  pull.terms.keys = PWI_KEYS_SIGNED;
  pull.terms.keep = false;
  pull.keys = NULL;
  assert_served(shard, &pull, out, is_known ? PWI_CODE_OK : PWI_CODE_WANTED, PAWL_OK);
}

static void test_a_list_that_is_named_by_its_signature_stays(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 4000);
  uint64_t keys[20][SIZE / 2];
  int64_t out[SIZE];
  struct pwi_request pulls[20];
  for (size_t i = 0; i < 20; i++) {
    for (size_t k = 0; k < SIZE / 2; k++) keys[i][k] = k < i ? k : k + 1;
    pulls[i] = kept(1, keys[i], SIZE / 2);
    assert_served(f.shard, &pulls[i], out, PWI_CODE_OK, PAWL_OK);
    assert_known(f.shard, pulls[0], true);
  }
  assert_known(f.shard, pulls[1], false);
  stop(&f);
}

static void test_a_list_for_which_there_is_no_memory_is_not_kept(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 100, 0);
  uint64_t keys[SIZE / 2];
  int64_t out[SIZE];
  for (size_t k = 0; k < SIZE / 2; k++) keys[k] = k;
  struct pwi_request pull = kept(1, keys, SIZE / 2);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_known(f.shard, pull, false);
  stop(&f);
}

/* A log entry pins the list of its push until all members have it. */
static void test_a_list_that_was_pinned_stays(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7};
  int64_t out[2];
  struct pwi_request pull = kept(1, keys, 2);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  struct pwi_list *list = pwi_shard_pin_list(f.shard, pull.terms.vector, pull.signature);
  assert_non_null(list);
  pwi_list_unpin(list);
  assert_known(f.shard, pull, true);
  stop(&f);
}

static void test_a_vector_that_is_closed_takes_no_other_lists_with_it(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7};
  int64_t out[2];
  struct pwi_request pull = kept(2, keys, 2);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  pwi_shard_close(f.shard, (struct pwi_vector_id){1});
  assert_known(f.shard, pull, true);
  stop(&f);
}

static void test_a_list_of_another_vector_is_not_the_same(void **state) {
  (void)state;
  struct fixture f;
  start(&f, UINT64_MAX, 0);
  uint64_t keys[] = {3, 7};
  int64_t out[2];
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, 1, SIZE);
  by_list(&pull, keys, 2);
  pull.terms.keep = true;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  pull.terms.keys = PWI_KEYS_SIGNED;
  pull.terms.vector.id = 2;
  assert_served(f.shard, &pull, out, PWI_CODE_WANTED, PAWL_OK);
  pwi_shard_close(f.shard, (struct pwi_vector_id){1});
  open_vector(f.shard, entry_of(1, PAWL_I64, 1, SIZE, false));
  pull.terms.vector.id = 1;
  assert_served(f.shard, &pull, out, PWI_CODE_WANTED, PAWL_OK);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_kept_list_is_known_by_its_signature),
      cmocka_unit_test(test_a_signature_that_is_not_the_lists_is_not_believed),
      cmocka_unit_test(test_a_kept_list_follows_rows_that_move_in_the_table),
      cmocka_unit_test(test_a_list_kept_by_a_pull_makes_its_keys_when_it_is_pushed),
      cmocka_unit_test(test_the_list_not_used_for_longest_goes_first),
      cmocka_unit_test(test_a_list_that_is_named_by_its_signature_stays),
      cmocka_unit_test(test_a_list_for_which_there_is_no_memory_is_not_kept),
      cmocka_unit_test(test_a_list_that_was_pinned_stays),
      cmocka_unit_test(test_a_vector_that_is_closed_takes_no_other_lists_with_it),
      cmocka_unit_test(test_a_list_of_another_vector_is_not_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
