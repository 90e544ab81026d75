/* What tests of metrics share: a folder, made-up rows, trainings that must succeed. */
#ifndef DML_SCENE_TEST_H
#define DML_SCENE_TEST_H

#include <math.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"
#include "apps/dml/model.h"
#include "base/testing.h"

static char folder[] = "/tmp/pawl-metric-XXXXXX";

static inline int make_folder(void **state) {
  (void)state;
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

static inline struct pawl_mlr_rows *rows_of_text(const char *text) {
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  char error[PAWL_MLR_TEXT] = "";
  const char *path = path_of("rows");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  pawl_data_options_init(&reading);
  reading.labels_optional = true;
  if (pawl_mlr_rows_read(&path, 1, &reading, 2, &rows, error)) fail_msg("%s", error);
  return rows;
}

static inline double normal_of(struct apps_random *random) {
  double one = (double)(apps_random_draw(random) >> 11) * 0x1p-53,
         other = (double)(apps_random_draw(random) >> 11) * 0x1p-53;
  return sqrt(-2 * log(1 - one)) * cos(6.283185307179586 * other);
}

/* Made-up rows of three classes: the first two features tell the class, and all others are noise, `noise` times as large.
 * All values are multiplied by `scale`. */
struct mixture {
  uint32_t rows, features;
  double noise, scale;
  uint64_t seed;
};

static const struct mixture usual = {300, 8, 2, 1, 3};

static inline struct pawl_mlr_rows *make_mixture(struct mixture is) {
  struct apps_random random = apps_random_of(is.seed, 51, 0, 0);
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  for (uint32_t i = 0; i < is.rows; i++) {
    uint32_t class = i % 3;
    fprintf(file, "%s", class == 0 ? "cat" : class == 1 ? "7" : "-3");
    for (uint32_t d = 0; d < is.features; d++) {
      double middle = d == 0 ? (double)class : d == 1 ? (double)(class == 1) : 0;
      double value = d < 2 ? middle + 0.3 * normal_of(&random) : is.noise * normal_of(&random);
      fprintf(file, " %u:%.7g", 2 * d + 1, is.scale * value);
    }
    fprintf(file, "\n");
  }
  fclose(file);
  struct pawl_mlr_rows *rows = rows_of_text(text);
  free(text);
  return rows;
}

static inline struct pawl_metric_options options_of(uint32_t rank) {
  struct pawl_metric_options options;
  pawl_metric_options_init(&options);
  options.rank = rank;
  options.threads = 2;
  options.batch = 32;
  return options;
}

static inline struct pawl_metric_model *trained(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                                const struct pawl_metric_options *options,
                                                struct pawl_metric_result *result) {
  struct pawl_metric_model *model = NULL;
  struct pawl_metric_result mine;
  char error[PAWL_METRIC_TEXT] = "";
  if (pawl_metric_train(rows, test, options, &model, result ? result : &mine, error)) fail_msg("%s", error);
  return model;
}

static inline void assert_same_model(const struct pawl_metric_model *a, const struct pawl_metric_model *b) {
  assert_int_equal(dml_model_size(a), dml_model_size(b));
  assert_memory_equal(a->weights, b->weights, dml_model_size(a) * sizeof *a->weights);
  assert_memory_equal(a->points.at, b->points.at, a->points.count * a->points.width * sizeof *a->points.at);
  assert_memory_equal(a->points.classes, b->points.classes, a->points.count * sizeof *a->points.classes);
  assert_true(a->about.objective == b->about.objective && a->about.error == b->about.error);
}

#endif
