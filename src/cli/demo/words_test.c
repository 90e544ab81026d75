/* What the demonstration makes of its data: the words that matter, the figures, and where it is looked for. */
#include <unistd.h>

#include "apps/linear/model/model.h"
#include "base/memory.h"
#include "base/testing.h"
#include "cli/demo/train.h"

static const struct pwi_command command = {.name = "demo"};
static char folder[] = "/tmp/pawl-demo-words-XXXXXX";

static void write_file(const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  write_file(PWI_DEMO_VOCABULARY, "ant\nbee\ncat\ndog\n");
  write_file(PWI_DEMO_TRAIN, "");
  write_file(PWI_DEMO_TEST, "+1 1:1\n-1 2:1\n+1 4:1\n-1 4:1\n");
  return 0;
}

static int remove_folder(void **state) {
  static const char *const names[] = {PWI_DEMO_VOCABULARY, PWI_DEMO_TRAIN, PWI_DEMO_TEST};
  char path[200];
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  return rmdir(folder);
}

/* "ant" and "dog" speak for the second class, "bee" for the first, "cat" for neither. */
static uint64_t ids[] = {1, 2, 4};
static double weights[] = {0.5, -2, 1.5};
static const struct pawl_linear_model model = {.about.loss = PAWL_LINEAR_LOGISTIC,
                                               .about.labels = {-1, 1},
                                               .about.class_weights = {1, 1},
                                               .about.features = 4,
                                               .about.nonzeros = 3,
                                               .ids = ids,
                                               .weights = weights};

static void test_words_stand_on_the_side_of_their_weight_the_heaviest_first(void **state) {
  struct pwi_demo_top top;
  (void)state;
  assert_int_equal(pwi_demo_top_init(&top, &command, folder, &model), PWI_EXIT_OK);
  assert_string_equal(top.words[0][0], "bee");
  assert_null(top.words[0][1]);
  assert_string_equal(top.words[1][0], "dog");
  assert_string_equal(top.words[1][1], "ant");
  assert_null(top.words[1][2]);
  pwi_demo_top_fini(&top);
  assert_null(top.words[0][0]);
}

static void test_a_model_without_weights_has_no_words(void **state) {
  struct pawl_linear_model empty = {.about.loss = PAWL_LINEAR_LOGISTIC, .about.labels = {-1, 1}};
  struct pwi_demo_top top;
  (void)state;
  assert_int_equal(pwi_demo_top_init(&top, &command, folder, &empty), PWI_EXIT_OK);
  assert_null(top.words[0][0]);
  assert_null(top.words[1][0]);
  pwi_demo_top_fini(&top);
}

static void test_words_survive_a_lack_of_memory(void **state) {
  struct pwi_demo_top top;
  int exit_code = PWI_EXIT_FAILURE;
  (void)state;
  for (uint64_t n = 0; exit_code != PWI_EXIT_OK; n++) {
    assert_true(n < 100);
    pwi_memory_fail_after(n);
    exit_code = pwi_demo_top_init(&top, &command, folder, &model);
    (void)!pwi_memory_fail_cancel();
    pwi_demo_top_fini(&top);
  }
}

static void test_the_figures_are_those_of_the_test_data(void **state) {
  struct pawl_linear_figures figures;
  (void)state;
  assert_int_equal(pwi_demo_test(&command, folder, &model, &figures), PWI_EXIT_OK);
  assert_int_equal(figures.rows, 4);
  assert_int_equal(figures.positive, 2);
  assert_true(figures.accuracy == 0.75);
  assert_int_equal(pwi_demo_test(&command, "/nowhere", &model, &figures), PWI_EXIT_FAILURE);
}

static void test_a_folder_has_the_data_or_has_not(void **state) {
  char found[PATH_MAX];
  (void)state;
  assert_true(pwi_demo_data_find(folder, found));
  assert_string_equal(found, folder);
  assert_false(pwi_demo_data_find("/nowhere", found));
  assert_int_equal(chdir("/tmp"), 0);
  assert_true(pwi_demo_data_find(folder, found));
  assert_string_equal(found, folder + strlen("/tmp/")); /* as one would type it there */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words_stand_on_the_side_of_their_weight_the_heaviest_first),
      cmocka_unit_test(test_a_model_without_weights_has_no_words),
      cmocka_unit_test(test_words_survive_a_lack_of_memory),
      cmocka_unit_test(test_the_figures_are_those_of_the_test_data),
      cmocka_unit_test(test_a_folder_has_the_data_or_has_not),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
