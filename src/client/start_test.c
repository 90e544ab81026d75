/* Calls become parts: cut by arcs, by what was sent before, and by size. */
#include "client/client_testing.h"

/* The parts of the flow from `part` on have these claims. */
static void assert_claims(const struct client_part *part, const struct pawl_range *claims, size_t count) {
  for (size_t i = 0; i < count; i++, part = part->next) {
    assert_non_null(part);
    assert_range(part->claim, claims[i].begin, claims[i].end);
  }
  assert_null(part);
}

#define CLAIMS(part, ...)                                                                                              \
  do {                                                                                                                 \
    const struct pawl_range claims_seen[] = {__VA_ARGS__};                                                             \
    assert_claims(part, claims_seen, sizeof claims_seen / sizeof *claims_seen);                                        \
  } while (0)

static pawl_status start_keys(struct scene *scene, struct call *call, enum pwi_request_kind kind, const uint64_t *keys,
                              size_t count) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.keys = keys, .count = count};
  pawl_status status = pwi_client_start(scene->client, &call->task, scene->flow, kind, &where, scene->in, scene->out);
  check_scene(scene);
  return status;
}

/* --- arcs ----------------------------------------------------------------------------------------------- */

static void test_a_push_claims_whole_arcs(void **state) {
  START;
  struct call call;
  push(&scene, &call, 490, 510);
  CLAIMS(scene.flow->first, {0, 500}, {500, 1000});
  assert_range(scene.flow->first->range, 490, 500);
  assert_range(scene.flow->last->range, 500, 510);
  assert_ptr_equal(scene.flow->last->in, (const char *)(scene.in + 500));
  assert_int_equal(scene.flow->first->peer->node, 1);
  assert_int_equal(scene.flow->last->peer->node, 2);
  stop_scene(&scene);
}

static void test_a_pull_claims_only_the_keys_that_it_reads(void **state) {
  START;
  static const uint64_t keys[] = {7, 9, 700};
  struct call call;
  pull(&scene, &call, 490, 510);
  CLAIMS(scene.flow->first, {490, 500}, {500, 510});
  struct client_part *last = scene.flow->last;
  assert_int_equal(start_keys(&scene, &call, PWI_REQUEST_PULL, keys, 3), PAWL_OK);
  CLAIMS(last->next, {7, 10}, {700, 701});
  assert_int_equal(last->next->rows, 2);
  stop_scene(&scene);
}

static void test_arcs_of_one_node_make_one_part(void **state) {
  START;
  struct call call;
  SEE(&scene, 2, {0, 1}, {250, 1}, {500, 2}, {750, 1});
  push(&scene, &call, 0, 1000);
  CLAIMS(scene.flow->first, {0, 500}, {500, 750}, {750, 1000});
  assert_int_equal(scene.flow->first->rows, 500);
  stop_scene(&scene);
}

static void test_without_a_view_a_call_is_one_part(void **state) {
  START;
  struct call call;
  pwi_view_release(scene.client->view);
  scene.client->view = NULL;
  push(&scene, &call, 490, 510);
  CLAIMS(scene.flow->first, {0, 1000});
  assert_int_equal(scene.flow->first->state, PART_PARKED);
  stop_scene(&scene);
}

static void test_an_aggregate_has_a_part_on_every_arc_of_its_range(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  static const uint64_t keys[] = {1};
  struct pwi_where where = {.keys = keys, .count = 1, .aggregate = 3, .tick = 1};
  SEE(&scene, 2, {0, 1}, {250, 1}, {500, 2});
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  CLAIMS(scene.flow->first, {0, 250}, {250, 500}, {500, 1000});
  for (const struct client_part *part = scene.flow->first; part; part = part->next)
    assert_int_equal(part->aggregate, 3);
  assert_int_equal(scene.flow->last->rows, 0);
  stop_scene(&scene);
}

/* --- what was sent before ------------------------------------------------------------------------------- */

static void test_a_part_names_one_predecessor(void **state) {
  START;
  struct call first, second, third, read;
  push(&scene, &first, 0, 10);     /* task 1 on [0, 500) */
  push(&scene, &second, 500, 510); /* task 2 on [500, 1000) */
  assert_int_equal(scene.flow->last->prior, 0);
  SEE(&scene, 2, {0, 1});
  push(&scene, &third, 0, 10);
  struct client_part *part = scene.flow->first->next->next;
  CLAIMS(part, {0, 500}, {500, 1000}); /* the second names no key, and moves the clock */
  assert_int_equal(part->prior, 1);
  assert_int_equal(part->next->prior, 2);
  assert_int_equal(part->next->rows, 0);
  assert_int_equal(part->number, 3);
  pull(&scene, &read, 0, 10);
  assert_int_equal(scene.flow->last->prior, 3);
  assert_int_equal(scene.flow->last->number, 0);
  stop_scene(&scene);
}

static void test_a_forbidden_flow_names_no_predecessor_when_it_reads(void **state) {
  START;
  struct call first, second;
  push(&scene, &first, 0, 10);
  scene.flow->is_forbidden = true;
  pull(&scene, &second, 0, 10);
  assert_int_equal(scene.flow->last->prior, 0);
  stop_scene(&scene);
}

/* --- size ----------------------------------------------------------------------------------------------- */

static void test_a_large_call_is_cut_into_messages(void **state) {
  START;
  struct call call;
  scene.client->is_joined = false;
  scene.flow->row_bytes = scene.flow->pushed_bytes = PWI_PULL_SLICE / 100; /* rows of 5 KiB */
  pull(&scene, &call, 0, 250);
  size_t rows = 0;
  for (const struct client_part *part = scene.flow->first; part; part = part->next) {
    assert_true(part->rows <= 100);
    rows += part->rows;
  }
  assert_int_equal(rows, 250);
  assert_range(scene.flow->first->claim, 0, 100);
  stop_scene(&scene);
}

/* By the rows that the server makes of it, and by the work. */
static void test_a_push_of_factors_is_cut_by_its_rows(void **state) {
  START;
  static const int64_t operand[1];
  struct call call = {.task.finished = call_finished};
  scene.client->is_joined = false;
  scene.flow->row_bytes = scene.flow->pushed_bytes = PAWL_SLICE_BYTES / 100;
  struct pwi_where where = {.range = {0, 250}, .operand = operand, .operand_rows = 1};
  assert_int_equal(pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL),
                   PAWL_OK);
  size_t rows = 0;
  for (const struct client_part *part = scene.flow->first; part; part = part->next) {
    assert_true(part->rows <= 100 && part->operand_rows == 1);
    assert_ptr_equal(part->in, (const char *)scene.in + rows * scene.flow->value_size); /* one value for each key */
    rows += part->rows;
  }
  assert_int_equal(rows, 250);
  stop_scene(&scene);
}

/* --- calls that are wrong, or empty --------------------------------------------------------------------- */

static pawl_status try(struct scene *scene, struct pwi_where where, enum pwi_request_kind kind) {
  struct call call = {.task.finished = call_finished};
  pawl_status status = pwi_client_start(scene->client, &call.task, scene->flow, kind, &where, scene->in, scene->out);
  if (status) assert_int_equal(call.finished, 0);
  assert_int_equal(pwi_client_check(scene->client, scene->flow, kind, &where), status);
  check_scene(scene);
  return status;
}

static void test_a_wrong_call_is_refused(void **state) {
  START;
  static const uint64_t falling[] = {5, 3}, beyond[] = {5, 1000};
  assert_int_equal(try(&scene, (struct pwi_where){.keys = falling, .count = 2}, PWI_REQUEST_PUSH), PAWL_UNSORTED);
  assert_int_equal(try(&scene, (struct pwi_where){.keys = beyond, .count = 2}, PWI_REQUEST_PUSH), PAWL_OUT_OF_SPAN);
  assert_int_equal(try(&scene, (struct pwi_where){.range = {0, 1001}}, PWI_REQUEST_PULL), PAWL_OUT_OF_SPAN);
  assert_int_equal(try(&scene, (struct pwi_where){.range = {9, 3}}, PWI_REQUEST_PULL), PAWL_OUT_OF_SPAN);
  assert_int_equal(try(&scene, (struct pwi_where){.count = 3}, PWI_REQUEST_PUSH), PAWL_INVALID);
  const int64_t row = 1;
  struct pwi_where beside = {.range = {0, 9}, .operand = &row, .operand_rows = 1};
  assert_int_equal(try(&scene, beside, PWI_REQUEST_PULL), PAWL_INVALID);
  assert_int_equal(try(&scene, beside, PWI_REQUEST_RESTORE), PAWL_INVALID);
  beside.operand_rows = 0;
  assert_int_equal(try(&scene, beside, PWI_REQUEST_PUSH), PAWL_INVALID);
  beside.operand_rows = SIZE_MAX;
  assert_int_equal(try(&scene, beside, PWI_REQUEST_PUSH), PAWL_TOO_LARGE);
  assert_int_equal(scene.client->outstanding, 0);
  stop_scene(&scene);
}

static void test_a_client_that_may_only_read_cannot_push(void **state) {
  START;
  struct pwi_where where = {.range = {0, 10}};
  scene.client->joined.may_write = false;
  assert_int_equal(try(&scene, where, PWI_REQUEST_PUSH), PAWL_FORBIDDEN);
  scene.client->joined.may_write = true;
  scene.client->config.reader = true;
  assert_int_equal(try(&scene, where, PWI_REQUEST_PUSH), PAWL_FORBIDDEN);
  scene.client->config.reader = false;
  memcpy(scene.client->joined.space, "other", 6);
  assert_int_equal(try(&scene, where, PWI_REQUEST_PULL), PAWL_FORBIDDEN);
  memcpy(scene.client->joined.space, "job", 4);
  assert_int_equal(pwi_client_check(scene.client, scene.flow, PWI_REQUEST_PULL, &where), PAWL_OK);
  stop_scene(&scene);
}

static void test_a_client_that_is_going_or_dead_starts_nothing(void **state) {
  START;
  struct pwi_where where = {.range = {0, 10}};
  scene.client->is_leaving = true;
  assert_int_equal(try(&scene, where, PWI_REQUEST_PULL), PAWL_NODE_STOPPED);
  scene.client->is_dead = true;
  scene.client->died = PAWL_LINK_REVOKED;
  assert_int_equal(try(&scene, where, PWI_REQUEST_PULL), PAWL_LINK_REVOKED);
  stop_scene(&scene);
}

static void test_a_call_without_keys_finishes_at_once(void **state) {
  START;
  static const uint64_t none[1];
  struct call call;
  assert_int_equal(start_keys(&scene, &call, PWI_REQUEST_PULL, none, 0), PAWL_OK);
  assert_int_equal(call.finished, 1);
  assert_int_equal(call.task.status, PAWL_OK);
  uint64_t keys[1];
  call = (struct call){.task.finished = call_finished};
  assert_int_equal(pwi_client_scan(scene.client, &call.task, scene.flow, pawl_range_of(5, 5), 1, keys, scene.out),
                   PAWL_OK);
  assert_int_equal(call.finished, 1);
  assert_int_equal(call.task.found, 5);
  assert_null(scene.flow->first);
  stop_scene(&scene);
}

/* Of a call for which there is no memory every piece fails, or it is not begun. The next push is not held
 * up. */
static void test_a_call_without_memory_fails(void **state) {
  (void)state;
  for (uint64_t n = 0; n < 100; n++) {
    struct scene scene;
    struct call call = {.task.finished = call_finished}, next;
    struct pwi_where where = {.range = {490, 510}};
    start_scene(&scene);
    scene.client->is_joined = false;
    pwi_memory_fail_after(n);
    pawl_status status =
        pwi_client_start(scene.client, &call.task, scene.flow, PWI_REQUEST_PUSH, &where, scene.in, NULL);
    bool failed = pwi_memory_fail_cancel();
    check_scene(&scene);
    if (call.finished) assert_int_equal(call.task.status, PAWL_NO_MEMORY);
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
    push(&scene, &next, 490, 510);
    bring_up(&scene, 1);
    bring_up(&scene, 2);
    scene.client->is_joined = true;
    pwi_parts_unpark(scene.client, true);
    pwi_client_send_due(scene.client);
    while (scene.flow->first) {
      if (scene.flow->first->state != PART_SENT) wait_for_timer(&scene);
      if (scene.flow->first->state == PART_SENT) answer(&scene, scene.flow->first, PWI_CODE_OK);
    }
    assert_int_equal(next.task.status, PAWL_OK);
    stop_scene(&scene);
    if (!failed) return;
  }
  fail();
}

static void test_a_flow_is_found_again(void **state) {
  START;
  struct pwi_flow *flow;
  assert_int_equal(pwi_client_flow(scene.client, (struct pwi_vector_id){1}, 0, &flow), PAWL_OK);
  assert_ptr_equal(flow, scene.flow);
  assert_int_equal(pwi_client_flow(scene.client, (struct pwi_vector_id){99}, 0, &flow), PAWL_NOT_FOUND);
  stop_scene(&scene);
}

/* --- groups and linear algebra -------------------------------------------------------------------------- */

static void test_a_request_about_a_group_claims_one_key(void **state) {
  START;
  struct call first = {.task.finished = call_finished}, second = first, wrong = first;
  uint64_t key = pwi_group_key(scene.group->entry.name);
  assert_int_equal(pwi_client_enter(scene.client, &first.task, scene.group), PAWL_OK);
  assert_true(scene.group->has_entered);
  assert_int_equal(pwi_client_tick(scene.client, &second.task, scene.group, 4), PAWL_OK);
  CLAIMS(scene.group->first, {key, key + 1}, {key, key + 1});
  assert_int_equal(scene.group->last->prior, scene.group->first->number);
  assert_int_equal(scene.group->ticked, 4);
  assert_int_equal(pwi_client_await(scene.client, &wrong.task, scene.flow, 4), PAWL_INVALID);
  stop_scene(&scene);
}

static void test_two_vectors_of_an_operation_must_match(void **state) {
  START;
  struct call call = {.task.finished = call_finished};
  struct pawl_range all = {0, 0};
  scene.second->row_bytes *= 2;
  assert_int_equal(pwi_client_linear(scene.client, &call.task, scene.flow, scene.second, PWI_LINEAR_COPY, 0, all),
                   PAWL_MISMATCH);
  scene.second->row_bytes /= 2;
  assert_int_equal(
      pwi_client_linear(scene.client, &call.task, scene.flow, scene.second, PWI_LINEAR_COPY, 0, pawl_range_of(0, 1001)),
      PAWL_OUT_OF_SPAN);
  assert_int_equal(pwi_client_fold_column(scene.client, &call.task, scene.flow, PWI_LINEAR_ABS, 1, all), PAWL_INVALID);
  assert_int_equal(call.finished, 0);
  stop_scene(&scene);
}

static void test_an_operation_is_cut_by_earlier_pushes_to_either_vector(void **state) {
  START;
  struct call first, call = {.task.finished = call_finished};
  SEE(&scene, 2, {0, 1}, {250, 2}, {500, 2});
  start_range(&scene, &first, scene.second, PWI_REQUEST_PUSH, 0, 10); /* claims [0, 250) */
  SEE(&scene, 3, {0, 1}, {500, 2});
  assert_int_equal(pwi_client_linear(scene.client, &call.task, scene.flow, scene.second, PWI_LINEAR_AXPY, 2, PAWL_ALL),
                   PAWL_OK);
  CLAIMS(scene.flow->first, {0, 250}, {250, 500}, {500, 1000});
  assert_int_equal(scene.flow->first->operation.prior, 1);
  assert_int_equal(scene.flow->last->operation.prior, 0);
  assert_int_equal(scene.second->readers, 3);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_push_claims_whole_arcs),
      T(a_pull_claims_only_the_keys_that_it_reads),
      T(arcs_of_one_node_make_one_part),
      T(without_a_view_a_call_is_one_part),
      T(an_aggregate_has_a_part_on_every_arc_of_its_range),
      T(a_part_names_one_predecessor),
      T(a_forbidden_flow_names_no_predecessor_when_it_reads),
      T(a_large_call_is_cut_into_messages),
      T(a_push_of_factors_is_cut_by_its_rows),
      T(a_wrong_call_is_refused),
      T(a_client_that_may_only_read_cannot_push),
      T(a_client_that_is_going_or_dead_starts_nothing),
      T(a_call_without_keys_finishes_at_once),
      T(a_call_without_memory_fails),
      T(a_flow_is_found_again),
      T(a_request_about_a_group_claims_one_key),
      T(two_vectors_of_an_operation_must_match),
      T(an_operation_is_cut_by_earlier_pushes_to_either_vector),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
