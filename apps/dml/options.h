/* Options of a training, checked. */
#ifndef DML_OPTIONS_H
#define DML_OPTIONS_H

#include <pawl/metric.h>

/* Copies the options, with the number of threads. False: they are invalid, and `error` says why. */
bool dml_options_resolve(const struct pawl_metric_options *options, struct pawl_metric_options *is_out, char *error);

#endif
