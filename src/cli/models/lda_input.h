/* The input of the commands of `pawl lda`: a topic model, and documents.
 *
 * Words of a text are looked up in the model's vocabulary. Documents of word numbers are assumed to have the
 * same vocabulary; with --vocab, the two vocabularies are compared word by word.
 */
#ifndef PWI_CLI_MODELS_LDA_INPUT_H
#define PWI_CLI_MODELS_LDA_INPUT_H

#include <stdint.h>

#include <pawl/lda.h>

#include "cli/cli.h"
#include "cli/spool.h"

enum {
  PWI_LDA_VOCAB = 400,
  PWI_LDA_FORMAT,
  PWI_LDA_SKIP_BAD,
  PWI_LDA_THREADS,
  PWI_LDA_ALPHA,
  PWI_LDA_ITERATIONS,
  PWI_LDA_SEED,
  PWI_LDA_OWN, /* first letter of a command's own options */
};

#define PWI_LDA_READING                                                                                                \
  {PWI_LDA_FORMAT, "format", "NAME",                                                                                   \
   "format of the documents: ldac, uci, text, libsvm or cache (default: detected; only .txt files are taken for "      \
   "text)"},                                                                                                           \
      {PWI_LDA_VOCAB, "vocab", "FILE",                                                                                 \
       "vocabulary of the documents, which must equal the model's if the model has one"},                              \
      {PWI_LDA_SKIP_BAD, "skip-bad", "N", "skip up to N documents that cannot be parsed (default: 0)"}, {              \
    PWI_LDA_THREADS, "threads", "N", "number of threads (default: the number of processors)"                           \
  }

struct pwi_lda_input {
  const struct pwi_command *command;
  const char *model_path, *vocab;
  struct pawl_data_options reading;
  struct pawl_lda_folding folding;
  uint64_t topics, words; /* of the model */
  struct pawl_lda_model *model;
  struct pawl_words *names; /* names of the words, from the model or from --vocab; NULL: words have numbers only */
  struct pawl_data *data;
  struct pwi_spool spool;
};

void pwi_lda_input_init(struct pwi_lda_input *input, const struct pwi_command *command);
void pwi_lda_input_fini(struct pwi_lda_input *input);

/* Handles one of the options above. Returns false if `letter` is not one. Sets `*exit_out` if the value is
 * invalid. */
bool pwi_lda_input_option(struct pwi_lda_input *input, int letter, const char *value, int *exit_out);

/* Reads the model and the vocabulary, if given; opens the documents. Returns PWI_EXIT_OK, or prints an
 * error. */
int pwi_lda_input_model(struct pwi_lda_input *input, const char *path);
int pwi_lda_input_data(struct pwi_lda_input *input, const char *const *paths, size_t count);

/* Prints the error of reading documents. Returns the exit code. */
int pwi_lda_input_failed(const struct pwi_lda_input *input, pawl_status status);

/* The name of a word, or its number, printed to `text`. */
#define PWI_LDA_NUMBER_MAX 24
const char *pwi_lda_word(const struct pwi_lda_input *input, uint64_t word, char text[PWI_LDA_NUMBER_MAX]);

/* A JSON number; null if it is not finite. */
json_t *pwi_lda_real(double value);

extern const struct pwi_command pwi_command_lda_topics, pwi_command_lda_infer, pwi_command_lda_evaluate,
    pwi_command_lda_export;

#endif
