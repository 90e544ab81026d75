/* Sketches on a cluster of processes: what comes back is what went in, whoever wrote it, and bad calls are told so. */
#include <math.h>

#define SERVERS 2
#define SHARDS 1
#include "session_scene.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/random.h"

#define SEED 29
#define THINGS 20000
#define MINUTE (60 * PAWL_SECOND)

static struct pawl_sketch *make(const char *name, enum pawl_sketch_kind kind, uint32_t windows) {
  struct pawl_sketch_options options;
  struct pawl_sketch *sketch = NULL;
  pawl_sketch_options_init(&options);
  options.kind = kind;
  options.windows = windows;
  options.window_s = windows ? 60 : 0;
  options.banks = 8;
  must(pawl_sketch_create(session, name, &options, PATIENCE, &sketch));
  return sketch;
}

static struct pawl_sketch_writer *write_to(struct pawl_sketch *sketch, bool no_aggregate) {
  struct pawl_sketch_writer_options options = {
      .struct_size = sizeof options, .no_aggregate = no_aggregate, .outstanding = 4};
  struct pawl_sketch_writer *writer = NULL;
  must(pawl_sketch_writer_open(sketch, &options, &writer));
  return writer;
}

static pawl_status add_number(struct pawl_sketch_writer *writer, uint64_t number, int64_t weight) {
  return pawl_sketch_add_numbers(writer, &number, 1, weight);
}

static struct pawl_sketch_count ask(struct pawl_sketch *sketch, uint64_t number, uint32_t last) {
  struct pawl_sketch_key key = {.number = number};
  struct pawl_sketch_span span = {.last = last};
  struct pawl_sketch_count count;
  must(pawl_sketch_query(sketch, &key, 1, &span, PATIENCE, &count));
  return count;
}

static uint64_t total_of(struct pawl_sketch *sketch) {
  uint64_t total;
  must(pawl_sketch_total(sketch, NULL, PATIENCE, &total));
  return total;
}

/* Numbers of which small ones come often: thing i about 1/i of the time. */
static uint64_t draw(struct pwi_random *random) { return (uint64_t)exp(pwi_random_unit(random) * log(THINGS)) - 1; }

/* --- counting --------------------------------------------------------------------------------------------------------- */

/* 300,000 numbers by two writers, one that gathers and one that does not: the truth, and no more than the bound above it. */
static void test_counts_are_within_their_bound_and_the_total_is_exact(void **state) {
  (void)state;
  static uint64_t truth[THINGS], numbers[300000];
  struct pawl_sketch *sketch = make("test/counts", PAWL_SKETCH_COUNTMIN, 0);
  struct pawl_sketch_writer *writers[] = {write_to(sketch, false), write_to(sketch, true)};
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (size_t i = 0; i < 300000; i++) truth[numbers[i] = draw(&random)]++;
  must(pawl_sketch_add_numbers(writers[0], numbers, 200000, 1));
  must(pawl_sketch_add_numbers(writers[1], numbers + 200000, 100000, 1));
  for (int i = 0; i < 2; i++) must(pawl_sketch_flush(writers[i], PATIENCE));
  assert_int_equal(total_of(sketch), 300000);
  static struct pawl_sketch_key keys[THINGS];
  static struct pawl_sketch_count counts[THINGS];
  int beyond = 0;
  for (uint64_t i = 0; i < THINGS; i++) keys[i].number = i;
  must(pawl_sketch_query(sketch, keys, THINGS, NULL, PATIENCE, counts));
  for (uint64_t i = 0; i < THINGS; i++) {
    assert_true(counts[i].count >= (int64_t)truth[i]);
    beyond += (double)(counts[i].count - (int64_t)truth[i]) > counts[i].error;
  }
  assert_true(beyond <= THINGS * exp(-4));
  struct pawl_sketch_figures figures;
  pawl_sketch_figures(writers[1], &figures);
  assert_int_equal(figures.added, 100000);
  assert_int_equal(figures.merged, 0);
  assert_int_equal(figures.pairs, 100000);
  pawl_sketch_figures(writers[0], &figures);
  assert_true(figures.merged > 0);
  assert_int_equal(figures.pairs + figures.merged, 200000);
  for (int i = 0; i < 2; i++) must(pawl_sketch_writer_close(writers[i]));
  pawl_sketch_close(sketch);
}

/* Pulls all cells of two sketches and compares them. */
static void same_cells(const char *one, const char *other) {
  struct pawl_vector *vectors[2];
  struct pawl_vector_info info;
  must(pawl_vector_open(session, one, PATIENCE, &vectors[0]));
  must(pawl_vector_open(session, other, PATIENCE, &vectors[1]));
  pawl_vector_info(vectors[0], &info);
  size_t bytes = (size_t)info.options.size * info.options.width * 8;
  char *rows[] = {pwi_alloc(bytes), pwi_alloc(bytes)};
  for (int i = 0; i < 2; i++) pull(vectors[i], pawl_at_range(0, info.options.size), rows[i]);
  assert_memory_equal(rows[0], rows[1], bytes);
  for (int i = 0; i < 2; i++) pwi_free(rows[i]), pawl_vector_close(vectors[i]);
}

static void add_words(struct pawl_sketch_writer *writer, int first, int step) {
  char word[32];
  for (int i = first; i < 30000; i += step) {
    int length = snprintf(word, sizeof word, "word %d", i % (1 + i % 700));
    must(pawl_sketch_add(writer, word, (size_t)length, 1 + i % 300));
  }
  must(pawl_sketch_flush(writer, PATIENCE));
}

/* Three writers of two processes' worth of sessions come to the cells, registers and, for those in it, counts of one. */
static void test_several_writers_come_to_what_one_does(void **state) {
  (void)state;
  struct pawl_sketch *one = make("test/one", PAWL_SKETCH_COUNTMIN, 0),
                     *many = make("test/many", PAWL_SKETCH_COUNTMIN, 0);
  struct pawl_session *second = open_beside(session, false);
  struct pawl_sketch *beside;
  must(pawl_sketch_open(second, "test/many", PATIENCE, &beside));
  struct pawl_sketch_writer *alone = write_to(one, false);
  struct pawl_sketch_writer *three[] = {write_to(many, false), write_to(beside, true), write_to(many, true)};
  add_words(alone, 0, 1);
  for (int i = 2; i >= 0; i--) add_words(three[i], i, 3);
  same_cells("test/one", "test/many");
  same_cells("test/one.distinct", "test/many.distinct");
  struct pawl_sketch_entry tops[2][20];
  size_t counts[2];
  must(pawl_sketch_top(one, 20, NULL, PATIENCE, tops[0], &counts[0]));
  must(pawl_sketch_top(many, 20, NULL, PATIENCE, tops[1], &counts[1]));
  assert_int_equal(counts[0], 20);
  assert_memory_equal(tops[0], tops[1], sizeof tops[0]);
  must(pawl_sketch_writer_close(alone));
  for (int i = 0; i < 3; i++) must(pawl_sketch_writer_close(three[i]));
  pawl_sketch_close(beside);
  must(pawl_session_close(second, PATIENCE));
  pawl_sketch_close(one);
  pawl_sketch_close(many);
}

static void test_a_count_sketch_takes_weights_below_zero(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/signed", PAWL_SKETCH_COUNTSKETCH, 0);
  struct pawl_sketch_writer *writer = write_to(sketch, false);
  must(add_number(writer, 5, 1000));
  must(add_number(writer, 6, -400));
  must(add_number(writer, 5, -1));
  must(pawl_sketch_flush(writer, PATIENCE));
  assert_int_equal(ask(sketch, 5, 0).count, 999);
  assert_int_equal(ask(sketch, 6, 0).count, -400);
  assert_int_equal(total_of(sketch), 1401);
  must(pawl_sketch_writer_close(writer));
  pawl_sketch_close(sketch);
}

/* --- names and numbers -------------------------------------------------------------------------------------------------- */

static void test_the_things_seen_most_have_names(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/top", PAWL_SKETCH_COUNTMIN, 0);
  struct pawl_sketch_writer *writer = write_to(sketch, false);
  struct pawl_sketch_entry top[3];
  char longest[300];
  size_t count;
  memset(longest, 'z', sizeof longest);
  must(pawl_sketch_add(writer, longest, sizeof longest, 50));
  must(pawl_sketch_add(writer, "apple", 5, 40));
  must(add_number(writer, 12345678901234567u, 60));
  for (uint64_t i = 0; i < 10000; i++) must(add_number(writer, i, 1));
  must(pawl_sketch_flush(writer, PATIENCE));
  must(pawl_sketch_top(sketch, 3, NULL, PATIENCE, top, &count));
  assert_int_equal(count, 3);
  assert_true(top[0].is_number && top[0].number == 12345678901234567u);
  assert_true(!top[1].is_number && top[1].size == PAWL_SKETCH_NAME_MAX && top[1].name[103] == 'z');
  assert_string_equal(top[2].name, "apple");
  assert_true(top[2].is.count >= 40);
  must(pawl_sketch_writer_close(writer));
  pawl_sketch_close(sketch);
}

static void test_different_things_are_counted(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/distinct", PAWL_SKETCH_COUNTMIN, 0);
  struct pawl_sketch_writer *writer = write_to(sketch, false);
  double number, error;
  must(pawl_sketch_distinct(sketch, NULL, PATIENCE, &number, &error));
  assert_true(number == 0);
  for (int round = 0; round < 3; round++)
    for (uint64_t i = 0; i < 50000; i++) must(add_number(writer, i, 1));
  must(pawl_sketch_flush(writer, PATIENCE));
  must(pawl_sketch_distinct(sketch, NULL, PATIENCE, &number, &error));
  assert_true(fabs(number - 50000) < 4 * error);
  must(pawl_sketch_writer_close(writer));
  pawl_sketch_close(sketch);
}

/* --- windows ------------------------------------------------------------------------------------------------------------ */

static void test_windows_come_and_go(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/windows", PAWL_SKETCH_COUNTMIN, 3);
  struct pawl_sketch_writer *writer = write_to(sketch, false);
  for (int64_t minute = 100; minute < 105; minute++) {
    must(pawl_sketch_set_time(writer, minute * MINUTE + 7 * PAWL_SECOND));
    must(add_number(writer, 7, minute));
    must(pawl_sketch_add(writer, "x", 1, 1));
  }
  must(pawl_sketch_set_time(writer, 100 * MINUTE)); /* has left the ring */
  must(add_number(writer, 7, 5000));
  must(pawl_sketch_flush(writer, PATIENCE));
  assert_int_equal(ask(sketch, 7, 1).count, 104);
  assert_int_equal(ask(sketch, 7, 2).count, 104 + 103);
  assert_int_equal(ask(sketch, 7, 0).count, 104 + 103 + 102);
  struct pawl_sketch_key key = {.number = 7};
  struct pawl_sketch_span span = {.last = 1, .until_ns = 103 * MINUTE};
  struct pawl_sketch_count count;
  must(pawl_sketch_query(sketch, &key, 1, &span, PATIENCE, &count));
  assert_int_equal(count.count, 103);
  span.until_ns = 101 * MINUTE;
  must(pawl_sketch_query(sketch, &key, 1, &span, PATIENCE, &count));
  assert_int_equal(count.count, 0);
  struct pawl_sketch_entry top[4];
  size_t found;
  must(pawl_sketch_top(sketch, 4, NULL, PATIENCE, top, &found));
  assert_int_equal(found, 2);
  assert_int_equal(top[0].is.count, 309);
  assert_int_equal(top[1].is.count, 3);
  double number, error;
  must(pawl_sketch_distinct(sketch, NULL, PATIENCE, &number, &error));
  assert_true(fabs(number - 2) < 0.1);
  must_fail(pawl_sketch_set_time(writer, -1), PAWL_INVALID, "before 1970");
  must(pawl_sketch_writer_close(writer));
  pawl_sketch_close(sketch);
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------------- */

static void test_weights_that_overflow_are_refused_and_told(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/overflow", PAWL_SKETCH_COUNTMIN, 0);
  struct pawl_sketch_writer *writer = write_to(sketch, false);
  must_fail(add_number(writer, 1, 0), PAWL_INVALID, "invalid weight 0");
  must_fail(add_number(writer, 1, -1), PAWL_INVALID, "invalid weight -1");
  must(add_number(writer, 1, INT64_MAX));
  must(add_number(writer, 1, INT64_MAX));
  must(pawl_sketch_flush(writer, PATIENCE));
  must(add_number(writer, 1, 9));
  must_fail(pawl_sketch_flush(writer, PATIENCE), PAWL_OVERFLOW, "test/overflow");
  must_fail(add_number(writer, 2, 1), PAWL_OVERFLOW, "test/overflow");
  assert_int_equal(pawl_sketch_writer_close(writer), PAWL_OVERFLOW);
  assert_int_equal(total_of(sketch), 2 * (uint64_t)INT64_MAX);
  assert_int_equal(ask(sketch, 1, 0).count, INT64_MAX); /* as much as can be told */
  pawl_sketch_close(sketch);
}

static void test_sketches_are_found_listed_and_dropped(void **state) {
  (void)state;
  struct pawl_sketch_options options;
  struct pawl_sketch *sketch = make("shelf/a", PAWL_SKETCH_COUNTSKETCH, 3), *again;
  struct pawl_sketch_info info, *infos;
  size_t count;
  pawl_sketch_info(sketch, &info);
  assert_int_equal(info.options.depth, 5);
  assert_int_equal(pawl_sketch_create(session, "shelf/a", &info.options, PATIENCE, &again), PAWL_EXISTS);
  must(pawl_sketch_ensure(session, "shelf/a", &info.options, PATIENCE, &again));
  pawl_sketch_close(again);
  pawl_sketch_options_init(&options);
  assert_int_equal(pawl_sketch_ensure(session, "shelf/a", &options, PATIENCE, &again), PAWL_EXISTS);
  options.no_top = options.no_distinct = true;
  must(pawl_sketch_create(session, "shelf/b", &options, PATIENCE, &again));
  double number, error;
  must_fail(pawl_sketch_distinct(again, NULL, PATIENCE, &number, &error), PAWL_UNSUPPORTED, "no_distinct");
  must_fail(pawl_sketch_top(again, 0, NULL, PATIENCE, NULL, &count), PAWL_UNSUPPORTED, "no_top");
  pawl_sketch_close(again);
  must(pawl_sketch_list(session, "shelf", PATIENCE, &infos, &count));
  assert_int_equal(count, 2);
  assert_memory_equal(&infos[0].options, &info.options, sizeof info.options);
  assert_string_equal(infos[1].name, "shelf/b");
  assert_true(infos[1].options.no_top && infos[1].options.no_distinct);
  pawl_sketch_list_free(infos);
  pawl_sketch_close(sketch);
  must(pawl_sketch_drop(session, "shelf/a", PATIENCE));
  must(pawl_sketch_drop(session, "shelf/b", PATIENCE));
  assert_int_equal(pawl_sketch_open(session, "shelf/a", PATIENCE, &again), PAWL_NOT_FOUND);
  pawl_vector_close(create(session, "shelf/plain", PAWL_F32, 10));
  must_fail(pawl_sketch_open(session, "shelf/plain", PATIENCE, &again), PAWL_MISMATCH, "not a sketch");
  must_fail(pawl_sketch_drop(session, "shelf/plain", PATIENCE), PAWL_MISMATCH, "not a sketch");
}

static void test_options_that_do_not_go_together_are_refused(void **state) {
  (void)state;
  struct pawl_sketch *sketch = NULL;
  struct pawl_sketch_options options, wrong;
  pawl_sketch_options_init(&options);
  wrong = options, wrong.columns = 1000;
  must_fail(pawl_sketch_create(session, "test/bad", &wrong, PATIENCE, &sketch), PAWL_INVALID, "1000");
  wrong = options, wrong.banks = 0;
  must_fail(pawl_sketch_create(session, "test/bad", &wrong, PATIENCE, &sketch), PAWL_INVALID, "banks");
  wrong = options, wrong.windows = 5;
  must_fail(pawl_sketch_create(session, "test/bad", &wrong, PATIENCE, &sketch), PAWL_INVALID, "windows");
  must_fail(pawl_sketch_create(session, "bad", &options, PATIENCE, &sketch), PAWL_INVALID, "two words");
  assert_null(sketch);
}

/* The n-th allocation fails, for every n: a status, and nothing is left behind. */
static void test_running_out_of_memory_is_told(void **state) {
  (void)state;
  struct pawl_sketch *sketch = make("test/memory", PAWL_SKETCH_COUNTMIN, 0);
  uint64_t live = pwi_memory_counts().live;
  int failed = 1;
  for (uint64_t n = 0; failed; n++) {
    struct pawl_sketch_writer *writer = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pawl_sketch_writer_open(sketch, NULL, &writer);
    failed = pwi_memory_fail_cancel();
    if (failed && status == PAWL_OK) must(pawl_sketch_writer_close(writer)); /* somebody else's, who could do without */
    if (failed) continue;
    must(status);
    must(pawl_sketch_writer_close(writer));
  }
  assert_true(pwi_memory_counts().live <= live + 64); /* what links and tasks keep for later */
  pawl_sketch_close(sketch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_are_within_their_bound_and_the_total_is_exact),
      cmocka_unit_test(test_several_writers_come_to_what_one_does),
      cmocka_unit_test(test_a_count_sketch_takes_weights_below_zero),
      cmocka_unit_test(test_the_things_seen_most_have_names),
      cmocka_unit_test(test_different_things_are_counted),
      cmocka_unit_test(test_windows_come_and_go),
      cmocka_unit_test(test_weights_that_overflow_are_refused_and_told),
      cmocka_unit_test(test_sketches_are_found_listed_and_dropped),
      cmocka_unit_test(test_options_that_do_not_go_together_are_refused),
      cmocka_unit_test(test_running_out_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
