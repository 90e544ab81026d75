/* The conditional distribution of one row, given all rows of the other side (Salakhutdinov and Mnih 2008, 3.3):
 *
 *   u_i ~ N(A^-1 b, A^-1)   where   A = Lambda + alpha * sum over j of v_j v_j'
 *                                   b = Lambda mu + alpha * sum over j of r_ij v_j
 *
 * and j runs over the ratings of the row. A row without ratings is drawn from its prior N(mu, Lambda^-1).
 *
 * A draw is a pure function of prior, ratings, the other side's rows and a stream of random numbers. It does not matter
 * which thread or process draws which row, and in which order.
 */
#ifndef BPMF_ROW_H
#define BPMF_ROW_H

#include "apps/bpmf/kernel.h"
#include "apps/bpmf/random.h"

/* Hyper-parameters of a side, ready for draws. Padded to `width`: 1 on the diagonal, 0 elsewhere. */
struct bpmf_prior {
  double *precision; /* Lambda, width x width */
  double *pull;      /* Lambda mu */
};

/* The ratings of one row. */
struct bpmf_rated {
  const uint32_t *others; /* rows of the other side */
  const float *values;    /* ratings, as data.h scales them */
  size_t count;
};

/* Memory for draws of one thread. */
struct bpmf_scratch {
  double *panel;                             /* a tile of rows */
  double *matrix, *inverse, *vector, *noise; /* width x width, and width each */
};

bool bpmf_scratch_init(struct bpmf_scratch *scratch, size_t width); /* false: out of memory; call fini all the same */
void bpmf_scratch_fini(struct bpmf_scratch *scratch);

struct bpmf_draw {
  const struct bpmf_kernel *kernel;
  uint32_t rank;
  size_t width;
  double alpha;
  const struct bpmf_prior *prior;
  const float *others; /* rows of the other side, `width` floats each */
};

/* Draws a row. False: the matrix is not positive definite, which means that numbers have become too large. */
bool bpmf_row_draw(const struct bpmf_draw *draw, struct bpmf_rated rated, struct apps_random random,
                   struct bpmf_scratch *scratch, float *row_out);

#endif
