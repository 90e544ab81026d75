/* One training. prepare.c has what precedes the first step, train.c the rest. */
#ifndef DML_RUN_H
#define DML_RUN_H

#include "apps/dml/loss.h"
#include "apps/dml/model.h"
#include "apps/dml/nearest.h"

struct dml_run {
  const struct pawl_mlr_rows *rows, *test; /* test NULL: none */
  struct pawl_metric_options is;           /* resolved */
  char *error;
  int64_t begun_ns;
  struct apps_crew *crew;
  struct pawl_metric_model *model; /* labels, ids and frame; the rest at the end */

  uint32_t *order;            /* rows with a label, at random: first those of the pairs, then those held out */
  size_t paired, held;        /* their numbers */
  struct dml_points points;   /* in this order */
  struct dml_points mapped;   /* W x of them */
  struct dml_pair_list pairs; /* of the first `paired` points */
  uint32_t *pair_order;       /* of the steps */
  struct dml_loss loss;
  struct dml_weights weights;
  struct dml_target target;
  struct dml_batch batch;
  float *before, *best, *pca; /* weights before this epoch; the best ones; those of PCA */

  double scale;     /* of the rate: 1 / (2 (1 + weight) L) */
  double rate;      /* relative to it */
  double objective; /* of the weights, as `mapped` has them */
  uint64_t epoch, undone, steps_done;
  bool is_stopping;
  struct pawl_metric_result result; /* of the best weights */
};

/* Points, PCA with which training begins, pairs and the rate. The objective and errors of PCA become the best ones. */
PAWL_MUST_USE pawl_status dml_run_prepare(struct dml_run *run);

/* Maps all points with the weights of the run. */
void dml_run_map(struct dml_run *run);

/* The share of held-out points that points of pairs classify wrongly; `all` are the points or what they are mapped to. */
PAWL_MUST_USE pawl_status dml_run_measure(struct dml_run *run, const struct dml_points *all, double *error_out);

/* Errors on the test rows, with all rows as neighbours; `mapped` must have them by the best weights. */
PAWL_MUST_USE pawl_status dml_run_test(struct dml_run *run);

bool dml_run_is_stopping(struct dml_run *run);

#endif
