#include "data/parse.h"

pawl_status pwi_parse_criteo(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  (void)rule, (void)batch;
  return pwi_parse_wrong(parse, parse->at, "not yet");
}
