#include "host/run/server.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "host/clock.h"
#include "host/run/address.h"
#include "host/run/endpoint.h"
#include "host/run/shard.h"
#include "protocol/manager_list.h"

#define HOST_SIZE 256
#define WAIT_NS (PWI_HOST_SECOND / 2) /* how often the waiting thread checks the shards without news */
#define FIRM_JOIN_NS                                                                                                   \
  (PWI_HOST_SECOND / 2) /* a refusal counts only after this time, because the first may be temporary */

struct pwi_run_server {
  /* with all defaults filled in; its strings are those of the next line */
  struct pwi_run_server_config config;
  char *manager, *listen, *host, *rack, *advertise;
  struct pwi_run_orders orders;
  struct pwi_run_access *access;
  struct pwi_run_audit *audit; /* NULL: none */
  struct pwi_log log;          /* of the waiting thread */
  atomic_bool is_reloading;
  struct pwi_run_endpoint http;
  const struct pwi_run_shard_page **reading; /* one per shard; for the HTTP thread */
  uint32_t count;
  struct pwi_run_shard shards[];
};

/* --- the waiting thread --------------------------------------------------------------------------------- */

static void wake_all(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++) pwi_run_shard_wake(&server->shards[i]);
}

/* Waits until something has changed or the deadline has passed. */
static void wait_for_news(struct pwi_run_server *server, int64_t deadline_ns) {
  struct pollfd watched = {.fd = server->orders.events, .events = POLLIN};
  struct timespec left = pwi_host_until(deadline_ns);
  uint64_t count;
  if (ppoll(&watched, 1, &left, NULL) > 0) {
    ssize_t got = read(server->orders.events, &count, sizeof count);
    (void)got;
  }
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* PAWL_OK once the shard has reached the phase, or why it ended before. */
static pawl_status await_phase(struct pwi_run_server *server, struct pwi_run_shard *shard, enum pwi_run_phase phase,
                               struct pwi_run_problem *problem) {
  while (pwi_run_shard_phase(shard) < phase) wait_for_news(server, pwi_host_after(WAIT_NS));
  if (pwi_run_shard_phase(shard) != PWI_RUN_ENDED) return PAWL_OK;
  *problem = shard->problem;
  return (pawl_status)atomic_load(&shard->news.trouble);
}

static pawl_status start_shard(struct pwi_run_server *server, uint32_t number, struct pwi_run_problem *problem) {
  struct pwi_run_shard *shard = &server->shards[number];
  pawl_status status = pwi_run_shard_start(shard);
  if (status) {
    pwi_run_problem_set(problem, "cannot start a thread for a shard: %s", pawl_status_text(status));
    return status;
  }
  return await_phase(server, shard, PWI_RUN_LISTENING, problem);
}

/* Opens the gate. All shards listen by now, so the cluster never hears of a server that failed to start. */
static pawl_status let_join(struct pwi_run_server *server, struct pwi_run_problem *problem) {
  pawl_status status = PAWL_OK;
  pwi_run_orders_open_gate(&server->orders);
  for (uint32_t i = 0; !status && i < server->count; i++)
    status = await_phase(server, &server->shards[i], PWI_RUN_RUNNING, problem);
  return status;
}

/* --- HTTP ----------------------------------------------------------------------------------------------- */

static void lock_pages(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++) {
    struct pwi_run_shard *shard = &server->shards[i];
    pthread_mutex_lock(&shard->mutex);
    server->reading[i] = &shard->pages[shard->shown];
  }
}

static void unlock_pages(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++) pthread_mutex_unlock(&server->shards[i].mutex);
}

static pawl_status render_metrics(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_server *server = context;
  (void)code;
  lock_pages(server);
  pwi_run_server_metrics(server->reading, server->count, text);
  unlock_pages(server);
  return PAWL_OK;
}

static pawl_status render_health(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_server *server = context;
  lock_pages(server);
  *code = pwi_run_server_health(server->reading, server->count, pwi_host_now(), text);
  unlock_pages(server);
  return PAWL_OK;
}

static pawl_status open_http(struct pwi_run_server *server, const struct pwi_run_server_config *config,
                             struct pwi_run_problem *problem) {
  struct pwi_run_endpoint_config http = {.address = config->http,
                                         .token_file = config->http_token,
                                         .net = &config->net,
                                         .metrics = render_metrics,
                                         .health = render_health,
                                         .context = server};
  return pwi_run_endpoint_open(&http, &server->http, problem);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool has_port(const char *advertised) {
  const char *bracket = advertised ? strchr(advertised, ']') : NULL;
  return advertised && strchr(bracket ? bracket : advertised, ':');
}

static pawl_status check(const struct pwi_run_server_config *config, struct pwi_run_problem *problem) {
  if (pwi_run_access_is_limited(config->net.keys)) {
    pwi_run_problem_set(problem, "the first key has limits, but a server needs a key without limits; put the cluster's "
                                 "own key first in the file");
    return PAWL_FORBIDDEN;
  }
  if (config->shards > 1 && has_port(config->net.advertise)) {
    pwi_run_problem_set(problem, "%s names one port, but there are %u shards; advertise the host alone",
                        config->net.advertise, (unsigned)config->shards);
    return PAWL_INVALID;
  }
  if (config->shards > PWI_RUN_SHARDS_MAX) {
    pwi_run_problem_set(problem, "too many shards: at most %d", PWI_RUN_SHARDS_MAX);
    return PAWL_INVALID;
  }
  return PAWL_OK;
}

static struct pwi_run_server *allocate(const struct pwi_run_server_config *config) {
  uint32_t count = config->shards ? config->shards : 1;
  struct pwi_run_server *server = pwi_alloc_zero(1, sizeof *server + count * sizeof(struct pwi_run_shard));
  if (!server) return NULL;
  server->config = *config;
  server->config.shards = server->count = count;
  pwi_run_orders_init(&server->orders);
  server->reading = pwi_alloc_zero(count, sizeof *server->reading);
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_run_shard *shard = &server->shards[i];
    shard->orders = &server->orders;
    shard->config = &server->config;
    shard->number = i;
    pwi_run_shard_init(shard);
  }
  if (server->reading && server->orders.events >= 0) return server;
  pwi_run_server_close(server);
  return NULL;
}

/* The addresses to listen on and to advertise depend on the route to the manager. */
static pawl_status find_addresses(struct pwi_run_server *server, struct pwi_run_problem *problem) {
  struct pwi_run_server_config *config = &server->config;
  char route[PWI_NET_ADDRESS_MAX] = "127.0.0.1";
  bool is_loopback = true;
  char manager[PWI_NET_ADDRESS_MAX];
  bool is_asked = !config->listen || (!config->net.advertise && pwi_run_is_wildcard(config->listen));
  pawl_status status = is_asked ? pwi_managers_first(config->manager, manager) : PAWL_OK;
  if (!status && is_asked) status = pwi_run_route(manager, route, &is_loopback);
  if (status) {
    pwi_run_problem_join(problem, config->manager, status);
    return status;
  }
  char near[PWI_NET_ADDRESS_MAX + 8];
  snprintf(near, sizeof near, "%s:0", route);
  const char *all = route[0] == '[' ? "[::]:0" : "0.0.0.0:0";
  const char *listen = config->listen ? config->listen : is_loopback ? near : all;
  const char *advertise = config->net.advertise ? config->net.advertise : pwi_run_is_wildcard(listen) ? route : NULL;
  server->listen = pwi_copy_string(listen);
  server->advertise = advertise ? pwi_copy_string(advertise) : NULL;
  config->listen = server->listen;
  config->net.advertise = server->advertise;
  return !server->listen || (advertise && !server->advertise) ? PAWL_NO_MEMORY : PAWL_OK;
}

static pawl_status prepare(struct pwi_run_server *server, struct pwi_run_problem *problem) {
  char host[HOST_SIZE] = "";
  struct pwi_run_server_config *config = &server->config;
  gethostname(host, sizeof host - 1);
  pawl_status status = find_addresses(server, problem);
  if (status) return status;
  config->manager = server->manager = pwi_copy_string(config->manager);
  config->host = server->host = pwi_copy_string(config->host ? config->host : host);
  config->rack = server->rack = pwi_copy_string(config->rack ? config->rack : "");
  if (!server->manager || !server->host || !server->rack) return PAWL_NO_MEMORY;
  uint64_t process = 0;
  while (process == 0)
    if (getrandom(&process, sizeof process, 0) != (ssize_t)sizeof process) return PAWL_IO;
  for (uint32_t i = 0; i < server->count; i++) server->shards[i].process = process;
  return PAWL_OK;
}

static pawl_status open_access(struct pwi_run_server *server, const struct pwi_run_server_config *config,
                               struct pwi_run_problem *problem) {
  struct pwi_run_access_config access = config->access;
  access.is_server = true;
  /* the access only reads them */
  if (!access.keys) access.keys = (struct pwi_keyring *)(uintptr_t)config->net.keys;
  server->log.node = server->shards[0].name;
  pawl_status status = pwi_run_access_open(&access, &server->access, problem);
  if (!status) status = pwi_run_audit_open(config->audit, &server->audit, problem);
  for (uint32_t i = 0; i < server->count; i++) {
    server->shards[i].access = server->access;
    server->shards[i].audit = server->audit;
  }
  return status;
}

pawl_status pwi_run_server_open(const struct pwi_run_server_config *config, struct pwi_run_server **server_out,
                                struct pwi_run_problem *problem) {
  pawl_status status = check(config, problem);
  if (status) return status;
  problem->text[0] = '\0';
  struct pwi_run_server *server = allocate(config);
  status = server ? open_access(server, config, problem) : PAWL_NO_MEMORY;
  if (!status) status = prepare(server, problem);
  for (uint32_t i = 0; !status && i < server->count; i++) status = start_shard(server, i, problem);
  if (!status && config->http) status = open_http(server, config, problem);
  if (!status) status = let_join(server, problem);
  if (!status) {
    *server_out = server;
    return PAWL_OK;
  }
  if (!problem->text[0]) pwi_run_problem_set(problem, "%s", pawl_status_text(status));
  pwi_run_server_close(server);
  return status;
}

const char *pwi_run_server_address(const struct pwi_run_server *server, uint32_t shard) {
  return server->shards[shard].address;
}

uint16_t pwi_run_server_http_port(const struct pwi_run_server *server) { return pwi_run_endpoint_port(&server->http); }

bool pwi_run_server_http_is_encrypted(const struct pwi_run_server *server) {
  return pwi_run_endpoint_is_encrypted(&server->http);
}

/* --- joining -------------------------------------------------------------------------------------------- */

/* The first shard that has not joined, or NULL. */
static struct pwi_run_shard *outside(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++)
    if (!atomic_load(&server->shards[i].news.joined)) return &server->shards[i];
  return NULL;
}

/* Errors that a later attempt will not change. */
static bool is_firm(pawl_status status) {
  return status == PAWL_LINK_KEY || status == PAWL_LINK_VERSION || status == PAWL_FORBIDDEN || status == PAWL_INVALID;
}

pawl_status pwi_run_server_join(struct pwi_run_server *server, int64_t timeout_ns, struct pwi_run_problem *problem) {
  int64_t firm_at = pwi_host_after(FIRM_JOIN_NS), deadline = pwi_host_after(timeout_ns);
  struct pwi_run_shard *shard;
  while ((shard = outside(server))) {
    pawl_status trouble = (pawl_status)atomic_load(&shard->news.trouble);
    int64_t now = pwi_host_now();
    if (atomic_load(&server->orders.told) > 0) return PAWL_NODE_STOPPED;
    if (trouble && (now >= deadline || (now >= firm_at && is_firm(trouble)))) {
      pwi_run_problem_join(problem, server->config.manager, trouble);
      return trouble;
    }
    if (now >= deadline) {
      pwi_run_problem_set(problem, "the manager at %s does not answer", server->config.manager);
      return PAWL_TIMED_OUT;
    }
    wait_for_news(server, pwi_host_after(WAIT_NS / 10));
  }
  return PAWL_OK;
}

/* --- running, and the end ------------------------------------------------------------------------------- */

static bool is_over(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++)
    if (server->shards[i].is_started && pwi_run_shard_phase(&server->shards[i]) != PWI_RUN_ENDED) return false;
  return true;
}

static pawl_status outcome(struct pwi_run_server *server) {
  for (uint32_t i = 0; i < server->count; i++)
    if (!atomic_load(&server->shards[i].news.has_left)) return PAWL_TIMED_OUT;
  return PAWL_OK;
}

static void say_reloaded(struct pwi_run_server *server, const char *what, pawl_status status,
                         const struct pwi_run_problem *problem) {
  if (status)
    pwi_log(&server->log, PAWL_LOG_ERROR, "reload.failed", "what=%s hint=the-previous-files-stay-in-effect why=\"%s\"",
            what, problem->text);
  else
    pwi_log(&server->log, PAWL_LOG_WARN, "reload.done", "what=%s", what);
}

/* Reloads keys first, so that a peer whose link is closed cannot come back with an old key. */
static void reload(struct pwi_run_server *server) {
  struct pwi_run_problem problem;
  pawl_status status = pwi_run_access_reload(server->access, &problem);
  say_reloaded(server, "keys", status, &problem);
  if (!status) atomic_fetch_add(&server->orders.reviews, 1);
  wake_all(server);
  if (server->http.guard) say_reloaded(server, "tokens", pwi_http_guard_reload(server->http.guard, &problem), &problem);
  if (server->audit) say_reloaded(server, "audit", pwi_run_audit_reopen(server->audit, &problem), &problem);
}

bool pwi_run_server_wait(struct pwi_run_server *server) {
  while (atomic_load(&server->orders.told) == 0 && !is_over(server)) {
    if (atomic_exchange(&server->is_reloading, false)) reload(server);
    wait_for_news(server, INT64_MAX);
  }
  return atomic_load(&server->orders.told) == 0 && outcome(server) == PAWL_OK;
}

pawl_status pwi_run_server_drain(struct pwi_run_server *server) {
  int64_t deadline = pwi_host_after(server->config.drain_ns);
  wake_all(server);
  while (!is_over(server) && atomic_load(&server->orders.told) < 2 && pwi_host_now() < deadline)
    wait_for_news(server, earlier(deadline, pwi_host_after(WAIT_NS)));
  return outcome(server);
}

void pwi_run_server_reload(struct pwi_run_server *server) {
  atomic_store(&server->is_reloading, true);
  pwi_run_orders_tell(&server->orders);
}

void pwi_run_server_stop(struct pwi_run_server *server, int times) {
  int told = atomic_load(&server->orders.told);
  while (told < times && !atomic_compare_exchange_weak(&server->orders.told, &told, times)) continue;
  pwi_run_orders_tell(&server->orders);
}

void pwi_run_server_close(struct pwi_run_server *server) {
  if (!server) return;
  pwi_run_endpoint_close(&server->http);
  atomic_store(&server->orders.is_ending, true);
  pwi_run_orders_open_gate(&server->orders);
  wake_all(server);
  for (uint32_t i = 0; i < server->count; i++) pwi_run_shard_fini(&server->shards[i]);
  pwi_run_orders_fini(&server->orders);
  pwi_run_audit_close(server->audit);
  pwi_run_access_close(server->access);
  pwi_free(server->reading);
  pwi_free(server->manager);
  pwi_free(server->listen);
  pwi_free(server->host);
  pwi_free(server->rack);
  pwi_free(server->advertise);
  pwi_free(server);
}
