/* Linear models in memory, and which of the formats a file is of: see apps/linear/model/model.h. */
#include "apps/linear/model/model.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/linear/model/inside.h"

void linear_model_fini(struct linear_model *model) {
  for (size_t i = 0; model->names && i < model->count; i++) free(model->names[i]);
  free(model->names);
  free(model->ids);
  free(model->weights);
  memset(model, 0, sizeof *model);
}

const char *linear_scale_name(enum linear_scale scale) {
  static const char *const names[] = {"none", "max", "deviation"};
  return (size_t)scale < sizeof names / sizeof *names ? names[scale] : "";
}

bool linear_scale_parse(const char *name, enum linear_scale *scale_out) {
  for (int i = LINEAR_SCALE_NONE; i <= LINEAR_SCALE_DEVIATION; i++)
    if (strcmp(name, linear_scale_name((enum linear_scale)i)) == 0) {
      *scale_out = (enum linear_scale)i;
      return true;
    }
  return false;
}

const char *linear_loss_name(enum linear_loss loss) {
  const struct linear_loss_descriptor *is = linear_loss_of(loss);
  return is ? is->name : "";
}

const char *linear_format_name(enum linear_format format) {
  switch (format) {
  case LINEAR_FORMAT_PAWL:
    return "pawl";
  case LINEAR_FORMAT_LIBLINEAR:
    return "liblinear";
  case LINEAR_FORMAT_NPY:
    return "npy";
  }
  return "";
}

/* --- weights -------------------------------------------------------------------------------------------------------------- */

static bool grow(struct linear_model *model, size_t *room) {
  size_t wanted = *room ? *room * 2 : 1024;
  if (wanted > SIZE_MAX / 2 / sizeof(double)) return false;
  uint64_t *ids = realloc(model->ids, wanted * sizeof *ids);
  if (ids) model->ids = ids;
  double *weights = ids ? realloc(model->weights, wanted * sizeof *weights) : NULL;
  if (weights) model->weights = weights;
  if (weights) *room = wanted;
  return weights != NULL;
}

pawl_status linear_model_append(struct linear_model *model, size_t *room, uint64_t id, double weight) {
  if (weight == 0) return PAWL_OK;
  if (model->count == *room && !grow(model, room)) return PAWL_NO_MEMORY;
  model->ids[model->count] = id;
  model->weights[model->count++] = weight;
  return PAWL_OK;
}

static bool is_amount(double number) { return isnan(number) || (number >= 0 && isfinite(number)); }

static bool weights_are_sound(const struct linear_model *model, char *why) {
  uint64_t least = model->zero_based ? 0 : 1;
  for (size_t i = 0; i < model->count; i++) {
    if (model->ids[i] < least || model->ids[i] > model->features) {
      apps_say(why, PAWL_CORRUPT, "the ids of the weights are not ascending from %d to %llu", model->zero_based ? 0 : 1,
               (unsigned long long)model->features);
      return false;
    }
    least = model->ids[i] + 1;
    if (isfinite(model->weights[i])) continue;
    apps_say(why, PAWL_CORRUPT, "the weight of feature %llu is not a finite number", (unsigned long long)model->ids[i]);
    return false;
  }
  return true;
}

bool linear_model_is_sound(const struct linear_model *model, char *why) {
  const char *what = NULL;
  const double *labels = model->labels, *class_weights = model->class_weights;
  if (!linear_loss_of(model->loss))
    what = "unknown loss";
  else if (!model->is_regression && !(isfinite(labels[0]) && isfinite(labels[1]) && labels[0] != labels[1]))
    what = "the labels are not two different numbers";
  else if (!is_amount(model->l1) || !is_amount(model->l2))
    what = "a penalty is negative or not a number";
  else if (!(class_weights[0] >= 0 && class_weights[1] >= 0 && isfinite(class_weights[0] + class_weights[1])))
    what = "a class weight is negative or not a number";
  else if (model->has_bias && !isfinite(model->bias))
    what = "the bias is not a finite number";
  else if (model->features > PAWL_ID_MAX || model->count > linear_model_width(model))
    what = "the model has more weights than features, or too many features";
  if (!what) return weights_are_sound(model, why);
  apps_say(why, PAWL_CORRUPT, "%s", what);
  return false;
}

/* --- reading and writing -------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), more = strlen(end);
  return length > more && strcmp(text + length - more, end) == 0;
}

enum linear_format linear_format_of(const char *path) {
  if (ends_with(path, ".npy")) return LINEAR_FORMAT_NPY;
  return ends_with(path, ".liblinear") || ends_with(path, ".txt") ? LINEAR_FORMAT_LIBLINEAR : LINEAR_FORMAT_PAWL;
}

/* w.npy is explained by w.npy.json. For the caller to free. */
static char *about_path(const char *path) {
  size_t length = strlen(path);
  char *beside = malloc(length + sizeof ".json");
  if (!beside) return NULL;
  memcpy(beside, path, length);
  memcpy(beside + length, ".json", sizeof ".json");
  return beside;
}

static pawl_status read_npy(const char *path, const char *bytes, size_t size, struct linear_model *model, char *why,
                            char *error) {
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
  free(about);
  free(beside);
  return status;
}

static pawl_status decode(const char *path, const char *bytes, size_t size, struct linear_model *model, char *error) {
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

/* Numbers in text have points, whatever the language of the program around us. */
static locale_t enter_c(locale_t *before_out) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *before_out = c ? uselocale(c) : (locale_t)0;
  return c;
}

static void leave_c(locale_t c, locale_t before) {
  if (!c) return;
  uselocale(before);
  freelocale(c);
}

pawl_status linear_model_read(const char *path, struct linear_model *model_out, char error[APPS_TEXT_MAX]) {
  struct linear_model model = {0};
  locale_t before, c;
  char *bytes;
  size_t size;
  pawl_status status = apps_file_read(path, &bytes, &size, error);
  if (status) return status;
  c = enter_c(&before);
  status = decode(path, bytes, size, &model, error);
  leave_c(c, before);
  free(bytes);
  if (status)
    linear_model_fini(&model);
  else
    *model_out = model;
  return status;
}

static pawl_status write_npy(const struct linear_model *model, const char *path, char *error) {
  char *beside = about_path(path);
  if (!beside) return apps_say(error, PAWL_NO_MEMORY, "%s: out of memory", path);
  /* What explains an array is there before it. */
  pawl_status status = apps_file_write(beside, linear_npy_fill_about, model, error);
  if (status == PAWL_OK) status = apps_file_write(path, linear_npy_fill, model, error);
  free(beside);
  return status;
}

static pawl_status encode(const struct linear_model *model, const char *path, enum linear_format format, char *error) {
  char why[APPS_TEXT_MAX] = "";
  pawl_status status = PAWL_OK;
  if (format == LINEAR_FORMAT_LIBLINEAR) status = linear_liblinear_check(model, why);
  if (format == LINEAR_FORMAT_NPY) status = linear_npy_check(model, why);
  if (status) return apps_say(error, status, "%s: %s", path, why);
  switch (format) {
  case LINEAR_FORMAT_PAWL:
    return apps_file_write(path, linear_pawl_fill, model, error);
  case LINEAR_FORMAT_LIBLINEAR:
    return apps_file_write(path, linear_liblinear_fill, model, error);
  case LINEAR_FORMAT_NPY:
    return write_npy(model, path, error);
  }
  return apps_say(error, PAWL_INVALID, "%s: unknown format %d", path, (int)format);
}

pawl_status linear_model_write(const struct linear_model *model, const char *path, enum linear_format format,
                               char error[APPS_TEXT_MAX]) {
  char why[APPS_TEXT_MAX];
  locale_t before, c;
  if (!linear_model_is_sound(model, why))
    return apps_say(error, PAWL_INVALID, "%s: cannot write an invalid model: %s", path, why);
  c = enter_c(&before);
  pawl_status status = encode(model, path, format, error);
  leave_c(c, before);
  return status;
}
