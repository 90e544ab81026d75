/* Iterations by this process, with several threads: a way of run.h. */
#include <inttypes.h>
#include <math.h>

#include "apps/bpmf/run.h"
#include "apps/common/clock.h"
#include "apps/common/model_file.h"

static pawl_status nothing(struct bpmf_run *run) {
  (void)run;
  return PAWL_OK;
}

static pawl_status advance(struct bpmf_run *run, size_t most, struct bpmf_figures figures_out[BPMF_ADVANCE_MAX],
                           size_t *count_out) {
  size_t blocks = run->sampler.sides[BPMF_USERS].blocks;
  int64_t begun = apps_now();
  (void)most;
  pawl_status status = bpmf_sampler_step(&run->sampler);
  uint64_t iteration = run->sampler.iteration;
  if (status == PAWL_DIVERGED) return bpmf_run_diverged(run, iteration);
  if (status) return apps_say(run->error, status, "iteration %" PRIu64 ": %s", iteration, pawl_status_text(status));
  figures_out->seconds = fmax(apps_seconds_since(begun), 1e-9);
  bpmf_measure_blocks(&run->tests, iteration > run->is.burn_in, 0, blocks);
  bpmf_measure_blocks(&run->training, iteration > run->is.burn_in, 0, blocks);
  figures_out->tests = bpmf_measure_sum(&run->tests);
  figures_out->training = bpmf_measure_sum(&run->training);
  *count_out = 1;
  return PAWL_OK;
}

static pawl_status rows(struct bpmf_run *run, float *rows_out) {
  bpmf_sampler_get(&run->sampler, rows_out);
  return PAWL_OK;
}

static void end(struct bpmf_run *run) { (void)run; }

const struct bpmf_way bpmf_alone = {nothing, advance, rows, nothing, end};
