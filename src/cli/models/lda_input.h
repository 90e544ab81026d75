/* What the commands of `pawl lda` read: a topic model, and documents that are counted with its words.
 *
 * Words of a text are looked up in the model's own vocabulary. Documents that come as numbers are believed to mean the same words; who
 * names their vocabulary by --vocab has it compared, word by word.
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
  PWI_LDA_OWN, /* the first number for a command's own */
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
  struct pawl_words *names; /* of its words: its own, or those of --vocab; NULL: they are numbers */
  struct pawl_data *data;
  struct pwi_spool spool;
};

void pwi_lda_input_init(struct pwi_lda_input *input, const struct pwi_command *command);
void pwi_lda_input_fini(struct pwi_lda_input *input);

/* One of the options above; false if the letter is none of them. `*exit_out` is set if its value is wrong. */
bool pwi_lda_input_option(struct pwi_lda_input *input, int letter, const char *value, int *exit_out);

/* Reads the model and, if there is one, the vocabulary; opens documents. An exit code; what is wrong was said. */
int pwi_lda_input_model(struct pwi_lda_input *input, const char *path);
int pwi_lda_input_data(struct pwi_lda_input *input, const char *const *paths, size_t count);

/* A failure of reading documents, in words. */
int pwi_lda_input_failed(const struct pwi_lda_input *input, pawl_status status);

/* The word's name, or its number in `text`. */
#define PWI_LDA_NUMBER_MAX 24
const char *pwi_lda_word(const struct pwi_lda_input *input, uint64_t word, char text[PWI_LDA_NUMBER_MAX]);

/* A number for JSON: null if it is none. */
json_t *pwi_lda_real(double value);

extern const struct pwi_command pwi_command_lda_topics, pwi_command_lda_infer, pwi_command_lda_evaluate,
    pwi_command_lda_export;

#endif
