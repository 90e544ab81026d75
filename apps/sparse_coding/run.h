/* One training. train.c has its course, atoms.c the first atoms and what becomes of unused ones; shared.c and learner.c the
 * steps by workers. */
#ifndef SPARSE_RUN_H
#define SPARSE_RUN_H

#include "apps/sparse_coding/encode.h"
#include "apps/sparse_coding/model.h"

enum { SPARSE_FOR_ATOMS = 22, SPARSE_FOR_ORDER = 23 }; /* purposes of random numbers */

/* A dictionary that was measured. */
struct sparse_figures {
  uint64_t epoch;
  double objective, gap; /* the gap relative to the objective */
  double error, nonzeros, test_error, test_nonzeros, test_objective;
  uint64_t unsolved;
  uint32_t unused;
};

struct sparse_shared; /* shared.c */

struct sparse_run {
  struct pawl_sparse_options is;
  char *error;
  const struct pawl_sparse_rows *rows, *test; /* test NULL: none */
  struct sparse_view view, test_view;
  struct pawl_sparse_about about;
  double lambda_given; /* 0: is.lambda was chosen */
  double longest;      /* the length of the longest row */

  struct sparse_dictionary dictionary;
  struct sparse_sums sums;
  struct sparse_target target; /* of all pairs of training */
  struct sparse_encoder encoder;
  struct sparse_shared *shared; /* NULL: this process makes all steps */
  double *scratch;              /* SPARSE_GROUP atoms */
  uint32_t *order;              /* of the rows of an epoch */
  uint64_t *uses;               /* of the last measurement, by atom */
  double *residuals;            /* of the last measurement, by row: |x - B a|^2 */

  uint64_t epoch, batch; /* complete ones; rows of a step */
  uint64_t replaced;     /* atoms, in all epochs */
  double previous;       /* the objective of the last epoch; NAN: none */
  double won;            /* by the last epoch, relative to the objective; NAN: not known */
  struct sparse_figures last, best;
  struct pawl_sparse_model *model; /* the best dictionary */

  bool is_stopping;
  int64_t begun_ns;
  uint64_t coded; /* rows, in training and measuring */
  struct pawl_sparse_progress progress;
  struct pawl_sparse_result result;
};

/* The whole course. The caller has set rows, test, error, begun_ns, resolved options and, perhaps, `shared`. */
PAWL_MUST_USE pawl_status sparse_run_train(struct sparse_run *run, struct pawl_sparse_model **model_out,
                                           struct pawl_sparse_result *result_out);
void sparse_run_fini(struct sparse_run *run);

/* Memory, the view of the rows, and lambda: all that workers have in common with the scheduler. */
PAWL_MUST_USE pawl_status sparse_run_prepare(struct sparse_run *run);

/* Steps of an epoch, and rows of one. */
uint64_t sparse_run_steps(const struct sparse_run *run);
size_t sparse_run_size(const struct sparse_run *run, uint64_t step);

/* Puts the rows into the order of an epoch. */
void sparse_run_shuffle(struct sparse_run *run, uint64_t epoch);

/* The share of the sums that a step of an epoch keeps: they weigh at most as many rows as there are. */
double sparse_run_keep(const struct sparse_run *run, uint64_t epoch, uint64_t step);

/* Codes rows [begin, end) of a batch, and hands their pairs to the target, which forgets all but `keep` of the sums first. */
PAWL_MUST_USE pawl_status sparse_run_code(struct sparse_run *run, uint64_t step, size_t begin, size_t end, double keep);

/* All steps of an epoch by workers: then the dictionary is theirs. */
PAWL_MUST_USE pawl_status sparse_shared_steps(struct sparse_run *run);
void sparse_shared_note(const struct sparse_run *run, struct pawl_sparse_progress *progress);

/* Says that numbers are not finite: PAWL_DIVERGED. */
pawl_status sparse_run_diverged(const struct sparse_run *run);

/* The first atoms: rows drawn at random, scaled to length 1. With fewer rows than atoms the others are 0. */
PAWL_MUST_USE pawl_status sparse_run_draw_atoms(struct sparse_run *run);

/* Replaces atoms that no code uses by the scaled residuals of the rows that are reconstructed worst, if a code would then use
 * them. Returns how many in `count_out`. */
PAWL_MUST_USE pawl_status sparse_run_replace_unused(struct sparse_run *run, uint32_t *count_out);

/* Writes the state between two epochs to the file of the checkpoint, and reads it. PAWL_MISMATCH: other rows or options;
 * the sentence names one of them. */
PAWL_MUST_USE pawl_status sparse_checkpoint_write(struct sparse_run *run);
PAWL_MUST_USE pawl_status sparse_checkpoint_read(struct sparse_run *run);

#endif
