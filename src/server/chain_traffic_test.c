/* Messages between the members of a chain: fencing, and the link to the previous member in each of its
 * states: silent, greeted, stuck. */
#include "server/traffic_testing.h"

/* --- fencing -------------------------------------------------------------------------------------------- */

static void test_messages_of_another_view_are_ignored(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .since = 5));
  assert_false(chain_of(&s)->is_open);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  change(&s, 1);
  carried(&s);
  see(&s, 2, "132");
  assert_false(chain_of(&s)->is_open); /* another follower: it begins anew */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1, .since = 1));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1)); /* from a node that is not the neighbour */
  assert_int_equal(s.replies.told_count, 0);
  next = follow(&s, 3);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1, .since = 1)); /* of the chain before */
  assert_int_equal(s.replies.told_count, 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_int_equal(heard(&s, next).version, 1);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.replies.told_count, 1);
  stop_scene(&s);
}

static void test_a_neighbour_on_the_wrong_side_is_cut_off(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  update(&s, next, 1, 0);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, next->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_LINK_PROTOCOL);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.net.closed_count, 2);
  assert_int_equal(s.net.closed[1].link, previous->link.id);
  stop_scene(&s);
}

/* --- towards the previous member ------------------------------------------------------------------------ */

static void test_a_previous_member_is_greeted_once_it_speaks(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 0); /* the previous member connects */
  struct server_peer *previous = precede(&s, 1);
  assert_null(contact_of(chain)->previous);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_ptr_equal(contact_of(chain)->previous, previous);
  assert_true(contact_of(chain)->is_greeted);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_int_equal(heard(&s, previous).version, 0);
  see(&s, 2, "132f"); /* it stands elsewhere now */
  take_down(&s, previous);
  see(&s, 3, "12");
  assert_false(contact_of(chain_of(&s))->is_greeted);
  previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_true(contact_of(chain_of(&s))->is_greeted);
  stop_scene(&s);
}

static void test_a_tail_applies_updates_in_order_and_confirms(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  carried(&s);
  update(&s, previous, 2, 0); /* the first is missing */
  assert_int_equal(messages(&s, previous), 0);
  update(&s, previous, 1, 0);
  assert_int_equal(chain_of(&s)->processed, 1);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
  assert_int_equal(heard(&s, previous).version, 1);
  update(&s, previous, 1, 0); /* once more */
  assert_int_equal(chain_of(&s)->version, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .version = 5, .prior = 1)); /* nothing more up to 5 */
  assert_int_equal(chain_of(&s)->processed, 5);
  assert_int_equal(heard(&s, previous).version, 5);
  update(&s, previous, 1, 0); /* from a link that was lost before */
  assert_int_equal(chain_of(&s)->processed, 5);
  stop_scene(&s);
}

static void test_messages_to_the_previous_member_wait_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  s.net.send_status = PAWL_QUEUE_FULL;
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  make_room(&s, previous);
  assert_int_equal(messages(&s, previous), 1);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  s.net.send_status = PAWL_QUEUE_FULL;
  update(&s, previous, 1, 0);
  update(&s, previous, 2, 0);
  make_room(&s, previous);
  assert_int_equal(messages(&s, previous), 1); /* the last confirmation is enough */
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
  assert_int_equal(heard(&s, previous).version, 2);
  make_room(&s, previous);
  assert_int_equal(messages(&s, previous), 0);
  s.net.send_status = PAWL_QUEUE_FULL;
  update(&s, previous, 3, 0);
  take_down(&s, previous);
  s.net.send_status = PAWL_OK;
  stub_clear(&s.net);
  previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_int_equal(heard(&s, previous).version, 3);
  make_room(&s, previous);
  assert_int_equal(messages(&s, previous), 0); /* READY has said it */
  stop_scene(&s);
}

/* Arcs that were merged may each have a change of the same version. */
static void test_changes_of_one_version_are_taken_in_order(void **state) {
  (void)state;
  struct scene s;
  struct pwi_terms request = {.kind = PWI_REQUEST_TICK, .vector = {9}, .number = 1, .claim = {0, 1}, .range = {0, 1}};
  struct pwi_chain_message first = {
      .kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = 1, .positions = {0, QUARTER}, .other = 1};
  struct pwi_chain_message second = first;
  second.positions = pawl_range_of(QUARTER, 2 * QUARTER);
  second.other = 2;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say_about(&s, previous, second, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 0); /* the first is missing */
  say_about(&s, previous, first, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 0);
  say_about(&s, previous, second, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 1);
  stop_scene(&s);
}

static void start_scene_with_vector(struct scene *scene, uint64_t node, const char *members) {
  struct pwi_entry entry = vector_of(1, "job/weights");
  start_scene(scene, node, members);
  open_entry(scene, &entry);
}

static void test_a_member_in_the_middle_passes_updates_on(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  carried(&s);
  update(&s, previous, 1, 0);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(heard(&s, next).version, 1);
  assert_int_equal(heard(&s, previous).version, 0); /* the tail has not confirmed it */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
  assert_int_equal(heard(&s, previous).version, 1);
  stop_scene(&s);
}

/* The previous member sends version 1, a push to the first of 1000 keys. */
static void update_rows(struct scene *scene, const struct server_peer *peer, enum pwi_effect effect, pawl_status why) {
  struct pwi_terms request = {
      .kind = PWI_REQUEST_PUSH, .vector = {1}, .number = 1, .rows = 1, .claim = {0, 1000}, .range = {0, 1}};
  say_about(scene, peer, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = (uint8_t)effect, .version = 1, .status = why),
            &request, 0, 1);
  assert_int_equal(chain_of(scene)->processed, 1);
}

/* The last member may become the head, and then repeats what this member was told. */
static void test_a_member_in_the_middle_passes_a_refusal_on(void **state) {
  (void)state;
  struct scene s;
  start_scene_with_vector(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  update_rows(&s, previous, PWI_EFFECT_REFUSAL, PAWL_NODE_FULL);
  assert_int_equal(heard(&s, next).effect, PWI_EFFECT_REFUSAL);
  assert_int_equal(heard(&s, next).status, PAWL_NODE_FULL);
  stop_scene(&s);
}

static void test_a_member_in_the_middle_passes_a_result_on(void **state) {
  (void)state;
  struct scene s;
  static const struct pwi_run_result result = {.range = {0, 1000}, .count = 1, .values = {17}};
  uint8_t bytes[PWI_RUN_RESULT_SIZE];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  pwi_run_result_write(&writer, &result);
  size_t count, size;
  start_scene_with_vector(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  s.result = &result;
  update_rows(&s, previous, PWI_EFFECT_ROWS, PAWL_OK);
  assert_int_equal(heard(&s, next).effect, PWI_EFFECT_ROWS);
  const void *passed = section_of(last_sent(&s, next->link.id, &count), PWI_SECTION_RESULT, &size);
  assert_int_equal(size, sizeof bytes);
  assert_memory_equal(passed, bytes, sizeof bytes);
  stop_scene(&s);
}

static void test_a_head_tells_its_follower_why_a_push_was_refused(void **state) {
  (void)state;
  struct scene s;
  struct pwi_request request = {
      .terms = {.kind = PWI_REQUEST_PUSH, .vector = {9}, .claim = {0, 1}, .range = {0, 1}}, .sender = {7}, .task = 3};
  struct pwi_served served = {.effect = PWI_EFFECT_REFUSAL,
                              .outcome = {.code = PWI_CODE_REFUSED, .status = PAWL_NODE_FULL}};
  struct pwi_log_entry *log_entry;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  struct pwi_chains *chains = &s.server->chains;
  struct pwi_chain *chain = pwi_chains_route(chains, &(struct pwi_place){.size = 1000}, pawl_range_of(0, 1));
  assert_int_equal(pwi_chain_prepare(chains, chain, &request, 4, 0, 0, &log_entry), PAWL_OK);
  pwi_chain_commit(chains, chain, s.server->shard, &request, &served, NULL, log_entry);
  assert_int_equal(heard(&s, next).effect, PWI_EFFECT_REFUSAL);
  assert_int_equal(heard(&s, next).status, PAWL_NODE_FULL);
  stop_scene(&s);
}

static void test_a_member_that_lacks_something_is_stuck_and_asks_again(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct pwi_chain *chain = chain_of(&s);
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  carried(&s);
  update(&s, previous, 1, 9); /* of a vector that only a later catalogue has */
  assert_true(contact_of(chain)->is_stuck);
  assert_int_equal(chain->processed, 0);
  update(&s, previous, 1, 0); /* nothing is taken now */
  assert_int_equal(chain->processed, 0);
  assert_int_equal(messages(&s, previous), 0);
  pwi_server_chains_unstick(s.server); /* a catalogue has come */
  assert_false(contact_of(chain)->is_stuck);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 9);
  assert_true(contact_of(chain)->is_stuck);
  stub_clear(&s.net);
  pass(&s, 50); /* or time has passed */
  assert_false(contact_of(chain)->is_stuck);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 0);
  assert_int_equal(chain->processed, 1);
  stop_scene(&s);
}

/* Of a large body only the beginning would be here: the rows of an aggregate without the clocks of its senders. */
static void test_a_change_for_which_there_is_no_memory_is_asked_for_again(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  s.lacks_memory = true;
  update(&s, previous, 1, 0);
  s.lacks_memory = false;
  assert_int_equal(chain_of(&s)->processed, 0);
  assert_true(contact_of(chain_of(&s))->is_stuck);
  assert_int_equal(complaints(&s), 1);
  stub_clear(&s.net);
  pass(&s, 50);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 0);
  assert_int_equal(chain_of(&s)->processed, 1);
  stop_scene(&s);
}

/* The previous member sends version 1, a push to keys of which it gives the signature. */
static void update_signed(struct scene *scene, const struct server_peer *peer) {
  struct pwi_terms request = {.kind = PWI_REQUEST_PUSH,
                              .keys = PWI_KEYS_SIGNED,
                              .vector = {1},
                              .number = 1,
                              .rows = 1,
                              .claim = {0, 1000},
                              .range = {0, 1000}};
  say_about(scene, peer, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_ROWS, .version = 1), &request, 77, 1);
  assert_int_equal(scene->net.closed_count, 0);
}

static void test_a_member_asks_for_keys_that_it_does_not_know(void **state) {
  (void)state;
  struct scene s;
  start_scene_with_vector(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_false(heard(&s, previous).full);
  update_signed(&s, previous);
  assert_int_equal(chain_of(&s)->processed, 0);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_true(heard(&s, previous).full);
  stop_scene(&s);
}

static void test_keys_are_asked_for_although_the_link_had_no_room(void **state) {
  (void)state;
  struct scene s;
  start_scene_with_vector(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  s.net.send_status = PAWL_QUEUE_FULL;
  update_signed(&s, previous);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN)); /* is answered by the same READY */
  make_room(&s, previous);
  assert_int_equal(messages(&s, previous), 1);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_true(heard(&s, previous).full);
  stop_scene(&s);
}

/* The member has the change from before its arc was merged, and so need not apply it. But the following member may ask
 * it for the keys. */
static void test_a_member_passes_no_change_on_whose_keys_it_does_not_know(void **state) {
  (void)state;
  struct scene s;
  start_scene_with_vector(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  carried(&s);
  chain_of(&s)->version = 1;
  update_signed(&s, previous);
  assert_int_equal(messages(&s, next), 0);
  assert_int_equal(chain_of(&s)->processed, 0);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_true(heard(&s, previous).full);
  stop_scene(&s);
}

static void test_an_update_that_cannot_be_read_ends_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  /* It has no terms. */
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = 1));
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].why, PAWL_CORRUPT);
  assert_int_equal(chain_of(&s)->processed, 0);
  stop_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(messages_of_another_view_are_ignored),
      T(a_neighbour_on_the_wrong_side_is_cut_off),
      T(a_previous_member_is_greeted_once_it_speaks),
      T(a_tail_applies_updates_in_order_and_confirms),
      T(messages_to_the_previous_member_wait_for_room_on_the_link),
      T(changes_of_one_version_are_taken_in_order),
      T(a_member_in_the_middle_passes_updates_on),
      T(a_member_in_the_middle_passes_a_refusal_on),
      T(a_member_in_the_middle_passes_a_result_on),
      T(a_head_tells_its_follower_why_a_push_was_refused),
      T(a_member_that_lacks_something_is_stuck_and_asks_again),
      T(a_change_for_which_there_is_no_memory_is_asked_for_again),
      T(a_member_asks_for_keys_that_it_does_not_know),
      T(keys_are_asked_for_although_the_link_had_no_room),
      T(a_member_passes_no_change_on_whose_keys_it_does_not_know),
      T(an_update_that_cannot_be_read_ends_the_link),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
