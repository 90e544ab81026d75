/* Shared by the fuzz targets of data formats: parses a text as a reader does, and checks the rows.
 *
 * Unlike other targets it allocates memory, because batches grow.
 */
#ifndef PWI_FUZZ_ROWS_H
#define PWI_FUZZ_ROWS_H

#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

#include "data/batch.h"
#include "data/formats/number.h"
#include "data/parse.h"

/* Lines with their line breaks, and exactly the promised slack. */
struct lines {
  char *memory;
  size_t size;
};

static inline struct lines lines_of(const uint8_t *bytes, size_t size) {
  struct lines lines = {malloc(size + 1 + PWI_NUMBER_SLACK), size};
  assert(lines.memory);
  if (size) memcpy(lines.memory, bytes, size);
  if (size && lines.memory[size - 1] != '\n') lines.memory[lines.size++] = '\n';
  memset(lines.memory + lines.size, 0, PWI_NUMBER_SLACK);
  return lines;
}

/* The rows are valid, as <pawl/data.h> promises. */
UNTRACED static inline void check_batch(const struct pawl_batch *batch) {
  uint64_t most = 0, unlabelled = 0;
  assert(batch->starts[0] == 0 && batch->starts[batch->rows] == batch->entries);
  for (size_t row = 0; row < batch->rows; row++) {
    assert(batch->starts[row] <= batch->starts[row + 1] && !isinf(batch->labels[row]));
    unlabelled += isnan(batch->labels[row]) != 0;
    assert(!batch->weights || (isfinite(batch->weights[row]) && batch->weights[row] >= 0));
    for (uint64_t i = batch->starts[row]; i < batch->starts[row + 1]; i++) {
      assert(batch->ids[i] <= PAWL_ID_MAX && (i == batch->starts[row] || batch->ids[i] > batch->ids[i - 1]));
      assert(!batch->values || isfinite(batch->values[i]));
      most = batch->ids[i] > most ? batch->ids[i] : most;
    }
  }
  assert(most == batch->max_id && unlabelled == batch->unlabelled);
}

/* Documents have no labels, and their counts are whole. */
UNTRACED static inline void check_documents(const struct pwi_batch *batch) {
  for (size_t row = 0; row < batch->is.rows; row++) assert(batch->labels[row] == 0 && !batch->weights);
  for (size_t i = 0; i < batch->is.entries; i++)
    assert(!batch->values || (batch->values[i] >= 1 && batch->values[i] <= PAWL_COUNT_MAX &&
                              batch->values[i] == truncf(batch->values[i])));
}

/* Parses and skips bad rows. Each bad row is where it is reported. `before` is for bags of words. */
static inline struct pwi_batch *parse_from(const struct pwi_parse_rule *rule, const char *begin, const char *end,
                                           uint64_t before) {
  struct pwi_parse parse = {.at = begin, .end = end, .before = before};
  struct pwi_batch *batch;
  pawl_status status = pwi_batch_create(&batch);
  assert(!status);
  while ((status = pwi_parse_rows(rule, &parse, batch)) != PAWL_OK) {
    assert(status == PAWL_CORRUPT && parse.what);
    assert(parse.at >= begin && parse.at < end && (parse.at == begin || parse.at[-1] == '\n'));
    const char *stop = memchr(parse.at, '\n', (size_t)(end - parse.at));
    assert(stop && parse.wrong >= parse.at && parse.wrong <= stop);
    assert(!parse.next || (parse.next > parse.at && parse.next <= end));
    parse.at = parse.next ? parse.next : stop + 1;
    parse.next = NULL;
  }
  assert(parse.at == end);
  return batch;
}

static inline struct pwi_batch *parse_lines(const struct pwi_parse_rule *rule, const char *begin, const char *end) {
  return parse_from(rule, begin, end, 0);
}

/* Parsing in two parts gives as many rows and entries as parsing the whole. */
static inline void check_lines(const struct pwi_parse_rule *rule, const char *begin, const char *end) {
  struct pwi_batch *whole = parse_lines(rule, begin, end);
  const char *cut = begin + (end - begin) / 2;
  while (cut > begin && cut[-1] != '\n') cut--;
  struct pwi_batch *first = parse_lines(rule, begin, cut), *second = parse_lines(rule, cut, end);
  assert(first->is.rows + second->is.rows == whole->is.rows);
  assert(first->is.entries + second->is.entries == whole->is.entries);
  pawl_status status = pwi_batch_finish(whole, false, false);
  assert(!status);
  assert(rule->labels_optional || whole->is.unlabelled == 0);
  check_batch(&whole->is);
  pwi_batch_destroy(whole);
  pwi_batch_destroy(first);
  pwi_batch_destroy(second);
}

#endif
