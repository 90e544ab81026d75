#include <math.h>

#include "base/hash.h"
#include "data/formats/detect.h"
#include "data/scene_test.h"
#include "data/formats/csv_layout.h"

#define BITS 30

/* A row of this many fields, some of them not empty. */
struct field {
  size_t column;
  const char *text;
};

static const char *row(char separator, size_t columns, const struct field *fields, size_t count) {
  static struct told told;
  told.size = 0;
  for (size_t column = 0; column < columns; column++) {
    if (column) tell(&told, "%c", separator);
    for (size_t i = 0; i < count; i++)
      if (fields[i].column == column) tell(&told, "%s", fields[i].text);
  }
  tell(&told, "\n");
  return told.text;
}

static struct pwi_batch *read_rows(const char *text, struct pwi_parse *parse, pawl_status *status_out) {
  static char copy[8192];
  struct pwi_parse_rule rule = {.format = PAWL_DATA_AUTO, .hash_bits = BITS};
  struct pwi_batch *batch;
  const char *why = "";
  memset(copy, 0, sizeof copy);
  snprintf(copy, sizeof copy - PWI_NUMBER_SLACK, "%s", text);
  if (pwi_detect(copy, strlen(copy), NULL, &rule, &why)) fail_msg("%s", why);
  assert_int_equal(rule.format, PAWL_DATA_CRITEO);
  *parse = (struct pwi_parse){.at = copy + rule.table.head_length, .end = copy + strlen(copy)};
  assert_int_equal(pwi_batch_create(&batch), PAWL_OK);
  *status_out = pwi_parse_criteo(&rule, parse, batch);
  assert_int_equal(pwi_batch_finish(batch, false, false), PAWL_OK);
  return batch;
}

static float value_of(const struct pwi_batch *batch, const char *text, size_t column) {
  uint64_t id = pwi_hashed_id(pwi_hash(text, strlen(text), column), BITS);
  for (size_t i = 0; i < batch->is.entries; i++)
    if (batch->ids[i] == id) return batch->values ? batch->values[i] : 1;
  return -1000;
}

static void test_counts_are_logarithms_and_categories_are_ones(void **state) {
  const struct field fields[] = {{0, "1"}, {1, "0"}, {2, "-2"}, {13, "1382"}, {14, "68fd1e64"}, {39, "68fd1e64"}};
  struct pwi_parse parse;
  pawl_status status;
  struct pwi_batch *batch = read_rows(row('\t', 40, fields, 6), &parse, &status);
  (void)state;
  assert_int_equal(status, PAWL_OK);
  assert_int_equal(batch->is.rows, 1);
  assert_int_equal(batch->is.entries, 5);
  assert_true(batch->is.labels[0] == 1);
  assert_true(value_of(batch, "", 1) == 0);
  assert_true(value_of(batch, "", 2) == (float)-log1p(2));
  assert_true(value_of(batch, "", 13) == (float)log1p(1382));
  assert_true(value_of(batch, "68fd1e64", 14) == 1);
  assert_true(value_of(batch, "68fd1e64", 39) == 1);
  pwi_batch_destroy(batch);
}

static void test_the_form_with_a_head_line_has_the_same_features(void **state) {
  const struct field plain[] = {{0, "1"}, {3, "5"}, {14, "abc"}},
                     with_id[] = {{0, "17"}, {1, "1"}, {4, "5"}, {15, "abc"}};
  struct told text = {.size = 0};
  struct pwi_parse parse;
  pawl_status status;
  (void)state;
  tell(&text, "Id,Label");
  for (int i = 1; i <= 13; i++) tell(&text, ",I%d", i);
  for (int i = 1; i <= 26; i++) tell(&text, ",C%d", i);
  tell(&text, "\r\n%s", row(',', 41, with_id, 4));
  struct pwi_batch *a = read_rows(text.text, &parse, &status);
  assert_int_equal(status, PAWL_OK);
  struct pwi_batch *b = read_rows(row('\t', 40, plain, 3), &parse, &status);
  assert_int_equal(status, PAWL_OK);
  assert_same_rows(&a->is, &b->is);
  pwi_batch_destroy(a);
  pwi_batch_destroy(b);
}

static void assert_wrong(const char *second, const char *what, size_t column) {
  const struct field fields[] = {{0, "1"}};
  struct told text = {.size = 0};
  struct pwi_parse parse;
  pawl_status status;
  char copy[512];
  snprintf(copy, sizeof copy, "%s", second);
  tell(&text, "%s%s", row('\t', 40, fields, 1), copy);
  struct pwi_batch *batch = read_rows(text.text, &parse, &status);
  assert_int_equal(status, PAWL_CORRUPT);
  assert_string_equal(parse.what, what);
  assert_int_equal(parse.wrong - parse.at + 1, column);
  assert_int_equal(batch->is.rows, 1);
  pwi_batch_destroy(batch);
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  const struct field word[] = {{0, "1"}, {2, "many"}}, none[] = {{2, "3"}}, bad[] = {{0, "a"}}, half[] = {{0, "1a"}},
                     endless[] = {{0, "1"}, {1, "inf"}};
  (void)state;
  assert_wrong(row('\t', 40, word, 2), "this count is not a number", 4);
  assert_wrong(row('\t', 40, endless, 2), "this count is not a finite number", 3);
  assert_wrong(row('\t', 40, none, 1), "no label", 1);
  assert_wrong(row('\t', 40, bad, 1), "the label is not a number", 1);
  assert_wrong(row('\t', 40, half, 1), "unexpected character in a number", 2);
  assert_wrong(row('\t', 39, word, 1), "too few columns: expected a label, 13 counts and 26 categories", 40);
  assert_wrong(row('\t', 41, word, 1), "too many columns: expected a label, 13 counts and 26 categories", 42);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_are_logarithms_and_categories_are_ones),
      cmocka_unit_test(test_the_form_with_a_head_line_has_the_same_features),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
