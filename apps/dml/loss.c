#include "apps/dml/loss.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"

double dml_loss_of(const struct dml_loss *loss, bool is_similar, double square) {
  double above = is_similar ? square - loss->near : loss->weight * (1 - square);
  return above < 0 ? 0 : above; /* NAN stays NAN */
}

double dml_loss_slope(const struct dml_loss *loss, bool is_similar, double square) {
  if (is_similar) return square > loss->near ? 2 : 0;
  return square < 1 ? -2 * loss->weight : 0;
}

static double square_between(const struct dml_points *mapped, struct dml_pair pair) {
  const float *one = mapped->at + pair.one * mapped->width, *other = mapped->at + pair.other * mapped->width;
  float sum = 0;
  for (size_t i = 0; i < mapped->width; i++) sum += (one[i] - other[i]) * (one[i] - other[i]);
  return (double)sum;
}

double dml_objective(const struct dml_loss *loss, const struct dml_pair_list *pairs, const struct dml_points *mapped) {
  double sum = 0;
  for (size_t i = 0; i < pairs->count; i++) {
    double square = square_between(mapped, pairs->at[i]);
    if (!isfinite(square)) return (double)NAN;
    sum += dml_loss_of(loss, i < pairs->similar, square);
  }
  return sum / (double)pairs->count;
}

double dml_mean_square(const struct dml_pair_list *pairs, size_t first, size_t end, const struct dml_points *mapped) {
  double sum = 0;
  for (size_t i = first; i < end; i++) sum += square_between(mapped, pairs->at[i]);
  return sum / (double)(end - first);
}

/* --- batches ---------------------------------------------------------------------------------------------- */

pawl_status dml_batch_init(struct dml_batch *batch, size_t room, const struct dml_weights *weights) {
  *batch = (struct dml_batch){.room = room};
  batch->u = apps_alloc_zero(room, weights->rank * sizeof *batch->u);
  batch->v = apps_alloc_zero(room, weights->features * sizeof *batch->v);
  return batch->u && batch->v ? PAWL_OK : PAWL_NO_MEMORY;
}

void dml_batch_fini(struct dml_batch *batch) {
  apps_free(batch->u);
  apps_free(batch->v);
}

static void subtract(const struct dml_points *points, struct dml_pair pair, float *v_out) {
  const float *one = points->at + pair.one * points->width, *other = points->at + pair.other * points->width;
  for (size_t d = 0; d < points->width; d++) v_out[d] = one[d] - other[d];
}

/* Moves a pair of vectors to place `kept`, with the factor of its slope. */
static void keep(struct dml_batch *batch, const struct dml_weights *weights, size_t kept, size_t i, double factor) {
  float *u = batch->u + kept * weights->rank;
  for (size_t r = 0; r < weights->rank; r++) u[r] = (float)factor * batch->u[i * weights->rank + r];
  if (kept < i)
    memcpy(batch->v + kept * weights->features, batch->v + i * weights->features, weights->features * sizeof *batch->v);
}

struct dml_pairs dml_batch_fill(struct dml_batch *batch, const struct dml_loss *loss, const struct dml_pair_list *pairs,
                                const uint32_t *numbers, size_t count, const struct dml_points *points,
                                const struct dml_weights *weights) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) subtract(points, pairs->at[numbers[i]], batch->v + i * weights->features);
  dml_weights_map(weights, batch->v, count, batch->u);
  for (size_t i = 0; i < count; i++) {
    double square = 0;
    for (size_t r = 0; r < weights->rank; r++)
      square += (double)batch->u[i * weights->rank + r] * (double)batch->u[i * weights->rank + r];
    double factor = dml_loss_slope(loss, numbers[i] < pairs->similar, square);
    if (factor < 0 || factor > 0) keep(batch, weights, kept++, i, factor);
  }
  return (struct dml_pairs){kept, weights->rank, weights->features, batch->u, batch->v};
}
