/* Peer groups: the client passes events on to peer/peers.h. */
#include "client/inside.h"
#include "peer/messages.h"

/* --- what the peers need -------------------------------------------------------------------------------- */

static pawl_status connect_peer(void *context, const char *address, struct pwi_link *link_out) {
  struct pwi_client *client = context;
  if (client->has_left) return PAWL_NODE_STOPPED;
  const struct client_link *link = pwi_client_connect(client, LINK_PEER, address);
  if (!link) return PAWL_NODE_LIMIT;
  *link_out = link->link;
  return PAWL_OK;
}

static void wake_at(void *context, int64_t at) { pwi_client_wake_at(context, at); }

static void missed(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct pwi_client *client = (struct pwi_client *)((char *)asking - offsetof(struct pwi_client, miss_peer));
  (void)status, (void)payload, (void)size;
  client->is_missing_peer = false;
}

/* Asks the manager whether the peer is still alive, for one peer at a time. Others are missed again. */
static void miss(void *context, struct pwi_sender peer) {
  struct pwi_client *client = context;
  if (client->is_missing_peer) return;
  pwi_writer_reset(&client->writer);
  pwi_write_u64(&client->writer, peer.id);
  client->miss_peer.replied = missed;
  client->is_missing_peer =
      !client->writer.status &&
      pwi_client_ask(client, &client->miss_peer, PWI_ASK_MISS, client->writer.data, client->writer.size) == PAWL_OK;
}

static pawl_status make_peers(struct pwi_client *client) {
  if (client->group_peers) return PAWL_OK;
  struct pwi_peers_config config = {.net = client->config.net,
                                    .messenger = &client->messenger,
                                    .log = client->config.log,
                                    .random = client->config.random,
                                    .identity = client->identity,
                                    .context = client,
                                    .connect = connect_peer,
                                    .wake_at = wake_at,
                                    .missing = miss};
  pawl_status status = pwi_peers_create(&config, &client->group_peers);
  if (status) return status;
  pwi_peers_changed(client->group_peers, client->membership, client->joined.cluster,
                    (struct pwi_sender){client->sender});
  return PAWL_OK;
}

pawl_status pwi_client_peers(struct pwi_client *client, struct pwi_peers **peers_out) {
  if (client->is_dead) return client->died;
  pawl_status status = make_peers(client);
  if (!status) *peers_out = client->group_peers;
  return status;
}

/* --- messages ------------------------------------------------------------------------------------------- */

bool pwi_client_is_peer(const struct pwi_message *message) {
  return pwi_message_peek_kind(message->head) == PWI_SAY_PEER;
}

struct pwi_receive pwi_client_peer_begin(struct client_link *link, const struct pwi_message *message) {
  if (message->body_size > PWI_PEER_BODY_MAX) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  return pwi_control_begin(&link->call_control, message, &link->peering.link);
}

pawl_status pwi_client_hear_peer(struct pwi_client *client, struct client_link *link, const void *body) {
  pawl_status status = make_peers(client);
  if (status) return status;
  return pwi_peers_hear(client->group_peers, link->link, &link->peering, &link->call_control, body);
}

void pwi_client_channels_look(struct pwi_client *client) {
  if (!client->group_peers) return;
  pwi_peers_changed(client->group_peers, client->membership, client->joined.cluster,
                    (struct pwi_sender){client->sender});
}
