/* A server without a replica that dies for good, and an operator that gives it up (docs/faults.md, 10).
 *
 * Two clients push ones, each to one key. At a random moment a server process is killed. Its keys are those of which
 * it had the only copy; the durable view of that moment tells which. Then the operator gives the server up. Pushes to
 * its keys may be lost, and sessions that had pushed there may be told so (CLUSTER_LOST). A push claims its whole arc,
 * so such a session may be told so about any key of an arc that contains lost ones by then. Nothing else may happen:
 * all other keys contain every acknowledged push, no other call fails, and keys that were given up contain every push
 * that began after the death and was acknowledged. */
#include <stddef.h>
#include <stdio.h>

#include "ring/place.h"
#include "sim/campaign/workloads/workload.h"

#define ROWS "loss/rows"
#define LOSS_KEYS 60
#define PUSHERS 2
#define PUSHES 4
#define CALLS 120

struct loss;

struct loss_push {
  struct pwi_task task;
  struct pusher *pusher;
  bool is_busy;
  uint64_t key;
  int64_t begun, value;
};

struct pusher {
  struct loss *loss;
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  uint32_t calls_left;
  struct loss_push pushes[PUSHES];
};

struct loss {
  struct pwi_workload workload;
  struct pusher pushers[PUSHERS];
  struct pwi_cluster_client client; /* the operator */
  struct pwi_asking asking;
  bool is_asking, is_given_up;
  bool is_dead;                        /* the server */
  uint64_t nodes[PWI_CLUSTER_SERVERS]; /* ids of all its shards */
  size_t node_count, gone_count;       /* the manager does not know the first `gone_count` shards any more */
  int64_t died_at;
  bool is_lost[LOSS_KEYS];
  int64_t sure[LOSS_KEYS], called[LOSS_KEYS];
};

static void broken(const struct loss *loss, const char *what, uint64_t key, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(loss->workload.campaign, "%s: key %llu, %s, is %lld, not %lld", what, (unsigned long long)key,
                loss->is_lost[key] ? "given up" : "kept", (long long)found, (long long)wanted);
}

/* --- pushing -------------------------------------------------------------------------------------------- */

static void pushed(struct pwi_task *task) {
  struct loss_push *push = (struct loss_push *)((char *)task - offsetof(struct loss_push, task));
  struct pusher *pusher = push->pusher;
  struct loss *loss = pusher->loss;
  push->is_busy = false;
  if (task->status == PAWL_CLUSTER_LOST && loss->is_dead) { /* this session cannot push there any more */
    pawl_status status = pwi_sim_restart(loss->workload.campaign->cluster.sim, pusher->client.node);
    (void)status; /* inside a callback it is PAWL_OK */
    return;
  }
  if (task->status) {
    broken(loss, pawl_status_name(task->status), push->key, 0, 0);
    return;
  }
  loss->workload.campaign->figures.pushes++;
  loss->sure[push->key] += !loss->is_lost[push->key] || push->begun > loss->died_at;
}

static void push_one(struct pusher *pusher, struct loss_push *push) {
  struct loss *loss = pusher->loss;
  *push = (struct loss_push){.pusher = pusher, .is_busy = true, .value = 1, .task.finished = pushed};
  push->key = pwi_random_below(pusher->client.random, LOSS_KEYS);
  push->begun = pwi_campaign_now(loss->workload.campaign);
  struct pwi_where where = {.keys = &push->key, .count = 1};
  loss->called[push->key]++;
  pusher->calls_left--;
  pawl_status status =
      pwi_client_start(pusher->client.client, &push->task, pusher->flow, PWI_REQUEST_PUSH, &where, &push->value, NULL);
  if (status) broken(loss, "a push was refused", push->key, (int64_t)status, 0);
}

static void pusher_timer(void *context, uint64_t cookie) {
  struct pusher *pusher = context;
  struct pwi_random *random = pusher->client.random;
  (void)cookie;
  pwi_cluster_timer(&pusher->client, 1 + (int64_t)pwi_random_below(random, 60 * MS), 0);
  if (pwi_cluster_open_vector(&pusher->client, ROWS, 0, &pusher->flow)) return;
  for (size_t i = 0; i < PUSHES && pusher->calls_left > 0; i++)
    if (!pusher->pushes[i].is_busy && pwi_random_chance(random, 0.7)) push_one(pusher, &pusher->pushes[i]);
}

static void pusher_started(void *context) { pwi_cluster_timer(&((struct pusher *)context)->client, 20 * MS, 0); }

static void pusher_stopped(void *context) {
  struct pusher *pusher = context;
  for (size_t i = 0; i < PUSHES; i++) pusher->pushes[i].is_busy = false;
}

/* --- the death ------------------------------------------------------------------------------------------ */

static bool is_dead_node(const struct loss *loss, uint64_t node) {
  for (size_t i = 0; i < loss->node_count; i++)
    if (loss->nodes[i] == node) return true;
  return false;
}

/* Marks keys of which the dead server has the only copy, by a durable view. A view that was under way when the server
 * died may still give it an arc. */
static void mark_lost(struct loss *loss, const struct pwi_view *view) {
  struct pwi_place place = {.size = LOSS_KEYS};
  for (uint64_t key = 0; key < LOSS_KEYS; key++) {
    const struct pwi_arc *arc = &view->arcs[pwi_view_arc_of(view, pwi_place_position(&place, key))];
    size_t full = pwi_arc_full(arc), there = 0;
    for (size_t i = 0; i < full; i++) there += is_dead_node(loss, arc->chain[i].node.id);
    if (loss->is_lost[key] || there < full) continue;
    loss->is_lost[key] = true;
    loss->sure[key] = 0;
  }
}

static void view_made(struct pwi_workload *workload, const struct pwi_view *view) {
  struct loss *loss = (struct loss *)workload;
  if (loss->is_dead && view->arc_count > 0) mark_lost(loss, view);
}

static void note_nodes(struct loss *loss, size_t process) {
  const struct pwi_cluster *cluster = &loss->workload.campaign->cluster;
  const struct pwi_cluster_process *is = &cluster->processes[process];
  loss->node_count = 0;
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    struct pwi_server_state state;
    pwi_server_state(cluster->servers[i].server, &state);
    if (state.node) loss->nodes[loss->node_count++] = state.node;
  }
}

/* The process does not come back; another may start in its place. One process must stay that is not leaving: a server
 * that leaves keeps its arcs until another server takes them. */
static void kill_server(struct loss *loss) {
  struct campaign *campaign = loss->workload.campaign;
  struct havoc *havoc = &campaign->havoc;
  size_t count = campaign->cluster.process_count, staying = 0;
  size_t process = (size_t)pwi_random_below(loss->client.random, count);
  for (size_t i = 0; i < count; i++)
    staying += i != process && i != havoc->leaving && havoc->is_started[i] && pwi_cluster_is_up(&campaign->cluster, i);
  if (staying == 0 || !pwi_cluster_is_up(&campaign->cluster, process)) return;
  note_nodes(loss, process);
  if (loss->node_count == 0) return;
  mark_lost(loss, pwi_campaign_ledger(campaign)->view);
  loss->is_dead = true;
  loss->died_at = pwi_campaign_now(campaign);
  havoc->is_started[process] = false;
  if (havoc->leaving == process) havoc->leaving = PWI_CLUSTER_PROCESSES;
  pwi_cluster_kill(&campaign->cluster, process);
  campaign->figures.server_kills++;
}

/* --- the operator --------------------------------------------------------------------------------------- */

static void give_up(struct loss *loss);

/* The manager may not have noticed the death yet. A shard that is not in the view has left, or was given up before.
 * If one shard has left, another may still have data. An order about one shard is about its whole process. */
static void given_up(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct loss *loss = (struct loss *)((char *)asking - offsetof(struct loss, asking));
  (void)payload, (void)size;
  loss->is_asking = false;
  loss->gone_count += status == PAWL_NODE_GONE;
  loss->is_given_up = status == PAWL_OK || loss->gone_count == loss->node_count;
  loss->workload.campaign->figures.given_up += loss->is_given_up;
  if (status == PAWL_NODE_GONE && !loss->is_given_up) give_up(loss);
}

static void give_up(struct loss *loss) {
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, loss->nodes[loss->gone_count]);
  pwi_write_u8(&writer, 1);
  loss->asking = (struct pwi_asking){.replied = given_up};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(loss->client.client, &loss->asking, PWI_ASK_GIVE_UP, writer.data, writer.size);
  if (status) broken(loss, "the operator cannot ask", 0, (int64_t)status, 0);
  loss->is_asking = !status;
  pwi_writer_fini(&writer);
}

static void operator_timer(void *context, uint64_t cookie) {
  struct loss *loss = context;
  (void)cookie;
  if (loss->is_given_up) return;
  bool is_early = !loss->workload.campaign->is_quiet && !pwi_random_chance(loss->client.random, 0.06);
  if (!loss->is_dead && !is_early) kill_server(loss);
  if (loss->is_dead && !loss->is_asking && !is_early) give_up(loss);
  pwi_cluster_timer(&loss->client, 50 * MS, 0);
}

static void operator_started(void *context) { pwi_cluster_timer(&((struct loss *)context)->client, 50 * MS, 0); }
static void operator_stopped(void *context) { ((struct loss *)context)->is_asking = false; }

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct loss *loss = (struct loss *)workload;
  struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 1, .size = LOSS_KEYS, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_SPARSE};
  pawl_status status = pwi_workload_vector(workload, ROWS, &options);
  for (uint32_t i = 0; i < PUSHERS && !status; i++) {
    struct pusher *pusher = &loss->pushers[i];
    pusher->loss = loss;
    pusher->calls_left = CALLS;
    pusher->client = (struct pwi_cluster_client){
        .job = "loss", .started = pusher_started, .stopped = pusher_stopped, .timer = pusher_timer, .context = pusher};
    snprintf(pusher->client.name, sizeof pusher->client.name, "pusher%u", i % PUSHERS);
    status = pwi_campaign_client_add(workload->campaign, &pusher->client, true);
  }
  loss->client = (struct pwi_cluster_client){.name = "undertaker",
                                             .job = "loss",
                                             .started = operator_started,
                                             .stopped = operator_stopped,
                                             .timer = operator_timer,
                                             .context = loss};
  return status ? status : pwi_campaign_client_add(workload->campaign, &loss->client, true);
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct loss *loss = (const struct loss *)workload;
  for (size_t i = 0; i < PUSHERS; i++) {
    const struct pusher *pusher = &loss->pushers[i];
    if (pusher->calls_left > 0) return true;
    for (size_t k = 0; k < PUSHES; k++)
      if (pusher->pushes[k].is_busy) return true;
  }
  return !loss->is_given_up;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct loss *loss = (const struct loss *)workload;
  snprintf(text, size, "clients of a lost server, with %u and %u calls left; server %llu is %s",
           loss->pushers[0].calls_left, loss->pushers[1].calls_left, (unsigned long long)loss->nodes[0],
           loss->is_given_up ? "given up" : "not given up");
}

static pawl_status check(struct pwi_workload *workload) {
  struct loss *loss = (struct loss *)workload;
  struct pwi_where where = {.range = {0, LOSS_KEYS}};
  int64_t found[LOSS_KEYS];
  pawl_status status = pwi_workload_pull(workload, ROWS, &where, found);
  for (uint64_t key = 0; key < LOSS_KEYS && !status; key++) {
    if (found[key] < loss->sure[key]) broken(loss, "a push is lost", key, found[key], loss->sure[key]);
    if (found[key] > loss->called[key]) broken(loss, "a push counts twice", key, found[key], loss->called[key]);
  }
  return status;
}

const struct pwi_workload_ops pwi_workload_loss = {.size = sizeof(struct loss),
                                                   .begin = begin,
                                                   .is_busy = is_busy,
                                                   .describe = describe,
                                                   .check = check,
                                                   .view = view_made};
