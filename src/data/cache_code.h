/* The layout of caches: head, index and blocks, as bytes and back. docs/data.md is its specification. Pure, but for
 * memory. */
#ifndef PWI_DATA_CACHE_CODE_H
#define PWI_DATA_CACHE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "data/formats/columns.h"

#define PWI_CACHE_MAGIC "pawlrows"
#define PWI_CACHE_VERSION 1u
#define PWI_CACHE_HEAD 64u
#define PWI_CACHE_ENTRY 72u /* of the index */
#define PWI_CACHE_TAIL 8u   /* behind the index: its checksum */

enum { PWI_CACHE_BINARY = 1, PWI_CACHE_UNIT_ROWS = 2 };

struct pwi_cache_head {
  uint32_t flags;
  uint64_t rows, entries, max_id, blocks;
  uint64_t index_at;
};

enum {
  PWI_BLOCK_WIDE = 1,    /* ids take 8 bytes, instead of 4 */
  PWI_BLOCK_VALUES = 2,  /* they are not all 1 */
  PWI_BLOCK_WEIGHTS = 4, /* nor are these */
};

/* A block as the index has it: rows, and behind them the same by columns. */
struct pwi_cache_block {
  uint64_t at, rows_size, columns_size;
  uint64_t rows_sum, columns_sum; /* XXH3-64 of either part */
  uint64_t flags;
  uint64_t rows, entries, columns; /* columns: distinct ids */
};

void pwi_cache_put_head(const struct pwi_cache_head *head, unsigned char *bytes);
PAWL_MUST_USE pawl_status pwi_cache_get_head(const unsigned char *bytes, uint64_t file_size,
                                             struct pwi_cache_head *head_out, const char **why_out);

void pwi_cache_put_block(const struct pwi_cache_block *block, unsigned char *bytes);

/* The index with its checksum. Every block then lies between head and index, and its sizes are those of what it says
 * it holds. */
PAWL_MUST_USE pawl_status pwi_cache_get_index(const unsigned char *bytes, const struct pwi_cache_head *head,
                                              struct pwi_cache_block *blocks, const char **why_out);

/* Writes all but `at` of a block, and its bytes, which the caller frees with pwi_free: rows_size and then
 * columns_size of them. */
PAWL_MUST_USE pawl_status pwi_cache_encode(const struct pawl_batch *batch, struct pwi_cache_block *block_out,
                                           unsigned char **bytes_out);

/* Either part of a block, of as many bytes as it says. PAWL_CORRUPT: `*why_out` says what; PAWL_NO_MEMORY. The batch
 * is empty. */
PAWL_MUST_USE pawl_status pwi_cache_decode_rows(const struct pwi_cache_block *block, const unsigned char *bytes,
                                                struct pwi_batch *batch, const char **why_out);
PAWL_MUST_USE pawl_status pwi_cache_decode_columns(const struct pwi_cache_block *block, const unsigned char *bytes,
                                                   struct pwi_columns *columns, const char **why_out);

#endif
