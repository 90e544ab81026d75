/* Tables with columns separated by commas or another separator.
 *
 * A numeric field is the value of the feature whose id is the column's number. Columns are counted from 1
 * and include the label, even if the file lacks it. A word is a feature of its own with the value 1; its
 * id is the number of columns plus the hash of the word, XXH3-64 seeded with the column's number. Empty
 * fields and zeros are left out. A field may be quoted, with doubled quotes inside. A line break ends a
 * row even inside quotes, so a file can be read from any line.
 */
#include "data/formats/parser.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "data/formats/number.h"
#include "data/formats/csv_layout.h"

struct csv_row {
  struct pwi_parse *parse;
  const struct pwi_parse_rule *rule;
  uint64_t *ids;
  float *values;
  size_t count;
  bool is_sorted;
};

static void add(struct csv_row *row, uint64_t id, float value) {
  if (row->count > 0 && row->ids[row->count - 1] >= id) row->is_sorted = false;
  row->ids[row->count] = id;
  row->values[row->count++] = value;
}

static uint64_t hash_word(const struct pwi_field *field, size_t column) {
  const char *at = field->begin, *quote;
  struct pwi_hasher hasher;
  size_t size = (size_t)(field->end - at);
  if (!field->is_quoted || !memchr(at, '"', size)) return pwi_hash(at, size, column);
  pwi_hasher_init(&hasher, column);
  while ((quote = memchr(at, '"', (size_t)(field->end - at)))) {
    pwi_hasher_add(&hasher, at, (size_t)(quote + 1 - at)); /* one of the two quotes */
    at = quote + 2;
  }
  pwi_hasher_add(&hasher, at, (size_t)(field->end - at));
  return pwi_hasher_value(&hasher);
}

static pawl_status add_field(struct csv_row *row, size_t column, const struct pwi_field *field) {
  double value;
  if (field->begin == field->end) return PAWL_OK;
  if (pwi_csv_number(row->rule->table.separator, *field, &value)) {
    if (!isfinite((float)value))
      return pwi_parse_wrong(row->parse, field->begin, "the value does not fit a finite float");
    if (value != 0) add(row, column, (float)value);
    return PAWL_OK;
  }
  uint64_t id = pwi_hashed_id(hash_word(field, column), row->rule->hash_bits);
  id += row->rule->table.width;
  if (row->parse->namer) row->parse->namer->found(row->parse->namer, id, column, (struct pwi_field){0}, *field);
  add(row, id, 1);
  return PAWL_OK;
}

static pawl_status read_label(struct csv_row *row, const struct pwi_field *field, float *label_out) {
  const char *stop;
  double value;
  bool is_empty = field->begin == field->end;
  if (is_empty && !row->rule->labels_optional) return pwi_parse_wrong(row->parse, field->begin, "no label");
  if (is_empty) *label_out = (float)NAN;
  if (is_empty) return PAWL_OK;
  if (row->rule->labels) return pwi_parse_word_label(row->rule, row->parse, field->begin, field->end, label_out);
  if (pwi_csv_number(row->rule->table.separator, *field, &value) && isfinite((float)value)) {
    *label_out = (float)value;
    return PAWL_OK;
  }
  pawl_status status = pwi_parse_label(row->rule, row->parse, field->begin, 0, &stop, label_out);
  return status ? status : pwi_parse_wrong(row->parse, stop, "unexpected character in a number");
}

static pawl_status read_row(struct csv_row *row, const char *line_end, float *label_out) {
  const struct pwi_csv_layout *table = &row->rule->table;
  const char *at = row->parse->at;
  for (size_t column = 0;; column++, at++) {
    struct pwi_field field;
    const char *begin = at;
    if (column == table->columns) return pwi_parse_wrong(row->parse, at, "more columns than in the first line");
    if (!pwi_csv_field(table->separator, &at, line_end, &field))
      return pwi_parse_wrong(row->parse, begin, "a quote is not closed, or text follows a closing quote");
    pawl_status status = column == table->label && !table->lacks_label
                             ? read_label(row, &field, label_out)
                             : add_field(row, column + 1 + (table->lacks_label && column >= table->label), &field);
    if (status) return status;
    if (at < line_end) continue;
    return column + 1 == table->columns ? PAWL_OK
                                        : pwi_parse_wrong(row->parse, line_end, "fewer columns than in the first line");
  }
}

pawl_status pwi_parse_csv(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  while (parse->at < parse->end) {
    const char *stop = memchr(parse->at, '\n', (size_t)(parse->end - parse->at)), *end = stop;
    float label = rule->table.lacks_label ? (float)NAN : 0;
    if (end > parse->at && end[-1] == '\r') end--;
    if (end > parse->at) {
      pawl_status status = pwi_batch_room(batch, rule->table.columns);
      if (status) return status;
      struct csv_row row = {.parse = parse,
                            .rule = rule,
                            .ids = batch->ids + batch->is.entries,
                            .values = batch->values + batch->is.entries,
                            .is_sorted = true};
      status = read_row(&row, end, &label);
      if (!status) status = pwi_parse_end_row(parse, batch, row.count, row.is_sorted, label, 1);
      if (status) return status;
    }
    parse->at = stop + 1;
  }
  return PAWL_OK;
}
