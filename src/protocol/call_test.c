/* Graphs of calls and their results as bytes. */
#include "protocol/call.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

static const struct pawl_graph_call three[] = {{"last", "zz", 2}, {"space/first", NULL, 0}, {"middle", "y", 1}};
static const struct pawl_edge in_order[] = {{1, 2}, {2, 0}, {1, 0}};

static struct pwi_call_graph *make_three(void) {
  struct pwi_call_graph *graph = NULL;
  uint32_t culprit;
  assert_int_equal(pwi_call_graph_create(three, 3, in_order, 3, &graph, &culprit), PAWL_OK);
  return graph;
}

static void test_a_graph_comes_out_as_it_went_in(void **state) {
  (void)state;
  struct pwi_call_graph *graph = make_three(), *again = NULL;
  struct pwi_writer writer = {0};
  uint64_t target = 0;
  static const uint32_t sorted[] = {1, 2, 0};
  assert_memory_equal(graph->sorted, sorted, sizeof sorted);
  pwi_call_encode(42, graph, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  assert_int_equal(pwi_call_decode(writer.data, writer.size, &target, &again), PAWL_OK);
  assert_int_equal(target, 42);
  assert_int_equal(again->count, 3);
  assert_int_equal(again->edge_count, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_string_equal(again->items[i].name, three[i].name);
    assert_int_equal(again->items[i].size, three[i].size);
    assert_memory_equal(again->items[i].argument, three[i].size ? three[i].argument : "", three[i].size);
    assert_int_equal(again->edges[i].from, in_order[i].from);
    assert_int_equal(again->edges[i].to, in_order[i].to);
  }
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal((uintptr_t)graph->items[i].argument % _Alignof(max_align_t), 0);
    assert_int_equal((uintptr_t)again->items[i].argument % _Alignof(max_align_t), 0);
  }
  assert_memory_equal(again->sorted, sorted, sizeof sorted);
  pwi_call_graph_destroy(again);
  pwi_call_graph_destroy(graph);
  pwi_writer_fini(&writer);
}

static void test_names_are_words_with_slashes(void **state) {
  (void)state;
  static const char *const good[] = {"f", "a/b", "a/b/c", ".wait", "A-1_x.y"};
  static const char *const bad[] = {"", "/", "a/", "/a", "a//b", "a b", "\xc3\xa4", "a\n"};
  char longest[PAWL_NAME_MAX + 2];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(pwi_call_name_check(good[i]), PAWL_OK);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(pwi_call_name_check(bad[i]), PAWL_INVALID);
  assert_int_equal(pwi_call_name_check(NULL), PAWL_INVALID);
  memset(longest, 'n', sizeof longest);
  longest[PAWL_NAME_MAX + 1] = '\0';
  assert_int_equal(pwi_call_name_check(longest), PAWL_INVALID);
  longest[PAWL_NAME_MAX] = '\0';
  assert_int_equal(pwi_call_name_check(longest), PAWL_OK);
}

static void test_the_mistake_in_a_graph_is_named(void **state) {
  (void)state;
  struct pwi_call_graph *graph;
  uint32_t culprit;
  struct pawl_graph_call calls[3];
  memcpy(calls, three, sizeof calls);
  struct pawl_edge ring[] = {{0, 1}, {1, 0}}, nowhere[] = {{0, 3}};
  assert_int_equal(pwi_call_graph_create(calls, 3, ring, 2, &graph, &culprit), PAWL_INVALID);
  assert_in_range(culprit, 0, 1);
  assert_int_equal(pwi_call_graph_create(calls, 3, nowhere, 1, &graph, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, 3);
  assert_int_equal(pwi_call_graph_create(calls, 0, NULL, 0, &graph, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, PAWL_CALL_NONE);
  assert_int_equal(pwi_call_graph_create(calls, 3, NULL, 1, &graph, &culprit), PAWL_INVALID);
  assert_int_equal(pwi_call_graph_create(calls, PAWL_GRAPH_CALLS + 1, NULL, 0, &graph, &culprit), PAWL_TOO_LARGE);
  assert_int_equal(pwi_call_graph_create(calls, 3, ring, PAWL_GRAPH_EDGES + 1, &graph, &culprit), PAWL_TOO_LARGE);
  calls[2].name = "no name";
  assert_int_equal(pwi_call_graph_create(calls, 3, NULL, 0, &graph, &culprit), PAWL_INVALID);
  assert_int_equal(culprit, 2);
  calls[2] = (struct pawl_graph_call){"f", "", PAWL_CALL_BYTES};
  assert_int_equal(pwi_call_graph_create(calls, 3, NULL, 0, &graph, &culprit), PAWL_TOO_LARGE);
  calls[2] = (struct pawl_graph_call){"f", "", SIZE_MAX};
  assert_int_equal(pwi_call_graph_create(calls, 3, NULL, 0, &graph, &culprit), PAWL_TOO_LARGE);
}

static void test_a_cycle_in_the_bytes_is_refused(void **state) {
  (void)state;
  struct pwi_call_graph *graph = make_three(), *again = NULL;
  struct pwi_writer writer = {0};
  uint64_t target;
  graph->edges[2] = (struct pwi_edge){0, 1};
  pwi_call_encode(1, graph, &writer);
  assert_int_equal(pwi_call_decode(writer.data, writer.size, &target, &again), PAWL_INVALID);
  graph->edges[2] = (struct pwi_edge){0, 3};
  pwi_writer_reset(&writer);
  pwi_call_encode(1, graph, &writer);
  assert_int_equal(pwi_call_decode(writer.data, writer.size, &target, &again), PAWL_INVALID);
  assert_null(again);
  pwi_call_graph_destroy(graph);
  pwi_writer_fini(&writer);
}

static const struct pwi_call_result results[] = {
    {PAWL_OK, PAWL_CALL_NONE, "abc", 3}, {PAWL_IO, PAWL_CALL_NONE, "", 0}, {PAWL_CANCELLED, 1, NULL, 0}};

static void test_results_come_out_as_they_went_in(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_call_return back;
  pwi_call_return_encode(PWI_CALL_CODE_DONE, results, 3, &writer);
  assert_int_equal(pwi_call_return_decode(writer.data, writer.size, &back), PAWL_OK);
  assert_int_equal(back.code, PWI_CALL_CODE_DONE);
  assert_int_equal(back.count, 3);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(back.results[i].status, results[i].status);
    assert_int_equal(back.results[i].cause, results[i].cause);
    assert_int_equal(back.results[i].size, results[i].size);
    assert_int_equal((uintptr_t)back.results[i].bytes % _Alignof(max_align_t), 0);
  }
  assert_memory_equal(back.results[0].bytes, "abc", 3);
  pwi_call_return_fini(&back);
  pwi_writer_fini(&writer);
}

static void test_results_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const struct pwi_call_result wrong[] = {
      {(pawl_status)1, PAWL_CALL_NONE, NULL, 0}, /* no status */
      {PAWL_IO, 1, NULL, 0},                     /* it has begun, so nothing else is to blame */
      {PAWL_CANCELLED, 0, NULL, 0},              /* itself */
      {PAWL_CANCELLED, 2, NULL, 0},              /* nobody */
  };
  struct pwi_writer writer = {0};
  struct pwi_call_return back;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pwi_call_result two[] = {wrong[i], results[0]};
    pwi_writer_reset(&writer);
    pwi_call_return_encode(PWI_CALL_CODE_DONE, two, 2, &writer);
    assert_int_equal(pwi_call_return_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  }
  for (int code = PWI_CALL_CODE_LATER; code < 4; code++) {
    pwi_writer_reset(&writer);
    pwi_call_return_encode((enum pwi_call_code)code, results, 3, &writer);
    assert_int_equal(pwi_call_return_decode(writer.data, writer.size, &back), PAWL_CORRUPT);
  }
  pwi_writer_fini(&writer);
}

/* Every prefix of the bytes, and the bytes with any one byte changed. */
static void test_damaged_bytes_are_never_taken_for_more_than_they_are(void **state) {
  (void)state;
  struct pwi_call_graph *graph = make_three(), *again = NULL;
  struct pwi_writer call = {0}, back = {0};
  struct pwi_call_return found;
  struct pwi_random random;
  uint64_t target, seed = 3;
  printf("seed %llu\n", (unsigned long long)seed);
  pwi_random_init(&random, seed, 0);
  pwi_call_encode(42, graph, &call);
  pwi_call_return_encode(PWI_CALL_CODE_DONE, results, 3, &back);
  for (size_t size = 0; size < call.size; size++)
    assert_int_equal(pwi_call_decode(call.data, size, &target, &again), PAWL_CORRUPT);
  for (size_t size = 0; size < back.size; size++)
    assert_int_equal(pwi_call_return_decode(back.data, size, &found), PAWL_CORRUPT);
  for (int round = 0; round < 20000; round++) {
    unsigned char bytes[256];
    const struct pwi_writer *from = round % 2 ? &call : &back;
    assert_true(from->size <= sizeof bytes);
    memcpy(bytes, from->data, from->size);
    bytes[pwi_random_below(&random, from->size)] ^= (unsigned char)(1u << pwi_random_below(&random, 8));
    if (round % 2 == 0) {
      if (pwi_call_return_decode(bytes, from->size, &found) == PAWL_OK) pwi_call_return_fini(&found);
    } else if (pwi_call_decode(bytes, from->size, &target, &again) == PAWL_OK) {
      pwi_call_graph_destroy(again);
    }
  }
  pwi_call_graph_destroy(graph);
  pwi_writer_fini(&call);
  pwi_writer_fini(&back);
}

static void test_without_memory_nothing_is_made(void **state) {
  (void)state;
  struct pwi_call_graph *graph = make_three(), *again;
  struct pwi_writer call = {0}, back = {0};
  struct pwi_call_return found;
  uint64_t target;
  uint32_t culprit;
  bool failed = true;
  pwi_call_encode(42, graph, &call);
  pwi_call_return_encode(PWI_CALL_CODE_DONE, results, 3, &back);
  pwi_call_graph_destroy(graph);
  for (uint64_t n = 0; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_call_graph_create(three, 3, in_order, 3, &again, &culprit);
    failed = pwi_memory_fail_cancel() > 0;
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (!failed) pwi_call_graph_destroy(again);
  }
  failed = true;
  for (uint64_t n = 0; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_call_decode(call.data, call.size, &target, &again);
    failed = pwi_memory_fail_cancel() > 0;
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (!failed) pwi_call_graph_destroy(again);
  }
  failed = true;
  for (uint64_t n = 0; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_call_return_decode(back.data, back.size, &found);
    failed = pwi_memory_fail_cancel() > 0;
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (!failed) pwi_call_return_fini(&found);
  }
  pwi_writer_fini(&call);
  pwi_writer_fini(&back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_graph_comes_out_as_it_went_in),
      cmocka_unit_test(test_names_are_words_with_slashes),
      cmocka_unit_test(test_the_mistake_in_a_graph_is_named),
      cmocka_unit_test(test_a_cycle_in_the_bytes_is_refused),
      cmocka_unit_test(test_results_come_out_as_they_went_in),
      cmocka_unit_test(test_results_that_cannot_be_are_refused),
      cmocka_unit_test(test_damaged_bytes_are_never_taken_for_more_than_they_are),
      cmocka_unit_test(test_without_memory_nothing_is_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
