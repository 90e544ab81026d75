/* The memory allocator of pawl.
 *
 * The default is the C library. A program with an allocator of its own sets it once, before any other call.
 */
#ifndef PAWL_MEMORY_H
#define PAWL_MEMORY_H

#include <stddef.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Both functions must be thread-safe. `resize` works as realloc (a NULL block allocates), `release` as free
 * (NULL is allowed). Blocks are aligned as by malloc. `context` is passed to both. */
struct pawl_allocator {
  void *(*resize)(void *context, void *block, size_t size);
  void (*release)(void *context, void *block);
  void *context;
};

/* Sets the allocator; NULL selects the C library. The struct is copied. Call it before anything else: blocks
 * must return to the allocator they came from, so the call fails with PAWL_INVALID while pawl holds any
 * block. */
PAWL_API pawl_status pawl_allocator_set(const struct pawl_allocator *allocator);

#ifdef __cplusplus
}
#endif

#endif
