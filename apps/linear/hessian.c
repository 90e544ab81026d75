/* Sums of products of features, kept from round to round: see hessian.h. */
#include "apps/linear/hessian.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

enum { TILE = 8, TILE_SUMS = TILE * TILE };

/* Approximate cost of a row in processor cycles: for each pair of its entries, and for each pair of its
 * tiles. */
#define ENTRY_PAIR 3
#define TILE_PAIR 12

/* relative to the highest value that a sum has had: below it, rounding errors begin to matter */
#define CANCELLED 1e-8

/* --- positions of sums ---------------------------------------------------------------------------------- */

/* Where a row of a triangle of `count` rows begins, minus its number, because entries before the diagonal are
 * not stored. */
static size_t row_begin(size_t count, size_t row) { return row * count - row * (row + 1) / 2; }

static size_t positions(const struct linear_hessian *hessian) { return hessian->features + 1; }

static size_t sum_count(const struct linear_hessian *hessian) {
  size_t across = hessian->is_tiled ? hessian->groups : positions(hessian);
  return across * (across + 1) / 2 * (hessian->is_tiled ? TILE_SUMS : 1);
}

static double *tile_at(const struct linear_hessian *hessian, size_t group, size_t other) {
  return hessian->sums + (row_begin(hessian->groups, group) + other) * TILE_SUMS;
}

static double *sum_of(const struct linear_hessian *hessian, size_t a, size_t b) {
  size_t first = a < b ? a : b, second = a < b ? b : a;
  if (!hessian->is_tiled) return hessian->sums + row_begin(positions(hessian), first) + second;
  return tile_at(hessian, first / TILE, second / TILE) + first % TILE * TILE + second % TILE;
}

static double sum_at(const struct linear_hessian *hessian, size_t a, size_t b) {
  return hessian->curved[a] == 0 || hessian->curved[b] == 0 ? 0 : *sum_of(hessian, a, b);
}

void linear_hessian_read(const struct linear_hessian *hessian, const uint32_t *feature_at, uint64_t size,
                         uint64_t begin, uint64_t end, double *out) {
  uint64_t row = 0, at = begin;
  while (row_begin((size_t)size, (size_t)row + 1) + row + 1 <= begin) row++;
  for (uint64_t column = begin - row_begin((size_t)size, (size_t)row); at < end; row++, column = row) {
    uint32_t feature = row + 1 == size ? (uint32_t)hessian->features : feature_at[row];
    for (; column < size && at < end; column++, at++) {
      uint32_t other = column + 1 == size ? (uint32_t)hessian->features : feature_at[column];
      out[at - begin] = feature == UINT32_MAX || other == UINT32_MAX
                            ? 0
                            : sum_at(hessian, hessian->place_of[feature], hessian->place_of[other]);
    }
  }
}

/* --- entry by entry ------------------------------------------------------------------------------------- */

enum { PANEL_ENTRIES = 1 << 16 };

/* A panel: so few rows that they fit into the processor's cache, with their entries sorted by feature. */
struct entries {
  uint32_t *begins; /* features + 1: where the entries of each feature begin in the panel */
  struct panel_entry {
    uint32_t row, at; /* number of the row, and of the entry, both counted from the first of the panel */
  } * places;
};

/* Rows that have not changed are left out. */
static void sort_entries(const struct linear_hessian *hessian, const struct linear_rows *rows, size_t first,
                         size_t last, const struct entries *panel) {
  uint64_t base = rows->starts[first];
  memset(panel->begins, 0, (hessian->features + 2) * sizeof *panel->begins);
  for (size_t i = first; i < last; i++)
    for (uint64_t k = rows->starts[i]; hessian->changes[i] != 0 && k < rows->starts[i + 1]; k++)
      panel->begins[rows->feature_of[k] + 2]++;
  for (size_t j = 0; j <= hessian->features; j++) panel->begins[j + 1] += panel->begins[j];
  for (size_t i = first; i < last; i++)
    for (uint64_t k = rows->starts[i]; hessian->changes[i] != 0 && k < rows->starts[i + 1]; k++)
      panel->places[panel->begins[rows->feature_of[k] + 1]++] = (struct panel_entry){(uint32_t)i, (uint32_t)(k - base)};
}

static void add_entries(const struct linear_hessian *hessian, const struct linear_rows *rows, size_t first,
                        const struct entries *panel) {
  size_t count = positions(hessian);
  uint64_t base = rows->starts[first];
  for (size_t j = 0; j < hessian->features; j++) {
    double *sums = hessian->sums + row_begin(count, j);
    for (uint32_t p = panel->begins[j]; p < panel->begins[j + 1]; p++) {
      struct panel_entry place = panel->places[p];
      uint64_t k = base + place.at, end = rows->starts[place.row + 1];
      double by = hessian->changes[place.row] * (double)rows->values[k];
      for (; k < end; k++) sums[rows->feature_of[k]] += by * (double)rows->values[k];
      if (hessian->has_bias) sums[count - 1] += by;
    }
  }
}

static pawl_status add_by_entries(struct linear_hessian *hessian, const struct linear_rows *rows) {
  uint64_t longest = 0;
  double *last_sum = hessian->sums + sum_count(hessian) - 1;
  for (size_t i = 0; i < hessian->rows; i++) {
    uint64_t entries = rows->starts[i + 1] - rows->starts[i];
    longest = entries > longest ? entries : longest;
    if (hessian->has_bias) *last_sum += hessian->changes[i];
  }
  struct entries panel = {apps_alloc((hessian->features + 3) * sizeof *panel.begins),
                          apps_alloc((size_t)(longest + PANEL_ENTRIES + 1) * sizeof *panel.places)};
  pawl_status status = panel.begins && panel.places ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t first = 0, last = 0; first < hessian->rows && !status; first = last) {
    while (last < hessian->rows && (last == first || rows->starts[last] - rows->starts[first] < PANEL_ENTRIES)) last++;
    sort_entries(hessian, rows, first, last, &panel);
    add_entries(hessian, rows, first, &panel);
  }
  apps_free(panel.begins);
  apps_free(panel.places);
  return status;
}

/* --- by tiles ------------------------------------------------------------------------------------------- */

/* NEAR groups of a panel stay in the second-level cache while all other groups pass by. */
enum { PANEL_ROWS = 256, WORDS = PANEL_ROWS / 64, NEAR = 8 };

/* The number of columns of a tile: the sums of half its rows and of these columns fit into registers. */
#if defined(__aarch64__)
enum { ACROSS = 8 };
#else
enum { ACROSS = 4 };
#endif

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Some rows, arranged by groups of positions. */
struct tiles {
  double *values; /* for each group: PANEL_ROWS times TILE values */
  /* for each group: a bit for each row that has one of its features; only the values of these rows are set */
  uint64_t *there;
  double *scaled; /* for one group: values times the change of their row */
  double changes[PANEL_ROWS];
};

static void spread(const struct tiles *panel, size_t row, size_t place, double value) {
  size_t group = place / TILE;
  double *values = panel->values + (group * PANEL_ROWS + row) * TILE;
  uint64_t *there = &panel->there[group * WORDS + row / 64], bit = UINT64_C(1) << row % 64;
  if (!(*there & bit)) memset(values, 0, TILE * sizeof *values);
  *there |= bit;
  values[place % TILE] += value;
}

/* Fills the tiles with the next rows that have changed. Returns the number of these rows. */
static size_t fill_tiles(const struct linear_hessian *hessian, const struct linear_rows *rows, size_t *next,
                         struct tiles *panel) {
  size_t count = 0;
  memset(panel->there, 0, hessian->groups * WORDS * sizeof *panel->there);
  for (; *next < hessian->rows && count < PANEL_ROWS; ++*next) {
    if (hessian->changes[*next] == 0) continue;
    for (uint64_t k = rows->starts[*next]; k < rows->starts[*next + 1]; k++)
      spread(panel, count, hessian->place_of[rows->feature_of[k]], (double)rows->values[k]);
    if (hessian->has_bias) spread(panel, count, hessian->place_of[hessian->features], 1);
    panel->changes[count++] = hessian->changes[*next];
  }
  return count;
}

static bool scale(const struct tiles *panel, size_t group) {
  const double *values = panel->values + group * PANEL_ROWS * TILE;
  uint64_t any = 0;
  for (size_t word = 0; word < WORDS; word++) {
    uint64_t bits = panel->there[group * WORDS + word];
    for (any |= bits; bits; bits &= bits - 1) {
      size_t row = 64 * word + (size_t)__builtin_ctzll(bits);
      for (size_t i = 0; i < TILE; i++) panel->scaled[row * TILE + i] = panel->changes[row] * values[row * TILE + i];
    }
  }
  return any != 0;
}

/* sums[i][k] += sum over rows of a[row][i] b[row][k], for half the rows of a tile and ACROSS of its
 * columns. */
static inline void add_part(const double *a, const double *b, const uint64_t both[WORDS], double *sums) {
  pair held[TILE / 2][ACROSS / 2];
  for (size_t i = 0; i < TILE / 2; i++)
    for (size_t k = 0; k < ACROSS / 2; k++) held[i][k] = *(const pair *)(sums + i * TILE + 2 * k);
  for (size_t word = 0; word < WORDS; word++)
    for (uint64_t bits = both[word]; bits; bits &= bits - 1) {
      size_t row = 64 * word + (size_t)__builtin_ctzll(bits);
      for (size_t i = 0; i < TILE / 2; i++) {
        pair by = {a[row * TILE + i], a[row * TILE + i]};
        for (size_t k = 0; k < ACROSS / 2; k++) held[i][k] += by * *(const pair *)(b + row * TILE + 2 * k);
      }
    }
  for (size_t i = 0; i < TILE / 2; i++)
    for (size_t k = 0; k < ACROSS / 2; k++) *(pair *)(sums + i * TILE + 2 * k) = held[i][k];
}

static void add_tile(const struct linear_hessian *hessian, const struct tiles *panel, size_t group, size_t other) {
  uint64_t both[WORDS], any = 0;
  for (size_t word = 0; word < WORDS; word++)
    any |= both[word] = panel->there[group * WORDS + word] & panel->there[other * WORDS + word];
  if (!any) return;
  const double *b = panel->values + other * PANEL_ROWS * TILE;
  double *sums = tile_at(hessian, group, other);
  for (size_t i = 0; i < TILE; i += TILE / 2)
    for (size_t k = 0; k < TILE; k += ACROSS) add_part(panel->scaled + i, b + k, both, sums + i * TILE + k);
}

static void add_tiles(const struct linear_hessian *hessian, const struct tiles *panel) {
  size_t groups = hessian->groups;
  for (size_t first = 0; first < groups; first += NEAR) {
    size_t end = first + NEAR < groups ? first + NEAR : groups;
    for (size_t group = 0; group < end; group++) {
      if (!scale(panel, group)) continue;
      for (size_t other = group > first ? group : first; other < end; other++) add_tile(hessian, panel, group, other);
    }
  }
}

static pawl_status add_by_tiles(struct linear_hessian *hessian, const struct linear_rows *rows) {
  struct tiles panel = {apps_alloc((hessian->groups * PANEL_ROWS * TILE + 1) * sizeof *panel.values),
                        apps_alloc((hessian->groups * WORDS + 1) * sizeof *panel.there),
                        apps_alloc(PANEL_ROWS * TILE * sizeof *panel.scaled),
                        {0}};
  pawl_status status = panel.values && panel.there && panel.scaled ? PAWL_OK : PAWL_NO_MEMORY;
  size_t next = 0;
  while (!status && fill_tiles(hessian, rows, &next, &panel)) add_tiles(hessian, &panel);
  apps_free(panel.values);
  apps_free(panel.there);
  apps_free(panel.scaled);
  return status;
}

/* --- rows that change ----------------------------------------------------------------------------------- */

static bool is_near(double was, double is, double slack) {
  return was <= (1 + slack) * is && is <= (1 + slack) * was; /* false if either is NAN */
}

/* Finds the curvature that is to be added for each row. Returns the number of rows with a change. */
static size_t find_changes(struct linear_hessian *hessian, const double *curvatures, double slack, size_t *curved_out) {
  size_t changed = 0, curved = 0;
  for (size_t i = 0; i < hessian->rows; i++) {
    bool stays = is_near(hessian->curvatures[i], curvatures[i], slack);
    hessian->changes[i] = stays ? 0 : curvatures[i] - hessian->curvatures[i];
    changed += !stays;
    curved += curvatures[i] != 0;
  }
  *curved_out = curved;
  return changed;
}

/* Counts, for each position, the rows that have gained or lost their curvature. */
static void count_curved(struct linear_hessian *hessian, const struct linear_rows *rows, size_t row, double is) {
  if ((hessian->curvatures[row] != 0) == (is != 0)) return;
  uint32_t by = is != 0 ? 1 : UINT32_MAX; /* UINT32_MAX subtracts one */
  for (uint64_t k = rows->starts[row]; k < rows->starts[row + 1]; k++)
    hessian->curved[hessian->place_of[rows->feature_of[k]]] += by;
  if (hessian->has_bias) hessian->curved[hessian->features] += by;
}

static pawl_status add_changes(struct linear_hessian *hessian, const struct linear_rows *rows,
                               const double *curvatures) {
  for (size_t i = 0; i < hessian->rows; i++) {
    if (hessian->changes[i] == 0) continue;
    count_curved(hessian, rows, i, curvatures[i]);
    hessian->curvatures[i] = curvatures[i];
    hessian->added++;
  }
  return hessian->is_tiled ? add_by_tiles(hessian, rows) : add_by_entries(hessian, rows);
}

static pawl_status begin_anew(struct linear_hessian *hessian, const struct linear_rows *rows,
                              const double *curvatures) {
  memset(hessian->sums, 0, sum_count(hessian) * sizeof *hessian->sums);
  memset(hessian->peaks, 0, positions(hessian) * sizeof *hessian->peaks);
  memset(hessian->curved, 0, positions(hessian) * sizeof *hessian->curved);
  memset(hessian->curvatures, 0, hessian->rows * sizeof *hessian->curvatures);
  memcpy(hessian->changes, curvatures, hessian->rows * sizeof *hessian->changes);
  hessian->built++;
  return add_changes(hessian, rows, curvatures);
}

/* --- cancelled sums ------------------------------------------------------------------------------------- */

/* Whether the sum has become so small that rounding errors of its earlier, larger values matter. */
static bool is_cancelled(struct linear_hessian *hessian, size_t place) {
  double is = sum_at(hessian, place, place);
  hessian->peaks[place] = is > hessian->peaks[place] ? is : hessian->peaks[place];
  return hessian->curved[place] > 0 && is < CANCELLED * hessian->peaks[place];
}

/* Computes all sums of one feature anew from the rows that have it. */
static void refresh(struct linear_hessian *hessian, const struct linear_share *share, const struct linear_rows *rows,
                    size_t feature) {
  size_t place = hessian->place_of[feature];
  for (size_t other = 0; other < positions(hessian); other++) *sum_of(hessian, place, other) = 0;
  for (uint64_t k = share->starts[feature]; k < share->starts[feature + 1]; k++) {
    size_t row = share->row_of[k];
    double by = hessian->curvatures[row] * (double)share->values[k];
    if (by == 0) continue;
    for (uint64_t m = rows->starts[row]; m < rows->starts[row + 1]; m++)
      *sum_of(hessian, place, hessian->place_of[rows->feature_of[m]]) += by * (double)rows->values[m];
    if (hessian->has_bias) *sum_of(hessian, place, hessian->features) += by;
  }
  hessian->peaks[place] = sum_at(hessian, place, place);
}

/* Features that only a few rows have lose their curvature one by one. So each feature is checked by
 * itself. */
static pawl_status restore(struct linear_hessian *hessian, const struct linear_share *share,
                           const struct linear_rows *rows, const double *curvatures) {
  uint64_t entries = 0;
  bool is_bias = is_cancelled(hessian, hessian->features);
  for (size_t j = 0; j < hessian->features; j++)
    if (is_cancelled(hessian, hessian->place_of[j])) entries += share->starts[j + 1] - share->starts[j];
  if (is_bias || (entries > 0 && entries > share->starts[share->features] / 16))
    return begin_anew(hessian, rows, curvatures);
  for (size_t j = 0; j < hessian->features && entries > 0; j++)
    if (is_cancelled(hessian, hessian->place_of[j])) refresh(hessian, share, rows, j);
  return PAWL_OK;
}

static void note_peaks(struct linear_hessian *hessian) {
  for (size_t place = 0; place < positions(hessian); place++) is_cancelled(hessian, place);
}

/* Adds differences if clearly fewer rows than all have changed. Otherwise the sums begin anew, free of the
 * rounding errors of earlier sums. */
pawl_status linear_hessian_update(struct linear_hessian *hessian, const struct linear_share *share,
                                  const struct linear_rows *rows, const double *curvatures, double slack) {
  size_t curved, changed = find_changes(hessian, curvatures, slack, &curved);
  if (changed == 0) return PAWL_OK;
  pawl_status status;
  if (4 * changed >= 3 * curved) {
    status = begin_anew(hessian, rows, curvatures);
  } else {
    status = add_changes(hessian, rows, curvatures);
    if (!status) status = restore(hessian, share, rows, curvatures);
  }
  if (!status) note_peaks(hessian);
  return status;
}

/* --- beginning and end ---------------------------------------------------------------------------------- */

struct feature_id {
  uint64_t id;
  uint32_t feature;
};

static int by_id(const void *a, const void *b) {
  const struct feature_id *x = a, *y = b;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Positions by ascending id; the bias comes last. */
static bool place_by_id(struct linear_hessian *hessian, const struct linear_share *share) {
  struct feature_id *features = apps_alloc((hessian->features + 1) * sizeof *features);
  if (!features) return false;
  for (size_t j = 0; j < hessian->features; j++) features[j] = (struct feature_id){share->ids[j], (uint32_t)j};
  qsort(features, hessian->features, sizeof *features, by_id);
  for (size_t p = 0; p < hessian->features; p++) hessian->place_of[features[p].feature] = (uint32_t)p;
  apps_free(features);
  return true;
}

/* Estimates whether tiles are cheaper than entries. Needs the positions. */
static pawl_status count_costs(const struct linear_hessian *hessian, const struct linear_rows *rows, bool *tiled_out) {
  /* the last row, counted from 1, that has a feature of the group */
  size_t *seen = apps_alloc_zero(hessian->groups + 1, sizeof *seen);
  double by_entries = 0, by_tiles = 0;
  if (!seen) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < hessian->rows; i++) {
    double entries = (double)(rows->starts[i + 1] - rows->starts[i]), tiles = 0;
    for (uint64_t k = rows->starts[i]; k < rows->starts[i + 1]; k++) {
      size_t *last = &seen[hessian->place_of[rows->feature_of[k]] / TILE];
      tiles += *last != i + 1;
      *last = i + 1;
    }
    by_entries += entries * (entries + 1) / 2 * ENTRY_PAIR;
    by_tiles += tiles * (tiles + 1) / 2 * TILE_PAIR;
  }
  by_tiles += (double)hessian->groups * (double)hessian->groups / 2 * (double)hessian->rows / PANEL_ROWS * TILE_PAIR;
  *tiled_out = by_tiles < by_entries;
  apps_free(seen);
  return PAWL_OK;
}

static pawl_status choose_way(struct linear_hessian *hessian, const struct linear_share *share,
                              const struct linear_rows *rows, enum linear_way way) {
  if (!place_by_id(hessian, share)) return PAWL_NO_MEMORY;
  hessian->is_tiled = way == LINEAR_BY_TILES;
  pawl_status status = way == LINEAR_BY_COST ? count_costs(hessian, rows, &hessian->is_tiled) : PAWL_OK;
  for (size_t j = 0; j < hessian->features && !hessian->is_tiled; j++) hessian->place_of[j] = (uint32_t)j;
  return status;
}

pawl_status linear_hessian_init(struct linear_hessian *hessian, const struct linear_share *share,
                                const struct linear_rows *rows, bool has_bias, enum linear_way way) {
  memset(hessian, 0, sizeof *hessian);
  hessian->features = share->features;
  hessian->rows = share->rows;
  hessian->has_bias = has_bias;
  hessian->groups = (positions(hessian) + TILE - 1) / TILE;
  hessian->place_of = apps_alloc(positions(hessian) * sizeof *hessian->place_of);
  hessian->curvatures = apps_alloc_zero(share->rows + 1, sizeof *hessian->curvatures);
  hessian->changes = apps_alloc_zero(share->rows + 1, sizeof *hessian->changes);
  hessian->peaks = apps_alloc_zero(positions(hessian), sizeof *hessian->peaks);
  hessian->curved = apps_alloc_zero(positions(hessian), sizeof *hessian->curved);
  if (!hessian->place_of || !hessian->curvatures || !hessian->changes || !hessian->peaks || !hessian->curved)
    return PAWL_NO_MEMORY;
  hessian->place_of[share->features] = (uint32_t)share->features;
  pawl_status status = choose_way(hessian, share, rows, way);
  if (!status) hessian->sums = apps_alloc_zero(sum_count(hessian), sizeof *hessian->sums);
  return status ? status : hessian->sums ? PAWL_OK : PAWL_NO_MEMORY;
}

void linear_hessian_fini(struct linear_hessian *hessian) {
  apps_free(hessian->place_of);
  apps_free(hessian->curvatures);
  apps_free(hessian->changes);
  apps_free(hessian->sums);
  apps_free(hessian->peaks);
  apps_free(hessian->curved);
  memset(hessian, 0, sizeof *hessian);
}
