/* many: 1000
 *
 * Counts that stay exact when any process is killed (counts.h). Workers are killed, stopped and cut off at
 * any moment, also during takeovers, and replaced by new senders; links break; a server is killed and returns
 * empty. At the end every row adds up to the corpus, the totals to the sum of all rows, and the topics in the
 * files give exactly the table on the servers.
 *
 *   PAWL_SEEDS=n    number of seeds to run
 *   PAWL_SEED=n     run this seed only, and print its events
 */
#include "base/testing.h"
#include "counts.h"
#include "sim/faults.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 40
#else
#define SEEDS 100
#endif
#define BUG_SEEDS 300 /* each bug must be found among so many */

#define LINKS_END (800 * MS)   /* for so long links suffer, */
#define WINDOW_END (2500 * MS) /* and workers */
#define PATIENCE_END (60 * PWI_SIM_SECOND)

static struct counts counts;

struct attack {
  struct pwi_sim_faults links, kills, stops;
  int64_t kill_at, start_at; /* of a server process */
  size_t process;
  uint64_t server_kills;
  int64_t begun;
};

/* --- what goes wrong ------------------------------------------------------------------------------------ */

static void schedule(const struct pwi_sim_faults_config *config, struct pwi_sim_faults *faults) {
  cluster_check(&counts.cluster, pwi_sim_faults_draw(counts.cluster.sim, config, faults), "drawing faults");
  cluster_check(&counts.cluster, pwi_sim_faults_schedule(counts.cluster.sim, faults), "scheduling faults");
}

/* These faults kill no node and silence none for long, because one of two copies may be out of reach. */
static void attack_links(struct attack *attack) {
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = attack->begun + 1;
  config.end = attack->begun + LINKS_END;
  config.gap_mean_ns = 60 * MS;
  config.duration_max_ns = 100 * MS;
  memset(config.weights, 0, sizeof config.weights);
  config.weights[PWI_SIM_FAULT_BREAK] = config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 1;
  schedule(&config, &attack->links);
}

/* Short faults mostly kill a worker in the middle of a step; a worker that is stopped or cut off for long is
 * declared dead. */
static void attack_workers(struct attack *attack, bool is_long, struct pwi_sim_faults *faults) {
  struct pwi_sim_node nodes[COUNTS_WORKERS];
  struct pwi_sim_faults_config config;
  for (size_t w = 0; w < COUNTS_WORKERS; w++) nodes[w] = counts.workers[w].client.node;
  pwi_sim_faults_config_init(&config);
  config.begin = attack->begun + 1;
  config.end = attack->begun + WINDOW_END;
  config.gap_mean_ns = is_long ? 300 * MS : 200 * MS;
  config.duration_min_ns = is_long ? 300 * MS : 5 * MS;
  config.duration_max_ns = config.pause_max_ns = is_long ? 1200 * MS : 300 * MS;
  config.nodes = nodes;
  config.node_count = COUNTS_WORKERS;
  config.number = is_long ? 2 : 1;
  config.down_max = 2;
  memset(config.weights, 0, sizeof config.weights);
  config.weights[PWI_SIM_FAULT_KILL] = is_long ? 0 : 4;
  config.weights[PWI_SIM_FAULT_PAUSE] = config.weights[PWI_SIM_FAULT_ISOLATE] = 1;
  schedule(&config, faults);
}

static int64_t soon(int64_t now, int64_t least, uint64_t most) {
  return now + least + (int64_t)pwi_random_below(&counts.random, most);
}

/* Begins when links are stable again. */
static void attack_servers(struct attack *attack) {
  attack->kill_at = soon(attack->begun + LINKS_END, 300 * MS, 600 * MS);
  attack->start_at = PWI_NET_NEVER;
}

/* Returns true if all arcs have two copies, and no event is pending that would remove one. */
static bool is_whole(void) {
  const struct pwi_view *view = pwi_client_view(counts.checker.client);
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_full(&view->arcs[i]) < 2) return false;
  return true;
}

static void step_servers(struct attack *attack, int64_t now) {
  if (now >= attack->kill_at && now < attack->begun + WINDOW_END && is_whole()) {
    attack->process = (size_t)pwi_random_below(&counts.random, counts.cluster.config.processes);
    pwi_cluster_kill(&counts.cluster, attack->process);
    attack->kill_at = PWI_NET_NEVER;
    attack->start_at = soon(now, 1, 400 * MS);
    attack->server_kills++;
  } else if (now >= attack->start_at) {
    pwi_cluster_start(&counts.cluster, attack->process);
    attack->start_at = PWI_NET_NEVER;
    attack->kill_at = soon(now, 100 * MS, 400 * MS);
  }
}

/* A worker that stays dead is left for a while, and then its process is started again. */
static void replace_dead(void) {
  for (size_t w = 0; w < COUNTS_WORKERS; w++) {
    const struct counts_worker *worker = &counts.workers[w];
    if (!worker->client.client || !worker->is_dead || !pwi_random_chance(&counts.random, 0.05)) continue;
    cluster_check(&counts.cluster, pwi_sim_restart(counts.cluster.sim, worker->client.node), "starting a worker");
  }
}

/* --- a run ---------------------------------------------------------------------------------------------- */

/* Returns false and an error text on failure. */
static bool run_until_done(struct attack *attack, char text[160]) {
  struct pwi_sim *sim = counts.cluster.sim;
  int64_t quiet_at = attack->begun + WINDOW_END + 500 * MS; /* who was stopped has woken up by then */
  while (counts_is_working(&counts) || pwi_sim_now(sim) < quiet_at) {
    step_servers(attack, pwi_sim_now(sim));
    replace_dead();
    pawl_status status = pwi_cluster_run_for(&counts.cluster, 5 * MS);
    if (status || pwi_sim_now(sim) > attack->begun + PATIENCE_END) {
      const char *failure = pwi_sim_failure(sim);
      snprintf(text, 160, "%s", failure ? failure : "it takes too long");
      return false;
    }
  }
  return true;
}

static bool run_seed(uint64_t seed, enum counts_bug bug, struct counts_figures *figures, char text[160]) {
  counts_open(&counts, seed, bug);
  struct attack attack = {.begun = pwi_sim_now(counts.cluster.sim)};
  attack_links(&attack);
  attack_workers(&attack, false, &attack.kills);
  attack_workers(&attack, true, &attack.stops);
  attack_servers(&attack);
  bool is_right = run_until_done(&attack, text) && counts_check(&counts, text);
  figures->server_kills += attack.server_kills;
  figures->sweeps += counts.figures.sweeps;
  figures->clean += counts.figures.clean;
  figures->partial += counts.figures.partial;
  figures->totals += counts.figures.totals;
  figures->whole += counts.figures.whole;
  figures->deaths += counts.figures.deaths;
  figures->late_files += counts.figures.late_files;
  counts_close(&counts);
  pwi_sim_faults_fini(&attack.links);
  pwi_sim_faults_fini(&attack.kills);
  pwi_sim_faults_fini(&attack.stops);
  return is_right;
}

static void print_figures(uint64_t seeds, const struct counts_figures *figures) {
  print_message(
      "seeds %llu: sweeps %llu; taken over with nothing under way %llu, some words %llu, all but totals %llu, "
      "all but the head %llu; stayed dead %llu; files made by another %llu; servers killed %llu\n",
      (unsigned long long)seeds, (unsigned long long)figures->sweeps, (unsigned long long)figures->clean,
      (unsigned long long)figures->partial, (unsigned long long)figures->totals, (unsigned long long)figures->whole,
      (unsigned long long)figures->deaths, (unsigned long long)figures->late_files,
      (unsigned long long)figures->server_kills);
}

static void test_counts_are_exact_whoever_is_killed(void **state) {
  const char *many = getenv("PAWL_SEEDS"), *one = getenv("PAWL_SEED");
  uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS, first = one ? strtoull(one, NULL, 10) : 1;
  struct counts_figures figures = {0};
  char text[160];
  (void)state;
  if (one) cluster_print_log();
  for (uint64_t seed = first; seed <= (one ? first : seeds); seed++)
    if (!run_seed(seed, COUNTS_RIGHT, &figures, text)) fail_msg("seed %llu: %s", (unsigned long long)seed, text);
  print_figures(one ? 1 : seeds, &figures);
  if (one || seeds < 50) return;
  assert_true(figures.clean > 0 && figures.partial > 0 && figures.totals > 0 && figures.whole > 0);
  assert_true(figures.deaths > seeds / 2 && figures.server_kills > seeds);
}

static void test_a_seed_gives_the_same_run_each_time(void **state) {
  (void)state;
  char text[160];
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct counts_figures once = {0}, again = {0};
    assert_true(run_seed(seed, COUNTS_RIGHT, &once, text) && run_seed(seed, COUNTS_RIGHT, &again, text));
    assert_memory_equal(&once, &again, sizeof once);
  }
}

/* The test fails for each omitted step of the protocol, so the campaign can detect errors. */
static void test_each_part_of_the_protocol_is_needed(void **state) {
  static const char *const names[COUNTS_BUGS] = {"none",
                                                 "marks are not looked at",
                                                 "the owner need not be retired",
                                                 "who was taken for dead joins again",
                                                 "topics are written after the push",
                                                 "the old owner's file is written to"};
  (void)state;
  if (getenv("PAWL_SEED")) return;
  for (enum counts_bug bug = COUNTS_RIGHT + 1; bug < COUNTS_BUGS; bug++) {
    struct counts_figures figures = {0};
    char text[160];
    uint64_t seed = 1;
    while (seed <= BUG_SEEDS && run_seed(seed, bug, &figures, text)) seed++;
    if (seed > BUG_SEEDS) fail_msg("%s, and %d seeds do not show it", names[bug], BUG_SEEDS);
    print_message("%s: seed %llu: %s\n", names[bug], (unsigned long long)seed, text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_seed_gives_the_same_run_each_time),
      cmocka_unit_test(test_counts_are_exact_whoever_is_killed),
      cmocka_unit_test(test_each_part_of_the_protocol_is_needed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
