/* Who speaks on a link.
 *
 * Every message names its sender, and anybody could write any number there. So a client draws a secret when it starts, and tells
 * the manager the public half with its JOIN; the membership lists it beside the sender's id. With its first request, and its first call,
 * on each link it shows a *proof*: a seal (net/seal.h) over the cluster, its id and the id of the one it speaks to. From then on the
 * link is bound to that id: numbered requests and calls under any other are not taken.
 *
 * A proof that was shown to one request handler is of no use to it elsewhere, since it names the request handler. There is nothing to be asked for, so
 * proofs work while there is no manager, and a link that is made anew, or a new head, costs one seal and one check.
 *
 * The membership may be behind: a proof is kept until the sender is found there. Threads: belongs to one thread at a time.
 */
#ifndef PWI_PROTOCOL_PROOF_H
#define PWI_PROTOCOL_PROOF_H

#include "net/seal.h"
#include "protocol/membership.h"

/* What was shown on a link. Zeros: nothing. */
struct pwi_shown {
  uint64_t sender; /* that it claims to be, and */
  uint8_t seal[PWI_SEAL_SIZE];
  uint64_t bound; /* that it has proved to be; 0: none */
};

/* `verifier` is the node that will be spoken to: of a session its sender id with PWI_VERIFIER_IS_SENDER. PAWL_NO_MEMORY. */
#define PWI_VERIFIER_IS_SENDER (UINT64_C(1) << 63)
PAWL_MUST_USE pawl_status pwi_proof_make(const uint8_t secret[PWI_SEAL_SECRET], uint64_t cluster, uint64_t sender,
                                         uint64_t verifier, uint8_t seal_out[PWI_SEAL_SIZE]);

/* A message came with a proof; one of another size is none. */
void pwi_shown_take(struct pwi_shown *shown, uint64_t sender, const void *seal, size_t size);

/* Whether the link is bound to the sender. */
bool pwi_shown_is(struct pwi_shown *shown, const struct pwi_membership *membership, uint64_t cluster, uint64_t verifier,
                  uint64_t sender);

#endif
