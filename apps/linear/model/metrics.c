/* Metrics: how good a model's scores are, over any number of batches.
 *
 * Sums are compensated (Neumaier), so that their significant digits do not depend on the order in which
 * threads add rows. The area under the curve is the probability that a row of the second class scores higher
 * than a row of the first, a tie counting half. To compute it exactly, every score is kept, 8 bytes per row,
 * and both lists are sorted and merged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/losses.h"
#include "apps/linear/model/model.h"

struct sum {
  double value, lost; /* `lost` is the rounding error of `value` */
};

struct list {
  double *scores;
  size_t count, room;
};

struct pawl_linear_metrics {
  enum pawl_linear_loss loss;
  bool is_regression;
  float labels[2]; /* in the type of the labels of rows */
  double class_weights[2];
  double penalty;
  uint64_t rows, unlabelled, unknown, right;
  struct sum loss_sum, log_loss, squares; /* `squares` is the sum of squared errors of regression */
  double mean, spread;                    /* labels of regression, by Welford: mean, squared differences */
  bool has_nan;                           /* a score is not a number, so scores cannot be sorted */
  struct list classes[2];
};

static void add(struct sum *sum, double value) {
  double total = sum->value + value;
  if (fabs(sum->value) >= fabs(value))
    sum->lost += (sum->value - total) + value;
  else
    sum->lost += (value - total) + sum->value;
  sum->value = total;
}

/* If the sum has overflowed, the correction is not added: infinity minus infinity is not a number. */
static double total(const struct sum *sum) { return isfinite(sum->value) ? sum->value + sum->lost : sum->value; }

static double penalty_of(const struct pawl_linear_model *model, const struct pawl_linear_point *point) {
  if (!point && model->about.scale != PAWL_LINEAR_SCALE_NONE) return model->about.penalty;
  struct pawl_linear_point own = {model->about.l1, model->about.l2};
  if (!point) point = &own;
  struct sum l1 = {0}, l2 = {0};
  for (size_t i = 0; i < model->about.nonzeros; i++) {
    add(&l1, fabs(model->weights[i]));
    add(&l2, model->weights[i] * model->weights[i]);
  }
  return point->l1 * total(&l1) + point->l2 / 2 * total(&l2);
}

pawl_status pawl_linear_metrics_create(const struct pawl_linear_model *model, const struct pawl_linear_point *penalty,
                                       struct pawl_linear_metrics **metrics_out) {
  struct pawl_linear_metrics *metrics = apps_alloc_zero(1, sizeof *metrics);
  if (!metrics) return PAWL_NO_MEMORY;
  metrics->loss = model->about.loss;
  metrics->is_regression = model->about.is_regression;
  for (int i = 0; i < 2; i++) {
    metrics->labels[i] = (float)model->about.labels[i];
    metrics->class_weights[i] = model->about.class_weights[i] != 0 ? model->about.class_weights[i] : 1;
  }
  metrics->penalty = penalty_of(model, penalty);
  *metrics_out = metrics;
  return PAWL_OK;
}

void pawl_linear_metrics_destroy(struct pawl_linear_metrics *metrics) {
  if (!metrics) return;
  for (int i = 0; i < 2; i++) apps_free(metrics->classes[i].scores);
  apps_free(metrics);
}

/* --- adding --------------------------------------------------------------------------------------------- */

static pawl_status make_room(struct list *list, size_t more) {
  if (list->room - list->count >= more) return PAWL_OK;
  if (more > SIZE_MAX / 32 || list->room > SIZE_MAX / 32) return PAWL_NO_MEMORY;
  size_t room = list->room + list->room / 2 + more;
  double *scores = apps_resize(list->scores, room * sizeof *scores);
  if (!scores) return PAWL_NO_MEMORY;
  list->scores = scores;
  list->room = room;
  return PAWL_OK;
}

static void add_number(struct pawl_linear_metrics *metrics, double label, double score, double weight) {
  double off = label - score, before = label - metrics->mean;
  metrics->rows++;
  add(&metrics->loss_sum, weight * linear_loss_value(metrics->loss, label, score));
  add(&metrics->squares, off * off);
  metrics->mean += before / (double)metrics->rows;
  metrics->spread += before * (label - metrics->mean);
}

/* `class` is 0 or 1; its list has room for the score. */
static void add_class(struct pawl_linear_metrics *metrics, int class, double score, double weight) {
  double y = class ? 1 : -1;
  metrics->rows++;
  metrics->right += (score > 0) == (class == 1);
  metrics->has_nan = metrics->has_nan || isnan(score);
  add(&metrics->loss_sum, weight * metrics->class_weights[class] * linear_loss_value(metrics->loss, y, score));
  add(&metrics->log_loss, linear_log_loss(y * score));
  metrics->classes[class].scores[metrics->classes[class].count++] = score;
}

/* Allocates for all rows of the batch first, so that the batch is counted whole or not at all. */
pawl_status pawl_linear_metrics_add(struct pawl_linear_metrics *metrics, const struct pawl_batch *batch,
                                    const double *scores) {
  size_t members[2] = {0};
  for (int class = 0; class < 2 && !metrics->is_regression; class ++) {
    for (size_t i = 0; i < batch->rows; i++) members[class] += batch->labels[i] == metrics->labels[class];
    pawl_status status = make_room(&metrics->classes[class], members[class]);
    if (status) return status;
  }
  for (size_t i = 0; i < batch->rows; i++) {
    float label = batch->labels[i];
    double weight = batch->weights ? (double)batch->weights[i] : 1;
    if (isnan(label))
      metrics->unlabelled++;
    else if (metrics->is_regression)
      add_number(metrics, (double)label, scores[i], weight);
    else if (label == metrics->labels[0] || label == metrics->labels[1])
      add_class(metrics, label == metrics->labels[1], scores[i], weight);
    else
      metrics->unknown++;
  }
  return PAWL_OK;
}

/* --- the figures ---------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
  double one = *(const double *)a, other = *(const double *)b;
  return (one > other) - (one < other);
}

/* Merges both sorted lists: counts, for each score of the second class, the lower and the equal scores of the
 * first. */
static double area(struct pawl_linear_metrics *metrics) {
  const struct list *low = &metrics->classes[0], *high = &metrics->classes[1];
  if (low->count == 0 || high->count == 0 || metrics->has_nan) return (double)NAN;
  for (int i = 0; i < 2; i++) qsort(metrics->classes[i].scores, metrics->classes[i].count, sizeof(double), compare);
  struct sum won = {0};
  size_t below = 0, up_to = 0;
  for (size_t i = 0; i < high->count; i++) {
    while (below < low->count && low->scores[below] < high->scores[i]) below++;
    if (up_to < below) up_to = below;
    while (up_to < low->count && low->scores[up_to] <= high->scores[i]) up_to++;
    add(&won, (double)below + (double)(up_to - below) / 2);
  }
  return total(&won) / (double)low->count / (double)high->count;
}

pawl_status pawl_linear_metrics_figures(struct pawl_linear_metrics *metrics, struct pawl_linear_figures *figures_out) {
  const double none = (double)NAN, rows = (double)metrics->rows;
  struct pawl_linear_figures figures = {
      .rows = metrics->rows + metrics->unknown + metrics->unlabelled,
      .unlabelled = metrics->unlabelled,
      .positive = metrics->classes[1].count,
      .unknown = metrics->unknown,
      .loss = total(&metrics->loss_sum),
      .penalty = metrics->penalty,
      .log_loss = none,
      .accuracy = none,
      .auc = none,
      .rmse = none,
      .r2 = none,
  };
  /* there are no labels to compare with */
  if (metrics->unlabelled && metrics->rows == 0) figures.loss = none;
  figures.objective = figures.loss + figures.penalty;
  if (metrics->is_regression && metrics->rows > 0) {
    figures.rmse = sqrt(total(&metrics->squares) / rows);
    if (metrics->spread > 0) figures.r2 = 1 - total(&metrics->squares) / metrics->spread;
  }
  if (!metrics->is_regression && metrics->rows > 0) {
    figures.log_loss = total(&metrics->log_loss) / rows;
    figures.accuracy = (double)metrics->right / rows;
    figures.auc = area(metrics);
  }
  *figures_out = figures;
  return PAWL_OK;
}
