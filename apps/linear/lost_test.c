/* cost: 20
 *
 * Trainings whose workers are processes that are killed in the middle, and whose servers are: the optimum is
 * the same. */
#include "apps/linear/train/train_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int signs[2]; /* a pipe: a process writes a byte to it when it is about to ask for work */
static struct rows rows,
    scaled; /* scaled: divided by the largest value of each feature, in the file of those that are not */
static enum pawl_linear_scale scale;
static double by[FEATURES_MOST + 1];
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1];

static int begin(void **state) {
  (void)state;
  if (open_cluster_of(5, 1) || pipe(signs)) return -1; /* four servers are to die, one after the other */
  draw_rows(&rows, "rows", 400, 40, 1, false, 11);
  scaled = rows;
  for (size_t i = 0; i < rows.count; i++)
    for (size_t j = 1; j <= rows.features; j++)
      if (fabs((double)rows.x[i][j]) > by[j]) by[j] = fabs((double)rows.x[i][j]);
  for (size_t i = 0; i < rows.count; i++)
    for (size_t j = 1; j <= rows.features; j++) scaled.x[i][j] = (float)((double)rows.x[i][j] / by[j]);
  return 0;
}

/* --- workers that are processes ------------------------------------------------------------------------- */

enum { PROCESSES = 8 };

static const char *job;
static pid_t pids[PROCESSES];
static size_t pid_count;

/* This program, as a worker. */
static pawl_status launch(void *context) {
  (void)context;
  assert_in_range(pid_count, 0, PROCESSES - 1);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    char sign[16];
    snprintf(sign, sizeof sign, "%d", signs[1]);
    execl("/proc/self/exe", "lost_test", pawl_session_address(base), job, sign, (char *)NULL);
    _exit(127);
  }
  pids[pid_count++] = pid;
  return pid > 0 ? PAWL_OK : PAWL_IO;
}

static int be_worker(const char *address, const char *name, int sign) {
  char error[APPS_TEXT_MAX];
  struct pawl_session *own = open_listening(address);
  if (write(sign, "w", 1) != 1) return 1;
  pawl_status status = pawl_linear_work(own, name, PATIENCE, error);
  pawl_session_close(own, PATIENCE);
  return status == PAWL_OK ? 0 : 1;
}

/* After so many rounds: at once, or so much later from a thread of its own, wherever training may be then. */
static uint64_t kill_at;
static useconds_t kill_after;
static pthread_t killer;
static bool has_killer, has_killed;

static void *kill_later(void *context) {
  (void)context;
  usleep(kill_after);
  kill(pids[0], SIGKILL);
  return NULL;
}

static void kill_one(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0 || progress->round != kill_at || has_killer || has_killed) return;
  if (kill_after == 0) has_killed = kill(pids[0], SIGKILL) == 0;
  if (!has_killed) has_killer = pthread_create(&killer, NULL, kill_later, NULL) == 0;
}

/* Every worker that was not killed ends well. */
static void reap(void) {
  if (has_killer) pthread_join(killer, NULL);
  has_killer = has_killed = false;
  for (size_t i = 0; i < pid_count; i++) {
    int status = 0;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    if (i > 0) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  pid_count = 0;
  fcntl(signs[0], F_SETFL, O_NONBLOCK); /* signs that nobody waited for */
  char bytes[PROCESSES];
  ssize_t left = read(signs[0], bytes, sizeof bytes);
  (void)left;
  fcntl(signs[0], F_SETFL, 0);
}

/* To the weights of the features that were trained on. */
static void map_back(void) {
  for (size_t j = 1; scale && j <= rows.features; j++) outcome.w[0][j] *= by[j];
}

#define RATE 0.004 /* of gradient steps */
enum { STEPS = 8 };

static enum pawl_linear_method chosen =
    PAWL_LINEAR_METHOD_BLOCKS; /* of the logistic loss; for the hinge: AUTO has one worker do it */

static pawl_status train_and_kill(const struct problem *problem, const char *name, enum pawl_on_loss on_loss,
                                  uint32_t tau) {
  begin_options(&options, problem, &point, &path, &outcome);
  options.job = job = name;
  options.workers = options.workers_most = 2;
  options.start_worker = launch;
  options.on_loss = on_loss;
  options.scale = scale;
  if (chosen != PAWL_LINEAR_METHOD_BLOCKS) options.method = chosen;
  if (chosen == PAWL_LINEAR_METHOD_SUBGRADIENT) {
    options.rate = RATE;
    options.rounds = STEPS;
  }
  options.progress = kill_one;
  options.tau = tau;
  options.tolerance = problem->loss == PAWL_LINEAR_HINGE ? 1e-3 : 1e-4; /* some rounds after the blow */
  if (options.rounds) options.tolerance = 1e-15;                        /* all of them */
  pawl_status status = pawl_linear_train(session, &options, NULL, &outcome.last, outcome.error);
  reap();
  return status;
}

static void check_killed_after(const struct problem *problem, const char *name, enum pawl_on_loss on_loss, uint32_t tau,
                               double best) {
  pawl_status status = train_and_kill(problem, name, on_loss, tau);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  assert_string_equal(outcome.last.why, "converged");
  /* a quick machine may be done before a late blow */
  assert_in_range(outcome.last.workers_lost, kill_after == 0, 1);
  assert_int_equal(outcome.last.rows, rows.count);
  assert_int_equal(strstr(outcome.told, "was lost") != NULL, outcome.last.workers_lost);
  map_back();
  check_model(problem, &outcome, 0, best, 1e-3);
}

/* At once, and later: in the middle of this round or of another, at each call another moment. */
static void check_killed(const struct problem *problem, const char *name, enum pawl_on_loss on_loss, uint32_t tau) {
  static const useconds_t delays[] = {1500, 300, 5000};
  static size_t calls;
  double best = problem->loss == PAWL_LINEAR_HINGE ? solve_hinge(problem, w) : solve(problem, w);
  kill_at = 2;
  kill_after = 0;
  check_killed_after(problem, name, on_loss, tau, best);
  kill_after = delays[calls++ % 3];
  check_killed_after(problem, name, on_loss, tau, best);
}

static const struct problem logistic = {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};
static const struct problem hinge = {.rows = &rows, .loss = PAWL_LINEAR_HINGE, .l2 = 5};

static void test_a_worker_that_is_killed_is_replaced(void **state) {
  (void)state;
  check_killed(&logistic, "replaced", PAWL_LOSS_REPLACE, 0);
  assert_non_null(strstr(outcome.told, "joined"));
}

static void test_a_worker_that_is_killed_leaves_its_rows_to_the_others(void **state) {
  (void)state;
  check_killed(&logistic, "continued", PAWL_LOSS_CONTINUE, 0);
}

static void test_a_worker_that_is_killed_with_steps_under_way(void **state) {
  (void)state;
  check_killed(&logistic, "delayed", PAWL_LOSS_REPLACE, 4);
}

static void test_the_multipliers_of_a_killed_worker_live_on(void **state) {
  (void)state;
  check_killed(&hinge, "dual-replaced", PAWL_LOSS_REPLACE, 0);
  check_killed(&hinge, "dual-continued", PAWL_LOSS_CONTINUE, 2);
}

/* The worker that has all rows: another one is started in its place, also where the others were to go on
 * without it. */
static void test_a_worker_that_has_all_rows_of_the_hinge_is_replaced(void **state) {
  (void)state;
  double best = solve_hinge(&hinge, w);
  chosen = PAWL_LINEAR_METHOD_AUTO;
  kill_at = 2;
  kill_after = 0;
  check_killed_after(&hinge, "alone-replaced", PAWL_LOSS_REPLACE, 0, best);
  assert_int_equal(outcome.last.workers_lost, 1);
  assert_non_null(strstr(outcome.told, "one worker of 2 trains on all rows"));
  check_killed_after(&hinge, "alone-continued", PAWL_LOSS_CONTINUE, 0, best);
  assert_int_equal(outcome.last.workers_lost, 1);
  chosen = PAWL_LINEAR_METHOD_BLOCKS;
}

/* A gradient that lacks the part of a worker is no step, and neither is what that worker pushes too late. */
static void test_gradient_steps_are_the_same_whoever_is_killed(void **state) {
  (void)state;
  static const useconds_t delays[] = {0, 700, 2500};
  double serial[FEATURES_MOST + 1];
  take_steps(&logistic, RATE, STEPS, serial);
  chosen = PAWL_LINEAR_METHOD_SUBGRADIENT;
  kill_at = 2;
  for (size_t i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "gradient%zu", i);
    kill_after = delays[i];
    pawl_status status = train_and_kill(&logistic, name, i == 1 ? PAWL_LOSS_CONTINUE : PAWL_LOSS_REPLACE, 0);
    if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
    assert_in_range(outcome.last.workers_lost, kill_after == 0, 1);
    check_stepped(&rows, outcome.w[0], serial);
  }
  chosen = PAWL_LINEAR_METHOD_BLOCKS;
}

/* Whoever takes over rows divides them by the same. */
static const struct problem scaled_logistic = {.rows = &scaled, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true};

static void test_rows_of_a_killed_worker_are_scaled_alike(void **state) {
  (void)state;
  scale = PAWL_LINEAR_SCALE_MAX;
  check_killed(&scaled_logistic, "scaled-replaced", PAWL_LOSS_REPLACE, 0);
  check_killed(&scaled_logistic, "scaled-continued", PAWL_LOSS_CONTINUE, 0);
  scale = PAWL_LINEAR_SCALE_NONE;
}

static void test_a_job_that_is_to_stop_hands_out_what_it_has(void **state) {
  (void)state;
  kill_at = 2;
  kill_after = 0;
  assert_int_equal(train_and_kill(&logistic, "stopped", PAWL_LOSS_STOP, 0), PAWL_NODE_GONE);
  assert_int_equal(outcome.models, 1);
  double zeros[FEATURES_MOST + 1] = {0};
  assert_true(objective_of(&logistic, outcome.w[0]) < objective_of(&logistic, zeros));
  assert_true(outcome.error[0] != 0);
}

/* --- workers that come later ---------------------------------------------------------------------------- */

static void await_signs(size_t count) {
  char byte;
  for (size_t i = 0; i < count; i++) assert_int_equal(read(signs[0], &byte, 1), 1);
}

/* Rounds take their time until the newcomer is in. */
static void hire_one(void *context, const struct pawl_linear_progress *progress) {
  const struct outcome *is = context;
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0 || progress->round < 2) return;
  if (pid_count == 1) {
    launch(NULL);
    await_signs(2);
  }
  /* Within a few rounds of those that there are; on a busy machine it takes longer, and so do they. */
  if (!strstr(is->told, "2 now")) usleep(progress->round < 10 ? 200000 : 2000000);
}

/* The second comes after two rounds. Its rows have been the first one's until then. */
static void check_joined(const struct problem *problem, const char *name, uint32_t tau) {
  double best = problem->loss == PAWL_LINEAR_HINGE ? solve_hinge(problem, w) : solve(problem, w);
  begin_options(&options, problem, &point, &path, &outcome);
  options.job = job = name;
  options.workers_most = 2;
  options.start_worker = launch;
  options.progress = hire_one;
  options.scale = scale;
  options.tau = tau;
  options.tolerance = 1e-9;
  options.rounds = 40;
  pawl_status status = pawl_linear_train(session, &options, NULL, &outcome.last, outcome.error);
  reap();
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  assert_non_null(strstr(outcome.told, "2 now"));
  assert_non_null(strstr(outcome.told, "moved to"));
  map_back();
  check_model(problem, &outcome, 0, best, 1e-3);
}

static void test_a_worker_that_joins_in_the_middle_scales_its_share(void **state) {
  (void)state;
  scale = PAWL_LINEAR_SCALE_MAX;
  check_joined(&scaled_logistic, "joined-scaled", 0);
  scale = PAWL_LINEAR_SCALE_NONE;
}

static void test_a_worker_that_joins_in_the_middle_takes_its_share(void **state) {
  (void)state;
  check_joined(&logistic, "joined", 0);
  check_joined(&logistic, "joined-late", 4);
  check_joined(&hinge, "joined-dual", 0);
}

/* --- servers -------------------------------------------------------------------------------------------- */

static void kill_server(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0 || progress->round != 2) return;
  pid_t server = find_server();
  assert_true(server > 0);
  assert_int_equal(kill(server, SIGKILL), 0);
}

static void check_served(const struct problem *problem, uint32_t tau) {
  double best = problem->loss == PAWL_LINEAR_HINGE ? solve_hinge(problem, w) : solve(problem, w);
  begin_options(&options, problem, &point, &path, &outcome);
  options.progress = kill_server;
  options.tau = tau;
  options.tolerance = problem->loss == PAWL_LINEAR_HINGE ? 1e-3 : 1e-4;
  must_train(&options, 2, &outcome);
  assert_string_equal(outcome.last.why, "converged");
  assert_int_equal(outcome.last.workers_lost, 0);
  check_model(problem, &outcome, 0, best, 1e-3);
}

/* A server dies between two steps: each of them is still taken once. */
static void check_served_steps(void) {
  double serial[FEATURES_MOST + 1];
  take_steps(&logistic, RATE, STEPS, serial);
  begin_options(&options, &logistic, &point, &path, &outcome);
  options.method = PAWL_LINEAR_METHOD_SUBGRADIENT;
  options.progress = kill_server;
  options.rate = RATE;
  options.rounds = STEPS;
  options.tolerance = 1e-15;
  must_train(&options, 2, &outcome);
  check_stepped(&rows, outcome.w[0], serial);
}

static void test_a_server_that_is_killed_has_a_replica(void **state) {
  (void)state;
  check_served(&logistic, 0);
  check_served(&logistic, 4);
  check_served(&hinge, 0);
  check_served_steps();
}

int main(int count, char **words) {
  if (count == 4) return be_worker(words[1], words[2], atoi(words[3]));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_worker_that_is_killed_is_replaced),
      cmocka_unit_test(test_a_worker_that_is_killed_leaves_its_rows_to_the_others),
      cmocka_unit_test(test_a_worker_that_is_killed_with_steps_under_way),
      cmocka_unit_test(test_the_multipliers_of_a_killed_worker_live_on),
      cmocka_unit_test(test_a_worker_that_has_all_rows_of_the_hinge_is_replaced),
      cmocka_unit_test(test_gradient_steps_are_the_same_whoever_is_killed),
      cmocka_unit_test(test_rows_of_a_killed_worker_are_scaled_alike),
      cmocka_unit_test(test_a_job_that_is_to_stop_hands_out_what_it_has),
      cmocka_unit_test(test_a_worker_that_joins_in_the_middle_takes_its_share),
      cmocka_unit_test(test_a_worker_that_joins_in_the_middle_scales_its_share),
      cmocka_unit_test(test_a_server_that_is_killed_has_a_replica),
  };
  return cmocka_run_group_tests_name("apps.linear.lost", tests, begin, close_cluster);
}
