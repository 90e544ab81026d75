/* A manager that restarts: what it waits for, when it must stop, and how its journal is replaced. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

/* --- journals ------------------------------------------------------------------------------------------- */

struct prefix {
  struct pwi_journal *journal;
  size_t left;
};

static void nobody_cares(void *context, pawl_status status) { (void)context, (void)status; }

static pawl_status copy_one(void *context, const void *record, size_t size) {
  struct prefix *prefix = context;
  if (prefix->left == 0) return PAWL_OK;
  prefix->left--;
  prefix->journal->ops->append(prefix->journal, record, size);
  return PAWL_OK;
}

static pawl_status count_one(void *context, const void *record, size_t size) {
  (void)record, (void)size;
  ++*(size_t *)context;
  return PAWL_OK;
}

static size_t count_records(struct pwi_journal *journal) {
  size_t count = 0;
  OK(journal->ops->replay(journal, count_one, &count));
  return count;
}

/* The journal has lost all but its first records. */
static void forget_all_but(size_t count) {
  struct prefix prefix = {.left = count};
  OK(pwi_journal_memory_create(&prefix.journal));
  prefix.journal->safe = nobody_cares;
  OK(world.journal->ops->replay(world.journal, copy_one, &prefix));
  world.journal->ops->destroy(world.journal);
  world.journal = prefix.journal;
}

/* A journal that fails after a number of records. */
struct failing {
  struct pwi_journal journal;
  struct pwi_journal *inside;
  size_t left;
};

static struct failing failing;

static void failing_append(struct pwi_journal *journal, const void *record, size_t size) {
  if (failing.left > 0) {
    failing.left--;
    failing.inside->safe = journal->safe;
    failing.inside->context = journal->context;
    failing.inside->ops->append(failing.inside, record, size);
  } else {
    journal->safe(journal->context, PAWL_NO_SPACE);
  }
}

static pawl_status failing_replay(struct pwi_journal *journal,
                                  pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  (void)journal;
  return failing.inside->ops->replay(failing.inside, visit, context);
}

static void failing_destroy(struct pwi_journal *journal) {
  (void)journal;
  failing.inside->ops->destroy(failing.inside);
}

static const struct pwi_journal_ops failing_ops = {
    .append = failing_append, .replay = failing_replay, .destroy = failing_destroy};

/* --- hearing -------------------------------------------------------------------------------------------- */

static void kill_manager(void) {
  pwi_sim_kill(world.sim, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
}

static void start_manager(void) { OK(pwi_sim_start(world.sim, world.manager_node)); }

static bool has_joined_or_not(struct actor *actor) { return actor->joins > 0; }

static void test_nothing_is_decided_before_every_server_had_time_to_return(void **state) {
  (void)state;
  world_open(&world, 31, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  b->keeps_away = true;
  kill_manager();
  uint64_t epoch = a->numbers[0];
  start_manager();
  struct actor *client = add_client(&world, "client", false);
  run_for(&world, PWI_SIM_SECOND);
  assert_false(client->joined_now);
  assert_false(a->joined_now);
  assert_int_equal(figures_of(&world).clients, 0);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, PWI_SIM_SECOND / 2); /* b has had its time to come; now a is asked about it, and finds it
                                          silent */
  assert_true(a->joined_now);
  assert_true(figures_of(&world).epoch >= epoch);
  run_until(client, is_in);
  run_for(&world, 3 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

static void test_when_all_servers_are_back_it_goes_on_at_once(void **state) {
  (void)state;
  world_open(&world, 32, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  kill_manager();
  start_manager();
  struct actor *client = add_client(&world, "client", false);
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_true(client->joined_now);
  assert_int_equal(figures_of(&world).nodes_up, 2);
  world_close(&world);
}

static bool is_down(struct actor *actor) {
  return pwi_view_find(actor->view, actor->view->nodes[1].node)->state == PWI_NODE_DOWN;
}

/* The manager does not wait for nodes that were down before. */
static void test_servers_that_were_down_are_not_waited_for(void **state) {
  (void)state;
  world_open(&world, 33, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  pwi_sim_kill(world.sim, b->node);
  run_until(a, is_down);
  kill_manager();
  start_manager();
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_true(a->joined_now);
  world_close(&world);
}

/* The manager finds at once that nobody listens at the address of its only server. */
static void test_a_server_that_is_not_found_has_time_to_return(void **state) {
  (void)state;
  world_open(&world, 34, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  kill_manager();
  pwi_sim_kill(world.sim, a->node);
  start_manager();
  run_for(&world, 1600 * PWI_SIM_MILLISECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

/* Its grace alone would be over before it has found the manager. */
static void test_a_client_has_time_to_return_too(void **state) {
  (void)state;
  world_init(&world, 35, 1);
  world.config.client_grace_ns = 10 * PWI_SIM_MILLISECOND;
  start_manager();
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  uint64_t id = client->joined.id;
  client->keeps_away = true;
  kill_manager();
  start_manager();
  run_for(&world, PWI_SIM_SECOND / 2);
  assert_true(a->joined_now);
  assert_int_equal(figures_of(&world).retired, 0);
  OK(pwi_net_connect(client->net, MANAGER, &client->link));
  run_until(client, is_in);
  assert_int_equal(client->joined.id, id);
  assert_int_equal(figures_of(&world).clients, 1);
  world_close(&world);
}

/* --- a journal that is not the newest ------------------------------------------------------------------- */

static void test_a_server_that_knows_of_more_stops_the_manager(void **state) {
  (void)state;
  for (size_t lost = 1; lost <= 4; lost++) {
    world_open(&world, 40 + lost, 2);
    struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
    run_until(a, has_arcs);
    struct actor *client = add_client(&world, "client", false);
    run_until(client, is_in);
    assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
    run_for(&world, PWI_SIM_SECOND);
    a->remembers = b->remembers = true;
    kill_manager();
    forget_all_but(count_records(world.journal) - lost);
    size_t records = count_records(world.journal);
    unsigned news = a->news + b->news + client->news;
    a->joined.status = b->joined.status = client->joined.status = PAWL_OK;
    start_manager();
    uint64_t epoch = figures_of(&world).epoch;
    run_for(&world, 10 * PWI_SIM_SECOND);
    assert_int_equal(a->joined.status, PAWL_CLUSTER_HISTORY);
    assert_int_equal(b->joined.status, PAWL_CLUSTER_HISTORY);
    assert_int_equal(client->joined.status, PAWL_CLUSTER_HISTORY);
    struct pwi_manager_figures figures = figures_of(&world);
    assert_int_equal(figures.stopped, PAWL_CLUSTER_HISTORY);
    assert_false(figures.ready);
    assert_int_equal(figures.epoch, epoch);
    assert_int_equal(count_records(world.journal), records);
    assert_int_equal(a->news + b->news + client->news, news);
    world_close(&world);
  }
}

/* The same for a server that joins late, after others. */
static void test_a_late_server_that_knows_of_more_stops_it_too(void **state) {
  (void)state;
  world_open(&world, 51, 2);
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  run_until(a, has_arcs);
  run_for(&world, PWI_SIM_SECOND);
  b->remembers = true;
  b->keeps_away = true;
  kill_manager();
  forget_all_but(count_records(world.journal) - 1);
  start_manager();
  run_for(&world, 10 * PWI_SIM_SECOND); /* a has forgotten all but its id and secret */
  assert_int_equal(figures_of(&world).stopped, PAWL_OK);
  assert_true(a->joined_now);
  b->numbers[0] = 1000; /* the manager has made views since */
  OK(pwi_net_connect(b->net, MANAGER, &b->link));
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(b->joined.status, PAWL_CLUSTER_HISTORY);
  assert_int_equal(figures_of(&world).stopped, PAWL_CLUSTER_HISTORY);
  size_t records = count_records(world.journal);
  pwi_sim_kill(world.sim, a->node);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(count_records(world.journal), records);
  world_close(&world);
}

static void test_a_client_that_knows_later_news_does_not_stop_the_manager(void **state) {
  (void)state;
  world_open(&world, 52, 1);
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  client->keeps_away = true;
  pwi_sim_break(world.sim, client->node, world.manager_node);
  run_for(&world, PWI_SIM_SECOND / 10);
  client->numbers[2] = 1000;
  OK(pwi_net_connect(client->net, MANAGER, &client->link));
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(client->joined.status, PAWL_CLUSTER_HISTORY);
  assert_int_equal(figures_of(&world).stopped, PAWL_OK);
  assert_true(figures_of(&world).ready);
  world_close(&world);
}

/* --- a journal that fails ------------------------------------------------------------------------------- */

static void test_a_failing_journal_stops_the_manager_and_its_peers_are_told(void **state) {
  (void)state;
  world_init(&world, 61, 1);
  failing = (struct failing){.journal = {.ops = &failing_ops}, .inside = world.journal, .left = SIZE_MAX};
  world.journal = &failing.journal;
  start_manager();
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct actor *one = add_client(&world, "one", false), *two = add_client(&world, "two", false);
  run_until(one, is_in);
  run_until(two, is_in);
  failing.left = 0;
  one->keeps_away = true;
  unsigned downs = one->downs;
  struct pwi_writer payload = {0};
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 2, .size = 1000};
  pwi_write_text(&payload, "a/b");
  pwi_options_write(&payload, &options);
  say(one, PWI_SAY_ASK, ++one->asked, PWI_ASK_CREATE,
      &payload); /* its outcome is not known: no reply but a link less */
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(one->downs, downs + 1);
  assert_int_equal(one->why_down, PAWL_NO_SPACE);
  assert_int_equal(figures_of(&world).stopped, PAWL_NO_SPACE);
  assert_false(figures_of(&world).ready);
  assert_int_equal(ask_create(two, "a/c"), PAWL_NO_SPACE);
  struct actor *three = add_client(&world, "three", false);
  run_until(three, has_joined_or_not);
  assert_int_equal(three->joined.status, PAWL_NO_SPACE);
  pwi_sim_kill(world.sim, a->node);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).nodes_down, 0);
  /* With a working journal the cluster continues. */
  kill_manager();
  failing.left = SIZE_MAX;
  start_manager();
  run_until(two, is_in);
  assert_int_equal(ask_create(two, "a/c"), PAWL_OK);
  world_close(&world);
}

/* --- a journal that has become long --------------------------------------------------------------------- */

static pawl_status ask_delete(struct actor *actor, const char *name) {
  struct pwi_writer payload = {0};
  pwi_write_text(&payload, name);
  return ask(actor, PWI_ASK_DELETE, &payload);
}

static void test_a_journal_does_not_grow_for_ever(void **state) {
  (void)state;
  world_init(&world, 71, 1);
  world.config.journal_bytes = 2000;
  start_manager();
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  size_t most = 0, before = 0, shrunk = 0;
  for (int i = 0; i < 300; i++) {
    char name[32];
    snprintf(name, sizeof name, "space/vector-%d", i);
    assert_int_equal(ask_create(client, name), PAWL_OK);
    if (i >= 3) {
      snprintf(name, sizeof name, "space/vector-%d", i - 3);
      assert_int_equal(ask_delete(client, name), PAWL_OK);
    }
    size_t size = (size_t)world.journal->ops->size(world.journal);
    if (size > most) most = size;
    shrunk += size < before;
    before = size;
  }
  assert_true(shrunk >= 3);
  assert_true(most < 8000);
  struct pwi_manager_figures was = figures_of(&world);
  kill_manager();
  start_manager();
  run_until(client, is_in);
  run_for(&world, 3 * PWI_SIM_SECOND);
  struct pwi_manager_figures is = figures_of(&world);
  assert_memory_equal(&was, &is, sizeof was);
  assert_int_equal(is.vectors, 3);
  assert_int_equal(ask_create(client, "space/one-more"), PAWL_OK);
  assert_int_equal(client->reply_id, 301); /* ids are not used again, although nothing tells of them any
                                              more */
  world_close(&world);
}

/* A large ledger is not written again and again. */
static void test_a_journal_is_replaced_only_where_that_makes_it_shorter(void **state) {
  (void)state;
  world_init(&world, 72, 1);
  world.config.journal_bytes = 1;
  start_manager();
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  run_until(a, has_arcs);
  struct actor *client = add_client(&world, "client", false);
  run_until(client, is_in);
  size_t replacements = 0, before = 0;
  for (int i = 0; i < 200; i++) {
    char name[32];
    snprintf(name, sizeof name, "space/vector-%d", i);
    assert_int_equal(ask_create(client, name), PAWL_OK);
    size_t size = (size_t)world.journal->ops->size(world.journal);
    replacements += size < before;
    before = size;
  }
  assert_true(replacements <= 10);
  assert_int_equal(figures_of(&world).vectors, 200);
  world_close(&world);
}

/* A journal that is long as soon as a server has left, and that takes its time to be replaced. */
static struct {
  struct pwi_journal journal;
  struct pwi_journal *inside;
  bool is_watching, is_replacing;
} slow;

static void slow_append(struct pwi_journal *journal, const void *record, size_t size) {
  slow.inside->safe = journal->safe;
  slow.inside->context = journal->context;
  slow.inside->ops->append(slow.inside, record, size);
}

static void slow_replace(struct pwi_journal *journal, const void *record, size_t size) {
  (void)journal, (void)record, (void)size; /* as if it had failed without harm */
  slow.is_watching = false;
  slow.is_replacing = true;
}

static uint64_t slow_size(const struct pwi_journal *journal) {
  (void)journal;
  if (!slow.is_watching) return 0;
  struct pwi_manager_figures figures = figures_of(&world);
  return figures.nodes_up + figures.nodes_draining < 2 ? UINT64_MAX / 2 : 0;
}

static pawl_status slow_replay(struct pwi_journal *journal,
                               pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  (void)journal;
  return slow.inside->ops->replay(slow.inside, visit, context);
}

static void slow_destroy(struct pwi_journal *journal) {
  (void)journal;
  slow.inside->ops->destroy(slow.inside);
}

static const struct pwi_journal_ops slow_ops = {
    .append = slow_append, .replace = slow_replace, .size = slow_size, .replay = slow_replay, .destroy = slow_destroy};

static bool is_being_replaced(struct actor *actor) {
  (void)actor;
  return slow.is_replacing;
}

/* The view no longer has the server, and the server has not been told yet, because the journal is being
 * replaced. The client has the same number as the server. */
static void hear_from_one_that_has_left(uint64_t seed, enum pwi_say kind) {
  world_init(&world, seed, 2);
  world.someone_returned = true; /* a server that has left does not hear of what follows */
  memset(&slow, 0, sizeof slow);
  slow.journal.ops = &slow_ops;
  slow.inside = world.journal;
  world.journal = &slow.journal;
  start_manager();
  struct actor *leaver = add_server(&world, "a", 10, 0, 1);
  run_until(leaver, is_in);
  struct actor *client = add_client(&world, "client", false), *stays = add_server(&world, "b", 11, 0, 1);
  run_until(stays, has_arcs);
  run_until(client, is_in);
  assert_int_equal(leaver->joined.id, client->joined.id);
  slow.is_watching = true;
  say(leaver, PWI_SAY_LEAVE, 0, 0, NULL);
  run_until(leaver, is_being_replaced);
  struct pwi_report report = {0};
  struct pwi_writer payload = {0};
  pwi_report_encode(&report, NULL, 0, &payload);
  say(leaver, kind, 0, 0, kind == PWI_SAY_REPORT ? &payload : NULL);
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(leaver->lefts, 0);
  slow.journal.safe(slow.journal.context, PAWL_OK);
  run_until(leaver, has_left);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(figures_of(&world).clients, 1);
  assert_int_equal(ask_create(client, "a/b"), PAWL_OK);
  world_close(&world);
}

static void test_a_server_that_has_left_is_not_listened_to(void **state) {
  (void)state;
  hear_from_one_that_has_left(73, PWI_SAY_REPORT);
  hear_from_one_that_has_left(74, PWI_SAY_LEAVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_is_decided_before_every_server_had_time_to_return),
      cmocka_unit_test(test_when_all_servers_are_back_it_goes_on_at_once),
      cmocka_unit_test(test_servers_that_were_down_are_not_waited_for),
      cmocka_unit_test(test_a_server_that_is_not_found_has_time_to_return),
      cmocka_unit_test(test_a_client_has_time_to_return_too),
      cmocka_unit_test(test_a_server_that_knows_of_more_stops_the_manager),
      cmocka_unit_test(test_a_late_server_that_knows_of_more_stops_it_too),
      cmocka_unit_test(test_a_client_that_knows_later_news_does_not_stop_the_manager),
      cmocka_unit_test(test_a_failing_journal_stops_the_manager_and_its_peers_are_told),
      cmocka_unit_test(test_a_journal_does_not_grow_for_ever),
      cmocka_unit_test(test_a_journal_is_replaced_only_where_that_makes_it_shorter),
      cmocka_unit_test(test_a_server_that_has_left_is_not_listened_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
