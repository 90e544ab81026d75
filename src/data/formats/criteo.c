/* Criteo's log of advertisements: a label, 13 counts and 26 categories, separated by tabs; or separated by
 * commas, with a head line and optionally an Id before the label. An empty field is a missing value.
 *
 * A count x in column c is the feature XXH3-64 of the empty string, seeded with c, with the value sign(x)
 * log(1 + |x|), because counts range from -3 to millions. A category is the feature XXH3-64 of its text,
 * seeded with c, with the value 1. Columns are numbered from 1, without Id and label.
 */
#include "data/formats/parser.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "data/formats/number.h"
#include "data/formats/csv_layout.h"

#define LOGS 1024

/* Most counts are small and the ids of their features are constant, so both are precomputed. */
static float logs[LOGS];
static uint64_t count_hashes[PWI_CRITEO_COUNTS + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void) {
  for (size_t i = 0; i < LOGS; i++) logs[i] = (float)log1p((double)i);
  for (size_t i = 0; i <= PWI_CRITEO_COUNTS; i++) count_hashes[i] = pwi_hash("", 0, i);
}

static float squeeze(double count) {
  if (count >= 0 && count < LOGS && count == (double)(size_t)count) return logs[(size_t)count];
  return (float)copysign(log1p(fabs(count)), count);
}

struct criteo_row {
  struct pwi_parse *parse;
  const struct pwi_parse_rule *rule;
  uint64_t *ids;
  float *values;
  size_t count;
};

static void add(struct criteo_row *row, size_t column, struct pwi_field word, uint64_t hash, float value) {
  uint64_t id = pwi_hashed_id(hash, row->rule->hash_bits);
  if (row->parse->namer) row->parse->namer->found(row->parse->namer, id, column, (struct pwi_field){0}, word);
  row->ids[row->count] = id;
  row->values[row->count++] = value;
}

static pawl_status add_count(struct criteo_row *row, size_t column, const char *begin, const char *end) {
  const char *stop;
  double value;
  if (!pwi_number(begin, &stop, &value) || stop != end)
    return pwi_parse_wrong(row->parse, begin, "this count is not a number");
  if (!isfinite(value)) return pwi_parse_wrong(row->parse, begin, "this count is not a finite number");
  add(row, column, (struct pwi_field){0}, count_hashes[column], squeeze(value));
  return PAWL_OK;
}

/* Column 1 … 39. */
static pawl_status add_field(struct criteo_row *row, size_t column, const char *begin, const char *end) {
  if (begin == end) return PAWL_OK;
  if (column <= PWI_CRITEO_COUNTS) return add_count(row, column, begin, end);
  add(row, column, (struct pwi_field){begin, end, false}, pwi_hash(begin, (size_t)(end - begin), column), 1);
  return PAWL_OK;
}

static pawl_status read_label(struct criteo_row *row, const char *begin, const char *end, float *label_out) {
  const char *stop;
  if (begin == end) return pwi_parse_wrong(row->parse, begin, "no label");
  if (row->rule->labels) return pwi_parse_word_label(row->rule, row->parse, begin, end, label_out);
  pawl_status status = pwi_parse_label(row->rule, row->parse, begin, 0, &stop, label_out);
  if (!status && stop != end) status = pwi_parse_wrong(row->parse, stop, "unexpected character in a number");
  return status;
}

static pawl_status read_row(struct criteo_row *row, const char *line_end, float *label_out) {
  const struct pwi_csv_layout *table = &row->rule->table;
  const char *at = row->parse->at;
  for (size_t i = 0; i < table->columns; i++, at++) {
    const char *end = at <= line_end ? memchr(at, table->separator, (size_t)(line_end - at)) : NULL;
    if (at > line_end)
      return pwi_parse_wrong(row->parse, line_end, "too few columns: expected a label, 13 counts and 26 categories");
    if (!end) end = line_end;
    pawl_status status = PAWL_OK;
    if (i == table->label)
      status = read_label(row, at, end, label_out);
    else if (i > table->label)
      status = add_field(row, i - table->label, at, end);
    if (status) return status;
    at = end;
  }
  if (at <= line_end)
    return pwi_parse_wrong(row->parse, at, "too many columns: expected a label, 13 counts and 26 categories");
  return PAWL_OK;
}

pawl_status pwi_parse_criteo(const struct pwi_parse_rule *rule, struct pwi_parse *parse, struct pwi_batch *batch) {
  pthread_once(&once, fill_tables);
  while (parse->at < parse->end) {
    const char *stop = memchr(parse->at, '\n', (size_t)(parse->end - parse->at)), *end = stop;
    float label = 0;
    if (end > parse->at && end[-1] == '\r') end--;
    if (end > parse->at) {
      pawl_status status = pwi_batch_room(batch, rule->table.columns);
      if (status) return status;
      struct criteo_row row = {.parse = parse,
                               .rule = rule,
                               .ids = batch->ids + batch->is.entries,
                               .values = batch->values + batch->is.entries};
      status = read_row(&row, end, &label);
      if (!status) status = pwi_parse_end_row(parse, batch, row.count, false, label, 1);
      if (status) return status;
    }
    parse->at = stop + 1;
  }
  return PAWL_OK;
}
