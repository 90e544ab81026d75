/* Consistency policies: a policy decides when an iteration may start (OSDI'14 3.4; docs/policies.md).
 *
 * Iterations of a worker are numbered from 1. An iteration builds on the results of earlier iterations, of
 * this worker and of the others. A policy says which of these results may be missing:
 *
 *   sequential    none: every earlier iteration has finished
 *   bounded(tau)  up to tau earlier iterations of this worker may be in progress: iteration t starts when
 *                 t - tau - 1 and all earlier ones have finished. tau = 0 is sequential
 *   eventual      any result may be missing
 *   ssp(s)        other members may be behind: iteration t starts when every member of the group has finished
 *                 t - s - 1. s = 0 is bulk synchronous
 *   a-bsp(n)      n iterations form a tick, within which no worker waits; a tick starts when every member has
 *                 finished the previous one
 *   adaptive      bounded(tau), where tau is adapted to measurements between two limits (pwi_policy_learn)
 *   notify-ack    one version of this worker may be under way: iteration t computes while t - 1 travels, and sends
 *                 its results when t - 1 has finished (ASAP, Kadav and Kruus 2016, section 4)
 *   user          a function of the caller
 *
 * A policy is a pure function of the progress. It uses no clock and is monotonic: an iteration that may start
 * still may after further progress. It therefore suffices to ask again after each change of the progress.
 *
 * Threads: any, one at a time.
 */
#ifndef PWI_SYNC_POLICY_H
#define PWI_SYNC_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_POLICY_TEXT_MAX 96

enum pwi_policy_kind {
  PWI_POLICY_SEQUENTIAL,
  PWI_POLICY_BOUNDED,
  PWI_POLICY_EVENTUAL,
  PWI_POLICY_SSP,
  PWI_POLICY_ABSP,
  PWI_POLICY_ADAPTIVE,
  PWI_POLICY_NOTIFY_ACK,
  PWI_POLICY_USER,
};

/* The progress. Ticks are numbered as iterations; the initial tick is 0. */
struct pwi_progress {
  uint64_t finished; /* this iteration of the worker and all earlier ones have finished */
  uint64_t slowest;  /* every member of the group has finished this tick; UINT64_MAX without a group or
                        without other members */
};

struct pwi_policy {
  enum pwi_policy_kind kind;
  uint64_t bound;       /* tau, s, or the n iterations of a tick; ADAPTIVE: the present tau */
  uint64_t least, most; /* ADAPTIVE: limits of tau */
  bool (*lets)(void *context, uint64_t iteration, const struct pwi_progress *progress); /* USER: pure */
  void *context;
  struct {
    double waited, worked, gain, moved; /* sums since the last look; `moved` is that of all abs(gain) */
    unsigned count;                     /* iterations since then */
    bool has_grown;                     /* tau, at the last look */
  } learned;                            /* ADAPTIVE */
};

/* The cause of waiting of an iteration, for messages and for the detection of waits without a cause. */
enum pwi_policy_cause { PWI_WAITS_NOT, PWI_WAITS_OWN, PWI_WAITS_GROUP, PWI_WAITS_USER };

struct pwi_policy_wait {
  enum pwi_policy_cause cause;
  uint64_t until; /* OWN: the iteration of this worker to wait for; GROUP: the tick of all members to wait
                     for */
};

/* Decides whether the iteration, numbered from 1, may start. */
struct pwi_policy_wait pwi_policy_ask(const struct pwi_policy *policy, uint64_t iteration,
                                      const struct pwi_progress *progress);

/* Decides whether an iteration that has started may send its results. Only notify-ack makes it wait. */
struct pwi_policy_wait pwi_policy_ask_to_send(const struct pwi_policy *policy, uint64_t iteration,
                                              const struct pwi_progress *progress);

/* The tick, from 1, of an iteration. It is clocked when its last iteration has finished. */
uint64_t pwi_policy_tick(const struct pwi_policy *policy, uint64_t iteration);

/* Changes tau, s or n, also while iterations are in progress; these continue. PAWL_INVALID for a policy
 * without a bound, or n = 0. */
PAWL_MUST_USE pawl_status pwi_policy_set_bound(struct pwi_policy *policy, uint64_t bound);

/* ADAPTIVE: reports that an iteration waited and worked for these numbers of seconds, and that the objective
 * fell by `gain`. The policy looks every 64 iterations (OSDI'14 5.1: the best tau is neither 0 nor the largest):
 *
 *   - If the objective has risen, tau is halved, because the data was too old.
 *   - If waiting took more than a twentieth of the time and the objective falls steadily, tau is doubled, but not
 *     at two looks in a row. Steadily: by at least half of the sum of all its changes. Where it goes up and down,
 *     delay may be the reason, and more delay makes it worse.
 *
 * Other policies ignore the report. */
void pwi_policy_learn(struct pwi_policy *policy, double waited, double worked, double gain);

/* Parses "sequential", "bounded 8", "eventual", "ssp 2", "a-bsp 4", "adaptive 0 16" or
 * "notify-ack". PAWL_INVALID with a message in `why_out`, which has PWI_POLICY_TEXT_MAX bytes and may be NULL. */
PAWL_MUST_USE pawl_status pwi_policy_parse(const char *text, struct pwi_policy *policy_out, char *why_out);

/* Writes the policy as text, in the form that pwi_policy_parse reads. */
void pwi_policy_print(const struct pwi_policy *policy, char text[PWI_POLICY_TEXT_MAX]);

#endif
