/* Adds and drops pieces: see share.h. arrange.c arranges them. */
#include "apps/linear/share.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

void linear_share_fini(struct linear_share *share) {
  for (size_t i = 0; i < share->piece_count; i++) pawl_batch_destroy(share->pieces[i].batch);
  apps_free(share->pieces);
  apps_free(share->labels);
  apps_free(share->weights);
  apps_free(share->keys);
  apps_free(share->ids);
  apps_free(share->starts);
  apps_free(share->raw);
  apps_free(share->row_of);
  apps_free(share->values);
  memset(share, 0, sizeof *share);
}

static pawl_status add_piece(void *context, size_t number, struct pawl_batch *batch) {
  struct linear_share *share = context;
  if (share->piece_count == share->piece_room) {
    size_t room = share->piece_room ? 2 * share->piece_room : 16;
    struct linear_piece *pieces = apps_resize(share->pieces, room * sizeof *pieces);
    if (!pieces) {
      pawl_batch_destroy(batch);
      return PAWL_NO_MEMORY;
    }
    share->pieces = pieces;
    share->piece_room = room;
  }
  struct apps_digest digest = {0};
  if (share->digests) apps_digest_add(&digest, number, batch);
  share->pieces[share->piece_count++] =
      (struct linear_piece){.number = number, .rows = batch->rows, .batch = batch, .digest = digest.sum};
  share->is_stale = true;
  return PAWL_OK;
}

/* Pieces are read in any order, and sorted by number, so that a sum over rows is the same every time. */
static int by_number(const void *a, const void *b) {
  const struct linear_piece *x = a, *y = b;
  return x->number < y->number ? -1 : x->number > y->number;
}

pawl_status linear_share_take(struct linear_share *share, struct pawl_data *data, const struct pawl_range *pieces,
                              size_t count, uint32_t threads) {
  size_t had = share->piece_count;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count && !status; i++)
    status = pawl_data_read_all(data, (size_t)pieces[i].begin, (size_t)pieces[i].end, threads, add_piece, share);
  if (share->piece_count > had) qsort(share->pieces + had, share->piece_count - had, sizeof *share->pieces, by_number);
  return status;
}

pawl_status linear_share_drop(struct linear_share *share, const struct pawl_range *pieces, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < share->piece_count; i++) {
    struct linear_piece *piece = &share->pieces[i];
    for (size_t k = 0; k < count; k++)
      if (piece->number >= pieces[k].begin && piece->number < pieces[k].end) piece->is_dropped = true;
    if (piece->is_dropped) share->is_stale = true;
    if (piece->is_dropped && piece->batch) /* its rows were never arranged, so it can be freed at once */
      pawl_batch_destroy(piece->batch);
    else
      share->pieces[kept++] = *piece;
  }
  share->piece_count = kept;
  return PAWL_OK;
}

/* --- scaling -------------------------------------------------------------------------------------------- */

bool linear_share_is_raw(const struct linear_share *share) {
  for (size_t j = 0; share->raw && j < share->features; j++)
    if (share->raw[j] < share->starts[j + 1]) return true;
  return false;
}

void linear_share_scale(struct linear_share *share, const double *by) {
  for (size_t j = 0; share->raw && j < share->features; j++) {
    for (uint64_t k = share->raw[j]; by[j] != 0 && k < share->starts[j + 1]; k++)
      share->values[k] = (float)((double)share->values[k] / by[j]);
    share->raw[j] = share->starts[j + 1];
  }
}

/* --- a census ------------------------------------------------------------------------------------------- */

static void count_label(struct linear_census *census, double label) {
  size_t i = 0;
  while (i < census->label_count && census->labels[i] != label) i++;
  if (i == census->label_count) {
    if (i == sizeof census->labels / sizeof *census->labels) return;
    census->labels[i] = label;
    census->label_rows[i] = 0;
    census->label_count++;
  }
  census->label_rows[i]++;
}

void linear_census_add(struct linear_census *census, const struct pawl_batch *batch) {
  census->rows += batch->rows;
  census->entries += batch->entries;
  census->skipped += batch->skipped;
  if (batch->max_id > census->max_id) census->max_id = batch->max_id;
  for (size_t i = 0; i < batch->rows; i++) {
    count_label(census, (double)batch->labels[i]);
    if (batch->starts[i] < batch->starts[i + 1] && batch->ids[batch->starts[i]] == 0) census->has_zero = true;
  }
  if (!batch->values) census->squares += (double)batch->entries;
  for (size_t k = 0; batch->values && k < batch->entries; k++)
    census->squares += (double)batch->values[k] * (double)batch->values[k];
}

void linear_share_count(const struct linear_share *share, struct linear_census *census_out) {
  *census_out =
      (struct linear_census){.rows = share->rows, .entries = share->features ? share->starts[share->features] : 0};
  for (size_t i = 0; i < share->rows; i++) count_label(census_out, (double)share->labels[i]);
  for (uint64_t k = 0; k < census_out->entries; k++)
    census_out->squares += (double)share->values[k] * (double)share->values[k];
  for (size_t i = 0; i < share->features; i++) {
    if (share->ids[i] > census_out->max_id) census_out->max_id = share->ids[i];
    if (share->ids[i] == 0) census_out->has_zero = true;
  }
  for (size_t i = 0; i < share->piece_count; i++) {
    if (share->pieces[i].batch) linear_census_add(census_out, share->pieces[i].batch);
    if (!share->digests || share->pieces[i].is_dropped) continue;
    census_out->digest.sum += share->pieces[i].digest;
    census_out->digest.pieces++;
  }
}
