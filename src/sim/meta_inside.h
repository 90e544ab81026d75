/* Inside sim/meta.h: shared by the store (meta_store.c) and its clients (meta.c). */
#ifndef PWI_SIM_META_INSIDE_H
#define PWI_SIM_META_INSIDE_H

#include "base/random.h"
#include "sim/meta.h"

#define SIM_META_NODES 64 /* most nodes that can be cut off */

struct meta_key {
  char *key;
  unsigned char *value;
  size_t size;
  uint64_t created, lease;
};

struct meta_lease {
  uint64_t id;
  int64_t ttl, ends_at;
};

struct pwi_sim_meta {
  struct pwi_sim *sim;
  struct pwi_random random;
  uint64_t revision, last_lease;
  struct meta_key *keys; /* sorted by key */
  size_t key_count, key_room;
  struct meta_lease *leases;
  size_t lease_count, lease_room;
  bool is_away, is_cut[SIM_META_NODES];
  struct pwi_sim_meta_watch watch;
  struct meta_op *ops; /* all unfinished operations */
};

/* The result of one operation. Owns its memory. */
struct meta_result {
  pawl_status status;
  struct pwi_meta_answer answer;
  struct pwi_meta_pair *pairs;
  size_t room;
};

void pwi_meta_result_fini(struct meta_result *result);

/* Each executes its operation immediately. */
void pwi_sim_meta_transact(struct pwi_sim_meta *store, const struct pwi_meta_transaction *transaction,
                           struct meta_result *result);
void pwi_sim_meta_grant(struct pwi_sim_meta *store, int64_t ttl, struct meta_result *result);
void pwi_sim_meta_renew(struct pwi_sim_meta *store, uint64_t lease, struct meta_result *result);
void pwi_sim_meta_revoke(struct pwi_sim_meta *store, uint64_t lease, struct meta_result *result);

#endif
