/* A net for unit tests of actors: it carries nothing, keeps a copy of every message given to it, and has a
 * clock that the test moves. The test plays the peers: it calls the actor's functions itself. */
#ifndef PWI_NET_STUB_TESTING_H
#define PWI_NET_STUB_TESTING_H

#include "base/testing.h"
#include "net/net_ops.h"

#define STUB_SENT_MAX 512
#define STUB_CLOSED_MAX 64

/* A message that the actor gave to the net. */
struct stub_sent {
  uint64_t link, cookie;
  uint8_t head[PWI_NET_HEAD_SIZE];
  uint8_t *body; /* a copy */
  size_t body_size;
};

struct stub_region {
  struct pwi_region region; /* must be first */
  struct stub_region *next;
};

struct stub_net {
  struct pwi_net net;
  struct stub_region *regions; /* open ones */
  int64_t now, allowance;

  int64_t timer_at; /* of the timer that was set last and not cancelled; 0: none */
  uint64_t timer_cookie, last_timer;

  pawl_status connect_status; /* returned by the next calls of pwi_net_connect */
  size_t connects;
  char connected_to[64]; /* the address of the last call */
  uint64_t last_link;

  pawl_status send_status; /* returned by the next calls of pwi_net_send */
  struct stub_sent sent[STUB_SENT_MAX];
  size_t sent_count;

  struct {
    uint64_t link;
    pawl_status why;
  } closed[STUB_CLOSED_MAX];
  size_t closed_count;
};

static inline struct stub_net *stub_of(struct pwi_net *net) { return (struct stub_net *)(void *)net; }

static inline int64_t stub_now(const struct pwi_net *net) { return ((const struct stub_net *)(const void *)net)->now; }

static inline int64_t stub_allowance(const struct pwi_net *net) {
  return ((const struct stub_net *)(const void *)net)->allowance;
}

static inline pawl_status stub_timer_set(struct pwi_net *net, int64_t at, uint64_t cookie,
                                         struct pwi_timer *timer_out) {
  struct stub_net *stub = stub_of(net);
  stub->timer_at = at;
  stub->timer_cookie = cookie;
  timer_out->id = ++stub->last_timer;
  return PAWL_OK;
}

static inline void stub_timer_cancel(struct pwi_net *net, struct pwi_timer timer) {
  struct stub_net *stub = stub_of(net);
  if (timer.id == stub->last_timer) stub->timer_at = 0;
}

static inline pawl_status stub_hello_set(struct pwi_net *net, const void *hello, size_t size) {
  (void)net, (void)hello, (void)size;
  return PAWL_OK;
}

static inline const char *stub_address(const struct pwi_net *net) {
  (void)net;
  return "stub:1";
}

static inline pawl_status stub_connect(struct pwi_net *net, const char *address, struct pwi_link *link_out) {
  struct stub_net *stub = stub_of(net);
  stub->connects++;
  snprintf(stub->connected_to, sizeof stub->connected_to, "%s", address);
  if (stub->connect_status) return stub->connect_status;
  link_out->id = ++stub->last_link;
  return PAWL_OK;
}

static inline void stub_close(struct pwi_net *net, struct pwi_link link, pawl_status why) {
  struct stub_net *stub = stub_of(net);
  assert_true(stub->closed_count < STUB_CLOSED_MAX);
  stub->closed[stub->closed_count].link = link.id;
  stub->closed[stub->closed_count++].why = why;
}

static inline pawl_status stub_send(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send,
                                    size_t body_size) {
  struct stub_net *stub = stub_of(net);
  if (stub->send_status) return stub->send_status;
  assert_true(stub->sent_count < STUB_SENT_MAX);
  struct stub_sent *sent = &stub->sent[stub->sent_count++];
  *sent = (struct stub_sent){.link = link.id, .cookie = send->cookie, .body_size = body_size};
  memcpy(sent->head, send->head, sizeof sent->head);
  sent->body = malloc(body_size + 1);
  assert_non_null(sent->body);
  size_t at = 0;
  for (size_t i = 0; i < send->body_count; at += send->body[i++].iov_len)
    if (send->body[i].iov_len > 0) memcpy(sent->body + at, send->body[i].iov_base, send->body[i].iov_len);
  return PAWL_OK;
}

static inline pawl_status stub_region_open(struct pwi_net *net, size_t size, struct pwi_region **region_out) {
  struct stub_region *region = malloc(sizeof *region);
  assert_non_null(region);
  *region = (struct stub_region){.region = {.memory = calloc(1, size), .size = size}, .next = stub_of(net)->regions};
  assert_non_null(region->region.memory);
  stub_of(net)->regions = region;
  *region_out = &region->region;
  return PAWL_OK;
}

static inline void stub_region_close(struct pwi_net *net, struct pwi_region *region) {
  struct stub_region **at = &stub_of(net)->regions;
  while (&(*at)->region != region) at = &(*at)->next;
  struct stub_region *closed = *at;
  *at = closed->next;
  free(closed->region.memory);
  free(closed);
}

/* The clock begins at one second, so that 0 can mean "never". */
static inline void stub_start(struct stub_net *stub, const struct pwi_actor *actor, void *self) {
  static const struct pwi_net_ops ops = {.now = stub_now,
                                         .allowance = stub_allowance,
                                         .timer_set = stub_timer_set,
                                         .timer_cancel = stub_timer_cancel,
                                         .hello_set = stub_hello_set,
                                         .address = stub_address,
                                         .connect = stub_connect,
                                         .close = stub_close,
                                         .send = stub_send,
                                         .region_open = stub_region_open,
                                         .region_close = stub_region_close};
  *stub = (struct stub_net){.net = {.ops = &ops, .actor = actor, .self = self}, .now = INT64_C(1000000000)};
  pwi_net_limits_init(&stub->net.limits);
}

/* Forgets the messages so far. */
static inline void stub_clear(struct stub_net *stub) {
  for (size_t i = 0; i < stub->sent_count; i++) free(stub->sent[i].body);
  stub->sent_count = stub->closed_count = stub->connects = 0;
}

/* Closes the regions that are still open, as a net does when it is destroyed. */
static inline void stub_stop(struct stub_net *stub) {
  while (stub->regions) stub_region_close(&stub->net, &stub->regions->region);
  stub_clear(stub);
}

#endif
