/* Creating and destroying the manager, the callbacks of its actor, and its peers. */
#include "manager/manager.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "manager/inside.h"

#define PATIENCE_NS INT64_C(5000000000) /* time limit for JOIN on a new link */
#define CLIENT_GRACE_NS INT64_C(2000000000)
#define SERVER_GRACE_NS INT64_C(1000000000)
#define ABSENT_MAX_NS (120 * INT64_C(1000000000))
#define KEEP_RETIRED_NS (3600 * INT64_C(1000000000))
#define JOURNAL_BYTES (UINT64_C(1) << 20)
#define TIMER_SHIFT 56 /* position of the kind in a timer's cookie; the lower bits are the id */

/* --- timers --------------------------------------------------------------------------------------------- */

void pwi_manager_timer_cancel(struct pwi_manager *manager, struct pwi_timer *timer) {
  if (timer->id != 0) pwi_net_timer_cancel(manager->config.net, *timer);
  timer->id = 0;
}

/* Without memory the timer does not fire. The peer, node or sender is then handled at its next message or
 * change of link. */
void pwi_manager_timer_set(struct pwi_manager *manager, int64_t delay, enum timer_kind kind, uint64_t id,
                           struct pwi_timer *timer) {
  struct pwi_net *net = manager->config.net;
  uint64_t cookie = (uint64_t)kind << TIMER_SHIFT | (id & ((UINT64_C(1) << TIMER_SHIFT) - 1));
  timer->id = 0;
  pawl_status status = pwi_net_timer_set(net, pwi_net_now(net) + delay, cookie, timer);
  if (status)
    pwi_log(manager->config.log, PAWL_LOG_ERROR, "timer.lost", "kind=%d why=%s", kind, pawl_status_name(status));
}

/* --- peers ---------------------------------------------------------------------------------------------- */

struct manager_peer *pwi_manager_peer(const struct pwi_manager *manager, struct pwi_link link) {
  struct manager_peer *peer = manager->buckets[link.id % PWI_MANAGER_BUCKETS];
  while (peer && peer->link.id != link.id) peer = peer->chained;
  return peer;
}

static void add_peer(struct pwi_manager *manager, struct manager_peer *peer) {
  struct manager_peer **bucket = &manager->buckets[peer->link.id % PWI_MANAGER_BUCKETS];
  peer->chained = *bucket;
  *bucket = peer;
  peer->previous = manager->last_peer;
  if (manager->last_peer)
    manager->last_peer->next = peer;
  else
    manager->first_peer = peer;
  manager->last_peer = peer;
}

static void remove_peer(struct pwi_manager *manager, struct manager_peer *peer) {
  struct manager_peer **at = &manager->buckets[peer->link.id % PWI_MANAGER_BUCKETS];
  while (*at != peer) at = &(*at)->chained;
  *at = peer->chained;
  if (peer->previous)
    peer->previous->next = peer->next;
  else
    manager->first_peer = peer->next;
  if (peer->next)
    peer->next->previous = peer->previous;
  else
    manager->last_peer = peer->previous;
}

void pwi_manager_expect_join(struct pwi_manager *manager, struct manager_peer *peer) {
  peer->state = PEER_NEW;
  pwi_manager_timer_set(manager, PATIENCE_NS, TIMER_PATIENCE, peer->link.id, &peer->patience);
}

void pwi_manager_close(struct pwi_manager *manager, struct manager_peer *peer, pawl_status why) {
  pwi_net_close(manager->config.net, peer->link, why);
}

struct manager_node *pwi_manager_node(const struct pwi_manager *manager, uint64_t id) {
  struct pwi_search search = {.high = manager->node_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, manager->nodes[search.middle].id < id);
  size_t at = search.low;
  return at < manager->node_count && manager->nodes[at].id == id ? &manager->nodes[at] : NULL;
}

struct manager_sender *pwi_manager_sender(const struct pwi_manager *manager, uint64_t id) {
  struct pwi_search search = {.high = manager->sender_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, manager->senders[search.middle].id < id);
  size_t at = search.low;
  return at < manager->sender_count && manager->senders[at].id == id ? &manager->senders[at] : NULL;
}

/* --- a new cluster -------------------------------------------------------------------------------------- */

static pawl_status decide_birth(struct pwi_manager *manager, struct decision *decision) {
  (void)decision;
  if (manager->ledger.cluster != 0) return PAWL_OK;
  uint64_t cluster = pwi_random_u64(manager->config.random);
  pwi_record_born(&manager->record, cluster != 0 ? cluster : 1);
  return PAWL_OK;
}

/* The cluster has its id: sets the greeting. */
static void begin(struct pwi_manager *manager, const struct decision *decision, pawl_status status) {
  (void)decision;
  if (status) {
    manager->stopped = status;
    return;
  }
  manager->greeting.cluster = manager->ledger.cluster;
  status = pwi_greeting_set(manager->config.net, &manager->greeting);
  if (status) pwi_log(manager->config.log, PAWL_LOG_ERROR, "greeting.failed", "why=%s", pawl_status_name(status));
  pwi_log(manager->config.log, PAWL_LOG_INFO, "manager.up", "cluster=%016llx epoch=%llu nodes=%zu senders=%zu",
          (unsigned long long)manager->ledger.cluster, (unsigned long long)manager->ledger.view->epoch,
          manager->ledger.node_count, manager->ledger.sender_count);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static void note_have(struct pwi_manager *manager, struct manager_peer *peer, const struct pwi_message_head *head) {
  peer->have = (struct news_numbers){{head->view, head->catalogue, head->membership}};
  if (!peer->is_server) return;
  pwi_manager_settle(manager);
  pwi_manager_moves_heard(manager);
}

/* The numbers only rise. A sender that reports wrong numbers harms only itself. */
static bool note_idle(struct pwi_manager *manager, const struct manager_peer *peer) {
  struct manager_sender *sender = peer->is_server ? NULL : pwi_manager_sender(manager, peer->id);
  if (sender && peer->control.head.task > sender->settled) sender->settled = peer->control.head.task;
  if (sender && peer->control.head.tick > sender->heard) sender->heard = peer->control.head.tick;
  return !peer->is_server;
}

/* Returns false if the peer is no server, or the section is malformed. */
static bool hear_report(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size,
                        const void *body) {
  size_t held;
  const uint8_t *holds = pwi_control_find(&peer->control, body, PWI_SECTION_HOLDS, &held);
  if (!peer->is_server || (holds && held != 2 * sizeof(uint64_t))) return false;
  pwi_manager_report(manager, peer, payload, size, holds);
  return true;
}

/* A message of a peer that has joined. Returns false if its role does not permit the message. */
static bool hear_member(struct pwi_manager *manager, struct manager_peer *peer, const void *payload, size_t size,
                        const void *body) {
  switch (peer->control.head.kind) {
  case PWI_SAY_HAVE:
    note_have(manager, peer, &peer->control.head);
    return true;
  case PWI_SAY_ASK:
    pwi_manager_ask(manager, peer, payload, size);
    return true;
  case PWI_SAY_MOVED:
    if (peer->is_server) pwi_manager_moved(manager, peer, payload, size);
    return peer->is_server;
  case PWI_SAY_COMPLAIN:
    if (peer->is_server) pwi_manager_complain(manager, peer, payload, size);
    return peer->is_server;
  case PWI_SAY_PROBED:
    if (peer->is_server) pwi_manager_probed(manager, peer, payload, size);
    return peer->is_server;
  case PWI_SAY_REPORT:
    return hear_report(manager, peer, payload, size, body);
  case PWI_SAY_SAVED:
    return peer->is_server && pwi_manager_saved(manager, peer, payload, size) != PAWL_CORRUPT;
  case PWI_SAY_SPACES:
    return peer->is_server && pwi_manager_hear_spaces(manager, peer, payload, size);
  case PWI_SAY_SETTLED:
    return pwi_manager_hear_settled(manager, peer, payload, size);
  case PWI_SAY_IDLE:
    return note_idle(manager, peer);
  case PWI_SAY_COUNTS:
    return !peer->is_server && pwi_filter_totals_add(&manager->filters, payload, size) == PAWL_OK;
  case PWI_SAY_LEAVE:
    pwi_manager_leave(manager, peer);
    return true;
  default:
    return false;
  }
}

static void hear(struct pwi_manager *manager, struct manager_peer *peer, const void *body) {
  size_t size;
  const void *payload = pwi_control_find(&peer->control, body, PWI_SECTION_PAYLOAD, &size);
  if (peer->state == PEER_OUT) return;
  bool sensible = false;
  if (peer->state == PEER_NEW && peer->control.head.kind == PWI_SAY_JOIN) {
    pwi_manager_join(manager, peer, payload, size);
    sensible = true;
  } else if (peer->state == PEER_IN) {
    sensible = hear_member(manager, peer, payload, size, body);
  }
  if (!sensible) pwi_manager_close(manager, peer, PAWL_LINK_PROTOCOL);
}

/* --- the actor ------------------------------------------------------------------------------------------ */

static pawl_status on_greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_manager *manager = self;
  struct pwi_peering peering;
  (void)link;
  return pwi_greeting_check(&manager->greeting, info, &peering);
}

static void on_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_manager *manager = self;
  struct pwi_peering found;
  if (!info->accepted) {
    if (!pwi_greeting_check(&manager->greeting, info, &found)) pwi_prober_link_up(&manager->prober, link, &found);
    return;
  }
  struct manager_peer *peer = pwi_alloc_zero(1, sizeof *peer);
  pawl_status status = peer ? pwi_greeting_check(&manager->greeting, info, &peer->peering) : PAWL_NO_MEMORY;
  if (!status) status = pwi_manager_admit(manager, info, peer);
  if (status) {
    pwi_free(peer);
    pwi_net_close(manager->config.net, link, status);
    return;
  }
  peer->link = link;
  add_peer(manager, peer);
  if (peer->peering.hello.role != PWI_ROLE_MANAGER) pwi_manager_expect_join(manager, peer);
}

static void on_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct pwi_manager *manager = self;
  struct manager_peer *peer = pwi_manager_peer(manager, link);
  if (!peer) {
    pwi_prober_link_down(&manager->prober, link, why);
    return;
  }
  pwi_log(manager->config.log, PAWL_LOG_DEBUG, "peer.down", "role=%s id=%llu why=%s",
          peer->is_server ? "server" : "client", (unsigned long long)peer->id, pawl_status_name(why));
  pwi_manager_timer_cancel(manager, &peer->patience);
  remove_peer(manager, peer);
  pwi_manager_settle_lost(manager, peer);
  pwi_manager_peer_lost(manager, peer, why);
  pwi_free(peer);
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct manager_peer *peer = pwi_manager_peer(self, link);
  if (!peer || message->lane != PWI_LANE_LINK) return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  return pwi_control_begin(&peer->control, message, &peer->peering.link);
}

static void on_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct pwi_manager *manager = self;
  struct manager_peer *peer = pwi_manager_peer(manager, link);
  (void)context, (void)offset;
  if (!peer) return;
  pawl_status status = pwi_control_open(&peer->control, data, size, &peer->peering.link);
  if (status)
    pwi_manager_close(manager, peer, status);
  else
    hear(manager, peer, data);
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct pwi_manager *manager = self;
  (void)link, (void)status;
  pwi_messenger_done(&manager->messenger, cookie);
}

/* A cookie has only the lower bits of the link's id, so the peer is found by its timer. */
static void lose_patience(struct pwi_manager *manager, struct pwi_timer timer) {
  for (struct manager_peer *peer = manager->first_peer; peer; peer = peer->next) {
    if (peer->patience.id != timer.id) continue;
    peer->patience.id = 0;
    pwi_manager_close(manager, peer, PAWL_TIMED_OUT);
    return;
  }
}

static void on_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct pwi_manager *manager = self;
  uint64_t id = cookie & ((UINT64_C(1) << TIMER_SHIFT) - 1);
  enum timer_kind kind = (enum timer_kind)(cookie >> TIMER_SHIFT);
  if (manager->stopped && kind != TIMER_PATIENCE) return;
  switch (kind) {
  case TIMER_PATIENCE:
    lose_patience(manager, timer);
    break;
  case TIMER_NODE:
    pwi_manager_node_timer(manager, id);
    break;
  case TIMER_SENDER:
    pwi_manager_sender_timer(manager, id);
    break;
  case TIMER_PLAN:
    pwi_manager_plan_timer(manager);
    break;
  case TIMER_MOVES:
    manager->moves_timer.id = 0;
    pwi_manager_moves_poke(manager);
    break;
  case TIMER_APPLY:
    pwi_manager_work(manager);
    break;
  case TIMER_NEWS:
    pwi_manager_announce(manager);
    break;
  case TIMER_SAVE:
    pwi_manager_save_timer(manager, id);
    break;
  case TIMER_HEARING:
    manager->hearing_timer.id = 0;
    pwi_manager_hear_end(manager);
    break;
  case TIMER_PROBE:
    pwi_prober_timer(&manager->prober);
    break;
  case TIMER_SETTLE:
    pwi_manager_settle_timer(manager);
    break;
  }
}

const struct pwi_actor pwi_manager_actor = {
    .greet = on_greet,
    .link_up = on_link_up,
    .link_down = on_link_down,
    .message = on_message,
    .piece = on_piece,
    .done = on_done,
    .timer = on_timer,
};

/* --- life ----------------------------------------------------------------------------------------------- */

static void take_config(struct pwi_manager *manager, const struct pwi_manager_config *config) {
  manager->config = *config;
  struct pwi_manager_config *c = &manager->config;
  if (c->first_processes == 0) c->first_processes = 1;
  if (c->term == 0) c->term = 1;
  if (!c->meta) c->meta = "memory";
  if (c->client_grace_ns == 0) c->client_grace_ns = CLIENT_GRACE_NS;
  if (c->server_grace_ns == 0) c->server_grace_ns = SERVER_GRACE_NS;
  if (c->absent_max_ns == 0) c->absent_max_ns = ABSENT_MAX_NS;
  if (c->keep_retired_ns == 0) c->keep_retired_ns = KEEP_RETIRED_NS;
  if (c->replicas > PWI_REPLICAS_MAX) c->replicas = PWI_REPLICAS_MAX;
  if (c->journal_bytes == 0) c->journal_bytes = JOURNAL_BYTES;
  manager->replace_at = c->journal_bytes;
  const char *host = config->host ? config->host : "";
  size_t size = strnlen(host, sizeof manager->host - 1);
  memcpy(manager->host, host, size);
  c->host = manager->host;
  manager->greeting = (struct pwi_greeting){
      .role = PWI_ROLE_MANAGER, .host = manager->host, .log = manager->config.log, .net = manager->config.net};
}

static pawl_status replay_record(void *context, const void *record, size_t size) {
  struct pwi_manager *manager = context;
  pawl_status status = pwi_ledger_apply(&manager->ledger, record, size);
  return pwi_ledger_refused(status) ? PAWL_OK : status;
}

static void ignore_safe(void *context, pawl_status status) { (void)context, (void)status; }

static pawl_status remember(struct pwi_manager *manager) {
  struct pwi_journal *journal = manager->config.journal;
  pawl_status status = journal->ops->replay(journal, replay_record, manager);
  if (!status) status = pwi_manager_make_node_room(manager);
  if (!status) status = pwi_manager_make_sender_room(manager);
  if (status) return status;
  if (manager->config.cluster && manager->config.cluster != manager->ledger.cluster) return PAWL_CLUSTER_OTHER;
  manager->greeting.cluster = manager->ledger.cluster;
  status = pwi_greeting_set(manager->config.net, &manager->greeting);
  if (!status) status = pwi_fifo_reserve(&manager->decisions, 1);
  if (status) return status;
  manager->membership_since = manager->ledger.membership.number;
  pwi_manager_follow_ledger(manager);
  return status;
}

pawl_status pwi_manager_create(const struct pwi_manager_config *config, struct pwi_manager **manager_out) {
  struct pwi_manager *manager = pwi_alloc_zero(1, sizeof *manager);
  if (!manager) return PAWL_NO_MEMORY;
  take_config(manager, config);
  pwi_messenger_init(&manager->messenger, config->net);
  pwi_prober_init(&manager->prober, config->net, (uint64_t)TIMER_PROBE << TIMER_SHIFT, pwi_manager_tried, manager);
  pwi_fifo_init(&manager->decisions, sizeof(struct decision));
  pwi_fifo_init(&manager->waiters, sizeof(struct waiting_reply));
  pwi_manager_membership_begin(manager);
  pwi_manager_settle_begin(manager);
  pawl_status status = remember(manager);
  if (status) {
    pwi_manager_destroy(manager);
    return status;
  }
  config->journal->safe = pwi_manager_record_is_safe;
  config->journal->context = manager;
  bool born = manager->ledger.cluster != 0;
  if (born) pwi_manager_announce(manager);
  pwi_manager_queue(manager, &(struct decision){.decide = decide_birth, .conclude = begin});
  if (manager->stopped) {
    status = manager->stopped;
    pwi_manager_destroy(manager);
    return status;
  }
  if (born) {
    pwi_manager_hear(manager);
    pwi_manager_await_all(manager);
    pwi_manager_tidy(manager);
    pwi_manager_plan_later(manager);
  }
  pwi_manager_checkpoints_begin(manager);
  *manager_out = manager;
  return PAWL_OK;
}

void pwi_manager_destroy(struct pwi_manager *manager) {
  if (!manager) return;
  pwi_manager_save_fini(manager);
  manager->config.journal->safe = ignore_safe;
  while (manager->first_peer) {
    struct manager_peer *peer = manager->first_peer;
    remove_peer(manager, peer);
    pwi_free(peer);
  }
  for (size_t i = 0; i < manager->node_count; i++) {
    pwi_free(manager->nodes[i].loads);
    pwi_free(manager->nodes[i].spaces);
  }
  pwi_free(manager->nodes);
  pwi_free(manager->senders);
  pwi_free(manager->moves);
  pwi_free(manager->begun);
  pwi_filter_totals_fini(&manager->filters);
  pwi_manager_news_fini(manager);
  pwi_manager_membership_fini(manager);
  pwi_manager_settle_fini(manager);
  pwi_fifo_fini(&manager->waiters);
  pwi_fifo_fini(&manager->decisions);
  pwi_writer_fini(&manager->record);
  pwi_writer_fini(&manager->change);
  pwi_ledger_fini(&manager->ledger);
  pwi_prober_fini(&manager->prober);
  pwi_messenger_fini(&manager->messenger);
  pwi_free(manager);
}
