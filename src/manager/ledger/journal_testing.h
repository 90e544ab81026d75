/* Records with known bytes, and reading a journal back: for tests of journals.
 *
 * The bytes of record n, from 1 on, depend only on n, so a record that is read back can be recognised.
 * Include cmocka before this header. */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_TESTING_H
#define PWI_MANAGER_LEDGER_JOURNAL_TESTING_H

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "manager/ledger/journal.h"

#define RECORD_ROOM 9000
#define RECORDS_MAX 64

/* Every fifth record is larger than a page. */
static size_t record_bytes(uint64_t number, uint8_t bytes[RECORD_ROOM]) {
  size_t size = number % 5 == 0 ? 4200 + (size_t)(number * 97 % 4000) : 9 + (size_t)(number * 37 % 90);
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(pwi_mix64(number * 65536 + i / 3) >> 56);
  pwi_put_u64(bytes, number);
  return size;
}

/* The calls of `safe`. */
struct heard {
  unsigned times;
  pawl_status last;
};

static void hear(void *context, pawl_status status) {
  struct heard *heard = context;
  heard->times++;
  heard->last = status;
}

/* Appends or replaces, and returns true if the journal reported the record as safe at once. */
static bool hand_over(struct pwi_journal *journal, uint64_t number, bool replaces) {
  uint8_t bytes[RECORD_ROOM];
  size_t size = record_bytes(number, bytes);
  struct heard heard = {0};
  journal->safe = hear;
  journal->context = &heard;
  if (replaces)
    journal->ops->replace(journal, bytes, size);
  else
    journal->ops->append(journal, bytes, size);
  assert_int_equal(heard.times, 1);
  return heard.last == PAWL_OK;
}

/* The numbers of all records, in order. */
struct listed {
  uint64_t numbers[RECORDS_MAX];
  size_t count;
};

static pawl_status list_one(void *context, const void *record, size_t size) {
  struct listed *listed = context;
  uint8_t wanted[RECORD_ROOM];
  assert_true(listed->count < RECORDS_MAX && size >= 9);
  uint64_t number = pwi_get_u64(record);
  assert_int_equal(size, record_bytes(number, wanted));
  assert_memory_equal(record, wanted, size);
  listed->numbers[listed->count++] = number;
  return PAWL_OK;
}

static pawl_status list(struct pwi_journal *journal, struct listed *listed) {
  *listed = (struct listed){0};
  return journal->ops->replay(journal, list_one, listed);
}

#endif
