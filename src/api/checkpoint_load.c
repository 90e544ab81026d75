/* Loads a checkpoint: reads its files here and pushes their rows unchanged (RESTORE in
 * protocol/protocol.h).
 *
 * Rows are sent in the order of the files, several chunks at a time. A client's pushes to one range take
 * effect in order, so the last row of a key counts.
 */
#include <string.h>

#include <pawl/checkpoint.h>

#include "api/options.h"
#include "api/session.h"
#include "base/memory.h"
#include "checkpoint/checkpoint.h"

#define SLOTS 24 /* chunks under way, a megabyte each */

/* A chunk that is being pushed. */
struct chunk_push {
  struct pawl_task *task; /* NULL: free */
  char *memory;
  size_t room;
};

struct loading {
  struct pawl_session *session;
  const struct pawl_checkpoint_options *options;
  int64_t deadline;
  const struct pwi_manifest *manifest;
  struct pwi_flow **flows; /* one for each vector of the manifest */
  struct chunk_push slots[SLOTS];
  size_t next;
  struct pawl_checkpoint_info info;
  uint64_t total; /* size of all files */
};

static void tell(const struct loading *loading, const char *stage) {
  double part = loading->total ? (double)loading->info.bytes / (double)loading->total : 0;
  struct pawl_checkpoint_progress progress = {stage, loading->info.bytes, part < 1 ? part : 1};
  if (loading->options->progress) loading->options->progress(loading->options->context, &progress);
}

/* Whether the vector was requested. */
static bool is_wanted(const struct loading *loading, const struct pwi_manifest_vector *vector) {
  return !loading->options->space || pwi_name_is_in(vector->name, loading->options->space);
}

/* --- vectors -------------------------------------------------------------------------------------------- */

static pawl_status refuse_other(const struct pwi_manifest_vector *vector) {
  return pwi_error(PAWL_MISMATCH,
                   "load %s: the vector exists with another type, width, size, function, placement or layout",
                   vector->name);
}

/* Inside the gate. */
static pawl_status check_vector(const struct pawl_session *session, const struct pwi_manifest_vector *vector) {
  struct pwi_client_state state;
  if (session->is_closed) return pwi_error_status(PAWL_NODE_STOPPED, "load %s", vector->name);
  pwi_client_state(session->client, &state);
  if (!state.may_write || (state.space[0] && !pwi_name_is_in(vector->name, state.space)))
    return pwi_error_status(PAWL_FORBIDDEN, "load %s", vector->name);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(session->client), vector->name);
  return entry && !pwi_options_equal(&entry->is, &vector->is) ? refuse_other(vector) : PAWL_OK;
}

/* Called before any vector starts a new incarnation, so that a checkpoint that cannot be loaded changes
 * nothing. */
static pawl_status check_vectors(const struct loading *loading) {
  struct pawl_session *session = loading->session;
  pawl_status status = pwi_session_ask(session, PWI_ASK_SYNC, NULL, loading->deadline, NULL, NULL);
  if (status) return pwi_error_status(status, "load");
  pwi_driver_enter(&session->driver);
  for (size_t i = 0; i < loading->manifest->vector_count && !status; i++)
    if (is_wanted(loading, &loading->manifest->vectors[i]))
      status = check_vector(session, &loading->manifest->vectors[i]);
  pwi_driver_leave(&session->driver);
  return status;
}

static pawl_status begin_vector(struct loading *loading, size_t index) {
  const struct pwi_manifest_vector *vector = &loading->manifest->vectors[index];
  struct pawl_session *session = loading->session;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, vector->name);
  pwi_options_write(&writer, &vector->is);
  pawl_status status = pwi_session_ask(session, PWI_ASK_RESTORE_BEGIN, &writer, loading->deadline, NULL, NULL);
  pwi_writer_fini(&writer);
  if (status == PAWL_MISMATCH) return refuse_other(vector);
  if (status) return pwi_error_status(status, "load %s", vector->name);
  pwi_driver_enter(&session->driver);
  const struct pwi_entry *entry =
      session->is_closed ? NULL : pwi_catalogue_named(pwi_client_catalogue(session->client), vector->name);
  status = entry ? pwi_client_flow(session->client, entry->id, 0, &loading->flows[index]) : PAWL_NOT_FOUND;
  pwi_driver_leave(&session->driver);
  return status ? pwi_error_status(status, "load %s", vector->name) : PAWL_OK;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static pawl_status await_slot(struct loading *loading, struct chunk_push *slot) {
  if (!slot->task) return PAWL_OK;
  pawl_status status = PAWL_TIMED_OUT;
  if (pwi_driver_wait(&loading->session->driver, &slot->task->done, loading->deadline)) {
    status = slot->task->inner.status;
    const char *name = slot->task->subject;
    pwi_task_unref(slot->task);
    slot->task = NULL;
    if (status) return pwi_error_status(status, "load %s", name);
  }
  return status ? pwi_session_error(loading->session, status, "load") : PAWL_OK;
}

/* Copies each row with its state. */
static void copy_rows(char *to, const struct pwi_chunk *chunk) {
  if (chunk->state_bytes == 0) {
    memcpy(to, chunk->values, chunk->count * chunk->row_bytes);
    return;
  }
  for (size_t i = 0; i < chunk->count; i++) {
    memcpy(to, chunk->values + i * chunk->row_bytes, chunk->row_bytes);
    memcpy(to + chunk->row_bytes, chunk->state + i * chunk->state_bytes, chunk->state_bytes);
    to += chunk->row_bytes + chunk->state_bytes;
  }
}

static pawl_status fill_slot(struct chunk_push *slot, const struct pwi_chunk *chunk) {
  size_t keys = chunk->keys ? chunk->count * sizeof(uint64_t) : 0,
         values = chunk->count * (chunk->row_bytes + chunk->state_bytes);
  if (slot->room < keys + values) {
    char *memory = pwi_resize(slot->memory, keys + values);
    if (!memory) return PAWL_NO_MEMORY;
    slot->memory = memory;
    slot->room = keys + values;
  }
  for (size_t i = 0; chunk->keys && i < chunk->count; i++) {
    uint64_t key = pwi_chunk_key(chunk, i);
    memcpy(slot->memory + i * sizeof key, &key, sizeof key);
  }
  copy_rows(slot->memory + keys, chunk);
  return PAWL_OK;
}

/* Inside the gate. */
static pawl_status start(struct loading *loading, struct chunk_push *slot, size_t index,
                         const struct pwi_chunk *chunk) {
  struct pawl_session *session = loading->session;
  const char *name = pwi_task_pool_name(session->pool, loading->manifest->vectors[index].name);
  if (!name) return PAWL_NO_MEMORY;
  pawl_status status = pwi_session_task(session, &session->line, true, "load", name, &slot->task);
  if (status) return status;
  struct pwi_where where = {0};
  if (chunk->keys) {
    where.keys = (const uint64_t *)(const void *)slot->memory;
    where.count = chunk->count;
  } else {
    where.range = pawl_range_of(chunk->first, chunk->first + chunk->count);
  }
  const char *values = slot->memory + (chunk->keys ? chunk->count * sizeof(uint64_t) : 0);
  struct pawl_task *task = slot->task;
  status =
      pwi_client_start(session->client, &task->inner, loading->flows[index], PWI_REQUEST_RESTORE, &where, values, NULL);
  if (status) slot->task = NULL;
  return pwi_session_started(session, task, status, NULL);
}

static pawl_status visit(void *context, const struct pwi_chunk *chunk) {
  struct loading *loading = context;
  const struct pwi_manifest_vector *vector = pwi_manifest_vector(loading->manifest, chunk->vector.id);
  size_t index = (size_t)(vector - loading->manifest->vectors);
  if (!is_wanted(loading, vector)) return PAWL_OK;
  struct chunk_push *slot = &loading->slots[loading->next++ % SLOTS];
  pawl_status status = await_slot(loading, slot);
  if (status) return status;
  status = fill_slot(slot, chunk);
  if (!status) {
    pwi_driver_enter(&loading->session->driver);
    status = start(loading, slot, index, chunk);
    pwi_driver_leave(&loading->session->driver);
  }
  if (status) return pwi_error_status(status, "load %s", vector->name);
  loading->info.rows += chunk->count;
  loading->info.bytes += chunk->count * (chunk->row_bytes + (chunk->keys ? sizeof(uint64_t) : 0));
  if (loading->next % SLOTS == 0) tell(loading, "loading");
  return PAWL_OK;
}

/* Waits for all pushes, also after a failure, because they use the slots. */
static pawl_status finish(struct loading *loading, pawl_status status) {
  for (size_t i = 0; i < SLOTS; i++) {
    struct chunk_push *slot = &loading->slots[i];
    pawl_status end = await_slot(loading, slot);
    if (!status) status = end;
    if (slot->task) { /* timed out: the task keeps the memory */
      pwi_task_unref(slot->task);
      continue;
    }
    pwi_free(slot->memory);
  }
  return status;
}

/* --- loading -------------------------------------------------------------------------------------------- */

static pawl_status load_vectors(struct loading *loading, const struct pwi_saved *saved, struct pwi_problem *problem) {
  pawl_status status = check_vectors(loading);
  if (status) return status;
  loading->flows = pwi_alloc_zero(loading->manifest->vector_count + 1, sizeof(struct pwi_flow *));
  if (!loading->flows) return pwi_error_status(PAWL_NO_MEMORY, "load");
  for (size_t i = 0; i < loading->manifest->vector_count && !status; i++)
    if (is_wanted(loading, &loading->manifest->vectors[i])) {
      loading->info.vectors++;
      status = begin_vector(loading, i);
    }
  if (!status) {
    status = pwi_saved_walk_all(saved, visit, loading, problem);
    if (status && problem->text[0]) status = pwi_error(status, "%s", problem->text);
    status = finish(loading, status);
  }
  pwi_free(loading->flows);
  return status;
}

static pawl_status load_saved(struct loading *loading, const struct pwi_saved *saved, struct pwi_problem *problem) {
  struct pwi_saved_totals totals;
  loading->manifest = pwi_saved_newest(saved);
  for (size_t i = 0; i < saved->layer_count; i++)
    for (size_t j = 0; j < saved->layers[i].file_count; j++) loading->total += saved->layers[i].files[j].size;
  if (!loading->options->unverified) {
    tell(loading, "verifying");
    pawl_status status = pwi_saved_verify(saved, &totals, problem);
    if (status) return pwi_error(status, "%s", problem->text[0] ? problem->text : pawl_status_text(status));
  }
  struct pawl_checkpoint_info *info = &loading->info;
  memcpy(info->name, loading->manifest->name, sizeof info->name);
  memcpy(info->base, loading->manifest->base, sizeof info->base);
  info->number = loading->manifest->number;
  return load_vectors(loading, saved, problem);
}

/* The newest readable checkpoint. */
static pawl_status find_newest(struct pwi_files *files, char name[PAWL_CHECKPOINT_NAME_MAX + 1]) {
  struct pwi_saved_list list = {0};
  pawl_status status = pwi_saved_list(files, &list);
  if (status) return pwi_error_status(status, "load");
  size_t at = list.count;
  while (at > 0 && list.items[at - 1].status) at--;
  if (at > 0) memcpy(name, list.items[at - 1].name, PAWL_CHECKPOINT_NAME_MAX + 1);
  pwi_saved_list_fini(&list);
  return at > 0 ? PAWL_OK : pwi_error(PAWL_NOT_FOUND, "load: the directory contains no checkpoint");
}

static pawl_status load(struct pawl_session *session, const struct pawl_checkpoint_options *options,
                        struct pawl_checkpoint_info *info_out) {
  struct loading loading = {
      .session = session, .options = options, .deadline = pwi_driver_deadline(options->timeout_ns)};
  char name[PAWL_CHECKPOINT_NAME_MAX + 1] = "";
  struct pwi_files *files;
  struct pwi_saved saved;
  struct pwi_problem problem;
  if (!options->directory) return pwi_error(PAWL_INVALID, "load: directory is NULL");
  if (options->name && strlen(options->name) > PAWL_CHECKPOINT_NAME_MAX)
    return pwi_error(PAWL_INVALID, "load: the name is too long");
  pawl_status status = pwi_files_posix_open(options->directory, &files);
  if (status) return pwi_error_status(status, "load from %s", options->directory);
  if (options->name)
    strcpy(name, options->name);
  else
    status = find_newest(files, name);
  if (!status) {
    status = pwi_saved_open(files, name, &saved, &problem);
    if (status) {
      status = pwi_error(status, "%s", problem.text[0] ? problem.text : pawl_status_text(status));
    } else {
      status = load_saved(&loading, &saved, &problem);
      pwi_saved_close(&saved);
    }
  }
  pwi_files_posix_close(files);
  if (!status && info_out) *info_out = loading.info;
  return status;
}

pawl_status pawl_checkpoint_load(struct pawl_session *session, const struct pawl_checkpoint_options *options,
                                 struct pawl_checkpoint_info *info_out) {
  struct pawl_checkpoint_options is;
  pawl_checkpoint_options_init(&is);
  pawl_status status = pwi_take_options("checkpoint", options, &is, sizeof is);
  if (!status && session) status = pwi_session_needs_servers(session, "load", "a checkpoint");
  return status ? status : load(session, &is, info_out);
}
