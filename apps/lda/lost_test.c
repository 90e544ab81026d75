/* cost: 15
 *
 * Trainings whose workers and servers are processes that are killed in the middle: afterwards every count is
 * exact. */
#include <pthread.h>

#include "apps/lda/train_test.h"

static struct corpus corpus;
static const char *path;
static struct pawl_lda_options options;
static struct outcome outcome;

static int begin(void **state) {
  (void)state;
  if (open_cluster_of(4, 1)) return -1; /* two servers are to die, one after the other */
  draw_corpus(&corpus, 2000, 3);
  path = corpus.path;
  return 0;
}

/* --- blows ---------------------------------------------------------------------------------------------- */

/* From a thread of its own, wherever the training may be then: so many workers one after the other, each
 * after a pause that is drawn. */
struct blows {
  pthread_t thread;
  struct lda_random random;
  unsigned workers, servers;
  useconds_t pause;
  bool only_stops; /* workers, until they are taken for dead; then they go on */
  volatile bool is_over, has_begun;
};

static struct blows blows;

/* Returns true if the training has said this of the worker. */
static bool is_said(pid_t pid, const char *what) {
  char start[64];
  snprintf(start, sizeof start, "worker %d at ", (int)pid);
  for (const char *line = strstr(outcome.told, start); line; line = strstr(line + 1, start)) {
    const char *end = strchr(line, '\n'), *found = strstr(line, what);
    if (end && found && found < end) return true;
  }
  return false;
}

/* The scheduler does not replace a worker that dies before it has joined, and the test would wait for ever. */
static bool has_joined(pid_t pid) { return is_said(pid, "joined"); }

static void strike_down(pid_t pid) {
  if (!blows.only_stops) {
    kill(pid, SIGKILL);
    return;
  }
  kill(pid, SIGSTOP);
  while (!is_said(pid, "was lost") && !blows.is_over) usleep(10000);
  kill(pid, SIGCONT);
}

/* One that is alive, and not always the same. */
static void kill_a_worker(void) {
  size_t first = lda_draw(&blows.random) % pid_count;
  for (size_t i = 0; i < pid_count; i++) {
    size_t at = (first + i) % pid_count;
    if (was_killed[at] || !has_joined(pids[at])) continue;
    was_killed[at] = true;
    strike_down(pids[at]);
    return;
  }
}

static void *strike(void *context) {
  (void)context;
  for (unsigned i = 0; i < blows.workers + blows.servers && !blows.is_over; i++) {
    usleep(blows.pause / 2 + (useconds_t)(lda_draw(&blows.random) % blows.pause));
    if (blows.is_over) break;
    if (i < blows.servers)
      kill(find_server(), SIGKILL);
    else
      kill_a_worker();
  }
  return NULL;
}

static bool is_one_lost(void) {
  for (size_t i = 0; i < pid_count; i++)
    if (is_said(pids[i], "was lost")) return true;
  return false;
}

/* Sweeps take their time until a worker is lost: a busy machine may run the thread that strikes late. */
static void strike_once_sampling(void *context, const struct pawl_lda_progress *progress) {
  (void)context;
  if (strcmp(progress->stage, "sampling") != 0) return;
  if (blows.has_begun && !is_one_lost()) usleep(blows.pause * 2);
  if (!blows.has_begun) blows.has_begun = pthread_create(&blows.thread, NULL, strike, NULL) == 0;
}

static void train_under_blows(const char *name, enum pawl_on_loss on_loss, unsigned workers, unsigned servers,
                              bool only_stops, uint64_t seed) {
  begin_options(&options, &corpus, &path, name, &outcome);
  blows = (struct blows){
      .random = {seed}, .workers = workers, .servers = servers, .pause = 40000, .only_stops = only_stops};
  options.workers = options.workers_most = 3;
  options.on_loss = on_loss;
  options.sweeps = 20; /* the blows fall in the first ones */
  options.seed = seed;
  options.progress = strike_once_sampling;
  pawl_status status = pawl_lda_train(session, &options, &outcome.model, &outcome.result, outcome.error);
  blows.is_over = true;
  if (blows.has_begun) pthread_join(blows.thread, NULL);
  reap(false);
  if (status) fail_msg("%s: %s\n%s", pawl_status_name(status), outcome.error, outcome.told);
  check_exact(&corpus, &outcome);
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static void test_counts_are_exact_when_workers_are_killed_and_replaced(void **state) {
  (void)state;
  unsigned lost = 0;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    train_under_blows("killed", PAWL_LOSS_REPLACE, 4, 0, false, seed);
    lost += outcome.result.workers_lost;
  }
  assert_in_range(lost, 1, 8);
  assert_non_null(strstr(outcome.told, "joined"));
}

static void test_counts_are_exact_when_others_take_over(void **state) {
  (void)state;
  train_under_blows("fewer", PAWL_LOSS_CONTINUE, 2, 0, false, 4);
  assert_in_range(outcome.result.workers_lost, 1, 2);
}

static void test_counts_are_exact_when_servers_and_workers_are_killed(void **state) {
  (void)state;
  train_under_blows("both", PAWL_LOSS_REPLACE, 3, 1, false, 5);
  train_under_blows("again", PAWL_LOSS_REPLACE, 3, 1, false, 6);
  assert_in_range(outcome.result.workers_lost, 1, 3);
}

/* It had pushes under way, and goes on while others work on its pieces. */
static void test_counts_are_exact_when_a_worker_was_only_stopped(void **state) {
  (void)state;
  train_under_blows("stopped", PAWL_LOSS_CONTINUE, 1, 0, true, 7);
  assert_int_equal(outcome.result.workers_lost, 1);
  train_under_blows("woken", PAWL_LOSS_REPLACE, 2, 0, true, 8);
  assert_in_range(outcome.result.workers_lost, 1, 2);
}

int main(int count, char **words) {
  if (count == 3) return be_worker(words[1], words[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_are_exact_when_workers_are_killed_and_replaced),
      cmocka_unit_test(test_counts_are_exact_when_others_take_over),
      cmocka_unit_test(test_counts_are_exact_when_servers_and_workers_are_killed),
      cmocka_unit_test(test_counts_are_exact_when_a_worker_was_only_stopped),
  };
  int failed = cmocka_run_group_tests_name("apps.lda.lost", tests, begin, close_cluster);
  pawl_lda_model_destroy(outcome.model);
  return failed;
}
