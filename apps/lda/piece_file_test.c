/* Files of pieces: they hold the tokens of the documents, the next reader sees the version that was written
 * last, and damage is detected. */
#include <fcntl.h>
#include <math.h>

#include "apps/lda/piece_test.h"

enum { TOPICS = 9, CORPUS = 77, HEAD = 4096 };

static char folder[] = "/tmp/pawl-piece-XXXXXX", error[PAWL_LDA_TEXT];
static struct documents documents;
static struct lda_piece piece = {.file = -1};

static int begin(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

/* No test finds the file of the one before. */
static int remove_it(void **state) {
  (void)state;
  char path[300];
  lda_piece_close(&piece);
  snprintf(path, sizeof path, "%s/piece-000003", folder);
  unlink(path);
  return 0;
}

static void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_text(status), error);
}

static pawl_status open_again(void) {
  lda_piece_close(&piece);
  return lda_piece_open(folder, 3, CORPUS, TOPICS, &piece, error);
}

static pawl_status make(uint64_t words) {
  remove_it(NULL);
  return lda_piece_make(folder, 3, CORPUS, 1, TOPICS, words, &documents.batch, error);
}

static void make_and_load(void) {
  must(make(0));
  must(open_again());
  must(lda_piece_load(&piece, error));
}

/* --- tokens --------------------------------------------------------------------------------------------- */

static uint32_t word_of(uint32_t token) {
  uint32_t w = 0;
  while (piece.starts[w + 1] <= token) w++;
  return piece.ids[w];
}

/* Every document's tokens are those of its row, and each token of a word belongs to one document. */
static void check_tokens(void) {
  const struct pawl_batch *batch = &documents.batch;
  uint32_t document = 0, seen = 0, longest = 0;
  bool *is_seen = calloc(piece.tokens + 1, sizeof *is_seen);
  for (size_t row = 0; row < batch->rows; row++) {
    if (batch->starts[row] == batch->starts[row + 1]) continue;
    uint32_t at = piece.documents_at[document], first = at;
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++)
      for (uint32_t n = 0; n < (batch->values ? (uint32_t)batch->values[i] : 1); n++, at++, seen++) {
        assert_int_equal(word_of(piece.at[at]), batch->ids[i] - 1);
        assert_false(is_seen[piece.at[at]]);
        is_seen[piece.at[at]] = true;
      }
    assert_int_equal(piece.documents_at[++document], at);
    if (at - first > longest) longest = at - first;
  }
  free(is_seen);
  assert_int_equal(piece.documents, document);
  assert_int_equal(piece.empty, batch->rows - document);
  assert_int_equal(piece.tokens, seen);
  assert_int_equal(piece.longest, longest);
  for (uint32_t i = 0; i < piece.tokens; i++) {
    assert_int_equal(piece.pairs[i], lda_pair(LDA_NONE, LDA_NONE));
    assert_int_equal(piece.counted[i], LDA_NONE);
  }
}

static void test_a_piece_has_the_tokens_of_its_documents(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    draw_documents(&documents, 10 + seed, 5 + seed * 2, seed);
    documents.batch.unknown = seed;
    make_and_load();
    check_tokens();
    assert_true(piece.version == 0 && piece.generation == 1 && piece.number == 3 && piece.unknown == seed);
    assert_int_equal(piece.last_word, piece.ids[piece.words - 1]);
  }
}

static void test_entries_without_values_are_one_token_each(void **state) {
  (void)state;
  draw_documents(&documents, 12, 20, 4);
  documents.batch.values = NULL;
  make_and_load();
  check_tokens();
  assert_int_equal(piece.tokens, documents.batch.entries);
}

static void test_documents_without_words_are_counted_but_not_kept(void **state) {
  (void)state;
  clear_documents(&documents);
  make_and_load();
  check_tokens();
  for (int i = 0; i < 4; i++) end_document(&documents);
  make_and_load();
  check_tokens();
  assert_true(piece.empty == 4 && piece.documents == 0 && piece.tokens == 0 && piece.words == 0);
  must(lda_piece_write(&piece, 0, 0));
  must(lda_piece_commit(&piece));
  must(open_again());
  assert_int_equal(piece.version, 1);
}

static void test_a_word_may_fill_a_document(void **state) {
  (void)state;
  clear_documents(&documents);
  add_word(&documents, 2, 50000);
  end_document(&documents);
  make_and_load();
  check_tokens();
  assert_true(piece.longest == 50000 && piece.words == 1 && piece.last_word == 1);
}

/* --- what is refused ------------------------------------------------------------------------------------ */

static void is_refused(uint64_t id, float value, uint64_t words, pawl_status status, const char *sentence) {
  clear_documents(&documents);
  add_word(&documents, 1, 2);
  add_word(&documents, id, value);
  end_document(&documents);
  *error = 0;
  assert_int_equal(make(words), status);
  if (!strstr(error, sentence) || !strstr(error, "piece-000003")) fail_msg("'%s' is not in '%s'", sentence, error);
  assert_int_equal(open_again(), PAWL_NOT_FOUND);
}

static void test_counts_that_are_none_are_refused(void **state) {
  (void)state;
  static const float wrong[] = {0, -1, 0.5f, 1.5f, 2 * (float)PAWL_COUNT_MAX, 1e30f, NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    is_refused(2, wrong[i], 0, PAWL_CORRUPT, "expected a whole number from 1 to 16777216");
}

static void test_words_beyond_the_vocabulary_are_refused(void **state) {
  (void)state;
  is_refused(5, 1, 4, PAWL_MISMATCH, "a document has word 5, but the vocabulary ends with 4");
  is_refused(UINT64_MAX, 1, 4, PAWL_MISMATCH, "but the vocabulary ends with 4");
  is_refused(0, 1, 4, PAWL_MISMATCH, "a document has word 0");
  is_refused(LDA_WORDS_MAX + 1, 1, 0, PAWL_TOO_LARGE, "2^27 words");
  is_refused(UINT64_MAX, 1, 0, PAWL_TOO_LARGE, "2^27 words");
}

static void test_too_many_tokens_are_refused(void **state) {
  (void)state;
  clear_documents(&documents);
  for (uint64_t w = 1; w <= 128; w++) {
    add_word(&documents, w, (float)PAWL_COUNT_MAX);
    end_document(&documents);
  }
  assert_int_equal(make(0), PAWL_TOO_LARGE);
  assert_non_null(strstr(error, "smaller pieces"));
  clear_documents(&documents);
  add_word(&documents, 1, (float)PAWL_COUNT_MAX);
  add_word(&documents, 2, 1);
  end_document(&documents);
  assert_int_equal(make(0), PAWL_TOO_LARGE);
  assert_non_null(strstr(error, "split it"));
}

static void test_a_directory_that_is_not_there_is_named(void **state) {
  (void)state;
  draw_documents(&documents, 3, 5, 1);
  assert_int_equal(lda_piece_make("/nowhere/at/all", 3, CORPUS, 1, TOPICS, 0, &documents.batch, error), PAWL_NOT_FOUND);
  assert_non_null(strstr(error, "/nowhere/at/all/piece-000003"));
  assert_int_equal(lda_piece_open("/nowhere/at/all", 3, CORPUS, TOPICS, &piece, error), PAWL_NOT_FOUND);
}

static void test_a_piece_of_another_run_is_refused(void **state) {
  (void)state;
  draw_documents(&documents, 6, 5, 1);
  make_and_load();
  lda_piece_close(&piece);
  assert_int_equal(lda_piece_open(folder, 3, CORPUS + 1, TOPICS, &piece, error), PAWL_MISMATCH);
  assert_int_equal(lda_piece_open(folder, 3, CORPUS, TOPICS + 1, &piece, error), PAWL_MISMATCH);
  assert_int_equal(piece.file, -1);
}

/* --- versions ------------------------------------------------------------------------------------------- */

static uint32_t pair_of(uint32_t token, uint64_t version) {
  return lda_pair((uint32_t)(token * 7 + version) % TOPICS, (uint32_t)(token + version * 3) % TOPICS);
}

static void write_version(uint64_t version) {
  for (uint32_t i = 0; i < piece.tokens; i++) piece.pairs[i] = pair_of(i, version);
  must(lda_piece_write(&piece, 0, piece.tokens / 3));
  must(lda_piece_write(&piece, piece.tokens / 3, piece.tokens));
}

static void check_version(uint64_t version) {
  assert_int_equal(piece.version, version);
  for (uint32_t i = 0; i < piece.tokens; i++) {
    assert_int_equal(piece.pairs[i], pair_of(i, version));
    assert_int_equal(piece.counted[i], lda_topic(pair_of(i, version)));
  }
}

static void begin_versions(uint64_t versions) {
  draw_documents(&documents, 15, 12, 9);
  make_and_load();
  for (uint64_t version = 1; version <= versions; version++) {
    write_version(version);
    must(lda_piece_commit(&piece));
  }
}

static void test_whoever_opens_it_next_sees_the_version_that_was_committed(void **state) {
  (void)state;
  begin_versions(0);
  for (uint64_t version = 1; version <= 7; version++) {
    write_version(version);
    must(lda_piece_commit(&piece));
    must(open_again());
    must(lda_piece_load(&piece, error));
    check_version(version);
  }
}

static void test_what_was_not_committed_does_not_count_but_can_be_read(void **state) {
  (void)state;
  begin_versions(4);
  write_version(5);
  must(open_again());
  must(lda_piece_load(&piece, error));
  check_version(4);
  uint32_t *next = malloc(piece.tokens * sizeof *next);
  must(lda_piece_read_next(&piece, 2, piece.tokens, next));
  for (uint32_t i = 2; i < piece.tokens; i++) assert_int_equal(next[i - 2], pair_of(i, 5));
  free(next);
}

/* --- generations ---------------------------------------------------------------------------------------- */

static void check_adopted(uint64_t generation, uint64_t version) {
  assert_true(piece.generation == generation && piece.version == 0 && !piece.is_loaded);
  must(open_again());
  assert_true(piece.generation == generation && piece.version == 0);
  must(lda_piece_load(&piece, error));
  for (uint32_t i = 0; i < piece.tokens; i++) {
    uint32_t topic = version == 0 ? LDA_NONE : lda_topic(pair_of(i, version));
    assert_int_equal(piece.pairs[i], lda_pair(LDA_NONE, topic));
    assert_int_equal(piece.counted[i], LDA_NONE);
  }
  lda_piece_unload(&piece);
}

static void test_what_is_adopted_keeps_its_topics(void **state) {
  (void)state;
  for (uint64_t version = 0; version <= 5; version++) {
    begin_versions(version);
    write_version(version + 1); /* under way when the training ended */
    must(open_again());
    must(lda_piece_adopt(&piece, 2, error));
    check_adopted(2, version);
    must(lda_piece_adopt(&piece, 2, error)); /* it is already */
    check_adopted(2, version);
    must(lda_piece_adopt(&piece, 3, error)); /* of a training that was ended before it sampled anything */
    check_adopted(3, version);
  }
}

/* The head is written last: if it was not, or not all topics were, it is done again. */
static void test_an_adoption_that_was_interrupted_is_done_again(void **state) {
  (void)state;
  unsigned char head[HEAD], *before = NULL;
  for (uint64_t version = 1; version <= 4; version++)
    for (uint32_t part = 0; part <= 3; part++) {
      begin_versions(version);
      size_t arrays = HEAD + lda_piece_bytes(&piece) - 6 * (size_t)piece.tokens, bytes = 4 * (size_t)piece.tokens;
      size_t done = bytes * part / 3; /* of the first array, in which the adopted topics go */
      before = realloc(before, bytes);
      assert_int_equal(pread(piece.file, head, HEAD, 0), HEAD);
      assert_int_equal(pread(piece.file, before, bytes, (off_t)arrays), bytes);
      must(open_again());
      must(lda_piece_adopt(&piece, 2, error));
      assert_int_equal(pwrite(piece.file, head, HEAD, 0), HEAD);
      assert_int_equal(pwrite(piece.file, before + done, bytes - done, (off_t)(arrays + done)), bytes - done);
      must(open_again());
      assert_true(piece.generation == 1 && piece.version == version);
      must(lda_piece_adopt(&piece, 2, error));
      check_adopted(2, version);
    }
  free(before);
}

/* --- damage --------------------------------------------------------------------------------------------- */

static unsigned char good[16384], bad[16384];
static size_t size;

static void keep_good(void) {
  draw_documents(&documents, 8, 6, 5);
  make_and_load();
  write_version(1);
  must(lda_piece_commit(&piece));
  ssize_t got = pread(piece.file, good, sizeof good, 0);
  assert_in_range(got, HEAD + 1, sizeof good - 1);
  size = (size_t)got;
}

/* In place: a file that is replaced would be waited for by some file systems. */
static void put(const unsigned char *bytes, size_t count) {
  char path[300];
  snprintf(path, sizeof path, "%s/piece-000003", folder);
  int file = open(path, O_WRONLY);
  assert_true(file >= 0);
  assert_int_equal(pwrite(file, bytes, count, 0), count);
  assert_int_equal(ftruncate(file, (off_t)count), 0);
  close(file);
}

/* Everything that is used as an index is within its bounds. */
static void check_bounds(void) {
  for (uint32_t w = 0; w < piece.words; w++) {
    assert_true(piece.ids[w] <= piece.last_word && (w == 0 || piece.ids[w - 1] < piece.ids[w]));
    assert_true(piece.starts[w] < piece.starts[w + 1] && piece.starts[w + 1] <= piece.tokens);
  }
  for (uint32_t d = 0; d < piece.documents; d++) {
    assert_true(piece.documents_at[d] < piece.documents_at[d + 1] && piece.documents_at[d + 1] <= piece.tokens);
    assert_true(piece.documents_at[d + 1] - piece.documents_at[d] <= piece.longest);
  }
  for (uint32_t i = 0; i < piece.tokens; i++) {
    uint32_t topic = lda_topic(piece.pairs[i]), proposed = lda_proposed(piece.pairs[i]);
    assert_true(piece.at[i] < piece.tokens && (topic < TOPICS || topic == LDA_NONE));
    assert_true(proposed < TOPICS || proposed == LDA_NONE);
  }
}

static void test_a_file_that_is_cut_off_is_refused(void **state) {
  (void)state;
  keep_good();
  for (size_t cut = size; cut-- > 0;) {
    put(good, cut);
    *error = 0;
    assert_int_equal(open_again(), PAWL_TRUNCATED);
    assert_non_null(strstr(error, "piece-000003"));
  }
  memcpy(bad, good, size);
  bad[size] = 0;
  put(bad, size + 1); /* nor one that is too long */
  assert_int_equal(open_again(), PAWL_TRUNCATED);
  put(good, size);
  must(open_again());
}

static void test_a_file_that_shrinks_after_it_was_opened_is_noticed(void **state) {
  (void)state;
  keep_good();
  must(open_again());
  assert_int_equal(truncate(piece.path, HEAD + 20), 0);
  assert_int_equal(lda_piece_load(&piece, error), PAWL_TRUNCATED);
  assert_false(piece.is_loaded);
}

static void test_damage_never_leads_outside(void **state) {
  (void)state;
  struct lda_random random = {6};
  size_t refused = 0, taken = 0;
  keep_good();
  for (int turn = 0; turn < 4000; turn++) {
    memcpy(bad, good, size);
    for (int flips = 1 + turn % 3; flips > 0; flips--) {
      size_t at = turn % 4 == 0 ? lda_draw(&random) % 128 : HEAD + lda_draw(&random) % (size - HEAD);
      bad[at] ^= (unsigned char)(turn % 2 ? 1u << lda_draw(&random) % 8 : 1 + lda_draw(&random) % 255);
    }
    put(bad, size);
    pawl_status status = open_again();
    if (!status) status = lda_piece_load(&piece, error);
    if (!status) check_bounds();
    if (!status && turn % 16 == 1) must(lda_piece_adopt(&piece, 2, error));
    assert_true(!status || status == PAWL_CORRUPT || status == PAWL_MISMATCH || status == PAWL_TRUNCATED);
    refused += status != PAWL_OK;
    taken += status == PAWL_OK; /* topics that were changed to others, and the array that is not in use */
  }
  assert_true(refused > 1000 && taken > 100);
}

static void test_every_byte_of_the_head_is_checked(void **state) {
  (void)state;
  keep_good();
  for (size_t at = 0; at < 96; at++) { /* magic, names, sizes, check, generation, version */
    memcpy(bad, good, size);
    bad[at] ^= 0x10;
    put(bad, size);
    assert_int_equal(open_again(), PAWL_CORRUPT);
  }
}

#define WITH_PIECE(test) cmocka_unit_test_teardown(test, remove_it)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_PIECE(test_a_piece_has_the_tokens_of_its_documents),
      WITH_PIECE(test_entries_without_values_are_one_token_each),
      WITH_PIECE(test_documents_without_words_are_counted_but_not_kept),
      WITH_PIECE(test_a_word_may_fill_a_document),
      WITH_PIECE(test_counts_that_are_none_are_refused),
      WITH_PIECE(test_words_beyond_the_vocabulary_are_refused),
      WITH_PIECE(test_too_many_tokens_are_refused),
      WITH_PIECE(test_a_directory_that_is_not_there_is_named),
      WITH_PIECE(test_a_piece_of_another_run_is_refused),
      WITH_PIECE(test_whoever_opens_it_next_sees_the_version_that_was_committed),
      WITH_PIECE(test_what_was_not_committed_does_not_count_but_can_be_read),
      WITH_PIECE(test_what_is_adopted_keeps_its_topics),
      WITH_PIECE(test_an_adoption_that_was_interrupted_is_done_again),
      WITH_PIECE(test_a_file_that_is_cut_off_is_refused),
      WITH_PIECE(test_a_file_that_shrinks_after_it_was_opened_is_noticed),
      WITH_PIECE(test_damage_never_leads_outside),
      WITH_PIECE(test_every_byte_of_the_head_is_checked),
  };
  return cmocka_run_group_tests_name("apps.lda.piece_file", tests, begin, end);
}
