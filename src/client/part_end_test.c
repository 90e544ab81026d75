/* How parts end and are cut: failures, the end of a flow, the memory of the caller, views that divide a
 * claim, narrowing. client/part_test.c has the states before. */
#include "base/bytes.h"
#include "client/client_testing.h"

/* --- failing -------------------------------------------------------------------------------------------- */

static void test_a_push_that_fails_goes_once_more_empty(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  answer_failed(&scene, part, PAWL_MISMATCH);
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(part->voided, PAWL_MISMATCH);
  struct request request = last_request(&scene);
  assert_int_equal(request.control.head.task, 1); /* it uses up its number */
  assert_int_equal(request.terms.rows, 0);
  assert_int_equal(bytes_in(&request, PWI_SECTION_VALUES), 0);
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&call, PAWL_MISMATCH);
  stop_scene(&scene);
}

static void test_a_trigger_whose_group_is_gone_does_not_push(void **state) {
  START;
  struct pwi_trigger trigger;
  struct call call = {.task.finished = call_finished};
  struct pwi_where where = {.range = {0, 10}};
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  assert_int_equal(pwi_client_trigger(scene.client, &trigger, &call.task, scene.group, 5, scene.flow, &where, scene.in),
                   PAWL_OK);
  assert_null(scene.flow->first);
  answer_failed(&scene, scene.group->first, PAWL_NOT_FOUND);
  assert_over(&call, PAWL_NOT_FOUND);
  assert_null(scene.flow->first);
  stop_scene(&scene);
}

static void test_an_empty_push_that_fails_ends(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  answer_failed(&scene, scene.flow->first, PAWL_MISMATCH);
  answer_failed(&scene, scene.flow->first, PAWL_INVALID);
  assert_over(&call, PAWL_MISMATCH); /* the first reason */
  stop_scene(&scene);
}

static void test_an_empty_push_of_a_group_is_tried_without_it(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_aggregate(&scene, &call, PWI_REQUEST_PUSH);
  struct client_part *part = scene.flow->first;
  answer_failed(&scene, part, PAWL_MISMATCH);
  assert_int_equal(part->aggregate, 3);
  answer_failed(&scene, part, PAWL_MISMATCH);
  assert_int_equal(part->aggregate, 0);
  assert_int_equal(part->state, PART_SENT);
  answer_failed(&scene, part, PAWL_MISMATCH);
  assert_over(&call, PAWL_MISMATCH);
  stop_scene(&scene);
}

static void test_a_pull_that_fails_ends_at_once(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  pull(&scene, &call, 0, 10);
  answer_failed(&scene, scene.flow->first, PAWL_NO_MEMORY);
  assert_over(&call, PAWL_NO_MEMORY);
  stop_scene(&scene);
}

static void test_a_push_waits_for_a_server_without_memory(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  answer_failed(&scene, scene.flow->first, PAWL_NO_MEMORY);
  assert_int_equal(scene.flow->first->state, PART_PARKED);
  wait_for_timer(&scene);
  answer_failed(&scene, scene.flow->first, PAWL_NODE_LIMIT);
  assert_int_equal(scene.flow->first->state, PART_PARKED);
  stop_scene(&scene);
}

static void test_a_request_that_the_server_cannot_read_fails_before_it_is_sent(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  peer_of(&scene, 1)->link->peering.features = 0;
  start_aggregate(&scene, &call, PWI_REQUEST_PUSHPULL);
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->voided, PAWL_UNSUPPORTED);
  assert_int_equal(part->state, PART_SENT);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_UNSUPPORTED);
  stop_scene(&scene);
}

/* An older server would take the values for rows. */
static void test_a_push_of_factors_fails_before_an_older_server_gets_it(void **state) {
  START;
  static const int64_t operand[] = {1, 2, 3};
  struct call call = {.task.finished = call_finished};
  bring_up(&scene, 1);
  peer_of(&scene, 1)->link->peering.features = ~PWI_FEATURE_OPERAND;
  struct pwi_where where = {.range = {0, 10}, .operand = operand, .operand_rows = 3};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->voided, PAWL_UNSUPPORTED);
  assert_true(part->rows == 0 && !part->operand);
  assert_int_equal(part->state, PART_SENT);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_UNSUPPORTED);
  stop_scene(&scene);
}

static void test_a_refusal_names_the_keys(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  answer_with(&scene, scene.flow->first,
              (struct pwi_outcome){.code = PWI_CODE_REFUSED, .status = PAWL_INVALID, .found = 4, .next = 6});
  assert_over(&call, PAWL_INVALID);
  assert_int_equal(call.task.failure_count, 1);
  assert_range(call.task.failures[0].range, 4, 6);
  stop_scene(&scene);
}

static void test_failures_of_neighbouring_parts_are_reported_as_one(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  pull(&scene, &call, 400, 600);
  answer_failed(&scene, scene.flow->last, PAWL_INVALID);
  assert_int_equal(call.finished, 0);
  answer_failed(&scene, scene.flow->first, PAWL_INVALID);
  assert_over(&call, PAWL_INVALID);
  assert_int_equal(call.task.failure_count, 1);
  assert_range(call.task.failures[0].range, 400, 600);
  stop_scene(&scene);
}

/* --- the end of a flow ---------------------------------------------------------------------------------- */

static void test_all_parts_of_a_deleted_vector_end(void **state) {
  START;
  struct call first, second, third;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 500, 510); /* queued: there is no link */
  push(&scene, &third, 0, 10);
  answer_failed(&scene, scene.flow->first, PAWL_NOT_FOUND);
  assert_over(&first, PAWL_NOT_FOUND);
  assert_over(&second, PAWL_NOT_FOUND);
  assert_over(&third, PAWL_NOT_FOUND);
  struct pwi_where where = {.range = {0, 10}};
  assert_int_equal(pwi_client_start(scene.client, &first.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_NOT_FOUND);
  stop_scene(&scene);
}

static void test_a_part_that_is_settled_on_a_dead_flow_ends(void **state) {
  START;
  struct call call;
  scene.client->is_joined = false;
  push(&scene, &call, 0, 10);
  scene.flow->dead = PAWL_NODE_GONE;
  pwi_parts_unpark(scene.client, true);
  assert_over(&call, PAWL_NODE_GONE);
  stop_scene(&scene);
}

static void test_parts_for_an_earlier_incarnation_end(void **state) {
  START;
  struct call first, second, third;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  push(&scene, &third, 500, 510);
  pwi_flow_restored(scene.client, scene.flow, 1);
  assert_over(&third, PAWL_RESTORED); /* was not sent */
  assert_int_equal(first.finished, 0);
  answer_with(&scene, scene.flow->first, (struct pwi_outcome){.code = PWI_CODE_RESTORED, .found = 1});
  assert_over(&first, PAWL_RESTORED);
  take_down(&scene, 1, PAWL_LINK_CLOSED); /* it is not sent again */
  assert_over(&second, PAWL_RESTORED);
  push(&scene, &first, 0, 10);
  assert_int_equal(scene.flow->first->prior, 0);
  assert_int_equal(scene.flow->first->incarnation, 1);
  stop_scene(&scene);
}

/* All are under way when the vector is restored, and none is answered before the link is lost. */
static void test_news_of_the_present_incarnation_change_nothing(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  pwi_flow_restored(scene.client, scene.flow, 2);
  push(&scene, &first, 0, 10);
  pwi_flow_restored(scene.client, scene.flow, 2);
  pwi_flow_restored(scene.client, scene.flow, 1);
  push(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->entry.incarnation, 2);
  assert_int_equal(scene.flow->last->prior, scene.flow->first->number);
  stop_scene(&scene);
}

static void test_many_parts_for_an_earlier_incarnation_end_with_their_link(void **state) {
  START;
  struct call calls[8];
  bring_up(&scene, 1);
  for (size_t i = 0; i < 8; i++) push(&scene, &calls[i], 0, 10);
  pwi_flow_restored(scene.client, scene.flow, 1);
  take_down(&scene, 1, PAWL_LINK_CLOSED);
  for (size_t i = 0; i < 8; i++) assert_over(&calls[i], PAWL_RESTORED);
  assert_null(scene.flow->first);
  stop_scene(&scene);
}

static void test_a_broken_history_ends_the_part(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  answer(&scene, scene.flow->first, PWI_CODE_BROKEN);
  assert_over(&call, PAWL_CLUSTER_HISTORY);
  stop_scene(&scene);
}

/* --- the caller's memory -------------------------------------------------------------------------------- */

static void test_a_task_is_over_only_when_the_net_has_let_go(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 500); /* too large to be copied */
  struct client_part *part = scene.flow->first;
  const struct stub_sent *sent = last_request(&scene).sent;
  assert_int_not_equal(sent->cookie, 0);
  answer(&scene, part, PWI_CODE_OK);
  assert_null(scene.flow->first);
  assert_true(part->is_over);
  assert_int_equal(call.finished, 0);
  net_done(&scene, sent);
  assert_over(&call, PAWL_OK);
  push(&scene, &call, 0, 500);
  net_done(&scene, last_request(&scene).sent);
  assert_int_equal(call.finished, 0);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

static void test_a_resent_part_waits_for_both_messages(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 500);
  size_t first = scene.net.sent_count - 1;
  take_down(&scene, 1, PAWL_LINK_CLOSED);
  bring_up(&scene, 1);
  size_t second = scene.net.sent_count - 1;
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->borrowed, 2);
  assert_int_not_equal(scene.net.sent[first].cookie, scene.net.sent[second].cookie);
  answer(&scene, part, PWI_CODE_OK);
  net_done(&scene, &scene.net.sent[first]);
  assert_int_equal(call.finished, 0);
  net_done(&scene, &scene.net.sent[second]);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* The vector is deleted, or the link is lost, while the rows of a pull are on their way. */
static void test_a_task_is_over_only_when_no_rows_are_on_their_way_to_it(void **state) {
  (void)state;
  for (int is_lost = 0; is_lost < 2; is_lost++) {
    struct scene scene;
    struct call call, other;
    start_scene(&scene);
    bring_up(&scene, 1);
    pull(&scene, &call, 0, 100);
    struct pwi_receive receive = begin_answer(&scene, scene.flow->first);
    pwi_flow_kill(scene.client, scene.flow, PAWL_NOT_FOUND);
    assert_null(scene.flow->first);
    assert_int_equal(call.finished, 0);
    start_range(&scene, &other, scene.second, PWI_REQUEST_PULL, 0, 100);
    end_answer(&scene, 1, receive, is_lost ? PAWL_LINK_RESET : PAWL_OK);
    assert_over(&call, PAWL_NOT_FOUND);
    assert_int_equal(other.finished, 0);
    assert_int_equal(scene.net.closed_count, 0);
    answer(&scene, scene.second->first, PWI_CODE_OK);
    assert_over(&other, PAWL_OK);
    stop_scene(&scene);
  }
}

/* The first one would be forgotten, and its task never be over. */
static void test_an_answer_within_another_one_is_refused(void **state) {
  START;
  struct call call, other;
  bring_up(&scene, 1);
  pull(&scene, &call, 0, 100);
  start_range(&scene, &other, scene.second, PWI_REQUEST_PULL, 0, 100);
  const struct client_part *second = scene.second->first;
  struct pwi_receive receive = begin_answer(&scene, scene.flow->first);
  struct pwi_message_builder builder;
  build_answer(&builder, 1, number_of(second), (struct pwi_outcome){.code = PWI_CODE_OK}, NULL, 0, NULL, 0);
  assert_int_equal(arrive(&scene, peer_of(&scene, 1)->link->link, &builder).how, PWI_RECEIVE_REFUSE);
  end_answer(&scene, 1, receive, PAWL_OK);
  assert_over(&call, PAWL_OK);
  assert_int_equal(other.finished, 0);
  stop_scene(&scene);
}

/* The client has another id when the rows are here, and asks whether the push took effect. */
static void test_rows_for_an_earlier_attempt_are_no_answer(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  start_range(&scene, &call, scene.flow, PWI_REQUEST_PUSHPULL, 0, 100);
  struct client_part *part = scene.flow->first;
  struct pwi_receive receive = begin_answer(&scene, part);
  pwi_client_retired(scene.client);
  renew(&scene, 8);
  assert_true(part->is_collecting);
  end_answer(&scene, 1, receive, PAWL_OK);
  assert_int_equal(call.finished, 0);
  assert_true(part->is_collecting);
  assert_int_equal(part->state, PART_SENT);
  stop_scene(&scene);
}

/* The next answer is written to the same memory, so the client asks nobody for it before the first has ended. */
static void test_a_part_is_not_sent_again_while_rows_arrive_for_it(void **state) {
  static const uint8_t nothing[8];
  (void)state;
  for (int is_lost = 0; is_lost < 2; is_lost++) {
    struct scene scene;
    struct call call;
    start_scene(&scene);
    bring_up(&scene, 1);
    bring_up(&scene, 3);
    start_range(&scene, &call, scene.flow, PWI_REQUEST_PUSHPULL, 0, 100);
    struct client_part *part = scene.flow->first;
    struct pwi_receive receive = begin_answer(&scene, part);
    SEE(&scene, 2, {0, 3});
    pwi_client_retired(scene.client);
    renew(&scene, 8);
    assert_int_equal(sent_to(&scene, 3), 0);
    end_answer(&scene, 1, receive, is_lost ? PAWL_LINK_RESET : PAWL_OK);
    if (is_lost) take_down(&scene, 1, PAWL_LINK_RESET);
    assert_int_equal(sent_to(&scene, 3), 1);
    answer_number(&scene, 3, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, nothing, sizeof nothing, NULL,
                  0);
    assert_int_equal(sent_to(&scene, 3), 2);
    answer(&scene, part, PWI_CODE_OK);
    assert_over(&call, PAWL_OK);
    stop_scene(&scene);
  }
}

/* --- cutting -------------------------------------------------------------------------------------------- */

static void test_a_view_cuts_a_part_between_two_heads(void **state) {
  START;
  struct call before, call;
  bring_up(&scene, 1);
  push(&scene, &before, 0, 10);
  push(&scene, &call, 0, 400);
  struct client_part *part = scene.flow->last;
  answer(&scene, part, PWI_CODE_NOT_HERE);
  SEE(&scene, 2, {0, 1}, {250, 3}, {500, 2});
  struct client_part *rest = part->next;
  assert_int_equal(part->state, PART_SENT);
  assert_range(part->claim, 0, 250);
  assert_range(part->range, 0, 250);
  assert_int_equal(part->rows, 250);
  assert_int_equal(rest->state, PART_QUEUED);
  assert_int_equal(rest->peer->node, 3);
  assert_range(rest->claim, 250, 500);
  assert_range(rest->range, 250, 400);
  assert_int_equal(rest->number, part->number);
  assert_int_equal(rest->prior, part->prior);
  assert_ptr_equal(rest->in, (const char *)(scene.in + 250));
  assert_int_equal(call.task.parts, 2);
  stop_scene(&scene);
}

static void test_a_view_shortens_a_scan(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  uint64_t keys[10];
  bring_up(&scene, 1);
  assert_int_equal(pwi_client_scan(scene.client, &call.task, scene.flow, pawl_range_of(0, SPAN), 10, keys, scene.out),
                   PAWL_OK);
  struct client_part *part = scene.flow->first;
  assert_range(part->claim, 0, 500);
  answer(&scene, part, PWI_CODE_NOT_HERE);
  SEE(&scene, 2, {0, 1}, {250, 3}, {500, 2});
  assert_int_equal(part->state, PART_SENT);
  assert_range(part->claim, 0, 250);
  assert_int_equal(part->rows, 10);
  assert_null(part->next);
  answer_with(&scene, part, (struct pwi_outcome){.code = PWI_CODE_OK, .next = 250});
  assert_over(&call, PAWL_OK);
  assert_int_equal(call.task.found, 250);
  stop_scene(&scene);
}

/* A server answers a scan of [0, 500), for at most so many rows, with two keys. */
static pawl_status scan_that_brings(size_t room, uint64_t first, uint64_t second, uint64_t next, uint64_t keys[10]) {
  struct scene scene;
  start_scene(&scene);
  struct call call = {.task.finished = call_finished};
  const float rows[2] = {1, 2};
  uint8_t bytes[2 * sizeof(uint64_t)];
  bring_up(&scene, 1);
  assert_int_equal(pwi_client_scan(scene.client, &call.task, scene.flow, pawl_range_of(0, SPAN), room, keys, scene.out),
                   PAWL_OK);
  const struct client_part *part = scene.flow->first;
  assert_range(part->claim, 0, 500);
  pwi_put_u64(bytes, first);
  pwi_put_u64(bytes + sizeof(uint64_t), second);
  answer_number(&scene, 1, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK, .next = next}, bytes,
                sizeof bytes, rows, 2);
  pawl_status why = scene.net.closed_count ? scene.net.closed[0].why : PAWL_OK;
  stop_scene(&scene);
  return why;
}

static void test_keys_of_a_scan_rise_and_lie_in_its_range(void **state) {
  (void)state;
  uint64_t keys[10] = {77, 77};
  assert_int_equal(scan_that_brings(10, 7, 3, 500, keys), PAWL_CORRUPT);
  assert_int_equal(scan_that_brings(10, 3, 3, 500, keys), PAWL_CORRUPT);
  assert_int_equal(scan_that_brings(10, 3, 500, 500, keys), PAWL_CORRUPT);
  assert_int_equal(scan_that_brings(10, 3, 7, 7, keys), PAWL_CORRUPT); /* it would bring 7 again */
  assert_int_equal(scan_that_brings(10, 3, 7, 501, keys), PAWL_CORRUPT);
  assert_true(keys[0] == 77 && keys[1] == 77);
  assert_int_equal(scan_that_brings(10, 3, 499, 500, keys), PAWL_OK);
  assert_true(keys[0] == 3 && keys[1] == 499);
}

/* The caller has no memory for them. */
static void test_a_scan_brings_no_more_rows_than_were_asked_for(void **state) {
  (void)state;
  uint64_t keys[10] = {77, 77};
  assert_int_equal(scan_that_brings(1, 3, 7, 500, keys), PAWL_CORRUPT);
  assert_true(keys[0] == 77 && keys[1] == 77);
  assert_int_equal(scan_that_brings(2, 3, 7, 500, keys), PAWL_OK);
}

static void test_a_part_that_cannot_be_cut_for_lack_of_memory_parks_whole(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 400);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_NOT_HERE);
  const struct share shares[] = {{0, 1}, {250, 3}, {500, 2}};
  pwi_view_release(scene.client->view);
  scene.client->view = view_of(2, shares, 3);
  pwi_memory_fail_after(0);
  pwi_parts_unpark(scene.client, false);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(part->state, PART_PARKED);
  assert_range(part->claim, 0, 500);
  assert_null(part->next);
  while (part->state == PART_PARKED) wait_for_timer(&scene);
  assert_range(part->claim, 0, 250);
  assert_non_null(part->next);
  stop_scene(&scene);
}

static void test_neighbouring_arcs_of_one_node_are_asked_at_once(void **state) {
  START;
  struct call first, second;
  scene.client->is_joined = false;
  SEE(&scene, 2, {0, 2});
  push(&scene, &first, 0, 10);
  start_aggregate(&scene, &second, PWI_REQUEST_PUSH);
  struct client_part *plain = scene.flow->first, *aggregate = plain->next;
  assert_range(plain->claim, 0, SPAN);
  assert_range(aggregate->claim, 0, SPAN);
  SEE(&scene, 3, {0, 2}, {500, 2});
  scene.client->is_joined = true;
  pwi_parts_unpark(scene.client, true);
  check_scene(&scene);
  assert_range(plain->claim, 0, SPAN);
  assert_int_equal(plain->state, PART_QUEUED);
  pwi_flow_unblock(scene.client, scene.flow);
  assert_range(aggregate->claim, 0, 500); /* an aggregate is about one arc */
  assert_range(aggregate->next->claim, 500, SPAN);
  assert_int_equal(aggregate->next->aggregate, 0); /* none of its keys lies there */
  stop_scene(&scene);
}

/* --- narrowing ------------------------------------------------------------------------------------------ */

static void test_narrowing_a_part_of_a_range(void **state) {
  START;
  struct call call;
  scene.client->is_joined = false;
  push(&scene, &call, 100, 300);
  struct client_part *part = scene.flow->first;
  assert_range(part->claim, 0, 500);
  assert_true(pwi_part_narrow(scene.client, part, pawl_range_of(200, 400)));
  assert_range(part->claim, 200, 400);
  assert_range(part->range, 200, 300);
  assert_int_equal(part->rows, 100);
  assert_ptr_equal(part->in, (const char *)(scene.in + 200));
  part->aggregate = 3;
  assert_false(pwi_part_narrow(scene.client, part, pawl_range_of(300, 400))); /* none of its keys */
  assert_range(part->range, 300, 400);
  assert_int_equal(part->rows, 0);
  assert_non_null(part->keys);
  assert_int_equal(part->aggregate, 0);
  stop_scene(&scene);
}

static void test_narrowing_a_part_with_keys(void **state) {
  START;
  static const uint64_t keys[] = {10, 20, 300, 400};
  struct call call = {.task.finished = call_finished};
  struct pwi_where where = {.keys = keys, .count = 4};
  scene.client->is_joined = false;
  assert_int_equal(
      pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSHPULL, &where, scene.in, scene.out),
      PAWL_OK);
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->rows, 4);
  part->signature = 5;
  assert_true(pwi_part_narrow(scene.client, part, pawl_range_of(20, 400)));
  assert_int_equal(part->rows, 2);
  assert_ptr_equal(part->keys, keys + 1);
  assert_int_equal(part->list_first, 1);
  assert_ptr_equal(part->in, (const char *)(scene.in + 1));
  assert_ptr_equal(part->out, (char *)(scene.out + 1));
  assert_int_equal(part->signature, 0); /* of other keys */
  assert_false(pwi_part_narrow(scene.client, part, pawl_range_of(21, 300)));
  assert_int_equal(part->rows, 0);
  stop_scene(&scene);
}

static void test_splitting_keeps_number_predecessor_and_list(void **state) {
  START;
  static const uint64_t keys[] = {10, 20, 300};
  struct call call = {.task.finished = call_finished};
  struct pwi_keylist *list;
  scene.client->is_joined = false;
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 3, &list), PAWL_OK);
  struct pwi_where where = {.list = list};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  struct client_part *part = scene.flow->first;
  part->prior = 9;
  assert_int_equal(part->state, PART_PARKED);
  struct client_part *rest = pwi_part_split(scene.client, part, 20);
  assert_non_null(rest);
  assert_ptr_equal(part->next, rest);
  assert_int_equal(rest->state, PART_BLOCKED);
  assert_int_equal(rest->number, part->number);
  assert_int_equal(rest->prior, 9);
  assert_int_not_equal(rest->index, part->index);
  assert_int_equal(part->rows, 1);
  assert_int_equal(rest->rows, 2);
  assert_int_equal(rest->list_first, 1);
  assert_int_equal(list->references, 3);
  check_scene(&scene);
  stop_scene(&scene);
  assert_int_equal(list->references, 1);
  pwi_keylist_release(list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_push_that_fails_goes_once_more_empty),
      T(a_trigger_whose_group_is_gone_does_not_push),
      T(an_empty_push_that_fails_ends),
      T(an_empty_push_of_a_group_is_tried_without_it),
      T(a_pull_that_fails_ends_at_once),
      T(a_push_waits_for_a_server_without_memory),
      T(a_request_that_the_server_cannot_read_fails_before_it_is_sent),
      T(a_push_of_factors_fails_before_an_older_server_gets_it),
      T(a_refusal_names_the_keys),
      T(failures_of_neighbouring_parts_are_reported_as_one),
      T(all_parts_of_a_deleted_vector_end),
      T(a_part_that_is_settled_on_a_dead_flow_ends),
      T(parts_for_an_earlier_incarnation_end),
      T(news_of_the_present_incarnation_change_nothing),
      T(many_parts_for_an_earlier_incarnation_end_with_their_link),
      T(a_broken_history_ends_the_part),
      T(a_task_is_over_only_when_the_net_has_let_go),
      T(a_resent_part_waits_for_both_messages),
      T(a_task_is_over_only_when_no_rows_are_on_their_way_to_it),
      T(an_answer_within_another_one_is_refused),
      T(rows_for_an_earlier_attempt_are_no_answer),
      T(a_part_is_not_sent_again_while_rows_arrive_for_it),
      T(a_view_cuts_a_part_between_two_heads),
      T(a_view_shortens_a_scan),
      T(keys_of_a_scan_rise_and_lie_in_its_range),
      T(a_scan_brings_no_more_rows_than_were_asked_for),
      T(a_part_that_cannot_be_cut_for_lack_of_memory_parks_whole),
      T(neighbouring_arcs_of_one_node_are_asked_at_once),
      T(narrowing_a_part_of_a_range),
      T(narrowing_a_part_with_keys),
      T(splitting_keeps_number_predecessor_and_list),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
