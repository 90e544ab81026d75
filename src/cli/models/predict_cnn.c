#include "cli/models/predict_cnn.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pawl/cnn.h>
#include <pawl/session.h>

#include "base/memory.h"
#include "cli/spool.h"

struct predicted_images {
  struct pawl_cnn_model *model;
  struct pawl_cnn_about about;
  struct pawl_images *images;
  bool has_labels;
  uint8_t *classes;     /* one for each image */
  float *probabilities; /* about.classes for each image; NULL: not wanted */
  struct pawl_cnn_score score;
};

/* --- predictions -------------------------------------------------------------------------------------------------- */

static bool write_lines(const struct predicted_images *is, FILE *file) {
  for (uint64_t i = 0; i < is->score.images; i++) {
    fprintf(file, "%u", is->classes[i]);
    for (uint32_t k = 0; is->probabilities && k < is->about.classes; k++)
      fprintf(file, " %.6g", (double)is->probabilities[i * is->about.classes + k]);
    if (fputc('\n', file) == EOF) return false;
  }
  return fflush(file) == 0 && !ferror(file);
}

static int write_output(const struct pwi_predict_cnn *predict, const struct predicted_images *is) {
  bool is_stdout = predict->output && strcmp(predict->output, "-") == 0;
  if (!predict->output) return PWI_EXIT_OK;
  FILE *file = is_stdout ? stdout : fopen(predict->output, "we");
  errno = file ? 0 : errno;
  bool is_fine = file && write_lines(is, file);
  int number = errno;
  if (file && !is_stdout && fclose(file) != 0) is_fine = false;
  if (is_fine) return PWI_EXIT_OK;
  if (is_stdout && number == EPIPE) return PWI_EXIT_FAILURE; /* the reader has had enough */
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(number ? number : EIO));
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int print_figures(const struct pwi_predict_cnn *predict, const struct predicted_images *is) {
  const struct pawl_cnn_score *score = &is->score;
  double error = is->has_labels ? (double)score->wrong / (double)score->images : (double)NAN;
  FILE *file = predict->output && strcmp(predict->output, "-") == 0 ? stderr : stdout;
  if (predict->json) {
    json_t *object = json_pack("{s:I, s:o, s:o, s:o, s:o}", "images", (json_int_t)score->images, "wrong",
                               is->has_labels ? json_integer((json_int_t)score->wrong) : json_null(), "error",
                               real(error), "accuracy", real(1 - error), "loss", real(score->loss));
    bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
    json_decref(object);
    fputc('\n', file);
    return is_fine ? PWI_EXIT_OK : pwi_cli_failure(predict->command, "cannot print the figures");
  }
  fprintf(file, "%-10s %" PRIu64 "\n", "images", score->images);
  if (!is->has_labels) return PWI_EXIT_OK;
  fprintf(file, "%-10s %.3f %%\n", "accuracy", 100 * (1 - error));
  fprintf(file, "%-10s %.3f %%: %" PRIu64 " images are wrong\n", "error", 100 * error, score->wrong);
  fprintf(file, "%-10s %.6g\n", "loss", score->loss);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int read_both(const struct pwi_predict_cnn *predict, const struct pwi_spool *spool,
                     struct predicted_images *is) {
  char error[PAWL_CNN_TEXT];
  struct pawl_images_options reading;
  if (pawl_cnn_model_read(predict->model, &is->model, error)) return pwi_cli_failure(predict->command, "%s", error);
  pawl_cnn_model_about(is->model, &is->about);
  pawl_images_options_init(&reading);
  reading.format = predict->format;
  reading.labels_optional = true;
  if (pawl_images_read(spool->paths, predict->count, &reading, &is->images))
    return pwi_cli_failure(predict->command, "%s", pawl_error_text());
  is->has_labels = pawl_images_labels(is->images) != NULL;
  return PWI_EXIT_OK;
}

static int predict_all(const struct pwi_predict_cnn *predict, struct predicted_images *is) {
  char error[PAWL_CNN_TEXT];
  struct pawl_images_info info;
  pawl_images_info(is->images, &info);
  is->classes = pwi_alloc_zero((size_t)info.count, 1);
  if (predict->probabilities)
    is->probabilities = pwi_resize_array(NULL, (size_t)info.count, is->about.classes * sizeof *is->probabilities);
  if (!is->classes || (predict->probabilities && !is->probabilities))
    return pwi_cli_failure(predict->command, "out of memory");
  if (pawl_cnn_predict(is->model, is->images, is->classes, is->probabilities, &is->score, error))
    return pwi_cli_failure(predict->command, "%s: %s", predict->model, error);
  if (!is->has_labels && !predict->output)
    fprintf(stderr, "pawl predict: the images have no labels, so the model cannot be evaluated; name their file of "
                    "labels, too, or write predictions with -o FILE\n");
  return PWI_EXIT_OK;
}

int pwi_predict_cnn(const struct pwi_predict_cnn *predict) {
  struct predicted_images is = {.model = NULL};
  struct pwi_spool spool = {0};
  int exit_code;
  if (!pwi_spool_init(&spool, predict->command, predict->paths, predict->count, false, &exit_code)) return exit_code;
  exit_code = read_both(predict, &spool, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = predict_all(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = write_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = print_figures(predict, &is);
  pwi_free(is.classes);
  pwi_free(is.probabilities);
  pawl_images_destroy(is.images);
  pawl_cnn_model_destroy(is.model);
  pwi_spool_fini(&spool);
  return exit_code;
}
