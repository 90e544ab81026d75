/* Chains: versions by position, and the change to a new view. */
#include "server/chain_inside.h"

#include <assert.h>

#include "base/memory.h"

/* --- versions ------------------------------------------------------------------------------------------- */

pawl_status pwi_chain_write_version(struct pwi_chains *chains, const struct pwi_chain *chain) {
  struct pawl_range run;
  if (!chain->is_even || chain->is_filling || chain->version == 0) return PAWL_OK;
  for (uint64_t at = chain->positions.begin; pwi_rangeset_next(&chains->versions.held, at, &run); at = run.end) {
    run = pawl_range_common(run, chain->positions);
    if (pawl_range_is_empty(run)) break;
    pawl_status status = pwi_clock_set(&chains->versions, PWI_CHAIN_SELF, run, chain->version);
    if (status) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_chains_write_versions(struct pwi_chains *chains) {
  for (size_t i = 0; i < chains->count; i++) {
    pawl_status status = pwi_chain_write_version(chains, chains->items[i]);
    if (status) return status;
  }
  return PAWL_OK;
}

void pwi_chain_read_version(const struct pwi_chains *chains, struct pwi_chain *chain) {
  uint64_t lowest = 0, highest = 0;
  if (pwi_clock_min(&chains->versions, PWI_CHAIN_SELF, chain->positions, &lowest) ||
      pwi_clock_max(&chains->versions, PWI_CHAIN_SELF, chain->positions, &highest))
    return;
  chain->version = highest;
  chain->is_even = lowest == highest;
}

uint64_t pwi_chain_lowest(const struct pwi_chains *chains, const struct pwi_chain *chain) {
  uint64_t lowest = chain->version;
  if (!chain->is_even && pwi_clock_min(&chains->versions, PWI_CHAIN_SELF, chain->positions, &lowest)) return 0;
  return lowest;
}

pawl_status pwi_chains_hold(struct pwi_chains *chains, struct pawl_range positions, const struct pwi_chain *filled) {
  struct pwi_clock fresh = {0};
  pawl_status status =
      filled ? pwi_clock_copy(&filled->staged, positions, &fresh) : pwi_clock_init(&fresh, &positions, 1);
  if (!status) status = pwi_clock_absorb(&chains->versions, &fresh);
  pwi_clock_fini(&fresh);
  return status;
}

pawl_status pwi_chain_save_versions(struct pwi_chains *chains, const struct pwi_chain *chain,
                                    struct pwi_writer *writer) {
  struct pwi_clock copy = {0};
  pawl_status status = pwi_chain_write_version(chains, chain);
  if (!status) status = pwi_clock_copy(&chains->versions, chain->positions, &copy);
  if (status) return status;
  size_t size = pwi_clock_encoded_size(&copy);
  void *room = pwi_write_room(writer, size);
  status = room ? pwi_clock_encode(&copy, room, size, &size) : PAWL_NO_MEMORY;
  pwi_clock_fini(&copy);
  return status;
}

pawl_status pwi_chain_load_versions(struct pwi_chain *chain, const void *bytes, size_t size) {
  struct pwi_clock clock;
  pawl_status status = pwi_clock_decode(bytes, size, &clock);
  if (status) return status == PAWL_NO_MEMORY ? status : PAWL_CORRUPT;
  if (!pwi_rangeset_contains(&clock.held, chain->positions)) {
    pwi_clock_fini(&clock);
    return PAWL_CORRUPT;
  }
  pwi_clock_fini(&chain->staged);
  chain->staged = clock;
  return PAWL_OK;
}

pawl_status pwi_chains_drop(struct pwi_chains *chains, struct pawl_range positions) {
  struct pawl_range run;
  for (uint64_t at = positions.begin; at < positions.end && pwi_rangeset_next(&chains->versions.held, at, &run);) {
    run = pawl_range_common(run, positions);
    if (pawl_range_is_empty(run)) break;
    at = run.end;
    pawl_status status = pwi_clock_drop(&chains->versions, run);
    if (status) return status;
  }
  return PAWL_OK;
}

/* --- a view --------------------------------------------------------------------------------------------- */

static void place_in(struct pwi_chain *chain, const struct pwi_arc *arc, size_t place) {
  size_t full = pwi_arc_full(arc);
  chain->since = arc->since;
  chain->place = place;
  chain->is_head = place == 0;
  chain->is_filling = arc->chain[place].filling;
  chain->previous = place > 0 ? arc->chain[place - 1].node.id : 0;
  /* The last full member feeds the first filling one; several are filled one after the other. */
  bool has_next = place + 1 < arc->count && (place + 1 < full || place + 1 == full);
  chain->following = has_next && !chain->is_filling ? arc->chain[place + 1].node.id : 0;
  chain->following_fills = chain->following && arc->chain[place + 1].filling;
  if (chain->is_filling) chain->previous = place == full ? arc->chain[full - 1].node.id : 0;
}

static bool is_same(const struct pwi_chain *chain, struct pawl_range positions, uint64_t since) {
  return chain && chain->since == since && chain->positions.begin == positions.begin &&
         chain->positions.end == positions.end;
}

/* A position has one change of each version, so two entries of a version that overlap are the same. */
static bool is_in_log(const struct pwi_chain *chain, const struct pwi_log_entry *log_entry) {
  struct pawl_range positions = pawl_range_common(log_entry->positions, chain->positions);
  for (size_t i = pwi_fifo_count(&chain->log); i > 0; i--) {
    const struct pwi_log_entry *other = pwi_chain_log_at(chain, i - 1);
    if (other->version < log_entry->version) return false;
    if (other->version == log_entry->version && pawl_range_contains(other->positions, positions)) return true;
  }
  return false;
}

/* Inserts by version: merged arcs bring a sorted log each, and inherited entries may have higher versions
 * than received ones. */
pawl_status pwi_chain_add_to_log(struct pwi_chain *chain, struct pwi_log_entry *log_entry) {
  if (is_in_log(chain, log_entry)) return PAWL_OK;
  struct pwi_log_entry **place = pwi_fifo_push(&chain->log);
  if (!place) return PAWL_NO_MEMORY;
  *place = pwi_log_entry_retain(log_entry);
  for (size_t at = pwi_fifo_count(&chain->log) - 1;
       at > 0 && pwi_chain_log_at(chain, at - 1)->version > log_entry->version; at--) {
    struct pwi_log_entry **later = pwi_fifo_at(&chain->log, at), **sooner = pwi_fifo_at(&chain->log, at - 1);
    *later = *sooner;
    *sooner = log_entry;
  }
  return PAWL_OK;
}

/* Takes over the log entries of an old chain that overlap the new one. */
static pawl_status inherit_log(struct pwi_chain *chain, const struct pwi_chain *old) {
  for (size_t i = 0; i < pwi_fifo_count(&old->log); i++) {
    struct pwi_log_entry *log_entry = pwi_chain_log_at(old, i);
    if (pawl_range_is_empty(pawl_range_common(log_entry->positions, chain->positions))) continue;
    pawl_status status = pwi_chain_add_to_log(chain, log_entry);
    if (status) return status;
  }
  return PAWL_OK;
}

/* Takes over deferred replies. A reply that concerns several new arcs is lost: its change may be confirmed in
 * one of them and lost in another. */
static pawl_status inherit_answers(struct pwi_chain *chain, const struct pwi_chain *old) {
  for (size_t i = 0; i < pwi_fifo_count(&old->deferred); i++) {
    const struct pwi_deferred *waiting = pwi_fifo_at(&old->deferred, i);
    if (!pawl_range_contains(chain->positions, waiting->positions)) continue;
    struct pwi_deferred *place = pwi_fifo_push(&chain->deferred);
    if (!place) return PAWL_NO_MEMORY;
    *place = *waiting;
  }
  return PAWL_OK;
}

static pawl_status inherit(const struct pwi_chains *chains, struct pwi_chain *chain) {
  for (size_t i = 0; i < chains->count; i++) {
    const struct pwi_chain *old = chains->items[i];
    if (pawl_range_is_empty(pawl_range_common(old->positions, chain->positions)) || old->is_filling) continue;
    if (chain->is_filling) continue;
    pawl_status status = inherit_log(chain, old);
    if (!status && chain->is_head) status = inherit_answers(chain, old);
    if (status) return status;
  }
  return PAWL_OK;
}

static pawl_status make_chain(const struct pwi_chains *chains, const struct pwi_view *view, size_t arc, size_t place,
                              struct pwi_chain **chain_out) {
  struct pwi_chain *chain = pwi_alloc_zero(1, chains->chain_size ? chains->chain_size : sizeof *chain);
  if (!chain) return PAWL_NO_MEMORY;
  pwi_fifo_init(&chain->log, sizeof(struct pwi_log_entry *));
  pwi_fifo_init(&chain->deferred, sizeof(struct pwi_deferred));
  chain->positions = pwi_view_arc_range(view, arc);
  chain->is_even = true;
  place_in(chain, &view->arcs[arc], place);
  if (!chain->is_filling) pwi_chain_read_version(chains, chain);
  pawl_status status = inherit(chains, chain);
  if (status) {
    pwi_chain_destroy(chain);
    return status;
  }
  chain->processed = pwi_chain_lowest(chains, chain);
  chain->sent = chain->processed;
  /* Confirmations of another chain do not count in this one; the following member confirms again. */
  chain->confirmed = 0;
  *chain_out = chain;
  return PAWL_OK;
}

/* Replies that this server cannot send any more. */
static void lose_answers(struct pwi_chains *chains, struct pwi_chain *chain) {
  for (; pwi_fifo_count(&chain->deferred) > 0; pwi_fifo_pop(&chain->deferred)) {
    const struct pwi_deferred *waiting = pwi_fifo_at(&chain->deferred, 0);
    chains->answer(chains->context, waiting->reply, true);
  }
}

/* Removes the replies that a new chain has taken over. */
static void leave_answers(struct pwi_chain *old, struct pwi_chain *const *items, size_t count) {
  size_t left = pwi_fifo_count(&old->deferred);
  while (left-- > 0) {
    struct pwi_deferred waiting = *(struct pwi_deferred *)pwi_fifo_at(&old->deferred, 0);
    bool is_taken = false;
    for (size_t i = 0; i < count; i++)
      is_taken |= items[i] != old && items[i]->is_head && pawl_range_contains(items[i]->positions, waiting.positions);
    pwi_fifo_pop(&old->deferred);
    if (is_taken) continue;
    struct pwi_deferred *place = pwi_fifo_push(&old->deferred); /* there is room: one was just removed */
    assert(place);
    *place = waiting;
  }
}

static bool is_among(const struct pwi_chain *chain, struct pwi_chain *const *items, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (items[i] == chain) return true;
  return false;
}

static void replace(struct pwi_chains *chains, struct pwi_chain **items, size_t count) {
  struct pwi_chain **old = chains->items;
  size_t old_count = chains->count;
  chains->items = items;
  chains->count = count;
  for (size_t i = 0; i < old_count; i++) {
    if (is_among(old[i], items, count)) continue;
    leave_answers(old[i], items, count);
    lose_answers(chains, old[i]);
    pwi_chain_destroy(old[i]);
  }
  pwi_free(old);
  for (size_t i = 0; i < count; i++) pwi_chain_settle(chains, items[i]);
}

pawl_status pwi_chains_follow_view(struct pwi_chains *chains, const struct pwi_view *view, uint64_t node) {
  struct pwi_chain **items = pwi_resize_array(NULL, view->arc_count + 1, sizeof *items);
  size_t count = 0;
  pawl_status status = items ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < view->arc_count && !status; i++) {
    size_t place = pwi_arc_find(&view->arcs[i], (struct pwi_node){node});
    if (place == PWI_CHAIN_MAX) continue;
    struct pawl_range positions = pwi_view_arc_range(view, i);
    struct pwi_chain *old = pwi_chains_find(chains, positions.begin);
    if (is_same(old, positions, view->arcs[i].since))
      items[count++] = old;
    else if (!(status = make_chain(chains, view, i, place, &items[count])))
      count++;
  }
  if (!status) {
    replace(chains, items, count);
    return PAWL_OK;
  }
  for (size_t i = 0; i < count; i++)
    if (!is_among(items[i], chains->items, chains->count)) pwi_chain_destroy(items[i]);
  pwi_free(items);
  return status;
}
