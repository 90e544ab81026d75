/* `pawl-bench kv`, inside: push and pull against a cluster of processes on this machine.
 *
 * Three kinds of process take part. This process leads: it starts the cluster as an embedded session,
 * creates vectors, measures what the machine can do by itself (the limit), and prints. Servers are
 * children of that session. Workers are forked before the session exists; each opens a session of its own,
 * and all execute orders at the same time: together they are the crew. A crew lives for one case, so that
 * cases do not influence one another.
 *
 * All functions here print errors to standard error and then return false.
 */
#ifndef BENCH_COMMAND_KV_H
#define BENCH_COMMAND_KV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/session.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#include "base/histogram.h"
#include "bench.h"
#include "cli/cli.h"
#include "net/net.h"

#define PWI_KV_ROUNDS 5
#define PWI_KV_OUTSTANDING 64               /* of `onekey64`; upper limit for the other cases */
#define PWI_KV_PATIENCE (120 * PAWL_SECOND) /* per operation */

enum pwi_kv_kind {
  PWI_KV_DENSE,   /* a range of a dense vector */
  PWI_KV_CACHED,  /* a prepared list of existing keys */
  PWI_KV_FRESH,   /* a different list of keys each time */
  PWI_KV_RANDOM,  /* into a new vector each time */
  PWI_KV_ONE,     /* one key, one operation at a time */
  PWI_KV_MANY,    /* one key, many operations under way */
  PWI_KV_BALANCE, /* how evenly servers are loaded */
  PWI_KV_MEMORY,  /* memory per sparse key */
  PWI_KV_BESIDE,  /* another case, with and without replicas */
};

enum pwi_kv_op {
  PWI_KV_PUSH,
  PWI_KV_PULL,
  PWI_KV_PUSHPULL,
  /* a push that is aggregated with those of all other workers; only in the case `together` */
  PWI_KV_AGGREGATE,
};

/* A measurement. The existing keys are one of each `span / rows`; a list has one of each `rows / count` of
 * these, so that keys can be computed instead of stored. */
struct pwi_kv_job {
  const char *name;
  enum pwi_kv_kind kind;
  uint64_t count; /* keys per operation */
  uint64_t rows;  /* existing keys */
  uint64_t span;
  bool ordered;         /* PWI_KV_RANDOM: placement */
  uint32_t outstanding; /* concurrent operations per worker; 0: 1. For DENSE, CACHED and FRESH */
  double interval;      /* seconds between the starts of two operations, with several under way; 0: none */
  uint32_t aggregate;   /* number of workers with the same keys; 0: each has its own */
};

struct pwi_kv_options {
  const struct pwi_command *command;
  uint32_t workers, servers, shards; /* 0: not given */
  uint32_t replicas, outstanding;
  bool tcp, quick, json;
  double seconds;      /* per operation */
  const char *cluster; /* NULL: start one */
  uint64_t keys;       /* for the case `memory`; 0: its default */
  const char *cases;   /* names of cases, comma-separated, or "all" */
  const char *op;      /* only this operation; NULL: all of the case */
};

/* --- keys: bench/command/kv_keys.c ---------------------------------------------------------------------- */

/* Existing key number `row`; increases with it. */
uint64_t pwi_kv_key(const struct pwi_kv_job *job, uint64_t row);

/* The row of entry number `index` of list number `list`; increases with `index`. */
uint64_t pwi_kv_row(const struct pwi_kv_job *job, uint64_t list, uint64_t index);

/* Creates the job's vector, with all its existing keys. */
bool pwi_kv_fill(struct pawl_session *session, const struct pwi_kv_options *options, const struct pwi_kv_job *job,
                 const char *name, struct pawl_vector **vector_out);

#define PWI_KV_BATCH ((size_t)1000000) /* keys per push */

/* --- a worker: bench/command/kv_work.c ------------------------------------------------------------------ */

struct pwi_kv_tally {
  double per_second;           /* operations */
  _Atomic uint64_t operations; /* so far; other threads may read it */
  atomic_bool is_enough;       /* set by those threads: end now */
  struct pwi_histogram times;
};

struct pwi_kv_work;

/* Opens the existing vector, and prepares keys and memory. */
pawl_status pwi_kv_work_open(struct pawl_session *session, const struct pwi_kv_job *job, const char *vector,
                             uint32_t worker, struct pwi_kv_work **work_out);

/* Repeats the operation for this time, at least twice. */
pawl_status pwi_kv_work_run(struct pwi_kv_work *work, enum pwi_kv_op op, double seconds,
                            struct pwi_kv_tally *tally_out);
void pwi_kv_work_close(struct pwi_kv_work *work); /* NULL is fine */

/* One-key operations on these keys in turn, with PWI_KV_OUTSTANDING under way. */
pawl_status pwi_kv_pump(struct pawl_vector *vector, enum pwi_kv_op op, const uint64_t *keys, size_t count,
                        double seconds, struct pwi_kv_tally *tally_out);

/* --- the crew: bench/command/kv_crew.c ------------------------------------------------------------------ */

struct pwi_kv_crew;

/* True if keys of the last cluster that was used wait for servers that are down: other cases would fail alike. */
bool pwi_kv_cluster_waits(void);

/* Starts this many workers, which may be 0, and waits until each has joined. */
bool pwi_kv_crew_start(const struct pwi_kv_options *options, uint32_t workers, struct pwi_kv_crew **crew_out);
void pwi_kv_crew_stop(struct pwi_kv_crew *crew); /* NULL is fine */

/* Starts several clusters at once, with this many workers each. */
bool pwi_kv_crew_start_all(const struct pwi_kv_options *const *options, size_t count, uint32_t workers,
                           struct pwi_kv_crew **crews_out);

struct pawl_session *pwi_kv_crew_session(const struct pwi_kv_crew *crew);

/* Totals that the servers of a cluster have reported: bytes pushed, and bytes passed on to replicas. */
struct pwi_kv_totals {
  double bytes_in, bytes_passed;
};
bool pwi_kv_look(const struct pwi_kv_options *options, struct pawl_session *session, struct pwi_kv_totals *totals_out);

/* Every worker prepares the job, or runs it. Tallies are added up. */
bool pwi_kv_crew_open(struct pwi_kv_crew *crew, const struct pwi_kv_job *job, const char *vector);
bool pwi_kv_crew_run(struct pwi_kv_crew *crew, enum pwi_kv_op op, double seconds, struct pwi_kv_tally *tally_out);
bool pwi_kv_crew_close(struct pwi_kv_crew *crew);

/* The same in two parts: runs until it is ended. The number of operations so far may be queried at any
 * time. */
bool pwi_kv_crew_begin(struct pwi_kv_crew *crew, enum pwi_kv_op op);
bool pwi_kv_crew_end(struct pwi_kv_crew *crew, struct pwi_kv_tally *tally_out);
uint64_t pwi_kv_crew_count(const struct pwi_kv_crew *crew);

/* Processor seconds of workers, servers and manager so far, and private memory of the servers in bytes.
 * NaN if the processes of the cluster are not our children. */
double pwi_kv_crew_cpu(const struct pwi_kv_crew *crew);
double pwi_kv_crew_memory(const struct pwi_kv_crew *crew);

/* --- limits of the machine: bench/command/kv_limit.c ---------------------------------------------------- */

struct pwi_kv_limit;

/* NULL if the job has no limit, or memory is short. */
struct pwi_kv_limit *pwi_kv_limit_open(const struct pwi_kv_job *job, bool tcp);

/* Operations per second of this one thread; for PWI_KV_ONE microseconds per round trip. */
double pwi_kv_limit_run(struct pwi_kv_limit *limit, enum pwi_kv_op op, double seconds);
void pwi_kv_limit_close(struct pwi_kv_limit *limit); /* NULL is fine */

/* --- cases and their figures ---------------------------------------------------------------------------- */

/* One line. NaN: unknown. */
struct pwi_kv_figures {
  const char *name, *op;
  const char *what, *which; /* an additional member, such as "placement" and "ordered"; NULL: none */
  const char *part;         /* `balance`: what is balanced; NULL: none */
  uint32_t outstanding;     /* 0: not applicable */
  double value;
  const char *unit;
  double limit, p99_us, cpu_s_per_unit;
  double ratio;                /* of value and limit, if it is not simply their quotient; 0: it is */
  double single, single_ratio; /* `replicas`: the same with one server and no replicas; 0: not measured */
  bool has_replicas;
  double passed_ratio; /* with replicas: bytes passed on to replicas, relative to bytes pushed */
};

void pwi_kv_print(const struct pwi_kv_options *options, const struct pwi_kv_figures *figures);

/* Prints progress to standard error, except in quick runs. */
void pwi_kv_progress(const struct pwi_kv_options *options, const char *format, ...) PAWL_PRINTF(2, 3);

/* Prints the failure of this thread's last call; returns false. */
bool pwi_kv_fail(const struct pwi_kv_options *options, const char *what, pawl_status status);

/* The name of an operation, and the units of one operation. One-key operations are counted in thousands,
 * or timed. */
const char *pwi_kv_op_name(enum pwi_kv_op op);
double pwi_kv_units(const struct pwi_kv_job *job, const char **name_out);

/* The job of the case of that name, adapted to the options; the case must exist. */
void pwi_kv_find_job(const struct pwi_kv_options *options, const char *name, struct pwi_kv_job *job_out);

/* Run a case and print its lines: bench/command/kv_cases.c, bench/command/kv_servers.c,
 * bench/command/kv_replicas.c. */
bool pwi_kv_case_speed(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_balance(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_memory(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_replicas(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_aggregate(const struct pwi_kv_options *options, const struct pwi_kv_job *job);

extern const struct pwi_command pwi_command_bench_kv;

/* A cluster of processes without a key, on loopback (bench/command/kv_plain.c). A struct of zeros is
 * empty. */
#define PWI_KV_PLAIN_MAX 65

struct pwi_child;

struct pwi_kv_plain {
  struct pwi_child *children[PWI_KV_PLAIN_MAX]; /* the manager, then the servers */
  size_t count;
  char address[PWI_NET_ADDRESS_MAX];
};

pawl_status pwi_kv_plain_start(const struct pwi_kv_options *options, struct pwi_kv_plain *plain);
void pwi_kv_plain_stop(struct pwi_kv_plain *plain);

#endif
