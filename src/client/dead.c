/* The end of a client that cannot go on: it stays dead, or its key was revoked.
 *
 * STAYING DEAD (design, section 7: "Retirement").
 * A client whose work others take over must not join again by itself once it was taken for dead: what it would then push under its new
 * id has been finished by somebody else, or undone. Of what it had sent under its old id servers take nothing any more. So all
 * that is left to do is to tell every caller, and to close the links. Whoever is told may call again from inside that: such calls are
 * refused at once.
 *
 * REVOKED. The manager and the servers end links whose key is accepted no more, and say why. A client whose link was up hears it
 * from a peer that has proved to hold the key. It has no other, so nothing that it has under way can ever be answered: every call
 * ends at once with PAWL_LINK_REVOKED, and so does every later one. One that had no link just then is refused when it tries
 * again, and has nothing but an alert that anybody on the network could have made. So it believes that when the
 * manager, at all addresses that there are, has said nothing else for some seconds.
 */
#include "base/memory.h"
#include "client/inside.h"

#define REFUSED_NS INT64_C(5000000000) /* of a manager that does not know our key, until we believe it */

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

static struct part *first_numbered(const struct pwi_flow *flow) {
  struct part *part = flow->first;
  while (part && !pwi_part_is_numbered(part)) part = part->next;
  return part;
}

/* The key does not permit writing, or not any more: no number of ours will ever be taken. Reading waits for none of them. Should
 * we be given a sender's id again it is a new one, whose clocks begin at 0. */
void pwi_client_lost_writing(struct pwi_client *client) {
  client->renewal = RENEWAL_NONE;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) {
    struct part *part = first_numbered(flow);
    if (part) flow->is_forbidden = true;
    if (flow->has_entered) pwi_flow_kill(client, flow, PAWL_FORBIDDEN);
    for (; part; part = first_numbered(flow)) pwi_part_end(client, part, PAWL_FORBIDDEN);
    pwi_flow_begin_clock(flow);
  }
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_unblock(client, flow);
}
