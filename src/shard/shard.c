/* Creation of a shard, its vectors, memory under the cap, and the membership. */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "protocol/planted.h"

#define CACHE_DEFAULT ((uint64_t)256 << 20)

pawl_status pwi_shard_create(const struct pwi_shard_config *config, struct pwi_shard **shard_out) {
  struct pwi_shard *shard = pwi_alloc_zero(1, sizeof *shard);
  if (!shard) return PAWL_NO_MEMORY;
  shard->config = *config;
  shard->lists.bytes_max = config->cache_max ? config->cache_max : CACHE_DEFAULT;
  shard->samples.gap = 1;
  shard->frozen_room = 4;
  shard->frozen = pwi_resize_array(NULL, shard->frozen_room, sizeof *shard->frozen);
  if (!shard->frozen) {
    pwi_free(shard);
    return PAWL_NO_MEMORY;
  }
  *shard_out = shard;
  return PAWL_OK;
}

/* --- vectors -------------------------------------------------------------------------------------------- */

static void destroy_vector(struct pwi_vector *vector) {
  pwi_vector_close_rule(vector);
  pwi_table_destroy(vector->table);
  for (int which = 0; which < PWI_CLOCKS; which++) {
    pwi_clock_fini(&vector->clocks[which]);
    pwi_clock_fini(&vector->staged[which]);
  }
  pwi_refusals_fini(&vector->refusals);
  pwi_results_fini(&vector->results);
  pwi_changes_fini(&vector->changes);
  pwi_free(vector);
}

void pwi_shard_destroy(struct pwi_shard *shard) {
  if (!shard) return;
  pwi_aggregate_fini(shard);
  for (size_t i = 0; i < shard->vector_count; i++) destroy_vector(shard->vectors[i]);
  pwi_space_quotas_fini(shard);
  pwi_lists_fini(&shard->lists);
  pwi_rangeset_fini(&shard->held);
  pwi_slots_fini(&shard->slots);
  pwi_writer_fini(&shard->payload);
  pwi_pages_fini(&shard->linear_keys);
  pwi_pages_fini(&shard->linear_rows);
  pwi_pages_fini(&shard->expanded);
  pwi_pages_fini(&shard->factors);
  pwi_slots_fini(&shard->linear_slots);
  pwi_pages_fini(&shard->run_keys);
  pwi_free(shard->vectors);
  pwi_free(shard->frozen);
  pwi_free(shard->waiting);
  pwi_free(shard->keys);
  pwi_free(shard->row);
  pwi_free(shard);
}

/* The index of the first vector whose id is not below `id`. */
static size_t vector_at(const struct pwi_shard *shard, uint64_t id) {
  struct pwi_search search = {.high = shard->vector_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, shard->vectors[search.middle]->entry.id.id < id);
  return search.low;
}

struct pwi_vector *pwi_shard_vector(const struct pwi_shard *shard, struct pwi_vector_id id) {
  size_t at = vector_at(shard, id.id);
  return at < shard->vector_count && shard->vectors[at]->entry.id.id == id.id ? shard->vectors[at] : NULL;
}

bool pwi_shard_has(const struct pwi_shard *shard, struct pwi_vector_id id) {
  return pwi_shard_vector(shard, id) != NULL;
}

bool pwi_shard_next(const struct pwi_shard *shard, struct pwi_vector_id *id) {
  if (id->id == UINT64_MAX) return false;
  size_t at = vector_at(shard, id->id + 1);
  if (at == shard->vector_count) return false;
  *id = shard->vectors[at]->entry.id;
  return true;
}

/* Creates a clock for the keys of all held positions. */
static pawl_status start_clock(const struct pwi_shard *shard, const struct pwi_place *place, struct pwi_clock *clock) {
  size_t count = shard->held.count;
  struct pawl_range *ranges = pwi_resize_array(NULL, count, sizeof *ranges);
  if (!ranges) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) ranges[i] = pwi_place_keys(place, shard->held.ranges[i]);
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
  case PAWL_RULE: /* rules of kernels choose their own */
    break;
  }
  return PWI_APPLY_ADD;
}

static pawl_status start_vector(const struct pwi_shard *shard, struct pwi_vector *vector) {
  struct pwi_table_options options = pwi_entry_table(&vector->entry);
  pawl_status status = PAWL_OK;
  if (!vector->is_group) status = pwi_table_create(&options, &vector->table);
  vector->is_hollow = status == PAWL_NO_MEMORY || status == PAWL_TOO_LARGE;
  if (vector->is_hollow) status = pwi_table_create_hollow(&options, &vector->table);
  if (!status && vector->table) status = pwi_vector_open_rule(shard, vector);
  for (int which = 0; which < pwi_vector_clocks(vector) && status == PAWL_OK; which++)
    status = start_clock(shard, &vector->place, &vector->clocks[which]);
  return status;
}

static pawl_status make_vector(const struct pwi_shard *shard, const struct pwi_entry *entry,
                               struct pwi_vector **vector_out) {
  struct pwi_vector *vector = pwi_alloc_zero(1, sizeof *vector);
  if (!vector) return PAWL_NO_MEMORY;
  vector->entry = *entry;
  vector->place = pwi_entry_place(entry);
  vector->is_group = entry->kind == PWI_ENTRY_GROUP;
  vector->apply = apply_of(entry->is.function);
  pwi_space_quota_bind(shard, vector);
  pwi_changes_init(&vector->changes, pawl_range_of(0, vector->place.size), pwi_entry_row_bytes(entry),
                   vector->place.mixed);
  if (vector->is_group) vector->group_key = pwi_group_key(entry->name);
  pawl_status status = start_vector(shard, vector);
  if (status != PAWL_OK) {
    destroy_vector(vector);
    return status;
  }
  *vector_out = vector;
  return PAWL_OK;
}

/* The vector has received nothing since it was opened. */
static void fill_hollow(struct pwi_shard *shard, struct pwi_vector *vector) {
  struct pwi_table_options options = pwi_entry_table(&vector->entry);
  struct pwi_table *table;
  if (pwi_table_create(&options, &table) != PAWL_OK) return;
  pwi_table_destroy(vector->table);
  vector->table = table;
  vector->is_hollow = false;
  pwi_lists_drop(&shard->lists, vector->entry.id, NULL); /* their slots belong to the old table */
  pwi_shard_count_bytes(shard, vector);
}

void pwi_shard_retry(struct pwi_shard *shard) {
  for (size_t i = 0; i < shard->vector_count; i++)
    if (shard->vectors[i]->is_hollow) fill_hollow(shard, shard->vectors[i]);
}

pawl_status pwi_shard_open(struct pwi_shard *shard, const struct pwi_entry *entry) {
  struct pwi_vector *vector;
  if (pwi_shard_has(shard, entry->id)) return PAWL_EXISTS;
  if (!PWI_GROW(shard->vectors, shard->vector_room, shard->vector_count + 1)) return PAWL_NO_MEMORY;
  pawl_status status = make_vector(shard, entry, &vector);
  if (status != PAWL_OK) return status;
  size_t at = vector_at(shard, entry->id.id), behind = shard->vector_count - at;
  memmove(shard->vectors + at + 1, shard->vectors + at, behind * sizeof(struct pwi_vector *));
  shard->vectors[at] = vector;
  shard->vector_count++;
  if (vector->table) pwi_shard_count_bytes(shard, vector);
  return PAWL_OK;
}

/* Staged keys stay staged, with times of 0, so that further changes are remembered. */
static pawl_status renew_staged(const struct pwi_vector *old, struct pwi_vector *vector) {
  for (int which = 0; which < pwi_vector_clocks(vector); which++) {
    const struct pwi_rangeset *held = &old->staged[which].held;
    pawl_status status = held->count > 0 ? pwi_clock_init(&vector->staged[which], held->ranges, held->count) : PAWL_OK;
    if (status != PAWL_OK) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_shard_renew(struct pwi_shard *shard, const struct pwi_entry *entry) {
  struct pwi_vector *old = pwi_shard_vector(shard, entry->id), *vector;
  if (!old) return PAWL_NOT_FOUND;
  pawl_status status = make_vector(shard, entry, &vector);
  if (status != PAWL_OK) return status;
  status = renew_staged(old, vector);
  if (status != PAWL_OK) {
    destroy_vector(vector);
    return status;
  }
  shard->vectors[vector_at(shard, entry->id.id)] = vector;
  shard->recent = NULL;
  shard->row_bytes -= old->bytes;
  pwi_space_quota_count(old, 0, old->bytes);
  pwi_lists_drop(&shard->lists, entry->id, NULL);
  pwi_aggregate_leave(shard, old, pawl_range_of(0, old->place.size), PWI_CODE_NOT_HERE, PAWL_OK);
  destroy_vector(old);
  if (vector->table) pwi_shard_count_bytes(shard, vector);
  return PAWL_OK;
}

uint32_t pwi_shard_incarnation(const struct pwi_shard *shard, struct pwi_vector_id id) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, id);
  return vector ? vector->entry.incarnation : 0;
}

void pwi_shard_close(struct pwi_shard *shard, struct pwi_vector_id id) {
  struct pwi_vector *vector = pwi_shard_vector(shard, id);
  if (!vector) return;
  size_t at = vector_at(shard, id.id), behind = shard->vector_count - at - 1;
  memmove(shard->vectors + at, shard->vectors + at + 1, behind * sizeof(struct pwi_vector *));
  shard->vector_count--;
  shard->recent = NULL;
  shard->row_bytes -= vector->bytes;
  pwi_space_quota_count(vector, 0, vector->bytes);
  pwi_lists_drop(&shard->lists, id, NULL);
  pwi_group_dismiss(shard, vector, PWI_CODE_FAILED, PAWL_NOT_FOUND);
  pwi_aggregate_leave(shard, vector, pawl_range_of(0, vector->place.size), PWI_CODE_FAILED, PAWL_NOT_FOUND);
  destroy_vector(vector);
}

/* --- memory --------------------------------------------------------------------------------------------- */

void pwi_shard_count_bytes(struct pwi_shard *shard, struct pwi_vector *vector) {
  uint64_t bytes = pwi_table_bytes(vector->table);
  pwi_space_quota_count(vector, bytes, vector->bytes);
  shard->row_bytes += bytes;
  shard->row_bytes -= vector->bytes;
  vector->bytes = bytes;
}

static uint64_t cap_rest(const struct pwi_shard *shard, const struct pwi_vector *vector) {
  uint64_t most = shard->config.memory_max;
  if (most == UINT64_MAX) return UINT64_MAX;
  uint64_t others = shard->row_bytes - vector->bytes + shard->lists.bytes;
  return others < most ? most - others : 0;
}

void pwi_shard_set_limit(const struct pwi_shard *shard, struct pwi_vector *vector) {
  uint64_t cap = cap_rest(shard, vector), quota = shard->is_filled ? UINT64_MAX : pwi_space_quota_rest(vector);
  vector->table->limit = shard->is_following ? UINT64_MAX : cap < quota ? cap : quota;
}

pawl_status pwi_shard_full(const struct pwi_shard *shard, const struct pwi_vector *vector) {
  return pwi_space_quota_rest(vector) < cap_rest(shard, vector) ? PAWL_QUOTA_MEMORY : PAWL_NODE_FULL;
}

pawl_status pwi_shard_resolve(struct pwi_shard *shard, struct pwi_vector *vector, const uint64_t *keys, size_t count,
                              bool create, struct pwi_slots *slots, struct pwi_list *list) {
  if (create) pwi_shard_set_limit(shard, vector);
  uint64_t layout = vector->table->layout;
  /* A kept list has its own slots: only keys that moved are looked up again. */
  pawl_status status = list ? pwi_table_refresh(vector->table, keys, count, create, slots)
                            : pwi_table_resolve(vector->table, keys, count, create, slots);
  if (status == PAWL_TOO_LARGE && create && shard->lists.bytes > 0) {
    pwi_lists_drop(&shard->lists, (struct pwi_vector_id){0}, list);
    pwi_shard_set_limit(shard, vector);
    status = pwi_table_resolve(vector->table, keys, count, create, slots);
  }
  if (vector->table->layout != layout) pwi_shard_count_bytes(shard, vector);
  if (list) pwi_lists_recount(&shard->lists, list);
  return status == PAWL_TOO_LARGE ? pwi_shard_full(shard, vector) : status;
}

pawl_status pwi_shard_block(struct pwi_shard *shard, uint64_t first, size_t count) {
  assert(count <= PWI_BLOCK);
  if (!shard->keys) shard->keys = pwi_resize_array(NULL, PWI_BLOCK, sizeof *shard->keys);
  if (!shard->keys) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) shard->keys[i] = first + i;
  return PAWL_OK;
}

/* --- the membership ------------------------------------------------------------------------------------- */

static bool is_forgotten(const void *context, struct pwi_sender sender) {
  const struct pwi_membership *membership = context;
  if (pwi_is_planted(PWI_PLANTED_DROP_RETIRED)) return !pwi_membership_is_live(membership, sender);
  return pwi_membership_has_forgotten(membership, sender);
}

/* Changing a clock ends the iteration over its senders, so they are removed in batches. */
void pwi_times_strike(struct pwi_clock *clock, bool (*is_gone)(const void *context, struct pwi_sender sender),
                      const void *context) {
  struct pwi_sender struck[64], sender;
  size_t count;
  do {
    size_t at = 0;
    count = 0;
    while (count < sizeof struck / sizeof *struck && pwi_clock_next_sender(clock, &at, &sender)) {
      if (is_gone(context, sender)) struck[count++] = sender;
    }
    for (size_t i = 0; i < count; i++) pwi_clock_retire(clock, struck[i]);
  } while (count == sizeof struck / sizeof *struck);
}

static void strike_all(struct pwi_shard *shard) {
  for (size_t i = 0; i < shard->vector_count; i++) {
    for (int which = 0; which < PWI_CLOCKS; which++) {
      pwi_times_strike(&shard->vectors[i]->clocks[which], is_forgotten, shard->membership);
      pwi_times_strike(&shard->vectors[i]->staged[which], is_forgotten, shard->membership);
    }
  }
}

void pwi_shard_set_membership(struct pwi_shard *shard, const struct pwi_membership *membership) {
  shard->membership = membership;
  strike_all(shard);
  shard->forgotten += PWI_MEMBERSHIP_MAX; /* it may have forgotten any number of senders */
  pwi_shard_membership_changed(shard);
}

void pwi_shard_move_membership(struct pwi_shard *shard, const struct pwi_membership *membership) {
  shard->membership = membership;
}

void pwi_shard_renewed(struct pwi_shard *shard) { shard->is_renewed = true; }

void pwi_shard_forget(struct pwi_shard *shard, struct pwi_sender sender) {
  shard->forgotten++;
  for (size_t i = 0; i < shard->vector_count; i++) {
    for (int which = 0; which < PWI_CLOCKS; which++) {
      pwi_clock_retire(&shard->vectors[i]->clocks[which], sender);
      pwi_clock_retire(&shard->vectors[i]->staged[which], sender);
    }
  }
}

void pwi_shard_membership_changed(struct pwi_shard *shard) {
  pwi_contributed_strike(shard);
  if (pwi_is_planted(PWI_PLANTED_DROP_RETIRED)) strike_all(shard);
  for (size_t i = 0; i < shard->vector_count; i++) {
    struct pwi_vector *vector = shard->vectors[i];
    pwi_refusals_strike(&vector->refusals, shard->membership);
    pwi_results_strike(&vector->results, shard->membership);
    vector->ranked = false;
    if (vector->is_group) pwi_group_examine(shard, vector);
  }
  pwi_aggregate_examine(shard);
}
