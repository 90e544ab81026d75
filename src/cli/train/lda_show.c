#include "base/json.h"
#include "cli/train/lda_show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/train/log.h"

/* --- for people --------------------------------------------------------------------------------------------------- */

static void add_stage(char *text, const struct pawl_lda_progress *is) {
  if (strcmp(is->stage, "sampling") == 0) {
    pwi_train_line_add(text, "sweep %" PRIu64 "/%" PRIu64, is->sweep, is->sweeps);
    return;
  }
  pwi_train_line_add(text, "%s", is->stage);
  if (is->part < 1 && strcmp(is->stage, "finishing") != 0) pwi_train_line_add(text, " %.0f%%", 100 * is->part);
}

static void add_quality(char *text, const struct pawl_lda_progress *is) {
  if (!isnan(is->log_likelihood)) pwi_train_line_add(text, "  likelihood %.4f", is->log_likelihood);
  if (!isnan(is->perplexity)) pwi_train_line_add(text, "  perplexity %.1f", is->perplexity);
}

void pwi_train_lda_line(const struct pawl_lda_progress *is, char text_out[PWI_TRAIN_LINE_MAX]) {
  char number[32];
  bool is_sampling = strcmp(is->stage, "sampling") == 0;
  text_out[0] = '\0';
  add_stage(text_out, is);
  if (is_sampling && is->tokens_per_s > 0)
    pwi_train_line_add(text_out, "  %s tokens/s", pwi_train_short(is->tokens_per_s, number));
  add_quality(text_out, is);
  if (is->workers) pwi_train_line_add(text_out, "  %u worker%s", is->workers, is->workers == 1 ? "" : "s");
  if (!is_sampling && is->tokens)
    pwi_train_line_add(text_out, "  %s tokens", pwi_train_short((double)is->tokens, number));
  if (is_sampling && !isnan(is->left_s))
    pwi_train_line_add(text_out, "  left %s", pwi_train_time(is->left_s, number));
  else
    pwi_train_line_add(text_out, "  %s", pwi_train_time(is->seconds, number));
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static json_t *worker_of(const struct pawl_lda_worker *worker) {
  return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o}", "host", pwi_json_string(worker->host ? worker->host : ""), "pid",
                   (json_int_t)worker->pid, "tokens", (json_int_t)worker->tokens, "log_likelihood",
                   pwi_train_json_number(worker->log_likelihood), "tokens_per_s",
                   pwi_train_json_number(worker->tokens_per_s), "wait_pct", pwi_train_json_number(worker->wait_pct));
}

static json_t *workers_of(const struct pawl_lda_progress *is) {
  json_t *array = json_array();
  for (size_t i = 0; i < is->each_count; i++) (void)json_array_append_new(array, worker_of(&is->each[i]));
  return array;
}

json_t *pwi_train_lda_json(const struct pawl_lda_progress *is) {
  return json_pack(
      "{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "stage", is->stage,
      "sweep", (json_int_t)is->sweep, "sweeps", (json_int_t)is->sweeps, "part", pwi_train_json_number(is->part),
      "log_likelihood", pwi_train_json_number(is->log_likelihood), "perplexity", pwi_train_json_number(is->perplexity),
      "alpha_sum", pwi_train_json_number(is->alpha_sum), "beta", pwi_train_json_number(is->beta), "documents",
      (json_int_t)is->documents, "tokens", (json_int_t)is->tokens, "words", (json_int_t)is->words, "seconds",
      pwi_train_json_number(is->seconds), "left_s", pwi_train_json_number(is->left_s), "tokens_per_s",
      pwi_train_json_number(is->tokens_per_s), "bytes_sent", (json_int_t)is->bytes_sent, "bytes_received",
      (json_int_t)is->bytes_received, "workers", (json_int_t)is->workers, "each", workers_of(is));
}

void pwi_train_lda_board(const struct pawl_lda_progress *is,
                         struct pwi_train_scalar scalars_out[PWI_TRAIN_LDA_SCALARS]) {
  const struct pwi_train_scalar scalars[PWI_TRAIN_LDA_SCALARS] = {{"log-likelihood", is->log_likelihood},
                                                                  {"perplexity", is->perplexity},
                                                                  {"tokens/s", is->tokens_per_s},
                                                                  {"alpha sum", is->alpha_sum},
                                                                  {"beta", is->beta}};
  memcpy(scalars_out, scalars, sizeof scalars);
}
