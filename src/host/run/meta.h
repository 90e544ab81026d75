/* A manager of this process that takes turns with managers of other processes, over etcd: the store's
 * client and the role that stands by or leads (manager/leader/standby.h), on a net of the caller.
 *
 * Threads: those of the net; the etcd client has one of its own (host/etcd/etcd.h).
 */
#ifndef PWI_HOST_RUN_META_H
#define PWI_HOST_RUN_META_H

#include <stdint.h>

#include <pawl/status.h>

#include "host/run/problem.h"
#include "manager/leader/standby.h"

/* The store for decisions. Strings are borrowed for the lifetime of the manager. */
struct pwi_run_store {
  const char *place;       /* etcd://host:port,…/prefix; NULL: no store */
  const char *authority;   /* etcds: PEM file of the authority; may be NULL */
  const char *certificate; /* etcds: PEM file of our certificate; may be NULL */
  const char *private_key;
};

struct pwi_run_meta;

/* The net was created with pwi_standby_actor and listens; this function sets its self. `role` as in struct
 * pwi_standby_config. */
PAWL_MUST_USE pawl_status pwi_run_meta_open(const struct pwi_run_store *store, const struct pwi_manager_config *role,
                                            struct pwi_run_meta **meta_out, struct pwi_run_problem *problem);

/* Call it after each poll: logs changes and returns the phase. */
enum pwi_standby_phase pwi_run_meta_look(struct pwi_run_meta *meta);
void pwi_run_meta_state(const struct pwi_run_meta *meta, struct pwi_standby_state *state_out);

/* Explains why the phase is FAILED. */
void pwi_run_meta_explain(const struct pwi_run_meta *meta, struct pwi_run_problem *problem);

/* Gives up the leadership, if we have it: polls the net until that is done, for at most a second. */
void pwi_run_meta_resign(struct pwi_run_meta *meta);

/* Call `stop` before the net is destroyed, and `close` after. NULL is fine. */
void pwi_run_meta_stop(struct pwi_run_meta *meta);
void pwi_run_meta_close(struct pwi_run_meta *meta);

#endif
