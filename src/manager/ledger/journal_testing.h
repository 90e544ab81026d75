/* Records with known bytes, a list of what was said to be safe, and reading a journal back: for tests of
 * journals.
 *
 * Record number n, from 1 on, has bytes that depend on n and nothing else; so what is read back says by
 * itself what it is. Whoever includes this has included cmocka. */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_TESTING_H
#define PWI_MANAGER_LEDGER_JOURNAL_TESTING_H

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "manager/ledger/journal.h"

#define RECORD_ROOM 9000
#define RECORDS_MAX 64

/* Every fifth is larger than a page. */
static size_t record_bytes(uint64_t number, uint8_t bytes[RECORD_ROOM]) {
  size_t size = number % 5 == 0 ? 4200 + (size_t)(number * 97 % 4000) : 9 + (size_t)(number * 37 % 90);
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(pwi_mix64(number * 65536 + i / 3) >> 56);
  pwi_put_u64(bytes, number);
  return size;
}

/* What a journal has said. */
struct heard {
  unsigned times;
  pawl_status last;
};

static void hear(void *context, pawl_status status) {
  struct heard *heard = context;
  heard->times++;
  heard->last = status;
}

/* True if it was said, at once, to be safe. */
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

/* The numbers of the records there are, in order. */
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
