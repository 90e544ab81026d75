/* What the tests of the public API share: sessions that must open, and a look at the processes behind them. */
#ifndef PAWL_TESTS_API_SCENE_H
#define PAWL_TESTS_API_SCENE_H

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/testing.h"
#include "host/halt_testing.h"

#define PATIENCE (200 * PAWL_SECOND) /* for tests that hang: nothing takes that long on a busy machine */

static inline void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_text(status), pawl_error_text());
}

/* Fails, and says why. */
static inline void must_fail(pawl_status status, pawl_status wanted, const char *text) {
  if (status != wanted)
    fail_msg("%s instead of %s: %s", pawl_status_name(status), pawl_status_name(wanted), pawl_error_text());
  if (!strstr(pawl_error_text(), text)) fail_msg("'%s' is not in '%s'", text, pawl_error_text());
}

static inline struct pawl_session *open_embedded(uint32_t servers, uint32_t shards) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pawl_session_options_init(&options);
  options.servers = servers;
  options.shards = shards;
  must(pawl_session_open(&options, &session));
  return session;
}

/* Two servers, so that each key has a replica. */
static inline struct pawl_session *open_pair(void) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pawl_session_options_init(&options);
  options.servers = 2;
  options.shards = 1;
  options.replicas = 1;
  must(pawl_session_open(&options, &session));
  return session;
}

/* Until every key has its replica: a server may die only then. On a busy machine a replica may have been dropped, and
 * is filled again. */
static inline void await_copies(struct pawl_session *session) {
  for (bool is_whole = false; !is_whole;) {
    char *status = NULL;
    must(pawl_session_status(session, PATIENCE, &status));
    is_whole = strstr(status, "\"under_replicated\":0,") != NULL;
    pawl_text_free(status);
    if (!is_whole) usleep(10000);
  }
}

/* A second session at the cluster of the first. */
static inline struct pawl_session *open_beside(const struct pawl_session *first, bool read_only) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(first);
  options.read_only = read_only;
  must(pawl_session_open(&options, &session));
  return session;
}

static inline struct pawl_vector *create(struct pawl_session *session, const char *name, enum pawl_type type,
                                         uint64_t size) {
  struct pawl_vector_options options;
  struct pawl_vector *vector = NULL;
  pawl_vector_options_init(&options);
  options.type = type;
  options.size = size;
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  return vector;
}

static inline void push(struct pawl_vector *vector, struct pawl_where where, const void *values) {
  struct pawl_task *task;
  must(pawl_vector_push(vector, where, values, &task));
  must(pawl_task_finish(task, PATIENCE));
}

static inline void pull(struct pawl_vector *vector, struct pawl_where where, void *values) {
  struct pawl_task *task;
  must(pawl_vector_pull(vector, where, values, &task));
  must(pawl_task_finish(task, PATIENCE));
}

/* Processes whose parent is `parent` and whose command line has `word` in it: at most `room` of them. */
static inline size_t find_children(pid_t parent, const char *word, pid_t *pids, size_t room) {
  size_t count = 0;
  DIR *folder = opendir("/proc");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < room;) {
    char path[300], text[4096];
    int father = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
    if (!file) continue;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    char *after = strrchr(text, ')'); /* the name may hold anything */
    if (!after || sscanf(after + 1, " %*c %d", &father) != 1 || father != parent) continue;
    snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
    file = fopen(path, "re");
    if (!file) continue;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (memmem(text, size, word, strlen(word))) pids[count++] = (pid_t)atoi(entry->d_name);
  }
  closedir(folder);
  return count;
}

#endif
