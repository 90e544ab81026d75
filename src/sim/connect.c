/* Opening links: connect, the greetings of both sides, and events in between. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/world.h"

#define LINKS_AT_A_TIME 16

static struct sim_link *link_new(struct pwi_sim *sim) {
  if (!sim->link_pool) {
    struct sim_link *links = pwi_sim_block(sim, LINKS_AT_A_TIME * sizeof *links);
    if (!links) return NULL;
    for (size_t i = LINKS_AT_A_TIME; i-- > 0;) {
      links[i].next = sim->link_pool;
      sim->link_pool = &links[i];
    }
  }
  struct sim_link *link = sim->link_pool;
  sim->link_pool = link->next;
  memset(link, 0, sizeof *link);
  link->serial = ++sim->last_link;
  for (int side = 0; side < 2; side++) {
    link->ends[side].link = link;
    link->ends[side].peer = &link->ends[1 - side];
    link->ends[side].serial = link->serial;
  }
  return link;
}

/* Shared memory on one host, RDMA between some hosts. A node reaches itself over loopback. */
static unsigned abilities(struct pwi_sim *sim, const struct sim_node *a, const struct sim_node *b) {
  unsigned can = sim->config.encrypted ? PWI_LINK_ENCRYPTED : 0;
  if (a == b) return can;
  bool one_host = strcmp(a->host, b->host) == 0;
  if (pwi_random_chance(&sim->random, one_host ? sim->config.plane_chance_host : sim->config.plane_chance))
    can |= PWI_LINK_HAS_PLANE | (one_host ? PWI_LINK_IN_PLACE : 0u);
  return can;
}

static pawl_status copy_hello(struct sim_end *end) {
  end->hello = pwi_alloc(end->net->hello_size);
  if (!end->hello) return PAWL_NO_MEMORY;
  if (end->net->hello_size) memcpy(end->hello, end->net->hello, end->net->hello_size);
  end->hello_size = end->net->hello_size;
  return PAWL_OK;
}

static struct pwi_link_info info_for(const struct sim_end *end) {
  return (struct pwi_link_info){
      .peer = end->peer->name,
      .hello = end->peer->hello,
      .hello_size = end->peer->hello_size,
      .identity = end->net->sim->config.has_identities ? end->peer->node->name : "",
      .accepted = end->accepted,
      .can = end->link->can,
  };
}

static pawl_status greet(struct sim_end *end) {
  const struct pwi_actor *actor = end->net->net.actor;
  if (!actor->greet) return PAWL_OK;
  struct pwi_link_info info = info_for(end);
  return actor->greet(end->net->net.self, (struct pwi_link){end->id}, &info);
}

static void come_up(struct sim_end *end) {
  struct pwi_net *net = &end->net->net;
  end->state = END_UP;
  end->heard = true;
  end->last_heard = end->net->sim->now;
  net->counts.links_up++;
  pwi_log(&end->node->log, PAWL_LOG_DEBUG, "link.up", "peer=%s", end->peer->node->name);
  struct pwi_link_info info = info_for(end);
  if (net->actor->link_up) net->actor->link_up(net->self, (struct pwi_link){end->id}, &info);
  pwi_sim_end_listen(end);
}

/* Schedules what may happen to the connecting side besides an answer: its timeout ends, or a router
 * reports that there is no route. If the host is up and nothing ever listened at the address, it refuses. */
static void expect_answer(struct pwi_sim *sim, struct sim_end *end, bool known) {
  int64_t now = pwi_sim_node_time(end->node), greet_ns = end->node->limits.greet_ns;
  pwi_sim_schedule_end(sim, now + greet_ns, EVENT_GREET_LIMIT, end, false);
  if (!known) {
    int64_t back = now + 2 * pwi_sim_delay_draw(&sim->config.link, &sim->random);
    pwi_sim_schedule_end(sim, back, EVENT_DOWN, end, false)->status = PAWL_LINK_REFUSED;
    return;
  }
  int64_t arrival = pwi_sim_arrival(sim, end, PWI_LANE_LINK, PWI_SIM_PACKET_HANDSHAKE, end->hello_size, 0, now);
  struct sim_event *event = pwi_sim_schedule_end(sim, arrival, EVENT_CONNECT, end->peer, true);
  event->incarnation = 0;
  if (pwi_sim_path_is_open(end->peer) || !pwi_random_chance(&sim->random, 0.5)) return;
  int64_t noticed = now + (int64_t)pwi_random_below(&sim->random, (uint64_t)greet_ns + 1);
  pwi_sim_schedule_end(sim, noticed, EVENT_DOWN, end, false)->status = PAWL_LINK_UNREACHABLE;
}

pawl_status pwi_sim_net_connect(struct pwi_net *base, const char *address, struct pwi_link *link_out) {
  struct sim_net *net = (struct sim_net *)(void *)base;
  struct pwi_sim *sim = net->sim;
  char text[PWI_NET_ADDRESS_MAX];
  pawl_status status = pwi_sim_address_read(address, text);
  if (status) return status;
  if (net->node->is_starved || pwi_sim_reserve(sim, 4)) return PAWL_NO_MEMORY;
  struct sim_link *link = link_new(sim);
  if (!link) return PAWL_NO_MEMORY;
  struct sim_listener *listener = pwi_sim_listener_find(sim, text);
  struct sim_end *end = &link->ends[0];
  end->node = net->node;
  end->peer->node = listener ? listener->node : net->node;
  snprintf(end->peer->name, sizeof end->peer->name, "%s", text);
  snprintf(end->name, sizeof end->name, "%s", net->address[0] ? net->address : net->node->name);
  status = pwi_sim_slot_take(net, end);
  if (status) goto leave;
  status = copy_hello(end);
  if (status) goto give_slot;
  link->can = abilities(sim, net->node, end->peer->node);
  end->state = END_CONNECTING;
  expect_answer(sim, end, listener != NULL);
  *link_out = (struct pwi_link){end->id};
  return PAWL_OK;
give_slot:
  pwi_sim_slot_give(net, end);
leave:
  end->state = END_GONE;
  pwi_sim_end_leave(end);
  return status;
}

static void turn_away(struct sim_end *end, pawl_status why) {
  end->state = END_GONE;
  pwi_sim_end_tell(end, why);
  pwi_sim_end_leave(end);
}

static pawl_status accept_end(struct pwi_sim *sim, struct sim_node *node, struct sim_end *end) {
  struct sim_listener *listener = pwi_sim_listener_find(sim, end->name);
  if (!node->net || listener->node != node || listener->incarnation != node->incarnation) return PAWL_LINK_REFUSED;
  pawl_status status = pwi_sim_slot_take(node->net, end);
  if (status) return PAWL_LINK_BUSY;
  status = copy_hello(end);
  if (status) {
    pwi_sim_slot_give(node->net, end);
    return PAWL_LINK_BUSY;
  }
  end->accepted = true;
  end->state = END_CONNECTING;
  return PAWL_OK;
}

/* The accepting side is up as soon as it has agreed; the connecting side once it has been told. */
void pwi_sim_act_connect(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  struct sim_net *net = event->node->net;
  if (end->state != END_NONE) return;
  pwi_sim_trace(sim, event, 0, 0);
  pawl_status status = accept_end(sim, event->node, end);
  if (status) {
    turn_away(end, status);
    return;
  }
  status = greet(end);
  if (status) {
    net->net.counts.links_refused++;
    pwi_sim_slot_give(net, end);
    turn_away(end, status);
    return;
  }
  int64_t given = pwi_sim_node_time(end->node);
  int64_t arrival = pwi_sim_arrival(sim, end, PWI_LANE_LINK, PWI_SIM_PACKET_HANDSHAKE, end->hello_size, 0, given);
  for (int lane = 0; lane < PWI_SIM_LANES; lane++) end->out[lane].floor = arrival;
  pwi_sim_schedule_end(sim, arrival, EVENT_HELLO, end->peer, true);
  come_up(end);
}

void pwi_sim_act_hello(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (end->state != END_CONNECTING) return;
  pwi_sim_trace(sim, event, end->peer->hello_size, 0);
  pawl_status status = greet(end);
  if (status) {
    end->net->net.counts.links_refused++;
    pwi_sim_end_down(end, status, status);
  } else {
    come_up(end);
  }
}
