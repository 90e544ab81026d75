/* Rows and labels: what is read, in which order classes are, and what is refused. */
#include "apps/mlr/rows.h"

#include "apps/mlr/evaluate.h"
#include "apps/mlr/scene_test.h"
#include "base/memory.h"

static void check_labels(const char *text, const char *wanted) {
  char found[512] = "";
  struct pawl_mlr_rows *rows = rows_of_text(text);
  for (uint32_t i = 0; i < rows->info.classes; i++) {
    strcat(found, i ? " " : "");
    strcat(found, pawl_mlr_rows_label(rows, i));
  }
  strcat(found, ":");
  for (uint64_t i = 0; i < rows->info.rows; i++)
    snprintf(found + strlen(found), 16, " %u", (unsigned)pawl_mlr_rows_classes(rows)[i]);
  assert_string_equal(found, wanted);
  pawl_mlr_rows_destroy(rows);
}

static void test_classes_are_numbers_by_value_and_then_words(void **state) {
  (void)state;
  check_labels("10 1:1\n9 1:1\n-3 1:1\n10.0 1:2\n", "-3 9 10: 2 1 0 2");
  check_labels("-10 1:1\n-9 1:1\n0 1:1\n-0 1:2\n", "-10 -9 0: 0 1 2 2");
  check_labels("dog 1:1\ncat 1:1\n7 1:1\nDog 1:1\n", "7 Dog cat dog: 3 2 0 1");
  check_labels("16777217 1:1\n16777216 1:1\n", "16777216 16777217: 1 0"); /* a float cannot tell them apart */
}

static void test_features_are_numbered_as_they_occur(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = rows_of_text("a 7:1 1000000000000:2\nb 3:4 7:0.5 7:0.25\nc\n");
  const uint64_t ids[] = {3, 7, 1000000000000};
  const uint32_t at[] = {1, 2, 0, 1};
  const float values[] = {1, 2, 4, 0.75f}; /* values of one feature are added up */
  assert_int_equal(rows->info.rows, 3);
  assert_int_equal(rows->info.features, 3);
  assert_int_equal(rows->info.entries, 4);
  assert_memory_equal(rows->ids, ids, sizeof ids);
  assert_memory_equal(rows->at, at, sizeof at);
  assert_memory_equal(rows->values, values, sizeof values);
  assert_int_equal(rows->starts[3], 4);
  const float dense[] = {4, 0.75f, 0};
  float row[3];
  pawl_mlr_rows_values(rows, 1, row);
  assert_memory_equal(row, dense, sizeof dense);
  assert_memory_equal(pawl_mlr_rows_ids(rows), ids, sizeof ids);
  pawl_mlr_rows_destroy(rows);
}

static void check_refused(const char *name, const char *text, const char *wanted) {
  char error[PAWL_MLR_TEXT] = "";
  struct pawl_mlr_rows *rows = read_rows(name, text, error);
  if (rows || !strstr(error, wanted)) fail_msg("'%s' instead of '%s'", error, wanted);
}

static void test_bad_rows_are_refused_with_their_place(void **state) {
  (void)state;
  check_refused("bad.svm", "1 1:1\n2 1:nan\n", "bad.svm:2:");
  check_refused("bad.svm", "1 1:1\n2 1:inf\n", "bad.svm:2:3: the value does not fit a finite float");
  check_refused("bad.svm", "1 1:1\nnan 1:1\n", "bad.svm:2:1: the label is not finite");
  check_refused("bad.svm", "1 1:1\n5:1\n", "bad.svm:2:1: expected a label before the features");
  check_refused("bad.vw", "1 2.0 |f a\n2 |f b\n", "rows have weights");
  check_refused("bad.ldac", "2 1:1 2:1\n1 1:1\n", "documents without labels");
}

/* A label that only a skipped row has is no class. */
static void test_a_label_of_no_row_is_no_class(void **state) {
  (void)state;
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  const char *path = path_of("skipped.svm");
  char error[PAWL_MLR_TEXT] = "";
  FILE *file = fopen(path, "w");
  assert_true(fputs("a 1:1\nghost 1:x\nb 1:2\n", file) >= 0);
  fclose(file);
  pawl_data_options_init(&reading);
  reading.skip_bad = 1;
  assert_int_equal(pawl_mlr_rows_read(&path, 1, &reading, 1, &rows, error), PAWL_OK);
  assert_int_equal(rows->info.classes, 2);
  assert_int_equal(rows->info.skipped, 1);
  assert_non_null(strstr(pawl_mlr_rows_first_bad(rows), "skipped.svm:2:"));
  pawl_mlr_rows_destroy(rows);
}

/* --- images ----------------------------------------------------------------------------------------------- */

/* Images of 1 x 2 pixels, whose labels are 7 and 2. */
static struct pawl_images *make_images(bool has_labels) {
  const char images[] = "\0\0\10\3\0\0\0\3\0\0\0\1\0\0\0\2\0\377\377\0\63\0", labels[] = "\0\0\10\1\0\0\0\3\7\2\7";
  const char *paths[] = {path_of("images"), path_of("labels")};
  struct pawl_images_options options;
  struct pawl_images *made = NULL;
  FILE *file = fopen(paths[0], "w");
  fwrite(images, 1, sizeof images - 1, file);
  fclose(file);
  file = fopen(paths[1], "w");
  fwrite(labels, 1, sizeof labels - 1, file);
  fclose(file);
  pawl_images_options_init(&options);
  options.labels_optional = true;
  if (pawl_images_read(paths, has_labels ? 2 : 1, &options, &made)) fail_msg("%s", pawl_error_text());
  return made;
}

static void test_images_are_dense_rows(void **state) {
  (void)state;
  struct pawl_images *images = make_images(true);
  struct pawl_mlr_rows *rows = NULL;
  char error[PAWL_MLR_TEXT] = "";
  const float dense[] = {0, 1, 1, 0, 0.2f, 0};
  assert_int_equal(pawl_mlr_rows_of_images(images, &rows, error), PAWL_OK);
  assert_int_equal(rows->info.rows, 3);
  assert_int_equal(rows->info.features, 2);
  assert_memory_equal(rows->dense, dense, sizeof dense);
  assert_int_equal(rows->info.classes, 2); /* labels below 7 that no image has are no classes */
  assert_string_equal(pawl_mlr_rows_label(rows, 0), "2");
  assert_string_equal(pawl_mlr_rows_label(rows, 1), "7");
  assert_int_equal(rows->classes[0], 1);
  assert_int_equal(rows->classes[1], 0);
  pawl_mlr_rows_destroy(rows);
  pawl_images_destroy(images);
  images = make_images(false);
  assert_int_equal(pawl_mlr_rows_of_images(images, &rows, error), PAWL_OK);
  assert_int_equal(rows->info.unlabelled, 3);
  assert_int_equal(rows->info.classes, 0);
  pawl_mlr_rows_destroy(rows);
  pawl_images_destroy(images);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_data_options reading;
  const char *path = path_of("memory.svm");
  FILE *file = fopen(path, "w");
  fputs("a 1:1\nb 2:1\n", file);
  fclose(file);
  pawl_data_options_init(&reading);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0;; n++) {
    struct pawl_mlr_rows *rows = NULL;
    char error[PAWL_MLR_TEXT] = "";
    pwi_memory_fail_after(n);
    pawl_status status = pawl_mlr_rows_read(&path, 1, &reading, 1, &rows, error);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || (has_failed && status == PAWL_NO_MEMORY && error[0]));
    pawl_mlr_rows_destroy(rows);
    assert_int_equal(pwi_memory_counts().live, live);
    if (!has_failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_classes_are_numbers_by_value_and_then_words),
      cmocka_unit_test(test_features_are_numbered_as_they_occur),
      cmocka_unit_test(test_bad_rows_are_refused_with_their_place),
      cmocka_unit_test(test_a_label_of_no_row_is_no_class),
      cmocka_unit_test(test_images_are_dense_rows),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
