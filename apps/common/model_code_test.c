/* The part of model files that all kinds share: a reader accepts what was written, and refuses a file that was cut off or
 * changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/common/memory.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"

enum { NUMBERS = 20000 }; /* more than a sink holds */

static const uint32_t *numbers_of(void) {
  static uint32_t numbers[NUMBERS];
  for (uint32_t i = 0; i < NUMBERS; i++) numbers[i] = i * 2654435761u;
  return numbers;
}

static void fill(struct apps_sink *sink, const void *model) {
  apps_sink_number(sink, 0x0102, 2);
  apps_sink_numbers(sink, model, NUMBERS, 4);
  apps_sink_bytes(sink, "end", 3);
}

static char *bytes;
static size_t size;

static int begin(void **state) {
  (void)state;
  FILE *file = open_memstream(&bytes, &size);
  if (!file) return -1;
  json_t *about = json_pack("{s:s, s:i}", "kind", "test", "count", NUMBERS);
  assert_int_equal(apps_model_fill(file, about, fill, numbers_of()), PAWL_OK);
  return fclose(file);
}

static int end(void **state) {
  (void)state;
  free(bytes);
  return 0;
}

static void test_a_model_is_read_as_it_was_written(void **state) {
  (void)state;
  char why[APPS_TEXT_MAX] = "";
  json_t *about = NULL;
  uint64_t count = 0;
  size_t at = 0;
  assert_true(apps_model_begins(bytes, size));
  assert_memory_equal(bytes, "pawl-model 1 00000064\n{\n  \"kind\": \"test\"", 40);
  assert_int_equal(apps_model_head(bytes, size, "model", &at, &about, why), PAWL_OK);
  assert_int_equal(at % 64, 0);
  assert_int_equal(size, at + 2 + 4 * NUMBERS + 3 + APPS_MODEL_SUM);
  assert_true(apps_model_count(about, "count", 1, NUMBERS, &count));
  assert_int_equal(count, NUMBERS);
  assert_false(apps_model_count(about, "count", 0, NUMBERS - 1, &count));
  assert_false(apps_model_count(about, "count", NUMBERS + 1, UINT64_MAX, &count));
  assert_false(apps_model_count(about, "kind", 0, UINT64_MAX, &count));
  assert_false(apps_model_count(about, "nothing", 0, UINT64_MAX, &count));
  json_decref(about);
  assert_int_equal(apps_model_number(bytes + at, 2), 0x0102);
  for (size_t i = 0; i < NUMBERS; i++) assert_int_equal(apps_model_number(bytes + at + 2 + 4 * i, 4), numbers_of()[i]);
  assert_int_equal(apps_model_sum(bytes, size, why), PAWL_OK);
}

static void test_a_head_that_is_cut_off_is_not_read(void **state) {
  (void)state;
  for (size_t cut = 0; cut < 64; cut++) {
    char why[APPS_TEXT_MAX] = "", *part = apps_copy_bytes(bytes, cut); /* for a sanitizer to see reads beyond it */
    json_t *about = NULL;
    size_t at;
    assert_int_equal(apps_model_head(part, cut, "model", &at, &about, why), PAWL_TRUNCATED);
    assert_true(*why);
    apps_free(part);
  }
}

static void test_a_byte_that_was_changed_is_noticed(void **state) {
  (void)state;
  char why[APPS_TEXT_MAX] = "";
  for (size_t i = 0; i < size; i += 997) {
    bytes[i] ^= 4;
    assert_int_equal(apps_model_sum(bytes, size, why), PAWL_CORRUPT);
    bytes[i] ^= 4;
  }
}

static void refuse(const char *text, pawl_status status, const char *reason) {
  char why[APPS_TEXT_MAX] = "";
  json_t *about = NULL;
  size_t at;
  assert_int_equal(apps_model_head(text, strlen(text), "topic model", &at, &about, why), status);
  if (!strstr(why, reason)) fail_msg("'%s' is not in '%s'", reason, why);
}

static void test_heads_that_are_wrong_are_refused(void **state) {
  (void)state;
  refuse("", PAWL_TRUNCATED, "empty");
  refuse("some text of another kind", PAWL_CORRUPT, "not a topic model; expected a file that begins with");
  refuse("pawl-model 2 00000064\n{}", PAWL_UNSUPPORTED, "version 1");
  refuse("pawl-model 1 0000x064\n{}", PAWL_CORRUPT, "first line is damaged");
  refuse("pawl-model 1 00000022\n{}", PAWL_CORRUPT, "first line is damaged");
  refuse("pawl-model 1 99999999\n{}", PAWL_CORRUPT, "first line is damaged");
  refuse("pawl-model 1 00000024\n[]", PAWL_CORRUPT, "not a JSON object");
  refuse("pawl-model 1 00000024\n{x", PAWL_CORRUPT, "not a JSON object: ");
}

static void nothing(struct apps_sink *sink, const void *model) { (void)sink, (void)model; }

static void test_a_file_that_cannot_be_written_is_an_error(void **state) {
  (void)state;
  FILE *full = fopen("/dev/full", "wb");
  if (!full) skip();
  setvbuf(full, NULL, _IONBF, 0);
  assert_int_equal(apps_model_fill(full, json_object(), nothing, NULL), PAWL_IO);
  fclose(full);
  FILE *file = tmpfile();
  assert_int_equal(apps_model_fill(file, NULL, nothing, NULL), PAWL_NO_MEMORY);
  fclose(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_model_is_read_as_it_was_written),
      cmocka_unit_test(test_a_head_that_is_cut_off_is_not_read),
      cmocka_unit_test(test_a_byte_that_was_changed_is_noticed),
      cmocka_unit_test(test_heads_that_are_wrong_are_refused),
      cmocka_unit_test(test_a_file_that_cannot_be_written_is_an_error),
  };
  return cmocka_run_group_tests_name("apps.common.model_code", tests, begin, end);
}
