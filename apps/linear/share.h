/* A worker's share of the data, by columns.
 *
 * The worker reads pieces when it receives them, and keeps them as rows until the number of features of the
 * whole job is known. Then it arranges them: for each feature that occurs here, the rows that have it and its
 * values, features by ascending key (scatter.h). Arranging again adds pieces that came later, removes dropped
 * pieces, and frees their memory. */
#ifndef LINEAR_SHARE_H
#define LINEAR_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/linear/scatter.h"
#include "apps/common/resume.h"

struct linear_piece {
  uint64_t number;
  size_t rows;
  struct pawl_batch *batch; /* NULL once the piece is arranged */
  uint64_t digest;          /* digest of its rows, if the share has digests */
  bool is_dropped;
};

/* A struct of zeros is an empty share. */
struct linear_share {
  struct linear_piece *pieces; /* in the order of their rows */
  size_t piece_count, piece_room;
  bool is_stale; /* pieces were added or dropped since the share was arranged */
  bool digests;  /* compute digests of pieces as they are read */
  bool scales;   /* columns will be divided, so `raw` is needed */

  size_t rows;
  float *labels;  /* as in the files */
  float *weights; /* of rows; NULL: all 1 */

  size_t features;  /* number of features that occur here */
  uint64_t *keys;   /* ascending */
  uint64_t *ids;    /* of the same features */
  uint64_t *starts; /* features + 1: where the entries of each begin */
  /* by feature: the first entry that linear_share_scale has not divided yet; NULL unless the share scales */
  uint64_t *raw;
  uint32_t *row_of;
  float *values;
};

void linear_share_fini(struct linear_share *share);

/* Reads the pieces with `threads` threads. Errors as pawl_data_read_all. */
pawl_status linear_share_take(struct linear_share *share, struct pawl_data *data, const struct pawl_range *pieces,
                              size_t count, uint32_t threads);
pawl_status linear_share_drop(struct linear_share *share, const struct pawl_range *pieces, size_t count);

/* Updates the columns. PAWL_NO_MEMORY, PAWL_TOO_LARGE (2^32 rows), PAWL_OUT_OF_SPAN (an id beyond the size of
 * the scatter). */
pawl_status linear_share_arrange(struct linear_share *share, const struct linear_scatter *scatter);

/* Whether there are columns to divide. linear_share_scale divides each entry once, by one number for each
 * feature; 0 stands for 1. */
bool linear_share_is_raw(const struct linear_share *share);
void linear_share_scale(struct linear_share *share, const double *by);

/* Counts of a share before it is arranged. At most three labels are told apart: two classes, and one more to
 * show that there are too many. */
struct linear_census {
  uint64_t rows, entries, max_id, skipped;
  bool has_zero;             /* an id 0 occurs: the data is zero-based */
  double squares;            /* of all values */
  struct apps_digest digest; /* of pieces whose digest was computed */
  size_t label_count;
  double labels[3];
  uint64_t label_rows[3];
};

void linear_share_count(const struct linear_share *share, struct linear_census *census_out);

/* Counts one batch, as a share does for its pieces. */
void linear_census_add(struct linear_census *census, const struct pawl_batch *batch);

#endif
