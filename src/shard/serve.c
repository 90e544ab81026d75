/* Requests: the order of checks, and pushes.
 *
 * Nothing changes before everything that can fail has succeeded: the rows exist and the clock has room. Then
 * values are applied, and then the clock is set. Keys created for a push that is refused after all read as
 * zeros, as before.
 */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"
#include "protocol/contributors.h"
#include "protocol/planted.h"
#include "store/dense.h"
#include "wire/keys.h"

/* --- keys of a request ---------------------------------------------------------------------------------- */

/* Bytes that the memory cap leaves for lists. */
static uint64_t spare_bytes(const struct pwi_shard *shard) {
  uint64_t used = shard->row_bytes + shard->lists.bytes + shard->aggregate_bytes;
  uint64_t most = shard->config.memory_max;
  return used < most ? most - used : 0;
}

/* Returns the kept list with exactly these keys. A wrong signature would lead other senders to wrong keys. */
static bool keep(struct pwi_shard *shard, const struct pwi_request *request, struct pwi_list **list_out) {
  size_t count = (size_t)request->terms.rows;
  const uint64_t *keys = request->keys;
  struct pwi_list *list = pwi_lists_find(&shard->lists, request->terms.vector, request->signature);
  bool same = list && list->count == count && (count == 0 || memcmp(list->keys, keys, count * sizeof *keys) == 0);
  if (!same) {
    if (pwi_keys_signature(keys, count) != request->signature) return false;
    list = pwi_lists_keep(&shard->lists, request->terms.vector, request->signature, keys, count, spare_bytes(shard));
  }
  *list_out = list;
  return true;
}

static bool keys_in(struct pawl_range range, const uint64_t *keys, size_t count) {
  return count == 0 || (pawl_range_has(range, keys[0]) && pawl_range_has(range, keys[count - 1]));
}

bool pwi_serve_names(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                     struct pwi_named *named_out, struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_named named = {.keys = request->keys, .count = (size_t)terms->rows, .slots = &shard->slots};
  shard->slots.layout = 0;
  if (terms->keys == PWI_KEYS_RANGE) named.keys = NULL;
  if (terms->keys == PWI_KEYS_LIST && terms->keep && !keep(shard, request, &named.list)) {
    pwi_served_fail(served, PAWL_INVALID);
    return false;
  }
  if (terms->keys == PWI_KEYS_SIGNED) {
    named.list = pwi_lists_find(&shard->lists, vector->entry.id, request->signature);
    if (!named.list || named.list->count != named.count) {
      shard->totals.wanted++;
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

/* --- numbered requests ---------------------------------------------------------------------------------- */

static void apply_part(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                       const struct pwi_named *named, struct pawl_range part) {
  bool restores = request->terms.kind == PWI_REQUEST_RESTORE;
  if (request->terms.kind == PWI_REQUEST_LINEAR)
    pwi_linear_apply(shard, vector, request, named, part);
  else if (restores && vector->table->state_bytes > 0)
    pwi_vector_restore(shard, vector, request, named, part);
  else if (vector->rule && !restores)
    pwi_vector_apply(shard, vector, request, named, part);
  else
    pwi_rows_apply(shard, vector, request, named, part, restores ? PWI_APPLY_ASSIGN : vector->apply);
}

static void apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                  const struct pwi_named *named, bool whole) {
  struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  struct pwi_clock_pieces pieces;
  struct pawl_range due;
  pawl_status status = PAWL_OK;
  if (whole) {
    apply_part(shard, vector, request, named, request->terms.range);
  } else {
    status = pwi_clock_walk(clock, request->sender, request->terms.claim, &pieces);
    while (status == PAWL_OK && pwi_clock_next_due(&pieces, request->task, &due))
      apply_part(shard, vector, request, named, due);
  }
  if (status == PAWL_OK) status = pwi_clock_set(clock, request->sender, request->terms.claim, request->task);
  assert(status == PAWL_OK);
  pwi_contributed(shard, clock, request, request->sender, request->terms.claim);
}

#define REFUSALS_MAX 65536 /* unsettled refusals of a sender; a client has far fewer pushes in flight */

/* Reports the refused keys, because the push may have been applied to other keys of the claim. */
static void say_refused(const struct pwi_vector *vector, const struct pwi_request *request, pawl_status why,
                        struct pwi_served *served) {
  struct pawl_range keys = pwi_refusals_range(&vector->refusals, request->sender, request->task, request->terms.claim);
  served->outcome =
      (struct pwi_outcome){.code = PWI_CODE_REFUSED, .status = why, .found = keys.begin, .next = keys.end};
}

void pwi_serve_refuse(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      pawl_status why, struct pwi_served *served) {
  /* A sender that never settles its refusals cannot fill the memory; it gets no further. */
  bool has_many =
      vector->refusals.count >= REFUSALS_MAX && pwi_refusals_count(&vector->refusals, request->sender) >= REFUSALS_MAX;
  pawl_status status = has_many ? PAWL_NODE_LIMIT : PAWL_OK;
  if (status == PAWL_OK)
    status = pwi_refusals_record(vector, &vector->clocks[PWI_TASKS], request, request->terms.claim, why);
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  pwi_contributed(shard, &vector->clocks[PWI_TASKS], request, request->sender, request->terms.claim);
  shard->totals.refused++;
  served->effect = PWI_EFFECT_REFUSAL;
  say_refused(vector, request, why, served);
}

/* Asks the function about all due rows before any of them is applied. */
static pawl_status check_rule(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                              const struct pwi_named *named, bool whole) {
  struct pwi_clock_pieces pieces;
  struct pawl_range due;
  if (whole) return pwi_vector_check(shard, vector, request, named, request->terms.range);
  pawl_status status = pwi_clock_walk(&vector->clocks[PWI_TASKS], request->sender, request->terms.claim, &pieces);
  while (status == PAWL_OK && pwi_clock_next_due(&pieces, request->task, &due))
    status = pwi_vector_check(shard, vector, request, named, due);
  return status;
}

static pawl_status make_ready(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                              const struct pwi_named *named, bool whole) {
  bool restores = request->terms.kind == PWI_REQUEST_RESTORE;
  if (request->terms.kind == PWI_REQUEST_LINEAR) return pwi_linear_ready(shard, vector, request, named);
  if (vector->is_unknown && !restores) return PAWL_UNSUPPORTED;
  size_t row_bytes = pwi_vector_pushed_bytes(vector, request->terms.kind);
  if (!pwi_values_match(vector, request, named->count, row_bytes)) return PAWL_MISMATCH;
  pawl_status status = pwi_rows_ready(shard, vector, request, named, request->terms.range);
  if (status == PAWL_OK && vector->rule && !restores) status = check_rule(shard, vector, request, named, whole);
  if (status != PAWL_OK) return status;
  return pwi_clock_reserve(&vector->clocks[PWI_TASKS], request->sender, request->terms.claim);
}

static bool terms_run(const struct pwi_request *request) {
  return request->terms.kind == PWI_REQUEST_LINEAR && pwi_linear_runs(request->operation.kind);
}

static void push(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, bool whole,
                 void *values, struct pwi_served *served) {
  struct pwi_named named;
  pawl_status status = request->refusal;
  if (!status && !pwi_serve_names(shard, vector, request, &named, served)) {
    if (served->outcome.code != PWI_CODE_FAILED) return;
    status = served->outcome.status;
  }
  if (!status) status = make_ready(shard, vector, request, &named, whole);
  if (status != PAWL_OK) {
    pwi_serve_refuse(shard, vector, request, status, served);
    return;
  }
  apply(shard, vector, request, &named, whole);
  bool runs = terms_run(request);
  if (runs) {
    shard->result.origin = request->terms.claim.begin;
    shard->result.range = request->terms.claim;
    pwi_run_keep(vector, request, request->terms.claim, &shard->result);
    served->result = &shard->result;
  }
  named.has_result = whole && request->result && request->terms.kind != PWI_REQUEST_LINEAR;
  shard->named = named;
  served->effect = PWI_EFFECT_ROWS;
  vector->pushes++;
  shard->totals.pushes++;
  shard->totals.keys_pushed += named.count;
  shard->totals.bytes_in += named.count * pwi_vector_pushed_bytes(vector, request->terms.kind);
  pwi_samples_draw(&shard->samples, vector, named.keys, request->terms.range.begin, named.count);
  pwi_served_say(served, PWI_CODE_OK, 0);
  if (runs) pwi_run_answer(shard, vector, request, served);
  if (request->terms.kind == PWI_REQUEST_PUSHPULL) pwi_serve_values(shard, vector, request, &named, values, served);
}

/* The request was applied to every key before. A PUSHPULL returns the present rows. If its sender is beyond its rate
 * now, it asks again later: a failure would mean that nothing was applied. */
static void repeat(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request, void *values,
                   struct pwi_served *served) {
  struct pwi_named named;
  pawl_status refused = pwi_refusals_find(&vector->refusals, request->sender, request->task, request->terms.claim);
  if (refused != PAWL_OK) {
    say_refused(vector, request, refused, served);
  } else if (vector->is_group) {
    pwi_serve_tick(shard, vector, request, false, served);
  } else if (terms_run(request)) {
    pwi_run_answer(shard, vector, request, served);
  } else if (request->terms.kind == PWI_REQUEST_PUSHPULL && request->refusal == PAWL_QUOTA_RATE) {
    pwi_served_say(served, PWI_CODE_NOT_HERE, 0);
  } else if (request->terms.kind == PWI_REQUEST_PUSHPULL && request->refusal) {
    pwi_served_fail(served, request->refusal);
  } else if (request->terms.kind == PWI_REQUEST_PUSHPULL) {
    if (pwi_serve_names(shard, vector, request, &named, served))
      pwi_serve_values(shard, vector, request, &named, values, served);
  }
}

/* Clients claim whole arcs, so their clocks have few pieces. A sender that claims single keys may have this
 * many pieces. */
#define PIECES_MAX ((size_t)256 << 10)

/* Returns true if the sender has so many pieces and the claim lies within one of them, so that it could add
 * more. */
static bool is_fragment(const struct pwi_vector *vector, const struct pwi_request *request) {
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece first;
  const struct pwi_clock *clock = &vector->clocks[PWI_TASKS];
  if (pwi_clock_piece_count(clock, request->sender) < PIECES_MAX) return false;
  if (pwi_clock_walk(clock, request->sender, request->terms.claim, &pieces) != PAWL_OK) return true;
  return pwi_clock_next(&pieces, &first) && !pwi_clock_next(&pieces, &first);
}

/* Returns true if a task of another vector is missing, which the request follows. */
static bool has_gap_elsewhere(const struct pwi_shard *shard, const struct pwi_vector *vector,
                              const struct pwi_request *request, uint64_t *found_out) {
  if (request->refusal) return false;
  bool is_linear = request->terms.kind == PWI_REQUEST_LINEAR;
  return (is_linear && pwi_linear_has_gap(shard, vector, request, found_out)) ||
         pwi_linear_is_unread(shard, request, found_out);
}

static void serve_numbered(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                           void *values, struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_clock_claim claim = {request->sender, terms->claim, request->task, terms->prior, shard->is_renewed};
  struct pwi_clock_finding finding;
  if (!shard->membership || !pwi_membership_is_live(shard->membership, request->sender)) {
    pwi_served_say(served, PWI_CODE_RETIRED, 0);
    return;
  }
  if (vector->refusals.count > 0) pwi_refusals_settle(&vector->refusals, request->sender, terms->settled);
  if (vector->results.count > 0) pwi_results_settle(&vector->results, request->sender, terms->settled);
  pawl_status status = pwi_clock_check(&vector->clocks[PWI_TASKS], &claim, &finding);
  if (status == PAWL_OK && finding.verdict == PWI_CLAIM_DUE && is_fragment(vector, request)) status = PAWL_NODE_LIMIT;
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  if (finding.verdict == PWI_CLAIM_GAP && pwi_is_planted(PWI_PLANTED_SKIP_ORDER)) finding.verdict = PWI_CLAIM_DUE;
  if (pwi_terms_are_aggregate(terms) && finding.verdict != PWI_CLAIM_BROKEN) {
    switch (pwi_serve_aggregate(shard, vector, request, finding.verdict, finding.whole)) {
    case PWI_AGGREGATE_ALONE:
      break;
    case PWI_AGGREGATE_WAITS:
      served->is_deferred = true;
      return;
    case PWI_AGGREGATE_APPLY:
      push(shard, vector, request, finding.whole, values, served);
      served->is_deferred = served->outcome.code == PWI_CODE_OK;
      return;
    case PWI_AGGREGATE_EARLY:
      shard->totals.gaps++;
      pwi_served_say(served, PWI_CODE_GAP, finding.found);
      return;
    case PWI_AGGREGATE_FULL:
      pwi_serve_refuse(shard, vector, request, PAWL_NODE_FULL, served);
      return;
    case PWI_AGGREGATE_NO_MEMORY:
      pwi_served_fail(served, PAWL_NO_MEMORY);
      return;
    }
  }
  if (finding.verdict == PWI_CLAIM_DUE && has_gap_elsewhere(shard, vector, request, &finding.found))
    finding.verdict = PWI_CLAIM_GAP;
  switch (finding.verdict) {
  case PWI_CLAIM_DUE:
    if (vector->is_group)
      pwi_serve_tick(shard, vector, request, true, served);
    else
      push(shard, vector, request, finding.whole, values, served);
    break;
  case PWI_CLAIM_DONE:
    repeat(shard, vector, request, values, served);
    break;
  case PWI_CLAIM_GAP:
    shard->totals.gaps++;
    pwi_served_say(served, PWI_CODE_GAP, finding.found);
    break;
  case PWI_CLAIM_BROKEN:
    pwi_served_say(served, PWI_CODE_BROKEN, finding.found);
    break;
  }
}

/* An invalid request must use up its number too, because later requests name it as their predecessor. */
static void serve_senseless(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                            pawl_status why, struct pwi_served *served) {
  struct pwi_request refused = *request;
  if (!refused.refusal) refused.refusal = why;
  refused.terms.rows = 0;
  serve_numbered(shard, vector, &refused, NULL, served);
}

/* --- all requests --------------------------------------------------------------------------------------- */

/* Checks the claim. For an invalid claim there is no clock to set. */
static pawl_status check_claim(const struct pwi_vector *vector, const struct pwi_terms *terms) {
  struct pawl_range span = pawl_range_of(0, vector->place.size);
  bool of_group =
      terms->kind == PWI_REQUEST_TICK || terms->kind == PWI_REQUEST_ENTER || terms->kind == PWI_REQUEST_AWAIT;
  if (pawl_range_is_empty(terms->claim) || pawl_range_is_empty(terms->range)) return PAWL_INVALID;
  if (!pawl_range_contains(span, terms->claim) || !pawl_range_contains(terms->claim, terms->range))
    return PAWL_OUT_OF_SPAN;
  if (terms->kind == PWI_REQUEST_COLLECT) return PAWL_OK;
  if (of_group != vector->is_group) return PAWL_INVALID;
  return of_group && !pawl_range_has(terms->claim, vector->group_key) ? PAWL_INVALID : PAWL_OK;
}

/* Checks that the number of rows is possible. */
static pawl_status check_rows(const struct pwi_vector *vector, const struct pwi_terms *terms) {
  if (vector->is_group || terms->kind == PWI_REQUEST_COLLECT) return PAWL_OK;
  if (terms->rows > SIZE_MAX) return PAWL_INVALID;
  if (terms->kind == PWI_REQUEST_SCAN) return terms->rows > 0 ? PAWL_OK : PAWL_INVALID;
  if (terms->keys != PWI_KEYS_RANGE) return terms->rows <= pawl_range_size(terms->range) ? PAWL_OK : PAWL_INVALID;
  return terms->rows == pawl_range_size(terms->range) ? PAWL_OK : PAWL_INVALID;
}

pawl_status pwi_shard_inspect(const struct pwi_shard *shard, const struct pwi_request *request) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, request->terms.vector);
  enum pwi_request_kind kind = request->terms.kind;
  if (!vector || check_claim(vector, &request->terms)) return PAWL_OK; /* such a request needs no memory */
  pawl_status status = check_rows(vector, &request->terms);
  if (status || vector->is_group || !pwi_request_has_rows(kind) || kind == PWI_REQUEST_LINEAR) return status;
  if (vector->is_unknown && kind != PWI_REQUEST_RESTORE) return PAWL_UNSUPPORTED;
  if (request->operand) return pwi_operand_check(vector, request);
  size_t row_bytes = pwi_vector_pushed_bytes(vector, kind);
  return pwi_values_match(vector, request, (size_t)request->terms.rows, row_bytes) ? PAWL_OK : PAWL_MISMATCH;
}

static struct pwi_vector *find_vector(struct pwi_shard *shard, struct pwi_vector_id id) {
  if (!shard->recent || shard->recent->entry.id.id != id.id) shard->recent = pwi_shard_vector(shard, id);
  return shard->recent;
}

void pwi_shard_serve(struct pwi_shard *shard, const struct pwi_request *request, void *values,
                     struct pwi_served *served_out) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_vector *vector = find_vector(shard, terms->vector);
  shard->named = (struct pwi_named){0};
  *served_out = (struct pwi_served){.outcome = {.code = PWI_CODE_OK}};
  pawl_status status = vector ? check_claim(vector, terms) : PAWL_NOT_FOUND;
  pawl_status rows = status == PAWL_OK ? check_rows(vector, terms) : PAWL_OK;
  bool is_numbered = pwi_request_is_numbered(terms->kind);
  if (status != PAWL_OK || (rows != PAWL_OK && !is_numbered))
    pwi_served_fail(served_out, status != PAWL_OK ? status : rows);
  else if (!pwi_rangeset_contains(&vector->clocks[PWI_TASKS].held, terms->claim) ||
           pwi_shard_is_frozen(shard, vector, terms->claim))
    pwi_served_say(served_out, PWI_CODE_NOT_HERE, 0);
  else if (rows != PAWL_OK)
    serve_senseless(shard, vector, request, rows, served_out);
  else if (is_numbered)
    serve_numbered(shard, vector, request, values, served_out);
  else if (vector->is_hollow)
    pwi_served_fail(served_out, PAWL_NODE_FULL);
  else if (terms->kind == PWI_REQUEST_PULL)
    pwi_serve_pull(shard, vector, request, values, served_out);
  else if (terms->kind == PWI_REQUEST_AWAIT)
    pwi_serve_await(shard, vector, request, served_out);
  else if (terms->kind == PWI_REQUEST_COLLECT)
    pwi_serve_collect(shard, vector, request, served_out);
  else if (terms->kind == PWI_REQUEST_SCAN)
    pwi_serve_scan(shard, vector, request, values, served_out);
  else if (terms->kind == PWI_REQUEST_FOLD)
    pwi_serve_fold(shard, vector, request, served_out);
  else
    pwi_served_fail(served_out, PAWL_INVALID);
  if (terms->kind == PWI_REQUEST_LINEAR) served_out->outcome.next = terms->claim.end;
}

/* --- aggregates of relays ------------------------------------------------------------------------------- */

/* Returns true if every key of the claim lacks this push, and has the one before it. */
static bool is_all_due(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                       const struct pwi_contributor *contributor) {
  struct pwi_request push = *request;
  struct pwi_clock_claim claim = {contributor->sender, request->terms.claim, contributor->task, contributor->prior,
                                  shard->is_renewed};
  struct pwi_clock_finding finding;
  push.sender = contributor->sender;
  if (!pwi_membership_is_live(shard->membership, contributor->sender)) return false;
  if (pwi_clock_check(&vector->clocks[PWI_TASKS], &claim, &finding)) return false;
  if (pwi_is_planted(PWI_PLANTED_RELAY_ONE_KNOWN) && finding.verdict == PWI_CLAIM_DONE) return true;
  return finding.verdict == PWI_CLAIM_DUE && finding.whole && !is_fragment(vector, &push);
}

bool pwi_shard_serve_relayed(struct pwi_shard *shard, const struct pwi_request *request,
                             const struct pwi_contributor *contributors, size_t count,
                             struct pwi_outcome *outcome_out) {
  const struct pwi_terms *terms = &request->terms;
  struct pwi_vector *vector = find_vector(shard, terms->vector);
  *outcome_out = (struct pwi_outcome){.code = PWI_CODE_DIRECT};
  if (!vector || vector->is_group || !shard->membership || !pwi_terms_are_aggregate(terms)) return false;
  if (check_claim(vector, terms) || check_rows(vector, terms)) return false;
  if (!pwi_rangeset_contains(&vector->clocks[PWI_TASKS].held, terms->claim) ||
      pwi_shard_is_frozen(shard, vector, terms->claim))
    return false;
  for (size_t i = 0; i < count; i++) {
    if (is_all_due(shard, vector, request, &contributors[i])) continue;
    outcome_out->next = contributors[i].sender.id;
    outcome_out->found = contributors[i].task;
    return false;
  }
  return pwi_serve_relayed(shard, vector, request, contributors, count, outcome_out);
}
