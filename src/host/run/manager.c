#include "host/run/manager.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "host/clock.h"
#include "host/disk_queue.h"
#include "host/run/address.h"
#include "host/run/audit.h"
#include "host/run/endpoint.h"
#include "host/run/inbound.h"
#include "host/run/journal_aside.h"
#include "host/run/log.h"
#include "host/run/pages.h"
#include "net/net_ops.h"
#include "manager/manager.h"

#define NAME "manager"
#define HOST_SIZE 256

struct pwi_run_manager {
  struct pwi_net *net;
  struct pwi_disk_queue *disk_queue;
  struct pwi_run_log run_log;
  struct pwi_journal *written_aside; /* around the journal of `run_log`; NULL: that journal is in memory */
  struct pwi_random random;
  struct pwi_log log;
  struct pwi_manager *role;
  struct pwi_run_endpoint http;
  struct pwi_run_access *access;
  struct pwi_run_audit *audit; /* NULL: none */
  atomic_bool is_stopping, is_reloading;
  bool is_deserted;                /* all servers are down, and that was logged */
  _Atomic(struct pwi_net *) woken; /* the net that a stop wakes; NULL: none */
  atomic_int wakers;               /* number of threads that are about to wake it */

  /* Used with a store that managers share. */
  struct pwi_run_manager_config config; /* for opening again */
  char host[HOST_SIZE], listen[PWI_NET_ADDRESS_MAX], address[PWI_NET_ADDRESS_MAX];
  struct pwi_run_meta *meta; /* NULL: no store, and `role` is the manager */
  uint64_t cluster;          /* the cluster that we have led; 0: none yet */
  pthread_mutex_t mutex;
  struct pwi_run_manager_page page; /* guarded by the mutex */
};

/* --- pages ---------------------------------------------------------------------------------------------- */

/* A manager whose log names servers that no longer exist would wait for them for ever. */
static void note_deserted(struct pwi_run_manager *manager, const struct pwi_manager_figures *figures) {
  bool is_deserted = figures->arcs > 0 && figures->nodes_up + figures->nodes_draining == 0;
  if (is_deserted && !manager->is_deserted)
    pwi_log(&manager->log, PAWL_LOG_WARN, "servers.gone",
            "nodes_down=%llu what=every-server-of-the-ring-is-down hint=to-start-a-new-cluster-use---new",
            (unsigned long long)figures->nodes_down);
  manager->is_deserted = is_deserted;
}

/* Returns the manager if we lead; else NULL. */
static const struct pwi_manager *fill_meta(const struct pwi_run_manager *manager, struct pwi_run_manager_page *page) {
  struct pwi_standby_state state;
  pwi_run_meta_state(manager->meta, &state);
  page->has_store = true;
  page->leads = state.phase == PWI_STANDBY_LEADING;
  page->term = state.term;
  page->trouble = state.why;
  snprintf(page->leader, sizeof page->leader, "%s", state.leader);
  return state.manager;
}

static void publish(struct pwi_run_manager *manager) {
  struct pwi_run_manager_page page = {.at_ns = pwi_host_now()};
  const struct pwi_manager *role = manager->role;
  if (manager->meta) role = fill_meta(manager, &page);
  if (role) pwi_manager_figures(role, &page.figures);
  if (role) page.filter_count = pwi_manager_filters(role, page.filters, PWI_RUN_FILTERS);
  if (role && !manager->meta) note_deserted(manager, &page.figures);
  if (page.figures.cluster) manager->cluster = page.figures.cluster;
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

static pawl_status open_http(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config,
                             struct pwi_run_problem *problem) {
  struct pwi_run_endpoint_config http = {.address = config->http,
                                         .token_file = config->http_token,
                                         .net = &config->net,
                                         .metrics = render_metrics,
                                         .health = render_health,
                                         .context = manager};
  return pwi_run_endpoint_open(&http, &manager->http, problem);
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* A manager that listens on all interfaces is advertised under the name of the machine. */
static pawl_status open_net(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config,
                            const char *host, struct pwi_run_problem *problem) {
  struct pwi_tcp_config net = config->net;
  const struct pwi_actor *actor = config->store.place ? &pwi_standby_actor : &pwi_manager_actor;
  net.name = NAME;
  net.limits.inbound_bytes = pwi_run_inbound(UINT64_MAX);
  if (!net.advertise && pwi_run_is_wildcard(config->listen)) net.advertise = host;
  pawl_status status = pwi_tcp_create(&net, actor, NULL, &manager->net);
  if (status) {
    pwi_run_problem_set(problem, "cannot start the network: %s", pawl_status_text(status));
    return status;
  }
  status = pwi_net_listen(manager->net, config->listen);
  if (status) pwi_run_problem_listen(problem, config->listen, status);
  atomic_store(&manager->woken, manager->net);
  return status;
}

static pawl_status seed(struct pwi_random *random) {
  uint64_t words[2];
  if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words) return PAWL_IO;
  pwi_random_init(random, words[0], words[1]);
  return PAWL_OK;
}

/* The role is created only now. No callback came before, because callbacks run inside pwi_net_poll. */
static pawl_status open_role(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config,
                             const char *host, struct pwi_run_problem *problem) {
  pawl_status status = seed(&manager->random);
  if (!status && manager->run_log.files)
    status = pwi_journal_aside_create(manager->run_log.journal, manager->net, &manager->written_aside);
  if (!status && !manager->disk_queue)
    status = pwi_host_disk_queue_open(&config->checkpoint_places, &manager->disk_queue);
  struct pwi_manager_config role = {.net = manager->net,
                                    .journal =
                                        manager->written_aside ? manager->written_aside : manager->run_log.journal,
                                    .random = &manager->random,
                                    .log = &manager->log,
                                    .host = host,
                                    .rights = pwi_run_access_rights,
                                    .rights_context = manager->access,
                                    .auditor = pwi_run_auditor(manager->audit),
                                    .first_processes = config->first_servers,
                                    .client_grace_ns = config->client_grace_ns,
                                    .replicas = config->replicas,
                                    .disk_queue = manager->disk_queue,
                                    .checkpoint_directory = config->checkpoint_directory,
                                    .checkpoint_every_ns = config->checkpoint_every_ns,
                                    .checkpoint_keep = config->checkpoint_keep,
                                    .checkpoint_incremental = config->checkpoint_incremental,
                                    .checkpoint_rate = config->checkpoint_rate,
                                    .functions = config->functions,
                                    .meta = manager->run_log.path[0] ? manager->run_log.path : NULL,
                                    .cluster = manager->cluster};
  if (!status && config->store.place) return pwi_run_meta_open(&config->store, &role, &manager->meta, problem);
  if (!status) status = pwi_manager_create(&role, &manager->role);
  if (!status) manager->net->self = manager->role;
  if (status) pwi_run_log_problem(&manager->run_log, status, problem);
  return status;
}

/* A manager that opens again must listen at the same address. */
static void remember(struct pwi_run_manager *manager, const struct pwi_run_manager_config *config) {
  struct pwi_address listened, found;
  manager->config = *config;
  snprintf(manager->address, sizeof manager->address, "%s", pwi_net_address(manager->net));
  snprintf(manager->listen, sizeof manager->listen, "%s", config->listen);
  bool is_fixed = pwi_address_parse(config->listen, &listened) || listened.kind != PWI_ADDRESS_TCP ||
                  (listened.port_first != 0 && listened.port_first == listened.port_last);
  bool is_known = !is_fixed && !pwi_address_parse(manager->address, &found) && found.kind == PWI_ADDRESS_TCP;
  if (is_known) pwi_address_print(&listened, found.port_first, manager->listen);
  manager->config.listen = manager->listen;
  manager->config.http = NULL;
}

pawl_status pwi_run_manager_open(const struct pwi_run_manager_config *config, struct pwi_run_manager **manager_out,
                                 struct pwi_run_problem *problem) {
  struct pwi_run_manager *manager = pwi_alloc_zero(1, sizeof *manager);
  if (!manager) {
    pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
    return PAWL_NO_MEMORY;
  }
  gethostname(manager->host, sizeof manager->host - 1);
  pthread_mutex_init(&manager->mutex, NULL);
  manager->log.node = NAME;
  struct pwi_run_access_config access = config->access;
  /* the access only reads them */
  if (!access.keys) access.keys = (struct pwi_keyring *)(uintptr_t)config->net.keys;
  pawl_status status = pwi_run_access_open(&access, &manager->access, problem);
  if (!status) status = pwi_run_audit_open(config->audit, &manager->audit, problem);
  if (!status) status = open_net(manager, config, manager->host, problem);
  if (!status && !config->store.place)
    status = pwi_run_log_open(config->data, config->listen, pwi_net_address(manager->net), config->anew, &manager->log,
                              &manager->run_log, problem);
  if (!status) status = open_role(manager, config, manager->host, problem);
  if (!status) remember(manager, config);
  if (!status) publish(manager);
  if (!status && config->http) status = open_http(manager, config, problem);
  if (status) {
    pwi_run_manager_close(manager);
    return status;
  }
  *manager_out = manager;
  return PAWL_OK;
}

const char *pwi_run_manager_address(const struct pwi_run_manager *manager) { return manager->address; }

const char *pwi_run_manager_log(const struct pwi_run_manager *manager) {
  return manager->run_log.path[0] ? manager->run_log.path : NULL;
}

void pwi_run_manager_figures(const struct pwi_run_manager *manager, struct pwi_manager_figures *figures_out) {
  pwi_manager_figures(manager->role, figures_out);
}

uint16_t pwi_run_manager_http_port(const struct pwi_run_manager *manager) {
  return pwi_run_endpoint_port(&manager->http);
}

bool pwi_run_manager_http_is_encrypted(const struct pwi_run_manager *manager) {
  return pwi_run_endpoint_is_encrypted(&manager->http);
}

/* --- running -------------------------------------------------------------------------------------------- */

/* Closes the net once no other thread is about to wake it. A waker is a signal handler, or a thread that
 * does nothing else, so the wait is short. */
static void close_net(struct pwi_run_manager *manager) {
  atomic_store(&manager->woken, NULL);
  while (atomic_load(&manager->wakers) > 0) sched_yield();
  pwi_run_meta_stop(manager->meta);
  pwi_net_destroy(manager->net);
  pwi_run_meta_close(manager->meta);
  manager->net = NULL;
  manager->meta = NULL;
}

static pawl_status begin_anew(struct pwi_run_manager *manager, struct pwi_run_problem *problem) {
  publish(manager); /* keeps the cluster id */
  close_net(manager);
  pawl_status status = open_net(manager, &manager->config, manager->host, problem);
  return status ? status : open_role(manager, &manager->config, manager->host, problem);
}

/* PAWL_OK: continue. */
static pawl_status look_at_meta(struct pwi_run_manager *manager, struct pwi_run_problem *problem) {
  enum pwi_standby_phase phase = pwi_run_meta_look(manager->meta);
  if (phase == PWI_STANDBY_OVER) return begin_anew(manager, problem);
  if (phase != PWI_STANDBY_FAILED) return PAWL_OK;
  pwi_run_meta_explain(manager->meta, problem);
  pwi_run_meta_resign(manager->meta);
  return PAWL_CORRUPT;
}

static const struct pwi_manager *role_of(const struct pwi_run_manager *manager) {
  struct pwi_standby_state state;
  if (!manager->meta) return manager->role;
  pwi_run_meta_state(manager->meta, &state);
  return state.manager;
}

static void say_reloaded(struct pwi_run_manager *manager, const char *what, pawl_status status,
                         const struct pwi_run_problem *problem) {
  if (status)
    pwi_log(&manager->log, PAWL_LOG_ERROR, "reload.failed", "what=%s hint=the-previous-files-stay-in-effect why=\"%s\"",
            what, problem->text);
  else
    pwi_log(&manager->log, PAWL_LOG_WARN, "reload.done", "what=%s", what);
}

static void reload(struct pwi_run_manager *manager) {
  struct pwi_run_problem problem;
  struct pwi_manager *role =
      (struct pwi_manager *)(uintptr_t)role_of(manager); /* ours; it was only handed out as const */
  pawl_status status = pwi_run_access_reload(manager->access, &problem);
  say_reloaded(manager, "keys", status, &problem);
  if (!status && role) pwi_manager_review(role);
  if (manager->http.guard)
    say_reloaded(manager, "tokens", pwi_http_guard_reload(manager->http.guard, &problem), &problem);
  if (manager->audit) say_reloaded(manager, "audit", pwi_run_audit_reopen(manager->audit, &problem), &problem);
}

pawl_status pwi_run_manager_loop(struct pwi_run_manager *manager, struct pwi_run_problem *problem) {
  int64_t next = pwi_host_now();
  while (!atomic_load(&manager->is_stopping)) {
    if (atomic_exchange(&manager->is_reloading, false)) reload(manager);
    if (pwi_host_now() >= next) {
      publish(manager);
      next = pwi_host_after(PWI_HOST_SECOND);
    }
    pawl_status status = pwi_net_poll(manager->net, pwi_net_now(manager->net) + PWI_HOST_SECOND);
    (void)status; /* a timeout is not an error */
    status = manager->meta ? look_at_meta(manager, problem) : PAWL_OK;
    if (status) return status;
  }
  if (manager->meta) pwi_run_meta_resign(manager->meta);
  return PAWL_OK;
}

static void wake(struct pwi_run_manager *manager) {
  atomic_fetch_add(&manager->wakers, 1);
  struct pwi_net *net = atomic_load(&manager->woken);
  if (net) pwi_net_wake(net);
  atomic_fetch_sub(&manager->wakers, 1);
}

void pwi_run_manager_stop(struct pwi_run_manager *manager) {
  atomic_store(&manager->is_stopping, true);
  wake(manager);
}

void pwi_run_manager_reload(struct pwi_run_manager *manager) {
  atomic_store(&manager->is_reloading, true);
  wake(manager);
}

void pwi_run_manager_close(struct pwi_run_manager *manager) {
  if (!manager) return;
  pwi_run_endpoint_close(&manager->http);
  close_net(manager);
  pwi_manager_destroy(manager->role);
  pwi_host_disk_queue_close(manager->disk_queue);
  if (manager->written_aside) manager->written_aside->ops->destroy(manager->written_aside);
  pwi_run_log_close(&manager->run_log);
  pwi_run_audit_close(manager->audit);
  pwi_run_access_close(manager->access);
  pthread_mutex_destroy(&manager->mutex);
  pwi_free(manager);
}
