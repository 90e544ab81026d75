/* Server functions for campaigns.
 *
 * `sim_kept` adds to hidden state, of which the rows are only a copy. So rows are right only as long as the state
 * accompanies them everywhere: down chains, to new members, to a new head. In some campaigns it refuses a push now
 * and then, before any of it is applied.
 *
 * `sim_run` is a row function: 3 y + add, or y + x + add. Its results are the sum of the low bits of y before, and
 * the smallest y before.
 *
 * `sim_steps` adds, and counts in one more column how often it was applied to the row. Sums of pushes are one step. */
#include "base/hash.h"
#include "sim/campaign/inside.h"
#include "store/functions/rows.h"

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

static void run(const struct pawl_row_call *call) {
  int64_t *rows = call->rows;
  const int64_t *others = call->others;
  for (size_t i = 0; i < call->count * call->width; i++) {
    uint64_t before = (uint64_t)rows[i], other = others ? (uint64_t)others[i] : 2 * before;
    call->results[0] += (double)(before & 1023);
    if ((double)rows[i] < call->results[1]) call->results[1] = (double)rows[i];
    rows[i] = (int64_t)(before + other + (uint64_t)(int64_t)call->parameters[0]);
  }
}

static const struct pawl_function_parameter run_parameters[] = {{"add", "what is added", 0, -100, 100}};
static const struct pawl_row_result run_results[] = {{"low_bits", "", PAWL_ROW_SUM}, {"least", "", PAWL_ROW_LEAST}};

static const struct pawl_row_function runs = {.size = sizeof runs,
                                              .flags = PAWL_ROW_TAKES_OTHER,
                                              .name = "sim_run",
                                              .about = "3 y + add, or y + x + add",
                                              .types = PAWL_FUNCTION_TYPE(PAWL_I64),
                                              .parameter_count = 1,
                                              .parameters = run_parameters,
                                              .result_count = 2,
                                              .results = run_results,
                                              .run = run};

pawl_status pwi_campaign_functions(struct campaign *campaign) {
  struct pwi_function_problem problem;
  pawl_status status = pwi_function_set_add(&campaign->functions, &function, &problem);
  if (!status) status = pwi_row_function_add(&campaign->functions, &runs, &problem);
  return status ? status : pwi_function_set_add(&campaign->functions, &steps, &problem);
}
