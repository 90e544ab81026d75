/* The second singular value of W by the Lanczos method.
 *
 * The eigenvalues of W'W are the squares of the singular values of W. The method spans a space by a random vector
 * and its images under W'W, and takes the largest eigenvalue of W'W within this space, the Ritz value. It grows
 * with the space, and never exceeds the eigenvalue.
 *
 * The largest singular value is not wanted, so every vector is kept orthogonal to its singular vector. If W is
 * doubly stochastic this vector is known: all its elements are equal. Otherwise a first run finds it.
 *
 * Rounding would let earlier directions creep back. So each new vector is made orthogonal to all vectors of the
 * basis, and once more if that cancelled most of it. To bound memory and time, a full basis of BASIS vectors is
 * replaced by its KEPT best Ritz vectors, from which the iteration goes on (the thick restart of Wu and Simon,
 * "Thick-restart Lanczos method for large symmetric eigenvalue problems").
 *
 * The computation ends when the residual bounds the error of 1 - s_2 to a part in 10^5 of it (in fact the error is
 * much smaller, as it falls with the square of the residual), or after STEPS_MAX steps, fewer in very large graphs.
 * Graphs of many nodes with a tiny gap, such as long rings, reach that limit.
 */
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "graph/gap.h"

#define BASIS 64
#define KEPT 24
#define STEPS_MAX 3000
#define NODES_MAX ((size_t)300000000) /* of all steps together: up to a minute */
#define TOLERANCE 1e-5                /* error of the gap, relative to it */
#define VECTOR_ERROR 1e-10            /* residual of the singular vector of s_1 */
#define NOTHING 1e-13                 /* residuals and vectors below this length are rounding errors */
#define BLOCK 256                     /* elements of the vectors that are combined at a time */
#define WORK (34 * BASIS)

struct krylov {
  const struct pwi_weights *weights;
  size_t nodes;
  const double *known; /* vector of length 1 that all others are orthogonal to, or NULL */
  double *basis;       /* BASIS + 1 vectors of length 1, orthogonal to one another */
  double *image;       /* W times a vector */
  size_t steps;
  double *small;        /* W'W within the basis: BASIS rows and columns; only the upper triangle is used */
  double *ritz;         /* eigenvectors of `small`, one after the other */
  double values[BASIS]; /* eigenvalues of `small`, ascending */
  double residual;      /* of the largest of them: its distance to the nearest eigenvalue of W'W, or more */
  double *work;         /* of LAPACK */
  struct pwi_random random;
};

/* --- vectors -------------------------------------------------------------------------------------------- */

/* Four sums, because a processor can add to them at the same time. */
static double dot(const double *a, const double *b, size_t count) {
  double sums[4] = {0};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
  for (; i < count; i++) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double length(const double *a, size_t count) { return sqrt(dot(a, a, count)); }

static void add(double factor, const double *a, double *sum, size_t count) {
  for (size_t i = 0; i < count; i++) sum[i] += factor * a[i];
}

static void scale(double factor, double *a, size_t count) {
  for (size_t i = 0; i < count; i++) a[i] *= factor;
}

static double *vector(const struct krylov *krylov, size_t number) { return krylov->basis + number * krylov->nodes; }

/* Subtracts from `a` its part in the direction of `unit`. Returns the length of that part. */
static double subtract(const double *unit, double *a, size_t count) {
  double part = dot(unit, a, count);
  add(-part, unit, a, count);
  return part;
}

/* Makes `a` orthogonal to the first `count` vectors of the basis, and adds the parts that it subtracts to
 * `parts`. */
static void make_orthogonal(const struct krylov *krylov, double *a, size_t count, double *parts) {
  for (int pass = 0; pass < 2; pass++) {
    double before = length(a, krylov->nodes);
    if (krylov->known) subtract(krylov->known, a, krylov->nodes);
    for (size_t i = 0; i < count; i++) parts[i] += subtract(vector(krylov, i), a, krylov->nodes);
    if (length(a, krylov->nodes) > 0.7 * before) return;
  }
}

/* --- the iteration -------------------------------------------------------------------------------------- */

static void draw_first(struct krylov *krylov) {
  double *first = vector(krylov, 0), parts[BASIS] = {0};
  for (size_t i = 0; i < krylov->nodes; i++) first[i] = pwi_random_unit(&krylov->random) - 0.5;
  make_orthogonal(krylov, first, 0, parts);
  scale(1 / length(first, krylov->nodes), first, krylov->nodes);
}

/* Appends vector number `last` + 1: W'W times vector `last`, made orthogonal to all before. Returns its length
 * before it was scaled to 1; if that is nothing, the basis spans the space of all images. */
static double step(struct krylov *krylov, size_t last) {
  double *next = vector(krylov, last + 1), parts[BASIS] = {0};
  pwi_weights_apply(krylov->weights, vector(krylov, last), krylov->image);
  pwi_weights_apply_transposed(krylov->weights, krylov->image, next);
  krylov->steps++;
  make_orthogonal(krylov, next, last + 1, parts);
  memcpy(krylov->small + last * BASIS, parts, sizeof parts);
  double rest = length(next, krylov->nodes);
  if (rest > NOTHING) scale(1 / rest, next, krylov->nodes);
  return rest;
}

/* Eigenvalues and eigenvectors of W'W within the first `count` vectors; `rest` is what step returned last. */
static pawl_status solve(struct krylov *krylov, size_t count, double rest) {
  lapack_int size = (lapack_int)count;
  for (size_t i = 0; i < count; i++)
    memcpy(krylov->ritz + i * count, krylov->small + i * BASIS, count * sizeof(double));
  if (LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', size, krylov->ritz, size, krylov->values, krylov->work, WORK))
    return PAWL_IO;
  krylov->residual = rest <= NOTHING ? 0 : rest * fabs(krylov->ritz[count * count - 1]);
  return PAWL_OK;
}

/* Replaces the first vectors of the basis by the Ritz vectors first .. count-1 of `count`. */
static void combine(struct krylov *krylov, size_t count, size_t first) {
  double block[BASIS][BLOCK];
  for (size_t at = 0; at < krylov->nodes; at += BLOCK) {
    size_t size = krylov->nodes - at < BLOCK ? krylov->nodes - at : BLOCK;
    for (size_t i = first; i < count; i++) {
      memset(block[i], 0, size * sizeof(double));
      for (size_t k = 0; k < count; k++) add(krylov->ritz[i * count + k], vector(krylov, k) + at, block[i], size);
    }
    for (size_t i = first; i < count; i++) memcpy(vector(krylov, i - first) + at, block[i], size * sizeof(double));
  }
}

/* Goes on from the best Ritz vectors of a full basis, and the vector after them. */
static void restart(struct krylov *krylov) {
  combine(krylov, BASIS, BASIS - KEPT);
  memcpy(vector(krylov, KEPT), vector(krylov, BASIS), krylov->nodes * sizeof(double));
  memset(krylov->small, 0, KEPT * BASIS * sizeof(double));
  for (size_t i = 0; i < KEPT; i++) krylov->small[i * BASIS + i] = krylov->values[BASIS - KEPT + i];
}

/* The largest eigenvalue of W'W that is left, until the residual is at most `error` + `relative` * |1 - value|, or
 * too many steps were made. If `vector_out` is not NULL, its eigenvector goes there. */
static pawl_status find_largest(struct krylov *krylov, double error, double relative, double *value_out,
                                bool *is_exact_out, double *vector_out) {
  size_t kept = 0, count = 0;
  krylov->steps = 0;
  draw_first(krylov);
  for (;;) {
    double rest = 1;
    for (count = kept; count < BASIS && rest > NOTHING; count++) rest = step(krylov, count);
    pawl_status status = solve(krylov, count, rest);
    if (status) return status;
    *value_out = krylov->values[count - 1];
    *is_exact_out = krylov->residual <= error + relative * fabs(1 - *value_out);
    if (*is_exact_out || krylov->steps >= STEPS_MAX || krylov->steps * krylov->nodes >= NODES_MAX) break;
    restart(krylov);
    kept = KEPT;
  }
  if (vector_out) {
    combine(krylov, count, count - 1);
    memcpy(vector_out, vector(krylov, 0), krylov->nodes * sizeof(double));
  }
  return PAWL_OK;
}

/* --- both singular values ------------------------------------------------------------------------------- */

static pawl_status find_second(struct krylov *krylov, double *known, struct pwi_gap *gap_out) {
  struct pwi_weights_fault worst;
  double value;
  bool is_exact = true, is_known;
  pawl_status status = pwi_weights_check(krylov->weights, &worst);
  if (status) return status;
  is_known = worst.error <= PWI_WEIGHTS_ERROR;
  if (is_known)
    for (size_t i = 0; i < krylov->nodes; i++) known[i] = 1 / sqrt((double)krylov->nodes);
  else
    status = find_largest(krylov, VECTOR_ERROR, 0, &value, &is_exact, known);
  krylov->known = known;
  bool is_first_exact = is_exact;
  if (!status) status = find_largest(krylov, NOTHING, TOLERANCE, &value, &is_exact, NULL);
  if (!status) *gap_out = (struct pwi_gap){1 - sqrt(value > 0 ? value : 0), is_exact && is_first_exact};
  return status;
}

pawl_status pwi_gap_lanczos(const struct pwi_weights *weights, struct pwi_gap *gap_out) {
  struct krylov krylov = {.weights = weights, .nodes = weights->graph->nodes};
  if (krylov.nodes == 1) {
    *gap_out = (struct pwi_gap){1, true};
    return PAWL_OK;
  }
  pwi_random_init(&krylov.random, 1, 0);
  krylov.basis = pwi_resize_array(NULL, krylov.nodes, (BASIS + 1) * sizeof *krylov.basis);
  krylov.image = pwi_resize_array(NULL, krylov.nodes, sizeof *krylov.image);
  krylov.small = pwi_alloc_zero(BASIS * BASIS, sizeof *krylov.small);
  krylov.ritz = pwi_alloc_zero(BASIS * BASIS, sizeof *krylov.ritz);
  krylov.work = pwi_alloc_zero(WORK, sizeof *krylov.work);
  double *known = pwi_resize_array(NULL, krylov.nodes, sizeof *known);
  pawl_status status = PAWL_NO_MEMORY;
  if (krylov.basis && krylov.image && krylov.small && krylov.ritz && krylov.work && known)
    status = find_second(&krylov, known, gap_out);
  pwi_free(krylov.basis);
  pwi_free(krylov.image);
  pwi_free(krylov.small);
  pwi_free(krylov.ritz);
  pwi_free(krylov.work);
  pwi_free(known);
  return status;
}
