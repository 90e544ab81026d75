/* A client under another id, without its manager, or without its right to write: what it says, asks and names as
 * predecessors then. client/part_test.c has the parts of a client that is renewed. */
#include "client/client_testing.h"

/* The head answers a COLLECT: the retired sender has reached `time` on [begin, end), and a push of it was refused there
 * (task 0: none). */
static void answer_collect(struct scene *scene, const struct client_part *part, struct pawl_range keys, uint64_t time,
                           uint64_t refused_task, pawl_status why) {
  struct pwi_writer writer = {0};
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, keys.begin);
  pwi_write_u64(&writer, keys.end);
  pwi_write_u64(&writer, time);
  pwi_write_u32(&writer, refused_task != 0);
  if (refused_task != 0) {
    pwi_write_u64(&writer, keys.begin);
    pwi_write_u64(&writer, keys.end);
    pwi_write_u64(&writer, refused_task);
    pwi_write_u32(&writer, (uint32_t)why);
  }
  assert_true(part->is_collecting);
  answer_number(scene, part->peer->node, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, writer.data,
                writer.size, NULL, 0);
  pwi_writer_fini(&writer);
}

static size_t said(const struct scene *scene, enum pwi_say kind) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++)
    count += scene->net.sent[i].link == MANAGER_LINK && pwi_message_peek_kind(scene->net.sent[i].head) == kind;
  return count;
}

static void ignore_reply(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)asking, (void)status, (void)payload, (void)size;
}

/* --- outcomes under a former id ------------------------------------------------------------------------- */

/* Of two pushes one was refused. The clock says only that both have used up their numbers. */
static void test_a_push_that_was_refused_under_a_former_id_has_failed(void **state) {
  START;
  struct call calls[2];
  bring_up(&scene, 1);
  push(&scene, &calls[0], 0, 10);
  push(&scene, &calls[1], 0, 10);
  struct client_part *first = scene.flow->first, *second = first->next;
  answer(&scene, first, PWI_CODE_RETIRED);
  renew(&scene, 8);
  uint64_t refused = first->number;
  answer_collect(&scene, first, first->claim, second->number, refused, PAWL_NODE_FULL);
  assert_over(&calls[0], PAWL_NODE_FULL);
  answer_collect(&scene, second, second->claim, second->number, refused, PAWL_NODE_FULL);
  assert_over(&calls[1], PAWL_OK);
  stop_scene(&scene);
}

static void test_rows_after_a_push_under_a_former_id_are_read_under_the_new_one(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  start_range(&scene, &call, scene.flow, PWI_REQUEST_PUSHPULL, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer_collect(&scene, part, part->claim, part->number, 0, PAWL_OK);
  assert_int_equal(call.finished, 0);
  struct request request = last_request(&scene);
  assert_int_equal(request.terms.kind, PWI_REQUEST_PULL);
  assert_int_equal(request.terms.prior, 0);
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* The change of `y` reads a push to `x` that goes again too. */
static void change_under_a_new_id(struct scene *scene, struct pwi_flow *x, struct pwi_flow *y) {
  static const uint8_t nothing[8];
  struct call read, change = {.task.finished = call_finished};
  bring_up(scene, 1);
  start_range(scene, &read, x, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(pwi_client_linear(scene->client, &change.task, y, x, PWI_LINEAR_AXPY, 2, pawl_range_of(0, 10)),
                   PAWL_OK);
  struct client_part *pushed = x->first, *changing = y->first;
  assert_int_equal(changing->state, PART_SENT);
  answer(scene, pushed, PWI_CODE_RETIRED);
  renew(scene, 8);
  for (size_t i = 0; i < 2; i++) {
    struct client_part *part = i == 0 ? pushed : changing;
    answer_number(scene, 1, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, nothing, sizeof nothing, NULL,
                  0);
  }
  assert_int_equal(pushed->state, PART_SENT);
  assert_int_equal(changing->state, PART_BLOCKED); /* it names no predecessor there that the server could check */
  answer(scene, pushed, PWI_CODE_OK);
  assert_int_equal(changing->state, PART_SENT);
  while (y->first) answer(scene, y->first, PWI_CODE_OK);
  assert_over(&change, PAWL_OK);
}

/* Whichever of the two goes first. */
static void test_a_change_under_a_new_id_waits_for_the_pushes_that_it_reads(void **state) {
  (void)state;
  for (int is_first = 0; is_first < 2; is_first++) {
    struct scene scene;
    start_scene(&scene);
    change_under_a_new_id(&scene, is_first ? scene.flow : scene.second, is_first ? scene.second : scene.flow);
    stop_scene(&scene);
  }
}

/* The manager knows of no push under the second id. The push was sent under the first one. */
static void test_a_part_is_collected_about_the_id_under_which_it_was_sent(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  pwi_client_retired(scene.client); /* before the COLLECT is answered */
  scene.client->sender = 9;
  pwi_client_renewed(scene.client, 8);
  pwi_client_send_due(scene.client);
  check_scene(&scene);
  struct request request = last_request(&scene);
  assert_int_equal(request.terms.kind, PWI_REQUEST_COLLECT);
  assert_int_equal(request.terms.other, SENDER);
  assert_int_equal(scene.client->collecting, 1);
  answer_collect(&scene, part, part->claim, part->number, 0, PAWL_OK);
  assert_over(&call, PAWL_OK);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  stop_scene(&scene);
}

/* The vector is loaded while the client has no link to the server that it asks about the push. */
static void test_a_part_that_is_collected_when_its_vector_is_loaded_ends_the_renewal(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  take_down(&scene, 1, PAWL_LINK_CLOSED);
  pwi_flow_restored(scene.client, scene.flow, 1);
  assert_int_equal(call.finished, 0);
  assert_int_equal(scene.client->renewal, RENEWAL_COLLECTING);
  bring_up(&scene, 1);
  answer_with(&scene, part, (struct pwi_outcome){.code = PWI_CODE_RESTORED, .found = 1});
  assert_over(&call, PAWL_RESTORED);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  stop_scene(&scene);
}

/* --- another id ----------------------------------------------------------------------------------------- */

static void test_a_new_id_is_proved_on_links_that_there_are(void **state) {
  START;
  static const uint8_t nothing[8];
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct request request = last_request(&scene);
  assert_int_equal(bytes_in(&request, PWI_SECTION_PROOF), PWI_SEAL_SIZE);
  answer(&scene, scene.flow->first, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer_number(&scene, 1, number_of(scene.flow->first), (struct pwi_outcome){.code = PWI_CODE_OK}, nothing,
                sizeof nothing, NULL, 0);
  size_t proofs = 0;
  for (size_t i = 1; i < scene.net.sent_count; i++) {
    if (scene.net.sent[i].link == MANAGER_LINK) continue;
    request = read_request(&scene.net.sent[i]);
    assert_int_equal(request.control.head.sender, 8);
    proofs += bytes_in(&request, PWI_SECTION_PROOF) > 0;
  }
  assert_int_equal(proofs, 1);
  stop_scene(&scene);
}

/* Later it may write again, as another sender. */
static void test_a_client_that_may_write_again_begins_a_new_clock(void **state) {
  START;
  struct call calls[2];
  bring_up(&scene, 1);
  push(&scene, &calls[0], 0, 10);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  scene.client->sender = 0;
  pwi_client_lost_writing(scene.client);
  scene.client->sender = 8;
  push(&scene, &calls[1], 0, 10);
  assert_int_equal(last_request(&scene).terms.prior, 0);
  stop_scene(&scene);
}

/* --- the manager ---------------------------------------------------------------------------------------- */

/* The manager does not know the client at that moment. */
static void test_a_client_that_joins_again_asks_nothing(void **state) {
  START;
  struct pwi_asking asking = {.replied = ignore_reply};
  scene.client->renewal = RENEWAL_JOINING;
  assert_int_equal(pwi_client_ask(scene.client, &asking, PWI_ASK_SYNC, NULL, 0), PAWL_OK);
  assert_int_equal(said(&scene, PWI_SAY_ASK), 0);
  scene.client->renewal = RENEWAL_NONE;
  pwi_client_unask(scene.client, &asking);
  assert_int_equal(pwi_client_ask(scene.client, &asking, PWI_ASK_SYNC, NULL, 0), PAWL_OK);
  assert_int_equal(said(&scene, PWI_SAY_ASK), 1);
  stop_scene(&scene);
}

/* A manager that has just started answers late, and closes the link on any other message before. */
static void test_a_client_says_nothing_before_its_join_is_answered(void **state) {
  START;
  struct pwi_asking asking = {.replied = ignore_reply};
  struct pwi_writer writer = {0};
  struct pwi_joined joined = {.id = SENDER, .secret = 1, .may_write = true};
  assert_int_equal(pwi_managers_init(&scene.client->managers, "manager:1", PWI_CLIENT_RETRY_MIN), PAWL_OK);
  scene.client->greeting.host = "";
  pwi_client_join(scene.client); /* over a new link */
  assert_int_equal(pwi_client_ask(scene.client, &asking, PWI_ASK_SYNC, NULL, 0), PAWL_OK);
  pwi_client_leave(scene.client);
  assert_int_equal(said(&scene, PWI_SAY_JOIN), 1);
  assert_int_equal(scene.net.sent_count, 1);
  pwi_joined_encode(&joined, &writer);
  hear_manager(&scene, PWI_SAY_JOINED, 0, 0, PWI_SECTION_PAYLOAD, writer.data, writer.size);
  assert_int_equal(said(&scene, PWI_SAY_ASK), 1);
  assert_int_equal(said(&scene, PWI_SAY_LEAVE), 1);
  pwi_writer_fini(&writer);
  stop_scene(&scene);
}

/* The client says so when it is back. */
static void test_a_client_may_leave_while_it_has_no_manager(void **state) {
  START;
  scene.client->manager->is_up = false;
  pwi_client_leave(scene.client);
  scene.client->manager->is_up = true; /* it has joined over the next link */
  pwi_client_say_leave(scene.client);
  assert_int_equal(said(&scene, PWI_SAY_LEAVE), 1);
  stop_scene(&scene);
}

static void test_a_client_whose_leave_was_lost_says_so_again(void **state) {
  START;
  struct client_link *link = scene.client->manager;
  assert_int_equal(pwi_managers_init(&scene.client->managers, "manager:1", PWI_CLIENT_RETRY_MIN), PAWL_OK);
  pwi_client_leave(scene.client);
  pwi_client_leave(scene.client);
  assert_int_equal(said(&scene, PWI_SAY_LEAVE), 1);
  pwi_client_manager_lost(scene.client, PAWL_LINK_CLOSED);
  scene.client->manager = link; /* it has joined over the next one */
  pwi_client_say_leave(scene.client);
  assert_int_equal(said(&scene, PWI_SAY_LEAVE), 2);
  stop_scene(&scene);
}

/* The journal of the manager has failed. Another manager will lead. */
static void test_a_client_asks_again_to_be_a_member_of_its_group(void **state) {
  START;
  struct pwi_flow *group = scene.group;
  group->has_entered = group->is_suspended = true;
  pwi_client_rejoin_groups(scene.client, scene.net.now);
  assert_true(group->is_rejoining);
  pwi_client_unask(scene.client, &group->rejoin);
  group->rejoin.replied(&group->rejoin, PAWL_IO, NULL, 0);
  assert_true(!group->dead && group->is_suspended && !group->is_rejoining);
  wait_for_timer(&scene);
  assert_true(group->is_rejoining);
  pwi_client_unask(scene.client, &group->rejoin);
  group->rejoin.replied(&group->rejoin, PAWL_MISMATCH, NULL, 0);
  assert_int_equal(group->dead, PAWL_MISMATCH);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_push_that_was_refused_under_a_former_id_has_failed),
      cmocka_unit_test(test_rows_after_a_push_under_a_former_id_are_read_under_the_new_one),
      cmocka_unit_test(test_a_change_under_a_new_id_waits_for_the_pushes_that_it_reads),
      cmocka_unit_test(test_a_part_is_collected_about_the_id_under_which_it_was_sent),
      cmocka_unit_test(test_a_part_that_is_collected_when_its_vector_is_loaded_ends_the_renewal),
      cmocka_unit_test(test_a_new_id_is_proved_on_links_that_there_are),
      cmocka_unit_test(test_a_client_that_may_write_again_begins_a_new_clock),
      cmocka_unit_test(test_a_client_that_joins_again_asks_nothing),
      cmocka_unit_test(test_a_client_says_nothing_before_its_join_is_answered),
      cmocka_unit_test(test_a_client_may_leave_while_it_has_no_manager),
      cmocka_unit_test(test_a_client_whose_leave_was_lost_says_so_again),
      cmocka_unit_test(test_a_client_asks_again_to_be_a_member_of_its_group),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
