/* The functions of <pawl/call.h> for callers: calls, graphs, triggers, tasks of other sessions.
 * offered_functions.c has those for callees. */
#include <pawl/call.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/group.h"
#include "api/session.h"
#include "api/vector.h"
#include "base/bytes.h"
#include "base/memory.h"

#define SYNC_NS (10 * INT64_C(1000000000))
#define DESCRIBED 16 /* most failures that are described */

/* The calls of a task. Freed with the last reference to the task, or earlier if the results can no longer
 * be queried. */
struct pwi_called {
  struct pwi_calling calling; /* must be first */
  struct pawl_task *task;
  struct pwi_call_graph *graph; /* until it begins */
  uint64_t node;
  char entry[PAWL_NAME_MAX + 1]; /* of the group, if no node is named */
  uint32_t graph_count;
  const char *names[]; /* names of the graph's functions; each lives as long as the pool */
};

void pwi_called_destroy(struct pwi_called *called) {
  if (!called) return;
  pwi_calling_fini(&called->calling);
  pwi_call_graph_destroy(called->graph);
  pwi_free(called);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static size_t count_answers(const struct pwi_called *called) {
  return (size_t)called->calling.leg_count * called->graph_count;
}

static struct pawl_answer answer_at(const struct pwi_called *called, size_t index) {
  const struct pwi_call_leg *leg = &called->calling.legs[index / called->graph_count];
  struct pawl_answer answer = {.node = {leg->node},
                               .call = (uint32_t)(index % called->graph_count),
                               .status = leg->status,
                               .cause = PAWL_CALL_NONE};
  if (answer.call >= leg->back.count) return answer;
  const struct pwi_call_result *result = &leg->back.results[answer.call];
  answer.status = result->status;
  answer.cause = result->cause;
  answer.bytes = result->bytes;
  answer.size = result->size;
  return answer;
}

size_t pawl_answer_count(const struct pawl_task *task) {
  return task && task->called && pawl_task_is_done(task) ? count_answers(task->called) : 0;
}

pawl_status pawl_answer_get(const struct pawl_task *task, size_t index, struct pawl_answer *answer_out) {
  if (index >= pawl_answer_count(task)) return pwi_error(PAWL_NOT_FOUND, "answer %zu does not exist", index);
  *answer_out = answer_at(task->called, index);
  return PAWL_OK;
}

static size_t add(char *text, size_t size, size_t used, const char *format, ...) PAWL_PRINTF(4, 5);

static size_t add(char *text, size_t size, size_t used, const char *format, ...) {
  va_list arguments;
  if (used >= size) return used;
  va_start(arguments, format);
  int more = vsnprintf(text + used, size - used, format, arguments);
  va_end(arguments);
  return more > 0 ? used + (size_t)more : used;
}

/* Writes "call of count at node 7: not found; at node 9: …", and in a graph the number of each call. */
void pwi_called_describe(const struct pawl_task *task, char *text, size_t size) {
  const struct pwi_called *called = task->called;
  size_t used = add(text, size, 0, "%s %s", task->what, task->subject), failures = 0;
  for (size_t i = 0; i < count_answers(called); i++) {
    struct pawl_answer answer = answer_at(called, i);
    if (!answer.status || ++failures > DESCRIBED) continue;
    used = add(text, size, used, "%s at node %" PRIu64, failures > 1 ? ";" : "", answer.node.id);
    if (called->graph_count > 1) used = add(text, size, used, ", call %u %s", answer.call, called->names[answer.call]);
    used = add(text, size, used, ": %s", pawl_status_text(answer.status));
    if (answer.cause != PAWL_CALL_NONE)
      used = add(text, size, used, ", because call %u %s failed", answer.cause, called->names[answer.cause]);
  }
  if (failures > DESCRIBED) used = add(text, size, used, "; and %zu more", failures - DESCRIBED);
  if (failures == 0) add(text, size, used, ": %s", pawl_status_text(task->inner.status));
}

/* --- calling -------------------------------------------------------------------------------------------- */

/* Inside the gate. */
static void ended(struct pwi_calling *calling) {
  struct pawl_task *task = ((struct pwi_called *)calling)->task;
  task->inner.status = calling->status;
  task->inner.finished(&task->inner);
}

/* Takes ownership of the graph. NULL: no memory. */
static struct pwi_called *make_called(struct pwi_task_pool *pool, struct pwi_call_graph *graph) {
  struct pwi_called *called = pwi_alloc_zero(1, sizeof *called + graph->count * sizeof *called->names);
  if (!called) {
    pwi_call_graph_destroy(graph);
    return NULL;
  }
  called->graph = graph;
  called->graph_count = graph->count;
  called->calling.ended = ended;
  for (uint32_t i = 0; i < graph->count; i++) {
    called->names[i] = pwi_task_pool_name(pool, graph->items[i].name);
    if (called->names[i]) continue;
    pwi_called_destroy(called);
    return NULL;
  }
  return called;
}

/* The names may be freed right after the call. */
static pawl_status begin(struct pwi_client *client, struct pawl_task *task) {
  struct pwi_called *called = task->called;
  struct pwi_call_graph *graph = called->graph;
  called->graph = NULL;
  const char *group = called->node != 0 ? NULL : called->entry;
  pawl_status status = pwi_client_call(client, &called->calling, called->node, group, graph);
  if (status) pwi_call_graph_destroy(graph);
  return status;
}

static pawl_status begin_or_hold(struct pawl_session *session, const struct pawl_target *target,
                                 struct pawl_task *task) {
  struct pwi_client_state state;
  if (target->after_count == 0 && !target->parent) return begin(session->client, task);
  struct pwi_held_call held = {.begin = begin};
  struct pwi_after after = {target->after, target->after_count, target->parent, false};
  pwi_client_state(session->client, &state);
  return state.may_write ? pwi_sequence_hold(&session->sequence, task, &held, &after) : PAWL_FORBIDDEN;
}

/* Inside the gate. Takes ownership of the graph, also on failure. */
static pawl_status start(struct pawl_session *session, struct pwi_task_line *line, const struct pawl_target *target,
                         const char *entry, const char *what, struct pwi_call_graph *graph,
                         struct pawl_task **task_out) {
  struct pawl_task *task;
  struct pwi_called *called = make_called(session->pool, graph);
  pawl_status status = called ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = pwi_session_task(session, line, task_out, what, called->names[0], &task);
  if (status) {
    pwi_called_destroy(called);
    return status;
  }
  task->called = called;
  called->task = task;
  called->node = target->node.id;
  memcpy(called->entry, entry, sizeof called->entry);
  if (task_out) *task_out = task; /* the task may be over before the next line */
  return pwi_session_started(session, task, begin_or_hold(session, target, task), NULL);
}

static pawl_status explain(pawl_status status, const char *what, const struct pawl_target *target, const char *name) {
  if (target->group) return pwi_error_status(status, "%s %s at group %s", what, name, target->group);
  return pwi_error_status(status, "%s %s at node %" PRIu64, what, name, target->node.id);
}

static pawl_status run_graph(struct pawl_session *session, struct pwi_task_line *line, const struct pawl_target *target,
                             const char *what, struct pwi_call_graph *graph, struct pawl_task **task_out) {
  char entry[PAWL_NAME_MAX + 1] = "", name[PAWL_NAME_MAX + 1];
  memcpy(name, graph->items[0].name, sizeof name);
  pawl_status status = target->node.id != 0 ? PAWL_OK : pwi_group_entry_name(what, target->group, entry);
  if (status) {
    pwi_call_graph_destroy(graph);
    return status;
  }
  struct pawl_task *task;
  pwi_driver_enter(&session->driver);
  status = start(session, line, target, entry, what, graph, task_out ? &task : NULL);
  bool is_crowded = session->line.count >= PWI_SESSION_TASKS;
  pwi_driver_leave(&session->driver);
  if (status) return explain(status, what, target, name);
  if (task_out) *task_out = task;
  if (is_crowded) pwi_session_catch_up(session);
  return PAWL_OK;
}

static pawl_status call_one(struct pawl_session *session, struct pwi_task_line *line, const struct pawl_target *target,
                            const char *what, const char *name, const void *argument, size_t size,
                            struct pawl_task **task_out) {
  struct pawl_graph_call call = {name, argument, size};
  struct pwi_call_graph *graph;
  uint32_t culprit;
  pawl_status status = pwi_call_graph_create(&call, 1, NULL, 0, &graph, &culprit);
  if (status == PAWL_INVALID)
    return pwi_error(status,
                     "%s '%s': invalid function name (words separated by slashes), or argument is NULL but size > 0",
                     what, name ? name : "");
  if (status) return pwi_error_status(status, "%s %s: %zu bytes", what, name, size);
  return run_graph(session, line, target, what, graph, task_out);
}

pawl_status pawl_call(struct pawl_session *session, struct pawl_target target, const char *name, const void *argument,
                      size_t size, struct pawl_task **task_out) {
  if (!session) return pwi_error(PAWL_INVALID, "call: session is NULL");
  if (name && name[0] == '.')
    return pwi_error(PAWL_INVALID, "call of '%s': names that begin with a dot are reserved", name);
  return call_one(session, &session->line, &target, "call of", name, argument, size, task_out);
}

static pawl_status explain_graph(pawl_status status, const struct pawl_graph_call *calls, size_t count,
                                 uint32_t culprit) {
  const char *name = culprit < count && calls[culprit].name ? calls[culprit].name : "";
  if (status != PAWL_INVALID) return pwi_error_status(status, "graph of %zu calls", count);
  if (culprit == PAWL_CALL_NONE) return pwi_error(status, "graph: count is 0, or calls or edges is NULL");
  if (culprit >= count)
    return pwi_error(status, "graph: an edge names call %u, but there are only %zu calls", culprit, count);
  if (pwi_call_name_check(name))
    return pwi_error(status, "graph: '%s' of call %u is not a valid function name", name, culprit);
  return pwi_error(status, "graph: call %u %s is in a cycle, or its argument is NULL but size > 0", culprit, name);
}

pawl_status pawl_call_graph(struct pawl_session *session, struct pawl_target target,
                            const struct pawl_graph_call *calls, size_t count, const struct pawl_edge *edges,
                            size_t edge_count, struct pawl_task **task_out) {
  struct pwi_call_graph *graph;
  uint32_t culprit;
  if (!session) return pwi_error(PAWL_INVALID, "call: session is NULL");
  pawl_status status = pwi_call_graph_create(calls, count, edges, edge_count, &graph, &culprit);
  if (status) return explain_graph(status, calls, count, culprit);
  return run_graph(session, &session->line, &target, count == 1 ? "call of" : "graph from", graph, task_out);
}

pawl_status pwi_call_aside(struct pawl_session *session, struct pawl_target target, const char *name,
                           const void *argument, size_t size, struct pawl_task **task_out) {
  return call_one(session, &session->awaits, &target, "call of", name, argument, size, task_out);
}

/* --- tasks of other sessions ---------------------------------------------------------------------------- */

static pawl_status wait_elsewhere(struct pawl_session *session, struct pwi_task_line *line, struct pawl_node node,
                                  uint64_t id, struct pawl_task **task_out) {
  uint8_t argument[sizeof id];
  struct pawl_target target = pawl_to_node(node);
  pwi_put_u64(argument, id);
  return call_one(session, line, &target, "wait by", PWI_FUNCTION_WAIT, argument, sizeof argument, task_out);
}

pawl_status pawl_task_elsewhere(struct pawl_session *session, struct pawl_node node, uint64_t id,
                                struct pawl_task **task_out) {
  if (!session || node.id == 0) return pwi_error(PAWL_INVALID, "task elsewhere: session is NULL, or node is 0");
  return wait_elsewhere(session, &session->line, node, id, task_out);
}

pawl_status pwi_task_elsewhere_aside(struct pawl_session *session, struct pawl_node node, uint64_t id,
                                     struct pawl_task **task_out) {
  return wait_elsewhere(session, &session->awaits, node, id, task_out);
}

/* --- triggers ------------------------------------------------------------------------------------------- */

static bool know_group(struct pawl_session *session, const char *entry, struct pwi_vector_id *id_out) {
  pwi_driver_enter(&session->driver);
  const struct pwi_entry *known = pwi_catalogue_named(pwi_client_catalogue(session->client), entry);
  if (known) *id_out = known->id;
  pwi_driver_leave(&session->driver);
  return known != NULL;
}

pawl_status pwi_group_find(struct pawl_session *session, const char *what, const char *group,
                           struct pwi_vector_id *id_out) {
  char entry[PAWL_NAME_MAX + 1];
  pawl_status status = pwi_group_entry_name(what, group, entry);
  if (status || know_group(session, entry, id_out)) return status;
  status = pwi_session_ask(session, PWI_ASK_SYNC, NULL, pwi_driver_deadline(SYNC_NS), NULL, NULL);
  if (!status && !know_group(session, entry, id_out)) status = PAWL_NOT_FOUND;
  return status ? pwi_error_status(status, "%s %s", what, group) : PAWL_OK;
}

pawl_status pawl_trigger(struct pawl_session *session, const char *group, uint64_t tick, struct pawl_vector *vector,
                         struct pawl_where where, const void *values, struct pawl_task **task_out) {
  struct pwi_vector_id id;
  if (!session || !vector || vector->session != session)
    return pwi_error(PAWL_INVALID, "trigger: session or vector is NULL, or vector belongs to another session");
  pawl_status status = pwi_group_find(session, "trigger at", group, &id);
  if (status) return status;
  return pwi_vector_trigger(vector, &where, values, id, tick, task_out);
}
