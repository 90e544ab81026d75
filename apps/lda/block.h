/* A block: pieces that are in memory at the same time, with their words in one order, so that each row of the
 * table is pulled once. */
#ifndef LDA_BLOCK_H
#define LDA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/lda.h>
#include <pawl/pawl.h>

#include "apps/lda/piece.h"

/* The occurrence of a word in one piece: its index among the piece's words. */
struct lda_run {
  uint32_t word, piece, index;
};

/* Rows that are pulled and pushed in one call. */
struct lda_slice {
  size_t key, keys; /* first of its keys in `keys`, and their number */
  size_t run, runs;
  struct pawl_keys *list; /* prepared key list, which the servers remember; NULL: the keys are sent each time */
};

struct lda_block {
  struct lda_piece **pieces; /* borrowed */
  size_t piece_count;
  uint64_t tokens;
  uint32_t longest; /* tokens of the longest document */
  bool is_arranged;
  struct lda_run *runs; /* sorted by word, then by piece */
  size_t run_count;
  uint64_t *keys; /* word numbers, ascending */
  size_t key_count;
  struct lda_slice *slices;
  size_t slice_count;
};

/* Groups pieces into blocks of at most `memory` bytes and `tokens` tokens, with at least one piece per block.
 * Loads nothing. Free the blocks with lda_blocks_destroy. */
pawl_status lda_blocks_create(struct lda_piece **pieces, size_t count, uint64_t memory, uint64_t tokens,
                              struct lda_block **blocks_out, size_t *count_out);

/* The maximum of tokens of a block, for a corpus of `tokens` that `workers` share. All tokens of a block are
 * sampled with counts of the others that are half a sweep old, as are the tokens of other workers. In a small
 * corpus counts are small, and sampling many tokens at once pulls them to the topics they already have. So
 * only a part of a small corpus is sampled at a time. A large corpus is not affected, and large blocks pull
 * each row less often. */
uint64_t lda_block_tokens(uint64_t tokens, uint32_t workers);
void lda_blocks_destroy(struct lda_block *blocks, size_t count); /* unloads all pieces */

size_t lda_slice_rows(size_t row_bytes); /* maximum of rows of a slice */

/* Loads the pieces. `row_bytes`, the size of a row, determines the size of slices. */
pawl_status lda_block_load(struct lda_block *block, size_t row_bytes, char error[PAWL_LDA_TEXT]);
void lda_block_unload(struct lda_block *block);
uint64_t lda_block_bytes(const struct lda_block *block);

#endif
