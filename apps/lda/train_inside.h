/* The scheduler of a topic model, inside: what train.c, train_model.c and train_state.c share. */
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
  struct pawl_vector *vector, *steps; /* steps: of SVI */
  struct lda_order order;             /* of the next round */
  struct pawl_lda_progress progress;
  struct pawl_lda_worker *each;
  size_t each_room;
  char (*hosts)[128]; /* of `each` */
  struct pawl_lda_result result;
  int64_t saved_ns;
  uint64_t end;              /* sweeps in all */
  double sweep_s;            /* how long one takes, about; 0: not known */
  uint64_t sampled;          /* tokens, */
  double sampled_s;          /* in so many seconds of rounds */
  double pass_s, pass_log;   /* of SVI: of the parts of this pass so far, */
  uint64_t pass_tokens;      /* which had so many */
  struct apps_digest digest; /* of the corpus; its pieces are 0 while it is not known */
};

/* Tells the caller how far the training is. */
void lda_show(struct lda_training *run, const char *stage);

/* The model that the servers hold. With `sums_out`, of `words` elements, also how many tokens each word
 * has. */
pawl_status lda_read_model(struct lda_training *run, int64_t *sums, struct pawl_lda_model **model_out);
pawl_status lda_check_counts(struct lda_training *run, const int64_t *sums); /* against the corpus */
pawl_status lda_evaluate(struct lda_training *run,
                         /* on the held-out documents, if there are any */
                         const struct pawl_lda_model *model);

/* The run's directory: makes it, finds out whether a run is in it, goes on with that if it is to. */
pawl_status lda_state_open(struct lda_training *run);
pawl_status lda_state_save(struct lda_training *run);

/* alpha and beta by one step of Minka's fixed point, from what workers have summed up. */
void lda_optimise(struct lda_order *order, const struct lda_reply *sum, const int32_t *totals);
pawl_status lda_pull_totals(struct lda_training *run, int32_t *totals);

/* SVI. First weights; the next round's order; what came of it. `lda_svi_part`: how much of the pass is
 * done. */
pawl_status lda_svi_begin(struct lda_training *run);
void lda_svi_end(struct lda_training *run);
void lda_svi_plan(struct lda_training *run);
double lda_svi_part(const struct lda_training *run);
pawl_status lda_svi_learn(struct lda_training *run, const struct lda_reply *sum);

/* Scales mu, so that it is lambda, if that `is_wanted` or the scale has become small. Not while workers
 * work. */
pawl_status lda_svi_settle(struct lda_training *run, bool is_wanted);

#endif
