/* What the tests of whole trainings share: data that is made up, a serial solver to compare with, and a
 * cluster with workers. */
#ifndef APPS_LINEAR_TRAIN_TRAIN_TEST_H
#define APPS_LINEAR_TRAIN_TRAIN_TEST_H

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/linear/inside.h"
#include "apps/linear/losses.h"
#include "apps/common/scene_test.h"

/* --- data ----------------------------------------------------------------------------------------------- */

#ifndef FEATURES_MOST
#define FEATURES_MOST 64
#endif

enum { ROWS_MOST = 600 };

/* Rows, dense: id j is x[i][j], and 0 is none. */
struct rows {
  size_t count, features; /* ids 1 … features */
  float x[ROWS_MOST][FEATURES_MOST + 1];
  double labels[ROWS_MOST];
  char path[128];
};

static inline double draw_part(uint64_t *random) { return (double)(linear_draw(random) >> 11) * 0x1p-53; }

/* About normal: the sum of four. */
static inline double draw_normal(uint64_t *random) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += draw_part(random) - 0.5;
  return sum * 1.7320508;
}

static inline void write_rows(struct rows *rows, const char *name) {
  snprintf(rows->path, sizeof rows->path, "%s/%s", folder, name);
  FILE *file = fopen(rows->path, "w");
  assert_non_null(file);
  for (size_t i = 0; i < rows->count; i++) {
    fprintf(file, "%.9g", rows->labels[i]);
    for (size_t j = 1; j <= rows->features; j++)
      if (rows->x[i][j] != 0) fprintf(file, " %zu:%.9g", j, (double)rows->x[i][j]);
    fputc('\n', file);
  }
  assert_int_equal(fclose(file), 0);
}

/* A third of the features matter. `noise` blurs the labels; those of regression are the scores. Every tenth
 * row has no features. */
static inline void draw_rows(struct rows *rows, const char *name, size_t count, size_t features, double noise,
                             bool is_regression, uint64_t seed) {
  uint64_t truth = 99, random = seed;
  double w[FEATURES_MOST + 1];
  memset(rows, 0, sizeof *rows);
  rows->count = count;
  rows->features = features;
  for (size_t j = 1; j <= features; j++) w[j] = j % 3 ? 0 : 2 * draw_normal(&truth);
  for (size_t i = 0; i < count; i++) {
    double z = 0.3 + noise * draw_normal(&random);
    for (size_t j = 1; j <= features && i % 10 != 9; j++) {
      if (draw_part(&random) > 8.0 / (double)features) continue;
      rows->x[i][j] = (float)draw_normal(&random);
      z += w[j] * (double)rows->x[i][j];
    }
    rows->labels[i] = is_regression ? (double)(float)z : z > 0 ? 1 : -1;
  }
  write_rows(rows, name);
}

/* Rows without zeros. The features are of sizes from 1 / `spread` to `spread`. */
static inline void draw_dense(struct rows *rows, const char *name, size_t count, size_t features, double spread,
                              uint64_t seed) {
  uint64_t random = seed;
  memset(rows, 0, sizeof *rows);
  rows->count = count;
  rows->features = features;
  for (size_t i = 0; i < count; i++) {
    double z = 2 * draw_normal(&random);
    for (size_t j = 1; j <= features; j++) {
      double x = draw_normal(&random);
      rows->x[i][j] = (float)(x * pow(spread, 2 * (double)j / (double)features - 1));
      z += j % 3 ? 0 : x * 4 / sqrt((double)features);
    }
    rows->labels[i] = z > 0 ? 1 : -1;
  }
  write_rows(rows, name);
}

/* --- a serial solver ------------------------------------------------------------------------------------ */

/* What is minimised, and the weights: those of ids, and the bias in w[0]. */
struct problem {
  const struct rows *rows;
  enum pawl_linear_loss loss;
  double l1, l2;
  bool bias, penalises_bias;
  double class_weights[2];
};

static inline double y_of(const struct problem *problem, size_t row) { return problem->rows->labels[row]; }

static inline double c_of(const struct problem *problem, size_t row) {
  double c = problem->class_weights[problem->rows->labels[row] > 0];
  return linear_is_regression(problem->loss) || c == 0 ? 1 : c;
}

static inline double x_of(const struct problem *problem, size_t row, size_t id) {
  return id == 0 ? (problem->bias ? 1 : 0) : (double)problem->rows->x[row][id];
}

static inline double objective_of(const struct problem *problem, const double *w) {
  double sum = problem->penalises_bias ? problem->l2 / 2 * w[0] * w[0] : 0;
  for (size_t j = 1; j <= problem->rows->features; j++) sum += problem->l1 * fabs(w[j]) + problem->l2 / 2 * w[j] * w[j];
  for (size_t i = 0; i < problem->rows->count; i++) {
    double z = 0;
    for (size_t j = 0; j <= problem->rows->features; j++) z += x_of(problem, i, j) * w[j];
    sum += c_of(problem, i) * linear_loss_value(problem->loss, y_of(problem, i), z);
  }
  return sum;
}

/* One coordinate, with a curvature that is never exceeded: the objective cannot rise. */
static inline double descend(const struct problem *problem, size_t id, double *w, double *z) {
  double most = problem->loss == PAWL_LINEAR_LOGISTIC ? 0.25 : problem->loss == PAWL_LINEAR_SQUARED_HINGE ? 2 : 1;
  double g = 0, u = 0, l1 = id ? problem->l1 : 0, l2 = id ? problem->l2 : 0;
  for (size_t i = 0; i < problem->rows->count; i++) {
    double x = x_of(problem, i, id), c = c_of(problem, i);
    if (x == 0) continue;
    g += c * x * linear_loss_slope(problem->loss, y_of(problem, i), z[i]);
    u += c * x * x * most;
  }
  if (u == 0) return 0;
  double wanted = (u * w[id] - g) / (u + l2), shrink = l1 / (u + l2);
  double to = wanted > shrink ? wanted - shrink : wanted < -shrink ? wanted + shrink : 0, by = to - w[id];
  for (size_t i = 0; i < problem->rows->count; i++) z[i] += by * x_of(problem, i, id);
  w[id] = to;
  return fabs(by);
}

/* Coordinate descent until nothing moves. */
static inline void descend_all(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  double z[ROWS_MOST] = {0};
  for (int cycle = 0; cycle < 20000; cycle++) {
    double moved = 0;
    for (size_t id = 0; id <= problem->rows->features; id++) moved = fmax(moved, descend(problem, id, w, z));
    if (moved < 1e-9) break;
  }
}

/* The hinge loss by its dual, row by row (Hsieh et al. 2008), until nothing moves. The bias is penalised. */
static inline void ascend_all(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  double a[ROWS_MOST] = {0}, moved = INFINITY;
  for (int cycle = 0; cycle < 5000 && moved > 1e-12; cycle++) {
    moved = 0;
    for (size_t i = 0; i < problem->rows->count; i++) {
      double y = y_of(problem, i), z = 0, square = 0;
      for (size_t j = 0; j <= problem->rows->features; j++) {
        z += x_of(problem, i, j) * w[j];
        square += x_of(problem, i, j) * x_of(problem, i, j);
      }
      if (square == 0) continue;
      double to = fmin(fmax(a[i] + (1 - y * z) * problem->l2 / square, 0), c_of(problem, i));
      if (to == a[i]) continue;
      for (size_t j = 0; j <= problem->rows->features; j++) w[j] += (to - a[i]) * y / problem->l2 * x_of(problem, i, j);
      moved = fmax(moved, fabs(to - a[i]));
      a[i] = to;
    }
  }
}

/* Steps of the proximal gradient method from zeros, one after the other. */
static inline void take_steps(const struct problem *problem, double rate, int steps, double w[FEATURES_MOST + 1]) {
  size_t features = problem->rows->features;
  memset(w, 0, (FEATURES_MOST + 1) * sizeof *w);
  for (int step = 0; step < steps; step++) {
    double g[FEATURES_MOST + 1] = {0};
    for (size_t i = 0; i < problem->rows->count; i++) {
      double z = 0, slope;
      for (size_t j = 0; j <= features; j++) z += x_of(problem, i, j) * w[j];
      slope = c_of(problem, i) * linear_loss_slope(problem->loss, y_of(problem, i), z);
      for (size_t j = 0; j <= features; j++) g[j] += slope * x_of(problem, i, j);
    }
    for (size_t j = 0; j <= features; j++) {
      double to = w[j] - rate * g[j], least = j ? rate * problem->l1 : 0, divisor = j ? 1 + rate * problem->l2 : 1;
      w[j] = (to > least ? to - least : to < -least ? to + least : 0) / divisor;
    }
  }
}

static inline void check_stepped(const struct rows *rows, const double *is, const double *wanted) {
  for (size_t j = 0; j <= rows->features; j++)
    if (!(fabs(is[j] - wanted[j]) <= 1e-9)) fail_msg("weight %zu is %.12g instead of %.12g", j, is[j], wanted[j]);
}

/* Problems that were solved. A test trains often, but on few problems. */
enum { SOLVED_MOST = 8 };

struct solved {
  struct problem problem;
  uint64_t rows; /* a hash of the rows, which a test may draw again */
  double w[FEATURES_MOST + 1];
};

static struct solved solved[SOLVED_MOST];
static size_t solved_count;

static inline uint64_t hash_rows(const struct rows *rows) {
  uint64_t hash = rows->count * 1000003 + rows->features, bits = 0;
  for (size_t i = 0; i < rows->count; i++)
    for (size_t j = 0; j <= rows->features; j++) {
      double value = j ? (double)rows->x[i][j] : rows->labels[i];
      memcpy(&bits, &value, sizeof bits);
      hash = (hash ^ bits ^ bits >> 32) * UINT64_C(0x9e3779b97f4a7c15);
      hash ^= hash >> 29;
    }
  return hash;
}

static inline bool is_same_problem(const struct problem *a, const struct problem *b) {
  return a->loss == b->loss && a->l1 == b->l1 && a->l2 == b->l2 && a->bias == b->bias &&
         a->penalises_bias == b->penalises_bias && a->class_weights[0] == b->class_weights[0] &&
         a->class_weights[1] == b->class_weights[1];
}

static inline double solve_once(const struct problem *problem, double w[FEATURES_MOST + 1],
                                void (*solver)(const struct problem *problem, double *w)) {
  uint64_t rows = hash_rows(problem->rows);
  for (size_t i = 0; i < solved_count && i < SOLVED_MOST; i++) {
    if (solved[i].rows != rows || !is_same_problem(&solved[i].problem, problem)) continue;
    memcpy(w, solved[i].w, sizeof solved[i].w);
    return objective_of(problem, w);
  }
  memset(w, 0, (FEATURES_MOST + 1) * sizeof *w);
  solver(problem, w);
  struct solved *kept = &solved[solved_count++ % SOLVED_MOST];
  *kept = (struct solved){.problem = *problem, .rows = rows};
  memcpy(kept->w, w, sizeof kept->w);
  return objective_of(problem, w);
}

static inline double solve(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  return solve_once(problem, w, descend_all);
}

static inline double solve_hinge(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  return solve_once(problem, w, ascend_all);
}

/* --- workers -------------------------------------------------------------------------------------------- */

struct hand {
  pthread_t thread;
  const char *job;
  pawl_status outcome;
  char error[APPS_TEXT_MAX];
};

static inline void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_listening(pawl_session_address(base));
  hand->outcome = pawl_linear_work(own, hand->job, PATIENCE, hand->error);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

/* --- a training ----------------------------------------------------------------------------------------- */

enum { MODELS = 4, HANDS = 8 };

/* What comes of it. */
struct outcome {
  size_t models;
  double w[MODELS][FEATURES_MOST + 1]; /* the bias in w[0] */
  struct pawl_linear_result results[MODELS];
  struct pawl_linear_result last;
  uint64_t rounds;        /* that were shown */
  double best_valid_loss; /* of those rounds */
  char told[4096];
  char error[APPS_TEXT_MAX];
};

static inline pawl_status keep_model(void *context, size_t point, const struct pawl_linear_model *model,
                                     const struct pawl_linear_result *result) {
  struct outcome *outcome = context;
  assert_in_range(point, 0, MODELS - 1);
  memset(outcome->w[point], 0, sizeof outcome->w[point]);
  for (size_t i = 0; i < model->about.nonzeros; i++) {
    assert_in_range(model->ids[i], 1, FEATURES_MOST);
    outcome->w[point][model->ids[i]] = model->weights[i];
  }
  outcome->w[point][0] = model->about.bias;
  outcome->results[point] = *result;
  outcome->models++;
  return PAWL_OK;
}

static inline void keep_line(void *context, const char *line) {
  struct outcome *outcome = context;
  size_t length = strlen(outcome->told);
  snprintf(outcome->told + length, sizeof outcome->told - length, "%s\n", line);
}

static inline void count_round(void *context, const struct pawl_linear_progress *progress) {
  struct outcome *outcome = context;
  if (strcmp(progress->stage, "training") != 0) return;
  outcome->rounds = progress->round;
  if (progress->round == 1 || progress->valid_loss < outcome->best_valid_loss)
    outcome->best_valid_loss = progress->valid_loss;
}

/* The options for a problem, all of it in pieces of some rows. They point to `outcome`, `path` and
 * `point`. */
static inline void begin_options(struct pawl_linear_options *options, const struct problem *problem,
                                 struct pawl_linear_point *point, const char **path, struct outcome *outcome) {
  pawl_linear_options_init(options);
  memset(outcome, 0, sizeof *outcome);
  *point = (struct pawl_linear_point){problem->l1, problem->l2};
  *path = problem->rows->path;
  options->loss = problem->loss;
  /* Not what is chosen for data as small as this: Newton steps, or all rows at one worker. */
  options->method = problem->loss == PAWL_LINEAR_HINGE ? PAWL_LINEAR_METHOD_DUAL : PAWL_LINEAR_METHOD_BLOCKS;
  options->paths = path;
  options->path_count = 1;
  options->reading.format = PAWL_DATA_LIBSVM;
  options->reading.piece_bytes = 2000;
  options->points = point;
  options->point_count = 1;
  options->bias = problem->bias;
  memcpy(options->class_weights, problem->class_weights, sizeof options->class_weights);
  options->threads = 1;
  options->tell = keep_line;
  options->progress = count_round;
  options->found = keep_model;
  options->context = outcome;
}

/* Trains with so many threads as workers. */
static inline pawl_status train(struct pawl_linear_options *options, uint32_t workers, struct outcome *outcome) {
  static unsigned number;
  struct hand hands[HANDS] = {0};
  char job[32];
  snprintf(job, sizeof job, "train%u", number++);
  if (!options->job) options->job = job;
  options->workers = options->workers_most = workers;
  for (uint32_t i = 0; i < workers; i++) {
    hands[i].job = options->job;
    assert_int_equal(pthread_create(&hands[i].thread, NULL, labour, &hands[i]), 0);
  }
  pawl_status status = pawl_linear_train(session, options, NULL, &outcome->last, outcome->error);
  for (uint32_t i = 0; i < workers; i++) pthread_join(hands[i].thread, NULL);
  if (options->job == job) options->job = NULL;
  return status;
}

static inline void must_train(struct pawl_linear_options *options, uint32_t workers, struct outcome *outcome) {
  pawl_status status = train(options, workers, outcome);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome->error, outcome->told);
}

/* Checks that the objective of the model is at most `within` above `best`, relatively, and that the reported
 * objective is the true one. */
static inline void check_model(const struct problem *problem, const struct outcome *outcome, size_t point, double best,
                               double within) {
  double bias = outcome->w[point][0], is = objective_of(problem, outcome->w[point]);
  double said = outcome->results[point].objective + (problem->penalises_bias ? problem->l2 / 2 * bias * bias : 0);
  if (getenv("SHOW"))
    print_message("%.9g instead of %.9g: %.2g above; %s after %llu rounds\n", is, best, is / best - 1,
                  outcome->results[point].why, (unsigned long long)outcome->results[point].rounds);
  if (!(fabs(said - is) <= 1e-6 * is)) fail_msg("said to be %.9g, and is %.9g", said, is);
  if (!(is <= best * (1 + within) + 1e-9 && is >= best * (1 - 1e-6) - 1e-9))
    fail_msg("%.9g instead of %.9g, %.2g above, %s after %llu rounds", is, best, is / best - 1,
             outcome->results[point].why, (unsigned long long)outcome->results[point].rounds);
}

#endif
