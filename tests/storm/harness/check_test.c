/* The verifier, on journals and rows with planted losses and doubles: each is found, and named where
 * possible. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "check.h"

#define PUSHES 2000
#define WORKER 3

static struct pwi_storm_entry entries[PUSHES];
static struct pwi_storm_journal journal;
static struct pwi_storm_values values;
static struct pwi_storm_verdict verdict;

static void apply(uint64_t serial, uint64_t keys, uint64_t times) {
  uint64_t row[PWI_STORM_WIDTH];
  pwi_storm_row(serial, row);
  for (uint32_t index = 0; index < PWI_STORM_KEYS; index++)
    for (size_t i = 0; i < PWI_STORM_WIDTH && keys >> index & 1; i++)
      values.rows[pwi_storm_table_of(serial)][index][i] += times * row[i];
}

/* Every push has been acknowledged and applied. */
static void begin(void) {
  memset(&values, 0, sizeof values);
  memset(&verdict, 0, sizeof verdict);
  values.known[0] = values.known[1] = UINT64_MAX;
  journal = (struct pwi_storm_journal){.worker = WORKER, .count = PUSHES, .entries = entries};
  for (uint64_t serial = 1; serial <= PUSHES; serial++) {
    uint64_t keys = pwi_storm_keys_of(WORKER, serial);
    entries[serial - 1] = (struct pwi_storm_entry){.keys = keys, .done = keys, .ended_ns = (int64_t)serial};
    apply(serial, keys, 1);
  }
}

static void lose(uint64_t serial) { apply(serial, entries[serial - 1].keys, UINT64_MAX); }
static void repeat(uint64_t serial) { apply(serial, entries[serial - 1].keys, 1); }

/* The worker was killed before it was told of the push, which is applied nevertheless. */
static void leave_open(uint64_t serial) {
  struct pwi_storm_entry *entry = &entries[serial - 1];
  *entry = (struct pwi_storm_entry){.keys = entry->keys, .unsure = entry->keys};
}

static void check(uint64_t lost, uint64_t doubled) {
  assert_int_equal(pwi_storm_check(&journal, &values, &verdict), PAWL_OK);
  assert_int_equal(verdict.lost, lost);
  assert_int_equal(verdict.doubled, doubled);
  assert_int_equal(pwi_storm_is_clean(&verdict), lost == 0 && doubled == 0);
}

/* The n-th push from `serial` on that touches a key, in the table of `serial`. */
static uint64_t next_on(uint32_t index, uint64_t serial, int n) {
  for (;; serial += 2)
    if ((entries[serial - 1].keys >> index & 1) && n-- == 0) return serial;
}

static void test_a_clean_run_is_clean(void **state) {
  (void)state;
  begin();
  check(0, 0);
  assert_int_equal(verdict.pushes, PUSHES);
  assert_int_equal(verdict.acked, PUSHES);
  assert_int_equal(verdict.finding_count, 0);
}

static void test_one_lost_push_is_named_on_each_of_its_keys(void **state) {
  (void)state;
  for (uint64_t serial = 1; serial <= PUSHES; serial += 97) {
    begin();
    lose(serial);
    check(1, 0);
    assert_int_equal(verdict.finding_count, PWI_STORM_TOUCHED);
    for (size_t i = 0; i < verdict.finding_count; i++) {
      assert_int_equal(verdict.findings[i].fault, PWI_STORM_LOST);
      assert_int_equal(verdict.findings[i].first, serial);
      assert_int_equal(verdict.findings[i].last, serial);
      assert_true(entries[serial - 1].keys >> verdict.findings[i].index & 1);
    }
  }
}

static void test_one_doubled_push_is_named(void **state) {
  (void)state;
  for (uint64_t serial = 1; serial <= PUSHES; serial += 97) {
    begin();
    repeat(serial);
    check(0, 1);
    assert_int_equal(verdict.findings[0].fault, PWI_STORM_DOUBLE);
    assert_int_equal(verdict.findings[0].first, serial);
  }
}

static void test_a_loss_on_a_single_key_is_found(void **state) {
  (void)state;
  begin();
  uint64_t key = entries[499].keys & -entries[499].keys;
  apply(500, key, UINT64_MAX);
  check(1, 0);
  assert_int_equal(verdict.finding_count, 1);
  assert_int_equal(verdict.findings[0].first, 500);
}

/* The counts alone would not reveal it. */
static void test_a_loss_and_a_double_that_cancel_in_number_are_both_named(void **state) {
  (void)state;
  begin();
  uint64_t lost = next_on(9, 1, 4), doubled = next_on(9, 1, 11);
  apply(lost, UINT64_C(1) << 9, UINT64_MAX);
  apply(doubled, UINT64_C(1) << 9, 1);
  check(1, 1);
  assert_int_equal(verdict.finding_count, 2);
  assert_int_equal(verdict.findings[0].first, lost);
  assert_int_equal(verdict.findings[1].first, doubled);
}

static void test_two_lost_pushes_that_lie_apart_are_named(void **state) {
  (void)state;
  begin();
  uint64_t first = next_on(20, 2, 3), second = next_on(20, 2, 50);
  apply(first, UINT64_C(1) << 20, UINT64_MAX);
  apply(second, UINT64_C(1) << 20, UINT64_MAX);
  check(2, 0);
  assert_int_equal(verdict.findings[0].first, first);
  assert_int_equal(verdict.findings[0].last, second);
}

/* A server that died without a replica loses everything that its keys held at that moment. */
static void test_keys_that_began_anew_have_lost_everything_before(void **state) {
  (void)state;
  begin();
  uint64_t gone = 0;
  for (uint64_t serial = 1; serial <= 1000; serial++) {
    apply(serial, UINT64_C(0xff00), UINT64_MAX);
    apply(serial, UINT64_C(0xff00) & ~entries[serial - 1].keys, 1);
    gone += (entries[serial - 1].keys & 0xff00) != 0;
  }
  check(gone, 0);
  assert_int_equal(verdict.finding_count, 16); /* eight keys of each table */
  for (size_t i = 0; i < verdict.finding_count; i++) assert_true(verdict.findings[i].first > 0);
}

static void test_what_cannot_be_named_is_counted(void **state) {
  (void)state;
  begin();
  for (int i = 0; i < 5; i++) apply(next_on(30, 1, 7 * i), UINT64_C(1) << 30, UINT64_MAX);
  for (int i = 0; i < 3; i++) apply(next_on(31, 1, 7 * i), UINT64_C(1) << 31, 1);
  check(5, 3);
  assert_int_equal(verdict.findings[0].first, 0);
}

static void test_several_lost_pushes_are_named_by_the_keys_on_which_they_are_alone(void **state) {
  (void)state;
  begin();
  for (uint64_t serial = 100; serial <= 1000; serial += 100) lose(serial);
  check(10, 0);
  for (size_t i = 0; i < verdict.finding_count; i++) assert_true(verdict.findings[i].first > 0);
  begin();
  for (uint64_t serial = 100; serial <= 1000; serial += 100) repeat(serial);
  check(0, 10);
}

static void test_pushes_of_a_killed_worker_may_be_there_once(void **state) {
  (void)state;
  for (uint64_t there = 0; there <= 8; there++) {
    begin();
    for (uint64_t serial = PUSHES - 7; serial <= PUSHES; serial++) {
      leave_open(serial);
      if (serial > PUSHES - 8 + there) lose(serial);
    }
    check(0, 0);
    assert_int_equal(verdict.open, 8);
    assert_int_equal(verdict.acked, PUSHES - 8);
  }
}

static void test_pushes_of_a_killed_worker_may_be_there_on_some_keys_only(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 1, 0);
  for (int round = 0; round < 50; round++) {
    begin();
    for (uint64_t serial = PUSHES - 7; serial <= PUSHES; serial++) {
      leave_open(serial);
      apply(serial, entries[serial - 1].keys & pwi_random_u64(&random), UINT64_MAX);
    }
    check(0, 0);
  }
}

static void test_an_open_push_that_is_there_twice_is_named(void **state) {
  (void)state;
  begin();
  for (uint64_t serial = PUSHES - 3; serial <= PUSHES; serial++) leave_open(serial);
  repeat(PUSHES - 1);
  check(0, 1);
  assert_int_equal(verdict.findings[0].first, PUSHES - 1);
}

static void test_a_loss_is_named_though_others_are_open(void **state) {
  (void)state;
  begin();
  for (uint64_t serial = PUSHES - 7; serial <= PUSHES; serial++) leave_open(serial);
  lose(PUSHES);
  lose(PUSHES - 1);
  lose(700);
  check(1, 0);
  assert_int_equal(verdict.findings[0].first, 700);
}

static void test_what_was_refused_must_not_be_there(void **state) {
  (void)state;
  begin();
  struct pwi_storm_entry *entry = &entries[99];
  uint64_t refused = entry->keys & -entry->keys;
  entry->done &= ~refused;
  apply(100, refused, UINT64_MAX);
  check(0, 0);
  begin();
  entries[99].done &= ~refused;
  assert_int_equal(pwi_storm_check(&journal, &values, &verdict), PAWL_OK);
  assert_int_equal(verdict.doubled, 1);
  assert_int_equal(verdict.lost, 0);
}

static void test_what_cannot_be_read_counts_as_lost(void **state) {
  (void)state;
  begin();
  uint64_t on_it = 0;
  values.known[PWI_STORM_DENSE] &= ~(UINT64_C(1) << 40);
  for (uint64_t serial = 1; serial <= PUSHES; serial += 2) on_it += entries[serial - 1].keys >> 40 & 1;
  check(on_it, 0);
  assert_int_equal(verdict.finding_count, 1);
  assert_int_equal(verdict.findings[0].fault, PWI_STORM_UNREAD);
}

static void test_a_worker_that_saw_less_than_its_own_pushes_is_not_clean(void **state) {
  (void)state;
  begin();
  journal.stale = 1;
  assert_int_equal(pwi_storm_check(&journal, &values, &verdict), PAWL_OK);
  assert_int_equal(verdict.stale, 1);
  assert_false(pwi_storm_is_clean(&verdict));
}

/* Thousands of them: which are applied can be told for a prefix only, and never counts as a loss or a
 * double. */
static void test_pushes_that_ended_with_an_unknown_outcome_are_counted(void **state) {
  (void)state;
  begin();
  for (uint64_t serial = 301; serial <= PUSHES; serial++) {
    entries[serial - 1].done = 0;
    entries[serial - 1].unsure = entries[serial - 1].keys;
    if (serial > 1500) lose(serial);
  }
  assert_int_equal(pwi_storm_check(&journal, &values, &verdict), PAWL_OK);
  assert_int_equal(verdict.unknown, PUSHES - 300);
  assert_int_equal(verdict.lost + verdict.doubled, 0);
  assert_false(pwi_storm_is_clean(&verdict));
}

static void test_a_finding_reads_as_a_sentence(void **state) {
  (void)state;
  char text[160];
  begin();
  lose(7);
  check(1, 0);
  const char *line = pwi_storm_finding_print(&verdict.findings[0], text, sizeof text);
  assert_non_null(strstr(line, "storm/dense key "));
  assert_non_null(strstr(line, " of worker 3: 1 lost: push 7"));
}

static void test_checking_returns_when_there_is_no_memory(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    begin();
    lose(7);
    pwi_memory_fail_after(n);
    pawl_status status = pwi_storm_check(&journal, &values, &verdict);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
  }
  assert_int_equal(pwi_memory_counts().live, before.live);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_clean_run_is_clean),
      cmocka_unit_test(test_one_lost_push_is_named_on_each_of_its_keys),
      cmocka_unit_test(test_one_doubled_push_is_named),
      cmocka_unit_test(test_a_loss_on_a_single_key_is_found),
      cmocka_unit_test(test_a_loss_and_a_double_that_cancel_in_number_are_both_named),
      cmocka_unit_test(test_two_lost_pushes_that_lie_apart_are_named),
      cmocka_unit_test(test_keys_that_began_anew_have_lost_everything_before),
      cmocka_unit_test(test_what_cannot_be_named_is_counted),
      cmocka_unit_test(test_several_lost_pushes_are_named_by_the_keys_on_which_they_are_alone),
      cmocka_unit_test(test_pushes_of_a_killed_worker_may_be_there_once),
      cmocka_unit_test(test_pushes_of_a_killed_worker_may_be_there_on_some_keys_only),
      cmocka_unit_test(test_an_open_push_that_is_there_twice_is_named),
      cmocka_unit_test(test_a_loss_is_named_though_others_are_open),
      cmocka_unit_test(test_what_was_refused_must_not_be_there),
      cmocka_unit_test(test_what_cannot_be_read_counts_as_lost),
      cmocka_unit_test(test_a_worker_that_saw_less_than_its_own_pushes_is_not_clean),
      cmocka_unit_test(test_pushes_that_ended_with_an_unknown_outcome_are_counted),
      cmocka_unit_test(test_a_finding_reads_as_a_sentence),
      cmocka_unit_test(test_checking_returns_when_there_is_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
