#include "apps/mlr/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/rows.h"
#include "apps/mlr/labels.h"
#include "apps/mlr/softmax.h"

/* --- views ------------------------------------------------------------------------------------------------ */

static bool translate(struct mlr_view *view, const uint64_t *ids, uint64_t features) {
  const struct pawl_mlr_rows *rows = view->rows;
  uint32_t *numbers = apps_alloc_zero((size_t)rows->info.features + 1, sizeof *numbers);
  view->at = apps_alloc_zero((size_t)rows->info.entries + 1, sizeof *view->at);
  if (numbers && view->at) {
    apps_rows_match(rows->ids, rows->info.features, ids, features, numbers);
    for (uint64_t i = 0; i < rows->info.entries; i++) {
      view->at[i] = numbers[rows->at[i]];
      view->unknown_values += view->at[i] == UINT32_MAX;
    }
  }
  apps_free(numbers);
  return numbers && view->at;
}

pawl_status mlr_view_init(struct mlr_view *view, const struct pawl_mlr_rows *rows, const uint64_t *ids,
                          uint64_t features, bool is_images, const struct apps_names *labels, char *error) {
  *view = (struct mlr_view){.rows = rows};
  if (rows->info.is_images != is_images)
    return apps_say(error, PAWL_MISMATCH, "the model was trained on %s, but these are %s",
                    is_images ? "images" : "rows", is_images ? "rows" : "images");
  if (is_images && rows->info.features != features)
    return apps_say(error, PAWL_MISMATCH,
                    "the images have %" PRIu64 " pixels, but the model was trained on images of %" PRIu64,
                    rows->info.features, features);
  view->classes = apps_alloc_zero((size_t)rows->info.classes + 1, sizeof *view->classes);
  if (view->classes) mlr_labels_match(rows, labels, view->classes);
  if (view->classes && (rows->dense || translate(view, ids, features))) return PAWL_OK;
  return apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu64 " rows", rows->info.rows);
}

void mlr_view_fini(struct mlr_view *view) {
  apps_free(view->at);
  apps_free(view->classes);
}

/* --- blocks of rows --------------------------------------------------------------------------------------- */

/* Memory of one thread. */
struct eval_scratch {
  struct mlr_row rows[MLR_BLOCK];
  double *block, *scores;
};

struct mlr_evaluation {
  const struct mlr_matrix *matrix;
  const struct mlr_view *view;
  const struct mlr_outputs *outputs;
  struct eval_scratch *scratches; /* by thread */
  struct pawl_mlr_score *sums;    /* by block */
};

static bool init_scratch(struct eval_scratch *scratch, const struct mlr_matrix *matrix, bool is_dense) {
  scratch->scores = apps_alloc_zero((size_t)MLR_BLOCK * matrix->classes, sizeof *scratch->scores);
  if (is_dense) scratch->block = apps_alloc_zero(MLR_BLOCK * matrix->features + 1, sizeof *scratch->block);
  return scratch->scores && (scratch->block || !is_dense);
}

static void fini_scratch(struct eval_scratch *scratch) {
  apps_free(scratch->scores);
  apps_free(scratch->block);
}

static void score_block(struct eval_scratch *scratch, const struct mlr_matrix *matrix, const struct mlr_view *view,
                        size_t first, size_t count) {
  for (size_t i = 0; i < count; i++) scratch->rows[i] = mlr_row_of(view->rows, view->at, first + i);
  mlr_matrix_scores(matrix, scratch->rows, count, scratch->block, scratch->scores);
}

/* Confusion is counted in mlr_evaluate, by one thread. */
static void judge(const struct mlr_evaluation *is, size_t row, const double *scores, struct pawl_mlr_score *sum) {
  size_t classes = is->matrix->classes;
  uint32_t label = is->view->rows->classes[row], own = mlr_view_class(is->view, row);
  double log_sum = mlr_log_sum(classes, scores);
  bool is_alone;
  uint32_t best = mlr_best(classes, scores, &is_alone);
  if (is->outputs->classes) is->outputs->classes[row] = best;
  if (is->outputs->probabilities)
    mlr_probabilities(classes, scores, log_sum, is->outputs->probabilities + row * classes);
  sum->rows++;
  sum->unlabelled += label == PAWL_MLR_NO_CLASS;
  sum->unknown_labels += label != PAWL_MLR_NO_CLASS && own == PAWL_MLR_NO_CLASS;
  if (own == PAWL_MLR_NO_CLASS) return;
  sum->judged++;
  sum->wrong += best != own || !is_alone;
  sum->loss += log_sum - scores[own];
}

static size_t block_size(const struct mlr_view *view, size_t block) {
  size_t left = (size_t)view->rows->info.rows - block * MLR_BLOCK;
  return left < MLR_BLOCK ? left : MLR_BLOCK;
}

static void work(void *context, uint32_t hand, size_t block) {
  const struct mlr_evaluation *is = context;
  struct eval_scratch *scratch = &is->scratches[hand];
  size_t first = block * MLR_BLOCK, count = block_size(is->view, block);
  score_block(scratch, is->matrix, is->view, first, count);
  for (size_t i = 0; i < count; i++) judge(is, first + i, scratch->scores + i * is->matrix->classes, &is->sums[block]);
}

static void add_up(const struct pawl_mlr_score *sums, size_t blocks, struct pawl_mlr_score *total) {
  for (size_t i = 0; i < blocks; i++) {
    total->rows += sums[i].rows;
    total->judged += sums[i].judged;
    total->wrong += sums[i].wrong;
    total->unlabelled += sums[i].unlabelled;
    total->unknown_labels += sums[i].unknown_labels;
    total->loss += sums[i].loss;
  }
}

static pawl_status evaluate(struct mlr_evaluation *is, struct apps_crew *crew, uint32_t threads,
                            struct pawl_mlr_score *score_out) {
  size_t blocks = ((size_t)is->view->rows->info.rows + MLR_BLOCK - 1) / MLR_BLOCK;
  is->scratches = apps_alloc_zero(threads, sizeof *is->scratches);
  is->sums = apps_alloc_zero(blocks + 1, sizeof *is->sums);
  bool is_fine = is->scratches && is->sums;
  for (uint32_t i = 0; is_fine && i < threads; i++)
    is_fine = init_scratch(&is->scratches[i], is->matrix, is->view->rows->dense != NULL);
  if (is_fine) {
    *score_out = (struct pawl_mlr_score){.unknown_values = is->view->unknown_values};
    apps_crew_run(crew, blocks, work, is);
    add_up(is->sums, blocks, score_out);
    score_out->loss = score_out->judged ? score_out->loss / (double)score_out->judged : (double)NAN;
  }
  for (uint32_t i = 0; is->scratches && i < threads; i++) fini_scratch(&is->scratches[i]);
  apps_free(is->scratches);
  apps_free(is->sums);
  return is_fine ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status mlr_evaluate(const struct mlr_matrix *matrix, const struct mlr_view *view, struct apps_crew *crew,
                         uint32_t threads, const struct mlr_outputs *outputs, struct pawl_mlr_score *score_out) {
  struct mlr_outputs all = outputs ? *outputs : (struct mlr_outputs){NULL, NULL, NULL};
  size_t rows = (size_t)view->rows->info.rows;
  uint32_t *own_classes = all.confusion && !all.classes ? apps_alloc_zero(rows + 1, sizeof *own_classes) : NULL;
  if (all.confusion && !all.classes && !own_classes) return PAWL_NO_MEMORY;
  if (own_classes) all.classes = own_classes;
  struct mlr_evaluation is = {.matrix = matrix, .view = view, .outputs = &all};
  pawl_status status = evaluate(&is, crew, threads, score_out);
  for (size_t i = 0; !status && all.confusion && i < rows; i++) {
    uint32_t own = mlr_view_class(view, i);
    if (own != PAWL_MLR_NO_CLASS) all.confusion[(size_t)own * matrix->classes + all.classes[i]]++;
  }
  apps_free(own_classes);
  return status;
}

/* --- the slope -------------------------------------------------------------------------------------------- */

/* From scores to u = p - y, in place. */
static void make_u(double *scores, size_t classes, uint32_t own) {
  mlr_probabilities(classes, scores, mlr_log_sum(classes, scores), scores);
  scores[own] -= 1;
}

pawl_status mlr_slope(const struct mlr_matrix *matrix, const struct pawl_mlr_rows *rows, struct mlr_target to) {
  struct eval_scratch *scratch = apps_alloc_zero(1, sizeof *scratch);
  const struct mlr_view view = {.rows = rows};
  size_t all = (size_t)rows->info.rows;
  pawl_status status = scratch && init_scratch(scratch, matrix, rows->dense != NULL) ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t first = 0; !status && first < all; first += MLR_BLOCK) {
    size_t count = block_size(&view, first / MLR_BLOCK);
    score_block(scratch, matrix, &view, first, count);
    for (size_t i = 0; i < count; i++)
      make_u(scratch->scores + i * matrix->classes, matrix->classes, rows->classes[first + i]);
    const struct mlr_pairs pairs = {count, matrix->classes, scratch->scores, scratch->rows};
    status = to.apply(to.context, &pairs, 1, 1);
  }
  if (scratch) fini_scratch(scratch);
  apps_free(scratch);
  return status;
}
