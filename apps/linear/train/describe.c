/* The first round: workers describe their pieces, and the scheduler settles labels, blocks, the method and
 * the first learning rate. */
#include <math.h>

#include "apps/linear/train/inside.h"

static pawl_status settle_labels(struct linear_run *run, const struct linear_census *census) {
  if (linear_is_regression(run->spec.loss)) return PAWL_OK;
  if (census->label_count > 2)
    return apps_fail(&run->common, PAWL_INVALID,
                     "the labels are not of two classes: there are %g, %g, %g and perhaps more; to predict numbers, "
                     "use 'pawl train linear'",
                     census->labels[0], census->labels[1], census->labels[2]);
  if (census->label_count < 2)
    return apps_fail(&run->common, PAWL_INVALID, "all %llu rows have the label %g; training needs two labels",
                     (unsigned long long)census->rows, census->label_count ? census->labels[0] : 0);
  bool swapped = census->labels[0] > census->labels[1];
  for (size_t i = 0; i < 2; i++) {
    run->order.labels[i] = census->labels[i ^ swapped];
    run->class_rows[i] = (double)census->label_rows[i ^ swapped];
  }
  return PAWL_OK;
}

/* Chooses so many blocks that a row has about one feature in every two blocks that are in progress at a time.
 * Then steps that do not know of one another rarely affect the same rows (blocks.c). */
static uint32_t choose_blocks(const struct linear_run *run, double per_row) {
  double wanted = 2 * per_row * (run->spec.tau + 1);
  double most = fmin((double)run->order.features, 1 << 16);
  if (run->options->blocks) wanted = run->options->blocks;
  return (uint32_t)fmax(1, fmin(ceil(wanted), most));
}

/* Chooses Newton steps if the Hessian is small enough: the matrix fits into memory, and rows do not have too
 * many pairs of entries. The scheduler chooses when the data is known. Workers need not know the choice, as
 * orders tell them what to compute. */
static pawl_status choose_method(struct linear_run *run, const struct linear_census *census) {
  double pairs = (double)census->entries * (double)census->entries / (double)census->rows / 2;
  if (run->options->method == PAWL_LINEAR_METHOD_NEWTON && census->max_id > LINEAR_NEWTON_MOST)
    return apps_fail(&run->common, PAWL_TOO_LARGE,
                     "--method newton keeps a square matrix of all features, and %llu are too many (at most %d); use "
                     "--method blocks",
                     (unsigned long long)census->max_id, LINEAR_NEWTON_MOST);
  bool is_small = census->max_id <= LINEAR_NEWTON_SPARSE || census->entries / census->rows >= census->max_id / 16;
  bool fits = is_small && census->max_id <= LINEAR_NEWTON_AUTO && pairs <= LINEAR_NEWTON_PAIRS && !run->options->blocks;
  if (fits || run->options->method == PAWL_LINEAR_METHOD_NEWTON) run->spec.method = &linear_newton;
  return PAWL_OK;
}

static pawl_status settle(struct linear_run *run, const struct linear_census *census) {
  if (census->rows == 0) return apps_fail(&run->common, PAWL_TRUNCATED, "the data has no rows");
  pawl_status status = settle_labels(run, census);
  if (status) return status;
  bool streams = run->spec.method->streams;
  double per_row = (double)census->entries / (double)census->rows;
  run->order.features = streams && !run->spec.reduces ? PAWL_ID_MAX : census->max_id + 1;
  run->order.rows = run->progress.rows = run->result.rows = census->rows;
  run->zero_based = census->has_zero || run->options->zero_based;
  run->progress.features = run->result.features = census->max_id + run->zero_based;
  run->progress.entries = run->result.entries = census->entries;
  run->order.blocks = choose_blocks(run, per_row);
  run->progress.skipped = run->result.skipped = census->skipped;
  if (run->options->method != PAWL_LINEAR_METHOD_BLOCKS && run->spec.method == &linear_blocks) {
    status = choose_method(run, census);
    if (status) return status;
  }
  linear_control_init(&run->control, run->options, run->spec.method, census->rows,
                      2 * per_row * (run->spec.tau + 1) / run->order.blocks);
  linear_control_settle_rate(&run->control, &run->spec, run->order.rows, census->squares);
  if (!linear_is_regression(run->spec.loss) && !streams)
    run->control.balance = fmin(run->class_rows[0], run->class_rows[1]) / (double)census->rows;
  return PAWL_OK;
}

pawl_status linear_describe(struct linear_run *run) {
  struct linear_reply sum;
  bool is_whole = false;
  run->order.what = LINEAR_DESCRIBE;
  run->order.damping = 1;
  while (!is_whole) {
    pawl_status status = linear_round(run, &sum, &is_whole);
    if (status) return status;
  }
  run->order.round = 1;
  run->result.load_s = apps_seconds_since(run->common.begun_ns);
  linear_state_digest(run, &sum.census.digest);
  return settle(run, &sum.census);
}
