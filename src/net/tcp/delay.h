/* The worst recent delay of a node or a peer, from which the net derives how long it waits for a silent peer.
 *
 * On a busy machine every process runs late, and a fixed silence limit would declare healthy peers dead. So
 * suspicion adapts to what was observed, as in accrual failure detectors (Hayashibara et al. 2004): the net
 * notes how late this node ran its own checks and how late heartbeats came, and waits for several times the
 * worst of these. A delay counts half after five seconds, a quarter after ten, and so on.
 *
 * A delay of a second or more is not noted. No busy machine delays a process so long; the process, or the
 * whole machine, was stopped. */
#ifndef PWI_NET_TCP_DELAY_H
#define PWI_NET_TCP_DELAY_H

#include <stdint.h>

#define PWI_DELAY_HALF_NS INT64_C(5000000000)
#define PWI_DELAY_STOP_NS INT64_C(1000000000)
#define PWI_DELAY_FREE_NS INT64_C(50000000)
#define PWI_DELAY_TIMES 4                        /* the allowance is this multiple of the worst delay */
#define PWI_DELAY_ALLOWED_NS INT64_C(2000000000) /* and at most this */

struct pwi_delay {
  int64_t worst; /* in nanoseconds, when it was noted */
  int64_t at;    /* time at which it was noted */
};

static inline int64_t pwi_delay_recent(const struct pwi_delay *delay, int64_t now) {
  int64_t age = now - delay->at, halves = age / PWI_DELAY_HALF_NS;
  if (delay->worst == 0 || halves > 30) return 0;
  int64_t value = delay->worst >> halves;
  return value - value / 2 * (age % PWI_DELAY_HALF_NS) / PWI_DELAY_HALF_NS;
}

static inline void pwi_delay_note(struct pwi_delay *delay, int64_t late, int64_t now) {
  if (late < PWI_DELAY_STOP_NS && late > pwi_delay_recent(delay, now)) *delay = (struct pwi_delay){late, now};
}

/* The additional time that a peer gets. Delays up to PWI_DELAY_FREE_NS are within the silence limit. */
static inline int64_t pwi_delay_allowance(int64_t worst) {
  int64_t beyond = worst > PWI_DELAY_FREE_NS ? worst - PWI_DELAY_FREE_NS : 0;
  return beyond * PWI_DELAY_TIMES < PWI_DELAY_ALLOWED_NS ? beyond * PWI_DELAY_TIMES : PWI_DELAY_ALLOWED_NS;
}

#endif
