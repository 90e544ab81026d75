#include "sync/pace.h"

#include <assert.h>

/* An iteration that has begun and has not finished. */
struct open {
  uint64_t pending; /* number of unfinished tasks */
  bool has_ended;
};

void pwi_pace_init(struct pwi_pace *pace, const struct pwi_policy *policy, bool has_group, uint64_t tick) {
  *pace = (struct pwi_pace){.policy = *policy, .has_group = has_group, .ticked = tick, .slowest = 0};
  pace->begun = pace->finished = policy->kind == PWI_POLICY_ABSP ? tick * policy->bound : tick;
  pwi_fifo_init(&pace->open, sizeof(struct open));
}

void pwi_pace_fini(struct pwi_pace *pace) { pwi_fifo_fini(&pace->open); }

/* --- queries -------------------------------------------------------------------------------------------- */

/* The iterations of each tick are counted from its beginning, because the number per tick may change. The
 * policy only needs to know whether the next iteration is the first of its tick. */
static uint64_t number_for_policy(const struct pwi_pace *pace) {
  if (pace->policy.kind != PWI_POLICY_ABSP) return pace->begun + 1;
  return pace->ticked * pace->policy.bound + 1;
}

static struct pwi_progress progress_of(const struct pwi_pace *pace) {
  return (struct pwi_progress){pace->finished, pace->has_group ? pace->slowest : UINT64_MAX};
}

struct pwi_policy_wait pwi_pace_ask(const struct pwi_pace *pace) {
  struct pwi_progress progress = progress_of(pace);
  return pwi_policy_ask(&pace->policy, number_for_policy(pace), &progress);
}

struct pwi_policy_wait pwi_pace_ask_to_send(const struct pwi_pace *pace) {
  struct pwi_progress progress = progress_of(pace);
  assert(pace->is_open);
  return pwi_policy_ask_to_send(&pace->policy, pace->begun, &progress);
}

void pwi_pace_heard(struct pwi_pace *pace, uint64_t slowest) {
  if (slowest > pace->slowest) pace->slowest = slowest;
}

pawl_status pwi_pace_set_bound(struct pwi_pace *pace, uint64_t bound) {
  return pwi_policy_set_bound(&pace->policy, bound);
}

/* --- iterations ----------------------------------------------------------------------------------------- */

static struct open *find(const struct pwi_pace *pace, uint64_t iteration) {
  assert(iteration > pace->finished && iteration <= pace->begun);
  return pwi_fifo_at(&pace->open, (size_t)(iteration - pace->finished - 1));
}

pawl_status pwi_pace_begin(struct pwi_pace *pace) {
  assert(!pace->is_open);
  struct open *open = pwi_fifo_push(&pace->open);
  if (!open) return PAWL_NO_MEMORY;
  *open = (struct open){0, false};
  pace->is_open = true;
  pace->begun++;
  pace->in_tick++;
  return PAWL_OK;
}

void pwi_pace_add(struct pwi_pace *pace) {
  assert(pace->is_open);
  find(pace, pace->begun)->pending++;
}

static void advance(struct pwi_pace *pace) {
  while (pwi_fifo_count(&pace->open) > 0) {
    const struct open *first = pwi_fifo_at(&pace->open, 0);
    if (!first->has_ended || first->pending > 0) return;
    pwi_fifo_pop(&pace->open);
    pace->finished++;
  }
}

void pwi_pace_over(struct pwi_pace *pace, uint64_t iteration) {
  struct open *open = find(pace, iteration);
  assert(open->pending > 0);
  open->pending--;
  advance(pace);
}

bool pwi_pace_end(struct pwi_pace *pace, double waited, double worked, double gain) {
  assert(pace->is_open);
  pace->is_open = false;
  find(pace, pace->begun)->has_ended = true;
  advance(pace);
  pwi_policy_learn(&pace->policy, waited, worked, gain);
  if (pace->policy.kind == PWI_POLICY_ABSP && pace->in_tick < pace->policy.bound) return false;
  pace->in_tick = 0;
  pace->ticked++;
  return true;
}
