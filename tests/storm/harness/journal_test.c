/* The journal of a worker: reading it back from a complete, a truncated and a damaged file. */
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "journal.h"

#define PUSHES 20
#define RECORD 32

static char folder[] = "/tmp/pawl-storm-XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/journal", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

/* All pushes but the last two have ended; one of them was refused on one key, and has an unknown outcome
 * on another. */
static size_t write_journal(unsigned char *bytes, size_t room) {
  struct pwi_storm_writer writer;
  unlink(path);
  assert_int_equal(pwi_storm_writer_open(path, 7, &writer), PAWL_OK);
  for (uint64_t serial = 1; serial <= PUSHES; serial++) {
    uint64_t keys = pwi_storm_keys_of(7, serial);
    assert_int_equal(pwi_storm_write(&writer, PWI_STORM_INTENT, serial, keys, (int64_t)serial), PAWL_OK);
    if (serial > PUSHES - 2) continue;
    uint64_t first = keys & -keys, rest = keys & (keys - 1), second = rest & -rest;
    if (serial == 5) assert_int_equal(pwi_storm_write(&writer, PWI_STORM_UNSURE, serial, first, 5), PAWL_OK);
    uint64_t done = serial == 5 ? rest & ~second : keys;
    assert_int_equal(pwi_storm_write(&writer, PWI_STORM_DONE, serial, done, 100 + (int64_t)serial), PAWL_OK);
  }
  assert_int_equal(pwi_storm_write(&writer, PWI_STORM_STALE, PUSHES, 0x11, 9), PAWL_OK);
  pwi_storm_writer_close(&writer);
  FILE *file = fopen(path, "rbe");
  assert_non_null(file);
  size_t size = fread(bytes, 1, room, file);
  fclose(file);
  return size;
}

static void test_a_journal_says_what_was_begun_and_how_it_ended(void **state) {
  (void)state;
  unsigned char bytes[4096];
  struct pwi_storm_journal journal;
  struct pwi_storm_writer writer;
  write_journal(bytes, sizeof bytes);
  assert_int_equal(pwi_storm_writer_open(path, 7, &writer), PAWL_EXISTS);
  assert_int_equal(pwi_storm_journal_read(path, &journal), PAWL_OK);
  assert_int_equal(journal.worker, 7);
  assert_int_equal(journal.count, PUSHES);
  assert_int_equal(journal.stale, 2);
  assert_false(journal.is_torn);
  for (uint64_t serial = 1; serial <= PUSHES; serial++) {
    const struct pwi_storm_entry *entry = &journal.entries[serial - 1];
    bool has_ended = serial <= PUSHES - 2;
    assert_int_equal(entry->keys, pwi_storm_keys_of(7, serial));
    assert_int_equal(entry->ended_ns, has_ended ? 100 + serial : 0);
    if (serial == 5) continue;
    assert_int_equal(entry->done, has_ended ? entry->keys : 0);
    assert_int_equal(entry->unsure, has_ended ? 0 : entry->keys);
  }
  assert_int_equal(__builtin_popcountll(journal.entries[4].done), PWI_STORM_TOUCHED - 2);
  assert_int_equal(__builtin_popcountll(journal.entries[4].unsure), 1);
  pwi_storm_journal_fini(&journal);
}

static void test_of_a_worker_that_was_killed_everything_but_the_torn_record_is_read(void **state) {
  (void)state;
  unsigned char bytes[4096];
  struct pwi_storm_journal journal;
  size_t size = write_journal(bytes, sizeof bytes);
  for (size_t cut = 0; cut <= size; cut++) {
    pawl_status status = pwi_storm_journal_parse(bytes, cut, &journal);
    assert_int_equal(status, cut < RECORD ? PAWL_CORRUPT : PAWL_OK);
    if (status) continue;
    assert_int_equal(journal.is_torn, cut % RECORD != 0);
    assert_true(journal.count <= PUSHES);
    pwi_storm_journal_fini(&journal);
  }
}

static void test_every_bit_that_flips_is_noticed(void **state) {
  (void)state;
  unsigned char bytes[4096];
  struct pwi_storm_journal journal;
  size_t size = write_journal(bytes, sizeof bytes);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    pawl_status status = pwi_storm_journal_parse(bytes, size, &journal);
    bool is_last = bit / 8 >= size - RECORD; /* taken for a torn record */
    assert_int_equal(status, is_last ? PAWL_OK : PAWL_CORRUPT);
    if (!status) assert_true(journal.is_torn);
    if (!status) pwi_storm_journal_fini(&journal);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}

static void test_records_that_are_out_of_place_are_noticed(void **state) {
  (void)state;
  unsigned char bytes[4096], swapped[4096];
  struct pwi_storm_journal journal;
  size_t size = write_journal(bytes, sizeof bytes);
  memcpy(swapped, bytes, size);
  memcpy(swapped + RECORD, bytes + 3 * RECORD, RECORD); /* sealed, but for another offset */
  assert_int_equal(pwi_storm_journal_parse(swapped, size, &journal), PAWL_CORRUPT);
  memmove(bytes + RECORD, bytes + 2 * RECORD, size - 2 * RECORD); /* one is missing */
  assert_int_equal(pwi_storm_journal_parse(bytes, size - RECORD, &journal), PAWL_CORRUPT);
}

/* A worker that writes nonsense is a bug of ours: the verifier reports it instead of judging by it. */
static void test_a_journal_that_contradicts_itself_is_refused(void **state) {
  (void)state;
  static const struct {
    enum pwi_storm_kind kind;
    uint64_t serial, keys;
    int64_t time_ns;
  } wrong[] = {
      {PWI_STORM_INTENT, 1, 1, 1},       /* begun twice */
      {PWI_STORM_INTENT, 3, 1, 1},       /* a serial is left out */
      {PWI_STORM_INTENT, 2, 0, 1},       /* no keys */
      {PWI_STORM_DONE, 2, 1, 1},         /* never begun */
      {PWI_STORM_DONE, 0, 1, 1},         /* no serial */
      {PWI_STORM_DONE, 1, 2, 1},         /* a key that was not pushed to */
      {PWI_STORM_DONE, 1, 1, 0},         /* no time */
      {PWI_STORM_STALE, 2, 1, 1},        /* of a later push */
      {(enum pwi_storm_kind)9, 1, 1, 1}, /* unknown kind */
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct pwi_storm_writer writer;
    struct pwi_storm_journal journal;
    unlink(path);
    assert_int_equal(pwi_storm_writer_open(path, 0, &writer), PAWL_OK);
    assert_int_equal(pwi_storm_write(&writer, PWI_STORM_INTENT, 1, 1, 1), PAWL_OK);
    assert_int_equal(pwi_storm_write(&writer, wrong[i].kind, wrong[i].serial, wrong[i].keys, wrong[i].time_ns),
                     PAWL_OK);
    pwi_storm_writer_close(&writer);
    assert_int_equal(pwi_storm_journal_read(path, &journal), PAWL_CORRUPT);
  }
}

static void test_reading_returns_when_there_is_no_memory_or_no_file(void **state) {
  (void)state;
  unsigned char bytes[4096];
  struct pwi_storm_journal journal;
  write_journal(bytes, sizeof bytes);
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = pwi_storm_journal_read(path, &journal);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pwi_storm_journal_fini(&journal);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
  }
  assert_int_equal(pwi_memory_counts().live, before.live);
  unlink(path);
  assert_int_equal(pwi_storm_journal_read(path, &journal), PAWL_NOT_FOUND);
  assert_int_equal(fclose(fopen(path, "we")), 0);
  assert_int_equal(pwi_storm_journal_read(path, &journal), PAWL_CORRUPT);
}

static void test_keys_of_workers_are_their_own_and_rise(void **state) {
  (void)state;
  for (unsigned table = 0; table < PWI_STORM_TABLES; table++)
    for (uint32_t worker = 0; worker < 3; worker++)
      for (uint32_t index = 1; index < PWI_STORM_KEYS; index++) {
        uint64_t key = pwi_storm_key((enum pwi_storm_table)table, worker, index);
        assert_true(key > pwi_storm_key((enum pwi_storm_table)table, worker, index - 1));
        for (uint32_t other = 0; other < PWI_STORM_KEYS; other++)
          assert_true(key != pwi_storm_key((enum pwi_storm_table)table, worker + 1, other));
      }
  uint64_t all = 0;
  for (uint64_t serial = 1; serial < 200; serial++) {
    uint64_t keys = pwi_storm_keys_of(3, serial);
    assert_int_equal(__builtin_popcountll(keys), PWI_STORM_TOUCHED);
    for (unsigned eighth = 0; eighth < 8; eighth++)
      assert_int_equal(__builtin_popcountll(keys >> 8 * eighth & 0xff), 1);
    all |= keys;
  }
  assert_true(all == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_journal_says_what_was_begun_and_how_it_ended),
      cmocka_unit_test(test_of_a_worker_that_was_killed_everything_but_the_torn_record_is_read),
      cmocka_unit_test(test_every_bit_that_flips_is_noticed),
      cmocka_unit_test(test_records_that_are_out_of_place_are_noticed),
      cmocka_unit_test(test_a_journal_that_contradicts_itself_is_refused),
      cmocka_unit_test(test_reading_returns_when_there_is_no_memory_or_no_file),
      cmocka_unit_test(test_keys_of_workers_are_their_own_and_rise),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
