/* Stochastic variational inference in the scheduler: initial weights, parts of passes, the scale. See
 * apps/lda/svi/svi.c and apps/lda/svi/step.h.
 *
 * A pass is done in parts, each a round. Between parts, workers can join and leave, and mu can be scaled, because no
 * worker uses it. Parts are so short that floats can hold the effect of the scale on mu. Part r has the pieces whose
 * number is r modulo `groups`, on any worker, and if there are too few pieces, every splits-th of their documents.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/errors.h"
#include "apps/lda/svi/step.h"
#include "apps/lda/train_inside.h"

enum { PUSH_BYTES = 4 << 20 };
#define PACE 5e7         /* initial estimate of a worker's speed: tokens times topics in a second */
#define PART_S 2.0       /* maximum of seconds of a part */
#define PART_DECAY 36.0  /* mu grows by at most e^36, about 10^16, relative to lambda in a part */
#define SMALL_SCALE 1e-4 /* at a smaller scale, mu is scaled to lambda before the part */

static struct lda_svi_rate rate_of(const struct lda_training *run) {
  return (struct lda_svi_rate){run->spec.kappa, run->spec.offset};
}

/* --- beginning and end ---------------------------------------------------------------------------------- */

static pawl_status push_rows(struct lda_training *run, uint64_t begin, uint64_t end, const float *rows) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_push(run->vector, pawl_at_range(begin, end), rows, &task);
  return status ? status : pawl_task_finish(task, PAWL_FOREVER);
}

/* Computes the initial weights of some words, and `sums` of all. */
static void draw_rows(const struct lda_training *run, uint64_t begin, uint64_t end, float *rows, double *sums) {
  uint32_t topics = run->spec.topics;
  for (uint64_t word = begin; word < end; word++) {
    float *row = rows + (word - begin) * topics;
    lda_svi_first(run->spec.seed, word, topics, row);
    for (uint32_t k = 0; k < topics; k++) sums[k] += (double)row[k];
  }
}

static pawl_status push_first(struct lda_training *run) {
  uint32_t topics = run->spec.topics;
  uint64_t words = run->order.words, rows = PUSH_BYTES / (topics * sizeof(float)) + 1;
  float *values = apps_alloc(rows * topics * sizeof *values);
  double *sums = apps_alloc_zero(topics, sizeof *sums);
  pawl_status status = values && sums ? PAWL_OK : PAWL_NO_MEMORY;
  for (uint64_t begin = 0; begin < words && !status; begin += rows) {
    uint64_t end = words - begin < rows ? words : begin + rows;
    draw_rows(run, begin, end, values, sums);
    status = push_rows(run, begin, end, values);
  }
  for (uint32_t k = 0; k < topics && !status; k++) values[k] = (float)sums[k];
  if (!status) status = push_rows(run, words, words + 1, values);
  apps_free(values);
  apps_free(sums);
  return status;
}

pawl_status lda_svi_begin(struct lda_training *run) {
  char name[PAWL_NAME_MAX + 1];
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = PAWL_I64;
  options.size = 1;
  lda_svi_steps_name(&run->spec, name);
  pawl_status status = pawl_vector_delete(run->common.session, name, LDA_TIMEOUT);
  if (!status || status == PAWL_NOT_FOUND)
    status = pawl_vector_create(run->common.session, name, &options, LDA_TIMEOUT, &run->steps);
  if (!status) status = push_first(run);
  return status ? apps_fail(&run->common, status, "cannot store the initial weights: %s", apps_error_text(status))
                : PAWL_OK;
}

void lda_svi_end(struct lda_training *run) {
  char name[PAWL_NAME_MAX + 1];
  if (!run->steps) return;
  pawl_vector_close(run->steps);
  lda_svi_steps_name(&run->spec, name);
  pawl_vector_delete(run->common.session, name, LDA_TIMEOUT);
  run->steps = NULL;
}

/* --- parts of passes ------------------------------------------------------------------------------------ */

/* The number of steps from `base` whose decay is within that of a part. */
static uint64_t steps_in_part(const struct lda_training *run, uint64_t most) {
  struct lda_svi_rate rate = rate_of(run);
  double decay = 0;
  uint64_t steps = 0;
  while (steps < most && decay < PART_DECAY) decay -= log1p(-lda_svi_rho(&rate, run->order.base + ++steps));
  return decay >= PART_DECAY && steps > 1 ? steps - 1 : steps;
}

/* Divides a pass into parts. Each worker should have pieces of each part, so there are fewer groups than
 * pieces. */
static void cut_pass(struct lda_training *run) {
  struct lda_order *order = &run->order;
  uint64_t workers = run->progress.workers > 0 ? run->progress.workers : 1, pieces = run->spec.pieces;
  uint64_t steps = 2 * order->documents / run->spec.batch + pieces + workers; /* an upper estimate */
  uint64_t parts = (steps - 1) / steps_in_part(run, steps) + 1;
  double seconds = run->sweep_s;
  if (seconds == 0) seconds = (double)order->tokens * run->spec.topics / (PACE * (double)workers);
  /* parts in which every worker has a batch */
  uint64_t whole = order->documents / (run->spec.batch * workers);
  uint64_t wanted = (uint64_t)fmin(seconds / PART_S, (double)whole);
  if (wanted > parts) parts = wanted;
  uint64_t groups_most = pieces / (2 * workers) > 1 ? pieces / (2 * workers) : 1;
  order->groups = parts < groups_most ? parts : groups_most;
  order->splits = (steps - 1) / (steps_in_part(run, steps) * order->groups) + 1;
}

void lda_svi_plan(struct lda_training *run) {
  struct lda_order *order = &run->order;
  if (order->part == 0) {
    cut_pass(run);
    run->pass_s = run->pass_log = 0;
    run->pass_tokens = 0;
  }
  order->what = LDA_SWEEP;
  order->measures = true;
  order->optimises = false;
  order->sweeps = order->part + 1 == order->groups * order->splits;
}

double lda_svi_part(const struct lda_training *run) {
  return run->order.part > 0 ? (double)run->order.part / (double)(run->order.groups * run->order.splits) : 0;
}

pawl_status lda_svi_learn(struct lda_training *run, const struct lda_reply *sum) {
  bool is_over = run->order.sweeps > 0;
  run->pass_s += (double)sum->sampled_ns * 1e-9;
  run->pass_log += sum->document_part + sum->word_part;
  run->pass_tokens += sum->sampled;
  if (run->pass_tokens > 0) run->progress.log_likelihood = run->pass_log / (double)run->pass_tokens;
  run->order.sweep += run->order.sweeps;
  run->order.part = is_over ? 0 : run->order.part + 1;
  if (is_over && run->pass_s > 0)
    run->sweep_s = run->pass_s;
  else if (run->sweep_s == 0 && run->pass_s > 0)
    run->sweep_s = run->pass_s / lda_svi_part(run);
  return lda_svi_settle(run, is_over);
}

pawl_status lda_svi_settle(struct lda_training *run, bool is_wanted) {
  struct lda_svi_rate rate = rate_of(run);
  struct pawl_task *task;
  int64_t t = 0;
  pawl_status status = pawl_vector_pull(run->steps, pawl_at_range(0, 1), &t, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  if (status || (uint64_t)t <= run->order.base) return status;
  double scale = exp(-lda_svi_decay(&rate, run->order.base, (uint64_t)t));
  if (!is_wanted && scale >= SMALL_SCALE) return PAWL_OK;
  status = pawl_vector_scale(run->vector, PAWL_ALL, scale, &task);
  if (!status) status = pawl_task_finish(task, PAWL_FOREVER);
  if (!status) run->order.base = (uint64_t)t;
  return status;
}
