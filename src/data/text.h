/* How text is cut into words (<pawl/words.h>).
 *
 * A letter is what Unicode calls alphabetic, a digit one of its decimal digits (Nd). Marks (M), such as accents that stand behind
 * their letter, go on with a word and do not begin one. An apostrophe is ' or U+2019, which becomes '; it is part of a word between
 * two letters or digits. Lower case is Unicode's simple mapping, the same in every language.
 *
 * Pure; one text belongs to one thread at a time.
 */
#ifndef PWI_DATA_TEXT_H
#define PWI_DATA_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/words.h>

#define PWI_TEXT_SLACK 8

struct pwi_text {
  const char *at, *end; /* what is left: well-formed UTF-8, with one byte behind it that may be read */
  uint64_t long_words;  /* that had more than PAWL_WORD_MAX bytes, and were left out */
  size_t length;
  char word[PAWL_WORD_MAX + PWI_TEXT_SLACK]; /* the last that was found: `length` bytes, and no zero behind them */
};

/* The next word; false: there is none left. */
bool pwi_text_next(struct pwi_text *text);

#endif
