#include "cli/train/bpmf/options.h"

#include <string.h>

#include "cli/train/rules.h"

const struct pwi_cli_option pwi_train_bpmf_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_RANK, "rank", "N", "numbers in the row of each user and item, up to 1024 (default: 16)"},
    {PWI_TRAIN_ALPHA, "alpha", "X",
     "precision of a rating: 1 / variance of its noise (default: 2 / variance of the ratings)"},
    {PWI_TRAIN_KEEP, "keep", "N",
     "number of samples in the model, up to 1000: more give better predictions and a larger file (default: 20)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("ratings"),
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the error on the ratings in FILE after each iteration; may be given several times"},
    {PWI_TRAIN_TEST_SPLIT, "test-split", "X",
     "take the share X of all ratings, below 1, as test ratings; --seed chooses them"},
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of all files: csv (user,item,rating,…), triples (separated by tabs, blanks or ::) or mtx (default: "
     "detected)"},
    {PWI_TRAIN_DUPLICATES, "duplicates", "HOW",
     "if a user rates an item twice: refuse the data (default), use the last rating, or the mean"},
    {PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "skip up to N lines that cannot be parsed (default: 0)"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_ITERATIONS, "iterations", "N", "number of times that all rows are drawn (default: 100)"},
    {PWI_TRAIN_BURN_IN, "burn-in", "N",
     "number of iterations at the beginning that are no samples (default: 10, at most half of all)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of all random numbers (default: 1)"},
    {PWI_TRAIN_THREADS, "threads", "N",
     "number of threads (default: one per processor); the samples do not depend on it"},
    {PWI_TRAIN_NO_TRAIN_RMSE, "no-train-rmse", NULL, "do not measure the error on the training ratings"},
    PWI_CLI_HEADING("state and output"),
    {PWI_TRAIN_CHECKPOINT, "checkpoint", "FILE",
     "save the state to FILE (default with --checkpoint-every or --resume: MODEL.checkpoint)"},
    {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "N", "save the state every N iterations (default: 10)"},
    {PWI_TRAIN_RESUME, "resume", NULL,
     "continue from the checkpoint; the model is the same as without an interruption"},
    {PWI_TRAIN_LOG, "log", "FILE", "write a JSON object for each iteration to FILE"},
    {PWI_CLI_LETTER_JSON, "json", NULL, "print the result as one JSON object"},
    {PWI_TRAIN_QUIET, "quiet", NULL, "print nothing but errors"},
    {0},
};

#define PLACE(member) offsetof(struct pwi_train_bpmf_options, member)

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_RANK, PWI_TRAIN_COUNT32, PLACE(bpmf.rank), 1, PAWL_BPMF_RANK_MAX, "a rank from 1 to 1024"},
    {PWI_TRAIN_ALPHA, PWI_TRAIN_REAL, PLACE(bpmf.alpha), 1e-9, 1e9, "a number from 1e-9 to 1e9"},
    {PWI_TRAIN_KEEP, PWI_TRAIN_COUNT32, PLACE(bpmf.keep), 1, 1000, "a number of samples, up to 1000"},
    {PWI_TRAIN_TEST_SPLIT, PWI_TRAIN_REAL, PLACE(bpmf.test_share), 1e-9, 0.999999, "a share above 0 and below 1"},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(reading.skip_bad), 0, 1e19, "a number of lines"},
    {PWI_TRAIN_ITERATIONS, PWI_TRAIN_COUNT64, PLACE(bpmf.iterations), 1, 1e8,
     "a number of iterations, up to 100000000"},
    {PWI_TRAIN_BURN_IN, PWI_TRAIN_COUNT64, PLACE(bpmf.burn_in), 0, 1e8, "a number of iterations"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(bpmf.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(bpmf.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_NO_TRAIN_RMSE, PWI_TRAIN_FLAG, PLACE(bpmf.no_train_rmse), 0, 0, NULL},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(bpmf.checkpoint), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_COUNT64, PLACE(bpmf.checkpoint_every), 1, 1e8, "a number of iterations"},
    {0},
};

static const struct pwi_train_word duplicates[] = {
    {"refuse", PAWL_RATINGS_REFUSE}, {"last", PAWL_RATINGS_LAST}, {"mean", PAWL_RATINGS_MEAN}, {0}};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_DUPLICATES, PLACE(reading.duplicates), duplicates, "refuse, last or mean"},
    {0},
};

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_bpmf_options *options = context;
  if (letter == PWI_TRAIN_CHECKPOINT_EVERY) options->has_checkpoints = true;
  if (letter != PWI_TRAIN_FORMAT) return pwi_train_choices_follow(choices, options, letter, value);
  return pawl_ratings_format_parse(value, &options->reading.format) ? "csv, triples or mtx" : NULL;
}

static int check(const struct pwi_train_bpmf_options *options) {
  const struct pwi_command *command = options->base.command;
  char error[PAWL_BPMF_TEXT];
  if (options->test.count > 0 && options->bpmf.test_share > 0)
    return pwi_cli_usage(command, "test ratings come from --test or from --test-split, not from both");
  return pawl_bpmf_check(&options->bpmf, error) ? PWI_EXIT_OK : pwi_cli_usage(command, "%s", error);
}

bool pwi_train_bpmf_options_read(struct pwi_train_bpmf_options *options, const struct pwi_command *command, int argc,
                                 char **argv, int *exit_out) {
  *options = (struct pwi_train_bpmf_options){.has_checkpoints = false};
  pwi_train_base_init(&options->base, command);
  options->base.share = PWI_TRAIN_SHARE_NONE;
  pawl_bpmf_options_init(&options->bpmf);
  pawl_ratings_options_init(&options->reading);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
