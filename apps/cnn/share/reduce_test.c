/* Trainings whose workers average, without servers, against trainings in one process. */
#include "apps/cnn/share/share_test.h"

static struct pawl_cnn_sharing reduce_of(uint32_t workers, const char *graph, enum pawl_reduce_mode mode) {
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_REDUCE, workers);
  sharing.graph = graph;
  sharing.mode = mode;
  return sharing;
}

/* The mean of the gradients is the gradient of the batch, so the steps are those of one process, but for rounding. */
static void test_averaged_gradients_equal_one_process(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 88, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = reduce_of(3, "complete", PAWL_REDUCE_NOTIFY_ACK);
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, images, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  assert_int_equal(shared.result.steps, 12);
  assert_int_equal(shared.result.workers, 3);
  assert_int_equal(shared.result.workers_lost, 0);
  assert_true(shared.result.test_error >= 0);
  forget(&alone), forget(&shared);
  pawl_images_destroy(images);
}

/* One worker has no neighbours, and mixes nothing. */
static void test_one_worker_equals_one_process(void **state) {
  (void)state;
  struct pawl_images *images = make_images(2, 40, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = reduce_of(1, NULL, PAWL_REDUCE_NOTIFY_ACK);
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, NULL, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  forget(&alone), forget(&shared);
  pawl_images_destroy(images);
}

/* Models that are mixed in notify-ack mode are the same in every run: each step uses exactly one version of each
 * neighbour. */
static void test_mixed_models_are_the_same_in_every_run(void **state) {
  (void)state;
  struct pawl_images *images = make_images(3, 48, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = reduce_of(3, "ring", PAWL_REDUCE_NOTIFY_ACK);
  options.rate = 0.001;
  struct outcome alone = train_alone(images, &options), once = train_shared(images, NULL, &sharing, &options),
                 again = train_shared(images, NULL, &sharing, &options);
  assert_true(distance(&once, &again) < 1e-7);
  assert_true(distance(&once, &alone) > 1e-6); /* a ring is not complete, and each worker has its own momentum */
  assert_true(fabs(once.result.loss - alone.result.loss) < 0.5);
  forget(&alone), forget(&once), forget(&again);
  pawl_images_destroy(images);
}

static void test_every_mode_learns(void **state) {
  (void)state;
  struct pawl_images *images = make_images(4, 120, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  options.epochs = 4;
  options.rate = 0.002;
  for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= PAWL_REDUCE_ASYNC; mode++) {
    struct pawl_cnn_sharing sharing = reduce_of(3, "root", (enum pawl_reduce_mode)mode);
    struct outcome shared = train_shared(images, images, &sharing, &options);
    if (shared.status) fail_msg("mode %d: %s", mode, shared.error);
    if (!(shared.result.test_error <= 0.1)) fail_msg("mode %d: error %g", mode, shared.result.test_error);
    forget(&shared);
  }
  pawl_images_destroy(images);
}

static void test_divergence_ends_the_training(void **state) {
  (void)state;
  struct pawl_images *images = make_images(5, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  options.rate = 1e10;
  for (int complete = 0; complete < 2; complete++) {
    struct pawl_cnn_sharing sharing = reduce_of(2, complete ? "complete" : "ring", PAWL_REDUCE_NOTIFY_ACK);
    struct outcome shared = train_shared(images, NULL, &sharing, &options);
    assert_int_equal(shared.status, PAWL_DIVERGED);
    assert_non_null(strstr(shared.error, "use a lower learning rate than 1e+10"));
    assert_null(shared.model);
  }
  pawl_images_destroy(images);
}

/* Before there is a job, so that no worker would find it. */
static void test_a_graph_that_does_not_fit_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *graph, *text;
  } wrong[] = {{"spiral", "spiral"}, {"hypercube", "graph hypercube: "}, {"chain", "not strongly connected"}};
  struct pawl_images *images = make_images(6, 32, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pawl_cnn_sharing sharing = reduce_of(3, wrong[i].graph, PAWL_REDUCE_NOTIFY_ACK);
    struct outcome shared = {.model = NULL};
    shared.status =
        pawl_cnn_train_shared(session, &sharing, images, NULL, &options, &shared.model, &shared.result, shared.error);
    assert_int_equal(shared.status, PAWL_INVALID);
    assert_non_null(strstr(shared.error, wrong[i].text));
    assert_null(shared.model);
  }
  pawl_images_destroy(images);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_averaged_gradients_equal_one_process),
      cmocka_unit_test(test_one_worker_equals_one_process),
      cmocka_unit_test(test_mixed_models_are_the_same_in_every_run),
      cmocka_unit_test(test_every_mode_learns),
      cmocka_unit_test(test_divergence_ends_the_training),
      cmocka_unit_test(test_a_graph_that_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests_name("apps.cnn.share.reduce", tests, open_peers, close_cluster);
}
