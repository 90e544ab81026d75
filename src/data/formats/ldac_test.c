/* LDA-C's text. */
#include "data/parse.h"

#include "data/scene_test.h"

static const struct pwi_parse_rule rule = {.format = PAWL_DATA_LDAC};

static void assert_reads(const char *text, const char *rows) {
  struct told told = parsed(&rule, text);
  assert_string_equal(told.text, rows);
}

static void test_documents_are_rows_whose_ids_begin_at_one(void **state) {
  (void)state;
  assert_reads("2 0:3 7:1\n1 2:16777216\n", "0 1:3 8:1; 0 3:1.67772e+07; ");
  assert_reads("  2\t0:3   7:1  \r\n", "0 1:3 8:1; ");
  assert_reads("1 9223372036854775806:1", "0 9223372036854775807:1; ");
}

static void test_a_document_may_be_empty_and_empty_lines_are_none(void **state) {
  (void)state;
  assert_reads("0\n\n  \n\r\n1 4:2\n0 \n", "0; 0 5:2; 0; ");
}

static void test_counts_of_one_word_are_added_up(void **state) {
  (void)state;
  assert_reads("3 5:1 2:2 5:4\n", "0 3:2 6:5; ");
  assert_reads("2 5:16777215 5:1\n", "0 6:1.67772e+07; ");
  assert_reads("2 5:16777216 5:1\n", "!1:1 a word occurs more than 16777216 times in this document");
  assert_reads("1 0:1\n3 5:16777216 1:5 5:16777216\n",
               "0 1:1; !2:1 a word occurs more than 16777216 times in this document");
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  static const char count[] = "the count is not a whole number from 1 to 16777216";
  static const char first[] = "expected the number of words, a whole number, at the start of the document";
  static const struct wrong cases[] = {
      {"2 0:1\n", "1:1", "2 words are announced, but 1 follow"},
      {"1 0:1 1:1\n", "1:1", "1 words are announced, but 2 follow"},
      {"18446744073709551617 0:1\n", "1:1", first},
      {"-1 0:1\n", "1:1", first},
      {"x 0:1\n", "1:1", first},
      {"0:1\n", "1:1", first},
      {"1.5 0:1\n", "1:1", first},
      {"1 0:0\n", "1:5", count},
      {"1 0:-3\n", "1:5", count},
      {"1 0:16777217\n", "1:5", count},
      {"1 0:2147483649\n", "1:5", count},
      {"1 0:18446744073709551617\n", "1:5", count},
      {"1 0:99999999999999999999999999\n", "1:5", count},
      {"1 0:\n", "1:5", count},
      {"1 0:nan\n", "1:5", count},
      {"1 0:1.5\n", "1:6", "unexpected character in a whole number"},
      {"1 0:1e3\n", "1:6", "unexpected character in a whole number"},
      {"1 0:1:1\n", "1:6", "unexpected character in a whole number"},
      {"1 0\n", "1:4", "expected a colon behind the word number"},
      {"1 0 :1\n", "1:4", "expected a colon behind the word number"},
      {"1 :1\n", "1:3", "expected a word number"},
      {"1 -1:1\n", "1:3", "expected a word number"},
      {"1 # 0:1\n", "1:3", "expected a word number"},
      {"1 9223372036854775807:1\n", "1:3", "the word number exceeds 2^63 - 2"},
      {"1 99999999999999999999:1\n", "1:3", "the word number exceeds 2^63 - 2"},
      {"1 0:1\r1\n", "1:6", "unexpected character in a whole number"},
  };
  (void)state;
  assert_all_wrong(&rule, cases, sizeof cases / sizeof *cases);
}

static void test_words_beyond_the_vocabulary_are_bad(void **state) {
  struct pawl_words *words = words_of("a\nb\nc\n");
  struct pwi_parse_rule bounded = {.format = PAWL_DATA_LDAC, .words = words};
  (void)state;
  struct told told = parsed(&bounded, "2 0:1 2:1\n1 3:1\n");
  assert_string_equal(told.text, "0 1:1 3:1; !2:3 word 3 is not in the vocabulary, which has 3 words, counted from 0");
  pwi_words_release(words);
}

/* --- files ---------------------------------------------------------------------------------------------- */

static void test_the_format_is_told_from_libsvm(void **state) {
  static const struct {
    const char *text;
    enum pawl_data_format format;
  } cases[] = {
      {"2 0:3 7:1\n1 2:1\n", PAWL_DATA_LDAC},
      {"0\n2 0:3 7:1\n", PAWL_DATA_LDAC},
      {"3 0:3 7:1 9:1", PAWL_DATA_LDAC},
      {"1 5:1\n", PAWL_DATA_LIBSVM},        /* valid in both formats */
      {"1 5:1\n1 6:1\n", PAWL_DATA_LIBSVM}, /* likewise */
      {"2 0:3 7:1\n1 2:0.5\n", PAWL_DATA_LIBSVM},
      {"2 0:3 7:1\n1 2:1 3:1\n", PAWL_DATA_LIBSVM},
      {"+2 1:3 7:1\n", PAWL_DATA_LIBSVM},
      {"2 1:3 7\n", PAWL_DATA_LIBSVM},
      {"0\n0\n", PAWL_DATA_LIBSVM},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_format(cases[i].text, cases[i].format);
}

static void test_a_bad_row_is_named_or_left_out(void **state) {
  struct pawl_data_options options = default_options();
  pawl_status status;
  (void)state;
  const char *path = write_text("bad", "2 0:1 1:1\n3 0:1\n1 4:2\n");
  options.format = PAWL_DATA_LDAC;
  assert_string_equal(why_not(path, &options, &status), "bad:2:1: 3 words are announced, but 1 follow");
  assert_int_equal(status, PAWL_CORRUPT);
  options.skip_bad = 1;
  struct pawl_data *data = opened(path, &options);
  struct pwi_batch *batch = read_whole(data);
  assert_int_equal(batch->is.rows, 2);
  assert_int_equal(data->skipped, 1);
  assert_non_null(strstr(data->first_bad.text, "bad:2:1: 3 words"));
  pwi_batch_destroy(batch);
  pwi_data_close(data);
}

static void test_a_cache_carries_documents_on(void **state) {
  struct pawl_data_options options = default_options();
  struct pwi_fault fault;
  (void)state;
  struct pawl_data *data = opened(write_text("docs", "2 0:1 1:5\n0\n1 4:2\n"), &options);
  assert_int_equal(pwi_data_convert(data, path_of("docs.cache"), 1, NULL, NULL, &fault), PAWL_OK);
  struct pawl_data *cache = opened(path_of("docs.cache"), &options);
  struct pwi_batch *a = read_whole(data), *b = read_whole(cache);
  assert_int_equal(a->is.rows, 3);
  assert_same_rows(&a->is, &b->is);
  assert_true(b->is.labels[0] == 0 && b->is.labels[1] == 0 && b->is.values[1] == 5);
  pwi_batch_destroy(a);
  pwi_batch_destroy(b);
  pwi_data_close(cache);
  pwi_data_close(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_documents_are_rows_whose_ids_begin_at_one),
      cmocka_unit_test(test_a_document_may_be_empty_and_empty_lines_are_none),
      cmocka_unit_test(test_counts_of_one_word_are_added_up),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
      cmocka_unit_test(test_words_beyond_the_vocabulary_are_bad),
      cmocka_unit_test(test_the_format_is_told_from_libsvm),
      cmocka_unit_test(test_a_bad_row_is_named_or_left_out),
      cmocka_unit_test(test_a_cache_carries_documents_on),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
