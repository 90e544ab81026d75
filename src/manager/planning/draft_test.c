/* The next view while it is built: members that are removed from chains, and arcs that become one. */
#include "base/testing.h"

#include "manager/inside.h"

static struct pwi_arc arc_of(uint8_t full, uint8_t filling) {
  struct pwi_arc arc = {.count = (uint8_t)(full + filling)};
  for (uint8_t i = 0; i < arc.count; i++) arc.chain[i] = (struct pwi_member){.node = {i + 1u}, .filling = i >= full};
  return arc;
}

static void test_the_last_full_member_stays(void **state) {
  (void)state;
  for (uint8_t filling = 0; filling < 3; filling++) {
    struct pwi_arc before = arc_of(1, filling), arc = before;
    assert_false(pwi_arc_drop(&arc, 1));
    assert_true(pwi_arc_same_chain(&arc, &before));
  }
}

/* What they were sent by a full member that is gone may be incomplete. */
static void test_members_that_are_being_filled_go_with_a_full_one(void **state) {
  (void)state;
  struct pwi_arc arc = arc_of(3, 1), rest = arc_of(2, 0);
  assert_true(pwi_arc_drop(&arc, 3));
  assert_true(pwi_arc_same_chain(&arc, &rest));
  arc = arc_of(2, 2);
  rest = arc_of(2, 1);
  assert_true(pwi_arc_drop(&arc, 4));
  assert_true(pwi_arc_same_chain(&arc, &rest));
  assert_false(pwi_arc_drop(&arc, 9));
  assert_true(pwi_arc_same_chain(&arc, &rest));
}

/* Otherwise the data of the second would seem to be whole, or that of the first to be lost. */
static void test_an_arc_that_began_anew_is_not_merged_with_another(void **state) {
  (void)state;
  for (size_t lost = 0; lost < 2; lost++) {
    struct pwi_view_node node = {.node = {1}, .process = 1, .weight = 1, .address = "a:1", .host = "", .rack = ""};
    struct pwi_arc arcs[] = {arc_of(1, 0), arc_of(1, 0)};
    arcs[1].begin = 1000;
    arcs[lost].lost = 7;
    struct pwi_view view = {.epoch = 8, .nodes = &node, .node_count = 1, .arcs = arcs, .arc_count = 2};
    struct view_draft draft = {.nodes = &node, .node_count = 1, .arcs = arcs, .arc_count = 2, .arc_room = 2};
    assert_false(pwi_view_has_splinters(&view, 1));
    assert_false(pwi_draft_merge(&draft, 1));
    assert_int_equal(draft.arc_count, 2);
    arcs[!lost].lost = 7;
    assert_true(pwi_view_has_splinters(&view, 1));
    assert_true(pwi_draft_merge(&draft, 1));
    assert_int_equal(draft.arc_count, 1);
    assert_int_equal(draft.arcs[0].lost, 7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_last_full_member_stays),
      cmocka_unit_test(test_members_that_are_being_filled_go_with_a_full_one),
      cmocka_unit_test(test_an_arc_that_began_anew_is_not_merged_with_another),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
