/* timeout: 300
 *
 * Managers that take turns, attacked: leaders killed, stopped and cut off, from nodes and from the store, while workers push
 * and arcs move. The log never forks (leaders.h watches), no push is lost or counted twice (worker.h compares), and in the
 * end one leads.
 *
 *   PAWL_SEED=n     run this seed alone, and print its log
 *   PAWL_SEEDS=n    run so many
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pawl/log.h>

#include "base/memory.h"
#include "sim/faults.h"
#include "worker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 40
#else
#define SEEDS 300
#endif

/* --- scenes -------------------------------------------------------------------------------------------------------------- */

static bool has_no_leader(void *context) { return leaders_first(context) == NULL; }

static struct leader *await_leader(struct cluster *cluster) {
  cluster_run_while(cluster, has_no_leader, &cluster->leaders, 20 * PWI_SIM_SECOND);
  return leaders_first(&cluster->leaders);
}

struct scene {
  struct cluster cluster;
  struct cluster_client client;
  struct pwi_flow *flow;
  int64_t pushed;
};

static void open_scene(struct scene *scene, uint64_t seed) {
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  struct cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .managers = 2};
  *scene = (struct scene){.client = {.name = "c"}};
  cluster_open(&scene->cluster, &config);
  cluster_client_add(&scene->cluster, &scene->client);
  cluster_wait_joined(&scene->client);
  scene->flow = cluster_vector(&scene->client, "a/v", &options);
}

static void push_one(struct scene *scene) {
  static const uint64_t key = 7;
  static const int64_t one = 1;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene->client, scene->flow, PWI_REQUEST_PUSH, &where, &one, NULL, NULL), PAWL_OK);
  scene->pushed++;
}

static void assert_pushed(struct scene *scene) {
  static const uint64_t key = 7;
  int64_t value = 0;
  struct pwi_where where = {.keys = &key, .count = 1};
  assert_int_equal(cluster_call(&scene->client, scene->flow, PWI_REQUEST_PULL, &where, NULL, &value, NULL), PAWL_OK);
  assert_int_equal(value, scene->pushed);
}

static pawl_status create(struct scene *scene, const char *name) {
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  return cluster_vector(&scene->client, name, &options) ? PAWL_OK : PAWL_NOT_FOUND;
}

static bool is_not_ready(void *context) { return !cluster_is_ready(context); }

static void test_pushes_go_on_while_a_leader_is_killed_and_replaced(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 1);
  for (uint64_t round = 0; round < 4; round++) {
    struct leader *old = await_leader(&scene.cluster);
    uint64_t term = old->term;
    int64_t begin = pwi_sim_now(scene.cluster.sim);
    pwi_sim_kill(scene.cluster.sim, old->node);
    while (has_no_leader(&scene.cluster.leaders)) {
      push_one(&scene);
      cluster_run_for(&scene.cluster, 50 * MS);
    }
    assert_true(pwi_sim_now(scene.cluster.sim) - begin < 3500 * MS);
    assert_int_equal(leaders_first(&scene.cluster.leaders)->term, term + 1);
    cluster_run_while(&scene.cluster, is_not_ready, &scene.cluster, 10 * PWI_SIM_SECOND);
    assert_int_equal(create(&scene, round % 2 ? "a/odd" : "a/even") == PAWL_OK, 1);
    cluster_run_for(&scene.cluster, 10 * MS);
    struct pwi_writer writer = {0};
    pwi_write_text(&writer, round % 2 ? "a/odd" : "a/even");
    assert_int_equal(cluster_ask(&scene.client, PWI_ASK_DELETE, &writer), PAWL_OK);
    pwi_writer_fini(&writer);
    assert_int_equal(pwi_sim_start(scene.cluster.sim, old->node), PAWL_OK);
  }
  assert_pushed(&scene);
  cluster_close(&scene.cluster);
}

/* It wakes up and believes that it leads: what it is asked for it cannot decide, and nobody listens to it. */
static void test_a_leader_that_was_stopped_changes_nothing(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 2);
  struct leader *old = await_leader(&scene.cluster);
  uint64_t old_term = old->term;
  pwi_sim_pause(scene.cluster.sim, old->node, 6000 * MS);
  cluster_run_for(&scene.cluster, 5000 * MS);
  struct leader *fresh = leaders_first(&scene.cluster.leaders);
  assert_ptr_not_equal(fresh, old);
  assert_int_equal(fresh->term, old_term + 1);
  assert_int_equal(create(&scene, "a/new"), PAWL_OK);
  uint64_t records = scene.cluster.leaders.records;
  cluster_run_for(&scene.cluster, 3000 * MS); /* it wakes up in between */
  assert_int_equal(scene.cluster.leaders.records, records);
  assert_ptr_equal(leaders_first(&scene.cluster.leaders), fresh);
  push_one(&scene);
  assert_pushed(&scene);
  cluster_close(&scene.cluster);
}

static void test_nothing_is_decided_while_the_store_is_away_and_pushes_go_on(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 3);
  struct leader *leader = await_leader(&scene.cluster);
  uint64_t records = scene.cluster.leaders.records;
  pwi_sim_meta_cut(scene.cluster.leaders.store, PWI_SIM_ALL, true);
  for (int i = 0; i < 30; i++) {
    push_one(&scene);
    cluster_run_for(&scene.cluster, 40 * MS);
  }
  assert_int_equal(scene.cluster.leaders.records, records);
  pwi_sim_meta_cut(scene.cluster.leaders.store, PWI_SIM_ALL, false);
  assert_int_equal(create(&scene, "a/after"), PAWL_OK); /* by the same leader: its lease has not ended */
  assert_ptr_equal(leaders_first(&scene.cluster.leaders), leader);
  assert_int_equal(scene.cluster.leaders.terms, 1);
  pwi_sim_meta_cut(scene.cluster.leaders.store, PWI_SIM_ALL, true);
  for (int i = 0; i < 30; i++) {
    push_one(&scene);
    cluster_run_for(&scene.cluster, 500 * MS);
  }
  pwi_sim_meta_cut(scene.cluster.leaders.store, PWI_SIM_ALL, false);
  assert_int_equal(create(&scene, "a/later"), PAWL_OK);
  assert_int_equal(scene.cluster.leaders.terms, 2);
  assert_pushed(&scene);
  cluster_close(&scene.cluster);
}

static void test_who_comes_to_a_standby_is_sent_on(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 4);
  struct leader *leader = await_leader(&scene.cluster);
  const struct leader *other = &scene.cluster.leaders.all[leader == &scene.cluster.leaders.all[0]];
  struct cluster_client late = {.name = "late", .reader = true};
  scene.cluster.manager_address = other->address; /* it knows of no other */
  cluster_client_add(&scene.cluster, &late);
  cluster_wait_joined(&late);
  struct pwi_client_state client;
  pwi_client_state(late.client, &client);
  assert_true(client.joined && client.trouble == PAWL_OK);
  cluster_close(&scene.cluster);
}

/* --- campaigns ----------------------------------------------------------------------------------------------------------- */

static struct cluster_config draw_config(uint64_t seed) {
  struct pwi_random random;
  pwi_random_init(&random, seed, 12346);
  struct cluster_config config = {.seed = seed};
  config.processes = 1 + (uint32_t)pwi_random_below(&random, 3);
  config.shards = 1 + (uint32_t)pwi_random_below(&random, 2);
  config.managers = 2 + (uint32_t)pwi_random_below(&random, 2);
  config.client_grace_ns = (100 + (int64_t)pwi_random_below(&random, 2000)) * MS;
  config.shared_hosts = pwi_random_chance(&random, 0.5);
  return config;
}

static struct pwi_sim_faults draw_faults(struct campaign *campaign, bool on_managers) {
  static const enum pwi_sim_fault_kind kinds[] = {PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_CUT,   PWI_SIM_FAULT_PART,
                                                  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_MUTE,  PWI_SIM_FAULT_ISOLATE,
                                                  PWI_SIM_FAULT_SLOW,  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_PAUSE};
  struct cluster *cluster = &campaign->cluster;
  struct pwi_sim_node nodes[CLUSTER_SERVERS + WORKERS_MAX + LEADERS_MAX];
  struct pwi_sim_faults_config config;
  size_t count = 0;
  for (size_t i = 0; i < cluster->leaders.count; i++) nodes[count++] = cluster->leaders.all[i].node;
  for (uint32_t w = 0; !on_managers && w < campaign->worker_count; w++)
    nodes[count++] = campaign->workers[w].client.node;
  for (size_t i = 0; !on_managers && i < cluster->server_count; i++) nodes[count++] = cluster->servers[i].node;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_sim_now(cluster->sim) + 20 * MS;
  config.end = config.begin + 15000 * MS;
  config.gap_mean_ns = on_managers ? 1200 * MS : 700 * MS;
  config.duration_max_ns = on_managers ? 3000 * MS : 500 * MS;
  config.pause_max_ns = on_managers ? 5000 * MS : 1200 * MS;
  config.nodes = nodes;
  config.node_count = count;
  config.number = on_managers;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) config.weights[kinds[i]] += on_managers ? 0.5 : 1;
  if (on_managers) config.weights[PWI_SIM_FAULT_KILL] = 4;
  struct pwi_sim_faults faults;
  assert_int_equal(pwi_sim_faults_draw(cluster->sim, &config, &faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(cluster->sim, &faults), PAWL_OK);
  return faults;
}

/* The store is cut off, from one manager or from all, and back. */
struct cutter {
  struct campaign *campaign;
  struct pwi_random random;
  int64_t until;
};

static void cut_next(void *context) {
  struct cutter *cutter = context;
  struct leaders *leaders = &cutter->campaign->cluster.leaders;
  struct pwi_sim *sim = cutter->campaign->cluster.sim;
  bool is_over = pwi_sim_now(sim) >= cutter->until;
  for (size_t i = 0; i < leaders->count; i++)
    pwi_sim_meta_cut(leaders->store, leaders->all[i].node, !is_over && pwi_random_chance(&cutter->random, 0.15));
  pwi_sim_meta_cut(leaders->store, PWI_SIM_ALL, !is_over && pwi_random_chance(&cutter->random, 0.1));
  if (is_over) return;
  int64_t next = pwi_sim_now(sim) + (int64_t)pwi_random_below(&cutter->random, 1500) * MS;
  assert_int_equal(pwi_sim_call_at(sim, next, cut_next, cutter), PAWL_OK);
}

struct totals {
  uint64_t terms, records, events, pushes;
};

static void run_seed(uint64_t seed, struct totals *totals) {
  static struct campaign campaign;
  memset(&campaign, 0, sizeof campaign);
  struct cluster_config config = draw_config(seed);
  cluster_open(&campaign.cluster, &config);
  campaign_begin(&campaign, 1 + (uint32_t)pwi_random_below(&campaign.cluster.random, 2), 600);
  struct pwi_sim_faults faults = draw_faults(&campaign, false), kills = draw_faults(&campaign, true);
  struct cutter cutter = {.campaign = &campaign, .until = pwi_sim_now(campaign.cluster.sim) + 15000 * MS};
  pwi_sim_stream(campaign.cluster.sim, 6, &cutter.random);
  cut_next(&cutter);
  cluster_run_for(&campaign.cluster, 15100 * MS);
  campaign_end(&campaign);
  cluster_run_while(&campaign.cluster, is_not_ready, &campaign.cluster, 30 * PWI_SIM_SECOND);
  totals->terms += campaign.cluster.leaders.terms;
  totals->records += campaign.cluster.leaders.records;
  totals->events += pwi_sim_event_count(campaign.cluster.sim);
  cluster_close(&campaign.cluster);
  campaign_free(&campaign);
  pwi_sim_faults_fini(&faults);
  pwi_sim_faults_fini(&kills);
}

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  printf("%.6f %s %s\n", (double)line->time_ns / 1e9, line->node, line->text);
}

static void test_the_log_never_forks_and_no_push_is_lost_whatever_happens(void **state) {
  (void)state;
  struct totals totals = {0};
  const char *one = getenv("PAWL_SEED"), *many = getenv("PAWL_SEEDS");
  if (one) {
    pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG);
    run_seed(strtoull(one, NULL, 10), &totals);
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
  for (uint64_t seed = 1; seed <= seeds; seed++) run_seed(seed, &totals);
  printf("seeds=%llu events=%llu terms=%llu records=%llu\n", (unsigned long long)seeds,
         (unsigned long long)totals.events, (unsigned long long)totals.terms, (unsigned long long)totals.records);
  assert_true(totals.terms > 2 * seeds);
}

static void test_nothing_leaks(void **state) {
  (void)state;
  struct totals totals = {0};
  uint64_t before = pwi_memory_counts().live;
  run_seed(7, &totals);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pushes_go_on_while_a_leader_is_killed_and_replaced),
      cmocka_unit_test(test_a_leader_that_was_stopped_changes_nothing),
      cmocka_unit_test(test_nothing_is_decided_while_the_store_is_away_and_pushes_go_on),
      cmocka_unit_test(test_who_comes_to_a_standby_is_sent_on),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_the_log_never_forks_and_no_push_is_lost_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
