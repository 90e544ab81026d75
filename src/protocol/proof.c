/* Making and checking proofs. */
#include "protocol/proof.h"

#include <string.h>

#include "base/bytes.h"

#define TEXT "pawl: who speaks here"
#define CLAIM_SIZE (sizeof TEXT + 24)

static void write_claim(uint64_t cluster, uint64_t sender, uint64_t verifier, unsigned char claim[CLAIM_SIZE]) {
  memcpy(claim, TEXT, sizeof TEXT);
  pwi_put_u64(claim + sizeof TEXT, cluster);
  pwi_put_u64(claim + sizeof TEXT + 8, sender);
  pwi_put_u64(claim + sizeof TEXT + 16, verifier);
}

pawl_status pwi_proof_make(const uint8_t secret[PWI_SEAL_SECRET], uint64_t cluster, uint64_t sender, uint64_t verifier,
                           uint8_t seal_out[PWI_SEAL_SIZE]) {
  unsigned char claim[CLAIM_SIZE];
  write_claim(cluster, sender, verifier, claim);
  return pwi_seal_make(secret, claim, sizeof claim, seal_out);
}

void pwi_shown_take(struct pwi_shown *shown, uint64_t sender, const void *seal, size_t size) {
  if (!seal || size != PWI_SEAL_SIZE || sender == 0) return;
  shown->sender = sender;
  memcpy(shown->seal, seal, size);
}

bool pwi_shown_is(struct pwi_shown *shown, const struct pwi_membership *membership, uint64_t cluster, uint64_t verifier,
                  uint64_t sender) {
  if (sender == 0) return false;
  if (shown->bound == sender) return true;
  const struct pwi_membership_sender *known =
      shown->sender == sender ? pwi_membership_find(membership, (struct pwi_sender){sender}) : NULL;
  if (!known) return false;
  unsigned char claim[CLAIM_SIZE];
  write_claim(cluster, sender, verifier, claim);
  if (pwi_seal_check(known->key, claim, sizeof claim, shown->seal)) shown->bound = sender;
  shown->sender = 0; /* each proof is verified once */
  return shown->bound == sender;
}
