/* A manager that takes turns with others: it stands by until it leads, and is the manager (manager/manager.h) while it does.
 *
 * Several processes run one of these over one store (manager/leader/meta.h) and one prefix. Standing by, it lets nobody in: whoever
 * says JOIN is told PAWL_NODE_STANDBY and where the leader is, as far as it knows. When it has won the leadership
 * (manager/leader/election.h) it reads the log (manager/leader/journal_meta.h), makes a manager of it on the same net, and hands it all that
 * happens from then on. Links of before are closed, so the manager never meets one that it did not see come up.
 *
 * When the leadership is lost it is OVER at once: nothing is handed to the manager any more, no timer, no message. A manager
 * cannot be taken off its net: whoever runs this ends net and all, and begins anew on the same address. That is rare, and
 * nobody is served by it meanwhile.
 *
 * Threads: an actor over net.h, belongs to its net's thread, as the store does; `woken` turns the store.
 */
#ifndef PWI_MANAGER_LEADER_STANDBY_H
#define PWI_MANAGER_LEADER_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "manager/manager.h"
#include "manager/leader/meta.h"

struct pwi_standby_config {
  struct pwi_manager_config manager; /* of the manager to be; journal and term are filled in */
  struct pwi_meta *meta;             /* borrowed; its `wake` wakes the manager's net */
  const char *prefix;                /* of all keys; copied */
  int64_t ttl_ns, doubt_ns;          /* manager/leader/election.h; 0: the defaults */
  void (*changed)(void *context);    /* the phase is another one; NULL: nobody wants to know */
  void *context;
};

enum pwi_standby_phase {
  PWI_STANDBY_WAITING, /* another one leads, or nobody, or the store is away */
  PWI_STANDBY_READING, /* we lead, and read the log */
  PWI_STANDBY_LEADING,
  PWI_STANDBY_OVER,   /* the leadership is lost, or was given back: begin anew */
  PWI_STANDBY_FAILED, /* `why`: what is below the prefix is not ours, or cannot be read; no use to begin anew */
};

struct pwi_standby;

/* Sets the greeting and begins to look for a leader; the caller listens before, so that the address is known.
 * `config->manager.net` was created with pwi_standby_actor. PAWL_INVALID (the prefix), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_standby_create(const struct pwi_standby_config *config, struct pwi_standby **standby_out);

/* After the net is destroyed or will not be polled again. NULL is fine. */
void pwi_standby_destroy(struct pwi_standby *standby);

extern const struct pwi_actor pwi_standby_actor;

struct pwi_standby_state {
  enum pwi_standby_phase phase;
  pawl_status why;    /* OVER, FAILED; else why the store was not reached when last tried, PAWL_OK if it was */
  uint64_t term;      /* of ours, if we lead, else the last heard of */
  const char *leader; /* who leads, as far as is known; "": nobody, or it is not known. Valid as long as the standby */
  uint64_t records;   /* LEADING: in the log */
  bool holds_lease;   /* the leadership is ours, whatever the phase */
  struct pwi_manager *manager; /* LEADING, and OVER if it led; else NULL */
};

void pwi_standby_state(const struct pwi_standby *standby, struct pwi_standby_state *state_out);

/* Gives the leadership back, if it is ours. OVER when that is done, within a second or so. */
void pwi_standby_resign(struct pwi_standby *standby);

#endif
