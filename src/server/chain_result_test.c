/* The bookkeeping of a chain towards the following member. tests/cluster tests it in whole clusters. */
#include "server/chain.h"

#include "base/testing.h"

struct fixture {
  struct pwi_log_entries log_entries;
  struct pwi_chains chains;
  struct pwi_chain chain;
};

/* A head with one follower. */
static void start(struct fixture *f) {
  *f = (struct fixture){.chain = {.is_head = true, .is_even = true, .following = 2, .is_open = true}};
  pwi_log_entries_init(&f->log_entries, NULL);
  f->chains.log_entries = &f->log_entries;
  pwi_fifo_init(&f->chain.log, sizeof(struct pwi_log_entry *));
  pwi_fifo_init(&f->chain.deferred, sizeof(struct pwi_deferred));
}

static void stop(struct fixture *f) {
  pwi_chain_heard(&f->chains, &f->chain, f->chain.version);
  assert_int_equal(f->log_entries.bytes, 0);
  pwi_fifo_fini(&f->chain.log);
  pwi_fifo_fini(&f->chain.deferred);
  pwi_log_entries_fini(&f->log_entries);
}

/* Commits the next change without sending it. */
static void change(struct fixture *f) {
  struct pwi_log_entry *log_entry;
  assert_int_equal(pwi_log_entry_take(&f->log_entries, 8, &log_entry), PAWL_OK);
  log_entry->version = ++f->chain.version;
  struct pwi_log_entry **place = pwi_fifo_push(&f->chain.log);
  assert_non_null(place);
  *place = log_entry;
}

/* Sends the next change, which must have this version and name `prior` as the version before it. */
static void assert_sends(struct fixture *f, uint64_t version, uint64_t prior) {
  struct pwi_log_entry *log_entry = pwi_chain_next(&f->chain);
  assert_non_null(log_entry);
  assert_int_equal(log_entry->version, version);
  assert_int_equal(f->chain.sent, prior);
  pwi_chain_was_sent(&f->chain);
}

static void test_changes_are_sent_once_and_in_order(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  for (int i = 0; i < 3; i++) change(&f);
  for (uint64_t i = 1; i <= 3; i++) assert_sends(&f, i, i - 1);
  assert_null(pwi_chain_next(&f.chain));
  pwi_chain_heard(&f.chains, &f.chain, 2);
  assert_int_equal(f.chain.confirmed, 2);
  assert_null(pwi_chain_next(&f.chain));
  change(&f);
  assert_sends(&f, 4, 3);
  stop(&f);
}

static void test_a_follower_that_asks_is_sent_everything_again(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  for (int i = 0; i < 3; i++) change(&f);
  for (uint64_t i = 1; i <= 3; i++) assert_sends(&f, i, i - 1);
  pwi_chain_rewind(&f.chain, 1);
  assert_sends(&f, 2, 1);
  assert_sends(&f, 3, 2);
  stop(&f);
}

/* The follower asked before the changes under way arrived. It confirms them before they are sent again. */
static void test_a_confirmed_change_is_not_sent_again(void **state) {
  (void)state;
  struct fixture f;
  start(&f);
  change(&f);
  change(&f);
  assert_sends(&f, 1, 0);
  assert_sends(&f, 2, 1);
  pwi_chain_rewind(&f.chain, 0);
  pwi_chain_heard(&f.chains, &f.chain, 2);
  assert_null(pwi_chain_next(&f.chain));
  change(&f);
  assert_sends(&f, 3, 2);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_changes_are_sent_once_and_in_order),
      cmocka_unit_test(test_a_follower_that_asks_is_sent_everything_again),
      cmocka_unit_test(test_a_confirmed_change_is_not_sent_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
