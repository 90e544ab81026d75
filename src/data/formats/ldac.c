/* The text format of LDA-C: `number id:count id:count …`, one document per line, with as many pairs as the
 * number announces. */
#include "data/formats/parser.h"

#include <inttypes.h>
#include <string.h>

#include "data/formats/number.h"
#include "data/words.h"

/* A document that is being parsed. */
struct ldac_document {
  const struct pwi_parse_rule *rule;
  struct pwi_parse *parse;
  const char *at;
  uint64_t *ids;
  float *values;
  size_t count;
  uint64_t total; /* sum of all counts */
  bool is_sorted;
};

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool ends_line(const char *at) { return *at == '\n' || (*at == '\r' && at[1] == '\n'); }

static bool ends_token(const char *at) { return is_blank(*at) || ends_line(at); }

static const char *skip_blanks(const char *at) {
  while (is_blank(*at)) at++;
  return at;
}

static pawl_status bad_word(struct ldac_document *document, const char *end) {
  if (end > document->at) return pwi_parse_wrong(document->parse, document->at, "the word number exceeds 2^63 - 2");
  return pwi_parse_wrong(document->parse, document->at, "expected a word number");
}

static pawl_status beyond(struct ldac_document *document, uint64_t number) {
  return pwi_parse_wrong_so(document->parse, document->at,
                            "word %" PRIu64 " is not in the vocabulary, which has %" PRIu64 " words, counted from 0",
                            number, document->rule->words->count);
}

/* One `id:count`. */
static inline pawl_status entry(struct ldac_document *document) {
  const struct pawl_words *words = document->rule->words;
  const char *end;
  uint64_t number, count;
  if (!pwi_whole_number(document->at, &end, &number)) return bad_word(document, end);
  if (number >= PAWL_ID_MAX) return bad_word(document, end);
  if (*end != ':') return pwi_parse_wrong(document->parse, end, "expected a colon behind the word number");
  if (words && number >= words->count) return beyond(document, number);
  pawl_status status = pwi_parse_count(document->parse, end + 1, &end, &count);
  if (status) return status;
  if (!ends_token(end)) return pwi_parse_wrong(document->parse, end, "unexpected character in a whole number");
  document->is_sorted &= document->count == 0 || number + 1 > document->ids[document->count - 1];
  document->ids[document->count] = number + 1;
  document->values[document->count++] = (float)count;
  document->total += count;
  document->at = end;
  return PAWL_OK;
}

static pawl_status entries(struct ldac_document *document) {
  for (;;) {
    document->at = skip_blanks(document->at);
    if (ends_line(document->at)) return PAWL_OK;
    pawl_status status = entry(document);
    if (status) return status;
  }
}

static pawl_status row(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch,
                       const char *at, const char *line_end) {
  const char *end;
  uint64_t due;
  /* an entry takes at least four bytes */
  pawl_status status = pwi_batch_room(batch, (size_t)(line_end - at) / 4 + 1);
  if (status) return status;
  if (!pwi_whole_number(at, &end, &due) || !ends_token(end))
    return pwi_parse_wrong(parse, at, "expected the number of words, a whole number, at the start of the document");
  struct ldac_document document = {.rule = rule,
                                   .parse = parse,
                                   .at = end,
                                   .ids = batch->ids + batch->is.entries,
                                   .values = batch->values + batch->is.entries,
                                   .is_sorted = true};
  status = entries(&document);
  if (status) return status;
  if (document.count != due)
    return pwi_parse_wrong_so(parse, at, "%" PRIu64 " words are announced, but %zu follow", due, document.count);
  return pwi_parse_end_document(parse, batch, document.count, document.is_sorted, document.total);
}

pawl_status pwi_parse_ldac(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    const char *line_end = memchr(parse->at, '\n', (size_t)(parse->end - parse->at)), *at = skip_blanks(parse->at);
    if (!ends_line(at)) {
      pawl_status status = row(rule, parse, batch, at, line_end);
      if (status) return status;
    }
    parse->at = line_end + 1;
  }
  return PAWL_OK;
}
