#include "data/formats/rating_lines.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/formats/csv_layout.h"
#include "data/formats/number.h"

#define BANNER "%%MatrixMarket"
#define FIELDS PWI_RATING_FIELDS

const char *pwi_rating_line_end(const char *begin, const char *end, const char **next_out) {
  const char *stop = begin < end ? memchr(begin, '\n', (size_t)(end - begin)) : NULL;
  *next_out = stop ? stop + 1 : end;
  if (!stop) stop = end;
  return stop > begin && stop[-1] == '\r' ? stop - 1 : stop;
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* --- fields ---------------------------------------------------------------------------------------------- */

static bool blank_field(const char **at, const char *end, struct pwi_field *field_out) {
  const char *begin = *at;
  while (begin < end && is_blank(*begin)) begin++;
  const char *stop = begin;
  while (stop < end && !is_blank(*stop)) stop++;
  *field_out = (struct pwi_field){begin, stop, false};
  *at = stop;
  return begin < stop;
}

/* The next field of a line that is separated by tabs or by "::". */
static bool plain_field(char separator, const char **at, const char *end, struct pwi_field *field_out) {
  const char *begin = *at, *stop = begin;
  while (stop < end && !(*stop == separator && (separator != ':' || (stop + 1 < end && stop[1] == ':')))) stop++;
  *field_out = (struct pwi_field){begin, stop, false};
  *at = stop;
  return true;
}

int pwi_rating_fields(char separator, const char *begin, const char *end, struct pwi_field fields[FIELDS]) {
  const char *at = begin;
  size_t step = separator == ':' ? 2 : 1;
  int count = 0;
  for (; count < FIELDS; count++) {
    if (separator == ' ') {
      if (!blank_field(&at, end, &fields[count])) return count;
      continue;
    }
    if (separator == ',' || separator == ';' ? !pwi_csv_field(separator, &at, end, &fields[count])
                                             : !plain_field(separator, &at, end, &fields[count]))
      return -1;
    if (at == end) return count + 1;
    at += step;
  }
  return count;
}

/* --- lines ----------------------------------------------------------------------------------------------- */

static bool bad(struct pwi_rating_line *line, const char *format, ...) PAWL_PRINTF(2, 3);

static bool bad(struct pwi_rating_line *line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line->problem, sizeof line->problem, format, arguments);
  va_end(arguments);
  return false;
}

static int shown(struct pwi_field field) { return field.end - field.begin > 32 ? 32 : (int)(field.end - field.begin); }

static bool check_name(struct pwi_rating_line *line, struct pwi_field field, const char *what) {
  size_t size = (size_t)(field.end - field.begin);
  if (size == 0) return bad(line, "the id of the %s is empty", what);
  if (size > PWI_RATING_NAME_MAX)
    return bad(line, "the id of the %s has %zu bytes; at most %d are possible", what, size, PWI_RATING_NAME_MAX);
  if (memchr(field.begin, 0, size)) return bad(line, "the id of the %s has a byte of 0", what);
  return true;
}

/* Numbers end before the end of the field: a line is followed by a byte that is not part of one, and so is a field. */
static bool read_value(struct pwi_rating_line *line, struct pwi_field field) {
  const char *stop = field.begin;
  double value;
  if (field.begin == field.end) return bad(line, "the rating is empty");
  if (is_blank(*field.begin) || !pwi_number(field.begin, &stop, &value) || stop != field.end)
    return bad(line, "the rating '%.*s' is not a number", shown(field), field.begin);
  if (!isfinite(value)) return bad(line, "the rating '%.*s' is not finite", shown(field), field.begin);
  if (fabs(value) > (double)FLT_MAX)
    return bad(line, "the rating '%.*s' is too large: ratings are floats", shown(field), field.begin);
  line->value = value;
  return true;
}

static bool read_index(struct pwi_rating_line *line, struct pwi_field *field, uint64_t most, const char *what) {
  const char *stop = field->begin;
  uint64_t index = 0;
  if (!pwi_whole_number(field->begin, &stop, &index) || stop != field->end)
    return bad(line, "the %s '%.*s' is not a whole number", what, shown(*field), field->begin);
  if (index < 1 || index > most)
    return bad(line, "%s %llu is not from 1 to %llu", what, (unsigned long long)index, (unsigned long long)most);
  while (*field->begin == '0') field->begin++; /* 01 is the row 1 */
  return true;
}

bool pwi_rating_line_parse(const struct pwi_rating_rule *rule, const char *begin, const char *end,
                           struct pwi_rating_line *line) {
  struct pwi_field fields[FIELDS];
  int count = pwi_rating_fields(rule->separator, begin, end, fields),
      wanted = rule->values_optional || rule->is_pattern ? 2 : 3;
  if (count < 0) return bad(line, "a quote is not closed, or text follows it");
  if (count < wanted)
    return bad(line, "expected user, item and rating, found %d field%s", count, count == 1 ? "" : "s");
  line->user = fields[0];
  line->item = fields[1];
  line->value = (double)NAN;
  if (rule->format == PAWL_RATINGS_MTX &&
      (!read_index(line, &line->user, rule->rows, "row") || !read_index(line, &line->item, rule->columns, "column")))
    return false;
  if (!check_name(line, line->user, "user") || !check_name(line, line->item, "item")) return false;
  return count < 3 || rule->is_pattern || read_value(line, fields[2]);
}

/* --- the head -------------------------------------------------------------------------------------------- */

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

static bool is_word(struct pwi_field field, const char *word) {
  return (size_t)(field.end - field.begin) == strlen(word) && strncasecmp(field.begin, word, strlen(word)) == 0;
}

static pawl_status read_banner(const char *begin, const char *end, struct pwi_rating_rule *rule, const char **why_out) {
  struct pwi_field words[5];
  const char *at = begin;
  for (int i = 0; i < 5; i++)
    if (!blank_field(&at, end, &words[i]))
      return say(why_out, PAWL_CORRUPT, "expected '%%MatrixMarket matrix coordinate real general'");
  if (!is_word(words[1], "matrix") || !is_word(words[2], "coordinate"))
    return say(why_out, PAWL_UNSUPPORTED, "only coordinate matrices can be read");
  rule->is_pattern = is_word(words[3], "pattern");
  if (!rule->is_pattern && !is_word(words[3], "real") && !is_word(words[3], "integer"))
    return say(why_out, PAWL_UNSUPPORTED, "only matrices of reals or integers can be read");
  if (rule->is_pattern && !rule->values_optional) return say(why_out, PAWL_UNSUPPORTED, "a pattern has no ratings");
  if (!is_word(words[4], "general"))
    return say(why_out, PAWL_UNSUPPORTED, "only general matrices can be read, and no symmetric ones");
  return PAWL_OK;
}

static bool read_sizes(const char *begin, const char *end, struct pwi_rating_rule *rule) {
  uint64_t *const numbers[FIELDS] = {&rule->rows, &rule->columns, &rule->entries};
  struct pwi_field field;
  const char *at = begin, *stop;
  for (int i = 0; i < FIELDS; i++)
    if (!blank_field(&at, end, &field) || !pwi_whole_number(field.begin, &stop, numbers[i]) || stop != field.end)
      return false;
  return !blank_field(&at, end, &field);
}

/* The banner, comments, and the line of sizes. */
static pawl_status read_matrix(const char *text, size_t size, struct pwi_rating_rule *rule, const char **why_out) {
  const char *at = text, *end = text + size, *next;
  const char *stop = pwi_rating_line_end(at, end, &next);
  if (size < strlen(BANNER) || memcmp(text, BANNER, strlen(BANNER)) != 0)
    return say(why_out, PAWL_CORRUPT, "expected a first line that begins with %%MatrixMarket");
  pawl_status status = read_banner(at, stop, rule, why_out);
  if (status) return status;
  do {
    rule->head_lines++;
    at = next;
    if (at == end) return say(why_out, PAWL_TRUNCATED, "the file ends before the line of sizes");
    stop = pwi_rating_line_end(at, end, &next);
  } while (stop == at || *at == '%');
  if (!read_sizes(at, stop, rule))
    return say(why_out, PAWL_CORRUPT, "expected the numbers of rows, columns and entries");
  rule->head_lines++;
  rule->head_size = (size_t)(next - text);
  return PAWL_OK;
}

/* Whether a field can be the name of a column: it begins with a letter, and is neither a number nor has a digit. */
static bool is_name(struct pwi_field field) {
  const char *stop;
  double value;
  if (field.begin == field.end || !isalpha((unsigned char)*field.begin) || pwi_number(field.begin, &stop, &value))
    return false;
  for (const char *at = field.begin; at < field.end; at++)
    if (isdigit((unsigned char)*at)) return false;
  return true;
}

/* Whether a first line names columns: the third one has a usual name, or all three can be names. A first line with a bad
 * rating and ids of digits does not pass for a header. */
static bool is_header(const struct pwi_rating_rule *rule, const char *begin, const char *end) {
  static const char *const values[] = {"rating", "ratings", "score", "stars", "value"};
  static const char *const users[] = {"user", "userid", "user_id"};
  struct pwi_field fields[FIELDS];
  int count = pwi_rating_fields(rule->separator, begin, end, fields);
  for (size_t i = 0; count == FIELDS && i < sizeof values / sizeof *values; i++)
    if (is_word(fields[2], values[i])) return true;
  for (size_t i = 0; count == 2 && rule->values_optional && i < sizeof users / sizeof *users; i++)
    if (is_word(fields[0], users[i])) return true; /* a table of pairs */
  return count == FIELDS && is_name(fields[0]) && is_name(fields[1]) && is_name(fields[2]);
}

char pwi_rating_separator(const char *begin, const char *end, char otherwise) {
  size_t size = (size_t)(end - begin);
  if (memmem(begin, size, "::", 2)) return ':';
  return memchr(begin, '\t', size) ? '\t' : otherwise;
}

static void read_table(const char *text, size_t size, struct pwi_rating_rule *rule) {
  const char *at = text, *end = text + size, *next = at, *stop;
  do {
    at = next;
    stop = pwi_rating_line_end(at, end, &next);
    rule->head_lines += stop == at; /* empty lines before the first one */
  } while (stop == at && next < end);
  bool has_comma = memchr(at, ',', (size_t)(stop - at)) != NULL;
  bool has_semicolon = memchr(at, ';', (size_t)(stop - at)) != NULL;
  char plain = pwi_rating_separator(at, stop, ' ');
  if (rule->format == PAWL_RATINGS_AUTO)
    rule->format = has_comma || (has_semicolon && plain == ' ') ? PAWL_RATINGS_CSV : PAWL_RATINGS_TRIPLES;
  rule->separator = rule->format != PAWL_RATINGS_CSV ? plain : has_semicolon && !has_comma ? ';' : ',';
  rule->head_size = (size_t)(at - text);
  if (!is_header(rule, at, stop)) return;
  rule->head_size = (size_t)(next - text);
  rule->head_lines++;
}

pawl_status pwi_rating_rule_of(const char *text, size_t size, enum pawl_ratings_format format,
                               struct pwi_rating_rule *rule, const char **why_out) {
  bool is_matrix = size >= strlen(BANNER) && memcmp(text, BANNER, strlen(BANNER)) == 0;
  *rule = (struct pwi_rating_rule){.format = format, .separator = ' ', .values_optional = rule->values_optional};
  if (format == PAWL_RATINGS_AUTO && is_matrix) rule->format = PAWL_RATINGS_MTX;
  if (rule->format == PAWL_RATINGS_MTX) return read_matrix(text, size, rule, why_out);
  read_table(text, size, rule);
  return PAWL_OK;
}
