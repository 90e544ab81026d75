/* The journal: an ordered list of the manager's records, each durable before it is announced.
 *
 * The manager appends one record at a time and continues when the journal reports that the record is safe.
 * Implementations keep records in memory (below), in a checksummed file (manager/ledger/journal_file.h), or
 * in a replicated store (manager/leader/journal_meta.h). The manager does not know which.
 *
 * To bound the size of the journal, the manager may replace all records by one with the same effect, a
 * snapshot.
 *
 * Threads: belongs to the thread of the manager's net.
 */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_H
#define PWI_MANAGER_LEDGER_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_journal {
  const struct pwi_journal_ops *ops;
  /* Set by the manager. The last record is safe, or the journal has failed: then the manager stops deciding
   * and appends nothing more. May be called from inside `append` and `replace`. */
  void (*safe)(void *context, pawl_status status);
  void *context;
};

struct pwi_journal_ops {
  /* Appends a record, which is copied. The next call may come only after `safe`. */
  void (*append)(struct pwi_journal *journal, const void *record, size_t size);

  /* Replaces all records by one with the same effect. Calls `safe` as `append` does. A later reader finds
   * either the old records or this one, never both and never neither. If the replacement fails without harm
   * (a full disk, for example), the old records stay, and `safe` gets PAWL_OK. NULL: this journal limits its
   * size itself. */
  void (*replace)(struct pwi_journal *journal, const void *record, size_t size);

  /* Bytes of all records, to decide when to replace them. NULL if `replace` is NULL. */
  uint64_t (*size)(const struct pwi_journal *journal);

  /* Passes all records to `visit`, in order. Called at the start of a manager. Any other result of `visit`
   * than PAWL_OK ends it and is returned. */
  pawl_status (*replay)(struct pwi_journal *journal,
                        pawl_status (*visit)(void *context, const void *record, size_t size), void *context);
  void (*destroy)(struct pwi_journal *journal);
};

/* Keeps records in memory: they are lost when the manager ends. */
PAWL_MUST_USE pawl_status pwi_journal_memory_create(struct pwi_journal **journal_out);

#endif
