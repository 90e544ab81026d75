#include "apps/bpmf/measure.h"

#include <math.h>

#include "apps/common/memory.h"

/* Where the ratings of each user begin. */
static const uint64_t *starts_of(const struct bpmf_measure *measure) {
  const struct bpmf_data *data = measure->sampler->data;
  return measure->is_train ? data->sides[BPMF_USERS].starts : data->test_starts;
}

bool bpmf_measure_init(struct bpmf_measure *measure, const struct bpmf_sampler *sampler, bool is_train, bool is_none,
                       size_t first, size_t end) {
  const struct bpmf_side *users = &sampler->sides[BPMF_USERS];
  *measure = (struct bpmf_measure){.sampler = sampler, .is_train = is_train};
  if (!is_none) measure->count = is_train ? sampler->data->count : sampler->data->test_count;
  if (measure->count > 0) {
    measure->first = starts_of(measure)[bpmf_block_begin(users, first)];
    measure->room = starts_of(measure)[bpmf_block_begin(users, end)] - measure->first;
  }
  measure->sums = apps_alloc_zero((size_t)measure->room, sizeof *measure->sums);
  measure->errors = apps_alloc_zero(users->blocks, sizeof *measure->errors);
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
  size_t first;   /* block */
};

static double limited(const struct bpmf_data *data, double rating) {
  return fmin(fmax(rating, (double)data->lowest), (double)data->highest);
}

static void add_rating(const struct measure_work *work, uint64_t number, uint32_t user, uint32_t item, double value,
                       double errors[2]) {
  const struct bpmf_sampler *sampler = work->measure->sampler;
  double now = bpmf_sampler_predict(sampler, user, item), *sum = &work->measure->sums[number - work->measure->first];
  if (work->is_sample) *sum += now;
  double off = value - limited(sampler->data, now), mean_off = value - limited(sampler->data, *sum * work->inverse);
  errors[0] += off * off;
  errors[1] += mean_off * mean_off;
}

/* --- blocks ----------------------------------------------------------------------------------------------- */

static void measure_tests(const struct measure_work *work, size_t user, size_t end, double errors[2]) {
  const struct bpmf_data *data = work->measure->sampler->data;
  for (uint64_t i = data->test_starts[user]; i < data->test_starts[end]; i++)
    add_rating(work, i, data->tests[i].user, data->tests[i].item, (double)data->tests[i].value, errors);
}

static void measure_training(const struct measure_work *work, size_t user, size_t end, double errors[2]) {
  const struct bpmf_data *data = work->measure->sampler->data;
  const struct bpmf_ratings *ratings = &data->sides[BPMF_USERS];
  for (; user < end; user++)
    for (uint64_t i = ratings->starts[user]; i < ratings->starts[user + 1]; i++)
      add_rating(work, i, (uint32_t)user, ratings->others[i], bpmf_rating_of(data, (double)ratings->values[i]), errors);
}

static void measure_block(void *context, uint32_t hand, size_t piece) {
  const struct measure_work *work = context;
  struct bpmf_measure *measure = work->measure;
  const struct bpmf_side *users = &measure->sampler->sides[BPMF_USERS];
  size_t block = work->first + piece;
  double errors[2] = {0};
  (void)hand;
  (measure->is_train ? measure_training : measure_tests)(work, bpmf_block_begin(users, block),
                                                         bpmf_block_begin(users, block + 1), errors);
  measure->errors[block][0] = errors[0];
  measure->errors[block][1] = errors[1];
}

void bpmf_measure_blocks(struct bpmf_measure *measure, bool is_sample, size_t first, size_t end) {
  measure->samples += is_sample;
  struct measure_work work = {measure, is_sample, measure->samples ? 1 / (double)measure->samples : 0, first};
  if (measure->count > 0) apps_crew_run(measure->sampler->crew, end - first, measure_block, &work);
}

struct bpmf_rmse bpmf_measure_sum(const struct bpmf_measure *measure) {
  struct bpmf_rmse rmse = {(double)NAN, (double)NAN};
  double errors[2] = {0};
  if (measure->count == 0) return rmse;
  for (size_t i = 0; i < measure->sampler->sides[BPMF_USERS].blocks; i++) {
    errors[0] += measure->errors[i][0];
    errors[1] += measure->errors[i][1];
  }
  rmse.now = sqrt(errors[0] / (double)measure->count);
  if (measure->samples > 0) rmse.mean = sqrt(errors[1] / (double)measure->count);
  return rmse;
}
