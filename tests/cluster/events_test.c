/* The log lines that docs/faults.md names to operators: after each fault the nodes log what happened, with the nodes
 * that it concerns, and a fault that costs nobody its place is not logged as a loss. */
#include <pawl/export.h>
#include <pawl/log.h>

#include "base/testing.h"
#include "cluster.h"

#define S PWI_SIM_SECOND
#define SERVERS 4

static struct pwi_cluster cluster;
static char lines[256][160]; /* warnings and errors, the first ones */
static size_t line_count;

static void keep(void *context, const struct pawl_log_line *line) {
  (void)context;
  if (line_count < 256) snprintf(lines[line_count++], sizeof lines[0], "%s ", line->text);
}

/* How many lines begin so. */
static size_t count(const char *format, ...) PAWL_PRINTF(1, 2);
static size_t count(const char *format, ...) {
  char begin[160];
  size_t found = 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(begin, sizeof begin, format, arguments);
  va_end(arguments);
  for (size_t i = 0; i < line_count; i++) found += strncmp(lines[i], begin, strlen(begin)) == 0;
  return found;
}

static uint64_t node_of(size_t server) {
  struct pwi_server_state state;
  pwi_server_state(cluster.servers[server].server, &state);
  return state.node;
}

/* Some server lacks the newest view, or some chain is short. */
static bool is_forming(void *context) {
  (void)context;
  struct pwi_manager_figures figures;
  pwi_manager_figures(cluster.manager, &figures);
  bool has_formed = figures.whole && figures.processes_up == SERVERS;
  for (size_t i = 0; i < SERVERS; i++) {
    const struct pwi_view *view = pwi_server_view(cluster.servers[i].server);
    has_formed &= view && view->arc_count > 0 && view->epoch == figures.epoch;
  }
  return !has_formed;
}

static void begin(uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .processes = SERVERS, .shards = 1, .replicas = 1, .points = 2};
  cluster_open(&cluster, &config);
  cluster_run_while(&cluster, is_forming, NULL, 10 * S);
  line_count = 0;
}

static void part(struct pwi_sim_node a, struct pwi_sim_node b) {
  pwi_sim_cut(cluster.sim, a, b);
  pwi_sim_cut(cluster.sim, b, a);
}

static void join(struct pwi_sim_node a, struct pwi_sim_node b) {
  pwi_sim_mend(cluster.sim, a, b);
  pwi_sim_mend(cluster.sim, b, a);
}

static void test_a_dead_server_is_logged_as_down_once(void **state) {
  (void)state;
  begin(1);
  unsigned long long dead = node_of(2);
  pwi_cluster_kill(&cluster, 2);
  cluster_run_for(&cluster, 5 * S);
  assert_int_equal(count("server.down node=%llu ", dead), 1);
  assert_int_equal(count("server.down"), 1);
  assert_int_equal(count("chain.conflict"), 0);
  assert_int_equal(count("server.awaited"), 0);
  pwi_cluster_close(&cluster);
}

/* The one that misses the other complains to the manager, which logs whom it parts. */
static void test_neighbours_that_are_parted_are_logged_at_both_ends(void **state) {
  (void)state;
  begin(2);
  const struct pwi_arc arc = pwi_server_view(cluster.servers[0].server)->arcs[0];
  unsigned long long ids[2] = {arc.chain[0].node.id, arc.chain[1].node.id};
  struct pwi_sim_node nodes[2];
  for (size_t i = 0; i < SERVERS; i++)
    for (size_t j = 0; j < 2; j++)
      if (node_of(i) == ids[j]) nodes[j] = cluster.servers[i].node;
  part(nodes[0], nodes[1]);
  cluster_run_for(&cluster, 2 * S);
  size_t complaints = 0, conflicts = 0;
  for (size_t i = 0; i < 2; i++) {
    complaints += count("chain.complaint node=%llu about=%llu ", ids[i], ids[!i]);
    conflicts += count("chain.conflict node=%llu about=%llu ", ids[i], ids[!i]);
  }
  assert_true(complaints > 0 && conflicts > 0);
  assert_int_equal(count("chain.complaint"), complaints);
  assert_int_equal(count("chain.conflict"), conflicts);
  assert_int_equal(count("server.down"), 0);
  pwi_cluster_close(&cluster);
}

/* The network of the manager is at fault, so it declares none of the servers dead. */
static void test_a_manager_without_most_servers_logs_that_it_waits_for_them(void **state) {
  (void)state;
  begin(3);
  for (size_t i = 1; i < SERVERS; i++) part(cluster.manager_node, cluster.servers[i].node);
  cluster_run_for(&cluster, 20 * S);
  for (size_t i = 1; i < SERVERS; i++)
    assert_true(
        count("server.awaited node=%llu why=\"most servers are unreachable\" ", (unsigned long long)node_of(i)));
  assert_int_equal(count("server.awaited node=%llu ", (unsigned long long)node_of(0)), 0);
  for (size_t i = 1; i < SERVERS; i++) join(cluster.manager_node, cluster.servers[i].node);
  cluster_run_for(&cluster, 5 * S);
  line_count = 0;
  cluster_run_for(&cluster, 20 * S);
  assert_int_equal(count("server.awaited"), 0);
  assert_int_equal(count("server.down"), 0);
  pwi_cluster_close(&cluster);
}

int main(void) {
  pawl_log_set(keep, NULL, PAWL_LOG_WARN);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_dead_server_is_logged_as_down_once),
      cmocka_unit_test(test_neighbours_that_are_parted_are_logged_at_both_ends),
      cmocka_unit_test(test_a_manager_without_most_servers_logs_that_it_waits_for_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
