/* Encodes and decodes manifests as text. The text always ends with the same 33 bytes of checksum, so the
 * checksum is verified before anything else is parsed. */
#include "checkpoint/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"

#define FORMAT 1
#define TAIL_BEGIN ",\n  \"checksum\": \""
#define TAIL_END "\"\n}\n"
#define TAIL_SIZE (sizeof TAIL_BEGIN - 1 + 16 + sizeof TAIL_END - 1)

struct named_number {
  int number;
  const char *text;
};

static const struct named_number types[] = {{PAWL_F32, "f32"}, {PAWL_F64, "f64"}, {PAWL_I32, "i32"},
                                            {PAWL_I64, "i64"}, {PAWL_U64, "u64"}, {0, NULL}};
static const struct named_number functions[] = {
    {PAWL_ADD, "add"}, {PAWL_ASSIGN, "assign"}, {PAWL_RULE, "rule"}, {0, NULL}};
static const struct named_number placements[] = {
    {PAWL_PLACE_ORDERED, "ordered"}, {PAWL_PLACE_MIXED, "mixed"}, {0, NULL}};
static const struct named_number layouts[] = {{PAWL_LAYOUT_DENSE, "dense"}, {PAWL_LAYOUT_SPARSE, "sparse"}, {0, NULL}};

/* --- writing -------------------------------------------------------------------------------------------- */

static json_t *word_of(const struct named_number *words, int number) {
  while (words->text && words->number != number) words++;
  return words->text ? json_string(words->text) : NULL;
}

static json_t *decimal(uint64_t value) { return json_sprintf("%" PRIu64, value); }

static json_t *hexadecimal(uint64_t value) { return json_sprintf("%016" PRIx64, value); }

static bool format_time(int64_t seconds, char *text, size_t size) {
  time_t time = (time_t)seconds;
  struct tm parts;
  if (seconds < 0 || !gmtime_r(&time, &parts) || parts.tm_year > 9999 - 1900) return false;
  return strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0;
}

static bool add_rule(json_t *object, const struct pawl_vector_options *is) {
  return json_object_set_new(object, "rule", json_string(is->rule)) == 0 &&
         json_object_set_new(object, "pushed", json_integer((json_int_t)is->pushed_width)) == 0 &&
         json_object_set_new(object, "stored", json_integer((json_int_t)is->stored_width)) == 0 &&
         json_object_set_new(object, "state", json_integer((json_int_t)is->state_width)) == 0;
}

/* NULL if there was not enough memory for any part of it: jansson passes a NULL on. */
static json_t *vector_object(const struct pwi_manifest_vector *vector) {
  const struct pawl_vector_options *is = &vector->is;
  json_t *object =
      json_pack("{s:I, s:I, s:s, s:o, s:I, s:o, s:o, s:o, s:o}", "id", (json_int_t)vector->id, "incarnation",
                (json_int_t)vector->incarnation, "name", vector->name, "type", word_of(types, (int)is->type), "width",
                (json_int_t)is->width, "size", decimal(is->size), "function", word_of(functions, (int)is->function),
                "placement", word_of(placements, (int)is->placement), "layout", word_of(layouts, (int)is->layout));
  bool made = object != NULL;
  if (made && is->rule[0]) made = add_rule(object, is);
  if (made && is->filters[0]) made = json_object_set_new(object, "filters", json_string(is->filters)) == 0;
  if (made) return object;
  json_decref(object);
  return NULL;
}

static json_t *arc_object(const struct pwi_archive_cut *arc) {
  return json_pack("{s:o, s:o, s:I, s:o}", "begin", decimal(arc->positions.begin), "end", decimal(arc->positions.end),
                   "epoch", (json_int_t)arc->epoch, "sequence", decimal(arc->sequence));
}

static json_t *file_object(const struct pwi_manifest_file *file) {
  json_t *arcs = json_array();
  bool made = arcs != NULL;
  for (size_t i = 0; i < file->arc_count && made; i++)
    made = json_array_append_new(arcs, arc_object(&file->arcs[i])) == 0;
  if (!made) {
    json_decref(arcs);
    return NULL;
  }
  return json_pack("{s:s, s:I, s:I, s:o, s:o}", "name", file->name, "node", (json_int_t)file->node, "size",
                   (json_int_t)file->size, "checksum", hexadecimal(file->checksum), "arcs", arcs);
}

static json_t *manifest_object(const struct pwi_manifest *manifest, const char *time) {
  json_t *vectors = json_array(), *files = json_array();
  bool made = vectors && files;
  for (size_t i = 0; i < manifest->vector_count && made; i++)
    made = json_array_append_new(vectors, vector_object(&manifest->vectors[i])) == 0;
  for (size_t i = 0; i < manifest->file_count && made; i++)
    made = json_array_append_new(files, file_object(&manifest->files[i])) == 0;
  if (!made) {
    json_decref(vectors);
    json_decref(files);
    return NULL;
  }
  return json_pack("{s:i, s:o, s:s, s:I, s:s, s:o, s:o, s:o}", "format", FORMAT, "cluster",
                   hexadecimal(manifest->cluster), "name", manifest->name, "number", (json_int_t)manifest->number,
                   "time", time, "base", manifest->base[0] ? json_string(manifest->base) : json_null(), "vectors",
                   vectors, "files", files);
}

/* Replaces the object's closing brace by the checksum. */
static pawl_status add_checksum(const char *body, char **text_out, size_t *size_out) {
  size_t length = strlen(body) - strlen("\n}"), size = length + TAIL_SIZE;
  char *text = pwi_alloc(size + 1);
  if (!text) return PAWL_NO_MEMORY;
  memcpy(text, body, length);
  snprintf(text + length, TAIL_SIZE + 1, "%s%016" PRIx64 "%s", TAIL_BEGIN, pwi_hash(text, length, 0), TAIL_END);
  *text_out = text;
  *size_out = size;
  return PAWL_OK;
}

/* json_int_t is signed. Valid ids and sizes fit it. */
static bool numbers_fit(const struct pwi_manifest *manifest) {
  bool fit = manifest->number <= INT64_MAX;
  for (size_t i = 0; i < manifest->vector_count && fit; i++)
    fit = manifest->vectors[i].id <= INT64_MAX && manifest->vectors[i].incarnation <= INT64_MAX;
  for (size_t i = 0; i < manifest->file_count && fit; i++) {
    const struct pwi_manifest_file *file = &manifest->files[i];
    fit = file->node <= INT64_MAX && file->size <= INT64_MAX;
    for (size_t j = 0; j < file->arc_count && fit; j++) fit = file->arcs[j].epoch <= INT64_MAX;
  }
  return fit;
}

pawl_status pwi_manifest_encode(const struct pwi_manifest *manifest, char **text_out, size_t *size_out) {
  char time[32];
  pawl_status status = pwi_manifest_check(manifest);
  if (status != PAWL_OK) return status;
  if (!numbers_fit(manifest) || !format_time(manifest->time_s, time, sizeof time)) return PAWL_INVALID;
  json_t *object = manifest_object(manifest, time);
  char *body = object ? json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
  json_decref(object);
  if (!body) return PAWL_NO_MEMORY;
  status = add_checksum(body, text_out, size_out);
  free(body); /* allocated by jansson */
  return status;
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Reads members of an object. The first member that is missing or has the wrong type marks it as bad; all
 * further reads return zeros. */
struct object_reader {
  bool bad;
};

static const char *text_in(struct object_reader *look, const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  if (!text) look->bad = true;
  return text ? text : "";
}

static void copy_in(struct object_reader *look, const json_t *object, const char *name, char *copy, size_t room) {
  const char *text = text_in(look, object, name);
  size_t length = strlen(text);
  if (length >= room) look->bad = true;
  snprintf(copy, room, "%s", length < room ? text : "");
}

static uint64_t whole_in(struct object_reader *look, const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  json_int_t number = json_integer_value(value);
  if (!json_is_integer(value) || number < 0) look->bad = true;
  return look->bad ? 0 : (uint64_t)number;
}

/* Parses a number and formats it again: only the canonical form is accepted. */
static uint64_t wide_in(struct object_reader *look, const json_t *object, const char *name, int base) {
  char again[32];
  const char *text = text_in(look, object, name);
  uint64_t value = strtoull(text, NULL, base);
  if (base == 16)
    snprintf(again, sizeof again, "%016" PRIx64, value);
  else
    snprintf(again, sizeof again, "%" PRIu64, value);
  if (strcmp(text, again) != 0) look->bad = true;
  return look->bad ? 0 : value;
}

static int word_in(struct object_reader *look, const json_t *object, const char *name,
                   const struct named_number *words) {
  const char *text = text_in(look, object, name);
  while (words->text && strcmp(words->text, text) != 0) words++;
  if (!words->text) look->bad = true;
  return words->number;
}

static int64_t time_in(struct object_reader *look, const json_t *object, const char *name) {
  char again[32] = "";
  struct tm parts = {0};
  const char *text = text_in(look, object, name);
  if (!strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts)) look->bad = true;
  int64_t seconds = look->bad ? 0 : (int64_t)timegm(&parts);
  if (!format_time(seconds, again, sizeof again) || strcmp(text, again) != 0) look->bad = true;
  return seconds;
}

static json_t *array_in(struct object_reader *look, const json_t *object, const char *name) {
  json_t *array = json_object_get(object, name);
  if (!json_is_array(array)) look->bad = true;
  return array;
}

static uint32_t width_in(struct object_reader *look, const json_t *object, const char *name) {
  uint64_t width = whole_in(look, object, name);
  if (width > UINT32_MAX) look->bad = true;
  return look->bad ? 0 : (uint32_t)width;
}

static void read_rule(struct object_reader *look, const json_t *object, struct pawl_vector_options *is) {
  copy_in(look, object, "rule", is->rule, sizeof is->rule);
  is->pushed_width = width_in(look, object, "pushed");
  is->stored_width = width_in(look, object, "stored");
  is->state_width = width_in(look, object, "state");
}

static pawl_status read_vector(const json_t *object, struct pwi_manifest *manifest) {
  struct object_reader look = {false};
  struct pwi_manifest_vector vector = {
      .id = whole_in(&look, object, "id"),
      .incarnation = whole_in(&look, object, "incarnation"),
      .is.type = (enum pawl_type)word_in(&look, object, "type", types),
      .is.size = wide_in(&look, object, "size", 10),
      .is.function = (enum pawl_function)word_in(&look, object, "function", functions),
      .is.placement = (enum pawl_placement)word_in(&look, object, "placement", placements),
      .is.layout = (enum pawl_layout)word_in(&look, object, "layout", layouts),
  };
  uint64_t width = whole_in(&look, object, "width");
  copy_in(&look, object, "name", vector.name, sizeof vector.name);
  if (vector.is.function == PAWL_RULE) read_rule(&look, object, &vector.is);
  if (json_object_get(object, "filters"))
    copy_in(&look, object, "filters", vector.is.filters, sizeof vector.is.filters);
  if (look.bad || width > PAWL_WIDTH_MAX) return PAWL_CORRUPT;
  vector.is.width = (uint32_t)width;
  return pwi_manifest_add_vector(manifest, &vector);
}

static bool read_arc(const json_t *object, struct pwi_archive_cut *arc) {
  struct object_reader look = {false};
  arc->positions.begin = wide_in(&look, object, "begin", 10);
  arc->positions.end = wide_in(&look, object, "end", 10);
  arc->epoch = whole_in(&look, object, "epoch");
  arc->sequence = wide_in(&look, object, "sequence", 10);
  return !look.bad;
}

static pawl_status read_file(const json_t *object, struct pwi_manifest *manifest) {
  struct object_reader look = {false};
  struct pwi_manifest_file file = {
      .node = whole_in(&look, object, "node"),
      .size = whole_in(&look, object, "size"),
      .checksum = wide_in(&look, object, "checksum", 16),
  };
  const json_t *arcs = array_in(&look, object, "arcs");
  copy_in(&look, object, "name", file.name, sizeof file.name);
  if (look.bad) return PAWL_CORRUPT;
  file.arc_count = json_array_size(arcs);
  file.arcs = pwi_alloc_zero(file.arc_count + 1, sizeof *file.arcs);
  if (!file.arcs) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < file.arc_count && status == PAWL_OK; i++)
    if (!read_arc(json_array_get(arcs, i), &file.arcs[i])) status = PAWL_CORRUPT;
  if (status == PAWL_OK) status = pwi_manifest_add_file(manifest, &file);
  pwi_free(file.arcs);
  return status;
}

static pawl_status read_arrays(struct object_reader *look, const json_t *object, struct pwi_manifest *manifest) {
  const json_t *vectors = array_in(look, object, "vectors"), *files = array_in(look, object, "files");
  pawl_status status = look->bad ? PAWL_CORRUPT : PAWL_OK;
  for (size_t i = 0; i < json_array_size(vectors) && status == PAWL_OK; i++)
    status = read_vector(json_array_get(vectors, i), manifest);
  for (size_t i = 0; i < json_array_size(files) && status == PAWL_OK; i++)
    status = read_file(json_array_get(files, i), manifest);
  return status;
}

static pawl_status read_object(const json_t *object, struct pwi_manifest *manifest) {
  struct object_reader look = {false};
  uint64_t format = whole_in(&look, object, "format");
  if (look.bad) return PAWL_CORRUPT;
  if (format != FORMAT) return PAWL_UNSUPPORTED;
  manifest->cluster = wide_in(&look, object, "cluster", 16);
  manifest->number = whole_in(&look, object, "number");
  manifest->time_s = time_in(&look, object, "time");
  copy_in(&look, object, "name", manifest->name, sizeof manifest->name);
  if (!json_is_null(json_object_get(object, "base"))) {
    copy_in(&look, object, "base", manifest->base, sizeof manifest->base);
    if (manifest->base[0] == '\0') look.bad = true;
  }
  pawl_status status = look.bad ? PAWL_CORRUPT : read_arrays(&look, object, manifest);
  if (status == PAWL_OK) status = pwi_manifest_check(manifest);
  return status == PAWL_INVALID ? PAWL_CORRUPT : status;
}

static pawl_status check_sum(const char *text, size_t size) {
  char tail[TAIL_SIZE + 1];
  if (size < TAIL_SIZE || memcmp(text + size - strlen(TAIL_END), TAIL_END, strlen(TAIL_END)) != 0)
    return PAWL_TRUNCATED;
  size_t length = size - TAIL_SIZE;
  snprintf(tail, sizeof tail, "%s%016" PRIx64 "%s", TAIL_BEGIN, pwi_hash(text, length, 0), TAIL_END);
  return memcmp(text + length, tail, TAIL_SIZE) == 0 ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_manifest_decode(const char *text, size_t size, struct pwi_manifest *manifest_out) {
  json_error_t error;
  struct pwi_manifest manifest = {0};
  pawl_status status = check_sum(text, size);
  if (status != PAWL_OK) return status;
  json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  if (!object) return json_error_code(&error) == json_error_out_of_memory ? PAWL_NO_MEMORY : PAWL_CORRUPT;
  status = read_object(object, &manifest);
  json_decref(object);
  if (status != PAWL_OK) {
    pwi_manifest_fini(&manifest);
    return status;
  }
  *manifest_out = manifest;
  return PAWL_OK;
}
