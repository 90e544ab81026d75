/* Chains of several members: how they are formed, how they survive losses, how they are repaired. Every view
 * that the manager writes is checked (manager/watching.h), and every server checks it again. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/inside.h"
#include "manager/watching.h"

static struct world world;

/* --- looking -------------------------------------------------------------------------------------------- */

static bool has_pairs(struct actor *actor) {
  (void)actor;
  return has_chains_of(2);
}

static bool is_in_a_chain(struct actor *actor) { return is_member(actor->joined.id); }
static bool sees_filling(struct actor *actor) { return figures_of(actor->world).filling > 0; }

/* --- beginning ------------------------------------------------------------------------------------------ */

static void test_first_chains_are_whole_at_once(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 4; replicas++) {
    open_chains(&world, replicas, replicas, 5);
    assert_true(has_chains_of(replicas + 1));
    assert_int_equal(watched.promotions, 0);
    world_close(&world);
  }
}

static void test_chains_are_completed_when_processes_come(void **state) {
  (void)state;
  open_chains(&world, 5, 2, 1);
  assert_true(has_chains_of(1));
  add_server(&world, "t", 100, 0, 1);
  run_until(&world.actors[0], has_pairs);
  add_server(&world, "u", 101, 0, 1);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(3));
  assert_true(is_at_rest(&world.actors[0]));
  assert_true(share_of(now(), &world.actors[0]) <= 35);
  world_close(&world);
}

/* --- losing --------------------------------------------------------------------------------------------- */

/* Kills the member at this place of the first chain. The arc must be served again at once, and be whole
 * later. */
static void lose(uint64_t seed, uint32_t replicas, size_t place) {
  open_chains(&world, seed, replicas, 5);
  struct pwi_arc before = now()->arcs[0];
  uint64_t views = watched.views;
  struct actor *victim = actor_of(before.chain[place].node.id), *other = actor_of(before.chain[!place].node.id);
  uint64_t id = victim->joined.id;
  kill_for_good(victim);
  run_for(&world, 5 * PWI_SIM_MILLISECOND);
  assert_int_equal(watched.views, views + 1); /* one view for all its arcs */
  assert_false(is_member(id));
  pwi_arc_remove(&before, place);
  assert_true(pwi_arc_same_chain(&before, &now()->arcs[0]));
  assert_true(figures_of(&world).ready);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(is_at_rest(other));
  assert_true(has_chains_of(replicas + 1));
  world_close(&world);
}

static void test_a_lost_member_is_followed_by_the_next_and_replaced(void **state) {
  (void)state;
  for (uint32_t replicas = 1; replicas < 4; replicas++)
    for (size_t place = 0; place <= replicas; place++) lose(10 * replicas + place, replicas, place);
}

static void test_the_last_full_member_is_waited_for(void **state) {
  (void)state;
  open_chains(&world, 51, 1, 3);
  struct pwi_arc arc = now()->arcs[0];
  struct actor *head = actor_of(arc.chain[0].node.id), *tail = actor_of(arc.chain[1].node.id);
  kill_for_good(head);
  run_for(&world, 3 * PWI_SIM_MILLISECOND); /* before anything can be filled */
  tail->keeps_away = true;
  pwi_sim_break(world.sim, tail->node, world.manager_node);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(now()->arcs[0].count, 1);
  assert_int_equal(now()->arcs[0].chain[0].node.id, tail->joined.id);
  assert_false(is_up(tail->joined.id));
  assert_false(figures_of(&world).ready);
  tail->keeps_away = false;
  OK(pwi_net_connect(tail->net, MANAGER, &tail->link));
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  world_close(&world);
}

static void test_figures_say_when_chains_are_short_and_when_they_are_whole(void **state) {
  (void)state;
  open_chains(&world, 53, 1, 3);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.whole && figures.ready);
  assert_int_equal(figures.replicas, 1);
  assert_int_equal(figures.processes_up, 3);
  assert_int_equal(figures.under_replicated + figures.filling + figures.waiting, 0);
  kill_for_good(&world.actors[0]);
  run_for(&world, 3 * PWI_SIM_MILLISECOND);
  figures = figures_of(&world);
  assert_false(figures.whole);
  assert_true(figures.ready && figures.under_replicated > 0);
  assert_int_equal(figures.processes_up, 2);
  assert_int_equal(figures.filling, 0); /* nothing is planned yet */
  run_until(&world.actors[1], sees_filling);
  figures = figures_of(&world);
  assert_true(figures.moves > 0 && !figures.whole);
  run_for(&world, 5 * PWI_SIM_SECOND);
  figures = figures_of(&world);
  assert_true(figures.whole);
  assert_int_equal(figures.under_replicated + figures.filling, 0);
  world_close(&world);
}

static void test_chains_without_processes_enough_are_short_and_whole(void **state) {
  (void)state;
  open_chains(&world, 54, 2, 2);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.whole);
  assert_int_equal(figures.under_replicated, figures.arcs);
  assert_int_equal(figures.processes_up, 2);
  world_close(&world);
}

static void test_arcs_that_wait_for_the_only_copy_are_counted(void **state) {
  (void)state;
  open_chains(&world, 55, 0, 3);
  kill_for_good(&world.actors[1]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.waiting > 0 && figures.waiting < figures.arcs);
  assert_false(figures.whole || figures.ready);
  assert_int_equal(figures.under_replicated, 0);
  world_close(&world);
}

static void test_a_node_that_comes_back_is_given_work_again(void **state) {
  (void)state;
  open_chains(&world, 52, 1, 4);
  struct actor *victim = &world.actors[1];
  victim->keeps_away = true;
  pwi_sim_break(world.sim, victim->node, world.manager_node);
  run_until(victim, is_in_no_chain);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  assert_true(has_chains_of(2));
  uint64_t id = victim->joined.id;
  victim->keeps_away = false;
  OK(pwi_net_connect(victim->net, MANAGER, &victim->link));
  run_until(victim, is_in_a_chain);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(victim->joined.id, id);
  assert_true(share_of(now(), victim) >= 23 && share_of(now(), victim) <= 27);
  assert_true(has_chains_of(2));
  world_close(&world);
}

static bool somebody_is_filling(struct actor *actor) {
  for (size_t i = 0; i < world.count; i++)
    if (world.actors[i].orders > world.actors[i].cancels && world.actors[i].moving == MOVES_NEVER) return true;
  (void)actor;
  return false;
}

/* Loses the source or the target of a fill. */
static void lose_while_filling(uint64_t seed, bool source) {
  open_chains(&world, seed, 1, 4);
  for (size_t i = 0; i < 4; i++) world.actors[i].moving = MOVES_NEVER;
  kill_for_good(&world.actors[0]);
  run_until(&world.actors[1], somebody_is_filling);
  struct actor *filler = NULL;
  for (size_t i = 1; i < 4; i++)
    if (world.actors[i].orders > 0) filler = &world.actors[i];
  struct actor *victim = source ? filler : actor_of(filler->order.target);
  uint64_t id = victim->joined.id;
  for (size_t i = 0; i < 4; i++) world.actors[i].moving = MOVES_WELL;
  victim->keeps_away = true;
  pwi_sim_break(world.sim, victim->node, world.manager_node);
  run_for(&world, 5 * PWI_SIM_MILLISECOND);
  for (size_t i = 0; i < now()->arc_count; i++) {
    size_t place = pwi_arc_find(&now()->arcs[i], (struct pwi_node){id});
    assert_true(place == PWI_CHAIN_MAX || now()->arcs[i].count == 1);
  }
  victim->keeps_away = false;
  OK(pwi_net_connect(victim->net, MANAGER, &victim->link));
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  world_close(&world);
}

static void test_source_and_target_of_a_fill_may_be_lost(void **state) {
  (void)state;
  lose_while_filling(53, true);
  lose_while_filling(54, false);
}

/* Three of five servers are silent to the manager and to the two others. If they are dead, their arcs wait
 * long. If they are not, waiting was right. */
static void test_a_manager_that_loses_most_at_once_suspects_itself(void **state) {
  (void)state;
  open_chains(&world, 55, 2, 5);
  for (size_t i = 0; i < 5; i++) pwi_sim_break(world.sim, world.actors[i].node, world.manager_node);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_up, 5);
  assert_true(has_chains_of(3));
  for (size_t i = 0; i < 3; i++) {
    world.actors[i].keeps_away = true;
    pwi_sim_break(world.sim, world.actors[i].node, world.manager_node);
  }
  run_for(&world, 110 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, 12 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 3);
  run_for(&world, 5 * PWI_SIM_SECOND);
  for (size_t i = 0; i < now()->arc_count; i++) /* of both that are left, or still of the three */
    assert_int_equal(now()->arcs[i].count, is_up(now()->arcs[i].chain[0].node.id) ? 2 : 3);
  world_close(&world);
}

/* The silent servers have two minutes from the last return of any server on. */
static void test_a_return_gives_silent_servers_more_time(void **state) {
  (void)state;
  open_chains(&world, 86, 2, 5);
  for (size_t i = 0; i < 3; i++) {
    world.actors[i].keeps_away = true;
    pwi_sim_break(world.sim, world.actors[i].node, world.manager_node);
  }
  run_for(&world, 60 * PWI_SIM_SECOND);
  pwi_sim_break(world.sim, world.actors[4].node, world.manager_node);
  run_for(&world, 119 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 3);
  world_close(&world);
}

/* Nobody can say whether silent servers are dead until another server has joined, which then looks for them. */
static void test_silent_servers_are_declared_dead_when_a_new_one_has_looked_for_them(void **state) {
  (void)state;
  open_chains(&world, 87, 1, 3);
  for (size_t i = 0; i < 3; i++) pwi_sim_pause(world.sim, world.actors[i].node, PWI_NET_NEVER);
  run_for(&world, 300 * PWI_SIM_SECOND);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_int_equal(figures.nodes_down, 0);
  assert_int_equal(figures.waiting, figures.arcs); /* they are past their grace */
  run_until(add_server(&world, "new", 100, 0, 1), is_in);
  run_for(&world, 119 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 3);
  assert_int_equal(figures_of(&world).waiting, figures.arcs);
  world_close(&world);
}

static bool are_neighbours(const struct actor *a, const struct actor *b) {
  for (size_t i = 0; i < now()->arc_count; i++)
    if (pwi_arc_find(&now()->arcs[i], (struct pwi_node){a->joined.id}) != PWI_CHAIN_MAX &&
        pwi_arc_find(&now()->arcs[i], (struct pwi_node){b->joined.id}) != PWI_CHAIN_MAX)
      return true;
  return false;
}

static void test_three_servers_look_for_a_lost_one_neighbours_first(void **state) {
  (void)state;
  for (uint64_t seed = 88; seed < 98; seed++) {
    unsigned neighbours = 0, near = 0, far = 0;
    bool is_near[8];
    open_chains_of(&world, seed, 1, 8, 1);
    struct actor *lost = &world.actors[seed % 8];
    for (size_t i = 0; i < 8; i++) {
      is_near[i] = &world.actors[i] != lost && are_neighbours(&world.actors[i], lost);
      neighbours += is_near[i];
    }
    pwi_sim_break(world.sim, lost->node, world.manager_node);
    run_for(&world, 5 * PWI_SIM_MILLISECOND);
    for (size_t i = 0; i < 8; i++) *(is_near[i] ? &near : &far) += world.actors[i].probes;
    assert_true(neighbours > 0 && neighbours < 7); /* else they are no choice */
    assert_int_equal(near + far, 3);
    assert_int_equal(near, neighbours < 3 ? neighbours : 3);
    run_for(&world, PWI_SIM_SECOND);
    assert_true(has_chains_of(2)); /* they have found it alive */
    world_close(&world);
  }
}

/* The manager's network fails: all servers become silent, each within a heartbeat of the first. */
static void test_a_manager_that_is_cut_off_declares_no_server_dead(void **state) {
  (void)state;
  for (uint64_t seed = 80; seed < 100; seed++) {
    open_chains(&world, seed, 1, 4);
    uint64_t epoch = now()->epoch;
    pwi_sim_cut(world.sim, PWI_SIM_ALL, world.manager_node);
    pwi_sim_cut(world.sim, world.manager_node, PWI_SIM_ALL);
    run_for(&world, PWI_SIM_SECOND); /* all have lost their links, and have their grace */
    assert_int_equal(now()->epoch, epoch);
    assert_int_equal(figures_of(&world).nodes_down, 0);
    world_close(&world);
  }
}

static void test_all_shards_of_a_process_are_lost_in_one_view(void **state) {
  (void)state;
  world_init(&world, 56, 3);
  world.config.replicas = 1;
  watch(&world);
  OK(pwi_sim_start(world.sim, world.manager_node));
  for (uint32_t i = 0; i < 6; i++) {
    char name[8];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    add_server(&world, name, 10 + i / 2, i % 2, 2);
  }
  run_until(&world.actors[5], has_arcs);
  assert_true(has_chains_of(2));
  uint64_t views = watched.views;
  pwi_sim_break(world.sim, world.actors[0].node, world.manager_node);
  pwi_sim_break(world.sim, world.actors[1].node, world.manager_node);
  world.actors[0].keeps_away = world.actors[1].keeps_away = true;
  run_for(&world, 5 * PWI_SIM_MILLISECOND);
  assert_int_equal(watched.views, views + 1);
  assert_false(is_in_a_chain(&world.actors[0]) || is_in_a_chain(&world.actors[1]));
  world_close(&world);
}

/* --- hosts and racks ------------------------------------------------------------------------------------ */

/* Two servers to a machine, two machines to a rack. */
static struct actor *add_labelled(uint32_t number) {
  char name[16];
  snprintf(name, sizeof name, "s%u", (unsigned)number);
  struct actor *actor = add_server(&world, name, 10 + number, 0, 1);
  snprintf(actor->join.host, sizeof actor->join.host, "host%u", (unsigned)(number / 2));
  snprintf(actor->join.rack, sizeof actor->join.rack, "rack%u", (unsigned)(number / 4));
  return actor;
}

static void open_labelled(uint64_t seed, uint32_t replicas, uint32_t servers) {
  world_init(&world, seed, servers);
  world.config.replicas = replicas;
  watch(&world);
  OK(pwi_sim_start(world.sim, world.manager_node));
  for (uint32_t i = 0; i < servers; i++) add_labelled(i);
  run_until(&world.actors[servers - 1], has_arcs);
  run_for(&world, PWI_SIM_SECOND / 10);
}

/* How many arcs have two members on one host, or in one rack. */
static size_t count_shared(bool racks) {
  size_t shared = 0;
  for (size_t i = 0; i < now()->arc_count; i++) {
    const struct pwi_arc *arc = &now()->arcs[i];
    bool shares = false;
    for (size_t j = 0; j < arc->count; j++) {
      for (size_t k = 0; k < j; k++) {
        const struct pwi_view_node *a = pwi_view_find(now(), arc->chain[j].node);
        const struct pwi_view_node *b = pwi_view_find(now(), arc->chain[k].node);
        shares |= strcmp(racks ? a->rack : a->host, racks ? b->rack : b->host) == 0;
      }
    }
    shared += shares;
  }
  return shared;
}

static void test_members_are_on_different_hosts_and_in_different_racks(void **state) {
  (void)state;
  open_labelled(57, 1, 8); /* two racks */
  assert_int_equal(count_shared(false), 0);
  assert_int_equal(count_shared(true), 0);
  for (size_t i = 2; i < 4; i++) { /* a machine, one server after the other */
    kill_for_good(&world.actors[i]);
    run_for(&world, 5 * PWI_SIM_SECOND);
    assert_true(has_chains_of(2));
    assert_int_equal(count_shared(false), 0);
    assert_true(count_shared(true) * 2 < now()->arc_count); /* the smaller rack is not overloaded */
  }
  world_close(&world);
}

/* A rack is lost with everything in it. Each chain has a member in another rack, which is enough. */
static void test_the_loss_of_a_rack_costs_no_arc(void **state) {
  (void)state;
  open_labelled(58, 1, 12); /* three racks */
  assert_int_equal(count_shared(true), 0);
  for (size_t i = 4; i < 8; i++) kill_for_good(&world.actors[i]);
  run_for(&world, 2 * PWI_SIM_MILLISECOND);
  assert_true(figures_of(&world).ready);
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_int_equal(count_shared(true), 0);
  world_close(&world);
}

static void test_chains_that_share_a_host_are_spread_when_another_comes(void **state) {
  (void)state;
  open_labelled(59, 1, 2);
  assert_int_equal(count_shared(false), now()->arc_count);
  add_labelled(2);
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_int_equal(count_shared(false), 0);
  add_labelled(3);
  add_labelled(4); /* in another rack */
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_int_equal(count_shared(false), 0);
  world_close(&world);
}

/* --- joining and leaving -------------------------------------------------------------------------------- */

static void join_and_leave(uint64_t seed, uint32_t replicas) {
  open_chains(&world, seed, replicas, 4);
  struct actor *new = add_server(&world, "new", 100, 0, 1);
  run_until(new, is_in_a_chain);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(is_at_rest(new));
  assert_true(has_chains_of(replicas + 1));
  assert_true(share_of(now(), new) >= 18 && share_of(now(), new) <= 22);
  assert_true(replicas == 0 || watched.handovers > 0);
  struct actor *leaver = &world.actors[2];
  say(leaver, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(leaver, has_left);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(replicas + 1));
  assert_int_equal(now()->node_count, 4);
  assert_true(is_at_rest(new));
  world_close(&world);
}

static void test_servers_join_and_leave(void **state) {
  (void)state;
  for (uint32_t replicas = 0; replicas < 3; replicas++) join_and_leave(60 + replicas, replicas);
}

static void test_a_server_that_leaves_a_small_cluster_leaves_shorter_chains(void **state) {
  (void)state;
  open_chains(&world, 65, 1, 2);
  say(&world.actors[1], PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(&world.actors[1], has_left);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(has_chains_of(1));
  assert_int_equal(share_of(now(), &world.actors[0]), 100);
  world_close(&world);
}

enum restart { RESTARTS_NOT, RESTARTS_BEFORE_THE_LOSS, RESTARTS_AFTER_THE_LOSS };

static bool is_dead(struct actor *actor) { return !is_up(actor->joined.id); }

/* The part of the ring, in 256ths of positions, of which the actor has a copy. */
static uint64_t copies_of(const struct actor *actor) {
  uint64_t sum = 0;
  for (size_t i = 0; i < now()->arc_count; i++) {
    size_t place = pwi_arc_find(&now()->arcs[i], (struct pwi_node){actor->joined.id});
    if (place < pwi_arc_full(&now()->arcs[i])) sum += pawl_range_size(pwi_view_arc_range(now(), i)) / 256;
  }
  return sum;
}

/* One of three servers leaves. Before its arcs have moved, another is lost, and the manager restarts. */
static uint64_t lose_while_one_leaves(uint64_t seed, enum restart restart) {
  open_chains(&world, seed, 1, 3);
  struct actor *leaver = &world.actors[0], *victim = &world.actors[1];
  for (size_t i = 0; i < 3; i++) world.actors[i].moving = MOVES_NEVER;
  say(leaver, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(leaver, is_dead); /* it is draining */
  uint64_t copies = copies_of(leaver);
  if (restart == RESTARTS_BEFORE_THE_LOSS) OK(pwi_sim_restart(world.sim, world.manager_node));
  kill_for_good(victim);
  if (restart == RESTARTS_AFTER_THE_LOSS) {
    run_for(&world, 5 * PWI_SIM_SECOND);
    OK(pwi_sim_restart(world.sim, world.manager_node));
  }
  for (size_t i = 0; i < 3; i++) world.actors[i].moving = MOVES_WELL;
  run_for(&world, PWI_SIM_SECOND / 2);
  run_until(leaver, is_in);
  say(leaver, PWI_SAY_LEAVE, 0, 0, NULL); /* as servers do when they join again */
  run_for(&world, 20 * PWI_SIM_SECOND);
  return copies;
}

static void test_a_server_that_leaves_is_kept_while_another_is_lost(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    uint64_t copies = lose_while_one_leaves(66 + (uint64_t)i, (enum restart)i);
    assert_true(is_dead(&world.actors[1]));
    assert_int_equal(world.actors[0].lefts, 0);
    assert_true(copies_of(&world.actors[0]) / 256 == copies / 256);
    add_server(&world, "new", 100, 0, 1);
    run_until(&world.actors[0], has_left);
    run_for(&world, 5 * PWI_SIM_SECOND);
    assert_true(has_chains_of(2));
    world_close(&world);
  }
}

/* The smallest number of full members that any chain has had. */
static size_t fewest;

static bool all_have_left(struct actor *actor) {
  for (size_t i = 0; i < now()->arc_count; i++) {
    size_t full = pwi_arc_full(&now()->arcs[i]);
    if (full < fewest) fewest = full;
  }
  for (size_t i = 0; i < actor->world->count; i += 2)
    if (actor->world->actors[i].lefts == 0) return false;
  return true;
}

/* The first of two shards of each process leaves. So some chains consist of leaving shards alone, and the
 * plan names the other shards of the same processes. */
static void leave_one_of_two(uint64_t seed, uint32_t processes) {
  world_init(&world, seed, processes);
  world.config.replicas = 1;
  world.someone_returned = true;
  watch(&world);
  OK(pwi_sim_start(world.sim, world.manager_node));
  for (uint32_t i = 0; i < 2 * processes; i++) {
    char name[16];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    add_server(&world, name, 10 + i / 2, i % 2, 2);
  }
  run_until(&world.actors[0], has_arcs);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  fewest = PWI_CHAIN_MAX;
  for (uint32_t i = 0; i < 2 * processes; i += 2) say(&world.actors[i], PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(&world.actors[0], all_have_left);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  assert_int_equal(now()->node_count, processes);
}

/* With two processes, one copy must go before the other shard of its process can have one. */
static void test_one_shard_of_each_process_leaves(void **state) {
  (void)state;
  for (uint64_t seed = 70; seed < 80; seed++) {
    leave_one_of_two(seed, 2);
    assert_int_equal(fewest, 1);
    world_close(&world);
  }
}

static void test_shards_that_leave_keep_copies_until_there_are_others(void **state) {
  (void)state;
  for (uint64_t seed = 80; seed < 90; seed++) {
    leave_one_of_two(seed, 3);
    assert_int_equal(fewest, 2);
    world_close(&world);
  }
}

/* --- complaints ----------------------------------------------------------------------------------------- */

static void test_the_later_of_two_members_in_conflict_is_removed(void **state) {
  (void)state;
  for (int by_the_head = 0; by_the_head < 2; by_the_head++) {
    open_chains(&world, 80, 1, 4);
    struct pwi_arc before = now()->arcs[0];
    uint64_t head = before.chain[0].node.id, tail = before.chain[1].node.id;
    complain(actor_of(by_the_head ? head : tail), pwi_view_arc_range(now(), 0), by_the_head ? tail : head);
    assert_int_equal(now()->arcs[0].count, 1);
    assert_int_equal(now()->arcs[0].chain[0].node.id, head);
    complain(actor_of(head), pwi_view_arc_range(now(), 0), tail); /* the complaint is about an earlier
                                                                     chain */
    complain(actor_of(head), pwi_view_arc_range(now(), 0), head); /* the last full member stays */
    assert_int_equal(now()->arcs[0].chain[0].node.id, head);
    run_for(&world, 5 * PWI_SIM_SECOND);
    assert_true(has_chains_of(2));
    for (size_t i = 0; i < now()->arc_count; i++) {
      const struct pwi_arc *arc = &now()->arcs[i];
      if (arc->begin != before.begin) continue;
      assert_true(pwi_arc_find(arc, (struct pwi_node){head}) == PWI_CHAIN_MAX ||
                  pwi_arc_find(arc, (struct pwi_node){tail}) == PWI_CHAIN_MAX);
    }
    world_close(&world);
  }
}

/* Its neighbour may not have reached it again yet, and complains. */
static void test_on_a_busy_machine_a_member_that_came_back_has_more_time(void **state) {
  (void)state;
  open_chains(&world, 87, 1, 4);
  struct pwi_arc arc = now()->arcs[0];
  uint64_t head = arc.chain[0].node.id, tail = arc.chain[1].node.id;
  pwi_sim_allow(world.sim, PWI_SIM_SECOND);
  pwi_sim_break(world.sim, actor_of(tail)->node, world.manager_node);
  run_for(&world, 700 * PWI_SIM_MILLISECOND);
  complain(actor_of(head), pwi_view_arc_range(now(), 0), tail);
  assert_int_equal(now()->arcs[0].count, 2);
  pwi_sim_allow(world.sim, 0);
  complain(actor_of(head), pwi_view_arc_range(now(), 0), tail);
  assert_int_equal(now()->arcs[0].count, 1);
  world_close(&world);
}

static void test_a_member_that_cannot_follow_is_dropped(void **state) {
  (void)state;
  open_chains(&world, 81, 2, 5);
  struct pwi_arc before = now()->arcs[0];
  for (size_t place = 0; place < 2; place++) {
    uint64_t id = now()->arcs[0].chain[0].node.id;
    complain(actor_of(id), pawl_range_of(0, 1), id);
    assert_int_equal(now()->arcs[0].count, 2 - place);
    assert_int_equal(now()->arcs[0].chain[0].node.id, before.chain[place + 1].node.id);
  }
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(3));
  world_close(&world);
}

/* The link of the other member has just broken, and it may be dead. */
static void test_a_member_that_cannot_follow_stays_if_no_other_is_connected(void **state) {
  (void)state;
  open_chains(&world, 85, 1, 4);
  struct pwi_arc arc = now()->arcs[0];
  struct actor *head = actor_of(arc.chain[0].node.id), *tail = actor_of(arc.chain[1].node.id);
  kill_for_good(tail);
  run_until(tail, has_no_link);
  complain_of(head, pwi_view_arc_range(now(), 0), head->joined.id, PAWL_NO_MEMORY);
  assert_int_equal(now()->arcs[0].chain[0].node.id, head->joined.id);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(has_chains_of(2));
  world_close(&world);
}

/* The other servers reach it, and so it is not declared dead. */
static void test_of_two_members_in_conflict_the_one_without_a_link_is_removed(void **state) {
  (void)state;
  open_chains(&world, 88, 1, 4);
  struct pwi_arc arc = now()->arcs[0];
  struct actor *head = actor_of(arc.chain[0].node.id), *tail = actor_of(arc.chain[1].node.id);
  pwi_sim_cut(world.sim, head->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, head->node);
  run_for(&world, 6 * PWI_SIM_SECOND);
  assert_true(is_up(head->joined.id));
  complain(tail, pwi_view_arc_range(now(), 0), head->joined.id);
  assert_int_equal(now()->arcs[0].count, 1);
  assert_int_equal(now()->arcs[0].chain[0].node.id, tail->joined.id);
  world_close(&world);
}

/* All bytes are in the first arc. */
static void say_first_arc_is_heavy(struct actor *server) {
  struct pwi_report report = {.bytes = 1};
  struct pwi_load loads[64];
  struct pwi_writer payload = {0};
  size_t count = 0;
  for (size_t i = 0; i < server->view->arc_count && count < 64; i++)
    if (pwi_view_head(server->view, i)->node.id == server->joined.id)
      loads[count++] =
          (struct pwi_load){.positions = pwi_view_arc_range(server->view, i), .bytes = i == 0 ? UINT64_C(1) << 30 : 1};
  pwi_report_encode(&report, loads, count, &payload);
  say(server, PWI_SAY_REPORT, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

static void test_a_server_without_memory_is_given_no_more_arcs(void **state) {
  (void)state;
  open_chains(&world, 83, 1, 3);
  for (size_t i = 0; i < 3; i++) say_first_arc_is_heavy(&world.actors[i]);
  run_for(&world, PWI_SIM_SECOND / 10);
  uint64_t starved = now()->arcs[0].chain[1].node.id;
  complain(actor_of(starved), pawl_range_of(0, 1), starved);
  for (int i = 0; i < 200; i++) {
    run_for(&world, PWI_SIM_SECOND / 100);
    for (size_t k = 0; k < 3; k++) assert_true(world.actors[k].orders == 0 || world.actors[k].order.target != starved);
  }
  assert_true(has_chains_of(2));
  assert_int_equal(pwi_arc_find(&now()->arcs[0], (struct pwi_node){starved}), PWI_CHAIN_MAX);
  world_close(&world);
}

static void test_complaints_that_make_no_sense_change_nothing(void **state) {
  (void)state;
  open_chains(&world, 82, 2, 4);
  struct pwi_arc before = now()->arcs[0];
  struct actor *head = actor_of(before.chain[0].node.id);
  uint64_t views = watched.views;
  complain(head, pawl_range_of(0, 1), 77);
  complain(head, pawl_range_of(0, 1), before.chain[2].node.id); /* not its neighbour */
  head->numbers[0] = 1;                                         /* as if it knew an older chain */
  complain(head, pawl_range_of(0, 1), before.chain[1].node.id);
  assert_int_equal(watched.views, views);
  struct actor *client = add_operator(&world);
  client->keeps_away = true;
  complain(client, pawl_range_of(0, 1), before.chain[1].node.id);
  assert_int_equal(client->why_down, PAWL_LINK_PROTOCOL);
  world_close(&world);
}

/* A server that warns is told at once that it is heard, whatever it warns of. */
static void test_a_warning_is_answered_and_changes_nothing(void **state) {
  (void)state;
  open_chains(&world, 84, 1, 3);
  struct pwi_arc arc = now()->arcs[0];
  struct actor *head = actor_of(arc.chain[0].node.id);
  uint64_t views = watched.views;
  complain_of(head, pwi_view_arc_range(now(), 0), arc.chain[1].node.id, PAWL_OK);
  assert_int_equal(head->warnings, 1);
  complain_of(head, pawl_range_of(0, 1), 77, PAWL_OK);
  assert_int_equal(head->warnings, 2);
  assert_int_equal(watched.views, views);
  complain(head, pwi_view_arc_range(now(), 0), arc.chain[1].node.id);
  assert_int_equal(head->warnings, 2);
  assert_true(watched.views > views);
  world_close(&world);
}

/* --- restarts ------------------------------------------------------------------------------------------- */

static void test_a_restart_in_the_middle_of_anything_leaves_sound_chains(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 60; i++) {
    open_chains(&world, 90, 1, 3);
    struct actor *new = add_server(&world, "new", 100, 0, 1);
    run_until(new, is_in);
    run_for(&world, 45 * PWI_SIM_MILLISECOND + (int64_t)i * PWI_SIM_MILLISECOND);
    OK(pwi_sim_restart(world.sim, world.manager_node));
    run_for(&world, 20 * PWI_SIM_MILLISECOND);
    for (size_t j = 0; j < now()->arc_count; j++) {
      assert_true(pwi_arc_full(&now()->arcs[j]) >= 2);
      assert_int_equal(pwi_arc_full(&now()->arcs[j]), now()->arcs[j].count);
    }
    run_for(&world, 5 * PWI_SIM_SECOND);
    assert_true(has_chains_of(2));
    assert_true(is_at_rest(new));
    world_close(&world);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_chains_are_whole_at_once),
      cmocka_unit_test(test_chains_are_completed_when_processes_come),
      cmocka_unit_test(test_a_lost_member_is_followed_by_the_next_and_replaced),
      cmocka_unit_test(test_the_last_full_member_is_waited_for),
      cmocka_unit_test(test_figures_say_when_chains_are_short_and_when_they_are_whole),
      cmocka_unit_test(test_chains_without_processes_enough_are_short_and_whole),
      cmocka_unit_test(test_arcs_that_wait_for_the_only_copy_are_counted),
      cmocka_unit_test(test_a_node_that_comes_back_is_given_work_again),
      cmocka_unit_test(test_source_and_target_of_a_fill_may_be_lost),
      cmocka_unit_test(test_a_manager_that_loses_most_at_once_suspects_itself),
      cmocka_unit_test(test_a_return_gives_silent_servers_more_time),
      cmocka_unit_test(test_silent_servers_are_declared_dead_when_a_new_one_has_looked_for_them),
      cmocka_unit_test(test_three_servers_look_for_a_lost_one_neighbours_first),
      cmocka_unit_test(test_a_manager_that_is_cut_off_declares_no_server_dead),
      cmocka_unit_test(test_all_shards_of_a_process_are_lost_in_one_view),
      cmocka_unit_test(test_members_are_on_different_hosts_and_in_different_racks),
      cmocka_unit_test(test_the_loss_of_a_rack_costs_no_arc),
      cmocka_unit_test(test_chains_that_share_a_host_are_spread_when_another_comes),
      cmocka_unit_test(test_servers_join_and_leave),
      cmocka_unit_test(test_a_server_that_leaves_a_small_cluster_leaves_shorter_chains),
      cmocka_unit_test(test_a_server_that_leaves_is_kept_while_another_is_lost),
      cmocka_unit_test(test_one_shard_of_each_process_leaves),
      cmocka_unit_test(test_shards_that_leave_keep_copies_until_there_are_others),
      cmocka_unit_test(test_the_later_of_two_members_in_conflict_is_removed),
      cmocka_unit_test(test_on_a_busy_machine_a_member_that_came_back_has_more_time),
      cmocka_unit_test(test_a_member_that_cannot_follow_is_dropped),
      cmocka_unit_test(test_a_member_that_cannot_follow_stays_if_no_other_is_connected),
      cmocka_unit_test(test_of_two_members_in_conflict_the_one_without_a_link_is_removed),
      cmocka_unit_test(test_a_server_without_memory_is_given_no_more_arcs),
      cmocka_unit_test(test_complaints_that_make_no_sense_change_nothing),
      cmocka_unit_test(test_a_warning_is_answered_and_changes_nothing),
      cmocka_unit_test(test_a_restart_in_the_middle_of_anything_leaves_sound_chains),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
