/* Options of training: defaults, and what is wrong with them. */
#include "apps/cnn/options.h"

#include <math.h>

#include "apps/cnn/spec.h"
#include "apps/common/model_file.h"
#include "apps/common/sized.h"

#define EPOCHS_MAX 1000000
#define BATCH_MAX 65536
#define THREADS_MAX 1024
#define BY_NET (-1.0) /* momentum and decay: that of the net, because 0 is a value */

static const struct pawl_cnn_options defaults = {.momentum = BY_NET, .decay = BY_NET, .seed = 1, .threads = 1};

void pawl_cnn_options_init_sized(struct pawl_cnn_options *options, size_t struct_size) {
  apps_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static bool bad(char *error, const char *text) {
  (void)apps_say(error, PAWL_INVALID, "%s", text);
  return false;
}

static bool check(const struct pawl_cnn_options *is, char *error) {
  if (is->epochs == 0 || is->epochs > EPOCHS_MAX) return bad(error, "the number of epochs must be from 1 to 1,000,000");
  if (is->batch == 0 || is->batch > BATCH_MAX) return bad(error, "a batch must have from 1 to 65,536 images");
  if (!(is->rate > 0 && isfinite(is->rate))) return bad(error, "the learning rate must be positive and finite");
  if (!(is->momentum >= 0 && is->momentum < 1)) return bad(error, "the momentum must be at least 0 and below 1");
  if (!(is->decay >= 0 && isfinite(is->decay))) return bad(error, "the weight decay must be at least 0 and finite");
  if (is->schedule != PAWL_CNN_COSINE && is->schedule != PAWL_CNN_CONSTANT)
    return bad(error, "unknown schedule of the learning rate; expected cosine or constant");
  if (is->threads == 0 || is->threads > THREADS_MAX) return bad(error, "the number of threads must be from 1 to 1024");
  return true;
}

bool cnn_options_resolve(const struct pawl_cnn_options *options, struct pawl_cnn_options *is_out, char *error) {
  struct pawl_cnn_options is = defaults;
  if (!apps_sized_read(options, &is, sizeof is))
    return bad(error, "struct pawl_cnn_options was not initialised with pawl_cnn_options_init, or sets an option that "
                      "this version of pawl does not know");
  const struct cnn_spec *spec = is.net ? cnn_spec_find(is.net) : NULL;
  if (!is.net) return bad(error, "no net was named; expected lenet or vgg");
  if (!spec) {
    (void)apps_say(error, PAWL_INVALID, "unknown net '%s'; expected lenet or vgg", is.net);
    return false;
  }
  if (is.epochs == 0) is.epochs = spec->epochs;
  if (is.batch == 0) is.batch = spec->batch;
  if (is.rate == 0) is.rate = spec->rate;
  if (is.momentum < 0) is.momentum = spec->momentum;
  if (is.decay < 0) is.decay = spec->decay;
  *is_out = is;
  return check(&is, error);
}

bool pawl_cnn_check(const struct pawl_cnn_options *options, char error[PAWL_CNN_TEXT]) {
  struct pawl_cnn_options is;
  return cnn_options_resolve(options, &is, error);
}
