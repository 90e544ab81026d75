/* LIBSVM text, with required or optional labels: any bytes; and numbers, which must match the C library.
 *
 * covers: src/data/formats/libsvm.c src/data/formats/number.c
 */
#include "rows.h"

/* Compares a number at the very beginning with strtod: as floats, bit by bit. */
static void check_number(const char *text) {
  const char *end;
  char *plain_end;
  double value;
  if (*text == ' ' || (*text >= '\t' && *text <= '\r')) return; /* strtod skips these */
  double plain = strtod(text, &plain_end);
  bool is_number = pwi_number(text, &end, &value);
  assert(is_number == (plain_end != text));
  if (!is_number) return;
  assert(end == plain_end);
  float a = (float)value, b = (float)plain;
  assert((isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const struct pwi_parse_rule rule = {.format = PAWL_DATA_LIBSVM},
                              optional = {.format = PAWL_DATA_LIBSVM, .labels_optional = true};
  struct lines lines = lines_of(data, size);
  if (lines.size) check_number(lines.memory);
  check_lines(&rule, lines.memory, lines.memory + lines.size);
  check_lines(&optional, lines.memory, lines.memory + lines.size);
  free(lines.memory);
  return 0;
}
