#include "base/json.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

static void check(const char *text, const char *wanted) {
  char *escaped = pwi_json_text(text);
  json_t *string = pwi_json_string(text);
  assert_string_equal(escaped, wanted);
  assert_string_equal(json_string_value(string), wanted);
  json_decref(string);
  pwi_free(escaped);
}

static void test_bytes_that_are_no_characters_are_shown(void **state) {
  (void)state;
  check("", "");
  check("/backup/nightly", "/backup/nightly");
  check("/b\xc3\xa4"
        "ckup \xe2\x82\xac \xf0\x9f\x90\xbe",
        "/b\xc3\xa4"
        "ckup \xe2\x82\xac \xf0\x9f\x90\xbe");
  check("/data/\xff\xfe", "/data/\\xff\\xfe");
  check("caf\xe9", "caf\\xe9");             /* Latin-1 */
  check("\xc0\xaf", "\\xc0\\xaf");          /* an overlong slash */
  check("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half a surrogate pair */
  check("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
  check("\xe2\x82", "\\xe2\\x82"); /* cut short */
  assert_null(pwi_json_string(NULL));
}

/* Any bytes give a string, and the JSON library has the same notion of UTF-8. */
static void test_any_bytes_become_a_string(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 7, 1);
  for (int round = 0; round < 20000; round++) {
    char text[12];
    size_t size = pwi_random_below(&random, sizeof text);
    for (size_t i = 0; i < size; i++) text[i] = (char)(1 + pwi_random_below(&random, 255));
    text[size] = '\0';
    json_t *plain = json_string(text), *string = pwi_json_string(text);
    assert_non_null(string);
    if (plain) assert_string_equal(json_string_value(string), text);
    if (!plain) assert_non_null(strstr(json_string_value(string), "\\x"));
    json_decref(plain);
    json_decref(string);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_that_are_no_characters_are_shown),
      cmocka_unit_test(test_any_bytes_become_a_string),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
