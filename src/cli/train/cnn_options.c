#include "cli/train/cnn_options.h"

#include <string.h>

#include "cli/train/rules.h"

const struct pwi_cli_option pwi_train_cnn_list[] = {
    PWI_CLI_HEADING("model"),
    {PWI_TRAIN_NET, "model", "NAME", "net: lenet (for MNIST) or vgg (for CIFAR-10)"},
    {PWI_TRAIN_OUTPUT, "output", "MODEL", "write the model to MODEL (default: the data's name with .model)"},
    PWI_CLI_HEADING("images"),
    {PWI_TRAIN_TEST, "test", "FILE",
     "measure the error on the images in FILE after each epoch; may be given several times: images and labels of MNIST "
     "are two files"},
    {PWI_TRAIN_FORMAT, "format", "F",
     "format of all files: idx or cifar (default: idx for files that begin like idx, else cifar)"},
    PWI_CLI_HEADING("method"),
    {PWI_TRAIN_EPOCHS, "epochs", "N", "number of passes over all images (default: lenet 5, vgg 20)"},
    {PWI_TRAIN_BATCH, "batch", "N", "number of images in a step (default: lenet 64, vgg 32)"},
    {PWI_TRAIN_RATE, "rate", "X", "learning rate of the first step (default: 0.01)"},
    {PWI_TRAIN_SCHEDULE, "schedule", "NAME",
     "how the learning rate falls: cosine (default), along half a cosine wave to 0, or constant"},
    {PWI_TRAIN_MOMENTUM, "momentum", "X", "share of the last step that is repeated, below 1 (default: 0.9)"},
    {PWI_TRAIN_DECAY, "decay", "X", "weight decay (default: 0.0005)"},
    {PWI_TRAIN_SEED, "seed", "N", "seed of first weights, order and dropout (default: 1)"},
    {PWI_TRAIN_THREADS, "threads", "N", "number of threads of OpenBLAS, if it was built with threads (default: 1)"},
    PWI_CLI_HEADING("output"),
    {PWI_TRAIN_LOG, "log", "FILE", "write a JSON object for each epoch to FILE"},
    {PWI_CLI_LETTER_JSON, "json", NULL, "print the result as one JSON object"},
    {PWI_TRAIN_QUIET, "quiet", NULL, "print nothing but errors"},
    {0},
};

#define PLACE(member) offsetof(struct pwi_train_cnn_options, member)

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_NET, PWI_TRAIN_TEXT, PLACE(cnn.net), 0, 0, NULL},
    {PWI_TRAIN_OUTPUT, PWI_TRAIN_TEXT, PLACE(output), 0, 0, NULL},
    {PWI_TRAIN_LOG, PWI_TRAIN_TEXT, PLACE(log), 0, 0, NULL},
    {PWI_TRAIN_EPOCHS, PWI_TRAIN_COUNT64, PLACE(cnn.epochs), 1, 1e6, "a number of epochs, up to 1000000"},
    {PWI_TRAIN_BATCH, PWI_TRAIN_COUNT64, PLACE(cnn.batch), 1, 65536, "a number of images, up to 65536"},
    {PWI_TRAIN_RATE, PWI_TRAIN_REAL, PLACE(cnn.rate), 1e-300, 1e300, "a number above 0"},
    {PWI_TRAIN_MOMENTUM, PWI_TRAIN_REAL, PLACE(cnn.momentum), 0, 0.999999, "a number from 0 to below 1"},
    {PWI_TRAIN_DECAY, PWI_TRAIN_REAL, PLACE(cnn.decay), 0, 1e300, "a number, at least 0"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(cnn.seed), 0, 2e19, "a whole number"},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(cnn.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_CLI_LETTER_JSON, PWI_TRAIN_FLAG, PLACE(json), 0, 0, NULL},
    {PWI_TRAIN_QUIET, PWI_TRAIN_FLAG, PLACE(quiet), 0, 0, NULL},
    {0},
};

static bool read_schedule(struct pwi_train_cnn_options *options, const char *value) {
  static const struct pwi_train_word words[] = {{"cosine", PAWL_CNN_COSINE}, {"constant", PAWL_CNN_CONSTANT}, {0}};
  int schedule;
  if (!pwi_train_word_read(words, value, &schedule)) return false;
  options->cnn.schedule = (enum pawl_cnn_schedule)schedule;
  return true;
}

static bool read_test(struct pwi_train_cnn_options *options, const char *value) {
  if (options->test_count == PWI_TRAIN_TESTS_MAX) return false;
  options->test[options->test_count++] = value;
  return true;
}

static const char *read_other(struct pwi_train_cnn_options *options, int letter, const char *value) {
  switch (letter) {
  case PWI_TRAIN_SCHEDULE:
    return read_schedule(options, value) ? NULL : "cosine or constant";
  case PWI_TRAIN_TEST:
    return read_test(options, value) ? NULL : "at most 64 files; use a pattern for more";
  case PWI_TRAIN_FORMAT:
    return pawl_images_format_parse(value, &options->reading.format) ? "idx or cifar" : NULL;
  default:
    return NULL;
  }
}

bool pwi_train_cnn_options_read(struct pwi_train_cnn_options *options, const struct pwi_command *command, int argc,
                                char **argv, int *exit_out) {
  struct pwi_cli_args args;
  char error[PAWL_CNN_TEXT];
  int letter;
  *options = (struct pwi_train_cnn_options){.command = command};
  pawl_cnn_options_init(&options->cnn);
  pawl_images_options_init(&options->reading);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    const char *wanted = pwi_train_rules_follow(rules, options, letter, args.value);
    if (!wanted) wanted = read_other(options, letter, args.value);
    if (!wanted) continue;
    *exit_out = pwi_cli_bad_value(command, args.value, "%s", wanted);
    return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, INT32_MAX)) {
    *exit_out = args.exit_code;
    return false;
  }
  options->data = (const char *const *)argv + args.rest;
  options->data_count = (size_t)(argc - args.rest);
  *exit_out = PWI_EXIT_OK;
  if (!options->cnn.net)
    *exit_out = pwi_cli_usage(command, "no net was named; give --model lenet or --model vgg");
  else if (!pawl_cnn_check(&options->cnn, error))
    *exit_out = pwi_cli_usage(command, "%s", error);
  return *exit_out == PWI_EXIT_OK;
}
