/* The distributions q of all rows, which SDCA keeps: dense if there are few classes. With many classes a row has few that
 * are not negligible, and only these are stored. */
#ifndef MLR_DUALS_H
#define MLR_DUALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>

#define MLR_DENSE_MAX 64 /* classes of dense duals */

struct mlr_dual_entry {
  double q;
  uint32_t class_number;
};

struct mlr_dual_row {
  uint32_t count, room;
  struct mlr_dual_entry *entries; /* by ascending class */
};

struct mlr_duals {
  uint32_t classes;
  size_t rows;
  double *dense;             /* rows x classes; NULL: sparse */
  struct mlr_dual_row *list; /* sparse */
  double least;              /* sparse: smaller shares become 0 */
};

/* Each row has its own class only. False: out of memory; call fini all the same. */
PAWL_MUST_USE bool mlr_duals_init(struct mlr_duals *duals, uint32_t classes, size_t rows, const uint32_t *own,
                                  double least);
void mlr_duals_fini(struct mlr_duals *duals);

void mlr_duals_get(const struct mlr_duals *duals, size_t row, double *q_out);

/* Sparse duals set small shares of q to 0 and divide the others by their sum, in place. False: out of memory; then the row
 * keeps what it had. */
PAWL_MUST_USE bool mlr_duals_set(struct mlr_duals *duals, size_t row, double *q);

/* The sum of the entropies of all rows. */
double mlr_duals_entropy(const struct mlr_duals *duals);

#endif
