/* Fault schedules: which faults happen where and when, drawn from a seed before the run begins.
 *
 * A schedule is a list, ordered by time, that people can read, one fault per line:
 *
 *   at=1.234567s kill node=s2
 *   at=1.240113s cut from=w1 to=s1 for=0.310s
 *
 * All faults heal by themselves before the end of the window: a killed node is restarted, pauses and cuts
 * end, disks recover. After that the world is quiet, and a test can demand that the cluster settles. A path
 * that several faults cut stays cut until the last of them has healed.
 */
#ifndef PWI_SIM_FAULTS_H
#define PWI_SIM_FAULTS_H

#include "sim/sim.h"

/* X(name, text): kinds of faults. `for` is the duration. */
#define PWI_SIM_FAULT_MAP(X)                                                                                           \
  X(KILL, "kill")           /* node, for */                                                                            \
  X(PAUSE, "pause")         /* node, for */                                                                            \
  X(SLOW, "slow")           /* node, for, amount: the factor */                                                        \
  X(CUT, "cut")             /* from, to, for: one way */                                                               \
  X(PART, "part")           /* two nodes, for: both ways */                                                            \
  X(ISOLATE, "isolate")     /* node, for: from all others, both ways */                                                \
  X(BREAK, "break")         /* two nodes */                                                                            \
  X(MUTE, "mute")           /* two nodes */                                                                            \
  X(STARVE, "starve")       /* node, for: no memory for links and regions */                                           \
  X(DISK_IO, "disk_io")     /* node, for, amount: the chance that a call fails */                                      \
  X(DISK_FULL, "disk_full") /* node, for */                                                                            \
  X(DISK_SLOW, "disk_slow") /* node, for, amount: milliseconds per call */

enum pwi_sim_fault_kind {
#define PWI_SIM_FAULT_ENUM(name, text) PWI_SIM_FAULT_##name,
  PWI_SIM_FAULT_MAP(PWI_SIM_FAULT_ENUM)
#undef PWI_SIM_FAULT_ENUM
      PWI_SIM_FAULT_KINDS
};

struct pwi_sim_fault {
  int64_t at, duration; /* 0: no duration */
  enum pwi_sim_fault_kind kind;
  struct pwi_sim_node node, other; /* `other`: PWI_SIM_ALL if the kind concerns one node */
  double amount;
  struct pwi_sim *sim; /* set by pwi_sim_faults_schedule */
};

struct pwi_sim_faults_config {
  int64_t begin, end;                       /* the window */
  int64_t gap_mean_ns;                      /* mean time between two faults */
  int64_t duration_min_ns, duration_max_ns; /* of most kinds */
  int64_t pause_max_ns;                     /* of pauses, which may exceed the silence limit */
  double weights[PWI_SIM_FAULT_KINDS];      /* relative frequency of each kind; 0: never */
  /* nodes that may suffer faults; NULL: all; only used while drawing */
  const struct pwi_sim_node *nodes;
  size_t node_count;
  size_t down_max; /* most nodes that are down at the same time */
  uint64_t number; /* selects another schedule of the same seed */
};

/* Seconds 1 to 9, one fault every 200 ms, all kinds equally likely except starvation and disk faults, which are off; at
 * most one node down at a time. */
void pwi_sim_faults_config_init(struct pwi_sim_faults_config *config);

/* A list. Free it with pwi_sim_faults_fini, after the simulation that it was scheduled in. */
struct pwi_sim_faults {
  struct pwi_sim_fault *items;
  size_t count;
};

/* Draws a schedule for the nodes added so far. PAWL_INVALID (an empty window, no nodes), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sim_faults_draw(const struct pwi_sim *sim, const struct pwi_sim_faults_config *config,
                                              struct pwi_sim_faults *faults_out);
void pwi_sim_faults_fini(struct pwi_sim_faults *faults);

/* Schedules the faults; the list may also be made by hand. PAWL_NO_MEMORY: some of them may be scheduled. */
PAWL_MUST_USE pawl_status pwi_sim_faults_schedule(struct pwi_sim *sim, struct pwi_sim_faults *faults);

#define PWI_SIM_FAULT_TEXT_MAX 160

/* Formats one line without its line break, truncated to `size`. */
void pwi_sim_fault_print(const struct pwi_sim *sim, const struct pwi_sim_fault *fault, char *text, size_t size);

#endif
