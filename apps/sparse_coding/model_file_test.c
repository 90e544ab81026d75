/* Models: files that are written and read back, damage that is noticed, and pictures of atoms. */
#include "apps/common/model_file_test.h"
#include "apps/sparse_coding/scene_test.h"

static struct pawl_sparse_rows *rows;
static struct pawl_sparse_model *model;

static int make_model(void **state) {
  if (make_folder(state)) return -1;
  struct pawl_sparse_options options = options_of(3, 0.2);
  rows = make_mixture((struct mixture){30, 4, 4, 2, 0.1, 1, 2});
  rows->info.binary = true;
  rows->info.hash_bits = 20;
  options.unit_rows = true;
  model = trained(rows, NULL, &options, NULL);
  return 0;
}

static int remove_model(void **state) {
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
  return remove_folder(state);
}

static pawl_status decode(const char *bytes, size_t size, void **model_out, char *why) {
  struct pawl_sparse_model *decoded = NULL;
  pawl_status status = sparse_model_decode(bytes, size, &decoded, why);
  *model_out = decoded;
  return status;
}

static void destroy(void *decoded) { pawl_sparse_model_destroy(decoded); }

static const struct model_kind kind = {"sparse-coding", sparse_model_fill, decode, destroy};

static void test_a_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pawl_sparse_model *again = NULL;
  struct pawl_sparse_about about;
  struct pawl_sparse_score one, other;
  char error[PAWL_SPARSE_TEXT] = "";
  size_t size, other_size;
  assert_int_equal(pawl_sparse_model_write(model, path_of("m"), error), PAWL_OK);
  assert_true(pawl_sparse_model_is(path_of("m")));
  assert_false(pawl_sparse_model_is(path_of("nothing")));
  assert_int_equal(pawl_sparse_model_read(path_of("m"), &again, error), PAWL_OK);
  char *bytes = model_bytes(&kind, model, &size), *same = model_bytes(&kind, again, &other_size);
  assert_int_equal(size, other_size);
  assert_memory_equal(bytes, same, size);
  pawl_sparse_model_about(again, &about);
  assert_true(about.binary && about.unit_rows && !about.centered && about.hash_bits == 20 && about.atoms == 3);
  assert_int_equal(pawl_sparse_model_ids(again)[1], 3);
  assert_memory_equal(pawl_sparse_model_atoms(again), model->atoms, 12 * sizeof(double));
  assert_int_equal(pawl_sparse_encode(model, rows, 1, NULL, NULL, &one, error), PAWL_OK);
  assert_int_equal(pawl_sparse_encode(again, rows, 2, NULL, NULL, &other, error), PAWL_OK);
  assert_true(one.objective == other.objective && one.nonzeros == other.nonzeros);
  free(bytes);
  free(same);
  pawl_sparse_model_destroy(again);
}

static void test_damage_is_noticed_wherever_it_is(void **state) {
  (void)state;
  check_damage(&kind, model, 1);
}

static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  return decode_with(&kind, model, key, value, why);
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"atoms", "features"};
  char why[PAWL_SPARSE_TEXT];
  assert_int_equal(decode_changed("epochs", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < 2; i++) check_count(&kind, model, counts[i]);
  assert_int_equal(decode_changed("lambda", json_integer(0), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("centered", json_integer(1), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("channels", json_integer(3), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("patch", json_integer(2), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("seed", json_string("x"), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("kind", json_string("cnn"), why), PAWL_MISMATCH);
}

static void check_atoms(double value, const char *wanted) {
  struct pawl_sparse_model *again = NULL;
  char why[PAWL_SPARSE_TEXT] = "";
  size_t size;
  double before = model->atoms[5];
  model->atoms[5] = value;
  char *bytes = model_bytes(&kind, model, &size);
  model->atoms[5] = before;
  assert_int_equal(sparse_model_decode(bytes, size, &again, why), PAWL_CORRUPT);
  if (!strstr(why, wanted)) fail_msg("%s", why);
  free(bytes);
}

static void test_atoms_that_are_too_long_or_not_finite_are_refused(void **state) {
  (void)state;
  check_atoms(1.5, "atom 2 is longer than 1, or not finite");
  check_atoms((double)NAN, "atom 2 is longer than 1, or not finite");
  check_atoms((double)INFINITY, "atom 2 is longer than 1, or not finite");
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  check_memory(&kind, model, 4);
}

/* Two atoms of 2 x 2 pixels side by side, with black lines between them. */
static void test_a_picture_shows_the_atoms(void **state) {
  (void)state;
  struct pawl_sparse_about about = {.atoms = 2, .features = 4, .shape = {1, 2, 2, 2}};
  struct pawl_sparse_model *drawn = NULL;
  char error[PAWL_SPARSE_TEXT] = "";
  unsigned char bytes[100];
  const double atoms[] = {0.5, -0.5, 0, 0.25, 0, 0, 0, 0};
  const unsigned char wanted[] = {0, 0,   0,   0, 0,   0,   0, 0, 255, 0, 0, 128, 128, 0,
                                  0, 128, 191, 0, 128, 128, 0, 0, 0,   0, 0, 0,   0,   0};
  assert_int_equal(sparse_model_create(&about, &drawn), PAWL_OK);
  memcpy(drawn->atoms, atoms, sizeof atoms);
  assert_int_equal(pawl_sparse_model_picture(drawn, path_of("pgm"), error), PAWL_OK);
  FILE *file = fopen(path_of("pgm"), "rb");
  assert_non_null(file);
  assert_int_equal(fread(bytes, 1, sizeof bytes, file), 11 + sizeof wanted);
  fclose(file);
  assert_memory_equal(bytes, "P5\n7 4\n255\n", 11);
  assert_memory_equal(bytes + 11, wanted, sizeof wanted);
  drawn->about.shape.channels = 2;
  assert_int_equal(pawl_sparse_model_picture(drawn, path_of("no"), error), PAWL_UNSUPPORTED);
  assert_int_equal(pawl_sparse_model_picture(model, path_of("no"), error), PAWL_UNSUPPORTED);
  pawl_sparse_model_destroy(drawn);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_is_read_as_it_was_written),
      cmocka_unit_test(test_damage_is_noticed_wherever_it_is),
      cmocka_unit_test(test_headers_that_contradict_the_file_are_refused),
      cmocka_unit_test(test_atoms_that_are_too_long_or_not_finite_are_refused),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
      cmocka_unit_test(test_a_picture_shows_the_atoms),
  };
  return cmocka_run_group_tests(tests, make_model, remove_model);
}
