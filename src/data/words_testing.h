/* Looking up a word by its letters, for tests: readers of text look up words that they have hashed already. */
#ifndef PWI_DATA_WORDS_TESTING_H
#define PWI_DATA_WORDS_TESTING_H

#include <string.h>

#include "data/words.h"

/* PAWL_NO_WORD if the word is not in the vocabulary. */
static inline uint64_t find_word(const struct pawl_words *words, const char *word, size_t length) {
  char copy[PAWL_WORD_MAX + PWI_WORD_SLACK] = {0};
  if (length == 0 || length > PAWL_WORD_MAX) return PAWL_NO_WORD;
  memcpy(copy, word, length);
  return pwi_words_find(words, copy, length, pwi_word_hash(copy, length));
}

#endif
