/* Bookkeeping of a chain towards the member behind it. What whole clusters make of it is tested in
 * tests/cluster. */
#include "server/chain.h"

#include "base/testing.h"

struct fixture {
  struct pwi_log_entries log_entries;
  struct pwi_chains chains;
  struct pwi_chain chain;
};

/* A head with one member behind it. */
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

/* The next change, not sent yet. */
static void change(struct fixture *f) {
  struct pwi_log_entry *log_entry;
  assert_int_equal(pwi_log_entry_take(&f->log_entries, 8, &log_entry), PAWL_OK);
  log_entry->version = ++f->chain.version;
  struct pwi_log_entry **place = pwi_fifo_push(&f->chain.log);
  assert_non_null(place);
  *place = log_entry;
}

/* Sends the next one: its version, and the one that it says it comes after. */
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

static void test_whoever_asks_is_sent_everything_once_more(void **state) {
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

/* It had asked before what was under way arrived, and the second copy has not been sent when it confirms the
 * first. */
static void test_what_is_confirmed_need_not_be_sent_once_more(void **state) {
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
      cmocka_unit_test(test_whoever_asks_is_sent_everything_once_more),
      cmocka_unit_test(test_what_is_confirmed_need_not_be_sent_once_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
