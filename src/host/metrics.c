#include "host/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE 40
#define NS_PER_SECOND 1e9

static bool is_control(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_name(const char *name, bool colons) {
  if (!is_control(*name) && !(colons && *name == ':')) return false;
  for (const char *at = name; *at; at++)
    if (!is_control(*at) && !is_digit(*at) && !(colons && *at == ':')) return false;
  return true;
}

/* --- strings -------------------------------------------------------------------------------------------- */

static bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

/* The length of the UTF-8 character at this position; 0 if it is invalid. Overlong forms and surrogates
 * are invalid. A NUL never continues a character, so the function does not read past the end of the
 * string. */
static size_t character(const unsigned char *at) {
  if (at[0] < 0x80) return 1;
  if (at[0] < 0xc2 || at[0] > 0xf4 || !continues(at[1])) return 0;
  if (at[0] < 0xe0) return 2;
  if (!continues(at[2])) return 0;
  if (at[0] < 0xf0) {
    bool too_long = at[0] == 0xe0 && at[1] < 0xa0;
    bool surrogate = at[0] == 0xed && at[1] >= 0xa0;
    return too_long || surrogate ? 0 : 3;
  }
  bool too_long = at[0] == 0xf0 && at[1] < 0x90;
  bool too_high = at[0] == 0xf4 && at[1] >= 0x90;
  return too_long || too_high || !continues(at[3]) ? 0 : 4;
}

/* Help is escaped like a label value, except for the quotes. */
static void add_escaped(struct pwi_text *text, const char *string, bool quotes) {
  const unsigned char *at = (const unsigned char *)string;
  while (*at) {
    size_t bytes = character(at);
    if (bytes == 0)
      pwi_text_add(text, "?");
    else if (*at == '\\')
      pwi_text_add(text, "\\\\");
    else if (*at == '\n')
      pwi_text_add(text, "\\n");
    else if (*at == '"' && quotes)
      pwi_text_add(text, "\\\"");
    else
      pwi_text_add_bytes(text, at, bytes);
    at += bytes ? bytes : 1;
  }
}

/* --- numbers -------------------------------------------------------------------------------------------- */

/* Replaces the decimal separator of the locale, which may have several bytes: any byte that cannot belong
 * to a number. */
static void make_point(char *number) {
  char *to = number;
  for (const char *from = number; *from; from++) {
    bool plain = is_digit(*from) || *from == '-' || *from == '+' || *from == 'e';
    if (plain)
      *to++ = *from;
    else if (to == number || to[-1] != '.')
      *to++ = '.';
  }
  *to = '\0';
}

/* The shortest form that reads back as the same number: 0.1 and not 0.10000000000000001. */
static void write_double(char number[NUMBER_SIZE], double value) {
  if (isnan(value)) {
    snprintf(number, NUMBER_SIZE, "NaN");
  } else if (isinf(value)) {
    snprintf(number, NUMBER_SIZE, "%s", value > 0 ? "+Inf" : "-Inf");
  } else if (fabs(value) < 0x1p53 && value == trunc(value)) {
    snprintf(number, NUMBER_SIZE, "%" PRId64, (int64_t)value);
  } else {
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(number, NUMBER_SIZE, "%.*g", digits, value);
      if (strtod(number, NULL) == value) break;
    }
    make_point(number);
  }
}

/* --- samples -------------------------------------------------------------------------------------------- */

static const char *type_name(enum pwi_metric type) {
  switch (type) {
  case PWI_METRIC_COUNTER:
    return "counter";
  case PWI_METRIC_GAUGE:
    return "gauge";
  case PWI_METRIC_HISTOGRAM:
    return "histogram";
  }
  return "untyped";
}

void pwi_metrics_family(struct pwi_metrics *metrics, const char *name, enum pwi_metric type, const char *help) {
  assert(is_name(name, true));
  metrics->name = name;
  metrics->type = type;
  pwi_text_print(metrics->text, "# HELP %s ", name);
  add_escaped(metrics->text, help, false);
  pwi_text_print(metrics->text, "\n# TYPE %s %s\n", name, type_name(type));
}

static void add_label(struct pwi_text *text, char before, const char *name, const char *value) {
  pwi_text_print(text, "%c%s=\"", before, name);
  add_escaped(text, value, true);
  pwi_text_add(text, "\"");
}

/* `le` is the bound of a bucket, or NULL. */
static void add_sample(struct pwi_metrics *metrics, const char *suffix, const struct pwi_label *labels, const char *le,
                       const char *number) {
  pwi_text_print(metrics->text, "%s%s", metrics->name, suffix);
  char before = '{';
  for (; labels && labels->name; labels++) {
    assert(is_name(labels->name, false) && strncmp(labels->name, "__", 2) != 0);
    assert(metrics->type != PWI_METRIC_HISTOGRAM || strcmp(labels->name, "le") != 0);
    add_label(metrics->text, before, labels->name, labels->value);
    before = ',';
  }
  if (le) {
    add_label(metrics->text, before, "le", le);
    before = ',';
  }
  pwi_text_print(metrics->text, "%s %s\n", before == ',' ? "}" : "", number);
}

static void add_plain(struct pwi_metrics *metrics, const struct pwi_label *labels, const char *number) {
  assert(metrics->name && metrics->type != PWI_METRIC_HISTOGRAM);
  add_sample(metrics, "", labels, NULL, number);
}

void pwi_metrics_u64(struct pwi_metrics *metrics, uint64_t value, const struct pwi_label *labels) {
  char number[NUMBER_SIZE];
  snprintf(number, sizeof number, "%" PRIu64, value);
  add_plain(metrics, labels, number);
}

void pwi_metrics_i64(struct pwi_metrics *metrics, int64_t value, const struct pwi_label *labels) {
  char number[NUMBER_SIZE];
  snprintf(number, sizeof number, "%" PRId64, value);
  add_plain(metrics, labels, number);
}

void pwi_metrics_double(struct pwi_metrics *metrics, double value, const struct pwi_label *labels) {
  char number[NUMBER_SIZE];
  write_double(number, value);
  add_plain(metrics, labels, number);
}

/* --- histograms ----------------------------------------------------------------------------------------- */

/* Bounds in nanoseconds, and in seconds as text: 2e-05 and 0.00002 are the same number, but different
 * bounds to Prometheus. */
static const struct {
  int64_t ns;
  const char *seconds;
} bounds[] = {
    {1000, "1e-06"},    {2000, "2e-06"},     {5000, "5e-06"},    {10000, "1e-05"},   {20000, "2e-05"},
    {50000, "5e-05"},   {100000, "0.0001"},  {200000, "0.0002"}, {500000, "0.0005"}, {1000000, "0.001"},
    {2000000, "0.002"}, {5000000, "0.005"},  {10000000, "0.01"}, {20000000, "0.02"}, {50000000, "0.05"},
    {100000000, "0.1"}, {200000000, "0.2"},  {500000000, "0.5"}, {1000000000, "1"},  {2000000000, "2"},
    {5000000000, "5"},  {10000000000, "10"},
};

/* The sample of this rank, counted from 1, rounded up as the histogram rounds. The half rank avoids
 * rounding errors up to 2^50 samples. */
static int64_t sample_of_rank(const struct pwi_histogram *histogram, uint64_t rank) {
  double count = (double)pwi_histogram_count(histogram);
  return pwi_histogram_percentile(histogram, 100.0 * ((double)rank - 0.5) / count);
}

/* The number of samples that are at most `bound`; it is at least `known`. The histogram hides its buckets,
 * but samples increase with their rank, so a binary search finds the last rank that is small enough. */
static uint64_t samples_up_to(const struct pwi_histogram *histogram, int64_t bound, uint64_t known) {
  uint64_t low = known, high = pwi_histogram_count(histogram);
  while (low < high) {
    uint64_t middle = low + (high - low + 1) / 2;
    if (sample_of_rank(histogram, middle) <= bound)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void pwi_metrics_histogram(struct pwi_metrics *metrics, const struct pwi_histogram *histogram,
                           const struct pwi_label *labels) {
  assert(metrics->name && metrics->type == PWI_METRIC_HISTOGRAM);
  char number[NUMBER_SIZE];
  uint64_t count = pwi_histogram_count(histogram), below = 0;
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    below = samples_up_to(histogram, bounds[i].ns, below);
    snprintf(number, sizeof number, "%" PRIu64, below);
    add_sample(metrics, "_bucket", labels, bounds[i].seconds, number);
  }
  snprintf(number, sizeof number, "%" PRIu64, count);
  add_sample(metrics, "_bucket", labels, "+Inf", number);
  add_sample(metrics, "_count", labels, NULL, number);
  write_double(number, pwi_histogram_mean(histogram) * (double)count / NS_PER_SECOND);
  add_sample(metrics, "_sum", labels, NULL, number);
}
