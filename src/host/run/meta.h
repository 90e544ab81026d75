/* A manager of this process that takes turns with those of others, over etcd: the store's client and the role that stands
 * by or leads (manager/leader/standby.h), on a net of the caller's.
 *
 * Threads: as the net's, but for the client's own (host/etcd/etcd.h).
 */
#ifndef PWI_HOST_RUN_META_H
#define PWI_HOST_RUN_META_H

#include <stdint.h>

#include <pawl/status.h>

#include "host/run/problem.h"
#include "manager/leader/standby.h"

/* Where decisions are kept. Texts are borrowed as long as the manager that is made with it lives. */
struct pwi_run_store {
  const char *place;       /* etcd://host:port,…/prefix; NULL: nowhere */
  const char *authority;   /* etcds: PEM files, */
  const char *certificate; /* each may be NULL */
  const char *private_key;
};

struct pwi_run_meta;

/* The net was created with pwi_standby_actor and listens; its self is set here. `role` as in struct pwi_standby_config. */
PAWL_MUST_USE pawl_status pwi_run_meta_open(const struct pwi_run_store *store, const struct pwi_manager_config *role,
                                            struct pwi_run_meta **meta_out, struct pwi_run_problem *problem);

/* After each poll: logs what has changed, and returns the phase. */
enum pwi_standby_phase pwi_run_meta_look(struct pwi_run_meta *meta);
void pwi_run_meta_state(const struct pwi_run_meta *meta, struct pwi_standby_state *state_out);

/* Why it has FAILED, for people. */
void pwi_run_meta_explain(const struct pwi_run_meta *meta, struct pwi_run_problem *problem);

/* Gives the leadership back, if it is ours: polls the net until that is done, or for a second. */
void pwi_run_meta_resign(struct pwi_run_meta *meta);

/* `stop` before the net is destroyed, `close` after. NULL is fine. */
void pwi_run_meta_stop(struct pwi_run_meta *meta);
void pwi_run_meta_close(struct pwi_run_meta *meta);

#endif
