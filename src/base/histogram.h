/* A histogram of durations in nanoseconds, with a bounded relative error.
 *
 * Buckets are log-linear, after HdrHistogram: below 2^7 every value has its own bucket; above, each doubling
 * is divided into 2^6 buckets of equal width. A bucket is therefore never wider than 1/64 of its smallest
 * value, for all values of an int64_t. The number of buckets is fixed: 29 KB without allocation. Recording
 * takes a few instructions.
 *
 * Count, minimum and maximum are exact, the mean up to the rounding of a double. Percentiles are rounded up
 * to the last value of a bucket. Negative values count as 0, because a difference of two clocks can be
 * slightly negative. Counts have 64 bits and are assumed not to overflow.
 *
 * Threads: a histogram belongs to one thread at a time; each thread keeps its own, and a reader merges
 * copies. Nothing here fails or allocates.
 */
#ifndef PWI_BASE_HISTOGRAM_H
#define PWI_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define PWI_HISTOGRAM_BITS 6
#define PWI_HISTOGRAM_BUCKETS ((64 - PWI_HISTOGRAM_BITS) << PWI_HISTOGRAM_BITS)

/* May be copied. All fields are private: use the functions. */
struct pwi_histogram {
  uint64_t count;
  int64_t min;
  int64_t max;
  uint64_t sum[2]; /* sum of all values: the low word, and the carries out of it */
  uint64_t buckets[PWI_HISTOGRAM_BUCKETS];
};

/* Initialises or empties a histogram. */
void pwi_histogram_reset(struct pwi_histogram *histogram);

void pwi_histogram_record(struct pwi_histogram *histogram, int64_t ns);

/* As `n` calls of pwi_histogram_record; n may be 0. */
void pwi_histogram_record_n(struct pwi_histogram *histogram, int64_t ns, uint64_t n);

/* Adds all samples of `other`. The result is the same as if all samples had been recorded in one
 * histogram. */
void pwi_histogram_merge(struct pwi_histogram *histogram, const struct pwi_histogram *other);

uint64_t pwi_histogram_count(const struct pwi_histogram *histogram);

/* Each returns 0 if the histogram is empty. */
int64_t pwi_histogram_min(const struct pwi_histogram *histogram);
int64_t pwi_histogram_max(const struct pwi_histogram *histogram);
double pwi_histogram_mean(const struct pwi_histogram *histogram);

/* A value v such that at least `percent` of the samples are <= v. The smallest sample for which that holds is
 * at most v and at least v - v / 64. 100 gives the maximum and 0 the minimum, both exactly; A `percent`
 * outside [0, 100] is clamped. 0 if the histogram is empty. */
int64_t pwi_histogram_percentile(const struct pwi_histogram *histogram, double percent);

#endif
