/* Predictions of a linear model on a data set, for `pawl predict`. */
#ifndef PWI_CLI_MODELS_PREDICT_RUN_H
#define PWI_CLI_MODELS_PREDICT_RUN_H

#include <stdio.h>

#include <pawl/linear_model.h>

#include "base/idmap.h"

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

enum pwi_predict_what { PWI_PREDICT_LABELS, PWI_PREDICT_SCORES, PWI_PREDICT_PROBABILITIES };

struct pwi_predict_scores {
  double *scores;
  size_t rows;
  bool is_there;
};

/* Writes one line per row, in the order of the data. Pieces may finish in any order; those that finish early
 * wait here. */
struct pwi_predict_lines {
  FILE *file; /* NULL: scores are freed, not written */
  enum pwi_predict_what what;
  const struct pawl_linear_about *about; /* of the model */
  struct pwi_predict_scores *waiting;    /* by piece */
  size_t pieces, next;
  int problem; /* errno of a failed write */
};

PAWL_MUST_USE pawl_status pwi_predict_lines_init(struct pwi_predict_lines *lines, size_t pieces);
void pwi_predict_lines_fini(struct pwi_predict_lines *lines);

/* Takes over the scores of a piece, allocated with pwi_alloc. Returns PAWL_IO and sets `problem` if they
 * cannot be written. */
PAWL_MUST_USE pawl_status pwi_predict_lines_take(struct pwi_predict_lines *lines, size_t piece, double *scores,
                                                 size_t rows);

/* --- features that a model does not know ---------------------------------------------------------------------------------- */

#define PWI_PREDICT_STRANGERS_MAX ((size_t)1 << 20) /* maximum of distinct ids that are counted */

struct pwi_predict_strangers {
  uint64_t features; /* number of features of the model; higher ids are unknown */
  bool zero_based;   /* id 0 is known only if this is true */
  bool has_zero;     /* id 0 occurred but is unknown to the model */
  uint64_t entries, all_entries;
  struct pwi_idmap ids; /* the unknown ids, each with the value 1 */
};

PAWL_MUST_USE pawl_status pwi_predict_strangers_add(struct pwi_predict_strangers *strangers,
                                                    const struct pawl_batch *batch);
void pwi_predict_strangers_fini(struct pwi_predict_strangers *strangers);

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

struct pwi_predict {
  const struct pawl_linear_model *model;
  const struct pawl_linear_point *penalty; /* for the objective; NULL: that of the training */
  struct pawl_linear_about about;          /* filled by pwi_predict_run */
  struct pawl_linear_scorer *scorer;
  struct pawl_linear_metrics *metrics;
  struct pwi_predict_lines lines;
  struct pwi_predict_strangers strangers;
};

/* Reads and predicts all pieces. Errors are those of pawl_data_read_all and of writing. */
PAWL_MUST_USE pawl_status pwi_predict_run(struct pwi_predict *predict, struct pawl_data *data, uint32_t threads);

#endif
