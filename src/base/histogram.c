/* The bucket of a value follows from the position of its highest bit (the doubling) and the
 * PWI_HISTOGRAM_BITS bits below it (the part of the doubling). A value of no more than those bits has its own
 * bucket; the same formula gives this for doubling 0. */
#include "base/histogram.h"

#include <math.h>

#define PARTS (UINT64_C(1) << PWI_HISTOGRAM_BITS)

static size_t bucket_of(int64_t ns) {
  uint64_t value = (uint64_t)ns;
  if (value < PARTS) return (size_t)value;
  unsigned shift = 63u - PWI_HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
  return (size_t)((shift * PARTS) + (value >> shift));
}

/* The largest value that falls into a bucket. */
static int64_t last_of(size_t bucket) {
  if (bucket < PARTS) return (int64_t)bucket;
  unsigned shift = (unsigned)(bucket / PARTS) - 1;
  uint64_t part = bucket % PARTS + PARTS;
  return (int64_t)(((part + 1) << shift) - 1);
}

void pwi_histogram_reset(struct pwi_histogram *histogram) { *histogram = (struct pwi_histogram){.min = INT64_MAX}; }

static void add_to_sum(struct pwi_histogram *histogram, uint64_t high, uint64_t low) {
  histogram->sum[0] += low;
  histogram->sum[1] += high + (histogram->sum[0] < low);
}

void pwi_histogram_record_n(struct pwi_histogram *histogram, int64_t ns, uint64_t n) {
  if (n == 0) return;
  if (ns < 0) ns = 0;
  histogram->buckets[bucket_of(ns)] += n;
  histogram->count += n;
  if (ns < histogram->min) histogram->min = ns;
  if (ns > histogram->max) histogram->max = ns;
  unsigned __int128 total = (unsigned __int128)(uint64_t)ns * n;
  add_to_sum(histogram, (uint64_t)(total >> 64), (uint64_t)total);
}

void pwi_histogram_record(struct pwi_histogram *histogram, int64_t ns) { pwi_histogram_record_n(histogram, ns, 1); }

/* Only the buckets between minimum and maximum can hold anything: most of the 29 KB is never touched. */
void pwi_histogram_merge(struct pwi_histogram *histogram, const struct pwi_histogram *other) {
  if (other->count == 0) return;
  size_t last = bucket_of(other->max);
  for (size_t i = bucket_of(other->min); i <= last; i++) histogram->buckets[i] += other->buckets[i];
  if (other->min < histogram->min) histogram->min = other->min;
  if (other->max > histogram->max) histogram->max = other->max;
  histogram->count += other->count;
  add_to_sum(histogram, other->sum[1], other->sum[0]);
}

uint64_t pwi_histogram_count(const struct pwi_histogram *histogram) { return histogram->count; }

int64_t pwi_histogram_min(const struct pwi_histogram *histogram) { return histogram->count ? histogram->min : 0; }

int64_t pwi_histogram_max(const struct pwi_histogram *histogram) { return histogram->max; }

double pwi_histogram_mean(const struct pwi_histogram *histogram) {
  if (histogram->count == 0) return 0;
  double sum = (double)histogram->sum[1] * 0x1p64 + (double)histogram->sum[0];
  return sum / (double)histogram->count;
}

/* The number of samples that must be at or below the percentile. It multiplies before it divides, so that 55
 * % of 100 is exactly 55. */
static uint64_t rank_of(double percent, uint64_t count) {
  double rank = ceil(percent * (double)count / 100.0);
  return rank < (double)count ? (uint64_t)rank : count;
}

int64_t pwi_histogram_percentile(const struct pwi_histogram *histogram, double percent) {
  if (histogram->count == 0) return 0;
  if (!(percent > 0)) return histogram->min;
  uint64_t rank = rank_of(percent, histogram->count);
  uint64_t seen = 0;
  size_t last = bucket_of(histogram->max);
  for (size_t i = bucket_of(histogram->min); i < last; i++) {
    seen += histogram->buckets[i];
    if (seen >= rank) return last_of(i);
  }
  return histogram->max;
}
