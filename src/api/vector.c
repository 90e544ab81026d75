/* Creates, opens and lists vectors. */
#include "api/vector.h"

#include <stdlib.h>
#include <string.h>

#include "api/options.h"
#include "api/shape.h"
#include "base/memory.h"

void pawl_vector_options_init_sized(struct pawl_vector_options *options, size_t struct_size) {
  const struct pawl_vector_options defaults = {.type = PAWL_F32, .width = 1, .size = PAWL_KEY_END};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

size_t pawl_type_size(enum pawl_type type) {
  switch (type) {
  case PAWL_F32:
  case PAWL_I32:
    return 4;
  case PAWL_F64:
  case PAWL_I64:
  case PAWL_U64:
    return 8;
  }
  return 0;
}

/* --- handles -------------------------------------------------------------------------------------------- */

/* Inside the gate: a handle for an entry of the catalogue. */
static pawl_status make_handle(struct pawl_session *session, struct pwi_vector_id id, bool is_local,
                               struct pawl_vector **vector_out) {
  struct pawl_vector *vector = pwi_alloc_zero(1, sizeof *vector);
  if (!vector) return PAWL_NO_MEMORY;
  vector->session = session;
  pawl_status status = pwi_client_flow(session->client, id, 0, &vector->flow);
  if (status) goto free_vector;
  vector->entry = pwi_flow_entry(vector->flow);
  status = PAWL_NO_MEMORY;
  vector->name = pwi_task_pool_name(session->pool, vector->entry->name);
  if (!vector->name) goto free_vector;
  status = is_local ? pwi_client_open_local(session->client, id) : PAWL_OK;
  if (status) goto free_vector;
  vector->is_local = is_local;
  pwi_owned_add(&session->vectors, &vector->owned);
  *vector_out = vector;
  return PAWL_OK;
free_vector:
  pwi_free(vector);
  return status;
}

/* PAWL_NOT_FOUND if our catalogue does not list it. `wanted` may be NULL; else different options are
 * PAWL_EXISTS. */
static pawl_status open_known(struct pawl_session *session, const char *name, bool is_local,
                              const struct pawl_vector_options *wanted, struct pawl_vector **vector_out) {
  pwi_driver_enter(&session->driver);
  pawl_status status = PAWL_NODE_STOPPED;
  if (!session->is_closed) {
    const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(session->client), name);
    status = entry ? PAWL_OK : PAWL_NOT_FOUND;
    if (entry && wanted && !pwi_options_equal(&entry->is, wanted)) status = PAWL_EXISTS;
    if (!status) status = make_handle(session, entry->id, is_local, vector_out);
  }
  pwi_driver_leave(&session->driver);
  return status;
}

/* Opens the vector that was created for us, and no other of the same name. */
static pawl_status open_made(struct pawl_session *session, struct pwi_vector_id id, struct pawl_vector **vector_out) {
  pwi_driver_enter(&session->driver);
  pawl_status status = session->is_closed ? PAWL_NODE_STOPPED : make_handle(session, id, false, vector_out);
  pwi_driver_leave(&session->driver);
  return status;
}

void pwi_vector_free(struct pwi_owned *owned) { pwi_free((struct pawl_vector *)owned); }

void pawl_vector_close(struct pawl_vector *vector) {
  if (!vector) return;
  struct pawl_session *session = vector->session;
  pwi_driver_enter(&session->driver);
  if (vector->is_local && !session->is_closed) pwi_client_close_local(session->client, vector->entry->id);
  pwi_owned_remove(&vector->owned);
  pwi_driver_leave(&session->driver);
  pwi_free(vector);
}

/* --- creating and opening ------------------------------------------------------------------------------- */

static pawl_status check_name(const char *what, const char *name) {
  if (name && pwi_name_check(name, PWI_ENTRY_VECTOR) == PAWL_OK) return PAWL_OK;
  return pwi_error(PAWL_INVALID,
                   "%s '%s': the name must be two words of letters, digits, '.', '_' and '-', separated by a "
                   "slash, and neither may begin with a dot",
                   what, name ? name : "");
}

static pawl_status explain_size(const char *name) {
  return pwi_error(PAWL_TOO_LARGE,
                   "create %s: too large: a dense vector has less than 2^32 keys and 2^44 bytes, a row at "
                   "most 2^30 bytes; a sparse one takes memory only for keys that are pushed",
                   name);
}

static pawl_status settle(const char *name, const struct pawl_vector_options *options,
                          struct pawl_vector_options *settled_out) {
  struct pawl_vector_options is, *asked = &is;
  pawl_vector_options_init(&is);
  pawl_status status = pwi_take_options("vector", options, &is, sizeof is);
  if (status) return status;
  status = pwi_options_settle(asked, NULL, settled_out);
  if (status == PAWL_OK) return pwi_filters_settle(name, settled_out);
  if (status == PAWL_TOO_LARGE) return explain_size(name);
  struct pwi_function_problem problem;
  struct pwi_rule rule;
  if (strnlen(asked->rule, sizeof asked->rule) < sizeof asked->rule && asked->rule[0] &&
      pwi_rule_parse(NULL, asked->rule, &rule, &problem) == PAWL_INVALID)
    return pwi_error(PAWL_INVALID, "create %s: %s", name, problem.text);
  return pwi_error(PAWL_INVALID, "create %s: contradictory options (type, width, size, function, placement or layout)",
                   name);
}

/* `*id_out` is the id of the vector that was created for us. */
static pawl_status ask_to_create(struct pawl_session *session, const char *name,
                                 const struct pawl_vector_options *settled, int64_t deadline,
                                 struct pwi_vector_id *id_out) {
  struct pwi_writer writer = {0};
  struct pwi_reader reader;
  void *reply;
  size_t size;
  pwi_write_text(&writer, name);
  pwi_options_write(&writer, settled);
  pawl_status status = pwi_session_ask(session, PWI_ASK_CREATE, &writer, deadline, &reply, &size);
  pwi_writer_fini(&writer);
  if (status) return status;
  pwi_reader_init(&reader, reply, size);
  id_out->id = pwi_read_u64(&reader);
  status = pwi_reader_end(&reader) ? PAWL_CORRUPT : PAWL_OK;
  pwi_free(reply);
  return status;
}

/* A vector of that name exists, and we did not create it. */
static pawl_status explain_exists(struct pawl_session *session, const char *name,
                                  const struct pawl_vector_options *wanted) {
  struct pawl_vector_options is = {0};
  char text[PWI_SHAPE_TEXT_MAX];
  pwi_driver_enter(&session->driver);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(session->client), name);
  if (entry) is = entry->is;
  pwi_driver_leave(&session->driver);
  if (is.width == 0) return pwi_error_status(PAWL_EXISTS, "create %s", name);
  if (pwi_shape_difference(&is, wanted, text, sizeof text) == 0)
    return pwi_error(PAWL_EXISTS,
                     "create %s: the vector exists with the same options: open it, or call pawl_vector_ensure", name);
  return pwi_error(PAWL_EXISTS, "create %s: the vector exists with other options: %s", name, text);
}

/* Explains why the manager refused to create the vector. */
static pawl_status explain_create(struct pawl_session *session, pawl_status status, const char *name,
                                  const struct pawl_vector_options *options) {
  int size = (int)strcspn(options->rule, " ");
  if (status == PAWL_EXISTS) return explain_exists(session, name, options);
  if (status == PAWL_TOO_LARGE) return explain_size(name);
  if (status != PAWL_NOT_FOUND) return pwi_error_status(status, "create %s", name);
  return pwi_error(
      status,
      "create %s: the manager does not know server function '%.*s' (docs/functions.md lists the built-in ones; "
      "others are loaded from the directory given to the manager and all servers with --functions)",
      name, size, options->rule);
}

/* Explains why a vector cannot be opened: its filters may be unknown to this process. */
static pawl_status explain_open(struct pawl_session *session, const char *name, pawl_status status) {
  struct pawl_vector_options is = {0};
  pwi_driver_enter(&session->driver);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(session->client), name);
  if (entry) is = entry->is;
  pwi_driver_leave(&session->driver);
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  if (is.filters[0] && pwi_filters_try(&is, problem, NULL) == status)
    return pwi_error(status, "open %s: cannot use its filters in this process: %s", name, problem);
  return pwi_error_status(status, "open %s", name);
}

pawl_status pawl_vector_create(struct pawl_session *session, const char *name,
                               const struct pawl_vector_options *options, int64_t timeout_ns,
                               struct pawl_vector **vector_out) {
  struct pawl_vector_options settled;
  pawl_status status = check_name("create", name);
  if (!status) status = settle(name, options, &settled);
  if (status) return status;
  struct pwi_vector_id id;
  status = ask_to_create(session, name, &settled, pwi_driver_deadline(timeout_ns), &id);
  if (status) return explain_create(session, status, name, &settled);
  status = open_made(session, id, vector_out);
  if (status == PAWL_NOT_FOUND)
    return pwi_error(status, "create %s: the vector was created, but has been deleted since", name);
  return status ? pwi_error_status(status, "create %s", name) : PAWL_OK;
}

pawl_status pawl_vector_ensure(struct pawl_session *session, const char *name,
                               const struct pawl_vector_options *options, int64_t timeout_ns,
                               struct pawl_vector **vector_out) {
  struct pawl_vector_options settled;
  pawl_status status = check_name("create", name);
  if (!status) status = settle(name, options, &settled);
  if (status) return status;
  status = open_known(session, name, false, &settled, vector_out);
  if (status == PAWL_NOT_FOUND || status == PAWL_EXISTS) { /* or our catalogue is outdated */
    struct pwi_vector_id id;
    pawl_status created = ask_to_create(session, name, &settled, pwi_driver_deadline(timeout_ns), &id);
    if (created && created != PAWL_EXISTS) return explain_create(session, created, name, &settled);
    status = open_known(session, name, false, &settled, vector_out);
  }
  if (status == PAWL_EXISTS) return explain_exists(session, name, &settled);
  return status ? explain_open(session, name, status) : PAWL_OK;
}

static pawl_status sync_with_manager(struct pawl_session *session, int64_t timeout_ns) {
  return pwi_session_ask(session, PWI_ASK_SYNC, NULL, pwi_driver_deadline(timeout_ns), NULL, NULL);
}

static pawl_status open_by_name(struct pawl_session *session, const char *name, bool is_local, int64_t timeout_ns,
                                struct pawl_vector **vector_out) {
  pawl_status status = check_name("open", name);
  if (status) return status;
  status = open_known(session, name, is_local, NULL, vector_out);
  if (status == PAWL_NOT_FOUND) {
    status = sync_with_manager(session, timeout_ns);
    if (!status) status = open_known(session, name, is_local, NULL, vector_out);
  }
  return status ? explain_open(session, name, status) : PAWL_OK;
}

pawl_status pawl_vector_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                             struct pawl_vector **vector_out) {
  return open_by_name(session, name, false, timeout_ns, vector_out);
}

pawl_status pawl_vector_open_local(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                   struct pawl_vector **vector_out) {
  if (!session->listens)
    return pwi_error(PAWL_INVALID, "open %s locally: the session was opened without `listen`, so it cannot be reached",
                     name ? name : "");
  return open_by_name(session, name, true, timeout_ns, vector_out);
}

pawl_status pawl_vector_delete(struct pawl_session *session, const char *name, int64_t timeout_ns) {
  struct pwi_writer writer = {0};
  pawl_status status = check_name("delete", name);
  if (status) return status;
  pwi_write_text(&writer, name);
  status = pwi_session_ask(session, PWI_ASK_DELETE, &writer, pwi_driver_deadline(timeout_ns), NULL, NULL);
  pwi_writer_fini(&writer);
  return status ? pwi_error_status(status, "delete %s", name) : PAWL_OK;
}

/* --- listing -------------------------------------------------------------------------------------------- */

static struct pawl_vector_info info_of(const struct pwi_entry *entry) {
  struct pawl_vector_info info = {.id = entry->id.id,
                                  .options = entry->is,
                                  .pushed_width = pwi_options_pushed(&entry->is),
                                  .pulled_width = pwi_options_stored(&entry->is)};
  info.options.struct_size = sizeof info.options; /* a program may create another vector with them */
  memcpy(info.name, entry->name, sizeof info.name);
  return info;
}

void pawl_vector_info(const struct pawl_vector *vector, struct pawl_vector_info *info_out) {
  *info_out = info_of(vector->entry);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const struct pawl_vector_info *)a)->name, ((const struct pawl_vector_info *)b)->name);
}

/* Inside the gate. */
static pawl_status copy_list(struct pawl_session *session, const char *space, struct pawl_vector_info **infos_out,
                             size_t *count_out) {
  const struct pwi_catalogue *catalogue = pwi_client_catalogue(session->client);
  struct pwi_client_state state;
  pwi_client_state(session->client, &state);
  struct pawl_vector_info *infos = pwi_alloc_zero(catalogue->count + 1, sizeof *infos);
  if (!infos) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (size_t i = 0; i < catalogue->count; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    bool may_see = !state.space || !*state.space || pwi_name_is_in(entry->name, state.space);
    if (entry->kind == PWI_ENTRY_VECTOR && may_see && (!space || pwi_name_is_in(entry->name, space)))
      infos[count++] = info_of(entry);
  }
  qsort(infos, count, sizeof *infos, compare_names);
  *infos_out = infos;
  *count_out = count;
  return PAWL_OK;
}

pawl_status pawl_vector_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                             struct pawl_vector_info **infos_out, size_t *count_out) {
  pawl_status status = sync_with_manager(session, timeout_ns);
  if (!status) {
    pwi_driver_enter(&session->driver);
    status = session->is_closed ? PAWL_NODE_STOPPED : copy_list(session, space, infos_out, count_out);
    pwi_driver_leave(&session->driver);
  }
  return status ? pwi_error_status(status, "list of vectors") : PAWL_OK;
}

void pawl_vector_list_free(struct pawl_vector_info *infos) { pwi_free(infos); }
