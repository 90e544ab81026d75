/* Workers that push random integers and keep a journal of it, and the checker that compares journals with what is read.
 *
 * All vectors hold 64-bit integers, so sums are exact in any order. A worker's journal lives outside its process: what it
 * began, and what it was told is done. Nothing is ever read from a server but by pulling.
 *
 *   - A key that only one worker pushes to must read, to that worker, as what it has pushed: all that was called before the
 *     pull, and perhaps some that was called after it, in order (a session reads what it has written).
 *   - What a task names as refused must not be there, and everything else of it must.
 *   - In the end every key must be the sum of all pushes that were acknowledged, and of some of those that were under way
 *     when their worker was killed, each in all its columns or not at all.
 */
#ifndef TESTS_TAKEOVER_WORKER_H
#define TESTS_TAKEOVER_WORKER_H

#include "cluster.h"

#define WORKERS_MAX 4
#define VECTORS 3
#define KEYS 60 /* of each vector: the universe that workers draw from */
#define WIDTH_MAX 16
#define UNDER_WAY 6 /* calls at a time */
#define MAYBE_MAX 2048

struct campaign;

/* One call under way. */
struct deed {
  struct pwi_task task;
  struct worker *worker;
  bool is_busy;
  enum pwi_request_kind kind;
  size_t vector;
  size_t count;
  uint32_t which[KEYS]; /* of the universe */
  uint64_t keys[KEYS];
  int64_t values[KEYS * WIDTH_MAX];
  int64_t out[KEYS * WIDTH_MAX];
  void *buffer;        /* memory that holders read in place, in which the values lie; NULL: none */
  uint32_t seen[KEYS]; /* pull: how many of the own pushes it must see */
};

/* What a worker has pushed to a key that is its own, after each push. */
struct history {
  int64_t (*sums)[WIDTH_MAX]; /* sums[i]: after i pushes */
  size_t count, room;
};

struct worker {
  struct campaign *campaign;
  struct cluster_client client;
  uint32_t index;
  uint32_t calls_left;
  struct pwi_flow *flows[VECTORS];
  struct pwi_keylist *lists[VECTORS];
  uint32_t list_which[VECTORS][KEYS];
  size_t list_count[VECTORS];
  struct deed deeds[UNDER_WAY];
  struct history own[VECTORS][KEYS];
  bool is_checking; /* until it is killed for the first time */
  uint64_t retirements;
};

struct maybe {
  size_t vector;
  uint32_t key;
  int64_t delta[WIDTH_MAX];
};

struct campaign {
  struct cluster cluster;
  uint32_t worker_count;
  struct worker workers[WORKERS_MAX];
  uint32_t widths[VECTORS];
  uint64_t universe[VECTORS][KEYS];
  int64_t sums[VECTORS][KEYS][WIDTH_MAX]; /* acknowledged */
  struct maybe maybes[MAYBE_MAX];
  size_t maybe_count;
  struct cluster_client operator_client, checker;
  struct pwi_asking move;
  bool is_moving, is_quiet;
  bool has_cap; /* servers may refuse to grow: what a task says was not applied must not be there */
  uint64_t refusals;
  uint64_t moves_asked;
};

/* Vectors, workers and operator. The cluster is open. */
void campaign_begin(struct campaign *campaign, uint32_t workers, uint32_t calls);

/* Runs until all workers are done and then compares; fails the test if anything is wrong. */
void campaign_end(struct campaign *campaign);

/* Frees journals. The cluster is closed by the caller, before. */
void campaign_free(struct campaign *campaign);

#endif
