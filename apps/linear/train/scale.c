/* Scaling of features, the scheduler's side: see scale.h. */
#include <math.h>
#include <stdlib.h>

#include "apps/common/errors.h"
#include "apps/linear/scale.h"
#include "apps/linear/train/inside.h"

enum { ROWS_AT_ONCE = 1 << 16 };

/* Pulls rows of `width` values. */
static pawl_status pull(struct pawl_vector *vector, const uint64_t *keys, size_t count, double *values) {
  struct pawl_task *task = NULL;
  pawl_status status = count ? pawl_vector_pull(vector, pawl_at_keys(keys, count), values, &task) : PAWL_OK;
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

/* Computes divisors from the largest values and sums of some features, in place of `most`, and adds up the
 * squares of the scaled values. */
static void divide(const struct linear_run *run, size_t count, double *most, const double *sums, double *squares) {
  for (size_t i = 0; i < count; i++) {
    struct linear_spread spread = {most[i], sums[2 * i], sums[2 * i + 1]};
    most[i] = linear_scale_of(run->spec.scale, &spread, run->order.rows);
    *squares += spread.squares / most[i] / most[i];
  }
}

static pawl_status make_scales(struct linear_run *run, struct pawl_vector *largest, struct pawl_vector *added,
                               double *squares) {
  uint64_t *keys = apps_alloc(ROWS_AT_ONCE * sizeof *keys), next = 0;
  double *most = apps_alloc(ROWS_AT_ONCE * sizeof *most), *sums = apps_alloc(2 * ROWS_AT_ONCE * sizeof *sums);
  size_t count = 0;
  pawl_status status = keys && most && sums ? PAWL_OK : PAWL_NO_MEMORY;
  while (!status && next < run->order.features) {
    struct pawl_range rest = {next, run->order.features};
    struct pawl_task *task = NULL;
    status = pawl_vector_scan(largest, rest, ROWS_AT_ONCE, keys, most, PAWL_FOREVER, &count, &next);
    if (!status) status = pull(added, keys, count, sums);
    if (status || count == 0) continue;
    divide(run, count, most, sums, squares);
    status = pawl_vector_push(run->scales, pawl_at_keys(keys, count), most, &task);
    if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  }
  apps_free(keys);
  apps_free(most);
  apps_free(sums);
  return status;
}

/* One round, with vectors of its own. The results of a round in which a worker was missing are discarded. */
static pawl_status measure_once(struct linear_run *run, bool *whole_out, double *squares) {
  struct pawl_vector *largest = NULL, *added = NULL;
  struct linear_reply sum;
  run->order.what = LINEAR_MEASURE;
  run->order.serial++;
  pawl_status status = linear_make_vector(run, LINEAR_MOST, &largest);
  if (!status) status = linear_make_vector(run, LINEAR_SUMS, &added);
  if (!status) status = linear_round(run, &sum, whole_out);
  if (!status && *whole_out) status = make_scales(run, largest, added, squares);
  pawl_vector_close(largest);
  pawl_vector_close(added);
  linear_delete_vector(run, &run->order, LINEAR_MOST);
  linear_delete_vector(run, &run->order, LINEAR_SUMS);
  return status;
}

pawl_status linear_scale_open(struct linear_run *run) {
  if (run->spec.scale == PAWL_LINEAR_SCALE_NONE || run->scales) return PAWL_OK;
  return linear_make_vector(run, LINEAR_SCALES, &run->scales);
}

pawl_status linear_scale_settle(struct linear_run *run) {
  bool is_whole = false;
  double squares = 0;
  if (run->spec.scale == PAWL_LINEAR_SCALE_NONE) return PAWL_OK;
  pawl_status status = linear_scale_open(run);
  while (!is_whole && !status) status = measure_once(run, &is_whole, &squares);
  if (status) return apps_fail(&run->common, status, "cannot scale the features: %s", apps_error_text(status));
  linear_control_settle_rate(&run->control, &run->spec, run->order.rows, squares);
  return PAWL_OK;
}

pawl_status linear_scale_pull(struct linear_run *run, const uint64_t *keys, size_t count, double *scales) {
  pawl_status status = run->scales ? pull(run->scales, keys, count, scales) : PAWL_OK;
  for (size_t i = 0; i < count && !status; i++)
    if (!run->scales || scales[i] == 0) scales[i] = 1;
  return status;
}
