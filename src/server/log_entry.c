#include "server/log_entry.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "wire/values.h"

#define REGION_MIN ((size_t)64 << 10)
#define KEEP_MAX ((size_t)128 << 20) /* bytes of unused regions */
#define ALIGN 64

void pwi_log_entries_init(struct pwi_log_entries *log_entries, struct pwi_net *net) {
  *log_entries = (struct pwi_log_entries){.net = net};
}

/* The net may be destroyed already, with its regions. */
void pwi_log_entries_fini(struct pwi_log_entries *log_entries) {
  for (size_t i = 0; i < log_entries->count; i++) {
    pwi_list_unpin(log_entries->all[i]->list);
    pwi_free(log_entries->all[i]);
  }
  pwi_free(log_entries->all);
  *log_entries = (struct pwi_log_entries){0};
}

/* --- the pool ------------------------------------------------------------------------------------------- */

static struct pwi_log_entry *add_log_entry(struct pwi_log_entries *log_entries) {
  if (!PWI_GROW(log_entries->all, log_entries->room, log_entries->count + 1)) return NULL;
  struct pwi_log_entry *log_entry = pwi_alloc_zero(1, sizeof *log_entry);
  if (!log_entry) return NULL;
  log_entry->log_entries = log_entries;
  log_entry->index = (uint32_t)log_entries->count;
  log_entries->all[log_entries->count++] = log_entry;
  return log_entry;
}

/* Regions have REGION_MIN times a power of two bytes: the exponent for `bytes`, or PWI_LOG_ENTRY_CLASSES if
 * too large. */
static size_t power_of(size_t bytes) {
  size_t power = 0;
  while (power < PWI_LOG_ENTRY_CLASSES && REGION_MIN << power < bytes) power++;
  return power;
}

/* The smallest sufficient region, and of these the last used: its memory may still be in the caches. */
static struct pwi_log_entry *take_large(struct pwi_log_entries *log_entries, size_t bytes) {
  size_t power = power_of(bytes);
  while (power < PWI_LOG_ENTRY_CLASSES && !log_entries->idle_large[power]) power++;
  if (power == PWI_LOG_ENTRY_CLASSES) return NULL;
  struct pwi_log_entry *log_entry = log_entries->idle_large[power];
  log_entries->idle_large[power] = log_entry->next;
  log_entries->idle_bytes -= log_entry->room;
  return log_entry;
}

static struct pwi_log_entry *take_small(struct pwi_log_entries *log_entries) {
  struct pwi_log_entry *log_entry = log_entries->idle;
  if (log_entry) log_entries->idle = log_entry->next;
  return log_entry ? log_entry : add_log_entry(log_entries);
}

static pawl_status open_region(struct pwi_log_entries *log_entries, struct pwi_log_entry *log_entry, size_t bytes) {
  size_t power = power_of(bytes);
  if (power == PWI_LOG_ENTRY_CLASSES) return PAWL_NO_MEMORY;
  pawl_status status = pwi_net_region_open(log_entries->net, REGION_MIN << power, &log_entry->region);
  if (!status) log_entry->room = REGION_MIN << power;
  return status;
}

static void put_back(struct pwi_log_entry *log_entry) {
  struct pwi_log_entries *log_entries = log_entry->log_entries;
  struct pwi_log_entry **list =
      log_entry->region ? &log_entries->idle_large[power_of(log_entry->room)] : &log_entries->idle;
  log_entry->next = *list;
  *list = log_entry;
  if (log_entry->region) log_entries->idle_bytes += log_entry->room;
}

pawl_status pwi_log_entry_take(struct pwi_log_entries *log_entries, size_t bytes,
                               struct pwi_log_entry **log_entry_out) {
  struct pwi_log_entry *log_entry = bytes > PWI_LOG_ENTRY_INLINE ? take_large(log_entries, bytes) : NULL;
  if (!log_entry) {
    log_entry = take_small(log_entries);
    if (!log_entry) return PAWL_NO_MEMORY;
    pawl_status status = bytes > PWI_LOG_ENTRY_INLINE ? open_region(log_entries, log_entry, bytes) : PAWL_OK;
    if (status) {
      put_back(log_entry);
      return status;
    }
  }
  log_entry->next = NULL;
  log_entry->references = 1;
  log_entry->size = bytes;
  log_entry->list = NULL;
  log_entry->has_result = false;
  log_entry->key_bytes = log_entry->value_bytes = log_entry->state_bytes = log_entry->stamp_bytes = 0;
  log_entries->bytes += bytes;
  *log_entry_out = log_entry;
  return PAWL_OK;
}

static void retire(struct pwi_log_entry *log_entry) {
  struct pwi_log_entries *log_entries = log_entry->log_entries;
  if (log_entry->references > 0 || log_entry->in_flight > 0) return;
  log_entries->bytes -= log_entry->size;
  pwi_list_unpin(log_entry->list);
  log_entry->list = NULL;
  if (log_entry->region && (log_entry->is_tainted || log_entry->room + log_entries->idle_bytes > KEEP_MAX)) {
    pwi_net_region_close(log_entries->net, log_entry->region);
    log_entry->region = NULL;
    log_entry->room = 0;
  }
  log_entry->is_tainted = false;
  put_back(log_entry);
}

struct pwi_log_entry *pwi_log_entry_retain(struct pwi_log_entry *log_entry) {
  log_entry->references++;
  return log_entry;
}

void pwi_log_entry_release(struct pwi_log_entry *log_entry) {
  if (!log_entry) return;
  assert(log_entry->references > 0);
  log_entry->references--;
  retire(log_entry);
}

void *pwi_log_entry_memory(struct pwi_log_entry *log_entry) {
  return log_entry->region ? pwi_net_region_memory(log_entry->region) : log_entry->small;
}

void pwi_log_entry_shrink(struct pwi_log_entry *log_entry, size_t bytes) {
  assert(bytes <= log_entry->size && log_entry->in_flight == 0);
  log_entry->log_entries->bytes -= log_entry->size - bytes;
  log_entry->size = bytes;
}

/* --- what lies where ------------------------------------------------------------------------------------ */

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

unsigned char *pwi_log_entry_keys(struct pwi_log_entry *log_entry) { return pwi_log_entry_memory(log_entry); }

unsigned char *pwi_log_entry_values(struct pwi_log_entry *log_entry) {
  return pwi_log_entry_keys(log_entry) + aligned(log_entry->key_bytes);
}

unsigned char *pwi_log_entry_state(struct pwi_log_entry *log_entry) {
  return pwi_log_entry_values(log_entry) + aligned(log_entry->value_bytes);
}

unsigned char *pwi_log_entry_stamps(struct pwi_log_entry *log_entry) {
  return pwi_log_entry_state(log_entry) + aligned(log_entry->state_bytes);
}

pawl_status pwi_log_entry_measure(size_t key_bytes, size_t value_bytes, size_t state_bytes, size_t stamp_bytes,
                                  size_t *bytes_out) {
  size_t sum = 4 * ALIGN;
  if (!pwi_add_size(sum, key_bytes, &sum) || !pwi_add_size(sum, value_bytes, &sum) ||
      !pwi_add_size(sum, state_bytes, &sum) || !pwi_add_size(sum, stamp_bytes, &sum))
    return PAWL_TOO_LARGE;
  *bytes_out = aligned(key_bytes) + aligned(value_bytes) + aligned(state_bytes) + aligned(stamp_bytes);
  return PAWL_OK;
}

/* --- sending -------------------------------------------------------------------------------------------- */

static pawl_status add_chain_message(struct pwi_message_builder *builder, const struct pwi_chain_message *message) {
  uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE];
  pwi_chain_message_encode(message, bytes);
  struct pwi_section section = {.type = PWI_SECTION_CHAIN, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static pawl_status add_terms(struct pwi_log_entry *log_entry, struct pwi_message_builder *builder, bool full) {
  struct pwi_terms terms = log_entry->terms;
  uint8_t bytes[PWI_TERMS_SIZE];
  if (full && log_entry->list && terms.keys == PWI_KEYS_SIGNED) {
    terms.keys = PWI_KEYS_LIST;
    terms.keep = true;
  }
  pwi_terms_encode(&terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static pawl_status add_keys(struct pwi_log_entry *log_entry, struct pwi_message_builder *builder, bool full) {
  if (log_entry->terms.keys == PWI_KEYS_LIST)
    return pwi_message_add(builder, &log_entry->keys, pwi_log_entry_keys(log_entry));
  if (log_entry->terms.keys != PWI_KEYS_SIGNED) return PAWL_OK;
  if (full && log_entry->list) {
    size_t count;
    const uint64_t *keys = pwi_list_keys(log_entry->list, &count);
    struct pwi_section section = {
        .type = PWI_SECTION_KEYS, .value_type = PWI_TYPE_U64, .count = (uint32_t)count, .length = count * sizeof *keys};
    return pwi_message_add(builder, &section, keys);
  }
  struct pwi_section section = {.type = PWI_SECTION_SIGNATURE, .count = 1, .length = sizeof log_entry->signature};
  return pwi_message_copy(builder, &section, &log_entry->signature);
}

static pawl_status add_rows(struct pwi_log_entry *log_entry, struct pwi_message_builder *builder) {
  struct pwi_section values = {
      .type = PWI_SECTION_VALUES,
      .value_type = log_entry->value_type,
      .count = (uint32_t)(log_entry->value_size ? log_entry->value_bytes / log_entry->value_size : 0),
      .length = log_entry->value_bytes};
  struct pwi_section state = {
      .type = PWI_SECTION_STATE, .count = (uint32_t)log_entry->state_bytes, .length = log_entry->state_bytes};
  pawl_status status = PAWL_OK;
  if (log_entry->value_bytes > 0) status = pwi_message_add(builder, &values, pwi_log_entry_values(log_entry));
  if (!status && log_entry->state_bytes > 0) status = pwi_message_add(builder, &state, pwi_log_entry_state(log_entry));
  struct pwi_section stamps = {.type = PWI_SECTION_STAMPS,
                               .count = (uint32_t)(log_entry->stamp_bytes / PWI_STAMP_SIZE),
                               .length = log_entry->stamp_bytes};
  if (!status && log_entry->stamp_bytes > 0)
    status = pwi_message_add(builder, &stamps, pwi_log_entry_stamps(log_entry));
  return status;
}

static pawl_status add_result(struct pwi_log_entry *log_entry, struct pwi_message_builder *builder) {
  if (!log_entry->has_result) return PAWL_OK;
  struct pwi_section section = {.type = PWI_SECTION_RESULT, .count = 1, .length = sizeof log_entry->result};
  return pwi_message_copy(builder, &section, log_entry->result);
}

void pwi_log_entry_set_result(struct pwi_log_entry *log_entry, const struct pwi_run_result *result) {
  struct pwi_writer writer = pwi_writer_over(log_entry->result, sizeof log_entry->result);
  log_entry->has_result = result != NULL;
  if (result) pwi_run_result_write(&writer, result);
}

static pawl_status give(struct pwi_log_entry *log_entry, const struct pwi_message_builder *builder,
                        const struct pwi_log_entry_address *address) {
  bool is_kept = builder->body_size > PWI_NET_COPY_MAX;
  struct pwi_send send = {.lane = PWI_LANE_DATA,
                          .head = builder->head,
                          .body = builder->parts,
                          .body_count = builder->part_count,
                          .cookie = is_kept ? PWI_LOG_ENTRY_COOKIE | log_entry->index : 0};
  pawl_status status = pwi_net_send(log_entry->log_entries->net, address->link, &send);
  if (!status && is_kept) log_entry->in_flight++;
  return status;
}

/* The keys of a list are in ordinary memory: a peer may read them after the list is gone, if the send has failed. */
static struct pwi_message_terms terms_of(const struct pwi_log_entry *log_entry,
                                         const struct pwi_log_entry_address *address, bool full) {
  struct pwi_message_terms terms = *address->terms;
  if (full && log_entry->list && !address->is_sound) terms.unchecked = false;
  return terms;
}

/* While an entry is being sent, its builder is in use, and another send waits. This is rare (after a split of
 * an arc). */
pawl_status pwi_log_entry_send_update(struct pwi_log_entry *log_entry, const struct pwi_log_entry_address *address,
                                      const struct pwi_chain_message *message, bool full) {
  struct pwi_message_builder *builder = &log_entry->builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN,
                                  .sender = log_entry->sender,
                                  .task = log_entry->task,
                                  .tick = log_entry->tick,
                                  .view = (uint32_t)address->view,
                                  .membership = (uint32_t)address->membership,
                                  .catalogue = (uint32_t)address->catalogue};
  if (log_entry->in_flight > 0) {
    log_entry->is_awaited = true;
    return PAWL_QUEUE_FULL;
  }
  struct pwi_message_terms terms = terms_of(log_entry, address, full);
  pwi_message_begin(builder, &terms, &head);
  pawl_status status = add_chain_message(builder, message);
  if (!status) status = add_terms(log_entry, builder, full);
  if (!status && log_entry->effect == PWI_EFFECT_ROWS) status = add_keys(log_entry, builder, full);
  if (!status && log_entry->effect == PWI_EFFECT_ROWS) status = add_rows(log_entry, builder);
  if (!status) status = add_result(log_entry, builder);
  if (!status) status = pwi_message_finish(builder);
  return status ? status : give(log_entry, builder, address);
}

pawl_status pwi_log_entry_send_bytes(struct pwi_log_entry *log_entry, const struct pwi_log_entry_address *address,
                                     const struct pwi_chain_message *message, uint64_t node) {
  struct pwi_message_builder *builder = &log_entry->builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN,
                                  .sender = node,
                                  .view = (uint32_t)address->view,
                                  .membership = (uint32_t)address->membership,
                                  .catalogue = (uint32_t)address->catalogue};
  struct pwi_section section = {
      .type = PWI_SECTION_PAYLOAD, .count = (uint32_t)log_entry->size, .length = log_entry->size};
  pwi_message_begin(builder, address->terms, &head);
  pawl_status status = add_chain_message(builder, message);
  if (!status && log_entry->size > 0) status = pwi_message_add(builder, &section, pwi_log_entry_memory(log_entry));
  if (!status) status = pwi_message_finish(builder);
  return status ? status : give(log_entry, builder, address);
}

bool pwi_log_entry_done(struct pwi_log_entries *log_entries, uint64_t cookie, pawl_status status) {
  size_t index = (size_t)(cookie & ~PWI_LOG_ENTRY_COOKIE);
  assert(index < log_entries->count);
  struct pwi_log_entry *log_entry = log_entries->all[index];
  assert(log_entry->in_flight > 0);
  log_entry->in_flight--;
  if (status) log_entry->is_tainted = true;
  bool was_awaited = log_entry->is_awaited && log_entry->in_flight == 0;
  if (log_entry->in_flight == 0) log_entry->is_awaited = false;
  retire(log_entry);
  return was_awaited;
}
