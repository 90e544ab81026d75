/* Tables, and format detection: any bytes, after two bytes that select the requested format and label, the
 * separator, and whether labels are optional.
 *
 * covers: src/data/formats/csv.c src/data/formats/criteo.c
 * covers: src/data/formats/csv_layout.c src/data/formats/detect.c
 */
#include "rows.h"

#include "data/formats/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const labels[] = {NULL, "1", "2", "y", "40", "999999999999999999999"};
  static const char separators[] = {0, ',', ';', '\t'};
  static const enum pawl_data_format formats[] = {PAWL_DATA_AUTO, PAWL_DATA_CSV, PAWL_DATA_CRITEO};
  struct input input = {data, size};
  uint8_t choice = draw_u8(&input), how = draw_u8(&input);
  struct pwi_parse_rule rule = {.format = formats[choice % 3], .hash_bits = 22, .labels_optional = how & 1};
  rule.table.separator = separators[how >> 1 & 3];
  if (how & 1) rule.table.width = how >> 3 & 7;
  if (rule.table.width > 0) rule.table.label = (size_t)(how >> 6) % rule.table.width;
  struct lines lines = lines_of(input.at, input.left);
  const char *why = NULL;
  pawl_status status = pwi_detect(lines.memory, input.left, labels[choice / 3 % 6], &rule, &why);
  if (!status) {
    size_t head = rule.table.head_length < lines.size ? rule.table.head_length : lines.size;
    check_lines(&rule, lines.memory + head, lines.memory + lines.size);
  } else {
    assert(why && *why);
  }
  free(lines.memory);
  return 0;
}
