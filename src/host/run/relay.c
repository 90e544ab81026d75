#include "host/run/relay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/clock.h"
#include "host/run/endpoint.h"
#include "host/run/pages.h"
#include "net/net_ops.h"
#include "net/seal.h"

#define HOST_SIZE 256
#define LOOK_NS (PWI_HOST_SECOND / 2)
#define FIRM_JOIN_NS                                                                                                   \
  (PWI_HOST_SECOND / 2)                /* a refusal counts only after this time, because the first may be temporary */
#define LEAVE_NS (5 * PWI_HOST_SECOND) /* longest time for leaving: the manager may be away */

struct pwi_run_relay {
  struct pwi_run_relay_config config;
  char host[HOST_SIZE], name[32], address[PWI_NET_ADDRESS_MAX];
  struct pwi_log log;
  struct pwi_random random;
  uint8_t identity[PWI_SEAL_SECRET];
  struct pwi_net *net;
  struct pwi_relay *relay;
  struct pwi_run_access *access;
  struct pwi_run_endpoint http;
  atomic_int told; /* how often it was told to stop */
  pthread_mutex_t mutex;
  struct pwi_run_relay_page page; /* guarded by the mutex */
};

/* --- pages ---------------------------------------------------------------------------------------------- */

static void publish(struct pwi_run_relay *relay) {
  struct pwi_run_relay_page page = {.at_ns = pwi_host_now(), .is_leaving = atomic_load(&relay->told) > 0};
  struct pwi_client_state state;
  pwi_relay_figures(relay->relay, &page.figures);
  pwi_client_state(pwi_relay_client(relay->relay), &state);
  pwi_net_counts(relay->net, &page.counts);
  pwi_relay_tree_name(&page.figures.tree, page.tree);
  page.joined = state.joined && state.sender != 0;
  page.trouble = state.trouble;
  pthread_mutex_lock(&relay->mutex);
  relay->page = page;
  pthread_mutex_unlock(&relay->mutex);
}

static struct pwi_run_relay_page read_page(struct pwi_run_relay *relay) {
  pthread_mutex_lock(&relay->mutex);
  struct pwi_run_relay_page page = relay->page;
  pthread_mutex_unlock(&relay->mutex);
  return page;
}

static pawl_status render_metrics(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_relay_page page = read_page(context);
  (void)code;
  pwi_run_relay_metrics(&page, text);
  return PAWL_OK;
}

static pawl_status render_health(void *context, struct pwi_text *text, unsigned *code) {
  struct pwi_run_relay_page page = read_page(context);
  *code = pwi_run_relay_health(&page, pwi_host_now(), text);
  return PAWL_OK;
}

static pawl_status open_http(struct pwi_run_relay *relay, struct pwi_run_problem *problem) {
  struct pwi_run_endpoint_config http = {.address = relay->config.http,
                                         .token_file = relay->config.http_token,
                                         .net = &relay->config.net,
                                         .metrics = render_metrics,
                                         .health = render_health,
                                         .context = relay};
  publish(relay);
  return relay->config.http ? pwi_run_endpoint_open(&http, &relay->http, problem) : PAWL_OK;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static pawl_status open_net(struct pwi_run_relay *relay, struct pwi_run_problem *problem) {
  struct pwi_tcp_config net = relay->config.net;
  net.name = relay->name;
  pawl_status status = pwi_tcp_create(&net, &pwi_client_actor, NULL, &relay->net);
  if (status) {
    pwi_run_problem_set(problem, "cannot start the network: %s", pawl_status_text(status));
    return status;
  }
  status = pwi_net_listen(relay->net, relay->config.listen);
  if (status) pwi_run_problem_listen(problem, relay->config.listen, status);
  snprintf(relay->address, sizeof relay->address, "%s", status ? "" : pwi_net_address(relay->net));
  return status;
}

static pawl_status open_role(struct pwi_run_relay *relay, struct pwi_run_problem *problem) {
  const struct pwi_run_relay_config *config = &relay->config;
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed ||
      getrandom(relay->identity, sizeof relay->identity, 0) != (ssize_t)sizeof relay->identity)
    return PAWL_IO;
  pwi_random_init(&relay->random, seed, 0);
  struct pwi_relay_config role = {.net = relay->net,
                                  .random = &relay->random,
                                  .log = &relay->log,
                                  .manager = config->manager,
                                  .host = config->host ? config->host : relay->host,
                                  .rack = config->rack,
                                  .identity = relay->identity,
                                  .tree = config->tree,
                                  .priority = config->priority,
                                  .memory_max = config->memory_max,
                                  .rights = pwi_run_access_rights,
                                  .rights_context = relay->access};
  pawl_status status = pwi_relay_create(&role, &relay->relay);
  if (!status) relay->net->self = pwi_relay_client(relay->relay);
  if (status == PAWL_INVALID)
    pwi_run_problem_set(problem, "the address of the manager, %s, or the label of the host or rack is malformed",
                        config->manager);
  return status;
}

pawl_status pwi_run_relay_open(const struct pwi_run_relay_config *config, struct pwi_run_relay **relay_out,
                               struct pwi_run_problem *problem) {
  problem->text[0] = '\0';
  if (pwi_run_access_is_limited(config->net.keys)) {
    pwi_run_problem_set(problem, "the first key has limits, but a relay acts for others and needs a key without "
                                 "limits; put the cluster's own key first in the file");
    return PAWL_FORBIDDEN;
  }
  struct pwi_run_relay *relay = pwi_alloc_zero(1, sizeof *relay);
  if (!relay) return PAWL_NO_MEMORY;
  relay->config = *config;
  gethostname(relay->host, sizeof relay->host - 1);
  snprintf(relay->name, sizeof relay->name, "relay-%ld", (long)getpid());
  relay->log.node = relay->name;
  pthread_mutex_init(&relay->mutex, NULL);
  pawl_status status = pwi_run_access_open(&config->access, &relay->access, problem);
  if (!status) problem->text[0] = '\0';
  if (!status) status = open_net(relay, problem);
  if (!status) status = open_role(relay, problem);
  if (!status) status = open_http(relay, problem);
  if (!status) {
    *relay_out = relay;
    return PAWL_OK;
  }
  if (!problem->text[0]) pwi_run_problem_set(problem, "%s", pawl_status_text(status));
  pwi_run_relay_close(relay);
  return status;
}

/* --- running -------------------------------------------------------------------------------------------- */

/* Polls until something has happened or the deadline has passed. A timeout is not an error. */
static void poll_until(struct pwi_run_relay *relay, int64_t deadline_ns) {
  int64_t now = pwi_host_now();
  if (now - relay->page.at_ns >= PWI_HOST_SECOND) publish(relay);
  pawl_status status = pwi_net_poll(relay->net, pwi_net_now(relay->net) + (deadline_ns > now ? deadline_ns - now : 0));
  (void)status;
}

/* Errors that a later attempt will not change. */
static bool is_firm(pawl_status status) {
  return status == PAWL_LINK_KEY || status == PAWL_LINK_VERSION || status == PAWL_FORBIDDEN || status == PAWL_INVALID;
}

pawl_status pwi_run_relay_join(struct pwi_run_relay *relay, int64_t timeout_ns, struct pwi_run_problem *problem) {
  int64_t firm_at = pwi_host_after(FIRM_JOIN_NS), deadline = pwi_host_after(timeout_ns);
  struct pwi_client_state state;
  for (;;) {
    int64_t now = pwi_host_now();
    pwi_client_state(pwi_relay_client(relay->relay), &state);
    if (state.joined && state.sender != 0) return PAWL_OK;
    if (atomic_load(&relay->told) > 0) return PAWL_NODE_STOPPED;
    if (state.trouble && (now >= deadline || (now >= firm_at && is_firm(state.trouble)))) break;
    if (now >= deadline) {
      pwi_run_problem_set(problem, "the manager at %s does not answer", relay->config.manager);
      return PAWL_TIMED_OUT;
    }
    poll_until(relay, pwi_host_after(LOOK_NS / 10));
  }
  if (state.trouble == PAWL_FORBIDDEN)
    pwi_run_problem_set(
        problem, "the manager at %s does not permit it: a relay acts for others, and its key must have no limits",
        relay->config.manager);
  else
    pwi_run_problem_join(problem, relay->config.manager, state.trouble);
  return state.trouble;
}

bool pwi_run_relay_doubts(const struct pwi_run_relay *relay, char *text, size_t size) {
  const struct pwi_membership *membership = pwi_client_membership(pwi_relay_client(relay->relay));
  char own[PWI_JOB_MAX + 1];
  pwi_relay_job(&relay->config.tree, own);
  for (size_t i = 0; i < membership->sender_count; i++) {
    const struct pwi_membership_sender *sender = &membership->senders[i];
    if (sender->retired || !pwi_relay_is_job(sender->job, NULL) || strcmp(sender->job, own) == 0) continue;
    snprintf(text, size, "the relay at %s has joined with --tree %s; start all relays with the same --tree",
             sender->address, strchr(sender->job, '.') + 1);
    return true;
  }
  return false;
}

pawl_status pwi_run_relay_serve(struct pwi_run_relay *relay) {
  struct pwi_client *client = pwi_relay_client(relay->relay);
  int64_t until = 0;
  while (!pwi_client_has_left(client) && atomic_load(&relay->told) < 2 && (until == 0 || pwi_host_now() < until)) {
    if (atomic_load(&relay->told) > 0 && until == 0) {
      until = pwi_host_after(LEAVE_NS);
      pwi_relay_leave(relay->relay);
    }
    poll_until(relay, pwi_host_after(LOOK_NS));
  }
  struct pwi_client_state state;
  pwi_client_state(client, &state);
  return state.is_dead && atomic_load(&relay->told) == 0 ? PAWL_LINK_REVOKED : PAWL_OK;
}

uint16_t pwi_run_relay_http_port(const struct pwi_run_relay *relay) { return pwi_run_endpoint_port(&relay->http); }

bool pwi_run_relay_http_is_encrypted(const struct pwi_run_relay *relay) {
  return pwi_run_endpoint_is_encrypted(&relay->http);
}

const char *pwi_run_relay_address(const struct pwi_run_relay *relay) { return relay->address; }

void pwi_run_relay_figures(const struct pwi_run_relay *relay, struct pwi_relay_figures *figures_out) {
  pwi_relay_figures(relay->relay, figures_out);
}

void pwi_run_relay_stop(struct pwi_run_relay *relay, int times) {
  int told = atomic_load(&relay->told);
  while (told < times && !atomic_compare_exchange_weak(&relay->told, &told, times)) continue;
  pwi_net_wake(relay->net);
}

void pwi_run_relay_close(struct pwi_run_relay *relay) {
  if (!relay) return;
  pwi_run_endpoint_close(&relay->http);
  pwi_net_destroy(relay->net);
  pwi_relay_destroy(relay->relay);
  pwi_run_access_close(relay->access);
  pthread_mutex_destroy(&relay->mutex);
  explicit_bzero(relay->identity, sizeof relay->identity);
  pwi_free(relay);
}
