/* One run between processes.
 *
 * A worker copies its model at every look, with the time and the bytes until then. When all steps are made it
 * computes the objectives of these copies, so that looking does not delay the run. */
#include "real.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "bench/command/bench.h"
#include "crew.h"

#define PATIENCE (60 * PAWL_SECOND)
#define GROUP "bench/asap"
#define VECTOR "bench/weights"
#define LOOKS_MAX 2000

struct task {
  const struct pwi_asap_problem *problem;
  struct pwi_asap_setup setup;
  enum pwi_asap_way way;
};

struct gates {
  _Atomic uint32_t ready, vector;
};

struct look {
  double seconds, objective;
  uint64_t bytes;
};

struct result {
  uint64_t steps, bytes, expected, used, current;
  uint64_t by_used[PWI_ASAP_WORKERS_MAX], by_current[PWI_ASAP_WORKERS_MAX];
  uint32_t looks;
  struct look at[LOOKS_MAX];
};

struct worker {
  struct pwi_asap_member *member;
  const struct task *task;
  struct result *result;
  struct pwi_asap_learner learner;
  struct pwi_random random;
  float *weights, *before, *copies; /* the model; as it was pulled; at each look */
  struct pawl_peers *peers;
  struct pawl_reduce *reduce;
  struct pawl_vector *vector;
  struct pawl_group *group;
  uint64_t bytes; /* before the first step */
  double began;
};

/* --- sharing -------------------------------------------------------------------------------------------- */

static pawl_status open_reduce(struct worker *worker) {
  const struct pwi_asap_setup *setup = &worker->task->setup;
  struct pawl_tensor tensor = {worker->weights, worker->task->problem->features, PAWL_F32};
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  options.mode = setup->mode;
  options.graph = pwi_topology_info(setup->graph)->name;
  pawl_status status = pawl_peers_join(worker->member->session, GROUP, setup->workers, PATIENCE, &worker->peers);
  if (!status) status = pawl_reduce_open(worker->peers, "model", &tensor, 1, &options, PATIENCE, &worker->reduce);
  if (!status) status = pawl_reduce_step(worker->reduce, PATIENCE, NULL); /* makes the links */
  return status;
}

static pawl_status step_by_reduce(struct worker *worker, struct pawl_reduce_report *report) {
  return pawl_reduce_step(worker->reduce, PATIENCE, report);
}

/* The servers add up the changes of all workers, each divided by their number, so that all workers get the average
 * of their models: what an all-reduce computes. */
static pawl_status step_by_servers(struct worker *worker) {
  uint32_t count = worker->task->problem->features, workers = worker->task->setup.workers;
  struct pawl_task *task = NULL;
  for (uint32_t i = 0; i < count; i++) worker->before[i] = (worker->weights[i] - worker->before[i]) / (float)workers;
  pawl_status status = pawl_group_pushpull(worker->group, worker->vector, pawl_at_range(0, count), worker->before,
                                           worker->weights, &task);
  if (!status) status = pawl_task_finish(task, PATIENCE);
  if (!status) status = pawl_group_clock(worker->group, NULL);
  memcpy(worker->before, worker->weights, count * sizeof(float));
  return status;
}

static pawl_status open_vector(struct worker *worker) {
  struct gates *gates = worker->member->shared;
  struct pawl_session *session = worker->member->session;
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.size = worker->task->problem->features;
  options.layout = PAWL_LAYOUT_DENSE;
  pawl_status status = PAWL_OK;
  if (worker->member->index == 0) status = pawl_vector_create(session, VECTOR, &options, PATIENCE, &worker->vector);
  if (status) return status;
  pwi_asap_meet(worker->member, &gates->vector);
  if (!worker->vector) status = pawl_vector_open(session, VECTOR, PATIENCE, &worker->vector);
  if (!status) status = pawl_group_join(session, GROUP, worker->member->count, PATIENCE, &worker->group);
  if (!status) status = step_by_servers(worker); /* makes the links */
  return status;
}

/* With servers a byte is sent or received by a worker, between peers it is sent by one. */
static uint64_t bytes_of(const struct worker *worker) {
  struct pawl_session_figures figures;
  struct pawl_reduce_state state;
  if (worker->task->way == PWI_ASAP_REDUCE) {
    pawl_reduce_state(worker->reduce, &state);
    return state.bytes_sent;
  }
  pawl_session_figures(worker->member->session, &figures);
  return figures.bytes_sent + figures.bytes_received;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void look(struct worker *worker) {
  struct result *result = worker->result;
  size_t count = worker->task->problem->features;
  memcpy(worker->copies + result->looks * count, worker->weights, count * sizeof(float));
  result->at[result->looks++] =
      (struct look){.seconds = pwi_bench_now() - worker->began, .bytes = bytes_of(worker) - worker->bytes};
}

/* Computing is sleeping where only steps are counted. */
static void compute(struct worker *worker) {
  const struct pwi_asap_setup *setup = &worker->task->setup;
  if (!(setup->seconds > 0)) {
    pwi_asap_learn(&worker->learner, setup->batch, worker->weights);
    return;
  }
  double takes = (double)setup->step_ns * (1 + setup->jitter * (2 * pwi_random_unit(&worker->random) - 1));
  if (worker->member->index + 1 == setup->workers) takes *= setup->slow;
  nanosleep(&(struct timespec){(time_t)(takes / 1e9), (long)fmod(takes, 1e9)}, NULL);
}

static void count(struct result *result, const struct pawl_reduce_report *report) {
  result->steps++;
  result->expected += report->expected;
  result->used += report->used;
  result->current += report->current;
  if (report->used < PWI_ASAP_WORKERS_MAX) result->by_used[report->used]++;
  if (report->current < PWI_ASAP_WORKERS_MAX) result->by_current[report->current]++;
}

static pawl_status run_steps(struct worker *worker) {
  const struct pwi_asap_setup *setup = &worker->task->setup;
  bool counts = setup->seconds > 0;
  worker->began = pwi_bench_now();
  worker->bytes = bytes_of(worker);
  for (uint64_t step = 1; counts || step <= setup->rounds; step++) {
    struct pawl_reduce_report report = {0};
    compute(worker);
    pawl_status status =
        worker->task->way == PWI_ASAP_REDUCE ? step_by_reduce(worker, &report) : step_by_servers(worker);
    if (status) return status;
    if (counts && (pwi_bench_now() - worker->began >= setup->seconds || report.size < setup->workers)) break;
    count(worker->result, &report);
    if (!counts && step % PWI_ASAP_LOOK == 0) look(worker);
  }
  return PAWL_OK;
}

static pawl_status prepare(struct worker *worker) {
  const struct task *task = worker->task;
  size_t features = task->problem->features, looks = task->setup.rounds / PWI_ASAP_LOOK;
  worker->weights = pwi_alloc_zero(features, sizeof(float));
  worker->before = pwi_alloc_zero(features, sizeof(float));
  worker->copies = pwi_alloc_zero(task->setup.seconds > 0 ? 1 : looks + 1, features * sizeof(float));
  if (!worker->weights || !worker->before || !worker->copies) return PAWL_NO_MEMORY;
  memset(worker->copies, 1, (task->setup.seconds > 0 ? 1 : looks + 1) * features * sizeof(float)); /* no page faults */
  pwi_random_init(&worker->random, task->setup.seed, 100 + worker->member->index);
  return PAWL_OK;
}

/* The place of a worker in the graph is its rank, so its share is, too: the simulator computes the same. */
static pawl_status begin_learning(struct worker *worker) {
  const struct task *task = worker->task;
  uint32_t share = worker->peers ? pawl_peers_rank(worker->peers) : worker->member->index;
  return pwi_asap_learner_init(&worker->learner, task->problem, share, task->setup.workers, task->setup.rate,
                               task->setup.seed);
}

static pawl_status work(struct pwi_asap_member *member) {
  struct worker worker = {.member = member, .task = member->task, .result = member->result};
  struct gates *gates = member->shared;
  pawl_status status = prepare(&worker);
  if (!status) status = worker.task->way == PWI_ASAP_REDUCE ? open_reduce(&worker) : open_vector(&worker);
  if (!status) status = begin_learning(&worker);
  if (!status) {
    pwi_asap_meet(member, &gates->ready);
    status = run_steps(&worker);
    worker.result->bytes = bytes_of(&worker) - worker.bytes;
  }
  pawl_reduce_close(worker.reduce);
  for (uint32_t i = 0; i < worker.result->looks && !status; i++)
    worker.result->at[i].objective =
        pwi_asap_objective(worker.task->problem, worker.copies + (size_t)i * worker.task->problem->features);
  pwi_asap_learner_fini(&worker.learner);
  pwi_free(worker.copies);
  pwi_free(worker.before);
  pwi_free(worker.weights);
  return status;
}

/* --- the outcome ---------------------------------------------------------------------------------------- */

/* Without looks the figures are those of the whole run. */
static void add_counts(struct pwi_asap_outcome *outcome, const struct result *result, bool has_no_looks) {
  if (has_no_looks) {
    outcome->bytes += result->bytes;
    if (result->steps > outcome->rounds) outcome->rounds = result->steps;
  }
  outcome->steps += result->steps;
  outcome->expected += result->expected;
  outcome->used += result->used;
  outcome->current += result->current;
  for (size_t i = 0; i < PWI_ASAP_WORKERS_MAX; i++) {
    outcome->by_used[i] += result->by_used[i];
    outcome->by_current[i] += result->by_current[i];
  }
}

/* The figures at one look. */
static void sum_up(const struct pwi_asap_crew *crew, const struct task *task, uint32_t at,
                   struct pwi_asap_outcome *outcome) {
  outcome->rounds = (uint64_t)(at + 1) * PWI_ASAP_LOOK;
  outcome->objective = outcome->seconds = 0;
  outcome->bytes = 0;
  for (uint32_t i = 0; i < crew->count; i++) {
    const struct look *look = &((const struct result *)pwi_asap_crew_result(crew, i))->at[at];
    outcome->objective = fmax(outcome->objective, look->objective);
    outcome->seconds = fmax(outcome->seconds, look->seconds);
    outcome->bytes += look->bytes;
  }
  outcome->is_reached = outcome->objective <= (1 + task->setup.tolerance) * task->problem->optimum;
}

bool pwi_asap_run_real(const struct pwi_asap_plan *plan, const struct pwi_asap_setup *setup, enum pwi_asap_way way,
                       struct pwi_asap_outcome *outcome_out) {
  struct task task = {.problem = plan->problem, .setup = *setup, .way = way};
  struct pwi_asap_crew crew = {.command = plan->command,
                               .count = setup->workers,
                               .servers = way == PWI_ASAP_SERVERS ? 1 : 0,
                               .work = work,
                               .task = &task,
                               .result_size = sizeof(struct result),
                               .shared_size = sizeof(struct gates)};
  if (task.setup.rounds > LOOKS_MAX * PWI_ASAP_LOOK) task.setup.rounds = LOOKS_MAX * PWI_ASAP_LOOK;
  bool is_fine = pwi_asap_crew_run(&crew);
  if (is_fine) {
    uint32_t looks = ((const struct result *)pwi_asap_crew_result(&crew, 0))->looks;
    *outcome_out = (struct pwi_asap_outcome){.seconds = setup->seconds};
    for (uint32_t i = 0; i < looks && !outcome_out->is_reached; i++) sum_up(&crew, &task, i, outcome_out);
    for (uint32_t i = 0; i < crew.count; i++) add_counts(outcome_out, pwi_asap_crew_result(&crew, i), looks == 0);
  }
  pwi_asap_crew_free(&crew);
  return is_fine;
}
