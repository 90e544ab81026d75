/* Manager and servers. */
#include "sim/cluster.h"

#include <stdio.h>

#include "base/memory.h"
#include "manager/ledger/journal_file.h"
#include "protocol/membership_share.h"

/* --- the manager ---------------------------------------------------------------------------------------- */

static pawl_status open_journal(struct pwi_cluster *cluster, const struct pwi_sim_boot *boot) {
  if (cluster->config.open_journal)
    return cluster->config.open_journal(cluster->config.context, boot, &cluster->journal);
  if (cluster->config.durable) return pwi_journal_file_open(boot->files, PWI_CLUSTER_LOG, boot->log, &cluster->journal);
  cluster->journal = cluster->memory_journal;
  return PAWL_OK;
}

static void close_journal(struct pwi_cluster *cluster) {
  if (cluster->config.open_journal)
    cluster->config.close_journal(cluster->config.context, cluster->journal);
  else if (cluster->config.durable)
    cluster->journal->ops->destroy(cluster->journal);
  cluster->journal = NULL;
}

static pawl_status create_manager(struct pwi_cluster *cluster, const struct pwi_sim_boot *boot) {
  struct pwi_manager_config config = {.net = boot->net,
                                      .journal = cluster->journal,
                                      .random = boot->random,
                                      .log = boot->log,
                                      .host = boot->name,
                                      .rights = cluster->config.rights,
                                      .disk_queue = cluster->config.disk_queue,
                                      .functions = cluster->config.functions,
                                      .first_processes = cluster->config.processes,
                                      .client_grace_ns = cluster->config.client_grace_ns,
                                      .points = cluster->config.points,
                                      .replicas = cluster->config.replicas,
                                      .journal_bytes = cluster->config.journal_bytes};
  return pwi_manager_create(&config, &cluster->manager);
}

static pawl_status boot_manager(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                                void **self_out) {
  struct pwi_cluster *cluster = context;
  pawl_status status = open_journal(cluster, boot);
  if (status) return status;
  status = create_manager(cluster, boot);
  if (status) {
    close_journal(cluster);
    return status;
  }
  status = pwi_net_listen(boot->net, PWI_CLUSTER_MANAGER);
  if (status) {
    pwi_manager_destroy(cluster->manager);
    cluster->manager = NULL;
    close_journal(cluster);
    return status;
  }
  cluster->manager_shell = (struct pwi_sim_shell){.inner = &pwi_manager_actor,
                                                  .self = cluster->manager,
                                                  .timer = cluster->config.manager_timer,
                                                  .context = cluster->config.context};
  *actor_out = &pwi_sim_shell_actor;
  *self_out = &cluster->manager_shell;
  return PAWL_OK;
}

static uint64_t moves_of(const struct pwi_manager *manager) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(manager, &figures);
  return figures.moves_done;
}

static void halt_manager(void *context, void *self) {
  struct pwi_cluster *cluster = context;
  (void)self;
  cluster->moves_done += moves_of(cluster->manager);
  pwi_manager_destroy(cluster->manager);
  cluster->manager = NULL;
  close_journal(cluster);
}

uint64_t pwi_cluster_moves_done(const struct pwi_cluster *cluster) {
  return cluster->moves_done + (cluster->manager ? moves_of(cluster->manager) : 0);
}

bool pwi_cluster_is_ready(const struct pwi_cluster *cluster) {
  struct pwi_manager_figures figures;
  if (!cluster->manager) return false;
  pwi_manager_figures(cluster->manager, &figures);
  return figures.ready;
}

/* --- servers -------------------------------------------------------------------------------------------- */

/* Numbers of processes differ between the incarnations of all servers. */
static uint64_t stride_of(const struct pwi_cluster *cluster) {
  return cluster->process_count > 100 ? PWI_CLUSTER_MOST : 100;
}

static pawl_status boot_server(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct pwi_cluster_server *server = context;
  pawl_status status = pwi_net_listen(boot->net, server->address);
  if (status) return status;
  uint64_t memory_max = server->cluster->config.memory_max;
  struct pwi_server_config config = {.net = boot->net,
                                     .log = boot->log,
                                     .manager = pwi_cluster_managers(server->cluster),
                                     .host = server->name,
                                     .process = 1000 + server->process + stride_of(server->cluster) * boot->incarnation,
                                     .shard = server->shard,
                                     .shard_count = server->shard_count,
                                     .memory_max = memory_max ? memory_max : UINT64_MAX,
                                     .answers_max = server->cluster->config.answers_max,
                                     .rights = server->cluster->config.rights,
                                     .disk_queue = server->cluster->config.disk_queue,
                                     .functions = server->cluster->config.functions};
  status = pwi_server_create(&config, &server->server);
  if (status) return status;
  *actor_out = &pwi_server_actor;
  *self_out = server->server;
  return PAWL_OK;
}

static void halt_server(void *context, void *self) {
  struct pwi_cluster_server *server = context;
  pwi_server_destroy(self);
  server->server = NULL;
}

static const char *host_of(const struct pwi_cluster *cluster, uint32_t number, char host[16]) {
  if (cluster->config.checked_hosts || !cluster->config.shared_hosts) return NULL;
  snprintf(host, 16, "host%u", number % 2);
  return host;
}

static pawl_status add_server(struct pwi_cluster *cluster, uint32_t process, uint32_t shard, uint32_t shard_count) {
  char host[16];
  struct pwi_cluster_server *server = &cluster->servers[cluster->server_count++];
  *server =
      (struct pwi_cluster_server){.cluster = cluster, .process = process, .shard = shard, .shard_count = shard_count};
  snprintf(server->name, sizeof server->name, "s%u.%u", process, shard);
  snprintf(server->address, sizeof server->address, "%s:7000", server->name);
  struct pwi_sim_program program = {.name = server->name,
                                    .host = host_of(cluster, process, host),
                                    .boot = boot_server,
                                    .halt = halt_server,
                                    .context = server};
  return pwi_sim_node_add(cluster->sim, &program, &server->node);
}

static pawl_status add_process(struct pwi_cluster *cluster, uint32_t shards) {
  uint32_t process = (uint32_t)cluster->process_count++;
  cluster->processes[process] = (struct pwi_cluster_process){cluster->server_count, shards};
  pawl_status status = PAWL_OK;
  for (uint32_t shard = 0; shard < shards && !status; shard++) status = add_server(cluster, process, shard, shards);
  return status;
}

void pwi_cluster_start(struct pwi_cluster *cluster, size_t process) {
  const struct pwi_cluster_process *is = &cluster->processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    pawl_status status = pwi_sim_start(cluster->sim, cluster->servers[i].node);
    if (status && status != PAWL_EXISTS)
      pwi_sim_fail(cluster->sim, status, "%s cannot start: %s", cluster->servers[i].name, pawl_status_name(status));
  }
}

void pwi_cluster_kill(struct pwi_cluster *cluster, size_t process) {
  const struct pwi_cluster_process *is = &cluster->processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++) pwi_sim_kill(cluster->sim, cluster->servers[i].node);
}

bool pwi_cluster_is_up(const struct pwi_cluster *cluster, size_t process) {
  const struct pwi_cluster_process *is = &cluster->processes[process];
  bool all = true;
  for (size_t i = is->first; i < is->first + is->shards; i++) all &= cluster->servers[i].server != NULL;
  return all;
}

/* --- the cluster ---------------------------------------------------------------------------------------- */

static pawl_status add_manager(struct pwi_cluster *cluster) {
  struct pwi_sim_program program = {.name = "m", .boot = boot_manager, .halt = halt_manager, .context = cluster};
  return pwi_sim_node_add(cluster->sim, &program, &cluster->manager_node);
}

static pawl_status add_all(struct pwi_cluster *cluster) {
  const struct pwi_cluster_config *config = &cluster->config;
  uint64_t processes = (uint64_t)config->processes + config->late;
  uint64_t servers = (uint64_t)config->processes * config->shards + config->late;
  if (processes > PWI_CLUSTER_MOST || servers > PWI_CLUSTER_MOST) return PAWL_INVALID;
  cluster->processes = pwi_alloc_zero(processes, sizeof *cluster->processes);
  cluster->servers = pwi_alloc_zero(servers, sizeof *cluster->servers);
  if (!cluster->processes || !cluster->servers) return PAWL_NO_MEMORY;
  pawl_status status = config->managers ? PAWL_OK : add_manager(cluster);
  for (uint32_t i = 0; i < cluster->config.processes && !status; i++)
    status = add_process(cluster, cluster->config.shards);
  for (uint32_t i = 0; i < cluster->config.late && !status; i++) status = add_process(cluster, 1);
  return status;
}

pawl_status pwi_cluster_open(struct pwi_cluster *cluster, const struct pwi_cluster_config *config) {
  struct pwi_sim_config sim;
  *cluster = (struct pwi_cluster){.config = *config};
  if (config->shares_memberships) pwi_membership_share_begin();
  pwi_sim_config_init(&sim);
  sim.seed = config->seed;
  if (config->checked_hosts) sim.plane_chance = sim.plane_chance_host = 0;
  if (config->tune) config->tune(&sim, config->context);
  pawl_status status = pwi_sim_create(&sim, &cluster->sim);
  if (!status) status = pwi_journal_memory_create(&cluster->memory_journal);
  if (status) return status;
  pwi_sim_stream(cluster->sim, 77, &cluster->random);
  status = add_all(cluster);
  if (!status && !config->managers) status = pwi_sim_start(cluster->sim, cluster->manager_node);
  if (status) return status;
  for (uint32_t i = 0; i < config->processes; i++) pwi_cluster_start(cluster, i);
  return PAWL_OK;
}

void pwi_cluster_close(struct pwi_cluster *cluster) {
  pwi_sim_destroy(cluster->sim);
  if (cluster->config.shares_memberships) pwi_membership_share_end();
  cluster->config.shares_memberships = false;
  if (cluster->memory_journal) cluster->memory_journal->ops->destroy(cluster->memory_journal);
  pwi_free(cluster->processes);
  pwi_free(cluster->servers);
  cluster->sim = NULL;
  cluster->memory_journal = NULL;
  cluster->servers = NULL;
  cluster->processes = NULL;
  cluster->server_count = cluster->process_count = 0;
}
