/* Arranges rows by columns, and merges them with the columns that were arranged before: see share.h.
 *
 * The first pass over the entries finds the ids and counts the entries of each. Then the features are sorted
 * by key, and the second pass copies every entry to its place. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/linear/index.h"
#include "apps/linear/share.h"

/* --- rows that remain ----------------------------------------------------------------------------------- */

#define GONE UINT32_MAX

/* Computes new numbers for the rows that were arranged before; rows of dropped pieces have none. */
static pawl_status renumber(const struct linear_share *share, uint32_t **map_out, size_t *kept_out) {
  uint32_t *map = apps_alloc((share->rows + 1) * sizeof *map);
  if (!map) return PAWL_NO_MEMORY;
  size_t row = 0, kept = 0;
  for (size_t i = 0; i < share->piece_count && row < share->rows; i++) {
    const struct linear_piece *piece = &share->pieces[i];
    if (piece->batch) continue;
    for (size_t k = 0; k < piece->rows; k++) map[row++] = piece->is_dropped ? GONE : (uint32_t)kept++;
  }
  *map_out = map;
  *kept_out = kept;
  return PAWL_OK;
}

static pawl_status count_all(const struct linear_share *share, const uint32_t *map, uint64_t span,
                             struct linear_index *index) {
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < share->features && !status; i++) {
    uint64_t stay = 0;
    for (uint64_t k = share->starts[i]; k < share->starts[i + 1]; k++) stay += map[share->row_of[k]] != GONE;
    if (stay) status = linear_index_count(index, share->ids[i], stay);
  }
  for (size_t i = 0; i < share->piece_count && !status; i++) {
    const struct pawl_batch *batch = share->pieces[i].batch;
    if (!batch) continue;
    if (batch->entries && batch->max_id >= span) return PAWL_OUT_OF_SPAN;
    for (size_t k = 0; k < batch->entries && !status; k++) status = linear_index_count(index, batch->ids[k], 1);
  }
  return status;
}

/* --- sorting features ----------------------------------------------------------------------------------- */

struct keyed_feature {
  uint64_t key;
  uint32_t number;
};

static int by_key(const void *a, const void *b) {
  const struct keyed_feature *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

/* Fills keys, ids and starts of `next`. In the index it replaces each count by the position of the feature's
 * next entry, and leaves the numbers as they are. */
static pawl_status order_features(struct linear_index *index, const struct linear_scatter *scatter,
                                  struct linear_share *next) {
  size_t count = index->count;
  struct keyed_feature *names = apps_alloc((count + 1) * sizeof *names);
  next->keys = apps_alloc((count + 1) * sizeof *next->keys);
  next->ids = apps_alloc((count + 1) * sizeof *next->ids);
  next->starts = apps_alloc((count + 1) * sizeof *next->starts);
  if (!names || !next->keys || !next->ids || !next->starts) {
    apps_free(names);
    return PAWL_NO_MEMORY;
  }
  for (size_t i = 0; i < count; i++) names[i] = (struct keyed_feature){linear_key(scatter, index->ids[i]), (uint32_t)i};
  qsort(names, count, sizeof *names, by_key);
  uint64_t at = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t number = names[i].number;
    uint64_t entries = index->counts[number];
    next->keys[i] = names[i].key;
    next->ids[i] = index->ids[number];
    next->starts[i] = index->counts[number] = at;
    at += entries;
  }
  next->starts[count] = at;
  next->features = count;
  apps_free(names);
  return PAWL_OK;
}

/* --- copying entries ------------------------------------------------------------------------------------ */

static void put(struct linear_index *index, struct linear_share *next, uint64_t id, uint32_t row, float value) {
  uint64_t at = index->counts[linear_index_find(index, id)]++;
  next->row_of[at] = row;
  next->values[at] = value;
}

static void place_old(const struct linear_share *share, const uint32_t *map, struct linear_index *index,
                      struct linear_share *next) {
  for (size_t i = 0; i < share->features; i++)
    for (uint64_t k = share->starts[i]; k < share->starts[i + 1]; k++)
      if (map[share->row_of[k]] != GONE) put(index, next, share->ids[i], map[share->row_of[k]], share->values[k]);
  for (size_t i = 0; i < share->rows; i++) {
    if (map[i] == GONE) continue;
    next->labels[map[i]] = share->labels[i];
    next->weights[map[i]] = share->weights ? share->weights[i] : 1;
  }
}

/* Entries of the columns from before come first, and are divided already. */
static pawl_status note_raw(const struct linear_share *share, const struct linear_index *index,
                            struct linear_share *next) {
  next->scales = share->scales;
  if (!share->scales) return PAWL_OK;
  next->raw = apps_alloc((next->features + 1) * sizeof *next->raw);
  for (size_t j = 0; next->raw && j < next->features; j++)
    next->raw[j] = index->counts[linear_index_find(index, next->ids[j])];
  return next->raw ? PAWL_OK : PAWL_NO_MEMORY;
}

static void place_batch(const struct pawl_batch *batch, size_t first_row, struct linear_index *index,
                        struct linear_share *next) {
  for (size_t i = 0; i < batch->rows; i++) {
    uint32_t row = (uint32_t)(first_row + i);
    next->labels[row] = batch->labels[i];
    next->weights[row] = batch->weights ? batch->weights[i] : 1;
    for (uint64_t k = batch->starts[i]; k < batch->starts[i + 1]; k++)
      put(index, next, batch->ids[k], row, batch->values ? batch->values[k] : 1);
  }
}

static pawl_status allocate(struct linear_share *next, size_t rows, uint64_t entries) {
  next->rows = rows;
  next->labels = apps_alloc((rows + 1) * sizeof *next->labels);
  next->weights = apps_alloc((rows + 1) * sizeof *next->weights);
  next->row_of = apps_alloc((size_t)(entries + 1) * sizeof *next->row_of);
  next->values = apps_alloc((size_t)(entries + 1) * sizeof *next->values);
  return next->labels && next->weights && next->row_of && next->values ? PAWL_OK : PAWL_NO_MEMORY;
}

/* The share keeps its pieces, except dropped ones, and takes the columns of `next`. */
static void adopt(struct linear_share *share, struct linear_share *next) {
  next->digests = share->digests;
  next->pieces = share->pieces;
  next->piece_room = share->piece_room;
  for (size_t i = 0; i < share->piece_count; i++) {
    struct linear_piece piece = share->pieces[i];
    if (piece.is_dropped) continue;
    pawl_batch_destroy(piece.batch);
    piece.batch = NULL;
    next->pieces[next->piece_count++] = piece;
  }
  share->pieces = NULL;
  share->piece_count = 0;
  linear_share_fini(share);
  *share = *next;
}

pawl_status linear_share_arrange(struct linear_share *share, const struct linear_scatter *scatter) {
  struct linear_share next = {0};
  struct linear_index index = {0};
  uint32_t *map = NULL;
  size_t kept = 0, rows;
  uint64_t entries = share->features ? share->starts[share->features] : 0;
  if (!share->is_stale) return PAWL_OK;
  pawl_status status = renumber(share, &map, &kept);
  rows = kept;
  for (size_t i = 0; i < share->piece_count; i++)
    if (share->pieces[i].batch) {
      rows += share->pieces[i].rows;
      entries += share->pieces[i].batch->entries;
    }
  if (!status && rows >= GONE) status = PAWL_TOO_LARGE;
  if (!status) status = linear_index_init(&index, scatter->size, entries);
  if (!status) status = count_all(share, map, scatter->size, &index);
  if (!status) status = order_features(&index, scatter, &next);
  if (!status) status = allocate(&next, rows, next.starts[next.features]);
  if (!status) place_old(share, map, &index, &next);
  if (!status) status = note_raw(share, &index, &next);
  if (!status) {
    for (size_t i = 0, row = kept; i < share->piece_count; i++) {
      if (!share->pieces[i].batch) continue;
      place_batch(share->pieces[i].batch, row, &index, &next);
      row += share->pieces[i].rows;
    }
    adopt(share, &next);
  } else {
    linear_share_fini(&next);
  }
  linear_index_fini(&index);
  apps_free(map);
  return status;
}
