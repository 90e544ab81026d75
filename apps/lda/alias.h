/* Alias tables (Walker 1977): drawing one of n things with given weights in constant time, after O(n) of
 * preparation. */
#ifndef LDA_ALIAS_H
#define LDA_ALIAS_H

#include <stdbool.h>
#include <stdint.h>

/* Cell i stands for its own thing below the threshold, and above it for the other's. */
struct lda_cell {
  uint32_t threshold, own, other;
};

struct lda_alias {
  uint32_t count, room;
  struct lda_cell *cells;
  uint64_t *left; /* room for the making */
  uint32_t *small, *large;
};

bool lda_alias_init(struct lda_alias *alias, uint32_t room); /* false: no memory */
void lda_alias_fini(struct lda_alias *alias);                /* a struct of zeros is fine */

/* Of the topics whose counts are not zero; at least one is not, and all together are `sum`. */
void lda_alias_of_counts(struct lda_alias *alias, const int32_t *counts, uint32_t topics, uint64_t sum);

/* Of positive weights. */
void lda_alias_of_weights(struct lda_alias *alias, const double *weights, uint32_t topics);

static inline uint32_t lda_alias_draw(const struct lda_alias *alias, uint32_t bits) {
  uint64_t product = (uint64_t)bits * alias->count;
  const struct lda_cell *cell = &alias->cells[product >> 32];
  uint32_t is_other =
      0 - (uint32_t)((uint32_t)product >= cell->threshold); /* without a branch that nobody can foresee */
  return cell->own ^ ((cell->own ^ cell->other) & is_other);
}

#endif
