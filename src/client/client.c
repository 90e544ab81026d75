/* The life of a client: its links, the actor, and local vectors. */
#include "client/client.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "client/inside.h"

/* --- links ---------------------------------------------------------------------------------------------- */

static struct client_link *add_link(struct pwi_client *client, enum client_link_kind kind, struct pwi_link link) {
  struct client_link *fresh = pwi_alloc_zero(1, sizeof *fresh);
  if (!fresh) return NULL;
  fresh->kind = kind;
  fresh->link = link;
  fresh->priority_told = client->config.priority; /* by the hello */
  if (pwi_idmap_put(&client->links, link.id, fresh)) {
    pwi_free(fresh);
    return NULL;
  }
  return fresh;
}

static void remove_link(struct pwi_client *client, struct client_link *link) {
  if (link->kind == LINK_ASKER && client->callee) pwi_callee_link_down(client->callee, link->link.id);
  if (link->kind == LINK_ASKER && client->config.relaying)
    client->config.relaying->link_down(client->config.relaying->context, link->link);
  pwi_handler_link_down(link->handler);
  pwi_idmap_remove(&client->links, link->link.id);
  pwi_free(link);
}

struct client_link *pwi_client_connect(struct pwi_client *client, enum client_link_kind kind, const char *address) {
  struct pwi_link link;
  pawl_status status = pwi_net_connect(client->config.net, address, &link);
  if (status) {
    if (kind == LINK_MANAGER) client->trouble = status;
    return NULL;
  }
  struct client_link *fresh = add_link(client, kind, link);
  if (!fresh) pwi_net_close(client->config.net, link, PAWL_NO_MEMORY);
  return fresh;
}

/* The end of every event. A part that is collected may also end without an answer, if its vector was deleted or its
 * node is gone; the renewal may have waited only for this part. */
static void end_event(struct pwi_client *client) {
  if (client->renewal == RENEWAL_COLLECTING && !client->is_dead) pwi_client_look_collected(client);
  pwi_client_send_due(client);
}

/* --- time ----------------------------------------------------------------------------------------------- */

void pwi_client_wake_at(struct pwi_client *client, int64_t at) {
  if (client->tick_at != 0 && client->tick_at <= at) return;
  if (client->tick_at != 0) pwi_net_timer_cancel(client->config.net, client->tick);
  client->tick_at = 0;
  if (!pwi_net_timer_set(client->config.net, at, 1, &client->tick)) client->tick_at = at;
}

static void timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct pwi_client *client = self;
  (void)timer, (void)cookie;
  client->tick_at = 0;
  int64_t now = pwi_net_now(client->config.net);
  pwi_client_seek_manager(client, now);
  pwi_client_look_at_peers(client, now);
  if (client->group_peers) pwi_peers_look(client->group_peers, now);
  pwi_parts_unpark(client, false);
  pwi_client_rejoin_groups(client, now);
  pwi_client_tell_counts(client, false);
  pwi_client_tell_idle(client);
  if (client->config.relaying) client->config.relaying->look(client->config.relaying->context, now);
  end_event(client);
}

/* --- the actor ------------------------------------------------------------------------------------------ */

static pawl_status make_shard(struct pwi_client *client);

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_client *client = self;
  struct pwi_peering peering;
  (void)link;
  return pwi_greeting_check(&client->greeting, info, &peering);
}

/* Another node connects, to use a local vector or to call a function. If there is none, its requests are
 * answered so. */
static void accept_asker(struct pwi_client *client, struct pwi_link link, const struct pwi_link_info *info,
                         const struct pwi_peering *peering) {
  struct pwi_rights everything = {.write = true};
  const struct pwi_relaying *relaying = client->config.relaying; /* requests are the relay's, and it holds no vectors */
  pawl_status status = relaying ? PAWL_OK : make_shard(client);
  struct client_link *fresh = status ? NULL : add_link(client, LINK_ASKER, link);
  if (!status && !fresh) status = PAWL_NO_MEMORY;
  if (!status)
    status = relaying ? relaying->link_up(relaying->context, link, info, peering)
                      : pwi_handler_link_up(client->handler, link, peering, info->identity, &everything, NULL,
                                            &fresh->handler);
  if (status) {
    pwi_net_close(client->config.net, link, status);
    return;
  }
  fresh->peering = *peering;
  fresh->is_up = true;
}

/* Another process may have taken over the address of a client that ended, or the client has joined again under a
 * new id, or has no id yet. Reads would show rows of another process, because only pushes prove whom they are for.
 * The parts wait until the membership says that the node is gone, or until a new link reaches it. */
static bool is_other_client(const struct client_link *link, const struct pwi_peering *peering) {
  uint64_t node = link->kind == LINK_HANDLER && link->peer ? link->peer->node : 0;
  return (node & PWI_PEER_IS_SENDER) && peering->hello.node != (node & ~PWI_PEER_IS_SENDER);
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  struct pwi_peering peering;
  pawl_status status = pwi_greeting_check(&client->greeting, info, &peering);
  if (!status && ours && is_other_client(ours, &peering)) status = PAWL_NODE_GONE;
  if (status) {
    pwi_net_close(client->config.net, link, status);
    return;
  }
  if (!ours) {
    accept_asker(client, link, info, &peering);
    return;
  }
  ours->peering = peering;
  ours->is_up = true;
  if (ours == client->manager) {
    client->trouble = PAWL_OK;
    pwi_client_join(client);
  }
  if (ours->kind == LINK_HANDLER && ours->peer) pwi_peer_link_up(client, ours->peer);
  if (ours->kind == LINK_PEER) pwi_peers_link_up(client->group_peers, link, &peering);
  end_event(client);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (!ours) return;
  enum client_link_kind kind = ours->kind;
  struct client_peer *peer = ours->peer;
  bool is_manager = ours == client->manager, was_up = ours->is_up;
  bool is_server = kind == LINK_HANDLER && peer && !(peer->node & PWI_PEER_IS_SENDER);
  remove_link(client, ours);
  if (client->group_peers) pwi_peers_link_down(client->group_peers, link, why);
  if (is_manager) pwi_client_manager_lost(client, why);
  if (kind == LINK_HANDLER && peer) pwi_peer_link_down(client, peer, why);
  if (is_manager || is_server) pwi_client_look_revoked(client, was_up, is_manager, why);
  end_event(client);
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *about) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (!ours || !ours->is_up) return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  bool is_priority = ours->kind == LINK_ASKER && pwi_message_peek_kind(about->head) == PWI_SAY_PRIORITY;
  if (is_priority || (ours->kind != LINK_MANAGER && pwi_client_is_call(about)))
    return pwi_control_begin(&ours->call_control, about, &ours->peering.link);
  bool is_peer = pwi_client_is_peer(about);
  if (is_peer && (ours->kind == LINK_PEER || ours->kind == LINK_ASKER)) return pwi_client_peer_begin(ours, about);
  if (ours->kind == LINK_PEER) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  if (ours->handler) return pwi_handler_message(ours->handler, about);
  if (ours->kind == LINK_ASKER) return pwi_control_begin(&ours->control, about, &ours->peering.data);
  if (ours->kind == LINK_HANDLER) return pwi_answer_begin(client, ours, about);
  return pwi_control_begin(&ours->control, about, &ours->peering.link);
}

static void complain(struct pwi_client *client, struct client_link *link, pawl_status status) {
  pwi_log(client->config.log, PAWL_LOG_WARN, "message.bad", "kind=%u why=%s", link->control.head.kind,
          pawl_status_name(status));
  pwi_net_close(client->config.net, link->link, status);
}

/* Only relays are told priorities that change. Local vectors are served in order. */
static pawl_status hear_beside(struct pwi_client *client, struct client_link *link, const void *body, size_t size) {
  const struct pwi_relaying *relaying = client->config.relaying;
  const struct pwi_message_head *head = &link->call_control.head;
  pawl_status status = pwi_control_open(&link->call_control, body, size, &link->peering.link);
  if (status) return status;
  if (head->kind == PWI_SAY_PEER) return pwi_client_hear_peer(client, link, body);
  if (head->kind != PWI_SAY_PRIORITY) return pwi_client_hear_call(client, link, body);
  return relaying ? relaying->priority(relaying->context, link->link, head->tick) : PAWL_OK;
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (!ours) return;
  pawl_status status;
  if (context == &ours->call_control) {
    status = hear_beside(client, ours, data, size);
  } else if (ours->handler) {
    pwi_handler_piece(ours->handler, offset, data, size);
    return;
  } else if (ours->kind == LINK_ASKER) {
    const struct pwi_relaying *relaying = client->config.relaying;
    status = pwi_control_open(&ours->control, data, size, &ours->peering.data);
    if (!status) status = relaying->request(relaying->context, link, &ours->peering, &ours->control, data);
  } else if (ours->kind == LINK_HANDLER) {
    status = pwi_answer_whole(client, ours, data, size);
  } else {
    status = pwi_control_open(&ours->control, data, size, &ours->peering.link);
    if (!status) status = pwi_client_hear_manager(client, &ours->control, data);
  }
  if (status) complain(client, ours, status);
  end_event(client);
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (!ours) return;
  if (ours->handler && context == ours->handler) {
    pwi_handler_message_end(ours->handler, status);
  } else if (ours->answering && context == ours->prefix) {
    status = pwi_answer_filled(client, ours, status);
    if (status) complain(client, ours, status);
  }
  if (ours->kind == LINK_HANDLER && ours->peer) pwi_peer_pump(client, ours->peer);
  end_event(client);
  pwi_client_say_leave(client);
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct pwi_client *client = self;
  if (pwi_messenger_done(&client->messenger, cookie)) return;
  if (client->group_peers && pwi_peers_done(client->group_peers, link, cookie, status)) {
    end_event(client);
    return;
  }
  if (client->config.relaying && cookie & PWI_RELAYING_COOKIE) {
    client->config.relaying->done(client->config.relaying->context, cookie & ~PWI_RELAYING_COOKIE);
    end_event(client);
    return;
  }
  if (!(cookie & PWI_HANDLER_COOKIE)) {
    pwi_client_outgoing_done(client, cookie);
    end_event(client);
    return;
  }
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (ours && ours->handler) pwi_handler_done(ours->handler, cookie);
}

static void writable(void *self, struct pwi_link link) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (ours && ours->peer) pwi_peer_pump(client, ours->peer);
  if (client->group_peers) pwi_peers_writable(client->group_peers, link);
  end_event(client);
}

/* The server lets the client's requests wait. It is not silent meanwhile. */
static void held(void *self, struct pwi_link link, bool is_held) {
  struct pwi_client *client = self;
  struct client_link *ours = pwi_idmap_get(&client->links, link.id);
  if (ours && ours->kind == LINK_HANDLER && ours->peer) pwi_peer_held(client, ours->peer, is_held);
  end_event(client);
}

static void notified(void *self, struct pwi_link link, uint64_t value) {
  struct pwi_client *client = self;
  if (!client->group_peers) return;
  pwi_peers_notified(client->group_peers, link, value);
  end_event(client);
}

const struct pwi_actor pwi_client_actor = {
    .greet = greet,
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .done = done,
    .notified = notified,
    .writable = writable,
    .held = held,
    .timer = timer,
};

/* --- life ----------------------------------------------------------------------------------------------- */

static pawl_status take_identity(struct pwi_client *client) {
  for (size_t i = 0; i < sizeof client->identity; i += sizeof(uint64_t))
    pwi_put_u64(client->identity + i, client->config.identity ? 0 : pwi_random_u64(client->config.random));
  if (client->config.identity) memcpy(client->identity, client->config.identity, sizeof client->identity);
  client->config.identity = NULL;
  return pwi_seal_public(client->identity, client->key);
}

static pawl_status begin(struct pwi_client *client) {
  const struct pwi_client_config *config = &client->config;
  const char *job = config->job && config->job[0] ? config->job : "default";
  const char *host = config->host ? config->host : "", *rack = config->rack ? config->rack : "";
  if (strlen(job) > PWI_JOB_MAX || !pwi_site_is_sound(host) || !pwi_site_is_sound(rack)) return PAWL_INVALID;
  memcpy(client->job, job, strlen(job) + 1);
  memcpy(client->rack, rack, strlen(rack) + 1);
  client->host = pwi_copy_string(host);
  client->membership = pwi_alloc_zero(1, sizeof *client->membership);
  if (!client->host || !client->membership) return PAWL_NO_MEMORY;
  pawl_status status = pwi_managers_init(&client->managers, config->manager, PWI_CLIENT_RETRY_MIN);
  if (status) return status;
  client->numbers.catalogue = &client->catalogue;
  client->numbers.membership = client->membership;
  client->greeting = (struct pwi_greeting){.role = config->relaying ? PWI_ROLE_RELAY : PWI_ROLE_CLIENT,
                                           .host = client->host,
                                           .log = client->config.log,
                                           .net = client->config.net,
                                           .priority = client->config.priority};
  client->trouble = PAWL_CLUSTER_UNKNOWN;
  status = take_identity(client);
  if (!status) status = pwi_greeting_set(config->net, &client->greeting);
  if (status) return status;
  pwi_client_seek_manager(client, pwi_net_now(config->net));
  return client->manager || client->trouble != PAWL_INVALID ? PAWL_OK : PAWL_INVALID;
}

pawl_status pwi_client_create(const struct pwi_client_config *config, struct pwi_client **client_out) {
  struct pwi_client *client = pwi_alloc_zero(1, sizeof *client);
  if (!client) return PAWL_NO_MEMORY;
  client->config = *config;
  client->priority = config->priority;
  pwi_messenger_init(&client->messenger, config->net);
  pawl_status status = begin(client);
  if (status) {
    pwi_client_destroy(client);
    return status;
  }
  *client_out = client;
  return PAWL_OK;
}

static void free_flows(struct pwi_client *client) {
  while (client->flows) {
    struct pwi_flow *flow = client->flows;
    client->flows = flow->next;
    pwi_flow_filters_destroy(flow->filters);
    pwi_clock_fini(&flow->sent);
    pwi_flow_seen_destroy(flow->seen);
    pwi_free(flow);
  }
  for (size_t i = 0; i < client->part_count; i++) {
    pwi_keylist_release(client->parts[i]->list);
    pwi_free(client->parts[i]);
  }
  pwi_free(client->parts);
}

static void free_links(struct pwi_client *client) {
  for (size_t i = 0; i < client->links.room; i++) {
    struct client_link *link = client->links.slots[i].id ? client->links.slots[i].item : NULL;
    pwi_free(link);
  }
  pwi_idmap_fini(&client->links);
  while (client->peers) {
    struct client_peer *peer = client->peers;
    client->peers = peer->next;
    pwi_free(peer);
  }
  pwi_idmap_fini(&client->peers_by_node);
}

void pwi_client_destroy(struct pwi_client *client) {
  if (!client) return;
  while (client->asks) pwi_client_unask(client, client->asks);
  pwi_peers_destroy(client->group_peers);
  free_links(client);
  free_flows(client);
  for (size_t i = 0; i < client->outgoing_count; i++) {
    pwi_pages_fini(&client->outgoings[i]->coded);
    pwi_pages_fini(&client->outgoings[i]->coded_operand);
    pwi_free(client->outgoings[i]);
  }
  pwi_free(client->outgoings);
  pwi_client_lists_fini(client);
  pwi_client_filtered_fini(client);
  pwi_coder_fini(&client->coder);
  pwi_callee_destroy(client->callee);
  pwi_handler_destroy(client->handler);
  pwi_shard_destroy(client->shard);
  pwi_view_release(client->view);
  pwi_catalogue_fini(&client->catalogue);
  pwi_membership_destroy(client->membership);
  pwi_messenger_fini(&client->messenger);
  pwi_writer_fini(&client->writer);
  pwi_managers_fini(&client->managers);
  pwi_relays_fini(&client->relays);
  pwi_free(client->host);
  pwi_free(client);
}

/* --- local vectors -------------------------------------------------------------------------------------- */

static pawl_status make_shard(struct pwi_client *client) {
  if (client->shard) return PAWL_OK;
  struct pwi_handler_config handler = {
      .net = client->config.net, .numbers = &client->numbers, .log = client->config.log};
  pawl_status status = client->handler ? PAWL_OK : pwi_handler_create(&handler, &client->handler);
  if (status) return status;
  struct pwi_shard_config config = {.memory_max = client->config.memory_max ? client->config.memory_max : UINT64_MAX,
                                    .answer = pwi_handler_answer,
                                    .context = client->handler};
  struct pwi_shard *shard = NULL;
  status = pwi_shard_create(&config, &shard);
  if (!status) status = pwi_shard_hold(shard, pawl_range_of(0, PWI_RING_END));
  if (status) {
    pwi_shard_destroy(shard);
    return status;
  }
  pwi_shard_set_membership(shard, client->membership);
  pwi_handler_set_shard(client->handler, shard);
  client->shard = shard;
  return PAWL_OK;
}

pawl_status pwi_client_open_local(struct pwi_client *client, struct pwi_vector_id id) {
  const struct pwi_entry *entry = pwi_catalogue_find(&client->catalogue, id);
  if (!entry) return PAWL_NOT_FOUND;
  struct pwi_entry local = *entry;
  local.incarnation = 0; /* local vectors are in no checkpoint */
  pawl_status status = make_shard(client);
  return status ? status : pwi_shard_open(client->shard, &local);
}

void pwi_client_close_local(struct pwi_client *client, struct pwi_vector_id id) {
  if (client->shard) pwi_shard_close(client->shard, id);
}

/* --- leaving, state ------------------------------------------------------------------------------------- */

void pwi_client_leave(struct pwi_client *client) {
  client->is_leaving = true;
  pwi_client_say_leave(client);
}

bool pwi_client_has_left(const struct pwi_client *client) { return client->has_left; }

void pwi_client_hang_up(struct pwi_client *client) {
  for (size_t i = 0; i < client->links.room; i++)
    if (client->links.slots[i].id)
      pwi_net_close(client->config.net, (struct pwi_link){client->links.slots[i].id}, PAWL_OK);
}

size_t pwi_client_links(const struct pwi_client *client) { return client->links.count; }

void pwi_client_state(const struct pwi_client *client, struct pwi_client_state *state_out) {
  *state_out = (struct pwi_client_state){
      .joined = client->is_joined,
      .trouble = client->trouble,
      .sender = client->sender,
      .cluster = client->greeting.cluster,
      .may_write = client->joined.may_write && !client->config.reader,
      .space = client->joined.space,
      .outstanding = client->outstanding,
      .settled = client->tasks_first ? client->tasks_first->number - 1 : client->last_number,
      .is_dead = client->is_dead,
  };
}

const struct pwi_view *pwi_client_view(const struct pwi_client *client) { return client->view; }
const struct pwi_catalogue *pwi_client_catalogue(const struct pwi_client *client) { return &client->catalogue; }
const struct pwi_membership *pwi_client_membership(const struct pwi_client *client) { return client->membership; }

void pwi_client_figures(const struct pwi_client *client, struct pwi_client_figures *figures_out) {
  *figures_out = client->figures;
}
