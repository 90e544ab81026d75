#include "net/ucx/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/checked.h"

#define HUGE_FROM ((size_t)4 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The message that accompanies a descriptor: magic, number, size. */
#define MAGIC UINT64_C(0x676572206c776170) /* "pawl reg" */
#define NOTE_SIZE 24
#define FILES_MAX 8 /* more than the expected one, so that additional descriptors are noticed and closed */

/* The kernel does not refuse an anonymous file larger than the available memory: it allocates until it has to
 * kill a process. So the available memory is checked first. */
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
  struct pwi_shared shared = {.size = size};
  if (is_beyond_memory(size)) return PAWL_NO_MEMORY;
  shared.file = memfd_create("pawl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (shared.file < 0) return PAWL_NODE_LIMIT;
  pawl_status status = allocate(shared.file, size);
  if (status == PAWL_OK) {
    shared.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file, 0);
    if (shared.memory == MAP_FAILED) status = PAWL_NO_MEMORY;
  }
  if (status != PAWL_OK) {
    close(shared.file);
    return status;
  }
  if (size >= HUGE_FROM) madvise(shared.memory, size, MADV_HUGEPAGE);
  *shared_out = shared;
  return PAWL_OK;
}

void pwi_shared_close(struct pwi_shared *shared) {
  munmap(shared->memory, shared->size);
  close(shared->file);
}

/* Giving and taking. */

pawl_status pwi_shared_give(int channel, uint64_t number, const struct pwi_shared *shared) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  uint8_t note[NOTE_SIZE];
  pwi_put_u64(note, MAGIC);
  pwi_put_u64(note + 8, number);
  pwi_put_u64(note + 16, shared->size);
  struct iovec body = {note, sizeof note};
  struct msghdr message = {
      .msg_iov = &body, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &shared->file, sizeof(int));
  ssize_t moved;
  do moved = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (moved < 0 && errno == EINTR);
  if (moved == (ssize_t)sizeof note) return PAWL_OK;
  bool is_full = moved < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == ENOMEM);
  return is_full ? PAWL_QUEUE_FULL : PAWL_LINK_PLANE;
}

/* Collects all received descriptors and returns their number; the kernel closes those beyond the room. */
static size_t files_of(struct msghdr *message, int files[FILES_MAX]) {
  size_t count = 0;
  for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    size_t here = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < here && count < FILES_MAX; i++)
      memcpy(&files[count++], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
  }
  return count;
}

/* True for an anonymous file of that size that cannot be shrunk. Only such files have seals. */
static bool is_genuine(int file, uint64_t size) {
  struct stat about;
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return false;
  return fstat(file, &about) == 0 && about.st_size > 0 && (uint64_t)about.st_size == size;
}

static pawl_status map(int file, const uint8_t *note, struct pwi_mapping *mapping_out) {
  struct pwi_mapping mapping = {.number = pwi_get_u64(note + 8)};
  uint64_t size = pwi_get_u64(note + 16);
  if (pwi_get_u64(note) != MAGIC || !pwi_u64_to_size(size, &mapping.size) || !is_genuine(file, size))
    return PAWL_CORRUPT;
  mapping.memory = mmap(NULL, mapping.size, PROT_READ, MAP_SHARED, file, 0);
  if (mapping.memory == MAP_FAILED) return errno == ENOMEM ? PAWL_NO_MEMORY : PAWL_CORRUPT;
  if (mapping.size >= HUGE_FROM) madvise(mapping.memory, mapping.size, MADV_HUGEPAGE);
  *mapping_out = mapping;
  return PAWL_OK;
}

pawl_status pwi_shared_take(int channel, struct pwi_mapping *mapping_out) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(FILES_MAX * sizeof(int))];
  } control = {0};
  uint8_t note[NOTE_SIZE];
  int files[FILES_MAX];
  struct iovec body = {note, sizeof note};
  struct msghdr message = {
      .msg_iov = &body, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t moved;
  do moved = recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (moved < 0 && errno == EINTR);
  if (moved < 0) return errno == EAGAIN ? PAWL_NOT_FOUND : PAWL_LINK_PLANE;
  size_t count = files_of(&message, files);
  bool is_whole = moved == (ssize_t)sizeof note && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
  pawl_status status = moved == 0 && count == 0 ? PAWL_LINK_PLANE : PAWL_CORRUPT;
  if (is_whole && count == 1) status = map(files[0], note, mapping_out);
  for (size_t i = 0; i < count; i++) close(files[i]);
  return status;
}

pawl_status pwi_mapping_open_for_writing(const struct pwi_mapping *mapping) {
  return mprotect(mapping->memory, mapping->size, PROT_READ | PROT_WRITE) == 0 ? PAWL_OK : PAWL_FORBIDDEN;
}

void pwi_mapping_close(const struct pwi_mapping *mapping) { munmap(mapping->memory, mapping->size); }

/* The descriptor is closed, but mremap with an old size of 0 maps the pages of a shared mapping again. */
pawl_status pwi_mapping_again(const struct pwi_mapping *mapping, void **memory_out) {
  void *memory = mremap(mapping->memory, 0, mapping->size, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return PAWL_NO_MEMORY;
  if (mprotect(memory, mapping->size, PROT_READ) != 0) {
    munmap(memory, mapping->size);
    return PAWL_NO_MEMORY;
  }
  *memory_out = memory;
  return PAWL_OK;
}
