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

int main(int count, char **words) {
  if (work_as_told(count, words)) return 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
  };
  return cmocka_run_group_tests_name("apps.bpmf.share.items", tests, open_peers, close_cluster);
}
