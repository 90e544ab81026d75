#include "apps/common/shared_matrix/cost.h"

#include <math.h>
#include <string.h>

#define HEAD_BYTES 24 /* of a commit */
#define WORD_BYTES 4  /* of the number of values of a vector, and of an index */
#define KEY_BYTES 1.5 /* of a key of a list that has many: servers pack them */

uint64_t matrix_vector_bytes(const struct matrix_shape *shape, uint64_t length, uint64_t nonzeros) {
  uint64_t each = matrix_value_size(shape), dense = length * each, sparse = nonzeros * (each + WORD_BYTES);
  return WORD_BYTES + (sparse < dense ? sparse : dense);
}

struct pawl_matrix_costs matrix_costs(const struct matrix_sample *sample, const struct pawl_matrix_sharing *sharing,
                                      uint32_t workers) {
  const struct matrix_shape *shape = &sample->shape;
  double count = workers, part = sample->pairs ? sample->pairs_per_step / (double)sample->pairs : 0;
  double row = (double)(shape->columns * matrix_value_size(shape)), all = (double)shape->rows * row;
  double commits = (double)sample->pair_bytes * part + count * HEAD_BYTES; /* one of each worker */
  struct pawl_matrix_costs costs = {.factors = commits * (count - 1), .servers = commits + count * all};
  bool is_partial = sharing->graph && strcmp(sharing->graph, "complete") != 0 && !sharing->forward;
  if (is_partial) costs.factors = (double)NAN;
  costs.whole = sample->is_sparse ? 2 * (double)sample->rows * part * (row + KEY_BYTES) : 2 * count * all;
  return costs;
}

enum pawl_matrix_way pawl_matrix_cheapest(const struct pawl_matrix_costs *costs) {
  return costs->factors <= costs->whole ? PAWL_MATRIX_FACTORS : PAWL_MATRIX_WHOLE;
}
