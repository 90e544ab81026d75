/* What tests of whole trainings share: a folder, and a cluster of servers that are processes. */
#ifndef APPS_COMMON_SCENE_TEST_H
#define APPS_COMMON_SCENE_TEST_H

#include <dirent.h>
#include <unistd.h>

#include <pawl/pawl.h>

#include "base/testing.h"

#define PATIENCE (300 * PAWL_SECOND) /* for tests that hang: nothing takes that long on a busy machine */

static inline void must(pawl_status status) {
  if (status) fail_msg("%s: %s", pawl_status_text(status), pawl_error_text());
}

static char folder[] = "/tmp/pawl-train-XXXXXX";

static struct pawl_session *base, *session; /* base embeds the cluster, and outlives all others */

static bool opens_peers; /* sessions are for peers only */
static bool opens_tcp;   /* sessions use no shared memory */

static inline struct pawl_session *open_as(const char *address, bool stays_dead) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  options.stays_dead = stays_dead;
  options.timeout_ns = PATIENCE;
  options.peers_only = opens_peers;
  options.tcp_only = opens_tcp;
  must(pawl_session_open(&options, &opened));
  return opened;
}

static inline struct pawl_session *open_listening(const char *address) { return open_as(address, false); }

static inline int open_cluster_of(uint32_t servers, uint32_t replicas) {
  struct pawl_session_options options;
  if (!mkdtemp(folder)) return -1;
  setenv("PAWL_KEY", "pawl1-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 1);
  pawl_session_options_init(&options);
  options.servers = servers;
  options.replicas = replicas;
  options.shards = 1;
  must(pawl_session_open(&options, &base));
  session = open_listening(pawl_session_address(base));
  return 0;
}

static inline int open_cluster(void **state) {
  (void)state;
  return open_cluster_of(2, 0);
}

static inline int close_cluster(void **state) {
  (void)state;
  char command[256];
  must(pawl_session_close(session, PATIENCE));
  must(pawl_session_close(base, PATIENCE));
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

/* A child of this process that is a server. */
static inline pid_t find_server(void) {
  pid_t found = 0;
  DIR *processes = opendir("/proc");
  assert_non_null(processes);
  for (const struct dirent *entry; !found && (entry = readdir(processes)) != NULL;) {
    char name[300], text[4096];
    int parent = 0;
    snprintf(name, sizeof name, "/proc/%s/stat", entry->d_name);
    FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(name, "re") : NULL;
    if (!file) continue;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *after = strrchr(text, ')'); /* the name may hold anything */
    if (!after || sscanf(after + 1, " %*c %d", &parent) != 1 || parent != getpid() || after[2] == 'Z') continue;
    snprintf(name, sizeof name, "/proc/%s/cmdline", entry->d_name);
    file = fopen(name, "re");
    if (!file) continue;
    size = fread(text, 1, sizeof text, file);
    fclose(file);
    if (memmem(text, size, "\0server", 8)) found = (pid_t)atoi(entry->d_name);
  }
  closedir(processes);
  return found;
}

#endif
