/* Messages between engines of factors.
 *
 * A *life* is the number of one engine: a member that closes its factors and opens them again has another one. Members
 * agree on *epochs*: a list of origins, which are lives that commit, and lives that are gone but whose last commits some
 * members may still lack. The caller of an epoch is the member with the lowest sender id.
 *
 *   STATUS    to a linked peer: the epoch that this member is in
 *   CALL      caller to all: a new epoch is to be agreed on. Until it begins nobody commits or applies anything
 *   LATER     to the caller: call an epoch that is later than this one
 *   STATE     to the caller: what this member has received and applied
 *   GO        from the caller: the list of the epoch
 *   HAVE      to all: what this member has received and applied, u64 and u64 for each line of the list of GO
 *   SHOWN     to a peer on the same host: a commit of the sender lies in a region of it
 *   PIECE     to any other: a part of a commit
 *   TAKEN     to the sender of pieces: how many of them were taken over this link
 *   ATTACHED  to a peer that has shared regions: whether this member can read them
 *   WANT      to a member that has commits which this one lacks, of one origin or of all
 *   LACK      the answer of one that does not have the first of them
 *   ASK       to the donor: this member needs its matrix
 *   MODEL     to the member that asked: what the matrix contains; bytes as in HAVE, but instead of what was received the
 *             number behind which all applied commits are in the log of the donor
 *   VALUES    a part of the matrix
 *   LEAVING   to all: the sender is about to close, and wants to hear that its commits have arrived
 *   BYE       to all: it closes
 *   BYE_OK    the answer
 *
 * Threads: pure. */
#ifndef PWI_PEER_FACTOR_MESSAGES_H
#define PWI_PEER_FACTOR_MESSAGES_H

#include "base/cursor.h"
#include "peer/factor/pairs.h"

/* The numbers are part of the wire format. */
enum factor_say {
  FACTOR_STATUS = 1,
  FACTOR_CALL = 2,
  FACTOR_LATER = 3,
  FACTOR_STATE = 4,
  FACTOR_GO = 5,
  FACTOR_HAVE = 6,
  FACTOR_SHOWN = 7,
  FACTOR_PIECE = 8,
  FACTOR_TAKEN = 9,
  FACTOR_ATTACHED = 10,
  FACTOR_WANT = 11,
  FACTOR_LACK = 12,
  FACTOR_ASK = 13,
  FACTOR_MODEL = 14,
  FACTOR_VALUES = 15,
  FACTOR_LEAVING = 16,
  FACTOR_BYE = 17,
  FACTOR_BYE_OK = 18,
};

/* Epochs are ordered by number, then round, then caller. */
struct factor_epoch {
  uint64_t number; /* of the group; 0: no epoch */
  uint32_t round;
  uint64_t caller;
};

static inline int pwi_factor_compare(struct factor_epoch a, struct factor_epoch b) {
  if (a.number != b.number) return a.number < b.number ? -1 : 1;
  if (a.round != b.round) return a.round < b.round ? -1 : 1;
  return a.caller == b.caller ? 0 : a.caller < b.caller ? -1 : 1;
}

/* How complete the matrix of a member is. */
enum factor_need { FACTOR_COMPLETE = 0, FACTOR_INITIAL = 1, FACTOR_PARTIAL = 2 };

#define FACTOR_NONE UINT64_MAX /* received: this member does not hear the origin; final: it lives */

/* One origin of a list. */
struct factor_line {
  uint64_t id, life;
  uint64_t base;              /* it takes part from commit base + 1 on */
  uint64_t clock;             /* its commits when the epoch was agreed on */
  uint64_t final;             /* the number of its last commit; FACTOR_NONE: it lives */
  uint64_t received, applied; /* by the sender of STATE */
  uint32_t part;              /* of the rows that it has */
};

#define FACTOR_LINE_SIZE 60
#define FACTOR_HAS_SIZE 16 /* in HAVE and MODEL */

/* Every message has the same fields; those that a kind does not need are 0. */
struct factor_message {
  struct factor_epoch epoch, own; /* `own`: that the sender is in. STATE, STATUS */
  uint64_t life;                  /* PIECE, WANT, LACK: of the origin. WANT: 0 means all. GO: of the donor; 0: none */
  uint64_t number; /* PIECE, SHOWN: of the commit. STATE, LEAVING: the clock. TAKEN: pieces. WANT, LACK: received */
  uint64_t size;   /* PIECE, SHOWN, MODEL: all bytes */
  uint64_t offset; /* PIECE, VALUES: of the bytes. SHOWN: the tag of the region */
  uint64_t hash;   /* PIECE, SHOWN: of the commit. STATE: of the matrix */
  uint32_t flags;  /* HAVE: 1 asks for that of the receiver. ATTACHED: 1 yes, 2 no. STATE: enum factor_need */
  uint32_t lines;  /* STATE, GO */
  const unsigned char *list, *bytes; /* borrowed from the message */
  size_t bytes_size;                 /* PIECE, VALUES, HAVE, MODEL */
};

#define FACTOR_MESSAGE_SIZE 88 /* without list and bytes */

/* Appends to the writer. `lines` may be NULL if there are none. */
void pwi_factor_message_encode(const struct factor_message *message, const struct factor_line *lines,
                               struct pwi_writer *writer);

/* Accepts any bytes. PAWL_TRUNCATED, PAWL_CORRUPT. Lives of a list are not 0 and differ; lines ascend by id and life. */
PAWL_MUST_USE pawl_status pwi_factor_message_decode(uint32_t kind, const void *bytes, size_t size,
                                                    struct factor_message *message_out);

struct factor_line pwi_factor_line(const struct factor_message *message, uint32_t index);

#endif
