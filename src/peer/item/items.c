/* The life of an engine, and what any thread may do: set, try, view. */
#include "peer/item/item.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "peer/inside.h"
#include "peer/item/inside.h"

#define LOCK_LOOKS 1000 /* at a lock, before other threads may run */

/* --- small things --------------------------------------------------------------------------------------- */

uint32_t pwi_item_readers_slot(void) {
  static _Atomic uint32_t last;
  static _Thread_local uint32_t slot = UINT32_MAX;
  if (slot == UINT32_MAX) slot = atomic_fetch_add(&last, 1) % ITEM_READERS;
  return slot;
}

struct item_peer *pwi_item_find(const struct pwi_items *engine, uint64_t id) {
  return id ? pwi_idmap_get(&engine->by_id, id) : NULL;
}

void pwi_item_say_number(struct pwi_items *engine, const struct item_peer *peer, uint32_t kind, uint32_t number) {
  unsigned char bytes[ITEM_NUMBER_SIZE];
  pwi_item_number_encode(number, bytes);
  (void)pwi_channel_send(engine->channel, peer->sender, kind, bytes, sizeof bytes); /* a failure closes the link */
}

void pwi_item_fail(struct pwi_items *engine, pawl_status status, const char *format, ...) {
  va_list arguments;
  if (engine->failed) return;
  va_start(arguments, format);
  vsnprintf(engine->problem, sizeof engine->problem, format, arguments);
  va_end(arguments);
  atomic_store(&engine->failed, (int)status);
  pwi_log(engine->config.log, PAWL_LOG_WARN, "items.failed", "items=%s status=%s why=\"%s\"", engine->name,
          pawl_status_name(status), engine->problem);
  pwi_item_wake_all(engine);
}

void pwi_item_try_later(struct pwi_items *engine, struct item_peer *peer, pawl_status status) {
  if (status == PAWL_NO_MEMORY || status == PAWL_TOO_LARGE || status == PAWL_OVERFLOW)
    pwi_item_fail(engine, status, "cannot exchange items with node %" PRIu64, peer->sender.id);
  else if (status && status != PAWL_QUEUE_FULL && status != PAWL_NOT_FOUND)
    peer->is_bad = true;
}

pawl_status pwi_items_failure(const struct pwi_items *engine) { return (pawl_status)atomic_load(&engine->failed); }
const char *pwi_items_problem(const struct pwi_items *engine) { return engine->problem; }
bool pwi_items_is_open(const struct pwi_items *engine) { return engine->is_open; }

void pwi_item_wake_key(struct pwi_items *engine, uint64_t key) {
  for (struct pwi_items_wait *wait = engine->waits.next, *next; wait != &engine->waits; wait = next) {
    next = wait->next;
    if (wait->key == key) wait->wake(wait->context);
  }
}

void pwi_item_wake_all(struct pwi_items *engine) {
  for (struct pwi_items_wait *wait = engine->waits.next, *next; wait != &engine->waits; wait = next) {
    next = wait->next;
    wait->wake(wait->context);
  }
  if (engine->config.wakes) engine->config.wakes(engine->config.context);
}

void pwi_items_wake(struct pwi_items *engine) { pwi_item_wake_all(engine); }

/* --- reading, any thread -------------------------------------------------------------------------------- */

/* The index of a key's slack: first come the keys that are consumed. */
static uint64_t slack_index(const struct pwi_items *engine, uint64_t key) {
  uint32_t rank = pwi_item_runs_rank(&engine->consumes, key);
  if (rank != ITEM_NO_RANK) return rank;
  rank = pwi_item_runs_rank(&engine->produces, key);
  return rank == ITEM_NO_RANK ? UINT64_MAX : (uint64_t)engine->consumes.keys + rank;
}

static uint64_t slack_of(const struct pwi_items *engine, uint64_t key) {
  uint32_t *slacks = atomic_load_explicit(&engine->slacks, memory_order_acquire);
  uint64_t index = slacks ? slack_index(engine, key) : UINT64_MAX;
  uint32_t slack = index == UINT64_MAX ? 0 : __atomic_load_n(&slacks[index], __ATOMIC_RELAXED);
  return slack ? slack - 1 : engine->config.slack;
}

uint64_t pwi_items_need(const struct pwi_items *engine, uint64_t key, uint64_t clock, uint64_t slack) {
  if (slack == PAWL_ITEMS_SLACK) slack = slack_of(engine, key);
  if (engine->parameters.work_per_clock > 1) clock /= engine->parameters.work_per_clock;
  if (clock > PAWL_ITEMS_CLOCK_MAX) clock = PAWL_ITEMS_CLOCK_MAX;
  return (clock > slack ? clock - slack : 0) + 1;
}

/* Of several producers the cell with the highest clock. */
static const unsigned char *newest(const struct pwi_items *engine, uint32_t rank) {
  uint32_t producers = engine->parameters.producers;
  const unsigned char *best = NULL;
  uint64_t highest = 0;
  for (uint32_t i = 0; i < producers; i++) {
    const unsigned char *cell = atomic_load(&engine->places[(size_t)rank * producers + i]);
    uint64_t clock = cell ? pwi_item_cell_clock(cell, engine->config.size) : 0;
    if (cell && (!best || clock > highest)) {
      best = cell;
      highest = clock;
    }
  }
  return best;
}

/* Inside the count of readers. NULL: nowhere at present. */
static const unsigned char *cell_of(const struct pwi_items *engine, uint64_t key, bool *is_known_out) {
  uint32_t rank = pwi_item_runs_rank(&engine->consumes, key);
  *is_known_out = true;
  if (rank != ITEM_NO_RANK)
    return engine->parameters.producers > 1 ? newest(engine, rank) : atomic_load(&engine->places[rank]);
  rank = pwi_item_runs_rank(&engine->produces, key);
  *is_known_out = rank != ITEM_NO_RANK;
  return *is_known_out ? pwi_item_own_cell(engine, rank) : NULL;
}

bool pwi_item_is_whole(const struct pwi_items *engine, uint64_t key, uint64_t need) {
  bool is_known;
  const unsigned char *cell = cell_of(engine, key, &is_known);
  uint64_t clock = cell ? pwi_item_cell_clock(cell, engine->config.size) : 0;
  return clock >= need && pwi_item_cell_check(cell, engine->config.size, clock) != 0;
}

static void count_torn(struct item_reader *reader) {
  atomic_fetch_add_explicit(&reader->torn, 1, memory_order_relaxed);
}

enum pwi_items_found pwi_items_try(struct pwi_items *engine, uint64_t key, uint64_t need, void *value_out,
                                   uint64_t *clock_out) {
  uint32_t slot = pwi_item_readers_in(&engine->readers, pwi_item_readers_slot());
  struct item_reader *reader = &engine->readers.slots[slot];
  enum pwi_items_found found = PWI_ITEMS_STALE;
  bool is_known;
  const unsigned char *cell = cell_of(engine, key, &is_known);
  if (cell && pwi_item_cell_clock(cell, engine->config.size) >= need) {
    uint64_t clock = pwi_item_cell_read(cell, engine->config.size, value_out);
    found = clock >= need ? PWI_ITEMS_FRESH : PWI_ITEMS_TORN;
    if (clock_out && clock >= need) *clock_out = clock - 1;
  }
  if (found == PWI_ITEMS_FRESH)
    atomic_store_explicit(&reader->gets, atomic_load_explicit(&reader->gets, memory_order_relaxed) + 1,
                          memory_order_relaxed); /* a thread beyond ITEM_READERS may lose a count */
  else if (found == PWI_ITEMS_TORN)
    count_torn(reader);
  pwi_item_readers_out(&engine->readers, slot);
  return is_known ? found : PWI_ITEMS_UNKNOWN;
}

/* A view stays counted in until it is released. */
enum pwi_items_found pwi_items_try_view(struct pwi_items *engine, uint64_t key, uint64_t need,
                                        struct pawl_items_view *view_out) {
  uint32_t slot = pwi_item_readers_in(&engine->readers, pwi_item_readers_slot());
  enum pwi_items_found found = PWI_ITEMS_STALE;
  bool is_known;
  const unsigned char *cell = cell_of(engine, key, &is_known);
  uint64_t clock = cell ? pwi_item_cell_clock(cell, engine->config.size) : 0;
  if (clock >= need) {
    uint64_t checksum = pwi_item_cell_check(cell, engine->config.size, clock);
    found = checksum ? PWI_ITEMS_FRESH : PWI_ITEMS_TORN;
    if (checksum) *view_out = (struct pawl_items_view){cell, clock - 1, checksum, slot};
  }
  if (found == PWI_ITEMS_FRESH)
    atomic_fetch_add_explicit(&engine->readers.slots[slot].gets, 1, memory_order_relaxed);
  else
    pwi_item_readers_out(&engine->readers, slot);
  if (found == PWI_ITEMS_TORN) count_torn(&engine->readers.slots[slot]);
  return is_known ? found : PWI_ITEMS_UNKNOWN;
}

pawl_status pwi_items_release(struct pwi_items *engine, struct pawl_items_view *view) {
  uint64_t checksum = pwi_item_cell_check(view->value, engine->config.size, view->clock + 1);
  bool is_same = checksum != 0 && checksum == view->checksum;
  pwi_item_readers_out(&engine->readers, view->slot);
  view->value = NULL;
  return is_same ? PAWL_OK : PAWL_CANCELLED;
}

bool pwi_items_come_unaided(const struct pwi_items *engine) { return !atomic_load(&engine->has_far_producer); }

void pwi_items_count_wait(struct pwi_items *engine) {
  atomic_fetch_add_explicit(&engine->waits_count, 1, memory_order_relaxed);
}

/* --- writing, any thread -------------------------------------------------------------------------------- */

/* A writer holds it for one copy. If it does not run meanwhile, others let it run. */
static void lock(_Atomic bool *stripe) {
  for (unsigned tries = 0; atomic_exchange_explicit(stripe, true, memory_order_acquire);)
    while (atomic_load_explicit(stripe, memory_order_relaxed))
      if (++tries % LOCK_LOOKS == 0) sched_yield();
}

static pawl_status write_cell(struct pwi_items *engine, uint32_t rank, const void *value, uint64_t clock,
                              bool *is_written) {
  unsigned char *cell = pwi_item_own_cell(engine, rank);
  _Atomic bool *stripe = &engine->stripes[rank % ITEM_STRIPES];
  const struct item_between *between = engine->config.between.call ? &engine->config.between : NULL;
  uint32_t work = engine->parameters.work_per_clock;
  if (work > 1) clock /= work;
  lock(stripe);
  uint64_t last = pwi_item_cell_clock(cell, engine->config.size);
  bool is_back = last > clock + 1;
  *is_written = !is_back && (work <= 1 || last < clock + 1);
  if (*is_written) pwi_item_cell_write(cell, value, engine->config.size, clock + 1, between);
  atomic_store_explicit(stripe, false, memory_order_release);
  return is_back ? PAWL_INVALID : PAWL_OK;
}

pawl_status pwi_items_set(struct pwi_items *engine, uint64_t key, const void *value, uint64_t clock,
                          bool *must_tell_out) {
  uint32_t rank = pwi_item_runs_rank(&engine->produces, key);
  bool is_written;
  *must_tell_out = false;
  if (rank == ITEM_NO_RANK) return PAWL_NOT_FOUND;
  if (clock > PAWL_ITEMS_CLOCK_MAX) return PAWL_INVALID;
  pawl_status status = pwi_items_failure(engine);
  if (status) return status;
  status = write_cell(engine, rank, value, clock, &is_written);
  atomic_fetch_add_explicit(&engine->sets, is_written,
                            memory_order_seq_cst); /* and a fence: either side sees the other */
  *must_tell_out = atomic_load(&engine->is_blocked);
  if (is_written && !*must_tell_out)
    *must_tell_out =
        atomic_load(&engine->far_count) > 0 || (atomic_load(&engine->is_asked[rank / 64]) >> rank % 64 & 1) != 0;
  return status;
}

static uint32_t *make_slacks(struct pwi_items *engine) {
  uint32_t *slacks = atomic_load(&engine->slacks), *fresh;
  if (slacks) return slacks;
  fresh = pwi_alloc_zero((size_t)engine->consumes.keys + engine->produces.keys + 1, sizeof *fresh);
  if (!fresh) return NULL;
  if (atomic_compare_exchange_strong(&engine->slacks, &slacks, fresh)) return fresh;
  pwi_free(fresh);
  return slacks;
}

pawl_status pwi_items_set_slack(struct pwi_items *engine, const struct pawl_items_keys *keys, size_t keys_count,
                                uint64_t slack) {
  uint32_t *slacks = make_slacks(engine);
  uint32_t word = slack == PAWL_ITEMS_SLACK ? 0 : (uint32_t)slack + 1;
  if (!slacks) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < keys_count; i++)
    for (uint64_t j = 0; j < keys[i].count; j++) {
      uint64_t index = slack_index(engine, keys[i].start + j * (keys[i].stride ? keys[i].stride : 1));
      if (index == UINT64_MAX) return PAWL_NOT_FOUND;
      __atomic_store_n(&slacks[index], word, __ATOMIC_RELAXED);
    }
  return PAWL_OK;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status make_keys(struct pwi_items *engine, char problem[PWI_ITEMS_PROBLEM_MAX]) {
  const struct pwi_items_config *config = &engine->config;
  uint64_t key = 0;
  const char *which = "produces";
  pawl_status status =
      pwi_item_runs_make(config->produces, config->produces_count, config->count, &engine->produces, &key);
  if (!status) {
    which = "consumes";
    status = pwi_item_runs_make(config->consumes, config->consumes_count, config->count, &engine->consumes, &key);
  }
  if (status == PAWL_OUT_OF_SPAN)
    snprintf(problem, PWI_ITEMS_PROBLEM_MAX, "%s: the range from key %" PRIu64 " reaches beyond the %" PRIu64 " items",
             which, key, config->count);
  if (status == PAWL_INVALID)
    snprintf(problem, PWI_ITEMS_PROBLEM_MAX, "%s: key %" PRIu64 " is listed twice", which, key);
  return status;
}

static pawl_status make_memory(struct pwi_items *engine) {
  size_t producers = engine->parameters.producers, keys = engine->produces.keys;
  if (engine->consumes.keys > SIZE_MAX / 16 / producers || (keys > 0 && engine->stride > SIZE_MAX / 2 / keys))
    return PAWL_OVERFLOW;
  engine->places = pwi_alloc_zero(engine->consumes.keys * producers + 1, sizeof *engine->places);
  engine->owners = pwi_alloc_zero(engine->consumes.keys * producers + 1, sizeof *engine->owners);
  engine->is_asked = pwi_alloc_zero(keys / 64 + 1, sizeof *engine->is_asked);
  if (!engine->places || !engine->owners || !engine->is_asked) return PAWL_NO_MEMORY;
  if (keys == 0) return PAWL_OK;
  pawl_status status = pwi_net_region_open(engine->config.net, keys * engine->stride, &engine->shown);
  if (status)
    engine->shown = NULL;
  else
    engine->cells = pwi_net_region_memory(engine->shown);
  return status;
}

static pawl_status open_channel(struct pwi_items *engine) {
  char name[PWI_CHANNEL_NAME_MAX + 1];
  if ((size_t)snprintf(name, sizeof name, "item/%s", engine->name) >= sizeof name) return PAWL_TOO_LARGE;
  return pwi_channel_open(engine->config.peers, engine->config.group, name, NULL, 0, &pwi_item_events, engine,
                          &engine->channel);
}

static bool is_sound(const struct pwi_items_config *config) {
  return config->size > 0 && config->size <= PAWL_ITEMS_SIZE_MAX && config->count <= PAWL_ITEMS_COUNT_MAX &&
         config->producers > 0 && config->producers <= PAWL_ITEMS_PRODUCERS_MAX && config->work_per_clock > 0;
}

pawl_status pwi_items_create(const struct pwi_items_config *config, struct pwi_items **engine_out,
                             char problem[PWI_ITEMS_PROBLEM_MAX]) {
  problem[0] = '\0';
  if (!is_sound(config)) return PAWL_INVALID;
  struct pwi_items *engine = pwi_alloc_zero(1, sizeof *engine);
  if (!engine) return PAWL_NO_MEMORY;
  engine->config = *config;
  if (!config->log) engine->config.log = config->peers->config.log;
  engine->parameters = (struct item_parameters){
      config->size,      config->count,         (uint8_t)config->variant, config->is_conservative,
      config->producers, config->work_per_clock};
  engine->stride = pwi_item_cell_stride(config->size);
  engine->buffer_cells = engine->stride >= ITEM_BUFFER ? 1 : (uint32_t)(ITEM_BUFFER / engine->stride);
  engine->incarnation = (uint64_t)pwi_net_now(config->net);
  engine->waits.next = engine->waits.before = &engine->waits;
  engine->name = pwi_copy_string(config->name);
  pawl_status status = engine->name ? make_keys(engine, problem) : PAWL_NO_MEMORY;
  if (!status) status = make_memory(engine);
  if (!status) status = open_channel(engine);
  if (status) {
    engine->is_closed = true; /* nobody uses its region */
    pwi_items_destroy(engine);
    return status;
  }
  engine->config.produces = engine->config.consumes = NULL;
  pwi_item_own_places(engine);
  pwi_item_look_at_members(engine);
  *engine_out = engine;
  pwi_item_advance(engine); /* a member that is alone hears of no event */
  return PAWL_OK;
}

void pwi_item_advance(struct pwi_items *engine) {
  if (engine->has_left) return;
  for (struct item_peer *peer = engine->peers; peer; peer = peer->next) {
    if (peer->is_linked && peer->must_attach) pwi_item_attach(engine, peer);
    if (peer->is_linked && !peer->is_bad) {
      pwi_item_pump(engine, peer);
      pwi_item_fetch(engine, peer);
    }
  }
  pwi_item_sweep(engine);
  if (!engine->is_open) pwi_item_look_open(engine);
  if (engine->is_closing) pwi_items_close(engine, false);
}

void pwi_items_close(struct pwi_items *engine, bool is_late) {
  bool is_delivered = true;
  engine->is_closing = true;
  if (engine->has_left) return;
  for (struct item_peer *peer = engine->peers; peer && !is_late; peer = peer->next)
    is_delivered &= pwi_item_is_delivered(engine, peer);
  if (!is_delivered) return;
  engine->has_left = true;
  pwi_channel_close(engine->channel); /* may call `closed` */
}

void pwi_items_destroy(struct pwi_items *engine) {
  if (!engine) return;
  pwi_item_forget_peers(engine);
  if (engine->is_closed) pwi_net_region_close(engine->config.net, engine->shown);
  while (engine->buffers) pwi_item_buffer_give(engine, pwi_item_buffer_done(engine, engine->buffers->cookie));
  while (engine->spare) {
    struct item_buffer *next = engine->spare->next;
    pwi_free(engine->spare);
    engine->spare = next;
  }
  pwi_writer_fini(&engine->writer);
  pwi_item_runs_fini(&engine->produces);
  pwi_item_runs_fini(&engine->consumes);
  pwi_free(engine->places);
  pwi_free(engine->owners);
  pwi_free(engine->is_asked);
  pwi_free(atomic_load(&engine->slacks));
  pwi_free(engine->name);
  pwi_free(engine);
}

/* --- for people ----------------------------------------------------------------------------------------- */

static size_t peer_bytes(const struct item_peer *peer) {
  return pwi_item_runs_bytes(&peer->produces) + pwi_item_runs_bytes(&peer->in) + pwi_item_runs_bytes(&peer->out) +
         (peer->asked ? peer->in.keys * sizeof *peer->asked : 0) +
         (peer->sought ? peer->in.keys * sizeof *peer->sought : 0) +
         (peer->asks ? peer->out.keys * sizeof *peer->asks : 0) +
         ((size_t)peer->dirty.size + peer->wanted.size + peer->fetching.size) / 8;
}

void pwi_items_state(const struct pwi_items *engine, struct pawl_items_state *state_out) {
  size_t producers = engine->parameters.producers;
  *state_out = (struct pawl_items_state){.number = pwi_channel_number(engine->channel),
                                         .produced = engine->produces.keys,
                                         .consumed = engine->consumes.keys,
                                         .item_bytes = engine->stride,
                                         .memory_bytes = engine->produces.keys * engine->stride,
                                         .metadata_bytes = pwi_item_runs_bytes(&engine->produces) +
                                                           pwi_item_runs_bytes(&engine->consumes) +
                                                           engine->consumes.keys * producers * 10,
                                         .sets = atomic_load(&engine->sets),
                                         .waits = atomic_load(&engine->waits_count),
                                         .puts = engine->puts,
                                         .fetches = engine->fetches};
  for (const struct item_peer *peer = engine->peers; peer; peer = peer->next) {
    state_out->members += peer->is_linked;
    state_out->near += peer->is_linked && peer->how == ITEM_NEAR;
    state_out->orphans += peer->how == ITEM_FROZEN ? peer->owned : 0;
    state_out->memory_bytes += peer->memory.bytes;
    state_out->metadata_bytes += peer_bytes(peer);
  }
  for (size_t i = 0; i < ITEM_READERS; i++) {
    state_out->gets += atomic_load(&engine->readers.slots[i].gets);
    state_out->torn += atomic_load(&engine->readers.slots[i].torn);
  }
}
