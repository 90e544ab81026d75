/* Predictions of a linear model over a data set: what `pawl predict` is made of. */
#ifndef PWI_CLI_MODELS_PREDICT_RUN_H
#define PWI_CLI_MODELS_PREDICT_RUN_H

#include <stdio.h>

#include "apps/linear/model/model.h"
#include "base/idmap.h"

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

enum pwi_predict_what { PWI_PREDICT_LABELS, PWI_PREDICT_SCORES, PWI_PREDICT_PROBABILITIES };

struct pwi_predict_scores {
  double *scores;
  size_t rows;
  bool is_there;
};

/* One line for each row, in the order of the data, whatever the order in which pieces come: those that come early wait here. */
struct pwi_predict_lines {
  FILE *file; /* NULL: none are written, and scores are freed */
  enum pwi_predict_what what;
  const struct linear_model *model;
  struct pwi_predict_scores *waiting; /* by piece */
  size_t pieces, next;
  int problem; /* errno, where writing has failed */
};

PAWL_MUST_USE pawl_status pwi_predict_lines_init(struct pwi_predict_lines *lines, size_t pieces);
void pwi_predict_lines_fini(struct pwi_predict_lines *lines);

/* Takes the scores of a piece, which are pwi_alloc's. PAWL_IO, and `problem`, if they cannot be written. */
PAWL_MUST_USE pawl_status pwi_predict_lines_take(struct pwi_predict_lines *lines, size_t piece, double *scores,
                                                 size_t rows);

/* --- features that a model does not know ---------------------------------------------------------------------------------- */

#define PWI_PREDICT_STRANGERS_MAX ((size_t)1 << 20) /* that many are told apart */

struct pwi_predict_strangers {
  uint64_t features; /* of the model: ids above are not known to it, */
  bool zero_based;   /* nor is 0, unless this is true */
  bool has_zero;     /* it was met, though the model does not know it */
  uint64_t entries, all_entries;
  struct pwi_idmap ids; /* each and 1 */
};

PAWL_MUST_USE pawl_status pwi_predict_strangers_add(struct pwi_predict_strangers *strangers,
                                                    const struct pawl_batch *batch);
void pwi_predict_strangers_fini(struct pwi_predict_strangers *strangers);

/* --- all of it ------------------------------------------------------------------------------------------------------------ */

struct pwi_predict {
  const struct linear_model *model;
  struct linear_scorer *scorer;
  struct linear_metrics *metrics;
  struct pwi_predict_lines lines;
  struct pwi_predict_strangers strangers;
};

/* Reads all pieces. A failure is that of pawl_data_read_all, or of writing. */
PAWL_MUST_USE pawl_status pwi_predict_run(struct pwi_predict *predict, struct pawl_data *data, uint32_t threads);

#endif
