#include "data/formats/parser.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "data/formats/number.h"

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

pawl_status pwi_parse_label(struct pwi_parse *parse, const char *text, const char **end_out, float *label_out) {
  double value;
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
