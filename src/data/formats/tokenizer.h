/* How text is cut into words (<pawl/words.h>).
 *
 * A letter is what Unicode calls alphabetic, a digit one of its decimal digits (Nd). Marks (M), such as accents that stand behind
 * their letter, go on with a word and do not begin one. An apostrophe is ' or U+2019, which becomes '; it is part of a word between
 * two letters or digits. Lower case is Unicode's simple mapping, the same in every language.
 *
 * Pure; one text belongs to one thread at a time.
 */
#ifndef PWI_DATA_FORMATS_TOKENIZER_H
#define PWI_DATA_FORMATS_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/words.h>

#define PWI_TOKENIZER_SLACK 8
#define PWI_TOKENIZER_ROOM (PAWL_WORD_MAX + 1 + PWI_TOKENIZER_SLACK) /* bytes that a word may take while it is read */

struct pwi_tokenizer {
  const char *at,
      *end; /* what is left: well-formed UTF-8; then a line break, and PWI_TOKENIZER_SLACK bytes that may be read */
  uint64_t long_words; /* that had more than PAWL_WORD_MAX bytes, and were left out */
};

/* The next word, written to PWI_TOKENIZER_ROOM bytes without a zero behind it: its length; 0: there is none left. */
size_t pwi_tokenizer_next(struct pwi_tokenizer *text, char *word);

#endif
