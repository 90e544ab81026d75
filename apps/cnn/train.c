/* Training in one process: epochs of batches in random order, and the test images after each epoch. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "apps/cnn/blas.h"
#include "apps/cnn/feed.h"
#include "apps/cnn/model.h"
#include "apps/cnn/options.h"
#include "apps/cnn/sgd.h"
#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

static_assert(PAWL_CNN_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

struct cnn_run {
  struct pawl_cnn_options is;
  const struct pawl_images *images, *test;
  size_t count;   /* training images */
  uint64_t steps; /* of all epochs */
  char *error;

  struct pawl_cnn_model *model;
  struct cnn_pass *pass;
  float *gradient, *velocity;
  uint32_t *order; /* of the images of this epoch */
  uint8_t *labels; /* of a batch */

  int64_t begun_ns, epoch_ns;
  double epoch_loss; /* sum over the images of this epoch so far */
  size_t epoch_wrong, epoch_done;
  bool is_stopping;
  struct pawl_cnn_progress progress;
  struct pawl_cnn_result result;
};

/* --- one step -------------------------------------------------------------------------------------------- */

static pawl_status diverged(const struct cnn_run *run, const char *what) {
  return apps_say(run->error, PAWL_DIVERGED,
                  "the training diverged in epoch %" PRIu64 ", step %" PRIu64
                  ": %s is not finite; use a lower learning rate than %g",
                  run->progress.epoch, run->result.steps, what, run->is.rate);
}

/* Trains on images order[at] … order[at + count - 1]. */
static pawl_status take_step(struct cnn_run *run, size_t at, size_t count) {
  const struct pawl_cnn_model *model = run->model;
  const uint8_t *labels = pawl_images_labels(run->images);
  struct cnn_drops drops = {.seed = run->is.seed, .step = run->result.steps};
  struct cnn_sgd sgd = {.momentum = run->is.momentum, .decay = run->is.decay};
  size_t wrong;
  sgd.rate = cnn_sgd_rate(run->is.schedule, run->is.rate, run->result.steps, run->steps);
  cnn_feed(run->images, &model->about, run->order + at, 0, count, cnn_pass_input(run->pass));
  for (size_t i = 0; i < count; i++) run->labels[i] = labels[run->order[at + i]];
  (void)cnn_pass_forward(run->pass, model->parameters, count, &drops);
  double loss = cnn_pass_backward(run->pass, model->parameters, count, run->labels, run->gradient, &wrong);
  run->result.steps++;
  if (!isfinite(loss)) return diverged(run, "the loss");
  cnn_sgd_step(model->net, &sgd, run->gradient, run->velocity, model->parameters);
  run->epoch_loss += loss;
  run->epoch_wrong += wrong;
  run->epoch_done += count;
  run->progress.rate = sgd.rate;
  return PAWL_OK;
}

static void report(struct cnn_run *run, bool is_epoch_over) {
  struct pawl_cnn_progress *progress = &run->progress;
  double done = (double)run->epoch_done;
  progress->done = run->epoch_done;
  progress->is_epoch_over = is_epoch_over;
  progress->loss = run->epoch_loss / done;
  progress->train_error = (double)run->epoch_wrong / done;
  progress->seconds = apps_seconds_since(run->begun_ns);
  if (!is_epoch_over) progress->images_per_s = done / fmax(apps_seconds_since(run->epoch_ns), 1e-9);
  if (run->is.progress) run->is.progress(run->is.context, progress);
  if (run->is.stopping && !run->is_stopping) run->is_stopping = run->is.stopping(run->is.context);
}

/* --- epochs ---------------------------------------------------------------------------------------------- */

static void test_model(struct cnn_run *run) {
  struct pawl_cnn_score score;
  if (!run->test) return;
  cnn_model_predict(run->model, run->pass, (size_t)run->is.batch, run->test, NULL, NULL, &score);
  run->progress.test_error = (double)score.wrong / (double)score.images;
}

static pawl_status run_epoch(struct cnn_run *run) {
  struct cnn_random random = cnn_random_of(run->is.seed, CNN_FOR_ORDER, run->progress.epoch, 0);
  size_t batch = (size_t)run->is.batch;
  cnn_feed_shuffle(&random, run->order, run->count);
  run->epoch_ns = apps_now();
  run->epoch_loss = 0;
  run->epoch_wrong = run->epoch_done = 0;
  for (size_t at = 0; at < run->count && !run->is_stopping; at += batch) {
    pawl_status status = take_step(run, at, run->count - at < batch ? run->count - at : batch);
    if (status) return status;
    report(run, false);
  }
  run->result.train_s += apps_seconds_since(run->epoch_ns);
  if (!cnn_model_is_finite(run->model)) return diverged(run, "a parameter");
  if (run->epoch_done < run->count) { /* interrupted: earlier measurements do not describe the present weights */
    run->progress.test_error = (double)NAN;
    return PAWL_OK;
  }
  test_model(run);
  run->result.epochs++;
  report(run, true);
  return PAWL_OK;
}

static void conclude(struct cnn_run *run) {
  struct pawl_cnn_result *result = &run->result;
  struct pawl_cnn_about *about = &run->model->about;
  size_t begun = run->epoch_done < run->count ? run->epoch_done : 0; /* images of an epoch that was interrupted */
  result->why = result->epochs == run->is.epochs ? "epochs" : "interrupted";
  result->loss = about->loss = run->progress.loss;
  result->train_error = run->progress.train_error;
  result->test_error = about->test_error = run->progress.test_error;
  result->seconds = apps_seconds_since(run->begun_ns);
  result->images_per_s = (double)(result->epochs * run->count + begun) / fmax(result->train_s, 1e-9);
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
  run->count = (size_t)info.count;
  run->steps = (info.count + run->is.batch - 1) / run->is.batch * run->is.epochs;
  if (run->is.batch > info.count) run->is.batch = info.count;
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
  return run->test ? cnn_model_fits(run->model, run->test, run->error) : PAWL_OK;
}

static pawl_status make_memory(struct cnn_run *run) {
  size_t parameters = run->model->net->parameters, batch = (size_t)run->is.batch;
  pawl_status status = cnn_pass_create(run->model->net, batch, true, &run->pass);
  run->gradient = apps_alloc_zero(parameters, sizeof *run->gradient);
  run->velocity = apps_alloc_zero(parameters, sizeof *run->velocity);
  run->order = apps_alloc_zero(run->count, sizeof *run->order);
  run->labels = apps_alloc_zero(batch, 1);
  if (!status && (!run->gradient || !run->velocity || !run->order || !run->labels)) status = PAWL_NO_MEMORY;
  if (!status) return PAWL_OK;
  return apps_say(run->error, status, "no memory for batches of %zu images; use smaller ones", batch);
}

static pawl_status prepare(struct cnn_run *run) {
  pawl_status status = check_images(run);
  if (!status) status = make_model(run);
  if (!status) status = make_memory(run);
  if (!status && !cnn_blas_threads(run->is.threads))
    status = apps_say(run->error, PAWL_UNSUPPORTED,
                      "%" PRIu32 " threads, but this OpenBLAS was built without threads; use 1, or install another one "
                      "(Debian: libopenblas0-pthread)",
                      run->is.threads);
  return status;
}

pawl_status pawl_cnn_train(const struct pawl_images *images, const struct pawl_images *test,
                           const struct pawl_cnn_options *options, struct pawl_cnn_model **model_out,
                           struct pawl_cnn_result *result_out, char error[PAWL_CNN_TEXT]) {
  struct cnn_run run = {.images = images, .test = test, .error = error, .begun_ns = apps_now()};
  if (!cnn_options_resolve(options, &run.is, error)) return PAWL_INVALID;
  run.progress = (struct pawl_cnn_progress){.epochs = run.is.epochs, .test_error = (double)NAN, .loss = (double)NAN};
  pawl_status status = prepare(&run);
  run.progress.images = run.count;
  while (!status && run.progress.epoch < run.is.epochs && !run.is_stopping) {
    run.progress.epoch++;
    status = run_epoch(&run);
  }
  if (!status) {
    conclude(&run);
    *model_out = run.model;
    *result_out = run.result;
    run.model = NULL;
  }
  cnn_pass_destroy(run.pass);
  apps_free(run.gradient);
  apps_free(run.velocity);
  apps_free(run.order);
  apps_free(run.labels);
  pawl_cnn_model_destroy(run.model);
  return status;
}
