/* The catalogue: a sorted array, its rules, and its bytes. Decoded entries pass through the same rules as added ones. */
#include "role/catalogue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/memory.h"

#define VERSION 2
#define OLD_VERSION 1  /* without incarnations */
#define ENTRY_LEAST 30 /* bytes of an entry whose name is as short as can be: one letter, a slash, one letter */
#define WORD "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define DENSE_AUTO_MAX                                                                                                 \
  (UINT64_C(1) << 28) /* keys of a span that is kept as an array unless it asks for something else */
#define DENSE_MAX (UINT64_C(1) << 32)

/* The two lists of numbers are one: what the application asks for is what the store is told. */
static_assert((int)PAWL_F32 == (int)PWI_SCALAR_F32 && (int)PAWL_F64 == (int)PWI_SCALAR_F64, "floats");
static_assert((int)PAWL_I32 == (int)PWI_SCALAR_I32 && (int)PAWL_I64 == (int)PWI_SCALAR_I64, "signed integers");
static_assert((int)PAWL_U64 == (int)PWI_SCALAR_U64, "unsigned integers");
static_assert(PAWL_WIDTH_MAX * sizeof(uint64_t) <= 1 << 30, "the widest row of the widest type is no row too long");

/* --- names ------------------------------------------------------------------------------------------------------ */

pawl_status pwi_name_check(const char *name, enum pwi_entry_kind kind) {
  if (strnlen(name, PAWL_NAME_MAX + 1) > PAWL_NAME_MAX) return PAWL_INVALID;
  size_t space = strspn(name, WORD);
  if (space == 0 || space > PWI_SPACE_MAX || name[space] != '/') return PAWL_INVALID;
  const char *second = name + space + 1;
  size_t size = strspn(second, WORD);
  if (size == 0 || second[size] != '\0') return PAWL_INVALID;
  return (second[0] == '.') == (kind == PWI_ENTRY_GROUP) ? PAWL_OK : PAWL_INVALID;
}

bool pwi_name_is_in(const char *name, const char *space) {
  size_t size = strlen(space);
  return strncmp(name, space, size) == 0 && name[size] == '/';
}

uint64_t pwi_group_key(const char *name) {
  uint64_t key = pwi_hash(name, strlen(name), 0);
  return key == PAWL_KEY_END ? 0 : key; /* nothing lies at the last position of the ring */
}

/* --- options ---------------------------------------------------------------------------------------------------- */

/* Every field by itself. They may have been made from any number. */
static bool are_in_bounds(const struct pawl_vector_options *options) {
  return pwi_scalar_size((enum pwi_scalar)options->type) > 0 && options->width > 0 &&
         options->width <= PAWL_WIDTH_MAX && options->size > 0 && (unsigned)options->function <= PAWL_ASSIGN &&
         (unsigned)options->placement <= PAWL_PLACE_MIXED && (unsigned)options->layout <= PAWL_LAYOUT_SPARSE;
}

pawl_status pwi_options_settle(const struct pawl_vector_options *asked, struct pawl_vector_options *settled_out) {
  struct pawl_vector_options is = *asked;
  if (!are_in_bounds(&is)) return PAWL_INVALID;
  bool full = is.size == PAWL_KEY_END;
  if (is.placement == PAWL_PLACE_AUTO) is.placement = full ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
  if (is.layout == PAWL_LAYOUT_AUTO) is.layout = is.size <= DENSE_AUTO_MAX ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  if (is.placement == PAWL_PLACE_MIXED && !full) return PAWL_INVALID;
  if (is.layout == PAWL_LAYOUT_DENSE && is.size > DENSE_MAX) return PAWL_INVALID;
  *settled_out = is;
  return PAWL_OK;
}

bool pwi_options_equal(const struct pawl_vector_options *a, const struct pawl_vector_options *b) {
  return a->type == b->type && a->width == b->width && a->size == b->size && a->function == b->function &&
         a->placement == b->placement && a->layout == b->layout;
}

static bool are_settled(const struct pawl_vector_options *is) {
  struct pawl_vector_options settled;
  return pwi_options_settle(is, &settled) == PAWL_OK && settled.placement == is->placement &&
         settled.layout == is->layout;
}

static bool are_of_a_group(const struct pawl_vector_options *is) {
  return is->type == PAWL_U64 && is->width == 1 && is->size == PAWL_KEY_END && is->placement == PAWL_PLACE_ORDERED &&
         is->layout == PAWL_LAYOUT_SPARSE;
}

/* --- entries ---------------------------------------------------------------------------------------------------- */

struct pwi_place pwi_entry_place(const struct pwi_entry *entry) {
  return (struct pwi_place){.size = entry->is.size, .mixed = entry->is.placement == PAWL_PLACE_MIXED};
}

struct pwi_table_options pwi_entry_table(const struct pwi_entry *entry) {
  return (struct pwi_table_options){
      .type = (enum pwi_scalar)entry->is.type,
      .width = entry->is.width,
      .span = pawl_range_of(0, entry->is.size),
      .sparse = entry->is.layout == PAWL_LAYOUT_SPARSE,
  };
}

size_t pwi_entry_row_bytes(const struct pwi_entry *entry) {
  return entry->is.width * pwi_scalar_size((enum pwi_scalar)entry->is.type);
}

static bool is_sound(const struct pwi_entry *entry) {
  if ((unsigned)entry->kind > PWI_ENTRY_GROUP || !are_settled(&entry->is)) return false;
  if (entry->kind == PWI_ENTRY_GROUP && (!are_of_a_group(&entry->is) || entry->incarnation != 0)) return false;
  return pwi_name_check(entry->name, entry->kind) == PAWL_OK;
}

static uint64_t last_id(const struct pwi_catalogue *catalogue) {
  return catalogue->count ? catalogue->entries[catalogue->count - 1].id.id : 0;
}

/* --- searching and changing ------------------------------------------------------------------------------------- */

void pwi_catalogue_fini(struct pwi_catalogue *catalogue) {
  pwi_free(catalogue->entries);
  *catalogue = (struct pwi_catalogue){0};
}

const struct pwi_entry *pwi_catalogue_find(const struct pwi_catalogue *catalogue, struct pwi_vector_id id) {
  size_t low = 0, high = catalogue->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (catalogue->entries[middle].id.id < id.id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < catalogue->count && catalogue->entries[low].id.id == id.id ? &catalogue->entries[low] : NULL;
}

const struct pwi_entry *pwi_catalogue_named(const struct pwi_catalogue *catalogue, const char *name) {
  for (size_t i = 0; i < catalogue->count; i++) {
    if (strcmp(catalogue->entries[i].name, name) == 0) return &catalogue->entries[i];
  }
  return NULL;
}

static pawl_status make_room(struct pwi_catalogue *catalogue) {
  if (catalogue->count < catalogue->room) return PAWL_OK;
  size_t room = catalogue->room ? 2 * catalogue->room : 8;
  struct pwi_entry *entries = pwi_resize_array(catalogue->entries, room, sizeof *entries);
  if (!entries) return PAWL_NO_MEMORY;
  catalogue->entries = entries;
  catalogue->room = room;
  return PAWL_OK;
}

pawl_status pwi_catalogue_add(struct pwi_catalogue *catalogue, const struct pwi_entry *entry) {
  if (entry->id.id <= last_id(catalogue) || !is_sound(entry)) return PAWL_INVALID;
  if (pwi_catalogue_named(catalogue, entry->name)) return PAWL_EXISTS;
  if (catalogue->count >= PWI_CATALOGUE_MAX) return PAWL_TOO_LARGE;
  pawl_status status = make_room(catalogue);
  if (status) return status;
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

/* --- as bytes --------------------------------------------------------------------------------------------------- */

void pwi_catalogue_encode(const struct pwi_catalogue *catalogue, struct pwi_writer *writer) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, catalogue->number);
  pwi_write_u32(writer, (uint32_t)catalogue->count);
  for (size_t i = 0; i < catalogue->count; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    pwi_write_u64(writer, entry->id.id);
    pwi_write_u8(writer, (uint8_t)entry->kind);
    pwi_write_text(writer, entry->name);
    pwi_write_u8(writer, (uint8_t)entry->is.type);
    pwi_write_u32(writer, entry->is.width);
    pwi_write_u64(writer, entry->is.size);
    pwi_write_u8(writer, (uint8_t)entry->is.function);
    pwi_write_u8(writer, (uint8_t)entry->is.placement);
    pwi_write_u8(writer, (uint8_t)entry->is.layout);
    pwi_write_u32(writer, entry->incarnation);
  }
}

static void read_entry(struct pwi_reader *reader, uint8_t version, struct pwi_entry *entry) {
  entry->id.id = pwi_read_u64(reader);
  entry->kind = (enum pwi_entry_kind)pwi_read_u8(reader);
  pwi_read_text(reader, entry->name, sizeof entry->name);
  entry->is.type = (enum pawl_type)pwi_read_u8(reader);
  entry->is.width = pwi_read_u32(reader);
  entry->is.size = pwi_read_u64(reader);
  entry->is.function = (enum pawl_function)pwi_read_u8(reader);
  entry->is.placement = (enum pawl_placement)pwi_read_u8(reader);
  entry->is.layout = (enum pawl_layout)pwi_read_u8(reader);
  entry->incarnation = version == OLD_VERSION ? 0 : pwi_read_u32(reader);
}

/* There is room for all entries. */
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

/* Sorts, for the bytes may be hostile, and comparing each name with each would let a few megabytes take hours. */
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
  if (version != VERSION && version != OLD_VERSION) pwi_reader_fail(reader, PAWL_UNSUPPORTED);
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
