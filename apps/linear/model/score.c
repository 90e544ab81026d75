/* Scores. The weight of every entry of every row is looked up by id, so the lookup determines the speed.
 *
 * If ids are small, or most of them have weights, the weights are in an array by id, with 0 for ids without a
 * weight. Otherwise they are in a hash table with open addressing that is at most half full; a lookup reads
 * one or two neighbouring places. Id 0 marks a free place, so the weight of feature 0 of zero-based models is
 * kept outside the table. */
#include <stdlib.h>
#include <string.h>

#include "apps/linear/losses.h"
#include "apps/linear/model/model.h"

#define DIRECT_MAX ((uint64_t)1 << 22) /* an array of 32 MB is always acceptable */
/* above that: at most this many elements for each weight that is not 0 */
#define DIRECT_SPARSE 8

struct weight_place {
  uint64_t id;
  double weight;
};

struct pawl_linear_scorer {
  double bias, zero;           /* zero: the weight of feature 0 */
  uint64_t size;               /* of `direct`; 0: there is none */
  double *direct;              /* by id */
  struct weight_place *places; /* 2^bits of them */
  uint32_t bits;
};

/* The upper bits of a product are as good as random for ids that come in runs. */
static size_t slot_of(const struct pawl_linear_scorer *scorer, uint64_t id) {
  return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - scorer->bits));
}

static pawl_status fill_direct(struct pawl_linear_scorer *scorer, const struct pawl_linear_model *model,
                               uint64_t highest) {
  scorer->size = highest + 1;
  scorer->direct = apps_alloc_zero((size_t)scorer->size, sizeof *scorer->direct);
  if (!scorer->direct) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < model->about.nonzeros; i++) scorer->direct[model->ids[i]] = model->weights[i];
  return PAWL_OK;
}

static pawl_status fill_places(struct pawl_linear_scorer *scorer, const struct pawl_linear_model *model) {
  scorer->bits = 4;
  while (((size_t)1 << scorer->bits) / 2 < model->about.nonzeros) scorer->bits++;
  size_t mask = ((size_t)1 << scorer->bits) - 1;
  scorer->places = apps_alloc_zero(mask + 1, sizeof *scorer->places);
  if (!scorer->places) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < model->about.nonzeros; i++) {
    if (model->ids[i] == 0) continue;
    size_t slot = slot_of(scorer, model->ids[i]);
    while (scorer->places[slot].id) slot = (slot + 1) & mask;
    scorer->places[slot] = (struct weight_place){model->ids[i], model->weights[i]};
  }
  return PAWL_OK;
}

pawl_status pawl_linear_scorer_create(const struct pawl_linear_model *model, struct pawl_linear_scorer **scorer_out) {
  struct pawl_linear_scorer *scorer = apps_alloc_zero(1, sizeof *scorer);
  if (!scorer) return PAWL_NO_MEMORY;
  uint64_t highest = model->about.nonzeros ? model->ids[model->about.nonzeros - 1] : 0;
  if (model->about.has_bias) scorer->bias = model->about.bias;
  if (model->about.nonzeros && model->ids[0] == 0) scorer->zero = model->weights[0];
  bool is_direct = highest < DIRECT_MAX || highest / DIRECT_SPARSE < model->about.nonzeros;
  pawl_status status = is_direct ? fill_direct(scorer, model, highest) : fill_places(scorer, model);
  if (status)
    pawl_linear_scorer_destroy(scorer);
  else
    *scorer_out = scorer;
  return status;
}

void pawl_linear_scorer_destroy(struct pawl_linear_scorer *scorer) {
  if (!scorer) return;
  apps_free(scorer->direct);
  apps_free(scorer->places);
  apps_free(scorer);
}

static double find(const struct pawl_linear_scorer *scorer, uint64_t id) {
  size_t mask = ((size_t)1 << scorer->bits) - 1;
  if (id == 0) return scorer->zero;
  for (size_t slot = slot_of(scorer, id); scorer->places[slot].id; slot = (slot + 1) & mask)
    if (scorer->places[slot].id == id) return scorer->places[slot].weight;
  return 0;
}

/* One loop for each kind of table, so that the kind is not checked for every entry. Ids beyond the table have
 * no weight. */
static double sum_direct(const struct pawl_linear_scorer *scorer, const struct pawl_batch *batch, uint64_t begin,
                         uint64_t end) {
  double sum = 0;
  for (uint64_t k = begin; k < end; k++) {
    double value = batch->values ? (double)batch->values[k] : 1;
    if (batch->ids[k] < scorer->size) sum += scorer->direct[batch->ids[k]] * value;
  }
  return sum;
}

static double sum_places(const struct pawl_linear_scorer *scorer, const struct pawl_batch *batch, uint64_t begin,
                         uint64_t end) {
  double sum = 0;
  for (uint64_t k = begin; k < end; k++)
    sum += find(scorer, batch->ids[k]) * (batch->values ? (double)batch->values[k] : 1);
  return sum;
}

void pawl_linear_scorer_run(const struct pawl_linear_scorer *scorer, const struct pawl_batch *batch,
                            double *scores_out) {
  for (size_t i = 0; i < batch->rows; i++) {
    uint64_t begin = batch->starts[i], end = batch->starts[i + 1];
    double sum = scorer->direct ? sum_direct(scorer, batch, begin, end) : sum_places(scorer, batch, begin, end);
    scores_out[i] = sum + scorer->bias;
  }
}

double pawl_linear_probability(double score) { return linear_sigmoid(score); }
