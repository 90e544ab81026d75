/* Drives a session: the gate to its client and net, and the threads that poll the net.
 *
 * Client and net belong to one thread at a time: the thread inside the *gate*. A call enters, hands the
 * client a task, and leaves. A thread must also poll the net. That is
 *
 *   - a waiting thread: the first thread that waits becomes the *driver* and polls until its event has
 *     happened, so a blocking call needs no thread switch. Other waiting threads sleep; when the driver
 *     leaves, one of them takes its place;
 *   - the session's own thread while no thread waits. It stays away for PWI_DRIVER_REST_NS after the last
 *     call, so that a program which makes one blocking call after another never meets it at the gate. For
 *     programs that only start tasks, pwi_driver_nudge polls the net.
 *
 * Polling may sleep inside the gate. A thread that finds the gate closed announces itself and wakes the
 * net; the polling thread then lets the announced threads in, and comes back when they are done. Each time
 * it is inside it polls the net at least once, so no flood of calls can starve the net.
 *
 * An *event* can be waited for. *Work* is a function that must run outside the gate, such as a callback of
 * the user. It is posted inside the gate, and run by the next thread that leaves the gate, after it has
 * left.
 *
 * Deadlines are times of host/clock.h, which is also the clock of the real net. Nothing here allocates. A
 * blocking call costs a handful of atomic operations and no system calls but those of the net.
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
#define PWI_DRIVER_NUDGE 16 /* calls between two polls of the net */

/* A struct of zeros has not happened. It must live until it has, or until no thread can set it any more. */
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
  struct pwi_net *net; /* only for use inside the gate */

  /* The gate. */
  atomic_bool is_held;
  atomic_bool is_polling;  /* the thread inside may be asleep in the net */
  atomic_uint wanting;     /* threads that wait to enter */
  atomic_uint let_in;      /* counter of threads that had to wait and have entered */
  atomic_bool is_yielding; /* the driver has let others in and will come back */
  atomic_bool is_its_turn; /* the driver comes before all others now */

  atomic_bool is_driven;   /* a waiting thread drives */
  atomic_uint sleepers;    /* waiting threads that do not drive */
  atomic_bool is_resting;  /* our own thread sleeps until a driver leaves */
  atomic_bool is_stopping; /* our own thread must end */
  bool is_hurried;         /* our own thread need not stay away now; guarded by the mutex */
  atomic_uint entries;     /* counter of calls that went through the gate */
  atomic_uint looks;       /* counter of polls of the net */

  /* Used inside the gate. */
  struct pwi_work *work, **work_end;
  bool must_tell;  /* an event has happened for which a thread sleeps */
  unsigned unseen; /* calls since the last poll of the net */

  pthread_mutex_t mutex;   /* guards sleeping only */
  pthread_cond_t opened;   /* for threads that want to enter */
  pthread_cond_t returned; /* for a driver that has let others in */
  pthread_cond_t happened; /* for sleeping threads: an event has happened, or the driver has left */
  pthread_cond_t own;      /* for our own thread */
  pthread_t thread;
  bool has_thread;
  atomic_bool is_parked; /* the gate is closed for good, except for `parker` */
  /* the thread that ends the process; its exit handlers may still close the session */
  pthread_t parker;
  atomic_bool is_ended;         /* our own thread has ended */
  struct pwi_driver *open_next; /* list of all drivers with a thread (parking.h) */
};

/* The net is borrowed. PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_driver_init(struct pwi_driver *driver, struct pwi_net *net);

/* Starts our own thread, in which all signals are blocked. PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_driver_start(struct pwi_driver *driver);

/* Ends our own thread. Must not be called from work. From now on only pwi_driver_wait polls the net. */
void pwi_driver_stop(struct pwi_driver *driver);

/* The process is about to end: ends our own thread and closes the gate for all other threads, so that only
 * calls of the calling thread use the net. False if that took longer than `patience_ns`. Must not be
 * called inside the gate. */
bool pwi_driver_park(struct pwi_driver *driver, int64_t patience_ns);

/* Call it after stop, when no thread is inside a call. */
void pwi_driver_fini(struct pwi_driver *driver);

/* Enter and leave the gate. Work that was posted runs before pwi_driver_leave returns. A thread must not
 * enter twice. */
void pwi_driver_enter(struct pwi_driver *driver);
void pwi_driver_leave(struct pwi_driver *driver);

/* Inside the gate: a call was started for which no thread may wait. Polls the net every now and then. */
void pwi_driver_nudge(struct pwi_driver *driver);

/* Inside the gate: polls the net now, so that messages are sent. */
void pwi_driver_look(struct pwi_driver *driver);

/* Outside the gate, from a thread that will not come again soon: our own thread need not stay away any
 * longer. */
void pwi_driver_hurry(struct pwi_driver *driver);

/* Inside the gate: runs the work once the gate is left. The struct must live until then. */
void pwi_driver_post(struct pwi_driver *driver, struct pwi_work *work);

/* Inside the gate: the event has happened. */
void pwi_event_set(struct pwi_driver *driver, struct pwi_event *event);

static inline bool pwi_event_is_set(const struct pwi_event *event) {
  return atomic_load_explicit(&event->is_set, memory_order_acquire);
}

/* Outside the gate: waits until the event has happened; false if the deadline passes first. Polls the net
 * at least once. */
bool pwi_driver_wait(struct pwi_driver *driver, struct pwi_event *event, int64_t deadline);

/* The deadline `timeout_ns` from now; PWI_NET_NEVER for PAWL_FOREVER. */
int64_t pwi_driver_deadline(int64_t timeout_ns);

#endif
