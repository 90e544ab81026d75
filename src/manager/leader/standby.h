/* A standby: one of several manager processes of a cluster. It waits until it leads, and runs a manager
 * (manager/manager.h) while it leads.
 *
 * All standbys of a cluster share one store (manager/leader/meta.h) and one prefix. A standby that does not
 * lead refuses every JOIN with PAWL_NODE_STANDBY and the address of the leader, if it knows it. When it has
 * won the leadership (manager/leader/election.h), it reads the journal from the store
 * (manager/leader/journal_meta.h), creates a manager on the same net, and passes all callbacks to it. It
 * closes earlier links first, so the manager sees every link from its start.
 *
 * A standby watches the leader over a link of its own (manager/leader/leader_watch.h), and deposes a leader whose
 * process has ended.
 *
 * When the leadership is lost, the standby is OVER at once: it passes no timer and no message to the manager
 * any more. A manager cannot be removed from its net, so the owner destroys the net with everything on it and
 * starts again on the same address. This is rare, and the process serves no peer meanwhile.
 *
 * Threads: an actor over net.h. It belongs to the thread of its net, and so does the store; `woken` calls
 * `turn` of the store.
 */
#ifndef PWI_MANAGER_LEADER_STANDBY_H
#define PWI_MANAGER_LEADER_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "manager/manager.h"
#include "manager/leader/meta.h"

struct pwi_standby_config {
  struct pwi_manager_config manager; /* for the manager; the standby sets journal and term */
  struct pwi_meta *meta;             /* borrowed; its `wake` must wake the manager's net */
  const char *prefix;                /* prefix of all keys; copied */
  int64_t ttl_ns, doubt_ns;          /* see manager/leader/election.h; 0: the defaults */
  void (*changed)(void *context);    /* the phase or the leader has changed; NULL: no callback */
  void *context;
};

enum pwi_standby_phase {
  PWI_STANDBY_WAITING, /* another manager leads, or none, or the store is not reached */
  PWI_STANDBY_READING, /* this one has won the leadership and reads the journal */
  PWI_STANDBY_LEADING, /* the manager runs */
  PWI_STANDBY_OVER,    /* the leadership is lost or resigned: destroy this standby and create another */
  PWI_STANDBY_FAILED,  /* the data below the prefix cannot be used, see `why`; creating another does not
                          help */
};

struct pwi_standby;

/* Sets the greeting and starts to look for a leader. The caller must listen before, so that the address is
 * known. `config->manager.net` must have been created with pwi_standby_actor. Errors: PAWL_INVALID (the
 * prefix is too long), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_standby_create(const struct pwi_standby_config *config, struct pwi_standby **standby_out);

/* Call it after the net is destroyed or when it will not be polled again. NULL is fine. */
void pwi_standby_destroy(struct pwi_standby *standby);

extern const struct pwi_actor pwi_standby_actor;

struct pwi_standby_state {
  enum pwi_standby_phase phase;
  pawl_status why;             /* OVER, FAILED: the reason. Otherwise the error of the last call to the
                                  store */
  uint64_t term;               /* this standby's term if it leads, otherwise the highest seen */
  const char *leader;          /* address of the leader; "": none, or not known. Borrowed from the standby */
  uint64_t records;            /* LEADING: number of the last record in the journal */
  bool holds_lease;            /* this standby has won the leadership, in whatever phase it is */
  struct pwi_manager *manager; /* LEADING, and OVER if it led; otherwise NULL */
};

void pwi_standby_state(const struct pwi_standby *standby, struct pwi_standby_state *state_out);

/* Resigns the leadership, if this standby has it. The phase is then OVER within about a second. */
void pwi_standby_resign(struct pwi_standby *standby);

#endif
