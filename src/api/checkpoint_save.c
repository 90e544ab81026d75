/* Saves a checkpoint: asks the manager to save, and polls its progress. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>
#include <pawl/checkpoint.h>

#include "api/session.h"
#include "api/options.h"
#include "base/memory.h"

#define LOOK_NS INT64_C(50000000)

void pawl_checkpoint_options_init_sized(struct pawl_checkpoint_options *options, size_t struct_size) {
  const struct pawl_checkpoint_options defaults = {.timeout_ns = PAWL_FOREVER};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

enum { INCREMENTAL = 1, PACKED = 2 };

static pawl_status ask(struct pawl_session *session, const struct pawl_checkpoint_options *options, int64_t deadline,
                       uint64_t *number_out) {
  struct pwi_writer writer = {0};
  void *reply = NULL;
  size_t size = 0;
  pwi_write_text(&writer, options->directory ? options->directory : "");
  pwi_write_text(&writer, options->name ? options->name : "");
  pwi_write_u8(&writer, (uint8_t)((options->incremental ? INCREMENTAL : 0) | (options->compress ? PACKED : 0)));
  pwi_write_u64(&writer, options->rate);
  pawl_status status = pwi_session_ask(session, PWI_ASK_CHECKPOINT, &writer, deadline, &reply, &size);
  pwi_writer_fini(&writer);
  if (status) return status;
  struct pwi_reader reader;
  pwi_reader_init(&reader, reply, size);
  *number_out = pwi_read_u64(&reader);
  status = reader.status ? PAWL_CORRUPT : PAWL_OK;
  pwi_free(reply);
  return status;
}

static pawl_status fetch(struct pawl_session *session, int64_t deadline, json_t **root_out) {
  void *reply = NULL;
  size_t size = 0;
  pawl_status status = pwi_session_ask(session, PWI_ASK_STATUS, NULL, deadline, &reply, &size);
  if (status) return status;
  *root_out = json_loadb(reply, size, 0, NULL);
  pwi_free(reply);
  return *root_out ? PAWL_OK : PAWL_CORRUPT;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key) {
  return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void tell(const struct pawl_checkpoint_options *options, const json_t *going) {
  struct pawl_checkpoint_progress progress = {.stage = text_of(going, "state"),
                                              .bytes = number_of(going, "bytes"),
                                              .part = json_number_value(json_object_get(going, "part"))};
  if (options->progress) options->progress(options->context, &progress);
}

static pawl_status conclude(const json_t *last, struct pawl_checkpoint_info *info) {
  snprintf(info->name, sizeof info->name, "%s", text_of(last, "name"));
  snprintf(info->base, sizeof info->base, "%s", text_of(last, "base"));
  info->bytes = number_of(last, "bytes");
  if (strcmp(text_of(last, "state"), "saved") == 0) return PAWL_OK;
  pawl_status status = PAWL_IO;
  const char *why = text_of(last, "error");
  if (strstr(why, pawl_status_text(PAWL_NO_SPACE))) status = PAWL_NO_SPACE;
  if (strstr(why, pawl_status_text(PAWL_CLUSTER_WAITING))) status = PAWL_CLUSTER_WAITING;
  return pwi_error(status, "the checkpoint failed: %s", why);
}

/* Polls once; sets `*is_over_out` when the save has ended. */
static pawl_status look(struct pawl_session *session, const struct pawl_checkpoint_options *options, int64_t deadline,
                        struct pawl_checkpoint_info *info, bool *is_over_out) {
  json_t *root;
  pawl_status status = fetch(session, deadline, &root);
  if (status) return status;
  const json_t *going = json_object_get(root, "checkpoint"), *last = json_object_get(root, "last_checkpoint");
  *is_over_out = true;
  if (going && number_of(going, "number") == info->number) {
    tell(options, going);
    *is_over_out = false;
  } else if (last && number_of(last, "number") == info->number) {
    status = conclude(last, info);
  } else {
    status = pwi_error(PAWL_OUTCOME_UNKNOWN, "the manager was restarted and no longer knows the checkpoint");
  }
  json_decref(root);
  return status;
}

static pawl_status save(struct pawl_session *session, const struct pawl_checkpoint_options *options,
                        struct pawl_checkpoint_info *info_out) {
  struct pawl_checkpoint_info info = {0};
  int64_t deadline = pwi_driver_deadline(options->timeout_ns);
  pawl_status status = ask(session, options, deadline, &info.number);
  if (status == PAWL_EXISTS)
    return pwi_error(status,
                     "checkpoint: another save is under way, or '%s' already exists in the directory"
                     ": nothing was changed",
                     options->name ? options->name : "");
  if (status == PAWL_FORBIDDEN)
    return pwi_error(status, "checkpoint: not permitted: the manager must be started with --checkpoints for this "
                             "directory and be able to write there, and the key must have no limits");
  if (status == PAWL_INVALID)
    return pwi_error(
        status,
        "checkpoint: the directory must be an absolute path, and the name ('%s') consist of letters, digits, "
        "'.', '_' and '-'",
        options->name ? options->name : "");
  if (status == PAWL_IO || status == PAWL_NO_SPACE || status == PAWL_NOT_FOUND)
    return pwi_error_status(status, "checkpoint: the manager cannot use the directory");
  if (status) return pwi_session_error(session, status, "checkpoint: the manager was asked to save");
  bool is_over = false;
  while (!is_over && !status) {
    struct timespec pause = {.tv_nsec = LOOK_NS};
    status = look(session, options, deadline, &info, &is_over);
    if (!is_over) nanosleep(&pause, NULL);
  }
  if (status == PAWL_TIMED_OUT)
    return pwi_session_error(session, status,
                             "checkpoint: timed out; the save continues, and 'pawl status' shows its progress");
  if (!status && info_out) *info_out = info;
  return status;
}

pawl_status pawl_checkpoint_save(struct pawl_session *session, const struct pawl_checkpoint_options *options,
                                 struct pawl_checkpoint_info *info_out) {
  struct pawl_checkpoint_options is;
  pawl_checkpoint_options_init(&is);
  pawl_status status = pwi_take_options("checkpoint", options, &is, sizeof is);
  if (!status && session) status = pwi_session_needs_servers(session, "save", "a checkpoint");
  return status ? status : save(session, &is, info_out);
}
