/* LIBSVM text: `label id:value id:value … # comment`.
 *
 * Rows are parsed in one pass, without searching for the end of the line first: every line ends with a
 * line break, which stops every number and every search for a blank.
 */
#include "data/formats/parser.h"

#include <math.h>
#include <string.h>

#include "data/formats/number.h"

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool ends_token(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static const char *skip_blanks(const char *at) {
  while (is_blank(*at)) at++;
  return at;
}

/* Whether the line ends here: with a line break, CR LF, or a comment before them. */
static bool ends_line(const char *at) { return *at == '\n' || *at == '#' || (*at == '\r' && at[1] == '\n'); }

static const char *next_line(const char *at, const char *end) {
  const char *found = *at == '\n' ? at : memchr(at, '\n', (size_t)(end - at));
  return found ? found + 1 : end;
}

/* Skips the query group (qid) of a row in ranking files. */
static const char *skip_group(const char *at) {
  if (strncmp(at, "qid:", 4) != 0) return at;
  while (!ends_token(*at)) at++;
  return skip_blanks(at);
}

static pawl_status bad_entry(struct pwi_parse *parse, const char *at, const char *end, bool has_id) {
  if (end > at && !has_id) return pwi_parse_wrong(parse, at, "the feature id exceeds 2^63 - 1");
  if (!has_id)
    return pwi_parse_wrong(parse, at, *at == ':' ? "expected a feature id before the colon" : "expected a feature id");
  if (ends_token(*end)) return pwi_parse_wrong(parse, end, "expected a value behind the colon");
  return pwi_parse_wrong(parse, end, "expected a number");
}

static pawl_status bad_end(struct pwi_parse *parse, const char *at, bool has_value) {
  return pwi_parse_wrong(
      parse, at, has_value ? "unexpected character in a number" : "expected a colon or a blank behind the feature id");
}

/* Parses the entries of a row. `*at` moves from their beginning to the end of the line. */
static inline pawl_status entries(struct pwi_parse *parse, struct pwi_batch *batch, const char **at_inout,
                                  size_t *count_out, bool *is_sorted_out) {
  const char *at = *at_inout;
  uint64_t *ids = batch->ids + batch->is.entries, last = 0;
  float *values = batch->values + batch->is.entries;
  bool is_sorted = true;
  size_t count = 0;
  for (;;) {
    const char *end;
    uint64_t id;
    double value = 1;
    if (*at == ' ') at++;
    if (is_blank(*at)) at = skip_blanks(at);
    if (ends_line(at)) break;
    if (!pwi_whole_number(at, &end, &id)) return bad_entry(parse, at, end, false);
    bool has_value = *end == ':';
    if (has_value) {
      if (!pwi_number(end + 1, &end, &value)) return bad_entry(parse, at, end + 1, true);
      if (!isfinite((float)value)) return pwi_parse_wrong(parse, at, "the value does not fit a finite float");
    }
    if (!ends_token(*end)) return bad_end(parse, end, has_value);
    is_sorted &= id > last || count == 0;
    last = id;
    ids[count] = id;
    values[count++] = (float)value;
    at = end;
  }
  *at_inout = at;
  *count_out = count;
  *is_sorted_out = is_sorted;
  return PAWL_OK;
}

/* `*at` moves behind the label, or stays if there is none. */
static pawl_status read_label(const struct pwi_parse_rule *rule, struct pwi_parse *parse, const char **at_inout,
                              float *label_out) {
  const char *first = *at_inout, *at = first;
  uint64_t id;
  bool has_none = rule->labels && pwi_whole_number(first, &at, &id) && *at == ':';
  pawl_status status = has_none ? PAWL_OK : pwi_parse_label(rule, parse, first, ':', &at, label_out);
  if (status) return status;
  if (*at == ':' && !has_none && rule->labels) return pwi_parse_wrong(parse, at, "a label may not have a colon");
  if (rule->labels && memchr(first, ',', (size_t)(at - first)))
    return pwi_parse_wrong(parse, first, "several labels; expected one");
  if (*at == ':' && rule->labels_optional) {
    *label_out = (float)NAN;
    return PAWL_OK;
  }
  if (*at == ':') return pwi_parse_wrong(parse, first, "expected a label before the features");
  if (!ends_token(*at)) return pwi_parse_wrong(parse, at, "unexpected character in a number");
  *at_inout = at;
  return PAWL_OK;
}

static pawl_status row(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch,
                       const char *at, const char **next_out) {
  const char *line_end = memchr(at, '\n', (size_t)(parse->end - at));
  float label;
  size_t count;
  bool is_sorted;
  /* an entry takes at least a digit and a blank */
  pawl_status status = pwi_batch_room(batch, (size_t)(line_end - at) / 2 + 1);
  if (!status) status = read_label(rule, parse, &at, &label);
  if (status) return status;
  at = skip_group(skip_blanks(at));
  status = entries(parse, batch, &at, &count, &is_sorted);
  if (!status) status = pwi_parse_end_row(parse, batch, count, is_sorted, label, 1);
  if (!status) *next_out = line_end + 1;
  return status;
}

pawl_status pwi_parse_libsvm(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    const char *at = skip_blanks(parse->at);
    if (ends_line(at)) {
      parse->at = next_line(at, parse->end);
      continue;
    }
    pawl_status status = row(rule, parse, batch, at, &parse->at);
    if (status) return status;
  }
  return PAWL_OK;
}
