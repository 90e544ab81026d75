/* `pawl model`: inspects models, and converts linear ones. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/bpmf.h>
#include <pawl/cnn.h>
#include <pawl/linear_model.h>
#include <pawl/metric.h>
#include <pawl/mlr.h>
#include <pawl/sparse_coding.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/apart.h"
#include "cli/cli.h"
#include "cli/models/model_bpmf.h"
#include "cli/models/model_cnn.h"
#include "cli/models/model_metric.h"
#include "cli/models/model_mlr.h"
#include "cli/models/model_sparse.h"

#define LETTER_VOCABULARY 300
#define LETTER_FORMAT 301
#define TOP_DEFAULT 10

static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* --- the largest weights ---------------------------------------------------------------------------------------------------- */

struct model_weight {
  uint64_t id;
  double weight;
  size_t place; /* index in the model */
  char *name;   /* NULL: it has none */
};

struct top {
  struct model_weight *weights; /* the largest first */
  size_t count;
};

static int by_size(const void *a, const void *b) {
  const struct model_weight *one = a, *other = b;
  double left = fabs(one->weight), right = fabs(other->weight);
  if (left != right) return left < right ? 1 : -1;
  return one->id < other->id ? -1 : one->id > other->id;
}

static int by_id(const void *a, const void *b) {
  const struct model_weight *one = a, *other = b;
  return one->id < other->id ? -1 : one->id > other->id;
}

static void fini_top(struct top *top) {
  for (size_t i = 0; i < top->count; i++) free(top->weights[i].name);
  pwi_free(top->weights);
}

static bool find_top(const struct pawl_linear_model *model, size_t count, size_t wanted, struct top *top) {
  const uint64_t *ids = pawl_linear_model_ids(model);
  const double *weights = pawl_linear_model_weights(model);
  top->weights = pwi_alloc_zero(count ? count : 1, sizeof *top->weights);
  if (!top->weights) return false;
  for (size_t i = 0; i < count; i++)
    top->weights[i] = (struct model_weight){.id = ids[i], .weight = weights[i], .place = i};
  qsort(top->weights, count, sizeof *top->weights, by_size);
  top->count = count < wanted ? count : wanted;
  for (size_t i = 0; i < top->count; i++) {
    const char *name = pawl_linear_model_name(model, top->weights[i].place);
    if (name && !(top->weights[i].name = strdup(name))) return false;
  }
  return true;
}

/* Reads the names of features: line i, counted from `first`, names feature i. Sorts the weights by id for one
 * pass through the file, then by size again. */
static bool read_names(FILE *file, uint64_t first, struct top *top) {
  char *line = NULL;
  size_t room = 0, next = 0;
  ssize_t length;
  qsort(top->weights, top->count, sizeof *top->weights, by_id);
  for (uint64_t id = first; next < top->count && (length = getline(&line, &room, file)) >= 0; id++) {
    if (id != top->weights[next].id) continue;
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = 0;
    free(top->weights[next].name);
    top->weights[next++].name = strdup(line);
  }
  bool is_fine = !ferror(file);
  free(line);
  qsort(top->weights, top->count, sizeof *top->weights, by_size);
  return is_fine;
}

static int name_top(const struct pwi_command *command, const char *path, uint64_t first, struct top *top) {
  FILE *file = fopen(path, "r");
  bool is_fine = file && read_names(file, first, top);
  int number = errno;
  if (file) fclose(file);
  return is_fine ? PWI_EXIT_OK : pwi_cli_failure(command, "cannot read %s: %s", path, strerror(number));
}

/* --- show --------------------------------------------------------------------------------------------------------------------- */

static void print_penalty(const struct pawl_linear_about *about) {
  if (isnan(about->l1) || isnan(about->l2))
    printf("%-12s %s, of unknown weight\n", "penalty", isnan(about->l1) ? "l1" : "l2");
  else
    printf("%-12s l1 %.9g, l2 %.9g%s\n", "penalty", about->l1, about->l2,
           about->scale == PAWL_LINEAR_SCALE_MAX ? ", on weights of features divided by their largest value"
           : about->scale == PAWL_LINEAR_SCALE_DEVIATION
               ? ", on weights of features divided by their standard deviation"
               : "");
}

static void print_rows_read(const struct pawl_linear_about *about) {
  if (about->hash_bits) printf("%-12s hashed to %" PRIu32 " bits\n", "names", about->hash_bits);
  if (about->binary || about->unit_rows)
    printf("%-12s %s%s%s\n", "rows", about->binary ? "every value set to 1" : "",
           about->binary && about->unit_rows ? ", then " : "", about->unit_rows ? "scaled to length 1" : "");
}

static void print_model(const struct pawl_linear_about *about, const struct top *top) {
  printf("%-12s %s%s\n", "loss", pawl_linear_loss_name(about->loss), about->is_regression ? ", regression" : "");
  if (!about->is_regression)
    printf("%-12s %.9g where the score is positive, else %.9g\n", "labels", about->labels[1], about->labels[0]);
  print_penalty(about);
  if (about->class_weights[0] != 1 || about->class_weights[1] != 1)
    printf("%-12s %.9g for %.9g, %.9g for %.9g\n", "class weights", about->class_weights[0], about->labels[0],
           about->class_weights[1], about->labels[1]);
  printf("%-12s %" PRIu64 "%s\n"
         "%-12s %zu non-zero\n",
         "features", pawl_linear_width(about), about->zero_based ? ", numbered from 0" : "", "weights",
         about->nonzeros);
  if (about->has_bias) printf("%-12s %.9g\n", "bias", about->bias);
  print_rows_read(about);
  if (!isnan(about->objective)) printf("%-12s %.10g at the end of training\n", "objective", about->objective);
  if (top->count) printf("\n%20s %14s\n", "feature", "weight");
  for (size_t i = 0; i < top->count; i++)
    printf("%20" PRIu64 " %14.6g%s%s\n", top->weights[i].id, top->weights[i].weight, top->weights[i].name ? "  " : "",
           top->weights[i].name ? top->weights[i].name : "");
}

static json_t *top_json(const struct top *top) {
  json_t *list = json_array();
  for (size_t i = 0; i < top->count; i++) {
    const struct model_weight *one = &top->weights[i];
    json_t *object = json_pack("{s:I, s:o}", "id", (json_int_t)one->id, "weight", real(one->weight));
    if (one->name) json_object_set_new(object, "name", pwi_json_string(one->name));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *model_json(const struct pawl_linear_about *about, const struct top *top) {
  json_t *labels = about->is_regression ? json_null() : json_pack("[f, f]", about->labels[0], about->labels[1]);
  return json_pack("{s:s, s:b, s:o, s:o, s:o, s:[f, f], s:I, s:b, s:I, s:o, s:I, s:b, s:b, s:s, s:o, s:o}", "loss",
                   pawl_linear_loss_name(about->loss), "regression", (int)about->is_regression, "labels", labels, "l1",
                   real(about->l1), "l2", real(about->l2), "class_weights", about->class_weights[0],
                   about->class_weights[1], "features", (json_int_t)pawl_linear_width(about), "zero_based",
                   (int)about->zero_based, "nnz", (json_int_t)about->nonzeros, "bias",
                   about->has_bias ? real(about->bias) : json_null(), "hash_bits", (json_int_t)about->hash_bits,
                   "binary", (int)about->binary, "unit_rows", (int)about->unit_rows, "scale",
                   pawl_linear_scale_name(about->scale), "objective", real(about->objective), "top", top_json(top));
}

struct model_show {
  const struct pwi_command *command;
  const char *path, *vocabulary;
  uint64_t top;
  bool json;
};

static int show_model(const struct model_show *show, const struct pawl_linear_model *model) {
  struct pawl_linear_about about;
  struct top top = {0};
  int exit_code = PWI_EXIT_OK;
  pawl_linear_model_about(model, &about);
  if (!find_top(model, about.nonzeros, (size_t)show->top, &top)) return pwi_cli_failure(show->command, "out of memory");
  if (show->vocabulary) exit_code = name_top(show->command, show->vocabulary, about.zero_based ? 0 : 1, &top);
  if (exit_code == PWI_EXIT_OK && show->json)
    exit_code = pwi_cli_print_json(show->command, model_json(&about, &top));
  else if (exit_code == PWI_EXIT_OK)
    print_model(&about, &top);
  fini_top(&top);
  return exit_code;
}

static int run_show(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct model_show show = {.command = command, .top = TOP_DEFAULT};
  struct pawl_linear_model *model;
  char error[PAWL_LINEAR_TEXT];
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == LETTER_VOCABULARY) show.vocabulary = args.value;
    if (letter == PWI_CLI_LETTER_JSON) show.json = true;
    if (letter == 'n' && !pwi_cli_number(args.value, &show.top))
      return pwi_cli_bad_value(command, args.value, "a number of weights");
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  show.path = argv[args.rest];
  if (pawl_cnn_model_is(show.path)) return pwi_model_cnn_show(command, show.path, show.json);
  if (pawl_bpmf_model_is(show.path)) return pwi_model_bpmf_show(command, show.path, show.json);
  if (pawl_mlr_model_is(show.path)) return pwi_model_mlr_show(command, show.path, show.top, show.json);
  if (pawl_metric_model_is(show.path)) return pwi_model_metric_show(command, show.path, show.json);
  if (pawl_sparse_model_is(show.path)) return pwi_model_sparse_show(command, show.path, show.top, show.json);
  if (pawl_linear_model_read(show.path, &model, error)) return pwi_cli_failure(command, "%s", error);
  int exit_code = show_model(&show, model);
  pawl_linear_model_destroy(model);
  return exit_code;
}

static const struct pwi_cli_option show_options[] = {
    {'n', "top", "N", "print the N largest weights, or the N atoms that most rows use (default: 10)"},
    {LETTER_VOCABULARY, "vocabulary", "FILE",
     "file with the names of features: line i names feature i, counted from 0 in a zero-based model (default: the "
     "names that the model has from csv or vw data)"},
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command_show = {
    .name = "model show",
    .arguments = "MODEL",
    .summary = "print the options of a model and its largest weights",
    .text = "Prints the options that a linear model was trained with, and its weights with\n"
            "the largest absolute values, of a multiclass model for each class; or the\n"
            "tensors of a convolutional net; or the size and the errors of factorised\n"
            "ratings; or of a dictionary the atoms that most rows use; or the rank and the\n"
            "errors of a metric.\n\n"
            "  pawl model show spam.model --vocabulary words.txt --top 50\n",
    .options = show_options,
    .run = run_show,
};

/* --- export --------------------------------------------------------------------------------------------------------------------- */

static bool read_format(const char *name, enum pawl_linear_format *format_out) {
  for (int i = PAWL_LINEAR_FORMAT_PAWL; i <= PAWL_LINEAR_FORMAT_NPY; i++)
    if (strcmp(name, pawl_linear_format_name((enum pawl_linear_format)i)) == 0) {
      *format_out = (enum pawl_linear_format)i;
      return true;
    }
  return false;
}

/* Warns of properties of the model that other programs cannot know. */
static void warn(const struct pawl_linear_about *about, enum pawl_linear_format format) {
  if (format == PAWL_LINEAR_FORMAT_PAWL) return;
  if (about->binary || about->unit_rows)
    fprintf(stderr,
            "pawl model export: rows were%s%s%s in training; transform rows likewise to predict with this file\n",
            about->binary ? " made binary" : "", about->binary && about->unit_rows ? " and" : "",
            about->unit_rows ? " scaled to length 1" : "");
  if (about->zero_based && format == PAWL_LINEAR_FORMAT_LIBLINEAR)
    fprintf(stderr, "pawl model export: LIBLINEAR counts features from 1, so feature 0 becomes feature 1; add 1 to all "
                    "ids in its data\n");
  if (about->hash_bits)
    fprintf(stderr, "pawl model export: the features are names hashed by pawl, which other programs cannot compute\n");
}

static int export_model(const struct pwi_command *command, const char *path, const char *output,
                        enum pawl_linear_format format, bool json) {
  struct pawl_linear_model *model;
  char error[PAWL_LINEAR_TEXT];
  if (pawl_linear_model_read(path, &model, error)) return pwi_cli_failure(command, "%s", error);
  struct pawl_linear_about about;
  pawl_linear_model_about(model, &about);
  pawl_status status = pawl_linear_model_write(model, output, format, error);
  if (status == PAWL_OK) warn(&about, format);
  pawl_linear_model_destroy(model);
  if (status) return pwi_cli_failure(command, "%s", error);
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:o, s:s, s:I}", "file", pwi_json_string(output), "format",
                                                 pawl_linear_format_name(format), "nnz", (json_int_t)about.nonzeros));
  printf("wrote %s (%s)\n", output, pawl_linear_format_name(format));
  return PWI_EXIT_OK;
}

static int run_export(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  const char *output = NULL, *format_name = NULL;
  enum pawl_linear_format format;
  bool json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == 'o') output = args.value;
    if (letter == LETTER_FORMAT) format_name = args.value;
    if (letter == PWI_CLI_LETTER_JSON) json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  if (!output) return pwi_cli_usage(command, "no output file given; name one with -o OUT");
  int exit_code = pwi_cli_apart(command, "output", output, (const char *const *)argv + args.rest, 1);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (pawl_sparse_model_is(argv[args.rest])) {
    if (format_name) return pwi_cli_usage(command, "atoms are exported as a picture; omit --format");
    return pwi_model_sparse_export(command, argv[args.rest], output, json);
  }
  if (pawl_metric_model_is(argv[args.rest])) {
    if (format_name) return pwi_cli_usage(command, "the matrix of a metric is exported as text; omit --format");
    return pwi_model_metric_export(command, argv[args.rest], output, json);
  }
  format = pawl_linear_format_of(output);
  if (format_name && !read_format(format_name, &format))
    return pwi_cli_usage(command, "unknown format '%s'; expected pawl, liblinear or npy", format_name);
  if (pawl_mlr_model_is(argv[args.rest]) && format != PAWL_LINEAR_FORMAT_LIBLINEAR)
    return pwi_cli_usage(command, "a multiclass model is exported in LIBLINEAR's format only; give --format liblinear");
  if (pawl_mlr_model_is(argv[args.rest])) return pwi_model_mlr_export(command, argv[args.rest], output, json);
  return export_model(command, argv[args.rest], output, format, json);
}

static const struct pwi_cli_option export_options[] = {
    {'o', "output", "OUT", "write the model to OUT"},
    {LETTER_FORMAT, "format", "NAME",
     "format of OUT: pawl, liblinear or npy (default: from its suffix .npy, .liblinear or .txt, else pawl)"},
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command_export = {
    .name = "model export",
    .arguments = "MODEL",
    .summary = "convert a model to another format",
    .text = "Converts a linear model between pawl's own format, LIBLINEAR's text, which\n"
            "liblinear-predict reads, and a NumPy array with a .json file beside it. The\n"
            "format of MODEL is detected. A multiclass model becomes LIBLINEAR's text, and\n"
            "the dictionary of images a picture of its atoms in netpbm's format; a metric\n"
            "its matrix as text.\n\n"
            "  pawl model export spam.model -o spam.liblinear\n"
            "  liblinear-predict test.svm spam.liblinear predictions\n"
            "  pawl model export digits.model -o atoms.pgm\n",
    .options = export_options,
    .run = run_export,
};

/* --- model -------------------------------------------------------------------------------------------------------------------- */

static const struct pwi_command *const children[] = {&command_show, &command_export, NULL};

const struct pwi_command pwi_command_model = {
    .name = "model",
    .summary = "inspect models, and convert linear ones",
    .text = "A model is a file written by 'pawl train' and read by 'pawl predict'.\n",
    .children = children,
};
