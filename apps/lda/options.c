/* Options of the training of topic models: defaults and validation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/common/sized.h"
#include "apps/lda/inside.h"

static void set_defaults(struct pawl_lda_options *options) {
  memset(options, 0, sizeof *options);
  options->method = PAWL_LDA_GIBBS;
  pawl_data_options_init(&options->reading);
  pawl_words_options_init(&options->building);
  options->topics = 100;
  options->alpha = 0.1;
  options->beta = 0.01;
  options->staleness = 1;
  options->memory = UINT64_C(1) << 30;
  options->seed = 1;
  options->batch = 2048;
  options->kappa = 0.6;
  options->offset = 1;
  options->measure_every = 10;
  options->workers = 1;
}

void pawl_lda_options_init_sized(struct pawl_lda_options *options, size_t struct_size) {
  struct pawl_lda_options defaults;
  set_defaults(&defaults);
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

bool lda_options_take(const struct pawl_lda_options *options, struct pawl_lda_options *is_out) {
  set_defaults(is_out);
  return apps_sized_read(options, is_out, sizeof *is_out);
}

static bool is_positive(double value) { return isfinite(value) && value > 0; }

static const char *wrong_with_model(const struct pawl_lda_options *options) {
  if (options->method != PAWL_LDA_GIBBS && options->method != PAWL_LDA_SVI) return "unknown method";
  if (options->topics < 1 || options->topics > PAWL_LDA_TOPICS_MAX)
    return "the number of topics must be from 1 to 65000";
  if (!is_positive(options->alpha) || options->alpha > 1e6) return "alpha must be a positive number";
  if (!is_positive(options->beta) || options->beta > 1e6) return "beta must be a positive number";
  if (options->staleness > UINT16_MAX) return "the staleness must be below 65536 sweeps";
  return NULL;
}

static const char *wrong_with_svi(const struct pawl_lda_options *options) {
  if (options->method != PAWL_LDA_SVI) return NULL;
  if (options->batch < 1) return "the batch must have at least one document";
  if (!(options->kappa > 0.5 && options->kappa <= 1)) return "kappa must be above 0.5 and at most 1";
  if (!(options->offset >= 0) || !isfinite(options->offset)) return "the offset must not be negative";
  if (options->resume) return "svi cannot be resumed; start over without --resume";
  if (options->start) return "svi cannot start from a model; use --method gibbs";
  return NULL;
}

static const char *wrong_with_paths(const struct pawl_lda_options *options) {
  if (options->path_count < 1) return "no data given; name at least one file";
  for (size_t i = 0; i < options->path_count; i++)
    if (options->paths[i][0] != '/') return "paths of the data must be absolute, because workers open them too";
  if (!options->directory || options->directory[0] != '/' || strlen(options->directory) > 3000)
    return "the directory of the run must be given by its absolute path";
  if (options->vocabulary && (options->vocabulary[0] != '/' || strlen(options->vocabulary) > 4000))
    return "the path of the vocabulary must be absolute, because workers open it too";
  if (options->start && (options->start[0] != '/' || strlen(options->start) > 4000))
    return "the path of the model to start from must be absolute, because workers open it too";
  if (options->job && (strlen(options->job) > 60 || !*options->job))
    return "the name of the job must have 1 to 60 characters";
  return NULL;
}

bool pawl_lda_check(const struct pawl_lda_options *options, char error[PAWL_LDA_TEXT]) {
  struct pawl_lda_options is;
  bool is_known = lda_options_take(options, &is);
  const char *wrong = is_known ? wrong_with_model(&is) : "the options were not initialised with pawl_lda_options_init";
  if (!wrong) wrong = wrong_with_svi(&is);
  if (!wrong) wrong = wrong_with_paths(&is);
  if (wrong && error) snprintf(error, PAWL_LDA_TEXT, "%s", wrong);
  return !wrong;
}
