/* Groups: <pawl/group.h>. To the cluster a group is an entry of the catalogue whose second word begins
 * with a dot. Joining and leaving serve peer groups, too (api/peer.c). */
#include <pawl/group.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/group.h"
#include "api/vector.h"
#include "base/memory.h"

struct pwi_flow *pwi_group_flow(const struct pawl_group *group) {
  return group->flow;
}

const char *pwi_group_name(const struct pawl_group *group) { return group->name; }

void pwi_group_free(struct pwi_owned *owned) {
  struct pawl_group *group = (struct pawl_group *)owned;
  for (struct pwi_lapser_name *name = group->lapser_names, *next; name; name = next) {
    next = name->next;
    pwi_free(name);
  }
  pwi_free(group);
}

/* --- joining -------------------------------------------------------------------------------------------- */

pawl_status pwi_group_entry_name(const char *what, const char *name, char entry[PAWL_NAME_MAX + 1]) {
  const char *slash = name ? strchr(name, '/') : NULL;
  int length = 0;
  if (slash && slash[1] != '.')
    length = snprintf(entry, PAWL_NAME_MAX + 1, "%.*s/.%s", (int)(slash - name), name, slash + 1);
  if (length > 0 && length <= PAWL_NAME_MAX && pwi_name_check(entry, PWI_ENTRY_GROUP) == PAWL_OK) return PAWL_OK;
  return pwi_error(PAWL_INVALID, "%s '%s': the name of a group must be two words separated by a slash", what,
                   name ? name : "");
}

static pawl_status ask_to_join(struct pawl_session *session, enum pwi_entry_kind kind, const char *entry, uint32_t size,
                               int64_t deadline, struct pwi_vector_id *id_out) {
  struct pwi_writer writer = {0};
  struct pwi_reader reader;
  void *reply;
  size_t reply_size;
  pwi_write_text(&writer, entry);
  pwi_write_u32(&writer, size);
  enum pwi_ask what = kind == PWI_ENTRY_PEERS ? PWI_ASK_PEERS : PWI_ASK_GROUP;
  pawl_status status = pwi_session_ask(session, what, &writer, deadline, &reply, &reply_size);
  pwi_writer_fini(&writer);
  if (status) return status;
  pwi_reader_init(&reader, reply, reply_size);
  id_out->id = pwi_read_u64(&reader);
  status = pwi_reader_end(&reader);
  pwi_free(reply);
  return status;
}

/* A founder enters at tick 0, any other member at the highest tick of any member. */
static pawl_status enter(struct pawl_group *group, int64_t deadline) {
  struct pawl_session *session = group->session;
  struct pawl_task *task = NULL;
  pwi_driver_enter(&session->driver);
  pawl_status status = pwi_session_task(session, &session->line, true, "join", group->name, &task);
  if (!status)
    status = pwi_session_started(session, task, pwi_client_enter(session->client, &task->inner, group->flow), NULL);
  pwi_driver_leave(&session->driver);
  if (status) return status;
  status = pwi_driver_wait(&session->driver, &task->done, deadline) ? task->inner.status : PAWL_TIMED_OUT;
  if (!status) atomic_store(&group->tick, task->inner.found);
  pwi_task_unref(task);
  return status;
}

/* Inside the gate. The manager takes a second join for a repetition of the first, so duplicates are
 * detected here. A name of the other kind is left to the manager. */
static bool is_member(const struct pawl_session *session, enum pwi_entry_kind kind, const char *name) {
  for (const struct pwi_owned *at = session->groups.next; at != &session->groups; at = at->next) {
    const struct pawl_group *group = (const struct pawl_group *)at;
    if (group->name == name && group->kind == kind && !group->is_leaving) return true;
  }
  return false;
}

static pawl_status make_group(struct pawl_session *session, enum pwi_entry_kind kind, const char *name,
                              struct pawl_group **group_out) {
  struct pawl_group *group = pwi_alloc_zero(1, sizeof *group);
  if (!group) return pwi_error_status(PAWL_NO_MEMORY, "join %s", name);
  group->session = session;
  group->kind = kind;
  pwi_driver_enter(&session->driver);
  group->name = pwi_task_pool_name(session->pool, name);
  pawl_status status = !group->name ? PAWL_NO_MEMORY : is_member(session, kind, group->name) ? PAWL_EXISTS : PAWL_OK;
  if (!status) pwi_owned_add(&session->groups, &group->owned);
  pwi_driver_leave(&session->driver);
  if (status) {
    pwi_free(group);
    return pwi_error_status(status, "join %s", name);
  }
  *group_out = group;
  return PAWL_OK;
}

/* Outside the gate: the manager's MISMATCH in words. Its reply came after its news, so the catalogue has the
 * entry. */
static pawl_status explain_mismatch(struct pawl_session *session, enum pwi_entry_kind kind, const char *name,
                                    const char *entry_name, uint32_t size) {
  enum pwi_entry_kind found = kind;
  uint32_t founders = 0;
  pwi_driver_enter(&session->driver);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(session->client), entry_name);
  if (entry) {
    const struct pwi_membership_group *group = pwi_membership_group(pwi_client_membership(session->client), entry->id);
    found = entry->kind;
    founders = group ? group->size : 0;
  }
  pwi_driver_leave(&session->driver);
  if (found != kind)
    return pwi_error(PAWL_MISMATCH, "join %s: the name belongs to a %s; join it with %s, or choose another name", name,
                     found == PWI_ENTRY_PEERS ? "peer group" : "group",
                     found == PWI_ENTRY_PEERS ? "pawl_peers_join" : "pawl_group_join");
  return pwi_error(PAWL_MISMATCH, "join %s: the %s was created for %" PRIu32 " founding members, not for %" PRIu32,
                   name, kind == PWI_ENTRY_PEERS ? "peer group" : "group", founders, size);
}

/* Outside the gate: the manager has added this session. From now on the client rejoins a peer group by
 * itself. PAWL_NODE_RETIRED: the session was declared dead before that and must ask again; members of a group
 * notice when they enter. */
static pawl_status become_member(struct pawl_group *group) {
  struct pawl_session *session = group->session;
  struct pwi_client_state state;
  size_t count, before;
  pwi_driver_enter(&session->driver);
  pawl_status status = pwi_client_flow(session->client, group->id, 0, &group->flow);
  if (!status && group->kind == PWI_ENTRY_PEERS) {
    const struct pwi_membership_member *members = pwi_group_members(group, &count, &before);
    pwi_client_state(session->client, &state);
    pwi_client_stay(group->flow);
    if (before == count || members[before].sender.id != state.sender) status = PAWL_NODE_RETIRED;
  }
  pwi_driver_leave(&session->driver);
  return status;
}

pawl_status pwi_group_join(struct pawl_session *session, enum pwi_entry_kind kind, const char *name, uint32_t size,
                           int64_t deadline, struct pawl_group **group_out) {
  char entry[PAWL_NAME_MAX + 1];
  struct pawl_group *group = NULL;
  pawl_status status = pwi_group_entry_name("join", name, entry);
  if (!status) status = make_group(session, kind, name, &group);
  if (status) return status;
  do {
    status = ask_to_join(session, kind, entry, size, deadline, &group->id);
    if (!status) status = become_member(group);
  } while (status == PAWL_NODE_RETIRED);
  if (!status) {
    *group_out = group;
    return PAWL_OK;
  }
  pawl_group_leave(group);
  if (status == PAWL_MISMATCH) return explain_mismatch(session, kind, name, entry, size);
  return pwi_session_error(session, status, "join %s", name);
}

pawl_status pawl_group_join(struct pawl_session *session, const char *name, uint32_t size, int64_t timeout_ns,
                            struct pawl_group **group_out) {
  struct pawl_group *group = NULL;
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pawl_status status = pwi_session_needs_servers(session, "join", name ? name : "");
  if (!status) status = pwi_group_join(session, PWI_ENTRY_GROUP, name, size, deadline, &group);
  if (status) return status;
  status = enter(group, deadline);
  if (status) {
    pawl_group_leave(group);
    return pwi_session_error(session, status, "join %s", name);
  }
  *group_out = group;
  return PAWL_OK;
}

/* --- leaving -------------------------------------------------------------------------------------------- */

static void discard(struct pawl_group *group) {
  pwi_owned_remove(&group->owned);
  pwi_group_free(&group->owned);
}

static void has_left(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct pawl_group *group = (struct pawl_group *)((char *)asking - offsetof(struct pawl_group, leaving));
  (void)status;
  (void)payload;
  (void)size;
  group->is_left = true;
  if (group->is_abandoned) discard(group);
}

void pwi_group_step_out(struct pawl_group *group) {
  struct pwi_writer writer = {0};
  if (group->is_leaving) return;
  group->is_leaving = true;
  group->leaving.replied = has_left;
  if (group->flow) pwi_client_exit(group->flow);
  pwi_write_u64(&writer, group->id.id);
  bool is_asked =
      group->id.id != 0 && !group->session->is_closed && !writer.status &&
      pwi_client_ask(group->session->client, &group->leaving, PWI_ASK_UNGROUP, writer.data, writer.size) == PAWL_OK;
  group->is_left = !is_asked;
  pwi_writer_fini(&writer);
}

/* The manager's answer is not waited for: the struct is freed when it comes, or with the session. */
void pawl_group_leave(struct pawl_group *group) {
  if (!group) return;
  struct pwi_driver *driver = &group->session->driver;
  pwi_driver_enter(driver);
  group->is_abandoned = true;
  pwi_group_step_out(group);
  if (group->is_left)
    discard(group);
  else
    pwi_driver_nudge(driver); /* the group may be freed here */
  pwi_driver_leave(driver);
}

/* --- membership ----------------------------------------------------------------------------------------- */

uint64_t pawl_group_tick(const struct pawl_group *group) { return atomic_load(&group->tick); }

const struct pwi_membership_member *pwi_group_members(const struct pawl_group *group, size_t *count_out,
                                                      size_t *before_out) {
  const struct pwi_client *client = group->session->client;
  struct pwi_client_state state;
  pwi_client_state(client, &state);
  const struct pwi_membership_member *members =
      pwi_membership_members(pwi_client_membership(client), group->id, count_out);
  *before_out = 0;
  while (*before_out < *count_out && members[*before_out].sender.id < state.sender) (*before_out)++;
  return members;
}

static uint32_t count_members(const struct pawl_group *group, bool only_before_us) {
  size_t count, before;
  pwi_driver_enter(&group->session->driver);
  (void)pwi_group_members(group, &count, &before);
  pwi_driver_leave(&group->session->driver);
  return (uint32_t)(only_before_us ? before : count);
}

uint32_t pawl_group_size(const struct pawl_group *group) { return count_members(group, false); }

uint32_t pawl_group_rank(const struct pawl_group *group) { return count_members(group, true); }

/* --- ticks ---------------------------------------------------------------------------------------------- */

/* Inside the gate. Held pushes have no number yet, so a tick would not wait for them by itself. */
static pawl_status start_tick(struct pawl_group *group, struct pawl_task *task, uint64_t tick,
                              const struct pwi_after *after) {
  struct pawl_session *session = group->session;
  struct pwi_held_call call = {.kind = PWI_REQUEST_TICK, .flow = group->flow, .tick = tick};
  if (after->count > 0) return pwi_sequence_hold(&session->sequence, task, &call, after);
  if (session->sequence.held > 0) return pwi_sequence_hold_behind(&session->sequence, task, &call);
  return pwi_client_tick(session->client, &task->inner, group->flow, tick);
}

static pawl_status clock_after(struct pawl_group *group, const struct pwi_after *after, struct pawl_task **task_out) {
  struct pawl_session *session = group->session;
  struct pawl_task *task;
  pwi_driver_enter(&session->driver);
  uint64_t tick = atomic_load(&group->tick) + 1;
  pawl_status status = pwi_session_task(session, &session->line, task_out, "clock of", group->name, &task);
  if (!status) status = pwi_session_started(session, task, start_tick(group, task, tick, after), task_out);
  if (!status) atomic_store(&group->tick, tick);
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "clock of %s", group->name) : PAWL_OK;
}

pawl_status pawl_group_clock(struct pawl_group *group, struct pawl_task **task_out) {
  return clock_after(group, &(struct pwi_after){0}, task_out);
}

pawl_status pawl_group_clock_after(struct pawl_group *group, struct pawl_task *const *tasks, size_t count,
                                   struct pawl_task **task_out) {
  if (!group || (!tasks && count > 0))
    return pwi_error(PAWL_INVALID, "clock: group is NULL, or tasks is NULL but count > 0");
  return clock_after(group, &(struct pwi_after){.tasks = tasks, .count = count}, task_out);
}

pawl_status pawl_group_push(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                            const void *values, struct pawl_task **task_out) {
  return pwi_vector_push_aggregate(vector, &where, values, NULL, group->id.id, pawl_group_tick(group) + 1, task_out);
}

pawl_status pawl_group_pushpull(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                                const void *values, void *values_out, struct pawl_task **task_out) {
  static char nothing[1]; /* for a push without results */
  bool is_empty = !where.list && where.count == 0 && (where.keys || pawl_range_is_empty(where.range));
  if (!values_out && !is_empty) return pwi_error(PAWL_INVALID, "pushpull of a group: values_out is NULL");
  return pwi_vector_push_aggregate(vector, &where, values, values_out ? values_out : nothing, group->id.id,
                                   pawl_group_tick(group) + 1, task_out);
}

pawl_status pawl_group_pull(struct pawl_group *group, struct pawl_vector *vector, struct pawl_where where,
                            uint64_t staleness, void *values_out, struct pawl_task **task_out) {
  return pwi_vector_pull_old(vector, &where, values_out, group->id.id, pawl_group_tick(group), staleness, task_out);
}

pawl_status pawl_group_await(struct pawl_group *group, uint64_t tick, int64_t timeout_ns) {
  struct pawl_session *session = group->session;
  struct pawl_task *task = NULL;
  pwi_driver_enter(&session->driver);
  pawl_status status = pwi_session_task(session, &session->awaits, true, "wait for", group->name, &task);
  if (!status)
    status =
        pwi_session_started(session, task, pwi_client_await(session->client, &task->inner, group->flow, tick), NULL);
  pwi_driver_leave(&session->driver);
  if (status) return pwi_error_status(status, "wait for %s", group->name);
  bool is_done = pwi_driver_wait(&session->driver, &task->done, pwi_driver_deadline(timeout_ns));
  status = is_done ? task->inner.status : PAWL_TIMED_OUT;
  pwi_task_unref(task);
  return status ? pwi_session_error(session, status, "wait for tick %" PRIu64 " of %s", tick, group->name) : PAWL_OK;
}

/* Starts tick and wait at once, and waits for both. A member that was declared dead in the meantime is not
 * waited for, and might be released before its own tick is applied; a member that enters then would enter
 * below the barrier. */
pawl_status pawl_group_barrier(struct pawl_group *group, int64_t timeout_ns) {
  struct pawl_task *tick = NULL;
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pawl_status status = pawl_group_clock(group, &tick);
  if (status) return status;
  status = pawl_group_await(group, pawl_group_tick(group), timeout_ns);
  if (!status && !pwi_driver_wait(&group->session->driver, &tick->done, deadline))
    status = pwi_session_error(group->session, PAWL_TIMED_OUT, "clock of %s", group->name);
  else if (!status && tick->inner.status)
    status = pwi_error_status(tick->inner.status, "clock of %s", group->name);
  pawl_task_release(tick);
  return status;
}
