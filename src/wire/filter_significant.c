/* significant: sends a row once the accumulated values of its key reach a threshold.
 *
 *     r_k += v_k;  if max_j |r_kj| >= threshold: send r_k, r_k = 0
 *
 * The "significantly modified" filter of OSDI'14 3.6. */
#include "wire/filters.h"

#include <math.h>

#include "wire/filter_rows.h"
#include "wire/residuals.h"

enum { THRESHOLD, RESIDUALS };

struct significant {
  double threshold;
  struct pwi_residuals residuals;
};

static const struct pawl_filter_parameter parameters[] = {
    [THRESHOLD] = {.name = "threshold", .least = 0, .most = 1e300, .initial = NAN},
    [RESIDUALS] = {.name = "rests", .least = 1, .most = 0x1p40, .initial = 0x1p22, .whole = true},
};

static pawl_status init(void *state, const struct pawl_filter_setup *setup) {
  struct significant *filter = state;
  filter->threshold = setup->parameters[THRESHOLD];
  pwi_residuals_init(&filter->residuals, setup->type, setup->width, (size_t)setup->parameters[RESIDUALS]);
  return PAWL_OK;
}

static void fini(void *state) { pwi_residuals_fini(&((struct significant *)state)->residuals); }

static pawl_status reserve(void *state, size_t rows, bool flush) {
  return pwi_residuals_reserve(&((struct significant *)state)->residuals, rows, flush);
}

/* NaN is not below the threshold, and so is sent. */
static bool is_due(void *context, const void *row) {
  const struct significant *filter = context;
  return !pwi_row_below(filter->residuals.type, filter->residuals.width, row, filter->threshold);
}

static void apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  struct significant *filter = state;
  if (pass->flush)
    pwi_residuals_flush(&filter->residuals, rows);
  else
    pwi_residuals_pass(&filter->residuals, rows, is_due, filter);
}

static size_t held(const void *state) { return ((const struct significant *)state)->residuals.count; }

static size_t memory(const void *state) {
  return pwi_residuals_memory(&((const struct significant *)state)->residuals);
}

const struct pawl_filter_type pwi_filter_significant = {
    .name = "significant",
    .summary = "holds rows back until the accumulated values of a key reach a threshold",
    .directions = PAWL_ON_PUSH,
    .flags = PAWL_FILTER_ADDS | PAWL_FILTER_CHANGES,
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .state_size = sizeof(struct significant),
    .init = init,
    .fini = fini,
    .reserve = reserve,
    .apply = apply,
    .held = held,
    .memory = memory,
};
