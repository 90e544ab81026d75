/* A worker of a training: reads all rows, and computes the pairs of its part of each batch. See apps/common/shared_matrix. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/mlr/learner.h"
#include "apps/common/shared_matrix/rows.h"
#include "apps/mlr/options.h"

/* --- pairs ------------------------------------------------------------------------------------------------ */

static int by_feature(const void *a, const void *b) {
  const struct mlr_entry *one = a, *other = b;
  return one->at < other->at ? -1 : one->at > other->at;
}

/* The entries of a sparse row by rising features, equal ones added up. Returns their number. */
static size_t arrange(struct mlr_hand *hand, const struct mlr_row *row) {
  size_t count = 0;
  bool rises = true;
  for (size_t n = 0; n < row->count; n++) {
    hand->entries[n] = (struct mlr_entry){row->at[n], (double)row->values[n]};
    rises &= n == 0 || row->at[n] > row->at[n - 1];
  }
  if (!rises) qsort(hand->entries, row->count, sizeof *hand->entries, by_feature);
  for (size_t n = 0; n < row->count; n++) {
    if (count > 0 && hand->indices[count - 1] == hand->entries[n].at) {
      hand->values[count - 1] += hand->entries[n].value;
      continue;
    }
    hand->indices[count] = hand->entries[n].at;
    hand->values[count++] = hand->entries[n].value;
  }
  return count;
}

/* A row as a vector over the features and the constant. */
static struct pawl_factor_vector vector_of(struct mlr_hand *hand, const struct mlr_row *row) {
  bool has_bias = !hand->run.is.no_bias;
  size_t count = row->count;
  if (hand->is_sparse)
    count = arrange(hand, row);
  else
    for (size_t n = 0; n < count; n++) hand->values[n] = (double)row->values[n];
  hand->indices[count] = (uint32_t)hand->run.model->matrix.features;
  hand->values[count] = 1;
  return (struct pawl_factor_vector){hand->values, hand->is_sparse ? hand->indices : NULL, count + has_bias};
}

pawl_status mlr_hand_add(struct mlr_hand *hand, const double *u, const struct mlr_row *row) {
  const struct pawl_factor_vector features = vector_of(hand, row);
  const struct pawl_factor_vector classes = {u, NULL, hand->run.model->about.classes};
  return matrix_share_add(hand->share, &features, &classes);
}

/* A target (pairs.h) that hands the pairs to the share. */
static pawl_status apply(void *context, const struct mlr_pairs *pairs, double keep, double step) {
  struct mlr_hand *hand = context;
  struct mlr_matrix *matrix = &hand->run.model->matrix;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; !status && i < pairs->count; i++)
    status = mlr_hand_add(hand, pairs->u + i * pairs->classes, &pairs->v[i]);
  if (status) return status;
  matrix->factor *= keep;
  return matrix_share_commit(hand->share, step / matrix->factor);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b) {
  uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
  return one < other ? -1 : one > other;
}

/* The features of the rows and the constant, each once. */
static pawl_status list_features(struct mlr_hand *hand, const uint32_t *rows, size_t base, size_t row_count,
                                 size_t *count_out) {
  const struct mlr_run *run = &hand->run;
  size_t room = 1, count = 0, kept = 0;
  for (size_t i = 0; i < row_count; i++) room += mlr_row_of(run->rows, NULL, base + rows[i]).count;
  uint64_t *list = apps_resize(hand->needed, room * sizeof *list);
  if (!list) return PAWL_NO_MEMORY;
  hand->needed = list;
  for (size_t i = 0; i < row_count; i++) {
    struct mlr_row row = mlr_row_of(run->rows, NULL, base + rows[i]);
    for (size_t n = 0; n < row.count; n++) list[count++] = row.at[n];
  }
  if (!run->is.no_bias && row_count > 0) list[count++] = run->model->matrix.features;
  if (count > 0) qsort(list, count, sizeof *list, by_number);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || list[i] != list[i - 1]) list[kept++] = list[i];
  *count_out = kept;
  return PAWL_OK;
}

pawl_status mlr_hand_need(struct mlr_hand *hand, const uint32_t *list, size_t base, size_t count) {
  size_t features = 0;
  pawl_status status = hand->names_rows ? list_features(hand, list, base, count, &features) : PAWL_OK;
  return status ? status : matrix_share_need(hand->share, hand->names_rows ? hand->needed : NULL, features);
}

static pawl_status step_sgd(struct mlr_hand *hand, uint64_t number) {
  struct mlr_run *run = &hand->run;
  uint64_t steps = mlr_sgd_steps(run), epoch = number / steps, place = number % steps;
  size_t first = (size_t)(place * run->is.batch), begin, end;
  if (!hand->has_order || hand->epoch != epoch) mlr_run_shuffle(run, epoch);
  hand->has_order = true;
  hand->epoch = epoch;
  matrix_share_part(hand->share, mlr_sgd_size(run, place), &begin, &end);
  pawl_status status = mlr_hand_need(hand, run->order + first + begin, 0, end - begin);
  return status ? status : mlr_sgd_step(run, &hand->batch, epoch, place, begin, end);
}

static pawl_status step(void *state, struct matrix_share *share, uint64_t number) {
  struct mlr_hand *hand = state;
  hand->share = share;
  return hand->run.is.method == PAWL_MLR_SGD ? step_sgd(hand, number) : mlr_hand_step_sdca(hand, number);
}

static double report(void *state) {
  struct mlr_hand *hand = state;
  return hand->run.is.method == PAWL_MLR_SGD ? 0 : mlr_hand_entropy(hand);
}

/* --- beginning -------------------------------------------------------------------------------------------- */

static bool read_terms(const struct matrix_spec *spec, struct pawl_mlr_options *is, uint64_t *pass_steps) {
  json_t *epochs, *batch, *seed, *steps;
  int method, no_bias, schedule;
  pawl_mlr_options_init(is);
  if (json_unpack(spec->terms, "{s:i, s:F, s:b, s:o, s:o, s:F, s:i, s:o, s:F, s:o}", "method", &method, "l2", &is->l2,
                  "no_bias", &no_bias, "epochs", &epochs, "batch", &batch, "rate", &is->rate, "schedule", &schedule,
                  "seed", &seed, "tolerance", &is->tolerance, "steps", &steps))
    return false;
  is->method = (enum pawl_mlr_method)method;
  is->no_bias = no_bias;
  is->schedule = (enum pawl_mlr_schedule)schedule;
  is->threads = spec->threads;
  return apps_json_wide_of(epochs, &is->epochs) && apps_json_wide_of(batch, &is->batch) &&
         apps_json_wide_of(seed, &is->seed) && apps_json_wide_of(steps, pass_steps) && *pass_steps > 0;
}

/* Rows, and weights of 0. */
static pawl_status prepare(struct mlr_hand *hand, const struct matrix_spec *spec) {
  struct mlr_run *run = &hand->run;
  struct pawl_mlr_options given;
  if (!read_terms(spec, &given, &hand->pass_steps))
    return apps_say(run->error, PAWL_CORRUPT, "the options of the job are incomplete");
  if (!mlr_options_resolve(&given, &run->is, run->error)) return PAWL_INVALID;
  pawl_status status = matrix_rows_read(spec, &hand->rows, run->error);
  run->rows = hand->rows;
  if (!status) status = mlr_run_make_model(run);
  if (status) return status;
  const struct mlr_matrix *matrix = &run->model->matrix;
  if (matrix->features + matrix->has_bias != spec->shape.rows || matrix->classes != spec->shape.columns ||
      !spec->shape.is_double || run->rows->info.rows == 0)
    return apps_say(run->error, PAWL_MISMATCH, "the weights have another shape than the scheduler's");
  run->target = (struct mlr_target){apply, hand};
  return PAWL_OK;
}

/* The longest row, and the constant. */
static size_t longest_row(const struct mlr_run *run) {
  size_t longest = 0;
  for (size_t i = 0; i < run->rows->info.rows; i++) {
    size_t count = mlr_row_of(run->rows, NULL, i).count;
    if (count > longest) longest = count;
  }
  return longest + 1;
}

static pawl_status allocate(struct mlr_hand *hand, const struct matrix_spec *spec) {
  struct mlr_run *run = &hand->run;
  size_t longest = longest_row(run);
  hand->is_sparse = !run->rows->dense;
  hand->names_rows = spec->is_sparse && spec->way != PAWL_MATRIX_FACTORS;
  run->order = apps_alloc_zero((size_t)run->rows->info.rows, sizeof *run->order);
  hand->entries = apps_alloc_zero(longest, sizeof *hand->entries);
  hand->indices = apps_alloc_zero(longest, sizeof *hand->indices);
  hand->values = apps_alloc_zero(longest, sizeof *hand->values);
  if (!run->order || !hand->entries || !hand->indices || !hand->values)
    return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  return run->is.method == PAWL_MLR_SGD ? mlr_batch_init(&hand->batch, run) : mlr_hand_begin_sdca(hand);
}

static void end(void *state) {
  struct mlr_hand *hand = state;
  if (!hand) return;
  mlr_batch_fini(&hand->batch);
  mlr_hand_end_sdca(hand);
  pawl_mlr_model_destroy(hand->run.model);
  pawl_mlr_rows_destroy(hand->rows);
  apps_free(hand->run.order);
  apps_free(hand->needed);
  apps_free(hand->entries);
  apps_free(hand->indices);
  apps_free(hand->values);
  apps_free(hand);
}

static pawl_status begin(const struct matrix_spec *spec, void **state_out, struct matrix_place *place_out,
                         char *error) {
  struct mlr_hand *hand = apps_alloc_zero(1, sizeof *hand);
  if (!hand) return PAWL_NO_MEMORY;
  *state_out = hand;
  hand->run.error = error;
  pawl_status status = prepare(hand, spec);
  if (!status) status = allocate(hand, spec);
  if (status) return status;
  *place_out = (struct matrix_place){.values = hand->run.model->matrix.at, .factor = &hand->run.model->matrix.factor};
  return PAWL_OK;
}

const struct matrix_learner mlr_learner = {.app = "mlr", .begin = begin, .step = step, .report = report, .end = end};

pawl_status pawl_mlr_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                          char error[PAWL_MLR_TEXT]) {
  return matrix_work(&mlr_learner, session, job, timeout_ns, error);
}
