/* Pushes with an operand become ordinary pushes: the shard rebuilds a sum of products from its factors (SFB, Xie et al.
 * 2016, footnote 5: factors up, matrix down).
 *
 * This happens before anything else looks at the values. So sums of a group, refusals and server functions need not know
 * of operands; and replicas receive the rows that resulted, as always.
 *
 * BOUNDS. A few bytes can describe many rows, and much work. The limits on both are those for encoded values, and a
 * number of products that takes about a second. Work that takes longer than a moment runs beside the shard's thread, which
 * sends heartbeats meanwhile, as functions from shared objects do.
 */
#include "shard/inside.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/feed.h"
#include "base/memory.h"

#define ROWS_MAX ((size_t)PAWL_SLICE_BYTES)
#define ROWS_KEEP ((size_t)32 << 20)    /* larger memory is given back */
#define WORK_BRIEF (UINT64_C(1) << 24)  /* products: some ms */
#define COPIED_BYTES ((size_t)64 << 10) /* of values at a time */

static size_t value_size(const struct pwi_vector *vector) {
  return pwi_scalar_size((enum pwi_scalar)vector->entry.is.type);
}

pawl_status pwi_operand_check(const struct pwi_vector *vector, const struct pwi_request *request) {
  size_t row_bytes = pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH), size = value_size(vector);
  size_t width = row_bytes / size, rows = (size_t)request->terms.rows, all, work;
  bool is_push = request->terms.kind == PWI_REQUEST_PUSH || request->terms.kind == PWI_REQUEST_PUSHPULL;
  if (!is_push) return PAWL_INVALID;
  if (request->operand_type != (uint8_t)vector->entry.is.type) return PAWL_MISMATCH;
  if (request->operand_count == 0 || request->operand_count % width != 0) return PAWL_MISMATCH;
  if (!pwi_values_match(vector, request, rows, request->operand_count / width * size)) return PAWL_MISMATCH;
  if (!pwi_mul_size(rows, row_bytes, &all) || (all > ROWS_MAX && rows != 1)) return PAWL_TOO_LARGE;
  if (!pwi_mul_size(rows, request->operand_count, &work) || work > PWI_OPERAND_WORK) return PAWL_TOO_LARGE;
  return PAWL_OK;
}

/* --- expanding ------------------------------------------------------------------------------------------ */

struct expansion {
  struct pwi_shard *shard;
  const struct pawl_server_function *function; /* NULL: a built-in one */
  const struct pwi_request *request;
  struct pawl_function_call call;
  size_t size; /* of a value */
};

/* Rows of values at a place where a function may read them. */
static const char *next_rows(struct expansion *is, struct pwi_feed *feed, size_t most, size_t *count_out) {
  size_t unit = is->call.operand_rows * is->size, some = COPIED_BYTES / unit > 0 ? COPIED_BYTES / unit : 1;
  char *place = is->shard->factors.memory;
  const char *rows = pwi_feed_next(feed, unit, most < some ? most : some, place, count_out);
  if (rows == place || (uintptr_t)rows % is->size == 0) return rows;
  return memcpy(place, rows, *count_out * unit);
}

static void expand(void *argument) {
  struct expansion *is = argument;
  struct pwi_feed feed = {is->request->values, 0};
  size_t rows = (size_t)is->request->terms.rows;
  for (size_t done = 0; done < rows; done += is->call.count) {
    is->call.pushed = next_rows(is, &feed, rows - done, &is->call.count);
    pwi_function_expand(is->function, &is->call);
    is->call.stored = (char *)is->call.stored + is->call.count * is->call.pushed_width * is->size;
  }
}

static void run(struct pwi_shard *shard, struct expansion *is) {
  const struct pwi_shard_config *config = &shard->config;
  bool is_brief = !(is->function && is->function->expand) &&
                  is->request->terms.rows * is->request->operand_count <= WORK_BRIEF; /* the product was checked */
  if (config->run && !is_brief)
    config->run(config->run_context, expand, is);
  else
    expand(is);
}

static pawl_status make_room(struct pwi_shard *shard, size_t bytes, size_t unit) {
  if (shard->expanded.size > ROWS_KEEP && bytes <= ROWS_KEEP) pwi_pages_fini(&shard->expanded);
  if (shard->factors.size > ROWS_KEEP && unit <= ROWS_KEEP) pwi_pages_fini(&shard->factors);
  pawl_status status = pwi_pages_grow(&shard->expanded, bytes + 1);
  return status ? status : pwi_pages_grow(&shard->factors, unit > COPIED_BYTES ? unit : COPIED_BYTES);
}

pawl_status pwi_shard_expand(struct pwi_shard *shard, struct pwi_request *request) {
  const struct pwi_vector *vector = pwi_shard_vector(shard, request->terms.vector);
  size_t rows = (size_t)request->terms.rows;
  /* Otherwise nothing was inspected: the outcome will say why. */
  if (!request->operand || !vector || vector->is_group || pwi_operand_check(vector, request)) return PAWL_OK;
  size_t row_bytes = pwi_vector_pushed_bytes(vector, PWI_REQUEST_PUSH), size = value_size(vector);
  uint32_t width = (uint32_t)(row_bytes / size);
  struct expansion is = {.shard = shard, .request = request, .size = size};
  size_t operand_rows = request->operand_count / width;
  pawl_status status = make_room(shard, rows * row_bytes, operand_rows * size);
  if (status) return status;
  if (vector->rule) is.function = vector->rule->rule.function;
  is.call = (struct pawl_function_call){.size = sizeof is.call,
                                        .type = vector->entry.is.type,
                                        .width = vector->entry.is.width,
                                        .pushed_width = width,
                                        .stored_width = vector->entry.is.stored_width,
                                        .state_width = vector->entry.is.state_width,
                                        .stored = shard->expanded.memory,
                                        .operand = request->operand,
                                        .operand_rows = operand_rows};
  if (vector->rule) is.call.parameters = vector->rule->rule.parameters;
  if (rows > 0) run(shard, &is);
  shard->expanded_part = (struct iovec){shard->expanded.memory, rows * row_bytes};
  request->values = &shard->expanded_part;
  request->value_parts = rows > 0 ? 1 : 0;
  request->operand = NULL;
  return PAWL_OK;
}
