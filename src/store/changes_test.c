/* Tracking of changed keys against a list of all changes, and the granularity of answers. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "store/changes.h"

#define SEEDS 200
#define MARKS 60
#define LIST_MAX 300

static struct pwi_rangeset collect(const struct pwi_changes *changes, struct pawl_range range, uint64_t number) {
  struct pwi_rangeset set = {0};
  assert_int_equal(pwi_changes_collect(changes, range, number, &set), PAWL_OK);
  return set;
}

static void assert_collects(const struct pwi_changes *changes, uint64_t number, const struct pawl_range *ranges,
                            size_t count) {
  struct pwi_rangeset set = collect(changes, pawl_range_of(0, PAWL_KEY_END), number);
  assert_int_equal(set.count, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(set.ranges[i].begin, ranges[i].begin);
    assert_int_equal(set.ranges[i].end, ranges[i].end);
  }
  pwi_rangeset_fini(&set);
}

#define COLLECTS(changes, number, ...)                                                                                 \
  assert_collects(changes, number, (const struct pawl_range[]){__VA_ARGS__},                                           \
                  sizeof((const struct pawl_range[]){__VA_ARGS__}) / sizeof(struct pawl_range))

static void test_nothing_has_changed_at_first(void **state) {
  (void)state;
  struct pwi_changes changes;
  pwi_changes_init(&changes, pawl_range_of(0, 1000), 4, false);
  assert_collects(&changes, 0, NULL, 0);
  pwi_changes_mark_keys(&changes, NULL, 0, 1);
  pwi_changes_mark_range(&changes, pawl_range_of(5, 5), 1);
  pwi_changes_mark_range(&changes, pawl_range_of(1000, 2000), 1);
  assert_collects(&changes, 0, NULL, 0);
  pwi_changes_fini(&changes);
}

static void test_a_key_changes_its_cell(void **state) {
  (void)state;
  struct pwi_changes changes;
  const uint64_t keys[] = {10, 5000, 99999};
  pwi_changes_init(&changes, pawl_range_of(0, 100000), 4, false); /* cells of 1024 keys */
  pwi_changes_mark_keys(&changes, keys, 1, 7);
  COLLECTS(&changes, 6, {0, 1024});
  assert_collects(&changes, 7, NULL, 0);
  pwi_changes_mark_keys(&changes, keys + 1, 1, 8);
  pwi_changes_mark_keys(&changes, keys + 2, 1, 9);
  COLLECTS(&changes, 0, {0, 1024}, {4096, 5120}, {99328, 100000});
  COLLECTS(&changes, 7, {4096, 5120}, {99328, 100000});
  pwi_changes_mark_keys(&changes, keys, 1, 3); /* a chain whose numbers are lower: the highest stays */
  COLLECTS(&changes, 6, {0, 1024}, {4096, 5120}, {99328, 100000});
  pwi_changes_fini(&changes);
}

static void test_wide_rows_have_cells_of_their_own(void **state) {
  (void)state;
  struct pwi_changes changes;
  const uint64_t keys[] = {3, 9};
  pwi_changes_init(&changes, pawl_range_of(0, 100), 4096, false);
  pwi_changes_mark_keys(&changes, keys, 1, 1);
  pwi_changes_mark_keys(&changes, keys + 1, 1, 1);
  COLLECTS(&changes, 0, {3, 4}, {9, 10});
  pwi_changes_fini(&changes);
}

static void test_an_answer_is_cut_to_what_was_asked_for(void **state) {
  (void)state;
  struct pwi_changes changes;
  pwi_changes_init(&changes, pawl_range_of(0, 100000), 4, false);
  pwi_changes_mark_range(&changes, pawl_range_of(2000, 6000), 1);
  COLLECTS(&changes, 0, {1024, 6144});
  struct pwi_rangeset set = collect(&changes, pawl_range_of(3000, 4000), 0);
  assert_int_equal(pwi_rangeset_size(&set), 1000);
  assert_true(pwi_rangeset_contains(&set, pawl_range_of(3000, 4000)));
  pwi_rangeset_fini(&set);
  set = collect(&changes, pawl_range_of(50000, 60000), 0);
  assert_true(pwi_rangeset_is_empty(&set));
  pwi_changes_fini(&changes);
}

static void test_a_large_span_has_few_cells(void **state) {
  (void)state;
  struct pwi_changes changes;
  const uint64_t key = 12345678901;
  pwi_changes_init(&changes, pawl_range_of(0, PAWL_KEY_END), 4, true);
  pwi_changes_mark_keys(&changes, &key, 1, 1);
  COLLECTS(&changes, 0, {0, UINT64_C(1) << 52});
  const uint64_t last = PAWL_KEY_END - 1;
  pwi_changes_mark_keys(&changes, &last, 1, 2);
  COLLECTS(&changes, 1, {PAWL_KEY_END - (UINT64_C(1) << 52) + 1, PAWL_KEY_END});
  pwi_changes_fini(&changes);
}

static void test_few_keys_anywhere_are_told_apart(void **state) {
  (void)state;
  struct pwi_changes changes;
  const uint64_t keys[] = {5, 5000, UINT64_C(1) << 40, PAWL_KEY_END - 1};
  pwi_changes_init(&changes, pawl_range_of(0, PAWL_KEY_END), 4, false);
  for (uint64_t i = 0; i < 4; i++) pwi_changes_mark_keys(&changes, &keys[i], 1, i + 1);
  COLLECTS(&changes, 1, {4096, 5120}, {keys[2], keys[2] + 1024}, {PAWL_KEY_END - 1023, PAWL_KEY_END});
  pwi_changes_forget(&changes, 3);
  COLLECTS(&changes, 3, {PAWL_KEY_END - 1023, PAWL_KEY_END});
  pwi_changes_forget(&changes, 4);
  assert_collects(&changes, 4, NULL, 0);
  pwi_changes_fini(&changes);
}

/* Many keys, all over the place: cells become wider, and narrow again when nothing is left to remember. */
static void test_many_keys_anywhere_take_little_memory(void **state) {
  (void)state;
  struct pwi_changes changes;
  struct pwi_random random;
  uint64_t key = 77;
  pwi_changes_init(&changes, pawl_range_of(0, PAWL_KEY_END), 4, false);
  pwi_random_init(&random, 1, 0);
  for (uint64_t i = 1; i <= 50000; i++) {
    uint64_t draw = pwi_random_u64(&random) - 1;
    pwi_changes_mark_keys(&changes, &draw, 1, i);
    assert_true(changes.count <= 1 << 13);
  }
  assert_true(changes.shift > 46 && changes.shift < 56);
  struct pwi_rangeset set = collect(&changes, changes.span, 49990);
  assert_true(set.count > 1 && set.count <= 10);
  pwi_rangeset_fini(&set);
  pwi_changes_forget(&changes, 50000);
  pwi_changes_mark_keys(&changes, &key, 1, 50001);
  COLLECTS(&changes, 50000, {0, 1024});
  pwi_changes_fini(&changes);
}

static void test_a_range_too_wide_to_remember_is_everything(void **state) {
  (void)state;
  struct pwi_changes changes;
  pwi_changes_init(&changes, pawl_range_of(0, PAWL_KEY_END), 4, false);
  pwi_changes_mark_range(&changes, pawl_range_of(1000, 5000), 1);
  COLLECTS(&changes, 0, {0, 5120});
  pwi_changes_mark_range(&changes, pawl_range_of(1000, UINT64_C(1) << 60), 2);
  COLLECTS(&changes, 1, {0, PAWL_KEY_END});
  assert_collects(&changes, 2, NULL, 0);
  pwi_changes_forget(&changes, 2);
  assert_collects(&changes, 2, NULL, 0);
  pwi_changes_fini(&changes);
}

/* --- the model ------------------------------------------------------------------------------------------ */

struct mark {
  struct pawl_range range; /* empty: a list */
  uint64_t keys[LIST_MAX];
  size_t count;
  uint64_t number;
};

struct run {
  struct pwi_random random;
  struct pawl_range span;
  struct pwi_changes changes;
  struct mark marks[MARKS];
  size_t mark_count;
  uint64_t number, forgotten;
};

static int compare_keys(const void *left, const void *right) {
  const uint64_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

/* Spans of all kinds, some of them far from 0. */
static void start(struct run *run, uint64_t seed) {
  static const unsigned bits[] = {3, 10, 20, 32, 40, 63};
  pwi_random_init(&run->random, seed, 0);
  uint64_t size = (UINT64_C(1) << bits[pwi_random_below(&run->random, 6)]) + pwi_random_below(&run->random, 5);
  uint64_t begin = pwi_random_chance(&run->random, 0.5) ? 0 : pwi_random_below(&run->random, PAWL_KEY_END - size);
  run->span = pawl_range_of(begin, begin + size);
  pwi_changes_init(&run->changes, run->span, (size_t)pwi_random_below(&run->random, 5000) + 1,
                   pwi_random_chance(&run->random, 0.3));
  run->mark_count = 0;
  run->number = run->forgotten = 0;
}

static uint64_t draw_key(struct run *run, uint64_t width) {
  return run->span.begin + pwi_random_below(&run->random, width);
}

static void draw_list(struct run *run, struct mark *mark) {
  uint64_t size = pawl_range_size(run->span);
  uint64_t width = pwi_random_chance(&run->random, 0.5) || size < 5000 ? size : 5000;
  size_t count = (size_t)pwi_random_below(&run->random, LIST_MAX) + 1, kept = 0;
  for (size_t i = 0; i < count; i++) mark->keys[i] = draw_key(run, width);
  qsort(mark->keys, count, sizeof *mark->keys, compare_keys);
  for (size_t i = 0; i < count; i++)
    if (kept == 0 || mark->keys[kept - 1] != mark->keys[i]) mark->keys[kept++] = mark->keys[i];
  mark->count = kept;
  pwi_changes_mark_keys(&run->changes, mark->keys, kept, mark->number);
}

static void draw_mark(struct run *run) {
  struct mark *mark = &run->marks[run->mark_count++];
  run->number += pwi_random_below(&run->random, 3) + 1;
  *mark = (struct mark){.number = run->number};
  if (pwi_random_chance(&run->random, 0.7)) {
    draw_list(run, mark);
    return;
  }
  uint64_t begin = draw_key(run, pawl_range_size(run->span));
  uint64_t most = run->span.end - begin, some = pwi_random_chance(&run->random, 0.2) || most < 100 ? most : 100;
  mark->range = pawl_range_of(begin, begin + 1 + pwi_random_below(&run->random, some));
  pwi_changes_mark_range(&run->changes, mark->range, mark->number);
}

static bool is_in(const struct pwi_rangeset *set, const struct mark *mark, struct pawl_range asked) {
  if (mark->count == 0) return pwi_rangeset_contains(set, pawl_range_common(mark->range, asked));
  for (size_t i = 0; i < mark->count; i++)
    if (pawl_range_has(asked, mark->keys[i]) && !pwi_rangeset_has(set, mark->keys[i])) return false;
  return true;
}

static void check(struct run *run, uint64_t seed) {
  uint64_t after = run->forgotten + pwi_random_below(&run->random, run->number - run->forgotten + 1);
  uint64_t begin = draw_key(run, pawl_range_size(run->span));
  struct pawl_range asked = pwi_random_chance(&run->random, 0.5) ? run->span : pawl_range_of(begin, run->span.end);
  struct pwi_rangeset set = collect(&run->changes, asked, after);
  for (size_t i = 0; i < set.count; i++)
    if (!pawl_range_contains(asked, set.ranges[i]))
      fail_msg("seed %llu: beyond what was asked", (unsigned long long)seed);
  for (size_t i = 0; i < run->mark_count; i++)
    if (run->marks[i].number > after && !is_in(&set, &run->marks[i], asked))
      fail_msg("seed %llu: a change was left out", (unsigned long long)seed);
  pwi_rangeset_fini(&set);
}

static void test_no_change_is_ever_left_out(void **state) {
  (void)state;
  static struct run run;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    start(&run, seed);
    while (run.mark_count < MARKS) {
      draw_mark(&run);
      check(&run, seed);
      if (pwi_random_chance(&run.random, 0.1)) {
        run.forgotten += pwi_random_below(&run.random, run.number - run.forgotten + 1);
        pwi_changes_forget(&run.changes, run.forgotten);
      }
    }
    struct pwi_rangeset set = collect(&run.changes, run.span, run.number);
    assert_true(pwi_rangeset_is_empty(&set)); /* nothing is newer than the newest */
    pwi_changes_fini(&run.changes);
  }
}

/* A list may mark cells between its keys, but no more of them than it has keys. */
static void test_a_list_marks_no_more_cells_than_it_has_keys(void **state) {
  (void)state;
  static struct run run;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    start(&run, seed);
    struct mark *mark = &run.marks[0];
    mark->number = 1;
    draw_list(&run, mark);
    struct pwi_rangeset set = collect(&run.changes, run.span, 0);
    unsigned __int128 most = (unsigned __int128)mark->count << run.changes.shift;
    assert_true(pwi_rangeset_size(&set) <= most);
    pwi_rangeset_fini(&set);
    pwi_changes_fini(&run.changes);
  }
}

static void test_without_memory_everything_has_changed(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (int even = 0; even < 2; even++) {
    int failed = 1;
    for (uint64_t n = 0; failed; n++) {
      struct pwi_changes changes;
      struct pwi_rangeset set = {0};
      pwi_changes_init(&changes, pawl_range_of(0, PAWL_KEY_END), 4, even);
      pwi_memory_fail_after(n);
      for (uint64_t i = 0; i < 2000; i++)
        pwi_changes_mark_range(&changes, pawl_range_of(i << 20, (i << 20) + 1), i + 1);
      pwi_changes_forget(&changes, 3);
      pawl_status status = pwi_changes_collect(&changes, changes.span, 3, &set);
      failed = pwi_memory_fail_cancel();
      for (uint64_t i = 3; i < 2000 && status == PAWL_OK; i++) assert_true(pwi_rangeset_has(&set, i << 20));
      assert_true(status == PAWL_OK || (failed && status == PAWL_NO_MEMORY));
      pwi_rangeset_fini(&set);
      pwi_changes_fini(&changes);
      assert_int_equal(pwi_memory_counts().live, live);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_has_changed_at_first),
      cmocka_unit_test(test_a_key_changes_its_cell),
      cmocka_unit_test(test_wide_rows_have_cells_of_their_own),
      cmocka_unit_test(test_an_answer_is_cut_to_what_was_asked_for),
      cmocka_unit_test(test_a_large_span_has_few_cells),
      cmocka_unit_test(test_few_keys_anywhere_are_told_apart),
      cmocka_unit_test(test_many_keys_anywhere_take_little_memory),
      cmocka_unit_test(test_a_range_too_wide_to_remember_is_everything),
      cmocka_unit_test(test_no_change_is_ever_left_out),
      cmocka_unit_test(test_a_list_marks_no_more_cells_than_it_has_keys),
      cmocka_unit_test(test_without_memory_everything_has_changed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
