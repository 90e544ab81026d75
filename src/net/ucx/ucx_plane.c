/* The data plane over UCX: context, workers, progress, and connecting and closing peers.
 *
 * Observations with UCX 1.13: worker addresses must be exchanged by the application (with UCX's own listener,
 * large messages use TCP); arming a worker and waiting on its descriptor costs nothing while idle; use one
 * worker per thread, never the multi-threaded mode; UCX may never report a dead peer, so the hang-up of the
 * link decides. All settings are made here and never read from the environment of the user.
 */
#include <dirent.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/memory.h"
#include "net/ucx/ucx_internal.h"

#define ADDRESS_OTHERS 24 /* maximum differing bytes of worker addresses on one host: 16 in UCX 1.13 */

/* Exported by libucs, but declared only in its internal headers. UCX installs handlers for SIGSEGV and other
 * signals when it is loaded, and prints to the terminal; a library must do neither. */
extern void ucs_debug_disable_signals(void) __attribute__((weak));
extern ucs_status_t ucs_global_opts_set_value(const char *name, const char *value) __attribute__((weak));

pawl_status pwi_ucx_status(ucs_status_t status) {
  switch (status) {
  case UCS_OK:
    return PAWL_OK;
  case UCS_ERR_NO_MEMORY:
    return PAWL_NO_MEMORY;
  case UCS_ERR_CANCELED:
    return PAWL_CANCELLED;
  default:
    return PAWL_LINK_PLANE;
  }
}

void pwi_ucx_fail(struct pwi_plane_peer *peer, const char *why) {
  if (peer->has_failed || peer->is_closing) return;
  peer->has_failed = true;
  peer->plane->moved = true;
  peer->plane->events->failed(peer->owner, why);
}

/* Operations. */

struct operation *pwi_ucx_begin(struct pwi_plane_peer *peer, uint64_t cookie, size_t bytes, bool is_counted) {
  struct operation *operation = peer->plane->spare;
  if (operation)
    peer->plane->spare = operation->next;
  else if (!(operation = pwi_alloc(sizeof *operation)))
    return NULL;
  memset(operation, 0, offsetof(struct operation, payload));
  operation->peer = peer;
  operation->cookie = cookie;
  operation->bytes = bytes;
  operation->is_counted = is_counted;
  operation->pending = 1; /* one for the caller, until it has issued all requests */
  operation->packet.tag = peer->their_tag;
  operation->next = peer->operations;
  operation->previous = &peer->operations;
  if (operation->next) operation->next->previous = &operation->next;
  peer->operations = operation;
  if (is_counted) peer->outstanding++;
  return operation;
}

static void end_operation(struct operation *operation) {
  struct pwi_plane_peer *peer = operation->peer;
  *operation->previous = operation->next;
  if (operation->next) operation->next->previous = operation->previous;
  if (operation->is_counted) {
    peer->outstanding--;
    peer->plane->events->done(peer->owner, operation->cookie, operation->status, operation->bytes);
  }
  operation->next = peer->plane->spare;
  peer->plane->spare = operation;
}

void pwi_ucx_step(struct operation *operation, pawl_status status) {
  if (operation->status == PAWL_OK) operation->status = status;
  /* While the peer is being closed, all operations end together, when UCX has released them. */
  if (--operation->pending == 0 && !operation->peer->is_closing) end_operation(operation);
}

static void request_ended(void *request, ucs_status_t status, void *user_data) {
  struct operation *operation = user_data;
  ucp_request_free(request);
  operation->peer->plane->pending--;
  operation->peer->plane->moved = true;
  pwi_ucx_step(operation, pwi_ucx_status(status));
}

ucp_request_param_t pwi_ucx_param(struct operation *operation) {
  return (ucp_request_param_t){
      .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
      .cb.send = request_ended,
      .user_data = operation,
  };
}

void pwi_ucx_watch(struct operation *operation, void *request) {
  if (UCS_PTR_IS_PTR(request)) {
    operation->pending++;
    operation->peer->plane->pending++;
  } else if (UCS_PTR_IS_ERR(request) && operation->status == PAWL_OK) {
    operation->status = pwi_ucx_status(UCS_PTR_STATUS(request));
  }
}

/* The plane. */

static bool has_rdma_device(void) {
  DIR *folder = opendir("/sys/class/infiniband");
  if (!folder) return false;
  bool found = false;
  for (struct dirent *entry; !found && (entry = readdir(folder));) found = entry->d_name[0] != '.';
  closedir(folder);
  return found;
}

static ucs_status_t open_context(struct pwi_plane *plane) {
  if (ucs_debug_disable_signals) ucs_debug_disable_signals();
  if (ucs_global_opts_set_value) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  /* Permits processes of the same user to read our memory where the Yama security module would forbid it. */
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);

  ucp_config_t *config;
  ucs_status_t status = ucp_config_read("PAWL", NULL, &config); /* our own prefix, so that UCX_… variables
                                                                   have no effect */
  if (status != UCS_OK) return status;
  ucp_config_modify(config, "TLS", plane->has_fabric ? "posix,rc,ud" : "posix");
  ucp_config_modify(config, "MM_RX_BUFS_GROW", "64");    /* receive buffers of a worker: half a megabyte
                                                            instead of four */
  ucp_config_modify(config, "MM_FIFO_SIZE", "128");      /* 64 small requests and as many answers at once */
  ucp_config_modify(config, "MM_FIFO_ELEM_SIZE", "512"); /* a request for one key fits into the queue
                                                            itself */
  ucp_params_t params = {
      .field_mask = UCP_PARAM_FIELD_FEATURES,
      .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (plane->has_fabric ? UCP_FEATURE_RMA : 0),
  };
  status = ucp_init(&params, config, &plane->context);
  ucp_config_release(config);
  return status;
}

/* Ports must not take the descriptors that sockets need. */
static size_t find_port_limit(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur / PORT_FILES >= PORTS_MAX) return PORTS_MAX;
  return (size_t)files.rlim_cur / PORT_FILES;
}

pawl_status pwi_plane_create(const struct pwi_plane_events *events, const struct pwi_log *log, bool fabric,
                             struct pwi_plane **plane_out, const char **why_out) {
  struct pwi_plane *plane = pwi_alloc_zero(1, sizeof *plane);
  if (!plane) return PAWL_NO_MEMORY;
  plane->events = events;
  plane->log = log;
  plane->has_fabric = fabric && has_rdma_device();
  plane->port_limit = find_port_limit();
  plane->descriptor = epoll_create1(EPOLL_CLOEXEC);
  ucs_status_t status = plane->descriptor >= 0 ? open_context(plane) : UCS_ERR_NO_RESOURCE;
  if (status != UCS_OK) {
    *why_out = ucs_status_string(status);
    pwi_plane_destroy(plane);
    return PAWL_UNSUPPORTED;
  }
  *plane_out = plane;
  return PAWL_OK;
}

void pwi_plane_destroy(struct pwi_plane *plane) {
  if (!plane) return;
  while (plane->memories) pwi_plane_memory_close(plane, plane->memories);
  if (plane->context) ucp_cleanup(plane->context);
  if (plane->descriptor >= 0) close(plane->descriptor);
  while (plane->spare) {
    struct operation *next = plane->spare->next;
    pwi_free(plane->spare);
    plane->spare = next;
  }
  pwi_free(plane);
}

const char *pwi_plane_about(bool *available_out) {
  static const struct pwi_plane_events nobody = {0};
  struct pwi_plane *plane;
  const char *why = "";
  bool available = pwi_plane_create(&nobody, NULL, true, &plane, &why) == PAWL_OK;
  if (available_out) *available_out = available;
  if (!available) return why;
  bool fabric = pwi_plane_has_fabric(plane);
  pwi_plane_destroy(plane);
  return fabric ? "shared memory between processes of one host, RDMA between hosts"
                : "shared memory between processes of one host; no RDMA device here";
}

const char *pwi_plane_kind(void) { return ucp_get_version_string(); }

bool pwi_plane_is_full(const struct pwi_plane *plane) { return plane->port_count >= plane->port_limit; }

size_t pwi_plane_port_count(const struct pwi_plane *plane) { return plane->port_count; }

bool pwi_plane_has_fabric(const struct pwi_plane *plane) { return plane->has_fabric; }

int pwi_plane_descriptor(const struct pwi_plane *plane) { return plane->descriptor; }

bool pwi_plane_arm(struct pwi_plane *plane) {
  if (plane->busy) return false;
  for (struct pwi_plane_port *port = plane->ports; port; port = port->next)
    if (ucp_worker_arm(port->worker) != UCS_OK) return false;
  return true;
}

bool pwi_plane_is_pending(const struct pwi_plane *plane) { return plane->pending > 0; }

static void continue_busy(struct pwi_plane *plane) {
  struct pwi_plane_peer *peer = plane->busy;
  plane->busy = NULL;
  while (peer) {
    struct pwi_plane_peer *next = peer->next_busy;
    peer->is_busy = false;
    pwi_ucx_advance(peer);
    peer = next;
  }
}

bool pwi_plane_progress(struct pwi_plane *plane) {
  plane->moved = false;
  unsigned count = 0;
  for (struct pwi_plane_port *port = plane->ports; port; port = port->next) {
    count += ucp_worker_progress(port->worker);
    if (port->peer && port->has_early) pwi_ucx_probed(port->peer, port->early_tag, &port->early);
    if (port->peer && port->peer->is_stuffed) pwi_ucx_check_room(port->peer);
  }
  if (plane->busy) continue_busy(plane);
  return count > 0 || plane->moved;
}

/* Ports. */

static ucs_status_t open_worker(struct pwi_plane_port *port) {
  ucp_worker_params_t params = {
      .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
      .thread_mode = UCS_THREAD_MODE_SINGLE,
  };
  ucs_status_t status = ucp_worker_create(port->plane->context, &params, &port->worker);
  if (status != UCS_OK) return status;
  ucp_am_handler_param_t handler = {
      .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
      .id = ACTIVE_MESSAGE_ID,
      .cb = pwi_ucx_arrived,
      .arg = port,
  };
  status = ucp_worker_set_am_recv_handler(port->worker, &handler);
  if (status == UCS_OK) status = ucp_worker_get_efd(port->worker, &port->descriptor);
  if (status == UCS_OK) status = ucp_worker_get_address(port->worker, &port->address, &port->address_size);
  return status;
}

static void free_port(struct pwi_plane_port *port) {
  if (port->address) ucp_worker_release_address(port->worker, port->address);
  if (port->worker) ucp_worker_destroy(port->worker);
  pwi_free(port);
}

pawl_status pwi_plane_port_open(struct pwi_plane *plane, struct pwi_plane_port **port_out) {
  if (pwi_plane_is_full(plane)) return PAWL_NODE_LIMIT;
  struct pwi_plane_port *port = pwi_alloc_zero(1, sizeof *port);
  if (!port) return PAWL_NO_MEMORY;
  port->plane = plane;
  ucs_status_t status = open_worker(port);
  struct epoll_event event = {.events = EPOLLIN};
  if (status == UCS_OK && epoll_ctl(plane->descriptor, EPOLL_CTL_ADD, port->descriptor, &event) != 0)
    status = UCS_ERR_NO_RESOURCE;
  if (status != UCS_OK) {
    free_port(port);
    return PAWL_NODE_LIMIT;
  }
  port->next = plane->ports;
  plane->ports = port;
  plane->port_count++;
  *port_out = port;
  return PAWL_OK;
}

void pwi_plane_port_close(struct pwi_plane_port *port) {
  if (!port) return;
  for (struct pwi_plane_port **at = &port->plane->ports; *at; at = &(*at)->next)
    if (*at == port) {
      *at = port->next;
      break;
    }
  port->plane->port_count--;
  free_port(port);
}

const void *pwi_plane_port_address(const struct pwi_plane_port *port, size_t *size_out) {
  *size_out = port->address_size;
  return port->address;
}

/* Peers. */

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t status) {
  (void)endpoint;
  pwi_ucx_fail(argument, ucs_status_string(status));
}

static ucs_status_t open_endpoint(struct pwi_plane_peer *peer, const void *address) {
  ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address};
  if (!peer->same_host) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = (ucp_err_handler_t){endpoint_failed, peer};
  }
  return ucp_ep_create(peer->port->worker, &params, &peer->endpoint);
}

/* UCX trusts an address and aborts if it is garbage. The address of a worker of this host differs from our
 * own only in its random name and in the place of its queue in shared memory. */
static bool is_like_ours(const struct pwi_plane_port *port, const struct pwi_plane_route *route) {
  if (!route->same_host) return route->address_size > 0;
  if (route->address_size != port->address_size) return false;
  const uint8_t *ours = (const uint8_t *)port->address, *theirs = route->address;
  size_t others = 0;
  for (size_t i = 0; i < port->address_size; i++) others += ours[i] != theirs[i];
  return ours[0] == theirs[0] && others > 0 && others <= ADDRESS_OTHERS;
}

pawl_status pwi_plane_connect(struct pwi_plane_port *port, void *owner, struct pwi_plane_route *route,
                              struct pwi_plane_peer **peer_out) {
  pawl_status status = PAWL_NO_MEMORY;
  struct pwi_plane_peer *peer = pwi_alloc_zero(1, sizeof *peer);
  if (!peer) goto close_port;
  peer->plane = port->plane;
  peer->port = port;
  peer->owner = owner;
  peer->our_tag = route->our_tag;
  peer->their_tag = route->their_tag;
  peer->same_host = route->same_host;
  peer->process = route->process;
  peer->channel = route->channel;
  pwi_fifo_init(&peer->arrivals, sizeof(struct arrival));
  pwi_fifo_init(&peer->introduced, sizeof(uint64_t));
  status = PAWL_LINK_PLANE;
  if (!is_like_ours(port, route)) goto free_peer;
  if (RAND_bytes((unsigned char *)&peer->probe_value, sizeof peer->probe_value) != 1) goto free_peer;
  if (open_endpoint(peer, route->address) != UCS_OK) goto free_peer;
  port->peer = peer;
  *peer_out = peer;
  return PAWL_OK;

free_peer:
  pwi_free(peer);
close_port:
  pwi_plane_port_close(port);
  pwi_process_close(&route->process);
  if (route->channel >= 0) close(route->channel);
  return status;
}

pawl_status pwi_plane_probe(struct pwi_plane_peer *peer) {
  struct probe probe = {(uint64_t)(uintptr_t)&peer->probe_value, peer->probe_value};
  return pwi_ucx_tell(peer, PACKET_PROBE, 0, &probe, sizeof probe);
}

void pwi_plane_resume(struct pwi_plane_peer *peer) {
  peer->is_blocked = false;
  pwi_ucx_advance(peer);
}

size_t pwi_plane_outstanding(const struct pwi_plane_peer *peer) { return peer->outstanding; }

static void leave_busy(struct pwi_plane_peer *peer) {
  for (struct pwi_plane_peer **at = &peer->plane->busy; *at; at = &(*at)->next_busy)
    if (*at == peer) {
      *at = peer->next_busy;
      return;
    }
}

void pwi_plane_close(struct pwi_plane_peer *peer, pawl_status why) {
  if (!peer) return;
  peer->is_closing = true;
  if (peer->is_stuffed) pwi_ucx_check_room(peer);
  leave_busy(peer);
  pwi_ucx_drop_arrivals(peer);
  pwi_ucx_release_regions(peer);
  pwi_plane_port_close(peer->port); /* destroying the worker ends every UCX request */
  while (peer->operations) {
    peer->operations->status = why;
    end_operation(peer->operations);
  }
  pwi_process_close(&peer->process);
  if (peer->channel >= 0) close(peer->channel);
  pwi_fifo_fini(&peer->arrivals);
  pwi_fifo_fini(&peer->introduced);
  pwi_free(peer->regions);
  pwi_free(peer->remotes);
  pwi_free(peer->bounce);
  pwi_free(peer);
}
