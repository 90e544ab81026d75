/* A group whose pushes of a tick are applied as one (docs/protocol.md, "Pushes of a tick that are applied as one").
 *
 * Member m adds 1 to column m of every row in every tick, by a push or a pushpull, several ticks at a time. The server
 * function counts its steps in one more column. So a row says which pushes it contains, and in how many steps they
 * were applied.
 *
 * A member is loyal if it has been in the group from the beginning and was never declared dead. The answer to tick t
 * shows all pushes of loyal members up to tick t. While all members are loyal, each tick is one step: all columns of
 * every row are equal. Members that were declared dead, and those that were killed and joined again, contribute late;
 * each of their acknowledged pushes counts once all the same. If a member is lost before the group is complete, what it
 * pushed is applied at once with the pushes that wait beside it (shard/aggregate.c): some arcs then lack the pushes of
 * members that join later. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/campaign/workloads/workload.h"

#define GROUP "sums/.group"
#define ROWS "sums/rows"
#define MEMBERS_MAX 3
#define STORED (MEMBERS_MAX + 1) /* columns of a stored row */
#define SUM_KEYS 12
#define TICKS 10
#define AHEAD 3 /* ticks of a member under way */

/* With relays: more ticks, and mostly one after another, because relays take no push that follows another. */
#define RELAYED_TICKS 30

struct sums;

struct sum_push {
  struct pwi_task task;
  struct summer *member;
  bool is_busy, pulls;
  bool is_early; /* the group was not complete when it was called */
  uint64_t tick;
  int64_t coefficients[SUM_KEYS * MEMBERS_MAX], in[SUM_KEYS * MEMBERS_MAX], out[SUM_KEYS * STORED];
};

struct summer {
  struct sums *sums;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_asking asking;
  struct pwi_task enter;
  struct pwi_flow *group, *rows;
  bool is_in, is_over;
  bool has_entered;             /* in any of its lives */
  int64_t called, acknowledged; /* ticks; the last one that it called is `called` */
  struct sum_push pushes[AHEAD];
};

struct sums {
  struct pwi_workload workload;
  uint32_t count;
  uint64_t keys[SUM_KEYS];
  struct summer members[MEMBERS_MAX];
};

static bool has_relays(const struct summer *member) { return member->sums->workload.campaign->config.relays > 0; }

static int64_t ticks_of(const struct summer *member) { return has_relays(member) ? RELAYED_TICKS : TICKS; }

static void broken(const struct summer *member, const char *what, uint64_t tick, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(member->sums->workload.campaign, "%s: member %u of a sum, tick %llu: %lld, not %lld", what,
                member->index, (unsigned long long)tick, (long long)found, (long long)wanted);
}

/* --- checking ------------------------------------------------------------------------------------------- */

static bool is_loyal(const struct summer *member) {
  return member->is_in && pwi_workload_is_loyal(&member->sums->workload, &member->client);
}

static bool is_complete(const struct summer *member) {
  const struct pwi_membership *membership = &pwi_campaign_ledger(member->sums->workload.campaign)->membership;
  const struct pwi_membership_group *group = pwi_membership_group(membership, pwi_flow_entry(member->group)->id);
  return group && group->complete;
}

/* A member was lost, perhaps before the group was complete. */
static bool was_any_lost(const struct sums *sums) {
  for (uint32_t m = 0; m < sums->count; m++)
    if (sums->members[m].has_entered && !pwi_workload_is_loyal(&sums->workload, &sums->members[m].client)) return true;
  return false;
}

static void check_row(const struct summer *member, const struct sum_push *push, const int64_t *row) {
  const struct sums *sums = member->sums;
  uint64_t tick = push->tick;
  bool are_loyal = true, may_lack = push->is_early && was_any_lost(sums);
  for (uint32_t m = 0; m < sums->count; m++) {
    const struct summer *other = &sums->members[m];
    bool is_in = is_loyal(other);
    are_loyal &= is_in;
    if (is_in && is_loyal(member) && row[m] < (int64_t)tick && !may_lack)
      broken(member, "a sum lacks the push of a live member", tick, row[m], (int64_t)tick);
    if (row[m] > other->called) broken(member, "a push is in a sum twice", tick, row[m], other->called);
  }
  for (uint32_t m = 0; are_loyal && m < sums->count; m++)
    if (row[m] != row[MEMBERS_MAX])
      broken(member, "a tick was not applied in one step", tick, row[m], row[MEMBERS_MAX]);
}

/* --- ticks ---------------------------------------------------------------------------------------------- */

/* Its process ends. A member that stays behind in the group is declared dead. */
static bool end_if_done(struct summer *member) {
  for (size_t i = 0; i < AHEAD; i++)
    if (member->pushes[i].is_busy) return false;
  member->is_over = member->called >= ticks_of(member);
  if (member->is_over) pwi_sim_kill(member->sums->workload.campaign->cluster.sim, member->client.node);
  return member->is_over;
}

static void summed(struct pwi_task *task) {
  struct sum_push *push = (struct sum_push *)((char *)task - offsetof(struct sum_push, task));
  struct summer *member = push->member;
  struct pwi_campaign_figures *figures = &member->sums->workload.campaign->figures;
  push->is_busy = false;
  if (task->status) {
    broken(member, pawl_status_name(task->status), push->tick, 0, 0);
    return;
  }
  member->acknowledged++;
  figures->group_pushes++;
  figures->group_pulls += push->pulls;
  for (size_t i = 0; push->pulls && i < SUM_KEYS; i++) check_row(member, push, &push->out[i * STORED]);
  if (!end_if_done(member))
    pwi_cluster_timer(&member->client,
                      (int64_t)pwi_random_below(member->client.random, has_relays(member) ? 60 * MS : 150 * MS), 0);
}

/* Some members send factors, others the rows. With relays all do the same in a tick, and few ticks have factors: a relay
 * does not take them. */
static bool sends_factors(const struct sum_push *push) {
  if (has_relays(push->member)) return push->tick % 5 == 0;
  return (push->tick + push->member->index) % 2 == 0;
}

/* With relays the coefficients of a key are as long as its row, and another row: taken for rows they would count for another
 * member. */
static const int64_t *as_factors(struct sum_push *push, struct pwi_where *where) {
  static const int64_t turned[MEMBERS_MAX][MEMBERS_MAX] = {{0, 1, 0}, {0, 0, 1}, {1, 0, 0}};
  size_t count = has_relays(push->member) ? MEMBERS_MAX : 1, from = 0;
  while (count > 1 && turned[from][push->member->index] == 0) from++;
  for (size_t i = 0; i < SUM_KEYS; i++) push->coefficients[i * count + from] = 1;
  where->operand = count > 1 ? turned[0] : push->in;
  where->operand_rows = count;
  return push->coefficients;
}

static void call_tick(struct summer *member, struct sum_push *push) {
  struct pwi_random *random = member->client.random;
  *push = (struct sum_push){.member = member, .is_busy = true, .task.finished = summed};
  push->tick = (uint64_t)++member->called;
  push->is_early = !is_complete(member);
  push->pulls = pwi_random_chance(random, 0.5);
  for (size_t i = 0; i < SUM_KEYS; i++) push->in[i * MEMBERS_MAX + member->index] = 1;
  struct pwi_where where = {
      .range = {0, SUM_KEYS}, .aggregate = pwi_flow_entry(member->group)->id.id, .tick = push->tick};
  if (pwi_random_chance(random, 0.5)) {
    where.keys = member->sums->keys;
    where.count = SUM_KEYS;
  }
  const int64_t *in = sends_factors(push) ? as_factors(push, &where) : push->in;
  pawl_status status = pwi_client_start(member->client.client, &push->task, member->rows,
                                        push->pulls ? PWI_REQUEST_PUSHPULL : PWI_REQUEST_PUSH, &where, in,
                                        push->pulls ? push->out : NULL);
  if (status) broken(member, "a push of a group was refused", push->tick, (int64_t)status, 0);
}

static void member_timer(void *context, uint64_t cookie) {
  struct summer *member = context;
  (void)cookie;
  size_t ahead = has_relays(member) && pwi_random_chance(member->client.random, 0.9) ? 1 : AHEAD;
  for (size_t i = 0; i < ahead && member->called < ticks_of(member); i++) {
    if (!member->pushes[i].is_busy) call_tick(member, &member->pushes[i]);
    if (pwi_random_chance(member->client.random, 0.4)) return;
  }
}

/* --- joining -------------------------------------------------------------------------------------------- */

static void entered(struct pwi_task *task) {
  struct summer *member = (struct summer *)((char *)task - offsetof(struct summer, enter));
  if (task->status) {
    broken(member, "a member cannot enter", 0, (int64_t)task->status, 0);
    return;
  }
  member->is_in = member->has_entered = true;
  if (!end_if_done(member)) member_timer(member, 0);
}

static void ask_to_join(struct summer *member);

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct summer *member = (struct summer *)((char *)asking - offsetof(struct summer, asking));
  (void)payload, (void)size;
  if (pwi_campaign_is_journal_failure(status)) {
    ask_to_join(member);
    return;
  }
  if (!status) status = pwi_cluster_open_vector(&member->client, GROUP, 0, &member->group);
  if (!status) status = pwi_cluster_open_vector(&member->client, ROWS, 0, &member->rows);
  member->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(member->client.client, &member->enter, member->group);
  if (status) broken(member, "a member cannot join", 0, (int64_t)status, 0);
}

static void ask_to_join(struct summer *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, member->sums->count);
  member->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(member->client.client, &member->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(member, "a member cannot ask", 0, (int64_t)status, 0);
  pwi_writer_fini(&writer);
}

static void member_started(void *context) {
  struct summer *member = context;
  if (!member->is_over) ask_to_join(member);
}

static void member_stopped(void *context) {
  struct summer *member = context;
  member->is_in = false;
  for (size_t i = 0; i < AHEAD; i++) member->pushes[i].is_busy = false;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct sums *sums = (struct sums *)workload;
  struct pawl_vector_options options = {.type = PAWL_I64, .width = MEMBERS_MAX, .size = SUM_KEYS};
  options.placement = PAWL_PLACE_ORDERED;
  options.layout = pwi_random_chance(&workload->random, 0.5) ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  strcpy(options.rule, "sim_steps");
  for (uint64_t key = 0; key < SUM_KEYS; key++) sums->keys[key] = key;
  sums->count = 2 + (uint32_t)pwi_random_below(&workload->random, MEMBERS_MAX - 1);
  pawl_status status = pwi_workload_vector(workload, ROWS, &options);
  for (uint32_t m = 0; m < sums->count && !status; m++) {
    struct summer *member = &sums->members[m];
    member->sums = sums;
    member->index = m;
    member->client = (struct pwi_cluster_client){
        .job = "sums", .started = member_started, .stopped = member_stopped, .timer = member_timer, .context = member};
    if (workload->campaign->config.relays > 0) member->client.rack = m % 2 ? "right" : "left";
    snprintf(member->client.name, sizeof member->client.name, "sum%u", m % MEMBERS_MAX);
    status = pwi_campaign_client_add(workload->campaign, &member->client, true);
  }
  return status;
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct sums *sums = (const struct sums *)workload;
  for (uint32_t m = 0; m < sums->count; m++)
    if (!sums->members[m].is_over) return true;
  return false;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct sums *sums = (const struct sums *)workload;
  uint32_t m = 0;
  while (m + 1 < sums->count && sums->members[m].is_over) m++;
  const struct summer *member = &sums->members[m];
  snprintf(text, size, "member %u of a sum, %s, which called %lld ticks and has %lld", m,
           member->is_in ? "in" : "not in", (long long)member->called, (long long)member->acknowledged);
}

static pawl_status check(struct pwi_workload *workload) {
  struct sums *sums = (struct sums *)workload;
  struct pwi_where where = {.range = {0, SUM_KEYS}};
  int64_t rows[SUM_KEYS * STORED];
  pawl_status status = pwi_workload_pull(workload, ROWS, &where, rows);
  for (size_t i = 0; i < SUM_KEYS && !status; i++) {
    for (uint32_t m = 0; m < sums->count; m++) {
      const struct summer *member = &sums->members[m];
      int64_t found = rows[i * STORED + m];
      if (found < member->acknowledged)
        broken(member, "an acknowledged push of a group is lost", (uint64_t)ticks_of(member), found,
               member->acknowledged);
      if (found > member->called)
        broken(member, "a push of a group counts twice", (uint64_t)ticks_of(member), found, member->called);
    }
  }
  return status;
}

const struct pwi_workload_ops pwi_workload_sums = {
    .size = sizeof(struct sums), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
