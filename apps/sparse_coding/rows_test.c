/* Rows: what is read, patches of images, and rows as vectors of a model. */
#include "apps/sparse_coding/scene_test.h"

#include <pawl/session.h>

static struct sparse_view view_of(const struct pawl_sparse_rows *rows, const uint64_t *ids, size_t features,
                                  bool center, bool unit_rows) {
  struct pawl_sparse_about about = {
      .features = features, .centered = center, .unit_rows = unit_rows, .shape = rows->info.shape};
  struct sparse_view view;
  char error[PAWL_SPARSE_TEXT] = "";
  if (sparse_view_init(&view, rows, ids, &about, error)) fail_msg("%s", error);
  return view;
}

static void test_rows_are_vectors_of_the_models_features(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = rows_of_text("dog 3:1 7:2 9:5\n# only a comment\n2.0 7:4 7:1\n7\n");
  const uint64_t ids[] = {2, 7, 9, 11};
  double vector[4];
  struct sparse_view view = view_of(rows, ids, 4, false, false);
  const double first[] = {0, 2, 5, 0}, second[] = {0, 5, 0, 0}, third[] = {0, 0, 0, 0};
  assert_int_equal(rows->info.rows, 3);
  assert_int_equal(view.unknown_values, 1);
  sparse_view_get(&view, 0, vector);
  assert_memory_equal(vector, first, sizeof first);
  sparse_view_get(&view, 1, vector);
  assert_memory_equal(vector, second, sizeof second);
  sparse_view_get(&view, 2, vector);
  assert_memory_equal(vector, third, sizeof third);
  assert_string_equal(pawl_sparse_rows_label(rows, 0), "dog");
  assert_string_equal(pawl_sparse_rows_label(rows, 1), "2");
  sparse_view_fini(&view);
  pawl_sparse_rows_destroy(rows);
}

static void test_rows_are_centered_and_then_scaled(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = rows_of_text("1 1:1 2:3\n1 1:0.1 2:0.1 3:0.1 4:0.1\n1 1:4\n");
  double vector[4];
  struct sparse_view view = view_of(rows, rows->is.ids, 4, true, true);
  sparse_view_get(&view, 0, vector); /* 0 2 -1 -1 */
  assert_true(fabs(vector[1] - 2 / sqrt(6)) < 1e-12 && fabs(vector[3] + 1 / sqrt(6)) < 1e-12);
  sparse_view_get(&view, 1, vector); /* constant, but for rounding */
  for (int i = 0; i < 4; i++) assert_true(vector[i] == 0);
  sparse_view_fini(&view);
  view = view_of(rows, rows->is.ids, 4, false, true);
  sparse_view_get(&view, 2, vector);
  assert_true(vector[0] == 1 && vector[1] == 0);
  sparse_view_fini(&view);
  pawl_sparse_rows_destroy(rows);
}

/* Images of 2 channels would be cifar only; these have one: pixel (y, x) of image i is 100 i + 10 y + x. */
static struct pawl_images *make_images(bool has_labels) {
  const char *paths[] = {path_of("images-idx3"), path_of("labels-idx1")};
  const unsigned char head[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 7},
                      labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 4, 9};
  struct pawl_images_options reading;
  struct pawl_images *images = NULL;
  FILE *file = fopen(paths[0], "wb");
  assert_non_null(file);
  fwrite(head, 1, sizeof head, file);
  for (int i = 0; i < 2; i++)
    for (int y = 0; y < 5; y++)
      for (int x = 0; x < 7; x++) fputc(100 * i + 10 * y + x, file);
  fclose(file);
  file = fopen(paths[1], "wb");
  assert_non_null(file);
  fwrite(labels, 1, sizeof labels, file);
  fclose(file);
  pawl_images_options_init(&reading);
  reading.labels_optional = true;
  assert_int_equal(pawl_images_read(paths, has_labels ? 2 : 1, &reading, &images), PAWL_OK);
  return images;
}

static struct pawl_sparse_rows *cut(const struct pawl_images *images, uint32_t patch, uint64_t count) {
  struct pawl_sparse_rows *rows = NULL;
  char error[PAWL_SPARSE_TEXT] = "";
  if (pawl_sparse_rows_of_images(images, patch, count, 3, &rows, error)) fail_msg("%s", error);
  return rows;
}

static void test_tiles_cover_images_from_left_to_right(void **state) {
  (void)state;
  struct pawl_images *images = make_images(true);
  struct pawl_sparse_rows *rows = cut(images, 2, 0);
  const uint8_t third[] = {4, 5, 14, 15}, last[] = {124, 125, 134, 135};
  assert_int_equal(rows->info.rows, 2 * 2 * 3);
  assert_int_equal(rows->info.features, 4);
  assert_memory_equal(rows->pixels + 2 * 4, third, 4);
  assert_memory_equal(rows->pixels + 11 * 4, last, 4);
  assert_string_equal(pawl_sparse_rows_label(rows, 5), "4");
  assert_string_equal(pawl_sparse_rows_label(rows, 6), "9");
  pawl_sparse_rows_destroy(rows);
  rows = cut(images, 0, 99); /* whole images */
  assert_true(rows->info.rows == 2 && rows->info.features == 35 && rows->pixels[35] == 100);
  pawl_sparse_rows_destroy(rows);
  pawl_images_destroy(images);
}

static void test_patches_are_drawn_from_everywhere(void **state) {
  (void)state;
  struct pawl_images *images = make_images(false);
  struct pawl_sparse_rows *rows = cut(images, 3, 2000), *again = cut(images, 3, 2000);
  bool seen[256] = {false};
  for (size_t i = 0; i < 2000; i++) {
    const uint8_t *patch = rows->pixels + 9 * i;
    seen[patch[0]] = true;
    for (int y = 0; y < 3; y++)
      for (int x = 0; x < 3; x++) assert_int_equal(patch[3 * y + x], patch[0] + 10 * y + x);
  }
  for (int i = 0; i < 2; i++)
    for (int y = 0; y < 3; y++)
      for (int x = 0; x < 5; x++) assert_true(seen[100 * i + 10 * y + x]);
  assert_memory_equal(rows->pixels, again->pixels, 2000 * 9);
  assert_null(pawl_sparse_rows_label(rows, 0));
  pawl_sparse_rows_destroy(rows);
  pawl_sparse_rows_destroy(again);
  pawl_images_destroy(images);
}

static void test_what_does_not_fit_is_refused(void **state) {
  (void)state;
  struct pawl_images *images = make_images(true);
  struct pawl_sparse_rows *rows = NULL, *text = rows_of_text("1 1:1\n");
  struct sparse_view view;
  struct pawl_sparse_about about = {.features = 4};
  char error[PAWL_SPARSE_TEXT] = "";
  assert_int_equal(pawl_sparse_rows_of_images(images, 6, 0, 1, &rows, error), PAWL_INVALID);
  assert_non_null(strstr(error, "a patch of 6 x 6 pixels is larger than the images of 5 x 7"));
  assert_int_equal(pawl_sparse_rows_of_images(images, 2, UINT64_MAX, 1, &rows, error), PAWL_TOO_LARGE);
  rows = cut(images, 2, 0);
  assert_int_equal(sparse_view_init(&view, rows, rows->is.ids, &about, error), PAWL_MISMATCH);
  assert_non_null(strstr(error, "trained on rows, but these are images"));
  about.shape = (struct pawl_sparse_shape){1, 3, 3, 3};
  assert_int_equal(sparse_view_init(&view, rows, rows->is.ids, &about, error), PAWL_MISMATCH);
  assert_non_null(strstr(error, "1 x 2 x 2"));
  assert_int_equal(sparse_view_init(&view, text, rows->is.ids, &about, error), PAWL_MISMATCH);
  pawl_sparse_rows_destroy(text);
  pawl_sparse_rows_destroy(rows);
  pawl_images_destroy(images);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_are_vectors_of_the_models_features),
      cmocka_unit_test(test_rows_are_centered_and_then_scaled),
      cmocka_unit_test(test_tiles_cover_images_from_left_to_right),
      cmocka_unit_test(test_patches_are_drawn_from_everywhere),
      cmocka_unit_test(test_what_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
