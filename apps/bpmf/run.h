/* A training: iterations, samples, progress and the result. */
#ifndef BPMF_RUN_H
#define BPMF_RUN_H

#include "apps/bpmf/measure.h"
#include "apps/bpmf/model.h"

struct bpmf_run {
  struct pawl_bpmf_options is;
  char *error;
  struct bpmf_data data;
  struct bpmf_sampler sampler;
  struct bpmf_measure tests, training;
  struct pawl_bpmf_model *model; /* model->about.samples of its samples are there */
  uint32_t room;                 /* samples that it will have at the end */
  bool is_stopping;
  int64_t begun_ns;
  uint64_t iterations_here; /* not those before a checkpoint */
  uint64_t saved;           /* iteration of the last checkpoint */
  struct pawl_bpmf_progress progress;
  struct pawl_bpmf_result result;
};

/* Writes the state of the run to the file of the checkpoint. */
PAWL_MUST_USE pawl_status bpmf_checkpoint_write(struct bpmf_run *run);

/* Reads it. PAWL_MISMATCH: other ratings or options; the sentence names one of them. */
PAWL_MUST_USE pawl_status bpmf_checkpoint_read(struct bpmf_run *run);

#endif
