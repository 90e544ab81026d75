/* Memory allocation of the library: one replaceable allocator with counters and fault injection.
 *
 * The library reports lack of memory as a status. To show that every path does, a test calls
 * pwi_memory_fail_after(n) for n = 0, 1, 2, …: the n-th allocation from then on fails, and only that one.
 */
#ifndef PWI_BASE_MEMORY_H
#define PWI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/memory.h>

/* Returns NULL if there is no memory. A size of zero returns a block that may be freed but not accessed. */
void *pwi_alloc(size_t size);

/* `count` elements of `size` bytes, all zero; NULL if there is no memory or the product overflows. */
void *pwi_alloc_zero(size_t count, size_t size);

/* As realloc: on failure returns NULL and leaves the old block unchanged. */
void *pwi_resize(void *block, size_t size);

/* `count` elements of `size` bytes; NULL as pwi_resize, also when the product overflows. */
void *pwi_resize_array(void *block, size_t count, size_t size);

/* Makes room for at least `count` elements in a growing array: PWI_GROW(list->items, list->room, list->count
 * + 1). `array` is the pointer to the elements and `room`, a size_t, the number of elements it has room for;
 * both are updated, and are NULL and 0 at first. The room at least doubles, so that appending one by one is
 * cheap. Returns false if there is no memory; the array is then unchanged. */
#define PWI_GROW(array, room, count) pwi_grow(&(array), &(room), (count), sizeof *(array))

/* The function behind PWI_GROW. `array` is the address of the pointer, `size` the bytes of one element. */
PAWL_MUST_USE bool pwi_grow(void *array, size_t *room, size_t count, size_t size);

/* A copy of a string; NULL if there is no memory. */
char *pwi_copy_string(const char *string);

/* NULL is fine. */
void pwi_free(void *block);

/* Makes one allocation of the process fail, after `n` more have succeeded. For tests only. */
void pwi_memory_fail_after(uint64_t n);

/* Cancels pwi_memory_fail_after. Returns 1 if the allocation has failed already; a loop over n ends when it
 * has not. */
int pwi_memory_fail_cancel(void);

struct pwi_memory_counts {
  uint64_t allocations; /* allocations since the start, including resizes */
  uint64_t live;        /* blocks not yet freed */
};

struct pwi_memory_counts pwi_memory_counts(void);

#endif
