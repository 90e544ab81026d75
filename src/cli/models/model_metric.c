#include "cli/models/model_metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <pawl/metric.h>

#include "base/json.h"
#include "base/memory.h"

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* The number of rows of each class. NULL: out of memory. */
static uint64_t *count_rows(const struct pawl_metric_model *model, const struct pawl_metric_about *about) {
  const uint32_t *classes = pawl_metric_model_classes(model);
  uint64_t *counts = pwi_alloc_zero(about->classes, sizeof *counts);
  for (uint64_t i = 0; counts && i < about->rows; i++) counts[classes[i]]++;
  return counts;
}

static json_t *model_json(const struct pawl_metric_model *model, const struct pawl_metric_about *about,
                          const uint64_t *counts) {
  json_t *classes = json_array();
  for (uint32_t i = 0; i < about->classes; i++)
    json_array_append_new(classes, json_pack("{s:o, s:I}", "label", pwi_json_string(pawl_metric_model_label(model, i)),
                                             "rows", (json_int_t)counts[i]));
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:o}", "kind",
                   "metric", "rank", (json_int_t)about->rank, "features", (json_int_t)about->features, "rows",
                   (json_int_t)about->rows, "k", (json_int_t)about->k, "held_out", (json_int_t)about->held, "epochs",
                   (json_int_t)about->epochs, "seed", json_sprintf("%" PRIu64, about->seed), "objective",
                   real(about->objective), "error", real(about->error), "euclidean_error", real(about->euclid_error),
                   "pca_error", real(about->pca_error), "images", (int)about->is_images, "binary", (int)about->binary,
                   "unit_rows", (int)about->unit_rows, "hash_bits", (json_int_t)about->hash_bits, "classes", classes);
}

static void print_model(const struct pawl_metric_model *model, const struct pawl_metric_about *about,
                        const uint64_t *counts) {
  printf("%-12s metric for nearest neighbours\n", "model");
  printf("%-12s %" PRIu32 " of %" PRIu64 " %s\n", "rank", about->rank, about->features,
         about->is_images ? "pixels" : "features");
  if (about->hash_bits) printf("%-12s hashed to %" PRIu32 " bits\n", "names", about->hash_bits);
  if (about->binary || about->unit_rows)
    printf("%-12s %s%s%s\n", "values", about->binary ? "every value set to 1" : "",
           about->binary && about->unit_rows ? ", then " : "", about->unit_rows ? "rows scaled to length 1" : "");
  printf("%-12s %" PRIu64 " epochs, seed %" PRIu64 "; objective %.6g\n", "trained", about->epochs, about->seed,
         about->objective);
  printf("%-12s %.2f %% of %" PRIu64 " held-out rows, k = %" PRIu32 "; %.2f %% by Euclidean distance, %.2f %% by PCA\n",
         "error", 100 * about->error, about->held, about->k, 100 * about->euclid_error, 100 * about->pca_error);
  printf("%-12s %" PRIu64 ", of %" PRIu32 " classes\n\n%12s  %10s\n", "rows", about->rows, about->classes, "label",
         "rows");
  for (uint32_t i = 0; i < about->classes; i++)
    printf("%12.24s  %10" PRIu64 "\n", pawl_metric_model_label(model, i), counts[i]);
}

int pwi_model_metric_show(const struct pwi_command *command, const char *path, bool json) {
  struct pawl_metric_model *model;
  struct pawl_metric_about about;
  char error[PAWL_METRIC_TEXT] = "";
  int exit_code = PWI_EXIT_OK;
  if (pawl_metric_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_metric_model_about(model, &about);
  uint64_t *counts = count_rows(model, &about);
  if (!counts)
    exit_code = pwi_cli_failure(command, "out of memory");
  else if (json)
    exit_code = pwi_cli_print_json(command, model_json(model, &about, counts));
  else
    print_model(model, &about, counts);
  pwi_free(counts);
  pawl_metric_model_destroy(model);
  return exit_code;
}

int pwi_model_metric_export(const struct pwi_command *command, const char *path, const char *output, bool json) {
  struct pawl_metric_model *model;
  struct pawl_metric_about about;
  char error[PAWL_METRIC_TEXT] = "";
  if (pawl_metric_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  pawl_metric_model_about(model, &about);
  pawl_status status = pawl_metric_model_export(model, output, error);
  pawl_metric_model_destroy(model);
  if (status) return pwi_cli_failure(command, "%s", error);
  if (json)
    return pwi_cli_print_json(command,
                              json_pack("{s:o, s:s, s:I, s:I}", "file", pwi_json_string(output), "format", "text",
                                        "rank", (json_int_t)about.rank, "features", (json_int_t)about.features));
  printf("wrote %s (text)\n", output);
  return PWI_EXIT_OK;
}
