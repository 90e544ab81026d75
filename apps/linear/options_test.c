/* Options: what is right passes, and what is wrong is told in a sentence. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/methods.h"
#include "apps/linear/model/model.h"

static const char *const paths[] = {"/data/a"};
static struct pawl_linear_point point;
static struct pawl_linear_options options;
static char error[PAWL_LINEAR_TEXT];

static int begin(void **state) {
  (void)state;
  pawl_linear_options_init(&options);
  options.paths = paths;
  options.path_count = 1;
  point = (struct pawl_linear_point){0, 1};
  options.points = &point;
  options.point_count = 1;
  *error = 0;
  return 0;
}

static void passes(void) {
  if (!pawl_linear_check(&options, error)) fail_msg("refused: %s", error);
}

static void is_refused(const char *words) {
  *error = 0;
  assert_false(pawl_linear_check(&options, error));
  if (!strstr(error, words)) fail_msg("'%s' is not in '%s'", words, error);
}

static void test_what_the_defaults_are_is_fine(void **state) {
  (void)state;
  passes();
  assert_int_equal(options.loss, PAWL_LINEAR_LOGISTIC);
  assert_true(options.bias);
}

#define CHECK_METHOD(NAME, descriptor)                                                                                 \
  assert_ptr_equal(linear_method_of(PAWL_LINEAR_METHOD_##NAME), &descriptor);                                          \
  assert_int_equal(descriptor.number, PAWL_LINEAR_METHOD_##NAME);                                                      \
  assert_string_equal(pawl_linear_method_name(PAWL_LINEAR_METHOD_##NAME), descriptor.name);                            \
  assert_true(descriptor.losses == LINEAR_ALL_LOSSES || descriptor.other_loss);                                        \
  assert_true(descriptor.begin &&descriptor.sweep &&descriptor.end &&descriptor.gathers == !!descriptor.gather);

static void test_every_method_of_the_table_is_whole(void **state) {
  (void)state;
  LINEAR_METHODS(CHECK_METHOD)
  assert_null(linear_method_of(PAWL_LINEAR_METHOD_AUTO));
  assert_null(linear_method_of((enum pawl_linear_method)1000));
  assert_string_equal(pawl_linear_method_name(PAWL_LINEAR_METHOD_AUTO), "");
  assert_string_equal(pawl_linear_method_name((enum pawl_linear_method)1000), "");
}

#define CHECK_LOSS(NAME, prefix, is_regression, is_curved)                                                             \
  assert_true(linear_loss_find(pawl_linear_loss_name(PAWL_LINEAR_##NAME), &found) && found == PAWL_LINEAR_##NAME);     \
  assert_true(!is_curved == !linear_loss_of(PAWL_LINEAR_##NAME)->slopes && linear_loss_of(PAWL_LINEAR_##NAME)->sum);   \
  assert_true(is_regression == !linear_loss_of(PAWL_LINEAR_##NAME)->conjugate);                                        \
  assert_true(is_regression == linear_is_regression(PAWL_LINEAR_##NAME));

static void test_every_loss_of_the_table_is_whole(void **state) {
  (void)state;
  enum pawl_linear_loss found;
  LINEAR_LOSSES(CHECK_LOSS)
  assert_null(linear_loss_of((enum pawl_linear_loss)0));
  assert_null(linear_loss_of((enum pawl_linear_loss)1000));
  assert_string_equal(pawl_linear_loss_name((enum pawl_linear_loss)1000), "");
}

static void test_every_loss_goes_with_its_methods(void **state) {
  (void)state;
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_SQUARED_HINGE, PAWL_LINEAR_SQUARED};
  for (size_t i = 0; i < 3; i++)
    for (int method = PAWL_LINEAR_METHOD_AUTO; method < PAWL_LINEAR_METHOD_DUAL; method++) {
      options.loss = losses[i];
      options.method = (enum pawl_linear_method)method;
      passes();
    }
  options.loss = PAWL_LINEAR_HINGE;
  options.method = PAWL_LINEAR_METHOD_AUTO;
  passes();
  options.method = PAWL_LINEAR_METHOD_DUAL;
  passes();
  options.method = PAWL_LINEAR_METHOD_SGD;
  passes();
}

static void test_features_are_scaled_by_methods_that_keep_the_data(void **state) {
  (void)state;
  options.scale = PAWL_LINEAR_SCALE_MAX;
  for (int method = PAWL_LINEAR_METHOD_AUTO; method < PAWL_LINEAR_METHOD_DUAL; method++) {
    options.method = (enum pawl_linear_method)method;
    bool streams =
        method == PAWL_LINEAR_METHOD_SGD || method == PAWL_LINEAR_METHOD_ADAGRAD || method == PAWL_LINEAR_METHOD_FTRL;
    if (streams)
      is_refused("--scale reads all data first");
    else
      passes();
  }
}

static void test_the_hinge_loss_is_not_for_every_method(void **state) {
  (void)state;
  options.loss = PAWL_LINEAR_HINGE;
  options.method = PAWL_LINEAR_METHOD_BLOCKS;
  is_refused("no curvature");
  options.method = PAWL_LINEAR_METHOD_DUAL;
  point = (struct pawl_linear_point){1, 1};
  is_refused("no --l1");
  point = (struct pawl_linear_point){0, 0};
  is_refused("--l2 above 0");
  point = (struct pawl_linear_point){0, 1};
  struct pawl_linear_model model = {0};
  options.start = &model;
  is_refused("cannot start from a model");
  options.start = NULL;
  options.loss = PAWL_LINEAR_LOGISTIC;
  is_refused("needs the hinge loss");
}

static void test_penalties_are_numbers_that_are_not_below_zero(void **state) {
  (void)state;
  static const double wrong[] = {-1, NAN, INFINITY, -INFINITY};
  for (size_t i = 0; i < 4; i++) {
    point = (struct pawl_linear_point){wrong[i], 0};
    is_refused("--l1 and --l2");
    point = (struct pawl_linear_point){0, wrong[i]};
    is_refused("--l1 and --l2");
  }
  point = (struct pawl_linear_point){0, 0};
  passes();
  const struct pawl_linear_point path[] = {{1, 0}, {0.5, -1}};
  options.points = path;
  options.point_count = 2;
  is_refused("--l1 and --l2");
  options.point_count = 0;
  is_refused("no penalty");
}

static void test_ftrl_begins_with_nothing_but_zeros(void **state) {
  (void)state;
  struct pawl_linear_model model = {0};
  options.start = &model;
  options.method = PAWL_LINEAR_METHOD_ADAGRAD;
  passes();
  options.method = PAWL_LINEAR_METHOD_FTRL;
  is_refused("ftrl cannot start from a model");
}

static void test_adagrad_takes_no_l1(void **state) {
  (void)state;
  options.method = PAWL_LINEAR_METHOD_ADAGRAD;
  passes();
  point.l1 = 1;
  is_refused("adagrad does not support --l1");
}

static void test_numbers_out_of_bounds_are_named(void **state) {
  (void)state;
  options.tau = 1001;
  is_refused("--tau");
  options.tau = 1000;
  options.blocks = (1 << 20) + 1;
  is_refused("--blocks");
  options.blocks = 1 << 20;
  passes();
  options.tolerance = -1;
  is_refused("--tolerance");
  options.tolerance = NAN;
  is_refused("--tolerance");
  options.tolerance = 0;
  options.rate = INFINITY;
  is_refused("--rate");
  options.rate = 0;
  options.class_weights[1] = -2;
  is_refused("class weights");
  options.class_weights[1] = NAN;
  is_refused("class weights");
  options.class_weights[1] = 3;
  passes();
}

static void test_options_that_need_others_say_which(void **state) {
  (void)state;
  options.patience = 3;
  is_refused("--valid");
  options.valid_paths = paths;
  options.valid_count = 1;
  passes();
  options.resume = true;
  is_refused("directory of checkpoints");
  options.checkpoints = "/tmp";
  passes();
  options.workers = 4;
  options.workers_most = 2;
  is_refused("MIN:MAX");
  options.workers_most = 0;
  passes();
  options.job = "0123456789012345678901234567890123456789012345678";
  is_refused("48 characters");
  options.job = NULL;
  options.path_count = 0;
  is_refused("no data");
}

static void test_names_that_cannot_travel_are_refused(void **state) {
  (void)state;
  const char *strange[] = {"/data/a", "/data/\xff"};
  options.paths = strange;
  options.path_count = 2;
  is_refused("UTF-8");
  options.path_count = 1;
  passes();
  char label[200];
  memset(label, 'x', sizeof label);
  label[199] = 0;
  options.reading.label = label;
  is_refused("--label");
  label[127] = 0;
  passes();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_what_the_defaults_are_is_fine, begin),
      cmocka_unit_test_setup(test_every_method_of_the_table_is_whole, begin),
      cmocka_unit_test_setup(test_every_loss_of_the_table_is_whole, begin),
      cmocka_unit_test_setup(test_every_loss_goes_with_its_methods, begin),
      cmocka_unit_test_setup(test_features_are_scaled_by_methods_that_keep_the_data, begin),
      cmocka_unit_test_setup(test_the_hinge_loss_is_not_for_every_method, begin),
      cmocka_unit_test_setup(test_penalties_are_numbers_that_are_not_below_zero, begin),
      cmocka_unit_test_setup(test_ftrl_begins_with_nothing_but_zeros, begin),
      cmocka_unit_test_setup(test_adagrad_takes_no_l1, begin),
      cmocka_unit_test_setup(test_numbers_out_of_bounds_are_named, begin),
      cmocka_unit_test_setup(test_options_that_need_others_say_which, begin),
      cmocka_unit_test_setup(test_names_that_cannot_travel_are_refused, begin),
  };
  return cmocka_run_group_tests_name("apps.linear.options", tests, NULL, NULL);
}
