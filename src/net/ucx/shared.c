#include "net/ucx/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/checked.h"

#define NAME_MAX_SIZE 64
#define HUGE_FROM ((size_t)4 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static void print_name(uint64_t nonce, char *text) { snprintf(text, NAME_MAX_SIZE, "pawl-%016" PRIx64, nonce); }

/* The kernel does not say no to an anonymous file larger than all memory there is: it goes on allocating until it has
 * to kill somebody. */
static bool is_beyond_memory(size_t size) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return size > INT64_MAX;
  return size / (size_t)page >= (size_t)pages;
}

static pawl_status allocate(int file, size_t size) {
  if (ftruncate(file, (off_t)size) != 0) return PAWL_NO_MEMORY;
  if (fallocate(file, 0, 0, (off_t)size) != 0) return PAWL_NO_MEMORY;
  return fcntl(file, F_ADD_SEALS, SEALS) == 0 ? PAWL_OK : PAWL_NODE_LIMIT;
}

pawl_status pwi_shared_open(size_t size, struct pwi_shared *shared_out) {
  char name[NAME_MAX_SIZE];
  struct pwi_shared shared = {.name = {.process = (int32_t)getpid(), .size = size}};
  if (is_beyond_memory(size) || RAND_bytes((unsigned char *)&shared.name.nonce, sizeof shared.name.nonce) != 1)
    return PAWL_NO_MEMORY;
  print_name(shared.name.nonce, name);
  shared.name.file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (shared.name.file < 0) return PAWL_NODE_LIMIT;
  pawl_status status = allocate(shared.name.file, size);
  if (status == PAWL_OK) {
    shared.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared.name.file, 0);
    if (shared.memory == MAP_FAILED) status = PAWL_NO_MEMORY;
  }
  if (status != PAWL_OK) {
    close(shared.name.file);
    return status;
  }
  if (size >= HUGE_FROM) madvise(shared.memory, size, MADV_HUGEPAGE);
  *shared_out = shared;
  return PAWL_OK;
}

void pwi_shared_close(struct pwi_shared *shared) {
  munmap(shared->memory, (size_t)shared->name.size);
  close(shared->name.file);
}

/* The file behind the descriptor is the one that was meant, and nobody can make it smaller. */
static bool is_genuine(int file, const char *path, const struct pwi_shared_name *name) {
  char target[2 * NAME_MAX_SIZE], expected[2 * NAME_MAX_SIZE], plain[NAME_MAX_SIZE];
  struct stat about;
  ssize_t size = readlink(path, target, sizeof target - 1);
  if (size < 0) return false;
  target[size] = '\0';
  print_name(name->nonce, plain);
  snprintf(expected, sizeof expected, "/memfd:%s (deleted)", plain);
  if (strcmp(target, expected) != 0) return false;
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return false;
  return fstat(file, &about) == 0 && about.st_size >= 0 && (uint64_t)about.st_size == name->size;
}

pawl_status pwi_shared_map(const struct pwi_shared_name *name, bool writable, void **memory_out) {
  char path[NAME_MAX_SIZE];
  size_t size;
  if (name->size == 0 || !pwi_u64_to_size(name->size, &size)) return PAWL_NOT_FOUND;
  snprintf(path, sizeof path, "/proc/%" PRId32 "/fd/%" PRId32, name->process, name->file);
  int file = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (file < 0) return errno == EMFILE || errno == ENFILE ? PAWL_NODE_LIMIT : PAWL_NOT_FOUND;
  void *memory = MAP_FAILED;
  if (is_genuine(file, path, name))
    memory = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return PAWL_NOT_FOUND;
  if (size >= HUGE_FROM) madvise(memory, size, MADV_HUGEPAGE);
  *memory_out = memory;
  return PAWL_OK;
}

void pwi_shared_unmap(void *memory, size_t size) { munmap(memory, size); }
