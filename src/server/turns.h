/* Who is held: the policy of priorities, without a net (docs/priorities.md).
 *
 * Clients of one priority form a level. A level is under way while a message of it arrives or an answer to it
 * is being sent, and for `linger_ns` after that. All levels below one that is under way are held. Levels and
 * not links are held, so clients of equal priority share as they do without priorities.
 *
 * No level starves: one that was held for `wait_ns` without a break has a turn of `turn_ns`, in which it is
 * not held.
 *
 * A struct of zeros with the times set is a policy without clients. Nothing is allocated. Times are those of
 * the caller's clock.
 */
#ifndef PWI_SERVER_TURNS_H
#define PWI_SERVER_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/hello.h"

struct pwi_turns_level {
  size_t links;
  size_t open;  /* messages that are arriving */
  int64_t last; /* when it was last under way */
  bool is_held;
  int64_t held_at; /* when the hold began */
  int64_t turn_end;
};

struct pwi_turns {
  int64_t linger_ns, wait_ns, turn_ns;
  struct pwi_turns_level levels[PWI_PRIORITY_HIGHEST + 1]; /* by priority */
  unsigned in_use;                                         /* levels with links */
};

/* With the usual times. */
void pwi_turns_init(struct pwi_turns *turns);

/* A client comes or goes. */
void pwi_turns_enter(struct pwi_turns *turns, unsigned priority);
void pwi_turns_leave(struct pwi_turns *turns, unsigned priority);

/* A message of the level begins to arrive, or has ended. */
void pwi_turns_begin(struct pwi_turns *turns, unsigned priority, int64_t now);
void pwi_turns_end(struct pwi_turns *turns, unsigned priority, int64_t now);

/* The level is under way at this moment. */
void pwi_turns_touch(struct pwi_turns *turns, unsigned priority, int64_t now);

/* Decides anew. Returns the levels for which `is_held` has changed: bit 1 << priority. */
unsigned pwi_turns_update(struct pwi_turns *turns, int64_t now);

/* When to decide anew if nothing happens before; INT64_MAX: never. */
int64_t pwi_turns_next(const struct pwi_turns *turns, int64_t now);

#endif
