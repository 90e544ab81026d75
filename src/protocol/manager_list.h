/* Where a node finds the manager: a list of addresses, of which one leads at a time.
 *
 * A cluster whose decisions are kept in a store that several managers share (manager/leader/meta.h) has one that leads and others
 * that stand by. A node is given the addresses of all, or of some. It tries one after another; a manager that stands by
 * says so, and where it believes the leader to be, which the node tries at once. Between two rounds through the list there
 * is a pause, which doubles.
 *
 * TERMS. Each leadership has a number that rises, its term, and all that a manager says carries it. A node remembers the
 * highest and hears nothing of a lower one: a manager that was stopped, replaced, and woke up again changes nothing.
 *
 * The caller connects, and tells how it went. Threads: as its caller's.
 */
#ifndef PWI_PROTOCOL_MANAGER_LIST_H
#define PWI_PROTOCOL_MANAGER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"
#include "protocol/protocol.h"

#define PWI_MANAGERS_MAX 16

struct pwi_managers {
  char (*addresses)[PWI_NET_ADDRESS_MAX];
  size_t count;
  size_t at;                       /* the address that is tried, or was last */
  size_t failed;                   /* attempts on the list since one went well: a round is over after `count` of them */
  char hint[PWI_NET_ADDRESS_MAX];  /* where somebody believes the leader to be; "": nobody does */
  char tried[PWI_NET_ADDRESS_MAX]; /* what pwi_managers_next said last, */
  char before[PWI_NET_ADDRESS_MAX]; /* and what came to nothing before it */
  bool is_hinted;                   /* `tried` was a hint, */
  unsigned hops;                    /* so many after the last address of the list */
  int64_t pause_min_ns, pause_ns;
  uint64_t term; /* the highest that we have heard of; 0: none */
};

/* Addresses with commas between them. PAWL_INVALID if one cannot be read, there is none, or there are too many;
 * PAWL_NO_MEMORY. The pause after the first round is `pause_min_ns`. End it with pwi_managers_fini; zeros may be ended too. */
PAWL_MUST_USE pawl_status pwi_managers_init(struct pwi_managers *managers, const char *list, int64_t pause_min_ns);
void pwi_managers_fini(struct pwi_managers *managers);

/* The address to try now; valid until the next call. */
const char *pwi_managers_next(struct pwi_managers *managers);

/* That attempt, or the link that came of it, is over. Returns how long to wait until the next: 0 if there is somebody else
 * to ask at once. */
int64_t pwi_managers_failed(struct pwi_managers *managers);

/* A link over which we were in broke. As pwi_managers_failed, but a manager that is the only one is tried again at once. */
int64_t pwi_managers_lost(struct pwi_managers *managers);

/* We are in: should the link be lost, somebody else on the list is tried first. */
void pwi_managers_found(struct pwi_managers *managers);

/* Whom we asked names another as the leader. "" and nonsense are ignored, and so is who was asked right before: from there
 * we come. */
void pwi_managers_hint(struct pwi_managers *managers, const char *address);

/* How long an attempt may take until its link is up: others may be waiting to be asked, and a connection that was begun while
 * there was no way may find one much later than a new one would. */
int64_t pwi_managers_patience(const struct pwi_managers *managers);

/* A manager has said JOINED: takes the hint of one that stands by, and heeds the term of any other. */
PAWL_MUST_USE pawl_status pwi_managers_welcome(struct pwi_managers *managers, const struct pwi_joined *joined,
                                               uint64_t term);

/* A manager has said anything else. PAWL_NODE_DEPOSED if one of a later term was heard before: the link is to be closed. */
PAWL_MUST_USE pawl_status pwi_managers_heed(struct pwi_managers *managers, uint64_t term);

/* The first address of a list, for those who need to know the way to it: PAWL_INVALID as above. `address_out` has room for
 * PWI_NET_ADDRESS_MAX. */
PAWL_MUST_USE pawl_status pwi_managers_first(const char *list, char *address_out);

#endif
