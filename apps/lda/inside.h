/* What the scheduler (train.c) and the workers (worker.c) of topic models tell one another, and what a worker
 * has.
 *
 * When a worker joins it gets a *spec*: what never changes. Each round has an *order*, which says all the
 * rest, so that a worker that has just come needs to know nothing of earlier rounds; and every worker returns
 * a *reply*. All three travel as JSON.
 */
#ifndef LDA_INSIDE_H
#define LDA_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/common/clock.h"
#include "apps/lda/block.h"
#include "apps/lda/piece.h"
#include "apps/lda/sample.h"
#include "apps/common/resume.h"

#define LDA_TIMEOUT (60 * PAWL_SECOND) /* for opening what should be there */

struct lda_spec {
  char job[64]; /* also the space of the vectors */
  enum pawl_lda_method method;
  char **paths;
  size_t path_count;
  struct pawl_data_options reading;
  char label[128];       /* reading.label points here, if it is not empty */
  char vocabulary[4096]; /* a file; "": words are numbers */
  char directory[4096];
  char start[4096];            /* a model's file; "": none */
  uint64_t fingerprint;        /* of the data as the scheduler sees it, */
  uint64_t pieces;             /* of which there are so many */
  uint64_t corpus, generation; /* of piece.h */
  uint32_t topics, threads, staleness, batch;
  uint64_t memory, seed;
  double kappa, offset;
};

void lda_spec_fini(struct lda_spec *spec);

enum lda_do {
  LDA_DESCRIBE = 1, /* count documents, tokens, words */
  LDA_SWEEP = 2,    /* `sweeps` of them, or of SVI a part of a pass */
};

struct lda_order {
  enum lda_do what;
  uint64_t sweep;                    /* done before this round */
  uint64_t sweeps;                   /* to do in it; SVI: 1 if a pass ends with it */
  uint64_t words, tokens, documents; /* of the whole corpus */
  double beta;
  double *alpha; /* topics; NULL for DESCRIBE */
  size_t alpha_count;
  bool measures, optimises; /* in the last of the sweeps */
  uint64_t base, part, groups,
      /* of SVI: apps/lda/svi/step.h; which part of a pass, and how it is cut (apps/lda/svi/train.c) */
      splits;
};

void lda_order_fini(struct lda_order *order);

struct lda_reply {
  uint64_t documents, empty, tokens, words; /* words: the highest, and one more */
  uint64_t skipped, unknown;
  uint64_t sampled;                /* tokens, in this round */
  uint64_t sampled_ns;             /* in which */
  double document_part, word_part; /* of log p(w, z): sample.h */
  double *alpha_sums;              /* topics; NULL if the round did not optimise */
  size_t alpha_count;
  double alpha_length, beta_sum;
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received, memory;
  struct apps_digest digest; /* DESCRIBE: of the pieces that this worker has read from the data */
};

void lda_reply_fini(struct lda_reply *reply);

/* JSON texts; NULL without memory. Freed by the caller with free. Reading gives false for anything that is
 * not whole. */
char *lda_spec_write(const struct lda_spec *spec);
bool lda_spec_read(const void *bytes, size_t size, struct lda_spec *spec_out);
char *lda_order_write(const struct lda_order *order);
bool lda_order_read(const void *bytes, size_t size, struct lda_order *order_out);
char *lda_reply_write(const struct lda_reply *reply);
bool lda_reply_read(const void *bytes, size_t size, struct lda_reply *reply_out);

/* --- vectors -------------------------------------------------------------------------------------------- */

/* `job/counts`: rows of topics and marks (marks.h), one for each word and one for the totals. `job/lambda` of
 * SVI: rows of floats, likewise with the totals at the end. */
void lda_vector_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]);
void lda_vector_options(const struct lda_spec *spec, uint64_t words, struct pawl_vector_options *options_out);

/* `job/steps` of SVI: one number, how many steps have been begun. */
void lda_svi_steps_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]);

/* --- a worker ------------------------------------------------------------------------------------------- */

struct lda_worker {
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct lda_spec spec;
  struct pawl_data *data;
  struct pawl_words *vocabulary;
  struct pawl_lda_model *start;
  struct lda_piece **pieces; /* those that it has, by number */
  bool *is_new;              /* of each: nobody else has worked on it */
  size_t piece_count;
  struct lda_block *blocks; /* pieces that are in memory together; NULL: to be arranged */
  size_t block_count;
  bool is_resident; /* all blocks fit in memory, and stay there */
  struct pawl_vector *counts;
  struct lda_sampler sampler;
  struct lda_crew *crew;
  struct lda_svi *svi; /* apps/lda/svi/svi.c; NULL at first */
  int32_t *totals;     /* of the table: n_k, and marks; NULL: to be asked for */
  double waited_s;
  uint64_t memory;
  struct apps_digest digest; /* of what it has read */
  char error[PAWL_LDA_TEXT];
};

/* Finishes what a worker that died had under way with this piece: see marks.h. The piece is loaded and
 * unloaded. */
pawl_status lda_recover(struct lda_worker *worker, struct lda_piece *piece);

/* One sweep over a block whose pieces are loaded. */
pawl_status lda_sweep_block(struct lda_worker *worker, struct lda_block *block);

/* A part of a pass of SVI over this worker's documents. */
pawl_status lda_svi_pass(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply);
void lda_svi_destroy(struct lda_worker *worker);

#endif
