/* Shared by the files of the explorer.
 *
 *   scene.c    the cluster and its set-up; what the clients do
 *   choice.c   what may happen next, and making it happen
 *   state.c    when two states are the same
 *   check.c    what must hold
 *   search.c   all orders
 *   explore.c  replaying one order; names and texts
 */
#ifndef PWI_SIM_EXPLORE_INSIDE_H
#define PWI_SIM_EXPLORE_INSIDE_H

#include "sim/cluster.h"
#include "sim/explore/explore.h"

#define MS PWI_SIM_MILLISECOND
#define NODES_MAX 8
#define KEY UINT64_C(3) /* all pushes are to this key */
#define EPOCHS_MAX 128
#define CHOICES_MAX 64                 /* at a state; a set of them is a u64 */
#define LIMIT_NS (30 * PWI_SIM_SECOND) /* of virtual time, for all calls */

struct scene;

/* --- clients -------------------------------------------------------------------------------------------- */

/* A push of 10^digit to one key: the digits of the sum tell how often each push counted. */
struct push {
  struct pwi_task task;
  struct worker *worker;
  int64_t value;
  bool is_begun, is_over;
};

struct worker {
  struct scene *scene;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_flow *flow, *group;
  struct pwi_asking asking;
  struct pwi_task enter, tick, await, pull;
  bool has_entered, has_begun, has_ticked, has_passed, has_read; /* in the scenario `barrier` */
  int64_t seen;
};

/* --- the past ------------------------------------------------------------------------------------------- */

/* The events so far. They determine the state of every node. */
struct past {
  uint64_t hashes[NODES_MAX]; /* of the events at each node */
  uint64_t seen[NODES_MAX];   /* their number */
  int64_t time;               /* virtual; it passes only by choices */
  uint32_t crashes_left, resets_left, early_left;
};

/* --- the scene ------------------------------------------------------------------------------------------ */

struct scene {
  const struct pwi_explore_config *config;
  struct pwi_cluster cluster;
  struct worker workers[PWI_EXPLORE_CLIENTS];
  struct push pushes[PWI_EXPLORE_CLIENTS + PWI_EXPLORE_PUSHES]; /* the first of each client belong to the set-up */
  uint32_t push_count;
  int64_t began_at;
  uint64_t position; /* the arc that changes has this position */
  uint64_t target;   /* the node that becomes its head, or its new member */
  size_t copies;     /* of each arc at the beginning */

  struct past past;
  uint64_t held[CHOICES_MAX]; /* events that others have overtaken, in the order of their numbers */
  size_t held_count;

  uint64_t views[EPOCHS_MAX]; /* hashes, by epoch; 0: not seen yet */
};

#define SCENE_FAIL(scene, ...) pwi_sim_fail((scene)->cluster.sim, PAWL_CORRUPT, __VA_ARGS__)

/* scene.c: sets the cluster up, up to the moment from which orders are explored. Call pwi_scene_close in any
 * case. Errors of the cluster; PAWL_TIMED_OUT. */
PAWL_MUST_USE pawl_status pwi_scene_open(struct scene *scene, const struct pwi_explore_config *config);
void pwi_scene_close(struct scene *scene);
bool pwi_scene_may_call(const struct scene *scene, const struct worker *worker);
void pwi_scene_call(struct worker *worker);
bool pwi_scene_is_over(const struct scene *scene);    /* all calls have been made and have ended */
bool pwi_scene_is_through(const struct scene *scene); /* every node knows the change; or a server was killed */
/* Reads the sum, in the order of time. */
PAWL_MUST_USE pawl_status pwi_scene_read(struct scene *scene, int64_t *sum_out);

/* --- choices -------------------------------------------------------------------------------------------- */

enum choice_kind { CHOICE_EVENT, CHOICE_CALL, CHOICE_TIME, CHOICE_CRASH, CHOICE_RESET };

struct choice {
  enum choice_kind kind;
  uint32_t node, from;    /* indices in the simulation; `from` may be UINT32_MAX; RESET: the two */
  uint32_t which;         /* CALL: the worker; CRASH: the victim; TIME: 1 if it is early */
  struct pwi_sim_due due; /* EVENT, TIME */
};

/* choice.c: lists what may happen next. An empty list is the end of the run. */
size_t pwi_scene_choices(const struct scene *scene, struct choice choices[CHOICES_MAX]);
PAWL_MUST_USE pawl_status pwi_scene_choose(struct scene *scene, const struct choice *choices, size_t count,
                                           size_t which);
void pwi_scene_describe(const struct scene *scene, const struct choice *choice, char *text, size_t size);

/* state.c: adds a choice to the past, without making it; two pasts with equal hashes lead to the same state. */
void pwi_past_add(struct past *past, const struct choice *choice);
uint64_t pwi_past_hash(const struct past *past);
/* A hash of all that can be seen of the state now. Needs config.merge. */
uint64_t pwi_scene_effects(const struct scene *scene);

/* check.c: the state now; and once nothing is left to choose. Failures are those of the simulation. */
void pwi_scene_check(struct scene *scene);
void pwi_scene_check_end(struct scene *scene);
size_t pwi_scene_copies(const struct scene *scene); /* the lowest number of copies of any arc */
bool pwi_scene_is_whole(void *scene);

#endif
