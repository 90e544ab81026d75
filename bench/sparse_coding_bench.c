/* Sparse coding beside a serial reference: one line of JSON with the objectives after the same epochs and the rows coded in a
 * second of processor time.
 *
 *   sparse_coding_bench [CIFAR-FILE [PATCHES]]     without a file there is nothing to measure; 1000 patches
 *
 * Rows are centered patches of 8 x 8 pixels of CIFAR-10, coded with 64 atoms for 3 epochs in batches of 100. The reference
 * (apps/sparse_coding/reference_test.h) goes row by row and number by number, finds codes by FISTA, and begins with the same
 * atoms.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "bench.h"
#include "apps/common/random.h"
#include "apps/sparse_coding/reference_test.h"
#include "apps/sparse_coding/run.h"

#define PATCHES 1000
#define ATOMS 64
#define EPOCHS 3
#define BATCH 100
#define TOLERANCE 1e-3

/* The atoms with which the training begins: the same draw. */
static double *draw_first(const struct sparse_view *view) {
  size_t rows = (size_t)view->rows->info.rows, count = 0;
  struct apps_random random = apps_random_of(1, SPARSE_FOR_ATOMS, 0, 0);
  uint32_t *order = apps_alloc_zero(rows, sizeof *order);
  double *b = apps_alloc_zero(ATOMS, view->features * sizeof *b);
  apps_shuffle(&random, order, rows);
  for (size_t i = 0; i < rows && count < ATOMS; i++) {
    double square = 0, *atom = b + count * view->features;
    sparse_view_get(view, order[i], atom);
    for (size_t d = 0; d < view->features; d++) square += atom[d] * atom[d];
    for (size_t d = 0; d < view->features && square > 0; d++) atom[d] /= sqrt(square);
    count += square > 0;
  }
  apps_free(order);
  return b;
}

static double refer(const struct pawl_sparse_rows *rows, const struct pawl_sparse_model *model, double lambda,
                    double *seconds_out) {
  struct pawl_sparse_about about;
  struct sparse_view view;
  char error[PAWL_SPARSE_TEXT] = "";
  double objective = 0;
  pawl_sparse_model_about(model, &about);
  check_status(sparse_view_init(&view, rows, pawl_sparse_model_ids(model), &about, error));
  double *b = draw_first(&view), begun = thread_now();
  for (int epoch = 0; epoch < EPOCHS; epoch++) objective = plain_epoch(&view, ATOMS, BATCH, lambda, TOLERANCE, b);
  *seconds_out = thread_now() - begun;
  apps_free(b);
  sparse_view_fini(&view);
  return objective;
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : NULL;
  uint64_t patches = argc > 2 ? strtoull(argv[2], NULL, 10) : PATCHES;
  struct pawl_images_options reading;
  struct pawl_images *images = NULL;
  struct pawl_sparse_rows *rows = NULL;
  struct pawl_sparse_model *model = NULL;
  struct pawl_sparse_options options;
  struct pawl_sparse_result result;
  char error[PAWL_SPARSE_TEXT] = "";
  double seconds;
  if (!path) return 0;
  pawl_images_options_init(&reading);
  reading.format = PAWL_IMAGES_CIFAR;
  check_status(pawl_images_read(&path, 1, &reading, &images));
  check_status(pawl_sparse_rows_of_images(images, 8, patches, 1, &rows, error));
  pawl_sparse_options_init(&options);
  options.atoms = ATOMS;
  options.center = true;
  options.epochs = EPOCHS;
  options.batch = BATCH;
  options.code_tolerance = TOLERANCE;
  options.threads = 1;
  double begun = thread_now();
  check_status(pawl_sparse_train(rows, NULL, &options, &model, &result, error));
  double own = thread_now() - begun, reference = refer(rows, model, result.lambda, &seconds);
  double coded = 2.0 * EPOCHS * (double)patches;
  printf("{\"bench\":\"sparse_coding\",\"patches\":%" PRIu64 ",\"epochs\":%" PRIu64
         ",\"objective\":%.8g,\"reference\":%.8g,\"ratio\":%.5f,\"rows_per_s\":%.0f,\"reference_rows_per_s\":%.0f}\n",
         patches, result.epochs, result.objective, reference, result.objective / reference, coded / own,
         coded / seconds);
  pawl_sparse_model_destroy(model);
  pawl_sparse_rows_destroy(rows);
  pawl_images_destroy(images);
  return 0;
}
