#include "store/sketch_distinct.h"

#include <math.h>

#define RANKS (64 - PWI_DISTINCT_BITS) /* the largest rank is one more */

/* x + sum of x^(2^k) 2^(k-1) over k from 1 on: the contribution of registers at 0. */
static double sigma(double x) {
  if (x == 1) return INFINITY;
  double sum = x, weight = 1;
  for (double last = -1; sum != last; weight += weight) {
    x *= x;
    last = sum;
    sum += x * weight;
  }
  return sum;
}

/* (1 - x - sum of (1 - x^(2^-k))^2 2^-k) / 3: the contribution of registers at the highest rank. */
static double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double sum = 1 - x, weight = 1;
  for (double last = -1; sum != last;) {
    x = sqrt(x);
    last = sum;
    weight /= 2;
    sum -= (1 - x) * (1 - x) * weight;
  }
  return sum / 3;
}

double pwi_distinct_estimate(const uint8_t registers[PWI_DISTINCT_REGISTERS]) {
  const double m = PWI_DISTINCT_REGISTERS;
  uint32_t counts[64] = {0};
  for (uint32_t i = 0; i < PWI_DISTINCT_REGISTERS; i++) counts[registers[i] & 63]++;
  double z = m * tau(1 - counts[RANKS + 1] / m);
  for (int k = RANKS; k >= 1; k--) z = (z + counts[k]) / 2;
  z += m * sigma(counts[0] / m);
  return m * m / (2 * log(2) * z);
}
