/* Inside role/chain.h: what chain.c and chain_view.c share. */
#ifndef PWI_ROLE_CHAIN_INSIDE_H
#define PWI_ROLE_CHAIN_INSIDE_H

#include "role/chain.h"

/* The clock of versions has one sender: the chain itself. */
#define PWI_CHAIN_SELF ((struct pwi_sender){1})

static inline struct pwi_parcel *pwi_chain_log_at(const struct pwi_chain *chain, size_t index) {
  return *(struct pwi_parcel **)pwi_fifo_at(&chain->log, index);
}

void pwi_chain_destroy(struct pwi_chain *chain); /* NULL is fine; parcels are let go, answers dropped */

/* Takes version and evenness from the clock by position. */
void pwi_chain_read_version(const struct pwi_chains *chains, struct pwi_chain *chain);

#endif
