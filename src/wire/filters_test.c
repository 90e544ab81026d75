/* Whole chains: the input equals the output plus residuals, failures change nothing, and order matters. */
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "wire/filters.h"

#define SEED 3
#define SPAN 500

static struct pawl_filters_options options_of(enum pawl_type type, uint32_t width) {
  struct pawl_filters_options options;
  pawl_filters_options_init(&options);
  options.type = type;
  options.width = width;
  options.seed = SEED;
  return options;
}

static struct pawl_filters *create(const char *text, enum pawl_type type, uint32_t width) {
  struct pawl_filters_options options = options_of(type, width);
  struct pawl_filters *filters;
  assert_int_equal(pawl_filters_create(text, &options, &filters), PAWL_OK);
  return filters;
}

static struct pawl_filter_counters counters_of(const struct pawl_filters *filters, size_t index) {
  struct pawl_filter_counters counters;
  assert_int_equal(pawl_filters_counters(filters, index, &counters), PAWL_OK);
  return counters;
}

static size_t draw_keys(struct pwi_random *random, double part, uint64_t *keys) {
  size_t count = 0;
  for (uint64_t key = 0; key < SPAN; key++)
    if (pwi_random_chance(random, part)) keys[count++] = key * 37;
  return count;
}

/* --- what goes in comes out ----------------------------------------------------------------------------- */

/* Values of any integer type, by their bits: sums wrap around, and are exact. */
static void check_integers(const char *text, enum pawl_type type) {
  static uint64_t in[SPAN], out[SPAN], keys[SPAN], values[SPAN];
  struct pawl_filters *filters = create(text, type, 1);
  struct pawl_rows rows = {0};
  struct pwi_random random;
  size_t size = type == PAWL_I32 ? 4 : 8;
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  pwi_random_init(&random, SEED, (uint64_t)type);
  for (int round = 0; round < 100; round++) {
    size_t count = round == 99 ? 0 : draw_keys(&random, 0.3, keys);
    for (size_t i = 0; i < count; i++) {
      uint64_t value = pwi_random_u64(&random) >> pwi_random_below(&random, 60);
      in[keys[i] / 37] += value;
      memcpy((char *)values + i * size, &value, size);
    }
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, count, round % 33 == 0, &rows), PAWL_OK);
    for (size_t i = 0; i < rows.count; i++) {
      uint64_t value = 0;
      memcpy(&value, (char *)rows.values + i * size, size);
      out[rows.keys[i] / 37] += value;
    }
  }
  assert_int_equal(pawl_filters_held(filters), 0);
  for (size_t k = 0; k < SPAN; k++)
    assert_true(type == PAWL_I32 ? (uint32_t)in[k] == (uint32_t)out[k] : in[k] == out[k]);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_integers_are_conserved_exactly(void **state) {
  (void)state;
  static const char *const texts[] = {"significant(threshold=1000)", "skip(rate=0.7)",
                                      "significant(threshold=100) | skip(rate=0.5) | significant(threshold=1e6)",
                                      "skip(rate=0.9, rests=10) | significant(threshold=1e12, rests=7)"};
  print_message("seed %d\n", SEED);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    check_integers(texts[i], PAWL_I32);
    check_integers(texts[i], PAWL_I64);
    check_integers(texts[i], PAWL_U64);
  }
}

static void test_floats_are_conserved_to_rounding(void **state) {
  (void)state;
  static double in[SPAN][2], out[SPAN][2], values[SPAN * 2];
  static uint64_t keys[SPAN];
  struct pawl_filters *filters = create("significant(threshold=0.5) | skip(rate=0.3)", PAWL_F64, 2);
  struct pawl_rows rows = {0};
  struct pwi_random random;
  pwi_random_init(&random, SEED, 0);
  for (int round = 0; round < 300; round++) {
    size_t count = draw_keys(&random, 0.4, keys);
    for (size_t i = 0; i < 2 * count; i++) {
      values[i] = pwi_random_unit(&random) - 0.5;
      in[keys[i / 2] / 37][i % 2] += values[i];
    }
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, count, round == 299, &rows), PAWL_OK);
    for (size_t i = 0; i < 2 * rows.count; i++) out[rows.keys[i / 2] / 37][i % 2] += ((double *)rows.values)[i];
  }
  for (size_t k = 0; k < SPAN; k++)
    for (size_t j = 0; j < 2; j++) assert_true(fabs(in[k][j] - out[k][j]) < 1e-11);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_a_small_change_waits_until_it_is_significant(void **state) {
  (void)state;
  const uint64_t keys[] = {4, 9};
  const float values[] = {0.4f, -2};
  struct pawl_filters *filters = create("significant(threshold=1)", PAWL_F32, 1);
  struct pawl_rows rows = {0};
  for (int round = 1; round <= 3; round++) {
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 2, false, &rows), PAWL_OK);
    assert_int_equal(rows.count, round < 3 ? 1 : 2);
    assert_int_equal(pawl_filters_held(filters), round < 3 ? 1 : 0);
  }
  assert_int_equal(rows.keys[0], 4);
  assert_float_equal(((float *)rows.values)[0], 1.2f, 1e-6f);
  assert_float_equal(((float *)rows.values)[1], -2, 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* A row with one large value is sent whole. */
static void test_a_row_is_held_or_sent_as_a_whole(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2};
  const double values[] = {0.1, 0.2, 0.3, 5};
  struct pawl_filters *filters = create("significant(threshold=1)", PAWL_F64, 2);
  struct pawl_rows rows = {0};
  assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 2, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 1);
  assert_int_equal(rows.keys[0], 2);
  assert_memory_equal(rows.values, values + 2, 16);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* --- random filters ------------------------------------------------------------------------------------- */

/* 2000 runs of 100 rows of 1: the mean of a key's sum has a standard error of sqrt(p / (1 - p) / 2000), and 5
 * of them are allowed, which a right filter exceeds once in two million keys. */
static void test_skipping_with_scale_is_unbiased(void **state) {
  (void)state;
  const double rate = 0.3;
  static double sums[100];
  uint64_t keys[100];
  double values[100], total = 0;
  struct pawl_filters *filters = create("skip(rate=0.3, rest=scale)", PAWL_F64, 1);
  struct pawl_rows rows = {0};
  for (size_t i = 0; i < 100; i++) keys[i] = i, values[i] = 1;
  for (int run = 0; run < 2000; run++) {
    assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 100, false, &rows), PAWL_OK);
    for (size_t i = 0; i < rows.count; i++) sums[rows.keys[i]] += ((double *)rows.values)[i];
  }
  double error = sqrt(rate / (1 - rate) / 2000);
  for (size_t i = 0; i < 100; i++) {
    assert_true(fabs(sums[i] / 2000 - 1) < 5 * error);
    total += sums[i];
  }
  assert_true(fabs(total / 200000 - 1) < 5 * error / 10);
  assert_int_equal(counters_of(filters, 0).memory, 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_the_same_seed_gives_the_same_rows(void **state) {
  (void)state;
  static const char *const texts[] = {"skip(rate=0.5)", "skip(rate=0.5, rest=scale)", "half", "fixed(bits=4)"};
  static uint64_t keys[SPAN];
  static float values[SPAN];
  for (size_t i = 0; i < SPAN; i++) keys[i] = i * i, values[i] = 1 / (float)(i + 3);
  for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
    struct pawl_filters *a = create(texts[t], PAWL_F32, 1), *b = create(texts[t], PAWL_F32, 1), *c;
    struct pawl_filters_options options = options_of(PAWL_F32, 1);
    struct pawl_rows here = {0}, there = {0}, other = {0};
    options.seed = SEED + 1;
    assert_int_equal(pawl_filters_create(texts[t], &options, &c), PAWL_OK);
    assert_int_equal(pawl_filters_run(a, keys, values, NULL, SPAN, false, &here), PAWL_OK);
    assert_int_equal(pawl_filters_run(b, keys, values, NULL, SPAN, false, &there), PAWL_OK);
    assert_int_equal(pawl_filters_run(c, keys, values, NULL, SPAN, false, &other), PAWL_OK);
    assert_int_equal(here.count, there.count);
    assert_memory_equal(here.keys, there.keys, here.count * sizeof *keys);
    assert_memory_equal(here.values, there.values, here.count * sizeof *values);
    assert_true(other.count != here.count || memcmp(here.values, other.values, here.count * sizeof *values) != 0);
    pawl_rows_fini(&here);
    pawl_rows_fini(&there);
    pawl_rows_fini(&other);
    pawl_filters_destroy(a);
    pawl_filters_destroy(b);
    pawl_filters_destroy(c);
  }
}

/* --- kkt ------------------------------------------------------------------------------------------------ */

static void test_kkt_leaves_out_weights_that_stay_zero(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2, 3, 4, 5, 6};
  const float weights[] = {0, 0, 0.5f, 0, -0.0f, NAN};
  const float gradients[] = {0.1f, 0.95f, 0.1f, NAN, -0.75f, 0};
  struct pawl_filters *filters = create("kkt(lambda=1, delta=0.25)", PAWL_F32, 1);
  struct pawl_rows rows = {0};
  assert_int_equal(pawl_filters_run(filters, keys, gradients, NULL, 6, false, &rows), PAWL_INVALID);
  assert_int_equal(pawl_filters_run(filters, keys, gradients, weights, 6, false, &rows), PAWL_OK);
  const uint64_t sent[] = {2, 3, 4, 6}; /* near the edge, in use, not a number, unknown */
  assert_int_equal(rows.count, 4);
  assert_memory_equal(rows.keys, sent, sizeof sent);
  struct pawl_filter_counters counters = counters_of(filters, 0);
  assert_int_equal(counters.rows_before - counters.rows_after, 2);
  assert_int_equal(counters.held, 0);
  assert_int_equal(pawl_filters_run(filters, keys, gradients, NULL, 6, true, &rows), PAWL_OK);
  assert_int_equal(rows.count, 6);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static bool odd_keys(void *context, uint64_t key, const void *weights, const void *gradients) {
  (*(int *)context)++;
  return key % 2 == 1 && !weights && gradients;
}

static void test_kkt_asks_a_rule_of_the_callers(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2, 3, 4};
  const float gradients[] = {1, 2, 3, 4};
  int calls = 0;
  struct pawl_filters_options options = options_of(PAWL_F32, 1);
  struct pawl_filters *filters;
  struct pawl_rows rows = {0};
  options.kkt_rule = odd_keys;
  options.kkt_context = &calls;
  assert_int_equal(pawl_filters_create("kkt(lambda=1)", &options, &filters), PAWL_OK);
  assert_int_equal(pawl_filters_run(filters, keys, gradients, NULL, 4, false, &rows), PAWL_OK);
  assert_int_equal(calls, 4);
  assert_int_equal(rows.count, 2);
  assert_int_equal(rows.keys[1], 4);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* Weights belong to their rows, also when a filter before has dropped some. */
static void test_weights_follow_their_rows(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2, 3, 4};
  const double weights[] = {0, 7, 0, 7}, gradients[] = {0.1, 0.1, 5, 5};
  struct pawl_filters *filters = create("significant(threshold=1) | kkt(lambda=9)", PAWL_F64, 1);
  struct pawl_rows rows = {0};
  assert_int_equal(pawl_filters_run(filters, keys, gradients, weights, 4, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 1);
  assert_int_equal(rows.keys[0], 4);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* --- order ---------------------------------------------------------------------------------------------- */

/* significant | half sends what sixteen bits hold, and forgets the rounding; half | significant gathers
 * rounded values, whose sums need more bits. */
static void test_the_order_of_filters_matters(void **state) {
  (void)state;
  const uint64_t key = 1;
  const float small = 0.00013f, large = 2049;
  const char *const texts[] = {"significant(threshold=1) | half(round=nearest)",
                               "half(round=nearest) | significant(threshold=1)"};
  const unsigned codecs[] = {1u << PWI_CODEC_RAW | 1u << PWI_CODEC_F16, 1u << PWI_CODEC_RAW};
  float sent[2];
  for (size_t i = 0; i < 2; i++) {
    struct pawl_filters *filters = create(texts[i], PAWL_F32, 1);
    struct pawl_rows rows = {0};
    assert_int_equal(pawl_filters_run(filters, &key, &small, NULL, 1, false, &rows), PAWL_OK);
    assert_int_equal(rows.count, 0);
    assert_int_equal(pawl_filters_run(filters, &key, &large, NULL, 1, false, &rows), PAWL_OK);
    assert_int_equal(rows.count, 1);
    sent[i] = *(float *)rows.values;
    assert_int_equal(pwi_filters_codecs(filters), codecs[i]);
    pawl_rows_fini(&rows);
    pawl_filters_destroy(filters);
  }
  assert_true(sent[0] == 2050); /* 2049.00013 rounded once: above the middle */
  assert_true(sent[1] > 2048 && sent[1] < 2048.001f);
}

static void test_a_flush_passes_the_filters_behind(void **state) {
  (void)state;
  const uint64_t keys[] = {3, 5};
  const float values[] = {0.1f, 0.2f};
  struct pawl_filters *filters = create("significant(threshold=1) | skip(rate=0.999) | half", PAWL_F32, 1);
  struct pawl_rows rows = {0};
  assert_int_equal(pawl_filters_run(filters, keys, values, NULL, 2, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 0);
  assert_int_equal(pawl_filters_held(filters), 2);
  assert_true(counters_of(filters, 0).memory > 0);
  assert_int_equal(pawl_filters_run(filters, NULL, NULL, NULL, 0, true, &rows), PAWL_OK);
  assert_int_equal(rows.count, 2);
  assert_memory_equal(rows.keys, keys, sizeof keys);
  assert_float_equal(((float *)rows.values)[0], 0.1f, 1e-4f);
  assert_true(((float *)rows.values)[0] != 0.1f); /* it has been rounded to sixteen bits */
  assert_int_equal(pawl_filters_held(filters), 0);
  assert_int_equal(counters_of(filters, 0).memory, 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_a_filter_for_the_other_direction_does_nothing(void **state) {
  (void)state;
  const uint64_t key = 1;
  const float value = 0.1f;
  struct pawl_filters_options options = options_of(PAWL_F32, 1);
  struct pawl_filters *filters;
  struct pawl_rows rows = {0};
  options.direction = PAWL_ON_PULL;
  options.adds = false; /* matters for pushes only */
  const char *text = "significant(threshold=1) | half(on=push) | keys(on=push) | zeros";
  assert_int_equal(pawl_filters_create(text, &options, &filters), PAWL_OK);
  assert_int_equal(pawl_filters_run(filters, &key, &value, NULL, 1, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 1);
  assert_memory_equal(rows.values, &value, sizeof value);
  assert_int_equal(pwi_filters_codecs(filters), 1u << PWI_CODEC_RAW | 1u << PWI_CODEC_BITMAP);
  assert_false(pwi_filters_cache_keys(filters));
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* --- NaN and infinities --------------------------------------------------------------------------------- */

static void test_nan_and_infinities_are_never_hidden(void **state) {
  (void)state;
  static const char *const texts[] = {"significant(threshold=10)",
                                      "half",
                                      "half(type=bf16)",
                                      "fixed",
                                      "fixed(bits=2)",
                                      "significant(threshold=10) | half | fixed"};
  const uint64_t keys[] = {1, 2, 3, 4};
  const float before[] = {1, 1, 1, 1}, after[] = {NAN, INFINITY, -INFINITY, 128};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct pawl_filters *filters = create(texts[i], PAWL_F32, 1);
    struct pawl_rows rows = {0};
    assert_int_equal(pawl_filters_run(filters, keys, before, NULL, 4, false, &rows), PAWL_OK);
    assert_int_equal(pawl_filters_run(filters, keys, after, NULL, 4, false, &rows), PAWL_OK);
    const float *values = rows.values;
    assert_int_equal(rows.count, 4);
    assert_true(isnan(values[0]) && values[1] == INFINITY && values[2] == -INFINITY);
    assert_true(values[3] >= 128 && values[3] <= 130);
    assert_int_equal(pawl_filters_held(filters), 0);
    pawl_rows_fini(&rows);
    pawl_filters_destroy(filters);
  }
}

/* --- failure -------------------------------------------------------------------------------------------- */

static void test_without_memory_nothing_happens(void **state) {
  (void)state;
  static int64_t in[SPAN], out[SPAN], values[SPAN];
  static uint64_t keys[SPAN];
  struct pawl_filters *filters = create("significant(threshold=1e9) | skip(rate=0.5)", PAWL_I64, 1);
  struct pwi_random random;
  int failed = 0;
  pwi_random_init(&random, SEED, 9);
  for (int round = 0; round < 8; round++) {
    struct pawl_rows rows = {0};
    size_t count = draw_keys(&random, 0.1 * (round + 1), keys);
    for (size_t i = 0; i < count; i++) in[keys[i] / 37] += values[i] = (int64_t)pwi_random_below(&random, 2000000000);
    for (uint64_t n = 0;; n++) {
      struct pawl_filter_counters before = counters_of(filters, 0);
      pwi_memory_fail_after(n);
      pawl_status status = pawl_filters_run(filters, keys, values, NULL, count, round == 7, &rows);
      if (!pwi_memory_fail_cancel()) break;
      assert_int_equal(status, PAWL_NO_MEMORY);
      assert_int_equal(counters_of(filters, 0).runs, before.runs);
      assert_int_equal(counters_of(filters, 0).held, before.held);
      failed++;
    }
    for (size_t i = 0; i < rows.count; i++) out[rows.keys[i] / 37] += ((int64_t *)rows.values)[i];
    pawl_rows_fini(&rows);
  }
  assert_true(failed > 10);
  assert_memory_equal(in, out, sizeof in);
  pawl_filters_destroy(filters);
}

static void test_a_chain_that_cannot_be_made_leaves_nothing_behind(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (uint64_t n = 0;; n++) {
    struct pawl_filters *filters = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pawl_filters_create("significant(threshold=1) | skip(rate=0.5) | half", NULL, &filters);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pawl_filters_destroy(filters);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(filters);
  }
  assert_int_equal(pwi_memory_counts().live, before.live);
}

static void assert_refused(const char *text, enum pawl_type type, bool adds, pawl_status status, const char *problem) {
  char said[PWI_FILTERS_PROBLEM_MAX] = "";
  struct pawl_filters_options options = options_of(type, 1);
  struct pawl_filters *filters = NULL;
  options.adds = adds;
  options.problem = said;
  options.problem_size = sizeof said;
  assert_int_equal(pawl_filters_create(text, &options, &filters), status);
  assert_string_equal(said, problem);
  assert_null(filters);
}

static void test_a_filter_that_does_not_suit_the_vector_is_refused(void **state) {
  (void)state;
  assert_refused("half", PAWL_I32, true, PAWL_UNSUPPORTED, "filter 1, half: is for f32 and f64 only");
  assert_refused("keys | zeros | fixd", PAWL_F32, true, PAWL_UNSUPPORTED, "filter 3: unknown filter fixd");
  assert_refused("skip(rate=0.5)|fixed", PAWL_U64, true, PAWL_UNSUPPORTED, "filter 2, fixed: is for f32 and f64 only");
  assert_refused("significant(threshold=1)", PAWL_F32, false, PAWL_UNSUPPORTED,
                 "filter 1, significant: requires a vector that adds pushes");
  assert_refused("skip(rate=0.5, rest=scale)", PAWL_I64, true, PAWL_UNSUPPORTED,
                 "filter 1, skip: rest=scale is for f32 and f64 only");
  assert_refused("kkt(lambda=1, delta=2)", PAWL_F32, true, PAWL_INVALID, "filter 1, kkt: delta is larger than lambda");
}

static void test_keys_that_do_not_rise_are_refused(void **state) {
  (void)state;
  const uint64_t falling[] = {2, 1}, twice[] = {1, 1}, last[] = {1, PAWL_KEY_END};
  const float values[] = {1, 1};
  struct pawl_filters *filters = create("skip(rate=0.5)", PAWL_F32, 1);
  struct pawl_rows rows = {0};
  assert_int_equal(pawl_filters_run(filters, falling, values, NULL, 2, false, &rows), PAWL_UNSORTED);
  assert_int_equal(pawl_filters_run(filters, twice, values, NULL, 2, false, &rows), PAWL_UNSORTED);
  assert_int_equal(pawl_filters_run(filters, last, values, NULL, 2, false, &rows), PAWL_OUT_OF_SPAN);
  assert_int_equal(pawl_filters_run(filters, NULL, values, NULL, 2, false, &rows), PAWL_INVALID);
  assert_int_equal(pawl_filters_run(filters, NULL, NULL, NULL, 0, false, &rows), PAWL_OK);
  assert_int_equal(rows.count, 0);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

/* --- counting ------------------------------------------------------------------------------------------- */

static void test_every_filter_counts_what_it_does(void **state) {
  (void)state;
  static uint64_t keys[SPAN];
  static float values[SPAN];
  struct pawl_filters *filters = create("significant(threshold=1) | half | zeros", PAWL_F32, 1);
  struct pawl_rows rows = {0};
  for (size_t i = 0; i < SPAN; i++) keys[i] = i, values[i] = i % 5 ? 0.25f : 70000;
  assert_int_equal(pawl_filters_run(filters, keys, values, NULL, SPAN, false, &rows), PAWL_OK);
  struct pawl_filter_counters first = counters_of(filters, 0), second = counters_of(filters, 1);
  assert_string_equal(first.name, "significant");
  assert_int_equal(first.rows_before, SPAN);
  assert_int_equal(first.rows_after, SPAN / 5);
  assert_int_equal(first.bytes_before, SPAN * 12);
  assert_int_equal(first.bytes_after, SPAN / 5 * 12);
  assert_int_equal(first.held, SPAN - SPAN / 5);
  assert_true(first.memory > 0);
  assert_int_equal(second.bytes_before, SPAN / 5 * 12);
  assert_int_equal(second.bytes_after, SPAN / 5 * 10);
  assert_int_equal(second.clamped, SPAN / 5);
  pwi_filters_count(filters, &pwi_filter_zeros, 10, 100, 60);
  pwi_filters_count(filters, &pwi_filter_keys, 10, 100, 60);
  assert_int_equal(counters_of(filters, 2).bytes_before - counters_of(filters, 2).bytes_after, 40);
  struct pawl_filter_counters none;
  assert_int_equal(pawl_filters_counters(filters, 3, &none), PAWL_NOT_FOUND);
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
}

static void test_the_encodings_name_their_codecs(void **state) {
  (void)state;
  static const struct {
    const char *text;
    unsigned codecs;
  } cases[] = {
      {"none", 1},
      {"zeros", 1 | 1u << PWI_CODEC_BITMAP},
      {"compress", 1 | 1u << PWI_CODEC_LZ4 | 1u << PWI_CODEC_ZSTD},
      {"compress(with=lz4)", 1 | 1u << PWI_CODEC_LZ4},
      {"compress(with=zstd)", 1 | 1u << PWI_CODEC_ZSTD},
      {"half(type=bf16) | kkt(lambda=1)", 1 | 1u << PWI_CODEC_BF16},
      {"half | half(type=bf16)", 1 | 1u << PWI_CODEC_BF16},
      {"half | fixed", 1 | 1u << PWI_CODEC_FIXED},
      {"fixed | skip(rate=0.5) | zeros", 1 | 1u << PWI_CODEC_FIXED | 1u << PWI_CODEC_BITMAP},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pawl_filters *filters = create(cases[i].text, PAWL_F32, 1);
    assert_int_equal(pwi_filters_codecs(filters), cases[i].codecs);
    pawl_filters_destroy(filters);
  }
}

/* The memory of rows can be reused with another chain of another shape. */
static void test_rows_are_used_again(void **state) {
  (void)state;
  const uint64_t keys[] = {1, 2, 3};
  const double values[] = {1, 2, 3, 4, 5, 6}, weights[6] = {0};
  struct pawl_filters *narrow = create("none", PAWL_F32, 1), *wide = create("kkt(lambda=3)", PAWL_F64, 2);
  struct pawl_rows rows = {0};
  for (int round = 0; round < 3; round++) {
    assert_int_equal(pawl_filters_run(narrow, keys, values, NULL, 3, false, &rows), PAWL_OK);
    assert_int_equal(rows.count, 3);
    assert_int_equal(rows.bytes, 4);
    assert_int_equal(pawl_filters_run(wide, keys, values, weights, 3, false, &rows), PAWL_OK);
    assert_int_equal(rows.count, 2);
    assert_memory_equal(rows.values, values + 2, 4 * sizeof *values);
  }
  pawl_rows_fini(&rows);
  pawl_filters_destroy(narrow);
  pawl_filters_destroy(wide);
  pawl_filters_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_integers_are_conserved_exactly),
      cmocka_unit_test(test_floats_are_conserved_to_rounding),
      cmocka_unit_test(test_a_small_change_waits_until_it_is_significant),
      cmocka_unit_test(test_a_row_is_held_or_sent_as_a_whole),
      cmocka_unit_test(test_skipping_with_scale_is_unbiased),
      cmocka_unit_test(test_the_same_seed_gives_the_same_rows),
      cmocka_unit_test(test_kkt_leaves_out_weights_that_stay_zero),
      cmocka_unit_test(test_kkt_asks_a_rule_of_the_callers),
      cmocka_unit_test(test_weights_follow_their_rows),
      cmocka_unit_test(test_the_order_of_filters_matters),
      cmocka_unit_test(test_a_flush_passes_the_filters_behind),
      cmocka_unit_test(test_a_filter_for_the_other_direction_does_nothing),
      cmocka_unit_test(test_nan_and_infinities_are_never_hidden),
      cmocka_unit_test(test_without_memory_nothing_happens),
      cmocka_unit_test(test_a_chain_that_cannot_be_made_leaves_nothing_behind),
      cmocka_unit_test(test_a_filter_that_does_not_suit_the_vector_is_refused),
      cmocka_unit_test(test_keys_that_do_not_rise_are_refused),
      cmocka_unit_test(test_every_filter_counts_what_it_does),
      cmocka_unit_test(test_the_encodings_name_their_codecs),
      cmocka_unit_test(test_rows_are_used_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
