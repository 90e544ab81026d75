/* What the tests of the scheduler share: a scheduler, and workers that obey. */
#ifndef PWI_JOB_SCHEDULER_TEST_H
#define PWI_JOB_SCHEDULER_TEST_H

#include "base/memory.h"
#include "base/testing.h"
#include "job/scheduler.h"

#define SECOND INT64_C(1000000000)

static struct pwi_scheduler *scheduler;
static int64_t now;
static struct pwi_scheduler_order orders[32]; /* orders that were handed out and not answered, by worker number */
static struct pwi_scheduler_order yields[32]; /* likewise, orders to YIELD */
static int events[8];                         /* by kind */
static struct pwi_scheduler_event last;

static const struct pwi_scheduler_options plain = {
    .pieces = 8, .least = 2, .most = 4, .on_loss = PAWL_LOSS_CONTINUE, .patience_ns = 10 * SECOND};

static inline void open_scheduler(struct pwi_scheduler_options options) {
  memset(orders, 0, sizeof orders);
  memset(yields, 0, sizeof yields);
  memset(events, 0, sizeof events);
  now = 0;
  assert_int_equal(pwi_scheduler_create(&options, &scheduler), PAWL_OK);
}

static inline void close_scheduler(void) {
  pwi_scheduler_destroy(scheduler);
  scheduler = NULL;
}

static inline void join(uint64_t number) {
  struct pwi_worker_name name = {.number = number, .node = 100 + number, .pid = 1000 + number, .host = "here"};
  assert_int_equal(pwi_scheduler_join(scheduler, &name), PAWL_OK);
}

static inline void advance(void) {
  struct pwi_scheduler_order order;
  pwi_scheduler_advance(scheduler, now);
  while (pwi_scheduler_next_order(scheduler, &order))
    (order.kind == PWI_JOB_ORDER_YIELD ? yields : orders)[order.name.number] = order;
  while (pwi_scheduler_next_event(scheduler, &last)) events[last.what]++;
}

static inline void answer_as(uint64_t number, pawl_status status, int64_t took_ns) {
  struct pwi_scheduler_answer answer = {.status = status, .text = status ? "no" : NULL, .took_ns = took_ns};
  orders[number].kind = 0;
  pwi_scheduler_answered(scheduler, number, &answer);
}

/* All workers obey, until every worker is ordered to WORK or none has an open order. */
static inline void settle(void) {
  for (bool is_any = true; is_any;) {
    advance();
    is_any = false;
    for (uint64_t i = 0; i < 32; i++) {
      if (orders[i].kind == 0 || orders[i].kind == PWI_JOB_ORDER_WORK) continue;
      answer_as(i, PAWL_OK, 0);
      is_any = true;
    }
  }
}

static inline void want(void) {
  assert_int_equal(pwi_scheduler_want(scheduler), PAWL_OK);
  settle();
}

static inline enum pwi_scheduler_state state_now(void) { return pwi_scheduler_state(scheduler); }

static inline void work_all(const int64_t *took) {
  for (uint64_t i = 0; i < 32; i++)
    if (orders[i].kind == PWI_JOB_ORDER_WORK) answer_as(i, PAWL_OK, took ? took[i] : 1000);
  advance();
}

static inline pawl_status close_round(size_t *count_out) {
  const char *text;
  assert_int_equal(state_now(), PWI_SCHEDULER_OVER);
  pawl_status verdict = pwi_scheduler_verdict(scheduler, &text);
  pwi_free(pwi_scheduler_close(scheduler, count_out));
  return verdict;
}

/* A round without losses. */
static inline void do_round(size_t workers) {
  size_t count;
  want();
  assert_int_equal(state_now(), PWI_SCHEDULER_WORKING);
  work_all(NULL);
  assert_int_equal(close_round(&count), PAWL_OK);
  assert_int_equal(count, workers);
}

static inline uint64_t pieces_of(size_t index) {
  uint64_t number;
  return pwi_rangeset_size(pwi_scheduler_pieces(scheduler, index, &number));
}

#endif
