#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apps/common/guess.h"

/* Of 400 rows: three standard deviations of an error of a half are 0.075. */
static const struct apps_figures guess = {0.69, 0.5};

static bool is_guess(double loss, double error) {
  const struct apps_figures model = {loss, error};
  return apps_is_guess(&model, &guess, 400);
}

static void test_a_model_guesses_if_neither_its_loss_nor_its_errors_are_lower(void **state) {
  (void)state;
  assert_true(is_guess(0.69, 0.5));
  assert_true(is_guess(0.8, 0.43));
  assert_true(is_guess((double)NAN, 0.5));
  assert_false(is_guess(0.68, 0.5));
  assert_false(is_guess(0.8, 0.42));
}

static void test_numbers_are_judged_by_their_loss(void **state) {
  (void)state;
  const struct apps_figures mean = {2, 0}, better = {1.9, 0}, worse = {2.1, 0};
  assert_false(apps_is_guess(&better, &mean, 400));
  assert_true(apps_is_guess(&worse, &mean, 400));
}

static void test_few_rows_or_rows_of_one_class_tell_nothing(void **state) {
  (void)state;
  const struct apps_figures one_class = {0, 0}, bad = {5, 0.9};
  assert_false(apps_is_guess(&bad, &one_class, 400));
  assert_true(apps_is_guess(&bad, &guess, APPS_GUESS_ROWS));
  assert_false(apps_is_guess(&bad, &guess, APPS_GUESS_ROWS - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_model_guesses_if_neither_its_loss_nor_its_errors_are_lower),
      cmocka_unit_test(test_numbers_are_judged_by_their_loss),
      cmocka_unit_test(test_few_rows_or_rows_of_one_class_tell_nothing),
  };
  return cmocka_run_group_tests_name("apps.common.guess", tests, NULL, NULL);
}
