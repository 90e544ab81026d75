#include "data/table.h"

#include <string.h>

#include "data/number.h"

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

/* --- fields ----------------------------------------------------------------------------------------------------------------- */

static const char *find(const char *at, const char *end, char c) {
  return at < end ? memchr(at, c, (size_t)(end - at)) : NULL;
}

static bool is_blank(char c, char separator) { return (c == ' ' || c == '\t') && c != separator; }

bool pwi_table_field(char separator, const char **at, const char *line_end, struct pwi_field *field_out) {
  const char *begin = *at, *end;
  if (begin < line_end && *begin == '"') {
    end = begin + 1;
    for (;; end += 2) { /* over pairs of quotes */
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

static bool is_number(struct pwi_field field) {
  const char *end;
  double value;
  return field.begin == field.end || (pwi_number(field.begin, &end, &value) && end == field.end);
}

/* Where the line ends for the table: its line break included. */
static size_t length_to(const char *head, const char *end) {
  return (size_t)(end - head) + (*end == '\r' && end[1] == '\n' ? 2 : 1);
}

/* --- criteo ----------------------------------------------------------------------------------------------------------------- */

bool pwi_table_is_criteo_head(const char *begin, const char *end) {
  char separator = find(begin, end, '\t') ? '\t' : ',';
  static const char *const words[] = {"Label", "I1", "I2"};
  struct pwi_field field;
  const char *at = begin;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!pwi_table_field(separator, &at, end, &field)) return false;
    if (i == 0 && is_word(field, "Id")) {
      if (at == end) return false;
      at++;
      if (!pwi_table_field(separator, &at, end, &field)) return false;
    }
    if (!is_word(field, words[i]) || at == end) return false;
    at++;
  }
  return true;
}

pawl_status pwi_table_criteo(struct pwi_table *table, const char *head, const char *begin, const char *end,
                             const char **why_out) {
  struct pwi_field field;
  const char *at = begin;
  table->separator = find(begin, end, '\t') ? '\t' : ',';
  table->has_head = pwi_table_is_criteo_head(begin, end);
  table->columns = 1;
  for (const char *c = begin; c < end; c++) table->columns += *c == table->separator;
  table->label = table->has_head && pwi_table_field(table->separator, &at, end, &field) && is_word(field, "Id");
  table->head_length = table->has_head ? length_to(head, end) : 0;
  if (table->columns != PWI_CRITEO_COLUMNS + table->label)
    return say(why_out, PAWL_CORRUPT, "not Criteo's: a row has a label, 13 counts and 26 categories");
  return PAWL_OK;
}

/* --- csv -------------------------------------------------------------------------------------------------------------------- */

static bool nth_field(const char *begin, const char *end, size_t column, struct pwi_field *field_out) {
  const char *at = begin;
  for (;; at++) {
    if (!pwi_table_field(',', &at, end, field_out)) return false;
    if (column-- == 0) return true;
    if (at == end) return false;
  }
}

static bool find_name(const char *begin, const char *end, const char *label, size_t columns, size_t *column_out) {
  struct pwi_field field;
  for (size_t column = 0; column < columns; column++)
    if (nth_field(begin, end, column, &field) && is_word(field, label)) {
      *column_out = column;
      return true;
    }
  return false;
}

/* A number from 1 to the number of columns. */
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

/* Labels are numbers: a first line that has something else in their column is a line of names. */
static pawl_status find_label(struct pwi_table *table, const char *begin, const char *end, const char *label,
                              const char **why_out) {
  struct pwi_field field;
  table->label = 0;
  if (label && !find_number(label, table->columns, &table->label)) {
    table->has_head = find_name(begin, end, label, table->columns, &table->label);
    if (table->has_head) return PAWL_OK;
    return say(why_out, PAWL_INVALID, "there is no column of the name or number that was given for the label");
  }
  table->has_head = nth_field(begin, end, table->label, &field) && !is_number(field);
  return PAWL_OK;
}

pawl_status pwi_table_csv(struct pwi_table *table, const char *head, const char *begin, const char *end,
                          const char *label, const char **why_out) {
  struct pwi_field field;
  const char *at = begin;
  table->separator = ',';
  table->columns = 0;
  for (;; at++) {
    if (!pwi_table_field(',', &at, end, &field))
      return say(why_out, PAWL_CORRUPT,
                 "the first line has a quote that is not closed, or a field that goes on behind one");
    table->columns++;
    if (at == end) break;
  }
  pawl_status status = find_label(table, begin, end, label, why_out);
  table->head_length = table->has_head ? length_to(head, end) : 0;
  return status;
}
