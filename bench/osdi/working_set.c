/* Measures the share of all features that occur in the rows of one worker (OSDI'14, figure 3).
 *
 *   working_set WORKERS[,WORKERS…] FILE…
 *
 * Workers get ranges of rows of equal length, in the order of the files, as a job assigns pieces. One line
 * of JSON for each number of workers: the mean, the minimum and the maximum over workers of the share of
 * features, among those that occur at all.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#include "../bench.h"

struct rows {
  struct pawl_batch **batches;
  size_t count;
  uint64_t rows, entries, max_id;
};

static void read_all(const char *const *paths, size_t count, struct rows *rows_out) {
  struct pawl_data_options options;
  struct pawl_data *data;
  struct pawl_data_info info;
  pawl_data_options_init(&options);
  check(pawl_data_open(paths, count, &options, &data) == PAWL_OK, pawl_error_text());
  pawl_data_info(data, &info);
  struct rows rows = {.batches = calloc(info.pieces + 1, sizeof(struct pawl_batch *)), .count = info.pieces};
  check(rows.batches != NULL, "out of memory");
  for (size_t i = 0; i < info.pieces; i++) {
    check(pawl_data_read(data, i, &rows.batches[i]) == PAWL_OK, pawl_error_text());
    rows.rows += rows.batches[i]->rows;
    rows.entries += rows.batches[i]->entries;
    if (rows.batches[i]->max_id > rows.max_id) rows.max_id = rows.batches[i]->max_id;
  }
  pawl_data_close(data);
  *rows_out = rows;
}

static uint64_t worker_of(uint64_t row, uint64_t rows, uint64_t workers) {
  __extension__ unsigned __int128 wide = row;
  return (uint64_t)(wide * workers / rows);
}

/* Counts the features of each worker. `last` is, for each feature, the last worker that had it, counted
 * from 1; workers come one after another, so this suffices. */
static void count_features(const struct rows *rows, uint64_t workers, uint32_t *last, uint64_t *features) {
  uint64_t row = 0;
  memset(last, 0, (size_t)(rows->max_id + 1) * sizeof *last);
  memset(features, 0, (size_t)workers * sizeof *features);
  for (size_t i = 0; i < rows->count; i++) {
    const struct pawl_batch *batch = rows->batches[i];
    for (size_t r = 0; r < batch->rows; r++, row++) {
      uint64_t worker = worker_of(row, rows->rows, workers);
      for (uint64_t k = batch->starts[r]; k < batch->starts[r + 1]; k++) {
        if (last[batch->ids[k]] == worker + 1) continue;
        last[batch->ids[k]] = (uint32_t)(worker + 1);
        features[worker]++;
      }
    }
  }
}

static void print(const struct rows *rows, uint64_t workers, uint64_t all, const uint64_t *features) {
  uint64_t least = UINT64_MAX, most = 0, sum = 0;
  for (uint64_t i = 0; i < workers; i++) {
    sum += features[i];
    if (features[i] < least) least = features[i];
    if (features[i] > most) most = features[i];
  }
  double part = 100.0 / (double)all;
  printf("{\"bench\": \"working_set\", \"rows\": %" PRIu64 ", \"features\": %" PRIu64 ", \"entries\": %" PRIu64
         ", \"workers\": %" PRIu64 ", \"share_pct\": %.4f, \"least_pct\": %.4f, \"most_pct\": %.4f}\n",
         rows->rows, all, rows->entries, workers, part * (double)sum / (double)workers, part * (double)least,
         part * (double)most);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: working_set WORKERS[,WORKERS…] FILE…\n");
    return 2;
  }
  struct rows rows;
  read_all((const char *const *)(argv + 2), (size_t)(argc - 2), &rows);
  check(rows.rows > 0 && rows.max_id < (UINT64_C(1) << 32), "no rows, or features beyond 2^32");
  uint32_t *last = calloc((size_t)rows.max_id + 1, sizeof *last);
  uint64_t *features = calloc((size_t)rows.rows, sizeof *features), all;
  check(last && features, "out of memory");
  count_features(&rows, 1, last, features);
  all = features[0];
  for (const char *at = argv[1]; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    uint64_t workers = strtoull(at, NULL, 10);
    check(workers > 0, "the number of workers must be 1 or more");
    if (workers > rows.rows) break;
    count_features(&rows, workers, last, features);
    print(&rows, workers, all, features);
  }
  for (size_t i = 0; i < rows.count; i++) pawl_batch_destroy(rows.batches[i]);
  free(rows.batches);
  free(features);
  free(last);
  return 0;
}
