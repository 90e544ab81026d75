/* Small scope, every order: the real roles in all orders in which their messages can arrive, with a crash
 * anywhere.
 *
 * A campaign (sim/campaign) draws a few orders of a large cluster. The explorer tries *all* orders of a tiny
 * one: 2 to 3 servers, 1 or 2 clients, a few pushes and one change of the view. The cluster is set up in one
 * fixed order. Then a scenario begins, and from here on the explorer chooses what happens next:
 *
 *   - any message that is first in its lane, any greeting, hang-up or refusal of a link arrives;
 *   - a client makes its next call;
 *   - a server (in the scenario `retire` also the second client) is killed, at most once;
 *   - the links between two nodes are reset, at most once; each of the two notices in its own time;
 *   - time passes, until the first timer is due: if nothing else can happen, and `early` times before that.
 *
 * Delays, pieces and planes are fixed, so the order is all that differs between two runs.
 *
 * STATES. Roles are deterministic: the state of a node is a function of the events that it has seen, in their
 * order, and of their times. The state of the cluster is therefore known by one hash for each node, over its
 * events, and by the kills and resets that are left. What is in flight follows from that. Two orders that
 * differ only in events of different nodes lead to the same state, which is explored once. Orders of events
 * at *one* node are always told apart, even if the role does not care.
 *
 * MERGING. With `merge` a state is known by what can be seen of it: for each node the messages that it has
 * sent and received on every lane, its timers, the contents of its arcs, its counters. So two orders of the
 * same events at one node are one state as soon as they had the same effects. This reduces the states many
 * times. It overlooks an order that changes something in a role that shows only later, in a message or a
 * timer, so it comes in addition to the exact search of smaller scopes.
 *
 * SEARCH. A run is a list of choices, and begins anew from the set-up: the explorer forks a process for each
 * run, which repeats the choices up to a state and goes on from there in the first order until it meets a
 * known state. So a run that trips an assertion or a sanitizer is a finding like any other, and nothing has
 * to be undone. (A run takes 1 ms with its fork; setting a cluster up alone takes 5 ms.) Choices that were
 * left out are queued. The queue is worked off in order: first the runs that differ from the first order in
 * one choice, then those that differ in two, and so on. A run ends when all calls have ended and every node
 * knows the new view; the rest happens in the order of time. A choice that lets an event overtake older ones
 * holds these back until nothing else is left, so that one slow message takes one choice. If the bound ends a
 * search, the simplest orders have been tried.
 *
 * The hash after a choice is known before the choice is made. So no run leads to a state that another run
 * leads to, made or queued.
 *
 * CHECKED, from numbers that the explorer holds itself, at every state: full members of a chain have the same
 * content at the same version; no epoch has two views; no arc has lost more copies than servers were killed;
 * every full member has each acknowledged push in its table, and none twice. Of every call: it ends without
 * an error; nobody passes a barrier before all have come, and whoever passes sees all pushes before it. At
 * the end of every run: all calls end; the chains become whole; each acknowledged push counts once; a push of
 * a killed client counts once or not at all.
 *
 * Threads: as the simulation. The caller's process should have no other threads, because it forks.
 */
#ifndef PWI_SIM_EXPLORE_EXPLORE_H
#define PWI_SIM_EXPLORE_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "protocol/planted.h"

/* X(name, word, servers, replicas, description) */
#define PWI_EXPLORE_SCENARIO_MAP(X)                                                                                    \
  X(HANDOVER, "handover", 2, 1, "the head of an arc hands over to the next member")                                    \
  X(MOVE, "move", 2, 0, "an arc moves to a server that is filled first")                                               \
  X(FILL, "fill", 3, 2, "a server joins and is filled as a new replica")                                               \
  X(RETIRE, "retire", 2, 1, "a client is declared dead, comes back and collects; or it dies")                          \
  X(BARRIER, "barrier", 2, 1, "clients push, tick and await each other while the head hands over")

enum pwi_explore_scenario {
#define PWI_EXPLORE_ENUM(name, word, servers, replicas, text) PWI_EXPLORE_##name,
  PWI_EXPLORE_SCENARIO_MAP(PWI_EXPLORE_ENUM)
#undef PWI_EXPLORE_ENUM
      PWI_EXPLORE_SCENARIOS
};

struct pwi_explore_about {
  const char *word, *text;
  uint32_t servers, replicas; /* the least that the scenario needs without a crash */
};

const struct pwi_explore_about *pwi_explore_about(enum pwi_explore_scenario scenario);
/* The scenario with this word; PWI_EXPLORE_SCENARIOS if there is none. */
enum pwi_explore_scenario pwi_explore_named(const char *word);

#define PWI_EXPLORE_SERVERS 3
#define PWI_EXPLORE_CLIENTS 2
#define PWI_EXPLORE_PUSHES 6
#define PWI_EXPLORE_STEPS 1024 /* most choices of a run */

struct pwi_explore_config {
  enum pwi_explore_scenario scenario;
  uint32_t servers, replicas;
  uint32_t clients;    /* 1 or 2; `barrier` needs 2 */
  uint32_t pushes;     /* of all clients together; a barrier has one for each */
  uint32_t crashes;    /* 0 or 1 */
  uint32_t resets;     /* 0 or 1 */
  uint32_t early;      /* timers that may fire while messages are in flight */
  bool merge;          /* compare states by their effects, see MERGING */
  uint64_t states_max; /* the search ends when so many states are known */
  enum pwi_planted bug;
  void (*progress)(void *context, uint64_t states, uint64_t runs); /* now and then; may be NULL */
  void *context;
};

/* A scenario of its least size for so many crashes, with 2 clients, 3 pushes and 200,000
 * states. */
void pwi_explore_config_init(struct pwi_explore_config *config, enum pwi_explore_scenario scenario, uint32_t crashes);

struct pwi_explore_result {
  uint64_t states;   /* different states */
  uint64_t runs;     /* processes */
  uint64_t ends;     /* runs that came to an end, and not to a known state */
  uint64_t crashes;  /* of these: with a kill */
  uint64_t choices;  /* events and other choices that were carried out, repeated ones included */
  uint64_t depth;    /* choices of the longest run */
  uint64_t levels;   /* all runs with so many choices beyond the first order are done */
  bool is_exhausted; /* there is no other state */
  bool has_failed;
  double seconds;
  char failure[256];
  uint8_t path[PWI_EXPLORE_STEPS]; /* the choices of the run that failed */
  uint32_t path_size;
};

/* Explores until everything is explored, the bound is reached, or a run fails. PAWL_INVALID (a scope that the
 * scenario does not fit in), PAWL_NO_MEMORY, PAWL_IO (no process could be made). */
PAWL_MUST_USE pawl_status pwi_explore(const struct pwi_explore_config *config, struct pwi_explore_result *result_out);

/* Runs one list of choices in this process, then on in the first order, and shows every choice in a line of
 * text. Only states, choices, depth, failure and path of the result are set. PAWL_INVALID also for a choice
 * that does not exist. */
PAWL_MUST_USE pawl_status pwi_explore_replay(const struct pwi_explore_config *config, const uint8_t *path,
                                             uint32_t size, void (*show)(void *context, const char *line),
                                             void *context, struct pwi_explore_result *result_out);

/* "0,2,1", and back. Zeros at the end are left out but for the first choice, as a replay adds them. The text
 * is truncated at `size`. pwi_explore_path_read returns false for anything else. */
void pwi_explore_path_text(const uint8_t *path, uint32_t count, char *text, size_t size);
bool pwi_explore_path_read(const char *text, uint8_t path_out[PWI_EXPLORE_STEPS], uint32_t *size_out);

#endif
