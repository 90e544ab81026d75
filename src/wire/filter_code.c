/* Encoding of lists of filters, and agreement between two sides. filters.h shows the layout. */
#include "wire/filters.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum { LOSSY = 0, ENCODING = 1 };

#define NAME_ROOM (PAWL_FILTER_NAME_MAX + 1)
#define ITEM_LEAST 5 /* minimum bytes of a filter */

PAWL_PRINTF(3, 4)
static void explain(char *problem, size_t size, const char *format, ...) {
  if (!problem || size == 0) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, size, format, arguments);
  va_end(arguments);
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_item(struct pwi_writer *writer, const struct pwi_filter_item *item) {
  pwi_write_u8(writer, pwi_filter_is_lossless(item->type) ? ENCODING : LOSSY);
  pwi_write_u8(writer, (uint8_t)item->on);
  pwi_write_text(writer, item->type->name);
  pwi_write_u8(writer, (uint8_t)item->type->parameter_count);
  for (size_t i = 0; i < item->type->parameter_count; i++) {
    pwi_write_text(writer, item->type->parameters[i].name);
    pwi_write_u64(writer, pwi_double_bits(item->parameters[i]));
  }
}

void pwi_filter_list_write(struct pwi_writer *writer, const struct pwi_filter_list *list) {
  pwi_write_u8(writer, PWI_FILTERS_FORMAT);
  pwi_write_u8(writer, (uint8_t)list->count);
  for (size_t i = 0; i < list->count; i++) write_item(writer, &list->items[i]);
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* A decoded filter, which this process may or may not know. */
struct described {
  unsigned kind;
  unsigned on;
  char name[NAME_ROOM];
  size_t count;
  char names[PAWL_FILTER_PARAMETERS_MAX][NAME_ROOM];
  double values[PAWL_FILTER_PARAMETERS_MAX];
};

/* Names appear in messages, so only valid characters are accepted. */
static void read_name(struct pwi_reader *reader, char name[NAME_ROOM]) {
  pwi_read_text(reader, name, NAME_ROOM);
  if (!*name || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")]) pwi_reader_fail(reader, PAWL_CORRUPT);
}

static void read_described(struct pwi_reader *reader, struct described *described) {
  memset(described, 0, sizeof *described);
  described->kind = pwi_read_u8(reader);
  described->on = pwi_read_u8(reader);
  read_name(reader, described->name);
  described->count = pwi_read_u8(reader);
  if (described->kind > ENCODING || described->on == 0 || described->on > PAWL_ON_BOTH ||
      described->count > PAWL_FILTER_PARAMETERS_MAX) {
    pwi_reader_fail(reader, PAWL_CORRUPT);
    return;
  }
  for (size_t i = 0; i < described->count; i++) {
    read_name(reader, described->names[i]);
    described->values[i] = pwi_double_of_bits(pwi_read_u64(reader));
  }
}

/* Returns false if this process does not know the filter with these parameters. */
static bool recognise(const struct described *described, struct pwi_filter_item *item_out) {
  struct pwi_filter_item item = {.type = pwi_filter_find(described->name), .on = described->on};
  if (!item.type || pwi_filter_is_lossless(item.type) != (described->kind == ENCODING)) return false;
  if (item.on & ~item.type->directions || described->count != item.type->parameter_count) return false;
  for (size_t i = 0; i < described->count; i++) {
    const struct pawl_filter_parameter *parameter = &item.type->parameters[i];
    if (strcmp(described->names[i], parameter->name) != 0) return false;
    if (!pwi_filter_value_fits(parameter, described->values[i])) return false;
    item.parameters[i] = described->values[i];
  }
  *item_out = item;
  return true;
}

/* The list is read to its end even after an unknown filter: a later filter may be damaged, which takes
 * precedence. */
static void read_items(struct pwi_reader *reader, size_t count, struct pwi_filter_list *list, char *unknown) {
  bool encodings = false;
  for (size_t i = 0; i < count && reader->status == PAWL_OK; i++) {
    struct described described;
    read_described(reader, &described);
    if (encodings && described.kind == LOSSY) pwi_reader_fail(reader, PAWL_CORRUPT);
    encodings = described.kind == ENCODING;
    if (reader->status != PAWL_OK) return;
    if (recognise(&described, &list->items[list->count]))
      list->count++;
    else if (described.kind == LOSSY && !*unknown)
      memcpy(unknown, described.name, NAME_ROOM);
  }
}

pawl_status pwi_filter_list_read(const void *bytes, size_t size, char *problem, size_t problem_size,
                                 struct pwi_filter_list *list_out) {
  struct pwi_reader reader;
  struct pwi_filter_list list = {0};
  char unknown[NAME_ROOM] = "";
  pwi_reader_init(&reader, bytes, size);
  unsigned format = pwi_read_u8(&reader);
  if (reader.status == PAWL_OK && format != PWI_FILTERS_FORMAT) {
    explain(problem, problem_size, "the list of filters has format %u, but this version reads format %d", format,
            PWI_FILTERS_FORMAT);
    return PAWL_UNSUPPORTED;
  }
  size_t count = pwi_read_u8(&reader);
  if (count > PAWL_FILTERS_MAX) pwi_reader_fail(&reader, PAWL_CORRUPT);
  read_items(&reader, count, &list, unknown);
  pawl_status status = pwi_reader_end(&reader);
  if (status == PAWL_OK && *unknown) {
    explain(problem, problem_size, "unknown filter %s, or its parameters differ", unknown);
    status = PAWL_UNSUPPORTED;
  } else if (status != PAWL_OK) {
    explain(problem, problem_size, "the list of filters is damaged");
  }
  if (status == PAWL_OK) *list_out = list;
  return status;
}

/* --- agreeing ------------------------------------------------------------------------------------------- */

static bool items_are_equal(const struct pwi_filter_item *a, const struct pwi_filter_item *b) {
  if (a->type != b->type || a->on != b->on) return false;
  for (size_t i = 0; i < a->type->parameter_count; i++)
    if (a->parameters[i] != b->parameters[i]) return false;
  return true;
}

bool pwi_filter_list_equal(const struct pwi_filter_list *a, const struct pwi_filter_list *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (!items_are_equal(&a->items[i], &b->items[i])) return false;
  return true;
}

/* Compares the lossy filters, which come first. */
static struct pwi_filter_list lossy_part(const struct pwi_filter_list *list) {
  struct pwi_filter_list part = {0};
  while (part.count < list->count && !pwi_filter_is_lossless(list->items[part.count].type)) {
    part.items[part.count] = list->items[part.count];
    part.count++;
  }
  return part;
}

static bool holds(const struct pwi_filter_list *list, const struct pwi_filter_item *item) {
  for (size_t i = 0; i < list->count; i++)
    if (items_are_equal(&list->items[i], item)) return true;
  return false;
}

/* Inserts an encoding after the lossy filters, sorted by name, direction and parameters, without
 * duplicates. */
static int compare_items(const struct pwi_filter_item *a, const struct pwi_filter_item *b) {
  int order = strcmp(a->type->name, b->type->name);
  if (order == 0) order = (a->on > b->on) - (a->on < b->on);
  for (size_t i = 0; order == 0 && i < a->type->parameter_count; i++)
    order = (a->parameters[i] > b->parameters[i]) - (a->parameters[i] < b->parameters[i]);
  return order;
}

static void insert_encoding(struct pwi_filter_list *list, size_t first, const struct pwi_filter_item *item) {
  size_t at = list->count;
  if (holds(list, item)) return;
  for (; at > first && compare_items(&list->items[at - 1], item) > 0; at--) list->items[at] = list->items[at - 1];
  list->items[at] = *item;
  list->count++;
}

pawl_status pwi_filter_list_agree(const struct pwi_filter_list *ours, const struct pwi_filter_list *theirs,
                                  char *problem, size_t problem_size, struct pwi_filter_list *list_out) {
  struct pwi_filter_list list = lossy_part(ours), other = lossy_part(theirs);
  if (!pwi_filter_list_equal(&list, &other)) {
    char here[PWI_FILTERS_PROBLEM_MAX / 3], there[PWI_FILTERS_PROBLEM_MAX / 3];
    pwi_filter_list_print(&list, here, sizeof here);
    pwi_filter_list_print(&other, there, sizeof there);
    explain(problem, problem_size, "filters differ: %s here, %s there", here, there);
    return PAWL_MISMATCH;
  }
  size_t first = list.count;
  for (size_t i = first; i < ours->count; i++)
    if (holds(theirs, &ours->items[i])) insert_encoding(&list, first, &ours->items[i]);
  *list_out = list;
  return PAWL_OK;
}
