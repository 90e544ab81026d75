/* `pawl-bench filters`, inside: the bytes that filters save, on keys alone and on l1-regularised logistic
 * regression.
 *
 * The benchmark starts a cluster on this machine and uses the public API only. Bytes are those of whole
 * messages, as the session counts them for a vector (pawl_vector_traffic).
 */
#ifndef BENCH_COMMAND_FILTERS_H
#define BENCH_COMMAND_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/session.h>

#include "cli/cli.h"

struct pwi_filters_bench {
  const struct pwi_command *command;
  const char *data; /* a file in LIBSVM format; NULL: generated data */
  uint64_t examples, features, nonzeros, seed;
  uint32_t iterations;
  const char *svg; /* a picture of the curves (OSDI'14, figure 12); NULL: none */
  double l1;       /* relative to the smallest value for which all weights are zero */
  bool json;
};

extern const struct pwi_command pwi_command_bench_filters;

/* --- data: bench/command/filters_data.c ----------------------------------------------------------------- */

/* Examples as rows of a sparse matrix; `columns` numbers features from 0 in the order of their keys. */
struct pwi_examples {
  size_t count, features, nonzeros;
  size_t *begins; /* count + 1 elements */
  uint32_t *columns;
  float *values;
  float *labels;  /* 1 or -1 */
  uint64_t *keys; /* of the features, increasing: their numbers, scrambled over all 64 bits */
};

void pwi_examples_fini(struct pwi_examples *examples);

/* Reads examples from a file, or generates them: features are as frequent as words in a text, and few of
 * them determine the labels. Features without examples are left out. Prints errors. */
bool pwi_examples_make(const struct pwi_filters_bench *bench, struct pwi_examples *examples_out);

/* Returns the mean logistic loss at `weights`, and computes its gradient and the diagonal of an upper
 * bound on its second derivative:
 *   u_j = mean over i of |x_ij| sum_k |x_ik| / 4,
 * with which a simultaneous step of all weights never increases the loss. Both may be NULL. */
double pwi_examples_loss(const struct pwi_examples *examples, const double *weights, double *gradient, double *bound);

/* --- measuring: bench/command/filters.c ----------------------------------------------------------------- */

#define PWI_FILTERS_CURVE 512

/* One row of the table. */
struct pwi_filters_row {
  const char *scene;  /* "keys" or "learning" */
  const char *filter; /* the chain */
  const char *link;   /* "tcp" or "shared" */
  uint64_t bytes_out, bytes_in;
  double ratio;                    /* of all bytes to those of the first row of the same scene and link */
  double objective;                /* learning; else NaN */
  double objective_off;            /* difference to the first row */
  double left_out;                 /* learning: the share of the rows of the last iteration that filters removed */
  double curve[PWI_FILTERS_CURVE]; /* the same of each iteration, the first ones if there are more */
  size_t curve_count;              /* 0: not learning by kkt */
  double seconds;
  uint64_t nonzeros; /* non-zero weights */
  uint64_t violated; /* violated conditions, found by a final pass without filters */
  double lambda;
};

#define PWI_FILTERS_ROWS 16

bool pwi_filters_bench_run(const struct pwi_filters_bench *bench, struct pwi_filters_row rows[PWI_FILTERS_ROWS],
                           size_t *count_out);

#endif
