/* What tests of trainings by workers that share a matrix have in common: a file of made-up rows, workers that are threads. */
#ifndef SHARED_MATRIX_WORKERS_TEST_H
#define SHARED_MATRIX_WORKERS_TEST_H

#include <math.h>
#include <pthread.h>

#include <pawl/shared_matrix.h>

#include "apps/common/scene_test.h"

enum { WORKERS_MOST = 6 };

static char rows_path[64];
static const char *const rows_files[] = {rows_path};

/* Rows around a centre for each class, with about a third of the features each. The last class has one row only. */
static inline void write_rows(uint32_t count, uint32_t classes, uint32_t features) {
  uint64_t state = 4711 + count;
  snprintf(rows_path, sizeof rows_path, "%s/rows", folder);
  FILE *file = fopen(rows_path, "w");
  assert_non_null(file);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t class_number = i + 1 == count ? classes - 1 : i % (classes - 1);
    fprintf(file, "c%u", class_number);
    for (uint32_t d = 0; d < features; d++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      if ((state >> 33) % 3 == 0)
        fprintf(file, " %u:%.4f", 2 * d + 1, sin(class_number * 7.0 + d) + (double)(state >> 50) / 8192 - 1);
    }
    fprintf(file, "\n");
  }
  assert_int_equal(fclose(file), 0);
}

static inline struct pawl_matrix_sharing sharing_of(enum pawl_matrix_way way, uint32_t workers) {
  static struct pawl_data_options reading;
  struct pawl_matrix_sharing sharing;
  pawl_data_options_init(&reading);
  pawl_matrix_sharing_init(&sharing);
  sharing.way = way;
  sharing.workers = workers;
  sharing.paths = rows_files;
  sharing.path_count = 1;
  sharing.reading = &reading;
  sharing.arcs = 16; /* two servers */
  return sharing;
}

typedef pawl_status work_function(struct pawl_session *session, const char *job, int64_t timeout_ns,
                                  char error[PAWL_MATRIX_TEXT]);

struct hand {
  pthread_t thread;
  const char *job;
  work_function *work;
  char error[PAWL_MATRIX_TEXT];
};

/* A round of workers of one job. */
struct hands {
  struct hand each[WORKERS_MOST];
  uint32_t count;
  char job[32];
};

static inline void *labour(void *context) {
  struct hand *hand = context;
  struct pawl_session *own = open_as(pawl_session_address(base), true);
  (void)!hand->work(own, hand->job, PATIENCE, hand->error);
  pawl_session_close(own, PATIENCE);
  return NULL;
}

/* Starts sharing->workers workers, and names the job. */
static inline void start_hands(struct hands *hands, work_function *work, struct pawl_matrix_sharing *sharing) {
  static unsigned jobs;
  snprintf(hands->job, sizeof hands->job, "job%u", ++jobs);
  sharing->job = hands->job;
  hands->count = sharing->workers;
  for (uint32_t i = 0; i < hands->count; i++) {
    hands->each[i] = (struct hand){.job = hands->job, .work = work};
    assert_int_equal(pthread_create(&hands->each[i].thread, NULL, labour, &hands->each[i]), 0);
  }
}

static inline void join_hands(struct hands *hands) {
  for (uint32_t i = 0; i < hands->count; i++) {
    pthread_join(hands->each[i].thread, NULL);
    if (*hands->each[i].error) print_message("worker %u of %s: %s\n", i, hands->job, hands->each[i].error);
  }
}

/* Of bytes in a step, against the model of the costs. */
static inline bool is_near(double sent, double wanted) { return fabs(sent - wanted) < 0.1 * wanted; }

#define TRIES 4 /* on a machine that is short of time a link may break, and what was under way is sent again */

/* --- tests of both ways ----------------------------------------------------------------------------------- */

static enum pawl_matrix_way tested_way; /* of a group's sessions */

static inline int open_way(void **state) {
  opens_peers = tested_way == PAWL_MATRIX_FACTORS;
  snprintf(folder, sizeof folder, "/tmp/pawl-train-XXXXXX");
  return open_cluster(state);
}

/* With factors and without staleness all workers have the same bits. */
static inline void assert_identical(const struct pawl_matrix_shared *shared, uint32_t workers) {
  assert_int_equal(shared->workers, workers);
  assert_int_equal(shared->workers_lost, 0);
  assert_int_equal(shared->each_count, workers);
  if (tested_way != PAWL_MATRIX_FACTORS) return;
  assert_true(shared->is_identical);
  for (uint32_t i = 0; i < workers; i++)
    assert_true(shared->each[i].hash == shared->each[0].hash && shared->each[i].hash != 0);
}

#endif
