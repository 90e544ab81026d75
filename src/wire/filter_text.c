/* Chains as text: parsing, with error messages that name the filter, and printing. */
#include "wire/filters.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 40 /* characters of a number */

static const char on_words[] = "push|pull|both";

struct parser {
  const char *at;
  char *problem;
  size_t problem_size;
  struct pwi_filter_list list;
};

/* A part of the text: a name or a value. */
struct filter_word {
  const char *at;
  size_t length;
};

#define SHOWN(word) (int)((word).length < 40 ? (word).length : 40), (word).at

PAWL_PRINTF(3, 4)
static pawl_status refuse(struct parser *parser, pawl_status status, const char *format, ...) {
  if (!parser->problem || parser->problem_size == 0) return status;
  int used = snprintf(parser->problem, parser->problem_size, "filter %zu", parser->list.count + 1);
  if (used < 0 || (size_t)used >= parser->problem_size) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(parser->problem + used, parser->problem_size - (size_t)used, format, arguments);
  va_end(arguments);
  return status;
}

static void skip_spaces(struct parser *parser) { parser->at += strspn(parser->at, " \t\r\n"); }

/* Reads up to a space or a character that ends a word. */
static struct filter_word next_word(struct parser *parser) {
  skip_spaces(parser);
  struct filter_word word = {parser->at, strcspn(parser->at, " \t\r\n|(),=")};
  parser->at += word.length;
  skip_spaces(parser);
  return word;
}

static bool take(struct parser *parser, char sign) {
  skip_spaces(parser);
  if (*parser->at != sign) return false;
  parser->at++;
  skip_spaces(parser);
  return true;
}

static bool is_word(struct filter_word word, const char *text) {
  return strlen(text) == word.length && memcmp(text, word.at, word.length) == 0;
}

/* --- numbers -------------------------------------------------------------------------------------------- */

/* Numbers use a decimal point in every locale: parsing and printing use the C locale. */
static bool read_number(struct filter_word word, double *value_out) {
  char text[NUMBER_MAX + 1], *end;
  if (word.length == 0 || word.length > NUMBER_MAX) return false;
  memcpy(text, word.at, word.length);
  text[word.length] = 0;
  if (text[strspn(text, "0123456789+-.eE")]) return false;
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!plain) return false;
  double value = strtod_l(text, &end, plain);
  freelocale(plain);
  if (*end || !isfinite(value)) return false;
  *value_out = value;
  return true;
}

/* Prints the fewest digits from which the same number is parsed. */
static void print_number(double value, char text[NUMBER_MAX]) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = (locale_t)0;
  if (plain) before = uselocale(plain);
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, NUMBER_MAX, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  if (plain) {
    uselocale(before);
    freelocale(plain);
  }
}

/* --- parameters ----------------------------------------------------------------------------------------- */

static pawl_status refuse_number(struct parser *parser, const struct pawl_filter_type *type,
                                 const struct pawl_filter_parameter *parameter, struct filter_word value) {
  char least[NUMBER_MAX], most[NUMBER_MAX];
  print_number(parameter->least, least);
  print_number(parameter->most, most);
  return refuse(parser, PAWL_INVALID, ", %s: %s is %.*s, but must be %s from %s to %s", type->name, parameter->name,
                SHOWN(value), parameter->whole ? "a whole number" : "a number", least, most);
}

static pawl_status set_parameter(struct parser *parser, struct pwi_filter_item *item, size_t at,
                                 struct filter_word word) {
  const struct pawl_filter_parameter *parameter = &item->type->parameters[at];
  double value;
  if (parameter->words) {
    int place = pwi_filter_word_find(parameter->words, word.at, word.length);
    if (place < 0)
      return refuse(parser, PAWL_INVALID, ", %s: %s is %.*s, but must be one of %s", item->type->name, parameter->name,
                    SHOWN(word), parameter->words);
    value = place;
  } else if (!read_number(word, &value) || !pwi_filter_value_fits(parameter, value)) {
    return refuse_number(parser, item->type, parameter, word);
  }
  item->parameters[at] = value;
  return PAWL_OK;
}

static pawl_status set_on(struct parser *parser, struct pwi_filter_item *item, struct filter_word word) {
  int place = pwi_filter_word_find(on_words, word.at, word.length);
  if (place < 0)
    return refuse(parser, PAWL_INVALID, ", %s: on is %.*s, but must be one of %s", item->type->name, SHOWN(word),
                  on_words);
  unsigned on = (unsigned)place + 1;
  if (on & ~item->type->directions)
    return refuse(parser, PAWL_UNSUPPORTED, ", %s: works on %s only", item->type->name,
                  item->type->directions == PAWL_ON_PUSH ? "push" : "pull");
  item->on = on;
  return PAWL_OK;
}

/* Finds the index of the parameter; `parameter_count` for `on`. */
static bool find_parameter(const struct pawl_filter_type *type, struct filter_word name, size_t *at_out) {
  size_t at = 0;
  while (at < type->parameter_count && !is_word(name, type->parameters[at].name)) at++;
  if (at == type->parameter_count && !is_word(name, "on")) return false;
  *at_out = at;
  return true;
}

static pawl_status refuse_name(struct parser *parser, const struct pawl_filter_type *type, struct filter_word name) {
  char known[PWI_FILTERS_PROBLEM_MAX / 2] = "";
  for (size_t i = 0; i < type->parameter_count; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s, ", type->parameters[i].name);
  }
  return refuse(parser, PAWL_INVALID, ", %s: has no parameter %.*s; it has %son", type->name, SHOWN(name), known);
}

static pawl_status parse_parameter(struct parser *parser, struct pwi_filter_item *item, unsigned *seen) {
  const struct pawl_filter_type *type = item->type;
  size_t at;
  struct filter_word name = next_word(parser);
  if (!find_parameter(type, name, &at)) return refuse_name(parser, type, name);
  if (*seen >> at & 1) return refuse(parser, PAWL_INVALID, ", %s: %.*s is given twice", type->name, SHOWN(name));
  *seen |= 1u << at;
  if (!take(parser, '=')) return refuse(parser, PAWL_INVALID, ", %s: %.*s has no value", type->name, SHOWN(name));
  struct filter_word value = next_word(parser);
  return at < type->parameter_count ? set_parameter(parser, item, at, value) : set_on(parser, item, value);
}

static pawl_status parse_parameters(struct parser *parser, struct pwi_filter_item *item) {
  unsigned seen = 0;
  if (take(parser, ')')) return PAWL_OK;
  do {
    pawl_status status = parse_parameter(parser, item, &seen);
    if (status) return status;
  } while (take(parser, ','));
  if (!take(parser, ')')) return refuse(parser, PAWL_INVALID, ", %s: expected )", item->type->name);
  return PAWL_OK;
}

/* --- filters -------------------------------------------------------------------------------------------- */

static const struct pawl_filter_type *find_type(struct filter_word name) {
  char text[PAWL_FILTER_NAME_MAX + 1];
  if (name.length >= sizeof text) return NULL;
  memcpy(text, name.at, name.length);
  text[name.length] = 0;
  return pwi_filter_find(text);
}

static pawl_status check_item(struct parser *parser, const struct pwi_filter_item *item) {
  const struct pawl_filter_type *type = item->type;
  for (size_t i = 0; i < type->parameter_count; i++)
    if (isnan(item->parameters[i]))
      return refuse(parser, PAWL_INVALID, ", %s: %s is missing", type->name, type->parameters[i].name);
  size_t count = parser->list.count;
  const struct pawl_filter_type *before = count ? parser->list.items[count - 1].type : NULL;
  if (before && pwi_filter_is_lossless(before) && !pwi_filter_is_lossless(type))
    return refuse(parser, PAWL_INVALID, ", %s: follows %s, but encodings must come last", type->name, before->name);
  return PAWL_OK;
}

static pawl_status parse_filter(struct parser *parser) {
  struct pwi_filter_item item = {0};
  struct filter_word name = next_word(parser);
  if (name.length == 0) return refuse(parser, PAWL_INVALID, ": expected the name of a filter");
  item.type = find_type(name);
  if (!item.type) return refuse(parser, PAWL_UNSUPPORTED, ": unknown filter %.*s", SHOWN(name));
  if (parser->list.count == PAWL_FILTERS_MAX)
    return refuse(parser, PAWL_TOO_LARGE, ": a chain has at most %d filters", PAWL_FILTERS_MAX);
  item.on = item.type->directions;
  for (size_t i = 0; i < item.type->parameter_count; i++) item.parameters[i] = item.type->parameters[i].initial;
  pawl_status status = take(parser, '(') ? parse_parameters(parser, &item) : PAWL_OK;
  if (!status) status = check_item(parser, &item);
  if (!status) parser->list.items[parser->list.count++] = item;
  return status;
}

pawl_status pwi_filter_list_parse(const char *text, char *problem, size_t problem_size,
                                  struct pwi_filter_list *list_out) {
  struct parser parser = {.at = text, .problem = problem, .problem_size = problem_size};
  struct filter_word first = next_word(&parser);
  bool none = *parser.at == 0 && (first.length == 0 || is_word(first, "none"));
  if (!none) parser.at = text;
  while (!none) {
    pawl_status status = parse_filter(&parser);
    if (status) return status;
    if (!*parser.at) break;
    struct filter_word rest = {parser.at, strlen(parser.at)};
    if (!take(&parser, '|')) return refuse(&parser, PAWL_INVALID, ": expected | before %.*s", SHOWN(rest));
  }
  *list_out = parser.list;
  return PAWL_OK;
}

/* --- printing ------------------------------------------------------------------------------------------- */

struct printer {
  char *text;
  size_t size;
  size_t used; /* without the final zero; never more than size - 1 */
};

static void put(struct printer *printer, const char *text, size_t length) {
  size_t room = printer->size - 1 - printer->used;
  if (length > room) length = room;
  memcpy(printer->text + printer->used, text, length);
  printer->used += length;
  printer->text[printer->used] = 0;
}

static void put_text(struct printer *printer, const char *text) { put(printer, text, strlen(text)); }

static void put_word(struct printer *printer, const char *words, size_t place) {
  for (; place > 0; place--) words = strchr(words, '|') + 1;
  put(printer, words, strcspn(words, "|"));
}

/* Opens the parentheses before the first, and separates the others. */
static void put_name(struct printer *printer, const char *name, bool *open) {
  put_text(printer, *open ? ", " : "(");
  put_text(printer, name);
  put_text(printer, "=");
  *open = true;
}

static void put_item(struct printer *printer, const struct pwi_filter_item *item) {
  const struct pawl_filter_type *type = item->type;
  bool open = false;
  put_text(printer, type->name);
  for (size_t i = 0; i < type->parameter_count; i++) {
    const struct pawl_filter_parameter *parameter = &type->parameters[i];
    char number[NUMBER_MAX];
    if (item->parameters[i] == parameter->initial) continue;
    put_name(printer, parameter->name, &open);
    print_number(item->parameters[i], number);
    if (parameter->words)
      put_word(printer, parameter->words, (size_t)item->parameters[i]);
    else
      put_text(printer, number);
  }
  if (item->on != type->directions) {
    put_name(printer, "on", &open);
    put_word(printer, on_words, item->on - 1);
  }
  if (open) put_text(printer, ")");
}

void pwi_filter_list_print(const struct pwi_filter_list *list, char *text, size_t size) {
  struct printer printer = {text, size, 0};
  if (size == 0) return;
  *text = 0;
  if (list->count == 0) put_text(&printer, "none");
  for (size_t i = 0; i < list->count; i++) {
    if (i > 0) put_text(&printer, " | ");
    put_item(&printer, &list->items[i]);
  }
}
