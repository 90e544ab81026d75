#include "data/batch.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

#define FIRST_ROWS 256
#define FIRST_ENTRIES 4096

pawl_status pwi_batch_create(struct pwi_batch **batch_out) {
  struct pwi_batch *batch = pwi_alloc_zero(1, sizeof *batch);
  if (!batch) return PAWL_NO_MEMORY;
  batch->starts = pwi_alloc_zero(1, sizeof *batch->starts);
  if (!batch->starts) {
    pwi_free(batch);
    return PAWL_NO_MEMORY;
  }
  *batch_out = batch;
  return PAWL_OK;
}

void pwi_batch_destroy(struct pwi_batch *batch) {
  if (!batch) return;
  pwi_free(batch->starts);
  pwi_free(batch->ids);
  pwi_free(batch->values);
  pwi_free(batch->labels);
  pwi_free(batch->weights);
  pwi_free(batch);
}

/* --- room ----------------------------------------------------------------------------------------------- */

static bool resize(void *field, size_t count, size_t size) {
  void *old, *block;
  memcpy(&old, field, sizeof old);
  block = pwi_resize_array(old, count, size);
  if (block) memcpy(field, &block, sizeof block);
  return block != NULL;
}

static pawl_status grow_rows(struct pwi_batch *batch) {
  size_t room = batch->row_room ? batch->row_room * 2 : FIRST_ROWS;
  if (!resize(&batch->starts, room + 1, sizeof *batch->starts) || !resize(&batch->labels, room, sizeof *batch->labels))
    return PAWL_NO_MEMORY;
  if (batch->weights && !resize(&batch->weights, room, sizeof *batch->weights)) return PAWL_NO_MEMORY;
  batch->row_room = room;
  return PAWL_OK;
}

pawl_status pwi_batch_grow(struct pwi_batch *batch, size_t entries) {
  size_t needed, room = batch->entry_room;
  if (batch->is.rows == batch->row_room) {
    pawl_status status = grow_rows(batch);
    if (status) return status;
  }
  if (!pwi_add_size(batch->is.entries, entries, &needed)) return PAWL_NO_MEMORY;
  if (needed <= room && room > 0) return PAWL_OK;
  room = room < FIRST_ENTRIES ? FIRST_ENTRIES : room * 2;
  if (room < needed) room = needed;
  if (!resize(&batch->ids, room, sizeof *batch->ids) || !resize(&batch->values, room, sizeof *batch->values))
    return PAWL_NO_MEMORY;
  batch->entry_room = room;
  return PAWL_OK;
}

/* --- rows with unsorted ids ----------------------------------------------------------------------------- */

#define RUN 8
#define NEAR 256 /* entries that are sorted on the stack, if their ids leave enough bits */

struct batch_entry {
  uint64_t id;
  float value;
};

/* Every step of the sort is stable, so values of equal ids are added in the order of the file. */
static void sort_run(struct batch_entry *entries, size_t count) {
  for (size_t i = 1; i < count; i++) {
    struct batch_entry entry = entries[i];
    size_t j = i;
    for (; j > 0 && entries[j - 1].id > entry.id; j--) entries[j] = entries[j - 1];
    entries[j] = entry;
  }
}

/* The comparison is unpredictable, so its result selects an address instead of a branch. */
static void merge(const struct batch_entry *from, size_t middle, size_t count, struct batch_entry *to) {
  const struct batch_entry *left = from, *right = from + middle, *left_end = right, *right_end = from + count;
  while (left < left_end && right < right_end) {
    bool takes_right = right->id < left->id;
    *to++ = *(takes_right ? right : left);
    right += takes_right;
    left += !takes_right;
  }
  memcpy(to, left, (size_t)(left_end - left) * sizeof *to);
  to += left_end - left;
  memcpy(to, right, (size_t)(right_end - right) * sizeof *to);
}

/* Sorts `count` entries with a buffer of equal size. Returns the array that holds the result. */
static struct batch_entry *sort_entries(struct batch_entry *entries, struct batch_entry *spare, size_t count) {
  for (size_t i = 0; i < count; i += RUN) sort_run(entries + i, count - i < RUN ? count - i : RUN);
  for (size_t width = RUN; width < count; width *= 2) {
    for (size_t i = 0; i < count; i += 2 * width) {
      size_t both = count - i < 2 * width ? count - i : 2 * width;
      merge(entries + i, both < width ? both : width, both, spare + i);
    }
    struct batch_entry *other = entries;
    entries = spare;
    spare = other;
  }
  return entries;
}

static pawl_status add_up(const struct batch_entry *entries, uint64_t *ids, float *values, size_t *count) {
  size_t kept = 0;
  for (size_t i = 0; i < *count; i++) {
    if (kept > 0 && ids[kept - 1] == entries[i].id) {
      values[kept - 1] += entries[i].value;
      if (!isfinite(values[kept - 1])) return PAWL_OVERFLOW;
      continue;
    }
    ids[kept] = entries[i].id;
    values[kept++] = entries[i].value;
  }
  *count = kept;
  return PAWL_OK;
}

/* --- short rows of short ids ---------------------------------------------------------------------------- */

/* An id and its index share one word: the sort moves half as many bytes, and no comparison branches. */
#define PLACE_BITS 8
static_assert(NEAR == 1 << PLACE_BITS, "PLACE_BITS must number every entry of a short row");

static void order(uint64_t *a, uint64_t *b) {
  uint64_t low = *a < *b ? *a : *b, high = *a < *b ? *b : *a;
  *a = low;
  *b = high;
}

static void merge_words(const uint64_t *left, const uint64_t *left_end, const uint64_t *right_end, uint64_t *to) {
  const uint64_t *right = left_end;
  while (left < left_end && right < right_end) {
    uint64_t a = *left, b = *right;
    bool takes_right = b < a;
    *to++ = takes_right ? b : a;
    right += takes_right;
    left += !takes_right;
  }
  while (left < left_end) *to++ = *left++;
  while (right < right_end) *to++ = *right++;
}

/* `count` must be a multiple of four. Returns the array that holds the result. */
static uint64_t *sort_words(uint64_t *words, uint64_t *spare, size_t count) {
  for (size_t i = 0; i < count; i += 4) {
    order(&words[i], &words[i + 1]);
    order(&words[i + 2], &words[i + 3]);
    order(&words[i], &words[i + 2]);
    order(&words[i + 1], &words[i + 3]);
    order(&words[i + 1], &words[i + 2]);
  }
  for (size_t width = 4; width < count; width *= 2) {
    for (size_t i = 0; i < count; i += 2 * width) {
      size_t both = count - i < 2 * width ? count - i : 2 * width, first = both < width ? both : width;
      merge_words(words + i, words + i + first, words + i + both, spare + i);
    }
    uint64_t *other = words;
    words = spare;
    spare = other;
  }
  return words;
}

static pawl_status sort_short(uint64_t *ids, float *values, size_t *count) {
  uint64_t words[NEAR], spare[NEAR];
  struct batch_entry entries[NEAR];
  size_t padded = (*count + 3) / 4 * 4;
  for (size_t i = 0; i < *count; i++) words[i] = ids[i] << PLACE_BITS | i;
  for (size_t i = *count; i < padded; i++) words[i] = UINT64_MAX;
  const uint64_t *sorted = sort_words(words, spare, padded);
  for (size_t i = 0; i < *count; i++)
    entries[i] = (struct batch_entry){sorted[i] >> PLACE_BITS, values[sorted[i] & (NEAR - 1)]};
  return add_up(entries, ids, values, count);
}

static bool are_short(const uint64_t *ids, size_t count) {
  uint64_t all = 0;
  for (size_t i = 0; i < count; i++) all |= ids[i];
  return all >> (64 - PLACE_BITS) == 0;
}

pawl_status pwi_entries_sort(uint64_t *ids, float *values, size_t *count) {
  if (*count <= NEAR && are_short(ids, *count)) return sort_short(ids, values, count);
  if (*count > SIZE_MAX / 2) return PAWL_NO_MEMORY;
  struct batch_entry *entries = pwi_resize_array(NULL, *count * 2, sizeof *entries);
  if (!entries) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < *count; i++) entries[i] = (struct batch_entry){ids[i], values[i]};
  pawl_status status = add_up(sort_entries(entries, entries + *count, *count), ids, values, count);
  pwi_free(entries);
  return status;
}

static pawl_status weigh(struct pwi_batch *batch, float weight) {
  if (!batch->weights) {
    batch->weights = pwi_resize_array(NULL, batch->row_room, sizeof *batch->weights);
    if (!batch->weights) return PAWL_NO_MEMORY;
    for (size_t i = 0; i < batch->is.rows; i++) batch->weights[i] = 1;
  }
  batch->weights[batch->is.rows] = weight;
  return PAWL_OK;
}

pawl_status pwi_batch_end_row(struct pwi_batch *batch, size_t entries, bool is_sorted, float label, float weight) {
  uint64_t *ids = batch->ids + batch->is.entries;
  pawl_status status = PAWL_OK;
  if (!is_sorted) status = pwi_entries_sort(ids, batch->values + batch->is.entries, &entries);
  if (!status && (batch->weights || weight != 1)) status = weigh(batch, weight);
  if (status) return status;
  if (entries > 0 && ids[entries - 1] > batch->is.max_id) batch->is.max_id = ids[entries - 1];
  batch->is.entries += entries;
  if (isnan(label)) batch->is.unlabelled++;
  batch->labels[batch->is.rows++] = label;
  batch->starts[batch->is.rows] = batch->is.entries;
  return PAWL_OK;
}

static void move_row(struct pwi_batch *batch, size_t from, size_t to, uint64_t begin, uint64_t end, uint64_t at) {
  size_t count = (size_t)(end - begin);
  memmove(batch->ids + at, batch->ids + begin, count * sizeof *batch->ids);
  if (batch->values) memmove(batch->values + at, batch->values + begin, count * sizeof *batch->values);
  batch->labels[to] = batch->labels[from];
  if (batch->weights) batch->weights[to] = batch->weights[from];
}

void pwi_batch_sift(struct pwi_batch *batch, bool (*keeps)(const void *context, size_t row), const void *context) {
  uint64_t begin = 0, at = 0;
  size_t kept = 0;
  batch->is.max_id = batch->is.unlabelled = 0;
  for (size_t row = 0; row < batch->is.rows; row++) {
    uint64_t end = batch->starts[row + 1];
    if (keeps(context, row)) {
      move_row(batch, row, kept, begin, end, at);
      at += end - begin;
      if (end > begin && batch->ids[at - 1] > batch->is.max_id) batch->is.max_id = batch->ids[at - 1];
      if (isnan(batch->labels[kept])) batch->is.unlabelled++;
      batch->starts[++kept] = at;
    }
    begin = end;
  }
  batch->is.rows = kept;
  batch->is.entries = (size_t)at;
}

/* --- transformations that the options ask for ----------------------------------------------------------- */

static void scale_rows(struct pwi_batch *batch) {
  for (size_t row = 0; row < batch->is.rows; row++) {
    float *values = batch->values + batch->starts[row];
    size_t count = (size_t)(batch->starts[row + 1] - batch->starts[row]);
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
    if (sum <= 0) continue;
    double scale = 1 / sqrt(sum);
    for (size_t i = 0; i < count; i++) values[i] = (float)(values[i] * scale);
  }
}

static bool all_one(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (values[i] != 1) return false;
  return true;
}

/* Returns unused memory if there is much of it. A block that cannot be shrunk stays as it is. */
static void trim(struct pwi_batch *batch) {
  if (batch->entry_room / 2 > batch->is.entries && batch->is.entries > 0) {
    size_t room = batch->is.entries;
    if (resize(&batch->ids, room, sizeof *batch->ids) && batch->values)
      resize(&batch->values, room, sizeof *batch->values);
    batch->entry_room = room;
  }
}

pawl_status pwi_batch_finish(struct pwi_batch *batch, bool binary, bool unit_rows) {
  if (!batch->values && unit_rows && batch->is.entries > 0) {
    batch->values = pwi_resize_array(NULL, batch->is.entries, sizeof *batch->values);
    if (!batch->values) return PAWL_NO_MEMORY;
    binary = true;
  }
  if (binary && batch->values)
    for (size_t i = 0; i < batch->is.entries; i++) batch->values[i] = 1;
  if (unit_rows) scale_rows(batch);
  if (batch->values && all_one(batch->values, batch->is.entries)) {
    pwi_free(batch->values);
    batch->values = NULL;
  }
  trim(batch);
  batch->is.starts = batch->starts;
  batch->is.ids = batch->ids;
  batch->is.values = batch->values;
  batch->is.labels = batch->labels;
  batch->is.weights = batch->weights;
  return PAWL_OK;
}
