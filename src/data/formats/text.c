/* Plain text: one document per line. Words are looked up in a vocabulary; without one they are hashed like
 * vw's names in the default namespace. */
#include "data/formats/tokenizer.h"

#include <string.h>

#include "data/formats/parser.h"
#include "data/formats/utf8.h"
#include "data/words.h"

/* Words are looked up in groups, to overlap cache misses: all slots of a group are prefetched first. */
#define LOOKUPS 16

struct text_document {
  const struct pwi_parse_rule *rule;
  struct pwi_tokenizer text;
  uint64_t *ids, unknown;
  float *values;
  size_t count;
  bool is_sorted;
};

static inline void add(struct text_document *document, uint64_t id) {
  document->is_sorted &= document->count == 0 || id > document->ids[document->count - 1];
  document->ids[document->count] = id;
  document->values[document->count++] = 1;
}

static void look_up(struct text_document *document) {
  const struct pawl_words *words = document->rule->words;
  char letters[LOOKUPS][PWI_TOKENIZER_ROOM];
  size_t lengths[LOOKUPS], count;
  uint64_t hashes[LOOKUPS];
  do {
    for (count = 0; count < LOOKUPS; count++) {
      lengths[count] = pwi_tokenizer_next(&document->text, letters[count]);
      if (lengths[count] == 0) break;
      hashes[count] = pwi_word_hash(letters[count], lengths[count]);
      pwi_words_fetch_slot(words, hashes[count]);
    }
    for (size_t i = 0; i < count; i++) pwi_words_fetch_word(words, hashes[i]);
    for (size_t i = 0; i < count; i++) {
      uint64_t number = pwi_words_find(words, letters[i], lengths[i], hashes[i]);
      if (number == PAWL_NO_WORD)
        document->unknown++;
      else
        add(document, number + 1);
    }
  } while (count == LOOKUPS);
}

static void hash(struct text_document *document) {
  char word[PWI_TOKENIZER_ROOM];
  size_t length;
  while ((length = pwi_tokenizer_next(&document->text, word)))
    add(document, pwi_hashed_id(pwi_hash(word, length, 0), document->rule->hash_bits));
}

static pawl_status row(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch,
                       const char *line_end) {
  const char *wrong = pwi_utf8_wrong(parse->at, line_end);
  if (wrong) return pwi_parse_wrong(parse, wrong, "invalid UTF-8");
  /* a word takes at least a letter and a blank */
  pawl_status status = pwi_batch_room(batch, (size_t)(line_end - parse->at) / 2 + 1);
  if (status) return status;
  struct text_document document = {.rule = rule,
                                   .text = {.at = parse->at, .end = line_end},
                                   .ids = batch->ids + batch->is.entries,
                                   .values = batch->values + batch->is.entries,
                                   .is_sorted = true};
  if (rule->words)
    look_up(&document);
  else
    hash(&document);
  status = pwi_parse_end_document(parse, batch, document.count, document.is_sorted, document.count);
  if (!status) batch->is.unknown += document.unknown + document.text.long_words;
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
