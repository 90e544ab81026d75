/* Specs, orders and replies on their way: they come back as they went, and nothing else is taken for one. */
#include <math.h>

#include "apps/common/wire_test.h"
#include "apps/linear/inside.h"

static char *two_paths[] = {"/data/a b.svm", "/data/\xc3\xa4\"\\.svm"};

static struct linear_spec make_spec(void) {
  struct linear_spec spec = {.job = "job-1",
                             .loss = PAWL_LINEAR_SQUARED_HINGE,
                             .method = &linear_blocks,
                             .paths = two_paths,
                             .path_count = 2,
                             .label = "clicked",
                             .fingerprint = UINT64_MAX,
                             .pieces = UINT32_MAX,
                             .bias = true,
                             .class_weights = {0.1, 1e300},
                             .scale = PAWL_LINEAR_SCALE_DEVIATION,
                             .tau = UINT16_MAX,
                             .threads = 4096,
                             .minibatch = UINT32_MAX,
                             .rate = 1.0 / 3};
  pawl_data_options_init(&spec.reading);
  spec.reading.format = PAWL_DATA_CSV;
  spec.reading.hash_bits = 62;
  spec.reading.unit_rows = true;
  spec.reading.piece_bytes = UINT64_MAX;
  spec.reading.skip_bad = 17;
  return spec;
}

static struct linear_order make_order(void) {
  return (struct linear_order){.what = LINEAR_SWEEP,
                               .round = UINT64_MAX,
                               .point = 12,
                               .generation = UINT32_MAX,
                               .l1 = 5e-324,
                               .l2 = 1.7976931348623157e308,
                               .features = UINT64_C(1) << 63,
                               .rows = UINT64_MAX - 1,
                               .labels = {-1.5, 0.1},
                               .blocks = 1 << 20,
                               .seed = UINT64_MAX,
                               .is_full = true,
                               .slack = 1e300,
                               .damping = 1,
                               .rate = 0.3,
                               .serial = UINT64_MAX,
                               .is_first = true,
                               .iteration = UINT64_MAX - 0xfffff,
                               .steps = 0x100000 - 1,
                               .total = UINT64_MAX,
                               .number = UINT64_MAX,
                               .begin = 7,
                               .end = UINT64_MAX,
                               .turn = 1};
}

static struct linear_reply make_reply(void) {
  return (struct linear_reply){.census = {.rows = UINT64_MAX,
                                          .entries = 2,
                                          .max_id = PAWL_ID_MAX,
                                          .has_zero = true,
                                          .digest = {3, UINT64_MAX},
                                          .skipped = 4,
                                          .label_count = 3,
                                          .labels = {-1, 0.5, 1e-300},
                                          .label_rows = {5, 6, UINT64_MAX}},
                               .rows = 7,
                               .correct = 8,
                               .loss = 1e300,
                               .violation = 0.1,
                               .violation_max = 5e-324,
                               .looked_at = UINT64_MAX,
                               .waited_s = 0.25,
                               .worked_s = 1e9,
                               .bytes_sent = UINT64_MAX,
                               .bytes_received = 1,
                               .dual = -3.5,
                               .loss_before = 1e-300,
                               .loss_of_nothing = 12,
                               .slopes = {-1, 1e9},
                               .conjugates = {{1, 2, 3}, {4, 5, 6}},
                               .trials = {7, 8, 9}};
}

/* --- there and back ------------------------------------------------------------------------------------- */

static void test_a_spec_comes_back_as_it_went(void **state) {
  (void)state;
  struct linear_spec spec = make_spec(), again = {0};
  char *text = linear_spec_write(&spec);
  assert_non_null(text);
  assert_true(linear_spec_read(text, strlen(text), &again));
  assert_string_equal(again.job, "job-1");
  assert_int_equal(again.loss, spec.loss);
  assert_ptr_equal(again.method, spec.method);
  assert_int_equal(again.path_count, 2);
  for (size_t i = 0; i < 2; i++) assert_string_equal(again.paths[i], two_paths[i]);
  assert_int_equal(again.reading.format, PAWL_DATA_CSV);
  assert_int_equal(again.reading.hash_bits, 62);
  assert_false(again.reading.binary);
  assert_true(again.reading.unit_rows);
  assert_true(again.reading.piece_bytes == UINT64_MAX);
  assert_int_equal(again.reading.skip_bad, 17);
  assert_string_equal(again.reading.label, "clicked");
  assert_true(again.fingerprint == UINT64_MAX && again.pieces == UINT32_MAX && again.bias);
  assert_int_equal(again.scale, PAWL_LINEAR_SCALE_DEVIATION);
  assert_true(again.class_weights[0] == 0.1 && again.class_weights[1] == 1e300);
  assert_true(again.tau == UINT16_MAX && again.threads == 4096 && again.minibatch == UINT32_MAX);
  assert_true(again.rate == 1.0 / 3);
  char *second = linear_spec_write(&again);
  assert_string_equal(second, text);
  free(text);
  free(second);
  linear_spec_fini(&again);
}

static void test_a_spec_without_a_label_has_none(void **state) {
  (void)state;
  struct linear_spec spec = make_spec(), again = {0};
  spec.label[0] = 0;
  char *text = linear_spec_write(&spec);
  assert_true(linear_spec_read(text, strlen(text), &again));
  assert_null(again.reading.label);
  free(text);
  linear_spec_fini(&again);
}

static void test_a_path_that_is_no_text_makes_no_spec(void **state) {
  (void)state;
  char *strange[] = {"/data/fine", "/data/\xff\xfe"};
  struct linear_spec spec = make_spec();
  spec.paths = strange; /* file names are bytes, JSON is UTF-8: better none than one that lacks a path */
  char *text = linear_spec_write(&spec);
  assert_null(text);
}

/* Written again, it is the same text: structs have padding, which nobody writes. */
static void check_order(const struct linear_order *order) {
  struct linear_order again = {0};
  char *text = linear_order_write(order);
  assert_non_null(text);
  assert_true(linear_order_read(text, strlen(text), &again));
  char *second = linear_order_write(&again);
  assert_string_equal(second, text);
  free(text);
  free(second);
}

static void test_an_order_comes_back_as_it_went(void **state) {
  (void)state;
  struct linear_order order = make_order(), again = {0}, nothing = {.what = LINEAR_DESCRIBE};
  check_order(&order);
  check_order(&nothing); /* when nothing is known of the data */
  char *text = linear_order_write(&order);
  assert_true(linear_order_read(text, strlen(text), &again));
  assert_true(again.what == LINEAR_SWEEP && again.round == UINT64_MAX && again.point == 12 && again.is_full);
  assert_true(again.generation == UINT32_MAX && again.l1 == order.l1 && again.l2 == order.l2);
  assert_true(again.features == order.features && again.rows == order.rows && again.blocks == order.blocks);
  assert_true(again.labels[0] == -1.5 && again.labels[1] == 0.1 && again.seed == UINT64_MAX);
  assert_true(again.slack == 1e300 && again.damping == 1 && again.rate == 0.3);
  assert_true(again.iteration == order.iteration && again.steps == order.steps && again.total == UINT64_MAX);
  assert_true(again.number == UINT64_MAX && again.begin == 7 && again.end == UINT64_MAX && again.turn == 1);
  free(text);
}

static void test_a_reply_comes_back_as_it_went(void **state) {
  (void)state;
  struct linear_reply reply = make_reply(), again = {0};
  char *text = linear_reply_write(&reply);
  assert_non_null(text);
  assert_true(linear_reply_read(text, strlen(text), &again));
  assert_true(again.census.rows == UINT64_MAX && again.census.entries == 2 && again.census.max_id == PAWL_ID_MAX);
  assert_true(again.census.has_zero && again.census.digest.pieces == 3 && again.census.digest.sum == UINT64_MAX);
  assert_true(again.census.label_count == 3 && again.census.labels[2] == 1e-300 && again.census.skipped == 4);
  assert_true(again.census.label_rows[2] == UINT64_MAX && again.census.label_rows[0] == 5);
  assert_true(again.rows == 7 && again.correct == 8 && again.loss == 1e300 && again.violation == 0.1);
  assert_true(again.violation_max == 5e-324 && again.looked_at == UINT64_MAX && again.dual == -3.5);
  assert_true(again.waited_s == 0.25 && again.worked_s == 1e9 && again.bytes_sent == UINT64_MAX);
  char *second = linear_reply_write(&again);
  assert_string_equal(second, text);
  free(text);
  free(second);
}

static void test_figures_that_are_not_finite_arrive_as_not_known(void **state) {
  (void)state;
  struct linear_reply reply = make_reply(), again = {0};
  reply.loss = INFINITY;
  reply.violation = NAN;
  reply.violation_max = -INFINITY;
  reply.dual = NAN;
  char *text = linear_reply_write(&reply);
  assert_non_null(text);
  assert_true(linear_reply_read(text, strlen(text), &again));
  assert_true(isnan(again.loss) && isnan(again.violation) && isnan(again.violation_max) && isnan(again.dual));
  assert_int_equal(again.rows, 7);
  free(text);
}

/* --- what is not whole ---------------------------------------------------------------------------------- */

static char *write_kind(enum kind kind) {
  struct linear_spec spec = make_spec();
  struct linear_order order = make_order();
  struct linear_reply reply = make_reply();
  char *text = kind == SPEC    ? linear_spec_write(&spec)
               : kind == ORDER ? linear_order_write(&order)
                               : linear_reply_write(&reply);
  assert_non_null(text);
  return text;
}

/* From memory that ends where the text ends. Whatever is refused leaves no trace. */
static bool reads(enum kind kind, const char *text, size_t size) {
  struct linear_spec spec, spec_before;
  struct linear_order order, order_before;
  struct linear_reply reply, reply_before;
  memset(&spec, 0xa5, sizeof spec);
  memset(&order, 0xa5, sizeof order);
  memset(&reply, 0xa5, sizeof reply);
  spec_before = spec;
  order_before = order;
  reply_before = reply;
  char *bytes = malloc(size ? size : 1);
  assert_non_null(bytes);
  memcpy(bytes, text, size);
  bool is_whole = kind == SPEC    ? linear_spec_read(bytes, size, &spec)
                  : kind == ORDER ? linear_order_read(bytes, size, &order)
                                  : linear_reply_read(bytes, size, &reply);
  free(bytes);
  if (is_whole && kind == SPEC) linear_spec_fini(&spec);
  if (!is_whole) {
    assert_memory_equal(&spec, &spec_before, sizeof spec);
    assert_memory_equal(&order, &order_before, sizeof order);
    assert_memory_equal(&reply, &reply_before, sizeof reply);
  }
  return is_whole;
}

static void test_specs_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(SPEC, "\"app\":\"linear\"", "\"app\":\"trees\"");
  must_not_read(SPEC, "\"job\":\"job-1\"",
                "\"job\":\"0123456789012345678901234567890123456789012345678901234567890123\"");
  must_not_read(SPEC, "\"loss\":3", "\"loss\":0");
  must_not_read(SPEC, "\"loss\":3", "\"loss\":99");
  must_not_read(SPEC, "\"method\":1", "\"method\":0");
  must_not_read(SPEC, "\"method\":1", "\"method\":8");
  must_not_read(SPEC, "\"method\":1", "\"method\":-1");
  must_not_read(SPEC, "\"tau\":65535", "\"tau\":65536");
  must_not_read(SPEC, "\"tau\":65535", "\"tau\":-1");
  must_not_read(SPEC, "\"tau\":65535", "\"tau\":1e3");
  must_not_read(SPEC, "\"threads\":4096", "\"threads\":4097");
  must_not_read(SPEC, "\"minibatch\":4294967295", "\"minibatch\":4294967296");
  must_not_read(SPEC, "\"minibatch\":4294967295", "\"minibatch\":0"); /* a pass over the data would not end */
  must_not_read(SPEC, "\"pieces\":\"ffffffff\"", "\"pieces\":\"100000000\"");
  must_not_read(SPEC, "\"fingerprint\":\"ffffffffffffffff\"", "\"fingerprint\":\"1ffffffffffffffff\"");
  must_not_read(SPEC, "\"fingerprint\":\"ffffffffffffffff\"", "\"fingerprint\":12");
  must_not_read(SPEC, "\"hash_bits\":62", "\"hash_bits\":-62");
  must_not_read(SPEC, "[\"/data/a b.svm\",", "[7,");
  must_not_read(SPEC, "\"scale\":\"deviation\"", "\"scale\":\"\"");
  must_not_read(SPEC, "\"scale\":\"deviation\"", "\"scale\":2");
  must_not_read(SPEC, "\"rate\":", "\"fate\":");
}

static void test_orders_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(ORDER, "\"do\":2", "\"do\":0");
  must_not_read(ORDER, "\"do\":2", "\"do\":13");
  must_not_read(ORDER, "\"average\":[\"", "\"average\":[0,\"");
  must_not_read(ORDER, "\"fffff\"", "\"100000000\"");                   /* more steps than 32 bits */
  must_not_read(ORDER, "\"fffffffffff00000\"", "\"ffffffffffffffff\""); /* steps beyond the last */
  must_not_read(ORDER, "\"point\":12", "\"point\":-1");
  must_not_read(ORDER, "\"generation\":4294967295", "\"generation\":4294967296");
  must_not_read(ORDER, "\"blocks\":1048576", "\"blocks\":0");
  must_not_read(ORDER, "\"blocks\":1048576", "\"blocks\":16777216");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"0\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"8000000000000001\""); /* scatter.h */
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"-1\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\" 1\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"0x10\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"1g\"");
  must_not_read(ORDER, "\"features\":\"8000000000000000\"", "\"features\":\"1\\u00002\"");
  must_not_read(ORDER, "\"labels\":[", "\"labels\":[null,");
  must_not_read(ORDER, "\"full\":true", "\"full\":\"yes\"");
  must_not_read(ORDER, "\"curved\":false", "\"curved\":true"); /* a Hessian of 2^63 features */
}

static void test_replies_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(REPLY, "\"labels\":[[", "\"labels\":[[1.0,\"1\"],[");
  must_not_read(REPLY, "\"census\":{", "\"senses\":{");
  must_not_read(REPLY, "\"rows\":\"ffffffffffffffff\"", "\"rows\":null");
  must_not_read(REPLY, "\"correct\":\"8\"", "\"correct\":8");
  must_not_read(REPLY, "\"waited_s\":0.25", "\"waited_s\":null");
  must_not_read(REPLY, "\"trials\":[", "\"trials\":[1.0,");
  must_not_read(REPLY, "\"slopes\":[", "\"slopes\":[1.0,");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_spec_comes_back_as_it_went),
      cmocka_unit_test(test_a_spec_without_a_label_has_none),
      cmocka_unit_test(test_a_path_that_is_no_text_makes_no_spec),
      cmocka_unit_test(test_an_order_comes_back_as_it_went),
      cmocka_unit_test(test_a_reply_comes_back_as_it_went),
      cmocka_unit_test(test_figures_that_are_not_finite_arrive_as_not_known),
      cmocka_unit_test(test_what_is_cut_off_is_refused),
      cmocka_unit_test(test_one_kind_is_not_taken_for_another),
      cmocka_unit_test(test_other_json_and_no_json_is_refused),
      cmocka_unit_test(test_specs_with_senseless_values_are_refused),
      cmocka_unit_test(test_orders_with_senseless_values_are_refused),
      cmocka_unit_test(test_replies_with_senseless_values_are_refused),
  };
  return cmocka_run_group_tests_name("apps.linear.wire", tests, NULL, NULL);
}
