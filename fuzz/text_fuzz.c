/* Plain text: any bytes, hashed and looked up in a vocabulary that is built from it.
 *
 * covers: src/data/formats/text.c src/data/formats/tokenizer.c
 * covers: src/data/formats/utf8.c src/data/tally.c
 */
#include "rows.h"

#include "data/tally.h"
#include "data/formats/tokenizer.h"
#include "data/formats/utf8.h"
#include "data/words.h"

struct next {
  const struct pwi_tally *tally;
  size_t at;
};

static struct pwi_word next_word(void *context) {
  struct next *next = context;
  const struct pwi_tally_word *word = &next->tally->words[next->at++];
  return (struct pwi_word){pwi_tally_letters(next->tally, word), word->length};
}

/* Words are well-formed and not too long; splitting a word gives the word itself. */
static void check_word(const char *word, size_t length) {
  char copy[PWI_TOKENIZER_ROOM + PWI_TOKENIZER_SLACK + 1] = "", again[PWI_TOKENIZER_ROOM];
  assert(length >= 1 && length <= PAWL_WORD_MAX && !pwi_utf8_wrong(word, word + length));
  memcpy(copy, word, length);
  copy[length] = '\n';
  struct pwi_tokenizer text = {.at = copy, .end = copy + length};
  size_t size = pwi_tokenizer_next(&text, again);
  assert(size == length && memcmp(again, word, length) == 0 && pwi_tokenizer_next(&text, again) == 0);
}

static void tally_line(struct pwi_tally *tally, const char *begin, const char *end) {
  struct pwi_tokenizer text = {.at = begin, .end = end};
  char word[PWI_TOKENIZER_ROOM];
  size_t length;
  if (pwi_utf8_wrong(begin, end)) return;
  while ((length = pwi_tokenizer_next(&text, word))) {
    check_word(word, length);
    pawl_status status = pwi_tally_add(tally, word, length, pwi_word_hash(word, length));
    assert(!status);
  }
  tally->documents++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pwi_parse_rule rule = {.format = PAWL_DATA_TEXT, .hash_bits = 40};
  struct pwi_tally tally = {0}, sum = {0};
  struct pawl_words *words = NULL;
  uint64_t twice;
  struct lines lines = lines_of(data, size);
  const char *end = lines.memory + lines.size;
  check_lines(&rule, lines.memory, end);
  for (const char *at = lines.memory, *stop; at < end; at = stop + 1) {
    stop = memchr(at, '\n', (size_t)(end - at));
    tally_line(&tally, at, stop);
  }
  struct next next = {&tally, 0};
  pawl_status status = pwi_words_make(tally.count, tally.letters_size, next_word, &next, &words, &twice);
  assert(!status);
  rule.words = words;
  check_lines(&rule, lines.memory, end);
  struct pwi_batch *batch = parse_lines(&rule, lines.memory, end);
  check_documents(batch);
  assert(batch->is.rows == tally.documents && batch->is.max_id == tally.count);
  status = pwi_tally_merge(&sum, &tally);
  assert(!status && sum.count == tally.count && sum.documents == tally.documents);
  pwi_tally_forget(&sum, tally.count / 2, tally.letters_size);
  assert(sum.count <= tally.count / 2);
  pwi_tally_fini(&sum);
  pwi_tally_fini(&tally);
  pwi_batch_destroy(batch);
  pwi_words_release(words);
  free(lines.memory);
  return 0;
}
