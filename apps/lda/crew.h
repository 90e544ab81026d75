/* A worker's threads: each has its scratch, and buffers for rows on their way. */
#ifndef LDA_CREW_H
#define LDA_CREW_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/lda/block.h"
#include "apps/lda/sample.h"

enum { LDA_BUFFERS = 4 }; /* slices of a thread that are under way */

/* Rows of a slice: as they came, and what is to be added to them. In memory that servers on this machine read
 * in place. */
struct lda_rows {
  int32_t *rows, *changes;
  struct pawl_task *pull, *push;
};

struct lda_hand {
  struct lda_scratch scratch;
  struct lda_rows buffers[LDA_BUFFERS];
  const struct lda_slice *slices[LDA_BUFFERS]; /* that they are for; NULL: none */
  uint32_t *totals;                            /* changes of n_k, wrapping around as the row of totals does */
  int64_t waited_ns;
  pawl_status status;
};

struct lda_crew {
  struct pawl_session *session;
  uint32_t count, topics;
  size_t rows, width;
  struct lda_hand hands[];
};

/* `rows` of `width` values for each buffer; `longest`: tokens of a document. */
pawl_status lda_crew_create(struct pawl_session *session, uint32_t threads, uint32_t topics, size_t width, size_t rows,
                            size_t longest, struct lda_crew **crew_out);
void lda_crew_destroy(struct lda_crew *crew); /* NULL is fine. Waits for what is under way */
uint64_t lda_crew_bytes(const struct lda_crew *crew);

/* Has every thread do it, this one among them, and waits. The first failure of any. */
pawl_status lda_crew_run(struct lda_crew *crew, pawl_status (*work)(void *context, struct lda_hand *hand),
                         void *context);

/* Waits for a task, adding to the hand's waiting time, and forgets it. A NULL has finished. */
pawl_status lda_hand_finish(struct lda_hand *hand, struct pawl_task **task);

#endif
