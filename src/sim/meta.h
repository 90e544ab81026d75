/* A shared store (manager/leader/meta.h) in virtual time, for simulations in which managers take turns.
 *
 * The store is not a node: it does not die, and it has one copy of everything. Calls between a node and
 * the store take random time both ways, and nodes can be cut off from it. A lost call is retried, as an
 * etcd client does, also if only its answer was lost; so a transaction may be done twice, and the second answer
 * comes back. A call that is travelling when its node is killed still arrives. Leases end by the store's
 * clock, which is that of the simulation.
 *
 * A read of an old revision (struct pwi_meta_step.revision) fails with PAWL_NOT_FOUND if anything has
 * changed since: the contract of a store permits no less memory than that.
 *
 *   pwi_sim_meta_create(sim, &store);
 *   … in a node's boot:  pwi_sim_meta_open(store, node, boot->net, &meta);
 *   … in its halt:  meta->ops->destroy(meta);
 *   pwi_sim_meta_cut(store, node, true);
 *
 * Threads: as the simulation.
 */
#ifndef PWI_SIM_META_H
#define PWI_SIM_META_H

#include "manager/leader/meta.h"
#include "sim/sim.h"

struct pwi_sim_meta;

/* PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_meta_create(struct pwi_sim *sim, struct pwi_sim_meta **store_out);
/* call it after the simulation and all clients are destroyed; NULL is fine */
void pwi_sim_meta_destroy(struct pwi_sim_meta *store);

/* A booting node's access to the store; destroyed when the node is halted. It wakes the net.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_meta_open(struct pwi_sim_meta *store, struct pwi_sim_node node, struct pwi_net *net,
                                            struct pwi_meta **meta_out);

/* Cuts the node off from the store, both ways. PWI_SIM_ALL: no node reaches the store. */
void pwi_sim_meta_cut(struct pwi_sim_meta *store, struct pwi_sim_node node, bool is_cut);

/* Called before a key is put. `before` is the old pair; NULL if there is none. */
struct pwi_sim_meta_watch {
  void (*put)(void *context, const char *key, const void *value, size_t size, const struct pwi_meta_pair *before);
  void *context;
};

void pwi_sim_meta_watch(struct pwi_sim_meta *store, const struct pwi_sim_meta_watch *watch);

/* The value of a key, valid until the store changes; NULL if there is no such key. */
const void *pwi_sim_meta_get(const struct pwi_sim_meta *store, const char *key, size_t *size_out);

uint64_t pwi_sim_meta_revision(const struct pwi_sim_meta *store);

#endif
