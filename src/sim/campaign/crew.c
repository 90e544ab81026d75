/* A crew that meets at barriers: each member pushes one, ticks, waits for the others, and reads.
 *
 * A member that was declared dead is not waited for, and comes back under a new id. A member that is
 * killed restarts and joins at the others' tick. A member that has done its ticks ends. The invariants
 * therefore hold for members that have been in the membership all the time: no member passes a tick that
 * such a member has not begun, and every member that passes reads all pushes of such members before the
 * tick.
 *
 * A client without the newest view may read from a head that was replaced and does not know it. Such a
 * head shows old values, and no more is promised (docs/faults.md). */
#include <stddef.h>
#include <stdio.h>

#include "sim/campaign/inside.h"

#define TICKS 10
#define GROUP "sim/.crew"
#define SUMS "sim/sums"

static const uint64_t key = 3;

static void broken(struct crew_member *member, const char *what, pawl_status status) {
  CAMPAIGN_FAIL(member->campaign, "member %u %s: tick %llu status %s", member->index, what,
                (unsigned long long)member->tick, pawl_status_name(status));
}

/* The member has been in since the first tick, and was never declared dead. */
static bool is_loyal(const struct crew_member *member) {
  struct pwi_client_state state;
  if (!member->client.client || !member->is_in || member->began > 0 || member->client.incarnation != 1) return false;
  if (pwi_cluster_client_figures(&member->client).retirements > 0) return false;
  pwi_client_state(member->client.client, &state);
  return pwi_membership_is_live(&pwi_campaign_ledger(member->campaign)->membership, (struct pwi_sender){state.sender});
}

/* --- one tick ------------------------------------------------------------------------------------------- */

static void check_sum(struct crew_member *member) {
  uint64_t loyal = 0;
  for (uint32_t i = 0; i < member->campaign->config.crew; i++) loyal += is_loyal(&member->campaign->crew[i]);
  if (is_loyal(member) && member->is_current && member->seen < (int64_t)(member->tick * loyal))
    broken(member, "passed a barrier and did not see all pushes before it", PAWL_OK);
}

/* Its process ends. A member that stays behind in the group is declared dead, as always. */
static bool end_if_done(struct crew_member *member) {
  member->is_over = member->tick >= TICKS;
  if (member->is_over) pwi_sim_kill(member->campaign->cluster.sim, member->client.node);
  return member->is_over;
}

static void pulled(struct pwi_task *task) {
  struct crew_member *member = (struct crew_member *)((char *)task - offsetof(struct crew_member, pull_task));
  if (task->status) {
    broken(member, "could not pull", task->status);
    return;
  }
  check_sum(member);
  if (!end_if_done(member))
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, 200 * MS), 0);
}

/* Called when push, tick and await are over. A member that was declared dead in the meantime may have been
 * released before its own push was applied. */
static void one_over(struct crew_member *member) {
  if (--member->pending > 0) return;
  const struct pwi_view *view = pwi_client_view(member->client.client);
  member->is_current = view && view->epoch == pwi_campaign_ledger(member->campaign)->view->epoch;
  struct pwi_where where = {.keys = &key, .count = 1};
  member->pull_task = (struct pwi_task){.finished = pulled};
  pawl_status status = pwi_client_start(member->client.client, &member->pull_task, member->sums, PWI_REQUEST_PULL,
                                        &where, NULL, &member->seen);
  if (status) broken(member, "could not start a pull", status);
}

static void awaited(struct pwi_task *task) {
  struct crew_member *member = (struct crew_member *)((char *)task - offsetof(struct crew_member, await_task));
  struct campaign *campaign = member->campaign;
  if (task->status) {
    broken(member, "could not wait", task->status);
    return;
  }
  campaign->figures.barriers++;
  for (uint32_t i = 0; i < campaign->config.crew; i++) {
    const struct crew_member *other = &campaign->crew[i];
    if (is_loyal(member) && is_loyal(other) && other->tick < member->tick)
      broken(member, "passed a barrier before another member came", PAWL_OK);
  }
  one_over(member);
}

static void ticked(struct pwi_task *task) {
  struct crew_member *member = (struct crew_member *)((char *)task - offsetof(struct crew_member, tick_task));
  if (task->status)
    broken(member, "could not tick", task->status);
  else
    one_over(member);
}

static void pushed(struct pwi_task *task) {
  struct crew_member *member = (struct crew_member *)((char *)task - offsetof(struct crew_member, push_task));
  if (task->status)
    broken(member, "could not push", task->status);
  else
    one_over(member);
}

/* Pushes one, ticks (which waits for the push), and waits for the others: all three calls are made at
 * once. */
static void begin_tick(struct crew_member *member) {
  struct pwi_client *client = member->client.client;
  struct pwi_where where = {.keys = &key, .count = 1};
  member->tick++;
  member->one = 1;
  member->pending = 3;
  member->push_task = (struct pwi_task){.finished = pushed};
  member->tick_task = (struct pwi_task){.finished = ticked};
  member->await_task = (struct pwi_task){.finished = awaited};
  pawl_status status =
      pwi_client_start(client, &member->push_task, member->sums, PWI_REQUEST_PUSH, &where, &member->one, NULL);
  if (!status) status = pwi_client_tick(client, &member->tick_task, member->flow, member->tick);
  if (!status) status = pwi_client_await(client, &member->await_task, member->flow, member->tick);
  if (status) broken(member, "could not begin a tick", status);
}

static void member_timer(void *context, uint64_t cookie) {
  (void)cookie;
  begin_tick(context);
}

/* --- joining and leaving -------------------------------------------------------------------------------- */

static void entered(struct pwi_task *task) {
  struct crew_member *member = (struct crew_member *)((char *)task - offsetof(struct crew_member, enter));
  if (task->status) {
    broken(member, "could not enter", task->status);
    return;
  }
  member->tick = member->began = task->found;
  member->is_in = true;
  if (!end_if_done(member)) begin_tick(member);
}

static void ask_to_join(struct crew_member *member);

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct crew_member *member = (struct crew_member *)((char *)asking - offsetof(struct crew_member, asking));
  struct pwi_client *client = member->client.client;
  (void)payload, (void)size;
  const struct pwi_entry *group = pwi_catalogue_named(pwi_client_catalogue(client), GROUP);
  const struct pwi_entry *sums = pwi_catalogue_named(pwi_client_catalogue(client), SUMS);
  if (!status && (!group || !sums)) status = PAWL_NOT_FOUND;
  if (!status) status = pwi_client_flow(client, group->id, 0, &member->flow);
  if (!status) status = pwi_client_flow(client, sums->id, 0, &member->sums);
  member->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(client, &member->enter, member->flow);
  if (status == PAWL_IO)
    ask_to_join(member); /* the manager's store has failed; another manager will follow */
  else if (status)
    broken(member, "could not join", status);
}

static void ask_to_join(struct crew_member *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, member->campaign->config.crew);
  member->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(member->client.client, &member->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(member, "could not ask to join", status);
  pwi_writer_fini(&writer);
}

static void member_started(void *context) {
  struct crew_member *member = context;
  if (!member->is_over) ask_to_join(member); /* else it was restarted in the meantime */
}

static void member_stopped(void *context) { ((struct crew_member *)context)->is_in = false; }

pawl_status pwi_campaign_crew_make_vectors(struct campaign *campaign) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
  struct pwi_flow *flow;
  return campaign->config.crew ? pwi_cluster_vector(&campaign->checker, SUMS, &options, &flow) : PAWL_OK;
}

pawl_status pwi_campaign_crew_add(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < campaign->config.crew && !status; i++) {
    struct crew_member *member = &campaign->crew[i];
    member->campaign = campaign;
    member->index = i;
    snprintf(member->client.name, sizeof member->client.name, "g%u", i % 100);
    member->client.started = member_started;
    member->client.stopped = member_stopped;
    member->client.timer = member_timer;
    member->client.context = member;
    status = pwi_campaign_client_add(campaign, &member->client, true);
  }
  return status;
}

bool pwi_campaign_crew_is_busy(const struct campaign *campaign) {
  for (uint32_t i = 0; i < campaign->config.crew; i++)
    if (!campaign->crew[i].is_over) return true;
  return false;
}
