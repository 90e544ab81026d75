/* Growing texts: their contents, and the effect of a failure. */
#include "base/memory.h"
#include "base/testing.h"
#include "host/text.h"

static void test_an_empty_text_is_an_empty_string(void **state) {
  (void)state;
  struct pwi_text text = {0};
  assert_string_equal(pwi_text_view(&text), "");
  assert_int_equal(pwi_text_status(&text), PAWL_OK);
  pwi_text_add(&text, "");
  assert_string_equal(pwi_text_view(&text), "");
  pwi_text_fini(&text);
}

static void test_added_text_stands_in_order(void **state) {
  (void)state;
  struct pwi_text text = {0};
  pwi_text_add(&text, "a");
  pwi_text_print(&text, "%d-%s", 7, "b");
  pwi_text_add_bytes(&text, "c\0d", 3);
  assert_int_equal(text.length, 7);
  assert_memory_equal(text.bytes, "a7-bc\0d", 8);
  pwi_text_clear(&text);
  assert_string_equal(pwi_text_view(&text), "");
  pwi_text_fini(&text);
}

static void test_long_texts_keep_every_byte(void **state) {
  (void)state;
  struct pwi_text text = {0};
  for (int i = 0; i < 5000; i++) pwi_text_print(&text, "%04d", i);
  assert_int_equal(text.length, 20000);
  for (int i = 0; i < 5000; i++) {
    char four[5] = {0};
    memcpy(four, text.bytes + 4 * (size_t)i, 4);
    assert_int_equal(strtol(four, NULL, 10), i);
  }
  pwi_text_fini(&text);
}

static void test_nothing_is_added_after_a_failure(void **state) {
  (void)state;
  struct pwi_text text = {0};
  pwi_text_add(&text, "kept");
  pwi_memory_fail_after(0);
  pwi_text_print(&text, "%01000d", 1);
  assert_true(pwi_memory_fail_cancel());
  pwi_text_add(&text, "not added");
  assert_int_equal(pwi_text_status(&text), PAWL_NO_MEMORY);
  assert_string_equal(pwi_text_view(&text), "kept");
  pwi_text_clear(&text);
  assert_int_equal(pwi_text_status(&text), PAWL_OK);
  pwi_text_fini(&text);
}

static void test_a_text_has_a_largest_size(void **state) {
  (void)state;
  struct pwi_text text = {0};
  pwi_text_add_bytes(&text, "", SIZE_MAX);
  assert_int_equal(pwi_text_status(&text), PAWL_TOO_LARGE);
  pwi_text_clear(&text);
  pwi_text_add_bytes(&text, "", PWI_TEXT_MAX);
  assert_int_equal(pwi_text_status(&text), PAWL_TOO_LARGE);
  assert_int_equal(text.length, 0);
  pwi_text_fini(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_empty_text_is_an_empty_string), cmocka_unit_test(test_added_text_stands_in_order),
      cmocka_unit_test(test_long_texts_keep_every_byte),       cmocka_unit_test(test_nothing_is_added_after_a_failure),
      cmocka_unit_test(test_a_text_has_a_largest_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
