/* Decorations: what is not a terminal gets none, and a little never looks like nothing. */
#include <math.h>
#include <unistd.h>

#include "base/testing.h"
#include "cli/cli.h"

static const struct pwi_paint plain = {.width = 100}, rich = {.colour = true, .blocks = true, .width = 100};

static void test_without_colour_ink_is_nothing(void **state) {
  (void)state;
  for (int ink = PWI_INK_PLAIN; ink <= PWI_INK_BLUE; ink++) {
    assert_string_equal(pwi_paint_ink(&plain, (enum pwi_ink)ink), "");
    assert_int_equal(pwi_paint_ink(&rich, (enum pwi_ink)ink)[0], '\033');
  }
}

static void test_a_little_never_looks_like_nothing(void **state) {
  (void)state;
  assert_string_equal(pwi_paint_level(&plain, 0), " ");
  assert_string_equal(pwi_paint_level(&plain, 1e-9), ".");
  assert_string_equal(pwi_paint_level(&plain, 1), "@");
  assert_string_equal(pwi_paint_level(&plain, 17), "@");
  assert_string_equal(pwi_paint_level(&plain, -1), " ");
  assert_string_equal(pwi_paint_level(&rich, 1), "█");
}

/* What a bar prints, caught on its way to standard output. */
static void bar(int cells, double full, double mark, char *text, size_t size) {
  FILE *catcher = tmpfile();
  assert_non_null(catcher);
  fflush(stdout);
  int kept = dup(STDOUT_FILENO);
  assert_true(kept >= 0 && dup2(fileno(catcher), STDOUT_FILENO) >= 0);
  pwi_paint_bar(&plain, cells, full, mark, PWI_INK_GREEN);
  fflush(stdout);
  assert_true(dup2(kept, STDOUT_FILENO) >= 0);
  close(kept);
  rewind(catcher);
  text[fread(text, 1, size - 1, catcher)] = '\0';
  fclose(catcher);
}

static void test_bar_has_its_length_whatever_the_figures(void **state) {
  static const double figures[] = {0, 0.01, 0.5, 0.99, 1, 2, -1, NAN};
  char text[64];
  (void)state;
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    for (size_t j = 0; j < sizeof figures / sizeof *figures; j++) {
      bar(20, figures[i], figures[j], text, sizeof text);
      assert_int_equal(strlen(text), 20);
    }
  bar(8, 0.5, 0.75, text, sizeof text);
  assert_string_equal(text, "#### |  ");
  bar(8, 1, 0.25, text, sizeof text);
  assert_string_equal(text, "#|######");
  bar(8, 0.5, -1, text, sizeof text);
  assert_string_equal(text, "####    ");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_colour_ink_is_nothing),
      cmocka_unit_test(test_a_little_never_looks_like_nothing),
      cmocka_unit_test(test_bar_has_its_length_whatever_the_figures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
