#include "data/parse.h"

#include "base/hash.h"
#include "data/scene_test.h"

#define BITS 20

static const struct pwi_parse_rule rule = {.format = PAWL_DATA_VW, .hash_bits = BITS};

static void assert_reads(const char *text, const char *rows) {
  struct told told = parsed(&rule, text);
  assert_string_equal(told.text, rows);
}

static unsigned long long id_of(const char *space, const char *name) {
  uint64_t seed = *space ? pwi_hash(space, strlen(space), 0) : 0;
  return pwi_hashed_id(pwi_hash(name, strlen(name), seed), BITS);
}

/* One entry, in the notation of `told`. */
static const char *one(const char *before, const char *space, const char *name, const char *value) {
  static struct told told;
  told.size = 0;
  tell(&told, "%s %llu:%s; ", before, id_of(space, name), value);
  return told.text;
}

static void test_rows_may_lack_labels_if_that_is_said(void **state) {
  struct pwi_parse_rule optional = rule;
  (void)state;
  optional.labels_optional = true;
  assert_reads("| height:1.5\n", "!1:1 no label");
  assert_string_equal(parsed(&optional, "| height:1.5\n").text, one("nan", "", "height", "1.5"));
  assert_string_equal(parsed(&optional, "'tag| height:1.5\n").text, one("nan", "", "height", "1.5"));
}

static void test_names_are_hashed_with_their_space(void **state) {
  (void)state;
  assert_reads("1 | height:1.5\n", one("1", "", "height", "1.5"));
  assert_reads("-1 |body height\n", one("-1", "body", "height", "1"));
  assert_reads("1 |body:2 height:1.5\n", one("1", "body", "height", "3"));
  assert_true(id_of("body", "height") != id_of("", "height"));
}

static void test_ids_are_from_one_to_two_to_the_bits(void **state) {
  (void)state;
  assert_true(pwi_hashed_id(0, 1) == 1 && pwi_hashed_id(UINT64_MAX, 1) == 2);
  assert_true(pwi_hashed_id(UINT64_MAX, 62) == UINT64_C(1) << 62);
}

static void test_several_spaces_and_names_are_one_row(void **state) {
  struct told told = parsed(&rule, "1 |a x y:2 |b x:3| z\n2 |a x\n");
  unsigned long long ids[] = {id_of("a", "x"), id_of("a", "y"), id_of("b", "x"), id_of("", "z")};
  char entry[64];
  const char *row_end = strchr(told.text, ';');
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    snprintf(entry, sizeof entry, " %llu:%d", ids[i], i == 0 ? 1 : i == 3 ? 1 : (int)i + 1);
    const char *found = strstr(told.text, entry);
    assert_non_null(found);
    assert_true(found < row_end);
  }
}

static void test_importances_are_weights_and_tags_are_nothing(void **state) {
  (void)state;
  assert_reads("1 2.5 |a x\n", one("1*2.5", "a", "x", "1"));
  assert_reads("1 2.5 'tag|a x\n", one("1*2.5", "a", "x", "1"));
  assert_reads("1 'tag |a x\n", one("1", "a", "x", "1"));
  assert_reads("1 tag|a x\n", one("1", "a", "x", "1"));
  assert_reads("1 7|a x\n", one("1", "a", "x", "1")); /* the tag touches the bar */
  assert_reads("1|a x\n", one("1", "a", "x", "1"));
}

static void test_empty_spaces_and_lines_are_fine(void **state) {
  (void)state;
  assert_reads("\n1 |\r\n  \n2 |a |b\n3 ||\n", "1; 2; 3; ");
}

static void test_a_mistake_is_reported_with_its_place(void **state) {
  static const struct {
    const char *text, *wrong;
  } cases[] = {
      {"|a x\n", "!1:1 no label"},
      {"'tag |a x\n", "!1:1 no label"},
      {"yes |a x\n", "!1:1 the label is not a number"},
      {"inf |a x\n", "!1:1 the label does not fit a finite float"},
      {"1x |a x\n", "!1:2 unexpected character in a number"},
      {"1 a x\n", "!1:6 expected a bar before the features"},
      {"1 -2 |a x\n", "!1:3 the importance must be a finite number, 0 or more"},
      {"1 nan |a x\n", "!1:3 the importance must be a finite number, 0 or more"},
      {"1 1 0.5 |a x\n", "!1:5 a third number before the bar: initial predictions are not supported"},
      {"1 tag |a x\n", "!1:3 expected an importance, or a tag that begins with a quote"},
      {"1 'tag more|a x\n", "!1:8 unexpected text between the tag and the bar"},
      {"1 |a x:\n", "!1:8 expected a value behind the colon"},
      {"1 |a x: y\n", "!1:8 expected a value behind the colon"},
      {"1 |a: x\n", "!1:6 expected a value behind the colon"},
      {"1 |a :2\n", "!1:6 expected the name of a feature before the colon"},
      {"1 |a x:y\n", "!1:8 expected a number"},
      {"1 |a x:1:2\n", "!1:9 unexpected character in a number"},
      {"1 |a x:1y\n", "!1:9 unexpected character in a number"},
      {"1 |a x:inf\n", "!1:6 the value does not fit a finite float"},
      {"1 |a:1e30 x:1e30\n", "!1:11 the value does not fit a finite float"},
      {"1 |a x\ry\n", "!1:7 a carriage return within a line"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_reads(cases[i].text, cases[i].wrong);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_may_lack_labels_if_that_is_said),
      cmocka_unit_test(test_names_are_hashed_with_their_space),
      cmocka_unit_test(test_ids_are_from_one_to_two_to_the_bits),
      cmocka_unit_test(test_several_spaces_and_names_are_one_row),
      cmocka_unit_test(test_importances_are_weights_and_tags_are_nothing),
      cmocka_unit_test(test_empty_spaces_and_lines_are_fine),
      cmocka_unit_test(test_a_mistake_is_reported_with_its_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
