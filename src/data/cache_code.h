/* Encodes and decodes the parts of a cache file: head, index and blocks. docs/data.md specifies the
 * layout. Pure, but for memory. */
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
#define PWI_CACHE_ENTRY 72u /* bytes of one index entry */
#define PWI_CACHE_TAIL 8u   /* bytes of the checksum behind the index */

enum { PWI_CACHE_BINARY = 1, PWI_CACHE_UNIT_ROWS = 2 };

struct pwi_cache_head {
  uint32_t flags;
  uint64_t rows, entries, max_id, blocks;
  uint64_t index_at;
};

enum {
  PWI_BLOCK_WIDE = 1,    /* ids take 8 bytes instead of 4 */
  PWI_BLOCK_VALUES = 2,  /* the block has values; without the flag all are 1 */
  PWI_BLOCK_WEIGHTS = 4, /* the block has weights; without the flag all are 1 */
};

/* An index entry. A block holds its rows and, behind them, the same entries by columns. */
struct pwi_cache_block {
  uint64_t at, rows_size, columns_size;
  uint64_t rows_sum, columns_sum; /* XXH3-64 of each part */
  uint64_t flags;
  uint64_t rows, entries, columns; /* `columns` counts distinct ids */
};

void pwi_cache_put_head(const struct pwi_cache_head *head, unsigned char *bytes);
PAWL_MUST_USE pawl_status pwi_cache_get_head(const unsigned char *bytes, uint64_t file_size,
                                             struct pwi_cache_head *head_out, const char **why_out);

void pwi_cache_put_block(const struct pwi_cache_block *block, unsigned char *bytes);

/* Reads the index and verifies its checksum. Guarantees that every block lies between head and index, and
 * that its sizes match its counts. */
PAWL_MUST_USE pawl_status pwi_cache_get_index(const unsigned char *bytes, const struct pwi_cache_head *head,
                                              struct pwi_cache_block *blocks, const char **why_out);

/* Encodes a batch: fills every field of the block but `at`, and returns rows_size + columns_size bytes,
 * which the caller frees with pwi_free. */
PAWL_MUST_USE pawl_status pwi_cache_encode(const struct pawl_batch *batch, struct pwi_cache_block *block_out,
                                           unsigned char **bytes_out);

/* Decode one part of a block, from exactly as many bytes as the block states. The batch must be empty.
 * PAWL_CORRUPT: `*why_out` says why; PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_cache_decode_rows(const struct pwi_cache_block *block, const unsigned char *bytes,
                                                struct pwi_batch *batch, const char **why_out);
PAWL_MUST_USE pawl_status pwi_cache_decode_columns(const struct pwi_cache_block *block, const unsigned char *bytes,
                                                   struct pwi_columns *columns, const char **why_out);

#endif
