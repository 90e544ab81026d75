/* The memory allocator of pawl.
 *
 * The default is the C library. A program with an allocator of its own sets it once, before any other call.
 * Every allocation of pawl goes through it. Libraries that pawl calls (the C library, jansson, UCX) allocate
 * their own memory as they always do.
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
PAWL_API PAWL_MUST_USE pawl_status pawl_allocator_set(const struct pawl_allocator *allocator);

/* Memory from this allocator, for code that is built on pawl, such as learning methods. `resize` works as
 * realloc: a NULL block allocates, and without memory the result is NULL and the old block is unchanged. A
 * size of 0 returns a block as well. */
PAWL_API void *pawl_memory_resize(void *block, size_t size);

/* Frees a block from pawl_memory_resize. NULL is allowed. */
PAWL_API void pawl_memory_free(void *block);

#ifdef __cplusplus
}
#endif

#endif
