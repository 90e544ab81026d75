#include "cli/models/lda_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/session.h>

#include "cli/reading.h"

#define THREADS_MAX 1024
#define ITERATIONS_MAX 1000000

void pwi_lda_input_init(struct pwi_lda_input *input, const struct pwi_command *command) {
  *input = (struct pwi_lda_input){.command = command};
  pawl_data_options_init(&input->reading);
  pawl_lda_folding_init(&input->folding);
}

void pwi_lda_input_fini(struct pwi_lda_input *input) {
  pawl_data_close(input->data);
  pwi_spool_fini(&input->spool);
  pawl_words_release(input->names);
  pawl_lda_model_destroy(input->model);
}

/* --- options ---------------------------------------------------------------------------------------------------------------- */

static bool read_count(const char *text, uint64_t least, uint64_t most, uint64_t *count_out) {
  return pwi_cli_number(text, count_out) && *count_out >= least && *count_out <= most;
}

static bool read_positive(const char *text, double *value_out) {
  char *end;
  *value_out = strtod(text, &end);
  return end != text && *end == 0 && isfinite(*value_out) && *value_out > 0;
}

/* Reads an option. Returns the expected value, or NULL if it is valid. */
static const char *take(struct pwi_lda_input *input, int letter, const char *value) {
  struct pawl_lda_folding *folding = &input->folding;
  uint64_t count = 0;
  switch (letter) {
  case PWI_LDA_VOCAB:
    input->vocab = value;
    return *value ? NULL : "the name of a vocabulary file";
  case PWI_LDA_FORMAT:
    return pawl_data_format_parse(value, &input->reading.format) ? "ldac, uci, text, libsvm or cache" : NULL;
  case PWI_LDA_SKIP_BAD:
    return read_count(value, 0, UINT32_MAX, &input->reading.skip_bad) ? NULL : "a number of documents";
  case PWI_LDA_SEED:
    return pwi_cli_number(value, &folding->seed) ? NULL : "a whole number";
  case PWI_LDA_ALPHA:
    return read_positive(value, &folding->alpha) ? NULL : "a number above 0";
  case PWI_LDA_THREADS:
    if (!read_count(value, 1, THREADS_MAX, &count)) return "a number from 1 to 1024";
    folding->threads = (uint32_t)count;
    return NULL;
  default:
    if (!read_count(value, 1, ITERATIONS_MAX, &count)) return "a number from 1 to 1000000";
    folding->iterations = (uint32_t)count;
    return NULL;
  }
}

bool pwi_lda_input_option(struct pwi_lda_input *input, int letter, const char *value, int *exit_out) {
  if (letter < PWI_LDA_VOCAB || letter >= PWI_LDA_OWN) return false;
  const char *wanted = take(input, letter, value);
  if (wanted) *exit_out = pwi_cli_bad_value(input->command, value, "%s", wanted);
  return true;
}

/* --- the model -------------------------------------------------------------------------------------------------------------- */

int pwi_lda_input_failed(const struct pwi_lda_input *input, pawl_status status) {
  const char *text = pawl_error_text();
  return pwi_cli_failure(input->command, "%s", text[0] ? text : pawl_status_text(status));
}

/* Checks that two vocabularies are equal, word by word. */
static int compare(const struct pwi_lda_input *input, const struct pawl_words *own, const struct pawl_words *other) {
  for (uint64_t w = 0; own && w < input->words && w < pawl_words_count(other); w++)
    if (strcmp(pawl_words_at(own, w), pawl_words_at(other, w)) != 0)
      return pwi_cli_failure(input->command,
                             "line %" PRIu64 " of %s is '%s', but '%s' in %s; the two are of different corpora", w + 1,
                             input->vocab, pawl_words_at(other, w), pawl_words_at(own, w), input->model_path);
  if (pawl_words_count(other) == input->words) return PWI_EXIT_OK;
  return pwi_cli_failure(input->command, "%s has %" PRIu64 " words, but %s has %" PRIu64, input->vocab,
                         pawl_words_count(other), input->model_path, input->words);
}

static int find_names(struct pwi_lda_input *input) {
  const struct pawl_words *own = pawl_lda_model_words(input->model);
  int exit_code = PWI_EXIT_OK;
  if (input->vocab) {
    pawl_status status = pawl_words_read(input->vocab, &input->names);
    exit_code = status ? pwi_lda_input_failed(input, status) : compare(input, own, input->names);
  }
  if (!input->names) input->names = pawl_words_retain(own);
  return exit_code;
}

int pwi_lda_input_model(struct pwi_lda_input *input, const char *path) {
  char error[PAWL_LDA_TEXT];
  struct pawl_lda_about about;
  input->model_path = path;
  pawl_status status = pawl_lda_model_read(path, &input->model, error);
  if (status)
    return pwi_cli_failure(input->command, "%s%s", error,
                           status == PAWL_MISMATCH ? "; use 'pawl model show' and 'pawl predict'" : "");
  pawl_lda_model_about(input->model, &about);
  input->topics = about.topics;
  input->words = about.words;
  return find_names(input);
}

/* --- documents -------------------------------------------------------------------------------------------------------------- */

int pwi_lda_input_data(struct pwi_lda_input *input, const char *const *paths, size_t count) {
  struct pawl_data_info info;
  int exit_code;
  if (!pwi_spool_init(&input->spool, input->command, paths, count, false, &exit_code)) return exit_code;
  paths = input->spool.paths;
  pwi_reading_text(paths, count, true, &input->reading);
  bool is_text = input->reading.format == PAWL_DATA_TEXT;
  if (is_text && !input->names)
    return pwi_cli_failure(input->command,
                           "the words of %s have numbers only; to read text, give their vocabulary with --vocab FILE",
                           input->model_path);
  /* Word numbers beyond the vocabulary are unknown words, as in text, not errors. */
  input->reading.words = is_text ? input->names : NULL;
  pawl_status status = pawl_data_open(paths, count, &input->reading, &input->data);
  if (status) return pwi_lda_input_failed(input, status);
  pawl_data_info(input->data, &info);
  if (info.format != PAWL_DATA_VW && info.format != PAWL_DATA_CRITEO && info.format != PAWL_DATA_CSV)
    return PWI_EXIT_OK;
  return pwi_cli_failure(input->command, "%s: %s data does not have documents; for plain text, give --format text",
                         paths[0], pawl_data_format_name(info.format));
}

/* --- for output ------------------------------------------------------------------------------------------------------------- */

const char *pwi_lda_word(const struct pwi_lda_input *input, uint64_t word, char text[PWI_LDA_NUMBER_MAX]) {
  const char *name = input->names ? pawl_words_at(input->names, word) : NULL;
  if (name) return name;
  snprintf(text, PWI_LDA_NUMBER_MAX, "%" PRIu64, word);
  return text;
}

json_t *pwi_lda_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }
