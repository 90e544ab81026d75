/* Bundles: rows of pushes that are summed outside the table. */
#include "shard/bundle.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/search.h"
#include "store/kernels.h"

/* --- one bundle ----------------------------------------------------------------------------------------- */

static void destroy(struct pwi_bundle *bundle) {
  *bundle->account -= bundle->counted;
  pwi_free(bundle->keys);
  pwi_pages_fini(&bundle->sum);
  pwi_pages_fini(&bundle->encoded);
  pwi_free(bundle);
}

void pwi_bundles_destroy(struct pwi_bundle *first) {
  for (struct pwi_bundle *next; first; first = next) {
    next = first->next;
    destroy(first);
  }
}

static pawl_status copy_keys(struct pwi_bundle *bundle, const struct pwi_request *request) {
  size_t rows = (size_t)request->terms.rows, length = request->encoded_as.length;
  if (request->terms.keys != PWI_KEYS_LIST) return PAWL_OK;
  bundle->keys = pwi_resize_array(NULL, rows + 1, sizeof *bundle->keys);
  if (!bundle->keys) return PAWL_NO_MEMORY;
  pawl_status status = pwi_pages_grow(&bundle->encoded, length + 1);
  if (status) return status;
  if (rows > 0) memcpy(bundle->keys, request->keys, rows * sizeof *bundle->keys);
  if (length > 0) memcpy(bundle->encoded.memory, request->encoded, length);
  bundle->encoded_as = request->encoded_as;
  return PAWL_OK;
}

/* Overhead of a bundle: two sets of pages, the struct, and the caller's data. */
#define BESIDE ((size_t)8 << 10)

/* Bytes of memory that the bundle needs; SIZE_MAX on overflow. */
static size_t measure(const struct pwi_request *request, size_t bytes) {
  size_t sum = BESIDE, keys = 0;
  bool has_list = request->terms.keys == PWI_KEYS_LIST;
  if (has_list && !pwi_mul_size((size_t)request->terms.rows, sizeof(uint64_t), &keys)) return SIZE_MAX;
  bool fits = pwi_add_size(sum, bytes, &sum) && pwi_add_size(sum, keys, &sum) &&
              pwi_add_size(sum, has_list ? request->encoded_as.length : 0, &sum);
  return fits ? sum : SIZE_MAX;
}

/* Waiting pushes count against the memory cap as rows and lists do. Lists are removed first to make room. */
static bool has_room(struct pwi_shard *shard, size_t bytes, const struct pwi_request *request) {
  uint64_t most = shard->config.memory_max, used = shard->row_bytes + shard->aggregate_bytes;
  if (used > most || bytes > most - used) return false;
  if (shard->lists.bytes <= most - used - bytes) return true;
  const struct pwi_list *own = request->terms.keys == PWI_KEYS_RANGE
                                   ? NULL
                                   : pwi_lists_find(&shard->lists, request->terms.vector, request->signature);
  pwi_lists_drop(&shard->lists, (struct pwi_vector_id){0}, own);
  return shard->lists.bytes <= most - used - bytes;
}

pawl_status pwi_bundle_create(struct pwi_shard *shard, const struct pwi_request *request, size_t bytes,
                              struct pwi_bundle **bundle_out) {
  size_t counted = measure(request, bytes);
  if (!has_room(shard, counted, request)) return PAWL_NODE_FULL;
  struct pwi_bundle *bundle = pwi_alloc_zero(1, sizeof *bundle);
  if (!bundle) return PAWL_NO_MEMORY;
  bundle->account = &shard->aggregate_bytes;
  bundle->counted = counted;
  shard->aggregate_bytes += counted;
  bundle->terms = request->terms;
  bundle->signature = request->signature;
  bundle->value_type = request->value_type;
  bundle->bytes = bytes;
  pawl_status status = copy_keys(bundle, request);
  if (!status) status = pwi_pages_grow(&bundle->sum, bytes + 1);
  if (status) {
    destroy(bundle);
    return status;
  }
  char *place = bundle->sum.memory;
  for (size_t i = 0; i < request->value_parts; i++) {
    if (request->values[i].iov_len > 0) memcpy(place, request->values[i].iov_base, request->values[i].iov_len);
    place += request->values[i].iov_len;
  }
  *bundle_out = bundle;
  return PAWL_OK;
}

static bool same_range(struct pawl_range a, struct pawl_range b) { return a.begin == b.begin && a.end == b.end; }

bool pwi_bundle_matches(const struct pwi_bundle *bundle, const struct pwi_request *request) {
  const struct pwi_terms *ours = &bundle->terms, *terms = &request->terms;
  if (ours->keys != terms->keys || ours->rows != terms->rows || !same_range(ours->range, terms->range) ||
      !same_range(ours->claim, terms->claim) || bundle->value_type != request->value_type)
    return false;
  if (terms->keys == PWI_KEYS_SIGNED) return bundle->signature == request->signature;
  if (terms->keys == PWI_KEYS_RANGE) return true;
  return terms->rows == 0 || memcmp(bundle->keys, request->keys, (size_t)terms->rows * sizeof *request->keys) == 0;
}

/* The parts of the values may end anywhere, also within a value. */
void pwi_bundle_add(struct pwi_bundle *bundle, const struct pwi_request *request) {
  size_t size = pwi_scalar_size((enum pwi_scalar)request->value_type), at = 0, held = 0;
  pwi_apply_array *add = pwi_row_kernels_best()->array[PWI_APPLY_ADD][request->value_type - 1];
  char *sum = bundle->sum.memory, cut[sizeof(uint64_t)] = {0};
  assert(size <= sizeof cut);
  for (size_t i = 0; i < request->value_parts; i++) {
    const char *bytes = request->values[i].iov_base;
    size_t left = request->values[i].iov_len;
    if (held > 0) {
      size_t lacking = size - held, taken = left < lacking ? left : lacking;
      memcpy(cut + held, bytes, taken);
      held += taken;
      bytes += taken;
      left -= taken;
      if (held < size) continue;
      add(sum + at, cut, 1);
      at += size;
    }
    add(sum + at, bytes, left / size);
    at += left / size * size;
    held = left % size;
    memcpy(cut, bytes + (left - held), held);
  }
}

struct pwi_request pwi_bundle_request(const struct pwi_bundle *bundle, struct iovec *values) {
  *values = (struct iovec){bundle->sum.memory, bundle->bytes};
  return (struct pwi_request){.terms = bundle->terms,
                              .keys = bundle->keys,
                              .signature = bundle->signature,
                              .values = values,
                              .value_parts = bundle->bytes > 0 ? 1 : 0,
                              .value_type = bundle->value_type,
                              .encoded = bundle->encoded.memory,
                              .encoded_as = bundle->encoded_as};
}

/* --- several bundles ------------------------------------------------------------------------------------ */

/* The remaining rows of a bundle. */
struct cursor {
  const uint64_t *keys; /* NULL: they are first, first + 1, … */
  uint64_t first;
  size_t at, end;
  const char *values;
};

void pwi_union_fini(struct pwi_union *all) {
  pwi_pages_fini(&all->keys);
  pwi_pages_fini(&all->sum);
  all->rows = 0;
}

static uint64_t key_of(const struct cursor *cursor) {
  return cursor->keys ? cursor->keys[cursor->at] : cursor->first + cursor->at;
}

static pawl_status aim(struct pwi_shard *shard, const struct pwi_bundle *bundle, struct pawl_range range,
                       struct cursor *cursor) {
  const struct pwi_terms *terms = &bundle->terms;
  size_t rows = (size_t)terms->rows;
  range = pawl_range_common(range, terms->claim);
  *cursor = (struct cursor){.keys = bundle->keys, .first = terms->range.begin, .values = bundle->sum.memory};
  if (pawl_range_is_empty(range)) return PAWL_OK;
  if (terms->keys == PWI_KEYS_RANGE) {
    struct pawl_range part = pawl_range_common(terms->range, range);
    if (pawl_range_is_empty(part)) return PAWL_OK;
    cursor->at = (size_t)(part.begin - terms->range.begin);
    cursor->end = (size_t)(part.end - terms->range.begin);
    return PAWL_OK;
  }
  if (terms->keys == PWI_KEYS_SIGNED) {
    const struct pwi_list *list = pwi_lists_find(&shard->lists, terms->vector, bundle->signature);
    if (!list || list->count != rows) return PAWL_CORRUPT;
    cursor->keys = list->keys;
  }
  cursor->at = pwi_first_not_below(cursor->keys, rows, range.begin);
  cursor->end = pwi_first_not_below(cursor->keys, rows, range.end);
  return PAWL_OK;
}

static bool lowest(const struct cursor *cursors, size_t count, uint64_t *key_out) {
  bool found = false;
  for (size_t i = 0; i < count; i++) {
    if (cursors[i].at == cursors[i].end) continue;
    uint64_t key = key_of(&cursors[i]);
    if (!found || key < *key_out) *key_out = key;
    found = true;
  }
  return found;
}

static void take_row(struct cursor *cursors, size_t count, uint64_t key, size_t row_bytes, size_t width,
                     pwi_apply_array *add, char *row) {
  bool is_first = true;
  for (size_t i = 0; i < count; i++) {
    struct cursor *cursor = &cursors[i];
    if (cursor->at == cursor->end || key_of(cursor) != key) continue;
    const char *values = cursor->values + cursor->at++ * row_bytes;
    if (is_first)
      memcpy(row, values, row_bytes);
    else
      add(row, values, width);
    is_first = false;
  }
}

static size_t merge(struct cursor *cursors, size_t count, size_t row_bytes, uint8_t type, uint64_t *keys, char *sum) {
  size_t rows = 0, width = row_bytes / pwi_scalar_size((enum pwi_scalar)type);
  pwi_apply_array *add = pwi_row_kernels_best()->array[PWI_APPLY_ADD][type - 1];
  for (uint64_t key = 0; lowest(cursors, count, &key); rows++) {
    keys[rows] = key;
    take_row(cursors, count, key, row_bytes, width, add, sum + rows * row_bytes);
  }
  return rows;
}

static pawl_status make_room(struct pwi_union *all, size_t rows, size_t row_bytes) {
  size_t bytes, key_bytes;
  if (!pwi_mul_size(rows, row_bytes, &bytes) || !pwi_mul_size(rows, sizeof(uint64_t), &key_bytes))
    return PAWL_NO_MEMORY;
  pawl_status status = pwi_pages_grow(&all->keys, key_bytes + 1);
  return status ? status : pwi_pages_grow(&all->sum, bytes + 1);
}

pawl_status pwi_bundles_unite(struct pwi_shard *shard, const struct pwi_bundle *first, struct pawl_range range,
                              size_t row_bytes, struct pwi_union *all) {
  size_t count = 0, used = 0, rows = 0;
  for (const struct pwi_bundle *it = first; it; it = it->next) count++;
  struct cursor *cursors = pwi_resize_array(NULL, count + 1, sizeof *cursors);
  if (!cursors) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_OK;
  for (const struct pwi_bundle *it = first; it && !status; it = it->next) {
    status = aim(shard, it, range, &cursors[used]);
    size_t more = status ? 0 : cursors[used].end - cursors[used].at;
    if (more > 0) used++; /* skip bundles that are used up */
    rows += more;
  }
  if (!status) status = make_room(all, rows, row_bytes);
  if (!status) all->rows = merge(cursors, used, row_bytes, first->value_type, all->keys.memory, all->sum.memory);
  pwi_free(cursors);
  return status;
}
