/* `pawl-bench collective`: how long one all-reduce takes between processes of this machine, beside memcpy in the same run
 * and beside MPI_Allreduce. The first process measures, and copies memory in turns while the others wait for it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/memory.h"
#include "bench/command/bench.h"
#include "crew.h"
#include "speed.h"

#define PATIENCE (60 * PAWL_SECOND)
#define LARGE ((size_t)4 << 20)
#define SMALL 1024
#define BATCH 16 /* operations after which the first process says whether there are more */

struct summing {
  const struct pwi_asap_speed *speed;
  struct pawl_collective *collective;
  float *values, *sums;
  struct pwi_histogram times;
  bool is_first;
};

struct summing_result {
  double sum_us, copy_us;
};

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static void copy_once(struct summing *summing) {
  memcpy(summing->sums, summing->values, summing->speed->size);
  __asm__ volatile("" ::: "memory"); /* or the compiler would drop copies */
}

static double copy(struct summing *summing, double seconds) {
  double begin = pwi_bench_now(), end = begin + seconds, now = begin;
  pwi_histogram_reset(&summing->times);
  for (; now < end; begin = now) {
    for (int i = 0; i < BATCH; i++) copy_once(summing);
    now = pwi_bench_now();
    pwi_histogram_record(&summing->times, (int64_t)((now - begin) * 1e9 / BATCH));
  }
  return (double)pwi_histogram_percentile(&summing->times, 50) / 1e3;
}

static pawl_status add_up(struct summing *summing) {
  double begin = pwi_bench_now();
  pawl_status status =
      pawl_collective_all_reduce(summing->collective, summing->values, summing->sums,
                                 summing->speed->size / sizeof(float), PAWL_F32, PAWL_COLLECTIVE_SUM, PATIENCE);
  pwi_histogram_record(&summing->times, (int64_t)((pwi_bench_now() - begin) * 1e9));
  return status;
}

/* All processes make the same calls. */
static pawl_status measure_round(struct summing *summing, double *us_out) {
  double end = pwi_bench_now() + summing->speed->seconds, more = 1;
  pawl_status status = PAWL_OK;
  pwi_histogram_reset(&summing->times);
  while (more > 0 && !status) {
    for (int i = 0; i < BATCH && !status; i++) status = add_up(summing);
    more = summing->is_first && pwi_bench_now() < end;
    if (!status)
      status =
          pawl_collective_all_reduce(summing->collective, &more, &more, 1, PAWL_F64, PAWL_COLLECTIVE_MAX, PATIENCE);
  }
  *us_out = (double)pwi_histogram_percentile(&summing->times, 50) / 1e3;
  return status;
}

static pawl_status measure_all(struct summing *summing, struct summing_result *result) {
  double sums[PWI_ASAP_SPEED_ROUNDS_MAX], copies[PWI_ASAP_SPEED_ROUNDS_MAX];
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < summing->speed->rounds && !status; i++) {
    copies[i] = summing->is_first ? copy(summing, summing->speed->seconds / 4) : 0;
    status = measure_round(summing, &sums[i]);
  }
  if (status) return status;
  result->sum_us = median(sums, summing->speed->rounds);
  result->copy_us = median(copies, summing->speed->rounds);
  return PAWL_OK;
}

static pawl_status work(struct pwi_asap_member *member) {
  struct summing *summing = pwi_alloc_zero(1, sizeof *summing);
  struct pawl_peers *peers = NULL;
  if (!summing) return PAWL_NO_MEMORY;
  summing->speed = member->task;
  summing->is_first = member->index == 0;
  summing->values = pwi_alloc_zero(summing->speed->size, 1);
  summing->sums = pwi_alloc_zero(summing->speed->size, 1);
  pawl_status status = summing->values && summing->sums ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t i = 0; i < summing->speed->size / sizeof(float) && !status; i++) summing->values[i] = (float)(i % 100);
  if (!status) status = pawl_peers_join(member->session, "bench/collective", member->count, PATIENCE, &peers);
  if (!status) status = pawl_collective_open(peers, "values", PATIENCE, &summing->collective);
  if (!status) status = measure_all(summing, member->result);
  pawl_collective_close(summing->collective);
  pwi_free(summing->sums);
  pwi_free(summing->values);
  pwi_free(summing);
  return status;
}

static bool run_crew(const struct pwi_command *command, const struct pwi_asap_speed *speed,
                     struct pwi_asap_speed_figures *figures_out) {
  struct pwi_asap_crew crew = {.command = command,
                               .count = speed->peers + 1,
                               .work = work,
                               .task = speed,
                               .result_size = sizeof(struct summing_result)};
  bool is_fine = pwi_asap_crew_run(&crew);
  if (is_fine) {
    const struct summing_result *result = pwi_asap_crew_result(&crew, 0);
    *figures_out = (struct pwi_asap_speed_figures){result->sum_us, result->copy_us, (double)NAN, (double)NAN};
  }
  pwi_asap_crew_free(&crew);
  return is_fine;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_asap_speed_case all_reduce = {
      .what = "all-reduce", .counted = "members", .usual = {{SMALL, 1}, {LARGE, 1}}, .run = run_crew};
  return pwi_asap_speed_command(command, &all_reduce, argc, argv);
}

const struct pwi_command pwi_command_bench_collective = {
    .name = "collective",
    .summary = "measure one all-reduce between processes of this machine",
    .text = "Starts processes that add up floats by pawl_collective_all_reduce, one call after\n"
            "the other, and prints the median of the time of a call beside a memcpy of the\n"
            "same bytes in the same run, and beside MPI_Allreduce if Open MPI was found when\n"
            "pawl was built. Without --size and --peers it measures 1 KB and 4 MB between two\n"
            "processes.\n\n"
            "  pawl-bench collective\n"
            "  pawl-bench collective --size 64k --peers 3 --json\n",
    .options = pwi_asap_speed_options,
    .run = run,
};
