#include "data/formats/detect.h"

#include <stdbool.h>
#include <string.h>

#include "data/formats/number.h"
#include "data/formats/csv_layout.h"
#include "data/formats/uci.h"

struct text_line {
  const char *begin, *end; /* without its line break */
};

/* The first line that is neither empty nor a comment. */
static bool first_line(const char *head, size_t size, struct text_line *line_out) {
  const char *at = head, *end = head + size;
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
    if (!stop) stop = end;
    if (stop > at && stop[-1] == '\r') stop--;
    const char *first = at;
    while (first < stop && (*first == ' ' || *first == '\t')) first++;
    if (first < stop && *first != '#') {
      *line_out = (struct text_line){at, stop};
      return true;
    }
    at = next;
  }
  return false;
}

static size_t count(struct text_line line, char c) {
  size_t found = 0;
  for (const char *at = line.begin; at < line.end; at++) found += *at == c;
  return found;
}

static bool starts_with_number(const char *at, const char *end) {
  const char *stop;
  double value;
  if (at == end || !pwi_number(at, &stop, &value) || stop > end) return false;
  return stop == end || *stop == ' ' || *stop == '\t';
}

/* Whether a colon comes before the next blank. */
static bool has_colon(const char *at, const char *end) {
  while (at < end && *at != ' ' && *at != '\t' && *at != ':') at++;
  return at < end && *at == ':';
}

/* A label, followed by an id, a group, or nothing; or, without a label, an id and its value. */
static bool is_libsvm(struct text_line line, bool has_words) {
  const char *at = line.begin;
  while (at < line.end && (*at == ' ' || *at == '\t')) at++;
  uint64_t id;
  const char *stop;
  if (at < line.end && pwi_whole_number(at, &stop, &id) && stop < line.end && *stop == ':') return true;
  if (!has_words && !starts_with_number(at, line.end)) return false;
  while (at < line.end && *at != ' ' && *at != '\t') at++;
  while (at < line.end && (*at == ' ' || *at == '\t')) at++;
  if (has_words) return at < line.end && (has_colon(at, line.end) || *at == '#');
  if (at == line.end || pwi_is_digit(*at) || *at == '#' || strncmp(at, "qid:", 4) == 0) return true;
  return has_colon(at, line.end); /* the id is malformed; the parser will report it */
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Whether the line is `number id:count …` with as many pairs of whole numbers as it announces. */
static bool is_document(const char *at, const char *end, uint64_t *pairs_out) {
  uint64_t due, number, pairs = 0;
  while (at < end && (*at == ' ' || *at == '\t')) at++;
  if (at == end || !pwi_whole_number(at, &at, &due)) return false;
  while (at < end) {
    if (*at != ' ' && *at != '\t') return false;
    while (at < end && (*at == ' ' || *at == '\t')) at++;
    if (at == end) break;
    if (!pwi_whole_number(at, &at, &number) || *at != ':') return false;
    if (!pwi_whole_number(at + 1, &at, &number) || number == 0) return false;
    pairs++;
  }
  *pairs_out = pairs;
  return pairs == due;
}

/* Whether all complete lines are LDA-C documents, and at least one has two words or more: `1 5:1` is valid
 * LIBSVM, too. */
static bool is_ldac(const char *head, size_t size) {
  const char *at = head, *end = head + size;
  bool has_two = false;
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
    uint64_t pairs;
    if (!stop && at > head) break; /* the line may be cut off */
    if (!stop) stop = end;
    if (stop > at && stop[-1] == '\r') stop--;
    if (stop > at) {
      if (!is_document(at, stop, &pairs)) return false;
      has_two |= pairs > 1;
    }
    at = next;
  }
  return has_two;
}

static enum pawl_data_format guess_documents(const char *head, size_t size) {
  struct pwi_bag bag;
  if (pwi_uci_head(head, size, &bag) && pwi_uci_has_entry(head, size, &bag)) return PAWL_DATA_UCI;
  return is_ldac(head, size) ? PAWL_DATA_LDAC : PAWL_DATA_AUTO;
}

/* --- rows ----------------------------------------------------------------------------------------------- */

/* Whether tabs separate fields; a trailing tab does not count. */
static bool has_tabs(struct text_line line) {
  while (line.end > line.begin && (line.end[-1] == ' ' || line.end[-1] == '\t')) line.end--;
  return count(line, '\t') > 0;
}

static enum pawl_data_format guess(struct text_line line, bool has_words) {
  if (memchr(line.begin, '|', (size_t)(line.end - line.begin))) return PAWL_DATA_VW;
  if (count(line, '\t') == PWI_CRITEO_COLUMNS - 1) return PAWL_DATA_CRITEO;
  if (pwi_csv_is_criteo_head(line.begin, line.end)) return PAWL_DATA_CRITEO;
  const char *comment = memchr(line.begin, '#', (size_t)(line.end - line.begin));
  struct text_line before = {line.begin, comment ? comment : line.end};
  if (count(before, ',') > 0 || count(before, ';') > 0) return PAWL_DATA_CSV;
  if (has_tabs(before) && (count(before, ':') == 0 || !is_libsvm(line, false))) return PAWL_DATA_CSV;
  return is_libsvm(line, false) || (has_words && is_libsvm(line, true)) ? PAWL_DATA_LIBSVM : PAWL_DATA_AUTO;
}

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

pawl_status pwi_detect(const char *head, size_t size, const char *label, struct pwi_parse_rule *rule,
                       const char **why_out) {
  struct text_line line;
  if (rule->format == PAWL_DATA_TEXT) return PAWL_OK; /* an empty line is also a document */
  if (!first_line(head, size, &line)) return say(why_out, PAWL_TRUNCATED, "the file contains no rows");
  if (rule->format == PAWL_DATA_AUTO) rule->format = guess_documents(head, size);
  if (rule->format == PAWL_DATA_AUTO) rule->format = guess(line, rule->labels != NULL);
  switch (rule->format) {
  case PAWL_DATA_LIBSVM:
  case PAWL_DATA_VW:
  case PAWL_DATA_LDAC:
    return PAWL_OK;
  case PAWL_DATA_UCI:
    if (pwi_uci_head(head, size, &rule->bag)) return PAWL_OK;
    return say(why_out, PAWL_CORRUPT,
               "not a UCI bag of words: its first three lines must be the numbers of documents, words and entries");
  case PAWL_DATA_CRITEO:
    return pwi_csv_layout_of_criteo(&rule->table, head, line.begin, line.end, why_out);
  case PAWL_DATA_CSV:
    return pwi_csv_layout_of_csv(&rule->table, head, size, line.begin, line.end, label, rule->labels != NULL, why_out);
  default:
    return say(
        why_out, PAWL_CORRUPT,
        "cannot detect the format from the first row (known: libsvm, vw, criteo, csv, cache, ldac, uci); name the "
        "format, also if the file is plain text");
  }
}
