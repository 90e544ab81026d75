/* Groups: ticks, and requests that wait until all members have reached a tick.
 *
 * The ticks of a group are kept in a second range clock with the same keys as its tasks. So they move and are
 * discarded with them. Only one key counts, the key of the group.
 *
 * A waiting request depends on the slowest member only. The slowest member is remembered, and all members are
 * examined again only when it has advanced or the membership has changed. Among equally slow members it is
 * the last in the order of the membership. If members arrive in random order, a barrier of n members examines
 * them about log n times.
 */
#include "shard/inside.h"

#include "base/memory.h"
#include "protocol/planted.h"

static struct pawl_range place_of(const struct pwi_vector *group) {
  return pawl_range_of(group->group_key, group->group_key + 1);
}

/* 0 on positions that are not held. */
static uint64_t time_of(const struct pwi_vector *group, int which, struct pwi_sender sender) {
  uint64_t time;
  return pwi_clock_min(&group->clocks[which], sender, place_of(group), &time) == PAWL_OK ? time : 0;
}

static const struct pwi_membership_member *members_of(const struct pwi_shard *shard, const struct pwi_vector *group,
                                                      size_t *count_out) {
  if (shard->membership) return pwi_membership_members(shard->membership, group->entry.id, count_out);
  *count_out = 0;
  return NULL;
}

/* Finds the slowest member. In a group without members no request waits. */
static void rank(const struct pwi_shard *shard, struct pwi_vector *group) {
  size_t count;
  const struct pwi_membership_member *members = members_of(shard, group, &count);
  if (group->ranked) return;
  group->lowest = UINT64_MAX;
  group->last = (struct pwi_sender){0};
  for (size_t i = 0; i < count; i++) {
    uint64_t tick = time_of(group, PWI_TICKS, members[i].sender);
    if (tick == 0 && pwi_is_planted(PWI_PLANTED_HASTY_BARRIER)) continue;
    if (tick > group->lowest) continue;
    group->lowest = tick;
    group->last = members[i].sender;
  }
  group->ranked = true;
}

static bool is_complete(const struct pwi_shard *shard, const struct pwi_vector *group) {
  const struct pwi_membership_group *known =
      shard->membership ? pwi_membership_group(shard->membership, group->entry.id) : NULL;
  return known && known->complete;
}

/* --- waiters -------------------------------------------------------------------------------------------- */

static struct pwi_outcome passed(const struct pwi_vector *group, uint64_t tick) {
  uint64_t found = group->lowest == UINT64_MAX ? tick : group->lowest;
  return (struct pwi_outcome){.code = PWI_CODE_OK, .found = found};
}

/* Removes the request from the list before it is answered. */
static void tell(struct pwi_shard *shard, size_t at, const struct pwi_outcome *outcome) {
  struct pwi_waiter waiter = shard->waiting[at].waiter;
  shard->waiting[at] = shard->waiting[--shard->waiting_count];
  shard->config.answer(shard->config.context, waiter, outcome);
}

void pwi_group_examine(struct pwi_shard *shard, struct pwi_vector *group) {
  if (shard->waiting_count == 0 || !is_complete(shard, group)) return;
  rank(shard, group);
  for (size_t i = shard->waiting_count; i-- > 0;) {
    struct pwi_waiting waiting = shard->waiting[i];
    if (waiting.group.id != group->entry.id.id || group->lowest < waiting.tick) continue;
    struct pwi_outcome outcome = passed(group, waiting.tick);
    tell(shard, i, &outcome);
  }
}

void pwi_group_dismiss(struct pwi_shard *shard, const struct pwi_vector *group, enum pwi_code code,
                       pawl_status status) {
  struct pwi_outcome outcome = {.code = code, .status = status};
  for (size_t i = shard->waiting_count; i-- > 0;)
    if (shard->waiting[i].group.id == group->entry.id.id) tell(shard, i, &outcome);
}

void pwi_groups_leave(struct pwi_shard *shard, struct pawl_range positions) {
  for (size_t i = 0; i < shard->vector_count && shard->aggregates; i++)
    pwi_aggregate_leave(shard, shard->vectors[i], pwi_vector_keys(shard->vectors[i], positions), PWI_CODE_NOT_HERE,
                        PAWL_OK);
  for (size_t i = 0; i < shard->vector_count && shard->waiting_count > 0; i++) {
    const struct pwi_vector *vector = shard->vectors[i];
    if (!vector->is_group || !pawl_range_has(pwi_vector_keys(vector, positions), vector->group_key)) continue;
    pwi_group_dismiss(shard, vector, PWI_CODE_NOT_HERE, PAWL_OK);
  }
}

void pwi_shard_dismiss(struct pwi_shard *shard, struct pawl_range positions) { pwi_groups_leave(shard, positions); }

void pwi_shard_forget_waiters(struct pwi_shard *shard, uint64_t owner) {
  size_t kept = 0;
  pwi_aggregate_forget_waiters(shard, owner);
  for (size_t i = 0; i < shard->waiting_count; i++) {
    struct pwi_waiting waiting = shard->waiting[i];
    if (waiting.waiter.owner != owner) shard->waiting[kept++] = waiting;
  }
  shard->waiting_count = kept;
}

#define WAITERS_MAX 65536 /* waiting requests of one owner */

static bool has_many(const struct pwi_shard *shard, uint64_t owner) {
  size_t count = 0;
  if (shard->waiting_count < WAITERS_MAX) return false;
  for (size_t i = 0; i < shard->waiting_count; i++) count += shard->waiting[i].waiter.owner == owner;
  return count >= WAITERS_MAX;
}

static pawl_status wait(struct pwi_shard *shard, const struct pwi_request *request) {
  if (has_many(shard, request->waiter.owner)) return PAWL_NODE_LIMIT;
  if (!PWI_GROW(shard->waiting, shard->waiting_room, shard->waiting_count + 1)) return PAWL_NO_MEMORY;
  shard->waiting[shard->waiting_count++] = (struct pwi_waiting){request->terms.vector, request->tick, request->waiter};
  return PAWL_OK;
}

void pwi_serve_await(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request,
                     struct pwi_served *served) {
  rank(shard, group);
  if (is_complete(shard, group) && group->lowest >= request->tick) {
    served->outcome = passed(group, request->tick);
    pwi_serve_clocks(shard, group, request, served);
    return;
  }
  pawl_status status = wait(shard, request);
  if (status == PAWL_OK)
    served->is_deferred = true;
  else
    pwi_served_fail(served, status);
}

/* --- ticks ---------------------------------------------------------------------------------------------- */

/* The tick at which a member enters: the highest tick of any member. A founder keeps its own tick, because
 * all founders begin together. */
static uint64_t highest_tick(const struct pwi_shard *shard, const struct pwi_vector *group, struct pwi_sender sender) {
  size_t count;
  const struct pwi_membership_member *members = members_of(shard, group, &count);
  uint64_t highest = time_of(group, PWI_TICKS, sender);
  uint64_t own = highest;
  for (size_t i = 0; i < count; i++) {
    uint64_t tick = time_of(group, PWI_TICKS, members[i].sender);
    if (members[i].sender.id == sender.id && members[i].founder) return own;
    if (tick > highest) highest = tick;
  }
  return highest;
}

/* Sets both clocks or none. A claim that is only partly due may have been counted already at the key of the
 * group: a second TICK does no harm, and an ENTER must not be advanced by later ticks. */
static pawl_status advance(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request) {
  struct pwi_sender sender = request->sender;
  struct pawl_range claim = request->terms.claim;
  uint64_t tick = request->tick;
  if (request->terms.kind == PWI_REQUEST_ENTER) {
    bool entered = time_of(group, PWI_TASKS, sender) >= request->task;
    uint64_t highest = entered ? time_of(group, PWI_TICKS, sender) : highest_tick(shard, group, sender);
    tick = highest > tick ? highest : tick; /* a member that returns under a new id has ticks of its old id */
  }
  for (int which = 0; which < PWI_CLOCKS; which++) {
    pawl_status status = pwi_clock_reserve(&group->clocks[which], sender, claim);
    if (status != PAWL_OK) return status;
  }
  pawl_status status = pwi_clock_set(&group->clocks[PWI_TICKS], sender, claim, tick);
  if (status == PAWL_OK) status = pwi_clock_set(&group->clocks[PWI_TASKS], sender, claim, request->task);
  return status;
}

void pwi_serve_tick(struct pwi_shard *shard, struct pwi_vector *group, const struct pwi_request *request, bool due,
                    struct pwi_served *served) {
  if (due) {
    pawl_status status = advance(shard, group, request);
    if (status != PAWL_OK) {
      pwi_serve_refuse(shard, group, request, status, served);
      return;
    }
    served->effect = PWI_EFFECT_TICK;
    served->tick = time_of(group, PWI_TICKS, request->sender);
  }
  pwi_served_say(served, PWI_CODE_OK, time_of(group, PWI_TICKS, request->sender));
  if (!due || (group->ranked && group->last.id != request->sender.id)) return;
  group->ranked = false;
  pwi_group_examine(shard, group);
}
