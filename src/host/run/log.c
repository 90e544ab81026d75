#include "host/run/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "net/address.h"
#include "manager/ledger/journal_file.h"

/* --- the directory -------------------------------------------------------------------------------------- */

/* A name for the address: its port, or its path. */
static void name_address(const struct pwi_address *address, char *name, size_t size) {
  if (address->kind == PWI_ADDRESS_TCP)
    snprintf(name, size, "%u", (unsigned)address->port_first);
  else
    snprintf(name, size, "%s", address->host + (address->host[0] == '/'));
  for (char *at = name; (at = strchr(at, '/'));) *at = '_';
}

static pawl_status print_directory(const char *name, char directory[PWI_RUN_LOG_PATH_MAX]) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  const char *base = state && *state ? state : home && *home ? home : "pawl-data";
  const char *between = state && *state ? "/pawl/" : home && *home ? "/.local/state/pawl/" : "/";
  int length = snprintf(directory, PWI_RUN_LOG_PATH_MAX, "%s%s%s", base, between, name);
  return length < 0 || length >= PWI_RUN_LOG_PATH_MAX ? PAWL_TOO_LARGE : PAWL_OK;
}

pawl_status pwi_run_log_directory(const char *asked, const char *listen, const char *address,
                                  char directory[PWI_RUN_LOG_PATH_MAX], bool *in_memory_out) {
  struct pwi_address wanted, got;
  char name[PWI_ADDRESS_HOST_MAX];
  bool is_asked = asked && *asked, is_none = is_asked && strcmp(asked, PWI_RUN_LOG_NONE) == 0;
  pawl_status status = pwi_address_parse(listen, &wanted);
  if (!status) status = pwi_address_parse(address, &got);
  if (status) return status;
  bool is_any = wanted.kind == PWI_ADDRESS_TCP && wanted.port_first == 0;
  *in_memory_out = is_none || (!is_asked && is_any);
  if (*in_memory_out) return PAWL_OK;
  if (!is_asked) {
    name_address(&got, name, sizeof name);
    return print_directory(name, directory);
  }
  int length = snprintf(directory, PWI_RUN_LOG_PATH_MAX, "%s", asked);
  return length < 0 || length >= PWI_RUN_LOG_PATH_MAX ? PAWL_TOO_LARGE : PAWL_OK;
}

/* --- error messages ------------------------------------------------------------------------------------- */

#define BEGIN_ANEW "or start a new cluster with --new, which servers of the old cluster will not join"

static void explain(const char *path, pawl_status status, struct pwi_run_problem *problem) {
  switch (status) {
  case PAWL_EXISTS:
    pwi_run_problem_set(problem,
                        "another manager uses the log %s; stop that manager, or give this one another directory with "
                        "--data",
                        path);
    break;
  case PAWL_CORRUPT:
    pwi_run_problem_set(problem,
                        "the log %s is damaged or is not the log of a manager; it was neither used nor "
                        "changed. Put a good copy there, " BEGIN_ANEW,
                        path);
    break;
  case PAWL_UNSUPPORTED:
    pwi_run_problem_set(problem, "the log %s was written by another version of pawl; use that version, " BEGIN_ANEW,
                        path);
    break;
  case PAWL_INVALID:
    pwi_run_problem_set(problem, "%s is not a regular file; name another directory with --data", path);
    break;
  case PAWL_NO_SPACE:
    pwi_run_problem_set(problem, "no space left for the log %s; free some, or name another directory with --data",
                        path);
    break;
  default:
    pwi_run_problem_set(problem,
                        "cannot write the log %s: %s; name a writable directory with --data, or 'none' "
                        "to keep it in memory",
                        path, pawl_status_text(status));
  }
}

void pwi_run_log_problem(const struct pwi_run_log *run_log, pawl_status status, struct pwi_run_problem *problem) {
  if (status == PAWL_CORRUPT && run_log->path[0])
    pwi_run_problem_set(problem,
                        "the log %s contains records that this version of pawl cannot read; use the version that wrote "
                        "them, " BEGIN_ANEW,
                        run_log->path);
  else
    pwi_run_problem_set(problem, "cannot start the manager: %s", pawl_status_text(status));
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* Makes the name as durable as the log. */
static pawl_status sync_parent(const char *path) {
  char parent[PWI_RUN_LOG_PATH_MAX];
  struct pwi_files *files;
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 0;
  memcpy(parent, path, length);
  parent[length] = '\0';
  pawl_status status = pwi_files_posix_open(length ? parent : slash ? "/" : ".", &files);
  if (status) return status;
  status = pwi_files_sync_directory(files, ".");
  pwi_files_posix_close(files);
  return status;
}

static pawl_status make_directory(const char *path) {
  if (mkdir(path, 0700) == 0) return sync_parent(path);
  if (errno == EEXIST) return PAWL_OK;
  return errno == EACCES || errno == EROFS || errno == EPERM ? PAWL_FORBIDDEN
         : errno == ENOSPC || errno == EDQUOT                ? PAWL_NO_SPACE
                                                             : PAWL_IO;
}

/* Creates all missing directories of the path. Existing ones are left as they are. */
static pawl_status make_directories(const char *path) {
  char part[PWI_RUN_LOG_PATH_MAX];
  pawl_status status = PAWL_OK;
  for (size_t i = 1; !status && path[i - 1]; i++) {
    struct stat about;
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (stat(part, &about) != 0) status = make_directory(part);
  }
  return status;
}

/* Finds an unused name. */
static pawl_status find_free_name(struct pwi_files *files, char *name, size_t size) {
  bool is_taken = true;
  pawl_status status = PAWL_OK;
  for (unsigned i = 0; !status && is_taken; i++) {
    snprintf(name, size, i ? PWI_RUN_LOG_NAME ".old.%u" : PWI_RUN_LOG_NAME ".old", i);
    status = pwi_files_exists(files, name, &is_taken);
  }
  return status;
}

/* Renames the existing log, unless a manager uses it. */
static pawl_status set_aside(struct pwi_files *files, const struct pwi_log *log) {
  char name[64];
  struct pwi_file *lock;
  pawl_status status = pwi_files_open(files, PWI_RUN_LOG_NAME ".lock", PWI_OPEN_WRITE | PWI_OPEN_CREATE, &lock);
  if (status) return status;
  status = pwi_file_try_lock(lock);
  if (!status) status = find_free_name(files, name, sizeof name);
  if (!status) status = pwi_files_rename(files, PWI_RUN_LOG_NAME, name);
  if (!status) pwi_log(log, PAWL_LOG_INFO, "journal.set_aside", "file=%s", name);
  pwi_file_close(lock);
  return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static pawl_status open_file(const char *directory, bool anew, const struct pwi_log *log, struct pwi_run_log *run_log) {
  int length = snprintf(run_log->path, sizeof run_log->path, "%s/" PWI_RUN_LOG_NAME, directory);
  if (length < 0 || (size_t)length >= sizeof run_log->path) return PAWL_TOO_LARGE;
  pawl_status status = make_directories(directory);
  if (!status) status = pwi_files_posix_open_private(directory, &run_log->files);
  if (!status && anew) status = set_aside(run_log->files, log);
  return status ? status : pwi_journal_file_open(run_log->files, PWI_RUN_LOG_NAME, log, &run_log->journal);
}

pawl_status pwi_run_log_open(const char *asked, const char *listen, const char *address, bool anew,
                             const struct pwi_log *log, struct pwi_run_log *run_log_out,
                             struct pwi_run_problem *problem) {
  char directory[PWI_RUN_LOG_PATH_MAX] = "";
  struct pwi_run_log run_log = {0};
  bool in_memory = false;
  pawl_status status = pwi_run_log_directory(asked, listen, address, directory, &in_memory);
  if (!status)
    status = in_memory ? pwi_journal_memory_create(&run_log.journal) : open_file(directory, anew, log, &run_log);
  if (status) {
    explain(run_log.path[0] ? run_log.path : directory, status, problem);
    pwi_run_log_close(&run_log);
    return status;
  }
  *run_log_out = run_log;
  return PAWL_OK;
}

void pwi_run_log_close(struct pwi_run_log *run_log) {
  if (run_log->journal) run_log->journal->ops->destroy(run_log->journal);
  pwi_files_posix_close(run_log->files);
  *run_log = (struct pwi_run_log){0};
}
