/* POOL layers: against the plain maximum, and their slopes against finite differences. */
#include "apps/cnn/reference_test.h"

static struct cnn_layer layer_of(struct cnn_shape in, uint32_t size_y, uint32_t size_x, uint32_t stride) {
  return (struct cnn_layer){.kind = CNN_POOL,
                            .in = in,
                            .out = {in.channels, (in.height - size_y) / stride + 1, (in.width - size_x) / stride + 1},
                            .size_y = size_y,
                            .size_x = size_x,
                            .stride = stride};
}

static const struct {
  struct cnn_shape in;
  uint32_t size_y, size_x, stride;
  size_t images;
} cases[] = {
    {{2, 4, 4}, 2, 2, 2, 3}, {{1, 5, 5}, 2, 2, 2, 2}, {{3, 7, 6}, 3, 3, 2, 2},     {{2, 6, 7}, 3, 2, 3, 1},
    {{1, 4, 4}, 1, 1, 1, 2}, {{2, 3, 3}, 3, 3, 1, 4}, {{1, 15, 15}, 15, 15, 1, 2},
};

struct pool_scene {
  struct cnn_layer layer;
  size_t images, inputs, outputs;
  double *input, *output, *weighting;
};

static double sum_of(void *context) {
  struct pool_scene *scene = context;
  double sum = 0;
  reference_layer(&scene->layer, scene->images, NULL, scene->input, NULL, scene->output);
  for (size_t i = 0; i < scene->outputs; i++) sum += scene->output[i] * scene->weighting[i];
  return sum;
}

static void assert_case(size_t number) {
  struct pool_scene scene = {
      layer_of(cases[number].in, cases[number].size_y, cases[number].size_x, cases[number].stride),
      .images = cases[number].images};
  struct apps_random random = apps_random_of(9, CNN_FOR_WEIGHTS, number, 0);
  scene.inputs = scene.images * cnn_shape_size(scene.layer.in);
  scene.outputs = scene.images * cnn_shape_size(scene.layer.out);
  scene.input = doubles(scene.inputs);
  scene.output = doubles(scene.outputs);
  scene.weighting = doubles(scene.outputs);
  draw_doubles(&random, scene.input, scene.inputs);
  draw_doubles(&random, scene.weighting, scene.outputs);

  float *input = planes_of(scene.layer.in, scene.images, scene.input), *output = floats(scene.outputs);
  float *slope = planes_of(scene.layer.out, scene.images, scene.weighting), *input_slope = floats(scene.inputs);
  uint8_t *picks = calloc(scene.outputs, 1);
  (void)sum_of(&scene);
  cnn_pool_forward(&scene.layer, scene.images, input, output, picks);
  assert_planes(scene.layer.out, scene.images, output, scene.output, 0, "output");
  for (size_t i = 0; i < scene.inputs; i++) input_slope[i] = NAN;
  cnn_pool_backward(&scene.layer, scene.images, slope, picks, input_slope);
  for (size_t i = 0; i < scene.inputs; i++)
    assert_near((double)input_slope[place_of_value(scene.layer.in, scene.images, i)],
                reference_slope(sum_of, &scene, &scene.input[i]), 1e-6, "input slope", i);
  free(scene.input);
  free(scene.output);
  free(scene.weighting);
  free(input);
  free(output);
  free(slope);
  free(input_slope);
  free(picks);
}

static void test_maxima_and_slopes_are_those_of_the_reference(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_case(i);
}

static void test_of_equal_values_the_first_gets_the_slope(void **state) {
  (void)state;
  struct cnn_layer layer = layer_of((struct cnn_shape){1, 2, 2}, 2, 2, 2);
  const float input[] = {3, 3, 3, 3}, slope = 5, expected[] = {5, 0, 0, 0};
  float output, input_slope[4];
  uint8_t pick;
  cnn_pool_forward(&layer, 1, input, &output, &pick);
  assert_true(output == 3 && pick == 0);
  cnn_pool_backward(&layer, 1, &slope, &pick, input_slope);
  assert_memory_equal(input_slope, expected, sizeof expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_maxima_and_slopes_are_those_of_the_reference),
      cmocka_unit_test(test_of_equal_values_the_first_gets_the_slope),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
