/* Words: a vocabulary that gives each word a number.
 *
 * A vocabulary file is UTF-8 text with one word per line, plain or compressed; word i is in line i + 1. It
 * comes with a corpus in LDA-C's or UCI's format, or pawl_words_build creates it from a corpus of plain text.
 * Ids of features (<pawl/data.h>) that stand for words are one higher: i + 1.
 *
 * TOKENS. A word is a run of letters and digits, possibly with apostrophes inside it, that contains at least
 * one letter. It is converted to lower case. Unicode defines letters and their lower case. All other
 * characters separate words. Invalid UTF-8 makes a row bad.
 *
 * A vocabulary never changes; any number of threads may use it. ERRORS: PAWL_NOT_FOUND, PAWL_IO and other
 * disk errors; PAWL_CORRUPT (a duplicate word, an empty line, invalid UTF-8: pawl_error_text has `file:line:
 * problem`), PAWL_TRUNCATED (no word), PAWL_TOO_LARGE (2^31 words), PAWL_NO_MEMORY.
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

#define PAWL_WORD_MAX 255       /* bytes of a word; longer words of a text are skipped */
#define PAWL_NO_WORD UINT64_MAX /* a word that is not in the vocabulary */

PAWL_API PAWL_MUST_USE pawl_status pawl_words_read(const char *path, struct pawl_words **words_out);

/* The same from `size` bytes of text, which are copied. Error messages use `name` as the file name. */
PAWL_API PAWL_MUST_USE pawl_status pawl_words_parse(const char *name, const char *text, size_t size,
                                                    struct pawl_words **words_out);

/* Writes a vocabulary file. The file is created completely or not at all. */
PAWL_API PAWL_MUST_USE pawl_status pawl_words_write(const struct pawl_words *words, const char *path);

/* A vocabulary is reference-counted: every retain needs a release. NULL is allowed. */
PAWL_API struct pawl_words *pawl_words_retain(const struct pawl_words *words);
PAWL_API void pawl_words_release(struct pawl_words *words);

PAWL_API uint64_t pawl_words_count(const struct pawl_words *words);
PAWL_API const char *pawl_words_at(const struct pawl_words *words, uint64_t number); /* NULL beyond the end */

struct pawl_words_options {
  size_t struct_size;       /* set by pawl_words_options_init */
  uint64_t least_documents; /* skip words that occur in fewer documents; default 2 */
  double most_share;        /* skip words that occur in a larger fraction of the documents; default 0.5 */
  uint64_t most;            /* keep at most this many words, the most frequent ones; default 1,000,000 */
  const char *stop;         /* a file of words to skip, in the format of a vocabulary; NULL: none */
  bool stop_english;        /* also skip common English words: docs/data.md */
  uint32_t least_length;    /* skip words of fewer characters; default 1 */
  uint32_t threads;         /* 0: one per available processor */
  bool (*progress)(void *context, uint64_t pieces, uint64_t of); /* false cancels the work: PAWL_CANCELLED.
                                                                    May be NULL */
  void *context;
};

PAWL_API void pawl_words_options_init_sized(struct pawl_words_options *options, size_t struct_size);
static inline void pawl_words_options_init(struct pawl_words_options *options) {
  pawl_words_options_init_sized(options, sizeof *options);
}

/* Reads a corpus that was opened as text once (a vocabulary of the handle is ignored) and numbers the words
 * that it keeps: by descending count, words of equal count by their bytes. The same corpus thus gives the
 * same vocabulary everywhere. PAWL_UNSUPPORTED if the corpus is not text, PAWL_INVALID if no word is kept. */
PAWL_API PAWL_MUST_USE pawl_status pawl_words_build(struct pawl_data *data, const struct pawl_words_options *options,
                                                    struct pawl_words **words_out);

#ifdef __cplusplus
}
#endif

#endif
