#include "apps/bpmf/random.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

/* --- normal ---------------------------------------------------------------------------------------------- */

#define LAYERS 128
#define TAIL 3.442619855899      /* where the tail begins */
#define AREA 9.91256303526217e-3 /* of each layer */

/* Layer i reaches from 0 to edge[i]; layer 0 is the base with the tail. ratio[i] = edge[i + 1] / edge[i]. */
static double edge[LAYERS + 1], ratio[LAYERS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static double density(double x) { return exp(-0.5 * x * x); }

static void make_tables(void) {
  edge[0] = AREA / density(TAIL);
  edge[1] = TAIL;
  for (int i = 2; i < LAYERS; i++) edge[i] = sqrt(-2 * log(AREA / edge[i - 1] + density(edge[i - 1])));
  edge[LAYERS] = 0;
  for (int i = 0; i < LAYERS; i++) ratio[i] = edge[i + 1] / edge[i];
}

void bpmf_random_prepare(void) { pthread_once(&once, make_tables); }

static double draw_tail(struct apps_random *random, bool is_negative) {
  double x, y;
  do {
    x = log(bpmf_unit(random)) / TAIL;
    y = log(bpmf_unit(random));
  } while (-2 * y < x * x);
  return is_negative ? x - TAIL : TAIL - x;
}

double bpmf_normal(struct apps_random *random) {
  for (;;) {
    uint64_t bits = apps_random_draw(random);
    size_t i = bits & (LAYERS - 1);
    double u = (double)(int64_t)(bits & ~UINT64_C(0x7ff)) * 0x1p-63; /* in [-1, 1), from bits that i does not use */
    if (fabs(u) < ratio[i]) return u * edge[i];
    if (i == 0) return draw_tail(random, u < 0);
    double x = u * edge[i], upper = exp(-0.5 * (edge[i] * edge[i] - x * x));
    double lower = exp(-0.5 * (edge[i + 1] * edge[i + 1] - x * x));
    if (lower + bpmf_unit(random) * (upper - lower) < 1) return x;
  }
}

/* --- gamma ----------------------------------------------------------------------------------------------- */

double bpmf_gamma(struct apps_random *random, double shape) {
  double boost = shape < 1 ? pow(bpmf_unit(random), 1 / shape) : 1;
  double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    double x = bpmf_normal(random), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (log(bpmf_unit(random)) < 0.5 * x * x + d - d * v + d * log(v)) return boost * d * v;
  }
}
