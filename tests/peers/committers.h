/* Members with factors in the simulator: applications that commit pairs, and check every matrix that they get.
 *
 * A process has a row of the matrix, and its commit number n adds 1 to column n of it. So the matrix shows which commits
 * were applied, and how often. The checker knows from what processes have begun, and not from the engine, what may be
 * there:
 *
 *   - every value is 0 or 1, and those of a process are 1 without a gap from where it joined;
 *   - a member with c commits has its own, nothing beyond c, and of every other living member whose commits it waits for
 *     all but the last s (equation 4 of the paper);
 *   - once all have stopped at one clock, all survivors have the same matrix: a commit of a lost member counts at all of
 *     them or at none.
 *
 * In a guild with `parts`, a member has the rows of its part, and only these are checked. When the last member with some
 * rows is gone, the others fail, and the run is over: `has_lost_rows`.
 *
 * In a club with `is_dense`, pairs are dense and a proximal operator runs. Then members in BSP compare hashes: two that
 * are there at the end had the same matrix at every clock that both have completed. A violation fails the simulation.
 */
#ifndef TESTS_PEERS_COMMITTERS_H
#define TESTS_PEERS_COMMITTERS_H

#include "../cluster/cluster.h"
#include "peer/factor/inside.h"

#define COMMITTERS_MAX 8
#define COMMITTERS_GROUP "sim/.committers"
#define MATRIX_ROWS 24 /* processes */
#define MATRIX_COLUMNS 160
#define MATRIX_SIZE ((size_t)MATRIX_ROWS * MATRIX_COLUMNS)

struct guild;

struct committer {
  struct guild *guild;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_asking;
  struct pwi_sender joined_as;
  struct pwi_vector_id group;
  struct pwi_factor *engine;
  uint32_t process; /* its row; differs for each process and each opening */
  bool is_open, is_closed, must_close, is_closing;
  bool is_working, is_woken, is_thinking, is_flushing, is_flushed;
  struct factor_epoch flushed_in; /* the last flush began in it */
  pawl_status status;             /* of the last step */
  uint64_t clock, steps;
  uint64_t agreements, chosen_agreements; /* when it chose what to apply */
  struct factor_batch batch;
  struct pawl_factor_report report;
  uint64_t hashes[MATRIX_COLUMNS]; /* by clock; 0: not completed by this process */
  uint64_t worst;                  /* commits that the matrix lacked, of any origin that is heard */
  float matrix[MATRIX_SIZE];
};

struct guild {
  struct pwi_cluster cluster;
  struct committer committers[COMMITTERS_MAX];
  uint32_t count, founders; /* founders: set by guild_open */
  enum pawl_factor_mode mode;
  uint64_t staleness;
  bool is_dense;
  struct factor_prox prox;
  uint32_t parts; /* member i has part i % parts; 0: all have all */
  bool has_lost_rows;
  bool has_graph, forwards;
  enum pwi_topology topology;
  uint32_t degree;
  size_t other_rows[COMMITTERS_MAX]; /* of one member; 0: as the others */
  size_t pairs;                      /* of a dense commit */
  float initial[COMMITTERS_MAX];     /* the last value of the matrix when a member opens */
  int64_t compute_max, work_max;
  int64_t slow[COMMITTERS_MAX]; /* of one member, instead of compute_max */
  uint64_t stop_at;             /* nobody commits beyond this clock; 0: no end */
  bool is_held[COMMITTERS_MAX]; /* this member does not step */
  bool is_late[COMMITTERS_MAX]; /* it does not open yet */
  bool may_fail;                /* calls may return PAWL_NO_MEMORY: the member then closes */
  bool may_be_corrupt;
  void (*entered)(const struct committer *committer); /* around all that calls the engine; NULL: nothing to do */
  void (*left)(const struct committer *committer);
  uint32_t last_process;
  uint64_t begun[MATRIX_ROWS]; /* the last commit of each process */
  uint64_t bases[MATRIX_ROWS]; /* and the clock at which it joined */
  uint64_t high;               /* the highest clock of any process */
  uint64_t commits, checks, failures;
};

/* Adds the nodes; `guild` has its fields up to `left` set. */
void guild_open(struct guild *guild, const struct pwi_cluster_config *config);
void guild_close(struct guild *guild);

/* The row of the matrix in which a process commits: those of neighbours lie in different parts. */
static inline uint32_t committer_row(uint32_t process) { return process * 13 % MATRIX_ROWS; }

struct pwi_sender committer_id(const struct committer *committer);
void committer_flush(struct committer *committer); /* it stands still; sets is_flushed */

/* For pwi_sim_run_while: a member that is up has not opened its factors, or has not reached guild->stop_at. */
bool guild_is_opening(void *guild);
bool guild_is_running(void *guild);

/* Stops all members at a clock that none has passed, flushes, and compares all survivors. */
pawl_status guild_settle(struct guild *guild, uint64_t more, int64_t limit);

void guild_print(const struct guild *guild);

#endif
