/* Training in one process. */
#include <math.h>

#include "apps/cnn/run.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

static pawl_status begin(struct cnn_run *run) {
  struct cnn_solver *solver = run->state = apps_alloc_zero(1, sizeof *solver);
  if (!solver) return apps_say(run->error, PAWL_NO_MEMORY, "out of memory");
  return cnn_solver_init(solver, &run->plan, run->images, run->model, run->error);
}

static pawl_status take(struct cnn_run *run, uint64_t step, uint64_t most, uint64_t *taken_out,
                        struct cnn_tally *tally) {
  struct cnn_solver *solver = run->state;
  struct cnn_sgd sgd = cnn_plan_sgd(&run->plan, step);
  (void)most;
  double loss = cnn_solver_gradient(solver, step, 0, cnn_plan_size(&run->plan, step), tally);
  if (!isfinite(loss)) {
    run->result.steps = step + 1;
    return cnn_run_diverged(run, "the loss");
  }
  cnn_sgd_step(run->model->net, &sgd, solver->gradient, solver->velocity, run->model->parameters);
  *taken_out = 1;
  return PAWL_OK;
}

static pawl_status fetch(struct cnn_run *run) {
  (void)run;
  return PAWL_OK;
}

static void end(struct cnn_run *run) {
  struct cnn_solver *solver = run->state;
  if (solver) cnn_solver_fini(solver);
  apps_free(solver);
  run->state = NULL;
}

const struct cnn_way cnn_alone = {.begin = begin, .take = take, .fetch = fetch, .end = end};
