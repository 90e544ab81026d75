/* Applying server functions to tables: a push is applied completely or not at all.
 *
 * A push has two passes. pwi_applying_check checks all pushed values and may refuse them; the keys need not
 * exist yet. When all values have passed and all keys have rows, pwi_applying_apply cannot fail. Both may be
 * called for pieces as values arrive, as long as no piece is applied before all were checked.
 * pwi_applying_push does both for a push in one piece.
 *
 * Functions work on contiguous rows. For a key list, rows are gathered into blocks that fit into the L1
 * cache, processed, and scattered back; rows of a range of a dense table are processed in place. add, assign,
 * min and max use the kernels of tables directly.
 *
 * Ownership: an applying copies its arguments, except for the function itself. Only init allocates memory.
 * Threads: an applying belongs to one thread at a time.
 */
#ifndef PWI_STORE_FUNCTIONS_APPLY_H
#define PWI_STORE_FUNCTIONS_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/functions/functions.h"
#include "store/table.h"

/* A rule applied to one type and width. The fields are read-only for users. */
struct pwi_applying {
  struct pwi_rule rule;
  enum pwi_scalar type;
  uint32_t width;
  struct pwi_rule_shape shape;
  size_t pushed_bytes, stored_bytes, state_bytes; /* of a row */
  size_t rows;                                    /* rows of a block */
  char *pushed, *stored, *state;                  /* a block of each; NULL if the kernels of tables are
                                                     used */
};

/* PAWL_UNSUPPORTED, PAWL_TOO_LARGE as pwi_rule_shape; PAWL_INVALID for parameters out of bounds;
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_applying_init(struct pwi_applying *applying, const struct pwi_rule *rule,
                                            enum pwi_scalar type, uint32_t width);
void pwi_applying_fini(struct pwi_applying *applying);

/* True if pwi_table_scatter and pwi_table_range_apply implement the rule. */
bool pwi_applying_is_simple(const struct pwi_applying *applying, enum pwi_apply *how_out);

/* Selects rows: those of keys number `from` to `from + count` of a list, or of the keys `first` to `first +
 * count`. */
struct pwi_rows_named {
  const struct pwi_slots *slots; /* valid slots; NULL: a range of a dense table */
  size_t from;
  uint64_t first;
  size_t count;
};

/* Checks whether the function accepts the pushed rows, which need not be aligned. The table has the shape of
 * the applying.
 *   PAWL_REFUSED      NaN or an infinity, where the function forbids them
 *   PAWL_UNSUPPORTED  a range of a sparse table: its rows are named by a list
 *   PAWL_OUT_OF_SPAN  the range reaches beyond that of the table
 *   other             the status of the function; PAWL_REFUSED if that is not a known status */
PAWL_MUST_USE pawl_status pwi_applying_check(struct pwi_applying *applying, const struct pwi_table *table,
                                             struct pwi_rows_named named, const void *pushed);

/* Applies checked rows. All keys must have rows: by resolving with `create`, or by pwi_dense_reserve. `out`,
 * unless NULL, receives the new stored rows. */
void pwi_applying_apply(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                        const void *pushed, void *out);

/* Checks and applies a push in one piece; creates the rows of a range. PAWL_TOO_LARGE if the table would
 * exceed its limit. */
PAWL_MUST_USE pawl_status pwi_applying_push(struct pwi_applying *applying, struct pwi_table *table,
                                            struct pwi_rows_named named, const void *pushed, void *out);

#endif
