/* Model files: detects the format, and reads or writes it. See <pawl/linear_model.h>. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/model_file.h"
#include "apps/linear/model/inside.h"

const char *pawl_linear_format_name(enum pawl_linear_format format) {
  switch (format) {
  case PAWL_LINEAR_FORMAT_PAWL:
    return "pawl";
  case PAWL_LINEAR_FORMAT_LIBLINEAR:
    return "liblinear";
  case PAWL_LINEAR_FORMAT_NPY:
    return "npy";
  }
  return "";
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), more = strlen(end);
  return length > more && strcmp(text + length - more, end) == 0;
}

enum pawl_linear_format pawl_linear_format_of(const char *path) {
  if (ends_with(path, ".npy")) return PAWL_LINEAR_FORMAT_NPY;
  return ends_with(path, ".liblinear") || ends_with(path, ".txt") ? PAWL_LINEAR_FORMAT_LIBLINEAR
                                                                  : PAWL_LINEAR_FORMAT_PAWL;
}

/* The path of the description of an array: w.npy.json for w.npy. The caller frees it. */
static char *about_path(const char *path) {
  size_t length = strlen(path);
  char *beside = apps_alloc(length + sizeof ".json");
  if (!beside) return NULL;
  memcpy(beside, path, length);
  memcpy(beside + length, ".json", sizeof ".json");
  return beside;
}

static pawl_status read_npy(const char *path, const char *bytes, size_t size, struct pawl_linear_model *model,
                            char *why, char *error) {
  char *beside = about_path(path), *about = NULL;
  size_t about_size = 0;
  if (!beside) return apps_say(error, PAWL_NO_MEMORY, "%s: out of memory", path);
  pawl_status status = apps_file_read(beside, &about, &about_size, error);
  if (status == PAWL_NOT_FOUND)
    apps_say(error, status, "%s: the file that belongs to it, %s, is missing", path, beside);
  if (status == PAWL_OK) {
    status = linear_npy_decode(bytes, size, about, about_size, model, why);
    if (status) apps_say(error, status, "%s: %s", path, why);
  }
  apps_free(about);
  apps_free(beside);
  return status;
}

static pawl_status decode(const char *path, const char *bytes, size_t size, struct pawl_linear_model *model,
                          char *error) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status;
  if (linear_npy_is(bytes, size)) return read_npy(path, bytes, size, model, why, error);
  if (size == 0)
    status = apps_say(why, PAWL_TRUNCATED, "the file is empty");
  else if (linear_pawl_is(bytes, size))
    status = linear_pawl_decode(bytes, size, model, why);
  else if (linear_liblinear_is(bytes, size))
    status = linear_liblinear_decode(bytes, size, model, why);
  else
    status = apps_say(why, PAWL_CORRUPT, "not a model: neither in pawl's format, nor LIBLINEAR's, nor .npy");
  if (status == PAWL_NO_MEMORY && !why[0]) apps_say(why, status, "out of memory");
  return status ? apps_say(error, status, "%s: %s", path, why) : PAWL_OK;
}

pawl_status linear_model_read(const char *path, struct pawl_linear_model *model_out, char error[PAWL_LINEAR_TEXT]) {
  struct pawl_linear_model model = {0};
  locale_t before, c;
  char *bytes;
  size_t size;
  pawl_status status = apps_file_read(path, &bytes, &size, error);
  if (status) return status;
  c = apps_locale_enter(&before);
  status = decode(path, bytes, size, &model, error);
  apps_locale_leave(c, before);
  apps_free(bytes);
  if (status)
    linear_model_fini(&model);
  else
    *model_out = model;
  return status;
}

pawl_status pawl_linear_model_read(const char *path, struct pawl_linear_model **model_out,
                                   char error[PAWL_LINEAR_TEXT]) {
  struct pawl_linear_model *model = apps_alloc_zero(1, sizeof *model);
  if (!model) return apps_say(error, PAWL_NO_MEMORY, "%s: out of memory", path);
  pawl_status status = linear_model_read(path, model, error);
  if (status)
    pawl_linear_model_destroy(model);
  else
    *model_out = model;
  return status;
}

static pawl_status write_npy(const struct pawl_linear_model *model, const char *path, char *error) {
  char *beside = about_path(path);
  if (!beside) return apps_say(error, PAWL_NO_MEMORY, "%s: out of memory", path);
  /* write the description before the array that it describes */
  pawl_status status = apps_file_write(beside, linear_npy_fill_about, model, error);
  if (status == PAWL_OK) status = apps_file_write(path, linear_npy_fill, model, error);
  apps_free(beside);
  return status;
}

static pawl_status encode(const struct pawl_linear_model *model, const char *path, enum pawl_linear_format format,
                          char *error) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status = PAWL_OK;
  if (format == PAWL_LINEAR_FORMAT_LIBLINEAR) status = linear_liblinear_check(model, why);
  if (format == PAWL_LINEAR_FORMAT_NPY) status = linear_npy_check(model, why);
  if (status) return apps_say(error, status, "%s: %s", path, why);
  switch (format) {
  case PAWL_LINEAR_FORMAT_PAWL:
    return apps_file_write(path, linear_pawl_fill, model, error);
  case PAWL_LINEAR_FORMAT_LIBLINEAR:
    return apps_file_write(path, linear_liblinear_fill, model, error);
  case PAWL_LINEAR_FORMAT_NPY:
    return write_npy(model, path, error);
  }
  return apps_say(error, PAWL_INVALID, "%s: unknown format %d", path, (int)format);
}

pawl_status pawl_linear_model_write(const struct pawl_linear_model *model, const char *path,
                                    enum pawl_linear_format format, char error[PAWL_LINEAR_TEXT]) {
  char why[APPS_TEXT_MAX];
  locale_t before, c;
  if (!linear_model_is_sound(model, why))
    return apps_say(error, PAWL_INVALID, "%s: cannot write an invalid model: %s", path, why);
  c = apps_locale_enter(&before);
  pawl_status status = encode(model, path, format, error);
  apps_locale_leave(c, before);
  return status;
}
