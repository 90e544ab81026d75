/* The input queue of a job's scheduler: what happens in other threads waits there until the thread that runs a round reads it.
 *
 * Letters are put in by the function that workers join by, and when calls have ended that the scheduler made. So the scheduler itself
 * (job/scheduler.h) belongs to one thread and needs no lock. The queue outlives its job until the last call has ended.
 *
 * It also settles who is the scheduler of a name. Whoever wants to be joins the group of that name, and then asks all others in it. One that is the
 * scheduler says so. Of two that both only want to be, the one whose node has the lower number goes on, and the other knows by then that it is
 * beaten. Of any two the one that joined later asks the other; so at most one is left.
 */
#ifndef PWI_API_JOB_INPUT_QUEUE_H
#define PWI_API_JOB_INPUT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/driver.h"
#include "job/messages.h"

struct pawl_session;
struct pawl_task;
struct pwi_job_queue;

enum pwi_job_input_kind {
  PWI_JOB_INPUT_JOINED = 1,   /* a worker asks to join */
  PWI_JOB_INPUT_ANSWERED = 2, /* the call of an order has ended */
  PWI_JOB_INPUT_GONE = 3,     /* a worker has gone, or died */
};

struct pwi_job_input {
  struct pwi_job_input *next;
  enum pwi_job_input_kind kind;
  struct pwi_worker_name name;    /* only JOINED has more than the number */
  uint64_t their_task;            /* JOINED: the worker's own, that ends when it goes */
  struct pawl_task *task;         /* JOINED: ours, for it to wait for; else the one that has ended. The reader's */
  enum pwi_crew_order_kind order; /* ANSWERED */
  struct pwi_job_queue *queue;    /* private */
};

/* PAWL_NO_MEMORY. `group` is what workers are told. The names are copied. */
PAWL_MUST_USE pawl_status pwi_job_queue_create(struct pawl_session *session, const struct pwi_job_names *names,
                                               const char *group, struct pwi_job_queue **queue_out);

/* Before it is opened: what the job is about, for whoever asks. Borrowed until the queue is withdrawn. */
void pwi_job_queue_describe(struct pwi_job_queue *queue, const void *spec, size_t size);

/* Offers the function, and settles who is the scheduler. The caller has joined the group between the two, and leaves it and
 * closes the queue if they fail. PAWL_EXISTS, and what offering or calling failed with; with a text. */
PAWL_MUST_USE pawl_status pwi_job_queue_open(struct pwi_job_queue *queue);
PAWL_MUST_USE pawl_status pwi_job_queue_contest(struct pwi_job_queue *queue, int64_t deadline);

/* A input is put in when the task has ended, which is the queue's from now on. PAWL_NO_MEMORY: the task is released. */
PAWL_MUST_USE pawl_status pwi_job_queue_expect(struct pwi_job_queue *queue, enum pwi_job_input_kind kind,
                                               uint64_t number, enum pwi_crew_order_kind order, struct pawl_task *task);

/* All inputs, oldest first, freed with pwi_free one by one; the tasks in them are the reader's. The bell is silent then. */
struct pwi_job_input *pwi_job_queue_take(struct pwi_job_queue *queue);

/* Until a input has come since the last take, or somebody rings; false: the deadline came first. */
bool pwi_job_queue_wait(struct pwi_job_queue *queue, int64_t deadline);

/* Any thread: rings, and is remembered until it is asked for. */
void pwi_job_queue_interrupt(struct pwi_job_queue *queue);
bool pwi_job_queue_was_interrupted(struct pwi_job_queue *queue);

/* Takes no more workers in. Then, when all inputs were read: nobody reads any more, and it goes with the last call. */
void pwi_job_queue_withdraw(struct pwi_job_queue *queue);
void pwi_job_queue_close(struct pwi_job_queue *queue); /* NULL is fine */

#endif
