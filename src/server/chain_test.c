/* The bookkeeping of chains: routing, versions, the log, and deferred replies. */
#include "server/chain_testing.h"

#include <string.h>

#include "base/cursor.h"

#define SEE(member, ...)                                                                                               \
  do {                                                                                                                 \
    struct pwi_arc arcs_seen[] = {__VA_ARGS__};                                                                        \
    see_view(member, arcs_seen, sizeof arcs_seen / sizeof *arcs_seen);                                                 \
  } while (0)

static const struct pwi_place place = {.size = 1000}; /* 250 keys on each quarter of the ring */

/* Starts node 1 with these chains, its first ones. */
#define START(member, ...)                                                                                             \
  do {                                                                                                                 \
    start_member(member, 1);                                                                                           \
    assert_int_equal(pwi_chains_hold(&(member)->chains, RING, NULL), PAWL_OK);                                         \
    SEE(member, __VA_ARGS__);                                                                                          \
  } while (0)

static struct pwi_chain *at(const struct member *member, uint64_t position) {
  struct pwi_chain *chain = pwi_chains_find(&member->chains, position);
  assert_non_null(chain);
  return chain;
}

static struct pwi_chain *route(struct member *member, uint64_t begin, uint64_t end) {
  return pwi_chains_route(&member->chains, &place, pawl_range_of(begin, end));
}

/* The head serves a request that changes something on these keys. */
static struct pwi_chain *change(struct member *member, uint64_t begin, uint64_t end) {
  struct pwi_request request = {.terms = {.kind = PWI_REQUEST_TICK, .claim = {begin, end}}, .sender = {7}, .task = 3};
  struct pwi_served served = {.effect = PWI_EFFECT_TICK, .tick = 5};
  struct pwi_log_entry *log_entry;
  struct pwi_chain *chain = route(member, begin, end);
  assert_non_null(chain);
  assert_int_equal(pwi_chain_prepare(&member->chains, chain, &request, 8, 0, 0, &log_entry), PAWL_OK);
  pwi_chain_commit(&member->chains, chain, NULL, &request, &served, NULL, log_entry);
  return chain;
}

static void defer(struct pwi_chain *chain, uint64_t number, uint64_t begin, uint64_t end) {
  assert_int_equal(pwi_chain_defer(chain, pawl_range_of(begin, end), reply_of(number)), PAWL_OK);
}

static size_t logged(const struct pwi_chain *chain) { return pwi_fifo_count(&chain->log); }

/* Sends all changes that can be sent. Returns the version of the last one. */
static uint64_t send_all(struct pwi_chain *chain) {
  while (pwi_chain_next(chain)) pwi_chain_was_sent(chain);
  return chain->sent;
}

/* --- routing -------------------------------------------------------------------------------------------- */

static void test_requests_are_for_the_head_alone(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"), arc_of(QUARTER, 1, "21"), arc_of(HALF, 1, "1"), arc_of(3 * QUARTER, 1, "1"));
  assert_ptr_equal(route(&m, 0, 250), m.chains.items[0]);
  assert_ptr_equal(route(&m, 249, 250), m.chains.items[0]);
  assert_null(route(&m, 250, 500));
  assert_null(route(&m, 249, 251));
  assert_null(route(&m, 0, 1000));
  m.chains.items[0]->is_handing = true;
  assert_null(route(&m, 0, 250));
  SEE(&m, arc_of(0, 2, "2"), arc_of(QUARTER, 1, "21"), arc_of(HALF, 1, "1"), arc_of(3 * QUARTER, 1, "1"));
  assert_null(pwi_chains_find(&m.chains, 5));
  assert_null(route(&m, 0, 250));
  assert_ptr_equal(route(&m, 999, 1000), m.chains.items[2]);
  stop_member(&m);
}

static void test_a_claim_may_span_several_arcs_without_followers(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"), arc_of(QUARTER, 1, "1"), arc_of(HALF, 1, "1"), arc_of(3 * QUARTER, 1, "13f"));
  assert_ptr_equal(route(&m, 250, 1000), m.chains.items[1]);
  assert_int_equal(m.chains.routed_first, 1);
  assert_int_equal(m.chains.routed_last, 3);
  assert_null(route(&m, 0, 1000)); /* node 2 follows in the first arc */
  change(&m, 400, 900);
  for (size_t i = 1; i < 4; i++) {
    assert_int_equal(m.chains.items[i]->version, 1);
    assert_true(pwi_chain_is_settled(m.chains.items[i]));
  }
  assert_int_equal(m.chains.items[0]->version, 0);
  m.chains.items[3]->is_open = true; /* node 3 is now sent changes */
  assert_null(route(&m, 250, 1000));
  assert_ptr_equal(route(&m, 250, 750), m.chains.items[1]);
  assert_ptr_equal(route(&m, 750, 1000), m.chains.items[3]);
  m.chains.items[2]->is_handing = true;
  assert_null(route(&m, 250, 750));
  assert_ptr_equal(route(&m, 250, 500), m.chains.items[1]);
  stop_member(&m);
}

static void test_a_claim_does_not_span_an_arc_of_another_node(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "1"), arc_of(QUARTER, 1, "2"), arc_of(HALF, 1, "1"));
  assert_null(route(&m, 0, 1000));
  assert_null(route(&m, 0, 500));
  assert_non_null(route(&m, 0, 250));
  stop_member(&m);
}

/* --- changes and answers -------------------------------------------------------------------------------- */

static void test_changes_are_kept_until_they_are_confirmed(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = change(&m, 0, 10);
  change(&m, 20, 30);
  defer(chain, 11, 0, 10);
  change(&m, 0, 10);
  assert_int_equal(chain->version, 3);
  assert_int_equal(logged(chain), 3);
  assert_int_equal(m.pumped, 3);
  const struct pwi_log_entry *log_entry = pwi_chain_next(chain);
  assert_int_equal(log_entry->version, 1);
  assert_int_equal(log_entry->sender, 7);
  assert_int_equal(log_entry->tick, 5);
  assert_int_equal(send_all(chain), 3);
  pwi_chain_heard(&m.chains, chain, 1);
  assert_int_equal(m.told_count, 0);
  pwi_chain_heard(&m.chains, chain, 2);
  assert_int_equal(m.told_count, 1);
  assert_int_equal(m.told[0].number, 11);
  assert_false(m.told[0].is_lost);
  assert_false(pwi_chain_is_settled(chain));
  pwi_chain_heard(&m.chains, chain, 3);
  assert_true(pwi_chain_is_settled(chain));
  assert_int_equal(logged(chain), 0);
  stop_member(&m);
}

static void test_a_request_without_effect_has_no_version(void **state) {
  (void)state;
  struct member m;
  struct pwi_request request = {.terms = {.kind = PWI_REQUEST_TICK}};
  struct pwi_served served = {.effect = PWI_EFFECT_NONE};
  struct pwi_log_entry *log_entry;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = route(&m, 0, 10);
  assert_int_equal(pwi_chain_prepare(&m.chains, chain, &request, 8, 0, 0, &log_entry), PAWL_OK);
  assert_non_null(log_entry);
  pwi_chain_commit(&m.chains, chain, NULL, &request, &served, NULL, log_entry);
  assert_int_equal(chain->version, 0);
  assert_int_equal(logged(chain), 0);
  assert_int_equal(m.pumped, 0);
  stop_member(&m);
}

static void test_a_request_is_not_taken_if_its_change_could_not_be_kept(void **state) {
  (void)state;
  struct member m;
  struct pwi_request request = {.terms = {.kind = PWI_REQUEST_PUSH, .rows = 10}};
  struct pwi_log_entry *log_entry;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = route(&m, 0, 10);
  m.log_entries.bytes = UINT64_C(1) << 40;
  assert_int_equal(pwi_chain_prepare(&m.chains, chain, &request, 8, 0, 0, &log_entry), PAWL_QUEUE_FULL);
  m.log_entries.bytes = 0;
  request.terms.rows = SIZE_MAX / 16;
  assert_int_equal(pwi_chain_prepare(&m.chains, chain, &request, 8, 0, 0, &log_entry), PAWL_TOO_LARGE);
  request.terms.rows = 10;
  assert_int_equal(pwi_chain_prepare(&m.chains, chain, &request, 8, 4, 2, &log_entry), PAWL_OK);
  assert_int_equal(log_entry->value_bytes, 80);
  assert_int_equal(log_entry->state_bytes, 40);
  assert_int_equal(log_entry->stamp_bytes, 2 * PWI_STAMP_SIZE);
  pwi_log_entry_release(log_entry);
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_chain_prepare(&m.chains, chain, &request, 8, 0, 20, &log_entry);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(log_entry);
  }
  pwi_log_entry_release(log_entry);
  assert_int_equal(m.log_entries.bytes, 0);
  stop_member(&m);
}

static void test_deferred_replies_survive_a_view(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = change(&m, 0, 10);
  defer(chain, 11, 0, QUARTER);
  send_all(chain);
  SEE(&m, arc_of(0, 2, "123f"));
  assert_int_equal(m.told_count, 0);
  chain = at(&m, 0);
  assert_int_equal(chain->since, 2);
  assert_int_equal(logged(chain), 1);
  assert_non_null(pwi_chain_next(chain)); /* the follower may not have it, so it is sent again */
  pwi_chain_heard(&m.chains, chain, 1);
  assert_int_equal(m.told_count, 1);
  assert_false(m.told[0].is_lost);
  stop_member(&m);
}

static void test_answers_are_given_when_the_last_follower_is_dropped(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  defer(change(&m, 0, 10), 11, 0, QUARTER);
  SEE(&m, arc_of(0, 2, "1"));
  assert_int_equal(m.told_count, 1);
  assert_false(m.told[0].is_lost);
  assert_int_equal(logged(at(&m, 0)), 0);
  assert_true(pwi_chain_is_settled(at(&m, 0)));
  stop_member(&m);
}

static void test_an_answer_is_lost_if_its_arc_is_split_under_it(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = change(&m, 0, 1000);
  defer(chain, 1, 0, QUARTER);
  defer(chain, 2, QUARTER, 3 * QUARTER);
  defer(chain, 3, HALF, 3 * QUARTER);
  SEE(&m, arc_of(0, 2, "12"), arc_of(HALF, 2, "12"));
  assert_int_equal(m.told_count, 1);
  assert_int_equal(m.told[0].number, 2);
  assert_true(m.told[0].is_lost);
  pwi_chain_heard(&m.chains, at(&m, HALF), 1);
  assert_int_equal(m.told_count, 2);
  assert_int_equal(m.told[1].number, 3);
  assert_false(m.told[1].is_lost);
  pwi_chain_heard(&m.chains, at(&m, 0), 1);
  assert_int_equal(m.told[2].number, 1);
  assert_false(m.told[2].is_lost);
  stop_member(&m);
}

static void test_deferred_replies_are_lost_when_another_node_becomes_the_head(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"), arc_of(HALF, 1, "12"));
  defer(change(&m, 0, 10), 1, 0, QUARTER);
  defer(change(&m, 900, 1000), 2, HALF, 3 * QUARTER);
  SEE(&m, arc_of(0, 2, "21"), arc_of(HALF, 2, "2"));
  assert_int_equal(m.told_count, 2);
  assert_true(m.told[0].is_lost && m.told[1].is_lost);
  assert_int_equal(m.chains.count, 1);
  stop_member(&m);
}

/* --- splitting and merging ------------------------------------------------------------------------------ */

static void test_both_halves_of_an_arc_keep_the_unconfirmed_changes(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  for (int i = 0; i < 4; i++) change(&m, 0, 10);
  pwi_chain_heard(&m.chains, at(&m, 0), 2);
  SEE(&m, arc_of(0, 2, "12"), arc_of(HALF, 2, "12"));
  struct pwi_chain *left = at(&m, 0), *right = at(&m, HALF);
  assert_int_equal(logged(left), 2);
  assert_int_equal(logged(right), 2);
  assert_ptr_equal(pwi_chain_next(left), pwi_chain_next(right));
  assert_int_equal(pwi_chain_next(left)->references, 2);
  change(&m, 0, 10);
  assert_int_equal(left->version, 5);
  assert_int_equal(right->version, 4);
  assert_int_equal(send_all(left), 5);
  assert_int_equal(send_all(right), 4);
  pwi_chain_heard(&m.chains, left, 5);
  assert_int_equal(logged(right), 2);
  pwi_chain_heard(&m.chains, right, 4);
  assert_true(pwi_chain_is_settled(left) && pwi_chain_is_settled(right));
  stop_member(&m);
}

static void test_a_change_that_was_split_and_merged_again_is_kept_once(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  for (int i = 0; i < 4; i++) change(&m, 0, 10);
  for (uint64_t epoch = 2; epoch < 40; epoch += 2) {
    SEE(&m, arc_of(0, epoch, "12"), arc_of(HALF, epoch, "12"));
    SEE(&m, arc_of(0, epoch + 1, "12"));
    assert_int_equal(logged(at(&m, 0)), 4);
  }
  stop_member(&m);
}

/* The left half has version 5, the right one 2, and the arcs are one now. */
static void start_uneven(struct member *m) {
  START(m, arc_of(0, 1, "12"), arc_of(HALF, 1, "12"));
  for (int i = 0; i < 5; i++) change(m, 0, 10);
  for (int i = 0; i < 2; i++) change(m, 900, 910);
}

static void test_logs_of_merged_arcs_are_one_by_rising_version(void **state) {
  (void)state;
  struct member m;
  start_uneven(&m);
  pwi_chain_heard(&m.chains, at(&m, 0), 1);
  SEE(&m, arc_of(0, 2, "12"));
  struct pwi_chain *chain = at(&m, 0);
  uint64_t last = 0, lowest = UINT64_MAX;
  size_t count = 0;
  assert_int_equal(chain->version, 5);
  assert_false(chain->is_even);
  assert_int_equal(pwi_chain_lowest(&m.chains, chain), 2);
  for (const struct pwi_log_entry *log_entry; (log_entry = pwi_chain_next(chain)); count++) {
    assert_true(log_entry->version >= last);
    last = log_entry->version;
    if (last < lowest) lowest = last;
    pwi_chain_was_sent(chain);
  }
  assert_int_equal(count, 6);
  assert_int_equal(lowest, 1);
  assert_int_equal(last, 5);
  change(&m, 0, 1000);
  assert_int_equal(chain->version, 6);
  assert_true(chain->is_even);
  assert_int_equal(pwi_chain_lowest(&m.chains, chain), 6);
  stop_member(&m);
}

static void test_changes_of_merged_arcs_may_have_the_same_version(void **state) {
  (void)state;
  struct member m;
  start_uneven(&m);
  SEE(&m, arc_of(0, 2, "12"));
  struct pwi_chain *chain = at(&m, 0);
  pwi_chain_rewind(chain, 1);
  for (int i = 0; i < 2; i++) { /* both changes of version 2 arrive before one is confirmed */
    assert_int_equal(pwi_chain_next(chain)->version, 2);
    assert_int_equal(pwi_chain_has_more(chain), i == 0);
    pwi_chain_was_sent(chain);
    assert_int_equal(chain->sent, 1 + i);
  }
  assert_int_equal(pwi_chain_next(chain)->version, 3);
  assert_false(pwi_chain_has_more(chain));
  stop_member(&m);
}

static void test_the_next_version_in_an_uneven_arc_depends_on_the_position(void **state) {
  (void)state;
  struct member m;
  struct pawl_range piece;
  start_uneven(&m);
  SEE(&m, arc_of(0, 2, "12"));
  const struct pwi_chain *chain = at(&m, 0);
  assert_false(pwi_chain_next_due(&m.chains, chain, pawl_range_of(0, HALF), 5, &piece));
  assert_false(pwi_chain_next_due(&m.chains, chain, RING, 2, &piece));
  assert_true(pwi_chain_next_due(&m.chains, chain, RING, 4, &piece));
  assert_int_equal(piece.begin, HALF);
  assert_int_equal(piece.end, PWI_RING_END);
  assert_true(pwi_chain_next_due(&m.chains, chain, RING, 6, &piece));
  assert_int_equal(piece.begin, 0);
  assert_true(pwi_chain_next_due(&m.chains, chain, pawl_range_of(HALF, 3 * QUARTER), 3, &piece));
  assert_int_equal(piece.end, 3 * QUARTER);
  stop_member(&m);
}

static void test_everything_is_confirmed_when_the_log_is_empty_and_the_follower_is_equal(void **state) {
  (void)state;
  struct member m;
  start_uneven(&m);
  pwi_chain_heard(&m.chains, at(&m, 0), 5);
  pwi_chain_heard(&m.chains, at(&m, HALF), 2);
  SEE(&m, arc_of(0, 2, "12"));
  struct pwi_chain *chain = at(&m, 0);
  defer(chain, 1, 0, QUARTER); /* a pull that has seen version 5 */
  assert_false(pwi_chain_is_settled(chain));
  pwi_chain_rewind(chain, 2);
  pwi_chain_heard(&m.chains, chain, 1);
  assert_false(pwi_chain_is_settled(chain));
  pwi_chain_heard(&m.chains, chain, 2); /* the lowest version of the follower, which equals the lowest here */
  assert_true(pwi_chain_is_settled(chain));
  assert_int_equal(m.told_count, 1);
  stop_member(&m);
}

static void test_a_follower_is_sent_again_the_changes_that_it_asks_for(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12"));
  struct pwi_chain *chain = change(&m, 0, 10);
  for (int i = 0; i < 3; i++) change(&m, 0, 10);
  assert_int_equal(send_all(chain), 4);
  assert_null(pwi_chain_next(chain));
  pwi_chain_rewind(chain, 2);
  assert_int_equal(chain->sent, 2);
  assert_int_equal(pwi_chain_next(chain)->version, 3);
  pwi_chain_heard(&m.chains, chain, 3); /* a confirmed entry need not be sent */
  assert_int_equal(pwi_chain_next(chain)->version, 4);
  pwi_chain_rewind(chain, 0);
  assert_int_equal(pwi_chain_next(chain)->version, 4);
  assert_int_equal(send_all(chain), 4);
  assert_null(pwi_chain_next(chain));
  stop_member(&m);
}

/* --- those behind --------------------------------------------------------------------------------------- */

static struct pwi_log_entry *log_entry_of(struct member *member, uint64_t version, struct pawl_range positions) {
  struct pwi_log_entry *log_entry;
  assert_int_equal(pwi_log_entry_take(&member->log_entries, 10, &log_entry), PAWL_OK);
  log_entry->version = version;
  log_entry->positions = positions;
  return log_entry;
}

static void apply(struct member *m, struct pwi_chain *chain, uint64_t version, struct pawl_range positions) {
  assert_int_equal(pwi_chain_make_room(&m->chains, chain, positions), PAWL_OK);
  struct pwi_log_entry *log_entry = pwi_chain_has_followers(chain) ? log_entry_of(m, version, positions) : NULL;
  pwi_chain_applied(&m->chains, chain, version, positions, true, log_entry);
}

static void test_a_member_in_the_middle_keeps_the_changes_that_it_passes_on(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "213"));
  struct pwi_chain *chain = at(&m, 0);
  assert_int_equal(chain->previous, 2);
  assert_int_equal(chain->following, 3);
  apply(&m, chain, 1, RING);
  apply(&m, chain, 2, RING);
  assert_int_equal(pwi_chain_at(chain), 2);
  assert_int_equal(logged(chain), 2);
  assert_false(pwi_chain_is_settled(chain));
  pwi_chain_heard(&m.chains, chain, 2);
  assert_true(pwi_chain_is_settled(chain));
  SEE(&m, arc_of(0, 2, "13")); /* node 1 is the head now and continues the versions */
  assert_int_equal(at(&m, 0)->version, 2);
  assert_int_equal(change(&m, 0, 10)->version, 3);
  stop_member(&m);
}

/* The right half has version 2, which node 3 has not confirmed. The head has more changes of the left half,
 * with lower versions. */
static void test_an_inherited_change_is_passed_on_once_no_earlier_change_can_come(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "213"), arc_of(HALF, 1, "213"));
  apply(&m, at(&m, HALF), 1, pawl_range_of(HALF, PWI_RING_END));
  apply(&m, at(&m, HALF), 2, pawl_range_of(HALF, PWI_RING_END));
  SEE(&m, arc_of(0, 2, "213"));
  struct pwi_chain *chain = at(&m, 0);
  assert_int_equal(logged(chain), 2);
  assert_null(pwi_chain_next(chain));
  assert_int_equal(pwi_chain_make_room(&m.chains, chain, pawl_range_of(0, HALF)), PAWL_OK);
  pwi_chain_applied(&m.chains, chain, 1, pawl_range_of(0, HALF), false, log_entry_of(&m, 1, pawl_range_of(0, HALF)));
  assert_int_equal(pwi_chain_at(chain), 0); /* another change of version 1 follows */
  assert_null(pwi_chain_next(chain));
  apply(&m, chain, 1, pawl_range_of(HALF, PWI_RING_END)); /* the change is in the log already and stays there once */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pwi_chain_next(chain)->version, 1);
    pwi_chain_was_sent(chain);
  }
  assert_null(pwi_chain_next(chain));
  assert_false(pwi_chain_is_ahead(chain));
  pwi_chain_caught_up(&m.chains, chain, 2);
  assert_int_equal(pwi_chain_next(chain)->version, 2);
  assert_int_equal(send_all(chain), 2);
  stop_member(&m);
}

static void test_the_tail_confirms_at_once(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "21"));
  apply(&m, at(&m, 0), 1, RING);
  assert_true(pwi_chain_is_settled(at(&m, 0)));
  assert_int_equal(logged(at(&m, 0)), 0);
  stop_member(&m);
}

static void test_a_change_of_a_part_of_an_even_arc_needs_no_memory_after_room_was_made(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "21"));
  struct pwi_chain *chain = at(&m, 0);
  /* Before the arcs were merged, the left half of the head was one version ahead of the right half. */
  for (uint64_t version = 1; version < 40; version++) {
    struct pawl_range part = pawl_range_of(version * (QUARTER / 16), (version + 1) * (QUARTER / 16));
    assert_int_equal(pwi_chain_make_room(&m.chains, chain, part), PAWL_OK);
    pwi_memory_fail_after(0);
    pwi_chain_applied(&m.chains, chain, version, part, true, NULL);
    assert_int_equal(pwi_memory_fail_cancel(), 0);
    assert_int_equal(chain->version, version);
    assert_false(chain->is_even);
  }
  assert_int_equal(pwi_chain_lowest(&m.chains, chain), 0);
  stop_member(&m);
}

/* The whole arc has changed. Its left half has also changed while it was an arc of its own. */
static void test_a_change_of_a_part_leaves_the_other_part_where_it_is(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "21"));
  struct pwi_chain *chain = at(&m, 0);
  apply(&m, chain, 1, RING);
  apply(&m, chain, 2, RING);
  apply(&m, chain, 3, pawl_range_of(0, HALF));
  assert_int_equal(chain->version, 3);
  assert_false(chain->is_even);
  assert_int_equal(pwi_chain_lowest(&m.chains, chain), 2);
  stop_member(&m);
}

/* --- filling -------------------------------------------------------------------------------------------- */

/* Before its first chunk a target needs no changes, after it all of them. Once it is in step, its
 * confirmation counts, and it needs all changes even without a link. */
static void test_changes_are_kept_for_a_member_whose_confirmation_counts_even_while_it_is_unreachable(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12f"));
  struct pwi_chain *chain = change(&m, 0, 10);
  assert_int_equal(logged(chain), 0);
  chain->is_open = true;
  change(&m, 0, 10);
  assert_int_equal(logged(chain), 1);
  assert_true(pwi_chain_is_settled(chain)); /* the confirmation of the target does not count yet */
  chain->is_synced = true;
  change(&m, 0, 10);
  assert_false(pwi_chain_is_settled(chain));
  chain->is_open = false; /* the link is lost */
  assert_true(pwi_chain_has_followers(chain));
  change(&m, 0, 10);
  defer(chain, 1, 0, QUARTER);
  pwi_chain_settle(&m.chains, chain);
  assert_int_equal(logged(chain), 3);
  assert_int_equal(m.told_count, 0);
  SEE(&m, arc_of(0, 2, "12"));
  chain = at(&m, 0);
  assert_int_equal(logged(chain), 3);
  assert_int_equal(m.told_count, 0);
  pwi_chain_rewind(chain, 3);
  assert_int_equal(pwi_chain_next(chain)->version, 4);
  pwi_chain_heard(&m.chains, chain, 4);
  assert_int_equal(m.told_count, 1);
  stop_member(&m);
}

static void test_changes_for_a_target_that_is_given_up_are_released(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "12f"));
  struct pwi_chain *chain = at(&m, 0);
  chain->is_open = chain->is_synced = true;
  change(&m, 0, 10);
  defer(chain, 1, 0, QUARTER);
  chain->is_open = chain->is_synced = false;
  pwi_chain_settle(&m.chains, chain);
  assert_int_equal(logged(chain), 0);
  assert_int_equal(m.told_count, 1);
  assert_false(m.told[0].is_lost);
  stop_member(&m);
}

/* Writes the versions of the arc of node 1 for node 2: 5 on the left, 2 on the right. */
static void save_uneven(struct pwi_writer *writer) {
  struct member source;
  start_uneven(&source);
  SEE(&source, arc_of(0, 2, "12f"));
  assert_int_equal(pwi_chain_save_versions(&source.chains, at(&source, 0), writer), PAWL_OK);
  stop_member(&source);
}

static void test_a_filled_member_has_the_versions_of_its_source(void **state) {
  (void)state;
  struct member m;
  struct pwi_writer writer = {0};
  save_uneven(&writer);
  start_member(&m, 2);
  SEE(&m, arc_of(0, 2, "12f"));
  struct pwi_chain *chain = at(&m, 0);
  assert_true(chain->is_filling);
  chain->processed = chain->version = 4;
  apply(&m, chain, 5, RING); /* before the END chunk only rows are applied */
  assert_int_equal(chain->staged.held.count, 0);
  assert_int_equal(pwi_chain_load_versions(chain, writer.data, writer.size), PAWL_OK);
  apply(&m, chain, 6, pawl_range_of(0, QUARTER));
  assert_int_equal(pwi_chains_hold(&m.chains, chain->positions, chain), PAWL_OK);
  SEE(&m, arc_of(0, 3, "12"));
  chain = at(&m, 0);
  assert_false(chain->is_even);
  assert_int_equal(chain->version, 6);
  assert_int_equal(pwi_chain_lowest(&m.chains, chain), 2);
  struct pawl_range piece;
  assert_false(pwi_chain_next_due(&m.chains, chain, pawl_range_of(0, QUARTER), 6, &piece));
  assert_true(pwi_chain_next_due(&m.chains, chain, pawl_range_of(QUARTER, HALF), 6, &piece));
  assert_false(pwi_chain_next_due(&m.chains, chain, pawl_range_of(QUARTER, HALF), 5, &piece));
  assert_true(pwi_chain_next_due(&m.chains, chain, pawl_range_of(HALF, PWI_RING_END), 3, &piece));
  pwi_writer_fini(&writer);
  stop_member(&m);
}

static void test_malformed_versions_are_refused(void **state) {
  (void)state;
  struct member m;
  struct pwi_writer writer = {0};
  save_uneven(&writer);
  start_member(&m, 2);
  SEE(&m, arc_of(0, 2, "12f"));
  struct pwi_chain *chain = at(&m, 0);
  for (size_t size = 0; size < writer.size; size++) {
    assert_int_equal(pwi_chain_load_versions(chain, writer.data, size), PAWL_CORRUPT);
    assert_int_equal(chain->staged.held.count, 0);
  }
  unsigned char *bytes = test_malloc(writer.size);
  for (size_t i = 0; i < writer.size * 8; i++) {
    memcpy(bytes, writer.data, writer.size);
    bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    pawl_status status = pwi_chain_load_versions(chain, bytes, writer.size);
    assert_true(status == PAWL_CORRUPT || (status == PAWL_OK && pwi_rangeset_contains(&chain->staged.held, RING)));
  }
  test_free(bytes);
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_chain_load_versions(chain, writer.data, writer.size);
    if (!pwi_memory_fail_cancel()) break;
    assert_int_equal(status, PAWL_NO_MEMORY);
  }
  stop_member(&m);
  start_member(&m, 2); /* the source has only a part of the arc */
  struct pwi_clock part = {0};
  struct pawl_range left = pawl_range_of(0, HALF);
  assert_int_equal(pwi_clock_init(&part, &left, 1), PAWL_OK);
  SEE(&m, arc_of(0, 2, "12f"));
  size_t size = pwi_clock_encoded_size(&part);
  pwi_writer_reset(&writer);
  assert_int_equal(pwi_clock_encode(&part, pwi_write_room(&writer, size), size, &size), PAWL_OK);
  assert_int_equal(pwi_chain_load_versions(at(&m, 0), writer.data, size), PAWL_CORRUPT);
  pwi_clock_fini(&part);
  pwi_writer_fini(&writer);
  stop_member(&m);
}

static void test_a_member_that_fills_passes_nothing_on(void **state) {
  (void)state;
  struct member m;
  start_member(&m, 3);
  SEE(&m, arc_of(0, 1, "123f4f"), arc_of(HALF, 1, "124f3f"));
  assert_int_equal(at(&m, 0)->previous, 2);
  assert_int_equal(at(&m, 0)->following, 0);
  assert_int_equal(at(&m, HALF)->previous, 0); /* it follows node 4 */
  stop_member(&m);
}

/* --- positions ------------------------------------------------------------------------------------------ */

static void test_positions_that_are_dropped_have_no_version_any_more(void **state) {
  (void)state;
  struct member m;
  START(&m, arc_of(0, 1, "1"), arc_of(HALF, 1, "1"));
  change(&m, 0, 10);
  change(&m, 900, 1000);
  assert_int_equal(pwi_chains_write_versions(&m.chains), PAWL_OK);
  assert_int_equal(pwi_chains_drop(&m.chains, pawl_range_of(0, HALF)), PAWL_OK);
  assert_int_equal(pwi_chains_drop(&m.chains, pawl_range_of(0, QUARTER)), PAWL_OK);
  assert_false(pwi_rangeset_intersects(&m.chains.versions.held, pawl_range_of(0, HALF)));
  SEE(&m, arc_of(0, 2, "21f"), arc_of(HALF, 1, "1"));
  assert_int_equal(at(&m, 0)->version, 0);
  assert_int_equal(at(&m, HALF)->version, 1);
  stop_member(&m);
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* A split, a merge, an arc that stays and an arc that goes, all with logs and deferred replies. */
static void start_busy(struct member *m) {
  START(m, arc_of(0, 1, "12"), arc_of(QUARTER, 1, "12"), arc_of(HALF, 1, "12"), arc_of(3 * QUARTER, 1, "12"));
  for (uint64_t key = 0; key < 1000; key += 90) {
    struct pwi_chain *chain = change(m, key, key + 1);
    uint64_t position = pwi_place_position(&place, key);
    defer(chain, key, position, position + 1);
  }
}

static void test_a_view_for_which_there_is_no_memory_changes_nothing(void **state) {
  (void)state;
  const struct pwi_arc next[] = {arc_of(0, 2, "12"), arc_of(HALF, 2, "12"), arc_of(HALF + QUARTER / 2, 2, "21"),
                                 arc_of(3 * QUARTER, 1, "12")};
  uint64_t failures = 0;
  for (uint64_t n = 0;; n++) {
    struct member m;
    start_busy(&m);
    struct pwi_view *view = view_of(next, 4);
    struct pwi_chain *before[4];
    size_t waiting[4], kept[4];
    uint32_t references[4];
    assert_int_equal(pwi_chains_write_versions(&m.chains), PAWL_OK);
    for (size_t i = 0; i < 4; i++) {
      before[i] = m.chains.items[i];
      waiting[i] = pwi_fifo_count(&before[i]->deferred);
      kept[i] = logged(before[i]);
      references[i] = pwi_chain_next(before[i])->references;
    }
    pwi_memory_fail_after(n);
    pawl_status status = pwi_chains_follow_view(&m.chains, view, 1);
    bool failed = pwi_memory_fail_cancel();
    pwi_view_release(view);
    if (!failed) {
      assert_int_equal(status, PAWL_OK);
      assert_int_equal(at(&m, 0)->since, 2);
      assert_ptr_equal(at(&m, 3 * QUARTER), before[3]);
      assert_int_equal(m.told_count, 1 + (HALF + QUARTER / 2 <= pwi_place_position(&place, 720)));
      stop_member(&m);
      break;
    }
    failures++;
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_int_equal(m.chains.count, 4);
    assert_int_equal(m.told_count, 0);
    for (size_t i = 0; i < 4; i++) {
      assert_ptr_equal(m.chains.items[i], before[i]);
      assert_int_equal(pwi_fifo_count(&before[i]->deferred), waiting[i]);
      assert_int_equal(logged(before[i]), kept[i]);
      assert_int_equal(pwi_chain_next(before[i])->references, references[i]);
    }
    see_view(&m, next, 4); /* the view can be applied later */
    stop_member(&m);
  }
  assert_true(failures > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_requests_are_for_the_head_alone),
      cmocka_unit_test(test_a_claim_may_span_several_arcs_without_followers),
      cmocka_unit_test(test_a_claim_does_not_span_an_arc_of_another_node),
      cmocka_unit_test(test_changes_are_kept_until_they_are_confirmed),
      cmocka_unit_test(test_a_request_without_effect_has_no_version),
      cmocka_unit_test(test_a_request_is_not_taken_if_its_change_could_not_be_kept),
      cmocka_unit_test(test_deferred_replies_survive_a_view),
      cmocka_unit_test(test_answers_are_given_when_the_last_follower_is_dropped),
      cmocka_unit_test(test_an_answer_is_lost_if_its_arc_is_split_under_it),
      cmocka_unit_test(test_deferred_replies_are_lost_when_another_node_becomes_the_head),
      cmocka_unit_test(test_both_halves_of_an_arc_keep_the_unconfirmed_changes),
      cmocka_unit_test(test_a_change_that_was_split_and_merged_again_is_kept_once),
      cmocka_unit_test(test_logs_of_merged_arcs_are_one_by_rising_version),
      cmocka_unit_test(test_changes_of_merged_arcs_may_have_the_same_version),
      cmocka_unit_test(test_the_next_version_in_an_uneven_arc_depends_on_the_position),
      cmocka_unit_test(test_everything_is_confirmed_when_the_log_is_empty_and_the_follower_is_equal),
      cmocka_unit_test(test_a_follower_is_sent_again_the_changes_that_it_asks_for),
      cmocka_unit_test(test_a_member_in_the_middle_keeps_the_changes_that_it_passes_on),
      cmocka_unit_test(test_an_inherited_change_is_passed_on_once_no_earlier_change_can_come),
      cmocka_unit_test(test_the_tail_confirms_at_once),
      cmocka_unit_test(test_a_change_of_a_part_of_an_even_arc_needs_no_memory_after_room_was_made),
      cmocka_unit_test(test_a_change_of_a_part_leaves_the_other_part_where_it_is),
      cmocka_unit_test(test_changes_are_kept_for_a_member_whose_confirmation_counts_even_while_it_is_unreachable),
      cmocka_unit_test(test_changes_for_a_target_that_is_given_up_are_released),
      cmocka_unit_test(test_a_filled_member_has_the_versions_of_its_source),
      cmocka_unit_test(test_malformed_versions_are_refused),
      cmocka_unit_test(test_a_member_that_fills_passes_nothing_on),
      cmocka_unit_test(test_positions_that_are_dropped_have_no_version_any_more),
      cmocka_unit_test(test_a_view_for_which_there_is_no_memory_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
