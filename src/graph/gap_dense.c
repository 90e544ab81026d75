/* All singular values of W as a full matrix, by LAPACK. */
#include <lapacke.h>

#include "base/memory.h"
#include "graph/gap.h"

/* Values of workspace for each row: dgesdd needs 10, and uses more to work on blocks of columns. */
#define WORK 74

static void fill(const struct pwi_weights *weights, double *matrix) {
  const struct pwi_graph *graph = weights->graph;
  size_t nodes = graph->nodes;
  for (uint32_t i = 0; i < nodes; i++) {
    matrix[i * nodes + i] = weights->self[i];
    for (uint32_t k = graph->in_begin[i]; k < graph->in_begin[i + 1]; k++)
      matrix[i * nodes + graph->in[k]] = weights->in[k];
  }
}

/* The singular values of a matrix and of its transpose are the same, so the order of rows and columns does not
 * matter. The `work` functions of LAPACKE allocate nothing. */
static pawl_status decompose(double *matrix, size_t nodes, double *singular) {
  double none;
  double *work = pwi_resize_array(NULL, nodes, WORK * sizeof *work);
  lapack_int *more = pwi_resize_array(NULL, nodes, 8 * sizeof *more), size = (lapack_int)nodes, info = 0;
  pawl_status status = work && more ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status)
    info = LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'N', size, size, matrix, size, singular, &none, 1, &none, 1, work,
                               size * WORK, more);
  pwi_free(work);
  pwi_free(more);
  return info ? PAWL_IO : status;
}

pawl_status pwi_gap_dense(const struct pwi_weights *weights, struct pwi_gap *gap_out) {
  size_t nodes = weights->graph->nodes;
  if (nodes == 1) {
    *gap_out = (struct pwi_gap){1, true};
    return PAWL_OK;
  }
  double *matrix = pwi_alloc_zero(nodes * nodes, sizeof *matrix);
  double *singular = pwi_resize_array(NULL, nodes, sizeof *singular);
  pawl_status status = matrix && singular ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    fill(weights, matrix);
    status = decompose(matrix, nodes, singular);
  }
  if (!status) *gap_out = (struct pwi_gap){1 - singular[1], true};
  pwi_free(matrix);
  pwi_free(singular);
  return status;
}

pawl_status pwi_gap_find(const struct pwi_weights *weights, struct pwi_gap *gap_out) {
  return weights->graph->nodes <= PWI_GAP_DENSE_MAX ? pwi_gap_dense(weights, gap_out)
                                                    : pwi_gap_lanczos(weights, gap_out);
}
