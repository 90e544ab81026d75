/* The common part of both kinds of table: checks, key lists, and moving values by slot. */
#include "store/table.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"
#include "store/kernels.h"

#define ROW_BYTES_MAX ((uint64_t)1 << 30)

/* The minimum number of keys per run for which runs are used; below, single slots are as fast. */
#define RUN_LENGTH 16

size_t pwi_scalar_size(enum pwi_scalar type) {
  switch (type) {
  case PWI_SCALAR_F32:
  case PWI_SCALAR_I32:
    return 4;
  case PWI_SCALAR_F64:
  case PWI_SCALAR_I64:
  case PWI_SCALAR_U64:
    return 8;
  }
  return 0;
}

pawl_status pwi_table_check(const struct pwi_table_options *options) {
  size_t size = pwi_scalar_size(options->type);
  if (size == 0 || options->width == 0 || pawl_range_is_empty(options->span)) return PAWL_INVALID;
  if (options->width > ROW_BYTES_MAX / size || options->state_width > ROW_BYTES_MAX / size) return PAWL_TOO_LARGE;
  if (options->sparse) return PAWL_OK;
  uint64_t row_bytes = ((uint64_t)options->width + options->state_width) * size;
  return pwi_dense_check(pawl_range_size(options->span), row_bytes);
}

static struct pwi_table base_of(const struct pwi_table_options *options) {
  size_t size = pwi_scalar_size(options->type);
  return (struct pwi_table){
      .is = *options,
      .row_bytes = options->width * size,
      .state_bytes = options->state_width * size,
      .layout = 1,
      .limit = UINT64_MAX,
  };
}

pawl_status pwi_table_create(const struct pwi_table_options *options, struct pwi_table **table_out) {
  pawl_status status = pwi_table_check(options);
  if (status != PAWL_OK) return status;
  struct pwi_table base = base_of(options);
  return options->sparse ? pwi_sparse_create(&base, table_out) : pwi_dense_create(&base, table_out);
}

/* --- the placeholder table ------------------------------------------------------------------------------ */

static void hollow_destroy(struct pwi_table *table) { pwi_free(table); }

static uint64_t hollow_count(const struct pwi_table *table) { return (void)table, 0; }

static uint64_t hollow_bytes(const struct pwi_table *table) { return sizeof *table; }

static pawl_status hollow_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                                  struct pwi_slots *slots) {
  (void)table, (void)keys;
  if (create && count > 0) return PAWL_TOO_LARGE;
  for (size_t i = 0; i < count; i++) slots->slots[i] = PWI_SLOT_MISSING;
  slots->missing = count;
  return PAWL_OK;
}

static bool hollow_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out) {
  return (void)table, (void)range, (void)rows_out, false;
}

static void hollow_delete(struct pwi_table *table, struct pawl_range range) { (void)table, (void)range; }

static const struct pwi_table_ops hollow_ops = {.destroy = hollow_destroy,
                                                .count = hollow_count,
                                                .bytes = hollow_bytes,
                                                .resolve = hollow_resolve,
                                                .scan = hollow_scan,
                                                .delete = hollow_delete};

pawl_status pwi_table_create_hollow(const struct pwi_table_options *options, struct pwi_table **table_out) {
  struct pwi_table *table = pwi_alloc(sizeof *table);
  if (!table) return PAWL_NO_MEMORY;
  *table = base_of(options);
  table->is.sparse = true;
  table->ops = &hollow_ops;
  *table_out = table;
  return PAWL_OK;
}

void pwi_table_destroy(struct pwi_table *table) {
  if (table) table->ops->destroy(table);
}

uint64_t pwi_table_count(const struct pwi_table *table) { return table->ops->count(table); }

uint64_t pwi_table_bytes(const struct pwi_table *table) { return table->ops->bytes(table); }

/* --- key lists ------------------------------------------------------------------------------------------ */

void pwi_slots_fini(struct pwi_slots *slots) {
  pwi_free(slots->slots);
  pwi_free(slots->runs);
  *slots = (struct pwi_slots){0};
}

/* The loop has no branch, so that several keys are compared at once. */
static bool keys_rise(const uint64_t *keys, size_t count) {
  size_t wrong = 0;
  for (size_t i = 1; i < count; i++) wrong += keys[i] <= keys[i - 1];
  return wrong == 0;
}

static size_t count_steps(const uint32_t *slots, size_t count) {
  size_t steps = 0;
  for (size_t i = 1; i < count; i++) steps += slots[i] != slots[i - 1] + 1;
  return steps;
}

static pawl_status reserve_slots(struct pwi_slots *slots, size_t count) {
  if (count <= slots->slots_room) return PAWL_OK;
  uint32_t *grown = pwi_resize_array(slots->slots, count, sizeof *grown);
  if (!grown) return PAWL_NO_MEMORY;
  slots->slots = grown;
  slots->slots_room = count;
  return PAWL_OK;
}

static pawl_status reserve_runs(struct pwi_slots *slots, size_t count) {
  if (count <= slots->runs_room) return PAWL_OK;
  struct pwi_run *grown = pwi_resize_array(slots->runs, count, sizeof *grown);
  if (!grown) return PAWL_NO_MEMORY;
  slots->runs = grown;
  slots->runs_room = count;
  return PAWL_OK;
}

/* Converts slots to runs where this is faster. If there is no memory for runs, the slots are used. */
static void find_runs(struct pwi_slots *slots) {
  slots->run_count = 0;
  if (slots->missing > 0 || slots->count < RUN_LENGTH) return;
  size_t runs = count_steps(slots->slots, slots->count) + 1;
  if (runs > slots->count / RUN_LENGTH || reserve_runs(slots, runs + 1) != PAWL_OK) return;
  for (size_t i = 0; i < slots->count; i++) {
    if (i > 0 && slots->slots[i] == slots->slots[i - 1] + 1) continue;
    slots->runs[slots->run_count++] = (struct pwi_run){slots->slots[i], (uint32_t)i};
  }
  slots->runs[runs] = (struct pwi_run){0, (uint32_t)slots->count};
}

static bool keys_fit(const struct pwi_table *table, const uint64_t *keys, size_t count) {
  if (!keys_rise(keys, count)) return false;
  return count == 0 || (keys[0] >= table->is.span.begin && keys[count - 1] < table->is.span.end);
}

pawl_status pwi_table_resolve(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                              struct pwi_slots *slots) {
  slots->layout = 0;
  if (count >= UINT32_MAX) return PAWL_TOO_LARGE;
  if (!keys_fit(table, keys, count)) return PAWL_INVALID;
  pawl_status status = reserve_slots(slots, count);
  if (status != PAWL_OK) return status;
  slots->count = count;
  slots->missing = 0;
  status = table->ops->resolve(table, keys, count, create, slots);
  if (status != PAWL_OK) return status;
  find_runs(slots);
  slots->layout = table->layout;
  return PAWL_OK;
}

pawl_status pwi_table_refresh(struct pwi_table *table, const uint64_t *keys, size_t count, bool create,
                              struct pwi_slots *slots) {
  uint64_t since = slots->layout;
  if (since == 0 || slots->count != count || !table->ops->refresh) {
    return pwi_table_resolve(table, keys, count, create, slots);
  }
  if (since == table->layout && (slots->missing == 0 || !create)) return PAWL_OK;
  slots->layout = 0;
  pawl_status status = table->ops->refresh(table, keys, since, create, slots);
  if (status != PAWL_OK) return status;
  find_runs(slots);
  slots->layout = table->layout;
  return PAWL_OK;
}

/* --- values by slot ------------------------------------------------------------------------------------- */

/* The run that contains key number `index`. */
static size_t run_of(const struct pwi_slots *slots, size_t index) {
  if (slots->run_count == 0) return 0;
  struct pwi_search search = {.low = 1, .high = slots->run_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, slots->runs[search.middle].start <= index);
  return search.low - 1;
}

/* Part of a run: rows of consecutive slots, and of consecutive keys of the list. */
struct stretch {
  size_t slot;
  size_t count;
};

/* The stretch of at most `count` keys that begins with key number `from` in run number `*run`. Advances
 * `*run` when the run ends. */
static inline struct stretch next_stretch(const struct pwi_slots *slots, size_t *run, size_t from, size_t count) {
  const struct pwi_run *here = &slots->runs[*run];
  size_t left = here[1].start - from;
  struct stretch stretch = {here->slot + (from - here->start), left < count ? left : count};
  if (stretch.count == left) ++*run;
  return stretch;
}

static void check_piece(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count) {
  assert(pwi_slots_hold(slots, table));
  assert(from <= slots->count && count <= slots->count - from);
  (void)table, (void)slots, (void)from, (void)count;
}

static void gather_part(const struct pwi_slots *slots, const char *rows, size_t bytes, size_t from, size_t count,
                        char *out) {
  if (count == 0) return;
  if (slots->run_count == 0) {
    pwi_row_kernels_best()->gather(out, rows, slots->slots + from, count, bytes);
    return;
  }
  for (size_t run = run_of(slots, from), done = 0; done < count;) {
    struct stretch stretch = next_stretch(slots, &run, from + done, count - done);
    memcpy(out + done * bytes, rows + stretch.slot * bytes, stretch.count * bytes);
    done += stretch.count;
  }
}

static void scatter_part(const struct pwi_slots *slots, enum pwi_apply apply, enum pwi_scalar type, char *rows,
                         size_t width, size_t from, size_t count, const char *in, char *out) {
  const struct pwi_row_kernels *kernels = pwi_row_kernels_best();
  size_t bytes = width * pwi_scalar_size(type);
  if (count == 0) return;
  if (slots->run_count == 0) {
    kernels->rows[apply][type - 1](rows, slots->slots + from, count, width, in, out);
    return;
  }
  for (size_t run = run_of(slots, from), done = 0; done < count;) {
    struct stretch stretch = next_stretch(slots, &run, from + done, count - done);
    char *to = rows + stretch.slot * bytes;
    if (out)
      pwi_apply_array_out(apply, type, to, in + done * bytes, stretch.count * width, out + done * bytes);
    else
      kernels->array[apply][type - 1](to, in + done * bytes, stretch.count * width);
    done += stretch.count;
  }
}

void pwi_table_gather(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                      void *out) {
  check_piece(table, slots, from, count);
  gather_part(slots, table->values, table->row_bytes, from, count, out);
}

void pwi_table_scatter(struct pwi_table *table, enum pwi_apply apply, const struct pwi_slots *slots, size_t from,
                       size_t count, const void *in, void *out) {
  check_piece(table, slots, from, count);
  assert(slots->missing == 0);
  scatter_part(slots, apply, table->is.type, table->values, table->is.width, from, count, in, out);
}

void pwi_table_gather_state(const struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            void *out) {
  check_piece(table, slots, from, count);
  if (table->state) gather_part(slots, table->state, table->state_bytes, from, count, out);
}

void pwi_table_assign_state(struct pwi_table *table, const struct pwi_slots *slots, size_t from, size_t count,
                            const void *in) {
  check_piece(table, slots, from, count);
  assert(slots->missing == 0);
  if (!table->state) return;
  scatter_part(slots, PWI_APPLY_ASSIGN, table->is.type, table->state, table->is.state_width, from, count, in, NULL);
}

/* --- ranges --------------------------------------------------------------------------------------------- */

/* Checks that `count` values from value number `offset` on, counted from key `first`, lie inside the span,
 * and computes the number of the first value, counted from the begin of the span. Spans of up to 2^64 keys
 * times width need 128 bits. */
static bool values_fit(const struct pwi_table *table, uint64_t first, uint64_t offset, size_t count,
                       unsigned __int128 *value_out) {
  if (!pawl_range_has(table->is.span, first)) return false;
  unsigned __int128 width = table->is.width;
  unsigned __int128 value = (first - table->is.span.begin) * width + offset;
  if (value + count > pawl_range_size(table->is.span) * width) return false;
  *value_out = value;
  return true;
}

pawl_status pwi_table_range_apply(struct pwi_table *table, enum pwi_apply apply, uint64_t first, uint64_t offset,
                                  size_t count, const void *in, void *out) {
  unsigned __int128 value;
  if (!table->ops->range_apply) return PAWL_UNSUPPORTED;
  if (!values_fit(table, first, offset, count, &value)) return PAWL_INVALID;
  return count == 0 ? PAWL_OK : table->ops->range_apply(table, apply, (uint64_t)value, count, in, out);
}

/* The state of filling an array of values from rows in the order of their keys. Values are numbered from the
 * begin of the span; for wide rows and large keys these numbers need more than 64 bits. */
struct value_reading {
  unsigned __int128 next, end; /* numbers of the values not yet written */
  size_t width, size;          /* values per row, bytes per value */
  char *out;                   /* place of value `next` */
};

static void fill_zeros(struct value_reading *reading, unsigned __int128 until) {
  if (until <= reading->next) return;
  size_t bytes = (size_t)(until - reading->next) * reading->size;
  memset(reading->out, 0, bytes);
  reading->out += bytes;
  reading->next = until;
}

/* Adds the values of `count` rows from row number `row` on; only a part of the first and the last row may be
 * needed. */
static void fill_rows(struct value_reading *reading, uint64_t row, size_t count, const char *values) {
  unsigned __int128 start = (unsigned __int128)row * reading->width;
  unsigned __int128 stop = start + (unsigned __int128)count * reading->width;
  fill_zeros(reading, start);
  if (stop > reading->end) stop = reading->end;
  size_t skip = (size_t)(reading->next - start), bytes = (size_t)(stop - reading->next) * reading->size;
  memcpy(reading->out, values + skip * reading->size, bytes);
  reading->out += bytes;
  reading->next = stop;
}

static void fill_view(const struct pwi_table *table, struct value_reading *reading, const struct pwi_rows *rows) {
  uint64_t base = table->is.span.begin;
  if (!rows->keys) {
    fill_rows(reading, rows->first - base, rows->count, rows->values);
    return;
  }
  for (size_t i = 0; i < rows->count; i++) {
    fill_rows(reading, rows->keys[i] - base, 1, rows->values + i * table->row_bytes);
  }
}

pawl_status pwi_table_range_read(const struct pwi_table *table, uint64_t first, uint64_t offset, size_t count,
                                 void *out) {
  unsigned __int128 begin;
  if (!values_fit(table, first, offset, count, &begin)) return PAWL_INVALID;
  if (count == 0) return PAWL_OK;
  uint64_t base = table->is.span.begin, width = table->is.width;
  struct value_reading reading = {begin, begin + count, width, table->row_bytes / width, out};
  struct pawl_range range = {base + (uint64_t)(begin / width), base + (uint64_t)((reading.end - 1) / width) + 1};
  struct pwi_rows rows;
  for (; pwi_table_scan(table, range, &rows); range.begin = rows.last + 1) fill_view(table, &reading, &rows);
  fill_zeros(&reading, reading.end);
  return PAWL_OK;
}

bool pwi_table_scan(const struct pwi_table *table, struct pawl_range range, struct pwi_rows *rows_out) {
  range = pawl_range_common(range, table->is.span);
  return !pawl_range_is_empty(range) && table->ops->scan(table, range, rows_out);
}

void pwi_table_delete(struct pwi_table *table, struct pawl_range range) {
  range = pawl_range_common(range, table->is.span);
  if (!pawl_range_is_empty(range)) table->ops->delete (table, range);
}
