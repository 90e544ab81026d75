/* The options of `pawl train logistic`, `svm` and `linear`, as --help shows them. */
#include "cli/train/options.h"

#define PENALTY                                                                                                        \
  PWI_CLI_HEADING("what is learned"),                                                                                  \
      {PWI_TRAIN_L1, "l1", "X[,X…]", "weight of |w|, which makes weights zero; several: a model for each"},            \
      {PWI_TRAIN_L2, "l2", "X[,X…]", "weight of |w|^2/2 (default: 1, or 0 if --l1 is given)"}, {                       \
    PWI_TRAIN_NO_BIAS, "no-bias", NULL, "no constant term"                                                             \
  }

#define CLASSES                                                                                                        \
  {                                                                                                                    \
    PWI_TRAIN_CLASS_WEIGHT, "class-weight", "L=W[,L=W]",                                                               \
        "rows with label L count W times; or 'balanced': both count the same"                                          \
  }

#define FURTHER                                                                                                        \
  {PWI_TRAIN_START, "start", "MODEL", "begin with this model instead of zeros"},                                       \
      {PWI_TRAIN_VALID, "valid", "FILE", "measure the loss on this data too; may be given several times"},             \
      {PWI_TRAIN_VALID_SPLIT, "valid-split", "X",                                                                      \
       "hold out this share of the rows, and measure the loss on them;\n--seed draws which"},                          \
      {PWI_TRAIN_EARLY_STOP, "early-stop", "N", "end after N rounds without a better loss on --valid"},                \
      {PWI_TRAIN_OUTPUT, "output", "MODEL", "where the model goes (default: the data's name with .model)"}, {          \
    PWI_TRAIN_MODEL_FORMAT, "model-format", "F", "pawl, liblinear or npy (default: by the model's name, else pawl)"    \
  }

#define METHOD                                                                                                         \
  PWI_CLI_HEADING("how it is learned"),                                                                                \
      {PWI_TRAIN_METHOD, "method", "NAME",                                                                             \
       "newton, blocks, subgradient, sgd, adagrad, ftrl or dual (default: by the\ndata newton or blocks; for the "     \
       "hinge loss dual)"},                                                                                            \
      {PWI_TRAIN_SCALE, "scale", "HOW",                                                                                \
       "divide features by their largest value (max) or their standard deviation\n(deviation) while training; the "    \
       "model is of features as they are,\nthe penalty of scaled ones (default: none)"},                               \
      {PWI_TRAIN_ROUNDS, "rounds", "N", "at most so many (default: 1000); of sgd, adagrad and ftrl:"},                 \
      {PWI_TRAIN_ROUNDS, "passes", "N", "the same: how often all data is seen (default: 1)"},                          \
      {PWI_TRAIN_ROUNDS, "epochs", "N", "the same"},                                                                   \
      {PWI_TRAIN_TOLERANCE, "tolerance", "X", "end when it is at most this far above the optimum (default: 1e-3)"},    \
      {PWI_TRAIN_TAU, "tau", "N", "blocks: steps that may be under way at once (default: 0)"},                         \
      {PWI_TRAIN_BLOCKS, "blocks", "N", "blocks: of features (default: chosen from the data)"},                        \
      {PWI_TRAIN_NO_KKT, "no-kkt", NULL, "blocks: look at every feature in every round"},                              \
      {PWI_TRAIN_RATE, "rate", "X", "length of steps, where the method needs one (default: chosen)"},                  \
      {PWI_TRAIN_MINIBATCH, "minibatch", "N", "sgd, adagrad, ftrl: rows in a step (default: 1000)"}, {                 \
    PWI_TRAIN_SEED, "seed", "N", "of the order of blocks and rows"                                                     \
  }

#define DATA                                                                                                           \
  PWI_CLI_HEADING("how data is read"),                                                                                 \
      {PWI_TRAIN_FORMAT, "format", "F",                                                                                \
       "libsvm, vw, criteo, csv, ldac, uci, text or cache\n(default: by a look at the files)"},                        \
      {PWI_TRAIN_LABEL, "label", "COLUMN", "csv: the label's, by name or number (default: the first)"},                \
      {PWI_TRAIN_SEPARATOR, "separator", "C",                                                                          \
       "csv: between columns, a character or comma, semicolon, tab,\nspace or bar (default: by a look at the files)"}, \
      {PWI_TRAIN_ZERO_BASED, "zero-based", NULL, "libsvm: ids begin at 0 (noticed where an id 0 occurs)"},             \
      {PWI_TRAIN_HASH_BITS, "hash-bits", "N", "of hashed names (default: 22)"},                                        \
      {PWI_TRAIN_BINARY, "binary", NULL, "every value becomes 1"},                                                     \
      {PWI_TRAIN_UNIT_ROWS, "unit-rows", NULL, "every row is scaled to length 1"}, {                                   \
    PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "leave out up to N rows that cannot be read (default: 0)"                     \
  }

#define KEEPING                                                                                                        \
  PWI_CLI_HEADING("what is kept and shown"),                                                                           \
      {PWI_TRAIN_CHECKPOINT, "checkpoint", "DIR",                                                                      \
       "keep checkpoints there (default, with the next two:\nMODEL.checkpoints)"},                                     \
      {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "S", "so many seconds apart (default: 60)"},                    \
      {PWI_TRAIN_RESUME, "resume", NULL, "go on from the newest checkpoint"}, PWI_TRAIN_SHOWN

const struct pwi_cli_option pwi_train_logistic_options[] = {PENALTY, CLASSES,         FURTHER, METHOD,
                                                            DATA,    PWI_TRAIN_PLACE, KEEPING, {0}};

const struct pwi_cli_option pwi_train_svm_options[] = {
    PENALTY,
    {PWI_TRAIN_LOSS, "loss", "NAME", "hinge (default) or squared-hinge"},
    CLASSES,
    FURTHER,
    METHOD,
    DATA,
    PWI_TRAIN_PLACE,
    KEEPING,
    {0},
};

const struct pwi_cli_option pwi_train_linear_options[] = {PENALTY,         FURTHER, METHOD, DATA,
                                                          PWI_TRAIN_PLACE, KEEPING, {0}};
