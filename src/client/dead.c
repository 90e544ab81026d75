/* Staying dead (design, section 7: "Retirement").
 *
 * A client whose work others take over must not join again by itself once it was taken for dead: what it would then push under its new
 * id has been finished by somebody else, or undone. Of what it had sent under its old id servers take nothing any more. So all
 * that is left to do is to tell every caller, and to close the links. Whoever is told may call again from inside that: such calls are
 * refused at once.
 */
#include "base/memory.h"
#include "client/inside.h"

static void end_asks(struct pwi_client *client) {
  while (client->asks) {
    struct pwi_asking *asking = client->asks;
    client->asks = asking->next;
    pwi_free(asking->payload);
    pwi_free(asking->reply);
    asking->payload = asking->reply = NULL;
    asking->replied(asking, PAWL_NODE_GONE, NULL, 0);
  }
}

void pwi_client_die(struct pwi_client *client) {
  client->is_dead = client->has_left = true;
  client->trouble = PAWL_NODE_GONE;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_kill(client, flow, PAWL_NODE_GONE);
  end_asks(client);
  pwi_client_calls_die(client);
  pwi_client_hang_up(client);
}
