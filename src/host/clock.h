/* The monotonic clock of the machine; deadlines in this module are times on it. */
#ifndef PWI_HOST_CLOCK_H
#define PWI_HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

#define PWI_HOST_SECOND INT64_C(1000000000)

/* Nanoseconds since an arbitrary moment; never decreases. */
static inline int64_t pwi_host_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * PWI_HOST_SECOND + now.tv_nsec;
}

/* The time `span_ns` from now, clamped to the end of the clock. */
static inline int64_t pwi_host_after(int64_t span_ns) {
  int64_t deadline;
  return __builtin_add_overflow(pwi_host_now(), span_ns, &deadline) ? INT64_MAX : deadline;
}

/* The time left until a deadline, at least zero. */
static inline struct timespec pwi_host_until(int64_t deadline_ns) {
  int64_t left = deadline_ns - pwi_host_now();
  if (left < 0) left = 0;
  return (struct timespec){.tv_sec = (time_t)(left / PWI_HOST_SECOND), .tv_nsec = (long)(left % PWI_HOST_SECOND)};
}

#endif
