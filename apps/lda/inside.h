/* The messages between the scheduler (train.c) and the workers (worker.c) of topic models, and the state of a
 * worker.
 *
 * A worker that joins gets a *spec*, which never changes. Each round has an *order* with everything else, so
 * that a new worker needs no knowledge of earlier rounds. Every worker returns a *reply*. All three are sent
 * as JSON.
 */
#ifndef LDA_INSIDE_H
#define LDA_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/lda.h>
#include <pawl/pawl.h>

#include "apps/common/clock.h"
#include "apps/lda/block.h"
#include "apps/lda/piece.h"
#include "apps/lda/sample.h"
#include "apps/common/resume.h"

#define LDA_TIMEOUT (60 * PAWL_SECOND) /* for opening existing vectors */

struct lda_spec {
  char job[64]; /* also the space of the vectors */
  enum pawl_lda_method method;
  char **paths;
  size_t path_count;
  struct pawl_data_options reading;
  char label[128];       /* reading.label points here, if it is not empty */
  char vocabulary[4096]; /* path of a file; "": words are numbers */
  char directory[4096];
  char start[4096];            /* path of a model; "": none */
  uint64_t fingerprint;        /* fingerprint of the scheduler's data */
  uint64_t pieces;             /* number of pieces of the data */
  uint64_t corpus, generation; /* see piece.h */
  uint32_t topics, threads, staleness, batch;
  uint64_t memory, seed;
  double kappa, offset;
};

void lda_spec_fini(struct lda_spec *spec);

enum lda_do {
  LDA_DESCRIBE = 1, /* count documents, tokens, words */
  LDA_SWEEP = 2,    /* do `sweeps` sweeps, or for SVI a part of a pass */
};

struct lda_order {
  enum lda_do what;
  uint64_t sweep;                    /* number of sweeps done before this round */
  uint64_t sweeps;                   /* number of sweeps of this round; SVI: 1 if this round ends a pass */
  uint64_t words, tokens, documents; /* of the whole corpus */
  double beta;
  double *alpha; /* topics; NULL for DESCRIBE */
  size_t alpha_count;
  bool measures, optimises; /* in the last sweep of the round */
  uint64_t base;            /* SVI: apps/lda/svi/step.h */
  /* SVI: the part of a pass, and how the pass is divided: apps/lda/svi/train.c */
  uint64_t part, groups, splits;
};

void lda_order_fini(struct lda_order *order);

struct lda_reply {
  uint64_t documents, empty, tokens, words; /* words: the highest word number plus one */
  uint64_t skipped, unknown;
  uint64_t sampled;                /* tokens sampled in this round */
  uint64_t sampled_ns;             /* duration of sampling */
  double document_part, word_part; /* of log p(w, z): sample.h */
  double *alpha_sums;              /* topics; NULL if the round did not optimise */
  size_t alpha_count;
  double alpha_length, beta_sum;
  double waited_s, worked_s;
  uint64_t bytes_sent, bytes_received, memory;
  struct apps_digest digest; /* DESCRIBE: digest of the pieces that this worker has read */
};

void lda_reply_fini(struct lda_reply *reply);

/* Copies the options of a program, which may have been built with an older or newer <pawl/lda.h>. False if they
 * were not initialised, or set an option that is unknown here. */
bool lda_options_take(const struct pawl_lda_options *options, struct pawl_lda_options *is_out);

/* JSON texts. Writing returns NULL if it is out of memory; the caller frees the text with apps_json_free.
 * Reading returns false for any incomplete message. */
char *lda_spec_write(const struct lda_spec *spec);
bool lda_spec_read(const void *bytes, size_t size, struct lda_spec *spec_out);
char *lda_order_write(const struct lda_order *order);
bool lda_order_read(const void *bytes, size_t size, struct lda_order *order_out);
char *lda_reply_write(const struct lda_reply *reply);
bool lda_reply_read(const void *bytes, size_t size, struct lda_reply *reply_out);

/* --- vectors -------------------------------------------------------------------------------------------- */

/* The vector `job/counts`: rows of topic counts and marks (marks.h), one per word, and one for the totals.
 * For SVI `job/lambda`: rows of floats, also with the totals last. */
void lda_vector_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]);
void lda_vector_options(const struct lda_spec *spec, uint64_t words, struct pawl_vector_options *options_out);

/* The vector `job/steps` of SVI: one number, the count of steps begun. */
void lda_svi_steps_name(const struct lda_spec *spec, char name[PAWL_NAME_MAX + 1]);

/* --- a worker ------------------------------------------------------------------------------------------- */

struct lda_worker {
  struct pawl_worker *worker;
  struct pawl_session *session;
  struct lda_spec spec;
  struct pawl_data *data;
  struct pawl_words *vocabulary;
  struct pawl_lda_model *start;
  struct lda_piece **pieces; /* the worker's pieces, sorted by number */
  bool *is_new;              /* per piece: no other worker has worked on it */
  size_t piece_count;
  struct lda_block *blocks; /* NULL: not yet built */
  size_t block_count;
  bool is_resident; /* all blocks fit in memory and stay loaded */
  struct pawl_vector *counts;
  struct lda_sampler sampler;
  struct lda_crew *crew;
  struct lda_svi *svi; /* apps/lda/svi/svi.c; NULL at first */
  int32_t *totals;     /* totals n_k and marks of the table; NULL: to be pulled */
  double waited_s;
  uint64_t memory;
  struct apps_digest digest; /* digest of the rows read */
  char error[PAWL_LDA_TEXT];
};

/* Completes the version that a dead worker had begun on a piece: see marks.h. Loads and unloads the piece. */
pawl_status lda_recover(struct lda_worker *worker, struct lda_piece *piece);

/* One sweep over a block whose pieces are loaded. */
pawl_status lda_sweep_block(struct lda_worker *worker, struct lda_block *block);

/* Does a part of a pass of SVI over this worker's documents. */
pawl_status lda_svi_pass(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply);
void lda_svi_destroy(struct lda_worker *worker);

#endif
