/* Vowpal Wabbit's text: any bytes.
 *
 * covers: src/data/formats/vw.c
 */
#include "rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const struct pwi_parse_rule rule = {.format = PAWL_DATA_VW, .hash_bits = 1 + (uint32_t)(size % 62)};
  struct lines lines = lines_of(data, size);
  check_lines(&rule, lines.memory, lines.memory + lines.size);
  free(lines.memory);
  return 0;
}
