/* Where pawl takes its memory from.
 *
 * By default the C library. A program that has an allocator of its own hands it over once, before any other call.
 */
#ifndef PAWL_MEMORY_H
#define PAWL_MEMORY_H

#include <stddef.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All three must be thread-safe. `resize` follows realloc (a NULL block allocates), `release` follows free (NULL is
 * fine). Blocks are aligned as malloc aligns them. `context` is passed back untouched. */
struct pawl_allocator {
  void *(*resize)(void *context, void *block, size_t size);
  void (*release)(void *context, void *block);
  void *context;
};

/* Use `allocator` from now on; NULL returns to the C library. The struct is copied. Call it before anything else:
 * blocks must go back to the allocator they came from, so it fails with PAWL_INVALID while pawl holds any block. */
PAWL_API pawl_status pawl_allocator_set(const struct pawl_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
