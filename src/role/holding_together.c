/* Pushes of a group that are applied as one (OSDI'14 4.4: replication after aggregation).
 *
 * The members of a group each push once in a tick to a vector. Their parts are added up beside the table; when every member's
 * is in, the sum is applied, all clocks are set with it, and all are answered. So the table, and the members of the chain, see
 * one change instead of one for each worker.
 *
 * A part that is in the sum has changed nothing yet: if we are lost, its sender has no answer and sends it again to whoever
 * comes after us. A part that cannot be added up (other keys than the first one's, or a piece of the arc only) is applied by
 * itself at once, and counts as in. It too is answered only with the others: so what is not answered is just what our
 * successor has to be told again, and nobody is waited for whose part has been forgotten.
 *
 * Those who were answered before we came do not send their part again. So a part that was applied before we came waits for
 * nobody, and somebody whose later push is due counts as in: what it had to say about the tick before has been said.
 *
 * A part of a sender that is not live any more stays in; so that nobody has to wonder whether it took effect, the sum is then
 * applied at once. */
#include "role/holding_inside.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/pages.h"
#include "store/kernels.h"

/* One sender's part in the present tick. */
struct part {
  struct pwi_sender sender;
  uint64_t task, settled;
  struct pwi_waiter waiter; /* owner 0: nobody to be told now */
  bool is_in_sum;           /* else it was applied by itself */
  bool is_told;             /* it waits for nobody: its sender has its answer */
};

struct pwi_gathering {
  struct pwi_gathering *next;
  struct pwi_vector_id vector, group;
  struct pawl_range arc; /* keys */
  uint64_t tick;
  bool is_complete;
  bool is_broken; /* in this tick everybody is served by itself */
  struct part *parts;
  size_t count, room;

  /* The sum, and which keys it is of: those of the first part. */
  bool has_sum;
  struct pwi_terms terms;
  uint64_t signature;
  uint8_t value_type;
  uint64_t *keys; /* LIST */
  struct pwi_pages encoded;
  struct pwi_section encoded_as;
  struct pwi_pages sum;
  size_t sum_bytes;
  struct iovec values;
};

static void destroy(struct pwi_gathering *gathering) {
  pwi_free(gathering->parts);
  pwi_free(gathering->keys);
  pwi_pages_fini(&gathering->sum);
  pwi_pages_fini(&gathering->encoded);
  pwi_free(gathering);
}

static struct pwi_gathering *find(const struct pwi_holding *holding, struct pwi_vector_id vector, uint64_t group,
                                  struct pawl_range arc) {
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next)
    if (it->vector.id == vector.id && it->group.id == group && it->arc.begin == arc.begin && it->arc.end == arc.end)
      return it;
  return NULL;
}

static struct part *part_of(const struct pwi_gathering *gathering, struct pwi_sender sender) {
  for (size_t i = 0; i < gathering->count; i++)
    if (gathering->parts[i].sender.id == sender.id) return &gathering->parts[i];
  return NULL;
}

/* --- who is awaited --------------------------------------------------------------------------------------------------- */

/* Every member's part is in, or one is of a sender that is no more. */
static void examine(const struct pwi_holding *holding, struct pwi_gathering *gathering) {
  size_t count = 0;
  const struct pwi_roster_group *known = pwi_roster_group(holding->roster, gathering->group);
  const struct pwi_roster_member *members = pwi_roster_members(holding->roster, gathering->group, &count);
  bool all = known && known->complete;
  for (size_t i = 0; i < count && all; i++) all = part_of(gathering, members[i].sender) != NULL;
  for (size_t i = 0; i < gathering->count && !all; i++)
    all = !pwi_roster_is_live(holding->roster, gathering->parts[i].sender);
  if (all && gathering->count > 0) gathering->is_complete = true;
}

void pwi_together_examine(struct pwi_holding *holding) {
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next) examine(holding, it);
}

/* --- parts come ------------------------------------------------------------------------------------------------------- */

static bool same_keys(const struct pwi_gathering *gathering, const struct pwi_request *request) {
  const struct pwi_terms *ours = &gathering->terms, *terms = &request->terms;
  if (ours->keys != terms->keys || ours->rows != terms->rows || ours->range.begin != terms->range.begin ||
      ours->range.end != terms->range.end || gathering->value_type != request->value_type)
    return false;
  if (terms->keys == PWI_KEYS_SIGNED) return gathering->signature == request->signature;
  if (terms->keys == PWI_KEYS_RANGE) return true;
  return memcmp(gathering->keys, request->keys, (size_t)terms->rows * sizeof *request->keys) == 0;
}

/* The first part says which keys the sum is of, and is copied. */
static pawl_status begin_sum(struct pwi_gathering *gathering, const struct pwi_request *request, size_t bytes) {
  size_t rows = (size_t)request->terms.rows;
  pawl_status status = pwi_pages_grow(&gathering->sum, bytes + 1);
  if (status) return status;
  if (request->terms.keys == PWI_KEYS_LIST) {
    uint64_t *keys = pwi_resize_array(gathering->keys, rows + 1, sizeof *keys);
    if (!keys) return PAWL_NO_MEMORY;
    gathering->keys = keys;
    status = pwi_pages_grow(&gathering->encoded, request->encoded_as.length + 1);
    if (status) return status;
    if (rows > 0) memcpy(keys, request->keys, rows * sizeof *keys);
    if (request->encoded_as.length > 0) memcpy(gathering->encoded.memory, request->encoded, request->encoded_as.length);
    gathering->encoded_as = request->encoded_as;
  }
  gathering->terms = request->terms;
  gathering->signature = request->signature;
  gathering->value_type = request->value_type;
  gathering->sum_bytes = bytes;
  char *place = gathering->sum.memory;
  for (size_t i = 0; i < request->value_parts; i++) {
    memcpy(place, request->values[i].iov_base, request->values[i].iov_len);
    place += request->values[i].iov_len;
  }
  gathering->has_sum = true;
  return PAWL_OK;
}

/* Parts of the values may be cut anywhere, also within one value. */
static void add_to_sum(struct pwi_gathering *gathering, const struct pwi_request *request) {
  size_t size = pwi_scalar_size((enum pwi_scalar)request->value_type), at = 0, held = 0;
  pwi_apply_array *add = pwi_row_kernels_best()->array[PWI_APPLY_ADD][request->value_type - 1];
  char *sum = gathering->sum.memory, cut[sizeof(uint64_t)] = {0};
  assert(size <= sizeof cut);
  for (size_t i = 0; i < request->value_parts; i++) {
    const char *bytes = request->values[i].iov_base;
    size_t left = request->values[i].iov_len;
    if (held > 0) {
      size_t lacking = size - held, taken = left < lacking ? left : lacking;
      memcpy(cut + held, bytes, taken);
      held += taken;
      bytes += taken;
      left -= taken;
      if (held < size) continue;
      add(sum + at, cut, 1);
      at += size;
    }
    add(sum + at, bytes, left / size);
    at += left / size * size;
    held = left % size;
    memcpy(cut, bytes + (left - held), held);
  }
}

static void begin_tick(struct pwi_gathering *gathering, uint64_t tick) {
  gathering->tick = tick;
  gathering->count = 0;
  gathering->has_sum = gathering->is_complete = gathering->is_broken = false;
}

static struct pwi_gathering *open_gathering(struct pwi_holding *holding, const struct pwi_request *request) {
  struct pwi_gathering *gathering = find(holding, request->terms.vector, request->terms.other, request->arc);
  if (gathering) return gathering;
  gathering = pwi_alloc_zero(1, sizeof *gathering);
  if (!gathering) return NULL;
  gathering->vector = request->terms.vector;
  gathering->group.id = request->terms.other;
  gathering->arc = request->arc;
  gathering->tick = request->tick;
  gathering->next = holding->gatherings;
  holding->gatherings = gathering;
  return gathering;
}

/* Whether pushes may be added up and the sum be applied. */
static bool can_sum(const struct pwi_held *vector) {
  if (vector->rule) return vector->rule->rule.function->flags & PAWL_FUNCTION_SUMS;
  return vector->apply == PWI_APPLY_ADD && !vector->is_unknown;
}

/* True if the sum takes it. */
static bool take_part(struct pwi_held *vector, struct pwi_gathering *gathering, const struct pwi_request *request,
                      bool whole) {
  size_t row_bytes = pwi_held_pushed_bytes(vector, PWI_REQUEST_PUSH), bytes = (size_t)request->terms.rows * row_bytes;
  bool is_arc = request->terms.claim.begin == request->arc.begin && request->terms.claim.end == request->arc.end;
  if (!whole || !is_arc || request->terms.kind != PWI_REQUEST_PUSH || !can_sum(vector)) return false;
  if (!pwi_values_match(vector, request, (size_t)request->terms.rows, row_bytes)) return false;
  if (!gathering->has_sum) return begin_sum(gathering, request, bytes) == PAWL_OK;
  if (!same_keys(gathering, request)) return false;
  add_to_sum(gathering, request);
  return true;
}

static bool is_member(const struct pwi_holding *holding, const struct pwi_request *request) {
  size_t count = 0;
  struct pwi_vector_id group = {request->terms.other};
  const struct pwi_roster_member *members = pwi_roster_members(holding->roster, group, &count);
  for (size_t i = 0; i < count; i++)
    if (members[i].sender.id == request->sender.id) return true;
  return false;
}

static pawl_status add_part(struct pwi_gathering *gathering, const struct pwi_request *request,
                            struct part **part_out) {
  if (gathering->count == gathering->room) {
    size_t room = gathering->room ? 2 * gathering->room : 8;
    struct part *parts = pwi_resize_array(gathering->parts, room, sizeof *parts);
    if (!parts) return PAWL_NO_MEMORY;
    gathering->parts = parts;
    gathering->room = room;
  }
  *part_out = &gathering->parts[gathering->count++];
  **part_out = (struct part){
      .sender = request->sender, .task = request->task, .settled = request->terms.settled, .waiter = request->waiter};
  return PAWL_OK;
}

/* A part that we have comes again. */
static enum pwi_together take_again(struct pwi_held *vector, struct part *part, const struct pwi_request *request,
                                    bool is_due) {
  if (!part->is_in_sum) {
    /* A piece of the arc that was not in the part before, or what has its answer already. */
    bool was_refused = pwi_refusals_find(&vector->refusals, request->sender, request->task, request->terms.claim);
    if (is_due || part->is_told || was_refused) return PWI_TOGETHER_ALONE;
  }
  part->waiter = request->waiter;
  return PWI_TOGETHER_WAITS;
}

/* A push of a later tick is due, while others are not done with this one: nobody has to wait for its sender any more. */
static enum pwi_together count_in(const struct pwi_holding *holding, struct pwi_gathering *gathering,
                                  const struct pwi_request *request, struct part *part) {
  if (part) return part->is_told ? PWI_TOGETHER_LATER : PWI_TOGETHER_EARLY;
  if (add_part(gathering, request, &part)) return PWI_TOGETHER_NO_MEMORY;
  part->task = request->terms.prior;
  part->is_told = true;
  examine(holding, gathering);
  return PWI_TOGETHER_LATER;
}

/* Nobody waits for the end of the tick. */
static bool is_idle(const struct pwi_gathering *gathering) {
  for (size_t i = 0; i < gathering->count; i++)
    if (!gathering->parts[i].is_told) return false;
  return true;
}

enum pwi_together pwi_serve_together(struct pwi_holding *holding, struct pwi_held *vector,
                                     const struct pwi_request *request, enum pwi_clock_verdict verdict, bool whole) {
  bool is_due = verdict == PWI_CLAIM_DUE;
  if (request->terms.other == 0 || pawl_range_is_empty(request->arc) || !vector->table || !is_member(holding, request))
    return PWI_TOGETHER_ALONE;
  /* A list whose signature is not known here has to be sent first. */
  if (request->terms.keys == PWI_KEYS_SIGNED && is_due &&
      !pwi_lists_find(&holding->lists, vector->entry.id, request->signature))
    return PWI_TOGETHER_ALONE;
  struct pwi_gathering *gathering = open_gathering(holding, request);
  if (!gathering) return PWI_TOGETHER_NO_MEMORY;
  if (request->tick > gathering->tick && is_idle(gathering)) begin_tick(gathering, request->tick);
  if (request->tick < gathering->tick || gathering->is_broken) return PWI_TOGETHER_ALONE;
  struct part *part = part_of(gathering, request->sender);
  if (request->tick > gathering->tick) return count_in(holding, gathering, request, part);
  if (part) return part->task == request->task ? take_again(vector, part, request, is_due) : PWI_TOGETHER_ALONE;
  if (add_part(gathering, request, &part)) return PWI_TOGETHER_NO_MEMORY;
  part->is_told = !is_due;
  part->is_in_sum = is_due && take_part(vector, gathering, request, whole);
  examine(holding, gathering);
  return part->is_told ? PWI_TOGETHER_ALONE : part->is_in_sum ? PWI_TOGETHER_WAITS : PWI_TOGETHER_APPLY;
}

/* --- sums are applied ----------------------------------------------------------------------------------------------------- */

struct pwi_gathering *pwi_holding_next_sum(struct pwi_holding *holding, struct pwi_request *request_out) {
  struct pwi_gathering *it = holding->gatherings;
  while (it && !it->is_complete) it = it->next;
  if (!it) return NULL;
  *request_out = (struct pwi_request){.terms = it->terms,
                                      .tick = it->tick,
                                      .keys = it->keys,
                                      .signature = it->signature,
                                      .value_type = it->value_type,
                                      .encoded = it->encoded.memory,
                                      .encoded_as = it->encoded_as,
                                      .arc = it->arc};
  it->values = (struct iovec){it->sum.memory, it->sum_bytes};
  request_out->values = &it->values;
  request_out->value_parts = it->sum_bytes > 0 ? 1 : 0;
  if (!it->has_sum) {
    request_out->terms.vector = it->vector;
    request_out->terms.claim = it->arc;
  }
  for (size_t i = 0; i < it->count; i++)
    if (it->parts[i].is_in_sum) {
      request_out->sender = it->parts[i].sender;
      request_out->task = it->parts[i].task;
      request_out->terms.settled = it->parts[i].settled;
    }
  return it;
}

size_t pwi_gathering_stamps(const struct pwi_gathering *gathering, struct pwi_stamp *stamps) {
  size_t count = 0;
  for (size_t i = 0; i < gathering->count; i++) {
    if (!gathering->parts[i].is_in_sum) continue;
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
    if (gathering->parts[i].is_in_sum)
      status = pwi_clock_reserve(&vector->clocks[PWI_TASKS], gathering->parts[i].sender, gathering->arc);
  return status;
}

/* Rows, then all clocks: nothing fails any more once the first is changed. */
pawl_status pwi_holding_apply_sum(struct pwi_holding *holding, struct pwi_gathering *gathering,
                                  const struct pwi_request *request, struct pwi_served *served) {
  struct pwi_held *vector = pwi_holding_vector(holding, gathering->vector);
  struct pwi_named named;
  *served = (struct pwi_served){.outcome = {.code = PWI_CODE_OK}};
  holding->named = (struct pwi_named){0};
  if (!gathering->has_sum) return PAWL_OK;
  pawl_status status = ready_sum(holding, vector, request, gathering, &named, served);
  if (status) return status;
  if (vector->rule)
    pwi_held_apply(holding, vector, request, &named, request->terms.range);
  else
    pwi_rows_apply(holding, vector, request, &named, request->terms.range, vector->apply);
  for (size_t i = 0; i < gathering->count; i++) {
    if (!gathering->parts[i].is_in_sum) continue;
    status =
        pwi_clock_set(&vector->clocks[PWI_TASKS], gathering->parts[i].sender, gathering->arc, gathering->parts[i].task);
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

static void forget(struct pwi_holding *holding, struct pwi_gathering *gathering) {
  struct pwi_gathering **at = &holding->gatherings;
  while (*at != gathering) at = &(*at)->next;
  *at = gathering->next;
  destroy(gathering);
}

static bool waits(const struct part *part) { return part->waiter.owner != 0 && !part->is_told; }

void pwi_holding_end_sum(struct pwi_holding *holding, struct pwi_gathering *gathering,
                         void (*tell)(void *context, struct pwi_waiter waiter, uint64_t task), void *context) {
  for (size_t i = 0; i < gathering->count; i++)
    if (waits(&gathering->parts[i])) tell(context, gathering->parts[i].waiter, gathering->parts[i].task);
  forget(holding, gathering);
}

static void tell_all(struct pwi_holding *holding, const struct pwi_gathering *gathering, enum pwi_code code,
                     pawl_status status) {
  struct pwi_outcome outcome = {.code = code, .status = status};
  for (size_t i = 0; i < gathering->count; i++)
    if (waits(&gathering->parts[i]))
      holding->config.answer(holding->config.context, gathering->parts[i].waiter, &outcome);
}

void pwi_holding_drop_sum(struct pwi_holding *holding, struct pwi_gathering *gathering, enum pwi_code code,
                          pawl_status status) {
  tell_all(holding, gathering, code, status);
  forget(holding, gathering);
}

void pwi_holding_break_sum(struct pwi_holding *holding, struct pwi_gathering *gathering) {
  tell_all(holding, gathering, PWI_CODE_NOT_HERE, PAWL_OK);
  begin_tick(gathering, gathering->tick);
  gathering->is_broken = true;
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
  for (struct pwi_gathering *it = holding->gatherings; it; it = it->next)
    for (size_t i = 0; i < it->count; i++)
      if (it->parts[i].waiter.owner == owner) it->parts[i].waiter.owner = 0;
}

void pwi_together_fini(struct pwi_holding *holding) {
  while (holding->gatherings) forget(holding, holding->gatherings);
}
