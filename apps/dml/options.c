/* Options of training: defaults, and what is wrong with them. */
#include "apps/dml/options.h"

#include "apps/common/crew.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"
#include "apps/dml/nearest.h"

#define RANK_MAX (1u << 20)
#define EPOCHS_MAX 100000000
#define BATCH_MAX 1000000
#define THREADS_MAX 1024

static const struct pawl_metric_options defaults = {.neighbours = 5,
                                                    .margin = 0.2,
                                                    .weight = 2,
                                                    .rate = 0.3,
                                                    .epochs = 20,
                                                    .k = 3,
                                                    .held_share = 0.2,
                                                    .batch = 256,
                                                    .checkpoint_every = 1,
                                                    .seed = 1};

void pawl_metric_options_init_sized(struct pawl_metric_options *options, size_t struct_size) {
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_metric_options *is, char *error) {
  if (is->rank > RANK_MAX) return bad(error, "the rank must be from 1 to 1048576");
  if (is->neighbours < 1 || is->neighbours > DML_NEAREST_MAX)
    return bad(error, "the number of neighbours must be from 1 to 100");
  if (is->k < 1 || is->k > DML_NEAREST_MAX) return bad(error, "k must be from 1 to 100");
  if (!(is->margin >= 0 && is->margin <= 1)) return bad(error, "the margin must be from 0 to 1");
  if (!(is->weight >= 1e-6 && is->weight <= 1e6)) return bad(error, "the weight must be from 1e-6 to 1e6");
  if (!(is->rate >= 1e-9 && is->rate <= 1e9)) return bad(error, "the rate must be from 1e-9 to 1e9");
  if (!(is->held_share >= 0.01 && is->held_share <= 0.9))
    return bad(error, "the share of held-out rows must be from 0.01 to 0.9");
  if (is->epochs < 1 || is->epochs > EPOCHS_MAX)
    return bad(error, "the number of epochs must be from 1 to 100,000,000");
  if (is->batch < 1 || is->batch > BATCH_MAX) return bad(error, "a batch must have from 1 to 1,000,000 pairs");
  if (is->checkpoint_every < 1) return bad(error, "checkpoint_every must be at least 1 epoch");
  if (is->resume && !is->checkpoint) return bad(error, "no checkpoint was named from which to resume");
  if (is->threads > THREADS_MAX) return bad(error, "the number of threads must be from 1 to 1024");
  return true;
}

bool dml_options_resolve(const struct pawl_metric_options *options, struct pawl_metric_options *is_out, char *error) {
  struct pawl_metric_options is = defaults;
  if (!apps_sized_read(options, &is, sizeof is))
    return bad(error, "struct pawl_metric_options was not initialised with pawl_metric_options_init, or sets an option "
                      "that this version of pawl does not know");
  if (!check(&is, error)) return false;
  if (is.threads == 0) is.threads = apps_crew_processors();
  *is_out = is;
  return true;
}

bool pawl_metric_check(const struct pawl_metric_options *options, char error[PAWL_METRIC_TEXT]) {
  struct pawl_metric_options is;
  return dml_options_resolve(options, &is, error);
}
