/* The Hessian of a worker's rows, H = sum_i h_i x_i x_i', kept from one round to the next.
 *
 * h_i is the curvature of row i at the weights of the round, and changes with them. A row whose curvature is
 * still within a factor of 1 + slack of the curvature that it was added with stays as it is. For every other
 * row the difference is added. So for each row, and hence for the sums K that are kept,
 *
 *   H / (1 + slack)  <=  K  <=  (1 + slack) H          (by x' H x, for every x)
 *
 * The fall of a quadratic with K is therefore at least 1 / (1 + slack) of the fall with H. With the squared
 * hinge a row has curvature 0 beyond the hinge, and otherwise always the same curvature. So for the squared
 * hinge and for the squared loss K equals H with any slack.
 *
 * When differences have cancelled nearly all of a sum, the remainder is mostly rounding error. Then the sums
 * of that feature are computed anew.
 *
 * Sums have double precision: where columns depend on one another, the curvature in some directions is a
 * small difference of large numbers.
 *
 * There are two ways to add rows; the estimated cost decides. Rows with few features are added entry by
 * entry. Rows with many features are added by tiles of eight times eight features. Features with neighbouring
 * ids tend to occur together, so most products in a tile are not zero, and the sums of a tile stay in
 * registers while rows pass by. */
#ifndef LINEAR_HESSIAN_H
#define LINEAR_HESSIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "apps/linear/rows.h"
#include "apps/linear/share.h"

enum linear_way { LINEAR_BY_COST, LINEAR_BY_ENTRIES, LINEAR_BY_TILES };

/* A struct of zeros is empty. */
struct linear_hessian {
  size_t features, rows;
  bool has_bias; /* the bias is 1 in every row, and comes after the features */
  bool is_tiled;
  size_t groups;      /* number of groups; a group has as many positions as a tile is wide */
  uint32_t *place_of; /* features + 1: the position of each feature; tiles have positions by ascending id */
  double *curvatures; /* of rows, as they were added */
  double *changes;    /* of rows, in this round */
  double *sums;
  /* by position: the highest value of the diagonal since the sums were computed anew */
  double *peaks;
  uint32_t *curved;      /* by position: the number of rows with a curvature that have the feature */
  uint64_t added, built; /* rows added so far, and how often the sums were computed anew: for tests */
};

/* Begins with the rows of a share. `way`: how to add them. PAWL_NO_MEMORY; call linear_hessian_fini in any
 * case. */
pawl_status linear_hessian_init(struct linear_hessian *hessian, const struct linear_share *share,
                                const struct linear_rows *rows, bool has_bias, enum linear_way way);
void linear_hessian_fini(struct linear_hessian *hessian);

/* Updates the sums to these curvatures of all rows. After PAWL_NO_MEMORY the sums are unusable. */
pawl_status linear_hessian_update(struct linear_hessian *hessian, const struct linear_share *share,
                                  const struct linear_rows *rows, const double *curvatures, double slack);

/* Reads entries [begin, end) of the upper triangle, row after row, over all `size` keys; the last key is the
 * bias. `feature_at`: the feature of each key but the last, or UINT32_MAX. Entries of a feature are exactly 0
 * if no row that has it has a curvature. */
void linear_hessian_read(const struct linear_hessian *hessian, const uint32_t *feature_at, uint64_t size,
                         uint64_t begin, uint64_t end, double *out);

#endif
