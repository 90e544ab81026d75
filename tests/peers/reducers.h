/* Members of a reduce in the simulator: applications that compute for a while, call a step, and check its result.
 *
 * The checker remembers the tensors of every member when it packs them, by version and epoch. When a step is over,
 * it finds the in-neighbours with the module `graph` from the members that the group had, adds what these have
 * sent, and compares every bit. So it knows from what members have sent, and not from the engine, what a step must
 * return:
 *
 *   - in NOTIFY-ACK mode every input of the iteration is used once, whole, and nothing else;
 *   - in BSP mode the result is the average of the own tensors and a subset of these inputs;
 *   - in ASYNC mode of the own tensors and of versions of in-neighbours that were sent, of each at most one, which is
 *     not older than the one that was used before;
 *   - with the significantly-modified filter an input is what the checker's own filter lets through;
 *   - all members of an epoch have the same participants: all members of the group, except for some that have closed;
 *   - a member that takes over a model has the tensors of a member of the same iteration;
 *   - iterations rise by one, except when a model is taken over; and all members of an epoch begin it with the
 *     same iteration.
 *
 * A violation fails the simulation.
 */
#ifndef TESTS_PEERS_REDUCERS_H
#define TESTS_PEERS_REDUCERS_H

#include "../cluster/cluster.h"
#include "peer/reduce/inside.h"

#define REDUCERS_MAX 8
#define REDUCERS_GROUP "sim/.reducers"
#define SENT_MAX 100 /* packed tensors that are remembered of each member */
#define OWNERS 4096  /* sender ids */
#define BIAS 3
#define MEMBERS_MAX 24 /* of the group: processes that were killed are members until their grace is over */
#define CLOSED_MAX 64
#define PINNED 1024

struct team;

/* Tensors of a member when it packed them. */
struct sent {
  uint64_t version;
  struct reduce_epoch epoch;
  uint64_t id;   /* sender id of the member */
  bool is_kept;  /* ASYNC: it was not sent, because the buffers were in use */
  bool is_last;  /* it was not packed */
  float *values; /* all tensors, one after the other */
  float *effect; /* what they are for a receiver */
};

/* The participants of an epoch, as the first result showed them: bits of the members of its number. */
struct pinned {
  struct reduce_epoch epoch;
  unsigned mask;
};

struct reducer {
  struct team *team;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_asking;
  struct pwi_sender joined_as;
  struct pwi_vector_id group;
  struct pwi_reduce *engine;
  bool is_computing, is_working, is_closed, must_close, must_not_open;
  float *values;             /* the tensor */
  float bias[BIAS];          /* another one */
  float marks[REDUCERS_MAX]; /* a third one: the own version, at the own index */
  double carried;            /* completed iterations, as the application counts them */
  uint64_t steps;            /* that are over */
  struct pawl_reduce_report report;
  pawl_status status;        /* of the last step that failed */
  pawl_status failed;        /* at opening */
  struct reduce_epoch epoch; /* of the last work */
  uint64_t adopted, regenerated, diverged;
  uint64_t reported; /* bytes, in all reports */
  float poison;      /* is written into the tensor before the next step, once; 0: none */
  struct sent sent[SENT_MAX];
  size_t sent_next;
  float *view; /* of the filter: what receivers know, or what was not sent */
  uint64_t last_used[REDUCERS_MAX], last_id[REDUCERS_MAX]; /* ASYNC: the last version of each member, and its id */
};

struct team {
  struct pwi_cluster cluster;
  struct reducer reducers[REDUCERS_MAX];
  uint32_t count;
  uint32_t founders;                 /* 0: count */
  size_t values;                     /* of the tensor */
  size_t other_values[REDUCERS_MAX]; /* of one member; 0: as the others */
  uint64_t iterations;
  enum pawl_reduce_mode mode;
  enum pawl_reduce_narrow narrow;
  double significant;
  enum pawl_reduce_what what;
  const char *graph; /* the name of a topology; NULL: default */
  int64_t compute_max;
  int64_t slow[REDUCERS_MAX];                     /* time to compute of one member; 0: as the others */
  bool still;                                     /* members do not change their tensors */
  bool lingers;                                   /* members that have reached the target wait instead of closing */
  bool may_fail;                                  /* opening may fail */
  void (*entered)(const struct reducer *reducer); /* around all that calls the engine; NULL: nothing to do */
  void (*left)(const struct reducer *reducer);
  uint64_t close_at[REDUCERS_MAX]; /* the iteration after which one member closes; 0: as the others */
  uint64_t closed[CLOSED_MAX];     /* sender ids of members that have closed */
  size_t closed_count;
  uint64_t owners[OWNERS]; /* index + 1 of the member that has, or had, a sender id */
  struct {
    uint64_t number;
    size_t count;
    uint64_t ids[MEMBERS_MAX];
  } memberships[512];
  size_t membership_count;
  struct {
    struct reduce_epoch epoch;
    uint64_t iteration;
  } epochs[1024];
  size_t epoch_count;
  struct pinned pinned[PINNED];
  size_t pinned_count;
  uint64_t checked;  /* steps */
  uint64_t verified; /* of these: every value was compared */
  uint64_t used, expected, current;
};

/* Adds the nodes; `team` has its fields up to `lingers` set. */
void team_open(struct team *team, const struct pwi_cluster_config *config);
void team_close(struct team *team);

/* For pwi_sim_run_while: a member that is up has not reached the target. */
bool team_is_running(void *team);
void team_run(struct team *team, int64_t limit);
void team_print(const struct team *team); /* for people */
void reducer_close(struct reducer *reducer);

/* reducers_check.c */
void reducer_broken(const struct reducer *reducer, const char *what, uint64_t value);
size_t reducer_values(const struct reducer *reducer);
struct pwi_sender reducer_id(const struct reducer *reducer);
void reducer_note_owner(struct reducer *reducer);
void reducer_note_membership(struct reducer *reducer);
void reducer_note_sent(struct reducer *reducer);
void reducer_note_last(struct reducer *reducer);
void reducer_check_result(struct reducer *reducer);
void reducer_check_epoch(struct reducer *reducer);
void reducer_check_adopted(struct reducer *reducer);
void reducer_forget_sent(struct reducer *reducer);

#endif
