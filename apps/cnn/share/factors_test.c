/* Trainings whose workers send gradients to one another, of full layers as factors, against trainings in one process. */
#include <unistd.h>

#include "apps/cnn/share/inside.h"
#include "apps/cnn/share/share_test.h"

static struct pawl_cnn_costs costs_of(const struct pawl_images *images, const struct pawl_cnn_options *options,
                                      const struct pawl_cnn_sharing *sharing) {
  struct pawl_cnn_costs costs;
  char error[PAWL_CNN_TEXT] = "";
  if (pawl_cnn_costs(images, options, sharing, &costs, error)) fail_msg("%s", error);
  return costs;
}

/* --- which layers ----------------------------------------------------------------------------------------- */

/* LeNet for images of 16 x 16: full layers of 500 x 50 and 4 x 500 weights. */
static void test_layers_send_factors_where_these_are_shorter(void **state) {
  (void)state;
  struct cnn_net *net = NULL;
  must(cnn_net_create(cnn_spec_find("lenet"), (struct cnn_shape){1, SIZE, SIZE}, CLASSES, &net, NULL));
  uint64_t first = 0, last = 0;
  for (size_t i = 0; i < net->count; i++) {
    if (net->layers[i].kind == CNN_FULL && !first) first = (uint64_t)1 << i;
    if (net->layers[i].kind == CNN_FULL) last = (uint64_t)1 << i;
  }
  size_t small = 4 * 500, large = net->layers[__builtin_ctzll(first)].out.channels *
                                  cnn_layer_inputs(&net->layers[__builtin_ctzll(first)]);
  assert_true(cnn_layers_as_factors(net, 2, 2) == (first | last)); /* one image each */
  assert_true(cnn_layers_as_factors(net, 16, 2) == first);
  assert_true(cnn_layers_as_factors(net, 16, 16) == (first | last));
  assert_true(cnn_layers_as_factors(net, 4000, 2) == 0);
  assert_int_equal(cnn_rest_size(net, first | last), net->parameters - small - large);
  assert_int_equal(cnn_rest_size(net, 0), net->parameters);
  cnn_net_destroy(net);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static void check_equals(const char *net, uint32_t workers, uint64_t batch, uint32_t layers) {
  struct pawl_images *images = make_images(1, 120, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of(net);
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_FACTORS, workers);
  options.batch = batch;
  options.epochs = 1;
  options.rate = 0.001; /* small batches are noisy, and noise makes differences grow */
  struct outcome alone = train_alone(images, &options), shared = train_shared(images, images, &sharing, &options);
  double far = distance(&alone, &shared);
  if (!(far < CLOSE)) fail_msg("%s, %u workers, batches of %u: %g", net, workers, (unsigned)batch, far);
  assert_int_equal(shared.result.steps, alone.result.steps);
  assert_true(fabs(shared.result.loss - alone.result.loss) < 1e-3 * alone.result.loss);
  assert_int_equal(shared.result.layers_as_factors, layers);
  assert_int_equal(costs_of(images, &options, &sharing).layers_as_factors, layers);
  assert_int_equal(shared.result.workers, workers);
  assert_int_equal(shared.result.workers_lost, 0);
  assert_true(shared.result.is_identical);
  assert_true(workers == 1 || shared.result.update_bytes > 0);
  forget(&alone), forget(&shared);
  pawl_images_destroy(images);
}

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals("lenet", 1, 16, 1);
  check_equals("lenet", 2, 16, 1);
  check_equals("lenet", 3, 6, 2);
}

/* All gradients go as they are. */
static void test_a_large_batch_sends_no_factors(void **state) {
  (void)state;
  check_equals("lenet", 2, 120, 0);
}

static void test_a_worker_may_have_no_images(void **state) {
  (void)state;
  check_equals("lenet", 4, 3, 2);
}

/* Dropout depends on the image, not on the worker. */
static void test_nets_with_dropout_equal_one_process(void **state) {
  (void)state;
  check_equals("vgg", 2, 24, 1);
}

/* --- bytes ------------------------------------------------------------------------------------------------ */

/* Vectors with many zeros are shorter than the model says. */
static void check_bytes(uint32_t workers, uint64_t batch) {
  struct pawl_images *images = make_images(1, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_FACTORS, workers);
  options.batch = batch;
  struct pawl_cnn_costs costs = costs_of(images, &options, &sharing);
  struct outcome shared = train_shared(images, NULL, &sharing, &options);
  if (shared.status) fail_msg("%s", shared.error);
  double sent = (double)shared.result.update_bytes / (double)shared.result.steps;
  if (!(sent > 0.9 * costs.factors && sent < 1.01 * costs.factors))
    fail_msg("%u workers: %.0f bytes in a step, not %.0f", workers, sent, costs.factors);
  forget(&shared);
  pawl_images_destroy(images);
}

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(2, 16);
  check_bytes(4, 32);
}

/* --- bad input -------------------------------------------------------------------------------------------- */

static void test_a_rate_that_is_too_high_diverges(void **state) {
  (void)state;
  struct pawl_images *images = make_images(1, 64, SIZE, CLASSES);
  struct pawl_cnn_options options = options_of("lenet");
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_FACTORS, 3);
  options.rate = 1e6;
  options.epochs = 20;
  struct outcome shared = train_shared(images, NULL, &sharing, &options);
  assert_int_equal(shared.status, PAWL_DIVERGED);
  assert_null(shared.model);
  pawl_images_destroy(images);
}

static void test_options_of_other_ways_are_refused(void **state) {
  (void)state;
  char error[PAWL_CNN_TEXT];
  struct pawl_cnn_sharing sharing = sharing_of(PAWL_CNN_FACTORS, 2);
  assert_true(pawl_cnn_sharing_check(&sharing, error));
  sharing.graph = "ring";
  assert_false(pawl_cnn_sharing_check(&sharing, error));
  assert_non_null(strstr(error, "everyone sends to everyone"));
  sharing.graph = NULL;
  sharing.push = PAWL_CNN_PUSH_ASYNC;
  assert_false(pawl_cnn_sharing_check(&sharing, error));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layers_send_factors_where_these_are_shorter),
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_a_large_batch_sends_no_factors),
      cmocka_unit_test(test_a_worker_may_have_no_images),
      cmocka_unit_test(test_nets_with_dropout_equal_one_process),
      cmocka_unit_test(test_bytes_are_those_of_the_model),
      cmocka_unit_test(test_a_rate_that_is_too_high_diverges),
      cmocka_unit_test(test_options_of_other_ways_are_refused),
  };
  return cmocka_run_group_tests_name("apps.cnn.share.factors", tests, open_peers, close_cluster);
}
