/* Formats: how rows are read out of text.
 *
 * A parser gets whole lines, each with its line break, and appends their rows to a batch. It stops at the first that
 * it cannot read and says where and why; whoever called it decides whether to go on behind that line. Files and
 * threads are none of its business. Pure, but for memory.
 *
 * The text must be followed by PWI_NUMBER_SLACK bytes that may be read.
 */
#ifndef PWI_DATA_FORMATS_PARSER_H
#define PWI_DATA_FORMATS_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/data.h>

#include "data/batch.h"

/* The columns of a table: csv, and criteo. */
struct pwi_table_layout {
  char separator;   /* 0, before the first line was looked at: whichever fits it best */
  bool has_head;    /* the first line names the columns */
  bool lacks_label; /* the label's column is not there */
  size_t columns;   /* of every row of the file */
  size_t
      width; /* the same with the label's column, where that is lacking. Before: how many there should be; 0: not known */
  size_t label;       /* its column counted from 0, or where it would be. Before: where it would be */
  size_t head_begin;  /* where the head line begins */
  size_t head_length; /* where it ends, its line break included; 0 without one */
};

/* What the first three lines of a bag of words say: uci. */
struct pwi_bag {
  uint64_t documents, words, entries;
  size_t head_length; /* of the three, their line breaks included */
};

/* What a parser must know of a file. */
struct pwi_parse_rule {
  enum pawl_data_format format;
  uint32_t hash_bits;
  struct pwi_table_layout table;
  struct pwi_bag bag;
  const struct pawl_words *words; /* documents: their vocabulary. NULL: none */
  bool labels_optional;           /* rows without a label have NAN */
};

/* A field of a line. Quotes that stand around it are not part of it, nor are blanks if there are none; `is_quoted`
 * then says that inner ones are doubled. */
struct pwi_field {
  const char *begin, *end;
  bool is_quoted;
};

/* Is told what hashed ids stand for. `column` is that of a table, from 1; else 0, and `space` is the name space. */
struct pwi_namer {
  void (*found)(struct pwi_namer *namer, uint64_t id, size_t column, struct pwi_field space, struct pwi_field name);
};

/* Where parsing is. After PAWL_CORRUPT `at` is the beginning of the line that is bad, `wrong` the byte in it, `what`
 * why; and `next` where the row behind it begins. */
struct pwi_parse {
  const char *at, *end;
  const char *wrong;
  const char *what;        /* static, or `text` */
  const char *next;        /* NULL: behind the line */
  uint64_t before;         /* uci: the document before `at`; 0: none is known */
  struct pwi_namer *namer; /* NULL: nobody wants to know names */
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

/* --- for parsers ------------------------------------------------------------------------------------------------------------ */

static inline pawl_status pwi_parse_wrong(struct pwi_parse *parse, const char *wrong, const char *what) {
  parse->wrong = wrong;
  parse->what = what;
  return PAWL_CORRUPT;
}

/* The same with words that are made here. */
pawl_status pwi_parse_wrong_so(struct pwi_parse *parse, const char *wrong, const char *format, ...) PAWL_PRINTF(3, 4);

/* A hash becomes an id: 1 … 2^bits. */
static inline uint64_t pwi_hashed_id(uint64_t hash, uint32_t bits) { return (hash >> (64 - bits)) + 1; }

/* How a row's end went: PAWL_OVERFLOW becomes a fault of the row. */
PAWL_MUST_USE pawl_status pwi_parse_end_row(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries,
                                            bool is_sorted, float label, float weight);

/* The same for a document, whose counts, `total` of them in all, are the values. A word's may not exceed PAWL_COUNT_MAX. */
PAWL_MUST_USE pawl_status pwi_parse_end_document(struct pwi_parse *parse, struct pwi_batch *batch, size_t entries,
                                                 bool is_sorted, uint64_t total);

/* How often a word occurs: whole, and 1 to PAWL_COUNT_MAX. What ends it is looked at by the caller. */
PAWL_MUST_USE pawl_status pwi_parse_count(struct pwi_parse *parse, const char *text, const char **end_out,
                                          uint64_t *count_out);

PAWL_MUST_USE pawl_status pwi_parse_label(struct pwi_parse *parse, const char *text, const char **end_out,
                                          float *label_out);

#endif
