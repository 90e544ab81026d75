#include "apps/mlr/softmax.h"

#include <math.h>

#define STEPS_MAX 100   /* of Newton's method; a handful is usual */
#define INNER_MAX 30    /* the same for one class */
#define PRECISE 1e-14   /* relative error of the sum of q */
#define NEGLIGIBLE -700 /* exp of less is 0 */

double mlr_log_sum(size_t classes, const double *scores) {
  double most = scores[0], sum = 0;
  for (size_t j = 1; j < classes; j++) most = scores[j] > most ? scores[j] : most;
  for (size_t j = 0; j < classes; j++) sum += exp(scores[j] - most);
  return most + log(sum);
}

void mlr_probabilities(size_t classes, const double *scores, double log_sum, double *probabilities_out) {
  for (size_t j = 0; j < classes; j++) probabilities_out[j] = exp(scores[j] - log_sum);
}

uint32_t mlr_best(size_t classes, const double *scores, bool *is_alone_out) {
  size_t best = 0, equal = 0;
  for (size_t j = 1; j < classes; j++)
    if (scores[j] > scores[best]) best = j;
  for (size_t j = 0; j < classes; j++) equal += scores[j] >= scores[best];
  *is_alone_out = equal == 1;
  return (uint32_t)best;
}

double mlr_entropy(size_t classes, const double *q) {
  double sum = 0;
  for (size_t j = 0; j < classes; j++)
    if (q[j] > 0) sum -= q[j] * log(q[j]);
  return sum;
}

/* --- the dual --------------------------------------------------------------------------------------------- */

/* A first guess at the y with y + stiffness exp(y) = t. The product x = stiffness exp(y) solves x + log x = t + log
 * stiffness. */
static double guess(double t, double stiffness, double log_stiffness) {
  double sum = t + log_stiffness;
  if (sum <= -2) return t;
  double x = sum > 1 ? sum - log(sum) : exp(sum) / (1 + exp(sum));
  return log(x / stiffness);
}

/* Newton's method for y + stiffness exp(y) = t. */
static double refine(double y, double t, double stiffness) {
  if (t < NEGLIGIBLE) return t;
  for (int i = 0; i < INNER_MAX; i++) {
    double rest = stiffness * exp(y), step = (y + rest - t) / (1 + rest);
    y -= step;
    if (fabs(step) <= 1e-15 * (1 + fabs(y))) break;
  }
  return y;
}

struct dual_sums {
  double q;     /* sum of q */
  double slope; /* minus its derivative by m */
};

static struct dual_sums sum_up(size_t classes, const double *targets, double m, double stiffness, double *y) {
  struct dual_sums sums = {0, 0};
  for (size_t j = 0; j < classes; j++) {
    y[j] = refine(y[j], targets[j] - m, stiffness);
    double q = exp(y[j]);
    sums.q += q;
    sums.slope += q / (1 + stiffness * q);
  }
  return sums;
}

/* The sum of q falls as m rises, and is convex. Newton's method runs on its logarithm, inside of an interval that has the
 * solution. */
static void solve(size_t classes, const double *targets, double m, double stiffness, double *y) {
  double log_stiffness = log(stiffness), low = -INFINITY, high = INFINITY;
  for (int i = 0; i < STEPS_MAX; i++) {
    struct dual_sums sums = sum_up(classes, targets, m, stiffness, y);
    if (fabs(sums.q - 1) <= PRECISE * (double)classes) return;
    if (sums.q > 1)
      low = m;
    else
      high = m;
    double next = m + log(sums.q) * sums.q / sums.slope;
    if (!(next > low && next < high)) next = isinf(low) ? high - 1 : isinf(high) ? low + 1 : low + (high - low) / 2;
    if (next == m) return;
    bool is_near = fabs(next - m) < 0.5;
    for (size_t j = 0; j < classes; j++) /* starts for refine, which needs good ones */
      y[j] = is_near ? y[j] - (next - m) / (1 + stiffness * exp(y[j]))
                     : guess(targets[j] - next, stiffness, log_stiffness);
    m = next;
  }
}

void mlr_best_dual(size_t classes, const double *scores, const double *before, double stiffness, double *work,
                   double *q_out) {
  double *y = work, *targets = work + classes, sum = 0, log_sum = mlr_log_sum(classes, scores);
  if (stiffness <= 0) {
    mlr_probabilities(classes, scores, log_sum, q_out);
    return;
  }
  for (size_t j = 0; j < classes; j++) {
    targets[j] = scores[j] + stiffness * before[j];
    y[j] = guess(targets[j] - log_sum, stiffness, log(stiffness));
  }
  solve(classes, targets, log_sum, stiffness, y);
  for (size_t j = 0; j < classes; j++) sum += q_out[j] = exp(y[j]);
  for (size_t j = 0; j < classes; j++) q_out[j] /= sum;
}
