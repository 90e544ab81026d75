#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define FIRST_ROOM 4 /* elements of a growing array */

static void *libc_resize(void *context, void *block, size_t size) {
  (void)context;
  return realloc(block, size);
}

static void libc_release(void *context, void *block) {
  (void)context;
  free(block);
}

static const struct pawl_allocator libc_allocator = {libc_resize, libc_release, NULL};
static struct pawl_allocator current = {libc_resize, libc_release, NULL};

static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t live;

/* How many allocations may still succeed before one fails; negative while none is to fail. */
static atomic_int_fast64_t until_failure = -1;
static atomic_bool has_failed;

pawl_status pawl_allocator_set(const struct pawl_allocator *allocator) {
  if (atomic_load(&live) != 0) return PAWL_INVALID;
  if (allocator && (!allocator->resize || !allocator->release)) return PAWL_INVALID;
  current = allocator ? *allocator : libc_allocator;
  return PAWL_OK;
}

static bool must_fail(void) {
  if (atomic_load_explicit(&until_failure, memory_order_relaxed) < 0) return false;
  if (atomic_fetch_sub(&until_failure, 1) != 0) return false;
  atomic_store(&has_failed, true);
  return true;
}

void *pwi_resize(void *block, size_t size) {
  if (must_fail()) return NULL;
  /* Never a size of zero: realloc, and an allocator that follows it, may then free the block and return
   * NULL. */
  void *moved = current.resize(current.context, block, size ? size : 1);
  if (!moved) return NULL;
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  if (!block) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
  return moved;
}

void *pawl_memory_resize(void *block, size_t size) { return pwi_resize(block, size); }

void pawl_memory_free(void *block) { pwi_free(block); }

void *pwi_alloc(size_t size) { return pwi_resize(NULL, size); }

void *pwi_alloc_zero(size_t count, size_t size) {
  void *block = pwi_resize_array(NULL, count, size);
  if (block) memset(block, 0, count * size);
  return block;
}

void *pwi_resize_array(void *block, size_t count, size_t size) {
  size_t bytes;
  if (!pwi_mul_size(count, size, &bytes)) return NULL;
  return pwi_resize(block, bytes);
}

/* The pointer is copied with memcpy, because its type is not known here. */
bool pwi_grow(void *array, size_t *room, size_t count, size_t size) {
  if (count <= *room) return true;
  size_t larger = *room ? *room : FIRST_ROOM;
  while (larger < count)
    if (!pwi_mul_size(larger, 2, &larger)) return false;
  void *block;
  memcpy(&block, array, sizeof block);
  block = pwi_resize_array(block, larger, size);
  if (!block) return false;
  memcpy(array, &block, sizeof block);
  *room = larger;
  return true;
}

char *pwi_copy_string(const char *string) {
  size_t size = strlen(string) + 1;
  char *copy = pwi_alloc(size);
  if (copy) memcpy(copy, string, size);
  return copy;
}

void pwi_free(void *block) {
  if (!block) return;
  atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  current.release(current.context, block);
}

void pwi_memory_fail_after(uint64_t n) {
  atomic_store(&has_failed, false);
  atomic_store(&until_failure, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

int pwi_memory_fail_cancel(void) {
  atomic_store(&until_failure, -1);
  return atomic_exchange(&has_failed, false);
}

struct pwi_memory_counts pwi_memory_counts(void) {
  struct pwi_memory_counts counts = {atomic_load(&allocations), atomic_load(&live)};
  return counts;
}
