/* That all our pushes are answered, the manager is told when we have pushed nothing for a second. If we are lost after that nothing
 * of ours is unsettled, and nobody has to keep our clocks (manager/unsettled.c). */
#include "client/inside.h"

#define IDLE_NS INT64_C(1000000000)

void pwi_client_idle(struct pwi_client *client) {
  if (client->idle_at != 0 || client->last_number == client->idle_told) return;
  client->idle_number = client->last_number;
  client->idle_at = pwi_net_now(client->config.net) + IDLE_NS;
  pwi_client_wake_at(client, client->idle_at);
}

/* Where it is not heard it is said again after the next push. Without it the clocks are kept for a while, and no harm is done. */
void pwi_client_tell_idle(struct pwi_client *client) {
  if (client->idle_at == 0) return;
  if (pwi_net_now(client->config.net) < client->idle_at) {
    pwi_client_wake_at(client, client->idle_at);
    return;
  }
  client->idle_at = 0;
  if (client->tasks_first || client->renewal != RENEWAL_NONE) return; /* the next to be over says so */
  if (client->idle_number != client->last_number) {
    pwi_client_idle(client);
    return;
  }
  if (!client->is_joined || client->sender == 0) return;
  client->idle_told = client->last_number;
  pwi_client_say(client, PWI_SAY_IDLE, client->last_number);
}
