/* Messages between engines of a reduce, and the header of a slot.
 *
 * The caller of an epoch is the participating member with the lowest rank.
 *
 *   CALL     caller to all: a new epoch is to be agreed on, after this iteration is completed
 *   LATER    to the caller: call an epoch that is later than this one
 *   STATE    to the caller, from inside a step: the iterations that this member has completed
 *   GO       from the caller: the common iteration, and the neighbours of the receiver
 *   SLOT     to an in-neighbour: the region that follows, with this tag, is the slot for its tensors; the version
 *            that this member needs next. Tag 0: there is no slot any more
 *   RELEASE  to the owner of an older slot: nothing will be put into it any more
 *   ACK      to an in-neighbour: the version was used
 *   ARRIVED  to the caller: this member has sent the version; BSP
 *   PASS     from the caller: all have; BSP
 *   MODEL    to the donor: the region that follows, with this tag, is for its tensors. Tag 0: there is none any
 *            more
 *   GOT      to the donor: they are there
 *   STOP     to all that are linked: this member agrees on this epoch; it sends nothing in older ones, except for
 *            versions up to this one in the epoch whose mark is the tag
 *   BYE      to all that are linked: this member closes the reduce, after this iteration
 *   MAPPED   to a neighbour: this member reads its board; the version that this member needs next
 *   WAKE     to a neighbour that sleeps: the own board has changed
 *   PING, PONG
 *
 * Members are named by their sender ids. Threads: pure.
 */
#ifndef PWI_PEER_REDUCE_MESSAGES_H
#define PWI_PEER_REDUCE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/reduce.h>

#include "base/cursor.h"

/* The numbers are part of the wire format. */
enum reduce_say {
  REDUCE_CALL = 1,
  REDUCE_LATER = 2,
  REDUCE_STATE = 3,
  REDUCE_GO = 4,
  REDUCE_SLOT = 5,
  REDUCE_RELEASE = 6,
  REDUCE_ACK = 7,
  REDUCE_ARRIVED = 8,
  REDUCE_PASS = 9,
  REDUCE_MODEL = 10,
  REDUCE_GOT = 11,
  REDUCE_BYE = 12,
  REDUCE_PING = 13,
  REDUCE_PONG = 14,
  REDUCE_STOP = 15,
  REDUCE_MAPPED = 16,
  REDUCE_WAKE = 17,
};

/* Epochs are ordered by number, then round, then caller. */
struct reduce_epoch {
  uint64_t number; /* of the group; 0: no epoch */
  uint32_t round;
  uint64_t caller;
};

static inline int pwi_reduce_epoch_compare(struct reduce_epoch a, struct reduce_epoch b) {
  if (a.number != b.number) return a.number < b.number ? -1 : 1;
  if (a.round != b.round) return a.round < b.round ? -1 : 1;
  return a.caller == b.caller ? 0 : a.caller < b.caller ? -1 : 1;
}

/* A number that stands for an epoch. */
uint64_t pwi_reduce_epoch_mark(struct reduce_epoch epoch);

/* Every message has the same fields: u64 number, u32 round, u64 caller, u64 version, u64 tag, u64 size. A GO has
 * more. Fields that a message does not need are 0. */
struct reduce_message {
  struct reduce_epoch epoch;
  uint64_t version; /* an iteration */
  uint64_t tag;     /* SLOT, RELEASE, MODEL; STOP: a mark; STATE: 1 if the member was in no epoch yet */
  uint64_t size;    /* SLOT, MODEL: bytes of the region; GO: participants */
};

#define REDUCE_MESSAGE_SIZE 44

/* What a GO has besides: u64 donor, text graph, three lists, each a u32 count and u64 ids. */
struct reduce_go {
  struct reduce_message head;
  uint64_t donor; /* the receiver is behind and takes over the tensors of this member; 0: it is not */
  char graph[PAWL_REDUCE_GRAPH_MAX + 1];
  const unsigned char *ins, *outs, *serves; /* ids as bytes, ascending; borrowed from the message */
  uint32_t in_count, out_count, serve_count;
};

void pwi_reduce_message_encode(const struct reduce_message *message, unsigned char bytes[REDUCE_MESSAGE_SIZE]);

#define REDUCE_VERSION_MAX (UINT64_C(1) << 62) /* so that versions can be added up */

/* Both accept any bytes. PAWL_TRUNCATED, PAWL_CORRUPT. Lists of a GO ascend and have no zero. */
PAWL_MUST_USE pawl_status pwi_reduce_message_decode(const void *bytes, size_t size, struct reduce_message *message_out);
PAWL_MUST_USE pawl_status pwi_reduce_go_decode(const void *bytes, size_t size, struct reduce_go *go_out);

uint64_t pwi_reduce_go_id(const unsigned char *list, uint32_t index);

/* --- slots ---------------------------------------------------------------------------------------------- */

/* A slot: this header, `capacity` bytes for the payload, and u64 version again. */
struct reduce_header {
  uint64_t version;
  uint64_t size; /* of the payload; less than the capacity if it is sparse */
  uint32_t kind; /* enum reduce_kind */
};

enum reduce_kind { REDUCE_DENSE = 0, REDUCE_SPARSE = 1 };

#define REDUCE_HEADER_SIZE 32
#define REDUCE_FOOTER_SIZE 8

void pwi_reduce_header_encode(const struct reduce_header *header, unsigned char bytes[REDUCE_HEADER_SIZE]);
void pwi_reduce_header_decode(const unsigned char bytes[REDUCE_HEADER_SIZE], struct reduce_header *header_out);

#endif
