/* Chains: requests, changes and confirmations. */
#include "server/chain_inside.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/search.h"
#include "ring/place.h"

#define LOG_BYTES_MAX ((uint64_t)512 << 20) /* of all log entries; beyond this, pushes are refused */

/* --- life ----------------------------------------------------------------------------------------------- */

void pwi_chain_destroy(struct pwi_chain *chain) {
  if (!chain) return;
  for (size_t i = 0; i < pwi_fifo_count(&chain->log); i++) pwi_log_entry_release(pwi_chain_log_at(chain, i));
  pwi_fifo_fini(&chain->log);
  pwi_fifo_fini(&chain->deferred);
  pwi_clock_fini(&chain->staged);
  pwi_free(chain);
}

void pwi_chains_fini(struct pwi_chains *chains) {
  for (size_t i = 0; i < chains->count; i++) pwi_chain_destroy(chains->items[i]);
  pwi_free(chains->items);
  pwi_clock_fini(&chains->versions);
  chains->items = NULL;
  chains->count = 0;
}

/* The index of the chain that contains the position; the number of chains if none does. */
static size_t index_of(const struct pwi_chains *chains, uint64_t position) {
  struct pwi_search search = {.high = chains->count};
  while (pwi_search_next(&search)) pwi_search_told(&search, chains->items[search.middle]->positions.end <= position);
  bool is_there = search.low < chains->count && chains->items[search.low]->positions.begin <= position;
  return is_there ? search.low : chains->count;
}

struct pwi_chain *pwi_chains_find(const struct pwi_chains *chains, uint64_t position) {
  size_t index = index_of(chains, position);
  return index < chains->count ? chains->items[index] : NULL;
}

/* --- the head ------------------------------------------------------------------------------------------- */

static bool is_ours(const struct pwi_chain *chain) { return chain->is_head && !chain->is_handing; }

/* The last of the adjacent chains, from `first` on, that the claim extends into; SIZE_MAX if one request may
 * not cover them. */
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

/* A member that is being filled needs no changes before the first chunk was sent. Once its confirmations
 * count, it needs all changes, even while its link is down: the next view may make it a full member. */
bool pwi_chain_has_followers(const struct pwi_chain *chain) {
  return chain->following != 0 && (!chain->following_fills || chain->is_open || chain->is_synced);
}

static bool is_whole(const struct pwi_chain *chain, struct pawl_range positions) {
  return positions.begin == chain->positions.begin && positions.end == chain->positions.end;
}

/* A change of a part of the arc needs room in the clock, because it may split a range, and the clock must
 * first have the versions of the other parts. A head changes only whole arcs and needs no room. */
pawl_status pwi_chain_make_room(struct pwi_chains *chains, struct pwi_chain *chain, struct pawl_range positions) {
  pawl_status status = pwi_fifo_reserve(&chain->log, pwi_fifo_count(&chain->log) + 1);
  positions = pawl_range_common(positions, chain->positions);
  if (!status && !chain->is_head && !is_whole(chain, positions)) status = pwi_chain_write_version(chains, chain);
  if (!status && !chain->is_head && !chain->is_filling)
    status = pwi_clock_reserve(&chains->versions, PWI_CHAIN_SELF, positions);
  if (!status && chain->is_filling && chain->staged.held.count > 0)
    status = pwi_clock_reserve(&chain->staged, PWI_CHAIN_SELF, positions);
  return status;
}

pawl_status pwi_chain_prepare(struct pwi_chains *chains, struct pwi_chain *chain, const struct pwi_request *request,
                              size_t row_bytes, size_t state_bytes, size_t stamps,
                              struct pwi_log_entry **log_entry_out) {
  const struct pwi_terms *terms = &request->terms;
  bool has_rows = pwi_request_has_rows(terms->kind);
  size_t rows = has_rows ? (size_t)terms->rows : 0, bytes;
  size_t keys = has_rows && terms->keys == PWI_KEYS_LIST ? request->encoded_as.length : 0;
  *log_entry_out = NULL;
  if (!pwi_chain_has_followers(chain)) return PAWL_OK;
  if (chains->log_entries->bytes > LOG_BYTES_MAX) return PAWL_QUEUE_FULL;
  if (rows > 0 && (rows > SIZE_MAX / 4 / (row_bytes + state_bytes + 1))) return PAWL_TOO_LARGE;
  pawl_status status =
      pwi_log_entry_measure(keys, rows * row_bytes, rows * state_bytes, stamps * PWI_STAMP_SIZE, &bytes);
  if (!status && bytes > PWI_CHANGE_MAX) status = PAWL_TOO_LARGE; /* no message can carry the change */
  if (!status) status = pwi_chain_make_room(chains, chain, chain->positions);
  if (!status) status = pwi_log_entry_take(chains->log_entries, bytes, log_entry_out);
  if (status) return status;
  (*log_entry_out)->key_bytes = keys;
  (*log_entry_out)->value_bytes = rows * row_bytes;
  (*log_entry_out)->state_bytes = rows * state_bytes;
  (*log_entry_out)->stamp_bytes = stamps * PWI_STAMP_SIZE;
  return PAWL_OK;
}

static void fill_rows(struct pwi_log_entry *log_entry, struct pwi_shard *shard, const struct pwi_request *request) {
  if (log_entry->key_bytes > 0) memcpy(pwi_log_entry_keys(log_entry), request->encoded, log_entry->key_bytes);
  log_entry->keys = request->encoded_as;
  log_entry->signature = request->signature;
  log_entry->value_type = request->value_type;
  log_entry->value_size = pwi_scalar_size((enum pwi_scalar)request->value_type);
  if (request->terms.keys == PWI_KEYS_SIGNED)
    log_entry->list = pwi_shard_pin_list(shard, request->terms.vector, request->signature);
  pwi_shard_result(shard, request, pwi_log_entry_values(log_entry), pwi_log_entry_state(log_entry));
}

/* A change of the whole arc gives all its positions one version. */
static void advance(struct pwi_chain *chain, uint64_t version) {
  chain->version = version;
  chain->is_even = true;
}

void pwi_chain_commit(struct pwi_chains *chains, struct pwi_chain *chain, struct pwi_shard *shard,
                      const struct pwi_request *request, const struct pwi_served *served,
                      const struct pwi_stamp *stamps, struct pwi_log_entry *log_entry) {
  if (served->effect == PWI_EFFECT_NONE) {
    pwi_log_entry_release(log_entry);
    return;
  }
  for (size_t i = chains->routed_first; i <= chains->routed_last; i++) {
    advance(chains->items[i], chains->items[i]->version + 1);
    if (served->effect == PWI_EFFECT_ROWS)
      pwi_shard_mark(shard, request, chains->items[i]->positions, chains->items[i]->version);
    if (!log_entry) pwi_chain_settle(chains, chains->items[i]);
  }
  if (log_entry) {
    log_entry->version = chain->version;
    log_entry->positions = chain->positions;
    log_entry->effect = served->effect;
    log_entry->status = served->effect == PWI_EFFECT_REFUSAL ? served->outcome.status : PAWL_OK;
    log_entry->terms = request->terms;
    log_entry->terms.number = chain->version;
    log_entry->sender = request->sender.id;
    log_entry->task = request->task;
    log_entry->tick = served->effect == PWI_EFFECT_TICK ? served->tick : request->tick;
    if (served->effect == PWI_EFFECT_ROWS) fill_rows(log_entry, shard, request);
    pwi_log_entry_set_result(log_entry, served->result);
    for (size_t i = 0; i < log_entry->stamp_bytes / PWI_STAMP_SIZE; i++) {
      pwi_put_u64(pwi_log_entry_stamps(log_entry) + i * PWI_STAMP_SIZE, stamps[i].sender.id);
      pwi_put_u64(pwi_log_entry_stamps(log_entry) + i * PWI_STAMP_SIZE + 8, stamps[i].task);
    }
    struct pwi_log_entry **place = pwi_fifo_push(&chain->log);
    assert(place && "room was made");
    *place = log_entry;
    chains->pump(chains->context, chain);
    pwi_chain_settle(chains, chain);
  }
}

pawl_status pwi_chain_defer(struct pwi_chain *chain, struct pawl_range positions, void *reply) {
  struct pwi_deferred *place = pwi_fifo_push(&chain->deferred);
  if (!place) return PAWL_NO_MEMORY;
  *place = (struct pwi_deferred){.version = chain->version, .positions = positions, .reply = reply};
  return PAWL_OK;
}

/* --- members -------------------------------------------------------------------------------------------- */

bool pwi_chain_next_due(const struct pwi_chains *chains, const struct pwi_chain *chain, struct pawl_range positions,
                        uint64_t version, struct pawl_range *piece_out) {
  struct pwi_clock_pieces pieces;
  positions = pawl_range_common(positions, chain->positions);
  if (pawl_range_is_empty(positions)) return false;
  if (chain->is_even || chain->is_filling) {
    *piece_out = positions;
    return chain->is_filling || chain->version < version;
  }
  if (pwi_clock_walk(&chains->versions, PWI_CHAIN_SELF, positions, &pieces)) return false;
  return pwi_clock_next_due(&pieces, version, piece_out);
}

void pwi_chain_applied(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version,
                       struct pawl_range positions, bool is_last, struct pwi_log_entry *log_entry) {
  positions = pawl_range_common(positions, chain->positions);
  pawl_status status = PAWL_OK;
  if (chain->is_filling) {
    if (chain->staged.held.count > 0) status = pwi_clock_set(&chain->staged, PWI_CHAIN_SELF, positions, version);
  } else if (is_whole(chain, positions) && version > chain->version) {
    advance(chain, version);
  } else {
    status = pwi_clock_set(&chains->versions, PWI_CHAIN_SELF, positions, version);
    pwi_chain_read_version(chains, chain);
  }
  assert(status == PAWL_OK && "room was made");
  (void)status;
  chain->siblings = is_last ? 0 : chain->siblings + 1;
  if (is_last) chain->processed = version;
  if (log_entry) {
    status = pwi_chain_add_to_log(chain, log_entry);
    assert(status == PAWL_OK && "room was made");
    pwi_log_entry_release(log_entry);
    chains->pump(chains->context, chain);
  }
  pwi_chain_settle(chains, chain);
}

void pwi_chain_caught_up(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version) {
  chain->processed = version;
  chain->siblings = 0;
  chains->pump(chains->context, chain);
  pwi_chain_settle(chains, chain);
}

/* --- confirmations -------------------------------------------------------------------------------------- */

static void trim(struct pwi_chain *chain, uint64_t version) {
  while (pwi_fifo_count(&chain->log) > 0 && pwi_chain_log_at(chain, 0)->version <= version) {
    pwi_log_entry_release(pwi_chain_log_at(chain, 0));
    pwi_fifo_pop(&chain->log);
    if (chain->sent_count > 0) chain->sent_count--;
  }
}

static void confirm(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version) {
  if (version > chain->confirmed) chain->confirmed = version;
  while (pwi_fifo_count(&chain->deferred) > 0) {
    struct pwi_deferred waiting = *(struct pwi_deferred *)pwi_fifo_at(&chain->deferred, 0);
    if (waiting.version > chain->confirmed) return;
    pwi_fifo_pop(&chain->deferred);
    chains->answer(chains->context, waiting.reply, false);
  }
}

void pwi_chain_settle(struct pwi_chains *chains, struct pwi_chain *chain) {
  bool counts = chain->following && (!chain->following_fills || chain->is_synced);
  if (counts || chain->is_filling) return;
  if (!pwi_chain_has_followers(chain)) trim(chain, UINT64_MAX);
  confirm(chains, chain, pwi_chain_at(chain));
}

/* When the whole log is confirmed, so is everything that is here: after arcs were merged, the version may be
 * higher than that of any entry that was sent. A member may still receive changes with lower versions than
 * its highest. */
void pwi_chain_heard(struct pwi_chains *chains, struct pwi_chain *chain, uint64_t version) {
  if (version > chain->heard) chain->heard = version;
  trim(chain, version);
  if (version > chain->sent) chain->sent = version; /* sent before the following member asked for it again */
  if (pwi_fifo_count(&chain->log) == 0 && version >= chain->sent) version = pwi_chain_at(chain);
  if (!chain->following_fills || chain->is_synced) confirm(chains, chain, version);
}

void pwi_chain_rewind(struct pwi_chain *chain, uint64_t version) {
  chain->sent_count = 0;
  while (chain->sent_count < pwi_fifo_count(&chain->log) &&
         pwi_chain_log_at(chain, chain->sent_count)->version <= version)
    chain->sent_count++;
  chain->sent = version;
}

/* An inherited entry waits until all entries with lower versions are here. */
struct pwi_log_entry *pwi_chain_next(const struct pwi_chain *chain) {
  if (chain->sent_count == pwi_fifo_count(&chain->log)) return NULL;
  struct pwi_log_entry *log_entry = pwi_chain_log_at(chain, chain->sent_count);
  return log_entry->version <= pwi_chain_at(chain) ? log_entry : NULL;
}

bool pwi_chain_has_more(const struct pwi_chain *chain) {
  size_t at = chain->sent_count;
  return at + 1 < pwi_fifo_count(&chain->log) &&
         pwi_chain_log_at(chain, at + 1)->version == pwi_chain_log_at(chain, at)->version;
}

uint64_t pwi_chain_siblings(const struct pwi_chain *chain) {
  size_t at = chain->sent_count;
  while (at > 0 && pwi_chain_log_at(chain, at - 1)->version == pwi_chain_log_at(chain, chain->sent_count)->version)
    at--;
  return chain->sent_count - at;
}

void pwi_chain_was_sent(struct pwi_chain *chain) {
  if (!pwi_chain_has_more(chain)) chain->sent = pwi_chain_log_at(chain, chain->sent_count)->version;
  chain->sent_count++;
}

bool pwi_chain_is_ahead(const struct pwi_chain *chain) {
  return !pwi_chain_next(chain) && chain->sent < pwi_chain_at(chain);
}
