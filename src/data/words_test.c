/* Vocabularies: read, written, looked up, and built from a corpus. */
#include "data/words.h"

#include "data/scene_test.h"
#include "data/tally.h"
#include "data/words_testing.h"

static struct pawl_words *read_words(const char *path) {
  struct pawl_words *words = NULL;
  struct pwi_fault fault = {""};
  if (pwi_words_read(path, &words, &fault)) fail_msg("%s", fault.text);
  return words;
}

static uint64_t find(const struct pawl_words *words, const char *word) { return find_word(words, word, strlen(word)); }

/* All words, separated by commas. */
static const char *joined(const struct pawl_words *words) {
  static struct told told;
  told.size = 0;
  told.text[0] = 0;
  for (uint64_t i = 0; i < pawl_words_count(words); i++) tell(&told, "%s%s", i ? "," : "", pawl_words_at(words, i));
  return told.text;
}

static void test_words_have_the_numbers_of_their_lines(void **state) {
  struct pawl_words *words = read_words(write_text("v", "the\r\nz\xc3\xbcrich\nnew york\n."));
  (void)state;
  assert_int_equal(pawl_words_count(words), 4);
  assert_string_equal(joined(words), "the,z\xc3\xbcrich,new york,.");
  assert_null(pawl_words_at(words, 4));
  assert_null(pawl_words_at(words, UINT64_MAX));
  assert_true(find(words, "the") == 0 && find(words, "z\xc3\xbcrich") == 1 && find(words, ".") == 3);
  assert_true(find(words, "th") == PAWL_NO_WORD && find(words, "thee") == PAWL_NO_WORD);
  assert_true(find(words, "") == PAWL_NO_WORD && find(words, "The") == PAWL_NO_WORD);
  assert_true(find_word(words, "thee", 3) == 0);
  pawl_words_release(words);
  words = read_words(write_text("v", "\xef\xbb\xbfone\n")); /* after a byte order mark */
  assert_int_equal(find(words, "one"), 0);
  pawl_words_release(words);
  pawl_words_release(NULL);
}

static void test_many_words_are_found(void **state) {
  static char text[400000];
  size_t size = 0;
  char word[32];
  (void)state;
  for (int i = 0; i < 40000; i++) size += (size_t)sprintf(text + size, "w%d\n", i * 7);
  struct pawl_words *words = read_words(write_bytes("v", text, size));
  for (int i = 0; i < 280000; i++) {
    snprintf(word, sizeof word, "w%d", i);
    assert_int_equal(find(words, word), i % 7 ? PAWL_NO_WORD : (uint64_t)i / 7);
  }
  pawl_words_release(words);
}

static void test_packed_files_are_read(void **state) {
  unsigned char packed[1000];
  (void)state;
  struct pawl_words *words = read_words(write_bytes("v.gz", packed, pack_gzip("a\nb\n", 4, packed, sizeof packed)));
  assert_string_equal(joined(words), "a,b");
  pawl_words_release(words);
  words = read_words(write_bytes("v.zst", packed, pack_zstd("a\nb\n", 4, true, packed, sizeof packed)));
  assert_string_equal(joined(words), "a,b");
  pawl_words_release(words);
}

static void test_a_mistake_is_reported_with_its_line(void **state) {
  static const struct {
    const char *text;
    size_t size;
    pawl_status status;
    const char *what;
  } cases[] = {
      {"a\nb\na\n", 6, PAWL_CORRUPT, "v:3: duplicate of the word in line 1"},
      {"a\n\nb\n", 5, PAWL_CORRUPT, "v:2: expected a word, found an empty line"},
      {"a\n\r\n", 4, PAWL_CORRUPT, "v:2: expected a word, found an empty line"},
      {"\n", 1, PAWL_CORRUPT, "v:1: expected a word, found an empty line"},
      {"a\nb\xff\n", 5, PAWL_CORRUPT, "v:2: invalid UTF-8"},
      {"a\nb\0c\n", 6, PAWL_CORRUPT, "v:2: the word contains a zero byte"},
      {"", 0, PAWL_TRUNCATED, "v: the file is empty"},
      {"\xef\xbb\xbf", 3, PAWL_TRUNCATED, "v: the vocabulary is empty"},
  };
  struct pawl_words *words;
  struct pwi_fault fault;
  size_t length = strlen(folder) + 1;
  char text[300];
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(pwi_words_read(write_bytes("v", cases[i].text, cases[i].size), &words, &fault), cases[i].status);
    assert_string_equal(fault.text + length, cases[i].what);
  }
  memset(text, 'x', sizeof text);
  pawl_words_release(read_words(write_bytes("v", text, PAWL_WORD_MAX)));
  assert_int_equal(pwi_words_read(write_bytes("v", text, PAWL_WORD_MAX + 1), &words, &fault), PAWL_CORRUPT);
  assert_string_equal(fault.text + length, "v:1: the word has more than 255 bytes");
  assert_int_equal(pwi_words_read(path_of("none"), &words, &fault), PAWL_NOT_FOUND);
  assert_string_equal(fault.text + length, "none: No such file or directory");
  assert_int_equal(pwi_words_read(folder, &words, &fault), PAWL_INVALID);
}

static void test_a_written_vocabulary_is_read_back(void **state) {
  struct pawl_words *words = read_words(write_text("v", "b\na\n\xc3\xa4\n")), *again;
  struct pwi_fault fault;
  (void)state;
  assert_int_equal(pwi_words_write(words, path_of("w"), &fault), PAWL_OK);
  again = read_words(path_of("w"));
  assert_string_equal(joined(again), "b,a,\xc3\xa4");
  assert_true(again->fingerprint == words->fingerprint);
  assert_int_equal(pwi_words_write(words, path_of("no/where"), &fault), PAWL_NOT_FOUND);
  assert_non_null(strstr(fault.text, "no/where: "));
  pawl_words_release(again);
  pawl_words_release(words);
}

static void test_handlers_keep_a_vocabulary(void **state) {
  uint64_t live = pwi_memory_counts().live;
  struct pawl_words *words = read_words(write_text("v", "a\n"));
  (void)state;
  assert_ptr_equal(pawl_words_retain(words), words);
  pawl_words_release(words);
  assert_string_equal(pawl_words_at(words, 0), "a");
  pawl_words_release(words);
  assert_int_equal(pwi_memory_counts().live, live);
  assert_null(pawl_words_retain(NULL));
}

/* --- built from a corpus -------------------------------------------------------------------------------- */

static const char corpus[] = "The cat sat. The cat!\n"
                             "a dog sat\n"
                             "\n"
                             "the dog's dog, the end\n"
                             "zebra zebra zebra\n"
                             "apple cat\n";

static struct pawl_data *open_text(const char *text, uint64_t piece_bytes) {
  struct pawl_data_options options = default_options();
  options.format = PAWL_DATA_TEXT;
  options.piece_bytes = piece_bytes;
  return opened(write_text("corpus", text), &options);
}

static struct pawl_words_options choice(uint64_t least_documents, double most_share, uint64_t most) {
  struct pawl_words_options options;
  pawl_words_options_init(&options);
  options.least_documents = least_documents;
  options.most_share = most_share;
  options.most = most;
  options.threads = 2;
  return options;
}

static void assert_builds(struct pawl_words_options options, const char *due) {
  for (uint64_t piece_bytes = 1; piece_bytes < 120; piece_bytes += 7) {
    struct pawl_data *data = open_text(corpus, piece_bytes);
    struct pawl_words *words = NULL;
    struct pwi_fault fault = {""};
    if (pwi_words_build(data, &options, &words, &fault)) fail_msg("%s", fault.text);
    assert_string_equal(joined(words), due);
    pawl_words_release(words);
    pwi_data_close(data);
  }
}

static void test_words_are_numbered_by_falling_count(void **state) {
  (void)state;
  assert_builds(choice(1, 1, 1000), "the,cat,zebra,dog,sat,a,apple,dog's,end");
  assert_builds(choice(2, 1, 1000), "the,cat,dog,sat");
  assert_builds(choice(0, 0.17, 1000), "zebra,a,apple,dog's,end"); /* in one document of six */
  assert_builds(choice(1, 1, 3), "the,cat,zebra");
}

static void test_words_may_be_left_out(void **state) {
  struct pawl_words_options options = choice(1, 1, 4);
  (void)state;
  options.stop = write_text("stop", "the\nzebra\nunheard\n");
  assert_builds(options, "cat,dog,sat,a");
}

static bool say_no(void *context, uint64_t pieces, uint64_t of) {
  uint64_t *seen = context;
  assert_true(pieces == ++*seen && pieces <= of);
  return pieces < 3;
}

static void test_a_vocabulary_that_cannot_be_built_is_reported(void **state) {
  struct pawl_words_options options = choice(7, 1, 1000);
  struct pawl_words *words = NULL;
  struct pwi_fault fault;
  uint64_t seen = 0;
  (void)state;
  struct pawl_data *data = open_text(corpus, 10);
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_INVALID);
  assert_non_null(strstr(fault.text, "no word remains in the vocabulary"));
  options = choice(1, 0, 1000);
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_INVALID);
  options = choice(1, 1, 0);
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_INVALID);
  options = choice(1, 1, 10);
  options.stop = path_of("none");
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_NOT_FOUND);
  options = choice(1, 1, 10);
  options.progress = say_no;
  options.context = &seen;
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_CANCELLED);
  assert_int_equal(seen, 3);
  pwi_data_close(data);
  data = open_text("fine\nbr\xffken\nfine\n", 10);
  options = choice(1, 1, 10);
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_CORRUPT);
  assert_non_null(strstr(fault.text, "corpus:2:3: invalid UTF-8"));
  data->options.skip_bad = 100;
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_OK);
  assert_string_equal(joined(words), "fine");
  pawl_words_release(words);
  pwi_data_close(data);
  struct pawl_data_options plain = default_options();
  data = opened(write_text("rows", "1 1:1\n"), &plain);
  assert_int_equal(pwi_words_build(data, &options, &words, &fault), PAWL_UNSUPPORTED);
  assert_non_null(strstr(fault.text, "rows: a vocabulary is built from text, but this file was opened as libsvm"));
  pwi_data_close(data);
}

static pawl_status add_word(struct pwi_tally *tally, const char *word) {
  char copy[32] = "";
  size_t length = strlen(word);
  memcpy(copy, word, length);
  return pwi_tally_add(tally, copy, length, pwi_word_hash(copy, length));
}

static void test_a_tally_forgets_rare_words(void **state) {
  struct pwi_tally tally = {0};
  char word[32] = "";
  (void)state;
  for (int i = 0; i < 3000; i++)
    for (int j = 0; j <= i % 10; j++) {
      snprintf(word, sizeof word, "w%d", i);
      assert_int_equal(add_word(&tally, word), PAWL_OK);
    }
  pwi_tally_forget(&tally, 5000, 1 << 20);
  assert_int_equal(tally.count, 3000);
  pwi_tally_forget(&tally, 1000, 1 << 20);
  assert_int_equal(tally.count, 900); /* those of 8, 9 and 10 */
  for (size_t i = 0; i < tally.count; i++) assert_true(tally.words[i].count >= 8);
  size_t count = tally.count;
  assert_int_equal(add_word(&tally, "w9"), PAWL_OK);
  assert_int_equal(tally.count, count); /* it is still found */
  assert_int_equal(add_word(&tally, "w0"), PAWL_OK);
  assert_int_equal(tally.count, count + 1);
  pwi_tally_forget(&tally, 1000, 100);
  assert_int_equal(tally.letters_size, 0);
  pwi_tally_fini(&tally);
}

static void test_failing_allocations_are_returned(void **state) {
  const char *stop = write_text("stop", "a\n"), *path = path_of("corpus");
  struct pawl_data_options options = default_options();
  struct pawl_words_options how = choice(1, 1, 1000);
  struct pwi_fault fault;
  (void)state;
  write_text("corpus", corpus);
  options.format = PAWL_DATA_TEXT;
  options.piece_bytes = 30;
  how.stop = stop;
  how.threads = 1;
  for (uint64_t n = 0;; n++) {
    struct pawl_data *data = NULL;
    struct pawl_words *words = NULL, *again = NULL;
    uint64_t live = pwi_memory_counts().live;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_data_open(&path, 1, &options, &data, &fault);
    if (!status) status = pwi_words_build(data, &how, &words, &fault);
    if (!status) status = pwi_words_write(words, path_of("made"), &fault);
    if (!status) status = pwi_words_read(path_of("made"), &again, &fault);
    pwi_words_release(words);
    pwi_words_release(again);
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
      cmocka_unit_test(test_words_have_the_numbers_of_their_lines),
      cmocka_unit_test(test_many_words_are_found),
      cmocka_unit_test(test_packed_files_are_read),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_line),
      cmocka_unit_test(test_a_written_vocabulary_is_read_back),
      cmocka_unit_test(test_handlers_keep_a_vocabulary),
      cmocka_unit_test(test_words_are_numbered_by_falling_count),
      cmocka_unit_test(test_words_may_be_left_out),
      cmocka_unit_test(test_a_vocabulary_that_cannot_be_built_is_reported),
      cmocka_unit_test(test_a_tally_forgets_rare_words),
      cmocka_unit_test(test_failing_allocations_are_returned),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
