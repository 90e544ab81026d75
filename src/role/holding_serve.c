/* Requests: the order of checks, and what changes values.
 *
 * Nothing is changed before it is certain that nothing can fail any more: slots are resolved, with new keys created as
 * zeros; the clock has room; then values are applied, straight from where they lie; then the clock is set. Keys that were
 * created for a push that is refused after all read as zeros, as before. */
#include "role/holding_inside.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"
#include "role/planted.h"
#include "store/dense.h"
#include "wire/keys.h"

/* --- values, in parts that may be cut anywhere -------------------------------------------------------------------- */

struct feed {
  const struct iovec *part;
  size_t at; /* in it */
};

static void feed_skip(struct feed *feed, size_t bytes) {
  while (bytes > feed->part->iov_len - feed->at) {
    bytes -= feed->part->iov_len - feed->at;
    feed->part++;
    feed->at = 0;
  }
  feed->at += bytes;
}

static void feed_copy(struct feed *feed, char *to, size_t bytes) {
  while (bytes > 0) {
    size_t left = feed->part->iov_len - feed->at, step = left < bytes ? left : bytes;
    if (step > 0) memcpy(to, (const char *)feed->part->iov_base + feed->at, step);
    to += step;
    bytes -= step;
    feed->at += step;
    if (bytes == 0) return;
    feed->part++;
    feed->at = 0;
  }
}

/* As many whole units of `unit` bytes as lie together, at most `wanted` and at least one: where they are, or, for one that
 * is cut, in `cut`. */
static const char *feed_next(struct feed *feed, size_t unit, size_t wanted, char *cut, size_t *units_out) {
  while (feed->at == feed->part->iov_len) {
    feed->part++;
    feed->at = 0;
  }
  size_t whole = (feed->part->iov_len - feed->at) / unit;
  if (whole == 0) {
    feed_copy(feed, cut, unit);
    *units_out = 1;
    return cut;
  }
  const char *units = (const char *)feed->part->iov_base + feed->at;
  *units_out = whole < wanted ? whole : wanted;
  feed->at += *units_out * unit;
  return units;
}

static bool values_match(const struct pwi_held *vector, const struct pwi_request *request, size_t rows) {
  size_t wanted, sum = 0;
  if (request->value_type != (uint8_t)vector->entry.is.type) return false;
  if (!pwi_mul_size(rows, vector->table->row_bytes, &wanted)) return false;
  for (size_t i = 0; i < request->value_parts; i++)
    if (!pwi_add_size(sum, request->values[i].iov_len, &sum)) return false;
  return sum == wanted;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* What the memory cap leaves for lists. */
static uint64_t spare_bytes(const struct pwi_holding *holding) {
  uint64_t used = holding->row_bytes + holding->lists.bytes, most = holding->config.memory_max;
  return used < most ? most - used : 0;
}

/* The kept list that has just these keys. A signature that is not theirs would lead other senders to wrong keys. */
static bool keep(struct pwi_holding *holding, const struct pwi_request *request, struct pwi_list **list_out) {
  size_t count = (size_t)request->terms.rows;
  const uint64_t *keys = request->keys;
  struct pwi_list *list = pwi_lists_find(&holding->lists, request->terms.vector, request->signature);
  bool same = list && list->count == count && (count == 0 || memcmp(list->keys, keys, count * sizeof *keys) == 0);
  if (!same) {
    if (pwi_keys_signature(keys, count) != request->signature) return false;
    list =
        pwi_lists_keep(&holding->lists, request->terms.vector, request->signature, keys, count, spare_bytes(holding));
  }
  *list_out = list;
  return true;
}

static bool keys_in(struct pawl_range range, const uint64_t *keys, size_t count) {
  return count == 0 || (pawl_range_has(range, keys[0]) && pawl_range_has(range, keys[count - 1]));
}

bool pwi_serve_names(struct pwi_holding *holding, const struct pwi_held *vector, const struct pwi_request *request,
                     struct pwi_named *named_out, struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_named named = {.keys = request->keys, .count = (size_t)terms->rows, .slots = &holding->slots};
  holding->slots.layout = 0;
  if (terms->keys == PWI_KEYS_RANGE) named.keys = NULL;
  if (terms->keys == PWI_KEYS_LIST && terms->keep && !keep(holding, request, &named.list)) {
    pwi_served_fail(served, PAWL_INVALID);
    return false;
  }
  if (terms->keys == PWI_KEYS_SIGNED) {
    named.list = pwi_lists_find(&holding->lists, vector->entry.id, request->signature);
    if (!named.list || named.list->count != named.count) {
      holding->totals.wanted++;
      pwi_served_say(served, PWI_CODE_WANTED, 0);
      return false;
    }
  }
  if (named.list) {
    named.keys = named.list->keys;
    named.slots = &named.list->slots;
  }
  if (terms->keys != PWI_KEYS_RANGE && !keys_in(terms->range, named.keys, named.count)) {
    pwi_served_fail(served, PAWL_OUT_OF_SPAN);
    return false;
  }
  *named_out = named;
  return true;
}

/* --- making ready ------------------------------------------------------------------------------------------------- */

static pawl_status ready_row(struct pwi_holding *holding, size_t bytes) {
  if (bytes <= holding->row_room) return PAWL_OK;
  char *grown = pwi_resize(holding->row, bytes);
  if (!grown) return PAWL_NO_MEMORY;
  holding->row = grown;
  holding->row_room = bytes;
  return PAWL_OK;
}

static pawl_status ready_list(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_named *named) {
  if (pwi_slots_hold(named->slots, vector->table) && named->slots->missing == 0) return PAWL_OK;
  return pwi_holding_resolve(holding, vector, named->keys, named->count, true, named->slots, named->list);
}

static pawl_status ready_dense(struct pwi_holding *holding, struct pwi_held *vector, struct pawl_range range) {
  uint64_t layout = vector->table->layout;
  pwi_holding_set_limit(holding, vector);
  pawl_status status = pwi_dense_reserve(vector->table, range);
  if (status == PAWL_TOO_LARGE && holding->lists.bytes > 0) {
    pwi_lists_drop(&holding->lists, (struct pwi_vector_id){0}, NULL);
    pwi_holding_set_limit(holding, vector);
    status = pwi_dense_reserve(vector->table, range);
  }
  if (vector->table->layout != layout) pwi_holding_count_bytes(holding, vector);
  return status == PAWL_TOO_LARGE ? PAWL_NODE_FULL : status;
}

/* A range of a sparse table goes block by block: how many rows has the one that begins with row `done`? */
static size_t block_size(uint64_t done, uint64_t rows) {
  return rows - done < PWI_BLOCK ? (size_t)(rows - done) : PWI_BLOCK;
}

static pawl_status ready_blocks(struct pwi_holding *holding, struct pwi_held *vector, struct pawl_range range) {
  uint64_t rows = pawl_range_size(range);
  for (uint64_t done = 0; done < rows;) {
    size_t count = block_size(done, rows);
    pawl_status status = pwi_holding_block(holding, range.begin + done, count);
    if (status == PAWL_OK)
      status = pwi_holding_resolve(holding, vector, holding->keys, count, true, &holding->slots, NULL);
    if (status != PAWL_OK) return status;
    done += count;
  }
  return PAWL_OK;
}

static pawl_status make_ready(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                              const struct pwi_named *named) {
  pawl_status status = request->value_parts > 1 ? ready_row(holding, vector->table->row_bytes) : PAWL_OK;
  if (status != PAWL_OK) return status;
  if (named->keys || named->count == 0)
    status = ready_list(holding, vector, named);
  else if (vector->table->is.sparse)
    status = ready_blocks(holding, vector, request->terms.range);
  else
    status = ready_dense(holding, vector, request->terms.range);
  if (status != PAWL_OK) return status;
  return pwi_clock_reserve(&vector->clocks[PWI_TASKS], request->sender, request->terms.claim);
}

/* --- applying: nothing here fails --------------------------------------------------------------------------------- */

static void apply_slots(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_slots *slots,
                        size_t from, size_t count, struct feed *feed) {
  for (size_t done = 0, units; done < count; done += units) {
    const char *rows = feed_next(feed, vector->table->row_bytes, count - done, holding->row, &units);
    pwi_table_scatter(vector->table, vector->apply, slots, from + done, units, rows);
  }
}

static void apply_dense(struct pwi_held *vector, uint64_t first, size_t rows, struct feed *feed) {
  size_t width = vector->table->is.width, size = vector->table->row_bytes / width, count = rows * width;
  char cut[sizeof(uint64_t)];
  for (size_t done = 0, units; done < count; done += units) {
    const char *values = feed_next(feed, size, count - done, cut, &units);
    pawl_status status = pwi_table_range_apply(vector->table, vector->apply, first, done, units, values);
    assert(status == PAWL_OK);
    (void)status;
  }
}

/* All keys are there and so is the room to find them: each block is resolved as it was when they were made. */
static void apply_blocks(struct pwi_holding *holding, struct pwi_held *vector, uint64_t first, uint64_t rows,
                         struct feed *feed) {
  for (uint64_t done = 0; done < rows;) {
    size_t count = block_size(done, rows);
    pawl_status status = pwi_holding_block(holding, first + done, count);
    if (status == PAWL_OK) status = pwi_table_resolve(vector->table, holding->keys, count, false, &holding->slots);
    assert(status == PAWL_OK);
    (void)status;
    apply_slots(holding, vector, &holding->slots, 0, count, feed);
    done += count;
  }
}

/* The part of a push that concerns the keys of `part`. */
static void apply_part(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                       const struct pwi_named *named, struct pawl_range part) {
  struct feed feed = {request->values, 0};
  part = pawl_range_common(part, request->terms.range);
  if (pawl_range_is_empty(part) || named->count == 0) return;
  size_t from = (size_t)(part.begin - request->terms.range.begin), count = (size_t)pawl_range_size(part);
  if (named->keys) {
    from = pwi_first_not_below(named->keys, named->count, part.begin);
    count = pwi_first_not_below(named->keys, named->count, part.end) - from;
  }
  if (from > 0) feed_skip(&feed, from * vector->table->row_bytes);
  if (named->keys)
    apply_slots(holding, vector, named->slots, from, count, &feed);
  else if (vector->table->is.sparse)
    apply_blocks(holding, vector, part.begin, count, &feed);
  else
    apply_dense(vector, part.begin, count, &feed);
}

static void apply(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                  const struct pwi_named *named, bool whole) {
  struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  struct pwi_clock_pieces pieces;
  struct pawl_range due;
  pawl_status status = PAWL_OK;
  if (whole) {
    apply_part(holding, vector, request, named, request->terms.range);
  } else {
    status = pwi_clock_walk(clock, request->sender, request->terms.claim, &pieces);
    while (status == PAWL_OK && pwi_clock_next_due(&pieces, request->task, &due))
      apply_part(holding, vector, request, named, due);
  }
  if (status == PAWL_OK) status = pwi_clock_set(clock, request->sender, request->terms.claim, request->task);
  assert(status == PAWL_OK);
}

/* --- numbered requests -------------------------------------------------------------------------------------------- */

/* A refusal is remembered for each piece of the claim that was due: the rest has had the push, and was told so. */
void pwi_serve_refuse(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                      pawl_status why, struct pwi_served *served) {
  struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  struct pwi_clock_pieces pieces = {0}, again;
  struct pawl_range due;
  size_t count = 0;
  pawl_status status = pwi_clock_reserve(clock, request->sender, request->terms.claim);
  if (status == PAWL_OK) status = pwi_clock_walk(clock, request->sender, request->terms.claim, &pieces);
  again = pieces;
  while (status == PAWL_OK && pwi_clock_next_due(&pieces, request->task, &due)) count++;
  if (status == PAWL_OK) status = pwi_refusals_reserve(&vector->refusals, count);
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  while (pwi_clock_next_due(&again, request->task, &due)) {
    struct pwi_refusal refusal = {request->sender, request->task, due, why};
    pwi_refusals_add(&vector->refusals, &refusal);
  }
  status = pwi_clock_set(clock, request->sender, request->terms.claim, request->task);
  assert(status == PAWL_OK);
  holding->totals.refused++;
  served->outcome = (struct pwi_outcome){.code = PWI_CODE_REFUSED, .status = why};
}

static void push(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request, bool whole,
                 void *values, struct pwi_served *served) {
  struct pwi_named named;
  if (!pwi_serve_names(holding, vector, request, &named, served)) return;
  pawl_status status = values_match(vector, request, named.count) ? PAWL_OK : PAWL_MISMATCH;
  if (status == PAWL_OK) status = make_ready(holding, vector, request, &named);
  if (status == PAWL_INVALID) {
    pwi_served_fail(served, status);
    return;
  }
  if (status != PAWL_OK) {
    pwi_serve_refuse(holding, vector, request, status, served);
    return;
  }
  apply(holding, vector, request, &named, whole);
  vector->pushes++;
  holding->totals.pushes++;
  holding->totals.keys_pushed += named.count;
  holding->totals.bytes_in += named.count * vector->table->row_bytes;
  pwi_samples_draw(&holding->samples, vector, named.keys, request->terms.range.begin, named.count);
  pwi_served_say(served, PWI_CODE_OK, 0);
  if (request->terms.kind == PWI_REQUEST_PUSHPULL) pwi_serve_values(holding, vector, request, &named, values, served);
}

/* Every key has had it. What a PUSHPULL brings back is then what is stored now. */
static void repeat(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                   void *values, struct pwi_served *served) {
  struct pwi_named named;
  pawl_status refused = pwi_refusals_find(&vector->refusals, request->sender, request->task, request->terms.claim);
  if (refused != PAWL_OK) {
    served->outcome = (struct pwi_outcome){.code = PWI_CODE_REFUSED, .status = refused};
  } else if (vector->is_group) {
    pwi_serve_tick(holding, vector, request, false, served);
  } else if (request->terms.kind == PWI_REQUEST_PUSHPULL) {
    if (pwi_serve_names(holding, vector, request, &named, served))
      pwi_serve_values(holding, vector, request, &named, values, served);
  }
}

static void serve_numbered(struct pwi_holding *holding, struct pwi_held *vector, const struct pwi_request *request,
                           void *values, struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_clock_claim claim = {request->sender, terms->claim, request->task, terms->prior};
  struct pwi_clock_finding finding;
  if (!holding->roster || !pwi_roster_is_live(holding->roster, request->sender)) {
    pwi_served_say(served, PWI_CODE_RETIRED, 0);
    return;
  }
  if (vector->refusals.count > 0) pwi_refusals_settle(&vector->refusals, request->sender, terms->settled);
  pawl_status status = pwi_clock_check(&vector->clocks[PWI_TASKS], &claim, &finding);
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  if (finding.verdict == PWI_CLAIM_GAP && pwi_is_planted(PWI_PLANTED_SKIP_ORDER)) finding.verdict = PWI_CLAIM_DUE;
  switch (finding.verdict) {
  case PWI_CLAIM_DUE:
    if (vector->is_group)
      pwi_serve_tick(holding, vector, request, true, served);
    else
      push(holding, vector, request, finding.whole, values, served);
    break;
  case PWI_CLAIM_DONE:
    repeat(holding, vector, request, values, served);
    break;
  case PWI_CLAIM_GAP:
    holding->totals.gaps++;
    pwi_served_say(served, PWI_CODE_GAP, finding.found);
    break;
  case PWI_CLAIM_BROKEN:
    pwi_served_say(served, PWI_CODE_BROKEN, finding.found);
    break;
  }
}

/* --- all requests ------------------------------------------------------------------------------------------------- */

/* Whether the terms go together with one another and with the vector. */
static pawl_status check_terms(const struct pwi_held *vector, const struct pwi_terms *terms) {
  struct pawl_range span = pawl_range_of(0, vector->place.size);
  bool of_group =
      terms->kind == PWI_REQUEST_TICK || terms->kind == PWI_REQUEST_ENTER || terms->kind == PWI_REQUEST_AWAIT;
  if (pawl_range_is_empty(terms->claim) || pawl_range_is_empty(terms->range)) return PAWL_INVALID;
  if (!pawl_range_contains(span, terms->claim) || !pawl_range_contains(terms->claim, terms->range))
    return PAWL_OUT_OF_SPAN;
  if (terms->kind == PWI_REQUEST_COLLECT) return PAWL_OK;
  if (of_group != vector->is_group) return PAWL_INVALID;
  if (of_group) return pawl_range_has(terms->claim, vector->group_key) ? PAWL_OK : PAWL_INVALID;
  if (terms->rows > SIZE_MAX) return PAWL_INVALID;
  if (terms->kind == PWI_REQUEST_SCAN) return terms->rows > 0 ? PAWL_OK : PAWL_INVALID;
  if (terms->keys != PWI_KEYS_RANGE) return PAWL_OK;
  return terms->rows == pawl_range_size(terms->range) ? PAWL_OK : PAWL_INVALID;
}

static struct pwi_held *find_vector(struct pwi_holding *holding, struct pwi_vector_id id) {
  if (!holding->recent || holding->recent->entry.id.id != id.id) holding->recent = pwi_holding_vector(holding, id);
  return holding->recent;
}

void pwi_holding_serve(struct pwi_holding *holding, const struct pwi_request *request, void *values,
                       struct pwi_served *served_out) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_held *vector = find_vector(holding, terms->vector);
  *served_out = (struct pwi_served){.outcome = {.code = PWI_CODE_OK}};
  pawl_status status = vector ? check_terms(vector, terms) : PAWL_NOT_FOUND;
  if (status != PAWL_OK)
    pwi_served_fail(served_out, status);
  else if (!pwi_rangeset_contains(&vector->clocks[PWI_TASKS].held, terms->claim) ||
           pwi_holding_is_frozen(holding, vector, terms->claim))
    pwi_served_say(served_out, PWI_CODE_NOT_HERE, 0);
  else if (pwi_request_is_numbered(terms->kind))
    serve_numbered(holding, vector, request, values, served_out);
  else if (terms->kind == PWI_REQUEST_PULL)
    pwi_serve_pull(holding, vector, request, values, served_out);
  else if (terms->kind == PWI_REQUEST_AWAIT)
    pwi_serve_await(holding, vector, request, served_out);
  else if (terms->kind == PWI_REQUEST_COLLECT)
    pwi_serve_collect(holding, vector, request, served_out);
  else if (terms->kind == PWI_REQUEST_SCAN)
    pwi_serve_scan(holding, vector, request, values, served_out);
  else
    pwi_served_fail(served_out, PAWL_INVALID);
}
