/* Who moves a session's data: the gate before its client and net, and the threads that drive them.
 *
 * Client and net belong to one thread at a time: to the one that is inside the *gate*. Calls go in, hand the client a task,
 * and go out. Somebody must also poll the net, and that is
 *
 *   - a thread that waits for something: the first one to wait becomes the *driver*, and polls until what it waits for has
 *     come. So a blocking call costs no change of threads. Others that wait meanwhile sleep; when the driver goes, one of
 *     them takes its place;
 *   - the session's own thread while nobody waits. It keeps away for PWI_DRIVER_REST_NS after the last call, so that a
 *     program which makes one blocking call after another never meets it at the gate. A program that only starts tasks
 *     lets the net have its turn by pwi_driver_nudge.
 *
 * Polling may mean sleeping, inside the gate. Who finds the gate closed announces itself and wakes the net; the poller then
 * lets in those that have announced themselves, and comes back when they are done. Each time it is inside it looks at the
 * net at least once, so that no flood of calls can starve it.
 *
 * An *event* is something that is waited for. *Work* is a function to be run outside the gate, such as a callback of the
 * user's: posted inside, run by whoever leaves the gate next, after it has.
 *
 * Deadlines are times of host/clock.h, which is the clock of the real net too. Nothing here allocates. On the way of a blocking call there are a handful of atomic operations and no system call but
 * those of the net.
 */
#ifndef PWI_API_DRIVER_H
#define PWI_API_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"

#define PWI_DRIVER_REST_NS (500 * INT64_C(1000))
#define PWI_DRIVER_NUDGE 16 /* calls between two looks at the net */

/* A struct of zeros has not happened. It must live until it has, or until nobody can set it any more. */
struct pwi_event {
  atomic_bool is_set;
  atomic_uint sleepers;
};

struct pwi_work {
  void (*run)(struct pwi_work *work);
  struct pwi_work *next;
};

/* Private but for `net`. */
struct pwi_driver {
  struct pwi_net *net; /* to be used inside the gate only */

  /* The gate. */
  atomic_bool is_held;
  atomic_bool is_polling;  /* who is inside may be asleep in the net */
  atomic_uint wanting;     /* threads that wait to come in */
  atomic_uint let_in;      /* threads that had to wait and came in: counts up */
  atomic_bool is_yielding; /* the driver has let others in and will come back; */
  atomic_bool is_its_turn; /* now it comes before all others */

  atomic_bool is_driven;   /* a waiting thread drives */
  atomic_uint sleepers;    /* waiting threads that do not */
  atomic_bool is_resting;  /* our own thread sleeps until a driver goes */
  atomic_bool is_stopping; /* our own thread is to end */
  bool is_hurried;         /* it need not keep away now; under the mutex */
  atomic_uint entries;     /* calls that went through the gate: counts up */
  atomic_uint looks;       /* looks at the net: counts up */

  /* Inside the gate. */
  struct pwi_work *work, **work_end;
  bool must_tell;  /* an event has happened that somebody sleeps for */
  unsigned unseen; /* calls since the last look at the net */

  pthread_mutex_t mutex;   /* guards sleeping only */
  pthread_cond_t opened;   /* for those who want to come in */
  pthread_cond_t returned; /* for a driver that yields */
  pthread_cond_t happened; /* for sleepers: an event, or the driver is gone */
  pthread_cond_t own;      /* for our own thread */
  pthread_t thread;
  bool has_thread;
  atomic_bool is_parked; /* the gate is closed for good, for all but */
  pthread_t parker;      /* the thread that ends the process, whose handlers may still want to close the session */
  atomic_bool is_ended;  /* our own thread has */
  struct pwi_driver *open_next; /* of all that have one (parking.h) */
};

/* PAWL_NODE_LIMIT, PAWL_NO_MEMORY. The net is borrowed. */
PAWL_MUST_USE pawl_status pwi_driver_init(struct pwi_driver *driver, struct pwi_net *net);

/* Starts our own thread, in which all signals are blocked. PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_driver_start(struct pwi_driver *driver);

/* Ends it. Not from work. From now on only pwi_driver_wait moves data. */
void pwi_driver_stop(struct pwi_driver *driver);

/* The process is about to end: our own thread ends, and nobody but the caller comes into the gate any more, so that nothing uses the net
 * but for the caller's own calls. False if that was not so after `patience_ns`. Not from inside the gate. */
bool pwi_driver_park(struct pwi_driver *driver, int64_t patience_ns);

/* After stop, when nobody is inside a call. */
void pwi_driver_fini(struct pwi_driver *driver);

/* Into the gate, and out; work that was posted is run before the second returns. A thread must not come in twice. */
void pwi_driver_enter(struct pwi_driver *driver);
void pwi_driver_leave(struct pwi_driver *driver);

/* Inside the gate: something was started that nobody may wait for. Looks at the net every now and then. */
void pwi_driver_nudge(struct pwi_driver *driver);

/* Inside the gate: looks at the net now, so that what was sent goes out. */
void pwi_driver_look(struct pwi_driver *driver);

/* Outside the gate, from a thread that will not come again soon: our own thread need not keep away from it any longer. */
void pwi_driver_hurry(struct pwi_driver *driver);

/* Inside the gate: have it run once the gate is left. The struct must live until then. */
void pwi_driver_post(struct pwi_driver *driver, struct pwi_work *work);

/* Inside the gate: it has happened. */
void pwi_event_set(struct pwi_driver *driver, struct pwi_event *event);

static inline bool pwi_event_is_set(const struct pwi_event *event) {
  return atomic_load_explicit(&event->is_set, memory_order_acquire);
}

/* Outside the gate: waits until it has happened, or until the deadline has passed: false. Looks at
 * the net at least once. */
bool pwi_driver_wait(struct pwi_driver *driver, struct pwi_event *event, int64_t deadline);

/* The deadline that lies `timeout_ns` from now; PWI_NET_NEVER for PAWL_FOREVER. */
int64_t pwi_driver_deadline(int64_t timeout_ns);

#endif
