/* The scheduler of a training by workers that share a matrix: the side of it that has the learner's course. It owns the job, and
 * fetches the matrix from the workers, or hands one out, between steps. */
#ifndef SHARED_MATRIX_SCHEDULER_H
#define SHARED_MATRIX_SCHEDULER_H

#include "apps/common/run.h"
#include "apps/common/shared_matrix/inside.h"

struct matrix_scheduler {
  struct apps_run common;
  struct pawl_matrix_sharing sharing;
  struct matrix_spec spec;
  struct matrix_place place; /* the scheduler's matrix; its factor is always 1 */
  struct pawl_matrix_shared *shared;

  struct pawl_vector *vector; /* WHOLE */
  double factor;              /* WHOLE: of the matrix on the servers */
  bool is_begun;              /* the job exists */
  bool must_clear;            /* before the next steps: workers forget the matrix */
  bool must_hand_out;         /* before the next steps: workers take over the scheduler's */
  bool has_changed;           /* workers have come or gone since they last met */
  uint64_t changes;           /* how often they have, since the first round with steps */
  bool has_stepped;           /* a round with steps was begun */
  uint64_t serial, number;
  uint64_t count; /* steps of the next round */
  uint64_t *nodes;
  size_t node_count; /* workers that made all steps of the last round */
  double reports;    /* the sum of the learner's numbers in the last round, */
  bool is_whole;     /* in which no worker was missing, and none was late */
};

/* Takes `terms`, which the learner's workers read; NULL: PAWL_NO_MEMORY. The caller has filled in `app`, `threads`, `digest`,
 * `shape` and `is_sparse` of the spec, and the place. `error` has APPS_TEXT_MAX bytes. Release with
 * matrix_scheduler_fini in any case. */
PAWL_MUST_USE pawl_status matrix_scheduler_init(struct matrix_scheduler *scheduler, struct pawl_session *session,
                                                const struct pawl_matrix_sharing *sharing, json_t *terms,
                                                struct pawl_matrix_shared *shared);
void matrix_scheduler_fini(struct matrix_scheduler *scheduler);

/* Makes steps [first, first + count), in rounds of at most `most` steps, so that the factor does not become too small. Ends
 * early, with a smaller `*made_out`, when the caller of the training wants to stop. PAWL_DIVERGED, without a sentence:
 * `*made_out` is the number of steps before. Begins the job if it has not begun. */
PAWL_MUST_USE pawl_status matrix_scheduler_steps(struct matrix_scheduler *scheduler, uint64_t first, uint64_t count,
                                                 uint64_t most, uint64_t phase, uint64_t *made_out);

/* Copies the workers' matrix, and what goes with it, to the place. */
PAWL_MUST_USE pawl_status matrix_scheduler_fetch(struct matrix_scheduler *scheduler);

#endif
