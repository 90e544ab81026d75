/* What the party's calls and its actor share: the layout of a parcel's head, and the table of links. */
#ifndef PWI_CONFORMANCE_PARCEL_H
#define PWI_CONFORMANCE_PARCEL_H

#include "party.h"

/* All 64 bytes are used, so that every one of them is checked. */
struct parcel_head {
  uint64_t number, seed, size, value, prefix;
  enum pwi_lane lane;
  enum pwi_receive_how how;
};

void parcel_write_head(const struct parcel *parcel, uint64_t number, uint64_t seed, uint8_t *head);

/* False if it is not what parcel_write_head wrote. */
bool parcel_read_head(const uint8_t *head, struct parcel_head *head_out);

/* A link that was not known before. */
struct party_link *party_link_add(struct party *party, struct pwi_link link, bool accepted);

#endif
