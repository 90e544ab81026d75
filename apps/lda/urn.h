/* An urn: a row of the table as something to draw tokens' topics from, each with a chance that is its count.
 *
 * For most words the tokens are simply put in: a topic stands in the urn as often as the word has it, and a
 * draw is one look. Where that would be many for each topic, an alias table takes their place.
 */
#ifndef LDA_URN_H
#define LDA_URN_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/lda/alias.h"

struct lda_urn {
  uint16_t *topics; /* those with a count above zero, rising, */
  uint32_t count;   /* of which there are so many, */
  uint64_t sum;     /* with so many tokens */
  uint16_t *tokens; /* if they are put in; */
  bool has_tokens;
  struct lda_alias alias; /* else */
};

bool lda_urn_init(struct lda_urn *urn, uint32_t topics); /* false: no memory */
void lda_urn_fini(struct lda_urn *urn);                  /* a struct of zeros is fine */

/* `topics` is how many counts there are. Without any above zero nothing may be drawn. */
void lda_urn_fill(struct lda_urn *urn, const int32_t *counts, uint32_t topics);

static inline uint32_t lda_urn_draw(const struct lda_urn *urn, uint32_t bits) {
  return urn->has_tokens ? urn->tokens[(uint64_t)bits * urn->sum >> 32] : lda_alias_draw(&urn->alias, bits);
}

#endif
