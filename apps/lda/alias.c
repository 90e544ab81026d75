/* Alias tables: see alias.h. Weights are whole numbers; each cell holds `sum` of them after all were
 * multiplied by the number of cells, so that nothing is lost to rounding before the thresholds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/lda/alias.h"

#define WEIGHTS_SUM (UINT64_C(1) << 40) /* what real weights are scaled to */

bool lda_alias_init(struct lda_alias *alias, uint32_t room) {
  *alias = (struct lda_alias){.room = room};
  alias->cells = malloc(room * sizeof *alias->cells);
  alias->left = malloc(room * sizeof *alias->left);
  alias->small = malloc(room * sizeof *alias->small);
  alias->large = malloc(room * sizeof *alias->large);
  if (alias->cells && alias->left && alias->small && alias->large) return true;
  lda_alias_fini(alias);
  return false;
}

void lda_alias_fini(struct lda_alias *alias) {
  free(alias->cells);
  free(alias->left);
  free(alias->small);
  free(alias->large);
  memset(alias, 0, sizeof *alias);
}

/* Cells that hold less than `sum` are filled up from those that hold more. */
static void fill(struct lda_alias *alias, uint64_t sum) {
  uint32_t small = 0, large = 0;
  double scale = 4294967296.0 / (double)sum;
  for (uint32_t i = 0; i < alias->count; i++) {
    bool is_small = alias->left[i] < sum;
    alias->small[small] = alias->large[large] = i;
    small += is_small;
    large += !is_small;
  }
  while (small > 0 && large > 0) {
    uint32_t poor = alias->small[--small], rich = alias->large[large - 1];
    alias->cells[poor].threshold = (uint32_t)((double)alias->left[poor] * scale);
    alias->cells[poor].other = alias->cells[rich].own;
    alias->left[rich] -= sum - alias->left[poor];
    if (alias->left[rich] >= sum) continue;
    large--;
    alias->small[small++] = rich;
  }
}

static inline void set_cell(struct lda_alias *alias, uint32_t at, uint32_t topic, uint64_t weight) {
  alias->cells[at] = (struct lda_cell){UINT32_MAX, topic, topic};
  alias->left[at] = weight;
}

void lda_alias_of_counts(struct lda_alias *alias, const int32_t *counts, uint32_t topics, uint64_t sum) {
  uint32_t count = 0, k = 0;
  for (; k + 8 <= topics; k += 8) { /* rows are mostly zeros when K is large */
    int32_t any = 0;
    for (uint32_t i = 0; i < 8; i++) any |= counts[k + i];
    if (any == 0) continue;
    for (uint32_t i = 0; i < 8; i++)
      if (counts[k + i] > 0) set_cell(alias, count++, k + i, (uint64_t)counts[k + i]);
  }
  for (; k < topics; k++)
    if (counts[k] > 0) set_cell(alias, count++, k, (uint64_t)counts[k]);
  alias->count = count;
  for (uint32_t i = 0; i < count; i++) alias->left[i] *= count;
  fill(alias, sum);
}

void lda_alias_of_weights(struct lda_alias *alias, const double *weights, uint32_t topics) {
  double sum = 0;
  uint64_t whole = 0;
  for (uint32_t k = 0; k < topics; k++) sum += weights[k];
  for (uint32_t k = 0; k < topics; k++) {
    uint64_t weight = (uint64_t)(weights[k] / sum * (double)WEIGHTS_SUM) + 1;
    set_cell(alias, k, k, weight);
    whole += weight;
  }
  alias->count = topics;
  for (uint32_t k = 0; k < topics; k++) alias->left[k] *= topics;
  fill(alias, whole);
}
