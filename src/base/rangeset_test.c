/* Range sets against a bitmap: random operations on a small universe, with all queries compared. */
#include "base/memory.h"
#include "base/random.h"
#include "base/rangeset.h"
#include "base/testing.h"

#define UNIVERSE 48
#define SEED UINT64_C(20140806)

/* The universe lies at the beginning or the end of the key space, to test the limits. `base` is its first
 * key. */
struct model {
  uint64_t base;
  bool in[UNIVERSE];
};

static struct pawl_range random_range(struct pwi_random *random, uint64_t base) {
  uint64_t a = pwi_random_below(random, UNIVERSE + 1);
  uint64_t b = pwi_random_below(random, UNIVERSE + 1);
  return pawl_range_of(base + a, base + b); /* half of them empty or inverted */
}

static void model_fill(struct model *model, struct pawl_range range, bool value) {
  for (uint64_t key = range.begin; key < range.end; key++) model->in[key - model->base] = value;
}

static void assert_well_formed(const struct pwi_rangeset *set) {
  assert_true(set->count <= set->room);
  for (size_t i = 0; i < set->count; i++) {
    assert_true(set->ranges[i].begin < set->ranges[i].end);
    if (i) assert_true(set->ranges[i - 1].end < set->ranges[i].begin);
  }
}

/* The first index at or after `at` whose membership is `value`; UNIVERSE if there is none. */
static uint64_t model_find(const struct model *model, uint64_t at, bool value) {
  while (at < UNIVERSE && model->in[at] != value) at++;
  return at;
}

static void assert_runs_match(const struct pwi_rangeset *set, const struct model *model, uint64_t from) {
  struct pawl_range run;
  uint64_t begin = model_find(model, from, true);
  assert_int_equal(pwi_rangeset_next(set, model->base + from, &run), begin < UNIVERSE);
  if (begin < UNIVERSE) {
    assert_int_equal(run.begin, model->base + begin);
    assert_int_equal(run.end, model->base + model_find(model, begin, false));
  }
  uint64_t gap_begin = model_find(model, from, false);
  bool has_gap = pwi_rangeset_next_gap(set, model->base + from, &run);
  if (!has_gap) {
    assert_int_equal(gap_begin, UNIVERSE);
    assert_int_equal(model->base + UNIVERSE, PAWL_KEY_END);
    return;
  }
  uint64_t gap_end = model_find(model, gap_begin, true);
  assert_int_equal(run.begin, model->base + gap_begin);
  assert_int_equal(run.end, gap_end == UNIVERSE ? PAWL_KEY_END : model->base + gap_end);
}

static void assert_range_answers_match(const struct pwi_rangeset *set, const struct model *model,
                                       struct pawl_range range) {
  bool all = true;
  bool any = false;
  for (uint64_t key = range.begin; key < range.end; key++) {
    all = all && model->in[key - model->base];
    any = any || model->in[key - model->base];
  }
  assert_int_equal(pwi_rangeset_contains(set, range), all);
  assert_int_equal(pwi_rangeset_intersects(set, range), any);
}

static void assert_same(const struct pwi_rangeset *set, const struct model *model) {
  assert_well_formed(set);
  uint64_t size = 0;
  for (uint64_t i = 0; i < UNIVERSE; i++) {
    size += model->in[i];
    assert_int_equal(pwi_rangeset_has(set, model->base + i), model->in[i]);
    assert_runs_match(set, model, i);
  }
  assert_int_equal(pwi_rangeset_size(set), size);
  assert_int_equal(pwi_rangeset_is_empty(set), size == 0);
  assert_false(pwi_rangeset_has(set, PAWL_KEY_END));
}

static void change_at_random(struct pwi_random *random, struct pwi_rangeset *set, struct model *model) {
  struct pawl_range range = random_range(random, model->base);
  bool add = pwi_random_chance(random, 0.5);
  if (range.end > range.begin + 8 && pwi_random_chance(random, 0.8)) range.end = range.begin + 1 + range.end % 8;
  assert_int_equal(add ? pwi_rangeset_add(set, range) : pwi_rangeset_remove(set, range), PAWL_OK);
  model_fill(model, range, add);
}

static void compare_with_bitmap(uint64_t base, uint64_t stream) {
  struct pwi_random random;
  pwi_random_init(&random, SEED, stream);
  struct model model = {.base = base};
  struct pwi_rangeset set;
  pwi_rangeset_init(&set);
  for (int step = 0; step < 4000; step++) {
    change_at_random(&random, &set, &model);
    assert_same(&set, &model);
    assert_range_answers_match(&set, &model, random_range(&random, base));
  }
  pwi_rangeset_fini(&set);
}

static void test_single_changes_agree_with_a_bitmap(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  compare_with_bitmap(0, 0);
  compare_with_bitmap(1000, 1);
  compare_with_bitmap(PAWL_KEY_END - UNIVERSE, 2);
}

static void combine(struct pwi_random *random, uint64_t base, bool add) {
  struct model a = {.base = base};
  struct model b = {.base = base};
  struct pwi_rangeset set = {0};
  struct pwi_rangeset other = {0};
  uint64_t changes = pwi_random_below(random, 20);
  for (uint64_t i = 0; i < changes; i++) change_at_random(random, &set, &a);
  changes = pwi_random_below(random, 20);
  for (uint64_t i = 0; i < changes; i++) change_at_random(random, &other, &b);
  assert_int_equal(add ? pwi_rangeset_add_all(&set, &other) : pwi_rangeset_remove_all(&set, &other), PAWL_OK);
  for (int i = 0; i < UNIVERSE; i++) a.in[i] = add ? a.in[i] || b.in[i] : a.in[i] && !b.in[i];
  assert_same(&set, &a);
  assert_same(&other, &b);
  pwi_rangeset_fini(&set);
  pwi_rangeset_fini(&other);
}

static void test_union_and_difference_agree_with_a_bitmap(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  struct pwi_random random;
  pwi_random_init(&random, SEED, 3);
  for (int i = 0; i < 2000; i++) combine(&random, i % 2 ? 0 : PAWL_KEY_END - UNIVERSE, i % 4 < 2);
}

static void add(struct pwi_rangeset *set, uint64_t begin, uint64_t end) {
  assert_int_equal(pwi_rangeset_add(set, pawl_range_of(begin, end)), PAWL_OK);
}

static void test_touching_ranges_become_one(void **state) {
  (void)state;
  struct pwi_rangeset set = {0};
  add(&set, 10, 20);
  add(&set, 30, 40);
  assert_int_equal(set.count, 2);
  add(&set, 20, 30);
  assert_int_equal(set.count, 1);
  assert_true(pwi_rangeset_contains(&set, pawl_range_of(10, 40)));
  assert_false(pwi_rangeset_contains(&set, pawl_range_of(10, 41)));
  pwi_rangeset_fini(&set);
}

static void test_every_key_fits_into_one_set(void **state) {
  (void)state;
  struct pwi_rangeset set = {0};
  struct pawl_range gap;
  add(&set, 0, PAWL_KEY_END);
  assert_int_equal(pwi_rangeset_size(&set), PAWL_KEY_END);
  assert_false(pwi_rangeset_next_gap(&set, 0, &gap));
  assert_int_equal(pwi_rangeset_remove(&set, pawl_range_of(5, 6)), PAWL_OK);
  assert_true(pwi_rangeset_next_gap(&set, 0, &gap));
  assert_int_equal(gap.begin, 5);
  assert_int_equal(gap.end, 6);
  assert_false(pwi_rangeset_next_gap(&set, 6, &gap));
  pwi_rangeset_fini(&set);
}

static void test_a_set_combines_with_itself(void **state) {
  (void)state;
  struct pwi_rangeset set = {0};
  add(&set, 1, 3);
  add(&set, 5, 9);
  assert_int_equal(pwi_rangeset_add_all(&set, &set), PAWL_OK);
  assert_int_equal(pwi_rangeset_size(&set), 6);
  assert_int_equal(pwi_rangeset_copy(&set, &set), PAWL_OK);
  assert_int_equal(pwi_rangeset_size(&set), 6);
  assert_int_equal(pwi_rangeset_remove_all(&set, &set), PAWL_OK);
  assert_true(pwi_rangeset_is_empty(&set));
  pwi_rangeset_fini(&set);
}

static void test_a_copy_is_equal_and_independent(void **state) {
  (void)state;
  struct pwi_rangeset set = {0};
  struct pwi_rangeset copy = {0};
  for (uint64_t i = 0; i < 100; i++) add(&set, 10 * i, 10 * i + 5);
  add(&copy, 7777, 8888);
  assert_false(pwi_rangeset_equal(&set, &copy));
  assert_int_equal(pwi_rangeset_copy(&set, &copy), PAWL_OK);
  assert_true(pwi_rangeset_equal(&set, &copy));
  add(&copy, 5, 6);
  assert_false(pwi_rangeset_equal(&set, &copy));
  assert_false(pwi_rangeset_has(&set, 5));
  pwi_rangeset_clear(&copy);
  assert_true(pwi_rangeset_is_empty(&copy));
  pwi_rangeset_fini(&set);
  pwi_rangeset_fini(&copy);
}

/* Each change with a failing allocation. */
static pawl_status change(struct pwi_rangeset *set, const struct pwi_rangeset *other, int which) {
  switch (which) {
  case 0:
    return pwi_rangeset_add(set, pawl_range_of(1000, 1001));
  case 1:
    return pwi_rangeset_remove(set, pawl_range_of(2, 3));
  case 2:
    return pwi_rangeset_add_all(set, other);
  case 3:
    return pwi_rangeset_remove_all(set, other);
  default:
    return pwi_rangeset_copy(other, set);
  }
}

static void test_without_memory_a_set_stays_as_it_was(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (int which = 0; which < 5; which++) {
    struct pwi_rangeset set = {0};
    struct pwi_rangeset before = {0};
    struct pwi_rangeset other = {0};
    for (uint64_t i = 0; i < 4; i++) add(&set, 10 * i, 10 * i + 5); /* exactly full */
    assert_int_equal(set.count, set.room);
    for (uint64_t i = 0; i < 20; i++) add(&other, 7 * i, 7 * i + 4);
    assert_int_equal(pwi_rangeset_copy(&set, &before), PAWL_OK);
    pwi_memory_fail_after(0);
    assert_int_equal(change(&set, &other, which), PAWL_NO_MEMORY);
    assert_int_equal(pwi_memory_fail_cancel(), 1);
    assert_true(pwi_rangeset_equal(&set, &before));
    assert_int_equal(change(&set, &other, which), PAWL_OK);
    assert_false(pwi_rangeset_equal(&set, &before));
    pwi_rangeset_fini(&set);
    pwi_rangeset_fini(&before);
    pwi_rangeset_fini(&other);
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_single_changes_agree_with_a_bitmap),
      cmocka_unit_test(test_union_and_difference_agree_with_a_bitmap),
      cmocka_unit_test(test_touching_ranges_become_one),
      cmocka_unit_test(test_every_key_fits_into_one_set),
      cmocka_unit_test(test_a_set_combines_with_itself),
      cmocka_unit_test(test_a_copy_is_equal_and_independent),
      cmocka_unit_test(test_without_memory_a_set_stays_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
