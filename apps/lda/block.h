/* A block: pieces that are in memory together, and their words in one order, so that each row of the table is
 * asked for once. */
#ifndef LDA_BLOCK_H
#define LDA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/lda/piece.h"

/* A word in one piece: its index among the piece's words. */
struct lda_run {
  uint32_t word, piece, index;
};

/* Rows that are pulled and pushed together. */
struct lda_slice {
  size_t key, keys; /* first, count: of `keys` */
  size_t run, runs;
  struct pawl_keys *list; /* as the servers remember it; NULL: the keys are sent each time */
};

struct lda_block {
  struct lda_piece **pieces; /* not the block's own */
  size_t piece_count;
  uint64_t tokens;
  uint32_t longest; /* document, in tokens */
  bool is_arranged;
  struct lda_run *runs; /* by word, and then by piece */
  size_t run_count;
  uint64_t *keys; /* words, rising */
  size_t key_count;
  struct lda_slice *slices;
  size_t slice_count;
};

/* Cuts pieces into blocks of at most `memory` bytes and `tokens`, but of one piece at least. Nothing is
 * loaded. The blocks are freed with lda_blocks_destroy. */
pawl_status lda_blocks_create(struct lda_piece **pieces, size_t count, uint64_t memory, uint64_t tokens,
                              struct lda_block **blocks_out, size_t *count_out);

/* How many tokens a block should have at most, of a corpus of `tokens` that `workers` share. All tokens of a
 * block are sampled with the counts that the others of it had half a sweep before, and so are those that
 * other workers have in hand. In a small corpus, where counts are small, so many at once are drawn to the
 * topics that they have; so a part of it at a time. A large one does not mind, and large blocks ask for each
 * row less often. */
uint64_t lda_block_tokens(uint64_t tokens, uint32_t workers);
void lda_blocks_destroy(struct lda_block *blocks, size_t count); /* unloads all pieces */

size_t lda_slice_rows(size_t row_bytes); /* that a slice has at most */

/* Loads the pieces. `row_bytes` is the size of a row, from which slices are cut. */
pawl_status lda_block_load(struct lda_block *block, size_t row_bytes, char error[PAWL_LDA_TEXT]);
void lda_block_unload(struct lda_block *block);
uint64_t lda_block_bytes(const struct lda_block *block);

#endif
