/* The states of a part: why it is queued, sent, parked or blocked, and how it ends. */
#include "client/client_testing.h"

#define START                                                                                                          \
  (void)state;                                                                                                         \
  struct scene scene;                                                                                                  \
  start_scene(&scene)

static void assert_over(const struct call *call, pawl_status status) {
  assert_int_equal(call->finished, 1);
  assert_int_equal(call->task.status, status);
}

/* --- queued and sent ------------------------------------------------------------------------------------ */

static void test_a_part_is_queued_then_sent_then_over(void **state) {
  START;
  struct call call;
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  assert_int_equal(part->state, PART_QUEUED);
  assert_int_equal(part->peer->node, 1);
  assert_int_equal(scene.net.connects, 1);
  bring_up(&scene, 1);
  assert_int_equal(part->state, PART_SENT);
  struct request request = last_request(&scene);
  assert_int_equal(request.control.head.sender, SENDER);
  assert_int_equal(request.control.head.task, 1);
  assert_int_equal(request.terms.kind, PWI_REQUEST_PUSH);
  assert_int_equal(request.terms.prior, 0);
  assert_range(request.terms.claim, 0, 500);
  assert_range(request.terms.range, 0, 10);
  assert_int_equal(bytes_in(&request, PWI_SECTION_VALUES), 10 * sizeof(float));
  assert_int_equal(call.finished, 0);
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  assert_null(scene.flow->first);
  stop_scene(&scene);
}

static void test_an_answer_to_an_earlier_attempt_is_ignored(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  struct part *a = scene.flow->first, *b = a->next;
  uint64_t old = number_of(a);
  take_down(&scene, 1, PAWL_LINK_CLOSED);
  assert_int_equal(a->state, PART_QUEUED);
  assert_int_equal(b->state, PART_QUEUED);
  bring_up(&scene, 1);
  assert_int_equal(a->state, PART_SENT);
  assert_int_equal(b->state, PART_SENT);
  assert_true(number_of(a) != old);
  assert_int_equal(last_request(&scene).control.head.task, 2); /* resends keep their order */
  answer_number(&scene, 1, old, (struct pwi_outcome){.code = PWI_CODE_OK}, NULL, 0, NULL, 0);
  assert_int_equal(first.finished, 0);
  answer(&scene, a, PWI_CODE_OK);
  answer(&scene, b, PWI_CODE_OK);
  assert_over(&first, PAWL_OK);
  assert_over(&second, PAWL_OK);
  stop_scene(&scene);
}

static void test_a_queued_part_finds_another_head_with_a_new_view(void **state) {
  START;
  struct call call;
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  SEE(&scene, 2, {0, 3}, {500, 2});
  assert_int_equal(part->state, PART_QUEUED);
  assert_int_equal(part->peer->node, 3);
  bring_up(&scene, 3);
  assert_int_equal(part->state, PART_SENT);
  SEE(&scene, 3, {0, 1}, {500, 2});
  assert_int_equal(part->state, PART_SENT); /* its answer decides */
  assert_int_equal(part->peer->node, 3);
  stop_scene(&scene);
}

static void test_an_unknown_key_list_is_sent_whole(void **state) {
  START;
  static const uint64_t keys[] = {1, 5, 9};
  struct call call = {.task.finished = call_finished};
  struct pwi_keylist *list;
  bring_up(&scene, 1);
  assert_int_equal(pwi_keylist_create(scene.client, &scene.flow->entry, keys, 3, &list), PAWL_OK);
  struct pwi_where where = {.list = list};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  struct part *part = scene.flow->first;
  struct request request = last_request(&scene);
  assert_int_equal(request.terms.keys, PWI_KEYS_SIGNED);
  assert_true(bytes_in(&request, PWI_SECTION_SIGNATURE) > 0);
  answer(&scene, part, PWI_CODE_WANTED);
  assert_int_equal(part->state, PART_SENT);
  request = last_request(&scene);
  assert_int_equal(request.terms.keys, PWI_KEYS_LIST);
  assert_true(request.terms.keep);
  assert_int_equal(request.terms.rows, 3);
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  pwi_keylist_release(list);
  stop_scene(&scene);
}

/* --- parked --------------------------------------------------------------------------------------------- */

static void test_a_part_parks_until_the_client_has_joined(void **state) {
  START;
  struct call call;
  scene.client->is_joined = false;
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  assert_int_equal(part->state, PART_PARKED);
  scene.client->is_joined = true;
  pwi_parts_unpark(scene.client, true);
  assert_int_equal(part->state, PART_QUEUED);
  stop_scene(&scene);
}

static void test_a_numbered_part_parks_without_a_sender(void **state) {
  START;
  struct call first, second;
  scene.client->sender = 0;
  push(&scene, &first, 500, 510);
  pull(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->first->state, PART_PARKED);
  assert_int_equal(scene.flow->last->state, PART_QUEUED); /* reading needs no id */
  scene.client->sender = SENDER;
  wait_for_timer(&scene);
  assert_int_equal(scene.flow->first->state, PART_QUEUED);
  stop_scene(&scene);
}

static void test_a_part_parks_until_there_is_a_view(void **state) {
  START;
  struct call call;
  pwi_view_release(scene.client->view);
  scene.client->view = NULL;
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  assert_int_equal(part->state, PART_PARKED);
  assert_range(part->claim, 0, SPAN); /* nothing to cut it by */
  SEE(&scene, 1, {0, 1}, {500, 2});
  assert_int_equal(part->state, PART_QUEUED);
  assert_range(part->claim, 0, 500);
  assert_int_equal(part->peer->node, 1);
  assert_range(part->next->claim, 500, SPAN);
  assert_int_equal(part->next->peer->node, 2);
  stop_scene(&scene);
}

static void test_a_part_parks_without_memory_for_its_peer(void **state) {
  START;
  struct call call;
  scene.client->is_joined = false;
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  scene.client->is_joined = true;
  pwi_memory_fail_after(0);
  pwi_parts_unpark(scene.client, true);
  assert_true(pwi_memory_fail_cancel());
  assert_int_equal(part->state, PART_PARKED);
  assert_int_equal(part->tries, 2);
  while (part->state == PART_PARKED) wait_for_timer(&scene);
  assert_int_equal(part->state, PART_QUEUED);
  stop_scene(&scene);
}

static void test_the_wait_of_a_parked_part_doubles(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  static const int64_t waits[] = {1, 2, 4, 8, 16, 32, 64, 64, 64}; /* milliseconds */
  for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
    answer(&scene, part, PWI_CODE_NOT_HERE);
    assert_int_equal(part->state, PART_PARKED);
    assert_int_equal(part->retry_at, scene.net.now + waits[i] * MILLISECOND);
    assert_int_equal(scene.net.timer_at, part->retry_at);
    wait_for_timer(&scene);
    assert_int_equal(part->state, PART_SENT);
  }
  assert_int_equal(scene.client->figures.not_here, sizeof waits / sizeof *waits);
  stop_scene(&scene);
}

static void test_a_parked_part_goes_with_a_newer_view_and_not_before_its_time(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 3);
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_NOT_HERE);
  pwi_parts_unpark(scene.client, false);
  assert_int_equal(part->state, PART_PARKED);
  SEE(&scene, 2, {0, 3}, {500, 2});
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(part->peer->node, 3);
  stop_scene(&scene);
}

static void test_a_part_whose_proof_is_missing_goes_again_with_it(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  struct request request = last_request(&scene);
  assert_true(bytes_in(&request, PWI_SECTION_PROOF) > 0);
  push(&scene, &second, 0, 10);
  request = last_request(&scene);
  assert_int_equal(bytes_in(&request, PWI_SECTION_PROOF), 0); /* once on each link */
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_UNPROVEN);
  assert_int_equal(part->state, PART_PARKED);
  wait_for_timer(&scene);
  assert_int_equal(part->state, PART_SENT);
  request = last_request(&scene);
  assert_true(bytes_in(&request, PWI_SECTION_PROOF) > 0);
  stop_scene(&scene);
}

/* --- blocked -------------------------------------------------------------------------------------------- */

static void test_a_part_waits_behind_an_earlier_push_that_is_held_back(void **state) {
  START;
  struct call first, second, third, fourth;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  push(&scene, &first, 0, 10);
  struct part *a = scene.flow->first;
  answer(&scene, a, PWI_CODE_NOT_HERE);
  push(&scene, &second, 0, 10);
  struct part *b = a->next;
  assert_int_equal(b->state, PART_BLOCKED);
  pull(&scene, &third, 100, 110);
  struct part *c = b->next;
  assert_int_equal(c->state, PART_BLOCKED);
  push(&scene, &fourth, 500, 510); /* no key in common */
  assert_int_equal(c->next->state, PART_SENT);
  wait_for_timer(&scene);
  assert_int_equal(a->state, PART_SENT);
  answer(&scene, a, PWI_CODE_OK);
  assert_int_equal(b->state, PART_SENT);
  assert_int_equal(c->state, PART_SENT);
  stop_scene(&scene);
}

static void test_a_part_may_follow_a_push_that_is_only_queued(void **state) {
  START;
  struct call first, second;
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->first->state, PART_QUEUED);
  assert_int_equal(scene.flow->last->state, PART_QUEUED);
  assert_ptr_equal(scene.flow->first->peer_next, scene.flow->last);
  stop_scene(&scene);
}

static void test_a_part_that_meets_a_gap_waits_for_the_answers_of_earlier_ones(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  struct part *a = scene.flow->first, *b = a->next;
  answer(&scene, b, PWI_CODE_GAP);
  assert_int_equal(b->state, PART_BLOCKED);
  assert_true(b->is_strict);
  answer(&scene, a, PWI_CODE_OK);
  assert_int_equal(b->state, PART_SENT);
  assert_false(b->is_strict);
  answer(&scene, b, PWI_CODE_OK);
  assert_over(&second, PAWL_OK);
  stop_scene(&scene);
}

static void test_two_gaps_without_an_earlier_push_mean_lost_data(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_SENT); /* it goes once more */
  answer(&scene, part, PWI_CODE_GAP);
  assert_over(&call, PAWL_CLUSTER_LOST);
  stop_scene(&scene);
}

static void test_what_is_missing_for_good_is_no_longer_a_predecessor(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  struct part *a = scene.flow->first, *b = a->next;
  answer_failed(&scene, a, PAWL_FORBIDDEN);
  assert_over(&first, PAWL_FORBIDDEN);
  assert_true(scene.flow->is_forbidden);
  assert_int_equal(b->prior, 1);
  answer(&scene, b, PWI_CODE_GAP);
  assert_int_equal(b->state, PART_PARKED);
  assert_int_equal(b->prior, 0);
  stop_scene(&scene);
}

static void test_a_tick_waits_for_all_earlier_tasks(void **state) {
  START;
  struct call first, second, tick = {.task.finished = call_finished};
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 500, 510);
  assert_int_equal(pwi_client_tick(scene.client, &tick.task, scene.group, 1), PAWL_OK);
  struct part *part = scene.group->first;
  assert_int_equal(part->state, PART_BLOCKED);
  answer(&scene, scene.flow->last, PWI_CODE_OK);
  assert_int_equal(part->state, PART_BLOCKED);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(last_request(&scene).terms.kind, PWI_REQUEST_TICK);
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&tick, PAWL_OK);
  stop_scene(&scene);
}

static void test_parts_of_a_suspended_group_are_blocked(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  scene.group->is_suspended = true;
  assert_int_equal(pwi_client_await(scene.client, &call.task, scene.group, 1), PAWL_OK);
  struct part *part = scene.group->first;
  assert_int_equal(part->state, PART_BLOCKED);
  pwi_flow_unblock(scene.client, scene.group);
  assert_int_equal(part->state, PART_BLOCKED);
  scene.group->is_suspended = false;
  pwi_flow_unblock(scene.client, scene.group);
  assert_int_equal(part->state, PART_QUEUED);
  stop_scene(&scene);
}

static void test_ordered_parts_are_blocked_during_a_renewal(void **state) {
  START;
  struct call first, second, third = {.task.finished = call_finished};
  scene.client->renewal = RENEWAL_JOINING;
  push(&scene, &first, 0, 10);
  pull(&scene, &second, 0, 10);
  assert_int_equal(pwi_client_await(scene.client, &third.task, scene.group, 1), PAWL_OK);
  assert_int_equal(scene.flow->first->state, PART_BLOCKED);
  assert_int_equal(scene.flow->last->state, PART_BLOCKED);
  assert_int_equal(scene.group->first->state, PART_QUEUED); /* it names no predecessor */
  scene.client->renewal = RENEWAL_NONE;
  pwi_flow_unblock(scene.client, scene.flow);
  assert_int_equal(scene.flow->first->state, PART_QUEUED);
  assert_int_equal(scene.flow->last->state, PART_QUEUED);
  stop_scene(&scene);
}

static void start_aggregate(struct scene *scene, struct call *call, enum pwi_request_kind kind) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.range = {0, 10}, .aggregate = 3, .tick = 1};
  void *out = kind == PWI_REQUEST_PUSHPULL ? scene->out : NULL;
  assert_int_equal(pwi_client_start(scene->client, &call->task, scene->flow, kind, &where, scene->in, out), PAWL_OK);
  check_scene(scene);
}

static void test_a_pull_does_not_wait_for_a_push_of_a_group(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_aggregate(&scene, &first, PWI_REQUEST_PUSH);
  struct part *part = scene.flow->first;
  assert_int_equal(part->aggregate, 3);
  assert_null(part->next);
  answer(&scene, part, PWI_CODE_NOT_HERE);
  assert_int_equal(part->state, PART_PARKED);
  pull(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->last->state, PART_SENT);
  assert_int_equal(scene.flow->last->prior, 0);
  stop_scene(&scene);
}

static void axpy(struct scene *scene, struct call *call) {
  *call = (struct call){.task.finished = call_finished};
  assert_int_equal(pwi_client_linear(scene->client, &call->task, scene->flow, scene->second, PWI_LINEAR_AXPY, 1,
                                     pawl_range_of(0, 500)),
                   PAWL_OK);
  check_scene(scene);
}

static void test_a_change_by_another_vector_waits_for_held_pushes_to_it(void **state) {
  START;
  struct call first, second, later;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_range(&scene, &first, scene.second, PWI_REQUEST_PUSH, 0, 10);
  answer(&scene, scene.second->first, PWI_CODE_NOT_HERE);
  axpy(&scene, &second);
  struct part *change = scene.flow->first;
  assert_int_equal(change->state, PART_BLOCKED);
  assert_int_equal(scene.second->readers > 0, true);
  wait_for_timer(&scene);
  answer(&scene, scene.second->first, PWI_CODE_OK);
  assert_int_equal(change->state, PART_SENT);
  /* A later push to the vector that it reads waits until it is answered. */
  start_range(&scene, &later, scene.second, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(scene.second->first->state, PART_BLOCKED);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&second, PAWL_OK);
  assert_int_equal(scene.second->first->state, PART_SENT);
  assert_int_equal(scene.second->readers, 0);
  stop_scene(&scene);
}

static void test_the_rest_of_a_change_is_asked_for_under_the_same_number(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  axpy(&scene, &call);
  struct part *part = scene.flow->first;
  uint64_t number = part->number;
  answer_with(&scene, part, (struct pwi_outcome){.code = PWI_CODE_OK, .next = 200});
  struct part *rest = scene.flow->first;
  assert_int_equal(rest->state, PART_SENT);
  assert_int_equal(rest->number, number);
  assert_range(rest->claim, 200, 500);
  assert_int_equal(call.finished, 0);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* --- renewal -------------------------------------------------------------------------------------------- */

/* The manager lets the client in again, under another id. */
static void renew(struct scene *scene, uint64_t sender) {
  assert_int_equal(scene->client->renewal, RENEWAL_JOINING);
  scene->client->sender = sender;
  pwi_client_renewed(scene->client, 0);
  pwi_client_send_due(scene->client);
  check_scene(scene);
}

static void test_a_retired_client_asks_what_became_of_a_part(void **state) {
  START;
  static const uint8_t nothing[8];
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  assert_int_equal(part->state, PART_BLOCKED);
  push(&scene, &second, 0, 10);
  assert_int_equal(part->next->state, PART_BLOCKED);
  renew(&scene, 8);
  assert_int_equal(part->state, PART_SENT);
  assert_true(part->is_collecting);
  assert_int_equal(part->next->state, PART_BLOCKED); /* it was never sent */
  struct request request = last_request(&scene);
  assert_int_equal(request.terms.kind, PWI_REQUEST_COLLECT);
  assert_int_equal(request.terms.other, SENDER);
  answer_number(&scene, 1, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, nothing, sizeof nothing, NULL,
                0);
  /* It had no effect: it goes again under the new id, with a new number, on a clock that begins anew. */
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(part->next->state, PART_SENT);
  assert_int_equal(part->sender, 8);
  assert_int_equal(part->prior, 0);
  assert_int_equal(part->next->prior, part->number);
  assert_true(part->number > 2);
  stop_scene(&scene);
}

static void test_a_part_that_took_effect_in_one_piece_is_cut(void **state) {
  START;
  struct call call;
  struct pwi_writer writer = {0};
  bring_up(&scene, 1);
  push(&scene, &call, 0, 400);
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, 0);
  pwi_write_u64(&writer, 250);
  pwi_write_u64(&writer, part->number);
  pwi_write_u32(&writer, 0);
  answer_number(&scene, 1, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, writer.data, writer.size, NULL,
                0);
  pwi_writer_fini(&writer);
  struct part *rest = scene.flow->first;
  assert_null(rest->next);
  assert_int_equal(rest->state, PART_SENT);
  assert_range(rest->claim, 250, 500);
  assert_range(rest->range, 250, 400);
  answer(&scene, rest, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

static void test_a_part_whose_clocks_are_gone_has_an_unknown_outcome(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer(&scene, part, PWI_CODE_GONE);
  assert_over(&call, PAWL_OUTCOME_UNKNOWN);
  assert_int_equal(scene.client->collecting, 0);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  stop_scene(&scene);
}

/* --- failing -------------------------------------------------------------------------------------------- */

static void test_a_push_that_fails_goes_once_more_empty(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct part *part = scene.flow->first;
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
  struct part *part = scene.flow->first;
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
  struct part *part = scene.flow->first;
  assert_int_equal(part->voided, PAWL_UNSUPPORTED);
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

static void test_failures_of_neighbours_are_told_as_one(void **state) {
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
  struct part *part = scene.flow->first;
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
  struct part *part = scene.flow->first;
  assert_int_equal(part->outgoings, 2);
  assert_int_not_equal(scene.net.sent[first].cookie, scene.net.sent[second].cookie);
  answer(&scene, part, PWI_CODE_OK);
  net_done(&scene, &scene.net.sent[first]);
  assert_int_equal(call.finished, 0);
  net_done(&scene, &scene.net.sent[second]);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* --- cutting -------------------------------------------------------------------------------------------- */

static void test_a_view_cuts_a_part_between_two_heads(void **state) {
  START;
  struct call before, call;
  bring_up(&scene, 1);
  push(&scene, &before, 0, 10);
  push(&scene, &call, 0, 400);
  struct part *part = scene.flow->last;
  answer(&scene, part, PWI_CODE_NOT_HERE);
  SEE(&scene, 2, {0, 1}, {250, 3}, {500, 2});
  struct part *rest = part->next;
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
  struct part *part = scene.flow->first;
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

static void test_a_part_that_cannot_be_cut_for_lack_of_memory_parks_whole(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 400);
  struct part *part = scene.flow->first;
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
  struct part *plain = scene.flow->first, *aggregate = plain->next;
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
  struct part *part = scene.flow->first;
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
  struct part *part = scene.flow->first;
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
  struct part *part = scene.flow->first;
  part->prior = 9;
  assert_int_equal(part->state, PART_PARKED);
  struct part *rest = pwi_part_split(scene.client, part, 20);
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
      T(a_part_is_queued_then_sent_then_over),
      T(an_answer_to_an_earlier_attempt_is_ignored),
      T(a_queued_part_finds_another_head_with_a_new_view),
      T(an_unknown_key_list_is_sent_whole),
      T(a_part_parks_until_the_client_has_joined),
      T(a_numbered_part_parks_without_a_sender),
      T(a_part_parks_until_there_is_a_view),
      T(a_part_parks_without_memory_for_its_peer),
      T(the_wait_of_a_parked_part_doubles),
      T(a_parked_part_goes_with_a_newer_view_and_not_before_its_time),
      T(a_part_whose_proof_is_missing_goes_again_with_it),
      T(a_part_waits_behind_an_earlier_push_that_is_held_back),
      T(a_part_may_follow_a_push_that_is_only_queued),
      T(a_part_that_meets_a_gap_waits_for_the_answers_of_earlier_ones),
      T(two_gaps_without_an_earlier_push_mean_lost_data),
      T(what_is_missing_for_good_is_no_longer_a_predecessor),
      T(a_tick_waits_for_all_earlier_tasks),
      T(parts_of_a_suspended_group_are_blocked),
      T(ordered_parts_are_blocked_during_a_renewal),
      T(a_pull_does_not_wait_for_a_push_of_a_group),
      T(a_change_by_another_vector_waits_for_held_pushes_to_it),
      T(the_rest_of_a_change_is_asked_for_under_the_same_number),
      T(a_retired_client_asks_what_became_of_a_part),
      T(a_part_that_took_effect_in_one_piece_is_cut),
      T(a_part_whose_clocks_are_gone_has_an_unknown_outcome),
      T(a_push_that_fails_goes_once_more_empty),
      T(an_empty_push_that_fails_ends),
      T(an_empty_push_of_a_group_is_tried_without_it),
      T(a_pull_that_fails_ends_at_once),
      T(a_push_waits_for_a_server_without_memory),
      T(a_request_that_the_server_cannot_read_fails_before_it_is_sent),
      T(a_refusal_names_the_keys),
      T(failures_of_neighbours_are_told_as_one),
      T(all_parts_of_a_deleted_vector_end),
      T(a_part_that_is_settled_on_a_dead_flow_ends),
      T(parts_for_an_earlier_incarnation_end),
      T(a_broken_history_ends_the_part),
      T(a_task_is_over_only_when_the_net_has_let_go),
      T(a_resent_part_waits_for_both_messages),
      T(a_view_cuts_a_part_between_two_heads),
      T(a_view_shortens_a_scan),
      T(a_part_that_cannot_be_cut_for_lack_of_memory_parks_whole),
      T(neighbouring_arcs_of_one_node_are_asked_at_once),
      T(narrowing_a_part_of_a_range),
      T(narrowing_a_part_with_keys),
      T(splitting_keeps_number_predecessor_and_list),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
