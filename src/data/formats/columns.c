#include "data/formats/columns.h"

#include <string.h>

#include "base/memory.h"

pawl_status pwi_columns_create(size_t columns, size_t entries, bool has_values, struct pwi_columns **columns_out) {
  struct pwi_columns *made = pwi_alloc_zero(1, sizeof *made);
  if (!made) return PAWL_NO_MEMORY;
  made->ids = pwi_resize_array(NULL, columns, sizeof *made->ids);
  made->starts = pwi_alloc_zero(columns + 1, sizeof *made->starts);
  made->in = pwi_resize_array(NULL, entries, sizeof *made->in);
  if (has_values) made->values = pwi_resize_array(NULL, entries, sizeof *made->values);
  if (!made->ids || !made->starts || !made->in || (has_values && !made->values)) {
    pwi_columns_destroy(made);
    return PAWL_NO_MEMORY;
  }
  made->is = (struct pawl_columns){.columns = columns,
                                   .entries = entries,
                                   .ids = made->ids,
                                   .starts = made->starts,
                                   .in = made->in,
                                   .values = made->values};
  *columns_out = made;
  return PAWL_OK;
}

void pwi_columns_destroy(struct pwi_columns *columns) {
  if (!columns) return;
  pwi_free(columns->ids);
  pwi_free(columns->starts);
  pwi_free(columns->in);
  pwi_free(columns->values);
  pwi_free(columns);
}

/* --- transposing a batch -------------------------------------------------------------------------------- */

struct cell {
  uint64_t id;
  uint32_t row;
  float value;
};

#define DIGIT 11 /* bits of an id that are sorted by at a time; the table of positions fits the L1 cache */
#define PLACES ((size_t)1 << DIGIT)

/* One stable pass of a radix sort. False: all cells have the same digit, and nothing was moved. */
static bool pass(const struct cell *from, size_t count, unsigned shift, struct cell *to) {
  size_t places[PLACES] = {0}, sum = 0;
  for (size_t i = 0; i < count; i++) places[from[i].id >> shift & (PLACES - 1)]++;
  if (places[from[0].id >> shift & (PLACES - 1)] == count) return false;
  for (size_t i = 0; i < PLACES; i++) {
    size_t here = places[i];
    places[i] = sum;
    sum += here;
  }
  for (size_t i = 0; i < count; i++) to[places[from[i].id >> shift & (PLACES - 1)]++] = from[i];
  return true;
}

/* Returns the half that holds the sorted cells. */
static struct cell *sort(struct cell *cells, size_t count, uint64_t max_id) {
  struct cell *from = cells, *to = cells + count;
  for (unsigned shift = 0; shift < 64 && max_id >> shift != 0; shift += DIGIT)
    if (pass(from, count, shift, to)) {
      struct cell *other = from;
      from = to;
      to = other;
    }
  return from;
}

static void unfold(const struct pawl_batch *batch, struct cell *cells) {
  for (size_t row = 0; row < batch->rows; row++)
    for (size_t i = (size_t)batch->starts[row]; i < (size_t)batch->starts[row + 1]; i++)
      cells[i] = (struct cell){batch->ids[i], (uint32_t)row, batch->values ? batch->values[i] : 1};
}

static size_t distinct(const struct cell *cells, size_t count) {
  size_t found = count > 0;
  for (size_t i = 1; i < count; i++) found += cells[i].id != cells[i - 1].id;
  return found;
}

static void fold(const struct cell *cells, size_t count, struct pwi_columns *columns) {
  size_t column = 0;
  for (size_t i = 0; i < count; i++) {
    if (i == 0 || cells[i].id != cells[i - 1].id) {
      columns->ids[column] = cells[i].id;
      columns->starts[column++] = i;
    }
    columns->in[i] = cells[i].row;
    if (columns->values) columns->values[i] = cells[i].value;
  }
  columns->starts[column] = count;
}

pawl_status pwi_columns_of(const struct pawl_batch *batch, struct pwi_columns **columns_out) {
  if (batch->rows > UINT32_MAX) return PAWL_TOO_LARGE;
  if (batch->entries > SIZE_MAX / 2) return PAWL_NO_MEMORY;
  struct cell *cells = pwi_resize_array(NULL, batch->entries * 2, sizeof *cells), *sorted;
  if (!cells) return PAWL_NO_MEMORY;
  unfold(batch, cells);
  sorted = batch->entries ? sort(cells, batch->entries, batch->max_id) : cells;
  pawl_status status = pwi_columns_create(distinct(sorted, batch->entries), batch->entries, batch->values, columns_out);
  if (!status) {
    fold(sorted, batch->entries, *columns_out);
    (*columns_out)->is.rows = batch->rows;
  }
  pwi_free(cells);
  return status;
}
