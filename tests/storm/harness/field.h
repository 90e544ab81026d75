/* A storm: a cluster and workers as processes of this machine, faults done to them, and the verdict at the end. What `pawl bench
 * failover` and tests/storm are written with.
 *
 * Members are the manager, servers and workers, numbered as they come. Each is a child process that ends with this one; only
 * they are ever signalled. What they say goes to a file in the folder of the storm, where the journals are too.
 *
 * Threads: one. Functions that return bool have left the reason in pwi_storm_problem when they return false.
 */
#ifndef TESTS_STORM_HARNESS_FIELD_H
#define TESTS_STORM_HARNESS_FIELD_H

#include <limits.h>
#include <sys/types.h>

#include <pawl/session.h>

#include "check.h"

#define PWI_STORM_MEMBERS_MAX 1024
#define PWI_STORM_NO_REPLICAS (-1) /* the manager is not told of replicas */

enum pwi_storm_role { PWI_STORM_MANAGER, PWI_STORM_SERVER, PWI_STORM_WORKER };

struct pwi_storm_config {
  const char *folder;       /* NULL: a new one below TMPDIR, which goes with the storm */
  uint32_t servers;         /* that the manager waits for at first */
  uint32_t shards;          /* of each server; 0: 1 */
  int replicas;             /* or PWI_STORM_NO_REPLICAS */
  const char *data;         /* the manager's --data; NULL: none */
  const char *client_grace; /* the manager's; NULL: its own */
  bool is_tcp;              /* no shared memory */
  bool has_cells;           /* a network namespace for each server (tests/storm/harness/cells.h) */
};

/* What one member has that others have not. Zeros are fine. */
struct pwi_storm_extra {
  const char *command;            /* the path of another pawl than ours; NULL: ours */
  const char *const *environment; /* NAME=value, up to NULL */
  const char *memory;             /* a server's --memory */
  const char *plant;              /* a worker's --plant */
  bool has_cell;                  /* a worker in a cell, where servers have them */
};

struct pwi_storm;

/* Opens the field; there are no members yet. False: `problem` says why, and `*is_unable_out` whether it is that this machine
 * does not permit cells. */
bool pwi_storm_open(const struct pwi_storm_config *config, struct pwi_storm **storm_out, char *problem, size_t size,
                    bool *is_unable_out);

/* Ends all members. The folder goes if the storm has made it and is clean or forgotten about. */
void pwi_storm_close(struct pwi_storm *storm);

const char *pwi_storm_problem(const struct pwi_storm *storm);
const char *pwi_storm_folder(const struct pwi_storm *storm);

/* Keep the folder, whoever made it. */
void pwi_storm_keep(struct pwi_storm *storm);

/* --- members ---------------------------------------------------------------------------------------------------------- */

/* Starts one; the manager first. A manager that is started again comes to the address of the first. Does not wait. */
bool pwi_storm_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra,
                   size_t *member_out);

/* Waits until all members that live are ready. */
bool pwi_storm_settle(struct pwi_storm *storm, int64_t timeout_ns);

size_t pwi_storm_count(const struct pwi_storm *storm); /* of members so far */
bool pwi_storm_is_alive(const struct pwi_storm *storm, size_t member, enum pwi_storm_role role);
bool pwi_storm_is_worker(const struct pwi_storm *storm, size_t member); /* that has begun, alive or not */
pid_t pwi_storm_pid(const struct pwi_storm *storm, size_t member);
const char *pwi_storm_journal(const struct pwi_storm *storm, size_t member); /* a worker's */

/* kill -9, and it is gone. */
void pwi_storm_kill(struct pwi_storm *storm, size_t member);
void pwi_storm_pause(struct pwi_storm *storm, size_t member, bool is_paused);

/* With cells: see tests/storm/harness/cells.h. `other` may be the manager: it is at home, with the workers that have no cell. */
bool pwi_storm_cut(struct pwi_storm *storm, size_t member, bool is_cut);
bool pwi_storm_lose(struct pwi_storm *storm, size_t member, size_t other, bool is_lost);

/* --- the cluster ------------------------------------------------------------------------------------------------------ */

/* A session of our own, opened when it is first asked for; NULL if it cannot be. */
struct pawl_session *pwi_storm_session(struct pwi_storm *storm);

/* How a session of somebody else opens. Valid as long as the storm. */
void pwi_storm_session_options(const struct pwi_storm *storm, struct pawl_session_options *options_out);

/* Waits until the manager says that every arc has all its members, and exactly the servers that live are up. */
bool pwi_storm_await_whole(struct pwi_storm *storm, int64_t timeout_ns);

/* The servers of ours that form the chain of the first arc, its head first; up to `room` of them, full ones only. */
bool pwi_storm_first_chain(struct pwi_storm *storm, size_t *members_out, size_t room, size_t *count_out);

/* --- the end ---------------------------------------------------------------------------------------------------------- */

/* Workers begin no more, see the rest through, and leave. False if one does not, or has failed. */
bool pwi_storm_calm(struct pwi_storm *storm, int64_t timeout_ns);

/* Judges the journals of all workers there ever were. */
bool pwi_storm_judge(struct pwi_storm *storm, int64_t patience_ns, struct pwi_storm_verdict *verdict_out);

/* The longest time around [from, to] in which the worker was told of no push: from one to the next, of those that the time
 * touches. Times are of CLOCK_MONOTONIC. */
int64_t pwi_storm_gap(const struct pwi_storm_journal *journal, int64_t from, int64_t to);

#endif
