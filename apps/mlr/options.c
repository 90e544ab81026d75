/* Options of training: defaults, and what is wrong with them. */
#include "apps/mlr/options.h"

#include <math.h>

#include "apps/common/crew.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

#define EPOCHS_MAX 100000000
#define BATCH_MAX 100000000
#define THREADS_MAX 1024

static const struct pawl_mlr_options defaults = {.method = PAWL_MLR_SDCA, .l2 = 1, .seed = 1, .checkpoint_every = 1};

void pawl_mlr_options_init_sized(struct pawl_mlr_options *options, size_t struct_size) {
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check_method(const struct pawl_mlr_options *is, char *error) {
  if (is->method != PAWL_MLR_SGD && is->method != PAWL_MLR_SDCA) return bad(error, "the method must be sgd or sdca");
  if (is->method == PAWL_MLR_SDCA && !(is->l2 >= 1e-9))
    return bad(error, "sdca needs a penalty: l2 must be at least 1e-9; or use sgd");
  if (is->method == PAWL_MLR_SDCA && (is->rate != 0 || is->batch != 0 || is->schedule != PAWL_MLR_COSINE))
    return bad(error, "sdca has no learning rate, no schedule and no batches; use sgd");
  if (is->schedule != PAWL_MLR_COSINE && is->schedule != PAWL_MLR_CONSTANT && is->schedule != PAWL_MLR_INVERSE)
    return bad(error, "the schedule must be cosine, constant or inverse");
  if (is->method == PAWL_MLR_SGD && is->tolerance > 0 && is->l2 == 0)
    return bad(error, "without a penalty the distance to the optimum is not known; omit the tolerance, or raise l2");
  return true;
}

static bool check(const struct pawl_mlr_options *is, char *error) {
  if (!(is->l2 >= 0 && is->l2 <= 1e15)) return bad(error, "l2 must be from 0 to 1e15");
  if (!check_method(is, error)) return false;
  if (is->epochs > EPOCHS_MAX) return bad(error, "the number of epochs must be from 1 to 100,000,000");
  if (is->tolerance != 0 && !(is->tolerance >= 1e-12 && is->tolerance <= 1))
    return bad(error, "the tolerance must be from 1e-12 to 1");
  if (is->batch > BATCH_MAX) return bad(error, "a batch must have from 1 to 100,000,000 rows");
  if (is->rate != 0 && !(is->rate >= 1e-30 && is->rate <= 1e30))
    return bad(error, "the learning rate must be from 1e-30 to 1e30");
  if (is->threads > THREADS_MAX) return bad(error, "the number of threads must be from 1 to 1024");
  if (is->checkpoint_every == 0) return bad(error, "there must be at least one epoch between checkpoints");
  if (is->resume && !is->checkpoint) return bad(error, "no checkpoint was named from which to resume");
  return true;
}

bool mlr_options_resolve(const struct pawl_mlr_options *options, struct pawl_mlr_options *is_out, char *error) {
  struct pawl_mlr_options is = defaults;
  if (!apps_sized_read(options, &is, sizeof is))
    return bad(error, "struct pawl_mlr_options was not initialised with pawl_mlr_options_init, or sets an option that "
                      "this version of pawl does not know");
  if (!check(&is, error)) return false;
  bool is_sgd = is.method == PAWL_MLR_SGD;
  if (is.epochs == 0) is.epochs = is_sgd ? 20 : 1000;
  if (is.tolerance == 0 && !is_sgd) is.tolerance = 1e-3;
  if (is.batch == 0 && is_sgd) is.batch = 64;
  if (is.threads == 0) is.threads = apps_crew_processors();
  *is_out = is;
  return true;
}

bool pawl_mlr_check(const struct pawl_mlr_options *options, char error[PAWL_MLR_TEXT]) {
  struct pawl_mlr_options is;
  return mlr_options_resolve(options, &is, error);
}
