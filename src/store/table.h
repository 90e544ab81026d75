/* Tables: rows of numbers by key; the data of a shard.
 *
 * A row has `width` values of one type, and `state_width` hidden values of the same type (sums of squares,
 * for example) in a separate array, so that pulls need not read them. A missing key reads as zeros and takes
 * no memory; a new key starts with zeros.
 *
 * There are two kinds. A *dense* table is an array over its span; only pieces that were written take memory,
 * and all keys of such a piece are present. A *sparse* table is an ordered structure of single keys. In both,
 * a row has a *slot*: its values begin at `values + slot * row_bytes`, its state at `state + slot *
 * state_bytes`. Consecutive keys usually have consecutive slots.
 *
 * A key list is used in two steps. pwi_table_resolve finds the slots of keys, and optionally creates missing
 * keys. pwi_table_gather and pwi_table_scatter then move values by slot. Resolved slots are valid until the
 * layout number of the table changes, which happens only when keys are created or deleted. A caller that
 * keeps a key list should keep its `struct pwi_slots` too, and can skip the first step while pwi_slots_hold
 * returns true. Otherwise pwi_table_refresh is a cheaper first step: it looks up only slots that may have
 * moved.
 *
 * Floating-point sums do not depend on how a push is divided: each value receives one addition per scatter.
 * Integer sums wrap around.
 *
 * Ownership: a table copies its arguments. Pointers into it are valid until keys are created or deleted.
 * Threads: a table belongs to one thread at a time. Errors: a failure leaves the table unchanged.
 */
#ifndef PWI_STORE_TABLE_H
#define PWI_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

/* The numbers equal those of enum pwi_value_type in wire/values.h, which this module must not include. */
enum pwi_scalar {
  PWI_SCALAR_F32 = 1,
  PWI_SCALAR_F64 = 2,
  PWI_SCALAR_I32 = 3,
  PWI_SCALAR_I64 = 4,
  PWI_SCALAR_U64 = 5,
};

/* How a pushed value changes a stored one. For floats, min and max keep the stored value if either is NaN. */
enum pwi_apply {
  PWI_APPLY_ADD = 0,
  PWI_APPLY_ASSIGN = 1,
  PWI_APPLY_MIN = 2,
  PWI_APPLY_MAX = 3,
};

/* Bytes of one value; 0 for an unknown type. */
size_t pwi_scalar_size(enum pwi_scalar type);

struct pwi_table_options {
  enum pwi_scalar type;
  uint32_t width;         /* values per key, at least 1 */
  uint32_t state_width;   /* hidden values per key */
  struct pawl_range span; /* keys outside are refused; at most [0, PAWL_KEY_END) */
  bool sparse;
};

/* The fields are read-only for other modules, except for `limit`. */
struct pwi_table {
  const struct pwi_table_ops *ops;
  struct pwi_table_options is;
  size_t row_bytes;
  size_t state_bytes;
  char *values;
  char *state; /* NULL without state */
  uint64_t layout;
  uint64_t limit; /* maximum memory in bytes; growth beyond it is refused. Initially UINT64_MAX */
};

/* Checks the size limits of tables, independently of the available memory. The manager checks a vector before
 * it creates it, so that servers can fail to create its table only for lack of memory.
 *   PAWL_INVALID     no such type, no width, an empty span
 *   PAWL_TOO_LARGE   a row, or its state, of more than 2^30 bytes; a dense span of more rows than slots (2^32
 *                    less a few) can tell apart, or of more than 2^44 bytes of addresses */
#define PWI_TABLE_DENSE_BYTES_MAX (UINT64_C(1) << 44)
PAWL_MUST_USE pawl_status pwi_table_check(const struct pwi_table_options *options);

/* Errors as pwi_table_check, and PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_table_create(const struct pwi_table_options *options, struct pwi_table **table_out);
void pwi_table_destroy(struct pwi_table *table);

/* Creates a placeholder for a table that could not be created: it has no rows and accepts none
 * (PAWL_TOO_LARGE), and nothing may be gathered from it. PAWL_NO_MEMORY, although it needs hardly any. */
PAWL_MUST_USE pawl_status pwi_table_create_hollow(const struct pwi_table_options *options,
                                                  struct pwi_table **table_out);

/* The number of rows that take memory. */
uint64_t pwi_table_count(const struct pwi_table *table);

/* The memory in use: rows, free places between them, and index structures. */
uint64_t pwi_table_bytes(const struct pwi_table *table);

/* --- key lists ------------------------------------------------------------------------------------------ */

/* The slot of every missing key: its row is never written and so reads as zeros. */
#define PWI_SLOT_MISSING 0

/* Consecutive slots from `slot` on, for the keys from number `start` up to the start of the next run. */
struct pwi_run {
  uint32_t slot;
  uint32_t start;
};

/* The slots of the keys of one list: one slot per key, or runs if the list has long sequences of consecutive
 * slots. It can be reused; its memory only grows. A struct of zeros is ready for use. */
struct pwi_slots {
  size_t count;     /* keys */
  size_t missing;   /* number of keys without a row */
  size_t run_count; /* 0: the slots are in `slots`; otherwise in runs[0 .. run_count), followed by one end
                       marker */
  uint64_t layout;  /* layout number for which the slots are valid; 0: none */
  uint32_t *slots;
  struct pwi_run *runs;
  size_t slots_room, runs_room;
};

void pwi_slots_fini(struct pwi_slots *slots);

/* Finds the row of each of `count` keys, which must ascend strictly. With `create`, missing rows are created.
 *   PAWL_INVALID    the keys do not ascend strictly, or one is outside the span
 *   PAWL_TOO_LARGE  the table would pass its limit or run out of slots, or the list has 2^32 keys or more
 *   PAWL_NO_MEMORY
 * After a failure `slots` is not valid. If all keys are present, only memory for `slots` is allocated. */
PAWL_MUST_USE pawl_status pwi_table_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                            struct pwi_slots *slots);

/* As pwi_table_resolve, for a list whose slots may have been resolved with this table before. It looks up
 * only keys that had no row, or whose rows may have moved since. The keys must be the same as before and are
 * not checked again. Slots that were never resolved, or for a list of another length, are resolved. Errors as
 * pwi_table_resolve. */
PAWL_MUST_USE pawl_status pwi_table_refresh(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                            struct pwi_slots *slots);

/* True if the slots, resolved with this table, are still valid. */
static inline bool pwi_slots_hold(const struct pwi_slots *slots, const struct pwi_table *table) {
  return slots->layout == table->layout;
}

/* Copies the values of the keys number `from` to `from + count` of the list to `out`, which has room for
 * `count` rows and need not be aligned. The slots must be valid. */
void pwi_table_gather(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                      void *out);

/* Applies `count` rows of values to the keys number `from` to `from + count` of the list; a push may be
 * applied at once or in pieces as it arrives. `in` need not be aligned. The slots must be valid, and no key
 * may be missing: resolve with `create`. `out`, unless NULL, receives the new values. */
void pwi_table_scatter(struct pwi_table *table, enum pwi_apply apply, const struct pwi_slots *slots, size_t from,
                       size_t count, const void *in, void *out);

/* Read and replace hidden state. They do nothing for a table without state. */
void pwi_table_gather_state(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            void *out);
void pwi_table_assign_state(struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            const void *in);

/* --- ranges without a key list -------------------------------------------------------------------------- */

/* The values of all keys from `first` on form one long array, including missing keys. These two functions
 * work on `count` of its values (not rows) from value number `offset` on, so that pieces may begin and end
 * anywhere. PAWL_INVALID if they reach beyond the span.
 *
 * Writing is only for dense tables (PAWL_UNSUPPORTED otherwise); PAWL_TOO_LARGE if the table would exceed its
 * limit. `out`, unless NULL, receives the new values. */
PAWL_MUST_USE pawl_status pwi_table_range_read(const struct pwi_table *table, uint64_t first, uint64_t offset,
                                               size_t count, void *out);
PAWL_MUST_USE pawl_status pwi_table_range_apply(struct pwi_table *table, enum pwi_apply apply, uint64_t first,
                                                uint64_t offset, size_t count, const void *in, void *out);

/* Rows of consecutive slots. The pointers are valid, also for writing, until keys are created or deleted. */
struct pwi_rows {
  const uint64_t *keys; /* one per row; NULL: the keys are first, first + 1, … */
  uint64_t first;
  uint64_t last; /* key of the last row */
  size_t count;
  char *values;
  char *state;
};

/* Finds the first rows, at least one, that are present in the range; false if there are none. A call with
 * `begin = rows.last + 1` finds the next ones, so a scan keeps no state and may be interrupted at any
 * time. */
bool pwi_table_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out);

/* Removes all keys of the range; they read as zeros. Their memory is reused, or returned to the system if a
 * large piece became free. */
void pwi_table_delete(struct pwi_table *table, struct pawl_range range);

/* --- inside the module ---------------------------------------------------------------------------------- */

/* The operations of a kind of table; arguments have been checked. `resolve` finds room for one slot per key
 * in slots->slots. `refresh`, which may be NULL, finds there the slots that were valid at layout number
 * `since`. */
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
