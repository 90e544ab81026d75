/* Vowpal Wabbit's text: `label [importance] ['tag]|space[:scale] name[:value] … |space …`.
 *
 * A feature's hash is XXH3-64 of its name, seeded with the hash of its namespace. The seed is 0 for the
 * default namespace.
 */
#include "data/formats/parser.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "data/formats/number.h"

/* A row that is being parsed. */
struct vw_row {
  struct pwi_parse *parse;
  const char *at, *end; /* the rest of the line, without its line break */
  uint32_t hash_bits;
  uint64_t *ids;
  float *values;
  size_t count;
  float label, weight;
  const struct pwi_parse_rule *rule;
};

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Whether a name ends before this character. A line break ends a name, too. */
static bool ends_name(char c) { return c == ' ' || c == ':' || c == '|' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_blanks(struct vw_row *row) {
  while (row->at < row->end && is_blank(*row->at)) row->at++;
}

static const char *name_end(const struct vw_row *row) {
  const char *at = row->at;
  while (!ends_name(*at)) at++;
  return at;
}

/* Parses the number behind a colon, which ends at a blank, a bar or the end of the line. */
static pawl_status number(struct vw_row *row, double *value_out) {
  const char *end, *begin = ++row->at;
  if (begin == row->end || is_blank(*begin) || *begin == '|')
    return pwi_parse_wrong(row->parse, begin, "expected a value behind the colon");
  if (!pwi_number(begin, &end, value_out)) return pwi_parse_wrong(row->parse, begin, "expected a number");
  if (end != row->end && !is_blank(*end) && *end != '|')
    return pwi_parse_wrong(row->parse, end, "unexpected character in a number");
  row->at = end;
  return PAWL_OK;
}

/* --- before the first bar ------------------------------------------------------------------------------- */

/* Parses the importance, a separate number. A tag begins with a quote or touches the bar, and is ignored. */
static pawl_status importance(struct vw_row *row, const char *bar) {
  const char *end;
  double value;
  row->weight = 1;
  skip_blanks(row);
  if (row->at == bar || !pwi_number(row->at, &end, &value) || !is_blank(*end)) return PAWL_OK;
  if (!isfinite((float)value) || value < 0)
    return pwi_parse_wrong(row->parse, row->at, "the importance must be a finite number, 0 or more");
  row->weight = (float)value;
  row->at = end;
  skip_blanks(row);
  if (row->at < bar && pwi_number(row->at, &end, &value) && is_blank(*end))
    return pwi_parse_wrong(row->parse, row->at, "a third number before the bar: initial predictions are not supported");
  return PAWL_OK;
}

static pawl_status tag(struct vw_row *row, const char *bar) {
  const char *begin = row->at;
  while (row->at < bar && !is_blank(*row->at)) row->at++;
  if (row->at < bar && *begin != '\'')
    return pwi_parse_wrong(row->parse, begin, "expected an importance, or a tag that begins with a quote");
  skip_blanks(row);
  return row->at == bar ? PAWL_OK : pwi_parse_wrong(row->parse, row->at, "unexpected text between the tag and the bar");
}

static pawl_status before_bar(struct vw_row *row) {
  const char *bar = memchr(row->at, '|', (size_t)(row->end - row->at));
  skip_blanks(row);
  if (!bar) return pwi_parse_wrong(row->parse, row->end, "expected a bar before the features");
  if (row->at == bar || *row->at == '\'') {
    if (!row->rule->labels_optional) return pwi_parse_wrong(row->parse, row->at, "no label");
    row->label = (float)NAN;
    row->weight = 1;
    return tag(row, bar);
  }
  pawl_status status = pwi_parse_label(row->rule, row->parse, row->at, '|', &row->at, &row->label);
  if (status) return status;
  if (row->at != bar && !is_blank(*row->at))
    return pwi_parse_wrong(row->parse, row->at, "unexpected character in a number");
  status = importance(row, bar);
  return status ? status : tag(row, bar);
}

/* --- namespaces ----------------------------------------------------------------------------------------- */

static pawl_status feature(struct vw_row *row, struct pwi_field space_name, uint64_t seed, double scale) {
  const char *begin = row->at, *end = name_end(row);
  double value = 1;
  if (end == begin) return pwi_parse_wrong(row->parse, begin, "expected the name of a feature before the colon");
  row->at = end;
  if (row->at < row->end && *row->at == ':') {
    pawl_status status = number(row, &value);
    if (status) return status;
  }
  value *= scale;
  if (!isfinite((float)value)) return pwi_parse_wrong(row->parse, begin, "the value does not fit a finite float");
  row->ids[row->count] = pwi_hashed_id(pwi_hash(begin, (size_t)(end - begin), seed), row->hash_bits);
  if (row->parse->namer)
    row->parse->namer->found(row->parse->namer, row->ids[row->count], 0, space_name,
                             (struct pwi_field){begin, end, false});
  row->values[row->count++] = (float)value;
  return PAWL_OK;
}

/* Parses from behind a bar to the next bar or the end of the line. */
static pawl_status space(struct vw_row *row) {
  const char *begin = row->at, *end = name_end(row);
  uint64_t seed = end > begin ? pwi_hash(begin, (size_t)(end - begin), 0) : 0;
  double scale = 1;
  pawl_status status = PAWL_OK;
  row->at = end;
  if (row->at < row->end && *row->at == ':') status = number(row, &scale);
  while (!status) {
    skip_blanks(row);
    if (row->at == row->end || *row->at == '|') return PAWL_OK;
    if (*row->at == '\r') return pwi_parse_wrong(row->parse, row->at, "a carriage return within a line");
    status = feature(row, (struct pwi_field){begin, end, false}, seed, scale);
  }
  return status;
}

static pawl_status read_row(struct vw_row *row) {
  pawl_status status = before_bar(row);
  while (!status && row->at < row->end) {
    row->at++; /* skip the bar */
    status = space(row);
  }
  return status;
}

pawl_status pwi_parse_vw(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    const char *stop = memchr(parse->at, '\n', (size_t)(parse->end - parse->at)), *end = stop;
    if (end > parse->at && end[-1] == '\r') end--;
    struct vw_row row = {.parse = parse, .at = parse->at, .end = end, .hash_bits = rule->hash_bits, .rule = rule};
    skip_blanks(&row);
    if (row.at < end) {
      pawl_status status = pwi_batch_room(batch, (size_t)(end - row.at) / 2 + 1);
      if (status) return status;
      row.ids = batch->ids + batch->is.entries;
      row.values = batch->values + batch->is.entries;
      status = read_row(&row);
      if (!status) status = pwi_parse_end_row(parse, batch, row.count, row.count < 2, row.label, row.weight);
      if (status) return status;
    }
    parse->at = stop + 1;
  }
  return PAWL_OK;
}
