#include "base/hash.h"
#include "data/formats/detect.h"
#include "data/scene_test.h"

#define BITS 16

/* Detects the layout, then parses the lines behind the head line. */
static struct told read_with(struct pwi_parse_rule rule, const char *text, const char *label) {
  struct told told = {.size = 0};
  const char *why = "";
  char head[512] = {0};
  snprintf(head, sizeof head - PWI_NUMBER_SLACK, "%s", text);
  if (pwi_detect(head, strlen(text), label, &rule, &why)) {
    tell(&told, "?%s", why);
    return told;
  }
  return parsed(&rule, text + rule.table.head_length);
}

static struct told read_csv(const char *text, const char *label) {
  return read_with((struct pwi_parse_rule){.format = PAWL_DATA_CSV, .hash_bits = BITS}, text, label);
}

/* Reads a table of three columns; the second is the label, which may be missing. */
static struct told read_unlabelled(const char *text, const char *label) {
  struct pwi_parse_rule rule = {
      .format = PAWL_DATA_CSV, .hash_bits = BITS, .labels_optional = true, .table = {.width = 3, .label = 1}};
  return read_with(rule, text, label);
}

static void assert_reads(const char *text, const char *label, const char *rows) {
  struct told told = read_csv(text, label);
  assert_string_equal(told.text, rows);
}

static unsigned long long word_id(size_t columns, size_t column, const char *word) {
  return columns + pwi_hashed_id(pwi_hash(word, strlen(word), column), BITS);
}

static void test_numbers_have_the_id_of_their_column(void **state) {
  (void)state;
  assert_reads("1,0.5,2\n0,3,-4\n", NULL, "1 2:0.5 3:2; 0 2:3 3:-4; ");
  assert_reads("0.5,1,2\n", "2", "1 1:0.5 3:2; ");
}

static void test_empty_fields_and_zeros_are_left_out(void **state) {
  (void)state;
  assert_reads("1,,2\n0,0,\n1,,\n", NULL, "1 3:2; 0; 1; ");
}

static void test_a_first_line_without_a_label_is_a_line_of_names(void **state) {
  (void)state;
  assert_reads("label,a,b\n1,2,3\n", NULL, "1 2:2 3:3; ");
  assert_reads("a,y,b\r\n2,1,3\r\n", "y", "1 1:2 3:3; ");
  assert_reads("a,y,b\n2,1,3\n", "2", "1 1:2 3:3; ");
  assert_reads("\"a,b\",\"y\"\n2,1\n", "y", "1 1:2; ");
}

static void test_a_label_that_is_not_there_is_said(void **state) {
  (void)state;
  assert_reads("a,y,b\n2,1,3\n", "z", "?no column has the name or number given for the label");
  assert_reads("a,y,b\n2,1,3\n", "4", "?no column has the name or number given for the label");
  assert_reads("a,y,b\n2,1,3\n", "0", "?no column has the name or number given for the label");
  assert_reads("1,2\n", "99999999999999999999999", "?no column has the name or number given for the label");
}

static void test_words_are_hashed_by_column(void **state) {
  struct told rows = {.size = 0};
  (void)state;
  tell(&rows, "1 %llu:1; 0 2:7; ", word_id(3, 3, "red"));
  assert_reads("1,,red\n0,7,\n", NULL, rows.text);
  assert_true(word_id(3, 3, "red") != word_id(3, 2, "red"));
}

static void test_quotes_are_no_part_of_a_field(void **state) {
  struct told rows = {.size = 0};
  (void)state;
  tell(&rows, "1 %llu:1; ", word_id(2, 2, "a \"b\", c"));
  assert_reads("\"1\",\"a \"\"b\"\", c\"\n", NULL, rows.text);
  assert_reads("1,\"2.5\"\n", NULL, "1 2:2.5; ");
  assert_reads("1,\"\"\n", NULL, "1; ");
}

static void test_blanks_around_a_field_are_nothing(void **state) {
  (void)state;
  assert_reads("1 , 2 ,\t3\n", NULL, "1 2:2 3:3; ");
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  static const struct {
    const char *text, *wrong;
  } cases[] = {
      {"1,2\n,3\n", "1 2:2; !2:1 no label"},
      {"1,2\nx,3\n", "1 2:2; !2:1 the label is not a number"},
      {"1,2\n1x,3\n", "1 2:2; !2:2 unexpected character in a number"},
      {"1,2\n1\n", "1 2:2; !2:2 fewer columns than in the first line"},
      {"1,2\n1,2,3\n", "1 2:2; !2:5 more columns than in the first line"},
      {"1,2\n1,\"2\n", "1 2:2; !2:3 a quote is not closed, or text follows a closing quote"},
      {"1,2\n1,\"2\"x\n", "1 2:2; !2:3 a quote is not closed, or text follows a closing quote"},
      {"1,2\n1,nan\n", "1 2:2; !2:3 the value does not fit a finite float"},
      {"1,2\n1,-inf\n", "1 2:2; !2:3 the value does not fit a finite float"},
      {"1,\"2\n", "?in the first line a quote is not closed, or text follows a closing quote"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_reads(cases[i].text, NULL, cases[i].wrong);
}

static void test_the_separator_divides_all_lines_into_equally_many_fields(void **state) {
  struct told rows = {.size = 0};
  (void)state;
  assert_reads("1;0.5;2\n0;3;-4\n", NULL, "1 2:0.5 3:2; 0 2:3 3:-4; ");
  assert_reads("1\t0.5\t2\n0\t\t-4\n", NULL, "1 2:0.5 3:2; 0 3:-4; ");
  assert_reads("y\tx\r\n1\t7\r\n", NULL, "1 2:7; ");
  tell(&rows, "1 %llu:1; 0 %llu:1; ", word_id(2, 2, "so, it, is"), word_id(2, 2, "no"));
  assert_reads("1\tso, it, is\n0\tno\n", NULL, rows.text); /* more commas than tabs, but not in all lines */
  assert_reads("\"a;b\",y,c\n2,1,3\n", "y", "1 1:2 3:3; ");
}

static void test_between_semicolons_a_comma_is_a_decimal_point(void **state) {
  (void)state;
  assert_reads("1;2,5;-0,25\n0;3;4\n", NULL, "1 2:2.5 3:-0.25; 0 2:3 3:4; ");
  assert_reads("1,5;2\n-1,5;3\n", NULL, "1.5 2:2; -1.5 2:3; ");
}

static void test_a_separator_that_was_named_is_taken(void **state) {
  struct pwi_parse_rule rule = {.format = PAWL_DATA_CSV, .hash_bits = BITS, .table = {.separator = '|'}};
  struct told told = read_with(rule, "1|2|3\n", NULL);
  (void)state;
  assert_string_equal(told.text, "1 2:2 3:3; ");
}

static void test_without_labels_ids_are_as_if_they_were_there(void **state) {
  struct told rows = {.size = 0};
  (void)state;
  assert_string_equal(read_unlabelled("2,3\n4,5\n", NULL).text, "nan 1:2 3:3; nan 1:4 3:5; ");
  assert_string_equal(read_unlabelled("a,b\n2,3\n", NULL).text, "nan 1:2 3:3; ");
  assert_string_equal(read_unlabelled("a,b\n2,3\n", "y").text, "nan 1:2 3:3; ");
  assert_string_equal(read_unlabelled("a,y,b\n2,1,3\n4,,5\n", "y").text, "1 1:2 3:3; nan 1:4 3:5; ");
  tell(&rows, "nan 1:2 %llu:1; ", word_id(3, 3, "red"));
  assert_string_equal(read_unlabelled("2,red\n", NULL).text, rows.text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers_have_the_id_of_their_column),
      cmocka_unit_test(test_empty_fields_and_zeros_are_left_out),
      cmocka_unit_test(test_a_first_line_without_a_label_is_a_line_of_names),
      cmocka_unit_test(test_a_label_that_is_not_there_is_said),
      cmocka_unit_test(test_words_are_hashed_by_column),
      cmocka_unit_test(test_quotes_are_no_part_of_a_field),
      cmocka_unit_test(test_blanks_around_a_field_are_nothing),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
      cmocka_unit_test(test_the_separator_divides_all_lines_into_equally_many_fields),
      cmocka_unit_test(test_between_semicolons_a_comma_is_a_decimal_point),
      cmocka_unit_test(test_a_separator_that_was_named_is_taken),
      cmocka_unit_test(test_without_labels_ids_are_as_if_they_were_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
