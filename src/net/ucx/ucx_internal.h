/* What the files of net/ucx share. Nobody else includes this.
 *
 *   ucx_plane.c    context, worker, progress, peers and their end
 *   ucx_send.c     messages on their way out
 *   ucx_receive.c  messages on their way in
 *   ucx_memory.c   regions, put, get, fence
 *   shared.c       memory that processes of one host share
 *
 * ON THE PLANE everything is an active message with the header below. A small message is one of them, head and body as
 * payload. A large one begins with LARGE: head, a table of the body's parts, and the bytes of small parts.
 *
 *   INLINE  the bytes follow the table
 *   SHARED  the part lies in a region that the receiver has mapped: it is read in place
 *   REMOTE  the part lies in the sender's private memory, on the same host: the receiver copies it from there
 *           (process_vm_readv: one copy, made by the receiver)
 *   PULLED  on another host: it follows in PART messages of at most CHUNK bytes, by UCX's rendezvous
 *
 * The receiver says ACK when it is done with shared and remote parts. UCX keeps the order of what is sent to one
 * endpoint. A message is ready (net.h) if it is small, or if every part of it is inline or shared and found to lie in a
 * mapped region.
 *
 * On one host UCX thus carries small packets only. Its own rendezvous and its handling of dead peers are not used
 * there: both were seen to abort the survivor (UCX 1.13, a worker destroyed in the middle of a rendezvous; two
 * endpoints between one pair of workers). For the same reason each link has a worker of its own, and ends by destroying
 * it.
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
#define INLINE_MAX 4096  /* bytes of small parts in a LARGE message: all private ones if they are no more together, */
#define INLINE_PART 1024 /* else single parts of up to this size */
#define PORTS_MAX 64     /* a worker costs about a megabyte; links beyond do without a data plane */
#define TURN ((size_t)4 << 20) /* bytes of one peer that are handed on before others have their turn */

enum packet_kind {
  PACKET_PROBE = 1, /* payload: struct probe */
  PACKET_SMALL,     /* payload: head, body */
  PACKET_LARGE, /* size: of the body; number: of this large message; count: of parts; payload: head, parts, inline bytes
                 */
  PACKET_PART,  /* payload: up to CHUNK bytes */
  PACKET_ACK,   /* number: of the large message */
  PACKET_REGION, /* number: of a memory whose descriptor has just been given over the channel */
  PACKET_FORGET, /* number: of the memory */
  PACKET_NOTIFY, /* number: the value */
};

/* Little-endian on the wire; every machine UCX runs on is. */
struct packet {
  uint64_t tag; /* whom it is for */
  uint32_t kind;
  uint32_t count;
  uint64_t number;
  uint64_t size;
};

/* Shows that the plane works both ways: the receiver must be able to read the sender's memory. */
struct probe {
  uint64_t address; /* of `value` in the sender */
  uint64_t value;
};

enum part_kind { PART_INLINE = 1, PART_SHARED, PART_REMOTE, PART_PULLED };

struct part {
  uint32_t kind;
  uint32_t reserved;
  uint64_t memory; /* SHARED: its number */
  uint64_t offset; /* SHARED: in it; REMOTE: the address */
  uint64_t size;
};

/* An operation under way. It ends when nothing of it is pending. */
struct operation {
  struct operation *next, **previous; /* of its peer's */
  struct pwi_plane_peer *peer;
  struct packet packet;
  struct packet part_packet; /* of the PART messages: UCX reads headers until the request ends */
  uint64_t cookie;
  uint64_t notify; /* a put: to be sent when it has landed */
  size_t bytes;    /* as the owner counts them */
  uint64_t large;  /* number of the large message that awaits an ACK; 0: none */
  size_t pending;  /* requests in UCX's hands, and an ACK */
  bool is_counted; /* the owner counts it in its queue and is told of its end */
  pawl_status status;
  const struct pwi_plane_memory *memories[PARTS_MAX]; /* that shared parts lie in */
  size_t memory_count;
  char payload[PWI_NET_HEAD_SIZE + PARTS_MAX * sizeof(struct part) + INLINE_MAX];
};

/* Something that arrived and cannot be dealt with yet. */
struct arrival {
  struct packet packet;
  void *data;
  size_t size;
  bool is_rendezvous;
  bool is_ours; /* copied: ours to free; else UCX's to release */
};

/* A peer's region. */
struct mapped_region {
  struct pwi_mapping mapping; /* number 0: the peer has closed it */
  bool is_remote;             /* put and get use it: it stays until the link ends */
};

/* A peer's region for put and get: mapped on the same host, else through UCX. */
struct plane_remote {
  char *memory;
  ucp_rkey_h key;
  uint64_t address;
};

/* A UCX worker, for one link. */
struct pwi_plane_port {
  struct pwi_plane *plane;
  struct pwi_plane_port *next;
  struct pwi_plane_peer *peer; /* NULL until connected */
  struct probe early;          /* a probe that came before */
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
  struct pwi_process process; /* on the same host: vouched for by the kernel, */
  int channel;                /* and the unix socket that leads to it, for descriptors */
  bool same_host, is_busy, has_failed, is_closing;
  ucp_ep_h endpoint;
  uint64_t probe_value;
  struct operation *operations;
  size_t outstanding; /* that the owner counts */
  uint64_t last_large;
  struct pwi_fifo introduced; /* numbers of our memories that it has mapped */

  /* incoming */
  struct pwi_fifo arrivals;
  bool is_blocked;   /* the owner does not take messages yet */
  bool in_large;     /* a large message is coming in */
  bool is_dropped;   /* and nobody wants it */
  bool is_receiving; /* UCX is fetching a part */
  struct packet large;
  struct part parts[PARTS_MAX];
  char inlined[INLINE_MAX];
  size_t inlined_at;
  size_t part_at, part_offset;
  size_t handed; /* bytes of the body that are dealt with */
  size_t fetching;
  bool has_places;          /* the body goes there, else it is handed on in pieces */
  struct pwi_places places; /* for what is still to come */
  bool detours;             /* the chunk being fetched lies across both places: it comes by the bounce buffer */
  char *bounce;             /* aligns what is not: up to CHUNK + 64 bytes */
  size_t bounced;
  struct mapped_region *regions;
  size_t region_count;
  struct plane_remote *remotes;
  size_t remote_count;
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
  size_t port_count;
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
void pwi_ucx_step(struct operation *operation, pawl_status status); /* one pending thing less */
void pwi_ucx_watch(struct operation *operation, void *request);     /* what UCX returned for a request */
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

#endif
