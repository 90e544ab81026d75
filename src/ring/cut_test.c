/* Cuts against a loop that looks up the arc of every key. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "ring/cut.h"

#define SEED UINT64_C(2014)
#define KEYS 400

static uint64_t list[KEYS];

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/* An ascending list of at most `most` random keys below `size`. */
static size_t draw_list(struct pwi_random *random, uint64_t size, size_t most) {
  size_t count = (size_t)pwi_random_below(random, most + 1), kept = 0;
  for (size_t i = 0; i < count; i++) list[i] = pwi_random_below(random, size);
  qsort(list, count, sizeof *list, by_value);
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || list[i] != list[kept - 1]) list[kept++] = list[i];
  }
  return kept;
}

static struct pwi_view *draw_view(struct pwi_random *random, uint64_t nodes, size_t most) {
  struct pwi_view_node node[8];
  struct pwi_arc arcs[64] = {0};
  uint64_t points[64] = {0};
  for (uint64_t i = 0; i < nodes; i++) {
    node[i] =
        (struct pwi_view_node){.node = {i + 1}, .process = i, .weight = 1, .address = "a", .host = "", .rack = ""};
  }
  size_t count = 1 + (size_t)pwi_random_below(random, most), kept = 0;
  for (size_t i = 1; i < count; i++) points[i] = pwi_random_below(random, UINT64_MAX);
  qsort(points, count, sizeof *points, by_value);
  for (size_t i = 0; i < count; i++) {
    if (kept && points[i] == arcs[kept - 1].begin) continue;
    arcs[kept++] = (struct pwi_arc){
        .begin = points[i], .since = 1, .count = 1, .chain = {{.node = {1 + pwi_random_below(random, nodes)}}}};
  }
  struct pwi_view *view = NULL;
  assert_int_equal(pwi_view_create(1, node, (size_t)nodes, arcs, kept, NULL, &view), PAWL_OK);
  return view;
}

static size_t naive_arc(const struct pwi_view *view, uint64_t position) {
  size_t arc = 0;
  while (arc + 1 < view->arc_count && view->arcs[arc + 1].begin <= position) arc++;
  return arc;
}

static void assert_part(const struct pwi_view *view, const struct pwi_place *place, struct pawl_range range,
                        const struct pwi_cut_part *part) {
  struct pawl_range claim = pwi_place_keys(place, pwi_view_arc_range(view, part->arc));
  struct pawl_range common = pawl_range_common(claim, range);
  assert_int_equal(part->head.id, view->arcs[part->arc].chain[0].node.id);
  assert_int_equal(part->claim.begin, claim.begin);
  assert_int_equal(part->claim.end, claim.end);
  assert_int_equal(part->range.begin, common.begin);
  assert_int_equal(part->range.end, common.end);
  assert_false(pawl_range_is_empty(part->range));
}

/* Key by key: each listed key of the range is in the next part of its arc, and in no other. */
static void assert_list_cut(const struct pwi_view *view, const struct pwi_place *place, size_t count,
                            struct pawl_range range) {
  struct pwi_cut cut;
  struct pwi_cut_part part;
  pwi_cut_init(&cut, view, place, list, count, range);
  size_t at = 0;
  while (at < count && list[at] < range.begin) at++;
  while (pwi_cut_next(&cut, &part)) {
    assert_part(view, place, range, &part);
    assert_int_equal(part.first, at);
    assert_true(part.last > part.first);
    for (; at < part.last; at++) {
      assert_true(pawl_range_has(range, list[at]));
      assert_int_equal(naive_arc(view, pwi_place_position(place, list[at])), part.arc);
    }
    if (at < count && pawl_range_has(range, list[at])) {
      assert_int_not_equal(naive_arc(view, pwi_place_position(place, list[at])), part.arc);
    }
  }
  assert_true(at == count || list[at] >= range.end);
  assert_false(pwi_cut_next(&cut, &part));
}

/* Every arc that has keys in the range is visited once; with a list, its keys are found on the way. */
static void assert_range_cut(const struct pwi_view *view, const struct pwi_place *place, const uint64_t *keys,
                             size_t count, struct pawl_range range) {
  struct pwi_cut cut;
  struct pwi_cut_part part;
  pwi_cut_init(&cut, view, place, keys, count, range);
  pwi_cut_every_arc(&cut);
  size_t at = 0;
  while (at < count && keys[at] < range.begin) at++;
  for (size_t arc = 0; arc < view->arc_count; arc++) {
    struct pawl_range claim = pwi_place_keys(place, pwi_view_arc_range(view, arc));
    if (pawl_range_is_empty(pawl_range_common(claim, range))) continue;
    assert_true(pwi_cut_next(&cut, &part));
    assert_int_equal(part.arc, arc);
    assert_part(view, place, range, &part);
    size_t first = at;
    while (at < count && keys[at] < part.range.end) at++;
    assert_int_equal(part.last - part.first, at - first);
    if (keys) assert_int_equal(part.first, first);
  }
  assert_false(pwi_cut_next(&cut, &part));
}

static struct pawl_range draw_range(struct pwi_random *random, uint64_t size) {
  if (pwi_random_chance(random, 0.3)) return pawl_range_of(0, size);
  uint64_t a = pwi_random_below(random, size), b = pwi_random_below(random, size);
  return a < b ? pawl_range_of(a, b) : pawl_range_of(b, a);
}

static void test_cuts_equal_a_loop_over_the_keys(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 3000; round++) {
    static const uint64_t sizes[] = {1, 5, 100, 1000, 123457, UINT64_C(1) << 40, PAWL_KEY_END};
    const struct pwi_place place = {sizes[pwi_random_below(&random, 7)], false};
    struct pwi_view *view = draw_view(&random, 1 + pwi_random_below(&random, 8), 63);
    size_t count = draw_list(&random, place.size, KEYS);
    struct pawl_range range = draw_range(&random, place.size);
    assert_list_cut(view, &place, count, range);
    assert_range_cut(view, &place, list, count, range);
    assert_range_cut(view, &place, NULL, 0, range);
    pwi_view_release(view);
  }
}

static void test_keys_past_the_span_are_left_out(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 1);
  struct pwi_view *view = draw_view(&random, 4, 20);
  const struct pwi_place place = {10, false};
  const uint64_t keys[] = {3, 9, 10, 11, PAWL_KEY_END};
  struct pwi_cut cut;
  struct pwi_cut_part part;
  size_t seen = 0;
  pwi_cut_init(&cut, view, &place, keys, 5, pawl_range_of(0, PAWL_KEY_END));
  while (pwi_cut_next(&cut, &part)) seen += part.last - part.first;
  assert_int_equal(seen, 2);
  pwi_cut_init(&cut, view, &place, keys, 5, pawl_range_of(4, 4));
  assert_false(pwi_cut_next(&cut, &part));
  pwi_cut_init(&cut, view, &place, keys, 5, pawl_range_of(12, 20));
  assert_false(pwi_cut_next(&cut, &part));
  pwi_view_release(view);
}

static void test_a_view_without_arcs_is_cut_into_nothing(void **state) {
  (void)state;
  struct pwi_view *view = NULL;
  assert_int_equal(pwi_view_create(1, NULL, 0, NULL, 0, NULL, &view), PAWL_OK);
  const struct pwi_place place = {10, false};
  const uint64_t keys[] = {3, 9};
  struct pwi_cut cut;
  struct pwi_cut_part part;
  struct pwi_cut_gathering gathering = {0};
  pwi_cut_init(&cut, view, &place, keys, 2, pawl_range_of(0, 10));
  assert_false(pwi_cut_next(&cut, &part));
  pwi_cut_init(&cut, view, &place, NULL, 0, pawl_range_of(0, 10));
  assert_false(pwi_cut_next(&cut, &part));
  assert_int_equal(pwi_cut_gather(&cut, &gathering), PAWL_OK);
  assert_int_equal(gathering.group_count, 0);
  pwi_cut_gathering_fini(&gathering);
  pwi_view_release(view);
}

static void test_runs_of_one_head_hold_the_same_parts(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 2);
  const struct pwi_place place = {1000, false};
  for (int round = 0; round < 300; round++) {
    struct pwi_view *view = draw_view(&random, 2, 63);
    struct pwi_cut one, many;
    struct pwi_cut_part part, run[5];
    uint64_t before = 0;
    size_t count, in_a_row = 0;
    pwi_cut_init(&one, view, &place, NULL, 0, pawl_range_of(0, 1000));
    many = one;
    while ((count = pwi_cut_next_run(&many, run, 5)) > 0) {
      assert_true(run[0].head.id != before || in_a_row == 5); /* a run ends only at another head or for lack
                                                                 of room */
      before = run[0].head.id;
      in_a_row = count;
      for (size_t i = 0; i < count; i++) {
        assert_true(pwi_cut_next(&one, &part));
        assert_int_equal(part.arc, run[i].arc);
        assert_int_equal(run[i].head.id, before);
      }
    }
    assert_false(pwi_cut_next(&one, &part));
    pwi_view_release(view);
  }
}

/* The groups hold each part of the cut once, in the order of arcs, under its head. */
static void assert_gathered(const struct pwi_cut *cut, const struct pwi_cut_gathering *gathering) {
  size_t total = 0;
  for (size_t g = 0; g < gathering->group_count; g++) {
    const struct pwi_cut_group *group = &gathering->groups[g];
    assert_int_equal(group->first, total);
    assert_true(group->last > group->first);
    if (g) assert_true(group->head.id > gathering->groups[g - 1].head.id);
    struct pwi_cut again = *cut;
    struct pwi_cut_part part;
    size_t at = group->first;
    while (pwi_cut_next(&again, &part)) {
      if (part.head.id != group->head.id) continue;
      assert_int_equal(gathering->parts[at].arc, part.arc);
      assert_int_equal(gathering->parts[at++].last, part.last);
    }
    assert_int_equal(at, group->last);
    total = group->last;
  }
  assert_int_equal(total, gathering->part_count);
}

static void test_a_gathering_has_one_group_for_each_head(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 3);
  struct pwi_cut_gathering gathering = {0};
  for (int round = 0; round < 500; round++) {
    const struct pwi_place place = {100000, false};
    struct pwi_view *view = draw_view(&random, 1 + pwi_random_below(&random, 8), 63);
    size_t count = draw_list(&random, place.size, KEYS);
    struct pwi_cut cut, copy;
    pwi_cut_init(&cut, view, &place, list, count, pawl_range_of(0, place.size));
    copy = cut;
    assert_int_equal(pwi_cut_gather(&cut, &gathering), PAWL_OK);
    assert_gathered(&copy, &gathering);
    uint64_t before = pwi_memory_counts().allocations;
    assert_int_equal(pwi_cut_gather(&copy, &gathering), PAWL_OK);
    assert_int_equal(pwi_memory_counts().allocations, before);
    pwi_view_release(view);
  }
  pwi_cut_gathering_fini(&gathering);
}

static void test_a_gathering_without_memory_is_empty(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 4);
  struct pwi_view *view = draw_view(&random, 8, 63);
  const struct pwi_place place = {1000, false};
  uint64_t failures = 0;
  for (;; failures++) {
    struct pwi_cut_gathering gathering = {0};
    struct pwi_cut cut;
    pwi_cut_init(&cut, view, &place, NULL, 0, pawl_range_of(0, 1000));
    pwi_memory_fail_after(failures);
    pawl_status status = pwi_cut_gather(&cut, &gathering);
    int failed = pwi_memory_fail_cancel();
    if (failed) {
      assert_int_equal(status, PAWL_NO_MEMORY);
      assert_int_equal(gathering.group_count, 0);
    }
    pwi_cut_gathering_fini(&gathering);
    if (!failed) break;
  }
  assert_true(failures >= 3);
  pwi_view_release(view);
  assert_int_equal(pwi_memory_counts().live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cuts_equal_a_loop_over_the_keys),
      cmocka_unit_test(test_keys_past_the_span_are_left_out),
      cmocka_unit_test(test_a_view_without_arcs_is_cut_into_nothing),
      cmocka_unit_test(test_runs_of_one_head_hold_the_same_parts),
      cmocka_unit_test(test_a_gathering_has_one_group_for_each_head),
      cmocka_unit_test(test_a_gathering_without_memory_is_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
