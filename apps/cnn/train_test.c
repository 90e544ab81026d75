/* Whole trainings on made-up images, through the public header. */
#include <math.h>

#include <pawl/cnn.h>

#include "apps/cnn/feed.h"
#include "apps/cnn/guess.h"
#include "apps/cnn/images_test.h"
#include "apps/cnn/run.h"
#include "base/memory.h"

enum { TRAIN = 240, TEST = 100, SIZE = 16, CLASSES = 4 };

static struct pawl_cnn_options options_of(const char *net) {
  struct pawl_cnn_options options;
  pawl_cnn_options_init(&options);
  options.net = net;
  options.epochs = 3;
  options.batch = 16;
  return options;
}

struct outcome {
  pawl_status status;
  struct pawl_cnn_model *model;
  struct pawl_cnn_result result;
  char error[PAWL_CNN_TEXT];
};

static struct outcome train(const struct pawl_images *images, const struct pawl_images *test,
                            const struct pawl_cnn_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status = pawl_cnn_train(images, test, options, &outcome.model, &outcome.result, outcome.error);
  assert_true((outcome.status == PAWL_OK) == (outcome.model != NULL));
  return outcome;
}

static struct outcome must_train(const struct pawl_images *images, const struct pawl_images *test,
                                 const struct pawl_cnn_options *options) {
  struct outcome outcome = train(images, test, options);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

/* --- what is learnt -------------------------------------------------------------------------------------- */

static void test_lenet_learns_where_the_bar_is(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, TRAIN, SIZE, CLASSES), *test = make_images(2, TEST, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct outcome outcome = must_train(images, test, &options);
  struct pawl_cnn_about about;
  pawl_cnn_model_about(outcome.model, &about);
  assert_string_equal(outcome.result.why, "epochs");
  assert_int_equal(outcome.result.epochs, 3);
  assert_int_equal(outcome.result.steps, 3 * 15);
  assert_true(outcome.result.test_error <= 0.02);
  assert_true(outcome.result.loss < 0.2 && outcome.result.images_per_s > 0);
  assert_true(about.test_error == outcome.result.test_error && about.epochs == 3 && about.images == TRAIN);
  assert_int_equal(about.classes, CLASSES);

  /* Prediction agrees with the last test. */
  struct pawl_cnn_score score;
  uint8_t classes[TEST];
  float probabilities[TEST * CLASSES];
  assert_int_equal(pawl_cnn_predict(outcome.model, test, classes, probabilities, &score, outcome.error), PAWL_OK);
  assert_int_equal(score.images, TEST);
  assert_int_equal(score.wrong, lround(about.test_error * TEST));
  size_t wrong = 0;
  double loss = 0;
  for (size_t i = 0; i < TEST; i++) {
    size_t label = pawl_images_labels(test)[i];
    double sum = 0;
    for (size_t k = 0; k < CLASSES; k++) {
      sum += (double)probabilities[i * CLASSES + k];
      assert_true(probabilities[i * CLASSES + k] <= probabilities[i * CLASSES + classes[i]]);
    }
    assert_true(fabs(sum - 1) < 1e-5);
    wrong += classes[i] != label;
    loss -= log((double)probabilities[i * CLASSES + label]);
  }
  assert_int_equal(wrong, score.wrong);
  assert_true(fabs(loss / TEST - score.loss) < 1e-4);
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
  pawl_images_destroy(test);
}

static void test_vgg_learns_too(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, TRAIN, 8, 2), *test = make_images(2, TEST, 8, 2);
  struct pawl_cnn_options options = options_of("vgg");
  options.epochs = 4;
  struct outcome outcome = must_train(images, test, &options);
  if (!(outcome.result.test_error <= 0.05)) fail_msg("test error %g", outcome.result.test_error);
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
  pawl_images_destroy(test);
}

static uint64_t checksum(const struct pawl_cnn_model *model) {
  struct pawl_cnn_about about;
  uint64_t sum = 0;
  pawl_cnn_model_about(model, &about);
  const float *parameters = pawl_cnn_model_parameters(model);
  for (uint64_t i = 0; i < about.parameters; i++) {
    uint32_t bits;
    memcpy(&bits, &parameters[i], 4);
    sum = apps_random_mix(sum + bits);
  }
  return sum;
}

static void test_a_seed_determines_the_model(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 50, 8, 2); /* the last batch is smaller */
  struct pawl_cnn_options options = options_of("vgg");
  options.epochs = 2;
  struct outcome one = must_train(images, NULL, &options), other = must_train(images, NULL, &options);
  assert_true(isnan(one.result.test_error));
  assert_true(checksum(one.model) == checksum(other.model) && one.result.loss == other.result.loss);
  pawl_cnn_model_destroy(other.model);
  options.seed = 2;
  other = must_train(images, NULL, &options);
  assert_true(checksum(one.model) != checksum(other.model));
  pawl_cnn_model_destroy(one.model);
  pawl_cnn_model_destroy(other.model);
  pawl_images_destroy(images);
}

static void test_a_batch_may_be_larger_than_all_images(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 5, 16, 2);
  struct pawl_cnn_options options = options_of("lenet");
  options.batch = 64;
  struct outcome outcome = must_train(images, images, &options);
  assert_int_equal(outcome.result.steps, 3);
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
}

/* --- the way of the images ------------------------------------------------------------------------------- */

static void test_pixels_are_scaled_to_mean_0_and_deviation_1(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 20, 16, 3);
  struct pawl_cnn_about about = {.channels = 1, .height = 16, .width = 16};
  static float input[20 * 256];
  double sum = 0, squares = 0;
  uint32_t order[20];
  struct apps_random random = apps_random_of(1, CNN_FOR_ORDER, 0, 0);
  bool seen[20] = {false};
  cnn_feed_measure(images, about.mean, about.deviation);
  apps_shuffle(&random, order, 20);
  cnn_feed(images, &about, order, 0, 20, input);
  for (size_t i = 0; i < 20 * 256; i++) {
    sum += (double)input[i];
    squares += (double)input[i] * (double)input[i];
    assert_true(fabs((double)input[i] * about.deviation[0] + about.mean[0] -
                     pawl_images_pixels(images)[order[i / 256] * 256 + i % 256]) < 1e-3);
  }
  assert_true(fabs(sum / 5120) < 1e-4 && fabs(squares / 5120 - 1) < 1e-4);
  for (size_t i = 0; i < 20; i++) seen[order[i]] = true;
  for (size_t i = 0; i < 20; i++) assert_true(seen[i]);
  pawl_images_destroy(images);
}

/* --- progress -------------------------------------------------------------------------------------------- */

struct watch {
  uint64_t steps, epochs, done;
  uint64_t stop_after, stop_after_epochs; /* steps, epochs; 0: never */
  uint64_t kept, kept_at_the_end;         /* the last step, and how often because the run ends */
  double rate;
};

static void watch_progress(void *context, const struct pawl_cnn_progress *is) {
  struct watch *watch = context;
  assert_int_equal(is->images, TRAIN);
  assert_true(is->epoch >= 1 && is->epoch <= is->epochs && is->done <= is->images && isfinite(is->loss) != 0);
  assert_int_equal(is->epoch, watch->epochs + 1);
  if (is->is_epoch_over) {
    watch->epochs++;
    watch->done = 0;
    assert_int_equal(is->done, TRAIN);
    assert_true(isfinite(is->test_error) != 0);
    return;
  }
  watch->steps++;
  assert_int_equal(is->done, watch->done + 16);
  assert_true(is->rate < watch->rate);
  watch->done = is->done;
  watch->rate = is->rate;
}

static bool watch_stopping(void *context) {
  const struct watch *watch = context;
  return (watch->stop_after && watch->steps >= watch->stop_after) ||
         (watch->stop_after_epochs && watch->epochs >= watch->stop_after_epochs);
}

static void test_progress_is_reported_after_each_step_and_epoch(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, TRAIN, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct watch watch = {.rate = 1};
  options.epochs = 2;
  options.progress = watch_progress;
  options.stopping = watch_stopping;
  options.context = &watch;
  struct outcome outcome = must_train(images, images, &options);
  assert_int_equal(watch.steps, 30);
  assert_int_equal(watch.epochs, 2);
  pawl_cnn_model_destroy(outcome.model);

  watch = (struct watch){.rate = 1, .stop_after = 20};
  outcome = must_train(images, images, &options);
  assert_string_equal(outcome.result.why, "interrupted");
  assert_int_equal(outcome.result.steps, 20);
  assert_int_equal(outcome.result.epochs, 1);
  assert_true(isnan(outcome.result.test_error)); /* that of the first epoch is not that of this model */
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
}

/* --- what cannot be trained ------------------------------------------------------------------------------ */

static void refuse(const struct pawl_images *images, const struct pawl_images *test,
                   const struct pawl_cnn_options *options, pawl_status expected, const char *what) {
  struct outcome outcome = train(images, test, options);
  if (outcome.status != expected || !strstr(outcome.error, what))
    fail_msg("%s: '%s'; expected %s: '%s'", pawl_status_name(outcome.status), outcome.error, pawl_status_name(expected),
             what);
}

static void test_a_rate_that_is_too_high_diverges_with_a_clear_status(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, TRAIN, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  options.rate = 1e6;
  refuse(images, NULL, &options, PAWL_DIVERGED, "the loss is not finite; use a lower learning rate than 1e+06");
  options.rate = 1e300; /* one step, so only the parameters tell */
  options.batch = TRAIN;
  options.epochs = 1;
  refuse(images, NULL, &options, PAWL_DIVERGED, "a parameter is not finite; use a lower learning rate than 1e+300");
  pawl_images_destroy(images);
}

/* With such steps the net stays as it was drawn. */
static void test_a_net_that_is_no_better_than_guessing_says_so(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  options.rate = 1e-12;
  struct outcome outcome = must_train(images, NULL, &options);
  struct cnn_guess guess = cnn_guess_of(images);
  assert_string_equal(outcome.result.why, "guessing");
  assert_int_equal(guess.classes, CLASSES);
  assert_true(guess.loss > 0.95 * log(CLASSES) && guess.loss <= log(CLASSES));
  assert_true(outcome.result.guess_loss == guess.loss && outcome.result.loss >= guess.loss);
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
}

/* Images without a bar, whose labels are drawn: the net learns some by heart. */
static void test_a_net_that_is_no_better_on_test_images_says_so(void **state) {
  (void)state;
  struct pawl_images *images = make_noise(1, 60, SIZE, 2), *test = make_noise(2, 200, SIZE, 2);
  struct pawl_cnn_options options = options_of("lenet");
  options.epochs = 40;
  struct outcome outcome = must_train(images, test, &options);
  assert_string_equal(outcome.result.why, "guessing");
  assert_true(outcome.result.guesses_test && outcome.result.loss < outcome.result.guess_loss);
  assert_true(outcome.result.test_guess_error > 0.3 && outcome.result.test_guess_error <= 0.5);
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
  pawl_images_destroy(test);
}

static void test_images_of_one_label_are_refused(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 20, SIZE, 1);
  struct pawl_cnn_options options = options_of("lenet");
  struct outcome outcome = train(images, NULL, &options);
  assert_int_equal(outcome.status, PAWL_INVALID);
  assert_string_equal(outcome.error, "all 20 images have the label 0; training needs two");
  pawl_images_destroy(images);
}

static void test_options_that_make_no_sense_are_refused(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 5, 16, 2), *small = make_images(1, 5, 12, 2),
                     *more = make_images(1, 50, 16, 4);
  struct pawl_cnn_options options = options_of("alexnet");
  refuse(images, NULL, &options, PAWL_INVALID, "unknown net 'alexnet'; expected lenet or vgg");
  options.net = NULL;
  refuse(images, NULL, &options, PAWL_INVALID, "no net was named");
  options = options_of("lenet");
  options.momentum = 1;
  refuse(images, NULL, &options, PAWL_INVALID, "momentum must be at least 0 and below 1");
  options = options_of("lenet");
  options.rate = -1;
  refuse(images, NULL, &options, PAWL_INVALID, "learning rate must be positive");
  options.rate = (double)NAN;
  refuse(images, NULL, &options, PAWL_INVALID, "learning rate must be positive");
  options = options_of("lenet");
  options.decay = (double)INFINITY;
  refuse(images, NULL, &options, PAWL_INVALID, "weight decay must be at least 0");
  options = options_of("lenet");
  options.batch = 70000;
  refuse(images, NULL, &options, PAWL_INVALID, "from 1 to 65,536 images");
  options = options_of("lenet");
  options.threads = 0;
  refuse(images, NULL, &options, PAWL_INVALID, "number of threads");
  options = options_of("lenet");
  options.schedule = (enum pawl_cnn_schedule)7;
  refuse(images, NULL, &options, PAWL_INVALID, "schedule");
  options.struct_size = 0;
  refuse(images, NULL, &options, PAWL_INVALID, "was not initialised");
  options = options_of("lenet");
  refuse(small, NULL, &options, PAWL_MISMATCH, "too small for lenet");
  refuse(images, small, &options, PAWL_MISMATCH, "1 x 12 x 12 values, but the net was made for 1 x 16 x 16");
  refuse(images, more, &options, PAWL_MISMATCH, "label 3, but the net has the classes 0 to 1");
  pawl_images_destroy(images);
  pawl_images_destroy(small);
  pawl_images_destroy(more);
}

static void test_images_without_labels_are_predicted_but_not_trained_on(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 20, 16, 2), *bare = NULL;
  struct pawl_images_options reading;
  struct pawl_cnn_score score;
  char path[64];
  const char *paths[] = {path};
  uint8_t classes[20];
  pawl_images_options_init(&reading);
  reading.labels_optional = true;
  snprintf(path, sizeof path, "%s/images", folder);
  assert_int_equal(pawl_images_read(paths, 1, &reading, &bare), PAWL_OK);
  struct pawl_cnn_options options = options_of("lenet");
  refuse(bare, NULL, &options, PAWL_INVALID, "need labels");
  refuse(images, bare, &options, PAWL_INVALID, "need labels");
  struct outcome outcome = must_train(images, NULL, &options);
  assert_int_equal(pawl_cnn_predict(outcome.model, bare, classes, NULL, &score, NULL), PAWL_OK);
  assert_true(score.images == 20 && score.wrong == 0 && isnan(score.loss));
  pawl_cnn_model_destroy(outcome.model);
  pawl_images_destroy(images);
  pawl_images_destroy(bare);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 12, 16, 2);
  struct pawl_cnn_options options = options_of("lenet");
  options.epochs = 1;
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (bool over = false; !over; n++) {
    struct pawl_cnn_score score;
    pwi_memory_fail_after(n);
    struct outcome outcome = train(images, images, &options);
    pawl_status status = outcome.status;
    if (!status) status = pawl_cnn_predict(outcome.model, images, NULL, NULL, &score, outcome.error);
    over = !pwi_memory_fail_cancel();
    assert_int_equal(status, over ? PAWL_OK : PAWL_NO_MEMORY);
    assert_true(over || outcome.error[0]);
    pawl_cnn_model_destroy(outcome.model);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 20);
  pawl_images_destroy(images);
}

/* --- what a way keeps ------------------------------------------------------------------------------------ */

static pawl_status keep_step(struct cnn_run *run) {
  struct watch *watch = run->is.context;
  watch->kept = run->result.steps;
  watch->kept_at_the_end += run->is_stopping;
  return PAWL_OK;
}

static void test_a_run_that_is_stopped_keeps_its_last_step_once(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, TRAIN, SIZE, CLASSES);
  static const struct watch stops[] = {
      {.rate = 1, .stop_after = 4}, {.rate = 1, .stop_after = 15}, {.rate = 1, .stop_after_epochs = 1}};
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
    struct cnn_way way = cnn_alone;
    struct outcome outcome = {.model = NULL};
    struct cnn_run run = {.way = &way, .images = images, .test = images, .error = outcome.error};
    struct watch watch = stops[i];
    struct pawl_cnn_options options = options_of("lenet");
    way.keep = keep_step;
    options.progress = watch_progress;
    options.stopping = watch_stopping;
    options.context = &watch;
    assert_int_equal(cnn_run_train(&run, &options, &outcome.model, &outcome.result), PAWL_OK);
    assert_string_equal(outcome.result.why, "interrupted");
    assert_int_equal(outcome.result.steps, watch.stop_after ? watch.stop_after : 15);
    assert_int_equal(watch.kept, outcome.result.steps);
    assert_int_equal(watch.kept_at_the_end, 1);
    pawl_cnn_model_destroy(outcome.model);
  }
  pawl_images_destroy(images);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lenet_learns_where_the_bar_is),
      cmocka_unit_test(test_vgg_learns_too),
      cmocka_unit_test(test_a_seed_determines_the_model),
      cmocka_unit_test(test_a_batch_may_be_larger_than_all_images),
      cmocka_unit_test(test_pixels_are_scaled_to_mean_0_and_deviation_1),
      cmocka_unit_test(test_progress_is_reported_after_each_step_and_epoch),
      cmocka_unit_test(test_a_run_that_is_stopped_keeps_its_last_step_once),
      cmocka_unit_test(test_a_rate_that_is_too_high_diverges_with_a_clear_status),
      cmocka_unit_test(test_a_net_that_is_no_better_than_guessing_says_so),
      cmocka_unit_test(test_a_net_that_is_no_better_on_test_images_says_so),
      cmocka_unit_test(test_images_of_one_label_are_refused),
      cmocka_unit_test(test_options_that_make_no_sense_are_refused),
      cmocka_unit_test(test_images_without_labels_are_predicted_but_not_trained_on),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
