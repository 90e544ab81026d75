#include "host/run_manager.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "host/clock.h"
#include "host/http.h"
#include "host/metrics.h"
#include "host/run_address.h"
#include "host/run_log.h"
#include "host/run_pages.h"
#include "host/run_rights.h"
#include "net/net_ops.h"
#include "role/manager.h"

#define NAME "manager"
#define HOST_SIZE 256

struct pwi_run_manager {
  struct pwi_net *net;
  struct pwi_run_log run_log;
  struct pwi_random random;
  struct pwi_log log;
  struct pwi_manager *role;
  struct pwi_http *http;
  atomic_bool is_stopping;
  bool is_deserted; /* all servers are down, and it was said */
  pthread_mutex_t mutex;
  struct pwi_run_manager_page page; /* under the mutex */
};

/* --- pages ---------------------------------------------------------------------------------------------------------- */

/* A manager that goes on with a log whose servers are no more waits for them for ever. */
static void note_deserted(struct pwi_run_manager *manager, const struct pwi_manager_figures *figures) {
  bool is_deserted = figures->arcs > 0 && figures->nodes_up + figures->nodes_draining == 0;
  if (is_deserted && !manager->is_deserted)
    pwi_log(&manager->log, PAWL_LOG_WARN, "servers.gone",
            "nodes_down=%llu what=none-of-those-that-hold-the-ring-is-up hint=to-begin-a-new-cluster-start-with---new",
            (unsigned long long)figures->nodes_down);
  manager->is_deserted = is_deserted;
}

static void publish(struct pwi_run_manager *manager) {
  struct pwi_run_manager_page page = {.at_ns = pwi_host_now()};
  pwi_manager_figures(manager->role, &page.figures);
  note_deserted(manager, &page.figures);
  pwi_net_counts(manager->net, &page.counts);
  pthread_mutex_lock(&manager->mutex);
  manager->page = page;
  pthread_mutex_unlock(&manager->mutex);
}

static struct pwi_run_manager_page read_page(struct pwi_run_manager *manager) {
  pthread_mutex_lock(&manager->mutex);
  struct pwi_run_manager_page page = manager->page;
  pthread_mutex_unlock(&manager->mutex);
  return page;
}

static pawl_status render_metrics(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_manager_page page = read_page(context);
  (void)code;
  pwi_run_manager_metrics(&page, text);
  return PAWL_OK;
}

static pawl_status render_health(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_manager_page page = read_page(context);
  *code = pwi_run_manager_health(&page, pwi_host_now(), text);
  return PAWL_OK;
}

static pawl_status open_http(struct pwi_run_manager *manager, const char *address, struct pwi_run_problem *problem) {
  const struct pwi_http_route routes[] = {
      {"/metrics", PWI_METRICS_CONTENT_TYPE, render_metrics, manager},
      {"/healthz", "text/plain; charset=utf-8", render_health, manager},
  };
  struct pwi_http_config config = {.address = address, .routes = routes, .route_count = 2};
  pawl_status status = pwi_http_open(&config, &manager->http);
  if (status) pwi_run_problem_http(problem, address, status);
  return status;
}

/* --- opening -------------------------------------------------------------------------------------------------------- */

/* Who listens on all interfaces is known by the name of the machine. */
static pawl_status open_net(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config,
                            const char *host, struct pwi_run_problem *problem) {
  struct pwi_tcp_config net = config->net;
  net.name = NAME;
  if (!net.advertise && pwi_run_is_wildcard(config->listen)) net.advertise = host;
  pawl_status status = pwi_tcp_create(&net, &pwi_manager_actor, NULL, &manager->net);
  if (status) {
    pwi_run_problem_set(problem, "cannot start the network: %s", pawl_status_text(status));
    return status;
  }
  status = pwi_net_listen(manager->net, config->listen);
  if (status) pwi_run_problem_listen(problem, config->listen, status);
  return status;
}

static pawl_status seed(struct pwi_random *random) {
  uint64_t words[2];
  if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words) return PAWL_IO;
  pwi_random_init(random, words[0], words[1]);
  return PAWL_OK;
}

/* The role exists only now, and nothing has been called for it before: callbacks run inside pwi_net_poll. */
static pawl_status open_role(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config,
                             const char *host, struct pwi_run_problem *problem) {
  pawl_status status = seed(&manager->random);
  struct pwi_manager_config role = {.net = manager->net,
                                    .journal = manager->run_log.journal,
                                    .random = &manager->random,
                                    .log = &manager->log,
                                    .host = host,
                                    .rights = pwi_run_rights,
                                    .rights_context = (void *)(uintptr_t)config->net.keys, /* only read */
                                    .first_processes = config->first_servers,
                                    .client_grace_ns = config->client_grace_ns,
                                    .replicas = config->replicas};
  if (!status) status = pwi_manager_create(&role, &manager->role);
  if (!status) manager->net->self = manager->role;
  if (status) pwi_run_log_problem(&manager->run_log, status, problem);
  return status;
}

pawl_status pwi_run_manager_open(const struct pwi_run_manager_config *config, struct pwi_run_manager **manager_out,
                                 struct pwi_run_problem *problem) {
  char host[HOST_SIZE] = "";
  struct pwi_run_manager *manager = pwi_alloc_zero(1, sizeof *manager);
  if (!manager) {
    pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
    return PAWL_NO_MEMORY;
  }
  gethostname(host, sizeof host - 1);
  pthread_mutex_init(&manager->mutex, NULL);
  manager->log.node = NAME;
  pawl_status status = open_net(manager, config, host, problem);
  if (!status)
    status = pwi_run_log_open(config->data, config->listen, pwi_net_address(manager->net), config->anew, &manager->log,
                              &manager->run_log, problem);
  if (!status) status = open_role(manager, config, host, problem);
  if (!status) publish(manager);
  if (!status && config->http) status = open_http(manager, config->http, problem);
  if (status) {
    pwi_run_manager_close(manager);
    return status;
  }
  *manager_out = manager;
  return PAWL_OK;
}

const char *pwi_run_manager_address(const struct pwi_run_manager *manager) { return pwi_net_address(manager->net); }

const char *pwi_run_manager_log(const struct pwi_run_manager *manager) {
  return manager->run_log.path[0] ? manager->run_log.path : NULL;
}

void pwi_run_manager_figures(const struct pwi_run_manager *manager, struct pwi_manager_figures *figures_out) {
  pwi_manager_figures(manager->role, figures_out);
}

uint16_t pwi_run_manager_http_port(const struct pwi_run_manager *manager) {
  return manager->http ? pwi_http_port(manager->http) : 0;
}

/* --- running -------------------------------------------------------------------------------------------------------- */

void pwi_run_manager_loop(struct pwi_run_manager *manager) {
  int64_t next = pwi_host_now();
  while (!atomic_load(&manager->is_stopping)) {
    if (pwi_host_now() >= next) {
      publish(manager);
      next = pwi_host_after(PWI_HOST_SECOND);
    }
    pawl_status status = pwi_net_poll(manager->net, pwi_net_now(manager->net) + PWI_HOST_SECOND);
    (void)status; /* that nothing happened is no news */
  }
}

void pwi_run_manager_stop(struct pwi_run_manager *manager) {
  atomic_store(&manager->is_stopping, true);
  pwi_net_wake(manager->net);
}

void pwi_run_manager_close(struct pwi_run_manager *manager) {
  if (!manager) return;
  pwi_http_close(manager->http);
  pwi_net_destroy(manager->net);
  pwi_manager_destroy(manager->role);
  pwi_run_log_close(&manager->run_log);
  pthread_mutex_destroy(&manager->mutex);
  pwi_free(manager);
}
