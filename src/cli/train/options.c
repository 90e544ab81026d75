#include "cli/train/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/reading.h"

/* --- words and numbers -------------------------------------------------------------------------------------------- */

static bool has_value(const struct pwi_train_values *values, double value) {
  for (size_t i = 0; i < values->count; i++)
    if (values->at[i] == value) return true;
  return false;
}

bool pwi_train_values_read(const char *text, struct pwi_train_values *values_out) {
  struct pwi_train_values values = {.count = 0};
  for (;; text++) {
    char *stop;
    double value;
    if (values.count == PWI_TRAIN_VALUES_MAX || !pwi_train_real_read(text, &value, &stop) || has_value(&values, value))
      return false;
    values.at[values.count++] = value;
    text = stop;
    if (*text != ',') break;
  }
  if (*text) return false;
  *values_out = values;
  return true;
}

const char *pwi_train_number(double value, char *text_out) {
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text_out, 32, "%.*g", digits, value);
    if (strtod(text_out, NULL) == value) break;
  }
  return text_out;
}

/* --- options that are a number, a text or a flag and nothing else ------------------------------------------------- */

#define PLACE(member) offsetof(struct pwi_train_options, member)

static const struct pwi_train_word hinges[] = {
    {"hinge", PAWL_LINEAR_HINGE}, {"squared-hinge", PAWL_LINEAR_SQUARED_HINGE}, {0}};
static const struct pwi_train_word scales[] = {
    {"none", PAWL_LINEAR_SCALE_NONE}, {"max", PAWL_LINEAR_SCALE_MAX}, {"deviation", PAWL_LINEAR_SCALE_DEVIATION}, {0}};
static const struct pwi_train_word formats[] = {{"pawl", PAWL_LINEAR_FORMAT_PAWL},
                                                {"liblinear", PAWL_LINEAR_FORMAT_LIBLINEAR},
                                                {"npy", PAWL_LINEAR_FORMAT_NPY},
                                                {0}};

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_START, PWI_TRAIN_TEXT, PLACE(start), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT, PWI_TRAIN_TEXT, PLACE(checkpoints), 0, 0, NULL},
    {PWI_TRAIN_LABEL, PWI_TRAIN_TEXT, PLACE(linear.reading.label), 0, 0, NULL},
    {PWI_TRAIN_NO_KKT, PWI_TRAIN_FLAG, PLACE(linear.keep_all), 0, 0, NULL},
    {PWI_TRAIN_BINARY, PWI_TRAIN_FLAG, PLACE(linear.reading.binary), 0, 0, NULL},
    {PWI_TRAIN_ZERO_BASED, PWI_TRAIN_FLAG, PLACE(linear.zero_based), 0, 0, NULL},
    {PWI_TRAIN_UNIT_ROWS, PWI_TRAIN_FLAG, PLACE(linear.reading.unit_rows), 0, 0, NULL},
    {PWI_TRAIN_EARLY_STOP, PWI_TRAIN_COUNT32, PLACE(linear.patience), 1, 1e9, "a number of rounds"},
    {PWI_TRAIN_MINIBATCH, PWI_TRAIN_COUNT32, PLACE(linear.minibatch), 1, 1e9, "a number of rows"},
    {PWI_TRAIN_TAU, PWI_TRAIN_COUNT32, PLACE(linear.tau), 0, 1e6, "a number of steps"},
    {PWI_TRAIN_BLOCKS, PWI_TRAIN_COUNT32, PLACE(linear.blocks), 1, 1e6, "a number of blocks, up to a million"},
    {PWI_TRAIN_HASH_BITS, PWI_TRAIN_COUNT32, PLACE(linear.reading.hash_bits), 1, 62, "a number of bits, up to 62"},
    {PWI_TRAIN_ROUNDS, PWI_TRAIN_COUNT64, PLACE(linear.rounds), 1, 1e15, "a number of rounds"},
    {PWI_TRAIN_SEED, PWI_TRAIN_COUNT64, PLACE(linear.seed), 0, 1e19, "a whole number"},
    {PWI_TRAIN_SKIP_BAD, PWI_TRAIN_COUNT64, PLACE(linear.reading.skip_bad), 0, 1e19, "a number of rows"},
    {PWI_TRAIN_TOLERANCE, PWI_TRAIN_REAL, PLACE(linear.tolerance), 1e-15, 1, "a number from 1e-15 to 1"},
    {PWI_TRAIN_VALID_SPLIT, PWI_TRAIN_REAL, PLACE(linear.valid_split), 1e-9, 0.999999,
     "a share of the rows, above 0 and below 1"},
    {PWI_TRAIN_RATE, PWI_TRAIN_REAL, PLACE(linear.rate), 1e-300, 1e300, "a number above 0"},
    {PWI_TRAIN_CHECKPOINT_EVERY, PWI_TRAIN_REAL, PLACE(linear.checkpoint_every_s), 1e-3, 1e9,
     "a number of seconds above 0"},
    {PWI_TRAIN_VALID, PWI_TRAIN_FILES, PLACE(valid), 0, 0, NULL},
    {0},
};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_LOSS, PLACE(linear.loss), hinges, PWI_TRAIN_LOSSES},
    {PWI_TRAIN_SCALE, PLACE(linear.scale), scales, "none, max or deviation"},
    {PWI_TRAIN_MODEL_FORMAT, PLACE(format), formats, "pawl, liblinear or npy"},
    {0},
};

/* --- the others --------------------------------------------------------------------------------------------------- */

static bool read_method(struct pwi_train_options *options, const char *value) {
  int method = PAWL_LINEAR_METHOD_AUTO + 1;
  const char *name = "";
  for (; *(name = pawl_linear_method_name((enum pawl_linear_method)method)); method++)
    if (strcmp(name, value) == 0) break;
  options->linear.method = (enum pawl_linear_method)method;
  return *name != 0;
}

static bool read_class(struct pwi_train_options *options, const char *value, char **stop_out) {
  struct pwi_train_class class;
  char *stop;
  class.label = strtod(value, &stop);
  if (stop == value || *stop != '=' || !isfinite(class.label)) return false;
  if (!pwi_train_real_read(stop + 1, &class.weight, &stop) || class.weight <= 0) return false;
  if (options->class_count == 2 || (options->class_count == 1 && options->classes[0].label == class.label))
    return false;
  options->classes[options->class_count++] = class;
  *stop_out = stop;
  return true;
}

/* Parses `LABEL=WEIGHT`, two of them separated by a comma, or `balanced`. */
static bool read_classes(struct pwi_train_options *options, const char *value) {
  char *stop;
  if (strcmp(value, "balanced") == 0) return options->is_balanced = true;
  for (;; value = stop + 1) {
    if (!read_class(options, value, &stop)) return false;
    if (*stop != ',') return *stop == 0;
  }
}

static bool read_schedule(struct pwi_train_options *options, const char *value) {
  static const struct pwi_train_word words[] = {{"constant", false}, {"cosine", true}, {0}};
  int falls;
  if (!pwi_train_word_read(words, value, &falls)) return false;
  options->linear.falls = falls;
  return true;
}

static const char *read_other(void *context, int letter, const char *value) {
  struct pwi_train_options *options = context;
  switch (letter) {
  case PWI_TRAIN_SCHEDULE:
    return read_schedule(options, value) ? NULL : "constant or cosine";
  case PWI_TRAIN_L1:
  case PWI_TRAIN_L2:
    return pwi_train_values_read(value, letter == PWI_TRAIN_L1 ? &options->l1 : &options->l2)
               ? NULL
               : "a number, at least 0, or up to 64 different ones separated by commas";
  case PWI_TRAIN_METHOD:
    return read_method(options, value) ? NULL : PWI_TRAIN_METHODS;
  case PWI_TRAIN_CLASS_WEIGHT:
    return read_classes(options, value) ? NULL : "LABEL=WEIGHT, two of them separated by a comma, or balanced";
  case PWI_TRAIN_FORMAT:
    return pawl_data_format_parse(value, &options->linear.reading.format) == PAWL_OK
               ? NULL
               : "libsvm, vw, criteo, csv, ldac, uci, text or cache";
  case PWI_TRAIN_SEPARATOR:
    return pwi_separator_read(value, &options->linear.reading) ? NULL : PWI_SEPARATOR_WANTED;
  default:
    options->has_format |= letter == PWI_TRAIN_MODEL_FORMAT;
    options->linear.bias &= letter != PWI_TRAIN_NO_BIAS;
    return pwi_train_choices_follow(choices, options, letter, value);
  }
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

/* Combines every l1 with every l2. */
static bool make_points(struct pwi_train_options *options) {
  struct pwi_train_values *l1 = &options->l1, *l2 = &options->l2;
  if (l1->count == 0 && l2->count == 0) *l2 = (struct pwi_train_values){{1}, 1};
  if (l1->count == 0) *l1 = (struct pwi_train_values){{0}, 1};
  if (l2->count == 0) *l2 = (struct pwi_train_values){{0}, 1};
  struct pawl_linear_point *points = pwi_alloc_zero(l1->count * l2->count, sizeof *points);
  if (!points) return false;
  for (size_t i = 0; i < l1->count * l2->count; i++)
    points[i] = (struct pawl_linear_point){l1->at[i / l2->count], l2->at[i % l2->count]};
  options->linear.points = points;
  options->linear.point_count = l1->count * l2->count;
  return true;
}

const char *pwi_train_mark(const struct pwi_train_options *options, size_t point, char mark_out[PWI_TRAIN_MARK_MAX]) {
  const struct pawl_linear_point *at = &options->linear.points[point];
  char l1[32], l2[32];
  pwi_train_number(at->l1, l1);
  pwi_train_number(at->l2, l2);
  mark_out[0] = '\0';
  if (options->l1.count > 1 && options->l2.count > 1)
    snprintf(mark_out, PWI_TRAIN_MARK_MAX, "l1=%.24s.l2=%.24s", l1, l2);
  else if (options->l1.count > 1)
    snprintf(mark_out, PWI_TRAIN_MARK_MAX, "l1=%s", l1);
  else if (options->l2.count > 1)
    snprintf(mark_out, PWI_TRAIN_MARK_MAX, "l2=%s", l2);
  return mark_out;
}

/* Passes the common options to the method. */
static void hand_over(struct pwi_train_options *options) {
  const struct pwi_train_base *base = &options->base;
  options->linear.job = base->job;
  options->linear.resume = base->resume;
  options->linear.workers = base->least;
  options->linear.workers_most = base->most;
  options->linear.threads = base->threads;
  options->linear.on_loss = base->on_loss;
  options->linear.drop_slowest = base->drop_slowest;
  options->linear.share = pwi_train_base_reduces(base) ? PAWL_LINEAR_REDUCE : PAWL_LINEAR_SERVERS;
  options->linear.graph = base->graph;
  options->linear.mode = base->mode;
}

static int check(struct pwi_train_options *options) {
  const struct pwi_command *command = options->base.command;
  char error[PAWL_LINEAR_TEXT] = "";
  if (options->is_balanced && options->class_count)
    return pwi_cli_usage(command, "--class-weight is either balanced or LABEL=WEIGHT, not both");
  if (options->linear.patience && !options->valid.count && options->linear.valid_split == 0)
    return pwi_cli_usage(command, "--early-stop needs validation data; give --valid FILE or --valid-split SHARE");
  bool has_checkpoints = options->checkpoints || options->base.resume || options->linear.checkpoint_every_s > 0;
  if (has_checkpoints || !pwi_train_base_reduces(&options->base))
    options->linear.checkpoints = options->checkpoints ? options->checkpoints : "beside the model"; /* settled later */
  if (!pawl_linear_check(&options->linear, error)) return pwi_cli_usage(command, "%s", error);
  return PWI_EXIT_OK;
}

static void init(struct pwi_train_options *options, const struct pwi_command *command, enum pwi_train_kind kind) {
  static const enum pawl_linear_loss losses[] = {[PWI_TRAIN_LOGISTIC] = PAWL_LINEAR_LOGISTIC,
                                                 [PWI_TRAIN_SVM] = PAWL_LINEAR_HINGE,
                                                 [PWI_TRAIN_LINEAR] = PAWL_LINEAR_SQUARED};
  *options = (struct pwi_train_options){.kind = kind};
  pwi_train_base_init(&options->base, command);
  pawl_linear_options_init(&options->linear);
  options->linear.loss = losses[kind];
}

bool pwi_train_options_read(struct pwi_train_options *options, const struct pwi_command *command,
                            enum pwi_train_kind kind, int argc, char **argv, int *exit_out) {
  init(options, command, kind);
  if (!pwi_train_base_read(&options->base, rules, read_other, argc, argv, exit_out)) return false;
  options->linear.path_count = options->base.data_count; /* pawl_linear_check needs the number of paths */
  options->linear.paths = options->base.data;
  options->linear.valid_paths = options->valid.at;
  options->linear.valid_count = options->valid.count;
  if (!make_points(options)) {
    *exit_out = pwi_cli_failure(command, "out of memory");
    return false;
  }
  if (options->base.share == PWI_TRAIN_SHARE_NONE) {
    *exit_out =
        pwi_cli_usage(command, "linear models are shared by servers or by reduce; give --share servers or reduce");
    return false;
  }
  *exit_out = pwi_train_base_settle(&options->base);
  if (*exit_out != PWI_EXIT_OK) return false;
  hand_over(options);
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}

void pwi_train_options_fini(struct pwi_train_options *options) {
  pwi_free((void *)(uintptr_t)options->linear.points);
  options->linear.points = NULL;
}
