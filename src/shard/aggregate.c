/* Aggregates: pushes of a group that are applied as one (OSDI'14 4.4: replication after aggregation).
 *
 * Each member of a group pushes once in a tick to a vector. The values of these pushes, the parts, are summed
 * outside the table, in one bundle for all parts with the same keys. When every member has contributed, the
 * union of the bundles is applied, the clocks of all members are set with it, and all pushes are answered. So
 * the server function runs once, on the sum, and the chain carries one change instead of one for each worker.
 *
 * A part in the sum has changed nothing yet. If the head is lost, the sender has no answer and resends the
 * push to the next head. A part that cannot be summed, because the function does not permit it, is applied by
 * itself at once and counts as contributed. It is answered with the others too. So the unanswered pushes are
 * exactly those that a new head must receive again, and it never waits for a part that was forgotten.
 *
 * PIECES. A part arrives as several pieces, each with its own claim, if arcs were merged or if it is too long
 * for one message. A sender that cut its part by an older view may claim less of the arc than others. Each
 * piece names the range of keys of the push, whether it has rows there or not. A sender has contributed when
 * its pieces cover the range of the whole sum. If the pieces of senders differ, the sum is applied range by
 * range, each for the senders with a piece there.
 *
 * TICKS. Each tick of an arc has its own aggregate. On each key, ticks are applied in order: a part enters
 * the sum once the sender's previous push to its keys is applied. A member may be several ticks ahead of the
 * others (bounded delay, OSDI'14 3.4). Its early parts are kept unchanged and enter their sums when they are
 * due. Ticks with different keys do not wait for one another.
 *
 * NEW HEADS. Senders that were answered by a previous head do not resend their parts. So a part that was
 * applied before this head took over is answered without waiting, and a sender whose later push is due has
 * already contributed to this tick. The last tick of each client is kept with the rows (contributed.c), so a
 * member that comes late does not wait for those that were answered.
 *
 * DEAD SENDERS. A part of a sender that is no longer live stays in the sum and is applied with the others; a
 * COLLECT about that sender must be retried meanwhile. Its early parts have taken no effect and never will.
 * If the group is not complete, and may never be, the sum is applied at once.
 *
 * RELAYS. The sum that a relay sends stands for the parts of its contributors, which share one bundle. It is taken
 * only if each of them is due and not here yet. No part of them waits for an answer; an echo stands for the request
 * of the relay. A contributor that sends its push again, by itself, finds its part here.
 *
 * While members are missing, the senders of a few past ticks are remembered: a client that was declared dead
 * returns late under a new id, and must not wait for them.
 */
#include "base/memory.h"
#include "protocol/contributors.h"
#include "protocol/planted.h"
#include "shard/aggregate.h"

#define EARLY_MAX 4096                  /* early parts of a tick; the sender keeps further ones */
#define EARLY_BYTES ((size_t)256 << 20) /* of early parts of a tick; the sender keeps further ones */
#define IDLE_MAX 8                      /* past ticks of an arc that are remembered */
#define TICKS_MAX 1024                  /* ticks of an arc at a time; further pushes are refused */
#define PARTS_MAX ((size_t)64 << 10)    /* pieces in one tick; further ones are refused */
#define PIECES_MAX 1024                 /* pieces of one sender in one tick; further ones are refused */
#define EARLIER_MAX ((size_t)16 << 10)  /* pieces in all earlier ticks; beyond, EARLIER_OWN applies */
#define EARLIER_OWN (2 * TICKS_MAX)     /* a sender with more of these pieces is refused */

static void free_early(struct early_part *early) {
  pwi_bundles_destroy(early->bundle);
  pwi_free(early);
}

static void destroy(struct pwi_aggregate *aggregate) {
  for (struct early_part *it = aggregate->early, *next; it; it = next) {
    next = it->next;
    free_early(it);
  }
  pwi_bundles_destroy(aggregate->bundles);
  pwi_union_fini(&aggregate->all);
  pwi_free(aggregate->parts);
  pwi_free(aggregate);
}

/* The fields that identify an aggregate. */
static struct pwi_aggregate place_of(const struct pwi_request *request) {
  return (struct pwi_aggregate){
      .vector = request->terms.vector, .group = {request->terms.other}, .arc = request->arc, .tick = request->tick};
}

static struct pwi_aggregate *find(const struct pwi_shard *shard, const struct pwi_aggregate *place) {
  struct pwi_aggregate *it = shard->aggregates;
  while (it && (it->tick != place->tick || !pwi_is_beside(it, place))) it = it->next;
  return it;
}

/* The number of keys of `claim` that the pieces of a sender cover. If `task` is not 0, counts only its
 * pieces. Pieces do not overlap. */
static uint64_t covered(const struct pwi_aggregate *aggregate, struct pwi_sender sender, uint64_t task,
                        struct pawl_range claim) {
  uint64_t size = 0;
  for (size_t i = 0; i < aggregate->count; i++) {
    const struct aggregate_part *part = &aggregate->parts[i];
    if (part->sender.id != sender.id || part->is_echo || (task != 0 && part->task != task)) continue;
    struct pawl_range common = pawl_range_common(part->claim, claim);
    if (!pawl_range_is_empty(common)) size += pawl_range_size(common);
  }
  return size;
}

/* The range of keys of the sum. */
static struct pawl_range needed(const struct pwi_aggregate *aggregate) {
  struct pawl_range all = {0, 0};
  for (size_t i = 0; i < aggregate->count; i++) {
    struct pawl_range range = aggregate->parts[i].range;
    if (pawl_range_is_empty(range)) continue;
    if (pawl_range_is_empty(all)) all = range;
    if (range.begin < all.begin) all.begin = range.begin;
    if (range.end > all.end) all.end = range.end;
  }
  return all;
}

/* Returns true if the sender has contributed. If nothing is summed, any piece of it will do. */
static bool is_in(const struct pwi_aggregate *aggregate, struct pwi_sender sender, struct pawl_range needs) {
  if (pawl_range_is_empty(needs)) return covered(aggregate, sender, 0, aggregate->arc) > 0;
  return covered(aggregate, sender, 0, needs) >= pawl_range_size(needs);
}

/* Each further piece is compared with all earlier ones, so their number is limited. */
static bool has_too_many_pieces(const struct pwi_aggregate *aggregate, struct pwi_sender sender) {
  size_t count = 0;
  for (size_t i = 0; i < aggregate->count; i++) count += aggregate->parts[i].sender.id == sender.id;
  return count >= PIECES_MAX;
}

static struct aggregate_part *part_of(const struct pwi_aggregate *aggregate, struct pwi_sender sender,
                                      struct pawl_range claim) {
  for (size_t i = 0; i < aggregate->count; i++)
    if (aggregate->parts[i].sender.id == sender.id && pwi_same_keys(aggregate->parts[i].claim, claim))
      return &aggregate->parts[i];
  return NULL;
}

/* --- completeness --------------------------------------------------------------------------------------- */

bool pwi_aggregate_has_all(const struct pwi_shard *shard, const struct pwi_aggregate *aggregate) {
  size_t count = 0;
  const struct pwi_membership_group *known = pwi_membership_group(shard->membership, aggregate->group);
  const struct pwi_membership_member *members = pwi_membership_members(shard->membership, aggregate->group, &count);
  struct pawl_range needs = needed(aggregate);
  bool all = known && known->complete;
  if (aggregate->count < count) all = false; /* the most frequent case, decided without the loop below */
  for (size_t i = 0; i < count && all; i++) all = is_in(aggregate, members[i].sender, needs);
  return all;
}

/* Marks the aggregate as complete if every member has contributed and an answer is waiting. If the group
 * is not complete and a sender is dead, the group may never be complete, so the aggregate is complete at
 * once. */
static void examine(const struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  const struct pwi_membership_group *known = pwi_membership_group(shard->membership, aggregate->group);
  bool is_awaited = false, has_dead = false;
  for (size_t i = 0; i < aggregate->count; i++) {
    if (aggregate->parts[i].is_told) continue;
    is_awaited = true;
    if (aggregate->parts[i].is_of_relay) continue; /* its contributors have parts of their own */
    has_dead |= !pwi_membership_is_live(shard->membership, aggregate->parts[i].sender);
  }
  bool is_vain = has_dead && !(known && known->complete);
  if (!is_awaited || aggregate->is_complete || (!is_vain && !pwi_aggregate_has_all(shard, aggregate))) return;
  aggregate->is_complete = true;
  aggregate->done = aggregate->arc.begin;
}

void pwi_aggregate_say(struct pwi_shard *shard, struct pwi_waiter waiter, enum pwi_code code, pawl_status status) {
  struct pwi_outcome outcome = {.code = code, .status = status};
  if (waiter.owner != 0) shard->config.answer(shard->config.context, waiter, &outcome);
}

/* Removes an early part from its list. The caller owns it then. */
static struct early_part *take_out(struct pwi_aggregate *aggregate, struct early_part **at) {
  struct early_part *early = *at;
  *at = early->next;
  aggregate->early_count--;
  aggregate->early_bytes -= early->bundle->bytes;
  return early;
}

void pwi_aggregate_dismiss_early(struct pwi_shard *shard, struct pwi_aggregate *aggregate, enum pwi_code code,
                                 pawl_status status) {
  while (aggregate->early) {
    struct early_part *early = take_out(aggregate, &aggregate->early);
    pwi_aggregate_say(shard, early->waiter, code, status);
    free_early(early);
  }
}

static void drop_early_of_the_dead(struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  for (struct early_part **at = &aggregate->early; *at;) {
    if (pwi_membership_is_live(shard->membership, (*at)->sender)) {
      at = &(*at)->next;
      continue;
    }
    struct early_part *early = take_out(aggregate, at);
    pwi_aggregate_say(shard, early->waiter, PWI_CODE_NOT_HERE, PAWL_OK);
    free_early(early);
  }
}

bool pwi_aggregate_has_part(const struct pwi_shard *shard, struct pwi_vector_id vector, struct pwi_sender sender,
                            struct pawl_range keys) {
  for (const struct pwi_aggregate *it = shard->aggregates; it; it = it->next)
    for (size_t i = 0; it->vector.id == vector.id && i < it->count; i++)
      if (it->parts[i].is_in_sum && it->parts[i].sender.id == sender.id &&
          !pawl_range_is_empty(pawl_range_common(it->parts[i].claim, keys)))
        return true;
  return false;
}

bool pwi_aggregate_has_sender(const struct pwi_shard *shard, struct pwi_sender sender) {
  for (const struct pwi_aggregate *it = shard->aggregates; it; it = it->next)
    for (size_t i = 0; i < it->count; i++)
      if (it->parts[i].sender.id == sender.id) return true;
  return false;
}

/* --- arriving parts ------------------------------------------------------------------------------------- */

/* Returns true if no answer waits for the end of the tick. */
static bool is_idle(const struct pwi_aggregate *aggregate) {
  for (size_t i = 0; i < aggregate->count; i++)
    if (!aggregate->parts[i].is_told) return false;
  return !aggregate->early;
}

void pwi_aggregate_forget(struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  struct pwi_aggregate **at = &shard->aggregates;
  while (*at != aggregate) at = &(*at)->next;
  *at = aggregate->next;
  destroy(aggregate);
}

/* Forgets the oldest tick without waiting answers if there are too many. The others are kept for members that
 * may still come. */
static void forget_idle(struct pwi_shard *shard, const struct pwi_aggregate *place) {
  struct pwi_aggregate *oldest = NULL;
  size_t count = 0;
  for (struct pwi_aggregate *it = shard->aggregates; it; it = it->next) {
    if (!pwi_is_beside(it, place) || it->is_complete || !is_idle(it)) continue;
    if (!oldest || it->tick < oldest->tick) oldest = it;
    count++;
  }
  if (count > IDLE_MAX) pwi_aggregate_forget(shard, oldest);
}

static pawl_status make_place(struct pwi_aggregate *aggregate) {
  return PWI_GROW(aggregate->parts, aggregate->room, aggregate->count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Counts the sender as contributed on the claim: it has nothing for this tick, or was answered before. */
static pawl_status count_in(struct pwi_aggregate *aggregate, struct pwi_sender sender, struct pawl_range claim) {
  if (covered(aggregate, sender, 0, claim) > 0) return PAWL_OK;
  pawl_status status = make_place(aggregate);
  if (!status)
    aggregate->parts[aggregate->count++] = (struct aggregate_part){.sender = sender, .claim = claim, .is_told = true};
  return status;
}

/* A member whose part of this tick or of a later one was applied before this head took over, or under an earlier id of
 * its client, has contributed. */
static pawl_status recall(const struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, aggregate->vector);
  size_t count = 0;
  const struct pwi_membership_member *members = pwi_membership_members(shard->membership, aggregate->group, &count);
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece piece;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; vector && i < count && !status; i++) {
    if (!pwi_contributed_walk(shard, vector, aggregate->group, members[i].sender, aggregate->arc, &pieces)) continue;
    while (!status && pwi_clock_next(&pieces, &piece))
      if (piece.time >= aggregate->tick) status = count_in(aggregate, members[i].sender, piece.range);
  }
  return status;
}

/* A sender with a part in a later tick has contributed to this one. */
static pawl_status inherit(const struct pwi_shard *shard, struct pwi_aggregate *aggregate) {
  pawl_status status = PAWL_OK;
  for (const struct pwi_aggregate *it = shard->aggregates; it && !status; it = it->next)
    for (size_t i = 0; pwi_is_beside(it, aggregate) && it->tick > aggregate->tick && i < it->count && !status; i++)
      if (!it->parts[i].is_echo) status = count_in(aggregate, it->parts[i].sender, it->parts[i].claim);
  return status;
}

static bool has_too_many(const struct pwi_shard *shard, const struct pwi_aggregate *place) {
  size_t count = 0;
  for (const struct pwi_aggregate *it = shard->aggregates; it; it = it->next) count += pwi_is_beside(it, place);
  return count >= TICKS_MAX && !find(shard, place);
}

static struct pwi_aggregate *open_aggregate(struct pwi_shard *shard, const struct pwi_aggregate *place) {
  struct pwi_aggregate *aggregate = find(shard, place);
  if (aggregate) return aggregate;
  forget_idle(shard, place);
  aggregate = pwi_alloc_zero(1, sizeof *aggregate);
  if (!aggregate) return NULL;
  *aggregate = *place;
  if (inherit(shard, aggregate) || recall(shard, aggregate)) {
    destroy(aggregate);
    return NULL;
  }
  aggregate->next = shard->aggregates;
  shard->aggregates = aggregate;
  return aggregate;
}

/* Without memory a member that has returned is waited for until its next part. */
void pwi_aggregate_examine(struct pwi_shard *shard) {
  for (struct pwi_aggregate *it = shard->aggregates; it; it = it->next) {
    pawl_status status = recall(shard, it);
    (void)status;
    drop_early_of_the_dead(shard, it);
    examine(shard, it);
  }
}

/* Returns true if pushes to the vector may be summed. */
static bool can_sum(const struct pwi_vector *vector) {
  if (vector->rule) return !vector->is_hollow && vector->rule->rule.function->flags & PAWL_FUNCTION_SUMS;
  return vector->apply == PWI_APPLY_ADD && !vector->is_unknown && !vector->is_hollow;
}

static bool is_summable(const struct pwi_vector *vector, const struct pwi_request *request) {
  size_t row_bytes = pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH);
  return !request->refusal && pawl_range_contains(request->arc, request->terms.claim) && can_sum(vector) &&
         pwi_values_match(vector, request, (size_t)request->terms.rows, row_bytes);
}

/* Keeps a list that shall be kept, because united bundles do not look up their lists. */
static bool keep_list(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request) {
  struct pwi_named named;
  struct pwi_served served;
  return pwi_serve_names(shard, vector, request, &named, &served);
}

static void append(struct pwi_aggregate *aggregate, struct pwi_bundle *bundle) {
  struct pwi_bundle **last = &aggregate->bundles;
  while (*last) last = &(*last)->next;
  bundle->next = NULL;
  *last = bundle;
}

static struct pwi_bundle *matching(const struct pwi_aggregate *aggregate, const struct pwi_request *request) {
  struct pwi_bundle *bundle = aggregate->bundles;
  while (bundle && !pwi_bundle_matches(bundle, request)) bundle = bundle->next;
  return bundle;
}

static pawl_status take_rows(struct pwi_shard *shard, const struct pwi_vector *vector, struct pwi_aggregate *aggregate,
                             const struct pwi_request *request, struct pwi_bundle **bundle_out) {
  struct pwi_bundle *bundle = matching(aggregate, request);
  if (bundle) {
    pwi_bundle_add(bundle, request);
    *bundle_out = bundle;
    return PAWL_OK;
  }
  size_t bytes = (size_t)request->terms.rows * pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH);
  pawl_status status = pwi_bundle_create(shard, request, bytes, &bundle);
  if (status) return status;
  append(aggregate, bundle);
  *bundle_out = bundle;
  return PAWL_OK;
}

static bool is_member(const struct pwi_shard *shard, struct pwi_vector_id group, struct pwi_sender sender) {
  size_t count = 0;
  const struct pwi_membership_member *members = pwi_membership_members(shard->membership, group, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id == sender.id) return true;
  return false;
}

/* The caller has made room. */
static struct aggregate_part *add_part(struct pwi_aggregate *aggregate, const struct pwi_request *request) {
  struct aggregate_part *part = &aggregate->parts[aggregate->count++];
  *part = (struct aggregate_part){.sender = request->sender,
                                  .task = request->task,
                                  .settled = request->terms.settled,
                                  .claim = request->terms.claim,
                                  .wants_rows = request->terms.kind == PWI_REQUEST_PUSHPULL && request->terms.rows > 0,
                                  .waiter = request->waiter};
  return part;
}

/* A request that came again is answered over the later connection. What an earlier one brings after it, because this
 * server was stopped or did not read it, must not take the answer along when that connection ends. */
static void wait_over(struct pwi_waiter *waiter, struct pwi_waiter again) {
  if (again.owner >= waiter->owner) *waiter = again;
}

/* Handles the resend of a known part. */
static enum pwi_aggregate_action take_again(struct pwi_vector *vector, struct aggregate_part *part,
                                            const struct pwi_request *request, bool is_due) {
  if (!part->is_in_sum && !part->is_echo) {
    /* It was answered already, or refused. */
    bool was_refused = pwi_refusals_find(&vector->refusals, request->sender, request->task, request->terms.claim);
    if (is_due || part->is_told || was_refused) return PWI_AGGREGATE_ALONE;
  }
  wait_over(&part->waiter, request->waiter);
  return PWI_AGGREGATE_WAITS;
}

/* Returns true if the list must be sent first, because its signature is unknown. */
static bool is_unknown_list(struct pwi_shard *shard, const struct pwi_vector *vector,
                            const struct pwi_request *request) {
  return request->terms.keys == PWI_KEYS_SIGNED && !pwi_lists_find(&shard->lists, vector->entry.id, request->signature);
}

/* Adds the rows of a request in `claim`, which is due, to the sum. */
static pawl_status take_piece(struct pwi_shard *shard, const struct pwi_vector *vector, struct pwi_aggregate *aggregate,
                              const struct pwi_request *request, struct pawl_range claim) {
  struct pwi_request piece = *request;
  piece.terms.claim = claim;
  pawl_status status = make_place(aggregate);
  struct pwi_bundle *bundle;
  if (!status) status = take_rows(shard, vector, aggregate, &piece, &bundle);
  if (status) return status;
  struct aggregate_part *part = add_part(aggregate, &piece);
  part->bundle = bundle;
  part->is_in_sum = true;
  part->range = pawl_range_common(claim, request->terms.range);
  return PAWL_OK;
}

/* Adds the pieces of a request that are due and not in the sum yet. Keys whose task was applied before count
 * as contributed. A resend may be cut in another way. The waiting answer is sent with the others.
 * PAWL_INVALID if the request overlaps earlier pieces only in part. If memory runs out, the pieces added so
 * far stay and are found by the resend. */
static pawl_status take_due_pieces(struct pwi_shard *shard, const struct pwi_vector *vector,
                                   struct pwi_aggregate *aggregate, const struct pwi_request *request) {
  struct pwi_clock_pieces pieces;
  struct pwi_request silent = *request;
  struct pawl_range due, claim = request->terms.claim;
  uint64_t at = claim.begin;
  silent.waiter.owner = 0;
  pawl_status status = pwi_clock_walk(&vector->clocks[PWI_TASKS], request->sender, claim, &pieces);
  while (!status && pwi_clock_next_due(&pieces, request->task, &due)) {
    uint64_t here = covered(aggregate, request->sender, 0, due);
    if (due.begin > at) status = count_in(aggregate, request->sender, pawl_range_of(at, due.begin));
    if (!status && here > 0 && here < pawl_range_size(due)) status = PAWL_INVALID;
    if (!status && here == 0) status = take_piece(shard, vector, aggregate, &silent, due);
    at = due.end;
  }
  if (!status && at < claim.end) status = count_in(aggregate, request->sender, pawl_range_of(at, claim.end));
  if (!status) status = make_place(aggregate);
  if (!status) add_part(aggregate, request)->is_echo = true;
  return status;
}

/* Adds a request of which no part is known yet. */
static enum pwi_aggregate_action take_part(struct pwi_shard *shard, struct pwi_vector *vector,
                                           struct pwi_aggregate *aggregate, const struct pwi_request *request,
                                           bool is_due, bool whole) {
  bool sums = is_due && is_summable(vector, request) && keep_list(shard, vector, request);
  pawl_status status = PAWL_OK;
  if (sums && aggregate->count >= PARTS_MAX)
    status = PAWL_NODE_FULL;
  else if (sums)
    status = whole ? take_piece(shard, vector, aggregate, request, request->terms.claim)
                   : take_due_pieces(shard, vector, aggregate, request);
  bool is_full = status == PAWL_NODE_FULL;
  if (is_full || !sums) status = make_place(aggregate);
  if (status) return PWI_AGGREGATE_NO_MEMORY;
  if (is_full || !sums) add_part(aggregate, request)->is_told = !is_due || is_full;
  examine(shard, aggregate);
  if (is_full) return PWI_AGGREGATE_FULL;
  return sums ? PWI_AGGREGATE_WAITS : is_due ? PWI_AGGREGATE_APPLY : PWI_AGGREGATE_ALONE;
}

/* --- early parts ---------------------------------------------------------------------------------------- */

static uint64_t common_size(struct pawl_range a, struct pawl_range b) {
  struct pawl_range common = pawl_range_common(a, b);
  return pawl_range_is_empty(common) ? 0 : pawl_range_size(common);
}

/* Returns true if the predecessor of the request waits here, in earlier ticks, on the whole claim. */
static bool follows(const struct pwi_shard *shard, const struct pwi_aggregate *place,
                    const struct pwi_request *request) {
  struct pawl_range claim = request->terms.claim;
  uint64_t prior = request->terms.prior, size = 0;
  for (const struct pwi_aggregate *it = shard->aggregates; it && prior != 0; it = it->next) {
    if (!pwi_is_beside(it, place) || it->tick >= place->tick) continue;
    size += covered(it, request->sender, prior, claim);
    for (const struct early_part *early = it->early; early; early = early->next)
      if (early->sender.id == request->sender.id && early->task == prior)
        size += common_size(early->bundle->terms.claim, claim);
  }
  return prior != 0 && size >= pawl_range_size(claim);
}

static struct early_part *find_early(const struct pwi_aggregate *aggregate, const struct pwi_request *request) {
  struct early_part *it = aggregate->early;
  while (it && (it->sender.id != request->sender.id || it->task != request->task ||
                !pwi_same_keys(it->bundle->terms.claim, request->terms.claim)))
    it = it->next;
  return it;
}

/* Keeps an early part. Returns false if it cannot be kept; the sender will then resend it. */
static bool keep_early(struct pwi_shard *shard, struct pwi_vector *vector, struct pwi_aggregate *aggregate,
                       const struct pwi_request *request) {
  struct early_part *early = find_early(aggregate, request), **last = &aggregate->early;
  if (early) {
    wait_over(&early->waiter, request->waiter);
    return true;
  }
  if (!is_summable(vector, request)) return false; /* this limits rows to the received values */
  size_t bytes = (size_t)request->terms.rows * pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH);
  if (aggregate->early_count >= EARLY_MAX || aggregate->early_bytes + bytes > EARLY_BYTES) return false;
  if (!keep_list(shard, vector, request)) return false;
  early = pwi_alloc_zero(1, sizeof *early);
  if (!early) return false;
  if (pwi_bundle_create(shard, request, bytes, &early->bundle)) {
    pwi_free(early);
    return false;
  }
  early->sender = request->sender;
  early->task = request->task;
  early->prior = request->terms.prior;
  early->settled = request->terms.settled;
  early->waiter = request->waiter;
  while (*last) last = &(*last)->next;
  *last = early;
  aggregate->early_count++;
  aggregate->early_bytes += bytes;
  return true;
}

/* Handles a request whose predecessor has not been applied. */
static enum pwi_aggregate_action come_early(struct pwi_shard *shard, struct pwi_vector *vector,
                                            const struct pwi_aggregate *place, const struct pwi_request *request) {
  struct pwi_aggregate *aggregate = find(shard, place);
  if ((aggregate && aggregate->is_broken) || !follows(shard, place, request)) return PWI_AGGREGATE_EARLY;
  if (!aggregate && !has_too_many(shard, place)) aggregate = open_aggregate(shard, place);
  return aggregate && keep_early(shard, vector, aggregate, request) ? PWI_AGGREGATE_WAITS : PWI_AGGREGATE_EARLY;
}

/* Moves an early part that is due into the sum. If this is not possible, the sender must resend it. */
static void take_in(struct pwi_shard *shard, struct pwi_vector *vector, struct pwi_aggregate *aggregate,
                    struct early_part *early, bool is_due) {
  struct iovec values;
  struct pwi_request request = pwi_bundle_request(early->bundle, &values);
  if (!is_due || !is_member(shard, aggregate->group, early->sender) || is_unknown_list(shard, vector, &request) ||
      make_place(aggregate)) {
    pwi_aggregate_say(shard, early->waiter, PWI_CODE_NOT_HERE, PAWL_OK);
    return;
  }
  request.sender = early->sender;
  request.task = early->task;
  request.waiter = early->waiter;
  request.terms.settled = early->settled;
  struct pwi_bundle *bundle = matching(aggregate, &request);
  struct aggregate_part *part = add_part(aggregate, &request);
  part->is_in_sum = true;
  part->range = request.terms.range;
  part->bundle = bundle ? bundle : early->bundle;
  if (bundle) {
    pwi_bundle_add(bundle, &request);
    return;
  }
  append(aggregate, early->bundle);
  early->bundle = NULL;
}

/* Moves the early parts that are due into the sum, after a push was applied. */
static void take_in_due(struct pwi_shard *shard, struct pwi_vector *vector, struct pwi_aggregate *aggregate) {
  for (struct early_part **at = &aggregate->early; *at;) {
    struct pwi_clock_claim claim = {(*at)->sender, (*at)->bundle->terms.claim, (*at)->task, (*at)->prior,
                                    shard->is_renewed};
    struct pwi_clock_finding finding;
    pawl_status status = pwi_clock_check(&vector->clocks[PWI_TASKS], &claim, &finding);
    if (!status && finding.verdict == PWI_CLAIM_GAP) {
      at = &(*at)->next;
      continue;
    }
    struct early_part *early = take_out(aggregate, at);
    take_in(shard, vector, aggregate, early, !status && finding.verdict == PWI_CLAIM_DUE && finding.whole);
    free_early(early);
  }
  examine(shard, aggregate);
}

void pwi_aggregates_take_in(struct pwi_shard *shard, const struct pwi_aggregate *place) {
  struct pwi_vector *vector = pwi_shard_vector(shard, place->vector);
  for (struct pwi_aggregate *it = shard->aggregates; it && vector; it = it->next)
    if (it->early && pwi_is_beside(it, place)) take_in_due(shard, vector, it);
}

/* Each push examines all pieces in the ticks before it. A sender whose claims differ from tick to tick leaves
 * a piece in each of these ticks with every push; a sender that claims its whole arc leaves one piece in each
 * tick. */
static bool is_scattered(struct pwi_shard *shard, const struct pwi_aggregate *place, struct pwi_sender sender) {
  size_t all = 0, own = 0;
  for (const struct pwi_aggregate *it = shard->aggregates; it; it = it->next)
    if (pwi_is_beside(it, place) && it->tick < place->tick) all += it->count;
  shard->aggregate_steps += all;
  if (all <= EARLIER_MAX) return false;
  for (const struct pwi_aggregate *it = shard->aggregates; it; it = it->next)
    for (size_t i = 0; pwi_is_beside(it, place) && it->tick < place->tick && i < it->count; i++)
      own += it->parts[i].sender.id == sender.id;
  return own > EARLIER_OWN;
}

/* A push of this tick is due, so its sender has contributed to all earlier ticks. */
static pawl_status count_in_earlier(struct pwi_shard *shard, const struct pwi_aggregate *place,
                                    const struct pwi_request *request) {
  for (struct pwi_aggregate *it = shard->aggregates; it; it = it->next) {
    if (!pwi_is_beside(it, place) || it->tick >= place->tick) continue;
    pawl_status status = count_in(it, request->sender, request->terms.claim);
    if (status) return status;
    examine(shard, it);
  }
  return PAWL_OK;
}

enum pwi_aggregate_action pwi_serve_aggregate(struct pwi_shard *shard, struct pwi_vector *vector,
                                              const struct pwi_request *request, enum pwi_clock_verdict verdict,
                                              bool whole) {
  bool is_due = verdict == PWI_CLAIM_DUE, is_gap = verdict == PWI_CLAIM_GAP;
  struct pwi_aggregate place = place_of(request);
  if (pawl_range_is_empty(request->arc) || !vector->table || !is_member(shard, place.group, request->sender))
    return is_gap ? PWI_AGGREGATE_EARLY : PWI_AGGREGATE_ALONE;
  if (is_gap) return come_early(shard, vector, &place, request);
  if (is_due && is_unknown_list(shard, vector, request)) return PWI_AGGREGATE_ALONE;
  if (is_scattered(shard, &place, request->sender)) return is_due ? PWI_AGGREGATE_FULL : PWI_AGGREGATE_ALONE;
  if (count_in_earlier(shard, &place, request)) return PWI_AGGREGATE_NO_MEMORY;
  if (has_too_many(shard, &place)) return is_due ? PWI_AGGREGATE_FULL : PWI_AGGREGATE_ALONE;
  struct pwi_aggregate *aggregate = open_aggregate(shard, &place);
  if (!aggregate) return PWI_AGGREGATE_NO_MEMORY;
  if (aggregate->is_broken) return PWI_AGGREGATE_ALONE;
  struct aggregate_part *part = part_of(aggregate, request->sender, request->terms.claim);
  if (part) return part->task == request->task ? take_again(vector, part, request, is_due) : PWI_AGGREGATE_ALONE;
  bool is_here = covered(aggregate, request->sender, 0, request->terms.claim) > 0;
  if (is_here && !is_due) return PWI_AGGREGATE_ALONE;
  if (has_too_many_pieces(aggregate, request->sender)) return is_due ? PWI_AGGREGATE_FULL : PWI_AGGREGATE_ALONE;
  return take_part(shard, vector, aggregate, request, is_due, whole && !is_here);
}

/* --- aggregates of relays ------------------------------------------------------------------------------- */

/* Returns true if this push of the contributor may enter the sum of the tick. */
static bool may_enter(const struct pwi_aggregate *aggregate, const struct pwi_contributor *contributor,
                      struct pawl_range claim) {
  if (has_too_many_pieces(aggregate, contributor->sender)) return false;
  if (pwi_is_planted(PWI_PLANTED_RELAY_ONE_KNOWN) || pwi_is_planted(PWI_PLANTED_RELAY_RESENT)) return true;
  return covered(aggregate, contributor->sender, 0, claim) == 0;
}

static pawl_status make_parts(struct pwi_aggregate *aggregate, size_t count) {
  if (aggregate->count + count > PARTS_MAX) return PAWL_NODE_FULL;
  return PWI_GROW(aggregate->parts, aggregate->room, aggregate->count + count) ? PAWL_OK : PAWL_NO_MEMORY;
}

/* The parts of the contributors, and the echo that gets the answer. The caller has made room. */
static void add_relayed(struct pwi_aggregate *aggregate, const struct pwi_request *request, struct pwi_bundle *bundle,
                        const struct pwi_contributor *contributors, size_t count) {
  for (size_t i = 0; i < count; i++) {
    struct aggregate_part *part = add_part(aggregate, request);
    part->sender = contributors[i].sender;
    part->task = contributors[i].task;
    part->settled = contributors[i].settled;
    part->range = pawl_range_common(request->terms.claim, request->terms.range);
    part->waiter.owner = 0;
    part->bundle = bundle;
    part->is_in_sum = true;
  }
  struct aggregate_part *echo = add_part(aggregate, request);
  echo->is_echo = echo->is_of_relay = true;
  echo->bundle = bundle;
}

bool pwi_serve_relayed(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       const struct pwi_contributor *contributors, size_t count, struct pwi_outcome *outcome) {
  struct pwi_aggregate place = place_of(request);
  struct pwi_bundle *bundle;
  if (pawl_range_is_empty(request->arc) || !vector->table || !is_summable(vector, request)) return false;
  if (is_unknown_list(shard, vector, request) || !keep_list(shard, vector, request)) return false;
  if (has_too_many(shard, &place)) return false;
  for (size_t i = 0; i < count; i++)
    if (!is_member(shard, place.group, contributors[i].sender)) return false;
  struct pwi_aggregate *aggregate = open_aggregate(shard, &place);
  if (!aggregate || aggregate->is_broken || aggregate->is_complete) return false;
  for (size_t i = 0; i < count; i++) {
    if (may_enter(aggregate, &contributors[i], request->terms.claim)) continue;
    outcome->next = contributors[i].sender.id;
    outcome->found = contributors[i].task;
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    struct pwi_request push = *request;
    push.sender = contributors[i].sender;
    if (is_scattered(shard, &place, push.sender) || count_in_earlier(shard, &place, &push)) return false;
  }
  if (make_parts(aggregate, count + 1) || take_rows(shard, vector, aggregate, request, &bundle)) return false;
  add_relayed(aggregate, request, bundle, contributors, count);
  examine(shard, aggregate);
  return true;
}
