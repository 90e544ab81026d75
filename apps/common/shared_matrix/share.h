/* The matrix of a learner in a worker of a job, and how the worker shares it. A learner announces which rows of the matrix a
 * step reads, computes the pairs of its share of the batch, adds them, and commits them: the matrix becomes
 * M + scale * sum of u v' over the pairs of all workers.
 *
 * A matrix that shrinks in every step, as a penalty makes it, has a factor: it is factor * M. The factor depends on the
 * number of the step only, so all workers have the same, and none sends it.
 */
#ifndef SHARED_MATRIX_SHARE_H
#define SHARED_MATRIX_SHARE_H

#include <jansson.h>

#include <pawl/factor.h>
#include <pawl/pawl.h>
#include <pawl/shared_matrix.h>

#include "apps/common/model_file.h"

struct matrix_share;

struct matrix_shape {
  size_t rows, columns;
  bool is_double; /* the values; otherwise float */
};

static inline size_t matrix_value_size(const struct matrix_shape *shape) {
  return shape->is_double ? sizeof(double) : sizeof(float);
}

static inline size_t matrix_bytes(const struct matrix_shape *shape) {
  return shape->rows * shape->columns * matrix_value_size(shape);
}

/* --- for learners ----------------------------------------------------------------------------------------- */

/* The rows of the matrix that the next step reads, and in which its pairs have non-zeros: rising, and borrowed until the
 * commit. NULL: all. Only these rows of the matrix are up to date then. */
PAWL_MUST_USE pawl_status matrix_share_need(struct matrix_share *share, const uint64_t *rows, size_t count);

/* Adds a pair, which is copied. PAWL_DIVERGED: it has values that are not finite. */
PAWL_MUST_USE pawl_status matrix_share_add(struct matrix_share *share, const struct pawl_factor_vector *u,
                                           const struct pawl_factor_vector *v);

/* Commits the pairs that were added, which may be none. */
PAWL_MUST_USE pawl_status matrix_share_commit(struct matrix_share *share, double scale);

/* The part of `count` things that is this worker's. */
void matrix_share_part(const struct matrix_share *share, size_t count, size_t *begin_out, size_t *end_out);

uint32_t matrix_share_size(const struct matrix_share *share); /* number of workers */

/* The job has ended or its scheduler is lost: a long step should end, with PAWL_CANCELLED. */
bool matrix_share_is_ending(const struct matrix_share *share);

/* What the scheduler's learner has told, for this round. */
uint64_t matrix_share_phase(const struct matrix_share *share);

/* --- what a learner is ------------------------------------------------------------------------------------ */

/* The specification of a job, as far as learners look at it. */
struct matrix_spec {
  char job[64]; /* also the space of the vector */
  char app[16];
  enum pawl_matrix_way way;
  uint32_t staleness, threads;
  char graph[PAWL_MATRIX_GRAPH_MAX + 1]; /* "": everyone to everyone */
  bool forward;
  char **paths;
  size_t path_count;
  bool has_images;
  enum pawl_images_format image_format;
  struct pawl_data_options reading; /* its label points to `label` */
  char label[256];
  uint64_t digest; /* of the rows, as the scheduler has them */
  struct matrix_shape shape;
  bool is_sparse; /* WHOLE: steps need some rows only */
  json_t *terms;  /* the learner's */
};

/* Where a learner keeps what workers have in common. */
struct matrix_place {
  void *values;   /* the matrix */
  double *factor; /* NULL: always 1 */
  void *extra;    /* handed out and fetched with the matrix; not shared */
  size_t extra_size;
  bool extra_is_fixed; /* steps do not change it: it is handed out, and not fetched */
};

struct matrix_learner {
  const char *app;
  /* Reads the rows, and prepares for steps. `error` has APPS_TEXT_MAX bytes. */
  pawl_status (*begin)(const struct matrix_spec *spec, void **state_out, struct matrix_place *place_out, char *error);
  /* Exactly one commit. PAWL_DIVERGED before it: the training is over. */
  pawl_status (*step)(void *state, struct matrix_share *share, uint64_t step);
  /* A number for the scheduler's learner, which adds up those of all workers. May be NULL. */
  double (*report)(void *state);
  void (*end)(void *state);
};

/* Works for a job until it ends. */
PAWL_MUST_USE pawl_status matrix_work(const struct matrix_learner *learner, struct pawl_session *session,
                                      const char *job, int64_t timeout_ns, char *error);

#endif
