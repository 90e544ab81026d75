/* A worker of `pawl-bench lapser`: the worker of apps/bpmf without a job. MPI ranks use it, too. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "apps/common/clock.h"
#include "apps/common/memory.h"
#include "base/hash.h"
#include "lapser.h"

#define ALPHA 2 /* of ratings that are divided by their deviation, as in `pawl train bpmf` */

static double cpu_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- the link, measured ----------------------------------------------------------------------------------- */

static void put(struct bpmf_worker *worker, int side, size_t block) {
  struct pwi_lapser_worker *measured = pwi_lapser_of(worker);
  int64_t before = apps_now();
  measured->inner->put(worker, side, block);
  measured->put_s += apps_seconds_since(before);
}

/* --- life ------------------------------------------------------------------------------------------------- */

pawl_status pwi_lapser_sampler_init(struct bpmf_sampler *sampler, const struct pwi_lapser_task *task) {
  return bpmf_sampler_init(sampler, task->data, task->rank, ALPHA, task->seed, 1, NULL);
}

pawl_status pwi_lapser_worker_init(struct pwi_lapser_worker *worker, const struct pwi_lapser_task *task, uint32_t index,
                                   const struct bpmf_link *link) {
  struct bpmf_worker *is = &worker->is;
  *worker = (struct pwi_lapser_worker){.inner = link, .link = *link};
  worker->link.put = put;
  is->link = &worker->link;
  is->era = 1;
  is->data = *task->data;
  is->spec.share = PAWL_BPMF_ITEMS;
  is->spec.variant = task->way == PWI_LAPSER_PULL ? PAWL_ITEMS_PULL : PAWL_ITEMS_PUSH;
  is->spec.slack = task->slack;
  is->spec.burn_in = task->burn_in;
  pawl_status status = pwi_lapser_sampler_init(&is->sampler, task);
  if (status) return status;
  bool is_fine =
      bpmf_part_init(&is->part, &is->sampler, index, task->workers) &&
      bpmf_measure_init(&is->tests, &is->sampler, false, false, is->part.first[BPMF_USERS], is->part.end[BPMF_USERS]) &&
      bpmf_measure_init(&is->training, &is->sampler, true, true, is->part.first[BPMF_USERS], is->part.end[BPMF_USERS]);
  return is_fine ? PAWL_OK : PAWL_NO_MEMORY;
}

void pwi_lapser_worker_fini(struct pwi_lapser_worker *worker) {
  bpmf_part_fini(&worker->is.part);
  bpmf_measure_fini(&worker->is.tests);
  bpmf_measure_fini(&worker->is.training);
  bpmf_sampler_fini(&worker->is.sampler);
}

/* --- iterations ------------------------------------------------------------------------------------------- */

static void note(struct pwi_lapser_worker *worker, const struct bpmf_reply *reply, struct pwi_lapser_step *step) {
  const double *from = reply->figures;
  *step = (struct pwi_lapser_step){.seconds = *from++, .shared = worker->is.waited_s + worker->put_s};
  for (size_t block = reply->first; block < reply->end; block++, from += BPMF_ERRORS) {
    step->now += from[0];
    step->mean += from[1];
  }
}

uint64_t pwi_lapser_digest(const struct bpmf_sampler *sampler, const struct bpmf_part *part) {
  uint64_t digest = 0;
  for (int number = 0; number < BPMF_SIDES; number++) {
    const struct bpmf_side *side = &sampler->sides[number];
    size_t first = part ? part->first[number] : 0, end = part ? part->end[number] : side->blocks;
    for (size_t row = bpmf_block_begin(side, first); row < bpmf_block_begin(side, end); row++)
      digest += pwi_hash(side->rows + row * sampler->width, sampler->width * sizeof(float), 2 * row + (uint64_t)number);
  }
  return digest;
}

pawl_status pwi_lapser_worker_run(struct pwi_lapser_worker *worker, uint32_t iterations,
                                  struct pwi_lapser_figures *figures_out) {
  struct bpmf_worker *is = &worker->is;
  struct bpmf_reply reply = {.first = is->part.first[BPMF_USERS], .end = is->part.end[BPMF_USERS]};
  double before = cpu_now();
  pawl_status status = PAWL_OK;
  reply.figures = apps_alloc_zero(1 + BPMF_ERRORS * (reply.end - reply.first), sizeof(double));
  if (!reply.figures) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < iterations && !status; i++) {
    reply.done = 0;
    is->waited_s = worker->put_s = 0;
    status = bpmf_worker_iterate(is, &reply);
    if (!status) note(worker, &reply, &figures_out->steps[i]);
  }
  figures_out->iterations = iterations;
  figures_out->cpu_s = cpu_now() - before;
  figures_out->digest = pwi_lapser_digest(&is->sampler, &is->part);
  apps_free(reply.figures);
  return status;
}

/* --- needs ------------------------------------------------------------------------------------------------ */

void pwi_lapser_needed(const struct bpmf_part *part, const struct bpmf_side *side, int number, size_t first, size_t end,
                       void (*range)(void *context, size_t row, size_t count), void *context) {
  const struct bpmf_needs *needs = &part->needs[number];
  size_t begin = bpmf_block_begin(side, first), stop = bpmf_block_begin(side, end);
  for (size_t i = 0; i < needs->count && needs->ranges[i].start < stop; i++) {
    size_t from = needs->ranges[i].start, to = from + needs->ranges[i].count;
    if (from < begin) from = begin;
    if (to > stop) to = stop;
    if (from < to) range(context, from, to - from);
  }
}

struct copying {
  float *to;
  const float *from;
  size_t width;
};

static void copy_range(void *context, size_t row, size_t count) {
  const struct copying *copying = context;
  memcpy(copying->to + row * copying->width, copying->from + row * copying->width,
         count * copying->width * sizeof(float));
}

void pwi_lapser_take_rows(struct bpmf_worker *worker, int number, const float *from) {
  const struct bpmf_side *side = &worker->sampler.sides[number];
  struct copying copying = {side->rows, from, worker->sampler.width};
  pwi_lapser_needed(&worker->part, side, number, 0, side->blocks, copy_range, &copying);
}

void pwi_lapser_take_sums(struct bpmf_worker *worker, int number, uint64_t clock, const double *from) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  size_t size = bpmf_sums_size(sampler->width);
  for (size_t block = 0; block < side->blocks; block++)
    if (block < worker->part.first[number] || block >= worker->part.end[number])
      memcpy(side->sums + block * size, from + size * bpmf_sums_place(sampler, number, block, clock),
             size * sizeof(double));
}

/* --- figures ---------------------------------------------------------------------------------------------- */

void pwi_lapser_add(struct pwi_lapser_figures *figures, const struct pwi_lapser_figures *worker) {
  figures->iterations = worker->iterations;
  figures->cpu_s += worker->cpu_s;
  figures->digest += worker->digest;
  for (uint32_t i = 0; i < worker->iterations; i++) {
    struct pwi_lapser_step *to = &figures->steps[i];
    const struct pwi_lapser_step *from = &worker->steps[i];
    to->seconds = fmax(to->seconds, from->seconds);
    to->shared += from->shared;
    to->now += from->now;
    to->mean += from->mean;
  }
}

void pwi_lapser_finish(struct pwi_lapser_figures *figures, const struct pwi_lapser_task *task) {
  double tests = (double)task->data->test_count;
  for (uint32_t i = 0; i < figures->iterations; i++) {
    struct pwi_lapser_step *step = &figures->steps[i];
    step->shared /= task->workers;
    step->now = sqrt(step->now / tests);
    step->mean = i < task->burn_in ? (double)NAN : sqrt(step->mean / tests);
  }
}
