/* An urn: draws topics from a row of the table, each with a probability proportional to its count.
 *
 * For most words the urn lists each topic as often as it is counted, and a draw is one lookup. If the list
 * would be long per topic, an alias table replaces it.
 */
#ifndef LDA_URN_H
#define LDA_URN_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lda/alias.h"

struct lda_urn {
  uint16_t *topics; /* topics with a count above zero, ascending */
  uint32_t count;   /* number of these topics */
  uint64_t sum;     /* sum of their counts */
  uint16_t *tokens; /* list of tokens, if it is used */
  bool has_tokens;
  struct lda_alias alias; /* used instead of `tokens` if the list would be long */
};

bool lda_urn_init(struct lda_urn *urn, uint32_t topics); /* false: no memory */
void lda_urn_fini(struct lda_urn *urn);                  /* a struct of zeros is fine */

/* Fills the urn with `topics` counts. If all are zero, nothing may be drawn. */
void lda_urn_fill(struct lda_urn *urn, const int32_t *counts, uint32_t topics);

static inline uint32_t lda_urn_draw(const struct lda_urn *urn, uint32_t bits) {
  return urn->has_tokens ? urn->tokens[(uint64_t)bits * urn->sum >> 32] : lda_alias_draw(&urn->alias, bits);
}

#endif
