/* Two clients that fight over a few names: they create, delete and restore vectors, and push to the vectors that they
 * find under the names.
 *
 * Every ask is carried out at most once, however often it is sent, and its reply is that of the time when it was
 * carried out. So for each name an order of all asks must explain all replies (name_history.c). A server may say that
 * it does not have a vector only after an ask has deleted the vector; so such an answer belongs to the history, too.
 * In the end a vector that is left contains every acknowledged push of its last incarnation, once. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/campaign/workloads/name_history.h"
#include "sim/campaign/workloads/workload.h"

#define FIGHTERS 2
#define NAMES 3
#define ASKS 2 /* under way for each fighter */
#define PUSHES 3
#define CALLS 36     /* of each fighter */
#define HELD_MAX 128 /* incarnations of vectors */

static const struct pawl_vector_options fought_options = {
    .type = PAWL_I64, .width = 1, .size = 10, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};
static const uint64_t key = 7;
static const int64_t one = 1;

struct fighter;

struct fought_ask {
  struct pwi_asking asking;
  struct fighter *fighter;
  bool is_busy;
  enum pwi_ask what;
  size_t name;
  int64_t begun;
};

struct fought_push {
  struct pwi_task task;
  struct fighter *fighter;
  bool is_busy;
  size_t name, held;
  int64_t begun, value;
};

struct fighter {
  struct names *names;
  struct pwi_cluster_client client;
  uint32_t calls_left;
  struct fought_ask asks[ASKS];
  struct fought_push pushes[PUSHES];
};

/* One incarnation of a vector, and the pushes to it. */
struct held {
  uint64_t id;
  uint32_t incarnation;
  int64_t acknowledged, unknown;
};

struct names {
  struct pwi_workload workload;
  struct fighter fighters[FIGHTERS];
  struct pwi_name_op ops[NAMES][PWI_NAME_OPS_MAX];
  size_t op_count[NAMES];
  struct held held[HELD_MAX];
  size_t held_count;
};

static void name_of(size_t name, char text[16]) { snprintf(text, 16, "fight/v%u", (unsigned)name % NAMES); }

/* --- the history ---------------------------------------------------------------------------------------- */

static void note(struct names *names, size_t name, const struct pwi_name_op *op) {
  if (names->op_count[name] == PWI_NAME_OPS_MAX)
    CAMPAIGN_FAIL(names->workload.campaign, "the history of a name is full");
  else
    names->ops[name][names->op_count[name]++] = *op;
}

static enum pwi_name_op_kind kind_of(enum pwi_ask what) {
  return what == PWI_ASK_CREATE ? PWI_NAME_CREATE : what == PWI_ASK_DELETE ? PWI_NAME_DELETE : PWI_NAME_RESTORE;
}

static void note_ask(const struct fought_ask *ask, enum pwi_name_op_end end, uint64_t id) {
  struct names *names = ask->fighter->names;
  note(names, ask->name,
       &(struct pwi_name_op){.kind = kind_of(ask->what),
                             .end = end,
                             .id = id,
                             .begun = ask->begun,
                             .ended = pwi_campaign_now(names->workload.campaign)});
}

static size_t find_held(struct names *names, uint64_t id, uint32_t incarnation) {
  size_t i = 0;
  while (i < names->held_count && (names->held[i].id != id || names->held[i].incarnation != incarnation)) i++;
  if (i == HELD_MAX) {
    CAMPAIGN_FAIL(names->workload.campaign, "too many vectors of the same names");
    return 0;
  }
  if (i == names->held_count) names->held[names->held_count++] = (struct held){.id = id, .incarnation = incarnation};
  return i;
}

/* --- asks ----------------------------------------------------------------------------------------------- */

/* A manager whose journal fails cannot know whether the record is there. */
static bool is_unknown(pawl_status status) {
  return status == PAWL_IO || status == PAWL_NO_SPACE || status == PAWL_OUTCOME_UNKNOWN;
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
  note_ask(ask, is_refused ? PWI_NAME_REFUSED : status ? PWI_NAME_UNKNOWN : PWI_NAME_DONE, id);
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
  ask->name = (size_t)pwi_random_below(random, NAMES);
  ask->begun = pwi_campaign_now(fighter->names->workload.campaign);
  name_of(ask->name, name);
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
  struct held *held = &names->held[push->held];
  push->is_busy = false;
  if (!task->status) {
    held->acknowledged++;
    names->workload.campaign->figures.pushes++;
  } else if (task->status == PAWL_NOT_FOUND) {
    note(names, push->name,
         &(struct pwi_name_op){.kind = PWI_NAME_MISSING,
                               .id = held->id,
                               .begun = push->begun,
                               .ended = pwi_campaign_now(names->workload.campaign)});
  } else if (task->status != PAWL_RESTORED) {
    CAMPAIGN_FAIL(names->workload.campaign, "%s cannot push to vector %llu: %s", fighter->client.name,
                  (unsigned long long)held->id, pawl_status_name(task->status));
  }
}

/* Pushes to the vector that has the name, as far as this client knows. */
static void push_something(struct fighter *fighter, struct fought_push *push) {
  struct names *names = fighter->names;
  struct pwi_flow *flow;
  char name[16];
  *push = (struct fought_push){.fighter = fighter, .task.finished = pushed, .value = one};
  push->name = (size_t)pwi_random_below(fighter->client.random, NAMES);
  name_of(push->name, name);
  if (names->op_count[push->name] + 8 > PWI_NAME_OPS_MAX) return; /* leaves room for asks */
  if (pwi_cluster_open_vector(&fighter->client, name, 0, &flow)) return;
  const struct pwi_entry *entry = pwi_flow_entry(flow);
  push->held = find_held(names, entry->id.id, entry->incarnation);
  push->begun = pwi_campaign_now(names->workload.campaign);
  push->is_busy = true;
  struct pwi_where where = {.keys = &key, .count = 1};
  pawl_status status =
      pwi_client_start(fighter->client.client, &push->task, flow, PWI_REQUEST_PUSH, &where, &push->value, NULL);
  if (status) push->is_busy = false;
  if (status && status != PAWL_NOT_FOUND)
    CAMPAIGN_FAIL(names->workload.campaign, "a push to %s was refused: %s", name, pawl_status_name(status));
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
  pwi_cluster_timer(&fighter->client, (int64_t)pwi_random_below(fighter->client.random, 50 * MS), 0);
}

static void fighter_stopped(void *context) {
  struct fighter *fighter = context;
  for (size_t i = 0; i < ASKS; i++) {
    if (fighter->asks[i].is_busy) note_ask(&fighter->asks[i], PWI_NAME_UNKNOWN, 0);
    fighter->asks[i].is_busy = false;
  }
  for (size_t i = 0; i < PUSHES; i++) {
    struct fought_push *push = &fighter->pushes[i];
    if (push->is_busy) fighter->names->held[push->held].unknown++;
    push->is_busy = false;
  }
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

static pawl_status check_value(struct names *names, const char *name, const struct pwi_entry *entry) {
  const struct held *held = &names->held[find_held(names, entry->id.id, entry->incarnation)];
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t value = 0;
  pawl_status status = pwi_workload_pull(&names->workload, name, &where, &value);
  if (!status && (value < held->acknowledged || value > held->acknowledged + held->unknown))
    CAMPAIGN_FAIL(names->workload.campaign, "%s (%llu.%u) contains %lld pushes, of which %lld were acknowledged", name,
                  (unsigned long long)held->id, held->incarnation, (long long)value, (long long)held->acknowledged);
  return status;
}

static void describe_history(const struct pwi_name_op *ops, size_t count, char *text, size_t size) {
  static const char letters[] = {[PWI_NAME_CREATE] = 'C',
                                 [PWI_NAME_DELETE] = 'D',
                                 [PWI_NAME_RESTORE] = 'R',
                                 [PWI_NAME_MISSING] = 'M',
                                 [PWI_NAME_SEEN] = 'S'};
  static const char ends[] = {[PWI_NAME_DONE] = '+', [PWI_NAME_REFUSED] = '-', [PWI_NAME_UNKNOWN] = '?'};
  size_t used = 0;
  text[0] = 0;
  for (size_t i = 0; i < count && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, " %c%c%llu", letters[ops[i].kind], ends[ops[i].end],
                             (unsigned long long)ops[i].id);
}

static pawl_status check_name(struct names *names, size_t i) {
  struct pwi_cluster_client *checker = &names->workload.campaign->checker;
  int64_t now = pwi_campaign_now(names->workload.campaign);
  char name[16], text[200];
  name_of(i, name);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(checker->client), name);
  struct pwi_name_op seen = {.kind = PWI_NAME_SEEN, .begun = now, .ended = now};
  if (entry) seen.id = entry->id.id, seen.incarnation = entry->incarnation;
  pawl_status status = entry ? check_value(names, name, entry) : PAWL_OK;
  note(names, i, &seen);
  if (pwi_name_history_is_possible(names->ops[i], names->op_count[i])) return status;
  describe_history(names->ops[i], names->op_count[i], text, sizeof text);
  CAMPAIGN_FAIL(names->workload.campaign, "no order explains the asks about %s:%s", name, text);
  return status;
}

static pawl_status check(struct pwi_workload *workload) {
  struct names *names = (struct names *)workload;
  pawl_status said = PAWL_OK;
  pawl_status status = pwi_cluster_ask(&workload->campaign->checker, PWI_ASK_SYNC, NULL, &said);
  if (!status) status = said;
  for (size_t i = 0; i < NAMES && !status; i++) status = check_name(names, i);
  return status;
}

const struct pwi_workload_ops pwi_workload_names = {
    .size = sizeof(struct names), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
