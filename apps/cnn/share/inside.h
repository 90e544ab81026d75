/* Training by the workers of a job: the messages between the scheduler (train.c) and the workers (worker.c), and the
 * worker.
 *
 * Every worker reads all images. In each step it computes the gradient of its share of the batch, which its rank and
 * the number of workers determine. The parameters are shared in one of three ways:
 *
 *   servers.c   they lie in a vector on the servers, to which all workers add their changes in each step;
 *   reduce.c    each worker has its own, and averages them, or the gradients, with its neighbours in a graph;
 *   factors.c   each worker has its own, and all send their gradients to all others: those of full layers as factors.
 *
 * A round of the job is a part of an epoch, of about a second, so that workers can come and go, and the training can
 * show progress and be interrupted. A worker receives a *spec* when it joins, and an *order* in each round; it returns a
 * *reply*, or parameters. All but the latter are JSON.
 */
#ifndef CNN_SHARE_INSIDE_H
#define CNN_SHARE_INSIDE_H

#include <pawl/job.h>
#include <pawl/pawl.h>
#include <pawl/reduce.h>

#include "apps/cnn/run.h"
#include "apps/cnn/solver.h"
#include "apps/common/model_file.h"
#include "apps/common/reduce_files.h"

#define CNN_TIMEOUT (60 * PAWL_SECOND) /* for vectors and jobs that should exist */
#define CNN_GIVEN ((uint64_t)1 << 19)  /* parameters in the report of one round: 2 MiB */

struct cnn_share_spec {
  char job[64]; /* also the space of the vector */
  enum pawl_cnn_share share;
  char **paths;
  size_t path_count;
  enum pawl_images_format format;
  struct pawl_cnn_about about; /* the net, and the images as the scheduler sees them */
  struct cnn_plan plan;
  uint32_t threads;
  enum pawl_cnn_push push; /* PAWL_CNN_SERVERS */

  /* PAWL_CNN_REDUCE */
  char graph[PAWL_REDUCE_GRAPH_MAX + 1]; /* "": the default */
  enum pawl_reduce_mode mode;
  bool means_gradients;         /* gradients are averaged, not models */
  char folder[APPS_FOLDER_MAX]; /* of checkpoints; "": none */

  uint64_t as_factors; /* PAWL_CNN_FACTORS: bit i: layer i sends its gradient as factors */
};

void cnn_share_spec_fini(struct cnn_share_spec *spec);

enum cnn_do {
  CNN_MEET = 1, /* reduce: reply with the number of the peer group */
  CNN_STEPS = 2,
  CNN_AGREE = 3, /* reduce: compute the mean of the models of all workers */
  CNN_GIVE = 4,  /* the first worker reports parameters [begin, end): reduce: of that mean */
  CNN_SAVE = 5,  /* reduce: save parameters and momentum to a file */
  CNN_LOAD = 6,  /* reduce: load them */
};

struct cnn_order {
  enum cnn_do what;
  uint64_t step, count; /* STEPS: the first, and how many. SAVE, LOAD: those that were made */
  uint64_t number;      /* of the peer group that all workers know: reduce begins with at least this one */
  uint64_t serial;      /* of this round: part of the name of a reduce */
  bool adopts;          /* reduce: all but the first worker take over its parameters and momentum */
  uint64_t begin, end;  /* GIVE */
  uint64_t turn;        /* SAVE, LOAD */
};

struct cnn_reply {
  struct cnn_tally tally;
  uint64_t diverged; /* the first step whose loss is not finite, from 1; 0: none */
  uint64_t number;   /* MEET: of the peer group. STEPS without servers: steps that the model of this worker has made */
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received; /* of the session so far */
  struct apps_reduce_part part;        /* SAVE, LOAD */
  uint64_t update_bytes, hash;         /* factors: of this round; of the parameters */
};

/* JSON texts, which the caller frees; NULL without memory. Readers return false for a text that is incomplete or
 * invalid. */
char *cnn_share_spec_write(const struct cnn_share_spec *spec);
bool cnn_share_spec_read(const void *bytes, size_t size, struct cnn_share_spec *spec_out);
char *cnn_order_write(const struct cnn_order *order);
bool cnn_order_read(const void *bytes, size_t size, struct cnn_order *order_out);
char *cnn_reply_write(const struct cnn_reply *reply);
bool cnn_reply_read(const void *bytes, size_t size, struct cnn_reply *reply_out);

/* The vector on the servers: all parameters, and a last element that is above 0 once a worker has to stop. */
void cnn_vector_name(const struct cnn_share_spec *spec, char name[PAWL_NAME_MAX + 1]);

/* --- the scheduler's file of a checkpoint ----------------------------------------------------------------- */

pawl_status cnn_state_write(const struct cnn_run *run, const struct cnn_share_spec *spec,
                            const struct apps_reduce_saved *saved, char *error);

/* Sets the steps and figures of the run. Failures are explained in run->error. */
pawl_status cnn_state_read(struct cnn_run *run, const struct cnn_share_spec *spec, struct apps_reduce_saved *saved_out);

/* --- the worker ----------------------------------------------------------------------------------------- */

struct cnn_worker {
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct cnn_share_spec spec;
  struct pawl_images *images;
  struct pawl_cnn_model *model;
  struct cnn_solver solver;
  char error[PAWL_CNN_TEXT]; /* reason of a failure; "": none given */
  bool has_said;             /* pawl_worker_say has given it already */

  /* servers.c */
  struct pawl_vector *vector;
  float *change, *pulled;             /* memory shared with servers on this machine */
  struct pawl_iterations *iterations; /* of this part, with PAWL_CNN_PUSH_NOTIFY_ACK */
  struct pawl_task *task;             /* the last changes, if they may be under way */

  /* reduce.c */
  uint64_t iteration;         /* steps that the model has made */
  struct pawl_reduce *reduce; /* of the last round; NULL: none */
  float *mean;                /* of the models of all workers; NULL: none yet */

  struct cnn_factors *factors; /* factors.c; NULL: none yet */
};

/* The images of the batch that are those of one of `count` workers. */
static inline size_t cnn_share_begin(size_t images, uint32_t rank, uint32_t count) { return images * rank / count; }

/* A part of an epoch. `end` frees everything; it may be called twice. */
pawl_status cnn_servers_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply);
void cnn_servers_end(struct cnn_worker *worker);
pawl_status cnn_reduce_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply);
pawl_status cnn_reduce_agree(struct cnn_worker *worker, const struct cnn_order *order);
pawl_status cnn_reduce_file(struct cnn_worker *worker, const struct cnn_order *order,
                            struct apps_reduce_part *part_out);
void cnn_reduce_end(struct cnn_worker *worker);
pawl_status cnn_factors_steps(struct cnn_worker *worker, const struct cnn_order *order, struct cnn_reply *reply);
void cnn_factors_end(struct cnn_worker *worker);

/* --- bytes (cost.c) --------------------------------------------------------------------------------------- */

/* The layers whose gradient is shorter as factors, for so many workers and images of a step. */
uint64_t cnn_layers_as_factors(const struct cnn_net *net, uint64_t images, uint32_t workers);

/* Parameters that are not weights of these layers. */
size_t cnn_rest_size(const struct cnn_net *net, uint64_t as_factors);

#endif
