/* Clients that call functions of one another (docs/calls.md).
 *
 * A call carries its own number, and the function returns it. A call runs at most once at each node, whatever is sent
 * again; a call with an answer ran once, and the answer is its own; a call that ends with NODE_GONE ran nowhere. Every
 * call ends. */
#include <stddef.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "sim/campaign/workloads/workload.h"

#define CALLERS 3
#define CALLS 20               /* of each caller */
#define JOBS (CALLERS * CALLS) /* calls of all */
#define RUNS_MAX 64            /* functions that run at one node */

struct callers;
struct call_maker;

struct call_job {
  struct pwi_calling calling; /* must be first */
  struct call_maker *caller;
  uint32_t number;
  struct pwi_workload_target node, self; /* when the call was made */
  bool is_begun, is_over;
  uint32_t runs; /* of the function, at the node that was called */
};

struct call_maker {
  struct callers *callers;
  struct pwi_cluster_client client;
  uint32_t index, made;
  struct pwi_callee *callee;
  struct pwi_running *running[RUNS_MAX]; /* by cookie of the timer, less 1 */
};

struct callers {
  struct pwi_workload workload;
  struct call_maker all[CALLERS];
  struct call_job jobs[JOBS];
  uint32_t job_count;
};

static void broken(const struct callers *callers, uint32_t job, const char *what, pawl_status status) {
  CAMPAIGN_FAIL(callers->workload.campaign, "call %u %s: %s", job, what, pawl_status_name(status));
}

/* --- being called --------------------------------------------------------------------------------------- */

static void run(void *context, struct pwi_running *running) {
  struct call_maker *caller = context;
  struct callers *callers = caller->callers;
  uint32_t number = running->item->size == 4 ? pwi_get_u32(running->item->argument) : JOBS;
  size_t slot = 0;
  while (slot < RUNS_MAX && caller->running[slot]) slot++;
  if (number >= callers->job_count || slot == RUNS_MAX) {
    broken(callers, number, "was never made", PAWL_OK);
    return;
  }
  if (++callers->jobs[number].runs > 1) broken(callers, number, "ran twice", PAWL_OK);
  caller->running[slot] = running;
  pwi_cluster_timer(&caller->client, (int64_t)pwi_random_below(caller->client.random, 30 * MS), slot + 1);
}

static void end_run(struct call_maker *caller, size_t slot) {
  struct pwi_running *running = caller->running[slot];
  unsigned char *bytes = pwi_alloc(4);
  caller->running[slot] = NULL;
  if (bytes) pwi_put_u32(bytes, pwi_get_u32(running->item->argument));
  pwi_callee_end(caller->callee, running, PAWL_OK, bytes, bytes ? 4 : 0);
}

/* --- calling -------------------------------------------------------------------------------------------- */

static void check_leg(const struct call_job *job, const struct pwi_call_leg *leg) {
  struct callers *callers = job->caller->callers;
  const struct pwi_workload *workload = &callers->workload;
  bool are_there = pwi_workload_is_there(workload, &job->node) && pwi_workload_is_there(workload, &job->self);
  bool is_known =
      leg->status == PAWL_OK || (!are_there && (leg->status == PAWL_NODE_GONE || leg->status == PAWL_OUTCOME_UNKNOWN ||
                                                leg->status == PAWL_UNSUPPORTED));
  if (!is_known) broken(callers, job->number, "failed", leg->status);
  if (leg->status == PAWL_NODE_GONE && job->runs > 0)
    broken(callers, job->number, "ran at a node that was gone", PAWL_OK);
  if (leg->status) return;
  const struct pwi_call_result *result = &leg->back.results[0];
  if (leg->back.count != 1 || result->status)
    broken(callers, job->number, "lacks its result", result->status);
  else if (job->runs != 1)
    broken(callers, job->number, "was answered and did not run once", PAWL_OK);
  else if (result->size != 4 || pwi_get_u32(result->bytes) != job->number)
    broken(callers, job->number, "got the answer of another call", PAWL_OK);
}

static void ended(struct pwi_calling *calling) {
  struct call_job *job = (struct call_job *)calling;
  struct call_maker *caller = job->caller;
  if (job->is_over) broken(caller->callers, job->number, "ended twice", PAWL_OK);
  job->is_over = true;
  for (uint32_t i = 0; i < calling->leg_count; i++) check_leg(job, &calling->legs[i]);
  caller->callers->workload.campaign->figures.calls += calling->leg_count == 1 && !calling->legs[0].status;
}

static struct pwi_workload_target draw_node(struct call_maker *caller) {
  return pwi_workload_target(&caller->callers->all[pwi_random_below(caller->client.random, CALLERS)].client);
}

static void make_call(struct call_maker *caller) {
  struct callers *callers = caller->callers;
  struct pwi_workload_target node = draw_node(caller);
  if (node.sender == 0 || callers->job_count == JOBS) return;
  struct call_job *job = &callers->jobs[callers->job_count];
  *job = (struct call_job){.calling.ended = ended,
                           .caller = caller,
                           .number = callers->job_count++,
                           .node = node,
                           .self = pwi_workload_target(&caller->client)};
  unsigned char argument[4];
  struct pawl_graph_call call = {"work", argument, sizeof argument};
  struct pwi_call_graph *graph = NULL;
  uint32_t culprit;
  pwi_put_u32(argument, job->number);
  caller->made++;
  pawl_status status = pwi_call_graph_create(&call, 1, NULL, 0, &graph, &culprit);
  if (!status) status = pwi_client_call(caller->client.client, &job->calling, node.sender, NULL, graph);
  job->is_begun = !status;
  if (!status) return;
  pwi_call_graph_destroy(graph);
  broken(callers, job->number, "could not begin", status);
}

static void caller_timer(void *context, uint64_t cookie) {
  struct call_maker *caller = context;
  if (cookie > 0) {
    end_run(caller, (size_t)cookie - 1);
    return;
  }
  if (caller->made >= CALLS) return;
  make_call(caller);
  pwi_cluster_timer(&caller->client, 1 + (int64_t)pwi_random_below(caller->client.random, 120 * MS), 0);
}

/* --- a caller's life ------------------------------------------------------------------------------------ */

static void caller_started(void *context) {
  struct call_maker *caller = context;
  pawl_status status = pwi_client_offer(caller->client.client, run, caller, &caller->callee);
  if (status) pwi_sim_fail(caller->callers->workload.campaign->cluster.sim, status, "a caller cannot offer a function");
  pwi_cluster_timer(&caller->client, 20 * MS, 0);
}

/* Its own calls end with it, and so do functions that it runs. */
static void caller_stopped(void *context) {
  struct call_maker *caller = context;
  struct callers *callers = caller->callers;
  for (size_t i = 0; i < RUNS_MAX; i++) caller->running[i] = NULL;
  for (uint32_t i = 0; i < callers->job_count; i++)
    if (callers->jobs[i].caller == caller) callers->jobs[i].is_over = true;
}

static pawl_status begin(struct pwi_workload *workload) {
  struct callers *callers = (struct callers *)workload;
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < CALLERS && !status; i++) {
    struct call_maker *caller = &callers->all[i];
    caller->callers = callers;
    caller->index = i;
    caller->client = (struct pwi_cluster_client){.job = "calls",
                                                 .listens = true,
                                                 .started = caller_started,
                                                 .stopped = caller_stopped,
                                                 .timer = caller_timer,
                                                 .context = caller};
    snprintf(caller->client.name, sizeof caller->client.name, "caller%u", i % CALLERS);
    status = pwi_campaign_client_add(workload->campaign, &caller->client, true);
  }
  return status;
}

static bool is_busy(const struct pwi_workload *workload) {
  const struct callers *callers = (const struct callers *)workload;
  for (uint32_t i = 0; i < CALLERS; i++)
    if (callers->all[i].made < CALLS) return true;
  for (uint32_t i = 0; i < callers->job_count; i++)
    if (!callers->jobs[i].is_over) return true;
  return false;
}

static void describe(const struct pwi_workload *workload, char *text, size_t size) {
  const struct callers *callers = (const struct callers *)workload;
  uint32_t i = 0;
  while (i < callers->job_count && callers->jobs[i].is_over) i++;
  snprintf(text, size, "call %u of %u", i, callers->job_count);
}

static void fini(struct pwi_workload *workload) {
  struct callers *callers = (struct callers *)workload;
  for (uint32_t i = 0; i < callers->job_count; i++)
    if (callers->jobs[i].is_begun) pwi_calling_fini(&callers->jobs[i].calling);
}

const struct pwi_workload_ops pwi_workload_caller = {
    .size = sizeof(struct callers), .begin = begin, .is_busy = is_busy, .describe = describe, .fini = fini};
