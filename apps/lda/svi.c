/* Stochastic variational inference. */
#include "apps/lda/inside.h"

pawl_status lda_svi_pass(struct lda_worker *worker, const struct lda_order *order, struct lda_reply *reply) {
  (void)worker;
  (void)order;
  (void)reply;
  return PAWL_UNSUPPORTED;
}
