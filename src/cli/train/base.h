/* Options common to all training commands: cluster, workers, state and output. The options of a method
 * (cli/train/options.h, cli/train/lda_options.h) contain one of these. */
#ifndef PWI_CLI_TRAIN_BASE_H
#define PWI_CLI_TRAIN_BASE_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/job.h>
#include <pawl/reduce.h>

#include "cli/cli.h"
#include "cli/ranks.h"
#include "cli/session_options.h"
#include "cli/train/letters.h"
#include "cli/train/rules.h"

#define PWI_TRAIN_WORKERS_MAX 1024

/* How workers share the parameters. */
enum pwi_train_share {
  PWI_TRAIN_SHARE_AUTO = 0, /* not given */
  PWI_TRAIN_SHARE_NONE,     /* this process trains by itself */
  PWI_TRAIN_SHARE_SERVERS,
  PWI_TRAIN_SHARE_REDUCE,
  PWI_TRAIN_SHARE_ITEMS,
  PWI_TRAIN_SHARE_FACTORS, /* pairs, from worker to worker */
  PWI_TRAIN_SHARE_MATRIX,  /* a matrix, by servers */
  PWI_TRAIN_SHARE_CHOOSE,  /* "auto": factors, or one of the ways by servers, by the bytes that they take */
};

struct pwi_train_base {
  const struct pwi_command *command;
  const char *const *data; /* files, as given */
  size_t data_count;
  const char *job;
  const char *output; /* NULL: named after the data */
  bool resume;
  const char *log, *board; /* NULL: none */
  bool json, quiet;

  struct pwi_session_choice choice;
  bool has_cluster;   /* false: a temporary cluster is started */
  bool names_cluster; /* by --cluster, not by PAWL_ADDRESS */
  const char *listen;
  bool has_workers;
  uint32_t workers, workers_most; /* minimum and maximum of workers; 0: none are started */
  uint32_t workers_started;       /* number of workers to start, at most one per processor of a range */
  uint32_t least, most;           /* minimum and maximum of workers of the job */
  uint32_t threads;               /* threads of each worker; 0: its share of the processors */
  enum pawl_on_loss on_loss;
  bool has_on_loss;
  double drop_slowest;
  uint32_t servers, replicas; /* of a temporary cluster */
  bool has_servers;

  enum pwi_train_share share;
  bool has_items;    /* the method has --share items, and not --share reduce */
  bool has_matrix;   /* the method has --share factors, matrix and auto, and no other ones */
  bool has_factors;  /* the method has --share factors and auto beside servers and reduce */
  const char *graph; /* NULL: the default. A file has an absolute path, if that is not too long */
  char graph_path[PAWL_REDUCE_GRAPH_MAX + 1];
  enum pawl_reduce_mode mode; /* of reduce, and of pushes to servers if `servers_have_modes` */
  bool has_mode;
  bool servers_have_modes; /* the method has --mode with --share servers, too */

  bool is_launched; /* by mpirun or srun; `ranks` is then set */
  struct pwi_ranks ranks;
};

/* The options, for --help and parsing. */
#define PWI_TRAIN_PLACE                                                                                                \
  PWI_CLI_HEADING("cluster and workers"),                                                                              \
      {PWI_TRAIN_WORKERS, "workers", "N|MIN:MAX",                                                                      \
       "number of worker processes (default: one per processor, at most 8); with --cluster, 0 starts none, and 'pawl " \
       "worker' starts them elsewhere"},                                                                               \
      {PWI_TRAIN_THREADS, "threads", "N", "number of threads of each worker (default: its share of the processors)"},  \
      {PWI_TRAIN_ON_LOSS, "on-worker-loss", "HOW",                                                                     \
       "what to do if a worker dies: replace it (default), continue without it, or stop"},                             \
      {PWI_TRAIN_DROP_SLOWEST, "drop-slowest", "X",                                                                    \
       "drop a worker that takes X times the median, three times in a row"},                                           \
      {PWI_TRAIN_SERVERS, "servers", "N", "number of server processes (default: 1, and 1 for each replica)"},          \
      {PWI_TRAIN_REPLICAS, "replicas", "N", "number of further copies of the model: N servers may die (default: 0)"},  \
      {PWI_SESSION_CLUSTER, "cluster", "ADDRESS[,…]",                                                                  \
       "address of the manager of the cluster to use (default: PAWL_ADDRESS, or a temporary cluster is started)"},     \
      {PWI_TRAIN_JOB, "job", "NAME", "name by which workers find this run in the cluster (default: train)"},           \
      {PWI_TRAIN_LISTEN, "listen", "ADDRESS",                                                                          \
       "address that workers connect to (default: from the route to the manager)"},                                    \
      PWI_SESSION_PROOFS

/* For methods that can share by reduce. */
#define PWI_TRAIN_SHARE_GRAPH                                                                                          \
  {                                                                                                                    \
    PWI_TRAIN_GRAPH, "graph", "NAME",                                                                                  \
        "reduce: who sends to whom: a topology of 'pawl graph list', such as root, ring or complete, or a file "       \
        "(default: root up to about 400 workers)"                                                                      \
  }

#define PWI_TRAIN_REDUCE_MODES                                                                                         \
  "reduce: notify-ack (default) waits for the neighbours, bsp for all workers, async for none"

#define PWI_TRAIN_SHOWN                                                                                                \
  {PWI_TRAIN_LOG, "log", "FILE", "write a JSON object for each round to FILE"},                                        \
      {PWI_TRAIN_TENSORBOARD, "tensorboard", "DIR", "write event files for TensorBoard to DIR"},                       \
      {PWI_CLI_LETTER_JSON, "json", NULL, "print the result as one JSON object"}, {                                    \
    PWI_TRAIN_QUIET, "quiet", NULL, "print nothing but errors"                                                         \
  }

/* Sets defaults from the environment. */
void pwi_train_base_init(struct pwi_train_base *base, const struct pwi_command *command);

/* Parses the command line of a method, whose options begin with `base`: stores options by the rules of the method, hands
 * the others to `other`, and handles those that are common to all methods. `other` returns a description of the expected
 * value, or NULL if the value is valid or the option is not one of the method. Keeps pointers into `argv`. If it returns
 * false, return `*exit_out`. */
bool pwi_train_base_read(struct pwi_train_base *base, const struct pwi_train_rule *rules,
                         const char *(*other)(void *options, int letter, const char *value), int argc, char **argv,
                         int *exit_out);

/* Resolves defaults and checks that the options are compatible. Returns PWI_EXIT_OK, or prints an error. */
int pwi_train_base_settle(struct pwi_train_base *base);

/* Whether workers average among themselves. */
static inline bool pwi_train_base_reduces(const struct pwi_train_base *base) {
  return base->share == PWI_TRAIN_SHARE_REDUCE;
}

/* Whether workers share among themselves, so that no servers are needed. */
static inline bool pwi_train_base_has_peers(const struct pwi_train_base *base) {
  return base->share == PWI_TRAIN_SHARE_REDUCE || base->share == PWI_TRAIN_SHARE_ITEMS ||
         base->share == PWI_TRAIN_SHARE_FACTORS;
}

/* The name of a way to share, as the option has it. */
const char *pwi_train_share_name(enum pwi_train_share share);

/* Parses `N` or `MIN:MAX`. */
bool pwi_train_workers_read(const char *text, uint32_t *least_out, uint32_t *most_out);

#endif
