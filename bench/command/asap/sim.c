/* One simulated run of `pawl-bench asap`: the real manager, clients and reduce engines, and workers whose
 * computing takes virtual time.
 *
 * The first reduce of every worker is of the model 0 and makes the links. Time and everything else is counted
 * from the moment at which all workers have made it. */
#include <stdio.h>
#include <string.h>

#include "asap.h"
#include "base/memory.h"
#include "bench/command/member.h"
#include "peer/reduce/reduce.h"
#include "sim/cluster.h"

#define GROUP "bench/.asap"
#define TICK (20 * PWI_SIM_MILLISECOND)
#define SETUP_LIMIT (600 * PWI_SIM_SECOND)
#define RUN_LIMIT (1000000 * PWI_SIM_SECOND)
#define WORK_SHARE 8 /* a processor adds a model in this fraction of the time in which a card moves it */

enum { TIMER_TICK, TIMER_STEP, TIMER_WORK, TIMER_WAKE };

struct run;

struct hand {
  struct run *run;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_bench_member member; /* by its rank it chooses its share */
  struct pwi_reduce *engine;
  struct pwi_asap_learner learner;
  struct pwi_random random;
  float *weights;
  bool is_working, is_waiting; /* outside of the actor; for the beginning */
  uint32_t works;              /* of this step */
  uint64_t steps, bytes;       /* since the beginning; sent before it */
  double objective;            /* when it last looked */
  bool is_good;                /* that was within the tolerance */
};

struct run {
  const struct pwi_asap_problem *problem;
  const struct pwi_asap_setup *setup;
  struct pwi_cluster cluster;
  struct pwi_asap_cards cards;
  struct pwi_sim_fabric fabric;
  struct hand *hands;
  uint32_t ready, witness;
  int64_t began;
  bool has_begun, is_near, is_over;
  struct pwi_asap_outcome outcome;
};

static void broken(const struct hand *hand, const char *what, pawl_status status) {
  pwi_sim_fail(hand->run->cluster.sim, status ? status : PAWL_NO_MEMORY, "worker %u %s: %s%s%s", hand->index, what,
               pawl_status_text(status), hand->engine ? ": " : "",
               hand->engine ? pwi_reduce_problem(hand->engine) : "");
}

static bool is_learning(const struct run *run) { return !(run->setup->seconds > 0); }

/* --- computing ------------------------------------------------------------------------------------------ */

static void compute(struct hand *hand) {
  const struct pwi_asap_setup *setup = hand->run->setup;
  double takes = (double)setup->step_ns * (1 + setup->jitter * (2 * pwi_random_unit(&hand->random) - 1));
  if (pwi_random_chance(&hand->random, setup->stall)) takes *= setup->stall_times;
  if (hand->member.rank + 1 == setup->workers) takes *= setup->slow;
  if (is_learning(hand->run)) pwi_asap_learn(&hand->learner, setup->batch, hand->weights);
  pwi_cluster_timer(&hand->client, (int64_t)takes, TIMER_STEP);
}

/* A look costs as much as many steps. So one worker, the witness, looks every now and then; once its model is good,
 * the others look after each step, until one of them finds a bad model, which makes it the witness. */
static void look_at_objective(struct hand *hand) {
  struct run *run = hand->run;
  const struct pwi_asap_setup *setup = run->setup;
  bool is_last = hand->steps == setup->rounds;
  bool is_due = run->is_near || (hand == &run->hands[run->witness] && hand->steps % setup->look == 0);
  if (!is_learning(run) || (!is_last && (!is_due || setup->is_whole))) return;
  hand->objective = pwi_asap_objective(run->problem, hand->weights);
  run->outcome.objective = hand->objective;
  hand->is_good = hand->objective <= (1 + setup->tolerance) * run->problem->optimum;
  run->is_near = hand->is_good;
  bool are_good = true;
  for (uint32_t i = 0; i < setup->workers; i++) {
    struct hand *other = &run->hands[i];
    if (!hand->is_good && !setup->is_whole && other != hand) other->is_good = false;
    are_good = are_good && other->is_good;
    bool counts = other->is_good || setup->is_whole; /* others have looked too long ago */
    if (counts && other->objective > run->outcome.objective) run->outcome.objective = other->objective;
  }
  if (!hand->is_good) run->witness = hand->index;
  run->outcome.is_reached = are_good;
}

static bool is_finished(const struct run *run) {
  const struct pwi_asap_setup *setup = run->setup;
  if (!is_learning(run)) return false; /* by its time */
  if (!setup->is_whole && (run->outcome.is_reached || run->outcome.rounds >= setup->rounds)) return true;
  for (uint32_t i = 0; i < setup->workers; i++)
    if (run->hands[i].steps < setup->rounds) return false;
  return true;
}

static void count(struct hand *hand, const struct pawl_reduce_report *report) {
  struct pwi_asap_outcome *outcome = &hand->run->outcome;
  hand->steps++;
  outcome->steps++;
  if (hand->steps > outcome->rounds) outcome->rounds = hand->steps;
  outcome->expected += report->expected;
  outcome->used += report->used;
  outcome->current += report->current;
  outcome->by_used[report->used < PWI_ASAP_WORKERS_MAX ? report->used : 0]++;
  outcome->by_current[report->current < PWI_ASAP_WORKERS_MAX ? report->current : 0]++;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* A report lacks puts that had to wait for an acknowledgement and began between two steps. */
static uint64_t bytes_of(const struct hand *hand) {
  struct pawl_reduce_state state;
  pwi_reduce_state(hand->engine, &state);
  return state.bytes_sent;
}

static void begin_all(struct run *run) {
  run->has_begun = true;
  run->began = pwi_sim_now(run->cluster.sim);
  for (uint32_t i = 0; i < run->setup->workers; i++) {
    run->hands[i].bytes = bytes_of(&run->hands[i]);
    compute(&run->hands[i]);
  }
}

static void step_over(struct hand *hand) {
  struct run *run = hand->run;
  struct pawl_reduce_report report;
  pawl_status status = pwi_reduce_end(hand->engine, &report);
  if (status) {
    broken(hand, "could not reduce", status);
    return;
  }
  if (!run->has_begun) {
    if (++run->ready == run->setup->workers) begin_all(run);
    return;
  }
  if (run->is_over) return;
  count(hand, &report);
  look_at_objective(hand);
  run->is_over = is_finished(run);
  bool is_done = run->setup->is_whole && is_learning(run) && hand->steps >= run->setup->rounds;
  if (!run->is_over && !is_done) compute(hand);
}

/* Reading and adding models takes time, too. */
static void look(struct hand *hand) {
  struct pawl_reduce_state state;
  if (!hand->engine || hand->is_working) return;
  enum pwi_reduce_want want = pwi_reduce_want(hand->engine);
  if (want == PWI_REDUCE_OVER) step_over(hand);
  if (want != PWI_REDUCE_WORK) return;
  pwi_reduce_state(hand->engine, &state);
  int64_t models = hand->works++ == 0 ? 1 : state.inputs + 1;
  hand->is_working = true;
  pwi_cluster_timer(&hand->client, models * hand->run->setup->put_ns / WORK_SHARE, TIMER_WORK);
}

static void begin_step(struct hand *hand) {
  hand->works = 0;
  pwi_reduce_begin(hand->engine);
}

static void work(struct hand *hand) {
  hand->is_working = false;
  pwi_reduce_worked(hand->engine, pwi_reduce_work(hand->engine));
}

static void wakes(void *context) { pwi_cluster_timer(&((struct hand *)context)->client, 0, TIMER_WAKE); }

/* --- beginning ------------------------------------------------------------------------------------------ */

static void open_engine(struct hand *hand) {
  const struct pwi_asap_setup *setup = hand->run->setup;
  const struct pwi_asap_problem *problem = hand->run->problem;
  struct pawl_tensor tensor = {hand->weights, problem->features, PAWL_F32};
  struct pwi_reduce_config config = {.peers = hand->member.peers,
                                     .net = hand->client.net,
                                     .group = hand->member.group,
                                     .name = "model",
                                     .tensors = &tensor,
                                     .count = 1,
                                     .mode = setup->mode,
                                     .graph = {.topology = setup->graph, .seed = setup->seed},
                                     .context = hand,
                                     .wakes = wakes};
  snprintf(config.graph.name, sizeof config.graph.name, "%s", pwi_topology_info(setup->graph)->name);
  pawl_status status =
      pwi_asap_learner_init(&hand->learner, problem, hand->member.rank, setup->workers, setup->rate, setup->seed);
  if (!status) status = pwi_reduce_create(&config, &hand->engine);
  if (status) {
    broken(hand, "could not open the reduce", status);
    return;
  }
  pwi_random_init(&hand->random, setup->seed, 100 + hand->member.rank); /* the same delays in every mode */
  begin_step(hand);
}

static void tick(struct hand *hand) {
  if (!hand->engine && pwi_bench_member_is_complete(&hand->member)) open_engine(hand);
  int64_t now = pwi_net_now(hand->client.net);
  if (hand->engine && !hand->is_working && pwi_reduce_look_at(hand->engine) <= now) pwi_reduce_look(hand->engine, now);
  pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
}

static void hand_timer(void *context, uint64_t cookie) {
  struct hand *hand = context;
  if (cookie == TIMER_TICK) tick(hand);
  if (cookie == TIMER_STEP) begin_step(hand);
  if (cookie == TIMER_WORK) work(hand);
  look(hand);
}

static void hand_started(void *context) {
  struct hand *hand = context;
  pwi_bench_member_join(&hand->member, &hand->run->cluster, &hand->client, GROUP, hand->run->setup->workers);
  pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
}

static pawl_status add_hand(struct run *run, uint32_t index) {
  struct hand *hand = &run->hands[index];
  *hand = (struct hand){.run = run, .index = index};
  hand->weights = pwi_alloc_zero(run->problem->features, sizeof *hand->weights);
  if (!hand->weights) return PAWL_NO_MEMORY;
  hand->client = (struct pwi_cluster_client){
      .job = "asap", .listens = true, .started = hand_started, .timer = hand_timer, .context = hand};
  snprintf(hand->client.name, sizeof hand->client.name, "w%u", index % 1000);
  return pwi_cluster_client_add(&run->cluster, &hand->client);
}

static void tune(struct pwi_sim_config *config, void *context) {
  struct run *run = context;
  config->fabric = &run->fabric;
  config->plane_chance = 1; /* one-sided operations do not wait for the receiving process */
  config->plane = (struct pwi_sim_delay){2 * PWI_SIM_MICROSECOND, 5 * PWI_SIM_MICROSECOND, 50 * PWI_SIM_MICROSECOND};
  config->trace = config->checks = false;
  config->limits.links = 4 * PWI_ASAP_WORKERS_MAX;
}

static pawl_status open_cards(struct run *run) {
  struct pwi_asap_cards *cards = &run->cards;
  cards->put_ns = run->setup->put_ns;
  cards->bytes = run->problem->features * sizeof(float);
  cards->nodes = run->setup->workers + 1; /* and the manager */
  cards->sends_until = pwi_alloc_zero(cards->nodes, sizeof *cards->sends_until);
  cards->receives_until = pwi_alloc_zero(cards->nodes, sizeof *cards->receives_until);
  run->fabric = (struct pwi_sim_fabric){.delivery_time = pwi_asap_delivery_time, .context = cards};
  return cards->sends_until && cards->receives_until ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- the run -------------------------------------------------------------------------------------------- */

static bool is_coming(void *context) { return !((struct run *)context)->has_begun; }
static bool is_running(void *context) { return !((struct run *)context)->is_over; }

static pawl_status carry_out(struct run *run) {
  const struct pwi_asap_setup *setup = run->setup;
  struct pwi_cluster_config config = {.seed = setup->seed, .tune = tune, .context = run};
  pawl_status status = open_cards(run);
  if (!status) status = pwi_cluster_open(&run->cluster, &config);
  for (uint32_t i = 0; i < setup->workers && !status; i++) status = add_hand(run, i);
  if (!status) status = pwi_cluster_run_while(&run->cluster, is_coming, run, SETUP_LIMIT);
  if (!status && !is_learning(run))
    status = pwi_cluster_run_for(&run->cluster, (int64_t)(setup->seconds * (double)PWI_SIM_SECOND));
  else if (!status)
    status = pwi_cluster_run_while(&run->cluster, is_running, run, RUN_LIMIT);
  return status;
}

/* The cluster has called no `stopped`: engines live longer than their nets. */
static void release(struct run *run) {
  for (uint32_t i = 0; run->hands && i < run->setup->workers; i++) {
    pwi_reduce_destroy(run->hands[i].engine);
    pwi_asap_learner_fini(&run->hands[i].learner);
    pwi_free(run->hands[i].weights);
  }
  pwi_free(run->hands);
  pwi_free(run->cards.sends_until);
  pwi_free(run->cards.receives_until);
}

pawl_status pwi_asap_simulate(const struct pwi_asap_problem *problem, const struct pwi_asap_setup *setup,
                              struct pwi_asap_outcome *outcome_out, char *why, size_t why_size) {
  struct run run = {.problem = problem, .setup = setup};
  run.hands = pwi_alloc_zero(setup->workers, sizeof *run.hands);
  pawl_status status = run.hands ? carry_out(&run) : PAWL_NO_MEMORY;
  const char *failure = run.cluster.sim ? pwi_sim_failure(run.cluster.sim) : NULL;
  snprintf(why, why_size, "%s", failure ? failure : pawl_status_text(status));
  if (!status) {
    for (uint32_t i = 0; i < setup->workers; i++) run.outcome.bytes += bytes_of(&run.hands[i]) - run.hands[i].bytes;
    run.outcome.seconds = (double)(pwi_sim_now(run.cluster.sim) - run.began) * 1e-9;
    *outcome_out = run.outcome;
  }
  pwi_cluster_close(&run.cluster);
  release(&run);
  return status;
}
