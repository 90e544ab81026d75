/* Reduce: the members of a peer group average their tensors with one another in every iteration, without
 * servers (ASAP: Kadav and Kruus, "Asynchronous Approximate Data-Parallel Computation", 2016).
 *
 * Every member holds its own copy of the model. In each iteration it computes on its own data and changes its
 * tensors, and then calls pawl_reduce_step. The step sends the tensors to the member's out-neighbours in a
 * sparse graph (docs/graphs.md), waits for those of its in-neighbours, and replaces each value by the average
 * of its own value and the values received. A sparse graph sends few bytes; a graph with a large spectral gap
 * spreads every value soon.
 *
 *   struct pawl_tensor tensors[] = {{weights, 1000000, PAWL_F32}, {bias, 10, PAWL_F32}};
 *   struct pawl_reduce_options options;
 *   struct pawl_reduce_report report = {0};
 *   pawl_reduce_options_init(&options);
 *   status = pawl_reduce_open(peers, "model", tensors, 2, &options, PAWL_FOREVER, &reduce);
 *   while (!status && report.iteration < 1000) {
 *     compute(weights, bias);
 *     status = pawl_reduce_step(reduce, PAWL_FOREVER, &report);
 *   }
 *   pawl_reduce_close(reduce);
 *
 * MODES. In NOTIFY_ACK mode a step uses exactly one version of every in-neighbour: the one of this iteration.
 * A sender writes again only after the receiver has acknowledged that it has used the last version, so members
 * wait for their neighbours only and never for all members. In BSP mode all members meet at a barrier in every
 * step, and a step uses the inputs that have arrived by then. In ASYNC mode a step never waits for an input: it
 * uses the newest complete version of every in-neighbour, which may be an old one. The report of a step says
 * how many inputs were complete and of its own iteration.
 *
 * GRAPH. The member with the lowest rank makes the graph for all. When members come or go, the graph is made
 * again for the new number of members. If the graph that the options name is not possible for that number (a
 * file for 8 nodes, 7 survivors), the default graph takes its place. A group that was created for one founding
 * member is one whose members come as they like: any graph may be named, and is used at the numbers of members
 * for which it is possible (pawl_reduce_graph_check).
 *
 * MEMBERSHIP. When the members of the group have changed, a step first agrees with all other members on the
 * number of the group and on one iteration: the highest that any member has completed. A member that is behind,
 * such as one that has just joined, takes over the tensors of a member that is not, and goes on from there:
 * report.is_adopted. No step is repeated whose result was returned. All members must call pawl_reduce_step for
 * that, also in ASYNC mode. A member that computes for long delays the others for so long, and a member that
 * does not call pawl_reduce_step any more must close the reduce and leave the group, and a member of the group that
 * never opens the reduce must leave the group: the others wait for it.
 *
 * LOSS. A step that waits for a member for much longer than steps usually take asks that member for a sign of
 * life, and logs its silence. Only the manager removes members: at once if the process has ended, after
 * --client-grace if it is silent. Until then the step waits, up to its time limit.
 *
 * CLOSING. pawl_reduce_close first delivers the tensors of the last step to the neighbours that still need
 * them. Members that continue make a new graph without the member that has closed. A member that has closed a
 * reduce can open one of the same name again, and joins it like a new member.
 *
 * MEMORY. The tensors are borrowed from open to close. Between two steps they belong to the caller; during a
 * step no other thread may use them. A reduce allocates twice the bytes of the tensors and once more for each
 * in-neighbour; four times and once more in the other modes and with `significant`, which also needs a copy for each
 * in-neighbour. All of it is allocated by open and when the graph changes: other steps allocate nothing.
 *
 * ROUNDING. Values are added in the order of ranks, in the type of the tensor. The same inputs give the same
 * bits on every transport; in a complete graph without narrowing all members compute the same bits.
 *
 * THREADS. One thread at a time may use a reduce, except for pawl_reduce_state, which any thread may call.
 * Several reduces of one group, with different names, may be used by different threads.
 *
 * ERRORS. pawl_error_text has the details of the last failure of this thread.
 */
#ifndef PAWL_REDUCE_H
#define PAWL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_peers;
struct pawl_reduce;

#define PAWL_REDUCE_NAME_MAX 48      /* characters of the name of a reduce */
#define PAWL_REDUCE_TENSORS_MAX 4096 /* tensors of one reduce, those that are carried included */
#define PAWL_REDUCE_GRAPH_MAX 255    /* characters of the name of a graph */

/* An array of numbers. `type` is PAWL_F32 or PAWL_F64. Small tensors cost no more than their bytes: all tensors
 * of a reduce travel together. */
struct pawl_tensor {
  void *values;
  size_t count;
  enum pawl_type type;
};

enum pawl_reduce_mode {
  PAWL_REDUCE_NOTIFY_ACK = 0, /* every input of this iteration is used exactly once */
  PAWL_REDUCE_BSP = 1,        /* a barrier of all members in each step */
  PAWL_REDUCE_ASYNC = 2,      /* no step waits for an input */
};

/* What the tensors are. Both are combined alike, with equal weights: the value of a member and those of the k
 * inputs that a step uses have the weight 1 / (k + 1) each. */
enum pawl_reduce_what {
  PAWL_REDUCE_MIX = 0,  /* models: a convex combination. Not sent means not changed (`significant`) */
  PAWL_REDUCE_MEAN = 1, /* gradients: a plain average. Not sent means zero (`significant`) */
};

/* What is sent instead of 32-bit or 64-bit values. The receiver computes in the type of the tensor. */
enum pawl_reduce_narrow {
  PAWL_REDUCE_FULL = 0, /* the values as they are */
  PAWL_REDUCE_F16 = 1,  /* IEEE binary16; a value beyond 65504 is PAWL_OVERFLOW */
  PAWL_REDUCE_BF16 = 2, /* bfloat16 */
  PAWL_REDUCE_INT8 = 3, /* 8 bits and a scale for each 256 values */
};

struct pawl_reduce_options {
  size_t struct_size; /* set by pawl_reduce_options_init */
  enum pawl_reduce_mode mode;
  enum pawl_reduce_what what;

  /* "default", the name of a topology as `pawl graph list` prints it, or the path of a file as `pawl graph check`
   * reads it, which contains a slash or a dot. NULL: default. */
  const char *graph;
  uint64_t seed;   /* of random graphs; default 1 */
  uint32_t degree; /* of random graphs and racks; 0: their default */

  enum pawl_reduce_narrow narrow;

  /* Only values are sent that have changed by more than this since they were last sent (MIX), or that, with the
   * part that was not sent earlier, are larger than this in magnitude (MEAN). 0, the default: all values are
   * sent. NOTIFY_ACK mode only. */
  double significant;

  /* Tensors that are not reduced but belong to the state of a member: with MEAN the model itself, the momentum
   * of an optimiser, counters. A member that is behind takes them over together with the reduced tensors, and
   * checkpoints contain them. Copied; the values are borrowed like those of the tensors. */
  const struct pawl_tensor *carried;
  size_t carried_count;

  /* The file to which every `checkpoint_period`-th iteration is saved, as pawl_reduce_save does; a file of this
   * member alone. NULL or a period of 0: none. */
  const char *checkpoint;
  uint64_t checkpoint_period;

  uint64_t first; /* iterations that are already done; default 0. pawl_reduce_load sets it, too */
};

/* Sets struct_size and the defaults. */
PAWL_API void pawl_reduce_options_init_sized(struct pawl_reduce_options *options, size_t struct_size);
static inline void pawl_reduce_options_init(struct pawl_reduce_options *options) {
  pawl_reduce_options_init_sized(options, sizeof *options);
}

/* One step. */
struct pawl_reduce_report {
  uint64_t iteration;    /* completed iterations, this one included: 1 after the first step */
  uint64_t number;       /* of the group, in whose graph the step was made */
  uint32_t rank;         /* of this member at that number */
  uint32_t size;         /* members that took part */
  uint32_t expected;     /* in-neighbours */
  uint32_t used;         /* inputs that were combined */
  uint32_t current;      /* of these: complete, and of this iteration. NOTIFY_ACK: always `expected` */
  bool is_regenerated;   /* the graph was made, or made again, in this step */
  bool is_adopted;       /* this member was behind: the own tensors were replaced before the step */
  uint64_t bytes_sent;   /* values for neighbours, with their headers, without models for new members */
  int64_t waited_ack_ns; /* time in which the step waited for acknowledgements of earlier sends */
  int64_t waited_ns;     /* time in which it waited for inputs, or at the barrier */
  int64_t agreed_ns;     /* time in which it waited for agreement with all members */
};

/* What this member knows at present. */
struct pawl_reduce_state {
  uint64_t iteration;                    /* completed iterations */
  uint64_t number;                       /* of the group, for which the present graph was made; 0: there is none yet */
  uint32_t rank;                         /* at that number */
  uint32_t size;                         /* members that take part */
  uint32_t inputs;                       /* in-neighbours */
  uint32_t outputs;                      /* out-neighbours */
  char graph[PAWL_REDUCE_GRAPH_MAX + 1]; /* the graph in use, such as "root"; "": there is none yet */
  uint64_t bytes_sent;                   /* since open */
  uint64_t regenerated;                  /* times that a graph was made */
};

/* Opens a reduce of a peer group. All members use the same name (letters, digits, '.', '_' and '-'), tensors and
 * options, except for the values, `carried` pointers, `checkpoint` and `first`. Waits until the group is complete
 * (pawl_peers_await), but not until the other members have opened the reduce. `options` may be NULL.
 *
 * PAWL_INVALID      an argument is malformed; the graph is not strongly connected, or there is none of that many
 *                   nodes
 * PAWL_MISMATCH     the file of the graph has another number of nodes than the group has founding members, of which
 *                   there are several
 * PAWL_UNSUPPORTED  `significant` in another mode than NOTIFY_ACK, or a type other than F32 and F64
 * PAWL_EXISTS       this session has a reduce of that name open in the group
 * PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO, PAWL_CORRUPT   the file of the graph
 * PAWL_TIMED_OUT    the group is not complete
 * PAWL_TOO_LARGE, PAWL_NO_MEMORY, PAWL_NODE_LIMIT */
PAWL_API PAWL_MUST_USE pawl_status pawl_reduce_open(struct pawl_peers *peers, const char *name,
                                                    const struct pawl_tensor *tensors, size_t count,
                                                    const struct pawl_reduce_options *options, int64_t timeout_ns,
                                                    struct pawl_reduce **reduce_out);

/* Checks, without a session, the graph that `graph`, `seed` and `degree` of the options name. At some number of members
 * from `least` to `most` a file must be usable; if the two are the same, so must a topology. pawl_error_text explains.
 *
 * PAWL_MISMATCH     the file has another number of nodes
 * PAWL_INVALID      there is no such topology, or none of that many nodes; the graph is not strongly connected; `least`
 *                   is 0 or above `most`
 * PAWL_TOO_LARGE    the name has more than PAWL_REDUCE_GRAPH_MAX characters
 * PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_IO, PAWL_CORRUPT, PAWL_NO_MEMORY   the file */
PAWL_API PAWL_MUST_USE pawl_status pawl_reduce_graph_check(const char *graph, uint64_t seed, uint32_t degree,
                                                           uint32_t least, uint32_t most);

/* Sends the tensors to all out-neighbours, waits as the mode says, and combines the inputs into the tensors.
 * `report_out` may be NULL.
 *
 * PAWL_TIMED_OUT    the step is not over, and the tensors are as they were. Call again without changing the
 *                   tensors to go on waiting, or close the reduce
 * PAWL_DIVERGED     a tensor contains NaN or an infinity. Nothing was sent; the tensors are as they were. The
 *                   neighbours wait until this member calls with finite values, closes, or leaves
 * PAWL_OVERFLOW     a value does not fit the narrow type. As PAWL_DIVERGED
 * PAWL_IO, PAWL_NO_SPACE, …  the checkpoint could not be written. The step itself is complete
 *
 * After any other status the reduce has failed for good, and every further step returns the same; close it:
 *
 * PAWL_MISMATCH     another member has other tensors or options; pawl_error_text names it. Before the first step
 *                   both members fail; later only the one that has joined does
 * PAWL_CORRUPT      an input contains NaN or an infinity or is malformed; pawl_error_text names the member. The
 *                   tensors are as they were
 * PAWL_NODE_GONE    this session was declared dead and does not join again (`stays_dead`), or has left the group
 * PAWL_LINK_REVOKED, PAWL_NODE_STOPPED, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_reduce_step(struct pawl_reduce *reduce, int64_t timeout_ns,
                                                    struct pawl_reduce_report *report_out);

/* Never fails, sends nothing and does not wait. */
PAWL_API void pawl_reduce_state(const struct pawl_reduce *reduce, struct pawl_reduce_state *state_out);

/* Delivers what neighbours still need of the last step, for at most two seconds, and frees the reduce. The
 * tensors belong to the caller again. Call it before pawl_peers_leave. NULL is allowed. */
PAWL_API void pawl_reduce_close(struct pawl_reduce *reduce);

/* --- checkpoints ---------------------------------------------------------------------------------------- */

/* Saves tensors, carried tensors and the iteration to a file, by a temporary file beside it that is synced and
 * renamed. A file of that name that is not a checkpoint of a reduce is never replaced. Call it between steps.
 *   PAWL_EXISTS   the file is not a checkpoint
 *   PAWL_IO, PAWL_NO_SPACE, PAWL_FORBIDDEN, PAWL_NOT_FOUND (no such folder), PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_reduce_save(struct pawl_reduce *reduce, const char *path);

/* Loads a checkpoint into the tensors, before the first step. To resume a job, all members load their files and
 * go on: they agree on the highest iteration, and members whose file is older, or that have none, take over the
 * tensors of a member that has it. On an error the tensors are as they were. `iteration_out` may be NULL.
 *   PAWL_NOT_FOUND  there is no such file
 *   PAWL_MISMATCH   the checkpoint has other tensors
 *   PAWL_CORRUPT, PAWL_TRUNCATED, PAWL_UNSUPPORTED (a later version of the format)
 *   PAWL_INVALID    a step was made already
 *   PAWL_IO, PAWL_FORBIDDEN, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_reduce_load(struct pawl_reduce *reduce, const char *path,
                                                    uint64_t *iteration_out);

#ifdef __cplusplus
}
#endif

#endif
