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
     "number of threads of each worker (default: its share of the processors); the samples do not depend on it"},
    {PWI_TRAIN_NO_TRAIN_RMSE, "no-train-rmse", NULL, "do not measure the error on the training ratings"},
    PWI_CLI_HEADING("workers"),
    {PWI_TRAIN_WORKERS, "workers", "N|MIN:MAX",
     "number of worker processes, which divide the rows among them, up to 64 (default: 1, this process); with "
     "--cluster, 0 starts none, and 'pawl worker' starts them elsewhere"},
    {PWI_TRAIN_SHARE, "share", "HOW", "how workers share rows: items (default), from worker to worker, or servers"},
    {PWI_TRAIN_VARIANT, "variant", "NAME",
     "items: push (default) sends rows to the workers that need them, pull fetches them when they are needed"},
    {PWI_TRAIN_SLACK, "slack", "N",
     "number of iterations that the rows of other workers may be old (default: 0, which gives the samples of one "
     "process)"},
    {PWI_TRAIN_ON_LOSS, "on-worker-loss", "HOW",
     "what to do if a worker dies: replace it (default), continue without it, or stop"},
    {PWI_TRAIN_DROP_SLOWEST, "drop-slowest", "X", "drop a worker that takes X times the median, three times in a row"},
    {PWI_TRAIN_SERVERS, "servers", "N", "number of server processes (default: 1, and 1 for each replica)"},
    {PWI_TRAIN_REPLICAS, "replicas", "N", "number of further copies of the rows: N servers may die (default: 0)"},
    {PWI_SESSION_CLUSTER, "cluster", "ADDRESS[,…]",
     "address of the manager of the cluster to use (default: PAWL_ADDRESS, or a temporary cluster is started)"},
    {PWI_TRAIN_JOB, "job", "NAME", "name by which workers find this run in the cluster (default: train)"},
    {PWI_TRAIN_LISTEN, "listen", "ADDRESS", "address that workers connect to (default: from the route to the manager)"},
    PWI_SESSION_PROOFS,
    PWI_CLI_HEADING("state and output"),
    {PWI_TRAIN_CHECKPOINT, "checkpoint", "FILE",
     "save the state to FILE (default with --checkpoint-every or --resume: MODEL.checkpoint)"},
    {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "N",
     "save the state every N iterations (default: 10); workers go back to the last one if one of them is lost"},
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
    {PWI_TRAIN_SLACK, PWI_TRAIN_COUNT32, PLACE(slack), 0, PAWL_BPMF_SLACK_MAX, "a number of iterations, up to 1000000"},
    {PWI_TRAIN_NO_TRAIN_RMSE, PWI_TRAIN_FLAG, PLACE(bpmf.no_train_rmse), 0, 0, NULL},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(bpmf.checkpoint), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_COUNT64, PLACE(bpmf.checkpoint_every), 1, 1e8, "a number of iterations"},
    {0},
};

static const struct pwi_train_word variants[] = {{"push", PAWL_ITEMS_PUSH}, {"pull", PAWL_ITEMS_PULL}, {0}};

static const struct pwi_train_word duplicates[] = {
    {"refuse", PAWL_RATINGS_REFUSE}, {"last", PAWL_RATINGS_LAST}, {"mean", PAWL_RATINGS_MEAN}, {0}};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_DUPLICATES, PLACE(reading.duplicates), duplicates, "refuse, last or mean"},
    {PWI_TRAIN_VARIANT, PLACE(variant), variants, "push or pull"},
    {0},
};

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_bpmf_options *options = context;
  if (letter == PWI_TRAIN_CHECKPOINT_EVERY) options->has_checkpoints = true;
  if (letter == PWI_TRAIN_VARIANT || letter == PWI_TRAIN_SLACK) options->has_sharing = true;
  if (letter != PWI_TRAIN_FORMAT) return pwi_train_choices_follow(choices, options, letter, value);
  return pawl_ratings_format_parse(value, &options->reading.format) ? "csv, triples or mtx" : NULL;
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

/* Without --share: one worker is this process, and several use items. */
static void settle_share(struct pwi_train_bpmf_options *options) {
  struct pwi_train_base *base = &options->base;
  bool has_many = base->has_workers && base->workers_most != 1;
  bool has_others = has_many || base->names_cluster || (base->is_launched && base->ranks.size > 1);
  if (base->share != PWI_TRAIN_SHARE_AUTO) return;
  if (base->has_servers)
    base->share = PWI_TRAIN_SHARE_SERVERS;
  else
    base->share = has_others || options->has_sharing ? PWI_TRAIN_SHARE_ITEMS : PWI_TRAIN_SHARE_NONE;
}

static int check_alone(const struct pwi_train_bpmf_options *options) {
  const struct pwi_train_base *base = &options->base;
  if (base->has_workers && base->workers_most != 1)
    return pwi_cli_usage(base->command, "several workers have to share rows; give --share items or servers");
  if (base->has_servers || base->names_cluster || options->has_sharing)
    return pwi_cli_usage(base->command,
                         "one process shares nothing: it needs no cluster, no --slack and no --variant; give --share "
                         "items or servers");
  return PWI_EXIT_OK;
}

static int check_sharing(struct pwi_train_bpmf_options *options) {
  struct pawl_bpmf_sharing sharing;
  char error[PAWL_BPMF_TEXT];
  int exit_code = pwi_train_base_settle(&options->base);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pwi_train_bpmf_sharing(options, options->base.data, options->test.at, &sharing);
  return pawl_bpmf_sharing_check(&sharing, error) ? PWI_EXIT_OK : pwi_cli_usage(options->base.command, "%s", error);
}

static int check(struct pwi_train_bpmf_options *options) {
  const struct pwi_command *command = options->base.command;
  char error[PAWL_BPMF_TEXT];
  if (options->test.count > 0 && options->bpmf.test_share > 0)
    return pwi_cli_usage(command, "test ratings come from --test or from --test-split, not from both");
  if (!pawl_bpmf_check(&options->bpmf, error)) return pwi_cli_usage(command, "%s", error);
  settle_share(options);
  return options->base.share == PWI_TRAIN_SHARE_NONE ? check_alone(options) : check_sharing(options);
}

void pwi_train_bpmf_sharing(const struct pwi_train_bpmf_options *options, const char *const *paths,
                            const char *const *test_paths, struct pawl_bpmf_sharing *sharing_out) {
  const struct pwi_train_base *base = &options->base;
  pawl_bpmf_sharing_init(sharing_out);
  sharing_out->share = base->share == PWI_TRAIN_SHARE_SERVERS ? PAWL_BPMF_SERVERS : PAWL_BPMF_ITEMS;
  sharing_out->job = base->job;
  sharing_out->paths = paths;
  sharing_out->path_count = base->data_count;
  sharing_out->test_paths = test_paths;
  sharing_out->test_path_count = options->test.count;
  sharing_out->format = options->reading.format;
  sharing_out->duplicates = options->reading.duplicates;
  sharing_out->skip_bad = options->reading.skip_bad;
  sharing_out->workers = base->least;
  sharing_out->workers_most = base->most;
  sharing_out->on_loss = base->on_loss;
  sharing_out->drop_slowest = base->drop_slowest;
  sharing_out->variant = options->variant;
  sharing_out->slack = options->slack;
}

bool pwi_train_bpmf_options_read(struct pwi_train_bpmf_options *options, const struct pwi_command *command, int argc,
                                 char **argv, int *exit_out) {
  *options = (struct pwi_train_bpmf_options){.has_checkpoints = false};
  pwi_train_base_init(&options->base, command);
  options->base.has_items = true;
  pawl_bpmf_options_init(&options->bpmf);
  pawl_ratings_options_init(&options->reading);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
