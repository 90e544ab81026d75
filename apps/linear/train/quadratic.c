/* Minimises a quadratic with a penalty: see quadratic.h. */
#include "apps/linear/train/quadratic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"

enum { TURNS = 400, STILL_TURNS = 6 };
enum { SIDE = 4, AT_ONCE = 32 }; /* rows of the Cholesky factor that are computed together */

#define ENOUGH 1e-9     /* relative to the first violation: then the problem is solved */
#define STILL 1e-7      /* relative to the total fall: an iteration that brings less makes no progress */
#define DEPENDENT 1e-10 /* relative to a curvature: amount that is added to it */
#define NOTHING 1e-300  /* curvatures below are treated as zero */

struct quadratic_solver {
  const struct linear_quadratic *is;
  size_t count;
  double *v;        /* present solution */
  double *slope;    /* g + H (v - w), without the penalty */
  double *diagonal; /* diagonal of H, with the ridge */
  double *factor;   /* Cholesky factor: room for count rows of count entries */
  double *answer;
  size_t *free;                     /* variables of the system: those that are not zero */
  size_t *factored, factored_count; /* variables for which the factor was computed */
};

static double l1_of(const struct quadratic_solver *solver, size_t j) {
  return j + 1 < solver->count ? solver->is->l1 : 0;
}
static double l2_of(const struct quadratic_solver *solver, size_t j) {
  return j + 1 < solver->count ? solver->is->l2 : 0;
}

/* --- coordinate descent --------------------------------------------------------------------------------- */

static void move(struct quadratic_solver *solver, size_t j, double by) {
  const double *row = solver->is->hessian + j * solver->count;
  for (size_t k = 0; k < solver->count; k++) solver->slope[k] += by * row[k];
  solver->slope[j] += by * (solver->diagonal[j] - row[j]);
  solver->v[j] += by;
}

static double violation(const struct quadratic_solver *solver, size_t j) {
  double slope = solver->slope[j] + l2_of(solver, j) * solver->v[j], l1 = l1_of(solver, j);
  if (solver->v[j] != 0) return fabs(slope + (solver->v[j] > 0 ? l1 : -l1));
  return fmax(0, fabs(slope) - l1);
}

/* Sets each variable to its best value while the others stay. Returns the largest violation before. */
static double descend(struct quadratic_solver *solver) {
  double most = 0;
  for (size_t j = 0; j < solver->count; j++) {
    double u = solver->diagonal[j], l1 = l1_of(solver, j), l2 = l2_of(solver, j), was = solver->v[j];
    if (u + l2 <= NOTHING) { /* all rows that have it are beyond the hinge, so only the penalty matters */
      if (was != 0 && fabs(solver->slope[j]) < l1) move(solver, j, -was);
      continue;
    }
    most = fmax(most, violation(solver, j));
    double wanted = u * was - solver->slope[j];
    double to = (wanted > l1 ? wanted - l1 : wanted < -l1 ? wanted + l1 : 0) / (u + l2);
    if (to != was) move(solver, j, to - was);
    if (l1 > 0 && to == 0) solver->v[j] = 0; /* exactly zero */
  }
  return most;
}

/* --- the system of equations ---------------------------------------------------------------------------- */

static double dot(const double *a, const double *b, size_t count) {
  double sums[4] = {0};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; k++) sums[k] += a[i + k] * b[i + k];
  for (; i < count; i++) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Products of SIDE rows with SIDE other rows, over an even number of columns. The sums stay in registers. */
static void dots(double *const a[SIDE], double *const b[SIDE], size_t count, double sums_out[SIDE][SIDE]) {
  pair sums[SIDE][SIDE] = {0};
  for (size_t k = 0; k < count; k += 2)
    for (size_t r = 0; r < SIDE; r++)
      for (size_t c = 0; c < SIDE; c++) sums[r][c] += *(const pair *)(a[r] + k) * *(const pair *)(b[c] + k);
  for (size_t r = 0; r < SIDE; r++)
    for (size_t c = 0; c < SIDE; c++) sums_out[r][c] = sums[r][c][0] + sums[r][c][1];
}

/* Computes SIDE by SIDE entries of the factor. All entries to their left must be known. */
static void factorise_block(struct quadratic_solver *solver, size_t count, size_t first_row, size_t first) {
  double sums[SIDE][SIDE], *rows[SIDE], *others[SIDE];
  for (size_t i = 0; i < SIDE; i++) { /* the values beyond the last row do not matter */
    rows[i] = solver->factor + (first_row + i < count ? first_row + i : first_row) * solver->count;
    others[i] = solver->factor + (first + i < count ? first + i : first) * solver->count;
  }
  dots(rows, others, first, sums);
  for (size_t i = first_row; i < first_row + SIDE && i < count; i++)
    for (size_t k = first; k < first + SIDE && k <= i; k++) {
      size_t j = solver->free[i];
      double *row = rows[i - first_row], *other = others[k - first];
      double h =
          i == k ? solver->diagonal[j] + l2_of(solver, j) : solver->is->hessian[j * solver->count + solver->free[k]];
      double rest = h - sums[i - first_row][k - first];
      for (size_t m = first; m < k; m++) rest -= row[m] * other[m];
      if (k < i)
        row[k] = other[k] > 0 ? rest / other[k] : 0;
      else
        row[i] = sqrt(fmax(rest, 0) + DEPENDENT * h);
    }
}

/* Factorises H of the free variables as L L'. The diagonal includes l2, and a small amount more: where
 * columns depend on one another, H has no curvature in some directions although the penalty falls, and the
 * step should become so long that a change of sign ends it. AT_ONCE rows are computed together, against the
 * rows above them. */
static void factorise(struct quadratic_solver *solver, size_t count) {
  if (count == solver->factored_count && !memcmp(solver->free, solver->factored, count * sizeof *solver->free)) return;
  memcpy(solver->factored, solver->free, count * sizeof *solver->free);
  solver->factored_count = count;
  for (size_t begin = 0; begin < count; begin += AT_ONCE) {
    size_t end = begin + AT_ONCE < count ? begin + AT_ONCE : count;
    for (size_t k = 0; k < end; k += SIDE)
      for (size_t i = k > begin ? k : begin; i < end; i += SIDE) factorise_block(solver, count, i, k);
  }
}

/* Solves L L' x = answer in place; x is 0 where the diagonal of L is 0. */
static void substitute(const struct quadratic_solver *solver, size_t count) {
  size_t width = solver->count;
  double *x = solver->answer;
  for (size_t i = 0; i < count; i++) {
    const double *row = solver->factor + i * width;
    x[i] = row[i] > 0 ? (x[i] - dot(row, x, i)) / row[i] : 0;
  }
  for (size_t i = count; i-- > 0;) {
    const double *row = solver->factor + i * width;
    x[i] = row[i] > 0 ? x[i] / row[i] : 0;
    for (size_t k = 0; k < i; k++) x[k] -= row[k] * x[i];
  }
}

/* The fraction of the step, at most 1, that can be taken before a sign changes. */
static double signs_hold(const struct quadratic_solver *solver, size_t count) {
  double far = 1;
  for (size_t i = 0; i < count; i++) {
    size_t j = solver->free[i];
    double by = solver->answer[i], v = solver->v[j];
    if (l1_of(solver, j) > 0 && v * by < 0 && fabs(by) * far > fabs(v)) far = fabs(v / by);
  }
  return far;
}

/* Goes to the minimum for the present signs of all variables, or as far towards it as the signs stay the
 * same. */
static void jump(struct quadratic_solver *solver) {
  size_t count = 0;
  for (size_t j = 0; j < solver->count; j++) {
    double l1 = l1_of(solver, j);
    if (solver->diagonal[j] + l2_of(solver, j) <= NOTHING || (l1 > 0 && solver->v[j] == 0)) continue;
    double slope = solver->slope[j] + l2_of(solver, j) * solver->v[j];
    solver->answer[count] = -(slope + (solver->v[j] > 0 ? l1 : -l1) * (l1 > 0));
    solver->free[count++] = j;
  }
  factorise(solver, count);
  substitute(solver, count);
  double far = signs_hold(solver, count);
  for (size_t i = 0; i < count; i++) {
    size_t j = solver->free[i];
    double v = solver->v[j], by = far * solver->answer[i];
    if (by == 0) continue;
    bool is_zero = l1_of(solver, j) > 0 && (v > 0) != (v + by > 0);
    move(solver, j, is_zero ? -v : by);
    if (is_zero) solver->v[j] = 0;
  }
}

/* --- the whole ------------------------------------------------------------------------------------------ */

/* The fall of the quadratic from w to v. The slope at v is g + H (v - w), so g . s + s' H s / 2 = (g + slope)
 * . s / 2. */
static double fall(const struct quadratic_solver *solver) {
  double sum = 0;
  for (size_t j = 0; j < solver->count; j++) {
    double v = solver->v[j], w = solver->is->w[j], s = v - w;
    sum -= (solver->is->g[j] + solver->slope[j]) / 2 * s + l1_of(solver, j) * (fabs(v) - fabs(w)) +
           l2_of(solver, j) / 2 * (v * v - w * w);
  }
  return sum;
}

static void solve(struct quadratic_solver *solver) {
  double first = 0, fallen = 0;
  /* consecutive iterations without progress: a single one may only have found that a variable is zero */
  int still = 0;
  for (int turn = 0; turn < TURNS && still < STILL_TURNS; turn++) {
    double most = descend(solver), now = fall(solver);
    if (turn == 0) first = most;
    if (most <= ENOUGH * first) break;
    still = turn > 0 && now - fallen <= STILL * now ? still + 1 : 0;
    fallen = now;
    jump(solver);
  }
}

pawl_status linear_quadratic_solve(const struct linear_quadratic *is, double *step_out, double *fall_out) {
  size_t count = is->count;
  struct quadratic_solver solver = {.is = is, .count = count};
  solver.v = apps_alloc((count + 1) * sizeof *solver.v);
  solver.slope = apps_alloc((count + 1) * sizeof *solver.slope);
  solver.diagonal = apps_alloc((count + 1) * sizeof *solver.diagonal);
  solver.answer = apps_alloc((count + 1) * sizeof *solver.answer);
  solver.free = apps_alloc((count + 1) * sizeof *solver.free);
  solver.factored = apps_alloc((count + 1) * sizeof *solver.factored);
  solver.factor = apps_alloc((count * count + 1) * sizeof *solver.factor);
  bool is_there =
      solver.v && solver.slope && solver.diagonal && solver.answer && solver.free && solver.factored && solver.factor;
  if (is_there) {
    memcpy(solver.v, is->w, count * sizeof *solver.v);
    memcpy(solver.slope, is->g, count * sizeof *solver.slope);
    for (size_t j = 0; j < count; j++) solver.diagonal[j] = is->hessian[j * count + j] * (1 + is->ridge);
    solve(&solver);
    for (size_t j = 0; j < count; j++) step_out[j] = solver.v[j] - is->w[j];
    *fall_out = fall(&solver);
  }
  apps_free(solver.v);
  apps_free(solver.slope);
  apps_free(solver.diagonal);
  apps_free(solver.answer);
  apps_free(solver.free);
  apps_free(solver.factored);
  apps_free(solver.factor);
  return is_there ? PAWL_OK : PAWL_NO_MEMORY;
}
