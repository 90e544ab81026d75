/* Features divided by their size, the worker's side: see scale.h. */
#include "apps/linear/scale.h"

#include <math.h>
#include <stdlib.h>

#include "apps/common/memory.h"

#define DEVIATION_LEAST 1e-12 /* relative to the mean square: a smaller variance is rounding error */

double linear_scale_of(enum pawl_linear_scale scale, const struct linear_spread *spread, uint64_t rows) {
  double most = spread->most > 0 ? spread->most : 1;
  if (scale != PAWL_LINEAR_SCALE_DEVIATION || rows == 0) return most;
  double mean = spread->sum / (double)rows, square = spread->squares / (double)rows, variance = square - mean * mean;
  double deviation = variance > DEVIATION_LEAST * square ? (double)(float)sqrt(variance) : 0;
  return deviation > 0 ? deviation : most;
}

static struct linear_spread look_at(const struct linear_share *share, size_t feature) {
  struct linear_spread spread = {0};
  for (uint64_t k = share->starts[feature]; k < share->starts[feature + 1]; k++) {
    double x = (double)share->values[k];
    spread.most = fmax(spread.most, fabs(x));
    spread.sum += x;
    spread.squares += x * x;
  }
  return spread;
}

pawl_status linear_scale_measure(struct linear_worker *worker, const struct linear_order *order) {
  const struct linear_share *share = &worker->share;
  if (share->features == 0) return PAWL_OK;
  double *most = apps_alloc(share->features * sizeof *most), *sums = apps_alloc(2 * share->features * sizeof *sums);
  pawl_status status = most && sums ? PAWL_OK : PAWL_NO_MEMORY;
  for (size_t j = 0; j < share->features && !status; j++) {
    struct linear_spread spread = look_at(share, j);
    most[j] = spread.most;
    sums[2 * j] = spread.sum;
    sums[2 * j + 1] = spread.squares;
  }
  if (!status) status = linear_push(worker, order, LINEAR_MOST, most);
  if (!status) status = linear_push(worker, order, LINEAR_SUMS, sums);
  apps_free(most);
  apps_free(sums);
  return status;
}

pawl_status linear_scale_apply(struct linear_worker *worker, const struct linear_order *order) {
  struct linear_share *share = &worker->share;
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector *vector = NULL;
  struct pawl_task *task = NULL;
  if (!linear_share_is_raw(share)) return PAWL_OK;
  double *scales = apps_alloc((share->features + 1) * sizeof *scales);
  if (!scales) return PAWL_NO_MEMORY;
  linear_vector_name(&worker->spec, order, LINEAR_SCALES, name);
  pawl_status status = pawl_vector_open(worker->session, name, LINEAR_TIMEOUT, &vector);
  if (!status) status = pawl_vector_pull(vector, pawl_at_keys(share->keys, share->features), scales, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  if (!status) linear_share_scale(share, scales);
  pawl_vector_close(vector);
  apps_free(scales);
  return status;
}
