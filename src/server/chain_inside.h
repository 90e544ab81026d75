/* Shared by server/chain.c and server/chain_view.c. */
#ifndef PWI_SERVER_CHAIN_INSIDE_H
#define PWI_SERVER_CHAIN_INSIDE_H

#include "server/chain.h"

/* The clock of versions has one sender: the chain itself. */
#define PWI_CHAIN_SELF ((struct pwi_sender){1})

static inline struct pwi_log_entry *pwi_chain_log_at(const struct pwi_chain *chain, size_t index) {
  return *(struct pwi_log_entry **)pwi_fifo_at(&chain->log, index);
}

/* Releases log entries, drops deferred replies; NULL is allowed. */
void pwi_chain_destroy(struct pwi_chain *chain);

/* Writes the version of an even chain to the clock, for the positions that the clock has. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_write_version(struct pwi_chains *chains, const struct pwi_chain *chain);

/* Sets the chain's version and evenness from the clock. */
void pwi_chain_read_version(const struct pwi_chains *chains, struct pwi_chain *chain);

/* Adds a log entry to the log, by version and with a reference of its own, unless the log has it already.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_chain_add_to_log(struct pwi_chain *chain, struct pwi_log_entry *log_entry);

#endif
