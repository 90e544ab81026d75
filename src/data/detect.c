#include "data/detect.h"

#include <stdbool.h>
#include <string.h>

#include "data/number.h"
#include "data/table.h"

struct line {
  const char *begin, *end; /* without its line break */
};

/* The first line with something in it that is no comment. */
static bool first_line(const char *head, size_t size, struct line *line_out) {
  const char *at = head, *end = head + size;
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
    if (!stop) stop = end;
    if (stop > at && stop[-1] == '\r') stop--;
    const char *first = at;
    while (first < stop && (*first == ' ' || *first == '\t')) first++;
    if (first < stop && *first != '#') {
      *line_out = (struct line){at, stop};
      return true;
    }
    at = next;
  }
  return false;
}

static size_t count(struct line line, char c) {
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

/* A number, and then an id or a group, or nothing. */
static bool is_libsvm(struct line line) {
  const char *at = line.begin;
  while (at < line.end && (*at == ' ' || *at == '\t')) at++;
  if (!starts_with_number(at, line.end)) return false;
  while (at < line.end && *at != ' ' && *at != '\t') at++;
  while (at < line.end && (*at == ' ' || *at == '\t')) at++;
  return at == line.end || pwi_is_digit(*at) || *at == '#' || strncmp(at, "qid:", 4) == 0;
}

static enum pawl_data_format guess(struct line line) {
  if (memchr(line.begin, '|', (size_t)(line.end - line.begin))) return PAWL_DATA_VW;
  if (count(line, '\t') == PWI_CRITEO_COLUMNS - 1) return PAWL_DATA_CRITEO;
  if (pwi_table_is_criteo_head(line.begin, line.end)) return PAWL_DATA_CRITEO;
  const char *comment = memchr(line.begin, '#', (size_t)(line.end - line.begin));
  struct line before = {line.begin, comment ? comment : line.end};
  if (count(before, ',') > 0) return PAWL_DATA_CSV;
  return is_libsvm(line) ? PAWL_DATA_LIBSVM : PAWL_DATA_AUTO;
}

static pawl_status say(const char **why_out, pawl_status status, const char *why) {
  *why_out = why;
  return status;
}

pawl_status pwi_detect(const char *head, size_t size, const char *label, struct pwi_parse_rule *rule,
                       const char **why_out) {
  struct line line;
  if (!first_line(head, size, &line)) return say(why_out, PAWL_TRUNCATED, "there is no row in it");
  if (rule->format == PAWL_DATA_AUTO) rule->format = guess(line);
  switch (rule->format) {
  case PAWL_DATA_LIBSVM:
  case PAWL_DATA_VW:
    return PAWL_OK;
  case PAWL_DATA_CRITEO:
    return pwi_table_criteo(&rule->table, head, line.begin, line.end, why_out);
  case PAWL_DATA_CSV:
    return pwi_table_csv(&rule->table, head, line.begin, line.end, label, why_out);
  default:
    return say(why_out, PAWL_CORRUPT,
               "its first row looks like no format that is known (libsvm, vw, criteo, csv, cache); name the format if "
               "it is one");
  }
}
