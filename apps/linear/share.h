/* A worker's share of the data, by columns.
 *
 * Pieces are read as they are given to the worker, and stay as rows until the whole job knows how many
 * features there are. Then they are arranged: for each feature that occurs here, the rows that have it and
 * its values there, features by rising key (scatter.h). Pieces that come later are merged in, and those that
 * go are taken out, by arranging again; what belongs to others is then freed.
 */
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
  struct pawl_batch *batch; /* NULL once it is arranged */
  uint64_t digest;          /* of its rows, if the share has digests */
  bool is_dropped;
};

/* A struct of zeros is an empty share. */
struct linear_share {
  struct linear_piece *pieces; /* in the order of their rows */
  size_t piece_count, piece_room;
  bool is_stale; /* pieces have come or gone since it was arranged */
  bool digests;  /* pieces are digested as they come */
  bool scales;   /* columns will be divided: `raw` is kept */

  size_t rows;
  float *labels;  /* as in the files */
  float *weights; /* of rows; NULL: all 1 */

  size_t features;  /* that occur here */
  uint64_t *keys;   /* rising */
  uint64_t *ids;    /* of the same features */
  uint64_t *starts; /* features + 1: where the entries of each begin */
  /* of each: where entries begin that linear_share_scale has not divided; NULL unless the share scales */
  uint64_t *raw;
  uint32_t *row_of;
  float *values;
};

void linear_share_fini(struct linear_share *share);

/* Reads the pieces, with so many threads. Errors as pawl_data_read_all. */
pawl_status linear_share_take(struct linear_share *share, struct pawl_data *data, const struct pawl_range *pieces,
                              size_t count, uint32_t threads);
pawl_status linear_share_drop(struct linear_share *share, const struct pawl_range *pieces, size_t count);

/* Brings the columns up to date. PAWL_NO_MEMORY, PAWL_TOO_LARGE (2^32 rows), PAWL_OUT_OF_SPAN (an id beyond
 * the scatter's size). */
pawl_status linear_share_arrange(struct linear_share *share, const struct linear_scatter *scatter);

/* Whether there is anything to divide; divides it, once, by one number for each feature, 0 standing for 1. */
bool linear_share_is_raw(const struct linear_share *share);
void linear_share_scale(struct linear_share *share, const double *by);

/* What there is, before it is arranged. At most three labels are told apart: two classes, and that there are
 * more. */
struct linear_census {
  uint64_t rows, entries, max_id, skipped;
  bool has_zero;             /* an id 0 occurs: the data is zero-based */
  double squares;            /* of all values */
  struct apps_digest digest; /* of pieces, where they were digested */
  size_t label_count;
  double labels[3];
  uint64_t label_rows[3];
};

void linear_share_count(const struct linear_share *share, struct linear_census *census_out);

/* Counts one batch; the share's are counted this way. */
void linear_census_add(struct linear_census *census, const struct pawl_batch *batch);

#endif
