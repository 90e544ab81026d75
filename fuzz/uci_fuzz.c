/* UCI's bag of words: any bytes, unchanged and behind their own head; and cut where documents begin, which
 * must not change the result.
 *
 * covers: src/data/formats/uci.c
 */
#include "rows.h"

#include "data/formats/uci.h"

/* Rows and entries of [begin, end), cut into pieces of `size` bytes as a reader does: at the first
 * document that begins there. */
static void count_cut(const struct pwi_parse_rule *rule, const char *begin, const char *end, size_t size,
                      size_t *rows_out, size_t *entries_out) {
  const char *from = begin;
  *rows_out = *entries_out = 0;
  while (from < end) {
    const char *at = begin + ((size_t)(from - begin) / size + 1) * size;
    if (at > end || at < begin) at = end;
    while (at < end && at[-1] != '\n') at++;
    while (at < end) {
      const char *stop = memchr(at, '\n', (size_t)(end - at));
      if (pwi_uci_begins(at, stop, pwi_uci_before(begin, true, at))) break;
      at = stop + 1;
    }
    struct pwi_batch *batch = parse_from(rule, from, at, pwi_uci_before(begin, true, from));
    *rows_out += batch->is.rows;
    *entries_out += batch->is.entries;
    pwi_batch_destroy(batch);
    from = at;
  }
}

static void check_cuts(const struct pwi_parse_rule *rule, const char *begin, const char *end) {
  size_t rows, entries;
  struct pwi_batch *whole = parse_lines(rule, begin, end);
  pawl_status status = pwi_batch_finish(whole, false, false);
  assert(!status);
  check_batch(&whole->is);
  check_documents(whole);
  for (size_t size = 1; size < 64; size = size * 3 + 1) {
    count_cut(rule, begin, end, size, &rows, &entries);
    assert(rows == whole->is.rows && entries == whole->is.entries);
  }
  pwi_batch_destroy(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pwi_parse_rule rule = {.format = PAWL_DATA_UCI, .bag = {.documents = 1000, .words = 1000}};
  if (size > 2048) return 0;
  struct lines lines = lines_of(data, size);
  check_cuts(&rule, lines.memory, lines.memory + lines.size);
  if (pwi_uci_head(lines.memory, lines.size, &rule.bag)) {
    assert(rule.bag.head_length <= lines.size);
    (void)pwi_uci_has_entry(lines.memory, lines.size, &rule.bag);
    check_cuts(&rule, lines.memory + rule.bag.head_length, lines.memory + lines.size);
  }
  free(lines.memory);
  return 0;
}
