/* Options of training inside. */
#ifndef CNN_OPTIONS_H
#define CNN_OPTIONS_H

#include <pawl/cnn.h>

/* Copies the options with the defaults of their net. Returns false, with a sentence, if they are invalid. */
bool cnn_options_resolve(const struct pawl_cnn_options *options, struct pawl_cnn_options *is_out, char *error);

/* The same for struct pawl_cnn_sharing. */
bool cnn_sharing_resolve(const struct pawl_cnn_sharing *sharing, struct pawl_cnn_sharing *is_out, char *error);

/* Whether workers average gradients, and not models. */
bool cnn_sharing_means_gradients(const struct pawl_cnn_sharing *is);

#endif
