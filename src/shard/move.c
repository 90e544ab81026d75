/* Moving the contents of positions as chunks, out and in.
 *
 * A chunk is about one vector. Its form, with base/cursor.h:
 *
 *   u8   version: 2 (version 1 has no incarnation)
 *   u8   kind: 1 rows, 2 tasks, 3 ticks, 4 refusals, 5 results of row functions
 *   u64  vector
 *   u32  incarnation of the vector
 *
 *   rows      u32 count, u32 bytes of a row, u32 bytes of a state, u8 whether the keys are consecutive; u64
 *             first key if they are, otherwise u64 for each key; then the values of all rows, then the states
 *             of all rows
 *   tasks     a clock as in store/clock.h
 *   ticks     a clock as in store/clock.h
 *   refusals  u32 count, and for each u64 begin, u64 end, u64 sender, u64 task, u32 status
 *   results   u32 count, and for each u64 sender, u64 task, and a result (protocol/run_result.h)
 *
 * Arriving rows are written to the table at once, because no request can read them before their positions are
 * held. Their times wait in the staged clock until then. A refusal is true wherever it is known, so it is
 * added at once.
 */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "protocol/planted.h"

#define CHUNK_VERSION 2
#define CHUNK_VERSION_OLD 1

enum what { ROWS = 1, TASKS = 2, TICKS = 3, REFUSALS = 4, RESULTS = 5 };

#define ROWS_HEAD (1 + 1 + 8 + 4 + 4 + 4 + 4 + 1 + 8)

/* --- copying out ---------------------------------------------------------------------------------------- */

void pwi_copying_init(struct pwi_copying *copying, struct pawl_range positions) {
  *copying = (struct pwi_copying){.positions = positions, .stage = ROWS};
}

static void begin_chunk(struct pwi_writer *writer, enum what what, const struct pwi_vector *vector) {
  pwi_write_u8(writer, CHUNK_VERSION);
  pwi_write_u8(writer, (uint8_t)what);
  pwi_write_u64(writer, vector->entry.id.id);
  pwi_write_u32(writer, vector->entry.incarnation);
}

/* The number of rows in a chunk of `size` bytes; at least one. */
static size_t rows_that_fit(const struct pwi_table *table, const struct pwi_rows *rows, size_t size) {
  size_t each = table->row_bytes + table->state_bytes + (rows->keys ? sizeof(uint64_t) : 0);
  size_t fit = size > ROWS_HEAD ? (size - ROWS_HEAD) / each : 0;
  if (fit == 0) fit = 1;
  return fit < rows->count ? fit : rows->count;
}

/* Sparse rows are read leaf by leaf, with consecutive slots. A chunk contains as many leaves as fit. */
static size_t gather_leaves(const struct pwi_table *table, struct pawl_range run, size_t size, struct pwi_rows *last) {
  size_t each = table->row_bytes + table->state_bytes + sizeof(uint64_t), total = 0;
  struct pwi_rows rows;
  while (pwi_table_scan(table, run, &rows) && (total == 0 || (total + rows.count) * each + ROWS_HEAD <= size)) {
    size_t count = total == 0 ? rows_that_fit(table, &rows, size) : rows.count;
    total += count;
    *last = rows;
    last->last = rows.keys[count - 1];
    if (count < rows.count) break;
    run.begin = last->last + 1;
  }
  return total;
}

static void write_leaves(struct pwi_writer *writer, const struct pwi_table *table, struct pawl_range run,
                         size_t count) {
  unsigned char *keys =
      pwi_write_room(writer, count * sizeof(uint64_t) + count * table->row_bytes + count * table->state_bytes);
  if (!keys) return;
  unsigned char *values = keys + count * sizeof(uint64_t), *state = values + count * table->row_bytes;
  struct pwi_rows rows;
  for (size_t done = 0, step; done < count; done += step, run.begin = rows.last + 1) {
    if (!pwi_table_scan(table, run, &rows)) return;
    step = rows.count < count - done ? rows.count : count - done;
    for (size_t i = 0; i < step; i++) pwi_put_u64(keys + (done + i) * sizeof(uint64_t), rows.keys[i]);
    memcpy(values + done * table->row_bytes, rows.values, step * table->row_bytes);
    if (table->state_bytes > 0) memcpy(state + done * table->state_bytes, rows.state, step * table->state_bytes);
  }
}

static void write_rows_head(struct pwi_writer *writer, const struct pwi_vector *vector, size_t count,
                            bool consecutive) {
  begin_chunk(writer, ROWS, vector);
  pwi_write_u32(writer, (uint32_t)count);
  pwi_write_u32(writer, (uint32_t)vector->table->row_bytes);
  pwi_write_u32(writer, (uint32_t)vector->table->state_bytes);
  pwi_write_u8(writer, consecutive);
}

/* Writes the first rows of `run`, which is not empty, and returns the key after the last of them. */
static uint64_t write_rows(struct pwi_writer *writer, const struct pwi_vector *vector, struct pawl_range run,
                           const struct pwi_rows *first, size_t size) {
  const struct pwi_table *table = vector->table;
  struct pwi_rows last = *first;
  if (!first->keys) {
    size_t count = rows_that_fit(table, first, size);
    write_rows_head(writer, vector, count, true);
    pwi_write_u64(writer, first->first);
    pwi_write_bytes(writer, first->values, count * table->row_bytes);
    if (table->state_bytes > 0) pwi_write_bytes(writer, first->state, count * table->state_bytes);
    return first->first + count;
  }
  size_t count = gather_leaves(table, run, size, &last);
  write_rows_head(writer, vector, count, false);
  write_leaves(writer, table, run, count);
  return last.last + 1;
}

/* Each function appends the next chunk of its kind and returns true, or returns false if there is none
 * left. */

static bool copy_rows(const struct pwi_vector *vector, struct pwi_copying *copying, size_t size,
                      struct pwi_writer *writer) {
  struct pawl_range keys = pwi_vector_keys(vector, copying->positions), run;
  struct pwi_rows rows;
  if (!vector->table) return false;
  while (pwi_vector_next_run(vector, keys, copying, &run)) {
    if (pwi_table_scan(vector->table, run, &rows)) {
      copying->next = write_rows(writer, vector, run, &rows, size);
      return true;
    }
    copying->next = run.end;
  }
  return false;
}

static bool copy_clock(const struct pwi_vector *vector, int which, struct pwi_copying *copying,
                       struct pwi_writer *writer) {
  struct pawl_range keys = pwi_vector_keys(vector, copying->positions), run;
  struct pwi_clock part;
  if (!pwi_times_next_run(&vector->clocks[which], keys, copying->next, &run)) return false;
  pawl_status status = pwi_clock_copy(&vector->clocks[which], run, &part);
  if (status != PAWL_OK) {
    writer->status = status;
    return true;
  }
  begin_chunk(writer, which == PWI_TASKS ? TASKS : TICKS, vector);
  size_t size = pwi_clock_encoded_size(&part);
  void *room = pwi_write_room(writer, size);
  if (room) status = pwi_clock_encode(&part, room, size, &size);
  assert(status == PAWL_OK);
  pwi_clock_fini(&part);
  copying->next = run.end;
  return true;
}

static size_t count_refusals(const struct pwi_vector *vector, struct pawl_range keys) {
  size_t count = 0;
  for (size_t i = 0; i < vector->refusals.count; i++)
    count += !pawl_range_is_empty(pawl_range_common(vector->refusals.items[i].range, keys));
  return count;
}

static bool copy_refusals(const struct pwi_vector *vector, struct pwi_copying *copying, struct pwi_writer *writer) {
  struct pawl_range keys = pwi_vector_keys(vector, copying->positions);
  size_t count = count_refusals(vector, keys);
  if (count == 0 || copying->next > 0) return false;
  begin_chunk(writer, REFUSALS, vector);
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < vector->refusals.count; i++) {
    const struct pwi_refusal *item = &vector->refusals.items[i];
    struct pawl_range range = pawl_range_common(item->range, keys);
    if (pawl_range_is_empty(range)) continue;
    pwi_write_u64(writer, range.begin);
    pwi_write_u64(writer, range.end);
    pwi_write_u64(writer, item->sender.id);
    pwi_write_u64(writer, item->task);
    pwi_write_u32(writer, (uint32_t)item->status);
  }
  copying->next = 1;
  return true;
}

static bool copy_results(const struct pwi_vector *vector, struct pwi_copying *copying, struct pwi_writer *writer) {
  struct pawl_range keys = pwi_vector_keys(vector, copying->positions);
  size_t count = pwi_results_copy(NULL, &vector->results, keys);
  bool is_saved = copying->no_rows; /* a checkpoint: a program that loads it sends no task again */
  if (count == 0 || copying->next > 0 || is_saved) return false;
  begin_chunk(writer, RESULTS, vector);
  pwi_write_u32(writer, (uint32_t)count);
  pwi_results_copy(writer, &vector->results, keys);
  copying->next = 1;
  return true;
}

static bool copy_stage(const struct pwi_vector *vector, struct pwi_copying *copying, size_t size,
                       struct pwi_writer *writer) {
  if (copying->rows_only && copying->stage != ROWS) return false;
  switch ((enum what)copying->stage) {
  case ROWS:
    return !copying->no_rows && copy_rows(vector, copying, size, writer);
  case TASKS:
    if (pwi_is_planted(PWI_PLANTED_FORGET_CLOCKS)) return false;
    return copy_clock(vector, PWI_TASKS, copying, writer);
  case TICKS:
    return vector->is_group && copy_clock(vector, PWI_TICKS, copying, writer);
  case REFUSALS:
    if (pwi_is_planted(PWI_PLANTED_LOST_REFUSAL)) return false;
    return copy_refusals(vector, copying, writer);
  case RESULTS:
    return copy_results(vector, copying, writer);
  }
  return false;
}

/* The vector being copied, or the one after it. Returns false after the last. */
static bool current_vector(const struct pwi_shard *shard, struct pwi_copying *copying,
                           const struct pwi_vector **vector_out) {
  struct pwi_vector_id id = copying->vector;
  const struct pwi_vector *vector = id.id > 0 ? pwi_shard_vector(shard, id) : NULL;
  if (!vector || copying->stage > RESULTS) {
    if (!pwi_shard_next(shard, &id)) return false;
    vector = pwi_shard_vector(shard, id);
    copying->vector = id;
    copying->stage = ROWS;
    copying->next = 0;
  }
  *vector_out = vector;
  return true;
}

pawl_status pwi_shard_copy(const struct pwi_shard *shard, struct pwi_copying *copying, size_t size,
                           struct pwi_writer *writer, bool *more_out) {
  const struct pwi_vector *vector;
  struct pwi_copying going = *copying;
  bool more = false;
  while (!more && current_vector(shard, &going, &vector)) {
    more = copy_stage(vector, &going, size, writer);
    if (more) break;
    going.stage++;
    going.next = 0;
  }
  if (writer->status != PAWL_OK) return writer->status;
  *copying = going;
  *more_out = more;
  return PAWL_OK;
}

/* --- taking in ------------------------------------------------------------------------------------------ */

struct chunk_rows {
  size_t count;
  bool consecutive;
  uint64_t first;
  const unsigned char *keys, *values, *state;
};

/* Finds keys, values and states in the chunk, and checks every size. */
static pawl_status read_rows(struct pwi_reader *reader, const struct pwi_table *table, struct chunk_rows *rows_out) {
  struct chunk_rows rows = {.count = pwi_read_u32(reader)};
  size_t row_bytes = pwi_read_u32(reader), state_bytes = pwi_read_u32(reader), size;
  uint8_t consecutive = pwi_read_u8(reader);
  rows.consecutive = consecutive == 1;
  if (reader->status != PAWL_OK || rows.count == 0 || consecutive > 1) return PAWL_CORRUPT;
  if (row_bytes != table->row_bytes || state_bytes != table->state_bytes) return PAWL_CORRUPT;
  if (rows.consecutive) {
    rows.first = pwi_read_u64(reader);
  } else {
    if (!pwi_mul_size(rows.count, sizeof(uint64_t), &size)) return PAWL_CORRUPT;
    rows.keys = pwi_read_bytes(reader, size);
  }
  rows.values = pwi_mul_size(rows.count, row_bytes, &size) ? pwi_read_bytes(reader, size) : NULL;
  rows.state = pwi_mul_size(rows.count, state_bytes, &size) ? pwi_read_bytes(reader, size) : NULL;
  if (!rows.values || !rows.state || pwi_reader_end(reader) != PAWL_OK) return PAWL_CORRUPT;
  *rows_out = rows;
  return PAWL_OK;
}

static uint64_t key_at(const struct chunk_rows *rows, size_t at) {
  return rows->consecutive ? rows->first + at : pwi_get_u64(rows->keys + at * sizeof(uint64_t));
}

/* Checks that all keys ascend, lie in the span, and are on positions that are not held. */
static pawl_status check_keys(const struct pwi_vector *vector, const struct chunk_rows *rows) {
  uint64_t first = key_at(rows, 0), last = key_at(rows, rows->count - 1);
  if (last < first || last >= vector->place.size) return PAWL_CORRUPT;
  for (size_t i = 1; i < rows->count && !rows->consecutive; i++)
    if (key_at(rows, i) <= key_at(rows, i - 1)) return PAWL_CORRUPT;
  bool held = pwi_rangeset_intersects(&vector->clocks[PWI_TASKS].held, pawl_range_of(first, last + 1));
  return held ? PAWL_INVALID : PAWL_OK;
}

static pawl_status take_block(struct pwi_shard *shard, struct pwi_vector *vector, const struct chunk_rows *rows,
                              size_t from, size_t count) {
  pawl_status status = pwi_shard_block(shard, 0, 0);
  if (status != PAWL_OK) return status;
  for (size_t i = 0; i < count; i++) shard->keys[i] = key_at(rows, from + i);
  status = pwi_shard_resolve(shard, vector, shard->keys, count, true, &shard->slots, NULL);
  if (status != PAWL_OK) return status;
  const struct pwi_table *table = vector->table;
  pwi_table_scatter(vector->table, PWI_APPLY_ASSIGN, &shard->slots, 0, count, rows->values + from * table->row_bytes,
                    NULL);
  pwi_table_assign_state(vector->table, &shard->slots, 0, count, rows->state + from * table->state_bytes);
  return PAWL_OK;
}

/* Takes in consecutive rows of a dense table with one copy. */
static pawl_status take_range(struct pwi_shard *shard, struct pwi_vector *vector, const struct chunk_rows *rows) {
  pawl_status status = pwi_rows_reserve(shard, vector, pawl_range_of(rows->first, rows->first + rows->count));
  if (status != PAWL_OK) return status;
  size_t values = rows->count * vector->table->is.width;
  return pwi_table_range_apply(vector->table, PWI_APPLY_ASSIGN, rows->first, 0, values, rows->values, NULL);
}

static pawl_status take_rows(struct pwi_shard *shard, struct pwi_vector *vector, struct pwi_reader *reader) {
  struct chunk_rows rows = {0};
  if (!vector->table) return PAWL_CORRUPT;
  if (vector->is_hollow) return PAWL_NO_MEMORY;
  pawl_status status = read_rows(reader, vector->table, &rows);
  if (status == PAWL_OK) status = check_keys(vector, &rows);
  if (status == PAWL_OK && rows.consecutive && !vector->table->is.sparse && vector->table->state_bytes == 0)
    return take_range(shard, vector, &rows);
  for (size_t done = 0; done < rows.count && status == PAWL_OK;) {
    size_t count = rows.count - done < PWI_BLOCK ? rows.count - done : PWI_BLOCK;
    status = take_block(shard, vector, &rows, done, count);
    done += count;
  }
  return status;
}

static bool clock_fits(const struct pwi_clock *clock, const struct pwi_vector *vector) {
  size_t count = clock->held.count;
  return count > 0 && clock->held.ranges[count - 1].end <= vector->place.size;
}

static bool clock_meets(const struct pwi_clock *clock, const struct pwi_rangeset *held) {
  for (size_t i = 0; i < clock->held.count; i++)
    if (pwi_rangeset_intersects(held, clock->held.ranges[i])) return true;
  return false;
}

/* Times of an earlier incarnation are set to 0. The clock is kept, so that later changes set their times. */
static pawl_status blank(struct pwi_clock *clock) {
  struct pwi_clock fresh;
  pawl_status status = pwi_clock_init(&fresh, clock->held.ranges, clock->held.count);
  if (status != PAWL_OK) return status;
  pwi_clock_fini(clock);
  *clock = fresh;
  return PAWL_OK;
}

static pawl_status take_clock(struct pwi_vector *vector, int which, const struct pwi_reader *reader, bool is_old) {
  struct pwi_clock clock;
  if (which == PWI_TICKS && !vector->is_group) return PAWL_CORRUPT;
  pawl_status status = pwi_clock_decode(reader->at, (size_t)(reader->end - reader->at), &clock);
  if (status != PAWL_OK) return status == PAWL_NO_MEMORY ? status : PAWL_CORRUPT;
  if (!clock_fits(&clock, vector))
    status = PAWL_CORRUPT;
  else if (clock_meets(&clock, &vector->clocks[which].held))
    status = PAWL_INVALID;
  else if (is_old)
    status = blank(&clock);
  if (status == PAWL_OK) status = pwi_clock_absorb(&vector->staged[which], &clock);
  pwi_clock_fini(&clock);
  return status;
}

#define REFUSAL_BYTES (4 * 8 + 4)

static pawl_status read_refusal(struct pwi_reader *reader, const struct pwi_vector *vector, struct pwi_refusal *out) {
  uint64_t begin = pwi_read_u64(reader);
  out->range = pawl_range_of(begin, pwi_read_u64(reader));
  out->sender.id = pwi_read_u64(reader);
  out->task = pwi_read_u64(reader);
  int32_t status = (int32_t)pwi_read_u32(reader);
  out->status = (pawl_status)status;
  if (reader->status != PAWL_OK || status >= 0 || pawl_range_is_empty(out->range)) return PAWL_CORRUPT;
  if (out->range.end > vector->place.size) return PAWL_CORRUPT;
  return pwi_rangeset_intersects(&vector->clocks[PWI_TASKS].held, out->range) ? PAWL_INVALID : PAWL_OK;
}

static pawl_status take_refusals(struct pwi_vector *vector, struct pwi_reader *reader) {
  size_t count = pwi_read_count(reader, REFUSAL_BYTES);
  if (reader->status != PAWL_OK || (size_t)(reader->end - reader->at) != count * REFUSAL_BYTES) return PAWL_CORRUPT;
  pawl_status status = pwi_refusals_reserve(&vector->refusals, count);
  for (size_t i = 0; i < count && status == PAWL_OK; i++) {
    struct pwi_refusal refusal;
    status = read_refusal(reader, vector, &refusal);
    if (status == PAWL_OK) pwi_refusals_add(&vector->refusals, &refusal);
  }
  return status;
}

/* The head has accepted these rows: a quota that is used up must not keep the chain short. */
static pawl_status fill_rows(struct pwi_shard *shard, struct pwi_vector *vector, struct pwi_reader *reader) {
  shard->is_filled = true;
  pawl_status status = take_rows(shard, vector, reader);
  shard->is_filled = false;
  return status;
}

pawl_status pwi_shard_take(struct pwi_shard *shard, const void *chunk, size_t size) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, chunk, size);
  uint8_t version = pwi_read_u8(&reader), what = pwi_read_u8(&reader);
  struct pwi_vector_id id = {pwi_read_u64(&reader)};
  uint32_t incarnation = version == CHUNK_VERSION ? pwi_read_u32(&reader) : 0;
  if (version != CHUNK_VERSION && version != CHUNK_VERSION_OLD) return PAWL_CORRUPT;
  if (reader.status != PAWL_OK || what < ROWS || what > RESULTS) return PAWL_CORRUPT;
  struct pwi_vector *vector = pwi_shard_vector(shard, id);
  if (!vector) return PAWL_OK;
  bool is_old = incarnation < vector->entry.incarnation;
  if (incarnation > vector->entry.incarnation) return PAWL_CANCELLED;
  if (is_old && (what == ROWS || what == REFUSALS || what == RESULTS)) return PAWL_OK;
  switch ((enum what)what) {
  case ROWS:
    return fill_rows(shard, vector, &reader);
  case TASKS:
    return take_clock(vector, PWI_TASKS, &reader, is_old);
  case TICKS:
    return take_clock(vector, PWI_TICKS, &reader, is_old);
  case REFUSALS:
    return take_refusals(vector, &reader);
  case RESULTS:
    return pwi_results_take(vector, &reader);
  }
  return PAWL_CORRUPT;
}

/* --- holding staged positions --------------------------------------------------------------------------- */

/* Adds the missing keys of `keys` to a clock, with times of 0. */
static pawl_status fill_up(struct pwi_clock *clock, struct pawl_range keys) {
  struct pawl_range gap;
  for (uint64_t at = keys.begin; at < keys.end && pwi_rangeset_next_gap(&clock->held, at, &gap); at = gap.end) {
    struct pwi_clock blank = {0};
    gap = pawl_range_common(gap, keys);
    if (pawl_range_is_empty(gap)) break;
    pawl_status status = pwi_clock_init(&blank, &gap, 1);
    if (status == PAWL_OK) status = pwi_clock_absorb(clock, &blank);
    if (status != PAWL_OK) {
      pwi_clock_fini(&blank);
      return status;
    }
  }
  return PAWL_OK;
}

static pawl_status what_came(struct pwi_vector *vector, int which, struct pawl_range keys, struct pwi_clock *more_out) {
  struct pwi_clock sum = {0}, part;
  struct pawl_range run;
  pawl_status status = PAWL_OK;
  for (uint64_t at = 0; status == PAWL_OK && pwi_times_next_run(&vector->staged[which], keys, at, &run); at = run.end) {
    status = pwi_clock_copy(&vector->staged[which], run, &part);
    if (status != PAWL_OK) break;
    status = pwi_clock_absorb(&sum, &part);
    pwi_clock_fini(&part);
  }
  if (status == PAWL_OK) status = fill_up(&sum, keys);
  if (status == PAWL_OK)
    *more_out = sum;
  else
    pwi_clock_fini(&sum);
  return status;
}

pawl_status pwi_shard_stage_rest(struct pwi_shard *shard, struct pawl_range positions) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < shard->vector_count && status == PAWL_OK; i++) {
    struct pwi_vector *vector = shard->vectors[i];
    for (int which = 0; which < pwi_vector_clocks(vector) && status == PAWL_OK; which++)
      status = fill_up(&vector->staged[which], pwi_vector_keys(vector, positions));
  }
  return status;
}

pawl_status pwi_shard_adopt(struct pwi_shard *shard, struct pawl_range positions) {
  pawl_status status = pwi_shard_extend(shard, positions, what_came);
  for (size_t i = 0; i < shard->vector_count && status == PAWL_OK; i++)
    pwi_vector_forget_staged(shard->vectors[i], pwi_vector_keys(shard->vectors[i], positions));
  return status;
}
