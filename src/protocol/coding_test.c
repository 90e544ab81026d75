/* Choice of codecs: the cheapest permitted codec is used, and every result decodes to its input. */
#include "base/memory.h"
#include "base/testing.h"
#include "net/net_ops.h"
#include "protocol/coding.h"

#define COUNT 10000
#define BIT(codec) (1u << PWI_CODEC_##codec)

static int64_t time_now;
static int64_t now(const struct pwi_net *net) {
  (void)net;
  return time_now += 1000; /* everything takes as long, whatever it is */
}

static const struct pwi_net_ops ops = {.now = now};
static const struct pwi_net net = {.ops = &ops};

static float values[COUNT];

/* One in `step` values is not zero, and all nonzero values differ. */
static void fill(size_t step) {
  for (size_t i = 0; i < COUNT; i++) values[i] = i % step == 0 ? (float)(i + 1) * 0x1p-10F : 0;
}

static struct pwi_coding coding_of(unsigned codecs, size_t count) {
  return (struct pwi_coding){.codecs = codecs, .type = PWI_TYPE_F32, .values = values, .count = count, .net = &net};
}

/* The decoded values must equal the input. */
static enum pwi_value_codec carry(const struct pwi_coding *coding) {
  static float seen[COUNT];
  struct pwi_coder coder = {0};
  struct pwi_pages place = {0};
  struct pwi_coded coded = pwi_coder_encode(&coder, coding, &place);
  size_t bytes = coding->count * sizeof *values;
  if (coded.codec == PWI_CODEC_RAW) {
    assert_ptr_equal(coded.data, coding->values);
    assert_int_equal(coded.size, bytes);
  } else {
    assert_true(coded.size < bytes);
    assert_int_equal(
        pwi_coder_decode(&coder, (uint8_t)coded.codec, coding->type, coded.data, coded.size, seen, coding->count),
        PAWL_OK);
    assert_memory_equal(seen, coding->values, bytes);
  }
  pwi_pages_fini(&place);
  pwi_coder_fini(&coder);
  return coded.codec;
}

static void test_without_codecs_values_stay_where_they_are(void **state) {
  (void)state;
  fill(10);
  struct pwi_coding coding = coding_of(BIT(RAW), COUNT);
  assert_int_equal(carry(&coding), PWI_CODEC_RAW);
}

static void test_few_values_go_as_they_are(void **state) {
  (void)state;
  fill(100);
  struct pwi_coding coding = coding_of(BIT(BITMAP) | BIT(ZSTD), PWI_CODING_MIN / 4 - 1);
  assert_int_equal(carry(&coding), PWI_CODEC_RAW);
}

static void test_the_codec_that_takes_least_is_used(void **state) {
  (void)state;
  fill(10);
  struct pwi_coding coding = coding_of(BIT(BITMAP) | BIT(F16), COUNT);
  assert_int_equal(carry(&coding), PWI_CODEC_BITMAP);
  for (size_t i = 0; i < COUNT; i++) values[i] = 1.5F;
  assert_int_equal(carry(&coding), PWI_CODEC_F16);
  coding.codecs = BIT(BITMAP) | BIT(FIXED);
  assert_int_equal(carry(&coding), PWI_CODEC_FIXED);
  coding.codecs = BIT(BITMAP); /* which would only add to it */
  assert_int_equal(carry(&coding), PWI_CODEC_RAW);
}

static void test_a_compressor_that_is_named_is_tried_beside_the_others(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) values[i] = 1.5F;
  struct pwi_coding coding = coding_of(BIT(F16) | BIT(LZ4), COUNT);
  assert_int_equal(carry(&coding), PWI_CODEC_LZ4);
  coding.codecs = BIT(ZSTD);
  assert_int_equal(carry(&coding), PWI_CODEC_ZSTD);
}

static void test_a_free_choice_takes_the_codec_that_pays_off(void **state) {
  (void)state;
  struct pwi_adapt adapt;
  struct pwi_adapt_link slow = {.bytes = 1e6, .ns = 1e9}, fast = {.bytes = 1e9, .ns = 1};
  for (size_t i = 0; i < COUNT; i++) values[i] = 1.5F;
  struct pwi_coding coding = coding_of(BIT(LZ4) | BIT(ZSTD), COUNT);
  assert_int_equal(carry(&coding), PWI_CODEC_RAW); /* nothing is known to choose by */
  coding.adapt = &adapt;
  coding.link = &slow;
  pwi_adapt_init(&adapt, PWI_TYPE_F32);
  unsigned packed = 0;
  for (int i = 0; i < 10; i++) packed += carry(&coding) != PWI_CODEC_RAW;
  assert_true(packed >= 6);
  coding.link = &fast;
  pwi_adapt_init(&adapt, PWI_TYPE_F32);
  for (int i = 0; i < 10; i++) assert_int_equal(carry(&coding), PWI_CODEC_RAW);
}

static void test_without_memory_values_go_as_they_are(void **state) {
  (void)state;
  fill(10);
  struct pwi_coding coding = coding_of(BIT(BITMAP) | BIT(ZSTD), COUNT);
  for (uint64_t n = 0;; n++) {
    struct pwi_coder coder = {0};
    struct pwi_pages place = {0};
    pwi_memory_fail_after(n);
    struct pwi_coded coded = pwi_coder_encode(&coder, &coding, &place);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(coded.size <= COUNT * sizeof *values);
    pwi_pages_fini(&place);
    pwi_coder_fini(&coder);
    if (!has_failed) {
      assert_int_equal(coded.codec, PWI_CODEC_ZSTD);
      break;
    }
  }
}

static void test_bytes_that_the_encoder_does_not_write_are_refused(void **state) {
  (void)state;
  static float seen[COUNT];
  struct pwi_coder coder = {0};
  fill(3);
  for (uint8_t codec = 0; codec < PWI_CODEC_COUNT + 2; codec++) {
    pawl_status status = pwi_coder_decode(&coder, codec, PWI_TYPE_F32, "0123456789", 10, seen, COUNT);
    assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED);
  }
  pwi_coder_fini(&coder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_codecs_values_stay_where_they_are),
      cmocka_unit_test(test_few_values_go_as_they_are),
      cmocka_unit_test(test_the_codec_that_takes_least_is_used),
      cmocka_unit_test(test_a_compressor_that_is_named_is_tried_beside_the_others),
      cmocka_unit_test(test_a_free_choice_takes_the_codec_that_pays_off),
      cmocka_unit_test(test_without_memory_values_go_as_they_are),
      cmocka_unit_test(test_bytes_that_the_encoder_does_not_write_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
