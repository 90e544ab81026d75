/* Reading options, and refusing what is not one. What is printed goes to standard error and is looked at by the tests
 * in tests/cli; here it matters what comes back. */
#include "base/testing.h"
#include "cli/cli.h"

enum { LETTER_LONG = 300 };

static const struct pwi_cli_option options[] = {
    {'s', "seed", "NUMBER", "a value"},
    {LETTER_LONG, "force", NULL, "no letter"},
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command = {.name = "toy", .arguments = "FILE", .summary = "a toy", .options = options};

#define READ(args, ...)                                                                                                \
  char *words[] = {(char[]){"toy"}, __VA_ARGS__, NULL};                                                                \
  struct pwi_cli_args args;                                                                                            \
  pwi_cli_begin(&args, &command, (int)(sizeof words / sizeof *words) - 1, words)
#define WORD(text) ((char[]){text})

static void test_options_are_read_in_any_order_and_form(void **state) {
  (void)state;
  READ(args, WORD("file"), WORD("--seed=7"), WORD("-s"), WORD("8"), WORD("--force"), WORD("--json"), WORD("-s9"));
  assert_int_equal(pwi_cli_next(&args), 's');
  assert_string_equal(args.value, "7");
  assert_int_equal(pwi_cli_next(&args), 's');
  assert_string_equal(args.value, "8");
  assert_int_equal(pwi_cli_next(&args), LETTER_LONG);
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_LETTER_JSON);
  assert_int_equal(pwi_cli_next(&args), 's');
  assert_string_equal(args.value, "9");
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_END);
  assert_true(pwi_cli_arguments(&args, 1, 1));
  assert_string_equal(args.argv[args.rest], "file");
}

static void test_two_dashes_end_the_options(void **state) {
  (void)state;
  READ(args, WORD("--"), WORD("--json"));
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_END);
  assert_true(pwi_cli_arguments(&args, 1, 1));
  assert_string_equal(args.argv[args.rest], "--json");
}

static void test_in_order_options_end_at_the_first_argument(void **state) {
  (void)state;
  READ(args, WORD("--json"), WORD("env"), WORD("--force"));
  args.in_order = true;
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_LETTER_JSON);
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_END);
  assert_int_equal(args.rest, 2);
}

static void refuses(char *first, char *second) {
  READ(args, first, second);
  args.argc = second ? 3 : 2;
  int letter;
  while ((letter = pwi_cli_next(&args)) >= 0) continue;
  assert_int_equal(letter, PWI_CLI_STOP);
  assert_int_equal(args.exit_code, PWI_EXIT_USAGE);
}

static void test_wrong_options_are_refused(void **state) {
  (void)state;
  refuses(WORD("--sede"), WORD("7"));
  refuses(WORD("--nothing-like-it"), NULL);
  refuses(WORD("--=x"), NULL);
  refuses(WORD("-x"), NULL);
  refuses(WORD("--seed"), NULL);
  refuses(WORD("-s"), NULL);
  refuses(WORD("--json=yes"), NULL);
  refuses(WORD("--log-level"), WORD("loud"));
}

static void test_help_is_printed_and_stops(void **state) {
  (void)state;
  READ(args, WORD("--help"));
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_STOP);
  assert_int_equal(args.exit_code, PWI_EXIT_OK);
}

static void test_too_few_and_too_many_arguments_are_refused(void **state) {
  (void)state;
  READ(args, WORD("one"), WORD("two"));
  assert_int_equal(pwi_cli_next(&args), PWI_CLI_END);
  assert_true(pwi_cli_arguments(&args, 0, 2));
  assert_false(pwi_cli_arguments(&args, 0, 1));
  assert_int_equal(args.exit_code, PWI_EXIT_USAGE);
  args.exit_code = 0;
  assert_false(pwi_cli_arguments(&args, 3, 3));
  assert_int_equal(args.exit_code, PWI_EXIT_USAGE);
}

static void test_numbers_are_whole_and_fit(void **state) {
  uint64_t number = 5;
  (void)state;
  assert_true(pwi_cli_number("0", &number) && number == 0);
  assert_true(pwi_cli_number("42", &number) && number == 42);
  assert_true(pwi_cli_number("010", &number) && number == 10);
  assert_true(pwi_cli_number("0xff", &number) && number == 255);
  assert_true(pwi_cli_number("18446744073709551615", &number) && number == UINT64_MAX);
  number = 5;
  static const char *const wrong[] = {"", " 1", "-1", "+1", "1 ", "1.5", "x", "0x", "0x1g", "18446744073709551616"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(pwi_cli_number(wrong[i], &number));
  assert_int_equal(number, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_are_read_in_any_order_and_form),
      cmocka_unit_test(test_two_dashes_end_the_options),
      cmocka_unit_test(test_in_order_options_end_at_the_first_argument),
      cmocka_unit_test(test_wrong_options_are_refused),
      cmocka_unit_test(test_help_is_printed_and_stops),
      cmocka_unit_test(test_too_few_and_too_many_arguments_are_refused),
      cmocka_unit_test(test_numbers_are_whole_and_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
