/* The first atoms, and atoms that no code uses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/random.h"
#include "apps/sparse_coding/run.h"

#define ALIKE 0.99 /* two atoms with a larger cosine would share their codes */
#define TRIES 4    /* candidates looked at for each atom */

static double dot(size_t count, const double *a, const double *b) {
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += a[i] * b[i];
  return sum;
}

/* Scales a vector to length 1 and puts it into the dictionary, unless it is 0 or like one of the `count` atoms listed. */
static bool place(struct sparse_dictionary *dictionary, const uint32_t *atoms, size_t count, size_t atom,
                  double *vector) {
  size_t features = dictionary->features;
  double length = sqrt(dot(features, vector, vector));
  if (!(length > 0)) return false;
  for (size_t i = 0; i < features; i++) vector[i] /= length;
  for (size_t i = 0; i < count; i++)
    if (fabs(dot(features, vector, sparse_atom(dictionary, atoms[i]))) > ALIKE) return false;
  sparse_dictionary_replace(dictionary, atom, vector);
  return true;
}

pawl_status sparse_run_draw_atoms(struct sparse_run *run) {
  struct sparse_dictionary *dictionary = &run->dictionary;
  struct apps_random random = apps_random_of(run->is.seed, SPARSE_FOR_ATOMS, 0, 0);
  size_t rows = (size_t)run->rows->info.rows, most = TRIES * dictionary->atoms, count = 0;
  uint32_t *placed = apps_alloc_zero(dictionary->atoms, sizeof *placed);
  if (!placed) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  apps_shuffle(&random, run->order, rows);
  for (size_t i = 0; i < rows && i < most && count < dictionary->atoms; i++) {
    sparse_view_get(&run->view, run->order[i], run->scratch);
    if (place(dictionary, placed, count, count, run->scratch)) {
      placed[count] = (uint32_t)count;
      count++;
    }
  }
  apps_free(placed);
  return PAWL_OK;
}

/* --- unused atoms ----------------------------------------------------------------------------------------- */

struct worst_row {
  double residual;
  uint32_t row;
};

static int by_residual(const void *a, const void *b) {
  const struct worst_row *one = a, *other = b;
  if (one->residual != other->residual) return one->residual < other->residual ? 1 : -1;
  return one->row < other->row ? -1 : one->row > other->row;
}

/* x - B a of one row, into scratch. Returns |x - B a|^2; 0 if the training is to end. */
static double find_residual(struct sparse_run *run, uint32_t row) {
  size_t atoms = run->dictionary.atoms, features = run->dictionary.features;
  if (sparse_encoder_run(&run->encoder, &run->view, &row, 0, 1)) return 0;
  memcpy(run->scratch, run->encoder.x, features * sizeof *run->scratch);
  for (size_t j = 0; j < atoms; j++)
    for (size_t d = 0; run->encoder.codes[j] != 0 && d < features; d++)
      run->scratch[d] -= run->encoder.codes[j] * sparse_atom(&run->dictionary, j)[d];
  return dot(features, run->scratch, run->scratch);
}

/* A row whose residual r is longer than lambda uses the atom r/|r|, because that pulls with |r|. */
static double least_residual(const struct sparse_run *run) { return run->is.lambda * run->is.lambda * (1 + 1e-6); }

static size_t list_worst(const struct sparse_run *run, struct worst_row *list) {
  size_t rows = (size_t)run->rows->info.rows, count = 0;
  double least = least_residual(run);
  for (size_t i = 0; i < rows; i++)
    if (run->residuals[i] > least) list[count++] = (struct worst_row){run->residuals[i], (uint32_t)i};
  qsort(list, count, sizeof *list, by_residual);
  return count;
}

static uint32_t replace(struct sparse_run *run, const struct worst_row *worst, size_t candidates,
                        const uint32_t *unused, size_t count) {
  size_t done = 0;
  for (size_t i = 0; i < candidates && i < TRIES * count && done < count; i++) {
    if (find_residual(run, worst[i].row) <= least_residual(run)) continue; /* an atom placed before serves this row */
    if (!place(&run->dictionary, unused, done, unused[done], run->scratch)) continue;
    sparse_sums_drop(&run->sums, unused[done]);
    done++;
  }
  return (uint32_t)done;
}

pawl_status sparse_run_replace_unused(struct sparse_run *run, uint32_t *count_out) {
  size_t atoms = run->dictionary.atoms, count = 0;
  *count_out = 0;
  if (run->last.unused == 0) return PAWL_OK;
  uint32_t *unused = apps_alloc_zero(atoms, sizeof *unused);
  struct worst_row *worst = apps_alloc_zero((size_t)run->rows->info.rows + 1, sizeof *worst);
  bool is_fine = unused && worst;
  for (size_t j = 0; is_fine && j < atoms; j++)
    if (run->uses[j] == 0) unused[count++] = (uint32_t)j;
  if (is_fine) *count_out = replace(run, worst, list_worst(run, worst), unused, count);
  apps_free(unused);
  apps_free(worst);
  if (is_fine && run->is_stopping) return PAWL_CANCELLED;
  return is_fine ? PAWL_OK : apps_say(run->error, PAWL_NO_MEMORY, "no memory to replace atoms that no row uses");
}
