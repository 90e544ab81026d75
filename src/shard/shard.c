/* The life of a holding: vectors that come and go, memory under the cap, the roster. */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "protocol/planted.h"

#define CACHE_DEFAULT ((uint64_t)256 << 20)

pawl_status pwi_holding_create(const struct pwi_holding_config *config, struct pwi_holding **holding_out) {
  struct pwi_holding *holding = pwi_alloc_zero(1, sizeof *holding);
  if (!holding) return PAWL_NO_MEMORY;
  holding->config = *config;
  holding->lists.bytes_max = config->cache_max ? config->cache_max : CACHE_DEFAULT;
  holding->samples.gap = 1;
  holding->frozen_room = 4;
  holding->frozen = pwi_resize_array(NULL, holding->frozen_room, sizeof *holding->frozen);
  if (!holding->frozen) {
    pwi_free(holding);
    return PAWL_NO_MEMORY;
  }
  *holding_out = holding;
  return PAWL_OK;
}

/* --- vectors ------------------------------------------------------------------------------------------------------ */

static void destroy_vector(struct pwi_held *vector) {
  pwi_held_close_rule(vector);
  pwi_table_destroy(vector->table);
  for (int which = 0; which < PWI_CLOCKS; which++) {
    pwi_clock_fini(&vector->clocks[which]);
    pwi_clock_fini(&vector->staged[which]);
  }
  pwi_refusals_fini(&vector->refusals);
  pwi_changes_fini(&vector->changes);
  pwi_free(vector);
}

void pwi_holding_destroy(struct pwi_holding *holding) {
  if (!holding) return;
  pwi_together_fini(holding);
  for (size_t i = 0; i < holding->vector_count; i++) destroy_vector(holding->vectors[i]);
  pwi_quotas_fini(holding);
  pwi_lists_fini(&holding->lists);
  pwi_rangeset_fini(&holding->held);
  pwi_slots_fini(&holding->slots);
  pwi_writer_fini(&holding->payload);
  pwi_pages_fini(&holding->linear_keys);
  pwi_pages_fini(&holding->linear_rows);
  pwi_slots_fini(&holding->linear_slots);
  pwi_free(holding->vectors);
  pwi_free(holding->frozen);
  pwi_free(holding->waiting);
  pwi_free(holding->keys);
  pwi_free(holding->row);
  pwi_free(holding);
}

/* The number of the first vector whose id is not below `id`. */
static size_t vector_at(const struct pwi_holding *holding, uint64_t id) {
  size_t low = 0, high = holding->vector_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (holding->vectors[middle]->entry.id.id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct pwi_held *pwi_holding_vector(const struct pwi_holding *holding, struct pwi_vector_id id) {
  size_t at = vector_at(holding, id.id);
  return at < holding->vector_count && holding->vectors[at]->entry.id.id == id.id ? holding->vectors[at] : NULL;
}

bool pwi_holding_has(const struct pwi_holding *holding, struct pwi_vector_id id) {
  return pwi_holding_vector(holding, id) != NULL;
}

bool pwi_holding_next(const struct pwi_holding *holding, struct pwi_vector_id *id) {
  if (id->id == UINT64_MAX) return false;
  size_t at = vector_at(holding, id->id + 1);
  if (at == holding->vector_count) return false;
  *id = holding->vectors[at]->entry.id;
  return true;
}

/* A clock for the keys of all positions that are held. */
static pawl_status start_clock(const struct pwi_holding *holding, const struct pwi_place *place,
                               struct pwi_clock *clock) {
  size_t count = holding->held.count;
  struct pawl_range *ranges = pwi_resize_array(NULL, count, sizeof *ranges);
  if (!ranges) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) ranges[i] = pwi_place_keys(place, holding->held.ranges[i]);
  pawl_status status = pwi_clock_init(clock, ranges, count);
  pwi_free(ranges);
  return status;
}

static enum pwi_apply apply_of(enum pawl_function function) {
  switch (function) {
  case PAWL_ADD:
    return PWI_APPLY_ADD;
  case PAWL_ASSIGN:
    return PWI_APPLY_ASSIGN;
  case PAWL_RULE: /* of which those of the kernels find their own */
    break;
  }
  return PWI_APPLY_ADD;
}

static pawl_status start_vector(const struct pwi_holding *holding, struct pwi_held *vector) {
  struct pwi_table_options options = pwi_entry_table(&vector->entry);
  pawl_status status = PAWL_OK;
  if (!vector->is_group) status = pwi_table_create(&options, &vector->table);
  vector->is_hollow = status == PAWL_NO_MEMORY || status == PAWL_TOO_LARGE;
  if (vector->is_hollow) status = pwi_table_create_hollow(&options, &vector->table);
  if (!status && vector->table) status = pwi_held_open_rule(holding, vector);
  for (int which = 0; which < pwi_held_clocks(vector) && status == PAWL_OK; which++)
    status = start_clock(holding, &vector->place, &vector->clocks[which]);
  return status;
}

static pawl_status make_vector(const struct pwi_holding *holding, const struct pwi_entry *entry,
                               struct pwi_held **vector_out) {
  struct pwi_held *vector = pwi_alloc_zero(1, sizeof *vector);
  if (!vector) return PAWL_NO_MEMORY;
  vector->entry = *entry;
  vector->place = pwi_entry_place(entry);
  vector->is_group = entry->kind == PWI_ENTRY_GROUP;
  vector->apply = apply_of(entry->is.function);
  pwi_quota_bind(holding, vector);
  pwi_changes_init(&vector->changes, pawl_range_of(0, vector->place.size), pwi_entry_row_bytes(entry),
                   vector->place.mixed);
  if (vector->is_group) vector->group_key = pwi_group_key(entry->name);
  pawl_status status = start_vector(holding, vector);
  if (status != PAWL_OK) {
    destroy_vector(vector);
    return status;
  }
  *vector_out = vector;
  return PAWL_OK;
}

/* Nothing has come to it meanwhile. */
static void fill_hollow(struct pwi_holding *holding, struct pwi_held *vector) {
  struct pwi_table_options options = pwi_entry_table(&vector->entry);
  struct pwi_table *table;
  if (pwi_table_create(&options, &table) != PAWL_OK) return;
  pwi_table_destroy(vector->table);
  vector->table = table;
  vector->is_hollow = false;
  pwi_lists_drop(&holding->lists, vector->entry.id, NULL); /* slots of the other table */
  pwi_holding_count_bytes(holding, vector);
}

void pwi_holding_retry(struct pwi_holding *holding) {
  for (size_t i = 0; i < holding->vector_count; i++)
    if (holding->vectors[i]->is_hollow) fill_hollow(holding, holding->vectors[i]);
}

pawl_status pwi_holding_open(struct pwi_holding *holding, const struct pwi_entry *entry) {
  struct pwi_held *vector;
  if (pwi_holding_has(holding, entry->id)) return PAWL_EXISTS;
  if (holding->vector_count == holding->vector_room) {
    size_t room = holding->vector_room ? holding->vector_room * 2 : 8;
    struct pwi_held **grown = pwi_resize_array(holding->vectors, room, sizeof(struct pwi_held *));
    if (!grown) return PAWL_NO_MEMORY;
    holding->vectors = grown;
    holding->vector_room = room;
  }
  pawl_status status = make_vector(holding, entry, &vector);
  if (status != PAWL_OK) return status;
  size_t at = vector_at(holding, entry->id.id), behind = holding->vector_count - at;
  memmove(holding->vectors + at + 1, holding->vectors + at, behind * sizeof(struct pwi_held *));
  holding->vectors[at] = vector;
  holding->vector_count++;
  if (vector->table) pwi_holding_count_bytes(holding, vector);
  return PAWL_OK;
}

/* What is staged keeps its keys, with no times: what comes for them now has to be remembered. */
static pawl_status renew_staged(const struct pwi_held *old, struct pwi_held *vector) {
  for (int which = 0; which < pwi_held_clocks(vector); which++) {
    const struct pwi_rangeset *held = &old->staged[which].held;
    pawl_status status = held->count > 0 ? pwi_clock_init(&vector->staged[which], held->ranges, held->count) : PAWL_OK;
    if (status != PAWL_OK) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_holding_renew(struct pwi_holding *holding, const struct pwi_entry *entry) {
  struct pwi_held *old = pwi_holding_vector(holding, entry->id), *vector;
  if (!old) return PAWL_NOT_FOUND;
  pawl_status status = make_vector(holding, entry, &vector);
  if (status != PAWL_OK) return status;
  status = renew_staged(old, vector);
  if (status != PAWL_OK) {
    destroy_vector(vector);
    return status;
  }
  holding->vectors[vector_at(holding, entry->id.id)] = vector;
  holding->recent = NULL;
  holding->row_bytes -= old->bytes;
  pwi_quota_count(old, 0, old->bytes);
  pwi_lists_drop(&holding->lists, entry->id, NULL);
  pwi_together_leave(holding, old, pawl_range_of(0, old->place.size), PWI_CODE_NOT_HERE, PAWL_OK);
  destroy_vector(old);
  if (vector->table) pwi_holding_count_bytes(holding, vector);
  return PAWL_OK;
}

uint32_t pwi_holding_incarnation(const struct pwi_holding *holding, struct pwi_vector_id id) {
  const struct pwi_held *vector = pwi_holding_vector(holding, id);
  return vector ? vector->entry.incarnation : 0;
}

void pwi_holding_close(struct pwi_holding *holding, struct pwi_vector_id id) {
  struct pwi_held *vector = pwi_holding_vector(holding, id);
  if (!vector) return;
  size_t at = vector_at(holding, id.id), behind = holding->vector_count - at - 1;
  memmove(holding->vectors + at, holding->vectors + at + 1, behind * sizeof(struct pwi_held *));
  holding->vector_count--;
  holding->recent = NULL;
  holding->row_bytes -= vector->bytes;
  pwi_quota_count(vector, 0, vector->bytes);
  pwi_lists_drop(&holding->lists, id, NULL);
  pwi_group_dismiss(holding, vector, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  pwi_together_leave(holding, vector, pawl_range_of(0, vector->place.size), PWI_CODE_FAILED, PAWL_NOT_FOUND);
  destroy_vector(vector);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

void pwi_holding_count_bytes(struct pwi_holding *holding, struct pwi_held *vector) {
  uint64_t bytes = pwi_table_bytes(vector->table);
  pwi_quota_count(vector, bytes, vector->bytes);
  holding->row_bytes += bytes;
  holding->row_bytes -= vector->bytes;
  vector->bytes = bytes;
}

static uint64_t cap_rest(const struct pwi_holding *holding, const struct pwi_held *vector) {
  uint64_t most = holding->config.memory_max;
  if (most == UINT64_MAX) return UINT64_MAX;
  uint64_t others = holding->row_bytes - vector->bytes + holding->lists.bytes;
  return others < most ? most - others : 0;
}

void pwi_holding_set_limit(const struct pwi_holding *holding, struct pwi_held *vector) {
  uint64_t cap = cap_rest(holding, vector), quota = pwi_quota_rest(vector);
  vector->table->limit = holding->is_following ? UINT64_MAX : cap < quota ? cap : quota;
}

pawl_status pwi_holding_full(const struct pwi_holding *holding, const struct pwi_held *vector) {
  return pwi_quota_rest(vector) < cap_rest(holding, vector) ? PAWL_QUOTA_MEMORY : PAWL_NODE_FULL;
}

pawl_status pwi_holding_resolve(struct pwi_holding *holding, struct pwi_held *vector, const uint64_t *keys,
                                size_t count, bool create, struct pwi_slots *slots, struct pwi_list *list) {
  if (create) pwi_holding_set_limit(holding, vector);
  uint64_t layout = vector->table->layout;
  /* A kept list's slots are its own: what did not move since is not looked up again. */
  pawl_status status = list ? pwi_table_refresh(vector->table, keys, count, create, slots)
                            : pwi_table_resolve(vector->table, keys, count, create, slots);
  if (status == PAWL_TOO_LARGE && create && holding->lists.bytes > 0) {
    pwi_lists_drop(&holding->lists, (struct pwi_vector_id){0}, list);
    pwi_holding_set_limit(holding, vector);
    status = pwi_table_resolve(vector->table, keys, count, create, slots);
  }
  if (vector->table->layout != layout) pwi_holding_count_bytes(holding, vector);
  if (list) pwi_lists_recount(&holding->lists, list);
  return status == PAWL_TOO_LARGE ? pwi_holding_full(holding, vector) : status;
}

pawl_status pwi_holding_block(struct pwi_holding *holding, uint64_t first, size_t count) {
  assert(count <= PWI_BLOCK);
  if (!holding->keys) holding->keys = pwi_resize_array(NULL, PWI_BLOCK, sizeof *holding->keys);
  if (!holding->keys) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) holding->keys[i] = first + i;
  return PAWL_OK;
}

/* --- the roster --------------------------------------------------------------------------------------------------- */

static bool is_forgotten(const struct pwi_roster *roster, struct pwi_sender sender) {
  if (pwi_is_planted(PWI_PLANTED_DROP_RETIRED)) return !pwi_roster_is_live(roster, sender);
  return pwi_roster_has_forgotten(roster, sender);
}

/* Changing a clock ends the walk over its senders, so they are struck off some at a time. */
static void strike_senders(struct pwi_clock *clock, const struct pwi_roster *roster) {
  struct pwi_sender struck[64], sender;
  size_t count;
  do {
    size_t at = 0;
    count = 0;
    while (count < sizeof struck / sizeof *struck && pwi_clock_next_sender(clock, &at, &sender)) {
      if (is_forgotten(roster, sender)) struck[count++] = sender;
    }
    for (size_t i = 0; i < count; i++) pwi_clock_retire(clock, struck[i]);
  } while (count == sizeof struck / sizeof *struck);
}

static void strike_all(struct pwi_holding *holding) {
  for (size_t i = 0; i < holding->vector_count; i++) {
    for (int which = 0; which < PWI_CLOCKS; which++) {
      strike_senders(&holding->vectors[i]->clocks[which], holding->roster);
      strike_senders(&holding->vectors[i]->staged[which], holding->roster);
    }
  }
}

void pwi_holding_set_roster(struct pwi_holding *holding, const struct pwi_roster *roster) {
  holding->roster = roster;
  strike_all(holding);
  pwi_holding_roster_changed(holding);
}

void pwi_holding_forget(struct pwi_holding *holding, struct pwi_sender sender) {
  for (size_t i = 0; i < holding->vector_count; i++) {
    for (int which = 0; which < PWI_CLOCKS; which++) {
      pwi_clock_retire(&holding->vectors[i]->clocks[which], sender);
      pwi_clock_retire(&holding->vectors[i]->staged[which], sender);
    }
  }
}

void pwi_holding_roster_changed(struct pwi_holding *holding) {
  if (pwi_is_planted(PWI_PLANTED_DROP_RETIRED)) strike_all(holding);
  for (size_t i = 0; i < holding->vector_count; i++) {
    struct pwi_held *vector = holding->vectors[i];
    pwi_refusals_strike(&vector->refusals, holding->roster);
    vector->ranked = false;
    if (vector->is_group) pwi_group_examine(holding, vector);
  }
  pwi_together_examine(holding);
}
