/* Steps of gradient descent, and products of matrices. */
#include <pthread.h>

#include "apps/cnn/blas.h"
#include "apps/cnn/reference_test.h"
#include "apps/cnn/sgd.h"

/* --- steps ----------------------------------------------------------------------------------------------- */

static void test_a_step_follows_the_formula(void **state) {
  (void)state;
  struct pawl_cnn_tensor tensors[] = {{.offset = 0, .count = 2, .dimensions = 2, .shape = {1, 2}},
                                      {.offset = 2, .count = 1, .dimensions = 1, .shape = {1}}};
  struct cnn_net net = {.tensors = tensors, .tensor_count = 2, .parameters = 3};
  struct cnn_sgd sgd = {.rate = 0.5, .momentum = 0.25, .decay = 0.125};
  float parameters[] = {1, -2, 4}, velocity[] = {0, 0, 0};
  const float gradient[] = {2, 0, 1};
  cnn_sgd_step(&net, &sgd, gradient, velocity, parameters);
  const float velocity1[] = {2.125f, -0.25f, 1}, parameters1[] = {-0.0625f, -1.875f, 3.5f};
  assert_memory_equal(velocity, velocity1, sizeof velocity);
  assert_memory_equal(parameters, parameters1, sizeof parameters);
  cnn_sgd_step(&net, &sgd, gradient, velocity, parameters);
  assert_true(velocity[0] == 0.25f * 2.125f + (2 - 0.125f * 0.0625f));
  assert_true(velocity[2] == 1.25f && parameters[2] == 3.5f - 0.625f); /* biases do not decay */
}

static void test_the_rate_falls_along_a_cosine_or_not_at_all(void **state) {
  (void)state;
  assert_true(cnn_sgd_rate(PAWL_CNN_CONSTANT, 0.1, 999, 1000) == 0.1);
  assert_true(cnn_sgd_rate(PAWL_CNN_COSINE, 0.1, 0, 1000) == 0.1);
  assert_near(cnn_sgd_rate(PAWL_CNN_COSINE, 0.1, 500, 1000), 0.05, 1e-12, "rate", 500);
  assert_near(cnn_sgd_rate(PAWL_CNN_COSINE, 0.1, 250, 1000), 0.1 * (1 + sqrt(0.5)) / 2, 1e-12, "rate", 250);
  assert_near(cnn_sgd_rate(PAWL_CNN_COSINE, 0.1, 1000, 1000), 0, 1e-12, "rate", 1000);
  double before = 1;
  for (uint64_t step = 0; step < 1000; step++) {
    double rate = cnn_sgd_rate(PAWL_CNN_COSINE, 0.1, step, 1000);
    assert_true(rate < before && rate > 0);
    before = rate;
  }
}

/* --- products -------------------------------------------------------------------------------------------- */

#define ROWS 5
#define COLUMNS 7
#define INNER 6
#define STEP 11 /* rows of matrices are longer than they need be */

static float element(struct cnn_matrix matrix, size_t i, size_t j) {
  return matrix.is_transposed ? matrix.at[j * matrix.step + i] : matrix.at[i * matrix.step + j];
}

static void assert_product(bool a_transposed, bool b_transposed, bool adds) {
  float a[STEP * STEP], b[STEP * STEP], c[STEP * STEP], before[STEP * STEP];
  for (size_t i = 0; i < STEP * STEP; i++) {
    a[i] = (float)(i * 7 % 13) - 6;
    b[i] = (float)(i * 5 % 11) - 5;
    c[i] = before[i] = (float)(i % 3);
  }
  struct cnn_matrix one = {a, STEP, a_transposed}, other = {b, STEP, b_transposed};
  cnn_multiply(ROWS, COLUMNS, INNER, one, other, adds, c, STEP);
  for (size_t i = 0; i < STEP; i++)
    for (size_t j = 0; j < STEP; j++) {
      bool is_inside = i < ROWS && j < COLUMNS;
      float sum = adds || !is_inside ? before[i * STEP + j] : 0;
      for (size_t k = 0; is_inside && k < INNER; k++) sum += element(one, i, k) * element(other, k, j);
      assert_true(c[i * STEP + j] == sum); /* small whole numbers: exact */
    }
}

static void test_products_are_those_of_the_definition(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) assert_product(i & 1, i & 2, i & 4);
}

/* An OpenBLAS without threads shares its buffers between calls: without the lock, sums of several threads are wrong. */
enum { SIZE = 24, THREADS = 4, TIMES = 40000 };

static void *multiply_often(void *context) {
  float *a = floats(SIZE * SIZE), *c = floats(SIZE * SIZE), value = *(float *)context;
  size_t bad = 0;
  for (size_t i = 0; i < SIZE * SIZE; i++) a[i] = value;
  for (int time = 0; time < TIMES; time++) {
    cnn_multiply(SIZE, SIZE, SIZE, (struct cnn_matrix){a, SIZE, false}, (struct cnn_matrix){a, SIZE, true}, false, c,
                 SIZE);
    for (size_t i = 0; i < SIZE * SIZE; i++) bad += c[i] != value * value * SIZE;
  }
  free(a);
  free(c);
  return bad ? context : NULL;
}

static void test_several_threads_may_multiply(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  float values[THREADS];
  bool is_fine = true;
  for (int i = 0; i < THREADS; i++) {
    values[i] = (float)(i + 1);
    assert_int_equal(pthread_create(&threads[i], NULL, multiply_often, &values[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *bad;
    assert_int_equal(pthread_join(threads[i], &bad), 0);
    is_fine &= bad == NULL;
  }
  assert_true(is_fine);
}

static void test_one_thread_of_openblas_is_always_possible(void **state) {
  (void)state;
  assert_true(cnn_blas_threads(1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_step_follows_the_formula),
      cmocka_unit_test(test_the_rate_falls_along_a_cosine_or_not_at_all),
      cmocka_unit_test(test_products_are_those_of_the_definition),
      cmocka_unit_test(test_several_threads_may_multiply),
      cmocka_unit_test(test_one_thread_of_openblas_is_always_possible),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
