/* Row functions on rows in place (OSDI'14 3.3; docs/row-functions.md).
 *
 * A request that runs a row function is a LINEAR (shard/linear.c): numbered, cut into slices, replicated by its
 * resulting rows. In addition it has a result. The shard keeps the result with the number, as it keeps refusals, so
 * that a resend brings the result of the only run. The claim is cut to keys on which the request is either due or
 * done, so each request has one result.
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/memory.h"

void pwi_run_cut(const struct pwi_vector *vector, struct pwi_request *request) {
  struct pwi_terms *terms = &request->terms;
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece first;
  if (pwi_clock_walk(&vector->clocks[PWI_TASKS], request->sender, terms->claim, &pieces) != PAWL_OK) return;
  if (!pwi_clock_next(&pieces, &first) || first.range.end >= terms->claim.end) return;
  terms->claim.end = first.range.end;
  terms->range = pawl_range_common(terms->range, terms->claim);
  if (pawl_range_is_empty(terms->range)) terms->range = terms->claim;
  terms->rows = pawl_range_size(terms->range);
}

/* --- preparation ---------------------------------------------------------------------------------------- */

static pawl_status check_other(const struct pawl_row_function *function, enum pwi_linear kind) {
  bool has_other = pwi_linear_has_other(kind);
  if (has_other) return function->flags & (PAWL_ROW_NEEDS_OTHER | PAWL_ROW_TAKES_OTHER) ? PAWL_OK : PAWL_UNSUPPORTED;
  return function->flags & PAWL_ROW_NEEDS_OTHER ? PAWL_UNSUPPORTED : PAWL_OK;
}

pawl_status pwi_run_ready(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request) {
  struct pwi_function_problem problem;
  if (!request->function) return PAWL_INVALID;
  pawl_status status = pwi_row_rule_parse(shard->config.functions, request->function, &shard->run, &problem);
  if (status != PAWL_OK) return status;
  const struct pawl_row_function *function = shard->run.function;
  if (!(function->types & PAWL_FUNCTION_TYPE(vector->table->is.type))) return PAWL_UNSUPPORTED;
  status = check_other(function, request->operation.kind);
  size_t rows = pwi_linear_gather_rows(vector);
  if (status == PAWL_OK && vector->place.mixed) status = pwi_pages_grow(&shard->run_keys, rows * sizeof(uint64_t));
  if (status == PAWL_OK) status = pwi_pages_grow(&shard->linear_rows, 2 * rows * vector->table->row_bytes);
  return status == PAWL_OK ? pwi_results_reserve(&vector->results, 1) : status;
}

void pwi_run_begin(struct pwi_shard *shard) {
  const struct pawl_row_function *function = shard->run.function;
  shard->result = (struct pwi_run_result){.count = function->result_count};
  for (uint32_t i = 0; i < function->result_count; i++) {
    shard->result.combine[i] = (uint8_t)function->results[i].combine;
    shard->result.values[i] = pwi_row_neutral(function->results[i].combine);
  }
}

/* --- running: cannot fail ------------------------------------------------------------------------------- */

/* Functions know keys as programs do. */
static const uint64_t *raw_keys(struct pwi_shard *shard, const struct pwi_vector *vector, const uint64_t *keys,
                                size_t count) {
  if (!keys || !vector->place.mixed) return keys;
  uint64_t *raw = shard->run_keys.memory;
  for (size_t i = 0; i < count; i++) raw[i] = pwi_place_unmix(keys[i]);
  return raw;
}

void pwi_run_rows(struct pwi_shard *shard, const struct pwi_vector *vector, const uint64_t *keys, uint64_t first,
                  size_t count, void *rows, const void *others) {
  struct pawl_row_call call = {.size = sizeof call,
                               .type = (enum pawl_type)vector->table->is.type,
                               .width = vector->table->is.width,
                               .count = count,
                               .keys = raw_keys(shard, vector, keys, count),
                               .first = first,
                               .rows = rows,
                               .others = others,
                               .parameters = shard->run.parameters,
                               .results = shard->result.values};
  shard->run.function->run(&call);
}

void pwi_run_aside(struct pwi_shard *shard, void (*work)(void *context), void *context) {
  const struct pwi_shard_config *config = &shard->config;
  if (config->run && !pwi_row_function_is_ours(shard->run.function))
    config->run(config->run_context, work, context);
  else
    work(context);
}

/* --- results -------------------------------------------------------------------------------------------- */

void pwi_run_keep(struct pwi_vector *vector, const struct pwi_request *request, struct pawl_range keys,
                  const struct pwi_run_result *result) {
  struct pwi_kept_result item = {.sender = request->sender, .task = request->task, .is = *result};
  item.is.range = keys;
  pwi_results_add(&vector->results, &item);
}

/* Without memory for the answer the client asks again, and its request is then a duplicate. */
void pwi_run_answer(struct pwi_shard *shard, const struct pwi_vector *vector, const struct pwi_request *request,
                    struct pwi_served *served) {
  pwi_writer_reset(&shard->payload);
  pwi_results_write(&shard->payload, &vector->results, request->sender, request->task, request->terms.claim);
  if (shard->payload.status != PAWL_OK) {
    pwi_served_say(served, PWI_CODE_NOT_HERE, 0);
    return;
  }
  served->payload = shard->payload.data;
  served->payload_size = shard->payload.size;
}
