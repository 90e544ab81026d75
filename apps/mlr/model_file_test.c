/* Models: files that are written and read back, and damage that is noticed. */
#include "apps/common/model_arrays.h"
#include "apps/mlr/scene_test.h"
#include "base/memory.h"

static struct pawl_mlr_rows *rows;
static struct pawl_mlr_model *model;

static int make_model(void **state) {
  if (make_folder(state)) return -1;
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 1);
  rows = make_blobs((struct blobs){30, 3, 4, 1, 2, false});
  rows->info.binary = true;
  rows->info.hash_bits = 20;
  model = trained(rows, NULL, &options, NULL);
  return 0;
}

static int remove_model(void **state) {
  pawl_mlr_model_destroy(model);
  pawl_mlr_rows_destroy(rows);
  return remove_folder(state);
}

static char *bytes_of(const struct pawl_mlr_model *of, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(mlr_model_fill(file, of), PAWL_OK);
  fclose(file);
  return bytes;
}

static void test_a_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pawl_mlr_model *again = NULL;
  struct pawl_mlr_about about;
  struct pawl_mlr_score one, other;
  double probabilities[90], others[90];
  char error[PAWL_MLR_TEXT] = "";
  size_t size, other_size;
  assert_int_equal(pawl_mlr_model_write(model, path_of("m"), error), PAWL_OK);
  assert_true(pawl_mlr_model_is(path_of("m")));
  assert_false(pawl_mlr_model_is(path_of("nothing")));
  assert_int_equal(pawl_mlr_model_read(path_of("m"), &again, error), PAWL_OK);
  char *bytes = bytes_of(model, &size), *same = bytes_of(again, &other_size);
  assert_int_equal(size, other_size);
  assert_memory_equal(bytes, same, size);
  pawl_mlr_model_about(again, &about);
  assert_true(about.binary && !about.unit_rows && about.hash_bits == 20 && about.has_bias && about.classes == 3);
  assert_string_equal(pawl_mlr_model_label(again, 2), "c2");
  assert_int_equal(pawl_mlr_model_ids(again)[1], 6);
  assert_memory_equal(pawl_mlr_model_weights(again), model->matrix.at, 12 * sizeof(double));
  assert_int_equal(pawl_mlr_predict(model, rows, 1, NULL, probabilities, NULL, &one, error), PAWL_OK);
  assert_int_equal(pawl_mlr_predict(again, rows, 2, NULL, others, NULL, &other, error), PAWL_OK);
  assert_memory_equal(probabilities, others, sizeof others);
  assert_true(one.loss == other.loss && one.wrong == other.wrong);
  free(bytes);
  free(same);
  pawl_mlr_model_destroy(again);
}

static void test_damage_is_noticed_wherever_it_is(void **state) {
  (void)state;
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_MLR_TEXT];
  struct pawl_mlr_model *again = NULL;
  for (size_t at = 0; at < size; at++) {
    bytes[at] ^= 4;
    why[0] = 0;
    assert_int_not_equal(mlr_model_decode(bytes, size, &again, why), PAWL_OK);
    assert_true(!again && why[0]);
    bytes[at] ^= 4;
  }
  for (size_t end = 0; end < size; end++) {
    char *cut = malloc(end + 1);
    memcpy(cut, bytes, end);
    cut[end] = 0;
    assert_int_not_equal(mlr_model_decode(cut, end, &again, why), PAWL_OK);
    assert_null(again);
    free(cut);
  }
  free(bytes);
}

/* The contents of a file whose header has been changed, with a correct checksum. */
static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  struct pawl_mlr_model *again = NULL;
  size_t size, begin;
  char *bytes = bytes_of(model, &size), *changed = NULL;
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  assert_int_equal(apps_arrays_open(&arrays, "multiclass", &header, why), PAWL_OK);
  begin = arrays.at;
  json_object_set_new(header, key, value);
  struct apps_array array = {bytes + begin, size - begin - 8, 1};
  FILE *file = open_memstream(&changed, &size);
  assert_int_equal(apps_arrays_write(file, header, &array, 1), PAWL_OK);
  fclose(file);
  pawl_status status = mlr_model_decode(changed, size, &again, why);
  pawl_mlr_model_destroy(again);
  free(bytes);
  free(changed);
  return status;
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"classes", "features", "label_bytes"};
  char why[PAWL_MLR_TEXT];
  assert_int_equal(decode_changed("epochs", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const json_int_t values[] = {0, 1, 900, 4294967293, INT64_MAX, -1};
    for (size_t v = 0; v < 6; v++) {
      pawl_status status = decode_changed(counts[i], json_integer(values[v]), why);
      assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
    }
    assert_int_equal(decode_changed(counts[i], json_string("3"), why), PAWL_CORRUPT);
  }
  assert_int_equal(decode_changed("bias", json_false(), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("method", json_string("lda"), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("l2", json_integer(-1), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("kind", json_string("cnn"), why), PAWL_MISMATCH);
  assert_string_equal(why, "this is a model of kind 'cnn', not 'multiclass'");
}

/* The text of LIBLINEAR: a line for each id up to the highest, and refusals. */
static void test_exported_weights_stand_at_their_ids(void **state) {
  (void)state;
  struct pawl_mlr_rows *few = rows_of_text("1 2:1\n2 4:1\n1 2:2\n");
  struct pawl_mlr_options options = options_of(PAWL_MLR_SDCA, 1);
  struct pawl_mlr_model *small = trained(few, NULL, &options, NULL);
  char error[PAWL_MLR_TEXT] = "", line[300], solver[32];
  int number = 0;
  assert_int_equal(pawl_mlr_model_export(small, path_of("text"), error), PAWL_OK);
  FILE *file = fopen(path_of("text"), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    double a, b;
    number++;
    if (number == 1) assert_true(sscanf(line, "solver_type %31s", solver) == 1);
    if (number == 3) assert_string_equal(line, "label 1 2\n");
    if (number == 4) assert_string_equal(line, "nr_feature 4\n");
    if (number == 5) assert_string_equal(line, "bias 1\n");
    if (number < 7) continue;
    assert_int_equal(sscanf(line, "%lf %lf", &a, &b), 2);
    int id = number - 6; /* 5: the bias */
    const double *wanted = id == 2 ? small->matrix.at : id == 4 ? small->matrix.at + 2 : small->matrix.at + 4;
    assert_true(id % 2 == 0 || id == 5 ? a == wanted[0] && b == wanted[1] : a == 0 && b == 0);
  }
  assert_int_equal(number, 11);
  fclose(file);
  assert_int_equal(pawl_mlr_model_export(model, path_of("words"), error), PAWL_UNSUPPORTED);
  assert_non_null(strstr(error, "the label 'c0'"));
  small->ids[0] = 0;
  assert_int_equal(pawl_mlr_model_export(small, path_of("zero"), error), PAWL_UNSUPPORTED);
  pawl_mlr_model_destroy(small);
  pawl_mlr_rows_destroy(few);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_MLR_TEXT];
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (pawl_status status = PAWL_NO_MEMORY; status; n++) {
    struct pawl_mlr_model *again = NULL;
    pwi_memory_fail_after(n);
    status = mlr_model_decode(bytes, size, &again, why);
    assert_true(pwi_memory_fail_cancel() || status == PAWL_OK);
    pawl_mlr_model_destroy(again);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 5);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_is_read_as_it_was_written),
      cmocka_unit_test(test_damage_is_noticed_wherever_it_is),
      cmocka_unit_test(test_headers_that_contradict_the_file_are_refused),
      cmocka_unit_test(test_exported_weights_stand_at_their_ids),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_model, remove_model);
}
