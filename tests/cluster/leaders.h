/* Several managers of one cluster that take turns, over a store in the simulator.
 *
 * A manager whose leadership ends is restarted at once, as `pawl manager` does. The store is checked:
 * overwriting a record of the log with another ends the run.
 */
#ifndef TESTS_CLUSTER_LEADERS_H
#define TESTS_CLUSTER_LEADERS_H

#include "manager/leader/standby.h"
#include "sim/cluster.h"
#include "sim/meta.h"

#define LEADERS_MAX 3
#define LEADERS_PREFIX "pawl/sim"

struct leader {
  struct leaders *leaders;
  struct pwi_sim_node node;
  char name[8], address[16];
  struct pwi_standby *standby; /* NULL while it is down */
  struct pwi_meta *meta;
  uint64_t term; /* term of its last leadership */
};

struct leaders {
  struct pwi_cluster *cluster;
  struct pwi_sim_meta *store;
  struct leader all[LEADERS_MAX];
  size_t count;
  uint64_t terms, records; /* totals so far */
};

/* The addresses of this many managers, for pwi_cluster_config. */
const char *leaders_addresses(size_t count);

/* Adds and starts `count` managers, in a cluster that was opened with their addresses. */
void leaders_open(struct leaders *leaders, struct pwi_cluster *cluster, size_t count);
void leaders_close(struct leaders *leaders); /* after the simulation */

/* The manager that leads: of those that believe so, the one with the highest term; NULL if there is none. */
struct leader *leaders_first(struct leaders *leaders);

#endif
