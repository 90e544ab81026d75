/* Before the first step: the rows that are held out, points, PCA, pairs, and the rate. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"
#include "apps/common/random.h"
#include "apps/dml/run.h"

#define RANK_DEFAULT 200
#define SAMPLE 2000 /* pairs from which the rate is computed */
enum { FOR_SPLIT = 42 };

/* --- rows ------------------------------------------------------------------------------------------------- */

static pawl_status check_rows(struct dml_run *run, const struct pawl_mlr_rows_info *info) {
  if (info->rows == info->unlabelled)
    return apps_say(run->error, PAWL_INVALID, "no row has a label; a metric is learned from the classes of rows");
  if (info->classes < 2)
    return apps_say(run->error, PAWL_INVALID, "all rows have the same label, '%.64s'; a metric separates classes",
                    pawl_mlr_rows_label(run->rows, 0));
  if (info->features == 0) return apps_say(run->error, PAWL_INVALID, "no row has a feature; there is nothing to learn");
  if (run->is.rank > info->features)
    return apps_say(run->error, PAWL_INVALID, "the rank %" PRIu32 " is above the number of features, %" PRIu64,
                    run->is.rank, info->features);
  if (run->is.rank == 0) run->is.rank = info->features < RANK_DEFAULT ? (uint32_t)info->features : RANK_DEFAULT;
  if (info->rows - info->unlabelled < 4)
    return apps_say(run->error, PAWL_INVALID,
                    "only %" PRIu64 " rows have a label; a metric needs two rows of one class, "
                    "one of another, and one to hold out",
                    info->rows - info->unlabelled);
  return PAWL_OK;
}

/* Draws the rows to hold out. */
static pawl_status split(struct dml_run *run, const struct pawl_mlr_rows_info *info) {
  const uint32_t *classes = pawl_mlr_rows_classes(run->rows);
  struct apps_random random = apps_random_of(run->is.seed, FOR_SPLIT, 0, 0);
  size_t rows = (size_t)info->rows, count = 0;
  run->order = apps_alloc_zero(rows + 1, sizeof *run->order);
  if (!run->order) return PAWL_NO_MEMORY;
  apps_shuffle(&random, run->order, rows);
  for (size_t i = 0; i < rows; i++)
    if (classes[run->order[i]] != PAWL_MLR_NO_CLASS) run->order[count++] = run->order[i];
  if (run->limit > 0 && count > run->limit) count = run->limit;
  run->held = (size_t)((double)count * run->is.held_share + 0.5);
  if (run->held < 1) run->held = 1;
  if (run->held > count - 3) run->held = count - 3;
  run->paired = count - run->held;
  return PAWL_OK;
}

static pawl_status make_model(struct dml_run *run, const struct pawl_mlr_rows_info *info) {
  size_t features = (size_t)info->features;
  struct pawl_metric_model *model = run->model = apps_alloc_zero(1, sizeof *model);
  if (!model) return PAWL_NO_MEMORY;
  model->about = (struct pawl_metric_about){.rank = run->is.rank,
                                            .features = info->features,
                                            .rows = run->paired + run->held,
                                            .classes = info->classes,
                                            .k = run->is.k,
                                            .held = run->held,
                                            .seed = run->is.seed,
                                            .is_images = info->is_images,
                                            .binary = info->binary,
                                            .unit_rows = info->unit_rows,
                                            .hash_bits = info->hash_bits,
                                            .columns = info->columns,
                                            .label_column = info->label_column};
  model->ids = apps_alloc_zero(features, sizeof *model->ids);
  if (!model->ids) return PAWL_NO_MEMORY;
  memcpy(model->ids, pawl_mlr_rows_ids(run->rows), features * sizeof *model->ids);
  pawl_status status = dml_model_take_labels(model, run->rows);
  return status ? status : dml_frame_init(&model->frame, run->rows, run->order, run->paired + run->held);
}

static pawl_status fill_points(struct dml_run *run) {
  const uint32_t *classes = pawl_mlr_rows_classes(run->rows);
  struct dml_reader reader;
  pawl_status status =
      dml_reader_init(&reader, run->rows, &run->model->frame, run->model->ids, run->model->about.is_images, run->error);
  for (size_t i = 0; !status && i < run->points.count; i++) {
    dml_reader_get(&reader, run->order[i], run->points.at + i * run->points.width);
    run->points.classes[i] = classes[run->order[i]];
  }
  dml_reader_fini(&reader);
  return status;
}

static pawl_status read_points(struct dml_run *run, const struct pawl_mlr_rows_info *info) {
  size_t features = (size_t)info->features;
  pawl_status status = split(run, info);
  if (!status) status = make_model(run, info);
  if (!status && !(run->model->frame.scale > 0))
    return apps_say(run->error, PAWL_INVALID, "all rows are equal; there is nothing to learn");
  if (!status) status = dml_points_init(&run->points, run->paired + run->held, features);
  if (!status) status = dml_weights_init(&run->weights, run->is.rank, features, run->crew);
  run->target = dml_weights_target(&run->weights);
  return status ? status : fill_points(run);
}

pawl_status dml_run_read(struct dml_run *run) {
  struct pawl_mlr_rows_info info;
  pawl_mlr_rows_info(run->rows, &info);
  pawl_status status = check_rows(run, &info);
  if (!status) status = read_points(run, &info);
  if (status == PAWL_NO_MEMORY)
    return apps_say(run->error, status,
                    "no memory for %" PRIu64 " rows of %" PRIu64
                    " features, which become dense, and a rank of %" PRIu32,
                    info.rows, info.features, run->is.rank);
  return status;
}

/* What the worker of a job needs not. */
static pawl_status allocate(struct dml_run *run) {
  size_t size = dml_weights_size(&run->weights);
  pawl_status status = dml_points_init(&run->mapped, run->points.count, run->weights.rank);
  if (status) return status;
  memcpy(run->mapped.classes, run->points.classes, run->points.count * sizeof *run->mapped.classes);
  run->before = apps_alloc_zero(size, sizeof *run->before);
  run->best = apps_alloc_zero(size, sizeof *run->best);
  run->pca = apps_alloc_zero(size, sizeof *run->pca);
  return run->before && run->best && run->pca ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- pairs ------------------------------------------------------------------------------------------------ */

/* Adds the pairs of all points with the neighbours `from` … `from` + k - 1 of their lists. */
static void add_pairs(struct dml_run *run, const uint32_t *numbers, uint32_t from) {
  uint32_t k = run->is.neighbours;
  for (size_t i = 0; i < run->paired; i++)
    for (uint32_t j = from; j < from + k; j++)
      if (numbers[i * 2 * k + j] != DML_NOBODY)
        run->pairs.at[run->pairs.count++] = (struct dml_pair){(uint32_t)i, numbers[i * 2 * k + j]};
}

pawl_status dml_run_reserve_pairs(struct dml_run *run, size_t count) {
  if (count >= UINT32_MAX)
    return apps_say(run->error, PAWL_INVALID, "%zu pairs are too many; use fewer --neighbours", count);
  run->pairs.at = apps_alloc_zero(count + 1, sizeof *run->pairs.at);
  run->pair_order = apps_alloc_zero(count + 1, sizeof *run->pair_order);
  if (run->pairs.at && run->pair_order) return PAWL_OK;
  return apps_say(run->error, PAWL_NO_MEMORY, "no memory for %zu pairs", count);
}

bool dml_run_has_points(const struct dml_run *run) {
  for (size_t i = 0; i < run->pairs.count; i++)
    if (run->pairs.at[i].one >= run->paired || run->pairs.at[i].other >= run->paired) return false;
  return true;
}

static pawl_status find_pairs(struct dml_run *run) {
  const struct dml_points paired = dml_points_part(&run->mapped, 0, run->paired);
  size_t lists = 2 * (size_t)run->is.neighbours, most = run->paired * lists;
  pawl_status status = dml_run_reserve_pairs(run, most);
  if (status) return status;
  uint32_t *numbers = apps_alloc_zero(run->paired, lists * sizeof *numbers);
  status = numbers ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = dml_nearest_by_class(&paired, run->is.neighbours, run->crew, run->is.threads, numbers);
  if (!status) add_pairs(run, numbers, 0);
  run->pairs.similar = run->pairs.count;
  if (!status) add_pairs(run, numbers, run->is.neighbours);
  apps_free(numbers);
  if (status) return apps_say(run->error, status, "no memory for %zu pairs", most);
  if (run->pairs.similar > 0 && run->pairs.similar < run->pairs.count) return PAWL_OK;
  return apps_say(run->error, PAWL_INVALID,
                  run->pairs.similar
                      ? "all %zu rows that are not held out have the same class; give more rows"
                      : "no two of the %zu rows that are not held out have the same class; give more rows",
                  run->paired);
}

/* W as PCA, scaled so that dissimilar pairs have the mean |W v|^2 = 1, or all pairs if dissimilar ones are equal rows. */
static pawl_status scale_weights(struct dml_run *run) {
  double mean = dml_mean_square(&run->pairs, run->pairs.similar, run->pairs.count, &run->mapped);
  if (!(mean > 1e-10)) mean = dml_mean_square(&run->pairs, 0, run->pairs.count, &run->mapped);
  if (!(mean > 1e-10))
    return apps_say(run->error, PAWL_INVALID,
                    "neighbours are equal rows, whatever their class; there is nothing to learn");
  float factor = (float)(1 / sqrt(mean));
  for (size_t i = 0; i < dml_weights_size(&run->weights); i++) run->weights.at[i] *= factor;
  dml_run_map(run);
  return PAWL_OK;
}

/* --- the rate --------------------------------------------------------------------------------------------- */

/* L is the largest eigenvalue of the mean of v v', of some pairs. A slope is at most 2 max(1, weight) L |W| long. */
static pawl_status choose_rate(struct dml_run *run) {
  size_t step = run->pairs.count / SAMPLE + 1, count = (run->pairs.count + step - 1) / step, width = run->points.width;
  struct dml_points sample;
  struct dml_weights first;
  float *scratch = apps_alloc_zero(count, sizeof *scratch);
  double square = 0;
  pawl_status status = dml_points_init(&sample, count, width), other = dml_weights_init(&first, 1, width, run->crew);
  if (!status) status = scratch ? other : PAWL_NO_MEMORY;
  if (!status) {
    for (size_t i = 0; i < count; i++) {
      struct dml_pair pair = run->pairs.at[i * step];
      for (size_t d = 0; d < width; d++)
        sample.at[i * width + d] = run->points.at[pair.one * width + d] - run->points.at[pair.other * width + d];
    }
    dml_weights_pca(&first, &sample, run->is.seed, scratch);
    dml_weights_map(&first, sample.at, count, scratch);
    for (size_t i = 0; i < count; i++) square += (double)scratch[i] * (double)scratch[i];
    run->scale = (double)count / (2 * (1 + run->is.weight) * fmax(square, 1e-30));
    run->rate = run->is.rate;
  }
  dml_points_fini(&sample);
  dml_weights_fini(&first);
  apps_free(scratch);
  return status;
}

/* --- all of it -------------------------------------------------------------------------------------------- */

/* Says which stage begins, unless the caller wants the training to end. */
static pawl_status begin_stage(struct dml_run *run, const char *what) {
  if (dml_run_is_stopping(run)) return apps_say(run->error, PAWL_CANCELLED, "interrupted before the first epoch");
  if (run->is.stage) run->is.stage(run->is.context, what);
  return PAWL_OK;
}

static pawl_status find_pca(struct dml_run *run) {
  const struct dml_points paired = dml_points_part(&run->points, 0, run->paired);
  bool measures = run->limit == 0;
  pawl_status status = begin_stage(run, "classifying held-out rows by Euclidean distance");
  if (!status && measures) status = dml_run_measure(run, &run->points, &run->result.euclid_error);
  if (!status) status = begin_stage(run, "PCA");
  if (status) return status;
  dml_weights_pca(&run->weights, &paired, run->is.seed, run->mapped.at);
  dml_run_map(run);
  return measures ? dml_run_measure(run, &run->mapped, &run->result.pca_error) : PAWL_OK;
}

static pawl_status begin_with_pca(struct dml_run *run) {
  struct pawl_metric_result *result = &run->result;
  pawl_status status = find_pca(run);
  if (!status) status = begin_stage(run, "pairing rows with their neighbours");
  if (!status) status = find_pairs(run);
  if (!status) status = scale_weights(run);
  if (status) return status;
  run->loss = (struct dml_loss){1 - run->is.margin, run->is.weight};
  run->objective = dml_objective(&run->loss, &run->pairs, &run->mapped);
  result->objective = result->first_objective = run->objective;
  result->error = result->pca_error;
  memcpy(run->best, run->weights.at, dml_weights_size(&run->weights) * sizeof *run->best);
  memcpy(run->pca, run->best, dml_weights_size(&run->weights) * sizeof *run->pca);
  return PAWL_OK;
}

pawl_status dml_run_prepare(struct dml_run *run) {
  pawl_status status = dml_run_read(run);
  if (!status) status = allocate(run);
  if (!status) status = run->is.resume ? dml_checkpoint_read(run) : begin_with_pca(run);
  if (!status && !run->is.resume) status = choose_rate(run);
  if (!status) status = dml_batch_init(&run->batch, (size_t)run->is.batch, &run->weights);
  return status == PAWL_NO_MEMORY && !*run->error
             ? apps_say(run->error, status, "no memory to train a metric of rank %" PRIu32, run->is.rank)
             : status;
}
