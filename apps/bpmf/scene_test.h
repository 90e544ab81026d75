/* What tests of trainings share: a folder, made-up ratings of low rank, and trainings that must succeed. */
#ifndef BPMF_SCENE_TEST_H
#define BPMF_SCENE_TEST_H

#include <math.h>
#include <unistd.h>

#include <pawl/bpmf.h>
#include <pawl/session.h>

#include "apps/bpmf/random.h"
#include "base/testing.h"

static char folder[] = "/tmp/pawl-bpmf-XXXXXX";

static inline int make_folder(void **state) {
  (void)state;
  bpmf_random_prepare();
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state) {
  char command[256];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static inline const char *path_of(const char *name) {
  static char paths[8][300];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

/* The ratings of a text. */
static inline struct pawl_ratings *ratings_of_text(const char *text) {
  struct pawl_ratings *ratings = NULL;
  const char *path = path_of("ratings");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  if (pawl_ratings_read(&path, 1, NULL, &ratings)) fail_msg("%s", pawl_error_text());
  return ratings;
}

/* Ratings 3 + u . v + noise of a part of all pairs. User 0 has rated nothing but one item, the last user everything. */
struct low_rank {
  uint32_t users, items, rank;
  double noise, share;
  uint64_t seed;
  double unit; /* of the ratings */
};

static inline struct pawl_ratings *low_rank_ratings(struct low_rank is) {
  struct apps_random random = bpmf_random_of(is.seed, BPMF_FOR_ROWS, 9, 0, 0);
  double *u = calloc(is.users * is.rank, sizeof *u), *v = calloc(is.items * is.rank, sizeof *v);
  char *text = NULL;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  for (size_t i = 0; i < is.users * is.rank; i++) u[i] = bpmf_normal(&random);
  for (size_t i = 0; i < is.items * is.rank; i++) v[i] = bpmf_normal(&random);
  for (uint32_t i = 0; i < is.users; i++)
    for (uint32_t j = 0; j < is.items; j++) {
      double value = 3 + is.noise * bpmf_normal(&random), chance = bpmf_unit(&random);
      for (uint32_t k = 0; k < is.rank; k++) value += u[i * is.rank + k] * v[j * is.rank + k];
      if (i == 0 ? j == 0 : chance < is.share || i == is.users - 1)
        fprintf(file, "u%u\tv%u\t%.9g\n", i, j, value * is.unit);
    }
  fclose(file);
  struct pawl_ratings *ratings = ratings_of_text(text);
  free(text);
  free(u);
  free(v);
  return ratings;
}

static inline struct pawl_bpmf_options short_options(uint32_t rank, uint64_t iterations) {
  struct pawl_bpmf_options options;
  pawl_bpmf_options_init(&options);
  options.rank = rank;
  options.iterations = iterations;
  options.threads = 1;
  return options;
}

static inline struct pawl_bpmf_model *trained(const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                                              const struct pawl_bpmf_options *options,
                                              struct pawl_bpmf_result *result_out) {
  struct pawl_bpmf_model *model = NULL;
  struct pawl_bpmf_result result;
  char error[PAWL_BPMF_TEXT] = "";
  pawl_status status = pawl_bpmf_train(ratings, test, options, &model, &result, error);
  if (status) fail_msg("%s: %s", pawl_status_text(status), error);
  if (result_out) *result_out = result;
  return model;
}

#endif
