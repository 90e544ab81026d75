/* What tests of dictionaries share: a folder, made-up rows, trainings that must succeed. */
#ifndef SPARSE_SCENE_TEST_H
#define SPARSE_SCENE_TEST_H

#include <math.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"
#include "apps/sparse_coding/model.h"
#include "apps/sparse_coding/rows.h"
#include "base/testing.h"

static char folder[] = "/tmp/pawl-sparse-XXXXXX";

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

static inline struct pawl_sparse_rows *rows_of_text(const char *text) {
  struct pawl_sparse_rows *rows = NULL;
  struct pawl_data_options reading;
  char error[PAWL_SPARSE_TEXT] = "";
  const char *path = path_of("rows");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  pawl_data_options_init(&reading);
  reading.labels_optional = true;
  if (pawl_sparse_rows_read(&path, 1, &reading, 2, &rows, error)) fail_msg("%s", error);
  return rows;
}

static inline double unit_of(struct apps_random *random) { return (double)(apps_random_draw(random) >> 11) * 0x1p-53; }

static inline double normal_of(struct apps_random *random) {
  return sqrt(-2 * log(1 - unit_of(random))) * cos(6.283185307179586 * unit_of(random));
}

/* Made-up rows: each is a sum of `used` of some hidden atoms, with noise, times `scale`. */
struct mixture {
  uint32_t rows, features, atoms, used;
  double noise, scale;
  uint64_t seed;
};

/* Writes a hidden atom of length 1. */
static inline void hidden_atom(struct mixture is, uint32_t atom, double *to) {
  struct apps_random random = apps_random_of(is.seed, 31, atom, 0);
  double square = 0;
  for (uint32_t d = 0; d < is.features; d++) {
    to[d] = normal_of(&random);
    square += to[d] * to[d];
  }
  for (uint32_t d = 0; d < is.features; d++) to[d] /= sqrt(square);
}

static inline struct pawl_sparse_rows *make_mixture(struct mixture is) {
  struct apps_random random = apps_random_of(is.seed, 32, 0, 0);
  double *row = apps_alloc_zero(is.features, sizeof *row), *atom = apps_alloc_zero(is.features, sizeof *atom);
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  assert_true(row && atom && file);
  for (uint32_t i = 0; i < is.rows; i++) {
    for (uint32_t d = 0; d < is.features; d++) row[d] = is.noise * normal_of(&random);
    for (uint32_t k = 0; k < is.used; k++) {
      hidden_atom(is, (uint32_t)apps_random_below(&random, is.atoms), atom);
      double times = normal_of(&random);
      for (uint32_t d = 0; d < is.features; d++) row[d] += times * atom[d];
    }
    fprintf(file, "%u", i % 3);
    for (uint32_t d = 0; d < is.features; d++) fprintf(file, " %u:%.7g", 2 * d + 1, is.scale * row[d]);
    fprintf(file, "\n");
  }
  fclose(file);
  struct pawl_sparse_rows *rows = rows_of_text(text);
  free(text);
  apps_free(row);
  apps_free(atom);
  return rows;
}

static const struct mixture usual = {400, 16, 20, 3, 0.05, 1, 3};

static inline struct pawl_sparse_options options_of(uint32_t atoms, double lambda) {
  struct pawl_sparse_options options;
  pawl_sparse_options_init(&options);
  options.atoms = atoms;
  options.lambda = lambda;
  options.threads = 2;
  return options;
}

static inline struct pawl_sparse_model *trained(const struct pawl_sparse_rows *rows,
                                                const struct pawl_sparse_rows *test,
                                                const struct pawl_sparse_options *options,
                                                struct pawl_sparse_result *result) {
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_result mine;
  char error[PAWL_SPARSE_TEXT] = "";
  if (pawl_sparse_train(rows, test, options, &model, result ? result : &mine, error)) fail_msg("%s", error);
  return model;
}

static inline void assert_same_model(const struct pawl_sparse_model *a, const struct pawl_sparse_model *b) {
  assert_int_equal(sparse_model_size(a), sparse_model_size(b));
  assert_memory_equal(a->atoms, b->atoms, sparse_model_size(a) * sizeof *a->atoms);
  assert_memory_equal(a->uses, b->uses, a->about.atoms * sizeof *a->uses);
  assert_true(a->about.objective == b->about.objective);
}

#endif
