/* Barriers, asks of the catalogue, and scans: each rule is broken alone and found. */
#include "sim/history/testing.h"

/* --- barriers ------------------------------------------------------------------------------------------- */

static uint32_t begin_group(uint32_t session, enum pwi_history_verb verb, uint64_t tick) {
  return pwi_history_begin(history, now++,
                           &(struct pwi_history_call){.session = session, .verb = verb, .name = "crew", .tick = tick});
}

static void end_call(uint32_t call) { pwi_history_end(history, now++, call, &(struct pwi_history_answer){0}); }

static void both_enter(void) {
  end_call(begin_group(ann, PWI_HISTORY_ENTER, 0));
  end_call(begin_group(bob, PWI_HISTORY_ENTER, 0));
}

static void test_a_barrier_opens_when_all_have_ticked(void **state) {
  (void)state;
  both_enter();
  struct deed a = push(ann, added);
  begin_group(ann, PWI_HISTORY_TICK, 1);
  uint32_t call = begin_group(ann, PWI_HISTORY_AWAIT, 1);
  begin_group(bob, PWI_HISTORY_TICK, 1);
  end_call(call);
  pull(bob, added, &a, NULL);
  expect_good();
}

static void test_barrier_waits_for_every_member(void **state) {
  (void)state;
  both_enter();
  begin_group(ann, PWI_HISTORY_TICK, 1);
  end_call(begin_group(ann, PWI_HISTORY_AWAIT, 1));
  begin_group(bob, PWI_HISTORY_TICK, 1);
  expect("barrier");
}

static void test_barrier_tells_only_ticks_that_all_have_reached(void **state) {
  (void)state;
  both_enter();
  begin_group(ann, PWI_HISTORY_TICK, 1);
  begin_group(bob, PWI_HISTORY_TICK, 1);
  begin_group(bob, PWI_HISTORY_TICK, 2);
  pwi_history_end(history, now++, begin_group(ann, PWI_HISTORY_AWAIT, 1), &(struct pwi_history_answer){.tick = 1});
  expect_good();
  pwi_history_end(history, now++, begin_group(ann, PWI_HISTORY_AWAIT, 1), &(struct pwi_history_answer){.tick = 2});
  expect("barrier");
}

static void test_a_barrier_does_not_wait_for_members_that_are_gone(void **state) {
  (void)state;
  both_enter();
  pwi_history_gone(history, bob);
  begin_group(ann, PWI_HISTORY_TICK, 1);
  end_call(begin_group(ann, PWI_HISTORY_AWAIT, 1));
  expect_good();
}

static void test_recent_reads_after_a_barrier_contain_pushes_before_it(void **state) {
  (void)state;
  both_enter();
  begin_push(ann, added); /* its answer is late, although the tick must wait for it */
  begin_group(ann, PWI_HISTORY_TICK, 1);
  begin_group(bob, PWI_HISTORY_TICK, 1);
  end_call(begin_group(bob, PWI_HISTORY_AWAIT, 1));
  pull(bob, added, NULL, NULL);
  expect("recent");
}

/* --- the catalogue -------------------------------------------------------------------------------------- */

static void test_asks_take_effect_in_some_order(void **state) {
  (void)state;
  ask(ann, PWI_HISTORY_CREATE, 1, PAWL_OK);
  ask(bob, PWI_HISTORY_CREATE, 1, PAWL_EXISTS);
  ask(bob, PWI_HISTORY_RESTORE, 1, PAWL_OK);
  ask(bob, PWI_HISTORY_RESTORE, 2, PAWL_MISMATCH);
  uint32_t deletes[] = {begin_ask(ann, PWI_HISTORY_DELETE, 0), begin_ask(bob, PWI_HISTORY_DELETE, 0)};
  end_ask(deletes[0], PAWL_NOT_FOUND);
  end_ask(deletes[1], PAWL_OK);
  ask(ann, PWI_HISTORY_DELETE, 0, PAWL_NOT_FOUND);
  begin_ask(ann, PWI_HISTORY_CREATE, 1); /* never answered */
  ask(bob, PWI_HISTORY_LOOK, 0, PAWL_NOT_FOUND);
  ask(bob, PWI_HISTORY_LOOK, 0, PAWL_OK);
  expect_good();
}

static void test_catalogue_two_deletes_need_two_vectors(void **state) {
  (void)state;
  ask(ann, PWI_HISTORY_CREATE, 1, PAWL_OK);
  uint32_t deletes[] = {begin_ask(ann, PWI_HISTORY_DELETE, 0), begin_ask(bob, PWI_HISTORY_DELETE, 0)};
  end_ask(deletes[0], PAWL_OK);
  end_ask(deletes[1], PAWL_OK);
  expect("catalogue");
}

static void test_catalogue_a_delete_takes_effect_once(void **state) {
  (void)state;
  ask(ann, PWI_HISTORY_CREATE, 1, PAWL_OK);
  ask(ann, PWI_HISTORY_DELETE, 0, PAWL_OK);
  ask(bob, PWI_HISTORY_CREATE, 1, PAWL_OK);
  ask(bob, PWI_HISTORY_LOOK, 0, PAWL_NOT_FOUND); /* the delete was carried out again */
  expect("catalogue");
}

static void test_catalogue_a_restore_takes_effect_once(void **state) {
  (void)state;
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 5});
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_RESTORE, 1), &(struct pwi_history_answer){.id = 5});
  pwi_history_end(history, now++, begin_ask(bob, PWI_HISTORY_LOOK, 0),
                  &(struct pwi_history_answer){.id = 5, .incarnation = 2});
  expect("catalogue");
}

static void test_catalogue_a_server_misses_only_deleted_vectors(void **state) {
  (void)state;
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 5});
  pwi_history_end(history, now++, begin_ask(bob, PWI_HISTORY_MISS, 0), &(struct pwi_history_answer){.id = 4});
  expect_good();
  pwi_history_end(history, now++, begin_ask(bob, PWI_HISTORY_MISS, 0), &(struct pwi_history_answer){.id = 5});
  expect("catalogue");
}

/* If the search tried all places for them, it would not end. */
static void test_catalogue_a_miss_without_an_answer_says_nothing(void **state) {
  (void)state;
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 5});
  for (int i = 0; i < 40; i++) begin_ask(bob, PWI_HISTORY_MISS, 0);
  ask(ann, PWI_HISTORY_DELETE, 0, PAWL_OK);
  expect_good();
  ask(ann, PWI_HISTORY_DELETE, 0, PAWL_OK);
  expect("catalogue");
}

/* It may take effect late, or never. */
static void delete_without_an_answer(void) {
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 5});
  begin_ask(bob, PWI_HISTORY_DELETE, 0);
  ask(ann, PWI_HISTORY_CREATE, 1, PAWL_EXISTS);
}

static void test_an_ask_without_an_answer_takes_effect_at_any_time(void **state) {
  (void)state;
  delete_without_an_answer();
  expect_good();
  ask(ann, PWI_HISTORY_LOOK, 0, PAWL_NOT_FOUND);
  expect_good();
}

static void test_catalogue_an_ask_without_an_answer_takes_effect_once(void **state) {
  (void)state;
  delete_without_an_answer();
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 6});
  ask(ann, PWI_HISTORY_LOOK, 0, PAWL_NOT_FOUND);
  expect("catalogue");
}

static void test_an_unanswered_create_explains_a_look(void **state) {
  (void)state;
  begin_ask(ann, PWI_HISTORY_CREATE, 1);
  pwi_history_end(history, now++, begin_ask(bob, PWI_HISTORY_LOOK, 0), &(struct pwi_history_answer){.id = 7});
  expect_good();
}

static void test_catalogue_a_restore_answers_with_the_id_of_the_vector(void **state) {
  (void)state;
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_CREATE, 1), &(struct pwi_history_answer){.id = 5});
  pwi_history_end(history, now++, begin_ask(ann, PWI_HISTORY_RESTORE, 1), &(struct pwi_history_answer){.id = 6});
  expect("catalogue");
}

/* --- scans ---------------------------------------------------------------------------------------------- */

static void test_a_scan_reads_the_keys_that_it_covers(void **state) {
  (void)state;
  struct deed a = begin_keys(ann, PWI_HISTORY_PUSH, added, 2);
  end_push(a);
  scan(ann, both_keys, 2, a.rows[0]);
  expect_good();
}

static void test_own_write_is_scanned(void **state) {
  (void)state;
  struct deed a = begin_keys(ann, PWI_HISTORY_PUSH, added, 2);
  end_push(a);
  scan(ann, both_keys, 1, a.rows[0]);
  expect("own write");
}

static void expect_scan(const char *what) {
  char text[256];
  assert_false(pwi_history_check(history, text, sizeof text));
  assert_non_null(strstr(text, "scan:"));
  assert_non_null(strstr(text, what));
}

static void test_scan_returns_no_key_twice(void **state) {
  (void)state;
  struct deed a = push(ann, added);
  int64_t rows[2][WIDTH] = {{a.rows[0][0], a.rows[0][1]}, {a.rows[0][0], a.rows[0][1]}};
  scan(ann, (const uint64_t[]){1, 1}, 2, rows[0]);
  expect_scan("twice");
}

static void test_scan_returns_no_key_beyond_its_end(void **state) {
  (void)state;
  struct deed a = push(ann, added);
  int64_t rows[2][WIDTH] = {{a.rows[0][0], a.rows[0][1]}};
  scan(ann, (const uint64_t[]){1, 9}, 2, rows[0]);
  expect_scan("out of range");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_barrier_opens_when_all_have_ticked),
      TEST(test_barrier_waits_for_every_member),
      TEST(test_barrier_tells_only_ticks_that_all_have_reached),
      TEST(test_a_barrier_does_not_wait_for_members_that_are_gone),
      TEST(test_recent_reads_after_a_barrier_contain_pushes_before_it),
      TEST(test_asks_take_effect_in_some_order),
      TEST(test_catalogue_two_deletes_need_two_vectors),
      TEST(test_catalogue_a_delete_takes_effect_once),
      TEST(test_catalogue_a_restore_takes_effect_once),
      TEST(test_catalogue_a_server_misses_only_deleted_vectors),
      TEST(test_catalogue_a_miss_without_an_answer_says_nothing),
      TEST(test_an_ask_without_an_answer_takes_effect_at_any_time),
      TEST(test_catalogue_an_ask_without_an_answer_takes_effect_once),
      TEST(test_an_unanswered_create_explains_a_look),
      TEST(test_catalogue_a_restore_answers_with_the_id_of_the_vector),
      TEST(test_a_scan_reads_the_keys_that_it_covers),
      TEST(test_own_write_is_scanned),
      TEST(test_scan_returns_no_key_twice),
      TEST(test_scan_returns_no_key_beyond_its_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
