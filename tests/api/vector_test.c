/* Vectors, tasks and key lists against real servers: one cluster of two servers with two shards each for all tests. */
#define SERVERS 2
#define SHARDS 2
#include "session_scene.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"

/* --- what goes in comes out ------------------------------------------------------------------------------------------ */

static void test_keys_ranges_and_lists_name_the_same_rows(void **state) {
  struct pawl_vector *vector = create(session, "t/rows", PAWL_F64, 1000);
  double all[1000], some[3] = {1, 2, 3}, got[3];
  uint64_t keys[3] = {0, 499, 999};
  struct pawl_keys *list;
  (void)state;
  for (int i = 0; i < 1000; i++) all[i] = i;
  push(vector, pawl_at_range(0, 1000), all);
  push(vector, pawl_at_keys(keys, 3), some);
  must(pawl_keys_create(vector, keys, 3, &list));
  for (int round = 0; round < 3; round++) {
    memset(got, 0, sizeof got);
    pull(vector, pawl_at_list(list), got);
    assert_true(got[0] == 1 && got[1] == 501 && got[2] == 1002);
  }
  push(vector, pawl_at_list(list), some);
  pull(vector, pawl_at_range(0, 1000), all);
  assert_true(all[0] == 2 && all[499] == 503 && all[999] == 1005 && all[500] == 500);
  pawl_keys_destroy(list);
  pawl_vector_close(vector);
}

static void test_a_range_beside_a_list_picks_from_it(void **state) {
  struct pawl_vector *vector = create(session, "t/picked", PAWL_I64, 100);
  uint64_t keys[4] = {10, 20, 30, 40};
  int64_t ones[4] = {1, 1, 1, 1}, got[4] = {-1, -1, -1, -1};
  struct pawl_where where = pawl_at_keys(keys, 4);
  (void)state;
  push(vector, where, ones);
  where.range = pawl_range_of(20, 40);
  pull(vector, where, got);
  assert_true(got[0] == -1 && got[1] == 1 && got[2] == 1 && got[3] == -1);
}

static void test_pushpull_returns_what_is_stored_afterwards(void **state) {
  struct pawl_vector *vector = create(session, "t/both", PAWL_I32, PAWL_KEY_END);
  uint64_t keys[3] = {5, UINT64_C(1) << 40, UINT64_MAX - 1};
  int32_t values[3] = {1, 2, 3};
  struct pawl_task *task;
  (void)state;
  for (int round = 0; round < 3; round++) {
    must(pawl_vector_pushpull(vector, pawl_at_keys(keys, 3), values, values, &task));
    must(pawl_task_finish(task, PATIENCE));
  }
  assert_true(values[0] == 4 && values[1] == 8 && values[2] == 12);
}

/* The rows of a push as sums of products, over all arcs, by ranges, lists and mixed keys, from any memory, with and
 * without filters. */
static void check_factors(const char *name, enum pawl_placement placement, const char *filters, bool by_keys) {
  enum { ROWS = 60, WIDTH = 5, PAIRS = 3 };
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  struct pawl_task *task;
  float *u, *v, got[ROWS * WIDTH], again[ROWS * WIDTH];
  uint64_t keys[ROWS];
  pawl_vector_options_init(&options);
  options.type = PAWL_F32;
  options.size = placement == PAWL_PLACE_MIXED ? PAWL_KEY_END : ROWS;
  options.width = WIDTH;
  options.placement = placement;
  snprintf(options.filters, sizeof options.filters, "%s", filters);
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  must(pawl_buffer_create(session, ROWS * PAIRS * sizeof *u, (void **)&u));
  must(pawl_buffer_create(session, PAIRS * WIDTH * sizeof *v, (void **)&v));
  for (int i = 0; i < ROWS * PAIRS; i++) u[i] = i % 4 ? 0 : (float)(i % 7);
  for (int i = 0; i < PAIRS * WIDTH; i++) v[i] = i % 3 ? 0 : (float)(i + 1);
  for (uint64_t i = 0; i < ROWS; i++) keys[i] = i;
  struct pawl_where where = by_keys ? pawl_at_keys(keys, ROWS) : pawl_at_range(0, ROWS), plain = where;
  where.operand = v;
  where.operand_rows = PAIRS;
  for (int round = 0; round < 2; round++) push(vector, where, u);
  must(pawl_vector_pushpull(vector, where, u, again, &task));
  must(pawl_task_finish(task, PATIENCE));
  pull(vector, plain, got);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < WIDTH; j++) {
      float wanted = 0;
      for (int k = 0; k < PAIRS; k++) wanted += 3 * u[i * PAIRS + k] * v[k * WIDTH + j];
      if (got[i * WIDTH + j] != wanted) fail_msg("%s: row %d, value %d", name, i, j);
    }
  assert_memory_equal(got, again, sizeof got);
  where.operand_rows = 0;
  must_fail(pawl_vector_push(vector, where, u, NULL), PAWL_INVALID, "operand_rows is 0");
  where.operand_rows = PAWL_SLICE_BYTES;
  must_fail(pawl_vector_push(vector, where, u, NULL), PAWL_TOO_LARGE, "64 MiB");
  where.operand_rows = 1;
  must_fail(pawl_vector_pull(vector, where, got, NULL), PAWL_INVALID, "operand");
  pawl_buffer_destroy(session, u);
  pawl_buffer_destroy(session, v);
  pawl_vector_close(vector);
}

static void test_a_push_of_factors_is_one_of_their_products(void **state) {
  (void)state;
  check_factors("t/factors.range", PAWL_PLACE_ORDERED, "", false);
  check_factors("t/factors.keys", PAWL_PLACE_ORDERED, "", true);
  check_factors("t/factors.mixed", PAWL_PLACE_MIXED, "", true);
  check_factors("t/factors.zeros", PAWL_PLACE_ORDERED, "keys | zeros", true);
  check_factors("t/factors.compressed", PAWL_PLACE_ORDERED, "compress", false);
}

static void test_lossy_filters_take_no_factors(void **state) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  double one = 1;
  (void)state;
  pawl_vector_options_init(&options);
  options.size = 10;
  snprintf(options.filters, sizeof options.filters, "half");
  must(pawl_vector_create(session, "t/factors.lossy", &options, PATIENCE, &vector));
  struct pawl_where where = pawl_at_range(0, 1);
  where.operand = &one;
  where.operand_rows = 1;
  must_fail(pawl_vector_push(vector, where, &one, NULL), PAWL_UNSUPPORTED, "without an operand");
  pawl_vector_close(vector);
}

static void test_a_shared_buffer_is_as_good_as_other_memory(void **state) {
  enum { COUNT = 100000 };
  struct pawl_vector *vector = create(session, "t/buffer", PAWL_F32, COUNT);
  void *memory;
  (void)state;
  must(pawl_buffer_create(session, COUNT * sizeof(float), &memory));
  assert_int_equal((uintptr_t)memory % 64, 0);
  float *values = memory, last;
  for (int i = 0; i < COUNT; i++) {
    assert_true(values[i] == 0);
    values[i] = (float)i;
  }
  push(vector, pawl_at_range(0, COUNT), values);
  pull(vector, pawl_at_range(COUNT - 1, COUNT), &last);
  assert_true(last == COUNT - 1);
  pawl_buffer_destroy(session, memory);
  pawl_buffer_destroy(session, NULL);
}

static void test_a_scan_finds_the_keys_that_were_written(void **state) {
  struct pawl_vector *vector = create(session, "t/scan", PAWL_I64, PAWL_KEY_END - 1);
  uint64_t keys[100], found[7], next = 0;
  int64_t values[100], rows[7], sum = 0;
  size_t count, total = 0;
  (void)state;
  for (uint64_t i = 0; i < 100; i++) {
    keys[i] = i * (UINT64_MAX / 101);
    values[i] = (int64_t)i;
  }
  push(vector, pawl_at_keys(keys, 100), values);
  while (next < PAWL_KEY_END - 1) {
    must(pawl_vector_scan(vector, pawl_range_of(next, PAWL_KEY_END - 1), 7, found, rows, PATIENCE, &count, &next));
    for (size_t i = 0; i < count; i++) {
      assert_int_equal(found[i], keys[total + i]);
      sum += rows[i];
    }
    total += count;
  }
  assert_int_equal(total, 100);
  assert_int_equal(sum, 99 * 100 / 2);
}

static void test_nothing_to_do_is_done_at_once(void **state) {
  struct pawl_vector *vector = create(session, "t/nothing", PAWL_F32, 10);
  struct pawl_task *task;
  uint64_t key = 1;
  (void)state;
  must(pawl_vector_push(vector, pawl_at_keys(NULL, 0), NULL, &task));
  assert_true(pawl_task_is_done(task));
  must(pawl_task_finish(task, 0));
  must(pawl_vector_pull(vector, pawl_at_keys(&key, 0), NULL, NULL));
  must(pawl_vector_pull(vector, pawl_at_range(5, 5), NULL, NULL));
}

static void test_an_empty_range_names_nothing(void **state) {
  struct pawl_vector *vector = create(session, "t/empty", PAWL_F32, 10);
  struct pawl_range empty[] = {pawl_range_of(0, 0), pawl_range_of(5, 5), pawl_range_of(10, 10)};
  float ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, got[10];
  uint64_t keys[3] = {0, 4, 9}, next;
  struct pawl_where zeros = {.keys = keys, .count = 3};
  struct pawl_keys *list;
  size_t count;
  (void)state;
  must(pawl_keys_create(vector, keys, 3, &list));
  for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
    struct pawl_where places[] = {pawl_at_range(empty[i].begin, empty[i].end), pawl_at_keys(keys, 3),
                                  pawl_at_list(list)};
    for (size_t at = 0; at < sizeof places / sizeof *places; at++) {
      places[at].range = empty[i];
      for (size_t row = 0; row < 10; row++) got[row] = -1;
      push(vector, places[at], ones);
      pull(vector, places[at], got);
      for (size_t row = 0; row < 10; row++) assert_true(got[row] == -1);
    }
    must(pawl_vector_scan(vector, empty[i], 3, keys, got, PATIENCE, &count, &next));
    assert_true(count == 0 && next == empty[i].end);
  }
  push(vector, zeros, ones);
  push(vector, pawl_at_keys(NULL, 0), ones);
  push(vector, pawl_at_list(NULL), ones);
  pull(vector, pawl_at_range(0, 10), got);
  for (size_t row = 0; row < 10; row++) assert_true(got[row] == 0);
  must_fail(pawl_vector_push(vector, pawl_at_keys(NULL, 2), ones, NULL), PAWL_INVALID, "keys is NULL but count is 2");
  must_fail(pawl_vector_scan(vector, pawl_range_of(3, 2), 3, keys, got, PATIENCE, &count, &next), PAWL_INVALID,
            "the range ends before it begins");
  pawl_keys_destroy(list);
}

static void test_all_is_the_whole_span(void **state) {
  struct pawl_vector *vector = create(session, "t/all", PAWL_F32, 10), *mixed;
  float rows[10], got[10];
  uint64_t keys[10] = {1, 7}, next;
  struct pawl_range rest = PAWL_ALL;
  size_t count, sum = 0;
  (void)state;
  for (size_t row = 0; row < 10; row++) rows[row] = (float)row;
  push(vector, pawl_at_range(0, PAWL_KEY_END), rows);
  pull(vector, pawl_at_range(3, PAWL_KEY_END), got);
  assert_memory_equal(got, rows + 3, 7 * sizeof *rows);
  while (!pawl_range_is_empty(rest)) {
    must(pawl_vector_scan(vector, rest, 4, keys, got, PATIENCE, &count, &next));
    rest.begin = next;
    sum += count;
  }
  assert_true(sum >= 9 && rest.begin == PAWL_KEY_END);
  must_fail(pawl_vector_pull(vector, pawl_at_range(11, PAWL_KEY_END), got, NULL), PAWL_OUT_OF_SPAN, "t/all");
  mixed = create(session, "t/all-mixed", PAWL_F32, PAWL_KEY_END);
  must_fail(pawl_vector_pull(mixed, pawl_at_range(0, PAWL_KEY_END), got, NULL), PAWL_UNSUPPORTED, "key lists");
}

/* --- what is wrong is said --------------------------------------------------------------------------------------------- */

static void test_bad_keys_are_refused_by_position(void **state) {
  struct pawl_vector *vector = create(session, "t/bad", PAWL_F32, 100);
  uint64_t unsorted[] = {1, 5, 4}, repeated[] = {1, 7, 7}, far[] = {1, 100};
  float values[3] = {0};
  struct pawl_task *task = NULL;
  struct pawl_keys *list = NULL;
  (void)state;
  must_fail(pawl_vector_push(vector, pawl_at_keys(unsorted, 3), values, &task), PAWL_UNSORTED,
            "push to t/bad: key 4 at position 2 is not above the one before");
  must_fail(pawl_vector_pull(vector, pawl_at_keys(repeated, 3), values, &task), PAWL_UNSORTED, "key 7 at position 2");
  must_fail(pawl_vector_push(vector, pawl_at_keys(far, 2), values, &task), PAWL_OUT_OF_SPAN,
            "key 100 at position 1 is outside the span [0, 100)");
  must_fail(pawl_vector_push(vector, pawl_at_range(90, 101), values, &task), PAWL_OUT_OF_SPAN, "[90, 101)");
  must_fail(pawl_keys_create(vector, unsorted, 3, &list), PAWL_UNSORTED, "key list for t/bad");
  must_fail(pawl_vector_push(vector, pawl_at_range(9, 5), values, &task), PAWL_INVALID, "ends before it begins");
  must_fail(pawl_vector_push(vector, pawl_at_range(5, 9), NULL, &task), PAWL_INVALID, "values or values_out is NULL");
  must_fail(pawl_vector_push(vector, pawl_at_keys(NULL, 2), values, &task), PAWL_INVALID,
            "keys is NULL but count is 2");
  assert_null(task);
  assert_null(list);
  must(pawl_session_flush(session, PATIENCE)); /* nothing of it was started */
}

static void test_ranges_of_mixed_vectors_and_lists_of_others_are_refused(void **state) {
  struct pawl_vector *mixed = create(session, "t/mixed", PAWL_F32, PAWL_KEY_END);
  struct pawl_vector *other = create(session, "t/other", PAWL_F32, 100);
  uint64_t key = 3;
  float value = 0;
  struct pawl_keys *list;
  (void)state;
  must_fail(pawl_vector_pull(mixed, pawl_at_range(3, 4), &value, NULL), PAWL_UNSUPPORTED, "mixed");
  must(pawl_keys_create(mixed, &key, 1, &list));
  must_fail(pawl_vector_push(other, pawl_at_list(list), &value, NULL), PAWL_INVALID, "another vector");
}

static void test_names_and_options_are_checked(void **state) {
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  (void)state;
  must_fail(pawl_vector_open(session, "t/unknown", PATIENCE, &vector), PAWL_NOT_FOUND, "open t/unknown");
  must_fail(pawl_vector_create(session, "noslash", NULL, PATIENCE, &vector), PAWL_INVALID, "noslash");
  must_fail(pawl_vector_create(session, "t/.hidden", NULL, PATIENCE, &vector), PAWL_INVALID, "t/.hidden");
  must_fail(pawl_vector_delete(session, "t/unknown", PATIENCE), PAWL_NOT_FOUND, "delete t/unknown");
  pawl_vector_options_init(&options);
  options.width = 0;
  must_fail(pawl_vector_create(session, "t/narrow", &options, PATIENCE, &vector), PAWL_INVALID, "t/narrow");
  must_fail(pawl_vector_open_local(session, "t/rows", PATIENCE, &vector), PAWL_INVALID, "listen");
  assert_null(vector);
}

static void test_ensure_opens_what_is_there_and_compares_options(void **state) {
  struct pawl_vector_options options;
  struct pawl_vector *first, *second, *third = NULL;
  struct pawl_vector_info info;
  (void)state;
  pawl_vector_options_init(&options);
  options.size = 50;
  must(pawl_vector_ensure(session, "t/ensured", &options, PATIENCE, &first));
  must(pawl_vector_ensure(session, "t/ensured", &options, PATIENCE, &second));
  pawl_vector_info(second, &info);
  assert_string_equal(info.name, "t/ensured");
  assert_int_equal(info.options.layout, PAWL_LAYOUT_DENSE);
  assert_int_equal(info.options.placement, PAWL_PLACE_ORDERED);
  must_fail(pawl_vector_create(session, "t/ensured", &options, PATIENCE, &third), PAWL_EXISTS, "t/ensured");
  options.width = 2;
  must_fail(pawl_vector_ensure(session, "t/ensured", &options, PATIENCE, &third), PAWL_EXISTS, "other options");
  must_fail(pawl_vector_ensure(session, "t/ensured", &options, PATIENCE, &third), PAWL_EXISTS, "its width is 1, not 2");
  must_fail(pawl_vector_create(session, "t/ensured", &options, PATIENCE, &third), PAWL_EXISTS, "its width is 1, not 2");
  assert_null(third);
}

static void test_a_list_of_vectors_is_by_name_and_by_space(void **state) {
  struct pawl_vector_info *infos;
  size_t count;
  (void)state;
  create(session, "list/b", PAWL_F32, 10);
  create(session, "list/a", PAWL_F64, 10);
  must(pawl_vector_list(session, "list", PATIENCE, &infos, &count));
  assert_int_equal(count, 2);
  assert_string_equal(infos[0].name, "list/a");
  assert_int_equal(infos[0].options.type, PAWL_F64);
  assert_string_equal(infos[1].name, "list/b");
  pawl_vector_list_free(infos);
  must(pawl_vector_delete(session, "list/a", PATIENCE));
  must(pawl_vector_list(session, "list", PATIENCE, &infos, &count));
  assert_int_equal(count, 1);
  pawl_vector_list_free(infos);
}

/* --- tasks ------------------------------------------------------------------------------------------------------------- */

static void add_one(void *context, struct pawl_task *task) {
  assert_true(pawl_task_is_done(task));
  atomic_fetch_add((atomic_int *)context, 1);
  pawl_task_release(task);
}

static void test_callbacks_come_once_for_each_task(void **state) {
  struct pawl_vector *vector = create(session, "t/called", PAWL_I64, 10);
  static atomic_int called;
  static const int64_t one = 1;
  int64_t sum;
  (void)state;
  for (int i = 0; i < 200; i++) {
    struct pawl_task *task;
    must(pawl_vector_push(vector, pawl_at_range(3, 4), &one, &task));
    must(pawl_task_on_done(task, add_one, &called));
  }
  while (atomic_load(&called) < 200) usleep(100); /* nobody waits for a task: the session's own thread sees to them */
  pull(vector, pawl_at_range(3, 4), &sum);
  assert_int_equal(sum, 200);
  assert_int_equal(atomic_load(&called), 200);
}

struct chain {
  struct pawl_vector *vector;
  atomic_int left;
};

/* Calls made inside a callback. */
static void push_again(void *context, struct pawl_task *task) {
  static const int64_t one = 1;
  struct chain *chain = context;
  struct pawl_task *next;
  pawl_task_release(task);
  if (atomic_fetch_sub(&chain->left, 1) <= 1) return;
  assert_int_equal(pawl_vector_push(chain->vector, pawl_at_range(0, 1), &one, &next), PAWL_OK);
  assert_int_equal(pawl_task_on_done(next, push_again, chain), PAWL_OK);
}

static void test_a_callback_may_start_the_next_call(void **state) {
  static struct chain chain;
  static const int64_t one = 1;
  struct pawl_task *task;
  int64_t sum;
  (void)state;
  chain.vector = create(session, "t/chain", PAWL_I64, 10);
  atomic_store(&chain.left, 50);
  must(pawl_vector_push(chain.vector, pawl_at_range(0, 1), &one, &task));
  must(pawl_task_on_done(task, push_again, &chain));
  while (atomic_load(&chain.left) > 0) usleep(100);
  pull(chain.vector, pawl_at_range(0, 1), &sum);
  assert_int_equal(sum, 50);
}

static void test_flush_tells_of_failures_that_nobody_saw(void **state) {
  struct pawl_vector *vector = create(session, "t/gone", PAWL_F32, 10);
  struct pawl_task *task;
  float value = 1;
  char text[200];
  (void)state;
  must(pawl_vector_delete(session, "t/gone", PATIENCE));
  pawl_status status = pawl_vector_push(vector, pawl_at_range(0, 1), &value, NULL);
  if (status == PAWL_OK) status = pawl_session_flush(session, PATIENCE);
  assert_int_equal(status, PAWL_NOT_FOUND);
  must(pawl_session_flush(session, PATIENCE)); /* it is told once */
  status = pawl_vector_push(vector, pawl_at_range(0, 1), &value, &task);
  if (status == PAWL_OK) {
    status = pawl_task_wait(task, PATIENCE);
    pawl_task_describe(task, text, sizeof text);
    assert_non_null(strstr(text, "push to t/gone"));
    assert_true(pawl_task_failure_count(task) > 0);
    pawl_task_release(task);
  }
  assert_int_equal(status, PAWL_NOT_FOUND);
}

/* --- many at once -------------------------------------------------------------------------------------------------------- */

struct pusher {
  struct pawl_vector *vector;
  pthread_t thread;
  bool waits;
};

static void *push_many(void *argument) {
  struct pusher *pusher = argument;
  static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (int i = 0; i < 500; i++) {
    struct pawl_task *task = NULL;
    pawl_status status =
        pawl_vector_push(pusher->vector, pawl_at_range(0, 8), ones, pusher->waits || i % 3 == 0 ? &task : NULL);
    if (!status) status = pawl_task_finish(task, PATIENCE);
    if (status) return pusher;
  }
  return NULL;
}

static void test_threads_push_side_by_side_and_nothing_is_lost(void **state) {
  struct pusher pushers[4];
  struct pawl_vector *vector = create(session, "t/threads", PAWL_I64, 8);
  int64_t sums[8];
  (void)state;
  for (int i = 0; i < 4; i++) {
    pushers[i] = (struct pusher){.vector = vector, .waits = i % 2};
    assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_many, &pushers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join(pushers[i].thread, &failed);
    assert_null(failed);
  }
  must(pawl_session_flush(session, PATIENCE));
  pull(vector, pawl_at_range(0, 8), sums);
  for (int i = 0; i < 8; i++) assert_int_equal(sums[i], 2000);
}

static void test_a_flood_of_calls_is_seen_through(void **state) {
  struct pawl_vector *vector = create(session, "t/flood", PAWL_I64, 10);
  static const int64_t one = 1;
  int64_t sum;
  (void)state;
  for (int i = 0; i < 10000; i++) must(pawl_vector_push(vector, pawl_at_range(7, 8), &one, NULL));
  must(pawl_session_flush(session, PATIENCE));
  pull(vector, pawl_at_range(7, 8), &sum);
  assert_int_equal(sum, 10000);
}

static void test_a_reader_sees_pushes_of_others_and_may_not_push(void **state) {
  struct pawl_session *reader = open_beside(session, true);
  struct pawl_vector *written = create(session, "t/read", PAWL_I64, 10), *read;
  struct pawl_group *group;
  int64_t value = 1, seen = 0, before = 0;
  (void)state;
  must(pawl_vector_open(reader, "t/read", PATIENCE, &read));
  for (int i = 1; i <= 100; i++) {
    push(written, pawl_at_range(0, 1), &value);
    pull(read, pawl_at_range(0, 1), &seen);
    assert_int_equal(seen, i); /* it was answered before we asked */
    assert_true(seen >= before);
    before = seen;
  }
  must_fail(pawl_vector_push(read, pawl_at_range(0, 1), &value, NULL), PAWL_FORBIDDEN, "push to t/read");
  must_fail(pawl_group_join(reader, "t/group", 1, PATIENCE, &group), PAWL_FORBIDDEN, "join t/group");
  must(pawl_session_close(reader, PATIENCE));
}

/* --- memory -------------------------------------------------------------------------------------------------------------- */

static void run_rounds(struct pawl_vector *vector, struct pawl_keys *list, int rounds) {
  uint64_t keys[4] = {3, 300, 600, 900};
  float values[1000], row;
  memset(values, 0, sizeof values);
  for (int i = 0; i < rounds; i++) {
    push(vector, pawl_at_keys(keys, 4), values);
    push(vector, pawl_at_range(0, 1000), values);
    push(vector, pawl_at_list(list), values);
    pull(vector, pawl_at_range(5, 6), &row);
    pull(vector, pawl_at_list(list), values);
    must(pawl_vector_push(vector, pawl_at_keys(keys, 1), values, NULL));
    must(pawl_session_flush(session, PATIENCE));
  }
}

static void test_calls_in_a_steady_state_allocate_nothing(void **state) {
  struct pawl_vector *vector = create(session, "t/steady", PAWL_F32, 1000);
  uint64_t keys[3] = {1, 500, 999};
  struct pawl_keys *list;
  (void)state;
  must(pawl_keys_create(vector, keys, 3, &list));
  run_rounds(vector, list, 200);
  /* A link that a busy machine has lost and opened again allocates, too, but not each time. */
  bool is_clean = false;
  for (int tries = 0; tries < 10 && !is_clean; tries++) {
    uint64_t before = pwi_memory_counts().allocations;
    run_rounds(vector, list, 200);
    is_clean = pwi_memory_counts().allocations == before;
  }
  assert_true(is_clean);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_ranges_and_lists_name_the_same_rows),
      cmocka_unit_test(test_a_range_beside_a_list_picks_from_it),
      cmocka_unit_test(test_pushpull_returns_what_is_stored_afterwards),
      cmocka_unit_test(test_a_push_of_factors_is_one_of_their_products),
      cmocka_unit_test(test_lossy_filters_take_no_factors),
      cmocka_unit_test(test_a_shared_buffer_is_as_good_as_other_memory),
      cmocka_unit_test(test_a_scan_finds_the_keys_that_were_written),
      cmocka_unit_test(test_nothing_to_do_is_done_at_once),
      cmocka_unit_test(test_an_empty_range_names_nothing),
      cmocka_unit_test(test_all_is_the_whole_span),
      cmocka_unit_test(test_bad_keys_are_refused_by_position),
      cmocka_unit_test(test_ranges_of_mixed_vectors_and_lists_of_others_are_refused),
      cmocka_unit_test(test_names_and_options_are_checked),
      cmocka_unit_test(test_ensure_opens_what_is_there_and_compares_options),
      cmocka_unit_test(test_a_list_of_vectors_is_by_name_and_by_space),
      cmocka_unit_test(test_callbacks_come_once_for_each_task),
      cmocka_unit_test(test_a_callback_may_start_the_next_call),
      cmocka_unit_test(test_flush_tells_of_failures_that_nobody_saw),
      cmocka_unit_test(test_threads_push_side_by_side_and_nothing_is_lost),
      cmocka_unit_test(test_a_flood_of_calls_is_seen_through),
      cmocka_unit_test(test_a_reader_sees_pushes_of_others_and_may_not_push),
      cmocka_unit_test(test_calls_in_a_steady_state_allocate_nothing),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
