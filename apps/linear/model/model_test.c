/* Models on disk: each format there and back, damaged in every place, and what cannot be said. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "apps/common/memory.h"
#include "apps/linear/model/inside.h"

static uint64_t ids[] = {1, 3, 5};
static double weights[] = {0.1, -1e-300, 12345678.9};
static const struct pawl_linear_model example = {.about.loss = PAWL_LINEAR_SQUARED_HINGE,
                                                 .about.labels = {-1, 1},
                                                 .about.l1 = 0.3,
                                                 .about.l2 = 1e-9,
                                                 .about.class_weights = {1, 2.5},
                                                 .about.features = 6,
                                                 .about.has_bias = true,
                                                 .about.bias = -1.0 / 3,
                                                 .about.hash_bits = 22,
                                                 .about.binary = true,
                                                 .about.unit_rows = true,
                                                 .about.scale = PAWL_LINEAR_SCALE_DEVIATION,
                                                 .about.penalty = 1.0 / 7,
                                                 .about.objective = 10558.72,
                                                 .about.nonzeros = 3,
                                                 .ids = ids,
                                                 .weights = weights};

static char folder[] = "/tmp/pawl-model-XXXXXX";
static char error[APPS_TEXT_MAX];

static int set_up(void **state) {
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  static const char *const names[] = {"m", "m.npy", "m.npy.json", "m.txt", "pipe"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(names[i]);
  return chdir("/") == 0 ? rmdir(folder) : -1; /* a draft that was left behind is noticed here */
}

static void same(double a, double b) { assert_true(a == b || (isnan(a) && isnan(b))); }

static void same_models(const struct pawl_linear_model *a, const struct pawl_linear_model *b) {
  assert_int_equal(a->about.loss, b->about.loss);
  assert_int_equal(a->about.is_regression, b->about.is_regression);
  for (int i = 0; i < 2; i++) {
    same(a->about.labels[i], b->about.labels[i]);
    same(a->about.class_weights[i], b->about.class_weights[i]);
  }
  same(a->about.l1, b->about.l1);
  same(a->about.l2, b->about.l2);
  assert_int_equal(a->about.features, b->about.features);
  assert_int_equal(a->about.zero_based, b->about.zero_based);
  assert_int_equal(a->about.has_bias, b->about.has_bias);
  same(a->about.bias, b->about.bias);
  assert_int_equal(a->about.hash_bits, b->about.hash_bits);
  assert_int_equal(a->about.binary, b->about.binary);
  assert_int_equal(a->about.unit_rows, b->about.unit_rows);
  assert_int_equal(a->about.scale, b->about.scale);
  if (a->about.scale) assert_true(a->about.penalty == b->about.penalty);
  same(a->about.objective, b->about.objective);
  assert_int_equal(a->about.nonzeros, b->about.nonzeros);
  for (size_t i = 0; i < a->about.nonzeros; i++) {
    assert_int_equal(a->ids[i], b->ids[i]);
    same(a->weights[i], b->weights[i]);
  }
}

static void there_and_back(const struct pawl_linear_model *model, const char *path) {
  struct pawl_linear_model read;
  if (pawl_linear_model_write(model, path, pawl_linear_format_of(path), error)) fail_msg("%s", error);
  if (linear_model_read(path, &read, error)) fail_msg("%s", error);
  same_models(&read, model);
  linear_model_fini(&read);
}

static const char *const paths[] = {"m", "m.npy", "m.txt"};

static void test_every_format_keeps_a_model(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct pawl_linear_model model = example;
    there_and_back(&model, paths[i]);
    model.about.loss = PAWL_LINEAR_HINGE;
    model.about.has_bias = false;
    model.about.bias = 0;
    model.about.labels[0] = 7; /* the second label may be the lower one */
    model.about.objective = (double)NAN;
    there_and_back(&model, paths[i]);
    model.about.nonzeros = 0;
    model.about.l1 = (double)NAN;
    there_and_back(&model, paths[i]);
  }
}

static void test_every_format_keeps_regression_and_squared_classes(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct pawl_linear_model model = example;
    model.about.loss = PAWL_LINEAR_SQUARED;
    there_and_back(&model, paths[i]);
    model.about.is_regression = true;
    model.about.labels[0] = model.about.labels[1] = 0;
    there_and_back(&model, paths[i]);
  }
}

static void test_pawls_format_keeps_names(void **state) {
  (void)state;
  char first[] = "age", third[] = "colour=grün";
  char *names[] = {first, NULL, third};
  struct pawl_linear_model model = example, read;
  model.names = names;
  model.about.columns = 7;
  model.about.label_column = 3;
  strcpy(model.about.label_name, "y");
  there_and_back(&model, "m");
  assert_int_equal(linear_model_read("m", &read, error), PAWL_OK);
  assert_string_equal(read.names[0], "age");
  assert_null(read.names[1]);
  assert_string_equal(read.names[2], "colour=grün");
  assert_true(read.about.columns == 7 && read.about.label_column == 3 && strcmp(read.about.label_name, "y") == 0);
  linear_model_fini(&read);
  there_and_back(&model, "m.txt"); /* which has none */
}

static void test_every_format_keeps_a_zero_based_model(void **state) {
  (void)state;
  uint64_t from_zero[] = {0, 3, 6};
  struct pawl_linear_model model = example;
  model.ids = from_zero;
  model.about.zero_based = true;
  for (int i = 0; i < 3; i++) there_and_back(&model, paths[i]);
  model.about.has_bias = false;
  model.about.bias = 0;
  model.about.features = 0; /* the only feature is 0 */
  model.about.nonzeros = 1;
  for (int i = 0; i < 3; i++) there_and_back(&model, paths[i]);
}

static void test_a_zero_based_model_is_one_higher_in_liblinears_format(void **state) {
  (void)state;
  uint64_t from_zero[] = {0, 2};
  char *text;
  size_t size;
  struct pawl_linear_model model = example;
  model.ids = from_zero;
  model.about.zero_based = true;
  model.about.nonzeros = 2;
  model.about.features = 2;
  assert_int_equal(pawl_linear_model_write(&model, "m.txt", PAWL_LINEAR_FORMAT_LIBLINEAR, error), PAWL_OK);
  assert_int_equal(apps_file_read("m.txt", &text, &size, error), PAWL_OK);
  assert_non_null(strstr(text, "nr_feature 3\nbias 1\nw\n0.1"));
  apps_free(text);
}

static void test_pawls_format_has_room_for_the_highest_id_and_for_0(void **state) {
  (void)state;
  uint64_t far[] = {0, (uint64_t)1 << 40, PAWL_ID_MAX};
  struct pawl_linear_model model = example;
  model.ids = far;
  model.about.features = PAWL_ID_MAX;
  assert_int_equal(pawl_linear_model_write(&model, "m", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_INVALID);
  model.about.zero_based = true;
  there_and_back(&model, "m");
}

static void test_pawls_format_has_room_for_the_highest_id(void **state) {
  (void)state;
  uint64_t far[] = {1, (uint64_t)1 << 40, PAWL_ID_MAX};
  struct pawl_linear_model model = example;
  model.ids = far;
  model.about.features = PAWL_ID_MAX;
  there_and_back(&model, "m");
  assert_int_equal(pawl_linear_model_write(&model, "m.npy", PAWL_LINEAR_FORMAT_NPY, error), PAWL_TOO_LARGE);
  assert_int_equal(pawl_linear_model_write(&model, "m.txt", PAWL_LINEAR_FORMAT_LIBLINEAR, error), PAWL_TOO_LARGE);
  assert_non_null(strstr(error, "m.txt"));
}

static void write_text(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static pawl_status read_text(const char *path, const char *text, struct pawl_linear_model *model) {
  write_text(path, text, strlen(text));
  error[0] = 0;
  return linear_model_read(path, model, error);
}

/* --- damage --------------------------------------------------------------------------------------------- */

static void test_pawls_format_notices_every_byte_that_is_lost_or_changed(void **state) {
  (void)state;
  struct pawl_linear_model read;
  char *bytes;
  size_t size;
  assert_int_equal(pawl_linear_model_write(&example, "m", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_OK);
  assert_int_equal(apps_file_read("m", &bytes, &size, error), PAWL_OK);
  assert_int_equal(size % 64, (3 * 16 + 8) % 64);
  for (size_t i = 0; i < size; i++) {
    write_text("m", bytes, i);
    assert_int_not_equal(linear_model_read("m", &read, error), PAWL_OK);
    bytes[i] ^= 4;
    write_text("m", bytes, size);
    assert_int_not_equal(linear_model_read("m", &read, error), PAWL_OK);
    assert_int_equal(strncmp(error, "m: ", 3), 0);
    bytes[i] ^= 4;
  }
  bytes = realloc(bytes, size + 1);
  assert_non_null(bytes);
  write_text("m", bytes, size + 1);
  assert_int_equal(linear_model_read("m", &read, error), PAWL_CORRUPT);
  bytes[11] = '2';
  write_text("m", bytes, size);
  assert_int_equal(linear_model_read("m", &read, error), PAWL_UNSUPPORTED);
  apps_free(bytes);
}

static void test_text_and_arrays_that_are_cut_off_are_refused(void **state) {
  (void)state;
  struct pawl_linear_model read;
  for (int i = 1; i < 3; i++) {
    char *bytes;
    size_t size;
    assert_int_equal(pawl_linear_model_write(&example, paths[i], pawl_linear_format_of(paths[i]), error), PAWL_OK);
    assert_int_equal(apps_file_read(paths[i], &bytes, &size, error), PAWL_OK);
    const char *ours = memmem(bytes, size, "\n# pawl", 7);
    size_t needed = i == 2 ? (size_t)(ours - bytes) - strlen("-0.33333333333333331")
                           : size; /* a last number may lose digits and still be one */
    for (size_t length = 0; length < needed; length++) {
      write_text(paths[i], bytes, length);
      assert_int_not_equal(linear_model_read(paths[i], &read, error), PAWL_OK);
    }
    apps_free(bytes);
  }
}

static void test_what_is_no_model_is_refused_by_name(void **state) {
  (void)state;
  struct pawl_linear_model read;
  assert_int_equal(linear_model_read("nowhere", &read, error), PAWL_NOT_FOUND);
  assert_non_null(strstr(error, "nowhere"));
  assert_int_equal(linear_model_read(".", &read, error), PAWL_IO);
  assert_int_equal(read_text("m", "", &read), PAWL_TRUNCATED);
  assert_int_equal(read_text("m", "1 1:2 2:3\n", &read), PAWL_CORRUPT);
  assert_non_null(strstr(error, "m: not a model"));
  assert_int_equal(linear_model_read("nowhere", &read, NULL), PAWL_NOT_FOUND);
}

static void explain(const char *text) { write_text("m.npy.json", text, strlen(text)); }

static void test_an_array_needs_what_explains_it(void **state) {
  (void)state;
  struct pawl_linear_model read;
  assert_int_equal(pawl_linear_model_write(&example, "m.npy", PAWL_LINEAR_FORMAT_NPY, error), PAWL_OK);
  explain("{\"features\": 7}");
  assert_int_equal(linear_model_read("m.npy", &read, error), PAWL_CORRUPT); /* without a loss */
  explain("{\"features\": 8, \"loss\": \"hinge\", \"labels\": [0, 1]}");
  assert_int_equal(linear_model_read("m.npy", &read, error), PAWL_CORRUPT);
  assert_non_null(strstr(error, "7 numbers"));
  explain("{\"features\": 7, \"loss\": \"hinge\", \"labels\": [0, 1]}");
  assert_int_equal(linear_model_read("m.npy", &read, error), PAWL_OK);
  assert_int_equal(read.about.nonzeros, 4); /* the former bias is one more weight now */
  linear_model_fini(&read);
  unlink("m.npy.json");
  assert_int_equal(linear_model_read("m.npy", &read, error), PAWL_NOT_FOUND);
  assert_non_null(strstr(error, "m.npy.json"));
}

/* --- LIBLINEAR ------------------------------------------------------------------------------------------ */

static void test_liblinears_first_label_is_our_second(void **state) {
  (void)state;
  struct pawl_linear_model read;
  const char *text = "solver_type L2R_LR\nnr_class 2\nlabel 3 -5\nnr_feature 3\nbias 2\nw\n0.5 \n0 \n-1e-2 \n0.25 \n";
  assert_int_equal(read_text("m", text, &read), PAWL_OK);
  assert_int_equal(read.about.loss, PAWL_LINEAR_LOGISTIC);
  same(read.about.labels[0], -5);
  same(read.about.labels[1], 3);
  same(read.about.l1, 0);
  assert_true(isnan(read.about.l2) && isnan(read.about.objective));
  assert_true(read.about.has_bias);
  same(read.about.bias, 0.5); /* a feature of value 2 */
  assert_int_equal(read.about.nonzeros, 2);
  assert_int_equal(read.ids[1], 3);
  linear_model_fini(&read);
}

static void test_liblinear_regression_has_no_labels(void **state) {
  (void)state;
  struct pawl_linear_model read;
  const char *text = "solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 1\nbias -1\nw\n2\n";
  assert_int_equal(read_text("m", text, &read), PAWL_OK);
  assert_true(read.about.is_regression && !read.about.has_bias);
  linear_model_fini(&read);
}

static void refused(const char *text, pawl_status status, const char *sentence) {
  struct pawl_linear_model read;
  assert_int_equal(read_text("m", text, &read), status);
  if (!strstr(error, sentence)) fail_msg("'%s' is not in: %s", sentence, error);
}

static void test_liblinear_models_that_are_not_ours_are_refused_in_a_sentence(void **state) {
  (void)state;
  refused("solver_type L2R_LR\nnr_class 3\nlabel 1 2 3\nnr_feature 1\nbias -1\nw\n1 2 3\n", PAWL_UNSUPPORTED,
          "3 classes");
  refused("solver_type L2R_LR\nnr_class 1\nlabel 1\nnr_feature 1\nbias -1\nw\n1\n", PAWL_UNSUPPORTED, "1 class;");
  refused("solver_type MCSVM_CS\nnr_class 2\n", PAWL_UNSUPPORTED, "MCSVM_CS");
  refused("solver_type ONECLASS_SVM\nnr_class 2\n", PAWL_UNSUPPORTED, "ONECLASS_SVM");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 1\nnr_feature 1\nbias -1\nw\n1\n", PAWL_CORRUPT, "labels");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 2\nbias -1\nw\n1\n", PAWL_TRUNCATED, "too early");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 2000000000\nbias -1\nw\n1\n", PAWL_TRUNCATED, "early");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 2\nbias -1\nw\n1\nnan\n3\n", PAWL_CORRUPT, "weight");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature -2\nbias -1\nw\n1\n", PAWL_CORRUPT, "nr_feature");
  refused("solver_type L2R_LR\nnr_class 2\nnr_feature 1\nbias -1\nw\n1\n", PAWL_CORRUPT, "missing");
  refused("nr_class 2\nlabel 1 0\nnr_feature 1\nbias -1\nrho 4\nw\n1\n", PAWL_CORRUPT, "unknown word");
  refused("solver_type L2R_LR\nnr_class 2\nlabel 1 0\nnr_feature 1\nbias -1\nw\n1\n# pawl {\"features\": []}",
          PAWL_CORRUPT, "features");
  struct pawl_linear_model model = example;
  model.about.labels[0] = 0.5;
  assert_int_equal(pawl_linear_model_write(&model, "m.txt", PAWL_LINEAR_FORMAT_LIBLINEAR, error), PAWL_UNSUPPORTED);
  assert_non_null(strstr(error, "0.5"));
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void test_models_that_are_none_are_not_written(void **state) {
  (void)state;
  there_and_back(&example, "m");
  for (int i = 0; i < 6; i++) {
    struct pawl_linear_model model = example, read;
    uint64_t falling[] = {1, 5, 3};
    double infinite[] = {1, 2, (double)INFINITY};
    if (i == 0) model.ids = falling;
    if (i == 1) model.weights = infinite;
    if (i == 2) model.about.features = 4;
    if (i == 3) model.about.loss = (enum pawl_linear_loss)9;
    if (i == 4) model.about.bias = (double)NAN;
    if (i == 5) model.about.labels[0] = model.about.labels[1];
    assert_int_equal(pawl_linear_model_write(&model, "m", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_INVALID);
    assert_int_equal(linear_model_read("m", &read, error), PAWL_OK); /* what was there is still there */
    same_models(&read, &example);
    linear_model_fini(&read);
  }
  assert_int_equal(pawl_linear_model_write(&example, "nowhere/m", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_NOT_FOUND);
  assert_non_null(strstr(error, "nowhere/m"));
}

static void test_what_is_no_file_is_not_replaced_by_one(void **state) {
  (void)state;
  struct stat is;
  char byte;
  assert_int_equal(mkfifo("pipe", 0600), 0);
  int end = open("pipe", O_RDONLY | O_NONBLOCK);
  assert_true(end >= 0);
  assert_int_equal(pawl_linear_model_write(&example, "pipe", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_OK);
  assert_int_equal(read(end, &byte, 1), 1);
  assert_int_equal(byte, 'p');
  close(end);
  assert_int_equal(stat("pipe", &is), 0);
  assert_true(S_ISFIFO(is.st_mode));
  if (access("/dev/full", W_OK) == 0)
    assert_int_equal(pawl_linear_model_write(&example, "/dev/full", PAWL_LINEAR_FORMAT_PAWL, error), PAWL_NO_SPACE);
}

static void test_formats_are_told_by_the_end_of_the_name(void **state) {
  (void)state;
  assert_int_equal(pawl_linear_format_of("a/w.npy"), PAWL_LINEAR_FORMAT_NPY);
  assert_int_equal(pawl_linear_format_of("w.liblinear"), PAWL_LINEAR_FORMAT_LIBLINEAR);
  assert_int_equal(pawl_linear_format_of("w.txt"), PAWL_LINEAR_FORMAT_LIBLINEAR);
  assert_int_equal(pawl_linear_format_of("w.pawl"), PAWL_LINEAR_FORMAT_PAWL);
  assert_int_equal(pawl_linear_format_of("npy"), PAWL_LINEAR_FORMAT_PAWL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_format_keeps_a_model),
      cmocka_unit_test(test_every_format_keeps_regression_and_squared_classes),
      cmocka_unit_test(test_pawls_format_keeps_names),
      cmocka_unit_test(test_every_format_keeps_a_zero_based_model),
      cmocka_unit_test(test_a_zero_based_model_is_one_higher_in_liblinears_format),
      cmocka_unit_test(test_pawls_format_has_room_for_the_highest_id_and_for_0),
      cmocka_unit_test(test_pawls_format_has_room_for_the_highest_id),
      cmocka_unit_test(test_pawls_format_notices_every_byte_that_is_lost_or_changed),
      cmocka_unit_test(test_text_and_arrays_that_are_cut_off_are_refused),
      cmocka_unit_test(test_what_is_no_model_is_refused_by_name),
      cmocka_unit_test(test_an_array_needs_what_explains_it),
      cmocka_unit_test(test_liblinears_first_label_is_our_second),
      cmocka_unit_test(test_liblinear_regression_has_no_labels),
      cmocka_unit_test(test_liblinear_models_that_are_not_ours_are_refused_in_a_sentence),
      cmocka_unit_test(test_models_that_are_none_are_not_written),
      cmocka_unit_test(test_what_is_no_file_is_not_replaced_by_one),
      cmocka_unit_test(test_formats_are_told_by_the_end_of_the_name),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
