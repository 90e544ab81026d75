/* What the party's calls and its actor share: the layout of a packet's head, and the table of links. */
#ifndef PWI_CONFORMANCE_PACKET_H
#define PWI_CONFORMANCE_PACKET_H

#include "party.h"

/* All 64 bytes are used, so that every one of them is checked. */
struct packet_head {
  uint64_t number, seed, size, value, prefix;
  enum pwi_lane lane;
  enum pwi_receive_how how;
};

void packet_write_head(const struct packet *packet, uint64_t number, uint64_t seed, uint8_t *head);

/* False if it is not what packet_write_head wrote. */
bool packet_read_head(const uint8_t *head, struct packet_head *head_out);

/* A link that was not known before. */
struct party_link *party_link_add(struct party *party, struct pwi_link link, bool accepted);

#endif
