#include "apps/mlr/duals.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/mlr/softmax.h"

bool mlr_duals_init(struct mlr_duals *duals, uint32_t classes, size_t rows, const uint32_t *own, double least) {
  *duals = (struct mlr_duals){.classes = classes, .rows = rows, .least = least};
  if (classes <= MLR_DENSE_MAX) {
    duals->dense = apps_alloc_zero(rows + 1, classes * sizeof *duals->dense);
    for (size_t i = 0; duals->dense && i < rows; i++) duals->dense[i * classes + own[i]] = 1;
    return duals->dense != NULL;
  }
  duals->list = apps_alloc_zero(rows + 1, sizeof *duals->list);
  for (size_t i = 0; duals->list && i < rows; i++) {
    struct mlr_dual_entry *entry = apps_alloc_zero(1, sizeof *entry);
    if (!entry) return false;
    *entry = (struct mlr_dual_entry){1, own[i]};
    duals->list[i] = (struct mlr_dual_row){1, 1, entry};
  }
  return duals->list != NULL;
}

void mlr_duals_fini(struct mlr_duals *duals) {
  for (size_t i = 0; duals->list && i < duals->rows; i++) apps_free(duals->list[i].entries);
  apps_free(duals->list);
  apps_free(duals->dense);
}

void mlr_duals_get(const struct mlr_duals *duals, size_t row, double *q_out) {
  size_t classes = duals->classes;
  if (duals->dense) {
    memcpy(q_out, duals->dense + row * classes, classes * sizeof *q_out);
    return;
  }
  memset(q_out, 0, classes * sizeof *q_out);
  for (uint32_t i = 0; i < duals->list[row].count; i++)
    q_out[duals->list[row].entries[i].class_number] = duals->list[row].entries[i].q;
}

/* Returns how many classes are left. A q without small shares stays as it is, bit for bit, as a checkpoint needs it. */
static uint32_t drop_small(size_t classes, double least, double *q) {
  double sum = 0;
  uint32_t count = 0;
  bool has_small = false;
  for (size_t j = 0; j < classes; j++) {
    has_small |= q[j] > 0 && q[j] < least;
    if (q[j] < least) q[j] = 0;
    sum += q[j];
    count += q[j] > 0;
  }
  for (size_t j = 0; has_small && j < classes; j++) q[j] /= sum;
  return count;
}

bool mlr_duals_set(struct mlr_duals *duals, size_t row, double *q) {
  size_t classes = duals->classes;
  if (duals->dense) {
    memcpy(duals->dense + row * classes, q, classes * sizeof *q);
    return true;
  }
  struct mlr_dual_row *to = &duals->list[row];
  uint32_t count = drop_small(classes, duals->least, q), n = 0;
  if (count > to->room) {
    uint32_t room = count + count / 4;
    void *larger = apps_resize(to->entries, room * sizeof *to->entries);
    if (!larger) return false;
    to->entries = larger;
    to->room = room;
  }
  for (size_t j = 0; j < classes; j++)
    if (q[j] > 0) to->entries[n++] = (struct mlr_dual_entry){q[j], (uint32_t)j};
  to->count = n;
  return true;
}

double mlr_duals_entropy(const struct mlr_duals *duals) {
  double sum = 0;
  for (size_t row = 0; row < duals->rows; row++) {
    if (duals->dense) {
      sum += mlr_entropy(duals->classes, duals->dense + row * duals->classes);
      continue;
    }
    for (uint32_t i = 0; i < duals->list[row].count; i++)
      sum -= duals->list[row].entries[i].q * log(duals->list[row].entries[i].q);
  }
  return sum;
}
