/* Vocabulary files: any bytes. Every word that was read is found under its number.
 *
 * covers: src/data/words.c
 */
#include "fuzz.h"

#include <stdlib.h>

#include "data/words_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct pawl_words *words = NULL;
  struct pwi_fault fault = {""};
  char *text = calloc(1, size + 1 + PWI_WORD_SLACK);
  assert(text);
  if (size) memcpy(text, data, size);
  pawl_status status = pwi_words_parse("words", text, size, &words, &fault);
  free(text);
  if (status) {
    assert((status == PAWL_CORRUPT || status == PAWL_TRUNCATED) && strncmp(fault.text, "words:", 6) == 0);
    return 0;
  }
  assert(pawl_words_count(words) > 0 && !pawl_words_at(words, pawl_words_count(words)));
  for (uint64_t i = 0; i < pawl_words_count(words); i++) {
    const char *word = pawl_words_at(words, i);
    assert(find_word(words, word, strlen(word)) == i);
  }
  pwi_words_release(words);
  return 0;
}
