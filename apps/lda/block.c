/* Blocks: see block.h. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/block.h"

enum { SLICE_BYTES = 256 << 10, SLICE_ROWS_LEAST = 16 };

/* determines the number of parts of a small corpus: this number over the tokens of the corpus */
#define SMALL_TOKENS UINT64_C(12000000)
/* limits of the number of parts; a corpus that would have fewer is not divided */
enum { PARTS_LEAST = 4, PARTS_MOST = 16 };

uint64_t lda_block_tokens(uint64_t tokens, uint32_t workers) {
  uint64_t parts = SMALL_TOKENS / (tokens + 1);
  if (parts < PARTS_LEAST) return UINT64_MAX;
  return tokens / ((parts < PARTS_MOST ? parts : PARTS_MOST) * (workers > 0 ? workers : 1)) + 1;
}

pawl_status lda_blocks_create(struct lda_piece **pieces, size_t count, uint64_t memory, uint64_t tokens,
                              struct lda_block **blocks_out, size_t *count_out) {
  struct lda_block *blocks = apps_alloc_zero(count + 1, sizeof *blocks);
  size_t made = 0;
  uint64_t bytes = 0;
  if (!blocks) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    uint64_t more = lda_piece_bytes(pieces[i]);
    if (made == 0 || bytes + more > memory || blocks[made - 1].tokens + pieces[i]->tokens > tokens) {
      blocks[made++].pieces = pieces + i;
      bytes = 0;
    }
    struct lda_block *block = &blocks[made - 1];
    block->piece_count++;
    block->tokens += pieces[i]->tokens;
    if (pieces[i]->longest > block->longest) block->longest = pieces[i]->longest;
    bytes += more;
  }
  *blocks_out = blocks;
  *count_out = made;
  return PAWL_OK;
}

static void forget_arrangement(struct lda_block *block) {
  for (size_t i = 0; i < block->slice_count; i++) pawl_keys_destroy(block->slices[i].list);
  apps_free(block->runs);
  apps_free(block->keys);
  apps_free(block->slices);
  block->runs = NULL;
  block->keys = NULL;
  block->slices = NULL;
  block->run_count = block->key_count = block->slice_count = 0;
  block->is_arranged = false;
}

void lda_block_unload(struct lda_block *block) {
  for (size_t i = 0; i < block->piece_count; i++) lda_piece_unload(block->pieces[i]);
  forget_arrangement(block);
}

void lda_blocks_destroy(struct lda_block *blocks, size_t count) {
  for (size_t i = 0; i < count; i++) lda_block_unload(&blocks[i]);
  apps_free(blocks);
}

uint64_t lda_block_bytes(const struct lda_block *block) {
  uint64_t bytes = block->run_count * sizeof *block->runs + block->key_count * sizeof *block->keys;
  for (size_t i = 0; i < block->piece_count; i++) bytes += lda_piece_bytes(block->pieces[i]);
  return bytes;
}

/* --- the order of words --------------------------------------------------------------------------------- */

/* Counting sort: `next[w]` is the position of the next run of word w. */
static void sort_runs(struct lda_block *block, uint64_t words, uint32_t *next) {
  uint32_t sum = 0;
  for (size_t p = 0; p < block->piece_count; p++)
    for (uint32_t i = 0; i < block->pieces[p]->words; i++) next[block->pieces[p]->ids[i]]++;
  for (uint64_t w = 0; w < words; w++) {
    uint32_t count = next[w];
    if (count > 0) block->keys[block->key_count++] = w;
    next[w] = sum;
    sum += count;
  }
  for (size_t p = 0; p < block->piece_count; p++)
    for (uint32_t i = 0; i < block->pieces[p]->words; i++) {
      uint32_t word = block->pieces[p]->ids[i];
      block->runs[next[word]++] = (struct lda_run){word, (uint32_t)p, i};
    }
}

static void cut_slices(struct lda_block *block, size_t rows) {
  size_t run = 0;
  for (size_t key = 0; key < block->key_count; key += rows) {
    struct lda_slice *slice = &block->slices[block->slice_count++];
    size_t count = block->key_count - key < rows ? block->key_count - key : rows;
    uint64_t last = block->keys[key + count - 1];
    *slice = (struct lda_slice){.key = key, .keys = count, .run = run};
    while (run < block->run_count && block->runs[run].word <= last) run++;
    slice->runs = run - slice->run;
  }
}

size_t lda_slice_rows(size_t row_bytes) {
  size_t rows = SLICE_BYTES / row_bytes;
  return rows < SLICE_ROWS_LEAST ? SLICE_ROWS_LEAST : rows;
}

static pawl_status arrange(struct lda_block *block, size_t row_bytes) {
  uint64_t words = 0;
  size_t rows = lda_slice_rows(row_bytes);
  for (size_t p = 0; p < block->piece_count; p++) {
    block->run_count += block->pieces[p]->words;
    if (block->pieces[p]->words > 0 && block->pieces[p]->last_word >= words)
      words = (uint64_t)block->pieces[p]->last_word + 1;
  }
  uint64_t most = words < block->run_count ? words : block->run_count;
  uint32_t *next = apps_alloc_zero(words + 1, sizeof *next);
  block->runs = apps_alloc((block->run_count + 1) * sizeof *block->runs);
  block->keys = apps_alloc((most + 1) * sizeof *block->keys);
  block->slices = apps_alloc_zero(most / rows + 2, sizeof *block->slices);
  if (next && block->runs && block->keys && block->slices && block->run_count < UINT32_MAX) {
    sort_runs(block, words, next);
    cut_slices(block, rows);
    block->is_arranged = true;
  }
  apps_free(next);
  return block->is_arranged ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status lda_block_load(struct lda_block *block, size_t row_bytes, char error[PAWL_LDA_TEXT]) {
  if (block->is_arranged) return PAWL_OK;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < block->piece_count && !status; i++) status = lda_piece_load(block->pieces[i], error);
  if (!status) status = arrange(block, row_bytes);
  if (status) lda_block_unload(block);
  return status;
}
