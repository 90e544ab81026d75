/* Dual coordinate ascent by workers. Each worker owns a range of the rows and their duals. In a step it finds better duals of some
 * rows, one after the other, and commits their pairs; the weights that it sees have the steps of all workers before.
 *
 * P workers change the weights at the same time, so each takes the others into account as if they made the same change: it
 * computes with |x|^2 P instead of |x|^2, and sees its own changes of this step P times (CoCoA+, Ma et al. 2015, with
 * sigma' = P). Then the dual objective never falls:  |sum of changes|^2  is at most  P times the sum of |change|^2.
 */
#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"
#include "apps/mlr/learner.h"
#include "apps/mlr/softmax.h"

enum { MLR_FOR_OWN_ORDER = 2 }; /* purpose of random numbers; MLR_FOR_ORDER is 1 */

#define DROPPED 1e-4 /* as in sdca.c */
#define UNCHANGED 1e-16

static pawl_status no_memory(struct mlr_hand *hand) {
  return apps_say(hand->run.error, PAWL_NO_MEMORY, "no memory for the duals of this worker's rows; use sgd");
}

pawl_status mlr_hand_begin_sdca(struct mlr_hand *hand) {
  struct mlr_own_duals *own = &hand->own;
  size_t classes = hand->run.model->about.classes, rows = (size_t)hand->run.rows->info.rows;
  size_t most = rows / (size_t)hand->pass_steps + 2; /* of a step, by one worker */
  own->memory = apps_alloc_zero(classes, (5 + most) * sizeof *own->memory);
  own->rows = apps_alloc_zero(most, sizeof *own->rows);
  own->order = apps_alloc_zero(rows + 1, sizeof *own->order);
  own->scattered = apps_alloc_zero(hand->run.model->matrix.features + 1, sizeof *own->scattered);
  hand->run.squares = apps_alloc_zero(rows, sizeof *hand->run.squares);
  if (!own->memory || !own->rows || !own->order || !own->scattered || !hand->run.squares) return no_memory(hand);
  for (size_t i = 0; i < rows; i++)
    hand->run.squares[i] = mlr_row_square(mlr_row_of(hand->run.rows, NULL, i)) + !hand->run.is.no_bias;
  return PAWL_OK;
}

void mlr_hand_end_sdca(struct mlr_hand *hand) {
  struct mlr_own_duals *own = &hand->own;
  if (own->is_there) mlr_duals_fini(&own->duals);
  apps_free(own->memory);
  apps_free(own->rows);
  apps_free(own->order);
  apps_free(own->scattered);
  apps_free(hand->run.squares);
}

double mlr_hand_entropy(struct mlr_hand *hand) { return hand->own.is_there ? mlr_duals_entropy(&hand->own.duals) : 0; }

/* --- eras ------------------------------------------------------------------------------------------------- */

/* Duals of other rows. Those that this worker has already stay. */
static pawl_status own_rows(struct mlr_hand *hand, size_t begin, size_t end) {
  struct mlr_own_duals *own = &hand->own;
  uint32_t classes = hand->run.model->about.classes;
  struct mlr_duals duals;
  double *q = own->memory;
  bool good = mlr_duals_init(&duals, classes, end - begin, hand->run.rows->classes + begin,
                             hand->run.is.tolerance * DROPPED / classes);
  for (size_t row = begin; good && own->is_there && row < end; row++) {
    if (row < own->begin || row >= own->end) continue;
    mlr_duals_get(&own->duals, row - own->begin, q);
    good = mlr_duals_set(&duals, row - begin, q);
  }
  if (!good) {
    mlr_duals_fini(&duals);
    return no_memory(hand);
  }
  if (own->is_there) mlr_duals_fini(&own->duals);
  own->duals = duals;
  own->begin = begin;
  own->end = end;
  own->is_there = true;
  return PAWL_OK;
}

/* A worker that comes in the middle of an era owns nothing until the next one. */
static pawl_status enter_era(struct mlr_hand *hand, uint64_t step, uint64_t era) {
  struct mlr_own_duals *own = &hand->own;
  size_t begin = 0, end = 0;
  if (own->is_there && own->era == era) return PAWL_OK;
  own->era = era;
  own->pass = UINT64_MAX;
  own->workers = matrix_share_size(hand->share);
  if (step == era) matrix_share_part(hand->share, (size_t)hand->run.rows->info.rows, &begin, &end);
  return own_rows(hand, begin, end);
}

static void shuffle(struct mlr_hand *hand, uint64_t pass) {
  struct mlr_own_duals *own = &hand->own;
  struct apps_random random = apps_random_of(hand->run.is.seed, MLR_FOR_OWN_ORDER, pass, own->begin);
  if (own->pass != pass) apps_shuffle(&random, own->order, own->end - own->begin);
  own->pass = pass;
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static struct mlr_row row_at(const struct mlr_hand *hand, uint32_t place) {
  return mlr_row_of(hand->run.rows, NULL, hand->own.begin + place);
}

static uint32_t feature_of(const struct mlr_row *row, size_t n) { return row->at ? row->at[n] : (uint32_t)n; }

/* Adds to the scores of a row those by the changes u of earlier rows of this step. */
static void add_changes(struct mlr_hand *hand, const struct mlr_row *x, size_t earlier, const double *u, double times,
                        double *scores) {
  struct mlr_own_duals *own = &hand->own;
  size_t classes = hand->run.model->about.classes;
  for (size_t n = 0; n < x->count; n++) own->scattered[feature_of(x, n)] += x->values[n];
  for (size_t i = 0; i < earlier; i++) {
    const struct mlr_row *other = &own->rows[i];
    double dot = hand->run.is.no_bias ? 0 : 1;
    for (size_t n = 0; n < other->count; n++)
      dot += (double)other->values[n] * (double)own->scattered[feature_of(other, n)];
    for (size_t j = 0; j < classes && dot != 0; j++) scores[j] += times * dot * u[i * classes + j];
  }
  for (size_t n = 0; n < x->count; n++) own->scattered[feature_of(x, n)] = 0;
}

/* Finds the best dual of one row; its change is added to the list behind `earlier` others. */
static pawl_status improve(struct mlr_hand *hand, uint32_t place, size_t earlier) {
  struct mlr_own_duals *own = &hand->own;
  struct mlr_run *run = &hand->run;
  size_t classes = run->model->about.classes;
  double *scores = own->memory, *q = scores + classes, *work = q + classes, *changes = work + 3 * classes;
  double *before = changes + earlier * classes, times = own->workers / run->is.l2;
  struct mlr_row x = own->rows[earlier] = row_at(hand, place);
  mlr_matrix_scores(&run->model->matrix, &x, 1, NULL, scores);
  add_changes(hand, &x, earlier, changes, times, scores);
  mlr_duals_get(&own->duals, place, before);
  mlr_best_dual(classes, scores, before, run->squares[own->begin + place] * times, work, q);
  if (!mlr_duals_set(&own->duals, place, q)) return no_memory(hand);
  for (size_t j = 0; j < classes; j++) before[j] -= q[j]; /* from here on it is u */
  return PAWL_OK;
}

/* The pair by which a row has changed the weights since they were 0. */
static void total(struct mlr_hand *hand, uint32_t place, double *u) {
  const struct mlr_own_duals *own = &hand->own;
  mlr_duals_get(&own->duals, place, u);
  for (size_t j = 0; j < hand->run.model->about.classes; j++)
    u[j] = (hand->run.rows->classes[own->begin + place] == j) - u[j];
}

static double largest(const double *u, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; i++) most = fmax(most, fabs(u[i]));
  return most;
}

static pawl_status make_pairs(struct mlr_hand *hand, const uint32_t *places, size_t count, bool rebuilds) {
  struct mlr_own_duals *own = &hand->own;
  size_t classes = hand->run.model->about.classes;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < count; i++) {
    double *u = own->memory + (5 + (rebuilds ? 0 : i)) * classes;
    struct mlr_row x = row_at(hand, places[i]);
    if (rebuilds)
      total(hand, places[i], u);
    else
      status = improve(hand, places[i], i);
    if (!status && largest(u, classes) >= UNCHANGED) status = mlr_hand_add(hand, u, &x);
  }
  return status;
}

pawl_status mlr_hand_step_sdca(struct mlr_hand *hand, uint64_t step) {
  struct mlr_own_duals *own = &hand->own;
  uint64_t phase = matrix_share_phase(hand->share), place = step % hand->pass_steps;
  pawl_status status = enter_era(hand, step, phase >> 1);
  if (status) return status;
  shuffle(hand, step / hand->pass_steps);
  size_t rows = own->end - own->begin;
  size_t first = (size_t)((double)rows * (double)place / (double)hand->pass_steps);
  size_t end = (size_t)((double)rows * (double)(place + 1) / (double)hand->pass_steps);
  status = mlr_hand_need(hand, own->order + first, own->begin, end - first);
  if (!status) status = make_pairs(hand, own->order + first, end - first, phase & 1);
  return status ? status : matrix_share_commit(hand->share, 1 / hand->run.is.l2);
}
