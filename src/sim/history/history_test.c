/* Histories by hand, good and bad: each rule is broken alone and found. For random small histories the rules
 * of one key agree with a search through all orders. */
#include "sim/history/testing.h"

#include "base/memory.h"
#include "base/random.h"

/* --- vectors that are added to -------------------------------------------------------------------------- */

static void test_concurrent_pushes_may_be_seen_or_not(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added), b = begin_push(bob, added);
  pull(bob, added, &b, NULL);
  pull(bob, added, &a, &b);
  end_push(a);
  end_push(b);
  pull(ann, added, &a, &b);
  expect_good();
}

static void test_a_push_without_an_answer_may_take_effect_late_or_never(void **state) {
  (void)state;
  begin_push(ann, added);
  struct deed late = begin_push(ann, assigned);
  pull(bob, added, NULL, NULL);
  pull(bob, assigned, NULL, NULL);
  pull(bob, assigned, &late, NULL);
  expect_good();
}

static void test_value_a_push_counts_once(void **state) {
  (void)state;
  struct deed a = push(ann, added);
  pull(bob, added, &a, &a);
  expect("value");
}

static void test_value_a_row_has_all_columns_of_a_push(void **state) {
  (void)state;
  struct deed a = {0}, b = begin_push(ann, added), c = begin_push(ann, added);
  for (size_t i = 0; i < WIDTH; i++) a.rows[0][i] = sum(b.rows[0][i], c.rows[0][i]); /* as filters join pushes */
  end_push(b);
  end_push(c);
  uint64_t key = 7;
  a.call = pwi_history_begin(
      history, now++,
      &(struct pwi_history_call){.session = ann, .vector = added, .keys = &key, .count = 1, .rows = a.rows[0]});
  end_push(a);
  uint32_t call = pwi_history_begin(
      history, now++,
      &(struct pwi_history_call){.session = bob, .verb = PWI_HISTORY_PULL, .vector = added, .keys = &key, .count = 1});
  end_read(call, b.rows[0]);
  expect("value");
}

static void test_value_comes_from_a_push(void **state) {
  (void)state;
  struct deed stray = {0};
  pwi_history_row(history, added, 1, stray.rows[0]);
  pull(bob, added, &stray, NULL);
  expect("value");
}

static void test_refused_pushes_have_no_effect(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added);
  pull(bob, added, &a, NULL);
  refuse(a);
  expect("refused");
}

static void test_a_refused_push_need_not_be_seen(void **state) {
  (void)state;
  refuse(begin_push(ann, added));
  refuse(begin_push(ann, assigned));
  pull(ann, added, NULL, NULL);
  pull(ann, assigned, NULL, NULL);
  expect_good();
}

static void test_own_write_is_read_before_it_is_answered(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added);
  uint32_t call = begin_pull(ann, added);
  excuse(ann);
  end_pull(call, NULL, NULL);
  end_push(a);
  expect("own write");
}

static void test_own_write_of_a_killed_session_is_read(void **state) {
  (void)state;
  begin_push(ann, added);
  pull(ann, added, NULL, NULL);
  expect("own write");
}

static void test_own_write_of_a_pushpull_is_read(void **state) {
  (void)state;
  end_pull(begin_keys(ann, PWI_HISTORY_PUSHPULL, added, 1).call, NULL, NULL);
  expect("own write");
}

static void test_order_a_push_contains_those_answered_before_it(void **state) {
  (void)state;
  uint32_t call = begin_pull(bob, added);
  push(ann, added);
  struct deed b = push(bob, added);
  end_pull(call, &b, NULL);
  expect("order");
}

static void test_order_of_a_session_holds_for_others(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added), b = begin_push(ann, added);
  pull(bob, added, &b, NULL);
  end_push(a);
  end_push(b);
  expect("order");
}

static void test_comparable_reads_are_of_one_sequence(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added), b = begin_push(bob, added);
  uint32_t third = pwi_history_session(history, "third"), fourth = pwi_history_session(history, "fourth");
  uint32_t one = begin_pull(third, added), other = begin_pull(fourth, added);
  excuse(third);
  excuse(fourth);
  end_pull(one, &a, NULL);
  end_pull(other, &b, NULL);
  expect("comparable");
}

static void test_monotonic_reads_of_a_session(void **state) {
  (void)state;
  struct deed a = begin_push(ann, added);
  pull(bob, added, &a, NULL);
  uint32_t call = begin_pull(bob, added);
  excuse(bob);
  end_pull(call, NULL, NULL);
  expect("monotonic");
}

static void test_recent_a_read_contains_answered_pushes(void **state) {
  (void)state;
  push(ann, added);
  pull(bob, added, NULL, NULL);
  expect("recent");
}

/* --- reads that may be old ------------------------------------------------------------------------------ */

static uint32_t begin_old(uint32_t session, uint64_t tick) {
  return pwi_history_begin(history, now++,
                           &(struct pwi_history_call){.session = session,
                                                      .verb = PWI_HISTORY_PULL,
                                                      .vector = added,
                                                      .keys = both_keys,
                                                      .count = 1,
                                                      .name = "crew",
                                                      .is_old = true,
                                                      .tick = tick});
}

static void finish_tick(uint32_t session, uint64_t tick) {
  struct pwi_history_call call = {.session = session, .verb = PWI_HISTORY_TICK, .name = "crew", .tick = tick};
  uint32_t number = pwi_history_begin(history, now++, &call);
  pwi_history_end(history, now++, number, &(struct pwi_history_answer){0});
}

static void test_a_read_that_may_be_old_need_not_have_the_last_pushes_of_others(void **state) {
  (void)state;
  struct deed a = push(ann, added);
  finish_tick(ann, 1);
  struct deed b = push(ann, added);
  pull(ann, added, &a, &b);
  end_pull(begin_old(bob, 1), &a, NULL);
  expect_good();
}

static void test_bound_a_read_that_may_be_old_has_the_pushes_before_its_tick(void **state) {
  (void)state;
  push(ann, added);
  finish_tick(ann, 1);
  end_pull(begin_old(bob, 1), NULL, NULL);
  expect("bound");
}

static void test_a_read_that_may_be_old_need_not_have_pushes_of_members_that_are_gone(void **state) {
  (void)state;
  push(ann, added);
  finish_tick(ann, 1);
  pwi_history_gone(history, ann);
  end_pull(begin_old(bob, 1), NULL, NULL);
  expect_good();
}

static void test_bound_may_be_excused(void **state) {
  (void)state;
  push(ann, added);
  finish_tick(ann, 1);
  end_pull(begin_old(bob, 1), NULL, NULL);
  pwi_history_excuse_bound(history);
  expect_good();
}

static void test_own_write_is_in_a_read_that_may_be_old(void **state) {
  (void)state;
  push(bob, added);
  end_pull(begin_old(bob, 0), NULL, NULL);
  expect("own write");
}

static void test_monotonic_reads_that_may_be_old(void **state) {
  (void)state;
  struct deed a = push(ann, added);
  end_pull(begin_old(bob, 0), &a, NULL);
  end_pull(begin_old(bob, 0), NULL, NULL);
  expect("monotonic");
}

static void test_recent_a_read_is_not_older_than_another(void **state) {
  (void)state;
  uint32_t third = pwi_history_session(history, "third");
  struct deed a = begin_push(ann, added);
  pull(bob, added, &a, NULL);
  pull(third, added, NULL, NULL);
  expect("recent");
}

static void test_a_deposed_head_excuses_old_rows_of_others(void **state) {
  (void)state;
  uint32_t third = pwi_history_session(history, "third");
  struct deed a = push(ann, added), b = push(ann, assigned);
  pull(bob, added, &a, NULL);
  pull(bob, assigned, &b, NULL);
  uint32_t calls[] = {begin_pull(third, added), begin_pull(third, assigned)};
  excuse(third);
  end_pull(calls[0], NULL, NULL);
  end_pull(calls[1], NULL, NULL);
  expect_good();
}

/* A pull of keys 1 and 2 that lacks an earlier push to both. `task` is its own, and the excuse is for the task of the
 * answer. */
static void pull_nothing(const void *task, struct pwi_history_heard heard) {
  int64_t nothing[2][WIDTH] = {{0}};
  end_push(begin_keys(ann, PWI_HISTORY_PUSH, added, 2));
  uint32_t call = pwi_history_begin(
      history, now++,
      &(struct pwi_history_call){
          .session = bob, .verb = PWI_HISTORY_PULL, .vector = added, .keys = both_keys, .count = 2, .task = task});
  pwi_history_excuse(history, &heard, always, NULL);
  end_read(call, nothing[0]);
}

static void test_an_excuse_is_for_the_call_that_was_answered(void **state) {
  static const int one = 1, other = 2;
  pull_nothing(&one, (struct pwi_history_heard){bob, &one, PAWL_ALL});
  expect_good();
  end_test(state), begin_test(state);
  pull_nothing(&one, (struct pwi_history_heard){PWI_HISTORY_ALL, NULL, PAWL_ALL});
  expect_good();
  end_test(state), begin_test(state);
  pull_nothing(&one, (struct pwi_history_heard){bob, &other, PAWL_ALL});
  expect("recent");
  end_test(state), begin_test(state);
  pull_nothing(&one, (struct pwi_history_heard){ann, &one, PAWL_ALL});
  expect("recent");
}

static void test_an_excuse_is_for_the_keys_of_the_answer(void **state) {
  (void)state;
  static const int task = 1;
  pull_nothing(&task, (struct pwi_history_heard){bob, &task, {2, 3}});
  expect("recent");
}

static bool from_eight(void *context, uint64_t position) {
  (void)context;
  struct pwi_place place = {.size = PAWL_KEY_END};
  return position >= pwi_place_position(&place, 8);
}

/* A scan that lacks an earlier push, and of which a head answered the keys from 1 on, and another those from 8 on. */
static void test_a_scan_is_excused_only_if_its_own_head_was_deposed(void **state) {
  (void)state;
  push(ann, added);
  uint32_t call =
      pwi_history_begin(history, now++,
                        &(struct pwi_history_call){
                            .session = bob, .verb = PWI_HISTORY_SCAN, .vector = added, .range = pawl_range_of(1, 10)});
  struct pwi_history_heard heard = {.session = bob, .keys = {1, 10}};
  pwi_history_excuse(history, &heard, from_eight, NULL);
  pwi_history_end(history, now++, call, &(struct pwi_history_answer){.next = 8});
  expect("recent");
}

/* --- vectors that are assigned -------------------------------------------------------------------------- */

static void test_the_last_assignment_is_read(void **state) {
  (void)state;
  struct deed a = push(ann, assigned), b = begin_push(bob, assigned), c = begin_push(ann, assigned);
  pull(bob, assigned, &b, NULL);
  end_push(b);
  pull(bob, assigned, &c, NULL);
  end_push(c);
  pull(ann, assigned, &c, NULL);
  (void)a;
  expect_good();
}

static void test_value_of_an_assignment_is_whole(void **state) {
  (void)state;
  struct deed a = push(ann, assigned), b = begin_push(bob, assigned);
  int64_t torn[] = {a.rows[0][0], b.rows[0][1]};
  end_read(begin_pull(bob, assigned), torn);
  expect("value");
}

static void test_refused_assignments_are_not_read(void **state) {
  (void)state;
  struct deed a = begin_push(ann, assigned);
  pull(bob, assigned, &a, NULL);
  refuse(a);
  expect("refused");
}

static void test_own_write_is_not_followed_by_an_older_value(void **state) {
  (void)state;
  struct deed a = push(bob, assigned), b = begin_push(ann, assigned);
  uint32_t call = begin_pull(ann, assigned);
  excuse(ann);
  end_pull(call, &a, NULL);
  (void)b;
  expect("own write");
}

static void test_monotonic_values_of_a_session(void **state) {
  (void)state;
  struct deed a = push(ann, assigned), b = push(ann, assigned);
  pull(bob, assigned, &b, NULL);
  uint32_t call = begin_pull(bob, assigned);
  excuse(bob);
  end_pull(call, &a, NULL);
  expect("monotonic");
}

static void test_recent_values_are_linearizable(void **state) {
  (void)state;
  uint32_t third = pwi_history_session(history, "third"), fourth = pwi_history_session(history, "fourth");
  struct deed a = begin_push(ann, assigned), b = begin_push(bob, assigned);
  pull(third, assigned, &a, NULL);
  pull(fourth, assigned, &b, NULL);
  pull(third, assigned, &a, NULL); /* neither is older than the other by itself */
  (void)a, (void)b;
  expect("recent");
}

static void test_recent_assignments_of_a_session_keep_their_order(void **state) {
  (void)state;
  uint32_t third = pwi_history_session(history, "third"), fourth = pwi_history_session(history, "fourth");
  struct deed a = begin_push(ann, assigned), b = begin_push(ann, assigned);
  pull(third, assigned, &b, NULL);
  pull(fourth, assigned, &a, NULL);
  expect("recent");
}

/* --- parts ---------------------------------------------------------------------------------------------- */

static void see_half(uint32_t vector) {
  struct deed a = begin_keys(ann, PWI_HISTORY_PUSH, vector, 2);
  uint32_t call = begin_keys(bob, PWI_HISTORY_PULL, vector, 2).call;
  int64_t rows[2][WIDTH] = {{a.rows[0][0], a.rows[0][1]}, {0, 0}};
  end_read(call, rows[0]);
  end_push(a);
}

static void test_part_keys_of_one_arc_change_together(void **state) {
  (void)state;
  pwi_history_bound(history, 0);
  pwi_history_bound(history, 1);
  see_half(added);
  expect("part");
}

static void test_part_keys_of_one_arc_are_assigned_together(void **state) {
  (void)state;
  pwi_history_bound(history, 3);
  see_half(assigned);
  pwi_history_bound(history, 2); /* too late */
  expect("part");
}

static void test_keys_of_two_arcs_change_one_by_one(void **state) {
  (void)state;
  pwi_history_bound(history, 2);
  see_half(added);
  see_half(assigned);
  expect_good();
}

/* --- a search through all orders ------------------------------------------------------------------------ */

#define TINY_CALLS 7
#define TINY_SESSIONS 3

struct tiny {
  bool is_push, is_counted;
  int began, ended; /* `ended` INT32_MAX: never */
  unsigned seen;    /* read: a set of calls; REGISTER: at most one */
};

/* Searches for an order; `state` is a set of pushes, or the last one. */
static bool has_order(const struct tiny *calls, size_t count, unsigned done, unsigned state) {
  bool is_over = true;
  for (size_t i = 0; i < count; i++) is_over &= done >> i & 1 || calls[i].ended == INT32_MAX;
  if (is_over) return true;
  for (size_t i = 0; i < count; i++) {
    bool can = !(done >> i & 1) && (calls[i].is_push || (calls[i].ended != INT32_MAX && calls[i].seen == state));
    for (size_t k = 0; k < count && can; k++) can = k == i || done >> k & 1 || calls[k].ended > calls[i].began;
    unsigned after = calls[i].is_push ? (calls[i].is_counted ? state : 0) | 1u << i : state;
    if (can && has_order(calls, count, done | 1u << i, after)) return true;
  }
  return false;
}

/* Each session makes one call at a time. Pushes take effect at some moment, reads see some moment, and
 * sometimes they see something else. */
static size_t draw_tiny(struct pwi_random *random, bool is_counted, struct tiny *calls, struct deed *deeds) {
  uint32_t vector = is_counted ? added : assigned;
  size_t busy[TINY_SESSIONS], count = 0;
  bool is_busy[TINY_SESSIONS] = {false}, has_effect[TINY_CALLS] = {false};
  uint32_t sessions[TINY_SESSIONS];
  unsigned stored = 0, past[64] = {0};
  for (size_t s = 0; s < TINY_SESSIONS; s++) sessions[s] = pwi_history_session(history, "tiny");
  for (int step = 1; step < 40; step++) {
    size_t s = (size_t)pwi_random_below(random, TINY_SESSIONS), i = busy[s];
    past[step] = stored;
    if (!is_busy[s]) {
      if (count == TINY_CALLS) continue;
      is_busy[s] = true;
      busy[s] = i = count++;
      calls[i] = (struct tiny){pwi_random_chance(random, 0.5), is_counted, step, INT32_MAX, 0};
      deeds[i] = begin_keys(sessions[s], calls[i].is_push ? PWI_HISTORY_PUSH : PWI_HISTORY_PULL, vector, 1);
    } else if (!has_effect[i] && pwi_random_chance(random, 0.8)) {
      has_effect[i] = true;
      if (calls[i].is_push) stored = (is_counted ? stored : 0) | 1u << i;
      calls[i].seen = pwi_random_chance(random, 0.8) ? stored : past[pwi_random_below(random, (uint64_t)step)];
    } else if (has_effect[i] && pwi_random_chance(random, 0.7)) {
      is_busy[s] = false;
      calls[i].ended = step;
      int64_t row[WIDTH] = {0};
      for (size_t p = 0; p < count && !calls[i].is_push; p++)
        for (size_t c = 0; calls[i].seen >> p & 1 && c < WIDTH; c++) row[c] = sum(row[c], deeds[p].rows[0][c]);
      end_read(deeds[i].call, row);
    }
  }
  return count;
}

static void compare_tiny(bool is_counted) {
  size_t good = 0, bad = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    struct pwi_random random;
    struct tiny calls[TINY_CALLS];
    struct deed deeds[TINY_CALLS];
    char text[256];
    end_test(NULL);
    begin_test(NULL);
    pwi_random_init(&random, seed, 1);
    size_t count = draw_tiny(&random, is_counted, calls, deeds);
    bool is_good = pwi_history_check(history, text, sizeof text);
    if (is_good != has_order(calls, count, 0, 0)) print_error("seed %llu: %s\n", (unsigned long long)seed, text);
    assert_int_equal(is_good, has_order(calls, count, 0, 0));
    good += is_good;
    bad += !is_good;
  }
  assert_true(good > 100);
  assert_true(bad > 100);
}

static void test_counted_vectors_agree_with_a_search(void **state) {
  (void)state;
  compare_tiny(true);
}

static void test_registers_agree_with_a_search(void **state) {
  (void)state;
  compare_tiny(false);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_without_memory_no_history_is_good(void **state) {
  char text[256];
  bool is_over = false;
  for (uint64_t n = 0; !is_over; n++) {
    end_test(state);
    history = NULL;
    begin_test(state);
    pwi_memory_fail_after(n);
    struct deed a = push(ann, added), b = push(bob, assigned);
    scan(ann, both_keys, 1, a.rows[0]);
    pull(ann, added, &a, NULL);
    pull(bob, assigned, &b, NULL);
    ask(ann, PWI_HISTORY_CREATE, 1, PAWL_OK);
    bool is_good = pwi_history_check(history, text, sizeof text);
    is_over = !pwi_memory_fail_cancel();
    assert_int_equal(is_good, is_over);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_concurrent_pushes_may_be_seen_or_not),
      TEST(test_a_push_without_an_answer_may_take_effect_late_or_never),
      TEST(test_value_a_push_counts_once),
      TEST(test_value_a_row_has_all_columns_of_a_push),
      TEST(test_value_comes_from_a_push),
      TEST(test_refused_pushes_have_no_effect),
      TEST(test_a_refused_push_need_not_be_seen),
      TEST(test_own_write_is_read_before_it_is_answered),
      TEST(test_own_write_of_a_killed_session_is_read),
      TEST(test_own_write_of_a_pushpull_is_read),
      TEST(test_order_a_push_contains_those_answered_before_it),
      TEST(test_order_of_a_session_holds_for_others),
      TEST(test_comparable_reads_are_of_one_sequence),
      TEST(test_monotonic_reads_of_a_session),
      TEST(test_recent_a_read_contains_answered_pushes),
      TEST(test_a_read_that_may_be_old_need_not_have_the_last_pushes_of_others),
      TEST(test_bound_a_read_that_may_be_old_has_the_pushes_before_its_tick),
      TEST(test_a_read_that_may_be_old_need_not_have_pushes_of_members_that_are_gone),
      TEST(test_bound_may_be_excused),
      TEST(test_own_write_is_in_a_read_that_may_be_old),
      TEST(test_monotonic_reads_that_may_be_old),
      TEST(test_recent_a_read_is_not_older_than_another),
      TEST(test_a_deposed_head_excuses_old_rows_of_others),
      TEST(test_an_excuse_is_for_the_call_that_was_answered),
      TEST(test_an_excuse_is_for_the_keys_of_the_answer),
      TEST(test_a_scan_is_excused_only_if_its_own_head_was_deposed),
      TEST(test_the_last_assignment_is_read),
      TEST(test_value_of_an_assignment_is_whole),
      TEST(test_refused_assignments_are_not_read),
      TEST(test_own_write_is_not_followed_by_an_older_value),
      TEST(test_monotonic_values_of_a_session),
      TEST(test_recent_values_are_linearizable),
      TEST(test_recent_assignments_of_a_session_keep_their_order),
      TEST(test_part_keys_of_one_arc_change_together),
      TEST(test_part_keys_of_one_arc_are_assigned_together),
      TEST(test_keys_of_two_arcs_change_one_by_one),
      TEST(test_counted_vectors_agree_with_a_search),
      TEST(test_registers_agree_with_a_search),
      TEST(test_without_memory_no_history_is_good),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
