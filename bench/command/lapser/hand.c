/* The exchange that one would write by hand for workers on one host: all rows and sums stand in shared memory, and a
 * counter for each worker and side says of which iteration they are. It follows the GASPI version of the thesis (listings
 * 4.2 and 4.4): a worker writes each block as soon as it is drawn, and gives notice when it has drawn them all.
 *
 * One place for each row is enough, for the reason in apps/bpmf/share/items.c. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hand.h"

#define SPINS 2000 /* looks at a counter before a worker sleeps */

/* Counters on cache lines of their own. */
struct counter {
  _Alignas(64) _Atomic uint32_t drawn; /* the iteration whose rows are there */
};

struct hand_shared {
  struct counter counters[PWI_LAPSER_WORKERS_MAX][BPMF_SIDES];
  unsigned char memory[]; /* rows of users, rows of items, sums; each from a multiple of 64 */
};

static size_t padded(size_t size) { return (size + 63) / 64 * 64; }

static size_t rows_size(const struct bpmf_data *data, size_t width, int side) {
  return padded((size_t)data->sides[side].rows * width * sizeof(float));
}

size_t pwi_lapser_hand_size(const struct pwi_lapser_task *task) {
  size_t width = bpmf_width(task->rank);
  return sizeof(struct hand_shared) + rows_size(task->data, width, BPMF_USERS) +
         rows_size(task->data, width, BPMF_ITEMS) + 2 * 2 * BPMF_BLOCKS * bpmf_sums_size(width) * sizeof(double);
}

static float *rows_of(const struct bpmf_worker *worker, int side) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  size_t before = side == BPMF_ITEMS ? rows_size(&worker->data, worker->sampler.width, BPMF_USERS) : 0;
  return (float *)(void *)(hand->shared->memory + before);
}

static double *sums_of(const struct bpmf_worker *worker, size_t place) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  size_t width = worker->sampler.width,
         before = rows_size(&worker->data, width, BPMF_USERS) + rows_size(&worker->data, width, BPMF_ITEMS);
  return (double *)(void *)(hand->shared->memory + before) + place * bpmf_sums_size(width);
}

/* --- counters --------------------------------------------------------------------------------------------- */

static void announce(struct bpmf_worker *worker, int side) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  _Atomic uint32_t *drawn = &hand->shared->counters[hand->index][side].drawn;
  atomic_store(drawn, (uint32_t)worker->sampler.iteration);
  syscall(SYS_futex, drawn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *drawn, uint32_t iteration) {
  for (int i = 0; i < SPINS; i++)
    if (atomic_load(drawn) >= iteration) return;
  for (uint32_t seen; (seen = atomic_load(drawn)) < iteration;)
    syscall(SYS_futex, drawn, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void await_all(struct bpmf_worker *worker, int side, uint32_t iteration) {
  struct pwi_lapser_hand *hand = pwi_lapser_hand_of(worker);
  for (uint32_t i = 0; i < hand->workers; i++)
    if (i != hand->index) await(&hand->shared->counters[i][side].drawn, iteration);
}

/* --- the link --------------------------------------------------------------------------------------------- */

static void nothing(struct bpmf_worker *worker) { (void)worker; }

static pawl_status open_link(struct bpmf_worker *worker) {
  (void)worker;
  return PAWL_OK;
}

static void put(struct bpmf_worker *worker, int number, size_t block) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  size_t first = bpmf_block_begin(side, block) * sampler->width,
         end = bpmf_block_begin(side, block + 1) * sampler->width;
  memcpy(rows_of(worker, number) + first, side->rows + first, (end - first) * sizeof(float));
  memcpy(sums_of(worker, bpmf_sums_place(sampler, number, block, sampler->iteration)),
         side->sums + block * bpmf_sums_size(sampler->width), bpmf_sums_size(sampler->width) * sizeof(double));
}

static pawl_status flush(struct bpmf_worker *worker, int side) {
  announce(worker, side);
  return PAWL_OK;
}

static pawl_status rows(struct bpmf_worker *worker, int side) {
  await_all(worker, side, (uint32_t)worker->sampler.iteration);
  pwi_lapser_take_rows(worker, side, rows_of(worker, side));
  return PAWL_OK;
}

static pawl_status sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  await_all(worker, side, (uint32_t)clock);
  pwi_lapser_take_sums(worker, side, clock, sums_of(worker, 0));
  return PAWL_OK;
}

const struct bpmf_link pwi_lapser_hand_link = {nothing, open_link, put, flush, rows, sums, nothing, nothing};
