/* A user-defined filter: `clip` limits every value to [-limit, limit], and is used in a chain like any
 * other.
 *
 * docs/add-a-filter.md explains this file. It needs no cluster: the chain is run by hand.
 */
#include <stdio.h>

#include <pawl/filter.h>

/* The state of the filter between runs. */
struct clip {
  double limit;
};

static const struct pawl_filter_parameter clip_parameters[] = {
    {.name = "limit", .least = 0, .most = 1e300, .initial = 1},
};

static pawl_status clip_init(void *state, const struct pawl_filter_setup *setup) {
  ((struct clip *)state)->limit = setup->parameters[0];
  return PAWL_OK;
}

/* Neither comparison is true for NaN, which stays unchanged. */
static double clip_value(double value, double limit) {
  if (value > limit) return limit;
  return value < -limit ? -limit : value;
}

static void clip_apply(void *state, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  const struct clip *clip = state;
  float *floats = rows->values;
  double *doubles = rows->values;
  (void)pass;
  for (size_t i = 0; i < rows->count * rows->width; i++) {
    if (rows->type == PAWL_F32)
      floats[i] = (float)clip_value((double)floats[i], clip->limit);
    else
      doubles[i] = clip_value(doubles[i], clip->limit);
  }
}

static const struct pawl_filter_type clip = {
    .name = "clip",
    .summary = "values are cut to a limit",
    .directions = PAWL_ON_BOTH,
    .flags = PAWL_FILTER_FLOATS | PAWL_FILTER_CHANGES,
    .parameters = clip_parameters,
    .parameter_count = 1,
    .state_size = sizeof(struct clip),
    .init = clip_init,
    .apply = clip_apply,
};

int main(void) {
  const uint64_t keys[] = {2, 3, 5, 7};
  const float values[] = {0.5f, -9, 0.01f, 3};
  char problem[256] = "";
  struct pawl_filters_options options;
  struct pawl_filters *filters;
  struct pawl_rows rows = {0};
  pawl_filters_options_init(&options);
  options.problem = problem;
  options.problem_size = sizeof problem;

  pawl_status status = pawl_filter_register(&clip);
  if (!status) status = pawl_filters_create("clip(limit=2) | significant(threshold=0.1)", &options, &filters);
  if (status) {
    fprintf(stderr, "filter_clip: %s: %s\n", pawl_status_text(status), problem);
    return 1;
  }
  status = pawl_filters_run(filters, keys, values, NULL, 4, false, &rows);
  for (size_t i = 0; !status && i < rows.count; i++)
    printf("%d  %g\n", (int)rows.keys[i], (double)((const float *)rows.values)[i]);
  printf("held back: %d\n", (int)pawl_filters_held(filters));
  pawl_rows_fini(&rows);
  pawl_filters_destroy(filters);
  return status != PAWL_OK;
}
