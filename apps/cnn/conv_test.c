/* CONV and FULL layers: against the plain convolution, and their slopes against finite differences. */
#include "apps/cnn/reference_test.h"

#define FORWARD 2e-6
#define BACKWARD 2e-5

/* A layer by itself: its parameters are weights, then biases. */
static struct cnn_layer layer_of(struct cnn_shape in, uint32_t out, uint32_t size_y, uint32_t size_x, uint32_t stride,
                                 uint32_t pad) {
  struct cnn_layer layer = {
      .kind = CNN_CONV, .in = in, .size_y = size_y, .size_x = size_x, .stride = stride, .pad = pad};
  layer.out =
      (struct cnn_shape){out, (in.height + 2 * pad - size_y) / stride + 1, (in.width + 2 * pad - size_x) / stride + 1};
  layer.biases = cnn_layer_inputs(&layer) * out;
  return layer;
}

struct scene {
  struct cnn_layer layer;
  size_t images, parameters_count, inputs, outputs;
  double *parameters, *input, *output, *weighting; /* weighting: of the outputs, in the sum that is differentiated */
};

static struct scene scene_of(struct cnn_layer layer, size_t images) {
  struct apps_random random = apps_random_of(7, CNN_FOR_WEIGHTS, images, layer.biases);
  struct scene scene = {.layer = layer, .images = images, .parameters_count = layer.biases + layer.out.channels};
  scene.inputs = images * cnn_shape_size(layer.in);
  scene.outputs = images * cnn_shape_size(layer.out);
  scene.parameters = doubles(scene.parameters_count);
  scene.input = doubles(scene.inputs);
  scene.output = doubles(scene.outputs);
  scene.weighting = doubles(scene.outputs);
  draw_doubles(&random, scene.parameters, scene.parameters_count);
  draw_doubles(&random, scene.input, scene.inputs);
  draw_doubles(&random, scene.weighting, scene.outputs);
  return scene;
}

static void end_scene(struct scene *scene) {
  free(scene->parameters);
  free(scene->input);
  free(scene->output);
  free(scene->weighting);
}

static double sum_of(void *context) {
  struct scene *scene = context;
  double sum = 0;
  reference_layer(&scene->layer, scene->images, scene->parameters, scene->input, NULL, scene->output);
  for (size_t i = 0; i < scene->outputs; i++) sum += scene->output[i] * scene->weighting[i];
  return sum;
}

static void assert_forward(struct scene *scene) {
  const struct cnn_layer *layer = &scene->layer;
  float *parameters = floats_of(scene->parameters, scene->parameters_count);
  float *input = planes_of(layer->in, scene->images, scene->input), *output = floats(scene->outputs);
  float *columns = floats(cnn_conv_columns(layer, scene->images));
  cnn_conv_forward(layer, scene->images, parameters, input, columns, output);
  (void)sum_of(scene);
  assert_planes(layer->out, scene->images, output, scene->output, FORWARD, "output");
  free(parameters);
  free(input);
  free(output);
  free(columns);
}

/* Every `sparse`-th slope is compared. */
static void assert_backward(struct scene *scene, size_t sparse) {
  const struct cnn_layer *layer = &scene->layer;
  float *parameters = floats_of(scene->parameters, scene->parameters_count);
  float *input = planes_of(layer->in, scene->images, scene->input), *input_slope = floats(scene->inputs);
  float *slope = planes_of(layer->out, scene->images, scene->weighting), *gradient = floats(scene->parameters_count);
  float *columns = floats(cnn_conv_columns(layer, scene->images));
  /* what was there before does not matter */
  for (size_t i = 0; i < scene->parameters_count; i++) gradient[i] = NAN;
  for (size_t i = 0; i < scene->inputs; i++) input_slope[i] = NAN;
  cnn_conv_backward(layer, scene->images, parameters, input, slope, columns, gradient, input_slope, NULL);
  for (size_t i = 0; i < scene->parameters_count; i += sparse)
    assert_near((double)gradient[i], reference_slope(sum_of, scene, &scene->parameters[i]), BACKWARD, "gradient", i);
  for (size_t i = 0; i < scene->inputs; i += sparse)
    assert_near((double)input_slope[place_of_value(layer->in, scene->images, i)],
                reference_slope(sum_of, scene, &scene->input[i]), BACKWARD, "input slope", i);

  /* Without the slope of the input the gradient is the same. */
  float *again = floats(scene->parameters_count);
  cnn_conv_backward(layer, scene->images, parameters, input, slope, columns, again, NULL, NULL);
  assert_memory_equal(again, gradient, scene->parameters_count * sizeof *again);
  free(again);
  free(parameters);
  free(input);
  free(input_slope);
  free(slope);
  free(gradient);
  free(columns);
}

static const struct {
  struct cnn_shape in;
  uint32_t out, size_y, size_x, stride, pad;
  size_t images;
} cases[] = {
    {{1, 5, 5}, 2, 3, 3, 1, 0, 2},  {{2, 5, 6}, 3, 3, 3, 1, 1, 3}, {{3, 4, 4}, 2, 1, 1, 1, 0, 3},
    {{2, 7, 6}, 3, 3, 3, 2, 1, 2},  {{2, 7, 9}, 2, 2, 3, 3, 2, 2}, {{1, 3, 3}, 2, 3, 3, 1, 2, 2},
    {{2, 1, 1}, 3, 3, 3, 1, 1, 4},  {{3, 4, 5}, 4, 4, 5, 1, 0, 5}, {{6, 1, 1}, 4, 1, 1, 1, 0, 5},
    {{2, 2, 3}, 2, 1, 1, 2, 0, 2},  {{1, 1, 8}, 2, 1, 5, 1, 0, 3}, {{2, 4, 4}, 3, 5, 5, 2, 4, 1},
    {{1, 2, 2}, 1, 2, 2, 1, 0, 17},
};

static void test_forward_is_the_plain_convolution(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct scene scene =
        scene_of(layer_of(cases[i].in, cases[i].out, cases[i].size_y, cases[i].size_x, cases[i].stride, cases[i].pad),
                 cases[i].images);
    assert_forward(&scene);
    end_scene(&scene);
  }
}

static void test_slopes_are_those_of_finite_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct scene scene =
        scene_of(layer_of(cases[i].in, cases[i].out, cases[i].size_y, cases[i].size_x, cases[i].stride, cases[i].pad),
                 cases[i].images);
    assert_backward(&scene, 1);
    end_scene(&scene);
  }
}

/* Columns of more than a megabyte are made for a few images at a time. */
static void test_groups_of_images_give_the_same(void **state) {
  (void)state;
  struct scene scene = scene_of(layer_of((struct cnn_shape){4, 40, 40}, 2, 3, 3, 1, 1), 9);
  size_t all = cnn_layer_inputs(&scene.layer) * cnn_shape_plane(scene.layer.out) * scene.images;
  assert_true(cnn_conv_columns(&scene.layer, scene.images) < all);
  assert_true(all % cnn_conv_columns(&scene.layer, scene.images) != 0); /* the last group is smaller */
  assert_forward(&scene);
  assert_backward(&scene, 3001);
  end_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward_is_the_plain_convolution),
      cmocka_unit_test(test_slopes_are_those_of_finite_differences),
      cmocka_unit_test(test_groups_of_images_give_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
