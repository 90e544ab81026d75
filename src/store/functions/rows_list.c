/* The built-in row functions; docs/row-functions.md has their formulas. */
#include <math.h>

#include "base/hash.h"
#include "store/functions/rows.h"

#define MUCH 1e30
#define TAU 6.283185307179586

/* A value with its present result, in the type of the vector. */
#define EACH_VALUE(call, body)                                                                                         \
  do {                                                                                                                 \
    size_t values = (call)->count * (call)->width;                                                                     \
    if ((call)->type == PAWL_F32) {                                                                                    \
      float *rows = (call)->rows;                                                                                      \
      const float *others = (call)->others;                                                                            \
      for (size_t i = 0; i < values; i++) {                                                                            \
        double w = (double)rows[i], x = others ? (double)others[i] : 0, fresh;                                         \
        body;                                                                                                          \
        rows[i] = (float)fresh;                                                                                        \
      }                                                                                                                \
    } else {                                                                                                           \
      double *rows = (call)->rows;                                                                                     \
      const double *others = (call)->others;                                                                           \
      for (size_t i = 0; i < values; i++) {                                                                            \
        double w = rows[i], x = others ? others[i] : 0, fresh;                                                         \
        body;                                                                                                          \
        rows[i] = fresh;                                                                                               \
      }                                                                                                                \
    }                                                                                                                  \
  } while (0)

/* --- proximal ------------------------------------------------------------------------------------------- */

enum { RATE, L1, L2 };
enum { NONZERO, NORM_1, MOVED, SQUARES };

static double shrink(double z, double least) { return z > least ? z - least : z < -least ? z + least : 0; }

static void run_proximal(const struct pawl_row_call *call) {
  const double *is = call->parameters;
  double least = is[RATE] * is[L1], divisor = 1 + is[RATE] * is[L2], nonzero = 0, norm = 0, moved = 0, squares = 0;
  EACH_VALUE(call, {
    fresh = shrink(w - is[RATE] * x, least) / divisor;
    nonzero += fresh != 0;
    norm += fabs(fresh);
    moved += (fresh - w) * (fresh - w);
    squares += fresh * fresh;
  });
  call->results[NONZERO] += nonzero;
  call->results[NORM_1] += norm;
  call->results[MOVED] += moved;
  call->results[SQUARES] += squares;
}

static const struct pawl_function_parameter proximal_parameters[] = {
    [RATE] = {"rate", "length of a step", 1, 0, MUCH},
    [L1] = {"l1", "weight of the sum of absolute values", 0, 0, MUCH},
    [L2] = {"l2", "weight of half the sum of squares", 0, 0, MUCH},
};

static const struct pawl_row_result proximal_results[] = {
    [NONZERO] = {"nonzero", "values that are not zero", PAWL_ROW_SUM},
    [NORM_1] = {"norm_1", "sum of absolute values", PAWL_ROW_SUM},
    [MOVED] = {"moved", "sum of squared changes", PAWL_ROW_SUM},
    [SQUARES] = {"squares", "sum of squares", PAWL_ROW_SUM},
};

static const struct pawl_row_function proximal = {
    .size = sizeof proximal,
    .flags = PAWL_ROW_TAKES_OTHER,
    .name = "proximal",
    .about = "a step along the second vector, then shrinkage by l1 and division by 1 + l2",
    .types = PAWL_FUNCTION_REALS,
    .parameter_count = 3,
    .parameters = proximal_parameters,
    .result_count = 4,
    .results = proximal_results,
    .run = run_proximal,
};

/* --- clip ----------------------------------------------------------------------------------------------- */

enum { LOW, HIGH };
enum { CLIPPED, LEAST, MOST };

static void run_clip(const struct pawl_row_call *call) {
  const double *is = call->parameters;
  double clipped = 0, *results = call->results;
  EACH_VALUE(call, {
    (void)x;
    fresh = w < is[LOW] ? is[LOW] : w > is[HIGH] ? is[HIGH] : w;
    clipped += fresh != w;
    if (w < results[LEAST]) results[LEAST] = w;
    if (w > results[MOST]) results[MOST] = w;
  });
  results[CLIPPED] += clipped;
}

static const struct pawl_function_parameter clip_parameters[] = {
    [LOW] = {"low", "the smallest value", -1, -MUCH, MUCH},
    [HIGH] = {"high", "the largest value", 1, -MUCH, MUCH},
};

static const struct pawl_row_result clip_results[] = {
    [CLIPPED] = {"clipped", "values that changed", PAWL_ROW_SUM},
    [LEAST] = {"least", "the smallest value before", PAWL_ROW_LEAST},
    [MOST] = {"most", "the largest value before", PAWL_ROW_MOST},
};

static const char *settle_clip(const double *is) { return is[LOW] <= is[HIGH] ? NULL : "low is greater than high"; }

static const struct pawl_row_function clip = {
    .size = sizeof clip,
    .name = "clip",
    .about = "moves values into [low, high]",
    .types = PAWL_FUNCTION_REALS,
    .parameter_count = 2,
    .parameters = clip_parameters,
    .result_count = 3,
    .results = clip_results,
    .settle = settle_clip,
    .run = run_clip,
};

/* --- noise ---------------------------------------------------------------------------------------------- */

enum { SEED, DEVIATION };

static double uniform(uint64_t bits) { return ((double)(bits >> 11) + 0.5) * 0x1p-53; }

/* A value depends on the seed, the key and the column only (Box and Muller, 1958). */
static double draw(const struct pawl_row_call *call, size_t value) {
  size_t row = value / call->width;
  uint64_t key = call->keys ? call->keys[row] : call->first + row;
  uint64_t bits = pwi_mix64(pwi_mix64((uint64_t)call->parameters[SEED] ^ pwi_mix64(key)) + value % call->width);
  return sqrt(-2 * log(uniform(bits))) * cos(TAU * uniform(pwi_mix64(~bits)));
}

static void run_noise(const struct pawl_row_call *call) {
  double squares = 0;
  EACH_VALUE(call, {
    (void)x;
    double step = call->parameters[DEVIATION] * draw(call, i);
    fresh = w + step;
    squares += step * step;
  });
  call->results[0] += squares;
}

static const struct pawl_function_parameter noise_parameters[] = {
    [SEED] = {"seed", "the same seed draws the same values", 0, 0, 9007199254740992.0},
    [DEVIATION] = {"deviation", "standard deviation of what is added", 1, 0, MUCH},
};

static const struct pawl_row_result noise_results[] = {{"squares", "sum of squares of what was added", PAWL_ROW_SUM}};

static const struct pawl_row_function noise = {
    .size = sizeof noise,
    .name = "noise",
    .about = "adds normally distributed values, as a step of Langevin dynamics does",
    .types = PAWL_FUNCTION_REALS,
    .parameter_count = 2,
    .parameters = noise_parameters,
    .result_count = 1,
    .results = noise_results,
    .run = run_noise,
};

const struct pawl_row_function *const pwi_row_functions_built_in[] = {&proximal, &clip, &noise, NULL};
