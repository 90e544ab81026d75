/* Applies values through server functions (OSDI'14 3.3; docs/functions.md).
 *
 * All rows of a push are checked before the first is applied, so a push that its function refuses has changed
 * nothing. A function does not depend on how rows are divided into calls, so rows are passed as they lie in
 * the message.
 */
#include "shard/inside.h"

#include <assert.h>

#include "base/feed.h"
#include "base/memory.h"
#include "base/search.h"

/* --- finding the function ------------------------------------------------------------------------------- */

/* The widths in the catalogue come from a node that knew the function at that time, so they are compared with
 * the function here. */
static bool is_of_that_shape(const struct pwi_applying *rule, const struct pawl_vector_options *is) {
  return rule->shape.pushed == is->pushed_width && rule->shape.stored == is->stored_width &&
         rule->shape.state == is->state_width;
}

pawl_status pwi_vector_open_rule(const struct pwi_shard *shard, struct pwi_vector *vector) {
  const struct pawl_vector_options *is = &vector->entry.is;
  struct pwi_function_problem problem;
  struct pwi_rule parsed;
  if (is->function != PAWL_RULE) return PAWL_OK;
  vector->is_unknown = pwi_rule_parse(shard->config.functions, is->rule, &parsed, &problem) != PAWL_OK;
  if (vector->is_unknown) return PAWL_OK;
  struct pwi_applying *rule = pwi_alloc_zero(1, sizeof *rule);
  if (!rule) return PAWL_NO_MEMORY;
  pawl_status status = pwi_applying_init(rule, &parsed, (enum pwi_scalar)is->type, is->width);
  bool fits = !status && is_of_that_shape(rule, is);
  if (fits && !pwi_applying_is_simple(rule, &vector->apply)) {
    vector->rule = rule;
    return PAWL_OK;
  }
  if (!status) pwi_applying_fini(rule);
  pwi_free(rule);
  vector->is_unknown = !fits;
  return status == PAWL_NO_MEMORY ? status : PAWL_OK;
}

void pwi_vector_close_rule(struct pwi_vector *vector) {
  if (vector->rule) pwi_applying_fini(vector->rule);
  pwi_free(vector->rule);
  vector->rule = NULL;
}

/* --- rows of a request ---------------------------------------------------------------------------------- */

/* A run of rows: `pushed` values and the destination of the resulting rows; `result` may be NULL. */
struct row_run {
  struct pwi_vector *vector;
  struct pwi_rows_named named;
  const char *pushed;
  char *result;
};

typedef pawl_status visitor(struct row_run *rows);

/* The present position in the values and in the results. */
struct request_walk {
  struct pwi_shard *shard;
  struct pwi_vector *vector;
  visitor *visit;
  struct pwi_feed feed;
  size_t unit;
  char *result;
};

static pawl_status walk_named(struct request_walk *walk, struct pwi_rows_named named) {
  size_t count = named.count, row_bytes = walk->vector->table->row_bytes;
  pawl_status status = PAWL_OK;
  for (size_t done = 0; done < count && !status; done += named.count) {
    struct row_run rows = {.vector = walk->vector, .result = walk->result};
    rows.pushed = pwi_feed_next(&walk->feed, walk->unit, count - done, walk->shard->row, &named.count);
    rows.named = named;
    status = walk->visit(&rows);
    named.from += named.count;
    named.first += named.count;
    if (walk->result) walk->result += named.count * row_bytes;
  }
  return status;
}

/* All keys exist and the slots have room, so each block resolves as it did when its rows were created. */
static pawl_status walk_blocks(struct request_walk *walk, uint64_t first, size_t rows) {
  struct pwi_shard *shard = walk->shard;
  pawl_status status = PAWL_OK;
  for (size_t done = 0, count; done < rows && !status; done += count) {
    count = rows - done < PWI_BLOCK ? rows - done : PWI_BLOCK;
    status = pwi_shard_block(shard, first + done, count);
    if (!status) status = pwi_table_resolve(walk->vector->table, shard->keys, count, false, &shard->slots);
    if (!status) status = walk_named(walk, (struct pwi_rows_named){.slots = &shard->slots, .count = count});
  }
  return status;
}

/* Visits all rows of the request with keys in `part`. `by_list`: use slots also for ranges. */
static pawl_status walk_part(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_named *named, struct pawl_range part, bool by_list, visitor *visit) {
  struct request_walk walk = {.shard = shard,
                              .vector = vector,
                              .visit = visit,
                              .feed = {request->values, 0},
                              .unit = pwi_vector_pushed_bytes(vector, request->terms.kind)};
  part = pawl_range_common(part, request->terms.range);
  if (pawl_range_is_empty(part) || named->count == 0) return PAWL_OK;
  size_t from = (size_t)(part.begin - request->terms.range.begin), count = (size_t)pawl_range_size(part);
  if (named->keys) {
    from = pwi_first_not_below(named->keys, named->count, part.begin);
    count = pwi_first_not_below(named->keys, named->count, part.end) - from;
  }
  if (count == 0) return PAWL_OK;
  if (named->first + from > 0) pwi_feed_skip(&walk.feed, (named->first + from) * walk.unit);
  if (request->result) walk.result = (char *)request->result + (named->first + from) * vector->table->row_bytes;
  if (named->keys)
    return walk_named(&walk, (struct pwi_rows_named){.slots = named->slots, .from = from, .count = count});
  if (by_list || vector->table->is.sparse) return walk_blocks(&walk, part.begin, count);
  return walk_named(&walk, (struct pwi_rows_named){.first = part.begin, .count = count});
}

/* --- calling functions ---------------------------------------------------------------------------------- */

struct work {
  struct pwi_shard *shard;
  struct pwi_vector *vector;
  const struct pwi_request *request;
  const struct pwi_named *named;
  struct pawl_range part;
  visitor *visit;
  pawl_status status;
};

static void do_work(void *argument) {
  struct work *work = argument;
  work->status = walk_part(work->shard, work->vector, work->request, work->named, work->part, false, work->visit);
}

/* Functions from shared objects run where they cannot delay heartbeats. */
static pawl_status call_function(struct work work) {
  const struct pwi_shard_config *config = &work.shard->config;
  uint32_t number;
  if (config->run && !pwi_function_number(work.vector->rule->rule.function, &number))
    config->run(config->run_context, do_work, &work);
  else
    do_work(&work);
  return work.status;
}

/* --- checking, applying, restoring ---------------------------------------------------------------------- */

static pawl_status check(struct row_run *rows) {
  return pwi_applying_check(rows->vector->rule, rows->vector->table, rows->named, rows->pushed);
}

static pawl_status apply(struct row_run *rows) {
  pwi_applying_apply(rows->vector->rule, rows->vector->table, rows->named, rows->pushed, rows->result);
  return PAWL_OK;
}

static pawl_status restore(struct row_run *rows) {
  struct pwi_table *table = rows->vector->table;
  const char *row = rows->pushed;
  for (size_t i = 0; i < rows->named.count; i++, row += table->row_bytes + table->state_bytes) {
    char *result = rows->result ? rows->result + i * table->row_bytes : NULL;
    pwi_table_scatter(table, PWI_APPLY_ASSIGN, rows->named.slots, rows->named.from + i, 1, row, result);
    pwi_table_assign_state(table, rows->named.slots, rows->named.from + i, 1, row + table->row_bytes);
  }
  return PAWL_OK;
}

pawl_status pwi_vector_check(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                             const struct pwi_named *named, struct pawl_range part) {
  return call_function((struct work){shard, vector, request, named, part, check, PAWL_OK});
}

void pwi_vector_apply(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                      const struct pwi_named *named, struct pawl_range part) {
  pawl_status status = call_function((struct work){shard, vector, request, named, part, apply, PAWL_OK});
  assert(status == PAWL_OK);
  (void)status;
}

void pwi_vector_restore(struct pwi_shard *shard, struct pwi_vector *vector, const struct pwi_request *request,
                        const struct pwi_named *named, struct pawl_range part) {
  pawl_status status = walk_part(shard, vector, request, named, part, true, restore);
  assert(status == PAWL_OK);
  (void)status;
}
