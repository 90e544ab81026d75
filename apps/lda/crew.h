/* The threads of a worker, each with scratch memory and buffers for rows in flight. */
#ifndef LDA_CREW_H
#define LDA_CREW_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "apps/lda/block.h"
#include "apps/lda/sample.h"

enum { LDA_BUFFERS = 4 }; /* slices in flight per thread */

/* The rows of a slice as pulled, and the changes to push. The memory is shared with servers on this
 * machine. */
struct lda_rows {
  int32_t *rows, *changes;
  struct pawl_task *pull, *push;
};

struct lda_hand {
  struct lda_scratch scratch;
  struct lda_rows buffers[LDA_BUFFERS];
  const struct lda_slice *slices[LDA_BUFFERS]; /* slice of each buffer; NULL: none */
  uint32_t *totals;                            /* changes of n_k; they wrap around, as the row of totals does */
  int64_t waited_ns;
  pawl_status status;
};

struct lda_crew {
  struct pawl_session *session;
  uint32_t count, topics;
  size_t rows, width;
  struct lda_hand hands[];
};

/* Each buffer has `rows` rows of `width` values. `longest` is the number of tokens of the longest
 * document. */
pawl_status lda_crew_create(struct pawl_session *session, uint32_t threads, uint32_t topics, size_t width, size_t rows,
                            size_t longest, struct lda_crew **crew_out);
void lda_crew_destroy(struct lda_crew *crew); /* NULL is fine. Waits for tasks in flight */
uint64_t lda_crew_bytes(const struct lda_crew *crew);

/* Runs `work` in every thread, including this one, and waits. Returns the first failure. */
pawl_status lda_crew_run(struct lda_crew *crew, pawl_status (*work)(void *context, struct lda_hand *hand),
                         void *context);

/* Waits for a task, adds to the waiting time of the thread, and releases the task. NULL counts as
 * finished. */
pawl_status lda_hand_finish(struct lda_hand *hand, struct pawl_task **task);

#endif
