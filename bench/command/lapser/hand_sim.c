/* The exchange by hand on simulated machines: a worker sends each block, as soon as it is drawn, to the workers that
 * need rows of it, with the sums of the block, and goes on when it has those of all others. Nothing but computing and the
 * network takes time, so no exchange without slack can be faster. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "base/hash.h"
#include "network.h"

struct sending {
  int64_t time;
  uint32_t from, to;
  size_t size;
};

struct hand_sim {
  const struct pwi_lapser_task *task;
  struct bpmf_sampler sampler; /* draws all rows */
  struct bpmf_measure tests;
  struct bpmf_part parts[PWI_LAPSER_WORKERS_MAX];
  struct pwi_lapser_cards cards;
  struct sending *sendings;
  size_t count;
  int64_t times[PWI_LAPSER_WORKERS_MAX];  /* of the workers */
  int64_t waited[PWI_LAPSER_WORKERS_MAX]; /* in this iteration */
};

static void add_rows(void *context, size_t row, size_t count) {
  (void)row;
  *(size_t *)context += count;
}

static void send_block(struct hand_sim *sim, uint32_t from, int number, size_t block, int64_t time) {
  const struct bpmf_sampler *sampler = &sim->sampler;
  for (uint32_t to = 0; to < sim->task->workers; to++) {
    size_t rows = 0;
    if (to == from) continue;
    pwi_lapser_needed(&sim->parts[to], &sampler->sides[number], number, block, block + 1, add_rows, &rows);
    sim->sendings[sim->count++] = (struct sending){
        time, from, to, rows * sampler->width * sizeof(float) + bpmf_sums_size(sampler->width) * sizeof(double)};
  }
}

static int compare(const void *left, const void *right) {
  const struct sending *a = left, *b = right;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  return a < b ? -1 : a > b;
}

static void draw_side(struct hand_sim *sim, int number) {
  int64_t ends[PWI_LAPSER_WORKERS_MAX];
  sim->count = 0;
  for (uint32_t i = 0; i < sim->task->workers; i++) {
    int64_t time = sim->times[i];
    for (size_t block = sim->parts[i].first[number]; block < sim->parts[i].end[number]; block++) {
      time += pwi_lapser_block_ns(sim->task, &sim->sampler, number, block);
      send_block(sim, i, number, block, time);
    }
    ends[i] = sim->times[i] = time;
  }
  qsort(sim->sendings, sim->count, sizeof *sim->sendings, compare);
  for (size_t i = 0; i < sim->count; i++) {
    const struct sending *sending = &sim->sendings[i];
    int64_t arrival = pwi_lapser_cards_arrival(&sim->cards, sending->from, sending->to, sending->size, sending->time);
    if (arrival > sim->times[sending->to]) sim->times[sending->to] = arrival;
  }
  for (uint32_t i = 0; i < sim->task->workers; i++) sim->waited[i] += sim->times[i] - ends[i];
}

static void note(struct hand_sim *sim, const int64_t *begun, struct pwi_lapser_step *step) {
  const struct bpmf_side *users = &sim->sampler.sides[BPMF_USERS];
  bpmf_measure_blocks(&sim->tests, sim->sampler.iteration > sim->task->burn_in, 0, users->blocks);
  for (uint32_t i = 0; i < sim->task->workers; i++) {
    double seconds = 1e-9 * (double)(sim->times[i] - begun[i]);
    if (seconds > step->seconds) step->seconds = seconds;
    step->shared += 1e-9 * (double)sim->waited[i];
  }
  for (size_t block = 0; block < users->blocks; block++) {
    step->now += sim->tests.errors[block][0];
    step->mean += sim->tests.errors[block][1];
  }
}

static pawl_status iterate(struct hand_sim *sim, struct pwi_lapser_figures *figures) {
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < sim->task->iterations && !status; i++) {
    int64_t begun[PWI_LAPSER_WORKERS_MAX];
    memcpy(begun, sim->times, sizeof begun);
    memset(sim->waited, 0, sizeof sim->waited);
    status = bpmf_sampler_step(&sim->sampler);
    for (int side = 0; side < BPMF_SIDES; side++) draw_side(sim, side);
    note(sim, begun, &figures->steps[i]);
  }
  figures->iterations = sim->task->iterations;
  figures->digest = pwi_lapser_digest(&sim->sampler, NULL);
  return status;
}

static pawl_status prepare(struct hand_sim *sim) {
  const struct pwi_lapser_task *task = sim->task;
  pawl_status status = pwi_lapser_sampler_init(&sim->sampler, task);
  if (status) return status;
  bool is_fine = bpmf_measure_init(&sim->tests, &sim->sampler, false, false, 0, sim->sampler.sides[BPMF_USERS].blocks);
  for (uint32_t i = 0; i < task->workers; i++)
    is_fine = bpmf_part_init(&sim->parts[i], &sim->sampler, i, task->workers) && is_fine;
  sim->sendings = apps_alloc_zero((size_t)BPMF_BLOCKS * task->workers, sizeof *sim->sendings);
  return is_fine && sim->sendings ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status pwi_lapser_simulate_hand(const struct pwi_lapser_task *task, struct pwi_lapser_figures *figures_out) {
  struct hand_sim *sim = apps_alloc_zero(1, sizeof *sim);
  if (!sim) return PAWL_NO_MEMORY;
  sim->task = task;
  pwi_lapser_cards_init(&sim->cards, task);
  memset(figures_out, 0, sizeof *figures_out);
  pawl_status status = prepare(sim);
  if (!status) status = iterate(sim, figures_out);
  if (!status) pwi_lapser_finish(figures_out, task);
  for (uint32_t i = 0; i < task->workers; i++) bpmf_part_fini(&sim->parts[i]);
  bpmf_measure_fini(&sim->tests);
  bpmf_sampler_fini(&sim->sampler);
  apps_free(sim->sendings);
  apps_free(sim);
  return status;
}
