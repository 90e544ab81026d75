/* many: 1000
 *
 * Managers that take turns, under faults: leaders are killed, stopped and cut off, from nodes and from the
 * store, while workers push and arcs move. The log never forks (checked by leaders.h), no push is lost or
 * counted twice (the workers and their history are those of sim/campaign), and at the end one manager leads.
 *
 *   PAWL_SEED=n     run this seed only, and print its log
 *   PAWL_SEEDS=n    number of seeds to run
 */
#include <pawl/log.h>

#include "base/memory.h"
#include "base/testing.h"
#include "cluster.h"
#include "leaders.h"
#include "sim/campaign/inside.h"
#include "sim/faults.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 40
#else
#define SEEDS 100
#endif

#define WINDOW (15 * PWI_SIM_SECOND) /* time during which faults happen */

/* --- scenes --------------------------------------------------------------------------------------------- */

static bool has_no_leader(void *context) { return leaders_first(context) == NULL; }

struct scene {
  struct pwi_cluster cluster;
  struct leaders leaders;
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  int64_t pushed;
};

static struct leader *await_leader(struct scene *scene) {
  cluster_run_while(&scene->cluster, has_no_leader, &scene->leaders, 20 * PWI_SIM_SECOND);
  return leaders_first(&scene->leaders);
}

static void open_scene(struct scene *scene, uint64_t seed) {
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 100};
  struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .managers = leaders_addresses(2)};
  *scene = (struct scene){.client = {.name = "c"}};
  cluster_open(&scene->cluster, &config);
  leaders_open(&scene->leaders, &scene->cluster, 2);
  cluster_client_add(&scene->cluster, &scene->client);
  cluster_wait_joined(&scene->client);
  scene->flow = cluster_vector(&scene->client, "a/v", &options);
}

static void close_scene(struct scene *scene) {
  pwi_cluster_close(&scene->cluster);
  leaders_close(&scene->leaders);
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

static bool is_not_ready(void *context) { return !pwi_cluster_is_ready(context); }

static void test_pushes_go_on_while_a_leader_is_killed_and_replaced(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 1);
  for (uint64_t round = 0; round < 4; round++) {
    struct leader *old = await_leader(&scene);
    uint64_t term = old->term;
    int64_t begin = pwi_sim_now(scene.cluster.sim);
    pwi_sim_kill(scene.cluster.sim, old->node);
    while (has_no_leader(&scene.leaders)) {
      push_one(&scene);
      cluster_run_for(&scene.cluster, 50 * MS);
    }
    assert_true(pwi_sim_now(scene.cluster.sim) - begin < 3500 * MS);
    assert_int_equal(leaders_first(&scene.leaders)->term, term + 1);
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
  close_scene(&scene);
}

/* The standby's link to the leader breaks, and no process listens at the leader's address any more. */
static void test_a_killed_leader_is_replaced_within_a_second(void **state) {
  (void)state;
  for (uint64_t seed = 20; seed < 40; seed++) {
    struct scene scene;
    open_scene(&scene, seed);
    struct leader *old = await_leader(&scene);
    uint64_t term = old->term;
    cluster_run_for(&scene.cluster, 500 * MS);
    pwi_sim_kill(scene.cluster.sim, old->node);
    cluster_run_while(&scene.cluster, has_no_leader, &scene.leaders, PWI_SIM_SECOND);
    assert_int_equal(leaders_first(&scene.leaders)->term, term + 1);
    assert_int_equal(create(&scene, "a/new"), PAWL_OK);
    close_scene(&scene);
  }
}

/* Broken links, and links that cannot be made, prove nothing: the leader has its lease, and keeps it. */
static void test_a_leader_that_its_standby_cannot_reach_leads_on(void **state) {
  (void)state;
  for (uint64_t seed = 60; seed < 70; seed++) {
    struct scene scene;
    open_scene(&scene, seed);
    struct leader *leader = await_leader(&scene), *other = &scene.leaders.all[leader == &scene.leaders.all[0]];
    struct pwi_sim *sim = scene.cluster.sim;
    for (int i = 0; i < 20; i++) {
      pwi_sim_break(sim, leader->node, other->node);
      cluster_run_for(&scene.cluster, 100 * MS);
    }
    pwi_sim_cut(sim, leader->node, other->node);
    cluster_run_for(&scene.cluster, 5000 * MS);
    pwi_sim_mend(sim, leader->node, other->node);
    cluster_run_for(&scene.cluster, 2000 * MS);
    assert_ptr_equal(leaders_first(&scene.leaders), leader);
    assert_int_equal(scene.leaders.terms, 1);
    close_scene(&scene);
  }
}

/* It continues and believes that it leads: it cannot decide anything, and nodes ignore it. */
static void test_a_leader_that_was_stopped_changes_nothing(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 2);
  struct leader *old = await_leader(&scene);
  uint64_t old_term = old->term;
  pwi_sim_pause(scene.cluster.sim, old->node, 6000 * MS);
  cluster_run_for(&scene.cluster, 5000 * MS);
  struct leader *fresh = leaders_first(&scene.leaders);
  assert_ptr_not_equal(fresh, old);
  assert_int_equal(fresh->term, old_term + 1);
  assert_int_equal(create(&scene, "a/new"), PAWL_OK);
  uint64_t records = scene.leaders.records;
  cluster_run_for(&scene.cluster, 3000 * MS); /* it wakes up in between */
  assert_int_equal(scene.leaders.records, records);
  assert_ptr_equal(leaders_first(&scene.leaders), fresh);
  push_one(&scene);
  assert_pushed(&scene);
  close_scene(&scene);
}

static void test_nothing_is_decided_while_the_store_is_away_and_pushes_go_on(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 3);
  struct leader *leader = await_leader(&scene);
  uint64_t records = scene.leaders.records;
  pwi_sim_meta_cut(scene.leaders.store, PWI_SIM_ALL, true);
  for (int i = 0; i < 30; i++) {
    push_one(&scene);
    cluster_run_for(&scene.cluster, 40 * MS);
  }
  assert_int_equal(scene.leaders.records, records);
  pwi_sim_meta_cut(scene.leaders.store, PWI_SIM_ALL, false);
  assert_int_equal(create(&scene, "a/after"), PAWL_OK); /* by the same leader: its lease has not ended */
  assert_ptr_equal(leaders_first(&scene.leaders), leader);
  assert_int_equal(scene.leaders.terms, 1);
  pwi_sim_meta_cut(scene.leaders.store, PWI_SIM_ALL, true);
  for (int i = 0; i < 30; i++) {
    push_one(&scene);
    cluster_run_for(&scene.cluster, 500 * MS);
  }
  pwi_sim_meta_cut(scene.leaders.store, PWI_SIM_ALL, false);
  assert_int_equal(create(&scene, "a/later"), PAWL_OK);
  assert_int_equal(scene.leaders.terms, 2);
  assert_pushed(&scene);
  close_scene(&scene);
}

/* Nodes reach it, and it does not know that another manager leads: it must close their links. */
static void test_a_leader_that_is_cut_off_from_the_store_alone_lets_its_nodes_go(void **state) {
  (void)state;
  for (uint64_t seed = 40; seed < 50; seed++) {
    struct scene scene;
    open_scene(&scene, seed);
    const struct leader *old = await_leader(&scene);
    cluster_run_for(&scene.cluster, 3 * PWI_SIM_SECOND);
    int64_t begin = pwi_sim_now(scene.cluster.sim);
    pwi_sim_meta_cut(scene.leaders.store, old->node, true);
    cluster_run_for(&scene.cluster, 100 * MS);
    assert_int_equal(create(&scene, "a/new"), PAWL_OK);
    assert_true(pwi_sim_now(scene.cluster.sim) - begin < 5 * PWI_SIM_SECOND);
    assert_ptr_not_equal(leaders_first(&scene.leaders), old);
    push_one(&scene);
    assert_pushed(&scene);
    close_scene(&scene);
  }
}

static void test_who_comes_to_a_standby_is_sent_on(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene, 4);
  struct leader *leader = await_leader(&scene);
  const struct leader *other = &scene.leaders.all[leader == &scene.leaders.all[0]];
  struct pwi_cluster_client late = {.name = "late", .reader = true};
  scene.cluster.config.managers = other->address; /* it knows of no other */
  cluster_client_add(&scene.cluster, &late);
  cluster_wait_joined(&late);
  struct pwi_client_state client;
  pwi_client_state(late.client, &client);
  assert_true(client.joined && client.trouble == PAWL_OK);
  close_scene(&scene);
}

/* --- campaigns ------------------------------------------------------------------------------------------ */

struct attack {
  struct campaign campaign;
  struct leaders leaders;
  struct pwi_random random; /* of the cutter */
  int64_t until;
};

static struct pwi_campaign_config draw_config(uint64_t seed) {
  struct pwi_random random;
  pwi_random_init(&random, seed, 12346);
  struct pwi_campaign_config config = {.seed = seed, .calls = 600, .gap_moves_ns = 120 * MS};
  config.processes = 1 + (uint32_t)pwi_random_below(&random, 3);
  config.shards = 1 + (uint32_t)pwi_random_below(&random, 2);
  config.client_grace_ns = (100 + (int64_t)pwi_random_below(&random, 2000)) * MS;
  config.shared_hosts = pwi_random_chance(&random, 0.5);
  config.workers = 1 + (uint32_t)pwi_random_below(&random, 2);
  return config;
}

static void open_attack(struct attack *attack, uint64_t seed) {
  struct campaign *campaign = &attack->campaign;
  size_t managers = 2 + seed % 2;
  memset(attack, 0, sizeof *attack);
  campaign->config = draw_config(seed);
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = campaign->config.processes,
                                      .shards = campaign->config.shards,
                                      .client_grace_ns = campaign->config.client_grace_ns,
                                      .shared_hosts = campaign->config.shared_hosts,
                                      .managers = leaders_addresses(managers)};
  cluster_open(&campaign->cluster, &config);
  leaders_open(&attack->leaders, &campaign->cluster, managers);
  cluster_check(&campaign->cluster, pwi_campaign_work(campaign), "going to work");
  attack->until = pwi_sim_now(campaign->cluster.sim) + WINDOW;
  pwi_sim_stream(campaign->cluster.sim, 6, &attack->random);
}

static void close_attack(struct attack *attack) {
  pwi_cluster_close(&attack->campaign.cluster);
  pwi_book_fini(&attack->campaign);
  leaders_close(&attack->leaders);
}

static struct pwi_sim_faults draw_faults(struct attack *attack, bool on_managers) {
  static const enum pwi_sim_fault_kind kinds[] = {PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_CUT,   PWI_SIM_FAULT_PART,
                                                  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_MUTE,  PWI_SIM_FAULT_ISOLATE,
                                                  PWI_SIM_FAULT_SLOW,  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_PAUSE};
  struct campaign *campaign = &attack->campaign;
  struct pwi_cluster *cluster = &campaign->cluster;
  struct pwi_sim_node nodes[PWI_CLUSTER_SERVERS + WORKERS_MAX + LEADERS_MAX];
  struct pwi_sim_faults_config config;
  size_t count = 0;
  for (size_t i = 0; i < attack->leaders.count; i++) nodes[count++] = attack->leaders.all[i].node;
  for (uint32_t w = 0; !on_managers && w < campaign->config.workers; w++)
    nodes[count++] = campaign->workers[w].client.node;
  for (size_t i = 0; !on_managers && i < cluster->server_count; i++) nodes[count++] = cluster->servers[i].node;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_sim_now(cluster->sim) + 20 * MS;
  config.end = config.begin + WINDOW;
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

/* Cuts the store off from one manager or from all, and reconnects it. */
static void cut_next(void *context) {
  struct attack *attack = context;
  struct leaders *leaders = &attack->leaders;
  struct pwi_sim *sim = attack->campaign.cluster.sim;
  bool is_over = pwi_sim_now(sim) >= attack->until;
  for (size_t i = 0; i < leaders->count; i++)
    pwi_sim_meta_cut(leaders->store, leaders->all[i].node, !is_over && pwi_random_chance(&attack->random, 0.15));
  pwi_sim_meta_cut(leaders->store, PWI_SIM_ALL, !is_over && pwi_random_chance(&attack->random, 0.1));
  if (is_over) return;
  int64_t next = pwi_sim_now(sim) + (int64_t)pwi_random_below(&attack->random, 1500) * MS;
  assert_int_equal(pwi_sim_call_at(sim, next, cut_next, attack), PAWL_OK);
}

static bool is_working(void *context) { return pwi_workers_are_busy(context); }

struct totals {
  uint64_t terms, records, events, pushes;
};

static void run_seed(uint64_t seed, struct totals *totals) {
  static struct attack attack;
  struct campaign *campaign = &attack.campaign;
  open_attack(&attack, seed);
  struct pwi_sim_faults faults = draw_faults(&attack, false), kills = draw_faults(&attack, true);
  cut_next(&attack);
  cluster_run_for(&campaign->cluster, WINDOW + 100 * MS);
  cluster_run_while(&campaign->cluster, is_working, campaign, 120 * PWI_SIM_SECOND);
  campaign->is_quiet = true;
  cluster_check(&campaign->cluster, pwi_campaign_compare(campaign), "comparing");
  cluster_run_while(&campaign->cluster, is_not_ready, &campaign->cluster, 30 * PWI_SIM_SECOND);
  totals->terms += attack.leaders.terms;
  totals->records += attack.leaders.records;
  totals->events += pwi_sim_event_count(campaign->cluster.sim);
  totals->pushes += campaign->figures.pushes;
  close_attack(&attack);
  pwi_sim_faults_fini(&faults);
  pwi_sim_faults_fini(&kills);
}

static void test_the_log_never_forks_and_no_push_is_lost_whatever_happens(void **state) {
  (void)state;
  struct totals totals = {0};
  const char *one = getenv("PAWL_SEED"), *many = getenv("PAWL_SEEDS");
  if (one) {
    cluster_print_log();
    run_seed(strtoull(one, NULL, 10), &totals);
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
  for (uint64_t seed = 1; seed <= seeds; seed++) run_seed(seed, &totals);
  printf("seeds=%llu events=%llu terms=%llu records=%llu pushes=%llu\n", (unsigned long long)seeds,
         (unsigned long long)totals.events, (unsigned long long)totals.terms, (unsigned long long)totals.records,
         (unsigned long long)totals.pushes);
  assert_true(totals.terms > 2 * seeds && totals.pushes > 100 * seeds);
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
      cmocka_unit_test(test_a_killed_leader_is_replaced_within_a_second),
      cmocka_unit_test(test_a_leader_that_its_standby_cannot_reach_leads_on),
      cmocka_unit_test(test_a_leader_that_was_stopped_changes_nothing),
      cmocka_unit_test(test_nothing_is_decided_while_the_store_is_away_and_pushes_go_on),
      cmocka_unit_test(test_a_leader_that_is_cut_off_from_the_store_alone_lets_its_nodes_go),
      cmocka_unit_test(test_who_comes_to_a_standby_is_sent_on),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_the_log_never_forks_and_no_push_is_lost_whatever_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
