/* <pawl/data.h> as a program uses it: pawl_error_text is set, whichever thread found the error. */
#include <pawl/data.h>

#include <pawl/session.h>
#include <pawl/words.h>

#include "api/error.h"
#include "data/scene_test.h"

static void test_options_have_defaults(void **state) {
  struct pawl_data_options options;
  (void)state;
  memset(&options, 0xff, sizeof options);
  pawl_data_options_init(&options);
  assert_int_equal(options.format, PAWL_DATA_AUTO);
  assert_int_equal(options.hash_bits, 22);
  assert_null(options.label);
  assert_true(!options.binary && !options.unit_rows && options.piece_bytes == 0 && options.skip_bad == 0);
}

static void test_formats_have_names(void **state) {
  static const char *const names[] = {"auto", "libsvm", "vw", "criteo", "csv", "cache", "ldac", "uci", "text"};
  enum pawl_data_format format;
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(pawl_data_format_parse(names[i], &format), PAWL_OK);
    assert_int_equal(format, i);
    assert_string_equal(pawl_data_format_name(format), names[i]);
  }
  assert_string_equal(pawl_data_format_name((enum pawl_data_format)17), "");
  assert_int_equal(pawl_data_format_parse("arff", &format), PAWL_INVALID);
  assert_non_null(strstr(pawl_error_text(), "unknown data format arff"));
}

static struct pawl_data *open_rows(uint64_t piece_bytes, const char *last) {
  struct told text = {.size = 0};
  struct pawl_data_options options = default_options();
  struct pawl_data *data = NULL;
  for (int i = 0; i < 300; i++) tell(&text, "%d %d:0.5\n", i % 2, i + 1);
  tell(&text, "%s", last);
  const char *path = write_text("rows", text.text);
  options.piece_bytes = piece_bytes;
  assert_int_equal(pawl_data_open(&path, 1, &options, &data), PAWL_OK);
  return data;
}

static void test_a_data_set_is_opened_described_and_read(void **state) {
  struct pawl_data *data = open_rows(1000, "");
  struct pawl_data_info info;
  size_t rows = 0;
  uint64_t most = 0;
  (void)state;
  pawl_data_info(data, &info);
  assert_int_equal(info.files, 1);
  assert_int_equal(info.format, PAWL_DATA_LIBSVM);
  assert_int_equal(info.pieces, (info.bytes + 999) / 1000);
  assert_true(info.fingerprint != 0);
  assert_true(info.rows == 0 && info.entries == 0 && info.max_id == 0);
  for (size_t i = 0; i < info.pieces; i++) {
    struct pawl_batch *batch;
    struct pawl_columns *columns;
    assert_int_equal(pawl_data_read(data, i, &batch), PAWL_OK);
    assert_int_equal(pawl_data_read_columns(data, i, &columns), PAWL_OK);
    assert_int_equal(columns->rows, batch->rows);
    assert_int_equal(columns->entries, batch->entries);
    rows += batch->rows;
    most = batch->max_id > most ? batch->max_id : most;
    pawl_columns_destroy(columns);
    pawl_batch_destroy(batch);
  }
  assert_int_equal(rows, 300);
  assert_int_equal(most, 300);
  struct pawl_batch *none;
  assert_int_equal(pawl_data_read(data, info.pieces, &none), PAWL_OUT_OF_SPAN);
  assert_non_null(strstr(pawl_error_text(), "does not exist"));
  pawl_data_close(data);
  pawl_data_close(NULL);
  pawl_batch_destroy(NULL);
  pawl_columns_destroy(NULL);
}

struct sum {
  size_t rows, calls, fail_at;
};

static pawl_status add_up(void *context, size_t piece, struct pawl_batch *batch) {
  struct sum *sum = context;
  (void)piece;
  sum->rows += batch->rows;
  pawl_batch_destroy(batch);
  return ++sum->calls == sum->fail_at ? pwi_error(PAWL_REFUSED, "the receiver has had enough") : PAWL_OK;
}

static void test_the_error_text_of_the_receiver_reaches_the_caller(void **state) {
  struct pawl_data *data = open_rows(100, "");
  struct pawl_data_info info;
  (void)state;
  pawl_data_info(data, &info);
  for (uint32_t threads = 0; threads < 4; threads++) {
    struct sum sum = {0};
    assert_int_equal(pawl_data_read_all(data, 0, info.pieces, threads, add_up, &sum), PAWL_OK);
    assert_int_equal(sum.rows, 300);
    sum = (struct sum){.fail_at = 7};
    pwi_error(PAWL_IO, "something else");
    assert_int_equal(pawl_data_read_all(data, 0, info.pieces, threads, add_up, &sum), PAWL_REFUSED);
    assert_string_equal(pawl_error_text(), "the receiver has had enough");
    assert_int_equal(sum.calls, 7);
  }
  pawl_data_close(data);
}

static void test_a_bad_row_that_another_thread_met_reaches_the_caller(void **state) {
  struct pawl_data *data = open_rows(100, "1 1:x\n");
  struct pawl_data_info info;
  struct sum sum = {0};
  (void)state;
  pawl_data_info(data, &info);
  assert_int_equal(pawl_data_read_all(data, 0, info.pieces, 3, add_up, &sum), PAWL_CORRUPT);
  assert_non_null(strstr(pawl_error_text(), "rows:301:5: expected a number"));
  pawl_data_close(data);
}

static void test_caches_are_written_and_read(void **state) {
  struct pawl_data *data = open_rows(1000, ""), *cache;
  struct pawl_data_info info;
  struct sum sum = {0};
  const char *path = path_of("cache");
  (void)state;
  assert_int_equal(pawl_data_convert(data, path, 2, NULL, NULL), PAWL_OK);
  assert_int_equal(pawl_data_convert(data, path_of("no/where"), 2, NULL, NULL), PAWL_NOT_FOUND);
  assert_non_null(strstr(pawl_error_text(), "no/where.new: No such file or directory"));
  pawl_data_close(data);
  assert_int_equal(pawl_data_open(&path, 1, NULL, &cache), PAWL_OK);
  pawl_data_info(cache, &info);
  assert_int_equal(info.format, PAWL_DATA_CACHE);
  assert_true(info.rows == 300 && info.entries == 300 && info.max_id == 300);
  assert_int_equal(pawl_data_read_all(cache, 0, info.pieces, 0, add_up, &sum), PAWL_OK);
  assert_int_equal(sum.rows, 300);
  pawl_data_close(cache);
}

/* A vocabulary is built from a text, written and read, and the text is read with it. */
static void test_a_text_is_read_with_its_vocabulary(void **state) {
  struct pawl_data_options options = default_options();
  struct pawl_words_options how;
  struct pawl_words *words, *again;
  struct pawl_data *data;
  struct pawl_batch *batch;
  struct told told = {.size = 0};
  const char *path = write_text("text", "The cat\nthe dog\n\nThe cat, the CAT and me\n");
  (void)state;
  options.format = PAWL_DATA_TEXT;
  assert_int_equal(pawl_data_open(&path, 1, &options, &data), PAWL_OK);
  pawl_words_options_init(&how);
  assert_true(how.least_documents == 2 && how.most_share == 0.5 && how.most == 1000000 && !how.stop && !how.threads);
  how.most_share = 1;
  assert_int_equal(pawl_words_build(data, &how, &words), PAWL_OK);
  pawl_data_close(data);
  assert_int_equal(pawl_words_write(words, path_of("words")), PAWL_OK);
  pawl_words_release(words);
  assert_int_equal(pawl_words_read(path_of("words"), &again), PAWL_OK);
  assert_int_equal(pawl_words_count(again), 2);
  assert_string_equal(pawl_words_at(again, 0), "the");
  assert_string_equal(pawl_words_at(again, 1), "cat");
  options.words = again;
  assert_int_equal(pawl_data_open(&path, 1, &options, &data), PAWL_OK);
  pawl_words_release(again);
  assert_int_equal(pawl_data_read(data, 0, &batch), PAWL_OK);
  tell_batch(&told, batch);
  assert_string_equal(told.text, "0 1:1 2:1; 0 1:1; 0; 0 1:2 2:2; ");
  assert_int_equal(batch->unknown, 3);
  pawl_batch_destroy(batch);
  pawl_data_close(data);
}

static void test_the_mistake_in_a_vocabulary_is_named(void **state) {
  struct pawl_words *words;
  struct pawl_data *data = open_rows(1000, "");
  (void)state;
  assert_int_equal(pawl_words_read(write_text("words", "a\n\n"), &words), PAWL_CORRUPT);
  assert_non_null(strstr(pawl_error_text(), "words:2: expected a word, found an empty line"));
  assert_int_equal(pawl_words_build(data, NULL, &words), PAWL_UNSUPPORTED);
  assert_non_null(strstr(pawl_error_text(), "rows: a vocabulary is built from text"));
  pawl_data_close(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_have_defaults),
      cmocka_unit_test(test_formats_have_names),
      cmocka_unit_test(test_a_data_set_is_opened_described_and_read),
      cmocka_unit_test(test_the_error_text_of_the_receiver_reaches_the_caller),
      cmocka_unit_test(test_a_bad_row_that_another_thread_met_reaches_the_caller),
      cmocka_unit_test(test_caches_are_written_and_read),
      cmocka_unit_test(test_a_text_is_read_with_its_vocabulary),
      cmocka_unit_test(test_the_mistake_in_a_vocabulary_is_named),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
