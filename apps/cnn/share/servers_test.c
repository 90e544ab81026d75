/* Trainings whose parameters lie on servers, against trainings in one process. */
#include "apps/cnn/share/share_test.h"

/* The same seed, batch and images: the same steps, but for rounding. The last batch of an epoch is smaller. */
static void test_two_workers_equal_one_process(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 88, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, images, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  assert_true(fabs(alone.result.loss - shared.result.loss) < 1e-4);
  assert_true(alone.result.train_error == shared.result.train_error);
  assert_int_equal(shared.result.steps, 12);
  assert_int_equal(shared.result.workers, 2);
  assert_int_equal(shared.result.workers_lost, 0);
  assert_true(shared.result.test_error >= 0 && shared.result.bytes_sent > 0);
  assert_string_equal(shared.result.why, "epochs");
  options.seed = 2;
  struct outcome other = train_shared(images, NULL, &sharing, &options);
  assert_true(distance(&alone, &other) > 1e-3);
  forget(&alone), forget(&shared), forget(&other);
  pawl_images_destroy(images);
}

/* Dropout is drawn for each image of a step, whoever computes it. */
static void test_dropout_does_not_depend_on_workers(void **state) {
  (void)state;
  struct pawl_images *images = make_images(3, 20, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("vgg");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  options.epochs = 1;
  options.batch = 5;
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, NULL, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  forget(&alone), forget(&shared);
  pawl_images_destroy(images);
}

/* Some workers have no image of a batch of two. */
static void test_batches_may_be_smaller_than_the_number_of_workers(void **state) {
  (void)state;
  struct pawl_images *images = make_images(4, 9, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 3);
  options.batch = 2;
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, NULL, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  forget(&alone), forget(&shared);
  pawl_images_destroy(images);
}

/* With NOTIFY_ACK the second step is computed before the results of the first one are there. Without momentum, decay and
 * a schedule, two steps with half of the images each are then one step with all images, at twice the rate. */
static void test_notify_ack_computes_while_the_last_changes_travel(void **state) {
  (void)state;
  struct pawl_images *images = make_images(9, 32, SIZE, CLASSES);
  struct pawl_cnn_options halves = options_of("lenet"), whole;
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  halves.epochs = 1;
  halves.rate = 0.01;
  halves.momentum = halves.decay = 0;
  halves.schedule = PAWL_CNN_CONSTANT;
  whole = halves;
  whole.batch = 32;
  whole.rate = 2 * halves.rate;
  struct outcome at_once = train_alone(images, &whole), in_turn = train_alone(images, &halves);
  sharing.push = PAWL_CNN_PUSH_NOTIFY_ACK;
  struct outcome ahead = train_shared(images, NULL, &sharing, &halves);
  assert_true(distance(&ahead, &at_once) < CLOSE);
  assert_true(distance(&ahead, &in_turn) > 10 * CLOSE);
  assert_int_equal(ahead.result.steps, 2);
  forget(&at_once), forget(&in_turn), forget(&ahead);
  pawl_images_destroy(images);
}

static void test_every_mode_learns(void **state) {
  (void)state;
  struct pawl_images *images = make_images(10, 120, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 3);
  options.epochs = 4;
  options.rate = 0.002;
  for (int push = PAWL_CNN_PUSH_BSP; push <= PAWL_CNN_PUSH_ASYNC; push++) {
    sharing.push = (enum pawl_cnn_push)push;
    struct outcome shared = train_shared(images, images, &sharing, &options);
    if (shared.status) fail_msg("mode %d: %s", push, shared.error);
    if (!(shared.result.test_error <= 0.1)) fail_msg("mode %d: error %g", push, shared.result.test_error);
    assert_int_equal(shared.result.steps, 32);
    forget(&shared);
  }
  pawl_images_destroy(images);
}

static void test_divergence_ends_the_training_in_every_mode(void **state) {
  (void)state;
  struct pawl_images *images = make_images(5, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  options.rate = 1e10;
  for (int push = PAWL_CNN_PUSH_NOTIFY_ACK; push <= PAWL_CNN_PUSH_ASYNC; push++) {
    sharing.push = (enum pawl_cnn_push)push;
    struct outcome shared = train_shared(images, NULL, &sharing, &options);
    assert_int_equal(shared.status, PAWL_DIVERGED);
    assert_non_null(strstr(shared.error, "use a lower learning rate than 1e+10"));
    assert_null(shared.model);
  }
  pawl_images_destroy(images);
}

/* All workers stop at the same step, and the sentence is that of one process. */
static void test_divergence_ends_the_training(void **state) {
  (void)state;
  struct pawl_images *images = make_images(5, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  options.rate = 1e10;
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, NULL, &sharing, &options);
  assert_int_equal(alone.status, PAWL_DIVERGED);
  assert_int_equal(shared.status, PAWL_DIVERGED);
  assert_string_equal(alone.error, shared.error);
  assert_null(shared.model);
  pawl_images_destroy(images);
}

static void test_workers_with_other_images_are_refused(void **state) {
  (void)state;
  struct pawl_images *images = make_images(6, 32, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 1);
  pawl_images_destroy(make_images(7, 32, SIZE, CLASSES)); /* overwrites the files */
  struct outcome shared = train_shared(images, NULL, &sharing, &options);
  assert_int_equal(shared.status, PAWL_REFUSED);
  assert_non_null(strstr(shared.error, "differ from the scheduler's"));
  pawl_images_destroy(images);
}

static void note_progress(void *context, const struct pawl_cnn_progress *progress) {
  (void)progress;
  *(bool *)context = true;
}

static bool has_progress(void *context) { return *(const bool *)context; }

static void test_an_interrupted_training_has_a_model(void **state) {
  (void)state;
  struct pawl_images *images = make_images(8, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  bool has_begun = false;
  options.epochs = 1000000;
  options.progress = note_progress;
  options.stopping = has_progress;
  options.context = &has_begun;
  struct outcome shared = train_shared(images, NULL, &sharing, &options);
  if (shared.status) fail_msg("%s", shared.error);
  assert_string_equal(shared.result.why, "interrupted");
  assert_true(shared.result.steps > 0 && shared.result.epochs < 1000000);
  forget(&shared);
  pawl_images_destroy(images);
}

static void test_impossible_ways_to_share_are_refused(void **state) {
  (void)state;
  char error[PAWL_CNN_TEXT] = "";
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  assert_true(pawl_cnn_sharing_check(&sharing, error));
  sharing.graph = "root";
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  assert_non_null(strstr(error, "need --share reduce"));
  sharing.share = PAWL_CNN_REDUCE;
  assert_true(pawl_cnn_sharing_check(&sharing, error));
  sharing.average = PAWL_CNN_AVERAGE_GRADIENTS;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  assert_non_null(strstr(error, "complete graph"));
  sharing.graph = "complete";
  assert_true(pawl_cnn_sharing_check(&sharing, error));
  sharing.mode = PAWL_REDUCE_ASYNC;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  sharing.mode = PAWL_REDUCE_NOTIFY_ACK;
  sharing.push = PAWL_CNN_PUSH_ASYNC;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  assert_non_null(strstr(error, "push nothing"));
  sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  sharing.push = PAWL_CNN_PUSH_ASYNC;
  assert_true(pawl_cnn_sharing_check(&sharing, error));
  sharing.push++;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  sharing = sharing_of(PAWL_CNN_SERVERS, 2);
  sharing.path_count = 0;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_workers_equal_one_process),
      cmocka_unit_test(test_dropout_does_not_depend_on_workers),
      cmocka_unit_test(test_batches_may_be_smaller_than_the_number_of_workers),
      cmocka_unit_test(test_notify_ack_computes_while_the_last_changes_travel),
      cmocka_unit_test(test_every_mode_learns),
      cmocka_unit_test(test_divergence_ends_the_training_in_every_mode),
      cmocka_unit_test(test_divergence_ends_the_training),
      cmocka_unit_test(test_workers_with_other_images_are_refused),
      cmocka_unit_test(test_an_interrupted_training_has_a_model),
      cmocka_unit_test(test_impossible_ways_to_share_are_refused),
  };
  return cmocka_run_group_tests_name("apps.cnn.share.servers", tests, open_cluster, close_cluster);
}
