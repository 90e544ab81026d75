/* Training: iterations, and what happens between them: errors are measured, samples kept, checkpoints written. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/bpmf/options.h"
#include "apps/bpmf/run.h"
#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

static_assert(PAWL_BPMF_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

/* --- the course ------------------------------------------------------------------------------------------- */

struct bpmf_mark bpmf_run_mark(const struct bpmf_run *run) {
  return (struct bpmf_mark){run->sampler.iteration, run->tests.samples, run->model->about.samples};
}

void bpmf_run_back(struct bpmf_run *run, const struct bpmf_mark *mark) {
  run->sampler.iteration = mark->iteration;
  run->tests.samples = run->training.samples = mark->measured;
  run->model->about.samples = mark->samples;
}

pawl_status bpmf_run_diverged(struct bpmf_run *run, uint64_t iteration) {
  return apps_say(run->error, PAWL_DIVERGED,
                  "the numbers became too large in iteration %" PRIu64 "; use a lower alpha or a lower rank",
                  iteration);
}

/* Whether the model keeps the rows of an iteration: samples that are evenly spread, the last one included. */
static bool is_kept(const struct bpmf_run *run, uint64_t iteration) {
  uint64_t all = run->is.iterations - run->is.burn_in, kept = run->room;
  if (iteration <= run->is.burn_in) return false;
  uint64_t n = iteration - run->is.burn_in;
  return n * kept / all > (n - 1) * kept / all;
}

static bool is_saved(const struct bpmf_run *run, uint64_t iteration) {
  return iteration % run->is.checkpoint_every == 0;
}

/* Iterations up to the next one after which rows are needed. */
static size_t next_part(const struct bpmf_run *run) {
  uint64_t iteration = run->sampler.iteration + 1;
  size_t count = 1;
  for (; count < BPMF_ADVANCE_MAX && iteration < run->is.iterations; count++, iteration++)
    if (is_kept(run, iteration) || is_saved(run, iteration)) break;
  return count;
}

/* --- iterations ------------------------------------------------------------------------------------------- */

/* The rows of a model carry the scale of the ratings, so that its predictions are mean + u . v. Both sides carry its
 * root, because the whole of it may be too large for a float. */
static pawl_status keep_sample(struct bpmf_run *run) {
  struct pawl_bpmf_about *about = &run->model->about;
  uint64_t iteration = run->sampler.iteration;
  float *rows = run->model->samples + about->samples * bpmf_sample_size(about);
  pawl_status status = run->way->rows(run, rows);
  if (status || run->sampler.iteration != iteration) return status; /* the way has set the run back */
  double root = sqrt(run->data.scale);
  for (size_t i = 0; i < bpmf_sample_size(about); i++) rows[i] = (float)(root * (double)rows[i]);
  about->samples++;
  return PAWL_OK;
}

static void report(struct bpmf_run *run, uint64_t iteration, const struct bpmf_figures *figures) {
  struct pawl_bpmf_progress *progress = &run->progress;
  run->result.sample_s += figures->seconds;
  run->iterations_here++;
  progress->iteration = iteration;
  progress->is_burn_in = iteration <= run->is.burn_in;
  progress->ratings_per_s = (double)run->data.count / figures->seconds;
  progress->test_rmse = figures->tests.now;
  progress->mean_test_rmse = figures->tests.mean;
  progress->train_rmse = figures->training.now;
  progress->mean_train_rmse = figures->training.mean;
  progress->seconds = apps_seconds_since(run->begun_ns);
  if (iteration <= run->shown) return;
  run->shown = iteration;
  if (run->is.progress) run->is.progress(run->is.context, progress);
}

/* A checkpoint that cannot be written, because the disk is full, does not end the training: the next one may succeed. */
static pawl_status save(struct bpmf_run *run) {
  uint64_t iteration = run->sampler.iteration;
  pawl_status status = run->way->save(run);
  if (status || run->sampler.iteration != iteration || !run->is.checkpoint) return status;
  run->result.unsaved[0] = '\0';
  if (bpmf_checkpoint_write(run)) snprintf(run->result.unsaved, sizeof run->result.unsaved, "%s", run->error);
  run->error[0] = '\0';
  return PAWL_OK;
}

/* After some iterations the run keeps a sample and saves its state if they are due. If a worker is lost meanwhile, the way
 * sets the run back (run.h), and the run does neither. */
static pawl_status settle(struct bpmf_run *run) {
  uint64_t iteration = run->sampler.iteration;
  bool is_over = iteration == run->is.iterations || run->is_stopping;
  pawl_status status = is_kept(run, iteration) ? keep_sample(run) : PAWL_OK;
  if (status || run->sampler.iteration != iteration) return status;
  return (is_over ? run->is.checkpoint != NULL : is_saved(run, iteration)) ? save(run) : PAWL_OK;
}

static pawl_status iterate(struct bpmf_run *run) {
  struct bpmf_figures figures[BPMF_ADVANCE_MAX];
  uint64_t first = run->sampler.iteration + 1;
  size_t count = 0;
  pawl_status status = run->way->advance(run, next_part(run), figures, &count);
  for (size_t i = 0; i < count && !status; i++) report(run, first + i, &figures[i]);
  if (status || count == 0) return status;
  if (run->is.stopping) run->is_stopping = run->is.stopping(run->is.context);
  return settle(run);
}

/* --- before and after ------------------------------------------------------------------------------------- */

/* What the user gave, or twice the precision of the ratings themselves: for ratings from 1 to 5, whose deviation is
 * about 1, the 2 of Salakhutdinov and Mnih. */
static double alpha_of(const struct bpmf_run *run) {
  return run->is.alpha > 0 ? run->is.alpha : 2 / (run->data.scale * run->data.scale);
}

#define GUESSES_MIN 30 /* fewer test ratings prove nothing */

/* The error of the mean rating as the prediction of everything: a model that is no better has learned nothing. */
static double plain_rmse(const struct bpmf_data *data) {
  double sum = 0;
  for (uint64_t i = 0; i < data->test_count; i++) {
    double off = (double)data->tests[i].value - data->mean;
    sum += off * off;
  }
  return data->test_count ? sqrt(sum / (double)data->test_count) : (double)NAN;
}

static pawl_status make_model(struct bpmf_run *run) {
  uint64_t samples = run->is.iterations - run->is.burn_in;
  run->room = samples < run->is.keep ? (uint32_t)samples : run->is.keep;
  struct pawl_bpmf_about about = {.rank = run->is.rank,
                                  .users = run->data.sides[BPMF_USERS].rows,
                                  .items = run->data.sides[BPMF_ITEMS].rows,
                                  .ratings = run->data.count,
                                  .test_ratings = run->data.test_count,
                                  .samples = run->room,
                                  .burn_in = run->is.burn_in,
                                  .alpha = alpha_of(run),
                                  .mean = run->data.mean,
                                  .lowest = (double)run->data.lowest,
                                  .highest = (double)run->data.highest,
                                  .seed = run->is.seed};
  if (bpmf_model_create(&run->data, &about, &run->model))
    return apps_say(run->error, PAWL_NO_MEMORY, "no memory for %" PRIu32 " samples; keep fewer, or use a lower rank",
                    run->room);
  run->model->about.samples = 0;
  return PAWL_OK;
}

static pawl_status prepare(struct bpmf_run *run, const struct pawl_ratings *ratings, const struct pawl_ratings *test) {
  if (test && run->is.test_share > 0)
    return apps_say(run->error, PAWL_INVALID, "test ratings are given, so no share of the others can be taken");
  pawl_status status = bpmf_data_init(&run->data, ratings, test, run->is.test_share, run->is.seed, run->error);
  if (status) return status;
  double alpha = alpha_of(run) * run->data.scale * run->data.scale;
  uint32_t threads = run->threads_here ? run->threads_here : run->is.threads;
  if (bpmf_sampler_init(&run->sampler, &run->data, run->is.rank, alpha, run->is.seed, threads, NULL) ||
      !bpmf_measure_init(&run->tests, &run->sampler, false, false, 0, BPMF_BLOCKS) ||
      !bpmf_measure_init(&run->training, &run->sampler, true, run->is.no_train_rmse, 0, BPMF_BLOCKS))
    return apps_say(run->error, PAWL_NO_MEMORY, "no memory for rows of rank %" PRIu32, run->is.rank);
  status = make_model(run);
  if (!status && run->is.resume) status = bpmf_checkpoint_read(run);
  if (!status) status = run->way->begin(run);
  bool is_new = !run->is.resume && run->is.checkpoint; /* a file that cannot be written is found before the work */
  return !status && is_new ? bpmf_checkpoint_write(run) : status;
}

static void conclude(struct bpmf_run *run) {
  struct pawl_bpmf_result *result = &run->result;
  struct pawl_bpmf_about *about = &run->model->about;
  const struct pawl_bpmf_progress *progress = &run->progress;
  result->iterations = about->iterations = run->sampler.iteration;
  result->samples = run->tests.samples;
  result->train_rmse = progress->train_rmse;
  result->test_rmse = progress->test_rmse;
  result->mean_train_rmse = about->train_rmse = progress->mean_train_rmse;
  result->mean_test_rmse = about->test_rmse = progress->mean_test_rmse;
  result->plain_test_rmse = plain_rmse(&run->data);
  bool is_guessing = run->data.test_count >= GUESSES_MIN && result->mean_test_rmse >= result->plain_test_rmse;
  result->why = result->iterations < run->is.iterations ? "interrupted" : is_guessing ? "guessing" : "iterations";
  result->test_ratings = run->data.test_count;
  result->test_unknown = run->data.test_unknown;
  memcpy(result->first_unknown, run->data.first_unknown, sizeof result->first_unknown);
  result->threads = run->is.threads;
  result->kernel = run->sampler.kernel->name;
  result->seconds = apps_seconds_since(run->begun_ns);
  result->ratings_per_s = (double)run->data.count * (double)run->iterations_here / fmax(result->sample_s, 1e-9);
}

/* Interrupted during the burn-in, or before the first sample to keep: the model is that of the last iteration. */
static pawl_status keep_anything(struct bpmf_run *run) {
  pawl_status status = PAWL_OK;
  while (!status && run->model->about.samples == 0 && run->sampler.iteration > 0) status = keep_sample(run);
  if (!status && run->model->about.samples == 0)
    status = apps_say(run->error, PAWL_CANCELLED, "interrupted before the first iteration was complete");
  return status;
}

static pawl_status train(struct bpmf_run *run) {
  pawl_status status = PAWL_OK;
  while (!status && run->sampler.iteration < run->is.iterations && !run->is_stopping) status = iterate(run);
  if (!status) status = keep_anything(run);
  if (!status) conclude(run);
  return status;
}

pawl_status bpmf_run_train(struct bpmf_run *run, const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                           const struct pawl_bpmf_options *options, struct pawl_bpmf_model **model_out,
                           struct pawl_bpmf_result *result_out) {
  run->begun_ns = apps_now();
  if (!bpmf_options_resolve(options, &run->is, run->error)) return PAWL_INVALID;
  run->progress = (struct pawl_bpmf_progress){.iterations = run->is.iterations,
                                              .train_rmse = (double)NAN,
                                              .test_rmse = (double)NAN,
                                              .mean_train_rmse = (double)NAN,
                                              .mean_test_rmse = (double)NAN,
                                              .unsaved = run->result.unsaved};
  pawl_status status = prepare(run, ratings, test);
  if (!status) status = train(run);
  if (!status) {
    *model_out = run->model;
    *result_out = run->result;
    run->model = NULL;
  }
  run->way->end(run);
  pawl_bpmf_model_destroy(run->model);
  bpmf_measure_fini(&run->tests);
  bpmf_measure_fini(&run->training);
  bpmf_sampler_fini(&run->sampler);
  bpmf_data_fini(&run->data);
  return status;
}

pawl_status pawl_bpmf_train(const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                            const struct pawl_bpmf_options *options, struct pawl_bpmf_model **model_out,
                            struct pawl_bpmf_result *result_out, char error[PAWL_BPMF_TEXT]) {
  struct bpmf_run run = {.way = &bpmf_alone, .error = error};
  return bpmf_run_train(&run, ratings, test, options, model_out, result_out);
}
