#include "base/secret.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"

/* The header in front of a secret: a block of the allocator represents the mapping, so that counters include
 * it. */
struct front {
  void *block;
  uint64_t unused; /* aligns the secret as malloc does */
};

static bool whole_pages(size_t size, size_t *bytes_out) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes;
  if (!pwi_add_size(size, sizeof(struct front) + page - 1, &bytes)) return false;
  *bytes_out = bytes / page * page;
  return true;
}

void *pwi_secret_alloc(size_t size) {
  size_t bytes;
  if (!whole_pages(size, &bytes)) return NULL;
  void *block = pwi_alloc(1);
  if (!block) return NULL;
  struct front *front = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (front == MAP_FAILED) {
    pwi_free(block);
    return NULL;
  }
  madvise(front, bytes, MADV_DONTDUMP);
  (void)mlock(front, bytes); /* fails beyond a limit that is often small; the memory may then be swapped */
  front->block = block;
  return front + 1;
}

void pwi_secret_free(void *secret, size_t size) {
  size_t bytes;
  if (!secret || !whole_pages(size, &bytes)) return;
  struct front *front = (struct front *)secret - 1;
  pwi_free(front->block);
  explicit_bzero(front, bytes);
  munmap(front, bytes);
}
