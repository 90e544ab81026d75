/* Dot products, and sums for norms.
 *
 * Values are folded in blocks at fixed places: by index of the value in a dense vector, and by order from the
 * beginning of the range in a sparse one. So the same rows of the same range give the same bits on every
 * server, whatever the history of its memory. If one column is requested, its values are folded as if there
 * were no others.
 */
#include "shard/inside.h"

#include <string.h>

#include "base/cursor.h"

#define BLOCK 1024                       /* values of a block */
#define SLICE_BYTES ((size_t)32 << 20)   /* bytes of rows that one request reads: a few milliseconds */
#define GATHER_BYTES ((size_t)256 << 10) /* of rows of y copied at a time, but at least one row */

struct fold {
  const struct pwi_table *x, *y; /* y: second vector of a dot product, otherwise NULL */
  enum pwi_linear kind;
  struct pwi_sum sum;
  size_t size;    /* bytes of a value */
  size_t width;   /* values of a row that are folded: all, or one */
  size_t column;  /* index of the value, if only one of several is folded */
  size_t filled;  /* values in the present block */
  uint64_t block; /* number of the present block */
  _Alignas(64) char x_values[BLOCK * sizeof(uint64_t)];
  _Alignas(64) char y_values[BLOCK * sizeof(uint64_t)];
};

static void fold_block(struct fold *fold, const char *x, const char *y, size_t count) {
  pwi_linear_fold(fold->kind, fold->x->is.type, x, y, count, &fold->sum);
}

static void flush(struct fold *fold) {
  if (fold->filled > 0) fold_block(fold, fold->x_values, fold->y_values, fold->filled);
  fold->filled = 0;
}

/* Fills places of the block without a value with zeros. */
static void skip_to(struct fold *fold, size_t place) {
  size_t from = fold->filled * fold->size, bytes = place * fold->size - from;
  memset(fold->x_values + from, 0, bytes);
  memset(fold->y_values + from, 0, bytes);
  fold->filled = place;
}

/* Adds values from index `at`, all in one block. */
static void put(struct fold *fold, uint64_t at, const char *x, const char *y, size_t count) {
  size_t place = (size_t)(at % BLOCK);
  if (fold->block != at / BLOCK) flush(fold);
  fold->block = at / BLOCK;
  if (place == 0 && count == BLOCK) {
    fold_block(fold, x, y, BLOCK);
    return;
  }
  skip_to(fold, place);
  memcpy(fold->x_values + place * fold->size, x, count * fold->size);
  if (y) memcpy(fold->y_values + place * fold->size, y, count * fold->size);
  fold->filled += count;
}

static size_t left_in_block(uint64_t at, size_t count) {
  size_t left = BLOCK - (size_t)(at % BLOCK);
  return count < left ? count : left;
}

/* The values of `rows` to fold, from index `from`, in consecutive memory; `count` of them lie in one
 * block. */
static const char *pick(const struct fold *fold, const struct pwi_rows *rows, size_t from, size_t count, char *room) {
  if (fold->width == fold->x->is.width) return rows->values + from * fold->size;
  const char *value = rows->values + from * fold->x->row_bytes + fold->column * fold->size;
  for (size_t i = 0; i < count; i++, value += fold->x->row_bytes) memcpy(room + i * fold->size, value, fold->size);
  return room;
}

/* --- dense ---------------------------------------------------------------------------------------------- */

static void fold_run(struct fold *fold, const struct pwi_rows *rows) {
  size_t width = fold->width, count = rows->count * width;
  _Alignas(64) char room[BLOCK * sizeof(uint64_t)], picked[BLOCK * sizeof(uint64_t)];
  uint64_t first = rows->first * width; /* no overflow: a dense span has fewer than 2^32 rows */
  for (size_t done = 0, step; done < count; done += step) {
    step = left_in_block(first + done, count - done);
    const char *y = fold->y ? pwi_linear_view(fold->y, rows->first, done, step, room) : NULL;
    put(fold, first + done, pick(fold, rows, done, step, picked), y, step);
  }
}

static uint64_t fold_dense(struct fold *fold, struct pawl_range range) {
  uint64_t most = SLICE_BYTES / fold->x->row_bytes + 1;
  struct pwi_rows rows;
  while (most > 0 && !pawl_range_is_empty(range) && pwi_table_scan(fold->x, range, &rows)) {
    if (rows.count > most) rows.count = (size_t)most;
    fold_run(fold, &rows);
    most -= rows.count;
    range.begin = rows.first + rows.count;
  }
  return most > 0 ? range.end : range.begin;
}

/* --- sparse --------------------------------------------------------------------------------------------- */

static pawl_status gather_others(struct pwi_shard *shard, struct pwi_table *table, const struct pwi_rows *rows) {
  size_t count = rows->count;
  pawl_status status = pwi_pages_grow(&shard->linear_rows, count * table->row_bytes);
  if (status == PAWL_OK) status = pwi_table_resolve(table, rows->keys, count, false, &shard->linear_slots);
  if (status == PAWL_OK) pwi_table_gather(table, &shard->linear_slots, 0, count, shard->linear_rows.memory);
  return status;
}

static void fold_rows(struct fold *fold, const struct pwi_rows *rows, const char *y, uint64_t at) {
  size_t count = rows->count * fold->width;
  _Alignas(64) char picked[BLOCK * sizeof(uint64_t)];
  for (size_t done = 0, step; done < count; done += step) {
    step = left_in_block(at + done, count - done);
    put(fold, at + done, pick(fold, rows, done, step, picked), y ? y + done * fold->size : NULL, step);
  }
}

static pawl_status fold_sparse(struct pwi_shard *shard, struct fold *fold, struct pwi_table *others,
                               struct pawl_range range, uint64_t *next_out) {
  uint64_t most = SLICE_BYTES / (fold->x->row_bytes + 64) + 1, at = 0;
  size_t at_once = GATHER_BYTES / fold->x->row_bytes + 1;
  struct pwi_rows rows;
  while (most > 0 && !pawl_range_is_empty(range) && pwi_table_scan(fold->x, range, &rows)) {
    if (rows.count > most) rows.count = (size_t)most;
    if (rows.count > at_once) rows.count = at_once;
    pawl_status status = others ? gather_others(shard, others, &rows) : PAWL_OK;
    if (status != PAWL_OK) return status;
    fold_rows(fold, &rows, others ? shard->linear_rows.memory : NULL, at);
    at += rows.count * fold->width;
    most -= rows.count;
    range.begin = rows.keys[rows.count - 1] + 1;
  }
  *next_out = most > 0 ? range.end : range.begin;
  return PAWL_OK;
}

/* --- the request ---------------------------------------------------------------------------------------- */

static bool has_gap(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                    uint64_t *found_out) {
  const struct pwi_terms *terms = &request->terms;
  if (pwi_linear_has_gap(shard, vector, request, found_out)) return true;
  return terms->prior > 0 &&
         pwi_clock_min(&vector->clocks[PWI_TASKS], request->sender, terms->claim, found_out) == PAWL_OK &&
         *found_out < terms->prior;
}

static void answer(struct pwi_shard *shard, struct pwi_sum sum, struct pwi_served *served) {
  uint64_t words[2];
  memcpy(words, &(double[2]){sum.high, sum.low}, sizeof words);
  pwi_writer_reset(&shard->payload);
  pwi_write_u64(&shard->payload, words[0]);
  pwi_write_u64(&shard->payload, words[1]);
  if (shard->payload.status != PAWL_OK) {
    pwi_served_fail(served, shard->payload.status);
    return;
  }
  served->payload = shard->payload.data;
  served->payload_size = shard->payload.size;
}

void pwi_serve_fold(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served) {
  const struct pwi_terms *terms = &request->terms;
  struct fold fold = {.x = vector->table, .kind = request->operation.kind};
  struct pwi_vector *other;
  uint64_t found, next = terms->range.end;
  uint32_t column = request->operation.column, width = vector->table->is.width;
  bool is_fold = pwi_linear_is_known(fold.kind) && pwi_linear_folds(fold.kind) && terms->keys == PWI_KEYS_RANGE;
  if (column > (pwi_linear_has_column(fold.kind) ? width : 0)) is_fold = false;
  pawl_status status = is_fold ? pwi_linear_other(shard, vector, request, &other) : PAWL_INVALID;
  if (status == PAWL_OK && has_gap(shard, vector, request, &found)) {
    pwi_served_gap(shard, request, found, served);
    return;
  }
  if (status == PAWL_OK) {
    fold.size = fold.x->row_bytes / width;
    fold.width = column > 0 ? 1 : width;
    fold.column = column > 0 ? column - 1 : 0;
    fold.y = other ? other->table : NULL;
    if (fold.x->is.sparse)
      status = fold_sparse(shard, &fold, other ? other->table : NULL, terms->range, &next);
    else
      next = fold_dense(&fold, terms->range);
    flush(&fold);
  }
  if (status != PAWL_OK) {
    pwi_served_fail(served, status);
    return;
  }
  vector->pulls++;
  shard->totals.pulls++;
  answer(shard, fold.sum, served);
  served->outcome.next = next < terms->range.end ? next : terms->claim.end;
}
