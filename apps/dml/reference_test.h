/* A serial reference in float64, without matrix products, blocks or threads. With a rank of all features PCA only turns the
 * space, so that the reference may begin with the identity: distances are the same. */
#ifndef DML_REFERENCE_TEST_H
#define DML_REFERENCE_TEST_H

#include "apps/dml/scene_test.h"

enum { PLAIN_WIDTH = 16, PLAIN_ROWS = 600, PLAIN_PAIRS = 8000 };

struct plain {
  size_t width, paired, held, similar, pairs;
  double x[PLAIN_ROWS][PLAIN_WIDTH]; /* points: first those of the pairs */
  uint32_t classes[PLAIN_ROWS];
  uint32_t one[PLAIN_PAIRS], other[PLAIN_PAIRS];
  double w[PLAIN_WIDTH][PLAIN_WIDTH];
};

static inline double plain_square(const struct plain *is, const double *a, const double *b) {
  double sum = 0;
  for (size_t r = 0; r < is->width; r++) {
    double u = 0;
    for (size_t d = 0; d < is->width; d++) u += is->w[r][d] * (a[d] - b[d]);
    sum += u * u;
  }
  return sum;
}

/* Finds the nearest `k` among the points of pairs, of the own class (1), of another (0), or of any (-1). */
static inline void plain_nearest(const struct plain *is, size_t point, size_t k, int wanted, uint32_t *list_out) {
  bool is_taken[PLAIN_ROWS] = {false};
  for (size_t n = 0; n < k; n++) {
    double least = INFINITY;
    for (size_t j = 0; j < is->paired; j++) {
      double square = plain_square(is, is->x[point], is->x[j]);
      if (j == point || is_taken[j] || square >= least) continue;
      if (wanted >= 0 && (is->classes[j] == is->classes[point]) != wanted) continue;
      least = square;
      list_out[n] = (uint32_t)j;
    }
    is_taken[list_out[n]] = true;
  }
}

/* Rows as the model's frame makes points of them, in the order of the training. */
static inline void plain_points(struct plain *is, const struct pawl_mlr_rows *rows,
                                const struct pawl_metric_model *model, uint64_t seed, double share) {
  struct pawl_mlr_rows_info info;
  uint32_t order[PLAIN_ROWS];
  float row[PLAIN_WIDTH];
  struct apps_random random = apps_random_of(seed, 42, 0, 0);
  pawl_mlr_rows_info(rows, &info);
  assert_true(info.rows <= PLAIN_ROWS && info.features <= PLAIN_WIDTH);
  is->width = (size_t)info.features;
  is->held = (size_t)((double)info.rows * share + 0.5);
  is->paired = (size_t)info.rows - is->held;
  apps_shuffle(&random, order, (size_t)info.rows);
  for (size_t i = 0; i < info.rows; i++) {
    pawl_mlr_rows_values(rows, order[i], row);
    is->classes[i] = pawl_mlr_rows_classes(rows)[order[i]];
    for (size_t d = 0; d < is->width; d++) is->x[i][d] = ((double)row[d] - model->frame.mean[d]) * model->frame.scale;
  }
}

static inline void plain_pairs(struct plain *is, size_t k) {
  uint32_t list[16];
  memset(is->w, 0, sizeof is->w);
  for (size_t d = 0; d < is->width; d++) is->w[d][d] = 1;
  is->pairs = 0;
  for (int wanted = 1; wanted >= 0; wanted--) {
    for (size_t i = 0; i < is->paired; i++) {
      plain_nearest(is, i, k, wanted, list);
      for (size_t n = 0; n < k; n++, is->pairs++) {
        is->one[is->pairs] = (uint32_t)i;
        is->other[is->pairs] = list[n];
      }
    }
    if (wanted) is->similar = is->pairs;
  }
}

static inline double plain_scale(struct plain *is) {
  double sum = 0;
  for (size_t p = is->similar; p < is->pairs; p++) sum += plain_square(is, is->x[is->one[p]], is->x[is->other[p]]);
  double factor = sqrt((double)(is->pairs - is->similar) / sum);
  for (size_t d = 0; d < is->width; d++) is->w[d][d] = factor;
  return factor;
}

/* The largest eigenvalue of the mean of v v'. */
static inline double plain_largest(const struct plain *is) {
  double a[PLAIN_WIDTH], b[PLAIN_WIDTH], length = 0;
  for (size_t d = 0; d < is->width; d++) a[d] = 1 + 0.1 * (double)d;
  for (int i = 0; i < 200; i++) {
    memset(b, 0, sizeof b);
    for (size_t p = 0; p < is->pairs; p++) {
      const double *one = is->x[is->one[p]], *other = is->x[is->other[p]];
      double dot = 0;
      for (size_t d = 0; d < is->width; d++) dot += a[d] * (one[d] - other[d]);
      for (size_t d = 0; d < is->width; d++) b[d] += dot * (one[d] - other[d]) / (double)is->pairs;
    }
    length = 0;
    for (size_t d = 0; d < is->width; d++) length += b[d] * b[d];
    length = sqrt(length);
    for (size_t d = 0; d < is->width; d++) a[d] = b[d] / length;
  }
  return length;
}

static inline double plain_objective(const struct plain *is, double near, double weight) {
  double sum = 0;
  for (size_t p = 0; p < is->pairs; p++) {
    double square = plain_square(is, is->x[is->one[p]], is->x[is->other[p]]);
    sum += p < is->similar ? fmax(0, square - near) : weight * fmax(0, 1 - square);
  }
  return sum / (double)is->pairs;
}

static inline void plain_step(struct plain *is, const uint32_t *numbers, size_t count, double near, double weight,
                              double step) {
  double slope[PLAIN_WIDTH][PLAIN_WIDTH] = {{0}};
  for (size_t n = 0; n < count; n++) {
    const double *one = is->x[is->one[numbers[n]]], *other = is->x[is->other[numbers[n]]];
    double square = plain_square(is, one, other), factor = 0;
    if (numbers[n] < is->similar && square > near) factor = 2;
    if (numbers[n] >= is->similar && square < 1) factor = -2 * weight;
    for (size_t r = 0; r < is->width; r++) {
      double u = 0;
      for (size_t d = 0; d < is->width; d++) u += is->w[r][d] * (one[d] - other[d]);
      for (size_t d = 0; d < is->width; d++) slope[r][d] += factor * u * (one[d] - other[d]) / (double)count;
    }
  }
  for (size_t r = 0; r < is->width; r++)
    for (size_t d = 0; d < is->width; d++) is->w[r][d] -= step * slope[r][d];
}

static inline void plain_epoch(struct plain *is, uint64_t seed, uint64_t epoch, size_t batch, double near,
                               double weight, double step) {
  uint32_t order[PLAIN_PAIRS];
  struct apps_random random = apps_random_of(seed, 43, epoch, 0);
  apps_shuffle(&random, order, is->pairs);
  for (size_t first = 0; first < is->pairs; first += batch)
    plain_step(is, order + first, is->pairs - first < batch ? is->pairs - first : batch, near, weight, step);
}

/* The share of held-out rows that their three nearest neighbours classify wrongly. */
static inline double plain_error(const struct plain *is) {
  size_t wrong = 0;
  for (size_t i = is->paired; i < is->paired + is->held; i++) {
    uint32_t list[3], *classes = (uint32_t[3]){0};
    plain_nearest(is, i, 3, -1, list);
    for (size_t n = 0; n < 3; n++) classes[n] = is->classes[list[n]];
    wrong += (classes[1] == classes[2] ? classes[1] : classes[0]) != is->classes[i];
  }
  return (double)wrong / (double)is->held;
}

#endif
