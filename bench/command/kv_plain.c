/* A cluster without a key, for measuring sockets rather than encryption: it listens on loopback only, and
 * lives as long as the benchmark. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kv.h"
#include "host/children.h"
#include "host/clock.h"

#define READY_NS (10 * PWI_HOST_SECOND)
#define GRACE_NS (PWI_HOST_SECOND / 2)

static pawl_status start(const char *path, const char *const *words, struct pwi_child **child_out, char *address,
                         size_t size) {
  static const char *const environment[] = {"PAWL_KEY=", "PAWL_KEY_FILE=", NULL};
  struct pwi_child_config config = {.path = path,
                                    .argv = (char *const *)(uintptr_t)words,
                                    .environment = environment,
                                    .output_fd = PWI_CHILD_OUTPUT_KEEP,
                                    .own_group = true};
  const char *line;
  pawl_status status = pwi_child_start(&config, child_out);
  if (!status) status = pwi_child_ready(*child_out, pwi_host_now() + READY_NS, &line);
  return status ? status : pwi_child_value(line, "address", address, size);
}

void pwi_kv_plain_stop(struct pwi_kv_plain *plain) {
  for (size_t i = plain->count; i > 0; i--) pwi_child_stop(plain->children[i - 1], GRACE_NS);
  plain->count = 0;
}

pawl_status pwi_kv_plain_start(const struct pwi_kv_options *options, struct pwi_kv_plain *plain) {
  char path[PATH_MAX], parent[16], count[16], shards[16], replicas[16], unused[PWI_NET_ADDRESS_MAX];
  uint32_t servers = options->servers ? options->servers : 1;
  snprintf(parent, sizeof parent, "%ld", (long)getpid());
  snprintf(count, sizeof count, "%u", servers);
  snprintf(shards, sizeof shards, "%u", options->shards ? options->shards : 1);
  snprintf(replicas, sizeof replicas, "%u", options->replicas);
  const char *manager[] = {"pawl",        "manager", "--listen",   "127.0.0.1:0", "--http",          "none",
                           "--ready-fd",  "3",       "--parent",   parent,        "--first-servers", count,
                           "--transport", "tcp",     "--replicas", replicas,      "--data",          "none",
                           NULL};
  const char *server[] = {"pawl", "server",   "--join", plain->address, "--http", "none", "--ready-fd",
                          "3",    "--parent", parent,   "--shards",     shards,   NULL};
  plain->count = 0;
  pawl_status status = pwi_child_command(path, sizeof path);
  if (!status) status = start(path, manager, &plain->children[0], plain->address, sizeof plain->address);
  if (plain->children[0]) plain->count = 1;
  for (uint32_t i = 0; !status && i < servers && plain->count < PWI_KV_PLAIN_MAX; i++) {
    plain->children[plain->count] = NULL;
    status = start(path, server, &plain->children[plain->count], unused, sizeof unused);
    if (plain->children[plain->count]) plain->count++;
  }
  if (status) pwi_kv_plain_stop(plain);
  return status;
}
