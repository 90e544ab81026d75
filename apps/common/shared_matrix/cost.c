#include "apps/common/shared_matrix/cost.h"

#include <math.h>
#include <string.h>

#define HEAD_BYTES 24 /* of a commit */
#define WORD_BYTES 4  /* of the number of values of a vector, and of an index */
#define ARCS 8        /* of one server */
#define KEY_BYTES 1.5 /* of a key of a list that has many: servers pack them */

uint64_t matrix_vector_bytes(const struct matrix_shape *shape, uint64_t length, uint64_t nonzeros) {
  uint64_t each = matrix_value_size(shape), dense = length * each, sparse = nonzeros * (each + WORD_BYTES);
  return WORD_BYTES + (sparse < dense ? sparse : dense);
}

/* So many values, as servers get them: a bit for each, if that is shorter. */
static double packed(double values, double nonzeros, double each) {
  return fmin(values * each, values / 8 + nonzeros * each);
}

/* What all workers push in a step: for each of their rows, the values of u of their pairs; and the vectors v, for each
 * part of the matrix. */
static double pushed(const struct matrix_sample *sample, const struct pawl_matrix_sharing *sharing, double workers,
                     double part) {
  const struct matrix_shape *shape = &sample->shape;
  double each = (double)matrix_value_size(shape), pairs = sample->pairs_per_step;
  double rows = sample->is_sparse ? (double)sample->rows * part / workers : (double)shape->rows; /* of a worker */
  double u = packed(pairs * rows, (double)sample->u_nonzeros * part, each);
  double v = packed(pairs * (double)shape->columns, (double)sample->v_nonzeros * part, each);
  if (sample->u_nonzeros == 0 && sample->v_nonzeros == 0) return (double)sample->pair_bytes * part;
  if (sample->is_sparse) u += KEY_BYTES * rows * workers;
  return u + v * fmin(sharing->arcs > 0 ? sharing->arcs : ARCS, rows);
}

struct pawl_matrix_costs matrix_costs(const struct matrix_sample *sample, const struct pawl_matrix_sharing *sharing,
                                      uint32_t workers) {
  const struct matrix_shape *shape = &sample->shape;
  double count = workers, part = sample->pairs ? sample->pairs_per_step / (double)sample->pairs : 0;
  double row = (double)(shape->columns * matrix_value_size(shape)), all = (double)shape->rows * row;
  double commits = (double)sample->pair_bytes * part + count * HEAD_BYTES; /* one of each worker */
  struct pawl_matrix_costs costs = {.factors = commits * (count - 1)};
  bool is_partial = sharing->graph && strcmp(sharing->graph, "complete") != 0 && !sharing->forward;
  if (is_partial) costs.factors = (double)NAN;
  double down = sample->is_sparse ? (double)sample->rows * part * (row + KEY_BYTES) : count * all;
  costs.whole = 2 * down;
  costs.servers = pushed(sample, sharing, count, part) + down;
  bool is_long = sample->pairs_per_step / count * row > PAWL_SLICE_BYTES; /* the vectors v of a worker go at once */
  if (is_long) costs.servers = (double)NAN;
  return costs;
}

enum pawl_matrix_way pawl_matrix_cheapest(const struct pawl_matrix_costs *costs) {
  double least = fmin(costs->factors, fmin(costs->whole, costs->servers));
  return least == costs->factors ? PAWL_MATRIX_FACTORS
         : least == costs->whole ? PAWL_MATRIX_WHOLE
                                 : PAWL_MATRIX_SERVERS;
}
