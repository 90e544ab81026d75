#include "apps/sparse_coding/coder.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"

#define ROUNDS_MAX 200  /* of adding atoms to the active ones */
#define PASSES_MAX 50   /* over the active ones in a round, if they are too many to be solved for */
#define PASSES_FEW 3    /* and if they are not: these find the signs */
#define SOLVED_MAX 1024 /* non-zeros that are solved for */
#define PIVOT_LEAST 1e-10
#define SURE 0.1     /* a pass that wins less than this share of the tolerated gap ends a round */
#define DIGITS 1e-13 /* a gap below this share of |x|^2 is rounding */

bool sparse_coder_init(struct sparse_coder *coder, size_t atoms) {
  *coder = (struct sparse_coder){.atoms = atoms};
  coder->z = apps_alloc_zero(atoms + 1, sizeof *coder->z);
  coder->active = apps_alloc_zero(atoms + 1, sizeof *coder->active);
  coder->most = atoms < SOLVED_MAX ? atoms : SOLVED_MAX;
  coder->factor = apps_alloc(coder->most * coder->most * sizeof *coder->factor); /* most of it is seldom used */
  coder->solved = apps_alloc_zero(coder->most, sizeof *coder->solved);
  coder->rows = apps_alloc_zero(coder->most, sizeof *coder->rows);
  coder->best = apps_alloc_zero(coder->most, sizeof *coder->best);
  return coder->z && coder->active && coder->factor && coder->solved && coder->rows && coder->best;
}

void sparse_coder_fini(struct sparse_coder *coder) {
  apps_free(coder->z);
  apps_free(coder->active);
  apps_free(coder->factor);
  apps_free(coder->solved);
  apps_free(coder->rows);
  apps_free(coder->best);
}

/* z -= change * a row of the Gram matrix */
static void shift(size_t count, double change, const double *restrict gram, double *restrict z) {
  for (size_t i = 0; i < count; i++) z[i] -= change * gram[i];
}

/* The same for the active atoms only. */
static void shift_active(struct sparse_coder *coder, double change, const double *gram) {
  for (size_t n = 0; n < coder->count; n++) coder->z[coder->active[n]] -= change * gram[coder->active[n]];
}

/* One step for each active atom, which leaves z of the others as it was. Returns by how much the objective falls at least. */
static double pass(struct sparse_coder *coder, double *code) {
  double won = 0;
  for (size_t n = 0; n < coder->count; n++) {
    size_t j = coder->active[n];
    const double *row = coder->gram + j * coder->atoms;
    double pull = coder->z[j] + code[j] * row[j], size = fabs(pull) - coder->lambda;
    double next = size > 0 ? copysign(size, pull) / row[j] : 0, change = next - code[j];
    if (change == 0) continue;
    code[j] = next;
    shift_active(coder, change, row);
    won += row[j] * change * change / 2;
  }
  return won;
}

/* --- solving for all non-zeros at once --------------------------------------------------------------------- */

/* The Cholesky factor of the dot products of some atoms, a row after the other. Rows of atoms that are at the same places as
 * the last time are still there. False: the atoms are nearly dependent. */
static bool factorise(struct sparse_coder *coder, size_t count) {
  const uint32_t *atoms = coder->solved;
  size_t same = 0;
  while (same < count && same < coder->factored && coder->rows[same] == atoms[same]) same++;
  coder->factored = same;
  for (size_t i = same; i < count; i++) {
    double *row = coder->factor + i * coder->most;
    for (size_t k = 0; k <= i; k++) {
      const double *other = coder->factor + k * coder->most;
      double rest = coder->gram[atoms[i] * coder->atoms + atoms[k]];
      for (size_t n = 0; n < k; n++) rest -= row[n] * other[n];
      if (k < i)
        row[k] = rest / other[k];
      else if (!(rest > PIVOT_LEAST))
        return false;
      else
        row[i] = sqrt(rest);
    }
    coder->rows[coder->factored++] = atoms[i];
  }
  return true;
}

/* Solves with the factor, in place. */
static void solve(const struct sparse_coder *coder, size_t count, double *values) {
  const double *factor = coder->factor;
  size_t width = coder->most;
  for (size_t i = 0; i < count; i++) {
    for (size_t n = 0; n < i; n++) values[i] -= factor[i * width + n] * values[n];
    values[i] /= factor[i * width + i];
  }
  for (size_t i = count; i-- > 0;) {
    for (size_t n = i + 1; n < count; n++) values[i] -= factor[n * width + i] * values[n];
    values[i] /= factor[i * width + i];
  }
}

/* Goes from the code towards `best`, up to the first number that becomes 0. Returns whether it reached the end. */
static bool approach(const uint32_t *atoms, size_t count, const double *best, double *code) {
  double share = 1;
  size_t first = count;
  for (size_t n = 0; n < count; n++) {
    double here = code[atoms[n]];
    if (best[n] * here > 0 || here / (here - best[n]) >= share) continue;
    share = here / (here - best[n]);
    first = n;
  }
  for (size_t n = 0; n < count; n++) code[atoms[n]] += share * (best[n] - code[atoms[n]]);
  if (first < count) code[atoms[first]] = 0;
  return first == count;
}

static bool is_stopping(const struct sparse_coder *coder) { return coder->stopping && coder->stopping(coder->context); }

/* With the signs of the non-zeros fixed, the objective is quadratic and the best code solves G a = B'x - lambda sign(a). On
 * the way there a number may become 0: it leaves, and the others are solved for again (Lee et al. 2007, feature-sign
 * search). The objective falls in each step. */
static void solve_signs(struct sparse_coder *coder, const double *products, double *code) {
  uint32_t *atoms = coder->solved;
  double *best = coder->best;
  size_t left = coder->count;
  for (bool is_there = false; !is_there && left > 0 && !is_stopping(coder); left--) {
    size_t count = 0;
    for (size_t n = 0; n < coder->count; n++)
      if (code[coder->active[n]] != 0) atoms[count++] = coder->active[n];
    for (size_t n = 0; n < count; n++) best[n] = products[atoms[n]] - copysign(coder->lambda, code[atoms[n]]);
    if (!factorise(coder, count)) return;
    solve(coder, count, best);
    is_there = approach(atoms, count, best, code);
  }
}

/* --- the code --------------------------------------------------------------------------------------------- */

/* Objective and gap. |x - B a|^2 and x'(x - B a) follow from the products. */
static struct sparse_found judge(const struct sparse_coder *coder, const double *products, double square,
                                 const double *code) {
  struct sparse_found found = {.square = square};
  double cross = square, largest = 0; /* cross: x'(x - B a) */
  for (size_t n = 0; n < coder->count; n++) {
    size_t j = coder->active[n];
    cross -= code[j] * products[j];
    found.square -= code[j] * (products[j] + coder->z[j]);
    found.weight += fabs(code[j]);
    found.nonzeros += code[j] != 0;
  }
  for (size_t j = 0; j < coder->atoms; j++) largest = fabs(coder->z[j]) > largest ? fabs(coder->z[j]) : largest;
  found.square = fmax(found.square, 0);
  found.objective = found.square / 2 + coder->lambda * found.weight;
  double reach = largest > 0 ? coder->lambda / largest : 1, best = found.square > 0 ? cross / found.square : 1;
  double scale = fmin(fmax(best, -reach), reach);
  found.gap = fmax(found.objective - scale * cross + scale * scale * found.square / 2, 0);
  found.is_solved = found.gap <= fmax(coder->tolerance * found.objective, DIGITS * square);
  return found;
}

/* Drops active atoms whose number is 0, and adds those that pull most. Returns whether there are any. */
static bool choose(struct sparse_coder *coder, const double *code) {
  size_t kept = 0;
  double most = 0;
  for (size_t n = 0; n < coder->count; n++)
    if (code[coder->active[n]] != 0) coder->active[kept++] = coder->active[n];
  for (size_t j = 0; j < coder->atoms; j++)
    if (code[j] == 0 && fabs(coder->z[j]) > most && coder->gram[j * coder->atoms + j] > 0) most = fabs(coder->z[j]);
  double least = coder->lambda + (most - coder->lambda) / 2;
  if (most > coder->lambda)
    for (size_t j = 0; j < coder->atoms; j++)
      if (code[j] == 0 && fabs(coder->z[j]) >= least && coder->gram[j * coder->atoms + j] > 0)
        coder->active[kept++] = (uint32_t)j;
  coder->count = kept;
  return kept > 0;
}

/* z from the code: passes keep only that of active atoms, and collect rounding. */
static void recompute(struct sparse_coder *coder, const double *products, const double *code) {
  memcpy(coder->z, products, coder->atoms * sizeof *coder->z);
  for (size_t n = 0; n < coder->count; n++) {
    size_t j = coder->active[n];
    if (code[j] != 0) shift(coder->atoms, code[j], coder->gram + j * coder->atoms, coder->z);
  }
}

struct sparse_found sparse_coder_run(struct sparse_coder *coder, const double *products, double square,
                                     double *code_out) {
  memset(code_out, 0, coder->atoms * sizeof *code_out);
  coder->count = coder->factored = 0;
  recompute(coder, products, code_out);
  struct sparse_found found = judge(coder, products, square, code_out);
  for (int round = 0; round < ROUNDS_MAX && !found.is_solved && choose(coder, code_out); round++) {
    if (is_stopping(coder)) break;
    double enough = SURE * coder->tolerance * found.objective;
    bool is_small = coder->count <= coder->most;
    for (int i = 0; i < (is_small ? PASSES_FEW : PASSES_MAX) && pass(coder, code_out) > enough && !is_stopping(coder);
         i++)
      continue;
    if (is_small) solve_signs(coder, products, code_out);
    recompute(coder, products, code_out);
    found = judge(coder, products, square, code_out);
  }
  return found;
}
