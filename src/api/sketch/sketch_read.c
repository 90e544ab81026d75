/* Queries sketches. Banks are pulled whole: a bank holds the cells of a thing, and the total that its
 * error bound is computed from. Rows of the requested windows are added up first, so the rest of the code
 * does not deal with windows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/session.h>
#include <pawl/task.h>

#include "api/session.h"
#include "api/sketch/sketch.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/sketch_distinct.h"
#include "store/sketch_top.h"

/* --- rows ----------------------------------------------------------------------------------------------- */

/* Rows of one vector in memory that the session owns, because a pull that does not end in time continues
 * to fill it. */
struct pulled_rows {
  struct pawl_session *session;
  struct pawl_vector *vector;
  void *memory;
  uint64_t count; /* rows that fit */
  bool is_lost;   /* a pull is under way: the session keeps the memory */
};

static pawl_status open_rows(struct pulled_rows *rows, struct pawl_session *session, struct pawl_vector *vector,
                             uint64_t count, size_t row_bytes) {
  size_t bytes;
  *rows = (struct pulled_rows){.session = session, .vector = vector, .count = count};
  if (!pwi_mul_size((size_t)count, row_bytes, &bytes)) return pwi_error_status(PAWL_TOO_LARGE, "sketch");
  return pawl_buffer_create(session, bytes, &rows->memory);
}

static void close_rows(struct pulled_rows *rows) {
  if (!rows->is_lost) pawl_buffer_destroy(rows->session, rows->memory);
}

static pawl_status pull(struct pulled_rows *rows, struct pawl_where where, int64_t timeout_ns) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_pull(rows->vector, where, rows->memory, &task);
  if (status != PAWL_OK) return status;
  status = pawl_task_finish(task, timeout_ns);
  if (status == PAWL_TIMED_OUT) rows->is_lost = true;
  return status == PAWL_OK ? PAWL_OK : pwi_session_error(rows->session, status, "sketch");
}

static pawl_status pull_slot(struct pulled_rows *rows, uint64_t slot, int64_t timeout_ns) {
  return pull(rows, pawl_at_range(slot * rows->count, (slot + 1) * rows->count), timeout_ns);
}

/* --- windows -------------------------------------------------------------------------------------------- */

/* The requested windows: numbers [first, last]. */
struct windows {
  uint64_t first, last;
};

static bool has_window(struct windows windows, uint64_t number) {
  return number >= windows.first && number <= windows.last;
}

/* The newest window of any row of a vector. Registers store theirs above the rank. */
static pawl_status find_newest(const struct pawl_sketch *sketch, struct pulled_rows *rows, uint32_t width,
                               uint32_t shift, uint64_t *newest_out, int64_t timeout_ns) {
  uint64_t newest = 0;
  for (uint64_t slot = 0; slot < sketch->slots; slot++) {
    pawl_status status = pull_slot(rows, slot, timeout_ns);
    if (status != PAWL_OK) return status;
    const uint64_t *words = rows->memory;
    uint64_t step = shift ? 1 : width;
    for (uint64_t i = 0; i < rows->count * width; i += step)
      if (words[i] >> shift > newest) newest = words[i] >> shift;
  }
  *newest_out = newest;
  return PAWL_OK;
}

static pawl_status find_windows(const struct pawl_sketch *sketch, const struct pawl_sketch_span *span,
                                struct pulled_rows *rows, uint32_t width, uint32_t shift, int64_t timeout_ns,
                                struct windows *windows_out) {
  uint64_t last = 0, count = span && span->last && span->last < sketch->slots ? span->last : sketch->slots;
  pawl_status status = PAWL_OK;
  *windows_out = (struct windows){0, 0};
  if (!sketch->info.options.windows) return PAWL_OK;
  if (span && span->until_ns)
    last = pwi_sketch_window(sketch, span->until_ns);
  else
    status = find_newest(sketch, rows, width, shift, &last, timeout_ns);
  if (status == PAWL_OK) *windows_out = (struct windows){last >= count ? last - count + 1 : 0, last};
  return status;
}

/* --- cells ---------------------------------------------------------------------------------------------- */

/* The sum over the windows, one row for each bank. */
struct cells {
  uint64_t *sums;
  struct windows windows;
};

static pawl_status sum_slots(const struct pawl_sketch *sketch, struct pulled_rows *rows, struct cells *cells,
                             int64_t timeout_ns) {
  for (uint64_t slot = 0; slot < sketch->slots; slot++) {
    pawl_status status = pull_slot(rows, slot, timeout_ns);
    if (status != PAWL_OK) return status;
    const uint64_t *row = rows->memory;
    for (uint32_t i = 0; i < sketch->banks; i++, row += sketch->width)
      if (has_window(cells->windows, row[0]))
        pwi_sketch_sum(&sketch->bank, cells->sums + (size_t)i * sketch->width, row);
  }
  return PAWL_OK;
}

/* Reads all banks. The caller frees the sums. */
static pawl_status read_cells(const struct pawl_sketch *sketch, const struct pawl_sketch_span *span, int64_t timeout_ns,
                              struct cells *cells_out) {
  struct pulled_rows rows;
  struct cells cells = {.sums = pwi_alloc_zero((size_t)sketch->banks * sketch->width, sizeof *cells.sums)};
  if (!cells.sums) return pwi_error_status(PAWL_NO_MEMORY, "sketch %s", sketch->info.name);
  pawl_status status =
      open_rows(&rows, sketch->session, sketch->cells, sketch->banks, (size_t)sketch->width * sizeof *cells.sums);
  if (status == PAWL_OK) {
    status = find_windows(sketch, span, &rows, sketch->width, 0, timeout_ns, &cells.windows);
    if (status == PAWL_OK) status = sum_slots(sketch, &rows, &cells, timeout_ns);
    close_rows(&rows);
  }
  if (status == PAWL_OK)
    *cells_out = cells;
  else
    pwi_free(cells.sums);
  return status;
}

struct pawl_sketch_count pwi_sketch_count(const struct pawl_sketch *sketch, const uint64_t *row, uint64_t hash) {
  struct pawl_sketch_count count = {.error = pwi_sketch_error(&sketch->bank, row)};
  if (sketch->bank.is_signed) {
    count.count = pwi_sketch_median(&sketch->bank, row, hash);
  } else {
    uint64_t least = pwi_sketch_least(&sketch->bank, row, hash);
    count.count = least > INT64_MAX ? INT64_MAX : (int64_t)least;
  }
  count.is_capped = count.count == INT64_MAX || count.count <= -INT64_MAX;
  return count;
}

static struct pawl_sketch_count count_in(const struct pawl_sketch *sketch, const uint64_t *sums, uint64_t hash) {
  return pwi_sketch_count(sketch, sums + (size_t)pwi_sketch_bank_number(hash, sketch->banks) * sketch->width, hash);
}

static uint64_t hash_of(const struct pawl_sketch_key *key) {
  return key->bytes ? pwi_hash(key->bytes, key->size, 0) : pwi_mix64(key->number);
}

/* Few things of a sketch without windows: reads only their banks, one after another. */
static pawl_status query_few(struct pawl_sketch *sketch, const struct pawl_sketch_key *keys, size_t count,
                             int64_t timeout_ns, struct pawl_sketch_count *counts_out) {
  struct pulled_rows rows;
  pawl_status status = open_rows(&rows, sketch->session, sketch->cells, 1, (size_t)sketch->width * 8);
  if (status != PAWL_OK) return status;
  for (size_t i = 0; i < count && status == PAWL_OK; i++) {
    uint64_t hash = hash_of(&keys[i]), bank = pwi_sketch_bank_number(hash, sketch->banks);
    status = pull_slot(&rows, bank, timeout_ns);
    if (status == PAWL_OK) counts_out[i] = pwi_sketch_count(sketch, rows.memory, hash);
  }
  close_rows(&rows);
  return status;
}

pawl_status pawl_sketch_query(struct pawl_sketch *sketch, const struct pawl_sketch_key *keys, size_t count,
                              const struct pawl_sketch_span *span, int64_t timeout_ns,
                              struct pawl_sketch_count *counts_out) {
  struct cells cells;
  if (!sketch || (!keys && count) || (!counts_out && count))
    return pwi_error(PAWL_INVALID, "sketch: sketch, keys or counts_out is NULL");
  if (!sketch->info.options.windows && count * 4 <= sketch->banks)
    return query_few(sketch, keys, count, timeout_ns, counts_out);
  pawl_status status = read_cells(sketch, span, timeout_ns, &cells);
  if (status != PAWL_OK) return status;
  for (size_t i = 0; i < count; i++) counts_out[i] = count_in(sketch, cells.sums, hash_of(&keys[i]));
  pwi_free(cells.sums);
  return PAWL_OK;
}

pawl_status pawl_sketch_total(struct pawl_sketch *sketch, const struct pawl_sketch_span *span, int64_t timeout_ns,
                              uint64_t *total_out) {
  struct cells cells;
  uint64_t total = 0;
  pawl_status status = read_cells(sketch, span, timeout_ns, &cells);
  if (status != PAWL_OK) return status;
  for (size_t i = 0; i < sketch->banks; i++)
    if (!pwi_add_u64(total, cells.sums[i * sketch->width + 1], &total)) total = UINT64_MAX;
  pwi_free(cells.sums);
  *total_out = total;
  return PAWL_OK;
}

/* --- top ------------------------------------------------------------------------------------------------ */

/* The candidates found: one entry for each hash, unordered at first. */
struct found {
  struct pwi_top_slot *slots;
  size_t count, room;
};

static pawl_status find_slots(struct found *found, const uint64_t *row) {
  const struct pwi_top_slot *slots = (const struct pwi_top_slot *)(row + PWI_TOP_HEAD);
  for (size_t i = 0; i < PWI_TOP_SLOTS && slots[i].estimate > 0; i++) {
    if (!PWI_GROW(found->slots, found->room, found->count + 1)) return PAWL_NO_MEMORY;
    found->slots[found->count++] = slots[i];
  }
  return PAWL_OK;
}

static pawl_status find_candidates(const struct pawl_sketch *sketch, struct windows windows, int64_t timeout_ns,
                                   struct found *found) {
  struct pulled_rows rows;
  pawl_status status = open_rows(&rows, sketch->session, sketch->top, PWI_TOP_BUCKETS, 8 * PWI_TOP_WIDTH);
  if (status != PAWL_OK) return status;
  for (uint64_t slot = 0; slot < sketch->slots && status == PAWL_OK; slot++) {
    status = pull_slot(&rows, slot, timeout_ns);
    const uint64_t *row = rows.memory;
    for (int i = 0; i < PWI_TOP_BUCKETS && status == PAWL_OK; i++, row += PWI_TOP_WIDTH)
      if (has_window(windows, row[0])) status = find_slots(found, row);
  }
  close_rows(&rows);
  return status;
}

static int compare_hashes(const void *a, const void *b) {
  const struct pwi_top_slot *left = a, *right = b;
  return (left->hash > right->hash) - (left->hash < right->hash);
}

/* Sorts by decreasing count, then by hash, so that the order is the same on every machine. */
static int compare_estimates(const void *a, const void *b) {
  const struct pwi_top_slot *left = a, *right = b;
  if (left->estimate != right->estimate) return left->estimate < right->estimate ? 1 : -1;
  return compare_hashes(a, b);
}

/* Keeps one entry for each hash, with its current estimate. */
static void rank(const struct pawl_sketch *sketch, const uint64_t *sums, struct found *found) {
  size_t kept = 0;
  if (found->count == 0) return;
  qsort(found->slots, found->count, sizeof *found->slots, compare_hashes);
  for (size_t i = 0; i < found->count; i++) {
    if (kept > 0 && found->slots[kept - 1].hash == found->slots[i].hash) continue;
    int64_t count = count_in(sketch, sums, found->slots[i].hash).count;
    if (count <= 0) continue;
    found->slots[kept] = found->slots[i];
    found->slots[kept++].estimate = (uint64_t)count;
  }
  found->count = kept;
  qsort(found->slots, kept, sizeof *found->slots, compare_estimates);
}

static void tell(const struct pawl_sketch *sketch, const uint64_t *sums, const struct pwi_top_slot *slot,
                 struct pawl_sketch_entry *entry) {
  size_t length = slot->about & 0xff;
  *entry = (struct pawl_sketch_entry){.is_number = slot->about >> 8 == PWI_TOP_NUMBER,
                                      .size = length <= PAWL_SKETCH_NAME_MAX ? length : PAWL_SKETCH_NAME_MAX,
                                      .is = count_in(sketch, sums, slot->hash)};
  if (entry->is_number) entry->number = pwi_unmix64(slot->hash);
  memcpy(entry->name, slot->name, entry->size);
}

pawl_status pawl_sketch_top(struct pawl_sketch *sketch, size_t room, const struct pawl_sketch_span *span,
                            int64_t timeout_ns, struct pawl_sketch_entry *entries_out, size_t *count_out) {
  struct cells cells;
  struct found found = {0};
  if (!sketch->top)
    return pwi_error(PAWL_UNSUPPORTED, "sketch %s does not keep the most frequent items: it was created with no_top",
                     sketch->info.name);
  pawl_status status = read_cells(sketch, span, timeout_ns, &cells);
  if (status != PAWL_OK) return status;
  status = find_candidates(sketch, cells.windows, timeout_ns, &found);
  if (status == PAWL_OK) {
    rank(sketch, cells.sums, &found);
    size_t count = found.count < room ? found.count : room;
    for (size_t i = 0; i < count; i++) tell(sketch, cells.sums, &found.slots[i], &entries_out[i]);
    *count_out = count;
  }
  pwi_free(found.slots);
  pwi_free(cells.sums);
  return status == PAWL_OK ? PAWL_OK : pwi_error_status(status, "sketch %s", sketch->info.name);
}

/* --- distinct ------------------------------------------------------------------------------------------- */

static pawl_status merge_registers(const struct pawl_sketch *sketch, struct pulled_rows *rows, struct windows windows,
                                   int64_t timeout_ns, uint8_t *registers) {
  for (uint64_t slot = 0; slot < sketch->slots; slot++) {
    pawl_status status = pull_slot(rows, slot, timeout_ns);
    if (status != PAWL_OK) return status;
    const uint64_t *words = rows->memory;
    for (size_t i = 0; i < PWI_DISTINCT_REGISTERS; i++) {
      uint8_t value = words[i] & ((1 << PWI_DISTINCT_RANK_BITS) - 1);
      if (has_window(windows, words[i] >> PWI_DISTINCT_RANK_BITS) && value > registers[i]) registers[i] = value;
    }
  }
  return PAWL_OK;
}

pawl_status pawl_sketch_distinct(struct pawl_sketch *sketch, const struct pawl_sketch_span *span, int64_t timeout_ns,
                                 double *number_out, double *error_out) {
  struct pulled_rows rows;
  struct windows windows;
  if (!sketch->distinct)
    return pwi_error(PAWL_UNSUPPORTED, "sketch %s does not count distinct items: it was created with no_distinct",
                     sketch->info.name);
  uint8_t *registers = pwi_alloc_zero(PWI_DISTINCT_REGISTERS, 1);
  if (!registers) return pwi_error_status(PAWL_NO_MEMORY, "sketch %s", sketch->info.name);
  pawl_status status = open_rows(&rows, sketch->session, sketch->distinct, PWI_DISTINCT_ROWS, 8 * PWI_DISTINCT_WIDTH);
  if (status == PAWL_OK) {
    status = find_windows(sketch, span, &rows, PWI_DISTINCT_WIDTH, PWI_DISTINCT_RANK_BITS, timeout_ns, &windows);
    if (status == PAWL_OK) status = merge_registers(sketch, &rows, windows, timeout_ns, registers);
    close_rows(&rows);
  }
  if (status == PAWL_OK) {
    *number_out = pwi_distinct_estimate(registers);
    *error_out = PWI_DISTINCT_ERROR * *number_out;
  }
  pwi_free(registers);
  return status;
}
