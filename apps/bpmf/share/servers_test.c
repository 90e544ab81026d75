/* Trainings whose rows lie on servers, against trainings in one process. */
#include "apps/bpmf/share/share_test.h"

static void test_workers_equal_one_process(void **state) {
  (void)state;
  struct scene scene = make_scene(150, 90, 0.2);
  struct pawl_bpmf_options options = options_of(5, 12);
  struct outcome alone = train_alone(&scene, &options);
  for (uint32_t workers = 1; workers <= 3; workers++) {
    struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_SERVERS, workers);
    options.threads = workers % 2 + 1;
    struct outcome shared = train_shared(&scene, &sharing, &options);
    assert_same(&alone, &shared, "servers");
    assert_int_equal(shared.result.workers, workers);
    assert_true(shared.result.bytes_sent > 0);
    forget(&shared);
  }
  forget(&alone);
  forget_scene(&scene);
}

static void test_slack_learns_the_same(void **state) {
  (void)state;
  struct scene scene = make_scene(150, 90, 0.3);
  struct pawl_bpmf_options options = options_of(4, 40);
  struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_SERVERS, 3);
  struct outcome alone = train_alone(&scene, &options);
  sharing.slack = 4;
  struct outcome shared = train_shared(&scene, &sharing, &options);
  if (shared.status) fail_msg("%s", shared.error);
  if (fabs(shared.result.mean_test_rmse / alone.result.mean_test_rmse - 1) > 0.1)
    fail_msg("test RMSE %g, and %g of one process", shared.result.mean_test_rmse, alone.result.mean_test_rmse);
  forget(&alone), forget(&shared);
  forget_scene(&scene);
}

static void test_a_lost_worker_is_replaced(void **state) {
  (void)state;
  assert_survives(PAWL_BPMF_SERVERS, PAWL_LOSS_REPLACE);
}

static void test_the_others_go_on_without_a_lost_worker(void **state) {
  (void)state;
  assert_survives(PAWL_BPMF_SERVERS, PAWL_LOSS_CONTINUE);
}

int main(int count, char **words) {
  if (work_as_told(count, words)) return 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_slack_learns_the_same),
      cmocka_unit_test(test_a_lost_worker_is_replaced),
      cmocka_unit_test(test_the_others_go_on_without_a_lost_worker),
  };
  return cmocka_run_group_tests_name("apps.bpmf.share.servers", tests, open_cluster, close_cluster);
}
