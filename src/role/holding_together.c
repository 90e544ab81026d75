/* Pushes of a group that are applied as one (OSDI'14 4.4: replication after aggregation).
 *
 * The members of a group each push once in a tick to a vector. Their parts are added up beside the table, in one bundle for
 * all that have the same keys; when every member's part is in, the union of the bundles is applied, all clocks are set with it,
 * and all are answered. So the server function runs once, on the sum, and the members of the chain see one change instead of
 * one for each worker.
 *
 * A part that is in the sum has changed nothing yet: if we are lost, its sender has no answer and sends it again to whoever
 * comes after us. A part that cannot be added up (the function does not allow it, or some of its keys have had it) is applied
 * by itself at once, and counts as in. It too is answered only with the others: so what is not answered is just what our
 * successor has to be told again, and nobody is waited for whose part has been forgotten.
 *
 * PIECES. Where arcs were merged, or a part is too long for one message, it comes as several pieces, each with a claim of its
 * own; and who has cut its part by an older view may claim less of the arc than others. All say of which range of keys the push
 * is, whether they have rows there or not, and a sender is in when its pieces cover that. Where pieces differ the sum is applied
 * range by range, each in the name of those who have a piece there.
 *
 * TICKS. Each tick of an arc is gathered by itself, and on any key they are applied in their order: a part is taken in once what
 * its sender pushed there before has been applied. A member may be ticks ahead of the others (bounded delay, OSDI'14 3.4); what
 * it pushes then is kept as it came, and is taken in when it is due. Ticks that are about different keys do not wait for one
 * another.
 *
 * Those who were answered before we came do not send their part again. So a part that was applied before we came waits for
 * nobody, and somebody whose later push is due counts as in: what it had to say about the tick before has been said.
 *
 * A part of a sender that is not live any more stays in; so that nobody has to wonder whether it took effect, the sum is then
 * applied at once. What it pushed early has taken no effect, and never will. */
#include "role/holding_inside.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "role/holding_bundle.h"
#include "wire/values.h"

#define EARLY_MAX 4096                  /* parts that are kept for one arc; */
#define EARLY_BYTES ((size_t)256 << 20) /* beyond either the sender keeps them */
#define IDLE_MAX 16                     /* ticks of one arc that nobody waits for the end of */

/* One sender's part in the present tick, or a piece of it. */
struct part {
  struct pwi_sender sender;
  uint64_t task, settled;
  struct pawl_range claim;
  struct pawl_range range;  /* in the sum: what the push is about, in the claim; else empty */
  struct pwi_waiter waiter; /* owner 0: nobody to be told now */
  bool is_in_sum;           /* else it was applied by itself */
  bool is_told;             /* it waits for nobody: its sender has its answer */
  bool is_echo;             /* only somebody to be told: what it brought is in another piece */
};

/* A part that is not due yet. */
struct early {
  struct early *next;
  struct pwi_sender sender;
  uint64_t task, prior, settled;
  struct pwi_waiter waiter;
  struct pwi_bundle *bundle;
};

/* One tick on one arc. */
struct pwi_gathering {
  struct pwi_gathering *next;
  struct pwi_vector_id vector, group;
  struct pawl_range arc; /* keys */
  uint64_t tick;
  bool is_complete;
  bool is_broken; /* in this tick everybody is served by itself */
  struct part *parts;
  size_t count, room;
  struct pwi_bundle *bundles;

  struct early *early; /* in the order in which they came */
  size_t early_count, early_bytes;

  /* Being applied: the range that is next, and what is applied there. */
  uint64_t done; /* up to this key */
  struct pawl_range now;
  pawl_status united; /* PAWL_OK, or why the bundles could not be */
  struct pwi_union all;
  struct iovec values;
};

static void free_early(struct early *early) {
  pwi_bundles_destroy(early->bundle);
  pwi_free(early);
}

static void destroy(struct pwi_gathering *gathering) {
  for (struct early *it = gathering->early, *next; it; it = next) {
    next = it->next;
    free_early(it);
  }
  pwi_bundles_destroy(gathering->bundles);
  pwi_union_fini(&gathering->all);
  pwi_free(gathering->parts);
  pwi_free(gathering);
}

static bool same_range(struct pawl_range a, struct pawl_range b) { return a.begin == b.begin && a.end == b.end; }

/* Another tick, or the same, of the same group on the same arc. */
static bool is_beside(const struct pwi_gathering *it, const struct pwi_gathering *other) {
  return it->vector.id == other->vector.id && it->group.id == other->group.id && same_range(it->arc, other->arc);
}

/* What of a gathering tells which it is. */
static struct pwi_gathering place_of(const struct pwi_request *request) {
  return (struct pwi_gathering){
      .vector = request->terms.vector, .group = {request->terms.other}, .arc = request->arc, .tick = request->tick};
}

static struct pwi_gathering *find(const struct pwi_holding *holding, const struct pwi_gathering *place) {
  struct pwi_gathering *it = holding->gatherings;
  while (it && (it->tick != place->tick || !is_beside(it, place))) it = it->next;
  return it;
}

/* How many keys of `claim` the pieces of a sender cover; of the task only, unless that is 0. Pieces do not overlap. */
static uint64_t covered(const struct pwi_gathering *gathering, struct pwi_sender sender, uint64_t task,
                        struct pawl_range claim) {
  uint64_t size = 0;
  for (size_t i = 0; i < gathering->count; i++) {
    const struct part *part = &gathering->parts[i];
    if (part->sender.id != sender.id || part->is_echo || (task != 0 && part->task != task)) continue;
    struct pawl_range common = pawl_range_common(part->claim, claim);
    if (!pawl_range_is_empty(common)) size += pawl_range_size(common);
  }
  return size;
}

/* What the sum is about. */
static struct pawl_range needed(const struct pwi_gathering *gathering) {
  struct pawl_range all = {0, 0};
  for (size_t i = 0; i < gathering->count; i++) {
    struct pawl_range range = gathering->parts[i].range;
    if (pawl_range_is_empty(range)) continue;
    if (pawl_range_is_empty(all)) all = range;
    if (range.begin < all.begin) all.begin = range.begin;
    if (range.end > all.end) all.end = range.end;
  }
  return all;
}

/* Where nothing is added up it is enough to have been here. */
static bool is_in(const struct pwi_gathering *gathering, struct pwi_sender sender, struct pawl_range needs) {
  if (pawl_range_is_empty(needs)) return covered(gathering, sender, 0, gathering->arc) > 0;
  return covered(gathering, sender, 0, needs) >= pawl_range_size(needs);
}

static struct part *part_of(const struct pwi_gathering *gathering, struct pwi_sender sender, struct pawl_range claim) {
  for (size_t i = 0; i < gathering->count; i++)
    if (gathering->parts[i].sender.id == sender.id && same_range(gathering->parts[i].claim, claim))
      return &gathering->parts[i];
  return NULL;
}

/* --- who is awaited --------------------------------------------------------------------------------------------------- */

/* Every member's part is in, or one is of a sender that is no more. */
static void examine(const struct pwi_holding *holding, struct pwi_gathering *gathering) {
  size_t count = 0;
  const struct pwi_roster_group *known = pwi_roster_group(holding->roster, gathering->group);
  const struct pwi_roster_member *members = pwi_roster_members(holding->roster, gathering->group, &count);
  struct pawl_range needs = needed(gathering);
  bool all = known && known->complete;
  if (gathering->count < count) all = false; /* what is found most often is found soonest */
  for (size_t i = 0; i < count && all; i++) all = is_in(gathering, members[i].sender, needs);
  for (size_t i = 0; i < gathering->count && !all; i++)
    all = !pwi_roster_is_live(holding->roster, gathering->parts[i].sender);
  if (all && gathering->count > 0 && !gathering->is_complete) {
    gathering->is_complete = true;
    gathering->done = gathering->arc.begin;
  }
}

static void say(struct pwi_holding *holding, struct pwi_waiter waiter, enum pwi_code code, pawl_status status) {
  struct pwi_outcome outcome = {.code = code, .status = status};
  if (waiter.owner != 0) holding->config.answer(holding->config.context, waiter, &outcome);
}

/* Takes it out of the list; what it has is the caller's. */
static struct early *take_out(struct pwi_gathering *gathering, struct early **at) {
  struct early *early = *at;
  *at = early->next;
  gathering->early_count--;
  gathering->early_bytes -= early->bundle->bytes;
  return early;
}

static void drop_early_of_the_dead(struct pwi_holding *holding, struct pwi_gathering *gathering) {
  for (struct early **at = &gathering->early; *at;) {
    if (pwi_roster_is_live(holding->roster, (*at)->sender)) {
      at = &(*at)->next;
      continue;
    }
    struct early *early = take_out(gathering, at);
    say(holding, early->waiter, PWI_CODE_NOT_HERE, PAWL_OK);
    free_early(early);
  }
}

void pwi_together_examine(struct pwi_holding *holding) {
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next) {
    drop_early_of_the_dead(holding, it);
    examine(holding, it);
  }
}

/* --- parts come ------------------------------------------------------------------------------------------------------- */

/* Nobody waits for the end of the tick. */
static bool is_idle(const struct pwi_gathering *gathering) {
  for (size_t i = 0; i < gathering->count; i++)
    if (!gathering->parts[i].is_told) return false;
  return !gathering->early;
}

static void forget(struct pwi_holding *holding, struct pwi_gathering *gathering) {
  struct pwi_gathering **at = &holding->gatherings;
  while (*at != gathering) at = &(*at)->next;
  *at = gathering->next;
  destroy(gathering);
}

/* Of ticks that nobody waits for, some are kept, for the sake of whoever may still come. */
static void forget_idle(struct pwi_holding *holding, const struct pwi_gathering *place) {
  struct pwi_gathering *oldest = NULL;
  size_t count = 0;
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next) {
    if (!is_beside(it, place) || it->is_complete || !is_idle(it)) continue;
    if (!oldest || it->tick < oldest->tick) oldest = it;
    count++;
  }
  if (count > IDLE_MAX) forget(holding, oldest);
}

static pawl_status make_place(struct pwi_gathering *gathering) {
  if (gathering->count < gathering->room) return PAWL_OK;
  size_t room = gathering->room ? 2 * gathering->room : 8;
  struct part *parts = pwi_resize_array(gathering->parts, room, sizeof *parts);
  if (!parts) return PAWL_NO_MEMORY;
  gathering->parts = parts;
  gathering->room = room;
  return PAWL_OK;
}

/* The sender has nothing to say about this tick on the claim, or has said it before. */
static pawl_status count_in(struct pwi_gathering *gathering, struct pwi_sender sender, struct pawl_range claim) {
  if (covered(gathering, sender, 0, claim) > 0) return PAWL_OK;
  pawl_status status = make_place(gathering);
  if (!status) gathering->parts[gathering->count++] = (struct part){.sender = sender, .claim = claim, .is_told = true};
  return status;
}

/* Whoever has a part in a later tick counts as in. */
static pawl_status inherit(const struct pwi_holding *holding, struct pwi_gathering *gathering) {
  pawl_status status = PAWL_OK;
  for (const struct pwi_gathering *it = holding->gatherings; it && !status; it = it->next)
    for (size_t i = 0; is_beside(it, gathering) && it->tick > gathering->tick && i < it->count && !status; i++)
      if (!it->parts[i].is_echo) status = count_in(gathering, it->parts[i].sender, it->parts[i].claim);
  return status;
}

static struct pwi_gathering *open_gathering(struct pwi_holding *holding, const struct pwi_gathering *place) {
  struct pwi_gathering *gathering = find(holding, place);
  if (gathering) return gathering;
  forget_idle(holding, place);
  gathering = pwi_alloc_zero(1, sizeof *gathering);
  if (!gathering) return NULL;
  *gathering = *place;
  if (inherit(holding, gathering)) {
    destroy(gathering);
    return NULL;
  }
  gathering->next = holding->gatherings;
  holding->gatherings = gathering;
  return gathering;
}

/* Whether pushes may be added up and the sum be applied. */
static bool can_sum(const struct pwi_held *vector) {
  if (vector->rule) return vector->rule->rule.function->flags & PAWL_FUNCTION_SUMS;
  return vector->apply == PWI_APPLY_ADD && !vector->is_unknown;
}

static bool is_summable(const struct pwi_held *vector, const struct pwi_request *request) {
  size_t row_bytes = pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH);
  return !request->refusal && pawl_range_contains(request->arc, request->terms.claim) && can_sum(vector) &&
         pwi_values_match(vector, request, (size_t)request->terms.rows, row_bytes);
}

/* A list that is to be kept is kept now: bundles that are united are not looked up by their lists. */
static bool keep_list(struct pwi_holding *holding, const struct pwi_held *vector, const struct pwi_request *request) {
  struct pwi_named named;
  struct pwi_served served;
  return pwi_serve_names(holding, vector, request, &named, &served);
}

static void append(struct pwi_gathering *gathering, struct pwi_bundle *bundle) {
  struct pwi_bundle **last = &gathering->bundles;
  while (*last) last = &(*last)->next;
  bundle->next = NULL;
  *last = bundle;
}

static struct pwi_bundle *matching(const struct pwi_gathering *gathering, const struct pwi_request *request) {
  struct pwi_bundle *bundle = gathering->bundles;
  while (bundle && !pwi_bundle_matches(bundle, request)) bundle = bundle->next;
  return bundle;
}

static pawl_status take_rows(const struct pwi_held *vector, struct pwi_gathering *gathering,
                             const struct pwi_request *request) {
  struct pwi_bundle *bundle = matching(gathering, request);
  if (bundle) {
    pwi_bundle_add(bundle, request);
    return PAWL_OK;
  }
  size_t bytes = (size_t)request->terms.rows * pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH);
  pawl_status status = pwi_bundle_create(request, bytes, &bundle);
  if (!status) append(gathering, bundle);
  return status;
}

static bool is_member(const struct pwi_holding *holding, struct pwi_vector_id group, struct pwi_sender sender) {
  size_t count = 0;
  const struct pwi_roster_member *members = pwi_roster_members(holding->roster, group, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id == sender.id) return true;
  return false;
}

/* There is a place. */
static struct part *add_part(struct pwi_gathering *gathering, const struct pwi_request *request) {
  struct part *part = &gathering->parts[gathering->count++];
  *part = (struct part){.sender = request->sender,
                        .task = request->task,
                        .settled = request->terms.settled,
                        .claim = request->terms.claim,
                        .waiter = request->waiter};
  return part;
}

/* A part that we have comes again. */
static enum pwi_together take_again(struct pwi_held *vector, struct part *part, const struct pwi_request *request,
                                    bool is_due) {
  if (!part->is_in_sum && !part->is_echo) {
    /* What has its answer already, or was refused. */
    bool was_refused = pwi_refusals_find(&vector->refusals, request->sender, request->task, request->terms.claim);
    if (is_due || part->is_told || was_refused) return PWI_TOGETHER_ALONE;
  }
  part->waiter = request->waiter;
  return PWI_TOGETHER_WAITS;
}

/* A list whose signature is not known here has to be sent first. */
static bool is_unknown_list(struct pwi_holding *holding, const struct pwi_held *vector,
                            const struct pwi_request *request) {
  return request->terms.keys == PWI_KEYS_SIGNED &&
         !pwi_lists_find(&holding->lists, vector->entry.id, request->signature);
}

/* Rows that belong to `claim`, which is due. */
static pawl_status take_piece(const struct pwi_held *vector, struct pwi_gathering *gathering,
                              const struct pwi_request *request, struct pawl_range claim) {
  struct pwi_request piece = *request;
  piece.terms.claim = claim;
  pawl_status status = make_place(gathering);
  if (!status) status = take_rows(vector, gathering, &piece);
  if (status) return status;
  struct part *part = add_part(gathering, &piece);
  part->is_in_sum = true;
  part->range = pawl_range_common(claim, request->terms.range);
  return PAWL_OK;
}

/* What of it is due and not here: some of its keys may have had it before, and those count as in; or it comes again, cut in
 * another way. Whoever waits for it is told with the others. PAWL_INVALID if it was cut in a way that cannot be. Without memory the
 * pieces so far stay, and are found when it comes again. */
static pawl_status take_due_pieces(const struct pwi_held *vector, struct pwi_gathering *gathering,
                                   const struct pwi_request *request) {
  struct pwi_clock_pieces pieces;
  struct pwi_request silent = *request;
  struct pawl_range due, claim = request->terms.claim;
  uint64_t at = claim.begin;
  silent.waiter.owner = 0;
  pawl_status status = pwi_clock_walk(&vector->clocks[PWI_TASKS], request->sender, claim, &pieces);
  while (!status && pwi_clock_next_due(&pieces, request->task, &due)) {
    uint64_t here = covered(gathering, request->sender, 0, due);
    if (due.begin > at) status = count_in(gathering, request->sender, pawl_range_of(at, due.begin));
    if (!status && here > 0 && here < pawl_range_size(due)) status = PAWL_INVALID;
    if (!status && here == 0) status = take_piece(vector, gathering, &silent, due);
    at = due.end;
  }
  if (!status && at < claim.end) status = count_in(gathering, request->sender, pawl_range_of(at, claim.end));
  if (!status) status = make_place(gathering);
  if (!status) add_part(gathering, request)->is_echo = true;
  return status;
}

/* A part of which we have nothing yet. */
static enum pwi_together take_part(struct pwi_holding *holding, struct pwi_held *vector,
                                   struct pwi_gathering *gathering, const struct pwi_request *request, bool is_due,
                                   bool whole) {
  bool sums = is_due && is_summable(vector, request) && keep_list(holding, vector, request);
  pawl_status status = sums && whole ? take_piece(vector, gathering, request, request->terms.claim)
                       : sums        ? take_due_pieces(vector, gathering, request)
                                     : make_place(gathering);
  if (status) return PWI_TOGETHER_NO_MEMORY;
  if (!sums) add_part(gathering, request)->is_told = !is_due;
  examine(holding, gathering);
  return sums ? PWI_TOGETHER_WAITS : is_due ? PWI_TOGETHER_APPLY : PWI_TOGETHER_ALONE;
}

/* --- early ------------------------------------------------------------------------------------------------------------ */

static uint64_t common_size(struct pawl_range a, struct pawl_range b) {
  struct pawl_range common = pawl_range_common(a, b);
  return pawl_range_is_empty(common) ? 0 : pawl_range_size(common);
}

/* Whether all that it has to follow is here, in earlier ticks, and waits. */
static bool follows(const struct pwi_holding *holding, const struct pwi_gathering *place,
                    const struct pwi_request *request) {
  struct pawl_range claim = request->terms.claim;
  uint64_t prior = request->terms.prior, size = 0;
  for (const struct pwi_gathering *it = holding->gatherings; it && prior != 0; it = it->next) {
    if (!is_beside(it, place) || it->tick >= place->tick) continue;
    size += covered(it, request->sender, prior, claim);
    for (const struct early *early = it->early; early; early = early->next)
      if (early->sender.id == request->sender.id && early->task == prior)
        size += common_size(early->bundle->terms.claim, claim);
  }
  return prior != 0 && size >= pawl_range_size(claim);
}

static struct early *find_early(const struct pwi_gathering *gathering, const struct pwi_request *request) {
  struct early *it = gathering->early;
  while (it && (it->sender.id != request->sender.id || it->task != request->task ||
                !same_range(it->bundle->terms.claim, request->terms.claim)))
    it = it->next;
  return it;
}

/* False if it cannot be kept; its sender does that then. */
static bool keep_early(struct pwi_holding *holding, struct pwi_held *vector, struct pwi_gathering *gathering,
                       const struct pwi_request *request) {
  struct early *early = find_early(gathering, request), **last = &gathering->early;
  if (early) {
    early->waiter = request->waiter;
    return true;
  }
  size_t bytes = (size_t)request->terms.rows * pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH);
  if (gathering->early_count >= EARLY_MAX || gathering->early_bytes + bytes > EARLY_BYTES) return false;
  if (!is_summable(vector, request) || !keep_list(holding, vector, request)) return false;
  early = pwi_alloc_zero(1, sizeof *early);
  if (!early) return false;
  if (pwi_bundle_create(request, bytes, &early->bundle)) {
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
  gathering->early_count++;
  gathering->early_bytes += bytes;
  return true;
}

/* What comes before it has not been applied. */
static enum pwi_together come_early(struct pwi_holding *holding, struct pwi_held *vector,
                                    const struct pwi_gathering *place, const struct pwi_request *request) {
  struct pwi_gathering *gathering = find(holding, place);
  if ((gathering && gathering->is_broken) || !follows(holding, place, request)) return PWI_TOGETHER_EARLY;
  if (!gathering) gathering = open_gathering(holding, place);
  return gathering && keep_early(holding, vector, gathering, request) ? PWI_TOGETHER_WAITS : PWI_TOGETHER_EARLY;
}

/* A part whose turn has come. Whoever cannot be taken in has to send it again. */
static void take_in(struct pwi_holding *holding, struct pwi_held *vector, struct pwi_gathering *gathering,
                    struct early *early, bool is_due) {
  struct iovec values;
  struct pwi_request request = pwi_bundle_request(early->bundle, &values);
  if (!is_due || !is_member(holding, gathering->group, early->sender) || is_unknown_list(holding, vector, &request) ||
      make_place(gathering)) {
    say(holding, early->waiter, PWI_CODE_NOT_HERE, PAWL_OK);
    return;
  }
  request.sender = early->sender;
  request.task = early->task;
  request.waiter = early->waiter;
  request.terms.settled = early->settled;
  struct pwi_bundle *bundle = matching(gathering, &request);
  struct part *part = add_part(gathering, &request);
  part->is_in_sum = true;
  part->range = request.terms.range;
  if (bundle) {
    pwi_bundle_add(bundle, &request);
    return;
  }
  append(gathering, early->bundle);
  early->bundle = NULL;
}

/* Something was applied: what had to follow it may be due. */
static void take_in_due(struct pwi_holding *holding, struct pwi_held *vector, struct pwi_gathering *gathering) {
  for (struct early **at = &gathering->early; *at;) {
    struct pwi_clock_claim claim = {(*at)->sender, (*at)->bundle->terms.claim, (*at)->task, (*at)->prior};
    struct pwi_clock_finding finding;
    pawl_status status = pwi_clock_check(&vector->clocks[PWI_TASKS], &claim, &finding);
    if (!status && finding.verdict == PWI_CLAIM_GAP) {
      at = &(*at)->next;
      continue;
    }
    struct early *early = take_out(gathering, at);
    take_in(holding, vector, gathering, early, !status && finding.verdict == PWI_CLAIM_DUE && finding.whole);
    free_early(early);
  }
  examine(holding, gathering);
}

static void take_in_all(struct pwi_holding *holding, const struct pwi_gathering *place) {
  struct pwi_held *vector = pwi_holding_vector(holding, place->vector);
  for (struct pwi_gathering *it = holding->gatherings; it && vector; it = it->next)
    if (it->early && is_beside(it, place)) take_in_due(holding, vector, it);
}

/* A push of this tick is due: nobody has to wait for its sender in earlier ones. */
static pawl_status count_in_earlier(struct pwi_holding *holding, const struct pwi_gathering *place,
                                    const struct pwi_request *request) {
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next) {
    if (!is_beside(it, place) || it->tick >= place->tick) continue;
    pawl_status status = count_in(it, request->sender, request->terms.claim);
    if (status) return status;
    examine(holding, it);
  }
  return PAWL_OK;
}

enum pwi_together pwi_serve_together(struct pwi_holding *holding, struct pwi_held *vector,
                                     const struct pwi_request *request, enum pwi_clock_verdict verdict, bool whole) {
  bool is_due = verdict == PWI_CLAIM_DUE, is_gap = verdict == PWI_CLAIM_GAP;
  struct pwi_gathering place = place_of(request);
  if (pawl_range_is_empty(request->arc) || !vector->table || !is_member(holding, place.group, request->sender))
    return is_gap ? PWI_TOGETHER_EARLY : PWI_TOGETHER_ALONE;
  if (is_gap) return come_early(holding, vector, &place, request);
  if (is_due && is_unknown_list(holding, vector, request)) return PWI_TOGETHER_ALONE;
  if (count_in_earlier(holding, &place, request)) return PWI_TOGETHER_NO_MEMORY;
  struct pwi_gathering *gathering = open_gathering(holding, &place);
  if (!gathering) return PWI_TOGETHER_NO_MEMORY;
  if (gathering->is_broken) return PWI_TOGETHER_ALONE;
  struct part *part = part_of(gathering, request->sender, request->terms.claim);
  if (part) return part->task == request->task ? take_again(vector, part, request, is_due) : PWI_TOGETHER_ALONE;
  bool is_here = covered(gathering, request->sender, 0, request->terms.claim) > 0;
  if (is_here && !is_due) return PWI_TOGETHER_ALONE;
  return take_part(holding, vector, gathering, request, is_due, whole && !is_here);
}

/* --- sums are applied ----------------------------------------------------------------------------------------------------- */

/* Whether everybody who is in the sum is in it on all of the arc. */
static bool is_even(const struct pwi_gathering *gathering) {
  for (size_t i = 0; i < gathering->count; i++) {
    uint64_t size = 0;
    for (size_t j = 0; j < gathering->count; j++)
      if (gathering->parts[j].is_in_sum && gathering->parts[j].sender.id == gathering->parts[i].sender.id)
        size += pawl_range_size(gathering->parts[j].claim);
    if (gathering->parts[i].is_in_sum && size < pawl_range_size(gathering->arc)) return false;
  }
  return true;
}

/* The next range that every piece has all of, or nothing. */
static struct pawl_range next_range(const struct pwi_gathering *gathering) {
  struct pawl_range range = pawl_range_of(gathering->done, gathering->arc.end);
  if (is_even(gathering)) return range;
  for (size_t i = 0; i < gathering->count; i++) {
    struct pawl_range claim = gathering->parts[i].claim;
    if (!gathering->parts[i].is_in_sum) continue;
    if (claim.begin > range.begin && claim.begin < range.end) range.end = claim.begin;
    if (claim.end > range.begin && claim.end < range.end) range.end = claim.end;
  }
  return range;
}

static bool is_stamped(const struct pwi_gathering *gathering, const struct part *part) {
  return part->is_in_sum && pawl_range_has(part->claim, gathering->now.begin);
}

/* The only bundle that has rows, if these are all of the range, and all of its own; else NULL. */
static struct pwi_bundle *only_bundle(const struct pwi_gathering *gathering) {
  struct pwi_bundle *only = gathering->bundles;
  for (struct pwi_bundle *it = gathering->bundles; it; it = it->next) {
    if (it->terms.rows == 0) continue;
    if (only->terms.rows > 0 && only != it) return NULL;
    only = it;
  }
  if (!only || !same_range(only->terms.claim, gathering->now)) return NULL;
  return pawl_range_contains(only->terms.claim, only->terms.range) ? only : NULL;
}

/* All bundles as one list. */
static void unite(struct pwi_holding *holding, struct pwi_gathering *gathering, struct pwi_request *request_out) {
  const struct pwi_held *vector = pwi_holding_vector(holding, gathering->vector);
  struct pwi_union *all = &gathering->all;
  size_t row_bytes = vector ? pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH) : 0;
  all->rows = 0;
  gathering->united = PAWL_NOT_FOUND;
  if (vector) gathering->united = pwi_bundles_unite(holding, gathering->bundles, gathering->now, row_bytes, all);
  request_out->terms = gathering->bundles->terms;
  request_out->terms.keys = PWI_KEYS_LIST;
  request_out->terms.keep = false;
  request_out->terms.rows = all->rows;
  request_out->terms.range = request_out->terms.claim = gathering->now;
  request_out->keys = request_out->encoded = all->keys.memory;
  request_out->encoded_as = (struct pwi_section){.type = PWI_SECTION_KEYS,
                                                 .value_type = PWI_TYPE_U64,
                                                 .count = (uint32_t)all->rows,
                                                 .length = all->rows * sizeof(uint64_t)};
  request_out->value_type = gathering->bundles->value_type;
  gathering->values = (struct iovec){all->sum.memory, all->rows * row_bytes};
  request_out->values = &gathering->values;
  request_out->value_parts = gathering->values.iov_len > 0 ? 1 : 0;
}

struct pwi_gathering *pwi_holding_next_sum(struct pwi_holding *holding, struct pwi_request *request_out) {
  struct pwi_gathering *it = holding->gatherings;
  while (it && !it->is_complete) it = it->next;
  if (!it) return NULL;
  it->now = next_range(it);
  it->united = PAWL_OK;
  struct pwi_bundle *only = only_bundle(it);
  *request_out = (struct pwi_request){.terms = {.vector = it->vector, .claim = it->now}};
  if (only)
    *request_out = pwi_bundle_request(only, &it->values);
  else if (it->bundles)
    unite(holding, it, request_out);
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

size_t pwi_gathering_stamps(const struct pwi_gathering *gathering, struct pwi_stamp *stamps) {
  size_t count = 0;
  for (size_t i = 0; i < gathering->count; i++) {
    if (!is_stamped(gathering, &gathering->parts[i])) continue;
    if (stamps) stamps[count] = (struct pwi_stamp){gathering->parts[i].sender, gathering->parts[i].task};
    count++;
  }
  return count;
}

static pawl_status ready_sum(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                             const struct pwi_gathering *gathering, struct pwi_named *named,
                             struct pwi_served *served) {
  if (!pwi_serve_names(holding, vector, request, named, served)) return PAWL_CORRUPT;
  pawl_status status = pwi_rows_ready(holding, vector, request, named, request->terms.range);
  if (!status && vector->rule && pwi_held_check(holding, vector, request, named, request->terms.range))
    status = PAWL_REFUSED; /* whose part it was is seen when each is served by itself */
  for (size_t i = 0; i < gathering->count && !status; i++)
    if (is_stamped(gathering, &gathering->parts[i]))
      status = pwi_clock_reserve(&vector->clocks[PWI_TASKS], gathering->parts[i].sender, gathering->now);
  return status;
}

/* Rows, then all clocks: nothing fails any more once the first is changed. */
pawl_status pwi_holding_apply_sum(struct pwi_holding *holding, struct pwi_gathering *gathering,
                                  const struct pwi_request *request, struct pwi_served *served) {
  struct pwi_held *vector = pwi_holding_vector(holding, gathering->vector);
  struct pwi_named named;
  *served = (struct pwi_served){.outcome = {.code = PWI_CODE_OK}};
  holding->named = (struct pwi_named){0};
  if (gathering->united) return gathering->united;
  if (pwi_gathering_stamps(gathering, NULL) == 0) return PAWL_OK;
  pawl_status status = ready_sum(holding, vector, request, gathering, &named, served);
  if (status) return status;
  if (vector->rule)
    pwi_held_apply(holding, vector, request, &named, request->terms.range);
  else
    pwi_rows_apply(holding, vector, request, &named, request->terms.range, vector->apply);
  for (size_t i = 0; i < gathering->count; i++) {
    const struct part *part = &gathering->parts[i];
    if (!is_stamped(gathering, part)) continue;
    status = pwi_clock_set(&vector->clocks[PWI_TASKS], part->sender, gathering->now, part->task);
    assert(status == PAWL_OK);
    vector->pushes++;
    holding->totals.pushes++;
    holding->totals.keys_pushed += named.count;
    holding->totals.bytes_in += named.count * pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH);
  }
  named.has_result = request->result;
  holding->named = named;
  served->effect = PWI_EFFECT_ROWS;
  return PAWL_OK;
}

static bool waits(const struct part *part) { return part->waiter.owner != 0 && !part->is_told; }

void pwi_holding_end_sum(struct pwi_holding *holding, struct pwi_gathering *gathering,
                         void (*tell)(void *context, struct pwi_waiter waiter, uint64_t task), void *context) {
  gathering->done = gathering->now.end;
  if (gathering->done < gathering->arc.end) return; /* the next range is next */
  for (size_t i = 0; i < gathering->count; i++)
    if (waits(&gathering->parts[i])) tell(context, gathering->parts[i].waiter, gathering->parts[i].task);
  struct pwi_gathering place = *gathering;
  if (gathering->early) { /* of somebody who was not waited for */
    gathering->count = 0;
    gathering->is_complete = false;
    pwi_bundles_destroy(gathering->bundles);
    gathering->bundles = NULL;
  } else {
    forget(holding, gathering);
  }
  take_in_all(holding, &place);
}

static void tell_parts(struct pwi_holding *holding, struct pwi_gathering *gathering, enum pwi_code code,
                       pawl_status status) {
  for (size_t i = 0; i < gathering->count; i++)
    if (waits(&gathering->parts[i])) say(holding, gathering->parts[i].waiter, code, status);
}

static void tell_early(struct pwi_holding *holding, struct pwi_gathering *gathering, enum pwi_code code,
                       pawl_status status) {
  while (gathering->early) {
    struct early *early = take_out(gathering, &gathering->early);
    say(holding, early->waiter, code, status);
    free_early(early);
  }
}

/* Everybody who waits is told, also those who would have followed. */
static void tell_all(struct pwi_holding *holding, struct pwi_gathering *gathering, enum pwi_code code,
                     pawl_status status) {
  tell_parts(holding, gathering, code, status);
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next)
    if (is_beside(it, gathering) && it->tick >= gathering->tick) tell_early(holding, it, code, status);
}

void pwi_holding_drop_sum(struct pwi_holding *holding, struct pwi_gathering *gathering, enum pwi_code code,
                          pawl_status status) {
  tell_all(holding, gathering, code, status);
  forget(holding, gathering);
}

void pwi_holding_break_sum(struct pwi_holding *holding, struct pwi_gathering *gathering) {
  tell_all(holding, gathering, PWI_CODE_NOT_HERE, PAWL_OK);
  gathering->count = 0;
  gathering->is_complete = false;
  gathering->is_broken = true;
  pwi_bundles_destroy(gathering->bundles);
  gathering->bundles = NULL;
}

/* --- other ends ----------------------------------------------------------------------------------------------------------- */

void pwi_together_leave(struct pwi_holding *holding, struct pwi_held *vector, struct pawl_range keys,
                        enum pwi_code code, pawl_status status) {
  for (struct pwi_gathering *it = holding->gatherings, *next; it; it = next) {
    next = it->next;
    if (it->vector.id != vector->entry.id.id || pawl_range_is_empty(pawl_range_common(it->arc, keys))) continue;
    pwi_holding_drop_sum(holding, it, code, status);
  }
}

void pwi_together_forget_waiters(struct pwi_holding *holding, uint64_t owner) {
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next) {
    for (size_t i = 0; i < it->count; i++)
      if (it->parts[i].waiter.owner == owner) it->parts[i].waiter.owner = 0;
    for (struct early *early = it->early; early; early = early->next)
      if (early->waiter.owner == owner) early->waiter.owner = 0;
  }
}

void pwi_together_fini(struct pwi_holding *holding) {
  while (holding->gatherings) forget(holding, holding->gatherings);
}
