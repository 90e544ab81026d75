#include "api/driver.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

#include <pawl/task.h>

#include "api/parking.h"
#include "host/clock.h"
#include "host/pause.h"

/* tries before sleeping at a closed gate: most threads inside stay for less than a microsecond */
#define TRIES 100

int64_t pwi_driver_deadline(int64_t timeout_ns) {
  if (timeout_ns == PAWL_FOREVER) return PWI_NET_NEVER;
  return timeout_ns <= 0 ? 0 : pwi_host_after(timeout_ns);
}

/* --- the gate -------------------------------------------------------------------------------------------
 *
 * No thread is forgotten, because each side writes before it reads, in one order for all (sequential
 * consistency):
 *
 *   entering:  wanting + 1, then reads is_held (and sleeps), and is_polling (and wakes the net)
 *   leaving:   is_held = false, then reads wanting (and signals)
 *   polling:   is_polling = true, then reads wanting (and does not sleep)
 */

static bool try_enter(struct pwi_driver *driver) {
  bool is_held = false;
  return atomic_compare_exchange_strong(&driver->is_held, &is_held, true);
}

static bool try_as_caller(struct pwi_driver *driver) { return !atomic_load(&driver->is_its_turn) && try_enter(driver); }

static void sleep_before_gate(struct pwi_driver *driver) {
  pthread_mutex_lock(&driver->mutex);
  while (!try_as_caller(driver)) pthread_cond_wait(&driver->opened, &driver->mutex);
  pthread_mutex_unlock(&driver->mutex);
}

/* The parking thread has been inside since it parked the driver. */
static bool is_parker(const struct pwi_driver *driver) {
  return atomic_load(&driver->is_parked) && pthread_equal(pthread_self(), driver->parker);
}

static void enter_slowly(struct pwi_driver *driver) {
  if (is_parker(driver)) return;
  atomic_fetch_add(&driver->wanting, 1);
  if (atomic_load(&driver->is_polling)) pwi_net_wake(driver->net);
  bool is_in = false;
  for (int i = 0; i < TRIES && !is_in; i++) {
    pwi_host_pause();
    is_in = !atomic_load_explicit(&driver->is_held, memory_order_relaxed) && try_as_caller(driver);
  }
  if (!is_in) sleep_before_gate(driver);
  atomic_fetch_add(&driver->let_in, 1);
  atomic_fetch_sub(&driver->wanting, 1);
}

void pwi_driver_enter(struct pwi_driver *driver) {
  if (!try_as_caller(driver)) enter_slowly(driver);
  atomic_store_explicit(&driver->entries, atomic_load_explicit(&driver->entries, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

static void open_gate(struct pwi_driver *driver) {
  if (atomic_load_explicit(&driver->is_parked, memory_order_relaxed)) return;
  atomic_store(&driver->is_held, false);
  bool others_want = atomic_load(&driver->wanting) > 0, is_yielding = atomic_load(&driver->is_yielding);
  if (!others_want && !is_yielding) return;
  pthread_mutex_lock(&driver->mutex);
  if (others_want) pthread_cond_signal(&driver->opened);
  if (is_yielding) pthread_cond_signal(&driver->returned);
  pthread_mutex_unlock(&driver->mutex);
}

/* Lets each waiting thread in once, and comes back. */
static void yield_gate(struct pwi_driver *driver) {
  if (atomic_load_explicit(&driver->is_parked, memory_order_relaxed)) return;
  unsigned until = atomic_load(&driver->let_in) + atomic_load(&driver->wanting);
  atomic_store(&driver->is_yielding, true);
  open_gate(driver);
  pthread_mutex_lock(&driver->mutex);
  while (atomic_load(&driver->wanting) > 0 && (int)(until - atomic_load(&driver->let_in)) > 0)
    pthread_cond_wait(&driver->returned, &driver->mutex);
  atomic_store(&driver->is_its_turn, true);
  while (!try_enter(driver)) pthread_cond_wait(&driver->returned, &driver->mutex);
  atomic_store(&driver->is_its_turn, false);
  atomic_store(&driver->is_yielding, false);
  pthread_mutex_unlock(&driver->mutex);
}

/* Inside: polls the net once, asleep until the deadline if no thread wants to enter. */
static void look(struct pwi_driver *driver, int64_t deadline) {
  atomic_store(&driver->is_polling, true);
  (void)pwi_net_poll(driver->net, atomic_load(&driver->wanting) > 0 ? 0 : deadline);
  atomic_store_explicit(&driver->is_polling, false, memory_order_relaxed);
  driver->unseen = 0;
  atomic_store_explicit(&driver->looks, atomic_load_explicit(&driver->looks, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

void pwi_driver_nudge(struct pwi_driver *driver) {
  if (++driver->unseen >= PWI_DRIVER_NUDGE) look(driver, 0);
}

void pwi_driver_look(struct pwi_driver *driver) { look(driver, 0); }

void pwi_driver_hurry(struct pwi_driver *driver) {
  pthread_mutex_lock(&driver->mutex);
  driver->is_hurried = true;
  pthread_cond_signal(&driver->own);
  pthread_mutex_unlock(&driver->mutex);
}

/* --- events and work ------------------------------------------------------------------------------------ */

void pwi_event_set(struct pwi_driver *driver, struct pwi_event *event) {
  atomic_store(&event->is_set, true);
  if (atomic_load(&event->sleepers) > 0) driver->must_tell = true;
}

static void tell(struct pwi_driver *driver) {
  driver->must_tell = false;
  pthread_mutex_lock(&driver->mutex);
  pthread_cond_broadcast(&driver->happened);
  pthread_mutex_unlock(&driver->mutex);
}

void pwi_driver_post(struct pwi_driver *driver, struct pwi_work *work) {
  work->next = NULL;
  *driver->work_end = work;
  driver->work_end = &work->next;
}

static struct pwi_work *take_work(struct pwi_driver *driver) {
  struct pwi_work *work = driver->work;
  driver->work = NULL;
  driver->work_end = &driver->work;
  return work;
}

static void run_work(struct pwi_work *work) {
  while (work) {
    struct pwi_work *next = work->next; /* the work may be posted again while it runs */
    work->run(work);
    work = next;
  }
}

/* Leaves the gate; returns the work to run now. */
static struct pwi_work *go_out(struct pwi_driver *driver) {
  if (driver->must_tell) tell(driver);
  struct pwi_work *work = take_work(driver);
  open_gate(driver);
  return work;
}

void pwi_driver_leave(struct pwi_driver *driver) { run_work(go_out(driver)); }

/* --- waiting -------------------------------------------------------------------------------------------- */

/* The driver leaves: a sleeping thread may take its place, or our own thread if none sleeps. */
static void hand_over(struct pwi_driver *driver) {
  atomic_store(&driver->is_driven, false);
  bool has_sleepers = atomic_load(&driver->sleepers) > 0, is_resting = atomic_load(&driver->is_resting);
  if (!has_sleepers && !is_resting) return;
  pthread_mutex_lock(&driver->mutex);
  if (has_sleepers) pthread_cond_broadcast(&driver->happened);
  if (is_resting) pthread_cond_signal(&driver->own);
  pthread_mutex_unlock(&driver->mutex);
}

static bool is_past(int64_t deadline) { return deadline != PWI_NET_NEVER && pwi_host_now() >= deadline; }

/* Drives until the event has happened, or there is work to run. Work runs outside the gate and not in a
 * driver, because it may wait itself. Other threads inside the gate may have polled the net, and so caused
 * our event. */
static void drive(struct pwi_driver *driver, const struct pwi_event *event, int64_t deadline) {
  pwi_driver_enter(driver);
  while (!pwi_event_is_set(event)) {
    look(driver, deadline);
    if (pwi_event_is_set(event) || driver->work || is_past(deadline)) break;
    if (driver->must_tell) tell(driver);
    if (atomic_load(&driver->wanting) > 0) yield_gate(driver);
  }
  struct pwi_work *work = go_out(driver);
  hand_over(driver);
  run_work(work);
}

static void wait_on(struct pwi_driver *driver, pthread_cond_t *condition, int64_t deadline) {
  struct timespec until = {(time_t)(deadline / PWI_HOST_SECOND), (long)(deadline % PWI_HOST_SECOND)};
  if (deadline == PWI_NET_NEVER)
    pthread_cond_wait(condition, &driver->mutex);
  else
    pthread_cond_timedwait(condition, &driver->mutex, &until);
}

/* Sleeps until the event has happened or no thread drives. */
static void sleep_for(struct pwi_driver *driver, struct pwi_event *event, int64_t deadline) {
  pthread_mutex_lock(&driver->mutex);
  atomic_fetch_add(&event->sleepers, 1);
  atomic_fetch_add(&driver->sleepers, 1);
  while (!atomic_load(&event->is_set) && atomic_load(&driver->is_driven) && !is_past(deadline))
    wait_on(driver, &driver->happened, deadline);
  atomic_fetch_sub(&driver->sleepers, 1);
  atomic_fetch_sub(&event->sleepers, 1);
  pthread_mutex_unlock(&driver->mutex);
}

bool pwi_driver_wait(struct pwi_driver *driver, struct pwi_event *event, int64_t deadline) {
  while (!pwi_event_is_set(event)) {
    if (!atomic_exchange(&driver->is_driven, true))
      drive(driver, event, deadline);
    else
      sleep_for(driver, event, deadline);
    if (is_past(deadline)) break;
  }
  return pwi_event_is_set(event);
}

/* --- our own thread ------------------------------------------------------------------------------------- */

/* Polls until a thread wants to enter. A driver that has let others in is not among the counted threads,
 * but wants back in: a thread that gets the gate from it must not stay. */
static void drive_alone(struct pwi_driver *driver) {
  int64_t deadline = PWI_NET_NEVER;
  struct pwi_work *work;
  do {
    if (atomic_load(&driver->wanting) > 0 || !try_as_caller(driver)) return;
    if (atomic_load(&driver->is_yielding)) deadline = 0;
    do {
      look(driver, deadline);
      if (driver->must_tell) tell(driver);
    } while (!driver->work && deadline > 0 && atomic_load(&driver->wanting) == 0 && !atomic_load(&driver->is_stopping));
    work = go_out(driver);
    run_work(work);
  } while (work && deadline > 0 && !atomic_load(&driver->is_stopping));
}

/* Calls come in all the time, and none of them polls the net: waits for its turn like a call, and polls once. */
static void drive_between(struct pwi_driver *driver) {
  if (!try_as_caller(driver)) enter_slowly(driver);
  look(driver, 0);
  pwi_driver_leave(driver);
}

/* A driver was active all the time that we rested: sleep until it reports that it leaves. */
static void rest_long(struct pwi_driver *driver) {
  atomic_store(&driver->is_resting, true);
  if (atomic_load(&driver->is_driven) && !atomic_load(&driver->is_stopping))
    pthread_cond_wait(&driver->own, &driver->mutex);
  atomic_store(&driver->is_resting, false);
}

/* While calls come in we stay away, but make sure that the net is polled now and then. */
static void *run(void *argument) {
  struct pwi_driver *driver = argument;
  pthread_mutex_lock(&driver->mutex);
  while (!atomic_load(&driver->is_stopping)) {
    unsigned entries = atomic_load(&driver->entries), looks = atomic_load(&driver->looks);
    if (!driver->is_hurried) wait_on(driver, &driver->own, pwi_host_now() + PWI_DRIVER_REST_NS);
    if (atomic_load(&driver->is_stopping)) break;
    bool is_quiet = atomic_load(&driver->entries) == entries || driver->is_hurried;
    driver->is_hurried = false;
    if (is_quiet && atomic_load(&driver->is_driven)) {
      rest_long(driver);
      continue;
    }
    if (!is_quiet && atomic_load(&driver->looks) != looks) continue;
    pthread_mutex_unlock(&driver->mutex);
    if (is_quiet)
      drive_alone(driver);
    else if (!atomic_load(&driver->is_driven)) /* a driver polls each time that it is inside */
      drive_between(driver);
    pthread_mutex_lock(&driver->mutex);
  }
  pthread_mutex_unlock(&driver->mutex);
  atomic_store(&driver->is_ended, true);
  return NULL;
}

/* --- creating ------------------------------------------------------------------------------------------- */

static pawl_status make_condition(pthread_cond_t *condition, const pthread_condattr_t *attributes) {
  int error = pthread_cond_init(condition, attributes);
  return error == 0 ? PAWL_OK : error == ENOMEM ? PAWL_NO_MEMORY : PAWL_NODE_LIMIT;
}

pawl_status pwi_driver_init(struct pwi_driver *driver, struct pwi_net *net) {
  *driver = (struct pwi_driver){.net = net};
  driver->work_end = &driver->work;
  pthread_cond_t *conditions[] = {&driver->opened, &driver->returned, &driver->happened, &driver->own};
  enum { COUNT = sizeof conditions / sizeof *conditions };
  pthread_condattr_t attributes;
  if (pthread_mutex_init(&driver->mutex, NULL) != 0) return PAWL_NODE_LIMIT;
  pawl_status status = pthread_condattr_init(&attributes) == 0 ? PAWL_OK : PAWL_NO_MEMORY;
  int made = 0;
  if (status) goto destroy_mutex;
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* the clock of host/clock.h */
  while (!status && made < COUNT) {
    status = make_condition(conditions[made], &attributes);
    made += status == PAWL_OK;
  }
  pthread_condattr_destroy(&attributes);
  if (!status) return PAWL_OK;
  while (made > 0) pthread_cond_destroy(conditions[--made]);
destroy_mutex:
  pthread_mutex_destroy(&driver->mutex);
  return status;
}

pawl_status pwi_driver_start(struct pwi_driver *driver) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&driver->thread, NULL, run, driver);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  driver->has_thread = error == 0;
  if (driver->has_thread) pwi_parking_add(driver);
  return error ? PAWL_NODE_LIMIT : PAWL_OK;
}

static void end_thread(struct pwi_driver *driver) {
  atomic_store(&driver->is_stopping, true);
  pthread_mutex_lock(&driver->mutex);
  pthread_cond_signal(&driver->own);
  pthread_mutex_unlock(&driver->mutex);
  pwi_net_wake(driver->net);
}

void pwi_driver_stop(struct pwi_driver *driver) {
  if (!driver->has_thread) return;
  pwi_parking_remove(driver);
  end_thread(driver);
  pthread_join(driver->thread, NULL);
  driver->has_thread = false;
}

static void sleep_briefly(void) {
  const struct timespec moment = {0, 100000};
  nanosleep(&moment, NULL);
}

/* The thread that exits from inside a callback may be our own. Once we are inside, the gate stays closed. */
bool pwi_driver_park(struct pwi_driver *driver, int64_t patience_ns) {
  int64_t deadline = pwi_host_after(patience_ns);
  bool is_own = driver->has_thread && pthread_equal(pthread_self(), driver->thread), is_in = false;
  if (driver->has_thread) end_thread(driver);
  while (driver->has_thread && !is_own && !atomic_load(&driver->is_ended) && !is_past(deadline)) sleep_briefly();
  atomic_fetch_add(&driver->wanting, 1);
  while (!(is_in = try_enter(driver)) && !is_past(deadline)) {
    pwi_net_wake(driver->net);
    sleep_briefly();
  }
  atomic_fetch_sub(&driver->wanting, 1);
  if (is_in) {
    driver->parker = pthread_self();
    atomic_store(&driver->is_parked, true);
  }
  return is_in && (is_own || !driver->has_thread || atomic_load(&driver->is_ended));
}

void pwi_driver_fini(struct pwi_driver *driver) {
  assert(!driver->has_thread && (!atomic_load(&driver->is_held) || atomic_load(&driver->is_parked)));
  pthread_cond_destroy(&driver->own);
  pthread_cond_destroy(&driver->happened);
  pthread_cond_destroy(&driver->returned);
  pthread_cond_destroy(&driver->opened);
  pthread_mutex_destroy(&driver->mutex);
}
