/* Urns: see urn.h. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/lda/urn.h"

/* Writing a token is much cheaper than making a cell of an alias table. The tokens of an urn should fit into
 * the first-level cache. */
enum { TOKENS_MOST = 8192, TOKENS_FOR_A_TOPIC = 32, AT_ONCE = 4 };

bool lda_urn_init(struct lda_urn *urn, uint32_t topics) {
  *urn = (struct lda_urn){0};
  urn->topics = apps_alloc((topics + 1) * sizeof *urn->topics);
  urn->tokens = apps_alloc((TOKENS_MOST + AT_ONCE) * sizeof *urn->tokens);
  if (urn->topics && urn->tokens && lda_alias_init(&urn->alias, topics)) return true;
  lda_urn_fini(urn);
  return false;
}

void lda_urn_fini(struct lda_urn *urn) {
  apps_free(urn->topics);
  apps_free(urn->tokens);
  lda_alias_fini(&urn->alias);
  memset(urn, 0, sizeof *urn);
}

/* Stores every topic, and keeps it only if its count is above zero: this avoids an unpredictable branch. */
static inline void look(struct lda_urn *urn, const int32_t *counts, uint32_t topic) {
  int32_t count = counts[topic], is_there = count > 0;
  urn->topics[urn->count] = (uint16_t)topic;
  urn->count += (uint32_t)is_there;
  urn->sum += (uint64_t)(is_there ? count : 0);
}

static void find_topics(struct lda_urn *urn, const int32_t *counts, uint32_t topics) {
  uint32_t k = 0;
  urn->count = 0;
  urn->sum = 0;
  for (; k + 8 <= topics; k += 8) { /* rows are mostly zeros when K is large */
    int32_t any = 0;
    for (uint32_t i = 0; i < 8; i++) any |= counts[k + i];
    if (any == 0) continue;
    for (uint32_t i = 0; i < 8; i++) look(urn, counts, k + i);
  }
  for (; k < topics; k++) look(urn, counts, k);
}

/* Writes several copies at a time. The next topic overwrites the surplus. */
static void put_in(struct lda_urn *urn, const int32_t *counts) {
  uint16_t *at = urn->tokens;
  for (uint32_t i = 0; i < urn->count; i++) {
    uint16_t topic = urn->topics[i], *end = at + counts[topic];
    uint64_t copies = (uint64_t)topic * UINT64_C(0x0001000100010001);
    for (; at < end; at += AT_ONCE) memcpy(at, &copies, sizeof copies);
    at = end;
  }
}

void lda_urn_fill(struct lda_urn *urn, const int32_t *counts, uint32_t topics) {
  find_topics(urn, counts, topics);
  urn->has_tokens = urn->sum <= TOKENS_MOST && urn->sum <= (uint64_t)TOKENS_FOR_A_TOPIC * urn->count;
  if (urn->has_tokens)
    put_in(urn, counts);
  else
    lda_alias_of_counts(&urn->alias, counts, topics, urn->sum);
}
