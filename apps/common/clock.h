/* The clock of training runs. */
#ifndef APPS_COMMON_CLOCK_H
#define APPS_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds of a clock that never runs back. */
static inline int64_t apps_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Seconds since `then`. */
static inline double apps_seconds_since(int64_t then) { return (double)(apps_now() - then) * 1e-9; }

#endif
