/* Exports vectors: writes the rows of a checkpoint to their places in arrays.
 *
 * The place of a row of a dense vector is its key. In a sparse vector it is the rank of its key among all
 * keys, so a first pass collects the keys. Rows of a chunk that are also neighbours in the array are
 * written in one call. */
#include "checkpoint/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/search.h"
#include "ring/place.h"
#include "checkpoint/array_file.h"

#define KEYS_AT_A_TIME 8192

struct exporting {
  const struct pwi_saved *saved;
  const struct pwi_manifest_vector *vector;
  struct pwi_problem *problem;
  uint64_t *keys; /* stored keys; sorted after the first pass */
  size_t count, room;
  bool rising; /* whether the keys collected so far increase */
  struct pwi_file *file;
  struct pwi_array values;
};

static bool is_sparse(const struct exporting *exporting) { return exporting->vector->is.layout == PAWL_LAYOUT_SPARSE; }

/* --- the keys of a sparse vector ------------------------------------------------------------------------ */

static pawl_status collect_chunk(void *context, const struct pwi_chunk *chunk) {
  struct exporting *exporting = context;
  if (!PWI_GROW(exporting->keys, exporting->room, exporting->count + chunk->count)) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < chunk->count; i++) {
    uint64_t key = pwi_chunk_key(chunk, i);
    if (exporting->count > 0 && key <= exporting->keys[exporting->count - 1]) exporting->rising = false;
    exporting->keys[exporting->count++] = key;
  }
  return PAWL_OK;
}

static int compare_keys(const void *left, const void *right) {
  const uint64_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

static pawl_status collect(struct exporting *exporting) {
  exporting->rising = true;
  pawl_status status =
      pwi_saved_walk(exporting->saved, exporting->vector, collect_chunk, exporting, exporting->problem);
  if (status != PAWL_OK || exporting->rising) return status;
  size_t kept = 0;
  qsort(exporting->keys, exporting->count, sizeof *exporting->keys, compare_keys);
  for (size_t i = 0; i < exporting->count; i++)
    if (kept == 0 || exporting->keys[kept - 1] != exporting->keys[i]) exporting->keys[kept++] = exporting->keys[i];
  exporting->count = kept;
  return PAWL_OK;
}

/* Writes keys as users know them. */
static pawl_status write_keys(const struct exporting *exporting, struct pwi_file *file, const struct pwi_array *array) {
  unsigned char *some = pwi_alloc(KEYS_AT_A_TIME * sizeof(uint64_t));
  if (!some) return PAWL_NO_MEMORY;
  bool mixed = exporting->vector->is.placement == PAWL_PLACE_MIXED;
  pawl_status status = PAWL_OK;
  for (size_t at = 0, step; at < exporting->count && status == PAWL_OK; at += step) {
    step = exporting->count - at < KEYS_AT_A_TIME ? exporting->count - at : KEYS_AT_A_TIME;
    for (size_t i = 0; i < step; i++) {
      uint64_t key = exporting->keys[at + i];
      pwi_put_u64(some + i * sizeof key, mixed ? pwi_place_unmix(key) : key);
    }
    status = pwi_array_write(file, array, at, step, some);
  }
  pwi_free(some);
  return status;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

/* How many rows of the chunk, starting at number `at`, have consecutive ranks that start with `rank`. */
static size_t run_length(const struct exporting *exporting, const struct pwi_chunk *chunk, size_t at, size_t rank) {
  size_t length = 0;
  while (at + length < chunk->count && rank + length < exporting->count &&
         exporting->keys[rank + length] == pwi_chunk_key(chunk, at + length))
    length++;
  return length;
}

static pawl_status write_sparse(const struct exporting *exporting, const struct pwi_chunk *chunk) {
  size_t rank = 0;
  for (size_t at = 0, length; at < chunk->count; at += length, rank += length) {
    uint64_t key = pwi_chunk_key(chunk, at);
    rank += pwi_first_not_below(exporting->keys + rank, exporting->count - rank, key);
    length = run_length(exporting, chunk, at, rank);
    if (length == 0) return PAWL_CORRUPT; /* the file has changed since the first pass */
    pawl_status status =
        pwi_array_write(exporting->file, &exporting->values, rank, length, chunk->values + at * chunk->row_bytes);
    if (status != PAWL_OK) return status;
  }
  return PAWL_OK;
}

static pawl_status write_dense(const struct exporting *exporting, const struct pwi_chunk *chunk) {
  for (size_t at = 0, length; at < chunk->count; at += length) {
    uint64_t key = pwi_chunk_key(chunk, at);
    for (length = 1; at + length < chunk->count && pwi_chunk_key(chunk, at + length) == key + length;) length++;
    pawl_status status =
        pwi_array_write(exporting->file, &exporting->values, key, length, chunk->values + at * chunk->row_bytes);
    if (status != PAWL_OK) return status;
  }
  return PAWL_OK;
}

static pawl_status write_chunk(void *context, const struct pwi_chunk *chunk) {
  const struct exporting *exporting = context;
  return is_sparse(exporting) ? write_sparse(exporting, chunk) : write_dense(exporting, chunk);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static pawl_status start(struct exporting *exporting, const struct pwi_saved *saved,
                         const struct pwi_manifest_vector *vector, struct pwi_problem *problem) {
  *exporting = (struct exporting){.saved = saved, .vector = vector, .problem = problem};
  problem->text[0] = '\0';
  pawl_status status = is_sparse(exporting) ? collect(exporting) : PAWL_OK;
  exporting->values = (struct pwi_array){
      .type = (enum pwi_scalar)vector->is.type,
      .rows = is_sparse(exporting) ? exporting->count : vector->is.size,
      .width = pwi_options_stored(&vector->is),
  };
  return status;
}

static pawl_status write_rows(struct exporting *exporting, struct pwi_file *file) {
  exporting->file = file;
  pawl_status status = pwi_saved_walk(exporting->saved, exporting->vector, write_chunk, exporting, exporting->problem);
  return status == PAWL_OK ? pwi_file_sync(file) : status;
}

static struct pwi_array keys_array(const struct exporting *exporting) {
  return (struct pwi_array){.type = PWI_SCALAR_U64, .rows = exporting->count};
}

pawl_status pwi_saved_export_npy(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                 struct pwi_file *values, struct pwi_file *keys, struct pwi_problem *problem) {
  struct exporting exporting;
  pawl_status status = start(&exporting, saved, vector, problem);
  struct pwi_array array = keys_array(&exporting);
  if (status == PAWL_OK && is_sparse(&exporting)) {
    status = pwi_npy_begin(keys, &array);
    if (status == PAWL_OK) status = write_keys(&exporting, keys, &array);
    if (status == PAWL_OK) status = pwi_file_sync(keys);
  }
  if (status == PAWL_OK) status = pwi_npy_begin(values, &exporting.values);
  if (status == PAWL_OK) status = write_rows(&exporting, values);
  pwi_free(exporting.keys);
  return status;
}

pawl_status pwi_saved_export_safetensors(const struct pwi_saved *saved, const struct pwi_manifest_vector *vector,
                                         struct pwi_file *file, struct pwi_problem *problem) {
  struct exporting exporting;
  const struct pwi_manifest *manifest = pwi_saved_newest(saved);
  char cluster[20], keys_name[PAWL_NAME_MAX + 8], values_name[PAWL_NAME_MAX + 8];
  const struct pwi_export_metadata metadata[] = {
      {"pawl.cluster", cluster}, {"pawl.checkpoint", manifest->name}, {"pawl.vector", vector->name}};
  pawl_status status = start(&exporting, saved, vector, problem);
  bool sparse = is_sparse(&exporting);
  struct pwi_array arrays[] = {keys_array(&exporting), exporting.values};
  snprintf(cluster, sizeof cluster, "%016" PRIx64, manifest->cluster);
  snprintf(keys_name, sizeof keys_name, "%s.keys", vector->name);
  snprintf(values_name, sizeof values_name, sparse ? "%s.values" : "%s", vector->name);
  arrays[0].name = keys_name;
  arrays[1].name = values_name;
  if (status == PAWL_OK)
    status =
        pwi_safetensors_begin(file, arrays + !sparse, sparse ? 2 : 1, metadata, sizeof metadata / sizeof *metadata);
  if (status == PAWL_OK && sparse) status = write_keys(&exporting, file, &arrays[0]);
  exporting.values = arrays[1];
  if (status == PAWL_OK) status = write_rows(&exporting, file);
  pwi_free(exporting.keys);
  return status;
}
