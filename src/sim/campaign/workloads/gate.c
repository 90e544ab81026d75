/* A group of one member that ticks and waits for its tick, and a newcomer that enters the group.
 *
 * A barrier that was passed stays passed: a client that enters afterwards enters at the tick of the barrier or at a
 * later one, as long as the member is in the group. This fails if a barrier opens on a tick that only the head of the
 * chain has. So the workload kills the head at the moment when the member has passed, and cuts the member off from all
 * servers, which keeps it from sending its tick again. Then the newcomer enters. */
#include <stddef.h>
#include <stdio.h>

#include "ring/place.h"
#include "sim/campaign/workloads/workload.h"

#define GROUP "gate/.group"
#define TICKS 40
#define CUT_NS (900 * MS)  /* how long the member does not reach servers */
#define REST_NS (700 * MS) /* between two kills */

struct gate {
  struct pwi_workload workload;
  struct pwi_cluster_client member, newcomer;
  struct pwi_asking asking, entering;
  struct pwi_task enter, tick_task, await, enter_late;
  struct pwi_flow *group, *late_group;
  uint64_t tick, passed; /* the last that the member has called, and the last that it has passed */
  uint64_t sender;       /* the id of the member when it passed */
  int pending;           /* number of tick and await that are under way */
  bool is_over, is_entering;
  uint64_t wanted; /* the newcomer must enter at this tick or later */
  int64_t rested_at;
};

static void broken(const struct gate *gate, const char *what, uint64_t tick, pawl_status status) {
  CAMPAIGN_FAIL(gate->workload.campaign, "%s: tick %llu, passed %llu, %s", what, (unsigned long long)tick,
                (unsigned long long)gate->passed, pawl_status_name(status));
}

static uint64_t sender_of(const struct pwi_cluster_client *client) {
  struct pwi_client_state state = {0};
  if (client->client) pwi_client_state(client->client, &state);
  return state.sender;
}

/* The member is still in the group, under the id with which it has passed. */
static bool is_member(const struct gate *gate) {
  const struct pwi_membership *membership = &pwi_campaign_ledger(gate->workload.campaign)->membership;
  return gate->sender != 0 && sender_of(&gate->member) == gate->sender &&
         pwi_membership_is_live(membership, (struct pwi_sender){gate->sender});
}

static pawl_status ask_to_join(struct pwi_cluster_client *client, struct pwi_asking *asking, uint32_t size,
                               void (*replied)(struct pwi_asking *asking, pawl_status status, const void *payload,
                                               size_t size)) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, size);
  *asking = (struct pwi_asking){.replied = replied};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(client->client, asking, PWI_ASK_GROUP, writer.data, writer.size);
  pwi_writer_fini(&writer);
  return status;
}

/* --- the newcomer --------------------------------------------------------------------------------------- */

/* Another process takes its place, and does nothing before it is needed. */
static void leave(struct gate *gate) {
  gate->is_entering = false;
  pawl_status status = pwi_sim_restart(gate->workload.campaign->cluster.sim, gate->newcomer.node);
  (void)status; /* inside a callback it is PAWL_OK */
}

static void entered_late(struct pwi_task *task) {
  struct gate *gate = (struct gate *)((char *)task - offsetof(struct gate, enter_late));
  if (task->status) broken(gate, "a newcomer cannot enter", 0, task->status);
  gate->workload.campaign->figures.entries++;
  if (is_member(gate) && task->found < gate->wanted)
    broken(gate, "a newcomer entered below a barrier that was passed", task->found, PAWL_OK);
  leave(gate);
}

static void joined_late(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct gate *gate = (struct gate *)((char *)asking - offsetof(struct gate, entering));
  (void)payload, (void)size;
  gate->enter_late = (struct pwi_task){.finished = entered_late};
  if (!status) status = pwi_cluster_open_vector(&gate->newcomer, GROUP, 0, &gate->late_group);
  if (!status) status = pwi_client_enter(gate->newcomer.client, &gate->enter_late, gate->late_group);
  if (status) leave(gate); /* the manager or its journal has failed */
}

static void newcomer_stopped(void *context) { ((struct gate *)context)->is_entering = false; }

/* --- the attack ----------------------------------------------------------------------------------------- */

/* The process of the head that counts the ticks; `process_count`: none is known. */
static size_t find_head(const struct gate *gate) {
  const struct pwi_cluster *cluster = &gate->workload.campaign->cluster;
  const struct pwi_view *view = pwi_campaign_ledger(gate->workload.campaign)->view;
  const struct pwi_entry *entry = pwi_flow_entry(gate->group);
  struct pwi_place place = pwi_entry_place(entry);
  uint64_t position = pwi_place_position(&place, pwi_group_key(entry->name));
  uint64_t head = view->arcs[pwi_view_arc_of(view, position)].chain[0].node.id;
  for (size_t i = 0; i < cluster->server_count; i++) {
    struct pwi_server_state state = {0};
    if (cluster->servers[i].server) pwi_server_state(cluster->servers[i].server, &state);
    if (state.node == head) return cluster->servers[i].process;
  }
  return cluster->process_count;
}

static void attack(struct gate *gate) {
  struct campaign *campaign = gate->workload.campaign;
  const struct pwi_cluster *cluster = &campaign->cluster;
  size_t head = find_head(gate);
  int64_t now = pwi_campaign_now(campaign);
  if (gate->is_entering || !gate->newcomer.client || now < gate->rested_at || now + CUT_NS > campaign->havoc.end)
    return;
  if (head == cluster->process_count || !pwi_havoc_kill(campaign, head)) return;
  for (size_t i = 0; i < cluster->server_count; i++)
    pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, gate->member.node, cluster->servers[i].node, CUT_NS);
  gate->rested_at = now + CUT_NS + REST_NS;
  gate->wanted = gate->passed;
  gate->is_entering = true;
  if (ask_to_join(&gate->newcomer, &gate->entering, 0, joined_late)) leave(gate);
}

/* --- the member ----------------------------------------------------------------------------------------- */

static void one_over(struct gate *gate) {
  if (--gate->pending > 0) return;
  gate->is_over = gate->tick >= TICKS;
  if (gate->is_over)
    pwi_sim_kill(gate->workload.campaign->cluster.sim, gate->member.node);
  else
    pwi_cluster_timer(&gate->member, (int64_t)pwi_random_below(gate->member.random, 60 * MS), 0);
}

static void ticked(struct pwi_task *task) {
  struct gate *gate = (struct gate *)((char *)task - offsetof(struct gate, tick_task));
  if (task->status) broken(gate, "the member cannot tick", gate->tick, task->status);
  one_over(gate);
}

static void passed(struct pwi_task *task) {
  struct gate *gate = (struct gate *)((char *)task - offsetof(struct gate, await));
  if (task->status) broken(gate, "the member cannot wait", gate->tick, task->status);
  gate->passed = gate->tick;
  gate->sender = sender_of(&gate->member);
  attack(gate);
  one_over(gate);
}

static void member_timer(void *context, uint64_t cookie) {
  struct gate *gate = context;
  (void)cookie;
  gate->tick++;
  gate->pending = 2;
  gate->await = (struct pwi_task){.finished = passed};
  gate->tick_task = (struct pwi_task){.finished = ticked};
  pawl_status status = pwi_client_await(gate->member.client, &gate->await, gate->group, gate->tick);
  if (!status) status = pwi_client_tick(gate->member.client, &gate->tick_task, gate->group, gate->tick);
  if (status) broken(gate, "the member cannot begin a tick", gate->tick, status);
}

static void entered(struct pwi_task *task) {
  struct gate *gate = (struct gate *)((char *)task - offsetof(struct gate, enter));
  if (task->status) {
    broken(gate, "the member cannot enter", 0, task->status);
    return;
  }
  gate->tick = task->found;
  member_timer(gate, 0);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct gate *gate = (struct gate *)((char *)asking - offsetof(struct gate, asking));
  (void)payload, (void)size;
  if (pwi_campaign_is_journal_failure(status)) {
    status = ask_to_join(&gate->member, &gate->asking, 1, joined);
    if (status) broken(gate, "the member cannot ask", 0, status);
    return;
  }
  gate->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_cluster_open_vector(&gate->member, GROUP, 0, &gate->group);
  if (!status) status = pwi_client_enter(gate->member.client, &gate->enter, gate->group);
  if (status) broken(gate, "the member cannot join", 0, status);
}

static void member_started(void *context) {
  struct gate *gate = context;
  if (gate->is_over) return;
  pawl_status status = ask_to_join(&gate->member, &gate->asking, 1, joined);
  if (status) broken(gate, "the member cannot ask", 0, status);
}

/* --- all of it ------------------------------------------------------------------------------------------ */

/* Other faults kill neither client. */
static pawl_status begin(struct pwi_workload *workload) {
  struct gate *gate = (struct gate *)workload;
  gate->member = (struct pwi_cluster_client){
      .name = "member", .job = "gate", .started = member_started, .timer = member_timer, .context = gate};
  gate->newcomer =
      (struct pwi_cluster_client){.name = "newcomer", .job = "gate", .stopped = newcomer_stopped, .context = gate};
  pawl_status status = pwi_campaign_client_add(workload->campaign, &gate->member, false);
  return status ? status : pwi_campaign_client_add(workload->campaign, &gate->newcomer, false);
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct gate *gate = (const struct gate *)workload;
  return !gate->is_over || gate->is_entering;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct gate *gate = (const struct gate *)workload;
  snprintf(text, size, "a gate at tick %llu, with %d calls pending%s", (unsigned long long)gate->tick, gate->pending,
           gate->is_entering ? ", and a newcomer that enters" : "");
}

const struct pwi_workload_ops pwi_workload_gate = {
    .size = sizeof(struct gate), .begin = begin, .is_busy = is_busy, .describe = describe};
