/* What the scheduler makes of the files of workers that average. The files themselves: tests/cli/train_resume_reduce_test.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "apps/common/reduce_files.h"

static char told[1024], error[APPS_TEXT_MAX];

static void tell(void *context, const char *line) {
  (void)context;
  snprintf(told, sizeof told, "%s", line);
}

static struct apps_run new_run(void) {
  told[0] = error[0] = '\0';
  return (struct apps_run){.tell = tell, .error = error};
}

static const struct apps_reduce_part first = {.files = 1, .iteration = 7, .sum = UINT64_MAX},
                                     second = {.files = 1, .iteration = 7, .sum = 3},
                                     missing = {.problem = "there is no file"};

static struct apps_reduce_part sum_of(const struct apps_reduce_part *a, const struct apps_reduce_part *b) {
  struct apps_reduce_part sum = {0};
  apps_reduce_part_add(&sum, a);
  apps_reduce_part_add(&sum, b);
  return sum;
}

static void test_a_sum_has_all_files_and_the_first_problem(void **state) {
  (void)state;
  struct apps_reduce_part sum = sum_of(&first, &second);
  assert_true(sum.files == 2 && sum.iteration == 7 && sum.sum == 2 && !*sum.problem);
  sum = sum_of(&missing, &second);
  assert_true(sum.files == 1 && sum.sum == 3);
  assert_string_equal(sum.problem, "there is no file");
}

static void test_parts_and_checkpoints_survive_json(void **state) {
  (void)state;
  struct apps_reduce_saved saved = {.turn = 1, .workers = 2, .part = sum_of(&first, &second)}, again;
  json_t *object = apps_reduce_saved_write(&saved);
  assert_true(apps_reduce_saved_read(object, &again));
  assert_true(again.turn == 1 && again.workers == 2 && again.part.files == 2 && again.part.sum == 2 &&
              again.part.iteration == 7);
  json_object_set_new(object, "workers", json_string("3")); /* more than have files */
  assert_false(apps_reduce_saved_read(object, &again));
  json_object_set_new(object, "workers", json_string("2"));
  json_object_set_new(object, "turn", json_integer(2));
  assert_false(apps_reduce_saved_read(object, &again));
  json_decref(object);
  object = apps_reduce_part_write(&missing);
  assert_true(apps_reduce_part_read(object, &saved.part));
  assert_string_equal(saved.part.problem, missing.problem);
  static const char *const keys[] = {"files", "iteration", "sum", "problem"};
  for (size_t i = 0; i < 4; i++) {
    json_t *bad = json_deep_copy(object);
    json_object_set_new(bad, keys[i], json_integer(-1));
    assert_false(apps_reduce_part_read(bad, &saved.part));
    json_decref(bad);
  }
  json_decref(object);
  assert_false(apps_reduce_part_read(NULL, &saved.part));
  assert_false(apps_reduce_saved_read(NULL, &again));
}

/* The name of a folder in a problem may be in another encoding. */
static void test_a_problem_that_is_not_utf_8_can_be_sent(void **state) {
  (void)state;
  const struct apps_reduce_part part = {.problem = "cannot write /\xff"};
  struct apps_reduce_part again;
  json_t *object = apps_reduce_part_write(&part);
  assert_true(apps_reduce_part_read(object, &again));
  assert_non_null(strstr(again.problem, "not UTF-8"));
  json_decref(object);
}

static void test_a_checkpoint_is_complete_when_all_workers_have_saved_its_step(void **state) {
  (void)state;
  struct apps_run run = new_run();
  struct apps_reduce_saved saved = {.turn = 1};
  struct apps_reduce_part sum = sum_of(&first, &second);
  char unsaved[APPS_TEXT_MAX] = "";
  assert_true(apps_reduce_is_saved(&run, &sum, 2, 7, &saved, unsaved));
  assert_true(saved.turn == 0 && saved.workers == 2 && saved.part.sum == 2);
  assert_string_equal(told, "");
  assert_false(apps_reduce_is_saved(&run, &sum, 3, 7, &saved, unsaved));
  assert_string_equal(told, "no checkpoint was written: a worker was lost, or is behind the others");
  assert_false(apps_reduce_is_saved(&run, &sum, 2, 8, &saved, unsaved));
  assert_string_equal(unsaved, "");
  told[0] = '\0';
  sum = sum_of(&first, &missing);
  assert_false(apps_reduce_is_saved(&run, &sum, 2, 7, &saved, unsaved));
  assert_string_equal(unsaved, "no checkpoint was written: there is no file");
  assert_string_equal(told, "");
  assert_int_equal(saved.turn, 0);
}

static void test_files_of_another_run_are_refused(void **state) {
  (void)state;
  struct apps_run run = new_run();
  struct apps_reduce_part sum = sum_of(&first, &second);
  struct apps_reduce_saved saved = {.workers = 2, .part = sum};
  assert_int_equal(apps_reduce_is_loaded(&run, &sum, 2, &saved, "here"), PAWL_OK);
  assert_string_equal(told, "");
  sum.sum++;
  assert_int_equal(apps_reduce_is_loaded(&run, &sum, 2, &saved, "here"), PAWL_MISMATCH);
  assert_string_equal(error, "the files of the workers in here are not those of this checkpoint; restore them, or to "
                             "start over, omit --resume");
}

static void test_a_missing_file_is_told_and_none_at_all_is_refused(void **state) {
  (void)state;
  struct apps_run run = new_run();
  struct apps_reduce_part sum = sum_of(&first, &missing);
  struct apps_reduce_saved saved = {.workers = 2, .part = sum_of(&first, &second)};
  assert_int_equal(apps_reduce_is_loaded(&run, &sum, 2, &saved, "here"), PAWL_OK);
  assert_string_equal(told, "1 of 2 workers continue from their own files; the checkpoint is of 2 workers; the others "
                            "take over the parameters of a neighbour: there is no file");
  assert_int_equal(apps_reduce_is_loaded(&run, &first, 1, &saved, "here"), PAWL_OK); /* fewer workers */
  assert_string_equal(told, "1 of 1 workers continue from their own files; the checkpoint is of 2 workers");
  assert_int_equal(apps_reduce_is_loaded(&run, &missing, 2, &saved, "here"), PAWL_NOT_FOUND);
  assert_string_equal(error, "no worker can resume from here: there is no file; to start over, omit --resume");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_sum_has_all_files_and_the_first_problem),
      cmocka_unit_test(test_parts_and_checkpoints_survive_json),
      cmocka_unit_test(test_a_problem_that_is_not_utf_8_can_be_sent),
      cmocka_unit_test(test_a_checkpoint_is_complete_when_all_workers_have_saved_its_step),
      cmocka_unit_test(test_files_of_another_run_are_refused),
      cmocka_unit_test(test_a_missing_file_is_told_and_none_at_all_is_refused),
  };
  return cmocka_run_group_tests_name("apps.common.reduce_files", tests, NULL, NULL);
}
