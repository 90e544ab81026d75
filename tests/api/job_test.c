/* Jobs on an embedded cluster: a scheduler here, and workers that are threads with a session each, or processes that die. */
#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

static struct pawl_session *session;

static struct pawl_session *open_listening(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  must(pawl_session_open(&options, &opened));
  return opened;
}

static struct pawl_session *base; /* it embeds the cluster, and outlives all others */

static int open_cluster(void **state) {
  (void)state;
  /* Processes find the key in their environment, as they would anywhere. */
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
  base = open_embedded(1, 1);
  session = open_listening(pawl_session_address(base));
  return 0;
}

static int close_cluster(void **state) {
  (void)state;
  must(pawl_session_close(session, PATIENCE));
  must(pawl_session_close(base, PATIENCE));
  return 0;
}

/* --- workers ------------------------------------------------------------------------------------------------------------ */

enum { PIECES = 12 };

/* What a worker reports: which pieces it worked on, and how it saw the round. */
struct report {
  uint32_t argument, rank, count;
  uint64_t tick;
  uint64_t pid;
  uint32_t has[PIECES];
};

/* A worker: what is asked of it besides, by the test. */
struct hand {
  pthread_t thread;
  const char *address, *job;
  bool has[PIECES];
  int begun, ended, took, dropped;
  pawl_status refuse_begin, refuse_take, fail_work;
  int64_t slow_ns;  /* for each piece */
  atomic_bool hold; /* in work, until it is false or the job ends */
  atomic_int working;
  pawl_status outcome;
  char text[256];
};

static pawl_status begin(struct pawl_worker *worker, void *context, const void *spec, size_t size) {
  struct hand *hand = context;
  hand->begun++;
  memset(hand->has, 0, sizeof hand->has);
  if (size != 4 || memcmp(spec, "spec", 4) != 0 || pawl_worker_group(worker)) return PAWL_CORRUPT;
  if (hand->refuse_begin) pawl_worker_say(worker, "there is no %s here", "data");
  return hand->refuse_begin;
}

static pawl_status take(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct hand *hand = context;
  if (hand->refuse_take) pawl_worker_say(worker, "piece 7 cannot be read");
  if (hand->refuse_take) return hand->refuse_take;
  for (size_t i = 0; i < count; i++)
    for (uint64_t k = pieces[i].begin; k < pieces[i].end; k++) {
      if (hand->has[k]) return PAWL_EXISTS;
      hand->has[k] = true;
      hand->took++;
    }
  return PAWL_OK;
}

static pawl_status drop(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct hand *hand = context;
  (void)worker;
  for (size_t i = 0; i < count; i++)
    for (uint64_t k = pieces[i].begin; k < pieces[i].end; k++) {
      if (!hand->has[k]) return PAWL_NOT_FOUND;
      hand->has[k] = false;
      hand->dropped++;
    }
  return PAWL_OK;
}

static void nap(int64_t ns) {
  struct timespec span = {(time_t)(ns / PAWL_SECOND), (long)(ns % PAWL_SECOND)};
  nanosleep(&span, NULL);
}

static pawl_status work(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  struct hand *hand = context;
  struct report report = {.rank = pawl_worker_rank(worker), .count = pawl_worker_count(worker)};
  if (size == sizeof report.argument) memcpy(&report.argument, argument, size);
  report.pid = (uint64_t)getpid();
  report.tick = pawl_group_tick(pawl_worker_group(worker));
  atomic_fetch_add(&hand->working, 1);
  while (atomic_load(&hand->hold) && !pawl_worker_is_ending(worker)) nap(1000000);
  int64_t count = 0;
  for (int i = 0; i < PIECES; i++) count += report.has[i] = hand->has[i];
  if (hand->slow_ns) nap(hand->slow_ns * count);
  pawl_status status = pawl_group_clock(pawl_worker_group(worker), NULL);
  if (!status) status = pawl_worker_report(worker, &report, sizeof report);
  if (hand->fail_work) pawl_worker_say(worker, "the %s is wet", "powder");
  return status ? status : hand->fail_work;
}

static void end(struct pawl_worker *worker, void *context) {
  (void)worker;
  ((struct hand *)context)->ended++;
}

static const struct pawl_worker_calls calls = {begin, take, drop, work, end};

static void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_listening(hand->address);
  hand->outcome = pawl_worker_run(own, hand->job, &calls, hand, PATIENCE);
  snprintf(hand->text, sizeof hand->text, "%s", pawl_error_text());
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static void hire(struct hand *hand, const char *job) {
  hand->address = pawl_session_address(base);
  hand->job = job;
  assert_int_equal(pthread_create(&hand->thread, NULL, labour, hand), 0);
}

static pawl_status discharge(struct hand *hand) {
  pthread_join(hand->thread, NULL);
  return hand->outcome;
}

/* --- the scheduler ------------------------------------------------------------------------------------------------------ */

struct seen {
  int count[8]; /* by what */
  uint64_t moved;
  char text[256];
};

static void note(void *context, const struct pawl_job_event *event) {
  struct seen *seen = context;
  seen->count[event->what]++;
  seen->moved += event->what == PAWL_JOB_MOVED ? event->pieces : 0;
  if (*event->text) snprintf(seen->text, sizeof seen->text, "%s", event->text);
}

static struct pawl_job *create_job(const char *name, uint32_t least, enum pawl_on_loss on_loss, struct seen *seen) {
  struct pawl_job_options options;
  struct pawl_job *job = NULL;
  pawl_job_options_init(&options);
  options.name = name;
  options.spec = "spec";
  options.spec_size = 4;
  options.pieces = PIECES;
  options.least = least;
  options.on_loss = on_loss;
  options.patience_ns = PATIENCE;
  options.tell = seen ? note : NULL;
  options.context = seen;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  return job;
}

/* One round, in which every piece is worked on once. */
static void do_round(struct pawl_job *job, uint32_t number, size_t workers) {
  struct pawl_round *round = NULL;
  struct pawl_report got;
  uint32_t has[PIECES] = {0};
  uint64_t tick = 0;
  must(pawl_job_round(job, &number, sizeof number, PATIENCE, &round));
  assert_int_equal(pawl_round_count(round), workers);
  assert_true(pawl_round_is_whole(round));
  for (size_t i = 0; i < workers; i++) {
    struct report report;
    uint64_t pieces = 0;
    must(pawl_round_get(round, i, &got));
    assert_int_equal(got.status, PAWL_OK);
    assert_int_equal(got.size, sizeof report);
    assert_int_equal((uintptr_t)got.bytes % 16, 0);
    memcpy(&report, got.bytes, sizeof report);
    assert_int_equal(report.argument, number);
    assert_int_equal(report.rank, i);
    assert_int_equal(report.count, workers);
    assert_int_equal(report.pid, got.pid);
    if (i > 0) assert_int_equal(report.tick, tick);
    tick = report.tick;
    for (int k = 0; k < PIECES; k++) has[k] += report.has[k], pieces += report.has[k];
    assert_int_equal(got.pieces, pieces);
    assert_in_range(pieces, PIECES / workers, (PIECES + workers - 1) / workers);
  }
  for (int k = 0; k < PIECES; k++) assert_int_equal(has[k], 1);
  assert_int_equal(pawl_round_get(round, workers, &got), PAWL_NOT_FOUND);
  pawl_round_destroy(round);
}

/* --- tests -------------------------------------------------------------------------------------------------------------- */

static void test_workers_share_the_pieces_and_report(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[3] = {0};
  struct pawl_job *job = create_job("plain", 3, PAWL_LOSS_STOP, &seen);
  for (int i = 0; i < 3; i++) hire(&hands[i], "plain");
  for (uint32_t round = 0; round < 20; round++) do_round(job, round, 3);
  pawl_job_end(job);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(discharge(&hands[i]), PAWL_OK);
    assert_int_equal(hands[i].begun, 1);
    assert_int_equal(hands[i].ended, 1);
    assert_int_equal(hands[i].took, 4);
  }
  assert_int_equal(seen.count[PAWL_JOB_JOINED], 3);
  assert_int_equal(seen.count[PAWL_JOB_LOST], 0);
}

static void test_a_job_without_a_place_or_a_sound_plan_is_refused(void **state) {
  (void)state;
  struct pawl_job_options options;
  struct pawl_job *job;
  struct pawl_round *round;
  struct hand hand = {0};
  pawl_job_options_init(&options);
  assert_int_equal(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID);
  options.name = "two words";
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "two words");
  options.name = "unsound";
  options.least = 3;
  options.most = 2;
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "unsound");
  options.least = 1;
  options.drop_slowest = 0.5;
  must_fail(pawl_job_create(session, &options, PATIENCE, &job), PAWL_INVALID, "unsound");
  options.drop_slowest = 0;
  must_fail(pawl_job_create(base, &options, PATIENCE, &job), PAWL_INVALID, "listen");
  must_fail(pawl_worker_run(base, "unsound", &calls, &hand, 0), PAWL_INVALID, "listen");
  must_fail(pawl_worker_run(session, "a/b", &calls, &hand, 0), PAWL_INVALID, "a/b");
  must_fail(pawl_worker_run(session, "unsound", &calls, &hand, 1000000), PAWL_TIMED_OUT, "no such job");
  options.patience_ns = 1000000;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  assert_int_equal(pawl_job_await(job, 0, &round), PAWL_INVALID);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_NODE_GONE, "0 of 1 workers");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_NODE_GONE, "0 of 1 workers");
  pawl_job_end(job);
}

static void test_there_is_one_job_of_a_name_at_a_time(void **state) {
  (void)state;
  struct pawl_job *other, *job = create_job("single", 1, PAWL_LOSS_STOP, NULL);
  struct pawl_session *rival = open_listening(pawl_session_address(base));
  struct pawl_job_options options;
  pawl_job_options_init(&options);
  options.name = "single";
  must_fail(pawl_job_create(session, &options, PATIENCE, &other), PAWL_EXISTS, "single");
  must_fail(pawl_job_create(rival, &options, PATIENCE, &other), PAWL_EXISTS, "single");
  pawl_job_end(job);
  must(pawl_job_create(rival, &options, PATIENCE, &other));
  pawl_job_end(other);
  must(pawl_session_close(rival, PATIENCE));
}

static void *contend(void *context) {
  struct pawl_job *job = NULL, **won = context;
  struct pawl_job_options options;
  pawl_job_options_init(&options);
  options.name = "contended";
  struct pawl_session *own = open_listening(pawl_session_address(base));
  pawl_status status = pawl_job_create(own, &options, PATIENCE, &job);
  *won = status == PAWL_OK ? job : NULL;
  nap(PAWL_SECOND / 5); /* all have tried by then */
  pawl_job_end(job);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static void test_of_several_that_want_to_be_the_scheduler_one_is(void **state) {
  (void)state;
  pthread_t threads[4];
  struct pawl_job *won[4];
  int count = 0;
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, contend, &won[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) count += won[i] != NULL;
  assert_int_equal(count, 1);
}

static void test_workers_that_come_later_take_over_pieces(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[4] = {0};
  struct pawl_job *job = create_job("growing", 1, PAWL_LOSS_STOP, &seen);
  uint32_t round = 0;
  for (int i = 0; i < 4; i++) {
    hire(&hands[i], "growing");
    struct pawl_round *results = NULL;
    for (size_t count = 0; count < (size_t)i + 1;) { /* it may take a few rounds until it has asked to join */
      must(pawl_job_round(job, NULL, 0, PATIENCE, &results));
      count = pawl_round_count(results);
      pawl_round_destroy(results);
    }
    do_round(job, ++round, (size_t)i + 1);
  }
  assert_int_equal(seen.moved, 6 + 4 + 3); /* no more than the newcomers' shares */
  assert_int_equal(hands[0].dropped, 6 + 2 + 1);
  pawl_job_end(job);
  for (int i = 0; i < 4; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static void test_more_workers_than_pieces_all_take_part(void **state) {
  (void)state;
  struct hand hands[PIECES + 2] = {0};
  struct pawl_job *job = create_job("crowd", PIECES + 2, PAWL_LOSS_STOP, NULL);
  for (int i = 0; i < PIECES + 2; i++) hire(&hands[i], "crowd");
  do_round(job, 1, PIECES + 2);
  pawl_job_end(job);
  for (int i = 0; i < PIECES + 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static void test_a_worker_that_refuses_to_begin_is_quoted(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[2] = {{.refuse_begin = PAWL_NOT_FOUND}};
  struct pawl_round *round;
  struct pawl_job *job = create_job("refused", 1, PAWL_LOSS_REPLACE, &seen);
  hire(&hands[0], "refused");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_REFUSED, "could not begin: there is no data here");
  assert_int_equal(discharge(&hands[0]), PAWL_NOT_FOUND);
  assert_non_null(strstr(hands[0].text, "no data"));
  assert_int_equal(hands[0].ended, 1);
  assert_int_equal(seen.count[PAWL_JOB_REFUSED], 1);
  assert_string_equal(seen.text, "there is no data here");
  hire(&hands[1], "refused");
  do_round(job, 1, 1);
  pawl_job_end(job);
  assert_int_equal(discharge(&hands[1]), PAWL_OK);
}

static void test_a_worker_that_cannot_take_its_pieces_is_quoted(void **state) {
  (void)state;
  struct hand hand = {.refuse_take = PAWL_IO};
  struct pawl_round *round;
  struct pawl_job *job = create_job("unread", 1, PAWL_LOSS_REPLACE, NULL);
  hire(&hand, "unread");
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_REFUSED,
            "could not take its pieces: piece 7 cannot be read");
  assert_int_equal(discharge(&hand), PAWL_IO);
  pawl_job_end(job);
}

static void test_work_that_fails_is_reported_and_the_job_goes_on(void **state) {
  (void)state;
  struct hand hands[2] = {{.fail_work = PAWL_CORRUPT}};
  struct pawl_round *round;
  struct pawl_report report;
  struct pawl_job *job = create_job("wet", 2, PAWL_LOSS_STOP, NULL);
  hire(&hands[0], "wet");
  hire(&hands[1], "wet");
  must(pawl_job_round(job, NULL, 0, PATIENCE, &round));
  assert_false(pawl_round_is_whole(round));
  int failed = 0;
  for (size_t i = 0; i < 2; i++) {
    must(pawl_round_get(round, i, &report));
    if (!report.status) continue;
    failed++;
    assert_int_equal(report.status, PAWL_CORRUPT);
    assert_string_equal(report.text, "the powder is wet");
    assert_int_equal(report.size, sizeof(struct report));
  }
  assert_int_equal(failed, 1);
  pawl_round_destroy(round);
  hands[0].fail_work = PAWL_OK;
  do_round(job, 1, 2);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

static void *interrupt_soon(void *context) {
  struct hand *hand = ((void **)context)[1];
  while (atomic_load(&hand->working) < 1) nap(1000000);
  pawl_job_interrupt(((void **)context)[0]);
  return NULL;
}

static void test_a_round_can_be_interrupted_timed_and_awaited(void **state) {
  (void)state;
  struct hand hand = {.hold = true};
  struct pawl_round *round;
  struct pawl_job *job = create_job("patient", 1, PAWL_LOSS_STOP, NULL);
  void *both[] = {job, &hand};
  pthread_t thread;
  hire(&hand, "patient");
  assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, both), 0);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_CANCELLED, "interrupted");
  pthread_join(thread, NULL);
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_INVALID, "under way");
  must_fail(pawl_job_await(job, 1000000, &round), PAWL_TIMED_OUT, "it goes on");
  atomic_store(&hand.hold, false);
  must(pawl_job_await(job, PATIENCE, &round));
  assert_true(pawl_round_is_whole(round));
  pawl_round_destroy(round);
  pawl_job_interrupt(job); /* while none waits: the next one */
  must_fail(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_CANCELLED, "interrupted");
  must(pawl_job_await(job, PATIENCE, &round));
  pawl_round_destroy(round);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK);
}

static void test_a_job_that_ends_in_mid_round_makes_its_workers_return(void **state) {
  (void)state;
  struct hand hand = {.hold = true};
  struct pawl_round *round;
  struct pawl_job *job = create_job("cut", 1, PAWL_LOSS_STOP, NULL);
  void *both[] = {job, &hand};
  pthread_t thread;
  hire(&hand, "cut");
  assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, both), 0);
  assert_int_equal(pawl_job_round(job, NULL, 0, PATIENCE, &round), PAWL_CANCELLED);
  pthread_join(thread, NULL);
  pawl_job_end(job);
  assert_int_equal(discharge(&hand), PAWL_OK); /* it holds until pawl_worker_is_ending */
  assert_int_equal(hand.ended, 1);
}

static void test_a_job_shrinks_and_grows_as_it_is_told(void **state) {
  (void)state;
  struct hand hands[3] = {0};
  struct pawl_job *job = create_job("elastic", 3, PAWL_LOSS_STOP, NULL);
  for (int i = 0; i < 3; i++) hire(&hands[i], "elastic");
  do_round(job, 1, 3);
  must_fail(pawl_job_resize(job, 2, 1), PAWL_INVALID, "elastic");
  must(pawl_job_resize(job, 1, 1));
  do_round(job, 2, 1);
  must(pawl_job_resize(job, 1, 3));
  do_round(job, 3, 1);
  pawl_job_end(job);
  int cancelled = 0, whole = 0;
  for (int i = 0; i < 3; i++) {
    pawl_status outcome = discharge(&hands[i]);
    cancelled += outcome == PAWL_CANCELLED;
    whole += outcome == PAWL_OK;
  }
  assert_int_equal(cancelled, 2);
  assert_int_equal(whole, 1);
}

/* --- workers and schedulers that are processes ---------------------------------------------------------------------------- */

static int signs[2]; /* a pipe: processes write a byte to it when they are at work */

/* This program, in another role. */
static pid_t launch(const char *role, const char *job) {
  char sign[16];
  snprintf(sign, sizeof sign, "%d", signs[1]);
  pid_t pid = fork();
  if (pid != 0) return pid;
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
  pawl_status status = pawl_worker_run(open_listening(address), job, &own, &hand, PATIENCE);
  return status == PAWL_OK ? 10 + hand.begun : 1;
}

static int be_scheduler(const char *address, const char *job) {
  struct pawl_round *round;
  uint32_t hold = HOLD;
  session = open_listening(address);
  struct pawl_job *mine = create_job(job, 2, PAWL_LOSS_STOP, NULL);
  give_sign();
  (void)pawl_job_round(mine, &hold, sizeof hold, PAWL_FOREVER, &round);
  return 1;
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
  return pawl_session_close(own, PATIENCE) != PAWL_OK;
}

static void test_who_has_left_a_group_does_not_come_back_by_itself(void **state) {
  (void)state;
  struct pawl_group *group;
  must(pawl_group_join(session, "left/one", 0, PATIENCE, &group));
  pid_t leaver = launch("leaver", "left/one");
  await_sign();
  halt(leaver);
  nap(3 * PAWL_SECOND);
  assert_int_equal(kill(leaver, SIGCONT), 0);
  await_sign();
  assert_int_equal(pawl_group_size(group), 1);
  must(pawl_group_barrier(group, PATIENCE));
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

static void test_workers_notice_that_their_scheduler_is_gone(void **state) {
  (void)state;
  struct hand hands[2] = {0};
  pid_t scheduler = launch("scheduler", "orphan");
  await_sign();
  for (int i = 0; i < 2; i++) hire(&hands[i], "orphan");
  while (atomic_load(&hands[0].working) == 0) nap(1000000);
  assert_int_equal(kill(scheduler, SIGKILL), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(discharge(&hands[i]), PAWL_NODE_GONE);
    assert_int_equal(hands[i].ended, 1);
  }
  reap(scheduler);
  /* The name is free again. */
  pawl_job_end(create_job("orphan", 1, PAWL_LOSS_STOP, NULL));
}

/* --- slow workers --------------------------------------------------------------------------------------------------------- */

static void test_a_worker_that_stays_slow_is_dropped(void **state) {
  (void)state;
  struct seen seen = {0};
  struct hand hands[3] = {{.slow_ns = 1000000}, {.slow_ns = 1000000}, {.slow_ns = 60000000}};
  struct pawl_job_options options;
  struct pawl_job *job;
  pawl_job_options_init(&options);
  options.name = "slow";
  options.spec = "spec";
  options.spec_size = 4;
  options.pieces = PIECES;
  options.drop_slowest = 8;
  options.tell = note;
  options.context = &seen;
  options.least = 3;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  for (int i = 0; i < 3; i++) hire(&hands[i], "slow");
  do_round(job, 1, 3);
  must(pawl_job_resize(job, 2, 3)); /* below its least number nobody is dropped */
  do_round(job, 2, 3);
  do_round(job, 3, 3);
  do_round(job, 4, 2);
  assert_int_equal(seen.count[PAWL_JOB_DROPPED], 1);
  assert_int_equal(discharge(&hands[2]), PAWL_CANCELLED);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) assert_int_equal(discharge(&hands[i]), PAWL_OK);
}

int main(int argc, char **argv) {
  if (argc == 5) {
    signs[1] = atoi(argv[4]);
    if (strcmp(argv[1], "leaver") == 0) return be_leaver(argv[2], argv[3]);
    return strcmp(argv[1], "worker") == 0 ? be_worker(argv[2], argv[3]) : be_scheduler(argv[2], argv[3]);
  }
  if (pipe(signs) != 0) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_workers_share_the_pieces_and_report),
      cmocka_unit_test(test_a_job_without_a_place_or_a_sound_plan_is_refused),
      cmocka_unit_test(test_there_is_one_job_of_a_name_at_a_time),
      cmocka_unit_test(test_of_several_that_want_to_be_the_scheduler_one_is),
      cmocka_unit_test(test_workers_that_come_later_take_over_pieces),
      cmocka_unit_test(test_more_workers_than_pieces_all_take_part),
      cmocka_unit_test(test_a_worker_that_refuses_to_begin_is_quoted),
      cmocka_unit_test(test_a_worker_that_cannot_take_its_pieces_is_quoted),
      cmocka_unit_test(test_work_that_fails_is_reported_and_the_job_goes_on),
      cmocka_unit_test(test_a_round_can_be_interrupted_timed_and_awaited),
      cmocka_unit_test(test_a_job_that_ends_in_mid_round_makes_its_workers_return),
      cmocka_unit_test(test_a_job_shrinks_and_grows_as_it_is_told),
      cmocka_unit_test(test_without_a_lost_worker_the_others_go_on),
      cmocka_unit_test(test_a_lost_worker_is_replaced),
      cmocka_unit_test(test_a_lost_worker_can_be_the_end_of_the_job),
      cmocka_unit_test(test_a_worker_that_was_taken_for_dead_joins_anew),
      cmocka_unit_test(test_workers_notice_that_their_scheduler_is_gone),
      cmocka_unit_test(test_a_worker_that_stays_slow_is_dropped),
      cmocka_unit_test(test_who_has_left_a_group_does_not_come_back_by_itself),
  };
  return cmocka_run_group_tests_name("api.job", tests, open_cluster, close_cluster);
}
