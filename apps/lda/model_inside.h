/* Topic models inside: for apps/lda/model*.c, top.c, fold.c, coherence.c, the command's export, and tests.
 *
 * A model is mostly zeros: of a word's K counts only those that are not 0 are kept, by ascending topic. Counts are
 * integers; weights of variational inference are floats. Both have 4 bytes, and precede their topics in one block of
 * memory.
 */
#ifndef LDA_MODEL_INSIDE_H
#define LDA_MODEL_INSIDE_H

#include <stdio.h>
#include <string.h>

#include <pawl/lda.h>

#include "apps/common/memory.h"

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

/* The row of a word; an empty row if the word is out of range. */
const struct lda_row *lda_model_row(const struct pawl_lda_model *model, uint64_t word);

/* The weight of one topic. */
double lda_row_weight(const struct lda_row *row, uint32_t topic);

/* Takes over a row that is not set yet, with its memory, allocated by apps_alloc. Topics must be ascending and
 * in range, values positive. */
void lda_model_take(struct pawl_lda_model *model, uint64_t word, struct lda_row row);

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name.
 * Allocates only in proportion to the size of the file. */
pawl_status lda_model_decode(const char *bytes, size_t size, struct pawl_lda_model **model_out, char *why);
pawl_status lda_model_fill(FILE *file, const void *model);

/* Finds the most probable words of all topics in one pass through the model. `words` has room for `room` per
 * topic; returns how many per topic are set. */
size_t lda_model_tops(const struct pawl_lda_model *model, size_t room, struct pawl_lda_word *words_out);

#endif
