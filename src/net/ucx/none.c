/* A build without UCX: there is no data plane. */
#include "net/tcp/plane.h"

#if !PAWL_HAS_UCX

#include <stdlib.h>

static const char reason[] = "this pawl was built without UCX";

pawl_status pwi_plane_create(const struct pwi_plane_events *events, const struct pwi_log *log, bool fabric,
                             struct pwi_plane **plane_out, const char **why_out) {
  (void)events;
  (void)log;
  (void)fabric;
  (void)plane_out;
  *why_out = reason;
  return PAWL_UNSUPPORTED;
}

const char *pwi_plane_about(bool *available_out) {
  if (available_out) *available_out = false;
  return reason;
}

const char *pwi_plane_kind(void) { return "none"; }

void pwi_plane_destroy(struct pwi_plane *plane) { (void)plane; }

void pwi_plane_close(struct pwi_plane_peer *peer, pawl_status why) {
  (void)peer;
  (void)why;
}

void pwi_plane_port_close(struct pwi_plane_port *port) { (void)port; }

/* There is no plane, so the following functions are never called. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NOBODY_CALLS abort()

pawl_status pwi_plane_port_open(struct pwi_plane *plane, struct pwi_plane_port **port_out) { NOBODY_CALLS; }
const void *pwi_plane_port_address(const struct pwi_plane_port *port, size_t *size_out) { NOBODY_CALLS; }
bool pwi_plane_is_full(const struct pwi_plane *plane) { NOBODY_CALLS; }
size_t pwi_plane_port_count(const struct pwi_plane *plane) { NOBODY_CALLS; }
bool pwi_plane_has_fabric(const struct pwi_plane *plane) { NOBODY_CALLS; }
bool pwi_plane_progress(struct pwi_plane *plane) { NOBODY_CALLS; }
int pwi_plane_descriptor(const struct pwi_plane *plane) { NOBODY_CALLS; }
bool pwi_plane_arm(struct pwi_plane *plane) { NOBODY_CALLS; }
bool pwi_plane_is_pending(const struct pwi_plane *plane) { NOBODY_CALLS; }
pawl_status pwi_plane_connect(struct pwi_plane_port *port, void *owner, struct pwi_plane_route *route,
                              struct pwi_plane_peer **peer_out) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_probe(struct pwi_plane_peer *peer) { NOBODY_CALLS; }
void pwi_plane_resume(struct pwi_plane_peer *peer) { NOBODY_CALLS; }
size_t pwi_plane_outstanding(const struct pwi_plane_peer *peer) { NOBODY_CALLS; }
pawl_status pwi_plane_send(struct pwi_plane_peer *peer, const void *head, const struct iovec *body, size_t body_count,
                           size_t body_size, uint64_t cookie) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_memory_open(struct pwi_plane *plane, size_t size, struct pwi_plane_memory **memory_out,
                                  void **address_out) {
  NOBODY_CALLS;
}
void pwi_plane_memory_close(struct pwi_plane *plane, struct pwi_plane_memory *memory) { NOBODY_CALLS; }
bool pwi_plane_memory_is_read_by(const struct pwi_plane_memory *memory, const struct pwi_plane_peer *peer) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_memory_key(struct pwi_plane_peer *peer, const struct pwi_plane_memory *memory, void *key,
                                 size_t capacity, size_t *size_out) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_remote_open(struct pwi_plane_peer *peer, const void *key, size_t key_size, uint64_t size,
                                  bool writable, size_t *remote_out) {
  NOBODY_CALLS;
}
void pwi_plane_remote_close(struct pwi_plane_peer *peer, size_t remote) { NOBODY_CALLS; }
bool pwi_plane_is_stuffed(const struct pwi_plane_peer *peer) { NOBODY_CALLS; }
pawl_status pwi_plane_remote_map(struct pwi_plane_peer *peer, size_t remote, void **memory_out, size_t *size_out) {
  NOBODY_CALLS;
}
uint64_t pwi_plane_notifications(const struct pwi_plane_peer *peer) { NOBODY_CALLS; }
pawl_status pwi_plane_put(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, const void *from, size_t size,
                          uint64_t notify, uint64_t cookie) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_get(struct pwi_plane_peer *peer, size_t remote, uint64_t offset, void *into, size_t size,
                          uint64_t cookie) {
  NOBODY_CALLS;
}
pawl_status pwi_plane_fence(struct pwi_plane_peer *peer, uint64_t cookie) { NOBODY_CALLS; }

#endif
