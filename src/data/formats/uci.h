/* UCI's bag of words: what tells one document from the next, for those who parse and those who cut files into pieces.
 *
 * A document is a run of lines whose first number is the same. Whether a line begins one is told by it and the line before, empty
 * ones not counted, as far as that lies within PWI_UCI_LOOK bytes: so the cut of a file decides nothing. A line that does not begin
 * with a number of a document, or is longer than PWI_UCI_LINE, is a document of its own, and a bad one. Pure.
 */
#ifndef PWI_DATA_FORMATS_UCI_H
#define PWI_DATA_FORMATS_UCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/formats/parser.h"

#define PWI_UCI_LOOK 256 /* bytes before a line that are looked at */
#define PWI_UCI_LINE 250 /* bytes of a line, at most */

/* A line at `begin` that ends before its line break at `end`: 0 if it names no document. */
uint64_t pwi_uci_document(const char *begin, const char *end);

bool pwi_uci_is_empty(const char *begin, const char *end);

/* The document of the line before that at `at`: 0 if none is known. `floor` is where bytes may be read from: PWI_UCI_LOOK before
 * `at` or earlier, or with `is_start` where the text begins. */
uint64_t pwi_uci_before(const char *floor, bool is_start, const char *at);

/* Whether a document begins with the line. */
static inline bool pwi_uci_begins(const char *begin, const char *end, uint64_t before) {
  if (pwi_uci_is_empty(begin, end)) return false;
  uint64_t document = pwi_uci_document(begin, end);
  return document == 0 || document != before;
}

/* Reads the three lines at the head of a file, `size` bytes with slack behind them. False: they are not there. */
bool pwi_uci_head(const char *head, size_t size, struct pwi_bag *bag_out);

/* Whether the line behind the head is one of three whole numbers. */
bool pwi_uci_has_entry(const char *head, size_t size, const struct pwi_bag *bag);

#endif
