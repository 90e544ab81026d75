/* Made-up rows of many classes, and the pairs of a row. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "sfb.h"

static void scores_of(const struct pwi_sfb_shape *shape, const float *w, const float *x, float *scores_out) {
  memset(scores_out, 0, shape->classes * sizeof *scores_out);
  for (uint32_t i = 0; i < shape->features; i++)
    for (uint32_t j = 0; j < shape->classes; j++) scores_out[j] += x[i] * w[(size_t)i * shape->classes + j];
}

/* exp of a number that is at most 0, to 7 digits, by loops that vectorise and give the same bits everywhere: 2 to a whole
 * number, whose bits are written, times a polynomial of the rest. */
static inline float power(float x) {
  float scaled = (x < -80 ? -80 : x) * 1.44269504F, shifted = scaled + 12582912.0F;
  float rest = (scaled - (shifted - 12582912.0F)) * 0.693147181F;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  float whole, sum = 1.38888889e-3F;
  memcpy(&whole, &bits, sizeof whole);
  sum = sum * rest + 8.33333333e-3F;
  sum = sum * rest + 4.16666667e-2F;
  sum = sum * rest + 1.66666667e-1F;
  sum = sum * rest + 0.5F;
  sum = sum * rest + 1;
  return (sum * rest + 1) * whole;
}

/* The scores become probabilities, but for a common factor; returns the sum. */
static float powers(float *scores, uint32_t count, float *most_out) {
  float most = scores[0], sums[8] = {0}, sum = 0;
  for (uint32_t j = 1; j < count; j++) most = scores[j] > most ? scores[j] : most;
  for (uint32_t j = 0; j < count; j++) scores[j] = power(scores[j] - most);
  for (uint32_t j = 0; j < count; j++) sums[j % 8] += scores[j];
  for (int k = 0; k < 8; k++) sum += sums[k];
  *most_out = most;
  return sum;
}

/* By the largest of scores with noise of Gumbel's distribution, which draws from their softmax. */
static uint32_t draw_label(const float *scores, uint32_t classes, struct pwi_random *random) {
  uint32_t best = 0;
  double highest = -INFINITY;
  for (uint32_t j = 0; j < classes; j++) {
    double value = (double)scores[j] - log(-log(pwi_random_unit(random) + 1e-300));
    if (value > highest) best = j;
    if (value > highest) highest = value;
  }
  return best;
}

pawl_status pwi_sfb_generate(const struct pwi_sfb_shape *shape, struct pwi_sfb_problem *problem_out) {
  struct pwi_sfb_problem problem = {.shape = *shape};
  struct pwi_random random;
  size_t values = (size_t)shape->classes * shape->features, entries = (size_t)shape->rows * shape->features;
  double length = 1 / sqrt((double)shape->features);
  float *truth = pwi_alloc_zero(values, sizeof *truth), *scores = pwi_alloc_zero(shape->classes, sizeof *scores);
  problem.x = pwi_alloc_zero(entries, sizeof *problem.x);
  problem.labels = pwi_alloc_zero(shape->rows, sizeof *problem.labels);
  bool is_full = truth && scores && problem.x && problem.labels;
  pwi_random_init(&random, shape->seed, 1);
  for (size_t i = 0; is_full && i < values; i++) truth[i] = (float)(shape->signal * pwi_random_normal(&random));
  for (size_t i = 0; is_full && i < entries; i++) problem.x[i] = (float)(length * pwi_random_normal(&random));
  for (uint32_t row = 0; is_full && row < shape->rows; row++) {
    scores_of(shape, truth, problem.x + (size_t)row * shape->features, scores);
    problem.labels[row] = draw_label(scores, shape->classes, &random);
  }
  pwi_free(truth);
  pwi_free(scores);
  if (is_full)
    *problem_out = problem;
  else
    pwi_sfb_problem_fini(&problem);
  return is_full ? PAWL_OK : PAWL_NO_MEMORY;
}

void pwi_sfb_problem_fini(struct pwi_sfb_problem *problem) {
  pwi_free(problem->x);
  pwi_free(problem->labels);
  problem->x = NULL;
  problem->labels = NULL;
}

double pwi_sfb_error(const struct pwi_sfb_problem *problem, const float *w, uint32_t row, float *u_out) {
  const struct pwi_sfb_shape *shape = &problem->shape;
  uint32_t label = problem->labels[row];
  scores_of(shape, w, problem->x + (size_t)row * shape->features, u_out);
  float own = u_out[label], most, sum = powers(u_out, shape->classes, &most);
  for (uint32_t j = 0; j < shape->classes; j++) u_out[j] /= sum;
  u_out[label] -= 1;
  return (double)(most + logf(sum) - own);
}

double pwi_sfb_objective(const struct pwi_sfb_problem *problem, const float *w, float *u) {
  double sum = 0;
  for (uint32_t row = 0; row < problem->shape.rows; row++) sum += pwi_sfb_error(problem, w, row, u);
  return sum / problem->shape.rows;
}
