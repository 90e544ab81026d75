#include "cli/train_options.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/train_letters.h"

#define WORKERS_DEFAULT_MAX 8 /* more of them share a machine's memory and gain little */
#define JOB "train"

/* --- words and numbers -------------------------------------------------------------------------------------------- */

/* A number that is 0 or above, up to `stop`, which is stored. */
static bool read_real(const char *text, double *value_out, char **stop_out) {
  if (*text != '.' && (*text < '0' || *text > '9'))
    return false; /* strtod would skip blanks, and take inf and a sign */
  double value = strtod(text, stop_out);
  if (!(value >= 0) || isinf(value)) return false;
  *value_out = value;
  return true;
}

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
    if (values.count == PWI_TRAIN_VALUES_MAX || !read_real(text, &value, &stop) || has_value(&values, value))
      return false;
    values.at[values.count++] = value;
    text = stop;
    if (*text != ',') break;
  }
  if (*text) return false;
  *values_out = values;
  return true;
}

static bool read_count(const char *text, size_t length, uint32_t *count_out) {
  char digits[16];
  uint64_t number;
  if (length >= sizeof digits) return false;
  memcpy(digits, text, length);
  digits[length] = '\0';
  if (!pwi_cli_number(digits, &number) || number > PWI_TRAIN_WORKERS_MAX) return false;
  *count_out = (uint32_t)number;
  return true;
}

bool pwi_train_workers_read(const char *text, uint32_t *least_out, uint32_t *most_out) {
  const char *colon = strchr(text, ':');
  uint32_t least, most;
  if (!read_count(text, colon ? (size_t)(colon - text) : strlen(text), &least)) return false;
  most = least;
  if (colon && (!read_count(colon + 1, strlen(colon + 1), &most) || least == 0 || most < least)) return false;
  *least_out = least;
  *most_out = most;
  return true;
}

struct word {
  const char *name;
  int value;
};

static bool read_word(const struct word *words, const char *text, int *value_out) {
  for (; words->name; words++)
    if (strcmp(words->name, text) == 0) {
      *value_out = words->value;
      return true;
    }
  return false;
}

const char *pwi_train_number(double value, char *text_out) {
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text_out, 32, "%.*g", digits, value);
    if (strtod(text_out, NULL) == value) break;
  }
  return text_out;
}

/* --- options that are a number, a text or a flag and nothing else ------------------------------------------------- */

enum shape { FLAG, TEXT, COUNT32, COUNT64, REAL };

struct rule {
  int letter;
  enum shape shape;
  size_t place; /* in struct pwi_train_options */
  double least, most;
  const char *wanted;
};

#define PLACE(member) offsetof(struct pwi_train_options, member)

static const struct rule rules[] = {
    {PWI_TRAIN_START, TEXT, PLACE(start), 0, 0, NULL},
    {PWI_TRAIN_OUTPUT, TEXT, PLACE(output), 0, 0, NULL},
    {PWI_TRAIN_CHECKPOINT, TEXT, PLACE(checkpoints), 0, 0, NULL},
    {PWI_TRAIN_LOG, TEXT, PLACE(log), 0, 0, NULL},
    {PWI_TRAIN_TENSORBOARD, TEXT, PLACE(board), 0, 0, NULL},
    {PWI_TRAIN_LISTEN, TEXT, PLACE(listen), 0, 0, NULL},
    {PWI_TRAIN_JOB, TEXT, PLACE(linear.job), 0, 0, NULL},
    {PWI_TRAIN_LABEL, TEXT, PLACE(linear.reading.label), 0, 0, NULL},
    {PWI_TRAIN_NO_KKT, FLAG, PLACE(linear.keep_all), 0, 0, NULL},
    {PWI_TRAIN_BINARY, FLAG, PLACE(linear.reading.binary), 0, 0, NULL},
    {PWI_TRAIN_UNIT_ROWS, FLAG, PLACE(linear.reading.unit_rows), 0, 0, NULL},
    {PWI_TRAIN_RESUME, FLAG, PLACE(linear.resume), 0, 0, NULL},
    {PWI_CLI_LETTER_JSON, FLAG, PLACE(json), 0, 0, NULL},
    {PWI_TRAIN_QUIET, FLAG, PLACE(quiet), 0, 0, NULL},
    {PWI_TRAIN_EARLY_STOP, COUNT32, PLACE(linear.patience), 1, 1e9, "a number of rounds"},
    {PWI_TRAIN_MINIBATCH, COUNT32, PLACE(linear.minibatch), 1, 1e9, "a number of rows"},
    {PWI_TRAIN_TAU, COUNT32, PLACE(linear.tau), 0, 1e6, "a number of steps"},
    {PWI_TRAIN_BLOCKS, COUNT32, PLACE(linear.blocks), 1, 1e6, "a number of blocks, up to a million"},
    {PWI_TRAIN_HASH_BITS, COUNT32, PLACE(linear.reading.hash_bits), 1, 62, "a number of bits, up to 62"},
    {PWI_TRAIN_THREADS, COUNT32, PLACE(linear.threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_SERVERS, COUNT32, PLACE(servers), 1, 256, "a number of servers, up to 256"},
    {PWI_TRAIN_REPLICAS, COUNT32, PLACE(replicas), 0, 255, "a number of replicas"},
    {PWI_TRAIN_ROUNDS, COUNT64, PLACE(linear.rounds), 1, 1e15, "a number of rounds"},
    {PWI_TRAIN_SEED, COUNT64, PLACE(linear.seed), 0, 1e19, "a whole number"},
    {PWI_TRAIN_SKIP_BAD, COUNT64, PLACE(linear.reading.skip_bad), 0, 1e19, "a number of rows"},
    {PWI_TRAIN_TOLERANCE, REAL, PLACE(linear.tolerance), 1e-15, 1, "a number from 1e-15 to 1"},
    {PWI_TRAIN_RATE, REAL, PLACE(linear.rate), 1e-300, 1e300, "a number above 0"},
    {PWI_TRAIN_DROP_SLOWEST, REAL, PLACE(linear.drop_slowest), 1, 1e9, "a number above 1"},
    {PWI_TRAIN_CHECKPOINT_EVERY, REAL, PLACE(linear.checkpoint_every_s), 1e-3, 1e9, "a number of seconds above 0"},
};

static const struct rule *rule_of(int letter) {
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i].letter == letter) return &rules[i];
  return NULL;
}

static bool store_number(const struct rule *rule, void *place, const char *value) {
  uint64_t number = 0;
  double real = 0;
  char *stop = NULL;
  if (rule->shape == REAL ? !read_real(value, &real, &stop) || *stop : !pwi_cli_number(value, &number)) return false;
  if (rule->shape != REAL) real = (double)number;
  if (!(real >= rule->least) || real > rule->most) return false;
  if (rule->shape == COUNT32)
    *(uint32_t *)place = (uint32_t)number;
  else if (rule->shape == COUNT64)
    *(uint64_t *)place = number;
  else
    *(double *)place = real;
  return true;
}

/* What `value` should have been; NULL if it is good. */
static const char *follow(const struct rule *rule, struct pwi_train_options *options, const char *value) {
  void *place = (char *)options + rule->place;
  switch (rule->shape) {
  case FLAG:
    *(bool *)place = true;
    return NULL;
  case TEXT:
    *(const char **)place = value;
    return *value ? NULL : "a name";
  default:
    return store_number(rule, place, value) ? NULL : rule->wanted;
  }
}

/* --- the others --------------------------------------------------------------------------------------------------- */

static bool read_method(struct pwi_train_options *options, const char *value) {
  static const struct word words[] = {{"blocks", LINEAR_METHOD_BLOCKS},
                                      {"subgradient", LINEAR_METHOD_SUBGRADIENT},
                                      {"sgd", LINEAR_METHOD_SGD},
                                      {"adagrad", LINEAR_METHOD_ADAGRAD},
                                      {"ftrl", LINEAR_METHOD_FTRL},
                                      {"dual", LINEAR_METHOD_DUAL},
                                      {0}};
  int method;
  if (!read_word(words, value, &method)) return false;
  options->linear.method = (enum linear_method)method;
  return true;
}

static bool read_loss(struct pwi_train_options *options, const char *value) {
  static const struct word words[] = {{"hinge", LINEAR_HINGE}, {"squared-hinge", LINEAR_SQUARED_HINGE}, {0}};
  int loss;
  if (!read_word(words, value, &loss)) return false;
  options->linear.loss = (enum linear_loss)loss;
  return true;
}

static bool read_on_loss(struct pwi_train_options *options, const char *value) {
  static const struct word words[] = {
      {"replace", PAWL_LOSS_REPLACE}, {"continue", PAWL_LOSS_CONTINUE}, {"stop", PAWL_LOSS_STOP}, {0}};
  int how;
  if (!read_word(words, value, &how)) return false;
  options->linear.on_loss = (enum pawl_on_loss)how;
  return true;
}

static bool read_model_format(struct pwi_train_options *options, const char *value) {
  static const struct word words[] = {
      {"pawl", LINEAR_FORMAT_PAWL}, {"liblinear", LINEAR_FORMAT_LIBLINEAR}, {"npy", LINEAR_FORMAT_NPY}, {0}};
  int format;
  if (!read_word(words, value, &format)) return false;
  options->format = (enum linear_format)format;
  options->has_format = true;
  return true;
}

/* `LABEL=WEIGHT`, or `balanced`. */
static bool read_class(struct pwi_train_options *options, const char *value) {
  struct pwi_train_class class;
  char *stop;
  if (strcmp(value, "balanced") == 0) return options->is_balanced = true;
  class.label = strtod(value, &stop);
  if (stop == value || *stop != '=' || !isfinite(class.label)) return false;
  if (!read_real(stop + 1, &class.weight, &stop) || *stop || class.weight <= 0) return false;
  if (options->class_count == 2 || (options->class_count == 1 && options->classes[0].label == class.label))
    return false;
  options->classes[options->class_count++] = class;
  return true;
}

static bool read_valid(struct pwi_train_options *options, const char *value) {
  if (options->valid_count == PWI_TRAIN_VALID_MAX) return false;
  options->valid[options->valid_count++] = value;
  return true;
}

static const char *read_other(struct pwi_train_options *options, int letter, const char *value) {
  switch (letter) {
  case PWI_TRAIN_L1:
  case PWI_TRAIN_L2:
    return pwi_train_values_read(value, letter == PWI_TRAIN_L1 ? &options->l1 : &options->l2)
               ? NULL
               : "a number from 0 on, or up to 64 different ones with commas between them";
  case PWI_TRAIN_LOSS:
    return read_loss(options, value) ? NULL : "hinge or squared-hinge";
  case PWI_TRAIN_METHOD:
    return read_method(options, value) ? NULL : "blocks, subgradient, sgd, adagrad, ftrl or dual";
  case PWI_TRAIN_CLASS_WEIGHT:
    return read_class(options, value) ? NULL : "LABEL=WEIGHT, at most twice and for two labels, or balanced";
  case PWI_TRAIN_VALID:
    return read_valid(options, value) ? NULL : "one of the first 64 files: use a pattern";
  case PWI_TRAIN_FORMAT:
    return pawl_data_format_parse(value, &options->linear.reading.format) == PAWL_OK
               ? NULL
               : "libsvm, vw, criteo, csv, ldac, uci, text or cache";
  case PWI_TRAIN_MODEL_FORMAT:
    return read_model_format(options, value) ? NULL : "pawl, liblinear or npy";
  case PWI_TRAIN_ON_LOSS:
    return read_on_loss(options, value) ? NULL : "replace, continue or stop";
  case PWI_TRAIN_WORKERS:
    options->has_workers = true;
    return pwi_train_workers_read(value, &options->workers, &options->workers_most)
               ? NULL
               : "a number of workers, or MIN:MAX, up to 1024";
  default:
    options->linear.bias &= letter != PWI_TRAIN_NO_BIAS;
    options->has_cluster |= letter == PWI_SESSION_CLUSTER;
    return NULL;
  }
}

static bool read_option(struct pwi_train_options *options, int letter, const char *value, int *exit_out) {
  const struct rule *rule = rule_of(letter);
  const char *wanted = rule ? follow(rule, options, value) : read_other(options, letter, value);
  options->has_servers |= letter == PWI_TRAIN_SERVERS || letter == PWI_TRAIN_REPLICAS;
  if (!wanted) return pwi_session_option(&options->choice, options->command, letter, value, exit_out);
  *exit_out = pwi_cli_usage(options->command, "'%s' is not %s", value, wanted);
  return false;
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

/* Every l1 with every l2. */
static bool make_points(struct pwi_train_options *options) {
  struct pwi_train_values *l1 = &options->l1, *l2 = &options->l2;
  if (l1->count == 0 && l2->count == 0) *l2 = (struct pwi_train_values){{1}, 1};
  if (l1->count == 0) *l1 = (struct pwi_train_values){{0}, 1};
  if (l2->count == 0) *l2 = (struct pwi_train_values){{0}, 1};
  struct linear_point *points = pwi_alloc_zero(l1->count * l2->count, sizeof *points);
  if (!points) return false;
  for (size_t i = 0; i < l1->count * l2->count; i++)
    points[i] = (struct linear_point){l1->at[i / l2->count], l2->at[i % l2->count]};
  options->linear.points = points;
  options->linear.point_count = l1->count * l2->count;
  return true;
}

const char *pwi_train_mark(const struct pwi_train_options *options, size_t point, char mark_out[PWI_TRAIN_MARK_MAX]) {
  const struct linear_point *at = &options->linear.points[point];
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

static uint32_t processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 1 ? (uint32_t)count : 1;
}

/* Of a range as many are started as there are processors; the others may come by themselves. */
static void settle_workers(struct pwi_train_options *options) {
  uint32_t count = processors();
  if (options->is_launched && !options->has_workers) { /* the others of the launch */
    options->workers = options->workers_started = 0;
    options->linear.workers = options->ranks.size - 1;
    options->linear.workers_most = options->linear.workers;
    return;
  }
  if (!options->has_workers) {
    options->workers = count < WORKERS_DEFAULT_MAX ? count : WORKERS_DEFAULT_MAX;
    options->workers_most = options->workers;
  }
  uint32_t most = count < options->workers_most ? count : options->workers_most;
  options->workers_started = most > options->workers ? most : options->workers;
  bool come_by_themselves = options->workers == 0;
  options->linear.workers = come_by_themselves ? 1 : options->workers;
  options->linear.workers_most = come_by_themselves ? PWI_TRAIN_WORKERS_MAX : options->workers_most;
}

static int check(struct pwi_train_options *options) {
  const struct pwi_command *command = options->command;
  char error[LINEAR_TEXT_MAX] = "";
  if (options->has_cluster && options->has_servers)
    return pwi_cli_usage(command,
                         "--servers and --replicas are for a cluster that is started here; that at %s has its own",
                         options->choice.options.address);
  if (!options->has_cluster && options->has_workers && options->workers == 0)
    return pwi_cli_usage(command, "--workers 0 needs a cluster that others can join: --cluster ADDRESS");
  if (options->is_launched && options->has_workers)
    return pwi_cli_usage(command, "under %s its %u processes are the workers and the scheduler: leave --workers out",
                         options->ranks.launcher, options->ranks.size);
  if (options->servers && options->replicas >= options->servers)
    return pwi_cli_usage(command, "%u replicas need more servers than %u", options->replicas, options->servers);
  if (options->is_balanced && options->class_count)
    return pwi_cli_usage(command, "--class-weight is balanced or LABEL=WEIGHT, not both");
  if (options->linear.patience && !options->valid_count)
    return pwi_cli_usage(command, "--early-stop needs data to look at: --valid FILE");
  options->linear.checkpoints = options->checkpoints ? options->checkpoints : "beside the model"; /* settled later */
  if (!linear_check(&options->linear, error)) return pwi_cli_usage(command, "%s", error);
  return PWI_EXIT_OK;
}

static void init(struct pwi_train_options *options, const struct pwi_command *command, enum pwi_train_kind kind) {
  static const enum linear_loss losses[] = {
      [PWI_TRAIN_LOGISTIC] = LINEAR_LOGISTIC, [PWI_TRAIN_SVM] = LINEAR_HINGE, [PWI_TRAIN_LINEAR] = LINEAR_SQUARED};
  const char *address = getenv("PAWL_ADDRESS");
  *options = (struct pwi_train_options){.command = command, .kind = kind};
  linear_options_init(&options->linear);
  options->linear.loss = losses[kind];
  options->linear.job = JOB;
  pwi_session_choice_init(&options->choice, JOB, false);
  options->is_launched = pwi_ranks_find(&options->ranks);
  options->has_cluster = address && *address;
}

bool pwi_train_options_read(struct pwi_train_options *options, const struct pwi_command *command,
                            enum pwi_train_kind kind, int argc, char **argv, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  init(options, command, kind);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!read_option(options, letter, args.value, exit_out)) return false;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, INT32_MAX)) {
    *exit_out = args.exit_code;
    return false;
  }
  options->data = (const char *const *)argv + args.rest;
  options->data_count = (size_t)(argc - args.rest);
  options->linear.path_count = options->data_count; /* linear_check looks at how many there are */
  options->linear.paths = options->data;
  options->linear.valid_paths = options->valid;
  options->linear.valid_count = options->valid_count;
  if (!make_points(options)) {
    *exit_out = pwi_cli_failure(command, "out of memory");
    return false;
  }
  settle_workers(options);
  *exit_out = check(options);
  return *exit_out == PWI_EXIT_OK;
}

void pwi_train_options_fini(struct pwi_train_options *options) {
  pwi_free((void *)(uintptr_t)options->linear.points);
  options->linear.points = NULL;
}
