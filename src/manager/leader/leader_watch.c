/* A standby's link to the leader. */
#include "manager/leader/leader_watch.h"

#include <stdio.h>
#include <string.h>

#define BROKEN_NS INT64_C(1000000)   /* delay before the next attempt after a link broke */
#define FAILED_NS INT64_C(250000000) /* delay after any other failure */

/* If there is no memory for a timer, the watch ends, and the lease decides. */
static void connect_later(struct pwi_leader_watch *watch, int64_t delay) {
  watch->link.id = 0;
  pwi_net_timer_cancel(watch->net, watch->timer);
  if (pwi_net_timer_set(watch->net, pwi_net_now(watch->net) + delay, watch->cookie, &watch->timer)) watch->timer.id = 0;
}

void pwi_leader_watch_timer(struct pwi_leader_watch *watch) {
  watch->timer.id = 0;
  if (watch->address[0] == '\0' || watch->link.id != 0) return;
  if (pwi_net_connect(watch->net, watch->address, &watch->link)) connect_later(watch, FAILED_NS);
}

void pwi_leader_watch_set(struct pwi_leader_watch *watch, const char *address) {
  if (strcmp(watch->address, address) == 0) return;
  if (watch->link.id != 0) pwi_net_close(watch->net, watch->link, PAWL_OK);
  watch->link.id = 0;
  watch->was_up = false;
  snprintf(watch->address, sizeof watch->address, "%s", address);
  connect_later(watch, 0);
}

bool pwi_leader_watch_link_up(struct pwi_leader_watch *watch, struct pwi_link link) {
  if (watch->link.id == 0 || watch->link.id != link.id) return false;
  watch->was_up = true;
  return true;
}

bool pwi_leader_watch_link_down(struct pwi_leader_watch *watch, struct pwi_link link, pawl_status why) {
  if (watch->link.id == 0 || watch->link.id != link.id) return false;
  bool is_gone = why == PAWL_LINK_REFUSED && watch->was_up;
  connect_later(watch, why == PAWL_LINK_RESET || why == PAWL_LINK_CLOSED ? BROKEN_NS : FAILED_NS);
  if (is_gone) {
    watch->was_up = false; /* once for each process */
    watch->gone(watch->context);
  }
  return true;
}
