/* push, pull, pushpull, scan, and prepared key lists. The client detects invalid calls; this file explains
 * them. */
#include <inttypes.h>

#include "api/vector.h"
#include "base/memory.h"

/* --- explaining errors ---------------------------------------------------------------------------------- */

/* Explains invalid keys: only keys of [0, size) exist. */
static pawl_status explain_keys(pawl_status status, const char *what, const struct pawl_vector *vector,
                                const uint64_t *keys, size_t count) {
  uint64_t size = vector->entry->is.size;
  for (size_t i = 0; i < count; i++) {
    if (status == PAWL_UNSORTED && i > 0 && keys[i] <= keys[i - 1])
      return pwi_error(status, "%s %s: key %" PRIu64 " at position %zu is not above the one before", what, vector->name,
                       keys[i], i);
    if (status == PAWL_OUT_OF_SPAN && keys[i] >= size)
      return pwi_error(status, "%s %s: key %" PRIu64 " at position %zu is outside the span [0, %" PRIu64 ")", what,
                       vector->name, keys[i], i, size);
  }
  return pwi_error_status(status, "%s %s", what, vector->name);
}

static pawl_status explain(pawl_status status, const char *what, const struct pawl_vector *vector,
                           const struct pawl_where *where) {
  struct pawl_range range = where->range;
  uint64_t size = vector->entry->is.size;
  bool is_beyond = range.begin > size || (range.end > size && range.end != PAWL_KEY_END);
  if (status == PAWL_OUT_OF_SPAN && is_beyond)
    return pwi_error(status, "%s %s: [%" PRIu64 ", %" PRIu64 ") reaches beyond the span [0, %" PRIu64 ")", what,
                     vector->name, range.begin, range.end, size);
  if (status == PAWL_UNSUPPORTED && vector->entry->is.placement == PAWL_PLACE_MIXED && !where->keys && !where->list)
    return pwi_error(status, "%s %s: with mixed placement ranges are not supported; use key lists", what, vector->name);
  if (status == PAWL_UNSUPPORTED)
    return pwi_error(status, "%s %s: the vector has lossy filters; use push and pull %s instead", what, vector->name,
                     where->operand ? "without an operand" : "alone");
  if (status == PAWL_TOO_LARGE && where->operand)
    return pwi_error(status, "%s %s: an operand of %zu rows has more than %d MiB", what, vector->name,
                     where->operand_rows, PAWL_SLICE_BYTES >> 20);
  if (status == PAWL_INVALID && where->operand && where->after_count == 0 && !where->parent)
    return pwi_error(status, "%s %s: only push and pushpull take an operand", what, vector->name);
  if (status == PAWL_INVALID && (where->after_count > 0 || where->parent))
    return pwi_error(status,
                     "%s %s: a task in `after` belongs to another session, or the task that the call should "
                     "be a part of has ended",
                     what, vector->name);
  if (where->keys) return explain_keys(status, what, vector, where->keys, where->count);
  if (where->node.id) return pwi_error_status(status, "%s %s at node %" PRIu64, what, vector->name, where->node.id);
  return pwi_session_error(vector->session, status, "%s %s", what, vector->name);
}

/* --- push and pull -------------------------------------------------------------------------------------- */

static bool is_nothing(const struct pawl_where *where) {
  if (pawl_range_is_empty(where->range)) return true;
  if (where->list) return pwi_keylist_count(where->list->inner) == 0;
  return where->keys && where->count == 0;
}

/* A range that ends at PAWL_KEY_END ends with the span. */
static struct pawl_range end_with_span(const struct pawl_vector *vector, struct pawl_range range) {
  uint64_t size = vector->entry->is.size;
  return range.end == PAWL_KEY_END && range.begin <= size ? pawl_range_of(range.begin, size) : range;
}

/* The range for the client. For it {0, 0} beside a list is no limit; an empty range never comes this far. */
static struct pawl_range limit_of(const struct pawl_vector *vector, const struct pawl_where *where) {
  bool is_all = where->range.begin == 0 && where->range.end == PAWL_KEY_END;
  if (is_all && (where->keys || where->list)) return pawl_range_of(0, 0);
  return end_with_span(vector, where->range);
}

struct row_call {
  enum pwi_request_kind kind;
  const char *what;
  const void *in;
  void *out;
  uint64_t aggregate, tick; /* a group and its tick; 0: none */
  uint64_t group;           /* of a pull whose rows may be old, by `staleness` ticks; 0: none */
  uint64_t staleness;
  const void *weights; /* for filters; may be NULL */
  bool flush;          /* flush of filters: all values that they hold back are sent */
};

/* A member of a group sends even a push without keys, because the others wait for it; but not if the range,
 * which all members share, is empty. */
static bool is_left_out(const struct pawl_where *where, const struct row_call *call) {
  if (call->aggregate) return pawl_range_is_empty(where->range);
  return is_nothing(where) && !call->flush;
}

static pawl_status check_where(const char *what, const struct pawl_vector *vector, const struct pawl_where *where) {
  if (where->keys && where->list)
    return pwi_error(PAWL_INVALID, "%s %s: both keys and list are given", what, vector->name);
  if (!where->keys && where->count > 0)
    return pwi_error(PAWL_INVALID, "%s %s: keys is NULL but count is %zu", what, vector->name, where->count);
  if (!where->after && where->after_count > 0)
    return pwi_error(PAWL_INVALID, "%s %s: after is NULL but after_count is %zu", what, vector->name,
                     where->after_count);
  if (where->range.begin > where->range.end)
    return pwi_error(PAWL_INVALID, "%s %s: the range ends before it begins", what, vector->name);
  if (!where->operand != (where->operand_rows == 0))
    return pwi_error(PAWL_INVALID, "%s %s: operand is %s, but operand_rows is %zu", what, vector->name,
                     where->operand ? "given" : "NULL", where->operand_rows);
  if (where->list && where->list->vector != vector->entry->id.id)
    return pwi_error(PAWL_INVALID, "%s %s: the list was made for another vector", what, vector->name);
  return where->node.id != 0 ? PAWL_OK : pwi_session_needs_servers(vector->session, what, vector->name);
}

/* Inside the gate. */
static pawl_status find_flow(struct pawl_vector *vector, uint64_t node, struct pwi_flow **flow_out) {
  *flow_out = vector->flow;
  if (node == 0) return PAWL_OK;
  if (node != vector->node) {
    pawl_status status = pwi_client_flow(vector->session->client, vector->entry->id, node, &vector->node_flow);
    if (status) return status;
    vector->node = node;
  }
  *flow_out = vector->node_flow;
  return PAWL_OK;
}

/* Inside the gate. */
static pawl_status start(struct pawl_vector *vector, const struct pawl_where *where, const struct row_call *call,
                         struct pawl_task *task) {
  struct pawl_session *session = vector->session;
  struct pwi_held_call held = {.kind = call->kind, .in = call->in, .out = call->out};
  bool is_held = where->after_count > 0 || where->parent;
  held.where = (struct pwi_where){.keys = where->keys,
                                  .count = where->count,
                                  .list = where->list ? where->list->inner : NULL,
                                  .range = limit_of(vector, where),
                                  .aggregate = call->aggregate,
                                  .tick = call->tick,
                                  .group = call->group,
                                  .staleness = call->staleness,
                                  .weights = call->weights,
                                  .flush = call->flush,
                                  .operand = where->operand,
                                  .operand_rows = where->operand_rows};
  if (where->clocks && call->kind == PWI_REQUEST_PULL) task->inner.clocks = &task->clocks;
  pawl_status status = find_flow(vector, where->node.id, &held.flow);
  if (status) return status;
  if (!is_held)
    return pwi_client_start(session->client, &task->inner, held.flow, call->kind, &held.where, call->in, call->out);
  struct pwi_after after = {where->after, where->after_count, where->parent, false};
  if (is_left_out(where, call))
    held.kind = 0;
  else
    status = pwi_client_check(session->client, held.flow, call->kind, &held.where);
  return status ? status : pwi_sequence_hold(&session->sequence, task, &held, &after);
}

/* Inside the gate. */
static pawl_status begin_call(struct pawl_vector *vector, const struct pawl_where *where, const struct row_call *call,
                              struct pawl_task **task_out) {
  struct pawl_session *session = vector->session;
  struct pawl_task *task;
  pawl_status status = pwi_session_task(session, &session->line, task_out, call->what, vector->name, &task);
  if (status) return status;
  if (is_left_out(where, call) && where->after_count == 0 && !where->parent) {
    task->inner.finished(&task->inner);
    if (task_out) *task_out = task;
    return PAWL_OK;
  }
  return pwi_session_started(session, task, start(vector, where, call, task), task_out);
}

static pawl_status run_call(struct pawl_vector *vector, const struct pawl_where *where, const struct row_call *call,
                            struct pawl_task **task_out) {
  if (!vector) return pwi_error(PAWL_INVALID, "%s: vector is NULL", call->what);
  pawl_status status = check_where(call->what, vector, where);
  if (status) return status;
  bool lacks_in = call->kind != PWI_REQUEST_PULL && !call->in, lacks_out = call->kind != PWI_REQUEST_PUSH && !call->out;
  if (call->flush) lacks_in = false;
  if ((lacks_in || lacks_out) && !is_nothing(where))
    return pwi_error(PAWL_INVALID, "%s %s: values or values_out is NULL", call->what, vector->name);
  struct pawl_session *session = vector->session;
  pwi_driver_enter(&session->driver);
  status = begin_call(vector, where, call, task_out);
  bool is_crowded = session->line.count >= PWI_SESSION_TASKS;
  pwi_driver_leave(&session->driver);
  if (is_crowded) pwi_session_catch_up(session);
  return status ? explain(status, call->what, vector, where) : PAWL_OK;
}

pawl_status pawl_vector_push(struct pawl_vector *vector, struct pawl_where where, const void *values,
                             struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PUSH, .what = "push to", .in = values};
  return run_call(vector, &where, &call, task_out);
}

pawl_status pwi_vector_push_aggregate(struct pawl_vector *vector, const struct pawl_where *where, const void *values,
                                      void *values_out, uint64_t group, uint64_t tick, struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PUSH, .what = "push to", .in = values, .aggregate = group, .tick = tick};
  if (values_out) {
    call.kind = PWI_REQUEST_PUSHPULL;
    call.what = "pushpull with";
    call.out = values_out;
  }
  if (vector && where->node.id != 0) return pwi_error(PAWL_UNSUPPORTED, "push of a group: a node cannot be named");
  return run_call(vector, where, &call, task_out);
}

static pawl_status begin_trigger(struct pwi_client *client, struct pawl_task *task) {
  struct pwi_trigger made = *task->trigger;
  return pwi_client_trigger(client, task->trigger, &task->inner, made.group, made.tick, made.flow, &made.where,
                            made.in);
}

/* Inside the gate. */
static pawl_status make_trigger(struct pawl_vector *vector, const struct pawl_where *where, const void *values,
                                struct pwi_vector_id group, uint64_t tick, struct pwi_trigger **trigger_out) {
  struct pwi_client *client = vector->session->client;
  struct pwi_trigger *trigger = pwi_alloc_zero(1, sizeof *trigger);
  if (!trigger) return PAWL_NO_MEMORY;
  trigger->where = (struct pwi_where){.keys = where->keys,
                                      .count = where->count,
                                      .list = where->list ? where->list->inner : NULL,
                                      .range = limit_of(vector, where),
                                      .operand = where->operand,
                                      .operand_rows = where->operand_rows};
  trigger->in = values;
  trigger->tick = tick;
  *trigger_out = trigger; /* the task owns it from now on */
  pawl_status status = pwi_client_flow(client, group, 0, &trigger->group);
  if (!status) status = find_flow(vector, where->node.id, &trigger->flow);
  return status ? status : pwi_client_check(client, trigger->flow, PWI_REQUEST_PUSH, &trigger->where);
}

/* Inside the gate. */
static pawl_status start_trigger(struct pawl_vector *vector, const struct pawl_where *where, const void *values,
                                 struct pwi_vector_id group, uint64_t tick, struct pawl_task **task_out) {
  struct pawl_session *session = vector->session;
  struct pawl_task *task;
  pawl_status status = pwi_session_task(session, &session->awaits, task_out, "trigger of", vector->name, &task);
  if (status) return status;
  status = make_trigger(vector, where, values, group, tick, &task->trigger);
  if (!status && where->after_count == 0 && !where->parent) {
    status = begin_trigger(session->client, task);
  } else if (!status) {
    struct pwi_held_call held = {.where = task->trigger->where, .begin = begin_trigger};
    struct pwi_after after = {where->after, where->after_count, where->parent, false};
    status = pwi_sequence_hold(&session->sequence, task, &held, &after);
  }
  return pwi_session_started(session, task, status, task_out);
}

pawl_status pwi_vector_trigger(struct pawl_vector *vector, const struct pawl_where *where, const void *values,
                               struct pwi_vector_id group, uint64_t tick, struct pawl_task **task_out) {
  pawl_status status = check_where("trigger of", vector, where);
  if (!status) status = pwi_session_needs_servers(vector->session, "trigger of", vector->name); /* for the ticks */
  if (status) return status;
  if (!values || is_nothing(where))
    return pwi_error(PAWL_INVALID, "trigger of %s: values is NULL, or no keys are named", vector->name);
  pwi_driver_enter(&vector->session->driver);
  status = start_trigger(vector, where, values, group, tick, task_out);
  pwi_driver_leave(&vector->session->driver);
  return status ? explain(status, "trigger of", vector, where) : PAWL_OK;
}

pawl_status pawl_vector_pull(struct pawl_vector *vector, struct pawl_where where, void *values,
                             struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PULL, .what = "pull from", .out = values};
  return run_call(vector, &where, &call, task_out);
}

pawl_status pwi_vector_pull_old(struct pawl_vector *vector, const struct pawl_where *where, void *values_out,
                                uint64_t group, uint64_t tick, uint64_t staleness, struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PULL,
                          .what = "pull from",
                          .out = values_out,
                          .tick = tick,
                          .group = group,
                          .staleness = staleness};
  if (vector && where->node.id != 0) return pwi_error(PAWL_UNSUPPORTED, "pull of a group: a node cannot be named");
  return run_call(vector, where, &call, task_out);
}

pawl_status pawl_vector_pushpull(struct pawl_vector *vector, struct pawl_where where, const void *values,
                                 void *values_out, struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PUSHPULL, .what = "pushpull with", .in = values, .out = values_out};
  return run_call(vector, &where, &call, task_out);
}

pawl_status pawl_vector_push_filtered(struct pawl_vector *vector, struct pawl_where where, const void *values,
                                      const void *weights, struct pawl_task **task_out) {
  struct row_call call = {.kind = PWI_REQUEST_PUSH, .what = "push to", .in = values, .weights = weights};
  return run_call(vector, &where, &call, task_out);
}

pawl_status pawl_vector_flush_filters(struct pawl_vector *vector, struct pawl_task **task_out) {
  struct pawl_where where = {0};
  struct row_call call = {.kind = PWI_REQUEST_PUSH, .what = "flush of filters of", .flush = true};
  return run_call(vector, &where, &call, task_out);
}

/* --- scan ----------------------------------------------------------------------------------------------- */

/* Pulls the rows of one arc and waits. If the time runs out, the task keeps the caller's memory until it
 * has finished. */
static pawl_status scan_arc(struct pawl_vector *vector, struct pawl_range range, size_t room, uint64_t *keys,
                            void *values, int64_t deadline, size_t *count_out, uint64_t *next_out) {
  struct pawl_session *session = vector->session;
  struct pawl_task *task = NULL;
  pwi_driver_enter(&session->driver);
  pawl_status status = pwi_session_task(session, &session->line, true, "scan of", vector->name, &task);
  if (!status) {
    status = pwi_client_scan(session->client, &task->inner, vector->flow, range, room, keys, values);
    status = pwi_session_started(session, task, status, NULL);
  }
  pwi_driver_leave(&session->driver);
  if (status) return status;
  status = pwi_driver_wait(&session->driver, &task->done, deadline) ? task->inner.status : PAWL_TIMED_OUT;
  if (status == PAWL_OK) {
    *count_out = (size_t)task->inner.rows;
    *next_out = task->inner.found;
  }
  pwi_task_unref(task);
  return status;
}

pawl_status pawl_vector_scan(struct pawl_vector *vector, struct pawl_range range, size_t room, uint64_t *keys,
                             void *values, int64_t timeout_ns, size_t *count_out, uint64_t *next_out) {
  if (!vector || !keys || !values || room == 0 || !count_out || !next_out)
    return pwi_error(PAWL_INVALID, "scan: an argument is NULL, or room is 0");
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  size_t row = pwi_entry_row_bytes(vector->entry), count = 0;
  struct pawl_where where = {.range = range};
  pawl_status status = check_where("scan of", vector, &where);
  if (status) return status;
  range = end_with_span(vector, range);
  while (count < room && !pawl_range_is_empty(range)) {
    size_t more;
    uint64_t next;
    status = scan_arc(vector, range, room - count, keys + count, (char *)values + count * row, deadline, &more, &next);
    if (!status && (more > room - count || next < range.begin || (next == range.begin && more == 0)))
      status = PAWL_CORRUPT;
    if (status) return explain(status, "scan of", vector, &where);
    count += more;
    range.begin = next;
  }
  *count_out = count;
  *next_out = pawl_range_is_empty(range) ? where.range.end : range.begin;
  return PAWL_OK;
}

/* --- prepared lists ------------------------------------------------------------------------------------- */

pawl_status pawl_keys_create(struct pawl_vector *vector, const uint64_t *keys, size_t count,
                             struct pawl_keys **list_out) {
  if (!vector || (!keys && count > 0) || !list_out)
    return pwi_error(PAWL_INVALID, "key list: vector, keys or list_out is NULL");
  struct pawl_session *session = vector->session;
  struct pawl_keys *list = pwi_alloc_zero(1, sizeof *list);
  if (!list) return pwi_error_status(PAWL_NO_MEMORY, "key list for %s", vector->name);
  list->session = session;
  list->vector = vector->entry->id.id;
  pwi_driver_enter(&session->driver);
  pawl_status status = session->is_closed
                           ? PAWL_NODE_STOPPED
                           : pwi_keylist_create(session->client, vector->entry, keys, count, &list->inner);
  if (!status) pwi_owned_add(&session->lists, &list->owned);
  pwi_driver_leave(&session->driver);
  if (status) {
    pwi_free(list);
    return explain_keys(status, "key list for", vector, keys, count);
  }
  *list_out = list;
  return PAWL_OK;
}

void pwi_keys_free(struct pwi_owned *owned) {
  struct pawl_keys *list = (struct pawl_keys *)owned;
  pwi_keylist_release(list->inner);
  pwi_free(list);
}

void pawl_keys_destroy(struct pawl_keys *list) {
  if (!list) return;
  struct pwi_driver *driver = &list->session->driver;
  pwi_driver_enter(driver);
  pwi_owned_remove(&list->owned);
  pwi_keys_free(&list->owned);
  pwi_driver_leave(driver);
}
