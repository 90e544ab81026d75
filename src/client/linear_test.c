/* Changes by another vector, which the parts of a LINEAR read: which pushes they follow, and which later changes wait for
 * them. client/part_test.c has the states of a part. */
#include "client/client_testing.h"

static void start_axpy(struct scene *scene, struct call *call, struct pwi_flow *y, struct pawl_range range) {
  *call = (struct call){.task.finished = call_finished};
  assert_int_equal(pwi_client_linear(scene->client, &call->task, y, scene->second, PWI_LINEAR_AXPY, 1, range), PAWL_OK);
  check_scene(scene);
}

static void axpy(struct scene *scene, struct call *call) {
  start_axpy(scene, call, scene->flow, pawl_range_of(0, 500));
}

/* The last request follows the part of a LINEAR. */
static void assert_names(const struct scene *scene, const struct client_part *reader) {
  struct request request = last_request(scene);
  struct pwi_read_first first;
  size_t size;
  const void *bytes = pwi_control_find(&request.control, request.sent->body, PWI_SECTION_READ_FIRST, &size);
  assert_int_equal(pwi_read_first_decode(bytes, size, &first), PAWL_OK);
  assert_int_equal(first.vector.id, reader->flow->entry.id.id);
  assert_int_equal(first.task, reader->number);
  assert_range(first.range, reader->claim.begin, reader->claim.end);
}

static void test_a_change_by_another_vector_waits_for_held_pushes_to_it(void **state) {
  START;
  struct call first, second, later;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_range(&scene, &first, scene.second, PWI_REQUEST_PUSH, 0, 10);
  answer(&scene, scene.second->first, PWI_CODE_NOT_HERE);
  axpy(&scene, &second);
  struct client_part *change = scene.flow->first;
  assert_int_equal(change->state, PART_BLOCKED);
  assert_int_equal(scene.second->readers > 0, true);
  wait_for_timer(&scene);
  answer(&scene, scene.second->first, PWI_CODE_OK);
  assert_int_equal(change->state, PART_SENT);
  /* A later push to the vector that it reads names it. If the server lacks it, the push waits for its answer. */
  start_range(&scene, &later, scene.second, PWI_REQUEST_PUSH, 0, 10);
  struct client_part *part = scene.second->first;
  assert_int_equal(part->state, PART_SENT);
  assert_names(&scene, change);
  answer(&scene, part, PWI_CODE_GAP);
  assert_int_equal(part->state, PART_BLOCKED);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&second, PAWL_OK);
  assert_int_equal(part->state, PART_SENT);
  struct request request = last_request(&scene);
  assert_int_equal(bytes_in(&request, PWI_SECTION_READ_FIRST), 0);
  assert_int_equal(scene.second->readers, 0);
  stop_scene(&scene);
}

/* The reader was answered in the meantime: the gap says nothing about the predecessors of the push. */
static void test_a_gap_because_of_a_reader_does_not_count(void **state) {
  START;
  struct call reads, changes;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  axpy(&scene, &reads);
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  struct client_part *part = scene.second->first;
  answer_failed(&scene, scene.flow->first, PAWL_FORBIDDEN);
  for (int gap = 0; gap < 2; gap++) {
    answer(&scene, part, PWI_CODE_GAP);
    assert_int_equal(part->state, PART_SENT);
  }
  answer(&scene, part, PWI_CODE_OK);
  assert_over(&changes, PAWL_OK);
  stop_scene(&scene);
}

/* Where the last one was applied, so were those before it. */
static void test_the_last_reader_stands_for_all_that_read_the_same_keys(void **state) {
  START;
  struct call reads, again, changes, later;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  start_axpy(&scene, &reads, scene.flow, pawl_range_of(0, 300));
  start_axpy(&scene, &again, scene.flow, pawl_range_of(0, 500));
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(scene.second->first->state, PART_SENT);
  assert_names(&scene, scene.flow->last);
  answer(&scene, scene.second->first, PWI_CODE_OK);
  answer_with(&scene, scene.flow->last, (struct pwi_outcome){.code = PWI_CODE_OK, .next = 200});
  start_range(&scene, &later, scene.second, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(scene.second->first->state, PART_BLOCKED); /* of the last reader only a part is left */
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_int_equal(scene.second->first->state, PART_SENT);
  stop_scene(&scene);
}

static void test_a_change_waits_for_readers_that_it_cannot_name(void **state) {
  START;
  struct call reads, other, changes, again;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  axpy(&scene, &reads);
  start_axpy(&scene, &other, scene.second, pawl_range_of(0, 500)); /* another vector: itself */
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  struct client_part *doubled = scene.second->first, *part = doubled->next;
  assert_int_equal(doubled->state, PART_SENT);
  assert_int_equal(part->state, PART_BLOCKED);
  answer(&scene, doubled, PWI_CODE_OK);
  assert_int_equal(part->state, PART_SENT); /* one is left */
  assert_names(&scene, scene.flow->first);
  answer(&scene, part, PWI_CODE_OK);
  answer(&scene, scene.flow->first, PWI_CODE_NOT_HERE);
  start_range(&scene, &again, scene.second, PWI_REQUEST_PUSH, 0, 10); /* the reader is not on its way */
  assert_int_equal(scene.second->first->state, PART_BLOCKED);
  wait_for_timer(&scene);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_int_equal(scene.second->first->state, PART_SENT);
  stop_scene(&scene);
}

/* It could name the last of them only, and the server of its keys may lack the other one. */
static void test_a_change_waits_for_readers_of_two_vectors(void **state) {
  START;
  struct call reads, other, changes;
  struct pwi_flow *third;
  add_entry(scene.client, 4, PWI_ENTRY_VECTOR, "job/third");
  assert_int_equal(pwi_client_flow(scene.client, (struct pwi_vector_id){4}, 0, &third), PAWL_OK);
  bring_up(&scene, 1);
  start_axpy(&scene, &reads, third, pawl_range_of(0, 500));
  start_axpy(&scene, &other, scene.flow, pawl_range_of(0, 500));
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(scene.second->first->state, PART_BLOCKED);
  answer(&scene, third->first, PWI_CODE_OK);
  assert_int_equal(scene.second->first->state, PART_SENT);
  assert_names(&scene, scene.flow->first);
  stop_scene(&scene);
}

/* The sum of a tick has pushes of others, for which it names no readers. */
static void test_a_push_of_a_group_waits_for_readers(void **state) {
  START;
  struct call reads = {.task.finished = call_finished}, changes;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  assert_int_equal(
      pwi_client_linear(scene.client, &reads.task, scene.second, scene.flow, PWI_LINEAR_AXPY, 1, pawl_range_of(0, 500)),
      PAWL_OK);
  start_aggregate(&scene, &changes, PWI_REQUEST_PUSH);
  assert_int_equal(scene.flow->first->state, PART_BLOCKED);
  answer(&scene, scene.second->first, PWI_CODE_OK);
  assert_int_equal(scene.flow->first->state, PART_SENT);
  struct request request = last_request(&scene);
  assert_int_equal(bytes_in(&request, PWI_SECTION_READ_FIRST), 0);
  stop_scene(&scene);
}

static void test_a_change_waits_for_a_reader_at_an_old_server(void **state) {
  START;
  struct call reads, changes;
  bring_up(&scene, 1);
  peer_of(&scene, 1)->link->peering.features = ~PWI_FEATURE_READ_FIRST;
  axpy(&scene, &reads);
  start_range(&scene, &changes, scene.second, PWI_REQUEST_PUSH, 0, 10);
  assert_int_equal(scene.second->first->state, PART_BLOCKED);
  answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_int_equal(scene.second->first->state, PART_SENT);
  stop_scene(&scene);
}

static void test_the_rest_of_a_change_is_asked_for_under_the_same_number(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 2);
  axpy(&scene, &call);
  struct client_part *part = scene.flow->first;
  uint64_t number = part->number;
  answer_with(&scene, part, (struct pwi_outcome){.code = PWI_CODE_OK, .next = 200});
  struct client_part *rest = scene.flow->first;
  assert_int_equal(rest->state, PART_SENT);
  assert_int_equal(rest->number, number);
  assert_range(rest->claim, 200, 500);
  assert_int_equal(call.finished, 0);
  while (scene.flow->first) answer(&scene, scene.flow->first, PWI_CODE_OK);
  assert_over(&call, PAWL_OK);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_change_by_another_vector_waits_for_held_pushes_to_it),
      T(a_gap_because_of_a_reader_does_not_count),
      T(the_last_reader_stands_for_all_that_read_the_same_keys),
      T(a_change_waits_for_readers_that_it_cannot_name),
      T(a_change_waits_for_readers_of_two_vectors),
      T(a_push_of_a_group_waits_for_readers),
      T(a_change_waits_for_a_reader_at_an_old_server),
      T(the_rest_of_a_change_is_asked_for_under_the_same_number),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
