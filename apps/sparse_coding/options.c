/* Options of training: defaults, and what is wrong with them. */
#include "apps/sparse_coding/options.h"

#include "apps/common/crew.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

#define ATOMS_MAX (1u << 24)
#define EPOCHS_MAX 100000000
#define BATCH_MAX 100000000
#define THREADS_MAX 1024

static const struct pawl_sparse_options defaults = {.atoms = 100,
                                                    .epochs = 100,
                                                    .tolerance = 2e-3,
                                                    .code_tolerance = 1e-4,
                                                    .batch = 256,
                                                    .seed = 1,
                                                    .checkpoint_every = 1};

void pawl_sparse_options_init_sized(struct pawl_sparse_options *options, size_t struct_size) {
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_sparse_options *is, char *error) {
  if (is->atoms < 1 || is->atoms > ATOMS_MAX) return bad(error, "the number of atoms must be from 1 to 16777216");
  if (is->lambda != 0 && !(is->lambda >= 1e-30 && is->lambda <= 1e30))
    return bad(error, "lambda must be from 1e-30 to 1e30");
  if (is->epochs < 1 || is->epochs > EPOCHS_MAX)
    return bad(error, "the number of epochs must be from 1 to 100,000,000");
  if (!(is->tolerance >= 1e-9 && is->tolerance <= 1)) return bad(error, "the tolerance must be from 1e-9 to 1");
  if (!(is->code_tolerance >= 1e-12 && is->code_tolerance <= 0.1))
    return bad(error, "the tolerance of codes must be from 1e-12 to 0.1");
  if (is->code_tolerance > is->tolerance / 2)
    return bad(error, "the gaps of the codes are a part of the gap; the tolerance of codes must be at most half of the "
                      "tolerance");
  if (is->batch < 1 || is->batch > BATCH_MAX) return bad(error, "a batch must have from 1 to 100,000,000 rows");
  if (is->threads > THREADS_MAX) return bad(error, "the number of threads must be from 1 to 1024");
  if (is->checkpoint_every == 0) return bad(error, "there must be at least one epoch between checkpoints");
  if (is->resume && !is->checkpoint) return bad(error, "no checkpoint was named from which to resume");
  return true;
}

bool sparse_options_resolve(const struct pawl_sparse_options *options, struct pawl_sparse_options *is_out,
                            char *error) {
  struct pawl_sparse_options is = defaults;
  if (!apps_sized_read(options, &is, sizeof is))
    return bad(error, "struct pawl_sparse_options was not initialised with pawl_sparse_options_init, or sets an option "
                      "that this version of pawl does not know");
  if (!check(&is, error)) return false;
  if (is.threads == 0) is.threads = apps_crew_processors();
  *is_out = is;
  return true;
}

bool pawl_sparse_check(const struct pawl_sparse_options *options, char error[PAWL_SPARSE_TEXT]) {
  struct pawl_sparse_options is;
  return sparse_options_resolve(options, &is, error);
}
