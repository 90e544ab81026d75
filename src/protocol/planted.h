/* Bugs planted on purpose, so that a test can show that it would find them.
 *
 * Each bug is a plausible mistake. It takes one line, at the place of the correct code:
 *
 *   if (pwi_is_planted(PWI_PLANTED_SKIP_ORDER)) …
 *
 * In a library built without PAWL_PLANTED, as every installed library is, pwi_is_planted is the constant
 * `false`, and the compiler removes the bugs. Tests link pawl_planted, which is built with PAWL_PLANTED.
 * `pawl-planted` in the build folder is the command linked with it, for tests with real processes.
 *
 * The active bug belongs to the thread (pwi_planted_set), so that simulations with different bugs can run
 * side by side. A thread that has not called pwi_planted_set uses the bug named by the environment variable
 * PAWL_PLANTED, if any.
 */
#ifndef PWI_PROTOCOL_PLANTED_H
#define PWI_PROTOCOL_PLANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, word, replicas needed for the bug to matter, whether the code contains it, description) */
#define PWI_PLANTED_MAP(X)                                                                                             \
  X(EARLY_ACK, "early_ack", 1, true, "a head answers a push before its replicas have it")                              \
  X(DUPLICATE_ACK, "duplicate_ack", 1, true, "a head answers a duplicate before the tail has the push")                \
  X(FORGET_CLOCKS, "forget_clocks", 1, true, "a member is filled without clocks")                                      \
  X(PROMOTE_FILLING, "promote_filling", 1, true, "the manager promotes a member that is still filling")                \
  X(ONE_PROCESS, "one_process", 1, true, "two members of a chain are shards of one process")                           \
  X(ACCEPT_OLD_EPOCH, "accept_old_epoch", 1, true, "a member accepts chain messages of an old epoch")                  \
  X(DROP_RETIRED, "drop_retired", 0, true, "the clocks of a retired sender are dropped at once")                       \
  X(REFILTER, "refilter", 0, true, "a lossy filter runs again when a push is resent")                                  \
  X(EARLY_PULL, "early_pull", 1, true, "a head answers a pull before its replicas have everything that it shows")      \
  X(BLIND_READ, "blind_read", 0, true, "pulls and scans do not wait for earlier pushes of their session")              \
  X(EARLY_TICK, "early_tick", 0, true, "a client ticks before its pushes are answered")                                \
  X(HASTY_BARRIER, "hasty_barrier", 0, true, "a barrier does not wait for members without a tick")                     \
  X(SKIP_ORDER, "skip_order", 0, true, "a push whose predecessor is missing is applied")                               \
  X(LOST_REFUSAL, "lost_refusal", 1, true, "refusals are not sent down the chain")                                     \
  X(ACK_BEFORE_SAFE, "ack_before_safe", 0, true, "the manager announces a decision before its journal has it")         \
  X(HELD_FOREVER, "held_forever", 0, true, "a server never ends a hold")                                               \
  X(REDUCE_EARLY_ACK, "reduce_early_ack", 0, false, "a reduce acknowledges an input before it has used it")            \
  X(REDUCE_NOTIFY_FIRST, "reduce_notify_first", 0, false, "a reduce notifies before it puts the tensors")              \
  X(REDUCE_OLD_SLOT, "reduce_old_slot", 0, false, "a reduce uses a slot again after the graph was regenerated")        \
  X(COLLECTIVE_OLD_PIECE, "collective_old_piece", 0, false, "a collective uses pieces of a former epoch")              \
  X(COLLECTIVE_NO_RESEND, "collective_no_resend", 0, false, "a collective forgets pieces that a broken link has lost") \
  X(ITEM_CLOCK_FIRST, "item_clock_first", 0, false, "the clock of an item is written before its value")                \
  X(ITEM_BARE_CHECKSUM, "item_bare_checksum", 0, false, "the checksum of an item does not contain its clock")          \
  X(ITEM_LATE_PUT, "item_late_put", 0, false, "a late put of a dead producer reaches consumers")                       \
  X(FACTOR_KEPT_BY_SOME, "factor_kept_by_some", 0, false, "the last commit of a lost member is kept by some only")     \
  X(FACTOR_TWICE, "factor_twice", 0, false, "a commit that was sent again is applied again")                           \
  X(FACTOR_EARLY_PROX, "factor_early_prox", 0, false, "the proximal operator is applied before all pairs")             \
  X(RELAY_ONE_KNOWN, "relay_one_known", 0, false, "an aggregate is applied though the push of a contributor was")      \
  X(RELAY_RESENT, "relay_resent", 0, false, "an aggregate is added to pushes that its children sent themselves")       \
  X(RELAY_EARLY_ACK, "relay_early_ack", 0, false, "a relay answers its children before the server has answered")       \
  X(RELAY_OLD_CACHE, "relay_old_cache", 0, false, "a relay answers a pull with rows older than the caller's own push")

enum pwi_planted {
  PWI_PLANTED_NONE,
#define PWI_PLANTED_ENUM(name, word, replicas, placed, text) PWI_PLANTED_##name,
  PWI_PLANTED_MAP(PWI_PLANTED_ENUM)
#undef PWI_PLANTED_ENUM
      PWI_PLANTED_COUNT
};

struct pwi_planted_about {
  const char *word;
  uint32_t replicas; /* with fewer replicas the bug has no effect */
  bool is_placed;    /* the code contains this bug */
  const char *text;
};

/* Describes a bug; PWI_PLANTED_NONE has empty strings. */
const struct pwi_planted_about *pwi_planted_about(enum pwi_planted bug);

/* The bug with this word; PWI_PLANTED_NONE if there is none. */
enum pwi_planted pwi_planted_named(const char *word);

/* Returns true in a library with planted bugs. */
bool pwi_planted_can(void);

/* Activates one bug in this thread and deactivates all others. Has no effect without PAWL_PLANTED. */
void pwi_planted_set(enum pwi_planted bug);

#ifdef PAWL_PLANTED
bool pwi_is_planted(enum pwi_planted bug);
#else
static inline bool pwi_is_planted(enum pwi_planted bug) {
  (void)bug;
  return false;
}
#endif

/* The changed values that a lossy filter would return in a second run. Handles up to 2 KB, in memory of the
 * thread; longer values are returned unchanged. */
const void *pwi_planted_refilter(const void *values, size_t size);

#endif
