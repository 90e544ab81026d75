/* The states of a part: why it is queued, sent, parked or blocked, and how it ends. */
#include "client/client_testing.h"

/* --- queued and sent ------------------------------------------------------------------------------------ */

static void test_a_part_is_queued_then_sent_then_over(void **state) {
  START;
  struct call call;
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
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
  struct client_part *a = scene.flow->first, *b = a->next;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *part = scene.flow->first;
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
  struct client_part *a = scene.flow->first;
  answer(&scene, a, PWI_CODE_NOT_HERE);
  push(&scene, &second, 0, 10);
  struct client_part *b = a->next;
  assert_int_equal(b->state, PART_BLOCKED);
  pull(&scene, &third, 100, 110);
  struct client_part *c = b->next;
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
  struct client_part *a = scene.flow->first, *b = a->next;
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
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_SENT); /* it goes once more */
  answer(&scene, part, PWI_CODE_GAP);
  assert_over(&call, PAWL_CLUSTER_LOST);
  stop_scene(&scene);
}

static void test_a_push_that_is_lost_for_good_is_no_longer_a_predecessor(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  struct client_part *a = scene.flow->first, *b = a->next;
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
  struct client_part *part = scene.group->first;
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
  struct client_part *part = scene.group->first;
  assert_int_equal(part->state, PART_BLOCKED);
  pwi_flow_unblock(scene.client, scene.group);
  assert_int_equal(part->state, PART_BLOCKED);
  scene.group->is_suspended = false;
  pwi_flow_unblock(scene.client, scene.group);
  assert_int_equal(part->state, PART_QUEUED);
  stop_scene(&scene);
}

/* Sent before the client is a member again, it would be answered as if the group did not have this member. */
static void test_an_await_that_was_not_sent_waits_until_its_client_is_a_member_again(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  pwi_client_stay(scene.group);
  assert_int_equal(pwi_client_await(scene.client, &call.task, scene.group, 1), PAWL_OK);
  struct client_part *part = scene.group->first;
  assert_int_equal(part->state, PART_QUEUED);
  pwi_client_retired(scene.client);
  assert_true(scene.group->is_suspended);
  assert_int_equal(part->state, PART_BLOCKED);
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

static void test_a_pull_does_not_wait_for_a_push_of_a_group(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_aggregate(&scene, &first, PWI_REQUEST_PUSH);
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->aggregate, 3);
  assert_null(part->next);
  answer(&scene, part, PWI_CODE_NOT_HERE);
  assert_int_equal(part->state, PART_PARKED);
  pull(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->last->state, PART_SENT);
  assert_int_equal(scene.flow->last->prior, 0);
  stop_scene(&scene);
}

/* The second gap may be about a push that began after the first one. */
static void test_gaps_count_anew_after_a_wait_for_another_push(void **state) {
  START;
  struct call folds = {.task.finished = call_finished}, changes;
  bring_up(&scene, 1);
  assert_int_equal(
      pwi_client_linear(scene.client, &folds.task, scene.flow, scene.second, PWI_LINEAR_DOT, 0, pawl_range_of(0, 500)),
      PAWL_OK);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_SENT);
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_BLOCKED);
  answer(&scene, scene.second->first, PWI_CODE_OK);
  assert_int_equal(part->state, PART_SENT);
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_SENT);
  answer(&scene, part, PWI_CODE_GAP);
  assert_over(&folds, PAWL_CLUSTER_LOST);
  stop_scene(&scene);
}

/* --- renewal -------------------------------------------------------------------------------------------- */

static void test_a_retired_client_asks_what_became_of_a_part(void **state) {
  START;
  static const uint8_t nothing[8];
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  struct client_part *part = scene.flow->first;
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

static void test_a_retired_client_reads_again_under_its_new_id(void **state) {
  START;
  struct call first, second, third;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  pull(&scene, &second, 0, 10);
  pull(&scene, &third, 0, 10);
  struct client_part *a = scene.flow->first, *b = a->next;
  assert_int_equal(a->prior, 1);
  answer(&scene, a, PWI_CODE_RETIRED);
  assert_int_equal(a->state, PART_BLOCKED);
  renew(&scene, 8);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  assert_int_equal(a->state, PART_SENT);
  assert_int_equal(a->prior, 0);
  answer(&scene, b, PWI_CODE_RETIRED); /* it was sent under the old id: the new id stays */
  assert_int_equal(scene.client->sender, 8);
  assert_int_equal(b->state, PART_SENT);
  assert_int_equal(b->prior, 0);
  stop_scene(&scene);
}

/* The pull names no push any more, so it must not overtake the push that is sent again. */
static void test_a_read_follows_a_push_that_is_sent_again_under_the_new_id(void **state) {
  START;
  static const uint8_t nothing[8];
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  pull(&scene, &second, 0, 10);
  struct client_part *a = scene.flow->first, *b = a->next;
  answer(&scene, a, PWI_CODE_RETIRED);
  answer(&scene, b, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer_number(&scene, 1, number_of(a), (struct pwi_outcome){.code = PWI_CODE_OK}, nothing, sizeof nothing, NULL, 0);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  assert_int_equal(a->state, PART_SENT);
  assert_int_equal(b->prior, 0);
  assert_int_equal(b->state, PART_BLOCKED);
  answer(&scene, a, PWI_CODE_NOT_HERE);
  assert_int_equal(b->state, PART_BLOCKED);
  wait_for_timer(&scene);
  answer(&scene, a, PWI_CODE_OK);
  assert_over(&first, PAWL_OK);
  assert_int_equal(b->state, PART_SENT);
  answer(&scene, b, PWI_CODE_OK);
  assert_over(&second, PAWL_OK);
  stop_scene(&scene);
}

/* The manager has retired the client, and a server that does not know it yet answers the push. */
static void test_an_answer_to_a_push_is_no_answer_to_the_question_about_it(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  uint64_t old = number_of(part);
  pwi_client_retired(scene.client);
  renew(&scene, 8);
  assert_true(part->is_collecting);
  answer_number(&scene, 1, old, (struct pwi_outcome){.code = PWI_CODE_OK}, NULL, 0, NULL, 0);
  assert_true(part->is_collecting);
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(call.finished, 0);
  assert_int_equal(scene.net.closed_count, 0); /* the answer is not taken for a broken one */
  stop_scene(&scene);
}

static void test_a_part_that_took_effect_in_one_piece_is_cut(void **state) {
  START;
  struct call call;
  struct pwi_writer writer = {0};
  bring_up(&scene, 1);
  push(&scene, &call, 0, 400);
  struct client_part *part = scene.flow->first;
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
  struct client_part *rest = scene.flow->first;
  assert_null(rest->next);
  assert_int_equal(rest->state, PART_SENT);
  assert_range(rest->claim, 250, 500);
  assert_range(rest->range, 250, 400);
  answer(&scene, rest, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

/* Regression: the client waited for ever for a part that had ended, and held all other pushes back. */
static void test_a_renewal_ends_although_the_vector_of_a_part_is_gone(void **state) {
  START;
  struct call lost, other;
  bring_up(&scene, 1);
  push(&scene, &lost, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  assert_true(part->is_collecting);
  answer_failed(&scene, part, PAWL_NOT_FOUND);
  assert_over(&lost, PAWL_NOT_FOUND);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  scene.flow = scene.second;
  push(&scene, &other, 0, 10);
  assert_int_equal(scene.second->first->state, PART_SENT);
  stop_scene(&scene);
}

static void test_a_renewal_ends_although_a_part_cannot_be_collected(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer_failed(&scene, part, PAWL_FORBIDDEN);
  assert_over(&call, PAWL_FORBIDDEN);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  stop_scene(&scene);
}

static void test_a_part_whose_clocks_are_gone_has_an_unknown_outcome(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_RETIRED);
  renew(&scene, 8);
  answer(&scene, part, PWI_CODE_GONE);
  assert_over(&call, PAWL_OUTCOME_UNKNOWN);
  assert_int_equal(scene.client->collecting, 0);
  assert_int_equal(scene.client->renewal, RENEWAL_NONE);
  stop_scene(&scene);
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
      T(a_push_that_is_lost_for_good_is_no_longer_a_predecessor),
      T(a_tick_waits_for_all_earlier_tasks),
      T(parts_of_a_suspended_group_are_blocked),
      T(an_await_that_was_not_sent_waits_until_its_client_is_a_member_again),
      T(ordered_parts_are_blocked_during_a_renewal),
      T(a_pull_does_not_wait_for_a_push_of_a_group),
      T(gaps_count_anew_after_a_wait_for_another_push),
      T(a_retired_client_asks_what_became_of_a_part),
      T(a_retired_client_reads_again_under_its_new_id),
      T(a_read_follows_a_push_that_is_sent_again_under_the_new_id),
      T(an_answer_to_a_push_is_no_answer_to_the_question_about_it),
      T(a_part_that_took_effect_in_one_piece_is_cut),
      T(a_renewal_ends_although_the_vector_of_a_part_is_gone),
      T(a_renewal_ends_although_a_part_cannot_be_collected),
      T(a_part_whose_clocks_are_gone_has_an_unknown_outcome),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
