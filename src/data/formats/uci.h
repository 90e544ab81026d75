/* UCI's bag of words: finds the boundaries of documents, for the parser and for cutting files into pieces.
 *
 * A document is a run of lines that start with the same number. Whether a line begins a document depends
 * on that line and the previous non-empty line, if the latter lies within PWI_UCI_LOOK bytes. The result
 * is therefore the same wherever the file is cut. A line that does not start with a document number, or is
 * longer than PWI_UCI_LINE, is a (bad) document of its own. Pure.
 */
#ifndef PWI_DATA_FORMATS_UCI_H
#define PWI_DATA_FORMATS_UCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/formats/parser.h"

#define PWI_UCI_LOOK 256 /* bytes before a line that are examined */
#define PWI_UCI_LINE 250 /* longest line, in bytes */

/* The document number of the line [begin, end), without its line break; 0 if it has none. */
uint64_t pwi_uci_document(const char *begin, const char *end);

bool pwi_uci_is_empty(const char *begin, const char *end);

/* The document of the line before the line at `at`; 0 if unknown. Bytes may be read from `floor` on: at
 * least PWI_UCI_LOOK bytes before `at`, or with `is_start` the beginning of the text. */
uint64_t pwi_uci_before(const char *floor, bool is_start, const char *at);

/* Whether the line begins a document. */
static inline bool pwi_uci_begins(const char *begin, const char *end, uint64_t before) {
  if (pwi_uci_is_empty(begin, end)) return false;
  uint64_t document = pwi_uci_document(begin, end);
  return document == 0 || document != before;
}

/* Parses the three head lines of a file: `size` bytes with slack behind them. False: the head lines are
 * missing. */
bool pwi_uci_head(const char *head, size_t size, struct pwi_bag *bag_out);

/* Whether the line behind the head consists of three whole numbers. */
bool pwi_uci_has_entry(const char *head, size_t size, const struct pwi_bag *bag);

#endif
