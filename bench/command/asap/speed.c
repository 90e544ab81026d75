/* `pawl-bench reduce`: how long one reduce takes between processes of this machine.
 *
 * All processes make one step after the other, on the complete graph. The first one measures. It copies memory in
 * turns with reducing, while the others wait for its tensors. Before its last step it says which iteration that
 * is; no other process can complete that iteration without it. */
#include "speed.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/histogram.h"
#include "base/memory.h"
#include "bench/command/bench.h"
#include "bench/command/mpi_run.h"
#include "crew.h"

#define PATIENCE (60 * PAWL_SECOND)
#define WARM 20 /* steps before the first measurement */
#define BATCH 8 /* copies between two looks at the clock */

struct shared {
  _Atomic uint64_t last; /* iteration; 0: not known yet */
};

struct result {
  double reduce_us, copy_us, cpu_us;
};

struct worker {
  struct pwi_asap_member *member;
  const struct pwi_asap_speed *speed;
  struct pawl_peers *peers;
  struct pawl_reduce *reduce;
  float *values, *other;
  struct pwi_histogram times;
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static double copy(struct worker *worker, double seconds) {
  double begin = pwi_bench_now(), end = begin + seconds, now = begin;
  pwi_histogram_reset(&worker->times);
  for (; now < end; begin = now) {
    for (int i = 0; i < BATCH; i++) {
      memcpy(worker->other, worker->values, worker->speed->size);
      __asm__ volatile("" ::: "memory"); /* or the compiler would drop copies */
    }
    now = pwi_bench_now();
    pwi_histogram_record(&worker->times, (int64_t)((now - begin) * 1e9 / BATCH));
  }
  return (double)pwi_histogram_percentile(&worker->times, 50) / 1e3;
}

/* Processor seconds of this process so far. */
static double used(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static pawl_status reduce(struct worker *worker, double seconds, double *us_out, double *cpu_us_out) {
  double begin = pwi_bench_now(), end = begin + seconds, now = begin, before = used();
  pawl_status status = PAWL_OK;
  uint64_t steps = 0;
  pwi_histogram_reset(&worker->times);
  for (; now < end && !status; begin = now, steps++) {
    status = pawl_reduce_step(worker->reduce, PATIENCE, NULL);
    now = pwi_bench_now();
    pwi_histogram_record(&worker->times, (int64_t)((now - begin) * 1e9));
  }
  *us_out = (double)pwi_histogram_percentile(&worker->times, 50) / 1e3;
  *cpu_us_out = 1e6 * (used() - before) / fmax((double)steps, 1);
  return status;
}

static pawl_status lead(struct worker *worker) {
  const struct pwi_asap_speed *speed = worker->speed;
  struct shared *shared = worker->member->shared;
  struct result *result = worker->member->result;
  struct pawl_reduce_report report = {0};
  double reduces[PWI_ASAP_SPEED_ROUNDS_MAX], copies[PWI_ASAP_SPEED_ROUNDS_MAX], cpu[PWI_ASAP_SPEED_ROUNDS_MAX];
  pawl_status status = PAWL_OK;
  for (int i = 0; i < WARM && !status; i++) status = pawl_reduce_step(worker->reduce, PATIENCE, &report);
  for (uint32_t i = 0; i < speed->rounds && !status; i++) {
    copies[i] = copy(worker, speed->seconds / 4);
    status = reduce(worker, speed->seconds, &reduces[i], &cpu[i]);
  }
  if (status) return status;
  result->copy_us = median(copies, speed->rounds);
  result->reduce_us = median(reduces, speed->rounds);
  result->cpu_us = median(cpu, speed->rounds);
  struct pawl_reduce_state state;
  pawl_reduce_state(worker->reduce, &state);
  atomic_store(&shared->last, state.iteration + 1);
  return pawl_reduce_step(worker->reduce, PATIENCE, NULL);
}

static pawl_status follow(struct worker *worker) {
  struct shared *shared = worker->member->shared;
  struct pawl_reduce_report report = {0};
  pawl_status status = PAWL_OK;
  do status = pawl_reduce_step(worker->reduce, PATIENCE, &report);
  while (!status && report.iteration != atomic_load(&shared->last));
  return status;
}

static pawl_status work(struct pwi_asap_member *member) {
  struct worker *worker = pwi_alloc_zero(1, sizeof *worker);
  if (!worker) return PAWL_NO_MEMORY;
  *worker = (struct worker){.member = member, .speed = member->task};
  size_t size = worker->speed->size;
  struct pawl_reduce_options options;
  pawl_reduce_options_init(&options);
  options.graph = "complete";
  worker->values = pwi_alloc_zero(size, 1);
  worker->other = pwi_alloc_zero(size, 1);
  pawl_status status = worker->values && worker->other ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < size / sizeof(float) && !status; i++) worker->values[i] = (float)(i % 100) + 1;
  if (!status) memset(worker->other, 1, size);
  struct pawl_tensor tensor = {worker->values, size / sizeof(float), PAWL_F32};
  if (!status) status = pawl_peers_join(member->session, "bench/reduce", member->count, PATIENCE, &worker->peers);
  if (!status) status = pawl_reduce_open(worker->peers, "values", &tensor, 1, &options, PATIENCE, &worker->reduce);
  if (!status) status = member->index == 0 ? lead(worker) : follow(worker);
  pawl_reduce_close(worker->reduce);
  pwi_free(worker->other);
  pwi_free(worker->values);
  pwi_free(worker);
  return status;
}

bool pwi_asap_speed_run(const struct pwi_command *command, const struct pwi_asap_speed *speed,
                        struct pwi_asap_speed_figures *figures_out) {
  struct pwi_asap_crew crew = {.command = command,
                               .count = speed->peers + 1,
                               .work = work,
                               .task = speed,
                               .result_size = sizeof(struct result),
                               .shared_size = sizeof(struct shared)};
  bool is_fine = pwi_asap_crew_run(&crew);
  if (is_fine) {
    const struct result *result = pwi_asap_crew_result(&crew, 0);
    *figures_out = (struct pwi_asap_speed_figures){result->reduce_us, result->copy_us, result->cpu_us, (double)NAN};
  }
  pwi_asap_crew_free(&crew);
  return is_fine;
}

double pwi_asap_speed_mpi(const struct pwi_asap_speed *speed) {
  char size[32], seconds[32], rounds[16], text[64], *end;
  const char *const arguments[] = {"speed", size, seconds, rounds, NULL};
  snprintf(size, sizeof size, "%zu", speed->size);
  snprintf(seconds, sizeof seconds, "%g", speed->seconds);
  snprintf(rounds, sizeof rounds, "%" PRIu32, speed->rounds);
  if (!pwi_mpi_run("mpi_allreduce", speed->peers + 1, arguments, text, sizeof text)) return (double)NAN;
  double figure = strtod(text, &end);
  return end == text ? (double)NAN : figure;
}
