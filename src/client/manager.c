/* The link to the manager: finding it, joining, news, asks. */
#include <string.h>

#include "base/memory.h"
#include "client/inside.h"
#include "protocol/membership_share.h"

/* --- finding it ----------------------------------------------------------------------------------------- */

static void try_next(struct pwi_client *client, int64_t now) {
  int64_t patience = pwi_managers_patience(&client->managers);
  client->manager_tried_at = now;
  client->manager = pwi_client_connect(client, LINK_MANAGER, pwi_managers_next(&client->managers));
  if (!client->manager)
    pwi_client_manager_lost(client, client->trouble);
  else if (patience != PWI_NET_NEVER)
    pwi_client_wake_at(client, now + patience);
}

/* Gives up an attempt that takes too long, and tries the next address. */
static void look_at_attempt(struct pwi_client *client, int64_t now) {
  int64_t patience = pwi_managers_patience(&client->managers);
  if (client->manager->is_up || patience == PWI_NET_NEVER) return;
  if (now < client->manager_tried_at + patience) {
    pwi_client_wake_at(client, client->manager_tried_at + patience);
    return;
  }
  pwi_net_close(client->config.net, client->manager->link, PAWL_TIMED_OUT);
  pwi_client_manager_lost(client, PAWL_TIMED_OUT);
}

void pwi_client_seek_manager(struct pwi_client *client, int64_t now) {
  if (client->has_left) return;
  if (client->manager)
    look_at_attempt(client, now);
  else if (now < client->manager_retry_at)
    pwi_client_wake_at(client, client->manager_retry_at);
  else
    try_next(client, now);
}

void pwi_client_manager_lost(struct pwi_client *client, pawl_status why) {
  client->manager = NULL;
  client->has_said_leave = false;
  if (client->is_dead) return;
  if (client->trouble == PAWL_OK || why != PAWL_OK) client->trouble = why ? why : PAWL_LINK_CLOSED;
  client->manager_retry_at = client->manager_tried_at + pwi_managers_failed(&client->managers);
  pwi_client_wake_at(client, client->manager_retry_at);
}

/* --- talking to the manager ----------------------------------------------------------------------------- */

static void say(struct pwi_client *client, enum pwi_say kind, uint64_t task, uint64_t tick,
                const struct pwi_enclosure *enclosures, size_t count) {
  if (!client->manager || !client->manager->is_up) return;
  /* A manager that has not answered JOIN closes the link on any other message. */
  if (kind != PWI_SAY_JOIN && !client->is_in) return;
  struct pwi_message_head head = {.kind = (uint16_t)kind,
                                  .sender = client->sender,
                                  .task = task,
                                  .tick = tick,
                                  .view = client->view ? (uint32_t)client->view->epoch : 0,
                                  .membership = (uint32_t)client->membership->number,
                                  .catalogue = (uint32_t)client->catalogue.number};
  /* A failed send closes the link; the message is sent again over the next. */
  pawl_status status = pwi_messenger_send(&client->messenger, client->manager->link, &client->manager->peering.link,
                                          &head, enclosures, count);
  (void)status;
}

void pwi_client_say(struct pwi_client *client, enum pwi_say kind, uint64_t task, uint64_t tick) {
  say(client, kind, task, tick, NULL, 0);
}

void pwi_client_say_payload(struct pwi_client *client, enum pwi_say kind, uint64_t task, uint64_t tick) {
  if (client->writer.status) {
    if (client->manager) pwi_net_close(client->config.net, client->manager->link, client->writer.status);
    return;
  }
  struct pwi_enclosure payload = {PWI_SECTION_PAYLOAD, client->writer.data, client->writer.size};
  say(client, kind, task, tick, &payload, 1);
}

void pwi_client_join(struct pwi_client *client) {
  struct pwi_join join = {.role = PWI_ROLE_CLIENT,
                          .id = client->sender,
                          .secret = client->secret,
                          .reader = client->config.reader,
                          .retired = client->retired};
  client->is_in = false;
  memcpy(join.key, client->key, sizeof join.key);
  strncpy(join.address, pwi_net_address(client->config.net), sizeof join.address - 1);
  strncpy(join.host, client->host, sizeof join.host - 1);
  strncpy(join.rack, client->rack, sizeof join.rack - 1);
  strncpy(join.job, client->job, sizeof join.job - 1);
  pwi_writer_reset(&client->writer);
  pwi_join_encode(&join, &client->writer);
  pwi_client_say_payload(client, PWI_SAY_JOIN, 0, client->managers.term);
}

uint64_t pwi_client_asks_heard(const struct pwi_client *client) {
  for (const struct pwi_asking *asking = client->asks; asking; asking = asking->next)
    if (!asking->is_replied) return asking->number - 1;
  return client->last_ask;
}

static void send_ask(struct pwi_client *client, struct pwi_asking *asking) {
  if (!client->is_joined || client->renewal == RENEWAL_JOINING || !client->manager || !client->manager->is_up) return;
  if (asking->asker == 0) {
    asking->asker = client->sender;
    asking->secret = client->secret;
  }
  struct pwi_ask_terms terms = {.heard = pwi_client_asks_heard(client)};
  if (asking->asker != client->sender) {
    terms.former = asking->asker;
    terms.secret = asking->secret;
  }
  pwi_writer_reset(&client->writer);
  pwi_ask_terms_write(&terms, &client->writer);
  pwi_write_bytes(&client->writer, asking->payload, asking->size);
  pwi_client_say_payload(client, PWI_SAY_ASK, asking->number, asking->what);
}

static void send_asks(struct pwi_client *client) {
  for (struct pwi_asking *asking = client->asks; asking; asking = asking->next)
    if (!asking->is_replied) send_ask(client, asking);
}

void pwi_client_say_leave(struct pwi_client *client) {
  if (!client->is_leaving || client->has_left || client->outstanding > 0 || client->has_said_leave) return;
  if (!client->manager || !client->manager->is_up || !client->is_in) return; /* said when it has joined again */
  client->has_said_leave = true;
  pwi_client_tell_counts(client, true);
  say(client, PWI_SAY_LEAVE, 0, 0, NULL, 0);
}

static void take_joined(struct pwi_client *client, const struct pwi_joined *joined, uint32_t membership) {
  if (joined->status == PAWL_NODE_RETIRED) {
    pwi_client_retired(client); /* joins again */
    return;
  }
  client->trouble = joined->status;
  if (joined->status) {
    pwi_net_close(client->config.net, client->manager->link, PAWL_OK);
    return;
  }
  bool is_new = client->sender != joined->id;
  pwi_managers_found(&client->managers);
  client->joined = *joined;
  client->sender = joined->id;
  client->secret = joined->secret;
  if (membership > client->listed) client->listed = membership;
  uint64_t settled = joined->settled ? client->retired : 0;
  client->retired = 0;
  client->is_joined = client->is_in = true;
  client->numbers.node = joined->id;
  client->numbers.is_sender = true;
  client->numbers.cluster = joined->cluster;
  client->greeting.cluster = joined->cluster;
  client->greeting.node = joined->id;
  if (pwi_greeting_set(client->config.net, &client->greeting)) client->trouble = PAWL_NO_MEMORY;
  client->refused_at = 0;
  pwi_client_channels_look(client);
  if (joined->id == 0 && !client->config.reader) pwi_client_lost_writing(client);
  if (client->renewal == RENEWAL_JOINING && is_new) pwi_client_renewed(client, settled);
  pwi_parts_unpark(client, true);
  send_asks(client);
  pwi_client_look_at_peers(client, pwi_net_now(client->config.net)); /* calls that waited for an id */
  pwi_client_say_leave(client);
}

/* --- news ----------------------------------------------------------------------------------------------- */

static pawl_status take_catalogue(struct pwi_client *client, const void *bytes, size_t size) {
  struct pwi_catalogue catalogue = {0};
  pawl_status status = pwi_catalogue_decode(bytes, size, &catalogue);
  if (status) return status;
  if (catalogue.number < client->catalogue.number) {
    pwi_catalogue_fini(&catalogue);
    return PAWL_OK;
  }
  pwi_catalogue_fini(&client->catalogue);
  client->catalogue = catalogue;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    if (!flow->dead && !pwi_catalogue_find(&client->catalogue, flow->entry.id))
      pwi_flow_kill(client, flow, PAWL_NOT_FOUND);
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) {
    const struct pwi_entry *entry = pwi_catalogue_find(&client->catalogue, flow->entry.id);
    if (entry && flow->node == 0) pwi_flow_restored(client, flow, entry->incarnation);
  }
  struct pwi_vector_id id = {0};
  while (client->shard && pwi_shard_next(client->shard, &id))
    if (!pwi_catalogue_find(&client->catalogue, id)) pwi_shard_close(client->shard, id);
  return PAWL_OK;
}

/* Ends flows to nodes that are gone. */
static void look_at_nodes(struct pwi_client *client) {
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    if (flow->node != 0 && !flow->dead && !pwi_client_node_address(client, flow->node))
      pwi_flow_kill(client, flow, PAWL_NODE_GONE);
}

void pwi_client_membership_changed(struct pwi_client *client) {
  if (client->config.membership_changed) client->config.membership_changed(client->config.context);
}

static pawl_status take_membership(struct pwi_client *client, const void *bytes, size_t size) {
  struct pwi_membership *membership;
  pawl_status status = pwi_membership_receive(bytes, size, client->membership->number, &membership);
  if (status || !membership) return status;
  membership = pwi_membership_unify(membership);
  if (client->shard) pwi_shard_set_membership(client->shard, membership);
  pwi_membership_destroy(client->membership);
  client->membership = membership;
  client->numbers.membership = membership;
  pwi_client_channels_look(client);
  look_at_nodes(client);
  pwi_client_calls_look(client);
  pwi_client_membership_changed(client);
  return PAWL_OK;
}

static void forget_sender(void *client, struct pwi_sender sender) {
  struct pwi_shard *shard = ((struct pwi_client *)client)->shard;
  if (shard) pwi_shard_forget(shard, sender);
}

/* A failure may leave news partly applied; the number tells how far. */
static pawl_status take_membership_delta(struct pwi_client *client, const void *bytes, size_t size) {
  struct pwi_membership *before = client->membership, *now;
  pawl_status status = pwi_membership_follow(before, bytes, size, forget_sender, client, &now);
  client->membership = now;
  client->numbers.membership = now;
  if (client->shard) {
    pwi_shard_move_membership(client->shard, now);
    pwi_shard_membership_changed(client->shard);
  }
  if (now != before) pwi_membership_destroy(before);
  pwi_client_channels_look(client);
  look_at_nodes(client);
  pwi_client_calls_look(client);
  pwi_client_membership_changed(client);
  return status;
}

static pawl_status take_view(struct pwi_client *client, const void *bytes, size_t size) {
  struct pwi_view *view;
  pawl_status status = pwi_view_decode_shared(bytes, size, &view);
  if (status) return status;
  if (client->view && view->epoch <= client->view->epoch) {
    pwi_view_release(view);
    return PAWL_OK;
  }
  pwi_view_release(client->view);
  client->view = view;
  client->numbers.view = view->epoch;
  pwi_parts_unpark(client, false);
  pwi_peers_reroute(client);
  return PAWL_OK;
}

/* Delivers a reply once the news of the client are as new as the manager's were. */
static void hand_on_replies(struct pwi_client *client) {
  uint32_t view = client->view ? (uint32_t)client->view->epoch : 0;
  for (struct pwi_asking **at = &client->asks; *at;) {
    struct pwi_asking *asking = *at;
    if (!asking->is_replied || asking->view > view || asking->membership > (uint32_t)client->membership->number ||
        asking->catalogue > (uint32_t)client->catalogue.number) {
      at = &asking->next;
      continue;
    }
    *at = asking->next;
    unsigned char *reply = asking->reply;
    pwi_free(asking->payload);
    asking->payload = asking->reply = NULL;
    asking->replied(asking, asking->status, reply, asking->reply_size);
    pwi_free(reply);
    at = &client->asks; /* the callback may have changed the list */
    pwi_client_idle(client);
  }
}

static pawl_status take_news(struct pwi_client *client, const struct pwi_control *control, const void *body) {
  size_t size;
  pawl_status status = PAWL_OK;
  const void *bytes = pwi_control_find(control, body, PWI_SECTION_CATALOGUE, &size);
  if (bytes) status = take_catalogue(client, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_MEMBERSHIP, &size);
  if (!status && bytes) status = take_membership(client, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_MEMBERSHIP_DELTA, &size);
  if (!status && bytes) status = take_membership_delta(client, bytes, size);
  bytes = pwi_control_find(control, body, PWI_SECTION_VIEW, &size);
  if (!status && bytes) status = take_view(client, bytes, size);
  if (status) return status;
  say(client, PWI_SAY_HAVE, 0, 0, NULL, 0);
  hand_on_replies(client);
  return PAWL_OK;
}

static pawl_status take_reply(struct pwi_client *client, const struct pwi_control *control, const void *payload,
                              size_t size) {
  struct pwi_asking *asking = client->asks;
  while (asking && asking->number != control->head.task) asking = asking->next;
  if (!asking || asking->is_replied) return PAWL_OK;
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  asking->status = (pawl_status)(int32_t)pwi_read_u32(&reader);
  if (reader.status) return reader.status;
  asking->reply_size = (size_t)(reader.end - reader.at);
  asking->reply = pwi_alloc(asking->reply_size);
  if (!asking->reply) return PAWL_NO_MEMORY;
  memcpy(asking->reply, reader.at, asking->reply_size);
  asking->view = control->head.view;
  asking->membership = control->head.membership;
  asking->catalogue = control->head.catalogue;
  asking->is_replied = true;
  if (client->forgotten_count > 0) pwi_client_look_collected(client);
  hand_on_replies(client);
  return PAWL_OK;
}

/* The client may serve local vectors. */
static pawl_status settle(struct pwi_client *client, const void *payload, size_t size) {
  struct pwi_settle senders[PWI_SETTLE_MAX];
  uint64_t number, unsettled[PWI_SETTLE_MAX];
  size_t count;
  pawl_status status = pwi_settle_decode(payload, size, &number, senders, &count);
  if (status) return status;
  count = client->shard ? pwi_shard_unsettled(client->shard, senders, count, unsettled) : 0;
  pwi_writer_reset(&client->writer);
  pwi_settled_encode(number, unsettled, count, &client->writer);
  pwi_client_say_payload(client, PWI_SAY_SETTLED, 0, 0);
  return PAWL_OK;
}

pawl_status pwi_client_hear_manager(struct pwi_client *client, const struct pwi_control *control, const void *body) {
  struct pwi_joined joined;
  size_t size;
  const void *payload = pwi_control_find(control, body, PWI_SECTION_PAYLOAD, &size);
  uint64_t term = control->head.tick;
  pawl_status status = control->head.kind == PWI_SAY_JOINED ? PAWL_OK : pwi_managers_heed(&client->managers, term);
  if (status) return status;
  switch (control->head.kind) {
  case PWI_SAY_JOINED:
    status = pwi_joined_decode(payload, size, &joined);
    if (!status) status = pwi_managers_welcome(&client->managers, &joined, term);
    if (!status) take_joined(client, &joined, control->head.membership);
    return status;
  case PWI_SAY_NEWS:
    return take_news(client, control, body);
  case PWI_SAY_REPLY:
    return take_reply(client, control, payload, size);
  case PWI_SAY_SETTLE:
    return settle(client, payload, size);
  case PWI_SAY_LEFT:
    client->has_left = true;
    return PAWL_OK;
  default:
    return PAWL_LINK_PROTOCOL;
  }
}

/* --- asks ----------------------------------------------------------------------------------------------- */

void pwi_client_asks_renewed(struct pwi_client *client) {
  for (struct pwi_asking *asking = client->asks; asking; asking = asking->next)
    if (pwi_ask_is_about_asker(asking->what)) asking->asker = asking->secret = 0;
}

pawl_status pwi_client_ask(struct pwi_client *client, struct pwi_asking *asking, enum pwi_ask what, const void *payload,
                           size_t size) {
  void (*replied)(struct pwi_asking *, pawl_status, const void *, size_t) = asking->replied;
  if (client->is_dead) return client->died;
  unsigned char *copy = pwi_alloc(size);
  if (!copy) return PAWL_NO_MEMORY;
  if (size > 0) memcpy(copy, payload, size);
  *asking = (struct pwi_asking){
      .replied = replied, .what = what, .number = ++client->last_ask, .payload = copy, .size = size};
  struct pwi_asking **last = &client->asks;
  while (*last) last = &(*last)->next;
  *last = asking;
  send_ask(client, asking);
  return PAWL_OK;
}

void pwi_client_unask(struct pwi_client *client, struct pwi_asking *asking) {
  for (struct pwi_asking **at = &client->asks; *at; at = &(*at)->next) {
    if (*at != asking) continue;
    *at = asking->next;
    pwi_free(asking->payload);
    pwi_free(asking->reply);
    return;
  }
}
