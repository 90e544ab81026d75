#include "host/http/http_crowd.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "host/clock.h"

#define SEATS (2 * PWI_HTTP_CONNECTIONS) /* closed connections keep their seat until their socket is closed */

struct pwi_http_guest {
  bool is_here, is_shown_out;
  bool is_served; /* it has read an answer */
  int socket;
  struct in6_addr from; /* IPv4 as a mapped address */
  int64_t since;        /* start of its wait */
  int64_t until;        /* its deadline */
};

struct pwi_http_crowd {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t watch;
  bool is_ending;
  struct pwi_http_guest guests[SEATS];
};

static struct in6_addr address_of(const struct sockaddr *from) {
  struct in6_addr address = {0};
  if (from && from->sa_family == AF_INET6) {
    memcpy(&address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, sizeof address);
  } else if (from && from->sa_family == AF_INET) {
    address.s6_addr[10] = address.s6_addr[11] = 0xff;
    memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
  }
  return address;
}

static void show_out(struct pwi_http_guest *guest) {
  guest->is_shown_out = true;
  shutdown(guest->socket, SHUT_RDWR);
}

static bool counts(const struct pwi_http_guest *guest) { return guest->is_here && !guest->is_shown_out; }

/* The number of connections from the same address. */
static size_t weight(const struct pwi_http_crowd *crowd, const struct pwi_http_guest *guest) {
  size_t same = 0;
  for (size_t i = 0; i < SEATS; i++) {
    const struct pwi_http_guest *other = &crowd->guests[i];
    same += counts(other) && memcmp(&other->from, &guest->from, sizeof guest->from) == 0;
  }
  return same;
}

/* The connection to close first. One that sends request after request has always waited for the shortest time, so
 * those that have had an answer go before those that still wait for their first. */
static bool is_before(const struct pwi_http_guest *a, const struct pwi_http_guest *b) {
  return a->is_served != b->is_served ? a->is_served : a->since < b->since;
}

static struct pwi_http_guest *burden(struct pwi_http_crowd *crowd) {
  struct pwi_http_guest *found = NULL;
  size_t most = 0;
  for (size_t i = 0; i < SEATS; i++) {
    struct pwi_http_guest *guest = &crowd->guests[i];
    if (!counts(guest)) continue;
    size_t has = weight(crowd, guest);
    if (has < most || (has == most && found && !is_before(guest, found))) continue;
    found = guest;
    most = has;
  }
  return found;
}

static size_t taken(const struct pwi_http_crowd *crowd) {
  size_t count = 0;
  for (size_t i = 0; i < SEATS; i++) count += counts(&crowd->guests[i]);
  return count;
}

static struct pwi_http_guest *free_seat(struct pwi_http_crowd *crowd) {
  for (size_t i = 0; i < SEATS; i++)
    if (!crowd->guests[i].is_here) return &crowd->guests[i];
  return NULL;
}

struct pwi_http_guest *pwi_http_crowd_enter(struct pwi_http_crowd *crowd, int socket, const struct sockaddr *from) {
  pthread_mutex_lock(&crowd->mutex);
  if (taken(crowd) >= PWI_HTTP_CONNECTIONS) show_out(burden(crowd));
  struct pwi_http_guest *guest = free_seat(crowd);
  int64_t now = pwi_host_now();
  if (guest)
    *guest = (struct pwi_http_guest){.is_here = true,
                                     .socket = socket,
                                     .from = address_of(from),
                                     .since = now,
                                     .until = now + PWI_HTTP_REQUEST_SECONDS * PWI_HOST_SECOND};
  pthread_cond_signal(&crowd->changed);
  pthread_mutex_unlock(&crowd->mutex);
  return guest;
}

static void begin(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest, int64_t seconds, bool is_served) {
  pthread_mutex_lock(&crowd->mutex);
  guest->is_served |= is_served;
  guest->since = pwi_host_now();
  guest->until = guest->since + seconds * PWI_HOST_SECOND;
  pthread_cond_signal(&crowd->changed);
  pthread_mutex_unlock(&crowd->mutex);
}

void pwi_http_guest_is_answered(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest) {
  begin(crowd, guest, PWI_HTTP_ANSWER_SECONDS, false);
}

void pwi_http_guest_is_done(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest) {
  begin(crowd, guest, PWI_HTTP_REQUEST_SECONDS, true);
}

void pwi_http_crowd_leave(struct pwi_http_crowd *crowd, struct pwi_http_guest *guest) {
  if (!guest) return;
  pthread_mutex_lock(&crowd->mutex);
  guest->is_here = false;
  pthread_mutex_unlock(&crowd->mutex);
}

/* Closes connections whose deadline has passed. Returns the next deadline. */
static int64_t sweep(struct pwi_http_crowd *crowd) {
  int64_t now = pwi_host_now(), next = INT64_MAX;
  for (size_t i = 0; i < SEATS; i++) {
    struct pwi_http_guest *guest = &crowd->guests[i];
    if (!counts(guest)) continue;
    if (guest->until <= now)
      show_out(guest);
    else if (guest->until < next)
      next = guest->until;
  }
  return next;
}

static void *watch(void *argument) {
  struct pwi_http_crowd *crowd = argument;
  pthread_mutex_lock(&crowd->mutex);
  while (!crowd->is_ending) {
    int64_t next = sweep(crowd);
    struct timespec until = {.tv_sec = (time_t)(next / PWI_HOST_SECOND), .tv_nsec = (long)(next % PWI_HOST_SECOND)};
    if (next == INT64_MAX)
      pthread_cond_wait(&crowd->changed, &crowd->mutex);
    else
      pthread_cond_timedwait(&crowd->changed, &crowd->mutex, &until);
  }
  pthread_mutex_unlock(&crowd->mutex);
  return NULL;
}

static int start_watch(struct pwi_http_crowd *crowd) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&crowd->watch, NULL, watch, crowd);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static void free_crowd(struct pwi_http_crowd *crowd) {
  pthread_cond_destroy(&crowd->changed);
  pthread_mutex_destroy(&crowd->mutex);
  pwi_free(crowd);
}

pawl_status pwi_http_crowd_open(struct pwi_http_crowd **crowd_out) {
  struct pwi_http_crowd *crowd = pwi_alloc_zero(1, sizeof *crowd);
  if (!crowd) return PAWL_NO_MEMORY;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&crowd->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&crowd->mutex, NULL);
  if (start_watch(crowd)) {
    free_crowd(crowd);
    return PAWL_NODE_LIMIT;
  }
  *crowd_out = crowd;
  return PAWL_OK;
}

void pwi_http_crowd_close(struct pwi_http_crowd *crowd) {
  if (!crowd) return;
  pthread_mutex_lock(&crowd->mutex);
  crowd->is_ending = true;
  pthread_cond_signal(&crowd->changed);
  pthread_mutex_unlock(&crowd->mutex);
  pthread_join(crowd->watch, NULL);
  free_crowd(crowd);
}
