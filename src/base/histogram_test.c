/* Histograms against sorted samples. */
#include <math.h>

#include "base/histogram.h"
#include "base/random.h"
#include "base/testing.h"

#define SEED UINT64_C(99)
#define SAMPLES 20000

static struct pwi_histogram histogram, other;
static int64_t samples[SAMPLES];

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t uniform(struct pwi_random *random) { return (int64_t)pwi_random_below(random, 100000000); }
static int64_t small(struct pwi_random *random) { return (int64_t)pwi_random_below(random, 200); }
static int64_t any_scale(struct pwi_random *random) {
  return (int64_t)(pwi_random_u64(random) >> 1 >> pwi_random_below(random, 63));
}
static int64_t latency(struct pwi_random *random) { return (int64_t)exp(10 + 2 * pwi_random_normal(random)); }

/* The promise of the header, for one percentile of `samples`, which are sorted. */
static void assert_percentile_holds(double percent) {
  int64_t value = pwi_histogram_percentile(&histogram, percent);
  size_t rank = (size_t)ceil(percent * SAMPLES / 100);
  int64_t exact = samples[rank ? rank - 1 : 0];
  assert_true(value >= exact);
  assert_true(value - exact <= value / 64);
}

static void check_against_samples(int64_t (*draw)(struct pwi_random *), uint64_t stream) {
  struct pwi_random random;
  pwi_random_init(&random, SEED, stream);
  pwi_histogram_reset(&histogram);
  double sum = 0;
  for (size_t i = 0; i < SAMPLES; i++) {
    samples[i] = draw(&random);
    sum += (double)samples[i];
    pwi_histogram_record(&histogram, samples[i]);
  }
  qsort(samples, SAMPLES, sizeof *samples, compare);
  assert_int_equal(pwi_histogram_count(&histogram), SAMPLES);
  assert_int_equal(pwi_histogram_min(&histogram), samples[0]);
  assert_int_equal(pwi_histogram_max(&histogram), samples[SAMPLES - 1]);
  assert_true(fabs(pwi_histogram_mean(&histogram) - sum / SAMPLES) <= sum / SAMPLES * 1e-12);
  for (int i = 0; i <= 1000; i++) assert_percentile_holds(i / 10.0);
  assert_percentile_holds(99.99);
  assert_percentile_holds(99.999);
  assert_int_equal(pwi_histogram_percentile(&histogram, 0), samples[0]);
  assert_int_equal(pwi_histogram_percentile(&histogram, 100), samples[SAMPLES - 1]);
}

static void test_percentiles_agree_with_sorted_samples(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  check_against_samples(uniform, 0);
  check_against_samples(small, 1);
  check_against_samples(any_scale, 2);
  check_against_samples(latency, 3);
}

static void test_an_empty_histogram_answers_zero(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  assert_int_equal(pwi_histogram_count(&histogram), 0);
  assert_int_equal(pwi_histogram_min(&histogram), 0);
  assert_int_equal(pwi_histogram_max(&histogram), 0);
  assert_true(pwi_histogram_mean(&histogram) == 0);
  assert_int_equal(pwi_histogram_percentile(&histogram, 50), 0);
}

/* Values on both sides of every power of two: alone, each must come back within the error. */
static void test_every_scale_stays_within_the_error(void **state) {
  (void)state;
  for (int bit = 0; bit < 63; bit++)
    for (int64_t around = -1; around <= 1; around++) {
      int64_t value = (INT64_C(1) << bit) + around;
      pwi_histogram_reset(&histogram);
      pwi_histogram_record(&histogram, value);
      pwi_histogram_record(&histogram, INT64_MAX);
      int64_t found = pwi_histogram_percentile(&histogram, 50);
      assert_true(found >= value);
      assert_true(found - value <= found / 64);
      assert_int_equal(pwi_histogram_percentile(&histogram, 100), INT64_MAX);
    }
}

static void test_values_below_128_are_exact(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  for (int64_t value = 1; value <= 100; value++) pwi_histogram_record(&histogram, value);
  for (int64_t percent = 1; percent <= 100; percent++)
    assert_int_equal(pwi_histogram_percentile(&histogram, (double)percent), percent);
}

static void test_negative_values_count_as_zero(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  pwi_histogram_record(&histogram, -5);
  pwi_histogram_record(&histogram, INT64_MIN);
  assert_int_equal(pwi_histogram_count(&histogram), 2);
  assert_int_equal(pwi_histogram_min(&histogram), 0);
  assert_int_equal(pwi_histogram_max(&histogram), 0);
  assert_true(pwi_histogram_mean(&histogram) == 0);
}

static void test_percent_outside_its_range_is_taken_to_the_nearer_end(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  pwi_histogram_record(&histogram, 1000003);
  pwi_histogram_record(&histogram, 5000011);
  assert_int_equal(pwi_histogram_percentile(&histogram, -3), 1000003);
  assert_int_equal(pwi_histogram_percentile(&histogram, NAN), 1000003);
  assert_int_equal(pwi_histogram_percentile(&histogram, 1e300), 5000011);
}

static void test_recording_n_equals_recording_n_times(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  pwi_histogram_reset(&other);
  for (int i = 0; i < 1000; i++) pwi_histogram_record(&histogram, 123456);
  pwi_histogram_record_n(&other, 123456, 1000);
  pwi_histogram_record_n(&other, 7, 0);
  assert_memory_equal(&histogram, &other, sizeof histogram);
}

static void test_merged_parts_equal_the_whole(void **state) {
  (void)state;
  static struct pwi_histogram whole;
  struct pwi_random random;
  pwi_random_init(&random, SEED, 4);
  pwi_histogram_reset(&histogram);
  pwi_histogram_reset(&other);
  pwi_histogram_reset(&whole);
  pwi_histogram_merge(&histogram, &other);
  for (int i = 0; i < 10000; i++) {
    int64_t value = any_scale(&random);
    pwi_histogram_record(&whole, value);
    pwi_histogram_record(i % 3 ? &histogram : &other, value);
  }
  pwi_histogram_merge(&histogram, &other);
  assert_memory_equal(&histogram, &whole, sizeof whole);
}

static void test_the_mean_survives_sums_past_64_bits(void **state) {
  (void)state;
  pwi_histogram_reset(&histogram);
  pwi_histogram_record_n(&histogram, INT64_MAX, 1000);
  pwi_histogram_record_n(&histogram, INT64_MAX, UINT64_C(1) << 40);
  pwi_histogram_reset(&other);
  for (int i = 0; i < 5; i++) pwi_histogram_merge(&other, &histogram);
  assert_true(fabs(pwi_histogram_mean(&other) / 0x1p63 - 1) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_percentiles_agree_with_sorted_samples),
      cmocka_unit_test(test_an_empty_histogram_answers_zero),
      cmocka_unit_test(test_every_scale_stays_within_the_error),
      cmocka_unit_test(test_values_below_128_are_exact),
      cmocka_unit_test(test_negative_values_count_as_zero),
      cmocka_unit_test(test_percent_outside_its_range_is_taken_to_the_nearer_end),
      cmocka_unit_test(test_recording_n_equals_recording_n_times),
      cmocka_unit_test(test_merged_parts_equal_the_whole),
      cmocka_unit_test(test_the_mean_survives_sums_past_64_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
