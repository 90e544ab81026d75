/* The command line of `pawl train`: values, names, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cli/train/files.h"
#include "cli/train/figures.h"

static void test_values_are_numbers_with_commas_between_them(void **state) {
  (void)state;
  struct pwi_train_values values;
  assert_true(pwi_train_values_read("1", &values));
  assert_int_equal(values.count, 1);
  assert_true(pwi_train_values_read("10,.5,1e-3,0", &values));
  assert_int_equal(values.count, 4);
  assert_true(values.at[1] == 0.5 && values.at[2] == 1e-3 && values.at[3] == 0);
  static const char *const bad[] = {"",    ",",  "1,", ",1",  "1,,2",  "-1",   "nan",
                                    "inf", " 1", "1 ", "1;2", "1,1.0", "1e999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(pwi_train_values_read(bad[i], &values));
  char many[4096] = "0";
  for (int i = 1; i < 65; i++) snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
  assert_false(pwi_train_values_read(many, &values));
  assert_int_equal(values.count, 4); /* what is refused changes nothing */
}

static void test_the_help_names_every_method(void **state) {
  (void)state;
  const char *name;
  for (int i = 1; *(name = pawl_linear_method_name((enum pawl_linear_method)i)); i++)
    if (!strstr(PWI_TRAIN_METHODS, name)) fail_msg("%s is not in '%s'", name, PWI_TRAIN_METHODS);
  assert_non_null(strstr(PWI_TRAIN_METHODS, pawl_linear_method_name(PAWL_LINEAR_METHOD_NEWTON)));
}

static void test_workers_are_a_number_or_a_range(void **state) {
  (void)state;
  uint32_t least = 7, most = 7;
  assert_true(pwi_train_workers_read("3", &least, &most));
  assert_true(least == 3 && most == 3);
  assert_true(pwi_train_workers_read("1:8", &least, &most));
  assert_true(least == 1 && most == 8);
  assert_true(pwi_train_workers_read("0", &least, &most));
  static const char *const bad[] = {
      "", ":", "1:", ":8", "0:8", "8:1", "1:2:3", "-1", "2000", "1:2000", "many", "1.5", "99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(pwi_train_workers_read(bad[i], &least, &most));
  assert_true(least == 0 && most == 0);
}

static void expect_name(const char *data, enum pawl_linear_format format, const char *expected) {
  char *name = pwi_train_model_name(data, format);
  assert_non_null(name);
  assert_string_equal(name, expected);
  pwi_free(name);
}

static void test_a_model_is_called_like_its_data(void **state) {
  (void)state;
  expect_name("a9a.svm", PAWL_LINEAR_FORMAT_PAWL, "a9a.model");
  expect_name("/data/x.y/a9a", PAWL_LINEAR_FORMAT_PAWL, "a9a.model");
  expect_name("../ads.vw.gz", PAWL_LINEAR_FORMAT_PAWL, "ads.model");
  expect_name("ads.cache.zst", PAWL_LINEAR_FORMAT_NPY, "ads.npy");
  expect_name("ads.svm", PAWL_LINEAR_FORMAT_LIBLINEAR, "ads.liblinear");
  expect_name("day-*.svm", PAWL_LINEAR_FORMAT_PAWL, "day.model");
  expect_name("/data/*.svm", PAWL_LINEAR_FORMAT_PAWL, "pawl.model");
  expect_name(".hidden", PAWL_LINEAR_FORMAT_PAWL, ".hidden.model");
  expect_name("two.dots.svm", PAWL_LINEAR_FORMAT_PAWL, "two.dots.model");
}

static void expect_point(const char *output, const char *mark, const char *expected) {
  char *name = pwi_train_point_name(output, mark);
  assert_non_null(name);
  assert_string_equal(name, expected);
  pwi_free(name);
}

static void test_models_of_a_path_have_the_value_before_their_suffix(void **state) {
  (void)state;
  expect_point("m.model", "l1=0.1", "m.l1=0.1.model");
  expect_point("a.b/m", "l1=0.1", "a.b/m.l1=0.1");
  expect_point("m.npy", "", "m.npy");
  expect_point(".m", "l2=1", ".m.l2=1");
}

static void test_numbers_have_no_more_digits_than_it_takes(void **state) {
  (void)state;
  char text[32];
  assert_string_equal(pwi_train_number(0.1, text), "0.1");
  assert_string_equal(pwi_train_number(1, text), "1");
  assert_string_equal(pwi_train_number(10, text), "10");
  assert_string_equal(pwi_train_number(12345678, text), "12345678");
  assert_string_equal(pwi_train_number(1e-10, text), "1e-10");
  assert_string_equal(pwi_train_number(0.1 + 0.2, text), "0.30000000000000004");
}

static void test_people_get_short_numbers(void **state) {
  (void)state;
  char text[32];
  assert_string_equal(pwi_train_short(0, text), "0");
  assert_string_equal(pwi_train_short(999, text), "999");
  assert_string_equal(pwi_train_short(1000, text), "1.00k");
  assert_string_equal(pwi_train_short(1234567, text), "1.23M");
  assert_string_equal(pwi_train_short(45678, text), "45.7k");
  assert_string_equal(pwi_train_short(999600, text), "1.00M");
  assert_string_equal(pwi_train_short(1e30, text), "1000000000000000P");
  assert_string_equal(pwi_train_time(0.04, text), "0.0 s");
  assert_string_equal(pwi_train_time(59, text), "59 s");
  assert_string_equal(pwi_train_time(90, text), "1:30");
  assert_string_equal(pwi_train_time(3725, text), "1:02:05");
  assert_string_equal(pwi_train_time(1e300, text), "long");
}

static void test_the_line_tells_what_is_known_and_nothing_else(void **state) {
  (void)state;
  char line[PWI_TRAIN_LINE_MAX];
  struct pawl_linear_progress is = {.stage = "training",
                                    .points = 1,
                                    .round = 12,
                                    .objective = 10558.72,
                                    .nonzeros = 102,
                                    .valid_loss = NAN,
                                    .left_s = NAN,
                                    .wait_pct = 3.2,
                                    .examples_per_s = 2.1e6,
                                    .bytes_per_s = 41e6,
                                    .slowest = 1,
                                    .workers = 2};
  pwi_train_figures_line(&is, line);
  assert_string_equal(line, "round 12  objective 10558.72  nnz 102  2.10M ex/s  wait 3%  41.0MB/s");
  is.valid_loss = 0.3231;
  is.left_s = 75;
  is.slowest = 1.52;
  is.slowest_host = "node7";
  is.slowest_pid = 4711;
  is.points = 3;
  is.point = 1;
  is.l1 = 0.1;
  pwi_train_figures_line(&is, line);
  assert_string_equal(line,
                      "[2/3 l1=0.1 l2=0] round 12  objective 10558.72  nnz 102  valid 0.3231  left 1:15  2.10M ex/s  "
                      "wait 3%  41.0MB/s  slowest 1.5x (node7:4711)");
  is = (struct pawl_linear_progress){.stage = "loading", .workers = 1, .rows = 32561, .seconds = 0.5};
  pwi_train_figures_line(&is, line);
  assert_string_equal(line, "loading  1 worker  32.6k rows  0.5 s");
}

/* --- whole command lines ------------------------------------------------------------------------------------------ */

static struct pwi_command command = {.name = "train logistic", .arguments = "DATA..."};

static bool reads(enum pwi_train_kind kind, const char *line, struct pwi_train_options *options, int *exit_out) {
  static const struct pwi_cli_option *const lists[] = {pwi_train_logistic_options, pwi_train_svm_options,
                                                       pwi_train_linear_options};
  static char words[1024];
  static char *argv[64];
  int argc = 1;
  char *rest = words;
  argv[0] = words + sizeof words - 1;
  snprintf(words, sizeof words, "%s", line);
  for (char *word; (word = strsep(&rest, " "));) argv[argc++] = word;
  argv[argc] = NULL;
  command.options = lists[kind];
  return pwi_train_options_read(options, &command, kind, argc, argv, exit_out);
}

static void test_a_command_line_becomes_options(void **state) {
  (void)state;
  struct pwi_train_options options;
  char mark[PWI_TRAIN_MARK_MAX];
  int exit_code = -1;
  unsetenv("PAWL_ADDRESS");
  assert_true(
      reads(PWI_TRAIN_LOGISTIC,
            "a b --l1 1,0.1 --l2 2,3 --tau 4 --no-bias --workers 1:3 --epochs 9 --valid v --early-stop 2 -o m.npy "
            "--class-weight -1=2 --class-weight 1=.5 --on-worker-loss stop --skip-bad 7 --seed 5 --no-kkt --resume",
            &options, &exit_code));
  assert_int_equal(options.base.data_count, 2);
  assert_string_equal(options.base.data[1], "b");
  assert_int_equal(options.linear.point_count, 4);
  assert_true(options.linear.points[2].l1 == 0.1 && options.linear.points[2].l2 == 2);
  assert_string_equal(pwi_train_mark(&options, 2, mark), "l1=0.1.l2=2");
  assert_int_equal(options.linear.tau, 4);
  assert_false(options.linear.bias);
  assert_int_equal(options.linear.workers, 1);
  assert_int_equal(options.linear.workers_most, 3);
  assert_in_range(options.base.workers_started, 1, 3);
  assert_int_equal(options.linear.rounds, 9);
  assert_int_equal(options.linear.patience, 2);
  assert_int_equal(options.class_count, 2);
  assert_true(options.classes[0].label == -1 && options.classes[1].weight == 0.5);
  assert_int_equal(options.linear.on_loss, PAWL_LOSS_STOP);
  assert_int_equal(options.linear.reading.skip_bad, 7);
  assert_true(options.linear.keep_all && options.linear.resume && !options.base.has_cluster);
  pwi_train_options_fini(&options);
}

static void test_defaults_are_a_ridge_and_one_point(void **state) {
  (void)state;
  struct pwi_train_options options;
  char mark[PWI_TRAIN_MARK_MAX];
  int exit_code = -1;
  for (int kind = PWI_TRAIN_LOGISTIC; kind <= PWI_TRAIN_LINEAR; kind++) {
    assert_true(reads((enum pwi_train_kind)kind, "a", &options, &exit_code));
    assert_int_equal(options.linear.point_count, 1);
    assert_true(options.linear.points[0].l1 == 0 && options.linear.points[0].l2 == 1);
    assert_string_equal(pwi_train_mark(&options, 0, mark), "");
    assert_int_equal(options.linear.loss == PAWL_LINEAR_HINGE, kind == PWI_TRAIN_SVM);
    assert_true(options.linear.bias && options.linear.workers >= 1);
    pwi_train_options_fini(&options);
  }
  assert_true(reads(PWI_TRAIN_SVM, "a --l1 2 --loss squared-hinge", &options, &exit_code));
  assert_true(options.linear.points[0].l1 == 2 && options.linear.points[0].l2 == 0);
  assert_int_equal(options.linear.loss, PAWL_LINEAR_SQUARED_HINGE);
  pwi_train_options_fini(&options);
}

static void test_what_cannot_be_meant_is_refused(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "a --l1 -1",
      "a --workers 0",
      "a --workers 0:3",
      "a --early-stop 3",
      "a --early-stop 0 --valid b",
      "a --replicas 2 --servers 2",
      "a --cluster x:1 --servers 2",
      "a --class-weight 1",
      "a --class-weight 1=0",
      "a --class-weight 1=1 --class-weight 1=2",
      "a --class-weight balanced --class-weight 1=2",
      "a --method magic",
      "a --model-format onnx",
      "a --on-worker-loss panic",
      "a --rounds 0",
      "a --tolerance 2",
      "a --rate 0",
      "a --tau many",
      "a --hash-bits 63",
      "a --checkpoint-every 0",
      "a --loss hinge",
      "a --no-such-option",
  };
  struct pwi_train_options options;
  unsetenv("PAWL_ADDRESS");
  int kept = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int exit_code = -1;
    char line[128];
    snprintf(line, sizeof line, "%s", *bad[i] ? bad[i] : "--no-bias");
    bool good = reads(PWI_TRAIN_LOGISTIC, line, &options, &exit_code);
    pwi_train_options_fini(&options);
    if (good || exit_code != PWI_EXIT_USAGE) fail_msg("'%s' is taken", bad[i]);
  }
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
}

/* --- without memory ----------------------------------------------------------------------------------------------- */

static bool prepares(const char *line, int *exit_out) {
  struct pwi_train_options options;
  struct pwi_train_files files = {0};
  bool good = reads(PWI_TRAIN_LOGISTIC, line, &options, exit_out) && pwi_train_files_init(&files, &options, exit_out);
  pwi_train_files_fini(&files);
  pwi_train_options_fini(&options);
  return good;
}

static void test_out_of_memory_is_a_failure_and_nothing_is_left(void **state) {
  (void)state;
  char folder[] = "/tmp/pawl-train-XXXXXX", line[512];
  int exit_code;
  assert_non_null(mkdtemp(folder));
  snprintf(line, sizeof line, "%s/a.svm", folder);
  FILE *file = fopen(line, "w");
  assert_non_null(file);
  fputs("+1 1:1\n-1 2:1\n", file);
  fclose(file);
  snprintf(line, sizeof line, "%s/a.svm --valid %s/a.svm --l1 1,2 -o %s/m --checkpoint-every 5 --class-weight 1=2",
           folder, folder, folder);
  int kept = dup(STDERR_FILENO);
  assert_non_null(freopen("/dev/null", "w", stderr));
  assert_true(prepares(line, &exit_code)); /* what is allocated once is not counted */
  struct pwi_memory_counts before = pwi_memory_counts();
  uint64_t failures = 0;
  for (uint64_t n = 0;; n++) {
    exit_code = -1;
    pwi_memory_fail_after(n);
    bool good = prepares(line, &exit_code);
    if (!pwi_memory_fail_cancel()) {
      assert_true(good);
      break;
    }
    failures++;
    if (!good) assert_int_equal(exit_code, PWI_EXIT_FAILURE);
    assert_int_equal(pwi_memory_counts().live, before.live);
  }
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  assert_true(failures > 5);
  static const char *const left[] = {"a.svm", "m.checkpoints"};
  for (size_t i = 0; i < 2; i++) {
    snprintf(line, sizeof line, "%s/%s", folder, left[i]);
    assert_int_equal(remove(line), 0);
  }
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_are_numbers_with_commas_between_them),
      cmocka_unit_test(test_the_help_names_every_method),
      cmocka_unit_test(test_workers_are_a_number_or_a_range),
      cmocka_unit_test(test_a_model_is_called_like_its_data),
      cmocka_unit_test(test_models_of_a_path_have_the_value_before_their_suffix),
      cmocka_unit_test(test_numbers_have_no_more_digits_than_it_takes),
      cmocka_unit_test(test_people_get_short_numbers),
      cmocka_unit_test(test_the_line_tells_what_is_known_and_nothing_else),
      cmocka_unit_test(test_a_command_line_becomes_options),
      cmocka_unit_test(test_defaults_are_a_ridge_and_one_point),
      cmocka_unit_test(test_what_cannot_be_meant_is_refused),
      cmocka_unit_test(test_out_of_memory_is_a_failure_and_nothing_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
