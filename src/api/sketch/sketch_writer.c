#include "api/options.h"
#include "api/sketch/sketch_writer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <pawl/session.h>
#include <pawl/task.h>

#include "api/session.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "host/clock.h"

#define OUTSTANDING 64
#define OUTSTANDING_MAX 4096
#define TIMEOUT_NS (60 * PAWL_SECOND)
#define GATHERED_AT_ONCE 512
/* heavier things bypass the table, so that its sums cannot overflow */
#define GATHERED_MOST (UINT64_C(1) << 32)

/* --- failures ------------------------------------------------------------------------------------------- */

pawl_status pwi_sketch_writer_fail(struct pawl_sketch_writer *writer, pawl_status status) {
  if (writer->status == PAWL_OK) {
    writer->status = status;
    snprintf(writer->failure, sizeof writer->failure, "%s", pawl_error_text());
  }
  return status;
}

/* Reports the failure of an earlier call again, with its text. */
static pawl_status say_again(const struct pawl_sketch_writer *writer) {
  return writer->failure[0] ? pwi_error(writer->status, "%s", writer->failure)
                            : pwi_error_status(writer->status, "sketch %s", writer->sketch->info.name);
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* Waits for the oldest push; its row is free again. */
static pawl_status reap(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  struct pwi_underway *oldest = &writer->line[writer->line_first];
  pawl_status status = pawl_task_wait(oldest->task, timeout_ns);
  if (status == PAWL_TIMED_OUT) {
    writer->is_late = true;
    return pwi_session_error(writer->sketch->session, status, "push to sketch %s", writer->sketch->info.name);
  }
  if (status != PAWL_OK) {
    char text[256];
    pawl_task_describe(oldest->task, text, sizeof text);
    status = pwi_sketch_writer_fail(writer, pwi_error(status, "%s", text));
  }
  pawl_task_release(oldest->task);
  writer->spare[writer->spare_count++] = oldest->row;
  writer->line_first = (writer->line_first + 1) % writer->line_room;
  writer->line_count--;
  return status;
}

/* Pushes the row of a bank, and starts another. */
static pawl_status send(struct pawl_sketch_writer *writer, uint32_t bank) {
  struct pawl_sketch *sketch = writer->sketch;
  struct pwi_sketch_batch *batch = &writer->batch[bank];
  uint64_t key = pwi_sketch_slot(sketch, writer->window) * sketch->banks + bank;
  if (writer->status != PAWL_OK) return writer->status;
  pwi_sketch_batch_end(batch, sketch->width, writer->window);
  uint64_t *row = (uint64_t *)(void *)batch->row;
  struct pawl_task *task;
  pawl_status status = pawl_vector_push(sketch->cells, pawl_at_range(key, key + 1), row, &task);
  if (status != PAWL_OK) return pwi_sketch_writer_fail(writer, status);
  writer->line[(writer->line_first + writer->line_count++) % writer->line_room] = (struct pwi_underway){task, row};
  writer->figures.pushes++;
  writer->figures.bytes += 8 * (uint64_t)sketch->width;
  if (writer->spare_count == 0) status = reap(writer, writer->timeout_ns);
  if (writer->spare_count == 0) return pwi_sketch_writer_fail(writer, status);
  pwi_sketch_batch_begin(batch, writer->spare[--writer->spare_count], sketch->width);
  return status;
}

/* --- partitioning --------------------------------------------------------------------------------------- */

static inline void see(struct pwi_registers *registers, uint64_t hash) {
  uint32_t at = pwi_distinct_register(hash);
  uint8_t rank = pwi_distinct_rank(hash);
  if (rank <= registers->ranks[at]) return;
  registers->ranks[at] = rank;
  registers->has_risen[at / PWI_DISTINCT_WIDTH] = true;
}

/* Appends a thing to the row of its bank. A failure is recorded, and reported by the next call. */
static inline void put(struct pawl_sketch_writer *writer, uint64_t hash, uint64_t weight, bool is_minus) {
  uint32_t bank = pwi_sketch_bank_number(hash, writer->sketch->banks);
  struct pwi_sketch_batch *batch = &writer->batch[bank];
  if (__builtin_expect(!pwi_sketch_batch_has_room(batch), 0) && send(writer, bank) != PAWL_OK) return;
  if (weight <= PWI_SKETCH_NARROW_MOST && !is_minus)
    pwi_sketch_batch_narrow(batch, hash, weight);
  else
    pwi_sketch_batch_wide(batch, hash, weight, is_minus);
  writer->figures.pairs++;
  if (writer->registers) see(writer->registers, hash);
}

/* Numbers of weight 1. Values that the compiler would reload after each write, because the write might
 * alias them, are loaded once. */
static void put_numbers(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count) {
  struct pwi_sketch_batch *batches = writer->batch;
  uint32_t banks = writer->sketch->banks;
  for (size_t i = 0; i < count; i++) {
    uint64_t hash = pwi_mix64(keys[i]);
    uint32_t bank = pwi_sketch_bank_number(hash, banks);
    struct pwi_sketch_batch *batch = &batches[bank];
    if (__builtin_expect(!pwi_sketch_batch_has_room(batch), 0) && send(writer, bank) != PAWL_OK) return;
    pwi_sketch_batch_narrow(batch, hash, 1);
  }
  writer->figures.pairs += count;
  if (writer->registers)
    for (size_t i = 0; i < count; i++) see(writer->registers, pwi_mix64(keys[i]));
}

/* --- gathering ------------------------------------------------------------------------------------------ */

/* Handles a thing that leaves the table. Numbers need no name, so they are added to the table of heavy
 * things only now, once for everything that was gathered. */
static inline void let_go(struct pawl_sketch_writer *writer, const struct pwi_gather_place *place) {
  uint64_t weight = place->weight & ~PWI_GATHER_PENDING;
  if (place->weight & PWI_GATHER_PENDING) pwi_heavy_add(writer->heavy, place->hash, weight, PWI_TOP_NUMBER, NULL, 0);
  put(writer, place->hash, weight, false);
}

/* `pending` is PWI_GATHER_PENDING or 0, depending on the kind of the thing, except for two things with the
 * same hash. */
static inline void gather(struct pawl_sketch_writer *writer, uint64_t hash, uint64_t weight, uint64_t pending) {
  struct pwi_gather *gather = writer->gather;
  struct pwi_gather_place *place = &gather->places[hash >> 20 & (PWI_GATHER_PLACES - 1)];
  if (place->hash == hash && place->weight > 0) {
    place->weight += weight;
    gather->found++;
    return;
  }
  if (place->weight > 0) let_go(writer, place);
  *place = (struct pwi_gather_place){hash, weight | pending};
}

/* Whether a number is already in the table is unpredictable, so no branch depends on it: the evicted thing
 * is always written, and counted only if there is one. */
static size_t gather_some(struct pwi_gather *gather, const uint64_t *keys, size_t count, uint64_t pending,
                          struct pwi_gather_place *out) {
  size_t left = 0, found = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t hash = pwi_mix64(keys[i]);
    struct pwi_gather_place *place = &gather->places[hash >> 20 & (PWI_GATHER_PLACES - 1)], was = *place;
    uint64_t is_same = (was.hash == hash) & (was.weight > 0);
    out[left] = was;
    left += (was.weight > 0) & !is_same;
    found += is_same;
    *place = (struct pwi_gather_place){hash, ((0 - is_same) & was.weight) + 1 + ((is_same - 1) & pending)};
  }
  gather->found += found;
  return left;
}

static void gather_numbers(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count) {
  struct pwi_gather_place out[GATHERED_AT_ONCE + 1];
  uint64_t pending = writer->heavy ? PWI_GATHER_PENDING : 0;
  for (size_t done = 0, some; done < count; done += some) {
    some = count - done < GATHERED_AT_ONCE ? count - done : GATHERED_AT_ONCE;
    size_t left = gather_some(writer->gather, keys + done, some, pending, out);
    for (size_t i = 0; i < left; i++) let_go(writer, &out[i]);
  }
}

static void empty(struct pawl_sketch_writer *writer) {
  struct pwi_gather *gather = writer->gather;
  for (size_t i = 0; i < PWI_GATHER_PLACES; i++) {
    if (gather->places[i].weight > 0) let_go(writer, &gather->places[i]);
    gather->places[i].weight = 0;
  }
}

/* The second block of each kind counts: the first includes the cost of switching. */
static bool choose(struct pwi_gather *gather, int64_t took) {
  if (gather->block == 1 || gather->block == 3) gather->took[gather->block == 1] = took;
  gather->block = (gather->block + 1) % PWI_GATHER_PHASE;
  return gather->block < 2 || (gather->block >= 4 && gather->took[1] <= gather->took[0]);
}

static void end_of_block(struct pawl_sketch_writer *writer) {
  struct pwi_gather *gather = writer->gather;
  int64_t now = pwi_host_now();
  bool was_on = gather->is_on;
  writer->figures.merged += gather->found;
  gather->seen = gather->found = 0;
  gather->is_on = gather->is_allowed && choose(gather, now - gather->began);
  if (was_on && !gather->is_on) empty(writer);
  gather->began = now;
}

/* How many of `count` things belong to this block. */
static size_t begin_block(struct pawl_sketch_writer *writer, size_t count) {
  size_t left = PWI_GATHER_BLOCK - (size_t)writer->gather->seen;
  return count < left ? count : left;
}

static void end_block(struct pawl_sketch_writer *writer, size_t count) {
  writer->figures.added += count;
  writer->gather->seen += count;
  if (writer->gather->seen == PWI_GATHER_BLOCK) end_of_block(writer);
}

/* --- adding --------------------------------------------------------------------------------------------- */

static pawl_status add_one(struct pawl_sketch_writer *writer, uint64_t hash, int64_t weight, enum pwi_top_kind kind,
                           const char *name, size_t length) {
  if (writer->status != PAWL_OK) return say_again(writer);
  bool is_minus = weight < 0;
  uint64_t size = is_minus ? 0 - (uint64_t)weight : (uint64_t)weight;
  if (weight == 0 || (is_minus && !writer->sketch->bank.is_signed))
    return pwi_error(PAWL_INVALID, "sketch %s: invalid weight %lld", writer->sketch->info.name, (long long)weight);
  bool is_gathered = writer->gather->is_on && !is_minus && size < GATHERED_MOST;
  bool is_pending = writer->heavy && is_gathered && kind == PWI_TOP_NUMBER;
  if (writer->heavy && !is_minus && !is_pending) pwi_heavy_add(writer->heavy, hash, size, kind, name, length);
  if (is_gathered)
    gather(writer, hash, size, is_pending ? PWI_GATHER_PENDING : 0);
  else
    put(writer, hash, size, is_minus);
  end_block(writer, 1);
  return writer->status == PAWL_OK ? PAWL_OK : say_again(writer);
}

pawl_status pawl_sketch_add(struct pawl_sketch_writer *writer, const void *key, size_t size, int64_t weight) {
  return add_one(writer, pwi_hash(key, size, 0), weight, PWI_TOP_BYTES, key, size);
}

static void add_block(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count) {
  if (writer->gather->is_on) {
    gather_numbers(writer, keys, count);
    return;
  }
  if (writer->heavy)
    for (size_t i = 0; i < count; i++) pwi_heavy_add(writer->heavy, pwi_mix64(keys[i]), 1, PWI_TOP_NUMBER, NULL, 0);
  put_numbers(writer, keys, count);
}

static pawl_status add_weighted(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count, int64_t weight) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count && status == PAWL_OK; i++)
    status = add_one(writer, pwi_mix64(keys[i]), weight, PWI_TOP_NUMBER, NULL, 0);
  return status;
}

pawl_status pawl_sketch_add_numbers(struct pawl_sketch_writer *writer, const uint64_t *keys, size_t count,
                                    int64_t weight) {
  if (weight != 1) return add_weighted(writer, keys, count, weight);
  while (count > 0 && writer->status == PAWL_OK) {
    size_t some = begin_block(writer, count);
    add_block(writer, keys, some);
    end_block(writer, some);
    keys += some;
    count -= some;
  }
  return writer->status == PAWL_OK ? PAWL_OK : say_again(writer);
}

/* --- flushing ------------------------------------------------------------------------------------------- */

static pawl_status flush_rows(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  pawl_status status = writer->status;
  empty(writer);
  for (uint32_t i = 0; i < writer->sketch->banks && status == PAWL_OK; i++)
    if (!pwi_sketch_batch_is_empty(&writer->batch[i], writer->sketch->width)) status = send(writer, i);
  while (writer->line_count > 0 && status == PAWL_OK) status = reap(writer, timeout_ns);
  return status;
}

pawl_status pawl_sketch_flush(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  pawl_status status = flush_rows(writer, timeout_ns);
  if (writer->status != PAWL_OK) return say_again(writer);
  return status == PAWL_OK ? pwi_sketch_offer(writer, timeout_ns) : status;
}

pawl_status pawl_sketch_set_time(struct pawl_sketch_writer *writer, int64_t time_ns) {
  if (time_ns < 0) return pwi_error(PAWL_INVALID, "sketch %s: the time is before 1970", writer->sketch->info.name);
  uint64_t window = pwi_sketch_window(writer->sketch, time_ns);
  if (window == writer->window) return PAWL_OK;
  pawl_status status = pawl_sketch_flush(writer, writer->timeout_ns);
  if (status != PAWL_OK) return status;
  if (writer->heavy) pwi_heavy_clear(writer->heavy);
  if (writer->registers) *writer->registers = (struct pwi_registers){0};
  writer->window = window;
  return PAWL_OK;
}

void pawl_sketch_figures(const struct pawl_sketch_writer *writer, struct pawl_sketch_figures *figures_out) {
  *figures_out = writer->figures;
  figures_out->merged += writer->gather->found;
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* Rows are aligned to cache lines. */
static pawl_status take_rows(struct pawl_sketch_writer *writer, uint32_t outstanding) {
  struct pawl_sketch *sketch = writer->sketch;
  size_t rows = (size_t)sketch->banks + outstanding, stride, bytes;
  void *memory;
  if (!pwi_round_up(8 * (size_t)sketch->width, 64, &stride) || !pwi_mul_size(rows, stride, &bytes))
    return pwi_error_status(PAWL_TOO_LARGE, "sketch %s", sketch->info.name);
  pawl_status status = pawl_buffer_create(sketch->session, bytes, &memory);
  if (status != PAWL_OK) return status;
  writer->memory = memory;
  for (size_t i = 0; i < sketch->banks; i++)
    pwi_sketch_batch_begin(&writer->batch[i], (uint64_t *)(void *)(writer->memory + i * stride), sketch->width);
  for (size_t i = sketch->banks; i < rows; i++)
    writer->spare[writer->spare_count++] = (uint64_t *)(void *)(writer->memory + i * stride);
  return PAWL_OK;
}

static bool take_memory(struct pawl_sketch_writer *writer, uint32_t outstanding) {
  const struct pawl_sketch *sketch = writer->sketch;
  writer->line_room = (size_t)outstanding + 1;
  writer->batch = pwi_alloc_zero(sketch->banks, sizeof *writer->batch);
  writer->spare = pwi_alloc_zero((size_t)sketch->banks + outstanding, sizeof *writer->spare);
  writer->line = pwi_alloc_zero(writer->line_room, sizeof *writer->line);
  writer->gather = pwi_alloc_zero(1, sizeof *writer->gather);
  if (sketch->distinct) writer->registers = pwi_alloc_zero(1, sizeof *writer->registers);
  if (sketch->top) writer->heavy = pwi_alloc_zero(1, sizeof *writer->heavy);
  return writer->batch && writer->spare && writer->line && writer->gather && (!sketch->distinct || writer->registers) &&
         (!sketch->top || writer->heavy);
}

static pawl_status take_offers(struct pawl_sketch_writer *writer) {
  struct pawl_session *session = writer->sketch->session;
  pawl_status status = PAWL_OK;
  void *memory = NULL;
  if (writer->heavy) status = pawl_buffer_create(session, 8 * PWI_TOP_WIDTH * PWI_TOP_BUCKETS, &memory);
  writer->offers = memory;
  memory = NULL;
  if (status == PAWL_OK && writer->registers)
    status = pawl_buffer_create(session, 8 * (size_t)PWI_DISTINCT_REGISTERS, &memory);
  writer->risen = memory;
  return status;
}

void pawl_sketch_writer_options_init_sized(struct pawl_sketch_writer_options *options, size_t struct_size) {
  const struct pawl_sketch_writer_options defaults = {0};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

pawl_status pawl_sketch_writer_open(struct pawl_sketch *sketch, const struct pawl_sketch_writer_options *options,
                                    struct pawl_sketch_writer **writer_out) {
  struct pawl_sketch_writer_options is = {0};
  pawl_status status = pwi_take_options("sketch_writer", options, &is, sizeof is);
  if (status) return status;
  if (!sketch || !writer_out) return pwi_error(PAWL_INVALID, "writer: sketch or writer_out is NULL");
  if (is.outstanding > OUTSTANDING_MAX || is.timeout_ns < 0)
    return pwi_error(PAWL_INVALID, "writer: at most %d pushes may be under way, and the timeout must not be negative",
                     OUTSTANDING_MAX);
  if (is.outstanding == 0) is.outstanding = OUTSTANDING;
  struct pawl_sketch_writer *writer = pwi_alloc_zero(1, sizeof *writer);
  if (!writer) return pwi_error_status(PAWL_NO_MEMORY, "writer of %s", sketch->info.name);
  writer->sketch = sketch;
  writer->timeout_ns = is.timeout_ns ? is.timeout_ns : TIMEOUT_NS;
  if (!take_memory(writer, is.outstanding))
    status = pwi_error_status(PAWL_NO_MEMORY, "writer of %s", sketch->info.name);
  if (status == PAWL_OK) status = take_rows(writer, is.outstanding);
  if (status == PAWL_OK) status = take_offers(writer);
  if (status != PAWL_OK) {
    pawl_sketch_writer_close(writer);
    return status;
  }
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  writer->window = pwi_sketch_window(sketch, now.tv_sec * PAWL_SECOND);
  writer->gather->is_on = writer->gather->is_allowed = !is.no_aggregate;
  writer->gather->began = pwi_host_now();
  *writer_out = writer;
  return PAWL_OK;
}

/* Unanswered pushes still read their rows, so the session keeps those. */
pawl_status pawl_sketch_writer_close(struct pawl_sketch_writer *writer) {
  if (!writer) return PAWL_OK;
  pawl_status status = writer->status == PAWL_OK ? PAWL_OK : say_again(writer);
  struct pawl_session *session = writer->sketch->session;
  while (writer->line_count > 0) {
    pawl_status ended = reap(writer, writer->is_late ? 0 : writer->timeout_ns);
    if (status == PAWL_OK) status = ended;
    if (ended == PAWL_TIMED_OUT) break;
  }
  bool is_quiet = writer->line_count == 0 && !writer->is_stuck;
  for (size_t i = 0; i < writer->line_count; i++)
    pawl_task_release(writer->line[(writer->line_first + i) % writer->line_room].task);
  if (is_quiet) pawl_buffer_destroy(session, writer->memory);
  if (is_quiet) pawl_buffer_destroy(session, writer->offers);
  if (is_quiet) pawl_buffer_destroy(session, writer->risen);
  pwi_free(writer->batch);
  pwi_free(writer->spare);
  pwi_free(writer->line);
  pwi_free(writer->gather);
  pwi_free(writer->registers);
  pwi_free(writer->heavy);
  pwi_free(writer);
  return status;
}
