#include "role/chain.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "ring/place.h"

#define SELF ((struct pwi_sender){1})
#define LOG_BYTES_MAX ((uint64_t)512 << 20) /* of all parcels that are kept: past this no more pushes are taken */

/* --- life ------------------------------------------------------------------------------------------------------------- */

static struct pwi_parcel *log_at(const struct pwi_chain *chain, size_t index) {
  return *(struct pwi_parcel **)pwi_fifo_at(&chain->log, index);
}

static void destroy(struct pwi_chain *chain) {
  if (!chain) return;
  for (size_t i = 0; i < pwi_fifo_count(&chain->log); i++) pwi_parcel_release(log_at(chain, i));
  pwi_fifo_fini(&chain->log);
  pwi_fifo_fini(&chain->put_off);
  pwi_clock_fini(&chain->staged);
  pwi_free(chain);
}

void pwi_chains_fini(struct pwi_chains *chains) {
  for (size_t i = 0; i < chains->count; i++) destroy(chains->items[i]);
  pwi_free(chains->items);
  pwi_clock_fini(&chains->versions);
  chains->items = NULL;
  chains->count = 0;
}

/* The index of the chain that has the position; the number of chains if none has. */
static size_t index_of(const struct pwi_chains *chains, uint64_t position) {
  size_t low = 0, high = chains->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (chains->items[middle]->positions.end <= position)
      low = middle + 1;
    else
      high = middle;
  }
  return low < chains->count && chains->items[low]->positions.begin <= position ? low : chains->count;
}

struct pwi_chain *pwi_chains_find(const struct pwi_chains *chains, uint64_t position) {
  size_t index = index_of(chains, position);
  return index < chains->count ? chains->items[index] : NULL;
}

/* --- versions --------------------------------------------------------------------------------------------------------- */

/* Brings the clock up to what even chains know, as far as their positions are held still. */
static pawl_status write_version(struct pwi_chains *chains, const struct pwi_chain *chain) {
  struct pawl_range run;
  if (!chain->is_even || chain->is_filling || chain->version == 0) return PAWL_OK;
  for (uint64_t at = chain->positions.begin; pwi_rangeset_next(&chains->versions.held, at, &run); at = run.end) {
    run = pawl_range_common(run, chain->positions);
    if (pawl_range_is_empty(run)) break;
    pawl_status status = pwi_clock_set(&chains->versions, SELF, run, chain->version);
    if (status) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_chains_write_versions(struct pwi_chains *chains) {
  for (size_t i = 0; i < chains->count; i++) {
    pawl_status status = write_version(chains, chains->items[i]);
    if (status) return status;
  }
  return PAWL_OK;
}

static void read_version(const struct pwi_chains *chains, struct pwi_chain *chain) {
  uint64_t lowest = 0, highest = 0;
  if (pwi_clock_min(&chains->versions, SELF, chain->positions, &lowest) ||
      pwi_clock_max(&chains->versions, SELF, chain->positions, &highest))
    return;
  chain->version = highest;
  chain->is_even = lowest == highest;
}

uint64_t pwi_chain_lowest(const struct pwi_chains *chains, const struct pwi_chain *chain) {
  uint64_t lowest = chain->version;
  if (!chain->is_even && pwi_clock_min(&chains->versions, SELF, chain->positions, &lowest)) return 0;
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
  pawl_status status = write_version(chains, chain);
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

/* --- a view ----------------------------------------------------------------------------------------------------------- */

static void place_in(struct pwi_chain *chain, const struct pwi_arc *arc, size_t place) {
  size_t full = pwi_arc_full(arc);
  chain->since = arc->since;
  chain->place = place;
  chain->is_head = place == 0;
  chain->is_filling = arc->chain[place].filling;
  chain->previous = place > 0 ? arc->chain[place - 1].node.id : 0;
  /* One that fills is fed by the last full member; several may fill, each after the other. */
  bool has_next = place + 1 < arc->count && (place + 1 < full || place + 1 == full);
  chain->following = has_next && !chain->is_filling ? arc->chain[place + 1].node.id : 0;
  chain->following_fills = chain->following && arc->chain[place + 1].filling;
  if (chain->is_filling) chain->previous = place == full ? arc->chain[full - 1].node.id : 0;
}

static bool is_same(const struct pwi_chain *chain, struct pawl_range positions, uint64_t since) {
  return chain && chain->since == since && chain->positions.begin == positions.begin &&
         chain->positions.end == positions.end;
}

/* Parcels of the old chain that concern the new one, behind those that it has already. */
static pawl_status inherit_log(struct pwi_chain *chain, const struct pwi_chain *old) {
  for (size_t i = 0; i < pwi_fifo_count(&old->log); i++) {
    struct pwi_parcel *parcel = log_at(old, i);
    if (pawl_range_is_empty(pawl_range_common(parcel->positions, chain->positions))) continue;
    struct pwi_parcel **place = pwi_fifo_push(&chain->log);
    if (!place) return PAWL_NO_MEMORY;
    *place = pwi_parcel_retain(parcel);
    /* Merged arcs have logs of their own, by rising version each: the new one keeps that order. */
    for (size_t at = pwi_fifo_count(&chain->log) - 1; at > 0 && log_at(chain, at - 1)->version > parcel->version;
         at--) {
      struct pwi_parcel **later = pwi_fifo_at(&chain->log, at), **sooner = pwi_fifo_at(&chain->log, at - 1);
      *later = *sooner;
      *sooner = parcel;
    }
  }
  return PAWL_OK;
}

static pawl_status inherit_answers(struct pwi_chain *chain, const struct pwi_chain *old) {
  for (size_t i = 0; i < pwi_fifo_count(&old->put_off); i++) {
    const struct pwi_put_off *waiting = pwi_fifo_at(&old->put_off, i);
    if (!pawl_range_has(chain->positions, waiting->position)) continue;
    struct pwi_put_off *place = pwi_fifo_push(&chain->put_off);
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
  struct pwi_chain *chain = pwi_alloc_zero(1, sizeof *chain);
  if (!chain) return PAWL_NO_MEMORY;
  pwi_fifo_init(&chain->log, sizeof(struct pwi_parcel *));
  pwi_fifo_init(&chain->put_off, sizeof(struct pwi_put_off));
  chain->positions = pwi_view_arc_range(view, arc);
  chain->is_even = true;
  place_in(chain, &view->arcs[arc], place);
  if (!chain->is_filling) read_version(chains, chain);
  pawl_status status = inherit(chains, chain);
  if (status) {
    destroy(chain);
    return status;
  }
  chain->processed = pwi_chain_lowest(chains, chain);
  chain->sent = chain->processed;
  /* What was confirmed in another chain need not be so in this one; the following will tell. */
  chain->confirmed = 0;
  *chain_out = chain;
  return PAWL_OK;
}

/* Answers that nobody can give any more here. */
static void lose_answers(struct pwi_chains *chains, struct pwi_chain *chain) {
  for (; pwi_fifo_count(&chain->put_off) > 0; pwi_fifo_pop(&chain->put_off))
    chains->answer(chains->context, pwi_fifo_at(&chain->put_off, 0), true);
}

/* Those that another chain goes on to wait for are not lost. */
static void leave_answers(struct pwi_chain *old, struct pwi_chain *const *items, size_t count) {
  size_t left = pwi_fifo_count(&old->put_off);
  while (left-- > 0) {
    struct pwi_put_off waiting = *(struct pwi_put_off *)pwi_fifo_at(&old->put_off, 0);
    bool is_taken = false;
    for (size_t i = 0; i < count; i++)
      is_taken |= items[i] != old && items[i]->is_head && pawl_range_has(items[i]->positions, waiting.position);
    pwi_fifo_pop(&old->put_off);
    if (is_taken) continue;
    struct pwi_put_off *place = pwi_fifo_push(&old->put_off); /* there is room: one was just taken out */
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
    destroy(old[i]);
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
    if (!is_among(items[i], chains->items, chains->count)) destroy(items[i]);
  pwi_free(items);
  return status;
}

/* --- the head --------------------------------------------------------------------------------------------------------- */

static bool is_ours(const struct pwi_chain *chain) { return chain->is_head && !chain->is_handing; }

/* The last of the neighbouring chains, from `first` on, that the claim reaches into; SIZE_MAX if they cannot be asked
 * together. */
static size_t last_routed(const struct pwi_chains *chains, const struct pwi_place *place, size_t first,
                          struct pawl_range claim) {
  for (size_t i = first; i < chains->count; i++) {
    const struct pwi_chain *chain = chains->items[i];
    if (!is_ours(chain)) return SIZE_MAX;
    if (i > first && chain->positions.begin != chains->items[i - 1]->positions.end) return SIZE_MAX;
    bool is_last = pwi_place_keys(place, chain->positions).end >= claim.end;
    if ((!is_last || i > first) && pwi_chain_has_followers(chain)) return SIZE_MAX;
    if (is_last) return i;
  }
  return SIZE_MAX;
}

struct pwi_chain *pwi_chains_route(struct pwi_chains *chains, const struct pwi_place *place, struct pawl_range claim) {
  size_t first = index_of(chains, pwi_place_position(place, claim.begin));
  size_t last = first < chains->count ? last_routed(chains, place, first, claim) : SIZE_MAX;
  if (last == SIZE_MAX) return NULL;
  chains->routed_first = first;
  chains->routed_last = last;
  return chains->items[first];
}

/* One that is being filled needs no changes before it has been sent the first chunk. Once its word counts it needs all of
 * them, also while there is no way to it: the next view may make it full. */
bool pwi_chain_has_followers(const struct pwi_chain *chain) {
  return chain->following != 0 && (!chain->following_fills || chain->is_open || chain->is_synced);
}

pawl_status pwi_chain_make_room(struct pwi_chains *chains, struct pwi_chain *chain) {
  pawl_status status = pwi_fifo_reserve(&chain->log, pwi_fifo_count(&chain->log) + 1);
  if (!status && !chain->is_even && !chain->is_filling)
    status = pwi_clock_reserve(&chains->versions, SELF, chain->positions);
  if (!status && chain->is_filling && chain->staged.held.count > 0)
    status = pwi_clock_reserve(&chain->staged, SELF, chain->positions);
  return status;
}

pawl_status pwi_chain_prepare(struct pwi_chains *chains, struct pwi_chain *chain, const struct pwi_request *request,
                              size_t row_bytes, size_t state_bytes, size_t stamps, struct pwi_parcel **parcel_out) {
  const struct pwi_terms *terms = &request->terms;
  bool has_rows = terms->kind == PWI_REQUEST_PUSH || terms->kind == PWI_REQUEST_PUSHPULL;
  size_t rows = has_rows ? (size_t)terms->rows : 0, bytes;
  size_t keys = has_rows && terms->keys == PWI_KEYS_LIST ? request->encoded_as.length : 0;
  *parcel_out = NULL;
  if (!pwi_chain_has_followers(chain)) return PAWL_OK;
  if (chains->parcels->bytes > LOG_BYTES_MAX) return PAWL_QUEUE_FULL;
  if (rows > 0 && (rows > SIZE_MAX / 4 / (row_bytes + state_bytes + 1))) return PAWL_TOO_LARGE;
  pawl_status status = pwi_parcel_measure(keys, rows * row_bytes, rows * state_bytes, stamps * PWI_STAMP_SIZE, &bytes);
  if (!status) status = pwi_chain_make_room(chains, chain);
  if (!status) status = pwi_parcel_take(chains->parcels, bytes, parcel_out);
  if (status) return status;
  (*parcel_out)->key_bytes = keys;
  (*parcel_out)->value_bytes = rows * row_bytes;
  (*parcel_out)->state_bytes = rows * state_bytes;
  (*parcel_out)->stamp_bytes = stamps * PWI_STAMP_SIZE;
  return PAWL_OK;
}

static void fill_rows(struct pwi_parcel *parcel, struct pwi_holding *holding, const struct pwi_request *request) {
  if (parcel->key_bytes > 0) memcpy(pwi_parcel_keys(parcel), request->encoded, parcel->key_bytes);
  parcel->keys = request->encoded_as;
  parcel->signature = request->signature;
  parcel->value_type = request->value_type;
  parcel->value_size = pwi_scalar_size((enum pwi_scalar)request->value_type);
  if (request->terms.keys == PWI_KEYS_SIGNED) parcel->list = pwi_holding_pin_list(holding);
  pwi_holding_result(holding, request, pwi_parcel_values(parcel), pwi_parcel_state(parcel));
}

/* Every change is one of the whole arc: now it has one version. */
static void advance(struct pwi_chain *chain, uint64_t version) {
  chain->version = version;
  chain->is_even = true;
}

void pwi_chain_commit(struct pwi_chains *chains, struct pwi_chain *chain, struct pwi_holding *holding,
                      const struct pwi_request *request, const struct pwi_served *served,
                      const struct pwi_stamp *stamps, struct pwi_parcel *parcel) {
  if (served->effect == PWI_EFFECT_NONE) {
    pwi_parcel_release(parcel);
    return;
  }
  for (size_t i = chains->routed_first; i <= chains->routed_last; i++) {
    advance(chains->items[i], chains->items[i]->version + 1);
    if (!parcel) pwi_chain_settle(chains, chains->items[i]);
  }
  if (parcel) {
    parcel->version = chain->version;
    parcel->positions = chain->positions;
    parcel->effect = served->effect;
    parcel->status = served->effect == PWI_EFFECT_REFUSAL ? served->outcome.status : PAWL_OK;
    parcel->terms = request->terms;
    parcel->terms.number = chain->version;
    parcel->sender = request->sender.id;
    parcel->task = request->task;
    parcel->tick = served->effect == PWI_EFFECT_TICK ? served->tick : request->tick;
    if (served->effect == PWI_EFFECT_ROWS) fill_rows(parcel, holding, request);
    for (size_t i = 0; i < parcel->stamp_bytes / PWI_STAMP_SIZE; i++) {
      pwi_put_u64(pwi_parcel_stamps(parcel) + i * PWI_STAMP_SIZE, stamps[i].sender.id);
      pwi_put_u64(pwi_parcel_stamps(parcel) + i * PWI_STAMP_SIZE + 8, stamps[i].task);
    }
    struct pwi_parcel **place = pwi_fifo_push(&chain->log);
    assert(place && "room was made");
    *place = parcel;
    chains->pump(chains->context, chain);
    pwi_chain_settle(chains, chain);
  }
}

pawl_status pwi_chain_put_off(struct pwi_chain *chain, const struct pwi_put_off *put_off) {
  struct pwi_put_off *place = pwi_fifo_push(&chain->put_off);
  if (!place) return PAWL_NO_MEMORY;
  *place = *put_off;
  place->version = chain->version;
  return PAWL_OK;
}

void pwi_chains_forget_link(struct pwi_chains *chains, const struct pwi_holder_link *link) {
  for (size_t i = 0; i < chains->count; i++) {
    struct pwi_chain *chain = chains->items[i];
    for (size_t j = 0; j < pwi_fifo_count(&chain->put_off); j++) {
      struct pwi_put_off *waiting = pwi_fifo_at(&chain->put_off, j);
      if (waiting->link == link) waiting->link = NULL;
    }
  }
}

/* --- members ---------------------------------------------------------------------------------------------------------- */

bool pwi_chain_next_due(const struct pwi_chains *chains, const struct pwi_chain *chain, struct pawl_range positions,
                        uint64_t version, struct pawl_range *piece_out) {
  struct pwi_clock_pieces pieces;
  positions = pawl_range_common(positions, chain->positions);
  if (pawl_range_is_empty(positions)) return false;
  if (chain->is_even || chain->is_filling) {
    *piece_out = positions;
    return chain->is_filling || chain->version < version;
  }
  if (pwi_clock_walk(&chains->versions, SELF, positions, &pieces)) return false;
  return pwi_clock_next_due(&pieces, version, piece_out);
}

void pwi_chain_applied(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version,
                       struct pawl_range positions, struct pwi_parcel *parcel) {
  positions = pawl_range_common(positions, chain->positions);
  bool is_whole = positions.begin == chain->positions.begin && positions.end == chain->positions.end;
  pawl_status status = PAWL_OK;
  if (chain->is_filling) {
    if (chain->staged.held.count > 0) status = pwi_clock_set(&chain->staged, SELF, positions, version);
  } else if (is_whole && version > chain->version) {
    advance(chain, version);
  } else {
    status = pwi_clock_set(&chains->versions, SELF, positions, version);
    read_version(chains, chain);
  }
  assert(status == PAWL_OK && "room was made");
  (void)status;
  chain->processed = version;
  if (parcel) {
    struct pwi_parcel **place = pwi_fifo_push(&chain->log);
    assert(place && "room was made");
    *place = parcel;
    chains->pump(chains->context, chain);
  }
  pwi_chain_settle(chains, chain);
}

/* --- what is confirmed --------------------------------------------------------------------------------------------------- */

static void trim(struct pwi_chain *chain, uint64_t version) {
  while (pwi_fifo_count(&chain->log) > 0 && log_at(chain, 0)->version <= version) {
    pwi_parcel_release(log_at(chain, 0));
    pwi_fifo_pop(&chain->log);
    if (chain->sent_count > 0) chain->sent_count--;
  }
}

static void confirm(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version) {
  if (version > chain->confirmed) chain->confirmed = version;
  while (pwi_fifo_count(&chain->put_off) > 0) {
    struct pwi_put_off waiting = *(struct pwi_put_off *)pwi_fifo_at(&chain->put_off, 0);
    if (waiting.version > chain->confirmed) return;
    pwi_fifo_pop(&chain->put_off);
    chains->answer(chains->context, &waiting, false);
  }
}

void pwi_chain_settle(struct pwi_chains *chains, struct pwi_chain *chain) {
  bool counts = chain->following && (!chain->following_fills || chain->is_synced);
  if (counts || chain->is_filling) return;
  if (!pwi_chain_has_followers(chain)) trim(chain, UINT64_MAX);
  confirm(chains, chain, chain->version);
}

/* When all that we kept is confirmed, so is all that we have: after arcs were merged its number may be higher than that of
 * anything that was sent. */
void pwi_chain_heard(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version) {
  if (version > chain->heard) chain->heard = version;
  trim(chain, version);
  if (pwi_fifo_count(&chain->log) == 0 && version >= chain->sent) version = chain->version;
  if (!chain->following_fills || chain->is_synced) confirm(chains, chain, version);
}

void pwi_chain_rewind(struct pwi_chain *chain, uint64_t version) {
  chain->sent_count = 0;
  while (chain->sent_count < pwi_fifo_count(&chain->log) && log_at(chain, chain->sent_count)->version <= version)
    chain->sent_count++;
  chain->sent = version;
}

struct pwi_parcel *pwi_chain_next(const struct pwi_chain *chain) {
  return chain->sent_count < pwi_fifo_count(&chain->log) ? log_at(chain, chain->sent_count) : NULL;
}

void pwi_chain_was_sent(struct pwi_chain *chain) {
  chain->sent = log_at(chain, chain->sent_count)->version;
  chain->sent_count++;
}
