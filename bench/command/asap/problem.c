/* The data of `pawl-bench asap`, generated or from a file, and the objective.
 *
 * Generated rows are like documents: features by a power law, values that fall with the frequency of a feature,
 * length 1, labels by the sign of a sum of true weights, some of them wrong. Rows of one topic prefer the
 * features of that topic and follow one another, so that the shares of workers differ. */
#include <math.h>
#include <pawl/data.h>
#include <stdlib.h>
#include <string.h>

#include "asap.h"
#include "base/memory.h"

#define POWER 1.05
#define HEAD 10 /* ranks that are about equally frequent */

/* --- building ------------------------------------------------------------------------------------------- */

static struct pwi_asap_problem *make(uint32_t examples, uint32_t features, size_t entries) {
  struct pwi_asap_problem *problem = pwi_alloc_zero(1, sizeof *problem);
  if (!problem) return NULL;
  problem->examples = examples;
  problem->features = features;
  problem->first = pwi_alloc_zero((size_t)examples + 1, sizeof *problem->first);
  problem->ids = pwi_alloc_zero(entries + 1, sizeof *problem->ids);
  problem->values = pwi_alloc_zero(entries + 1, sizeof *problem->values);
  problem->labels = pwi_alloc_zero(examples, sizeof *problem->labels);
  if (problem->first && problem->ids && problem->values && problem->labels) return problem;
  pwi_asap_problem_destroy(problem);
  return NULL;
}

void pwi_asap_problem_destroy(struct pwi_asap_problem *problem) {
  if (!problem) return;
  pwi_free(problem->first);
  pwi_free(problem->ids);
  pwi_free(problem->values);
  pwi_free(problem->labels);
  pwi_free(problem);
}

static void scale_row(struct pwi_asap_problem *problem, uint32_t row) {
  double sum = 0;
  for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
    sum += (double)problem->values[i] * problem->values[i];
  for (size_t i = problem->first[row]; i < problem->first[row + 1] && sum > 0; i++)
    problem->values[i] = (float)(problem->values[i] / sqrt(sum));
}

/* --- generating ----------------------------------------------------------------------------------------- */

struct draft {
  const struct pwi_asap_shape *shape;
  struct pwi_random random;
  double *sums;  /* of the frequencies of all ranks up to each */
  double *truth; /* weights by which labels are chosen */
};

static uint32_t draw_rank(struct draft *draft) {
  double at = pwi_random_unit(&draft->random) * draft->sums[draft->shape->features - 1];
  uint32_t low = 0, high = draft->shape->features - 1;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (draft->sums[middle] < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The features of topic k are those whose remainder is k. */
static uint32_t draw_feature(struct draft *draft, uint32_t topic) {
  const struct pwi_asap_shape *shape = draft->shape;
  uint32_t rank = draw_rank(draft);
  if (!pwi_random_chance(&draft->random, shape->topical)) return rank;
  uint32_t there = rank - rank % shape->topics + topic;
  return there < shape->features ? there : rank;
}

/* Frequent features say little, as after tf-idf. */
static float value_of(const struct draft *draft, uint32_t feature) {
  return (float)log(2 + (feature + 1.0) * 100 / draft->shape->features);
}

static void draw_row(struct draft *draft, struct pwi_asap_problem *problem, uint32_t row) {
  const struct pwi_asap_shape *shape = draft->shape;
  uint32_t topic = (uint32_t)((uint64_t)row * shape->topics / shape->examples);
  size_t begin = problem->first[row], end = begin;
  double product = 0;
  for (uint32_t tries = 0; tries < shape->per_example; tries++) {
    uint32_t feature = draw_feature(draft, topic);
    size_t at = begin;
    while (at < end && problem->ids[at] != feature) at++;
    if (at < end) continue;
    problem->ids[end] = feature;
    problem->values[end++] = value_of(draft, feature);
  }
  problem->first[row + 1] = end;
  scale_row(problem, row);
  for (size_t i = begin; i < end; i++) product += problem->values[i] * draft->truth[problem->ids[i]];
  problem->labels[row] = (product >= 0) != pwi_random_chance(&draft->random, shape->noise) ? 1.0f : -1.0f;
}

pawl_status pwi_asap_generate(const struct pwi_asap_shape *shape, struct pwi_asap_problem **problem_out) {
  struct draft draft = {.shape = shape,
                        .sums = pwi_alloc_zero(shape->features, sizeof(double)),
                        .truth = pwi_alloc_zero(shape->features, sizeof(double))};
  struct pwi_asap_problem *problem =
      make(shape->examples, shape->features, (size_t)shape->examples * shape->per_example);
  bool is_made = problem && draft.sums && draft.truth;
  double sum = 0;
  if (is_made) {
    pwi_random_init(&draft.random, shape->seed, 1);
    for (uint32_t i = 0; i < shape->features; i++) {
      draft.sums[i] = sum += pow(i + (double)HEAD, -POWER);
      draft.truth[i] = pwi_random_normal(&draft.random);
    }
    for (uint32_t row = 0; row < shape->examples; row++) draw_row(&draft, problem, row);
    problem->lambda = shape->lambda > 0 ? shape->lambda : 1.0 / shape->examples;
    *problem_out = problem;
  } else {
    pwi_asap_problem_destroy(problem);
  }
  pwi_free(draft.truth);
  pwi_free(draft.sums);
  return is_made ? PAWL_OK : PAWL_NO_MEMORY;
}

/* --- files ---------------------------------------------------------------------------------------------- */

struct load {
  struct pawl_batch **batches; /* by piece */
  size_t pieces;
  size_t rows, entries;
  uint64_t max_id;
};

static pawl_status keep(void *context, size_t piece, struct pawl_batch *batch) {
  struct load *load = context;
  load->batches[piece] = batch;
  load->rows += batch->rows;
  load->entries += batch->entries;
  if (batch->max_id > load->max_id) load->max_id = batch->max_id;
  return PAWL_OK;
}

static void add_batch(struct pwi_asap_problem *problem, const struct pawl_batch *batch, uint32_t *row, size_t *entry) {
  for (size_t r = 0; r < batch->rows; r++, ++*row) {
    for (uint64_t i = batch->starts[r]; i < batch->starts[r + 1]; i++, ++*entry) {
      problem->ids[*entry] = (uint32_t)batch->ids[i];
      problem->values[*entry] = batch->values ? batch->values[i] : 1;
    }
    problem->first[*row + 1] = *entry;
    problem->labels[*row] = batch->labels[r] > 0 ? 1.0f : -1.0f;
    scale_row(problem, *row);
  }
}

static pawl_status build(const struct load *load, struct pwi_asap_problem **problem_out) {
  uint32_t row = 0;
  size_t entry = 0;
  if (load->rows >= UINT32_MAX || load->max_id >= UINT32_MAX - 1) return PAWL_TOO_LARGE;
  struct pwi_asap_problem *problem = make((uint32_t)load->rows, (uint32_t)load->max_id + 1, load->entries);
  if (!problem) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < load->pieces; i++) add_batch(problem, load->batches[i], &row, &entry);
  *problem_out = problem;
  return PAWL_OK;
}

/* Reviews of films alternate by label, and other files are sorted by it. Shares are to be alike. */
static pawl_status shuffle(struct pwi_asap_problem **problem) {
  struct pwi_asap_problem *from = *problem, *to = make(from->examples, from->features, from->first[from->examples]);
  uint32_t *order = pwi_alloc_zero(from->examples, sizeof *order);
  struct pwi_random random;
  pawl_status status = to && order ? PAWL_OK : PAWL_NO_MEMORY;
  pwi_random_init(&random, 1, 4);
  for (uint32_t i = 0; i < from->examples && !status; i++) order[i] = i;
  if (!status) pwi_random_shuffle(&random, order, from->examples, sizeof *order);
  for (uint32_t i = 0; i < from->examples && !status; i++) {
    size_t begin = from->first[order[i]], count = from->first[order[i] + 1] - begin;
    memcpy(to->ids + to->first[i], from->ids + begin, count * sizeof *to->ids);
    memcpy(to->values + to->first[i], from->values + begin, count * sizeof *to->values);
    to->labels[i] = from->labels[order[i]];
    to->first[i + 1] = to->first[i] + count;
  }
  pwi_free(order);
  pwi_asap_problem_destroy(status ? to : from);
  if (!status) *problem = to;
  return status;
}

pawl_status pwi_asap_load(const char *path, double lambda, struct pwi_asap_problem **problem_out) {
  struct pawl_data_options options;
  struct pawl_data_info info;
  struct pawl_data *data;
  struct pwi_asap_problem *problem = NULL;
  pawl_data_options_init(&options);
  pawl_status status = pawl_data_open(&path, 1, &options, &data);
  if (status) return status;
  pawl_data_info(data, &info);
  struct load load = {.batches = pwi_alloc_zero(info.pieces, sizeof(struct pawl_batch *)), .pieces = info.pieces};
  status = load.batches ? pawl_data_read_all(data, 0, info.pieces, 0, keep, &load) : PAWL_NO_MEMORY;
  if (!status) status = build(&load, &problem);
  for (size_t i = 0; load.batches && i < load.pieces; i++) pawl_batch_destroy(load.batches[i]);
  pwi_free(load.batches);
  pawl_data_close(data);
  if (!status) status = shuffle(&problem);
  if (status) {
    if (problem) pwi_asap_problem_destroy(problem);
    return status;
  }
  problem->lambda = lambda > 0 ? lambda : 1.0 / problem->examples;
  *problem_out = problem;
  return PAWL_OK;
}

/* --- the objective -------------------------------------------------------------------------------------- */

double pwi_asap_objective(const struct pwi_asap_problem *problem, const float *weights) {
  double length = 0, losses = 0;
  for (uint32_t j = 0; j < problem->features; j++) length += (double)weights[j] * weights[j];
  for (uint32_t row = 0; row < problem->examples; row++) {
    double product = 0;
    for (size_t i = problem->first[row]; i < problem->first[row + 1]; i++)
      product += (double)problem->values[i] * weights[problem->ids[i]];
    losses += fmax(0, 1 - problem->labels[row] * product);
  }
  return problem->lambda / 2 * length + losses / problem->examples;
}
