/* A manager whose journal is a file is killed and restarted under traffic, also by power failures of its
 * machine: nothing is lost, all nodes find it again, and nodes do not follow a manager that returns with
 * another or an older log.
 *
 *   PAWL_SEED=n     run this seed only, with its log
 */
#include <pawl/log.h>

#include "base/memory.h"
#include "base/testing.h"
#include "manager/ledger/journal_file.h"
#include "cluster.h"
#include "sim/campaign/campaign.h"
#include "sim/disk.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 40 /* they run at a tenth of the speed */
#else
#define SEEDS 150
#endif

static struct pwi_cluster cluster;

/* --- under traffic -------------------------------------------------------------------------------------- */

/* Only the manager and its disk have faults. */
static void run_seed(uint64_t seed) {
  struct pwi_campaign_config config = {.seed = seed,
                                       .processes = 1 + (uint32_t)(seed % 3),
                                       .shards = 1 + (uint32_t)(seed / 3 % 2),
                                       .late = 1,
                                       .workers = 2,
                                       .calls = 120,
                                       .shared_hosts = seed % 2,
                                       .client_grace_ns = 2 * PWI_SIM_SECOND,
                                       .keeper = PWI_KEEPER_FILE,
                                       .journal_bytes = seed % 4 ? 3000 : 0,
                                       .window_ns = 5 * PWI_SIM_SECOND,
                                       .gap_manager_ns = 500 * MS,
                                       .gap_members_ns = 1000 * MS,
                                       .gap_moves_ns = 120 * MS};
  struct pwi_campaign_result result;
  pwi_campaign_run(&config, &result);
  if (result.has_failed)
    fail_msg("seed %llu at %.6f s: %s", (unsigned long long)seed, (double)result.time_ns / 1e9, result.failure);
  assert_int_equal(result.figures.retirements, 0); /* a manager that was away takes nobody for dead */
}

static void test_a_manager_comes_and_goes_and_nothing_is_lost(void **state) {
  const char *one = getenv("PAWL_SEED");
  (void)state;
  if (one) {
    cluster_print_log();
    run_seed(strtoull(one, NULL, 10));
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++) run_seed(seed);
}

/* --- scenes --------------------------------------------------------------------------------------------- */

static struct pwi_cluster_client client;
static struct pwi_flow *flow;

static void open_scene(uint64_t seed) {
  static const struct pawl_vector_options counts = {.type = PAWL_I64, .width = 1, .size = 1000};
  struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .durable = true};
  cluster_open(&cluster, &config);
  client = (struct pwi_cluster_client){.job = "job", .name = "client"};
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

/* The owner of the files is down, and so is its disk. */
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
  assert_int_equal(pwi_files_remove(files, PWI_CLUSTER_LOG), PAWL_OK);
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
  pwi_cluster_close(&cluster);
}

struct copy {
  size_t size;
  uint8_t bytes[65536];
};

static void save_log(struct pwi_files *files, void *context) {
  struct copy *copy = context;
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, PWI_CLUSTER_LOG, PWI_OPEN_READ, &file), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 0, copy->bytes, sizeof copy->bytes, &copy->size), PAWL_OK);
  pwi_file_close(file);
}

static void load_log(struct pwi_files *files, void *context) {
  const struct copy *copy = context;
  assert_int_equal(pwi_files_replace(files, PWI_CLUSTER_LOG, copy->bytes, copy->size), PAWL_OK);
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
  pwi_cluster_close(&cluster);
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
  pwi_cluster_close(&cluster);
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
  struct pwi_cluster_client late = {.job = "late", .name = "late"};
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
  pwi_cluster_close(&cluster);
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
