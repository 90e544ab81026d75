/* Server functions on tables: a push under a rule, whole or not at all.
 *
 * A push has two passes. pwi_applying_check looks at everything that is pushed and may refuse it; keys need not be there
 * yet. When all of it has passed and all keys have rows, pwi_applying_apply cannot fail. Both may be called piece by piece,
 * as values arrive, as long as no piece is applied before the last has been checked. pwi_applying_push is both, for a push
 * in one piece.
 *
 * Functions see contiguous rows. For a key list these are gathered into blocks that stay in the nearest cache, worked on,
 * and put back; for a range of a dense table they are worked on where they lie. add, assign, min and max go straight to
 * the kernels of tables, as they always have.
 *
 * Ownership: what an applying was made of it copies, but for the function itself. Memory is taken by init alone.
 * Threads: an applying belongs to one thread at a time.
 */
#ifndef PWI_STORE_FUNCTIONS_APPLY_H
#define PWI_STORE_FUNCTIONS_APPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/functions/functions.h"
#include "store/table.h"

/* A rule at work on one type and width. Read the fields; only this file writes them. */
struct pwi_applying {
  struct pwi_rule rule;
  enum pwi_scalar type;
  uint32_t width;
  struct pwi_rule_shape shape;
  size_t pushed_bytes, stored_bytes, state_bytes; /* of a row */
  size_t rows;                                    /* of a block */
  char *pushed, *stored, *state;                  /* a block of each; NULL where the kernels of tables do the work */
};

/* PAWL_UNSUPPORTED, PAWL_TOO_LARGE as pwi_rule_shape; PAWL_INVALID for parameters out of bounds; PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_applying_init(struct pwi_applying *applying, const struct pwi_rule *rule,
                                            enum pwi_scalar type, uint32_t width);
void pwi_applying_fini(struct pwi_applying *applying);

/* Whether the rule is one of those that pwi_table_scatter and pwi_table_range_apply know. */
bool pwi_applying_is_simple(const struct pwi_applying *applying, enum pwi_apply *how_out);

/* Which rows: those of keys number `from` to `from + count` of a list, or of the keys `first` to `first + count`. */
struct pwi_rows_named {
  const struct pwi_slots *slots; /* they hold; NULL: a range, of a dense table */
  size_t from;
  uint64_t first;
  size_t count;
};

/* Whether the function takes what is pushed: `count` rows, which need not be aligned. The table has the shape of the
 * applying.
 *   PAWL_REFUSED      NaN or an infinity, where the function forbids them
 *   PAWL_UNSUPPORTED  a range of a sparse table: its rows are named by a list
 *   PAWL_OUT_OF_SPAN  the range reaches past the table's
 *   anything else     the function says so; PAWL_REFUSED if it is no status that there is */
PAWL_MUST_USE pawl_status pwi_applying_check(struct pwi_applying *applying, const struct pwi_table *table,
                                             struct pwi_rows_named named, const void *pushed);

/* Applies what has been checked. All keys must have rows: resolved with `create`, or pwi_dense_reserve. `out`, unless it is
 * NULL, gets the rows as they are stored then. */
void pwi_applying_apply(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                        const void *pushed, void *out);

/* Both, in one piece; a range gets its rows here. PAWL_TOO_LARGE if the table would pass its limit. */
PAWL_MUST_USE pawl_status pwi_applying_push(struct pwi_applying *applying, struct pwi_table *table,
                                            struct pwi_rows_named named, const void *pushed, void *out);

#endif
