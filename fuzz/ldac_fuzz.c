/* LDA-C's text: any bytes. Counts are whole and bounded, and labels are 0.
 *
 * covers: src/data/formats/ldac.c
 */
#include "rows.h"

#include "data/words.h"

static struct pawl_words *words_of(const char *text, size_t size) {
  char copy[64] = "";
  struct pawl_words *words = NULL;
  struct pwi_fault fault;
  memcpy(copy, text, size);
  pawl_status status = pwi_words_parse("words", copy, size, &words, &fault);
  assert(!status);
  return words;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pawl_words *words = size % 2 ? words_of("a\nb\nc\nd\n", 8) : NULL;
  const struct pwi_parse_rule rule = {.format = PAWL_DATA_LDAC, .words = words};
  struct lines lines = lines_of(data, size);
  check_lines(&rule, lines.memory, lines.memory + lines.size);
  struct pwi_batch *batch = parse_lines(&rule, lines.memory, lines.memory + lines.size);
  check_documents(batch);
  assert(!words || batch->is.max_id <= 4);
  pwi_batch_destroy(batch);
  pwi_words_release(words);
  free(lines.memory);
  return 0;
}
