/* <pawl/destination.h>: a call to several places is a task with a push or pull for each of them as its parts. */
#include <pawl/destination.h>

#include <inttypes.h>
#include <stdio.h>

#include "api/group.h"
#include "api/vector.h"
#include "base/checked.h"
#include "base/memory.h"

/* --- a task with parts ---------------------------------------------------------------------------------- */

struct spread_call {
  struct pawl_vector *vector;
  struct pawl_where where;
  const char *in; /* of a push */
  char *out;      /* of a pull */
  struct pawl_task *task;
  bool has_handle;    /* the program asks the task how it ended; otherwise the next flush reports it */
  pawl_status status; /* of the first part that could not be started */
  size_t parts;
};

static pawl_status check(const char *what, const struct pawl_vector *vector, const struct pawl_where *where) {
  if (!vector) return pwi_error(PAWL_INVALID, "%s: vector is NULL", what);
  if (where->node.id != 0) return pwi_error(PAWL_INVALID, "%s %s: where names a node", what, vector->name);
  if (where->parent)
    return pwi_error(PAWL_INVALID, "%s %s: it has parts of its own, and cannot be one", what, vector->name);
  if (where->range.begin > where->range.end)
    return pwi_error(PAWL_INVALID, "%s %s: the range ends before it begins", what, vector->name);
  return PAWL_OK;
}

static pawl_status begin(struct spread_call *spread, const char *what, bool has_handle) {
  spread->has_handle = has_handle;
  char name[PAWL_NAME_MAX + 64];
  snprintf(name, sizeof name, "%s %s", what, spread->vector->name);
  return pawl_task_begin(spread->vector->session, name, &spread->task);
}

/* A part that cannot be started is the failure of the whole, unless nothing has been started. */
static void add_part(struct spread_call *spread, const struct pawl_where *where, size_t skip) {
  if (spread->status) return;
  struct pawl_where part = *where;
  struct pawl_task *task = NULL, **task_out = spread->has_handle ? &task : NULL;
  part.parent = spread->task;
  part.clocks = false;
  spread->status = spread->in ? pawl_vector_push(spread->vector, part, spread->in + skip, task_out)
                              : pawl_vector_pull(spread->vector, part, spread->out + skip, task_out);
  spread->parts += !spread->status;
  pawl_task_release(task);
}

static pawl_status end(struct spread_call *spread, struct pawl_task **task_out) {
  pawl_status status = pawl_task_end(spread->task, spread->status);
  bool has_failed = spread->parts == 0 && spread->status;
  if (has_failed || status || !task_out)
    pawl_task_release(spread->task);
  else
    *task_out = spread->task;
  return has_failed ? spread->status : status;
}

/* --- one server ----------------------------------------------------------------------------------------- */

/* The keys that a server serves, in some order, from the view of this moment. */
struct served_keys {
  struct pawl_range *ranges;
  size_t count, room;
};

/* Inside the gate: the keys of an arc of the vector; empty if the vector has none there. */
static struct pawl_range keys_of_arc(const struct pawl_vector *vector, const struct pwi_view *view, size_t arc) {
  struct pwi_place place = pwi_entry_place(vector->entry);
  return pwi_place_keys(&place, pwi_view_arc_range(view, arc));
}

static pawl_status find_held(struct pawl_vector *vector, uint64_t server, struct served_keys *held) {
  struct pwi_driver *driver = &vector->session->driver;
  pawl_status status = PAWL_OK;
  pwi_driver_enter(driver);
  const struct pwi_view *view = pwi_client_view(vector->session->client);
  for (size_t arc = 0; view && arc < view->arc_count && !status; arc++) {
    struct pawl_range keys = keys_of_arc(vector, view, arc);
    if (pwi_view_head(view, arc)->node.id != server || pawl_range_is_empty(keys)) continue;
    if (held->count > 0 && held->ranges[held->count - 1].end == keys.begin) {
      held->ranges[held->count - 1].end = keys.end;
      continue;
    }
    if (!PWI_GROW(held->ranges, held->room, held->count + 1)) status = PAWL_NO_MEMORY;
    if (!status) held->ranges[held->count++] = keys;
  }
  pwi_driver_leave(driver);
  return status;
}

/* Rows of a range lie from its begin on; those of a list have their places in the whole list. */
static void add_ranges(struct spread_call *spread, const struct served_keys *held, size_t row_bytes) {
  uint64_t size = spread->vector->entry->is.size;
  struct pawl_range all = spread->where.range;
  bool has_list = spread->where.keys || spread->where.list;
  if (all.end > size && all.end == PAWL_KEY_END && all.begin <= size) all.end = size;
  for (size_t i = 0; i < held->count; i++) {
    struct pawl_where part = spread->where;
    part.range = pawl_range_common(held->ranges[i], all);
    if (pawl_range_is_empty(part.range)) continue;
    add_part(spread, &part, has_list ? 0 : (size_t)(part.range.begin - all.begin) * row_bytes);
  }
}

static pawl_status spread_server(struct spread_call *spread, const char *what, struct pawl_node server,
                                 size_t row_bytes, struct pawl_task **task_out) {
  struct pawl_vector *vector = spread->vector;
  struct served_keys held = {0};
  uint64_t size = vector->entry->is.size;
  struct pawl_range range = spread->where.range;
  if (vector->entry->is.placement == PAWL_PLACE_MIXED)
    return pwi_error(PAWL_UNSUPPORTED, "%s %s: with mixed placement no server can be named", what, vector->name);
  if (range.end > size && range.end != PAWL_KEY_END)
    return pwi_error(PAWL_OUT_OF_SPAN, "%s %s: [%" PRIu64 ", %" PRIu64 ") reaches beyond the span [0, %" PRIu64 ")",
                     what, vector->name, range.begin, range.end, size);
  pawl_status status = pwi_session_needs_servers(vector->session, what, vector->name);
  if (status) return status;
  status = find_held(vector, server.id, &held);
  if (!status && held.count == 0) status = PAWL_NOT_FOUND;
  if (status)
    status = pwi_error_status(status, "%s %s at server %" PRIu64, what, vector->name, server.id);
  else
    status = begin(spread, what, task_out != NULL);
  if (!status) {
    add_ranges(spread, &held, row_bytes);
    status = end(spread, task_out);
  }
  pwi_free(held.ranges);
  return status;
}

pawl_status pawl_vector_push_server(struct pawl_vector *vector, struct pawl_node server, struct pawl_where where,
                                    const void *values, struct pawl_task **task_out) {
  static const char what[] = "push to a server of";
  struct spread_call spread = {.vector = vector, .where = where, .in = values};
  pawl_status status = check(what, vector, &where);
  if (!status && !values) status = pwi_error(PAWL_INVALID, "%s %s: values is NULL", what, vector->name);
  return status ? status : spread_server(&spread, what, server, pwi_entry_pushed_bytes(vector->entry), task_out);
}

pawl_status pawl_vector_pull_server(struct pawl_vector *vector, struct pawl_node server, struct pawl_where where,
                                    void *values, struct pawl_task **task_out) {
  static const char what[] = "pull from a server of";
  struct spread_call spread = {.vector = vector, .where = where, .out = values};
  pawl_status status = check(what, vector, &where);
  if (!status && !values) status = pwi_error(PAWL_INVALID, "%s %s: values is NULL", what, vector->name);
  return status ? status : spread_server(&spread, what, server, pwi_entry_row_bytes(vector->entry), task_out);
}

/* Inside the gate: true if the server serves keys of the vector. */
static bool serves(const struct pawl_vector *vector, const struct pwi_view *view, uint64_t node) {
  for (size_t arc = 0; arc < view->arc_count; arc++)
    if (pwi_view_head(view, arc)->node.id == node && !pawl_range_is_empty(keys_of_arc(vector, view, arc))) return true;
  return false;
}

pawl_status pawl_vector_servers(struct pawl_vector *vector, struct pawl_node *servers_out, size_t room,
                                size_t *count_out) {
  size_t count = 0;
  if (!vector || !count_out || (!servers_out && room > 0))
    return pwi_error(PAWL_INVALID, "servers of: vector, servers_out or count_out is NULL");
  pawl_status status = pwi_session_needs_servers(vector->session, "servers of", vector->name);
  if (status) return status;
  pwi_driver_enter(&vector->session->driver);
  const struct pwi_view *view = pwi_client_view(vector->session->client);
  for (size_t i = 0; view && i < view->node_count; i++) {
    if (!serves(vector, view, view->nodes[i].node.id)) continue;
    if (count < room) servers_out[count] = (struct pawl_node){view->nodes[i].node.id};
    count++;
  }
  pwi_driver_leave(&vector->session->driver);
  *count_out = count;
  return PAWL_OK;
}

/* --- a group -------------------------------------------------------------------------------------------- */

struct members {
  struct pawl_node *nodes;
  size_t count;
};

/* Members may come and go at any time: the call is about those of this moment. */
static pawl_status find_members(struct pawl_vector *vector, const char *what, const char *group,
                                struct members *members) {
  struct pwi_driver *driver = &vector->session->driver;
  struct pwi_vector_id id;
  pawl_status status = pwi_group_find(vector->session, what, group, &id);
  if (status) return status;
  pwi_driver_enter(driver);
  const struct pwi_membership_member *found =
      pwi_membership_members(pwi_client_membership(vector->session->client), id, &members->count);
  members->nodes = pwi_resize_array(NULL, members->count + 1, sizeof *members->nodes);
  for (size_t i = 0; members->nodes && i < members->count; i++) members->nodes[i].id = found[i].sender.id;
  pwi_driver_leave(driver);
  if (!members->nodes) status = PAWL_NO_MEMORY;
  if (!status && members->count == 0) status = PAWL_NOT_FOUND;
  if (!status) return PAWL_OK;
  pwi_free(members->nodes);
  return pwi_error_status(status, "%s %s: members of %s", what, vector->name, group);
}

static pawl_status spread_members(struct spread_call *spread, const char *what, const struct members *members,
                                  size_t bytes, struct pawl_task **task_out) {
  pawl_status status = begin(spread, what, task_out != NULL);
  if (status) return status;
  for (size_t i = 0; i < members->count; i++) {
    struct pawl_where part = spread->where;
    part.node = members->nodes[i];
    add_part(spread, &part, spread->in ? 0 : i * bytes);
  }
  return end(spread, task_out);
}

pawl_status pawl_vector_push_group(struct pawl_vector *vector, const char *group, struct pawl_where where,
                                   const void *values, struct pawl_task **task_out) {
  static const char what[] = "push to a group of";
  struct spread_call spread = {.vector = vector, .where = where, .in = values};
  struct members members;
  pawl_status status = check(what, vector, &where);
  if (!status && (!values || !group)) status = pwi_error(PAWL_INVALID, "%s: group or values is NULL", what);
  if (!status) status = find_members(vector, what, group, &members);
  if (status) return status;
  status = spread_members(&spread, what, &members, 0, task_out);
  pwi_free(members.nodes);
  return status;
}

/* The bytes that one member's rows take in the array of the caller. PAWL_TOO_LARGE. */
static pawl_status rows_bytes(const struct pawl_vector *vector, const struct pawl_where *where, size_t *bytes_out) {
  uint64_t size = vector->entry->is.size, rows = where->count;
  struct pawl_range range = where->range;
  if (range.end == PAWL_KEY_END && range.begin <= size) range.end = size;
  if (where->list)
    rows = pwi_keylist_count(where->list->inner);
  else if (!where->keys)
    rows = pawl_range_size(range);
  bool fits = rows <= SIZE_MAX && pwi_mul_size((size_t)rows, pwi_entry_row_bytes(vector->entry), bytes_out);
  return fits ? PAWL_OK : pwi_error(PAWL_TOO_LARGE, "pull from a group of %s: too many rows", vector->name);
}

pawl_status pawl_vector_pull_group(struct pawl_vector *vector, const char *group, struct pawl_where where, void *values,
                                   size_t room, struct pawl_node *members_out, size_t *count_out,
                                   struct pawl_task **task_out) {
  static const char what[] = "pull from a group of";
  struct spread_call spread = {.vector = vector, .where = where, .out = values};
  struct members members;
  size_t bytes = 0;
  pawl_status status = check(what, vector, &where);
  bool lacks = !group || !count_out || (room > 0 && (!values || !members_out));
  if (!status && lacks) status = pwi_error(PAWL_INVALID, "%s: group, values, members_out or count_out is NULL", what);
  if (!status) status = rows_bytes(vector, &where, &bytes);
  if (!status) status = find_members(vector, what, group, &members);
  if (status) return status;
  *count_out = members.count;
  if (members.count > room)
    status = pwi_error(PAWL_TOO_LARGE, "%s %s: %s has %zu members, and there is room for %zu", what, vector->name,
                       group, members.count, room);
  else
    status = spread_members(&spread, what, &members, bytes, task_out);
  for (size_t i = 0; i < members.count && !status; i++) members_out[i] = members.nodes[i];
  pwi_free(members.nodes);
  return status;
}
