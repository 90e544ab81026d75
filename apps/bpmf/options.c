/* Options of training: defaults, and what is wrong with them. */
#include "apps/bpmf/options.h"

#include <math.h>

#include "apps/common/crew.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

#define ITERATIONS_MAX 100000000
#define KEEP_MAX 1000
#define THREADS_MAX 1024
#define BURN_IN 10

static const struct pawl_bpmf_options defaults = {
    .rank = 16, .iterations = 100, .burn_in = PAWL_BPMF_BURN_IN_AUTO, .keep = 20, .seed = 1, .checkpoint_every = 10};

void pawl_bpmf_options_init_sized(struct pawl_bpmf_options *options, size_t struct_size) {
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_bpmf_options *is, char *error) {
  if (is->rank == 0 || is->rank > PAWL_BPMF_RANK_MAX) return bad(error, "the rank must be from 1 to 1024");
  if (is->iterations == 0 || is->iterations > ITERATIONS_MAX)
    return bad(error, "the number of iterations must be from 1 to 100,000,000");
  if (is->burn_in >= is->iterations)
    return bad(error, "the burn-in must be shorter than all iterations, or there are no samples");
  if (is->alpha != 0 && !(is->alpha >= 1e-9 && is->alpha <= 1e9))
    return bad(error, "alpha must be from 1e-9 to 1e9, or 0 to choose it");
  if (is->keep == 0 || is->keep > KEEP_MAX) return bad(error, "a model keeps from 1 to 1000 samples");
  if (!(is->test_share >= 0 && is->test_share < 1))
    return bad(error, "the share of test ratings must be at least 0 and below 1");
  if (is->threads > THREADS_MAX) return bad(error, "the number of threads must be from 1 to 1024");
  if (is->checkpoint_every == 0) return bad(error, "there must be at least one iteration between checkpoints");
  if (is->resume && !is->checkpoint) return bad(error, "no checkpoint was named from which to resume");
  return true;
}

bool bpmf_options_resolve(const struct pawl_bpmf_options *options, struct pawl_bpmf_options *is_out, char *error) {
  struct pawl_bpmf_options is = defaults;
  if (!apps_sized_read(options, &is, sizeof is))
    return bad(error,
               "struct pawl_bpmf_options was not initialised with pawl_bpmf_options_init, or sets an option that "
               "this version of pawl does not know");
  if (is.burn_in == PAWL_BPMF_BURN_IN_AUTO) is.burn_in = is.iterations / 2 < BURN_IN ? is.iterations / 2 : BURN_IN;
  if (is.threads == 0) is.threads = apps_crew_processors();
  *is_out = is;
  return check(&is, error);
}

bool pawl_bpmf_check(const struct pawl_bpmf_options *options, char error[PAWL_BPMF_TEXT]) {
  struct pawl_bpmf_options is;
  return bpmf_options_resolve(options, &is, error);
}
