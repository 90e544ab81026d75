/* Linear algebra, under faults: calls on four vectors, many in flight, each after another, while links break,
 * nodes fall silent and a server dies. At the end the stored values must equal arrays on which the same calls
 * were made, each once and in order, also between two vectors. Values are integers, so there is no rounding.
 *
 *   PAWL_SEEDS=n    number of seeds to run
 */
#include "base/cursor.h"
#include "base/memory.h"
#include "base/testing.h"
#include "cluster.h"
#include "sim/faults.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 12
#else
#define SEEDS 60
#endif

#define VECTORS 4 /* the first two dense, the others sparse */
#define CALLS 120
#define WINDOW 12
#define MOST (12 * 65536)

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client client;
  struct pwi_random random;
  uint64_t size;
  size_t width;
  struct pwi_flow *flows[VECTORS];
  int64_t *model[VECTORS]; /* the expected values */
  struct pwi_task tasks[WINDOW];
  bool is_busy[WINDOW];
  int64_t *pushed[WINDOW];
  size_t under_way;
  struct pwi_client_figures figures;
  uint64_t folds;
} scene;

static void finished(struct pwi_task *task) {
  scene.is_busy[task - scene.tasks] = false;
  scene.under_way--;
  if (task->status)
    fail_msg("seed %llu: %s", (unsigned long long)scene.cluster.config.seed, pawl_status_name(task->status));
}

static void let_go(struct pwi_task *task) {
  (void)task;
  scene.under_way = 0;
}

static bool is_full(void *context) {
  (void)context;
  return scene.under_way == WINDOW;
}

static bool is_under_way(void *context) {
  (void)context;
  return scene.under_way > 0;
}

static size_t take_task(void) {
  size_t i = 0;
  if (is_full(NULL)) cluster_run_while(&scene.cluster, is_full, NULL, 60 * PWI_SIM_SECOND);
  while (scene.is_busy[i]) i++;
  scene.tasks[i] = (struct pwi_task){.finished = finished};
  scene.is_busy[i] = true;
  scene.under_way++;
  return i;
}

/* --- the model ------------------------------------------------------------------------------------------ */

static struct pawl_range draw_range(void) {
  uint64_t a = pwi_random_below(&scene.random, scene.size), b = pwi_random_below(&scene.random, scene.size);
  if (pwi_random_below(&scene.random, 3) == 0) return (struct pawl_range){0, scene.size};
  return a < b ? pawl_range_of(a, b + 1) : pawl_range_of(b, a + 1);
}

static bool is_sparse(size_t vector) { return vector >= VECTORS / 2; }

static void model_change(size_t y, size_t x, enum pwi_linear kind, int64_t factor, struct pawl_range range) {
  for (uint64_t key = range.begin; key < range.end; key++) {
    for (size_t i = key * scene.width; i < (key + 1) * scene.width; i++) {
      uint64_t old = (uint64_t)scene.model[y][i], other = (uint64_t)scene.model[x][i], a = (uint64_t)factor;
      uint64_t fresh = kind == PWI_LINEAR_FILL    ? a
                       : kind == PWI_LINEAR_SCALE ? a * old
                       : kind == PWI_LINEAR_AXPY  ? old + a * other
                                                  : other;
      scene.model[y][i] = (int64_t)fresh;
    }
  }
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static void must(pawl_status status) { cluster_check(&scene.cluster, status, "calling"); }

static void call_push(size_t vector) {
  size_t slot = take_task();
  uint64_t key = pwi_random_below(&scene.random, scene.size);
  uint64_t end = key + 1 + pwi_random_below(&scene.random, scene.size - key);
  if (end > key + 4 && scene.width > 1) end = key + 4;
  struct pwi_where where = {.range = {key, end}};
  for (size_t i = 0; i < (end - key) * scene.width; i++) {
    scene.pushed[slot][i] = (int64_t)pwi_random_below(&scene.random, 9) - 4;
    scene.model[vector][key * scene.width + i] += scene.pushed[slot][i];
  }
  must(pwi_client_start(scene.client.client, &scene.tasks[slot], scene.flows[vector], PWI_REQUEST_PUSH, &where,
                        scene.pushed[slot], NULL));
}

static void call_change(size_t y, size_t x, enum pwi_linear kind) {
  size_t slot = take_task();
  struct pawl_range range = draw_range();
  int64_t factor = kind == PWI_LINEAR_COPY ? 0 : (int64_t)pwi_random_below(&scene.random, 5) - 2;
  struct pwi_flow *other = pwi_linear_has_other(kind) ? scene.flows[x] : NULL;
  model_change(y, x, kind, factor, range);
  must(pwi_client_linear(scene.client.client, &scene.tasks[slot], scene.flows[y], other, kind, (double)factor, range));
}

/* The expected result covers all earlier calls, because no call is made until it has arrived. Values are
 * small, so that sums are exact. */
static void call_fold(size_t x, size_t y) {
  size_t slot = take_task();
  struct pawl_range range = draw_range();
  double wanted = 0, most = 0;
  for (size_t i = range.begin * scene.width; i < range.end * scene.width; i++) {
    wanted += (double)scene.model[x][i] * (double)scene.model[y][i];
    if (most < (double)llabs(scene.model[x][i])) most = (double)llabs(scene.model[x][i]);
    if (most < (double)llabs(scene.model[y][i])) most = (double)llabs(scene.model[y][i]);
  }
  must(pwi_client_linear(scene.client.client, &scene.tasks[slot], scene.flows[x], scene.flows[y], PWI_LINEAR_DOT, 0,
                         range));
  cluster_run_while(&scene.cluster, is_under_way, NULL, 60 * PWI_SIM_SECOND);
  if (most * most * (double)(scene.size * scene.width) > 9e15) return;
  scene.folds++;
  if (scene.tasks[slot].folded != wanted)
    fail_msg("seed %llu: a dot product of %g instead of %g", (unsigned long long)scene.cluster.config.seed,
             scene.tasks[slot].folded, wanted);
}

static void call_something(void) {
  static const enum pwi_linear kinds[] = {PWI_LINEAR_FILL, PWI_LINEAR_SCALE, PWI_LINEAR_AXPY, PWI_LINEAR_AXPY,
                                          PWI_LINEAR_COPY};
  size_t y = pwi_random_below(&scene.random, VECTORS), x = y ^ (size_t)pwi_random_below(&scene.random, 2);
  uint64_t what = pwi_random_below(&scene.random, 10);
  enum pwi_linear kind = kinds[what % 5];
  if (what >= 7 || (is_sparse(y) && kind == PWI_LINEAR_FILL))
    call_push(y);
  else if (what == 6)
    call_fold(x, y);
  else
    call_change(y, x, kind);
}

/* --- a run ---------------------------------------------------------------------------------------------- */

/* These faults kill no node, because one of two copies may be out of reach already. */
static void schedule_faults(struct pwi_sim_faults *faults) {
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_sim_now(scene.cluster.sim) + 2 * PWI_SIM_SECOND;
  config.end = config.begin + 8 * PWI_SIM_SECOND;
  config.weights[PWI_SIM_FAULT_KILL] = 0;
  must(pwi_sim_faults_draw(scene.cluster.sim, &config, faults));
  must(pwi_sim_faults_schedule(scene.cluster.sim, faults));
}

static void open_scene(uint64_t seed, bool is_wide) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = 3,
                                      .shards = 1,
                                      .replicas = 1,
                                      .client_grace_ns = 200 * MS,
                                      .shared_hosts = seed % 2 == 0};
  cluster_open(&scene.cluster, &config);
  scene.client = (struct pwi_cluster_client){.job = "linear", .name = "client"};
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_wait_joined(&scene.client);
  pwi_random_init(&scene.random, seed, 77);
  scene.size = is_wide ? 12 : 300;
  scene.width = is_wide ? 65536 : 1; /* four rows are a slice then */
  for (size_t i = 0; i < VECTORS; i++) {
    struct pawl_vector_options options = {.type = PAWL_I64, .width = (uint32_t)scene.width, .size = scene.size};
    char name[16];
    snprintf(name, sizeof name, "linear/v%zu", i);
    options.layout = is_sparse(i) ? PAWL_LAYOUT_SPARSE : PAWL_LAYOUT_DENSE;
    options.placement = PAWL_PLACE_ORDERED;
    scene.flows[i] = cluster_vector(&scene.client, name, &options);
    scene.model[i] = pwi_alloc_zero(scene.size * scene.width, sizeof(int64_t));
  }
  for (size_t i = 0; i < WINDOW; i++) scene.pushed[i] = pwi_alloc_zero(scene.size * scene.width, sizeof(int64_t));
}

static void close_scene(void) {
  scene.figures = pwi_cluster_client_figures(&scene.client);
  pwi_cluster_close(&scene.cluster);
  for (size_t i = 0; i < VECTORS; i++) pwi_free(scene.model[i]);
  for (size_t i = 0; i < WINDOW; i++) pwi_free(scene.pushed[i]);
}

static void compare(void) {
  static int64_t values[MOST];
  for (size_t i = 0; i < VECTORS; i++) {
    struct pwi_where where = {.range = {0, scene.size}};
    must(cluster_call(&scene.client, scene.flows[i], PWI_REQUEST_PULL, &where, NULL, values, NULL));
    for (size_t at = 0; at < scene.size * scene.width; at++)
      if (values[at] != scene.model[i][at])
        fail_msg("seed %llu: vector %zu at %zu: %lld instead of %lld", (unsigned long long)scene.cluster.config.seed, i,
                 at, (long long)values[at], (long long)scene.model[i][at]);
  }
}

static void run_seed(uint64_t seed, bool is_wide) {
  struct pwi_sim_faults faults = {0};
  open_scene(seed, is_wide);
  schedule_faults(&faults);
  size_t calls = is_wide ? CALLS / 4 : CALLS;
  for (size_t i = 0; i < calls; i++) {
    if (i == calls / 8 && seed % 3 == 0) pwi_cluster_kill(&scene.cluster, seed % 2);
    call_something();
    cluster_run_for(&scene.cluster, (int64_t)pwi_random_below(&scene.random, 200) * MS * (i > calls / 8) + 1);
  }
  cluster_run_while(&scene.cluster, is_under_way, NULL, 120 * PWI_SIM_SECOND);
  compare();
  close_scene();
  pwi_sim_faults_fini(&faults);
}

static void test_calls_are_applied_once_and_in_order_whatever_happens(void **state) {
  const char *many = getenv("PAWL_SEEDS");
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS, resent = 0, gaps = 0, retired = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    run_seed(seed, seed % 30 == 6);
    resent += scene.figures.parts_resent;
    gaps += scene.figures.gaps;
    retired += scene.figures.retirements;
  }
  print_message("seeds %llu: parts resent %llu, gaps %llu, retirements %llu, dot products %llu\n",
                (unsigned long long)seeds, (unsigned long long)resent, (unsigned long long)gaps,
                (unsigned long long)retired, (unsigned long long)scene.folds);
  assert_true(resent > seeds);
  assert_true(scene.folds > 0);
}

/* --- graphs of calls ------------------------------------------------------------------------------------ */

static void fix_delays(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->link = (struct pwi_sim_delay){MS, MS, MS};
}

static void await_calls(bool waits) {
  if (waits) cluster_run_while(&scene.cluster, is_under_way, NULL, 10 * PWI_SIM_SECOND);
}

#define NEVER INT64_MAX

/* Two proximal gradient steps and a pull of the weights: seven calls, each of which uses the result of the one before.
 * A server dies so long after the calls. Returns the virtual time. */
static int64_t take_steps(const char *weights, const char *gradient, bool waits, int64_t kill_after) {
  struct pawl_vector_options options = {.type = PAWL_F64, .width = 1, .size = 10};
  struct pwi_flow *w = cluster_vector(&scene.client, weights, &options);
  struct pwi_flow *g = cluster_vector(&scene.client, gradient, &options);
  struct pwi_client *client = scene.client.client;
  struct pwi_where where = {.range = {0, 10}};
  const double slopes[10] = {4, 4, 4, 4, 4, -4, -4, -4, -4, -4};
  double found[10];
  must(cluster_call(&scene.client, w, PWI_REQUEST_PULL, &where, NULL, found, NULL)); /* the link is up */
  int64_t begun = pwi_sim_now(scene.cluster.sim);
  for (int step = 0; step < 2; step++) {
    must(pwi_client_start(client, &scene.tasks[take_task()], g, PWI_REQUEST_PUSH, &where, slopes, NULL));
    await_calls(waits);
    must(pwi_client_run(client, &scene.tasks[take_task()], w, g, "proximal rate=0.5 l1=1", PAWL_ALL));
    await_calls(waits);
    must(pwi_client_linear(client, &scene.tasks[take_task()], g, NULL, PWI_LINEAR_SCALE, 0, PAWL_ALL));
    await_calls(waits);
  }
  must(pwi_client_start(client, &scene.tasks[take_task()], w, PWI_REQUEST_PULL, &where, NULL, found));
  if (kill_after != NEVER) {
    cluster_run_for(&scene.cluster, kill_after + 1);
    pwi_cluster_kill(&scene.cluster, 1);
  }
  await_calls(true);
  for (size_t i = 0; i < 10; i++) assert_true(found[i] == (i < 5 ? -3 : 3)); /* twice -2, and shrunk by 0.5 */
  return pwi_sim_now(scene.cluster.sim) - begun;
}

static void open_fixed(uint32_t processes, uint32_t replicas) {
  struct pwi_cluster_config config = {
      .seed = 8, .processes = processes, .shards = 1, .replicas = replicas, .checked_hosts = true, .tune = fix_delays};
  cluster_open(&scene.cluster, &config);
  scene.client = (struct pwi_cluster_client){.job = "linear", .name = "client"};
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_wait_joined(&scene.client);
}

/* The servers keep the order, so a client sends the calls at once. */
static void test_a_graph_of_calls_takes_one_round_trip(void **state) {
  (void)state;
  open_fixed(1, 0);
  int64_t waiting = take_steps("a/w", "a/g", true, NEVER), at_once = take_steps("b/w", "b/g", false, NEVER);
  print_message("seven calls, 2 ms a round trip: %.1f ms one after the other, %.1f ms at once\n",
                (double)waiting / (double)MS, (double)at_once / (double)MS);
  assert_true(at_once < 3 * MS && waiting > 13 * MS);
  pwi_cluster_close(&scene.cluster);
}

/* Requests take 1 ms to a server, updates 1 ms more to its replica, and answers of both 1 ms back. */
static void test_a_graph_is_applied_in_order_whenever_a_server_dies(void **state) {
  (void)state;
  for (int64_t after = 0; after < 5 * MS; after += MS / 4) {
    open_fixed(3, 1);
    take_steps("a/w", "a/g", false, after);
    assert_true(pwi_cluster_client_figures(&scene.client).parts_resent > 0 || after > 4 * MS);
    pwi_cluster_close(&scene.cluster);
  }
}

/* --- vectors that are not there ------------------------------------------------------------------------- */

/* A link may permit less than the client was told: reading x needs a right to x. */
static char space[PWI_SPACE_MAX + 1];

static struct pwi_rights limited(void *context, const char *identity) {
  struct pwi_rights rights = {.write = true};
  (void)context, (void)identity;
  memcpy(rights.space, space, sizeof rights.space);
  return rights;
}

static pawl_status linear(struct pwi_flow *y, struct pwi_flow *x, enum pwi_linear kind) {
  scene.tasks[0] = (struct pwi_task){.finished = let_go};
  scene.under_way = 1;
  must(pwi_client_linear(scene.client.client, &scene.tasks[0], y, x, kind, 0, PAWL_ALL));
  cluster_run_while(&scene.cluster, is_under_way, NULL, 10 * PWI_SIM_SECOND);
  return scene.tasks[0].status;
}

static void test_a_vector_of_another_space_cannot_be_read_through_ones_own(void **state) {
  struct pwi_cluster_config config = {.seed = 5, .processes = 1, .shards = 1, .rights = limited};
  struct pawl_vector_options options = {.type = PAWL_F64, .width = 1, .size = 100};
  (void)state;
  space[0] = '\0';
  cluster_open(&scene.cluster, &config);
  scene.client = (struct pwi_cluster_client){.job = "linear", .name = "client"};
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_wait_joined(&scene.client);
  struct pwi_flow *own = cluster_vector(&scene.client, "own/y", &options);
  struct pwi_flow *twin = cluster_vector(&scene.client, "own/x", &options);
  struct pwi_flow *secret = cluster_vector(&scene.client, "secret/x", &options);
  strcpy(space, "own");                                                   /* for links that come up from
                                                                             now on */
  assert_int_equal(linear(own, secret, PWI_LINEAR_COPY), PAWL_NOT_FOUND); /* as if there were none */
  assert_int_equal(linear(own, secret, PWI_LINEAR_DOT), PAWL_NOT_FOUND);
  assert_int_equal(linear(own, twin, PWI_LINEAR_COPY), PAWL_OK); /* the number was used up: nothing is
                                                                    missing */
  assert_int_equal(linear(own, twin, PWI_LINEAR_DOT), PAWL_OK);
  pwi_cluster_close(&scene.cluster);
}

/* Another client deletes the vector that is read, and this client does not know it yet: the change that reads
 * it fails, and others continue. */
static void test_a_vector_that_is_gone_fails_the_changes_by_it_alone(void **state) {
  struct pwi_cluster_config config = {.seed = 6, .processes = 2, .shards = 1, .replicas = 1};
  struct pwi_cluster_client other = {.job = "linear", .name = "other"};
  (void)state;
  cluster_open(&scene.cluster, &config);
  scene.client = (struct pwi_cluster_client){.job = "linear", .name = "client"};
  cluster_client_add(&scene.cluster, &scene.client);
  cluster_client_add(&scene.cluster, &other);
  cluster_wait_joined(&scene.client);
  cluster_wait_joined(&other);
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pawl_vector_options options = {.type = PAWL_F64, .width = 1, .size = sparse ? PAWL_KEY_END : 100};
    struct pwi_flow *x = cluster_vector(&scene.client, sparse ? "a/xs" : "a/x", &options);
    struct pwi_flow *y = cluster_vector(&scene.client, sparse ? "a/ys" : "a/y", &options);
    struct pwi_writer name = {0};
    assert_int_equal(linear(y, x, PWI_LINEAR_COPY), PAWL_OK);
    pwi_sim_cut(scene.cluster.sim, scene.cluster.manager_node, scene.client.node);
    pwi_write_text(&name, sparse ? "a/xs" : "a/x");
    assert_int_equal(cluster_ask(&other, PWI_ASK_DELETE, &name), PAWL_OK);
    pwi_writer_fini(&name);
    cluster_run_for(&scene.cluster, 20 * MS);
    assert_int_equal(linear(y, x, PWI_LINEAR_COPY), PAWL_NOT_FOUND);
    pwi_sim_mend(scene.cluster.sim, scene.cluster.manager_node, scene.client.node);
    assert_int_equal(linear(y, NULL, PWI_LINEAR_SCALE), PAWL_OK);
    cluster_run_for(&scene.cluster, 500 * MS);
  }
  pwi_cluster_close(&scene.cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_are_applied_once_and_in_order_whatever_happens),
      cmocka_unit_test(test_a_graph_of_calls_takes_one_round_trip),
      cmocka_unit_test(test_a_graph_is_applied_in_order_whenever_a_server_dies),
      cmocka_unit_test(test_a_vector_of_another_space_cannot_be_read_through_ones_own),
      cmocka_unit_test(test_a_vector_that_is_gone_fails_the_changes_by_it_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
