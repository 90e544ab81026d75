/* A bound on the distance to the optimum: see certificate.h. */
#include "apps/linear/certificate.h"

#include <math.h>
#include <string.h>

const double linear_shrinks[LINEAR_SHRINKS] = {1, 0.9999, 0.999, 0.99, 0.95, 0.8, 0.5, 0};

double linear_conjugate(enum pawl_linear_loss loss, double c, double a) {
  return c <= 0 ? 0 : linear_loss_of(loss)->conjugate(c, fabs(a));
}

void linear_certificate_init(struct linear_certificate *certificate, enum pawl_linear_loss loss, bool has_bias,
                             double l1, double l2, const struct linear_reply *sum) {
  memset(certificate, 0, sizeof *certificate);
  certificate->loss = loss;
  certificate->l1 = l1;
  certificate->l2 = l2;
  certificate->factors[0] = 1;
  certificate->factors[1] = linear_is_regression(loss) ? 0 : 1;
  if (!has_bias) return;
  double first = fabs(sum->slopes[0]), second = fabs(sum->slopes[1]);
  if (linear_is_regression(loss))
    certificate->factors[1] = second > 0 ? -sum->slopes[0] / second : 0;
  else if (first > second)
    certificate->factors[0] = second / first;
  else if (second > first)
    certificate->factors[1] = first / second;
}

void linear_certificate_add(struct linear_certificate *certificate, double weight, double earlier, const double g[2]) {
  bool is_regression = linear_is_regression(certificate->loss);
  double l1 = certificate->l1, l2 = certificate->l2;
  double fits = fabs(certificate->factors[0] * g[0] + certificate->factors[1] * g[1]);
  certificate->most = fits > certificate->most ? fits : certificate->most;
  for (size_t k = 0; k < LINEAR_SHRINKS && l2 > 0; k++) {
    double above = linear_shrinks[k] * fits - l1;
    if (above > 0) certificate->squares[k] += above * above;
  }
  double slope = is_regression ? g[0] : g[0] + g[1];
  double violation = weight != 0        ? fabs(slope + l2 * weight + (weight > 0 ? l1 : -l1))
                     : fabs(slope) > l1 ? fabs(slope) - l1
                                        : 0;
  certificate->violation += violation;
  certificate->reach += violation * fabs(weight);
  certificate->moved += violation * fabs(weight - earlier);
  certificate->violation_most = fmax(certificate->violation_most, violation);
}

/* The smooth part of D for slopes that are shrunk by factor number k. */
static double smooth(const struct linear_certificate *certificate, const struct linear_reply *sum, size_t k) {
  double s = linear_shrinks[k], all = 0;
  if (linear_is_regression(certificate->loss)) {
    double mean = certificate->factors[1]; /* mean of a, which is subtracted */
    double ay = sum->conjugates[0][0] - mean * sum->conjugates[0][2];
    double aa = sum->conjugates[0][1] + mean * sum->slopes[0];
    return s * ay - s * s / 2 * aa;
  }
  /* the two factors multiply, so interpolate on the chord again */
  for (size_t class = 0; class < 2; class ++) {
    double at = s * certificate->factors[class];
    size_t i = 1;
    while (i + 1 < LINEAR_SHRINKS && linear_shrinks[i] > at) i++;
    double high = linear_shrinks[i - 1], low = linear_shrinks[i], part = (at - low) / (high - low);
    all += part * sum->conjugates[class][i - 1] + (1 - part) * sum->conjugates[class][i];
  }
  return all;
}

/* Without l2 the slopes must be shrunk until no |g_j| is above l1. */
static double best_without_l2(const struct linear_certificate *certificate, const struct linear_reply *sum) {
  double most = certificate->most, s = most > certificate->l1 ? certificate->l1 / most : 1;
  size_t i = 1;
  while (i + 1 < LINEAR_SHRINKS && linear_shrinks[i] > s) i++;
  double high = linear_shrinks[i - 1], low = linear_shrinks[i], part = (s - low) / (high - low);
  return part * smooth(certificate, sum, i - 1) + (1 - part) * smooth(certificate, sum, i);
}

double linear_certificate_gap(const struct linear_certificate *certificate, const struct linear_reply *sum,
                              double objective) {
  double best = 0; /* D of slopes that are all zero: no loss is below 0 */
  if (objective == 0) return 0;
  if (certificate->l2 > 0)
    for (size_t k = 0; k < LINEAR_SHRINKS; k++)
      best = fmax(best, smooth(certificate, sum, k) - certificate->squares[k] / (2 * certificate->l2));
  else
    best = fmax(best, best_without_l2(certificate, sum));
  double gap = (objective - best) / fabs(objective);
  return isnan(gap) ? INFINITY : fmax(gap, 0);
}
