#include "server/log_entry.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "wire/values.h"

#define REGION_MIN ((size_t)64 << 10)
#define KEEP_MAX ((size_t)128 << 20) /* of regions that nobody uses */
#define ALIGN 64

void pwi_parcels_init(struct pwi_parcels *parcels, struct pwi_net *net) { *parcels = (struct pwi_parcels){.net = net}; }

/* The net may be gone by now, and the regions with it. */
void pwi_parcels_fini(struct pwi_parcels *parcels) {
  for (size_t i = 0; i < parcels->count; i++) {
    pwi_list_unpin(parcels->all[i]->list);
    pwi_free(parcels->all[i]);
  }
  pwi_free(parcels->all);
  *parcels = (struct pwi_parcels){0};
}

/* --- the pool --------------------------------------------------------------------------------------------------------- */

static struct pwi_parcel *add_parcel(struct pwi_parcels *parcels) {
  if (parcels->count == parcels->room) {
    size_t room = parcels->room ? 2 * parcels->room : 16;
    struct pwi_parcel **all = pwi_resize_array(parcels->all, room, sizeof *all);
    if (!all) return NULL;
    parcels->all = all;
    parcels->room = room;
  }
  struct pwi_parcel *parcel = pwi_alloc_zero(1, sizeof *parcel);
  if (!parcel) return NULL;
  parcel->parcels = parcels;
  parcel->index = (uint32_t)parcels->count;
  parcels->all[parcels->count++] = parcel;
  return parcel;
}

/* Regions are REGION_MIN, twice that, four times, …: which power of two? PWI_PARCEL_CLASSES: none is so large. */
static size_t power_of(size_t bytes) {
  size_t power = 0;
  while (power < PWI_PARCEL_CLASSES && REGION_MIN << power < bytes) power++;
  return power;
}

/* The smallest region that does, and of those the one used last: its memory may still be in the caches. */
static struct pwi_parcel *take_large(struct pwi_parcels *parcels, size_t bytes) {
  size_t power = power_of(bytes);
  while (power < PWI_PARCEL_CLASSES && !parcels->idle_large[power]) power++;
  if (power == PWI_PARCEL_CLASSES) return NULL;
  struct pwi_parcel *parcel = parcels->idle_large[power];
  parcels->idle_large[power] = parcel->next;
  parcels->idle_bytes -= parcel->room;
  return parcel;
}

static struct pwi_parcel *take_small(struct pwi_parcels *parcels) {
  struct pwi_parcel *parcel = parcels->idle;
  if (parcel) parcels->idle = parcel->next;
  return parcel ? parcel : add_parcel(parcels);
}

static pawl_status open_region(struct pwi_parcels *parcels, struct pwi_parcel *parcel, size_t bytes) {
  size_t power = power_of(bytes);
  if (power == PWI_PARCEL_CLASSES) return PAWL_NO_MEMORY;
  pawl_status status = pwi_net_region_open(parcels->net, REGION_MIN << power, &parcel->region);
  if (!status) parcel->room = REGION_MIN << power;
  return status;
}

static void put_back(struct pwi_parcel *parcel) {
  struct pwi_parcels *parcels = parcel->parcels;
  struct pwi_parcel **list = parcel->region ? &parcels->idle_large[power_of(parcel->room)] : &parcels->idle;
  parcel->next = *list;
  *list = parcel;
  if (parcel->region) parcels->idle_bytes += parcel->room;
}

pawl_status pwi_parcel_take(struct pwi_parcels *parcels, size_t bytes, struct pwi_parcel **parcel_out) {
  struct pwi_parcel *parcel = bytes > PWI_PARCEL_INLINE ? take_large(parcels, bytes) : NULL;
  if (!parcel) {
    parcel = take_small(parcels);
    if (!parcel) return PAWL_NO_MEMORY;
    pawl_status status = bytes > PWI_PARCEL_INLINE ? open_region(parcels, parcel, bytes) : PAWL_OK;
    if (status) {
      put_back(parcel);
      return status;
    }
  }
  parcel->next = NULL;
  parcel->references = 1;
  parcel->size = bytes;
  parcel->list = NULL;
  parcel->key_bytes = parcel->value_bytes = parcel->state_bytes = parcel->stamp_bytes = 0;
  parcels->bytes += bytes;
  *parcel_out = parcel;
  return PAWL_OK;
}

static void retire(struct pwi_parcel *parcel) {
  struct pwi_parcels *parcels = parcel->parcels;
  if (parcel->references > 0 || parcel->in_flight > 0) return;
  parcels->bytes -= parcel->size;
  pwi_list_unpin(parcel->list);
  parcel->list = NULL;
  if (parcel->region && (parcel->is_tainted || parcel->room + parcels->idle_bytes > KEEP_MAX)) {
    pwi_net_region_close(parcels->net, parcel->region);
    parcel->region = NULL;
    parcel->room = 0;
  }
  parcel->is_tainted = false;
  put_back(parcel);
}

struct pwi_parcel *pwi_parcel_retain(struct pwi_parcel *parcel) {
  parcel->references++;
  return parcel;
}

void pwi_parcel_release(struct pwi_parcel *parcel) {
  if (!parcel) return;
  assert(parcel->references > 0);
  parcel->references--;
  retire(parcel);
}

void *pwi_parcel_memory(struct pwi_parcel *parcel) {
  return parcel->region ? pwi_net_region_memory(parcel->region) : parcel->small;
}

void pwi_parcel_shrink(struct pwi_parcel *parcel, size_t bytes) {
  assert(bytes <= parcel->size && parcel->in_flight == 0);
  parcel->parcels->bytes -= parcel->size - bytes;
  parcel->size = bytes;
}

/* --- what lies where ---------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

unsigned char *pwi_parcel_keys(struct pwi_parcel *parcel) { return pwi_parcel_memory(parcel); }

unsigned char *pwi_parcel_values(struct pwi_parcel *parcel) {
  return pwi_parcel_keys(parcel) + aligned(parcel->key_bytes);
}

unsigned char *pwi_parcel_state(struct pwi_parcel *parcel) {
  return pwi_parcel_values(parcel) + aligned(parcel->value_bytes);
}

unsigned char *pwi_parcel_stamps(struct pwi_parcel *parcel) {
  return pwi_parcel_state(parcel) + aligned(parcel->state_bytes);
}

pawl_status pwi_parcel_measure(size_t key_bytes, size_t value_bytes, size_t state_bytes, size_t stamp_bytes,
                               size_t *bytes_out) {
  size_t sum = 4 * ALIGN;
  if (!pwi_add_size(sum, key_bytes, &sum) || !pwi_add_size(sum, value_bytes, &sum) ||
      !pwi_add_size(sum, state_bytes, &sum) || !pwi_add_size(sum, stamp_bytes, &sum))
    return PAWL_TOO_LARGE;
  *bytes_out = aligned(key_bytes) + aligned(value_bytes) + aligned(state_bytes) + aligned(stamp_bytes);
  return PAWL_OK;
}

/* --- sending -------------------------------------------------------------------------------------------------------------- */

static pawl_status add_note(struct pwi_message_builder *builder, const struct pwi_note *note) {
  uint8_t bytes[PWI_NOTE_SIZE];
  pwi_note_encode(note, bytes);
  struct pwi_section section = {.type = PWI_SECTION_NOTE, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static pawl_status add_terms(struct pwi_parcel *parcel, struct pwi_message_builder *builder, bool full) {
  struct pwi_terms terms = parcel->terms;
  uint8_t bytes[PWI_TERMS_SIZE];
  if (full && parcel->list && terms.keys == PWI_KEYS_SIGNED) {
    terms.keys = PWI_KEYS_LIST;
    terms.keep = true;
  }
  pwi_terms_encode(&terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static pawl_status add_keys(struct pwi_parcel *parcel, struct pwi_message_builder *builder, bool full) {
  if (parcel->terms.keys == PWI_KEYS_LIST) return pwi_message_add(builder, &parcel->keys, pwi_parcel_keys(parcel));
  if (parcel->terms.keys != PWI_KEYS_SIGNED) return PAWL_OK;
  if (full && parcel->list) {
    size_t count;
    const uint64_t *keys = pwi_list_keys(parcel->list, &count);
    struct pwi_section section = {
        .type = PWI_SECTION_KEYS, .value_type = PWI_TYPE_U64, .count = (uint32_t)count, .length = count * sizeof *keys};
    return pwi_message_add(builder, &section, keys);
  }
  struct pwi_section section = {.type = PWI_SECTION_SIGNATURE, .count = 1, .length = sizeof parcel->signature};
  return pwi_message_copy(builder, &section, &parcel->signature);
}

static pawl_status add_rows(struct pwi_parcel *parcel, struct pwi_message_builder *builder) {
  struct pwi_section values = {.type = PWI_SECTION_VALUES,
                               .value_type = parcel->value_type,
                               .count = (uint32_t)(parcel->value_size ? parcel->value_bytes / parcel->value_size : 0),
                               .length = parcel->value_bytes};
  struct pwi_section state = {
      .type = PWI_SECTION_STATE, .count = (uint32_t)parcel->state_bytes, .length = parcel->state_bytes};
  pawl_status status = PAWL_OK;
  if (parcel->value_bytes > 0) status = pwi_message_add(builder, &values, pwi_parcel_values(parcel));
  if (!status && parcel->state_bytes > 0) status = pwi_message_add(builder, &state, pwi_parcel_state(parcel));
  struct pwi_section stamps = {.type = PWI_SECTION_STAMPS,
                               .count = (uint32_t)(parcel->stamp_bytes / PWI_STAMP_SIZE),
                               .length = parcel->stamp_bytes};
  if (!status && parcel->stamp_bytes > 0) status = pwi_message_add(builder, &stamps, pwi_parcel_stamps(parcel));
  return status;
}

static pawl_status give(struct pwi_parcel *parcel, const struct pwi_message_builder *builder,
                        const struct pwi_parcel_address *address) {
  bool is_kept = builder->body_size > PWI_NET_COPY_MAX;
  struct pwi_send send = {.lane = PWI_LANE_DATA,
                          .head = builder->head,
                          .body = builder->parts,
                          .body_count = builder->part_count,
                          .cookie = is_kept ? PWI_PARCEL_COOKIE | parcel->index : 0};
  pawl_status status = pwi_net_send(parcel->parcels->net, address->link, &send);
  if (!status && is_kept) parcel->in_flight++;
  return status;
}

/* A parcel that is still being sent elsewhere has its builder in use: it waits, which is rare (an arc that was split). */
pawl_status pwi_parcel_send_update(struct pwi_parcel *parcel, const struct pwi_parcel_address *address,
                                   const struct pwi_note *note, bool full) {
  struct pwi_message_builder *builder = &parcel->builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN,
                                  .sender = parcel->sender,
                                  .task = parcel->task,
                                  .tick = parcel->tick,
                                  .view = (uint32_t)address->view,
                                  .roster = (uint32_t)address->roster,
                                  .catalogue = (uint32_t)address->catalogue};
  if (parcel->in_flight > 0) {
    parcel->is_awaited = true;
    return PAWL_QUEUE_FULL;
  }
  pwi_message_begin(builder, address->terms, &head);
  pawl_status status = add_note(builder, note);
  if (!status) status = add_terms(parcel, builder, full);
  if (!status && parcel->effect == PWI_EFFECT_ROWS) status = add_keys(parcel, builder, full);
  if (!status && parcel->effect == PWI_EFFECT_ROWS) status = add_rows(parcel, builder);
  if (!status) status = pwi_message_finish(builder);
  return status ? status : give(parcel, builder, address);
}

pawl_status pwi_parcel_send_bytes(struct pwi_parcel *parcel, const struct pwi_parcel_address *address,
                                  const struct pwi_note *note, uint64_t node) {
  struct pwi_message_builder *builder = &parcel->builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN,
                                  .sender = node,
                                  .view = (uint32_t)address->view,
                                  .roster = (uint32_t)address->roster,
                                  .catalogue = (uint32_t)address->catalogue};
  struct pwi_section section = {.type = PWI_SECTION_PAYLOAD, .count = (uint32_t)parcel->size, .length = parcel->size};
  pwi_message_begin(builder, address->terms, &head);
  pawl_status status = add_note(builder, note);
  if (!status && parcel->size > 0) status = pwi_message_add(builder, &section, pwi_parcel_memory(parcel));
  if (!status) status = pwi_message_finish(builder);
  return status ? status : give(parcel, builder, address);
}

bool pwi_parcel_done(struct pwi_parcels *parcels, uint64_t cookie, pawl_status status) {
  size_t index = (size_t)(cookie & ~PWI_PARCEL_COOKIE);
  assert(index < parcels->count);
  struct pwi_parcel *parcel = parcels->all[index];
  assert(parcel->in_flight > 0);
  parcel->in_flight--;
  if (status) parcel->is_tainted = true;
  bool was_awaited = parcel->is_awaited && parcel->in_flight == 0;
  if (parcel->in_flight == 0) parcel->is_awaited = false;
  retire(parcel);
  return was_awaited;
}
