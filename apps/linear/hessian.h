/* The Hessian of a worker's rows, H = sum_i h_i x_i x_i', kept from one round to the next.
 *
 * h_i is the curvature of row i at the weights of the round, and changes with them. A row whose curvature is
 * still within a factor of 1 + slack of the one that it was added with stays as it is; the others are added
 * again, with the difference. So for each row, and hence for the sums,
 *
 *   H / (1 + slack)  <=  what is kept  <=  (1 + slack) H          (by x' H x, for every x)
 *
 * and by how much a quadratic with it falls is at least 1 / (1 + slack) of the fall with H itself. Rows
 * beyond the squared hinge have no curvature and those on this side all the same one, so there, and for the
 * squared loss, the sums are those of H whatever the slack.
 *
 * Where differences have taken nearly all of a sum away, what is left is rounding: then the sums of that
 * feature are made anew.
 *
 * Sums are of double precision: where columns depend on one another, the curvature along some way is what
 * differences of large numbers leave.
 *
 * There are two ways to add rows, and they are chosen from by what they would cost. Rows with few features go
 * entry by entry. Rows with many go by tiles of eight times eight features: of features with neighbouring
 * ids, which tend to occur together, most products are not of zeros, and a tile's sums stay in the
 * processor's registers while rows pass by. */
#ifndef LINEAR_HESSIAN_H
#define LINEAR_HESSIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "apps/linear/rows.h"
#include "apps/linear/share.h"

enum linear_way { LINEAR_BY_COST, LINEAR_BY_ENTRIES, LINEAR_BY_TILES };

/* A struct of zeros is none. */
struct linear_hessian {
  size_t features, rows;
  bool has_bias; /* which is 1 in every row, and comes after the features */
  bool is_tiled;
  size_t groups;      /* of as many positions as a tile is wide */
  uint32_t *place_of; /* features + 1: positions, for tiles by rising id */
  double *curvatures; /* of rows, as they were added */
  double *changes;    /* of rows, in this round */
  double *sums;
  /* of positions: the highest that the diagonal has been since the sums were made anew, */
  double *peaks;
  uint32_t *curved;      /* and how many rows with a curvature have the feature */
  uint64_t added, built; /* rows added so far, and how often the sums were made anew: for tests */
};

/* The rows of a share. `way`: by which to add them. PAWL_NO_MEMORY; end it with linear_hessian_fini in any
 * case. */
pawl_status linear_hessian_init(struct linear_hessian *hessian, const struct linear_share *share,
                                const struct linear_rows *rows, bool has_bias, enum linear_way way);
void linear_hessian_fini(struct linear_hessian *hessian);

/* Brings the sums up to the curvatures of all rows. PAWL_NO_MEMORY: the sums are as good as none. */
pawl_status linear_hessian_update(struct linear_hessian *hessian, const struct linear_share *share,
                                  const struct linear_rows *rows, const double *curvatures, double slack);

/* Entries [begin, end) of the upper triangle, row after row, of all `size` keys, of which the last is the
 * bias. `feature_at`: the feature of each key but the last, or UINT32_MAX. A feature of which no row has a
 * curvature has exactly none. */
void linear_hessian_read(const struct linear_hessian *hessian, const uint32_t *feature_at, uint64_t size,
                         uint64_t begin, uint64_t end, double *out);

#endif
