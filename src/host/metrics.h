/* Writes metrics for Prometheus: the text exposition format, version 0.0.4.
 *
 *   struct pwi_metrics metrics = {.text = text};
 *   pwi_metrics_family(&metrics, "pawl_pushes_total", PWI_METRIC_COUNTER, "Pushes answered.");
 *   pwi_metrics_u64(&metrics, pushes, PWI_LABELS({"shard", "3"}));
 *
 * This is a writer and not a registry: the owner of the figures writes them when asked, so every figure is
 * counted in one place only. All samples of a family are written before the next family begins, and each
 * family begins once.
 *
 * Names are asserted: [a-zA-Z_:][a-zA-Z0-9_:]* for a family, the same without colons for a label. Label
 * values and help may be any bytes: they are escaped, and invalid UTF-8 becomes '?', because one bad byte
 * would invalidate the whole scrape. Failures are recorded in the text (see text.h). Numbers do not depend
 * on the locale.
 *
 * Threads: a writer belongs to one thread at a time.
 */
#ifndef PWI_HOST_METRICS_H
#define PWI_HOST_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "host/text.h"

#define PWI_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum pwi_metric { PWI_METRIC_COUNTER, PWI_METRIC_GAUGE, PWI_METRIC_HISTOGRAM };

struct pwi_label {
  const char *name;
  const char *value;
};

/* A list of labels ends with one whose name is NULL; PWI_LABELS adds it. NULL is an empty list. */
#define PWI_LABELS(...) ((const struct pwi_label[]){__VA_ARGS__, {NULL, NULL}})

/* Set `text`, which is borrowed, and leave the other fields zero. */
struct pwi_metrics {
  struct pwi_text *text;
  const char *name; /* of the current family */
  enum pwi_metric type;
};

/* Begins a family. `name` must live until the next family begins. */
void pwi_metrics_family(struct pwi_metrics *metrics, const char *name, enum pwi_metric type, const char *help);

/* One sample of a counter or gauge. All numbers are exact: a double is written with as many digits as are
 * needed to read the same double back. */
void pwi_metrics_u64(struct pwi_metrics *metrics, uint64_t value, const struct pwi_label *labels);
void pwi_metrics_i64(struct pwi_metrics *metrics, int64_t value, const struct pwi_label *labels);
void pwi_metrics_double(struct pwi_metrics *metrics, double value, const struct pwi_label *labels);

/* All samples of a histogram of nanoseconds, converted to seconds: buckets from 1 us to 10 s in steps of
 * 1, 2 and 5, then _sum and _count. A sample within 1/64 of a bound may be counted above it, never below.
 * The labels must not contain `le`. */
void pwi_metrics_histogram(struct pwi_metrics *metrics, const struct pwi_histogram *histogram,
                           const struct pwi_label *labels);

#endif
