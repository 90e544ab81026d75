/* The state of the scheduler of a topic model, shared by train.c, train_model.c and train_state.c. */
#ifndef LDA_TRAIN_INSIDE_H
#define LDA_TRAIN_INSIDE_H

#include "apps/common/run.h"
#include "apps/lda/inside.h"

struct lda_training {
  struct apps_run common;
  const struct pawl_lda_options *options;
  struct lda_spec spec;
  struct pawl_data *data, *heldout;
  struct pawl_words *vocabulary;
  struct pawl_vector *vector, *steps; /* `steps` is for SVI only */
  struct lda_order order;             /* order of the next round */
  struct pawl_lda_progress progress;
  struct pawl_lda_worker *each;
  size_t each_room;
  char (*hosts)[128]; /* names of the hosts in `each` */
  struct pawl_lda_result result;
  int64_t saved_ns;
  uint64_t end;              /* total number of sweeps */
  double sweep_s;            /* estimated seconds per sweep; 0: unknown */
  uint64_t sampled;          /* tokens sampled */
  double sampled_s;          /* seconds of the rounds that sampled them */
  double pass_s, pass_log;   /* SVI: seconds and log likelihood of this pass so far */
  uint64_t pass_tokens;      /* SVI: tokens of this pass so far */
  struct apps_digest digest; /* digest of the corpus; 0 pieces: not known yet */
};

/* Tells the caller how far the training is. */
void lda_show(struct lda_training *run, const char *stage);

/* Reads the model from the servers. With `sums_out`, of `words` elements, also the number of tokens of each
 * word. */
pawl_status lda_read_model(struct lda_training *run, int64_t *sums, struct pawl_lda_model **model_out);
pawl_status lda_check_counts(struct lda_training *run, const int64_t *sums); /* compares with the corpus */
pawl_status lda_evaluate(struct lda_training *run,
                         /* on the held-out documents, if there are any */
                         const struct pawl_lda_model *model);

/* Creates the directory of the run, or resumes the run in it if requested. */
pawl_status lda_state_open(struct lda_training *run);
pawl_status lda_state_save(struct lda_training *run);

/* The same in mid-run, where a disk that is full does not end the training: result.unsaved says why it was not saved. */
void lda_state_keep(struct lda_training *run);

/* Updates alpha and beta by one step of Minka's fixed point, from the sums of the workers. */
void lda_optimise(struct lda_order *order, const struct lda_reply *sum, const int32_t *totals);
pawl_status lda_pull_totals(struct lda_training *run, int32_t *totals);

/* SVI: the initial weights; the order of the next round; its result. `lda_svi_part` is the fraction of the
 * pass that is done. */
pawl_status lda_svi_begin(struct lda_training *run);
void lda_svi_end(struct lda_training *run);
void lda_svi_plan(struct lda_training *run);
double lda_svi_part(const struct lda_training *run);
pawl_status lda_svi_learn(struct lda_training *run, const struct lda_reply *sum);

/* Scales mu to lambda, if `is_wanted` or the scale has become small. Not while workers are working. */
pawl_status lda_svi_settle(struct lda_training *run, bool is_wanted);

#endif
