/* Checkpoints of trainings: runs that are resumed give the same model, and damaged or foreign checkpoints are refused. */
#include "apps/common/absence_test.h"
#include "apps/dml/scene_test.h"

#include "base/memory.h"

/* Asks to stop from the n-th question on. */
struct stop {
  uint64_t at, asked;
};

static bool stop_there(void *context) {
  struct stop *stop = context;
  return ++stop->asked > stop->at;
}

static void test_resumed_trainings_give_the_same_model(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(0);
  struct pawl_metric_result result, whole_result;
  options.epochs = 6;
  options.rate = 3; /* some epochs are undone */
  struct pawl_metric_model *whole = trained(rows, rows, &options, &whole_result);
  assert_true(whole_result.undone > 0 && whole_result.best > 0);
  options.checkpoint = path_of("state");
  for (uint64_t at = 90; at < 400; at += 77) {
    struct stop stop = {.at = at};
    options.stopping = stop_there;
    options.context = &stop;
    options.resume = false;
    options.checkpoint_every = 1 + at % 2;
    pawl_metric_model_destroy(trained(rows, rows, &options, &result));
    assert_string_equal(result.why, "interrupted");
    options.stopping = NULL;
    options.resume = true;
    options.threads = 3;
    struct pawl_metric_model *resumed = trained(rows, rows, &options, &result);
    assert_same_model(whole, resumed);
    assert_true(result.test_error == whole_result.test_error && result.best == whole_result.best);
    assert_true(result.undone == whole_result.undone && result.epochs == whole_result.epochs);
    assert_true(result.euclid_error == whole_result.euclid_error && result.pca_error == whole_result.pca_error);
    pawl_metric_model_destroy(resumed);
    resumed = trained(rows, rows, &options, &result); /* a training that is over */
    assert_int_equal(result.resumed, 6);
    assert_same_model(whole, resumed);
    pawl_metric_model_destroy(resumed);
  }
  pawl_metric_model_destroy(whole);
  pawl_mlr_rows_destroy(rows);
}

static void note_epoch(void *context, const struct pawl_metric_progress *progress) {
  note_step(context, progress->epoch, progress->unsaved);
}

static void test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture(usual);
  struct pawl_metric_options options = options_of(4);
  struct pawl_metric_result result;
  struct absence absence = {.from = 1, .back = 3};
  begin_absence(&absence, path_of("here"));

  options.epochs = 5;
  options.checkpoint = path_of("here/state");
  options.progress = note_epoch;
  options.context = &absence;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));

  assert_true(result.epochs == 5 && absence.unsaved == 2); /* of 1 and 2 */
  assert_string_equal(result.unsaved, "");
  absence.back = 0;
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_non_null(strstr(result.unsaved, "here/state: No such file"));
  write_notes(path_of("notes"));
  struct pawl_metric_model *model = NULL;
  char error[PAWL_METRIC_TEXT] = "";
  options.checkpoint = path_of("notes");
  assert_int_equal(pawl_metric_train(rows, NULL, &options, &model, &result, error), PAWL_EXISTS);
  assert_non_null(strstr(error, "notes is there already and is no checkpoint"));
  pawl_mlr_rows_destroy(rows);
}

static void check_not_resumed(const struct pawl_mlr_rows *rows, struct pawl_metric_options options,
                              const char *wanted) {
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  char error[PAWL_METRIC_TEXT] = "";
  options.resume = true;
  assert_int_equal(pawl_metric_train(rows, NULL, &options, &model, &result, error), PAWL_MISMATCH);
  if (!strstr(error, wanted)) fail_msg("%s", error);
  assert_null(model);
}

static void test_a_checkpoint_of_other_rows_or_options_is_refused(void **state) {
  (void)state;
  struct mixture changed = usual;
  changed.noise = 2.5;
  struct pawl_mlr_rows *rows = make_mixture(usual), *others = make_mixture(changed);
  struct pawl_metric_options options = options_of(5), other;
  struct pawl_metric_result result;
  options.epochs = 2;
  options.checkpoint = path_of("refused");
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  check_not_resumed(others, options, "a training with other rows");
  other = options, other.rank = 4;
  check_not_resumed(rows, other, "--rank was 5 and is now 4");
  other = options, other.neighbours = 7;
  check_not_resumed(rows, other, "--neighbours was 5 and is now 7");
  other = options, other.held_share = 0.25;
  check_not_resumed(rows, other, "--valid-split was 0.2 and is now 0.25");
  other = options, other.seed = 2;
  check_not_resumed(rows, other, "--seed was 1 and is now 2");
  options.resume = true;
  options.epochs = 3; /* a run may go on for longer */
  pawl_metric_model_destroy(trained(rows, NULL, &options, &result));
  assert_true(result.resumed == 2 && result.epochs == 3);
  pawl_mlr_rows_destroy(rows);
  pawl_mlr_rows_destroy(others);
}

/* --- damage ----------------------------------------------------------------------------------------------- */

static void write_bytes(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static size_t read_bytes(const char *path, char *bytes, size_t room) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t size = fread(bytes, 1, room, file);
  assert_true(size < room);
  fclose(file);
  return size;
}

static void check_damaged(const struct pawl_mlr_rows *rows, const struct pawl_metric_options *options) {
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result result;
  char error[PAWL_METRIC_TEXT] = "";
  assert_int_not_equal(pawl_metric_train(rows, NULL, options, &model, &result, error), PAWL_OK);
  assert_true(strstr(error, "cannot resume: ") == error && !model);
}

static void test_a_damaged_checkpoint_is_refused(void **state) {
  (void)state;
  static char bytes[1 << 16];
  struct pawl_mlr_rows *rows = make_mixture((struct mixture){12, 2, 0.5, 1, 2});
  struct pawl_metric_options options = options_of(1);
  options.epochs = 1;
  options.neighbours = 1;
  options.threads = 1;
  options.checkpoint = path_of("damaged");
  pawl_metric_model_destroy(trained(rows, NULL, &options, NULL));
  size_t size = read_bytes(options.checkpoint, bytes, sizeof bytes);
  options.resume = true;
  for (size_t at = 0; at < size; at += 3) {
    bytes[at] ^= 4;
    write_bytes(options.checkpoint, bytes, size);
    check_damaged(rows, &options);
    bytes[at] ^= 4;
    write_bytes(options.checkpoint, bytes, at);
    check_damaged(rows, &options);
  }
  write_bytes(options.checkpoint, bytes, size);
  pawl_metric_model_destroy(trained(rows, NULL, &options, NULL));
  pawl_mlr_rows_destroy(rows);
}

/* The n-th allocation fails, in a run that begins and in one that is resumed. */
static void test_without_memory_trainings_say_so(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = make_mixture((struct mixture){12, 2, 0.5, 1, 2});
  struct pawl_metric_options options = options_of(1);
  options.epochs = 1;
  options.threads = 1;
  options.checkpoint = path_of("memory");
  uint64_t live = pwi_memory_counts().live;
  for (int resumes = 0; resumes < 2; resumes++) {
    bool has_failed = true;
    options.resume = resumes;
    for (uint64_t n = 0; has_failed; n++) {
      struct pawl_metric_model *model = NULL;
      struct pawl_metric_result result;
      char error[PAWL_METRIC_TEXT] = "";
      pwi_memory_fail_after(n);
      pawl_status status = pawl_metric_train(rows, rows, &options, &model, &result, error);
      has_failed = pwi_memory_fail_cancel();
      assert_true(status == PAWL_OK || (has_failed && status == PAWL_NO_MEMORY && error[0]));
      pawl_metric_model_destroy(model);
      assert_int_equal(pwi_memory_counts().live, live);
    }
  }
  pawl_mlr_rows_destroy(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resumed_trainings_give_the_same_model),
      cmocka_unit_test(test_a_checkpoint_that_cannot_be_written_does_not_end_the_training),
      cmocka_unit_test(test_a_checkpoint_of_other_rows_or_options_is_refused),
      cmocka_unit_test(test_a_damaged_checkpoint_is_refused),
      cmocka_unit_test(test_without_memory_trainings_say_so),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
