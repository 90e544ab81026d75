/* Memory that processes of one host share: made here, mapped there.
 *
 * A shared memory is an anonymous file (memfd) whose size is sealed, so that nobody can pull pages from under a reader.
 * Peers find it through /proc; they check name, seals and size before they map it, and a peer that is already gone is
 * an error and not a crash. (UCX has shared memory too, but UCX 1.13 crashes when it is given the key to memory of a
 * process that has died.) Nothing is left behind in /dev/shm, whoever is killed.
 */
#ifndef PWI_NET_UCX_SHARED_H
#define PWI_NET_UCX_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* How a peer finds a memory. Plain bytes: it travels as it is between processes of one host. */
struct pwi_shared_name {
  int32_t process;
  int32_t file;
  uint64_t nonce; /* part of the file's name: a number that is used again by another process does not fit */
  uint64_t size;
};

struct pwi_shared {
  struct pwi_shared_name name;
  void *memory;
};

/* Zeroed memory, all of it allocated now; large ones ask for huge pages. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
pawl_status pwi_shared_open(size_t size, struct pwi_shared *shared_out);
void pwi_shared_close(struct pwi_shared *shared);

/* Map a peer's memory, for reading or also for writing. PAWL_NOT_FOUND if it is not there, or not what it says. */
pawl_status pwi_shared_map(const struct pwi_shared_name *name, bool writable, void **memory_out);
void pwi_shared_unmap(void *memory, size_t size);

#endif
