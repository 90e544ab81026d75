/* kkt: for l1-regularised problems, drops the gradient of a weight that is zero and will stay zero (OSDI'14
 * 5.1).
 *
 * At the optimum w_k = 0 wherever |g_k| < lambda, where g is the gradient of the loss. The available gradient
 * is outdated or partial, hence the slack delta: a row is dropped if
 *
 *     w_kj = 0  and  |g_kj| <= lambda - delta      for all j
 *
 * The filter keeps no residual: a dropped gradient would be stale later. A last pass without the filter shows
 * whether any condition is violated. */
#include "wire/filters.h"

#include <math.h>
#include <stdio.h>

#include "wire/filter_rows.h"

enum { LAMBDA, DELTA };

struct kkt {
  double limit; /* lambda - delta */
  pawl_filter_rule *rule;
  void *context;
};

static const struct pawl_filter_parameter parameters[] = {
    [LAMBDA] = {.name = "lambda", .least = 0, .most = 1e300, .initial = NAN},
    [DELTA] = {.name = "delta", .least = 0, .most = 1e300, .initial = 0},
};

static pawl_status init(void *state, const struct pawl_filter_setup *setup) {
  struct kkt *filter = state;
  if (setup->parameters[DELTA] > setup->parameters[LAMBDA]) {
    snprintf(setup->problem, setup->problem_size, "delta is larger than lambda");
    return PAWL_INVALID;
  }
  filter->limit = setup->parameters[LAMBDA] - setup->parameters[DELTA];
  filter->rule = setup->options->kkt_rule;
  filter->context = setup->options->kkt_context;
  return PAWL_OK;
}

static bool is_settled(const struct kkt *filter, const struct pawl_rows *rows, size_t at) {
  const char *gradients = (const char *)rows->values + at * rows->bytes;
  const char *weights = rows->weights ? (const char *)rows->weights + at * rows->bytes : NULL;
  if (filter->rule) return filter->rule(filter->context, rows->keys[at], weights, gradients);
  return pwi_row_within(rows->type, rows->width, weights, 0) &&
         pwi_row_within(rows->type, rows->width, gradients, filter->limit);
}

static void apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  size_t kept = 0;
  if (pass->flush) return;
  for (size_t i = 0; i < rows->count; i++)
    if (!is_settled(state, rows, i)) pawl_rows_move(rows, i, kept++);
  rows->count = kept;
}

const struct pawl_filter_type pwi_filter_kkt = {
    .name = "kkt",
    .summary = "drops gradients of weights that are zero and will stay zero",
    .directions = PAWL_ON_PUSH,
    .flags = PAWL_FILTER_FLOATS | PAWL_FILTER_WEIGHTS,
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .state_size = sizeof(struct kkt),
    .init = init,
    .apply = apply,
};
