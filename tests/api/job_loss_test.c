/* Jobs whose workers and schedulers are processes that are killed, and stopped and continued. */
#include "job_scene.h"

#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>

static int signs[2]; /* a pipe: processes write a byte to it when they are at work */

/* This program, in another role. */
static pid_t launch(const char *role, const char *job) {
  char sign[16];
  snprintf(sign, sizeof sign, "%d", signs[1]);
  pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
  execl("/proc/self/exe", "job_test", role, pawl_session_address(base), job, sign, (char *)NULL);
  _exit(127);
}

static void await_sign(void) {
  char byte;
  assert_int_equal(read(signs[0], &byte, 1), 1);
}

static void give_sign(void) {
  if (write(signs[1], "w", 1) != 1) _exit(1);
}

static int reap(pid_t pid) {
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

enum { HOLD = 4711 }; /* a round in which processes work until they are told otherwise */

static pawl_status work_and_sign(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  struct hand *hand = context;
  uint32_t number = 0;
  if (size == sizeof number) memcpy(&number, argument, size);
  atomic_store(&hand->hold, number == HOLD);
  if (number == HOLD) give_sign();
  return work(worker, context, argument, size);
}

static int be_worker(const char *address, const char *job) {
  static struct hand hand;
  struct pawl_worker_calls own = calls;
  own.work = work_and_sign;
  struct pawl_session *mine = open_listening(address);
  pawl_status status = pawl_worker_run(mine, job, &own, &hand, PATIENCE);
  must(pawl_session_close(mine, PATIENCE));
  return status == PAWL_OK ? 10 + hand.begun : 1;
}

static int be_scheduler(const char *address, const char *job) {
  struct pawl_round *round;
  uint32_t hold = HOLD;
  session = open_listening(address);
  struct pawl_job *mine = create_job(job, 2, PAWL_LOSS_STOP, NULL);
  give_sign();
  return pawl_job_round(mine, &hold, sizeof hold, PAWL_FOREVER, &round) ? 1 : 2;
}

/* Joins a group and leaves it, and is then stopped until it is taken for dead: it must not come back into the group. */
static int be_leaver(const char *address, const char *name) {
  struct pawl_group *group, *other;
  struct pawl_session *own = open_listening(address);
  uint64_t before = pawl_session_node(own).id;
  must(pawl_group_join(own, name, 0, PATIENCE, &group));
  pawl_group_leave(group);
  give_sign();
  while (pawl_session_node(own).id == before || pawl_session_node(own).id == 0) nap(1000000);
  must(pawl_group_join(own, "left/other", 0, PATIENCE,
                       &other)); /* all that was asked of the manager before has been done */
  give_sign();
  return pause();
}

static bool has_sign_within(time_t seconds) {
  struct timeval limit = {seconds, 0};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(signs[0], &set);
  return select(signs[0] + 1, &set, NULL, NULL, &limit) > 0;
}

/* Stops a process until the cluster has declared it dead. On a busy machine that may take several attempts, each longer. */
static void stop_until_dead(pid_t process) {
  for (int attempt = 1;; attempt++) {
    halt(process);
    nap(3 * attempt * PAWL_SECOND);
    assert_int_equal(kill(process, SIGCONT), 0);
    if (has_sign_within(10)) return;
  }
}

static void test_who_has_left_a_group_does_not_come_back_by_itself(void **state) {
  (void)state;
  struct pawl_group *group;
  must(pawl_group_join(session, "left/one", 0, PATIENCE, &group));
  pid_t leaver = launch("leaver", "left/one");
  await_sign();
  stop_until_dead(leaver);
  await_sign();
  must(pawl_group_barrier(group, PATIENCE)); /* it would wait for a member that never comes */
  assert_int_equal(pawl_group_size(group), 1);
  assert_int_equal(kill(leaver, SIGKILL), 0);
  reap(leaver);
  pawl_group_leave(group);
}

/* A round that a process is in the middle of when it is killed. */
static void kill_in_mid_round(struct pawl_job *job, pid_t victim, int signal) {
  struct pawl_round *round = NULL;
  uint32_t hold = HOLD;
  pawl_status status = pawl_job_round(job, &hold, sizeof hold, 0, &round);
  struct timespec begun, ended;
  fd_set set;
  for (int ready = 0; !ready;) {
    struct timeval moment = {0, 1000};
    assert_int_equal(status, PAWL_TIMED_OUT);
    FD_ZERO(&set);
    FD_SET(signs[0], &set);
    ready = select(signs[0] + 1, &set, NULL, NULL, &moment) > 0;
    if (!ready) status = pawl_job_await(job, 1000000, &round);
  }
  await_sign();
  clock_gettime(CLOCK_MONOTONIC, &begun);
  assert_int_equal(kill(victim, signal), 0);
  if (status == PAWL_TIMED_OUT) status = pawl_job_await(job, PATIENCE, &round);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  print_message("lost after %.1f ms\n",
                (double)(ended.tv_sec - begun.tv_sec) * 1e3 + (double)(ended.tv_nsec - begun.tv_nsec) / 1e6);
  if (status == PAWL_OK) {
    struct pawl_report report;
    int lost = 0;
    assert_false(pawl_round_is_whole(round));
    for (size_t i = 0; i < pawl_round_count(round); i++) {
      must(pawl_round_get(round, i, &report));
      assert_int_equal(report.status, report.pid == (uint64_t)victim ? PAWL_NODE_GONE : PAWL_OK);
      lost += report.status != PAWL_OK;
    }
    assert_int_equal(lost, 1);
    pawl_round_destroy(round);
  } else {
    must_fail(status, PAWL_NODE_GONE, "was lost");
  }
}

static void test_without_a_lost_worker_the_others_go_on(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[2] = {0};
  struct pawl_job *job = create_job("without", 3, PAWL_LOSS_CONTINUE, &seen);
  pid_t victim = launch("worker", "without");
  for (int i = 0; i < 2; i++) hire(&hands[i], "without");
  do_round(job, 1, 3);
  kill_in_mid_round(job, victim, SIGKILL);
  do_round(job, 2, 2);
  do_round(job, 3, 2);
  assert_int_equal(seen.count[PAWL_JOB_LOST], 1);
  assert_int_equal(seen.moved, 4);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
  reap(victim);
}

static void test_a_lost_worker_is_replaced(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[2] = {0};
  struct pawl_job *job = create_job("again", 2, PAWL_LOSS_REPLACE, &seen);
  pid_t victim = launch("worker", "again");
  hire(&hands[0], "again");
  do_round(job, 1, 2);
  kill_in_mid_round(job, victim, SIGKILL);
  hire(&hands[1], "again"); /* the round waits for it */
  do_round(job, 2, 2);
  assert_int_equal(seen.count[PAWL_JOB_LOST], 1);
  assert_int_equal(seen.count[PAWL_JOB_JOINED], 3);
  assert_int_equal(seen.moved, 6);
  assert_int_equal(hands[0].took, 6);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
  reap(victim);
}

static void test_a_lost_worker_can_be_the_end_of_the_job(void **state) {
  (void)state;
  struct hand hand = {0};
  struct pawl_round *round;
  struct pawl_job *job = create_job("over", 2, PAWL_LOSS_STOP, NULL);
  pid_t victim = launch("worker", "over");
  hire(&hand, "over");
  do_round(job, 1, 2);
  kill_in_mid_round(job, victim, SIGKILL);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_NODE_GONE, "was lost");
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK);
  reap(victim);
}

/* Its place is filled when it wakes up: by itself, under another number. */
static void test_a_worker_that_was_taken_for_dead_joins_anew(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hand = {0};
  struct pawl_job *job = create_job("asleep", 2, PAWL_LOSS_CONTINUE, &seen);
  pid_t sleeper = launch("worker", "asleep");
  hire(&hand, "asleep");
  do_round(job, 1, 2);
  kill_in_mid_round(job, sleeper, SIGSTOP);
  do_round(job, 2, 1);
  assert_int_equal(kill(sleeper, SIGCONT), 0);
  must(pawl_job_resize(job, 2, 2));
  do_round(job, 3, 2);
  do_round(job, 4, 2);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK);
  int status = reap(sleeper);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 12); /* it ended well, and had begun twice */
}

/* --- workers that stay dead ----------------------------------------------------------------------------------------------- */

#define LATE_VECTOR "late/counts"
enum { LATE_KEYS = 64 };

static uint64_t late_keys[LATE_KEYS];
static int32_t late_ones[LATE_KEYS], late_zeros[LATE_KEYS];

static void fill_late(void) {
  for (uint64_t key = 0; key < LATE_KEYS; key++) late_keys[key] = key, late_ones[key] = 1;
}

static pawl_status push_ones(struct pawl_vector *vector, struct pawl_task **task_out) {
  return pawl_vector_push(vector, pawl_at_keys(late_keys, LATE_KEYS), late_ones, task_out);
}

struct zealot {
  struct hand hand;
  struct pawl_vector *vector;
  pawl_status first; /* failure of a push */
};

/* Pushes as fast as it can, and so is stopped in the middle of it. */
static pawl_status push_and_sign(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  struct zealot *zealot = context;
  uint32_t number = 0;
  if (size == sizeof number) memcpy(&number, argument, size);
  if (number != HOLD) return work(worker, &zealot->hand, argument, size);
  for (int batch = 0; zealot->first == PAWL_OK; batch++) {
    if (batch == 1) give_sign();
    struct pawl_task *tasks[16];
    size_t count = 0;
    while (count < 16 && !zealot->first) {
      zealot->first = push_ones(zealot->vector, &tasks[count]);
      count += !zealot->first;
    }
    for (size_t i = 0; i < count; i++) {
      pawl_status status = pawl_task_wait(tasks[i], PATIENCE);
      if (status && !zealot->first) zealot->first = status;
      pawl_task_release(tasks[i]);
    }
  }
  return zealot->first;
}

/* Exit codes: 20 if all is as it should be, else which is not. */
static int be_zealot(const char *address, const char *job) {
  static struct zealot zealot;
  struct pawl_session_options options;
  struct pawl_session *own;
  struct pawl_vector *again;
  struct pawl_group *group;
  struct pawl_worker_calls its = calls;
  its.work = push_and_sign;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  options.stays_dead = true;
  must(pawl_session_open(&options, &own));
  must(pawl_vector_open(own, LATE_VECTOR, PATIENCE, &zealot.vector));
  fill_late();
  pawl_status status = pawl_worker_run(own, job, &its, &zealot, PATIENCE);
  give_sign();
  if (status != PAWL_NODE_GONE || !strstr(pawl_error_text(), "declared it dead")) return 1;
  if (zealot.first != PAWL_NODE_GONE || zealot.hand.ended != 1) return 2;
  if (push_ones(zealot.vector, NULL) != PAWL_NODE_GONE) return 3;
  if (pawl_vector_open(own, "late/other", PATIENCE, &again) != PAWL_NODE_GONE) return 4;
  if (pawl_group_join(own, "late/group", 1, PATIENCE, &group) != PAWL_NODE_GONE) return 5;
  if (pawl_worker_run(own, job, &its, &zealot, PATIENCE) != PAWL_NODE_GONE) return 6;
  if (pawl_session_node(own).id != 0) return 7;
  pawl_status flushed = pawl_session_flush(own, PATIENCE), closed = pawl_session_close(own, PATIENCE);
  return (flushed && flushed != PAWL_NODE_GONE) || (closed && closed != PAWL_NODE_GONE) ? 8 : 20;
}

static struct pawl_vector *late_vector(void) {
  static struct pawl_vector *vector;
  if (!vector) vector = create(session, LATE_VECTOR, PAWL_I32, LATE_KEYS);
  fill_late();
  return vector;
}

/* By pushes of zeros, as whoever takes over reads: what comes back is what is there to stay. */
static void read_counts(struct pawl_vector *vector, int32_t counts_out[LATE_KEYS]) {
  struct pawl_task *task;
  must(pawl_vector_pushpull(vector, pawl_at_keys(late_keys, LATE_KEYS), late_zeros, counts_out, &task));
  must(pawl_task_wait(task, PATIENCE));
  pawl_task_release(task);
}

static void test_nothing_of_a_worker_that_stays_dead_is_applied_late(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hand = {0};
  int32_t read[LATE_KEYS], later[LATE_KEYS];
  struct pawl_vector *vector = late_vector();
  struct pawl_job *job = create_job("zealous", 2, PAWL_LOSS_CONTINUE, &seen);
  pid_t zealot = launch("zealot", "zealous");
  hire(&hand, "zealous");
  do_round(job, 1, 2);
  kill_in_mid_round(job, zealot, SIGSTOP);
  do_round(job, 2, 1); /* its pieces have another owner, who could read now */
  assert_int_equal(seen.moved, 6);
  read_counts(vector, read);
  assert_true(read[0] > 0);
  assert_int_equal(kill(zealot, SIGCONT), 0);
  await_sign();
  int status = reap(zealot);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 20);
  read_counts(vector, later);
  assert_memory_equal(read, later, sizeof read);
  do_round(job, 3, 1);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK);
}

/* A scheduler that is stopped until it is taken for dead has lost its workers, which are well. 30: it has noticed. */
static int be_sleeper(const char *address, const char *job) {
  struct pawl_round *round;
  struct pawl_report report;
  uint32_t hold = HOLD;
  session = open_listening(address);
  struct pawl_job *mine = create_job(job, 1, PAWL_LOSS_CONTINUE, NULL);
  give_sign();
  must(pawl_job_round(mine, &hold, sizeof hold, PATIENCE, &round));
  must(pawl_round_get(round, 0, &report));
  pawl_status status = report.status;
  pawl_round_destroy(round);
  _exit(status == PAWL_NODE_GONE ? 30 : 1); /* its session is open, and joining again */
}

/* They have pieces, and are pushing: the cluster takes them for dead because the scheduler says so. */
static void test_workers_that_a_scheduler_has_lost_sight_of_are_declared_dead(void **state) {
  (void)state;
  (void)late_vector();
  pid_t sleeper = launch("sleeper", "slept");
  await_sign();
  pid_t zealot = launch("zealot", "slept");
  await_sign();
  stop_until_dead(sleeper);
  await_sign();
  int status = reap(zealot);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 20);
  status = reap(sleeper);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 30);
}

static void test_workers_notice_that_their_scheduler_is_gone(void **state) {
  (void)state;
  struct hand hands[2] = {0};
  pid_t scheduler = launch("scheduler", "orphan");
  await_sign();
  for (int i = 0; i < 2; i++) hire(&hands[i], "orphan");
  while (atomic_load(&hands[0].working) == 0) nap(1000000);
  struct timespec begun, ended;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  assert_int_equal(kill(scheduler, SIGKILL), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(discharge(&hands[i]), PAWL_NODE_GONE);
    assert_int_equal(hands[i].ended, 1);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  print_message("noticed after %.1f ms, sessions closed\n",
                (double)(ended.tv_sec - begun.tv_sec) * 1e3 + (double)(ended.tv_nsec - begun.tv_nsec) / 1e6);
  reap(scheduler);
  /* The name is free again. */
  pawl_job_end(create_job("orphan", 1, PAWL_LOSS_STOP, NULL));
}

int main(int argc, char **argv) {
  if (argc == 5) {
    signs[1] = atoi(argv[4]);
    if (strcmp(argv[1], "leaver") == 0) return be_leaver(argv[2], argv[3]);
    if (strcmp(argv[1], "sleeper") == 0) return be_sleeper(argv[2], argv[3]);
    if (strcmp(argv[1], "zealot") == 0) return be_zealot(argv[2], argv[3]);
    return strcmp(argv[1], "worker") == 0 ? be_worker(argv[2], argv[3]) : be_scheduler(argv[2], argv[3]);
  }
  if (pipe(signs) != 0) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_who_has_left_a_group_does_not_come_back_by_itself),
      cmocka_unit_test(test_without_a_lost_worker_the_others_go_on),
      cmocka_unit_test(test_a_lost_worker_is_replaced),
      cmocka_unit_test(test_a_lost_worker_can_be_the_end_of_the_job),
      cmocka_unit_test(test_a_worker_that_was_taken_for_dead_joins_anew),
      cmocka_unit_test(test_nothing_of_a_worker_that_stays_dead_is_applied_late),
      cmocka_unit_test(test_workers_that_a_scheduler_has_lost_sight_of_are_declared_dead),
      cmocka_unit_test(test_workers_notice_that_their_scheduler_is_gone),
  };
  return cmocka_run_group_tests_name("api.job_loss", tests, open_cluster, close_cluster);
}
