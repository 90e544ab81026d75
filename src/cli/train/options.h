/* The options of `pawl train logistic`, `svm` and `linear`, parsed and checked.
 *
 * The three commands share one set of options (docs/cmd-train.md). The list of a command omits options that
 * do not apply to it.
 */
#ifndef PWI_CLI_TRAIN_OPTIONS_H
#define PWI_CLI_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/linear_model.h>

#include "cli/train/base.h"

#define PWI_TRAIN_VALUES_MAX 64 /* of --l1 and of --l2 */
#define PWI_TRAIN_MARK_MAX 64   /* of the name of a point, e.g. "l1=0.1" */

/* The words of --method, and those of --loss of `pawl train svm`. */
#define PWI_TRAIN_METHODS "newton, blocks, subgradient, sgd, adagrad, ftrl or dual"
#define PWI_TRAIN_LOSSES "hinge or squared-hinge"

enum pwi_train_kind { PWI_TRAIN_LOGISTIC, PWI_TRAIN_SVM, PWI_TRAIN_LINEAR };

struct pwi_train_values {
  double at[PWI_TRAIN_VALUES_MAX];
  size_t count;
};

struct pwi_train_class {
  double label, weight;
};

struct pwi_train_options {
  struct pwi_train_base base; /* first */
  enum pwi_train_kind kind;
  struct pawl_linear_options linear; /* without paths, start and callbacks; its points belong to this struct */
  struct pwi_train_values l1, l2;
  struct pwi_train_class classes[2];
  size_t class_count;
  bool is_balanced;

  struct pwi_train_files_given valid;
  const char *start;       /* a model; NULL: none */
  const char *checkpoints; /* NULL: none named */
  enum pawl_linear_format format;
  bool has_format; /* false: the format follows from the model's name */
};

/* The options of the three commands, for --help and parsing. */
extern const struct pwi_cli_option pwi_train_logistic_options[], pwi_train_svm_options[], pwi_train_linear_options[];

/* Parses a command line and resolves defaults. Keeps pointers into `argv`. If it returns false, return
 * `*exit_out`. Always release with pwi_train_options_fini. */
bool pwi_train_options_read(struct pwi_train_options *options, const struct pwi_command *command,
                            enum pwi_train_kind kind, int argc, char **argv, int *exit_out);
void pwi_train_options_fini(struct pwi_train_options *options);

/* The name of a point of a path, e.g. "l1=0.1" or "l1=0.1.l2=1"; "" if there is only one point. Returns
 * `mark_out`. */
const char *pwi_train_mark(const struct pwi_train_options *options, size_t point, char mark_out[PWI_TRAIN_MARK_MAX]);

/* The shortest text of a number that reads back unchanged. `text_out` has room for 32. Returns it. */
const char *pwi_train_number(double value, char *text_out);

/* Parses numbers separated by commas, each at least 0 and none twice. */
bool pwi_train_values_read(const char *text, struct pwi_train_values *values_out);

#endif
