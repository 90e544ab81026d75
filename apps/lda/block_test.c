/* Blocks: words of several pieces in one order, cut into slices, and pieces cut into blocks by the memory
 * they take. */
#include "apps/lda/block.h"
#include "apps/lda/piece_test.h"

enum { TOPICS = 4, PIECES = 6 };

static char folder[] = "/tmp/pawl-block-XXXXXX", error[PAWL_LDA_TEXT];
static struct lda_piece stored[PIECES], *pieces[PIECES];
static struct lda_block *blocks;
static size_t block_count;

static void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_text(status), error);
}

/* One of them is empty; each has other words. */
static int begin(void **state) {
  (void)state;
  static struct documents documents;
  if (!mkdtemp(folder)) return -1;
  for (uint64_t p = 0; p < PIECES; p++) {
    draw_documents(&documents, p == 4 ? 0 : 6 + p, 20 + 11 * p, p + 1);
    must(lda_piece_make(folder, p, 1, 1, TOPICS, 0, &documents.batch, error));
    must(lda_piece_open(folder, p, 1, TOPICS, &stored[p], error));
    pieces[p] = &stored[p];
  }
  return 0;
}

static int end(void **state) {
  (void)state;
  char command[300];
  for (size_t p = 0; p < PIECES; p++) lda_piece_close(&stored[p]);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static int destroy(void **state) {
  (void)state;
  lda_blocks_destroy(blocks, block_count);
  blocks = NULL;
  block_count = 0;
  return 0;
}

static void cut(uint64_t memory) {
  destroy(NULL);
  must(lda_blocks_create(pieces, PIECES, memory, UINT64_MAX, &blocks, &block_count));
}

/* Row sizes that give slices of `rows` rows. */
static size_t row_bytes_of(size_t rows) {
  size_t bytes = (size_t)(256 << 10) / rows;
  assert_int_equal(lda_slice_rows(bytes), rows);
  return bytes;
}

/* --- blocks --------------------------------------------------------------------------------------------- */

/* One after the other, all of them, and what they say of themselves is the sum of their pieces. */
static void check_blocks(uint64_t memory) {
  size_t at = 0;
  for (size_t b = 0; b < block_count; b++) {
    uint64_t bytes = 0, tokens = 0;
    uint32_t longest = 0;
    assert_ptr_equal(blocks[b].pieces, pieces + at);
    assert_in_range(blocks[b].piece_count, 1, PIECES);
    for (size_t p = 0; p < blocks[b].piece_count; p++, at++) {
      bytes += lda_piece_bytes(pieces[at]);
      tokens += pieces[at]->tokens;
      if (pieces[at]->longest > longest) longest = pieces[at]->longest;
      assert_false(pieces[at]->is_loaded);
    }
    assert_int_equal(blocks[b].tokens, tokens);
    assert_int_equal(blocks[b].longest, longest);
    if (blocks[b].piece_count > 1) assert_true(bytes <= memory);
    /* the next one had no place */
    if (at < PIECES) assert_true(bytes + lda_piece_bytes(pieces[at]) > memory);
  }
  assert_int_equal(at, PIECES);
}

static void test_blocks_are_cut_by_memory(void **state) {
  (void)state;
  uint64_t all = 0;
  for (size_t p = 0; p < PIECES; p++) all += lda_piece_bytes(pieces[p]);
  for (uint64_t memory = 0; memory <= all + 8; memory += 8) {
    cut(memory);
    check_blocks(memory);
  }
  assert_int_equal(block_count, 1);
  cut(all - 1);
  assert_int_equal(block_count, 2);
  cut(0);
  assert_int_equal(block_count, PIECES);
  cut(UINT64_MAX / 2);
  assert_int_equal(block_count, 1);
}

static void test_no_pieces_are_no_blocks(void **state) {
  (void)state;
  must(lda_blocks_create(pieces, 0, 100, UINT64_MAX, &blocks, &block_count));
  assert_int_equal(block_count, 0);
}

/* --- the order of words --------------------------------------------------------------------------------- */

/* By word and then by piece, each word of each piece once. */
static void check_runs(const struct lda_block *block) {
  size_t expected = 0, key = 0;
  for (size_t p = 0; p < block->piece_count; p++) expected += block->pieces[p]->words;
  assert_int_equal(block->run_count, expected);
  for (size_t i = 0; i < block->run_count; i++) {
    const struct lda_run *run = &block->runs[i], *before = run - 1;
    assert_true(run->piece < block->piece_count && run->index < block->pieces[run->piece]->words);
    assert_int_equal(block->pieces[run->piece]->ids[run->index], run->word);
    if (i > 0) assert_true(before->word < run->word || (before->word == run->word && before->piece < run->piece));
    if (i == 0 || before->word != run->word) assert_int_equal(block->keys[key++], run->word);
  }
  assert_int_equal(block->key_count, key);
}

static void check_slices(const struct lda_block *block, size_t rows) {
  size_t key = 0, run = 0;
  for (size_t i = 0; i < block->slice_count; i++) {
    const struct lda_slice *slice = &block->slices[i];
    assert_true(slice->key == key && slice->run == run && slice->list == NULL);
    assert_in_range(slice->keys, 1, rows);
    if (i + 1 < block->slice_count) assert_int_equal(slice->keys, rows);
    for (size_t j = 0; j < slice->runs; j++) {
      assert_true(block->runs[run + j].word >= block->keys[key]);
      assert_true(block->runs[run + j].word <= block->keys[key + slice->keys - 1]);
    }
    key += slice->keys;
    run += slice->runs;
  }
  assert_true(key == block->key_count && run == block->run_count);
}

static void test_runs_are_sorted_and_slices_cover_every_word_once(void **state) {
  (void)state;
  static const size_t rows[] = {16, 17, 32, 64, 1024};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (uint64_t memory = 0; memory <= 16384; memory += 4096) {
      cut(memory);
      for (size_t b = 0; b < block_count; b++) {
        must(lda_block_load(&blocks[b], row_bytes_of(rows[i]), error));
        assert_true(blocks[b].is_arranged);
        check_runs(&blocks[b]);
        check_slices(&blocks[b], rows[i]);
      }
    }
}

static void test_rows_of_any_size_leave_some_rows_to_a_slice(void **state) {
  (void)state;
  assert_int_equal(lda_slice_rows(4), (256 << 10) / 4);
  assert_int_equal(lda_slice_rows(16 << 10), 16);
  assert_int_equal(lda_slice_rows((PAWL_LDA_TOPICS_MAX + 1000) * sizeof(int32_t)), 16);
  assert_int_equal(lda_slice_rows(SIZE_MAX), 16);
}

static void test_a_block_of_an_empty_piece_has_nothing_to_ask_for(void **state) {
  (void)state;
  must(lda_blocks_create(pieces + 4, 1, 100, UINT64_MAX, &blocks, &block_count));
  must(lda_block_load(blocks, 64, error));
  assert_true(blocks->is_arranged && blocks->slice_count == 0 && blocks->run_count == 0 && blocks->key_count == 0);
}

static void test_what_is_unloaded_can_be_loaded_again(void **state) {
  (void)state;
  cut(UINT64_MAX / 2);
  uint64_t before = lda_block_bytes(blocks), loaded = 0;
  for (int turn = 0; turn < 3; turn++) {
    must(lda_block_load(blocks, 64, error));
    must(lda_block_load(blocks, 64, error)); /* it is */
    if (turn == 0) loaded = lda_block_bytes(blocks);
    assert_true(lda_block_bytes(blocks) == loaded && loaded > before);
    check_runs(blocks);
    lda_block_unload(blocks);
    for (size_t p = 0; p < PIECES; p++) assert_false(pieces[p]->is_loaded);
    assert_int_equal(lda_block_bytes(blocks), before);
  }
}

static void test_a_piece_that_cannot_be_read_leaves_nothing_loaded(void **state) {
  (void)state;
  cut(UINT64_MAX / 2);
  uint32_t wrong = UINT32_MAX, right;
  assert_int_equal(pread(pieces[3]->file, &right, 4, 4096), 4); /* the first word's number */
  assert_int_equal(pwrite(pieces[3]->file, &wrong, 4, 4096), 4);
  assert_int_equal(lda_block_load(blocks, 64, error), PAWL_CORRUPT);
  assert_non_null(strstr(error, "piece-000003"));
  assert_false(blocks->is_arranged);
  for (size_t p = 0; p < PIECES; p++) assert_false(pieces[p]->is_loaded);
  assert_int_equal(pwrite(pieces[3]->file, &right, 4, 4096), 4);
  must(lda_block_load(blocks, 64, error));
}

#define WITH_BLOCKS(test) cmocka_unit_test_teardown(test, destroy)

static void test_a_small_corpus_is_worked_on_in_parts(void **state) {
  (void)state;
  assert_true(lda_block_tokens(100000000, 4) == UINT64_MAX);
  assert_true(lda_block_tokens(3000000, 1) == UINT64_MAX);
  assert_int_equal(lda_block_tokens(80000, 1), 80000 / 16 + 1);
  assert_int_equal(lda_block_tokens(80000, 4), 80000 / 64 + 1);
  assert_int_equal(lda_block_tokens(1000000, 2), 1000000 / 22 + 1);
  assert_int_equal(lda_block_tokens(0, 0), 1);
  destroy(NULL);
  must(lda_blocks_create(pieces, PIECES, UINT64_MAX / 2, 1, &blocks, &block_count));
  assert_int_equal(block_count, PIECES); /* one piece at least in each */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_BLOCKS(test_blocks_are_cut_by_memory),
      WITH_BLOCKS(test_no_pieces_are_no_blocks),
      WITH_BLOCKS(test_runs_are_sorted_and_slices_cover_every_word_once),
      WITH_BLOCKS(test_rows_of_any_size_leave_some_rows_to_a_slice),
      WITH_BLOCKS(test_a_block_of_an_empty_piece_has_nothing_to_ask_for),
      WITH_BLOCKS(test_what_is_unloaded_can_be_loaded_again),
      WITH_BLOCKS(test_a_piece_that_cannot_be_read_leaves_nothing_loaded),
      cmocka_unit_test(test_a_small_corpus_is_worked_on_in_parts),
  };
  return cmocka_run_group_tests_name("apps.lda.block", tests, begin, end);
}
