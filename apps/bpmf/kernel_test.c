/* Kernels and draws of rows, compared with the plain reference. */
#include "apps/bpmf/kernel.h"

#include "apps/bpmf/reference_test.h"
#include "apps/bpmf/row.h"

#define OTHERS 300 /* rows of the other side */

struct row_case {
  uint32_t rank;
  size_t width, count;
  float *others, values[OTHERS];
  uint32_t numbers[OTHERS];
  double *lambda, *pull; /* of the rank, and padded */
  struct bpmf_prior prior;
};

static void make_case(struct row_case *is, uint32_t rank, size_t count, uint64_t seed) {
  struct apps_random random = bpmf_random_of(seed, BPMF_FOR_ROWS, 0, rank, count);
  size_t width = bpmf_width(rank);
  *is = (struct row_case){.rank = rank, .width = width, .count = count};
  is->others = calloc(OTHERS * width, sizeof(float));
  is->lambda = calloc(rank * rank, sizeof(double));
  is->pull = calloc(rank, sizeof(double));
  is->prior.precision = calloc(width * width, sizeof(double));
  is->prior.pull = calloc(width, sizeof(double));
  bpmf_random_prepare();
  for (size_t i = 0; i < OTHERS; i++) {
    for (uint32_t k = 0; k < rank; k++) is->others[i * width + k] = (float)bpmf_normal(&random);
    is->values[i] = (float)bpmf_normal(&random);
    is->numbers[i] = (uint32_t)(bpmf_unit(&random) * OTHERS);
  }
  double *unit = calloc(rank * rank, sizeof(double));
  for (uint32_t k = 0; k < rank; k++) unit[k * rank + k] = 1;
  reference_wishart(unit, rank, rank + 3, &random, is->lambda);
  free(unit);
  for (size_t i = 0; i < width; i++) is->prior.precision[i * width + i] = 1;
  for (uint32_t i = 0; i < rank; i++) {
    is->pull[i] = is->prior.pull[i] = bpmf_normal(&random);
    for (uint32_t j = 0; j < rank; j++) is->prior.precision[i * width + j] = is->lambda[i * rank + j];
  }
}

static void free_case(struct row_case *is) {
  free(is->others);
  free(is->lambda);
  free(is->pull);
  free(is->prior.precision);
  free(is->prior.pull);
}

/* The draw by the reference. */
static void draw_plainly(const struct row_case *is, double alpha, struct apps_random random, double *row) {
  size_t n = is->rank;
  double *a = malloc(n * n * sizeof *a), noise[REFERENCE_MAX];
  memcpy(a, is->lambda, n * n * sizeof *a);
  memcpy(row, is->pull, n * sizeof *row);
  for (size_t i = 0; i < is->count; i++) {
    const float *v = is->others + is->numbers[i] * is->width;
    for (size_t k = 0; k < n; k++) {
      row[k] += alpha * (double)is->values[i] * (double)v[k];
      for (size_t l = 0; l < n; l++) a[k * n + l] += alpha * (double)v[k] * (double)v[l];
    }
  }
  for (size_t k = 0; k < n; k++) noise[k] = bpmf_normal(&random);
  reference_draw(a, row, noise, n);
  free(a);
}

static void check_draw(const struct bpmf_kernel *kernel, uint32_t rank, size_t count) {
  struct row_case is;
  struct bpmf_scratch scratch;
  double wanted[REFERENCE_MAX], largest = 0;
  float row[REFERENCE_MAX];
  make_case(&is, rank, count, 11);
  assert_true(bpmf_scratch_init(&scratch, is.width));
  struct bpmf_draw draw = {kernel, rank, is.width, 2, &is.prior, is.others};
  struct apps_random random = bpmf_random_of(3, BPMF_FOR_ROWS, 1, 2, rank);
  assert_true(bpmf_row_draw(&draw, (struct bpmf_rated){is.numbers, is.values, count}, random, &scratch, row));
  draw_plainly(&is, 2, random, wanted);
  for (uint32_t k = 0; k < rank; k++) largest = fmax(largest, fabs(wanted[k]));
  for (uint32_t k = 0; k < rank; k++)
    if (fabs((double)row[k] - wanted[k]) > 1e-6 * largest)
      fail_msg("%s, rank %u, %zu ratings: %g instead of %g", kernel->name, rank, count, (double)row[k], wanted[k]);
  for (size_t k = rank; k < is.width; k++) assert_true(row[k] == 0);
  bpmf_scratch_fini(&scratch);
  free_case(&is);
}

static void test_a_row_is_drawn_as_the_reference_draws_it(void **state) {
  (void)state;
  const uint32_t ranks[] = {1, 2, 7, 8, 9, 16, 17, 24, 25, 31, 32, 33, 40, 127, 128, 129, 144};
  const size_t counts[] = {0, 1, 5, 63, 64, 65, 200, OTHERS};
  for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      size_t width = bpmf_width(ranks[r]);
      check_draw(bpmf_kernel_plain(width), ranks[r], counts[c]);
      check_draw(bpmf_kernel_best(width), ranks[r], counts[c]);
    }
}

static void test_products_of_rows_are_those_of_plain_loops(void **state) {
  (void)state;
  struct row_case is;
  for (uint32_t rank = 1; rank <= 128; rank += 9) {
    make_case(&is, rank, 0, 12);
    double wanted = 0;
    for (uint32_t k = 0; k < rank; k++) wanted += (double)is.others[k] * (double)is.others[is.width + k];
    float plain = bpmf_kernel_plain(is.width)->dot(is.others, is.others + is.width, is.width);
    float best = bpmf_kernel_best(is.width)->dot(is.others, is.others + is.width, is.width);
    assert_true(fabs((double)plain - wanted) < 1e-4 && fabs((double)best - wanted) < 1e-4);
    free_case(&is);
  }
}

static void test_a_matrix_that_is_not_positive_definite_is_noticed(void **state) {
  (void)state;
  const size_t widths[] = {8, 16, 24, 32, 40, 136};
  for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
    for (int kind = 0; kind < 3; kind++) {
      size_t width = widths[w];
      double *matrix = calloc(width * width, sizeof *matrix), inverse[136];
      for (size_t i = 0; i < width; i++) matrix[i * width + i] = 1;
      matrix[3 * width + 3] = kind == 0 ? 0 : kind == 1 ? -1 : (double)NAN;
      assert_false(bpmf_kernel_plain(width)->factor(matrix, width, inverse));
      for (size_t i = 0; i < width; i++) matrix[i * width + i] = 1;
      matrix[3 * width + 3] = kind == 0 ? 0 : kind == 1 ? -1 : (double)NAN;
      assert_false(bpmf_kernel_best(width)->factor(matrix, width, inverse));
      free(matrix);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_row_is_drawn_as_the_reference_draws_it),
      cmocka_unit_test(test_products_of_rows_are_those_of_plain_loops),
      cmocka_unit_test(test_a_matrix_that_is_not_positive_definite_is_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
