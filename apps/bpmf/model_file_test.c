/* Models: files that are written and read back, damage that is noticed, predictions and recommendations. */
#include "apps/bpmf/model.h"

#include "apps/common/model_arrays.h"
#include "apps/bpmf/scene_test.h"
#include "base/memory.h"

static struct pawl_ratings *ratings;
static struct pawl_bpmf_model *model;

static int make_model(void **state) {
  if (make_folder(state)) return -1;
  struct pawl_bpmf_options options = short_options(3, 12);
  ratings = low_rank_ratings((struct low_rank){8, 12, 2, 0.3, 0.5, 5, 1});
  options.test_share = 0.2;
  options.keep = 4;
  model = trained(ratings, NULL, &options, NULL);
  return 0;
}

static int remove_model(void **state) {
  pawl_bpmf_model_destroy(model);
  pawl_ratings_destroy(ratings);
  return remove_folder(state);
}

static char *bytes_of(const struct pawl_bpmf_model *of, size_t *size_out) {
  char *bytes = NULL;
  FILE *file = open_memstream(&bytes, size_out);
  assert_non_null(file);
  assert_int_equal(bpmf_model_fill(file, of), PAWL_OK);
  fclose(file);
  return bytes;
}

static void test_a_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pawl_bpmf_model *again = NULL;
  char error[PAWL_BPMF_TEXT] = "";
  size_t size, other_size;
  assert_int_equal(pawl_bpmf_model_write(model, path_of("m"), error), PAWL_OK);
  assert_true(pawl_bpmf_model_is(path_of("m")));
  assert_int_equal(pawl_bpmf_model_read(path_of("m"), &again, error), PAWL_OK);
  char *bytes = bytes_of(model, &size), *other = bytes_of(again, &other_size);
  assert_int_equal(size, other_size);
  assert_memory_equal(bytes, other, size);
  for (uint32_t user = 0; user < model->about.users; user++)
    for (uint32_t item = 0; item < model->about.items; item++) {
      struct pawl_bpmf_prediction a, b;
      pawl_bpmf_predict(model, user, item, &a);
      pawl_bpmf_predict(again, user, item, &b);
      assert_memory_equal(&a, &b, sizeof a);
    }
  free(bytes);
  free(other);
  pawl_bpmf_model_destroy(again);
}

static void test_damage_is_noticed_wherever_it_is(void **state) {
  (void)state;
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_BPMF_TEXT];
  struct pawl_bpmf_model *again = NULL;
  for (size_t at = 0; at < size; at += at < 1200 ? 1 : 37) {
    bytes[at] ^= 4;
    why[0] = 0;
    assert_int_not_equal(bpmf_model_decode(bytes, size, &again, why), PAWL_OK);
    assert_true(!again && why[0]);
    bytes[at] ^= 4;
  }
  for (size_t end = 0; end < size; end += end < 1200 ? 1 : 37) {
    char *cut = malloc(end + 1);
    memcpy(cut, bytes, end);
    cut[end] = 0;
    assert_int_not_equal(bpmf_model_decode(cut, end, &again, why), PAWL_OK);
    assert_null(again);
    free(cut);
  }
  free(bytes);
}

/* The contents of a file whose header has been changed, with a correct checksum. */
static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  struct pawl_bpmf_model *again = NULL;
  size_t size, begin;
  char *bytes = bytes_of(model, &size), *changed = NULL;
  struct apps_arrays code = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  assert_int_equal(apps_arrays_open(&code, "bpmf", &header, why), PAWL_OK);
  begin = code.at;
  json_object_set_new(header, key, value);
  struct apps_array array = {bytes + begin, size - begin - 8, 1};
  FILE *file = open_memstream(&changed, &size);
  assert_int_equal(apps_arrays_write(file, header, &array, 1), PAWL_OK);
  fclose(file);
  pawl_status status = bpmf_model_decode(changed, size, &again, why);
  pawl_bpmf_model_destroy(again);
  free(bytes);
  free(changed);
  return status;
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"rank", "users", "items", "samples", "user_bytes", "item_bytes", "rated"};
  char why[PAWL_BPMF_TEXT];
  assert_int_equal(decode_changed("iterations", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const json_int_t values[] = {0, 1, 900, 4294967294, INT64_MAX, -1};
    for (size_t v = 0; v < 6; v++) {
      pawl_status status = decode_changed(counts[i], json_integer(values[v]), why);
      assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
    }
    assert_int_equal(decode_changed(counts[i], json_string("3"), why), PAWL_CORRUPT);
  }
  assert_int_equal(decode_changed("alpha", json_integer(0), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("highest", json_integer(-99), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("mean", json_null(), why), PAWL_CORRUPT);
  assert_int_equal(decode_changed("kind", json_string("cnn"), why), PAWL_MISMATCH);
  assert_string_equal(why, "this is a model of kind 'cnn', not 'bpmf'");
}

static void test_users_and_items_are_found_by_their_ids(void **state) {
  (void)state;
  struct pawl_ratings_info info;
  uint32_t number;
  pawl_ratings_info(ratings, &info);
  for (uint32_t i = 0; i < info.users; i++) {
    assert_int_equal(pawl_bpmf_model_find_user(model, pawl_ratings_user(ratings, i), &number), PAWL_OK);
    assert_int_equal(number, i);
  }
  for (uint32_t i = 0; i < info.items; i++) {
    assert_int_equal(pawl_bpmf_model_find_item(model, pawl_ratings_item(ratings, i), &number), PAWL_OK);
    assert_string_equal(pawl_bpmf_model_item(model, number), pawl_ratings_item(ratings, i));
  }
  assert_int_equal(pawl_bpmf_model_find_user(model, "nobody", &number), PAWL_NOT_FOUND);
  assert_int_equal(pawl_bpmf_model_find_user(model, "", &number), PAWL_NOT_FOUND);
}

/* Mean and deviation over the samples, by the textbook. */
static void test_predictions_are_mean_and_deviation_of_the_samples(void **state) {
  (void)state;
  const struct pawl_bpmf_about *about = &model->about;
  assert_int_equal(about->samples, 4);
  for (uint32_t user = 0; user < about->users; user++) {
    struct pawl_bpmf_prediction found;
    double values[4], mean = 0, variance = 0;
    for (uint32_t s = 0; s < 4; s++) {
      const float *sample = model->samples + s * bpmf_sample_size(about);
      values[s] = about->mean;
      for (uint32_t k = 0; k < about->rank; k++)
        values[s] += (double)sample[user * about->rank + k] * (double)sample[(about->users + 2) * about->rank + k];
      mean += values[s] / 4;
    }
    for (uint32_t s = 0; s < 4; s++) variance += (values[s] - mean) * (values[s] - mean) / 3;
    pawl_bpmf_predict(model, user, 2, &found);
    assert_true(fabs(found.mean - fmin(fmax(mean, about->lowest), about->highest)) < 1e-9);
    assert_true(fabs(found.deviation - sqrt(variance + 1 / about->alpha)) < 1e-9);
  }
}

static void test_recommendations_leave_out_what_the_user_has_rated(void **state) {
  (void)state;
  const struct pawl_rating *list = pawl_ratings_list(ratings);
  struct pawl_ratings_info info;
  pawl_ratings_info(ratings, &info);
  for (uint32_t user = 0; user < info.users; user++) {
    struct pawl_bpmf_choice choices[12];
    size_t count = 0, rated = 0, listed = 0;
    for (uint64_t i = 0; i < info.count; i++) rated += list[i].user == user;
    (void)pawl_bpmf_model_rated(model, user, &listed);
    assert_int_equal(listed, rated); /* training and test ratings */
    assert_int_equal(pawl_bpmf_recommend(model, user, 12, choices, &count), PAWL_OK);
    assert_int_equal(count, info.items - rated);
    for (size_t c = 0; c < count; c++) {
      if (c) assert_true(choices[c].prediction.mean <= choices[c - 1].prediction.mean);
      for (uint64_t i = 0; i < info.count; i++) assert_false(list[i].user == user && list[i].item == choices[c].item);
    }
    struct pawl_bpmf_choice best;
    assert_int_equal(pawl_bpmf_recommend(model, user, 1, &best, &count), PAWL_OK);
    if (count) assert_int_equal(best.item, choices[0].item);
  }
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  size_t size;
  char *bytes = bytes_of(model, &size), why[PAWL_BPMF_TEXT];
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (pawl_status status = PAWL_NO_MEMORY; status; n++) {
    struct pawl_bpmf_model *again = NULL;
    pwi_memory_fail_after(n);
    status = bpmf_model_decode(bytes, size, &again, why);
    assert_true(pwi_memory_fail_cancel() || status == PAWL_OK);
    pawl_bpmf_model_destroy(again);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 8);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_file_is_read_as_it_was_written),
      cmocka_unit_test(test_damage_is_noticed_wherever_it_is),
      cmocka_unit_test(test_headers_that_contradict_the_file_are_refused),
      cmocka_unit_test(test_users_and_items_are_found_by_their_ids),
      cmocka_unit_test(test_predictions_are_mean_and_deviation_of_the_samples),
      cmocka_unit_test(test_recommendations_leave_out_what_the_user_has_rated),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_model, remove_model);
}
