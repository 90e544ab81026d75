/* What the tests of jobs share: a cluster, workers that are threads with a session each, and rounds that are looked at closely. */
#ifndef PAWL_TESTS_API_JOB_SCENE_H
#define PAWL_TESTS_API_JOB_SCENE_H

#include "scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#ifndef JOB_PEERS
#define JOB_PEERS false /* true: all sessions are for peers only, and there are no servers */
#endif

static struct pawl_session *session;

static inline struct pawl_session *open_listening(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  options.peers_only = JOB_PEERS;
  must(pawl_session_open(&options, &opened));
  return opened;
}

static struct pawl_session *base; /* it embeds the cluster, and outlives all others */

static inline struct pawl_session *open_peers(void) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &opened));
  return opened;
}

static inline int open_cluster(void **state) {
  (void)state;
  /* Processes find the key in their environment, as they would anywhere. */
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
  base = JOB_PEERS ? open_peers() : open_embedded(1, 1);
  session = open_listening(pawl_session_address(base));
  return 0;
}

static inline int close_cluster(void **state) {
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

static inline pawl_status begin(struct pawl_worker *worker, void *context, const void *spec, size_t size) {
  struct hand *hand = context;
  hand->begun++;
  memset(hand->has, 0, sizeof hand->has);
  if (size != 4 || memcmp(spec, "spec", 4) != 0 || pawl_worker_group(worker)) return PAWL_CORRUPT;
  if (hand->refuse_begin) pawl_worker_say(worker, "there is no %s here", "data");
  return hand->refuse_begin;
}

static inline pawl_status take(struct pawl_worker *worker, void *context, const struct pawl_range *pieces,
                               size_t count) {
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

static inline pawl_status drop(struct pawl_worker *worker, void *context, const struct pawl_range *pieces,
                               size_t count) {
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

static inline void nap(int64_t ns) {
  struct timespec span = {(time_t)(ns / PAWL_SECOND), (long)(ns % PAWL_SECOND)};
  nanosleep(&span, NULL);
}

static inline pawl_status work(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  struct hand *hand = context;
  struct report report = {.rank = pawl_worker_rank(worker), .count = pawl_worker_count(worker)};
  if (size == sizeof report.argument) memcpy(&report.argument, argument, size);
  report.pid = (uint64_t)getpid();
  if ((pawl_worker_group(worker) == NULL) != JOB_PEERS || (pawl_worker_peers(worker) == NULL) == JOB_PEERS)
    return PAWL_CORRUPT;
  report.tick = JOB_PEERS ? 0 : pawl_group_tick(pawl_worker_group(worker));
  atomic_fetch_add(&hand->working, 1);
  while (atomic_load(&hand->hold) && !pawl_worker_is_ending(worker)) nap(1000000);
  int64_t count = 0;
  for (int i = 0; i < PIECES; i++) count += report.has[i] = hand->has[i];
  if (hand->slow_ns) nap(hand->slow_ns * count);
  pawl_status status = JOB_PEERS ? PAWL_OK : pawl_group_clock(pawl_worker_group(worker), NULL);
  if (!status) status = pawl_worker_report(worker, &report, sizeof report);
  if (hand->fail_work) pawl_worker_say(worker, "the %s is wet", "powder");
  return status ? status : hand->fail_work;
}

static inline void end(struct pawl_worker *worker, void *context) {
  (void)worker;
  ((struct hand *)context)->ended++;
}

static const struct pawl_worker_calls calls = {begin, take, drop, work, end};

static inline void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_listening(hand->address);
  hand->outcome = pawl_worker_run(own, hand->job, &calls, hand, PATIENCE);
  snprintf(hand->text, sizeof hand->text, "%s", pawl_error_text());
  pawl_session_close(own, PATIENCE);
  return NULL;
}

static inline void hire(struct hand *hand, const char *job) {
  hand->address = pawl_session_address(base);
  hand->job = job;
  assert_int_equal(pthread_create(&hand->thread, NULL, labour, hand), 0);
}

static inline pawl_status discharge(struct hand *hand) {
  pthread_join(hand->thread, NULL);
  return hand->outcome;
}

/* --- the scheduler ------------------------------------------------------------------------------------------------------ */

struct seen {
  int count[8]; /* by what */
  uint64_t moved;
  char text[256];
};

static inline void note(void *context, const struct pawl_job_event *event) {
  struct seen *seen = context;
  seen->count[event->what]++;
  seen->moved += event->what == PAWL_JOB_MOVED ? event->pieces : 0;
  if (*event->text) snprintf(seen->text, sizeof seen->text, "%s", event->text);
}

static inline struct pawl_job *create_job(const char *name, uint32_t least, enum pawl_on_loss on_loss,
                                          struct seen *seen) {
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
static inline void do_round(struct pawl_job *job, uint32_t number, size_t workers) {
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

#endif
