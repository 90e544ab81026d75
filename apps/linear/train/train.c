/* The scheduler of linear methods: the job, and the path of penalties. point.c trains for one penalty. See
 * <pawl/linear_model.h> and train/inside.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/json.h"
#include "apps/common/reduce.h"
#include "apps/linear/train/inside.h"

/* --- the job -------------------------------------------------------------------------------------------- */

static pawl_status write_spec(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  struct linear_spec *spec = &run->spec;
  struct pawl_data_info info;
  snprintf(spec->job, sizeof spec->job, "%s", options->job ? options->job : "linear");
  spec->loss = options->loss;
  spec->method = linear_method_chosen(options);
  if (spec->method == &linear_newton) spec->method = &linear_blocks; /* until describe.c knows the data */
  if (!apps_texts_copy(options->paths, options->path_count, &spec->paths, &spec->path_count)) return PAWL_NO_MEMORY;
  spec->reading = options->reading;
  linear_split(options, PAWL_PART_TRAIN, &spec->reading);
  if (options->reading.label) snprintf(spec->label, sizeof spec->label, "%s", options->reading.label);
  pawl_data_info(run->data, &info);
  spec->fingerprint = info.fingerprint;
  spec->pieces = info.pieces;
  spec->bias = options->bias;
  spec->digests = options->checkpoints != NULL;
  for (size_t i = 0; i < 2; i++) spec->class_weights[i] = options->class_weights[i] > 0 ? options->class_weights[i] : 1;
  spec->scale = options->scale;
  spec->tau = options->tau;
  spec->threads = options->threads;
  spec->minibatch = options->minibatch ? options->minibatch : 1000;
  spec->reduces = options->share == PAWL_LINEAR_REDUCE;
  if (options->graph) snprintf(spec->graph, sizeof spec->graph, "%s", options->graph);
  spec->mode = options->mode;
  spec->falls = options->falls;
  if (spec->reduces && options->checkpoints) snprintf(spec->folder, sizeof spec->folder, "%s", options->checkpoints);
  spec->rate = options->rate > 0 ? options->rate : spec->method->rate;
  return PAWL_OK;
}

/* Estimate of the size of the data as text, in bytes. */
static uint64_t count_bytes(const struct linear_run *run) {
  static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2"};
  uint64_t sum = 0, size;
  const char *path;
  for (size_t i = 0; (path = pawl_data_file(run->data, i, &size)) != NULL; i++) {
    for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
      size_t length = strlen(path), end = strlen(packed[k]);
      if (length > end && strcmp(path + length - end, packed[k]) == 0) size *= LINEAR_PACKED;
    }
    sum += size;
  }
  return sum;
}

/* Dual ascent of the hinge loss goes row by row, and each step uses the results of all steps before.
 * Workers that share the rows have to exchange their steps, which takes many times as long as computing
 * them (dual.c). So one worker has all rows if they are few enough, unless the user asked for the method
 * by name. */
static bool is_for_one(const struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  return !run->spec.reduces && options->method == PAWL_LINEAR_METHOD_AUTO && options->loss == PAWL_LINEAR_HINGE &&
         count_bytes(run) <= LINEAR_DUAL_ALONE;
}

static pawl_status create_job(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  struct pawl_job_options job;
  struct pawl_data_info info;
  pawl_status status = PAWL_OK;
  bool is_one = is_for_one(run);
  if (is_one) run->spec.tau = 0; /* one worker waits for no other */
  pawl_data_info(run->data, &info);
  pawl_job_options_init(&job);
  job.name = run->spec.job;
  job.pieces = info.pieces;
  job.least = options->workers ? options->workers : 1;
  job.most = options->workers_most > job.least ? options->workers_most : job.least;
  job.on_loss = options->on_loss;
  if (job.most > 1 && is_one) {
    apps_tell(&run->common,
              "one worker of %u trains on all rows, which is faster for the hinge loss; to use all workers, give "
              "--method dual",
              (unsigned)job.most);
    job.least = job.most = 1;
    if (job.on_loss == PAWL_LOSS_CONTINUE) job.on_loss = PAWL_LOSS_REPLACE; /* no worker would be left */
  }
  job.drop_slowest = options->drop_slowest;
  job.join_in_round = run->spec.method->streams && !run->spec.reduces; /* a pass may take hours */
  if (run->spec.reduces) status = apps_reduce_check_graph(&run->common, options->graph, job.least, job.most);
  if (status) return status;
  return apps_job_create(&run->common, &job, linear_spec_write(&run->spec), LINEAR_TIMEOUT);
}

/* Refuses documents, which have no labels, also for methods that would accept zeros. */
static pawl_status check_labels(struct linear_run *run) {
  struct pawl_data_info info;
  pawl_data_info(run->data, &info);
  if (info.format != PAWL_DATA_LDAC && info.format != PAWL_DATA_UCI && info.format != PAWL_DATA_TEXT) return PAWL_OK;
  return apps_fail(
      &run->common, PAWL_INVALID,
      "%s is %s: documents without labels, which cannot train a linear model; if it is something else, give --format",
      run->options->paths[0], pawl_data_format_name(info.format));
}

static pawl_status open_data(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  struct pawl_data_options reading = options->reading;
  linear_split(options, PAWL_PART_TRAIN, &reading);
  pawl_status status = pawl_data_open(options->paths, options->path_count, &reading, &run->data);
  if (status) return apps_fail(&run->common, status, "%s", pawl_error_text());
  status = check_labels(run);
  if (status) return status;
  status = write_spec(run);
  return status ? status : linear_validation_load(run);
}

/* --- the whole ------------------------------------------------------------------------------------------ */

static pawl_status train_points(struct linear_run *run) {
  struct linear_state state = {0};
  size_t first = 0;
  pawl_status status = PAWL_OK;
  if (run->options->resume) {
    status = linear_state_load(run, &state);
    if (status) return status;
    first = state.point;
  }
  run->trained_ns = run->saved_ns = apps_now();
  for (size_t i = first; i < run->options->point_count && !status; i++) {
    status = linear_train_point(run, i, run->options->resume && i == first);
    if (run->common.is_stopping) break;
  }
  return status;
}

static void fini(struct linear_run *run) {
  pawl_job_end(run->common.job);
  linear_newton_end(run);
  linear_forget_kept(run);
  linear_close_vectors(run);
  pawl_vector_close(run->scales);
  if (run->has_vectors) linear_delete_vectors(run, &run->order);
  if (run->scales) linear_delete_vector(run, &run->order, LINEAR_SCALES);
  apps_free(run->mean);
  linear_validation_fini(run);
  linear_spec_fini(&run->spec);
  pawl_data_close(run->data);
  pawl_linear_model_destroy(run->model);
}

pawl_status pawl_linear_train(struct pawl_session *session, const struct pawl_linear_options *options,
                              struct pawl_linear_model **model_out, struct pawl_linear_result *result_out,
                              char error[PAWL_LINEAR_TEXT]) {
  char room[PAWL_LINEAR_TEXT];
  struct pawl_linear_options is;
  char *text = error ? error : room;
  *text = 0;
  if (!pawl_linear_check(options, text) || !linear_options_take(options, &is)) return PAWL_INVALID;
  struct linear_run run = {.options = &is, .keeps_model = model_out != NULL};
  run.common = (struct apps_run){.session = session,
                                 .tell = is.tell,
                                 .stopping = is.stopping,
                                 .start_worker = is.start_worker,
                                 .context = is.context,
                                 .hear = linear_hear,
                                 .tick = linear_wait,
                                 .application = &run,
                                 .error = text,
                                 .begun_ns = apps_now()};
  run.progress.objective = run.progress.loss = run.progress.penalty = NAN;
  run.progress.valid_loss = run.progress.valid_accuracy = run.progress.left_s = NAN;
  run.result.valid_loss = run.result.valid_accuracy = run.result.accuracy = run.result.objective = NAN;
  run.result.gap = NAN;
  run.progress.points = is.point_count;
  run.progress.unsaved = run.result.unsaved;
  pawl_status status = open_data(&run);
  if (!status) status = create_job(&run);
  if (!status) status = linear_describe(&run);
  if (!status) status = train_points(&run);
  if (status == PAWL_CANCELLED && run.common.is_stopping) {
    if (!run.result.why) run.result.why = "interrupted";
    status = PAWL_OK;
  }
  if (status) apps_fail_as_said(&run.common, status);
  run.result.seconds = apps_seconds_since(run.common.begun_ns);
  if (!status) *result_out = run.result;
  if (!status && model_out) {
    *model_out = run.model;
    run.model = NULL;
  }
  fini(&run);
  return status;
}
