/* Applying aggregates: the change, the answers, and failures. shard/aggregate.c explains how they are
 * collected. */
#include <assert.h>

#include "shard/aggregate.h"
#include "wire/values.h"

/* --- the change ----------------------------------------------------------------------------------------- */

/* Returns true if every sender in the sum covers the whole arc. */
static bool is_even(const struct pwi_aggregate *aggregate) {
  for (size_t i = 0; i < aggregate->count; i++) {
    uint64_t size = 0;
    for (size_t j = 0; j < aggregate->count; j++)
      if (aggregate->parts[j].is_in_sum && aggregate->parts[j].sender.id == aggregate->parts[i].sender.id)
        size += pawl_range_size(aggregate->parts[j].claim);
    if (aggregate->parts[i].is_in_sum && size < pawl_range_size(aggregate->arc)) return false;
  }
  return true;
}

/* The next range that each piece covers wholly or not at all. */
static struct pawl_range next_range(const struct pwi_aggregate *aggregate) {
  struct pawl_range range = pawl_range_of(aggregate->done, aggregate->arc.end);
  if (is_even(aggregate)) return range;
  for (size_t i = 0; i < aggregate->count; i++) {
    struct pawl_range claim = aggregate->parts[i].claim;
    if (!aggregate->parts[i].is_in_sum) continue;
    if (claim.begin > range.begin && claim.begin < range.end) range.end = claim.begin;
    if (claim.end > range.begin && claim.end < range.end) range.end = claim.end;
  }
  return range;
}

static bool is_stamped(const struct pwi_aggregate *aggregate, const struct aggregate_part *part) {
  return part->is_in_sum && pawl_range_has(part->claim, aggregate->now.begin);
}

/* The only bundle with rows, if it covers exactly the range and nothing else; otherwise NULL. */
static struct pwi_bundle *only_bundle(const struct pwi_aggregate *aggregate) {
  struct pwi_bundle *only = aggregate->bundles;
  for (struct pwi_bundle *it = aggregate->bundles; it; it = it->next) {
    if (it->terms.rows == 0) continue;
    if (only->terms.rows > 0 && only != it) return NULL;
    only = it;
  }
  if (!only || !pwi_same_keys(only->terms.claim, aggregate->now)) return NULL;
  return pawl_range_contains(only->terms.claim, only->terms.range) ? only : NULL;
}

/* Unites all bundles into one list. */
static void unite(struct pwi_shard *shard, struct pwi_aggregate *aggregate, struct pwi_request *request_out) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, aggregate->vector);
  struct pwi_union *all = &aggregate->all;
  size_t row_bytes = vector ? pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH) : 0;
  all->rows = 0;
  aggregate->united = PAWL_NOT_FOUND;
  if (vector) aggregate->united = pwi_bundles_unite(shard, aggregate->bundles, aggregate->now, row_bytes, all);
  request_out->terms = aggregate->bundles->terms;
  request_out->terms.keys = PWI_KEYS_LIST;
  request_out->terms.keep = false;
  request_out->terms.rows = all->rows;
  request_out->terms.range = request_out->terms.claim = aggregate->now;
  request_out->keys = request_out->encoded = all->keys.memory;
  request_out->encoded_as = (struct pwi_section){.type = PWI_SECTION_KEYS,
                                                 .value_type = PWI_TYPE_U64,
                                                 .count = (uint32_t)all->rows,
                                                 .length = all->rows * sizeof(uint64_t)};
  request_out->value_type = aggregate->bundles->value_type;
  aggregate->values = (struct iovec){all->sum.memory, all->rows * row_bytes};
  request_out->values = &aggregate->values;
  request_out->value_parts = aggregate->values.iov_len > 0 ? 1 : 0;
}

struct pwi_aggregate *pwi_shard_next_sum(struct pwi_shard *shard, struct pwi_request *request_out) {
  struct pwi_aggregate *it = shard->aggregates;
  while (it && !it->is_complete) it = it->next;
  if (!it) return NULL;
  it->now = next_range(it);
  it->united = PAWL_OK;
  struct pwi_bundle *only = only_bundle(it);
  *request_out = (struct pwi_request){.terms = {.vector = it->vector, .claim = it->now}};
  if (only)
    *request_out = pwi_bundle_request(only, &it->values);
  else if (it->bundles)
    unite(shard, it, request_out);
  request_out->terms.kind = PWI_REQUEST_PUSH;
  request_out->tick = it->tick;
  request_out->arc = it->arc;
  for (size_t i = 0; i < it->count; i++)
    if (is_stamped(it, &it->parts[i])) {
      request_out->sender = it->parts[i].sender;
      request_out->task = it->parts[i].task;
      request_out->terms.settled = it->parts[i].settled;
    }
  return it;
}

size_t pwi_aggregate_stamps(const struct pwi_aggregate *aggregate, struct pwi_stamp *stamps) {
  size_t count = 0;
  for (size_t i = 0; i < aggregate->count; i++) {
    if (!is_stamped(aggregate, &aggregate->parts[i])) continue;
    if (stamps) stamps[count] = (struct pwi_stamp){aggregate->parts[i].sender, aggregate->parts[i].task};
    count++;
  }
  return count;
}

static pawl_status ready_sum(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_aggregate *aggregate, struct pwi_named *named,
                             struct pwi_served *served) {
  if (!pwi_serve_names(shard, vector, request, named, served)) return PAWL_CORRUPT;
  pawl_status status = pwi_rows_ready(shard, vector, request, named, request->terms.range);
  if (!status && vector->rule && pwi_vector_check(shard, vector, request, named, request->terms.range))
    status = PAWL_REFUSED; /* the refused part is found when each is applied by itself */
  for (size_t i = 0; i < aggregate->count && !status; i++)
    if (is_stamped(aggregate, &aggregate->parts[i]))
      status = pwi_clock_reserve(&vector->clocks[PWI_TASKS], aggregate->parts[i].sender, aggregate->now);
  return status;
}

/* Rows first, then all clocks: nothing can fail after the first change. */
pawl_status pwi_shard_apply_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate,
                                const struct pwi_request *request, struct pwi_served *served) {
  struct pwi_vector *vector = pwi_shard_vector(shard, aggregate->vector);
  struct pwi_named named;
  *served = (struct pwi_served){.outcome = {.code = PWI_CODE_OK}};
  shard->named = (struct pwi_named){0};
  if (aggregate->united) return aggregate->united;
  if (pwi_aggregate_stamps(aggregate, NULL) == 0) return PAWL_OK;
  pawl_status status = ready_sum(shard, vector, request, aggregate, &named, served);
  if (status) return status;
  if (vector->rule)
    pwi_vector_apply(shard, vector, request, &named, request->terms.range);
  else
    pwi_rows_apply(shard, vector, request, &named, request->terms.range, vector->apply);
  for (size_t i = 0; i < aggregate->count; i++) {
    const struct aggregate_part *part = &aggregate->parts[i];
    if (!is_stamped(aggregate, part)) continue;
    status = pwi_clock_set(&vector->clocks[PWI_TASKS], part->sender, aggregate->now, part->task);
    assert(status == PAWL_OK);
    pwi_contributed(shard, &vector->clocks[PWI_TASKS], request, part->sender, aggregate->now);
    vector->pushes++;
    shard->totals.pushes++;
    shard->totals.keys_pushed += named.count;
    shard->totals.bytes_in += named.count * pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH);
  }
  named.has_result = request->result;
  shard->named = named;
  served->effect = PWI_EFFECT_ROWS;
  return PAWL_OK;
}

static bool waits(const struct aggregate_part *part) { return part->waiter.owner != 0 && !part->is_told; }

/* A pull of the keys of a part, for its present rows. */
static struct pwi_request pull_of(const struct aggregate_part *part) {
  struct iovec unused;
  struct pwi_request pull = pwi_bundle_request(part->bundle, &unused);
  pull.terms.kind = PWI_REQUEST_PULL;
  pull.terms.keep = false;
  pull.terms.prior = pull.terms.other = 0;
  pull.sender = part->sender;
  pull.values = NULL;
  pull.value_parts = 0;
  return pull;
}

static void tell_one(struct pwi_shard *shard, const struct aggregate_part *part, pwi_tell_in *tell, void *context) {
  if (part->wants_rows && !part->bundle) {
    pwi_aggregate_say(shard, part->waiter, PWI_CODE_NOT_HERE, PAWL_OK);
  } else if (part->wants_rows) {
    struct pwi_request pull = pull_of(part);
    tell(context, part->waiter, part->task, &pull);
  } else {
    tell(context, part->waiter, part->task, NULL);
  }
}

/* Returns true if the group has as many members as when it began. */
static bool is_full_strength(const struct pwi_shard *shard, const struct pwi_aggregate *aggregate) {
  size_t count = 0;
  const struct pwi_membership_group *known = pwi_membership_group(shard->membership, aggregate->group);
  pwi_membership_members(shard->membership, aggregate->group, &count);
  return known && count >= known->size;
}

/* The sum was applied without some members. They may still come, perhaps under a new id, and must not wait
 * for its senders. */
static void outlive(struct pwi_aggregate *aggregate) {
  size_t kept = 0;
  for (size_t i = 0; i < aggregate->count; i++) {
    struct aggregate_part *part = &aggregate->parts[i];
    if (part->is_echo) continue;
    aggregate->parts[kept++] =
        (struct aggregate_part){.sender = part->sender, .task = part->task, .claim = part->claim, .is_told = true};
  }
  aggregate->count = kept;
  aggregate->is_complete = false;
  pwi_bundles_destroy(aggregate->bundles);
  aggregate->bundles = NULL;
}

void pwi_shard_end_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, pwi_tell_in *tell, void *context) {
  aggregate->done = aggregate->now.end;
  if (aggregate->done < aggregate->arc.end) return; /* continue with the next range */
  for (size_t i = 0; i < aggregate->count; i++)
    if (waits(&aggregate->parts[i])) tell_one(shard, &aggregate->parts[i], tell, context);
  struct pwi_aggregate place = *aggregate;
  bool is_over = !aggregate->early && pwi_aggregate_has_all(shard, aggregate) && is_full_strength(shard, aggregate);
  if (is_over)
    pwi_aggregate_forget(shard, aggregate);
  else
    outlive(aggregate);
  pwi_aggregates_take_in(shard, &place);
}

static void tell_parts(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                       pawl_status status) {
  for (size_t i = 0; i < aggregate->count; i++)
    if (waits(&aggregate->parts[i])) pwi_aggregate_say(shard, aggregate->parts[i].waiter, code, status);
}

/* Answers all waiting pushes, including early parts of later ticks. */
static void tell_all(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code, pawl_status status) {
  tell_parts(shard, aggregate, code, status);
  for (struct pwi_aggregate *it = shard->aggregates; it; it = it->next)
    if (pwi_is_beside(it, aggregate) && it->tick >= aggregate->tick)
      pwi_aggregate_dismiss_early(shard, it, code, status);
}

void pwi_shard_drop_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                        pawl_status status) {
  tell_all(shard, aggregate, code, status);
  pwi_aggregate_forget(shard, aggregate);
}

void pwi_shard_break_sum(struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  tell_all(shard, aggregate, PWI_CODE_NOT_HERE, PAWL_OK);
  aggregate->count = 0;
  aggregate->is_complete = false;
  aggregate->is_broken = true;
  pwi_bundles_destroy(aggregate->bundles);
  aggregate->bundles = NULL;
}

/* --- dropping aggregates -------------------------------------------------------------------------------- */

void pwi_aggregate_leave(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range keys, enum pwi_code code,
                         pawl_status status) {
  for (struct pwi_aggregate *it = shard->aggregates, *next; it; it = next) {
    next = it->next;
    if (it->vector.id != vector->entry.id.id || pawl_range_is_empty(pawl_range_common(it->arc, keys))) continue;
    pwi_shard_drop_sum(shard, it, code, status);
  }
}

void pwi_aggregate_forget_waiters(struct pwi_shard *shard, uint64_t owner) {
  for (struct pwi_aggregate *it = shard->aggregates; it; it = it->next) {
    for (size_t i = 0; i < it->count; i++)
      if (it->parts[i].waiter.owner == owner) it->parts[i].waiter.owner = 0;
    for (struct early_part *early = it->early; early; early = early->next)
      if (early->waiter.owner == owner) early->waiter.owner = 0;
  }
}

void pwi_aggregate_fini(struct pwi_shard *shard) {
  while (shard->aggregates) pwi_aggregate_forget(shard, shard->aggregates);
}
