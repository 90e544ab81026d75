/* Large zeroed arrays that grow: in place if there is address space behind them, otherwise by copying.
 *
 * The store keeps its rows in a few long arrays. Huge pages speed up access to them and the end of a process.
 * Arrays of at least PWI_PAGES_LARGE bytes are therefore mapped, aligned to huge pages, with a request for
 * such pages. A mapping reserves more address space than needed and takes memory only where it is written;
 * the rest reads as zeros. Smaller arrays come from the allocator of base/memory.h.
 *
 * Every array, mapped or not, holds one block of that allocator, so that counters include it and
 * pwi_memory_fail_after can make it fail.
 *
 * Threads: a `struct pwi_pages` belongs to one thread at a time.
 */
#ifndef PWI_BASE_PAGES_H
#define PWI_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_PAGES_HUGE ((size_t)2 << 20)
#define PWI_PAGES_LARGE ((size_t)128 << 10)

/* A struct of zeros is an empty array. */
struct pwi_pages {
  void *memory; /* aligned as by malloc; to a huge page if mapped */
  size_t size;  /* usable bytes */
  void *block;  /* the memory itself, or a small block that represents the mapping */
};

/* Makes the array at least `size` bytes long. The contents are kept but may move; new bytes are zero. The
 * array grows at least by half, so that many small steps are cheap. PAWL_NO_MEMORY changes nothing. */
PAWL_MUST_USE pawl_status pwi_pages_grow(struct pwi_pages *pages, size_t size);

/* Returns the huge pages that lie completely inside [offset, offset + size) to the system; they read as zeros
 * from then on. All other bytes stay unchanged. Does nothing to an array that is not mapped. */
void pwi_pages_drop(struct pwi_pages *pages, size_t offset, size_t size);

/* Sets bytes [offset, offset + size) to zero and returns complete huge pages as pwi_pages_drop does. */
void pwi_pages_clear(struct pwi_pages *pages, size_t offset, size_t size);

/* Frees everything and leaves an empty array. */
void pwi_pages_fini(struct pwi_pages *pages);

/* Returns the bytes of address space that all arrays of the process have mapped. Any thread may call it. */
uint64_t pwi_pages_mapped(void);

#endif
