/* The interface of the data plane: a second, faster connection to a peer.
 *
 * On one host a data plane connects processes of one user that have identified each other (meet.c). UCX
 * trusts the address that it receives, so it may only come from a process that could kill this one anyway.
 *
 * net/ucx implements it with UCX. In a build without UCX, pwi_plane_create returns PAWL_UNSUPPORTED.
 *
 * A plane belongs to a net and its thread. Only pwi_plane_progress calls its events; no other call does.
 */
#ifndef PWI_NET_TCP_PLANE_H
#define PWI_NET_TCP_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/places.h"
#include "net/process.h"

struct pwi_plane;
struct pwi_plane_port;   /* the address at which the peer of one link reaches this node */
struct pwi_plane_peer;   /* the data plane of one link */
struct pwi_plane_memory; /* memory of a region */

/* The destination of a body. */
struct pwi_plane_wish {
  bool is_dropped;          /* the body is not read */
  bool has_places;          /* the body is written to `places`; otherwise it is delivered in pieces */
  struct pwi_places places; /* room for the whole body */
};

/* The events of a plane; `owner` is the pointer given with pwi_plane_connect. */
struct pwi_plane_events {
  /* The probe of the peer has arrived. */
  void (*probed)(void *owner);

  /* A message: begin, any number of pieces, end. Pieces are aligned and sized as in net.h. `begin` chooses
   * the destination of the body; pieces are delivered only if it asked for them. For a `ready` message the
   * pieces and the end follow at once, as in net.h. `begin` returns false while the owner cannot accept the
   * message; it is offered again after pwi_plane_resume. */
  bool (*begin)(void *owner, const uint8_t *head, size_t body_size, bool ready, struct pwi_plane_wish *wish_out);
  void (*piece)(void *owner, const void *data, size_t size);
  void (*end)(void *owner);

  void (*done)(void *owner, uint64_t cookie, pawl_status status, size_t bytes);
  void (*notified)(void *owner, uint64_t value); /* 0: its put was lost, because the region is closed */
  void (*taken)(void *owner);                    /* pwi_plane_is_stuffed has become false */
  void (*failed)(void *owner, const char *why);  /* the plane to this peer failed; close it */
};

/* With `fabric`, an RDMA device is used if there is one. PAWL_UNSUPPORTED if this build or machine has no
 * plane; `*why_out` is the reason. */
pawl_status pwi_plane_create(const struct pwi_plane_events *events, const struct pwi_log *log, bool fabric,
                             struct pwi_plane **plane_out, const char **why_out);
void pwi_plane_destroy(struct pwi_plane *plane);

/* Opens a port, at which the peer of one link reaches this node. PAWL_NODE_LIMIT if there are too many,
 * PAWL_NO_MEMORY. */
pawl_status pwi_plane_port_open(struct pwi_plane *plane, struct pwi_plane_port **port_out);
void pwi_plane_port_close(struct pwi_plane_port *port); /* for a port that was not connected; NULL is fine */

/* The address of the port, for the peer. Valid as long as the port. */
const void *pwi_plane_port_address(const struct pwi_plane_port *port, size_t *size_out);

/* The kind of the plane (the version of UCX), which must be equal at both ends. */
const char *pwi_plane_kind(void);

bool pwi_plane_is_full(const struct pwi_plane *plane); /* no more ports can be opened */
size_t pwi_plane_port_count(const struct pwi_plane *plane);

/* True if an RDMA device is used, so that peers on other hosts can be reached too. */
bool pwi_plane_has_fabric(const struct pwi_plane *plane);

/* Makes progress; true if anything happened. */
bool pwi_plane_progress(struct pwi_plane *plane);

/* A descriptor that becomes readable when something happens, once armed. */
int pwi_plane_descriptor(const struct pwi_plane *plane);

/* Arms the descriptor before sleeping: true if it is safe to sleep, false if there is work. */
bool pwi_plane_arm(struct pwi_plane *plane);

/* True while sends wait for room at the peer. No event reports when there is room, so do not sleep long. */
bool pwi_plane_is_pending(const struct pwi_plane *plane);

/* The route to a peer. */
struct pwi_plane_route {
  const void *address; /* address of its port */
  size_t address_size;
  uint64_t our_tag;   /* tag of all packets from the peer; random */
  uint64_t their_tag; /* tag of all packets to the peer; random */
  bool same_host;
  struct pwi_process process; /* on the same host: the process of the peer */
  int channel;                /* on the same host: the unix socket to the peer, over which descriptors are
                                 passed; otherwise -1 */
};

/* Connects to a peer. It takes over the port and the process and channel of the route, also on failure.
 * PAWL_LINK_PLANE, PAWL_NO_MEMORY. */
pawl_status pwi_plane_connect(struct pwi_plane_port *port, void *owner, struct pwi_plane_route *route,
                              struct pwi_plane_peer **peer_out);

/* Sends a probe to the peer. */
pawl_status pwi_plane_probe(struct pwi_plane_peer *peer);

/* Offers again the messages that `begin` declined. */
void pwi_plane_resume(struct pwi_plane_peer *peer);

/* Closes the connection: all outstanding operations end with `done` and `why`, and no memory is accessed any
 * more. Must not be called from an event. */
void pwi_plane_close(struct pwi_plane_peer *peer, pawl_status why); /* NULL is fine */

/* The number of operations of this peer that have not ended. */
size_t pwi_plane_outstanding(const struct pwi_plane_peer *peer);

/* As pwi_net_send. Every accepted operation ends with one `done` event, also if its cookie is 0, so that the
 * owner can count its queue. */
pawl_status pwi_plane_send(struct pwi_plane_peer *peer, const void *head, const struct iovec *body, size_t body_count,
                           size_t body_size, uint64_t cookie);

/* Zeroed memory. PAWL_NO_MEMORY. */
pawl_status pwi_plane_memory_open(struct pwi_plane *plane, size_t size, struct pwi_plane_memory **memory_out,
                                  void **address_out);
void pwi_plane_memory_close(struct pwi_plane *plane, struct pwi_plane_memory *memory);

/* True if the memory contains a body that is still being sent to this peer. */
bool pwi_plane_memory_is_read_by(const struct pwi_plane_memory *memory, const struct pwi_plane_peer *peer);

/* Creates a key to the memory for a peer; and opens the memory of a peer by such a key and its stated `size`.
 * The remote is a number for this peer, until it is closed. PAWL_QUEUE_FULL if the peer has not yet taken
 * too many earlier ones; the peer is then stuffed until it has. */
pawl_status pwi_plane_memory_key(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory, void *key,
                                 size_t capacity, size_t *size_out);
pawl_status pwi_plane_remote_open(struct pwi_plane_peer *peer, const void *key, size_t key_size, uint64_t size,
                                  bool writable, size_t *remote_out);
void pwi_plane_remote_close(struct pwi_plane_peer *peer, size_t remote);
bool pwi_plane_is_stuffed(const struct pwi_plane_peer *peer);

/* Maps the memory of the peer another time, for reading; the caller unmaps it. Only on one host.
 * PAWL_NOT_FOUND if the peer has closed it, PAWL_NO_MEMORY. */
pawl_status pwi_plane_remote_map(struct pwi_plane_peer *peer, size_t remote, void **memory_out, size_t *size_out);

/* The number of notifications sent to the peer so far. */
uint64_t pwi_plane_notifications(const struct pwi_plane_peer *peer);
pawl_status pwi_plane_put(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, const void *from, size_t size,
                          uint64_t notify, uint64_t cookie);
pawl_status pwi_plane_get(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, void *into, size_t size,
                          uint64_t cookie);
pawl_status pwi_plane_fence(struct pwi_plane_peer *peer, uint64_t cookie);

/* For `pawl env`: a description of the plane, or the reason why there is none. */
const char *pwi_plane_about(bool *available_out);

#endif
