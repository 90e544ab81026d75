/* The contributors of an aggregate: the pushes that a relay has added up (docs/relays.md#exactly-once).
 *
 * Threads: no state.
 */
#ifndef PWI_PROTOCOL_CONTRIBUTORS_H
#define PWI_PROTOCOL_CONTRIBUTORS_H

#include "base/cursor.h"
#include "net/seal.h"
#include "store/clock.h" /* struct pwi_sender */

#define PWI_CONTRIBUTORS_MAX 4096 /* in one aggregate */
#define PWI_RELAY_HOPS_MAX 16     /* relays that pass an aggregate on; more are a cycle */

/* A push in an aggregate. */
struct pwi_contributor {
  struct pwi_sender sender;
  uint64_t task, prior, settled; /* as in its request */
  uint64_t relay;                /* to which the sender has proved itself */
  uint8_t seal[PWI_SEAL_SIZE];   /* that proof (protocol/proof.h) */
};

/* Section CONTRIBUTORS: u32 hops, u32 count, and for each contributor, by ascending sender, u64 each: sender, task,
 * prior, settled, relay, then the seal. */
#define PWI_CONTRIBUTOR_SIZE (5 * 8 + PWI_SEAL_SIZE)

void pwi_contributors_encode(const struct pwi_contributor *contributors, size_t count, uint32_t hops,
                             struct pwi_writer *writer);

/* `*contributors_out` is freed with pwi_free; it has at least one element. PAWL_CORRUPT also for senders that do not
 * ascend, a number of 0, and too many contributors; PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_contributors_decode(const void *bytes, size_t size,
                                                  struct pwi_contributor **contributors_out, size_t *count_out,
                                                  uint32_t *hops_out);

#endif
