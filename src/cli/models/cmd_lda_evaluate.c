/* `pawl lda evaluate`: the held-out perplexity of a topic model. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "cli/models/lda_input.h"

static void print_score(const struct pwi_lda_input *input, const struct pawl_lda_score *score) {
  uint64_t skipped = pawl_data_skipped(input->data);
  printf("%-12s %.6g\n", "perplexity", score->perplexity);
  printf("%-12s %.6g per token\n", "likelihood", score->log_likelihood / (double)score->tokens);
  printf("%-12s %" PRIu64 ", split with seed %" PRIu64 "\n", "documents", score->documents, input->folding.seed);
  printf("%-12s %" PRIu64 " scored\n", "tokens", score->tokens);
  if (score->unknown)
    printf("%-12s %" PRIu64 " tokens of words that are not in the model\n", "unknown", score->unknown);
  if (score->empty) printf("%-12s %" PRIu64 " documents without a known word\n", "empty", score->empty);
  if (skipped)
    printf("%-12s %" PRIu64 " documents, the first at %s\n", "skipped", skipped, pawl_data_first_bad(input->data));
}

static json_t *score_json(const struct pwi_lda_input *input, const struct pawl_lda_score *score) {
  return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "perplexity", pwi_lda_real(score->perplexity),
                   "log_likelihood", pwi_lda_real(score->log_likelihood), "documents", (json_int_t)score->documents,
                   "tokens", (json_int_t)score->tokens, "unknown", (json_int_t)score->unknown, "empty",
                   (json_int_t)score->empty, "skipped", (json_int_t)pawl_data_skipped(input->data));
}

static int evaluate(struct pwi_lda_input *input, const char *const *arguments, size_t count, bool json) {
  struct pawl_lda_score score;
  char error[PAWL_LDA_TEXT];
  int exit_code = pwi_lda_input_model(input, arguments[0]);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_lda_input_data(input, arguments + 1, count - 1);
  if (exit_code) return exit_code;
  pawl_status status = pawl_lda_perplexity(input->model, input->data, &input->folding, &score, error);
  if (status) return pwi_cli_failure(input->command, "%s", error);
  if (json) return pwi_cli_print_json(input->command, score_json(input, &score));
  print_score(input, &score);
  return PWI_EXIT_OK;
}

static int run_evaluate(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct pwi_lda_input input;
  bool json = false;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_lda_input_init(&input, command);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0 && exit_code == PWI_EXIT_OK)
    if (!pwi_lda_input_option(&input, letter, args.value, &exit_code)) json = true;
  if (exit_code) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, INT_MAX)) return args.exit_code;
  exit_code = evaluate(&input, (const char *const *)argv + args.rest, (size_t)(argc - args.rest), json);
  pwi_lda_input_fini(&input);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {PWI_LDA_ALPHA, "alpha", "A",
     "prior of every topic in a document (default: 0.1 for all models, so that they can be compared)"},
    {PWI_LDA_ITERATIONS, "iterations", "N", "number of iterations per document (default: 100)"},
    {PWI_LDA_SEED, "seed", "N", "seed of the split of documents (default: 1)"},
    PWI_LDA_READING,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_lda_evaluate = {
    .name = "lda evaluate",
    .arguments = "MODEL DATA...",
    .summary = "print the held-out perplexity of a model",
    .text = "Prints the perplexity of documents that were not used in training. Each\n"
            "document's tokens are split into two halves at random; the topics are inferred\n"
            "from the first half, and the tokens of the second half are scored. Lower is\n"
            "better; a model that knows nothing has a perplexity equal to the number of\n"
            "words. The result depends only on the documents and the seed, not on the\n"
            "number of threads.\n\n"
            "  pawl lda evaluate news.model test.ldac\n",
    .options = options,
    .run = run_evaluate,
};
