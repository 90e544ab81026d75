/* A crew that meets at barriers: each member pushes, ticks, waits for the others, and reads.
 *
 * A member that was declared dead is not waited for, and comes back under a new id. A member that is killed
 * restarts and joins at the others' tick. A member that has done its ticks ends. The history checks the
 * barriers and the rows that members read after them. */
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

/* --- the history ---------------------------------------------------------------------------------------- */

static struct pwi_task *record(struct crew_member *member, struct crew_call *call, enum pwi_history_verb verb,
                               void (*finished)(struct pwi_task *task)) {
  struct campaign *campaign = member->campaign;
  struct pwi_history_call about = {.session = member->session, .verb = verb, .name = GROUP, .tick = member->tick};
  if (verb == PWI_HISTORY_PUSH || verb == PWI_HISTORY_PULL) {
    about.vector = campaign->book.sums;
    about.keys = &key;
    about.count = 1;
    about.rows = member->pushed;
    about.task = &call->task;
  }
  *call = (struct crew_call){.task.finished = finished, .member = member};
  call->number = pwi_history_begin(campaign->history, pwi_campaign_now(campaign), &about);
  return &call->task;
}

/* Records the end of a call; NULL if it failed. */
static struct crew_member *end(struct pwi_task *task, const char *what) {
  struct crew_call *call = (struct crew_call *)((char *)task - offsetof(struct crew_call, task));
  struct crew_member *member = call->member;
  for (uint32_t i = 0; i < member->campaign->config.crew; i++)
    pwi_book_note_dead(member->campaign, &member->campaign->crew[i].client, member->campaign->crew[i].session);
  struct pwi_history_answer answer = {.status = task->status, .rows = member->seen, .tick = task->found};
  pwi_history_end(member->campaign->history, pwi_campaign_now(member->campaign), call->number, &answer);
  if (task->status) broken(member, what, task->status);
  return task->status ? NULL : member;
}

/* --- one tick ------------------------------------------------------------------------------------------- */

/* Its process ends. A member that stays behind in the group is declared dead, as always. */
static bool end_if_done(struct crew_member *member) {
  member->is_over = member->tick >= TICKS;
  if (member->is_over) pwi_sim_kill(member->campaign->cluster.sim, member->client.node);
  return member->is_over;
}

static void pulled(struct pwi_task *task) {
  struct crew_member *member = end(task, "could not pull");
  if (member && !end_if_done(member))
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, 200 * MS), 0);
}

/* Called when push, tick and await are over. A member that was declared dead in the meantime may have been
 * released before its own push was applied. */
static void one_over(struct crew_member *member) {
  if (!member || --member->pending > 0) return;
  struct pwi_where where = {.keys = &key, .count = 1};
  struct pwi_task *task = record(member, &member->pull, PWI_HISTORY_PULL, pulled);
  pawl_status status =
      pwi_client_start(member->client.client, task, member->sums, PWI_REQUEST_PULL, &where, NULL, member->seen);
  if (status) broken(member, "could not start a pull", status);
}

static void awaited(struct pwi_task *task) {
  struct crew_member *member = end(task, "could not wait");
  if (member) member->campaign->figures.barriers++;
  one_over(member);
}

static void ticked(struct pwi_task *task) { one_over(end(task, "could not tick")); }

static void pushed(struct pwi_task *task) { one_over(end(task, "could not push")); }

/* Pushes, ticks (which waits for the push), and waits for the others: all three calls are made at once. */
static void begin_tick(struct crew_member *member) {
  struct pwi_client *client = member->client.client;
  struct pwi_where where = {.keys = &key, .count = 1};
  member->tick++;
  member->pending = 3;
  pwi_history_row(member->campaign->history, member->campaign->book.sums, key, member->pushed);
  struct pwi_task *push = record(member, &member->push, PWI_HISTORY_PUSH, pushed);
  pawl_status status = pwi_client_start(client, push, member->sums, PWI_REQUEST_PUSH, &where, member->pushed, NULL);
  struct pwi_task *tick = record(member, &member->tick_call, PWI_HISTORY_TICK, ticked);
  if (!status) status = pwi_client_tick(client, tick, member->flow, member->tick);
  struct pwi_task *await = record(member, &member->await, PWI_HISTORY_AWAIT, awaited);
  if (!status) status = pwi_client_await(client, await, member->flow, member->tick);
  if (status) broken(member, "could not begin a tick", status);
}

static void member_timer(void *context, uint64_t cookie) {
  (void)cookie;
  begin_tick(context);
}

/* --- joining and leaving -------------------------------------------------------------------------------- */

static void entered(struct pwi_task *task) {
  struct crew_member *member = end(task, "could not enter");
  if (!member) return;
  member->tick = task->found;
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
  if (!status)
    status = pwi_client_enter(client, record(member, &member->enter, PWI_HISTORY_ENTER, entered), member->flow);
  if (pwi_campaign_is_journal_failure(status))
    ask_to_join(member);
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
  member->session = pwi_history_session(member->campaign->history, member->client.name);
  if (!member->is_over) ask_to_join(member); /* else it was restarted in the meantime */
}

static void member_stopped(void *context) {
  struct crew_member *member = context;
  member->is_in = false;
  pwi_history_gone(member->campaign->history, member->session);
}

static void member_heard(void *context, const struct pwi_message *message) {
  const struct crew_member *member = context;
  pwi_watch_heard(member->campaign, member->client.client, member->session, message);
}

pawl_status pwi_campaign_crew_make_vectors(struct campaign *campaign) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = CREW_WIDTH, .size = 10};
  struct pwi_history_vector vector = {.name = SUMS, .width = CREW_WIDTH, .place.size = options.size};
  struct pwi_flow *flow;
  campaign->book.sums = pwi_history_vector(campaign->history, &vector);
  return campaign->config.crew ? pwi_cluster_vector(&campaign->checker, SUMS, &options, &flow) : PAWL_OK;
}

pawl_status pwi_campaign_crew_read(struct campaign *campaign) {
  return campaign->config.crew ? pwi_campaign_read(campaign, SUMS, campaign->book.sums, &key, 1) : PAWL_OK;
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
    member->client.heard = member_heard;
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
