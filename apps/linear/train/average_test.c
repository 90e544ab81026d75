/* cost: 10
 *
 * SGD by workers that average, against SGD by servers and against a serial solver. */
#include "apps/linear/train/train_test.h"

static struct rows rows, dense;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1];

static int begin(void **state) {
  int status = open_cluster(state);
  if (status) return status;
  draw_rows(&rows, "rows", 400, 40, 1, false, 7);
  draw_dense(&dense, "dense", 300, 12, 1, 8);
  return 0;
}

static void begin_sgd(const struct problem *problem, uint64_t passes) {
  begin_options(&options, problem, &point, &path, &outcome);
  options.method = PAWL_LINEAR_METHOD_SGD;
  options.minibatch = 20;
  options.rounds = passes;
  options.rate = 0.5;
}

/* Trains with sessions for peers only; the servers of the cluster are not used. */
static pawl_status train_by_reduce(uint32_t workers) {
  struct pawl_session *before = session;
  opens_peers = true;
  session = open_listening(pawl_session_address(base));
  options.share = PAWL_LINEAR_REDUCE;
  pawl_status status = train(&options, workers, &outcome);
  must(pawl_session_close(session, PATIENCE));
  session = before;
  opens_peers = false;
  return status;
}

static void must_reduce(uint32_t workers) {
  pawl_status status = train_by_reduce(workers);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
}

/* Every minibatch of dense rows has all features, so that servers apply the penalty to all weights, too. The data is one
 * piece: servers get the pieces in any order. Workers that average draw another order for every further pass. */
static void test_one_worker_makes_the_steps_that_servers_make(void **state) {
  (void)state;
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_HINGE, PAWL_LINEAR_LOGISTIC};
  for (size_t i = 0; i < 2; i++) {
    struct problem problem = {.rows = &dense, .loss = losses[i], .l1 = 0.5, .l2 = 2, .bias = true};
    begin_sgd(&problem, 1);
    options.reading.piece_bytes = 0;
    must_train(&options, 1, &outcome);
    memcpy(w, outcome.w[0], sizeof w);
    double objective = outcome.last.objective;
    begin_sgd(&problem, 1);
    options.reading.piece_bytes = 0;
    must_reduce(1);
    for (size_t j = 0; j <= dense.features; j++) assert_true(fabs(w[j] - outcome.w[0][j]) <= 1e-9 * (1 + fabs(w[j])));
    assert_true(fabs(objective - outcome.last.objective) <= 1e-9 * objective);
    assert_string_equal(outcome.last.why, "streamed");
    assert_string_equal(outcome.last.method, "sgd");
    assert_int_equal(outcome.last.workers, 1);
  }
}

static double objective_with(uint64_t passes, uint64_t seed) {
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  begin_sgd(&problem, passes);
  options.seed = seed;
  must_reduce(1);
  return outcome.last.objective;
}

static void test_the_first_pass_has_the_order_of_the_data_and_others_that_of_the_seed(void **state) {
  (void)state;
  assert_true(objective_with(1, 3) == objective_with(1, 4));
  assert_true(objective_with(3, 3) == objective_with(3, 3));
  assert_true(objective_with(3, 3) != objective_with(3, 4));
}

/* A step of each of three workers is three times as long, and their mean as long as that of one. */
static void test_three_workers_are_about_as_good_as_one(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1, .bias = true};
  begin_sgd(&problem, 4);
  options.graph = "complete";
  must_reduce(1);
  double alone = outcome.last.objective;
  begin_sgd(&problem, 4);
  options.graph = "complete";
  must_reduce(3);
  assert_int_equal(outcome.last.workers, 3);
  assert_true(outcome.last.objective < 1.2 * alone);
}

/* Weights of 41 doubles, 400 rows in steps of 20 rows by each of three workers, each of which has two neighbours. */
static void test_all_values_that_workers_exchange_are_counted(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= PAWL_REDUCE_ASYNC; mode++) {
    begin_sgd(&problem, 12);
    options.graph = "complete";
    options.mode = (enum pawl_reduce_mode)mode;
    must_reduce(3);
    uint64_t steps = 12 * 400 / 20 / 3, values = steps * 3 * 2 * (rows.features + 1) * sizeof(double);
    if (mode == PAWL_REDUCE_ASYNC) values /= 10; /* a neighbour that is behind misses some of them */
    if (outcome.last.bytes_sent < values)
      fail_msg("mode %d: %llu bytes of values, but %llu bytes sent", mode, (unsigned long long)values,
               (unsigned long long)outcome.last.bytes_sent);
  }
}

static void test_workers_that_average_come_near_the_optimum(void **state) {
  (void)state;
  static const enum pawl_linear_loss losses[] = {PAWL_LINEAR_HINGE, PAWL_LINEAR_LOGISTIC, PAWL_LINEAR_SQUARED_HINGE};
  static const double zeros[FEATURES_MOST + 1];
  for (size_t i = 0; i < 3; i++) { /* the modes, which know nothing of losses, with the first of them only */
    struct problem problem = {.rows = &rows, .loss = losses[i], .l2 = 3};
    double best = losses[i] == PAWL_LINEAR_HINGE ? solve_hinge(&problem, w) : solve(&problem, w);
    for (int mode = PAWL_REDUCE_NOTIFY_ACK; mode <= (i ? PAWL_REDUCE_NOTIFY_ACK : PAWL_REDUCE_ASYNC); mode++) {
      begin_sgd(&problem, 40);
      options.graph = "root";
      options.mode = (enum pawl_reduce_mode)mode;
      options.falls = true;
      /* In the other modes nobody waits for inputs that come late, so workers may train each by itself. A step that is
       * not averaged is three times as long, and must be short enough by itself. */
      if (mode != PAWL_REDUCE_NOTIFY_ACK) options.rate = 0.1;
      must_reduce(3);
      check_model(&problem, &outcome, 0, best,
                  mode == PAWL_REDUCE_NOTIFY_ACK ? 0.02 : objective_of(&problem, zeros) / best - 1);
    }
  }
}

/* Each point of a path begins with weights of zero. */
static void test_a_path_of_penalties(void **state) {
  (void)state;
  static const struct pawl_linear_point points[] = {{4, 1}, {0, 3}};
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1};
  begin_sgd(&problem, 40);
  options.points = points;
  options.point_count = 2;
  options.falls = true;
  must_reduce(2);
  assert_int_equal(outcome.models, 2);
  for (size_t i = 0; i < 2; i++) {
    problem.l1 = points[i].l1;
    problem.l2 = points[i].l2;
    check_model(&problem, &outcome, i, solve(&problem, w), 0.02);
  }
}

/* Workers beyond the number of pieces have no rows, and only average. */
static void test_workers_without_rows(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 3};
  double best = solve_hinge(&problem, w);
  begin_sgd(&problem, 40);
  options.reading.piece_bytes = 0;
  options.falls = true;
  must_reduce(3);
  check_model(&problem, &outcome, 0, best, 0.02);
}

static void test_validation_data_is_scored(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 3, .bias = true};
  begin_sgd(&problem, 5);
  options.valid_split = 0.2;
  must_reduce(2);
  assert_true(outcome.last.valid_loss > 0 && outcome.last.valid_loss < 0.69);
  assert_true(outcome.last.valid_accuracy > 0.6);
}

static void test_divergence_is_reported(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_SQUARED_HINGE, .l2 = 0};
  begin_sgd(&problem, 200);
  options.rate = 1e30;
  pawl_status status = train_by_reduce(2);
  if (status == PAWL_OK)
    assert_string_equal(outcome.last.why, "diverged");
  else
    assert_int_equal(status, PAWL_DIVERGED);
}

static void refuses(const char *text) {
  char error[PAWL_LINEAR_TEXT] = "";
  assert_false(pawl_linear_check(&options, error));
  if (!strstr(error, text)) fail_msg("'%s' is not in '%s'", text, error);
}

static void test_options_that_reduce_cannot_do(void **state) {
  (void)state;
  struct problem problem = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 1};
  begin_sgd(&problem, 1);
  options.graph = "root";
  refuses("need --share reduce");
  options.share = PAWL_LINEAR_REDUCE;
  assert_true(pawl_linear_check(&options, NULL));
  options.method = PAWL_LINEAR_METHOD_AUTO;
  assert_true(pawl_linear_check(&options, NULL));
  options.method = PAWL_LINEAR_METHOD_DUAL;
  refuses("--share reduce needs --method sgd");
  options.method = PAWL_LINEAR_METHOD_SGD;
  char name[5000];
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = '\0';
  options.checkpoints = name;
  refuses("--checkpoint is too long");
  options.checkpoints = "some\xffwhere"; /* it is sent to workers as JSON */
  refuses("--checkpoint is not UTF-8");
  options.checkpoints = NULL;
  options.patience = 3;
  options.valid_split = 0.1;
  refuses("omit --early-stop");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_worker_makes_the_steps_that_servers_make),
      cmocka_unit_test(test_the_first_pass_has_the_order_of_the_data_and_others_that_of_the_seed),
      cmocka_unit_test(test_three_workers_are_about_as_good_as_one),
      cmocka_unit_test(test_all_values_that_workers_exchange_are_counted),
      cmocka_unit_test(test_workers_that_average_come_near_the_optimum),
      cmocka_unit_test(test_a_path_of_penalties),
      cmocka_unit_test(test_workers_without_rows),
      cmocka_unit_test(test_validation_data_is_scored),
      cmocka_unit_test(test_divergence_is_reported),
      cmocka_unit_test(test_options_that_reduce_cannot_do),
  };
  return cmocka_run_group_tests_name("apps.linear.train.average", tests, begin, close_cluster);
}
