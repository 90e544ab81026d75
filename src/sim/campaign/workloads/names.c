/* Two clients that fight over a few names: they create, delete and restore vectors, and push to the vectors that they
 * find under the names.
 *
 * Every ask is carried out at most once, however often it is sent, and its reply is that of the time when it was
 * carried out. A server may say that it does not have a vector only after an ask has deleted the vector. The history
 * of the campaign has all asks, these answers, the pushes, and a last look at each name; so its rule `catalogue`
 * checks the names. Each incarnation of a vector is a vector of its own in the history. In the end a vector that is
 * left contains every acknowledged push of its last incarnation, once. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/campaign/workloads/workload.h"

#define FIGHTERS 2
#define NAMES 3
#define ASKS 2 /* under way for each fighter */
#define PUSHES 3
#define CALLS 36     /* of each fighter */
#define HELD_MAX 128 /* incarnations of vectors */
#define WIDTH 4      /* columns; enough for the history to tell all pushes to an incarnation apart */

static const struct pawl_vector_options fought_options = {
    .type = PAWL_I64, .width = WIDTH, .size = 10, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};
static const uint64_t key = 7;

struct fighter;

struct fought_ask {
  struct pwi_asking asking;
  struct fighter *fighter;
  bool is_busy;
  enum pwi_ask what;
  uint32_t call; /* in the history */
};

struct fought_push {
  struct pwi_task task;
  struct fighter *fighter;
  bool is_busy;
  uint64_t id;         /* of the vector */
  uint32_t call, miss; /* in the history: the push; that a server does not have the vector */
  int64_t row[WIDTH];
};

struct fighter {
  struct names *names;
  struct pwi_cluster_client client;
  uint32_t session; /* in the history */
  uint32_t calls_left;
  struct fought_ask asks[ASKS];
  struct fought_push pushes[PUSHES];
};

/* One incarnation of a vector. */
struct held {
  uint64_t id;
  uint32_t incarnation;
  uint32_t vector; /* in the history */
};

struct names {
  struct pwi_workload workload;
  struct fighter fighters[FIGHTERS];
  struct held held[HELD_MAX];
  size_t held_count;
};

static void name_of(size_t name, char text[16]) { snprintf(text, 16, "fight/v%u", (unsigned)name % NAMES); }

/* --- the history ---------------------------------------------------------------------------------------- */

static uint32_t begin_call(struct names *names, const struct pwi_history_call *call) {
  struct campaign *campaign = names->workload.campaign;
  return pwi_history_begin(campaign->history, pwi_campaign_now(campaign), call);
}

static void end_call(struct names *names, uint32_t call, const struct pwi_history_answer *answer) {
  struct campaign *campaign = names->workload.campaign;
  pwi_history_end(campaign->history, pwi_campaign_now(campaign), call, answer);
}

static enum pwi_history_verb verb_of(enum pwi_ask what) {
  return what == PWI_ASK_CREATE   ? PWI_HISTORY_CREATE
         : what == PWI_ASK_DELETE ? PWI_HISTORY_DELETE
                                  : PWI_HISTORY_RESTORE;
}

/* The vector of the history that stands for this incarnation. */
static uint32_t find_held(struct names *names, uint64_t id, uint32_t incarnation) {
  size_t i = 0;
  while (i < names->held_count && (names->held[i].id != id || names->held[i].incarnation != incarnation)) i++;
  if (i == HELD_MAX) {
    CAMPAIGN_FAIL(names->workload.campaign, "too many vectors of the same names");
    return 0;
  }
  if (i == names->held_count) {
    char text[32];
    snprintf(text, sizeof text, "fight/%llu.%u", (unsigned long long)id, incarnation);
    struct pwi_history_vector vector = {.name = text, .width = WIDTH, .place.size = fought_options.size};
    uint32_t added = pwi_history_vector(names->workload.campaign->history, &vector);
    names->held[names->held_count++] = (struct held){id, incarnation, added};
  }
  return names->held[i].vector;
}

/* --- asks ----------------------------------------------------------------------------------------------- */

/* A manager whose journal fails cannot know whether the record is there. The ask then stays without an answer in the
 * history: it may take effect later. */
static bool is_unknown(pawl_status status) {
  return pwi_campaign_is_journal_failure(status) || status == PAWL_OUTCOME_UNKNOWN;
}

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct fought_ask *ask = (struct fought_ask *)((char *)asking - offsetof(struct fought_ask, asking));
  struct fighter *fighter = ask->fighter;
  struct campaign *campaign = fighter->names->workload.campaign;
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  ask->is_busy = false;
  bool is_refused = (ask->what == PWI_ASK_CREATE && status == PAWL_EXISTS) ||
                    (ask->what == PWI_ASK_DELETE && status == PAWL_NOT_FOUND);
  if (status && !is_refused && !is_unknown(status)) {
    CAMPAIGN_FAIL(campaign, "%s cannot change a name: ask %u, %s", fighter->client.name, (unsigned)ask->what,
                  pawl_status_name(status));
    return;
  }
  uint64_t id = !status && ask->what != PWI_ASK_DELETE ? pwi_read_u64(&reader) : 0;
  if (!is_unknown(status))
    end_call(fighter->names, ask->call, &(struct pwi_history_answer){.status = status, .id = id});
  campaign->figures.creates += !status && ask->what == PWI_ASK_CREATE;
  campaign->figures.deletes += !status && ask->what == PWI_ASK_DELETE;
  campaign->figures.restores += !status && ask->what == PWI_ASK_RESTORE_BEGIN;
  pwi_cluster_timer(&fighter->client, (int64_t)pwi_random_below(fighter->client.random, 100 * MS), 0);
}

static void ask_something(struct fighter *fighter, struct fought_ask *ask) {
  static const enum pwi_ask kinds[] = {PWI_ASK_CREATE, PWI_ASK_CREATE, PWI_ASK_CREATE,       PWI_ASK_DELETE,
                                       PWI_ASK_DELETE, PWI_ASK_DELETE, PWI_ASK_RESTORE_BEGIN};
  struct pwi_random *random = fighter->client.random;
  struct pwi_writer writer = {0};
  char name[16];
  *ask = (struct fought_ask){.fighter = fighter, .is_busy = true, .asking.replied = replied};
  ask->what = kinds[pwi_random_below(random, sizeof kinds / sizeof *kinds)];
  name_of((size_t)pwi_random_below(random, NAMES), name);
  ask->call =
      begin_call(fighter->names,
                 &(struct pwi_history_call){.session = fighter->session, .verb = verb_of(ask->what), .name = name});
  pwi_write_text(&writer, name);
  if (ask->what != PWI_ASK_DELETE) pwi_options_write(&writer, &fought_options);
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(fighter->client.client, &ask->asking, ask->what, writer.data, writer.size);
  if (status) CAMPAIGN_FAIL(fighter->names->workload.campaign, "a fighter cannot ask: %s", pawl_status_name(status));
  pwi_writer_fini(&writer);
}

/* --- pushes --------------------------------------------------------------------------------------------- */

static void pushed(struct pwi_task *task) {
  struct fought_push *push = (struct fought_push *)((char *)task - offsetof(struct fought_push, task));
  struct fighter *fighter = push->fighter;
  struct names *names = fighter->names;
  push->is_busy = false;
  end_call(names, push->call, &(struct pwi_history_answer){.status = task->status});
  if (!task->status) {
    names->workload.campaign->figures.pushes++;
  } else if (task->status == PAWL_NOT_FOUND) {
    end_call(names, push->miss, &(struct pwi_history_answer){.id = push->id});
  } else if (task->status != PAWL_RESTORED) {
    CAMPAIGN_FAIL(names->workload.campaign, "%s cannot push to vector %llu: %s", fighter->client.name,
                  (unsigned long long)push->id, pawl_status_name(task->status));
  }
}

static void record_push(struct fought_push *push, const char *name, const struct pwi_entry *entry) {
  struct fighter *fighter = push->fighter;
  uint32_t vector = find_held(fighter->names, entry->id.id, entry->incarnation);
  push->id = entry->id.id;
  pwi_history_row(fighter->names->workload.campaign->history, vector, key, push->row);
  push->call = begin_call(fighter->names, &(struct pwi_history_call){.session = fighter->session,
                                                                     .verb = PWI_HISTORY_PUSH,
                                                                     .vector = vector,
                                                                     .keys = &key,
                                                                     .count = 1,
                                                                     .rows = push->row});
  push->miss = begin_call(
      fighter->names, &(struct pwi_history_call){.session = fighter->session, .verb = PWI_HISTORY_MISS, .name = name});
}

/* Pushes to the vector that has the name, as far as this client knows. */
static void push_something(struct fighter *fighter, struct fought_push *push) {
  struct pwi_flow *flow;
  char name[16];
  *push = (struct fought_push){.fighter = fighter, .task.finished = pushed};
  name_of((size_t)pwi_random_below(fighter->client.random, NAMES), name);
  if (pwi_cluster_open_vector(&fighter->client, name, 0, &flow)) return;
  record_push(push, name, pwi_flow_entry(flow));
  push->is_busy = true;
  struct pwi_where where = {.keys = &key, .count = 1};
  pawl_status status =
      pwi_client_start(fighter->client.client, &push->task, flow, PWI_REQUEST_PUSH, &where, push->row, NULL);
  if (!status) return;
  push->is_busy = false;
  end_call(fighter->names, push->call, &(struct pwi_history_answer){.status = status});
  if (status != PAWL_NOT_FOUND)
    CAMPAIGN_FAIL(fighter->names->workload.campaign, "a push to %s was refused: %s", name, pawl_status_name(status));
}

/* --- a fighter's life ----------------------------------------------------------------------------------- */

static void fighter_timer(void *context, uint64_t cookie) {
  struct fighter *fighter = context;
  struct pwi_random *random = fighter->client.random;
  bool is_asking = false;
  (void)cookie;
  for (size_t i = 0; i < PUSHES && fighter->calls_left > 0; i++)
    if (!fighter->pushes[i].is_busy && pwi_random_chance(random, 0.5)) push_something(fighter, &fighter->pushes[i]);
  for (size_t i = 0; i < ASKS && fighter->calls_left > 0; i++) {
    if (!fighter->asks[i].is_busy && pwi_random_chance(random, 0.7)) {
      fighter->calls_left--;
      ask_something(fighter, &fighter->asks[i]);
    }
    is_asking |= fighter->asks[i].is_busy;
  }
  if (!is_asking && fighter->calls_left > 0) pwi_cluster_timer(&fighter->client, 20 * MS, 0);
}

static void fighter_started(void *context) {
  struct fighter *fighter = context;
  fighter->session = pwi_history_session(fighter->names->workload.campaign->history, fighter->client.name);
  pwi_cluster_timer(&fighter->client, (int64_t)pwi_random_below(fighter->client.random, 50 * MS), 0);
}

static void fighter_stopped(void *context) {
  struct fighter *fighter = context;
  for (size_t i = 0; i < ASKS; i++) fighter->asks[i].is_busy = false;
  for (size_t i = 0; i < PUSHES; i++) fighter->pushes[i].is_busy = false;
}

static pawl_status begin(struct pwi_workload *workload) {
  struct names *names = (struct names *)workload;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < FIGHTERS && !status; i++) {
    struct fighter *fighter = &names->fighters[i];
    fighter->names = names;
    fighter->calls_left = CALLS;
    fighter->client = (struct pwi_cluster_client){.job = "fight",
                                                  .started = fighter_started,
                                                  .stopped = fighter_stopped,
                                                  .timer = fighter_timer,
                                                  .context = fighter};
    snprintf(fighter->client.name, sizeof fighter->client.name, "fighter%u", (unsigned)i % FIGHTERS);
    status = pwi_campaign_client_add(workload->campaign, &fighter->client, true);
  }
  return status;
}

static bool is_fighting(const struct fighter *fighter) {
  bool is_busy = fighter->calls_left > 0 || !fighter->client.client;
  for (size_t i = 0; i < ASKS; i++) is_busy |= fighter->asks[i].is_busy;
  for (size_t i = 0; i < PUSHES; i++) is_busy |= fighter->pushes[i].is_busy;
  return is_busy;
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct names *names = (const struct names *)workload;
  for (size_t i = 0; i < FIGHTERS; i++)
    if (is_fighting(&names->fighters[i])) return true;
  return false;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct names *names = (const struct names *)workload;
  const struct fighter *fighter = &names->fighters[is_fighting(&names->fighters[0]) ? 0 : 1];
  snprintf(text, size, "%s, with %u calls left", fighter->client.name, fighter->calls_left);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static pawl_status read_row(struct names *names, const char *name, const struct pwi_entry *entry) {
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t row[WIDTH] = {0};
  uint32_t call =
      begin_call(names, &(struct pwi_history_call){.session = names->workload.campaign->checker_session,
                                                   .verb = PWI_HISTORY_PULL,
                                                   .vector = find_held(names, entry->id.id, entry->incarnation),
                                                   .keys = &key,
                                                   .count = 1});
  pawl_status status = pwi_workload_pull(&names->workload, name, &where, row);
  if (!status) end_call(names, call, &(struct pwi_history_answer){.rows = row});
  return status;
}

static pawl_status look_at(struct names *names, size_t i) {
  struct campaign *campaign = names->workload.campaign;
  struct pwi_history_answer answer = {.status = PAWL_NOT_FOUND};
  char name[16];
  name_of(i, name);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(campaign->checker.client), name);
  if (entry) answer = (struct pwi_history_answer){.id = entry->id.id, .incarnation = entry->incarnation};
  uint32_t call = begin_call(
      names, &(struct pwi_history_call){.session = campaign->checker_session, .verb = PWI_HISTORY_LOOK, .name = name});
  end_call(names, call, &answer);
  return entry ? read_row(names, name, entry) : PAWL_OK;
}

/* The disk of the manager may have been full at the end; another manager is started then. */
static pawl_status sync_checker(struct campaign *campaign) {
  for (int attempt = 0;; attempt++) {
    pawl_status said = PAWL_OK, status = pwi_cluster_ask(&campaign->checker, PWI_ASK_SYNC, NULL, &said);
    if (status || !pwi_campaign_is_journal_failure(said) || attempt == 100) return status ? status : said;
    status = pwi_cluster_run_for(&campaign->cluster, 50 * MS);
    if (status) return status;
  }
}

static pawl_status check(struct pwi_workload *workload) {
  struct names *names = (struct names *)workload;
  pawl_status status = sync_checker(workload->campaign);
  for (size_t i = 0; i < NAMES && !status; i++) status = look_at(names, i);
  return status;
}

const struct pwi_workload_ops pwi_workload_names = {
    .size = sizeof(struct names), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
