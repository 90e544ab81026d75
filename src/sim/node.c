/* Nodes: booting and killing them, pauses, and the queue of events that wait for them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sim/disk.h"
#include "sim/world.h"

/* Each incarnation of a node draws from a random stream of its own, and its disk from another. */
#define STREAM_NODES (UINT64_C(1) << 40)
#define STREAM_DISKS (UINT64_C(1) << 41)

struct sim_node *pwi_sim_node_of(const struct pwi_sim *sim, struct pwi_sim_node node) {
  assert(node.index < sim->node_count);
  return sim->nodes[node.index];
}

static struct pwi_sim_node handle_of(const struct sim_node *node) { return (struct pwi_sim_node){node->index}; }

/* --- adding nodes --------------------------------------------------------------------------------------- */

/* The matrix of cuts, once there is one, grows with the table of nodes, and keeps its entries. */
static pawl_status make_room(struct pwi_sim *sim) {
  if (sim->node_count < sim->node_room) return PAWL_OK;
  uint32_t room = sim->node_room ? sim->node_room * 2 : 16;
  uint8_t *cuts = sim->cuts ? pwi_alloc_zero(room, room) : NULL;
  if (sim->cuts && !cuts) return PAWL_NO_MEMORY;
  struct sim_node **nodes = pwi_resize_array(sim->nodes, room, sizeof(struct sim_node *));
  if (!nodes) {
    pwi_free(cuts);
    return PAWL_NO_MEMORY;
  }
  for (uint32_t from = 0; cuts && from < sim->node_count; from++)
    memcpy(cuts + (size_t)from * room, sim->cuts + (size_t)from * sim->node_room, sim->node_count);
  pwi_free(sim->cuts);
  sim->cuts = cuts;
  sim->nodes = nodes;
  sim->node_room = room;
  return PAWL_OK;
}

static struct sim_node **bucket_of(struct pwi_sim *sim, const char *name) {
  return &sim->names[pwi_hash(name, strlen(name), 0) % PWI_SIM_BUCKETS];
}

static bool name_is_taken(struct pwi_sim *sim, const char *name) {
  for (const struct sim_node *node = *bucket_of(sim, name); node; node = node->same_bucket)
    if (strcmp(node->name, name) == 0) return true;
  return false;
}

static int64_t log_time(const void *node) { return pwi_sim_node_time(node); }

static int64_t world_time(void *node) { return ((struct sim_node *)node)->sim->now; }

static int64_t block_for_disk(void *node, int64_t duration) {
  pwi_sim_node_block(node, duration);
  return pwi_sim_node_time(node);
}

static pawl_status node_init(struct sim_node *node, struct pwi_sim *sim, const struct pwi_sim_program *program) {
  node->sim = sim;
  node->index = sim->node_count;
  node->program = *program;
  node->limits = program->limits ? *program->limits : sim->config.limits;
  node->name = pwi_copy_string(program->name);
  node->host = pwi_copy_string(program->host ? program->host : program->name);
  if (!node->name || !node->host) return PAWL_NO_MEMORY;
  node->log = (struct pwi_log){.node = node->name, .now = log_time, .clock = node};
  struct pwi_sim_disk_host host = {
      .seed = sim->config.seed,
      .stream = STREAM_DISKS + node->index,
      .sync = sim->config.disk_sync,
      .now = world_time,
      .block = block_for_disk,
      .context = node,
  };
  return pwi_sim_disk_create(&host, &node->disk);
}

pawl_status pwi_sim_node_add(struct pwi_sim *sim, const struct pwi_sim_program *program,
                             struct pwi_sim_node *node_out) {
  if (!program->name || !*program->name || !program->boot) return PAWL_INVALID;
  if (name_is_taken(sim, program->name)) return PAWL_EXISTS;
  pawl_status status = make_room(sim);
  if (status) return status;
  struct sim_node *node = pwi_alloc_zero(1, sizeof *node);
  if (!node) return PAWL_NO_MEMORY;
  status = node_init(node, sim, program);
  if (status) {
    pwi_sim_node_free(node);
    return status;
  }
  if (sim->fabric.node_added)
    status = sim->fabric.node_added(sim->fabric.context, (struct pwi_sim_node){node->index}, node->host);
  if (status) {
    pwi_sim_node_free(node);
    return status;
  }
  sim->nodes[sim->node_count++] = node;
  node->same_bucket = *bucket_of(sim, node->name);
  *bucket_of(sim, node->name) = node;
  *node_out = handle_of(node);
  return PAWL_OK;
}

void pwi_sim_node_free(struct sim_node *node) {
  assert(!node->net);
  pwi_sim_disk_destroy(node->disk);
  pwi_free(node->name);
  pwi_free(node->host);
  pwi_free(node);
}

int64_t pwi_sim_node_now(const struct pwi_sim *sim, struct pwi_sim_node node) {
  return pwi_sim_node_time(pwi_sim_node_of(sim, node));
}

uint32_t pwi_sim_node_count(const struct pwi_sim *sim) { return sim->node_count; }

const char *pwi_sim_node_name(const struct pwi_sim *sim, struct pwi_sim_node node) {
  return pwi_sim_node_of(sim, node)->name;
}

bool pwi_sim_node_is_up(const struct pwi_sim *sim, struct pwi_sim_node node) {
  return pwi_sim_node_of(sim, node)->net != NULL;
}

struct pwi_net *pwi_sim_node_net(const struct pwi_sim *sim, struct pwi_sim_node node) {
  struct sim_net *net = pwi_sim_node_of(sim, node)->net;
  return net ? &net->net : NULL;
}

void *pwi_sim_node_self(const struct pwi_sim *sim, struct pwi_sim_node node) {
  struct sim_net *net = pwi_sim_node_of(sim, node)->net;
  return net ? net->net.self : NULL;
}

struct pwi_sim_disk *pwi_sim_node_disk(const struct pwi_sim *sim, struct pwi_sim_node node) {
  return pwi_sim_node_of(sim, node)->disk;
}

/* --- booting and killing -------------------------------------------------------------------------------- */

static void draw_clock(struct sim_node *node) {
  struct pwi_sim *sim = node->sim;
  uint64_t stream = STREAM_NODES + ((uint64_t)node->index << 16) + node->incarnation;
  pwi_random_init(&node->random, sim->config.seed, stream);
  uint64_t offset = pwi_random_below(&node->random, (uint64_t)sim->config.clock_offset_max_ns + 1);
  node->clock_offset = (int64_t)offset;
  node->clock_ppm = 0;
  if (sim->config.clock_drift_ppm == 0) return;
  uint64_t range = 2 * (uint64_t)sim->config.clock_drift_ppm + 1;
  node->clock_ppm = (int32_t)pwi_random_below(&node->random, range) - (int32_t)sim->config.clock_drift_ppm;
}

pawl_status pwi_sim_start(struct pwi_sim *sim, struct pwi_sim_node handle) {
  struct sim_node *node = pwi_sim_node_of(sim, handle);
  if (node->net) return PAWL_EXISTS;
  node->incarnation++;
  draw_clock(node);
  struct sim_net *net;
  pawl_status status = pwi_sim_net_create(node, &net);
  if (status) return status;
  node->net = net;
  node->paused = node->stalled = false;
  node->busy_until = 0;
  node->resumed_at = sim->now;
  pwi_sim_disk_power_on(node->disk);
  struct pwi_sim_boot boot = {
      .net = &net->net,
      .files = pwi_sim_disk_files(node->disk),
      .random = &node->random,
      .log = &node->log,
      .name = node->name,
      .incarnation = node->incarnation,
  };
  status = node->program.boot(node->program.context, &boot, &net->net.actor, &net->net.self);
  if (status) {
    net->net.actor = NULL;
    pwi_sim_node_kill_now(node);
    pwi_log(&node->log, PAWL_LOG_WARN, "sim.boot", "failed=%s", pawl_status_name(status));
    return status;
  }
  assert(net->net.actor);
  pwi_log(&node->log, PAWL_LOG_DEBUG, "sim.boot", "incarnation=%u", node->incarnation);
  return PAWL_OK;
}

/* Refuses connections that the system had accepted for the dead process. */
static void drop_waiting(struct sim_node *node) {
  struct sim_event *event;
  while ((event = pwi_sim_queue_take(&node->waiting)) != NULL) {
    if (event->kind == EVENT_CONNECT && event->end->serial == event->end_serial) {
      event->end->state = END_GONE;
      pwi_sim_end_tell(event->end, PAWL_LINK_RESET);
      pwi_sim_end_leave(event->end);
    }
    pwi_sim_event_free(node->sim, event);
  }
}

void pwi_sim_node_kill_now(struct sim_node *node) {
  struct sim_net *net = node->net;
  if (!net) return;
  pwi_log(&node->log, PAWL_LOG_DEBUG, "sim.kill", "incarnation=%u", node->incarnation);
  while (net->ends) { /* one at a time: of a link of the node to itself both ends may leave together */
    struct sim_end *end = net->ends;
    net->ends = end->after;
    if (end->after) end->after->before = NULL;
    pwi_sim_end_vanish(end);
  }
  pwi_sim_disk_power_off(node->disk);
  node->net = NULL;
  if (net->net.actor && node->program.halt) node->program.halt(node->program.context, net->net.self);
  pwi_sim_disk_crash(node->disk);
  pwi_sim_net_free(net);
  node->paused = node->stalled = false;
  node->busy_until = 0;
  node->pause_count++;
  drop_waiting(node);
}

void pwi_sim_kill(struct pwi_sim *sim, struct pwi_sim_node handle) {
  struct sim_node *node = pwi_sim_node_of(sim, handle);
  if (!sim->running)
    pwi_sim_node_kill_now(node);
  else
    pwi_sim_schedule(sim, sim->now, EVENT_KILL, NULL)->value = node->index;
}

pawl_status pwi_sim_restart(struct pwi_sim *sim, struct pwi_sim_node handle) {
  if (sim->running) {
    pwi_sim_schedule(sim, sim->now, EVENT_RESTART, NULL)->value = handle.index;
    return PAWL_OK;
  }
  pwi_sim_node_kill_now(pwi_sim_node_of(sim, handle));
  return pwi_sim_start(sim, handle);
}

void pwi_sim_act_restart(struct pwi_sim *sim, struct sim_event *event) {
  pwi_sim_trace(sim, event, 0, 0);
  pawl_status status = pwi_sim_restart(sim, (struct pwi_sim_node){(uint32_t)event->value});
  (void)status; /* start has logged it */
}

/* --- pauses and slowness -------------------------------------------------------------------------------- */

int64_t pwi_sim_node_time(const struct sim_node *node) {
  return node->busy_until > node->sim->now ? node->busy_until : node->sim->now;
}

/* Queues an event for the node; NULL: checks the queue again. */
void pwi_sim_node_wait(struct sim_node *node, struct sim_event *event) {
  if (event) pwi_sim_queue_add(&node->waiting, event);
  if (node->paused || node->stepping) return;
  node->stepping = true;
  pwi_sim_schedule(node->sim, pwi_sim_node_time(node), EVENT_STEP, NULL)->value = node->index;
}

static void peers_listen(struct sim_node *node) {
  if (!node->net) return;
  for (struct sim_end *end = node->net->ends; end; end = end->after) pwi_sim_end_listen(end->peer);
}

/* Blocks the node for `duration`. If peers miss a heartbeat meanwhile they must be told; the STEP at the
 * end lets them hear the node again. */
void pwi_sim_node_block(struct sim_node *node, int64_t duration) {
  node->busy_until = pwi_sim_node_time(node) + duration;
  bool stalled = node->busy_until - node->sim->now > node->limits.beat_ns;
  if (stalled == node->stalled) return;
  node->stalled = stalled;
  if (!stalled) node->resumed_at = node->sim->now;
  peers_listen(node);
  if (stalled) pwi_sim_node_wait(node, NULL);
}

void pwi_sim_pause(struct pwi_sim *sim, struct pwi_sim_node handle, int64_t duration) {
  struct sim_node *node = pwi_sim_node_of(sim, handle);
  int64_t until = duration == PWI_NET_NEVER ? PWI_NET_NEVER : sim->now + duration;
  if (!node->net || (node->paused && node->paused_until >= until)) return;
  node->pause_count++;
  node->paused = true;
  node->paused_until = until;
  peers_listen(node);
  if (until == PWI_NET_NEVER) return;
  struct sim_event *event = pwi_sim_schedule(sim, until, EVENT_RESUME, NULL);
  event->value = (uint64_t)node->index << 32 | node->pause_count;
}

/* Does nothing if the node has been resumed, paused again or killed since. */
void pwi_sim_act_resume(struct pwi_sim *sim, struct sim_event *event) {
  struct pwi_sim_node node = {(uint32_t)(event->value >> 32)};
  if (pwi_sim_node_of(sim, node)->pause_count != (uint32_t)event->value) return;
  pwi_sim_trace(sim, event, 0, 0);
  pwi_sim_resume(sim, node);
}

void pwi_sim_resume(struct pwi_sim *sim, struct pwi_sim_node handle) {
  struct sim_node *node = pwi_sim_node_of(sim, handle);
  if (!node->paused) return;
  node->pause_count++;
  node->paused = false;
  node->resumed_at = sim->now;
  peers_listen(node);
  pwi_sim_node_wait(node, NULL);
}

void pwi_sim_slow(struct pwi_sim *sim, struct pwi_sim_node handle, double factor) {
  struct sim_node *node = pwi_sim_node_of(sim, handle);
  assert(factor >= 0 && factor < 1e9);
  node->slow_ns = llround(factor * (double)sim->config.slow_step_ns);
}

void pwi_sim_starve(struct pwi_sim *sim, struct pwi_sim_node handle, bool is_starved) {
  pwi_sim_node_of(sim, handle)->is_starved = is_starved;
}
