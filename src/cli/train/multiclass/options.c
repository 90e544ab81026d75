#include "cli/train/multiclass/options.h"

#include "cli/image_files.h"
#include "cli/reading.h"
#include "cli/train/rules.h"

const struct pwi_cli_option pwi_train_multiclass_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_L2, "l2", "X", "weight of |W|^2/2 (default: 1)"},
    {PWI_TRAIN_NO_BIAS, "no-bias", NULL, "train without constant terms"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("data"),
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the error on the rows or images in FILE after each epoch; may be given several times"},
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of all files: libsvm, vw, criteo, csv or cache; of images: idx or cifar (default: detected; images in the "
     "idx format if the first file has 'idx' in its name)"},
    {PWI_TRAIN_LABEL, "label", "COLUMN", "csv: column of the label, by name or by number from 1 (default: the first)"},
    {PWI_TRAIN_SEPARATOR, "separator", "C",
     "csv: separator of columns: a character, or comma, semicolon, tab, space or bar (default: detected)"},
    {PWI_TRAIN_HASH_BITS, "hash-bits", "N", "number of bits of hashed names (default: 22)"},
    {PWI_TRAIN_BINARY, "binary", NULL, "set every value to 1"},
    {PWI_TRAIN_UNIT_ROWS, "unit-rows", NULL, "scale every row to length 1"},
    {PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "skip up to N rows that cannot be parsed (default: 0)"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_METHOD, "method", "NAME",
     "method: sdca (default), dual coordinate ascent, which stops at the tolerance, or sgd, gradient descent on "
     "batches"},
    {PWI_TRAIN_EPOCHS, "epochs", "N", "number of passes over the rows; sdca: at most (default: sdca 1000, sgd 20)"},
    {PWI_TRAIN_TOLERANCE, "tolerance", "X",
     "stop when the objective is proved to be at most this share above the optimum (default: sdca 1e-3, sgd none)"},
    {PWI_TRAIN_BATCH, "batch", "N", "sgd: number of rows in a step, of all workers together (default: 64)"},
    {PWI_TRAIN_RATE, "rate", "X", "sgd: learning rate of the first step (default: chosen from the rows)"},
    {PWI_TRAIN_SCHEDULE, "schedule", "NAME",
     "sgd: how the learning rate falls: cosine (default), along half a cosine wave to 0, inverse or constant"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of the order of rows (default: 1)"},
    {PWI_TRAIN_THREADS, "threads", "N",
     "number of threads that read and measure (default: one for each processor); the model does not depend on it"},
    PWI_TRAIN_MATRIX_PLACE,
    PWI_CLI_HEADING("state and output"),
    {PWI_TRAIN_CHECKPOINT, "checkpoint", "FILE",
     "save the state to FILE (default with --checkpoint-every or --resume: MODEL.checkpoint)"},
    {PWI_TRAIN_CHECKPOINT_EVERY, "checkpoint-every", "N", "save the state every N epochs (default: 1)"},
    {PWI_TRAIN_RESUME, "resume", NULL,
     "continue from the checkpoint; the model is the same as without an interruption"},
    {PWI_TRAIN_LOG, "log", "FILE", "write a JSON object for each epoch to FILE"},
    {PWI_CLI_LETTER_JSON, "json", NULL, "print the result as one JSON object"},
    {PWI_TRAIN_QUIET, "quiet", NULL, "print nothing but errors"},
    {0},
};

#define PLACE(member) offsetof(struct pwi_train_multiclass_options, member)

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_L2, PWI_TRAIN_REAL, PLACE(mlr.l2), 0, 1e15, "a number from 0 to 1e15"},
    {PWI_TRAIN_NO_BIAS, PWI_TRAIN_FLAG, PLACE(mlr.no_bias), 0, 0, NULL},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_LABEL, PWI_TRAIN_TEXT, PLACE(reading.label), 0, 0, NULL},
    {PWI_TRAIN_HASH_BITS, PWI_TRAIN_COUNT32, PLACE(reading.hash_bits), 1, 62, "a number of bits, up to 62"},
    {PWI_TRAIN_BINARY, PWI_TRAIN_FLAG, PLACE(reading.binary), 0, 0, NULL},
    {PWI_TRAIN_UNIT_ROWS, PWI_TRAIN_FLAG, PLACE(reading.unit_rows), 0, 0, NULL},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(reading.skip_bad), 0, 1e19, "a number of rows"},
    {PWI_TRAIN_EPOCHS, PWI_TRAIN_COUNT64, PLACE(mlr.epochs), 1, 1e8, "a number of epochs, up to 100000000"},
    {PWI_TRAIN_TOLERANCE, PWI_TRAIN_REAL, PLACE(mlr.tolerance), 1e-12, 1, "a number from 1e-12 to 1"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT64, PLACE(mlr.batch), 1, 1e8, "a number of rows, up to 100000000"},
    {PWI_TRAIN_RATE, PWI_TRAIN_REAL, PLACE(mlr.rate), 1e-30, 1e30, "a number from 1e-30 to 1e30"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(mlr.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(mlr.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(mlr.checkpoint), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_COUNT64, PLACE(mlr.checkpoint_every), 1, 1e8, "a number of epochs"},
    {0},
};

static const struct pwi_train_word methods[] = {{"sdca", PAWL_MLR_SDCA}, {"sgd", PAWL_MLR_SGD}, {0}};
static const struct pwi_train_word schedules[] = {
    {"cosine", PAWL_MLR_COSINE}, {"inverse", PAWL_MLR_INVERSE}, {"constant", PAWL_MLR_CONSTANT}, {0}};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_METHOD, PLACE(mlr.method), methods, "sdca or sgd"},
    {PWI_TRAIN_SCHEDULE, PLACE(mlr.schedule), schedules, "cosine, inverse or constant"},
    {0},
};

static const char *read_format(struct pwi_train_multiclass_options *options, const char *value) {
  if (!pawl_images_format_parse(value, &options->image_format)) return NULL;
  options->has_row_options = true;
  return pawl_data_format_parse(value, &options->reading.format) ? "libsvm, vw, criteo, csv, cache, idx or cifar"
                                                                 : NULL;
}

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_multiclass_options *options = context;
  const char *wanted = pwi_train_matrix_read(&options->matrix, letter, value);
  if (wanted) return wanted;
  if (letter == PWI_TRAIN_CHECKPOINT_EVERY) options->has_checkpoints = true;
  options->has_row_options |= letter == PWI_TRAIN_LABEL || letter == PWI_TRAIN_SEPARATOR ||
                              letter == PWI_TRAIN_HASH_BITS || letter == PWI_TRAIN_BINARY ||
                              letter == PWI_TRAIN_UNIT_ROWS || letter == PWI_TRAIN_SKIP_BAD;
  if (letter == PWI_TRAIN_FORMAT) return read_format(options, value);
  if (letter == PWI_TRAIN_SEPARATOR) return pwi_separator_read(value, &options->reading) ? NULL : PWI_SEPARATOR_WANTED;
  return pwi_train_choices_follow(choices, options, letter, value);
}

bool pwi_train_multiclass_has_images(const struct pwi_train_multiclass_options *options) {
  return pwi_image_files_are_meant(options->base.data[0], options->reading.format, options->image_format);
}

static int check(struct pwi_train_multiclass_options *options) {
  const struct pwi_command *command = options->base.command;
  struct pawl_mlr_options mlr = options->mlr;
  char error[PAWL_MLR_TEXT];
  if (options->base.resume) mlr.checkpoint = "beside the model"; /* settled later */
  if (!pawl_mlr_check(&mlr, error)) return pwi_cli_usage(command, "%s", error);
  if (pwi_train_multiclass_has_images(options) && options->has_row_options)
    return pwi_cli_usage(command, "the files are images; --label, --separator, --hash-bits, --binary, --unit-rows, "
                                  "--skip-bad and formats of rows do not apply to them");
  return pwi_train_matrix_settle(&options->matrix, &options->base);
}

bool pwi_train_multiclass_options_read(struct pwi_train_multiclass_options *options, const struct pwi_command *command,
                                       int argc, char **argv, int *exit_out) {
  *options = (struct pwi_train_multiclass_options){.has_checkpoints = false};
  pwi_train_base_init(&options->base, command);
  options->base.has_matrix = true;
  pawl_mlr_options_init(&options->mlr);
  pawl_data_options_init(&options->reading);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
