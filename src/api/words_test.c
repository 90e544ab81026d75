/* Vocabularies from memory: <pawl/words.h>'s pawl_words_parse. */
#include <pawl/session.h>
#include <pawl/words.h>

#include "base/memory.h"
#include "base/testing.h"

static void test_text_in_memory_becomes_a_vocabulary(void **state) {
  (void)state;
  const char text[] = {'o', 'n', 'e', '\n', 't', 'w', 'o'}; /* ends with neither a line break nor a 0 */
  struct pawl_words *words;
  assert_int_equal(pawl_words_parse("here", text, sizeof text, &words), PAWL_OK);
  assert_int_equal(pawl_words_count(words), 2);
  assert_string_equal(pawl_words_at(words, 1), "two");
  assert_string_equal(pawl_words_at(words, 0), "one");
  pawl_words_release(words);
}

static void test_a_mistake_is_reported_with_the_name_of_the_file(void **state) {
  (void)state;
  struct pawl_words *words = NULL;
  assert_int_equal(pawl_words_parse("here", "one\none\n", 8, &words), PAWL_CORRUPT);
  assert_non_null(strstr(pawl_error_text(), "here:2:"));
  assert_int_equal(pawl_words_parse("here", "one\n\n", 5, &words), PAWL_CORRUPT);
  assert_int_equal(pawl_words_parse("here", NULL, 0, &words), PAWL_TRUNCATED);
  assert_null(words);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_words *words = NULL;
  pawl_status status = PAWL_NO_MEMORY;
  for (uint64_t n = 0; status == PAWL_NO_MEMORY; n++) {
    pwi_memory_fail_after(n);
    status = pawl_words_parse("here", "one\ntwo", 7, &words);
    pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
    assert_true((status == PAWL_OK) == (words != NULL));
  }
  pawl_words_release(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text_in_memory_becomes_a_vocabulary),
      cmocka_unit_test(test_a_mistake_is_reported_with_the_name_of_the_file),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
