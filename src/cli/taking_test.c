/* Values of options that are taken, and those that are refused and leave everything as it was. */
#include "base/testing.h"
#include "cli/taking.h"

static const struct pwi_command command = {.name = "test"};

static void test_whole_numbers_are_in_their_range(void **state) {
  struct pwi_cli_taking taking = {.command = &command};
  uint64_t number = 7;
  uint32_t narrow = 7;
  (void)state;
  assert_true(pwi_cli_take_number(&taking, "3", 3, UINT64_MAX, &number) && number == 3);
  assert_true(pwi_cli_take_number(&taking, "18446744073709551615", 3, UINT64_MAX, &number) && number == UINT64_MAX);
  assert_true(pwi_cli_take_number32(&taking, "4294967295", 0, UINT32_MAX, &narrow) && narrow == UINT32_MAX);
  assert_int_equal(taking.exit_code, 0);
  assert_false(pwi_cli_take_number(&taking, "2", 3, 9, &number));
  assert_int_equal(taking.exit_code, PWI_EXIT_USAGE);
  assert_false(pwi_cli_take_number(&taking, "10", 3, 9, &number));
  assert_false(pwi_cli_take_number(&taking, "5x", 3, 9, &number));
  assert_false(pwi_cli_take_number32(&taking, "4294967296", 0, UINT32_MAX, &narrow));
  assert_true(number == UINT64_MAX && narrow == UINT32_MAX);
}

static void test_real_numbers_have_a_unit(void **state) {
  struct pwi_cli_taking taking = {.command = &command};
  double number = 0;
  (void)state;
  assert_true(pwi_cli_take_real(&taking, "2.5", 0, 10, 1e6, &number) && number > 2499999 && number < 2500001);
  static const char *const wrong[] = {"", "nan", "inf", "1 ", "11", "-1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(pwi_cli_take_real(&taking, wrong[i], 0, 10, 1, &number));
  assert_true(number > 2499999);
}

static void test_lists_have_as_many_numbers_as_fit(void **state) {
  struct pwi_cli_taking taking = {.command = &command};
  uint32_t numbers[3] = {0};
  size_t count = 0;
  (void)state;
  assert_true(pwi_cli_take_numbers(&taking, "2,20,5", 2, 20, numbers, 3, &count));
  assert_true(count == 3 && numbers[0] == 2 && numbers[1] == 20 && numbers[2] == 5);
  assert_true(pwi_cli_take_numbers(&taking, "9", 2, 20, numbers, 3, &count) && count == 1);
  static const char *const wrong[] = {"", "2,", ",2", "2,,3", "1", "21", "2,3,4,5", "2;3"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(pwi_cli_take_numbers(&taking, wrong[i], 2, 20, numbers, 3, &count));
}

static void test_words_are_numbered(void **state) {
  struct pwi_cli_taking taking = {.command = &command};
  static const char *const words[] = {"one", "two"};
  int number = 7;
  (void)state;
  assert_true(pwi_cli_take_word(&taking, "two", words, 2, "one or two", &number) && number == 1);
  assert_false(pwi_cli_take_word(&taking, "three", words, 2, "one or two", &number));
  assert_int_equal(number, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_whole_numbers_are_in_their_range),
      cmocka_unit_test(test_real_numbers_have_a_unit),
      cmocka_unit_test(test_lists_have_as_many_numbers_as_fit),
      cmocka_unit_test(test_words_are_numbered),
  };
  return cmocka_run_group_tests_name("cli.taking", tests, NULL, NULL);
}
