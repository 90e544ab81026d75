/* The sampler samples the right distribution. Three kinds of evidence: moments of the hyper-parameters; the posterior
 * of a small problem, integrated numerically; and the joint distribution, which the whole sampler must preserve.
 *
 * Seeds are fixed, so that a test that passes passes always. */
#include "apps/bpmf/sampler.h"

#include "apps/bpmf/reference_test.h"

/* --- hyper-parameters ------------------------------------------------------------------------------------- */

#define WISHART_RANK 3
#define WISHART_DRAWS 200000

/* Lambda ~ Wishart(W, nu) has the mean nu W and the variances nu (w_ij^2 + w_ii w_jj); mu - center has the mean 0. */
static void test_wishart_draws_have_the_moments_of_the_wishart_distribution(void **state) {
  (void)state;
  enum { N = WISHART_RANK };
  const double m[N * N] = {2, 0.5, -0.3, 0.5, 1, 0.2, -0.3, 0.2, 0.7}, freedom = 7, beta = 5;
  double factor[N * N], w[N * N], mean[N * N] = {0}, squares[N * N] = {0}, scaled[N] = {0};
  struct bpmf_hyper hyper;
  struct apps_random random = bpmf_random_of(5, BPMF_FOR_HYPER, 0, 0, 0);
  bpmf_random_prepare();
  memcpy(factor, m, sizeof factor);
  reference_cholesky(factor, N);
  reference_inverse(factor, N, w);
  assert_true(bpmf_hyper_init(&hyper, N));
  for (int i = 0; i < N; i++) {
    hyper.center[i] = i;
    for (int j = 0; j < N; j++) hyper.root[i * N + j] = factor[j * N + i]; /* R = L' */
  }
  for (int n = 0; n < WISHART_DRAWS; n++) {
    bpmf_wishart_draw(&hyper, freedom, beta, &random);
    for (int i = 0; i < N; i++) {
      double pulled = 0, scale = 0;
      for (int j = 0; j < N; j++) {
        double lambda = hyper.prior.precision[i * (int)hyper.width + j];
        mean[i * N + j] += lambda / WISHART_DRAWS;
        squares[i * N + j] += lambda * lambda / WISHART_DRAWS;
        pulled += lambda * hyper.mean[j];
      }
      assert_true(fabs(pulled - hyper.prior.pull[i]) < 1e-9 * (1 + fabs(pulled)));
      for (int j = 0; j < N; j++) /* (mu - center)' Lambda (mu - center) beta is chi-squared with N degrees */
        for (int k = 0; k < N && i == 0; k++)
          scale += hyper.prior.precision[j * (int)hyper.width + k] * (hyper.mean[j] - j) * (hyper.mean[k] - k) * beta;
      if (i == 0) scaled[0] += scale / WISHART_DRAWS, scaled[1] += scale * scale / WISHART_DRAWS;
    }
  }
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double wanted = freedom * w[i * N + j];
      double variance = freedom * (w[i * N + j] * w[i * N + j] + w[i * N + i] * w[j * N + j]);
      assert_true(fabs(mean[i * N + j] - wanted) < 4 * sqrt(variance / WISHART_DRAWS));
      assert_true(fabs(squares[i * N + j] - wanted * wanted - variance) < 0.05 * variance);
    }
  assert_true(fabs(scaled[0] - N) < 4 * sqrt(2.0 * N / WISHART_DRAWS));
  assert_true(fabs(scaled[1] - N * (N + 2.0)) < 0.3);
  bpmf_hyper_fini(&hyper);
}

/* The sums of blocks lead to the same hyper-parameters as the reference's formula, whatever the blocks are. */
static void test_sums_of_blocks_are_the_sums_of_all_rows(void **state) {
  (void)state;
  enum { ROWS = 200, RANK = 10 };
  size_t width = bpmf_width(RANK), size = bpmf_sums_size(width);
  float *rows = calloc(ROWS * width, sizeof *rows);
  double *sums = calloc(4 * size, sizeof *sums), *all = calloc(size, sizeof *all);
  double *panel = calloc(BPMF_TILE * width, sizeof *panel);
  struct apps_random random = bpmf_random_of(6, BPMF_FOR_ROWS, 0, 0, 0);
  bpmf_random_prepare();
  for (size_t i = 0; i < ROWS; i++)
    for (size_t k = 0; k < RANK; k++) rows[i * width + k] = (float)bpmf_normal(&random);
  for (size_t b = 0; b < 4; b++)
    bpmf_sums_of(bpmf_kernel_best(width), rows + b * 50 * width, 50, width, panel, sums + b * size);
  for (size_t k = 0; k < RANK; k++)
    for (size_t l = k; l < RANK; l++) {
      double wanted = 0, found = 0;
      for (size_t i = 0; i < ROWS; i++) wanted += (double)rows[i * width + k] * (double)rows[i * width + l];
      for (size_t b = 0; b < 4; b++) found += sums[b * size + k * width + l];
      assert_true(fabs(found - wanted) < 1e-9);
    }
  bpmf_sums_of(bpmf_kernel_best(width), rows, ROWS, width, panel, all);
  struct bpmf_hyper one, four;
  assert_true(bpmf_hyper_init(&one, RANK) && bpmf_hyper_init(&four, RANK));
  assert_true(bpmf_hyper_draw(&one, all, 1, ROWS, random) && bpmf_hyper_draw(&four, sums, 4, ROWS, random));
  for (size_t k = 0; k < RANK; k++) assert_true(fabs(one.mean[k] - four.mean[k]) < 1e-9);
  bpmf_hyper_fini(&one);
  bpmf_hyper_fini(&four);
  free(rows);
  free(panel);
  free(sums);
  free(all);
}

/* --- a small posterior ------------------------------------------------------------------------------------ */

/* One user, two items, rank 1, fixed hyper-parameters. */
#define ALPHA 2.0
#define LAMBDA_U 1.5
#define LAMBDA_V 0.8
static const double mu_u = 0.7, mu_v = -0.4, given[2] = {1.2, -0.9};

struct moments {
  double u, products[2], squares[2], both; /* E u, E u v_j, E (u v_j)^2, E u v_0 u v_1 */
};

/* Given u, v_j is normal with precision p = lambda + alpha u^2 and mean (lambda mu + alpha r u) / p, so only u is
 * integrated, by the trapezoid rule. Its marginal density is prior(u) times the evidence of each rating. */
static struct moments integrate(void) {
  struct moments is = {0};
  double all = 0;
  for (double u = -12; u <= 12; u += 1e-3) {
    double density = exp(-0.5 * LAMBDA_U * (u - mu_u) * (u - mu_u)), mean[2], spread[2];
    for (int j = 0; j < 2; j++) {
      double p = LAMBDA_V + ALPHA * u * u, off = given[j] - mu_v * u, variance = 1 / ALPHA + u * u / LAMBDA_V;
      mean[j] = (LAMBDA_V * mu_v + ALPHA * given[j] * u) / p;
      spread[j] = 1 / p;
      density *= exp(-0.5 * off * off / variance) / sqrt(variance);
    }
    all += density;
    is.u += density * u;
    is.both += density * u * u * mean[0] * mean[1];
    for (int j = 0; j < 2; j++) {
      is.products[j] += density * u * mean[j];
      is.squares[j] += density * u * u * (mean[j] * mean[j] + spread[j]);
    }
  }
  is.u /= all;
  is.both /= all;
  for (int j = 0; j < 2; j++) is.products[j] /= all, is.squares[j] /= all;
  return is;
}

static struct moments sample(uint64_t draws) {
  const uint32_t user = 0, items[2] = {0, 1};
  const float values[2] = {(float)given[0], (float)given[1]};
  double lambda[2][64] = {{0}}, pull[2][8] = {{0}};
  float u[8] = {0}, v[16] = {0};
  struct bpmf_scratch scratch;
  struct moments is = {0};
  for (int i = 0; i < 8; i++) lambda[0][9 * i] = lambda[1][9 * i] = 1;
  lambda[0][0] = LAMBDA_U;
  lambda[1][0] = LAMBDA_V;
  pull[0][0] = LAMBDA_U * mu_u;
  pull[1][0] = LAMBDA_V * mu_v;
  struct bpmf_prior priors[2] = {{lambda[0], pull[0]}, {lambda[1], pull[1]}};
  struct bpmf_draw to_user = {bpmf_kernel_best(8), 1, 8, ALPHA, &priors[0], v};
  struct bpmf_draw to_item = {bpmf_kernel_best(8), 1, 8, ALPHA, &priors[1], u};
  bpmf_random_prepare();
  assert_true(bpmf_scratch_init(&scratch, 8));
  v[0] = v[8] = 1;
  for (uint64_t t = 0; t < draws; t++) {
    assert_true(bpmf_row_draw(&to_user, (struct bpmf_rated){items, values, 2},
                              bpmf_random_of(8, BPMF_FOR_ROWS, 0, t, 0), &scratch, u));
    for (uint32_t j = 0; j < 2; j++)
      assert_true(bpmf_row_draw(&to_item, (struct bpmf_rated){&user, &values[j], 1},
                                bpmf_random_of(8, BPMF_FOR_ROWS, 1, t, j), &scratch, v + 8 * j));
    double product[2] = {(double)u[0] * (double)v[0], (double)u[0] * (double)v[8]}, n = (double)draws;
    is.u += (double)u[0] / n;
    is.both += product[0] * product[1] / n;
    for (int j = 0; j < 2; j++) is.products[j] += product[j] / n, is.squares[j] += product[j] * product[j] / n;
  }
  bpmf_scratch_fini(&scratch);
  return is;
}

static void assert_close(const char *what, double found, double wanted, double bound) {
  if (!(fabs(found - wanted) <= bound)) fail_msg("%s: %.5f is not within %.5f of %.5f", what, found, bound, wanted);
}

static void test_samples_have_the_moments_of_an_integrated_posterior(void **state) {
  (void)state;
  struct moments wanted = integrate(), found = sample(1000000);
  assert_close("u", found.u, wanted.u, 0.02);
  assert_close("u v0", found.products[0], wanted.products[0], 0.005);
  assert_close("u v1", found.products[1], wanted.products[1], 0.005);
  assert_close("(u v0)^2", found.squares[0], wanted.squares[0], 0.01);
  assert_close("(u v1)^2", found.squares[1], wanted.squares[1], 0.01);
  assert_close("u v0 u v1", found.both, wanted.both, 0.01);
}

/* --- the whole sampler -------------------------------------------------------------------------------------- */

/* Hyper-parameters, rows and ratings are drawn from the model itself. Iterations of the sampler must leave their joint
 * distribution as it is (Geweke, "Getting it right", 2004). Each replicate begins anew, so that replicates are independent
 * and the mean change of a statistic has a known error. A wrong conditional shifts some of them. */
enum { USERS = 3, ITEMS = 4, STATISTICS = 9 };

struct joint {
  uint32_t rank;
  double alpha;
  struct bpmf_sampler sampler;
  struct bpmf_data data;
  uint64_t user_starts[USERS + 1], item_starts[ITEMS + 1];
  uint32_t user_others[USERS * ITEMS], item_others[USERS * ITEMS];
  float user_values[USERS * ITEMS], item_values[USERS * ITEMS];
};

static void init_joint(struct joint *is, uint32_t rank, double alpha, uint64_t seed) {
  *is = (struct joint){.rank = rank, .alpha = alpha};
  for (uint32_t i = 0; i <= USERS; i++) is->user_starts[i] = i * ITEMS;
  for (uint32_t j = 0; j <= ITEMS; j++) is->item_starts[j] = j * USERS;
  for (uint32_t i = 0; i < USERS; i++)
    for (uint32_t j = 0; j < ITEMS; j++) is->user_others[i * ITEMS + j] = j, is->item_others[j * USERS + i] = i;
  is->data.sides[BPMF_USERS] = (struct bpmf_ratings){USERS, is->user_starts, is->user_others, is->user_values};
  is->data.sides[BPMF_ITEMS] = (struct bpmf_ratings){ITEMS, is->item_starts, is->item_others, is->item_values};
  is->data.count = USERS * ITEMS;
  is->data.scale = 1;
  assert_int_equal(bpmf_sampler_init(&is->sampler, &is->data, rank, alpha, seed, 1, NULL), PAWL_OK);
}

/* Draws hyper-parameters of a side from their prior, then its rows. */
static void draw_side(struct joint *is, int side, struct apps_random *random, float *rows) {
  struct bpmf_hyper *hyper = &is->sampler.sides[side].hyper;
  for (uint32_t k = 0; k < is->rank; k++) {
    hyper->center[k] = 0;
    for (uint32_t l = 0; l < is->rank; l++) hyper->root[k * is->rank + l] = k == l;
  }
  bpmf_wishart_draw(hyper, is->rank, BPMF_BETA, random);
  for (uint32_t i = 0; i < is->data.sides[side].rows; i++) {
    double a[16], b[4], z[4];
    for (uint32_t k = 0; k < is->rank; k++) {
      z[k] = bpmf_normal(random);
      b[k] = hyper->prior.pull[k];
      for (uint32_t l = 0; l < is->rank; l++) a[k * is->rank + l] = hyper->prior.precision[k * hyper->width + l];
    }
    reference_draw(a, b, z, is->rank);
    for (uint32_t k = 0; k < is->rank; k++) rows[i * is->rank + k] = (float)b[k];
  }
}

static void draw_joint(struct joint *is, struct apps_random *random) {
  float rows[(USERS + ITEMS) * 4];
  draw_side(is, BPMF_USERS, random, rows);
  draw_side(is, BPMF_ITEMS, random, rows + USERS * is->rank);
  bpmf_sampler_set(&is->sampler, rows, is->sampler.iteration);
  for (uint32_t i = 0; i < USERS; i++)
    for (uint32_t j = 0; j < ITEMS; j++)
      is->user_values[i * ITEMS + j] = is->item_values[j * USERS + i] =
          (float)(bpmf_sampler_predict(&is->sampler, i, j) + bpmf_normal(random) / sqrt(is->alpha));
}

static void measure_joint(const struct joint *is, double statistics[STATISTICS]) {
  double error = 0;
  for (int side = 0; side < 2; side++) {
    const struct bpmf_side *of = &is->sampler.sides[side];
    statistics[4 * side] = log(of->hyper.prior.precision[0]);
    statistics[4 * side + 1] = tanh(of->hyper.mean[0]);
    statistics[4 * side + 2] = fabsf(of->rows[0]) < 1;
    statistics[4 * side + 3] = of->rows[0] * of->rows[is->sampler.width] > 0; /* two rows of one side */
  }
  for (uint32_t i = 0; i < USERS; i++)
    for (uint32_t j = 0; j < ITEMS; j++)
      error += pow((double)is->user_values[i * ITEMS + j] - bpmf_sampler_predict(&is->sampler, i, j), 2);
  statistics[8] = fmin(error * is->alpha, 100);
}

static void check_joint(uint32_t rank, double alpha) {
  static const char *const names[STATISTICS] = {
      "log of Lambda of users", "mu of users", "small users", "users of one sign",
      "log of Lambda of items", "mu of items", "small items", "items of one sign",
      "squared error"};
  enum { REPLICATES = 100000, STEPS = 2 };
  double sums[STATISTICS] = {0}, squares[STATISTICS] = {0};
  struct joint is;
  init_joint(&is, rank, alpha, 17);
  for (uint64_t t = 0; t < REPLICATES; t++) {
    struct apps_random random = bpmf_random_of(18, BPMF_FOR_ROWS, 0, rank, t);
    double before[STATISTICS], after[STATISTICS];
    draw_joint(&is, &random);
    measure_joint(&is, before);
    for (int i = 0; i < STEPS; i++) assert_int_equal(bpmf_sampler_step(&is.sampler), PAWL_OK);
    measure_joint(&is, after);
    for (int i = 0; i < STATISTICS; i++) {
      sums[i] += (after[i] - before[i]) / REPLICATES;
      squares[i] += (after[i] - before[i]) * (after[i] - before[i]) / REPLICATES;
    }
  }
  for (int i = 0; i < STATISTICS; i++) {
    assert_true(squares[i] > 0);
    assert_close(names[i], sums[i], 0, 4 * sqrt(squares[i] / REPLICATES));
  }
  bpmf_sampler_fini(&is.sampler);
}

static void test_the_sampler_preserves_the_joint_distribution(void **state) {
  (void)state;
  check_joint(1, 2);
  check_joint(2, 0.5);
  check_joint(3, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wishart_draws_have_the_moments_of_the_wishart_distribution),
      cmocka_unit_test(test_sums_of_blocks_are_the_sums_of_all_rows),
      cmocka_unit_test(test_samples_have_the_moments_of_an_integrated_posterior),
      cmocka_unit_test(test_the_sampler_preserves_the_joint_distribution),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
