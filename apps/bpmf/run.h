/* A training as its caller sees it: iterations, samples, progress and the result. The iterations themselves are made in
 * one of two ways: by this process (alone.c), or by the workers of a job (share/train.c). */
#ifndef BPMF_RUN_H
#define BPMF_RUN_H

#include "apps/bpmf/measure.h"
#include "apps/bpmf/model.h"

#define BPMF_ADVANCE_MAX 64 /* iterations of one call of a way */

struct bpmf_run;

/* An iteration, for people. */
struct bpmf_figures {
  struct bpmf_rmse tests, training;
  double seconds; /* of sampling */
};

/* Each function returns a failure with a sentence in `error`. A way that loses a worker *goes back*: it sets the run to an
 * earlier iteration, of which it has everything (bpmf_run_mark), and returns PAWL_OK. */
struct bpmf_way {
  /* Called once, before the first iteration of this process. */
  pawl_status (*begin)(struct bpmf_run *run);

  /* Makes at most `most` iterations, raises sampler.iteration by that many, and measures them. None, if it goes back. */
  pawl_status (*advance)(struct bpmf_run *run, size_t most, struct bpmf_figures figures_out[BPMF_ADVANCE_MAX],
                         size_t *count_out);

  /* Copies all rows, as bpmf_sampler_get does. */
  pawl_status (*rows)(struct bpmf_run *run, float *rows_out);

  /* Brings the rows and the sums of predictions in `run` up to date. */
  pawl_status (*save)(struct bpmf_run *run);

  /* Called once, last, also if `begin` failed. */
  void (*end)(struct bpmf_run *run);
};

/* The way of one process. */
extern const struct bpmf_way bpmf_alone;

struct bpmf_run {
  const struct bpmf_way *way;
  void *state;           /* of the way */
  uint32_t threads_here; /* of this process; 0: is.threads */
  struct pawl_bpmf_options is;
  char *error;
  struct bpmf_data data;
  struct bpmf_sampler sampler; /* its rows may be older than its iteration: see way->rows */
  struct bpmf_measure tests, training;
  struct pawl_bpmf_model *model; /* model->about.samples of its samples are there */
  uint32_t room;                 /* samples that it will have at the end */
  bool is_stopping;
  int64_t begun_ns;
  uint64_t iterations_here; /* not those before a checkpoint */
  uint64_t shown;           /* the highest iteration that the caller knows of */
  struct pawl_bpmf_progress progress;
  struct pawl_bpmf_result result;
};

/* The place of a run in its course, to which it can go back. */
struct bpmf_mark {
  uint64_t iteration, measured;
  uint32_t samples;
};

struct bpmf_mark bpmf_run_mark(const struct bpmf_run *run);
void bpmf_run_back(struct bpmf_run *run, const struct bpmf_mark *mark);

/* Writes the sentence about the iteration in which numbers became too large. Returns PAWL_DIVERGED. */
pawl_status bpmf_run_diverged(struct bpmf_run *run, uint64_t iteration);

/* Trains; the caller has set way, state and error. As pawl_bpmf_train. */
PAWL_MUST_USE pawl_status bpmf_run_train(struct bpmf_run *run, const struct pawl_ratings *ratings,
                                         const struct pawl_ratings *test, const struct pawl_bpmf_options *options,
                                         struct pawl_bpmf_model **model_out, struct pawl_bpmf_result *result_out);

/* Writes the state of the run to the file of the checkpoint. */
PAWL_MUST_USE pawl_status bpmf_checkpoint_write(struct bpmf_run *run);

/* Reads it. PAWL_MISMATCH: other ratings or options; the sentence names one of them. */
PAWL_MUST_USE pawl_status bpmf_checkpoint_read(struct bpmf_run *run);

#endif
