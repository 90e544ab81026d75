/* A journal in a store that several managers share (manager/ledger/journal.h over manager/leader/meta.h).
 *
 * Record number n is the key prefix/log/n, with n in 20 digits, so that the order of keys is that of records. Each is put by
 * one deal, under tests that hold only if
 *   - we lead: the leader's key is ours (manager/leader/election.h);
 *   - the record before is the one that we know, by the revision at which it was created;
 *   - there is no record n yet.
 * So the log cannot fork: what a manager that was replaced appends is refused, the manager is told PAWL_NODE_DEPOSED, and
 * decides nothing any more. Tests that do not hold because an earlier attempt, whose answer was lost, was done after all
 * are recognised by the record that is there.
 *
 * While the store is away an append waits, and so does the manager.
 *
 * The value is a head and the record; PWI_META_RECORD_HEAD bytes, little-endian:
 *
 *   u32 mark   "PWLG"
 *   u16 kind   0: follows the one before; 1: nothing is before it
 *   u16 0
 *   u32 parts  how many keys prefix/part/n/i (20 and 6 digits, from 0) hold the beginning of the record
 *   u32 0
 *   u64 hash   XXH3 of the whole record, with the number as its seed
 *
 * A record has parts, of PWI_META_PART bytes each, if it is longer than one; the rest is behind the head. They are put
 * before the record itself, under the first test, and mean nothing without it.
 *
 * Threads: as the store's.
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
  struct pwi_meta *meta;                             /* borrowed, */
  const struct pwi_election *election;               /* like this: it leads, and its fence is ours */
  const struct pwi_log *log;                         /* and this */
  const char *prefix;                                /* copied */
  void (*loaded)(void *context, pawl_status status); /* see pwi_journal_meta_load */
  void (*failed)(void *context, pawl_status status); /* an append was refused: the manager is told first */
  void *context;
};

/* PAWL_NO_MEMORY. Ended by its `destroy`. */
PAWL_MUST_USE pawl_status pwi_journal_meta_create(const struct pwi_journal_meta_config *config,
                                                  struct pwi_journal **journal_out);

/* Reads all records, which `replay` then visits, once. `loaded` is called with PAWL_OK; PAWL_CORRUPT if what is there is
 * not a log, or has a gap, or is damaged, which is logged; or whatever the store says. */
void pwi_journal_meta_load(struct pwi_journal *journal);

/* Puts one record in the place of all there are: it gets the next number, and those before it are deleted in the same deal.
 * `safe` is called as for an append, of which none may be under way. A log may begin with such a record only. */
void pwi_journal_meta_replace(struct pwi_journal *journal, const void *record, size_t size);

/* Records there are, or were at the last moment when we could know. */
uint64_t pwi_journal_meta_count(const struct pwi_journal *journal);

#endif
