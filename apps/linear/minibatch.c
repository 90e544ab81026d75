/* Some rows of a batch: see minibatch.h. */
#include "apps/linear/minibatch.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

void linear_minibatch_fini(struct linear_minibatch *minibatch) {
  linear_index_fini(&minibatch->index);
  apps_free(minibatch->keys);
  apps_free(minibatch->weights);
  apps_free(minibatch->gradient);
  apps_free(minibatch->numbers);
  memset(minibatch, 0, sizeof *minibatch);
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static pawl_status make_room(struct linear_minibatch *minibatch, size_t features) {
  if (features <= minibatch->room) return PAWL_OK;
  size_t room = 2 * features;
  uint64_t *keys = apps_resize(minibatch->keys, room * sizeof *keys);
  if (keys) minibatch->keys = keys;
  double *weights = apps_resize(minibatch->weights, room * sizeof *weights);
  if (weights) minibatch->weights = weights;
  double *gradient = apps_resize(minibatch->gradient, room * sizeof *gradient);
  if (gradient) minibatch->gradient = gradient;
  if (!keys || !weights || !gradient) return PAWL_NO_MEMORY;
  minibatch->room = room;
  return PAWL_OK;
}

pawl_status linear_minibatch_fill(struct linear_minibatch *minibatch, const struct pawl_batch *batch, size_t begin,
                                  size_t end) {
  size_t first = (size_t)batch->starts[begin], last = (size_t)batch->starts[end];
  pawl_status status = PAWL_OK;
  if (minibatch->index.slots)
    linear_index_clear(&minibatch->index);
  else
    status =
        /* a hash table, as a minibatch is small whatever its ids are */
        linear_index_init(&minibatch->index, UINT64_MAX, 0);
  for (size_t k = first; k < last && !status; k++) status = linear_index_count(&minibatch->index, batch->ids[k], 1);
  size_t features = minibatch->index.count;
  if (!status) status = make_room(minibatch, features + 1);
  if (!status && last - first > minibatch->entry_room) {
    uint32_t *numbers = apps_resize(minibatch->numbers, 2 * (last - first) * sizeof *numbers);
    if (!numbers) return PAWL_NO_MEMORY;
    minibatch->numbers = numbers;
    minibatch->entry_room = 2 * (last - first);
  }
  if (status) return status;
  if (features) memcpy(minibatch->keys, minibatch->index.ids, features * sizeof *minibatch->keys);
  qsort(minibatch->keys, features, sizeof *minibatch->keys, by_value);
  /* the counts are no longer needed: reuse them for the place of each id in the sorted list */
  for (size_t j = 0; j < features; j++)
    minibatch->index.counts[linear_index_find(&minibatch->index, minibatch->keys[j])] = j;
  for (size_t k = first; k < last; k++)
    minibatch->numbers[k - first] =
        (uint32_t)minibatch->index.counts[linear_index_find(&minibatch->index, batch->ids[k])];
  memset(minibatch->gradient, 0, (features + 1) * sizeof *minibatch->gradient);
  minibatch->bias_gradient = 0;
  minibatch->batch = batch;
  minibatch->begin = begin;
  minibatch->rows = end - begin;
  minibatch->features = features;
  return PAWL_OK;
}

double linear_minibatch_score(const struct linear_minibatch *minibatch, size_t row) {
  const struct pawl_batch *batch = minibatch->batch;
  uint64_t first = batch->starts[minibatch->begin];
  double z = minibatch->bias;
  for (uint64_t k = batch->starts[minibatch->begin + row]; k < batch->starts[minibatch->begin + row + 1]; k++)
    z += minibatch->weights[minibatch->numbers[k - first]] * (batch->values ? (double)batch->values[k] : 1);
  return z;
}

void linear_minibatch_add(struct linear_minibatch *minibatch, size_t row, double by) {
  const struct pawl_batch *batch = minibatch->batch;
  uint64_t first = batch->starts[minibatch->begin];
  for (uint64_t k = batch->starts[minibatch->begin + row]; k < batch->starts[minibatch->begin + row + 1]; k++)
    minibatch->gradient[minibatch->numbers[k - first]] += by * (batch->values ? (double)batch->values[k] : 1);
  minibatch->bias_gradient += by;
}
