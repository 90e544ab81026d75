/* Rows and sums as items (<pawl/item.h>): two contexts for the rows of both sides, and one for the sums.
 *
 * With slack 0 a worker must find the rows of exactly the iteration that it asks for, although a later version replaces an
 * earlier one. It does: a worker publishes rows of items of iteration t only after it has the sums of users of iteration
 * t of all workers, and those workers have read the rows of items of iteration t - 1 before; likewise for users. With a
 * slack the rows may be newer or older, and workers do not wait for these sums before they need them (worker.c).
 */
#include <stdio.h>
#include <string.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/memory.h"

#define CHUNK 64 /* ranges that a thread reads at a time */

static const struct bpmf_side *side_of(const struct bpmf_worker *worker, int side) {
  return &worker->sampler.sides[side];
}

static double *sums_of(const struct bpmf_worker *worker, int side, size_t block) {
  return side_of(worker, side)->sums + block * bpmf_sums_size(worker->sampler.width);
}

/* A worker that draws all blocks opens no context: no other worker needs its rows. */
static bool is_alone(const struct bpmf_worker *worker) {
  return worker->part.first[BPMF_USERS] == 0 && worker->part.first[BPMF_ITEMS] == 0 &&
         worker->part.end[BPMF_USERS] == side_of(worker, BPMF_USERS)->blocks &&
         worker->part.end[BPMF_ITEMS] == side_of(worker, BPMF_ITEMS)->blocks;
}

/* --- opening ---------------------------------------------------------------------------------------------- */

static void close_all(struct bpmf_worker *worker) {
  for (int side = 0; side < BPMF_SIDES; side++) pawl_items_close(worker->items.rows[side]);
  pawl_items_close(worker->items.sums);
  worker->items = (struct bpmf_items_state){.sums = NULL};
}

static pawl_status open_items(struct bpmf_worker *worker, const char *what, size_t size, uint64_t count,
                              const struct pawl_items_keys *mine, size_t mine_count,
                              const struct pawl_items_keys *others, size_t others_count, uint32_t slack,
                              struct pawl_items **items_out) {
  char name[PAWL_ITEMS_NAME_MAX + 1];
  struct pawl_items_options options;
  pawl_items_options_init(&options);
  options.variant = worker->spec.variant;
  options.slack = slack;
  snprintf(name, sizeof name, "%s.%llu", what, (unsigned long long)worker->era);
  return pawl_items_open(worker->peers, name, size, count, mine, mine_count, others, others_count, &options,
                         BPMF_TIMEOUT, items_out);
}

static pawl_status open_rows(struct bpmf_worker *worker, int number) {
  const struct bpmf_side *side = side_of(worker, number);
  const struct bpmf_part *part = &worker->part;
  size_t first = bpmf_block_begin(side, part->first[number]), end = bpmf_block_begin(side, part->end[number]);
  struct pawl_items_keys mine = {first, end - first, 1};
  return open_items(worker, number == BPMF_USERS ? "users" : "items", worker->sampler.width * sizeof(float),
                    side->ratings->rows, &mine, end > first, part->needs[number].ranges, part->needs[number].count,
                    worker->spec.slack, &worker->items.rows[number]);
}

static void add_range(struct pawl_items_keys *ranges, size_t *count, size_t first, size_t end) {
  if (end > first) ranges[(*count)++] = (struct pawl_items_keys){first, end - first, 1};
}

static pawl_status open_sums(struct bpmf_worker *worker) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  struct pawl_items_keys mine[2 * BPMF_SIDES], others[4 * BPMF_SIDES];
  size_t mine_count = 0, others_count = 0, blocks = 0;
  for (int side = 0; side < BPMF_SIDES; side++) {
    size_t first = worker->part.first[side], end = worker->part.end[side], all = sampler->sides[side].blocks;
    blocks += all;
    for (uint64_t parity = 0; parity < 2; parity++) {
      size_t place = bpmf_sums_place(sampler, side, 0, parity);
      add_range(mine, &mine_count, place + first, place + end);
      add_range(others, &others_count, place, place + first);
      add_range(others, &others_count, place + end, place + all);
    }
  }
  return open_items(worker, "sums", bpmf_sums_size(sampler->width) * sizeof(double), 2 * blocks, mine, mine_count,
                    others, others_count, 0, &worker->items.sums);
}

/* What opening returns when workers come and go meanwhile. The scheduler tries again. */
static pawl_status as_loss(pawl_status status) {
  return status == PAWL_TIMED_OUT || status == PAWL_NOT_FOUND || status == PAWL_EXISTS ? PAWL_NODE_GONE : status;
}

static pawl_status open_link(struct bpmf_worker *worker) {
  pawl_status status = PAWL_OK;
  if (is_alone(worker)) return status;
  for (int side = 0; side < BPMF_SIDES && !status; side++) status = open_rows(worker, side);
  if (!status) status = open_sums(worker);
  for (int side = 0; side < BPMF_SIDES && !status; side++) {
    const struct bpmf_side *is = side_of(worker, side);
    size_t first = bpmf_block_begin(is, worker->part.first[side]), end = bpmf_block_begin(is, worker->part.end[side]);
    status = pawl_items_set_range(worker->items.rows[side], first, end - first,
                                  is->rows + first * worker->sampler.width, worker->sampler.iteration);
  }
  return as_loss(status);
}

/* --- rows and sums ---------------------------------------------------------------------------------------- */

static void put(struct bpmf_worker *worker, int number, size_t block) {
  const struct bpmf_side *side = side_of(worker, number);
  size_t first = bpmf_block_begin(side, block), count = bpmf_block_begin(side, block + 1) - first;
  uint64_t clock = worker->sampler.iteration;
  int none = PAWL_OK;
  if (!worker->items.sums) return; /* alone */
  pawl_status status =
      pawl_items_set_range(worker->items.rows[number], first, count, side->rows + first * worker->sampler.width, clock);
  if (!status)
    status = pawl_items_set(worker->items.sums, bpmf_sums_place(&worker->sampler, number, block, clock),
                            sums_of(worker, number, block), clock);
  if (status) (void)atomic_compare_exchange_strong(&worker->put, &none, (int)as_loss(status));
}

static pawl_status flush(struct bpmf_worker *worker, int side) {
  (void)side;
  return (pawl_status)atomic_load(&worker->put);
}

/* Waits as long as the job goes on and the producers live. */
static pawl_status get(struct bpmf_worker *worker, struct pawl_items *items, uint64_t first, size_t count,
                       uint64_t clock, uint64_t slack, void *to) {
  pawl_status status;
  do status = pawl_items_get_range(items, first, count, clock, slack, BPMF_LOOK, to, NULL);
  while (status == PAWL_TIMED_OUT && !bpmf_worker_is_ending(worker));
  return status == PAWL_TIMED_OUT ? PAWL_CANCELLED : as_loss(status);
}

struct rows_work {
  struct bpmf_worker *worker;
  int side;
  atomic_int status;
};

static void get_chunk(void *context, uint32_t hand, size_t chunk) {
  struct rows_work *work = context;
  struct bpmf_worker *worker = work->worker;
  const struct bpmf_needs *needs = &worker->part.needs[work->side];
  size_t end = (chunk + 1) * CHUNK < needs->count ? (chunk + 1) * CHUNK : needs->count;
  (void)hand;
  for (size_t i = chunk * CHUNK; i < end && atomic_load(&work->status) == PAWL_OK; i++) {
    const struct pawl_items_keys *range = &needs->ranges[i];
    int none = PAWL_OK;
    pawl_status status =
        get(worker, worker->items.rows[work->side], range->start, (size_t)range->count, worker->sampler.iteration,
            worker->spec.slack, side_of(worker, work->side)->rows + range->start * worker->sampler.width);
    if (status) (void)atomic_compare_exchange_strong(&work->status, &none, (int)status);
  }
}

/* All threads copy rows (listing 4.5). */
static pawl_status rows(struct bpmf_worker *worker, int side) {
  const struct bpmf_needs *needs = &worker->part.needs[side];
  struct rows_work work = {.worker = worker, .side = side};
  if (worker->spec.variant == PAWL_ITEMS_PULL && needs->count > 0) {
    pawl_status status = pawl_items_prefetch(worker->items.rows[side], needs->ranges, needs->count,
                                             worker->sampler.iteration, bpmf_early_slack(worker->spec.slack));
    if (status) return as_loss(status);
  }
  apps_crew_run(worker->sampler.crew, (needs->count + CHUNK - 1) / CHUNK, get_chunk, &work);
  return (pawl_status)atomic_load(&work.status);
}

static pawl_status sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  size_t first = worker->part.first[side], end = worker->part.end[side], all = side_of(worker, side)->blocks;
  size_t place = bpmf_sums_place(&worker->sampler, side, 0, clock);
  pawl_status status = PAWL_OK;
  if (first > 0) status = get(worker, worker->items.sums, place, first, clock, 0, sums_of(worker, side, 0));
  if (!status && end < all)
    status = get(worker, worker->items.sums, place + end, all - end, clock, 0, sums_of(worker, side, end));
  return status;
}

static void begin_round(struct bpmf_worker *worker) { (void)worker; }

/* Other workers that wait for items of a context that is closed do not wait on. */
const struct bpmf_link bpmf_items_link = {begin_round, open_link, put, flush, rows, sums, close_all, close_all};
