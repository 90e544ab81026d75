#include "apps/bpmf/measure.h"

#include <math.h>

#include "apps/common/memory.h"

#define BLOCK 2048 /* test ratings of a block; a block of training ratings is one of the sampler's */

static size_t blocks_of(const struct bpmf_measure *measure) {
  if (measure->count == 0) return 0;
  if (measure->is_train) return measure->sampler->sides[BPMF_USERS].blocks;
  return (size_t)((measure->count + BLOCK - 1) / BLOCK);
}

bool bpmf_measure_init(struct bpmf_measure *measure, const struct bpmf_sampler *sampler, bool is_train,
                       uint64_t count) {
  *measure = (struct bpmf_measure){.sampler = sampler, .is_train = is_train, .count = count};
  measure->sums = apps_alloc_zero((size_t)count, sizeof *measure->sums);
  measure->errors = apps_alloc_zero(2 * blocks_of(measure), sizeof *measure->errors);
  return measure->sums && measure->errors;
}

void bpmf_measure_fini(struct bpmf_measure *measure) {
  apps_free(measure->sums);
  apps_free(measure->errors);
}

/* --- one rating ------------------------------------------------------------------------------------------- */

struct measure_work {
  struct bpmf_measure *measure;
  bool is_sample;
  double inverse; /* 1 / samples; 0 without any */
};

static double limited(const struct bpmf_data *data, double rating) {
  return fmin(fmax(rating, (double)data->lowest), (double)data->highest);
}

static void add_rating(const struct measure_work *work, uint64_t number, uint32_t user, uint32_t item, double value,
                       double errors[2]) {
  const struct bpmf_sampler *sampler = work->measure->sampler;
  double now = bpmf_sampler_predict(sampler, user, item), *sum = &work->measure->sums[number];
  if (work->is_sample) *sum += now;
  double off = value - limited(sampler->data, now), mean_off = value - limited(sampler->data, *sum * work->inverse);
  errors[0] += off * off;
  errors[1] += mean_off * mean_off;
}

/* --- blocks ----------------------------------------------------------------------------------------------- */

static void measure_tests(void *context, uint32_t hand, size_t block) {
  const struct measure_work *work = context;
  const struct bpmf_data *data = work->measure->sampler->data;
  uint64_t first = block * (uint64_t)BLOCK, end = first + BLOCK < data->test_count ? first + BLOCK : data->test_count;
  double errors[2] = {0};
  (void)hand;
  for (uint64_t i = first; i < end; i++)
    add_rating(work, i, data->tests[i].user, data->tests[i].item, (double)data->tests[i].value, errors);
  work->measure->errors[2 * block] = errors[0];
  work->measure->errors[2 * block + 1] = errors[1];
}

static void measure_training(void *context, uint32_t hand, size_t block) {
  const struct measure_work *work = context;
  const struct bpmf_sampler *sampler = work->measure->sampler;
  const struct bpmf_side *side = &sampler->sides[BPMF_USERS];
  const struct bpmf_ratings *ratings = side->ratings;
  size_t end = (block + 1) * side->block_rows;
  double errors[2] = {0};
  (void)hand;
  for (size_t row = block * side->block_rows; row < end && row < ratings->rows; row++)
    for (uint64_t i = ratings->starts[row]; i < ratings->starts[row + 1]; i++)
      add_rating(work, i, (uint32_t)row, ratings->others[i], bpmf_rating_of(sampler->data, (double)ratings->values[i]),
                 errors);
  work->measure->errors[2 * block] = errors[0];
  work->measure->errors[2 * block + 1] = errors[1];
}

struct bpmf_rmse bpmf_measure_step(struct bpmf_measure *measure, bool is_sample) {
  struct bpmf_rmse rmse = {(double)NAN, (double)NAN};
  double errors[2] = {0};
  size_t blocks = blocks_of(measure);
  measure->samples += is_sample;
  struct measure_work work = {measure, is_sample, measure->samples ? 1 / (double)measure->samples : 0};
  if (measure->count == 0) return rmse;
  bpmf_crew_run(measure->sampler->crew, blocks, measure->is_train ? measure_training : measure_tests, &work);
  for (size_t i = 0; i < blocks; i++) {
    errors[0] += measure->errors[2 * i];
    errors[1] += measure->errors[2 * i + 1];
  }
  rmse.now = sqrt(errors[0] / (double)measure->count);
  if (measure->samples > 0) rmse.mean = sqrt(errors[1] / (double)measure->count);
  return rmse;
}
