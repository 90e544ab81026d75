#include "cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/memory.h"
#include "role/journal_file.h"

#define TEST_TIMER 1000 /* cookies from here on are the test's */
#define CALL_LIMIT (60 * PWI_SIM_SECOND)

static void check(struct cluster *cluster, pawl_status status, const char *what) {
  if (!status) return;
  const char *failure = pwi_sim_failure(cluster->sim);
  fail_msg("seed %llu: %s: %s%s%s", (unsigned long long)cluster->config.seed, what, pawl_status_name(status),
           failure ? ": " : "", failure ? failure : "");
}

/* --- the manager ------------------------------------------------------------------------------------------------------ */

static pawl_status open_journal(struct cluster *cluster, const struct pwi_sim_boot *boot) {
  if (!cluster->config.durable) return PAWL_OK;
  return pwi_journal_file_open(boot->files, CLUSTER_LOG, boot->log, &cluster->journal);
}

static void close_journal(struct cluster *cluster) {
  if (cluster->journal) cluster->journal->ops->destroy(cluster->journal);
  cluster->journal = NULL;
}

static pawl_status boot_manager(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                                void **self_out) {
  struct cluster *cluster = context;
  pawl_status status = open_journal(cluster, boot);
  if (status) return status;
  struct pwi_manager_config config = {.net = boot->net,
                                      .journal = cluster->journal,
                                      .random = boot->random,
                                      .log = boot->log,
                                      .host = boot->name,
                                      .rights = cluster->config.rights,
                                      .depot = cluster->config.depot,
                                      .first_processes = cluster->config.processes,
                                      .client_grace_ns = cluster->config.client_grace_ns,
                                      .replicas = cluster->config.replicas,
                                      .journal_bytes = cluster->config.journal_bytes};
  status = pwi_manager_create(&config, &cluster->manager);
  if (!status) status = pwi_net_listen(boot->net, CLUSTER_MANAGER);
  *actor_out = &pwi_manager_actor;
  *self_out = cluster->manager;
  return status;
}

static void halt_manager(void *context, void *self) {
  struct cluster *cluster = context;
  pwi_manager_destroy(self);
  cluster->manager = NULL;
  if (cluster->config.durable) close_journal(cluster);
}

/* --- servers ---------------------------------------------------------------------------------------------------------- */

static pawl_status boot_server(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct cluster_server *server = context;
  pawl_status status = pwi_net_listen(boot->net, server->address);
  if (status) return status;
  uint64_t memory_max = server->cluster->config.memory_max;
  struct pwi_server_config config = {.net = boot->net,
                                     .log = boot->log,
                                     .manager = server->cluster->manager_address,
                                     .host = server->name,
                                     .process = 1000 + server->process + 100 * (uint64_t)boot->incarnation,
                                     .shard = server->shard,
                                     .shard_count = server->shard_count,
                                     .memory_max = memory_max ? memory_max : UINT64_MAX,
                                     .rights = server->cluster->config.rights,
                                     .depot = server->cluster->config.depot};
  status = pwi_server_create(&config, &server->server);
  *actor_out = &pwi_server_actor;
  *self_out = server->server;
  return status;
}

static void halt_server(void *context, void *self) {
  struct cluster_server *server = context;
  pwi_server_destroy(self);
  server->server = NULL;
}

static const char *host_of(const struct cluster *cluster, uint32_t number, char *host) {
  if (cluster->config.checked_hosts) return NULL;
  if (!cluster->config.shared_hosts) return NULL;
  sprintf(host, "host%u", number % 2);
  return host;
}

static void add_server(struct cluster *cluster, uint32_t process, uint32_t shard, uint32_t shard_count) {
  char host[16];
  struct cluster_server *server = &cluster->servers[cluster->server_count++];
  *server = (struct cluster_server){.cluster = cluster, .process = process, .shard = shard, .shard_count = shard_count};
  sprintf(server->name, "s%u.%u", process, shard);
  sprintf(server->address, "s%u.%u:7000", process, shard);
  struct pwi_sim_program program = {.name = server->name,
                                    .host = host_of(cluster, process, host),
                                    .boot = boot_server,
                                    .halt = halt_server,
                                    .context = server};
  check(cluster, pwi_sim_node_add(cluster->sim, &program, &server->node), "adding a server");
}

void cluster_start_late(struct cluster *cluster, uint32_t index) {
  size_t at = (size_t)cluster->config.processes * cluster->config.shards + index;
  check(cluster, pwi_sim_start(cluster->sim, cluster->servers[at].node), "starting a late server");
}

bool cluster_is_ready(struct cluster *cluster) {
  struct pwi_manager_figures figures;
  if (!cluster->manager) return false;
  pwi_manager_figures(cluster->manager, &figures);
  return figures.ready;
}

static void open_manager(struct cluster *cluster) {
  struct pwi_sim_program program = {.name = "m", .boot = boot_manager, .halt = halt_manager, .context = cluster};
  if (!cluster->config.durable) assert_int_equal(pwi_journal_memory_create(&cluster->journal), PAWL_OK);
  check(cluster, pwi_sim_node_add(cluster->sim, &program, &cluster->manager_node), "adding the manager");
  check(cluster, pwi_sim_start(cluster->sim, cluster->manager_node), "starting the manager");
  cluster->manager_address = CLUSTER_MANAGER;
}

static void open_leaders(struct cluster *cluster) {
  leaders_open(&cluster->leaders, cluster, cluster->config.managers);
  cluster->manager_address = cluster->leaders.addresses;
}

void cluster_open(struct cluster *cluster, const struct cluster_config *config) {
  *cluster = (struct cluster){.config = *config};
  struct pwi_sim_config sim;
  pwi_sim_config_init(&sim);
  sim.seed = config->seed;
  if (config->checked_hosts) sim.plane_chance = sim.plane_chance_host = 0;
  if (config->tune) config->tune(&sim, config->context);
  assert_int_equal(pwi_sim_create(&sim, &cluster->sim), PAWL_OK);
  pwi_sim_stream(cluster->sim, 77, &cluster->random);
  if (config->managers > 0)
    open_leaders(cluster);
  else
    open_manager(cluster);
  for (uint32_t process = 0; process < config->processes; process++)
    for (uint32_t shard = 0; shard < config->shards; shard++) add_server(cluster, process, shard, config->shards);
  size_t first = cluster->server_count;
  for (uint32_t late = 0; late < config->late; late++) add_server(cluster, config->processes + late, 0, 1);
  for (size_t i = 0; i < first; i++)
    check(cluster, pwi_sim_start(cluster->sim, cluster->servers[i].node), "starting a server");
}

void cluster_close(struct cluster *cluster) {
  pwi_sim_destroy(cluster->sim);
  close_journal(cluster);
  leaders_close(&cluster->leaders);
}

/* --- clients ---------------------------------------------------------------------------------------------------------- */

static void client_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct cluster_client *client = self;
  if (cookie < TEST_TIMER)
    pwi_client_actor.timer(client->client, timer, cookie);
  else
    client->timer(client->context, cookie - TEST_TIMER);
}

#define FORWARD_LINK(name, type)                                                                                       \
  static type client_##name(void *self, struct pwi_link link, const struct pwi_link_info *info) {                      \
    return pwi_client_actor.name(((struct cluster_client *)self)->client, link, info);                                 \
  }
FORWARD_LINK(greet, pawl_status)
FORWARD_LINK(link_up, void)

static void client_link_down(void *self, struct pwi_link link, pawl_status why) {
  pwi_client_actor.link_down(((struct cluster_client *)self)->client, link, why);
}

static struct pwi_receive client_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  return pwi_client_actor.message(((struct cluster_client *)self)->client, link, message);
}

static void client_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data,
                         size_t size) {
  pwi_client_actor.piece(((struct cluster_client *)self)->client, link, context, offset, data, size);
}

static void client_message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  pwi_client_actor.message_end(((struct cluster_client *)self)->client, link, context, status);
}

static void client_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  pwi_client_actor.done(((struct cluster_client *)self)->client, link, cookie, status);
}

static void client_writable(void *self, struct pwi_link link) {
  pwi_client_actor.writable(((struct cluster_client *)self)->client, link);
}

static const struct pwi_actor client_actor = {
    .greet = client_greet,
    .link_up = client_link_up,
    .link_down = client_link_down,
    .message = client_message,
    .piece = client_piece,
    .message_end = client_message_end,
    .done = client_done,
    .writable = client_writable,
    .timer = client_timer,
};

static pawl_status boot_client(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct cluster_client *client = context;
  char address[32];
  sprintf(address, "%s:7000", client->name);
  pawl_status status = client->listens ? pwi_net_listen(boot->net, address) : PAWL_OK;
  if (status) return status;
  struct pwi_client_config config = {.net = boot->net,
                                     .random = boot->random,
                                     .log = boot->log,
                                     .manager = client->cluster->manager_address,
                                     .host = client->name,
                                     .job = client->job,
                                     .reader = client->reader};
  status = pwi_client_create(&config, &client->client);
  if (status) return status;
  client->net = boot->net;
  client->random = boot->random;
  client->incarnation = boot->incarnation;
  *actor_out = &client_actor;
  *self_out = client;
  if (client->started) client->started(client->context);
  return PAWL_OK;
}

static void halt_client(void *context, void *self) {
  struct cluster_client *client = context;
  (void)self;
  pwi_client_destroy(client->client);
  client->client = NULL;
  if (client->stopped) client->stopped(client->context);
}

void cluster_client_add(struct cluster *cluster, struct cluster_client *client) {
  char host[16];
  client->cluster = cluster;
  struct pwi_sim_program program = {.name = client->name,
                                    .host = host_of(cluster, pwi_sim_node_count(cluster->sim), host),
                                    .boot = boot_client,
                                    .halt = halt_client,
                                    .context = client};
  check(cluster, pwi_sim_node_add(cluster->sim, &program, &client->node), "adding a client");
  check(cluster, pwi_sim_start(cluster->sim, client->node), "starting a client");
}

void cluster_timer(struct cluster_client *client, int64_t delay, uint64_t cookie) {
  struct pwi_timer timer;
  check(client->cluster, pwi_net_timer_set(client->net, pwi_net_now(client->net) + delay, TEST_TIMER + cookie, &timer),
        "a timer");
}

/* --- step by step ----------------------------------------------------------------------------------------------------- */

void cluster_run_while(struct cluster *cluster, bool (*predicate)(void *context), void *context, int64_t limit) {
  check(cluster, pwi_sim_run_while(cluster->sim, predicate, context, pwi_sim_now(cluster->sim) + limit), "running");
}

void cluster_run_for(struct cluster *cluster, int64_t duration) {
  check(cluster, pwi_sim_run_until(cluster->sim, pwi_sim_now(cluster->sim) + duration), "running");
}

static bool is_not_joined(void *context) {
  struct cluster_client *client = context;
  struct pwi_client_state state;
  pwi_client_state(client->client, &state);
  const struct pwi_view *view = pwi_client_view(client->client);
  return !state.joined || !view || view->arc_count == 0;
}

void cluster_wait_joined(struct cluster_client *client) {
  cluster_run_while(client->cluster, is_not_joined, client, CALL_LIMIT);
}

struct waiting {
  struct pwi_asking asking;
  struct pwi_task task;
  bool is_over;
  pawl_status status;
};

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct waiting *waiting = (struct waiting *)((char *)asking - offsetof(struct waiting, asking));
  (void)payload, (void)size;
  waiting->is_over = true;
  waiting->status = status;
}

static void finished(struct pwi_task *task) {
  struct waiting *waiting = (struct waiting *)((char *)task - offsetof(struct waiting, task));
  waiting->is_over = true;
  waiting->status = task->status;
}

static bool is_waiting(void *context) { return !((struct waiting *)context)->is_over; }

pawl_status cluster_ask(struct cluster_client *client, enum pwi_ask what, const struct pwi_writer *payload) {
  struct waiting waiting = {.asking.replied = replied};
  check(client->cluster,
        pwi_client_ask(client->client, &waiting.asking, what, payload ? payload->data : NULL,
                       payload ? payload->size : 0),
        "asking");
  cluster_run_while(client->cluster, is_waiting, &waiting, CALL_LIMIT);
  return waiting.status;
}

struct pwi_flow *cluster_open_vector(struct cluster_client *client, const char *name, uint64_t node) {
  struct pwi_flow *flow = NULL;
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(client->client), name);
  assert_non_null(entry);
  check(client->cluster, pwi_client_flow(client->client, entry->id, node, &flow), "a flow");
  return flow;
}

struct pwi_flow *cluster_vector(struct cluster_client *client, const char *name,
                                const struct pawl_vector_options *options) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, name);
  pwi_write_u8(&writer, (uint8_t)options->type);
  pwi_write_u32(&writer, options->width);
  pwi_write_u64(&writer, options->size);
  pwi_write_u8(&writer, (uint8_t)options->function);
  pwi_write_u8(&writer, (uint8_t)options->placement);
  pwi_write_u8(&writer, (uint8_t)options->layout);
  check(client->cluster, cluster_ask(client, PWI_ASK_CREATE, &writer), "creating a vector");
  pwi_writer_fini(&writer);
  return cluster_open_vector(client, name, 0);
}

pawl_status cluster_call(struct cluster_client *client, struct pwi_flow *flow, enum pwi_request_kind kind,
                         const struct pwi_where *where, const void *in, void *out, struct pwi_task *task_out) {
  struct waiting waiting = {.task.finished = finished};
  pawl_status status = pwi_client_start(client->client, &waiting.task, flow, kind, where, in, out);
  if (status) return status;
  cluster_run_while(client->cluster, is_waiting, &waiting, CALL_LIMIT);
  if (task_out) *task_out = waiting.task;
  return waiting.status;
}
