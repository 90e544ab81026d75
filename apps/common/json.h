/* JSON that the processes of a job exchange. Shared by the applications. Input comes from another process and
 * is validated. */
#ifndef APPS_COMMON_JSON_H
#define APPS_COMMON_JSON_H

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/data.h>

#include "apps/common/memory.h"

/* Prints an object and releases it. Returns NULL if it is out of memory; free the text with apps_json_free. */
static inline char *apps_json_print(json_t *object) {
  char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(object);
  return text;
}

/* Frees a text that apps_json_print returned. NULL is allowed. */
static inline void apps_json_free(char *text) { free(text); /* allocated by jansson */ }

static inline json_t *apps_json_parse(const void *bytes, size_t size) {
  return json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
}

/* JSON has no infinities: numbers that are not finite are sent as null. */
static inline json_t *apps_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }
static inline double apps_json_number_of(const json_t *value) {
  return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The number of a key of a header, or NAN for null if that is allowed. False: it is something else. */
static inline bool apps_json_take_number(const json_t *header, const char *key, bool may_be_null, double *number_out) {
  const json_t *is = json_object_get(header, key);
  *number_out = apps_json_number_of(is);
  return json_is_number(is) || (may_be_null && json_is_null(is));
}

/* The flag of a key of a header. False: it is something else. */
static inline bool apps_json_take_flag(const json_t *header, const char *key, bool *flag_out) {
  const json_t *is = json_object_get(header, key);
  *flag_out = json_is_true(is);
  return json_is_boolean(is);
}

/* An array of numbers; NULL without memory. */
static inline json_t *apps_json_numbers(const double *values, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++)
    if (json_array_append_new(array, apps_json_number(values[i]))) {
      json_decref(array);
      return NULL;
    }
  return array;
}

/* False if it is not an array of `count` elements. */
static inline bool apps_json_numbers_of(const json_t *array, size_t count, double *values) {
  if (!json_is_array(array) || json_array_size(array) != count) return false;
  for (size_t i = 0; i < count; i++) values[i] = apps_json_number_of(json_array_get(array, i));
  return true;
}

/* 64-bit unsigned numbers do not fit in JSON's signed integers, so they are sent as hexadecimal strings. */
static inline json_t *apps_json_wide(uint64_t value) { return json_sprintf("%" PRIx64, value); }

static inline bool apps_json_wide_of(const json_t *value, uint64_t *number_out) {
  const char *text = json_string_value(value);
  size_t length = json_string_length(value);
  if (!text || length < 1 || length > 16 || strspn(text, "0123456789abcdef") != length) return false;
  *number_out = strtoull(text, NULL, 16);
  return true;
}

/* An array of strings; NULL if it is out of memory, or a string is not UTF-8. */
static inline json_t *apps_json_texts(char *const *texts, size_t count) {
  json_t *array = json_array();
  for (size_t i = 0; i < count; i++)
    if (json_array_append_new(array, json_string(texts[i]))) {
      json_decref(array);
      return NULL;
    }
  return array;
}

/* Copies texts. The caller frees the copy with apps_json_texts_free, also after a failure. False: out of
 * memory. */
static inline bool apps_texts_copy(const char *const *texts, size_t count, char ***texts_out, size_t *count_out) {
  char **copy = apps_alloc_zero(count + 1, sizeof *copy);
  *texts_out = copy;
  *count_out = 0;
  for (size_t i = 0; copy && i < count; i++) {
    copy[i] = apps_copy_text(texts[i]);
    if (!copy[i]) return false;
    *count_out = i + 1;
  }
  return copy != NULL;
}

static inline void apps_json_texts_free(char **texts, size_t count) {
  for (size_t i = 0; i < count; i++) apps_free(texts[i]);
  apps_free(texts);
}

/* Reads an array of at least one string. Returns false if an element is not a string, or it is out of memory;
 * free the strings read so far in any case. */
static inline bool apps_json_texts_of(const json_t *array, char ***texts_out, size_t *count_out) {
  size_t count = json_array_size(array);
  char **texts = apps_alloc_zero(count + 1, sizeof *texts);
  *texts_out = texts;
  *count_out = 0;
  for (size_t i = 0; texts && i < count; i++) {
    const char *text = json_string_value(json_array_get(array, i));
    texts[i] = text ? apps_copy_text(text) : NULL;
    if (!texts[i]) return false;
    *count_out = i + 1;
  }
  return texts && count > 0;
}

/* The options of reading data. `label` is the string that reading.label points to, or "". */
static inline json_t *apps_json_reading(const struct pawl_data_options *is, const char *label) {
  return json_pack("{s:i, s:i, s:i, s:s, s:b, s:b, s:b, s:o, s:o, s:[i, f, o]}", "format", (int)is->format, "separator",
                   (int)(unsigned char)is->separator, "hash_bits", (int)is->hash_bits, "label", label, "binary",
                   is->binary, "unit_rows", is->unit_rows, "unlabelled", is->labels_optional, "piece_bytes",
                   apps_json_wide(is->piece_bytes), "skip_bad", apps_json_wide(is->skip_bad), "part", (int)is->part,
                   is->held_share, apps_json_wide(is->held_seed));
}

/* Reads the options of reading data. The caller must point reading.label to `label` if that is not empty. */
static inline bool apps_json_reading_of(json_t *object, struct pawl_data_options *is, char *label, size_t room) {
  int format, separator, hash_bits, binary, unit_rows, unlabelled, part;
  double held_share;
  json_t *held_seed;
  const char *text;
  json_t *piece_bytes, *skip_bad;
  if (json_unpack(object, "{s:i, s:i, s:i, s:s, s:b, s:b, s:b, s:o, s:o, s:[i, F, o]}", "format", &format, "separator",
                  &separator, "hash_bits", &hash_bits, "label", &text, "binary", &binary, "unit_rows", &unit_rows,
                  "unlabelled", &unlabelled, "piece_bytes", &piece_bytes, "skip_bad", &skip_bad, "part", &part,
                  &held_share, &held_seed))
    return false;
  if (part < PAWL_PART_ALL || part > PAWL_PART_HELD || format < 0 || separator < 0 || separator > 255 ||
      hash_bits < 0 || strlen(text) >= room)
    return false;
  pawl_data_options_init(is);
  is->format = (enum pawl_data_format)format;
  is->separator = (char)(unsigned char)separator;
  is->hash_bits = (uint32_t)hash_bits;
  is->binary = binary;
  is->part = (enum pawl_data_part)part;
  is->held_share = held_share;
  is->unit_rows = unit_rows;
  is->labels_optional = unlabelled;
  memcpy(label, text, strlen(text) + 1);
  return apps_json_wide_of(held_seed, &is->held_seed) && apps_json_wide_of(piece_bytes, &is->piece_bytes) &&
         apps_json_wide_of(skip_bad, &is->skip_bad);
}

#endif
