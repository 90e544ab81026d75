/* A standby's link to the leader, by which it learns at once that the leader's process has ended.
 *
 * Without it, a killed leader is replaced when its lease expires, 2 to 3 s later (manager/leader/election.h).
 * The link carries no messages. When it breaks, the standby connects again. The leader's process is *gone* if
 * no process listens at its address any more, after a link to it was up. A leader that is silent, or that this
 * standby has never reached, may well lead: only its lease decides.
 *
 * A wrong conclusion would be harmless: the fence of the election decides who writes, and a leader whose lease
 * was revoked stands by.
 *
 * Threads: part of an actor, which passes on `link_up` and `link_down` of links that it does not know, and the
 * timer with the watch's cookie.
 */
#ifndef PWI_MANAGER_LEADER_LEADER_WATCH_H
#define PWI_MANAGER_LEADER_LEADER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "net/net.h"

struct pwi_leader_watch {
  struct pwi_net *net;
  uint64_t cookie;             /* cookie of its timer */
  void (*gone)(void *context); /* the leader's process has ended */
  void *context;

  /* Private. */
  char address[PWI_NET_ADDRESS_MAX]; /* address of the leader; "": no leader is watched */
  struct pwi_link link;              /* 0: no link at the moment */
  struct pwi_timer timer;
  bool was_up; /* a link to this address was up */
};

/* Watches the leader at this address from now on; "" ends the watch. Nothing changes if it is watched already. */
void pwi_leader_watch_set(struct pwi_leader_watch *watch, const char *address);

/* Returns false if the link does not belong to the watch. */
bool pwi_leader_watch_link_up(struct pwi_leader_watch *watch, struct pwi_link link);
bool pwi_leader_watch_link_down(struct pwi_leader_watch *watch, struct pwi_link link, pawl_status why);

void pwi_leader_watch_timer(struct pwi_leader_watch *watch);

#endif
