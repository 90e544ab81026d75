/* Trainings by workers that share sums of rows and codes, against trainings in one process: by factors and by servers. */
#include <unistd.h>

#include <pawl/sparse_coding.h>

#include "apps/common/random.h"
#include "apps/common/shared_matrix/workers_test.h"
#include "apps/sparse_coding/model.h"

#define CLOSE 1e-7 /* by rounding, after many steps and codes that stop at a tolerance */

static double uniform_of(struct apps_random *random) { return (double)(apps_random_draw(random) >> 11) * 0x1p-53; }

/* Each row is a sum of two of ten waves, with a little noise. */
static void write_waves(uint32_t count, uint32_t features) {
  struct apps_random random = apps_random_of(9, count, features, 0);
  snprintf(rows_path, sizeof rows_path, "%s/rows", folder);
  FILE *file = fopen(rows_path, "w");
  assert_non_null(file);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t one = apps_random_below(&random, 10), other = apps_random_below(&random, 10);
    fprintf(file, "1");
    for (uint32_t d = 0; d < features; d++)
      fprintf(file, " %u:%.5f", d + 1,
              sin((double)(one + 1) * d) - 0.6 * cos((double)(other + 1) * d) + 0.1 * uniform_of(&random));
    fprintf(file, "\n");
  }
  assert_int_equal(fclose(file), 0);
}

static struct pawl_sparse_rows *make_rows(uint32_t count, uint32_t features) {
  char error[PAWL_SPARSE_TEXT] = "";
  struct pawl_sparse_rows *rows = NULL;
  struct pawl_data_options reading;
  write_waves(count, features);
  pawl_data_options_init(&reading);
  if (pawl_sparse_rows_read(rows_files, 1, &reading, 1, &rows, error)) fail_msg("%s", error);
  return rows;
}

static struct pawl_sparse_options options_of(uint32_t atoms, uint64_t epochs, uint64_t batch) {
  struct pawl_sparse_options options;
  pawl_sparse_options_init(&options);
  options.atoms = atoms;
  options.epochs = epochs;
  options.batch = batch;
  options.tolerance = 1e-9;
  options.code_tolerance = 1e-11;
  options.threads = 1;
  return options;
}

struct outcome {
  pawl_status status;
  struct pawl_sparse_model *model;
  struct pawl_sparse_result result;
  struct pawl_matrix_shared shared;
  char error[PAWL_SPARSE_TEXT];
};

static struct outcome train_alone(const struct pawl_sparse_rows *rows, const struct pawl_sparse_options *options) {
  struct outcome outcome = {.model = NULL};
  outcome.status = pawl_sparse_train(rows, NULL, options, &outcome.model, &outcome.result, outcome.error);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

static struct outcome try_shared(const struct pawl_sparse_rows *rows, const struct pawl_matrix_sharing *given,
                                 const struct pawl_sparse_options *options) {
  struct outcome outcome = {.model = NULL};
  struct pawl_matrix_sharing sharing = *given;
  struct hands hands;
  start_hands(&hands, pawl_sparse_work, &sharing);
  outcome.status = pawl_sparse_train_shared(session, &sharing, rows, NULL, options, &outcome.model, &outcome.result,
                                            &outcome.shared, outcome.error);
  join_hands(&hands);
  return outcome;
}

static struct outcome train_shared(const struct pawl_sparse_rows *rows, const struct pawl_matrix_sharing *sharing,
                                   const struct pawl_sparse_options *options) {
  struct outcome outcome = try_shared(rows, sharing, options);
  if (outcome.status) fail_msg("%s", outcome.error);
  return outcome;
}

/* The largest difference of numbers of atoms, whose length is 1. */
static double distance(const struct outcome *one, const struct outcome *other) {
  double most = 0;
  for (size_t i = 0; i < sparse_model_size(one->model); i++)
    most = fmax(most, fabs(one->model->atoms[i] - other->model->atoms[i]));
  return most;
}

static void forget(struct outcome *outcome) {
  pawl_sparse_model_destroy(outcome->model);
  pawl_matrix_shared_fini(&outcome->shared);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static void check_equals(uint32_t workers, uint32_t count, uint64_t batch) {
  struct pawl_sparse_rows *rows = make_rows(count, 12);
  struct pawl_sparse_options options = options_of(8, 3, batch);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, workers);
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  double far = distance(&alone, &shared);
  if (!(far < CLOSE)) fail_msg("%u workers, batches of %u: %g", workers, (unsigned)batch, far);
  assert_true(fabs(alone.result.objective - shared.result.objective) < CLOSE * alone.result.objective);
  assert_true(alone.result.best == shared.result.best && alone.result.replaced == shared.result.replaced);
  assert_true(shared.shared.steps >= (count + batch - 1) / batch);
  assert_identical(&shared.shared, workers);
  forget(&alone), forget(&shared);
  pawl_sparse_rows_destroy(rows);
}

static void test_workers_equal_one_process(void **state) {
  (void)state;
  check_equals(1, 90, 16);
  check_equals(2, 120, 32);
  check_equals(4, 101, 13);
}

static void test_a_worker_may_have_no_rows(void **state) {
  (void)state;
  check_equals(6, 31, 4);
}

/* Patches of images are drawn by each worker. */
static void test_workers_draw_the_same_patches(void **state) {
  (void)state;
  char error[PAWL_SPARSE_TEXT] = "";
  unsigned char head[16] = {0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 12, 0, 0, 0, 12};
  struct apps_random random = apps_random_of(3, 1, 2, 0);
  struct pawl_images_options reading;
  struct pawl_images *images = NULL;
  struct pawl_sparse_rows *rows = NULL;
  struct pawl_sparse_options options = options_of(8, 2, 32);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, 2);
  snprintf(rows_path, sizeof rows_path, "%s/idx3", folder);
  FILE *file = fopen(rows_path, "w");
  assert_true(file && fwrite(head, 1, 16, file) == 16);
  for (int i = 0; i < 20 * 144; i++) fputc((int)apps_random_below(&random, 256), file);
  assert_int_equal(fclose(file), 0);
  pawl_images_options_init(&reading);
  reading.labels_optional = true;
  must(pawl_images_read(rows_files, 1, &reading, &images));
  if (pawl_sparse_rows_of_images(images, 4, 150, 5, &rows, error)) fail_msg("%s", error);
  sharing.reading = NULL;
  options.center = true;
  struct outcome alone = train_alone(rows, &options), shared = train_shared(rows, &sharing, &options);
  assert_true(distance(&alone, &shared) < CLOSE);
  forget(&alone), forget(&shared);
  pawl_sparse_rows_destroy(rows);
  pawl_images_destroy(images);
}

static void test_staleness_leads_to_about_the_same_end(void **state) {
  (void)state;
  static const uint32_t staleness[] = {1, 4, PAWL_MATRIX_ASYNC};
  struct pawl_sparse_rows *rows = make_rows(200, 12);
  struct pawl_sparse_options options = options_of(8, 6, 16);
  struct outcome alone = train_alone(rows, &options);
  for (size_t i = 0; i < sizeof staleness / sizeof *staleness; i++) {
    struct pawl_matrix_sharing sharing = sharing_of(tested_way, 3);
    sharing.staleness = staleness[i];
    struct outcome shared = train_shared(rows, &sharing, &options);
    if (!(shared.result.objective < 1.1 * alone.result.objective))
      fail_msg("staleness %u: %g, not %g", staleness[i], shared.result.objective, alone.result.objective);
    forget(&shared);
  }
  forget(&alone);
  pawl_sparse_rows_destroy(rows);
}

/* --- checkpoints ------------------------------------------------------------------------------------------ */

static bool stops;
static void stop_after_two(void *context, const struct pawl_sparse_progress *progress) {
  (void)context;
  stops = progress->epoch == 2;
}
static bool is_stopping(void *context) {
  (void)context;
  return stops;
}

/* Begun by two workers, ended by three. */
static void test_a_training_goes_on_from_a_checkpoint(void **state) {
  (void)state;
  char path[128];
  struct pawl_sparse_rows *rows = make_rows(150, 12);
  struct pawl_sparse_options options = options_of(8, 4, 16);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, 2);
  struct outcome whole = train_alone(rows, &options);
  snprintf(path, sizeof path, "%s/state", folder);
  options.checkpoint = path;
  options.progress = stop_after_two;
  options.stopping = is_stopping;
  stops = false;
  struct outcome first = train_shared(rows, &sharing, &options);
  assert_string_equal(first.result.why, "interrupted");
  options.resume = true;
  stops = false;
  sharing.workers = 3;
  struct outcome resumed = train_shared(rows, &sharing, &options);
  assert_int_equal(resumed.result.resumed, 2);
  assert_true(distance(&whole, &resumed) < CLOSE);
  forget(&whole), forget(&first), forget(&resumed);
  pawl_sparse_rows_destroy(rows);
}

/* --- bytes, and bad input --------------------------------------------------------------------------------- */

/* Of the first epoch: later codes have other numbers of non-zeros. */
static void check_bytes(uint32_t workers) {
  struct pawl_sparse_rows *rows = make_rows(1000, 200);
  struct pawl_sparse_options options = options_of(60, 1, 50);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, workers);
  struct pawl_matrix_costs costs;
  char error[PAWL_SPARSE_TEXT];
  options.code_tolerance = 1e-10;
  must(pawl_sparse_costs(rows, &options, &sharing, &costs, error));
  double sent = 0, wanted = tested_way == PAWL_MATRIX_FACTORS ? costs.factors : costs.whole;
  for (int i = 0; i < TRIES && !is_near(sent, wanted); i++) {
    struct outcome shared = train_shared(rows, &sharing, &options);
    sent = (double)shared.shared.update_bytes / (double)shared.shared.steps;
    forget(&shared);
  }
  if (!is_near(sent, wanted)) fail_msg("%u workers: %.0f bytes in a step, not %.0f", workers, sent, wanted);
  pawl_sparse_rows_destroy(rows);
}

static void test_bytes_are_those_of_the_model(void **state) {
  (void)state;
  check_bytes(2);
  check_bytes(4);
}

static void test_workers_with_other_rows_are_refused(void **state) {
  (void)state;
  struct pawl_sparse_rows *rows = make_rows(60, 12);
  struct pawl_sparse_options options = options_of(5, 2, 16);
  struct pawl_matrix_sharing sharing = sharing_of(tested_way, 1); /* a second one might wait for the job that is over */
  write_waves(61, 12);
  struct outcome shared = try_shared(rows, &sharing, &options);
  assert_int_equal(shared.status, PAWL_REFUSED);
  if (!strstr(shared.error, "differ from the scheduler's")) fail_msg("%s", shared.error);
  assert_null(shared.model);
  pawl_sparse_rows_destroy(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_equal_one_process),
      cmocka_unit_test(test_a_worker_may_have_no_rows),
      cmocka_unit_test(test_workers_draw_the_same_patches),
      cmocka_unit_test(test_staleness_leads_to_about_the_same_end),
      cmocka_unit_test(test_a_training_goes_on_from_a_checkpoint),
      cmocka_unit_test(test_bytes_are_those_of_the_model),
      cmocka_unit_test(test_workers_with_other_rows_are_refused),
  };
  const struct CMUnitTest by_servers[] = {cmocka_unit_test(test_workers_equal_one_process)};
  tested_way = PAWL_MATRIX_FACTORS;
  int failed = cmocka_run_group_tests_name("apps.sparse_coding.shared, by factors", tests, open_way, close_cluster);
  tested_way = PAWL_MATRIX_WHOLE;
  failed += cmocka_run_group_tests_name("apps.sparse_coding.shared, by matrix", tests, open_way, close_cluster);
  tested_way = PAWL_MATRIX_SERVERS;
  return failed +
         cmocka_run_group_tests_name("apps.sparse_coding.shared, by servers", by_servers, open_way, close_cluster);
}
