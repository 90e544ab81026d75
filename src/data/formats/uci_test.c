/* UCI's bag of words: documents are runs of lines, wherever the file is cut. */
#include "data/formats/uci.h"

#include "data/scene_test.h"

static const struct pwi_parse_rule rule = {.format = PAWL_DATA_UCI, .bag = {.documents = 100, .words = 1000}};

static void assert_reads(const char *text, const char *rows) {
  struct told told = parsed(&rule, text);
  assert_string_equal(told.text, rows);
}

static void test_documents_are_runs_of_lines(void **state) {
  (void)state;
  assert_reads("1 1 2\n1 5 1\n2 7 3\n", "0 1:2 5:1; 0 7:3; ");
  assert_reads("1 5 2\n1 1 1\n1 5 3\n100 1000 16777216\n", "0 1:1 5:5; 0 1000:1.67772e+07; ");
  assert_reads(" 1\t1  2 \r\n\n\r\n  \n1 2 1\n\n", "0 1:2 2:1; "); /* empty lines are ignored */
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  static const char count[] = "the count is not a whole number from 1 to 16777216";
  static const char document[] = "expected the number of a document, a whole number";
  static const char word[] = "expected the number of a word, a whole number";
  static const char part[] = "unexpected character in a whole number";
  static const struct wrong cases[] = {
      {"x 1 1\n", "1:1", document},
      {"-1 1 1\n", "1:1", document},
      {"99999999999999999999 1 1\n", "1:1", document},
      {"1\n", "1:2", "the line ends too early: expected document, word and count"},
      {"1 2\n", "1:4", "the line ends too early: expected document, word and count"},
      {"1x 1 1\n", "1:2", part},
      {"1 x 1\n", "1:3", word},
      {"1 -2 1\n", "1:3", word},
      {"1 2:1\n", "1:4", part},
      {"1 2 0\n", "1:5", count},
      {"1 2 -1\n", "1:5", count},
      {"1 2 16777217\n", "1:5", count},
      {"1 2 2147483649\n", "1:5", count},
      {"1 2 18446744073709551617\n", "1:5", count},
      {"1 2 x\n", "1:5", count},
      {"1 2 1.5\n", "1:6", part},
      {"1 2 3 4\n", "1:6", "unexpected text behind the count"},
      {"0 1 1\n", "1:1", "documents and words are counted from 1"},
      {"1 0 1\n", "1:3", "documents and words are counted from 1"},
      {"101 1 1\n", "1:1", "document 101 of 100"},
      {"1  1001 1\n", "1:4", "word 1001 of 1000"},
      {"1 5 16777216\n1 5 1\n", "1:1", "a word occurs more than 16777216 times in this document"},
  };
  (void)state;
  assert_all_wrong(&rule, cases, sizeof cases / sizeof *cases);
  assert_reads("5 1 1\n3 1 1\n", "0 1:1; !2:1 document 3 after 5");
  assert_reads("5 1 1\n7 1 1\n5 1 1\n", "0 1:1; 0 1:1; !3:1 document 5 after 7");
  assert_reads("5 1 1\n5 1 x\n", "!2:5 the count is not a whole number from 1 to 16777216");
}

static void test_words_beyond_the_vocabulary_are_bad(void **state) {
  struct pawl_words *words = words_of("a\nb\n");
  (void)state;
  struct pwi_parse_rule bounded = rule;
  bounded.words = words;
  struct told told = parsed(&bounded, "1 2 1\n2 3 1\n");
  assert_string_equal(told.text, "0 2:1; !2:3 word 3 is not in the vocabulary, whose size is 2");
  pwi_words_release(words);
}

/* --- where documents begin ------------------------------------------------------------------------------ */

static uint64_t before(const char *text, const char *at) {
  return pwi_uci_before(text, true, text + strlen(text) - strlen(at));
}

static void test_the_document_before_a_line_is_seen(void **state) {
  char text[PWI_UCI_LOOK * 2];
  (void)state;
  assert_int_equal(before("7 1 1\n8 1 1\n", "8 1 1\n"), 7);
  assert_int_equal(before("7 1 1\n\n\r\n 8 1 1\n", " 8 1 1\n"), 7);
  assert_int_equal(before("8 1 1\n", "8 1 1\n"), 0);
  assert_int_equal(before("x 1 1\n8 1 1\n", "8 1 1\n"), 0);
  for (size_t gap = 1; gap < PWI_UCI_LOOK + 20; gap++) { /* of empty lines */
    memset(text, '\n', sizeof text);
    memcpy(text + 10, "7 1 1", 5);
    uint64_t seen = pwi_uci_before(text, true, text + 15 + gap);
    assert_int_equal(seen, 5 + gap < PWI_UCI_LOOK ? 7 : 0);
    assert_int_equal(pwi_uci_before(text + 9, false, text + 15 + gap), seen);
  }
}

/* --- files, cut everywhere ------------------------------------------------------------------------------ */

static struct pawl_data_options bag_options(uint64_t piece_bytes, uint64_t skip_bad) {
  struct pawl_data_options options = default_options();
  options.format = PAWL_DATA_UCI;
  options.piece_bytes = piece_bytes;
  options.skip_bad = skip_bad;
  return options;
}

/* Every piece size yields the same rows as the whole text, and the same bad rows. */
static void assert_cut_anyhow(const char *path, size_t size, uint64_t skip_bad) {
  struct pawl_data_options options = bag_options(1 << 20, skip_bad);
  struct pawl_data *data = opened(path, &options);
  struct pwi_batch *whole = read_whole(data);
  uint64_t skipped = data->skipped;
  pwi_data_close(data);
  for (uint64_t piece_bytes = 1; piece_bytes <= size; piece_bytes += 1 + piece_bytes / 16) {
    options.piece_bytes = piece_bytes;
    data = opened(path, &options);
    struct pwi_batch *batch = read_whole(data);
    assert_same_rows(&whole->is, &batch->is);
    assert_int_equal(data->skipped, skipped);
    pwi_batch_destroy(batch);
    pwi_data_close(data);
  }
  pwi_batch_destroy(whole);
}

/* About 2 kB: short and long documents, gaps of empty lines, and with `bad` every kind of error. */
static size_t make_bag(struct pwi_random *random, bool bad, char *text, size_t room) {
  struct told told = {.size = 0};
  unsigned document = 1;
  tell(&told, "4000\n3000\n%u\n", bad ? 0u : 100u);
  for (int line = 0; line < 150; line++) {
    uint64_t drawn = pwi_random_u64(random);
    if (drawn % 4 == 0) document += 1 + (unsigned)(drawn >> 8) % 3;
    if (drawn % 11 == 0) tell(&told, "%s", drawn % 2 ? "\n" : "  \r\n");
    if (bad && drawn % 29 == 0) tell(&told, "x\n");
    if (bad && drawn % 31 == 0) tell(&told, "%u 0 1\n", document);
    if (bad && drawn % 37 == 0) document = document > 5 ? document - 5 : 1;
    if (bad && drawn % 41 == 0) tell(&told, "%*s%u 1 1\n", 240, "", document);
    if (bad && drawn % 43 == 0) tell(&told, "%*s\n", 300, "");
    tell(&told, "%u %u %u\n", document, 1 + (unsigned)(drawn >> 16) % 3000, 1 + (unsigned)(drawn >> 40) % 9);
  }
  assert_true(told.size < room);
  memcpy(text, told.text, told.size + 1);
  return told.size;
}

static void test_every_cut_gives_the_same_documents(void **state) {
  struct pwi_random random;
  char text[8192];
  (void)state;
  pwi_random_init(&random, 7, 0);
  for (int round = 0; round < 6; round++) {
    size_t size = make_bag(&random, round % 2, text, sizeof text);
    assert_cut_anyhow(write_bytes("bag", text, size), size, 1000);
    assert_cut_anyhow(write_bytes("bag", text, size - 1), size, 1000); /* without its last line break */
  }
}

static void test_compressed_files_are_cut_the_same_way(void **state) {
  struct pwi_random random;
  char text[8192];
  unsigned char packed[16384];
  (void)state;
  pwi_random_init(&random, 8, 0);
  size_t size = make_bag(&random, true, text, sizeof text);
  assert_cut_anyhow(write_bytes("bag.gz", packed, pack_gzip(text, size, packed, sizeof packed)), size, 1000);
  assert_cut_anyhow(write_bytes("bag.zst", packed, pack_zstd(text, size, true, packed, sizeof packed)), size, 1000);
}

/* --- totals --------------------------------------------------------------------------------------------- */

static const char *why(const char *text, pawl_status *status_out) {
  struct pawl_data_options options = bag_options(4, 0);
  return why_not(write_text("bag", text), &options, status_out);
}

static void test_totals_are_checked(void **state) {
  pawl_status status;
  (void)state;
  assert_string_equal(why("2\n3\n3\n1 1 1\n1 3 1\n2 2 1\n", &status), "");
  /* more entries than announced is no error */
  assert_string_equal(why("2\n3\n2\n1 1 1\n1 3 1\n2 2 1", &status), "");
  assert_string_equal(why("2\n3\n456\n1 1 1\n\n1 3 1\n\r\n2 2 1", &status),
                      "bag: the file is truncated: it has 3 of 456 entries");
  assert_int_equal(status, PAWL_TRUNCATED);
  assert_string_equal(why("2\n3\n1\n", &status), "bag: the file is truncated: it has 0 of 1 entries");
  assert_string_equal(why("2\n3\n0\n", &status), "");
  assert_string_equal(why("2\n3\n1\n1 4 1\n", &status), "bag:4:3: word 4 of 3");
  assert_int_equal(status, PAWL_CORRUPT);
  assert_string_equal(why("2\n3\n1\n3 1 1\n", &status), "bag:4:1: document 3 of 2");
  assert_string_equal(why("2\n3\n2\n2 1 1\n1 1 1\n", &status), "bag:5:1: document 1 after 2");
  assert_string_equal(why("2\n3\n1 1 1\n", &status),
                      "bag: not a UCI bag of words: its first three lines must be the numbers of documents, words and "
                      "entries");
  assert_int_equal(status, PAWL_CORRUPT);
  assert_string_equal(why("\n\n", &status), "bag: the file contains no rows");
}

static void test_the_format_is_told_by_its_head(void **state) {
  static const struct {
    const char *text;
    enum pawl_data_format format;
  } cases[] = {
      {"2\n3\n1\n1 1 1\n", PAWL_DATA_UCI},    {" 2\r\n3\t\n1\n 1 1 1", PAWL_DATA_UCI},
      {"2\n3\n1\n", PAWL_DATA_LIBSVM}, /* three labels */
      {"2\n3\n1\n1 1:1\n", PAWL_DATA_LIBSVM}, {"2\n3\n1.5\n1 1 1\n", PAWL_DATA_LIBSVM},
      {"2\n3\n1 1 1\n", PAWL_DATA_LIBSVM},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_format(cases[i].text, cases[i].format);
}

static void test_failing_allocations_are_returned(void **state) {
  struct pawl_data_options options = bag_options(16, 0);
  const char *path = write_text("bag", "9\n9\n6\n1 1 1\n1 2 1\n2 1 1\n2 2 1\n3 5 1\n3 4 1\n");
  struct pwi_fault fault;
  (void)state;
  for (uint64_t n = 0;; n++) {
    struct pawl_data *data = NULL;
    struct pwi_batch *batch;
    uint64_t live = pwi_memory_counts().live;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_data_open(&path, 1, &options, &data, &fault);
    for (size_t piece = 0; !status && piece < data->pieces; piece++) {
      status = pwi_data_read(data, piece, &batch, &fault);
      if (!status) pwi_batch_destroy(batch);
    }
    pwi_data_close(data);
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(pwi_memory_counts().live, live);
    if (!failed) {
      assert_int_equal(status, PAWL_OK);
      break;
    }
    assert_true(status == PAWL_NO_MEMORY || status == PAWL_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_documents_are_runs_of_lines),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
      cmocka_unit_test(test_words_beyond_the_vocabulary_are_bad),
      cmocka_unit_test(test_the_document_before_a_line_is_seen),
      cmocka_unit_test(test_every_cut_gives_the_same_documents),
      cmocka_unit_test(test_compressed_files_are_cut_the_same_way),
      cmocka_unit_test(test_totals_are_checked),
      cmocka_unit_test(test_the_format_is_told_by_its_head),
      cmocka_unit_test(test_failing_allocations_are_returned),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
