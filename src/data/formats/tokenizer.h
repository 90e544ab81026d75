/* Splits text into words (<pawl/words.h>).
 *
 * A letter is a character that Unicode calls alphabetic, a digit one of its decimal digits (Nd). Marks
 * (M), such as combining accents, continue a word and do not begin one. An apostrophe is ' or U+2019,
 * which becomes '; it is part of a word if it stands between two letters or digits. Lower case is
 * Unicode's simple mapping, the same in every language.
 *
 * Pure; a tokenizer belongs to one thread at a time.
 */
#ifndef PWI_DATA_FORMATS_TOKENIZER_H
#define PWI_DATA_FORMATS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/words.h>

#define PWI_TOKENIZER_SLACK 8
/* bytes that a word may take while it is read */
#define PWI_TOKENIZER_ROOM (PAWL_WORD_MAX + 1 + PWI_TOKENIZER_SLACK)

struct pwi_tokenizer {
  /* the remaining text: well-formed UTF-8, then a line break, then PWI_TOKENIZER_SLACK readable bytes */
  const char *at, *end;
  uint64_t long_words; /* words of more than PAWL_WORD_MAX bytes, which were skipped */
};

/* Writes the next word to `word`, which has PWI_TOKENIZER_ROOM bytes, without a terminating zero. Returns
 * its length; 0 at the end of the text. */
size_t pwi_tokenizer_next(struct pwi_tokenizer *text, char *word);

#endif
