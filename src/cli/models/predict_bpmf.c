#include "cli/models/predict_bpmf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <pawl/bpmf.h>
#include <pawl/session.h>

#include "cli/spool.h"

struct predicted_ratings {
  struct pawl_bpmf_model *model;
  struct pawl_ratings *ratings;
  struct pawl_ratings_info info;
  uint64_t unknown; /* pairs whose user or item the model does not know */
  uint64_t rated;   /* predicted pairs with a rating */
  double squares;   /* sum of their squared errors */
  uint64_t first_unknown;
};

/* --- predictions -------------------------------------------------------------------------------------------------- */

/* NAN for a user or an item that the model does not know. */
static struct pawl_bpmf_prediction predict_one(struct predicted_ratings *is, uint64_t n) {
  struct pawl_rating rating = pawl_ratings_list(is->ratings)[n];
  struct pawl_bpmf_prediction prediction = {(double)NAN, (double)NAN};
  uint32_t user, item;
  if (pawl_bpmf_model_find_user(is->model, pawl_ratings_user(is->ratings, rating.user), &user) ||
      pawl_bpmf_model_find_item(is->model, pawl_ratings_item(is->ratings, rating.item), &item)) {
    if (is->unknown++ == 0) is->first_unknown = n;
    return prediction;
  }
  pawl_bpmf_predict(is->model, user, item, &prediction);
  if (isnan(rating.value)) return prediction;
  double off = (double)rating.value - prediction.mean;
  is->squares += off * off;
  is->rated++;
  return prediction;
}

/* `file` may be NULL. */
static bool predict_all(struct predicted_ratings *is, FILE *file) {
  for (uint64_t i = 0; i < is->info.count; i++) {
    struct pawl_bpmf_prediction prediction = predict_one(is, i);
    if (file && fprintf(file, "%.6g %.6g\n", prediction.mean, prediction.deviation) < 0) return false;
  }
  return !file || (fflush(file) == 0 && !ferror(file));
}

static int write_output(const struct pwi_predict_bpmf *predict, struct predicted_ratings *is) {
  bool is_stdout = predict->output && strcmp(predict->output, "-") == 0;
  FILE *file = is_stdout ? stdout : predict->output ? fopen(predict->output, "we") : NULL;
  bool is_fine = (file || !predict->output) && predict_all(is, file);
  int number = errno;
  if (file && !is_stdout && fclose(file) != 0) is_fine = false;
  if (is_fine) return PWI_EXIT_OK;
  if (is_stdout && number == EPIPE) return PWI_EXIT_FAILURE; /* the reader has had enough */
  return pwi_cli_failure(predict->command, "cannot write %s: %s", predict->output, strerror(number ? number : EIO));
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static void warn(const struct pwi_predict_bpmf *predict, const struct predicted_ratings *is) {
  uint64_t line;
  if (is->info.skipped > 0)
    fprintf(stderr, "pawl predict: skipped %" PRIu64 " bad lines, the first: %s\n", is->info.skipped,
            pawl_ratings_first_bad(is->ratings));
  if (is->unknown > 0) {
    const char *path = pawl_ratings_place(is->ratings, is->first_unknown, &line);
    fprintf(stderr,
            "pawl predict: %" PRIu64 " of %" PRIu64
            " pairs name a user or an item that the model does not know, the first at %s:%" PRIu64
            "; their predictions are nan\n",
            is->unknown, is->info.count, path, line);
  }
  if (is->rated == 0 && !predict->output)
    fprintf(stderr, "pawl predict: no known pair has a rating, so the model cannot be evaluated; write its predictions "
                    "with -o FILE\n");
}

static int print_figures(const struct pwi_predict_bpmf *predict, const struct predicted_ratings *is) {
  double rmse = is->rated ? sqrt(is->squares / (double)is->rated) : (double)NAN;
  FILE *file = predict->output && strcmp(predict->output, "-") == 0 ? stderr : stdout;
  warn(predict, is);
  if (predict->json) {
    json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:o}", "pairs", (json_int_t)is->info.count, "unknown",
                               (json_int_t)is->unknown, "skipped", (json_int_t)is->info.skipped, "rated",
                               (json_int_t)is->rated, "rmse", isnan(rmse) ? json_null() : json_real(rmse));
    bool is_fine = object && json_dumpf(object, file, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
    json_decref(object);
    fputc('\n', file);
    return is_fine ? PWI_EXIT_OK : pwi_cli_failure(predict->command, "cannot print the figures");
  }
  fprintf(file, "%-10s %" PRIu64 "\n", "pairs", is->info.count);
  if (is->unknown > 0) fprintf(file, "%-10s %" PRIu64 "\n", "unknown", is->unknown);
  if (is->rated > 0) fprintf(file, "%-10s %.5f on %" PRIu64 " ratings\n", "RMSE", rmse, is->rated);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int read_both(const struct pwi_predict_bpmf *predict, const struct pwi_spool *spool,
                     struct predicted_ratings *is) {
  char error[PAWL_BPMF_TEXT];
  struct pawl_ratings_options reading;
  if (pawl_bpmf_model_read(predict->model, &is->model, error)) return pwi_cli_failure(predict->command, "%s", error);
  pawl_ratings_options_init(&reading);
  reading.format = predict->format;
  reading.duplicates = PAWL_RATINGS_ALL;
  reading.skip_bad = predict->skip_bad;
  reading.values_optional = true;
  if (pawl_ratings_read(spool->paths, predict->count, &reading, &is->ratings))
    return pwi_cli_failure(predict->command, "%s", pawl_error_text());
  pawl_ratings_info(is->ratings, &is->info);
  return PWI_EXIT_OK;
}

int pwi_predict_bpmf(const struct pwi_predict_bpmf *predict) {
  struct predicted_ratings is = {.model = NULL};
  struct pwi_spool spool = {0};
  int exit_code;
  if (!pwi_spool_init(&spool, predict->command, predict->paths, predict->count, false, &exit_code)) return exit_code;
  exit_code = read_both(predict, &spool, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = write_output(predict, &is);
  if (exit_code == PWI_EXIT_OK) exit_code = print_figures(predict, &is);
  pawl_ratings_destroy(is.ratings);
  pawl_bpmf_model_destroy(is.model);
  pwi_spool_fini(&spool);
  return exit_code;
}
