/* One run of Algorithm 3 in the simulator: the real client, servers and manager, and workers whose
 * computing takes virtual time. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/osdi/wait.h"
#include "sim/cluster.h"
#include "sync/pace.h"

#define SLOW_CHANCE 0.1
#define SLOW_TIMES 4
#define NETWORK_NS ((int64_t)(PWI_WAIT_PUSH_S * 1e9))
#define PASSES_MAX 100 /* a run with more passes has not reached its target */
#define GROUP "bench/.workers"
#define VECTOR "bench/weights"
#define ADAPTIVE_MOST 16
#define COMPUTED 0   /* a timer's cookie; other cookies are iterations whose push is due */
#define LOOK_EVERY 4 /* iterations between two computations of the objective */

struct wait_run;
struct wait_hand;

/* An iteration that is under way. */
struct wait_step {
  struct pwi_task task;
  struct wait_hand *hand;
  uint64_t iteration;
  uint32_t block;
  double *pairs, *weights; /* pushed and pulled values */
};

/* A worker. */
struct wait_hand {
  struct wait_run *run;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_random random;
  struct pwi_asking asking;
  struct pwi_task enter;
  struct pwi_flow *group, *vector;
  struct pwi_pace pace;
  struct wait_step **steps; /* by iteration */
  double *weights, *products;
  bool is_in, wants;
  int64_t computed_ns;
  int64_t wants_since, takes; /* of the iteration that it computes: when it could have begun, and its length */
  int64_t waited;
  double objective; /* of its own share, when the iteration before it ended */
};

struct wait_run {
  const struct pwi_wait_problem *problem;
  struct pwi_policy policy;
  struct pwi_cluster cluster;
  struct wait_hand *hands;
  uint64_t iterations_max;
  uint32_t *order; /* of blocks, in each pass */
  int64_t began;
  bool is_over, is_reached;
  double objective;
};

static void broken(struct wait_hand *hand, const char *what, pawl_status status) {
  pwi_sim_fail(hand->run->cluster.sim, status ? status : PAWL_NO_MEMORY, "worker %u %s: %s", hand->index, what,
               pawl_status_text(status));
}

double pwi_wait_block_time(struct pwi_random *random) {
  return pwi_random_chance(random, SLOW_CHANCE) ? SLOW_TIMES * PWI_WAIT_BLOCK_S : PWI_WAIT_BLOCK_S;
}

/* --- an iteration --------------------------------------------------------------------------------------- */

static struct pawl_range range_of(const struct wait_step *step) {
  uint64_t size = pwi_wait_block_size(&step->hand->run->problem->shape);
  return pawl_range_of(step->block * size, (step->block + 1) * size);
}

static struct wait_step *make_step(struct wait_hand *hand, uint64_t iteration) {
  const struct wait_run *run = hand->run;
  uint32_t size = pwi_wait_block_size(&run->problem->shape);
  struct wait_step *step = pwi_alloc_zero(1, sizeof *step + 3 * (size_t)size * sizeof(double));
  if (!step) return NULL;
  step->hand = hand;
  step->iteration = iteration;
  step->block = run->order[(iteration - 1) % run->problem->shape.blocks];
  step->pairs = (double *)(void *)(step + 1);
  step->weights = step->pairs + 2 * size;
  return step;
}

static void look(struct wait_hand *hand);

/* The first worker's weights stand for all. */
static void look_at_objective(struct wait_hand *hand) {
  struct wait_run *run = hand->run;
  if (hand->index != 0 || hand->pace.finished % LOOK_EVERY != 0 || run->is_over) return;
  run->objective = pwi_wait_objective(run->problem, hand->weights);
  run->is_reached = run->objective <= run->problem->target;
  run->is_over = run->is_reached || hand->pace.finished >= run->iterations_max;
}

static void pulled(struct pwi_task *task) {
  struct wait_step *step = (struct wait_step *)task;
  struct wait_hand *hand = step->hand;
  if (task->status) {
    broken(hand, "could not pull", task->status);
    return;
  }
  pwi_wait_update(hand->run->problem, hand->index, step->block, step->weights, hand->weights, hand->products);
  uint64_t iteration = step->iteration;
  hand->steps[iteration] = NULL;
  pwi_free(step);
  pwi_pace_over(&hand->pace, iteration);
  look_at_objective(hand);
  look(hand);
}

/* The servers have taken the step: the pushes of all workers were applied. */
static void pushed(struct pwi_task *task) {
  struct wait_step *step = (struct wait_step *)task;
  struct pwi_where where = {.range = range_of(step)};
  pawl_status status = task->status;
  step->task = (struct pwi_task){.finished = pulled};
  if (!status)
    status = pwi_client_start(step->hand->client.client, &step->task, step->hand->vector, PWI_REQUEST_PULL, &where,
                              NULL, step->weights);
  if (status) broken(step->hand, "could not push", status);
}

static void push(struct wait_hand *hand, uint64_t iteration) {
  struct wait_step *step = hand->steps[iteration];
  struct pwi_where where = {
      .range = range_of(step), .aggregate = pwi_flow_entry(hand->group)->id.id, .tick = iteration};
  step->task = (struct pwi_task){.finished = pushed};
  pawl_status status =
      pwi_client_start(hand->client.client, &step->task, hand->vector, PWI_REQUEST_PUSH, &where, step->pairs, NULL);
  if (status) broken(hand, "could not start a push", status);
}

/* The values are those at the beginning of computing; later pulls do not count. */
static void begin_iteration(struct wait_hand *hand) {
  hand->wants = false;
  hand->waited = pwi_sim_now(hand->run->cluster.sim) - hand->wants_since;
  pawl_status status = pwi_pace_begin(&hand->pace);
  struct wait_step *step = status ? NULL : make_step(hand, hand->pace.begun);
  if (!step) {
    broken(hand, "ran out of memory for an iteration", PAWL_NO_MEMORY);
    return;
  }
  hand->steps[step->iteration] = step;
  pwi_pace_add(&hand->pace);
  pwi_wait_gradient(hand->run->problem, hand->index, step->block, hand->products, step->pairs);
  int64_t takes = (int64_t)(pwi_wait_block_time(&hand->random) * 1e9);
  hand->computed_ns += takes;
  hand->takes = takes;
  pwi_cluster_timer(&hand->client, takes, COMPUTED);
}

static void look(struct wait_hand *hand) {
  if (!hand->wants || hand->run->is_over || hand->pace.begun >= hand->run->iterations_max) return;
  if (pwi_pace_ask(&hand->pace).cause == PWI_WAITS_NOT) begin_iteration(hand);
}

/* An adaptive bound learns from what a worker of a real cluster knows: its own times, and the loss of its own rows. */
static void end_iteration(struct wait_hand *hand) {
  double gain = 0;
  if (hand->run->policy.kind == PWI_POLICY_ADAPTIVE) {
    double objective = pwi_wait_own_objective(hand->run->problem, hand->index, hand->weights, hand->products);
    if (hand->pace.begun > 1) gain = hand->objective - objective;
    hand->objective = objective;
  }
  (void)pwi_pace_end(&hand->pace, (double)hand->waited, (double)hand->takes, gain);
}

static void hand_timer(void *context, uint64_t cookie) {
  struct wait_hand *hand = context;
  if (cookie != COMPUTED) {
    push(hand, cookie);
    return;
  }
  pwi_cluster_timer(&hand->client, NETWORK_NS, hand->pace.begun);
  end_iteration(hand);
  hand->wants = true;
  hand->wants_since = pwi_sim_now(hand->run->cluster.sim);
  look(hand);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static void entered(struct pwi_task *task) {
  struct wait_hand *hand = (struct wait_hand *)((char *)task - offsetof(struct wait_hand, enter));
  if (task->status) broken(hand, "could not enter the group", task->status);
  hand->is_in = true;
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct wait_hand *hand = (struct wait_hand *)((char *)asking - offsetof(struct wait_hand, asking));
  struct pwi_client *client = hand->client.client;
  (void)payload, (void)size;
  const struct pwi_entry *group = pwi_catalogue_named(pwi_client_catalogue(client), GROUP);
  if (!status && !group) status = PAWL_NOT_FOUND;
  if (!status) status = pwi_client_flow(client, group->id, 0, &hand->group);
  hand->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(client, &hand->enter, hand->group);
  if (status) broken(hand, "could not join the group", status);
}

static void hand_started(void *context) {
  struct wait_hand *hand = context;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, hand->run->problem->shape.workers);
  hand->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(hand->client.client, &hand->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(hand, "could not ask to join", status);
  pwi_writer_fini(&writer);
}

static pawl_status add_hand(struct wait_run *run, uint32_t index) {
  struct wait_hand *hand = &run->hands[index];
  const struct pwi_wait_shape *shape = &run->problem->shape;
  *hand = (struct wait_hand){.run = run, .index = index};
  hand->steps = pwi_alloc_zero((size_t)run->iterations_max + 1, sizeof(struct wait_step *));
  hand->weights = pwi_alloc_zero(shape->features, sizeof(double));
  hand->products = pwi_alloc_zero(run->problem->shares[index].examples, sizeof(double));
  if (!hand->steps || !hand->weights || !hand->products) return PAWL_NO_MEMORY;
  pwi_random_init(&hand->random, shape->seed, 100 + index); /* the same delays for every tau */
  pwi_pace_init(&hand->pace, &run->policy, false, 0);
  snprintf(hand->client.name, sizeof hand->client.name, "w%u", index % 1000);
  hand->client.started = hand_started;
  hand->client.timer = hand_timer;
  hand->client.context = hand;
  return pwi_cluster_client_add(&run->cluster, &hand->client);
}

static bool are_coming(void *context) {
  const struct wait_run *run = context;
  for (uint32_t i = 0; i < run->problem->shape.workers; i++)
    if (!run->hands[i].is_in) return true;
  return false;
}

static pawl_status make_vector(struct wait_run *run) {
  const struct pwi_wait_shape *shape = &run->problem->shape;
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = shape->features;
  options.layout = PAWL_LAYOUT_DENSE;
  options.placement = PAWL_PLACE_ORDERED;
  snprintf(options.rule, sizeof options.rule, "block_proximal rate=%g l1=%g", shape->rate, shape->l1);
  pawl_status status = pwi_cluster_vector(&run->hands[0].client, VECTOR, &options, &run->hands[0].vector);
  for (uint32_t i = 1; i < shape->workers && !status; i++) {
    struct pwi_cluster_client *client = &run->hands[i].client;
    pawl_status said = PAWL_OK;
    status = pwi_cluster_ask(client, PWI_ASK_SYNC, NULL, &said);
    if (!status) status = said ? said : pwi_cluster_open_vector(client, VECTOR, 0, &run->hands[i].vector);
  }
  return status;
}

static pawl_status begin(struct wait_run *run) {
  const struct pwi_wait_shape *shape = &run->problem->shape;
  struct pwi_cluster_config config = {.seed = shape->seed, .processes = 2, .shards = 1, .points = 1};
  pawl_status status = pwi_cluster_open(&run->cluster, &config);
  for (uint32_t i = 0; i < shape->workers && !status; i++) status = add_hand(run, i);
  if (!status) status = pwi_cluster_wait_joined(&run->hands[0].client);
  if (!status) status = pwi_cluster_run_while(&run->cluster, are_coming, run, 60 * PWI_SIM_SECOND);
  return status ? status : make_vector(run);
}

/* --- the run -------------------------------------------------------------------------------------------- */

static bool is_running(void *context) { return !((struct wait_run *)context)->is_over; }

/* Computing that has not ended is counted only up to the end of the run. */
static void count(const struct wait_run *run, struct pwi_wait_figures *figures) {
  uint32_t workers = run->problem->shape.workers;
  double total = (double)(pwi_sim_now(run->cluster.sim) - run->began) * 1e-9, computed = 0;
  for (uint32_t i = 0; i < workers; i++) {
    double own = (double)run->hands[i].computed_ns * 1e-9;
    computed += own < total ? own : total;
  }
  *figures = (struct pwi_wait_figures){.is_reached = run->is_reached,
                                       .compute_s = computed / workers,
                                       .total_s = total,
                                       .wait_pct = 100 * (1 - computed / workers / total),
                                       .iterations = run->hands[0].pace.finished,
                                       .objective = run->objective,
                                       .bound = run->hands[0].pace.policy.bound};
  for (uint32_t i = 0; i < workers && i < PWI_WAIT_WORKERS_MAX; i++) {
    double own = (double)run->hands[i].computed_ns * 1e-9;
    figures->computed_s[i] = own < total ? own : total;
  }
}

static void release(struct wait_run *run) {
  for (uint32_t i = 0; run->hands && i < run->problem->shape.workers; i++) {
    struct wait_hand *hand = &run->hands[i];
    for (uint64_t t = 0; hand->steps && t <= run->iterations_max; t++) pwi_free(hand->steps[t]);
    if (hand->run) pwi_pace_fini(&hand->pace);
    pwi_free(hand->steps);
    pwi_free(hand->weights);
    pwi_free(hand->products);
  }
  pwi_free(run->hands);
  pwi_free(run->order);
}

static void shuffle(struct wait_run *run) {
  struct pwi_random random;
  uint32_t blocks = run->problem->shape.blocks;
  pwi_random_init(&random, run->problem->shape.seed, 2);
  for (uint32_t i = 0; i < blocks; i++) {
    uint32_t at = (uint32_t)pwi_random_below(&random, i + 1);
    run->order[i] = run->order[at];
    run->order[at] = i;
  }
}

pawl_status pwi_wait_run(const struct pwi_wait_problem *problem, uint64_t tau, struct pwi_wait_figures *figures_out,
                         char *why, size_t why_size) {
  struct wait_run run = {.problem = problem, .iterations_max = (uint64_t)PASSES_MAX * problem->shape.blocks};
  run.policy = tau == PWI_WAIT_INFINITE ? (struct pwi_policy){.kind = PWI_POLICY_EVENTUAL}
                                        : (struct pwi_policy){.kind = PWI_POLICY_BOUNDED, .bound = tau};
  if (tau == PWI_WAIT_ADAPTIVE)
    run.policy = (struct pwi_policy){.kind = PWI_POLICY_ADAPTIVE, .least = 0, .most = ADAPTIVE_MOST};
  run.hands = pwi_alloc_zero(problem->shape.workers, sizeof *run.hands);
  run.order = pwi_alloc_zero(problem->shape.blocks, sizeof *run.order);
  pawl_status status = run.hands && run.order ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    shuffle(&run);
    status = begin(&run);
  }
  run.began = run.cluster.sim ? pwi_sim_now(run.cluster.sim) : 0;
  for (uint32_t i = 0; i < problem->shape.workers && !status; i++) {
    run.hands[i].wants = true;
    run.hands[i].wants_since = run.began;
    look(&run.hands[i]);
  }
  if (!status) status = pwi_cluster_run_while(&run.cluster, is_running, &run, 1000000 * PWI_SIM_SECOND);
  const char *failure = run.cluster.sim ? pwi_sim_failure(run.cluster.sim) : NULL;
  snprintf(why, why_size, "%s", failure ? failure : pawl_status_text(status));
  if (!status) count(&run, figures_out);
  pwi_cluster_close(&run.cluster);
  release(&run);
  return status;
}
