/* Announcing the membership: when clients join and leave, only changes are sent. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/inside.h"
#include "manager/testing.h"

static struct world world;
static struct actor *server, *watcher, *guest;

static void open_world_with_grace(int64_t grace) {
  world_init(&world, 1, 1);
  world.config.client_grace_ns = grace;
  OK(pwi_sim_start(world.sim, world.manager_node));
  server = add_server(&world, "server", 10, 0, 1);
  add_server(&world, "other", 11, 0, 1);
  watcher = add_client(&world, "watcher", false);
  run_until(watcher, is_in);
  guest = add_client(&world, "guest", false);
  run_until(guest, is_in);
}

static void open_world(void) { open_world_with_grace(0); }

/* The guest crashes and joins as a new sender, many times. Returns the bytes that the manager has sent. */
static uint64_t come_and_go(unsigned times) {
  struct pwi_net_counts before, after;
  const struct pwi_net *net = pwi_sim_node_net(world.sim, world.manager_node);
  pwi_net_counts(net, &before);
  for (unsigned i = 0; i < times; i++) {
    OK(pwi_sim_restart(world.sim, guest->node));
    run_until(guest, is_in);
  }
  run_for(&world, 3 * PWI_SIM_SECOND); /* all but the last are retired */
  pwi_net_counts(net, &after);
  return after.bytes_sent - before.bytes_sent;
}

static void assert_same_membership(const struct pwi_membership *a, const struct pwi_membership *b) {
  struct pwi_writer first = {0}, second = {0};
  pwi_membership_encode_live(a, &first);
  pwi_membership_encode_live(b, &second);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
}

static void test_bytes_grow_with_joins_and_not_with_their_square(void **state) {
  (void)state;
  open_world();
  come_and_go(20);
  uint64_t first = come_and_go(100), second = come_and_go(100), third = come_and_go(100);
  print_message("bytes for 100 joins and crashes each: %llu, %llu, %llu\n", (unsigned long long)first,
                (unsigned long long)second, (unsigned long long)third);
  assert_true(second < first + first / 20);
  assert_true(third < first + first / 20);
  assert_int_equal(server->membership.sender_count, 2 + 320); /* whose clocks are kept for an hour */
  assert_int_equal(figures_of(&world).retired, 320);
  assert_same_membership(&server->membership, &watcher->membership);
  assert_same_membership(&server->membership, &guest->membership);
  assert_true(guest->membership.sender_count < 2 + 110); /* who went before it came is no business of a
                                                            newcomer */
  world_close(&world);
}

/* A server that comes back receives the changes it missed if it has kept its membership, otherwise all of
 * it. */
static void test_a_returning_client_is_sent_the_changes_that_it_missed(void **state) {
  (void)state;
  for (int remembers = 0; remembers < 2; remembers++) {
    open_world();
    come_and_go(100);
    server->remembers = remembers;
    world.may_miss_views = true;
    pwi_sim_cut(world.sim, server->node, world.manager_node);
    pwi_sim_cut(world.sim, world.manager_node, server->node);
    come_and_go(10);
    pwi_sim_mend(world.sim, server->node, world.manager_node);
    pwi_sim_mend(world.sim, world.manager_node, server->node);
    unsigned wholes = server->wholes;
    run_until(server, is_in);
    run_for(&world, PWI_SIM_SECOND);
    assert_int_equal(server->wholes - wholes, remembers ? 0 : 1);
    assert_same_membership(&server->membership, &watcher->membership);
    assert_int_equal(server->membership.sender_count, 2 + 110);
    world_close(&world);
  }
}

/* A restarted manager has no history of changes, but peers that are up to date need none. */
static void test_after_a_restart_of_the_manager_deltas_go_on(void **state) {
  (void)state;
  open_world();
  come_and_go(10);
  server->remembers = world.may_miss_views = true;
  pwi_sim_kill(world.sim, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  unsigned wholes = server->wholes;
  OK(pwi_sim_start(world.sim, world.manager_node));
  run_until(server, is_in);
  come_and_go(10);
  assert_int_equal(server->wholes, wholes);
  assert_same_membership(&server->membership, &watcher->membership);
  world_close(&world);
}

/* Thousands of clients that crash before they have pushed leave nothing behind, neither at the manager nor at
 * the servers, and cost no work that grows with their number. */
static void test_clients_that_leave_nothing_unsettled_are_not_kept(void **state) {
  (void)state;
  open_world_with_grace(50 * PWI_SIM_MILLISECOND);
  world.all_settle = true;
  uint64_t few = come_and_go(1000), more = come_and_go(3000);
  print_message("bytes for 1000 joins and crashes: %llu, for 3000 more: %llu\n", (unsigned long long)few,
                (unsigned long long)more);
  assert_true(more < 7 * few / 2); /* bytes grow linearly with the clients */
  assert_int_equal(figures_of(&world).retired, 0);
  assert_int_equal(world.manager->ledger.sender_count, 2);
  assert_int_equal(world.manager->sender_count, 2);
  assert_int_equal(server->membership.sender_count, 2);
  assert_int_equal(watcher->membership.sender_count, 2);
  assert_true(world.manager->ledger.settled.count <= 2);      /* ids in a row are one range */
  assert_true(world.manager->ledger.senders_gone < 4000 / 4); /* one pass for many */
  assert_true(server->settles < 4000 / 4);
  world_close(&world);
}

static bool has_forgotten(struct actor *actor) { return actor->membership.sender_count == 2; }

/* The server reports the third client as unsettled: it is kept, and the others are not. */
static void test_a_retired_sender_with_unsettled_tasks_is_kept_for_an_hour(void **state) {
  (void)state;
  open_world();
  world.all_settle = true;
  server->unsettled = guest->joined.id;
  come_and_go(50);
  assert_int_equal(figures_of(&world).retired, 1);
  assert_true(pwi_membership_is_retired(&server->membership, (struct pwi_sender){server->unsettled}));
  assert_false(pwi_ledger_is_settled(&world.manager->ledger, server->unsettled));
  assert_true(pwi_ledger_is_settled(&world.manager->ledger, server->unsettled + 1));
  run_for(&world, 3600 * PWI_SIM_SECOND);
  run_until(server, has_forgotten);
  assert_false(pwi_ledger_is_settled(&world.manager->ledger, server->unsettled));
  world_close(&world);
}

/* Tasks that the sender itself has reported as answered are not unsettled. */
static void test_a_client_that_was_idle_when_it_was_lost_is_not_kept(void **state) {
  (void)state;
  open_world();
  world.all_settle = true;
  server->unsettled = guest->joined.id;
  say(guest, PWI_SAY_IDLE, 7, 0, NULL);
  run_for(&world, PWI_SIM_SECOND);
  come_and_go(1);
  assert_int_equal(figures_of(&world).retired, 0);
  world_close(&world);
}

/* IDLE over an earlier link may come late. */
static void test_the_number_up_to_which_a_client_has_its_answers_does_not_fall(void **state) {
  (void)state;
  open_world();
  world.all_settle = true;
  server->unsettled = guest->joined.id;
  say(guest, PWI_SAY_IDLE, 7, 0, NULL);
  say(guest, PWI_SAY_IDLE, 0, 0, NULL);
  run_for(&world, PWI_SIM_SECOND);
  come_and_go(1);
  assert_int_equal(figures_of(&world).retired, 0);
  world_close(&world);
}

/* It may have local vectors, to which others push. */
static void test_a_client_that_listens_is_asked_too(void **state) {
  (void)state;
  open_world();
  world.all_settle = true;
  struct actor *listener = add_client(&world, "listener", false);
  snprintf(listener->join.address, sizeof listener->join.address, "listener:7001");
  run_until(listener, is_in);
  listener->unsettled = guest->joined.id;
  come_and_go(1);
  assert_true(listener->settles > 0);
  assert_int_equal(figures_of(&world).retired, 1);
  world_close(&world);
}

/* Its answer is missing. The question is asked again when it is back. */
static void test_a_server_that_is_lost_while_it_is_asked_is_asked_again(void **state) {
  (void)state;
  open_world();
  come_and_go(1);
  assert_true(server->settles > 0);
  assert_int_equal(figures_of(&world).retired, 1);
  pwi_sim_break(world.sim, server->node, world.manager_node);
  world.all_settle = world.may_miss_views = true;
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).retired, 0);
  world_close(&world);
}

static void say_settled(struct actor *actor, uint64_t number) {
  struct pwi_writer payload = {0};
  pwi_settled_encode(number, NULL, 0, &payload);
  say(actor, PWI_SAY_SETTLED, 0, 0, &payload);
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND / 10);
}

/* A push may have been applied between the two questions. */
static void test_an_answer_to_an_earlier_question_settles_nothing(void **state) {
  (void)state;
  open_world();
  struct actor *other = &world.actors[1];
  come_and_go(1);
  uint64_t first = world.manager->settling.number;
  assert_true(first > 0);
  world.may_miss_views = true;
  pwi_sim_break(world.sim, server->node, world.manager_node);
  run_for(&world, 3 * PWI_SIM_SECOND);
  uint64_t second = world.manager->settling.number;
  assert_true(second > first);
  say_settled(server, first);
  say_settled(other, first);
  assert_int_equal(figures_of(&world).retired, 1);
  say_settled(server, second);
  say_settled(server, second);
  assert_int_equal(figures_of(&world).retired, 1);
  say_settled(other, second);
  assert_int_equal(figures_of(&world).retired, 0);
  world_close(&world);
}

static bool is_retired(uint64_t sender) {
  return pwi_membership_is_retired(&world.manager->ledger.membership, (struct pwi_sender){sender});
}

/* Nothing is forgotten while a member of a chain is not connected. A retired sender is not forgotten while
 * its client collects its clocks; the sender of a client that stays away is. */
static void test_no_sender_is_forgotten_while_a_handler_is_missing_or_its_client_is_back(void **state) {
  (void)state;
  open_world();
  struct actor *stranger = add_client(&world, "stranger", false);
  run_until(stranger, is_in);
  world.all_settle = true;
  world.all_renew = true;
  server->is_deaf = true; /* so that nothing is settled, and the connected server is behind */
  server->keeps_away = true;
  world.may_miss_views = true;
  pwi_sim_cut(world.sim, server->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, server->node);
  uint64_t was = guest->joined.id, other = stranger->joined.id;
  pwi_sim_cut(world.sim, guest->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, guest->node);
  pwi_sim_kill(world.sim, stranger->node);
  run_for(&world, 4 * PWI_SIM_SECOND);
  assert_true(is_retired(was) && is_retired(other));
  pwi_sim_mend(world.sim, guest->node, world.manager_node);
  pwi_sim_mend(world.sim, world.manager_node, guest->node);
  run_until(guest, is_in);
  assert_true(guest->joined.id != was && !guest->joined.settled);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(is_retired(was) && is_retired(other)); /* the server is missing */
  server->is_deaf = server->keeps_away = false;
  pwi_sim_mend(world.sim, server->node, world.manager_node);
  pwi_sim_mend(world.sim, world.manager_node, server->node);
  OK(pwi_net_connect(server->net, MANAGER, &server->link));
  run_until(server, is_in);
  run_for(&world, 10 * PWI_SIM_SECOND);
  assert_false(is_retired(other));
  assert_true(is_retired(was));
  world_close(&world);
}

/* A client that comes back later is told that its unanswered pushes took no effect, also by a restarted
 * manager. */
static void test_a_returning_client_learns_that_nothing_took_effect(void **state) {
  (void)state;
  for (int restarted = 0; restarted < 2; restarted++) {
    open_world();
    world.all_settle = world.all_renew = true;
    uint64_t was = guest->joined.id;
    pwi_sim_cut(world.sim, guest->node, world.manager_node);
    pwi_sim_cut(world.sim, world.manager_node, guest->node);
    run_for(&world, 4 * PWI_SIM_SECOND);
    assert_null(pwi_membership_find(&world.manager->ledger.membership, (struct pwi_sender){was}));
    if (restarted) OK(pwi_sim_restart(world.sim, world.manager_node));
    pwi_sim_mend(world.sim, guest->node, world.manager_node);
    pwi_sim_mend(world.sim, world.manager_node, guest->node);
    run_until(guest, is_in);
    assert_true(guest->joined.id != was && guest->joined.settled);
    world_close(&world);
  }
}

/* Senders that are kept are forgotten with one record when their time is over. */
static void test_senders_whose_time_is_over_are_forgotten_in_a_few_passes(void **state) {
  (void)state;
  open_world();
  come_and_go(500);
  assert_int_equal(figures_of(&world).retired, 500);
  uint64_t before = world.manager->ledger.senders_gone;
  run_for(&world, 3700 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).retired, 0);
  assert_true(world.manager->ledger.senders_gone - before < 5);
  world_close(&world);
}

/* The server confirms the first of two changes. Clients are told of that one, whatever is kept for others. */
static void test_changes_that_clients_have_not_been_told_are_kept(void **state) {
  (void)state;
  open_world();
  world.manager->membership_history_max = 0;
  server->is_deaf = true;
  struct actor *first = add_client(&world, "first", false);
  run_for(&world, PWI_SIM_SECOND / 10);
  uint32_t number = server->numbers[2];
  struct actor *second = add_client(&world, "second", false);
  run_for(&world, PWI_SIM_SECOND / 10);
  uint32_t newest = server->numbers[2];
  assert_true(newest > number);
  server->numbers[2] = number;
  say(server, PWI_SAY_HAVE, 0, 0, NULL);
  server->numbers[2] = newest;
  run_until(first, is_in);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_int_equal(first->membership.number, number);
  assert_false(is_in(second));
  server->is_deaf = false;
  say(server, PWI_SAY_HAVE, 0, 0, NULL);
  run_until(second, is_in);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_same_membership(&server->membership, &watcher->membership);
  world_close(&world);
}

/* More changes than are kept: the whole membership is sent again. */
static void test_a_client_that_missed_too_much_is_sent_the_whole_membership(void **state) {
  (void)state;
  open_world();
  world.manager->membership_history_max = 1000;
  server->remembers = true;
  world.may_miss_views = true;
  come_and_go(5);
  pwi_sim_cut(world.sim, server->node, world.manager_node);
  pwi_sim_cut(world.sim, world.manager_node, server->node);
  come_and_go(100);
  pwi_sim_mend(world.sim, server->node, world.manager_node);
  pwi_sim_mend(world.sim, world.manager_node, server->node);
  unsigned wholes = server->wholes;
  run_until(server, is_in);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(server->wholes, wholes + 1);
  assert_same_membership(&server->membership, &watcher->membership);
  assert_int_equal(server->membership.sender_count, 2 + 105);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_grow_with_joins_and_not_with_their_square),
      cmocka_unit_test(test_a_returning_client_is_sent_the_changes_that_it_missed),
      cmocka_unit_test(test_after_a_restart_of_the_manager_deltas_go_on),
      cmocka_unit_test(test_clients_that_leave_nothing_unsettled_are_not_kept),
      cmocka_unit_test(test_a_retired_sender_with_unsettled_tasks_is_kept_for_an_hour),
      cmocka_unit_test(test_a_client_that_was_idle_when_it_was_lost_is_not_kept),
      cmocka_unit_test(test_the_number_up_to_which_a_client_has_its_answers_does_not_fall),
      cmocka_unit_test(test_a_client_that_listens_is_asked_too),
      cmocka_unit_test(test_a_server_that_is_lost_while_it_is_asked_is_asked_again),
      cmocka_unit_test(test_an_answer_to_an_earlier_question_settles_nothing),
      cmocka_unit_test(test_no_sender_is_forgotten_while_a_handler_is_missing_or_its_client_is_back),
      cmocka_unit_test(test_a_returning_client_learns_that_nothing_took_effect),
      cmocka_unit_test(test_senders_whose_time_is_over_are_forgotten_in_a_few_passes),
      cmocka_unit_test(test_changes_that_clients_have_not_been_told_are_kept),
      cmocka_unit_test(test_a_client_that_missed_too_much_is_sent_the_whole_membership),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
