/* timeout: 600
 *
 * Relays that choose their tree: three of them, one for each member, on links whose rates the test sets. They agree on
 * the tree in which sums are fastest, and change it when the links change. Every sum is checked.
 */
#include "relay_scene.h"

#define SECOND PWI_SIM_SECOND
#define PAUSE (100 * MS) /* between two ticks */
#define NODES_MAX 16
#define SLOW 10000.0 /* nanoseconds a byte */
#define FAST 200.0

static const struct pwi_relay_tree chosen = {.is_auto = true}, rack = {.tree = PWI_TREE_RACK},
                                   none = {.tree = PWI_TREE_NONE};
static struct pwi_cluster_client relays[3];

/* --- links ---------------------------------------------------------------------------------------------- */

/* What comes to a node comes one after another. */
static struct {
  double byte_ns[NODES_MAX];
  int64_t busy[NODES_MAX];
} network;

static int64_t deliver(void *context, const struct pwi_sim_packet *packet, int64_t now, struct pwi_random *random) {
  uint32_t to = packet->to.index;
  (void)context, (void)random;
  assert_true(to < NODES_MAX);
  if (network.busy[to] < now) network.busy[to] = now;
  network.busy[to] += (int64_t)((double)packet->size * network.byte_ns[to]);
  return network.busy[to] + MS / 20;
}

static const struct pwi_sim_fabric links = {.delivery_time = deliver};

static void set_links(double to_servers, double to_relays) {
  for (size_t i = 0; i < scene.cluster.server_count; i++)
    network.byte_ns[scene.cluster.servers[i].node.index] = to_servers;
  for (size_t i = 0; i < 3; i++) network.byte_ns[relays[i].node.index] = to_relays;
}

/* --- the scene ------------------------------------------------------------------------------------------ */

static void open_relays(void) {
  static const char *const names[] = {"first", "second", "third"};
  memset(&network, 0, sizeof network);
  fabric = &links;
  open_scene(1, false);
  for (size_t i = 0; i < 3; i++) {
    add_relay_of(&relays[i], names[i], &chosen);
    cluster_wait_joined(&relays[i]);
  }
  cluster_run_for(&scene.cluster, 500 * MS);
}

static void run_ticks_for(int64_t duration) {
  int64_t end = pwi_sim_now(scene.cluster.sim) + duration;
  while (pwi_sim_now(scene.cluster.sim) < end) {
    run_tick();
    cluster_run_for(&scene.cluster, PAUSE);
  }
}

/* Every member and every relay knows that this tree is in force, and that `votes` relays vote for it. */
static bool agree(const struct pwi_relay_tree *tree, size_t votes) {
  for (size_t i = 0; i < MEMBERS + 3; i++) {
    struct pwi_cluster_client *node = i < MEMBERS ? &scene.members[i] : &relays[i - MEMBERS];
    const struct pwi_relays *known = pwi_client_relays(node->client);
    size_t count = 0;
    for (size_t k = 0; k < known->count; k++) count += pwi_relay_tree_is(&known->items[k].vote, tree);
    if (!pwi_relay_tree_is(&known->tree, tree) || count != votes) return false;
  }
  return true;
}

static bool have_chosen(const struct pwi_relay_tree *tree) {
  for (size_t i = 0; i < 3; i++) {
    const struct pwi_choice *choice = &relays[i].relay->votes.choice;
    if (!pwi_relay_tree_is(&choice->trees[choice->chosen].is, tree)) return false;
  }
  return agree(tree, 3);
}

static void run_until_chosen(const struct pwi_relay_tree *tree, int64_t limit) {
  int64_t end = pwi_sim_now(scene.cluster.sim) + limit;
  while (!have_chosen(tree)) {
    assert_true(pwi_sim_now(scene.cluster.sim) < end);
    run_ticks_for(SECOND);
  }
}

static uint64_t changes(void) {
  struct pwi_relay_figures of;
  uint64_t sum = 0;
  for (size_t i = 0; i < 3; i++) {
    pwi_relay_figures(relays[i].relay, &of);
    sum += of.tree_changes;
  }
  return sum;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_relays_agree_on_the_tree_in_which_sums_are_fastest(void **state) {
  (void)state;
  open_relays();
  set_links(SLOW, FAST);
  assert_true(agree(&rack, 0));
  run_ticks_for(60 * SECOND);
  assert_true(have_chosen(&rack));
  assert_true(changes() >= 3 * 3); /* the other two trees were tried */
  pwi_cluster_close(&scene.cluster);
  open_relays();
  set_links(FAST, SLOW);
  run_ticks_for(60 * SECOND);
  assert_true(have_chosen(&none));
  pwi_cluster_close(&scene.cluster);
}

static void test_the_tree_changes_when_links_change(void **state) {
  (void)state;
  open_relays();
  set_links(SLOW, FAST);
  run_until_chosen(&rack, 120 * SECOND);
  set_links(FAST, SLOW);
  run_until_chosen(&none, 1000 * SECOND);
  set_links(SLOW, FAST);
  run_until_chosen(&rack, 2000 * SECOND);
  pwi_cluster_close(&scene.cluster);
}

static void test_relays_that_come_and_go_agree_again(void **state) {
  (void)state;
  open_relays();
  set_links(FAST, SLOW);
  run_until_chosen(&none, 120 * SECOND);
  pwi_sim_kill(scene.cluster.sim, relays[0].node);
  run_ticks_for(20 * SECOND);
  assert_int_equal(pwi_sim_start(scene.cluster.sim, relays[0].node), PAWL_OK);
  cluster_wait_joined(&relays[0]);
  run_until_chosen(&none, 300 * SECOND);
  pwi_cluster_close(&scene.cluster);
}

static void test_relays_that_have_nothing_to_add_up_do_not_vote(void **state) {
  (void)state;
  open_relays();
  set_links(FAST, SLOW);
  run_until_chosen(&none, 120 * SECOND);
  cluster_run_for(&scene.cluster, 660 * SECOND);
  assert_true(agree(&rack, 0));
  run_until_chosen(&none, 120 * SECOND);
  pwi_cluster_close(&scene.cluster);
}

static void test_a_relay_with_a_tree_of_its_own_has_one_vote(void **state) {
  static const struct pwi_relay_tree rack_fixed = {.tree = PWI_TREE_RACK, .is_fixed = true};
  struct pwi_cluster_client other;
  (void)state;
  open_relays();
  add_relay_of(&other, "other", &rack_fixed);
  cluster_wait_joined(&other);
  cluster_run_for(&scene.cluster, 500 * MS);
  assert_true(agree(&rack_fixed, 1)); /* the others have not measured anything yet */
  set_links(SLOW, FAST);
  run_until_chosen(&rack, 120 * SECOND);
  pwi_cluster_close(&scene.cluster);
}

/* --- little memory -------------------------------------------------------------------------------------- */

static void (*look)(void *context, int64_t now);
static uint64_t looks;

/* One allocation fails while the relay votes, another one each time. */
static void look_with_little_memory(void *context, int64_t now) {
  pwi_memory_fail_after(looks++ % 16);
  pwi_relay_look_at_votes(context, now);
  pwi_memory_fail_cancel();
  look(context, now);
}

static void test_votes_survive_the_failure_of_any_allocation(void **state) {
  (void)state;
  open_relays();
  set_links(FAST, SLOW);
  for (size_t i = 0; i < 3; i++) {
    look = relays[i].relay->relaying.look;
    relays[i].relay->relaying.look = look_with_little_memory;
  }
  run_until_chosen(&none, 300 * SECOND);
  assert_true(looks > 100);
  pwi_cluster_close(&scene.cluster);
}

static void test_nothing_leaks(void **state) {
  uint64_t before = pwi_memory_counts().live;
  (void)state;
  open_relays();
  set_links(FAST, SLOW);
  run_ticks_for(10 * SECOND);
  pwi_sim_kill(scene.cluster.sim, relays[0].node);
  pwi_relay_leave(relays[1].relay);
  run_ticks_for(5 * SECOND);
  assert_true(pwi_client_has_left(relays[1].client));
  pwi_cluster_close(&scene.cluster);
  assert_int_equal(pwi_memory_counts().live, before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_relays_agree_on_the_tree_in_which_sums_are_fastest),
      cmocka_unit_test(test_the_tree_changes_when_links_change),
      cmocka_unit_test(test_relays_that_come_and_go_agree_again),
      cmocka_unit_test(test_relays_that_have_nothing_to_add_up_do_not_vote),
      cmocka_unit_test(test_a_relay_with_a_tree_of_its_own_has_one_vote),
      cmocka_unit_test(test_votes_survive_the_failure_of_any_allocation),
      cmocka_unit_test(test_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
