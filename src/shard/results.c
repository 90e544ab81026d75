/* Results of row functions that may have to be repeated.
 *
 * They are kept as refusals are (shard/refusals.c): until the sender has settled their task. A request that runs
 * a row function covers one slice, so there are as many results as slices under way.
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/checked.h"
#include "base/memory.h"

#define RESULTS_MAX ((size_t)1 << 18) /* of one vector: half a terabyte of rows in one call */

void pwi_results_fini(struct pwi_results *results) {
  pwi_free(results->items);
  *results = (struct pwi_results){0};
}

pawl_status pwi_results_reserve(struct pwi_results *results, size_t more) {
  size_t wanted;
  if (!pwi_add_size(results->count, more, &wanted)) return PAWL_NO_MEMORY;
  if (wanted > RESULTS_MAX) return PAWL_NODE_LIMIT;
  return PWI_GROW(results->items, results->room, wanted) ? PAWL_OK : PAWL_NO_MEMORY;
}

void pwi_results_add(struct pwi_results *results, const struct pwi_kept_result *result) {
  assert(results->count < results->room);
  results->items[results->count++] = *result;
}

void pwi_results_settle(struct pwi_results *results, struct pwi_sender sender, uint64_t settled) {
  size_t kept = 0;
  for (size_t i = 0; i < results->count; i++) {
    const struct pwi_kept_result *item = &results->items[i];
    if (item->sender.id != sender.id || item->task > settled) results->items[kept++] = *item;
  }
  results->count = kept;
}

void pwi_results_strike(struct pwi_results *results, const struct pwi_membership *membership) {
  size_t kept = 0;
  for (size_t i = 0; i < results->count; i++)
    if (!pwi_membership_has_forgotten(membership, results->items[i].sender)) results->items[kept++] = results->items[i];
  results->count = kept;
}

void pwi_results_drop(struct pwi_results *results, struct pawl_range range) {
  size_t kept = 0;
  for (size_t i = 0; i < results->count; i++) {
    struct pwi_kept_result item = results->items[i];
    if (pawl_range_contains(range, item.is.range)) continue;
    if (pawl_range_has(range, item.is.range.begin)) item.is.range.begin = range.end;
    if (pawl_range_has(range, item.is.range.end - 1)) item.is.range.end = range.begin;
    results->items[kept++] = item;
  }
  results->count = kept;
}

/* The results of the task on any key of `range`, cut to it. */
static bool is_of(const struct pwi_kept_result *item, struct pwi_sender sender, uint64_t task, struct pawl_range range,
                  struct pwi_run_result *result_out) {
  if (item->sender.id != sender.id || (task != 0 && item->task != task)) return false;
  *result_out = item->is;
  result_out->range = pawl_range_common(item->is.range, range);
  return !pawl_range_is_empty(result_out->range);
}

void pwi_results_write(struct pwi_writer *writer, const struct pwi_results *results, struct pwi_sender sender,
                       uint64_t task, struct pawl_range range) {
  struct pwi_run_result result;
  uint32_t count = 0;
  for (size_t i = 0; i < results->count; i++) count += is_of(&results->items[i], sender, task, range, &result);
  pwi_write_u32(writer, count);
  for (size_t i = 0; i < results->count; i++) {
    if (!is_of(&results->items[i], sender, task, range, &result)) continue;
    pwi_write_u64(writer, results->items[i].task);
    pwi_run_result_write(writer, &result);
  }
}

/* --- moving --------------------------------------------------------------------------------------------- */

size_t pwi_results_copy(struct pwi_writer *writer, const struct pwi_results *results, struct pawl_range keys) {
  size_t count = 0;
  for (size_t i = 0; i < results->count; i++) {
    const struct pwi_kept_result *item = &results->items[i];
    struct pwi_run_result result;
    if (!is_of(item, item->sender, item->task, keys, &result)) continue;
    if (writer) {
      pwi_write_u64(writer, item->sender.id);
      pwi_write_u64(writer, item->task);
      pwi_run_result_write(writer, &result);
    }
    count++;
  }
  return count;
}

pawl_status pwi_results_take(struct pwi_vector *vector, struct pwi_reader *reader) {
  size_t count = pwi_read_count(reader, PWI_KEPT_RESULT_SIZE);
  if (reader->status != PAWL_OK || (size_t)(reader->end - reader->at) != count * PWI_KEPT_RESULT_SIZE)
    return PAWL_CORRUPT;
  pawl_status status = pwi_results_reserve(&vector->results, count);
  for (size_t i = 0; i < count && status == PAWL_OK; i++) {
    struct pwi_kept_result item = {.sender.id = pwi_read_u64(reader)};
    item.task = pwi_read_u64(reader);
    pwi_run_result_read(reader, &item.is);
    if (reader->status != PAWL_OK || item.is.range.end > vector->place.size) return PAWL_CORRUPT;
    if (pwi_rangeset_intersects(&vector->clocks[PWI_TASKS].held, item.is.range)) return PAWL_INVALID;
    pwi_results_add(&vector->results, &item);
  }
  return status;
}
