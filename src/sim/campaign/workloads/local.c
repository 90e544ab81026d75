/* A vector that a client holds locally, two others that push to it and pull from it, and one that only pulls.
 *
 * The rows live in one process: they are lost with it, and survive when the process is declared dead and joins again
 * under another id. While the process lives, its rows contain every acknowledged push to it once, and a pull shows at
 * least the pushes that were acknowledged before it began, and all earlier pushes of its own session. */
#include <stddef.h>
#include <stdio.h>

#include "sim/campaign/workloads/workload.h"

#define ROWS "local/rows"
#define VISITORS 3 /* the last only pulls: no earlier push of its own protects its reads */
#define CALLS 30   /* of each visitor */
#define LIVES 64   /* of the process that holds the rows */
#define APART_NS (700 * MS)

struct local;

struct visitor {
  struct local *local;
  struct pwi_cluster_client client;
  uint32_t calls_left;
  struct pwi_task push, pull;
  bool is_pushing, is_pulling;
  uint32_t push_life, pull_life;
  struct pwi_workload_target holder, self; /* when the calls were made */
  uint64_t stranger;                       /* the last id of the holder that it called without knowing it */
  int64_t one, least, seen;
};

/* One life of the process. */
struct local_life {
  int64_t called, acknowledged;
};

struct local {
  struct pwi_workload workload;
  struct pwi_cluster_client host;
  bool is_open; /* the present process holds the rows */
  struct local_life lives[LIVES];
  struct visitor visitors[VISITORS];
};

static const uint64_t key = 3;

static void broken(const struct local *local, const char *what, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(local->workload.campaign, "%s: %lld, not %lld", what, (long long)found, (long long)wanted);
}

/* --- the process that holds the rows -------------------------------------------------------------------- */

static void host_timer(void *context, uint64_t cookie) {
  struct local *local = context;
  (void)cookie;
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(local->host.client), ROWS);
  if (!entry) {
    pwi_cluster_timer(&local->host, 20 * MS, 0);
    return;
  }
  pawl_status status = pwi_client_open_local(local->host.client, entry->id);
  if (status) broken(local, "a vector cannot be held locally", (int64_t)status, 0);
  local->is_open = !status;
}

static void host_started(void *context) { pwi_cluster_timer(&((struct local *)context)->host, 10 * MS, 0); }
static void host_stopped(void *context) { ((struct local *)context)->is_open = false; }

/* --- visitors ------------------------------------------------------------------------------------------- */

/* Calls fail with the node that they name, and only then, or with the visitor, if it was declared dead itself. A visitor
 * that pushed to an earlier id of the same process can push to the new one. If its membership did not have the holder
 * when it first called, its calls to that id may fail for good. */
static bool is_gone(const struct visitor *visitor, pawl_status status) {
  const struct pwi_workload *workload = &visitor->local->workload;
  bool is_known = status == PAWL_NODE_GONE || status == PAWL_UNSUPPORTED || status == PAWL_OUTCOME_UNKNOWN ||
                  status == PAWL_NOT_FOUND;
  bool are_there = pwi_workload_is_there(workload, &visitor->holder) && pwi_workload_is_there(workload, &visitor->self);
  return is_known && (!are_there || visitor->stranger == visitor->holder.sender);
}

static void rest(struct visitor *visitor) {
  pwi_cluster_timer(&visitor->client, (int64_t)pwi_random_below(visitor->client.random, 80 * MS), 0);
}

static void pulled(struct pwi_task *task) {
  struct visitor *visitor = (struct visitor *)((char *)task - offsetof(struct visitor, pull));
  struct local *local = visitor->local;
  visitor->is_pulling = false;
  if (task->status && !is_gone(visitor, task->status))
    broken(local, "a local vector cannot be read", (int64_t)task->status, 0);
  if (!task->status) {
    int64_t most = local->lives[visitor->pull_life].called;
    local->workload.campaign->figures.local_pulls++;
    if (visitor->seen < visitor->least) broken(local, "a local vector lacks pushes", visitor->seen, visitor->least);
    if (visitor->seen > most) broken(local, "a push to a local vector counts twice", visitor->seen, most);
  }
  if (!visitor->is_pushing) rest(visitor);
}

static void pushed(struct pwi_task *task) {
  struct visitor *visitor = (struct visitor *)((char *)task - offsetof(struct visitor, push));
  struct local *local = visitor->local;
  visitor->is_pushing = false;
  if (task->status && !is_gone(visitor, task->status))
    broken(local, "a push to a local vector failed", (int64_t)task->status, 0);
  if (!task->status) {
    local->lives[visitor->push_life].acknowledged++;
    local->workload.campaign->figures.local_pushes++;
  }
  if (!visitor->is_pulling) rest(visitor);
}

static bool knows_holder(const struct visitor *visitor) {
  const struct pwi_membership_sender *sender =
      pwi_membership_find(pwi_client_membership(visitor->client.client), (struct pwi_sender){visitor->holder.sender});
  return sender && !sender->retired && sender->address[0];
}

static void visit(struct visitor *visitor, struct pwi_flow *flow) {
  struct local *local = visitor->local;
  struct pwi_where where = {.keys = &key, .count = 1};
  uint32_t life = local->host.incarnation % LIVES;
  bool pushes = visitor != &local->visitors[VISITORS - 1];
  visitor->push_life = visitor->pull_life = life;
  visitor->holder = pwi_workload_target(&local->host);
  visitor->self = pwi_workload_target(&visitor->client);
  if (!knows_holder(visitor)) visitor->stranger = visitor->holder.sender;
  visitor->one = 1;
  visitor->is_pushing = pushes;
  visitor->is_pulling = true;
  visitor->least = local->lives[life].acknowledged + pushes;
  local->lives[life].called += pushes;
  visitor->push = (struct pwi_task){.finished = pushed};
  visitor->pull = (struct pwi_task){.finished = pulled};
  struct pwi_client *client = visitor->client.client;
  pawl_status status = PAWL_OK;
  if (pushes) status = pwi_client_start(client, &visitor->push, flow, PWI_REQUEST_PUSH, &where, &visitor->one, NULL);
  visitor->is_pushing &= !status;
  if (!status) status = pwi_client_start(client, &visitor->pull, flow, PWI_REQUEST_PULL, &where, NULL, &visitor->seen);
  visitor->is_pulling &= !status;
  if (status && !is_gone(visitor, status)) broken(local, "a call to a local vector was refused", (int64_t)status, 0);
  if (status && !visitor->is_pushing) rest(visitor);
}

/* Another process takes the address of the one that holds the rows. The last visitor, whose pull is under way, does not
 * hear of it, and reaches that address before it reaches the manager. */
static void replace_holder(struct local *local) {
  struct campaign *campaign = local->workload.campaign;
  struct pwi_sim_node visitor = local->visitors[VISITORS - 1].client.node;
  if (campaign->is_quiet || pwi_campaign_now(campaign) + APART_NS > campaign->havoc.end) return;
  pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, visitor, campaign->cluster.manager_node, APART_NS);
  pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, visitor, local->host.node, APART_NS / 2);
  pwi_havoc_do(campaign, PWI_SIM_FAULT_KILL, local->host.node, PWI_SIM_ALL, 20 * MS);
}

/* The present id of the process, if it holds the rows. */
static uint64_t find_host(const struct local *local) {
  struct pwi_client_state state = {0};
  if (local->is_open) pwi_client_state(local->host.client, &state);
  return state.sender;
}

static void visitor_timer(void *context, uint64_t cookie) {
  struct visitor *visitor = context;
  struct local *local = visitor->local;
  struct pwi_flow *flow;
  uint64_t node = find_host(local);
  (void)cookie;
  if (visitor->calls_left == 0) return;
  if (visitor->is_pushing || visitor->is_pulling || node == 0 ||
      pwi_cluster_open_vector(&visitor->client, ROWS, node, &flow)) {
    pwi_cluster_timer(&visitor->client, 20 * MS, 0);
    return;
  }
  visitor->calls_left--;
  visit(visitor, flow);
  bool is_last = visitor == &local->visitors[VISITORS - 1];
  if (is_last && pwi_random_chance(&local->workload.random, 0.1)) replace_holder(local);
}

static void visitor_started(void *context) { rest(context); }

static void visitor_stopped(void *context) {
  struct visitor *visitor = context;
  visitor->stranger = 0;
  visitor->is_pushing = visitor->is_pulling = false;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct local *local = (struct local *)workload;
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
  pawl_status status = pwi_workload_vector(workload, ROWS, &options);
  local->host = (struct pwi_cluster_client){.name = "holder",
                                            .job = "local",
                                            .listens = true,
                                            .started = host_started,
                                            .stopped = host_stopped,
                                            .timer = host_timer,
                                            .context = local};
  if (!status) status = pwi_campaign_client_add(workload->campaign, &local->host, true);
  for (uint32_t i = 0; i < VISITORS && !status; i++) {
    struct visitor *visitor = &local->visitors[i];
    visitor->local = local;
    visitor->calls_left = CALLS;
    visitor->client = (struct pwi_cluster_client){.job = "local",
                                                  .started = visitor_started,
                                                  .stopped = visitor_stopped,
                                                  .timer = visitor_timer,
                                                  .context = visitor};
    snprintf(visitor->client.name, sizeof visitor->client.name, "visitor%u", i % VISITORS);
    status = pwi_campaign_client_add(workload->campaign, &visitor->client, true);
  }
  return status;
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct local *local = (const struct local *)workload;
  for (size_t i = 0; i < VISITORS; i++) {
    const struct visitor *visitor = &local->visitors[i];
    if (visitor->calls_left > 0 || visitor->is_pushing || visitor->is_pulling) return true;
  }
  return false;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct local *local = (const struct local *)workload;
  snprintf(text, size, "visitors of a local vector, with %u, %u and %u calls left", local->visitors[0].calls_left,
           local->visitors[1].calls_left, local->visitors[2].calls_left);
}

/* The rows of the present process, by a client that made no call before. */
static pawl_status check(struct pwi_workload *workload) {
  struct local *local = (struct local *)workload;
  struct pwi_cluster_client *checker = &workload->campaign->checker;
  struct pwi_where where = {.keys = &key, .count = 1};
  const struct local_life *life = &local->lives[local->host.incarnation % LIVES];
  struct pwi_flow *flow;
  struct pwi_task task;
  int64_t seen = 0;
  uint64_t node = find_host(local);
  if (node == 0) return PAWL_OK; /* a process that has just started holds nothing */
  pawl_status status = pwi_cluster_open_vector(checker, ROWS, node, &flow);
  if (!status) status = pwi_cluster_call(checker, flow, PWI_REQUEST_PULL, &where, NULL, &seen, &task);
  if (!status) status = task.status;
  if (status) broken(local, "a local vector cannot be read in the end", (int64_t)status, 0);
  if (seen < life->acknowledged) broken(local, "a push to a local vector was lost", seen, life->acknowledged);
  if (seen > life->called) broken(local, "a push to a local vector counts twice", seen, life->called);
  return status;
}

const struct pwi_workload_ops pwi_workload_local = {
    .size = sizeof(struct local), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
