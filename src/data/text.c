/* Plain text: a document a line. Words are looked up in a vocabulary; without one they are hashed, as vw's names without a space. */
#include "data/text.h"

#include <string.h>

#include "data/parse.h"
#include "data/utf8.h"
#include "data/words.h"

static pawl_status row(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch,
                       const char *line_end) {
  struct pwi_text text;
  text.at = parse->at;
  text.end = line_end;
  text.long_words = 0;
  const char *wrong = pwi_utf8_wrong(parse->at, line_end);
  if (wrong) return pwi_parse_wrong(parse, wrong, "this is not UTF-8");
  pawl_status status = pwi_batch_room(batch, (size_t)(line_end - parse->at) / 2 + 1); /* a letter and a blank */
  if (status) return status;
  uint64_t *ids = batch->ids + batch->is.entries, unknown = 0;
  float *values = batch->values + batch->is.entries;
  bool is_sorted = true;
  size_t count = 0;
  while (pwi_text_next(&text)) {
    uint64_t hash = pwi_word_hash(text.word, text.length), id;
    if (rule->words) {
      id = pwi_words_find(rule->words, text.word, text.length, hash) + 1; /* 0 for none */
      unknown += id == 0;
      if (id == 0) continue;
    } else {
      id = pwi_hashed_id(hash, rule->hash_bits);
    }
    is_sorted &= count == 0 || id > ids[count - 1];
    ids[count] = id;
    values[count++] = 1;
  }
  status = pwi_parse_end_document(parse, batch, count, is_sorted, count);
  if (!status) batch->is.unknown += unknown + text.long_words;
  return status;
}

pawl_status pwi_parse_text(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    const char *line_end = memchr(parse->at, '\n', (size_t)(parse->end - parse->at));
    pawl_status status = row(rule, parse, batch, line_end);
    if (status) return status;
    parse->at = line_end + 1;
  }
  return PAWL_OK;
}
