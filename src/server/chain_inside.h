/* Inside server/chain.h: what server/chain.c and server/chain_view.c share. */
#ifndef PWI_SERVER_CHAIN_INSIDE_H
#define PWI_SERVER_CHAIN_INSIDE_H

#include "server/chain.h"

/* The clock of versions has one sender: the chain itself. */
#define PWI_CHAIN_SELF ((struct pwi_sender){1})

static inline struct pwi_log_entry *pwi_chain_log_at(const struct pwi_chain *chain, size_t index) {
  return *(struct pwi_log_entry **)pwi_fifo_at(&chain->log, index);
}

void pwi_chain_destroy(struct pwi_chain *chain); /* NULL is fine; log entries are let go, answers dropped */

/* Brings the clock up to what an even chain knows, as far as its positions are held still. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_write_version(struct pwi_chains *chains, const struct pwi_chain *chain);

/* Takes version and evenness from the clock by position. */
void pwi_chain_read_version(const struct pwi_chains *chains, struct pwi_chain *chain);

/* Keeps the log entry, with a reference of its own, in its place by version; one that is there already is not kept twice.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_add_to_log(struct pwi_chain *chain, struct pwi_log_entry *log_entry);

#endif
