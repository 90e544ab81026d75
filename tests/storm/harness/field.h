/* A storm: a cluster and workers as processes of this machine, faults that are done to them, and the
 * verdict at the end. Used by `pawl-bench failover` and tests/storm.
 *
 * Members are the manager, servers and workers, numbered in the order of their start. Each is a child
 * process that ends with this one; no other process is ever signalled. Their output goes to files in the
 * folder of the storm, beside the journals.
 *
 * Threads: one. Functions that return false set pwi_storm_problem.
 */
#ifndef TESTS_STORM_HARNESS_FIELD_H
#define TESTS_STORM_HARNESS_FIELD_H

#include <limits.h>
#include <sys/types.h>

#include <pawl/session.h>

#include "check.h"

#define PWI_STORM_MEMBERS_MAX 1024
#define PWI_STORM_NO_REPLICAS (-1) /* the manager gets no --replicas */

enum pwi_storm_role { PWI_STORM_MANAGER, PWI_STORM_SERVER, PWI_STORM_WORKER };

struct pwi_storm_config {
  const char *folder;       /* NULL: a new one below TMPDIR, which is removed with the storm */
  uint32_t servers;         /* that the manager waits for at first */
  uint32_t shards;          /* per server; 0: 1 */
  int replicas;             /* or PWI_STORM_NO_REPLICAS */
  const char *data;         /* the manager's --data; NULL: none */
  const char *client_grace; /* the manager's --client-grace; NULL: its default */
  bool is_tcp;              /* no shared memory */
  bool has_cells;           /* a network namespace for each server (tests/storm/harness/cells.h) */
  bool is_apart;            /* with cells: managers and workers have cells of their own, too */
  /* The managers' --meta; there may be several managers then. NULL: none. May be written, like `data`, until
   * the first manager is started */
  const char *meta;
  const char *patience; /* how long a worker waits for one push, in seconds; NULL: its default */
  uint32_t rate;        /* calls of a worker per second, at most; 0: as many as it can */
};

/* Settings of a single member. May be all zeros. */
struct pwi_storm_extra {
  const char *command;            /* path of another pawl command; NULL: ours */
  const char *const *environment; /* NAME=value, ends with NULL */
  const char *memory;             /* --memory of a server */
  const char *plant;              /* --plant of a worker */
  bool has_cell;                  /* a worker in a cell of its own, if servers have cells */
};

struct pwi_storm;

/* Opens a storm without members. False: `problem` says why, and `*is_unable_out` whether this machine does
 * not permit cells. */
bool pwi_storm_open(const struct pwi_storm_config *config, struct pwi_storm **storm_out, char *problem, size_t size,
                    bool *is_unable_out);

/* Ends all members. Removes the folder if the storm created it and need not keep it. */
void pwi_storm_close(struct pwi_storm *storm);

const char *pwi_storm_problem(const struct pwi_storm *storm);
const char *pwi_storm_folder(const struct pwi_storm *storm);

/* Keeps the folder in any case. */
void pwi_storm_keep(struct pwi_storm *storm);

/* --- members -------------------------------------------------------------------------------------------- */

/* Starts a member without waiting; the manager must be the first. A manager that is started again gets the
 * address of the first, unless config.meta is set: then it is a further manager. */
bool pwi_storm_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra,
                   size_t *member_out);

/* Starts a manager or a server that was killed again, without waiting: a manager at its address, a server
 * at another port; both in their cell. */
bool pwi_storm_revive(struct pwi_storm *storm, size_t member);

/* Waits until all live members are ready. */
bool pwi_storm_settle(struct pwi_storm *storm, int64_t timeout_ns);

size_t pwi_storm_count(const struct pwi_storm *storm); /* of all members so far */
bool pwi_storm_is_alive(const struct pwi_storm *storm, size_t member, enum pwi_storm_role role);
bool pwi_storm_is_worker(const struct pwi_storm *storm, size_t member); /* that has begun, alive or not */
pid_t pwi_storm_pid(const struct pwi_storm *storm, size_t member);
const char *pwi_storm_journal(const struct pwi_storm *storm, size_t member);                      /* of a worker */
const char *pwi_storm_name(const struct pwi_storm *storm, size_t member);                         /* "server1" */
const char *pwi_storm_log(const struct pwi_storm *storm, size_t member, char *path, size_t size); /* its output */

/* Sends SIGKILL and waits for the end. */
void pwi_storm_kill(struct pwi_storm *storm, size_t member);
void pwi_storm_pause(struct pwi_storm *storm, size_t member, bool is_paused);

/* With cells: see tests/storm/harness/cells.h. `other` may be the manager, which is at home, like workers
 * without a cell. */
bool pwi_storm_cut(struct pwi_storm *storm, size_t member, bool is_cut);
bool pwi_storm_lose(struct pwi_storm *storm, size_t member, size_t other, bool is_lost);

/* With cells: the cells, for processes that are no members; and the cell of a member. */
struct pwi_storm_cells *pwi_storm_cells(struct pwi_storm *storm);
uint32_t pwi_storm_cell(const struct pwi_storm *storm, size_t member);

/* --- the cluster ---------------------------------------------------------------------------------------- */

/* A session of our own, opened at the first call; NULL on failure. */
struct pawl_session *pwi_storm_session(struct pwi_storm *storm);

/* Options for another session. Valid as long as the storm. */
void pwi_storm_session_options(const struct pwi_storm *storm, struct pawl_session_options *options_out);

/* Waits until the manager reports that every arc has all its members, and exactly the live servers are up. */
bool pwi_storm_await_whole(struct pwi_storm *storm, int64_t timeout_ns);

/* The same; and that every server is connected, and nothing moves or is about to. The manager that reports
 * it must be of this term or a later one: a manager that was replaced may not know it yet. */
bool pwi_storm_await_still(struct pwi_storm *storm, uint64_t term, int64_t timeout_ns);

/* The servers that form the chain of the first arc, its head first; at most `room`, full members only. */
bool pwi_storm_first_chain(struct pwi_storm *storm, size_t *members_out, size_t room, size_t *count_out);

/* --- the end -------------------------------------------------------------------------------------------- */

/* Workers begin no more pushes, finish the others, and leave. False if one does not, or has failed. */
bool pwi_storm_calm(struct pwi_storm *storm, int64_t timeout_ns);

/* Verifies the journals of all workers, dead ones included. */
bool pwi_storm_judge(struct pwi_storm *storm, int64_t patience_ns, struct pwi_storm_verdict *verdict_out);

/* Tells all members to end. False if one does not, or ends otherwise than it should. */
bool pwi_storm_leave(struct pwi_storm *storm, int64_t timeout_ns);

/* The longest time between two ends of pushes of the worker, among those that touch [from, to]. Times are
 * of CLOCK_MONOTONIC. */
int64_t pwi_storm_gap(const struct pwi_storm_journal *journal, int64_t from, int64_t to);

#endif
