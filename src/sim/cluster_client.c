/* Clients, and the operations that run the simulation step by step. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "manager/ledger/ledger.h"
#include "sim/cluster.h"
#include "wire/hello.h"

#define STEP_LIMIT (60 * PWI_SIM_SECOND)

/* --- clients -------------------------------------------------------------------------------------------- */

static uint8_t priority_of(const struct pwi_cluster_client *client) {
  if (client->priority != 0 || !client->cluster->config.has_priorities) return client->priority;
  uint64_t hash = pwi_hash(client->name, strlen(client->name), client->cluster->config.seed);
  return (uint8_t)(PWI_PRIORITY_LOWEST + hash % (PWI_PRIORITY_HIGHEST - PWI_PRIORITY_LOWEST + 1));
}

static pawl_status create_relay(struct pwi_cluster_client *client, const struct pwi_sim_boot *boot) {
  struct pwi_relay_config config = {.net = boot->net,
                                    .random = boot->random,
                                    .log = boot->log,
                                    .manager = pwi_cluster_managers(client->cluster),
                                    .host = client->name,
                                    .rack = client->rack,
                                    .tree = *client->tree,
                                    .priority = client->priority,
                                    .rights = client->cluster->config.rights,
                                    .second = client->second};
  pawl_status status = pwi_relay_create(&config, &client->relay);
  if (!status) client->client = pwi_relay_client(client->relay);
  return status;
}

static pawl_status boot_client(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct pwi_cluster_client *client = context;
  char address[32];
  snprintf(address, sizeof address, "%s:7000", client->name);
  pawl_status status = client->listens || client->tree ? pwi_net_listen(boot->net, address) : PAWL_OK;
  if (status) return status;
  struct pwi_client_config config = {.net = boot->net,
                                     .random = boot->random,
                                     .log = boot->log,
                                     .manager = pwi_cluster_managers(client->cluster),
                                     .host = client->name,
                                     .rack = client->rack,
                                     .job = client->job,
                                     .reader = client->reader,
                                     .stays_dead = client->stays_dead,
                                     .priority = priority_of(client),
                                     .membership_changed = client->membership_changed,
                                     .context = client->context};
  status = client->tree ? create_relay(client, boot) : pwi_client_create(&config, &client->client);
  if (status) return status;
  client->net = boot->net;
  client->random = boot->random;
  client->incarnation = boot->incarnation;
  client->shell =
      (struct pwi_sim_shell){&pwi_client_actor, client->client, client->timer, client->context, client->heard};
  *actor_out = &pwi_sim_shell_actor;
  *self_out = &client->shell;
  if (client->started) client->started(client->context);
  return PAWL_OK;
}

static void add_figures(struct pwi_client_figures *sum, const struct pwi_client *client) {
  struct pwi_client_figures more;
  pwi_client_figures(client, &more);
  sum->parts_sent += more.parts_sent;
  sum->parts_resent += more.parts_resent;
  sum->gaps += more.gaps;
  sum->wanted += more.wanted;
  sum->not_here += more.not_here;
  sum->retirements += more.retirements;
  sum->reconnects += more.reconnects;
  sum->holds += more.holds;
  sum->bytes_pushed += more.bytes_pushed;
  sum->bytes_pulled += more.bytes_pulled;
  sum->relayed += more.relayed;
  sum->relays_refused += more.relays_refused;
  sum->pulls_relayed += more.pulls_relayed;
  sum->pulls_refused += more.pulls_refused;
}

struct pwi_client_figures pwi_cluster_client_figures(const struct pwi_cluster_client *client) {
  struct pwi_client_figures sum = client->past;
  if (client->client) add_figures(&sum, client->client);
  return sum;
}

static void halt_client(void *context, void *self) {
  struct pwi_cluster_client *client = context;
  (void)self;
  add_figures(&client->past, client->client);
  if (client->relay)
    pwi_relay_destroy(client->relay);
  else
    pwi_client_destroy(client->client);
  client->client = NULL;
  client->relay = NULL;
  if (client->stopped) client->stopped(client->context);
}

static const char *host_of(const struct pwi_cluster *cluster, char host[16]) {
  if (cluster->config.checked_hosts || !cluster->config.shared_hosts) return NULL;
  snprintf(host, 16, "host%u", pwi_sim_node_count(cluster->sim) % 2);
  return host;
}

pawl_status pwi_cluster_client_add(struct pwi_cluster *cluster, struct pwi_cluster_client *client) {
  char host[16];
  client->cluster = cluster;
  struct pwi_sim_program program = {.name = client->name,
                                    .host = host_of(cluster, host),
                                    .boot = boot_client,
                                    .halt = halt_client,
                                    .context = client};
  pawl_status status = pwi_sim_node_add(cluster->sim, &program, &client->node);
  return status ? status : pwi_sim_start(cluster->sim, client->node);
}

void pwi_cluster_timer(struct pwi_cluster_client *client, int64_t delay, uint64_t cookie) {
  pawl_status status = pwi_sim_shell_timer(client->net, delay, cookie);
  if (status) pwi_sim_fail(client->cluster->sim, status, "%s has no timer: %s", client->name, pawl_status_name(status));
}

/* --- step by step --------------------------------------------------------------------------------------- */

pawl_status pwi_cluster_run_while(struct pwi_cluster *cluster, bool (*predicate)(void *context), void *context,
                                  int64_t limit) {
  return pwi_sim_run_while(cluster->sim, predicate, context, pwi_sim_now(cluster->sim) + limit);
}

pawl_status pwi_cluster_run_for(struct pwi_cluster *cluster, int64_t duration) {
  return pwi_sim_run_until(cluster->sim, pwi_sim_now(cluster->sim) + duration);
}

/* The awaited object may be on the stack: if it does not come in time the run ends, so that it never comes
 * later. */
static pawl_status wait_while(struct pwi_cluster *cluster, bool (*predicate)(void *context), void *context,
                              const char *what) {
  pawl_status status = pwi_cluster_run_while(cluster, predicate, context, STEP_LIMIT);
  if (status == PAWL_TIMED_OUT) pwi_sim_fail(cluster->sim, status, "%s took too long", what);
  return status;
}

static bool is_not_joined(void *context) {
  struct pwi_cluster_client *client = context;
  struct pwi_client_state state;
  pwi_client_state(client->client, &state);
  const struct pwi_view *view = pwi_client_view(client->client);
  return !state.joined || !view || view->arc_count == 0;
}

pawl_status pwi_cluster_wait_joined(struct pwi_cluster_client *client) {
  return wait_while(client->cluster, is_not_joined, client, "joining");
}

struct client_wait {
  struct pwi_asking asking;
  struct pwi_task task;
  bool is_over;
  pawl_status status;
};

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct client_wait *waiting = (struct client_wait *)((char *)asking - offsetof(struct client_wait, asking));
  (void)payload, (void)size;
  waiting->is_over = true;
  waiting->status = status;
}

static void finished(struct pwi_task *task) {
  struct client_wait *waiting = (struct client_wait *)((char *)task - offsetof(struct client_wait, task));
  waiting->is_over = true;
}

static bool is_waiting(void *context) { return !((struct client_wait *)context)->is_over; }

pawl_status pwi_cluster_ask(struct pwi_cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload,
                            pawl_status *status_out) {
  struct client_wait waiting = {.asking.replied = replied};
  pawl_status status = pwi_client_ask(client->client, &waiting.asking, what, payload ? payload->data : NULL,
                                      payload ? payload->size : 0);
  if (status) return status;
  status = wait_while(client->cluster, is_waiting, &waiting, "an ask");
  if (!waiting.is_over) pwi_client_unask(client->client, &waiting.asking);
  if (!status) *status_out = waiting.status;
  return status;
}

pawl_status pwi_cluster_open_vector(struct pwi_cluster_client *client, const char *name, uint64_t node,
                                    struct pwi_flow **flow_out) {
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(client->client), name);
  return entry ? pwi_client_flow(client->client, entry->id, node, flow_out) : PAWL_NOT_FOUND;
}

pawl_status pwi_cluster_vector(struct pwi_cluster_client *client, const char *name,
                               const struct pawl_vector_options *options, struct pwi_flow **flow_out) {
  struct pwi_writer writer = {0};
  pawl_status said = PAWL_OK;
  pwi_write_text(&writer, name);
  pwi_options_write(&writer, options);
  pawl_status status = writer.status;
  if (!status) status = pwi_cluster_ask(client, PWI_ASK_CREATE, &writer, &said);
  pwi_writer_fini(&writer);
  if (!status) status = said;
  return status ? status : pwi_cluster_open_vector(client, name, 0, flow_out);
}

pawl_status pwi_cluster_call(struct pwi_cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                             const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out) {
  struct client_wait waiting = {.task.finished = finished};
  pawl_status status = pwi_client_start(client->client, &waiting.task, flow, kind, where, in, out);
  if (!status) status = wait_while(client->cluster, is_waiting, &waiting, "a call");
  if (!status) *task_out = waiting.task;
  return status;
}
