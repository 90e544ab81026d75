/* Somebody who holds a link by right, knows all that its two ends know, and goes to the node's door with a card of its
 * own making (src/net/tcp/meet.c). The bytes are made here anew, so that nothing of the library's own is trusted. */
#ifndef PWI_TESTS_HOSTILE_VISITOR_H
#define PWI_TESTS_HOSTILE_VISITOR_H

#include "../faults/attack.h"

#define OFFER_MAX 8192
#define CARD_HEAD 80
#define PROOF_SIZE 32

/* An offer as the node made it, or as we lie. */
struct offer {
  uint8_t fields[PWI_FRAME_FIELDS_MAX];
  uint8_t body[OFFER_MAX];
  size_t size;
};

uint32_t offer_flags(const struct offer *offer);
uint64_t offer_link(const struct offer *offer); /* the node's number of the link */

/* All of the link up to the node's offer. */
void visitor_hear_offer(struct raw *raw, struct offer *offer_out);

/* An honest offer of ours, for its answer to be a meeting. `nonce` is 16 bytes. */
void visitor_say_offer(struct raw *raw, const uint8_t *nonce);

/* The proof that the connector of this link has to show. */
void visitor_proof(struct raw *raw, const struct offer *theirs, const uint8_t *nonce, uint8_t proof_out[PROOF_SIZE]);

/* A card: `place` is where the proof is said to lie. Returns its size. */
size_t visitor_card(uint8_t *card, const struct offer *theirs, const uint8_t *proof, uint64_t place,
                    const uint8_t host[16], const void *address, size_t address_size);

/* The host identity that a node of this process and machine has. */
void visitor_host(uint8_t host_out[16]);

/* A connection to the door; -1 if it was refused. */
int visitor_knock(const struct offer *theirs);

/* True if the door closed it without another word. */
bool visitor_was_sent_away(int socket);

#endif
