/* Which keys an incremental checkpoint has. */
#include "shard/inside.h"
#include "shard/shard_testing.h"

/* The first run of keys of vector 1 that changed after `since`. */
static bool next_changed(const struct fixture *f, uint64_t since, struct pawl_range *run_out) {
  const struct pwi_vector *vector = pwi_shard_vector(f->shard, (struct pwi_vector_id){1});
  struct pwi_copying copying;
  pwi_copying_init(&copying, WHOLE_RING);
  copying.is_partial = true;
  copying.since = since;
  return pwi_vector_next_run(vector, pawl_range_of(0, SIZE), &copying, run_out);
}

/* A checkpoint without a changed row would be worse than one with all rows. */
static void test_all_keys_count_as_changed_if_memory_for_their_list_is_lacking(void **state) {
  struct fixture f;
  struct pawl_range run;
  (void)state;
  start(&f, UINT64_MAX, 0);
  pwi_shard_begin_marks(f.shard);
  struct pwi_request push = push_of(1, 0, 1, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  pwi_shard_mark(f.shard, &push, WHOLE_RING, 7);
  assert_false(next_changed(&f, 7, &run));
  assert_true(next_changed(&f, 6, &run));
  pwi_memory_fail_after(0);
  bool found = next_changed(&f, 6, &run);
  assert_true(pwi_memory_fail_cancel());
  assert_true(found);
  assert_true(run.begin == 0 && run.end == SIZE);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_keys_count_as_changed_if_memory_for_their_list_is_lacking),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
