/* The simulation as a whole: creating it, running it, and the trace. */
#include "sim/sim.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sim/world.h"

/* Random streams of the seed. A node's streams are counted from STREAM_NODES, one per incarnation; see
 * node.c and disk.c. */
enum { STREAM_NETWORK = 1 };
#define STREAM_CALLERS (UINT64_C(1) << 32)

#define EVENTS_A_STEP 64 /* one step rarely schedules more */

static const char *const kind_names[] = {
#define EVENT_TEXT(name, text) text,
    PWI_SIM_EVENT_MAP(EVENT_TEXT)
#undef EVENT_TEXT
};

void pwi_sim_config_init(struct pwi_sim_config *config) {
  *config = (struct pwi_sim_config){
      .seed = 1,
      .link = {20 * PWI_SIM_MICROSECOND, 100 * PWI_SIM_MICROSECOND, 5 * PWI_SIM_MILLISECOND},
      .plane = {2 * PWI_SIM_MICROSECOND, 30 * PWI_SIM_MICROSECOND, 1 * PWI_SIM_MILLISECOND},
      .hang_up = {20 * PWI_SIM_MICROSECOND, 500 * PWI_SIM_MICROSECOND, 20 * PWI_SIM_MILLISECOND},
      .late = {0, 20 * PWI_SIM_MILLISECOND, 1 * PWI_SIM_SECOND},
      .plane_chance = 0.5,
      .plane_chance_host = 1,
      .early_done_chance = 0.5,
      .split_chance = 0.125,
      .gap_chance = 0.5,
      .ready_chance = 0.5,
      .late_chance = 0.5,
      .garble_chance = 0.25,
      .socket_bytes = (size_t)256 << 10,
      .clock_offset_max_ns = 1000 * PWI_SIM_SECOND,
      .slow_step_ns = 20 * PWI_SIM_MICROSECOND,
      .disk_sync = {20 * PWI_SIM_MICROSECOND, 200 * PWI_SIM_MICROSECOND, 20 * PWI_SIM_MILLISECOND},
      .trace = true,
      .checks = true,
  };
  pwi_net_limits_init(&config->limits);
}

int64_t pwi_sim_delay_draw(const struct pwi_sim_delay *delay, struct pwi_random *random) {
  if (delay->mean_ns <= delay->min_ns) return delay->min_ns;
  double above = pwi_random_exponential(random, (double)(delay->mean_ns - delay->min_ns));
  double most = (double)(delay->max_ns - delay->min_ns);
  return delay->min_ns + (int64_t)(above < most ? above : most);
}

static int64_t default_delivery_time(void *context, const struct pwi_sim_packet *packet, int64_t now,
                                     struct pwi_random *random) {
  const struct pwi_sim_config *config = context;
  bool plane = packet->carrier == PWI_SIM_CARRIER_PLANE;
  int64_t delay = pwi_sim_delay_draw(plane ? &config->plane : &config->link, random);
  double rate = plane ? config->plane_rate : config->link_rate;
  if (rate > 0) delay += (int64_t)((double)packet->size / rate * 1e9);
  return now + delay;
}

static bool delay_is_valid(const struct pwi_sim_delay *delay) {
  return 0 <= delay->min_ns && delay->min_ns <= delay->mean_ns && delay->mean_ns <= delay->max_ns;
}

static bool config_is_valid(const struct pwi_sim_config *config) {
  const struct pwi_net_limits *limits = &config->limits;
  return delay_is_valid(&config->link) && delay_is_valid(&config->plane) && delay_is_valid(&config->hang_up) &&
         delay_is_valid(&config->late) && delay_is_valid(&config->disk_sync) && config->clock_offset_max_ns >= 0 &&
         config->clock_drift_ppm <= 500000 && config->slow_step_ns >= 0 && limits->silence_ns > limits->beat_ns &&
         limits->beat_ns >= 0;
}

static int64_t log_time(const void *sim) { return ((const struct pwi_sim *)sim)->now; }

pawl_status pwi_sim_create(const struct pwi_sim_config *config, struct pwi_sim **sim_out) {
  if (!config_is_valid(config)) return PAWL_INVALID;
  struct pwi_sim *sim = pwi_alloc_zero(1, sizeof *sim);
  if (!sim) return PAWL_NO_MEMORY;
  sim->config = *config;
  pwi_sim_seals_begin(sim);
  sim->fabric = config->fabric
                    ? *config->fabric
                    : (struct pwi_sim_fabric){.delivery_time = default_delivery_time, .context = &sim->config};
  sim->log = (struct pwi_log){.node = "sim", .now = log_time, .clock = sim};
  sim->next_port = 20000;
  sim->flow_free = UINT32_MAX;
  pwi_random_init(&sim->random, config->seed, STREAM_NETWORK);
  if (pwi_sim_reserve(sim, EVENTS_A_STEP)) {
    pwi_sim_destroy(sim);
    return PAWL_NO_MEMORY;
  }
  *sim_out = sim;
  return PAWL_OK;
}

void pwi_sim_destroy(struct pwi_sim *sim) {
  if (!sim) return;
  assert(!sim->running);
  for (uint32_t i = 0; i < sim->node_count; i++) pwi_sim_node_kill_now(sim->nodes[i]);
  for (uint32_t i = 0; i < sim->node_count; i++) pwi_sim_node_free(sim->nodes[i]);
  pwi_sim_listeners_free(sim);
  pwi_free(sim->nodes);
  pwi_free(sim->cuts);
  pwi_free(sim->flows);
  pwi_free(sim->regions);
  pwi_free(sim->bounce);
  pwi_sim_kept_free(sim);
  pwi_sim_events_free(sim);
  pwi_sim_seals_end(sim);
  pwi_free(sim);
}

void pwi_sim_allow(struct pwi_sim *sim, int64_t allowance) { sim->allowance = allowance; }

int64_t pwi_sim_now(const struct pwi_sim *sim) { return sim->now; }

void pwi_sim_stream(const struct pwi_sim *sim, uint64_t number, struct pwi_random *random_out) {
  pwi_random_init(random_out, sim->config.seed, STREAM_CALLERS + number);
}

struct pwi_sim_packet pwi_sim_packet_of(const struct sim_end *from, unsigned lane, enum pwi_sim_packet_kind kind,
                                        size_t size, int64_t given) {
  bool plane = lane != PWI_LANE_LINK && (from->link->can & PWI_LINK_HAS_PLANE);
  return (struct pwi_sim_packet){
      .from = {from->node->index},
      .to = {from->peer->node->index},
      .carrier = plane ? PWI_SIM_CARRIER_PLANE : PWI_SIM_CARRIER_LINK,
      .kind = kind,
      .size = size,
      .given = given,
      .link = from->serial,
  };
}

int64_t pwi_sim_arrival(struct pwi_sim *sim, struct sim_end *from, unsigned lane, enum pwi_sim_packet_kind kind,
                        size_t size, unsigned asked, int64_t given) {
  struct pwi_sim_packet packet = pwi_sim_packet_of(from, lane, kind, size, given);
  packet.asked = asked;
  int64_t now = asked ? sim->now : given;
  int64_t time = sim->fabric.delivery_time(sim->fabric.context, &packet, now, &sim->random);
  return time > now ? time : now;
}

/* --- the trace ------------------------------------------------------------------------------------------ */

const char *pwi_sim_kind_name(enum sim_event_kind kind) { return kind_names[kind]; }

static void show(struct pwi_sim *sim, const struct sim_event *event, size_t size) {
  struct pwi_sim_event shown = {
      .time = sim->now,
      .kind = kind_names[event->kind],
      .node = event->end    ? event->end->node->index
              : event->node ? event->node->index
                            : UINT32_MAX,
      .from = event->from ? event->from->index : UINT32_MAX,
      .link = event->end_serial,
      .size = size,
      .value = event->kind == EVENT_DOWN ? (uint64_t)(int64_t)event->status : event->value,
  };
  sim->config.observe(sim->config.observe_context, &shown);
}

void pwi_sim_trace(struct pwi_sim *sim, const struct sim_event *event, size_t size, uint64_t hash) {
  sim->events++;
  if (sim->config.observe) show(sim, event, size);
  if (!sim->config.trace) return;
  uint64_t facts[6] = {
      (uint64_t)sim->now,
      event->kind | (uint64_t)event->lane << 8 | (uint64_t)(uint32_t)event->status << 32,
      (event->node ? event->node->index : UINT32_MAX) | (uint64_t)(event->from ? event->from->index : UINT32_MAX) << 32,
      event->end_serial ^ event->value << 32,
      size,
      hash,
  };
  sim->hash = pwi_hash(facts, sizeof facts, sim->hash);
}

uint64_t pwi_sim_event_count(const struct pwi_sim *sim) { return sim->events; }
uint64_t pwi_sim_trace_hash(const struct pwi_sim *sim) { return sim->hash; }

void pwi_sim_fail(struct pwi_sim *sim, pawl_status status, const char *format, ...) {
  if (sim->failed) return;
  sim->failed = status ? status : PAWL_CORRUPT;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sim->failure, sizeof sim->failure, format, arguments);
  va_end(arguments);
  pwi_log(&sim->log, PAWL_LOG_ERROR, "sim.failed", "seed=%llu event=%llu what=\"%s\"",
          (unsigned long long)sim->config.seed, (unsigned long long)sim->events, sim->failure);
}

const char *pwi_sim_failure(const struct pwi_sim *sim) { return sim->failed ? sim->failure : NULL; }

/* --- running -------------------------------------------------------------------------------------------- */

/* Whether the end of an event is still the one that it was scheduled for. */
static bool end_is_meant(const struct sim_event *event) {
  return !event->end || event->end->serial == event->end_serial;
}

static void act(struct pwi_sim *sim, struct sim_event *event) {
  typedef void action(struct pwi_sim *, struct sim_event *);
  static action *const actions[] = {
      [EVENT_STEP] = pwi_sim_act_step,
      [EVENT_RELEASE] = pwi_sim_act_release,
      [EVENT_TIMER] = pwi_sim_act_timer,
      [EVENT_WOKEN] = pwi_sim_act_woken,
      [EVENT_CONNECT] = pwi_sim_act_connect,
      [EVENT_HELLO] = pwi_sim_act_hello,
      [EVENT_DELIVER] = pwi_sim_act_deliver,
      [EVENT_DONE] = pwi_sim_act_done,
      [EVENT_WRITABLE] = pwi_sim_act_writable,
      [EVENT_NOTIFY] = pwi_sim_act_notify,
      [EVENT_GET] = pwi_sim_act_get,
      [EVENT_LATE_PUT] = pwi_sim_act_late_put,
      [EVENT_FIN] = pwi_sim_act_fin,
      [EVENT_DOWN] = pwi_sim_act_down,
      [EVENT_SILENCE] = pwi_sim_act_silence,
      [EVENT_GREET_LIMIT] = pwi_sim_act_limit,
      [EVENT_LINGER_LIMIT] = pwi_sim_act_limit,
      [EVENT_RESTART] = pwi_sim_act_restart,
      [EVENT_RESUME] = pwi_sim_act_resume,
      [EVENT_FLOW] = pwi_sim_act_flow,
      [EVENT_HOLD] = pwi_sim_act_hold,
  };
  if (event->kind == EVENT_CALL) {
    pwi_sim_trace(sim, event, 0, 0);
    event->with.call.call(event->with.call.context);
    return;
  }
  if (event->kind == EVENT_KILL) {
    pwi_sim_trace(sim, event, 0, 0);
    pwi_sim_node_kill_now(pwi_sim_node_of(sim, (struct pwi_sim_node){(uint32_t)event->value}));
    return;
  }
  actions[event->kind](sim, event);
}

/* The third stage. A slow node is then busy for a while. */
static void run(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_node *node = event->node;
  bool stale = event->cancelled || !end_is_meant(event) ||
               (node && event->incarnation && (!node->net || node->incarnation != event->incarnation));
  if (!stale) {
    sim->running = node;
    act(sim, event);
    sim->running = NULL;
    if (node && node->slow_ns) pwi_sim_node_block(node, node->slow_ns);
  }
  pwi_sim_event_free(sim, event);
}

void pwi_sim_dispatch(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_node *node = event->node;
  if (node && (node->paused || node->waiting.head || sim->now < node->busy_until))
    pwi_sim_node_wait(node, event);
  else
    run(sim, event);
}

/* The first stage. */
static void arrive(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_end *end = event->end;
  if (event->from && end_is_meant(event) && (end->held.head || !pwi_sim_path_is_open(end)))
    pwi_sim_queue_add(&end->held, event);
  else
    pwi_sim_dispatch(sim, event);
}

/* A STEP takes one event from the node's queue. */
void pwi_sim_act_step(struct pwi_sim *sim, struct sim_event *event) {
  struct sim_node *node = pwi_sim_node_of(sim, (struct pwi_sim_node){(uint32_t)event->value});
  node->stepping = false;
  if (node->stalled && sim->now >= node->busy_until) pwi_sim_node_block(node, 0);
  while (node->waiting.head && !node->paused && sim->now >= node->busy_until && !sim->failed) {
    run(sim, pwi_sim_queue_take(&node->waiting));
    if (pwi_sim_reserve(sim, EVENTS_A_STEP)) pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for events");
  }
  if ((node->waiting.head || node->stalled) && !node->paused) pwi_sim_node_wait(node, NULL);
}

pawl_status pwi_sim_happen(struct pwi_sim *sim, struct sim_event *event) {
  assert(!sim->running);
  if (pwi_sim_reserve(sim, EVENTS_A_STEP)) {
    pwi_sim_fail(sim, PAWL_NO_MEMORY, "not enough memory for events");
    return sim->failed;
  }
  if (event->time > sim->now) sim->now = event->time;
  arrive(sim, event);
  return sim->failed;
}

static pawl_status step_until(struct pwi_sim *sim, int64_t limit) {
  if (sim->failed) return sim->failed;
  if (sim->flows_changed) pwi_sim_flows_settle(sim);
  struct sim_event *event = pwi_sim_take(sim, limit);
  return event ? pwi_sim_happen(sim, event) : PAWL_NOT_FOUND;
}

pawl_status pwi_sim_call_at(struct pwi_sim *sim, int64_t time, void (*call)(void *context), void *context) {
  if (pwi_sim_reserve(sim, 1)) return PAWL_NO_MEMORY;
  struct sim_event *event = pwi_sim_schedule(sim, time, EVENT_CALL, NULL);
  event->with.call.call = call;
  event->with.call.context = context;
  return PAWL_OK;
}

pawl_status pwi_sim_step(struct pwi_sim *sim) { return step_until(sim, PWI_NET_NEVER); }

pawl_status pwi_sim_run_until(struct pwi_sim *sim, int64_t time) {
  pawl_status status;
  do status = step_until(sim, time);
  while (status == PAWL_OK);
  if (status != PAWL_NOT_FOUND) return status;
  if (time > sim->now && time != PWI_NET_NEVER) sim->now = time;
  return PAWL_OK;
}

pawl_status pwi_sim_run_while(struct pwi_sim *sim, bool (*predicate)(void *context), void *context, int64_t limit) {
  while (predicate(context)) {
    pawl_status status = step_until(sim, limit);
    if (status == PAWL_NOT_FOUND) {
      if (limit > sim->now && limit != PWI_NET_NEVER) sim->now = limit;
      return PAWL_TIMED_OUT;
    }
    if (status) return status;
  }
  return PAWL_OK;
}
