/* Calls in the simulator: each runs at most once under any fault, exactly once if an answer came, and every
 * call ends. */
#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "cluster.h"
#include "client/client.h"
#include "sim/faults.h"

#define NODES 4
#define CALLS 30 /* of each node */
#define JOBS 4096
#define IDS 1024
#define GROUP "sim/.callers"

/* An intended call and its observed effects. Ids are indices here, and travel as arguments. */
struct job {
  struct pwi_calling calling;
  struct caller *caller;
  struct job *outer; /* of one that a function makes: the job that it runs for */
  uint32_t incarnation;
  struct pwi_callee *callee; /* whose subtask it is */
  struct pwi_ordered_task step;
  bool is_begun, is_over, is_graph, is_nested;
  pawl_status inner_status;
  bool inner_is_over;
  uint32_t runs[3][NODES]; /* by call of the graph and node that ran it */
  uint32_t order;          /* calls of the graph that have run, as bits */
};

struct world;

struct caller {
  struct world *world;
  struct pwi_cluster_client client;
  struct pwi_callee *callee;
  uint32_t index;
  uint32_t made; /* calls */
  struct pwi_asking asking;
  struct pwi_task enter;
  struct pwi_running *running[JOBS]; /* by cookie */
  uint64_t last_cookie;
};

struct world {
  struct pwi_cluster cluster;
  struct caller callers[NODES];
  struct job *jobs;
  size_t job_count;
  size_t known, unknown, gone; /* how calls ended */
  uint32_t nodes[IDS];         /* who has, or had, an id */
};

static struct world world;

static void broken(const char *what, const struct job *job, pawl_status status) {
  pwi_sim_fail(world.cluster.sim, PAWL_CORRUPT, "call %zu %s: %s", (size_t)(job - world.jobs), what,
               pawl_status_name(status));
}

/* --- being called --------------------------------------------------------------------------------------- */

static struct job *job_of(const struct pwi_running *running) {
  return &world.jobs[pwi_get_u32(running->item->argument)];
}

static void begin_job(struct caller *caller, struct job *job, uint64_t node, const char *group);
static struct job *make_job(struct caller *caller);

/* A function is over after a while. */
static void finish_run(void *context, uint64_t cookie);

static uint64_t own_id(const struct caller *caller) {
  struct pwi_client_state state;
  pwi_client_state(caller->client.client, &state);
  assert_true(state.sender < IDS);
  world.nodes[state.sender] = caller->index;
  return state.sender;
}

static uint64_t draw_node(struct caller *caller) {
  struct caller *other = &world.callers[pwi_random_below(caller->client.random, NODES)];
  return other->client.client ? own_id(other) : 0;
}

/* A function that calls another on behalf of the present call. */
static void call_further(struct caller *caller, struct pwi_running *running, struct job *outer) {
  uint64_t node = draw_node(caller);
  struct job *inner = node != 0 ? make_job(caller) : NULL;
  if (!inner) {
    outer->inner_is_over = true;
    return;
  }
  inner->outer = outer;
  inner->callee = caller->callee;
  if (pwi_callee_issue(caller->callee, running, &inner->step)) {
    broken("could not be issued", inner, PAWL_NO_MEMORY);
    return;
  }
  outer->inner_is_over = false;
  begin_job(caller, inner, node, NULL);
}

static void run(void *context, struct pwi_running *running) {
  struct caller *caller = context;
  struct job *job = job_of(running);
  uint32_t call = pwi_get_u32((const unsigned char *)running->item->argument + 4);
  (void)own_id(caller);
  if (++job->runs[call][caller->index] > 1) broken("ran twice", job, PAWL_OK);
  if (job->is_graph && call > 0 && !(job->order & 1u << (call - 1))) broken("ran too early", job, PAWL_OK);
  if (job->is_nested) call_further(caller, running, job);
  uint64_t cookie = caller->last_cookie++ % JOBS;
  caller->running[cookie] = running;
  pwi_cluster_timer(&caller->client, (int64_t)pwi_random_below(caller->client.random, 20 * MS), cookie + 1);
}

static void finish_run(void *context, uint64_t cookie) {
  struct caller *caller = context;
  struct pwi_running *running = caller->running[cookie - 1];
  struct job *job = job_of(running);
  uint32_t call = pwi_get_u32((const unsigned char *)running->item->argument + 4);
  job->order |= 1u << call;
  unsigned char *bytes = pwi_alloc(8);
  if (bytes) memcpy(bytes, running->item->argument, 8);
  pwi_callee_end(caller->callee, running, PAWL_OK, bytes, bytes ? 8 : 0);
}

/* --- calling -------------------------------------------------------------------------------------------- */

static void check_leg(struct job *job, const struct pwi_call_leg *leg) {
  uint32_t count = job->is_graph ? 3 : 1;
  if (!leg->status && leg->back.count != count) broken("lacks results", job, PAWL_OK);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t runs = job->runs[i][world.nodes[leg->node]];
    bool is_alone = job->calling.leg_count == 1; /* a group may have a member twice: dead, and started
                                                    again */
    if (leg->status == PAWL_NODE_GONE && is_alone && runs != 0) broken("ran at one that was gone", job, leg->status);
    if (leg->status) continue;
    const struct pwi_call_result *result = &leg->back.results[i];
    bool is_known = result->status == PAWL_OK || result->status == PAWL_OUTCOME_UNKNOWN ||
                    result->status == PAWL_NODE_GONE || result->status == PAWL_UNSUPPORTED;
    if (!is_known || (result->status && !job->is_nested)) broken("failed", job, result->status);
    if (runs != 1) broken("was answered and did not run once", job, result->status);
    if (!result->status && (result->size != 8 || pwi_get_u32(result->bytes) != (uint32_t)(job - world.jobs) ||
                            pwi_get_u32((const unsigned char *)result->bytes + 4) != i))
      broken("has another's result", job, result->status);
  }
  if (!leg->status && job->is_nested && !job->inner_is_over) broken("was over before what it issued", job, PAWL_OK);
}

static void ended(struct pwi_calling *calling) {
  struct job *job = (struct job *)calling;
  if (job->is_over) broken("ended twice", job, PAWL_OK);
  job->is_over = true;
  for (uint32_t i = 0; i < calling->leg_count; i++) {
    check_leg(job, &calling->legs[i]);
    world.known += calling->legs[i].status == PAWL_OK;
    world.unknown += calling->legs[i].status == PAWL_OUTCOME_UNKNOWN;
    world.gone += calling->legs[i].status == PAWL_NODE_GONE;
  }
  if (!job->outer) return;
  job->outer->inner_is_over = true;
  pwi_callee_issued_end(job->callee, job->step, calling->status);
}

static struct job *make_job(struct caller *caller) {
  if (world.job_count == JOBS) return NULL;
  struct job *job = &world.jobs[world.job_count++];
  job->caller = caller;
  job->incarnation = caller->client.incarnation;
  job->calling.ended = ended;
  return job;
}

static void begin_job(struct caller *caller, struct job *job, uint64_t node, const char *group) {
  static const struct pawl_edge row[] = {{0, 1}, {1, 2}};
  unsigned char arguments[3][8];
  struct pawl_graph_call calls[3];
  struct pwi_call_graph *graph;
  uint32_t culprit;
  for (uint32_t i = 0; i < 3; i++) {
    pwi_put_u32(arguments[i], (uint32_t)(job - world.jobs));
    pwi_put_u32(arguments[i] + 4, i);
    calls[i] = (struct pawl_graph_call){"work", arguments[i], 8};
  }
  size_t count = job->is_graph ? 3 : 1;
  pawl_status status = pwi_call_graph_create(calls, count, row, count - 1, &graph, &culprit);
  job->is_begun = true;
  if (!status) status = pwi_client_call(caller->client.client, &job->calling, node, group, graph);
  if (status) broken("could not begin", job, status);
}

static void call_somebody(struct caller *caller) {
  uint64_t kind = pwi_random_below(caller->client.random, 10), node = draw_node(caller);
  struct job *job = node != 0 ? make_job(caller) : NULL;
  if (!job) return;
  caller->made++;
  job->is_graph = kind < 3 && kind > 0;
  job->is_nested = kind >= 7;
  begin_job(caller, job, kind == 0 ? 0 : node, kind == 0 ? GROUP : NULL);
}

static void next(void *context, uint64_t cookie) {
  struct caller *caller = context;
  if (cookie > 0) {
    finish_run(context, cookie);
    return;
  }
  if (caller->made >= CALLS) return;
  call_somebody(caller);
  pwi_cluster_timer(&caller->client, (int64_t)pwi_random_below(caller->client.random, 60 * MS), 0);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)asking, (void)payload, (void)size;
  if (status) pwi_sim_fail(world.cluster.sim, status, "could not join the group: %s", pawl_status_name(status));
}

static void started(void *context) {
  struct caller *caller = context;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, 0);
  caller->asking.replied = joined;
  pawl_status status = pwi_client_offer(caller->client.client, run, caller, &caller->callee);
  if (!status) status = pwi_client_ask(caller->client.client, &caller->asking, PWI_ASK_GROUP, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(world.cluster.sim, status, "a node cannot start");
  pwi_cluster_timer(&caller->client, 20 * MS, 0);
}

/* The calls of a killed process are abandoned. */
static void stopped(void *context) {
  struct caller *caller = context;
  for (size_t i = 0; i < world.job_count; i++)
    if (world.jobs[i].caller == caller) world.jobs[i].is_over = true;
}

static void open_world(uint64_t seed, int64_t grace) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = 1, .shards = 1, .client_grace_ns = grace, .shared_hosts = seed % 2};
  memset(&world, 0, sizeof world);
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  world.jobs = pwi_alloc_zero(JOBS, sizeof *world.jobs);
  assert_non_null(world.jobs);
  cluster_open(&world.cluster, &config);
  for (uint32_t i = 0; i < NODES; i++) {
    struct caller *caller = &world.callers[i];
    *caller = (struct caller){.world = &world, .index = i};
    caller->client = (struct pwi_cluster_client){
        .job = "calls", .listens = true, .started = started, .stopped = stopped, .timer = next, .context = caller};
    sprintf(caller->client.name, "n%u", i);
    cluster_client_add(&world.cluster, &caller->client);
  }
}

static void close_world(void) {
  pwi_cluster_close(&world.cluster);
  for (size_t i = 0; i < world.job_count; i++)
    if (world.jobs[i].is_begun) pwi_calling_fini(&world.jobs[i].calling);
  pwi_free(world.jobs);
}

static bool is_working(void *context) {
  (void)context;
  for (uint32_t i = 0; i < NODES; i++)
    if (world.callers[i].made < CALLS) return true;
  for (size_t i = 0; i < world.job_count; i++)
    if (!world.jobs[i].is_over) return true;
  return false;
}

static void draw_faults(struct pwi_sim_faults *faults, bool are_hard) {
  struct pwi_sim_faults_config config;
  struct pwi_sim_node nodes[NODES + 1] = {world.cluster.manager_node};
  for (uint32_t i = 0; i < NODES; i++) nodes[i + 1] = world.callers[i].client.node;
  pwi_sim_faults_config_init(&config);
  config.nodes = nodes + (are_hard ? 1 : 0); /* the manager of this cluster forgets all when it is killed */
  config.node_count = NODES + (are_hard ? 0 : 1);
  config.begin = pwi_sim_now(world.cluster.sim) + 1;
  config.end = config.begin + 2000 * MS;
  config.gap_mean_ns = 40 * MS;
  config.duration_max_ns = config.pause_max_ns = are_hard ? 900 * MS : 100 * MS;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = config.weights[PWI_SIM_FAULT_MUTE] = 2;
  config.weights[PWI_SIM_FAULT_CUT] = 1;
  if (are_hard) config.weights[PWI_SIM_FAULT_PAUSE] = config.weights[PWI_SIM_FAULT_KILL] = 1;
  assert_int_equal(pwi_sim_faults_draw(world.cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(world.cluster.sim, faults), PAWL_OK);
}

/* Links break, and no node is ever declared dead: every call runs exactly once. */
static void test_broken_links_neither_lose_a_call_nor_run_it_twice(void **state) {
  (void)state;
  size_t known = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct pwi_sim_faults faults;
    open_world(seed, 0);
    draw_faults(&faults, false);
    cluster_run_while(&world.cluster, is_working, NULL, 60 * PWI_SIM_SECOND);
    assert_int_equal(world.unknown, 0);
    assert_int_equal(world.gone, 0);
    known += world.known;
    close_world();
    pwi_sim_faults_fini(&faults);
  }
  assert_true(known > 60 * NODES * CALLS);
}

/* Nodes die, and live nodes are declared dead: no call runs twice, every answered call has run, and every
 * call ends. */
static void test_whoever_dies_no_call_runs_twice_and_every_call_ends(void **state) {
  (void)state;
  size_t known = 0, unknown = 0, gone = 0;
  for (uint64_t seed = 1; seed <= 150; seed++) {
    struct pwi_sim_faults faults;
    open_world(seed, 300 * MS);
    draw_faults(&faults, true);
    cluster_run_while(&world.cluster, is_working, NULL, 60 * PWI_SIM_SECOND);
    known += world.known;
    unknown += world.unknown;
    gone += world.gone;
    close_world();
    pwi_sim_faults_fini(&faults);
  }
  printf("answered %zu, unknown %zu, not run %zu\n", known, unknown, gone);
  assert_true(known > 10000 && unknown > 100 && gone > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broken_links_neither_lose_a_call_nor_run_it_twice),
      cmocka_unit_test(test_whoever_dies_no_call_runs_twice_and_every_call_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
