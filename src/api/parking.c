#include "api/parking.h"

#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_NS (1000 * INT64_C(1000000)) /* per session */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pwi_driver *parked_first; /* all open drivers */
static pid_t process; /* the process that registered: after a fork the child has none of its threads */

/* Exit handlers run in reverse order of their registration: ours before those of libraries that were in
 * use when the first session was opened. If OpenSSL was not used before us, it registers none
 * (net/tcp/tls.c). */
static void park_all(void) {
  if (getpid() != process) return;
  pthread_mutex_lock(&mutex);
  for (struct pwi_driver *it = parked_first; it; it = it->open_next) pwi_driver_park(it, PATIENCE_NS);
  pthread_mutex_unlock(&mutex);
}

void pwi_parking_add(struct pwi_driver *driver) {
  pthread_mutex_lock(&mutex);
  if (process != getpid() && atexit(park_all) == 0) process = getpid();
  driver->open_next = parked_first;
  parked_first = driver;
  pthread_mutex_unlock(&mutex);
}

void pwi_parking_remove(struct pwi_driver *driver) {
  pthread_mutex_lock(&mutex);
  struct pwi_driver **at = &parked_first;
  while (*at && *at != driver) at = &(*at)->open_next;
  if (*at) *at = driver->open_next;
  pthread_mutex_unlock(&mutex);
}
