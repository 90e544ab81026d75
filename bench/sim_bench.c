/* Measures events per second of the simulator on one core, with checks and trace on: one line of JSON.
 *
 * One node has a link to each of the others. On every link a message goes back and forth all the time, and
 * the node also broadcasts to all and waits for their answers. Every message has a body of 128 bytes.
 * `allocations` counts the second half of the run.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "base/memory.h"
#include "net/net.h"
#include "sim/sim.h"

#define NODES 32
#define BODY 128
#define EVENTS 6000000

struct node {
  struct pwi_net *net;
  uint32_t index;
  struct pwi_link links[NODES]; /* in the order in which they came up */
  uint32_t link_count;
  uint32_t answers;
};

static struct node nodes[NODES];

enum { PING = 1, PONG, CALL, ANSWER };

static void send_word(struct node *node, struct pwi_link link, uint8_t word) {
  static const uint8_t body[BODY];
  uint8_t head[PWI_NET_HEAD_SIZE] = {word};
  struct iovec part = {.iov_base = (void *)(uintptr_t)body, .iov_len = sizeof body};
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head, .body = &part, .body_count = 1, .cookie = word == CALL};
  check(pwi_net_send(node->net, link, &send) == PAWL_OK, "cannot send");
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  node->links[node->link_count++] = link;
  if (info->accepted) return;
  send_word(node, link, PING);
  if (node->index == 0 && node->link_count == NODES - 1)
    for (uint32_t i = 0; i < node->link_count; i++) send_word(node, node->links[i], CALL);
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  switch (message->head[0]) {
  case PING:
    send_word(node, link, PONG);
    break;
  case PONG:
    send_word(node, link, PING);
    break;
  case CALL:
    send_word(node, link, ANSWER);
    break;
  default:
    if (++node->answers < node->link_count) break;
    node->answers = 0;
    for (uint32_t i = 0; i < node->link_count; i++) send_word(node, node->links[i], CALL);
  }
  return (struct pwi_receive){.how = PWI_RECEIVE_PIECES};
}

static uint64_t touched;

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  (void)self, (void)link, (void)context, (void)offset;
  touched += size + ((const uint8_t *)data)[0];
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)self, (void)link, (void)cookie, (void)status;
}

static const struct pwi_actor actor = {.link_up = link_up, .message = message, .piece = piece, .done = done};

static pawl_status boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                        void **self_out) {
  struct node *node = context;
  char address[64];
  node->net = boot->net;
  snprintf(address, sizeof address, "%s:7000", boot->name);
  check(pwi_net_listen(boot->net, address) == PAWL_OK, "cannot listen");
  *actor_out = &actor;
  *self_out = node;
  return PAWL_OK;
}

static void connect_first_to_all(void) {
  for (uint32_t i = 1; i < NODES; i++) {
    struct pwi_link link;
    char address[64];
    snprintf(address, sizeof address, "n%u:7000", i);
    check(pwi_net_connect(nodes[0].net, address, &link) == PAWL_OK, "cannot connect");
  }
}

int main(void) {
  struct pwi_sim_config config;
  pwi_sim_config_init(&config);
  struct pwi_sim *sim;
  check(pwi_sim_create(&config, &sim) == PAWL_OK, "out of memory");
  for (uint32_t i = 0; i < NODES; i++) {
    char name[16];
    struct pwi_sim_node node;
    nodes[i].index = i;
    snprintf(name, sizeof name, "n%u", i);
    struct pwi_sim_program program = {.name = name, .boot = boot, .context = &nodes[i]};
    check(pwi_sim_node_add(sim, &program, &node) == PAWL_OK, "cannot add a node");
    check(pwi_sim_start(sim, node) == PAWL_OK, "cannot start a node");
  }
  connect_first_to_all();
  double begin = now();
  while (pwi_sim_event_count(sim) < EVENTS / 2) check(pwi_sim_step(sim) == PAWL_OK, "the run failed");
  uint64_t allocations = pwi_memory_counts().allocations;
  while (pwi_sim_event_count(sim) < EVENTS) check(pwi_sim_step(sim) == PAWL_OK, "the run failed");
  double took = now() - begin;
  allocations = pwi_memory_counts().allocations - allocations;
  uint64_t events = pwi_sim_event_count(sim);
  printf("{\"bench\":\"sim\",\"nodes\":%d,\"body\":%d,\"events\":%" PRIu64
         ",\"events_per_s\":%.0f,\"ns_per_event\":%.1f,\"allocations\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\"}\n",
         NODES, BODY, events, (double)events / took, took * 1e9 / (double)events, allocations, pwi_sim_trace_hash(sim));
  pwi_sim_destroy(sim);
  return touched ? 0 : 1;
}
