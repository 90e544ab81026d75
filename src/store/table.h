/* Tables: rows of numbers found by key, the memory of a shard.
 *
 * A row is `width` values of one type, and `state_width` hidden values of the same type (sums of squares and the like)
 * that live in an array of their own, so that plain pulls read nothing else. A missing key reads as zeros and costs
 * nothing; a key that is created starts as zeros.
 *
 * Two kinds behind one interface. A *dense* table is an array over its span, of which only pieces that were written
 * take memory; all keys of such a piece are present. A *sparse* table is an ordered structure of single keys. In both
 * a row has a place, its *slot*: its values begin at `values + slot * row_bytes`, its state at
 * `state + slot * state_bytes`. Slots of consecutive keys tend to be consecutive.
 *
 * Work with a key list has two steps. pwi_table_resolve turns keys into slots, and creates missing keys if asked to.
 * pwi_table_gather and pwi_table_scatter then move values by slot. Resolved slots hold until the table's layout number
 * changes; that happens when keys are created or deleted and at no other time. Whoever keeps a key list keeps its
 * `struct pwi_slots` with it and skips the first step while pwi_slots_hold says so. When it no longer does,
 * pwi_table_refresh is the first step at a lower price: it looks up again only what may have moved since.
 *
 * Floating-point sums do not depend on how the work was cut: each value receives one addition per scatter. Integer
 * sums wrap around.
 *
 * Ownership: a table copies what it is given. Pointers into it hold until keys are created or deleted.
 * Threads: a table belongs to one thread at a time.
 * Errors: out of memory, and any other failure, leaves the table as it was.
 */
#ifndef PWI_STORE_TABLE_H
#define PWI_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

/* The numbers are those of enum pwi_value_type in wire/values.h, which this room cannot see. */
enum pwi_scalar {
  PWI_SCALAR_F32 = 1,
  PWI_SCALAR_F64 = 2,
  PWI_SCALAR_I32 = 3,
  PWI_SCALAR_I64 = 4,
  PWI_SCALAR_U64 = 5,
};

/* What happens to a stored value when another comes in. For floats, min and max keep the stored value if either is
 * NaN. */
enum pwi_apply {
  PWI_APPLY_ADD = 0,
  PWI_APPLY_ASSIGN = 1,
  PWI_APPLY_MIN = 2,
  PWI_APPLY_MAX = 3,
};

/* Bytes of one value; 0 for a number that is no type. */
size_t pwi_scalar_size(enum pwi_scalar type);

struct pwi_table_options {
  enum pwi_scalar type;
  uint32_t width;         /* values per key, at least 1 */
  uint32_t state_width;   /* hidden values per key */
  struct pawl_range span; /* keys outside are refused; at most [0, PAWL_KEY_END) */
  bool sparse;
};

/* Read the fields; only this room writes them, except for `limit`. */
struct pwi_table {
  const struct pwi_table_ops *ops;
  struct pwi_table_options is;
  size_t row_bytes;
  size_t state_bytes;
  char *values;
  char *state; /* NULL without state */
  uint64_t layout;
  uint64_t limit; /* bytes; what would make the table larger is refused. UINT64_MAX at first */
};

/* What no table can be larger than, whatever memory there is. Managers ask before they let a vector be, so that there is none
 * that servers cannot make but for lack of memory.
 *   PAWL_INVALID     no such type, no width, an empty span
 *   PAWL_TOO_LARGE   a row, or its state, of more than 2^30 bytes; a dense span of more rows than slots (2^32 less a few)
 *                    can tell apart, or of more than 2^44 bytes of addresses */
#define PWI_TABLE_DENSE_BYTES_MAX (UINT64_C(1) << 44)
PAWL_MUST_USE pawl_status pwi_table_check(const struct pwi_table_options *options);

/* Errors as pwi_table_check, and PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_table_create(const struct pwi_table_options *options, struct pwi_table **table_out);
void pwi_table_destroy(struct pwi_table *table);

/* Stands in for a table that could not be made: it has no rows and takes none (PAWL_TOO_LARGE), and nothing may be gathered
 * from it. PAWL_NO_MEMORY, though it needs hardly any. */
PAWL_MUST_USE pawl_status pwi_table_create_hollow(const struct pwi_table_options *options,
                                                  struct pwi_table **table_out);

/* Rows that take memory. */
uint64_t pwi_table_count(const struct pwi_table *table);

/* Bytes in use: rows, free places between them, and what is needed to find them. */
uint64_t pwi_table_bytes(const struct pwi_table *table);

/* --- key lists -------------------------------------------------------------------------------------------------- */

/* The slot of every missing key: its row is never written and so reads as zeros. */
#define PWI_SLOT_MISSING 0

/* Consecutive slots from `slot` on, for the keys from number `start` up to the start of the next run. */
struct pwi_run {
  uint32_t slot;
  uint32_t start;
};

/* Where the keys of one list are: one slot for each or, where the list follows the table closely, runs. Reused from
 * one resolve to the next, its memory only grows. A struct of zeros is ready for use. */
struct pwi_slots {
  size_t count;     /* keys */
  size_t missing;   /* of them, without a row */
  size_t run_count; /* 0: the slots stand in `slots`; else in runs[0 .. run_count), plus one run that ends them */
  uint64_t layout;  /* what the slots hold for; 0: nothing is resolved */
  uint32_t *slots;
  struct pwi_run *runs;
  size_t slots_room, runs_room;
};

void pwi_slots_fini(struct pwi_slots *slots);

/* Finds the row of each of `count` keys, which must rise strictly. With `create`, keys that have none get one.
 *   PAWL_INVALID    the keys do not rise, or one is outside the span
 *   PAWL_TOO_LARGE  the table would pass its limit or run out of slots, or the list has 2^32 keys or more
 *   PAWL_NO_MEMORY
 * After a failure `slots` holds for nothing. Where all keys are present, nothing is allocated but what `slots` needs. */
PAWL_MUST_USE pawl_status pwi_table_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                            struct pwi_slots *slots);

/* The same result as pwi_table_resolve, for a list whose slots may have been resolved with this table before. Then only
 * the keys are looked up again that had no row, or stand among rows that came or went since; the keys must be those of
 * that time, and are not checked again. Slots that were never resolved, or for a list of another length, are resolved.
 * Errors as above. */
PAWL_MUST_USE pawl_status pwi_table_refresh(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                            struct pwi_slots *slots);

/* True if the slots, resolved with this table, are still right. */
static inline bool pwi_slots_hold(const struct pwi_slots *slots, const struct pwi_table *table) {
  return slots->layout == table->layout;
}

/* Values of the keys number `from` to `from + count` of the list. `out` has room for `count` rows and need not be
 * aligned. The slots must hold. */
void pwi_table_gather(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                      void *out);

/* Applies `count` rows of values to the keys number `from` to `from + count` of the list: all of it at once, or piece
 * by piece as it arrives. `in` need not be aligned. The slots must hold, and none may be missing: resolve with
 * `create`. `out`, unless it is NULL, gets the values as they are then. */
void pwi_table_scatter(struct pwi_table *table, enum pwi_apply apply, const struct pwi_slots *slots, size_t from,
                       size_t count, const void *in, void *out);

/* The same for hidden state: read, and replace. Nothing happens in a table without state. */
void pwi_table_gather_state(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            void *out);
void pwi_table_assign_state(struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            const void *in);

/* --- ranges without a key list ---------------------------------------------------------------------------------- */

/* The values of all keys from `first` on form one long array, missing keys included. These two work on `count` values
 * of it, not rows, from value number `offset` on, so that pieces may be cut anywhere. PAWL_INVALID if they reach past
 * the span.
 *
 * Writing is for dense tables (PAWL_UNSUPPORTED otherwise); PAWL_TOO_LARGE if the table would pass its limit. `out`, unless
 * it is NULL, gets the values as they are then. */
PAWL_MUST_USE pawl_status pwi_table_range_read(const struct pwi_table *table, uint64_t first, uint64_t offset,
                                               size_t count, void *out);
PAWL_MUST_USE pawl_status pwi_table_range_apply(struct pwi_table *table, enum pwi_apply apply, uint64_t first,
                                                uint64_t offset, size_t count, const void *in, void *out);

/* Some rows of consecutive slots. They are borrowed, and may be written to, until keys are created or deleted. */
struct pwi_rows {
  const uint64_t *keys; /* one per row; NULL: they are first, first + 1, … */
  uint64_t first;
  uint64_t last; /* key of the last row */
  size_t count;
  char *values;
  char *state;
};

/* The first rows, at least one, of those that are present in the range; false if there are none. Asked again with
 * `begin = rows.last + 1` it gives the next ones, so a scan holds nothing and may be interrupted by anything. */
bool pwi_table_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out);

/* Removes all keys of the range: they read as zeros. Their memory is used again, or given back where a large piece
 * became free. */
void pwi_table_delete(struct pwi_table *table, struct pawl_range range);

/* --- inside the room -------------------------------------------------------------------------------------------- */

/* Arguments have been checked. `resolve` has room for one slot per key in slots->slots; `refresh`, which may be NULL,
 * finds there what was right at layout number `since`. */
struct pwi_table_ops {
  void (*destroy)(struct pwi_table *table);
  uint64_t (*count)(const struct pwi_table *table);
  uint64_t (*bytes)(const struct pwi_table *table);
  pawl_status (*resolve)(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                         struct pwi_slots *slots);
  pawl_status (*refresh)(struct pwi_table *table, const uint64_t *keys, uint64_t since, bool create,
                         struct pwi_slots *slots);
  pawl_status (*range_apply)(struct pwi_table *table, enum pwi_apply apply, uint64_t value, size_t count,
                             const void *in, void *out); /* `value` counts from the begin of the span */
  bool (*scan)(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out);
  void (*delete)(struct pwi_table *table, struct pawl_range range);
};

PAWL_MUST_USE pawl_status pwi_dense_create(const struct pwi_table *base, struct pwi_table **table_out);
PAWL_MUST_USE pawl_status pwi_sparse_create(const struct pwi_table *base, struct pwi_table **table_out);
PAWL_MUST_USE pawl_status pwi_dense_check(uint64_t rows, uint64_t row_bytes);

#endif
