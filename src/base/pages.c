#include "base/pages.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/memory.h"

static atomic_uint_fast64_t mapped;

uint64_t pwi_pages_mapped(void) { return atomic_load(&mapped); }

static bool is_mapped(const struct pwi_pages *pages) { return pages->block && pages->block != pages->memory; }

static char *round_pointer(char *pointer) {
  size_t past = (uintptr_t)pointer & (PWI_PAGES_HUGE - 1);
  return past ? pointer + (PWI_PAGES_HUGE - past) : pointer;
}

/* Maps `size` bytes, a multiple of the huge page size, aligned to a huge page. NULL if there is no address
 * space. */
static char *map_aligned(size_t size) {
  size_t wide;
  if (!pwi_add_size(size, PWI_PAGES_HUGE, &wide)) return NULL;
  char *all = mmap(NULL, wide, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return NULL;
  char *aligned = round_pointer(all), *end = all + wide;
  if (aligned > all) munmap(all, (size_t)(aligned - all));
  if (end > aligned + size) munmap(aligned + size, (size_t)(end - (aligned + size)));
  madvise(aligned, size, MADV_HUGEPAGE); /* optional: without huge pages everything works, only slower */
  return aligned;
}

static pawl_status grow_small(struct pwi_pages *pages, size_t size) {
  char *memory = pwi_resize(pages->block, size);
  if (!memory) return PAWL_NO_MEMORY;
  memset(memory + pages->size, 0, size - pages->size);
  *pages = (struct pwi_pages){memory, size, memory};
  return PAWL_OK;
}

/* Moves an array that is empty or comes from the allocator to a mapping. */
static pawl_status become_mapped(struct pwi_pages *pages, size_t size) {
  void *block = pwi_alloc(1);
  if (!block) return PAWL_NO_MEMORY;
  char *memory = map_aligned(size);
  if (!memory) {
    pwi_free(block);
    return PAWL_NO_MEMORY;
  }
  if (pages->size > 0) memcpy(memory, pages->memory, pages->size);
  pwi_free(pages->block);
  *pages = (struct pwi_pages){memory, size, block};
  atomic_fetch_add(&mapped, size);
  return PAWL_OK;
}

/* mremap is not used: it fails if the pages do not form one mapping, and on newer kernels it fails
 * half-way. */
static char *copy_pages(const struct pwi_pages *pages, size_t size) {
  char *memory = map_aligned(size);
  if (!memory) return NULL;
  memcpy(memory, pages->memory, pages->size);
  munmap(pages->memory, pages->size);
  return memory;
}

static char *extend_in_place(const struct pwi_pages *pages, size_t size) {
  char *memory = mremap(pages->memory, pages->size, size, 0);
  if (memory == MAP_FAILED) return NULL;
  madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

static pawl_status grow_mapped(struct pwi_pages *pages, size_t size) {
  void *block = pwi_resize(pages->block, 1);
  if (!block) return PAWL_NO_MEMORY;
  pages->block = block;
  char *memory = extend_in_place(pages, size);
  if (!memory) memory = copy_pages(pages, size);
  if (!memory) return PAWL_NO_MEMORY;
  atomic_fetch_add(&mapped, size - pages->size);
  pages->memory = memory;
  pages->size = size;
  return PAWL_OK;
}

pawl_status pwi_pages_grow(struct pwi_pages *pages, size_t size) {
  if (size <= pages->size) return PAWL_OK;
  size_t more = pages->size + pages->size / 2;
  if (more > size) size = more;
  if (size < PWI_PAGES_LARGE) return grow_small(pages, size);
  if (!pwi_round_up(size, PWI_PAGES_HUGE, &size)) return PAWL_NO_MEMORY;
  return is_mapped(pages) ? grow_mapped(pages, size) : become_mapped(pages, size);
}

/* The whole huge pages in [offset, offset + size), as offsets. False if there are none. */
static bool huge_inside(const struct pwi_pages *pages, size_t offset, size_t size, size_t *begin_out, size_t *end_out) {
  if (!is_mapped(pages)) return false;
  char *memory = pages->memory, *begin = round_pointer(memory + offset), *last = memory + offset + size;
  char *end = last - ((uintptr_t)last & (PWI_PAGES_HUGE - 1));
  if (end <= begin) return false;
  *begin_out = (size_t)(begin - memory);
  *end_out = (size_t)(end - memory);
  return true;
}

void pwi_pages_drop(struct pwi_pages *pages, size_t offset, size_t size) {
  size_t begin, end;
  if (huge_inside(pages, offset, size, &begin, &end))
    madvise((char *)pages->memory + begin, end - begin, MADV_DONTNEED);
}

/* Complete huge pages are dropped and not cleared: dropped pages read as zeros, and writing to them would
 * allocate them. */
void pwi_pages_clear(struct pwi_pages *pages, size_t offset, size_t size) {
  char *memory = pages->memory;
  size_t begin, end;
  if (!huge_inside(pages, offset, size, &begin, &end)) {
    memset(memory + offset, 0, size);
    return;
  }
  memset(memory + offset, 0, begin - offset);
  memset(memory + end, 0, offset + size - end);
  madvise(memory + begin, end - begin, MADV_DONTNEED);
}

void pwi_pages_fini(struct pwi_pages *pages) {
  if (is_mapped(pages)) {
    munmap(pages->memory, pages->size);
    atomic_fetch_sub(&mapped, pages->size);
  }
  pwi_free(pages->block);
  *pages = (struct pwi_pages){0};
}
