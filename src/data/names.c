#include "data/names.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "data/formats/csv_layout.h"

/* --- one piece ------------------------------------------------------------------------------------------ */

struct piece_names {
  struct pwi_namer is; /* must be first */
  const struct pwi_source *source;
  const uint64_t *ids;
  struct pawl_names names;
  bool has_no_memory;
};

/* The search, shared by the threads that read. */
struct search {
  const uint64_t *ids;
  size_t count;
};

static size_t find(const uint64_t *ids, size_t count, uint64_t id) {
  size_t low = pwi_first_not_below(ids, count, id);
  return low < count && ids[low] == id ? low : count;
}

/* Copies a field and undoubles its quotes. */
static size_t copy_field(struct pwi_field field, char *to, size_t room) {
  size_t size = 0;
  for (const char *at = field.begin; at < field.end && size < room; at++) {
    if (field.is_quoted && *at == '"') at++;
    to[size++] = *at;
  }
  return size;
}

static size_t column_name(const struct pwi_source *source, size_t column, char *to, size_t room) {
  struct pwi_field field;
  const struct pwi_csv_layout *table = &source->rule.table;
  if (source->rule.format == PAWL_DATA_CRITEO)
    return (size_t)snprintf(to, room, "%c%zu", column <= PWI_CRITEO_COUNTS ? 'I' : 'C',
                            column <= PWI_CRITEO_COUNTS ? column : column - PWI_CRITEO_COUNTS);
  if (source->head &&
      pwi_csv_name(source->head, source->head + source->head_size, table->separator, column - 1, &field))
    return copy_field(field, to, room);
  return (size_t)snprintf(to, room, "%zu", column);
}

static void found(struct pwi_namer *namer, uint64_t id, size_t column, struct pwi_field space, struct pwi_field name) {
  struct piece_names *piece = (struct piece_names *)namer;
  char text[PWI_NAME_MAX + 2];
  size_t i = find(piece->ids, piece->names.count, id), size = 0;
  if (i == piece->names.count || piece->names.names[i]) return;
  if (column) size = column_name(piece->source, column, text, PWI_NAME_MAX / 2);
  if (space.end > space.begin) size = copy_field(space, text, PWI_NAME_MAX / 2);
  if (size && name.end > name.begin) text[size++] = column ? '=' : '^';
  if ((size_t)(name.end - name.begin) > PWI_NAME_MAX - size) return;
  size += copy_field(name, text + size, PWI_NAME_MAX - size);
  text[size] = 0;
  piece->names.names[i] = pwi_copy_string(text);
  piece->has_no_memory |= !piece->names.names[i];
}

static void free_names(struct pawl_names *names) {
  for (size_t i = 0; names->names && i < names->count; i++) pwi_free(names->names[i]);
  pwi_free(names->names);
}

static void destroy_piece(void *product) {
  struct piece_names *piece = product;
  if (!piece) return;
  free_names(&piece->names);
  pwi_free(piece);
}

/* Parses rows for their names; the rows are not kept. */
static pawl_status parse(const struct pwi_parse_rule *rule, struct pwi_parse *parse, void *to) {
  struct pwi_batch *batch;
  pawl_status status = pwi_batch_create(&batch);
  if (status) return status;
  parse->namer = to;
  status = pwi_parse_rows(rule, parse, batch);
  pwi_batch_destroy(batch);
  return status;
}

static pawl_status make_piece(struct pawl_data *data, size_t number, struct pwi_lines *text, void **product_out,
                              struct pwi_fault *fault) {
  struct pwi_source *source = pwi_data_source(data, number);
  const struct search *search = data->searched;
  struct piece_names *piece = pwi_alloc_zero(1, sizeof *piece);
  uint64_t skipped = 0;
  pawl_status status = PAWL_NO_MEMORY;
  if (piece) {
    *piece = (struct piece_names){.is = {found}, .source = source, .ids = search->ids};
    piece->names = (struct pawl_names){search->count, pwi_alloc_zero(search->count + 1, sizeof(char *))};
  }
  if (piece && piece->names.names && text)
    status = pwi_data_parse(data, source, text, parse, &piece->is, &skipped, fault);
  else if (piece && piece->names.names)
    status = PAWL_OK; /* caches contain no names */
  if (!status && piece->has_no_memory) status = PAWL_NO_MEMORY;
  if (text) pwi_lines_fini(text);
  if (status == PAWL_NO_MEMORY) pwi_fault_plain(fault, status, source->path);
  if (status)
    destroy_piece(piece);
  else
    *product_out = piece;
  return status;
}

/* --- all of them ---------------------------------------------------------------------------------------- */

struct collecting {
  struct pawl_names *names;
  size_t missing;
};

/* Stops reading once every name is found. */
static pawl_status take(void *context, size_t number, void *product, struct pwi_fault *fault) {
  struct collecting *collecting = context;
  struct piece_names *piece = product;
  (void)number;
  (void)fault;
  for (size_t i = 0; i < collecting->names->count; i++) {
    if (collecting->names->names[i] || !piece->names.names[i]) continue;
    collecting->names->names[i] = piece->names.names[i];
    piece->names.names[i] = NULL;
    collecting->missing--;
  }
  destroy_piece(piece);
  return collecting->missing ? PAWL_OK : PAWL_CANCELLED;
}

/* The id of a numeric csv field is its column, which the head line names. */
static bool name_columns(const struct pawl_data *data, const uint64_t *ids, struct collecting *collecting) {
  const struct pwi_source *source = &data->sources[0];
  if (source->rule.format != PAWL_DATA_CSV || !source->head) return true;
  for (size_t i = 0; i < collecting->names->count && ids[i] <= source->rule.table.width; i++) {
    char text[PWI_NAME_MAX + 1];
    size_t size = ids[i] ? column_name(source, (size_t)ids[i], text, PWI_NAME_MAX) : 0;
    text[size] = 0;
    if (!size) continue;
    collecting->names->names[i] = pwi_copy_string(text);
    if (!collecting->names->names[i]) return false;
    collecting->missing--;
  }
  return true;
}

static bool has_names(const struct pawl_data *data) {
  for (size_t i = 0; i < data->count; i++) {
    enum pawl_data_format format = data->sources[i].rule.format;
    if (format == PAWL_DATA_VW || format == PAWL_DATA_CSV || format == PAWL_DATA_CRITEO) return true;
  }
  return false;
}

pawl_status pwi_feature_names_find(struct pawl_data *data, const uint64_t *ids, size_t count, uint32_t threads,
                                   struct pawl_names **names_out, struct pwi_fault *fault) {
  static const struct pwi_data_product product = {make_piece, destroy_piece};
  struct search search = {ids, count};
  struct collecting collecting = {.names = pwi_alloc_zero(1, sizeof *collecting.names), .missing = count};
  pawl_status status = PAWL_OK;
  if (collecting.names) *collecting.names = (struct pawl_names){count, pwi_alloc_zero(count + 1, sizeof(char *))};
  if (!collecting.names || !collecting.names->names || !name_columns(data, ids, &collecting))
    status = pwi_fault(fault, PAWL_NO_MEMORY, "not enough memory for the names of %zu features", count);
  data->searched = &search;
  if (!status && collecting.missing && has_names(data))
    status = pwi_data_make_all(data, 0, data->pieces, threads, true, &product, take, &collecting, fault);
  data->searched = NULL;
  if (status == PAWL_CANCELLED) status = PAWL_OK;
  if (status)
    pwi_feature_names_destroy(collecting.names);
  else
    *names_out = collecting.names;
  return status;
}

void pwi_feature_names_destroy(struct pawl_names *names) {
  if (!names) return;
  free_names(names);
  pwi_free(names);
}
