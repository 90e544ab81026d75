/* Large zeroed memory that grows: in place where there is room behind it, else by copying.
 *
 * The store keeps its rows in a few long arrays. Huge pages make walking them cheap, and make the end of a process
 * quick; so arrays from PWI_PAGES_LARGE on are mapped, aligned to huge pages, and ask for them. Address space is
 * reserved generously and memory is taken only where it is touched: what was never written costs nothing and reads as
 * zeros. Smaller arrays come from the allocator of base/memory.h.
 *
 * Every array, mapped or not, holds one block of that allocator: so live blocks count it, and pwi_memory_fail_after
 * reaches it.
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
  void *memory; /* aligned as malloc does; to a huge page if mapped */
  size_t size;  /* usable bytes */
  void *block;  /* the memory itself, or a small block that stands for the mapping */
};

/* Makes the array at least `size` bytes long. What is there stays, though it may move; what is new is zero. Grows by
 * half at least, so that many small steps cost little. PAWL_NO_MEMORY changes nothing. */
PAWL_MUST_USE pawl_status pwi_pages_grow(struct pwi_pages *pages, size_t size);

/* Gives the whole huge pages inside [offset, offset + size) back to the system; they read as zeros from then on, all
 * other bytes stay what they are. Does nothing to an array that is not mapped. */
void pwi_pages_drop(struct pwi_pages *pages, size_t offset, size_t size);

/* Bytes [offset, offset + size) become zeros; whole huge pages among them are given back as above. */
void pwi_pages_clear(struct pwi_pages *pages, size_t offset, size_t size);

/* Frees everything and leaves an empty array. */
void pwi_pages_fini(struct pwi_pages *pages);

/* Bytes of address space that all arrays of the process have mapped. Any thread. */
uint64_t pwi_pages_mapped(void);

#endif
