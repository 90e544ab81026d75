/* Parsers: each reads rows of one format out of text.
 *
 * A parser is given whole lines, each with its line break, and appends their rows to a batch. It stops at
 * the first line that it cannot read, and records where and why; the caller decides whether to continue
 * behind that line. Parsers know nothing of files and threads. Pure, but for memory.
 *
 * The text must be followed by PWI_NUMBER_SLACK readable bytes.
 */
#ifndef PWI_DATA_FORMATS_PARSER_H
#define PWI_DATA_FORMATS_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

#include "data/batch.h"

/* The column layout of a table (csv, criteo). "On entry" refers to detection (data/formats/csv_layout.h). */
struct pwi_csv_layout {
  char separator;   /* on entry 0 means: choose the separator that fits the first line best */
  bool has_head;    /* the first line names the columns */
  bool lacks_label; /* the file has no label column */
  size_t columns;   /* columns of every row of the file */
  /* columns including the label, even if the file lacks it; on entry the expected number, 0 if unknown */
  size_t width;
  /* column of the label, counted from 0, or where it would be; on entry where it would be */
  size_t label;
  size_t head_begin;  /* offset of the head line */
  size_t head_length; /* end of the head line with its line break; 0 without a head line */
};

/* The three head lines of a UCI bag of words. */
struct pwi_bag {
  uint64_t documents, words, entries;
  size_t head_length; /* bytes of the three lines with their line breaks */
};

/* The properties of a file that its parser needs. */
struct pwi_parse_rule {
  enum pawl_data_format format;
  uint32_t hash_bits;
  struct pwi_csv_layout table;
  struct pwi_bag bag;
  const struct pawl_words *words; /* the vocabulary of documents; NULL: none */
  bool labels_optional;           /* rows without a label get NAN */
  struct pawl_labels *labels;     /* labels may be words, and get their numbers here; NULL: labels are numbers */
};

/* A field of a line, without enclosing quotes or, if it is unquoted, surrounding blanks. `is_quoted`:
 * quotes inside the field are doubled. */
struct pwi_field {
  const char *begin, *end;
  bool is_quoted;
};

/* Receives the names behind hashed ids. `column` is the column of a table, counted from 1; in other
 * formats it is 0, and `space` is the namespace. */
struct pwi_namer {
  void (*found)(struct pwi_namer *namer, uint64_t id, size_t column, struct pwi_field space, struct pwi_field name);
};

/* The position of a parser. After PAWL_CORRUPT `at` is the start of the bad line, `wrong` the offending
 * byte, `what` the reason, and `next` the start of the next row. */
struct pwi_parse {
  const char *at, *end;
  const char *wrong;
  const char *what;        /* a static text, or `text` below */
  const char *next;        /* NULL: the next row starts behind the bad line */
  uint64_t before;         /* uci: the document before `at`; 0: unknown */
  struct pwi_namer *namer; /* NULL: names are not wanted */
  char text[160];
};

/* The parsers, one for each format. All of them return what pwi_parse_rows does (data/parse.h). */
PAWL_MUST_USE pawl_status pwi_parse_libsvm(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                           struct pwi_batch *batch);
PAWL_MUST_USE pawl_status pwi_parse_vw(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                       struct pwi_batch *batch);
PAWL_MUST_USE pawl_status pwi_parse_criteo(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                           struct pwi_batch *batch);
PAWL_MUST_USE pawl_status pwi_parse_csv(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                        struct pwi_batch *batch);

PAWL_MUST_USE pawl_status pwi_parse_ldac(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                         struct pwi_batch *batch);
PAWL_MUST_USE pawl_status pwi_parse_uci(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                        struct pwi_batch *batch);
PAWL_MUST_USE pawl_status pwi_parse_text(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                         struct pwi_batch *batch);

/* --- helpers for parsers -------------------------------------------------------------------------------- */

static inline pawl_status pwi_parse_wrong(struct pwi_parse *parse, const char *wrong, const char *what) {
  parse->wrong = wrong;
  parse->what = what;
  return PAWL_CORRUPT;
}

/* As pwi_parse_wrong, with a formatted reason. */
pawl_status pwi_parse_wrong_so(struct pwi_parse *parse, const char *wrong, const char *format, ...) PAWL_PRINTF(3, 4);

/* Maps a hash to an id in 1 … 2^bits. */
static inline uint64_t pwi_hashed_id(uint64_t hash, uint32_t bits) { return (hash >> (64 - bits)) + 1; }

/* Ends a row. Reports PAWL_OVERFLOW as a fault of the row (PAWL_CORRUPT). */
PAWL_MUST_USE pawl_status pwi_parse_end_row(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries,
                                            bool is_sorted, float label, float weight);

/* Ends a document, whose values are word counts with the sum `total`. The count of one word may not exceed
 * PAWL_COUNT_MAX. */
PAWL_MUST_USE pawl_status pwi_parse_end_document(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries,
                                                 bool is_sorted, uint64_t total);

/* Parses the count of a word: a whole number from 1 to PAWL_COUNT_MAX. The caller checks the byte behind
 * it. */
PAWL_MUST_USE pawl_status pwi_parse_count(struct pwi_parse *parse, const char *text, const char **end_out,
                                          uint64_t *count_out);

/* Parses the label at `text`, which ends before `*end_out`: at a character that is not part of a number or, if labels may
 * be words, at a blank, at the end of the line or at a `stop`. */
PAWL_MUST_USE pawl_status pwi_parse_label(const struct pwi_parse_rule *rule, struct pwi_parse *parse, const char *text,
                                          char stop, const char **end_out, float *label_out);

/* Parses a label of known size, which is not empty. The rule has a table of labels. */
PAWL_MUST_USE pawl_status pwi_parse_word_label(const struct pwi_parse_rule *rule, struct pwi_parse *parse,
                                               const char *begin, const char *end, float *label_out);

#endif
