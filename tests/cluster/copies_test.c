/* cost: 20
 *
 * The number of copies of each arc, regardless of the manager's view: no arc loses more copies than servers
 * were lost.
 *
 * After every event the copies of each arc are counted at the servers themselves. A copy is a running server
 * process that is a full member of the arc in the newest view of any server, and has the arc. There must be
 * as many copies as a chain shall have members, minus the servers that the test has removed. Meanwhile a
 * worker pushes, and at the end every answered push is there.
 */
#include <pawl/log.h>

#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"

#define S PWI_SIM_SECOND

static struct pwi_cluster cluster;
static struct pwi_cluster_client worker;
static struct pwi_flow *flow;
static struct pwi_task task;
static int64_t ones[1000], seen[1000];
static int64_t pushed;
static bool is_pushing, is_busy;

static struct {
  size_t wanted;      /* copies of each arc */
  size_t lost;        /* servers removed and not yet replaced */
  size_t fewest;      /* lowest number of copies of any arc so far */
  uint64_t epoch;     /* of the newest view when all began */
  int64_t begin, end; /* of this stretch */
  int64_t next;       /* when copies are counted again at the latest */
} watch;

static size_t isolated; /* the server that is cut off from all nodes */

/* --- counting ------------------------------------------------------------------------------------------- */

static const struct pwi_view *newest_view(void) {
  const struct pwi_view *newest = NULL;
  for (size_t i = 0; i < cluster.server_count; i++) {
    const struct pwi_view *view = cluster.servers[i].server ? pwi_server_view(cluster.servers[i].server) : NULL;
    if (view && (!newest || view->epoch > newest->epoch)) newest = view;
  }
  return newest;
}

static bool has_copy(const struct pwi_cluster_server *server, const struct pwi_arc *arc, uint64_t position) {
  struct pwi_server_arc arcs[128];
  struct pwi_server_state state;
  if (!server->server) return false;
  pwi_server_state(server->server, &state);
  size_t place = pwi_arc_find(arc, (struct pwi_node){state.node});
  if (place == PWI_CHAIN_MAX || arc->chain[place].filling) return false;
  size_t count = pwi_server_arcs(server->server, arcs, 128);
  assert_true(count <= 128);
  for (size_t i = 0; i < count; i++)
    if (!arcs[i].filling && pawl_range_has(arcs[i].positions, position)) return true;
  return false;
}

static size_t fewest_copies(void) {
  const struct pwi_view *view = newest_view();
  size_t fewest = SIZE_MAX;
  for (size_t i = 0; view && i < view->arc_count; i++) {
    size_t copies = 0;
    for (size_t j = 0; j < cluster.server_count; j++)
      copies += has_copy(&cluster.servers[j], &view->arcs[i], view->arcs[i].begin);
    if (copies < fewest) fewest = copies;
  }
  return fewest;
}

/* Only events of the simulation change anything; a millisecond is short enough to observe each of them. */
static bool watches(void *context) {
  (void)context;
  int64_t now = pwi_sim_now(cluster.sim);
  if (now < watch.next) return now < watch.end;
  watch.next = now + MS;
  size_t copies = fewest_copies();
  if (copies < watch.fewest) watch.fewest = copies;
  if (copies + watch.lost < watch.wanted)
    pwi_sim_fail(cluster.sim, PAWL_CORRUPT, "an arc has %zu copies, of %zu, and %zu servers were lost", copies,
                 watch.wanted, watch.lost);
  return now < watch.end;
}

static void watch_for(int64_t duration) {
  watch.begin = pwi_sim_now(cluster.sim);
  watch.end = watch.begin + duration;
  pawl_status status = pwi_sim_run_while(cluster.sim, watches, NULL, watch.end);
  cluster_check(&cluster, status == PAWL_TIMED_OUT ? PAWL_OK : status, "watching copies");
}

/* --- working -------------------------------------------------------------------------------------------- */

static void was_pushed(struct pwi_task *finished) {
  assert_int_equal(finished->status, PAWL_OK);
  pushed++;
  is_busy = false;
  /* Most of the time of this test would pass with pushes of long stretches, in which nothing else happens. */
  bool is_long_after = pwi_sim_now(cluster.sim) - watch.begin > 3 * S;
  pwi_cluster_timer(&worker, is_long_after ? 200 * MS : 20 * MS, 0);
}

static void push(void *context, uint64_t cookie) {
  (void)context, (void)cookie;
  struct pwi_where all = {.range = {0, 1000}};
  if (!is_pushing) return;
  is_busy = true;
  task = (struct pwi_task){.finished = was_pushed};
  assert_int_equal(pwi_client_start(worker.client, &task, flow, PWI_REQUEST_PUSH, &all, ones, NULL), PAWL_OK);
}

static void begin(uint64_t seed, uint32_t servers, uint32_t replicas) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = servers, .shards = 1, .late = 1, .replicas = replicas, .points = 2};
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 1000};
  cluster_open(&cluster, &config);
  worker = (struct pwi_cluster_client){.job = "job", .timer = push};
  strcpy(worker.name, "worker");
  cluster_client_add(&cluster, &worker);
  cluster_wait_joined(&worker);
  flow = cluster_vector(&worker, "job/w", &options);
  for (size_t i = 0; i < 1000; i++) ones[i] = 1;
  memset(&watch, 0, sizeof watch);
  watch.wanted = servers < replicas + 1 ? servers : replicas + 1;
  watch.fewest = SIZE_MAX;
  pushed = 0;
  is_pushing = true;
  push(NULL, 0);
  watch_for(S);
  watch.epoch = newest_view()->epoch;
}

static bool has_push(void *context) {
  (void)context;
  return is_busy;
}

/* Every acknowledged push is there, once. */
static void end(void) {
  struct pwi_where all = {.range = {0, 1000}};
  is_pushing = false;
  cluster_run_while(&cluster, has_push, NULL, 30 * S);
  assert_int_equal(cluster_call(&worker, flow, PWI_REQUEST_PULL, &all, NULL, seen, NULL), PAWL_OK);
  for (size_t i = 0; i < 1000; i++) assert_int_equal(seen[i], pushed);
  pwi_cluster_close(&cluster);
}

/* --- the network of the manager ------------------------------------------------------------------------- */

static void cut(struct pwi_sim_node a, struct pwi_sim_node b) {
  pwi_sim_cut(cluster.sim, a, b);
  pwi_sim_cut(cluster.sim, b, a);
}

static void mend(struct pwi_sim_node a, struct pwi_sim_node b) {
  pwi_sim_mend(cluster.sim, a, b);
  pwi_sim_mend(cluster.sim, b, a);
}

static void cut_manager_from(size_t first, size_t past) {
  for (size_t i = first; i < past; i++) cut(cluster.manager_node, cluster.servers[i].node);
}

static void mend_manager_to(size_t first, size_t past) {
  for (size_t i = first; i < past; i++) mend(cluster.manager_node, cluster.servers[i].node);
}

static void crash(size_t server) {
  watch.lost++;
  pwi_cluster_kill(&cluster, server);
}

/* The chains are unchanged: no server was removed, and nothing was copied. */
static void assert_nothing_changed(void) {
  assert_int_equal(watch.fewest, watch.wanted);
  assert_int_equal(pwi_cluster_moves_done(&cluster), 0);
}

/* Pushes continue, and every arc has all its copies again on the remaining servers. */
static void assert_whole_again(size_t copies) {
  int64_t before = pushed;
  watch_for(10 * S);
  assert_true(pushed >= before + 100);
  assert_int_equal(fewest_copies(), copies);
}

/* --- scenes --------------------------------------------------------------------------------------------- */

/* The connection between the manager and each server is reset: one after the other, all at once, and in quick
 * repetition. Then a server crashes. */
static void test_a_reset_costs_no_copy(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 3; replicas++) {
    begin(100 + replicas, 4, replicas);
    for (size_t i = 0; i < 12; i++) {
      pwi_sim_break(cluster.sim, cluster.manager_node, cluster.servers[i % 4].node);
      watch_for(i < 8 ? S / 2 : 3 * MS);
    }
    watch_for(3 * S);
    for (size_t i = 0; i < 4; i++) pwi_sim_break(cluster.sim, cluster.manager_node, cluster.servers[i].node);
    watch_for(3 * S);
    assert_nothing_changed();
    if (replicas > 0) {
      crash(0);
      assert_whole_again(watch.wanted);
    }
    end();
  }
}

/* A crash follows a reset at once, before the other server is back. */
static void test_a_crash_after_a_reset_costs_one_copy(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    begin(200 + seed, 3, 1);
    pwi_sim_break(cluster.sim, cluster.manager_node, cluster.servers[1].node);
    watch_for((int64_t)seed * MS / 4);
    crash(0);
    assert_whole_again(2);
    end();
  }
}

static void test_an_outage_of_the_managers_network_costs_no_copy(void **state) {
  (void)state;
  static const int64_t lengths[] = {S / 2, 2 * S, 10 * S, 60 * S};
  for (size_t i = 0; i < 4; i++) {
    for (uint32_t replicas = 0; replicas < 3; replicas++) {
      begin(300 + 10 * i + replicas, 4, replicas);
      int64_t before = pushed;
      cut_manager_from(0, 4);
      watch_for(lengths[i]);
      assert_true(pushed - before > lengths[i] / (300 * MS)); /* none has waited for the manager */
      mend_manager_to(0, 4);
      watch_for(20 * S);
      assert_nothing_changed();
      end();
    }
  }
}

/* Two servers are few: a manager that has lost both, and then finds one, has found half of them. */
static void test_an_outage_costs_no_copy_where_there_are_two_servers(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    begin(400 + seed, 2, 1);
    cut_manager_from(0, 2);
    watch_for(2 * S);
    mend_manager_to(0, 1);
    watch_for((int64_t)seed * 5 * S);
    mend_manager_to(1, 2);
    watch_for(10 * S);
    assert_nothing_changed();
    end();
  }
}

/* No view takes a full member out of a chain without another in its place. While members are filled, a server may
 * lack a view that makes it full, so copies are not counted at servers here. */
static bool has_whole_chains(void *context) {
  (void)context;
  const struct pwi_view *view = newest_view();
  for (size_t i = 0; view && i < view->arc_count; i++)
    if (pwi_arc_full(&view->arcs[i]) < watch.wanted)
      pwi_sim_fail(cluster.sim, PAWL_CORRUPT, "epoch %llu: a chain has lost a member", (unsigned long long)view->epoch);
  return true;
}

static void watch_views(int64_t duration) {
  watch.begin = pwi_sim_now(cluster.sim);
  pawl_status status = pwi_sim_run_while(cluster.sim, has_whole_chains, NULL, watch.begin + duration);
  cluster_check(&cluster, status == PAWL_TIMED_OUT ? PAWL_OK : status, "watching views");
}

/* Views change chains of a server that the manager alone does not reach. Its neighbours complain, because it lacks
 * the new view, before the manager notices that its link is silent. */
static void test_a_server_that_misses_a_view_keeps_its_place(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 30; seed++) {
    begin(350 + seed, 3, 1);
    cluster_start_late(&cluster, 0);
    watch_views((int64_t)(60 + 3 * seed) * MS); /* some moves are made, and others not yet */
    cut_manager_from(seed % 3, seed % 3 + 1);
    watch_views(2 * S);
    mend_manager_to(seed % 3, seed % 3 + 1);
    watch_views(2 * S);
    end();
  }
}

/* As above, and then the manager stands still for longer than it waits for such a server. Complaints have arrived
 * meanwhile. */
static void test_a_manager_that_stood_still_does_not_count_this_time(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 30; seed++) {
    begin(1500 + seed, 3, 1);
    cluster_start_late(&cluster, 0);
    watch_views((int64_t)(60 + 3 * seed) * MS);
    cut_manager_from(seed % 3, seed % 3 + 1);
    watch_views(S);
    pwi_sim_pause(cluster.sim, cluster.manager_node, 8 * S);
    watch_views(S);
    mend_manager_to(seed % 3, seed % 3 + 1);
    watch_views(10 * S);
    end();
  }
}

/* The servers return one after the other, the last after half a minute. */
static void test_servers_that_return_one_by_one_lose_no_copy(void **state) {
  (void)state;
  begin(500, 4, 1);
  cut_manager_from(0, 4);
  watch_for(2 * S);
  for (size_t i = 0; i < 4; i++) {
    mend_manager_to(i, i + 1);
    watch_for(10 * S);
  }
  assert_nothing_changed();
  end();
}

static void test_a_manager_that_is_started_again_waits_for_slow_returners(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 3; replicas++) {
    begin(600 + replicas, 4, replicas);
    cut_manager_from(1, 4);
    pwi_sim_kill(cluster.sim, cluster.manager_node);
    watch_for(S / 2);
    assert_int_equal(pwi_sim_start(cluster.sim, cluster.manager_node), PAWL_OK);
    for (size_t i = 1; i < 4; i++) {
      watch_for(8 * S);
      mend_manager_to(i, i + 1);
    }
    watch_for(10 * S);
    assert_int_equal(watch.fewest, watch.wanted);
    end();
  }
}

/* The other servers see that these are alive. */
static void test_a_manager_that_does_not_reach_half_of_the_servers_strikes_nobody_off(void **state) {
  (void)state;
  for (uint32_t replicas = 1; replicas < 3; replicas++) {
    begin(700 + replicas, 4, replicas);
    cut_manager_from(0, 2);
    watch_for(60 * S);
    mend_manager_to(0, 2);
    watch_for(10 * S);
    assert_nothing_changed();
    end();
  }
}

/* The manager shares a machine with a server, and the network of the machine is down: both see all others as
 * silent. */
static void test_a_manager_that_is_cut_off_with_a_server_strikes_nobody_off(void **state) {
  (void)state;
  begin(800, 4, 1);
  cut_manager_from(1, 4);
  for (size_t i = 1; i < 4; i++) cut(cluster.servers[0].node, cluster.servers[i].node);
  watch_for(60 * S);
  mend_manager_to(1, 4);
  for (size_t i = 1; i < 4; i++) mend(cluster.servers[0].node, cluster.servers[i].node);
  watch_for(10 * S);
  assert_nothing_changed();
  end();
}

/* Neither the manager nor one of the witnesses reaches a server, but the other witnesses do. */
static void test_a_server_that_a_witness_reaches_is_alive(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 5; seed++) {
    begin(850 + seed, 4, 1);
    cut_manager_from(0, 1);
    cut(cluster.servers[0].node, cluster.servers[1].node);
    watch_for(3 * S);
    assert_nothing_changed();
    mend_manager_to(0, 1);
    mend(cluster.servers[0].node, cluster.servers[1].node);
    watch_for(5 * S);
    end();
  }
}

/* One server really dies during the outage. It is replaced once another server is back that can confirm its
 * death. */
static void test_a_death_during_an_outage_is_found_afterwards(void **state) {
  (void)state;
  static const int64_t lengths[] = {2 * S, 10 * S, 60 * S};
  for (size_t i = 0; i < 3; i++) {
    for (uint32_t replicas = 1; replicas < 3; replicas++) {
      begin(900 + 10 * i + replicas, 4, replicas);
      cut_manager_from(0, 4);
      watch_for(lengths[i] / 2);
      crash(2);
      watch_for(lengths[i] / 2);
      mend_manager_to(0, 4);
      watch_for(10 * S);
      assert_whole_again(watch.wanted);
      end();
    }
  }
}

static size_t server_of(uint64_t node) {
  struct pwi_server_state state;
  for (size_t i = 0; i < cluster.server_count; i++) {
    if (!cluster.servers[i].server) continue;
    pwi_server_state(cluster.servers[i].server, &state);
    if (state.node == node) return i;
  }
  fail_msg("no server is node %llu", (unsigned long long)node);
  return 0;
}

/* More servers are dead than replicas can compensate. Arcs of survivors continue and lose no more copies;
 * others wait. */
static void test_more_deaths_than_replicas_cost_no_more_copies_than_that(void **state) {
  (void)state;
  begin(1000, 4, 1);
  cut_manager_from(0, 4);
  watch_for(S);
  const struct pwi_arc arc = newest_view()->arcs[0];
  for (size_t i = 0; i < 2; i++) crash(server_of(arc.chain[i].node.id));
  watch_for(S);
  mend_manager_to(0, 4);
  watch_for(20 * S);
  struct pwi_manager_figures figures;
  pwi_manager_figures(cluster.manager, &figures);
  assert_true(figures.waiting > 0);
  assert_int_equal(figures.under_replicated, 0); /* the survivors have filled one another */
  assert_int_equal(figures.nodes_down, 2);
  pwi_cluster_close(&cluster);
}

/* A crash is detected at once, because nobody listens at the address any more. */
static void test_a_crash_is_followed_within_milliseconds(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    begin(1100 + seed, 4, 1);
    uint64_t epoch = newest_view()->epoch;
    crash(seed % 4);
    watch_for(15 * MS);
    assert_true(newest_view()->epoch > epoch);
    assert_whole_again(2);
    end();
  }
}

/* Two or three of four servers crash at once. Crashes that are proved are handled without delay, even if they are most
 * of all. */
static void test_crashes_of_most_are_followed_within_milliseconds(void **state) {
  (void)state;
  for (uint32_t crashes = 2; crashes < 4; crashes++) {
    struct pwi_manager_figures figures;
    begin(1198 + crashes, 4, crashes);
    pwi_sim_pause(cluster.sim, cluster.manager_node, 20 * MS); /* so that it hears of all at once */
    for (size_t i = 0; i < crashes; i++) crash(i);
    watch_for(35 * MS);
    pwi_manager_figures(cluster.manager, &figures);
    assert_int_equal(figures.nodes_down, crashes);
    watch_for(5 * S);
    assert_whole_again(4 - crashes);
    end();
  }
}

/* A server that is stopped or cut off answers neither the manager nor its neighbours. */
static void test_a_server_that_stands_still_is_followed_within_half_a_second(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 10; seed++) {
    begin(1300 + seed, 4, 1);
    uint64_t epoch = newest_view()->epoch;
    struct pwi_sim_node node = cluster.servers[seed % 4].node;
    bool is_stopped = seed % 2 == 0;
    watch.lost++;
    if (is_stopped)
      pwi_sim_pause(cluster.sim, node, 5 * S);
    else
      cut(node, PWI_SIM_ALL);
    watch_for(S / 2);
    assert_true(newest_view()->epoch > epoch);
    watch_for(5 * S);
    if (!is_stopped) mend(node, PWI_SIM_ALL);
    watch_for(5 * S);
    assert_whole_again(2);
    end();
  }
}

static bool has_old_view(void *context) {
  (void)context;
  return newest_view()->epoch == watch.epoch;
}

static void begin_standing_still(uint64_t seed) {
  begin(seed, 4, 1);
  pwi_sim_pause(cluster.sim, cluster.servers[0].node, 4 * S);
}

/* How long the manager waits for a server that stands still. */
static int64_t patience_of(uint64_t seed) {
  begin_standing_still(seed);
  int64_t began = pwi_sim_now(cluster.sim);
  cluster_run_while(&cluster, has_old_view, NULL, 2 * S);
  int64_t patience = pwi_sim_now(cluster.sim) - began;
  pwi_cluster_close(&cluster);
  return patience;
}

/* One server of a chain stands still, and the other one crashes just before the first is given up. The first has the only
 * copy: it may not lose its place to the other, which has lost its link and is not marked down yet. */
static void test_a_server_that_stands_still_keeps_its_place_if_the_other_one_is_lost(void **state) {
  (void)state;
  for (uint64_t seed = 1600; seed < 1602; seed++) {
    int64_t patience = patience_of(seed);
    for (int64_t early = MS / 2; early <= 5 * MS; early += MS / 2) {
      begin_standing_still(seed);
      watch_for(patience - early);
      assert_int_equal(newest_view()->epoch, watch.epoch);
      crash(1);
      watch_for(4 * S);
      assert_whole_again(2);
      end();
    }
  }
}

/* A busy server that does not return at once. */
static void test_a_server_that_is_slow_to_come_back_after_a_reset_loses_nothing(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 10; seed++) {
    begin(1400 + seed, 4, 1);
    pwi_sim_break(cluster.sim, cluster.manager_node, cluster.servers[0].node);
    pwi_sim_pause(cluster.sim, cluster.servers[0].node, 150 * MS);
    watch_for(5 * S);
    assert_nothing_changed();
    end();
  }
}

/* No member of a chain has lost its place, other than the isolated server. */
static bool keeps_neighbours(void *context) {
  const struct pwi_arc *before = context;
  const struct pwi_view *view = newest_view();
  for (size_t i = 0; i < view->arc_count; i++) {
    const struct pwi_arc *was = before;
    while (was->begin != view->arcs[i].begin) was++; /* arcs are merged later, and split only if they are heavy */
    for (size_t k = 0; k < was->count; k++)
      if (server_of(was->chain[k].node.id) != isolated &&
          pwi_arc_find(&view->arcs[i], was->chain[k].node) == PWI_CHAIN_MAX)
        pwi_sim_fail(cluster.sim, PAWL_CORRUPT, "node %llu has lost a place to the complaint of an isolated server",
                     (unsigned long long)was->chain[k].node.id);
  }
  return true;
}

/* A server loses its links to other servers. Before it has made others it is isolated, for less than the silence limit,
 * so that it keeps its link to the manager. Then it has had no way to the members behind it for more than 200 ms. The
 * members ahead of it could not reach it either, and may have complained. */
static void test_a_server_that_was_isolated_costs_its_neighbours_no_copy(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 24; seed++) {
    begin(1600 + seed, 4, 1);
    isolated = seed % 4;
    watch.lost = 1;
    struct pwi_arc before[64];
    assert_true(newest_view()->arc_count <= 64);
    memcpy(before, newest_view()->arcs, newest_view()->arc_count * sizeof *before);
    struct pwi_sim_node node = cluster.servers[isolated].node;
    for (size_t i = 0; i < 4; i++)
      if (i != isolated) pwi_sim_break(cluster.sim, node, cluster.servers[i].node);
    watch_for((int64_t)(10 + seed * 7 % 40) * MS);
    cut(node, PWI_SIM_ALL);
    watch_for((int64_t)(150 + seed * 4) * MS);
    mend(node, PWI_SIM_ALL);
    pawl_status status = pwi_sim_run_while(cluster.sim, keeps_neighbours, before, pwi_sim_now(cluster.sim) + 500 * MS);
    cluster_check(&cluster, status == PAWL_TIMED_OUT ? PAWL_OK : status, "watching neighbours");
    assert_whole_again(2);
    end();
  }
}

/* Two servers do not reach one another, and both reach the manager: the one behind loses its places. */
static void test_a_pair_of_servers_that_is_cut_is_parted_within_half_a_second(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 10; seed++) {
    begin(1700 + seed, 4, 1);
    const struct pwi_arc arc = newest_view()->arcs[0];
    uint64_t epoch = newest_view()->epoch;
    watch.lost = 1;
    cut(cluster.servers[server_of(arc.chain[0].node.id)].node, cluster.servers[server_of(arc.chain[1].node.id)].node);
    watch_for(S / 2 + 10 * MS); /* 250 ms until the link is silent, then 200 ms and one look */
    assert_true(newest_view()->epoch > epoch);
    assert_whole_again(2);
    end();
  }
}

/* --- connections that are lost in part -------------------------------------------------------------------- */

static uint64_t node_of(size_t server) {
  struct pwi_server_state state;
  pwi_server_state(cluster.servers[server].server, &state);
  return state.node;
}

static bool is_in_a_chain(uint64_t node) {
  const struct pwi_view *view = newest_view();
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_find(&view->arcs[i], (struct pwi_node){node}) != PWI_CHAIN_MAX) return true;
  return false;
}

/* The manager alone does not reach a server. A client joins and makes a vector meanwhile: the manager waits for the
 * server for a second. Pushes go on. After two minutes the server loses its places; it has some again when it is back. */
static void test_a_server_that_the_manager_alone_does_not_reach_stays_for_two_minutes(void **state) {
  (void)state;
  static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
  static struct pwi_cluster_client late;
  begin(1800, 4, 1);
  int64_t began = pwi_sim_now(cluster.sim), before = pushed;
  late = (struct pwi_cluster_client){.job = "job", .name = "late"};
  cut_manager_from(0, 1);
  watch_for(S / 10); /* the manager has not noticed it yet */
  cluster_client_add(&cluster, &late);
  cluster_wait_joined(&late);
  cluster_vector(&late, "job/late", &options);
  assert_true(pwi_sim_now(cluster.sim) - began < 1500 * MS);
  watch_for(began + 119 * S - pwi_sim_now(cluster.sim));
  assert_nothing_changed();
  assert_true(pushed - before > 500);
  watch.lost = 1;
  watch_for(3 * S);
  assert_false(is_in_a_chain(node_of(0)));
  mend_manager_to(0, 1);
  assert_whole_again(2);
  assert_true(is_in_a_chain(node_of(0)));
  end();
}

struct former {
  struct pwi_arc arcs[64];
  size_t count;
  struct pwi_node dead, deaf;
};

/* Counts arcs of both servers in which the deaf one is the first without the dead one, or is not, and is listed still. */
static size_t count_kept(const struct former *former, bool is_first) {
  const struct pwi_view *view = newest_view();
  size_t kept = 0;
  for (size_t i = 0; i < former->count; i++) {
    const struct pwi_arc *was = &former->arcs[i], *is = &view->arcs[pwi_view_arc_of(view, was->begin)];
    size_t dead = pwi_arc_find(was, former->dead), deaf = pwi_arc_find(was, former->deaf);
    if (dead == PWI_CHAIN_MAX || deaf == PWI_CHAIN_MAX || is_first != (deaf == (dead == 0))) continue;
    kept += pwi_arc_find(is, former->deaf) != PWI_CHAIN_MAX;
  }
  return kept;
}

/* A server does not hear of the view without a dead neighbour. Where another member is ahead of it, that one complains,
 * and after five seconds the manager drops the server. A member behind it does not complain, so its places at the head
 * are its own for two minutes. */
static void test_a_server_that_does_not_hear_of_a_view_loses_its_place(void **state) {
  (void)state;
  struct former former;
  size_t heads = 0, others = 0, deaf;
  begin(1900, 4, 2);
  former = (struct former){.count = newest_view()->arc_count, .dead = {node_of(1)}};
  assert_true(former.count <= 64);
  memcpy(former.arcs, newest_view()->arcs, former.count * sizeof *former.arcs);
  for (deaf = 2; deaf < 4 && (heads == 0 || others == 0); deaf++) {
    former.deaf.id = node_of(deaf);
    heads = count_kept(&former, true);
    others = count_kept(&former, false);
  }
  assert_true(heads > 0 && others > 0);
  int64_t began = pwi_sim_now(cluster.sim);
  cut_manager_from(deaf - 1, deaf);
  watch_for(S);
  crash(1);
  watch_for(began + 5 * S - pwi_sim_now(cluster.sim));
  assert_int_equal(count_kept(&former, false), others);
  watch.lost++;
  watch_for(S);
  assert_int_equal(count_kept(&former, false), 0);
  watch_for(began + 119 * S - pwi_sim_now(cluster.sim));
  assert_int_equal(count_kept(&former, true), heads);
  watch_for(3 * S);
  assert_int_equal(count_kept(&former, true), 0);
  mend_manager_to(deaf - 1, deaf);
  assert_whole_again(3);
  end();
}

/* A client does not reach a server, and everybody else does: no server loses its place, and the push waits. */
static void test_a_client_that_does_not_reach_a_server_waits_for_it(void **state) {
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    begin(2000 + i, 4, 1);
    int64_t before = pushed;
    cut(worker.node, cluster.servers[i].node);
    watch_for(30 * S);
    assert_nothing_changed();
    assert_true(is_busy && pushed <= before + 1);
    mend(worker.node, cluster.servers[i].node);
    watch_for(5 * S);
    assert_true(pushed > before + 5);
    end();
  }
}

/* --- servers that leave --------------------------------------------------------------------------------- */

static bool has_left(size_t server) {
  struct pwi_server_state state;
  pwi_server_state(cluster.servers[server].server, &state);
  return state.has_left;
}

/* A server is leaving when another one dies. The third alone cannot hold whole chains. So the first keeps its
 * arcs, of which the dead server may have had the other copy, until a new server has come. */
static void test_a_server_stays_while_its_leaving_would_cost_a_copy(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin(seed, 3, 1);
    pwi_server_leave(cluster.servers[0].server);
    watch_for((int64_t)seed * MS / 4);
    crash(1);
    watch_for(10 * S);
    assert_false(has_left(0));
    pwi_cluster_start(&cluster, 3);
    assert_whole_again(2);
    assert_true(has_left(0));
    end();
  }
}

/* Of two servers one may leave: the operator wants one copy, and there was no death. */
static void test_a_server_leaves_although_chains_become_short_if_that_was_known(void **state) {
  (void)state;
  begin(1, 2, 1);
  pwi_server_leave(cluster.servers[0].server);
  watch.lost = 1;
  assert_whole_again(1);
  assert_true(has_left(0));
  end();
}

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  print_message("%9.3f %s %s\n", cluster.sim ? (double)pwi_sim_now(cluster.sim) / 1e9 : 0.0,
                line->node ? line->node : "-", line->text);
}

/* With the name of a test as argument only this test runs; a second argument prints its events. */
int main(int count, char **arguments) {
  if (count > 1) cmocka_set_test_filter(arguments[1]);
  if (count > 2) pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_reset_costs_no_copy),
      cmocka_unit_test(test_a_crash_after_a_reset_costs_one_copy),
      cmocka_unit_test(test_an_outage_of_the_managers_network_costs_no_copy),
      cmocka_unit_test(test_an_outage_costs_no_copy_where_there_are_two_servers),
      cmocka_unit_test(test_a_server_that_misses_a_view_keeps_its_place),
      cmocka_unit_test(test_a_manager_that_stood_still_does_not_count_this_time),
      cmocka_unit_test(test_servers_that_return_one_by_one_lose_no_copy),
      cmocka_unit_test(test_a_manager_that_is_started_again_waits_for_slow_returners),
      cmocka_unit_test(test_a_manager_that_does_not_reach_half_of_the_servers_strikes_nobody_off),
      cmocka_unit_test(test_a_manager_that_is_cut_off_with_a_server_strikes_nobody_off),
      cmocka_unit_test(test_a_server_that_a_witness_reaches_is_alive),
      cmocka_unit_test(test_a_death_during_an_outage_is_found_afterwards),
      cmocka_unit_test(test_more_deaths_than_replicas_cost_no_more_copies_than_that),
      cmocka_unit_test(test_a_crash_is_followed_within_milliseconds),
      cmocka_unit_test(test_crashes_of_most_are_followed_within_milliseconds),
      cmocka_unit_test(test_a_server_that_stands_still_is_followed_within_half_a_second),
      cmocka_unit_test(test_a_server_that_stands_still_keeps_its_place_if_the_other_one_is_lost),
      cmocka_unit_test(test_a_server_that_is_slow_to_come_back_after_a_reset_loses_nothing),
      cmocka_unit_test(test_a_server_that_was_isolated_costs_its_neighbours_no_copy),
      cmocka_unit_test(test_a_pair_of_servers_that_is_cut_is_parted_within_half_a_second),
      cmocka_unit_test(test_a_server_that_the_manager_alone_does_not_reach_stays_for_two_minutes),
      cmocka_unit_test(test_a_server_that_does_not_hear_of_a_view_loses_its_place),
      cmocka_unit_test(test_a_client_that_does_not_reach_a_server_waits_for_it),
      cmocka_unit_test(test_a_server_stays_while_its_leaving_would_cost_a_copy),
      cmocka_unit_test(test_a_server_leaves_although_chains_become_short_if_that_was_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
