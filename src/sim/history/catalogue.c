/* The rule `catalogue`: a search for an order of the calls about one name that explains all answers
 * (Wing and Gong, "Testing and verifying concurrent objects", 1993).
 *
 * A vector with this name exists or not; if it does, it has options and perhaps a known id. An order is built
 * from left to right. A call can be next if no other call that is left ended before it began. A call with
 * an unknown outcome either takes effect or is left out. States that were visited in vain are remembered. */
#include <stdio.h>

#include "base/hash.h"
#include "sim/history/inside.h"

#define WINDOW 64 /* most calls between the first that is left and the last that is done */

struct catalogue_state {
  bool exists;
  uint64_t id, options; /* `id` 0: unknown */
  uint32_t incarnation;
};

struct catalogue_search {
  struct pwi_history *history;
  const struct call **calls; /* about one name, in the order of their beginnings */
  size_t count;
  struct pwi_idmap visited;   /* hashes of states that lead nowhere */
  const struct call *culprit; /* the call that the best order so far cannot explain */
  size_t best;
};

/* --- the effect of a call ------------------------------------------------------------------------------- */

static bool is_unknown(const struct call *call) {
  if (call->ended == NEVER) return true;
  switch (call->verb) {
  case PWI_HISTORY_CREATE:
    return call->status != PAWL_OK && call->status != PAWL_EXISTS;
  case PWI_HISTORY_RESTORE:
    return call->status != PAWL_OK && call->status != PAWL_MISMATCH;
  default:
    return call->status != PAWL_OK && call->status != PAWL_NOT_FOUND;
  }
}

static bool is_same(const struct call *call, const struct catalogue_state *state) {
  return !call->id || !state->id || call->id == state->id;
}

/* Of an existing vector. */
static bool restore(const struct call *call, struct catalogue_state *state) {
  if (state->options != call->options || !is_same(call, state)) return false;
  if (call->id) state->id = call->id;
  state->incarnation++;
  return true;
}

/* The call takes effect; false if the state does not permit it. */
static bool take_effect(const struct call *call, struct catalogue_state *state) {
  struct catalogue_state before = *state;
  switch (call->verb) {
  case PWI_HISTORY_LOOK:
    return state->exists && is_same(call, state) && (!call->id || call->incarnation == state->incarnation);
  case PWI_HISTORY_MISS:
    return !state->exists || !state->id || state->id != call->id;
  case PWI_HISTORY_DELETE:
    *state = (struct catalogue_state){0};
    return before.exists;
  default:
    if (before.exists) return call->verb == PWI_HISTORY_RESTORE && restore(call, state);
    *state = (struct catalogue_state){.exists = true, .id = call->id, .options = call->options};
    return true;
  }
}

/* The answer says that the call changed nothing; false if the state contradicts that. */
static bool is_right_refusal(const struct call *call, const struct catalogue_state *state) {
  switch (call->verb) {
  case PWI_HISTORY_CREATE:
    return state->exists;
  case PWI_HISTORY_RESTORE:
    return state->exists && state->options != call->options;
  default:
    return !state->exists;
  }
}

/* --- the search ----------------------------------------------------------------------------------------- */

static bool is_done(size_t first, uint64_t done, size_t i) {
  return i < first || (i - first < WINDOW && done >> (i - first) & 1);
}

static bool can_be_next(const struct catalogue_search *search, size_t first, uint64_t done, size_t i) {
  for (size_t k = first; k < search->count && k < first + WINDOW; k++)
    if (k != i && !is_done(first, done, k) && search->calls[k]->ended < search->calls[i]->began) return false;
  return true;
}

static bool was_visited(struct catalogue_search *search, size_t first, uint64_t done,
                        const struct catalogue_state *state) {
  uint64_t facts[] = {first, done, state->exists, state->id, state->options, state->incarnation};
  uint64_t hash = pwi_hash(facts, sizeof facts, 0) | 1;
  if (pwi_idmap_get(&search->visited, hash)) return true;
  if (pwi_idmap_put(&search->visited, hash, search)) search->history->lacks_memory = true;
  return false;
}

static bool go_on(struct catalogue_search *search, size_t first, uint64_t done, struct catalogue_state state,
                  size_t depth);

static bool try(struct catalogue_search *search, size_t first, uint64_t done, struct catalogue_state state,
                size_t depth, size_t i) {
  const struct call *call = search->calls[i];
  uint64_t now_done = done | UINT64_C(1) << (i - first);
  struct catalogue_state after = state;
  bool unknown = is_unknown(call), may_do = (unknown || !call->status) && take_effect(call, &after);
  bool may_not = unknown || (call->status && is_right_refusal(call, &state));
  if (may_do && go_on(search, first, now_done, after, depth + 1)) return true;
  return may_not && go_on(search, first, now_done, state, depth + 1);
}

static bool go_on(struct catalogue_search *search, size_t first, uint64_t done, struct catalogue_state state,
                  size_t depth) {
  while (done & 1) {
    first++;
    done >>= 1;
  }
  if (first == search->count) return true;
  if (was_visited(search, first, done, &state)) return false;
  for (size_t i = first; i < search->count && i < first + WINDOW; i++) {
    if (is_done(first, done, i) || !can_be_next(search, first, done, i)) continue;
    if (depth >= search->best && !is_unknown(search->calls[i])) {
      search->best = depth;
      search->culprit = search->calls[i];
    }
    if (try(search, first, done, state, depth, i)) return true;
  }
  return false;
}

/* --- names ---------------------------------------------------------------------------------------------- */

/* A call that changes nothing and was not answered says nothing. */
static bool is_ask(const struct call *call) {
  bool is_look = call->verb == PWI_HISTORY_LOOK || call->verb == PWI_HISTORY_MISS;
  return call->verb >= PWI_HISTORY_CREATE && call->name && (!is_look || call->ended != NEVER);
}

/* True if an earlier call is about the same name. */
static bool is_known(const struct pwi_history *history, size_t index) {
  for (size_t i = 0; i < index; i++)
    if (is_ask(&history->calls[i]) && strcmp(history->calls[i].name, history->calls[index].name) == 0) return true;
  return false;
}

static bool check_name(struct pwi_history *history, const struct history_report *report, const char *name) {
  struct catalogue_search search = {.history = history};
  search.calls = pwi_history_alloc(history, history->call_count * sizeof(struct call *));
  if (!search.calls) return true; /* pwi_history_check reports it */
  for (size_t i = 0; i < history->call_count; i++) {
    const struct call *call = &history->calls[i];
    if (is_ask(call) && strcmp(call->name, name) == 0) search.calls[search.count++] = call;
  }
  bool is_fine = go_on(&search, 0, 0, (struct catalogue_state){0}, 0);
  pwi_idmap_fini(&search.visited);
  if (is_fine || history->lacks_memory) return true;
  char how[96];
  snprintf(how, sizeof how, "answered %s, which no order of the calls explains",
           pawl_status_name(search.culprit->status));
  return pwi_history_broken(report, "catalogue", NULL, NULL, search.culprit, how, NULL);
}

bool pwi_history_check_catalogue(struct pwi_history *history, const struct history_report *report) {
  for (size_t i = 0; i < history->call_count; i++)
    if (is_ask(&history->calls[i]) && !is_known(history, i) && !check_name(history, report, history->calls[i].name))
      return false;
  return true;
}
