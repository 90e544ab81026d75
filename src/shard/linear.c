/* Linear algebra on rows in place (OSDI'14 3.1; docs/protocol.md#linear-algebra).
 *
 * A LINEAR is a push whose values are computed from the other vector and the scalar. Otherwise it is a push
 * like any other: it is numbered, has a claim, is applied whole or not at all, and its resulting rows go down
 * the chain. Both vectors have the same placement, so this shard holds the keys of the claim for both.
 *
 * Rows of a dense vector are changed in place. For a sparse vector, pwi_shard_cut_linear first lists the keys
 * concerned: keys that are present in it or in the other vector. From then on the request is as if the client
 * had sent this list. Rows are copied out in blocks, changed, and written back.
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/search.h"
#include "wire/values.h"

#define SLICE_BYTES ((size_t)2 << 20) /* of rows changed by one request: far less than 20 ms of work */
#define SLICE_KEYS ((size_t)64 << 10) /* keys of one request, if they must be looked up */
#define VIEW_VALUES 1024
#define GATHER_BYTES ((size_t)32 << 10) /* of rows copied at a time: fits in the L1 cache */

/* --- two vectors ---------------------------------------------------------------------------------------- */

static bool go_aggregate(const struct pwi_vector *a, const struct pwi_vector *b) {
  if (!a->table || !b->table) return false;
  const struct pwi_table_options *is = &a->table->is, *other = &b->table->is;
  return is->type == other->type && is->width == other->width && is->sparse == other->sparse &&
         a->place.size == b->place.size && a->place.mixed == b->place.mixed;
}

pawl_status pwi_linear_other(const struct pwi_shard *shard, const struct pwi_vector *vector,
                             const struct pwi_request *request, struct pwi_vector **other_out) {
  const struct pwi_operation *operation = &request->operation;
  *other_out = NULL;
  if (!pwi_linear_has_other(operation->kind)) return PAWL_OK;
  struct pwi_vector *other = pwi_shard_vector(shard, operation->other);
  if (!other) return PAWL_NOT_FOUND;
  if (operation->incarnation != other->entry.incarnation) return PAWL_RESTORED;
  if (!go_aggregate(vector, other)) return PAWL_MISMATCH;
  if (vector->is_hollow || other->is_hollow) return PAWL_NODE_FULL;
  *other_out = other;
  return PAWL_OK;
}

bool pwi_linear_has_gap(const struct pwi_shard *shard, const struct pwi_vector *vector,
                        const struct pwi_request *request, uint64_t *found_out) {
  struct pwi_vector *other;
  uint64_t found;
  if (request->operation.prior == 0 || pwi_linear_other(shard, vector, request, &other) || !other) return false;
  if (pwi_clock_min(&other->clocks[PWI_TASKS], request->sender, request->terms.claim, &found) != PAWL_OK) return false;
  if (found >= request->operation.prior) return false;
  *found_out = found;
  return true;
}

bool pwi_linear_is_unread(const struct pwi_shard *shard, const struct pwi_request *request, uint64_t *found_out) {
  const struct pwi_read_first *first = &request->first;
  struct pawl_range range = pawl_range_common(first->range, request->terms.claim);
  if (first->task == 0 || pawl_range_is_empty(range)) return false;
  const struct pwi_vector *reader = pwi_shard_vector(shard, first->vector);
  uint64_t found = 0;
  if (reader && pwi_clock_min(&reader->clocks[PWI_TASKS], request->sender, range, &found) != PAWL_OK) found = 0;
  if (found >= first->task) return false;
  *found_out = found;
  return true;
}

/* --- a slice of work ------------------------------------------------------------------------------------ */

/* Iterates over the keys of a table. */
struct present {
  const struct pwi_table *table; /* NULL: no table */
  struct pawl_range rest;
  struct pwi_rows rows;
  size_t at;
};

static bool has_key(struct present *present) {
  if (!present->table) return false;
  if (present->at < present->rows.count) return true;
  if (pawl_range_is_empty(present->rest) || !pwi_table_scan(present->table, present->rest, &present->rows))
    return false;
  present->rest.begin = present->rows.last + 1;
  present->at = 0;
  return true;
}

static uint64_t key_of(const struct present *present) {
  return present->rows.keys ? present->rows.keys[present->at] : present->rows.first + present->at;
}

/* Returns the lowest key that is present in either, and moves past it. */
static bool next_key(struct present *a, struct present *b, uint64_t *key_out) {
  bool in_a = has_key(a), in_b = has_key(b);
  if (!in_a && !in_b) return false;
  uint64_t key = in_a ? key_of(a) : key_of(b);
  if (in_b && key_of(b) < key) key = key_of(b);
  if (in_a && key_of(a) == key) a->at++;
  if (in_b && key_of(b) == key) b->at++;
  *key_out = key;
  return true;
}

static size_t slice_rows(const struct pwi_vector *vector) {
  size_t rows = SLICE_BYTES / vector->table->row_bytes;
  return rows > 0 ? rows : 1;
}

/* Where x has no row, axpy changes nothing and a copy is zero. Scaling creates no rows. */
static pawl_status name_keys(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_vector *other,
                             struct pwi_request *request) {
  struct pwi_terms *terms = &request->terms;
  struct present own = {.table = vector->table, .rest = terms->range};
  struct present others = {.table = other ? other->table : NULL, .rest = terms->range};
  size_t most = slice_rows(vector), count = 0;
  if (most > SLICE_KEYS) most = SLICE_KEYS;
  if (request->operation.kind == PWI_LINEAR_AXPY) own.table = NULL;
  pawl_status status = pwi_pages_grow(&shard->linear_keys, most * sizeof(uint64_t));
  if (status != PAWL_OK) return status;
  uint64_t *keys = shard->linear_keys.memory;
  while (count < most && next_key(&own, &others, &keys[count])) count++;
  if (count == most && keys[count - 1] + 1 < terms->range.end) /* there may be more keys */
    terms->claim.end = terms->range.end = keys[count - 1] + 1;
  terms->keys = PWI_KEYS_LIST;
  terms->keep = false;
  terms->rows = count;
  request->keys = request->encoded = keys;
  request->encoded_as = (struct pwi_section){
      .type = PWI_SECTION_KEYS, .value_type = PWI_TYPE_U64, .count = (uint32_t)count, .length = count * sizeof *keys};
  return PAWL_OK;
}

pawl_status pwi_shard_cut_linear(struct pwi_shard *shard, struct pwi_request *request) {
  struct pwi_terms *terms = &request->terms;
  const struct pwi_vector *vector = pwi_shard_vector(shard, terms->vector);
  struct pwi_vector *other;
  if (!vector || !vector->table || terms->range.end > vector->place.size) return PAWL_OK;
  pawl_status status = pwi_linear_other(shard, vector, request, &other);
  if (status != PAWL_OK || terms->keys != PWI_KEYS_RANGE) return status;
  if (vector->table->is.sparse && request->operation.kind == PWI_LINEAR_FILL) return PAWL_UNSUPPORTED;
  if (pwi_linear_runs(request->operation.kind)) pwi_run_cut(vector, request);
  if (terms->rows != pawl_range_size(terms->range))
    terms->rows = 0; /* the request will be refused and needs no memory */
  if (vector->table->is.sparse) return terms->rows > 0 ? name_keys(shard, vector, other, request) : PAWL_OK;
  size_t most = slice_rows(vector);
  if (terms->rows > most) {
    terms->rows = most;
    terms->claim.end = terms->range.end = terms->range.begin + most;
  }
  return PAWL_OK;
}

/* --- preparation ---------------------------------------------------------------------------------------- */

size_t pwi_linear_gather_rows(const struct pwi_vector *vector) {
  size_t rows = GATHER_BYTES / vector->table->row_bytes;
  return rows > 0 ? rows : 1;
}

/* The rows of both vectors are copied side by side. */
static pawl_status ready_list(struct pwi_shard *shard, const struct pwi_vector *vector, struct pwi_vector *other,
                              const struct pwi_named *named) {
  pawl_status status =
      pwi_pages_grow(&shard->linear_rows, 2 * pwi_linear_gather_rows(vector) * vector->table->row_bytes);
  if (status == PAWL_OK && other)
    status = pwi_table_resolve(other->table, named->keys, named->count, false, &shard->linear_slots);
  return status;
}

pawl_status pwi_linear_ready(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_named *named) {
  const struct pwi_operation *operation = &request->operation;
  struct pwi_vector *other;
  if (!pwi_linear_is_known(operation->kind) || pwi_linear_folds(operation->kind) ||
      !pwi_linear_takes(operation->kind, vector->table->is.type, operation->scalar))
    return PAWL_INVALID;
  if (vector->table->is.sparse && !named->keys && named->count > 0) return PAWL_UNSUPPORTED;
  pawl_status status = pwi_linear_other(shard, vector, request, &other);
  if (status == PAWL_OK) status = pwi_rows_ready(shard, vector, request, named, request->terms.range);
  if (status == PAWL_OK && named->keys && named->count > 0) status = ready_list(shard, vector, other, named);
  if (status == PAWL_OK && pwi_linear_runs(operation->kind)) status = pwi_run_ready(shard, vector, request);
  if (status != PAWL_OK) return status;
  return pwi_clock_reserve(&vector->clocks[PWI_TASKS], request->sender, request->terms.claim);
}

/* --- applying: cannot fail ------------------------------------------------------------------------------ */

const char *pwi_linear_view(const struct pwi_table *table, uint64_t first, uint64_t from, size_t count, char *room) {
  size_t width = table->is.width, size = table->row_bytes / width;
  uint64_t row = first + from / width, last = first + (from + count - 1) / width;
  struct pwi_rows rows;
  if (pwi_table_scan(table, pawl_range_of(row, last + 1), &rows) && rows.first == row && rows.last == last)
    return rows.values + (size_t)(from % width) * size;
  pawl_status status = pwi_table_range_read(table, first, from, count, room);
  assert(status == PAWL_OK);
  (void)status;
  return room;
}

static void change_rows(const struct pwi_operation *operation, const struct pwi_table *table,
                        const struct pwi_table *other, const struct pwi_rows *rows) {
  size_t width = table->is.width, size = table->row_bytes / width, count = rows->count * width;
  _Alignas(64) char room[VIEW_VALUES * sizeof(uint64_t)];
  size_t step = other ? VIEW_VALUES : count;
  for (size_t done = 0; done < count; done += step) {
    if (step > count - done) step = count - done;
    const char *x = other ? pwi_linear_view(other, rows->first, done, step, room) : NULL;
    pwi_linear_change(operation->kind, table->is.type, operation->scalar, x, rows->values + done * size, step);
  }
}

/* Rows of a dense vector are changed in place; those of the other one may have to be copied. */
static void run_dense(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_vector *other,
                      const struct pwi_rows *rows) {
  size_t width = vector->table->is.width, most = other ? pwi_linear_gather_rows(vector) : rows->count;
  for (size_t done = 0, count; done < rows->count; done += count) {
    count = rows->count - done < most ? rows->count - done : most;
    const char *x = NULL;
    if (other) x = pwi_linear_view(other->table, rows->first, done * width, count * width, shard->linear_rows.memory);
    char *y = rows->values + done * vector->table->row_bytes;
    pwi_run_rows(shard, vector, NULL, rows->first + done, count, y, x);
  }
}

static void apply_range(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_vector *other,
                        const struct pwi_operation *operation, struct pawl_range part) {
  struct pwi_rows rows;
  while (!pawl_range_is_empty(part)) {
    bool found = pwi_table_scan(vector->table, part, &rows);
    assert(found && rows.first == part.begin && "rows are ready");
    (void)found;
    if (pwi_linear_runs(operation->kind))
      run_dense(shard, vector, other, &rows);
    else
      change_rows(operation, vector->table, other ? other->table : NULL, &rows);
    part.begin = rows.last + 1;
  }
}

static void apply_list(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_vector *other,
                       const struct pwi_operation *operation, const struct pwi_named *named, size_t from,
                       size_t count) {
  struct pwi_table *table = vector->table;
  size_t most = pwi_linear_gather_rows(vector);
  char *y = shard->linear_rows.memory, *x = y + most * table->row_bytes;
  for (size_t done = 0, rows; done < count; done += rows) {
    rows = count - done < most ? count - done : most;
    pwi_table_gather(table, named->slots, from + done, rows, y);
    if (other) pwi_table_gather(other->table, &shard->linear_slots, from + done, rows, x);
    if (pwi_linear_runs(operation->kind))
      pwi_run_rows(shard, vector, named->keys + from + done, 0, rows, y, other ? x : NULL);
    else
      pwi_linear_change(operation->kind, table->is.type, operation->scalar, x, y, rows * table->is.width);
    pwi_table_scatter(table, PWI_APPLY_ASSIGN, named->slots, from + done, rows, y, NULL);
  }
}

struct linear_work {
  struct pwi_shard *shard;
  struct pwi_vector *vector, *other;
  const struct pwi_operation *operation;
  const struct pwi_named *named;
  struct pawl_range part;
};

static void do_work(void *context) {
  const struct linear_work *work = context;
  const struct pwi_named *named = work->named;
  if (!named->keys) {
    apply_range(work->shard, work->vector, work->other, work->operation, work->part);
    return;
  }
  size_t from = pwi_first_not_below(named->keys, named->count, work->part.begin);
  size_t count = pwi_first_not_below(named->keys, named->count, work->part.end) - from;
  apply_list(work->shard, work->vector, work->other, work->operation, named, from, count);
}

void pwi_linear_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part) {
  struct linear_work work = {
      shard, vector, NULL, &request->operation, named, pawl_range_common(part, request->terms.range)};
  bool runs = pwi_linear_runs(request->operation.kind);
  pawl_status status = pwi_linear_other(shard, vector, request, &work.other);
  assert(status == PAWL_OK);
  (void)status;
  if (runs) pwi_run_begin(shard);
  if (pawl_range_is_empty(work.part) || named->count == 0) return;
  if (runs)
    pwi_run_aside(shard, do_work, &work);
  else
    do_work(&work);
}
