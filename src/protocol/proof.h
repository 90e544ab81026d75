/* Proof of the sender id on a link.
 *
 * Every message names its sender, and any client could write any id there. So a client generates a key pair
 * when it starts and sends the public key to the manager with its JOIN; the membership lists it with the
 * sender id. With its first request, and its first call, on each link the client sends a *proof*: a seal
 * (net/seal.h) over the cluster, its sender id and the id of the receiver. From then on the link is bound to
 * that sender id, and numbered requests and calls under any other id are rejected.
 *
 * A receiver cannot use a proof elsewhere, because it contains the id of the receiver. Proofs need no
 * challenge, so they work while there is no manager. A new link or a new head costs one seal and one
 * verification.
 *
 * The membership may be behind: a proof is kept until the sender appears there. Threads: belongs to one
 * thread at a time.
 */
#ifndef PWI_PROTOCOL_PROOF_H
#define PWI_PROTOCOL_PROOF_H

#include "net/seal.h"
#include "protocol/membership.h"

/* The proof received on a link. A struct of zeros: none. */
struct pwi_shown {
  uint64_t sender; /* the sender id of the unverified proof; 0: none */
  uint8_t seal[PWI_SEAL_SIZE];
  uint64_t bound; /* the verified sender id; 0: none */
};

/* Makes a proof. `verifier` is the id of the receiver: a node, or for a session its sender id with
 * PWI_VERIFIER_IS_SENDER set. PAWL_NO_MEMORY. */
#define PWI_VERIFIER_IS_SENDER (UINT64_C(1) << 63)
PAWL_MUST_USE pawl_status pwi_proof_make(const uint8_t secret[PWI_SEAL_SECRET], uint64_t cluster, uint64_t sender,
                                         uint64_t verifier, uint8_t seal_out[PWI_SEAL_SIZE]);

/* Remembers the proof of a message. A proof of the wrong size is ignored. */
void pwi_shown_take(struct pwi_shown *shown, uint64_t sender, const void *seal, size_t size);

/* Returns true if the link is bound to the sender. */
bool pwi_shown_is(struct pwi_shown *shown, const struct pwi_membership *membership, uint64_t cluster, uint64_t verifier,
                  uint64_t sender);

#endif
