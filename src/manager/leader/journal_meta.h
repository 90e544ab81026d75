/* The journal in a store that several managers share (manager/ledger/journal.h over manager/leader/meta.h).
 *
 * Record number n is the key prefix/log/n, with n in 20 digits, so keys sort in the order of records. Each
 * record is put by one transaction with tests that hold only if
 *   - this manager leads: the leader's key is its own (manager/leader/election.h);
 *   - the record before is the one that it knows, identified by the revision at which it was created;
 *   - there is no record n yet.
 * So the journal cannot fork. If a manager that was replaced appends a record, the store refuses it; the
 * manager gets PAWL_NODE_DEPOSED and decides nothing more. If the tests fail only because an earlier attempt
 * succeeded and its answer was lost, the journal recognises its own record in the store.
 *
 * While the store cannot be reached, an append waits, and so does the manager.
 *
 * A value is a head of PWI_META_RECORD_HEAD bytes, little-endian, and the record:
 *
 *   u32 mark   "PWLG"
 *   u16 kind   0: follows the record before; 1: the first record
 *   u16 0
 *   u32 parts  number of keys prefix/part/n/i (20 and 6 digits, from 0) with the beginning of the record
 *   u32 0
 *   u64 hash   XXH3 of the whole record, with the number as its seed
 *
 * A record longer than PWI_META_PART has parts of PWI_META_PART bytes each; the rest follows the head. Parts
 * are put before the record itself, with the first test, and have no meaning without the record.
 *
 * Threads: belongs to the thread of the store.
 */
#ifndef PWI_MANAGER_LEADER_JOURNAL_META_H
#define PWI_MANAGER_LEADER_JOURNAL_META_H

#include "base/log.h"
#include "manager/leader/election.h"
#include "manager/ledger/journal.h"
#include "manager/leader/meta.h"

#define PWI_META_RECORD_HEAD 24
#define PWI_META_PART ((size_t)768 << 10)

struct pwi_journal_meta_config {
  struct pwi_meta *meta;                             /* borrowed */
  const struct pwi_election *election;               /* borrowed; it is LEADING, and its fence protects all
                                                        writes */
  const struct pwi_log *log;                         /* borrowed */
  const char *prefix;                                /* prefix of all keys; copied */
  void (*loaded)(void *context, pawl_status status); /* see pwi_journal_meta_load */
  void (*failed)(void *context, pawl_status status); /* an append has failed; called after the manager's
                                                        `safe` */
  void *context;
};

/* PAWL_NO_MEMORY; PAWL_INVALID if the prefix is too long. Freed by its `destroy`. */
PAWL_MUST_USE pawl_status pwi_journal_meta_create(const struct pwi_journal_meta_config *config,
                                                  struct pwi_journal **journal_out);

/* Reads all records, which `replay` then visits once. `loaded` is called with PAWL_OK; with PAWL_CORRUPT if
 * the keys are not a journal, records are missing, or one is damaged, which is logged; or with an error of
 * the store. */
void pwi_journal_meta_load(struct pwi_journal *journal);

/* Replaces all records by one. It gets the next number, and the same transaction deletes the records before
 * it. Calls `safe` as an append does. No append may be under way. Only such a record, or record 1, can be the
 * first of a journal. */
void pwi_journal_meta_replace(struct pwi_journal *journal, const void *record, size_t size);

/* The number of the last record that this journal has read or written. */
uint64_t pwi_journal_meta_count(const struct pwi_journal *journal);

#endif
