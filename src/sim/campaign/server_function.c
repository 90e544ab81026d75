/* Server functions for campaigns.
 *
 * `sim_kept` adds to hidden state, of which the rows are only a copy. So rows are right only as long as the state
 * accompanies them everywhere: down chains, to new members, to a new head. In some campaigns it refuses a push now
 * and then, before any of it is applied.
 *
 * `sim_steps` adds, and counts in one more column how often it was applied to the row. Sums of pushes are one step. */
#include "base/hash.h"
#include "sim/campaign/inside.h"

enum { REFUSES }; /* the only parameter */

static pawl_status check(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed;
  if (call->parameters[REFUSES] == 0) return PAWL_OK;
  for (size_t i = 0; i < call->count; i++)
    if (pwi_hash(pushed + i * call->width, call->width * sizeof *pushed, 0) % 31 == 0) return PAWL_REFUSED;
  return PAWL_OK;
}

static void apply(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed;
  int64_t *stored = call->stored, *state = call->state;
  for (size_t i = 0; i < call->count * call->width; i++)
    stored[i] = state[i] = (int64_t)((uint64_t)state[i] + (uint64_t)pushed[i]);
}

static const struct pawl_function_parameter parameters[] = {[REFUSES] = {"refuses", "one row in 31", 0, 0, 1}};

static const struct pawl_server_function function = {
    .size = sizeof(struct pawl_server_function),
    .flags = PAWL_FUNCTION_CHECKS_PUSH,
    .name = "sim_kept",
    .about = "adds to state and copies it to the row",
    .types = PAWL_FUNCTION_TYPE(PAWL_I64),
    .parameter_count = 1,
    .parameters = parameters,
    .pushed = {1, 0},
    .stored = {1, 0},
    .state = {1, 0},
    .check = check,
    .apply = apply,
};

static void step(const struct pawl_function_call *call) {
  const int64_t *pushed = call->pushed;
  int64_t *stored = call->stored;
  for (size_t i = 0; i < call->count; i++, pushed += call->pushed_width, stored += call->stored_width) {
    for (uint32_t c = 0; c < call->pushed_width; c++) stored[c] += pushed[c];
    stored[call->pushed_width]++;
  }
}

static const struct pawl_server_function steps = {
    .size = sizeof(struct pawl_server_function),
    .flags = PAWL_FUNCTION_SUMS,
    .name = "sim_steps",
    .about = "adds, and counts the steps",
    .types = PAWL_FUNCTION_TYPE(PAWL_I64),
    .pushed = {1, 0},
    .stored = {1, 1},
    .apply = step,
};

pawl_status pwi_campaign_functions(struct campaign *campaign) {
  struct pwi_function_problem problem;
  pawl_status status = pwi_function_set_add(&campaign->functions, &function, &problem);
  return status ? status : pwi_function_set_add(&campaign->functions, &steps, &problem);
}
