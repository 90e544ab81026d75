/* Measures weights on rows, by several threads: loss, errors, classes, probabilities. Sums do not depend on the number of
 * threads, because they are added up block by block. */
#ifndef MLR_EVALUATE_H
#define MLR_EVALUATE_H

#include "apps/common/crew.h"
#include "apps/mlr/matrix.h"

/* Rows, in the features and classes of a model. */
struct mlr_view {
  const struct pawl_mlr_rows *rows;
  uint32_t *at;      /* features of the entries as numbers of the model; NULL: they are the same */
  uint32_t *classes; /* by label of the rows: its class in the model; NULL: they are the same */
  uint64_t unknown_values;
};

/* The view of a model with these features and labels; `ids` are ascending. PAWL_MISMATCH (images and rows, or images of
 * another size), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_view_init(struct mlr_view *view, const struct pawl_mlr_rows *rows, const uint64_t *ids,
                                        uint64_t features, bool is_images, const struct apps_names *labels,
                                        char *error);
void mlr_view_fini(struct mlr_view *view);

/* The class of a row in the model; PAWL_MLR_NO_CLASS: none. */
static inline uint32_t mlr_view_class(const struct mlr_view *view, size_t row) {
  uint32_t label = view->rows->classes[row];
  return label == PAWL_MLR_NO_CLASS || !view->classes ? label : view->classes[label];
}

struct mlr_outputs { /* each may be NULL */
  uint32_t *classes;
  double *probabilities;
  uint64_t *confusion;
};

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_evaluate(const struct mlr_matrix *matrix, const struct mlr_view *view,
                                       struct apps_crew *crew, uint32_t threads, const struct mlr_outputs *outputs,
                                       struct pawl_mlr_score *score_out);

/* Adds the slope of the sum of losses to a matrix whose weights are 0. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_slope(const struct mlr_matrix *matrix, const struct pawl_mlr_rows *rows,
                                    struct mlr_target to);

#endif
