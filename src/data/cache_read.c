#include "data/cache.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/cache_code.h"
#include "data/stream.h"

struct pwi_cache {
  const char *path;
  struct pwi_cache_head head;
  struct pwi_cache_block *blocks;
};

/* Reads exactly this many bytes. */
static pawl_status read_exactly(int descriptor, const char *path, uint64_t at, void *buffer, size_t size,
                                struct pwi_fault *fault) {
  size_t got;
  pawl_status status = pwi_read_at(descriptor, path, at, buffer, size, &got, fault);
  if (!status && got < size) status = pwi_fault(fault, PAWL_TRUNCATED, "%s: the cache is truncated", path);
  return status;
}

pawl_status pwi_cache_is(const char *path, bool *is_out, struct pwi_fault *fault) {
  char magic[8];
  int descriptor;
  uint64_t size;
  size_t got = 0;
  pawl_status status = pwi_file_descriptor(path, &descriptor, &size, fault);
  if (status) return status;
  status = pwi_read_at(descriptor, path, 0, magic, sizeof magic, &got, fault);
  close(descriptor);
  if (!status) *is_out = got == sizeof magic && memcmp(magic, PWI_CACHE_MAGIC, sizeof magic) == 0;
  return status;
}

static pawl_status read_index(struct pwi_cache *cache, int descriptor, struct pwi_fault *fault) {
  const char *why = "";
  size_t size, count = (size_t)cache->head.blocks;
  if (!pwi_mul_size(count, PWI_CACHE_ENTRY, &size) || !pwi_add_size(size, PWI_CACHE_TAIL, &size))
    return pwi_fault_plain(fault, PAWL_NO_MEMORY, cache->path);
  unsigned char *bytes = pwi_alloc(size);
  cache->blocks = pwi_alloc_zero(count ? count : 1, sizeof *cache->blocks);
  pawl_status status = PAWL_OK;
  if (!bytes || !cache->blocks) status = pwi_fault_plain(fault, PAWL_NO_MEMORY, cache->path);
  if (!status) status = read_exactly(descriptor, cache->path, cache->head.index_at, bytes, size, fault);
  if (!status) {
    status = pwi_cache_get_index(bytes, &cache->head, cache->blocks, &why);
    if (status) pwi_fault(fault, status, "%s: %s", cache->path, why);
  }
  pwi_free(bytes);
  return status;
}

static pawl_status read_all(struct pwi_cache *cache, struct pwi_fault *fault) {
  unsigned char bytes[PWI_CACHE_HEAD];
  const char *why = "";
  int descriptor;
  uint64_t size;
  pawl_status status = pwi_file_descriptor(cache->path, &descriptor, &size, fault);
  if (status) return status;
  status = read_exactly(descriptor, cache->path, 0, bytes, sizeof bytes, fault);
  if (!status) {
    status = pwi_cache_get_head(bytes, size, &cache->head, &why);
    if (status) pwi_fault(fault, status, "%s: %s", cache->path, why);
  }
  if (!status) status = read_index(cache, descriptor, fault);
  close(descriptor);
  return status;
}

pawl_status pwi_cache_open(const char *path, struct pwi_cache **cache_out, struct pwi_fault *fault) {
  struct pwi_cache *cache = pwi_alloc_zero(1, sizeof *cache);
  if (!cache) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  cache->path = path;
  pawl_status status = read_all(cache, fault);
  if (status)
    pwi_cache_close(cache);
  else
    *cache_out = cache;
  return status;
}

void pwi_cache_close(struct pwi_cache *cache) {
  if (!cache) return;
  pwi_free(cache->blocks);
  pwi_free(cache);
}

size_t pwi_cache_blocks(const struct pwi_cache *cache) { return (size_t)cache->head.blocks; }

void pwi_cache_counts(const struct pwi_cache *cache, uint64_t *rows_out, uint64_t *entries_out, uint64_t *max_id_out) {
  *rows_out = cache->head.rows;
  *entries_out = cache->head.entries;
  *max_id_out = cache->head.max_id;
}

bool pwi_cache_is_binary(const struct pwi_cache *cache) { return cache->head.flags & PWI_CACHE_BINARY; }

bool pwi_cache_has_unit_rows(const struct pwi_cache *cache) { return cache->head.flags & PWI_CACHE_UNIT_ROWS; }

/* --- blocks --------------------------------------------------------------------------------------------- */

/* The bytes of a block; the caller frees them. */
static pawl_status fetch(const struct pwi_cache *cache, uint64_t at, uint64_t size, unsigned char **bytes_out,
                         struct pwi_fault *fault) {
  int descriptor;
  uint64_t file_size;
  unsigned char *bytes = pwi_alloc((size_t)size);
  if (!bytes) return pwi_fault_plain(fault, PAWL_NO_MEMORY, cache->path);
  pawl_status status = pwi_file_descriptor(cache->path, &descriptor, &file_size, fault);
  if (!status) {
    status = read_exactly(descriptor, cache->path, at, bytes, (size_t)size, fault);
    close(descriptor);
  }
  if (status)
    pwi_free(bytes);
  else
    *bytes_out = bytes;
  return status;
}

static pawl_status explain(const struct pwi_cache *cache, pawl_status status, size_t number, const char *why,
                           struct pwi_fault *fault) {
  if (status == PAWL_CORRUPT) return pwi_fault(fault, status, "%s: block %zu: %s", cache->path, number, why);
  return status ? pwi_fault_plain(fault, status, cache->path) : PAWL_OK;
}

pawl_status pwi_cache_read(const struct pwi_cache *cache, size_t block, struct pwi_batch *batch,
                           struct pwi_fault *fault) {
  const struct pwi_cache_block *is = &cache->blocks[block];
  const char *why = "";
  unsigned char *bytes = NULL;
  if (cache->head.blocks == 0) return PAWL_OK;
  pawl_status status = fetch(cache, is->at, is->rows_size, &bytes, fault);
  if (status) return status;
  status = pwi_cache_decode_rows(is, bytes, batch, &why);
  pwi_free(bytes);
  return explain(cache, status, block, why, fault);
}

pawl_status pwi_cache_read_columns(const struct pwi_cache *cache, size_t block, struct pwi_columns **columns_out,
                                   struct pwi_fault *fault) {
  const struct pwi_cache_block *is = &cache->blocks[block];
  const char *why = "";
  unsigned char *bytes = NULL;
  struct pwi_columns *columns = NULL;
  pawl_status status =
      pwi_columns_create((size_t)is->columns, (size_t)is->entries, is->flags & PWI_BLOCK_VALUES, &columns);
  if (status) return pwi_fault_plain(fault, status, cache->path);
  if (cache->head.blocks > 0) {
    status = fetch(cache, is->at + is->rows_size, is->columns_size, &bytes, fault);
    if (!status) {
      status = pwi_cache_decode_columns(is, bytes, columns, &why);
      status = explain(cache, status, block, why, fault);
      pwi_free(bytes);
    }
  }
  if (status)
    pwi_columns_destroy(columns);
  else
    *columns_out = columns;
  return status;
}
