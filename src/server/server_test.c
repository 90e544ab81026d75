/* The link to the manager: attempts that take long, and answers to JOIN other than that the server has joined. */
#include "server/traffic_testing.h"

static void retry(struct scene *scene) { pwi_server_actor.timer(scene->server, (struct pwi_timer){1}, TIMER_RETRY); }

/* The link to the manager is lost, and the server has begun another one. */
static void lose_manager(struct scene *scene) {
  take_down(scene, scene->server->manager);
  assert_null(scene->server->manager);
  retry(scene);
  assert_non_null(scene->server->manager);
}

/* That link is up. Returns what the server said in its JOIN. */
static struct pwi_join reach_manager(struct scene *scene) {
  struct pwi_hello hello;
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size, count;
  struct pwi_join join;
  pwi_hello_init(&hello);
  hello.role = PWI_ROLE_MANAGER;
  assert_int_equal(pwi_hello_encode(&hello, bytes, sizeof bytes, &size), PAWL_OK);
  struct pwi_link_info info = {.peer = "manager:1", .hello = bytes, .hello_size = size, .identity = ""};
  struct server_peer *manager = scene->server->manager;
  pwi_server_actor.link_up(scene->server, manager->link, &info);
  const struct stub_sent *sent = last_sent(scene, manager->link.id, &count);
  assert_int_equal(count, 1);
  assert_int_equal(pwi_message_peek_kind(sent->head), PWI_SAY_JOIN);
  struct pwi_control control = {0};
  struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
  assert_int_equal(pwi_control_begin(&control, &message, &manager->peering.link).how, PWI_RECEIVE_WHOLE);
  assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, &manager->peering.link), PAWL_OK);
  const void *payload = pwi_control_find(&control, sent->body, PWI_SECTION_PAYLOAD, &size);
  assert_int_equal(pwi_join_decode(payload, size, &join), PAWL_OK);
  manager->peering.link = manager->peering.data = terms;
  return join;
}

/* The manager answers JOIN. */
static void say_joined(struct scene *scene, const struct pwi_joined *joined) {
  struct pwi_writer writer = {0};
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_JOINED};
  pwi_joined_encode(joined, &writer);
  struct pwi_section section = {.type = PWI_SECTION_PAYLOAD, .count = (uint32_t)writer.size, .length = writer.size};
  pwi_message_begin(&builder, &terms, &head);
  assert_int_equal(pwi_message_add(&builder, &section, writer.data), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, scene->server->manager, &builder);
  pwi_writer_fini(&writer);
}

/* The packets of the attempt may have been lost, and the net need not notice. */
static void test_an_attempt_to_reach_the_manager_has_an_end(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "1");
  lose_manager(&s);
  uint64_t link = s.server->manager->link.id;
  retry(&s); /* its time is over */
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, link);
  assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
  for (int i = 0; i < 2 && !s.server->manager; i++) retry(&s); /* after a pause */
  assert_non_null(s.server->manager);
  assert_int_not_equal(s.server->manager->link.id, link);
  stop_scene(&s);
}

/* Its copies were given to others meanwhile. With the old id it would be refused for ever. */
static void test_a_server_that_was_declared_dead_joins_as_a_new_one(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "1");
  s.server->secret = 99;
  lose_manager(&s);
  struct pwi_join join = reach_manager(&s);
  assert_int_equal(join.id, 1);
  assert_int_equal(join.secret, 99);
  say_joined(&s, &(struct pwi_joined){.status = PAWL_NODE_RETIRED});
  assert_int_equal(s.net.closed_count, 1);
  lose_manager(&s);
  join = reach_manager(&s);
  assert_int_equal(join.id, 0);
  assert_int_equal(join.secret, 0);
  stop_scene(&s);
}

/* The manager has moved its arcs, and its answer was lost with the link. */
static void test_a_server_that_wants_to_leave_has_left_once_it_is_no_member(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "1");
  pwi_server_leave(s.server);
  assert_false(s.server->has_left);
  lose_manager(&s);
  reach_manager(&s);
  say_joined(&s, &(struct pwi_joined){.status = PAWL_NODE_RETIRED});
  assert_true(s.server->has_left);
  stop_scene(&s);
}

/* A manager that has just started answers late, and closes the link on any other message before. */
static void test_a_server_says_nothing_before_its_join_is_answered(void **state) {
  (void)state;
  struct scene s;
  size_t count;
  start_scene(&s, 1, "1");
  lose_manager(&s);
  reach_manager(&s);
  uint64_t link = s.server->manager->link.id;
  pwi_server_actor.timer(s.server, (struct pwi_timer){2}, TIMER_REPORT);
  pwi_server_leave(s.server);
  last_sent(&s, link, &count);
  assert_int_equal(count, 1); /* the JOIN */
  say_joined(&s, &(struct pwi_joined){.id = 1, .secret = 99});
  const struct stub_sent *sent = last_sent(&s, link, &count);
  assert_int_equal(count, 2);
  assert_int_equal(pwi_message_peek_kind(sent->head), PWI_SAY_LEAVE);
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_attempt_to_reach_the_manager_has_an_end),
      cmocka_unit_test(test_a_server_that_was_declared_dead_joins_as_a_new_one),
      cmocka_unit_test(test_a_server_that_wants_to_leave_has_left_once_it_is_no_member),
      cmocka_unit_test(test_a_server_says_nothing_before_its_join_is_answered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
