#include "apps/sparse_coding/dictionary.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"

/* a x b doubles of 0; NULL: too many, or no memory. */
static double *alloc_matrix(size_t a, size_t b) {
  if (b > 0 && a > SIZE_MAX / sizeof(double) / b) return NULL;
  return apps_alloc_zero(a * b + 1, sizeof(double));
}

/* OpenBLAS numbers rows and columns by int. */
static bool is_too_large(size_t atoms, size_t features) { return atoms >= INT32_MAX || features >= INT32_MAX; }

/* to = times * one other' + keep * to, all by rows; `is_turned`: one' other instead. */
static void multiply(bool is_turned, size_t rows, size_t columns, size_t inner, double times, const double *one,
                     const double *other, bool other_is_turned, double keep, double *to) {
  if (rows == 0 || columns == 0 || inner == 0) return;
  bool is_locked = apps_blas_enter();
  cblas_dgemm(CblasRowMajor, is_turned ? CblasTrans : CblasNoTrans, other_is_turned ? CblasTrans : CblasNoTrans,
              (blasint)rows, (blasint)columns, (blasint)inner, times, one, (blasint)(is_turned ? rows : inner), other,
              (blasint)(other_is_turned ? inner : columns), keep, to, (blasint)columns);
  apps_blas_leave(is_locked);
}

/* --- the dictionary --------------------------------------------------------------------------------------- */

pawl_status sparse_dictionary_init(struct sparse_dictionary *dictionary, size_t atoms, size_t features) {
  *dictionary = (struct sparse_dictionary){.atoms = atoms, .features = features};
  if (is_too_large(atoms, features)) return PAWL_TOO_LARGE;
  dictionary->at = alloc_matrix(atoms, features);
  dictionary->gram = alloc_matrix(atoms, atoms);
  return dictionary->at && dictionary->gram ? PAWL_OK : PAWL_NO_MEMORY;
}

void sparse_dictionary_fini(struct sparse_dictionary *dictionary) {
  apps_free(dictionary->at);
  apps_free(dictionary->gram);
}

void sparse_dictionary_refresh(struct sparse_dictionary *dictionary) {
  size_t atoms = dictionary->atoms;
  multiply(false, atoms, atoms, dictionary->features, 1, dictionary->at, dictionary->at, true, 0, dictionary->gram);
}

void sparse_dictionary_replace(struct sparse_dictionary *dictionary, size_t atom, const double *vector) {
  size_t atoms = dictionary->atoms, features = dictionary->features;
  double *row = dictionary->gram + atom * atoms;
  memcpy(sparse_atom(dictionary, atom), vector, features * sizeof *vector);
  multiply(false, 1, atoms, features, 1, vector, dictionary->at, true, 0, row);
  for (size_t i = 0; i < atoms; i++) dictionary->gram[i * atoms + atom] = row[i];
}

/* --- sums ------------------------------------------------------------------------------------------------- */

pawl_status sparse_sums_init(struct sparse_sums *sums, size_t atoms, size_t features) {
  *sums = (struct sparse_sums){.atoms = atoms, .features = features};
  if (is_too_large(atoms, features)) return PAWL_TOO_LARGE;
  sums->c = alloc_matrix(atoms, features);
  sums->a = alloc_matrix(atoms, atoms);
  return sums->c && sums->a ? PAWL_OK : PAWL_NO_MEMORY;
}

void sparse_sums_fini(struct sparse_sums *sums) {
  apps_free(sums->c);
  apps_free(sums->a);
}

void sparse_sums_clear(struct sparse_sums *sums) {
  memset(sums->c, 0, sums->atoms * sums->features * sizeof *sums->c);
  memset(sums->a, 0, sums->atoms * sums->atoms * sizeof *sums->a);
}

void sparse_sums_drop(struct sparse_sums *sums, size_t atom) {
  memset(sums->c + atom * sums->features, 0, sums->features * sizeof *sums->c);
  for (size_t i = 0; i < sums->atoms; i++) sums->a[atom * sums->atoms + i] = sums->a[i * sums->atoms + atom] = 0;
}

static pawl_status apply(void *context, const struct sparse_pairs *pairs, double keep) {
  struct sparse_sums *sums = context;
  multiply(true, sums->atoms, sums->features, pairs->count, 1, pairs->a, pairs->x, false, keep, sums->c);
  multiply(true, sums->atoms, sums->atoms, pairs->count, 1, pairs->a, pairs->a, false, keep, sums->a);
  return PAWL_OK;
}

struct sparse_target sparse_sums_target(struct sparse_sums *sums) {
  return (struct sparse_target){apply, sums};
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static size_t group_size(const struct sparse_sums *sums, size_t first) {
  return sums->atoms - first < SPARSE_GROUP ? sums->atoms - first : SPARSE_GROUP;
}

/* The negative slopes of a group of atoms: their rows of C' - A B'. */
static void fill_slopes(const struct sparse_dictionary *dictionary, const struct sparse_sums *sums, size_t first,
                        size_t count, double *slopes) {
  size_t atoms = sums->atoms, features = sums->features;
  memcpy(slopes, sums->c + first * features, count * features * sizeof *slopes);
  multiply(false, count, features, atoms, -1, sums->a + first * atoms, dictionary->at, false, 1, slopes);
}

/* Moves an atom to the best place of length 1 at most; `change` holds its negative slope, and then how far it moved. */
static void move(size_t count, double curve, double *restrict atom, double *restrict change) {
  double square = 0;
  for (size_t i = 0; i < count; i++) {
    change[i] = atom[i] + change[i] / curve; /* the new place */
    square += change[i] * change[i];
  }
  double scale = square > 1 ? 1 / sqrt(square) : 1;
  for (size_t i = 0; i < count; i++) {
    double before = atom[i];
    atom[i] = change[i] * scale;
    change[i] = atom[i] - before;
  }
}

/* The slopes of later atoms of the group follow. */
static void follow(size_t count, double weight, const double *restrict change, double *restrict slope) {
  for (size_t i = 0; i < count; i++) slope[i] -= weight * change[i];
}

void sparse_dictionary_step(struct sparse_dictionary *dictionary, const struct sparse_sums *sums, double *scratch) {
  size_t atoms = sums->atoms, features = sums->features;
  for (size_t first = 0; first < atoms; first += SPARSE_GROUP) {
    size_t count = group_size(sums, first);
    fill_slopes(dictionary, sums, first, count, scratch);
    for (size_t i = 0; i < count; i++) {
      double curve = sums->a[(first + i) * atoms + first + i], *change = scratch + i * features;
      if (!(curve > 0)) continue;
      move(features, curve, sparse_atom(dictionary, first + i), change);
      for (size_t k = i + 1; k < count; k++)
        if (sums->a[(first + k) * atoms + first + i] != 0)
          follow(features, sums->a[(first + k) * atoms + first + i], change, scratch + k * features);
    }
  }
}

double sparse_dictionary_gap(const struct sparse_dictionary *dictionary, const struct sparse_sums *sums,
                             double *scratch) {
  size_t features = sums->features;
  double gap = 0;
  for (size_t first = 0; first < sums->atoms; first += SPARSE_GROUP) {
    size_t count = group_size(sums, first);
    fill_slopes(dictionary, sums, first, count, scratch);
    for (size_t i = 0; i < count; i++) {
      const double *atom = sparse_atom(dictionary, first + i), *slope = scratch + i * features;
      double square = 0, along = 0;
      for (size_t d = 0; d < features; d++) {
        square += slope[d] * slope[d];
        along += slope[d] * atom[d];
      }
      gap += fmax(sqrt(square) - along, 0); /* below 0 only by rounding */
    }
  }
  return gap;
}
