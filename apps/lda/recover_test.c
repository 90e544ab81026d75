/* Taking over pieces: wherever in a sweep its worker died, the table is in the end what the topics on disk
 * say, and so are the marks.
 *
 * The worker that dies is this test itself: it writes topics and pushes rows as a sweep does (sweep.c), as
 * far as it is to come. */
#include "apps/lda/crew.h"
#include "apps/lda/inside.h"
#include "apps/lda/marks.h"
#include "apps/lda/piece_test.h"
#include "apps/common/scene_test.h"

/* Numbers of pieces are at the ends of columns; the last of them has no words. */
enum { TOPICS = 5, VOCABULARY = 24, COLUMNS = 3, WIDTH = TOPICS + COLUMNS, PIECES = 5, ALL_PIECES = 80 };
static const uint64_t numbers[PIECES] = {30, 31, 32, 63, 64};

static struct lda_worker worker;
static struct lda_piece pieces[PIECES];
static struct lda_random dice = {1};

static void open_piece(size_t p) {
  lda_piece_close(&pieces[p]);
  must(lda_piece_open(folder, numbers[p], 1, TOPICS, &pieces[p], worker.error));
}

/* A new table, and new pieces, which nobody has counted. */
static void begin_scene(void) {
  static struct documents documents;
  static int scene;
  struct pawl_vector_options options;
  char name[PAWL_NAME_MAX + 1];
  pawl_vector_close(worker.counts);
  worker.spec = (struct lda_spec){.method = PAWL_LDA_GIBBS, .topics = TOPICS, .pieces = ALL_PIECES};
  worker.sampler.words = VOCABULARY;
  snprintf(worker.spec.job, sizeof worker.spec.job, "scene-%d", scene++);
  lda_vector_name(&worker.spec, name);
  lda_vector_options(&worker.spec, VOCABULARY, &options);
  must(pawl_vector_create(session, name, &options, PATIENCE, &worker.counts));
  for (size_t p = 0; p < PIECES; p++) {
    unlink(pieces[p].path);
    draw_documents(&documents, p == PIECES - 1 ? 0 : 6, VOCABULARY - p, p + 1);
    must(lda_piece_make(folder, numbers[p], 1, 1, TOPICS, VOCABULARY, &documents.batch, worker.error));
    open_piece(p);
  }
}

static int begin(void **state) {
  for (size_t p = 0; p < PIECES; p++) pieces[p].file = -1;
  return open_cluster(state);
}

static int end(void **state) {
  for (size_t p = 0; p < PIECES; p++) lda_piece_close(&pieces[p]);
  pawl_vector_close(worker.counts);
  return close_cluster(state);
}

static void push_row(uint64_t key, const int32_t *change) {
  struct pawl_task *task;
  must(pawl_vector_push(worker.counts, pawl_at_keys(&key, 1), change, &task));
  must(pawl_task_finish(task, PATIENCE));
}

/* --- what is true --------------------------------------------------------------------------------------- */

static void expect_marks(int32_t *row, const struct lda_piece *piece) {
  if (piece->version & 1) lda_mark_flip(row, TOPICS, piece->number, 0);
}

/* The table is the histogram of what is on disk; marks are of the versions that are on disk. */
static void check_table(void) {
  static int32_t table[VOCABULARY + 1][WIDTH], expected[VOCABULARY + 1][WIDTH];
  struct pawl_task *task;
  memset(expected, 0, sizeof expected);
  for (size_t p = 0; p < PIECES; p++) {
    struct lda_piece *piece = &pieces[p];
    open_piece(p);
    must(lda_piece_load(piece, worker.error));
    for (uint32_t w = 0; w < piece->words; w++) {
      expect_marks(expected[piece->ids[w]], piece);
      for (uint32_t i = piece->starts[w]; i < piece->starts[w + 1]; i++) {
        if (piece->counted[i] == LDA_NONE) continue;
        expected[piece->ids[w]][piece->counted[i]]++;
        expected[VOCABULARY][piece->counted[i]]++;
      }
    }
    expect_marks(expected[VOCABULARY], piece);
    lda_piece_unload(piece);
  }
  must(pawl_vector_pull(worker.counts, pawl_at_range(0, VOCABULARY + 1), table, &task));
  must(pawl_task_finish(task, PATIENCE));
  for (size_t w = 0; w <= VOCABULARY; w++)
    for (size_t i = 0; i < WIDTH; i++)
      if (table[w][i] != expected[w][i])
        fail_msg("row %zu, column %zu: %d is stored, but it is %d", w, i, table[w][i], expected[w][i]);
}

/* --- one who dies --------------------------------------------------------------------------------------- */

/* The piece's part of one row, as a sweep pushes it; adds to the change of the totals. */
static void push_word(const struct lda_piece *piece, uint32_t w, int32_t *totals) {
  int32_t change[WIDTH] = {0};
  for (uint32_t i = piece->starts[w]; i < piece->starts[w + 1]; i++) {
    uint32_t before = piece->counted[i], now = lda_topic(piece->pairs[i]);
    if (before != LDA_NONE) change[before]--;
    if (now != LDA_NONE) change[now]++;
  }
  for (uint32_t k = 0; k < TOPICS; k++) totals[k] += change[k];
  lda_mark_flip(change, TOPICS, piece->number, piece->version);
  push_row(piece->ids[w], change);
}

static bool toss(uint32_t percent) { return lda_draw(&dice) % 100 < percent; }

enum how_far { ROWS, TOTALS, COMMITTED };

/* A sweep over one piece. Rows come to be pushed in any order: each is, with so many chances in a hundred.
 * Their topics are on disk before, and maybe those of others. What remains in `is_pushed` says which. */
static void sweep_by_hand(size_t p, uint32_t percent, enum how_far how_far, bool is_pushed[static VOCABULARY]) {
  struct lda_piece *piece = &pieces[p];
  int32_t totals[WIDTH] = {0};
  must(lda_piece_load(piece, worker.error));
  for (uint32_t i = 0; i < piece->tokens; i++)
    piece->pairs[i] = lda_pair((uint32_t)(lda_draw(&dice) % TOPICS), (uint32_t)(lda_draw(&dice) % TOPICS));
  for (uint32_t w = 0; w < piece->words; w++) {
    is_pushed[w] = how_far > ROWS || toss(percent);
    if (is_pushed[w] || toss(50)) must(lda_piece_write(piece, piece->starts[w], piece->starts[w + 1]));
    if (is_pushed[w]) push_word(piece, w, totals);
  }
  lda_mark_flip(totals, TOPICS, piece->number, piece->version);
  if (how_far >= TOTALS) push_row(VOCABULARY, totals);
  if (how_far == COMMITTED) must(lda_piece_commit(piece));
  lda_piece_unload(piece);
}

/* The first steps of a recovery that does not come to its end: old topics on disk for rows that were not
 * pushed, and then some marks. */
static void recover_in_part(size_t p, uint32_t percent, bool with_totals, const bool is_pushed[static VOCABULARY]) {
  struct lda_piece *piece = &pieces[p];
  int32_t totals[WIDTH] = {0};
  open_piece(p);
  must(lda_piece_load(piece, worker.error));
  uint32_t *next = malloc(4 * (size_t)piece->tokens);
  must(lda_piece_read_next(piece, 0, piece->tokens, next));
  for (uint32_t w = 0; w < piece->words; w++) {
    uint32_t from = piece->starts[w], to = piece->starts[w + 1];
    if (!is_pushed[w]) must(lda_piece_write(piece, from, to));
    for (uint32_t i = from; i < to && is_pushed[w]; i++) {
      if (piece->counted[i] != LDA_NONE) totals[piece->counted[i]]--;
      totals[lda_topic(next[i])]++;
    }
  }
  for (uint32_t w = 0; w < piece->words; w++) {
    int32_t change[WIDTH] = {0};
    if (is_pushed[w] || !(with_totals || toss(percent))) continue;
    lda_mark_flip(change, TOPICS, piece->number, piece->version);
    push_row(piece->ids[w], change);
  }
  lda_mark_flip(totals, TOPICS, piece->number, piece->version);
  if (with_totals) push_row(VOCABULARY, totals);
  free(next);
  lda_piece_unload(piece);
}

/* By somebody who has seen nothing of it but the file. */
static void recover(size_t p) {
  open_piece(p);
  must(lda_recover(&worker, &pieces[p]));
  assert_false(pieces[p].is_loaded);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static bool is_pushed[VOCABULARY];

static void count_all(void) {
  for (size_t p = 0; p < PIECES; p++) sweep_by_hand(p, 100, COMMITTED, is_pushed);
  check_table();
}

static void test_a_piece_with_nothing_under_way_stays_as_it_is(void **state) {
  (void)state;
  begin_scene();
  for (int turn = 0; turn < 3; turn++) {
    for (size_t p = 0; p + 1 < PIECES; p++) {
      uint64_t version = pieces[p].version;
      sweep_by_hand(p, 0, ROWS, is_pushed); /* topics are on disk, but no row was pushed */
      recover(p);
      assert_int_equal(pieces[p].version, version);
      check_table();
    }
    count_all();
  }
}

/* Words whose rows were pushed have the new topics, others the old. */
static void test_each_word_keeps_the_topics_that_were_counted(void **state) {
  (void)state;
  begin_scene();
  for (int turn = 0; turn < 4; turn++)
    for (size_t p = 0; p + 1 < PIECES; p++) {
      struct lda_piece *piece = &pieces[p];
      must(lda_piece_load(piece, worker.error));
      uint32_t *old = malloc(8 * (size_t)piece->tokens), *new = old + piece->tokens;
      memcpy(old, piece->pairs, 4 * (size_t)piece->tokens);
      do sweep_by_hand(p, 0, ROWS, is_pushed);
      while (toss(50)); /* some that came to nothing */
      sweep_by_hand(p, 50, ROWS, is_pushed);
      must(lda_piece_read_next(piece, 0, piece->tokens, new));
      recover(p);
      must(lda_piece_load(piece, worker.error));
      for (uint32_t w = 0; w < piece->words; w++)
        for (uint32_t i = piece->starts[w]; i < piece->starts[w + 1]; i++)
          assert_int_equal(piece->pairs[i], is_pushed[w] ? new[i] : old[i]);
      free(old);
      check_table();
    }
}

static void test_a_death_after_some_rows_is_mended(void **state) {
  (void)state;
  begin_scene();
  for (uint32_t turn = 0; turn < 12; turn++) { /* from version 0 on: also of tokens that were never counted */
    for (size_t p = 0; p < PIECES; p++) sweep_by_hand(p, 10 + turn * 8, ROWS, is_pushed);
    for (size_t p = 0; p < PIECES; p++) recover(p);
    check_table();
    if (turn % 4 == 3) count_all();
  }
}

static void test_a_death_before_or_after_the_totals_is_mended(void **state) {
  (void)state;
  begin_scene();
  for (int turn = 0; turn < 4; turn++)
    for (size_t p = 0; p + 1 < PIECES; p++) {
      uint64_t version = pieces[p].version;
      sweep_by_hand(p, 100, turn % 2 ? TOTALS : ROWS, is_pushed);
      recover(p);
      assert_int_equal(pieces[p].version, version + 1);
      check_table();
      recover(p); /* there is nothing more to do */
      assert_int_equal(pieces[p].version, version + 1);
      check_table();
    }
}

static void test_a_recovery_that_is_interrupted_is_done_again(void **state) {
  (void)state;
  begin_scene();
  for (uint32_t turn = 0; turn < 12; turn++)
    for (size_t p = 0; p + 1 < PIECES; p++) {
      sweep_by_hand(p, 50, ROWS, is_pushed);
      recover_in_part(p, turn * 10, turn >= 10, is_pushed);
      recover(p);
      check_table();
    }
}

/* It has no row but that of the totals, which all pieces of a block push together. */
static void test_a_piece_without_words_follows_the_mark_of_the_totals(void **state) {
  (void)state;
  begin_scene();
  for (uint64_t turn = 0; turn < 4; turn++) {
    recover(PIECES - 1); /* nothing was under way */
    assert_int_equal(pieces[PIECES - 1].version, turn);
    sweep_by_hand(PIECES - 1, 0, TOTALS, is_pushed);
    recover(PIECES - 1);
    assert_int_equal(pieces[PIECES - 1].version, turn + 1);
    check_table();
  }
}

/* Topics of the version that was under way are believed no more than those of the one that was loaded. */
static void test_damaged_topics_are_refused_before_they_are_counted(void **state) {
  (void)state;
  static const uint32_t wrong[] = {TOPICS, WIDTH, 0xfffe};
  begin_scene();
  count_all();
  for (size_t i = 0; i < 3; i++) {
    struct lda_piece *piece = &pieces[i];
    uint32_t good;
    sweep_by_hand(i, 100, ROWS, is_pushed);
    must(lda_piece_load(piece, worker.error));
    must(lda_piece_read_next(piece, 3, 4, &good));
    piece->pairs[3] = lda_pair(i == 0 ? wrong[i] : 0, i > 0 ? wrong[i] : 0);
    if (i == 2) piece->pairs[3] = lda_pair(wrong[i], wrong[i]);
    must(lda_piece_write(piece, 3, 4));
    open_piece(i);
    *worker.error = 0;
    assert_int_equal(lda_recover(&worker, piece), PAWL_CORRUPT);
    assert_non_null(strstr(worker.error, "damaged"));
    assert_false(piece->is_loaded);
    must(lda_piece_load(piece, worker.error));
    piece->pairs[3] = good;
    must(lda_piece_write(piece, 3, 4));
    recover(i); /* nothing had been done */
    check_table();
  }
}

/* What was mended can be gone on with. */
static void test_a_sweep_goes_on_with_what_was_recovered(void **state) {
  (void)state;
  struct lda_piece *own[PIECES];
  begin_scene();
  count_all();
  for (size_t p = 0; p < PIECES; p++) {
    sweep_by_hand(p, 60, p == 1 ? TOTALS : ROWS, is_pushed);
    recover(p);
    own[p] = &pieces[p];
  }
  check_table();
  assert_true(lda_sampler_init(&worker.sampler, TOPICS));
  worker.sampler.words = VOCABULARY;
  worker.sampler.beta = 0.01;
  for (uint32_t k = 0; k < TOPICS; k++) worker.sampler.alpha[k] = 0.1;
  worker.totals = calloc(WIDTH, sizeof *worker.totals);
  must(lda_crew_create(session, 2, TOPICS, WIDTH, lda_slice_rows(WIDTH * 4), 1000, &worker.crew));
  for (uint64_t sweep = 0; sweep < 3; sweep++) {
    must(lda_blocks_create(own, PIECES, UINT64_MAX / 2, UINT64_MAX, &worker.blocks, &worker.block_count));
    must(lda_block_load(worker.blocks, WIDTH * sizeof(int32_t), worker.error));
    worker.sampler.sweep = sweep;
    must(lda_sweep_block(&worker, worker.blocks));
    lda_blocks_destroy(worker.blocks, worker.block_count);
    check_table();
  }
  lda_crew_destroy(worker.crew);
  lda_sampler_fini(&worker.sampler);
  free(worker.totals);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_piece_with_nothing_under_way_stays_as_it_is),
      cmocka_unit_test(test_each_word_keeps_the_topics_that_were_counted),
      cmocka_unit_test(test_a_death_after_some_rows_is_mended),
      cmocka_unit_test(test_a_death_before_or_after_the_totals_is_mended),
      cmocka_unit_test(test_a_recovery_that_is_interrupted_is_done_again),
      cmocka_unit_test(test_a_sweep_goes_on_with_what_was_recovered),
      cmocka_unit_test(test_a_piece_without_words_follows_the_mark_of_the_totals),
      cmocka_unit_test(test_damaged_topics_are_refused_before_they_are_counted),
  };
  return cmocka_run_group_tests_name("apps.lda.recover", tests, begin, end);
}
