/* Describing the differences between two vectors. */
#include "base/testing.h"
#include "api/shape.h"

static const struct pawl_vector_options plain = {
    .type = PAWL_F32, .width = 1, .size = 100, .placement = PAWL_PLACE_ORDERED, .layout = PAWL_LAYOUT_DENSE};

static void test_equal_options_do_not_differ(void **state) {
  char text[PWI_SHAPE_TEXT_MAX];
  (void)state;
  assert_int_equal(pwi_shape_difference(&plain, &plain, text, sizeof text), 0);
  assert_string_equal(text, "");
}

static void test_each_difference_is_named(void **state) {
  char text[PWI_SHAPE_TEXT_MAX];
  struct pawl_vector_options other = plain;
  (void)state;
  other.width = 3;
  other.type = PAWL_I64;
  assert_int_equal(pwi_shape_difference(&other, &plain, text, sizeof text), 2);
  assert_string_equal(text, "its width is 3, not 1, and its type is i64, not f32");
  other = plain;
  other.function = PAWL_RULE;
  strcpy(other.rule, "adagrad rate=0.1");
  assert_int_equal(pwi_shape_difference(&other, &plain, text, sizeof text), 2);
  assert_string_equal(text, "its function is a rule, not add, and its rule is 'adagrad rate=0.1', not 'none'");
  other = plain;
  other.size = 7;
  other.placement = PAWL_PLACE_MIXED;
  other.layout = PAWL_LAYOUT_SPARSE;
  strcpy(other.filters, "half");
  assert_int_equal(pwi_shape_difference(&other, &plain, text, sizeof text), 4);
}

static void test_a_text_that_is_too_long_is_cut_off(void **state) {
  struct pawl_vector_options other = {.type = PAWL_I64, .width = 3, .size = 7, .layout = PAWL_LAYOUT_SPARSE};
  (void)state;
  for (size_t size = 1; size < 120; size++) {
    char text[128];
    memset(text, '?', sizeof text);
    assert_int_equal(pwi_shape_difference(&other, &plain, text, size), 5);
    assert_true(strnlen(text, size) < size);
    assert_int_equal(text[size], '?');
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_options_do_not_differ),
      cmocka_unit_test(test_each_difference_is_named),
      cmocka_unit_test(test_a_text_that_is_too_long_is_cut_off),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
