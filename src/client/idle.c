/* After a second without a push, the client tells the manager that all its pushes are answered, and which
 * replies to its asks it has. If the client is lost after that, nothing of it is unsettled: servers drop its
 * clocks, and the manager forgets its replies (manager/unsettled.c). */
#include "client/inside.h"

#define IDLE_NS INT64_C(1000000000)

void pwi_client_idle(struct pwi_client *client) {
  bool is_told = client->last_number == client->idle_told && pwi_client_asks_heard(client) == client->heard_told;
  if (client->idle_at != 0 || is_told) return;
  client->idle_number = client->last_number;
  client->idle_at = pwi_net_now(client->config.net) + IDLE_NS;
  pwi_client_wake_at(client, client->idle_at);
}

/* If the message is lost, it is sent again after the next push. Until then servers keep the clocks, which
 * does no harm. */
void pwi_client_tell_idle(struct pwi_client *client) {
  if (client->idle_at == 0) return;
  if (pwi_net_now(client->config.net) < client->idle_at) {
    pwi_client_wake_at(client, client->idle_at);
    return;
  }
  client->idle_at = 0;
  if (client->tasks_first || client->renewal != RENEWAL_NONE) return; /* told when the last task ends */
  if (client->idle_number != client->last_number) {
    pwi_client_idle(client);
    return;
  }
  if (!client->is_in || client->sender == 0) return;
  client->idle_told = client->last_number;
  client->heard_told = pwi_client_asks_heard(client);
  pwi_client_say(client, PWI_SAY_IDLE, client->last_number, client->heard_told);
}
