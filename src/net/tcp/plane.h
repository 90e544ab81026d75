/* The data plane as the links see it: a second, faster way to a peer.
 *
 * On one host it is set up between processes of one user that have met (meet.c): UCX believes the address that it is
 * given, so only somebody who could end us anyway may hand one in.
 *
 * net/ucx implements it with UCX. A build without UCX has none, and pwi_plane_create says so.
 *
 * A plane belongs to a net and its thread. Its events are called from pwi_plane_progress only, never from inside a
 * call.
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
struct pwi_plane_port;   /* where one link's peer can reach us */
struct pwi_plane_peer;   /* the plane's end of one link */
struct pwi_plane_memory; /* memory of a region */

/* What is to become of a body. */
struct pwi_plane_wish {
  bool is_dropped;          /* it is not even read */
  bool has_places;          /* it is to be written there, else it is wanted in pieces */
  struct pwi_places places; /* all of the body */
};

/* What happens on a plane; `owner` is what the peer was connected with. */
struct pwi_plane_events {
  /* The peer's probe came through. */
  void (*probed)(void *owner);

  /* A message: begin, any number of pieces, end. A piece is aligned and sized as net.h promises. `begin` says what
   * is to become of the body; there are pieces only if they were wished for. If it is `ready` these follow at once, as
   * net.h has it, and so does the end. False while the owner cannot take it: it is offered again after
   * pwi_plane_resume. */
  bool (*begin)(void *owner, const uint8_t *head, size_t body_size, bool ready, struct pwi_plane_wish *wish_out);
  void (*piece)(void *owner, const void *data, size_t size);
  void (*end)(void *owner);

  void (*done)(void *owner, uint64_t cookie, pawl_status status, size_t bytes);
  void (*notified)(void *owner, uint64_t value);
  void (*failed)(void *owner, const char *why); /* the plane to this peer broke; close it */
};

/* With `fabric` an RDMA device is used if there is one. PAWL_UNSUPPORTED if this build or machine has no plane:
 * `*why_out` says why. */
pawl_status pwi_plane_create(const struct pwi_plane_events *events, const struct pwi_log *log, bool fabric,
                             struct pwi_plane **plane_out, const char **why_out);
void pwi_plane_destroy(struct pwi_plane *plane);

/* Where the peer of one link can reach us. PAWL_NODE_LIMIT if there are too many, PAWL_NO_MEMORY. */
pawl_status pwi_plane_port_open(struct pwi_plane *plane, struct pwi_plane_port **port_out);
void pwi_plane_port_close(struct pwi_plane_port *port); /* one that was not connected; NULL is fine */

/* What the peer needs to know. Valid as long as the port. */
const void *pwi_plane_port_address(const struct pwi_plane_port *port, size_t *size_out);

/* Both ends must be of one kind: the version of UCX. */
const char *pwi_plane_kind(void);

bool pwi_plane_is_full(const struct pwi_plane *plane); /* no more ports */

/* True if an RDMA device is used: peers on other hosts can be reached too. */
bool pwi_plane_has_fabric(const struct pwi_plane *plane);

/* True if something moved. */
bool pwi_plane_progress(struct pwi_plane *plane);

/* Readable when something happened, once armed. */
int pwi_plane_descriptor(const struct pwi_plane *plane);

/* Before sleeping: true if it is safe to, false if there is work. */
bool pwi_plane_arm(struct pwi_plane *plane);

/* True while sends wait for room at the peer. Nobody wakes us when there is some: do not sleep long. */
bool pwi_plane_is_pending(const struct pwi_plane *plane);

/* The way to a peer. */
struct pwi_plane_route {
  const void *address; /* of its port */
  size_t address_size;
  uint64_t our_tag;   /* what the peer puts on what it sends to us, */
  uint64_t their_tag; /* and we on what we send; drawn at random */
  bool same_host;
  struct pwi_process process; /* on the same host: who it is, */
  int channel;                /* and the unix socket that leads there, over which descriptors are passed; else -1 */
};

/* The port, and the route's process and channel, become the peer's, also on failure. PAWL_LINK_PLANE, PAWL_NO_MEMORY. */
pawl_status pwi_plane_connect(struct pwi_plane_port *port, void *owner, struct pwi_plane_route *route,
                              struct pwi_plane_peer **peer_out);

/* Send the peer our probe. */
pawl_status pwi_plane_probe(struct pwi_plane_peer *peer);

/* Offer again what `begin` declined. */
void pwi_plane_resume(struct pwi_plane_peer *peer);

/* Close: everything outstanding is `done` with `why`, and no memory is touched any more. Not from inside an event. */
void pwi_plane_close(struct pwi_plane_peer *peer, pawl_status why); /* NULL is fine */

/* Operations of this peer that have not ended. */
size_t pwi_plane_outstanding(const struct pwi_plane_peer *peer);

/* As pwi_net_send. `done` is called for a cookie other than 0. Every accepted operation ends with one `done` event, the
 * cookie being 0 where none was given, so that the owner can count its queue. */
pawl_status pwi_plane_send(struct pwi_plane_peer *peer, const void *head, const struct iovec *body, size_t body_count,
                           size_t body_size, uint64_t cookie);

/* Zeroed memory. PAWL_NO_MEMORY. */
pawl_status pwi_plane_memory_open(struct pwi_plane *plane, size_t size, struct pwi_plane_memory **memory_out,
                                  void **address_out);
void pwi_plane_memory_close(struct pwi_plane *plane, struct pwi_plane_memory *memory);

/* True if a body that is still being sent to this peer lies in the memory. */
bool pwi_plane_memory_is_read_by(const struct pwi_plane_memory *memory, const struct pwi_plane_peer *peer);

/* A key to the memory for a peer, and its use on the other side, where the memory is said to be of `size`. The remote is
 * a number of this peer's. PAWL_QUEUE_FULL: the peer has too many still to take. */
pawl_status pwi_plane_memory_key(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory, void *key,
                                 size_t capacity, size_t *size_out);
pawl_status pwi_plane_remote_open(struct pwi_plane_peer *peer, const void *key, size_t key_size, uint64_t size,
                                  bool writable, size_t *remote_out);
pawl_status pwi_plane_put(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, const void *from, size_t size,
                          uint64_t notify, uint64_t cookie);
pawl_status pwi_plane_get(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, void *into, size_t size,
                          uint64_t cookie);
pawl_status pwi_plane_fence(struct pwi_plane_peer *peer, uint64_t cookie);

/* For `pawl env`: why there is, or is not, a plane. */
const char *pwi_plane_about(bool *available_out);

#endif
