/* safetensors: a JSON head that states the name, type, shape and offsets of every array. */
#include "checkpoint/array_file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"

#define PREFIX 8 /* the length of the object */
#define ALIGNMENT 8

static const char *const types[] = {[PWI_SCALAR_F32] = "F32",
                                    [PWI_SCALAR_F64] = "F64",
                                    [PWI_SCALAR_I32] = "I32",
                                    [PWI_SCALAR_I64] = "I64",
                                    [PWI_SCALAR_U64] = "U64"};

/* False if there was not enough memory: jansson passes a NULL on. */
static bool put_array(json_t *object, const struct pwi_array *array, uint64_t begin, uint64_t end) {
  json_t *shape = array->width > 0 ? json_pack("[I, I]", (json_int_t)array->rows, (json_int_t)array->width)
                                   : json_pack("[I]", (json_int_t)array->rows);
  json_t *about = json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[array->type], "shape", shape, "data_offsets",
                            (json_int_t)begin, (json_int_t)end);
  return json_object_set_new(object, array->name, about) == 0;
}

static bool put_metadata(json_t *object, const struct pwi_export_metadata *metadata, size_t count) {
  json_t *texts = count > 0 ? json_object() : NULL;
  bool good = count == 0 || json_object_set_new(object, "__metadata__", texts) == 0;
  for (size_t i = 0; i < count && good; i++)
    good = json_object_set_new(texts, metadata[i].name, json_string(metadata[i].text)) == 0;
  return good;
}

/* Arrays follow one another; offsets count from the end of the head. */
static pawl_status put_arrays(json_t *object, struct pwi_array *arrays, size_t count, uint64_t *bytes_out) {
  uint64_t at = 0, bytes;
  for (size_t i = 0; i < count; i++) {
    pawl_status status = pwi_array_bytes(&arrays[i], &bytes);
    if (status != PAWL_OK) return status;
    if (!pwi_add_u64(at, bytes, &bytes) || bytes > INT64_MAX) return PAWL_TOO_LARGE;
    if (!put_array(object, &arrays[i], at, bytes)) return PAWL_NO_MEMORY;
    arrays[i].offset = at;
    at = bytes;
  }
  *bytes_out = at;
  return PAWL_OK;
}

/* Formats the head; the caller frees the bytes. */
static pawl_status format_head(const json_t *object, unsigned char **head_out, size_t *size_out) {
  char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);
  if (!text) return PAWL_NO_MEMORY;
  size_t length = strlen(text), size = (PREFIX + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  unsigned char *head = pwi_alloc(size);
  if (head) {
    pwi_put_u64(head, size - PREFIX);
    memset(head + PREFIX, ' ', size - PREFIX);
    memcpy(head + PREFIX, text, length);
    *head_out = head;
    *size_out = size;
  }
  free(text); /* allocated by jansson */
  return head ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status write_head(struct pwi_file *file, const json_t *object, uint64_t bytes, size_t *size_out) {
  unsigned char *head;
  size_t size;
  pawl_status status = format_head(object, &head, &size);
  if (status != PAWL_OK) return status;
  status = bytes > INT64_MAX - size ? PAWL_TOO_LARGE : pwi_file_write(file, 0, head, size);
  if (status == PAWL_OK) status = pwi_file_truncate(file, size + bytes);
  pwi_free(head);
  *size_out = size;
  return status;
}

pawl_status pwi_safetensors_begin(struct pwi_file *file, struct pwi_array *arrays, size_t count,
                                  const struct pwi_export_metadata *metadata, size_t metadata_count) {
  json_t *object = json_object();
  uint64_t bytes = 0;
  size_t size = 0;
  pawl_status status = object && put_metadata(object, metadata, metadata_count) ? PAWL_OK : PAWL_NO_MEMORY;
  if (status == PAWL_OK) status = put_arrays(object, arrays, count, &bytes);
  if (status == PAWL_OK) status = write_head(file, object, bytes, &size);
  for (size_t i = 0; i < count && status == PAWL_OK; i++) arrays[i].offset += size;
  json_decref(object);
  return status;
}
