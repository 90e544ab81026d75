#include "graph/tree.h"

#include <string.h>

#include "graph/graph_testing.h"

#define MOST 1024

static struct pwi_tree_member members[MOST];
static uint32_t parents[MOST];

/* Member i has id 7 i + 3, on host i, in a rack of `size`. */
static void place(size_t count, uint32_t size) {
  for (uint32_t i = 0; i < count; i++) members[i] = (struct pwi_tree_member){7 * (uint64_t)i + 3, i, i / size};
}

static struct pwi_tree_spec spec_of(enum pwi_tree tree, uint32_t degree, size_t count) {
  return (struct pwi_tree_spec){.tree = tree, .degree = degree, .shards = 1, .members = members, .count = count};
}

static struct pwi_tree_figures make(const struct pwi_tree_spec *spec) {
  struct pwi_graph_why why = {""};
  struct pwi_tree_figures figures;
  if (pwi_tree_make(spec, &why, parents)) fail_msg("%s", why.text);
  assert_int_equal(pwi_tree_figures(spec->members, parents, spec->count, &figures), PAWL_OK);
  return figures;
}

static void test_every_member_reaches_the_server_within_the_degree(void **state) {
  (void)state;
  for (size_t count = 1; count <= 130; count++)
    for (uint32_t degree = 2; degree <= 9; degree += 3)
      for (int tree = PWI_TREE_DEGREE; tree <= PWI_TREE_NEAR; tree++) {
        place(count, 8);
        struct pwi_tree_spec spec = spec_of((enum pwi_tree)tree, degree, count);
        struct pwi_tree_figures figures = make(&spec);
        size_t height = 0;
        for (size_t level = degree, sum = 0; sum < count; sum += level, level *= degree) height++;
        assert_true(figures.degree <= degree && figures.roots <= degree);
        assert_int_equal(figures.height, height);
      }
}

static void test_without_a_tree_everyone_sends_to_the_server(void **state) {
  (void)state;
  place(100, 8);
  struct pwi_tree_spec spec = spec_of(PWI_TREE_NONE, 0, 100);
  struct pwi_tree_figures figures = make(&spec);
  assert_int_equal(figures.roots, 100);
  assert_int_equal(figures.height, 1);
}

static void test_a_rack_has_one_aggregator_in_turn(void **state) {
  (void)state;
  place(20, 8); /* racks of 8, 8 and 4 */
  struct pwi_tree_spec spec = spec_of(PWI_TREE_RACK, 0, 20);
  uint32_t turns[20] = {0};
  spec.rotates = true;
  spec.shards = 16;
  for (spec.shard = 0; spec.shard < 16; spec.shard++) {
    struct pwi_tree_figures figures = make(&spec);
    assert_int_equal(figures.roots, 3);
    assert_int_equal(figures.height, 2);
    assert_int_equal(figures.between_racks, 0);
    for (uint32_t i = 0; i < 20; i++) turns[i] += parents[i] == PWI_TREE_ROOT;
  }
  for (uint32_t i = 0; i < 20; i++) assert_int_equal(turns[i], i < 16 ? 2 : 4);
}

/* Members with children, of each shard, shared out evenly; without rotation the same ones each time. */
static void test_rotation_spreads_the_work_of_aggregating(void **state) {
  (void)state;
  for (int tree = PWI_TREE_DEGREE; tree <= PWI_TREE_NEAR; tree++)
    for (int rotates = 0; rotates <= 1; rotates++) {
      uint32_t least = UINT32_MAX, most = 0, children[100] = {0};
      place(100, 8);
      struct pwi_tree_spec spec = spec_of((enum pwi_tree)tree, 2, 100);
      spec.rotates = rotates;
      spec.shards = 50;
      for (spec.shard = 0; spec.shard < 50; spec.shard++) {
        make(&spec);
        for (uint32_t i = 0; i < 100; i++)
          if (parents[i] != PWI_TREE_ROOT) children[parents[i]]++;
      }
      for (uint32_t i = 0; i < 100; i++) {
        if (children[i] < least) least = children[i];
        if (children[i] > most) most = children[i];
      }
      if (rotates)
        assert_true(most - least <= 3 && least >= 47);
      else
        assert_true(least == 0 && most == 100);
    }
}

static void test_near_trees_leave_racks_seldom(void **state) {
  (void)state;
  place(1024, 8);
  struct pwi_tree_spec near = spec_of(PWI_TREE_NEAR, 2, 1024), degree = spec_of(PWI_TREE_DEGREE, 2, 1024);
  uint32_t few = make(&near).between_racks, many = make(&degree).between_racks;
  assert_true(few < 400 && many > 1000);
}

static void test_members_of_a_host_are_put_together_first(void **state) {
  (void)state;
  place(30, 8);
  for (uint32_t i = 0; i < 30; i++) members[i].host = i / 3;
  for (int tree = PWI_TREE_RACK; tree < PWI_TREES; tree++) {
    struct pwi_tree_spec spec = spec_of((enum pwi_tree)tree, 2, 30);
    make(&spec);
    for (uint32_t i = 0; i < 30; i++) {
      if (i % 3) assert_int_equal(parents[i], i - i % 3);
      if (i % 3 == 0 && parents[i] != PWI_TREE_ROOT) assert_int_equal(parents[i] % 3, 0);
    }
  }
}

static void test_the_order_of_members_does_not_matter(void **state) {
  (void)state;
  static struct pwi_tree_member mixed[200];
  static uint32_t other[200];
  uint32_t places[200];
  struct pwi_random random;
  pwi_random_init(&random, 5, 0);
  place(200, 7);
  for (uint32_t i = 0; i < 200; i++) places[i] = i;
  pwi_random_shuffle(&random, places, 200, sizeof *places);
  for (uint32_t i = 0; i < 200; i++) mixed[i] = members[places[i]];
  for (int tree = 0; tree < PWI_TREES; tree++) {
    struct pwi_tree_spec spec = spec_of((enum pwi_tree)tree, 3, 200);
    spec.rotates = true;
    spec.shards = 9;
    spec.shard = 4;
    make(&spec);
    spec.members = mixed;
    assert_int_equal(pwi_tree_make(&spec, NULL, other), PAWL_OK);
    for (uint32_t i = 0; i < 200; i++) {
      uint32_t parent = parents[places[i]];
      if (parent == PWI_TREE_ROOT)
        assert_int_equal(other[i], PWI_TREE_ROOT);
      else
        assert_int_equal(places[other[i]], parent);
    }
  }
}

static void test_what_cannot_be_made_is_refused(void **state) {
  (void)state;
  struct pwi_graph_why why;
  enum pwi_tree tree;
  place(4, 8);
  struct pwi_tree_spec spec = spec_of(PWI_TREE_DEGREE, 1, 4);
  assert_int_equal(pwi_tree_make(&spec, &why, parents), PAWL_INVALID);
  assert_non_null(strstr(why.text, "at least 2"));
  spec = spec_of(PWI_TREE_RACK, 0, 4);
  spec.shard = 1;
  assert_int_equal(pwi_tree_make(&spec, &why, parents), PAWL_INVALID);
  spec = spec_of(PWI_TREE_NEAR, 2, 4);
  members[3].id = members[0].id;
  assert_int_equal(pwi_tree_make(&spec, &why, parents), PAWL_INVALID);
  assert_non_null(strstr(why.text, "member 3 occurs twice"));
  spec.count = (size_t)PWI_GRAPH_NODES_MAX + 1;
  assert_int_equal(pwi_tree_make(&spec, &why, parents), PAWL_TOO_LARGE);
  assert_true(pwi_tree_find("near", &tree) && tree == PWI_TREE_NEAR);
  assert_false(pwi_tree_find("far", &tree));
}

static void test_a_cycle_is_noticed(void **state) {
  (void)state;
  struct pwi_tree_figures figures;
  place(4, 8);
  uint32_t ring[4] = {PWI_TREE_ROOT, 2, 3, 1}, nobody[4] = {PWI_TREE_ROOT, 0, 9, 0};
  assert_int_equal(pwi_tree_figures(members, ring, 4, &figures), PAWL_CORRUPT);
  assert_int_equal(pwi_tree_figures(members, nobody, 4, &figures), PAWL_CORRUPT);
}

static void test_lack_of_memory_is_reported(void **state) {
  (void)state;
  place(10, 8);
  struct pwi_tree_spec spec = spec_of(PWI_TREE_NEAR, 2, 10);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_tree_make(&spec, NULL, parents), PAWL_NO_MEMORY);
  assert_int_equal(pwi_memory_fail_cancel(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_member_reaches_the_server_within_the_degree),
      cmocka_unit_test(test_without_a_tree_everyone_sends_to_the_server),
      cmocka_unit_test(test_a_rack_has_one_aggregator_in_turn),
      cmocka_unit_test(test_rotation_spreads_the_work_of_aggregating),
      cmocka_unit_test(test_near_trees_leave_racks_seldom),
      cmocka_unit_test(test_members_of_a_host_are_put_together_first),
      cmocka_unit_test(test_the_order_of_members_does_not_matter),
      cmocka_unit_test(test_what_cannot_be_made_is_refused),
      cmocka_unit_test(test_a_cycle_is_noticed),
      cmocka_unit_test(test_lack_of_memory_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
