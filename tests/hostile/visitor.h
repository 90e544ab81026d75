/* An attacker with a valid link that knows everything its two ends know, and connects to the node's door with
 * a card of its own making (src/net/tcp/meet.c). All bytes are made here, without code of the library. */
#ifndef PWI_TESTS_HOSTILE_VISITOR_H
#define PWI_TESTS_HOSTILE_VISITOR_H

#include "../faults/attack.h"

#define OFFER_MAX 8192
#define CARD_HEAD 80
#define PROOF_SIZE 32

/* An offer of the node, or a false one. */
struct offer {
  uint8_t fields[PWI_FRAME_FIELDS_MAX];
  uint8_t body[OFFER_MAX];
  size_t size;
};

uint32_t offer_flags(const struct offer *offer);
uint64_t offer_link(const struct offer *offer); /* the node's number of the link */

/* Sets up the link up to the node's offer. */
void visitor_hear_offer(struct raw *raw, struct offer *offer_out);

/* Sends an honest offer, so that the node answers with a meeting. `nonce` is 16 bytes. */
void visitor_say_offer(struct raw *raw, const uint8_t *nonce);

/* Makes the proof that the connector of this link must show. */
void visitor_proof(struct raw *raw, const struct offer *theirs, const uint8_t *nonce, uint8_t proof_out[PROOF_SIZE]);

/* Makes a card; `place` is the address of the proof in it. Returns its size. */
size_t visitor_card(uint8_t *card, const struct offer *theirs, const uint8_t *proof, uint64_t place,
                    const uint8_t host[16], const void *address, size_t address_size);

/* The host identity of a node in this process. */
void visitor_host(uint8_t host_out[16]);

/* Connects to the door; -1 if the connection was refused. */
int visitor_knock(const struct offer *theirs);

/* Returns true if the door closed the connection without a reply. */
bool visitor_was_sent_away(int socket);

#endif
