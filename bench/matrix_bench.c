/* X w and X^T r of <pawl/matrix.h>: seconds a product, and entries a processor second,
 * sparse and dense, by threads.
 *
 *   build/bench/matrix_bench
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/matrix.h>

#include "apps/common/crew.h"
#include "bench.h"

enum { ROWS = 200000, COLUMNS = 100000, EACH = 40, DENSE_ROWS = 20000, DENSE_COLUMNS = 784, ROUNDS = 10 };

static void measure(const char *kind, const struct pawl_matrix_data *data, uint32_t threads, size_t width,
                    double entries) {
  double *w = calloc(data->columns * width, sizeof *w), *z = calloc(data->rows * width, sizeof *z);
  struct pawl_matrix *matrix = NULL;
  struct pawl_range all = pawl_range_of(0, data->rows);
  if (!w || !z || pawl_matrix_create(data, threads, &matrix)) exit(1);
  for (size_t i = 0; i < data->columns * width; i++) w[i] = 1e-3 * (double)(i % 10);
  if (pawl_matrix_times(matrix, all, w, width, z)) exit(1);
  double begun = now(), spent = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < ROUNDS; i++)
    if (pawl_matrix_times(matrix, all, w, width, z)) exit(1);
  double times = (now() - begun) / ROUNDS, times_cpu = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - spent) / ROUNDS;
  begun = now(), spent = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < ROUNDS; i++)
    if (pawl_matrix_transposed_times(matrix, all, z, width, w)) exit(1);
  double transposed = (now() - begun) / ROUNDS;
  double transposed_cpu = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - spent) / ROUNDS;
  printf("{\"bench\":\"matrix\",\"kind\":\"%s\",\"threads\":%u,\"width\":%zu,\"times_s\":%.6f,\"transposed_s\":%.6f,"
         "\"times_entries_per_cpu_s\":%.3g,\"transposed_entries_per_cpu_s\":%.3g}\n",
         kind, threads, width, times, transposed, entries * (double)width / times_cpu,
         entries * (double)width / transposed_cpu);
  pawl_matrix_destroy(matrix);
  free(w);
  free(z);
}

int main(void) {
  size_t entries = (size_t)ROWS * EACH, cells = (size_t)DENSE_ROWS * DENSE_COLUMNS;
  uint64_t *starts = malloc((ROWS + 1) * sizeof *starts);
  uint32_t *at = malloc(entries * sizeof *at), random = 1;
  float *values = malloc((entries > cells ? entries : cells) * sizeof *values);
  if (!starts || !at || !values) return 1;
  for (size_t i = 0; i < (entries > cells ? entries : cells); i++) values[i] = (float)(i % 7) - 3;
  for (size_t i = 0; i <= ROWS; i++) starts[i] = i * EACH;
  for (size_t k = 0; k < entries; k++) {
    random = random * 1664525 + 1013904223;
    at[k] = (uint32_t)(k % EACH * (COLUMNS / EACH) + (random >> 8) % (COLUMNS / EACH));
  }
  struct pawl_matrix_data sparse = {.rows = ROWS, .columns = COLUMNS, .values = values, .starts = starts, .at = at};
  struct pawl_matrix_data dense = {.rows = DENSE_ROWS, .columns = DENSE_COLUMNS, .values = values};
  for (uint32_t threads = 1; threads <= apps_crew_processors(); threads *= 2) {
    measure("sparse", &sparse, threads, 1, (double)entries);
    measure("dense", &dense, threads, 1, (double)cells);
    measure("dense", &dense, threads, 10, (double)cells);
  }
  free(starts);
  free(at);
  free(values);
  return 0;
}
