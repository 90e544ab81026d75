/* The Hessian of rows, by either way, after any changes of curvatures: against three plain loops. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/linear/hessian.h"
#include "apps/linear/inside.h"

/* A share with made-up values: x[row * features + feature], of which zeros are left out. Every third key is
 * no feature of the share. */
struct scene {
  struct linear_share share;
  struct linear_rows rows;
  struct linear_hessian hessian;
  double *x, *curvatures;
  uint64_t size; /* keys and the bias */
  uint32_t *feature_at;
  uint64_t random;
  bool has_bias;
};

static double draw(struct scene *scene) { return (double)(linear_draw(&scene->random) >> 11) * 0x1p-53; }

static void fill(struct scene *scene, size_t rows, size_t features, double density) {
  struct linear_share *share = &scene->share;
  uint64_t at = 0;
  share->rows = rows;
  share->features = features;
  share->keys = calloc(features + 1, sizeof *share->keys);
  share->ids = calloc(features + 1, sizeof *share->ids);
  share->starts = calloc(features + 1, sizeof *share->starts);
  share->row_of = calloc(rows * features + 1, sizeof *share->row_of);
  share->values = calloc(rows * features + 1, sizeof *share->values);
  for (size_t j = 0; j < features; j++) {
    double scale = pow(10, 4 * draw(scene) - 2);
    share->keys[j] = j + j / 2;
    share->ids[j] = j * 7 % features; /* another order, if 7 does not divide the count */
    for (size_t i = 0; i < rows; i++) {
      float value = draw(scene) < density ? (float)(scale * (draw(scene) - 0.5)) : 0;
      scene->x[i * features + j] = (double)value;
      if (value == 0) continue;
      share->row_of[at] = (uint32_t)i;
      share->values[at++] = value;
    }
    share->starts[j + 1] = at;
  }
}

static void begin(struct scene *scene, uint64_t seed, size_t rows, size_t features, double density, bool has_bias,
                  enum linear_way way) {
  memset(scene, 0, sizeof *scene);
  scene->random = seed;
  scene->has_bias = has_bias;
  scene->x = calloc(rows * features + 1, sizeof *scene->x);
  scene->curvatures = calloc(rows + 1, sizeof *scene->curvatures);
  fill(scene, rows, features, density);
  scene->size = features + features / 2 + 3;
  scene->feature_at = malloc(scene->size * sizeof *scene->feature_at);
  for (uint64_t key = 0; key < scene->size; key++) scene->feature_at[key] = UINT32_MAX;
  for (size_t j = 0; j < features; j++) scene->feature_at[scene->share.keys[j]] = (uint32_t)j;
  assert_true(linear_rows_init(&scene->rows, &scene->share));
  assert_int_equal(linear_hessian_init(&scene->hessian, &scene->share, &scene->rows, has_bias, way), PAWL_OK);
}

static void end(struct scene *scene) {
  linear_hessian_fini(&scene->hessian);
  linear_rows_fini(&scene->rows);
  linear_share_fini(&scene->share);
  free(scene->x);
  free(scene->curvatures);
  free(scene->feature_at);
}

static double value(const struct scene *scene, size_t row, uint64_t key) {
  if (key + 1 == scene->size) return scene->has_bias;
  uint32_t feature = scene->feature_at[key];
  return feature == UINT32_MAX ? 0 : scene->x[row * scene->share.features + feature];
}

/* The sum of |h x x'| over rows bounds how large rounding may be. */
static void check(const struct scene *scene, const double *curvatures) {
  uint64_t count = scene->size * (scene->size + 1) / 2, at = 0;
  double *read = malloc(count * sizeof *read);
  for (uint64_t first = 0; first < count; first += 37) /* by parts, as it is pushed */
    linear_hessian_read(&scene->hessian, scene->feature_at, scene->size, first, first + 37 < count ? first + 37 : count,
                        read + first);
  for (uint64_t a = 0; a < scene->size; a++)
    for (uint64_t b = a; b < scene->size; b++, at++) {
      double sum = 0, all = 0;
      for (size_t i = 0; i < scene->share.rows; i++) {
        double product = value(scene, i, a) * value(scene, i, b);
        sum += curvatures[i] * product;
        all += 2 * fabs(product); /* the highest curvature that was drawn */
      }
      if (!(fabs(read[at] - sum) <= 1e-13 * all))
        fail_msg("keys %llu and %llu: %.17g, not %.17g", (unsigned long long)a, (unsigned long long)b, read[at], sum);
    }
  free(read);
}

/* As training does: some rows leave, some come, most change a little. */
static void change(struct scene *scene, double part) {
  for (size_t i = 0; i < scene->share.rows; i++) {
    double *h = &scene->curvatures[i], by = draw(scene);
    if (draw(scene) < part)
      *h = by < 0.2 ? 0 : 2 * by;
    else
      *h *= 1 + 0.04 * (by - 0.5);
  }
}

static void test_each_way_gives_what_plain_loops_do(void **state) {
  (void)state;
  static const size_t sizes[][2] = {{1, 1},   {3, 2},   {5, 7},    {255, 8},  {256, 9}, {257, 15},
                                    {70, 16}, {64, 17}, {300, 70}, {513, 23}, {40, 0},  {0, 5}};
  for (uint64_t seed = 1; seed <= 6 * sizeof sizes / sizeof *sizes; seed++) {
    const size_t *size = sizes[seed % (sizeof sizes / sizeof *sizes)];
    struct scene scene;
    begin(&scene, seed, size[0], size[1], seed % 3 ? 0.2 : 1, seed % 4 > 1,
          seed % 2 ? LINEAR_BY_TILES : LINEAR_BY_ENTRIES);
    for (int round = 0; round < 5; round++) {
      change(&scene, round ? 0.15 : 1);
      assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0), PAWL_OK);
      check(&scene, scene.curvatures);
    }
    end(&scene);
  }
}

static void test_rows_that_changed_little_stay_and_the_others_are_as_they_should(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct scene scene;
    begin(&scene, seed, 200, 20, 0.5, true, seed % 2 ? LINEAR_BY_TILES : LINEAR_BY_ENTRIES);
    for (int round = 0; round < 20; round++) {
      uint64_t added = scene.hessian.added;
      change(&scene, round ? 0.1 : 1);
      assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0.3),
                       PAWL_OK);
      if (round) assert_true(scene.hessian.added - added < 100);
      for (size_t i = 0; i < 200; i++) {
        double kept = scene.hessian.curvatures[i], is = scene.curvatures[i];
        assert_true(kept <= 1.3 * is && is <= 1.3 * kept);
      }
      check(&scene, scene.hessian.curvatures); /* the sums are of what is said to be kept */
    }
    assert_int_equal(scene.hessian.built, 1);
    end(&scene);
  }
}

static void test_sums_begin_anew_when_most_rows_have_changed(void **state) {
  (void)state;
  struct scene scene;
  begin(&scene, 1, 100, 10, 1, false, LINEAR_BY_TILES);
  for (size_t i = 0; i < 100; i++) scene.curvatures[i] = 0x1p60; /* of which rounding would stay */
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0.1), PAWL_OK);
  for (size_t i = 0; i < 100; i++) scene.curvatures[i] = i % 10 == 0;
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0.1), PAWL_OK);
  assert_int_equal(scene.hessian.built, 2);
  check(&scene, scene.curvatures);
  end(&scene);
}

/* Rows with large values of a feature leave, and rounding of theirs must not pass for curvature. */
static void test_what_is_left_of_a_feature_is_no_rounding_of_what_it_was(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    struct scene scene;
    size_t features = kind < 2 ? 10 : 40; /* all sums are made anew, or only those of the feature */
    begin(&scene, 1, 100, features, 1, true, kind % 2 ? LINEAR_BY_TILES : LINEAR_BY_ENTRIES);
    for (size_t i = 0; i < 100; i++) {
      scene.share.values[i] = i < 4 ? 1e6f / 3 + (float)i : 1e-6f;
      scene.x[i * features] = (double)scene.share.values[i];
    }
    linear_rows_fini(&scene.rows);
    assert_true(linear_rows_init(&scene.rows, &scene.share));
    for (size_t i = 0; i < 100; i++) scene.curvatures[i] = 1.0 / 3;
    assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0), PAWL_OK);
    for (size_t i = 0; i < 4; i++) scene.curvatures[i] = 0;
    assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0), PAWL_OK);
    assert_int_equal(scene.hessian.built, kind < 2 ? 2 : 1);
    for (uint64_t key = 0; key < scene.size; key++) {
      double read = 0, sum = 0, all = 0;
      for (size_t i = 4; i < 100; i++) {
        sum += value(&scene, i, 0) * value(&scene, i, key) / 3;
        all += fabs(value(&scene, i, 0) * value(&scene, i, key)) / 3;
      }
      linear_hessian_read(&scene.hessian, scene.feature_at, scene.size, key, key + 1, &read);
      if (!(fabs(read - sum) <= 1e-13 * all)) fail_msg("key %d: %.17g, not %.17g", (int)key, read, sum);
    }
    end(&scene);
  }
}

static void test_a_feature_without_curved_rows_has_none(void **state) {
  (void)state;
  struct scene scene;
  begin(&scene, 3, 400, 30, 0.02, false, LINEAR_BY_TILES);
  for (size_t i = 0; i < 400; i++) scene.curvatures[i] = 0.1 * (double)(i % 7 + 1);
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0), PAWL_OK);
  for (size_t i = 0; i < 400; i++)
    if (scene.x[i * 30 + 5] != 0) scene.curvatures[i] = 0;
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0), PAWL_OK);
  assert_int_equal(scene.hessian.built, 1);
  uint64_t key = scene.share.keys[5], at = key * scene.size - key * (key + 1) / 2;
  double row[64];
  linear_hessian_read(&scene.hessian, scene.feature_at, scene.size, at + key, at + scene.size, row);
  for (uint64_t k = 0; k < scene.size - key; k++) assert_true(row[k] == 0);
  end(&scene);
}

/* What is no number must be seen by the scheduler, which says so. */
static void test_a_curvature_that_is_no_number_is_not_left_out(void **state) {
  (void)state;
  struct scene scene;
  double corner = 0;
  begin(&scene, 1, 10, 4, 1, true, LINEAR_BY_TILES);
  for (size_t i = 0; i < 10; i++) scene.curvatures[i] = 1;
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0.1), PAWL_OK);
  scene.curvatures[3] = NAN;
  assert_int_equal(linear_hessian_update(&scene.hessian, &scene.share, &scene.rows, scene.curvatures, 0.1), PAWL_OK);
  uint64_t last = scene.size * (scene.size + 1) / 2 - 1;
  linear_hessian_read(&scene.hessian, scene.feature_at, scene.size, last, last + 1, &corner);
  assert_true(isnan(corner));
  end(&scene);
}

static void test_dense_rows_go_by_tiles_and_sparse_ones_by_entries(void **state) {
  (void)state;
  struct scene scene;
  begin(&scene, 1, 50, 200, 1, true, LINEAR_BY_COST);
  assert_true(scene.hessian.is_tiled);
  end(&scene);
  begin(&scene, 1, 50, 200, 0.03, true, LINEAR_BY_COST);
  assert_false(scene.hessian.is_tiled);
  end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_way_gives_what_plain_loops_do),
      cmocka_unit_test(test_rows_that_changed_little_stay_and_the_others_are_as_they_should),
      cmocka_unit_test(test_sums_begin_anew_when_most_rows_have_changed),
      cmocka_unit_test(test_what_is_left_of_a_feature_is_no_rounding_of_what_it_was),
      cmocka_unit_test(test_a_feature_without_curved_rows_has_none),
      cmocka_unit_test(test_a_curvature_that_is_no_number_is_not_left_out),
      cmocka_unit_test(test_dense_rows_go_by_tiles_and_sparse_ones_by_entries),
  };
  return cmocka_run_group_tests_name("apps.linear.hessian", tests, NULL, NULL);
}
