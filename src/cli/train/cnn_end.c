#include "cli/train/cnn_end.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/train/log.h"

/* --- an epoch ----------------------------------------------------------------------------------------------------- */

void pwi_train_cnn_line(const struct pawl_cnn_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  double share = (double)is->done / (double)is->images;
  text_out[0] = '\0';
  pwi_train_line_add(text_out, "epoch %" PRIu64 "/%" PRIu64, is->epoch, is->epochs);
  if (!is->is_epoch_over) pwi_train_line_add(text_out, " %.0f%%", 100 * share);
  pwi_train_line_add(text_out, "  loss %.4f", is->loss);
  if (!isnan(is->test_error)) pwi_train_line_add(text_out, "  test error %.2f %%", 100 * is->test_error);
  pwi_train_line_add(text_out, "  %s images/s", pwi_train_short(is->images_per_s, number));
  pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, number));
}

json_t *pwi_train_cnn_json(const struct pawl_cnn_progress *is) {
  return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)is->epoch, "epochs",
                   (json_int_t)is->epochs, "images", (json_int_t)is->images, "loss", pwi_train_json_number(is->loss),
                   "train_error", pwi_train_json_number(is->train_error), "test_error",
                   pwi_train_json_number(is->test_error), "rate", pwi_train_json_number(is->rate), "seconds",
                   pwi_train_json_number(is->seconds), "images_per_s", pwi_train_json_number(is->images_per_s));
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static void add_workers(const struct pwi_train_cnn_end *end, json_t *object) {
  const struct pawl_cnn_result *result = end->result;
  json_t *more =
      json_pack("{s:s, s:I, s:I, s:o, s:I, s:I, s:I}", "share", pwi_train_share_name(end->options->base.share),
                "workers", (json_int_t)result->workers, "workers_lost", (json_int_t)result->workers_lost, "wait_pct",
                pwi_train_json_number(result->wait_pct), "bytes_sent", (json_int_t)result->bytes_sent, "bytes_received",
                (json_int_t)result->bytes_received, "resumed", (json_int_t)result->resumed);
  (void)json_object_update(object, more);
  json_decref(more);
  if (end->options->base.share != PWI_TRAIN_SHARE_FACTORS && end->options->base.share != PWI_TRAIN_SHARE_SERVERS)
    return;
  bool has_factors = end->options->base.share == PWI_TRAIN_SHARE_FACTORS;
  more = json_pack("{s:{s:o, s:o}, s:o, s:o, s:o}", "expected_bytes", "factors",
                   pwi_train_json_number(end->costs.factors), "servers", pwi_train_json_number(end->costs.servers),
                   "layers_as_factors", has_factors ? json_integer(result->layers_as_factors) : json_null(),
                   "update_bytes", has_factors ? json_integer((json_int_t)result->update_bytes) : json_null(),
                   "identical", has_factors ? json_boolean(result->is_identical) : json_null());
  (void)json_object_update(object, more);
  json_decref(more);
}

static void print_workers(const struct pwi_train_cnn_end *end) {
  const struct pawl_cnn_result *result = end->result;
  char sent[32], received[32];
  if (end->options->base.share == PWI_TRAIN_SHARE_NONE) return;
  printf("  %-12s %" PRIu32 " finished, %" PRIu32 " lost; shared by %s, waited %.1f %%\n", "workers", result->workers,
         result->workers_lost, pwi_train_share_name(end->options->base.share), result->wait_pct);
  printf("  %-12s %sB sent, %sB received by workers\n", "network", pwi_train_short((double)result->bytes_sent, sent),
         pwi_train_short((double)result->bytes_received, received));
  if (end->options->base.share != PWI_TRAIN_SHARE_FACTORS) return;
  printf("  %-12s %sB in %" PRIu64 " steps, of %u layer%s as factors; %s\n", "gradients",
         pwi_train_short((double)result->update_bytes, sent), result->steps, result->layers_as_factors,
         result->layers_as_factors == 1 ? "" : "s",
         result->is_identical ? "parameters identical, bit by bit" : "parameters differed");
}

int pwi_train_cnn_end_json(const struct pwi_train_cnn_end *end) {
  const struct pawl_cnn_result *result = end->result;
  struct pawl_cnn_about about;
  pawl_cnn_model_about(end->model, &about);
  json_t *object = json_pack(
      "{s:o, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o}",
      "model", pwi_json_string(end->output), "net", about.net, "parameters", (json_int_t)about.parameters, "images",
      (json_int_t)about.images, "test_images", (json_int_t)end->test_images, "why", result->why, "epochs",
      (json_int_t)result->epochs, "steps", (json_int_t)result->steps, "loss", pwi_train_json_number(result->loss),
      "guess_loss", pwi_train_json_number(result->guess_loss), "train_error",
      pwi_train_json_number(result->train_error), "test_error", pwi_train_json_number(result->test_error),
      "test_guess_error", pwi_train_json_number(result->test_guess_error), "seconds",
      pwi_train_json_number(result->seconds), "train_seconds", pwi_train_json_number(result->train_s), "images_per_s",
      pwi_train_json_number(result->images_per_s), "batch", (json_int_t)result->batch, "rate",
      pwi_train_json_number(result->rate), "momentum", pwi_train_json_number(result->momentum), "decay",
      pwi_train_json_number(result->decay), "seed", json_sprintf("%" PRIu64, about.seed), "total_seconds",
      pwi_train_json_number(end->seconds));
  if (end->options->base.share != PWI_TRAIN_SHARE_NONE) add_workers(end, object);
  return pwi_train_json_write(stdout, object) ? PWI_EXIT_OK
                                              : pwi_cli_failure(end->options->base.command, "cannot print the result");
}

void pwi_train_cnn_end_print(const struct pwi_train_cnn_end *end) {
  const struct pawl_cnn_result *result = end->result;
  struct pawl_cnn_about about;
  char whole[32], training[32], speed[32];
  pawl_cnn_model_about(end->model, &about);
  const char *how = strcmp(result->why, "epochs") == 0     ? "done"
                    : strcmp(result->why, "guessing") == 0 ? "NO BETTER THAN GUESSING"
                                                           : result->why;
  printf("%s after %" PRIu64 " epoch%s", how, result->epochs, result->epochs == 1 ? "" : "s");
  if (result->resumed) printf(", the first %" PRIu64 " steps of which were made before --resume", result->resumed);
  printf("\n");
  printf("  %-12s %s, with %" PRIu64 " parameters\n", "net", about.net, about.parameters);
  printf("  %-12s %" PRIu64 " of %" PRIu32 " x %" PRIu32 " x %" PRIu32 ", in %" PRIu32 " classes\n", "images",
         about.images, about.channels, about.height, about.width, about.classes);
  printf("  %-12s %.5f, error %.2f %%, of the training images during the last epoch\n", "loss", result->loss,
         100 * result->train_error);
  if (!isnan(result->test_error))
    printf("  %-12s %.2f %% of %" PRIu64 " images\n", "test error", 100 * result->test_error, end->test_images);
  printf("  %-12s %s: %s training, %s images/s\n", "time", pwi_train_time(end->seconds, whole),
         pwi_train_time(result->train_s, training), pwi_train_short(result->images_per_s, speed));
  print_workers(end);
  printf("  %-12s %s%s\n", "model", end->output, end->options->base.output ? "" : " (choose another name with -o)");
  printf("\nnext:  pawl predict");
  pwi_train_word_print(end->output);
  printf(" FILE…\n");
}
