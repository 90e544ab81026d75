/* Files of models. Behind the header (apps/common/model_arrays.h) are
 *
 *   ids      u64: of the features, ascending
 *   atoms    float64: those of each atom for all features
 *   uses     u64: for each atom the number of training rows that use it
 */
#include <math.h>

#include <pawl/version.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/model_arrays.h"
#include "apps/common/model_code.h"
#include "apps/common/model_file.h"
#include "apps/sparse_coding/model.h"

#define KIND "sparse-coding"
#define ATOMS_MAX (1u << 24)
#define LONGEST 1.000001 /* the length of an atom, with its rounding */

/* --- writing ---------------------------------------------------------------------------------------------- */

static json_t *make_header(const struct pawl_sparse_model *model) {
  const struct pawl_sparse_about *about = &model->about;
  return json_pack(
      "{s:s, s:I, s:I, s:o, s:b, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:I, "
      "s:I, s:I, s:o}",
      "kind", KIND, "atoms", (json_int_t)about->atoms, "features", (json_int_t)about->features, "lambda",
      apps_json_number(about->lambda), "centered", (int)about->centered, "unit_rows", (int)about->unit_rows, "rows",
      (json_int_t)about->rows, "epochs", (json_int_t)about->epochs, "seed", apps_json_wide(about->seed), "objective",
      apps_json_number(about->objective), "gap", apps_json_number(about->gap), "error", apps_json_number(about->error),
      "nonzeros", apps_json_number(about->nonzeros), "channels", (json_int_t)about->shape.channels, "height",
      (json_int_t)about->shape.height, "width", (json_int_t)about->shape.width, "patch", (json_int_t)about->shape.patch,
      "binary", (int)about->binary, "hash_bits", (json_int_t)about->hash_bits, "columns", (json_int_t)about->columns,
      "label_column", (json_int_t)about->label_column, "written_by", json_sprintf("pawl %s", pawl_version()));
}

pawl_status sparse_model_fill(FILE *file, const void *context) {
  const struct pawl_sparse_model *model = context;
  const struct apps_array arrays[] = {
      {model->ids, (size_t)model->about.features, 8},
      {model->atoms, sparse_model_size(model), 8},
      {model->uses, model->about.atoms, 8},
  };
  return apps_arrays_write(file, make_header(model), arrays, sizeof arrays / sizeof *arrays);
}

pawl_status pawl_sparse_model_write(const struct pawl_sparse_model *model, const char *path,
                                    char error[PAWL_SPARSE_TEXT]) {
  return apps_model_write(path, sparse_model_fill, model, error);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static const char *read_shape(const json_t *json, struct pawl_sparse_about *about) {
  struct pawl_sparse_shape *shape = &about->shape;
  if (!apps_model_count32(json, "channels", UINT16_MAX, &shape->channels)) return "channels";
  if (!apps_model_count32(json, "height", UINT16_MAX, &shape->height)) return "height";
  if (!apps_model_count32(json, "width", UINT16_MAX, &shape->width)) return "width";
  if (!apps_model_count32(json, "patch", UINT16_MAX, &shape->patch)) return "patch";
  if (shape->patch && (shape->height != shape->patch || shape->width != shape->patch)) return "patch";
  uint64_t pixels = (uint64_t)shape->channels * shape->height * shape->width;
  return pixels != about->features && (shape->channels || shape->height || shape->width) ? "features" : NULL;
}

static const char *read_training(const json_t *json, struct pawl_sparse_about *about) {
  if (!apps_model_count(json, "rows", 0, INT64_MAX, &about->rows)) return "rows";
  if (!apps_model_count(json, "epochs", 0, INT64_MAX, &about->epochs)) return "epochs";
  if (!apps_json_wide_of(json_object_get(json, "seed"), &about->seed)) return "seed";
  if (!apps_json_take_number(json, "objective", true, &about->objective)) return "objective";
  if (!apps_json_take_number(json, "gap", true, &about->gap)) return "gap";
  if (!apps_json_take_number(json, "error", true, &about->error)) return "error";
  if (!apps_json_take_number(json, "nonzeros", true, &about->nonzeros)) return "nonzeros";
  return NULL;
}

static const char *read_about(const json_t *json, struct pawl_sparse_about *about) {
  if (!apps_model_count32(json, "atoms", ATOMS_MAX, &about->atoms) || about->atoms < 1) return "atoms";
  if (!apps_model_count(json, "features", 1, UINT32_MAX - 2, &about->features)) return "features";
  if (!apps_json_take_number(json, "lambda", false, &about->lambda) || !(about->lambda > 0)) return "lambda";
  if (!apps_json_take_flag(json, "centered", &about->centered)) return "centered";
  if (!apps_json_take_flag(json, "unit_rows", &about->unit_rows)) return "unit_rows";
  if (!apps_json_take_flag(json, "binary", &about->binary)) return "binary";
  if (!apps_model_count32(json, "hash_bits", 62, &about->hash_bits)) return "hash_bits";
  if (!apps_model_count(json, "columns", 0, INT64_MAX, &about->columns)) return "columns";
  if (!apps_model_count(json, "label_column", 0, about->columns, &about->label_column)) return "label_column";
  const char *wrong = read_training(json, about);
  return wrong ? wrong : read_shape(json, about);
}

static pawl_status read_ids(struct apps_arrays *arrays, struct pawl_sparse_model *model, char *why) {
  pawl_status status;
  model->ids = apps_arrays_next(arrays, model->about.features, 8, &status);
  if (!model->ids) return apps_arrays_lack(why, status, "ids of features");
  if (!apps_are_rising(model->ids, model->about.features))
    return apps_say(why, PAWL_CORRUPT, "the ids of features do not rise");
  return PAWL_OK;
}

static pawl_status read_atoms(struct apps_arrays *arrays, struct pawl_sparse_model *model, char *why) {
  const struct pawl_sparse_about *about = &model->about;
  pawl_status status;
  model->atoms = apps_arrays_next(arrays, about->features * about->atoms, 8, &status); /* below 2^56 */
  if (!model->atoms) return apps_arrays_lack(why, status, "atoms");
  for (size_t j = 0; j < about->atoms; j++) {
    double square = 0;
    for (size_t d = 0; d < about->features; d++)
      square += model->atoms[j * about->features + d] * model->atoms[j * about->features + d];
    if (!(square <= LONGEST * LONGEST)) /* also NAN */
      return apps_say(why, PAWL_CORRUPT, "atom %zu is longer than 1, or not finite", j + 1);
  }
  model->uses = apps_arrays_next(arrays, about->atoms, 8, &status);
  return model->uses ? PAWL_OK : apps_arrays_lack(why, status, "uses of atoms");
}

static pawl_status read_arrays(struct apps_arrays *arrays, const json_t *header, struct pawl_sparse_model *model,
                               char *why) {
  const char *wrong = read_about(header, &model->about);
  if (wrong) return apps_say(why, PAWL_CORRUPT, "invalid value of \"%s\" in the header", wrong);
  pawl_status status = read_ids(arrays, model, why);
  if (!status) status = read_atoms(arrays, model, why);
  if (!status && !apps_arrays_are_over(arrays))
    status = apps_say(why, PAWL_CORRUPT, "unexpected data after the uses of atoms");
  return status;
}

pawl_status sparse_model_decode(const char *bytes, size_t size, struct pawl_sparse_model **model_out, char *why) {
  struct apps_arrays arrays = {.bytes = bytes, .size = size};
  json_t *header = NULL;
  pawl_status status = apps_arrays_open(&arrays, KIND, &header, why);
  if (status) return status;
  struct pawl_sparse_model *model = apps_alloc_zero(1, sizeof *model);
  status = model ? read_arrays(&arrays, header, model, why) : apps_say(why, PAWL_NO_MEMORY, "out of memory");
  json_decref(header);
  if (status)
    pawl_sparse_model_destroy(model);
  else
    *model_out = model;
  return status;
}

static pawl_status decode(const char *bytes, size_t size, void *model_out, char *why) {
  return sparse_model_decode(bytes, size, model_out, why);
}

pawl_status pawl_sparse_model_read(const char *path, struct pawl_sparse_model **model_out,
                                   char error[PAWL_SPARSE_TEXT]) {
  return apps_model_read(path, decode, model_out, error);
}

bool pawl_sparse_model_is(const char *path) { return apps_model_file_is(path, KIND); }
