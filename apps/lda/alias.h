/* Alias tables (Walker 1977): draw one of n items with given weights in constant time, after O(n) of
 * preparation. */
#ifndef LDA_ALIAS_H
#define LDA_ALIAS_H

#include <stdbool.h>
#include <stdint.h>

/* Cell i stands for item i below the threshold, and for the other item above it. */
struct lda_cell {
  uint32_t threshold, own, other;
};

struct lda_alias {
  uint32_t count, room;
  struct lda_cell *cells;
  uint64_t *left; /* scratch memory for building the table */
  uint32_t *small, *large;
};

bool lda_alias_init(struct lda_alias *alias, uint32_t room); /* false: no memory */
void lda_alias_fini(struct lda_alias *alias);                /* a struct of zeros is fine */

/* Builds a table of the topics with a count above zero. At least one must be, and `sum` is their total. */
void lda_alias_of_counts(struct lda_alias *alias, const int32_t *counts, uint32_t topics, uint64_t sum);

/* Builds a table of positive weights. */
void lda_alias_of_weights(struct lda_alias *alias, const double *weights, uint32_t topics);

static inline uint32_t lda_alias_draw(const struct lda_alias *alias, uint32_t bits) {
  uint64_t product = (uint64_t)bits * alias->count;
  const struct lda_cell *cell = &alias->cells[product >> 32];
  uint32_t is_other = 0 - (uint32_t)((uint32_t)product >= cell->threshold); /* avoids an unpredictable branch */
  return cell->own ^ ((cell->own ^ cell->other) & is_other);
}

#endif
