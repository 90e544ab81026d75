/* Trainings whose rows are items, against trainings in one process. */
#include "apps/bpmf/share/share_test.h"

static int open_peers(void **state) {
  struct pawl_session_options options;
  (void)state;
  opens_peers = true;
  if (!mkdtemp(folder)) return -1;
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &base));
  session = open_listening(pawl_session_address(base));
  return 0;
}

/* The promise: with slack 0, samples and errors are those of one process, bit for bit. */
static void test_workers_equal_one_process(void **state) {
  (void)state;
  struct scene scene = make_scene(150, 90, 0.2);
  struct pawl_bpmf_options options = options_of(5, 12);
  struct outcome alone = train_alone(&scene, &options);
  for (uint32_t workers = 1; workers <= 4; workers++)
    for (uint32_t threads = 1; threads <= 2; threads++)
      for (int variant = PAWL_ITEMS_PUSH; variant <= PAWL_ITEMS_PULL; variant++) {
        char what[64];
        struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, workers);
        snprintf(what, sizeof what, "%u workers, %u threads, variant %d", workers, threads, variant);
        sharing.variant = (enum pawl_items_variant)variant;
        options.threads = threads;
        struct outcome shared = train_shared(&scene, &sharing, &options);
        assert_same(&alone, &shared, what);
        assert_int_equal(shared.result.workers, workers);
        assert_int_equal(shared.result.workers_lost, 0);
        assert_int_equal(shared.result.repeated, 0);
        assert_int_equal(shared.result.threads, threads);
        assert_string_equal(shared.result.why, "iterations");
        assert_true(shared.result.work_s > 0);
        forget(&shared);
      }
  forget(&alone);
  forget_scene(&scene);
}

/* Ranks that fill no vector of the processor, test ratings by a split, and no errors of training ratings. */
static void test_other_ranks_and_a_split(void **state) {
  (void)state;
  struct scene scene = make_scene(70, 200, 0.1);
  struct scene split = {scene.ratings, NULL};
  for (uint32_t rank = 1; rank <= 17; rank += 8) {
    struct pawl_bpmf_options options = options_of(rank, 6);
    struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 3);
    options.test_share = 0.2;
    options.no_train_rmse = rank == 9;
    sharing.test_path_count = 0;
    struct outcome alone = train_alone(&split, &options), shared = train_shared(&split, &sharing, &options);
    assert_same(&alone, &shared, "a split");
    assert_true(shared.result.test_ratings > 0);
    forget(&alone), forget(&shared);
  }
  forget_scene(&scene);
}

/* Fewer users than workers: one of them has items only. */
static void test_workers_may_have_rows_of_one_side_only(void **state) {
  (void)state;
  struct scene scene = make_scene(2, 100, 0.5);
  struct pawl_bpmf_options options = options_of(3, 6);
  struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 4);
  struct outcome alone = train_alone(&scene, &options), shared = train_shared(&scene, &sharing, &options);
  assert_same(&alone, &shared, "two users");
  forget(&alone), forget(&shared);
  forget_scene(&scene);
}

static void test_more_workers_than_rows_are_refused(void **state) {
  (void)state;
  struct scene scene = make_scene(3, 4, 0.5);
  struct pawl_bpmf_options options = options_of(2, 6);
  struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 5);
  struct fleet fleet = {.count = 0};
  struct outcome shared = train_fleet(&scene, &sharing, &options, &fleet);
  assert_int_equal(shared.status, PAWL_INVALID);
  assert_non_null(strstr(shared.error, "among at most 4 workers, but there are 5; use --workers 4"));
  assert_int_equal(fleet.count, 0);
  forget_scene(&scene);
}

static void test_workers_with_other_ratings_are_refused(void **state) {
  (void)state;
  struct scene scene = make_scene(30, 20, 0.5);
  struct pawl_bpmf_options options = options_of(2, 6);
  struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 1);
  FILE *file = fopen(ratings_path, "a");
  assert_non_null(file);
  assert_true(fputs("u0\tv99\t4\n", file) >= 0);
  assert_int_equal(fclose(file), 0);
  struct outcome shared = train_shared(&scene, &sharing, &options);
  assert_int_equal(shared.status, PAWL_REFUSED);
  assert_non_null(strstr(shared.error, "differ from the scheduler's"));
  forget_scene(&scene);
}

/* With slack the samples differ, but not what is learned. */
static void test_slack_learns_the_same(void **state) {
  (void)state;
  struct scene scene = make_scene(150, 90, 0.3);
  struct pawl_bpmf_options options = options_of(4, 40);
  struct outcome alone = train_alone(&scene, &options);
  for (int variant = PAWL_ITEMS_PUSH; variant <= PAWL_ITEMS_PULL; variant++) {
    struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 3);
    sharing.variant = (enum pawl_items_variant)variant;
    sharing.slack = 8;
    struct outcome shared = train_shared(&scene, &sharing, &options);
    if (shared.status) fail_msg("%s", shared.error);
    if (fabs(shared.result.mean_test_rmse / alone.result.mean_test_rmse - 1) > 0.1)
      fail_msg("test RMSE %g, and %g of one process", shared.result.mean_test_rmse, alone.result.mean_test_rmse);
    assert_int_equal(shared.result.iterations, 40);
    forget(&shared);
  }
  forget(&alone);
  forget_scene(&scene);
}

static bool is_far(void *context) { return *(const uint64_t *)context >= 14; }
static void note(void *context, const struct pawl_bpmf_progress *progress) {
  *(uint64_t *)context = progress->iteration;
}

/* An interrupted training of two workers is completed by three, and by one process. */
static void test_checkpoints_do_not_depend_on_workers(void **state) {
  (void)state;
  struct scene scene = make_scene(100, 80, 0.2);
  struct pawl_bpmf_options options = options_of(5, 30), interrupted, resumed;
  struct outcome whole = train_alone(&scene, &options);
  char path[64];
  uint64_t seen = 0;
  snprintf(path, sizeof path, "%s/checkpoint", folder);
  options.checkpoint = path;
  for (uint32_t workers = 0; workers <= 3; workers += 3) {
    struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 2);
    interrupted = resumed = options;
    interrupted.progress = note;
    interrupted.stopping = is_far;
    interrupted.context = &seen;
    struct outcome half = train_shared(&scene, &sharing, &interrupted);
    if (half.status) fail_msg("%s", half.error);
    assert_string_equal(half.result.why, "interrupted");
    assert_true(half.result.iterations >= 14 && half.result.iterations < 30);
    resumed.resume = true;
    sharing.workers = workers;
    struct outcome rest = workers ? train_shared(&scene, &sharing, &resumed) : train_alone(&scene, &resumed);
    assert_same(&whole, &rest, workers ? "resumed by workers" : "resumed by one process");
    assert_int_equal(rest.result.resumed, half.result.iterations);
    forget(&half), forget(&rest);
    seen = 0;
  }
  forget(&whole);
  forget_scene(&scene);
}

static void test_a_lost_worker_is_replaced(void **state) {
  (void)state;
  assert_survives(PAWL_BPMF_ITEMS, PAWL_LOSS_REPLACE);
}

static void test_the_others_go_on_without_a_lost_worker(void **state) {
  (void)state;
  assert_survives(PAWL_BPMF_ITEMS, PAWL_LOSS_CONTINUE);
}

static void test_impossible_ways_to_share_are_refused(void **state) {
  (void)state;
  char error[PAWL_BPMF_TEXT] = "";
  struct pawl_bpmf_sharing sharing = sharing_of(PAWL_BPMF_ITEMS, 2);
  assert_true(pawl_bpmf_sharing_check(&sharing, error));
  sharing.variant = PAWL_ITEMS_PULL;
  assert_true(pawl_bpmf_sharing_check(&sharing, error));
  sharing.share = PAWL_BPMF_SERVERS;
  assert_false(pawl_bpmf_sharing_check(&sharing, error));
  assert_non_null(strstr(error, "--variant needs --share items"));
  sharing = sharing_of(PAWL_BPMF_ITEMS, 2);
  sharing.path_count = 0;
  assert_false(pawl_bpmf_sharing_check(&sharing, error));
  sharing = sharing_of(PAWL_BPMF_ITEMS, 2);
  sharing.workers_most = 1;
  assert_false(pawl_bpmf_sharing_check(&sharing, error));
  sharing = sharing_of(PAWL_BPMF_ITEMS, 2);
  sharing.slack = PAWL_BPMF_SLACK_MAX + 1;
  assert_false(pawl_bpmf_sharing_check(&sharing, error));
  sharing = sharing_of((enum pawl_bpmf_share)7, 2);
  assert_false(pawl_bpmf_sharing_check(&sharing, error));
}

int main(int count, char **words) {
  if (work_as_told(count, words)) return 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_other_ranks_and_a_split),
      cmocka_unit_test(test_workers_may_have_rows_of_one_side_only),
      cmocka_unit_test(test_more_workers_than_rows_are_refused),
      cmocka_unit_test(test_workers_with_other_ratings_are_refused),
      cmocka_unit_test(test_slack_learns_the_same),
      cmocka_unit_test(test_checkpoints_do_not_depend_on_workers),
      cmocka_unit_test(test_a_lost_worker_is_replaced),
      cmocka_unit_test(test_the_others_go_on_without_a_lost_worker),
      cmocka_unit_test(test_impossible_ways_to_share_are_refused),
  };
  return cmocka_run_group_tests_name("apps.bpmf.share.items", tests, open_peers, close_cluster);
}
