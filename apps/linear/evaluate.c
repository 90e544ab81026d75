/* Loss and accuracy with the weights on the servers. The code is plain, as it computes the final figures. */
#include <stdlib.h>

#include "apps/linear/inside.h"
#include "apps/linear/losses.h"
#include "apps/linear/minibatch.h"

static void judge(const struct linear_worker *worker, const struct linear_order *order, double label, double weight,
                  double z, struct linear_reply *reply) {
  double y = linear_y(&worker->spec, order, label);
  reply->loss += linear_c(&worker->spec, y) * weight * linear_loss_value(worker->spec.loss, y, z);
  reply->loss_of_nothing += linear_c(&worker->spec, y) * weight * linear_loss_value(worker->spec.loss, y, 0);
  reply->correct += !linear_is_regression(worker->spec.loss) && (z > 0) == (y > 0);
  reply->rows++;
}

static pawl_status evaluate_share(struct linear_worker *worker, const struct linear_order *order,
                                  struct linear_reply *reply) {
  const struct linear_share *share = &worker->share;
  double bias = 0, *w = apps_alloc_zero(share->features + 1, sizeof *w),
         *z = apps_alloc_zero(share->rows + 1, sizeof *z);
  pawl_status status = w && z ? linear_pull_weights(worker, share->keys, share->features, w, &bias) : PAWL_NO_MEMORY;
  for (size_t j = 0; j < share->features && !status; j++)
    for (uint64_t k = share->starts[j]; w[j] != 0 && k < share->starts[j + 1]; k++)
      z[share->row_of[k]] += w[j] * (double)share->values[k];
  for (size_t i = 0; i < share->rows && !status; i++)
    judge(worker, order, (double)share->labels[i], (double)share->weights[i], z[i] + bias, reply);
  apps_free(w);
  apps_free(z);
  return status;
}

struct evaluation {
  struct linear_worker *worker;
  const struct linear_order *order;
  struct linear_reply *reply;
  struct linear_minibatch minibatch;
};

static pawl_status evaluate_piece(void *context, size_t piece, struct pawl_batch *batch) {
  struct evaluation *is = context;
  (void)piece;
  pawl_status status = linear_minibatch_fill(&is->minibatch, batch, 0, batch->rows);
  if (!status)
    status = linear_pull_weights(is->worker, is->minibatch.keys, is->minibatch.features, is->minibatch.weights,
                                 &is->minibatch.bias);
  for (size_t i = 0; i < batch->rows && !status; i++)
    judge(is->worker, is->order, (double)batch->labels[i], batch->weights ? (double)batch->weights[i] : 1,
          linear_minibatch_score(&is->minibatch, i), is->reply);
  pawl_batch_destroy(batch);
  return status;
}

pawl_status linear_evaluate(struct linear_worker *worker, const struct linear_order *order,
                            struct linear_reply *reply) {
  if (!worker->spec.method->streams) return evaluate_share(worker, order, reply);
  if (worker->spec.reduces && !worker->dense) {
    reply->lacks = true;
    return PAWL_OK;
  }
  struct evaluation reading = {.worker = worker, .order = order, .reply = reply};
  pawl_status status = linear_read_pieces(worker, evaluate_piece, &reading);
  linear_minibatch_fini(&reading.minibatch);
  return status;
}
