/* Range vector clocks (OSDI'14 4.1): the progress of each sender on each key, stored by range.
 *
 * A clock covers the keys that it *holds*: the part of a vector that a shard has. For each sender and each of
 * these keys it stores a time, a number that only increases. The caller defines its meaning: the task number
 * of the last push of the sender, its tick, or, in a client's clock of sent pushes, the number that it sent
 * last. Every sender starts at time 0 everywhere, so senders need not be announced.
 *
 * Senders push to whole arcs, so the time of a sender is mostly the same for many keys. It is stored as a few
 * segments. Normally a sender has one segment: 32 bytes in a hash table that is one third to three quarters
 * full, and setting the time for all keys is one lookup and one store. Setting a part splits segments and
 * adds at most two. Neighbours with equal times merge at once, so that equal clocks have the same
 * representation.
 *
 * A range argument must be non-empty, and the clock must hold all of it; otherwise the call returns
 * PAWL_INVALID and changes nothing. PAWL_NO_MEMORY leaves every time unchanged too.
 *
 * Threads: a clock belongs to one thread at a time.
 */
#ifndef PWI_STORE_CLOCK_H
#define PWI_STORE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "base/rangeset.h"

/* A sender. The manager assigns ids and never reuses them. */
struct pwi_sender {
  uint64_t id;
};

struct pwi_clock_line; /* the segments of one sender */
struct pwi_clock_step;

struct pwi_clock {
  struct pwi_rangeset held; /* the keys of the clock; read-only for callers. The other fields are private */
  struct pwi_clock_line *lines;
  size_t room;  /* slots in `lines` */
  size_t count; /* number of lines in use */
  unsigned bits;
};

/* Initialises a clock for the keys of these ranges, which may touch or overlap; for no keys if `count` is
 * 0. */
PAWL_MUST_USE pawl_status pwi_clock_init(struct pwi_clock *clock, const struct pawl_range *ranges, size_t count);

/* Frees the memory of the clock and leaves an empty, usable clock. A struct of zeros is an empty clock
 * too. */
void pwi_clock_fini(struct pwi_clock *clock);

/* --- setting -------------------------------------------------------------------------------------------- */

/* Raises the time of the sender on `range` to `time`. Times never decrease: keys with an equal or later time
 * keep it. Allocates memory only for a new sender, or if its segments may exceed the allocated room, which
 * doubles and is kept. Never allocates after pwi_clock_reserve. */
PAWL_MUST_USE pawl_status pwi_clock_set(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range,
                                        uint64_t time);

/* Ensures that the next pwi_clock_set of the sender on `range` cannot fail. A caller changes values between
 * the two calls, so that both changes happen or neither. The reservation lasts until the next set or the
 * retirement of the sender, or until the keys of the clock change; reservations for other senders do not
 * affect it. Changes no time. */
PAWL_MUST_USE pawl_status pwi_clock_reserve(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range);

/* --- verdicts on pushes --------------------------------------------------------------------------------- */

/* The claim of a push: its own number, and the number of the previous push of this sender to this range (0
 * for the first). The previous number must be the same for the whole range; if the sender's clock of sent
 * pushes has several pieces there, it sends one claim per piece. */
struct pwi_clock_claim {
  struct pwi_sender sender;
  struct pawl_range range;
  uint64_t task;
  uint64_t prior;
  bool may_be_anew; /* With `prior` 0, the sender may have pushed to the range before, under lower numbers that it
                       does not name: every time below `task` counts as `prior`. */
};

/* The verdict on a claim. For each key it depends on the time v of the clock:
 *
 *   v >= task           the key has the push already: skip it
 *   v == prior          the push is due: apply it
 *   v < prior           an earlier push is missing
 *   prior < v < task    impossible, see BROKEN; with `may_be_anew` and `prior` 0 the push is due
 *
 * A push is applied to all keys on which it is due, or to none: */
enum pwi_clock_verdict {
  PWI_CLAIM_DUE,  /* apply the push to the ranges of pwi_clock_next_due, then set the clock of the whole range
                     to `task` */
  PWI_CLAIM_DONE, /* a duplicate: every key has the push already */
  PWI_CLAIM_GAP,  /* an earlier push is missing: apply nothing; the sender resends all pushes after `found` */

  /* Some key has a push between `prior` and `task`, although the sender claims that there is none. A correct
   * sender cannot cause this, whatever messages are lost, duplicated, delayed or cut differently: it names
   * the last number that it sent to the key, and a resent push keeps its number, its predecessor and its
   * keys. So two processes use one id, or a claim is wider than the range for which its predecessor is true,
   * or clocks arrived without their data. Applying the push might count it twice or omit one, and a resend
   * would not help: apply nothing, and report a violation of the protocol. BROKEN takes precedence over a
   * gap, because a gap would cause a resend. */
  PWI_CLAIM_BROKEN,
};

struct pwi_clock_finding {
  enum pwi_clock_verdict verdict;
  bool whole;     /* the push is due on every key of the range, as the aggregate of several senders
                     requires */
  uint64_t found; /* the lowest time in the range; for BROKEN, the first impossible time */
};

/* PAWL_INVALID also if `prior` is not below `task`. Never allocates. */
PAWL_MUST_USE pawl_status pwi_clock_check(const struct pwi_clock *clock, const struct pwi_clock_claim *claim,
                                          struct pwi_clock_finding *finding_out);

/* --- reading: nothing here allocates -------------------------------------------------------------------- */

/* An iterator over the segments of one sender, in key order. Its fields are private. Any change to the clock
 * invalidates it. */
struct pwi_clock_pieces {
  const struct pwi_clock_step *steps;
  size_t left; /* remaining steps */
  struct pawl_range range;
};

struct pwi_clock_piece {
  struct pawl_range range;
  uint64_t time;
};

/* Iterates over the pieces of `range`, which tile the range; neighbouring pieces have different times. An
 * unknown sender has one piece with time 0. To see all of a sender, iterate over each range in
 * `clock->held`. */
PAWL_MUST_USE pawl_status pwi_clock_walk(const struct pwi_clock *clock, struct pwi_sender sender,
                                         struct pawl_range range, struct pwi_clock_pieces *pieces_out);

/* Returns the next piece; false at the end. */
bool pwi_clock_next(struct pwi_clock_pieces *pieces, struct pwi_clock_piece *piece_out);

/* Returns the range of the next piece whose time is below `task`; false at the end. After the verdict DUE the
 * push is applied to these keys. */
bool pwi_clock_next_due(struct pwi_clock_pieces *pieces, uint64_t task, struct pawl_range *range_out);

/* The lowest and the highest time of a sender in `range`. */
PAWL_MUST_USE pawl_status pwi_clock_min(const struct pwi_clock *clock, struct pwi_sender sender,
                                        struct pawl_range range, uint64_t *time_out);
PAWL_MUST_USE pawl_status pwi_clock_max(const struct pwi_clock *clock, struct pwi_sender sender,
                                        struct pawl_range range, uint64_t *time_out);

/* The lowest time of any of these senders in `range`, which limits what a reader may see. UINT64_MAX if there
 * are no senders: no sender has to be waited for. */
PAWL_MUST_USE pawl_status pwi_clock_min_of(const struct pwi_clock *clock, const struct pwi_sender *senders,
                                           size_t count, struct pawl_range range, uint64_t *time_out);

/* The number of segments of the sender, which determines the cost of storing and scanning it. */
size_t pwi_clock_piece_count(const struct pwi_clock *clock, struct pwi_sender sender);

/* True if the sender's time is not 0 everywhere. */
bool pwi_clock_has(const struct pwi_clock *clock, struct pwi_sender sender);

/* Iterates over the senders of the clock: start with `*at` = 0; false after the last. The order depends only
 * on the ids. Any change to the clock ends the iteration. */
bool pwi_clock_next_sender(const struct pwi_clock *clock, size_t *at, struct pwi_sender *sender_out);

/* True if both hold the same keys, and every sender has the same time on each. */
bool pwi_clock_equal(const struct pwi_clock *a, const struct pwi_clock *b);

/* Removes a sender: its time is 0 everywhere from now on, as if it had never pushed. A late push of the
 * sender would count as new, so the caller must refuse the sender first. */
void pwi_clock_retire(struct pwi_clock *clock, struct pwi_sender sender);

/* --- moving: clocks go where their data goes ------------------------------------------------------------ */

/* Creates a separate clock that holds `range`, with the times of `clock`. The struct must not contain a clock
 * before.
 */
PAWL_MUST_USE pawl_status pwi_clock_copy(const struct pwi_clock *clock, struct pawl_range range,
                                         struct pwi_clock *copy_out);

/* Removes `range` from the clock, and senders whose time is 0 on all remaining keys. */
PAWL_MUST_USE pawl_status pwi_clock_drop(struct pwi_clock *clock, struct pawl_range range);

/* Moves the times of `range` into a separate clock: copy and drop in one step. */
PAWL_MUST_USE pawl_status pwi_clock_take(struct pwi_clock *clock, struct pawl_range range, struct pwi_clock *taken_out);

/* Moves all keys of `other`, with their times, into `clock`; `other` is then empty. The two need not be
 * neighbours. PAWL_INVALID if both hold a common key: its value cannot have two histories. */
PAWL_MUST_USE pawl_status pwi_clock_absorb(struct pwi_clock *clock, struct pwi_clock *other);

/* --- encoding ------------------------------------------------------------------------------------------- */

/* The encoded form, for migration and checkpoints, little-endian:
 *
 *   format    u32  PWI_CLOCK_FORMAT
 *   ranges    u32  how many
 *   senders   u64  how many
 *   ranges         begin u64, end u64 each; ascending, none empty, no two touch
 *   senders        id u64, steps u32, time u64, then steps - 1 times begin u64 and time u64; ascending by
 *                  pwi_mix64(id)
 *
 * The first time of a sender is valid from the first held key on, and each further time from its begin on.
 * Begins are held keys after the first and ascend, neighbouring times differ, and no sender has time 0
 * everywhere. A clock has exactly one encoding, and the decoder accepts no other: equal clocks are equal
 * bytes, and replicas can be compared by checksum. */
#define PWI_CLOCK_FORMAT 1

/* The exact size of the encoded clock. */
size_t pwi_clock_encoded_size(const struct pwi_clock *clock);

/* PAWL_TOO_LARGE if it takes more than `capacity` bytes. Never allocates. */
PAWL_MUST_USE pawl_status pwi_clock_encode(const struct pwi_clock *clock, void *buffer, size_t capacity,
                                           size_t *size_out);

/* Safe on any bytes; memory and time are proportional to their number. PAWL_TRUNCATED if they end too early,
 * PAWL_UNSUPPORTED for another format, PAWL_CORRUPT if they are not exactly one clock. */
PAWL_MUST_USE pawl_status pwi_clock_decode(const void *data, size_t size, struct pwi_clock *clock_out);

#endif
