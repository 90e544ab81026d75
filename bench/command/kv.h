/* `pawl-bench kv`, inside: push and pull against a cluster of processes on this machine.
 *
 * Three kinds of process take part. This one leads: it starts the cluster as an embedded session, makes vectors, measures
 * what the machine can do by itself (the limit), and prints. Servers are children of that session. Workers are forked
 * before it exists, each opens a session of its own, and they do what they are told all at once: together they are the
 * crew. A crew lives for one case, so that no case finds what another has left.
 *
 * Everything here prints what went wrong to standard error and then returns false.
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
#include "cli/cli.h"
#include "net/net.h"

#define PWI_KV_ROUNDS 5
#define PWI_KV_OUTSTANDING 64               /* of `onekey64`, and the most there may be of others */
#define PWI_KV_PATIENCE (120 * PAWL_SECOND) /* for one operation */

enum pwi_kv_kind {
  PWI_KV_DENSE,   /* a range of a dense vector */
  PWI_KV_CACHED,  /* a prepared list of keys that are there */
  PWI_KV_FRESH,   /* another list of keys each time */
  PWI_KV_RANDOM,  /* into a new vector each time */
  PWI_KV_ONE,     /* one key, one after another */
  PWI_KV_MANY,    /* one key, many under way */
  PWI_KV_BALANCE, /* how evenly servers are used */
  PWI_KV_MEMORY,  /* what a sparse key costs them */
  PWI_KV_BESIDE,  /* others, with replicas and without */
};

enum pwi_kv_op {
  PWI_KV_PUSH,
  PWI_KV_PULL,
  PWI_KV_PUSHPULL,
  PWI_KV_AGGREGATE, /* a push that is added up with those of all other workers; only of the case `together` */
};

/* What is measured. Keys that are there are one of each `span / rows`; a list has one of each `rows / count` of those, so
 * that all of it is known without being kept. */
struct pwi_kv_job {
  const char *name;
  enum pwi_kv_kind kind;
  uint64_t count; /* keys of one operation */
  uint64_t rows;  /* keys that are there */
  uint64_t span;
  bool ordered;         /* PWI_KV_RANDOM: placement */
  uint32_t outstanding; /* operations of one worker under way at a time; 0: 1. DENSE, CACHED and FRESH */
  double interval;      /* seconds between the begins of two, of those several at a time; 0: none */
  uint32_t aggregate;   /* how many workers there are that have the same keys; 0: each has its own */
};

struct pwi_kv_options {
  const struct pwi_command *command;
  uint32_t workers, servers, shards; /* 0: not given */
  uint32_t replicas, outstanding;
  bool tcp, quick, json;
  double seconds;      /* of each operation's measurement */
  const char *cluster; /* NULL: start one */
  uint64_t keys;       /* of the case `memory`; 0: its own */
  const char *op;      /* only this one; NULL: all that the case has */
};

/* --- keys: bench/command/kv_keys.c -------------------------------------------------------------------------------------------- */

/* Key number `row` of those that are there. Rises with it. */
uint64_t pwi_kv_key(const struct pwi_kv_job *job, uint64_t row);

/* The row of entry number `index` of list number `list`. Rises with it. */
uint64_t pwi_kv_row(const struct pwi_kv_job *job, uint64_t list, uint64_t index);

/* Creates the job's vector, with all keys that are to be there. */
bool pwi_kv_fill(struct pawl_session *session, const struct pwi_kv_options *options, const struct pwi_kv_job *job,
                 const char *name, struct pawl_vector **vector_out);

#define PWI_KV_BATCH ((size_t)1000000) /* keys that are pushed at a time */

/* --- what a worker does: bench/command/kv_work.c -------------------------------------------------------------------------------- */

struct pwi_kv_tally {
  double per_second;           /* operations */
  _Atomic uint64_t operations; /* so far: others may look on */
  atomic_bool is_enough;       /* by those who do: end now */
  struct pwi_histogram times;
};

struct pwi_kv_work;

/* Opens the vector, which is there, and gets keys and memory ready. */
pawl_status pwi_kv_work_open(struct pawl_session *session, const struct pwi_kv_job *job, const char *vector,
                             uint32_t worker, struct pwi_kv_work **work_out);

/* The same operation again and again, for so long; at least twice. */
pawl_status pwi_kv_work_run(struct pwi_kv_work *work, enum pwi_kv_op op, double seconds,
                            struct pwi_kv_tally *tally_out);
void pwi_kv_work_close(struct pwi_kv_work *work); /* NULL is fine */

/* One-key operations with PWI_KV_OUTSTANDING of them under way, of these keys in turn. */
pawl_status pwi_kv_pump(struct pawl_vector *vector, enum pwi_kv_op op, const uint64_t *keys, size_t count,
                        double seconds, struct pwi_kv_tally *tally_out);

/* --- the crew: bench/command/kv_crew.c ------------------------------------------------------------------------------------------ */

struct pwi_kv_crew;

/* Whether the last cluster that was used has keys that wait for servers which are down: other cases would say the same. */
bool pwi_kv_cluster_waits(void);

/* With so many workers, each of them joined; there may be none. */
bool pwi_kv_crew_start(const struct pwi_kv_options *options, uint32_t workers, struct pwi_kv_crew **crew_out);
void pwi_kv_crew_stop(struct pwi_kv_crew *crew); /* NULL is fine */

/* Several clusters beside one another, with as many workers each. */
bool pwi_kv_crew_start_all(const struct pwi_kv_options *const *options, size_t count, uint32_t workers,
                           struct pwi_kv_crew **crews_out);

struct pawl_session *pwi_kv_crew_session(const struct pwi_kv_crew *crew);

/* What the servers of a session's cluster have told of themselves: bytes that were pushed, and passed on to replicas. */
struct pwi_kv_totals {
  double bytes_in, bytes_passed;
};
bool pwi_kv_look(const struct pwi_kv_options *options, struct pawl_session *session, struct pwi_kv_totals *totals_out);

/* Every worker gets ready for the job, or runs it. Tallies are added up. */
bool pwi_kv_crew_open(struct pwi_kv_crew *crew, const struct pwi_kv_job *job, const char *vector);
bool pwi_kv_crew_run(struct pwi_kv_crew *crew, enum pwi_kv_op op, double seconds, struct pwi_kv_tally *tally_out);
bool pwi_kv_crew_close(struct pwi_kv_crew *crew);

/* The same in two parts, to do something else meanwhile: it goes on until it is ended. How many operations there were since
 * it began may be asked at any time. */
bool pwi_kv_crew_begin(struct pwi_kv_crew *crew, enum pwi_kv_op op);
bool pwi_kv_crew_end(struct pwi_kv_crew *crew, struct pwi_kv_tally *tally_out);
uint64_t pwi_kv_crew_count(const struct pwi_kv_crew *crew);

/* Processor seconds of workers, servers and manager so far, and private memory of the servers in bytes. NaN if the
 * cluster's processes are not our children. */
double pwi_kv_crew_cpu(const struct pwi_kv_crew *crew);
double pwi_kv_crew_memory(const struct pwi_kv_crew *crew);

/* --- what the machine can do: bench/command/kv_limit.c -------------------------------------------------------------------------- */

struct pwi_kv_limit;

/* NULL for jobs that have none, or without memory. */
struct pwi_kv_limit *pwi_kv_limit_open(const struct pwi_kv_job *job, bool tcp);

/* Operations a second of this one thread, or for PWI_KV_ONE microseconds of a round trip. */
double pwi_kv_limit_run(struct pwi_kv_limit *limit, enum pwi_kv_op op, double seconds);
void pwi_kv_limit_close(struct pwi_kv_limit *limit); /* NULL is fine */

/* --- cases and their figures -------------------------------------------------------------------------------------------- */

/* One line. What is NaN is not known. */
struct pwi_kv_figures {
  const char *name, *op;
  const char *what, *which; /* one more member, such as "placement" and "ordered"; NULL: none */
  const char *part;         /* `balance`: of what; NULL: none */
  uint32_t outstanding;     /* 0: it does not matter */
  double value;
  const char *unit;
  double limit, p99_us, cpu_s_per_unit;
  double ratio;                /* of the two, where that is not simply one by the other; 0: it is */
  double single, single_ratio; /* `replicas`: the same with one server and none; 0: not measured */
  bool has_replicas;
  double passed_ratio; /* then: bytes that were passed on to replicas, by those that were pushed */
};

void pwi_kv_print(const struct pwi_kv_options *options, const struct pwi_kv_figures *figures);

/* Says something about progress to standard error, unless the run is a quick one. */
void pwi_kv_progress(const struct pwi_kv_options *options, const char *format, ...) PAWL_PRINTF(2, 3);

/* Says what this thread's last call failed with; false. */
bool pwi_kv_fail(const struct pwi_kv_options *options, const char *what, pawl_status status);

/* What a case's figures are called, and units of one operation. One-key operations are counted in thousands, or timed. */
const char *pwi_kv_op_name(enum pwi_kv_op op);
double pwi_kv_units(const struct pwi_kv_job *job, const char **name_out);

/* What the case of that name measures, as these options want it; there is one. */
void pwi_kv_find_job(const struct pwi_kv_options *options, const char *name, struct pwi_kv_job *job_out);

/* Run a case and print its lines: bench/command/kv_cases.c, bench/command/kv_servers.c, bench/command/kv_replicas.c. */
bool pwi_kv_case_speed(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_balance(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_memory(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_replicas(const struct pwi_kv_options *options, const struct pwi_kv_job *job);
bool pwi_kv_case_aggregate(const struct pwi_kv_options *options, const struct pwi_kv_job *job);

double pwi_kv_now(void); /* seconds */

extern const struct pwi_command pwi_command_bench_kv;

/* A cluster of processes without a key, on loopback (bench/command/kv_plain.c). A struct of zeros is none. */
#define PWI_KV_PLAIN_MAX 65

struct pwi_child;

struct pwi_kv_plain {
  struct pwi_child *children[PWI_KV_PLAIN_MAX]; /* the manager, then servers */
  size_t count;
  char address[PWI_NET_ADDRESS_MAX];
};

pawl_status pwi_kv_plain_start(const struct pwi_kv_options *options, struct pwi_kv_plain *plain);
void pwi_kv_plain_stop(struct pwi_kv_plain *plain);

#endif
