/* Memory that processes of one host share: made here, given to a peer, mapped there.
 *
 * A shared memory is an anonymous file (memfd) whose size is sealed, so that nobody can pull pages from under a reader.
 * Its owner hands the descriptor itself to the peer over a unix socket (SCM_RIGHTS); nobody opens a file that a peer has
 * named. The peer checks seals and size before it maps the file, and keeps the mapping without the descriptor. (UCX has
 * shared memory too, but UCX 1.13 crashes when it is given the key to memory of a process that has died.) Nothing is
 * left behind in /dev/shm, whoever is killed.
 */
#ifndef PWI_NET_UCX_SHARED_H
#define PWI_NET_UCX_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_shared {
  int file;
  size_t size;
  void *memory;
};

/* Zeroed memory, all of it allocated now; large ones ask for huge pages. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
pawl_status pwi_shared_open(size_t size, struct pwi_shared *shared_out);
void pwi_shared_close(struct pwi_shared *shared);

/* Hand the memory to the peer at the other end of a unix socket of type SOCK_SEQPACKET, under a number of ours.
 * PAWL_QUEUE_FULL if the peer has too many still to take, PAWL_LINK_PLANE if it is gone. */
pawl_status pwi_shared_give(int channel, uint64_t number, const struct pwi_shared *shared);

/* A peer's memory. */
struct pwi_mapping {
  uint64_t number; /* the peer's */
  size_t size;
  void *memory;
};

/* Take and map, for reading, the next that the peer has given. PAWL_NOT_FOUND if there is none now, PAWL_LINK_PLANE if
 * the peer is gone, PAWL_CORRUPT if what came is no memory as above, or PAWL_NO_MEMORY; nothing stays open then. */
pawl_status pwi_shared_take(int channel, struct pwi_mapping *mapping_out);

/* Let it be written too. PAWL_FORBIDDEN if the peer's file cannot be. */
pawl_status pwi_mapping_open_for_writing(const struct pwi_mapping *mapping);
void pwi_mapping_close(const struct pwi_mapping *mapping);

#endif
