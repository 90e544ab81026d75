/* Range vector clocks (OSDI'14 4.1): how far each sender has got on each key, kept by range.
 *
 * A clock is kept for the keys it *holds*: the slice of a vector that a shard has. For each sender and each of these
 * keys it knows a time, a number that only rises: the task number of the sender's last push, or its tick, or, in a
 * client's clock of what it has sent, the number it sent last. What the numbers mean is the caller's business. Every
 * sender there ever was or will be starts at time 0 everywhere, so nobody has to be announced.
 *
 * Senders push to whole arcs, so a sender's time is mostly the same for many keys. It is kept as a few segments, and a
 * clock of one segment per sender is the normal case: 32 bytes each in a hash table that is a third to three quarters
 * full, and setting the whole slice is one lookup and one store. Setting a part splits, and makes at most two segments
 * more; neighbours with equal times merge again at once. So equal clocks have equal form, however they came about.
 *
 * A range that is handed to a call must hold at least one key and lie wholly in what the clock holds; else the call
 * returns PAWL_INVALID, and nothing has happened. PAWL_NO_MEMORY likewise leaves every time as it was.
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

/* Who pushes. The manager gives ids out and uses none twice. */
struct pwi_sender {
  uint64_t id;
};

struct pwi_clock_line; /* the segments of one sender */
struct pwi_clock_step;

struct pwi_clock {
  struct pwi_rangeset held; /* the keys the clock is kept for; read-only for callers, the rest is private */
  struct pwi_clock_line *lines;
  size_t room;  /* slots in `lines` */
  size_t count; /* of them in use */
  unsigned bits;
};

/* A clock for the keys of these ranges, which may touch or overlap; for none if `count` is 0. */
PAWL_MUST_USE pawl_status pwi_clock_init(struct pwi_clock *clock, const struct pawl_range *ranges, size_t count);

/* Frees what the clock holds and leaves it usable, for no keys. A struct of zeros is such a clock as well. */
void pwi_clock_fini(struct pwi_clock *clock);

/* --- setting ---------------------------------------------------------------------------------------------------- */

/* Sets the sender's time on `range`. A clock never runs back: keys that are there already, or further, keep their time,
 * and only those behind it are set. Allocates only for a new sender, or one whose segments come within two of the most
 * there was room for; room doubles and is kept. Never after pwi_clock_reserve. */
PAWL_MUST_USE pawl_status pwi_clock_set(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range,
                                        uint64_t time);

/* Makes sure that the sender's next pwi_clock_set on `range` does not fail, so that values can be changed between the
 * two and both or neither take place. Holds until the sender's next set or retirement, and until the clock holds other
 * keys; making room for other senders takes nothing away. Changes no time. */
PAWL_MUST_USE pawl_status pwi_clock_reserve(struct pwi_clock *clock, struct pwi_sender sender, struct pawl_range range);

/* --- is it that push's turn? ------------------------------------------------------------------------------------ */

/* What a push says of itself: its own number, and the number of the push that this sender sent before it to this range
 * (0 for the first). One number has to be true of the whole range: where the sender's own clock of what it has sent is
 * in pieces, it claims piece by piece. */
struct pwi_clock_claim {
  struct pwi_sender sender;
  struct pawl_range range;
  uint64_t task;
  uint64_t prior;
};

/* Key by key, from the time v that the clock has there:
 *
 *   v >= task           this key has had the push: skip it
 *   v == prior          its turn: apply
 *   v < prior           an earlier push has not come yet
 *   prior < v < task    cannot be, see BROKEN
 *
 * A push is applied to all the keys whose turn it is, or to none: */
enum pwi_clock_verdict {
  PWI_CLAIM_DUE,  /* apply to what pwi_clock_next_due gives, then set the clock of the whole range to `task` */
  PWI_CLAIM_DONE, /* a duplicate: every key has had it */
  PWI_CLAIM_GAP,  /* some key is behind: apply nothing, and let the sender resend what follows `found` */

  /* Some key has had a push between the two, although the sender says that there is none. An honest sender cannot get
   * here, whatever is lost, doubled, delayed or re-cut: it names the last number it sent to the key, and a resent push
   * keeps its number, its predecessor and its keys. So two processes use one id, or a range was claimed that is wider
   * than its predecessor is true of, or clocks came without their data. To apply might count a push twice or leave one
   * out, and a resend would not help: apply nothing, and report a violation of the protocol. Found together with a gap
   * it is this that counts, since a gap invites a resend. */
  PWI_CLAIM_BROKEN,
};

struct pwi_clock_finding {
  enum pwi_clock_verdict verdict;
  bool whole;     /* DUE on every key of the range, none skipped: what a sum of several senders' pushes needs */
  uint64_t found; /* the lowest time in the range; for BROKEN, the first that cannot be */
};

/* PAWL_INVALID also if `prior` is not below `task`. Never allocates. */
PAWL_MUST_USE pawl_status pwi_clock_check(const struct pwi_clock *clock, const struct pwi_clock_claim *claim,
                                          struct pwi_clock_finding *finding_out);

/* --- reading: nothing here allocates ---------------------------------------------------------------------------- */

/* A walk over the segments of one sender, in key order. Fields are private. Any change to the clock ends the walk. */
struct pwi_clock_pieces {
  const struct pwi_clock_step *steps;
  size_t left; /* steps from there on */
  struct pawl_range range;
};

struct pwi_clock_piece {
  struct pawl_range range;
  uint64_t time;
};

/* The pieces of `range`: together they are the range, and neighbours differ in time. An unknown sender has one piece,
 * of time 0. To see all of a sender, walk each of the ranges in `clock->held`. */
PAWL_MUST_USE pawl_status pwi_clock_walk(const struct pwi_clock *clock, struct pwi_sender sender,
                                         struct pawl_range range, struct pwi_clock_pieces *pieces_out);

/* The next piece; false if there is none left. */
bool pwi_clock_next(struct pwi_clock_pieces *pieces, struct pwi_clock_piece *piece_out);

/* The range of the next piece that is behind `task`; false if there is none left. After the verdict DUE these are the
 * keys to apply the push to. */
bool pwi_clock_next_due(struct pwi_clock_pieces *pieces, uint64_t task, struct pawl_range *range_out);

/* The lowest and the highest time of a sender in `range`. */
PAWL_MUST_USE pawl_status pwi_clock_min(const struct pwi_clock *clock, struct pwi_sender sender,
                                        struct pawl_range range, uint64_t *time_out);
PAWL_MUST_USE pawl_status pwi_clock_max(const struct pwi_clock *clock, struct pwi_sender sender,
                                        struct pawl_range range, uint64_t *time_out);

/* The lowest time of any of these senders in `range`, which bounds what a reader may be shown. UINT64_MAX if there are
 * no senders: then nobody has to be waited for. */
PAWL_MUST_USE pawl_status pwi_clock_min_of(const struct pwi_clock *clock, const struct pwi_sender *senders,
                                           size_t count, struct pawl_range range, uint64_t *time_out);

/* In how many pieces the sender's time is kept: what it costs to keep and to walk over. */
size_t pwi_clock_piece_count(const struct pwi_clock *clock, struct pwi_sender sender);

/* True if the sender's time is not 0 everywhere. */
bool pwi_clock_has(const struct pwi_clock *clock, struct pwi_sender sender);

/* The senders that the clock has, one at a time: begin with `*at` 0; false after the last. Their order is scrambled but
 * depends on the ids alone. Any change to the clock ends the walk. */
bool pwi_clock_next_sender(const struct pwi_clock *clock, size_t *at, struct pwi_sender *sender_out);

/* True if both hold the same keys, and every sender has the same time on each. */
bool pwi_clock_equal(const struct pwi_clock *a, const struct pwi_clock *b);

/* Forgets a sender: from now on it reads 0 everywhere, as if it had never pushed. A late push of its own would be taken
 * for new, so the caller must refuse the sender first. */
void pwi_clock_retire(struct pwi_clock *clock, struct pwi_sender sender);

/* --- moving: clocks go where their data goes -------------------------------------------------------------------- */

/* A clock of its own that holds `range` and has the times of `clock` there. The struct must not hold anything before.
 */
PAWL_MUST_USE pawl_status pwi_clock_copy(const struct pwi_clock *clock, struct pawl_range range,
                                         struct pwi_clock *copy_out);

/* The clock no longer holds `range`, and forgets senders that are at 0 in all that is left. */
PAWL_MUST_USE pawl_status pwi_clock_drop(struct pwi_clock *clock, struct pawl_range range);

/* Copy and drop in one: the times of `range` move into a clock of their own. */
PAWL_MUST_USE pawl_status pwi_clock_take(struct pwi_clock *clock, struct pawl_range range, struct pwi_clock *taken_out);

/* Everything that `other` holds moves into `clock`; `other` is left shard nothing. The two need not be neighbours.
 * PAWL_INVALID if any key is in both: two histories of one key cannot both be true of its value. */
PAWL_MUST_USE pawl_status pwi_clock_absorb(struct pwi_clock *clock, struct pwi_clock *other);

/* --- as bytes --------------------------------------------------------------------------------------------------- */

/* The form in migration and checkpoints, little-endian:
 *
 *   format    u32  PWI_CLOCK_FORMAT
 *   ranges    u32  how many
 *   senders   u64  how many
 *   ranges         begin u64, end u64 each; ascending, none empty, no two touch
 *   senders        id u64, steps u32, time u64, then steps - 1 times begin u64 and time u64; ascending by pwi_mix64(id)
 *
 * A sender has the first time from the first held key on, and each further one from its begin on. Begins are held keys
 * past the first and ascend, neighbouring times differ, and nobody is at 0 everywhere. A clock has exactly one such
 * form and no other is accepted: equal clocks are equal bytes, and replicas can be compared by checksum. */
#define PWI_CLOCK_FORMAT 1

/* The exact size of the encoded clock. */
size_t pwi_clock_encoded_size(const struct pwi_clock *clock);

/* PAWL_TOO_LARGE if it takes more than `capacity` bytes. Never allocates. */
PAWL_MUST_USE pawl_status pwi_clock_encode(const struct pwi_clock *clock, void *buffer, size_t capacity,
                                           size_t *size_out);

/* Safe on any bytes, and takes memory and time in proportion to them. PAWL_TRUNCATED if they end too early,
 * PAWL_UNSUPPORTED if they are of another format, PAWL_CORRUPT if they are no clock or if anything follows it. */
PAWL_MUST_USE pawl_status pwi_clock_decode(const void *data, size_t size, struct pwi_clock *clock_out);

#endif
