#include "cli/train/sparse_coding/options.h"

#include "cli/image_files.h"
#include "cli/reading.h"

const struct pwi_cli_option pwi_train_sparse_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_ATOMS, "atoms", "N", "number of atoms of the dictionary (default: 100)"},
    {PWI_TRAIN_LAMBDA, "lambda", "X",
     "weight of |a|: more gives codes with fewer non-zeros (default: min(1.2 / sqrt(features), 0.25) times the mean "
     "length of the "
     "rows)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("data"),
    {PWI_TRAIN_PATCH, "patch", "P", "images: learn from patches of P x P pixels instead of whole images"},
    {PWI_TRAIN_PATCHES, "patches", "N",
     "number of patches, drawn at random from all images (default: 100000; of --test at most 10000)"},
    {PWI_TRAIN_CENTER, "center", NULL, "subtract from each row the mean of its values, as is usual for patches"},
    {PWI_TRAIN_UNIT_ROWS, "unit-rows", NULL, "then scale every row to length 1"},
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the reconstruction of the rows or images in FILE after each epoch; may be given several times"},
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of all files: libsvm, vw, criteo, csv or cache; of images: idx or cifar (default: detected; images in the "
     "idx format if the first file has 'idx' in its name)"},
    {PWI_TRAIN_LABEL, "label", "COLUMN",
     "csv: column of the label, which is no feature, by name or by number from 1 (default: the first)"},
    {PWI_TRAIN_SEPARATOR, "separator", "C",
     "csv: separator of columns: a character, or comma, semicolon, tab, space or bar (default: detected)"},
    {PWI_TRAIN_HASH_BITS, "hash-bits", "N", "number of bits of hashed names (default: 22)"},
    {PWI_TRAIN_BINARY, "binary", NULL, "set every value to 1"},
    {PWI_TRAIN_SKIP_BAD, "skip-bad", "N", "skip up to N rows that cannot be parsed (default: 0)"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_EPOCHS, "epochs", "N", "number of passes over the rows, at most (default: 100)"},
    {PWI_TRAIN_TOLERANCE, "tolerance", "X",
     "stop when neither better codes nor better atoms alone could lower the objective by more than this share, "
     "and the last epoch has not (default: 2e-3)"},
    {PWI_TRAIN_CODE_TOLERANCE, "code-tolerance", "X",
     "duality gap at which a code is good enough, as a share of its part of the objective (default: 1e-4)"},
    {PWI_TRAIN_BATCH, "batch", "N", "number of rows in a step at first, of all workers together (default: 256)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of patches, first atoms and the order of rows (default: 1)"},
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

#define PLACE(member) offsetof(struct pwi_train_sparse_options, member)

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_ATOMS, PWI_TRAIN_COUNT32, PLACE(sparse.atoms), 1, 1 << 24, "a number of atoms, up to 16777216"},
    {PWI_TRAIN_LAMBDA, PWI_TRAIN_REAL, PLACE(sparse.lambda), 1e-30, 1e30,
     "a number above 0: without a penalty codes are not sparse"},
    {PWI_TRAIN_PATCH, PWI_TRAIN_COUNT32, PLACE(patch), 1, 65535, "a number of pixels"},
    {PWI_TRAIN_PATCHES, PWI_TRAIN_COUNT64, PLACE(patches), 1, 4e9, "a number of patches, up to 4000000000"},
    {PWI_TRAIN_CENTER, PWI_TRAIN_FLAG, PLACE(sparse.center), 0, 0, NULL},
    {PWI_TRAIN_UNIT_ROWS, PWI_TRAIN_FLAG, PLACE(sparse.unit_rows), 0, 0, NULL},
    {PWI_TRAIN_TEST, PWI_TRAIN_FILES, PLACE(test), 0, 0, NULL},
    {PWI_TRAIN_LABEL, PWI_TRAIN_TEXT, PLACE(reading.label), 0, 0, NULL},
    {PWI_TRAIN_HASH_BITS, PWI_TRAIN_COUNT32, PLACE(reading.hash_bits), 1, 62, "a number of bits, up to 62"},
    {PWI_TRAIN_BINARY, PWI_TRAIN_FLAG, PLACE(reading.binary), 0, 0, NULL},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(reading.skip_bad), 0, 1e19, "a number of rows"},
    {PWI_TRAIN_EPOCHS, PWI_TRAIN_COUNT64, PLACE(sparse.epochs), 1, 1e8, "a number of epochs, up to 100000000"},
    {PWI_TRAIN_TOLERANCE, PWI_TRAIN_REAL, PLACE(sparse.tolerance), 1e-9, 1, "a number from 1e-9 to 1"},
    {PWI_TRAIN_CODE_TOLERANCE, PWI_TRAIN_REAL, PLACE(sparse.code_tolerance), 1e-12, 0.1, "a number from 1e-12 to 0.1"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT64, PLACE(sparse.batch), 1, 1e8, "a number of rows, up to 100000000"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(sparse.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(sparse.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(sparse.checkpoint), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_COUNT64, PLACE(sparse.checkpoint_every), 1, 1e8, "a number of epochs"},
    {0},
};

static const char *read_format(struct pwi_train_sparse_options *options, const char *value) {
  if (!pawl_images_format_parse(value, &options->image_format)) return NULL;
  options->has_row_options = true;
  return pawl_data_format_parse(value, &options->reading.format) ? "libsvm, vw, criteo, csv, cache, idx or cifar"
                                                                 : NULL;
}

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_sparse_options *options = context;
  const char *wanted = pwi_train_matrix_read(&options->matrix, letter, value);
  if (wanted) return wanted;
  if (letter == PWI_TRAIN_CHECKPOINT_EVERY) options->has_checkpoints = true;
  options->has_row_options |= letter == PWI_TRAIN_LABEL || letter == PWI_TRAIN_SEPARATOR ||
                              letter == PWI_TRAIN_HASH_BITS || letter == PWI_TRAIN_BINARY ||
                              letter == PWI_TRAIN_SKIP_BAD;
  if (letter == PWI_TRAIN_FORMAT) return read_format(options, value);
  if (letter == PWI_TRAIN_SEPARATOR) return pwi_separator_read(value, &options->reading) ? NULL : PWI_SEPARATOR_WANTED;
  return NULL;
}

static int check(struct pwi_train_sparse_options *options) {
  const struct pwi_command *command = options->base.command;
  struct pawl_sparse_options sparse = options->sparse;
  char error[PAWL_SPARSE_TEXT];
  if (options->base.resume) sparse.checkpoint = "beside the model"; /* settled later */
  if (!pawl_sparse_check(&sparse, error)) return pwi_cli_usage(command, "%s", error);
  options->has_images =
      pwi_image_files_are_meant(options->base.data[0], options->reading.format, options->image_format);
  if (options->has_images && options->has_row_options)
    return pwi_cli_usage(command, "the files are images; --label, --separator, --hash-bits, --binary, --skip-bad and "
                                  "formats of rows do not apply to them");
  if (!options->has_images && options->patch)
    return pwi_cli_usage(command, "--patch is for images; are they in the idx or cifar format? Give --format");
  if (options->patches && !options->patch)
    return pwi_cli_usage(command, "--patches is the number of patches; give their size with --patch P");
  return pwi_train_matrix_settle(&options->matrix, &options->base);
}

bool pwi_train_sparse_options_read(struct pwi_train_sparse_options *options, const struct pwi_command *command,
                                   int argc, char **argv, int *exit_out) {
  *options = (struct pwi_train_sparse_options){.patch = 0};
  pwi_train_base_init(&options->base, command);
  options->base.has_matrix = true;
  pawl_sparse_options_init(&options->sparse);
  pawl_data_options_init(&options->reading);
  options->reading.labels_optional = true;
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}
