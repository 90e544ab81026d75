/* The options of `pawl train logistic`, `svm` and `linear`, as --help shows them. */
#include "cli/train/options.h"

#define PENALTY                                                                                                        \
  PWI_CLI_HEADING("model"),                                                                                            \
      {PWI_TRAIN_L1, "l1", "X[,X…]", "weight of |w|, which makes weights zero; several: one model each"},              \
      {PWI_TRAIN_L2, "l2", "X[,X…]", "weight of |w|^2/2 (default: 1, or 0 if --l1 is given)"}, {                       \
    PWI_TRAIN_NO_BIAS, "no-bias", NULL, "train without a constant term"                                                \
  }

#define CLASSES                                                                                                        \
  {                                                                                                                    \
    PWI_TRAIN_CLASS_WEIGHT, "class-weight", "L=W[,L=W]",                                                               \
        "count rows with label L W times; or 'balanced': give both labels equal weight"                                \
  }

#define FURTHER                                                                                                        \
  {PWI_TRAIN_START, "start", "MODEL", "start from MODEL instead of zeros"},                                            \
      {PWI_TRAIN_VALID, "valid", "FILE", "also measure the loss on the data in FILE; may be given several times"},     \
      {PWI_TRAIN_VALID_SPLIT, "valid-split", "X",                                                                      \
       "hold out this share of the rows, drawn with --seed, and measure the loss on them"},                            \
      {PWI_TRAIN_EARLY_STOP, "early-stop", "N", "stop after N rounds without a better validation loss"},               \
      {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"}, {      \
    PWI_TRAIN_MODEL_FORMAT, "model-format", "F",                                                                       \
        "format of the model: pawl, liblinear or npy (default: from its suffix, else pawl)"                            \
  }

#define METHOD                                                                                                         \
  PWI_CLI_HEADING("method"),                                                                                           \
      {PWI_TRAIN_METHOD, "method", "NAME",                                                                             \
       "method: " PWI_TRAIN_METHODS " (default: newton or blocks, chosen from the data; dual for the hinge loss)"},    \
      {PWI_TRAIN_SCALE, "scale", "HOW",                                                                                \
       "divide features by their largest value (max) or their standard deviation (deviation) in training; the model "  \
       "applies to unscaled features, the penalty to scaled ones (default: none)"},                                    \
      {PWI_TRAIN_ROUNDS, "rounds", "N", "stop after N rounds (default: 1000)"},                                        \
      {PWI_TRAIN_ROUNDS, "passes", "N", "sgd, adagrad, ftrl: number of passes over the data (default: 1)"},            \
      {PWI_TRAIN_ROUNDS, "epochs", "N", "same as --passes"},                                                           \
      {PWI_TRAIN_TOLERANCE, "tolerance", "X",                                                                          \
       "stop when the objective is at most this far above the optimum (default: 1e-3)"},                               \
      {PWI_TRAIN_TAU, "tau", "N", "blocks: number of earlier steps that may be unfinished (default: 0)"},              \
      {PWI_TRAIN_BLOCKS, "blocks", "N", "blocks: number of blocks of features (default: chosen from the data)"},       \
      {PWI_TRAIN_NO_KKT, "no-kkt", NULL, "blocks: visit every feature in every round"},                                \
      {PWI_TRAIN_RATE, "rate", "X", "learning rate, for methods that need one (default: chosen)"},                     \
      {PWI_TRAIN_SCHEDULE, "schedule", "NAME",                                                                         \
       "sgd with --share reduce: the rate is constant (default), or falls along half a cosine wave to 0: cosine"},     \
      {PWI_TRAIN_MINIBATCH, "minibatch", "N", "sgd, adagrad, ftrl: number of rows in a step (default: 1000)"}, {       \
    PWI_TRAIN_SEED, "seed", "N", "seed of the order of blocks and rows"                                                \
  }

#define DATA                                                                                                           \
  PWI_CLI_HEADING("data"),                                                                                             \
      {PWI_TRAIN_FORMAT, "format", "F",                                                                                \
       "format of the data: libsvm, vw, criteo, csv, ldac, uci, text or cache (default: detected)"},                   \
      {PWI_TRAIN_LABEL, "label", "COLUMN",                                                                             \
       "csv: column of the label, by name or by number from 1 (default: the first)"},                                  \
      {PWI_TRAIN_SEPARATOR, "separator", "C",                                                                          \
       "csv: separator of columns: a character, or comma, semicolon, tab, space or bar (default: detected)"},          \
      {PWI_TRAIN_ZERO_BASED, "zero-based", NULL, "libsvm: ids begin at 0 (detected if an id 0 occurs)"},               \
      {PWI_TRAIN_HASH_BITS, "hash-bits", "N", "number of bits of hashed names (default: 22)"},                         \
      {PWI_TRAIN_BINARY, "binary", NULL, "set every value to 1"},                                                      \
      {PWI_TRAIN_UNIT_ROWS, "unit-rows", NULL, "scale every row to length 1"}, {                                       \
    PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "skip up to N rows that cannot be parsed (default: 0)"                        \
  }

/* Who holds the weights. */
#define SHARING                                                                                                        \
  PWI_CLI_HEADING("sharing"),                                                                                          \
      {PWI_TRAIN_SHARE, "share", "HOW",                                                                                \
       "how workers share the weights: servers (default), or, for sgd, reduce: each has its own, and averages with "   \
       "its "                                                                                                          \
       "neighbours in a graph"},                                                                                       \
      PWI_TRAIN_SHARE_GRAPH, {                                                                                         \
    PWI_TRAIN_MODE, "mode", "NAME", PWI_TRAIN_REDUCE_MODES                                                             \
  }

#define KEEPING                                                                                                        \
  PWI_CLI_HEADING("state and output"),                                                                                 \
      {PWI_TRAIN_CHECKPOINT, "checkpoint", "DIR",                                                                      \
       "directory of checkpoints (default with --checkpoint-every or --resume: MODEL.checkpoints)"},                   \
      {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "S", "save a checkpoint every S seconds (default: 60)"},        \
      {PWI_TRAIN_RESUME, "resume", NULL, "continue from the newest checkpoint"}, PWI_TRAIN_SHOWN

const struct pwi_cli_option pwi_train_logistic_options[] = {PENALTY, CLASSES,         FURTHER, METHOD, DATA,
                                                            SHARING, PWI_TRAIN_PLACE, KEEPING, {0}};

const struct pwi_cli_option pwi_train_svm_options[] = {
    PENALTY, {PWI_TRAIN_LOSS, "loss", "NAME", "loss: " PWI_TRAIN_LOSSES " (default: hinge)"},
    CLASSES, FURTHER,
    METHOD,  DATA,
    SHARING, PWI_TRAIN_PLACE,
    KEEPING, {0},
};

const struct pwi_cli_option pwi_train_linear_options[] = {PENALTY, FURTHER,         METHOD,  DATA,
                                                          SHARING, PWI_TRAIN_PLACE, KEEPING, {0}};
