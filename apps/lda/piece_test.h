/* What the tests of pieces share: batches that are written down as text, and what a batch's piece must be. */
#ifndef LDA_PIECE_TEST_H
#define LDA_PIECE_TEST_H

#include <unistd.h>

#include "base/testing.h"
#include "apps/lda/piece.h"
#include "apps/lda/random.h"
#include "apps/lda/sample.h"

enum { BATCH_ROWS = 160, BATCH_ENTRIES = 1024 };

/* Documents as the readers give them: words are numbered from 1. */
struct documents {
  struct pawl_batch batch;
  uint64_t starts[BATCH_ROWS + 1], ids[BATCH_ENTRIES];
  float values[BATCH_ENTRIES];
};

static inline void clear_documents(struct documents *documents) {
  memset(documents, 0, sizeof *documents);
  documents->batch.starts = documents->starts;
  documents->batch.ids = documents->ids;
  documents->batch.values = documents->values;
}

static inline void add_word(struct documents *documents, uint64_t id, float value) {
  struct pawl_batch *batch = &documents->batch;
  assert_in_range(batch->entries, 0, BATCH_ENTRIES - 1);
  documents->ids[batch->entries] = id;
  documents->values[batch->entries++] = value;
  if (id > batch->max_id) batch->max_id = id;
}

static inline void end_document(struct documents *documents) {
  assert_in_range(documents->batch.rows, 0, BATCH_ROWS - 1);
  documents->starts[++documents->batch.rows] = documents->batch.entries;
}

/* Documents of words below `words`, some of which are empty. */
static inline void draw_documents(struct documents *documents, size_t rows, uint64_t words, uint64_t seed) {
  struct lda_random random = {seed};
  clear_documents(documents);
  for (size_t row = 0; row < rows; row++) {
    for (uint64_t w = 1; w <= words && row % 5 != 3; w++)
      if (lda_draw(&random) % 4 == 0) add_word(documents, w, (float)(1 + lda_draw(&random) % 3));
    end_document(documents);
  }
}

#endif
