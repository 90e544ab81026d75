/* A worker of a simulated benchmark as a member of a peer group: it joins, and waits for all others. */
#ifndef PWI_BENCH_MEMBER_H
#define PWI_BENCH_MEMBER_H

#include "sim/cluster.h"

struct pwi_bench_member {
  struct pwi_cluster *cluster;
  struct pwi_cluster_client *client;
  struct pwi_peers *peers;
  struct pwi_vector_id group;
  uint32_t rank; /* among the founders; set by pwi_bench_member_is_complete */
  struct pwi_asking asking;
};

/* Call it when the client of a zeroed member has started. Asks for the group, which begins with `founders` members. A failure ends
 * the simulation. */
void pwi_bench_member_join(struct pwi_bench_member *member, struct pwi_cluster *cluster,
                           struct pwi_cluster_client *client, const char *group, uint32_t founders);

/* Whether all founders are there. */
bool pwi_bench_member_is_complete(struct pwi_bench_member *member);

#endif
