/* timeout: 300
 *
 * A manager whose journal is a file, killed and started again under traffic, with its machine's power: nothing is lost,
 * everybody finds it again, and a manager that comes back with another log, or an older one, is not followed.
 *
 *   PAWL_SEED=n     run this seed alone, with its log
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
#include "role/journal_file.h"
#include "sim/disk.h"
#include "worker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 40 /* they run at a tenth of the speed */
#else
#define SEEDS 150
#endif

static struct cluster cluster;

/* --- under traffic ---------------------------------------------------------------------------------------------------- */

struct outages {
  struct cluster *cluster;
  unsigned left, happened;
  bool is_down;
};

/* Down for up to two seconds, up for up to one. */
static void next_outage(void *context) {
  struct outages *outages = context;
  struct cluster *with = outages->cluster;
  int64_t pause;
  if (outages->is_down) {
    pawl_status status = pwi_sim_start(with->sim, with->manager_node);
    if (status) pwi_sim_fail(with->sim, status, "the manager does not start: %s", pawl_status_name(status));
    pause = 20 * MS + (int64_t)pwi_random_below(&with->random, 1500) * MS;
  } else {
    if (outages->left == 0) return;
    outages->left--;
    outages->happened++;
    pwi_sim_kill(with->sim, with->manager_node);
    pause = 1 * MS + (int64_t)pwi_random_below(&with->random, 2000) * MS;
  }
  outages->is_down = !outages->is_down;
  pawl_status status = pwi_sim_call_at(with->sim, pwi_sim_now(with->sim) + pause, next_outage, outages);
  assert_int_equal(status, PAWL_OK);
}

static bool is_in_outage(void *context) {
  const struct outages *outages = context;
  return outages->is_down || outages->left > 0;
}

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  printf("%.6f %s %s\n", (double)line->time_ns / 1e9, line->node, line->text);
}

static void run_seed(uint64_t seed) {
  static struct campaign campaign;
  memset(&campaign, 0, sizeof campaign);
  struct cluster_config config = {.seed = seed,
                                  .processes = 1 + (uint32_t)(seed % 3),
                                  .shards = 1 + (uint32_t)(seed / 3 % 2),
                                  .late = 1,
                                  .shared_hosts = seed % 2,
                                  .client_grace_ns = 2 * PWI_SIM_SECOND,
                                  .durable = true,
                                  .journal_bytes = seed % 4 ? 3000 : 0};
  cluster_open(&campaign.cluster, &config);
  campaign_begin(&campaign, 2, 120);
  struct outages outages = {.cluster = &campaign.cluster, .left = 4};
  assert_int_equal(
      pwi_sim_call_at(campaign.cluster.sim, pwi_sim_now(campaign.cluster.sim) + 30 * MS, next_outage, &outages),
      PAWL_OK);
  cluster_start_late(&campaign.cluster, 0);
  cluster_run_while(&campaign.cluster, is_in_outage, &outages, 60 * PWI_SIM_SECOND);
  campaign_end(&campaign);
  for (uint32_t w = 0; w < 2; w++) {
    struct pwi_client_figures figures;
    pwi_client_figures(campaign.workers[w].client.client, &figures);
    assert_int_equal(figures.retirements, 0); /* a manager that was away takes nobody for dead */
  }
  struct pwi_manager_figures figures;
  pwi_manager_figures(campaign.cluster.manager, &figures);
  assert_int_equal(figures.stopped, PAWL_OK);
  assert_int_equal(figures.nodes_down, 0);
  cluster_close(&campaign.cluster);
  campaign_free(&campaign);
}

static void test_a_manager_comes_and_goes_and_nothing_is_lost(void **state) {
  const char *one = getenv("PAWL_SEED");
  (void)state;
  if (one) {
    pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG);
    run_seed(strtoull(one, NULL, 10));
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++) run_seed(seed);
}

/* --- scenes ----------------------------------------------------------------------------------------------------------- */

static struct cluster_client client;
static struct pwi_flow *flow;

static void open_scene(uint64_t seed) {
  static const struct pawl_vector_options counts = {.type = PAWL_I64, .width = 1, .size = 1000};
  struct cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .durable = true};
  cluster_open(&cluster, &config);
  client = (struct cluster_client){.job = "job", .name = "client"};
  cluster_client_add(&cluster, &client);
  cluster_wait_joined(&client);
  flow = cluster_vector(&client, "job/w", &counts);
}

/* Adds one to four keys, and reads them. */
static void count_to(int64_t wanted) {
  static const uint64_t keys[] = {0, 10, 500, 999};
  static const int64_t ones[] = {1, 1, 1, 1};
  int64_t values[4];
  struct pwi_where where = {.keys = keys, .count = 4};
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PUSH, &where, ones, NULL, NULL), PAWL_OK);
  assert_int_equal(cluster_call(&client, flow, PWI_REQUEST_PULL, &where, NULL, values, NULL), PAWL_OK);
  for (size_t i = 0; i < 4; i++) assert_int_equal(values[i], wanted);
}

static struct pwi_server_state state_of(size_t server) {
  struct pwi_server_state state;
  pwi_server_state(cluster.servers[server].server, &state);
  return state;
}

static struct pwi_manager_figures figures_of_manager(void) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(cluster.manager, &figures);
  return figures;
}

static void restart(void) { assert_int_equal(pwi_sim_start(cluster.sim, cluster.manager_node), PAWL_OK); }

static struct pwi_files *manager_files(void) {
  return pwi_sim_disk_files(pwi_sim_node_disk(cluster.sim, cluster.manager_node));
}

/* Whoever the files are for is down, and so is its disk. */
static void edit_disk(void (*edit)(struct pwi_files *files, void *context), void *context) {
  struct pwi_sim_disk *disk = pwi_sim_node_disk(cluster.sim, cluster.manager_node);
  pwi_sim_disk_power_on(disk);
  edit(manager_files(), context);
  assert_int_equal(pwi_files_sync_directory(manager_files(), "."), PAWL_OK);
  cluster_run_for(&cluster, PWI_SIM_SECOND); /* syncs take their time */
  pwi_sim_disk_power_off(disk);
}

static void remove_log(struct pwi_files *files, void *context) {
  (void)context;
  assert_int_equal(pwi_files_remove(files, CLUSTER_LOG), PAWL_OK);
}

static void test_servers_do_not_follow_a_manager_that_has_lost_its_log(void **state) {
  (void)state;
  open_scene(5);
  count_to(1);
  uint64_t old = figures_of_manager().cluster;
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  edit_disk(remove_log, NULL);
  restart();
  cluster_run_for(&cluster, 5 * PWI_SIM_SECOND);
  assert_true(figures_of_manager().cluster != old);
  assert_int_equal(figures_of_manager().nodes_up, 0);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(state_of(i).trouble, PAWL_CLUSTER_OTHER);
    assert_true(state_of(i).cluster == old);
    assert_true(state_of(i).joined);
  }
  count_to(2); /* and all goes on */
  count_to(3);
  cluster_close(&cluster);
}

struct copy {
  size_t size;
  uint8_t bytes[65536];
};

static void save_log(struct pwi_files *files, void *context) {
  struct copy *copy = context;
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, CLUSTER_LOG, PWI_OPEN_READ, &file), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 0, copy->bytes, sizeof copy->bytes, &copy->size), PAWL_OK);
  pwi_file_close(file);
}

static void load_log(struct pwi_files *files, void *context) {
  const struct copy *copy = context;
  assert_int_equal(pwi_files_replace(files, CLUSTER_LOG, copy->bytes, copy->size), PAWL_OK);
}

static void test_a_manager_with_an_older_log_stops_and_its_cluster_goes_on(void **state) {
  static struct copy older, newest;
  static const struct pawl_vector_options more = {.type = PAWL_I64, .width = 1, .size = 10};
  (void)state;
  open_scene(6);
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  edit_disk(save_log, &older);
  restart();
  cluster_wait_joined(&client);
  cluster_vector(&client, "job/more", &more);
  count_to(1);
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  edit_disk(save_log, &newest);
  edit_disk(load_log, &older);
  restart();
  cluster_run_for(&cluster, 5 * PWI_SIM_SECOND);
  assert_int_equal(figures_of_manager().stopped, PAWL_CLUSTER_HISTORY);
  assert_false(figures_of_manager().ready);
  assert_int_equal(state_of(0).trouble, PAWL_CLUSTER_HISTORY);
  count_to(2);
  /* With the right log it is the manager again. */
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  edit_disk(load_log, &newest);
  restart();
  cluster_run_for(&cluster, 5 * PWI_SIM_SECOND);
  assert_int_equal(figures_of_manager().stopped, PAWL_OK);
  assert_true(figures_of_manager().ready);
  assert_int_equal(figures_of_manager().vectors, 2);
  assert_int_equal(state_of(0).trouble, PAWL_OK);
  count_to(3);
  assert_int_equal(cluster_ask(&client, PWI_ASK_SYNC, NULL), PAWL_OK);
  cluster_close(&cluster);
}

static void flip_a_bit(struct pwi_files *files, void *context) {
  static struct copy copy;
  save_log(files, &copy);
  copy.bytes[*(size_t *)context] ^= 1;
  load_log(files, &copy);
}

static void test_a_manager_with_a_damaged_log_does_not_start(void **state) {
  size_t at = 100;
  (void)state;
  open_scene(7);
  count_to(1);
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  edit_disk(flip_a_bit, &at);
  assert_int_equal(pwi_sim_start(cluster.sim, cluster.manager_node), PAWL_CORRUPT);
  count_to(2);
  edit_disk(flip_a_bit, &at);
  restart();
  cluster_run_for(&cluster, 3 * PWI_SIM_SECOND);
  assert_true(figures_of_manager().ready);
  count_to(3);
  cluster_close(&cluster);
}

static void test_a_disk_that_fills_up_stops_the_manager_and_not_the_cluster(void **state) {
  struct pwi_writer payload = {0};
  (void)state;
  open_scene(8);
  count_to(1);
  pwi_sim_disk_set_faults(pwi_sim_node_disk(cluster.sim, cluster.manager_node),
                          &(struct pwi_sim_disk_faults){.full = true});
  pwi_write_text(&payload, "job/.group");
  pwi_write_u32(&payload, 1);
  struct cluster_client late = {.job = "late", .name = "late"};
  cluster_client_add(&cluster, &late); /* the first to need a record */
  cluster_run_for(&cluster, PWI_SIM_SECOND);
  assert_int_equal(figures_of_manager().stopped, PAWL_NO_SPACE);
  assert_int_equal(cluster_ask(&client, PWI_ASK_GROUP, &payload), PAWL_NO_SPACE);
  count_to(2);
  pwi_sim_disk_set_faults(pwi_sim_node_disk(cluster.sim, cluster.manager_node), NULL);
  pwi_sim_kill(cluster.sim, cluster.manager_node);
  restart();
  cluster_wait_joined(&late);
  cluster_run_for(&cluster, 3 * PWI_SIM_SECOND);
  assert_int_equal(cluster_ask(&client, PWI_ASK_GROUP, &payload), PAWL_OK);
  count_to(3);
  pwi_writer_fini(&payload);
  cluster_close(&cluster);
}

static void test_nothing_leaks(void **state) {
  (void)state;
  uint64_t before = pwi_memory_counts().live;
  run_seed(9);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_servers_do_not_follow_a_manager_that_has_lost_its_log),
      cmocka_unit_test(test_a_manager_with_an_older_log_stops_and_its_cluster_goes_on),
      cmocka_unit_test(test_a_manager_with_a_damaged_log_does_not_start),
      cmocka_unit_test(test_a_disk_that_fills_up_stops_the_manager_and_not_the_cluster),
      cmocka_unit_test(test_nothing_leaks),
      cmocka_unit_test(test_a_manager_comes_and_goes_and_nothing_is_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
