/* Random problems of every kind that is hard for descent methods, each against a serial solver: what
 * property_test.c and its long variant share.
 *
 * What must hold of each, whatever the method, the delay and the number of workers:
 *   - the model is within 0.1 % of the optimum, and it is said to have converged;
 *   - or, of methods that may run out of rounds (blocks, dual), it says that it has not converged;
 *   - it is never worse than the weights that it began with, all zero. */
#ifndef LINEAR_PROPERTY_TEST_H
#define LINEAR_PROPERTY_TEST_H

#include <inttypes.h>

#include "apps/linear/train/train_test.h"

/* LONG: a few rows have all features, and the others two. Blocks, which are chosen by the average, then hold
 * many features of those few, and steps that do not know of one another overshoot: without a guard l1
 * logistic regression ends at 1e13. */
enum kind { PLAIN, DUPLICATED, CORRELATED, UNBALANCED, SEPARABLE, UNSCALED, CONSTANT, RARE, LONG, KINDS };

static const char *const kind_names[KINDS] = {"plain",    "duplicated", "correlated", "unbalanced", "separable",
                                              "unscaled", "constant",   "rare",       "long"};

static struct rows drawn;

/* A value of a feature before it is scaled: dense for half of the kinds. */
static inline double draw_value(enum kind kind, size_t row, size_t j, uint64_t *random, const double *shared) {
  double value = draw_normal(random);
  bool is_dense = kind == CORRELATED || kind == UNSCALED;
  if (row % 11 == 10) return 0; /* rows without any feature */
  if (kind == LONG) return fabs(shared[0]) > 2 || draw_part(random) < 0.05 ? 1 : 0;
  if (kind == CONSTANT && j % 4 == 1) return 1;
  if (kind == RARE && j % 3 == 0) return draw_part(random) < 0.03 ? 1 : 0;
  if (kind == CORRELATED) return shared[j % 2] + 0.05 * value;
  return is_dense || draw_part(random) < 0.4 ? value : 0;
}

static inline void draw_problem(enum kind kind, bool is_regression, uint64_t seed) {
  uint64_t random = seed * 1000003 + kind;
  size_t features = 6 + linear_draw(&random) % 12, count = 60 + linear_draw(&random) % 100;
  double w[FEATURES_MOST + 1], scale[FEATURES_MOST + 1];
  if (kind == LONG) {
    features += 30;
    count += 200;
  }
  memset(&drawn, 0, sizeof drawn);
  drawn.count = count;
  drawn.features = features;
  for (size_t j = 1; j <= features; j++) {
    w[j] = j % 3 ? 0 : 2 * draw_normal(&random);
    scale[j] = kind == UNSCALED ? pow(10, -3 + 7 * draw_part(&random)) : 1;
  }
  double shift = kind == UNBALANCED ? -4 : 0.3, noise = kind == SEPARABLE ? 0 : 1;
  for (size_t i = 0; i < count; i++) {
    double z = shift + noise * draw_normal(&random), shared[] = {draw_normal(&random), draw_normal(&random)};
    for (size_t j = 1; j <= features; j++) {
      double value = draw_value(kind, i, j, &random, shared);
      if (kind == DUPLICATED && j > features / 2) value = (double)drawn.x[i][j - features / 2];
      z += w[j] * value;
      drawn.x[i][j] = (float)(value * scale[j]);
    }
    drawn.labels[i] = is_regression ? (double)(float)z : z > 0 ? 1 : -1;
  }
  if (!is_regression) { /* both classes */
    drawn.labels[0] = 1;
    drawn.labels[1] = -1;
  }
  write_rows(&drawn, "drawn");
}

/* Coordinate by coordinate, each to its own least by bisection of the slope, which rises; until a hundred
 * cycles bring nothing. */
static inline double best_of_one(const struct problem *problem, size_t id, const double *w, const double *z) {
  double l1 = id ? problem->l1 : 0, l2 = id ? problem->l2 : 0, low = -1, high = 1;
  for (int widen = 0; widen < 2; widen++) /* first outwards until the slope changes its sign */
    for (int i = 0; i < 60; i++) {
      double v = widen ? high : low, slope = l2 * v + (v > 0 ? l1 : -l1);
      for (size_t row = 0; row < problem->rows->count; row++) {
        double x = x_of(problem, row, id);
        if (x != 0)
          slope +=
              c_of(problem, row) * x * linear_loss_slope(problem->loss, y_of(problem, row), z[row] + (v - w[id]) * x);
      }
      if (widen ? slope >= 0 : slope <= 0) break;
      if (widen)
        high *= 2;
      else
        low *= 2;
    }
  for (int i = 0; i < 90 && high - low > 1e-13 * (fabs(low) + fabs(high)); i++) {
    double v = (low + high) / 2, slope = l2 * v, slack = v == 0 ? l1 : 0;
    slope += v > 0 ? l1 : v < 0 ? -l1 : 0;
    for (size_t row = 0; row < problem->rows->count; row++) {
      double x = x_of(problem, row, id);
      if (x != 0)
        slope +=
            c_of(problem, row) * x * linear_loss_slope(problem->loss, y_of(problem, row), z[row] + (v - w[id]) * x);
    }
    if (fabs(slope) <= slack) return v;
    if (slope > 0)
      high = v;
    else
      low = v;
  }
  return (low + high) / 2;
}

static inline double solve_plainly(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  double z[ROWS_MOST] = {0}, before = INFINITY;
  memset(w, 0, (FEATURES_MOST + 1) * sizeof *w);
  for (int cycle = 0; cycle < 400; cycle++) {
    for (size_t id = problem->bias ? 0 : 1; id <= problem->rows->features; id++) {
      double to = best_of_one(problem, id, w, z), by = to - w[id];
      for (size_t row = 0; row < problem->rows->count; row++) z[row] += by * x_of(problem, row, id);
      w[id] = to;
    }
    if (cycle % 10 != 9) continue;
    double now = objective_of(problem, w);
    if (before - now <= 1e-9 * now) break;
    before = now;
  }
  return objective_of(problem, w);
}

/* The hinge loss, exactly enough whatever the features' sizes are: the proximal point method on the dual,
 * whose steps minimise
 *
 *   l2/2 |w|^2 + sum_i max over 0 <= b <= c_i of  b (1 - y_i z_i) - (b - a_i)^2 / (2 sigma)
 *
 * by Newton's method, and take a to be the b there. It is done when the dual says so. The bias is penalised,
 * as it is by the dual method. */
enum { HINGE_MOST = FEATURES_MOST + 1 };

struct hinge {
  const struct problem *problem;
  double a[ROWS_MOST], b[ROWS_MOST], sigma;
  double g[HINGE_MOST], h[HINGE_MOST][HINGE_MOST];
};

/* The value at w; with slopes and curvatures if they are asked for. */
static inline double smooth_hinge(struct hinge *hinge, const double *w, bool derives) {
  const struct problem *problem = hinge->problem;
  size_t count = problem->rows->features + 1;
  double sum = 0;
  if (derives) memset(hinge->h, 0, sizeof hinge->h);
  for (size_t j = 0; j < count; j++) {
    sum += problem->l2 / 2 * w[j] * w[j];
    if (derives) hinge->g[j] = problem->l2 * w[j];
    if (derives) hinge->h[j][j] = problem->l2;
  }
  for (size_t i = 0; i < problem->rows->count; i++) {
    double z = 0, y = y_of(problem, i), c = c_of(problem, i);
    for (size_t j = 0; j < count; j++) z += x_of(problem, i, j) * w[j];
    double e = 1 - y * z, u = hinge->a[i] + hinge->sigma * e, b = fmin(fmax(u, 0), c), moved = b - hinge->a[i];
    sum += b * e - moved * moved / (2 * hinge->sigma);
    if (!derives) continue;
    hinge->b[i] = b;
    for (size_t j = 0; j < count; j++) {
      double x = x_of(problem, i, j);
      hinge->g[j] -= b * y * x;
      for (size_t k = 0; k < count && u > 0 && u < c; k++) hinge->h[j][k] += hinge->sigma * x * x_of(problem, i, k);
    }
  }
  return sum;
}

/* d = -h^-1 g by Cholesky, of the matrix scaled to a diagonal of ones. Returns g . d. */
static inline double newton_step(struct hinge *hinge, size_t count, double *d) {
  double scale[HINGE_MOST], slope = 0;
  for (size_t j = 0; j < count; j++) scale[j] = sqrt(hinge->h[j][j]);
  for (size_t j = 0; j < count; j++)
    for (size_t k = 0; k < count; k++) hinge->h[j][k] /= scale[j] * scale[k];
  for (size_t j = 0; j < count; j++) {
    for (size_t k = 0; k <= j; k++) {
      double sum = hinge->h[j][k];
      for (size_t m = 0; m < k; m++) sum -= hinge->h[j][m] * hinge->h[k][m];
      hinge->h[j][k] = j == k ? sqrt(fmax(sum, 1e-13)) : sum / hinge->h[k][k];
    }
    d[j] = -hinge->g[j] / scale[j];
    for (size_t k = 0; k < j; k++) d[j] -= hinge->h[j][k] * d[k];
    d[j] /= hinge->h[j][j];
  }
  for (size_t j = count; j-- > 0;) {
    for (size_t k = j + 1; k < count; k++) d[j] -= hinge->h[k][j] * d[k];
    d[j] /= hinge->h[j][j];
  }
  for (size_t j = 0; j < count; j++) {
    d[j] /= scale[j];
    slope += hinge->g[j] * d[j];
  }
  return slope;
}

static inline void minimise_smooth_hinge(struct hinge *hinge, double *w) {
  size_t count = hinge->problem->rows->features + 1;
  for (int i = 0; i < 100; i++) {
    double d[HINGE_MOST], v[HINGE_MOST], t = 1;
    double now = smooth_hinge(hinge, w, true), slope = newton_step(hinge, count, d);
    if (-slope <= 1e-13 * fabs(now)) return;
    for (int halved = 0; halved < 40; halved++, t /= 2) {
      for (size_t j = 0; j < count; j++) v[j] = w[j] + t * d[j];
      if (smooth_hinge(hinge, v, false) <= now + 1e-4 * t * slope) break;
    }
    memcpy(w, v, count * sizeof *w);
  }
}

static inline double solve_hinge_exactly(const struct problem *problem, double w[FEATURES_MOST + 1]) {
  static struct hinge hinge;
  double best = INFINITY, gap = INFINITY;
  memset(&hinge, 0, sizeof hinge);
  memset(w, 0, (FEATURES_MOST + 1) * sizeof *w);
  hinge.problem = problem;
  hinge.sigma = 1e-3;
  for (int outer = 0; outer < 200 && gap > 1e-5; outer++, hinge.sigma *= 1.5) {
    double v[HINGE_MOST] = {0}, dual = 0;
    minimise_smooth_hinge(&hinge, w);
    smooth_hinge(&hinge, w, true);
    memcpy(hinge.a, hinge.b, sizeof hinge.a);
    for (size_t i = 0; i < problem->rows->count; i++) {
      dual += hinge.a[i];
      for (size_t j = 0; j <= problem->rows->features; j++)
        v[j] += hinge.a[i] * y_of(problem, i) / problem->l2 * x_of(problem, i, j);
    }
    for (size_t j = 0; j <= problem->rows->features; j++) dual -= problem->l2 / 2 * v[j] * v[j];
    best = fmin(best, objective_of(problem, w));
    gap = (best - dual) / best;
  }
  if (!(gap <= 1e-4)) fail_msg("the reference itself is %.2g from the optimum", gap);
  return best;
}

struct counts {
  int trained, unconverged, wrong;
};

/* One training, and what must hold of it. Returns what is wrong, or NULL. */
static inline const char *judge(const struct problem *problem, enum pawl_linear_method method, uint32_t workers,
                                uint32_t tau, double best, struct counts *counts, struct outcome *outcome) {
  static struct pawl_linear_options options;
  static struct pawl_linear_point point;
  static const char *path;
  double zeros[FEATURES_MOST + 1] = {0};
  begin_options(&options, problem, &point, &path, outcome);
  options.method = method;
  options.tau = tau;
  options.seed = (uint64_t)counts->trained + 1;
  options.rounds = method == PAWL_LINEAR_METHOD_AUTO && problem->loss != PAWL_LINEAR_HINGE ? 0 : 150;
  must_train(&options, workers, outcome);
  counts->trained++;
  double bias = outcome->w[0][0], is = objective_of(problem, outcome->w[0]);
  double said = outcome->last.objective + (problem->penalises_bias ? problem->l2 / 2 * bias * bias : 0);
  bool is_converged = strcmp(outcome->last.why, "converged") == 0, is_near = is <= best * (1 + 1e-3) + 1e-9;
  bool may_fail = method != PAWL_LINEAR_METHOD_AUTO || problem->loss == PAWL_LINEAR_HINGE;
  counts->unconverged += !is_converged;
  if (!isfinite(is)) return "is not finite";
  if (fabs(said - is) > 1e-5 * is + 1e-9) return "is said to be something else";
  if (is > objective_of(problem, zeros) * (1 + 1e-6)) return "is worse than no model";
  if (is_converged && !is_near) return "has not converged, and says so";
  if (!is_converged && !outcome->last.advice) return "has not converged, and gives no advice";
  if (!may_fail && !is_converged) return "should have converged";
  return NULL;
}

static const struct { double l1, l2; } penalties[] = {{1, 0}, {0, 1}, {0.5, 0.5}, {0.05, 0}, {0, 1e-3}};

/* Every kind of data, with a choice of the rest that goes through all of it as `seed` counts. */
static inline void check_kinds(enum pawl_linear_method method, uint64_t first_seed, uint64_t seeds) {
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_SQUARED_HINGE, PAWL_LINEAR_SQUARED,
                                                 PAWL_LINEAR_HINGE};
  static const uint32_t many[] = {1, 2, 4}, taus[] = {0, 4, 16};
  static double w[FEATURES_MOST + 1];
  static struct outcome outcome;
  struct counts counts = {0};
  const char *others = getenv("PAWL_SEEDS"); /* FIRST:COUNT */
  if (others && sscanf(others, "%" SCNu64 ":%" SCNu64, &first_seed, &seeds) != 2) fail_msg("PAWL_SEEDS=FIRST:COUNT");
  for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
    for (enum kind kind = PLAIN; kind < KINDS; kind++) {
      uint64_t pick = seed * KINDS + kind;
      enum pawl_linear_loss loss =
          losses[method == PAWL_LINEAR_METHOD_DUAL ? 3
                                                   : (pick + pick / 7) % (method == PAWL_LINEAR_METHOD_AUTO ? 4 : 3)];
      size_t penalty = loss == PAWL_LINEAR_HINGE ? 1 : (pick / 3 + seed) % 5;
      struct problem problem = {.rows = &drawn,
                                .loss = loss,
                                .l1 = penalties[penalty].l1,
                                .l2 = penalties[penalty].l2,
                                .bias = (pick + seed) % 2,
                                .penalises_bias = loss == PAWL_LINEAR_HINGE};
      draw_problem(kind, linear_is_regression(loss), seed);
      double best = loss == PAWL_LINEAR_HINGE ? solve_hinge_exactly(&problem, w) : solve_plainly(&problem, w);
      uint32_t workers = many[(pick / 2 + seed) % 3], tau = taus[(pick + seed) % 3];
      const char *wrong = judge(&problem, method, workers, tau, best, &counts, &outcome);
      if (wrong || getenv("SHOW"))
        print_message("%s: seed %d %s loss %d l1 %g l2 %g bias %d workers %u tau %u: %.9g for %.9g, %s after %d (%s)\n",
                      wrong ? wrong : "fine", (int)seed, kind_names[kind], (int)loss, problem.l1, problem.l2,
                      problem.bias, workers, tau, objective_of(&problem, outcome.w[0]), best, outcome.last.why,
                      (int)outcome.last.rounds, outcome.last.method);
      counts.wrong += wrong != NULL;
    }
  print_message("%d trained, %d of them not converged, as they say\n", counts.trained, counts.unconverged);
  assert_int_equal(counts.wrong, 0);
}

#endif
