/* A training as its caller sees it: epochs, progress and the result. The steps themselves are made in one of several
 * ways: by this process (alone.c), or by the workers of a job (share/train.c). */
#ifndef CNN_RUN_H
#define CNN_RUN_H

#include "apps/cnn/guess.h"
#include "apps/cnn/solver.h"

struct cnn_run;

/* Each function returns PAWL_DIVERGED with `result.steps` set to the number of the step that failed, from 1, or another
 * failure with a sentence in `error`. */
struct cnn_way {
  /* Called once, with a model of first weights. A way that resumes sets result.steps, and the figures up to them. */
  pawl_status (*begin)(struct cnn_run *run);
  /* Makes steps from `step` on, at least one and at most `most`, and adds up their images. */
  pawl_status (*take)(struct cnn_run *run, uint64_t step, uint64_t most, uint64_t *taken_out, struct cnn_tally *tally);
  /* Brings the parameters of the model up to date. */
  pawl_status (*fetch)(struct cnn_run *run);
  /* Called after steps, which may be saved. NULL: this way has no checkpoints. */
  pawl_status (*keep)(struct cnn_run *run);
  /* Called once, last, also if `begin` failed. */
  void (*end)(struct cnn_run *run);
};

struct cnn_run {
  const struct cnn_way *way;
  void *state; /* of the way */
  struct pawl_cnn_options is;
  const struct pawl_images *images, *test;
  struct cnn_plan plan;
  struct cnn_guess guess;           /* on the training images */
  struct pawl_cnn_score test_score; /* of the last epoch */
  char *error;

  struct pawl_cnn_model *model;
  struct cnn_pass *test_pass; /* for test images, and for a doubtful net at the end */

  int64_t begun_ns, epoch_ns;
  struct cnn_tally epoch, all; /* of this epoch so far, and of all that this run has made */
  double epoch_before;         /* images of this epoch that an earlier run has trained on */
  bool is_stopping;
  struct pawl_cnn_progress progress;
  struct pawl_cnn_result result;
};

/* Writes the sentence about `what`, which is not finite, in step result.steps. */
pawl_status cnn_run_diverged(struct cnn_run *run, const char *what);

/* The way of one process. */
extern const struct cnn_way cnn_alone;

/* Trains; the caller has set way, state, images, test and error. As pawl_cnn_train. */
PAWL_MUST_USE pawl_status cnn_run_train(struct cnn_run *run, const struct pawl_cnn_options *options,
                                        struct pawl_cnn_model **model_out, struct pawl_cnn_result *result_out);

#endif
