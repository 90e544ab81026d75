/* What a new view, or a catalogue, does to the arcs of a server: to their rows, and to the requests that wait there. */
#include "server/traffic_testing.h"

/* The manager says that it has the arc. Whatever went wrong, rows are not to vanish silently. */
static void test_an_arc_whose_rows_are_not_here_is_not_served_empty(void **state) {
  (void)state;
  for (int as_head = 0; as_head < 2; as_head++) {
    struct scene s;
    struct pwi_arc arc = arc_of(0, 2, as_head ? "21" : "12");
    start_scene(&s, 2, "13");
    assert_int_equal(pwi_shard_drop(s.server->shard, RING), PAWL_OK);
    assert_int_equal(pwi_chains_drop(&s.server->chains, RING), PAWL_OK);
    receive_view(&s, &arc, 1);
    assert_false(pwi_shard_holds(s.server->shard, RING));
    stop_scene(&s);
  }
}

/* In the first view of a cluster all arcs are empty. */
static void test_an_arc_of_the_first_view_is_served_empty(void **state) {
  (void)state;
  struct scene s;
  struct pwi_arc arc = arc_of(0, 2, "21");
  start_scene(&s, 2, "13");
  assert_int_equal(pwi_shard_drop(s.server->shard, RING), PAWL_OK);
  assert_int_equal(pwi_chains_drop(&s.server->chains, RING), PAWL_OK);
  pwi_view_release(s.server->view);
  s.server->view = NULL;
  receive_view(&s, &arc, 1);
  assert_true(pwi_shard_holds(s.server->shard, RING));
  stop_scene(&s);
}

/* The other member may push by the new arcs, and the push that waits is about the old one. Its client sends it again,
 * by the new arcs. */
static void test_a_sum_ends_when_its_arc_is_divided(void **state) {
  (void)state;
  struct scene s;
  struct pwi_arc arcs[] = {arc_of(0, 2, "1"), arc_of(HALF, 2, "1")};
  start_scene(&s, 1, "1");
  struct server_peer *client = wait_for_group(&s);
  receive_view(&s, arcs, 2);
  assert_int_equal(answered(&s, client), PWI_CODE_NOT_HERE);
  stop_scene(&s);
}

static void test_a_sum_outlives_a_view_that_leaves_its_arc_alone(void **state) {
  (void)state;
  struct scene s;
  struct pwi_arc arc = arc_of(0, 2, "12f");
  start_scene(&s, 1, "1");
  struct server_peer *client = wait_for_group(&s);
  receive_view(&s, &arc, 1);
  assert_int_equal(messages(&s, client), 0);
  stop_scene(&s);
}

/* A server that was without its manager for long is sent a whole membership. */
static void test_a_sum_is_complete_without_a_member_that_a_whole_membership_lacks(void **state) {
  (void)state;
  struct scene s;
  struct pwi_membership membership = {0};
  struct pwi_writer writer = {0};
  start_scene(&s, 1, "1");
  struct server_peer *client = wait_for_group(&s);
  pwi_membership_encode(s.server->membership, &writer);
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &membership), PAWL_OK);
  assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_writer_reset(&writer);
  pwi_membership_encode(&membership, &writer);
  receive_news(&s, PWI_SECTION_MEMBERSHIP, writer.data, writer.size);
  assert_int_equal(answered(&s, client), PWI_CODE_OK);
  pwi_membership_fini(&membership);
  pwi_writer_fini(&writer);
  stop_scene(&s);
}

/* It would close vectors that exist. */
static void test_an_older_catalogue_is_ignored(void **state) {
  (void)state;
  struct scene s;
  struct pwi_entry first = vector_of(1, "job/first"), second = vector_of(2, "job/second");
  struct pwi_catalogue older = {0}, newer = {0};
  start_scene(&s, 1, "1");
  assert_int_equal(pwi_catalogue_add(&older, &first), PAWL_OK);
  assert_int_equal(pwi_catalogue_add(&newer, &first), PAWL_OK);
  assert_int_equal(pwi_catalogue_add(&newer, &second), PAWL_OK);
  receive_catalogue(&s, &newer);
  assert_true(pwi_shard_has(s.server->shard, second.id));
  receive_catalogue(&s, &older);
  assert_true(pwi_shard_has(s.server->shard, second.id));
  assert_int_equal(s.server->catalogue.number, 2);
  pwi_catalogue_fini(&older);
  pwi_catalogue_fini(&newer);
  stop_scene(&s);
}

static void test_a_change_to_an_unknown_vector_is_asked_for_again_once_the_catalogue_comes(void **state) {
  (void)state;
  struct scene s;
  struct pwi_catalogue catalogue = {.number = 9};
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  update(&s, previous, 1, 9);
  assert_true(contact_of(chain_of(&s))->is_stuck);
  carried(&s);
  receive_catalogue(&s, &catalogue);
  assert_int_equal(messages(&s, previous), 1);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 9);
  assert_int_equal(chain_of(&s)->processed, 1);
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_arc_whose_rows_are_not_here_is_not_served_empty),
      cmocka_unit_test(test_an_arc_of_the_first_view_is_served_empty),
      cmocka_unit_test(test_a_sum_ends_when_its_arc_is_divided),
      cmocka_unit_test(test_a_sum_outlives_a_view_that_leaves_its_arc_alone),
      cmocka_unit_test(test_a_sum_is_complete_without_a_member_that_a_whole_membership_lacks),
      cmocka_unit_test(test_an_older_catalogue_is_ignored),
      cmocka_unit_test(test_a_change_to_an_unknown_vector_is_asked_for_again_once_the_catalogue_comes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
