/* Bugs planted on purpose, so that a test can show that it would find them.
 *
 * Each is a plausible mistake, made by one line where the right thing is done:
 *
 *   if (pwi_is_planted(PWI_PLANTED_SKIP_ORDER)) …
 *
 * In a library that is built without PAWL_PLANTED, and that is every library that is installed, pwi_is_planted is the
 * constant `false`, and nothing of it is left. Tests link pawl_planted, where this room is built once more with
 * PAWL_PLANTED; `pawl-planted` in the build folder is the command made of it, for tests with real processes.
 *
 * Which bug is there is a matter of the thread (pwi_planted_set), so that simulations with different bugs can run side by
 * side. A thread that was not told takes the one that the environment variable PAWL_PLANTED names, if any.
 */
#ifndef PWI_PROTOCOL_PLANTED_H
#define PWI_PROTOCOL_PLANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, word, replicas that it takes to matter, whether it has its place in the code, what is wrong) */
#define PWI_PLANTED_MAP(X)                                                                                             \
  X(EARLY_ACK, "early_ack", 1, true, "a head answers a push, and passes it on later")                                  \
  X(DUPLICATE_ACK, "duplicate_ack", 1, true, "a head answers a duplicate before the tail has what it repeats")         \
  X(FORGET_CLOCKS, "forget_clocks", 1, true, "clocks stay behind when a member is filled")                             \
  X(PROMOTE_FILLING, "promote_filling", 1, true, "the manager promotes a member that is still filling")                \
  X(ONE_PROCESS, "one_process", 1, true, "two members of a chain are shards of one process")                           \
  X(ACCEPT_OLD_EPOCH, "accept_old_epoch", 1, true, "a member takes chain messages of an old epoch")                    \
  X(DROP_RETIRED, "drop_retired", 0, true, "the clocks of a retired sender are dropped at once")                       \
  X(REFILTER, "refilter", 0, true, "a lossy step is run again when a push is sent again")                              \
  X(SKIP_ORDER, "skip_order", 0, true, "a push whose predecessor is missing is applied all the same")                  \
  X(LOST_REFUSAL, "lost_refusal", 1, true, "refusals are not passed on to members of a chain")                         \
  X(ACK_BEFORE_SAFE, "ack_before_safe", 0, true, "the manager announces a decision before its journal has it")

enum pwi_planted {
  PWI_PLANTED_NONE,
#define PWI_PLANTED_ENUM(name, word, replicas, placed, text) PWI_PLANTED_##name,
  PWI_PLANTED_MAP(PWI_PLANTED_ENUM)
#undef PWI_PLANTED_ENUM
      PWI_PLANTED_COUNT
};

struct pwi_planted_about {
  const char *word;
  uint32_t replicas; /* fewer, and it does no harm */
  bool is_placed;    /* somebody asks for it */
  const char *text;
};

/* Of a bug; for PWI_PLANTED_NONE a struct of empty words. */
const struct pwi_planted_about *pwi_planted_about(enum pwi_planted bug);

/* The bug of that word; PWI_PLANTED_NONE if there is none. */
enum pwi_planted pwi_planted_named(const char *word);

/* True in a library that has them. */
bool pwi_planted_can(void);

/* From now on this thread has that bug and no other. Without PAWL_PLANTED it does nothing. */
void pwi_planted_set(enum pwi_planted bug);

#ifdef PAWL_PLANTED
bool pwi_is_planted(enum pwi_planted bug);
#else
static inline bool pwi_is_planted(enum pwi_planted bug) {
  (void)bug;
  return false;
}
#endif

/* What a lossy filter that is run again makes of values: something else. Up to 2 KB of them, in memory of the thread;
 * more than that are left as they are. */
const void *pwi_planted_refilter(const void *values, size_t size);

#endif
