/* Checkpoints of a job: the vectors are saved by the servers (<pawl/checkpoint.h>), and a small file beside them says how far the
 * job had got. A file is there whole or not at all, and names a checkpoint that is. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/linear/train_inside.h"

static bool state_path(const struct linear_run *run, const char *suffix, char *path, size_t size) {
  int length = snprintf(path, size, "%s/%s.json%s", run->options->checkpoints, run->spec.job, suffix);
  return length > 0 && (size_t)length < size;
}

/* --- saving ------------------------------------------------------------------------------------------------------------------------ */

static json_t *describe(const struct linear_run *run, const char *checkpoint) {
  const struct linear_order *order = &run->order;
  return json_pack(
      "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:[f, f], s:f, s:f, s:o, s:f, s:f, s:i, s:i}",
      "checkpoint", checkpoint, "before", run->saved[0], "round", (json_int_t)order->round, "first_round",
      (json_int_t)run->first_round, "point", (json_int_t)order->point, "features", (json_int_t)order->features, "rows",
      (json_int_t)order->rows, "entries", (json_int_t)run->result.entries, "job", run->spec.job, "generation",
      (json_int_t)order->generation, "blocks", (json_int_t)order->blocks, "labels", order->labels[0], order->labels[1],
      "damping", run->control.damping, "rate", run->control.rate, "objective",
      isfinite(run->progress.objective) ? json_real(run->progress.objective) : json_null(), "l1", order->l1, "l2",
      order->l2, "loss", (int)run->spec.loss, "method", (int)run->spec.method);
}

static pawl_status write_file(const struct linear_run *run, json_t *object) {
  char path[4096], fresh[4096];
  if (!object || !state_path(run, "", path, sizeof path) || !state_path(run, ".new", fresh, sizeof fresh)) {
    json_decref(object);
    return PAWL_INVALID;
  }
  FILE *file = fopen(fresh, "w");
  bool is_good = file && json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0;
  json_decref(object);
  if (file) {
    is_good = fflush(file) == 0 && fsync(fileno(file)) == 0 && is_good;
    is_good = fclose(file) == 0 && is_good;
  }
  if (is_good) is_good = rename(fresh, path) == 0;
  return is_good ? PAWL_OK : errno == ENOSPC ? PAWL_NO_SPACE : PAWL_IO;
}

/* A checkpoint that two newer ones have taken the place of. One that holds anything else stays. */
static void remove_checkpoint(const struct linear_run *run, const char *name) {
  pawl_status status = *name ? pawl_checkpoint_remove(run->options->checkpoints, name) : PAWL_OK;
  (void)status;
}

static void keep_two(struct linear_run *run, const char *newest) {
  remove_checkpoint(run, run->saved[1]);
  memcpy(run->saved[1], run->saved[0], sizeof run->saved[1]);
  snprintf(run->saved[0], sizeof run->saved[0], "%s", newest);
}

/* Training goes on without a checkpoint that could not be made: losing the run for it would be worse. */
pawl_status linear_state_save(struct linear_run *run) {
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  run->saved_ns = linear_now();
  mkdir(run->options->checkpoints, 0700); /* if it cannot be made, saving says so */
  pawl_checkpoint_options_init(&options);
  options.directory = run->options->checkpoints;
  pawl_status status = pawl_checkpoint_save(run->session, &options, &info);
  if (!status) status = write_file(run, describe(run, info.name));
  if (!status)
    keep_two(run, info.name);
  else
    linear_tell(run, "no checkpoint could be written to %s: %s", run->options->checkpoints,
                *pawl_error_text() ? pawl_error_text() : pawl_status_text(status));
  return PAWL_OK;
}

/* --- loading ------------------------------------------------------------------------------------------------------------------------- */

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
  return loss == (int)run->spec.loss && method == (int)run->spec.method && state->point < run->options->point_count &&
         l1 == run->options->points[state->point].l1 && l2 == run->options->points[state->point].l2;
}

static pawl_status read_file(struct linear_run *run, struct linear_state *state) {
  char path[4096];
  json_error_t problem;
  if (!state_path(run, "", path, sizeof path)) return PAWL_INVALID;
  json_t *object = json_load_file(path, 0, &problem);
  if (!object && access(path, F_OK))
    return linear_fail(run, PAWL_NOT_FOUND, "there is no checkpoint of this job at %s: start it without --resume",
                       path);
  if (!object) return linear_fail(run, PAWL_CORRUPT, "%s:%d: %s", path, problem.line, problem.text);
  bool fits = unpack(object, run, state);
  json_decref(object);
  if (!fits)
    return linear_fail(run, PAWL_MISMATCH,
                       "the checkpoint at %s is of a job with another loss, method or penalty: give the same as then",
                       path);
  if (linear_calls_of(run->spec.method)->streams) { /* a guess from some pieces, which is part of the vectors' rules */
    run->order.rows = state->rows;
    return PAWL_OK;
  }
  if (state->features != run->order.features || state->rows != run->order.rows)
    return linear_fail(run, PAWL_MISMATCH, "the checkpoint is of data with %" PRIu64 " rows, and this has %" PRIu64,
                       state->rows, run->order.rows);
  return PAWL_OK;
}

pawl_status linear_state_load(struct linear_run *run, struct linear_state *state_out) {
  struct linear_state state = {0};
  struct pawl_checkpoint_options options;
  struct pawl_checkpoint_info info;
  pawl_status status = read_file(run, &state);
  if (status) return status;
  pawl_checkpoint_options_init(&options);
  options.directory = run->options->checkpoints;
  options.name = state.checkpoint;
  options.space = run->spec.job;
  status = pawl_checkpoint_load(run->session, &options, &info);
  if (status)
    return linear_fail(run, status, "the checkpoint %s cannot be loaded: %s", state.checkpoint, pawl_error_text());
  memcpy(run->saved[0], state.checkpoint, sizeof run->saved[0]);
  memcpy(run->saved[1], state.before, sizeof run->saved[1]);
  run->order.round = state.round;
  run->control.rounds = state.round - state.first_round;
  run->first_round = state.first_round;
  run->order.point = state.point;
  run->order.generation = state.generation;
  run->order.blocks = state.blocks;
  run->control.damping = state.damping;
  run->control.rate = state.rate;
  memcpy(run->order.labels, state.labels, sizeof state.labels);
  if (isfinite(state.objective))
    linear_tell(run, "resuming from round %" PRIu64 " with objective %.8g (checkpoint %s)", state.round - 1,
                state.objective, state.checkpoint);
  else
    linear_tell(run, "resuming from round %" PRIu64 " (checkpoint %s)", state.round - 1, state.checkpoint);
  *state_out = state;
  return PAWL_OK;
}
