#include "data/formats/number.h"

#include <math.h>

#include "data/scene_test.h"

#define SEED 41

static const char *padded(const char *text) {
  static char room[256];
  memset(room, 0, sizeof room);
  snprintf(room, sizeof room - PWI_NUMBER_SLACK, "%s\n", text);
  return room;
}

/* The reference: the C library, in the "C" locale that tests run in. Floats must agree to the last bit. */
static void assert_like_strtod(const char *text) {
  const char *at = padded(text), *end = NULL;
  char *plain_end;
  double value = 0, plain = strtod(at, &plain_end);
  bool is_number = pwi_number(at, &end, &value);
  if (is_number != (plain_end != at)) fail_msg("%s: one takes it for a number", text);
  if (!is_number) return;
  if (end != plain_end) fail_msg("%s: ends elsewhere", text);
  float a = (float)value, b = (float)plain;
  if (isnan(a) && isnan(b)) return;
  if (memcmp(&a, &b, sizeof a) != 0) fail_msg("%s: %.17g instead of %.17g", text, value, plain);
}

static void test_numbers_of_every_shape_read_as_the_library_reads_them(void **state) {
  static const char *const texts[] = {
      "0",
      "1",
      "-1",
      "+1",
      "0.5",
      ".5",
      "5.",
      "-.5",
      "-0",
      "00012",
      "0.000001",
      "123456.789",
      "1e5",
      "1e-5",
      "1E+5",
      "1e",
      "1e+",
      "-1.5e-30",
      "1e400",
      "-1e400",
      "1e-400",
      "0x10",
      "0x1p-3",
      "0x",
      "inf",
      "-inf",
      "nan",
      "infinity",
      "",
      "-",
      "+",
      ".",
      "-.",
      "e5",
      "12345678",
      "123456789",
      "1234567.5",
      "12345678.5",
      "0.12345678",
      "0.123456789",
      "3.4028235e38",
      "3.4028236e38",
      "1.17549435e-38",
      "1e-45",
      "9007199254740993",
      "18446744073709551615",
      "99999999999999999999",
      "0.1000000000000000055511151231257827",
      "1.00000005960464477539062500001",
      "1.0000000596046448",
      "1.000000059604644775390625",
      "0.00000000000000000000000000000000012345",
      "123456789012345678901234567890",
      "1.5x",
      "1,5",
      "1:2",
      "1_0",
      "0.30000001192092896",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_like_strtod(texts[i]);
}

static void test_random_numbers_read_as_the_library_reads_them(void **state) {
  struct pwi_random random;
  char text[400];
  (void)state;
  print_message("seed %d\n", SEED);
  pwi_random_init(&random, SEED, 0);
  for (int i = 0; i < 200000; i++) {
    double scale = pow(10, (double)pwi_random_below(&random, 40) - 20);
    double value = (pwi_random_unit(&random) - 0.5) * (i % 3 ? 1 : scale);
    switch (i % 7) {
    case 0:
      snprintf(text, sizeof text, "%.6g", value);
      break;
    case 1:
      snprintf(text, sizeof text, "%.17g", value);
      break;
    case 2:
      snprintf(text, sizeof text, "%.3f", value);
      break;
    case 3:
      snprintf(text, sizeof text, "%.9f", value);
      break;
    case 4:
      snprintf(text, sizeof text, "%.15e", value);
      break;
    case 5:
      snprintf(text, sizeof text, "%.12g", value);
      break;
    default:
      snprintf(text, sizeof text, "%.0f", value);
      break;
    }
    assert_like_strtod(text);
  }
}

/* Numbers close to the midpoint of two floats, where the last digit decides. */
static void test_numbers_between_two_floats_go_to_the_right_one(void **state) {
  struct pwi_random random;
  char text[64];
  (void)state;
  pwi_random_init(&random, SEED, 1);
  for (int i = 0; i < 20000; i++) {
    float low = (float)pwi_random_unit(&random), high = nextafterf(low, 2);
    double middle = ((double)low + (double)high) / 2;
    middle = nextafter(middle, i % 3 == 0 ? 0 : i % 3 == 1 ? 2 : middle);
    snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.18g", middle);
    assert_like_strtod(text);
  }
}

static void test_random_characters_read_as_the_library_reads_them(void **state) {
  static const char letters[] = "0123456789.+-eE 00";
  struct pwi_random random;
  char text[24];
  (void)state;
  pwi_random_init(&random, SEED, 2);
  for (int i = 0; i < 200000; i++) {
    size_t size = 1 + pwi_random_below(&random, sizeof text - 1);
    for (size_t j = 0; j < size; j++) text[j] = letters[pwi_random_below(&random, sizeof letters - 1)];
    text[size - 1] = 0;
    if (text[0] == ' ') text[0] = '1'; /* strtod would skip a blank, our parser does not */
    assert_like_strtod(text);
  }
}

static void test_whole_numbers_end_at_two_to_the_63rd(void **state) {
  const char *at, *end;
  uint64_t value = 0;
  (void)state;
  at = padded("9223372036854775807:");
  assert_true(pwi_whole_number(at, &end, &value));
  assert_true(value == INT64_MAX && *end == ':');
  at = padded("9223372036854775808:");
  assert_false(pwi_whole_number(at, &end, &value));
  assert_int_equal(*end, ':');
  at = padded("99999999999999999999999999:");
  assert_false(pwi_whole_number(at, &end, &value));
  assert_int_equal(*end, ':');
  at = padded("-1");
  assert_false(pwi_whole_number(at, &end, &value));
  assert_ptr_equal(end, at);
}

static void test_eight_digits_have_the_value_of_single_ones(void **state) {
  struct pwi_random random;
  (void)state;
  pwi_random_init(&random, SEED, 3);
  for (int i = 0; i < 100000; i++) {
    unsigned char eight[8];
    unsigned digits = 0;
    uint64_t value = 0;
    for (int j = 0; j < 8; j++)
      eight[j] = (unsigned char)(pwi_random_below(&random, 12) ? '0' + pwi_random_below(&random, 10)
                                                               : pwi_random_below(&random, 256));
    while (digits < 8 && pwi_is_digit((char)eight[digits])) value = value * 10 + (uint64_t)(eight[digits++] - '0');
    assert_int_equal(pwi_digits_ahead(pwi_get_u64(eight)), digits);
    if (digits) assert_true(pwi_digits_value(pwi_get_u64(eight), digits) == value);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers_of_every_shape_read_as_the_library_reads_them),
      cmocka_unit_test(test_random_numbers_read_as_the_library_reads_them),
      cmocka_unit_test(test_numbers_between_two_floats_go_to_the_right_one),
      cmocka_unit_test(test_random_characters_read_as_the_library_reads_them),
      cmocka_unit_test(test_whole_numbers_end_at_two_to_the_63rd),
      cmocka_unit_test(test_eight_digits_have_the_value_of_single_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
