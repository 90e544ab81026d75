#include "data/formats/csv_layout.h"

#include <string.h>

#include "data/formats/number.h"

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

/* --- fields --------------------------------------------------------------------------------------------- */

static const char *find(const char *at, const char *end, char c) {
  return at < end ? memchr(at, c, (size_t)(end - at)) : NULL;
}

static bool is_blank(char c, char separator) { return (c == ' ' || c == '\t') && c != separator; }

bool pwi_csv_field(char separator, const char **at, const char *line_end, struct pwi_field *field_out) {
  const char *begin = *at, *end;
  if (begin < line_end && *begin == '"') {
    end = begin + 1;
    for (;; end += 2) { /* skip pairs of quotes */
      end = find(end, line_end, '"');
      if (!end) return false;
      if (end + 1 == line_end || end[1] != '"') break;
    }
    *field_out = (struct pwi_field){begin + 1, end, true};
    *at = end + 1;
    return *at == line_end || **at == separator;
  }
  end = find(begin, line_end, separator);
  if (!end) end = line_end;
  *at = end;
  while (begin < end && is_blank(*begin, separator)) begin++;
  while (begin < end && is_blank(end[-1], separator)) end--;
  *field_out = (struct pwi_field){begin, end, false};
  return true;
}

static bool is_word(struct pwi_field field, const char *word) {
  size_t size = strlen(word);
  return (size_t)(field.end - field.begin) == size && memcmp(field.begin, word, size) == 0;
}

/* Numbers such as `2,5`. */
static bool comma_number(struct pwi_field field, double *value_out) {
  char copy[64 + PWI_NUMBER_SLACK] = "";
  const char *stop;
  size_t size = (size_t)(field.end - field.begin);
  if (size >= 64) return false;
  memcpy(copy, field.begin, size);
  char *comma = memchr(copy, ',', size);
  if (!comma) return false;
  *comma = '.';
  return pwi_number(copy, &stop, value_out) && stop == copy + size;
}

bool pwi_csv_number(char separator, struct pwi_field field, double *value_out) {
  const char *stop;
  if (field.begin == field.end) return false;
  if (pwi_number(field.begin, &stop, value_out) && stop == field.end) return true;
  return separator == ';' && comma_number(field, value_out);
}

static bool is_number(const struct pwi_csv_layout *table, struct pwi_field field) {
  double value;
  return field.begin == field.end || pwi_csv_number(table->separator, field, &value);
}

/* The offset behind the line, including its line break. */
static size_t length_to(const char *head, const char *end) {
  return (size_t)(end - head) + (*end == '\r' && end[1] == '\n' ? 2 : 1);
}

/* --- criteo --------------------------------------------------------------------------------------------- */

bool pwi_csv_is_criteo_head(const char *begin, const char *end) {
  char separator = find(begin, end, '\t') ? '\t' : ',';
  static const char *const words[] = {"Label", "I1", "I2"};
  struct pwi_field field;
  const char *at = begin;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!pwi_csv_field(separator, &at, end, &field)) return false;
    if (i == 0 && is_word(field, "Id")) {
      if (at == end) return false;
      at++;
      if (!pwi_csv_field(separator, &at, end, &field)) return false;
    }
    if (!is_word(field, words[i]) || at == end) return false;
    at++;
  }
  return true;
}

pawl_status pwi_csv_layout_of_criteo(struct pwi_csv_layout *table, const char *head, const char *begin, const char *end,
                                     const char **why_out) {
  struct pwi_field field;
  const char *at = begin;
  table->separator = find(begin, end, '\t') ? '\t' : ',';
  table->has_head = pwi_csv_is_criteo_head(begin, end);
  table->lacks_label = false;
  table->columns = 1;
  for (const char *c = begin; c < end; c++) table->columns += *c == table->separator;
  table->label = table->has_head && pwi_csv_field(table->separator, &at, end, &field) && is_word(field, "Id");
  table->head_length = table->has_head ? length_to(head, end) : 0;
  table->width = table->columns;
  table->head_begin = (size_t)(begin - head);
  if (table->columns != PWI_CRITEO_COLUMNS + table->label)
    return say(why_out, PAWL_CORRUPT, "not Criteo's log: expected a label, 13 counts and 26 categories");
  return PAWL_OK;
}

/* --- csv ------------------------------------------------------------------------------------------------ */

bool pwi_csv_name(const char *begin, const char *end, char separator, size_t column, struct pwi_field *field_out) {
  const char *at = begin;
  for (;; at++) {
    if (!pwi_csv_field(separator, &at, end, field_out)) return false;
    if (column-- == 0) return true;
    if (at == end) return false;
  }
}

/* The number of fields of a line; 0 if a quote is not closed. */
static size_t count_fields(const char *begin, const char *end, char separator) {
  struct pwi_field field;
  const char *at = begin;
  for (size_t count = 1;; count++, at++) {
    if (!pwi_csv_field(separator, &at, end, &field)) return 0;
    if (at == end) return count;
  }
}

/* Whether all complete, non-empty lines have as many fields as the first. */
static bool is_even(const char *begin, const char *text_end, char separator, size_t fields) {
  const char *stop;
  for (size_t lines = 0; lines < 100 && begin < text_end; begin = stop + 1, lines++) {
    stop = memchr(begin, '\n', (size_t)(text_end - begin));
    if (!stop) return true; /* the line may be cut off */
    const char *end = stop > begin && stop[-1] == '\r' ? stop - 1 : stop;
    if (end > begin && count_fields(begin, end, separator) != fields) return false;
  }
  return true;
}

/* Chooses the separator that splits all lines into the same number of fields. Among several it takes the
 * one that yields most fields, then a tab, then a semicolon, because commas also occur in numbers. If no
 * separator fits, it takes the most frequent one of the first line. */
static char choose_separator(const char *begin, const char *end, const char *text_end) {
  static const char candidates[] = {'\t', ';', ','};
  char best = ',', best_even = 0;
  size_t most = 1, most_even = 1;
  for (size_t i = 0; i < sizeof candidates; i++) {
    size_t fields = count_fields(begin, end, candidates[i]);
    if (fields > most) {
      most = fields;
      best = candidates[i];
    }
    if (fields > most_even && is_even(begin, text_end, candidates[i], fields)) {
      most_even = fields;
      best_even = candidates[i];
    }
  }
  return best_even ? best_even : best;
}

static bool find_name(const struct pwi_csv_layout *table, const char *begin, const char *end, const char *label,
                      size_t *column_out) {
  struct pwi_field field;
  for (size_t column = 0; column < table->columns; column++)
    if (pwi_csv_name(begin, end, table->separator, column, &field) && is_word(field, label)) {
      *column_out = column;
      return true;
    }
  return false;
}

/* Parses a number from 1 to the number of columns. */
static bool find_number(const char *label, size_t columns, size_t *column_out) {
  uint64_t number = 0;
  for (const char *at = label; *at; at++) {
    if (!pwi_is_digit(*at) || number > columns) return false;
    number = number * 10 + (uint64_t)(*at - '0');
  }
  if (number < 1 || number > columns) return false;
  *column_out = (size_t)(number - 1);
  return true;
}

/* Without a label column to judge by, a line without a number is a head line. */
static bool has_no_number(const struct pwi_csv_layout *table, const char *begin, const char *end) {
  struct pwi_field field;
  for (size_t column = 0; column < table->columns; column++)
    if (pwi_csv_name(begin, end, table->separator, column, &field) && is_number(table, field)) return false;
  return true;
}

/* If labels are numbers, a first line with anything else in the label column is a head line. */
static pawl_status find_label(struct pwi_csv_layout *table, const char *begin, const char *end, const char *label,
                              bool has_words, const char **why_out) {
  struct pwi_field field;
  size_t column = 0;
  bool is_number_of = label && find_number(label, table->columns, &column);
  bool is_name_of = label && !is_number_of && find_name(table, begin, end, label, &column);
  table->lacks_label = table->width == table->columns + 1 && !is_name_of;
  if (table->lacks_label) {
    table->has_head = has_no_number(table, begin, end);
    return PAWL_OK;
  }
  table->width = table->columns;
  table->label = column;
  if (label && !is_number_of) {
    table->has_head = is_name_of;
    if (table->has_head) return PAWL_OK;
    return say(why_out, PAWL_INVALID, "no column has the name or number given for the label");
  }
  table->has_head = pwi_csv_name(begin, end, table->separator, table->label, &field) && !is_number(table, field) &&
                    (!has_words || has_no_number(table, begin, end));
  return PAWL_OK;
}

pawl_status pwi_csv_layout_of_csv(struct pwi_csv_layout *table, const char *head, size_t size, const char *begin,
                                  const char *end, const char *label, bool has_words, const char **why_out) {
  if (!table->separator) table->separator = choose_separator(begin, end, head + size);
  table->columns = count_fields(begin, end, table->separator);
  if (table->columns == 0)
    return say(why_out, PAWL_CORRUPT, "in the first line a quote is not closed, or text follows a closing quote");
  pawl_status status = find_label(table, begin, end, label, has_words, why_out);
  table->head_begin = (size_t)(begin - head);
  table->head_length = table->has_head ? length_to(head, end) : 0;
  return status;
}
