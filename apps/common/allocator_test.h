/* An allocator for tests that recognises its own blocks: a block of malloc that comes back to it, or one of its
 * own that goes to free, ends the test. It counts the blocks. */
#ifndef APPS_COMMON_ALLOCATOR_TEST_H
#define APPS_COMMON_ALLOCATOR_TEST_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/memory.h>

#define OWN_MARK UINT64_C(0x9e3779b97f4a7c15)
#define OWN_HEAD 16 /* bytes before a block, with the mark: blocks stay aligned */

static atomic_long own_made, own_live;

static inline char *own_head(void *block) {
  char *head = (char *)block - OWN_HEAD;
  if (*(uint64_t *)(void *)head == OWN_MARK) return head;
  fprintf(stderr, "a block that is not of this allocator came back to it\n");
  abort();
}

static inline void *own_resize(void *context, void *block, size_t size) {
  (void)context;
  char *head = realloc(block ? own_head(block) : NULL, size + OWN_HEAD);
  if (!head) return NULL;
  *(uint64_t *)(void *)head = OWN_MARK;
  atomic_fetch_add(&own_made, 1);
  if (!block) atomic_fetch_add(&own_live, 1);
  return head + OWN_HEAD;
}

static inline void own_release(void *context, void *block) {
  (void)context;
  if (!block) return;
  char *head = own_head(block);
  *(uint64_t *)(void *)head = 0;
  atomic_fetch_sub(&own_live, 1);
  free(head);
}

/* Before anything else is called. */
static inline void use_own_allocator(void) {
  struct pawl_allocator own = {own_resize, own_release, NULL};
  if (pawl_allocator_set(&own)) abort();
}

/* At the end, when all is closed: 0 if pawl has used the allocator and returned every block. */
static inline int own_blocks_left(void) {
  long made = atomic_load(&own_made), live = atomic_load(&own_live);
  if (made > 0 && live == 0) return 0;
  fprintf(stderr, "%ld blocks were allocated, %ld were not freed\n", made, live);
  return 1;
}

#endif
