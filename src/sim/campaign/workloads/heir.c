/* A worker that stays dead once it was declared dead, and an heir that takes over its work (docs/jobs.md, "Fencing").
 *
 * The worker pushes ones, several at a time. From time to time the heir has it retired; faults retire it as well. As
 * soon as the heir's membership says that the worker is retired, the heir reads all rows with a PUSHPULL of zeros.
 * From then on no push of that worker may change anything, whenever the worker continues, whatever servers have heard
 * of the membership, and every push of which the worker ever gets an acknowledgement must be in the rows that the
 * heir has read. The worker's process is then started again, as another sender.
 *
 * The workload causes the dangerous situations by itself: for a while the manager does not reach the worker, and
 * perhaps not the servers, which the worker does reach. Then the heir knows of the death, and they do not. */
#include <stddef.h>
#include <stdio.h>

#include "sim/campaign/workloads/workload.h"

#define WILL "heir/work"
#define WILL_KEYS 12
#define PUSHES 6 /* under way */
#define ROUNDS 5
#define CALLS 40           /* pushes of a worker in a round, at most */
#define CUT_CALLS 300      /* and while it is cut off from the manager */
#define CUT_NS (2200 * MS) /* longer than the manager waits for servers that lack a membership */

struct heir;

struct doomed_push {
  struct pwi_task task;
  struct heir *heir;
  bool is_busy;
  uint64_t key, sender; /* `sender`: the worker that called it */
  int64_t value;
};

struct heir {
  struct pwi_workload workload;
  struct pwi_cluster_client worker, client;
  struct pwi_flow *worker_flow, *flow;
  struct doomed_push pushes[PUSHES];
  uint32_t rounds_left, calls;
  int64_t cut_until;       /* until then the worker does not hear the manager */
  uint64_t sender;         /* the worker's, from its first push on; 0: it has not pushed in this round */
  bool is_fenced;          /* the heir has read the rows of this round */
  int64_t base[WILL_KEYS]; /* before this round */
  int64_t called[WILL_KEYS], acknowledged[WILL_KEYS];
  int64_t read[WILL_KEYS]; /* by the heir */

  struct pwi_task task; /* the heir's PUSHPULL */
  bool is_reading, is_asking;
  /* senders that the heir's membership has listed as live, and that the manager has retired by its order; of the
   * heir's present process */
  uint64_t seen, told;
  int64_t zeros[WILL_KEYS], rows[WILL_KEYS];
  struct pwi_asking asking;
  uint64_t asked; /* the sender that it wants to be retired */
};

static void broken(struct heir *heir, const char *what, uint64_t key, int64_t found, int64_t wanted) {
  CAMPAIGN_FAIL(heir->workload.campaign, "%s: sender %llu, key %llu is %lld, not %lld", what,
                (unsigned long long)heir->sender, (unsigned long long)key, (long long)found, (long long)wanted);
}

/* --- the worker ----------------------------------------------------------------------------------------- */

static void pushed(struct pwi_task *task) {
  struct doomed_push *push = (struct doomed_push *)((char *)task - offsetof(struct doomed_push, task));
  struct heir *heir = push->heir;
  push->is_busy = false;
  if (task->status == PAWL_NODE_GONE) return;
  if (task->status) {
    broken(heir, "a push of a worker that may die failed", push->key, (int64_t)task->status, 0);
    return;
  }
  heir->workload.campaign->figures.pushes++;
  heir->acknowledged[push->key]++;
  int64_t least = heir->base[push->key] + heir->acknowledged[push->key];
  if (heir->is_fenced && heir->read[push->key] < least)
    broken(heir, "a push was acknowledged that the heir has not seen", push->key, heir->read[push->key], least);
}

static bool push_one(struct heir *heir, struct doomed_push *push) {
  struct pwi_random *random = heir->worker.random;
  *push = (struct doomed_push){.heir = heir, .task.finished = pushed, .value = 1};
  push->key = pwi_random_below(random, WILL_KEYS);
  struct pwi_where where = {.keys = &push->key, .count = 1};
  push->is_busy = true;
  heir->called[push->key]++;
  pawl_status status = pwi_client_start(heir->worker.client, &push->task, heir->worker_flow, PWI_REQUEST_PUSH, &where,
                                        &push->value, NULL);
  if (!status) return true;
  push->is_busy = false;
  heir->called[push->key]--;
  if (status != PAWL_NODE_GONE) broken(heir, "a push was refused", push->key, (int64_t)status, 0);
  return false;
}

/* Begins a round when the heir has read the rows of the last one. */
static bool may_push(struct heir *heir) {
  struct pwi_client_state state;
  pwi_client_state(heir->worker.client, &state);
  if (heir->rounds_left == 0 || state.sender == 0 || state.is_dead) return false;
  if (heir->sender == 0) heir->sender = state.sender;
  return heir->sender == state.sender && heir->calls > 0;
}

/* A dead worker starts again as another process, once the heir has read its rows. */
static void worker_timer(void *context, uint64_t cookie) {
  struct heir *heir = context;
  (void)cookie;
  struct pwi_client_state state;
  pwi_client_state(heir->worker.client, &state);
  if (state.is_dead && (heir->sender == 0 || heir->sender != state.sender || heir->is_fenced)) {
    pawl_status status = pwi_sim_restart(heir->workload.campaign->cluster.sim, heir->worker.node);
    (void)status; /* inside a callback it is PAWL_OK */
    return;
  }
  size_t most = pwi_campaign_now(heir->workload.campaign) < heir->cut_until ? 1 : PUSHES;
  if (!pwi_cluster_open_vector(&heir->worker, WILL, 0, &heir->worker_flow) && may_push(heir))
    for (size_t i = 0; i < most && heir->calls > 0; i++)
      if (!heir->pushes[i].is_busy) {
        heir->calls--;
        if (!push_one(heir, &heir->pushes[i])) break;
      }
  if (heir->rounds_left > 0)
    pwi_cluster_timer(&heir->worker, 1 + (int64_t)pwi_random_below(heir->worker.random, 15 * MS), 0);
}

static void worker_started(void *context) {
  struct heir *heir = context;
  if (heir->rounds_left > 0) pwi_cluster_timer(&heir->worker, 10 * MS, 0);
}

static void worker_stopped(void *context) {
  struct heir *heir = context;
  for (size_t i = 0; i < PUSHES; i++) heir->pushes[i].is_busy = false;
}

/* --- the heir ------------------------------------------------------------------------------------------- */

static bool is_same_process(const struct heir *heir) {
  struct pwi_client_state state;
  if (!heir->worker.client) return false;
  pwi_client_state(heir->worker.client, &state);
  return state.sender == heir->sender && !state.is_dead;
}

/* The next round begins with other ids; the worker of this round may believe for a while that it lives. */
static void end_round(struct heir *heir) {
  if (!heir->is_fenced || heir->is_reading || is_same_process(heir)) return;
  for (size_t i = 0; i < PUSHES; i++)
    if (heir->pushes[i].is_busy) return;
  for (uint64_t key = 0; key < WILL_KEYS; key++) {
    heir->base[key] = heir->read[key];
    heir->called[key] = heir->acknowledged[key] = 0;
  }
  heir->sender = 0;
  heir->is_fenced = false;
  heir->calls = CALLS;
  heir->rounds_left--;
}

static void check_rows(struct heir *heir) {
  for (uint64_t key = 0; key < WILL_KEYS; key++) {
    int64_t least = heir->base[key] + heir->acknowledged[key], most = heir->base[key] + heir->called[key];
    if (heir->is_fenced) least = most = heir->read[key];
    if (heir->rows[key] < least) broken(heir, "the heir lacks pushes", key, heir->rows[key], least);
    if (heir->rows[key] > most) broken(heir, "a push of a dead worker was applied", key, heir->rows[key], most);
    heir->read[key] = heir->rows[key];
  }
}

static void read_all(struct pwi_task *task) {
  struct heir *heir = (struct heir *)((char *)task - offsetof(struct heir, task));
  heir->is_reading = false;
  if (task->status) {
    broken(heir, "the heir cannot read", 0, (int64_t)task->status, 0);
    return;
  }
  heir->workload.campaign->figures.fenced += !heir->is_fenced;
  check_rows(heir);
  heir->is_fenced = true;
}

static void read_rows(struct heir *heir) {
  struct pwi_where where = {.range = {0, WILL_KEYS}};
  heir->is_reading = true;
  heir->task = (struct pwi_task){.finished = read_all};
  pawl_status status = pwi_client_start(heir->client.client, &heir->task, heir->flow, PWI_REQUEST_PUSHPULL, &where,
                                        heir->zeros, heir->rows);
  if (status) broken(heir, "the heir's call was refused", 0, (int64_t)status, 0);
}

static void retired(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct heir *heir = (struct heir *)((char *)asking - offsetof(struct heir, asking));
  (void)payload, (void)size;
  heir->is_asking = false;
  if (!status) heir->told = heir->asked;
}

static void ask_to_retire(struct heir *heir) {
  struct pwi_writer writer = {0};
  heir->asked = heir->sender;
  pwi_write_u64(&writer, heir->sender);
  heir->asking = (struct pwi_asking){.replied = retired};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(heir->client.client, &heir->asking, PWI_ASK_RETIRE, writer.data, writer.size);
  if (status) broken(heir, "the heir cannot ask", 0, (int64_t)status, 0);
  heir->is_asking = !status;
  pwi_writer_fini(&writer);
}

/* The worker does not hear the manager from now on, and goes on pushing. Perhaps no server hears it, either. */
static void cut_off(struct heir *heir) {
  struct campaign *campaign = heir->workload.campaign;
  const struct pwi_cluster *cluster = &campaign->cluster;
  struct pwi_sim_node manager = cluster->manager_node;
  int64_t until = pwi_campaign_now(campaign) + CUT_NS;
  bool is_of_all = pwi_random_chance(&heir->workload.random, 0.6);
  if (campaign->is_quiet || until > campaign->havoc.end || (is_of_all && !pwi_havoc_claim(campaign, until))) return;
  for (size_t i = 0; i < cluster->server_count && is_of_all; i++)
    pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, manager, cluster->servers[i].node, CUT_NS);
  pwi_havoc_do(campaign, PWI_SIM_FAULT_PART, manager, heir->worker.node, CUT_NS);
  campaign->figures.manager_cuts += is_of_all;
  heir->cut_until = until;
  heir->calls = CUT_CALLS;
}

/* A sender that the membership does not list is dead if an earlier membership has listed it. */
static bool knows_death(struct heir *heir) {
  const struct pwi_membership *membership = pwi_client_membership(heir->client.client);
  struct pwi_sender sender = {heir->sender};
  if (heir->sender == 0) return false;
  if (pwi_membership_is_live(membership, sender)) {
    heir->seen = heir->sender;
    return false;
  }
  return pwi_membership_is_retired(membership, sender) || heir->seen == heir->sender || heir->told == heir->sender;
}

static void heir_timer(void *context, uint64_t cookie) {
  struct heir *heir = context;
  struct pwi_random *random = heir->client.random;
  (void)cookie;
  end_round(heir);
  if (heir->rounds_left == 0) return;
  if (!pwi_cluster_open_vector(&heir->client, WILL, 0, &heir->flow) && !heir->is_reading) {
    if (knows_death(heir))
      read_rows(heir); /* again and again: the rows must not change any more */
    else if (heir->sender != 0 && !heir->is_asking && pwi_random_chance(random, 0.05)) {
      if (pwi_random_chance(&heir->workload.random, 0.5)) cut_off(heir);
      ask_to_retire(heir);
    }
  }
  pwi_cluster_timer(&heir->client, 1 + (int64_t)pwi_random_below(random, heir->is_fenced ? 60 * MS : 10 * MS), 0);
}

static void heir_started(void *context) {
  struct heir *heir = context;
  if (heir->rounds_left > 0) pwi_cluster_timer(&heir->client, 10 * MS, 0);
}

static void heir_stopped(void *context) {
  struct heir *heir = context;
  heir->is_reading = heir->is_asking = false;
  heir->seen = heir->told = 0;
}

/* --- all of it ------------------------------------------------------------------------------------------ */

static pawl_status begin(struct pwi_workload *workload) {
  struct heir *heir = (struct heir *)workload;
  struct pawl_vector_options options = {
      .type = PAWL_I64, .width = 1, .size = WILL_KEYS, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};
  heir->rounds_left = ROUNDS;
  heir->calls = CALLS;
  pawl_status status = pwi_workload_vector(workload, WILL, &options);
  heir->worker = (struct pwi_cluster_client){.name = "doomed",
                                             .job = "work",
                                             .stays_dead = true,
                                             .started = worker_started,
                                             .stopped = worker_stopped,
                                             .timer = worker_timer,
                                             .context = heir};
  heir->client = (struct pwi_cluster_client){.name = "heir",
                                             .job = "work",
                                             .started = heir_started,
                                             .stopped = heir_stopped,
                                             .timer = heir_timer,
                                             .context = heir};
  if (!status) status = pwi_campaign_client_add(workload->campaign, &heir->worker, true);
  return status ? status : pwi_campaign_client_add(workload->campaign, &heir->client, true);
}

/* A round that began is brought to its end. */
static bool is_busy(const struct pwi_workload *workload) { return ((const struct heir *)workload)->rounds_left > 0; }

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct heir *heir = (const struct heir *)workload;
  snprintf(text, size, "the heir of sender %llu, %s, with %u rounds left", (unsigned long long)heir->sender,
           heir->is_reading  ? "which reads"
           : heir->is_fenced ? "which has read"
                             : "which waits",
           heir->rounds_left);
}

static pawl_status check(struct pwi_workload *workload) {
  struct heir *heir = (struct heir *)workload;
  struct pwi_where where = {.range = {0, WILL_KEYS}};
  pawl_status status = pwi_workload_pull(workload, WILL, &where, heir->rows);
  for (uint64_t key = 0; key < WILL_KEYS && !status; key++)
    if (heir->rows[key] != heir->base[key])
      broken(heir, "a push of a dead worker was applied in the end", key, heir->rows[key], heir->base[key]);
  return status;
}

const struct pwi_workload_ops pwi_workload_heir = {
    .size = sizeof(struct heir), .begin = begin, .is_busy = is_busy, .describe = describe, .check = check};
