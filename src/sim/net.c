/* The part of net.h that concerns one net alone: its clock, timers, greeting, and the table of its links. */
#include <string.h>

#include "base/memory.h"
#include "sim/world.h"

#define NO_SLOT UINT32_MAX
/* bits of a link's or timer's id for its slot; the rest counts, so that no id is reused */
#define SLOT_BITS 24
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)

static struct sim_net *net_of(struct pwi_net *net) { return (struct sim_net *)(void *)net; }
static const struct sim_net *const_net_of(const struct pwi_net *net) {
  return (const struct sim_net *)(const void *)net;
}

/* --- links by id ---------------------------------------------------------------------------------------- */

struct sim_end *pwi_sim_end_find(const struct sim_net *net, struct pwi_link link) {
  uint64_t slot = link.id & SLOT_MASK;
  if (link.id == 0 || slot >= net->slot_count) return NULL;
  struct sim_end *end = net->slots[slot];
  return end && end->id == link.id ? end : NULL;
}

static pawl_status grow_slots(struct sim_net *net) {
  uint32_t count = net->slot_count ? net->slot_count * 2 : 8;
  struct sim_end **slots = pwi_resize_array(net->slots, count, sizeof(struct sim_end *));
  if (!slots) return PAWL_NO_MEMORY;
  memset(slots + net->slot_count, 0, (count - net->slot_count) * sizeof(struct sim_end *));
  net->slots = slots;
  net->slot_free = net->slot_count;
  net->slot_count = count;
  return PAWL_OK;
}

pawl_status pwi_sim_slot_take(struct sim_net *net, struct sim_end *end) {
  if (net->link_count >= net->net.limits.links) return PAWL_NODE_LIMIT;
  if (net->link_count == net->slot_count && grow_slots(net)) return PAWL_NO_MEMORY;
  while (net->slots[net->slot_free]) net->slot_free = (net->slot_free + 1) % net->slot_count;
  net->slots[net->slot_free] = end;
  end->id = ++net->last_link << SLOT_BITS | net->slot_free;
  end->net = net;
  end->after = net->ends;
  end->before = NULL;
  if (net->ends) net->ends->before = end;
  net->ends = end;
  net->link_count++;
  return PAWL_OK;
}

/* Frees the id; the end stays in the net's list until its link is reused. */
void pwi_sim_slot_give(struct sim_net *net, struct sim_end *end) {
  net->slots[end->id & SLOT_MASK] = NULL;
  net->link_count--;
}

/* --- clock and timers ----------------------------------------------------------------------------------- */

#define MILLION 1000000

static int64_t now(const struct pwi_net *net) {
  const struct sim_node *node = const_net_of(net)->node;
  return pwi_sim_node_time(node) / MILLION * (MILLION + node->clock_ppm) +
         pwi_sim_node_time(node) % MILLION * (MILLION + node->clock_ppm) / MILLION + node->clock_offset;
}

/* The first moment of the simulation at which the node's clock is not before `at`. */
static int64_t time_of(const struct sim_node *node, int64_t at) {
  int64_t time, rate = MILLION + node->clock_ppm;
  if (__builtin_sub_overflow(at, node->clock_offset, &time)) return INT64_MIN;
  if (node->clock_ppm == 0 || time <= 0) return time;
  if (time > INT64_MAX / 2) return time;
  /* a whole period of the clock is `rate` of its nanoseconds and a million of the simulation's */
  return time / rate * MILLION + (time % rate * MILLION + rate - 1) / rate;
}

static pawl_status grow_timers(struct sim_net *net) {
  uint32_t count = net->timer_count ? net->timer_count * 2 : 16;
  struct sim_timer *timers = pwi_resize_array(net->timers, count, sizeof *timers);
  if (!timers) return PAWL_NO_MEMORY;
  for (uint32_t i = net->timer_count; i < count; i++)
    timers[i] = (struct sim_timer){.next_free = i + 1 < count ? i + 1 : NO_SLOT};
  net->timers = timers;
  net->timer_free = net->timer_count;
  net->timer_count = count;
  return PAWL_OK;
}

static pawl_status timer_set(struct pwi_net *base, int64_t at, uint64_t cookie, struct pwi_timer *timer_out) {
  struct sim_net *net = net_of(base);
  if (pwi_sim_reserve(net->sim, 1)) return PAWL_NO_MEMORY;
  if (net->timer_free == NO_SLOT && grow_timers(net)) return PAWL_NO_MEMORY;
  int64_t time = time_of(net->node, at);
  uint32_t slot = net->timer_free;
  struct sim_timer *timer = &net->timers[slot];
  net->timer_free = timer->next_free;
  timer->id = ++net->last_timer << SLOT_BITS | slot;
  timer->event = pwi_sim_schedule(net->sim, time, EVENT_TIMER, net->node);
  timer->event->value = timer->id;
  timer->event->cookie = cookie;
  *timer_out = (struct pwi_timer){timer->id};
  return PAWL_OK;
}

static struct sim_timer *find_timer(struct sim_net *net, uint64_t id) {
  uint64_t slot = id & SLOT_MASK;
  if (id == 0 || slot >= net->timer_count || net->timers[slot].id != id) return NULL;
  return &net->timers[slot];
}

static void free_timer(struct sim_net *net, struct sim_timer *timer) {
  timer->id = 0;
  timer->event = NULL;
  timer->next_free = net->timer_free;
  net->timer_free = (uint32_t)(timer - net->timers);
}

static void timer_cancel(struct pwi_net *base, struct pwi_timer handle) {
  struct sim_net *net = net_of(base);
  struct sim_timer *timer = find_timer(net, handle.id);
  if (!timer) return;
  pwi_sim_cancel(net->sim, timer->event);
  free_timer(net, timer);
}

void pwi_sim_act_timer(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_net *net = event->node->net;
  struct sim_timer *timer = find_timer(net, event->value);
  if (!timer) return;
  free_timer(net, timer);
  pwi_sim_trace(sim, event, 0, event->cookie);
  if (net->net.actor->timer) net->net.actor->timer(net->net.self, (struct pwi_timer){event->value}, event->cookie);
}

/* --- the rest ------------------------------------------------------------------------------------------- */

static void wake(struct pwi_net *base) {
  struct sim_net *net = net_of(base);
  if (net->woken) return;
  net->woken = true;
  pwi_sim_schedule(net->sim, pwi_sim_node_time(net->node), EVENT_WOKEN, net->node);
}

void pwi_sim_act_woken(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_net *net = event->node->net;
  net->woken = false;
  pwi_sim_trace(sim, event, 0, 0);
  if (net->net.actor->woken) net->net.actor->woken(net->net.self);
}

static pawl_status hello_set(struct pwi_net *base, const void *hello, size_t size) {
  struct sim_net *net = net_of(base);
  uint8_t *copy = pwi_alloc(size);
  if (!copy) return PAWL_NO_MEMORY;
  if (size) memcpy(copy, hello, size);
  pwi_free(net->hello);
  net->hello = copy;
  net->hello_size = size;
  return PAWL_OK;
}

static const char *address(const struct pwi_net *net) { return const_net_of(net)->address; }

static pawl_status poll(struct pwi_net *net, int64_t deadline) {
  (void)net;
  (void)deadline;
  return PAWL_UNSUPPORTED;
}

/* To its peers it looks as if the process ended. */
static void destroy(struct pwi_net *base) { pwi_sim_node_kill_now(net_of(base)->node); }

static int64_t allowance(const struct pwi_net *net) { return const_net_of(net)->node->sim->allowance; }

static const struct pwi_net_ops ops = {
    .destroy = destroy,
    .poll = poll,
    .wake = wake,
    .allowance = allowance,
    .now = now,
    .timer_set = timer_set,
    .timer_cancel = timer_cancel,
    .hello_set = hello_set,
    .listen = pwi_sim_net_listen,
    .address = address,
    .connect = pwi_sim_net_connect,
    .close = pwi_sim_net_close,
    .send = pwi_sim_net_send,
    .hold = pwi_sim_net_hold,
    .region_open = pwi_sim_net_region_open,
    .region_close = pwi_sim_net_region_close,
    .region_share = pwi_sim_net_region_share,
    .remote_open = pwi_sim_net_remote_open,
    .remote_close = pwi_sim_net_remote_close,
    .remote_map = pwi_sim_net_remote_map,
    .put = pwi_sim_net_put,
    .get = pwi_sim_net_get,
    .fence = pwi_sim_net_fence,
};

pawl_status pwi_sim_net_create(struct sim_node *node, struct sim_net **net_out) {
  struct sim_net *net = pwi_alloc_zero(1, sizeof *net);
  if (!net) return PAWL_NO_MEMORY;
  net->net.ops = &ops;
  net->net.limits = node->limits;
  net->sim = node->sim;
  net->node = node;
  net->timer_free = NO_SLOT;
  *net_out = net;
  return PAWL_OK;
}

void pwi_sim_net_free(struct sim_net *net) {
  pwi_sim_regions_free(net);
  pwi_free(net->slots);
  pwi_free(net->timers);
  pwi_free(net->hello);
  pwi_free(net);
}
