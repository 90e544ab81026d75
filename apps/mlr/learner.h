/* A worker of a training inside: what both methods have in common (learner.c), and steps of SDCA (learner_sdca.c). */
#ifndef MLR_LEARNER_H
#define MLR_LEARNER_H

#include "apps/mlr/sgd.h"
#include "apps/mlr/shared.h"

struct mlr_entry {
  uint32_t at;
  double value;
};

/* Duals of the rows that this worker owns, as of an era (shared.h). */
struct mlr_own_duals {
  struct mlr_duals duals; /* of rows [begin, end) */
  size_t begin, end;
  uint64_t era, pass; /* the pass whose order the rows have */
  uint32_t workers;   /* of the era */
  uint32_t *order;    /* of the rows, from 0 */
  double *memory;     /* of steps */
  float *scattered;   /* a row by features */
  struct mlr_row *rows;
  bool is_there;
};

struct mlr_hand {
  struct mlr_run run;
  struct pawl_mlr_rows *rows;
  struct mlr_batch batch;     /* SGD */
  struct mlr_own_duals own;   /* SDCA */
  struct matrix_share *share; /* of this step */
  uint64_t pass_steps;        /* SDCA: steps of a pass */
  bool is_sparse;             /* the rows are */
  bool names_rows;            /* steps name the rows of the matrix that they need */
  bool has_order;
  uint64_t epoch;            /* whose order the rows have */
  uint64_t *needed;          /* features of this step, rising */
  struct mlr_entry *entries; /* of a row */
  uint32_t *indices;         /* of a row, rising, */
  double *values;            /* and their values */
};

/* Announces the features of some rows of the data, `base` + `list`[i]. */
PAWL_MUST_USE pawl_status mlr_hand_need(struct mlr_hand *hand, const uint32_t *list, size_t base, size_t count);

/* Adds a pair of a number for each class and a row. */
PAWL_MUST_USE pawl_status mlr_hand_add(struct mlr_hand *hand, const double *u, const struct mlr_row *v);

/* learner_sdca.c */
PAWL_MUST_USE pawl_status mlr_hand_begin_sdca(struct mlr_hand *hand);
PAWL_MUST_USE pawl_status mlr_hand_step_sdca(struct mlr_hand *hand, uint64_t step);
double mlr_hand_entropy(struct mlr_hand *hand);
void mlr_hand_end_sdca(struct mlr_hand *hand);

#endif
