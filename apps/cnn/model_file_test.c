/* Files of nets: a reader returns the net that was written, and reports damage. */
#include <math.h>
#include <unistd.h>

#include <xxhash.h>

#include "apps/cnn/model.h"
#include "apps/common/model_file.h"
#include "base/memory.h"
#include "base/testing.h"

static char folder[] = "/tmp/pawl-cnn-XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/net.model", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

/* A small lenet with made-up parameters. */
static struct pawl_cnn_model *make_model(void) {
  struct pawl_cnn_about about = {.net = "lenet",
                                 .channels = 2,
                                 .height = 16,
                                 .width = 17,
                                 .classes = 3,
                                 .mean = {33.25, 1.0 / 3},
                                 .deviation = {78.5, 1e-3},
                                 .images = 1000,
                                 .epochs = 4,
                                 .seed = UINT64_MAX,
                                 .loss = 0.125,
                                 .test_error = (double)NAN};
  struct pawl_cnn_model *model = NULL;
  char error[PAWL_CNN_TEXT] = "";
  if (cnn_model_create(&about, &model, error)) fail_msg("%s", error);
  cnn_net_start(model->net, 7, model->parameters);
  return model;
}

static char *file_of(const struct pawl_cnn_model *model, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(cnn_model_fill(file, model), PAWL_OK);
  assert_int_equal(fclose(file), 0);
  return bytes;
}

static void write_file(const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

static void test_a_model_is_the_same_after_reading(void **state) {
  (void)state;
  struct pawl_cnn_model *model = make_model(), *read = NULL;
  struct pawl_cnn_about one, other;
  char error[PAWL_CNN_TEXT] = "";
  assert_int_equal(pawl_cnn_model_write(model, path, error), PAWL_OK);
  assert_true(pawl_cnn_model_is(path));
  if (pawl_cnn_model_read(path, &read, error)) fail_msg("%s", error);
  pawl_cnn_model_about(model, &one);
  pawl_cnn_model_about(read, &other);
  assert_string_equal(one.net, other.net);
  assert_int_equal(other.channels * 10000 + other.height * 100 + other.width, 21617);
  assert_int_equal(other.classes, 3);
  assert_int_equal(other.parameters, one.parameters);
  assert_int_equal(other.tensors, 8);
  assert_int_equal(other.images, 1000);
  assert_int_equal(other.epochs, 4);
  assert_true(other.seed == UINT64_MAX && other.loss == 0.125 && isnan(other.test_error));
  assert_memory_equal(one.mean, other.mean, 2 * sizeof *one.mean);
  assert_memory_equal(one.deviation, other.deviation, 2 * sizeof *one.deviation);
  assert_memory_equal(pawl_cnn_model_parameters(read), pawl_cnn_model_parameters(model),
                      (size_t)one.parameters * sizeof(float));
  assert_string_equal(pawl_cnn_model_tensor(read, 7)->name, "full2.biases");
  assert_null(pawl_cnn_model_tensor(read, 8));
  pawl_cnn_model_destroy(model);
  pawl_cnn_model_destroy(read);
}

static void refuse(const char *bytes, size_t size, pawl_status expected, const char *what) {
  struct pawl_cnn_model *model = NULL;
  char error[PAWL_CNN_TEXT] = "";
  write_file(bytes, size);
  pawl_status status = pawl_cnn_model_read(path, &model, error);
  if (status != expected || model || strncmp(error, path, strlen(path)) != 0 || !strstr(error, what))
    fail_msg("%s: '%s'; expected %s: '%s'", pawl_status_name(status), error, pawl_status_name(expected), what);
}

static void test_a_truncated_or_longer_file_is_refused(void **state) {
  (void)state;
  struct pawl_cnn_model *model = make_model();
  size_t size;
  char *bytes = file_of(model, &size), *longer = calloc(size + 1, 1);
  refuse(bytes, 0, PAWL_TRUNCATED, "empty");
  refuse(bytes, 15, PAWL_TRUNCATED, "ends in its first line");
  refuse(bytes, 100, PAWL_TRUNCATED, "ends in its header");
  refuse(bytes, size - 1, PAWL_TRUNCATED, "ends too early; expected");
  refuse(bytes, size / 2, PAWL_TRUNCATED, "ends too early");
  memcpy(longer, bytes, size);
  refuse(longer, size + 1, PAWL_CORRUPT, "unexpected data after the parameters");
  free(longer);
  free(bytes);
  pawl_cnn_model_destroy(model);
}

static void test_a_changed_byte_is_noticed(void **state) {
  (void)state;
  struct pawl_cnn_model *model = make_model();
  size_t size;
  char *bytes = file_of(model, &size);
  for (size_t at = 0; at < size; at += at < 2000 ? 1 : 9973) {
    struct pawl_cnn_model *read = NULL;
    char why[PAWL_CNN_TEXT] = "", was = bytes[at];
    bytes[at] ^= 4;
    assert_true(cnn_model_decode(bytes, size, &read, why) != PAWL_OK);
    assert_true(!read && why[0]);
    bytes[at] = was;
  }
  free(bytes);
  pawl_cnn_model_destroy(model);
}

/* A change of the header with a checksum that fits. `from` and `to` have the same length. */
static void refuse_change(const char *from, const char *to, pawl_status expected, const char *what) {
  struct pawl_cnn_model *model = make_model();
  size_t size;
  char *bytes = file_of(model, &size), *at = memmem(bytes, size, from, strlen(from));
  assert_true(at && strlen(from) == strlen(to));
  memcpy(at, to, strlen(to));
  XXH64_hash_t sum = XXH3_64bits(bytes, size - 8);
  for (int i = 0; i < 8; i++) bytes[size - 8 + (size_t)i] = (char)(unsigned char)(sum >> (8 * i));
  refuse(bytes, size, expected, what);
  free(bytes);
  pawl_cnn_model_destroy(model);
}

static void test_a_header_that_does_not_fit_is_refused(void **state) {
  (void)state;
  refuse_change("\"lenet\"", "\"lemur\"", PAWL_UNSUPPORTED, "unknown net 'lemur'");
  refuse_change("\"cnn\"", "\"dnn\"", PAWL_MISMATCH, "this is a dnn model");
  refuse_change("pawl-model 1", "pawl-model 2", PAWL_UNSUPPORTED, "unknown version");
  refuse_change("pawl-model 1", "pawl-muddle1", PAWL_CORRUPT, "not a model");
  refuse_change("\"height\": 16", "\"height\": -6", PAWL_CORRUPT, "\"height\"");
  refuse_change("\"height\": 16", "\"height\": 11", PAWL_MISMATCH, "too small for lenet");
  refuse_change("\"height\": 16", "\"height\": 99", PAWL_UNSUPPORTED, "a different version of pawl");
  refuse_change("\"classes\": 3", "\"classes\": 0", PAWL_CORRUPT, "\"classes\"");
  refuse_change("\"channels\": 2", "\"channels\": 1", PAWL_CORRUPT, "\"mean\"");
  refuse_change("0.001", "0.000", PAWL_CORRUPT, "\"deviation\"");
  refuse_change("conv2.biases", "conv3.biases", PAWL_UNSUPPORTED, "the tensors are not those of lenet");
  refuse_change("[20, 2, 5, 5]", "[20, 5, 2, 5]", PAWL_UNSUPPORTED, "the tensors are not those of lenet");
}

static void test_a_parameter_that_is_not_finite_is_refused(void **state) {
  (void)state;
  struct pawl_cnn_model *model = make_model();
  size_t size;
  model->parameters[100] = NAN;
  char *bytes = file_of(model, &size);
  refuse(bytes, size, PAWL_CORRUPT, "not finite");
  free(bytes);
  pawl_cnn_model_destroy(model);
}

static void test_other_files_are_no_nets(void **state) {
  (void)state;
  assert_false(pawl_cnn_model_is("/nonexistent"));
  write_file("pawl-model 1 00000384\n{\n  \"kind\": \"topics\"", 43);
  assert_false(pawl_cnn_model_is(path));
  write_file("", 0);
  assert_false(pawl_cnn_model_is(path));
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_cnn_model *model = make_model();
  char error[PAWL_CNN_TEXT];
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (bool over = false; !over; n++) {
    struct pawl_cnn_model *read = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pawl_cnn_model_write(model, path, error);
    if (!status) status = pawl_cnn_model_read(path, &read, error);
    over = !pwi_memory_fail_cancel();
    /* Syncing the directory may fail without harm. */
    assert_true(status == PAWL_OK || (!over && status == PAWL_NO_MEMORY));
    pawl_cnn_model_destroy(read);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 6);
  pawl_cnn_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_model_is_the_same_after_reading),
      cmocka_unit_test(test_a_truncated_or_longer_file_is_refused),
      cmocka_unit_test(test_a_changed_byte_is_noticed),
      cmocka_unit_test(test_a_header_that_does_not_fit_is_refused),
      cmocka_unit_test(test_a_parameter_that_is_not_finite_is_refused),
      cmocka_unit_test(test_other_files_are_no_nets),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
