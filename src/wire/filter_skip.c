/* skip: drops each row with a fixed probability p.
 *
 *     rest=keep    a dropped row is added to the next row of its key
 *     rest=scale   a dropped row is lost, and the others are sent as v / (1 - p): the expected value is v
 *
 * The random skip filter of OSDI'14 3.6. */
#include "wire/filters.h"

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "wire/filter_rows.h"
#include "wire/residuals.h"

enum { RATE, REST, RESIDUALS };
enum { KEEP, SCALE };

struct skip {
  double rate;
  bool scales;
  struct pwi_random random;
  struct pwi_residuals residuals; /* empty for rest=scale */
};

static const struct pawl_filter_parameter parameters[] = {
    [RATE] = {.name = "rate", .least = 0, .most = 0.999, .initial = NAN},
    [REST] = {.name = "rest", .words = "keep|scale", .initial = KEEP},
    [RESIDUALS] = {.name = "rests", .least = 1, .most = 0x1p40, .initial = 0x1p22, .whole = true},
};

static pawl_status init(void *state, const struct pawl_filter_setup *setup) {
  struct skip *filter = state;
  filter->rate = setup->parameters[RATE];
  filter->scales = setup->parameters[REST] == SCALE;
  if (filter->scales && !pwi_type_is_float(setup->type)) {
    snprintf(setup->problem, setup->problem_size, "rest=scale is for f32 and f64 only");
    return PAWL_UNSUPPORTED;
  }
  pwi_random_init(&filter->random, setup->seed, 0);
  pwi_residuals_init(&filter->residuals, setup->type, setup->width, (size_t)setup->parameters[RESIDUALS]);
  return PAWL_OK;
}

static void fini(void *state) { pwi_residuals_fini(&((struct skip *)state)->residuals); }

static pawl_status reserve(void *state, size_t rows, bool flush) {
  struct skip *filter = state;
  return filter->scales ? PAWL_OK : pwi_residuals_reserve(&filter->residuals, rows, flush);
}

static bool is_due(void *context, const void *row) {
  struct skip *filter = context;
  (void)row;
  return !pwi_random_chance(&filter->random, filter->rate);
}

static void scale_row(const struct pawl_rows *rows, size_t at, double factor) {
  float *floats = rows->values;
  double *doubles = rows->values;
  for (size_t i = at * rows->width; i < (at + 1) * rows->width; i++) {
    if (rows->type == PAWL_F32)
      floats[i] = (float)((double)floats[i] * factor);
    else
      doubles[i] *= factor;
  }
}

static void drop_and_scale(struct skip *filter, struct pawl_rows *rows) {
  double factor = 1 / (1 - filter->rate);
  size_t kept = 0;
  for (size_t i = 0; i < rows->count; i++) {
    if (pwi_random_chance(&filter->random, filter->rate)) continue;
    pawl_rows_move(rows, i, kept);
    scale_row(rows, kept++, factor);
  }
  rows->count = kept;
}

static void apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  struct skip *filter = state;
  if (pass->flush)
    pwi_residuals_flush(&filter->residuals, rows);
  else if (filter->scales)
    drop_and_scale(filter, rows);
  else
    pwi_residuals_pass(&filter->residuals, rows, is_due, filter);
}

static size_t held(const void *state) { return ((const struct skip *)state)->residuals.count; }

static size_t memory(const void *state) { return pwi_residuals_memory(&((const struct skip *)state)->residuals); }

const struct pawl_filter_type pwi_filter_skip = {
    .name = "skip",
    .summary = "drops rows at random",
    .directions = PAWL_ON_PUSH,
    .flags = PAWL_FILTER_ADDS | PAWL_FILTER_CHANGES,
    .parameters = parameters,
    .parameter_count = sizeof parameters / sizeof *parameters,
    .state_size = sizeof(struct skip),
    .init = init,
    .fini = fini,
    .reserve = reserve,
    .apply = apply,
    .held = held,
    .memory = memory,
};
