/* Memory of applications. It comes from the allocator of the library (<pawl/memory.h>), because applications
 * are a part of the library. */
#ifndef APPS_COMMON_MEMORY_H
#define APPS_COMMON_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl/memory.h>

/* NULL without memory. */
static inline void *apps_alloc(size_t size) { return pawl_memory_resize(NULL, size); }

/* As realloc: without memory the old block stays as it is, and NULL is returned. */
static inline void *apps_resize(void *block, size_t size) { return pawl_memory_resize(block, size); }

/* `count` elements of `size` bytes, all zero. NULL without memory, or if the product overflows. */
static inline void *apps_alloc_zero(size_t count, size_t size) {
  if (size > 0 && count > SIZE_MAX / size) return NULL;
  void *block = apps_alloc(count * size);
  return block ? memset(block, 0, count * size) : NULL;
}

/* A copy of the first `length` bytes of a text, and a 0 behind them; NULL without memory. */
static inline char *apps_copy_bytes(const char *text, size_t length) {
  char *copy = apps_alloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

static inline char *apps_copy_text(const char *text) { return apps_copy_bytes(text, strlen(text)); }

/* NULL is allowed. */
static inline void apps_free(void *block) { pawl_memory_free(block); }

#endif
