/* A manager that sometimes lacks memory, with a slow journal.
 *
 * The same scenario runs many times, and each time one allocation fails inside one of the manager's
 * callbacks. Links may be closed for it and work may be delayed. At the end all actors have joined, all
 * chains are whole, no move is under way, and the client's asks are carried out, after a repetition if
 * necessary. */
#include "base/testing.h"
#include "sim/sim.h"

#include "manager/testing.h"

static struct world world;

/* The `after`-th allocation in callback number `at` fails. */
static uint64_t callbacks, fail_at, fail_after;
static bool has_failed;
static unsigned replacements; /* of all records by one */

/* --- a journal that is never safe at once --------------------------------------------------------------- */

struct slow_journal {
  struct pwi_journal journal;
  struct pwi_journal *inside;
  bool pending;
};

static struct slow_journal slow;

static void nobody_cares(void *context, pawl_status status) { (void)context, (void)status; }

/* The journal itself always has memory, because a failed journal stops the manager. */
static void slow_append(struct pwi_journal *journal, const void *record, size_t size) {
  (void)journal;
  has_failed |= pwi_memory_fail_cancel() != 0;
  assert_false(slow.pending);
  slow.inside->safe = nobody_cares;
  slow.inside->ops->append(slow.inside, record, size);
  slow.pending = true;
}

static void slow_replace(struct pwi_journal *journal, const void *record, size_t size) {
  (void)journal;
  has_failed |= pwi_memory_fail_cancel() != 0;
  assert_false(slow.pending);
  slow.inside->safe = nobody_cares;
  slow.inside->ops->replace(slow.inside, record, size);
  slow.pending = true;
  replacements++;
}

static uint64_t slow_size(const struct pwi_journal *journal) {
  (void)journal;
  return slow.inside->ops->size(slow.inside);
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

/* --- callbacks without memory --------------------------------------------------------------------------- */

static void arm(void) {
  if (++callbacks == fail_at) pwi_memory_fail_after(fail_after);
}

static void disarm(void) { has_failed |= pwi_memory_fail_cancel() != 0; }

/* Records that were appended in a callback are safe after it. */
static void after(void) {
  disarm();
  while (slow.pending) {
    slow.pending = false;
    arm();
    slow.journal.safe(slow.journal.context, PAWL_OK);
    disarm();
  }
}

static pawl_status wrapped_greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  return pwi_manager_actor.greet(world.manager, link, info);
}

static void wrapped_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  arm();
  pwi_manager_actor.link_up(world.manager, link, info);
  after();
}

static void wrapped_down(void *self, struct pwi_link link, pawl_status why) {
  (void)self;
  arm();
  pwi_manager_actor.link_down(world.manager, link, why);
  after();
}

static struct pwi_receive wrapped_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  (void)self;
  return pwi_manager_actor.message(world.manager, link, message);
}

static void wrapped_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data,
                          size_t size) {
  (void)self;
  arm();
  pwi_manager_actor.piece(world.manager, link, context, offset, data, size);
  after();
}

static void wrapped_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)self;
  pwi_manager_actor.done(world.manager, link, cookie, status);
}

static void wrapped_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  (void)self;
  arm();
  pwi_manager_actor.timer(world.manager, timer, cookie);
  after();
}

static const struct pwi_actor wrapper = {
    .greet = wrapped_greet,
    .link_up = wrapped_up,
    .link_down = wrapped_down,
    .message = wrapped_message,
    .piece = wrapped_piece,
    .done = wrapped_done,
    .timer = wrapped_timer,
};

/* --- the story ------------------------------------------------------------------------------------------ */

static void open_story(void) {
  world_init(&world, 5, 2);
  slow = (struct slow_journal){.journal = {.ops = &slow_ops}, .inside = world.journal};
  world.journal = &slow.journal;
  world.config.journal_bytes = 300;
  world.wrapper = &wrapper;
  world.may_miss_views = true;
  callbacks = 0;
  replacements = 0;
  has_failed = false;
}

static bool is_told(struct actor *client) { return client->replied == client->asked || !client->joined_now; }

/* Asks until there is an answer, and until the answer is that the vector exists. */
static void insist(struct actor *client) {
  pawl_status status = PAWL_NO_MEMORY;
  for (int i = 0; i < 10 && status != PAWL_EXISTS; i++) {
    run_until(client, is_in);
    struct pwi_writer payload = {0};
    struct pawl_vector_options options = {.type = PAWL_F32, .width = 1, .size = 10};
    pwi_write_text(&payload, "a/b");
    pwi_options_write(&payload, &options);
    say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_CREATE, &payload);
    pwi_writer_fini(&payload);
    run_until(client, is_told);
    if (client->replied == client->asked) status = client->reply;
  }
  assert_int_equal(status, PAWL_EXISTS);
}

static void tell_story(void) {
  open_story();
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  add_server(&world, "b", 20, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  world.someone_returned = true; /* servers may be behind clients */
  insist(client);
  run_until(a, has_arcs);
  add_server(&world, "c", 30, 0, 1);
  run_for(&world, 20 * PWI_SIM_SECOND);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.ready);
  assert_int_equal(figures.nodes_up, 3);
  assert_int_equal(figures.moves, 0);
  assert_int_equal(figures.vectors, 1);
  assert_true(client->joined_now && client->numbers[0] == (uint32_t)figures.epoch);
  for (size_t i = 0; i < a->view->arc_count; i++) assert_int_equal(a->view->arcs[i].count, 1);
  world_close(&world);
}

/* Gives a dead server up until the answer is that there is none. */
static void forget(struct actor *client, uint64_t node) {
  pawl_status status = PAWL_NO_MEMORY;
  for (int i = 0; i < 10 && status != PAWL_NODE_GONE; i++) {
    run_until(client, is_in);
    struct pwi_writer payload = {0};
    pwi_write_u64(&payload, node);
    pwi_write_u8(&payload, 1);
    say(client, PWI_SAY_ASK, ++client->asked, PWI_ASK_GIVE_UP, &payload);
    pwi_writer_fini(&payload);
    run_until(client, is_told);
    if (client->replied == client->asked) status = client->reply;
  }
  assert_int_equal(status, PAWL_NODE_GONE);
}

static void conflict(struct actor *actor) {
  struct pwi_complaint complaint = {pawl_range_of(0, PWI_RING_END), actor->joined.id, PAWL_NODE_FULL};
  struct pwi_writer payload = {0};
  pwi_complaint_encode(&complaint, &payload);
  if (actor->joined_now) say(actor, PWI_SAY_COMPLAIN, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

static void lose(struct actor *actor) {
  actor->keeps_away = true;
  pwi_sim_kill(world.sim, actor->node);
  run_for(&world, 3 * PWI_SIM_SECOND);
}

/* Chains of two: a server is lost, another cannot follow, a new one joins, all others are lost and given
 * up. */
static void tell_of_chains(void) {
  open_story();
  world.config.replicas = world.config.points = 1;
  world.someone_returned = true;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1), *b = add_server(&world, "b", 20, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(a, has_arcs);
  run_for(&world, PWI_SIM_SECOND);
  conflict(b);
  run_for(&world, 3 * PWI_SIM_SECOND);
  struct actor *c = add_server(&world, "c", 30, 0, 1);
  run_for(&world, 5 * PWI_SIM_SECOND);
  assert_true(figures_of(&world).whole);
  assert_int_equal(figures_of(&world).under_replicated, 0);
  uint64_t dead[] = {a->joined.id, b->joined.id};
  lose(a);
  b->moving = c->moving = MOVES_NEVER;
  lose(b);
  for (size_t i = 0; i < 2; i++) forget(client, dead[i]);
  run_for(&world, 3 * PWI_SIM_SECOND);
  struct pwi_manager_figures figures = figures_of(&world);
  assert_true(figures.ready && figures.whole);
  assert_int_equal(figures.nodes_up, 1);
  assert_int_equal(figures.nodes_down, 0);
  world_close(&world);
}

/* Nothing happens besides one ask, and then the death of one server: what was not done for lack of memory is done later
 * without a cause from outside. No memory fails before. */
static void tell_of_silence(void) {
  open_story();
  callbacks = UINT64_MAX / 2;
  world.config.replicas = world.config.points = 1;
  world.someone_returned = true;
  OK(pwi_sim_start(world.sim, world.manager_node));
  struct actor *a = add_server(&world, "a", 10, 0, 1);
  add_server(&world, "b", 20, 0, 1);
  struct actor *client = add_client(&world, "client", false);
  run_until(a, has_arcs);
  run_for(&world, PWI_SIM_SECOND);
  callbacks = 0;
  insist(client);
  lose(a);
  assert_int_equal(figures_of(&world).nodes_down, 1);
  world_close(&world);
}

static void test_a_slow_journal_changes_nothing(void **state) {
  (void)state;
  fail_at = 0;
  tell_story();
  assert_true(callbacks > 50 && replacements > 0);
}

/* Runs the scenario many times; each time another allocation fails. There must be more than `least`. */
static void fail_everywhere(void (*tell)(void), unsigned least) {
  unsigned failures = 0;
  fail_at = 0;
  tell();
  uint64_t count = callbacks;
  for (fail_at = 1; fail_at <= count; fail_at++) {
    has_failed = true;
    for (fail_after = 0; has_failed; fail_after++) {
      tell();
      failures += has_failed;
    }
  }
  assert_in_range(failures, least, UINT32_MAX);
}

static void test_wherever_memory_fails_the_cluster_recovers(void **state) {
  (void)state;
  fail_everywhere(tell_story, 100);
}

static void test_wherever_memory_fails_chains_become_whole_again(void **state) {
  (void)state;
  fail_everywhere(tell_of_chains, 100);
}

static void test_wherever_memory_fails_nothing_is_left_undone(void **state) {
  (void)state;
  fail_everywhere(tell_of_silence, 20);
}

/* The last line of a failed test names the allocation that failed. */
static int tell_where(void **state) {
  (void)state;
  print_message("memory failed last in callback %llu after %llu allocations\n", (unsigned long long)fail_at,
                (unsigned long long)fail_after);
  return 0;
}

static uint64_t create_fails_after;

static pawl_status boot_without_memory(void *context, const struct pwi_sim_boot *boot,
                                       const struct pwi_actor **actor_out, void **self_out) {
  pwi_memory_fail_after(create_fails_after);
  pawl_status status = manager_boot(context, boot, actor_out, self_out);
  has_failed = pwi_memory_fail_cancel() != 0;
  if (status) world.manager = NULL;
  return status;
}

static void test_a_manager_is_created_whole_or_not_at_all(void **state) {
  (void)state;
  fail_at = 0;
  world_init(&world, 6, 1);
  struct pwi_sim_program program = {
      .name = "frugal", .boot = boot_without_memory, .halt = manager_halt, .context = &world};
  struct pwi_sim_node node;
  OK(pwi_sim_node_add(world.sim, &program, &node));
  has_failed = true;
  for (create_fails_after = 0; has_failed && create_fails_after < 100; create_fails_after++) {
    pawl_status status = pwi_sim_start(world.sim, node);
    assert_true(status == PAWL_OK || (has_failed && status == PAWL_NO_MEMORY));
    pwi_sim_kill(world.sim, node);
  }
  assert_false(has_failed);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_slow_journal_changes_nothing),
      cmocka_unit_test_teardown(test_wherever_memory_fails_the_cluster_recovers, tell_where),
      cmocka_unit_test_teardown(test_wherever_memory_fails_chains_become_whole_again, tell_where),
      cmocka_unit_test_teardown(test_wherever_memory_fails_nothing_is_left_undone, tell_where),
      cmocka_unit_test(test_a_manager_is_created_whole_or_not_at_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
