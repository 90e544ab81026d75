/* Topic models inside: for apps/lda/model*.c, top.c, fold.c, coherence.c, the command's export, and tests.
 *
 * A model is mostly zeros: of a word's K counts only those that are not 0 are kept, by rising topic. Counts
 * are whole and stay so; weights of variational inference are floats. Both are 4 bytes, and lie before their
 * topics in one piece of memory.
 */
#ifndef LDA_MODEL_INSIDE_H
#define LDA_MODEL_INSIDE_H

#include <stdio.h>
#include <string.h>

#include <pawl/lda.h>

enum lda_row_kind { LDA_ROW_NONE = 0, LDA_ROW_COUNTS = 1, LDA_ROW_WEIGHTS = 2 };

struct lda_row {
  char *entries; /* `count` values of 4 bytes, then `count` topics of 2 */
  uint32_t count;
  enum lda_row_kind kind; /* NONE: never set */
};

struct pawl_lda_model {
  struct pawl_lda_about about;
  double *alpha, *totals;
  double *inverse;          /* 1 / (n_k + V beta) */
  struct pawl_words *words; /* may be NULL */
  struct lda_row *rows;     /* about.words of them */
};

static inline const uint16_t *lda_row_topics(const struct lda_row *row) {
  return row->entries ? (const uint16_t *)(const void *)(row->entries + (size_t)row->count * 4) : NULL;
}

static inline double lda_row_value(const struct lda_row *row, uint32_t i) {
  int32_t count;
  float weight;
  if (row->kind == LDA_ROW_COUNTS) {
    memcpy(&count, row->entries + (size_t)i * 4, 4);
    return count;
  }
  memcpy(&weight, row->entries + (size_t)i * 4, 4);
  return (double)weight;
}

/* The word's row; an empty one if it is beyond the end. */
const struct lda_row *lda_model_row(const struct pawl_lda_model *model, uint64_t word);

/* The weight of one topic. */
double lda_row_weight(const struct lda_row *row, uint32_t topic);

/* Takes a row that is not there yet, with its memory, which is malloc's. Topics must rise and be the model's,
 * values must be positive. */
void lda_model_take(struct pawl_lda_model *model, uint64_t word, struct lda_row row);

/* Reads what a file has: `bytes`, which a 0 follows. What it says in `why` is a sentence without the file's
 * name. Nothing is allocated but in proportion to what is there. */
pawl_status lda_model_decode(const char *bytes, size_t size, struct pawl_lda_model **model_out, char *why);
pawl_status lda_model_fill(FILE *file, const void *model);

/* The most probable words of all topics in one walk through the model: `room` for each topic, of which the
 * number that is returned are filled. */
size_t lda_model_tops(const struct pawl_lda_model *model, size_t room, struct pawl_lda_word *words_out);

#endif
