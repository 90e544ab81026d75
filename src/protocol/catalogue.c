/* The catalogue: a sorted array, its rules, and its encoded form. Decoded entries are checked by the same
 * rules as added ones. */
#include "protocol/catalogue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/search.h"

#define VERSION 3
#define VERSION_PLAIN 2 /* options without rules */
#define VERSION_FIRST 1 /* and entries without incarnations */
#define ENTRY_LEAST 30  /* bytes of the shortest entry: a name of one letter, a slash and one letter */
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define DENSE_AUTO_MAX (UINT64_C(1) << 28) /* largest span, in keys, that is dense by default */
#define ROW_BYTES_MAX (1u << 30)

/* Both enums have the same numbers, so a type of the API can be used as a type of the store. */
static_assert((int)PAWL_F32 == (int)PWI_SCALAR_F32 && (int)PAWL_F64 == (int)PWI_SCALAR_F64, "floats");
static_assert((int)PAWL_I32 == (int)PWI_SCALAR_I32 && (int)PAWL_I64 == (int)PWI_SCALAR_I64, "signed integers");
static_assert((int)PAWL_U64 == (int)PWI_SCALAR_U64, "unsigned integers");
static_assert(PAWL_WIDTH_MAX * sizeof(uint64_t) <= 1 << 30, "the widest row of the widest type is no row too long");

/* --- names ---------------------------------------------------------------------------------------------- */

pawl_status pwi_name_check(const char *name, enum pwi_entry_kind kind) {
  if (strnlen(name, PAWL_NAME_MAX + 1) > PAWL_NAME_MAX) return PAWL_INVALID;
  size_t space = strspn(name, WORD);
  if (space == 0 || space > PWI_SPACE_MAX || name[space] != '/') return PAWL_INVALID;
  const char *second = name + space + 1;
  size_t size = strspn(second, WORD);
  if (size == 0 || second[size] != '\0') return PAWL_INVALID;
  return (second[0] == '.') == (kind != PWI_ENTRY_VECTOR) ? PAWL_OK : PAWL_INVALID;
}

bool pwi_name_is_in(const char *name, const char *space) {
  size_t size = strlen(space);
  return strncmp(name, space, size) == 0 && name[size] == '/';
}

uint64_t pwi_group_key(const char *name) {
  uint64_t key = pwi_hash(name, strlen(name), 0);
  return key == PAWL_KEY_END ? 0 : key; /* no key lies at the last position of the ring */
}

/* --- options -------------------------------------------------------------------------------------------- */

/* Returns true for printable text whose remaining bytes are zero. */
static bool is_text(const char *text, size_t room) {
  size_t size = strnlen(text, room);
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~') return false;
  return size < room;
}

/* Checks each field by itself. The fields may come from any bytes. */
static bool are_in_bounds(const struct pawl_vector_options *options) {
  return pwi_scalar_size((enum pwi_scalar)options->type) > 0 && options->width > 0 &&
         options->width <= PAWL_WIDTH_MAX && options->size > 0 && (unsigned)options->function <= PAWL_RULE &&
         (unsigned)options->placement <= PAWL_PLACE_MIXED && (unsigned)options->layout <= PAWL_LAYOUT_SPARSE &&
         is_text(options->rule, sizeof options->rule) && is_text(options->filters, sizeof options->filters);
}

static void set_rule(struct pawl_vector_options *is, const char *text) {
  memset(is->rule, 0, sizeof is->rule);
  memcpy(is->rule, text, strlen(text));
}

/* Leaves one blank between words, and none at the ends. */
static void squeeze(struct pawl_vector_options *is) {
  char text[sizeof is->rule];
  size_t size = 0;
  for (const char *at = is->rule; *at; at++)
    if (*at != ' ' || (size > 0 && text[size - 1] != ' ')) text[size++] = *at;
  if (size > 0 && text[size - 1] == ' ') size--;
  text[size] = '\0';
  set_rule(is, text);
}

/* Writes a rule in its canonical form. Built-in functions have one form that all nodes know. Rules of other
 * functions are left unchanged, because a client need not know their parameters. Plain functions are stored
 * as a number, in whichever way they were requested. */
static pawl_status print_rule(const struct pwi_rule *rule, struct pawl_vector_options *is) {
  char text[PWI_RULE_TEXT_MAX] = "";
  uint32_t number;
  if (!pwi_function_number(rule->function, &number)) return PAWL_OK;
  if (number <= PWI_FUNCTION_ASSIGN)
    is->function = number == PWI_FUNCTION_ADD ? PAWL_ADD : PAWL_ASSIGN;
  else
    pwi_rule_print(rule, text);
  if (strlen(text) > PAWL_RULE_MAX) return PAWL_INVALID;
  set_rule(is, text);
  return PAWL_OK;
}

static pawl_status settle_rule(const struct pwi_function_set *functions, struct pawl_vector_options *is) {
  struct pwi_function_problem problem;
  struct pwi_rule_shape shape;
  struct pwi_rule rule;
  is->pushed_width = is->stored_width = is->state_width = 0;
  if (is->rule[0] == '\0') return is->function == PAWL_RULE ? PAWL_INVALID : PAWL_OK;
  is->function = PAWL_RULE;
  squeeze(is);
  pawl_status status = pwi_rule_parse(functions, is->rule, &rule, &problem);
  if (status == PAWL_NOT_FOUND) return PAWL_OK;
  if (!status) status = pwi_rule_shape(&rule, (enum pwi_scalar)is->type, is->width, &shape);
  if (!status) status = print_rule(&rule, is);
  if (status || is->function != PAWL_RULE) return status ? PAWL_INVALID : PAWL_OK;
  is->pushed_width = shape.pushed;
  is->stored_width = shape.stored;
  is->state_width = shape.state;
  return PAWL_OK;
}

/* The options of the table for a vector. */
static struct pwi_table_options table_of(const struct pawl_vector_options *is) {
  return (struct pwi_table_options){
      .type = (enum pwi_scalar)is->type,
      .width = pwi_options_stored(is),
      .state_width = is->state_width,
      .span = pawl_range_of(0, is->size),
      .sparse = is->layout == PAWL_LAYOUT_SPARSE,
  };
}

static bool suits_dense(const struct pawl_vector_options *is) {
  struct pwi_table_options table = table_of(is);
  table.sparse = false;
  return is->size <= DENSE_AUTO_MAX && pwi_table_check(&table) == PAWL_OK;
}

pawl_status pwi_options_settle(const struct pawl_vector_options *asked, const struct pwi_function_set *functions,
                               struct pawl_vector_options *settled_out) {
  struct pawl_vector_options is = *asked;
  if (!are_in_bounds(&is) || settle_rule(functions, &is)) return PAWL_INVALID;
  bool full = is.size == PAWL_KEY_END;
  if (is.placement == PAWL_PLACE_AUTO) is.placement = full ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
  if (is.layout == PAWL_LAYOUT_AUTO) is.layout = suits_dense(&is) ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  if (is.placement == PAWL_PLACE_MIXED && !full) return PAWL_INVALID;
  struct pwi_table_options table = table_of(&is);
  pawl_status status = pwi_table_check(&table);
  if (!status) *settled_out = is;
  return status;
}

bool pwi_options_add_up(const struct pawl_vector_options *is) {
  struct pwi_function_problem problem;
  struct pwi_rule rule;
  if (is->function != PAWL_RULE) return is->function == PAWL_ADD;
  return pwi_rule_parse(NULL, is->rule, &rule, &problem) == PAWL_OK && rule.function->flags & PAWL_FUNCTION_COMMUTES;
}

bool pwi_options_equal(const struct pawl_vector_options *a, const struct pawl_vector_options *b) {
  return a->type == b->type && a->width == b->width && a->size == b->size && a->function == b->function &&
         a->placement == b->placement && a->layout == b->layout && strcmp(a->rule, b->rule) == 0 &&
         strcmp(a->filters, b->filters) == 0;
}

static bool is_row(uint32_t width, enum pawl_type type) {
  return width > 0 && width <= ROW_BYTES_MAX / pwi_scalar_size((enum pwi_scalar)type);
}

/* If the function is unknown here, its widths are accepted as long as they are possible. */
static bool are_settled(const struct pawl_vector_options *is) {
  struct pawl_vector_options settled;
  if (pwi_options_settle(is, NULL, &settled) != PAWL_OK || settled.placement != is->placement ||
      settled.layout != is->layout || settled.function != is->function)
    return false;
  if (is->function != PAWL_RULE) return is->pushed_width == 0 && is->stored_width == 0 && is->state_width == 0;
  if (settled.stored_width > 0)
    return settled.pushed_width == is->pushed_width && settled.stored_width == is->stored_width &&
           settled.state_width == is->state_width;
  return is_row(is->pushed_width, is->type) && is_row(is->stored_width, is->type) &&
         (is->state_width == 0 || is_row(is->state_width, is->type));
}

static bool are_of_a_group(const struct pawl_vector_options *is) {
  return is->function != PAWL_RULE && is->filters[0] == '\0' && is->type == PAWL_U64 && is->width == 1 &&
         is->size == PAWL_KEY_END && is->placement == PAWL_PLACE_ORDERED && is->layout == PAWL_LAYOUT_SPARSE;
}

/* --- entries -------------------------------------------------------------------------------------------- */

struct pwi_place pwi_entry_place(const struct pwi_entry *entry) {
  return (struct pwi_place){.size = entry->is.size, .mixed = entry->is.placement == PAWL_PLACE_MIXED};
}

struct pwi_table_options pwi_entry_table(const struct pwi_entry *entry) {
  return table_of(&entry->is);
}

size_t pwi_entry_row_bytes(const struct pwi_entry *entry) {
  return pwi_options_stored(&entry->is) * pwi_scalar_size((enum pwi_scalar)entry->is.type);
}

size_t pwi_entry_pushed_bytes(const struct pwi_entry *entry) {
  return pwi_options_pushed(&entry->is) * pwi_scalar_size((enum pwi_scalar)entry->is.type);
}

static bool is_sound(const struct pwi_entry *entry) {
  if ((unsigned)entry->kind > PWI_ENTRY_PEERS || !are_settled(&entry->is)) return false;
  if (entry->kind != PWI_ENTRY_VECTOR && (!are_of_a_group(&entry->is) || entry->incarnation != 0)) return false;
  return pwi_name_check(entry->name, entry->kind) == PAWL_OK;
}

static uint64_t last_id(const struct pwi_catalogue *catalogue) {
  return catalogue->count ? catalogue->entries[catalogue->count - 1].id.id : 0;
}

/* --- searching and changing ----------------------------------------------------------------------------- */

void pwi_catalogue_fini(struct pwi_catalogue *catalogue) {
  pwi_free(catalogue->entries);
  *catalogue = (struct pwi_catalogue){0};
}

const struct pwi_entry *pwi_catalogue_find(const struct pwi_catalogue *catalogue, struct pwi_vector_id id) {
  struct pwi_search search = {.high = catalogue->count};
  while (pwi_search_next(&search)) pwi_search_told(&search, catalogue->entries[search.middle].id.id < id.id);
  bool found = search.low < catalogue->count && catalogue->entries[search.low].id.id == id.id;
  return found ? &catalogue->entries[search.low] : NULL;
}

const struct pwi_entry *pwi_catalogue_named(const struct pwi_catalogue *catalogue, const char *name) {
  for (size_t i = 0; i < catalogue->count; i++) {
    if (strcmp(catalogue->entries[i].name, name) == 0) return &catalogue->entries[i];
  }
  return NULL;
}

pawl_status pwi_catalogue_add(struct pwi_catalogue *catalogue, const struct pwi_entry *entry) {
  if (entry->id.id <= last_id(catalogue) || !is_sound(entry)) return PAWL_INVALID;
  if (pwi_catalogue_named(catalogue, entry->name)) return PAWL_EXISTS;
  if (catalogue->count >= PWI_CATALOGUE_MAX) return PAWL_TOO_LARGE;
  if (!PWI_GROW(catalogue->entries, catalogue->room, catalogue->count + 1)) return PAWL_NO_MEMORY;
  catalogue->entries[catalogue->count++] = *entry;
  catalogue->number++;
  return PAWL_OK;
}

pawl_status pwi_catalogue_remove(struct pwi_catalogue *catalogue, struct pwi_vector_id id) {
  const struct pwi_entry *entry = pwi_catalogue_find(catalogue, id);
  if (!entry) return PAWL_NOT_FOUND;
  size_t index = (size_t)(entry - catalogue->entries);
  catalogue->count--;
  memmove(catalogue->entries + index, catalogue->entries + index + 1,
          (catalogue->count - index) * sizeof *catalogue->entries);
  catalogue->number++;
  return PAWL_OK;
}

pawl_status pwi_catalogue_restore(struct pwi_catalogue *catalogue, struct pwi_vector_id id) {
  const struct pwi_entry *entry = pwi_catalogue_find(catalogue, id);
  if (!entry || entry->kind != PWI_ENTRY_VECTOR) return PAWL_NOT_FOUND;
  if (entry->incarnation == UINT32_MAX) return PAWL_TOO_LARGE;
  catalogue->entries[entry - catalogue->entries].incarnation++;
  catalogue->number++;
  return PAWL_OK;
}

/* --- as bytes ------------------------------------------------------------------------------------------- */

void pwi_options_write(struct pwi_writer *writer, const struct pawl_vector_options *options) {
  pwi_write_u8(writer, (uint8_t)options->type);
  pwi_write_u32(writer, options->width);
  pwi_write_u64(writer, options->size);
  pwi_write_u8(writer, (uint8_t)options->function);
  pwi_write_u8(writer, (uint8_t)options->placement);
  pwi_write_u8(writer, (uint8_t)options->layout);
  pwi_write_text(writer, options->rule);
  pwi_write_text(writer, options->filters);
  pwi_write_u32(writer, options->pushed_width);
  pwi_write_u32(writer, options->stored_width);
  pwi_write_u32(writer, options->state_width);
}

static void read_rule(struct pwi_reader *reader, struct pawl_vector_options *options) {
  pwi_read_text(reader, options->rule, sizeof options->rule);
  pwi_read_text(reader, options->filters, sizeof options->filters);
  options->pushed_width = pwi_read_u32(reader);
  options->stored_width = pwi_read_u32(reader);
  options->state_width = pwi_read_u32(reader);
}

struct pawl_vector_options pwi_options_read(struct pwi_reader *reader, bool is_old) {
  struct pawl_vector_options options = {0};
  options.type = (enum pawl_type)pwi_read_u8(reader);
  options.width = pwi_read_u32(reader);
  options.size = pwi_read_u64(reader);
  options.function = (enum pawl_function)pwi_read_u8(reader);
  options.placement = (enum pawl_placement)pwi_read_u8(reader);
  options.layout = (enum pawl_layout)pwi_read_u8(reader);
  if (!is_old) read_rule(reader, &options);
  return options;
}

struct pawl_vector_options pwi_options_read_last(struct pwi_reader *reader) {
  struct pawl_vector_options options = pwi_options_read(reader, true);
  if (reader->at < reader->end) read_rule(reader, &options);
  return options;
}

void pwi_catalogue_encode(const struct pwi_catalogue *catalogue, struct pwi_writer *writer) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, catalogue->number);
  pwi_write_u32(writer, (uint32_t)catalogue->count);
  for (size_t i = 0; i < catalogue->count; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    pwi_write_u64(writer, entry->id.id);
    pwi_write_u8(writer, (uint8_t)entry->kind);
    pwi_write_text(writer, entry->name);
    pwi_options_write(writer, &entry->is);
    pwi_write_u32(writer, entry->incarnation);
  }
}

static void read_entry(struct pwi_reader *reader, uint8_t version, struct pwi_entry *entry) {
  entry->id.id = pwi_read_u64(reader);
  entry->kind = (enum pwi_entry_kind)pwi_read_u8(reader);
  pwi_read_text(reader, entry->name, sizeof entry->name);
  entry->is = pwi_options_read(reader, version < VERSION);
  entry->incarnation = version == VERSION_FIRST ? 0 : pwi_read_u32(reader);
}

/* The caller has allocated room for all entries. */
static pawl_status read_entries(struct pwi_reader *reader, uint8_t version, size_t count,
                                struct pwi_catalogue *catalogue) {
  while (catalogue->count < count) {
    struct pwi_entry *entry = &catalogue->entries[catalogue->count];
    read_entry(reader, version, entry);
    if (reader->status) return reader->status;
    if (entry->id.id <= last_id(catalogue) || !is_sound(entry)) return PAWL_CORRUPT;
    catalogue->count++;
  }
  return pwi_reader_end(reader);
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const struct pwi_entry *const *)a)->name, (*(const struct pwi_entry *const *)b)->name);
}

/* Sorts the names first: comparing every pair would take hours for a few megabytes from a hostile sender. */
static pawl_status check_names_differ(const struct pwi_catalogue *catalogue) {
  if (catalogue->count < 2) return PAWL_OK;
  const struct pwi_entry **sorted = pwi_alloc_zero(catalogue->count, sizeof(const struct pwi_entry *));
  if (!sorted) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < catalogue->count; i++) sorted[i] = &catalogue->entries[i];
  qsort(sorted, catalogue->count, sizeof(const struct pwi_entry *), by_name);
  pawl_status status = PAWL_OK;
  for (size_t i = 1; i < catalogue->count && !status; i++) {
    if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) status = PAWL_CORRUPT;
  }
  pwi_free(sorted);
  return status;
}

static pawl_status read_catalogue(struct pwi_reader *reader, struct pwi_catalogue *catalogue) {
  uint8_t version = pwi_read_u8(reader);
  if (version < VERSION_FIRST || version > VERSION) pwi_reader_fail(reader, PAWL_UNSUPPORTED);
  catalogue->number = pwi_read_u64(reader);
  size_t count = pwi_read_count(reader, ENTRY_LEAST);
  if (reader->status) return reader->status;
  if (count > PWI_CATALOGUE_MAX) return PAWL_CORRUPT;
  if (count > 0) {
    catalogue->entries = pwi_alloc_zero(count, sizeof *catalogue->entries);
    if (!catalogue->entries) return PAWL_NO_MEMORY;
    catalogue->room = count;
  }
  pawl_status status = read_entries(reader, version, count, catalogue);
  return status ? status : check_names_differ(catalogue);
}

pawl_status pwi_catalogue_decode(const void *bytes, size_t size, struct pwi_catalogue *catalogue_out) {
  struct pwi_catalogue catalogue = {0};
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  pawl_status status = read_catalogue(&reader, &catalogue);
  if (status) {
    pwi_catalogue_fini(&catalogue);
    return status;
  }
  *catalogue_out = catalogue;
  return PAWL_OK;
}

bool pwi_space_is_sound(const char *space) {
  char name[PWI_SPACE_MAX + sizeof "/x"];
  size_t size = strnlen(space, PWI_SPACE_MAX + 1);
  if (size > PWI_SPACE_MAX) return false;
  memcpy(name, space, size);
  memcpy(name + size, "/x", sizeof "/x");
  return pwi_name_check(name, PWI_ENTRY_VECTOR) == PAWL_OK;
}
