/* Models inside: for apps/cnn and tests. */
#ifndef CNN_MODEL_H
#define CNN_MODEL_H

#include <stdio.h>

#include <pawl/cnn.h>

#include "apps/cnn/net.h"
#include "apps/cnn/pass.h"

struct pawl_cnn_model {
  struct pawl_cnn_about about;
  struct cnn_net *net;
  float *parameters;
};

/* A model for the net and the images that `about` names, with parameters of 0. PAWL_UNSUPPORTED (an unknown net, or one
 * whose number of parameters is not about->parameters, unless that is 0), and as cnn_net_create. */
PAWL_MUST_USE pawl_status cnn_model_create(const struct pawl_cnn_about *about, struct pawl_cnn_model **model_out,
                                           char *error);

/* False: a parameter is not finite. */
bool cnn_model_is_finite(const struct pawl_cnn_model *model);

/* Whether a net for the model's images can take these; labels are compared if there are any. PAWL_MISMATCH. */
PAWL_MUST_USE pawl_status cnn_model_fits(const struct pawl_cnn_model *model, const struct pawl_images *images,
                                         char *error);

/* As pawl_cnn_predict, with a pass for batches of `batch` images. */
void cnn_model_predict(const struct pawl_cnn_model *model, struct cnn_pass *pass, size_t batch,
                       const struct pawl_images *images, uint8_t *classes_out, float *probabilities_out,
                       struct pawl_cnn_score *score_out);

/* Parses the contents of a file: `bytes`, which a 0 follows. `why` gets an error without the file name. Allocates only
 * in proportion to the size of the file. */
PAWL_MUST_USE pawl_status cnn_model_decode(const char *bytes, size_t size, struct pawl_cnn_model **model_out,
                                           char *why);
pawl_status cnn_model_fill(FILE *file, const void *model);

/* Returns true if these are the first bytes of a file of a net; 64 bytes suffice. */
bool cnn_model_begins(const char *bytes, size_t size);

#endif
