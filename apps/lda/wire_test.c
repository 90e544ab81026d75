/* Specs, orders and replies on their way: they come back as they went, and nothing else is taken for one. */
#include <math.h>

#include "apps/common/wire_test.h"
#include "apps/lda/inside.h"
#include "apps/lda/marks.h"

static char *two_paths[] = {"/data/a b.ldac", "/data/\xc3\xa4\"\\.ldac"};
static double alpha[] = {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308};
static double sums[] = {0, -0.1, 1e300};

static struct lda_spec make_spec(void) {
  struct lda_spec spec = {.job = "job-1",
                          .method = PAWL_LDA_SVI,
                          .paths = two_paths,
                          .path_count = 2,
                          .label = "text",
                          .vocabulary = "/data/words",
                          .directory = "/runs/\xc3\xa4",
                          .start = "/model",
                          .fingerprint = UINT64_MAX,
                          .pieces = UINT32_MAX,
                          .corpus = UINT64_MAX - 1,
                          .generation = UINT64_C(1) << 63,
                          .topics = PAWL_LDA_TOPICS_MAX,
                          .threads = 4096,
                          .staleness = UINT16_MAX,
                          .batch = UINT32_MAX,
                          .memory = UINT64_MAX,
                          .seed = UINT64_MAX - 2,
                          .kappa = 0.7,
                          .offset = 1.0 / 3};
  pawl_data_options_init(&spec.reading);
  spec.reading.format = PAWL_DATA_TEXT;
  spec.reading.piece_bytes = UINT64_MAX;
  spec.reading.skip_bad = 17;
  return spec;
}

static struct lda_order make_order(void) {
  return (struct lda_order){.what = LDA_SWEEP,
                            .sweep = UINT64_MAX,
                            .sweeps = 12,
                            .words = LDA_WORDS_MAX,
                            .tokens = UINT64_MAX - 1,
                            .documents = UINT64_C(1) << 63,
                            .beta = 0.01,
                            .alpha = alpha,
                            .alpha_count = 4,
                            .measures = true};
}

static struct lda_reply make_reply(void) {
  return (struct lda_reply){.documents = UINT64_MAX,
                            .empty = 1,
                            .tokens = 2,
                            .words = 3,
                            .skipped = 4,
                            .unknown = 5,
                            .sampled = UINT64_MAX - 1,
                            .sampled_ns = 7,
                            .digest = {8, UINT64_MAX},
                            .document_part = -1e300,
                            .word_part = 0.1,
                            .alpha_sums = sums,
                            .alpha_count = 3,
                            .alpha_length = 1.0 / 3,
                            .beta_sum = 2.5,
                            .waited_s = 0.25,
                            .worked_s = 1e9,
                            .bytes_sent = UINT64_MAX,
                            .bytes_received = 8,
                            .memory = 9};
}

/* --- there and back ------------------------------------------------------------------------------------- */

static void test_a_spec_comes_back_as_it_went(void **state) {
  (void)state;
  struct lda_spec spec = make_spec(), again = {0};
  char *text = lda_spec_write(&spec);
  assert_non_null(text);
  assert_true(lda_spec_read(text, strlen(text), &again));
  assert_string_equal(again.job, spec.job);
  assert_int_equal(again.method, spec.method);
  assert_int_equal(again.path_count, 2);
  for (size_t i = 0; i < 2; i++) assert_string_equal(again.paths[i], two_paths[i]);
  assert_int_equal(again.reading.format, PAWL_DATA_TEXT);
  assert_true(again.reading.piece_bytes == UINT64_MAX && again.reading.skip_bad == 17);
  assert_string_equal(again.reading.label, "text");
  assert_string_equal(again.vocabulary, spec.vocabulary);
  assert_string_equal(again.directory, spec.directory);
  assert_string_equal(again.start, spec.start);
  assert_true(again.fingerprint == spec.fingerprint && again.pieces == spec.pieces && again.corpus == spec.corpus);
  assert_true(again.generation == spec.generation && again.topics == spec.topics && again.threads == spec.threads);
  assert_true(again.staleness == spec.staleness && again.batch == spec.batch && again.memory == spec.memory);
  assert_true(again.seed == spec.seed && again.kappa == spec.kappa && again.offset == spec.offset);
  char *second = lda_spec_write(&again);
  assert_string_equal(second, text);
  free(text);
  free(second);
  lda_spec_fini(&again);
}

static void test_an_order_comes_back_as_it_went(void **state) {
  (void)state;
  struct lda_order order = make_order(), again = {0};
  char *text = lda_order_write(&order);
  assert_non_null(text);
  assert_true(lda_order_read(text, strlen(text), &again));
  assert_true(again.what == LDA_SWEEP && again.sweep == order.sweep && again.sweeps == 12);
  assert_true(again.words == order.words && again.tokens == order.tokens && again.documents == order.documents);
  assert_true(again.beta == 0.01 && again.measures && !again.optimises);
  assert_int_equal(again.alpha_count, 4);
  assert_memory_equal(again.alpha, alpha, sizeof alpha);
  free(text);
  lda_order_fini(&again);
}

static void test_an_order_to_describe_has_no_alpha(void **state) {
  (void)state;
  struct lda_order order = {.what = LDA_DESCRIBE}, again = make_order();
  char *text = lda_order_write(&order);
  assert_non_null(text);
  assert_true(lda_order_read(text, strlen(text), &again));
  assert_true(again.what == LDA_DESCRIBE && again.alpha == NULL && again.alpha_count == 0);
  free(text);
}

static void test_a_reply_comes_back_as_it_went(void **state) {
  (void)state;
  struct lda_reply reply = make_reply(), again = {0};
  char *text = lda_reply_write(&reply);
  assert_non_null(text);
  assert_true(lda_reply_read(text, strlen(text), &again));
  assert_true(again.documents == UINT64_MAX && again.empty == 1 && again.tokens == 2 && again.words == 3);
  assert_true(again.skipped == 4 && again.unknown == 5 && again.sampled == UINT64_MAX - 1 && again.sampled_ns == 7);
  assert_true(again.digest.pieces == 8 && again.digest.sum == UINT64_MAX);
  assert_true(again.document_part == -1e300 && again.word_part == 0.1 && again.alpha_length == 1.0 / 3);
  assert_true(again.beta_sum == 2.5 && again.waited_s == 0.25 && again.worked_s == 1e9);
  assert_true(again.bytes_sent == UINT64_MAX && again.bytes_received == 8 && again.memory == 9);
  assert_int_equal(again.alpha_count, 3);
  assert_memory_equal(again.alpha_sums, sums, sizeof sums);
  free(text);
  lda_reply_fini(&again);
}

static void test_figures_that_are_not_finite_arrive_as_not_known(void **state) {
  (void)state;
  double strange[] = {NAN, 1, INFINITY};
  struct lda_reply reply = make_reply(), again = {0};
  reply.document_part = NAN;
  reply.word_part = -INFINITY;
  reply.alpha_sums = strange;
  char *text = lda_reply_write(&reply);
  assert_non_null(text);
  assert_true(lda_reply_read(text, strlen(text), &again));
  assert_true(isnan(again.document_part) && isnan(again.word_part));
  assert_true(isnan(again.alpha_sums[0]) && again.alpha_sums[1] == 1 && isnan(again.alpha_sums[2]));
  free(text);
  lda_reply_fini(&again);
}

/* --- what is not whole ---------------------------------------------------------------------------------- */

static char *write_kind(enum kind kind) {
  struct lda_spec spec = make_spec();
  struct lda_order order = make_order();
  struct lda_reply reply = make_reply();
  char *text = kind == SPEC ? lda_spec_write(&spec) : kind == ORDER ? lda_order_write(&order) : lda_reply_write(&reply);
  assert_non_null(text);
  return text;
}

/* From memory that ends where the text ends. Whatever is refused leaves no trace. */
static bool reads(enum kind kind, const char *text, size_t size) {
  union kinds {
    struct lda_spec spec;
    struct lda_order order;
    struct lda_reply reply;
  } out, before;
  memset(&out, 0xa5, sizeof out);
  memcpy(&before, &out, sizeof out);
  char *bytes = malloc(size ? size : 1);
  assert_non_null(bytes);
  memcpy(bytes, text, size);
  bool is_whole = kind == SPEC    ? lda_spec_read(bytes, size, &out.spec)
                  : kind == ORDER ? lda_order_read(bytes, size, &out.order)
                                  : lda_reply_read(bytes, size, &out.reply);
  free(bytes);
  if (!is_whole)
    assert_memory_equal(&out, &before, sizeof out);
  else if (kind == SPEC)
    lda_spec_fini(&out.spec);
  else if (kind == ORDER)
    lda_order_fini(&out.order);
  else
    lda_reply_fini(&out.reply);
  return is_whole;
}

static void test_specs_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(SPEC, "\"app\":\"lda\"", "\"app\":\"linear\"");
  must_not_read(SPEC, "\"job\":\"job-1\"",
                "\"job\":\"0123456789012345678901234567890123456789012345678901234567890123\"");
  must_not_read(SPEC, "\"method\":2", "\"method\":0");
  must_not_read(SPEC, "\"method\":2", "\"method\":3");
  must_not_read(SPEC, "\"topics\":65000", "\"topics\":0");
  must_not_read(SPEC, "\"topics\":65000", "\"topics\":65001");
  must_not_read(SPEC, "\"topics\":65000", "\"topics\":-1");
  must_not_read(SPEC, "\"topics\":65000", "\"topics\":1e3");
  must_not_read(SPEC, "\"threads\":4096", "\"threads\":4097");
  must_not_read(SPEC, "\"staleness\":65535", "\"staleness\":65536");
  must_not_read(SPEC, "\"batch\":4294967295", "\"batch\":0");
  must_not_read(SPEC, "\"batch\":4294967295", "\"batch\":4294967296");
  must_not_read(SPEC, "\"pieces\":\"ffffffff\"", "\"pieces\":\"100000000\"");
  must_not_read(SPEC, "\"fingerprint\":\"ffffffffffffffff\"", "\"fingerprint\":\"1ffffffffffffffff\"");
  must_not_read(SPEC, "\"memory\":\"ffffffffffffffff\"", "\"memory\":12");
  must_not_read(SPEC, "[\"/data/a b.ldac\",", "[7,");
  must_not_read(SPEC, "\"kappa\":", "\"rate\":");
}

static void test_texts_without_end_are_refused(void **state) {
  (void)state;
  char text[4200] = "\"vocabulary\":\"";
  size_t begin = strlen(text);
  memset(text + begin, 'a', 4096);
  strcpy(text + begin + 4096, "\"");
  must_not_read(SPEC, "\"vocabulary\":\"/data/words\"", text);
}

static void test_orders_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(ORDER, "\"do\":2", "\"do\":0");
  must_not_read(ORDER, "\"do\":2", "\"do\":3");
  must_not_read(ORDER, "\"sweep\":\"ffffffffffffffff\"", "\"sweep\":-1");
  must_not_read(ORDER, "\"words\":\"8000000\"", "\"words\":\"8000001\"");
  must_not_read(ORDER, "\"words\":\"8000000\"", "\"words\":\"0x8\"");
  must_not_read(ORDER, "\"measures\":true", "\"measures\":\"yes\"");
  must_not_read(ORDER, "\"alpha\":[", "\"alpha\":7,\"other\":[");
}

static void test_priors_that_are_not_positive_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"null", "0", "0.0", "-0.5", "\"1\"", "true", "[]", "1e999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[64];
    snprintf(text, sizeof text, "\"alpha\":[%s,", wrong[i]);
    must_not_read(ORDER, "\"alpha\":[", text);
    snprintf(text, sizeof text, "\"beta\":%s,\"other\":0", wrong[i]);
    must_not_read(ORDER, "\"beta\":0", text);
  }
}

static void test_replies_with_senseless_values_are_refused(void **state) {
  (void)state;
  must_not_read(REPLY, "\"documents\":\"ffffffffffffffff\"", "\"documents\":null");
  must_not_read(REPLY, "\"tokens\":\"2\"", "\"tokens\":2");
  must_not_read(REPLY, "\"alpha_sums\":[", "\"alpha_sums\":{},\"other\":[");
  must_not_read(REPLY, "\"waited_s\":0.25", "\"waited_s\":null");
}

static void test_arrays_of_more_numbers_than_topics_are_refused(void **state) {
  (void)state;
  enum { MANY = PAWL_LDA_TOPICS_MAX + 1 };
  double *numbers = malloc(MANY * sizeof *numbers);
  assert_non_null(numbers);
  for (size_t i = 0; i < MANY; i++) numbers[i] = 0.5;
  for (size_t count = MANY; count >= MANY - 1; count--) {
    struct lda_order order = make_order();
    struct lda_reply reply = make_reply();
    order.alpha = reply.alpha_sums = numbers;
    order.alpha_count = reply.alpha_count = count;
    char *first = lda_order_write(&order), *second = lda_reply_write(&reply);
    assert_int_equal(reads(ORDER, first, strlen(first)), count < MANY);
    assert_int_equal(reads(REPLY, second, strlen(second)), count < MANY);
    free(first);
    free(second);
  }
  free(numbers);
}

static void test_vectors_have_a_row_for_each_word_and_one_for_the_totals(void **state) {
  (void)state;
  struct lda_spec spec = make_spec();
  struct pawl_vector_options options;
  char name[PAWL_NAME_MAX + 1];
  spec.pieces = 33;
  lda_vector_options(&spec, 1000, &options);
  lda_vector_name(&spec, name);
  assert_string_equal(name, "job-1/lambda");
  assert_true(options.type == PAWL_F32 && options.width == spec.topics && options.size == 1001);
  spec.method = PAWL_LDA_GIBBS;
  lda_vector_options(&spec, 1000, &options);
  lda_vector_name(&spec, name);
  assert_string_equal(name, "job-1/counts");
  assert_true(options.type == PAWL_I32 && options.width == spec.topics + 2 && options.size == 1001);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_spec_comes_back_as_it_went),
      cmocka_unit_test(test_an_order_comes_back_as_it_went),
      cmocka_unit_test(test_an_order_to_describe_has_no_alpha),
      cmocka_unit_test(test_a_reply_comes_back_as_it_went),
      cmocka_unit_test(test_figures_that_are_not_finite_arrive_as_not_known),
      cmocka_unit_test(test_what_is_cut_off_is_refused),
      cmocka_unit_test(test_one_kind_is_not_taken_for_another),
      cmocka_unit_test(test_other_json_and_no_json_is_refused),
      cmocka_unit_test(test_specs_with_senseless_values_are_refused),
      cmocka_unit_test(test_texts_without_end_are_refused),
      cmocka_unit_test(test_orders_with_senseless_values_are_refused),
      cmocka_unit_test(test_priors_that_are_not_positive_are_refused),
      cmocka_unit_test(test_replies_with_senseless_values_are_refused),
      cmocka_unit_test(test_arrays_of_more_numbers_than_topics_are_refused),
      cmocka_unit_test(test_vectors_have_a_row_for_each_word_and_one_for_the_totals),
  };
  return cmocka_run_group_tests_name("apps.lda.wire", tests, NULL, NULL);
}
