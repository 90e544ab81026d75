/* Predictions: the order of lines, features that are not known, and memory that runs out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "apps/linear/model/model.h"
#include "base/memory.h"
#include "cli/models/predict_run.h"

static uint64_t ids[] = {2};
static double weights[] = {1};
static const struct pawl_linear_model model = {.about.loss = PAWL_LINEAR_LOGISTIC,
                                               .about.labels = {-1, 0.1f},
                                               .about.class_weights = {1, 1},
                                               .about.features = 3,
                                               .about.nonzeros = 1,
                                               .ids = ids,
                                               .weights = weights};

static double *scores_of(double score) {
  double *scores = pwi_alloc(2 * sizeof *scores);
  assert_non_null(scores);
  scores[0] = score;
  scores[1] = -score;
  return scores;
}

static void test_pieces_that_come_early_wait_for_their_turn(void **state) {
  (void)state;
  char *text = NULL;
  size_t size = 0;
  struct pwi_predict_lines lines = {
      .file = open_memstream(&text, &size), .what = PWI_PREDICT_SCORES, .about = &model.about};
  assert_int_equal(pwi_predict_lines_init(&lines, 4), PAWL_OK);
  static const size_t order[] = {2, 0, 3, 1};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(pwi_predict_lines_take(&lines, order[i], scores_of((double)order[i] + 1), order[i] == 3 ? 0 : 2),
                     PAWL_OK);
    fflush(lines.file);
    if (i == 0) assert_int_equal(size, 0);
    if (i == 2) assert_string_equal(text, "1\n-1\n");
  }
  assert_string_equal(text, "1\n-1\n2\n-2\n3\n-3\n");
  pwi_predict_lines_fini(&lines);
  fclose(lines.file);
  free(text);
}

static void check_line(enum pwi_predict_what what, bool is_regression, double score, const char *wanted) {
  char *text = NULL;
  size_t size = 0;
  struct pawl_linear_model own = model;
  own.about.is_regression = is_regression;
  struct pwi_predict_lines lines = {.file = open_memstream(&text, &size), .what = what, .about = &own.about};
  assert_int_equal(pwi_predict_lines_init(&lines, 1), PAWL_OK);
  assert_int_equal(pwi_predict_lines_take(&lines, 0, scores_of(score), 1), PAWL_OK);
  pwi_predict_lines_fini(&lines);
  fclose(lines.file);
  assert_string_equal(text, wanted);
  free(text);
}

static void test_a_line_is_a_label_a_score_or_a_probability(void **state) {
  (void)state;
  check_line(PWI_PREDICT_LABELS, false, 2, "0.100000001\n"); /* as a float has it: it reads back as the same one */
  check_line(PWI_PREDICT_LABELS, false, 0, "-1\n");
  check_line(PWI_PREDICT_SCORES, false, 0.1, "0.10000000000000001\n");
  check_line(PWI_PREDICT_PROBABILITIES, false, 0, "-1 0.5\n");
  check_line(PWI_PREDICT_LABELS, true, 1.5, "1.5\n");
}

static void test_a_full_disk_is_remembered_with_its_reason(void **state) {
  (void)state;
  struct pwi_predict_lines lines = {.file = fopen("/dev/full", "w"), .what = PWI_PREDICT_SCORES, .about = &model.about};
  if (!lines.file) skip();
  setvbuf(lines.file, NULL, _IONBF, 0);
  assert_int_equal(pwi_predict_lines_init(&lines, 1), PAWL_OK);
  assert_int_equal(pwi_predict_lines_take(&lines, 0, scores_of(1), 2), PAWL_IO);
  assert_int_equal(lines.problem, ENOSPC);
  pwi_predict_lines_fini(&lines);
  fclose(lines.file);
}

static void test_strangers_are_counted_once(void **state) {
  (void)state;
  const uint64_t named[] = {1, 3, 4, 9, 4, PAWL_ID_MAX};
  struct pawl_batch batch = {.entries = 6, .ids = named, .max_id = PAWL_ID_MAX};
  struct pwi_predict_strangers strangers = {.features = 3};
  assert_int_equal(pwi_predict_strangers_add(&strangers, &batch), PAWL_OK);
  assert_int_equal(pwi_predict_strangers_add(&strangers, &batch), PAWL_OK);
  assert_int_equal(strangers.ids.count, 3);
  assert_int_equal(strangers.entries, 8);
  assert_int_equal(strangers.all_entries, 12);
  pwi_predict_strangers_fini(&strangers);
}

/* One run over a file, with everything freed behind it. */
static pawl_status run(const char *path) {
  struct pawl_data_options options;
  struct pawl_data *data = NULL;
  struct pwi_predict predict = {.model = &model, .lines = {.file = fopen("/dev/null", "w")}};
  pawl_data_options_init(&options);
  pawl_status status = pawl_data_open(&path, 1, &options, &data);
  if (status == PAWL_OK) status = pwi_predict_run(&predict, data, 1);
  pwi_predict_lines_fini(&predict.lines);
  pwi_predict_strangers_fini(&predict.strangers);
  pawl_linear_scorer_destroy(predict.scorer);
  pawl_linear_metrics_destroy(predict.metrics);
  pawl_data_close(data);
  fclose(predict.lines.file);
  return status;
}

static void test_memory_that_runs_out_is_an_error_and_nothing_else(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-predict-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, "1 1:1 7:2\n-1 2:1\n", 17), 17);
  close(file);
  uint64_t live = pwi_memory_counts().live, failures = 0;
  for (uint64_t n = 0;; n++) {
    pwi_memory_fail_after(n);
    pawl_status status = run(path);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || (has_failed && status == PAWL_NO_MEMORY)); /* a reader can do without some of it */
    failures += status != PAWL_OK;
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
    assert_true(n < 1000);
  }
  assert_true(failures > 5);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pieces_that_come_early_wait_for_their_turn),
      cmocka_unit_test(test_a_line_is_a_label_a_score_or_a_probability),
      cmocka_unit_test(test_a_full_disk_is_remembered_with_its_reason),
      cmocka_unit_test(test_strangers_are_counted_once),
      cmocka_unit_test(test_memory_that_runs_out_is_an_error_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
