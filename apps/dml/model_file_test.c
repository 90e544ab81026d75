/* Models: files that are written and read back, damage that is noticed, and the matrix as text. */
#include "apps/common/model_file_test.h"
#include "apps/dml/scene_test.h"

static struct pawl_mlr_rows *rows;
static struct pawl_metric_model *model;

static int make_model(void **state) {
  if (make_folder(state)) return -1;
  struct pawl_metric_options options = options_of(2);
  options.epochs = 2;
  rows = make_mixture((struct mixture){24, 3, 0.5, 1, 2});
  model = trained(rows, NULL, &options, NULL);
  return 0;
}

static int remove_model(void **state) {
  pawl_metric_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
  return remove_folder(state);
}

static pawl_status decode(const char *bytes, size_t size, void **model_out, char *why) {
  struct pawl_metric_model *decoded = NULL;
  pawl_status status = dml_model_decode(bytes, size, &decoded, why);
  *model_out = decoded;
  return status;
}

static void destroy(void *decoded) { pawl_metric_model_destroy(decoded); }

static const struct model_kind kind = {"metric", dml_model_fill, decode, destroy};

static void test_a_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pawl_metric_model *again = NULL;
  struct pawl_metric_score one, other;
  uint32_t classes[24], same_classes[24];
  char error[PAWL_METRIC_TEXT] = "";
  size_t size, other_size;
  assert_int_equal(pawl_metric_model_write(model, path_of("m"), error), PAWL_OK);
  assert_true(pawl_metric_model_is(path_of("m")));
  assert_false(pawl_metric_model_is(path_of("nothing")));
  assert_int_equal(pawl_metric_model_read(path_of("m"), &again, error), PAWL_OK);
  char *bytes = model_bytes(&kind, model, &size), *same = model_bytes(&kind, again, &other_size);
  assert_int_equal(size, other_size);
  assert_memory_equal(bytes, same, size);
  assert_same_model(model, again);
  assert_string_equal(pawl_metric_model_label(again, 0), "-3");
  assert_string_equal(pawl_metric_model_label(again, 2), "cat");
  assert_int_equal(pawl_metric_predict(model, rows, 1, classes, &one, error), PAWL_OK);
  assert_int_equal(pawl_metric_predict(again, rows, 3, same_classes, &other, error), PAWL_OK);
  assert_memory_equal(classes, same_classes, sizeof classes);
  assert_true(one.judged == 24 && one.wrong == other.wrong && one.wrong < 8);
  free(bytes);
  free(same);
  pawl_metric_model_destroy(again);
}

static void test_damage_is_noticed_wherever_it_is(void **state) {
  (void)state;
  check_damage(&kind, model, 1);
}

static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  return decode_with(&kind, model, key, value, why);
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"rank", "features", "rows", "classes", "label_bytes"};
  char why[PAWL_METRIC_TEXT];
  assert_int_equal(decode_changed("epochs", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < 5; i++) check_count(&kind, model, counts[i]);
  assert_int_equal(decode_changed("k", json_integer(0), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("k", json_integer(101), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("scale", json_integer(0), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("scale", json_null(), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("seed", json_string("x"), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("kind", json_string("cnn"), why), PAWL_MISMATCH);
}

static void check_refused(const char *wanted) {
  struct pawl_metric_model *again = NULL;
  char why[PAWL_METRIC_TEXT] = "";
  size_t size;
  char *bytes = model_bytes(&kind, model, &size);
  assert_int_equal(dml_model_decode(bytes, size, &again, why), PAWL_CORRUPT);
  if (!strstr(why, wanted)) fail_msg("%s", why);
  free(bytes);
}

static void test_numbers_that_are_not_finite_and_rows_without_a_class_are_refused(void **state) {
  (void)state;
  float weight = model->weights[3], point = model->points.at[5];
  double mean = model->frame.mean[1];
  uint32_t class = model->points.classes[4];
  model->weights[3] = NAN;
  check_refused("a weight is not finite");
  model->weights[3] = weight;
  model->points.at[5] = -INFINITY;
  check_refused("a point is not finite");
  model->points.at[5] = point;
  model->frame.mean[1] = (double)NAN;
  check_refused("a mean is not finite");
  model->frame.mean[1] = mean;
  model->points.classes[4] = 3;
  check_refused("row 5 has no class");
  model->points.classes[4] = class;
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  check_memory(&kind, model, 6);
}

/* |W (x - x')| from the text is the distance between the model's points. */
static void test_the_text_is_the_matrix_of_the_rows_as_they_are(void **state) {
  (void)state;
  char error[PAWL_METRIC_TEXT] = "";
  unsigned ids[3];
  double w[6];
  assert_int_equal(pawl_metric_model_export(model, path_of("text"), error), PAWL_OK);
  FILE *file = fopen(path_of("text"), "r");
  assert_non_null(file);
  for (int i = 0; i < 3; i++) assert_int_equal(fscanf(file, "%u", &ids[i]), 1);
  for (int i = 0; i < 6; i++) assert_int_equal(fscanf(file, "%lf", &w[i]), 1);
  assert_int_equal(fscanf(file, "%lf", &w[0]), EOF);
  fclose(file);
  assert_true(ids[0] == 1 && ids[1] == 3 && ids[2] == 5);
  for (int i = 0; i < 6; i++)
    assert_true(fabs(w[i] - (double)model->weights[i] * model->frame.scale) < 1e-6 * fabs(w[i]) + 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_is_read_as_it_was_written),
      cmocka_unit_test(test_damage_is_noticed_wherever_it_is),
      cmocka_unit_test(test_headers_that_contradict_the_file_are_refused),
      cmocka_unit_test(test_numbers_that_are_not_finite_and_rows_without_a_class_are_refused),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
      cmocka_unit_test(test_the_text_is_the_matrix_of_the_rows_as_they_are),
  };
  return cmocka_run_group_tests(tests, make_model, remove_model);
}
