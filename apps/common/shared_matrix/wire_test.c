/* Specs, orders and replies: they are read as they were written, and damaged ones are refused. */
#include <math.h>
#include <stdlib.h>

#include "apps/common/json.h"
#include "apps/common/shared_matrix/inside.h"

#include "apps/common/wire_test.h"

static struct matrix_order some_order(void) {
  return (struct matrix_order){.what = MATRIX_STEPS,
                               .serial = 3,
                               .number = 9,
                               .step = UINT64_MAX - 5,
                               .count = 5,
                               .phase = 1,
                               .factor = 1e-90,
                               .node = 77,
                               .begin = 4,
                               .end = 6};
}

static char *write_spec(void) {
  static char one[] = "/data/one", two[] = "/data/two";
  static char *paths[] = {one, two};
  struct matrix_spec spec = {.job = "words",
                             .app = "mlr",
                             .way = PAWL_MATRIX_WHOLE,
                             .staleness = PAWL_MATRIX_ASYNC,
                             .threads = 2,
                             .graph = "ring",
                             .forward = true,
                             .paths = paths,
                             .path_count = 2,
                             .label = "class",
                             .digest = UINT64_MAX,
                             .shape = {100, 7, true},
                             .is_sparse = true};
  pawl_data_options_init(&spec.reading);
  spec.reading.separator = ';';
  spec.terms = json_pack("{s:i}", "rank", 5);
  char *text = matrix_spec_write(&spec);
  json_decref(spec.terms);
  return text;
}

static char *write_kind(enum kind kind) {
  const struct matrix_reply reply = {.number = 4, .done = 5, .factor = 0.5, .hash = 6};
  struct matrix_order order = some_order();
  size_t size;
  if (kind == SPEC) return write_spec();
  if (kind == REPLY) return matrix_reply_write(&reply);
  char *frame = matrix_order_write(&order, &size), *copy = malloc(size);
  assert_non_null(frame && copy ? copy : NULL);
  memcpy(copy, frame, size); /* a text, and a 0: there are no bytes */
  apps_free(frame);
  return copy;
}

static bool reads(enum kind kind, const char *text, size_t size) {
  size_t room = size + (kind == ORDER); /* an order has a 0 behind its text */
  char *copy = malloc(room + 1);
  struct matrix_spec spec = {.threads = 12345};
  struct matrix_order order = {.serial = 12345};
  struct matrix_reply reply = {.done = 12345};
  assert_non_null(copy);
  memcpy(copy, text, size);
  if (kind == ORDER) copy[size] = 0;
  bool good = kind == SPEC    ? matrix_spec_read(copy, size, &spec)
              : kind == ORDER ? matrix_order_read(copy, room, &order)
                              : matrix_reply_read(copy, size, &reply);
  if (!good) assert_true(spec.threads == 12345 && order.serial == 12345 && reply.done == 12345);
  if (good && kind == SPEC) matrix_spec_fini(&spec);
  free(copy);
  return good;
}

static void test_a_spec_is_read_as_it_was_written(void **state) {
  (void)state;
  struct matrix_spec spec;
  int rank = 0;
  char *text = write_spec();
  assert_true(matrix_spec_read(text, strlen(text), &spec));
  assert_string_equal(spec.job, "words");
  assert_string_equal(spec.app, "mlr");
  assert_string_equal(spec.graph, "ring");
  assert_string_equal(spec.paths[1], "/data/two");
  assert_true(spec.reading.label == spec.label && strcmp(spec.label, "class") == 0 && spec.reading.separator == ';');
  assert_true(spec.digest == UINT64_MAX && spec.staleness == PAWL_MATRIX_ASYNC && spec.forward && spec.is_sparse);
  assert_true(spec.shape.rows == 100 && spec.shape.columns == 7 && spec.shape.is_double);
  assert_int_equal(json_unpack(spec.terms, "{s:i}", "rank", &rank), 0);
  assert_int_equal(rank, 5);
  matrix_spec_fini(&spec);
  free(text);
}

static void test_an_order_has_bytes_behind_it(void **state) {
  (void)state;
  struct matrix_order order = some_order(), read;
  size_t size;
  order.what = MATRIX_TAKE;
  order.bytes = "\0x";
  order.size = 2;
  char *frame = matrix_order_write(&order, &size);
  assert_true(matrix_order_read(frame, size, &read));
  assert_int_equal(read.what, MATRIX_TAKE);
  assert_true(read.step == order.step && read.count == 5 && read.factor == 1e-90 && read.node == 77);
  assert_memory_equal(read.bytes, "\0x", 2);
  assert_false(matrix_order_read(frame, size - 1, &read));
  apps_free(frame);
}

static void test_impossible_numbers_are_refused(void **state) {
  (void)state;
  must_not_read(SPEC, "\"way\":2", "\"way\":4");
  must_not_read(SPEC, "\"threads\":2", "\"threads\":0");
  must_not_read(SPEC, "\"shape\":[\"64\"", "\"shape\":[\"0\"");
  must_not_read(SPEC, "\"shape\":[\"64\"", "\"shape\":[\"ffffffffffffffff\"");
  must_not_read(SPEC, "\"format\":0,\"reading\"", "\"format\":9,\"reading\"");
  must_not_read(SPEC, "{\"rank\":5}", "[5]");
  must_not_read(ORDER, "\"do\":3", "\"do\":9");
  must_not_read(ORDER, "\"do\":3", "\"do\":2"); /* bytes are missing */
  must_not_read(ORDER, "\"begin\":\"4\"", "\"begin\":\"7\"");
  must_not_read(ORDER, "\"count\":\"5\"", "\"count\":\"6\"");
  must_not_read(ORDER, "\"factor\":", "\"factor\":-");
  must_not_read(REPLY, "\"hash\":\"6\"", "\"hash\":\"-6\"");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_spec_is_read_as_it_was_written),
      cmocka_unit_test(test_an_order_has_bytes_behind_it),
      cmocka_unit_test(test_impossible_numbers_are_refused),
      cmocka_unit_test(test_what_is_cut_off_is_refused),
      cmocka_unit_test(test_one_kind_is_not_taken_for_another),
      cmocka_unit_test(test_other_json_and_no_json_is_refused),
  };
  return cmocka_run_group_tests_name("apps.common.shared_matrix.wire", tests, NULL, NULL);
}
