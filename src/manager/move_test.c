/* Moves of arcs: from a plan to orders to views, and failures of servers meanwhile. Every server in these
 * tests checks that each view is a legal successor of the one before. */
#include "base/random.h"
#include "base/testing.h"
#include "ring/plan.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

static bool is_at_rest(struct actor *actor) {
  struct pwi_manager_figures figures = figures_of(actor->world);
  return figures.moves == 0 && actor->numbers[0] == (uint32_t)figures.epoch;
}

static bool has_order(struct actor *actor) { return actor->orders > 0; }
static bool was_cancelled(struct actor *actor) { return actor->cancels > 0; }

static bool someone_is_filling(struct actor *actor) {
  for (size_t i = 0; actor->view && i < actor->view->arc_count; i++) {
    if (actor->view->arcs[i].count > 1) return true;
  }
  return false;
}

static bool nobody_is_filling(struct actor *actor) { return !someone_is_filling(actor); }

static struct actor *find_source(void) {
  for (size_t i = 0; i < world.count; i++) {
    if (world.actors[i].orders > 0 && world.actors[i].orders > world.actors[i].cancels) return &world.actors[i];
  }
  return NULL;
}

static bool anybody_has_an_order(struct actor *actor) {
  (void)actor;
  return find_source() != NULL;
}

static unsigned all_orders(void) {
  unsigned orders = 0;
  for (size_t i = 0; i < world.count; i++) orders += world.actors[i].orders;
  return orders;
}

/* The first arc of which an actor is the head. */
static struct pawl_range arc_of(const struct actor *actor) {
  for (size_t i = 0; i < actor->view->arc_count; i++) {
    if (pwi_view_head(actor->view, i)->node.id == actor->joined.id) return pwi_view_arc_range(actor->view, i);
  }
  return pawl_range_of(0, 0);
}

/* Two servers with half of the ring each, and a client. */
static void open_pair(uint64_t seed, struct actor **a, struct actor **b, struct actor **client) {
  world_open(&world, seed, 2);
  *a = add_server(&world, "a", 10, 0, 1);
  *b = add_server(&world, "b", 20, 0, 1);
  run_until(*a, has_arcs);
  *client = add_client(&world, "client", false);
  run_until(*client, is_in);
}

static pawl_status ask_move(struct actor *client, uint64_t begin, uint64_t end, uint64_t node) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, begin);
  pwi_write_u64(&payload, end);
  pwi_write_u64(&payload, node);
  return ask(client, PWI_ASK_MOVE, &payload);
}

/* --- joining -------------------------------------------------------------------------------------------- */

static void test_only_the_newcomer_receives_arcs(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(1, &a, &b, &client);
  struct actor *c = add_server(&world, "c", 30, 0, 1);
  run_until(a, anybody_has_an_order);
  run_until(a, is_at_rest);
  assert_true(share_of(a->view, c) >= 30 && share_of(a->view, c) <= 36);
  assert_true(share_of(a->view, a) >= 30 && share_of(a->view, a) <= 36);
  assert_int_equal(c->orders, 0);
  assert_int_equal(a->cancels + b->cancels, 0);
  assert_int_equal(figures_of(&world).moves_done, a->orders + b->orders);
  for (size_t i = 0; i < a->view->arc_count; i++) {
    assert_int_equal(a->view->arcs[i].count, 1);
  }
  world_close(&world);
}

static void test_all_shards_of_a_process_that_joins_are_given_theirs(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(2, &a, &b, &client);
  struct actor *c = add_server(&world, "c", 30, 0, 2);
  struct actor *d = add_server(&world, "d", 30, 1, 2);
  run_until(a, anybody_has_an_order);
  run_until(a, is_at_rest);
  assert_true(share_of(a->view, c) >= 10 && share_of(a->view, d) >= 10);
  assert_int_equal(c->orders + d->orders, 0);
  world_close(&world);
}

/* --- orders --------------------------------------------------------------------------------------------- */

static void test_an_operator_moves_the_positions_that_he_names(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(3, &a, &b, &client);
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, anybody_has_an_order);
  run_until(a, is_at_rest);
  assert_int_equal(share_of(a->view, b), 100);
  size_t arcs = a->view->arc_count;
  assert_true(arcs <= 2 * 2 * PWI_PLAN_POINTS); /* narrow neighbours are merged after the last move */
  assert_int_equal(ask_move(client, 1000, 2000, a->joined.id), PAWL_OK);
  run_until(b, has_order);
  run_until(b, is_at_rest);
  assert_int_equal(b->order.positions.begin, 1000);
  assert_int_equal(b->order.positions.end, 2000);
  assert_string_equal(b->order.address, "a:7001");
  assert_int_equal(b->view->arc_count, arcs + 2);
  assert_int_equal(pwi_view_head(b->view, 1)->node.id, a->joined.id);
  world_close(&world);
}

static void say_done(struct actor *actor, enum pwi_move_step step, uint64_t epoch) {
  struct pwi_move order = {
      .move = 1000, .epoch = epoch, .positions = {0, PWI_RING_END}, .target = 1, .step = (uint8_t)step};
  say_moved(actor, &order, PAWL_OK);
  run_for(&world, PWI_SIM_SECOND / 10);
}

/* The order came from an earlier manager that stopped before it wrote the view. */
static void test_a_head_that_handed_over_for_a_lost_manager_resumes(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(14, &a, &b, &client);
  say_done(a, PWI_MOVE_FILL, a->view->epoch);
  say_done(a, PWI_MOVE_HANDOVER, a->view->epoch - 1); /* there is a newer view */
  assert_int_equal(a->cancels, 0);
  say_done(a, PWI_MOVE_HANDOVER, a->view->epoch);
  assert_int_equal(a->cancels, 1);
  assert_int_equal(b->cancels, 0);
  world_close(&world);
}

static void test_orders_that_cannot_be_carried_out_are_refused(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(4, &a, &b, &client);
  assert_int_equal(ask_move(client, 0, 100, 77), PAWL_NOT_FOUND);
  assert_int_equal(ask_move(client, 100, 100, a->joined.id), PAWL_INVALID);
  world_close(&world);
  world_open(&world, 4, 1);
  a = add_server(&world, "a", 10, 0, 2);
  add_server(&world, "b", 10, 1, 2);
  run_until(a, has_arcs);
  client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_move(client, 0, PWI_RING_END, a->joined.id), PAWL_UNSUPPORTED); /* one process */
  world_close(&world);
}

static void test_source_and_target_hear_of_the_view_before_the_order(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(5, &a, &b, &client);
  b->is_deaf = true;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, someone_is_filling);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->orders, 0);
  b->is_deaf = false;
  say(b, PWI_SAY_HAVE, 0, 0, NULL);
  run_until(a, has_order);
  run_until(a, is_at_rest);
  assert_int_equal(share_of(a->view, b), 100);
  world_close(&world);
}

/* The reply to its first ask has arrived, and the ask itself comes once more. */
static void test_an_order_whose_reply_was_heard_is_not_carried_out_again(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(15, &a, &b, &client);
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(ask_move(client, 0, PWI_RING_END, a->joined.id), PAWL_OK);
  run_for(&world, 5 * PWI_SIM_SECOND);
  unsigned orders = all_orders();
  client->asked = client->replied = 0;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OUTCOME_UNKNOWN);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(all_orders(), orders);
  assert_int_equal(share_of(a->view, a), 100);
  world_close(&world);
}

/* Orders a move of the first arc of `a`, which does not report it by itself. Returns the order. */
static struct pwi_move begin_move(struct actor *a, struct actor *b, struct actor *client) {
  struct pawl_range arc = arc_of(a);
  a->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, arc.begin, arc.end, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  return a->order;
}

static void report(struct actor *actor, const struct pwi_move *order, pawl_status status) {
  say_moved(actor, order, status);
  run_for(&world, PWI_SIM_SECOND / 10);
}

static void test_only_the_source_of_a_step_reports_it(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(16, &a, &b, &client);
  struct pwi_move order = begin_move(a, b, client);
  report(b, &order, PAWL_OK);
  assert_true(someone_is_filling(a));
  assert_int_equal(figures_of(&world).moves_done, 0);
  report(b, &order, PAWL_NODE_FULL);
  assert_int_equal(a->cancels, 0);
  report(a, &order, PAWL_OK);
  assert_true(nobody_is_filling(a));
  assert_int_equal(figures_of(&world).moves_done, 1);
  world_close(&world);
}

/* The target has forgotten what it was sent in the first attempt. */
static void test_a_report_of_an_earlier_attempt_does_not_count(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(17, &a, &b, &client);
  struct pwi_move first = begin_move(a, b, client);
  report(a, &first, PAWL_NODE_FULL);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->orders, 2);
  report(a, &first, PAWL_OK);
  assert_true(someone_is_filling(a));
  assert_int_equal(figures_of(&world).moves_done, 0);
  report(a, &a->order, PAWL_OK);
  assert_true(nobody_is_filling(a));
  assert_int_equal(figures_of(&world).moves_done, 1);
  world_close(&world);
}

/* --- failures ------------------------------------------------------------------------------------------- */

static void test_a_move_that_is_refused_is_tried_again_and_then_given_up(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(6, &a, &b, &client);
  a->moving = MOVES_BADLY;
  struct pawl_range arc = arc_of(a);
  assert_int_equal(ask_move(client, arc.begin, arc.end, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  uint64_t first = a->order.move;
  run_until(a, is_at_rest);
  assert_int_equal(a->orders, 5);
  assert_true(a->order.move > first);
  assert_int_equal(share_of(a->view, a), 50);
  assert_true(nobody_is_filling(a));
  assert_int_equal(figures_of(&world).moves_done, 0);
  world_close(&world);
}

static void test_a_move_that_fails_once_succeeds_the_next_time(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(7, &a, &b, &client);
  a->moving = MOVES_BADLY;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  run_for(&world, PWI_SIM_SECOND / 10);
  a->moving = MOVES_WELL;
  run_until(a, is_at_rest);
  assert_int_equal(share_of(a->view, b), 100);
  world_close(&world);
}

static void test_a_target_that_dies_on_the_way_leaves_the_source_in_charge(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(8, &a, &b, &client);
  struct actor *c = add_server(&world, "c", 30, 0, 1);
  a->moving = b->moving = MOVES_NEVER;
  run_until(a, anybody_has_an_order);
  struct actor *source = find_source();
  c->keeps_away = true;
  pwi_sim_kill(world.sim, c->node);
  run_until(source, was_cancelled);
  run_until(source, nobody_is_filling);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(share_of(a->view, a) + share_of(a->view, b), 100);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).moves, 0);
  say_moved(source, &source->order, PAWL_OK); /* too late: the report is ignored */
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(share_of(a->view, a) + share_of(a->view, b), 100);
  world_close(&world);
}

static void test_a_source_that_loses_its_link_is_told_anew(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(9, &a, &b, &client);
  a->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  uint64_t first = a->order.move;
  a->moving = MOVES_WELL;
  pwi_sim_break(world.sim, a->node, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  run_until(a, is_in);
  run_until(a, is_at_rest);
  assert_true(a->order.move > first);
  assert_int_equal(share_of(a->view, b), 100);
  world_close(&world);
}

/* The order may have been lost with the old link, which the manager has not missed yet. */
static void test_a_source_with_a_new_link_is_told_anew(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(18, &a, &b, &client);
  begin_move(a, b, client);
  a->keeps_away = true;
  struct actor *again = add_actor(&world, "again", &a->join);
  run_until(again, is_in);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(again->orders, 1);
  assert_int_equal(figures_of(&world).moves_done, 1);
  assert_int_equal(figures_of(&world).moves, 0);
  world_close(&world);
}

static void test_a_manager_that_restarts_ends_the_moves_that_it_forgot(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(10, &a, &b, &client);
  a->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  assert_true(someone_is_filling(a));
  uint64_t first = a->order.move;
  pwi_sim_restart(world.sim, world.manager_node);
  run_for(&world, PWI_SIM_SECOND);
  run_until(a, is_in);
  run_until(a, is_at_rest);
  assert_true(nobody_is_filling(a));
  assert_int_equal(share_of(a->view, a), 50);
  a->moving = MOVES_WELL;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(a->order.move > first); /* numbers of moves are not used again */
  assert_int_equal(share_of(a->view, b), 100);
  world_close(&world);
}

/* --- leaving -------------------------------------------------------------------------------------------- */

static void test_a_server_that_leaves_hands_its_arcs_on_first(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(11, &a, &b, &client);
  say(b, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(b, has_order);
  assert_int_equal(b->lefts, 0);
  run_until(b, has_left);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->view->node_count, 1);
  assert_int_equal(share_of(a->view, a), 100);
  assert_true(figures_of(&world).ready);
  assert_int_equal(figures_of(&world).nodes_draining, 0);
  world_close(&world);
}

/* The old link is dead, and the manager has not missed it yet. */
static void test_a_server_with_a_new_link_is_told_over_it_that_it_has_left(void **state) {
  (void)state;
  world_init(&world, 19, 2);
  world.config.points = 1;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(add_server(&world, "b", 20, 0, 1), has_arcs);
  a->moving = MOVES_NEVER;
  say(a, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(a, has_order);
  a->keeps_away = true;
  pwi_sim_mute(world.sim, a->node, world.manager_node);
  struct actor *again = add_actor(&world, "again", &a->join);
  run_until(again, is_in);
  run_until(again, has_left);
  assert_int_equal(figures_of(&world).nodes_up, 1);
  world_close(&world);
}

static void test_the_last_server_is_not_let_go(void **state) {
  (void)state;
  world_open(&world, 12, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  say(a, PWI_SAY_LEAVE, 0, 0, NULL);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(a->lefts, 0);
  assert_int_equal(figures_of(&world).nodes_draining, 1);
  struct actor *b = add_server(&world, "b", 20, 0, 1); /* now it can */
  run_until(a, has_left);
  run_until(b, is_at_rest);
  assert_int_equal(share_of(b->view, b), 100);
  world_close(&world);
}

static void test_a_target_that_leaves_is_given_nothing_more(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(13, &a, &b, &client);
  a->moving = MOVES_NEVER;
  assert_int_equal(ask_move(client, 0, PWI_RING_END, b->joined.id), PAWL_OK);
  run_until(a, has_order);
  say(b, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(a, was_cancelled);
  run_until(b, has_left);
  assert_int_equal(share_of(a->view, a), 100);
  world_close(&world);
}

/* --- balance -------------------------------------------------------------------------------------------- */

static void say_loads(struct actor *server, uint64_t bytes) {
  struct pwi_report report = {.bytes = bytes};
  struct pwi_load loads[64];
  struct pwi_writer payload = {0};
  size_t count = 0;
  for (size_t i = 0; i < server->view->arc_count && count < 64; i++) {
    if (pwi_view_head(server->view, i)->node.id != server->joined.id) continue;
    struct pawl_range arc = pwi_view_arc_range(server->view, i);
    uint64_t weight = arc.begin < UINT64_MAX / 4 ? 100 : 1; /* the first quarter of the ring is heavy */
    loads[count++] = (struct pwi_load){.positions = arc, .bytes = weight * (pawl_range_size(arc) >> 40)};
  }
  pwi_report_encode(&report, loads, count, &payload);
  say(server, PWI_SAY_REPORT, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

static void test_balance_follows_the_measured_load(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(14, &a, &b, &client);
  assert_int_equal(ask_move(client, 0, UINT64_MAX / 4, a->joined.id), PAWL_OK);
  run_for(&world, PWI_SIM_SECOND);
  assert_true(share_of(a->view, a) >= 50);
  struct pawl_range heavy = pawl_range_of(0, UINT64_MAX / 4); /* by itself about 40 times what all the rest
                                                                 weighs */
  say_loads(a, 0);
  say_loads(b, 0);
  run_for(&world, PWI_SIM_SECOND / 10);
  unsigned before = all_orders();
  assert_int_equal(ask(client, PWI_ASK_BALANCE, NULL), PAWL_OK);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(all_orders() > before);
  uint64_t given = 0; /* of it, to b */
  for (size_t i = 0; i < a->view->arc_count; i++) {
    struct pawl_range part = pawl_range_common(pwi_view_arc_range(a->view, i), heavy);
    if (pwi_view_head(a->view, i)->node.id == b->joined.id) given += pawl_range_size(part);
  }
  assert_true(given > pawl_range_size(heavy) / 5 * 2 && given < pawl_range_size(heavy) / 5 * 3);
  world_close(&world);
}

static void report_for_a_while(struct actor *a, struct actor *b, uint64_t bytes_a, uint64_t bytes_b) {
  for (int second = 0; second < 30; second++) {
    say_loads(a, bytes_a);
    say_loads(b, bytes_b);
    run_for(&world, PWI_SIM_SECOND);
  }
}

static void test_a_lasting_imbalance_is_rebalanced_unasked(void **state) {
  struct actor *a, *b, *client;
  (void)state;
  open_pair(14, &a, &b, &client);
  assert_int_equal(ask_move(client, 0, UINT64_MAX / 4, a->joined.id), PAWL_OK);
  run_for(&world, PWI_SIM_SECOND);
  unsigned before = all_orders();
  report_for_a_while(a, b, UINT64_C(110) << 20, UINT64_C(100) << 20); /* near enough */
  assert_int_equal(all_orders(), before);
  report_for_a_while(a, b, 3000, 1000); /* not worth it */
  assert_int_equal(all_orders(), before);
  report_for_a_while(a, b, UINT64_C(300) << 20, UINT64_C(100) << 20);
  assert_true(all_orders() > before);
  world_close(&world);
}

/* --- storms --------------------------------------------------------------------------------------------- */

/* A server that is in no chain, and so may be killed without loss of data. */
static bool holds_nothing(const struct actor *actor) { return actor->view && pawl_range_is_empty(arc_of(actor)); }

static void strike(struct actor *victim, uint64_t fate) {
  if (fate == 0) pwi_sim_break(world.sim, victim->node, world.manager_node);
  if (fate == 1) pwi_sim_pause(world.sim, victim->node, 2 * PWI_SIM_SECOND);
  if (fate == 2) (void)pwi_sim_restart(world.sim, world.manager_node);
  if (!is_server(victim) || !victim->joined_now) return;
  if (fate == 3) say(victim, PWI_SAY_LEAVE, 0, 0, NULL);
  if (fate == 4 && holds_nothing(victim)) {
    victim->join.process += 1000;
    (void)pwi_sim_restart(world.sim, victim->node);
  }
}

/* Servers join, leave, lose links and die while arcs move. Every view is a legal successor of the one before
 * (each server checks this). After the storm every arc has a single member, and no move is under way. */
static void weather(uint64_t seed) {
  struct pwi_random random;
  struct actor *a, *b, *client;
  pwi_random_init(&random, seed, 99);
  open_pair(seed, &a, &b, &client);
  world.someone_returned = world.all_renew = true;
  for (uint64_t i = 0; i < 8; i++) {
    char name[8];
    snprintf(name, sizeof name, "n%d", (int)i);
    struct actor *server = add_server(&world, name, 100 + i / 2, i % 2, 2);
    server->moving = (enum how_to_move)(pwi_random_below(&random, 8) == 0);
    run_for(&world, (int64_t)pwi_random_below(&random, 300) * PWI_SIM_MILLISECOND);
    strike(&world.actors[pwi_random_below(&random, world.count)], pwi_random_below(&random, 5));
  }
  for (size_t i = 0; i < world.count; i++) world.actors[i].moving = MOVES_WELL;
  run_for(&world, 60 * PWI_SIM_SECOND);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.ready);
  assert_int_equal(figures.moves, 0);
  assert_true(nobody_is_filling(client));
  assert_true(client->joined_now && client->numbers[0] == (uint32_t)figures.epoch);
  world_close(&world);
}

static void test_storms_pass(void **state) {
  (void)state;
  for (uint64_t seed = 100; seed < 150; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    weather(seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_only_the_newcomer_receives_arcs),
      cmocka_unit_test(test_all_shards_of_a_process_that_joins_are_given_theirs),
      cmocka_unit_test(test_an_operator_moves_the_positions_that_he_names),
      cmocka_unit_test(test_a_head_that_handed_over_for_a_lost_manager_resumes),
      cmocka_unit_test(test_orders_that_cannot_be_carried_out_are_refused),
      cmocka_unit_test(test_source_and_target_hear_of_the_view_before_the_order),
      cmocka_unit_test(test_an_order_whose_reply_was_heard_is_not_carried_out_again),
      cmocka_unit_test(test_only_the_source_of_a_step_reports_it),
      cmocka_unit_test(test_a_report_of_an_earlier_attempt_does_not_count),
      cmocka_unit_test(test_a_move_that_is_refused_is_tried_again_and_then_given_up),
      cmocka_unit_test(test_a_move_that_fails_once_succeeds_the_next_time),
      cmocka_unit_test(test_a_target_that_dies_on_the_way_leaves_the_source_in_charge),
      cmocka_unit_test(test_a_source_that_loses_its_link_is_told_anew),
      cmocka_unit_test(test_a_source_with_a_new_link_is_told_anew),
      cmocka_unit_test(test_a_manager_that_restarts_ends_the_moves_that_it_forgot),
      cmocka_unit_test(test_a_server_that_leaves_hands_its_arcs_on_first),
      cmocka_unit_test(test_a_server_with_a_new_link_is_told_over_it_that_it_has_left),
      cmocka_unit_test(test_the_last_server_is_not_let_go),
      cmocka_unit_test(test_a_target_that_leaves_is_given_nothing_more),
      cmocka_unit_test(test_balance_follows_the_measured_load),
      cmocka_unit_test(test_a_lasting_imbalance_is_rebalanced_unasked),
      cmocka_unit_test(test_storms_pass),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
