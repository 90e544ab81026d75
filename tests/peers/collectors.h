/* Members of a collective in the simulator: applications that call one operation after the other, and check every
 * result.
 *
 * Which operation comes next, its count, type, operator and root, follow from the epoch and the number of the
 * operation; the values of a member follow from these and its node id. So the checker computes with plain loops what
 * every member must get, and compares every bit:
 *
 *   - a call that returns OK has the whole and right result of all members of its epoch, also in the order of addition;
 *   - all members of an epoch have the same list of members;
 *   - memory outside of the result is not touched, nor is anything while no call is under way;
 *   - a call fails only with NODE_GONE or CANCELLED, unless the scene expects another status.
 *
 * After a failure a member calls renew. A violation fails the simulation.
 */
#ifndef TESTS_PEERS_COLLECTORS_H
#define TESTS_PEERS_COLLECTORS_H

#include "../cluster/cluster.h"
#include "peer/collective/inside.h"

#define COLLECTORS_MAX 9
#define COLLECTORS_GROUP "sim/.collectors"
#define COLLECTORS_EPOCHS 1024
#define COLLECTORS_GUARD 64 /* bytes around results */

struct collectors;

struct collector {
  struct collectors *all;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_asking;
  struct pwi_sender joined_as;
  struct pwi_vector_id group;
  struct pwi_collective *engine;
  bool is_waiting, is_calling, is_renewing, is_closed, must_close, must_not_open;
  bool must_reopen; /* with must_close: opens the collective again afterwards */
  struct pwi_collective_work work;
  unsigned char *in, *out; /* with room for the largest call, and guards */
  pawl_status status;      /* of the last call that failed in a way that is not expected */
  char problem[COLLECTIVE_PROBLEM_MAX];
  int64_t give_up_at; /* the call times out, and is repeated a little later; 0: never */
  uint64_t completed, gone, cancelled, timed_out;
};

struct collectors {
  struct pwi_cluster cluster;
  struct collector members[COLLECTORS_MAX];
  uint32_t count;
  uint32_t founders;    /* 0: count */
  size_t largest;       /* values of a call */
  uint64_t operations;  /* that a member makes before it closes; 0: it goes on */
  uint64_t openings;    /* times that a member opens the collective, for so many operations each; 0: once */
  int64_t pause_max;    /* between two calls */
  int64_t patience_max; /* of a call, before it times out; 0: for ever */
  bool must_grow;       /* members renew when they see that another one waits */
  bool must_end;        /* a member that fails closes at once, instead of renewing */
  bool is_mixed_up;     /* members may get any status that <pawl/collective.h> names */
  /* Chooses the call instead of the checker's own choice; NULL: no. */
  void (*choose)(const struct collector *member, struct collective_call *call);
  void (*entered)(const struct collector *member); /* around all that calls the engine; NULL: nothing to do */
  void (*left)(const struct collector *member);
  uint64_t lives;
  struct {
    struct collective_epoch epoch;
    uint32_t size;
    uint64_t hash; /* of the members */
  } epochs[COLLECTORS_EPOCHS];
  size_t epoch_count;
  uint64_t checked, values;
  /* What all members of an epoch get together from their last operation. Each of them compares its result. */
  struct {
    struct collective_epoch epoch;
    uint64_t sequence, members;
    struct collective_call call;
    unsigned char *values;
  } expected;
};

/* Adds the nodes; `all` has its fields up to `left` set. */
void collectors_open(struct collectors *all, const struct pwi_cluster_config *config);
void collectors_close(struct collectors *all);
void collectors_print(const struct collectors *all);
void collector_close(struct collector *member);
struct pwi_sender collector_id(const struct collector *member); /* 0: none */

/* Serial reference: the bits that a reduction of `count` values of `size` members must have. `values(i, rank)` is at
 * inputs[rank] + i. */
void collectors_reduce(const struct collective_call *call, const void *const *inputs, uint32_t size, void *out);

/* For pwi_sim_run_while: a member that is up has not made all operations and closed. */
bool collectors_are_running(void *all);
void collectors_run(struct collectors *all, int64_t limit);

#endif
