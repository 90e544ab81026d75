/* Models: files that are written and read back, and damage that is noticed. */
#include "apps/common/model_file_test.h"
#include "apps/mlr/scene_test.h"

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

static pawl_status decode(const char *bytes, size_t size, void **model_out, char *why) {
  struct pawl_mlr_model *decoded = NULL;
  pawl_status status = mlr_model_decode(bytes, size, &decoded, why);
  *model_out = decoded;
  return status;
}

static void destroy(void *decoded) { pawl_mlr_model_destroy(decoded); }

static const struct model_kind kind = {"multiclass", mlr_model_fill, decode, destroy};

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
  char *bytes = model_bytes(&kind, model, &size), *same = model_bytes(&kind, again, &other_size);
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
  check_damage(&kind, model, 1);
}

static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  return decode_with(&kind, model, key, value, why);
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"classes", "features", "label_bytes"};
  char why[PAWL_MLR_TEXT];
  assert_int_equal(decode_changed("epochs", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_count(&kind, model, counts[i]);
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
  check_memory(&kind, model, 5);
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
