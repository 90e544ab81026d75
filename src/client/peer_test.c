/* The queue of a peer and its parts under way; links to peers, and how much goes over them. */
#include "client/client_testing.h"

/* --- queues --------------------------------------------------------------------------------------------- */

static void test_a_peer_is_made_once(void **state) {
  START;
  struct client_peer *one = peer_of(&scene, 1), *two = peer_of(&scene, 2);
  assert_ptr_not_equal(one, two);
  assert_ptr_equal(peer_of(&scene, 1), one);
  assert_ptr_equal(scene.client->last_peer, one);
  pwi_memory_fail_after(0);
  assert_null(pwi_client_peer(scene.client, 3));
  assert_true(pwi_memory_fail_cancel());
  assert_non_null(pwi_client_peer(scene.client, 3));
  stop_scene(&scene);
}

/* Queues a part that has this number, as client/part.c does. */
static struct client_part *enqueue(struct scene *scene, struct call *call, uint64_t number) {
  struct client_part *part = pwi_part_create(scene->client, scene->flow, &call->task);
  assert_non_null(part);
  part->kind = number ? PWI_REQUEST_PUSH : PWI_REQUEST_PULL;
  part->number = number;
  part->claim = part->range = pawl_range_of(0, 10);
  part->rows = 10;
  if (number)
    part->in = (const char *)scene->in;
  else
    part->out = (char *)scene->out;
  pwi_part_link_behind(part, NULL);
  pwi_part_enqueue(scene->client, part, peer_of(scene, 1));
  check_scene(scene);
  return part;
}

static void test_a_queue_is_ordered_by_number(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  struct client_peer *peer = peer_of(&scene, 1);
  struct client_part *five = enqueue(&scene, &call, 5);
  struct client_part *read = enqueue(&scene, &call, 0); /* a part without a number goes to the end */
  struct client_part *seven = enqueue(&scene, &call, 7);
  struct client_part *three = enqueue(&scene, &call, 3); /* passes higher numbers, and no part without one */
  struct client_part *six = enqueue(&scene, &call, 6);
  struct client_part *again = enqueue(&scene, &call, 6); /* behind others of its task */
  struct client_part *order[] = {five, read, three, six, again, seven};
  struct client_part *part = peer->queue_first;
  for (size_t i = 0; i < 6; i++, part = part->peer_next) assert_ptr_equal(part, order[i]);
  assert_null(part);
  pwi_part_hold(scene.client, three, PART_BLOCKED); /* from the middle, */
  check_scene(&scene);
  pwi_part_hold(scene.client, seven, PART_BLOCKED); /* from the end, */
  pwi_part_hold(scene.client, five, PART_PARKED);   /* and from the beginning */
  check_scene(&scene);
  assert_ptr_equal(peer->queue_first, read);
  assert_ptr_equal(peer->queue_last, again);
  stop_scene(&scene);
}

static void test_a_peer_is_due_once_until_it_is_taken(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  assert_null(pwi_client_take_due(scene.client));
  enqueue(&scene, &call, 1);
  enqueue(&scene, &call, 2);
  assert_ptr_equal(pwi_client_take_due(scene.client), peer_of(&scene, 1));
  assert_null(pwi_client_take_due(scene.client));
  enqueue(&scene, &call, 3);
  assert_ptr_equal(pwi_client_take_due(scene.client), peer_of(&scene, 1));
  stop_scene(&scene);
}

static void test_sums_count_the_parts_under_way(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  struct client_peer *peer = peer_of(&scene, 1);
  struct client_part *push = enqueue(&scene, &call, 1), *read = enqueue(&scene, &call, 0);
  assert_int_equal(peer->under_way, 0);
  pwi_peer_sent(peer, push);
  pwi_peer_sent(peer, read);
  check_scene(&scene);
  assert_int_equal(peer->under_way, 2);
  assert_int_equal(peer->bytes_out, 10 * sizeof(float));
  assert_int_equal(peer->bytes_back, 10 * sizeof(float));
  assert_null(peer->queue_first);
  pwi_part_hold(scene.client, push, PART_PARKED);
  check_scene(&scene);
  assert_ptr_equal(peer->sent_first, read);
  assert_int_equal(peer->bytes_out, 0);
  stop_scene(&scene);
}

static void test_the_load_of_a_change_without_values_is_bounded(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  struct client_part *part = enqueue(&scene, &call, 1);
  part->kind = PWI_REQUEST_LINEAR;
  part->in = NULL;
  assert_int_equal(pwi_part_bytes_out(part), 0);
  assert_int_equal(pwi_part_load(part), 10 * sizeof(float));
  part->rows = SIZE_MAX / 2;
  assert_int_equal(pwi_part_load(part), PWI_LINEAR_SLICE);
  part->rows = 10;
  part->in = (const char *)scene.in;
  part->kind = PWI_REQUEST_PUSH;
  stop_scene(&scene);
}

/* --- links ---------------------------------------------------------------------------------------------- */

static void test_a_link_is_sought_again_with_longer_pauses(void **state) {
  START;
  struct call call;
  scene.net.connect_status = PAWL_NO_MEMORY;
  push(&scene, &call, 0, 10);
  struct client_peer *peer = peer_of(&scene, 1);
  static const int64_t pauses[] = {5, 10, 20, 40, 80, 160, 320, 500, 500}; /* milliseconds */
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
    assert_int_equal(peer->retry_at, scene.net.now + pauses[i] * MILLISECOND);
    assert_null(peer->link);
    size_t connects = scene.net.connects;
    pwi_peer_pump(scene.client, peer);
    assert_int_equal(scene.net.connects, connects); /* not before its time */
    while (scene.net.connects == connects) wait_for_timer(&scene);
  }
  scene.net.connect_status = PAWL_OK;
  wait_for_timer(&scene);
  bring_up(&scene, 1);
  assert_int_equal(peer->retry_ns, PWI_PEER_RETRY_MIN);
  assert_int_equal(scene.flow->first->state, PART_SENT);
  stop_scene(&scene);
}

static void test_a_peer_without_work_needs_no_link(void **state) {
  START;
  pwi_peer_pump(scene.client, peer_of(&scene, 1));
  assert_int_equal(scene.net.connects, 0);
  stop_scene(&scene);
}

static void test_a_vector_of_a_sender_that_is_gone_ends(void **state) {
  START;
  struct call call;
  struct pwi_flow *flow;
  assert_int_equal(pwi_client_flow(scene.client, (struct pwi_vector_id){1}, 9, &flow), PAWL_OK);
  assert_ptr_not_equal(flow, scene.flow);
  assert_int_equal(flow->node, 9 | PWI_PEER_IS_SENDER);
  start_range(&scene, &call, flow, PWI_REQUEST_PULL, 0, 10);
  assert_int_equal(flow->first->state, PART_QUEUED);
  assert_int_equal(scene.net.connects, 0); /* its address is not known */
  bring_up(&scene, 9 | PWI_PEER_IS_SENDER);
  assert_int_equal(flow->first->state, PART_SENT);
  take_down(&scene, 9 | PWI_PEER_IS_SENDER, PAWL_LINK_CLOSED);
  assert_int_equal(call.finished, 1);
  assert_int_equal(call.task.status, PAWL_NODE_GONE);
  stop_scene(&scene);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void test_a_part_that_the_net_refuses_stays_queued(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  scene.net.send_status = PAWL_QUEUE_FULL;
  push(&scene, &call, 0, 10);
  struct client_part *part = scene.flow->first;
  assert_int_equal(part->state, PART_QUEUED);
  scene.net.send_status = PAWL_OK;
  pwi_client_actor.writable(scene.client, peer_of(&scene, 1)->link->link);
  assert_int_equal(part->state, PART_SENT);
  stop_scene(&scene);
}

static void test_sending_waits_for_memory(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  scene.net.send_status = PAWL_NO_MEMORY;
  push(&scene, &call, 0, 500);
  assert_int_equal(scene.flow->first->state, PART_QUEUED);
  assert_int_equal(scene.net.timer_at, scene.net.now + PWI_PEER_RETRY_MIN);
  assert_int_equal(scene.flow->first->borrowed, 0);
  scene.net.send_status = PAWL_OK;
  wait_for_timer(&scene);
  assert_int_equal(scene.flow->first->state, PART_SENT);
  assert_int_equal(scene.client->outgoing_count, 1); /* the first was given back */
  stop_scene(&scene);
}

static void test_a_bounded_number_of_parts_is_under_way(void **state) {
  START;
  static struct call calls[1025];
  bring_up(&scene, 1);
  for (size_t i = 0; i < 1025; i++) {
    push(&scene, &calls[i], 0, 10);
    stub_clear(&scene.net);
  }
  struct client_peer *peer = peer_of(&scene, 1);
  assert_int_equal(peer->under_way, 1024);
  assert_ptr_equal(peer->queue_first, scene.flow->last);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_int_equal(peer->under_way, 1024);
  assert_null(peer->queue_first);
  stop_scene(&scene);
}

/* Pushes ten rows. Returns true if the message has a checksum. */
static bool is_checked(struct scene *scene, struct call *call, const void *rows) {
  struct pwi_where where = {.range = {0, 10}};
  *call = (struct call){.task.finished = call_finished};
  assert_int_equal(pwi_client_start(scene->client, &call->task, scene->flow, PWI_REQUEST_PUSH, &where, rows, NULL),
                   PAWL_OK);
  const struct stub_sent *sent = &scene->net.sent[scene->net.sent_count - 1];
  return !(pwi_message_peek(sent->head).flags & PWI_MESSAGE_UNCHECKED);
}

/* The server reads the rows in place, and the caller may change its own memory meanwhile. */
static void test_rows_that_are_not_in_a_buffer_have_a_checksum(void **state) {
  START;
  struct call first, second;
  void *buffer;
  bring_up(&scene, 1);
  struct pwi_peering *peering = &peer_of(&scene, 1)->link->peering;
  peering->in_place = peering->data.unchecked = true;
  assert_int_equal(pwi_client_buffer_open(scene.client, 10 * sizeof(float), &buffer), PAWL_OK);
  assert_true(is_checked(&scene, &first, scene.in));
  assert_false(is_checked(&scene, &second, buffer));
  stop_scene(&scene);
}

/* --- patience ------------------------------------------------------------------------------------------- */

static void test_a_link_without_answers_is_closed(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_peer *peer = peer_of(&scene, 1);
  assert_int_equal(peer->look_at, scene.net.now + PWI_PEER_PATIENCE_MIN);
  while (scene.net.closed_count == 0) wait_for_timer(&scene);
  assert_int_equal(scene.net.closed[0].link, peer->link->link.id);
  assert_int_equal(scene.net.closed[0].why, PAWL_LINK_SILENT);
  assert_int_equal(peer->patience_ns, 2 * PWI_PEER_PATIENCE_MIN);
  take_down(&scene, 1, PAWL_LINK_SILENT);
  bring_up(&scene, 1);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  push(&scene, &call, 0, 10);
  while (peer->patience_ns > PWI_PEER_PATIENCE_MIN) wait_for_timer(&scene); /* an answer came */
  assert_int_equal(scene.net.closed_count, 1);
  stop_scene(&scene);
}

static void test_a_link_that_answers_something_is_kept(void **state) {
  START;
  struct call first, second;
  bring_up(&scene, 1);
  push(&scene, &first, 0, 10);
  push(&scene, &second, 0, 10);
  answer(&scene, scene.flow->last, PWI_CODE_OK);
  struct client_peer *peer = peer_of(&scene, 1);
  int64_t look_at = peer->look_at;
  while (peer->look_at == look_at) wait_for_timer(&scene);
  assert_int_equal(scene.net.closed_count, 0);
  stop_scene(&scene);
}

/* It serves sessions of a higher priority meanwhile. */
static void test_a_server_that_holds_requests_back_is_not_silent(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  push(&scene, &call, 0, 10);
  struct client_peer *peer = peer_of(&scene, 1);
  pwi_client_actor.held(scene.client, peer->link->link, true);
  for (int64_t end = scene.net.now + 10 * PWI_PEER_PATIENCE_MIN; scene.net.now < end;) wait_for_timer(&scene);
  assert_int_equal(scene.net.closed_count, 0);
  pwi_client_actor.held(scene.client, peer->link->link, false);
  while (scene.net.closed_count == 0) wait_for_timer(&scene);
  assert_int_equal(scene.net.closed[0].why, PAWL_LINK_SILENT);
  stop_scene(&scene);
}

static void test_a_wait_for_other_members_of_a_group_may_take_long(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  assert_int_equal(pwi_client_await(scene.client, &call.task, scene.group, 1), PAWL_OK);
  struct client_part *part = scene.group->first;
  assert_int_equal(part->state, PART_SENT);
  assert_int_equal(part->peer->look_at, 0);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_peer_is_made_once),
      T(a_queue_is_ordered_by_number),
      T(a_peer_is_due_once_until_it_is_taken),
      T(sums_count_the_parts_under_way),
      T(the_load_of_a_change_without_values_is_bounded),
      T(a_link_is_sought_again_with_longer_pauses),
      T(a_peer_without_work_needs_no_link),
      T(a_vector_of_a_sender_that_is_gone_ends),
      T(a_part_that_the_net_refuses_stays_queued),
      T(sending_waits_for_memory),
      T(a_bounded_number_of_parts_is_under_way),
      T(rows_that_are_not_in_a_buffer_have_a_checksum),
      T(a_link_without_answers_is_closed),
      T(a_link_that_answers_something_is_kept),
      T(a_server_that_holds_requests_back_is_not_silent),
      T(a_wait_for_other_members_of_a_group_may_take_long),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
