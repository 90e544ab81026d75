/* One training. prepare.c has what precedes the first step, train.c the rest; shared.c and learner.c the steps by workers. */
#ifndef DML_RUN_H
#define DML_RUN_H

#include "apps/dml/loss.h"
#include "apps/dml/model.h"
#include "apps/dml/nearest.h"

struct dml_shared; /* shared.c */

struct dml_run {
  const struct pawl_mlr_rows *rows, *test; /* test NULL: none */
  struct pawl_metric_options is;           /* resolved */
  char *error;
  int64_t begun_ns;
  struct apps_crew *crew;
  size_t limit;                    /* rows to look at, for an estimate; 0: all */
  struct dml_shared *shared;       /* NULL: this process makes all steps */
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
  uint64_t epoch, undone;
  uint64_t undone_at_best; /* when the best weights were found */
  bool is_stopping;
  struct pawl_metric_result result; /* of the best weights */
};

/* The whole course. The caller has set rows, test, error, begun_ns, resolved options and, perhaps, `shared`. */
PAWL_MUST_USE pawl_status dml_run_train(struct dml_run *run, struct pawl_metric_model **model_out,
                                        struct pawl_metric_result *result_out);
void dml_run_fini(struct dml_run *run);

/* Divides the rows into those of pairs and those held out, and makes points of them, and weights of 0: all that workers have
 * in common with the scheduler. */
PAWL_MUST_USE pawl_status dml_run_read(struct dml_run *run);

/* Points, PCA with which training begins, pairs and the rate. The objective and errors of PCA become the best ones. With a
 * checkpoint to resume from, all this is that of the checkpoint. */
PAWL_MUST_USE pawl_status dml_run_prepare(struct dml_run *run);

/* Memory for pairs. PAWL_NO_MEMORY, with a sentence; call dml_run_fini in any case. */
PAWL_MUST_USE pawl_status dml_run_reserve_pairs(struct dml_run *run, size_t count);

/* Whether all pairs, which came from elsewhere, are of points that are not held out. */
bool dml_run_has_points(const struct dml_run *run);

/* Steps of an epoch, and pairs of points of one. */
uint64_t dml_run_steps(const struct dml_run *run);
size_t dml_run_size(const struct dml_run *run, uint64_t step);

/* Puts the pairs into the order of an epoch. */
void dml_run_shuffle(struct dml_run *run, uint64_t epoch);

/* Hands pairs [begin, end) of the batch to the target, with the step of the whole batch. */
PAWL_MUST_USE pawl_status dml_run_step(struct dml_run *run, uint64_t step, size_t begin, size_t end);

/* The same for all steps of an epoch, by workers: then the weights are theirs. Weights that are not finite any more are NAN. */
PAWL_MUST_USE pawl_status dml_shared_steps(struct dml_run *run);
void dml_shared_note(const struct dml_run *run, struct pawl_metric_progress *progress);

/* Writes the state between two epochs to the file of the checkpoint, and reads it. PAWL_MISMATCH: other rows or options;
 * the sentence names one of them. */
PAWL_MUST_USE pawl_status dml_checkpoint_write(struct dml_run *run);
PAWL_MUST_USE pawl_status dml_checkpoint_read(struct dml_run *run);

/* Maps all points with the weights of the run. */
void dml_run_map(struct dml_run *run);

/* The share of held-out points that points of pairs classify wrongly; `all` are the points or what they are mapped to. */
PAWL_MUST_USE pawl_status dml_run_measure(struct dml_run *run, const struct dml_points *all, double *error_out);

/* Errors on the test rows, with all rows as neighbours; `mapped` must have them by the best weights. */
PAWL_MUST_USE pawl_status dml_run_test(struct dml_run *run);

bool dml_run_is_stopping(struct dml_run *run);

#endif
