/* The calls of net.h: common checks, then the operation of the world. */
#include "net/net.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "net/net_ops.h"
#include "net/shared_copy.h"

#define MILLISECOND INT64_C(1000000)

void pwi_net_limits_init(struct pwi_net_limits *limits) {
  *limits = (struct pwi_net_limits){
      .message_max = (size_t)1 << 30,
      .inbound_bytes = SIZE_MAX,
      .queue_bytes = (size_t)64 << 20,
      .queue_count = 4096,
      .links = 16384,
      .strangers = 1024,
      .greet_ns = 5000 * MILLISECOND,
      .beat_ns = 50 * MILLISECOND,
      .silence_ns = 250 * MILLISECOND,
      .linger_ns = 1000 * MILLISECOND,
  };
}

void pwi_net_destroy(struct pwi_net *net) {
  if (net) net->ops->destroy(net);
}

pawl_status pwi_net_poll(struct pwi_net *net, int64_t deadline) { return net->ops->poll(net, deadline); }

void pwi_net_wake(struct pwi_net *net) { net->ops->wake(net); }

void pwi_net_beat(struct pwi_net *net) {
  if (net->ops->beat) net->ops->beat(net);
}

int64_t pwi_net_allowance(const struct pwi_net *net) { return net->ops->allowance ? net->ops->allowance(net) : 0; }

int64_t pwi_net_now(const struct pwi_net *net) { return net->ops->now(net); }

pawl_status pwi_net_timer_set(struct pwi_net *net, int64_t at, uint64_t cookie, struct pwi_timer *timer_out) {
  return net->ops->timer_set(net, at, cookie, timer_out);
}

void pwi_net_timer_cancel(struct pwi_net *net, struct pwi_timer timer) { net->ops->timer_cancel(net, timer); }

pawl_status pwi_net_hello_set(struct pwi_net *net, const void *hello, size_t size) {
  if (size > PWI_NET_HELLO_MAX) return PAWL_TOO_LARGE;
  return net->ops->hello_set(net, hello, size);
}

pawl_status pwi_net_listen(struct pwi_net *net, const char *address) { return net->ops->listen(net, address); }

const char *pwi_net_address(const struct pwi_net *net) { return net->ops->address(net); }

pawl_status pwi_net_connect(struct pwi_net *net, const char *address, struct pwi_link *link_out) {
  return net->ops->connect(net, address, link_out);
}

void pwi_net_close(struct pwi_net *net, struct pwi_link link, pawl_status why) { net->ops->close(net, link, why); }

const struct pwi_send *pwi_net_use_spare(const struct pwi_send *send, struct pwi_spared *spared) {
  if (!send->spare || send->body_count == 0) return send;
  spared->send = *send;
  spared->send.spare = NULL;
  spared->send.body = spared->body;
  memcpy(spared->body, send->body, send->body_count * sizeof *send->body);
  struct iovec *last = &spared->body[send->body_count - 1];
  if (last->iov_len > 0) memcpy(send->spare, last->iov_base, last->iov_len);
  last->iov_base = send->spare;
  return &spared->send;
}

pawl_status pwi_net_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send) {
  struct pwi_spared spared;
  if (send->body_count > PWI_NET_IOV_MAX) return PAWL_INVALID;
  size_t body_size = 0;
  for (size_t i = 0; i < send->body_count; i++)
    if (!pwi_add_size(body_size, send->body[i].iov_len, &body_size)) return PAWL_TOO_LARGE;
  if (body_size > net->limits.message_max) return PAWL_TOO_LARGE;
  if (!net->ops->sends_at_once) send = pwi_net_use_spare(send, &spared);
  return net->ops->send(net, link, send, body_size);
}

pawl_status pwi_net_hold(struct pwi_net *net, struct pwi_link link, bool hold) {
  return net->ops->hold ? net->ops->hold(net, link, hold) : PAWL_UNSUPPORTED;
}

pawl_status pwi_net_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out) {
  if (size == 0) return PAWL_INVALID;
  return net->ops->region_open(net, size, region_out);
}

void *pwi_net_region_memory(const struct pwi_region *region) { return region->memory; }

size_t pwi_net_region_size(const struct pwi_region *region) { return region->size; }

void pwi_net_region_close(struct pwi_net *net, struct pwi_region *region) {
  if (region) net->ops->region_close(net, region);
}

pawl_status pwi_net_region_share(struct pwi_net *net, struct pwi_region *region, struct pwi_link link, unsigned access,
                                 void *token, size_t *token_size_out) {
  if (access == 0 || (access & ~(unsigned)(PWI_ACCESS_READ | PWI_ACCESS_WRITE))) return PAWL_INVALID;
  return net->ops->region_share(net, region, link, access, token, token_size_out);
}

pawl_status pwi_net_remote_open(struct pwi_net *net, struct pwi_link link, const void *token, size_t token_size,
                                struct pwi_remote *remote_out) {
  return net->ops->remote_open(net, link, token, token_size, remote_out);
}

void pwi_net_remote_close(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote) {
  net->ops->remote_close(net, link, remote);
}

pawl_status pwi_net_remote_map(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote,
                               struct pwi_window *window_out) {
  return net->ops->remote_map(net, link, remote, window_out);
}

void pwi_net_remote_unmap(struct pwi_window *window) {
  if (window->release) window->release(window);
  *window = (struct pwi_window){0};
}

pawl_status pwi_net_put(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie) {
  if (size > net->limits.message_max) return PAWL_TOO_LARGE;
  return net->ops->put(net, link, remote, offset, from, size, notify, cookie);
}

pawl_status pwi_net_get(struct pwi_net *net, struct pwi_link link, struct pwi_remote remote, uint64_t offset,
                        void *into, size_t size, uint64_t cookie) {
  if (size > net->limits.message_max) return PAWL_TOO_LARGE;
  return net->ops->get(net, link, remote, offset, into, size, cookie);
}

pawl_status pwi_net_fence(struct pwi_net *net, struct pwi_link link, uint64_t cookie) {
  return net->ops->fence(net, link, cookie);
}

void pwi_net_counts(const struct pwi_net *net, struct pwi_net_counts *counts_out) { *counts_out = net->counts; }

void pwi_net_count_window(struct pwi_net *net, int64_t sent, int64_t received) {
  net->counts.bytes_sent += (uint64_t)sent;
  net->counts.bytes_received += (uint64_t)received;
}
