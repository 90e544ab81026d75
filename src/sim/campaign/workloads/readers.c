/* A group whose members push, tick, wait for one another, and pull rows that may be old (docs/relays.md#pulls).
 *
 * A member may be some ticks ahead of the others. After each wait it pulls several times, and says how many ticks old the
 * rows may be. So some pulls want rows that nobody has read yet, and others are content with those that a relay has read
 * for another member. Some are called while a push of the member is under way. The history checks that each read has
 * the member's own pushes, goes back behind no earlier one, and has the pushes that its age promises. */
#include <stddef.h>
#include <stdio.h>

#include "sim/campaign/workloads/workload.h"

#define GROUP "readers/.group"
#define ROWS "readers/rows"
#define READERS_MAX 3
#define READ_KEYS 12
#define READ_WIDTH 4
#define READ_TICKS 12
#define PULLS 3 /* under way */
#define AHEAD_MAX 3

struct readers;

struct reader_call {
  struct pwi_task task;
  struct group_reader *reader;
  uint32_t number; /* in the history */
  uint64_t tick;   /* of an AWAIT */
  int64_t rows[READ_KEYS * READ_WIDTH];
};

struct group_reader {
  struct readers *readers;
  struct pwi_cluster_client client;
  uint32_t index, session;
  struct pwi_asking asking;
  struct pwi_flow *group, *rows;
  bool is_in, is_over;
  uint64_t tick, awaited;
  uint32_t pulls_left, pulling;
  bool is_pushing, is_ticking, is_awaiting;
  struct reader_call enter, push, tick_call, await, pulls[PULLS];
  bool is_busy[PULLS];
};

struct readers {
  struct pwi_workload workload;
  uint32_t count, vector; /* `vector`: in the history */
  uint64_t keys[READ_KEYS];
  struct group_reader members[READERS_MAX];
};

static void broken(const struct group_reader *reader, const char *what, pawl_status status) {
  CAMPAIGN_FAIL(reader->readers->workload.campaign, "%s: reader %u, tick %llu: %s", what, reader->index,
                (unsigned long long)reader->tick, pawl_status_name(status));
}

/* --- the history ---------------------------------------------------------------------------------------- */

static struct pwi_task *record(struct group_reader *reader, struct reader_call *call, struct pwi_history_call about,
                               void (*finished)(struct pwi_task *task)) {
  struct campaign *campaign = reader->readers->workload.campaign;
  about.session = reader->session;
  about.vector = reader->readers->vector;
  about.name = GROUP;
  about.task = &call->task;
  call->task = (struct pwi_task){.finished = finished};
  call->reader = reader;
  call->tick = about.tick;
  call->number = pwi_history_begin(campaign->history, pwi_campaign_now(campaign), &about);
  return &call->task;
}

/* Records the end of a call; NULL if it failed. */
static struct reader_call *end(struct pwi_task *task, const char *what) {
  struct reader_call *call = (struct reader_call *)((char *)task - offsetof(struct reader_call, task));
  struct group_reader *reader = call->reader;
  struct campaign *campaign = reader->readers->workload.campaign;
  for (uint32_t i = 0; i < reader->readers->count; i++)
    pwi_book_note_dead(campaign, &reader->readers->members[i].client, reader->readers->members[i].session);
  struct pwi_history_answer answer = {.status = task->status, .rows = call->rows, .tick = task->found};
  pwi_history_end(campaign->history, pwi_campaign_now(campaign), call->number, &answer);
  if (task->status) broken(reader, what, task->status);
  return task->status ? NULL : call;
}

/* --- pulls ---------------------------------------------------------------------------------------------- */

static void go_on(struct group_reader *reader);

static void pulled(struct pwi_task *task) {
  struct reader_call *call = end(task, "a pull failed");
  if (!call) return;
  struct group_reader *reader = call->reader;
  reader->is_busy[call - reader->pulls] = false;
  reader->pulling--;
  reader->readers->workload.campaign->figures.old_pulls++;
  go_on(reader);
}

/* Members mostly name the same keys, so that a relay can read them once for all. */
static struct pwi_where draw_where(struct group_reader *reader) {
  struct pwi_random *random = reader->client.random;
  if (pwi_random_chance(random, 0.6)) return (struct pwi_where){.range = {0, READ_KEYS}};
  size_t first = pwi_random_chance(random, 0.5) ? 0 : READ_KEYS / 3;
  return (struct pwi_where){.keys = reader->readers->keys + first, .count = READ_KEYS - first};
}

static void pull(struct group_reader *reader, size_t place) {
  struct pwi_random *random = reader->client.random;
  struct pwi_where where = draw_where(reader);
  bool may_be_old = pwi_random_chance(random, 0.9);
  where.staleness = pwi_random_below(random, AHEAD_MAX + 1);
  where.tick = reader->tick;
  where.group = may_be_old ? pwi_flow_entry(reader->group)->id.id : 0;
  uint64_t needed = where.tick > where.staleness ? where.tick - where.staleness : 0;
  struct pwi_history_call about = {.verb = PWI_HISTORY_PULL,
                                   .keys = where.keys ? where.keys : reader->readers->keys,
                                   .count = where.keys ? where.count : READ_KEYS,
                                   .is_old = may_be_old && reader->awaited >= needed,
                                   .tick = needed};
  struct pwi_task *task = record(reader, &reader->pulls[place], about, pulled);
  reader->is_busy[place] = true;
  reader->pulling++;
  reader->pulls_left--;
  pawl_status status = pwi_client_start(reader->client.client, task, reader->rows, PWI_REQUEST_PULL, &where, NULL,
                                        reader->pulls[place].rows);
  if (status) broken(reader, "a pull was refused", status);
}

/* --- one tick ------------------------------------------------------------------------------------------- */

/* Its process ends. A member that stays behind in the group is declared dead. */
static bool end_if_done(struct group_reader *reader) {
  reader->is_over = reader->tick >= READ_TICKS;
  if (reader->is_over) pwi_sim_kill(reader->readers->workload.campaign->cluster.sim, reader->client.node);
  return reader->is_over;
}

/* Makes the pulls of this tick, then begins the next one. */
static void go_on(struct group_reader *reader) {
  struct pwi_random *random = reader->client.random;
  if (reader->is_awaiting) return;
  for (size_t i = 0; i < PULLS && reader->pulls_left > 0; i++)
    if (!reader->is_busy[i] && (reader->pulling == 0 || pwi_random_chance(random, 0.4))) pull(reader, i);
  if (reader->pulls_left > 0 || reader->pulling > 0 || reader->is_pushing || reader->is_ticking) return;
  if (!end_if_done(reader)) pwi_cluster_timer(&reader->client, (int64_t)pwi_random_below(random, 80 * MS), 0);
}

static void pushed(struct pwi_task *task) {
  struct reader_call *call = end(task, "a push failed");
  if (!call) return;
  call->reader->is_pushing = false;
  go_on(call->reader);
}

static void ticked(struct pwi_task *task) {
  struct reader_call *call = end(task, "a tick failed");
  if (!call) return;
  call->reader->is_ticking = false;
  go_on(call->reader);
}

static void awaited(struct pwi_task *task) {
  struct reader_call *call = end(task, "a wait failed");
  if (!call) return;
  struct group_reader *reader = call->reader;
  reader->is_awaiting = false;
  if (call->tick > reader->awaited) reader->awaited = call->tick;
  go_on(reader);
}

static void push(struct group_reader *reader) {
  struct pwi_random *random = reader->client.random;
  struct campaign *campaign = reader->readers->workload.campaign;
  size_t first = pwi_random_chance(random, 0.5) ? 0 : (size_t)pwi_random_below(random, READ_KEYS);
  struct pwi_where where = {.keys = reader->readers->keys + first, .count = READ_KEYS - first};
  for (size_t i = 0; i < where.count; i++)
    pwi_history_row(campaign->history, reader->readers->vector, where.keys[i], &reader->push.rows[i * READ_WIDTH]);
  struct pwi_history_call about = {
      .verb = PWI_HISTORY_PUSH, .keys = where.keys, .count = where.count, .rows = reader->push.rows};
  struct pwi_task *task = record(reader, &reader->push, about, pushed);
  reader->is_pushing = true;
  pawl_status status =
      pwi_client_start(reader->client.client, task, reader->rows, PWI_REQUEST_PUSH, &where, reader->push.rows, NULL);
  if (status) broken(reader, "a push was refused", status);
}

static void begin_tick(struct group_reader *reader) {
  struct pwi_random *random = reader->client.random;
  uint64_t ahead = pwi_random_below(random, AHEAD_MAX);
  reader->tick++;
  reader->pulls_left = 1 + (uint32_t)pwi_random_below(random, 5);
  reader->is_ticking = reader->is_awaiting = true;
  if (pwi_random_chance(random, 0.8)) push(reader);
  struct pwi_history_call about = {.verb = PWI_HISTORY_TICK, .tick = reader->tick};
  struct pwi_task *task = record(reader, &reader->tick_call, about, ticked);
  pawl_status status = pwi_client_tick(reader->client.client, task, reader->group, reader->tick);
  about = (struct pwi_history_call){.verb = PWI_HISTORY_AWAIT, .tick = reader->tick > ahead ? reader->tick - ahead : 0};
  task = record(reader, &reader->await, about, awaited);
  if (!status) status = pwi_client_await(reader->client.client, task, reader->group, about.tick);
  if (status) broken(reader, "a tick was refused", status);
}

static void reader_timer(void *context, uint64_t cookie) {
  (void)cookie;
  begin_tick(context);
}

/* --- joining -------------------------------------------------------------------------------------------- */

static void entered(struct pwi_task *task) {
  struct reader_call *call = end(task, "a member cannot enter");
  if (!call) return;
  struct group_reader *reader = call->reader;
  reader->is_in = true;
  reader->tick = task->found;
  if (!end_if_done(reader)) begin_tick(reader);
}

static void ask_to_join(struct group_reader *reader);

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct group_reader *reader = (struct group_reader *)((char *)asking - offsetof(struct group_reader, asking));
  (void)payload, (void)size;
  if (pwi_campaign_is_journal_failure(status)) {
    ask_to_join(reader);
    return;
  }
  if (!status) status = pwi_cluster_open_vector(&reader->client, GROUP, 0, &reader->group);
  if (!status) status = pwi_cluster_open_vector(&reader->client, ROWS, 0, &reader->rows);
  struct pwi_task *task = record(reader, &reader->enter, (struct pwi_history_call){.verb = PWI_HISTORY_ENTER}, entered);
  if (!status) status = pwi_client_enter(reader->client.client, task, reader->group);
  if (status) broken(reader, "a member cannot join", status);
}

static void ask_to_join(struct group_reader *reader) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, reader->readers->count);
  reader->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(reader->client.client, &reader->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(reader, "a member cannot ask", status);
  pwi_writer_fini(&writer);
}

static void reader_started(void *context) {
  struct group_reader *reader = context;
  reader->session = pwi_history_session(reader->readers->workload.campaign->history, reader->client.name);
  if (!reader->is_over) ask_to_join(reader);
}

static void reader_stopped(void *context) {
  struct group_reader *reader = context;
  reader->is_in = reader->is_pushing = reader->is_ticking = reader->is_awaiting = false;
  reader->awaited = reader->pulls_left = reader->pulling = 0;
  for (size_t i = 0; i < PULLS; i++) reader->is_busy[i] = false;
  pwi_history_gone(reader->readers->workload.campaign->history, reader->session);
}

static void reader_heard(void *context, const struct pwi_message *message) {
  const struct group_reader *reader = context;
  pwi_watch_heard(reader->readers->workload.campaign, reader->client.client, reader->session, message);
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct readers *readers = (struct readers *)workload;
  struct campaign *campaign = workload->campaign;
  struct pawl_vector_options options = {.type = PAWL_I64, .width = READ_WIDTH, .size = READ_KEYS};
  struct pwi_history_vector vector = {.name = ROWS, .width = READ_WIDTH, .place.size = READ_KEYS};
  options.placement = PAWL_PLACE_ORDERED;
  options.layout = pwi_random_chance(&workload->random, 0.5) ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  for (uint64_t key = 0; key < READ_KEYS; key++) readers->keys[key] = key;
  readers->vector = pwi_history_vector(campaign->history, &vector);
  readers->count = 2 + (uint32_t)pwi_random_below(&workload->random, READERS_MAX - 1);
  pawl_status status = pwi_workload_vector(workload, ROWS, &options);
  for (uint32_t m = 0; m < readers->count && !status; m++) {
    struct group_reader *reader = &readers->members[m];
    reader->readers = readers;
    reader->index = m;
    reader->client = (struct pwi_cluster_client){.job = "readers",
                                                 .rack = m % 2 ? "right" : "left",
                                                 .started = reader_started,
                                                 .stopped = reader_stopped,
                                                 .timer = reader_timer,
                                                 .heard = reader_heard,
                                                 .context = reader};
    snprintf(reader->client.name, sizeof reader->client.name, "reader%u", m % READERS_MAX);
    status = pwi_campaign_client_add(campaign, &reader->client, true);
  }
  return status;
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct readers *readers = (const struct readers *)workload;
  for (uint32_t m = 0; m < readers->count; m++)
    if (!readers->members[m].is_over) return true;
  return false;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct readers *readers = (const struct readers *)workload;
  uint32_t m = 0;
  while (m + 1 < readers->count && readers->members[m].is_over) m++;
  const struct group_reader *reader = &readers->members[m];
  snprintf(text, size, "reader %u, %s, at tick %llu:%s%s%s %u pulls", m, reader->is_in ? "in" : "not in",
           (unsigned long long)reader->tick, reader->is_pushing ? " pushing," : "",
           reader->is_ticking ? " ticking," : "", reader->is_awaiting ? " waiting," : "", reader->pulling);
}

/* The history checks it with all other reads. */
static pawl_status check(struct pwi_workload *workload) {
  const struct readers *readers = (const struct readers *)workload;
  return pwi_campaign_read(workload->campaign, ROWS, readers->vector, readers->keys, READ_KEYS);
}

const struct pwi_workload_ops pwi_workload_readers = {
    .size = sizeof(struct readers), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
