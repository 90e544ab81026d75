/* Options of training inside. */
#ifndef BPMF_OPTIONS_H
#define BPMF_OPTIONS_H

#include <pawl/bpmf.h>

/* Copies the options with their defaults. Returns false, with a sentence, if they are invalid. */
bool bpmf_options_resolve(const struct pawl_bpmf_options *options, struct pawl_bpmf_options *is_out, char *error);
bool bpmf_sharing_resolve(const struct pawl_bpmf_sharing *sharing, struct pawl_bpmf_sharing *is_out, char *error);

#endif
