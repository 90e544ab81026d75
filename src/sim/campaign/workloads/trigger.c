/* Pushes that wait for a group (docs/calls.md, "Triggers"): two members tick, and a third client has pushes sent when
 * both have reached a tick.
 *
 * No such push is sent before every member has reached its tick, except members that were declared dead, and each
 * push is applied once. */
#include <stddef.h>
#include <stdio.h>

#include "sim/campaign/workloads/workload.h"

#define GROUP "trigger/.group"
#define ROWS "trigger/rows"
#define MEMBERS 2
#define TICKS 8
#define WAITING 3 /* triggers at a time */

struct triggers;

struct ticker {
  struct triggers *triggers;
  struct pwi_cluster_client client;
  struct pwi_asking asking;
  struct pwi_task enter, task;
  struct pwi_flow *group;
  uint64_t tick; /* the last that it called */
  bool is_in, is_over;
};

struct trigger_push {
  struct pwi_trigger trigger;
  struct pwi_task task;
  struct triggers *triggers;
  bool is_busy;
  uint64_t tick;
  int64_t value;
};

struct triggers {
  struct pwi_workload workload;
  struct ticker members[MEMBERS];
  struct pwi_cluster_client client;
  struct pwi_flow *group, *rows;
  struct trigger_push pushes[WAITING];
  uint64_t next; /* the tick of the next trigger */
  int64_t called, acknowledged;
};

static const uint64_t key = 5;

static void broken(const struct triggers *triggers, const char *what, uint64_t tick, pawl_status status) {
  CAMPAIGN_FAIL(triggers->workload.campaign, "%s: trigger at tick %llu, %s", what, (unsigned long long)tick,
                pawl_status_name(status));
}

/* --- members -------------------------------------------------------------------------------------------- */

static void met(struct pwi_task *task) {
  struct ticker *member = (struct ticker *)((char *)task - offsetof(struct ticker, task));
  if (task->status) broken(member->triggers, "a member cannot wait", member->tick, task->status);
  member->is_over = true;
  pwi_sim_kill(member->triggers->workload.campaign->cluster.sim, member->client.node);
}

/* A member stays until the other one is there too: the group is complete then. A group whose first member is dead before
 * the second one joins waits for another, and so do its triggers. */
static bool end_if_done(struct ticker *member) {
  if (member->tick < TICKS) return false;
  member->task = (struct pwi_task){.finished = met};
  pawl_status status = pwi_client_await(member->client.client, &member->task, member->group, 1);
  if (status) broken(member->triggers, "a wait was refused", member->tick, status);
  return true;
}

static void ticked(struct pwi_task *task) {
  struct ticker *member = (struct ticker *)((char *)task - offsetof(struct ticker, task));
  if (task->status) broken(member->triggers, "a member cannot tick", member->tick, task->status);
  if (!end_if_done(member))
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, 250 * MS), 0);
}

static void member_timer(void *context, uint64_t cookie) {
  struct ticker *member = context;
  (void)cookie;
  member->task = (struct pwi_task){.finished = ticked};
  pawl_status status = pwi_client_tick(member->client.client, &member->task, member->group, ++member->tick);
  if (status) broken(member->triggers, "a tick was refused", member->tick, status);
}

static void entered(struct pwi_task *task) {
  struct ticker *member = (struct ticker *)((char *)task - offsetof(struct ticker, enter));
  if (task->status) {
    broken(member->triggers, "a member cannot enter", 0, task->status);
    return;
  }
  member->tick = task->found;
  member->is_in = true;
  if (!end_if_done(member)) member_timer(member, 0);
}

static void ask_to_join(struct ticker *member);

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct ticker *member = (struct ticker *)((char *)asking - offsetof(struct ticker, asking));
  (void)payload, (void)size;
  if (pwi_campaign_is_journal_failure(status)) {
    ask_to_join(member);
    return;
  }
  if (!status) status = pwi_cluster_open_vector(&member->client, GROUP, 0, &member->group);
  member->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(member->client.client, &member->enter, member->group);
  if (status) broken(member->triggers, "a member cannot join", 0, status);
}

static void ask_to_join(struct ticker *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, MEMBERS);
  member->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(member->client.client, &member->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(member->triggers, "a member cannot ask", 0, status);
  pwi_writer_fini(&writer);
}

static void member_started(void *context) {
  struct ticker *member = context;
  if (!member->is_over) ask_to_join(member);
}

static void member_stopped(void *context) { ((struct ticker *)context)->is_in = false; }

/* --- triggers ------------------------------------------------------------------------------------------- */

static void applied(struct pwi_task *task) {
  struct trigger_push *push = (struct trigger_push *)((char *)task - offsetof(struct trigger_push, task));
  struct triggers *triggers = push->triggers;
  push->is_busy = false;
  if (task->status) broken(triggers, "a trigger failed", push->tick, task->status);
  for (size_t m = 0; m < MEMBERS; m++) {
    const struct ticker *member = &triggers->members[m];
    if (member->is_in && pwi_workload_is_loyal(&triggers->workload, &member->client) && member->tick < push->tick)
      broken(triggers, "a trigger went before its tick", push->tick, PAWL_OK);
  }
  triggers->acknowledged++;
  triggers->workload.campaign->figures.triggers++;
  pwi_cluster_timer(&triggers->client, (int64_t)pwi_random_below(triggers->client.random, 50 * MS), 0);
}

static void set_trigger(struct triggers *triggers, struct trigger_push *push) {
  struct pwi_where where = {.keys = &key, .count = 1};
  *push = (struct trigger_push){.triggers = triggers, .is_busy = true, .value = 1, .task.finished = applied};
  push->tick = triggers->next++;
  triggers->called++;
  pawl_status status = pwi_client_trigger(triggers->client.client, &push->trigger, &push->task, triggers->group,
                                          push->tick, triggers->rows, &where, &push->value);
  if (status) broken(triggers, "a trigger was refused", push->tick, status);
}

static void trigger_timer(void *context, uint64_t cookie) {
  struct triggers *triggers = context;
  (void)cookie;
  if (pwi_cluster_open_vector(&triggers->client, GROUP, 0, &triggers->group) ||
      pwi_cluster_open_vector(&triggers->client, ROWS, 0, &triggers->rows)) {
    pwi_cluster_timer(&triggers->client, 20 * MS, 0);
    return;
  }
  for (size_t i = 0; i < WAITING && triggers->next <= TICKS; i++)
    if (!triggers->pushes[i].is_busy) set_trigger(triggers, &triggers->pushes[i]);
}

static void trigger_started(void *context) { pwi_cluster_timer(&((struct triggers *)context)->client, 20 * MS, 0); }

static void trigger_stopped(void *context) {
  struct triggers *triggers = context;
  for (size_t i = 0; i < WAITING; i++) triggers->pushes[i].is_busy = false;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status add_members(struct triggers *triggers) {
  pawl_status status = PAWL_OK;
  for (uint32_t m = 0; m < MEMBERS && !status; m++) {
    struct ticker *member = &triggers->members[m];
    member->triggers = triggers;
    member->client = (struct pwi_cluster_client){.job = "trigger",
                                                 .started = member_started,
                                                 .stopped = member_stopped,
                                                 .timer = member_timer,
                                                 .context = member};
    snprintf(member->client.name, sizeof member->client.name, "ticker%u", m % MEMBERS);
    status = pwi_campaign_client_add(triggers->workload.campaign, &member->client, true);
  }
  return status;
}

static pawl_status begin(struct pwi_workload *workload) {
  struct triggers *triggers = (struct triggers *)workload;
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
  triggers->next = 1;
  pawl_status status = pwi_workload_vector(workload, ROWS, &options);
  if (!status) status = add_members(triggers);
  triggers->client = (struct pwi_cluster_client){.name = "trigger",
                                                 .job = "trigger",
                                                 .started = trigger_started,
                                                 .stopped = trigger_stopped,
                                                 .timer = trigger_timer,
                                                 .context = triggers};
  return status ? status : pwi_campaign_client_add(workload->campaign, &triggers->client, true);
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct triggers *triggers = (const struct triggers *)workload;
  for (size_t m = 0; m < MEMBERS; m++)
    if (!triggers->members[m].is_over) return true;
  for (size_t i = 0; i < WAITING; i++)
    if (triggers->pushes[i].is_busy) return true;
  return triggers->next <= TICKS;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct triggers *triggers = (const struct triggers *)workload;
  snprintf(text, size, "triggers, the next at tick %llu, of members at ticks %llu and %llu",
           (unsigned long long)triggers->next, (unsigned long long)triggers->members[0].tick,
           (unsigned long long)triggers->members[1].tick);
}

static pawl_status check(struct pwi_workload *workload) {
  struct triggers *triggers = (struct triggers *)workload;
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t value = 0;
  pawl_status status = pwi_workload_pull(workload, ROWS, &where, &value);
  if (!status && (value < triggers->acknowledged || value > triggers->called))
    CAMPAIGN_FAIL(workload->campaign, "%lld pushes of triggers were applied; %lld were acknowledged, %lld called",
                  (long long)value, (long long)triggers->acknowledged, (long long)triggers->called);
  return status;
}

const struct pwi_workload_ops pwi_workload_trigger = {
    .size = sizeof(struct triggers), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
