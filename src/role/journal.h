/* Where the manager keeps its decisions: an ordered list of records, each durable before anybody hears of it.
 *
 * The manager appends one record at a time and goes on when it is told that the record is safe. An implementation may
 * keep it in memory (below), in a checksummed file, or in a store of several machines; the manager does not know which.
 *
 * Threads: as the manager's net.
 */
#ifndef PWI_ROLE_JOURNAL_H
#define PWI_ROLE_JOURNAL_H

#include <stddef.h>

#include <pawl/status.h>

struct pwi_journal {
  const struct pwi_journal_ops *ops;
  /* Set by the manager. The record handed over last is safe, or never will be: then the manager stops deciding. May be
   * called from inside `append`. */
  void (*safe)(void *context, pawl_status status);
  void *context;
};

struct pwi_journal_ops {
  /* Hands a record over; it is copied. The next is handed over only after `safe`. */
  void (*append)(struct pwi_journal *journal, const void *record, size_t size);

  /* All records there are, in order, at the start of a manager. Anything but PAWL_OK from `visit` ends it. */
  pawl_status (*replay)(struct pwi_journal *journal,
                        pawl_status (*visit)(void *context, const void *record, size_t size), void *context);
  void (*destroy)(struct pwi_journal *journal);
};

/* Keeps records in memory: a manager that is started again knows nothing. */
PAWL_MUST_USE pawl_status pwi_journal_memory_create(struct pwi_journal **journal_out);

#endif
