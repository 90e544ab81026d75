#include "data/parse.h"

#include <math.h>

#include "data/number.h"

const char *pwi_data_format_name(enum pawl_data_format format) {
  static const char *const names[] = {"auto", "libsvm", "vw", "criteo", "csv", "cache"};
  return (size_t)format < sizeof names / sizeof *names ? names[format] : "";
}

pawl_status pwi_parse_rows(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  switch (rule->format) {
  case PAWL_DATA_LIBSVM:
    return pwi_parse_libsvm(parse, batch);
  case PAWL_DATA_VW:
    return pwi_parse_vw(rule, parse, batch);
  case PAWL_DATA_CRITEO:
    return pwi_parse_criteo(rule, parse, batch);
  case PAWL_DATA_CSV:
    return pwi_parse_csv(rule, parse, batch);
  default:
    return PAWL_INVALID;
  }
}

pawl_status pwi_parse_end_row(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries, bool is_sorted,
                              float label, float weight) {
  pawl_status status = pwi_batch_end_row(batch, entries, is_sorted, label, weight);
  if (status == PAWL_OVERFLOW)
    return pwi_parse_wrong(parse, parse->at, "values of one feature add up to more than a float holds");
  return status;
}

pawl_status pwi_parse_label(struct pwi_parse *parse, const char *text, const char **end_out, float *label_out) {
  double value;
  if (!pwi_number(text, end_out, &value)) return pwi_parse_wrong(parse, text, "the label is not a number");
  if (!isfinite((float)value))
    return pwi_parse_wrong(parse, text, "the label is not a finite number that a float holds");
  *label_out = (float)value;
  return PAWL_OK;
}
