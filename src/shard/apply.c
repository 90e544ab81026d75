/* Applies values to tables.
 *
 * Nothing changes before everything that can fail has succeeded: keys are resolved to slots, and new keys are
 * created as zeros. Then values are applied directly from the message.
 */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/feed.h"
#include "base/memory.h"
#include "base/search.h"
#include "store/dense.h"

/* --- values --------------------------------------------------------------------------------------------- */

bool pwi_values_match(const struct pwi_vector *vector, const struct pwi_request *request, size_t rows,
                      size_t row_bytes) {
  size_t wanted, sum = 0;
  if (request->value_type != (uint8_t)vector->entry.is.type) return false;
  if (!pwi_mul_size(rows, row_bytes, &wanted)) return false;
  for (size_t i = 0; i < request->value_parts; i++)
    if (!pwi_add_size(sum, request->values[i].iov_len, &sum)) return false;
  return sum == wanted;
}

/* --- preparation ---------------------------------------------------------------------------------------- */

static pawl_status ready_row(struct pwi_shard *shard, size_t bytes) {
  if (bytes <= shard->row_room) return PAWL_OK;
  char *grown = pwi_resize(shard->row, bytes);
  if (!grown) return PAWL_NO_MEMORY;
  shard->row = grown;
  shard->row_room = bytes;
  return PAWL_OK;
}

static pawl_status ready_list(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_named *named) {
  if (pwi_slots_hold(named->slots, vector->table) && named->slots->missing == 0) return PAWL_OK;
  return pwi_shard_resolve(shard, vector, named->keys, named->count, true, named->slots, named->list);
}

pawl_status pwi_rows_reserve(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range range) {
  uint64_t layout = vector->table->layout;
  pwi_shard_set_limit(shard, vector);
  pawl_status status = pwi_dense_reserve(vector->table, range);
  if (status == PAWL_TOO_LARGE && shard->lists.bytes > 0) {
    pwi_lists_drop(&shard->lists, (struct pwi_vector_id){0}, NULL);
    pwi_shard_set_limit(shard, vector);
    status = pwi_dense_reserve(vector->table, range);
  }
  if (vector->table->layout != layout) pwi_shard_count_bytes(shard, vector);
  return status == PAWL_TOO_LARGE ? pwi_shard_full(shard, vector) : status;
}

/* The number of rows in the block that begins with row `done`. Ranges of a sparse table are processed in
 * blocks. */
static size_t block_size(uint64_t done, uint64_t rows) {
  return rows - done < PWI_BLOCK ? (size_t)(rows - done) : PWI_BLOCK;
}

static pawl_status ready_blocks(struct pwi_shard *shard, struct pwi_vector *vector, struct pawl_range range) {
  uint64_t rows = pawl_range_size(range);
  for (uint64_t done = 0; done < rows;) {
    size_t count = block_size(done, rows);
    pawl_status status = pwi_shard_block(shard, range.begin + done, count);
    if (status == PAWL_OK) status = pwi_shard_resolve(shard, vector, shard->keys, count, true, &shard->slots, NULL);
    if (status != PAWL_OK) return status;
    done += count;
  }
  return PAWL_OK;
}

pawl_status pwi_rows_ready(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                           const struct pwi_named *named, struct pawl_range range) {
  if (vector->is_hollow) return shard->is_following ? PAWL_NO_MEMORY : PAWL_NODE_FULL;
  size_t row_bytes = pwi_vector_pushed_bytes(vector, request->terms.kind);
  if (row_bytes < vector->table->row_bytes) row_bytes = vector->table->row_bytes;
  pawl_status status = request->value_parts > 1 ? ready_row(shard, row_bytes) : PAWL_OK;
  if (status != PAWL_OK) return status;
  if (named->keys || named->count == 0) return ready_list(shard, vector, named);
  if (!vector->table->is.sparse) status = pwi_rows_reserve(shard, vector, range);
  /* State is addressed by slots, also in a dense table. */
  bool by_blocks = vector->table->is.sparse || vector->table->state_bytes > 0;
  return status == PAWL_OK && by_blocks ? ready_blocks(shard, vector, range) : status;
}

/* --- applying: cannot fail ------------------------------------------------------------------------------ */

static void apply_slots(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_slots *slots, size_t from,
                        size_t count, struct pwi_feed *feed, enum pwi_apply how, char *result) {
  size_t size = vector->table->row_bytes;
  for (size_t done = 0, units; done < count; done += units) {
    const char *rows = pwi_feed_next(feed, size, count - done, shard->row, &units);
    pwi_table_scatter(vector->table, how, slots, from + done, units, rows, result ? result + done * size : NULL);
  }
}

static void apply_dense(struct pwi_vector *vector, uint64_t first, size_t rows, struct pwi_feed *feed,
                        enum pwi_apply how, char *result) {
  size_t width = vector->table->is.width, size = vector->table->row_bytes / width, count = rows * width;
  char cut[sizeof(uint64_t)];
  pawl_status status = PAWL_OK;
  for (size_t done = 0, units; done < count && !status; done += units) {
    const char *values = pwi_feed_next(feed, size, count - done, cut, &units);
    status =
        pwi_table_range_apply(vector->table, how, first, done, units, values, result ? result + done * size : NULL);
  }
  assert(status == PAWL_OK);
  (void)status;
}

/* All keys exist and the slots have room, so each block resolves as it did when its rows were created. */
static void apply_blocks(struct pwi_shard *shard, struct pwi_vector *vector, uint64_t first, uint64_t rows,
                         struct pwi_feed *feed, enum pwi_apply how, char *result) {
  for (uint64_t done = 0; done < rows;) {
    size_t count = block_size(done, rows);
    pawl_status status = pwi_shard_block(shard, first + done, count);
    if (status == PAWL_OK) status = pwi_table_resolve(vector->table, shard->keys, count, false, &shard->slots);
    assert(status == PAWL_OK);
    (void)status;
    char *place = result ? result + done * vector->table->row_bytes : NULL;
    apply_slots(shard, vector, &shard->slots, 0, count, feed, how, place);
    done += count;
  }
}

void pwi_rows_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                    const struct pwi_named *named, struct pawl_range part, enum pwi_apply how) {
  struct pwi_feed feed = {request->values, 0};
  part = pawl_range_common(part, request->terms.range);
  if (pawl_range_is_empty(part) || named->count == 0) return;
  size_t from = (size_t)(part.begin - request->terms.range.begin), count = (size_t)pawl_range_size(part);
  if (named->keys) {
    from = pwi_first_not_below(named->keys, named->count, part.begin);
    count = pwi_first_not_below(named->keys, named->count, part.end) - from;
  }
  if (count == 0) return;
  size_t skip = (named->first + from) * vector->table->row_bytes;
  char *result = request->result ? (char *)request->result + skip : NULL;
  if (skip > 0) pwi_feed_skip(&feed, skip);
  if (named->keys)
    apply_slots(shard, vector, named->slots, from, count, &feed, how, result);
  else if (vector->table->is.sparse)
    apply_blocks(shard, vector, part.begin, count, &feed, how, result);
  else
    apply_dense(vector, part.begin, count, &feed, how, result);
}
