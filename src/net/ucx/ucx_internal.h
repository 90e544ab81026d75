/* Shared by the files of net/ucx; private to them.
 *
 *   ucx_plane.c    context, worker, progress, peers and their end
 *   ucx_send.c     messages on their way out
 *   ucx_receive.c  messages on their way in
 *   ucx_memory.c   regions, put, get, fence
 *   shared.c       memory that processes of one host share
 *
 * ON THE PLANE everything is an active message with the header below. A small message is one of them, head
 * and body as payload. A large one begins with LARGE: head, a table of the body's parts, and the bytes of
 * small parts.
 *
 *   INLINE  the bytes follow the table
 *   SHARED  the part lies in a region that the receiver has mapped: it is read in place
 *   REMOTE  the part lies in the sender's private memory, on the same host: the receiver copies it from there
 *           (process_vm_readv: one copy, made by the receiver)
 *   PULLED  on another host: it follows in PART messages of at most CHUNK bytes, by UCX's rendezvous
 *
 * The receiver sends ACK when it has finished with shared and remote parts. UCX delivers packets to one
 * endpoint in order. A message is ready (net.h) if it is small, or if every part is inline or lies in a
 * mapped shared region.
 *
 * On one host UCX thus carries only small packets. Its own rendezvous and its handling of dead peers are not
 * used there, because both can abort the surviving process (UCX 1.13: a worker destroyed in the middle of a
 * rendezvous; two endpoints between one pair of workers). For the same reason each link has its own worker,
 * which is destroyed with the link.
 */
#ifndef PWI_NET_UCX_UCX_INTERNAL_H
#define PWI_NET_UCX_UCX_INTERNAL_H

#include <ucp/api/ucp.h>

#include "base/fifo.h"
#include "net/net.h"
#include "net/process.h"
#include "net/tcp/plane.h"
#include "net/ucx/shared.h"

#define ACTIVE_MESSAGE_ID 1
#define CHUNK ((size_t)256 << 10)
#define PARTS_MAX PWI_NET_IOV_MAX
#define INLINE_MAX 4096        /* bytes of inline parts in a LARGE message; all private parts are inline if they fit */
#define INLINE_PART 1024       /* if private parts do not fit: largest single part that is inline */
#define PORTS_MAX 1024         /* of one net; a worker takes about a megabyte */
#define PORT_FILES 16          /* descriptors for each port; a port and its link take about 11 of them */
#define TURN ((size_t)4 << 20) /* bytes of one peer that are delivered before others have their turn */

enum packet_kind {
  PACKET_PROBE = 1, /* payload: struct probe */
  PACKET_SMALL,     /* payload: head, body */
  PACKET_LARGE,     /* size: of the body; number: of this large message; count: of parts; payload: head,
                       parts, inline bytes
                     */
  PACKET_PART,      /* payload: up to CHUNK bytes */
  PACKET_ACK,       /* number: of the large message */
  PACKET_REGION,    /* number: of a memory whose descriptor was just sent over the channel */
  PACKET_FORGET,    /* number: of the memory */
  PACKET_NOTIFY,    /* number: the value; size: the number of the memory that was put to, on one host */
};

/* Little-endian on the wire; every machine UCX runs on is. */
struct packet {
  uint64_t tag; /* tag of the receiver */
  uint32_t kind;
  uint32_t count;
  uint64_t number;
  uint64_t size;
};

/* A probe of the plane: the receiver must be able to read the memory of the sender. */
struct probe {
  uint64_t address; /* of `value` in the sender */
  uint64_t value;
};

enum part_kind { PART_INLINE = 1, PART_SHARED, PART_REMOTE, PART_PULLED };

struct plane_part {
  uint32_t kind;
  uint32_t reserved;
  uint64_t memory; /* SHARED: its number */
  uint64_t offset; /* SHARED: in it; REMOTE: the address */
  uint64_t size;
};

/* An operation in progress. It ends when nothing of it is pending. */
struct operation {
  struct operation *next, **previous; /* links of the list of its peer */
  struct pwi_plane_peer *peer;
  struct packet packet;
  struct packet part_packet; /* of the PART messages: UCX reads headers until the request ends */
  uint64_t cookie;
  uint64_t notify; /* put: notification to send when it has landed */
  size_t bytes;    /* as counted by the owner */
  uint64_t large;  /* number of the large message that awaits an ACK; 0: none */
  size_t pending;  /* requests that UCX has not ended, and an ACK */
  bool is_counted; /* the owner counts it in its queue and gets `done` */
  pawl_status status;
  const struct pwi_plane_memory *memories[PARTS_MAX]; /* the memories of shared parts */
  size_t memory_count;
  char payload[PWI_NET_HEAD_SIZE + PARTS_MAX * sizeof(struct plane_part) + INLINE_MAX];
};

/* A packet that has arrived and cannot be processed yet. */
struct arrival {
  struct packet packet;
  void *data;
  size_t size;
  bool is_rendezvous;
  bool is_ours; /* a copy, to be freed by us; otherwise released to UCX */
};

/* A region of a peer for put and get: mapped on the same host, otherwise through UCX. */
struct plane_remote {
  bool is_open;
  uint64_t number; /* on the same host: of its mapping */
  char *memory;    /* on the same host: NULL if the peer has closed the region */
  ucp_rkey_h key;
  uint64_t address;
};

/* A port: the UCX worker of one link. */
struct pwi_plane_port {
  struct pwi_plane *plane;
  struct pwi_plane_port *next;
  struct pwi_plane_peer *peer; /* NULL until connected */
  struct probe early;          /* a probe that arrived before */
  bool has_early;
  uint64_t early_tag;
  ucp_worker_h worker;
  ucp_address_t *address;
  size_t address_size;
  int descriptor;
};

struct pwi_plane_peer {
  struct pwi_plane *plane;
  struct pwi_plane_port *port;
  struct pwi_plane_peer *next_busy;
  void *owner;
  uint64_t our_tag, their_tag;
  struct pwi_process process; /* on the same host: the process, confirmed by the kernel */
  int channel;                /* on the same host: the unix socket to it, for descriptors */
  bool same_host, is_busy, has_failed, is_closing;
  bool is_stuffed; /* the channel had no room for another descriptor */
  ucp_ep_h endpoint;
  uint64_t probe_value;
  struct operation *operations;
  size_t outstanding; /* operations that the owner counts */
  uint64_t last_large;
  struct pwi_fifo introduced; /* numbers of our memories that the peer has mapped */

  /* incoming */
  struct pwi_fifo arrivals;
  bool is_blocked;   /* the owner does not accept messages yet */
  bool in_large;     /* a large message is arriving */
  bool is_dropped;   /* the large message is dropped */
  bool is_receiving; /* UCX is fetching a part */
  struct packet large;
  struct plane_part parts[PARTS_MAX];
  char inlined[INLINE_MAX];
  size_t inlined_at;
  size_t part_at, part_offset;
  size_t handed; /* bytes of the body that were processed */
  size_t fetching;
  bool has_places;          /* the body is written to `places`; otherwise it is delivered in pieces */
  struct pwi_places places; /* destination of the remaining bytes */
  bool detours;             /* the chunk being fetched spans both destinations and goes through the bounce
                               buffer */
  char *bounce;             /* for alignment: up to CHUNK + 64 bytes */
  size_t bounced;
  struct pwi_mapping *regions; /* mapped regions of the peer */
  size_t region_count, region_room;
  struct plane_remote *remotes;
  size_t remote_count, remote_room;
  uint64_t notifications; /* sent to the peer */
};

struct pwi_plane_memory {
  struct pwi_plane_memory *next;
  uint64_t number;
  struct pwi_shared shared;
  ucp_mem_h handle; /* registered for RDMA; NULL without a fabric */
};

struct pwi_plane {
  const struct pwi_plane_events *events;
  const struct pwi_log *log;
  ucp_context_h context;
  struct pwi_plane_port *ports;
  size_t port_count, port_limit;
  int descriptor; /* an epoll of the ports' descriptors */
  bool has_fabric;
  bool moved;
  size_t pending; /* requests that UCX has not ended */
  struct pwi_plane_peer *busy;
  struct operation *spare;
  struct pwi_plane_memory *memories;
  uint64_t last_memory;
  char small[PWI_NET_HEAD_SIZE + PWI_NET_COPY_MAX + PWI_NET_PIECE_ALIGN];
};

/* ucx_plane.c */
pawl_status pwi_ucx_status(ucs_status_t status);
struct operation *pwi_ucx_begin(struct pwi_plane_peer *peer, uint64_t cookie, size_t bytes, bool is_counted);
void pwi_ucx_fail(struct pwi_plane_peer *peer, const char *why);
void pwi_ucx_step(struct operation *operation, pawl_status status); /* one pending request less */
/* `request` is the result of a UCX call. */
void pwi_ucx_watch(struct operation *operation, void *request);
ucp_request_param_t pwi_ucx_param(struct operation *operation);

/* ucx_send.c */
void pwi_ucx_send_packet(struct operation *operation, const struct packet *packet, const void *payload, size_t size,
                         uint32_t flags);
pawl_status pwi_ucx_tell(struct pwi_plane_peer *peer, enum packet_kind kind, uint64_t number, const void *payload,
                         size_t payload_size);
void pwi_ucx_acknowledged(struct pwi_plane_peer *peer, uint64_t number);

/* ucx_receive.c */
ucs_status_t pwi_ucx_arrived(void *argument, const void *header, size_t header_size, void *data, size_t size,
                             const ucp_am_recv_param_t *param);
void pwi_ucx_advance(struct pwi_plane_peer *peer);
void pwi_ucx_probed(struct pwi_plane_peer *peer, uint64_t tag, const struct probe *probe);
void pwi_ucx_drop_arrivals(struct pwi_plane_peer *peer);

/* ucx_memory.c */
const struct pwi_plane_memory *pwi_ucx_memory_of(const struct pwi_plane *plane, const void *address, size_t size);
pawl_status pwi_ucx_introduce(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory);
void pwi_ucx_regions_came(struct pwi_plane_peer *peer);
void pwi_ucx_region_left(struct pwi_plane_peer *peer, uint64_t number);
void pwi_ucx_release_regions(struct pwi_plane_peer *peer);
bool pwi_ucx_is_introduced(const struct pwi_plane_peer *peer, uint64_t number);
void pwi_ucx_check_room(struct pwi_plane_peer *peer); /* the peer may have taken descriptors */

#endif
