/* Models: files that are written and read back, damage that is noticed, predictions and recommendations. */
#include "apps/bpmf/model.h"

#include "apps/common/model_file_test.h"
#include "apps/bpmf/scene_test.h"

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

static pawl_status decode(const char *bytes, size_t size, void **model_out, char *why) {
  struct pawl_bpmf_model *decoded = NULL;
  pawl_status status = bpmf_model_decode(bytes, size, &decoded, why);
  *model_out = decoded;
  return status;
}

static void destroy(void *decoded) { pawl_bpmf_model_destroy(decoded); }

static const struct model_kind kind = {"bpmf", bpmf_model_fill, decode, destroy};

static void test_a_file_is_read_as_it_was_written(void **state) {
  (void)state;
  struct pawl_bpmf_model *again = NULL;
  char error[PAWL_BPMF_TEXT] = "";
  size_t size, other_size;
  assert_int_equal(pawl_bpmf_model_write(model, path_of("m"), error), PAWL_OK);
  assert_true(pawl_bpmf_model_is(path_of("m")));
  assert_int_equal(pawl_bpmf_model_read(path_of("m"), &again, error), PAWL_OK);
  char *bytes = model_bytes(&kind, model, &size), *other = model_bytes(&kind, again, &other_size);
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
  check_damage(&kind, model, 37);
}

static pawl_status decode_changed(const char *key, json_t *value, char *why) {
  return decode_with(&kind, model, key, value, why);
}

static void test_headers_that_contradict_the_file_are_refused(void **state) {
  (void)state;
  const char *const counts[] = {"rank", "users", "items", "samples", "user_bytes", "item_bytes", "rated"};
  char why[PAWL_BPMF_TEXT];
  assert_int_equal(decode_changed("iterations", json_integer(7), why), PAWL_OK);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) check_count(&kind, model, counts[i]);
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
  check_memory(&kind, model, 8);
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
