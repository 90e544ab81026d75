#include "host/run/shard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/disk_queue.h"
#include "host/run/address.h"
#include "host/run/inbound.h"
#include "net/net_ops.h"
#include "server/server.h"

#define LOOK_NS INT64_C(10000000)     /* how often a shard checks its state while it joins or leaves */
#define LOST_NS (3 * PWI_HOST_SECOND) /* after this time without a manager a drain is abandoned */

void pwi_run_orders_init(struct pwi_run_orders *orders) {
  orders->events = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init(&orders->mutex, NULL);
  pthread_cond_init(&orders->opened, NULL);
}

void pwi_run_orders_fini(struct pwi_run_orders *orders) {
  if (orders->events >= 0) close(orders->events);
  pthread_cond_destroy(&orders->opened);
  pthread_mutex_destroy(&orders->mutex);
}

void pwi_run_orders_open_gate(struct pwi_run_orders *orders) {
  pthread_mutex_lock(&orders->mutex);
  orders->is_open = true;
  pthread_cond_broadcast(&orders->opened);
  pthread_mutex_unlock(&orders->mutex);
}

static void wait_at_gate(struct pwi_run_orders *orders) {
  pthread_mutex_lock(&orders->mutex);
  while (!orders->is_open) pthread_cond_wait(&orders->opened, &orders->mutex);
  pthread_mutex_unlock(&orders->mutex);
}

void pwi_run_orders_tell(struct pwi_run_orders *orders) {
  int saved = errno; /* a signal handler may run between a call and the use of its errno */
  uint64_t one = 1;
  ssize_t written = write(orders->events, &one, sizeof one);
  (void)written; /* a full counter wakes the thread, too */
  errno = saved;
}

/* --- opening -------------------------------------------------------------------------------------------- */

/* The shard's share of the server's memory. */
static uint64_t share_of(const struct pwi_run_server_config *config) {
  return config->memory_max == UINT64_MAX ? UINT64_MAX : config->memory_max / config->shards;
}

static pawl_status open_net(struct pwi_run_shard *shard) {
  const struct pwi_run_server_config *config = shard->config;
  char listen[PWI_NET_ADDRESS_MAX];
  struct pwi_tcp_config net = config->net;
  net.name = shard->name;
  net.limits.inbound_bytes = pwi_run_inbound(share_of(config));
  pawl_status status = pwi_tcp_create(&net, &pwi_server_actor, NULL, &shard->net);
  if (status) {
    pwi_run_problem_set(&shard->problem, "cannot start the network: %s", pawl_status_text(status));
    return status;
  }
  status = pwi_run_shard_address(config->listen, shard->number, listen);
  if (!status) status = pwi_net_listen(shard->net, listen);
  if (status) pwi_run_problem_listen(&shard->problem, config->listen, status);
  return status;
}

/* As in host/run/manager.c: no callback runs before the net knows the role. */
static pawl_status open_role(struct pwi_run_shard *shard) {
  const struct pwi_run_server_config *config = shard->config;
  pawl_status status = pwi_host_disk_queue_open(&config->checkpoint_places, &shard->disk_queue);
  struct pwi_server_config role = {.net = shard->net,
                                   .log = &shard->log,
                                   .manager = config->manager,
                                   .address = "",
                                   .host = config->host,
                                   .rack = config->rack,
                                   .process = shard->process,
                                   .shard = shard->number,
                                   .shard_count = config->shards,
                                   .memory_max = share_of(config),
                                   .set_aside = pwi_run_inbound(share_of(config)) + pwi_run_answers(share_of(config)),
                                   .answers_max = pwi_run_answers(share_of(config)),
                                   .rights = pwi_run_access_rights,
                                   .rights_context = shard->access,
                                   .auditor = pwi_run_auditor(shard->audit),
                                   .disk_queue = shard->disk_queue,
                                   .functions = config->functions};
  bool has_functions = config->functions && config->functions->count > 0;
  if (!status && has_functions) status = pwi_aside_init(&shard->aside, shard->net);
  if (!status && has_functions) {
    shard->has_aside = true;
    role.run = pwi_aside_run;
    role.run_context = &shard->aside;
  }
  if (!status) status = pwi_server_create(&role, &shard->role);
  if (!status) shard->net->self = shard->role;
  if (status) pwi_run_problem_set(&shard->problem, "cannot start a shard: %s", pawl_status_text(status));
  return status;
}

/* --- running -------------------------------------------------------------------------------------------- */

static void publish(struct pwi_run_shard *shard) {
  struct pwi_run_shard_page *spare = &shard->pages[1 - shard->shown];
  pwi_run_shard_page_fill(spare, shard->role, shard->net, shard->is_leaving, pwi_host_now());
  if (pthread_mutex_trylock(&shard->mutex) != 0) return;
  shard->shown = 1 - shard->shown;
  pthread_mutex_unlock(&shard->mutex);
}

/* Whether the shard is drained, or there is no manager to drain it. */
static bool has_gone(struct pwi_run_shard *shard, const struct pwi_server_state *state) {
  int64_t now = pwi_host_now();
  if (state->has_left) return true; /* also if an operator had it drained */
  if (!shard->is_leaving) return false;
  if (!state->trouble) shard->lost_since = 0;
  if (state->trouble && shard->lost_since == 0) shard->lost_since = now;
  return state->trouble && now - shard->lost_since > LOST_NS;
}

/* Checks the role and reports changes to the waiting thread. True: the shard may end. */
static bool look(struct pwi_run_shard *shard, bool *is_settled_out) {
  struct pwi_run_news *news = &shard->news;
  struct pwi_server_state state;
  if (atomic_load(&shard->orders->told) > 0 && !shard->is_leaving) {
    shard->is_leaving = true;
    pwi_server_leave(shard->role);
  }
  pwi_server_state(shard->role, &state);
  bool changed = atomic_exchange(&news->trouble, (int)state.trouble) != (int)state.trouble;
  changed |= atomic_exchange(&news->joined, state.joined) != state.joined;
  atomic_store(&news->has_left, state.has_left);
  if (changed) pwi_run_orders_tell(shard->orders);
  *is_settled_out = state.joined && !shard->is_leaving;
  return has_gone(shard, &state);
}

/* While all is well the shard checks itself once a second, and its net blocks in between. An order to
 * leave wakes the net and is handled at once. */
static void serve(struct pwi_run_shard *shard) {
  int64_t look_at = 0, publish_at = 0;
  while (!atomic_load(&shard->orders->is_ending)) {
    int64_t now = pwi_host_now();
    int reviews = atomic_load(&shard->orders->reviews);
    if (reviews != shard->reviewed) pwi_server_review(shard->role);
    shard->reviewed = reviews;
    bool is_settled = true, ordered = atomic_load(&shard->orders->told) > 0 && !shard->is_leaving;
    if (now >= look_at || ordered) {
      if (look(shard, &is_settled)) return;
      look_at = now + (is_settled ? PWI_HOST_SECOND : LOOK_NS);
    }
    if (now >= publish_at || ordered) {
      publish(shard);
      publish_at = now + PWI_HOST_SECOND;
    }
    int64_t until = look_at < publish_at ? look_at : publish_at;
    pawl_status status = pwi_net_poll(shard->net, pwi_net_now(shard->net) + (until > now ? until - now : 0));
    (void)status; /* a timeout is not an error */
  }
}

static void enter(struct pwi_run_shard *shard, enum pwi_run_phase phase) {
  atomic_store(&shard->news.phase, (int)phase);
  pwi_run_orders_tell(shard->orders);
}

/* Listens, waits for the other shards, joins, and serves. Returns the status of opening. */
static pawl_status live(struct pwi_run_shard *shard) {
  pawl_status status = open_net(shard);
  if (status) return status;
  snprintf(shard->address, sizeof shard->address, "%s", pwi_net_address(shard->net));
  enter(shard, PWI_RUN_LISTENING);
  wait_at_gate(shard->orders);
  if (atomic_load(&shard->orders->is_ending)) return PAWL_OK;
  status = open_role(shard);
  if (status) return status;
  publish(shard);
  enter(shard, PWI_RUN_RUNNING);
  serve(shard);
  return PAWL_OK;
}

static void *run_shard(void *argument) {
  struct pwi_run_shard *shard = argument;
  pawl_status status = live(shard);
  if (status) atomic_store(&shard->news.trouble, (int)status);
  pthread_mutex_lock(&shard->mutex); /* from now on other threads do not wake the net */
  atomic_store(&shard->news.phase, PWI_RUN_ENDED);
  pthread_mutex_unlock(&shard->mutex);
  pwi_net_destroy(shard->net);
  if (shard->has_aside) pwi_aside_fini(&shard->aside);
  pwi_server_destroy(shard->role);
  pwi_host_disk_queue_close(shard->disk_queue);
  pwi_run_orders_tell(shard->orders);
  return NULL;
}

/* --- from the waiting thread ---------------------------------------------------------------------------- */

void pwi_run_shard_init(struct pwi_run_shard *shard) {
  snprintf(shard->name, sizeof shard->name, "server-%ld.%u", (long)getpid(), (unsigned)shard->number);
  shard->log.node = shard->name;
  pthread_mutex_init(&shard->mutex, NULL);
}

pawl_status pwi_run_shard_start(struct pwi_run_shard *shard) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&shard->thread, NULL, run_shard, shard);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  shard->is_started = error == 0;
  return error ? PAWL_NODE_LIMIT : PAWL_OK;
}

enum pwi_run_phase pwi_run_shard_phase(const struct pwi_run_shard *shard) {
  return (enum pwi_run_phase)atomic_load(&shard->news.phase);
}

void pwi_run_shard_wake(struct pwi_run_shard *shard) {
  pthread_mutex_lock(&shard->mutex);
  if (pwi_run_shard_phase(shard) == PWI_RUN_RUNNING) pwi_net_wake(shard->net);
  pthread_mutex_unlock(&shard->mutex);
}

void pwi_run_shard_fini(struct pwi_run_shard *shard) {
  if (shard->is_started) pthread_join(shard->thread, NULL);
  for (int page = 0; page < 2; page++) pwi_run_shard_page_fini(&shard->pages[page]);
  pthread_mutex_destroy(&shard->mutex);
}
