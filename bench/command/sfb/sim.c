/* One simulated run of `pawl-bench sfb`: the real manager, clients and engines of factors, and workers whose computing takes
 * virtual time. Time and bytes are counted from the moment at which all workers have opened their factors. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bench/command/member.h"
#include "peer/factor/factor.h"
#include "sfb.h"
#include "sim/cluster.h"

#define GROUP "bench/.sfb"
#define TICK (20 * PWI_SIM_MILLISECOND)
#define SETUP_LIMIT (3600 * PWI_SIM_SECOND)
#define RUN_LIMIT (1000000 * PWI_SIM_SECOND)

enum { TIMER_TICK, TIMER_STEP, TIMER_WAKE };

struct run;

struct hand {
  struct run *run;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_bench_member member; /* by its rank it chooses its rows */
  struct pwi_factor *engine;
  struct factor_batch batch;
  struct pwi_random random;
  float *w, *u;
  bool is_open, is_woken;
  uint64_t clock, bytes; /* sent before the beginning */
  double apply_s, compute_s;
  double objective;
};

struct run {
  const struct pwi_sfb_problem *problem;
  const struct pwi_sfb_setup *setup;
  struct pwi_cluster cluster;
  struct pwi_sfb_network *network;
  struct hand *hands;
  uint32_t open, heard; /* heard: workers whose commits one applies, itself included */
  int64_t began;
  bool has_begun, is_over;
  uint64_t wire;
  struct pwi_sfb_outcome outcome;
};

static void broken(const struct hand *hand, const char *what, pawl_status status) {
  pwi_sim_fail(hand->run->cluster.sim, status ? status : PAWL_NO_MEMORY, "worker %u %s: %s%s%s", hand->index, what,
               pawl_status_text(status), hand->engine ? ": " : "",
               hand->engine ? pwi_factor_problem(hand->engine) : "");
}

/* --- computing ------------------------------------------------------------------------------------------ */

static uint32_t row_at(const struct hand *hand, uint64_t i) {
  uint32_t workers = hand->run->setup->workers, rows = hand->run->problem->shape.rows;
  return (uint32_t)((hand->member.rank + workers * (hand->clock * hand->run->setup->batch + i)) % rows);
}

static double scale_of(const struct hand *hand) {
  const struct pwi_sfb_setup *setup = hand->run->setup;
  double all = setup->rate_is_each ? 1 : hand->run->heard;
  return -setup->rate / (all * setup->batch) / (setup->falls ? sqrt((double)hand->clock + 1) : 1);
}

static void compute_pairs(struct hand *hand) {
  const struct pwi_sfb_problem *problem = hand->run->problem;
  char why[FACTOR_PROBLEM_MAX];
  pawl_status status = PAWL_OK;
  pwi_factor_batch_clear(&hand->batch);
  for (uint32_t i = 0; i < hand->run->setup->batch && !status; i++) {
    uint32_t row = row_at(hand, i);
    pwi_sfb_error(problem, hand->w, row, hand->u);
    const struct pawl_factor_vector x = {problem->x + (size_t)row * problem->shape.features, NULL,
                                         problem->shape.features};
    const struct pawl_factor_vector u = {hand->u, NULL, problem->shape.classes};
    status = pwi_factor_batch_add(&hand->batch, &x, &u, why);
  }
  if (!status) status = pwi_factor_batch_seal(&hand->batch, scale_of(hand), 1, why);
  if (status) broken(hand, why, status);
}

/* The matrix is read now, and the pairs are sent when computing them has taken its time. */
static void compute(struct hand *hand) {
  const struct pwi_sfb_setup *setup = hand->run->setup;
  double takes = setup->row_s * setup->batch * (1 + setup->jitter * (2 * pwi_random_unit(&hand->random) - 1));
  takes += hand->apply_s;
  hand->apply_s = 0;
  hand->compute_s += takes;
  compute_pairs(hand);
  pwi_cluster_timer(&hand->client, (int64_t)(takes * (double)PWI_SIM_SECOND), TIMER_STEP);
}

/* --- looking -------------------------------------------------------------------------------------------- */

/* The largest distance to the mean of all matrices, by the length of the mean. */
static double disagreement(const struct run *run) {
  size_t values = (size_t)run->problem->shape.classes * run->problem->shape.features;
  double *mean = pwi_alloc_zero(values, sizeof *mean), length = 0, largest = 0;
  if (!mean) return (double)NAN;
  for (uint32_t k = 0; k < run->setup->workers; k++)
    for (size_t i = 0; i < values; i++) mean[i] += (double)run->hands[k].w[i] / run->setup->workers;
  for (size_t i = 0; i < values; i++) length += mean[i] * mean[i];
  for (uint32_t k = 0; k < run->setup->workers; k++) {
    double distance = 0;
    for (size_t i = 0; i < values; i++) {
      double off = (double)run->hands[k].w[i] - mean[i];
      distance += off * off;
    }
    largest = fmax(largest, distance);
  }
  pwi_free(mean);
  return length > 0 ? sqrt(largest / length) : 0;
}

static bool is_whole(const struct run *run) { return !run->setup->graph || run->setup->forwards; }

/* All have the same matrix where everyone hears everyone in BSP, so that one of them is enough. The others look only
 * when the one before them has reached the target. */
static bool have_reached(struct run *run) {
  bool is_one_enough = is_whole(run) && !run->setup->graph && run->setup->mode == PAWL_FACTOR_BSP;
  for (uint32_t i = 0; i < (is_one_enough ? 1 : run->setup->workers); i++) {
    struct hand *hand = &run->hands[i];
    hand->objective = pwi_sfb_objective(run->problem, hand->w, hand->u);
    run->outcome.objective = hand->objective;
    if (hand->objective > run->setup->target) return false;
  }
  return true;
}

static bool has_ended(const struct run *run) {
  for (uint32_t i = 0; i < run->setup->workers; i++)
    if (run->hands[i].clock < run->setup->rounds) return false;
  return true;
}

/* The slowest worker has made another step. */
static void look(struct run *run, const struct hand *hand) {
  struct pwi_sfb_outcome *outcome = &run->outcome;
  for (uint32_t i = 0; i < run->setup->workers; i++)
    if (run->hands[i].clock < hand->clock) return;
  if (outcome->marks < PWI_SFB_MARKS && hand->clock == (uint64_t)1 << outcome->marks)
    outcome->disagreement[outcome->marks++] = disagreement(run);
  bool is_due = run->setup->look > 0 && run->setup->target > 0 && hand->clock % run->setup->look == 0;
  if (is_due && have_reached(run)) run->is_over = outcome->is_reached = true;
  if (has_ended(run)) run->is_over = true;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static uint64_t sent_by(const struct hand *hand) {
  struct pawl_factor_state state;
  pwi_factor_state(hand->engine, &state);
  return state.sent;
}

static void begin_all(struct run *run) {
  run->has_begun = true;
  run->began = pwi_sim_now(run->cluster.sim);
  run->wire = *pwi_sfb_network_bytes(run->network);
  for (uint32_t i = 0; i < run->setup->workers; i++) {
    run->hands[i].bytes = sent_by(&run->hands[i]);
    compute(&run->hands[i]);
  }
}

static void step_over(struct hand *hand) {
  struct run *run = hand->run;
  struct pawl_factor_report report;
  pawl_status status = pwi_factor_end(hand->engine, &report);
  if (status) {
    broken(hand, "could not commit", status);
    return;
  }
  if (!hand->is_open) {
    hand->is_open = true;
    if (++run->open == run->setup->workers) begin_all(run);
    return;
  }
  hand->clock = report.clock;
  hand->apply_s += (double)report.commits * run->setup->batch * run->setup->apply_s;
  if (run->is_over) return;
  if (hand->clock > run->outcome.rounds) run->outcome.rounds = hand->clock;
  look(run, hand);
  if (!run->is_over && hand->clock < run->setup->rounds) compute(hand);
}

static void drive(struct hand *hand) {
  while (hand->engine && !pwi_sim_failure(hand->run->cluster.sim)) {
    enum pwi_factor_want want = pwi_factor_want(hand->engine);
    if (want == PWI_FACTOR_DONE)
      step_over(hand);
    else if (want == PWI_FACTOR_WORK)
      pwi_factor_worked(hand->engine, pwi_factor_work(hand->engine));
    else
      return;
  }
}

static void wakes(void *context) {
  struct hand *hand = context;
  if (hand->is_woken) return;
  hand->is_woken = true;
  pwi_cluster_timer(&hand->client, 0, TIMER_WAKE);
}

static void closed(void *context) { (void)context; }

/* --- beginning ------------------------------------------------------------------------------------------ */

static void open_engine(struct hand *hand) {
  const struct pwi_sfb_setup *setup = hand->run->setup;
  const struct pwi_sfb_shape *shape = &hand->run->problem->shape;
  struct pwi_factor_config config = {.peers = hand->member.peers,
                                     .net = hand->client.net,
                                     .group = hand->member.group,
                                     .name = "w",
                                     .life = hand->index + 1,
                                     .matrix = hand->w,
                                     .shape = {shape->features, shape->classes, false, FACTOR_F32},
                                     .mode = setup->mode,
                                     .staleness = setup->staleness,
                                     .is_complete = !setup->graph,
                                     .file = setup->graph,
                                     .seed = 1,
                                     .forwards = setup->forwards,
                                     .context = hand,
                                     .wakes = wakes,
                                     .closed = closed};
  hand->batch.shape = config.shape;
  pwi_random_init(&hand->random, setup->seed, 100 + hand->member.rank); /* the same delays in every run */
  pawl_status status = pwi_factor_create(&config, &hand->engine);
  if (status)
    broken(hand, "could not open factors", status);
  else
    pwi_factor_begin_open(hand->engine);
}

static void hand_timer(void *context, uint64_t cookie) {
  struct hand *hand = context;
  if (cookie == TIMER_TICK) {
    if (!hand->engine && pwi_bench_member_is_complete(&hand->member)) open_engine(hand);
    if (!hand->is_open) pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
  }
  if (cookie == TIMER_WAKE) hand->is_woken = false;
  if (cookie == TIMER_STEP) pwi_factor_begin(hand->engine, hand->batch.bytes, hand->batch.size);
  drive(hand);
}

static void hand_started(void *context) {
  struct hand *hand = context;
  pwi_bench_member_join(&hand->member, &hand->run->cluster, &hand->client, GROUP, hand->run->setup->workers);
  pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
}

static pawl_status add_hand(struct run *run, uint32_t index) {
  const struct pwi_sfb_shape *shape = &run->problem->shape;
  struct hand *hand = &run->hands[index];
  *hand = (struct hand){.run = run, .index = index};
  hand->w = pwi_alloc_zero((size_t)shape->classes * shape->features, sizeof *hand->w);
  hand->u = pwi_alloc_zero(shape->classes, sizeof *hand->u);
  if (!hand->w || !hand->u) return PAWL_NO_MEMORY;
  hand->client = (struct pwi_cluster_client){
      .job = "sfb", .listens = true, .started = hand_started, .timer = hand_timer, .context = hand};
  snprintf(hand->client.name, sizeof hand->client.name, "w%u", index % 1000);
  return pwi_cluster_client_add(&run->cluster, &hand->client);
}

/* --- the run -------------------------------------------------------------------------------------------- */

static void tune(struct pwi_sim_config *config, void *context) {
  struct run *run = context;
  config->fabric = pwi_sfb_network_fabric(run->network);
  config->plane_chance = 0; /* links only */
  config->split_chance = config->gap_chance = 0;
  config->socket_bytes = (size_t)16 << 20;
  config->trace = config->checks = false;
  config->limits.links = 4 * PWI_SFB_WORKERS_MAX;
}

static bool is_coming(void *context) { return !((struct run *)context)->has_begun; }
static bool is_running(void *context) { return !((struct run *)context)->is_over; }

static pawl_status carry_out(struct run *run) {
  struct pwi_cluster_config config = {.seed = run->setup->seed, .tune = tune, .context = run};
  run->heard = run->setup->workers;
  if (!is_whole(run)) run->heard = (uint32_t)pwi_graph_in(run->setup->graph, 0).count + 1;
  pawl_status status = pwi_sfb_network_create(run->setup, &run->network);
  if (!status) status = pwi_cluster_open(&run->cluster, &config);
  for (uint32_t i = 0; i < run->setup->workers && !status; i++) status = add_hand(run, i);
  if (!status) status = pwi_cluster_run_while(&run->cluster, is_coming, run, SETUP_LIMIT);
  if (!status) status = pwi_cluster_run_while(&run->cluster, is_running, run, RUN_LIMIT);
  return status;
}

static void conclude(struct run *run) {
  struct pwi_sfb_outcome *outcome = &run->outcome;
  struct factor_shape shape = run->hands[0].batch.shape;
  struct pawl_range rows = {0, shape.rows};
  outcome->seconds = (double)(pwi_sim_now(run->cluster.sim) - run->began) * 1e-9;
  outcome->wire_bytes = *pwi_sfb_network_bytes(run->network) - run->wire;
  outcome->hash = pwi_factor_matrix_hash(&shape, rows, run->hands[0].w);
  outcome->is_same = true;
  for (uint32_t i = 0; i < run->setup->workers; i++) {
    struct hand *hand = &run->hands[i];
    outcome->compute_s += hand->compute_s / run->setup->workers;
    outcome->commit_bytes += sent_by(hand) - hand->bytes;
    outcome->is_same &= pwi_factor_matrix_hash(&shape, rows, hand->w) == outcome->hash;
    if (outcome->is_reached || run->setup->look == 0) continue;
    double objective = pwi_sfb_objective(run->problem, hand->w, hand->u);
    if (i == 0 || objective > outcome->objective) outcome->objective = objective;
  }
}

/* The cluster has called no `stopped`: engines live longer than their nets. */
static void release(struct run *run) {
  for (uint32_t i = 0; run->hands && i < run->setup->workers; i++) {
    pwi_factor_destroy(run->hands[i].engine);
    pwi_factor_batch_fini(&run->hands[i].batch);
    pwi_free(run->hands[i].w);
    pwi_free(run->hands[i].u);
  }
  pwi_free(run->hands);
  pwi_sfb_network_destroy(run->network);
}

pawl_status pwi_sfb_simulate(const struct pwi_sfb_problem *problem, const struct pwi_sfb_setup *setup,
                             struct pwi_sfb_outcome *outcome_out, char *why, size_t why_size) {
  struct run run = {.problem = problem, .setup = setup};
  run.hands = pwi_alloc_zero(setup->workers, sizeof *run.hands);
  pawl_status status = run.hands ? carry_out(&run) : PAWL_NO_MEMORY;
  const char *failure = run.cluster.sim ? pwi_sim_failure(run.cluster.sim) : NULL;
  snprintf(why, why_size, "%s", failure ? failure : pawl_status_text(status));
  if (!status) {
    conclude(&run);
    *outcome_out = run.outcome;
  }
  pwi_cluster_close(&run.cluster);
  release(&run);
  return status;
}
