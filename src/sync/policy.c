#include "sync/policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WAIT_WORTH 0.05 /* fraction of the time: less waiting does not justify a larger bound */
#define STEADY 0.5      /* fraction of all changes of the objective by which it falls where data is new enough */
#define LOOK_EVERY 64   /* iterations: data that is too old shows in the objective only some tens of them later */

/* --- queries -------------------------------------------------------------------------------------------- */

static struct pwi_policy_wait own(uint64_t needed, const struct pwi_progress *progress) {
  if (progress->finished >= needed) return (struct pwi_policy_wait){PWI_WAITS_NOT, 0};
  return (struct pwi_policy_wait){PWI_WAITS_OWN, needed};
}

static struct pwi_policy_wait group(uint64_t needed, const struct pwi_progress *progress) {
  if (progress->slowest >= needed) return (struct pwi_policy_wait){PWI_WAITS_NOT, 0};
  return (struct pwi_policy_wait){PWI_WAITS_GROUP, needed};
}

/* The last iteration that must have finished if `behind` iterations may be missing; 0: none. */
static uint64_t needed(uint64_t number, uint64_t behind) { return number - 1 > behind ? number - 1 - behind : 0; }

struct pwi_policy_wait pwi_policy_ask(const struct pwi_policy *policy, uint64_t iteration,
                                      const struct pwi_progress *progress) {
  switch (policy->kind) {
  case PWI_POLICY_SEQUENTIAL:
    return own(needed(iteration, 0), progress);
  case PWI_POLICY_BOUNDED:
  case PWI_POLICY_ADAPTIVE:
    return own(needed(iteration, policy->bound), progress);
  case PWI_POLICY_NOTIFY_ACK:
    return own(needed(iteration, 1), progress);
  case PWI_POLICY_SSP:
    return group(needed(iteration, policy->bound), progress);
  case PWI_POLICY_ABSP:
    return group(needed(pwi_policy_tick(policy, iteration), 0), progress);
  case PWI_POLICY_USER:
    if (!policy->lets(policy->context, iteration, progress)) return (struct pwi_policy_wait){PWI_WAITS_USER, 0};
    break;
  case PWI_POLICY_EVENTUAL:
    break;
  }
  return (struct pwi_policy_wait){PWI_WAITS_NOT, 0};
}

struct pwi_policy_wait pwi_policy_ask_to_send(const struct pwi_policy *policy, uint64_t iteration,
                                              const struct pwi_progress *progress) {
  return own(policy->kind == PWI_POLICY_NOTIFY_ACK ? needed(iteration, 0) : 0, progress);
}

uint64_t pwi_policy_tick(const struct pwi_policy *policy, uint64_t iteration) {
  return policy->kind == PWI_POLICY_ABSP ? (iteration - 1) / policy->bound + 1 : iteration;
}

static bool has_bound(enum pwi_policy_kind kind) {
  return kind == PWI_POLICY_BOUNDED || kind == PWI_POLICY_SSP || kind == PWI_POLICY_ABSP || kind == PWI_POLICY_ADAPTIVE;
}

pawl_status pwi_policy_set_bound(struct pwi_policy *policy, uint64_t bound) {
  if (!has_bound(policy->kind) || (policy->kind == PWI_POLICY_ABSP && bound == 0)) return PAWL_INVALID;
  if (policy->kind == PWI_POLICY_ADAPTIVE && (bound < policy->least || bound > policy->most)) return PAWL_INVALID;
  policy->bound = bound;
  return PAWL_OK;
}

/* --- learning ------------------------------------------------------------------------------------------- */

/* tau is doubled and halved: the difference between 8 and 9 is small. Two looks pass between doublings, so that the
 * second one sees what the first bound does. */
static uint64_t next_bound(const struct pwi_policy *policy) {
  uint64_t bound = policy->bound;
  double time = policy->learned.waited + policy->learned.worked;
  bool is_steady = policy->learned.gain >= STEADY * policy->learned.moved;
  if (policy->learned.gain < 0)
    bound /= 2;
  else if (policy->learned.waited > WAIT_WORTH * time && is_steady && !policy->learned.has_grown)
    bound = bound < policy->most / 2 ? 2 * bound + (bound == 0) : policy->most;
  if (bound > policy->most) bound = policy->most;
  return bound < policy->least ? policy->least : bound;
}

void pwi_policy_learn(struct pwi_policy *policy, double waited, double worked, double gain) {
  if (policy->kind != PWI_POLICY_ADAPTIVE || !(waited >= 0) || !(worked >= 0)) return;
  policy->learned.waited += waited;
  policy->learned.worked += worked;
  if (isfinite(gain)) {
    policy->learned.gain += gain;
    policy->learned.moved += fabs(gain);
  }
  if (++policy->learned.count < LOOK_EVERY) return;
  uint64_t bound = next_bound(policy);
  bool has_grown = bound > policy->bound;
  policy->bound = bound;
  memset(&policy->learned, 0, sizeof policy->learned);
  policy->learned.has_grown = has_grown;
}

/* --- texts ---------------------------------------------------------------------------------------------- */

/* Indexed by enum pwi_policy_kind; user-defined policies have no text. */
static const struct {
  const char *name;
  size_t bounds;
} names[] = {
    [PWI_POLICY_SEQUENTIAL] = {"sequential", 0},
    [PWI_POLICY_BOUNDED] = {"bounded", 1},
    [PWI_POLICY_EVENTUAL] = {"eventual", 0},
    [PWI_POLICY_SSP] = {"ssp", 1},
    [PWI_POLICY_ABSP] = {"a-bsp", 1},
    [PWI_POLICY_ADAPTIVE] = {"adaptive", 2},
    [PWI_POLICY_NOTIFY_ACK] = {"notify-ack", 0},
};
#define NAMES (sizeof names / sizeof *names)
#define BOUNDS_MAX 2
#define BOUND_MAX (UINT64_C(1) << 32) /* far more than can be in progress */

static pawl_status complain(char *why_out, const char *why) {
  if (why_out) snprintf(why_out, PWI_POLICY_TEXT_MAX, "%s", why);
  return PAWL_INVALID;
}

static bool read_bound(const char **text, uint64_t *bound_out) {
  uint64_t bound = 0;
  const char *at = *text;
  while (*at == ' ') at++;
  const char *first = at;
  for (; *at >= '0' && *at <= '9'; at++) {
    bound = bound * 10 + (uint64_t)(*at - '0');
    if (bound > BOUND_MAX) return false;
  }
  *text = at;
  *bound_out = bound;
  return at > first;
}

static bool is_word(const char *text, size_t size, const char *word) {
  return size == strlen(word) && memcmp(text, word, size) == 0;
}

static pawl_status check(const struct pwi_policy *policy, char *why_out) {
  if (policy->kind == PWI_POLICY_ABSP && policy->bound == 0)
    return complain(why_out, "a tick of a-bsp needs at least one iteration");
  if (policy->kind == PWI_POLICY_ADAPTIVE && policy->least > policy->most)
    return complain(why_out, "the lower bound of adaptive exceeds the upper one");
  return PAWL_OK;
}

pawl_status pwi_policy_parse(const char *text, struct pwi_policy *policy_out, char *why_out) {
  size_t size = strcspn(text, " "), kind = 0;
  uint64_t bounds[BOUNDS_MAX] = {0};
  while (kind < NAMES && !is_word(text, size, names[kind].name)) kind++;
  if (kind == NAMES)
    return complain(why_out, "expected sequential, bounded, eventual, ssp, a-bsp, adaptive or notify-ack");
  text += size;
  for (size_t i = 0; i < names[kind].bounds; i++)
    if (!read_bound(&text, &bounds[i])) return complain(why_out, "expected a number of at most 2^32");
  if (*text) return complain(why_out, "unexpected text after the policy");
  struct pwi_policy policy = {.kind = (enum pwi_policy_kind)kind, .bound = bounds[0]};
  if (policy.kind == PWI_POLICY_ADAPTIVE) {
    policy.least = bounds[0];
    policy.most = bounds[1];
  }
  pawl_status status = check(&policy, why_out);
  if (!status) *policy_out = policy;
  return status;
}

void pwi_policy_print(const struct pwi_policy *policy, char text[PWI_POLICY_TEXT_MAX]) {
  const char *name = policy->kind < NAMES ? names[policy->kind].name : "user";
  if (policy->kind == PWI_POLICY_ADAPTIVE)
    snprintf(text, PWI_POLICY_TEXT_MAX, "%s %" PRIu64 " %" PRIu64, name, policy->least, policy->most);
  else if (policy->kind < NAMES && names[policy->kind].bounds > 0)
    snprintf(text, PWI_POLICY_TEXT_MAX, "%s %" PRIu64, name, policy->bound);
  else
    snprintf(text, PWI_POLICY_TEXT_MAX, "%s", name);
}
