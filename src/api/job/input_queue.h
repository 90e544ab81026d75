/* The queue of a scheduler's inputs: events of other threads wait here until the thread that runs a round
 * reads them.
 *
 * Inputs come from the function that workers call to join, and from the ends of calls that the scheduler
 * made. So the scheduler itself (job/scheduler.h) belongs to one thread and needs no lock. The queue
 * outlives its job until the last call has ended.
 *
 * The queue also decides which process is the scheduler of a job name. A candidate joins the group of that
 * name, and then asks all other members. A member that is the scheduler says so. Of two candidates the one
 * with the lower node number wins, and the other learns from the answer that it has lost. Of any two the
 * one that joined later asks the other, so at most one is left.
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
  PWI_JOB_INPUT_ANSWERED = 2, /* a call with an order has ended */
  PWI_JOB_INPUT_GONE = 3,     /* a worker has gone or died */
};

struct pwi_job_input {
  struct pwi_job_input *next;
  enum pwi_job_input_kind kind;
  struct pwi_worker_name name; /* JOINED: the worker; else only the number is set */
  uint64_t their_task;         /* JOINED: an open task of the worker, which ends when it goes */
  /* JOINED: our task that the worker waits for; else the task that has ended. The reader releases it */
  struct pawl_task *task;
  enum pwi_job_order_kind order; /* ANSWERED */
  struct pwi_job_queue *queue;   /* private */
};

/* Creates a queue. `group` is sent to workers. The names are copied. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_job_queue_create(struct pawl_session *session, const struct pwi_job_names *names,
                                               const char *group, struct pwi_job_queue **queue_out);

/* Sets the job's specification, for processes that ask. Call it before opening. Borrowed until the queue
 * is withdrawn. */
void pwi_job_queue_describe(struct pwi_job_queue *queue, const void *spec, size_t size);

/* Offer the function, and decide whether this process is the scheduler. The caller joins the group between
 * the two calls; if one fails it leaves the group and closes the queue. PAWL_EXISTS, and the errors of
 * offering or calling; with a text. */
PAWL_MUST_USE pawl_status pwi_job_queue_open(struct pwi_job_queue *queue);
PAWL_MUST_USE pawl_status pwi_job_queue_contest(struct pwi_job_queue *queue, int64_t deadline);

/* Adds an input when the task has ended. The queue owns the task from now on. PAWL_NO_MEMORY: the task is
 * released. */
PAWL_MUST_USE pawl_status pwi_job_queue_expect(struct pwi_job_queue *queue, enum pwi_job_input_kind kind,
                                               uint64_t number, enum pwi_job_order_kind order, struct pawl_task *task);

/* Returns all inputs, oldest first. The caller frees each with pwi_free and releases its task. Resets the
 * bell. */
struct pwi_job_input *pwi_job_queue_take(struct pwi_job_queue *queue);

/* Waits until an input has come since the last take; false if the deadline passes first. */
bool pwi_job_queue_wait(struct pwi_job_queue *queue, int64_t deadline);

/* Withdraw: admits no more workers. Close, once all inputs were read: drops later inputs; the queue is
 * freed with the last call. */
void pwi_job_queue_withdraw(struct pwi_job_queue *queue);
void pwi_job_queue_close(struct pwi_job_queue *queue); /* NULL is fine */

#endif
