/* Messages between engines of a collective, and the header of a piece.
 *
 * Members take part in an *epoch*: a number of the group, a round at that number, and a list of members. The caller
 * of an epoch is the member with the lowest rank.
 *
 *   READY    to the caller: this member waits for an epoch; the last epoch that it was in
 *   GO       from the caller: the epoch that begins, with its members and the lives of their engines
 *   ABORT    to linked members, which pass it on: the epoch has failed, why, and which two members are concerned
 *   INBOX    to a member that sends to this one: the region that follows is the inbox for its pieces; `position` is
 *            that of the first piece that was not taken yet
 *   TAKEN    to the same: all pieces before `position` were taken
 *   BYE      to linked members: this member closes; the epoch it is in, and the operations it has completed
 *   BYE_OK   the answer
 *
 * Members are named by their sender ids. Threads: pure.
 */
#ifndef PWI_PEER_COLLECTIVE_MESSAGES_H
#define PWI_PEER_COLLECTIVE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/collective.h>

#include "base/cursor.h"

/* The numbers are part of the wire format. */
enum collective_say {
  COLLECTIVE_READY = 1,
  COLLECTIVE_GO = 2,
  COLLECTIVE_ABORT = 3,
  COLLECTIVE_INBOX = 4,
  COLLECTIVE_TAKEN = 5,
  COLLECTIVE_BYE = 6,
  COLLECTIVE_BYE_OK = 7,
};

/* Epochs are ordered by number, then round. */
struct collective_epoch {
  uint64_t number; /* of the group; 0: no epoch */
  uint32_t round;
};

static inline int pwi_collective_compare(struct collective_epoch a, struct collective_epoch b) {
  if (a.number != b.number) return a.number < b.number ? -1 : 1;
  return a.round == b.round ? 0 : a.round < b.round ? -1 : 1;
}

/* What a member calls. */
enum collective_kind {
  COLLECTIVE_BARRIER = 1,
  COLLECTIVE_BROADCAST = 2,
  COLLECTIVE_ALL_GATHER = 3,
  COLLECTIVE_ALL_REDUCE = 4,
  COLLECTIVE_REDUCE_SCATTER = 5,
};

struct collective_call {
  enum collective_kind kind;
  enum pawl_type type;                     /* PAWL_F32 or PAWL_F64 */
  enum pawl_collective_operator operator_; /* reductions; else 0 */
  uint32_t root;                           /* broadcast; else 0 */
  uint64_t count;                          /* values */
};

bool pwi_collective_is_same(const struct collective_call *a, const struct collective_call *b);

/* "all-reduce of 1000 float, sum", for people. */
#define COLLECTIVE_CALL_TEXT 80
void pwi_collective_describe_call(const struct collective_call *call, char text[COLLECTIVE_CALL_TEXT]);

/* A piece: part of a transfer of an operation. A transfer of no bytes is one empty piece. */
struct collective_head {
  uint64_t position; /* of the piece, among all from this member to the other one; from 0 */
  struct collective_epoch epoch;
  uint64_t sequence; /* of the operation in its epoch; from 1 */
  struct collective_call call;
  uint32_t transfer; /* from this member, in the operation; from 0 */
  uint64_t offset;   /* in the transfer */
  uint32_t size;     /* of the values that follow */
};

#define COLLECTIVE_HEAD_SIZE 64
#define COLLECTIVE_PIECE ((size_t)65536) /* bytes of values; a multiple of 8 */
#define COLLECTIVE_SLOTS 8               /* pieces that are under way to one member */
#define COLLECTIVE_SLOT_SIZE (COLLECTIVE_HEAD_SIZE + COLLECTIVE_PIECE)
#define COLLECTIVE_INBOX_SIZE (COLLECTIVE_SLOTS * COLLECTIVE_SLOT_SIZE)

void pwi_collective_head_encode(const struct collective_head *head, unsigned char bytes[COLLECTIVE_HEAD_SIZE]);

/* Accepts any bytes. PAWL_CORRUPT: no member sends this. */
PAWL_MUST_USE pawl_status pwi_collective_head_decode(const unsigned char bytes[COLLECTIVE_HEAD_SIZE],
                                                     struct collective_head *head_out);

/* Every message but GO has the same fields: u64 number, u32 round, u64 position, u32 status, u64 culprit, u64 other.
 * Fields that a message does not need are 0. */
struct collective_message {
  struct collective_epoch epoch; /* READY: the last one; ABORT, BYE */
  uint64_t position;             /* INBOX, TAKEN; BYE: completed operations; READY: the present number of the group */
  pawl_status status;            /* ABORT: why */
  uint64_t culprit, other;       /* ABORT: sender ids; 0: none */
};

#define COLLECTIVE_MESSAGE_SIZE 40

void pwi_collective_message_encode(const struct collective_message *message,
                                   unsigned char bytes[COLLECTIVE_MESSAGE_SIZE]);

/* u64 number, u32 round, u32 count, u64 ids, ascending, u64 lives. */
struct collective_go {
  struct collective_epoch epoch;
  uint32_t count;
  const unsigned char *ids, *lives; /* as bytes; borrowed from the message */
};

uint64_t pwi_collective_go_id(const struct collective_go *go, uint32_t index);
uint64_t pwi_collective_go_life(const struct collective_go *go, uint32_t index);

/* `members`: `count` ids, then their lives. */
void pwi_collective_go_encode(struct collective_epoch epoch, const uint64_t *members, uint32_t count,
                              struct pwi_writer *writer);

/* Both accept any bytes. PAWL_TRUNCATED, PAWL_CORRUPT. The status of an ABORT is one that a collective may return; the
 * ids of a GO ascend, and there is at least one; no life is 0. */
PAWL_MUST_USE pawl_status pwi_collective_message_decode(uint32_t kind, const void *bytes, size_t size,
                                                        struct collective_message *message_out);
PAWL_MUST_USE pawl_status pwi_collective_go_decode(const void *bytes, size_t size, struct collective_go *go_out);

#endif
