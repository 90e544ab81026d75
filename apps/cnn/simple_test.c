/* RELU, DROPOUT and the loss: against the reference, and their slopes against finite differences. */
#include "apps/cnn/reference_test.h"

#define CLASSES 4
#define IMAGES 5

/* --- ReLU ------------------------------------------------------------------------------------------------ */

static void test_relu_cuts_off_negative_values_and_their_slopes(void **state) {
  (void)state;
  float values[] = {-1, 0, 2, -0.0f, 1e-30f}, slope[] = {5, 6, 7, 8, 9};
  const float expected[] = {0, 0, 2, 0, 1e-30f}, slopes[] = {0, 0, 7, 0, 9};
  cnn_relu_forward(5, values);
  for (int i = 0; i < 5; i++) assert_true(values[i] == expected[i]);
  cnn_relu_backward(5, values, slope);
  assert_memory_equal(slope, slopes, sizeof slopes);
}

static double relu_of(void *context) { return fmax(*(double *)context, 0); }

static void test_slopes_of_relu_are_those_of_finite_differences(void **state) {
  (void)state;
  for (double value = -1.05; value < 1; value += 0.1) {
    double at = value, expected = reference_slope(relu_of, &at, &at);
    float after = (float)value, slope = 1;
    cnn_relu_forward(1, &after);
    cnn_relu_backward(1, &after, &slope);
    assert_near((double)slope, expected, 1e-9, "slope", 0);
  }
}

static void test_relu_does_not_hide_a_nan(void **state) {
  (void)state;
  float value = NAN;
  cnn_relu_forward(1, &value);
  assert_true(isnan(value));
}

/* --- dropout --------------------------------------------------------------------------------------------- */

static const struct cnn_layer dropping = {.kind = CNN_DROPOUT, .in = {7, 3, 5}, .out = {7, 3, 5}, .drop = 0.3f};

static void fill_ones(float *values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = 1;
}

static void test_dropout_keeps_the_stated_share_and_the_mean(void **state) {
  (void)state;
  enum { MANY = 200, COUNT = MANY * 7 * 3 * 5 };
  static float values[COUNT], slope[COUNT];
  static uint8_t kept[COUNT];
  struct cnn_drops drops = {.seed = 3, .step = 8};
  double sum = 0;
  size_t count = 0;
  fill_ones(values, COUNT);
  fill_ones(slope, COUNT);
  cnn_dropout_forward(&dropping, 4, MANY, &drops, values, kept);
  cnn_dropout_backward(&dropping, COUNT, kept, slope);
  for (size_t i = 0; i < COUNT; i++) {
    sum += (double)values[i];
    count += kept[i];
    assert_true(values[i] == (kept[i] ? 1 / (1 - 0.3f) : 0));
    assert_true(slope[i] == values[i]); /* the layer is linear: the slope is what it does to ones */
  }
  /* five standard deviations */
  assert_near((double)count / COUNT, 0.7, 5 * sqrt(0.3 * 0.7 / COUNT), "share", 0);
  assert_near(sum / COUNT, 1, 0.02, "mean", 0);
}

static void test_dropout_is_drawn_from_seed_step_layer_and_image(void **state) {
  (void)state;
  enum { SIZE = 7 * 3 * 5, COUNT = 4 * SIZE };
  float values[COUNT];
  uint8_t one[COUNT], other[COUNT], half[COUNT];
  struct cnn_drops drops = {.seed = 3, .step = 8, .first = 0};
  cnn_dropout_forward(&dropping, 1, 4, &drops, values, one);
  cnn_dropout_forward(&dropping, 1, 4, &drops, values, other);
  assert_memory_equal(one, other, COUNT);
  cnn_dropout_forward(&dropping, 2, 4, &drops, values, other);
  assert_memory_not_equal(one, other, COUNT);
  drops.step = 9;
  cnn_dropout_forward(&dropping, 1, 4, &drops, values, other);
  assert_memory_not_equal(one, other, COUNT);
  drops = (struct cnn_drops){.seed = 4, .step = 8};
  cnn_dropout_forward(&dropping, 1, 4, &drops, values, other);
  assert_memory_not_equal(one, other, COUNT);
  /* The last two images of the batch draw the same when they are a batch of their own. */
  drops = (struct cnn_drops){.seed = 3, .step = 8, .first = 2};
  cnn_dropout_forward(&dropping, 1, 2, &drops, values, half);
  for (size_t c = 0; c < 7; c++) assert_memory_equal(half + c * 30, one + (c * 4 + 2) * 15, 30);
}

/* --- the loss -------------------------------------------------------------------------------------------- */

struct loss_scene {
  double scores[IMAGES * CLASSES]; /* [image][class] */
  uint8_t labels[IMAGES];
};

static double loss_of(void *context) {
  struct loss_scene *scene = context;
  return reference_loss(CLASSES, IMAGES, scene->scores, scene->labels);
}

static void test_loss_and_its_slope_are_those_of_the_reference(void **state) {
  (void)state;
  struct loss_scene scene = {.labels = {0, 3, 1, 2, 3}};
  struct apps_random random = apps_random_of(5, CNN_FOR_WEIGHTS, 0, 0);
  const struct cnn_shape shape = {CLASSES, 1, 1};
  draw_doubles(&random, scene.scores, IMAGES * CLASSES);
  float *scores = planes_of(shape, IMAGES, scene.scores), slope[IMAGES * CLASSES];
  size_t wrong = 0, expected = 0;
  double loss = cnn_loss(CLASSES, IMAGES, scores, scene.labels, slope, &wrong);
  assert_near(loss / IMAGES, loss_of(&scene), 1e-7, "loss", 0);
  for (size_t i = 0; i < IMAGES * CLASSES; i++)
    assert_near((double)slope[place_of_value(shape, IMAGES, i)], reference_slope(loss_of, &scene, &scene.scores[i]),
                1e-7, "slope", i);
  for (size_t image = 0; image < IMAGES; image++) {
    size_t best = 0;
    for (size_t k = 1; k < CLASSES; k++)
      if (scene.scores[image * CLASSES + k] > scene.scores[image * CLASSES + best]) best = k;
    expected += best != scene.labels[image];
  }
  assert_true(expected > 0 && expected < IMAGES);
  assert_int_equal(wrong, expected);

  float probabilities[CLASSES];
  double sum = 0;
  cnn_probabilities(CLASSES, IMAGES, scores, 1, probabilities);
  for (size_t k = 0; k < CLASSES; k++) {
    sum += (double)probabilities[k];
    assert_near((double)probabilities[k], (double)slope[k * IMAGES + 1] * IMAGES + (k == 3), 1e-6, "probability", k);
  }
  assert_near(sum, 1, 1e-6, "sum", 0);
  free(scores);
}

static void test_large_scores_do_not_overflow(void **state) {
  (void)state;
  const float scores[] = {1e30f, -1e30f};
  const uint8_t right = 0, other = 1;
  float slope[2];
  size_t wrong;
  assert_true(cnn_loss(2, 1, scores, &right, slope, &wrong) == 0);
  assert_int_equal(wrong, 0);
  assert_true(cnn_loss(2, 1, scores, &other, slope, &wrong) > 1e30);
  assert_true(slope[0] == 1 && slope[1] == -1);
  assert_int_equal(wrong, 1);
}

static void test_scores_that_are_not_finite_give_a_loss_that_is_not(void **state) {
  (void)state;
  const uint8_t label = 1;
  const float bad[][2] = {{NAN, 0}, {0, NAN}, {INFINITY, 0}, {0, INFINITY}};
  float slope[2];
  size_t wrong;
  for (size_t i = 0; i < 4; i++) {
    double loss = cnn_loss(2, 1, bad[i], &label, slope, &wrong);
    assert_true(isnan(loss) || isinf(loss));
  }
  (void)cnn_loss(2, 1, bad[1], &label, slope, &wrong);
  assert_int_equal(wrong, 1);
}

static void test_equal_scores_are_wrong(void **state) {
  (void)state;
  const float scores[] = {1, 1};
  const uint8_t label = 0;
  size_t wrong;
  (void)cnn_loss(2, 1, scores, &label, NULL, &wrong);
  assert_int_equal(wrong, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_relu_cuts_off_negative_values_and_their_slopes),
      cmocka_unit_test(test_slopes_of_relu_are_those_of_finite_differences),
      cmocka_unit_test(test_relu_does_not_hide_a_nan),
      cmocka_unit_test(test_dropout_keeps_the_stated_share_and_the_mean),
      cmocka_unit_test(test_dropout_is_drawn_from_seed_step_layer_and_image),
      cmocka_unit_test(test_loss_and_its_slope_are_those_of_the_reference),
      cmocka_unit_test(test_large_scores_do_not_overflow),
      cmocka_unit_test(test_scores_that_are_not_finite_give_a_loss_that_is_not),
      cmocka_unit_test(test_equal_scores_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
