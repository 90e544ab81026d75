/* `pawl-bench collective`: how long one all-reduce takes between processes of this machine, beside memcpy in the same run
 * and beside MPI_Allreduce. The first process measures, and copies memory in turns while the others wait for it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
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

enum { LETTER_SIZE = 300, LETTER_PEERS, LETTER_SECONDS, LETTER_ROUNDS };

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
    *figures_out = (struct pwi_asap_speed_figures){result->sum_us, result->copy_us, (double)NAN};
  }
  pwi_asap_crew_free(&crew);
  return is_fine;
}

/* --- the command line ----------------------------------------------------------------------------------- */

struct collective_options {
  struct pwi_asap_speed speed; /* size or peers 0: not given */
  bool json;
};

static bool read_option(void *context, int letter, const char *value) {
  struct collective_options *options = context;
  switch (letter) {
  case LETTER_SIZE:
    return pwi_bench_size(value, &options->speed.size) && options->speed.size % sizeof(float) == 0;
  case LETTER_PEERS:
    return pwi_bench_count(value, 1, PWI_ASAP_SPEED_PEERS_MAX, &options->speed.peers);
  case LETTER_SECONDS:
    return pwi_bench_positive(value, 60, &options->speed.seconds);
  case LETTER_ROUNDS:
    return pwi_bench_count(value, 1, PWI_ASAP_SPEED_ROUNDS_MAX, &options->speed.rounds);
  default:
    return options->json = true;
  }
}

static double gb_per_s(size_t size, double us) { return (double)size / us / 1e3; }

static void print_json(const struct pwi_command *command, const struct pwi_asap_speed *speed,
                       const struct pwi_asap_speed_figures *figures) {
  pwi_cli_print_json(command,
                     json_pack("{s:s, s:I, s:i, s:f, s:f, s:f, s:f, s:f, s:o}", "bench", "collective", "size",
                               (json_int_t)speed->size, "members", (int)speed->peers + 1, "us", figures->reduce_us,
                               "memcpy_us", figures->copy_us, "gb_per_s", gb_per_s(speed->size, figures->reduce_us),
                               "memcpy_gb_per_s", gb_per_s(speed->size, figures->copy_us), "of_memcpy",
                               figures->copy_us / figures->reduce_us, "mpi_us", pwi_bench_number(figures->mpi_us)));
}

static void print_row(const struct pwi_asap_speed *speed, const struct pwi_asap_speed_figures *figures) {
  char mpi[32] = "-";
  if (!isnan(figures->mpi_us)) snprintf(mpi, sizeof mpi, "%.2f us", figures->mpi_us);
  printf("%9zu %7" PRIu32 " %12.2f us %10.2f us %9.2fx %9.2f GB/s %14s\n", speed->size, speed->peers + 1,
         figures->reduce_us, figures->copy_us, figures->copy_us / figures->reduce_us,
         gb_per_s(speed->size, figures->reduce_us), mpi);
}

static int measure(const struct pwi_command *command, const struct collective_options *options, size_t size,
                   uint32_t peers) {
  struct pwi_asap_speed speed = options->speed;
  struct pwi_asap_speed_figures figures;
  speed.size = size;
  speed.peers = peers;
  if (!run_crew(command, &speed, &figures)) return PWI_EXIT_FAILURE;
  figures.mpi_us = pwi_asap_speed_mpi(&speed);
  if (options->json)
    print_json(command, &speed, &figures);
  else
    print_row(&speed, &figures);
  fflush(stdout);
  return PWI_EXIT_OK;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct collective_options options = {.speed = {.seconds = 0.5, .rounds = 5}};
  int exit_code;
  if (!pwi_bench_read(command, argc, argv, read_option, &options, &exit_code)) return exit_code;
  if (!options.json) {
    pwi_bench_print_machine();
    printf("     size members   all-reduce        memcpy  of memcpy                 MPI_Allreduce\n");
  }
  size_t size = options.speed.size;
  uint32_t peers = options.speed.peers;
  if (size > 0 || peers > 0) return measure(command, &options, size ? size : LARGE, peers ? peers : 1);
  exit_code = measure(command, &options, SMALL, 1);
  return exit_code ? exit_code : measure(command, &options, LARGE, 1);
}

static const struct pwi_cli_option cli_options[] = {
    {LETTER_SIZE, "size", "S", "bytes of the values, such as 1k or 4m, up to 256m (default: 4m)"},
    {LETTER_PEERS, "peers", "N", "other processes, up to 63 (default: 1)"},
    {LETTER_SECONDS, "seconds", "S", "seconds per measurement, up to 60 (default: 0.5)"},
    {LETTER_ROUNDS, "rounds", "N",
     "all-reduce and memcpy take turns N times, up to 15; medians are printed (default: 5)"},
    PWI_CLI_JSON,
    {0},
};

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
    .options = cli_options,
    .run = run,
};
