/* A standby manager: waiting, then leading. */
#include "manager/leader/standby.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "base/idmap.h"
#include "base/memory.h"
#include "manager/leader/election.h"
#include "manager/leader/journal_meta.h"
#include "manager/leader/leader_watch.h"
#include "protocol/messenger.h"

#define PATIENCE_NS INT64_C(5000000000) /* time limit for JOIN on a new link */

/* Cookies of the manager's timers have small numbers in the top byte. */
#define COOKIE_ELECTION (UINT64_C(0xe1) << 56)
#define COOKIE_SWEEP (UINT64_C(0xe2) << 56)
#define COOKIE_WATCH (UINT64_C(0xe3) << 56)

static_assert(PWI_NET_ADDRESS_MAX == PWI_LABEL_MAX + 1, "an address travels as a label");

/* The other end of a link that came up while this standby did not lead. */
struct standby_peer {
  struct pwi_link link;
  struct pwi_peering peering;
  struct pwi_control control;
  int64_t since;
};

struct pwi_standby {
  struct pwi_standby_config config;
  char prefix[PWI_PREFIX_MAX + 1];
  char host[PWI_HELLO_HOST_MAX + 1];
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_idmap peers;
  struct pwi_timer sweep;
  enum pwi_standby_phase phase;
  pawl_status why;
  struct pwi_election election;
  struct pwi_leader_watch watch;
  struct pwi_journal *journal;
  struct pwi_manager *manager;
};

static void become(struct pwi_standby *standby, enum pwi_standby_phase phase, pawl_status why) {
  if (standby->phase >= PWI_STANDBY_OVER) return;
  standby->phase = phase;
  standby->why = why;
  if (standby->config.changed) standby->config.changed(standby->config.context);
}

/* --- starting to lead ----------------------------------------------------------------------------------- */

static void journal_failed(void *context, pawl_status status) { become(context, PWI_STANDBY_OVER, status); }

/* Closes links that came up before this standby leads: the manager must see every link from its start. */
static void close_peers(struct pwi_standby *standby) {
  for (size_t i = 0; i < standby->peers.room; i++) {
    if (!standby->peers.slots[i].id) continue;
    struct standby_peer *peer = standby->peers.slots[i].item;
    pwi_net_close(standby->config.manager.net, peer->link, PAWL_OK);
    pwi_free(peer);
  }
  pwi_idmap_fini(&standby->peers);
  standby->peers = (struct pwi_idmap){0};
}

static void journal_loaded(void *context, pawl_status status) {
  struct pwi_standby *standby = context;
  struct pwi_manager_config config = standby->config.manager;
  if (standby->phase != PWI_STANDBY_READING) return;
  config.journal = standby->journal;
  config.term = standby->election.term;
  close_peers(standby);
  if (!status) status = pwi_manager_create(&config, &standby->manager);
  if (!status)
    become(standby, PWI_STANDBY_LEADING, PAWL_OK);
  else if (status == PAWL_CORRUPT || status == PAWL_CLUSTER_OTHER)
    become(standby, PWI_STANDBY_FAILED, status);
  else
    become(standby, PWI_STANDBY_OVER, status);
}

static void begin_to_lead(struct pwi_standby *standby) {
  struct pwi_journal_meta_config config = {.meta = standby->config.meta,
                                           .election = &standby->election,
                                           .log = standby->config.manager.log,
                                           .prefix = standby->prefix,
                                           .loaded = journal_loaded,
                                           .failed = journal_failed,
                                           .context = standby};
  pawl_status status = pwi_journal_meta_create(&config, &standby->journal);
  become(standby, status ? PWI_STANDBY_OVER : PWI_STANDBY_READING, status);
  if (!status) pwi_journal_meta_load(standby->journal);
}

static void leader_gone(void *context) {
  struct pwi_standby *standby = context;
  pwi_election_depose(&standby->election);
}

static void election_changed(void *context) {
  struct pwi_standby *standby = context;
  const struct pwi_election *election = &standby->election;
  pwi_leader_watch_set(&standby->watch, election->state == PWI_ELECTION_BEHIND ? election->leader : "");
  if (election->state == PWI_ELECTION_LEADING && standby->phase == PWI_STANDBY_WAITING)
    begin_to_lead(standby);
  else if (election->state == PWI_ELECTION_LOST)
    become(standby, PWI_STANDBY_OVER, election->trouble);
  else if (election->state == PWI_ELECTION_FAILED)
    become(standby, PWI_STANDBY_FAILED, election->trouble);
  else if (standby->config.changed)
    standby->config.changed(standby->config.context);
}

/* --- links while standing by ---------------------------------------------------------------------------- */

static void say_standby(struct pwi_standby *standby, struct standby_peer *peer) {
  struct pwi_joined joined = {.status = PAWL_NODE_STANDBY};
  struct pwi_writer payload = {0};
  struct pwi_message_head head = {.kind = PWI_SAY_JOINED, .tick = standby->election.term};
  if (standby->election.state == PWI_ELECTION_BEHIND)
    memcpy(joined.leader, standby->election.leader, sizeof joined.leader);
  pwi_joined_encode(&joined, &payload);
  struct pwi_enclosure enclosure = {PWI_SECTION_PAYLOAD, payload.data, payload.size};
  if (!payload.status) pwi_messenger_send(&standby->messenger, peer->link, &peer->peering.link, &head, &enclosure, 1);
  pwi_writer_fini(&payload);
}

static void peer_up(struct pwi_standby *standby, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_net *net = standby->config.manager.net;
  if (!info->accepted) {
    pwi_leader_watch_link_up(&standby->watch, link);
    return;
  }
  struct standby_peer *peer = pwi_alloc_zero(1, sizeof *peer);
  pawl_status status = peer ? pwi_greeting_check(&standby->greeting, info, &peer->peering) : PAWL_NO_MEMORY;
  if (!status) status = pwi_idmap_put(&standby->peers, link.id, peer);
  if (status) {
    pwi_free(peer);
    pwi_net_close(net, link, status);
    return;
  }
  peer->link = link;
  peer->since = pwi_net_now(net);
  if (standby->sweep.id != 0) return;
  if (pwi_net_timer_set(net, peer->since + PATIENCE_NS, COOKIE_SWEEP, &standby->sweep)) standby->sweep.id = 0;
}

/* Closes links on which JOIN has not arrived in time. */
static void sweep(struct pwi_standby *standby) {
  struct pwi_net *net = standby->config.manager.net;
  int64_t now = pwi_net_now(net);
  standby->sweep.id = 0;
  for (size_t i = 0; i < standby->peers.room; i++) {
    if (!standby->peers.slots[i].id) continue;
    const struct standby_peer *peer = standby->peers.slots[i].item;
    if (now - peer->since >= PATIENCE_NS) pwi_net_close(net, peer->link, PAWL_TIMED_OUT);
  }
  if (standby->peers.count == 0) return;
  if (pwi_net_timer_set(net, now + PATIENCE_NS, COOKIE_SWEEP, &standby->sweep)) standby->sweep.id = 0;
}

static void hear_peer(struct pwi_standby *standby, struct standby_peer *peer, const void *data, size_t size) {
  pawl_status status = pwi_control_open(&peer->control, data, size, &peer->peering.link);
  if (!status && peer->control.head.kind != PWI_SAY_JOIN) status = PAWL_LINK_PROTOCOL;
  if (!status) say_standby(standby, peer);
  pwi_net_close(standby->config.manager.net, peer->link, status);
}

/* --- the actor: passes callbacks to the manager while it leads ------------------------------------------ */

static bool leads(const struct pwi_standby *standby) { return standby->phase == PWI_STANDBY_LEADING; }

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_standby *standby = self;
  struct pwi_peering peering;
  if (leads(standby)) return pwi_manager_actor.greet(standby->manager, link, info);
  return pwi_greeting_check(&standby->greeting, info, &peering);
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_standby *standby = self;
  if (leads(standby))
    pwi_manager_actor.link_up(standby->manager, link, info);
  else
    peer_up(standby, link, info);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  struct pwi_standby *standby = self;
  struct standby_peer *peer = pwi_idmap_get(&standby->peers, link.id);
  if (peer) {
    pwi_idmap_remove(&standby->peers, link.id);
    pwi_free(peer);
  } else if (!pwi_leader_watch_link_down(&standby->watch, link, why) && leads(standby)) {
    pwi_manager_actor.link_down(standby->manager, link, why);
  }
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *about) {
  struct pwi_standby *standby = self;
  struct standby_peer *peer = pwi_idmap_get(&standby->peers, link.id);
  if (peer && about->lane == PWI_LANE_LINK) return pwi_control_begin(&peer->control, about, &peer->peering.link);
  if (!peer && leads(standby)) return pwi_manager_actor.message(standby->manager, link, about);
  return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct pwi_standby *standby = self;
  struct standby_peer *peer = pwi_idmap_get(&standby->peers, link.id);
  if (peer)
    hear_peer(standby, peer, data, size);
  else if (leads(standby))
    pwi_manager_actor.piece(standby->manager, link, context, offset, data, size);
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct pwi_standby *standby = self;
  /* Messages of the standby itself are small and have no cookie. The manager's bodies are freed even when
   * OVER. */
  if (standby->manager) pwi_manager_actor.done(standby->manager, link, cookie, status);
}

static void timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct pwi_standby *standby = self;
  if (cookie == COOKIE_ELECTION)
    pwi_election_timer(&standby->election);
  else if (cookie == COOKIE_SWEEP)
    sweep(standby);
  else if (cookie == COOKIE_WATCH)
    pwi_leader_watch_timer(&standby->watch);
  else if (leads(standby))
    pwi_manager_actor.timer(standby->manager, timer, cookie);
}

static void woken(void *self) {
  struct pwi_standby *standby = self;
  standby->config.meta->ops->turn(standby->config.meta);
}

const struct pwi_actor pwi_standby_actor = {
    .greet = greet,
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .done = done,
    .timer = timer,
    .woken = woken,
};

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status begin(struct pwi_standby *standby) {
  struct pwi_net *net = standby->config.manager.net;
  struct pwi_election_config election = {.net = net,
                                         .meta = standby->config.meta,
                                         .log = standby->config.manager.log,
                                         .prefix = standby->prefix,
                                         .address = pwi_net_address(net),
                                         .cookie = COOKIE_ELECTION,
                                         .ttl_ns = standby->config.ttl_ns,
                                         .doubt_ns = standby->config.doubt_ns,
                                         .changed = election_changed,
                                         .context = standby};
  standby->greeting = (struct pwi_greeting){.role = PWI_ROLE_MANAGER,
                                            .host = standby->host,
                                            .log = standby->config.manager.log,
                                            .net = standby->config.manager.net};
  standby->watch =
      (struct pwi_leader_watch){.net = net, .cookie = COOKIE_WATCH, .gone = leader_gone, .context = standby};
  pawl_status status = pwi_greeting_set(net, &standby->greeting);
  return status ? status : pwi_election_init(&standby->election, &election);
}

pawl_status pwi_standby_create(const struct pwi_standby_config *config, struct pwi_standby **standby_out) {
  const char *host = config->manager.host ? config->manager.host : "";
  if (strlen(config->prefix) > PWI_PREFIX_MAX) return PAWL_INVALID;
  struct pwi_standby *standby = pwi_alloc_zero(1, sizeof *standby);
  if (!standby) return PAWL_NO_MEMORY;
  standby->config = *config;
  memcpy(standby->prefix, config->prefix, strlen(config->prefix) + 1);
  memcpy(standby->host, host, strnlen(host, sizeof standby->host - 1));
  standby->config.prefix = standby->prefix;
  standby->config.manager.host = standby->host;
  pwi_messenger_init(&standby->messenger, config->manager.net);
  pawl_status status = begin(standby);
  if (status) {
    pwi_standby_destroy(standby);
    return status;
  }
  *standby_out = standby;
  return PAWL_OK;
}

void pwi_standby_destroy(struct pwi_standby *standby) {
  if (!standby) return;
  pwi_manager_destroy(standby->manager);
  if (standby->journal) standby->journal->ops->destroy(standby->journal);
  pwi_election_fini(&standby->election);
  for (size_t i = 0; i < standby->peers.room; i++)
    if (standby->peers.slots[i].id) pwi_free(standby->peers.slots[i].item);
  pwi_idmap_fini(&standby->peers);
  pwi_messenger_fini(&standby->messenger);
  pwi_free(standby);
}

void pwi_standby_state(const struct pwi_standby *standby, struct pwi_standby_state *state_out) {
  const struct pwi_election *election = &standby->election;
  bool is_over = standby->phase >= PWI_STANDBY_OVER;
  *state_out = (struct pwi_standby_state){
      .phase = standby->phase,
      .why = is_over ? standby->why : election->trouble,
      .term = election->term,
      .leader = election->state == PWI_ELECTION_LEADING ? election->address : election->leader,
      .records = standby->journal ? pwi_journal_meta_count(standby->journal) : 0,
      .holds_lease = election->state == PWI_ELECTION_LEADING,
      .manager = standby->manager,
  };
}

void pwi_standby_resign(struct pwi_standby *standby) { pwi_election_resign(&standby->election); }
