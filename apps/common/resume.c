/* Saves and compares the options and the data of a run: see apps/common/resume.h. */
#include "apps/common/resume.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "apps/common/json.h"
#include "apps/common/model_file.h"

#define VALUE_SHOWN 121 /* characters of the value of an option */

/* --- rows ----------------------------------------------------------------------------------------------- */

static uint64_t hash(const void *bytes, size_t size, uint64_t seed) {
  return size ? XXH3_64bits_withSeed(bytes, size, seed) : seed;
}

void apps_digest_add(struct apps_digest *digest, uint64_t piece, const struct pawl_batch *batch) {
  uint64_t sum = hash(&piece, sizeof piece, batch->rows);
  sum = hash(batch->starts, (batch->rows + 1) * sizeof *batch->starts, sum);
  sum = hash(batch->ids, batch->entries * sizeof *batch->ids, sum);
  sum = hash(batch->labels, batch->rows * sizeof *batch->labels, sum);
  if (batch->values) sum = hash(batch->values, batch->entries * sizeof *batch->values, sum + 1);
  if (batch->weights) sum = hash(batch->weights, batch->rows * sizeof *batch->weights, sum + 2);
  digest->sum += sum;
  digest->pieces++;
}

static pawl_status add(void *context, size_t piece, struct pawl_batch *batch) {
  apps_digest_add(context, piece, batch);
  pawl_batch_destroy(batch);
  return PAWL_OK;
}

pawl_status apps_digest_read(struct pawl_data *data, uint32_t threads, struct apps_digest *digest_out) {
  struct apps_digest digest = {0};
  struct pawl_data_info info;
  pawl_data_info(data, &info);
  pawl_status status = pawl_data_read_all(data, 0, info.pieces, threads, add, &digest);
  if (!status) *digest_out = digest;
  return status;
}

json_t *apps_digest_write(const struct apps_digest *digest) {
  return json_pack("{s:o, s:o}", "pieces", apps_json_wide(digest->pieces), "sum", apps_json_wide(digest->sum));
}

bool apps_digest_of(const json_t *object, struct apps_digest *digest_out) {
  return apps_json_wide_of(json_object_get(object, "pieces"), &digest_out->pieces) &&
         apps_json_wide_of(json_object_get(object, "sum"), &digest_out->sum);
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* The time of modification in nanoseconds; 0: unknown. */
static uint64_t time_of(const char *path) {
  struct stat about;
  if (stat(path, &about) != 0) return 0;
  return (uint64_t)about.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)about.st_mtim.tv_nsec;
}

/* A file name that is not UTF-8 is omitted, and the file compared by its position. */
json_t *apps_files_write(const struct pawl_data *data) {
  json_t *files = json_array();
  struct pawl_data_info info;
  uint64_t size;
  pawl_data_info(data, &info);
  for (size_t i = 0; i < info.files; i++) {
    const char *path = pawl_data_file(data, i, &size);
    json_t *name = json_string(path);
    json_array_append_new(files, json_pack("{s:o, s:o, s:o}", "path", name ? name : json_null(), "size",
                                           apps_json_wide(size), "time", apps_json_wide(time_of(path))));
  }
  return files;
}

static bool same_file(const json_t *file, const char *path, uint64_t size, char text[APPS_RESUME_TEXT]) {
  const char *name = json_string_value(json_object_get(file, "path"));
  uint64_t was = 0, time = 0;
  apps_json_wide_of(json_object_get(file, "size"), &was);
  apps_json_wide_of(json_object_get(file, "time"), &time);
  if (name && strcmp(name, path) != 0)
    snprintf(text, APPS_RESUME_TEXT, "found %.180s instead of %.180s", path, name);
  else if (was != size)
    snprintf(text, APPS_RESUME_TEXT, "%.300s had %llu bytes and now has %llu", path, (unsigned long long)was,
             (unsigned long long)size);
  else if (time != time_of(path))
    snprintf(text, APPS_RESUME_TEXT, "%.300s was modified since", path);
  else
    return true;
  return false;
}

bool apps_files_same(const json_t *files, const struct pawl_data *data, char text[APPS_RESUME_TEXT]) {
  struct pawl_data_info info;
  pawl_data_info(data, &info);
  for (size_t i = 0; i < info.files && i < json_array_size(files); i++) {
    uint64_t size;
    const char *path = pawl_data_file(data, i, &size);
    if (!same_file(json_array_get(files, i), path, size, text)) return false;
  }
  if (info.files == json_array_size(files)) return true;
  snprintf(text, APPS_RESUME_TEXT, "there were %zu files and now there are %zu", json_array_size(files), info.files);
  return false;
}

/* --- options -------------------------------------------------------------------------------------------- */

void apps_term(json_t *terms, const char *option, const char *format, ...) {
  char value[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  json_t *text = json_string(value);
  json_object_set_new(terms, option, text ? text : json_string("not UTF-8"));
}

void apps_term_flag(json_t *terms, const char *option, bool is_on) {
  apps_term(terms, option, "%s", is_on ? "on" : "off");
}

void apps_terms_reading(json_t *terms, const struct pawl_data_options *reading) {
  apps_term(terms, "--format", "%s", pawl_data_format_name(reading->format));
  apps_term(terms, "--label", "%s", reading->label ? reading->label : "");
  apps_term(terms, "--separator", "%.1s", (const char[]){reading->separator, 0});
  apps_term(terms, "--hash-bits", "%u", (unsigned)reading->hash_bits);
  apps_term(terms, "--skip-bad", "%llu", (unsigned long long)reading->skip_bad);
  apps_term_flag(terms, "--binary", reading->binary);
  apps_term_flag(terms, "--unit-rows", reading->unit_rows);
  if (reading->part == PAWL_PART_ALL) return;
  apps_term(terms, "--valid-split", "%.12g", reading->held_share);
  apps_term(terms, "--seed", "%llu", (unsigned long long)reading->held_seed); /* the seed selects the rows */
}

/* Writes the value of a term as a user would: 0.2 for 0.20000000000000001, with which it was stored. */
static void show_value(const char *value, char shown[VALUE_SHOWN]) {
  char *end = NULL;
  double number = value && *value ? strtod(value, &end) : 0;
  snprintf(shown, VALUE_SHOWN, "%s", value && *value ? value : "not given");
  if (!end || *end || strlen(value) < DBL_DECIMAL_DIG || !strpbrk(value, ".e")) return;
  char brief[VALUE_SHOWN];
  snprintf(brief, sizeof brief, "%.*g", DBL_DIG, number);
  if (strtod(brief, NULL) == number) snprintf(shown, VALUE_SHOWN, "%s", brief);
}

/* The run may have been written by a version without an option that exists now; the option then counts as not
 * given. */
bool apps_terms_same(const json_t *before, json_t *now, char text[APPS_RESUME_TEXT]) {
  const char *option;
  json_t *value;
  json_object_foreach(now, option, value) {
    const char *was = json_string_value(json_object_get(before, option)), *is = json_string_value(value);
    if (was && is && strcmp(was, is) == 0) continue;
    char old[VALUE_SHOWN], new[VALUE_SHOWN];
    show_value(was, old);
    show_value(is, new);
    snprintf(text, APPS_RESUME_TEXT, "%s was %s and is now %s", option, old, new);
    return false;
  }
  json_object_foreach((json_t *)(uintptr_t)before, option, value) {
    if (json_object_get(now, option)) continue;
    snprintf(text, APPS_RESUME_TEXT, "%s was %.120s and is now not given", option,
             json_is_string(value) ? json_string_value(value) : "given");
    return false;
  }
  return true;
}

pawl_status apps_state_compare(const json_t *header, json_t *terms, uint64_t digest, char *why) {
  char text[APPS_RESUME_TEXT] = "";
  uint64_t was = 0;
  bool is_same = apps_terms_same(json_object_get(header, "options"), terms, text);
  json_decref(terms);
  if (!is_same) return apps_say(why, PAWL_MISMATCH, "this checkpoint belongs to another training: %s", text);
  if (!apps_json_wide_of(json_object_get(header, "digest"), &was) || was != digest)
    return apps_say(why, PAWL_MISMATCH, "this checkpoint belongs to a training with other rows");
  return PAWL_OK;
}

bool apps_state_chosen(const json_t *header, const char *key, double least, double most, double *value) {
  const json_t *is = json_object_get(header, key);
  double number = apps_json_number_of(is);
  if (!is) return true;
  if (!(number >= least && number <= most)) return false;
  *value = number;
  return true;
}

/* --- the state's file ----------------------------------------------------------------------------------- */

static pawl_status fill(FILE *file, const void *object) {
  return json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) == 0 ? PAWL_OK : PAWL_IO;
}

pawl_status apps_state_write(const char *path, json_t *object, char *error) {
  pawl_status status = object ? apps_file_write(path, fill, object, error) : PAWL_NO_MEMORY;
  json_decref(object);
  return status;
}

/* The kind is the first value of the header. */
static bool is_of_kind(const char *bytes, const char *kind) {
  char wanted[80];
  snprintf(wanted, sizeof wanted, "\"kind\": \"%s\"", kind);
  return strncmp(bytes, "pawl-model ", 11) == 0 && strstr(bytes, wanted);
}

pawl_status apps_state_place(const char *path, const char *kind, char *error) {
  char bytes[160];
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return PAWL_OK;
  FILE *file = fopen(path, "re");
  if (!file) return PAWL_OK;
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
  fclose(file);
  if (is_of_kind(bytes, kind)) return PAWL_OK;
  return apps_say(error, PAWL_EXISTS, "%s is there already and is no checkpoint of this method; choose another name",
                  path);
}

void apps_state_note(pawl_status status, char *error, char *unsaved) {
  snprintf(unsaved, APPS_TEXT_MAX, "%s", status ? error : "");
  if (status) error[0] = '\0';
}
