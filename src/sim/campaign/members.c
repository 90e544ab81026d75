/* Servers that join and leave, and an operator that moves, splits and merges arcs. */
#include <stddef.h>
#include <string.h>

#include "sim/campaign/inside.h"

#define LEFT_POLL_NS (20 * MS)

/* --- servers -------------------------------------------------------------------------------------------- */

static bool has_left(const struct campaign *campaign, size_t process) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    struct pwi_server_state state = {0};
    if (campaign->cluster.servers[i].server) pwi_server_state(campaign->cluster.servers[i].server, &state);
    if (!state.has_left) return false;
  }
  return true;
}

/* A process that is drained ends, and comes back after a while as a new one. */
static void look_who_left(void *context) {
  struct campaign *campaign = context;
  struct havoc *havoc = &campaign->havoc;
  if (havoc->leaving == PWI_CLUSTER_PROCESSES) return; /* it was killed */
  if (!has_left(campaign, havoc->leaving)) {
    pwi_campaign_later(campaign, LEFT_POLL_NS, look_who_left);
    return;
  }
  campaign->figures.leaves++;
  pwi_havoc_do_process(campaign, PWI_SIM_FAULT_KILL, havoc->leaving, pwi_havoc_duration(campaign, 20 * MS, 1000 * MS));
  havoc->leaving = PWI_CLUSTER_PROCESSES;
}

/* Asks the servers, not the manager. A process that has just started cannot take anything over yet. */
static bool has_joined(const struct campaign *campaign, size_t process) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    struct pwi_server_state state = {0};
    if (campaign->cluster.servers[i].server) pwi_server_state(campaign->cluster.servers[i].server, &state);
    if (state.node == 0 || state.has_left) return false;
  }
  return true;
}

/* Whether the remaining processes suffice for complete chains. If they do not, draining means shorter chains. */
static bool can_spare(const struct campaign *campaign, size_t process) {
  size_t others = 0;
  for (size_t i = 0; i < campaign->cluster.process_count; i++)
    others += i != process && campaign->havoc.is_started[i] && has_joined(campaign, i);
  return others > campaign->config.replicas;
}

static void let_leave(struct campaign *campaign, size_t process) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  if (campaign->havoc.leaving != PWI_CLUSTER_PROCESSES || campaign->config.memory_max) return;
  if (!pwi_cluster_is_up(&campaign->cluster, process) || !can_spare(campaign, process)) return;
  if (pwi_havoc_is_troubled(campaign)) return; /* nobody drains a server while another one is missing */
  for (size_t i = is->first; i < is->first + is->shards; i++) pwi_server_leave(campaign->cluster.servers[i].server);
  campaign->havoc.leaving = process;
  pwi_campaign_later(campaign, LEFT_POLL_NS, look_who_left);
}

static void change_members(void *context) {
  struct campaign *campaign = context;
  struct havoc *havoc = &campaign->havoc;
  size_t process = (size_t)pwi_random_below(&havoc->random, campaign->cluster.process_count);
  if (havoc->is_started[process]) {
    let_leave(campaign, process);
  } else {
    havoc->is_started[process] = true;
    campaign->figures.joins++;
    pwi_cluster_start(&campaign->cluster, process);
  }
  pwi_havoc_again(campaign, campaign->config.gap_members_ns, change_members);
}

pawl_status pwi_members_begin(struct campaign *campaign) {
  campaign->havoc.leaving = PWI_CLUSTER_PROCESSES;
  if (campaign->config.gap_members_ns) pwi_havoc_again(campaign, campaign->config.gap_members_ns, change_members);
  return PAWL_OK;
}

/* --- the operator --------------------------------------------------------------------------------------- */

/* True if a durable view since the ask does not have the target, or not as a server that is up. */
static bool was_missing(const struct campaign *campaign, const struct havoc *havoc) {
  const struct campaign_watch *watch = &campaign->watch;
  for (size_t epoch = (size_t)havoc->move_epoch; epoch < watch->epochs; epoch++) {
    const struct pwi_view *view = watch->views[epoch].view;
    const struct pwi_view_node *node = view ? pwi_view_find(view, (struct pwi_node){havoc->move_to}) : NULL;
    if (view && (!node || node->state != PWI_NODE_UP)) return true;
  }
  return false;
}

bool pwi_move_may_end(const struct campaign *campaign, pawl_status status) {
  bool may_fail = campaign->figures.disk_faults > 0;
  switch (status) {
  case PAWL_OK:
    return true;
  case PAWL_NOT_FOUND:
    return was_missing(campaign, &campaign->havoc);
  case PAWL_UNSUPPORTED: /* another shard of the target's process has a copy */
    return campaign->config.shards > 1;
  case PAWL_OUTCOME_UNKNOWN:
  case PAWL_IO:
  case PAWL_NO_SPACE:
    return may_fail;
  default:
    return false;
  }
}

/* Only the data tell whether a move that was ordered has happened. */
static void moved(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct havoc *havoc = (struct havoc *)((char *)asking - offsetof(struct havoc, move));
  struct campaign *campaign = (struct campaign *)((char *)havoc - offsetof(struct campaign, havoc));
  (void)payload, (void)size;
  havoc->is_moving = false;
  if (campaign->watch.epochs == 0) return; /* a test that uses workers and operator, and has no record of views */
  if (!pwi_move_may_end(campaign, status))
    CAMPAIGN_FAIL(campaign, "an order to move an arc ended with %s, which no fault explains", pawl_status_name(status));
}

/* A whole arc, a small part of it, or sometimes any range. */
static struct pawl_range draw_positions(struct pwi_random *random, const struct pwi_view *view) {
  uint64_t a = pwi_random_u64(random), b = pwi_random_u64(random);
  double way = pwi_random_unit(random);
  if (way < 0.4) return pwi_view_arc_range(view, pwi_view_arc_of(view, a >> 1));
  if (way < 0.85) b = a < UINT64_MAX - (b >> 4) ? a + (b >> 4) : a - (b >> 4);
  return a < b ? pawl_range_of(a, b) : pawl_range_of(b, a);
}

static void ask_move(struct campaign *campaign) {
  struct havoc *havoc = &campaign->havoc;
  struct pwi_random *random = havoc->client.random;
  const struct pwi_view *view = pwi_client_view(havoc->client.client);
  if (havoc->is_moving || !view || view->arc_count == 0) return;
  struct pawl_range positions = draw_positions(random, view);
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, positions.begin);
  pwi_write_u64(&writer, positions.end);
  havoc->move_to = view->nodes[pwi_random_below(random, view->node_count)].node.id;
  havoc->move_epoch = view->epoch;
  pwi_write_u64(&writer, havoc->move_to);
  havoc->move.replied = moved;
  if (!writer.status && !pwi_client_ask(havoc->client.client, &havoc->move, PWI_ASK_MOVE, writer.data, writer.size))
    havoc->is_moving = true;
  pwi_writer_fini(&writer);
}

static void operator_timer(void *context, uint64_t cookie) {
  struct campaign *campaign = context;
  struct pwi_cluster_client *client = &campaign->havoc.client;
  (void)cookie;
  if (campaign->is_quiet) return;
  ask_move(campaign);
  uint64_t most = 2 * (uint64_t)campaign->config.gap_moves_ns;
  pwi_cluster_timer(client, 20 * MS + (int64_t)pwi_random_below(client->random, most), 0);
}

static void operator_started(void *context) {
  struct campaign *campaign = context;
  if (campaign->config.gap_moves_ns) pwi_cluster_timer(&campaign->havoc.client, 50 * MS, 0);
}

pawl_status pwi_operator_add(struct campaign *campaign) {
  struct pwi_cluster_client *client = &campaign->havoc.client;
  strcpy(client->name, "operator");
  client->started = operator_started;
  client->timer = operator_timer;
  client->context = campaign;
  return pwi_cluster_client_add(&campaign->cluster, client);
}
