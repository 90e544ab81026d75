/* cost: 15
 *
 * Newton steps whose workers or servers are lost at a point of a round that is chosen, not met by chance: a
 * worker of this test's own obeys like any other until an order comes on which it kills itself, or a
 * server. */
#define FEATURES_MOST 200
#include "apps/linear/train/train_test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct rows rows, dense;
static struct pawl_linear_options options;
static struct pawl_linear_point point;
static const char *path;
static struct outcome outcome;
static double w[FEATURES_MOST + 1];

static int begin(void **state) {
  (void)state;
  if (open_cluster_of(6, 1)) return -1; /* four of them are to die, one after the other */
  draw_rows(&rows, "rows", 400, 40, 1, false, 11);
  draw_dense(&dense, "dense", 300, 200, 2, 12);
  return 0;
}

/* --- a worker that strikes ------------------------------------------------------------------------------ */

enum blow { WHEN_TOLD, HALF_WAY, BEFORE_THE_REPLY };

struct striker {
  struct linear_worker is;
  enum linear_do what; /* on the order of this kind, */
  int orders;          /* with this number of them, */
  enum blow blow;
  bool hits_server; /* or itself */
};

static void strike(const struct striker *striker) {
  pid_t victim = striker->hits_server ? find_server() : getpid();
  if (victim > 0) kill(victim, SIGKILL);
}

static pawl_status hear_spec(struct pawl_worker *handle, void *context, const void *bytes, size_t size) {
  struct linear_worker *worker = &((struct striker *)context)->is;
  worker->worker = handle;
  worker->session = pawl_worker_session(handle);
  if (!linear_spec_read(bytes, size, &worker->spec)) return PAWL_MISMATCH;
  return pawl_data_open((const char *const *)worker->spec.paths, worker->spec.path_count, &worker->spec.reading,
                        &worker->data);
}

static pawl_status take(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  struct linear_worker *worker = &((struct striker *)context)->is;
  (void)handle;
  return linear_share_take(&worker->share, worker->data, pieces, count, 1);
}

static pawl_status drop(struct pawl_worker *handle, void *context, const struct pawl_range *pieces, size_t count) {
  (void)handle, (void)context, (void)pieces, (void)count;
  return PAWL_OK; /* nobody is lost but this one */
}

static pawl_status open_vector(struct linear_worker *worker, const struct linear_order *order, enum linear_vector which,
                               struct pawl_vector **vector) {
  char name[PAWL_NAME_MAX + 1];
  linear_vector_name(&worker->spec, order, which, name);
  return *vector ? PAWL_OK : pawl_vector_open(worker->session, name, LINEAR_TIMEOUT, vector);
}

/* Derivatives, up to the point of the blow: a gradient without its Hessian is half of them. */
static pawl_status obey(struct striker *striker, struct linear_order *order, struct linear_reply *reply) {
  struct linear_worker *worker = &striker->is;
  if (worker->scatter.size != order->features) linear_scatter_init(&worker->scatter, order->features);
  pawl_status status = open_vector(worker, order, LINEAR_WEIGHTS, &worker->weights);
  if (!status) status = open_vector(worker, order, LINEAR_BIAS, &worker->bias);
  if (!status) status = linear_share_arrange(&worker->share, &worker->scatter);
  bool strikes = order->what == striker->what && --striker->orders == 0;
  if (strikes && striker->blow == WHEN_TOLD) strike(striker);
  if (strikes && striker->blow == HALF_WAY) order->is_curved = false;
  if (!status && order->what == LINEAR_EVALUATE) status = linear_evaluate(worker, order, reply);
  if (!status && order->what == LINEAR_DERIVE) status = linear_derive(worker, order, reply);
  if (!status && order->what == LINEAR_SEARCH) status = linear_search(worker, order, reply);
  if (strikes && striker->blow != WHEN_TOLD) strike(striker);
  return status;
}

static pawl_status work(struct pawl_worker *handle, void *context, const void *argument, size_t size) {
  struct striker *striker = context;
  struct linear_order order;
  struct linear_reply reply = {0};
  if (!linear_order_read(argument, size, &order)) return PAWL_CORRUPT;
  pawl_status status = PAWL_OK;
  if (order.what == LINEAR_DESCRIBE)
    linear_share_count(&striker->is.share, &reply.census);
  else
    status = obey(striker, &order, &reply);
  char *text = status ? NULL : linear_reply_write(&reply);
  if (text) status = pawl_worker_report(handle, text, strlen(text));
  free(text);
  return status;
}

static void finish(struct pawl_worker *handle, void *context) {
  struct linear_worker *worker = &((struct striker *)context)->is;
  (void)handle;
  linear_derived_forget(worker);
  linear_rows_fini(&worker->rows);
  linear_share_fini(&worker->share);
  pawl_vector_close(worker->weights);
  pawl_vector_close(worker->bias);
  pawl_data_close(worker->data);
  linear_spec_fini(&worker->spec);
  memset(worker, 0, sizeof *worker); /* a worker that was declared dead begins anew */
}

static pawl_status work_and_strike(const char *address, const char *job, struct striker *striker) {
  static const struct pawl_worker_calls calls = {hear_spec, take, drop, work, finish};
  struct pawl_session *own = open_listening(address);
  pawl_status status = pawl_worker_run(own, job, &calls, striker, PATIENCE);
  pawl_session_close(own, PATIENCE);
  return status;
}

/* --- workers that are lost ------------------------------------------------------------------------------ */

static const struct problem problems[] = {
    {.rows = &rows, .loss = PAWL_LINEAR_LOGISTIC, .l1 = 1, .bias = true},
    {.rows = &rows, .loss = PAWL_LINEAR_SQUARED_HINGE, .l2 = 0.5, .bias = true},
};

enum { PROCESSES = 8 };

static struct striker next_striker; /* the first process is one; those after it are workers like any other */
static pid_t pids[PROCESSES];
static size_t pid_count;

static pawl_status launch(void *context) {
  (void)context;
  assert_in_range(pid_count, 0, PROCESSES - 1);
  pid_t pid = fork();
  if (pid == 0) {
    char words[3][16];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    snprintf(words[0], sizeof words[0], "%d", pid_count == 0 ? (int)next_striker.what : 0);
    snprintf(words[1], sizeof words[1], "%d", next_striker.orders);
    snprintf(words[2], sizeof words[2], "%d", (int)next_striker.blow);
    execl("/proc/self/exe", "lost_newton_test", pawl_session_address(base), options.job, words[0], words[1], words[2],
          (char *)NULL);
    _exit(127);
  }
  pids[pid_count++] = pid;
  return pid > 0 ? PAWL_OK : PAWL_IO;
}

static int be_worker(char **words) {
  char error[APPS_TEXT_MAX];
  struct striker striker = {
      .what = (enum linear_do)atoi(words[3]), .orders = atoi(words[4]), .blow = (enum blow)atoi(words[5])};
  if (striker.what) return work_and_strike(words[1], words[2], &striker) != PAWL_OK;
  struct pawl_session *own = open_listening(words[1]);
  pawl_status status = pawl_linear_work(own, words[2], PATIENCE, error);
  pawl_session_close(own, PATIENCE);
  return status != PAWL_OK;
}

/* The first one was killed by its own hand, the others end well. */
static void reap(void) {
  for (size_t i = 0; i < pid_count; i++) {
    int status = 0;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    if (i == 0)
      assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
      assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  pid_count = 0;
}

static double best, last_shown;

/* A sum that lacks a worker's part, or has it twice, would show. */
static void check_round(void *context, const struct pawl_linear_progress *progress) {
  count_round(context, progress);
  if (strcmp(progress->stage, "training") != 0) return;
  if (!(progress->objective <= last_shown && progress->objective >= best * (1 - 1e-9)))
    fail_msg("%.9g after %.9g, and the best is %.9g", progress->objective, last_shown, best);
  last_shown = progress->objective;
}

static void begin_newton(const struct problem *problem) {
  begin_options(&options, problem, &point, &path, &outcome);
  best = solve(problem, w);
  last_shown = INFINITY;
  options.progress = check_round;
  options.method = PAWL_LINEAR_METHOD_NEWTON;
  options.tolerance = 1e-6;
}

static void check_lost(const struct problem *problem, enum pawl_on_loss on_loss, enum linear_do what, int orders,
                       enum blow blow) {
  begin_newton(problem);
  next_striker = (struct striker){.what = what, .orders = orders, .blow = blow};
  options.job = "lost";
  options.workers = options.workers_most = 2;
  options.start_worker = launch;
  options.on_loss = on_loss;
  pawl_status status = pawl_linear_train(session, &options, NULL, &outcome.last, outcome.error);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  reap();
  assert_string_equal(outcome.last.why, "converged");
  assert_int_equal(outcome.last.workers_lost, 1);
  assert_int_equal(outcome.last.rows, problem->rows->count);
  check_model(problem, &outcome, 0, best, 1e-6);
}

/* Training of dense rows begins with three rounds without a Hessian. Each of these blows is struck in one of the two
 * tests; the first Hessian is hit in both. */
static void check_early_blows(enum pawl_on_loss on_loss) {
  struct problem problem = {.rows = &dense, .loss = PAWL_LINEAR_LOGISTIC, .l2 = 1, .bias = true};
  if (on_loss == PAWL_LOSS_REPLACE) {
    check_lost(&problem, on_loss, LINEAR_DERIVE, 2, WHEN_TOLD);
  } else {
    check_lost(&problem, on_loss, LINEAR_DERIVE, 3, BEFORE_THE_REPLY);
    check_lost(&problem, on_loss, LINEAR_SEARCH, 2, BEFORE_THE_REPLY);
  }
  check_lost(&problem, on_loss, LINEAR_DERIVE, 4, HALF_WAY); /* the first Hessian */
}

/* Each blow strikes one problem here, and the other one in the test of the other `on_loss`. */
static void check_each_blow(enum pawl_on_loss on_loss) {
  static const struct striker blows[] = {
      {.what = LINEAR_DERIVE, .orders = 1, .blow = HALF_WAY},
      {.what = LINEAR_DERIVE, .orders = 2, .blow = WHEN_TOLD},
      {.what = LINEAR_DERIVE, .orders = 3, .blow = HALF_WAY},
      {.what = LINEAR_DERIVE, .orders = 3, .blow = BEFORE_THE_REPLY},
      {.what = LINEAR_SEARCH, .orders = 2, .blow = BEFORE_THE_REPLY},
      {.what = LINEAR_SEARCH, .orders = 2, .blow = WHEN_TOLD},
  };
  for (size_t i = 0; i < sizeof blows / sizeof *blows; i++)
    check_lost(&problems[(i + (on_loss == PAWL_LOSS_REPLACE)) % 2], on_loss, blows[i].what, blows[i].orders,
               blows[i].blow);
  check_early_blows(on_loss);
}

static void test_a_worker_that_is_lost_in_a_newton_round_is_replaced(void **state) {
  (void)state;
  check_each_blow(PAWL_LOSS_REPLACE);
}

static void test_a_worker_that_is_lost_in_a_newton_round_leaves_its_rows_to_the_others(void **state) {
  (void)state;
  check_each_blow(PAWL_LOSS_CONTINUE);
}

/* --- servers that are lost ------------------------------------------------------------------------------ */

/* Until all that the last server held has two copies again: another one may die only then. */
static void await_copies(void) {
  for (bool is_whole = false; !is_whole;) {
    char *status = NULL;
    must(pawl_session_status(session, PATIENCE, &status));
    is_whole = strstr(status, "\"under_replicated\":0,") != NULL;
    pawl_text_free(status);
    if (!is_whole) usleep(10000);
  }
}

static pawl_status struck;

static void *labour_and_strike(void *context) {
  struck = work_and_strike(pawl_session_address(base), options.job, context);
  return NULL;
}

static void check_served(const struct problem *problem, enum linear_do what, enum blow blow) {
  struct striker striker = {.what = what, .orders = 2, .blow = blow, .hits_server = true};
  struct hand hand = {.job = "served"};
  pthread_t thread;
  await_copies();
  begin_newton(problem);
  options.job = "served";
  options.workers = options.workers_most = 2;
  assert_int_equal(pthread_create(&hand.thread, NULL, labour, &hand), 0);
  assert_int_equal(pthread_create(&thread, NULL, labour_and_strike, &striker), 0);
  pawl_status status = pawl_linear_train(session, &options, NULL, &outcome.last, outcome.error);
  pthread_join(hand.thread, NULL);
  pthread_join(thread, NULL);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  assert_int_equal(hand.outcome, PAWL_OK);
  assert_int_equal(struck, PAWL_OK);
  assert_true(striker.orders <= 0); /* it did strike */
  assert_string_equal(outcome.last.why, "converged");
  assert_int_equal(outcome.last.workers_lost, 0);
  check_model(problem, &outcome, 0, best, 1e-6);
}

static void test_a_server_that_is_lost_in_a_newton_round_has_a_replica(void **state) {
  (void)state;
  check_served(&problems[0], LINEAR_DERIVE, WHEN_TOLD);
  check_served(&problems[1], LINEAR_DERIVE, BEFORE_THE_REPLY);
  check_served(&problems[0], LINEAR_SEARCH, WHEN_TOLD);
  check_served(&problems[1], LINEAR_SEARCH, BEFORE_THE_REPLY);
}

int main(int count, char **words) {
  if (count == 6) return be_worker(words);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_worker_that_is_lost_in_a_newton_round_is_replaced),
      cmocka_unit_test(test_a_worker_that_is_lost_in_a_newton_round_leaves_its_rows_to_the_others),
      cmocka_unit_test(test_a_server_that_is_lost_in_a_newton_round_has_a_replica),
  };
  return cmocka_run_group_tests_name("apps.linear.lost_newton", tests, begin, close_cluster);
}
