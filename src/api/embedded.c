#include "api/embedded.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/error.h"
#include "base/memory.h"
#include "host/children.h"
#include "host/clock.h"
#include "net/net.h"
#include "manager/manager.h"

#define GRACE_NS (2 * PWI_HOST_SECOND)
#define ADDRESS "tcp://127.0.0.1:0"
#define WORDS_MAX 24

struct pwi_embedded {
  char address[PWI_NET_ADDRESS_MAX];
  char key[PWI_KEY_TEXT_MAX]; /* "": the user's own key */
  struct pwi_child *manager;
  struct pwi_child **servers;
  uint32_t server_count;
  struct pwi_embedded *next; /* in the list of this process */
};

/* --- the clusters of this process ----------------------------------------------------------------------- */

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct pwi_embedded *list;

static void enlist(struct pwi_embedded *embedded) {
  pthread_mutex_lock(&list_mutex);
  embedded->next = list;
  list = embedded;
  pthread_mutex_unlock(&list_mutex);
}

static void delist(struct pwi_embedded *embedded) {
  pthread_mutex_lock(&list_mutex);
  for (struct pwi_embedded **at = &list; *at; at = &(*at)->next)
    if (*at == embedded) {
      *at = embedded->next;
      break;
    }
  pthread_mutex_unlock(&list_mutex);
}

bool pwi_embedded_key(const char *address, char key_out[PWI_KEY_TEXT_MAX]) {
  bool found = false;
  pthread_mutex_lock(&list_mutex);
  for (const struct pwi_embedded *at = list; at && !found; at = at->next)
    if (at->key[0] && strcmp(at->address, address) == 0) {
      memcpy(key_out, at->key, PWI_KEY_TEXT_MAX);
      found = true;
    }
  pthread_mutex_unlock(&list_mutex);
  return found;
}

void pwi_embedded_look(const char *address, uint32_t *lost_out, uint32_t *servers_out) {
  struct pwi_child_end end;
  *lost_out = *servers_out = 0;
  pthread_mutex_lock(&list_mutex);
  for (const struct pwi_embedded *at = list; at; at = at->next) {
    if (strcmp(at->address, address) != 0) continue;
    *servers_out = at->server_count;
    for (uint32_t i = 0; i < at->server_count; i++) *lost_out += pwi_child_wait(at->servers[i], 0, &end) == PAWL_OK;
  }
  pthread_mutex_unlock(&list_mutex);
}

/* --- starting one child --------------------------------------------------------------------------------- */

/* A command line, and environment variables that replace ours in the child. */
struct child_command {
  const char *words[WORDS_MAX];
  size_t count;
  char path[PATH_MAX];
  char parent[16];
  const char *listen;
  char key[PWI_KEY_LINE_MAX + sizeof "PAWL_KEY="];
  char key_file[PATH_MAX + sizeof "PAWL_KEY_FILE="];
  const char *environment[4];
};

static void say(struct child_command *order, const char *word) { order->words[order->count++] = word; }

static void say_option(struct child_command *order, const char *option, const char *value) {
  say(order, option);
  say(order, value);
}

static void begin(struct child_command *order, const char *role) {
  order->count = 0;
  say(order, "pawl");
  say(order, role);
  say_option(order, "--listen", order->listen);
  say_option(order, "--http", "none");
  say_option(order, "--ready-fd", "3");
  say_option(order, "--parent", order->parent);
  say_option(order, "--checkpoints", "/"); /* only the process that started it can request checkpoints */
}

_Static_assert(PWI_CHILD_READY_FD == 3, "written out above");

static pawl_status start_child(struct child_command *order, struct pwi_child **child_out) {
  const char *level = getenv("PAWL_LOG_LEVEL");
  say(order, NULL);
  struct pwi_child_config config = {
      .path = order->path,
      .argv = (char *const *)(uintptr_t)order->words,
      .environment = order->environment,
      /* If the user asks for logs, they are shown; else nothing is printed, and the last output is used in
       * error texts. */
      .output_fd = level && *level ? PWI_CHILD_OUTPUT_INHERIT : PWI_CHILD_OUTPUT_KEEP,
      .own_group = true,
  };
  pawl_status status = pwi_child_start(&config, child_out);
  return status ? pwi_error_status(status, "cannot start %s %s", order->path, order->words[1]) : PAWL_OK;
}

static pawl_status await_child(struct pwi_child *child, const char *role, int64_t deadline, const char **line_out) {
  char words[512], how[64];
  struct pwi_child_end end;
  pawl_status status = pwi_child_ready(child, deadline, line_out);
  if (status == PAWL_OK) return PAWL_OK;
  if (status != PAWL_NODE_STOPPED) return pwi_error_status(status, "the embedded %s did not become ready", role);
  if (pwi_child_wait(child, pwi_host_after(PWI_HOST_SECOND), &end) != PAWL_OK)
    end = (struct pwi_child_end){PWI_CHILD_ENDED, 0};
  pwi_child_last_words(child, words, sizeof words);
  return pwi_error(status, "the embedded %s ended (%s): %s", role, pwi_child_end_print(end, how, sizeof how), words);
}

/* --- the cluster ---------------------------------------------------------------------------------------- */

static uint32_t default_shards(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count >= 4 ? (uint32_t)count / 2 : 1;
}

/* The children must get this key and no other. An empty variable counts as unset. */
static pawl_status prepare(struct pwi_embedded *embedded, const struct pwi_embedded_config *config,
                           struct child_command *order) {
  bool has_key = config->key && *config->key, has_file = config->key_file && *config->key_file;
  pawl_status status = pwi_child_command(order->path, sizeof order->path);
  if (status) {
    const char *command = getenv("PAWL_COMMAND");
    return pwi_error(status,
                     command && *command ? "PAWL_COMMAND=%s is not an executable program"
                                         : "cannot find the pawl command: set PAWL_COMMAND to its path%s",
                     command && *command ? command : "");
  }
  if (!has_key && !has_file && (status = pwi_key_new(embedded->key)) != PAWL_OK)
    return pwi_error_status(status, "cannot create a key for the embedded cluster");
  order->listen = config->listen ? config->listen : ADDRESS;
  snprintf(order->parent, sizeof order->parent, "%ld", (long)getpid());
  snprintf(order->key, sizeof order->key, "PAWL_KEY=%s", has_key ? config->key : embedded->key);
  snprintf(order->key_file, sizeof order->key_file, "PAWL_KEY_FILE=%s", has_file ? config->key_file : "");
  order->environment[0] = order->key;
  order->environment[1] = order->key_file;
  order->environment[2] = "PAWL_ADDRESS=";
  order->environment[3] = NULL;
  return PAWL_OK;
}

static pawl_status start_manager(struct pwi_embedded *embedded, const struct pwi_embedded_config *config,
                                 struct child_command *order) {
  char servers[16], replicas[16];
  const char *line;
  snprintf(servers, sizeof servers, "%" PRIu32, embedded->server_count > 0 ? embedded->server_count : 1);
  snprintf(replicas, sizeof replicas, "%" PRIu32, config->replicas);
  begin(order, "manager");
  say_option(order, "--first-servers", servers);
  say_option(order, "--replicas", replicas);
  say_option(order, "--data", "none"); /* the cluster ends with the session */
  pawl_status status = start_child(order, &embedded->manager);
  if (!status) status = await_child(embedded->manager, "manager", config->deadline_ns, &line);
  if (status) return status;
  status = pwi_child_value(line, "address", embedded->address, sizeof embedded->address);
  return status ? pwi_error_status(PAWL_CORRUPT, "the embedded manager reported no address: '%s'", line) : PAWL_OK;
}

static pawl_status start_servers(struct pwi_embedded *embedded, const struct pwi_embedded_config *config,
                                 struct child_command *order) {
  char shards[16], memory[24];
  const char *line;
  snprintf(shards, sizeof shards, "%" PRIu32, config->shards ? config->shards : default_shards());
  snprintf(memory, sizeof memory, "%" PRIu64, config->memory_max);
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < embedded->server_count && !status; i++) {
    begin(order, "server");
    say_option(order, "--join", embedded->address);
    say_option(order, "--shards", shards);
    say_option(order, "--drain-timeout", "0"); /* its keys are no longer needed */
    if (config->memory_max) say_option(order, "--memory", memory);
    status = start_child(order, &embedded->servers[i]);
  }
  for (uint32_t i = 0; i < embedded->server_count && !status; i++)
    status = await_child(embedded->servers[i], "server", config->deadline_ns, &line);
  return status;
}

static pawl_status check(const struct pwi_embedded_config *config, uint32_t servers) {
  if (config->peers_only && config->servers + (uint64_t)config->replicas > 0)
    return pwi_error(PAWL_INVALID, "a session for peers only has no servers: leave servers and replicas at 0");
  if (config->peers_only) return PAWL_OK;
  if (servers > PWI_EMBEDDED_SERVERS_MAX)
    return pwi_error(PAWL_INVALID, "an embedded cluster of %" PRIu32 " servers: at most %d", servers,
                     PWI_EMBEDDED_SERVERS_MAX);
  if (config->replicas > PWI_REPLICAS_MAX)
    return pwi_error(PAWL_INVALID, "%" PRIu32 " replicas: at most %d", config->replicas, PWI_REPLICAS_MAX);
  if (config->replicas >= servers)
    return pwi_error(PAWL_INVALID, "%" PRIu32 " replicas need more servers than %" PRIu32, config->replicas, servers);
  return PAWL_OK;
}

pawl_status pwi_embedded_start(const struct pwi_embedded_config *config, struct pwi_embedded **embedded_out) {
  uint32_t servers = config->peers_only ? 0 : config->servers ? config->servers : config->replicas + 1;
  struct child_command order;
  pawl_status status = check(config, servers);
  if (status) return status;
  struct pwi_embedded *embedded = pwi_alloc_zero(1, sizeof *embedded);
  if (!embedded) return pwi_error_status(PAWL_NO_MEMORY, "embedded cluster");
  status = PAWL_NO_MEMORY;
  embedded->servers = pwi_alloc_zero(servers, sizeof *embedded->servers);
  if (!embedded->servers && servers > 0) goto stop;
  embedded->server_count = servers;
  status = prepare(embedded, config, &order);
  if (!status) status = start_manager(embedded, config, &order);
  if (!status) status = start_servers(embedded, config, &order);
  if (status) goto stop;
  enlist(embedded);
  *embedded_out = embedded;
  return PAWL_OK;
stop:
  pwi_embedded_stop(embedded);
  return status;
}

const char *pwi_embedded_address(const struct pwi_embedded *embedded) { return embedded->address; }

void pwi_embedded_stop(struct pwi_embedded *embedded) {
  if (!embedded) return;
  delist(embedded);
  for (uint32_t i = 0; i < embedded->server_count; i++)
    if (embedded->servers[i]) pwi_child_ask(embedded->servers[i]);
  for (uint32_t i = 0; i < embedded->server_count; i++) pwi_child_stop(embedded->servers[i], GRACE_NS);
  pwi_child_stop(embedded->manager, GRACE_NS);
  volatile char *secret = embedded->key;
  for (size_t i = 0; i < sizeof embedded->key; i++) secret[i] = 0;
  pwi_free(embedded->servers);
  pwi_free(embedded);
}
