/* Consistency policies: when may an iteration start? (OSDI'14 3.4; design, section 8)
 *
 * An iteration of a worker is a number, from 1. It works on what the iterations before it have left, of this worker and of
 * the others, and a policy says how much of that may be missing:
 *
 *   sequential    nothing: every iteration before it is finished
 *   bounded(tau)  up to tau iterations of our own are under way besides it: iteration t starts when t - tau - 1 and all before
 *                 are finished. tau = 0 is sequential
 *   eventual      anything may be missing
 *   ssp(s)        others may be behind: iteration t starts when every member of the group has finished t - s - 1. s = 0 is
 *                 bulk synchronous
 *   a-bsp(n)      n iterations belong to one tick, within which nobody waits; a tick starts when every member has finished the
 *                 one before
 *   adaptive      bounded(tau), where tau moves between two bounds with what was measured (pwi_policy_learn)
 *   user          a function of the caller's
 *
 * A policy is a pure function of what is finished. It keeps no clock, and never forgets: once it lets an iteration start, more
 * that is finished does not change its mind. So whoever asks again after each news misses nothing.
 *
 * Threads: any, one at a time.
 */
#ifndef PWI_SYNC_POLICY_H
#define PWI_SYNC_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_POLICY_TEXT_MAX 64

enum pwi_policy_kind {
  PWI_POLICY_SEQUENTIAL,
  PWI_POLICY_BOUNDED,
  PWI_POLICY_EVENTUAL,
  PWI_POLICY_SSP,
  PWI_POLICY_ABSP,
  PWI_POLICY_ADAPTIVE,
  PWI_POLICY_USER,
};

/* What is finished. Ticks are counted as iterations are: the tick that a member has finished, 0 at first. */
struct pwi_progress {
  uint64_t finished; /* of our own iterations: this and all before */
  uint64_t slowest;  /* tick that every member of the group has finished; UINT64_MAX without a group, or alone in it */
};

struct pwi_policy {
  enum pwi_policy_kind kind;
  uint64_t bound;       /* tau, s, or n iterations of a tick; ADAPTIVE: tau as it is now */
  uint64_t least, most; /* ADAPTIVE */
  bool (*lets)(void *context, uint64_t iteration, const struct pwi_progress *progress); /* USER: pure */
  void *context;
  struct {
    double waited, worked, gain; /* since tau was last looked at */
    unsigned count;              /* of iterations, since then */
  } learned;                     /* ADAPTIVE */
};

/* What an iteration waits for, for people and for whoever looks for waits without a cause. */
enum pwi_policy_cause { PWI_WAITS_NOT, PWI_WAITS_OWN, PWI_WAITS_GROUP, PWI_WAITS_USER };

struct pwi_policy_wait {
  enum pwi_policy_cause cause;
  uint64_t until; /* OWN: this iteration of ours, GROUP: this tick of everybody, has to be finished */
};

/* May the iteration, from 1 on, start? */
struct pwi_policy_wait pwi_policy_ask(const struct pwi_policy *policy, uint64_t iteration,
                                      const struct pwi_progress *progress);

/* The tick that iteration number `iteration` belongs to, from 1 on: what is clocked when the last of it is finished. */
uint64_t pwi_policy_tick(const struct pwi_policy *policy, uint64_t iteration);

/* tau, s or n may change while iterations are under way. Those that have started go on. PAWL_INVALID for a policy without a
 * bound, or n = 0. */
PAWL_MUST_USE pawl_status pwi_policy_set_bound(struct pwi_policy *policy, uint64_t bound);

/* ADAPTIVE: an iteration has waited so many seconds before it could start, has worked so many, and the objective fell by `gain`.
 * Every eight iterations tau is looked at: if the objective has risen it is halved, for what was worked on was too old; else it is
 * doubled where waiting took more than a twentieth of the time; else it stays (OSDI'14 5.1: the best tau is neither 0 nor the
 * largest). Other policies learn nothing. */
void pwi_policy_learn(struct pwi_policy *policy, double waited, double worked, double gain);

/* "sequential", "bounded 8", "eventual", "ssp 2", "a-bsp 4", "adaptive 0 16". PAWL_INVALID, with what is wrong in `why_out`
 * of PWI_POLICY_TEXT_MAX characters; `why_out` may be NULL. */
PAWL_MUST_USE pawl_status pwi_policy_parse(const char *text, struct pwi_policy *policy_out, char *why_out);

/* The same text back. */
void pwi_policy_print(const struct pwi_policy *policy, char text[PWI_POLICY_TEXT_MAX]);

#endif
