#include "cli/train/metric/options.h"

#include "cli/image_files.h"
#include "cli/reading.h"

const struct pwi_cli_option pwi_train_metric_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_RANK, "rank", "R", "number of rows of W (default: 200, or the number of features if that is less)"},
    {PWI_TRAIN_K, "k", "K", "number of neighbours that classify a row (default: 3)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("data"),
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the error on the rows or images in FILE at the end; may be given several times"},
    {PWI_TRAIN_VALID_SPLIT, "valid-split", "F",
     "hold out the fraction F of the rows, drawn by the seed; the model is that with the fewest errors on them "
     "(default: 0.2)"},
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
    {PWI_TRAIN_NEIGHBOURS, "neighbours", "K",
     "number of rows of its class, and of other classes, with which a row is paired (default: 5)"},
    {PWI_TRAIN_MARGIN, "margin", "X",
     "distance between similar and dissimilar pairs, whose |Wv|^2 should be below 1 - X and above 1 (default: 0.2)"},
    {PWI_TRAIN_WEIGHT, "weight", "X", "weight of dissimilar pairs (default: 2)"},
    {PWI_TRAIN_EPOCHS, "epochs", "N",
     "number of passes over the pairs, at most; 5 epochs without fewer errors end the training (default: 20)"},
    {PWI_TRAIN_RATE, "rate", "X",
     "learning rate, relative to one that is computed from the rows (default: 0.3); an epoch that raises the objective "
     "is undone, and halves it"},
    {PWI_TRAIN_BATCH, "batch", "N", "number of pairs in a step, of all workers together (default: 256)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of the rows to hold out and of the order of pairs (default: 1)"},
    {PWI_TRAIN_THREADS, "threads", "N",
     "number of threads (default: one for each processor); the model does not depend on it"},
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

#define PLACE(member) offsetof(struct pwi_train_metric_options, member)

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_RANK, PWI_TRAIN_COUNT32, PLACE(metric.rank), 1, 1 << 20, "a number of rows, up to 1048576"},
    {PWI_TRAIN_K, PWI_TRAIN_COUNT32, PLACE(metric.k), 1, 100, "a number of neighbours, up to 100"},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_VALID_SPLIT, PWI_TRAIN_REAL, PLACE(metric.held_share), 0.01, 0.9, "a fraction from 0.01 to 0.9"},
    {PWI_TRAIN_LABEL, PWI_TRAIN_TEXT, PLACE(reading.label), 0, 0, NULL},
    {PWI_TRAIN_HASH_BITS, PWI_TRAIN_COUNT32, PLACE(reading.hash_bits), 1, 62, "a number of bits, up to 62"},
    {PWI_TRAIN_BINARY, PWI_TRAIN_FLAG, PLACE(reading.binary), 0, 0, NULL},
    {PWI_TRAIN_UNIT_ROWS, PWI_TRAIN_FLAG, PLACE(reading.unit_rows), 0, 0, NULL},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(reading.skip_bad), 0, 1e19, "a number of rows"},
    {PWI_TRAIN_NEIGHBOURS, PWI_TRAIN_COUNT32, PLACE(metric.neighbours), 1, 100, "a number of neighbours, up to 100"},
    {PWI_TRAIN_MARGIN, PWI_TRAIN_REAL, PLACE(metric.margin), 0, 1, "a number from 0 to 1"},
    {PWI_TRAIN_WEIGHT, PWI_TRAIN_REAL, PLACE(metric.weight), 1e-6, 1e6, "a number from 1e-6 to 1e6"},
    {PWI_TRAIN_EPOCHS, PWI_TRAIN_COUNT64, PLACE(metric.epochs), 1, 1e8, "a number of epochs, up to 100000000"},
    {PWI_TRAIN_RATE, PWI_TRAIN_REAL, PLACE(metric.rate), 1e-9, 1e9, "a number from 1e-9 to 1e9"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT64, PLACE(metric.batch), 1, 1e6, "a number of pairs, up to 1000000"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(metric.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(metric.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(metric.checkpoint), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_COUNT64, PLACE(metric.checkpoint_every), 1, 1e8, "a number of epochs"},
    {0},
};

static const char *read_format(struct pwi_train_metric_options *options, const char *value) {
  if (!pawl_images_format_parse(value, &options->image_format)) return NULL;
  options->has_row_options = true;
  return pawl_data_format_parse(value, &options->reading.format) ? "libsvm, vw, criteo, csv, cache, idx or cifar"
                                                                 : NULL;
}

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_metric_options *options = context;
  const char *wanted = pwi_train_matrix_read(&options->matrix, letter, value);
  if (wanted) return wanted;
  if (letter == PWI_TRAIN_CHECKPOINT_EVERY) options->has_checkpoints = true;
  options->has_row_options |= letter == PWI_TRAIN_LABEL || letter == PWI_TRAIN_SEPARATOR ||
                              letter == PWI_TRAIN_HASH_BITS || letter == PWI_TRAIN_BINARY ||
                              letter == PWI_TRAIN_UNIT_ROWS || letter == PWI_TRAIN_SKIP_BAD;
  if (letter == PWI_TRAIN_FORMAT) return read_format(options, value);
  if (letter == PWI_TRAIN_SEPARATOR) return pwi_separator_read(value, &options->reading) ? NULL : PWI_SEPARATOR_WANTED;
  return NULL;
}

static int check(struct pwi_train_metric_options *options) {
  const struct pwi_command *command = options->base.command;
  struct pawl_metric_options metric = options->metric;
  char error[PAWL_METRIC_TEXT];
  if (options->base.resume) metric.checkpoint = "beside the model"; /* settled later */
  if (!pawl_metric_check(&metric, error)) return pwi_cli_usage(command, "%s", error);
  options->has_images =
      pwi_image_files_are_meant(options->base.data[0], options->reading.format, options->image_format);
  if (options->has_images && options->has_row_options)
    return pwi_cli_usage(command, "the files are images; --label, --separator, --hash-bits, --binary, --unit-rows, "
                                  "--skip-bad and formats of rows do not apply to them");
  return pwi_train_matrix_settle(&options->matrix, &options->base);
}

bool pwi_train_metric_options_read(struct pwi_train_metric_options *options, const struct pwi_command *command,
                                   int argc, char **argv, int *exit_out) {
  *options = (struct pwi_train_metric_options){.has_images = false};
  pwi_train_base_init(&options->base, command);
  options->base.has_matrix = true;
  pawl_metric_options_init(&options->metric);
  pawl_data_options_init(&options->reading);
  options->reading.labels_optional = true; /* rows without a label are left out */
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
