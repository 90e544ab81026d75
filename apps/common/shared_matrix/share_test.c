/* Workers of a made-up learner that share a matrix by each way: sums that are exact, matrices that are handed out, cleared and
 * fetched, and workers whose numbers are not finite. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/scene_test.h"
#include "apps/common/shared_matrix/options.h"
#include "apps/common/shared_matrix/scheduler.h"
#include "host/halt_testing.h"

enum { ROWS = 7, COLUMNS = 3, THINGS = 5, EXTRA = 4, WORKERS = 3 };

/* --- the learner ------------------------------------------------------------------------------------------ */

/* In each step, row `step % ROWS` becomes larger by the number of things, of which each worker has a part. */
struct toy {
  bool is_double;
  double wide[ROWS * COLUMNS];
  float narrow[ROWS * COLUMNS];
  double extra[EXTRA];
  uint64_t bad_step; /* in which the first worker's pair is not finite, from 1; 0: none */
  const struct matrix_spec *spec;
};

static pawl_status toy_begin(const struct matrix_spec *spec, void **state_out, struct matrix_place *place_out,
                             char *error) {
  struct toy *toy = apps_alloc_zero(1, sizeof *toy);
  json_int_t bad;
  (void)error;
  if (!toy) return PAWL_NO_MEMORY;
  toy->is_double = spec->shape.is_double;
  toy->spec = spec;
  if (json_unpack(spec->terms, "{s:I}", "bad", &bad)) return PAWL_CORRUPT;
  toy->bad_step = (uint64_t)bad;
  *state_out = toy;
  *place_out = (struct matrix_place){
      .values = toy->is_double ? (void *)toy->wide : toy->narrow, .extra = toy->extra, .extra_size = sizeof toy->extra};
  return PAWL_OK;
}

static atomic_uint begun_steps; /* of all workers */

static pawl_status toy_step(void *state, struct matrix_share *share, uint64_t step) {
  struct toy *toy = state;
  const uint64_t row = step % ROWS;
  const uint32_t index = (uint32_t)row;
  double one = 1, wide[COLUMNS];
  float narrow_one = 1, narrow[COLUMNS];
  size_t begin, end;
  atomic_fetch_add(&begun_steps, 1);
  matrix_share_part(share, THINGS, &begin, &end);
  for (int j = 0; j < COLUMNS; j++) narrow[j] = (float)(wide[j] = (double)(end - begin) * (double)toy->extra[0]);
  if (toy->bad_step == step + 1 && begin == 0) narrow[0] = (float)(wide[0] = (double)NAN);
  const struct pawl_factor_vector u = {toy->is_double ? (void *)&one : &narrow_one, &index, 1};
  const struct pawl_factor_vector v = {toy->is_double ? (void *)wide : narrow, NULL, COLUMNS};
  pawl_status status = matrix_share_need(share, &row, 1);
  if (!status && end > begin) status = matrix_share_add(share, &u, &v);
  return status ? status : matrix_share_commit(share, 2);
}

static double toy_report(void *state) { return ((struct toy *)state)->extra[1]; }
static void toy_end(void *state) { apps_free(state); }

static const struct matrix_learner toy_learner = {"toy", toy_begin, toy_step, toy_report, toy_end};

/* --- a run ------------------------------------------------------------------------------------------------ */

struct hand {
  pthread_t thread;
  const char *job;
  pawl_status outcome;
};

static void *labour(void *context) {
  struct hand *hand = context;
  char error[APPS_TEXT_MAX];
  struct pawl_session *own = open_as(pawl_session_address(base), true);
  hand->outcome = matrix_work(&toy_learner, own, hand->job, PATIENCE, error);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

struct scene {
  struct matrix_scheduler scheduler;
  struct pawl_matrix_shared shared;
  struct hand hands[WORKERS];
  double wide[ROWS * COLUMNS], extra[EXTRA];
  float narrow[ROWS * COLUMNS];
  char error[APPS_TEXT_MAX], job[32];
};

struct variant {
  uint32_t staleness;
  bool is_double, is_sparse;
  int bad;
};

static enum pawl_matrix_way way; /* of this program's sessions */

static void begin_scene(struct scene *scene, struct variant is) {
  static const char *const paths[] = {"nothing"};
  static unsigned jobs;
  struct pawl_matrix_sharing sharing;
  memset(scene, 0, sizeof *scene);
  snprintf(scene->job, sizeof scene->job, "job%u", ++jobs);
  pawl_matrix_sharing_init(&sharing);
  sharing.way = way;
  sharing.job = scene->job;
  sharing.paths = paths;
  sharing.path_count = 1;
  sharing.workers = WORKERS;
  sharing.staleness = is.staleness;
  scene->extra[0] = 1;
  scene->extra[1] = 10;
  scene->scheduler = (struct matrix_scheduler){
      .common = {.error = scene->error},
      .spec = {.app = "toy", .threads = 1, .shape = {ROWS, COLUMNS, is.is_double}, .is_sparse = is.is_sparse},
      .place = {.values = is.is_double ? (void *)scene->wide : scene->narrow,
                .extra = scene->extra,
                .extra_size = sizeof scene->extra},
      .must_hand_out = true};
  must(matrix_scheduler_init(&scene->scheduler, session, &sharing, json_pack("{s:i}", "bad", is.bad), &scene->shared));
  for (int i = 0; i < WORKERS; i++) {
    scene->hands[i].job = scene->job;
    assert_int_equal(pthread_create(&scene->hands[i].thread, NULL, labour, &scene->hands[i]), 0);
  }
}

static void end_scene(struct scene *scene) {
  matrix_scheduler_fini(&scene->scheduler);
  for (int i = 0; i < WORKERS; i++) pthread_join(scene->hands[i].thread, NULL);
  for (int i = 0; i < WORKERS; i++) assert_int_equal(scene->hands[i].outcome, PAWL_OK);
  pawl_matrix_shared_fini(&scene->shared);
}

static void take_steps(struct scene *scene, uint64_t first, uint64_t count) {
  uint64_t made = 0;
  pawl_status status = matrix_scheduler_steps(&scene->scheduler, first, count, UINT32_MAX, 0, &made);
  if (status || made != count) fail_msg("%u of %u steps: %s", (unsigned)made, (unsigned)count, scene->error);
}

/* Every row has what the scheduler handed out, and 2 * THINGS for each of its steps. */
static void check_matrix(struct scene *scene, bool is_double, uint64_t steps, double at_first) {
  must(matrix_scheduler_fetch(&scene->scheduler));
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < COLUMNS; j++) {
      double wanted = at_first + 2 * THINGS * (double)(steps / ROWS + (i < steps % ROWS));
      double is = is_double ? scene->wide[i * COLUMNS + j] : (double)scene->narrow[i * COLUMNS + j];
      if (is != wanted) fail_msg("row %zu: %g, not %g", i, is, wanted);
    }
}

static void check_sums(struct variant is) {
  struct scene *scene = apps_alloc(sizeof *scene);
  begin_scene(scene, is);
  for (size_t i = 0; i < ROWS * COLUMNS; i++) scene->wide[i] = scene->narrow[i] = 0.5F;
  take_steps(scene, 0, 9);
  check_matrix(scene, is.is_double, 9, 0.5);
  assert_true(scene->extra[1] == 10);
  assert_true(scene->scheduler.reports == 10 * WORKERS);
  take_steps(scene, 9, 30);
  check_matrix(scene, is.is_double, 39, 0.5);
  assert_int_equal(scene->shared.steps, 39);
  assert_int_equal(scene->shared.workers, WORKERS);
  scene->scheduler.must_clear = true;
  take_steps(scene, 0, 7);
  check_matrix(scene, is.is_double, 7, 0);
  end_scene(scene);
  apps_free(scene);
}

static void test_the_matrix_has_the_pairs_of_all_workers(void **state) {
  (void)state;
  check_sums((struct variant){.is_double = true});
  check_sums((struct variant){.is_double = false});
  check_sums((struct variant){.is_double = true, .is_sparse = true});
  check_sums((struct variant){.is_double = false, .is_sparse = true});
}

static void test_staleness_loses_no_pair(void **state) {
  (void)state;
  check_sums((struct variant){.staleness = 2, .is_double = true});
  check_sums((struct variant){.staleness = 2, .is_double = true, .is_sparse = true});
  check_sums((struct variant){.staleness = PAWL_MATRIX_ASYNC, .is_double = false});
  check_sums((struct variant){.staleness = PAWL_MATRIX_ASYNC, .is_double = true, .is_sparse = true});
}

/* No worker waits for the one whose numbers are not finite, and the scheduler learns of the step. */
static void check_divergence(struct variant is) {
  struct scene *scene = apps_alloc(sizeof *scene);
  uint64_t made = 0;
  is.bad = 12;
  begin_scene(scene, is);
  assert_int_equal(matrix_scheduler_steps(&scene->scheduler, 0, 200, UINT32_MAX, 0, &made), PAWL_DIVERGED);
  assert_true(made <= 11);
  end_scene(scene);
  apps_free(scene);
}

static void test_numbers_that_are_not_finite_end_the_training(void **state) {
  (void)state;
  for (int is_sparse = 0; is_sparse < 2; is_sparse++) {
    check_divergence((struct variant){.is_double = true, .is_sparse = is_sparse});
    check_divergence((struct variant){.staleness = 2, .is_sparse = is_sparse});
    check_divergence((struct variant){.staleness = PAWL_MATRIX_ASYNC, .is_double = true, .is_sparse = is_sparse});
  }
}

/* While a server stands still. */
static void *look_and_continue(void *context) {
  const pid_t *server = context;
  usleep(200 * 1000); /* time for steps that do not wait */
  const unsigned seen = atomic_load(&begun_steps);
  assert_int_equal(kill(*server, SIGCONT), 0);
  return (void *)(uintptr_t)seen;
}

/* Otherwise the servers would forget the first of them as well. */
static void test_no_step_begins_before_the_servers_have_forgotten_the_matrix(void **state) {
  (void)state;
  if (way == PAWL_MATRIX_FACTORS) return; /* no server has it */
  struct scene *scene = apps_alloc(sizeof *scene);
  pid_t server = find_server();
  pthread_t thread;
  void *seen;
  begin_scene(scene, (struct variant){.is_double = true});
  take_steps(scene, 0, 9);
  const unsigned before = atomic_load(&begun_steps);
  scene->scheduler.must_clear = true;
  halt(server);
  assert_int_equal(pthread_create(&thread, NULL, look_and_continue, &server), 0);
  take_steps(scene, 0, 7);
  pthread_join(thread, &seen);
  assert_int_equal((uintptr_t)seen, before);
  check_matrix(scene, true, 7, 0);
  end_scene(scene);
  apps_free(scene);
}

static int close_all(void **state) { return close_cluster(state); }

static int open_way(void **state) {
  opens_peers = way == PAWL_MATRIX_FACTORS;
  snprintf(folder, sizeof folder, "/tmp/pawl-train-XXXXXX");
  return open_cluster(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_matrix_has_the_pairs_of_all_workers),
      cmocka_unit_test(test_staleness_loses_no_pair),
      cmocka_unit_test(test_numbers_that_are_not_finite_end_the_training),
      cmocka_unit_test(test_no_step_begins_before_the_servers_have_forgotten_the_matrix),
  };
  way = PAWL_MATRIX_FACTORS;
  int failed = cmocka_run_group_tests_name("apps.common.shared_matrix.share, by factors", tests, open_way, close_all);
  way = PAWL_MATRIX_WHOLE;
  failed += cmocka_run_group_tests_name("apps.common.shared_matrix.share, by servers", tests, open_way, close_all);
  way = PAWL_MATRIX_SERVERS;
  return failed + cmocka_run_group_tests_name("apps.common.shared_matrix.share, by pairs to servers", tests, open_way,
                                              close_all);
}
