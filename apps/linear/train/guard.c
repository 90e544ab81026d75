/* Keeps the best weights and goes back to them, and measures the distance to the optimum.
 *
 * Steps that do not know of one another can overshoot, and on correlated columns they can do so in every
 * round. So after each round that is the best so far, the scheduler reads the weights that are not zero. When
 * the objective has risen, it writes them to vectors of a new generation, from which all workers begin again,
 * and control.c makes steps shorter. The model that the user gets always has the best weights of all rounds.
 *
 * To measure the distance, the scheduler runs a round of derivatives (derive.c), which the servers add up,
 * and computes a point of the dual from the sums (certificate.h). This costs about half a round. The
 * scheduler does it when training seems to have converged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/certificate.h"
#include "apps/linear/train/inside.h"

enum { ROWS_AT_ONCE = 1 << 16 };

/* --- the best so far ------------------------------------------------------------------------------------ */

static pawl_status make_room(struct linear_kept *kept, size_t count) {
  if (count > kept->room) {
    size_t room = count > 512 ? 2 * count : 1024;
    uint64_t *keys = apps_resize(kept->keys, room * sizeof *keys);
    if (keys) kept->keys = keys;
    double *weights = apps_resize(kept->weights, room * sizeof *weights);
    if (weights) kept->weights = weights;
    if (!keys || !weights) return PAWL_NO_MEMORY;
    kept->room = room;
  }
  return PAWL_OK;
}

static pawl_status keep_row(struct linear_kept *kept, uint64_t key, double weight) {
  pawl_status status = make_room(kept, kept->count + 1);
  if (status) return status;
  kept->keys[kept->count] = key;
  kept->weights[kept->count++] = weight;
  return PAWL_OK;
}

static pawl_status keep_weights(struct linear_run *run, struct linear_kept *kept) {
  struct pawl_vector_info info;
  pawl_vector_info(run->weights, &info);
  uint64_t *keys = apps_alloc(ROWS_AT_ONCE * sizeof *keys), next = 0;
  double *rows = apps_alloc(ROWS_AT_ONCE * info.pulled_width * sizeof *rows);
  size_t count = 0;
  pawl_status status = keys && rows ? PAWL_OK : PAWL_NO_MEMORY;
  while (!status && next < info.options.size) {
    struct pawl_range rest = {next, info.options.size};
    status = pawl_vector_scan(run->weights, rest, ROWS_AT_ONCE, keys, rows, PAWL_FOREVER, &count, &next);
    for (size_t i = 0; i < count && !status; i++)
      if (rows[i * info.pulled_width] != 0) status = keep_row(kept, keys[i], rows[i * info.pulled_width]);
  }
  apps_free(keys);
  apps_free(rows);
  return status;
}

pawl_status linear_keep(struct linear_run *run) {
  struct linear_kept *kept = &run->kept;
  kept->count = 0;
  kept->is_there = run->is_best = false; /* until all weights are read */
  pawl_status status = keep_weights(run, kept);
  if (!status && run->bias) status = linear_read_bias(run, &kept->bias);
  kept->is_there = run->is_best = !status;
  return status ? apps_fail(&run->common, status, "cannot keep the best weights: %s", pawl_error_text()) : PAWL_OK;
}

static pawl_status write_back(struct linear_run *run) {
  const struct linear_kept *kept = &run->kept;
  const uint64_t zero = 0;
  pawl_status status = linear_write_vector(run, run->weights, kept->keys, kept->weights, kept->count);
  if (!status && run->bias) status = linear_write_vector(run, run->bias, &zero, &kept->bias, 1);
  run->is_best = !status;
  run->progress.objective = run->control.best;
  return status ? apps_fail(&run->common, status, "cannot restore the best weights: %s", pawl_error_text()) : PAWL_OK;
}

pawl_status linear_go_back(struct linear_run *run) {
  struct linear_order before = run->order;
  linear_close_vectors(run);
  run->order.generation++;
  pawl_status status = linear_make_vectors(run);
  linear_delete_vectors(run, &before);
  return status ? status : write_back(run);
}

pawl_status linear_end_with_the_best(struct linear_run *run) {
  return run->kept.is_there && !run->is_best && isfinite(run->control.best) ? write_back(run) : PAWL_OK;
}

pawl_status linear_remember(struct linear_run *run) {
  struct linear_kept *earlier = &run->earlier;
  earlier->is_there = false;
  if (!run->kept.is_there || !run->is_best) return PAWL_OK;
  pawl_status status = make_room(earlier, run->kept.count);
  if (status) return apps_fail(&run->common, status, "cannot remember the weights of a round");
  earlier->count = run->kept.count;
  if (earlier->count > 0) { /* otherwise there may be no memory at all */
    memcpy(earlier->keys, run->kept.keys, earlier->count * sizeof *earlier->keys);
    memcpy(earlier->weights, run->kept.weights, earlier->count * sizeof *earlier->weights);
  }
  earlier->is_there = true;
  return PAWL_OK;
}

static void forget(struct linear_kept *kept) {
  apps_free(kept->keys);
  apps_free(kept->weights);
  memset(kept, 0, sizeof *kept);
}

void linear_forget_kept(struct linear_run *run) {
  forget(&run->kept);
  forget(&run->earlier);
  run->is_best = false;
}

/* --- the distance to the optimum ------------------------------------------------------------------------ */

/* Adds all features to the certificate: their gradients from the servers, by ascending key, and their
 * weights. */
static pawl_status look_at_features(struct linear_run *run, struct pawl_vector *gradient,
                                    struct linear_certificate *certificate) {
  struct linear_worker reader = {.weights = run->weights};
  uint64_t *keys = apps_alloc(ROWS_AT_ONCE * sizeof *keys), next = 0;
  double *pairs = apps_alloc(2 * ROWS_AT_ONCE * sizeof *pairs), *w = apps_alloc(ROWS_AT_ONCE * sizeof *w), bias;
  const struct linear_kept *earlier = &run->earlier;
  size_t count = 0, seen = 0;
  pawl_status status = keys && pairs && w ? PAWL_OK : PAWL_NO_MEMORY;
  while (!status && next < run->order.features) {
    struct pawl_range rest = {next, run->order.features};
    status = pawl_vector_scan(gradient, rest, ROWS_AT_ONCE, keys, pairs, PAWL_FOREVER, &count, &next);
    if (!status) status = linear_pull_weights(&reader, keys, count, w, &bias);
    for (size_t i = 0; i < count && !status; i++) {
      while (seen < earlier->count && earlier->keys[seen] < keys[i]) seen++;
      bool had = seen < earlier->count && earlier->keys[seen] == keys[i];
      linear_certificate_add(certificate, w[i], had ? earlier->weights[seen] : 0, pairs + 2 * i);
    }
  }
  apps_free(keys);
  apps_free(pairs);
  apps_free(w);
  return status;
}

static pawl_status measure_once(struct linear_run *run, bool *whole_out, struct linear_distance *distance) {
  struct linear_certificate certificate;
  struct linear_reply sum;
  struct pawl_vector *gradient = NULL;
  double penalty = 0;
  uint64_t nonzeros;
  run->order.what = LINEAR_DERIVE;
  run->order.serial++;
  run->order.is_curved = false;
  pawl_status status = linear_make_vector(run, LINEAR_GRADIENT, &gradient);
  if (!status) status = linear_round(run, &sum, whole_out);
  if (!status && *whole_out) {
    linear_certificate_init(&certificate, run->spec.loss, run->spec.bias, run->order.l1, run->order.l2, &sum);
    status = look_at_features(run, gradient, &certificate);
    if (!status) status = linear_read_penalty(run, &penalty, &nonzeros);
    if (!status) distance->gap = linear_certificate_gap(&certificate, &sum, sum.loss + penalty);
    distance->violation = certificate.violation;
    distance->reach = certificate.reach / fabs(sum.loss + penalty);
    distance->moved = run->earlier.is_there ? certificate.moved / fabs(sum.loss + penalty) : INFINITY;
  }
  pawl_vector_close(gradient);
  linear_delete_vector(run, &run->order, LINEAR_GRADIENT);
  return status;
}

pawl_status linear_measure(struct linear_run *run, struct linear_distance *distance_out) {
  bool is_whole = false;
  pawl_status status = PAWL_OK;
  while (!is_whole && !status) status = measure_once(run, &is_whole, distance_out);
  return status;
}

/* --- judging the result --------------------------------------------------------------------------------- */

static bool is(const char *why, const char *word) { return why && strcmp(why, word) == 0; }

/* Streams have no bound on the distance. But a model that is worse than all weights zero has diverged. */
static bool has_diverged(const struct linear_run *run) {
  double objective = run->result.objective;
  if (is(run->result.why, "interrupted") || is(run->result.why, "failed"))
    return false; /* the objective is not known */
  return !isfinite(objective) || (run->spec.method->streams && objective > run->nothing);
}

void linear_judge_end(struct linear_run *run) {
  struct pawl_linear_result *result = &run->result;
  bool asked_for = run->options->rounds > 0; /* the user limited the rounds */
  bool diverged = has_diverged(run);
  if (diverged) result->why = "diverged";
  result->gap = run->control.gap;
  result->method = run->spec.method->name;
  result->can_start = run->spec.method->no_start == NULL;
  result->is_certain = !diverged && (is(result->why, "converged") || is(result->why, "streamed") ||
                                     is(result->why, "early stop") || (is(result->why, "rounds") && asked_for));
  result->advice = NULL;
  if (diverged && run->spec.method->streams)
    result->advice = "a lower --rate, --unit-rows, or a method that does not stream";
  else if (is(result->why, "diverged") || is(result->why, "stuck"))
    result->advice = "values of similar size (--scale max, or --unit-rows), a larger penalty, or a larger --tolerance";
  else if (is(result->why, "rounds"))
    result->advice = "more --rounds, values of similar size (--scale max, or --unit-rows), a larger penalty, or a "
                     "larger --tolerance";
}
