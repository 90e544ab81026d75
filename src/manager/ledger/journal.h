/* Where the manager keeps its decisions: an ordered list of records, each durable before anybody hears of it.
 *
 * The manager appends one record at a time and goes on when it is told that the record is safe. An implementation may
 * keep it in memory (below), in a checksummed file (manager/ledger/journal_file.h), or in a store of several machines; the manager does
 * not know which.
 *
 * A list that only grows is too long one day. So the manager may hand over one record that says as much as all of them
 * together, and have it take their place.
 *
 * Threads: as the manager's net.
 */
#ifndef PWI_MANAGER_LEDGER_JOURNAL_H
#define PWI_MANAGER_LEDGER_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_journal {
  const struct pwi_journal_ops *ops;
  /* Set by the manager. The record handed over last is safe, or never will be: then the manager stops deciding, and
   * nothing more is handed over. May be called from inside `append` and `replace`. */
  void (*safe)(void *context, pawl_status status);
  void *context;
};

struct pwi_journal_ops {
  /* Hands a record over; it is copied. The next is handed over only after `safe`. */
  void (*append)(struct pwi_journal *journal, const void *record, size_t size);

  /* Hands over a record that says the same as all before it, to take their place; `safe` as for append. Whenever the
   * journal is read again there are the old records or this one, never both, never neither. Where it cannot be done and
   * nothing is lost by that (a full disk, say), the old ones stay, and that is safe too. NULL: this journal takes care
   * of its size by itself. */
  void (*replace)(struct pwi_journal *journal, const void *record, size_t size);

  /* Bytes that all records take, for deciding when to replace them. NULL if `replace` is. */
  uint64_t (*size)(const struct pwi_journal *journal);

  /* All records there are, in order, at the start of a manager. Anything but PAWL_OK from `visit` ends it. */
  pawl_status (*replay)(struct pwi_journal *journal,
                        pawl_status (*visit)(void *context, const void *record, size_t size), void *context);
  void (*destroy)(struct pwi_journal *journal);
};

/* Keeps records in memory: a manager that is started again knows nothing. */
PAWL_MUST_USE pawl_status pwi_journal_memory_create(struct pwi_journal **journal_out);

#endif
