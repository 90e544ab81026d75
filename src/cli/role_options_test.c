

#include "base/testing.h"
#include "cli/role_options.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void test_sizes_have_units(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
  } good[] = {{"1", 1},
              {"512M", UINT64_C(512) << 20},
              {"8G", UINT64_C(8) << 30},
              {"8g", UINT64_C(8) << 30},
              {"3k", 3072},
              {"2T", UINT64_C(2) << 40},
              {"18446744073709551615", UINT64_MAX},
              {"16777215T", UINT64_C(16777215) << 40}};
  for (size_t i = 0; i < LENGTH(good); i++) {
    uint64_t bytes;
    assert_true(pwi_role_size(good[i].text, &bytes));
    assert_int_equal(bytes, good[i].bytes);
  }
  static const char *const bad[] = {"",
                                    "0",
                                    "0G",
                                    "G",
                                    "-1",
                                    "1.5G",
                                    "8GB",
                                    "8 G",
                                    "8x",
                                    "16777216T",
                                    "99999999999999999999999999",
                                    "18446744073709551616",
                                    "0x10",
                                    "8\x07"};
  for (size_t i = 0; i < LENGTH(bad); i++) {
    uint64_t bytes = 7;
    if (pwi_role_size(bad[i], &bytes)) fail_msg("accepted: '%s'", bad[i]);
    assert_int_equal(bytes, 7);
  }
}

static void test_seconds_may_have_a_fraction(void **state) {
  (void)state;
  int64_t span;
  assert_true(pwi_role_seconds("30", &span));
  assert_int_equal(span, INT64_C(30000000000));
  assert_true(pwi_role_seconds("0.25", &span));
  assert_int_equal(span, 250000000);
  assert_true(pwi_role_seconds("0", &span));
  assert_int_equal(span, 0);
  static const char *const bad[] = {"", "-1", "x", "1s", "inf", "nan", "1e10", " 1", "+1"};
  for (size_t i = 0; i < LENGTH(bad); i++)
    if (pwi_role_seconds(bad[i], &span)) fail_msg("accepted: '%s'", bad[i]);
}

static void test_addresses_are_shown_as_people_write_them(void **state) {
  (void)state;
  char page[64];
  assert_string_equal(pwi_role_short("tcp://node:7"), "node:7");
  assert_string_equal(pwi_role_short("unix:/run/pawl"), "unix:/run/pawl");
  pwi_role_page("127.0.0.1:0", false, 99, page, sizeof page);
  assert_string_equal(page, "http://127.0.0.1:99/");
  pwi_role_page(":7296", true, 7296, page, sizeof page);
  assert_string_equal(page, "https://127.0.0.1:7296/");
  pwi_role_page("[::1]:1-9", false, 3, page, sizeof page);
  assert_string_equal(page, "http://[::1]:3/");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes_have_units),
      cmocka_unit_test(test_seconds_may_have_a_fraction),
      cmocka_unit_test(test_addresses_are_shown_as_people_write_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
