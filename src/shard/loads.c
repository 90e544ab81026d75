/* Figures: totals, and load by ring position for the planner.
 *
 * REQUESTS are sampled. About one in `gap` of the requested keys is recorded, by position. The distance to
 * the next sample varies, so that equal requests whose length is a multiple of `gap` do not yield the same
 * keys again and again. When the array of samples is full, every second sample is dropped and `gap` doubles.
 * So a request without a sample costs one subtraction, memory is fixed, and each sample stands for the same
 * number of keys. Samples are assigned to cells only when loads are requested. A position with at least 1/64
 * of all samples is reported by itself.
 *
 * BYTES are counted from the tables when loads are requested. In a cell with many rows only the first rows
 * are examined, and their density is used for the whole cell; then the cells are scaled so that their sum is
 * the size of the table.
 */
#include "shard/inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/search.h"

#define HOT_MAX 16
#define HOT_SHARE 64 /* a position with one in so many samples is hot */
#define HOT_LEAST 16 /* minimum samples of a hot position; fewer may be chance */
#define VIEWS_MAX 8  /* views of a table that are examined for each cell */

/* --- sampling ------------------------------------------------------------------------------------------- */

static uint64_t next_gap(struct pwi_samples *samples) {
  return 1 + pwi_mix64(samples->drawn) % (2 * samples->gap - 1); /* `gap` on average */
}

static void note(struct pwi_samples *samples, uint64_t position) {
  if (samples->count == PWI_SAMPLES_MAX) {
    for (size_t i = 0; i < PWI_SAMPLES_MAX / 2; i++) samples->positions[i] = samples->positions[2 * i];
    samples->count = PWI_SAMPLES_MAX / 2;
    samples->gap *= 2;
  }
  samples->positions[samples->count++] = position;
  samples->drawn++;
}

void pwi_samples_draw(struct pwi_samples *samples, const struct pwi_vector *vector, const uint64_t *keys,
                      uint64_t first, uint64_t count) {
  uint64_t at = samples->until;
  while (at < count) {
    note(samples, pwi_place_position(&vector->place, keys ? keys[at] : first + at));
    at += next_gap(samples);
  }
  samples->until = at - count;
}

/* The gap decreases again, so that it follows the traffic. */
static void start_anew(struct pwi_samples *samples) {
  samples->count = 0;
  if (samples->gap > 1) samples->gap /= 2;
  if (samples->until > samples->gap) samples->until = samples->gap;
}

/* --- cells ---------------------------------------------------------------------------------------------- */

static uint64_t positions_held(const struct pwi_shard *shard) {
  uint64_t sum = 0;
  for (size_t i = 0; i < shard->held.count; i++) sum += pawl_range_size(shard->held.ranges[i]);
  return sum;
}

/* Makes cells of equal width; the last cell of each held range may be shorter. Returns their number, at most
 * `most`. */
static size_t lay_cells(const struct pwi_shard *shard, size_t most, struct pwi_load *cells) {
  size_t ranges = shard->held.count, count = 0;
  if (ranges == 0 || most < ranges) return 0;
  uint64_t wanted = most > ranges ? most - ranges : 1, width = positions_held(shard) / wanted + 1;
  if (most == ranges) width = UINT64_MAX;
  for (size_t i = 0; i < ranges; i++) {
    struct pawl_range range = shard->held.ranges[i];
    while (!pawl_range_is_empty(range)) {
      uint64_t end = pawl_range_size(range) > width ? range.begin + width : range.end;
      cells[count++] = (struct pwi_load){.positions = {range.begin, end}};
      range.begin = end;
    }
  }
  return count;
}

/* The cell that contains `position`, or the next one after it; `count` if there is none. */
static size_t cell_at(const struct pwi_load *cells, size_t count, uint64_t position) {
  struct pwi_search search = {.high = count};
  while (pwi_search_next(&search)) pwi_search_told(&search, cells[search.middle].positions.end <= position);
  return search.low;
}

/* --- bytes ---------------------------------------------------------------------------------------------- */

/* Estimates the rows in a range of keys from the first few views of it. */
static double rows_in(const struct pwi_table *table, struct pawl_range keys) {
  struct pawl_range rest = keys;
  struct pwi_rows rows;
  double count = 0;
  for (int views = 0; !pawl_range_is_empty(rest) && pwi_table_scan(table, rest, &rows); views++) {
    if (views == VIEWS_MAX) return count * ((double)pawl_range_size(keys) / (double)(rest.begin - keys.begin));
    count += (double)rows.count;
    rest.begin = rows.last + 1;
  }
  return count;
}

/* Goes over the cells with rows. Called twice: to sum up the estimates, and to distribute the bytes of the
 * table by them. */
static double over_cells(const struct pwi_vector *vector, double scale, struct pwi_load *cells, size_t count) {
  double sum = 0;
  struct pwi_rows rows;
  for (size_t i = 0; i < count; i++) {
    struct pawl_range keys = pwi_vector_keys(vector, cells[i].positions);
    struct pawl_range rest = pawl_range_of(keys.begin, vector->place.size);
    if (pawl_range_is_empty(rest) || !pwi_table_scan(vector->table, rest, &rows)) break;
    if (rows.first >= keys.end) {
      size_t next = cell_at(cells, count, pwi_place_position(&vector->place, rows.first));
      if (next > i) i = next - 1;
      continue;
    }
    double found = rows_in(vector->table, keys);
    sum += found;
    cells[i].bytes += (uint64_t)(found * scale);
  }
  return sum;
}

static void count_bytes(const struct pwi_shard *shard, struct pwi_load *cells, size_t count) {
  for (size_t i = 0; i < shard->vector_count; i++) {
    const struct pwi_vector *vector = shard->vectors[i];
    if (!vector->table) continue;
    double sum = over_cells(vector, 0, cells, count);
    if (sum > 0) over_cells(vector, (double)vector->bytes / sum, cells, count);
  }
}

/* --- requests ------------------------------------------------------------------------------------------- */

static int compare_positions(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static bool is_hot(const struct pwi_samples *samples, size_t repeats) {
  return repeats >= HOT_LEAST && repeats >= samples->count / HOT_SHARE;
}

/* Finds hot positions, and assigns all other samples to their cells. The samples are sorted. */
static size_t share_out(const struct pwi_samples *samples, struct pwi_load *cells, size_t count, size_t hot_most,
                        struct pwi_load *hot) {
  size_t hot_count = 0;
  for (size_t i = 0, next; i < samples->count; i = next) {
    uint64_t position = samples->positions[i];
    for (next = i + 1; next < samples->count && samples->positions[next] == position;) next++;
    uint64_t requests = (next - i) * samples->gap;
    size_t cell = cell_at(cells, count, position);
    if (cell == count || cells[cell].positions.begin > position) continue; /* no longer held */
    if (is_hot(samples, next - i) && hot_count < hot_most)
      hot[hot_count++] = (struct pwi_load){{position, position + 1}, 0, requests, true};
    else
      cells[cell].requests += requests;
  }
  return hot_count;
}

/* Cuts a cell around a hot position. Its load stays with the larger part. */
static size_t cut_cell(struct pwi_load cell, const struct pwi_load *hot, struct pwi_load *out) {
  uint64_t at = hot->positions.begin;
  struct pwi_load before = cell, after = cell;
  size_t count = 0;
  before.positions.end = at;
  after.positions.begin = at + 1;
  bool first = pawl_range_size(before.positions) >= pawl_range_size(after.positions);
  struct pwi_load *empty = first ? &after : &before;
  empty->bytes = empty->requests = 0;
  if (!pawl_range_is_empty(before.positions)) out[count++] = before;
  out[count++] = *hot;
  if (!pawl_range_is_empty(after.positions)) out[count++] = after;
  return count;
}

/* Merges cells, in loads[0 .. count), and hot positions into one array. Both are sorted by position. */
static size_t merge_hot(struct pwi_load *loads, size_t count, const struct pwi_load *hot, size_t hot_count) {
  for (size_t i = 0; i < hot_count; i++) {
    struct pwi_load parts[3];
    size_t at = cell_at(loads, count, hot[i].positions.begin), made = cut_cell(loads[at], &hot[i], parts);
    memmove(loads + at + made, loads + at + 1, (count - at - 1) * sizeof *loads);
    memcpy(loads + at, parts, made * sizeof *loads);
    count += made - 1;
  }
  return count;
}

size_t pwi_shard_loads(struct pwi_shard *shard, struct pwi_load *loads, size_t room) {
  struct pwi_samples *samples = &shard->samples;
  struct pwi_load hot[HOT_MAX];
  size_t hot_most = room / 8 < HOT_MAX ? room / 8 : HOT_MAX;
  size_t count = lay_cells(shard, room - 2 * hot_most, loads);
  qsort(samples->positions, samples->count, sizeof *samples->positions, compare_positions);
  count_bytes(shard, loads, count);
  size_t hot_count = share_out(samples, loads, count, hot_most, hot);
  start_anew(samples);
  return merge_hot(loads, count, hot, hot_count);
}

/* --- figures -------------------------------------------------------------------------------------------- */

uint64_t pwi_shard_traffic(const struct pwi_shard *shard) { return shard->totals.bytes_in + shard->totals.bytes_out; }

void pwi_shard_report(const struct pwi_shard *shard, struct pwi_report *report_out) {
  struct pwi_report report = shard->totals;
  for (size_t i = 0; i < shard->vector_count; i++)
    if (shard->vectors[i]->table) report.rows += pwi_table_count(shard->vectors[i]->table);
  for (size_t i = 0; i < shard->vector_count; i++)
    if (shard->vectors[i]->is_hollow && report.hollow_count++ < PWI_REPORT_HOLLOW)
      report.hollow[report.hollow_count - 1] = shard->vectors[i]->entry.id.id;
  report.bytes = shard->row_bytes;
  report.memory_max = shard->config.memory_max;
  report.cached_lists = shard->lists.count;
  report.cached_bytes = shard->lists.bytes;
  *report_out = report;
}

pawl_status pwi_shard_figures(const struct pwi_shard *shard, struct pwi_vector_id id,
                              struct pwi_vector_figures *figures_out) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, id);
  if (!vector) return PAWL_NOT_FOUND;
  *figures_out = (struct pwi_vector_figures){
      .rows = vector->table ? pwi_table_count(vector->table) : 0,
      .bytes = vector->bytes,
      .pushes = vector->pushes,
      .pulls = vector->pulls,
  };
  return PAWL_OK;
}
