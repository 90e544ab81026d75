/* Workers that share a matrix (<pawl/shared_matrix.h>), for all methods that have such: options, the choice of `--share auto`,
 * and figures. */
#ifndef PWI_CLI_TRAIN_MATRIX_SHARE_H
#define PWI_CLI_TRAIN_MATRIX_SHARE_H

#include <jansson.h>

#include <pawl/shared_matrix.h>

#include "cli/train/base.h"
#include "cli/train/run.h"

struct pwi_train_matrix {
  enum pwi_train_share asked; /* before `auto` was settled */
  uint32_t staleness;
  bool forward;
  bool has_sharing; /* an option was given that only workers have */
  struct pawl_matrix_costs costs;
};

/* The options, for --help and parsing. */
#define PWI_TRAIN_MATRIX_PLACE                                                                                         \
  PWI_CLI_HEADING("workers"),                                                                                          \
      {PWI_TRAIN_WORKERS, "workers", "N|MIN:MAX",                                                                      \
       "number of worker processes, which make the steps together (default: 1, this process); with --cluster, 0 "      \
       "starts none, and 'pawl worker' starts them elsewhere"},                                                        \
      {PWI_TRAIN_SHARE, "share", "HOW",                                                                                \
       "how workers share the matrix: factors, pairs of vectors from worker to worker; matrix, sums of them by "       \
       "servers; servers, pairs that servers add up; auto (default), whichever sends the fewest bytes"},               \
      {PWI_TRAIN_STALENESS, "staleness", "N|async",                                                                    \
       "number of steps by which updates of other workers may be late (default: 0, all make each step together); "     \
       "async never waits"},                                                                                           \
      {PWI_TRAIN_GRAPH, "graph", "NAME",                                                                               \
       "factors: who sends to whom: a topology of 'pawl graph list', such as root or ring (default: everyone to "      \
       "everyone)"},                                                                                                   \
      {PWI_TRAIN_FORWARD, "forward", NULL,                                                                             \
       "factors: workers pass updates on along the graph, so that each reaches every worker"},                         \
      {PWI_TRAIN_ON_LOSS, "on-worker-loss", "HOW",                                                                     \
       "what to do if a worker dies: continue without it (default), replace it, or stop"},                             \
      {PWI_TRAIN_DROP_SLOWEST, "drop-slowest", "X",                                                                    \
       "drop a worker that takes X times the median, three times in a row"},                                           \
      {PWI_TRAIN_SERVERS, "servers", "N", "number of server processes (default: 1, and 1 for each replica)"},          \
      {PWI_TRAIN_REPLICAS, "replicas", "N", "number of further copies of the matrix: N servers may die (default: 0)"}, \
      {PWI_SESSION_CLUSTER, "cluster", "ADDRESS[,…]",                                                                  \
       "address of the manager of the cluster to use (default: PAWL_ADDRESS, or a temporary cluster is started)"},     \
      {PWI_TRAIN_JOB, "job", "NAME", "name by which workers find this run in the cluster (default: train)"},           \
      {PWI_TRAIN_LISTEN, "listen", "ADDRESS",                                                                          \
       "address that workers connect to (default: from the route to the manager)"},                                    \
      PWI_SESSION_PROOFS

/* As pwi_train_rules_follow. */
const char *pwi_train_matrix_read(struct pwi_train_matrix *matrix, int letter, const char *value);

/* Settles and checks everything about workers; base->share is then NONE, FACTORS, MATRIX or CHOOSE. Returns PWI_EXIT_OK, or
 * prints an error. */
int pwi_train_matrix_settle(struct pwi_train_matrix *matrix, struct pwi_train_base *base);

/* Whether `--share auto` can be settled here. Returns PWI_EXIT_OK, or prints an error. */
int pwi_train_check_auto(const struct pwi_train_base *base);

/* How workers share, without callbacks. `reading` NULL: the files are images. */
void pwi_train_matrix_sharing(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base,
                              const char *const *paths, const struct pawl_data_options *reading,
                              enum pawl_images_format image_format, struct pawl_matrix_sharing *sharing_out);

/* Keeps the costs. With --share auto, settles base->share by them, and prints why. */
void pwi_train_matrix_choose(struct pwi_train_matrix *matrix, struct pwi_train_run *run,
                             const struct pawl_matrix_costs *costs);

/* Adds figures to the object of --json. */
void pwi_train_matrix_json(const struct pwi_train_matrix *matrix, const struct pwi_train_base *base,
                           const struct pawl_matrix_shared *shared, json_t *object);

/* Prints lines of the summary. */
void pwi_train_matrix_print(const struct pwi_train_base *base, const struct pawl_matrix_shared *shared);

#endif
