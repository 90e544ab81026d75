/* What tests of multiclass models share: a folder, made-up rows, trainings that must succeed. */
#ifndef MLR_SCENE_TEST_H
#define MLR_SCENE_TEST_H

#include <math.h>
#include <unistd.h>

#include <pawl/session.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"
#include "apps/mlr/model.h"
#include "apps/mlr/rows.h"
#include "base/testing.h"

static char folder[] = "/tmp/pawl-mlr-XXXXXX";

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

/* The rows of a text; NULL and `error`: they cannot be read. */
static inline struct pawl_mlr_rows *read_rows(const char *name, const char *text, char error[PAWL_MLR_TEXT]) {
  struct pawl_mlr_rows *rows = NULL;
  struct pawl_data_options reading;
  const char *path = path_of(name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  pawl_data_options_init(&reading);
  pawl_status status = pawl_mlr_rows_read(&path, 1, &reading, 2, &rows, error);
  assert_true((status == PAWL_OK) == (rows != NULL));
  return rows;
}

static inline struct pawl_mlr_rows *rows_of_text(const char *text) {
  char error[PAWL_MLR_TEXT] = "";
  struct pawl_mlr_rows *rows = read_rows("rows", text, error);
  if (!rows) fail_msg("%s", error);
  return rows;
}

/* Made-up rows: each class has a centre, and rows lie around it. */
struct blobs {
  uint32_t rows, classes, features;
  double noise;
  uint64_t seed;
  bool is_dense;
};

static inline double unit_of(struct apps_random *random) { return (double)(apps_random_draw(random) >> 11) * 0x1p-53; }

static inline double normal_of(struct apps_random *random) {
  return sqrt(-2 * log(1 - unit_of(random))) * cos(6.283185307179586 * unit_of(random));
}

/* Turns sparse rows into dense ones. */
static inline void make_dense(struct pawl_mlr_rows *rows) {
  size_t features = (size_t)rows->info.features;
  rows->dense = apps_alloc_zero((size_t)rows->info.rows, features * sizeof *rows->dense);
  assert_non_null(rows->dense);
  for (size_t i = 0; i < rows->info.rows; i++)
    for (uint64_t n = rows->starts[i]; n < rows->starts[i + 1]; n++)
      rows->dense[i * features + rows->at[n]] = rows->values[n];
}

static inline struct pawl_mlr_rows *make_blobs(struct blobs is) {
  struct apps_random random = apps_random_of(is.seed, 7, 0, 0), centre;
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  for (uint32_t i = 0; i < is.rows; i++) {
    uint32_t class_number = i % is.classes;
    centre = apps_random_of(is.seed, 8, class_number, 0);
    fprintf(file, "c%u", class_number);
    for (uint32_t d = 1; d <= is.features; d++) {
      double at = normal_of(&centre);
      if (apps_random_below(&random, 3)) fprintf(file, " %u:%.4f", 3 * d, at + is.noise * normal_of(&random));
    }
    fprintf(file, "\n");
  }
  fclose(file);
  struct pawl_mlr_rows *rows = rows_of_text(text);
  free(text);
  if (is.is_dense) make_dense(rows);
  return rows;
}

static inline struct pawl_mlr_options options_of(enum pawl_mlr_method method, double l2) {
  struct pawl_mlr_options options;
  pawl_mlr_options_init(&options);
  options.method = method;
  options.l2 = l2;
  options.threads = 2;
  return options;
}

static inline struct pawl_mlr_model *trained(const struct pawl_mlr_rows *rows, const struct pawl_mlr_rows *test,
                                             const struct pawl_mlr_options *options, struct pawl_mlr_result *result) {
  struct pawl_mlr_model *model = NULL;
  struct pawl_mlr_result mine;
  char error[PAWL_MLR_TEXT] = "";
  if (pawl_mlr_train(rows, test, options, &model, result ? result : &mine, error)) fail_msg("%s", error);
  return model;
}

static inline void assert_same_model(const struct pawl_mlr_model *a, const struct pawl_mlr_model *b) {
  assert_int_equal(mlr_matrix_size(&a->matrix), mlr_matrix_size(&b->matrix));
  assert_memory_equal(a->matrix.at, b->matrix.at, mlr_matrix_size(&a->matrix) * sizeof(double));
}

#endif
