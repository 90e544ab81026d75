#include "cli/models/model_mlr.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/mlr.h>

#include "base/json.h"
#include "base/memory.h"

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

struct mlr_shown {
  struct pawl_mlr_model *model;
  struct pawl_mlr_about about;
  size_t top;     /* at most the number of features */
  uint64_t *best; /* numbers of features, sorted for one class at a time */
};

/* --- the largest weights ------------------------------------------------------------------------------------------ */

struct mlr_weights {
  const double *at; /* of one class */
  size_t step;
};

static int by_size(const void *a, const void *b, void *context) {
  const struct mlr_weights *weights = context;
  uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
  double left = fabs(weights->at[one * weights->step]), right = fabs(weights->at[other * weights->step]);
  if (left != right) return left < right ? 1 : -1;
  return one < other ? -1 : one > other;
}

static double weight_of(const struct mlr_shown *is, uint64_t feature, uint32_t class_number) {
  return pawl_mlr_model_weights(is->model)[feature * is->about.classes + class_number];
}

static void sort_weights(struct mlr_shown *is, uint32_t class_number) {
  struct mlr_weights weights = {pawl_mlr_model_weights(is->model) + class_number, is->about.classes};
  for (uint64_t i = 0; i < is->about.features; i++) is->best[i] = i;
  qsort_r(is->best, (size_t)is->about.features, sizeof *is->best, by_size, &weights);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static json_t *class_json(struct mlr_shown *is, uint32_t class_number) {
  json_t *top = json_array();
  sort_weights(is, class_number);
  for (size_t i = 0; i < is->top; i++)
    json_array_append_new(top, json_pack("{s:I, s:o}", "id", (json_int_t)pawl_mlr_model_ids(is->model)[is->best[i]],
                                         "weight", real(weight_of(is, is->best[i], class_number))));
  json_t *bias = is->about.has_bias ? real(weight_of(is, is->about.features, class_number)) : json_null();
  return json_pack("{s:o, s:o, s:o}", "label", pwi_json_string(pawl_mlr_model_label(is->model, class_number)), "bias",
                   bias, "top", top);
}

static json_t *model_json(struct mlr_shown *is) {
  const struct pawl_mlr_about *about = &is->about;
  json_t *classes = json_array();
  for (uint32_t i = 0; i < about->classes; i++) json_array_append_new(classes, class_json(is, i));
  return json_pack("{s:s, s:I, s:I, s:b, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:o}", "kind",
                   "multiclass", "classes", (json_int_t)about->classes, "features", (json_int_t)about->features, "bias",
                   (int)about->has_bias, "method", pawl_mlr_method_name(about->method), "l2", real(about->l2), "rows",
                   (json_int_t)about->rows, "epochs", (json_int_t)about->epochs, "seed",
                   json_sprintf("%" PRIu64, about->seed), "objective", real(about->objective), "gap", real(about->gap),
                   "train_error", real(about->train_error), "images", (int)about->is_images, "binary",
                   (int)about->binary, "unit_rows", (int)about->unit_rows, "hash_bits", (json_int_t)about->hash_bits,
                   "labels", classes);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static void print_class(struct mlr_shown *is, uint32_t class_number) {
  printf("%12.24s", pawl_mlr_model_label(is->model, class_number));
  if (is->about.has_bias) printf("  %10.4g", weight_of(is, is->about.features, class_number));
  printf(" ");
  sort_weights(is, class_number);
  for (size_t i = 0; i < is->top; i++)
    printf(" %" PRIu64 ":%.4g", pawl_mlr_model_ids(is->model)[is->best[i]], weight_of(is, is->best[i], class_number));
  putchar('\n');
}

static void print_model(struct mlr_shown *is) {
  const struct pawl_mlr_about *about = &is->about;
  printf("%-12s multiclass logistic regression by %s\n", "model", pawl_mlr_method_name(about->method));
  printf("%-12s %" PRIu32 " classes, %" PRIu64 " %s%s\n", "weights", about->classes, about->features,
         about->is_images ? "pixels" : "features", about->has_bias ? " and a constant" : "");
  printf("%-12s l2 %.9g\n", "penalty", about->l2);
  if (about->hash_bits) printf("%-12s hashed to %" PRIu32 " bits\n", "names", about->hash_bits);
  if (about->binary || about->unit_rows)
    printf("%-12s %s%s%s\n", "rows", about->binary ? "every value set to 1" : "",
           about->binary && about->unit_rows ? ", then " : "", about->unit_rows ? "scaled to length 1" : "");
  printf("%-12s %" PRIu64 " epochs on %" PRIu64 " rows, seed %" PRIu64 "\n", "trained", about->epochs, about->rows,
         about->seed);
  printf("%-12s %.10g at the end of training", "objective", about->objective);
  if (about->gap < 0.5) printf(", at most %.2g %% above the optimum", 100 * about->gap);
  printf("\n%-12s %.3f %%\n", "train error", 100 * about->train_error);
  printf("\n%12s%s  largest weights, as feature:weight\n", "label", about->has_bias ? "    constant" : "");
  for (uint32_t i = 0; i < about->classes; i++) print_class(is, i);
}

int pwi_model_mlr_show(const struct pwi_command *command, const char *path, uint64_t top, bool json) {
  struct mlr_shown is = {.model = NULL};
  char error[PAWL_MLR_TEXT];
  int exit_code = PWI_EXIT_OK;
  if (pawl_mlr_model_read(path, &is.model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_mlr_model_about(is.model, &is.about);
  is.top = (size_t)(top < is.about.features ? top : is.about.features);
  is.best = pwi_alloc_zero((size_t)is.about.features + 1, sizeof *is.best);
  if (!is.best)
    exit_code = pwi_cli_failure(command, "out of memory");
  else if (json)
    exit_code = pwi_cli_print_json(command, model_json(&is));
  else
    print_model(&is);
  pwi_free(is.best);
  pawl_mlr_model_destroy(is.model);
  return exit_code;
}

/* --- export ------------------------------------------------------------------------------------------------------- */

int pwi_model_mlr_export(const struct pwi_command *command, const char *path, const char *output, bool json) {
  struct pawl_mlr_model *model;
  struct pawl_mlr_about about;
  char error[PAWL_MLR_TEXT] = "";
  if (pawl_mlr_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_mlr_model_about(model, &about);
  pawl_status status = pawl_mlr_model_export(model, output, error);
  pawl_mlr_model_destroy(model);
  if (status) return pwi_cli_failure(command, "%s", error);
  if (about.binary || about.unit_rows || about.hash_bits || about.is_images)
    fprintf(stderr,
            "pawl model export: features were %s in training; transform rows likewise to predict with this file\n",
            about.is_images   ? "pixels divided by 255"
            : about.hash_bits ? "hashed"
                              : "transformed");
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:o, s:s, s:I}", "file", pwi_json_string(output), "format",
                                                 "liblinear", "classes", (json_int_t)about.classes));
  printf("wrote %s (liblinear)\n", output);
  return PWI_EXIT_OK;
}
