#include "data/parse.h"

#include "data/scene_test.h"

static const struct pwi_parse_rule rule = {.format = PAWL_DATA_LIBSVM};

static void assert_reads(const char *text, const char *rows) {
  struct told told = parsed(&rule, text);
  assert_string_equal(told.text, rows);
}

static void test_rows_have_a_label_and_entries(void **state) {
  (void)state;
  assert_reads("+1 17:0.125 42:0.5\n-1 3:2\n", "1 17:0.125 42:0.5; -1 3:2; ");
  assert_reads("0.25 1:-1e3\n", "0.25 1:-1000; ");
  assert_reads("1 7 9 11:2\n", "1 7:1 9:1 11:2; ");
}

static void test_rows_may_lack_labels_if_that_is_said(void **state) {
  const struct pwi_parse_rule optional = {.format = PAWL_DATA_LIBSVM, .labels_optional = true};
  (void)state;
  assert_reads("1 3:1\n3:1 4:2\n", "1 3:1; !2:1 expected a label before the features");
  assert_string_equal(parsed(&optional, "1 3:1\n 3:1 4:2\n0:1\n").text, "1 3:1; nan 3:1 4:2; nan 0:1; ");
  assert_string_equal(parsed(&optional, "1.5:1\n").text, "!1:2 expected a colon or a blank behind the feature id");
}

static void test_the_last_line_needs_no_line_break(void **state) {
  (void)state;
  assert_reads("1 1:1\n2 2:2", "1 1:1; 2 2:2; ");
  assert_reads("1", "1; ");
}

static void test_lines_may_end_in_carriage_return_and_line_feed(void **state) {
  (void)state;
  assert_reads("1 1:1\r\n\r\n2 2:2 \r\n3\r\n", "1 1:1; 2 2:2; 3; ");
  assert_reads("1 1:1\r2:2\n", "!1:6 expected a feature id");
}

static void test_blanks_comments_and_empty_lines_are_nothing(void **state) {
  (void)state;
  assert_reads("# head\n\n  \t\n \t1 \t 1:1\t2:2  # 3:x\n2#\n", "1 1:1 2:2; !5:2 unexpected character in a number");
  assert_reads("2 #\n", "2; ");
}

static void test_groups_of_ranking_files_are_left_out(void **state) {
  (void)state;
  assert_reads("3 qid:12 1:1 2:2\n1 qid:x\n", "3 1:1 2:2; 1; ");
}

static void test_a_row_without_features_is_a_row(void **state) {
  (void)state;
  assert_reads("1\n-1 \n", "1; -1; ");
}

static void test_entries_are_sorted_and_those_of_one_id_added(void **state) {
  (void)state;
  assert_reads("1 5:1 2:2 9:3 2:0.5\n", "1 2:2.5 5:1 9:3; ");
  assert_reads("1 0:1 0:2 1:1\n", "1 0:3 1:1; ");
  assert_reads("1 2:3e38 2:3e38\n", "!1:1 the values of one feature add up to more than a float can hold");
}

static void test_long_rows_are_sorted_too(void **state) {
  struct told told = {.size = 0}, rows = {.size = 0};
  (void)state;
  tell(&told, "1");
  tell(&rows, "1");
  for (int id = 700; id > 0; id--) tell(&told, " %d:%d", id, id % 7);
  for (int id = 1; id <= 700; id++) tell(&rows, " %d:%d", id, id % 7);
  tell(&rows, "; ");
  assert_reads(told.text, rows.text);
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  static const struct {
    const char *text, *wrong;
  } cases[] = {
      {"x 1:1\n", "!1:1 the label is not a number"},
      {"1 1:1\nabc\n", "1 1:1; !2:1 the label is not a number"},
      {"nan 1:1\n", "!1:1 the label does not fit a finite float"},
      {"1e39 1:1\n", "!1:1 the label does not fit a finite float"},
      {"1:1 2:2\n", "!1:1 expected a label before the features"},
      {"1x 2:2\n", "!1:2 unexpected character in a number"},
      {"1 a:1\n", "!1:3 expected a feature id"},
      {"1 -3:1\n", "!1:3 expected a feature id"},
      {"1 :1\n", "!1:3 expected a feature id before the colon"},
      {"1 1:\n", "!1:5 expected a value behind the colon"},
      {"1 1: 2:3\n", "!1:5 expected a value behind the colon"},
      {"1 1:x\n", "!1:5 expected a number"},
      {"1 1:1x\n", "!1:6 unexpected character in a number"},
      {"1 1:1:1\n", "!1:6 unexpected character in a number"},
      {"1 1x\n", "!1:4 expected a colon or a blank behind the feature id"},
      {"1 1.5:2\n", "!1:4 expected a colon or a blank behind the feature id"},
      {"1 1:inf\n", "!1:3 the value does not fit a finite float"},
      {"1 1:-nan\n", "!1:3 the value does not fit a finite float"},
      {"1 1:1e39\n", "!1:3 the value does not fit a finite float"},
      {"1 9223372036854775808:1\n", "!1:3 the feature id exceeds 2^63 - 1"},
      {"1 9999999999999999999999:1\n", "!1:3 the feature id exceeds 2^63 - 1"},
      {"1 9223372036854775807:1\n", "1 9223372036854775807:1; "},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_reads(cases[i].text, cases[i].wrong);
}

static void test_zero_bytes_are_no_text(void **state) {
  char text[] = "1 1:1\n1 \0 1:1\n1 1:\0\n        ";
  struct pwi_parse parse = {.at = text, .end = text + 20};
  struct pwi_batch *batch;
  (void)state;
  assert_int_equal(parse.end[-1], '\n');
  assert_int_equal(pwi_batch_create(&batch), PAWL_OK);
  assert_int_equal(pwi_parse_libsvm(&rule, &parse, batch), PAWL_CORRUPT);
  assert_ptr_equal(parse.wrong, text + 8);
  assert_int_equal(batch->is.rows, 1);
  pwi_batch_destroy(batch);
}

static void test_without_memory_parsing_says_so(void **state) {
  struct told text = {.size = 0};
  (void)state;
  for (int row = 0; row < 20; row++) {
    tell(&text, "1");
    for (int id = 60; id > 0; id--) tell(&text, " %d:2", id);
    tell(&text, "\n");
  }
  char copy[sizeof text.text + PWI_NUMBER_SLACK] = {0};
  memcpy(copy, text.text, text.size);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pwi_parse parse = {.at = copy, .end = copy + text.size};
    struct pwi_batch *batch = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_batch_create(&batch);
    if (!status) status = pwi_parse_libsvm(&rule, &parse, batch);
    int failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_batch_destroy(batch);
    assert_true(pwi_memory_counts().live == live);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_have_a_label_and_entries),
      cmocka_unit_test(test_rows_may_lack_labels_if_that_is_said),
      cmocka_unit_test(test_the_last_line_needs_no_line_break),
      cmocka_unit_test(test_lines_may_end_in_carriage_return_and_line_feed),
      cmocka_unit_test(test_blanks_comments_and_empty_lines_are_nothing),
      cmocka_unit_test(test_groups_of_ranking_files_are_left_out),
      cmocka_unit_test(test_a_row_without_features_is_a_row),
      cmocka_unit_test(test_entries_are_sorted_and_those_of_one_id_added),
      cmocka_unit_test(test_long_rows_are_sorted_too),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
      cmocka_unit_test(test_zero_bytes_are_no_text),
      cmocka_unit_test(test_without_memory_parsing_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
