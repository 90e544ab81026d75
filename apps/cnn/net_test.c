/* Nets: shapes and tensors, and the gradient of a whole net with every kind of layer against finite differences. */
#include "apps/cnn/pass.h"
#include "apps/cnn/reference_test.h"
#include "apps/common/model_file.h"
#include "base/memory.h"

/* Every kind of layer, two poolings of different kinds, and a FULL layer behind another one. */
static const struct cnn_layer_spec all_kinds[] = {
    {.kind = CNN_CONV, .out = 3, .size = 3, .stride = 1, .pad = 1},
    {.kind = CNN_RELU},
    {.kind = CNN_POOL, .size = 2, .stride = 2},
    {.kind = CNN_DROPOUT, .drop = 0.25f},
    {.kind = CNN_CONV, .out = 4, .size = 2, .stride = 1, .pad = 0},
    {.kind = CNN_POOL, .size = 2, .stride = 1},
    {.kind = CNN_FULL, .out = 6},
    {.kind = CNN_RELU},
    {.kind = CNN_DROPOUT, .drop = 0.5f},
    {.kind = CNN_FULL},
};
static const struct cnn_spec mixed = {
    .name = "mixed", .layers = all_kinds, .count = sizeof all_kinds / sizeof *all_kinds};

static struct cnn_net *net_of(const struct cnn_spec *spec, struct cnn_shape input, uint32_t classes) {
  struct cnn_net *net = NULL;
  char error[APPS_TEXT_MAX] = "";
  if (cnn_net_create(spec, input, classes, &net, error)) fail_msg("%s", error);
  return net;
}

/* --- tables ---------------------------------------------------------------------------------------------- */

/* Every parameter belongs to exactly one tensor. */
static void assert_tensors(const struct cnn_net *net) {
  size_t next = 0;
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    size_t count = 1;
    for (uint32_t j = 0; j < tensor->dimensions; j++) count *= tensor->shape[j];
    assert_int_equal(tensor->offset, next);
    assert_int_equal(tensor->count, count);
    next += count;
  }
  assert_int_equal(next, net->parameters);
}

static void test_lenet_has_the_tensors_of_lenet(void **state) {
  (void)state;
  struct cnn_net *net = net_of(cnn_spec_find("lenet"), (struct cnn_shape){1, 28, 28}, 10);
  const char *const names[] = {"conv1.weights", "conv1.biases", "conv2.weights", "conv2.biases",
                               "full1.weights", "full1.biases", "full2.weights", "full2.biases"};
  const uint32_t conv2[] = {50, 20, 5, 5}, full1[] = {500, 800};
  assert_int_equal(net->parameters, 431080);
  assert_int_equal(net->tensor_count, 8);
  for (size_t i = 0; i < 8; i++) assert_string_equal(net->tensors[i].name, names[i]);
  assert_memory_equal(net->tensors[2].shape, conv2, sizeof conv2);
  assert_memory_equal(net->tensors[4].shape, full1, sizeof full1);
  assert_tensors(net);
  cnn_net_destroy(net);
}

static void test_vgg_fits_the_images_of_cifar(void **state) {
  (void)state;
  struct cnn_net *net = net_of(cnn_spec_find("vgg"), (struct cnn_shape){3, 32, 32}, 10);
  assert_int_equal(net->layers[net->count - 1].out.channels, 10);
  assert_int_equal(cnn_shape_size(net->layers[net->count - 1].out), 10);
  assert_int_equal(net->tensor_count, 16);
  assert_tensors(net);
  cnn_net_destroy(net);
}

static void test_every_layer_begins_where_the_one_before_it_ends(void **state) {
  (void)state;
  struct cnn_net *net = net_of(&mixed, (struct cnn_shape){2, 7, 6}, 5);
  const struct cnn_shape expected[] = {{3, 7, 6}, {3, 7, 6}, {3, 3, 3}, {3, 3, 3}, {4, 2, 2},
                                       {4, 1, 1}, {6, 1, 1}, {6, 1, 1}, {6, 1, 1}, {5, 1, 1}};
  for (size_t i = 0; i < net->count; i++) {
    assert_memory_equal(&net->layers[i].out, &expected[i], sizeof *expected);
    if (i > 0) assert_memory_equal(&net->layers[i].in, &expected[i - 1], sizeof *expected);
  }
  assert_tensors(net);
  cnn_net_destroy(net);
}

static void refuse(const struct cnn_spec *spec, struct cnn_shape input, uint32_t classes, pawl_status expected,
                   const char *what) {
  struct cnn_net *net = NULL;
  char error[APPS_TEXT_MAX] = "";
  pawl_status status = cnn_net_create(spec, input, classes, &net, error);
  if (status != expected || net || !strstr(error, what))
    fail_msg("%s: '%s'; expected %s: '%s'", pawl_status_name(status), error, pawl_status_name(expected), what);
}

static void test_images_that_do_not_fit_are_refused(void **state) {
  (void)state;
  const struct cnn_spec *lenet = cnn_spec_find("lenet");
  refuse(lenet, (struct cnn_shape){1, 15, 28}, 10, PAWL_MISMATCH,
         "too small for lenet: its layer 4 needs 2 x 2 pixels");
  refuse(lenet, (struct cnn_shape){1, 4, 4}, 10, PAWL_MISMATCH, "its layer 1 needs 5 x 5 pixels and has 4 x 4");
  refuse(lenet, (struct cnn_shape){0, 28, 28}, 10, PAWL_INVALID, "needs images");
  refuse(lenet, (struct cnn_shape){1, 28, 28}, 0, PAWL_INVALID, "classes");
  refuse(lenet, (struct cnn_shape){UINT32_MAX, UINT32_MAX, UINT32_MAX}, 10, PAWL_TOO_LARGE, "more than 2^31");
  refuse(lenet, (struct cnn_shape){1, 1 << 15, 1 << 15}, 10, PAWL_TOO_LARGE, "layer 1 of lenet has more than 2^31");
  refuse(lenet, (struct cnn_shape){1, 1 << 12, 1 << 12}, 10, PAWL_TOO_LARGE, "layer 5 of lenet has more than 2^31");
  struct cnn_net *net = net_of(lenet, (struct cnn_shape){1, 16, 16}, 2);
  cnn_net_destroy(net);
}

static void test_batches_that_do_not_fit_are_refused(void **state) {
  (void)state;
  struct cnn_net *net = net_of(cnn_spec_find("lenet"), (struct cnn_shape){1, 28, 28}, 10);
  struct cnn_pass *pass = NULL;
  assert_int_equal(cnn_pass_create(net, SIZE_MAX, true, &pass), PAWL_TOO_LARGE);
  assert_int_equal(cnn_pass_create(net, (size_t)1 << 20, true, &pass), PAWL_TOO_LARGE);
  assert_null(pass);
  cnn_net_destroy(net);
}

static void test_first_weights_are_drawn_from_the_seed(void **state) {
  (void)state;
  struct cnn_net *net = net_of(&mixed, (struct cnn_shape){2, 7, 6}, 5);
  float *one = floats(net->parameters), *other = floats(net->parameters);
  cnn_net_start(net, 1, one);
  cnn_net_start(net, 1, other);
  assert_memory_equal(one, other, net->parameters * sizeof *one);
  cnn_net_start(net, 2, other);
  assert_memory_not_equal(one, other, net->parameters * sizeof *one);
  for (size_t i = 0; i < net->tensor_count; i++) {
    const struct pawl_cnn_tensor *tensor = &net->tensors[i];
    float most = 0;
    for (size_t j = 0; j < tensor->count; j++) most = fmaxf(most, fabsf(one[tensor->offset + j]));
    float bound = tensor->dimensions == 1 ? 0 : sqrtf(6 / ((float)tensor->count / (float)tensor->shape[0]));
    assert_true(most <= bound && most >= bound / 2);
  }
  free(one);
  free(other);
  cnn_net_destroy(net);
}

/* --- the gradient ---------------------------------------------------------------------------------------- */

enum { IMAGES = 5, CLASSES = 5, LAYERS = sizeof all_kinds / sizeof *all_kinds };
static const struct cnn_shape size_of_images = {2, 7, 6};

struct net_scene {
  struct cnn_net *net;
  double *parameters, *values[LAYERS + 1];
  uint8_t *kept[LAYERS]; /* of DROPOUT; NULL: none is used */
  uint8_t labels[IMAGES];
};

static double loss_of(void *context) {
  struct net_scene *scene = context;
  for (size_t i = 0; i < LAYERS; i++)
    reference_layer(&scene->net->layers[i], IMAGES, scene->parameters, scene->values[i], scene->kept[i],
                    scene->values[i + 1]);
  return reference_loss(CLASSES, IMAGES, scene->values[LAYERS], scene->labels);
}

static void begin_scene(struct net_scene *scene, const struct cnn_drops *drops) {
  struct apps_random random = apps_random_of(11, CNN_FOR_ORDER, 0, 0);
  *scene = (struct net_scene){.net = net_of(&mixed, size_of_images, CLASSES), .labels = {4, 0, 2, 1, 2}};
  scene->parameters = doubles(scene->net->parameters);
  draw_doubles(&random, scene->parameters, scene->net->parameters);
  scene->values[0] = doubles(IMAGES * cnn_shape_size(size_of_images));
  draw_doubles(&random, scene->values[0], IMAGES * cnn_shape_size(size_of_images));
  for (size_t i = 0; i < LAYERS; i++) {
    const struct cnn_layer *layer = &scene->net->layers[i];
    size_t count = IMAGES * cnn_shape_size(layer->out);
    scene->values[i + 1] = doubles(count);
    if (!drops || layer->kind != CNN_DROPOUT) continue;
    float *unused = floats(count);
    scene->kept[i] = calloc(count, 1);
    cnn_dropout_forward(layer, i, IMAGES, drops, unused, scene->kept[i]);
    free(unused);
  }
}

static void end_scene(struct net_scene *scene) {
  for (size_t i = 0; i <= LAYERS; i++) free(scene->values[i]);
  for (size_t i = 0; i < LAYERS; i++) free(scene->kept[i]);
  free(scene->parameters);
  cnn_net_destroy(scene->net);
}

/* One pass over images [first, first + count) of the scene. Returns the mean loss; the gradient is to be freed. */
static double pass_over(struct net_scene *scene, size_t first, size_t count, const struct cnn_drops *drops,
                        float **gradient_out) {
  struct cnn_pass *pass = NULL;
  size_t wrong;
  float *parameters = floats_of(scene->parameters, scene->net->parameters);
  float *images = planes_of(size_of_images, count, scene->values[0] + first * cnn_shape_size(size_of_images));
  *gradient_out = floats(scene->net->parameters);
  assert_int_equal(cnn_pass_create(scene->net, IMAGES + 3, true, &pass), PAWL_OK); /* a batch may be smaller */
  memcpy(cnn_pass_input(pass), images, count * cnn_shape_size(size_of_images) * sizeof *images);
  (void)cnn_pass_forward(pass, parameters, count, drops);
  double loss = cnn_pass_backward(pass, parameters, count, scene->labels + first, *gradient_out, &wrong);
  cnn_pass_destroy(pass);
  free(parameters);
  free(images);
  return loss / (double)count;
}

static void assert_gradient(const struct cnn_drops *drops) {
  struct net_scene scene;
  float *gradient;
  begin_scene(&scene, drops);
  double loss = pass_over(&scene, 0, IMAGES, drops, &gradient);
  assert_near(loss, loss_of(&scene), 1e-5, "loss", 0);
  for (size_t i = 0; i < scene.net->parameters; i++)
    assert_near((double)gradient[i], reference_slope(loss_of, &scene, &scene.parameters[i]), 1e-5, "gradient", i);
  free(gradient);
  end_scene(&scene);
}

static void test_the_gradient_of_a_net_is_that_of_finite_differences(void **state) {
  (void)state;
  assert_gradient(NULL);
}

static void test_the_gradient_with_dropout_is_that_of_finite_differences(void **state) {
  (void)state;
  struct cnn_drops drops = {.seed = 5, .step = 17};
  assert_gradient(&drops);
}

/* So the batch of a step can be divided among workers. */
static void test_a_batch_in_two_parts_has_the_same_gradient(void **state) {
  (void)state;
  struct cnn_drops drops = {.seed = 5, .step = 17}, later = {.seed = 5, .step = 17, .first = 2};
  struct net_scene scene;
  float *whole, *one, *other;
  begin_scene(&scene, NULL);
  (void)pass_over(&scene, 0, IMAGES, &drops, &whole);
  (void)pass_over(&scene, 0, 2, &drops, &one);
  (void)pass_over(&scene, 2, 3, &later, &other);
  for (size_t i = 0; i < scene.net->parameters; i++)
    assert_near((double)whole[i], (2 * (double)one[i] + 3 * (double)other[i]) / 5, 1e-5, "gradient", i);
  free(whole);
  free(one);
  free(other);
  end_scene(&scene);
}

/* --- memory ---------------------------------------------------------------------------------------------- */

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (bool over = false; !over; n++) {
    struct cnn_net *net = NULL;
    struct cnn_pass *pass = NULL;
    char error[APPS_TEXT_MAX];
    pwi_memory_fail_after(n);
    pawl_status status = cnn_net_create(&mixed, size_of_images, CLASSES, &net, error);
    if (!status) status = cnn_pass_create(net, 4, true, &pass);
    over = !pwi_memory_fail_cancel();
    assert_int_equal(status, over ? PAWL_OK : PAWL_NO_MEMORY);
    assert_true(over == (pass != NULL));
    cnn_pass_destroy(pass);
    cnn_net_destroy(net);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lenet_has_the_tensors_of_lenet),
      cmocka_unit_test(test_vgg_fits_the_images_of_cifar),
      cmocka_unit_test(test_every_layer_begins_where_the_one_before_it_ends),
      cmocka_unit_test(test_images_that_do_not_fit_are_refused),
      cmocka_unit_test(test_batches_that_do_not_fit_are_refused),
      cmocka_unit_test(test_first_weights_are_drawn_from_the_seed),
      cmocka_unit_test(test_the_gradient_of_a_net_is_that_of_finite_differences),
      cmocka_unit_test(test_the_gradient_with_dropout_is_that_of_finite_differences),
      cmocka_unit_test(test_a_batch_in_two_parts_has_the_same_gradient),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
