/* `pawl bench filters`, inside: what filters save, on keys alone and on l1-regularised logistic regression.
 *
 * A cluster is started on this machine and everything goes through the public API. Bytes are those of whole messages, as
 * the session counts them for a vector (pawl_vector_traffic).
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
  const char *data; /* a file in LIBSVM format; NULL: drawn */
  uint64_t examples, features, nonzeros, seed;
  uint32_t iterations;
  double l1; /* as a part of the smallest one with which all weights are zero */
  bool json;
};

extern const struct pwi_command pwi_command_bench_filters;

/* --- what is learnt from: bench/command/filters_data.c ------------------------------------------------------------------------- */

/* Examples as rows of a sparse matrix; `columns` number features from 0 in the order of their keys. */
struct pwi_examples {
  size_t count, features, nonzeros;
  size_t *begins; /* count + 1 of them */
  uint32_t *columns;
  float *values;
  float *labels;  /* 1 and -1 */
  uint64_t *keys; /* of the features, rising: their numbers, scrambled over all 64 bits */
};

void pwi_examples_fini(struct pwi_examples *examples);

/* Read from a file, or drawn: features as often as words in a text, labels from a model with few of them. Features that no
 * example has are left out. Says what is wrong. */
bool pwi_examples_make(const struct pwi_filters_bench *bench, struct pwi_examples *examples_out);

/* Mean logistic loss at `weights`; its gradient, and the diagonal of an upper bound on its second derivative:
 *   u_j = mean over i of |x_ij| sum_k |x_ik| / 4,
 * with which a step of all weights at once never climbs. Both may be NULL. */
double pwi_examples_loss(const struct pwi_examples *examples, const double *weights, double *gradient, double *bound);

/* --- measuring: bench/command/filters.c ---------------------------------------------------------------------------------------- */

/* One row of the table. */
struct pwi_filters_row {
  const char *scene;  /* "keys" or "learning" */
  const char *filter; /* the chain */
  const char *link;   /* "tcp" or "shared" */
  uint64_t bytes_out, bytes_in;
  double ratio;         /* of both to those of the first row of the scene and link */
  double objective;     /* learning; else NaN */
  double objective_off; /* from that of the first row */
  double left_out;      /* learning: the part of the rows of the last iteration that filters did not let pass */
  double seconds;
  uint64_t nonzeros; /* weights */
  uint64_t violated; /* conditions, found by a last pass without filters */
  double lambda;
};

#define PWI_FILTERS_ROWS 16

bool pwi_filters_bench_run(const struct pwi_filters_bench *bench, struct pwi_filters_row rows[PWI_FILTERS_ROWS],
                           size_t *count_out);

#endif
