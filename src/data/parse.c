#include "data/parse.h"

const char *pwi_data_format_name(enum pawl_data_format format) {
  static const char *const names[] = {"auto", "libsvm", "vw", "criteo", "csv", "cache", "ldac", "uci", "text"};
  return (size_t)format < sizeof names / sizeof *names ? names[format] : "";
}

pawl_status pwi_parse_rows(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  switch (rule->format) {
  case PAWL_DATA_LIBSVM:
    return pwi_parse_libsvm(rule, parse, batch);
  case PAWL_DATA_VW:
    return pwi_parse_vw(rule, parse, batch);
  case PAWL_DATA_CRITEO:
    return pwi_parse_criteo(rule, parse, batch);
  case PAWL_DATA_CSV:
    return pwi_parse_csv(rule, parse, batch);
  case PAWL_DATA_LDAC:
    return pwi_parse_ldac(rule, parse, batch);
  case PAWL_DATA_UCI:
    return pwi_parse_uci(rule, parse, batch);
  case PAWL_DATA_TEXT:
    return pwi_parse_text(rule, parse, batch);
  default:
    return PAWL_INVALID;
  }
}
