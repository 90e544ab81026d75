/* An item in memory, which is written while others read it: value, checksum over value and clock, clock (Lapser,
 * 3.2.1.B and 3.3.1).
 *
 *   [ value, padded to 16 ][ u64 checksum ][ u64 clock + 1; 0: never set ]
 *
 * The writer writes in that order; puts may land in any order. A reader copies value and clock, and compares the
 * checksum of the copy: so it sees by the bytes that it has whether they are one version.
 *
 * Threads: one writer at a time, any number of readers. Checksum and clock are atomic; the value is copied while it
 * may change, and only a copy whose checksum matches is used.
 */
#ifndef PWI_PEER_ITEM_CELL_H
#define PWI_PEER_ITEM_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ITEM_CELL_TAIL 16

static inline size_t pwi_item_cell_tail(size_t size) { return (size + 15) & ~(size_t)15; }
static inline size_t pwi_item_cell_stride(size_t size) { return pwi_item_cell_tail(size) + ITEM_CELL_TAIL; }

/* The clock + 1 that the cell shows at present; the rest of that version may be missing. */
static inline uint64_t pwi_item_cell_clock(const void *cell, size_t size) {
  return __atomic_load_n((const uint64_t *)(const void *)((const unsigned char *)cell + pwi_item_cell_tail(size) + 8),
                         __ATOMIC_ACQUIRE);
}

/* `between`, which may be NULL, is called when a part of the version is written, and when all but the clock
 * is. False: the writer stops there, as if it were killed. For tests. */
struct item_between {
  bool (*call)(void *context);
  void *context;
};

void pwi_item_cell_write(void *cell, const void *value, size_t size, uint64_t clock,
                         const struct item_between *between);

/* Copies one whole version. Returns its clock + 1; 0: the cell was never set, or is being written. */
uint64_t pwi_item_cell_read(const void *cell, size_t size, void *value_out);

/* The checksum of the value where it is, if it is one version of that clock; 0: it is not. */
uint64_t pwi_item_cell_check(const void *cell, size_t size, uint64_t clock);

/* Copies a whole version between cells. Returns its clock + 1, or 0 and leaves `to` as it was, unless the
 * cells are large: then `to` may be torn. */
uint64_t pwi_item_cell_copy(void *to, const void *from, size_t size);

#endif
