/* Checkpoints of a job. The servers save the vectors (<pawl/checkpoint.h>), or each worker that averages its weights
 * (apps/common/reduce_files.h), and the scheduler writes the state of the training to a small file beside them. The
 * file is replaced as a whole, and names a complete checkpoint. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/errors.h"
#include "apps/linear/train/inside.h"

static bool state_path(const struct linear_run *run, char *path, size_t size) {
  int length = snprintf(path, size, "%s/%s.json", run->options->checkpoints, run->spec.job);
  return length > 0 && (size_t)length < size;
}

/* --- saving --------------------------------------------------------------------------------------------- */

static void add_reduce_terms(const struct linear_run *run, json_t *terms) {
  static const char *const modes[] = {
      [PAWL_REDUCE_NOTIFY_ACK] = "notify-ack", [PAWL_REDUCE_BSP] = "bsp", [PAWL_REDUCE_ASYNC] = "async"};
  apps_term(terms, "--share", "reduce");
  apps_term(terms, "--graph", "%s", run->spec.graph);
  apps_term(terms, "--mode", "%s", modes[run->spec.mode]);
  apps_term(terms, "--schedule", "%s", run->spec.falls ? "cosine" : "constant");
  apps_term(terms, "--seed", "%" PRIu64, run->options->seed);
}

/* The options that must be the same when training resumes, as weights depend on them. */
static json_t *make_terms(const struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  char l1[1024] = "", l2[1024] = "";
  json_t *terms = json_object();
  for (size_t i = 0; i < options->point_count; i++) {
    size_t at = strlen(l1), also = strlen(l2);
    snprintf(l1 + at, sizeof l1 - at, "%s%.12g", i ? "," : "", options->points[i].l1);
    snprintf(l2 + also, sizeof l2 - also, "%s%.12g", i ? "," : "", options->points[i].l2);
  }
  apps_term(terms, "--loss", "%s", pawl_linear_loss_name(run->spec.loss));
  apps_term(terms, "--method", "%s", run->spec.method->name);
  apps_term(terms, "--l1", "%s", l1);
  apps_term(terms, "--l2", "%s", l2);
  apps_term_flag(terms, "--no-bias", !run->spec.bias);
  apps_term(terms, "--class-weight", "%.12g for the lower label and %.12g for the higher", run->spec.class_weights[0],
            run->spec.class_weights[1]);
  apps_term(terms, "--scale", "%s", pawl_linear_scale_name(run->spec.scale));
  apps_terms_reading(terms, &run->spec.reading);
  if (run->spec.reduces) add_reduce_terms(run, terms);
  if (!run->spec.method->streams) return terms;
  apps_term(terms, "--minibatch", "%u", (unsigned)run->spec.minibatch);
  apps_term(terms, "--rate", "%.12g", run->spec.rate);
  return terms;
}

void linear_state_digest(struct linear_run *run, const struct apps_digest *digest) {
  if (digest->pieces == run->spec.pieces) run->digest = *digest;
}

static json_t *describe(const struct linear_run *run, const char *checkpoint, const struct apps_reduce_saved *files) {
  const struct linear_order *order = &run->order;
  json_t *object = json_pack(
      "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:[f, f], s:f, s:f, s:o, s:f, s:f, s:i, s:i}",
      "checkpoint", checkpoint, "before", run->saved[0], "round", (json_int_t)order->round, "first_round",
      (json_int_t)run->first_round, "point", (json_int_t)order->point, "features", (json_int_t)order->features, "rows",
      (json_int_t)order->rows, "entries", (json_int_t)run->result.entries, "job", run->spec.job, "generation",
      (json_int_t)order->generation, "blocks", (json_int_t)order->blocks, "labels", order->labels[0], order->labels[1],
      "damping", run->control.damping, "rate", run->control.rate, "objective",
      isfinite(run->progress.objective) ? json_real(run->progress.objective) : json_null(), "l1", order->l1, "l2",
      order->l2, "loss", (int)run->spec.loss, "method", (int)run->spec.method->number);
  if (!object) return NULL;
  json_object_set_new(object, "terms", make_terms(run));
  json_object_set_new(object, "files", apps_files_write(run->data));
  json_object_set_new(object, "digest", apps_digest_write(&run->digest));
  if (run->spec.reduces) json_object_set_new(object, "reduce", apps_reduce_saved_write(files));
  return object;
}

/* Removes a checkpoint after two newer ones. A directory with other files stays. */
static void remove_checkpoint(const struct linear_run *run, const char *name) {
  pawl_status status = *name ? pawl_checkpoint_remove(run->options->checkpoints, name) : PAWL_OK;
  (void)status;
}

static void keep_two(struct linear_run *run, const char *newest) {
  remove_checkpoint(run, run->saved[1]);
  memcpy(run->saved[1], run->saved[0], sizeof run->saved[1]);
  snprintf(run->saved[0], sizeof run->saved[0], "%s", newest);
}

static void note(struct linear_run *run, pawl_status status, const char *error) {
  run->result.can_resume |= !status;
  run->result.unsaved[0] = '\0';
  if (status)
    (void)apps_say(run->result.unsaved, status, "cannot write a checkpoint to %.200s: %.250s",
                   run->options->checkpoints, *error ? error : pawl_status_text(status));
}

/* The turn changes once the file names it: until then, the files of the last turn are the checkpoint. */
static pawl_status save_files(struct linear_run *run) {
  struct apps_reduce_saved next;
  char path[4096], error[APPS_TEXT_MAX] = "";
  bool is_there = false;
  pawl_status status = linear_average_save(run, &next, &is_there);
  if (status || !is_there) return status;
  if (!state_path(run, path, sizeof path)) return PAWL_INVALID;
  status = apps_state_write(path, describe(run, "", &next), error);
  if (!status) run->files = next;
  note(run, status, error);
  return PAWL_OK;
}

static pawl_status save_vectors(struct linear_run *run, char error[APPS_TEXT_MAX]) {
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  char path[4096];
  linear_gradient_end(run);               /* workers compute it anew: a checkpoint need not have it */
  mkdir(run->options->checkpoints, 0700); /* saving reports a failure */
  pawl_checkpoint_options_init(&options);
  options.directory = run->options->checkpoints;
  pawl_status status = state_path(run, path, sizeof path) ? PAWL_OK : PAWL_INVALID;
  if (!status) status = pawl_checkpoint_save(run->common.session, &options, &info);
  if (status) return apps_say(error, status, "%s", apps_error_text(status));
  status = apps_state_write(path, describe(run, info.name, NULL), error);
  if (!status)
    keep_two(run, info.name);
  else
    remove_checkpoint(run, info.name); /* nothing names it */
  return status;
}

/* A checkpoint that fails does not end the training, but a worker that fails does. */
pawl_status linear_state_save(struct linear_run *run) {
  char error[APPS_TEXT_MAX] = "";
  run->saved_ns = apps_now();
  if (run->spec.reduces) return save_files(run);
  note(run, save_vectors(run, error), error);
  return PAWL_OK;
}

/* --- loading -------------------------------------------------------------------------------------------- */

static bool unpack(json_t *object, const struct linear_run *run, struct linear_state *state) {
  const char *checkpoint, *before = "";
  json_int_t round, first_round, point, features, rows, entries, generation, blocks;
  json_t *objective;
  int loss, method;
  double l1, l2;
  if (json_unpack(object, "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:[F, F], s:F, s:F, s:o, s:F, s:F, s:i, s:i}",
                  "checkpoint", &checkpoint, "round", &round, "first_round", &first_round, "point", &point, "features",
                  &features, "rows", &rows, "entries", &entries, "generation", &generation, "blocks", &blocks, "labels",
                  &state->labels[0], &state->labels[1], "damping", &state->damping, "rate", &state->rate, "objective",
                  &objective, "l1", &l1, "l2", &l2, "loss", &loss, "method", &method))
    return false;
  json_unpack(object, "{s:s}", "before", &before);
  if (strlen(checkpoint) > PAWL_CHECKPOINT_NAME_MAX || strlen(before) > PAWL_CHECKPOINT_NAME_MAX ||
      strchr(before, '/') || round < 1 || first_round < 0 || first_round > round || point < 0 || generation < 0 ||
      blocks < 1 || blocks > 1 << 20)
    return false;
  memcpy(state->checkpoint, checkpoint, strlen(checkpoint) + 1);
  memcpy(state->before, before, strlen(before) + 1);
  state->round = (uint64_t)round;
  state->first_round = (uint64_t)first_round;
  state->point = (size_t)point;
  state->features = (uint64_t)features;
  state->rows = (uint64_t)rows;
  state->entries = (uint64_t)entries;
  state->generation = (uint32_t)generation;
  state->blocks = (uint32_t)blocks;
  state->objective = json_is_number(objective) ? json_number_value(objective) : NAN;
  if (run->spec.reduces && !apps_reduce_saved_read(json_object_get(object, "reduce"), &state->files)) return false;
  return apps_digest_of(json_object_get(object, "digest"), &state->digest) && loss == (int)run->spec.loss &&
         method == (int)run->spec.method->number && state->point < run->options->point_count &&
         l1 == run->options->points[state->point].l1 && l2 == run->options->points[state->point].l2;
}

static pawl_status check_terms(struct linear_run *run, const json_t *object, const char *path) {
  char text[APPS_RESUME_TEXT];
  json_t *now = make_terms(run), *before = json_object_get(object, "terms");
  bool is_same = now && apps_terms_same(before, now, text);
  json_decref(now);
  if (!now) return PAWL_NO_MEMORY;
  if (is_same) return PAWL_OK;
  return apps_fail(&run->common, PAWL_MISMATCH,
                   "the checkpoint at %.200s is of a run with other options: %.200s; give the same options, or start "
                   "over without --resume",
                   path, text);
}

/* Methods that stream have not read the data yet. They read it if a file seems to have changed. */
static pawl_status digest_stream(struct linear_run *run, const struct apps_digest *before, bool has_same_files) {
  run->digest = *before;
  if (has_same_files || before->pieces == 0) return PAWL_OK;
  apps_tell(&run->common, "reading the data once, to check that it has not changed");
  pawl_status status = apps_digest_read(run->data, run->options->threads, &run->digest);
  return status ? apps_fail(&run->common, status, "%s", pawl_error_text()) : PAWL_OK;
}

static pawl_status check_data(struct linear_run *run, const json_t *object, const struct linear_state *state) {
  char text[APPS_RESUME_TEXT] = "";
  bool streams = run->spec.method->streams && !run->spec.reduces;
  bool has_same_files = apps_files_same(json_object_get(object, "files"), run->data, text);
  pawl_status status = streams ? digest_stream(run, &state->digest, has_same_files) : PAWL_OK;
  if (status) return status;
  bool is_known = state->digest.pieces > 0;
  bool is_same =
      is_known ? state->digest.sum == run->digest.sum && state->digest.pieces == run->digest.pieces : has_same_files;
  if (is_same) return PAWL_OK;
  return apps_fail(
      &run->common, PAWL_MISMATCH,
      "the data has changed since the checkpoint was written: %s; restore it, or start over without --resume",
      has_same_files ? "the rows differ, although names, sizes and times of the files are the same" : text);
}

static pawl_status check_size(struct linear_run *run, const struct linear_state *state) {
  if (run->spec.method->streams &&
      !run->spec.reduces) { /* an estimate from some pieces, which the rules of vectors contain */
    run->order.rows = state->rows;
    return PAWL_OK;
  }
  if (state->features == run->order.features && state->rows == run->order.rows) return PAWL_OK;
  return apps_fail(&run->common, PAWL_MISMATCH,
                   "the checkpoint is of data with %" PRIu64 " rows, but this data has %" PRIu64, state->rows,
                   run->order.rows);
}

static pawl_status read_file(struct linear_run *run, struct linear_state *state) {
  char path[4096];
  json_error_t problem;
  if (!state_path(run, path, sizeof path)) return PAWL_INVALID;
  json_t *object = json_load_file(path, 0, &problem);
  if (!object && access(path, F_OK))
    return apps_fail(&run->common, PAWL_NOT_FOUND, "no checkpoint of this job found at %s; start it without --resume",
                     path);
  if (!object) return apps_fail(&run->common, PAWL_CORRUPT, "%s:%d: %s", path, problem.line, problem.text);
  pawl_status status = check_terms(run, object, path);
  if (!status && !unpack(object, run, state))
    status = apps_fail(&run->common, PAWL_CORRUPT, "cannot resume from %s: it is damaged", path);
  if (!status) status = check_data(run, object, state);
  json_decref(object);
  return status ? status : check_size(run, state);
}

static pawl_status load_vectors(struct linear_run *run, const struct linear_state *state) {
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  pawl_checkpoint_options_init(&options);
  options.directory = run->options->checkpoints;
  options.name = state->checkpoint;
  options.space = run->spec.job;
  pawl_status status = pawl_checkpoint_load(run->common.session, &options, &info);
  if (status)
    return apps_fail(&run->common, status, "cannot load the checkpoint %s: %s", state->checkpoint, pawl_error_text());
  memcpy(run->saved[0], state->checkpoint, sizeof run->saved[0]);
  memcpy(run->saved[1], state->before, sizeof run->saved[1]);
  return PAWL_OK;
}

static pawl_status load_files(struct linear_run *run, const struct linear_state *state) {
  run->files = state->files;
  run->order.point = state->point;
  return linear_average_load_files(run);
}

static void say_resumed(struct linear_run *run, const struct linear_state *state) {
  char checkpoint[PAWL_CHECKPOINT_NAME_MAX + 32] = "", objective[64] = "";
  if (*state->checkpoint) snprintf(checkpoint, sizeof checkpoint, " (checkpoint %s)", state->checkpoint);
  if (isfinite(state->objective)) snprintf(objective, sizeof objective, " with objective %.8g", state->objective);
  apps_tell(&run->common, "resuming from round %" PRIu64 "%s%s", state->round - 1, objective, checkpoint);
}

pawl_status linear_state_load(struct linear_run *run, struct linear_state *state_out) {
  struct linear_state state = {0};
  pawl_status status = read_file(run, &state);
  if (!status) status = run->spec.reduces ? load_files(run, &state) : load_vectors(run, &state);
  if (status) return status;
  run->order.round = state.round;
  run->control.rounds = state.round - state.first_round;
  run->first_round = state.first_round;
  run->resumed = run->control.rounds;
  run->order.point = state.point;
  run->order.generation = state.generation;
  run->order.blocks = state.blocks;
  run->control.damping = state.damping;
  run->control.rate = state.rate;
  run->result.can_resume = true;
  memcpy(run->order.labels, state.labels, sizeof state.labels);
  say_resumed(run, &state);
  *state_out = state;
  return PAWL_OK;
}
