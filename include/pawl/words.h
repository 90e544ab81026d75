/* Words: a vocabulary, which gives each word a number.
 *
 * A vocabulary file is UTF-8 text with a word a line, plain or compressed; word i stands in line i + 1. It comes with a corpus in
 * LDA-C's or UCI's format, or is made from a corpus of plain text by pawl_words_build. Features of <pawl/data.h> that stand for
 * words have ids one higher: i + 1.
 *
 * HOW TEXT IS CUT. A word is a run of letters and digits, with apostrophes inside it, that has at least one letter; it is lower-cased. What is a
 * letter, and its lower case, is as Unicode says. Everything else separates. Broken UTF-8 makes a row bad.
 *
 * A vocabulary never changes; any number of threads may use it. ERRORS: PAWL_NOT_FOUND, PAWL_IO and what else a disk may say;
 * PAWL_CORRUPT (a word that stands twice, an empty line, broken UTF-8: pawl_error_text says `file:line: what`), PAWL_TRUNCATED (no word),
 * PAWL_TOO_LARGE (2^31 words), PAWL_NO_MEMORY.
 */
#ifndef PAWL_WORDS_H
#define PAWL_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_words;

#define PAWL_WORD_MAX 255       /* bytes of a word; longer ones of a text are left out */
#define PAWL_NO_WORD UINT64_MAX /* what is not in a vocabulary */

PAWL_API pawl_status pawl_words_read(const char *path, struct pawl_words **words_out);

/* The same from `size` bytes of text, which are copied; errors call it `name`. */
PAWL_API pawl_status pawl_words_parse(const char *name, const char *text, size_t size, struct pawl_words **words_out);

/* Whole or not at all, as every file that pawl writes. */
PAWL_API pawl_status pawl_words_write(const struct pawl_words *words, const char *path);

/* Shared: each holder releases it. NULL is fine. */
PAWL_API struct pawl_words *pawl_words_retain(const struct pawl_words *words);
PAWL_API void pawl_words_release(struct pawl_words *words);

PAWL_API uint64_t pawl_words_count(const struct pawl_words *words);
PAWL_API const char *pawl_words_at(const struct pawl_words *words, uint64_t number); /* NULL beyond the end */
PAWL_API uint64_t pawl_words_find(const struct pawl_words *words, const char *word, size_t length);

struct pawl_words_options {
  uint64_t least_documents; /* words in fewer are left out; default 2 */
  double most_share;        /* words in a larger part of the documents are left out; default 0.5 */
  uint64_t most;            /* words: the most frequent stay; default 1,000,000 */
  const char *stop;         /* a file of words to leave out, as a vocabulary file; NULL: none */
  bool stop_english;        /* leave out those of English that are in every text, too: docs/data.md */
  uint32_t least_length;    /* words of fewer characters are left out; default 1 */
  uint32_t threads;         /* 0: as many as processors may be used */
  bool (*progress)(void *context, uint64_t pieces, uint64_t of); /* false ends it: PAWL_CANCELLED. May be NULL */
  void *context;
};

PAWL_API void pawl_words_options_init(struct pawl_words_options *options);

/* Reads a corpus that was opened as text (its own vocabulary is of no account) once, and numbers the words that stay: by falling count,
 * equal counts by their bytes, so that the same corpus gives the same vocabulary everywhere. PAWL_UNSUPPORTED if it is not text, PAWL_INVALID if
 * no word stays. */
PAWL_API pawl_status pawl_words_build(struct pawl_data *data, const struct pawl_words_options *options,
                                      struct pawl_words **words_out);

#ifdef __cplusplus
}
#endif

#endif
