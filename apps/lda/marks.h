/* Marks: how far each piece has got, in the very rows that it changes (design: "stores, under the same push,
 * how far it has got").
 *
 * A row of the counts is K counts and then marks, one bit for each piece of the corpus, 32 to a column. Each
 * *version* of a piece pushes every row whose word the piece has exactly once, also if its counts do not
 * change, and with the change flips the piece's bit. Since a row is changed whole or not at all, the bit of
 * piece p in the row of word w says of which of two neighbouring versions p's part of that row is: in version
 * v the bit is v & 1. So whoever takes over a piece from a worker that died in the middle of a push reads the
 * rows, and knows word by word which of the two versions of its topics, both of which are on disk, the
 * servers have counted.
 *
 * Row V, beyond the words, has the totals n_k; it belongs to every piece and is pushed last.
 */
#ifndef LDA_MARKS_H
#define LDA_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t lda_marks_columns(uint64_t pieces) { return (uint32_t)((pieces + 31) / 32); }

/* The piece's bit in a row of `topics` counts with its marks. */
static inline uint32_t lda_mark_of(const int32_t *row, uint32_t topics, uint64_t piece) {
  return (uint32_t)row[topics + piece / 32] >> (piece % 32) & 1;
}

/* Adds to a change of a row what turns the piece's bit from that of `version` into that of the next.
 * Additions wrap around, so that bit 31 is like the others. */
static inline void lda_mark_flip(int32_t *change, uint32_t topics, uint64_t piece, uint64_t version) {
  uint32_t *mark = (uint32_t *)&change[topics + piece / 32], bit = UINT32_C(1) << (piece % 32);
  *mark = version & 1 ? *mark - bit : *mark + bit;
}

/* Whether the row has the version that comes after `version`. */
static inline bool lda_mark_is_ahead(const int32_t *row, uint32_t topics, uint64_t piece, uint64_t version) {
  return lda_mark_of(row, topics, piece) != (version & 1);
}

#endif
