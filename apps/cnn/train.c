/* Training: epochs of batches in random order, and the test images after each epoch. run.h says who makes the steps. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "apps/cnn/blas.h"
#include "apps/cnn/feed.h"
#include "apps/cnn/options.h"
#include "apps/cnn/run.h"
#include "apps/common/clock.h"
#include "apps/common/guess.h"
#include "apps/common/model_file.h"

#define DOUBTFUL 0.9     /* of the loss of guessing */
#define NO_BETTER 0.9999 /* a constant prediction has at least the loss of guessing, but for rounding */

static_assert(PAWL_CNN_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

pawl_status cnn_run_diverged(struct cnn_run *run, const char *what) {
  return apps_say(run->error, PAWL_DIVERGED,
                  "the training diverged in epoch %" PRIu64 ", step %" PRIu64
                  ": %s is not finite; use a lower learning rate than %g",
                  run->progress.epoch, run->result.steps, what, run->is.rate);
}

/* --- epochs ---------------------------------------------------------------------------------------------- */

static void report(struct cnn_run *run, bool is_epoch_over) {
  struct pawl_cnn_progress *progress = &run->progress;
  double done = (double)run->epoch.done;
  progress->done = run->epoch.done;
  progress->is_epoch_over = is_epoch_over;
  progress->loss = run->epoch.loss / done;
  progress->train_error = (double)run->epoch.wrong / done;
  progress->seconds = apps_seconds_since(run->begun_ns);
  if (!is_epoch_over)
    progress->images_per_s = (done - run->epoch_before) / fmax(apps_seconds_since(run->epoch_ns), 1e-9);
  if (run->is.progress) run->is.progress(run->is.context, progress);
  if (run->is.stopping && !run->is_stopping) run->is_stopping = run->is.stopping(run->is.context);
}

static void test_model(struct cnn_run *run) {
  struct pawl_cnn_score *score = &run->test_score;
  if (!run->test) return;
  cnn_model_predict(run->model, run->test_pass, (size_t)run->is.batch, run->test, NULL, NULL, score);
  run->progress.test_error = (double)score->wrong / (double)score->images;
}

static pawl_status keep(struct cnn_run *run) { return run->way->keep ? run->way->keep(run) : PAWL_OK; }

static pawl_status take_steps(struct cnn_run *run, uint64_t step, uint64_t most, uint64_t *taken_out) {
  struct cnn_tally tally = {0};
  pawl_status status = run->way->take(run, step, most, taken_out, &tally);
  if (status) return status;
  run->result.steps = step + *taken_out;
  run->epoch.loss += tally.loss;
  run->epoch.wrong += tally.wrong;
  run->epoch.done += tally.done;
  run->all.done += tally.done;
  run->progress.rate = cnn_plan_sgd(&run->plan, run->result.steps - 1).rate;
  report(run, false);
  return keep(run);
}

static pawl_status run_epoch(struct cnn_run *run) {
  uint64_t steps = cnn_plan_epoch(&run->plan), taken = 0;
  uint64_t done = run->result.steps % steps, begun = run->result.steps - done;
  pawl_status status = PAWL_OK;
  run->epoch_ns = apps_now();
  if (done == 0) run->epoch = (struct cnn_tally){0};
  run->epoch_before = (double)run->epoch.done;
  for (; done < steps && !run->is_stopping && !status; done += taken)
    status = take_steps(run, begun + done, steps - done, &taken);
  run->result.train_s += apps_seconds_since(run->epoch_ns);
  if (!status) status = run->way->fetch(run);
  if (status) return status;
  if (!cnn_model_is_finite(run->model)) return cnn_run_diverged(run, "a parameter");
  if (done < steps) { /* interrupted: earlier measurements do not describe the present weights */
    run->progress.test_error = (double)NAN;
    return PAWL_OK;
  }
  test_model(run);
  run->result.epochs++;
  bool was_stopping = run->is_stopping;
  report(run, true);
  return was_stopping ? PAWL_OK : keep(run); /* the caller may have asked to stop just now */
}

/* Whether the finished net is no better than guessing: it went astray, or the images do not tell the classes apart. The
 * loss of the last epoch was measured while the parameters changed, so that of a doubtful net is measured again. */
static bool is_guessing(struct cnn_run *run) {
  struct pawl_cnn_score score;
  if (run->progress.loss < DOUBTFUL * run->guess.loss) return false;
  cnn_model_predict(run->model, run->test_pass, (size_t)run->is.batch, run->images, NULL, NULL, &score);
  return !(score.loss < NO_BETTER * run->guess.loss);
}

/* A net that has learned the training images by heart may be. */
static void compare_test(struct cnn_run *run) {
  struct pawl_cnn_result *result = &run->result;
  result->test_guess_error = NAN;
  if (!run->test) return;
  const struct cnn_guess guess = cnn_guess_of(run->test);
  const struct apps_figures net = {run->test_score.loss, run->progress.test_error}, shares = {guess.loss, guess.error};
  result->test_guess_error = guess.error;
  result->guesses_test = !isnan(net.error) && apps_is_guess(&net, &shares, (double)run->test_score.images);
}

static void conclude(struct cnn_run *run) {
  struct pawl_cnn_result *result = &run->result;
  struct pawl_cnn_about *about = &run->model->about;
  compare_test(run);
  result->why = result->epochs < run->is.epochs            ? "interrupted"
                : result->guesses_test || is_guessing(run) ? "guessing"
                                                           : "epochs";
  result->guess_loss = run->guess.loss;
  result->loss = about->loss = run->progress.loss;
  result->train_error = run->progress.train_error;
  result->test_error = about->test_error = run->progress.test_error;
  result->seconds = apps_seconds_since(run->begun_ns);
  result->images_per_s = (double)run->all.done / fmax(result->train_s, 1e-9);
  result->batch = run->is.batch;
  result->rate = run->is.rate;
  result->momentum = run->is.momentum;
  result->decay = run->is.decay;
  about->epochs = result->epochs;
}

/* --- before ---------------------------------------------------------------------------------------------- */

static pawl_status check_images(struct cnn_run *run) {
  struct pawl_images_info info;
  pawl_images_info(run->images, &info);
  if (!pawl_images_labels(run->images) || (run->test && !pawl_images_labels(run->test)))
    return apps_say(run->error, PAWL_INVALID, "training and test images need labels");
  if (info.count > UINT32_MAX)
    return apps_say(run->error, PAWL_TOO_LARGE, "more than 2^32 training images; use fewer files");
  run->guess = cnn_guess_of(run->images);
  if (run->guess.classes < 2)
    return apps_say(run->error, PAWL_INVALID, "all %" PRIu64 " images have the label %" PRIu32 "; training needs two",
                    (uint64_t)info.count, run->guess.label);
  if (run->is.batch > info.count) run->is.batch = info.count;
  run->progress.images = info.count;
  run->plan = (struct cnn_plan){.images = info.count,
                                .batch = run->is.batch,
                                .epochs = run->is.epochs,
                                .seed = run->is.seed,
                                .rate = run->is.rate,
                                .momentum = run->is.momentum,
                                .decay = run->is.decay,
                                .schedule = run->is.schedule};
  return PAWL_OK;
}

static pawl_status make_model(struct cnn_run *run) {
  struct pawl_images_info info;
  pawl_images_info(run->images, &info);
  struct pawl_cnn_about about = {.channels = info.channels,
                                 .height = info.height,
                                 .width = info.width,
                                 .classes = info.classes,
                                 .images = info.count,
                                 .seed = run->is.seed,
                                 .loss = (double)NAN,
                                 .test_error = (double)NAN};
  snprintf(about.net, sizeof about.net, "%s", run->is.net);
  pawl_status status = cnn_model_create(&about, &run->model, run->error);
  if (status) return status;
  cnn_feed_measure(run->images, run->model->about.mean, run->model->about.deviation);
  cnn_net_start(run->model->net, run->is.seed, run->model->parameters);
  if (run->test) status = cnn_model_fits(run->model, run->test, run->error);
  if (status) return status;
  status = cnn_pass_create(run->model->net, (size_t)run->is.batch, false, &run->test_pass);
  return status ? apps_say(run->error, status, "no memory for batches of %zu images; use smaller ones",
                           (size_t)run->is.batch)
                : PAWL_OK;
}

static pawl_status prepare(struct cnn_run *run) {
  pawl_status status = check_images(run);
  if (!status) status = make_model(run);
  if (!status && !cnn_blas_threads(run->is.threads))
    status = apps_say(run->error, PAWL_UNSUPPORTED,
                      "%" PRIu32 " threads, but this OpenBLAS was built without threads; use 1, or install another one "
                      "(Debian: libopenblas0-pthread)",
                      run->is.threads);
  return status ? status : run->way->begin(run);
}

pawl_status cnn_run_train(struct cnn_run *run, const struct pawl_cnn_options *options,
                          struct pawl_cnn_model **model_out, struct pawl_cnn_result *result_out) {
  run->begun_ns = apps_now();
  if (!cnn_options_resolve(options, &run->is, run->error)) return PAWL_INVALID;
  run->progress = (struct pawl_cnn_progress){
      .epochs = run->is.epochs, .test_error = (double)NAN, .loss = (double)NAN, .unsaved = run->result.unsaved};
  pawl_status status = prepare(run);
  while (!status && run->progress.epoch < run->is.epochs && !run->is_stopping) {
    run->progress.epoch++;
    status = run_epoch(run);
  }
  if (!status) {
    conclude(run);
    *model_out = run->model;
    *result_out = run->result;
    run->model = NULL;
  }
  run->way->end(run);
  cnn_pass_destroy(run->test_pass);
  pawl_cnn_model_destroy(run->model);
  return status;
}

pawl_status pawl_cnn_train(const struct pawl_images *images, const struct pawl_images *test,
                           const struct pawl_cnn_options *options, struct pawl_cnn_model **model_out,
                           struct pawl_cnn_result *result_out, char error[PAWL_CNN_TEXT]) {
  struct cnn_run run = {.way = &cnn_alone, .images = images, .test = test, .error = error};
  return cnn_run_train(&run, options, model_out, result_out);
}
