/* Validation: the scheduler scores data of its own after each round, with the weights on the servers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/guess.h"
#include "apps/linear/losses.h"
#include "apps/linear/train/inside.h"

void linear_split(const struct pawl_linear_options *options, enum pawl_data_part part,
                  struct pawl_data_options *reading) {
  if (options->valid_split == 0) return;
  reading->part = part;
  reading->held_share = options->valid_split;
  reading->held_seed = options->seed;
}

static size_t count_rows(const struct linear_share *share) {
  size_t rows = 0;
  for (size_t i = 0; i < share->piece_count; i++) rows += share->pieces[i].rows;
  return rows;
}

pawl_status linear_validation_load(struct linear_run *run) {
  const struct pawl_linear_options *options = run->options;
  struct pawl_data *data;
  struct pawl_data_info info;
  run->validation.best = INFINITY;
  run->validation.guess = NAN;
  if (options->valid_count == 0 && options->valid_split == 0) return PAWL_OK;
  struct pawl_data_options reading = options->reading;
  bool splits = options->valid_split > 0;
  if (splits) linear_split(options, PAWL_PART_HELD, &reading);
  pawl_status status = pawl_data_open(splits ? options->paths : options->valid_paths,
                                      splits ? options->path_count : options->valid_count, &reading, &data);
  if (status) return apps_fail(&run->common, status, "%s", pawl_error_text());
  pawl_data_info(data, &info);
  struct pawl_range all = {0, info.pieces};
  status = linear_share_take(&run->validation.share, data, &all, 1, options->threads);
  if (status) apps_fail_as_said(&run->common, status);
  pawl_data_close(data);
  if (!status && splits && count_rows(&run->validation.share) == 0)
    status = apps_fail(&run->common, PAWL_INVALID,
                       "--valid-split %g holds out no row; there are too few rows, or the share is too small",
                       options->valid_split);
  return status;
}

void linear_validation_fini(struct linear_run *run) {
  linear_share_fini(&run->validation.share);
  linear_model_fini(&run->validation.model);
}

/* Features that the training data does not have lie beyond the span of the vector, or were never written.
 * Their weights are 0. */
static size_t known_features(const struct linear_share *share, uint64_t span) {
  size_t count = share->features;
  while (count > 0 && share->keys[count - 1] >= span) count--;
  return count;
}

/* The validation data may have higher ids than the training data, so it is arranged by plain id. */
static pawl_status arrange(struct linear_run *run) {
  struct linear_share *share = &run->validation.share;
  struct linear_census census;
  if (!share->is_stale) return PAWL_OK;
  linear_share_count(share, &census);
  struct linear_scatter plain = {.size = census.max_id + 1, .factor = 1, .inverse = 1};
  return linear_share_arrange(share, &plain);
}

/* For weights by plain id, which are pulled by ascending scattered key. */
struct pulled_feature {
  uint64_t key;
  size_t feature;
};

static int by_key(const void *a, const void *b) {
  const struct pulled_feature *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

static pawl_status pull(struct linear_run *run, double *w, double *bias) {
  const struct linear_share *share = &run->validation.share;
  struct linear_worker reader = {.weights = run->weights, .bias = run->bias, .dense = run->mean};
  reader.dense_size = run->mean_size;
  struct linear_scatter scatter;
  bool streams = run->spec.method->streams;
  size_t count = known_features(share, run->order.features);
  struct pulled_feature *places = apps_alloc((count + 1) * sizeof *places);
  uint64_t *keys = apps_alloc((count + 1) * sizeof *keys);
  double *pulled = apps_alloc((count + 1) * sizeof *pulled), *scales = apps_alloc((count + 1) * sizeof *scales);
  pawl_status status = places && keys && pulled && scales ? PAWL_OK : PAWL_NO_MEMORY;
  linear_scatter_init(&scatter, run->order.features);
  for (size_t i = 0; i < count && !status; i++)
    places[i] = (struct pulled_feature){streams ? share->ids[i] : linear_key(&scatter, share->ids[i]), i};
  if (!status) qsort(places, count, sizeof *places, by_key);
  for (size_t i = 0; i < count && !status; i++) keys[i] = places[i].key;
  if (!status) status = linear_pull_weights(&reader, keys, count, pulled, bias);
  if (!status) status = linear_scale_pull(run, keys, count, scales);
  for (size_t i = 0; i < count && !status; i++) w[places[i].feature] = pulled[i] / scales[i];
  apps_free(places);
  apps_free(keys);
  apps_free(pulled);
  apps_free(scales);
  return status;
}

/* Sums over validation rows with the weight c and, of classes, the label 1 or -1. */
struct guess_sums {
  double c, cy, cyy; /* of c, c y, c y^2 */
  double loss;       /* the model's, times c */
};

/* The loss of the best score that is the same for all rows. `more` and `less` are the weights of the classes. */
static double constant_loss(enum pawl_linear_loss loss, const struct guess_sums *sums) {
  double more = (sums->c + fabs(sums->cy)) / 2, less = sums->c - more;
  switch (loss) {
  case PAWL_LINEAR_LOGISTIC:
    return less > 0 ? -more * log(more / sums->c) - less * log(less / sums->c) : 0;
  case PAWL_LINEAR_HINGE:
    return 2 * less;
  case PAWL_LINEAR_SQUARED_HINGE:
    return 4 * more * less / sums->c;
  case PAWL_LINEAR_SQUARED:
    break;
  }
  return (sums->cyy - sums->cy * sums->cy / sums->c) / 2;
}

/* Compares with guessing, in which the weights of rows and classes count as in training. */
static void compare(struct linear_run *run, const double *z, double bias) {
  const struct linear_share *share = &run->validation.share;
  bool is_regression = linear_is_regression(run->spec.loss);
  struct guess_sums sums = {0};
  double positive = 0, rows = (double)share->rows;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&run->spec, &run->order, (double)share->labels[i]);
    double c = linear_c(&run->spec, y) * (double)share->weights[i];
    sums.c += c;
    sums.cy += c * y;
    sums.cyy += c * y * y;
    sums.loss += c * linear_loss_value(run->spec.loss, y, z[i] + bias);
    positive += y > 0;
  }
  double right = fmax(positive, rows - positive) / rows;
  const struct apps_figures model = {sums.loss, is_regression ? 0 : 1 - run->progress.valid_accuracy};
  const struct apps_figures guess = {constant_loss(run->spec.loss, &sums), is_regression ? 0 : 1 - right};
  run->validation.guess = is_regression ? 2 * guess.loss / sums.c : right;
  run->validation.is_guessing = apps_is_guess(&model, &guess, rows);
}

static void judge(struct linear_run *run, const double *z, double bias) {
  const struct linear_share *share = &run->validation.share;
  bool is_regression = linear_is_regression(run->spec.loss);
  double loss = 0;
  size_t correct = 0;
  for (size_t i = 0; i < share->rows; i++) {
    double y = linear_y(&run->spec, &run->order, (double)share->labels[i]), score = z[i] + bias;
    loss += is_regression ? (score - y) * (score - y) : linear_loss_value(PAWL_LINEAR_LOGISTIC, y, score);
    correct += (score > 0) == (y > 0);
  }
  double rows = share->rows ? (double)share->rows : 1;
  run->progress.valid_loss = loss / rows;
  run->progress.valid_accuracy = is_regression ? NAN : (double)correct / rows;
  if (run->progress.valid_loss < run->validation.best) {
    run->validation.best = run->progress.valid_loss;
    run->validation.worse = 0;
  } else {
    run->validation.worse++;
  }
}

pawl_status linear_validate(struct linear_run *run) {
  struct linear_share *share = &run->validation.share;
  if (run->options->valid_count == 0 && run->options->valid_split == 0) return PAWL_OK;
  pawl_status status = arrange(run);
  if (status) return status;
  double bias = 0, *w = apps_alloc_zero(share->features + 1, sizeof *w),
         *z = apps_alloc_zero(share->rows + 1, sizeof *z);
  status = w && z ? pull(run, w, &bias) : PAWL_NO_MEMORY;
  for (size_t j = 0; j < share->features && !status; j++)
    for (uint64_t k = share->starts[j]; w[j] != 0 && k < share->starts[j + 1]; k++)
      z[share->row_of[k]] += w[j] * (double)share->values[k];
  if (!status) judge(run, z, bias);
  if (!status && share->rows > 0) compare(run, z, bias);
  if (!status && run->options->patience && run->validation.worse == 0) {
    linear_model_fini(&run->validation.model);
    status = linear_read_model(run, &run->validation.model);
  }
  apps_free(w);
  apps_free(z);
  return status ? apps_fail(&run->common, status, "validation: %s", pawl_error_text()) : PAWL_OK;
}
