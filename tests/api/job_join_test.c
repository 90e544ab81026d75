/* Workers that join in a round: threads and processes that work on one piece after the other. */
#include "job_scene.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MANY = 5000 }; /* pieces: the first worker takes minutes for them if nobody comes */

/* A worker that asks for its pieces. What the test wants of it besides: */
struct walker {
  pthread_t thread;
  const char *job;
  bool paces;             /* it takes its time until it has yielded */
  bool waits;             /* after that, or if it does not pace: until it is killed or the job ends */
  bool begins_all;        /* it does not ask */
  pawl_status fails_drop; /* what `drop` returns inside `work` */
  int sign;               /* where to write a byte when it waits; 0: nowhere */
  bool has[MANY], is_at_work;
  int dropped; /* inside `work` */
  atomic_int working;
  pawl_status outcome;
};

/* How often it has worked on each piece. */
struct findings {
  uint32_t rank, count;
  uint8_t worked[MANY];
};

static pawl_status start_walking(struct pawl_worker *worker, void *context, const void *spec, size_t size) {
  struct pawl_range pieces;
  (void)context, (void)spec, (void)size;
  return pawl_worker_next(worker, 1, &pieces) == PAWL_INVALID ? PAWL_OK : PAWL_CORRUPT;
}

static pawl_status take_up(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct walker *walker = context;
  (void)worker;
  for (size_t i = 0; i < count; i++)
    for (uint64_t k = pieces[i].begin; k < pieces[i].end; k++) {
      if (walker->has[k]) return PAWL_EXISTS;
      walker->has[k] = true;
    }
  return PAWL_OK;
}

static pawl_status put_down(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct walker *walker = context;
  if (walker->is_at_work && walker->fails_drop) {
    pawl_worker_say(worker, "it is stuck");
    return walker->fails_drop;
  }
  for (size_t i = 0; i < count; i++)
    for (uint64_t k = pieces[i].begin; k < pieces[i].end; k++) {
      if (!walker->has[k]) return PAWL_NOT_FOUND;
      walker->has[k] = false;
      walker->dropped += walker->is_at_work;
    }
  return PAWL_OK;
}

static void wait_forever(struct pawl_worker *worker, struct walker *walker) {
  if (walker->sign && write(walker->sign, "w", 1) != 1) _exit(1);
  while (!pawl_worker_is_ending(worker)) nap(1000000);
}

static pawl_status walk(struct pawl_worker *worker, struct walker *walker, struct findings *findings) {
  struct pawl_range pieces = {0};
  pawl_status status;
  int count = 0;
  while (!(status = pawl_worker_next(worker, 1, &pieces)) && !pawl_range_is_empty(pieces)) {
    if (pawl_range_size(pieces) != 1 || !walker->has[pieces.begin]) return PAWL_CORRUPT;
    findings->worked[pieces.begin]++;
    atomic_fetch_add(&walker->working, 1);
    if (walker->paces && walker->dropped == 0) nap(count++ < MANY / 4 ? 1000000 : 100000000);
    if (walker->waits && (walker->dropped > 0 || !walker->paces)) wait_forever(worker, walker);
  }
  return status;
}

static pawl_status walk_and_report(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  struct walker *walker = context;
  struct findings findings = {.rank = pawl_worker_rank(worker), .count = pawl_worker_count(worker)};
  pawl_status status = PAWL_OK;
  (void)argument, (void)size;
  walker->is_at_work = true;
  if (walker->begins_all) {
    memcpy(findings.worked, walker->has, sizeof walker->has);
    atomic_fetch_add(&walker->working, 1);
    if (walker->waits) wait_forever(worker, walker);
  } else {
    status = walk(worker, walker, &findings);
  }
  walker->is_at_work = false;
  return status ? status : pawl_worker_report(worker, &findings, sizeof findings);
}

static const struct pawl_worker_calls walking = {
    .begin = start_walking, .take = take_up, .drop = put_down, .work = walk_and_report};

static void *run_walker(void *context) {
  struct walker *walker = context;
  struct pawl_session *own = open_listening(pawl_session_address(base));
  walker->outcome = pawl_worker_run(own, walker->job, &walking, walker, PATIENCE);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static void send_out(struct walker *walker, const char *job) {
  walker->job = job;
  assert_int_equal(pthread_create(&walker->thread, NULL, run_walker, walker), 0);
}

static void call_back(struct walker *walker) {
  pthread_join(walker->thread, NULL);
  assert_int_equal(walker->outcome, PAWL_OK);
}

/* --- processes ---------------------------------------------------------------------------------------------------------- */

static int signs[2]; /* a pipe: a process writes a byte to it when it waits */

/* This program, as a worker that waits at work to be killed. */
static pid_t launch(const char *role, const char *job) {
  char sign[16];
  snprintf(sign, sizeof sign, "%d", signs[1]);
  pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
  execl("/proc/self/exe", "job_join_test", role, pawl_session_address(base), job, sign, (char *)NULL);
  _exit(127);
}

static int be_worker(const char *role, const char *address, const char *job, int sign) {
  static struct walker walker = {.waits = true};
  walker.sign = sign;
  walker.paces = strcmp(role, "first") == 0;
  struct pawl_session *own = open_listening(address);
  return pawl_worker_run(own, job, &walking, &walker, PATIENCE) == PAWL_OK ? 0 : 1;
}

/* In the middle of a round, once the process waits at work. */
static void kill_in_round(struct pawl_job *job, pid_t pid) {
  struct pollfd sign = {.fd = signs[0], .events = POLLIN};
  struct pawl_round *round;
  char byte;
  int status;
  while (poll(&sign, 1, 0) == 0) assert_int_equal(pawl_job_await(job, PAWL_SECOND / 100, &round), PAWL_TIMED_OUT);
  assert_int_equal(read(signs[0], &byte, 1), 1);
  assert_int_equal(kill(pid, SIGKILL), 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* --- the scheduler ------------------------------------------------------------------------------------------------------ */

static struct pawl_job *create_open_job(const char *name, bool join_in_round, struct seen *seen) {
  struct pawl_job_options options;
  struct pawl_job *job = NULL;
  pawl_job_options_init(&options);
  options.name = name;
  options.pieces = MANY;
  options.on_loss = PAWL_LOSS_CONTINUE;
  options.patience_ns = PATIENCE;
  options.tell = note;
  options.context = seen;
  options.join_in_round = join_in_round;
  must(pawl_job_create(session, &options, PATIENCE, &job));
  return job;
}

/* Begins a round, and returns when so many workers have joined. */
static void begin_round(struct pawl_job *job, const struct seen *seen, int workers) {
  struct pawl_round *round;
  pawl_status status = pawl_job_round(job, NULL, 0, PAWL_SECOND / 100, &round);
  while (status == PAWL_TIMED_OUT && seen->count[PAWL_JOB_JOINED] < workers)
    status = pawl_job_await(job, PAWL_SECOND / 100, &round);
  assert_int_equal(status, PAWL_TIMED_OUT);
}

/* Reads the results of a round, and counts how often each piece was worked on. */
static size_t read_round(struct pawl_round *round, struct pawl_report *reports, uint64_t *ranks,
                         uint32_t worked_out[MANY]) {
  size_t count = pawl_round_count(round);
  uint64_t pieces = 0;
  memset(worked_out, 0, MANY * sizeof *worked_out);
  assert_in_range(count, 1, 3);
  for (size_t i = 0; i < count; i++) {
    struct findings findings;
    uint64_t own = 0;
    must(pawl_round_get(round, i, &reports[i]));
    pieces += reports[i].pieces;
    if (reports[i].status) continue;
    assert_int_equal(reports[i].size, sizeof findings);
    memcpy(&findings, reports[i].bytes, sizeof findings);
    ranks[i] = findings.rank;
    for (int k = 0; k < MANY; k++) worked_out[k] += findings.worked[k], own += findings.worked[k];
    assert_int_equal(own, reports[i].pieces);
  }
  assert_int_equal(pieces, MANY);
  return count;
}

/* A round in which nothing is lost. */
static void check_whole(struct pawl_round *round, size_t workers, struct pawl_report *reports) {
  uint32_t worked[MANY];
  uint64_t ranks[3];
  assert_true(pawl_round_is_whole(round));
  assert_int_equal(read_round(round, reports, ranks, worked), workers);
  for (size_t i = 0; i < workers; i++) assert_int_equal(ranks[i], i);
  for (int k = 0; k < MANY; k++) assert_int_equal(worked[k], 1);
}

static void walk_once(struct pawl_job *job, size_t workers) {
  struct pawl_round *round;
  struct pawl_report reports[3];
  must(pawl_job_round(job, NULL, 0, PATIENCE, &round));
  check_whole(round, workers, reports);
  for (size_t i = 0; i < workers; i++) assert_in_range(reports[i].pieces, MANY / workers, MANY / workers + 1);
  pawl_round_destroy(round);
}

/* Pieces that no worker has reported, and those that one has: one report says that its worker was lost. */
static void check_lost(struct pawl_round *round, size_t lost, uint64_t *missing_out) {
  uint32_t worked[MANY];
  uint64_t ranks[3], missing = 0;
  struct pawl_report reports[3];
  assert_int_equal(read_round(round, reports, ranks, worked), 2);
  assert_int_equal(reports[lost].status, PAWL_NODE_GONE);
  assert_int_equal(reports[1 - lost].status, PAWL_OK);
  for (int k = 0; k < MANY; k++) {
    assert_in_range(worked[k], 0, 1);
    missing += worked[k] == 0;
  }
  assert_int_equal(missing, reports[lost].pieces);
  *missing_out = missing;
}

/* --- tests -------------------------------------------------------------------------------------------------------------- */

static void test_a_worker_that_comes_in_a_round_works_in_it(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walkers[3] = {{.paces = true}};
  struct pawl_round *round;
  struct pawl_report reports[3];
  struct pawl_job *job = create_open_job("open", true, &seen);
  send_out(&walkers[0], "open");
  begin_round(job, &seen, 1);
  send_out(&walkers[1], "open");
  must(pawl_job_await(job, PATIENCE, &round));
  check_whole(round, 2, reports);
  assert_true(reports[1].pieces > 0 && reports[1].pieces <= MANY / 2);
  assert_int_equal(walkers[0].dropped, reports[1].pieces);
  assert_int_equal(seen.moved, reports[1].pieces);
  assert_true(reports[0].pid == reports[1].pid && reports[0].node.id != reports[1].node.id);
  pawl_round_destroy(round);
  walkers[0].paces = false;
  walk_once(job, 2);
  walkers[0].paces = walkers[1].paces = true; /* the third gets pieces of both */
  walkers[0].dropped = walkers[1].dropped = 0;
  begin_round(job, &seen, 2);
  send_out(&walkers[2], "open");
  must(pawl_job_await(job, PATIENCE, &round));
  check_whole(round, 3, reports);
  assert_true(walkers[0].dropped > 0 && walkers[1].dropped > 0);
  assert_int_equal(walkers[0].dropped + walkers[1].dropped, reports[2].pieces);
  pawl_round_destroy(round);
  pawl_job_end(job);
  for (int i = 0; i < 3; i++) call_back(&walkers[i]);
}

static void test_without_the_option_it_waits_for_the_next_round(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walkers[2];
  struct pawl_round *round;
  struct pawl_report reports[3];
  struct pawl_job *job = create_open_job("closed", false, &seen);
  send_out(&walkers[0], "closed");
  must(pawl_job_round(job, NULL, 0, PATIENCE, &round)); /* pieces can be asked for all the same */
  check_whole(round, 1, reports);
  pawl_round_destroy(round);
  send_out(&walkers[1], "closed");
  must(pawl_job_resize(job, 2, 2));
  walk_once(job, 2);
  assert_int_equal(walkers[0].dropped, 0);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) call_back(&walkers[i]);
}

/* Pieces that a worker has begun without asking are not yielded. */
static void test_a_worker_that_does_not_ask_yields_nothing(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walkers[2] = {{.begins_all = true, .waits = true}};
  struct pawl_round *round;
  struct pawl_job *job = create_open_job("deaf", true, &seen);
  send_out(&walkers[0], "deaf");
  begin_round(job, &seen, 1);
  send_out(&walkers[1], "deaf");
  while (seen.count[PAWL_JOB_JOINED] < 2) /* it has begun, and has nothing to do */
    assert_int_equal(pawl_job_await(job, PAWL_SECOND / 100, &round), PAWL_TIMED_OUT);
  assert_int_equal(seen.moved, 0);
  pawl_job_end(job);
  assert_int_equal(atomic_load(&walkers[1].working), 0);
  for (int i = 0; i < 2; i++) call_back(&walkers[i]);
}

static void test_a_worker_that_cannot_drop_pieces_keeps_them(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walkers[2] = {{.paces = true, .fails_drop = PAWL_IO}};
  struct pawl_round *round;
  struct pawl_report report;
  struct pawl_job *job = create_open_job("stuck", true, &seen);
  send_out(&walkers[0], "stuck");
  begin_round(job, &seen, 1);
  send_out(&walkers[1], "stuck");
  must(pawl_job_await(job, PATIENCE, &round));
  assert_int_equal(pawl_round_count(round), 1);
  must(pawl_round_get(round, 0, &report));
  assert_int_equal(report.status, PAWL_IO);
  assert_string_equal(report.text, "it is stuck");
  assert_int_equal(report.pieces, MANY);
  pawl_round_destroy(round);
  walkers[0].paces = false;
  walkers[0].fails_drop = PAWL_OK;
  walk_once(job, 2);
  pawl_job_end(job);
  for (int i = 0; i < 2; i++) call_back(&walkers[i]);
}

static void test_a_newcomer_that_is_killed_is_missing_with_what_it_got(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walker = {.paces = true};
  struct pawl_round *round;
  uint64_t missing;
  struct pawl_job *job = create_open_job("newcomer", true, &seen);
  send_out(&walker, "newcomer");
  begin_round(job, &seen, 1);
  pid_t newcomer = launch("second", "newcomer");
  kill_in_round(job, newcomer);
  must(pawl_job_await(job, PATIENCE, &round));
  check_lost(round, 1, &missing);
  assert_int_equal(missing, walker.dropped);
  pawl_round_destroy(round);
  walk_once(job, 1);
  pawl_job_end(job);
  call_back(&walker);
}

static void test_what_a_killed_worker_has_yielded_is_worked_on(void **state) {
  (void)state;
  struct seen seen = {0};
  static struct walker walker;
  struct pawl_round *round;
  uint64_t missing;
  struct pawl_job *job = create_open_job("donor", true, &seen);
  pid_t first = launch("first", "donor");
  begin_round(job, &seen, 1);
  send_out(&walker, "donor");
  kill_in_round(job, first);
  must(pawl_job_await(job, PATIENCE, &round));
  check_lost(round, 0, &missing);
  assert_int_equal(missing, MANY - seen.moved);
  pawl_round_destroy(round);
  walk_once(job, 1);
  pawl_job_end(job);
  call_back(&walker);
}

int main(int argc, char **argv) {
  if (argc == 5) return be_worker(argv[1], argv[2], argv[3], atoi(argv[4]));
  if (pipe(signs) != 0) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_worker_that_comes_in_a_round_works_in_it),
      cmocka_unit_test(test_without_the_option_it_waits_for_the_next_round),
      cmocka_unit_test(test_a_worker_that_does_not_ask_yields_nothing),
      cmocka_unit_test(test_a_worker_that_cannot_drop_pieces_keeps_them),
      cmocka_unit_test(test_a_newcomer_that_is_killed_is_missing_with_what_it_got),
      cmocka_unit_test(test_what_a_killed_worker_has_yielded_is_worked_on),
  };
  return cmocka_run_group_tests_name("api.job_join", tests, open_cluster, close_cluster);
}
