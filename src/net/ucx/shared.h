/* Memory shared between processes of one host: created here, given to a peer, and mapped there.
 *
 * A shared memory is an anonymous file (memfd) whose size is sealed, so that pages cannot vanish while a peer
 * reads them. Its owner passes the descriptor to the peer over a unix socket (SCM_RIGHTS); no process opens a
 * file by a name from a peer. The peer checks seals and size before it maps the file, and keeps the mapping
 * without the descriptor. (UCX has shared memory too, but UCX 1.13 crashes if it receives a key to memory of
 * a process that has died.) Nothing is left in /dev/shm, even if processes are killed.
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

/* Creates zeroed memory, fully allocated; large ones request huge pages. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
pawl_status pwi_shared_open(size_t size, struct pwi_shared *shared_out);
void pwi_shared_close(struct pwi_shared *shared);

/* Gives the memory, identified by `number`, to the peer at the other end of a unix socket of type
 * SOCK_SEQPACKET. PAWL_QUEUE_FULL if the peer has not taken too many earlier ones yet, PAWL_LINK_PLANE if the
 * peer is gone. */
pawl_status pwi_shared_give(int channel, uint64_t number, const struct pwi_shared *shared);

/* A mapped memory of a peer. */
struct pwi_mapping {
  uint64_t number; /* the peer's */
  size_t size;
  void *memory;
};

/* Takes the next memory that the peer has given, and maps it for reading. PAWL_NOT_FOUND if there is none
 * now, PAWL_LINK_PLANE if the peer is gone, PAWL_CORRUPT if the descriptor is not such a memory,
 * PAWL_NO_MEMORY. After a failure nothing stays open. */
pawl_status pwi_shared_take(int channel, struct pwi_mapping *mapping_out);

/* Makes the mapping writable. PAWL_FORBIDDEN if the file of the peer is not. */
pawl_status pwi_mapping_open_for_writing(const struct pwi_mapping *mapping);
void pwi_mapping_close(const struct pwi_mapping *mapping);

/* Maps the same memory at another address, for reading. The caller unmaps it. PAWL_NO_MEMORY. */
pawl_status pwi_mapping_again(const struct pwi_mapping *mapping, void **memory_out);

#endif
