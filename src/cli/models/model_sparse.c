#include "cli/models/model_sparse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/sparse_coding.h>

#include "base/json.h"
#include "base/memory.h"

#define FEATURES_SHOWN 5 /* of an atom */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

struct sparse_shown {
  struct pawl_sparse_model *model;
  struct pawl_sparse_about about;
  uint32_t top;   /* at most the number of atoms */
  uint32_t *most; /* numbers of the atoms, the most used first */
};

/* --- atoms -------------------------------------------------------------------------------------------------------- */

static int by_use(const void *a, const void *b, void *uses_of) {
  const uint64_t *uses = uses_of;
  uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
  if (uses[one] != uses[other]) return uses[one] < uses[other] ? 1 : -1;
  return one < other ? -1 : one > other;
}

static bool sort_atoms(struct sparse_shown *is) {
  is->most = pwi_alloc_zero(is->about.atoms, sizeof *is->most);
  for (uint32_t i = 0; is->most && i < is->about.atoms; i++) is->most[i] = i;
  if (is->most)
    qsort_r(is->most, is->about.atoms, sizeof *is->most, by_use, (void *)(uintptr_t)pawl_sparse_model_uses(is->model));
  return is->most != NULL;
}

static uint32_t count_unused(const struct sparse_shown *is) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < is->about.atoms; i++) count += pawl_sparse_model_uses(is->model)[i] == 0;
  return count;
}

/* The features with the largest numbers. Returns how many there are. */
static size_t find_largest(const struct sparse_shown *is, uint32_t atom, uint64_t found[FEATURES_SHOWN]) {
  const double *at = pawl_sparse_model_atoms(is->model) + atom * is->about.features;
  size_t count = 0;
  for (uint64_t d = 0; d < is->about.features; d++) {
    size_t place = count;
    while (place > 0 && fabs(at[d]) > fabs(at[found[place - 1]])) place--;
    if (at[d] == 0 || place == FEATURES_SHOWN) continue;
    count += count < FEATURES_SHOWN;
    for (size_t i = count - 1; i > place; i--) found[i] = found[i - 1];
    found[place] = d;
  }
  return count;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static json_t *atom_json(const struct sparse_shown *is, uint32_t atom) {
  const double *at = pawl_sparse_model_atoms(is->model) + atom * is->about.features;
  uint64_t found[FEATURES_SHOWN];
  size_t count = find_largest(is, atom, found);
  json_t *largest = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(largest, json_pack("{s:I, s:o}", "id", (json_int_t)pawl_sparse_model_ids(is->model)[found[i]],
                                             "value", real(at[found[i]])));
  return json_pack("{s:I, s:I, s:o}", "atom", (json_int_t)atom + 1, "uses",
                   (json_int_t)pawl_sparse_model_uses(is->model)[atom], "largest", largest);
}

static json_t *model_json(const struct sparse_shown *is) {
  const struct pawl_sparse_about *about = &is->about;
  json_t *atoms = json_array();
  for (uint32_t i = 0; i < is->top; i++) json_array_append_new(atoms, atom_json(is, is->most[i]));
  return json_pack(
      "{s:s, s:I, s:I, s:o, s:b, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:I, s:I, s:o}",
      "kind", "sparse-coding", "atoms", (json_int_t)about->atoms, "features", (json_int_t)about->features, "lambda",
      real(about->lambda), "centered", (int)about->centered, "unit_rows", (int)about->unit_rows, "rows",
      (json_int_t)about->rows, "epochs", (json_int_t)about->epochs, "seed", json_sprintf("%" PRIu64, about->seed),
      "objective", real(about->objective), "gap", real(about->gap), "error", real(about->error), "nonzeros",
      real(about->nonzeros), "channels", (json_int_t)about->shape.channels, "height", (json_int_t)about->shape.height,
      "width", (json_int_t)about->shape.width, "patch", (json_int_t)about->shape.patch, "binary", (int)about->binary,
      "hash_bits", (json_int_t)about->hash_bits, "unused", (json_int_t)count_unused(is), "top", atoms);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Prints `text`, if it is so, behind `before`. Returns the text that stands before the next one. */
static const char *print_change(const char *before, bool is_so, const char *text) {
  if (!is_so) return before;
  printf("%s %s", before, text);
  return ";";
}

static void print_rows(const struct pawl_sparse_about *about) {
  const struct pawl_sparse_shape *shape = &about->shape;
  if (shape->channels)
    printf("%-12s %s of %" PRIu32 " x %" PRIu32 " pixels with %" PRIu32 " channel%s\n", "rows",
           shape->patch ? "patches" : "images", shape->height, shape->width, shape->channels,
           shape->channels == 1 ? "" : "s");
  if (about->hash_bits) printf("%-12s hashed to %" PRIu32 " bits\n", "names", about->hash_bits);
  const char *before = print_change("changed     ", about->binary, "every value set to 1");
  before = print_change(before, about->centered, "the mean of each row subtracted");
  before = print_change(before, about->unit_rows, "scaled to length 1");
  if (*before == ';') putchar('\n');
}

static void print_atom(const struct sparse_shown *is, uint32_t atom) {
  const double *at = pawl_sparse_model_atoms(is->model) + atom * is->about.features;
  uint64_t found[FEATURES_SHOWN], uses = pawl_sparse_model_uses(is->model)[atom];
  size_t count = is->about.shape.channels ? 0 : find_largest(is, atom, found);
  printf("%10" PRIu32 "  %10" PRIu64 "  %6.2f %%", atom + 1, uses,
         is->about.rows ? 100 * (double)uses / (double)is->about.rows : 0);
  for (size_t i = 0; i < count; i++)
    printf(" %" PRIu64 ":%.4g", pawl_sparse_model_ids(is->model)[found[i]], at[found[i]]);
  putchar('\n');
}

static void print_model(const struct sparse_shown *is) {
  const struct pawl_sparse_about *about = &is->about;
  printf("%-12s dictionary for sparse coding\n", "model");
  printf("%-12s %" PRIu32 " of %" PRIu64 " %s, %" PRIu32 " of them unused\n", "atoms", about->atoms, about->features,
         about->shape.channels ? "pixels" : "features", count_unused(is));
  printf("%-12s %.9g\n", "lambda", about->lambda);
  print_rows(about);
  printf("%-12s %" PRIu64 " epochs on %" PRIu64 " rows, seed %" PRIu64 "\n", "trained", about->epochs, about->rows,
         about->seed);
  if (!isnan(about->objective)) printf("%-12s %.10g, gap %.2g %%\n", "objective", about->objective, 100 * about->gap);
  if (!isnan(about->error)) printf("%-12s %.3f %% of the squares\n", "error", 100 * about->error);
  if (!isnan(about->nonzeros)) printf("%-12s %.2f non-zeros in a row\n", "codes", about->nonzeros);
  if (is->top > 0)
    printf("\n%10s  %10s  %8s%s\n", "atom", "rows", "share", about->shape.channels ? "" : "  largest features");
  for (uint32_t i = 0; i < is->top; i++) print_atom(is, is->most[i]);
}

int pwi_model_sparse_show(const struct pwi_command *command, const char *path, uint64_t top, bool json) {
  struct sparse_shown is = {.model = NULL};
  char error[PAWL_SPARSE_TEXT];
  int exit_code = PWI_EXIT_OK;
  if (pawl_sparse_model_read(path, &is.model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_sparse_model_about(is.model, &is.about);
  is.top = top < is.about.atoms ? (uint32_t)top : is.about.atoms;
  if (!sort_atoms(&is))
    exit_code = pwi_cli_failure(command, "out of memory");
  else if (json)
    exit_code = pwi_cli_print_json(command, model_json(&is));
  else
    print_model(&is);
  pwi_free(is.most);
  pawl_sparse_model_destroy(is.model);
  return exit_code;
}

/* --- export ------------------------------------------------------------------------------------------------------- */

int pwi_model_sparse_export(const struct pwi_command *command, const char *path, const char *output, bool json) {
  struct pawl_sparse_model *model;
  struct pawl_sparse_about about;
  char error[PAWL_SPARSE_TEXT] = "";
  if (pawl_sparse_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_sparse_model_about(model, &about);
  pawl_status status = pawl_sparse_model_picture(model, output, error);
  pawl_sparse_model_destroy(model);
  if (status) return pwi_cli_failure(command, "%s", error);
  const char *format = about.shape.channels == 1 ? "pgm" : "ppm";
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:o, s:s, s:I}", "file", pwi_json_string(output), "format", format,
                                                 "atoms", (json_int_t)about.atoms));
  printf("wrote %s (%s)\n", output, format);
  return PWI_EXIT_OK;
}
