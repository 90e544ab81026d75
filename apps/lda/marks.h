/* Marks: the progress of each piece, stored in the same rows that the piece changes (docs/lda.md, "Exact counts").
 *
 * A row of the counts has K counts and then marks: one bit for each piece of the corpus, 32 per column. Each
 * *version* of a piece pushes every row whose word the piece has exactly once, even if the counts do not change,
 * and with the same push flips the piece's bit. A row is changed atomically. So the bit of piece p in the row of
 * word w tells which of two consecutive versions of p the row has counted: in version v the bit is v & 1. A worker
 * that takes over a piece from one that died during a push reads the rows, and knows for each word which of the two
 * versions of its topics, both on disk, the servers have counted.
 *
 * Row V, after the words, has the totals n_k. It belongs to every piece and is pushed last.
 */
#ifndef LDA_MARKS_H
#define LDA_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t lda_marks_columns(uint64_t pieces) { return (uint32_t)((pieces + 31) / 32); }

/* The bit of a piece in a row of `topics` counts with marks. */
static inline uint32_t lda_mark_of(const int32_t *row, uint32_t topics, uint64_t piece) {
  return (uint32_t)row[topics + piece / 32] >> (piece % 32) & 1;
}

/* Adds to a change of a row the flip of the piece's bit from `version` to the next. Additions wrap around, so
 * bit 31 needs no special case. */
static inline void lda_mark_flip(int32_t *change, uint32_t topics, uint64_t piece, uint64_t version) {
  uint32_t *mark = (uint32_t *)&change[topics + piece / 32], bit = UINT32_C(1) << (piece % 32);
  *mark = version & 1 ? *mark - bit : *mark + bit;
}

/* Whether the row has the version after `version`. */
static inline bool lda_mark_is_ahead(const int32_t *row, uint32_t topics, uint64_t piece, uint64_t version) {
  return lda_mark_of(row, topics, piece) != (version & 1);
}

#endif
