/* What the small benchmarks share: clocks, checks, and the best of several rounds. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pawl/status.h>

static inline double seconds_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline double now(void) { return seconds_of(CLOCK_MONOTONIC); }

/* Processor time of this thread, which tells more than wall time when the machine is shared. */
static inline double thread_now(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

/* Ends the benchmark unless all is well. */
static inline void check(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
  exit(1);
}

static inline void check_status(pawl_status status) { check(status == PAWL_OK, pawl_status_text(status)); }

static inline void least(double *best, double seconds) { *best = seconds < *best ? seconds : *best; }

#endif
