#include "apps/sparse_coding/rows.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"

static_assert(PAWL_SPARSE_TEXT == APPS_TEXT_MAX, "sentences are written by the same function");

#define PIXEL_MAX 255
enum { FOR_PATCHES = 21 }; /* purpose of random numbers */

void pawl_sparse_rows_destroy(struct pawl_sparse_rows *rows) {
  if (!rows) return;
  apps_rows_fini(&rows->is);
  pawl_labels_release(rows->table);
  apps_free(rows->image_labels);
  apps_free(rows->pixels);
  apps_free(rows);
}

void pawl_sparse_rows_info(const struct pawl_sparse_rows *rows, struct pawl_sparse_rows_info *info_out) {
  *info_out = rows->info;
}

const char *pawl_sparse_rows_label(const struct pawl_sparse_rows *rows, uint64_t row) {
  uint32_t label = rows->is.labels[row];
  if (label == APPS_ROWS_NONE) return NULL;
  return rows->table ? pawl_labels_at(rows->table, label) : rows->image_labels[label];
}

const char *pawl_sparse_rows_first_bad(const struct pawl_sparse_rows *rows) { return rows->is.first_bad; }

static uint64_t hash(const void *bytes, size_t size, uint64_t seed) {
  return size ? XXH3_64bits_withSeed(bytes, size, seed) : seed;
}

uint64_t sparse_rows_digest(const struct pawl_sparse_rows *rows) {
  const struct apps_rows *is = &rows->is;
  size_t count = (size_t)rows->info.rows, features = (size_t)rows->info.features;
  uint64_t sum = hash(is->ids, features * sizeof *is->ids, count);
  if (rows->pixels) return hash(rows->pixels, count * features, sum + rows->info.shape.patch);
  sum = hash(is->starts, (count + 1) * sizeof *is->starts, sum);
  sum = hash(is->at, (size_t)is->entries * sizeof *is->at, sum);
  return hash(is->values, (size_t)is->entries * sizeof *is->values, sum);
}

/* --- files ------------------------------------------------------------------------------------------------ */

static pawl_status read_files(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                              uint32_t threads, struct pawl_sparse_rows *rows, char *error) {
  struct pawl_sparse_rows_info *info = &rows->info;
  const struct apps_rows *is = &rows->is;
  pawl_status status = pawl_labels_create(&rows->table);
  if (status) return apps_say(error, status, "out of memory");
  status = apps_rows_read(paths, count, reading, threads, rows->table, "dictionaries", &rows->is, error);
  if (status) return status;
  if (is->unit_rows)
    return apps_say(error, PAWL_INVALID, "rows are scaled by the option of training, not while they are read");
  *info = (struct pawl_sparse_rows_info){.rows = is->rows,
                                         .entries = is->entries,
                                         .features = is->features,
                                         .skipped = is->skipped,
                                         .binary = is->binary,
                                         .hash_bits = is->hash_bits,
                                         .columns = is->columns,
                                         .label_column = is->label_column};
  return PAWL_OK;
}

pawl_status pawl_sparse_rows_read(const char *const *paths, size_t count, const struct pawl_data_options *reading,
                                  uint32_t threads, struct pawl_sparse_rows **rows_out, char error[PAWL_SPARSE_TEXT]) {
  struct pawl_sparse_rows *rows = apps_alloc_zero(1, sizeof *rows);
  if (!rows) return apps_say(error, PAWL_NO_MEMORY, "out of memory");
  pawl_status status = read_files(paths, count, reading, threads, rows, error);
  if (status)
    pawl_sparse_rows_destroy(rows);
  else
    *rows_out = rows;
  return status;
}

/* --- images ----------------------------------------------------------------------------------------------- */

/* Where patches lie. */
struct patch_grid {
  struct pawl_images_info images;
  uint32_t high, wide;   /* of a patch */
  uint64_t down, across; /* tiles of an image */
  uint64_t count, seed;  /* count 0: tiles */
};

static void copy_patch(const struct patch_grid *grid, const uint8_t *image, size_t top, size_t left, uint8_t *to) {
  const struct pawl_images_info *is = &grid->images;
  for (size_t channel = 0; channel < is->channels; channel++)
    for (size_t y = 0; y < grid->high; y++, to += grid->wide)
      memcpy(to, image + (channel * is->height + top + y) * is->width + left, grid->wide);
}

/* Finds where row number `row` is. */
static size_t place_patch(const struct patch_grid *grid, uint64_t row, size_t *top_out, size_t *left_out) {
  if (grid->count == 0) {
    uint64_t tile = row % (grid->down * grid->across);
    *top_out = (size_t)(tile / grid->across) * grid->high;
    *left_out = (size_t)(tile % grid->across) * grid->wide;
    return (size_t)(row / (grid->down * grid->across));
  }
  struct apps_random random = apps_random_of(grid->seed, FOR_PATCHES, row, 0);
  size_t image = (size_t)apps_random_below(&random, grid->images.count);
  *top_out = (size_t)apps_random_below(&random, grid->images.height - grid->high + 1);
  *left_out = (size_t)apps_random_below(&random, grid->images.width - grid->wide + 1);
  return image;
}

static bool fill_patches(struct pawl_sparse_rows *rows, const struct pawl_images *images,
                         const struct patch_grid *grid) {
  size_t count = (size_t)rows->info.rows, features = (size_t)rows->info.features;
  size_t pixels = (size_t)grid->images.channels * grid->images.height * grid->images.width, top, left;
  const uint8_t *from = pawl_images_pixels(images), *labels = pawl_images_labels(images);
  rows->is.ids = apps_alloc_zero(features, sizeof *rows->is.ids);
  rows->is.labels = apps_alloc_zero(count + 1, sizeof *rows->is.labels);
  rows->pixels = apps_alloc_zero(count, features);
  rows->image_labels = apps_alloc_zero(UINT8_MAX + 1, sizeof *rows->image_labels);
  if (!rows->is.ids || !rows->is.labels || !rows->pixels || !rows->image_labels) return false;
  for (size_t i = 0; i < features; i++) rows->is.ids[i] = i + 1;
  for (int i = 0; i <= UINT8_MAX; i++)
    snprintf(rows->image_labels[i], sizeof rows->image_labels[i], "%u", (unsigned)(uint8_t)i);
  for (size_t row = 0; row < count; row++) {
    size_t image = place_patch(grid, row, &top, &left);
    rows->is.labels[row] = labels ? labels[image] : APPS_ROWS_NONE;
    copy_patch(grid, from + image * pixels, top, left, rows->pixels + row * features);
  }
  return true;
}

static pawl_status measure_patches(struct patch_grid *grid, uint32_t patch, uint64_t *count_out, char *error) {
  const struct pawl_images_info *is = &grid->images;
  if (patch > is->height || patch > is->width)
    return apps_say(error, PAWL_INVALID,
                    "a patch of %" PRIu32 " x %" PRIu32 " pixels is larger than the images of %" PRIu32 " x %" PRIu32,
                    patch, patch, is->height, is->width);
  grid->high = patch ? patch : is->height;
  grid->wide = patch ? patch : is->width;
  grid->down = is->height / grid->high;
  grid->across = is->width / grid->wide;
  uint64_t tiles = grid->down * grid->across; /* below 2^64: both fit in 32 bits */
  if (is->count > 0 && tiles > UINT64_MAX / is->count) tiles = UINT64_MAX / is->count;
  *count_out = grid->count > 0 ? grid->count : is->count * tiles;
  if (*count_out >= UINT32_MAX)
    return apps_say(error, PAWL_TOO_LARGE, "%" PRIu64 " patches; fewer than 2^32 are possible", *count_out);
  if (is->count == 0) return apps_say(error, PAWL_INVALID, "there are no images");
  return PAWL_OK;
}

pawl_status pawl_sparse_rows_of_images(const struct pawl_images *images, uint32_t patch, uint64_t count, uint64_t seed,
                                       struct pawl_sparse_rows **rows_out, char error[PAWL_SPARSE_TEXT]) {
  struct patch_grid grid = {.count = patch ? count : 0, .seed = seed};
  uint64_t total = 0;
  pawl_images_info(images, &grid.images);
  pawl_status status = measure_patches(&grid, patch, &total, error);
  if (status) return status;
  struct pawl_sparse_rows *rows = apps_alloc_zero(1, sizeof *rows);
  uint64_t features = (uint64_t)grid.images.channels * grid.high * grid.wide; /* an image is in memory */
  if (rows) {
    rows->info = (struct pawl_sparse_rows_info){.rows = total, .features = features, .entries = total * features};
    rows->info.shape = (struct pawl_sparse_shape){grid.images.channels, grid.high, grid.wide, patch};
    rows->drawn = grid.count;
    rows->seed = seed;
  }
  if (rows && fill_patches(rows, images, &grid)) {
    *rows_out = rows;
    return PAWL_OK;
  }
  pawl_sparse_rows_destroy(rows);
  return apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu64 " rows of %" PRIu64 " pixels", total, features);
}

/* --- views ------------------------------------------------------------------------------------------------ */

static pawl_status check_shape(const struct pawl_sparse_rows *rows, const struct pawl_sparse_about *about,
                               char *error) {
  const struct pawl_sparse_shape *is = &rows->info.shape, *wanted = &about->shape;
  if ((is->channels > 0) != (wanted->channels > 0))
    return apps_say(error, PAWL_MISMATCH, "the model was trained on %s, but these are %s",
                    wanted->channels ? "images" : "rows", wanted->channels ? "rows" : "images");
  if (is->channels != wanted->channels || is->height != wanted->height || is->width != wanted->width)
    return apps_say(error, PAWL_MISMATCH,
                    "these are pictures of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                    " (channels, height, width), but the model has %" PRIu32 " x %" PRIu32 " x %" PRIu32,
                    is->channels, is->height, is->width, wanted->channels, wanted->height, wanted->width);
  return PAWL_OK;
}

static pawl_status match(struct sparse_view *view, const uint64_t *ids, char *error) {
  const struct apps_rows *is = &view->rows->is;
  view->numbers = apps_alloc_zero((size_t)is->features + 1, sizeof *view->numbers);
  if (!view->numbers) return apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu64 " features", is->features);
  apps_rows_match(is->ids, is->features, ids, view->features, view->numbers);
  for (uint64_t i = 0; i < is->entries; i++) view->unknown_values += view->numbers[is->at[i]] == APPS_ROWS_NONE;
  return PAWL_OK;
}

pawl_status sparse_view_init(struct sparse_view *view, const struct pawl_sparse_rows *rows, const uint64_t *ids,
                             const struct pawl_sparse_about *about, char *error) {
  *view = (struct sparse_view){
      .rows = rows, .features = (size_t)about->features, .center = about->centered, .unit_rows = about->unit_rows};
  pawl_status status = check_shape(rows, about, error);
  return status || rows->pixels ? status : match(view, ids, error);
}

void sparse_view_fini(struct sparse_view *view) { apps_free(view->numbers); }

static void center(size_t count, double *vector) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += vector[i];
  for (size_t i = 0; i < count; i++) vector[i] -= sum / (double)count;
}

static double square_of(size_t count, const double *vector) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += vector[i] * vector[i];
  return sum;
}

/* A constant row is all 0 once it is centered, but for rounding, which must not be scaled to length 1. */
static void prepare(const struct sparse_view *view, double *vector) {
  double before = view->center ? square_of(view->features, vector) : 0;
  if (view->center) center(view->features, vector);
  double square = view->center || view->unit_rows ? square_of(view->features, vector) : 0;
  bool is_nothing = square <= 1e-24 * before;
  if (view->center && is_nothing) memset(vector, 0, view->features * sizeof *vector);
  if (!view->unit_rows || is_nothing || square == 0) return;
  for (size_t i = 0; i < view->features; i++) vector[i] /= sqrt(square);
}

void sparse_view_get(const struct sparse_view *view, size_t row, double *vector_out) {
  const struct pawl_sparse_rows *rows = view->rows;
  const struct apps_rows *is = &rows->is;
  if (rows->pixels) {
    const uint8_t *pixels = rows->pixels + row * view->features;
    for (size_t i = 0; i < view->features; i++) vector_out[i] = pixels[i] / (double)PIXEL_MAX;
  } else {
    memset(vector_out, 0, view->features * sizeof *vector_out);
    for (uint64_t n = is->starts[row]; n < is->starts[row + 1]; n++) {
      uint32_t feature = view->numbers[is->at[n]];
      if (feature != APPS_ROWS_NONE) vector_out[feature] = (double)is->values[n];
    }
  }
  prepare(view, vector_out);
}
