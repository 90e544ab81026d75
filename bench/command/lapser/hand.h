/* State of the exchanges by hand: in shared memory (hand.c) and over sockets (sockets.c). */
#ifndef BENCH_COMMAND_LAPSER_HAND_H
#define BENCH_COMMAND_LAPSER_HAND_H

#include <pthread.h>

#include "lapser.h"

struct hand_shared;

struct pwi_lapser_hand {
  uint32_t index, workers;

  /* In shared memory. */
  struct hand_shared *shared; /* pwi_lapser_hand_size bytes, zero at first */

  /* Over sockets; they belong to the caller. */
  int sockets[PWI_LAPSER_WORKERS_MAX]; /* to each other worker */
  struct pwi_lapser_inbox *inbox;
};

static inline struct pwi_lapser_hand *pwi_lapser_hand_of(const struct bpmf_worker *worker) {
  return ((const struct pwi_lapser_worker *)(const void *)worker)->own;
}

#endif
