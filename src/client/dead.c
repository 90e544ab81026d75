/* The end of a client: it stays dead, or its key was revoked.
 *
 * STAYING DEAD (docs/protocol.md, "Retirement"). A client whose work is taken over by others must not join
 * again after it was declared dead: another client has finished or undone the work that it would push.
 * Servers accept nothing from its old id. So it ends all tasks and closes all links. Callbacks that make
 * calls meanwhile get an error at once.
 *
 * REVOKED. The manager and the servers close links whose key is revoked, and say why. If the link was up, the
 * peer had proved that it holds the cluster's key, so the client believes it: no task can ever be answered,
 * and all present and later calls fail with PAWL_LINK_REVOKED. A client without a link is refused when it
 * connects again, by an alert that anybody on the network could have forged. It believes this only if the
 * manager, at all its addresses, has answered nothing else for some seconds.
 */
#include "base/memory.h"
#include "client/inside.h"

#define REFUSED_NS INT64_C(5000000000) /* of refusals by all managers, until the client believes them */

static void end_asks(struct pwi_client *client) {
  while (client->asks) {
    struct pwi_asking *asking = client->asks;
    client->asks = asking->next;
    pwi_free(asking->payload);
    pwi_free(asking->reply);
    asking->payload = asking->reply = NULL;
    asking->replied(asking, client->died, NULL, 0);
  }
}

void pwi_client_die(struct pwi_client *client, pawl_status why) {
  client->is_dead = client->has_left = true;
  client->died = client->trouble = why;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_kill(client, flow, why);
  end_asks(client);
  pwi_client_calls_die(client);
  pwi_client_hang_up(client);
  pwi_client_membership_changed(client);
}

static void revoked(struct pwi_client *client) {
  pwi_log(client->config.log, PAWL_LOG_ERROR, "client.revoked", "sender=%llu", (unsigned long long)client->sender);
  pwi_client_die(client, PAWL_LINK_REVOKED);
}

void pwi_client_look_revoked(struct pwi_client *client, bool was_up, bool is_manager, pawl_status why) {
  if (client->is_dead || !client->is_joined) return;
  int64_t now = pwi_net_now(client->config.net);
  if (why != PAWL_LINK_KEY) {
    if (is_manager) client->refused_at = 0;
    return;
  }
  if (was_up) {
    revoked(client);
  } else if (is_manager) {
    if (client->refused_at == 0) client->refused_at = now;
    if (now - client->refused_at >= REFUSED_NS) revoked(client);
  }
}

/* --- reading only --------------------------------------------------------------------------------------- */

static struct client_part *first_numbered(const struct pwi_flow *flow) {
  struct client_part *part = flow->first;
  while (part && !pwi_part_is_numbered(part)) part = part->next;
  return part;
}

/* The key does not permit writing, or not any more: no push will take effect, and reads wait for none. If the
 * client later gets a sender id again, it is a new one, whose clocks begin at 0. */
void pwi_client_lost_writing(struct pwi_client *client) {
  client->renewal = RENEWAL_NONE;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) {
    struct client_part *part = first_numbered(flow);
    if (part) flow->is_forbidden = true;
    if (flow->has_entered) pwi_flow_kill(client, flow, PAWL_FORBIDDEN);
    for (; part; part = first_numbered(flow)) pwi_part_end(client, part, PAWL_FORBIDDEN);
    pwi_flow_begin_clock(flow);
  }
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_unblock(client, flow);
}
