#include "apps/cnn/solver.h"

#include <string.h>

#include "apps/cnn/feed.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

struct cnn_sgd cnn_plan_sgd(const struct cnn_plan *plan, uint64_t step) {
  return (struct cnn_sgd){.rate = cnn_sgd_rate(plan->schedule, plan->rate, step, cnn_plan_steps(plan)),
                          .momentum = plan->momentum,
                          .decay = plan->decay};
}

pawl_status cnn_solver_init(struct cnn_solver *solver, const struct cnn_plan *plan, const struct pawl_images *images,
                            struct pawl_cnn_model *model, char *error) {
  size_t parameters = model->net->parameters, batch = (size_t)plan->batch;
  *solver = (struct cnn_solver){.plan = *plan, .images = images, .model = model};
  pawl_status status = cnn_pass_create(model->net, batch, true, &solver->pass);
  solver->gradient = apps_alloc_zero(parameters, sizeof *solver->gradient);
  solver->velocity = apps_alloc_zero(parameters, sizeof *solver->velocity);
  solver->order = apps_alloc_zero((size_t)plan->images, sizeof *solver->order);
  solver->labels = apps_alloc_zero(batch, 1);
  if (!status && (!solver->gradient || !solver->velocity || !solver->order || !solver->labels)) status = PAWL_NO_MEMORY;
  if (!status) return PAWL_OK;
  cnn_solver_fini(solver);
  return apps_say(error, status, "no memory for batches of %zu images; use smaller ones", batch);
}

void cnn_solver_fini(struct cnn_solver *solver) {
  cnn_pass_destroy(solver->pass);
  apps_free(solver->gradient);
  apps_free(solver->velocity);
  apps_free(solver->order);
  apps_free(solver->labels);
  *solver = (struct cnn_solver){0};
}

static void enter_epoch(struct cnn_solver *solver, uint64_t epoch) {
  if (solver->epoch == epoch) return;
  struct apps_random random = apps_random_of(solver->plan.seed, CNN_FOR_ORDER, epoch, 0);
  apps_shuffle(&random, solver->order, (size_t)solver->plan.images);
  solver->epoch = epoch;
}

double cnn_solver_gradient(struct cnn_solver *solver, uint64_t step, size_t first, size_t count,
                           struct cnn_tally *tally) {
  const struct pawl_cnn_model *model = solver->model;
  const uint8_t *labels = pawl_images_labels(solver->images);
  struct cnn_drops drops = {.seed = solver->plan.seed, .step = step, .first = first};
  uint64_t epoch = cnn_plan_epoch(&solver->plan);
  size_t at = (size_t)(step % epoch * solver->plan.batch) + first, wrong;
  if (count == 0) {
    memset(solver->gradient, 0, model->net->parameters * sizeof *solver->gradient);
    return 0;
  }
  enter_epoch(solver, step / epoch + 1);
  cnn_feed(solver->images, &model->about, solver->order + at, 0, count, cnn_pass_input(solver->pass));
  for (size_t i = 0; i < count; i++) solver->labels[i] = labels[solver->order[at + i]];
  (void)cnn_pass_forward(solver->pass, model->parameters, count, &drops);
  double loss = cnn_pass_backward(solver->pass, model->parameters, count, solver->labels, solver->gradient, &wrong);
  tally->loss += loss;
  tally->wrong += wrong;
  tally->done += count;
  return loss;
}
