#include "apps/common/model_arrays.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"

/* --- writing ---------------------------------------------------------------------------------------------- */

struct array_list {
  const struct apps_array *arrays;
  size_t count;
};

static void put_arrays(struct apps_sink *sink, const void *context) {
  const struct array_list *list = context;
  for (size_t i = 0; i < list->count; i++) {
    const struct apps_array *array = &list->arrays[i];
    if (array->width == 1)
      apps_sink_bytes(sink, array->elements, array->count);
    else
      apps_sink_numbers(sink, array->elements, array->count, array->width);
  }
}

pawl_status apps_arrays_write(FILE *file, json_t *header, const struct apps_array *arrays, size_t count) {
  const struct array_list list = {arrays, count};
  return apps_model_fill(file, header, put_arrays, &list);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static pawl_status check_kind(const json_t *header, const char *kind, char *why) {
  const char *is = json_string_value(json_object_get(header, "kind"));
  if (is && strcmp(is, kind) == 0) return PAWL_OK;
  return apps_say(why, PAWL_MISMATCH, "this is a model of kind '%.64s', not '%s'", is ? is : "linear", kind);
}

pawl_status apps_arrays_open(struct apps_arrays *code, const char *kind, json_t **header_out, char *why) {
  json_t *header;
  pawl_status status = apps_model_head(code->bytes, code->size, "model", &code->at, &header, why);
  if (status) return status;
  status = check_kind(header, kind, why);
  if (!status && code->size - code->at < APPS_MODEL_SUM)
    status = apps_say(why, PAWL_TRUNCATED, "the file ends after its header");
  if (!status) status = apps_model_sum(code->bytes, code->size, why);
  if (status)
    json_decref(header);
  else
    *header_out = header;
  return status;
}

void *apps_arrays_next(struct apps_arrays *code, uint64_t count, int width, pawl_status *status_out) {
  size_t left = code->size - APPS_MODEL_SUM - code->at;
  *status_out = PAWL_TRUNCATED;
  if (count > left / (size_t)width) return NULL;
  char *elements = apps_alloc_zero((size_t)count, (size_t)width);
  *status_out = PAWL_NO_MEMORY;
  if (!elements) return NULL;
  for (size_t i = 0; i < count; i++) {
    uint64_t number = apps_model_number(code->bytes + code->at + i * (size_t)width, width);
    uint32_t narrow = (uint32_t)number;
    if (width == 1)
      elements[i] = (char)(unsigned char)number;
    else if (width == 4)
      memcpy(elements + 4 * i, &narrow, 4);
    else
      memcpy(elements + 8 * i, &number, 8);
  }
  code->at += (size_t)count * (size_t)width;
  *status_out = PAWL_OK;
  return elements;
}

pawl_status apps_arrays_into(struct apps_arrays *code, void *to, uint64_t count, int width, char *why) {
  pawl_status status;
  void *elements = apps_arrays_next(code, count, width, &status);
  if (!elements) return apps_say(why, status, "%s", pawl_status_text(status));
  memcpy(to, elements, (size_t)count * (size_t)width);
  apps_free(elements);
  return PAWL_OK;
}

pawl_status apps_arrays_lack(char *why, pawl_status status, const char *what) {
  if (status == PAWL_NO_MEMORY) return apps_say(why, status, "no memory for the %s", what);
  return apps_say(why, status, "the file ends too early, in the %s", what);
}

bool apps_is_finite(const float *numbers, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!isfinite(numbers[i])) return false;
  return true;
}

bool apps_are_rising(const uint64_t *numbers, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (numbers[i] <= numbers[i - 1]) return false;
  return true;
}

bool apps_arrays_are_over(const struct apps_arrays *code) { return code->at == code->size - APPS_MODEL_SUM; }

bool apps_model_count32(const json_t *header, const char *key, uint32_t most, uint32_t *count_out) {
  uint64_t count = 0;
  if (!apps_model_count(header, key, 0, most, &count)) return false;
  *count_out = (uint32_t)count;
  return true;
}
