
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "cli/cluster/values.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const enum pawl_type types[] = {PAWL_F32, PAWL_F64, PAWL_I32, PAWL_I64, PAWL_U64};

/* What pwi_value_print prints. */
static void print(enum pawl_type type, const void *value, bool json, char text[64]) {
  memset(text, 0, 64);
  FILE *file = fmemopen(text, 64, "w");
  assert_non_null(file);
  pwi_value_print(file, type, value, json);
  assert_int_equal(fclose(file), 0);
}

static void test_every_number_is_read_back_as_it_was_printed(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 5, 0);
  for (int round = 0; round < 20000; round++) {
    enum pawl_type type = types[round % 5];
    uint64_t bits = pwi_random_u64(&random), again = 0;
    char text[64];
    float narrow;
    double wide;
    memcpy(&narrow, &bits, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    if ((type == PAWL_F32 && !isfinite(narrow)) || (type == PAWL_F64 && !isfinite(wide))) continue;
    print(type, &bits, round % 2, text);
    const char *end = pwi_value_read(text, type, &again);
    assert_non_null(end);
    assert_int_equal(*end, '\0');
    assert_memory_equal(&bits, &again, pawl_type_size(type));
  }
}

static void test_short_numbers_are_printed_short(void **state) {
  (void)state;
  char text[64];
  float third = 0.1f, large = 1e30f;
  double tenth = 0.1;
  print(PAWL_F32, &third, false, text);
  assert_string_equal(text, "0.1");
  print(PAWL_F32, &large, false, text);
  assert_string_equal(text, "1e+30");
  print(PAWL_F64, &tenth, false, text);
  assert_string_equal(text, "0.1");
  double odd[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
  static const char *const words[] = {"nan", "inf", "-inf"};
  for (size_t i = 0; i < LENGTH(odd); i++) {
    print(PAWL_F64, &odd[i], false, text);
    assert_string_equal(text, words[i]);
    print(PAWL_F64, &odd[i], true, text);
    assert_string_equal(text, "null");
  }
}

static void test_what_does_not_fit_is_no_number(void **state) {
  (void)state;
  static const struct {
    enum pawl_type type;
    const char *text;
  } bad[] = {
      {PAWL_F32, ""},
      {PAWL_F32, "x"},
      {PAWL_F32, "1e39"},
      {PAWL_F32, "1.5x"},
      {PAWL_F64, "--1"},
      {PAWL_I32, "2147483648"},
      {PAWL_I32, "-2147483649"},
      {PAWL_I32, "1.5"},
      {PAWL_I64, "9223372036854775808"},
      {PAWL_U64, "-1"},
      {PAWL_U64, "18446744073709551616"},
      {PAWL_U64, "+1"},
      {PAWL_I64, " "},
      {PAWL_U64, ","},
  };
  for (size_t i = 0; i < LENGTH(bad); i++) {
    uint64_t value = 77;
    if (pwi_value_read(bad[i].text, bad[i].type, &value)) fail_msg("accepted: '%s'", bad[i].text);
    assert_int_equal(value, 77);
  }
}

static void test_words_name_what_they_mean(void **state) {
  (void)state;
  for (size_t i = 0; i < LENGTH(types); i++) {
    enum pawl_type type;
    assert_true(pwi_value_type_read(pwi_value_type_name(types[i]), &type));
    assert_int_equal(type, types[i]);
  }
  enum pawl_type type = PAWL_F64;
  enum pawl_placement placement;
  enum pawl_layout layout;
  struct pawl_vector_options options = {0};
  assert_false(pwi_value_type_read("f16", &type));
  assert_false(pwi_value_type_read("", &type));
  assert_string_equal(pwi_value_type_name((enum pawl_type)99), "?");
  assert_true(pwi_value_placement_read("mixed", &placement));
  assert_int_equal(placement, PAWL_PLACE_MIXED);
  assert_true(pwi_value_layout_read("sparse", &layout));
  assert_int_equal(layout, PAWL_LAYOUT_SPARSE);
  assert_string_equal(pwi_value_function_text(&options), "add");
  options.function = PAWL_ASSIGN;
  assert_string_equal(pwi_value_function_text(&options), "assign");
  assert_true(pwi_value_function_read("adagrad rate=0.1", &options));
  assert_false(pwi_value_function_read("", &options));
  options.function = PAWL_RULE;
  assert_string_equal(pwi_value_function_text(&options), "adagrad rate=0.1");
}

static void test_rows_are_read_and_sorted(void **state) {
  (void)state;
  struct pwi_rows_read rows = {.type = PAWL_I32, .width = 2};
  uint64_t twice = 0;
  assert_int_equal(pwi_rows_add(&rows, "9=1,2", '='), PWI_ROW_OK);
  assert_int_equal(pwi_rows_add(&rows, " 3  -4\t5 \n", ' '), PWI_ROW_OK);
  assert_int_equal(pwi_rows_add(&rows, "18446744073709551614 6,7", ' '), PWI_ROW_OK);
  assert_int_equal(pwi_rows_sort(&rows, &twice), PAWL_OK);
  static const uint64_t keys[] = {3, 9, UINT64_MAX - 1};
  static const int32_t values[] = {-4, 5, 1, 2, 6, 7};
  assert_int_equal(rows.count, 3);
  assert_memory_equal(rows.keys, keys, sizeof keys);
  assert_memory_equal(rows.values, values, sizeof values);
  assert_int_equal(pwi_rows_add(&rows, "9 0 0", ' '), PWI_ROW_OK);
  assert_int_equal(pwi_rows_sort(&rows, &twice), PAWL_EXISTS);
  assert_int_equal(twice, 9);
  pwi_rows_fini(&rows);
}

static void test_a_row_that_is_none_changes_nothing(void **state) {
  (void)state;
  static const struct {
    const char *text;
    char joint;
    enum pwi_row_fault fault;
  } bad[] = {
      {"", ' ', PWI_ROW_NO_KEY},          {"=1,2", '=', PWI_ROW_NO_KEY},
      {"-1=1,2", '=', PWI_ROW_NO_KEY},    {"1 1,2", '=', PWI_ROW_NO_KEY},
      {"1=1,2", ' ', PWI_ROW_NO_KEY},     {"x 1 2", ' ', PWI_ROW_NO_KEY},
      {"1=", '=', PWI_ROW_TOO_FEW},       {"1=1", '=', PWI_ROW_TOO_FEW},
      {"1", ' ', PWI_ROW_TOO_FEW},        {"1=1,2,3", '=', PWI_ROW_TOO_MANY},
      {"1 1 2 3", ' ', PWI_ROW_TOO_MANY}, {"1=1,b", '=', PWI_ROW_BAD_VALUE},
      {"1=1;2", '=', PWI_ROW_BAD_VALUE},  {"18446744073709551616 1 2", ' ', PWI_ROW_NO_KEY},
  };
  struct pwi_rows_read rows = {.type = PAWL_F32, .width = 2};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    enum pwi_row_fault fault = pwi_rows_add(&rows, bad[i].text, bad[i].joint);
    if (fault != bad[i].fault) fail_msg("'%s' gives %d", bad[i].text, (int)fault);
    assert_int_equal(rows.count, 0);
  }
  pwi_rows_fini(&rows);
}

static pawl_status fill_rows(void) {
  struct pwi_rows_read rows = {.type = PAWL_F64, .width = 1};
  char text[32];
  uint64_t twice;
  pawl_status status = PAWL_OK;
  for (int i = 200; i > 0 && !status; i--) {
    snprintf(text, sizeof text, "%d %d", i, i);
    if (pwi_rows_add(&rows, text, ' ') == PWI_ROW_NO_MEMORY) status = PAWL_NO_MEMORY;
  }
  if (!status) status = pwi_rows_sort(&rows, &twice);
  pwi_rows_fini(&rows);
  return status;
}

static void test_no_memory_is_said_and_nothing_leaks(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (int failed = 1; failed; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = fill_rows();
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_number_is_read_back_as_it_was_printed),
      cmocka_unit_test(test_short_numbers_are_printed_short),
      cmocka_unit_test(test_what_does_not_fit_is_no_number),
      cmocka_unit_test(test_words_name_what_they_mean),
      cmocka_unit_test(test_rows_are_read_and_sorted),
      cmocka_unit_test(test_a_row_that_is_none_changes_nothing),
      cmocka_unit_test(test_no_memory_is_said_and_nothing_leaks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
