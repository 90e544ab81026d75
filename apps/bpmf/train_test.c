/* Trainings: errors near the noise, the same samples with any number of threads and after an interruption, and input
 * at the edges. */
#include <pawl/bpmf.h>

#include "apps/bpmf/model.h"
#include "apps/bpmf/reference_test.h"
#include "apps/bpmf/scene_test.h"
#include "apps/common/absence_test.h"
#include "base/memory.h"

static const struct low_rank usual = {
    .users = 60, .items = 45, .rank = 3, .noise = 0.5, .share = 0.6, .seed = 1, .unit = 1};

static void assert_same_model(const struct pawl_bpmf_model *a, const struct pawl_bpmf_model *b) {
  assert_int_equal(a->about.samples, b->about.samples);
  assert_int_equal(a->about.iterations, b->about.iterations);
  assert_memory_equal(a->samples, b->samples, a->about.samples * bpmf_sample_size(&a->about) * sizeof(float));
  assert_memory_equal(&a->about.test_rmse, &b->about.test_rmse, sizeof(double));
  assert_memory_equal(&a->about.train_rmse, &b->about.train_rmse, sizeof(double));
}

/* --- quality ---------------------------------------------------------------------------------------------- */

/* The error of the mean prediction of the reference on the same split. */
static double reference_rmse(const struct pawl_ratings *ratings, const struct pawl_bpmf_options *options) {
  struct bpmf_data data;
  assert_int_equal(bpmf_data_init(&data, ratings, NULL, options->test_share, options->seed, NULL), PAWL_OK);
  struct reference_rating *list = calloc(data.count, sizeof *list);
  double *sums = calloc(data.test_count, sizeof *sums), error = 0, samples = 0;
  size_t n = 0;
  for (uint32_t i = 0; i < data.sides[BPMF_USERS].rows; i++)
    for (uint64_t k = data.sides[BPMF_USERS].starts[i]; k < data.sides[BPMF_USERS].starts[i + 1]; k++)
      list[n++] = (struct reference_rating){{i, data.sides[BPMF_USERS].others[k]},
                                            bpmf_rating_of(&data, (double)data.sides[BPMF_USERS].values[k])};
  struct reference is = {.rank = options->rank,
                         .rows = {data.sides[BPMF_USERS].rows, data.sides[BPMF_ITEMS].rows},
                         .count = n,
                         .ratings = list,
                         .alpha = options->alpha};
  reference_init(&is, 99);
  for (uint64_t t = 1; t <= options->iterations; t++) {
    reference_step(&is);
    if (t <= options->burn_in) continue;
    samples++;
    for (uint64_t i = 0; i < data.test_count; i++)
      sums[i] += reference_predict(&is, data.tests[i].user, data.tests[i].item);
  }
  for (uint64_t i = 0; i < data.test_count; i++) {
    double limited = fmin(fmax(sums[i] / samples, (double)data.lowest), (double)data.highest);
    error += pow((double)data.tests[i].value - limited, 2) / (double)data.test_count;
  }
  reference_fini(&is);
  free(list);
  free(sums);
  bpmf_data_fini(&data);
  return sqrt(error);
}

static void test_the_error_is_near_the_noise_and_that_of_the_reference(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(5, 400);
  struct pawl_bpmf_result result;
  options.test_share = 0.2;
  options.alpha = 4;
  options.burn_in = 50;
  pawl_bpmf_model_destroy(trained(ratings, NULL, &options, &result));
  double plain = reference_rmse(ratings, &options);
  if (!(result.mean_test_rmse > 0.45 && result.mean_test_rmse < 0.65)) fail_msg("RMSE %f", result.mean_test_rmse);
  if (fabs(result.mean_test_rmse - plain) > 0.01 * plain)
    fail_msg("%f, but the reference has %f", result.mean_test_rmse, plain);
  assert_true(result.mean_train_rmse < result.mean_test_rmse);
  assert_true(result.mean_test_rmse < result.test_rmse);
  pawl_ratings_destroy(ratings);
}

/* Ratings in cents, of 100 or of astronomers: the same model in another unit. Predictions were four times as bad for
 * ratings from 0 to 100 as for the same ones from 0 to 1. */
static void test_ratings_of_every_size_are_learned_equally_well(void **state) {
  (void)state;
  const double units[] = {1, 1e-6, 100, 3e36};
  double first = 0;
  for (size_t i = 0; i < 4; i++) {
    struct low_rank scaled = usual;
    scaled.unit = units[i];
    struct pawl_ratings *ratings = low_rank_ratings(scaled);
    struct pawl_bpmf_options options = short_options(5, 60);
    struct pawl_bpmf_result result;
    struct pawl_bpmf_prediction prediction;
    struct pawl_bpmf_about about;
    options.test_share = 0.2;
    struct pawl_bpmf_model *model = trained(ratings, NULL, &options, &result);
    pawl_bpmf_model_about(model, &about);
    if (i == 0) first = result.mean_test_rmse;
    if (!(fabs(result.mean_test_rmse / units[i] - first) < 1e-3 * first))
      fail_msg("in units of %g: %g instead of %g", units[i], result.mean_test_rmse / units[i], first);
    assert_true(first < 0.5 * result.plain_test_rmse / units[i]);
    for (uint32_t item = 0; item < about.items; item++) {
      pawl_bpmf_predict(model, 0, item, &prediction);
      assert_true(isfinite(prediction.mean) && isfinite(prediction.deviation) && prediction.deviation > 0);
    }
    pawl_bpmf_model_destroy(model);
    pawl_ratings_destroy(ratings);
  }
}

/* --- threads ---------------------------------------------------------------------------------------------- */

static void check_threads(uint32_t rank, uint64_t iterations) {
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(rank, iterations);
  const uint32_t threads[] = {2, 3, 5, 200}; /* the last one has more threads than rows */
  options.test_share = 0.1;
  struct pawl_bpmf_model *one = trained(ratings, NULL, &options, NULL);
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
    options.threads = threads[i];
    struct pawl_bpmf_model *other = trained(ratings, NULL, &options, NULL);
    assert_same_model(one, other);
    pawl_bpmf_model_destroy(other);
  }
  options.seed = 2;
  struct pawl_bpmf_model *other = trained(ratings, NULL, &options, NULL);
  assert_memory_not_equal(one->samples, other->samples, 64);
  pawl_bpmf_model_destroy(other);
  pawl_bpmf_model_destroy(one);
  pawl_ratings_destroy(ratings);
}

static void test_samples_do_not_depend_on_the_number_of_threads(void **state) {
  (void)state;
  check_threads(16, 12);
  check_threads(1, 12);
  check_threads(33, 6);
  check_threads(128, 3);
  check_threads(130, 2); /* by LAPACK */
}

/* --- interruptions ---------------------------------------------------------------------------------------- */

struct stop {
  uint64_t at, seen;
};

static void note(void *context, const struct pawl_bpmf_progress *progress) {
  ((struct stop *)context)->seen = progress->iteration;
}

static bool stop_there(void *context) {
  const struct stop *stop = context;
  return stop->seen >= stop->at;
}

static void test_a_resumed_training_gives_the_same_model(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(6, 30);
  const uint64_t stops[] = {1, 4, 10, 17, 29};
  options.test_share = 0.1;
  options.burn_in = 5;
  options.keep = 7;
  struct pawl_bpmf_model *whole = trained(ratings, NULL, &options, NULL);
  options.checkpoint = path_of("checkpoint");
  options.checkpoint_every = 4;
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
    struct stop stop = {.at = stops[i]};
    struct pawl_bpmf_result result;
    options.progress = note;
    options.stopping = stop_there;
    options.context = &stop;
    options.resume = false;
    pawl_bpmf_model_destroy(trained(ratings, NULL, &options, &result));
    assert_string_equal(result.why, "interrupted");
    assert_int_equal(result.iterations, stops[i]);
    options.progress = NULL;
    options.stopping = NULL;
    options.resume = true;
    options.threads = 3;
    struct pawl_bpmf_model *resumed = trained(ratings, NULL, &options, &result);
    assert_string_equal(result.why, "iterations");
    assert_int_equal(result.resumed, stops[i]);
    assert_same_model(whole, resumed);
    pawl_bpmf_model_destroy(resumed);
    resumed = trained(ratings, NULL, &options, &result); /* a training that is over */
    assert_int_equal(result.resumed, 30);
    assert_same_model(whole, resumed);
    pawl_bpmf_model_destroy(resumed);
  }
  pawl_bpmf_model_destroy(whole);
  pawl_ratings_destroy(ratings);
}

/* A later version may choose otherwise. */
static void test_a_resumed_training_has_the_alpha_that_was_chosen(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(3, 12);
  struct pawl_bpmf_model *model = NULL;
  struct pawl_bpmf_about about;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT] = "";
  options.checkpoint = path_of("chosen");
  model = trained(ratings, NULL, &options, NULL);
  pawl_bpmf_model_about(model, &about);
  pawl_bpmf_model_destroy(model);
  double wanted = about.alpha / 3;
  set_header(options.checkpoint, "bpmf-checkpoint", "alpha", json_real(wanted));
  options.resume = true;
  model = trained(ratings, NULL, &options, NULL);
  pawl_bpmf_model_about(model, &about);
  pawl_bpmf_model_destroy(model);
  assert_true(about.alpha == wanted);
  set_header(options.checkpoint, "bpmf-checkpoint", "alpha", json_real(0));
  assert_int_equal(pawl_bpmf_train(ratings, NULL, &options, &model, &result, error), PAWL_CORRUPT);
  pawl_ratings_destroy(ratings);
}

static void note_iteration(void *context, const struct pawl_bpmf_progress *progress) {
  note_step(context, progress->iteration, progress->unsaved);
}

static void test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(3, 12);
  struct pawl_bpmf_result result;
  struct absence absence = {.from = 3, .back = 7};
  begin_absence(&absence, path_of("here"));
  options.checkpoint = path_of("here/state");
  options.checkpoint_every = 2;
  struct pawl_bpmf_model *whole = trained(ratings, NULL, &options, NULL);
  options.progress = note_iteration;
  options.context = &absence;
  struct pawl_bpmf_model *model = trained(ratings, NULL, &options, &result);
  assert_same_model(whole, model);
  assert_int_equal(absence.unsaved, 4); /* 5, 6, 7, 8: those of 4 and 6 failed */
  assert_string_equal(result.unsaved, "");
  pawl_bpmf_model_destroy(model);
  absence.back = 0;
  model = trained(ratings, NULL, &options, &result);
  assert_same_model(whole, model);
  assert_non_null(strstr(result.unsaved, "here/state: No such file"));
  pawl_bpmf_model_destroy(model);
  pawl_bpmf_model_destroy(whole);
  pawl_ratings_destroy(ratings);
}

/* An attempt to resume that fails. */
static void check_refused(const struct pawl_ratings *ratings, struct pawl_bpmf_options options, pawl_status wanted,
                          const char *text) {
  struct pawl_bpmf_model *model = NULL;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT] = "";
  options.resume = true;
  pawl_status status = pawl_bpmf_train(ratings, NULL, &options, &model, &result, error);
  if (status != wanted || !strstr(error, text)) fail_msg("%s: %s", pawl_status_text(status), error);
  assert_null(model);
}

static void damage(const char *path, long at) {
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
  int c = fgetc(file);
  assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
  fputc(c ^ 1, file);
  fclose(file);
}

static void test_a_checkpoint_of_other_options_or_ratings_is_refused(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct low_rank changed = usual;
  changed.noise = 0.5001;
  struct pawl_ratings *others = low_rank_ratings(changed);
  struct pawl_bpmf_options options = short_options(4, 6), other;
  options.checkpoint = path_of("refused");
  pawl_bpmf_model_destroy(trained(ratings, NULL, &options, NULL));
  other = options, other.rank = 5;
  check_refused(ratings, other, PAWL_MISMATCH, "--rank was 4 and is now 5");
  other = options, other.iterations = 7;
  check_refused(ratings, other, PAWL_MISMATCH, "--iterations was 6 and is now 7");
  other = options, other.burn_in = 2;
  check_refused(ratings, other, PAWL_MISMATCH, "--burn-in was 3 and is now 2");
  other = options, other.alpha = 2.5;
  check_refused(ratings, other, PAWL_MISMATCH, "--alpha was 0 and is now 2.5");
  other = options, other.seed = 3;
  check_refused(ratings, other, PAWL_MISMATCH, "--seed was 1 and is now 3");
  other = options, other.keep = 2;
  check_refused(ratings, other, PAWL_MISMATCH, "--keep was 20 and is now 2");
  other = options, other.test_share = 0.5;
  check_refused(ratings, other, PAWL_MISMATCH, "--test-split was 0 and is now 0.5");
  other = options, other.no_train_rmse = true;
  check_refused(ratings, other, PAWL_MISMATCH, "--no-train-rmse was off and is now on");
  check_refused(others, options, PAWL_MISMATCH, "a training with other ratings");
  other = options, other.checkpoint = path_of("nothing");
  check_refused(ratings, other, PAWL_NOT_FOUND, "nothing");
  damage(options.checkpoint, -200);
  check_refused(ratings, options, PAWL_CORRUPT, "checksum");
  assert_int_equal(truncate(options.checkpoint, 700), 0);
  check_refused(ratings, options, PAWL_CORRUPT, "checksum");
  assert_int_equal(truncate(options.checkpoint, 100), 0);
  check_refused(ratings, options, PAWL_TRUNCATED, "header");
  other = options, other.checkpoint = NULL;
  check_refused(ratings, other, PAWL_INVALID, "no checkpoint was named");
  pawl_ratings_destroy(others);
  pawl_ratings_destroy(ratings);
}

static void test_a_training_stopped_during_the_burn_in_has_a_model(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(4, 50);
  struct stop stop = {.at = 3};
  struct pawl_bpmf_result result;
  options.progress = note;
  options.stopping = stop_there;
  options.context = &stop;
  struct pawl_bpmf_model *model = trained(ratings, NULL, &options, &result);
  assert_int_equal(model->about.samples, 1);
  assert_int_equal(result.samples, 0);
  assert_true(isnan(result.mean_train_rmse) && result.train_rmse > 0);
  pawl_bpmf_model_destroy(model);
  pawl_ratings_destroy(ratings);
}

/* --- edges ------------------------------------------------------------------------------------------------ */

static void check_edge(const char *text, uint32_t rank, uint32_t threads) {
  struct pawl_ratings *ratings = ratings_of_text(text);
  struct pawl_bpmf_options options = short_options(rank, 5);
  options.threads = threads;
  struct pawl_bpmf_model *model = trained(ratings, NULL, &options, NULL);
  struct pawl_bpmf_prediction prediction;
  pawl_bpmf_predict(model, 0, 0, &prediction);
  assert_true(prediction.mean >= model->about.lowest && prediction.mean <= model->about.highest);
  assert_true(prediction.deviation > 0.7 && isfinite(prediction.deviation));
  pawl_bpmf_model_destroy(model);
  pawl_ratings_destroy(ratings);
}

static void test_few_users_and_items_suffice(void **state) {
  (void)state;
  const uint32_t ranks[] = {1, 16, 33, 128};
  for (size_t i = 0; i < 4; i++) {
    check_edge("one,thing,3\n", ranks[i], 1);
    check_edge("one,a,3\none,b,4\none,c,1\n", ranks[i], 4); /* one user */
    check_edge("a,one,3\nb,one,4\nc,one,1\n", ranks[i], 2); /* one item */
    check_edge("a,x,3\nb,y,3\n", ranks[i], 2);              /* equal ratings */
  }
}

static void test_rows_without_training_ratings_follow_their_prior(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual); /* the only rating of u0 becomes a test rating */
  struct pawl_bpmf_options options = short_options(4, 20);
  struct pawl_bpmf_result result;
  options.test_share = 0.9;
  struct pawl_bpmf_model *model = trained(ratings, NULL, &options, &result);
  assert_true(result.test_ratings > model->about.ratings);
  assert_int_equal(result.test_unknown, 0);
  assert_true(result.mean_test_rmse > 0.5 && result.mean_test_rmse < 3);
  pawl_bpmf_model_destroy(model);
  pawl_ratings_destroy(ratings);
}

static void test_test_ratings_of_strangers_are_counted_and_left_out(void **state) {
  (void)state;
  struct pawl_ratings *test = ratings_of_text("u1\tv1\t3\nnobody\tv1\t3\nu1\tnothing\t2\n");
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_bpmf_options options = short_options(4, 4);
  struct pawl_bpmf_result result;
  pawl_bpmf_model_destroy(trained(ratings, test, &options, &result));
  assert_int_equal(result.test_ratings, 1);
  assert_int_equal(result.test_unknown, 2);
  assert_string_equal(result.first_unknown + strlen(folder) + 1, "ratings:2: user nobody has no training rating");
  pawl_ratings_destroy(test);
  test = ratings_of_text("nobody\tv1\t3\n"); /* no test rating is left */
  pawl_bpmf_model_destroy(trained(ratings, test, &options, &result));
  assert_int_equal(result.test_ratings, 0);
  assert_true(isnan(result.mean_test_rmse));
  pawl_ratings_destroy(test);
  pawl_ratings_destroy(ratings);
}

static void test_a_split_takes_about_its_share_and_depends_on_the_seed_only(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct pawl_ratings *turned = ratings_of_text("b\ty\t2\na\tx\t1\n"), *plain = ratings_of_text("a\tx\t1\nb\ty\t2\n");
  struct bpmf_data data, again;
  struct pawl_ratings_info info;
  pawl_ratings_info(ratings, &info);
  assert_int_equal(bpmf_data_init(&data, ratings, NULL, 0.25, 3, NULL), PAWL_OK);
  assert_int_equal(data.count + data.test_count, info.count);
  double share = (double)data.test_count / (double)info.count;
  assert_true(share > 0.2 && share < 0.3);
  assert_int_equal(bpmf_data_init(&again, ratings, NULL, 0.25, 4, NULL), PAWL_OK);
  assert_true(data.digest != again.digest);
  bpmf_data_fini(&data);
  bpmf_data_fini(&again);
  for (uint64_t seed = 0; seed < 20; seed++) { /* whichever order the file has */
    pawl_status one = bpmf_data_init(&data, plain, NULL, 0.5, seed, NULL);
    pawl_status other = bpmf_data_init(&again, turned, NULL, 0.5, seed, NULL);
    assert_int_equal(one, other);
    assert_int_equal(data.test_count, again.test_count);
    if (data.test_count == 1) assert_true(data.tests[0].value == again.tests[0].value);
    bpmf_data_fini(&data);
    bpmf_data_fini(&again);
  }
  pawl_ratings_destroy(turned);
  pawl_ratings_destroy(plain);
  pawl_ratings_destroy(ratings);
}

static void test_each_side_has_every_rating_in_the_order_of_the_other(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings(usual);
  struct bpmf_data data;
  assert_int_equal(bpmf_data_init(&data, ratings, NULL, 0, 1, NULL), PAWL_OK);
  for (int side = 0; side < BPMF_SIDES; side++) {
    const struct bpmf_ratings *is = &data.sides[side], *other = &data.sides[1 - side];
    assert_int_equal(is->starts[is->rows], data.count);
    for (uint32_t row = 0; row < is->rows; row++)
      for (uint64_t i = is->starts[row]; i < is->starts[row + 1]; i++) {
        if (i > is->starts[row]) assert_true(is->others[i] > is->others[i - 1]);
        uint64_t there = other->starts[is->others[i]];
        while (there < other->starts[is->others[i] + 1] && other->others[there] != row) there++;
        assert_true(there < other->starts[is->others[i] + 1] && other->values[there] == is->values[i]);
      }
  }
  bpmf_data_fini(&data);
  pawl_ratings_destroy(ratings);
}

static void test_numbers_that_become_too_large_end_the_training(void **state) {
  (void)state;
  struct pawl_ratings *ratings = ratings_of_text("a,x,1e38\na,y,-1e38\nb,x,-3e38\nb,y,1\n");
  struct pawl_bpmf_options options = short_options(4, 20);
  struct pawl_bpmf_model *model = NULL;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT] = "";
  options.alpha = 1e9;
  assert_int_equal(pawl_bpmf_train(ratings, NULL, &options, &model, &result, error), PAWL_DIVERGED);
  assert_non_null(strstr(error, "the numbers became too large in iteration"));
  assert_null(model);
  pawl_ratings_destroy(ratings);
}

static void check_options(struct pawl_bpmf_options options, const char *text) {
  char error[PAWL_BPMF_TEXT] = "";
  assert_false(pawl_bpmf_check(&options, error));
  if (!strstr(error, text)) fail_msg("%s", error);
}

static void test_options_are_checked(void **state) {
  (void)state;
  struct pawl_bpmf_options options = short_options(16, 20), other;
  char error[PAWL_BPMF_TEXT];
  assert_true(pawl_bpmf_check(&options, error));
  other = options, other.rank = 0;
  check_options(other, "the rank must be");
  other = options, other.rank = 1025;
  check_options(other, "the rank must be");
  other = options, other.iterations = 0;
  check_options(other, "number of iterations");
  other = options, other.burn_in = 20;
  check_options(other, "the burn-in must be shorter");
  other = options, other.alpha = -1;
  check_options(other, "alpha");
  other = options, other.alpha = (double)NAN;
  check_options(other, "alpha");
  other = options, other.keep = 0;
  check_options(other, "keeps from 1 to 1000");
  other = options, other.test_share = 1;
  check_options(other, "share of test ratings");
  other = options, other.threads = 2000;
  check_options(other, "threads");
  other = options, other.checkpoint_every = 0;
  check_options(other, "between checkpoints");
  other = options, other.struct_size = 0;
  check_options(other, "pawl_bpmf_options_init");
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_ratings *ratings = low_rank_ratings((struct low_rank){5, 4, 1, 0.1, 0.9, 3, 1});
  struct pawl_bpmf_options options = short_options(3, 2);
  uint64_t live = pwi_memory_counts().live, n = 0;
  options.test_share = 0.2;
  options.checkpoint = path_of("memory");
  for (bool has_failed = true; has_failed; n++) {
    struct pawl_bpmf_model *model = NULL;
    struct pawl_bpmf_result result;
    char error[PAWL_BPMF_TEXT] = "";
    pwi_memory_fail_after(n);
    pawl_status status = pawl_bpmf_train(ratings, NULL, &options, &model, &result, error);
    has_failed = pwi_memory_fail_cancel();
    /* A checkpoint goes without syncing its folder, and the training without the last checkpoint. */
    assert_true(status == PAWL_OK || (has_failed && status == PAWL_NO_MEMORY && !model && error[0]));
    pawl_bpmf_model_destroy(model);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 40);
  pawl_ratings_destroy(ratings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_error_is_near_the_noise_and_that_of_the_reference),
      cmocka_unit_test(test_ratings_of_every_size_are_learned_equally_well),
      cmocka_unit_test(test_samples_do_not_depend_on_the_number_of_threads),
      cmocka_unit_test(test_a_resumed_training_gives_the_same_model),
      cmocka_unit_test(test_a_resumed_training_has_the_alpha_that_was_chosen),
      cmocka_unit_test(test_a_checkpoint_that_cannot_be_written_does_not_end_the_training),
      cmocka_unit_test(test_a_checkpoint_of_other_options_or_ratings_is_refused),
      cmocka_unit_test(test_a_training_stopped_during_the_burn_in_has_a_model),
      cmocka_unit_test(test_few_users_and_items_suffice),
      cmocka_unit_test(test_rows_without_training_ratings_follow_their_prior),
      cmocka_unit_test(test_test_ratings_of_strangers_are_counted_and_left_out),
      cmocka_unit_test(test_a_split_takes_about_its_share_and_depends_on_the_seed_only),
      cmocka_unit_test(test_each_side_has_every_rating_in_the_order_of_the_other),
      cmocka_unit_test(test_numbers_that_become_too_large_end_the_training),
      cmocka_unit_test(test_options_are_checked),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
