/* A journal whose records are written in a second thread, while the manager's thread sends heartbeats.
 *
 * A disk may need longer for a sync than the silence limit of the net, and the manager's nodes would take it for
 * dead. To the manager it is the journal inside: a call returns when the record is safe or the journal has
 * failed.
 *
 * Threads: as manager/ledger/journal.h.
 */
#ifndef PWI_HOST_RUN_JOURNAL_ASIDE_H
#define PWI_HOST_RUN_JOURNAL_ASIDE_H

#include <pawl/status.h>

#include "manager/ledger/journal.h"
#include "net/net.h"

/* `inside` is borrowed: destroy it after this one. It must call `safe` before `append` or `replace` returns, as
 * a journal in a file does. PAWL_NO_MEMORY, PAWL_NODE_LIMIT: there is no thread. */
PAWL_MUST_USE pawl_status pwi_journal_aside_create(struct pwi_journal *inside, struct pwi_net *net,
                                                   struct pwi_journal **journal_out);

#endif
