/* One training: what both methods share. train.c has its course, sgd.c and sdca.c make the passes over the rows. */
#ifndef MLR_RUN_H
#define MLR_RUN_H

#include "apps/common/guess.h"
#include "apps/mlr/duals.h"
#include "apps/mlr/evaluate.h"
#include "apps/mlr/model.h"

struct mlr_run;

/* Each function returns a failure with a sentence in `error`. */
struct mlr_method {
  /* Called once, before a checkpoint is read. */
  pawl_status (*begin)(struct mlr_run *run);

  /* One pass over the rows, in the order of the epoch, which is counted from 0. Ends early if mlr_run_is_stopping. */
  pawl_status (*pass)(struct mlr_run *run, uint64_t epoch);

  /* A bound on the distance of the objective to the optimum; NAN: not known. `is_last`: the run is about to end. */
  pawl_status (*bound)(struct mlr_run *run, bool is_last, double *gap_out);
};

extern const struct mlr_method mlr_sgd, mlr_sdca;

struct mlr_shared; /* shared.c */

struct mlr_run {
  const struct mlr_method *method;
  struct pawl_mlr_options is;
  char *error;
  const struct pawl_mlr_rows *rows, *test; /* test NULL: none */
  struct mlr_view view, test_view;
  struct pawl_mlr_model *model;
  struct mlr_target target; /* of all changes of the weights */
  struct apps_crew *crew;
  uint32_t *order;   /* of the rows of an epoch */
  double rate_given; /* SGD: 0: is.rate was chosen */

  struct mlr_duals duals; /* SDCA */
  double *squares;        /* SDCA: squared length of each row, with that of the constant */

  struct mlr_shared *shared; /* NULL: this process makes all steps */

  uint64_t epoch; /* complete ones */
  bool is_stopping, is_measured;
  double objective, gap;     /* of the last measurement; absolute */
  struct apps_figures guess; /* of guessing on the test rows; NAN without any */
  int64_t begun_ns;
  uint64_t passes; /* of this process */
  struct pawl_mlr_progress progress;
  struct pawl_mlr_result result;
};

/* The whole course. The caller has set method, rows, test, error, begun_ns, resolved options and, perhaps, `shared`. */
PAWL_MUST_USE pawl_status mlr_run_train(struct mlr_run *run, struct pawl_mlr_model **model_out,
                                        struct pawl_mlr_result *result_out);

/* Weights 0 in the features and classes of the rows, and the target that changes them. */
PAWL_MUST_USE pawl_status mlr_run_make_model(struct mlr_run *run);

/* Says that weights are not finite: PAWL_DIVERGED. */
pawl_status mlr_run_diverged(struct mlr_run *run);

/* Puts the rows into the order of an epoch. */
void mlr_run_shuffle(struct mlr_run *run, uint64_t epoch);

/* Asks whether to stop. */
bool mlr_run_is_stopping(struct mlr_run *run);

/* Measures the objective and the errors of the weights. */
PAWL_MUST_USE pawl_status mlr_run_measure(struct mlr_run *run);

/* Writes the state between two epochs to the file of the checkpoint, and reads it. PAWL_MISMATCH: other rows or options;
 * the sentence names one of them. */
PAWL_MUST_USE pawl_status mlr_checkpoint_write(struct mlr_run *run);
PAWL_MUST_USE pawl_status mlr_checkpoint_read(struct mlr_run *run);

#endif
