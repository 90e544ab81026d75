#include "cli/train/lda_options.h"

#include <string.h>

#include "cli/role_options.h"

/* --- the list ----------------------------------------------------------------------------------------------------- */

const struct pwi_cli_option pwi_train_lda_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_TOPICS, "topics", "K", "number of topics (default: 100, or those of --start)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    {PWI_TRAIN_VOCABULARY, "vocab", "FILE",
     "vocabulary file, one word per line (default: for text, collected from it, else words are numbers)"},
    {PWI_TRAIN_HELD_OUT, "held-out", "FILE",
     "measure the perplexity on the documents in FILE; may be given several times"},
    {PWI_TRAIN_ALPHA, "alpha", "X", "prior of each topic in a document (default: 0.1)"},
    {PWI_TRAIN_BETA, "beta", "X", "prior of each word in a topic (default: 0.01)"},
    {PWI_TRAIN_OPTIMISE, "optimise", NULL, "optimise both priors, after the first half of the sweeps"},
    {PWI_TRAIN_START, "start", "MODEL", "start from the topics of MODEL"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_METHOD, "method", "NAME", "method: gibbs (default), or svi (stochastic variational inference)"},
    {PWI_TRAIN_SWEEPS, "sweeps", "N", "number of sweeps over all tokens (default: 500)"},
    {PWI_TRAIN_SWEEPS, "passes", "N", "svi: number of passes over all documents (default: 1)"},
    {PWI_TRAIN_STALENESS, "staleness", "N", "number of sweeps that a worker may be ahead of the slowest (default: 1)"},
    {PWI_TRAIN_MEMORY, "memory", "SIZE",
     "memory for tokens in each worker; tokens beyond it are streamed from --dir (default: 1G)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of the random numbers (default: 1)"},
    {PWI_TRAIN_MEASURE_EVERY, "measure-every", "N", "measure the likelihood every N sweeps (default: 10)"},
    {PWI_TRAIN_EVALUATE_EVERY, "evaluate-every", "N",
     "measure the perplexity of --held-out every N sweeps (default: only at the end)"},
    {PWI_TRAIN_CHECK, "check", NULL, "verify at the end that the counts of every word equal the corpus"},
    {PWI_TRAIN_BATCH, "batch", "N", "svi: number of documents in a step (default: 2048)"},
    {PWI_TRAIN_KAPPA, "kappa", "X", "svi: exponent of the step length (offset + t)^-kappa (default: 0.6)"},
    {PWI_TRAIN_OFFSET, "offset", "X", "svi: offset of the step length, see --kappa (default: 1)"},
    PWI_CLI_HEADING("documents"),
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of the documents: ldac, uci, text or cache (default: detected; only .txt files are taken for text)"},
    {PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "skip up to N documents that cannot be parsed (default: 0)"},
    {PWI_TRAIN_MIN_DOCUMENTS, "min-documents", "N",
     "text: drop words that occur in fewer than N documents (default: 2)"},
    {PWI_TRAIN_MAX_SHARE, "max-share", "X",
     "text: drop words that occur in more than this share of documents (default: 0.5)"},
    {PWI_TRAIN_MAX_WORDS, "max-words", "N", "text: keep the N most frequent words (default: 1000000)"},
    {PWI_TRAIN_MIN_LENGTH, "min-length", "N", "text: drop words of fewer than N characters (default: 1)"},
    {PWI_TRAIN_STOP, "stop-words", "english|FILE",
     "text: drop common English words, or the words in FILE, one per line; may be given twice, for both"},
    {PWI_TRAIN_STOP, "stop", "FILE", "short for --stop-words"},
    PWI_TRAIN_PLACE,
    PWI_CLI_HEADING("state and output"),
    {PWI_TRAIN_DIRECTORY, "dir", "DIR",
     "directory of the topics of tokens, shared by all workers (default: MODEL.run, which is removed once the model is "
     "written)"},
    {PWI_TRAIN_KEEP_DIRECTORY, "keep-dir", NULL, "do not remove MODEL.run at the end"},
    {PWI_TRAIN_RESUME, "resume", NULL, "continue the run in --dir"},
    PWI_TRAIN_SHOWN,
    {0},
};

/* --- reading ------------------------------------------------------------------------------------------------------ */

#define PLACE(member) offsetof(struct pwi_train_lda_options, member)
#define POSITIVE 1e-300, 1e300, "a number above 0"
#define COUNT 1, 1e15

static const struct pwi_train_word methods[] = {{"gibbs", PAWL_LDA_GIBBS}, {"svi", PAWL_LDA_SVI}, {0}};

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_VOCABULARY, PWI_TRAIN_TEXT, PLACE(vocabulary), 0, 0, NULL},
    {PWI_TRAIN_START, PWI_TRAIN_TEXT, PLACE(start), 0, 0, NULL},
    {PWI_TRAIN_DIRECTORY, PWI_TRAIN_TEXT, PLACE(directory), 0, 0, NULL},
    {PWI_TRAIN_KEEP_DIRECTORY, PWI_TRAIN_FLAG, PLACE(keep_directory), 0, 0, NULL},
    {PWI_TRAIN_OPTIMISE, PWI_TRAIN_FLAG, PLACE(lda.optimise), 0, 0, NULL},
    {PWI_TRAIN_CHECK, PWI_TRAIN_FLAG, PLACE(lda.check), 0, 0, NULL},
    {PWI_TRAIN_TOPICS, PWI_TRAIN_COUNT32, PLACE(lda.topics), 1, PAWL_LDA_TOPICS_MAX,
     "a number of topics, from 1 to 65000"},
    {PWI_TRAIN_STALENESS, PWI_TRAIN_COUNT32, PLACE(lda.staleness), 0, 1e6, "a number of sweeps"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT32, PLACE(lda.batch), 1, 1e9, "a number of documents"},
    {PWI_TRAIN_SWEEPS, PWI_TRAIN_COUNT64, PLACE(lda.sweeps), COUNT, "a number of sweeps"},
    {PWI_TRAIN_MEASURE_EVERY, PWI_TRAIN_COUNT64, PLACE(lda.measure_every), COUNT, "a number of sweeps"},
    {PWI_TRAIN_EVALUATE_EVERY, PWI_TRAIN_COUNT64, PLACE(lda.evaluate_every), COUNT, "a number of sweeps"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(lda.seed), 0, 1e19, "a whole number"},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(lda.reading.skip_bad), 0, 1e19, "a number of documents"},
    {PWI_TRAIN_MIN_LENGTH, PWI_TRAIN_COUNT32, PLACE(lda.building.least_length), 1, 255,
     "a number of characters, up to 255"},
    {PWI_TRAIN_MIN_DOCUMENTS, PWI_TRAIN_COUNT64, PLACE(lda.building.least_documents), COUNT, "a number of documents"},
    {PWI_TRAIN_MAX_WORDS, PWI_TRAIN_COUNT64, PLACE(lda.building.most), COUNT, "a number of words"},
    {PWI_TRAIN_MAX_SHARE, PWI_TRAIN_REAL, PLACE(lda.building.most_share), 1e-300, 1, "a share above 0 and up to 1"},
    {PWI_TRAIN_ALPHA, PWI_TRAIN_REAL, PLACE(lda.alpha), POSITIVE},
    {PWI_TRAIN_BETA, PWI_TRAIN_REAL, PLACE(lda.beta), POSITIVE},
    {PWI_TRAIN_KAPPA, PWI_TRAIN_REAL, PLACE(lda.kappa), POSITIVE},
    {PWI_TRAIN_OFFSET, PWI_TRAIN_REAL, PLACE(lda.offset), 0, 1e300, "a number, at least 0"},
    {PWI_TRAIN_HELD_OUT, PWI_TRAIN_FILES, PLACE(held_out), 0, 0, NULL},
    {0},
};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_METHOD, PLACE(lda.method), methods, "gibbs or svi"},
    {0},
};

static bool read_format(struct pwi_train_lda_options *options, const char *value) {
  enum pawl_data_format format;
  if (pawl_data_format_parse(value, &format) != PAWL_OK) return false;
  if (format != PAWL_DATA_LDAC && format != PAWL_DATA_UCI && format != PAWL_DATA_TEXT && format != PAWL_DATA_CACHE)
    return false;
  options->lda.reading.format = format;
  return true;
}

static void remember(struct pwi_train_lda_options *options, int letter) {
  options->has_topics |= letter == PWI_TRAIN_TOPICS;
  options->has_sweeps |= letter == PWI_TRAIN_SWEEPS;
  options->has_building |= letter == PWI_TRAIN_MIN_DOCUMENTS || letter == PWI_TRAIN_MAX_SHARE ||
                           letter == PWI_TRAIN_MAX_WORDS || letter == PWI_TRAIN_STOP || letter == PWI_TRAIN_MIN_LENGTH;
  options->has_steps |= letter == PWI_TRAIN_BATCH || letter == PWI_TRAIN_KAPPA || letter == PWI_TRAIN_OFFSET;
}

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_lda_options *options = context;
  switch (letter) {
  case PWI_TRAIN_STOP:
    options->has_building = true;
    if (strcmp(value, "english") == 0)
      options->lda.building.stop_english = true;
    else
      options->stop = value;
    return *value ? NULL : "english, or the name of a file";
  case PWI_TRAIN_FORMAT:
    return read_format(options, value) ? NULL : "ldac, uci, text or cache, which hold documents";
  case PWI_TRAIN_MEMORY:
    return pwi_role_size(value, &options->lda.memory) ? NULL : "a size, e.g. 512M or 8G";
  default:
    remember(options, letter);
    return pwi_train_choices_follow(choices, options, letter, value);
  }
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

/* Passes the common options to the method. */
static void hand_over(struct pwi_train_lda_options *options) {
  const struct pwi_train_base *base = &options->base;
  options->lda.job = base->job;
  options->lda.resume = base->resume;
  options->lda.workers = base->least;
  options->lda.workers_most = base->most;
  options->lda.threads = options->lda.building.threads = base->threads;
  options->lda.on_loss = base->on_loss;
  options->lda.drop_slowest = base->drop_slowest;
}

static int check(const struct pwi_train_lda_options *options) {
  const struct pwi_command *command = options->base.command;
  if (options->has_steps && options->lda.method != PAWL_LDA_SVI)
    return pwi_cli_usage(command, "--batch, --kappa and --offset need --method svi");
  if (options->lda.evaluate_every && !options->held_out.count)
    return pwi_cli_usage(command, "--evaluate-every needs documents; name them with --held-out FILE");
  if (options->has_building && options->vocabulary)
    return pwi_cli_usage(command, "--min-documents, --max-share, --max-words, --min-length and --stop-words select the "
                                  "vocabulary of text and exclude --vocab");
  return PWI_EXIT_OK;
}

bool pwi_train_lda_options_read(struct pwi_train_lda_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out) {
  *options = (struct pwi_train_lda_options){.start = NULL};
  pwi_train_base_init(&options->base, command);
  pawl_lda_options_init(&options->lda);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  if (options->lda.method == PAWL_LDA_SVI && !options->has_sweeps) options->lda.sweeps = 1;
  *exit_out = pwi_train_base_settle(&options->base);
  if (*exit_out != PWI_EXIT_OK) return false;
  hand_over(options);
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
