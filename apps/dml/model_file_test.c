/* Models: files that are written and read back, damage that is noticed, and the matrix as text. */
#include "apps/common/model_arrays.h"
#include "apps/dml/scene_test.h"
#include "base/memory.h"

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

static char *bytes_of(const struct pawl_metric_model *of, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(dml_model_fill(file, of), PAWL_OK);
  fclose(file);
  return bytes;
}

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
  char *bytes = bytes_of(model, &size), *same = bytes_of(again, &other_size);
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
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_METRIC_TEXT];
  struct pawl_metric_model *again = NULL;
  for (size_t at = 0; at < size; at++) {
    bytes[at] ^= 4;
    why[0] = 0;
    assert_int_not_equal(dml_model_decode(bytes, size, &again, why), PAWL_OK);
    assert_true(!again && why[0]);
    bytes[at] ^= 4;
  }
  for (size_t end = 0; end < size; end++) {
    char *cut = malloc(end + 1);
    memcpy(cut, bytes, end);
    cut[end] = 0;
    assert_int_not_equal(dml_model_decode(cut, end, &again, why), PAWL_OK);
    assert_null(again);
    free(cut);
  }
  free(bytes);
}

/* The contents of a file whose header has been changed, with a correct checksum. */
static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  struct pawl_metric_model *again = NULL;
  size_t size, begin;
  char *bytes = bytes_of(model, &size), *changed = NULL;
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  assert_int_equal(apps_arrays_open(&arrays, "metric", &header, why), PAWL_OK);
  begin = arrays.at;
  json_object_set_new(header, key, value);
  struct apps_array array = {bytes + begin, size - begin - 8, 1};
  FILE *file = open_memstream(&changed, &size);
  assert_int_equal(apps_arrays_write(file, header, &array, 1), PAWL_OK);
  fclose(file);
  pawl_status status = dml_model_decode(changed, size, &again, why);
  pawl_metric_model_destroy(again);
  free(bytes);
  free(changed);
  return status;
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"rank", "features", "rows", "classes", "label_bytes"};
  char why[PAWL_METRIC_TEXT];
  assert_int_equal(decode_changed("epochs", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < 5; i++) {
    const json_int_t values[] = {0, 1, 900, 1048576, 4294967293, INT64_MAX, -1};
    for (size_t v = 0; v < 7; v++) {
      pawl_status status = decode_changed(counts[i], json_integer(values[v]), why);
      assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
    }
    assert_int_equal(decode_changed(counts[i], json_string("3"), why), PAWL_CORRUPT);
  }
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
  char *bytes = bytes_of(model, &size);
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
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_METRIC_TEXT];
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (pawl_status status = PAWL_NO_MEMORY; status; n++) {
    struct pawl_metric_model *again = NULL;
    pwi_memory_fail_after(n);
    status = dml_model_decode(bytes, size, &again, why);
    assert_true(pwi_memory_fail_cancel() || status == PAWL_OK);
    pawl_metric_model_destroy(again);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 6);
  free(bytes);
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
