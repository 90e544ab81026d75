/* The traffic of training with parameter servers, as flows alone: no roles, no messages (MLNet 4).
 *
 * A job has workers and servers on hosts that the seed draws. A round is: every worker computes, then pushes its share
 * to every server shard, and a shard whose pushes are all in sends the new values back. The next round begins when every
 * worker has the values of all shards.
 *
 * Pushes go up a tree (graph/tree.h), pulls down the same one. An aggregator works in one of two ways:
 *
 *   by message   it sends its aggregate once it has all that its children send
 *   by stream    it adds up bytes as they arrive, and sends them on at once; so the whole tree moves at one rate, that
 *                of its slowest link, and is one flow (sim/fabric/flows.h, "weight")
 *
 * PLACES. Each job draws an order of all hosts. Its workers take the first hosts, its servers the next ones, and those
 * that find no free host share the hosts of the first workers: of 800 workers and 400 servers on 1,024 hosts, 176
 * servers are on hosts of workers. Jobs draw independently of one another.
 */
#ifndef PWI_SIM_FABRIC_TRAINING_H
#define PWI_SIM_FABRIC_TRAINING_H

#include "graph/tree.h"
#include "sim/fabric/flows.h"
#include "sim/fabric/shape.h"

#define PWI_TRAINING_JOBS_MAX 64
#define PWI_TRAINING_SERVERS_MAX 4096

struct pwi_training_job {
  uint32_t workers, servers;
  double bytes; /* of a push of one worker, and of a pull, over all servers */
  enum pwi_tree tree;
  uint32_t degree;
  bool rotates;
  bool streams;
  uint32_t class;
  int64_t compute_ns; /* before the pushes of every round */
  uint32_t rounds;
};

struct pwi_training_config {
  struct pwi_fabric_shape shape;
  uint64_t seed;
  const struct pwi_training_job *jobs;
  size_t job_count;
  int64_t latency_ns; /* of one link */
  int64_t grain_ns;
  uint32_t incast_flows;
  double incast_loss;
  /* called now and then with the virtual time and the rounds that are over; may be NULL */
  void (*progress)(void *context, int64_t now, uint64_t rounds);
  void *context;
};

struct pwi_training_result {
  int64_t ends[PWI_TRAINING_JOBS_MAX]; /* when a job has finished its rounds */
  struct pwi_flows_figures figures;
  double *link_bytes; /* by link; free with pwi_free */
};

/* PAWL_INVALID: no job, more workers than hosts, no servers, a degree below 2. PAWL_TOO_LARGE, PAWL_NO_MEMORY.
 * PAWL_TIMED_OUT: a job never ends, because its flows get nothing. */
PAWL_MUST_USE pawl_status pwi_training_run(const struct pwi_training_config *config,
                                           struct pwi_training_result *result_out);

#endif
