/* Row functions on the client's side: what becomes of the results that the answers to the parts of a call bring. */
#include "client/client_testing.h"
#include "protocol/run_result.h"

static void start_run(struct scene *scene, struct call *call) {
  *call = (struct call){.task.finished = call_finished};
  assert_int_equal(pwi_client_run(scene->client, &call->task, scene->flow, NULL, "work", pawl_range_of(0, 500)),
                   PAWL_OK);
  check_scene(scene);
}

/* The sum of the slice that begins at `origin`, for the keys of it that are in `range`. */
static struct pwi_run_result sum_of(uint64_t origin, struct pawl_range range, double sum) {
  return (struct pwi_run_result){
      .origin = origin, .range = range, .count = 1, .combine = {PAWL_ROW_SUM}, .values = {sum}};
}

/* The part is answered with one result. */
static void answer_run(struct scene *scene, const struct client_part *part, const struct pwi_run_result *result) {
  struct pwi_writer writer = {0};
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, part->number);
  pwi_run_result_write(&writer, result);
  assert_int_equal(part->state, PART_SENT);
  answer_number(scene, part->peer->node, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, writer.data,
                writer.size, NULL, 0);
  pwi_writer_fini(&writer);
}

/* The server that answers is a replica of an earlier version, and lacks the other results. */
static void test_the_outcome_is_unknown_if_results_do_not_cover_the_range(void **state) {
  static const struct pawl_range ranges[] = {{0, 499}, {1, 500}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    START;
    struct call call;
    struct pwi_run_result result = sum_of(0, ranges[i], 5);
    bring_up(&scene, 1);
    start_run(&scene, &call);
    answer_run(&scene, scene.flow->first, &result);
    assert_over(&call, PAWL_OUTCOME_UNKNOWN);
    assert_int_equal(call.task.result_count, 0);
    stop_scene(&scene);
  }
}

/* A server ran the function, and half of the keys have moved before its answer. */
static void test_the_result_of_a_slice_that_was_cut_counts_once(void **state) {
  START;
  struct call call;
  bring_up(&scene, 1);
  bring_up(&scene, 3);
  start_run(&scene, &call);
  struct client_part *part = scene.flow->first;
  answer(&scene, part, PWI_CODE_NOT_HERE);
  SEE(&scene, 2, {0, 1}, {200, 3}, {400, 1}, {500, 2});
  struct client_part *second = part->next, *third = second->next;
  struct pwi_run_result results[] = {sum_of(0, part->claim, 5), sum_of(0, second->claim, 5),
                                     sum_of(400, third->claim, 7)};
  answer_run(&scene, third, &results[2]);
  answer_run(&scene, second, &results[1]);
  answer_run(&scene, part, &results[0]);
  assert_over(&call, PAWL_OK);
  assert_int_equal(call.task.result_count, 1);
  assert_true(call.task.results[0] == 12);
  stop_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_outcome_is_unknown_if_results_do_not_cover_the_range),
      cmocka_unit_test(test_the_result_of_a_slice_that_was_cut_counts_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
