/* Range vector clocks: the contract of each call. clock_model_test.c compares them with a naive clock,
 * clock_turns_test.c simulates the exactly-once protocol, clock_code_test.c tests the encoding. */
#include "base/memory.h"
#include "base/testing.h"
#include "store/clock.h"

static struct pwi_sender sender_of(uint64_t id) { return (struct pwi_sender){id}; }

static void start(struct pwi_clock *clock, uint64_t begin, uint64_t end) {
  struct pawl_range range = pawl_range_of(begin, end);
  assert_int_equal(pwi_clock_init(clock, &range, 1), PAWL_OK);
}

static void set(struct pwi_clock *clock, uint64_t id, uint64_t begin, uint64_t end, uint64_t time) {
  assert_int_equal(pwi_clock_set(clock, sender_of(id), pawl_range_of(begin, end), time), PAWL_OK);
}

/* The pieces of a sender in the clock's only range must be these. */
static void assert_pieces(const struct pwi_clock *clock, uint64_t id, const struct pwi_clock_piece *pieces,
                          size_t count) {
  struct pwi_clock_pieces walk;
  assert_int_equal(pwi_clock_walk(clock, sender_of(id), clock->held.ranges[0], &walk), PAWL_OK);
  struct pwi_clock_piece piece;
  for (size_t i = 0; i < count; i++) {
    assert_true(pwi_clock_next(&walk, &piece));
    assert_int_equal(piece.range.begin, pieces[i].range.begin);
    assert_int_equal(piece.range.end, pieces[i].range.end);
    assert_int_equal(piece.time, pieces[i].time);
  }
  assert_false(pwi_clock_next(&walk, &piece));
}

#define ASSERT_PIECES(clock, id, ...)                                                                                  \
  assert_pieces(clock, id, (const struct pwi_clock_piece[]){__VA_ARGS__},                                              \
                sizeof((const struct pwi_clock_piece[]){__VA_ARGS__}) / sizeof(struct pwi_clock_piece))

static struct pwi_clock_finding check(const struct pwi_clock *clock, uint64_t begin, uint64_t end, uint64_t prior,
                                      uint64_t task) {
  struct pwi_clock_claim claim = {sender_of(1), pawl_range_of(begin, end), task, prior, false};
  struct pwi_clock_finding finding;
  assert_int_equal(pwi_clock_check(clock, &claim, &finding), PAWL_OK);
  return finding;
}

/* --- setting -------------------------------------------------------------------------------------------- */

static void test_setting_the_middle_of_a_range_makes_three(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  set(&clock, 1, 0, 100, 5);
  set(&clock, 1, 30, 60, 7);
  ASSERT_PIECES(&clock, 1, {{0, 30}, 5}, {{30, 60}, 7}, {{60, 100}, 5});
  pwi_clock_fini(&clock);
}

static void test_neighbours_with_equal_times_become_one(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 10, 100);
  set(&clock, 1, 10, 50, 7);
  set(&clock, 1, 50, 100, 8);
  ASSERT_PIECES(&clock, 1, {{10, 50}, 7}, {{50, 100}, 8});
  set(&clock, 1, 10, 50, 8);
  ASSERT_PIECES(&clock, 1, {{10, 100}, 8});
  pwi_clock_fini(&clock);
}

static void test_a_clock_never_runs_back(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  set(&clock, 1, 40, 60, 9);
  set(&clock, 1, 0, 100, 4);
  ASSERT_PIECES(&clock, 1, {{0, 40}, 4}, {{40, 60}, 9}, {{60, 100}, 4});
  set(&clock, 1, 0, 100, 3);
  ASSERT_PIECES(&clock, 1, {{0, 40}, 4}, {{40, 60}, 9}, {{60, 100}, 4});
  pwi_clock_fini(&clock);
}

static void test_a_sender_that_never_pushed_is_at_zero(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  set(&clock, 1, 0, 100, 4);
  set(&clock, 3, 0, 100, 0);
  ASSERT_PIECES(&clock, 2, {{0, 100}, 0});
  assert_true(pwi_clock_has(&clock, sender_of(1)));
  assert_false(pwi_clock_has(&clock, sender_of(2)));
  assert_false(pwi_clock_has(&clock, sender_of(3)));
  uint64_t lowest;
  struct pwi_sender both[2] = {sender_of(1), sender_of(2)};
  assert_int_equal(pwi_clock_min_of(&clock, both, 2, pawl_range_of(0, 100), &lowest), PAWL_OK);
  assert_int_equal(lowest, 0);
  assert_int_equal(pwi_clock_min_of(&clock, both, 1, pawl_range_of(0, 100), &lowest), PAWL_OK);
  assert_int_equal(lowest, 4);
  assert_int_equal(pwi_clock_min_of(&clock, both, 0, pawl_range_of(0, 100), &lowest), PAWL_OK);
  assert_int_equal(lowest, UINT64_MAX);
  pwi_clock_fini(&clock);
}

static void test_a_retired_sender_is_forgotten_and_the_others_stay(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  for (uint64_t id = 0; id < 50; id++) set(&clock, id, 0, 50, id + 1);
  for (uint64_t id = 0; id < 50; id += 2) pwi_clock_retire(&clock, sender_of(id));
  pwi_clock_retire(&clock, sender_of(1000));
  for (uint64_t id = 0; id < 50; id++) {
    uint64_t highest;
    assert_int_equal(pwi_clock_max(&clock, sender_of(id), pawl_range_of(0, 100), &highest), PAWL_OK);
    assert_int_equal(highest, id % 2 ? id + 1 : 0);
    assert_int_equal(pwi_clock_has(&clock, sender_of(id)), id % 2);
  }
  pwi_clock_fini(&clock);
}

static void test_ranges_that_are_not_held_are_refused(void **state) {
  (void)state;
  struct pawl_range held[2] = {{10, 20}, {30, 40}};
  const struct pawl_range wrong[] = {{15, 15}, {18, 12}, {0, 5}, {9, 12}, {18, 21}, {15, 35}, {20, 30}, {10, 40}};
  struct pwi_clock clock;
  struct pwi_clock part;
  uint64_t time;
  struct pwi_clock_finding finding;
  assert_int_equal(pwi_clock_init(&clock, held, 2), PAWL_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pwi_clock_claim claim = {sender_of(1), wrong[i], 2, 1, false};
    assert_int_equal(pwi_clock_set(&clock, sender_of(1), wrong[i], 1), PAWL_INVALID);
    assert_int_equal(pwi_clock_reserve(&clock, sender_of(1), wrong[i]), PAWL_INVALID);
    assert_int_equal(pwi_clock_check(&clock, &claim, &finding), PAWL_INVALID);
    assert_int_equal(pwi_clock_min(&clock, sender_of(1), wrong[i], &time), PAWL_INVALID);
    assert_int_equal(pwi_clock_max(&clock, sender_of(1), wrong[i], &time), PAWL_INVALID);
    assert_int_equal(pwi_clock_copy(&clock, wrong[i], &part), PAWL_INVALID);
    assert_int_equal(pwi_clock_take(&clock, wrong[i], &part), PAWL_INVALID);
    assert_int_equal(pwi_clock_drop(&clock, wrong[i]), PAWL_INVALID);
  }
  assert_false(pwi_clock_has(&clock, sender_of(1)));
  pwi_clock_fini(&clock);
}

static void test_clocks_that_share_a_key_are_not_joined(void **state) {
  (void)state;
  struct pwi_clock a;
  struct pwi_clock b;
  start(&a, 0, 50);
  start(&b, 49, 60);
  set(&b, 1, 49, 60, 3);
  assert_int_equal(pwi_clock_absorb(&a, &b), PAWL_INVALID);
  assert_int_equal(pwi_clock_absorb(&a, &a), PAWL_INVALID);
  ASSERT_PIECES(&a, 1, {{0, 50}, 0});
  ASSERT_PIECES(&b, 1, {{49, 60}, 3});
  assert_int_equal(pwi_clock_drop(&b, pawl_range_of(49, 50)), PAWL_OK);
  assert_int_equal(pwi_clock_absorb(&a, &b), PAWL_OK);
  ASSERT_PIECES(&a, 1, {{0, 50}, 0}, {{50, 60}, 3});
  pwi_clock_fini(&a);
  pwi_clock_fini(&b);
}

static void test_dropping_keys_frees_the_senders_that_pushed_only_there(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  for (uint64_t id = 0; id < 50; id++) set(&clock, id, id % 2 ? 0 : 50, 100, 1);
  assert_int_equal(pwi_clock_drop(&clock, pawl_range_of(50, 100)), PAWL_OK);
  assert_int_equal(clock.count, 25);
  for (uint64_t id = 0; id < 50; id++) assert_int_equal(pwi_clock_has(&clock, sender_of(id)), id % 2);
  uint64_t live = pwi_memory_counts().live;
  assert_int_equal(pwi_clock_drop(&clock, pawl_range_of(0, 50)), PAWL_OK);
  assert_true(pwi_memory_counts().live < live);
  assert_int_equal(clock.count, 0);
  pwi_clock_fini(&clock);
}

static void test_the_whole_key_space_fits_into_one_clock(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, PAWL_KEY_END);
  set(&clock, UINT64_MAX, PAWL_KEY_END - 1, PAWL_KEY_END, UINT64_MAX);
  ASSERT_PIECES(&clock, UINT64_MAX, {{0, PAWL_KEY_END - 1}, 0}, {{PAWL_KEY_END - 1, PAWL_KEY_END}, UINT64_MAX});
  pwi_clock_fini(&clock);
}

static void test_thousands_of_senders_are_found_again(void **state) {
  (void)state;
  const uint64_t count = 5000;
  struct pwi_clock up;
  struct pwi_clock down;
  start(&up, 0, 100);
  start(&down, 0, 100);
  for (uint64_t id = 0; id < count; id++) set(&up, id, 0, 100, id + 1);
  for (uint64_t id = count; id-- > 0;) set(&down, id, 0, 100, id + 1);
  uint64_t sum = 0;
  size_t at = 0;
  for (struct pwi_sender sender; pwi_clock_next_sender(&up, &at, &sender);) sum += sender.id;
  assert_int_equal(sum, count * (count - 1) / 2);
  assert_true(pwi_clock_equal(&up, &down));
  for (uint64_t id = 0; id < count; id += 3) pwi_clock_retire(&up, sender_of(id));
  for (uint64_t id = 0; id < count; id++) {
    uint64_t time;
    assert_int_equal(pwi_clock_min(&up, sender_of(id), pawl_range_of(0, 100), &time), PAWL_OK);
    assert_int_equal(time, id % 3 ? id + 1 : 0);
  }
  assert_false(pwi_clock_equal(&up, &down));
  pwi_clock_fini(&up);
  pwi_clock_fini(&down);
}

/* --- turns ---------------------------------------------------------------------------------------------- */

static void test_a_push_is_due_once_its_predecessor_is_in(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  assert_int_equal(check(&clock, 0, 100, 3, 5).verdict, PWI_CLAIM_GAP);
  assert_int_equal(check(&clock, 0, 100, 0, 3).verdict, PWI_CLAIM_DUE);
  set(&clock, 1, 0, 100, 3);
  assert_int_equal(check(&clock, 0, 100, 0, 3).verdict, PWI_CLAIM_DONE);
  assert_int_equal(check(&clock, 0, 100, 3, 5).verdict, PWI_CLAIM_DUE);
  assert_true(check(&clock, 0, 100, 3, 5).whole);
  pwi_clock_fini(&clock);
}

static void test_a_push_that_is_in_partly_is_due_on_the_rest(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  set(&clock, 1, 0, 100, 3);
  set(&clock, 1, 20, 40, 5);
  set(&clock, 1, 60, 70, 8);
  struct pwi_clock_finding finding = check(&clock, 0, 100, 3, 5);
  assert_int_equal(finding.verdict, PWI_CLAIM_DUE);
  assert_false(finding.whole);
  const struct pawl_range due[] = {{0, 20}, {40, 60}, {70, 100}};
  struct pwi_clock_pieces pieces;
  assert_int_equal(pwi_clock_walk(&clock, sender_of(1), pawl_range_of(0, 100), &pieces), PAWL_OK);
  struct pawl_range range;
  for (size_t i = 0; i < 3; i++) {
    assert_true(pwi_clock_next_due(&pieces, 5, &range));
    assert_memory_equal(&range, &due[i], sizeof range);
  }
  assert_false(pwi_clock_next_due(&pieces, 5, &range));
  pwi_clock_fini(&clock);
}

static void test_a_gap_anywhere_holds_up_the_whole_push(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 100);
  set(&clock, 1, 0, 100, 2);
  set(&clock, 1, 0, 50, 4);
  set(&clock, 1, 90, 100, 9);
  struct pwi_clock_finding finding = check(&clock, 0, 100, 4, 6);
  assert_int_equal(finding.verdict, PWI_CLAIM_GAP);
  assert_int_equal(finding.found, 2);
  assert_false(finding.whole);
  pwi_clock_fini(&clock);
}

static void test_a_time_between_predecessor_and_push_breaks_the_protocol(void **state) {
  (void)state;
  struct pwi_clock clock;
  struct pwi_clock_finding finding;
  start(&clock, 0, 100);
  set(&clock, 1, 0, 50, 7);
  finding = check(&clock, 0, 100, 6, 8);
  assert_int_equal(finding.verdict, PWI_CLAIM_BROKEN); /* although the other half is a gap */
  assert_int_equal(finding.found, 7);
  const struct pwi_clock_claim backwards = {sender_of(1), pawl_range_of(0, 100), 5, 5, false};
  assert_int_equal(pwi_clock_check(&clock, &backwards, &finding), PAWL_INVALID);
  pwi_clock_fini(&clock);
}

static void test_a_sender_may_begin_anew_where_that_is_allowed(void **state) {
  (void)state;
  struct pwi_clock clock;
  struct pwi_clock_finding finding;
  struct pwi_clock_claim anew = {sender_of(1), pawl_range_of(0, 100), 9, 0, true};
  start(&clock, 0, 100);
  set(&clock, 1, 0, 50, 7);
  assert_int_equal(check(&clock, 0, 100, 0, 9).verdict, PWI_CLAIM_BROKEN);
  assert_int_equal(pwi_clock_check(&clock, &anew, &finding), PAWL_OK);
  assert_int_equal(finding.verdict, PWI_CLAIM_DUE);
  assert_true(finding.whole);
  anew.task = 7; /* a duplicate, on one half */
  assert_int_equal(pwi_clock_check(&clock, &anew, &finding), PAWL_OK);
  assert_int_equal(finding.verdict, PWI_CLAIM_DUE);
  assert_false(finding.whole);
  anew.range.end = 50;
  assert_int_equal(pwi_clock_check(&clock, &anew, &finding), PAWL_OK);
  assert_int_equal(finding.verdict, PWI_CLAIM_DONE);
  anew.task = 9;
  anew.prior = 6; /* it knows of an earlier one */
  assert_int_equal(pwi_clock_check(&clock, &anew, &finding), PAWL_OK);
  assert_int_equal(finding.verdict, PWI_CLAIM_BROKEN);
  pwi_clock_fini(&clock);
}

/* --- memory --------------------------------------------------------------------------------------------- */

#define ARCS 16

static void set_every_arc(struct pwi_clock *clock, uint64_t senders, uint64_t time) {
  for (uint64_t arc = 0; arc < ARCS; arc++)
    for (uint64_t id = 0; id < senders; id++) set(clock, id, arc * 10, arc * 10 + 10, time);
}

static void test_setting_allocates_nothing_once_the_senders_are_known(void **state) {
  (void)state;
  struct pwi_clock whole;
  struct pwi_clock arcs;
  start(&whole, 0, 100);
  start(&arcs, 0, ARCS * 10);
  for (uint64_t id = 0; id < 100; id++) set(&whole, id, 0, 100, 1);
  set_every_arc(&arcs, 100, 1);
  set_every_arc(&arcs, 100, 2);
  uint64_t before = pwi_memory_counts().allocations;
  for (uint64_t task = 2; task < 50; task++) {
    for (uint64_t id = 0; id < 100; id++) {
      struct pwi_clock_claim claim = {sender_of(id), pawl_range_of(0, 100), task, task - 1, false};
      struct pwi_clock_finding finding;
      assert_int_equal(pwi_clock_check(&whole, &claim, &finding), PAWL_OK);
      assert_int_equal(finding.verdict, PWI_CLAIM_DUE);
      set(&whole, id, 0, 100, task);
    }
    set_every_arc(&arcs, 100, task);
  }
  assert_int_equal(pwi_memory_counts().allocations, before);
  pwi_clock_fini(&whole);
  pwi_clock_fini(&arcs);
}

static void test_a_set_for_which_room_was_made_cannot_fail(void **state) {
  (void)state;
  struct pwi_clock clock;
  start(&clock, 0, 1000);
  for (uint64_t round = 0; round < 20; round++) {
    struct pawl_range range = pawl_range_of(round * 40 + 10, round * 40 + 20);
    for (uint64_t id = 0; id < 100; id++) assert_int_equal(pwi_clock_reserve(&clock, sender_of(id), range), PAWL_OK);
    for (uint64_t id = 0; id < 100; id++) {
      pwi_memory_fail_after(0);
      pawl_status status = pwi_clock_set(&clock, sender_of(id), range, round + 1);
      assert_int_equal(pwi_memory_fail_cancel(), 0);
      assert_int_equal(status, PAWL_OK);
    }
  }
  for (uint64_t round = 0; round < 20; round++) {
    uint64_t time;
    assert_int_equal(pwi_clock_min(&clock, sender_of(99), pawl_range_of(round * 40 + 10, round * 40 + 20), &time), 0);
    assert_int_equal(time, round + 1);
    assert_int_equal(pwi_clock_max(&clock, sender_of(99), pawl_range_of(round * 40 + 20, round * 40 + 50), &time), 0);
    assert_int_equal(time, 0);
  }
  pwi_clock_fini(&clock);
}

enum { SET_NEW, SET_SPLIT, RESERVE, COPY, DROP, TAKE, ABSORB, DECODE, OPERATIONS };

/* `clock` and `other` are the same before every operation, and are not to change if it fails. */
static void prepare(struct pwi_clock *clock, struct pwi_clock *other) {
  const struct pawl_range ranges[] = {{0, 100}, {400, 410}, {420, 430}, {440, 450}};
  assert_int_equal(pwi_clock_init(clock, ranges, 4), PAWL_OK);
  start(other, 200, 300);
  for (uint64_t id = 0; id < 12; id++) {
    set(clock, id, 0, 100, 3);
    set(clock, id, 10 + id, 30, 4);
    set(other, id + 6, 200, 300, 5);
    set(other, id + 6, 250, 255, 6);
  }
}

static pawl_status decode_again(const struct pwi_clock *clock, struct pwi_clock *made) {
  unsigned char bytes[2048];
  size_t size;
  assert_int_equal(pwi_clock_encode(clock, bytes, sizeof bytes, &size), PAWL_OK);
  return pwi_clock_decode(bytes, size, made);
}

static pawl_status operate(int which, struct pwi_clock *clock, struct pwi_clock *other, struct pwi_clock *made) {
  struct pawl_range range = pawl_range_of(14, 60);
  switch (which) {
  case SET_NEW:
    return pwi_clock_set(clock, sender_of(77), range, 9);
  case SET_SPLIT:
    return pwi_clock_set(clock, sender_of(5), pawl_range_of(70, 80), 9);
  case RESERVE:
    return pwi_clock_reserve(clock, sender_of(77), range);
  case COPY:
    return pwi_clock_copy(clock, range, made);
  case DROP:
    return pwi_clock_drop(clock, pawl_range_of(40, 60));
  case TAKE:
    return pwi_clock_take(clock, range, made);
  case ABSORB:
    return pwi_clock_absorb(clock, other);
  default:
    return decode_again(clock, made);
  }
}

/* Returns false once the operation needs fewer than n + 1 allocations. */
static bool fails_cleanly(int which, uint64_t n) {
  struct pwi_clock clock, other, same_clock, same_other;
  struct pwi_clock made = {0};
  prepare(&clock, &other);
  prepare(&same_clock, &same_other);
  pwi_memory_fail_after(n);
  pawl_status status = operate(which, &clock, &other, &made);
  bool failed = pwi_memory_fail_cancel();
  assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
  if (failed) {
    assert_true(pwi_clock_equal(&clock, &same_clock));
    assert_true(pwi_clock_equal(&other, &same_other));
    assert_null(made.lines);
    assert_int_equal(operate(which, &clock, &other, &made), PAWL_OK);
  }
  struct pwi_clock *all[] = {&clock, &other, &same_clock, &same_other, &made};
  for (size_t i = 0; i < 5; i++) pwi_clock_fini(all[i]);
  return failed;
}

static void test_without_memory_every_clock_stays_as_it_was(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (int which = 0; which < OPERATIONS; which++) {
    uint64_t n = 0;
    while (fails_cleanly(which, n)) n++;
    assert_true(n > 0);
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_setting_the_middle_of_a_range_makes_three),
      cmocka_unit_test(test_neighbours_with_equal_times_become_one),
      cmocka_unit_test(test_a_clock_never_runs_back),
      cmocka_unit_test(test_a_sender_that_never_pushed_is_at_zero),
      cmocka_unit_test(test_a_retired_sender_is_forgotten_and_the_others_stay),
      cmocka_unit_test(test_ranges_that_are_not_held_are_refused),
      cmocka_unit_test(test_clocks_that_share_a_key_are_not_joined),
      cmocka_unit_test(test_dropping_keys_frees_the_senders_that_pushed_only_there),
      cmocka_unit_test(test_the_whole_key_space_fits_into_one_clock),
      cmocka_unit_test(test_thousands_of_senders_are_found_again),
      cmocka_unit_test(test_a_push_is_due_once_its_predecessor_is_in),
      cmocka_unit_test(test_a_push_that_is_in_partly_is_due_on_the_rest),
      cmocka_unit_test(test_a_gap_anywhere_holds_up_the_whole_push),
      cmocka_unit_test(test_a_time_between_predecessor_and_push_breaks_the_protocol),
      cmocka_unit_test(test_a_sender_may_begin_anew_where_that_is_allowed),
      cmocka_unit_test(test_setting_allocates_nothing_once_the_senders_are_known),
      cmocka_unit_test(test_a_set_for_which_room_was_made_cannot_fail),
      cmocka_unit_test(test_without_memory_every_clock_stays_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
