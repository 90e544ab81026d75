#include "data/formats/parser.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/formats/number.h"
#include "data/labels.h"

pawl_status pwi_parse_wrong_so(struct pwi_parse *parse, const char *wrong, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(parse->text, sizeof parse->text, format, arguments);
  va_end(arguments);
  return pwi_parse_wrong(parse, wrong, parse->text);
}

pawl_status pwi_parse_end_row(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries, bool is_sorted,
                              float label, float weight) {
  pawl_status status = pwi_batch_end_row(batch, entries, is_sorted, label, weight);
  if (status == PAWL_OVERFLOW)
    return pwi_parse_wrong(parse, parse->at, "the values of one feature add up to more than a float can hold");
  return status;
}

pawl_status pwi_parse_word_label(const struct pwi_parse_rule *rule, struct pwi_parse *parse, const char *begin,
                                 const char *end, float *label_out) {
  const char *stop;
  double value;
  bool is_number = pwi_number(begin, &stop, &value) && stop == end;
  if (is_number && !isfinite(value)) return pwi_parse_wrong(parse, begin, "the label is not finite");
  if (end - begin > PAWL_LABEL_MAX) return pwi_parse_wrong(parse, begin, "the label is longer than 255 bytes");
  if (memchr(begin, 0, (size_t)(end - begin))) return pwi_parse_wrong(parse, begin, "the label has a byte 0");
  bool is_whole = is_number && value == floor(value) && fabs(value) < 0x1p53;
  pawl_status status = is_whole ? pwi_labels_add_number(rule->labels, value, label_out)
                                : pwi_labels_add(rule->labels, begin, (size_t)(end - begin), label_out);
  if (status == PAWL_TOO_LARGE) return pwi_parse_wrong(parse, begin, "more than 16777216 different labels");
  return status;
}

pawl_status pwi_parse_label(const struct pwi_parse_rule *rule, struct pwi_parse *parse, const char *text, char stop,
                            const char **end_out, float *label_out) {
  double value;
  if (rule->labels) {
    const char *end = text;
    while (!strchr(" \t\r\n", *end) && *end != stop) end++; /* a 0 ends it, too */
    *end_out = end;
    if (end == text) return pwi_parse_wrong(parse, text, "no label");
    return pwi_parse_word_label(rule, parse, text, end, label_out);
  }
  if (!pwi_number(text, end_out, &value)) return pwi_parse_wrong(parse, text, "the label is not a number");
  if (!isfinite((float)value)) return pwi_parse_wrong(parse, text, "the label does not fit a finite float");
  *label_out = (float)value;
  return PAWL_OK;
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Whether no sum of counts was rounded. Floats count exactly up to PAWL_COUNT_MAX. A larger sum either
 * exceeds that, or was rounded to it; then the sums no longer add up to the total. */
static bool counts_fit(const float *values, size_t entries, uint64_t total) {
  uint64_t sum = 0;
  for (size_t i = 0; i < entries; i++) {
    if (values[i] > PAWL_COUNT_MAX) return false;
    sum += (uint64_t)values[i];
  }
  return sum == total;
}

pawl_status pwi_parse_end_document(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries, bool is_sorted,
                                   uint64_t total) {
  float *values = batch->values + batch->is.entries;
  if (!is_sorted) {
    pawl_status status = pwi_entries_sort(batch->ids + batch->is.entries, values, &entries);
    if (status) return status;
    if (total > PAWL_COUNT_MAX && !counts_fit(values, entries, total))
      return pwi_parse_wrong(parse, parse->at, "a word occurs more than 16777216 times in this document");
  }
  return pwi_parse_end_row(parse, batch, entries, true, 0, 1);
}

pawl_status pwi_parse_count(struct pwi_parse *parse, const char *text, const char **end_out, uint64_t *count_out) {
  uint64_t count;
  if (!pwi_whole_number(text, end_out, &count) || count == 0 || count > PAWL_COUNT_MAX)
    return pwi_parse_wrong(parse, text, "the count is not a whole number from 1 to 16777216");
  *count_out = count;
  return PAWL_OK;
}
