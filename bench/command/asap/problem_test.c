/* The data of `pawl-bench asap`, its optimum and SGD: values known by hand, bounds, files, memory. */
#include "base/testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "asap.h"
#include "base/memory.h"

static const struct pwi_asap_shape small = {
    .examples = 600, .features = 80, .per_example = 8, .topics = 1, .noise = 0.05, .lambda = 2e-3, .seed = 3};

static struct pwi_asap_problem *make(const struct pwi_asap_shape *shape) {
  struct pwi_asap_problem *problem;
  assert_int_equal(pwi_asap_generate(shape, &problem), PAWL_OK);
  assert_int_equal(pwi_asap_solve(problem, 1e-6, 20000), PAWL_OK);
  return problem;
}

/* f(w) = lambda / 2 w^2 + max(0, 1 - w): the best w is 1 / lambda, but at most 1. */
static void test_the_optimum_of_one_example_is_known(void **state) {
  (void)state;
  size_t first[] = {0, 1};
  uint32_t ids[] = {0};
  float values[] = {1}, labels[] = {1}, best[] = {0.25f};
  struct pwi_asap_problem problem = {
      .examples = 1, .features = 1, .first = first, .ids = ids, .values = values, .labels = labels};
  problem.lambda = 0.5;
  assert_int_equal(pwi_asap_solve(&problem, 1e-12, 1000), PAWL_OK);
  assert_true(fabs(problem.optimum - 0.25) < 1e-9);
  problem.lambda = 4;
  assert_int_equal(pwi_asap_solve(&problem, 1e-12, 1000), PAWL_OK);
  assert_true(fabs(problem.optimum - 0.875) < 1e-9);
  assert_true(fabs(pwi_asap_objective(&problem, best) - 0.875) < 1e-9);
}

static void test_no_model_is_below_the_optimum_and_sgd_comes_near_it(void **state) {
  (void)state;
  struct pwi_asap_problem *problem = make(&small);
  struct pwi_asap_learner learner;
  float weights[80] = {0};
  assert_true(problem->gap >= 0 && problem->gap <= 1e-6);
  assert_true(pwi_asap_objective(problem, weights) > 1.2 * problem->optimum);
  assert_int_equal(pwi_asap_learner_init(&learner, problem, 0, 1, 1, 7), PAWL_OK);
  for (int i = 0; i < 2000; i++) {
    pwi_asap_learn(&learner, 300, weights);
    if (i % 50 == 0) assert_true(pwi_asap_objective(problem, weights) >= problem->optimum);
  }
  assert_true(pwi_asap_objective(problem, weights) < 1.005 * problem->optimum);
  pwi_asap_learner_fini(&learner);
  pwi_asap_problem_destroy(problem);
}

static void test_every_example_is_in_exactly_one_share(void **state) {
  (void)state;
  struct pwi_asap_shape odd = small;
  uint32_t seen[601] = {0}, workers = 7;
  odd.examples = 601;
  struct pwi_asap_problem *problem = make(&odd);
  for (uint32_t i = 0; i < workers; i++) {
    struct pwi_asap_learner learner;
    assert_int_equal(pwi_asap_learner_init(&learner, problem, i, workers, 1, 7), PAWL_OK);
    for (uint32_t k = 0; k < learner.count; k++) seen[learner.order[k]]++;
    pwi_asap_learner_fini(&learner);
  }
  for (uint32_t i = 0; i < odd.examples; i++) assert_int_equal(seen[i], 1);
  pwi_asap_problem_destroy(problem);
}

static void write_rows(const struct pwi_asap_problem *problem, FILE *file) {
  for (uint32_t row = 0; row < problem->examples; row++) {
    fputs(problem->labels[row] > 0 ? "1" : "0", file);
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      fprintf(file, " %u:%.9g", problem->ids[i] + 1, (double)problem->values[i]);
    fputc('\n', file);
  }
}

/* Shuffled rows have the same optimum. */
static void test_a_file_of_the_same_rows_has_the_same_optimum(void **state) {
  (void)state;
  char path[] = "/tmp/pawl-asap-XXXXXX";
  struct pwi_asap_problem *problem = make(&small), *loaded;
  int handle = mkstemp(path);
  assert_true(handle >= 0);
  FILE *file = fdopen(handle, "w");
  assert_non_null(file);
  write_rows(problem, file);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(pwi_asap_load(path, small.lambda, &loaded), PAWL_OK);
  assert_int_equal(loaded->examples, problem->examples);
  assert_int_equal(pwi_asap_solve(loaded, 1e-6, 20000), PAWL_OK);
  assert_true(fabs(loaded->optimum - problem->optimum) < 1e-5 * problem->optimum);
  pwi_asap_problem_destroy(loaded);
  unlink(path);
  assert_int_equal(pwi_asap_load(path, 0, &loaded), PAWL_NOT_FOUND);
  pwi_asap_problem_destroy(problem);
}

static void test_topics_make_shares_differ(void **state) {
  (void)state;
  struct pwi_asap_shape shape = small;
  shape.topics = 2;
  shape.topical = 1;
  struct pwi_asap_problem *problem = make(&shape);
  for (uint32_t row = 0; row < shape.examples; row++)
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      assert_int_equal(problem->ids[i] % 2, row < shape.examples / 2 ? 0 : 1);
  pwi_asap_problem_destroy(problem);
}

static void test_without_memory_there_is_no_problem(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  bool has_failed = true;
  for (uint64_t n = 0; has_failed; n++) {
    struct pwi_asap_problem *problem = NULL;
    pwi_memory_fail_after(n);
    pawl_status status = pwi_asap_generate(&small, &problem);
    if (!status) status = pwi_asap_solve(problem, 0.1, 10);
    has_failed = pwi_memory_fail_cancel();
    assert_int_equal(status, has_failed ? PAWL_NO_MEMORY : PAWL_OK);
    pwi_asap_problem_destroy(problem);
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_optimum_of_one_example_is_known),
      cmocka_unit_test(test_no_model_is_below_the_optimum_and_sgd_comes_near_it),
      cmocka_unit_test(test_every_example_is_in_exactly_one_share),
      cmocka_unit_test(test_a_file_of_the_same_rows_has_the_same_optimum),
      cmocka_unit_test(test_topics_make_shares_differ),
      cmocka_unit_test(test_without_memory_there_is_no_problem),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
